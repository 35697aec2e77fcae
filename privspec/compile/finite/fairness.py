"""Fairness lines as linear rows: laws of the outputs of two groups are close in total variation.

Names of rows: `fairness:<line>:<given>:<a>:<b>:<seen>` with the numbers of the given value, of the two groups and of
what is seen (`total` for the row that adds the slacks `slack:<line>:...` up).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from privspec.compile.finite.losses import public_number
from privspec.compile.finite.system import LinearLine, Scalar
from privspec.core.spans import Span
from privspec.language.syntax import VariableKind
from privspec.model.evaluate import evaluate
from privspec.model.measures import Lipschitz
from privspec.model.pointwise import Pointwise
from privspec.model.reports import Failure
from privspec.model.requirements import IndependenceRequirement, Requirement
from privspec.model.targets import environment
from privspec.model.worlds import Worlds, key

Mixture = dict[int, Fraction]
"""Weights of rows; they sum to one."""


@dataclass(frozen=True, eq=False, slots=True)
class Gap:
    """Two mixtures of rows whose laws, as seen, are at most `tolerance` apart in total variation."""

    name: str
    span: Span
    left: Mixture
    right: Mixture
    seen: NDArray[np.intp]
    tolerance: Fraction

    def rows(self) -> Iterator[LinearLine | Scalar]:
        """Equalities for tolerance 0; else slacks for what one group gets more often, that sum to the tolerance."""
        count = int(self.seen.max()) + 1
        if self.tolerance == 0:
            for s in range(count - 1):
                yield LinearLine(f"fairness:{self.name}:{s}", self.span, self._difference(s), {}, Fraction(0), True)
            return
        slacks = [f"slack:{self.name}:{s}" for s in range(count)]
        for s, slack in enumerate(slacks):
            yield Scalar(slack, Fraction(0), Fraction(1))
            excess = {slack: Fraction(-1)}
            yield LinearLine(f"fairness:{self.name}:{s}", self.span, self._difference(s), excess, Fraction(0), False)
        total = dict.fromkeys(slacks, Fraction(1))
        yield LinearLine(f"fairness:{self.name}:total", self.span, {}, total, self.tolerance, False)

    def _difference(self, seen: int) -> dict[tuple[int, int], Fraction]:
        found: dict[tuple[int, int], Fraction] = {}
        for sign, mixture in ((1, self.left), (-1, self.right)):
            for r, weight in mixture.items():
                for c in np.flatnonzero(self.seen == seen):
                    place = (r, int(c))
                    found[place] = found.get(place, Fraction(0)) + sign * weight
        return {place: value for place, value in found.items() if value}


def gaps(worlds: Worlds, scene: Pointwise) -> Iterator[Gap]:
    """Every pair of laws that the spec's fairness lines compare.

    Raises: Failure PS0501 for predictive parity, PS0401 where the law of the other inputs within a group is not known.
    """
    for line in worlds.model.fairness:
        if isinstance(line, IndependenceRequirement):
            yield from _independent(line, worlds, scene)
        else:
            yield from _lipschitz(line, worlds)


def _independent(line: IndependenceRequirement, worlds: Worlds, scene: Pointwise) -> Iterator[Gap]:
    nodes = worlds.model.nodes
    names = [line.of] if line.given is None else [line.of, line.given]
    outputs = [n for n in (*line.subjects, *names) if n in nodes and nodes[n].kind is VariableKind.OUTPUT]
    if list(line.subjects) != outputs:
        raise Failure("PS0501", line.span, "solve cannot compute fairness that is conditional on an output yet")
    tolerance = Fraction(0) if line.tolerance is None else public_number(line.tolerance, worlds)
    seen = worlds.view(line.subjects)
    columns = np.arange(len(worlds.columns)) if seen is None else seen
    for g, rows in enumerate(_strata(line, worlds, scene)):
        groups = list(_split(rows, [_value(scene, line.of, r, line.span) for r in rows]))
        pairs = combinations(range(len(groups)), 2) if tolerance else ((0, j) for j in range(1, len(groups)))
        for i, j in pairs:
            left, right = (_mixture(groups[k], worlds, line.span) for k in (i, j))
            yield Gap(f"{line.line}:{g}:{i}:{j}", line.span, left, right, columns, tolerance)


def _strata(line: IndependenceRequirement, worlds: Worlds, scene: Pointwise) -> Iterator[Sequence[int]]:
    """Rows by the value of what is given."""
    every = range(len(worlds.rows))
    if line.given is None:
        yield every
        return
    values = [_value(scene, line.given, r, line.span) for r in every]
    if line.value is None:
        yield from _split(every, values)
        return
    wanted = key(evaluate(line.value, environment(worlds.model)))
    yield [r for r in every if values[r] == wanted]


def _value(scene: Pointwise, name: str, row: int, span: Span) -> object:
    return key(scene.node(name, span).value(row, 0))


def _split(rows: Sequence[int], values: Sequence[object]) -> Iterator[list[int]]:
    for value in dict.fromkeys(values):
        yield [r for r, v in zip(rows, values, strict=True) if v == value]


def _mixture(rows: Sequence[int], worlds: Worlds, span: Span) -> Mixture:
    if len(rows) == 1:
        return {rows[0]: Fraction(1)}
    if worlds.prior is None:
        raise Failure(
            "PS0401",
            span,
            "people of one group differ in other inputs, for which there is no data model",
            help="add a model such as y ~ categorical([0.3, 0.7]), or compare given all other inputs",
        )
    total = sum((worlds.prior[r] for r in rows), Fraction(0))
    return {r: worlds.prior[r] / total for r in rows if worlds.prior[r]} if total else {rows[0]: Fraction(1)}


def _lipschitz(line: Requirement, worlds: Worlds) -> Iterator[Gap]:
    measure = line.measure
    if not isinstance(measure, Lipschitz):
        raise Failure("PS0501", line.span, f"solve cannot compute {measure.name} as fairness")
    seen = worlds.view(line.outputs)
    columns = np.arange(len(worlds.columns)) if seen is None else seen
    found = worlds.neighbours(line)
    for (a, b), distance in zip(found.pairs.tolist(), found.distances or (), strict=True):
        tolerance = measure.constant * distance
        if a < b and tolerance < 1:
            ends = {a: Fraction(1)}, {b: Fraction(1)}
            yield Gap(f"{line.line}:0:{a}:{b}", line.span, *ends, columns, tolerance)
