"""Losses of estimates that are freed from a known bias: what such a loss is, read from the spec symbolically.

With conditions E[g(z) | x] = alpha t(x) + s and s = (1 - alpha) E[h(B)], where alpha and the law of B are chosen, the
value (g(z) - s) / alpha estimates t(x) without bias (Ramon & Basu 2020, section 3.3). A loss of weighted squared errors
of such estimates is not linear in what is chosen; `search` bounds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from privspec.certify.finite.averages import Term, depends, drawn, number, terms
from privspec.certify.finite.forms import Conditions
from privspec.certify.finite.ratios import Entries
from privspec.certify.finite.subject import FiniteSubject
from privspec.certify.motion import NotUnderstood
from privspec.language import syntax
from privspec.language.syntax import VariableKind
from privspec.language.walk import names_used

Key: TypeAlias = tuple[int, str | None]
"""A power of alpha, times the probability of a value of the law (None for no such factor)."""
Symbolic: TypeAlias = dict[Key, Entries]
"""At each pair: the sum of coefficients, (rows or 1, columns or 1), times what their keys stand for."""


@dataclass(frozen=True, eq=False, slots=True)
class Moment:
    """E[g(z) | x] = alpha t(x) + (1 - alpha) sum over values v of Pr(B = v) h(v): g (columns,), t (rows,)."""

    line: int
    g: tuple[Fraction, ...]
    t: tuple[Fraction, ...]
    h: Mapping[str, Fraction]


@dataclass(frozen=True, eq=False, slots=True)
class Estimates:
    """alpha with its range, the values of the law (none without a law), and the moments with their weights."""

    alpha: str
    low: Fraction
    high: Fraction
    masses: tuple[str, ...]
    moments: tuple[Moment, ...]
    weights: tuple[Fraction, ...]
    constant: Fraction


def estimates(subject: FiniteSubject, conditions: Conditions) -> Estimates:
    """What the loss of the spec estimates.

    Raises: NotUnderstood if it is of another form.
    """
    if len(subject.chosen_numbers) != 1 or len(subject.chosen_laws) > 1 or subject.model.loss is None:
        raise NotUnderstood("a lower bound on a loss that depends on what is chosen")
    (node,) = subject.chosen_numbers
    low, high = node.domain.bounds if node.domain is not None else (None, None)
    if low is None or high is None or not 0 <= low <= high <= 1 or high == 0:
        raise NotUnderstood(f"a range of {node.name} outside 0 to 1")
    moments = [_moment(conditions, place, node.name) for place in range(len(subject.model.constraints))]
    weights = [Fraction(0)] * len(moments)
    constant = Fraction(0)
    for part in _squares(subject):
        if isinstance(part, Fraction):
            constant += part
            continue
        weight, error = part
        found = Errors(subject, node.name).of(error)
        places = [k for k, moment in enumerate(moments) if _is_error(found, moment)]
        if not places or weight < 0:
            raise NotUnderstood("a squared error of something that no condition makes unbiased")
        weights[places[0]] += weight
    masses = tuple(name for moment in moments[:1] for name in moment.h)
    return Estimates(node.name, low, high, masses, tuple(moments), tuple(weights), constant)


def _moment(conditions: Conditions, place: int, alpha: str) -> Moment:
    """A condition as a moment.

    Raises: NotUnderstood if it is of another form.
    """
    constraint = conditions.subject.model.constraints[place]
    found, scalars = conditions.side(place)
    constant = found.terms.get(())
    others = {name: values for name, values in scalars.items() if name != alpha}
    if constraint.relation.op != "=" or found.table is None or (constant is not None and np.any(constant != 0)):
        raise NotUnderstood("a condition of another form, where the loss depends on what is chosen")
    columns = [found.table.T, *(values[None, :] for values in others.values())]
    if any(np.any(part != part[:, :1]) for part in columns) or set(conditions.weights.values()) - {alpha}:
        raise NotUnderstood("a condition that differs from row to row, where the loss depends on what is chosen")
    t = -scalars[alpha] if alpha in scalars else np.array([Fraction(0)] * conditions.subject.rows.size, dtype=object)
    h = {name: Fraction(-values[0]) for name, values in others.items()}
    names = [name for law in conditions.subject.chosen_laws for name in conditions.names(law)]
    return Moment(
        constraint.line,
        tuple(found.table[0].tolist()),
        tuple(t.tolist()),
        {name: h.get(name, Fraction(0)) for name in names},
    )


# --- the loss ------------------------------------------------------------------------------------------


def _squares(subject: FiniteSubject) -> Iterator[tuple[Fraction, syntax.Expr] | Fraction]:
    """The loss as weights and errors that are squared, and a constant."""
    assert subject.model.loss is not None
    for term in terms(subject.open_scene, subject.model.loss):
        match term:
            case Fraction():
                yield term
            case Term(operator="E"):
                yield from _inside(subject, term.body, term.weight)
            case _:
                raise NotUnderstood("a lower bound on a loss that depends on what is chosen")


def _inside(subject: FiniteSubject, body: syntax.Expr, weight: Fraction) -> Iterator[tuple[Fraction, syntax.Expr]]:
    public = {VariableKind.CONSTANT}
    match body:
        case syntax.Binary(op="+"):
            yield from _inside(subject, body.left, weight)
            yield from _inside(subject, body.right, weight)
        case syntax.Binary(op="*") if depends(subject.model, body.left) <= public:
            yield from _inside(subject, body.right, weight * number(subject.open_scene, body.left))
        case syntax.Binary(op="^") if depends(subject.model, body.right) <= public:
            if number(subject.open_scene, body.right) != 2:
                raise NotUnderstood("a loss that is no squared error")
            yield weight, body.left
        case _:
            raise NotUnderstood("a loss that is no squared error")


def _is_error(found: Symbolic, moment: Moment) -> bool:
    """Whether an expression is (g(z) - s) / alpha - t(x), or that with the other sign."""
    wanted: Symbolic = {
        (-1, None): np.array([moment.g], dtype=object),
        (0, None): -np.array(moment.t, dtype=object)[:, None],
    }
    for name, value in moment.h.items():
        wanted[-1, name] = np.array([[-value]], dtype=object)
        wanted[0, name] = np.array([[value]], dtype=object)
    found, wanted = _told_apart(found, moment.h), _told_apart(wanted, moment.h)
    for sign in (1, -1):
        keys = {*found, *wanted}
        if not any(np.any(found.get(key, _ZERO) * sign != wanted.get(key, _ZERO)) for key in keys):
            return True
    return False


def _told_apart(terms: Symbolic, masses: Iterable[str]) -> Symbolic:
    """The same with a law in every term: probabilities sum to one, so E[B - 1] is E[B] - 1."""
    names = tuple(masses)
    if not names:
        return terms
    total: Symbolic = {}
    for (power, mass), values in terms.items():
        for name in names if mass is None else (mass,):
            key = (power, name)
            total[key] = total[key] + values if key in total else values
    return total


_ZERO = np.array([[Fraction(0)]], dtype=object)


@dataclass(frozen=True, eq=False, slots=True)
class Errors:
    """Reads expressions in alpha, its inverse, and averages of the chosen law."""

    subject: FiniteSubject
    alpha: str

    def of(self, expr: syntax.Expr) -> Symbolic:
        """An expression, exactly.

        Raises: NotUnderstood.
        """
        model = self.subject.model
        if VariableKind.CHOOSE not in depends(model, expr):
            return {(0, None): self.subject.open_scene.grid(expr).data}
        match expr:
            case syntax.Name(id=name) if name == self.alpha:
                return {(1, None): np.array([[Fraction(1)]], dtype=object)}
            case syntax.Name(id=name) if (inner := model.nodes[name].definition) is not None:
                return self.of(inner)
            case syntax.Negate():
                return {key: -values for key, values in self.of(expr.operand).items()}
            case syntax.Binary(op="+" | "-"):
                return _sum(self.of(expr.left), self.of(expr.right), 1 if expr.op == "+" else -1)
            case syntax.Binary(op="*"):
                return _product(self.of(expr.left), self.of(expr.right))
            case syntax.Binary(op="/"):
                return self._quotient(self.of(expr.left), self.of(expr.right))
            case syntax.Over(operator="E", given=None) if not drawn(model, expr.body):
                return self._mean(expr.body)
        raise NotUnderstood("a loss that depends on what is chosen in another way")

    def _mean(self, body: syntax.Expr) -> Symbolic:
        laws = [name for name in names_used(body) if name in self.subject.chosen_laws]
        if len(laws) != 1:
            raise NotUnderstood("an average of several things that are chosen")
        (law,) = laws
        names = Conditions(self.subject).names(law)
        values = zip(names, self.subject.chosen_laws[law], strict=True)
        return {(0, name): self.subject.open_scene.bind(law, value).grid(body).data for name, value in values}

    @staticmethod
    def _quotient(above: Symbolic, below: Symbolic) -> Symbolic:
        """By one power of alpha times numbers."""
        if len(below) != 1:
            raise NotUnderstood("a quotient of things that are chosen")
        (((power, mass), values),) = below.items()
        if mass is not None or np.any(values == 0):
            raise NotUnderstood("a quotient of things that are chosen")
        return {(p - power, m): v / values for (p, m), v in above.items()}


def _sum(one: Symbolic, other: Symbolic, sign: int) -> Symbolic:
    total = dict(one)
    for key, values in other.items():
        total[key] = total[key] + sign * values if key in total else sign * values
    return total


def _product(one: Symbolic, other: Symbolic) -> Symbolic:
    total: Symbolic = {}
    for (p, m), a in one.items():
        for (q, n), b in other.items():
            if m is not None and n is not None:
                raise NotUnderstood("a product of two averages of what is chosen")
            key = (p + q, n if m is None else m)
            total[key] = total[key] + a * b if key in total else a * b
    return total
