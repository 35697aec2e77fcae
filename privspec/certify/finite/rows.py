"""The linear rows that a certificate names, read from the spec: conditions, laws, accuracy, fairness, worst cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from privspec.certify.finite.averages import Costs, Price, Term, depends, number, terms
from privspec.certify.finite.fairness import allowed_square, root_up, strata, tolerance_of
from privspec.certify.finite.forms import Conditions
from privspec.certify.finite.lagrangian import LinearRow, Scalar
from privspec.certify.finite.lies import Lies, about_lies
from privspec.certify.finite.ratios import Entries
from privspec.certify.finite.subject import FiniteSubject
from privspec.certify.finite.sums import Body, Variation, read_body
from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import Malformed
from privspec.language.syntax import VariableKind
from privspec.model.measures import Lipschitz
from privspec.model.requirements import AccuracyTarget, IndependenceRequirement, Requirement


@dataclass(frozen=True, eq=False)
class Loss:
    """The loss as numbers: averages and worst cases with their weights, prices of choices, and a constant.

    `apart`: total variations from drawn winners, in order of the text, each with the number of its worst case (None in
    an average, whose weight is then in its own).
    """

    averages: tuple[tuple[Fraction, Costs], ...]
    worst: tuple[tuple[Fraction, Costs], ...]
    prices: Mapping[str, Fraction]
    constant: Fraction
    apart: tuple[tuple[int | None, Variation], ...] = ()


def read_loss(subject: FiniteSubject) -> Loss:
    """The loss of the spec.

    Raises: NotUnderstood.
    """
    if subject.model.loss is None:
        raise NotUnderstood("the spec has no loss")
    parts: dict[str, list[tuple[Fraction, Costs]]] = {"E": [], "worst": []}
    prices: dict[str, Fraction] = {}
    apart: list[tuple[int | None, Variation]] = []
    constant = Fraction(0)
    for term in terms(subject.open_scene, subject.model.loss):
        match term:
            case Term():
                body, number_ = open_body(subject, term), len(parts["worst"])
                parts[term.operator].append((term.weight, body.cost(subject)))
                apart += linear_variations(body, term, None if term.operator == "E" else number_)
            case Price():
                prices[term.name] = prices.get(term.name, Fraction(0)) + term.weight
            case _:
                constant += term
    return Loss(tuple(parts["E"]), tuple(parts["worst"]), prices, constant, tuple(apart))


def linear_variations(body: Body, term: Term, worst: int | None) -> Iterator[tuple[int | None, Variation]]:
    """The total variations of a term, with its weight where it is an average.

    Raises: NotUnderstood if a large one is rewarded, as slacks then stand for nothing.
    """
    for one in body.variations:
        if one.weight * term.weight < 0:
            raise NotUnderstood("a bound on a loss that rewards a total variation")
        yield worst, replace(one, weight=one.weight * (term.weight if worst is None else 1))


def open_body(subject: FiniteSubject, term: Term) -> Body:
    """What stands in a term that nothing which is chosen has a part in.

    Raises: NotUnderstood.
    """
    if VariableKind.CHOOSE in depends(subject.model, term.body):
        raise NotUnderstood("a lower bound on a loss that depends on what is chosen")
    return read_body(subject, term.body, subject.open_scene)


def law_of_rows(subject: FiniteSubject) -> tuple[Fraction, ...]:
    """Probabilities of the rows.

    Raises: NotUnderstood where there are none.
    """
    if subject.prior is None:
        raise NotUnderstood("an average over data without a model")
    return subject.prior


@dataclass(frozen=True, eq=False)
class Rows:
    """Finds a row by its name, and the range of every unknown scalar."""

    subject: FiniteSubject
    loss: Loss

    @cached_property
    def conditions(self) -> Conditions:
        """The background lines."""
        return Conditions(self.subject)

    def row(self, name: str) -> LinearRow:
        """One row.

        Raises: Malformed if the spec has no such row, NotUnderstood.
        """
        kind, _, rest = name.partition(":")
        read = READERS.get(kind)
        if read is None:
            raise Malformed(f"the certificate names a row {name[:40]!r}, which is not known")
        return read(self, rest)

    def scalars(self, rows: Mapping[str, LinearRow], *, epigraphs: bool) -> dict[str, Scalar]:
        """The ranges of all unknown scalars of the loss and of some rows."""
        found: dict[str, Scalar] = {}
        for node in self.subject.chosen_numbers:
            low, high = node.domain.bounds if node.domain is not None else (None, None)
            found[node.name] = Scalar(low, high, self.loss.prices.get(node.name, Fraction(0)))
        if not set(self.loss.prices) <= set(found):
            raise NotUnderstood("a price for something that is no number")
        for k, (weight, cost) in enumerate(self.loss.worst if epigraphs else ()):
            low, high = (Fraction(end, cost.scale) for end in (cost.numerators.min(), cost.numerators.max()))
            more = sum((one.weight for at, one in self.loss.apart if at == k), Fraction(0))
            found[f"worst:{k}"] = Scalar(low, high + more, weight)
        for name in {used for row in rows.values() for used in row.scalars}:
            if name not in found:
                found[name] = Scalar(Fraction(0), self._most(name), self._share(name))
        return found

    def _share(self, name: str) -> Fraction:
        """What a slack costs the loss: the probability of its row times the weight of its total variation."""
        kind, _, rest = name.partition(":")
        if kind != "slack" or not rest.startswith("loss:"):
            return Fraction(0)
        number_, row, _ = _integers(rest.removeprefix("loss:"), 3)
        at, one = self.loss.apart[number_]
        return law_of_rows(self.subject)[row] * one.weight if at is None else Fraction(0)

    def _most(self, name: str) -> Fraction | None:
        """Masses are at most the weight of their law, slacks of total variations at most one."""
        alpha = self.conditions.weights.get(name.partition(":")[0])
        if alpha is None:
            return Fraction(1)
        domain = self.subject.model.nodes[alpha].domain
        low = None if domain is None else domain.bounds[0]
        return None if low is None else 1 - low

    # --- by kind -----------------------------------------------------------------------------------------

    def condition(self, rest: str) -> LinearRow:
        """`condition:<line>:<row>`."""
        line, row = _integers(rest, 2)
        for place, constraint in enumerate(self.subject.model.constraints):
            if constraint.line == line:
                return self.conditions.row(place, row)
        raise Malformed(f"the spec has no condition on line {line}")

    def law(self, rest: str) -> LinearRow:
        """`law:<name>`."""
        if rest not in self.subject.chosen_laws:
            raise Malformed(f"the spec leaves no law {rest[:40]} open")
        return self.conditions.law_row(rest)

    def accuracy(self, rest: str) -> LinearRow:
        """`accuracy:<line>`, or `accuracy:<line>:<row>` where a worst case stands in it."""
        parts = _integers(rest, 1 + rest.count(":"))
        for target in self.subject.model.accuracy:
            if target.line == parts[0]:
                return self._accuracy(target, *parts[1:2])
        raise Malformed(f"the spec has no accuracy on line {parts[0]}")

    @cached_property
    def _bodies(self) -> dict[int, list[tuple[Term, Body]]]:
        """The averages and worst cases of accuracy lines, by line."""
        found: dict[int, list[tuple[Term, Body]]] = {}
        for target in self.subject.model.accuracy:
            special = target.target.variable is not None or target.target.probability is not None
            if special or about_lies(target.target.left):
                continue
            inside = [t for t in terms(self.subject.open_scene, target.target.left) if isinstance(t, Term)]
            found[target.line] = [(term, open_body(self.subject, term)) for term in inside]
        return found

    def _accuracy(self, target: AccuracyTarget, row: int | None = None) -> LinearRow:
        written, scene, size = target.target, self.subject.open_scene, self.subject.rows.size
        if target.line not in self._bodies:
            raise NotUnderstood("a bound with accuracy of this form")
        bodies = self._bodies[target.line]
        worst = [term for term, _ in bodies if term.operator == "worst"]
        if len(worst) > 1 or bool(worst) != (row is not None) or (row is not None and row >= size):
            raise Malformed(f"line {target.line} has no such row")
        bound, scalars = number(scene, written.right), dict[str, Fraction]()
        cost: Entries = np.zeros(self.subject.table.shape, dtype=object)
        first = 0
        for term, body in bodies:
            one = body.cost(self.subject)
            law = law_of_rows(self.subject) if term.operator == "E" else [Fraction(x == row) for x in range(size)]
            cost = cost + np.stack([one.fractions(x) * (p * term.weight) for x, p in enumerate(law)])
            for k, (_, variation) in enumerate(linear_variations(body, term, None), first):
                for x, p in enumerate(law):
                    slacks = slack_names(f"{target.line}:{k}", variation, x)
                    scalars |= dict.fromkeys(slacks.values(), p * variation.weight) if p else {}
            first += len(body.variations)
        for part in terms(scene, written.left):
            if isinstance(part, Price):
                scalars[part.name] = scalars.get(part.name, Fraction(0)) + part.weight
            elif isinstance(part, Fraction):
                bound -= part
        return LinearRow(dict(enumerate(cost)), scalars, bound, False)

    def lie(self, rest: str) -> LinearRow:
        """`lie:<line>:<row>:<ballot>:<lie>:<set>`: what a lie adds to the probability of a set of best alternatives."""
        line, row, ballot, other, chosen = _integers(rest, 5)
        for target in self.subject.model.accuracy:
            if target.line == line and about_lies(target.target.left):
                bound = number(self.subject.open_scene, target.target.right)
                return self._lies.setdefault(line, Lies(self.subject, target.target.left)).row(
                    row, ballot, other, chosen, bound
                )
        raise Malformed(f"the spec bounds no manipulation on line {line}")

    @cached_property
    def _lies(self) -> dict[int, Lies]:
        """What lies can bring, by line."""
        return {}

    def apart(self, rest: str) -> LinearRow:
        """`apart:<loss or line>:<number>:<row>:<value>`: what is drawn too often of a value, at most a slack."""
        head, _, last = rest.partition(":")
        number_, row, value = _integers(last, 3)
        if head == "loss":
            found = [one for _, one in self.loss.apart]
        else:
            bodies = self._bodies.get(_integers(head, 1)[0], [])
            found = [one for _, body in bodies for one in body.variations]
        if not (number_ < len(found) and row < self.subject.rows.size):
            raise Malformed(f"the certificate names a total variation {rest[:40]!r}, which is not there")
        one = found[number_]
        slacks = slack_names(f"{head}:{number_}", one, row)
        if value not in slacks:
            raise Malformed(f"the certificate names a value {rest[:40]!r}, which has no slack")
        mask: Entries = np.array([Fraction(int(shown == value)) for shown in one.seen], dtype=object)
        return LinearRow({row: mask}, {slacks[value]: Fraction(-1)}, one.law[row, value], False)

    def worst(self, rest: str) -> LinearRow:
        """`worst:<number>:<row>`: the costs of the row stay below the worst case."""
        k, row = _integers(rest, 2)
        if not (0 <= k < len(self.loss.worst) and 0 <= row < self.subject.rows.size):
            raise Malformed(f"the loss has no worst case {k} at {row}")
        scalars = {f"worst:{k}": Fraction(-1)}
        for j, (at, one) in enumerate(self.loss.apart):
            if at == k:
                scalars |= dict.fromkeys(slack_names(f"loss:{j}", one, row).values(), one.weight)
        return LinearRow({row: self.loss.worst[k][1].fractions(row)}, scalars, Fraction(0), False)

    def fairness(self, rest: str) -> LinearRow:
        """`fairness:<line>:<given>:<a>:<b>:<seen or total>`: what one law has beyond the other, and their sum."""
        head, _, last = rest.rpartition(":")
        line, given, a, b = _integers(head, 4)
        for found in self.subject.model.fairness:
            if found.line == line:
                gap = self._gap(found, given, a, b)
                return gap.total(head) if last == "total" else gap.row(head, *_integers(last, 1))
        raise Malformed(f"the spec has no fairness on line {line}")

    def _gap(self, line: Any, given: int, a: int, b: int) -> Gap:
        if isinstance(line, IndependenceRequirement):
            groups = strata(self.subject, line)
            if not (0 <= given < len(groups) and 0 <= a < len(groups[given]) and 0 <= b < len(groups[given])):
                raise Malformed(f"line {line.line}: there are no such groups")
            left, right = groups[given][a], groups[given][b]
            return Gap(self.subject, left, right, self.subject.view(line.subjects), tolerance_of(self.subject, line))
        return self._pair(line, a, b)

    def _pair(self, line: Requirement, a: int, b: int) -> Gap:
        measure = line.measure
        if not isinstance(measure, Lipschitz):
            raise NotUnderstood(f"{measure.describe()} as fairness")
        apart = self.subject.apart(line)
        size = self.subject.rows.size
        kinds = apart.kinds_of(np.array([a]), np.array([b])) if 0 <= a < size and 0 <= b < size else None
        if kinds is None:
            raise Malformed(f"line {line.line} does not compare these rows")
        allowed = root_up(allowed_square(measure, apart, int(kinds[0])))
        one, other = {a: Fraction(1)}, {b: Fraction(1)}
        return Gap(self.subject, one, other, self.subject.view(line.outputs), allowed)


READERS: Mapping[str, Callable[[Rows, str], LinearRow]] = {
    "condition": Rows.condition,
    "law": Rows.law,
    "accuracy": Rows.accuracy,
    "apart": Rows.apart,
    "lie": Rows.lie,
    "worst": Rows.worst,
    "fairness": Rows.fairness,
}
"""By the word a name begins with."""


def slack_names(where: str, variation: Variation, row: int) -> dict[int, str]:
    """By the values that can be drawn too often at a row, the slacks that stand for it."""
    law = variation.law[row]
    return {value: f"slack:{where}:{row}:{value}" for value, chance in enumerate(law) if chance < 1}


@dataclass(frozen=True, eq=False)
class Gap:
    """Two laws, each a mixture of rows, that are at most `tolerance` apart in total variation."""

    subject: FiniteSubject
    left: Mapping[int, Fraction]
    right: Mapping[int, Fraction]
    view: Any
    tolerance: Fraction

    def row(self, head: str, seen: int) -> LinearRow:
        """What the first has more often of one thing seen: nothing, or at most a slack."""
        if not 0 <= seen <= int(self.view.max()):
            raise Malformed("a fairness row is about what nobody sees")
        mask = np.array([Fraction(int(shown == seen)) for shown in self.view], dtype=object)
        table: dict[int, Entries] = {}
        for sign, mix in ((1, self.left), (-1, self.right)):
            for row, weight in mix.items():
                table[row] = table.get(row, Fraction(0)) + sign * weight * mask
        if self.tolerance == 0:
            return LinearRow(table, {}, Fraction(0), True)
        return LinearRow(table, {f"slack:{head}:{seen}": Fraction(-1)}, Fraction(0), False)

    def total(self, head: str) -> LinearRow:
        """That the slacks sum to at most the tolerance."""
        slacks = {f"slack:{head}:{seen}": Fraction(1) for seen in range(int(self.view.max()) + 1)}
        return LinearRow({}, slacks, self.tolerance, False)


def _integers(text: str, count: int) -> tuple[int, ...]:
    parts = text.split(":")
    if len(parts) != count or not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise Malformed(f"the certificate names a row by {text[:40]!r}")
    return tuple(int(part) for part in parts)
