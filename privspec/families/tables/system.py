"""A table of the problem as the solvers' numbers: arrays of fractions, linear lines with slacks, further scalars.

A slack stands for what one probability has beyond another, or beyond a law, wherever a total variation or a delta
costs something; a scalar `worst:k` for the k-th worst case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.spans import Span
from privspec.model.distances import takes_distance
from privspec.model.graph import Model
from privspec.model.reports import Failure
from privspec.model.requirements import Requirement
from privspec.model.worlds import Neighbours, Worlds
from privspec.problem.table_forms import Accuracy, Amount, Condition, Fairness, Manipulation, Table, Variation
from privspec.problem.table_lines import Moment, is_manipulation, moment
from privspec.problem.table_losses import Costs, fractions
from privspec.problem.tables import lower as lower_table

Key: TypeAlias = tuple[str | int, ...]
"""Where a line comes from: a word and numbers of the problem's items."""
MOST_LIES = 200_000
"""Rows of the program that one bound on lies may need."""


@dataclass(frozen=True, eq=False, slots=True)
class LinearLine:
    """sum table[r, c] f_rc + sum scalars[name] w_name = bound, or <= bound."""

    key: Key
    span: Span
    table: Mapping[tuple[int, int], Fraction]
    scalars: Mapping[str, Fraction]
    bound: Fraction
    equality: bool


@dataclass(frozen=True, slots=True)
class Scalar:
    """A further unknown number with its range and its share in the loss."""

    name: str
    low: Fraction
    high: Fraction
    cost: Fraction = Fraction(0)


@dataclass(frozen=True, eq=False, slots=True)
class Requested:
    """A requirement with the rows it compares and what its observer tells apart (None: all outputs).

    `inputs`: how many values the inputs that it names take, the |X| of per-atom-LDP.
    """

    index: int
    requirement: Requirement
    neighbours: Neighbours
    view: NDArray[np.intp] | None
    inputs: int = 1


@dataclass(frozen=True, eq=False)
class FiniteSystem:
    """A finite spec in numbers: `table` is the problem's, `requirements` those of the spec, in its order."""

    worlds: Worlds
    table: Table
    requirements: tuple[Requirement, ...]

    @property
    def model(self) -> Model:
        """The spec."""
        return self.worlds.model

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.table.shape

    @property
    def loss(self) -> Amount:
        """What is minimised, beside the errors of estimates."""
        return self.table.loss

    @property
    def only_worst(self) -> bool:
        """Whether the loss is one worst case of costs and nothing else."""
        return self.loss.only_worst and not self.loss.worst[0].variations

    @property
    def offset(self) -> Fraction:
        """What is added to the loss whatever is drawn."""
        return self.loss.constant

    @cached_property
    def prior(self) -> Costs | None:
        """The law of rows."""
        return None if self.table.prior is None else fractions(self.table.prior)

    @cached_property
    def expected(self) -> Costs | None:
        """What draws cost on average, the prior included."""
        if self.loss.average is None or self.prior is None:
            return None
        found: Costs = fractions(self.loss.average) * self.prior[:, None]
        return found

    @cached_property
    def worst(self) -> tuple[tuple[Fraction, Costs], ...]:
        """Worst cases with their weights."""
        return tuple((worst.weight, fractions(worst.costs)) for worst in self.loss.worst)

    @cached_property
    def requested(self) -> tuple[Requested, ...]:
        """What each requirement asks of the table."""
        return tuple(
            Requested(
                index,
                requirement,
                _neighbours(self.table, index, requirement),
                view_of(self.table, self.model.exposed(requirement)),
                self.table.compared[index].inputs,
            )
            for index, requirement in enumerate(self.requirements)
        )

    @cached_property
    def _further(self) -> tuple[tuple[LinearLine, ...], tuple[Scalar, ...]]:
        lines: list[LinearLine] = []
        scalars: list[Scalar] = []
        for item in _further(self):
            lines += [item] if isinstance(item, LinearLine) else []
            scalars += [item] if isinstance(item, Scalar) else []
        return tuple(lines), tuple(scalars)

    @property
    def lines(self) -> tuple[LinearLine, ...]:
        """Conditions, accuracy, bounds on lies and fairness, with what their slacks stand for."""
        return self._further[0]

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """Chosen numbers, masses of laws, and the slacks of `lines`."""
        return self._further[1]

    def given(self, requirements: Sequence[Requirement]) -> FiniteSystem:
        """The same where only amounts of privacy differ: costs and neighbours stay as they are."""
        return replace(self, requirements=tuple(requirements))


def lower(model: Model, *, priced: bool = True) -> FiniteSystem:
    """The program of a finite spec; without its loss where it is not `priced`.

    Raises: SpecError PS05xx with a construct that cannot be computed yet, PS04xx for an average without a data model.
    """
    found = lower_table(model, priced=priced)
    return FiniteSystem(found.worlds, found.table, model.requirements)


def _neighbours(table: Table, index: int, requirement: Requirement) -> Neighbours:
    compared = table.compared[index]
    pairs = np.array(compared.pairs.entries, dtype=np.intp).reshape(-1, 3)
    squares = compared.squares if takes_distance(requirement) else ()
    return Neighbours(len(table.rows), compared.cliques, pairs, squares)


def view_of(table: Table, outputs: Sequence[str]) -> NDArray[np.intp] | None:
    """What whoever sees these outputs tells apart: a number for each column; None if everything."""
    if set(table.outputs) <= set(outputs):
        return None
    number = np.zeros(len(table.columns), dtype=np.intp)
    for name, places in zip(table.outputs, table.places, strict=True):
        if name in outputs:
            number = number * (max(places) + 1) + np.array(places, dtype=np.intp)
    return number


# --- lines ----------------------------------------------------------------------------------------


def _further(system: FiniteSystem) -> Iterator[LinearLine | Scalar]:
    model, table = system.model, system.table
    for k, (condition, constraint) in enumerate(zip(table.conditions, model.constraints, strict=True)):
        yield from _condition(k, condition, constraint.relation.span)
    lies = [target for target in model.accuracy if is_manipulation(target.target.left)]
    limits = [target for target in model.accuracy if target not in lies]
    for k, (line, target) in enumerate(zip(table.accuracy, limits, strict=True)):
        yield from _accuracy(k, line, target.target.span, system)
    for k, (bound, target) in enumerate(zip(table.manipulation, lies, strict=True)):
        yield from _lies(k, bound, target.target.span)
    prices = {price.name: price.weight for price in table.loss.prices}
    for choice in table.choices:
        yield Scalar(choice.name, choice.low, choice.high, prices.get(choice.name, Fraction(0)))
    for law in table.laws:
        masses = [f"{law.name}:{label}" for label in law.labels]
        yield from (Scalar(name, Fraction(0), Fraction(1)) for name in masses)
        total = dict.fromkeys(masses, Fraction(1)) | ({} if law.weight is None else {law.weight: Fraction(1)})
        yield LinearLine(("law", law.name), model.nodes[law.name].span, {}, total, Fraction(1), True)
    for k, (fair, written) in enumerate(zip(table.fairness, model.fairness, strict=True)):
        yield from _fairness(k, fair, written.span, system)


def _condition(k: int, condition: Condition, span: Span) -> Iterator[LinearLine]:
    table = None if condition.average is None else fractions(condition.average)
    scalars = {one.name: fractions(one.values) for one in condition.scalars}
    for r, constant in enumerate(fractions(condition.constant)):
        row = {} if table is None else {(r, c): v for c, v in enumerate(table[r]) if v}
        named = {name: values[r] for name, values in scalars.items() if values[r]}
        yield LinearLine(("condition", k, r), span, row, named, -constant, condition.equality)


def slacks(where: Key, law: Costs, row: int) -> dict[int, str]:
    """By the values that may be drawn too often at a row, the names of their slacks."""
    head = ":".join(map(str, where))
    return {o: f"slack:{head}:{row}:{o}" for o, chance in enumerate(law[row]) if chance < 1}


def variation_lines(
    where: Key, variation: Variation, span: Span, shares: Costs | None
) -> Iterator[LinearLine | Scalar]:
    """Slacks (each costs the loss the share of its row times the weight), and that none is less than its excess."""
    law, values = fractions(variation.law), np.array(variation.values)
    for r in range(len(law)):
        cost = Fraction(0) if shares is None else shares[r] * variation.weight
        for o, name in slacks(where, law, r).items():
            yield Scalar(name, Fraction(0), Fraction(1), cost)
            table = {(r, int(c)): Fraction(1) for c in np.flatnonzero(values == o)}
            yield LinearLine(("apart", *where, r, o), span, table, {name: Fraction(-1)}, law[r, o], False)


def _accuracy(k: int, line: Accuracy, span: Span, system: FiniteSystem) -> Iterator[LinearLine | Scalar]:
    """One row, or one for each row of the table where a worst case stands in it."""
    amount, rows = line.amount, range(system.shape[0])
    average: Costs = np.full(system.shape, Fraction(0), dtype=object)
    if amount.average is not None and system.prior is not None:
        average = fractions(amount.average) * system.prior[:, None]
    entries = dict(np.ndenumerate(average))
    scalars, limit = {price.name: price.weight for price in amount.prices}, line.limit - amount.constant
    for j, variation in enumerate(amount.variations):
        where: Key = ("accuracy", k, "mean", j)
        yield from variation_lines(where, variation, span, None)
        law = fractions(variation.law)
        for r, share in enumerate(system.prior if system.prior is not None else ()):
            scalars |= dict.fromkeys(slacks(where, law, r).values(), variation.weight * share)
    if not amount.worst:
        yield LinearLine(("accuracy", k), span, entries, scalars, limit, False)
        return
    (worst,) = amount.worst
    for j, variation in enumerate(worst.variations):
        yield from variation_lines(("accuracy", k, 0, j), variation, span, None)
    costs, laws = fractions(worst.costs), [fractions(one.law) for one in worst.variations]
    for r in rows:
        table = entries | {(r, c): entries[r, c] + worst.weight * cost for c, cost in enumerate(costs[r])}
        named = dict(scalars)
        for j, (variation, law) in enumerate(zip(worst.variations, laws, strict=True)):
            weight = worst.weight * variation.weight
            named |= dict.fromkeys(slacks(("accuracy", k, 0, j), law, r).values(), weight)
        yield LinearLine(("accuracy", k, r), span, table, named, limit, False)


def _fairness(k: int, line: Fairness, span: Span, system: FiniteSystem) -> Iterator[LinearLine | Scalar]:
    """Equalities for tolerance 0; else slacks for what one group gets more often, that sum to the tolerance."""
    view = view_of(system.table, line.outputs)
    seen = np.arange(system.shape[1]) if view is None else view
    count = int(seen.max()) + 1
    mixtures = [mixture(group, system.prior) for group in line.groups]
    triples = np.array(line.pairs.entries, dtype=np.intp).reshape(-1, 3)
    firsts: dict[int, int] = {}
    for number, (a, b, level) in enumerate(triples.tolist()):
        tolerance = line.tolerances[level]
        if tolerance >= 1:
            continue  # nothing is farther apart
        if not tolerance and firsts.setdefault(b, a) != a:
            continue  # equal to the first group of its stratum already
        rows = [_difference(mixtures[a], mixtures[b], seen, s) for s in range(count)]
        if not tolerance:
            for s in range(count - 1):
                yield LinearLine(("fairness", k, number, s), span, rows[s], {}, Fraction(0), True)
            continue
        names = [f"slack:fairness:{k}:{number}:{s}" for s in range(count)]
        for s, name in enumerate(names):
            yield Scalar(name, Fraction(0), Fraction(1))
            yield LinearLine(("fairness", k, number, s), span, rows[s], {name: Fraction(-1)}, Fraction(0), False)
        total = dict.fromkeys(names, Fraction(1))
        yield LinearLine(("fairness", k, number, "total"), span, {}, total, tolerance, False)


def mixture(rows: Sequence[int], prior: Costs | None) -> dict[int, Fraction]:
    """The law of the rows of a group."""
    if len(rows) == 1 or prior is None:
        return {rows[0]: Fraction(1)}
    total = sum((prior[r] for r in rows), Fraction(0))
    return {r: prior[r] / total for r in rows if prior[r]}


def _difference(
    left: Mapping[int, Fraction], right: Mapping[int, Fraction], seen: NDArray[np.intp], value: int
) -> dict[tuple[int, int], Fraction]:
    found: dict[tuple[int, int], Fraction] = {}
    for sign, mix in ((1, left), (-1, right)):
        for r, weight in mix.items():
            for c in np.flatnonzero(seen == value):
                place = (r, int(c))
                found[place] = found.get(place, Fraction(0)) + sign * weight
    return {place: value for place, value in found.items() if value}


# --- debiased estimates ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Debiased:
    """The chosen number alpha with its range, the masses of the background law (none without), and the moments.

    `weighted`: the masses of the law sum to 1 - alpha, else to 1.
    """

    alpha: str
    low: Fraction
    high: Fraction
    masses: tuple[str, ...]
    weighted: bool
    moments: tuple[Moment, ...]
    weights: tuple[Fraction, ...]

    @classmethod
    def of(cls, system: FiniteSystem) -> Debiased:
        """What the loss of a system estimates."""
        table = system.table
        assert table.estimates is not None
        alpha = table.estimates.alpha
        (choice,) = (choice for choice in table.choices if choice.name == alpha)
        moments = [moment(condition, alpha) for condition in table.conditions]
        masses = tuple(f"{law.name}:{label}" for law in table.laws for label in law.labels)
        weighted = any(law.weight is not None for law in table.laws)
        known = tuple(found for found in moments if found is not None)
        return cls(alpha, choice.low, choice.high, masses, weighted, known, table.estimates.weights)

    @staticmethod
    def beside(system: FiniteSystem) -> tuple[LinearLine, ...]:
        """Lines beside those that the program of estimates states by itself."""
        return tuple(line for line in system.lines if line.key[0] not in ("condition", "law"))


# --- what a lie can bring a voter -----------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Electorate:
    """Votes held as counts of ballots."""

    line: Manipulation

    @property
    def rows(self) -> list[tuple[int, ...]]:
        """How often each ballot is cast, by row."""
        kinds = len(self.line.ballots)
        entries = self.line.counts.entries
        return [entries[i : i + kinds] for i in range(0, len(entries), kinds)]

    def moves(self) -> Iterator[tuple[int, int, int, int]]:
        """Every row with a ballot that is cast there, a lie, and the row where that is cast instead."""
        rows = self.rows
        number = {counts: r for r, counts in enumerate(rows)}
        for r, counts in enumerate(rows):
            for i, count in enumerate(counts):
                for j in range(len(counts)) if count else ():
                    if i != j:
                        yield r, i, j, number[tuple(n - (k == i) + (k == j) for k, n in enumerate(counts))]

    def lied(self, row: int, ballot: int, lie: int) -> int:
        """The row in which one voter casts another ballot."""
        rows = self.rows
        return rows.index(tuple(n - (k == ballot) + (k == lie) for k, n in enumerate(rows[row])))

    def unordered(self, ballot: int) -> tuple[int, ...]:
        """Alternatives of whose order a ballot cannot say anything."""
        ballots = self.line.ballots
        full = len(ballots[ballot]) == max(map(len, ballots))
        return tuple(a for a in range(self.line.alternatives) if full and a not in ballots[ballot])

    def uppers(self, ballot: int) -> Iterator[int]:
        """Sets of best alternatives, as bits, but for the set of all of them."""
        named, rest = self.line.ballots[ballot], self.unordered(ballot)
        yield from (_bits(named[:k]) for k in range(1, min(len(named) + 1, self.line.alternatives)))
        for k in range(1, len(rest)):
            yield from (_bits(named) | _bits(chosen) for chosen in combinations(rest, k))

    def sharpest(self, ballot: int) -> Iterator[int]:
        """Those that imply all others where nothing at all may be gained: all alternatives but one, of the rest."""
        named, rest, m = self.line.ballots[ballot], self.unordered(ballot), self.line.alternatives
        yield from (_bits(named[:k]) for k in range(1, len(named) if rest else min(len(named) + 1, m)))
        yield from ((1 << m) - 1 - (1 << a) for a in rest)

    def gained(self, laws: Sequence[Sequence[Fraction]]) -> Fraction:
        """The most that a lie brings a voter under any rule; `laws` (rows, alternatives) are those of the winner."""
        most = Fraction(0)
        for r, i, _, lied in self.moves():
            change = [after - before for before, after in zip(laws[r], laws[lied], strict=True)]
            total = Fraction(0)
            for a in self.line.ballots[i]:
                total += change[a]
                most = max(most, total)
            rest = (change[a] for a in self.unordered(i) if change[a] > 0)
            most = max(most, total + sum(rest, Fraction(0)))
        return most


def _bits(chosen: tuple[int, ...]) -> int:
    return sum(1 << a for a in chosen)


def _lies(k: int, line: Manipulation, span: Span) -> Iterator[LinearLine]:
    """No lie raises the probability of a set of best alternatives by more than the limit.

    Where that is 0 and a set is one of best alternatives of both ballots, either could be the lie: one equality.
    """
    votes, lines = Electorate(line), 0
    for r, i, j, lied in votes.moves():
        theirs = set(votes.uppers(j))
        for chosen in votes.uppers(i) if line.limit else votes.sharpest(i):
            both = not line.limit and chosen in theirs
            if both and j < i:
                continue  # stated from the other side
            lines += 1
            if lines > MOST_LIES:
                raise Failure("PS0515", span, "there are too many ballots that could be a lie")
            table = {(lied, c): Fraction(1) for c, a in enumerate(line.winners) if chosen >> a & 1}
            table |= {(r, c): Fraction(-1) for c, a in enumerate(line.winners) if chosen >> a & 1}
            yield LinearLine(("lie", k, r, i, j, chosen), span, table, {}, line.limit, both)
