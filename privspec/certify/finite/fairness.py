"""Fairness lines: laws of outputs in groups of people, compared in total variation, exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import isqrt
from typing import Any

import numpy as np

from privspec.certify.finite.distances import Apart
from privspec.certify.finite.ratios import Indices, LogRatio
from privspec.certify.finite.subject import FiniteSubject
from privspec.certify.finite.worlds import plain
from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import Malformed
from privspec.language.syntax import VariableKind
from privspec.model.evaluate import evaluate
from privspec.model.measures import Lipschitz
from privspec.model.requirements import IndependenceRequirement, Requirement
from privspec.model.targets import environment

NONE = LogRatio(Fraction(0))
"""The ratio 1: the excess of one law over another is then their total variation."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a line asks, and the largest gap there is."""

    line: int
    text: str
    gap: Fraction
    tolerance: Fraction
    holds: bool


def tolerance_of(subject: FiniteSubject, line: IndependenceRequirement) -> Fraction:
    """The tolerance of an independence line."""
    if line.tolerance is None:
        return Fraction(0)
    value = evaluate(line.tolerance, environment(subject.model))
    if not isinstance(value, Fraction) or value < 0:
        raise Malformed(f"line {line.line}: the tolerance is no number")
    return value


def values_of(subject: FiniteSubject, name: str) -> Sequence[Any]:
    """The value of a variable in every row.

    Raises: NotUnderstood if it is not one of what picks the row, or computed from that.
    """
    node = subject.model.nodes.get(name)
    if node is None or not node.secret:
        raise NotUnderstood(f"fairness with respect to {name}")
    grid = subject.open_scene.node(name, node.span)
    return [plain(grid.value(row, 0)) for row in range(subject.table.shape[0])]


# --- independence --------------------------------------------------------------------------------------


def strata(subject: FiniteSubject, line: IndependenceRequirement) -> list[list[dict[int, Fraction]]]:
    """For each value of what is given, the laws of rows of the groups that have a probability."""
    every = list(range(subject.table.shape[0]))
    layers = [every]
    if line.given is not None:
        given = values_of(subject, line.given)
        layers = _split(every, given)
        if line.equals is not None:
            layers = [[row for row in every if given[row] == plain(line.equals)]]
    attribute = values_of(subject, line.of)
    groups = [[_mixture(subject, rows) for rows in _split(layer, attribute)] for layer in layers]
    return [[mix for mix in found if mix is not None] for found in groups]


def _split(rows: Sequence[int], values: Sequence[Any]) -> list[list[int]]:
    found: dict[Any, list[int]] = {}
    for row in rows:
        found.setdefault(values[row], []).append(row)
    return list(found.values())


def _mixture(subject: FiniteSubject, rows: Sequence[int]) -> dict[int, Fraction] | None:
    """The law of the rows of a group; None if the group has no probability.

    Raises: NotUnderstood if its people differ in what has no data model.
    """
    if len(rows) == 1:
        return {rows[0]: Fraction(1)}
    if subject.prior is None:
        raise NotUnderstood("groups whose people differ in values without a data model")
    mass = sum((subject.prior[row] for row in rows), Fraction(0))
    return {row: subject.prior[row] / mass for row in rows if subject.prior[row]} if mass else None


def independent(subject: FiniteSubject, line: IndependenceRequirement) -> Found:
    """The largest total variation between two groups of one stratum.

    Raises: NotUnderstood.
    """
    nodes = subject.model.nodes
    drawn = [n for n in line.subjects if n in nodes and nodes[n].kind is VariableKind.OUTPUT]
    behind = [line.of] if line.given is None else [line.of, line.given]
    if tuple(drawn) == line.subjects and not any(nodes[n].kind is VariableKind.OUTPUT for n in behind if n in nodes):
        gap = _given_the_data(subject, line)
    else:
        gap = _given_an_output(subject, line)
    tolerance = tolerance_of(subject, line)
    return Found(line.line, line.text, gap, tolerance, gap <= tolerance)


def _given_the_data(subject: FiniteSubject, line: IndependenceRequirement) -> Fraction:
    seen = subject.seen(line.subjects)
    worst = Fraction(0)
    for groups in strata(subject, line):
        laws = [_law(seen.numerators, mix) for mix in groups]
        for one, other in combinations(laws, 2):
            worst = max(worst, sum((d for d in one - other if d > 0), Fraction(0)) / seen.denominator)
    return worst


def _law(numerators: Any, mix: dict[int, Fraction]) -> Any:
    total = np.zeros(numerators.shape[1], dtype=object)
    for row, weight in mix.items():
        total = total + numerators[row] * weight
    return total


def _given_an_output(subject: FiniteSubject, line: IndependenceRequirement) -> Fraction:
    """Through the joint law of rows and draws: `y is independent of sex given O` (predictive parity)."""
    prior = subject.prior
    if prior is None:
        raise NotUnderstood("fairness over data without a model")
    names = [*line.subjects, line.of, *(() if line.given is None else (line.given,))]
    grids = [subject.open_scene.node(name, line.span) for name in names]
    wanted = None if line.equals is None else plain(line.equals)
    joint: dict[Any, dict[Any, dict[Any, Fraction]]] = {}
    for row, mass in enumerate(prior):
        for column, numerator in enumerate(subject.table.numerators[row] if mass else ()):
            *own, of = (plain(grid.value(row, column)) for grid in grids[: len(line.subjects) + 1])
            given = plain(grids[-1].value(row, column)) if line.given is not None else None
            if wanted is None or given == wanted:
                law = joint.setdefault(given, {}).setdefault(of, {})
                law[tuple(own)] = law.get(tuple(own), Fraction(0)) + mass * int(numerator)
    worst = Fraction(0)
    for groups in joint.values():
        laws = [law for law in groups.values() if sum(law.values())]
        for one, other in combinations(laws, 2):
            worst = max(worst, _variation(one, other))
    return worst


def _variation(one: dict[Any, Fraction], other: dict[Any, Fraction]) -> Fraction:
    first, second = sum(one.values()), sum(other.values())
    gaps = (one.get(k, Fraction(0)) / first - other.get(k, Fraction(0)) / second for k in {*one, *other})
    return sum((gap for gap in gaps if gap > 0), Fraction(0))


# --- individual fairness -------------------------------------------------------------------------------


def root_up(square: Fraction) -> Fraction:
    """A rational at or above the square root, within 2^-100 of it; exact where it is rational."""
    top, bottom = isqrt(square.numerator), isqrt(square.denominator)
    if top * top == square.numerator and bottom * bottom == square.denominator:
        return Fraction(top, bottom)
    return Fraction(isqrt(-(-square.numerator * 2**200 // square.denominator)) + 1, 2**100)


def allowed_square(measure: Lipschitz, apart: Apart, kind: int) -> Fraction:
    """The square of the total variation that two rows may be apart."""
    return measure.constant**2 * Fraction(int(apart.squares[kind]), apart.scale**2)


def lipschitz(subject: FiniteSubject, line: Requirement) -> Found:
    """Every two laws are at most the constant times the distance apart.

    Raises: NotUnderstood.
    """
    measure = line.measure
    if not isinstance(measure, Lipschitz):
        raise NotUnderstood(f"{measure.describe()} as fairness")
    apart, seen = subject.apart(line), subject.seen(line.outputs)
    squares = [allowed_square(measure, apart, kind) for kind in range(len(apart.squares))]
    rough_allowed = np.array([float(s) ** 0.5 for s in squares])
    closest = (Fraction(0), Fraction(1))
    for a in range(apart.rows):
        others, kinds = apart.partners(a)
        if not len(others):
            continue
        rough, error = seen.rough_excess(a, others, 1.0)
        for k in _doubtful(rough, rough_allowed[kinds], error):
            variation, square = seen.excess(a, int(others[k]), NONE), squares[kinds[k]]
            if variation**2 > square:
                return Found(line.line, line.text, variation, root_up(square), False)
        best = int(np.argmax(rough - rough_allowed[kinds]))
        closest = max(closest, (Fraction(float(rough[best])), root_up(squares[kinds[best]])))
    return Found(line.line, line.text, *closest, True)


def _doubtful(rough: Any, limit: Any, error: float) -> Indices:
    return np.flatnonzero(rough > limit * (1 - 2.0**-48) - error)


def findings(subject: FiniteSubject) -> Iterator[Found]:
    """Every fairness line of the spec."""
    for line in subject.model.fairness:
        yield independent(subject, line) if isinstance(line, IndependenceRequirement) else lipschitz(subject, line)
