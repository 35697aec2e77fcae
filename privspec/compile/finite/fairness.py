"""Fairness lines as linear rows: laws of the outputs of two groups are close in total variation.

Names of rows: `fairness:<line>:<given>:<a>:<b>:<seen>` with the numbers of the given value, of the two groups and of
what is seen (`total` for the row that adds the slacks `slack:<line>:...` up).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.compile.document import decimal_up
from privspec.compile.finite.system import FiniteSystem, LinearLine, Scalar
from privspec.core.spans import Span
from privspec.language.syntax import VariableKind
from privspec.model.measures import Lipschitz
from privspec.model.pointwise import Pointwise
from privspec.model.reports import Failure, listing
from privspec.model.requirements import IndependenceRequirement, Requirement
from privspec.model.values import show
from privspec.model.worlds import Worlds, key
from privspec.problem.terms import public_number
from privspec.solvers.table_programs import ExactTable

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

    def reached(self, exact: ExactTable) -> Fraction:
        """The total variation of the two laws in a table."""
        rows = exact.numerators
        total = Fraction(0)
        for s in range(int(self.seen.max()) + 1):
            excess = sum((value * rows[r][c] for (r, c), value in self._difference(s).items()), Fraction(0))
            total += max(excess, Fraction(0))
        return total / exact.denominator

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
    _refuse_conditions_on_outputs(line, worlds)
    tolerance = Fraction(0) if line.tolerance is None else public_number(line.tolerance, worlds.model)
    seen = worlds.view(line.subjects)
    columns = np.arange(len(worlds.columns)) if seen is None else seen
    for g, rows in enumerate(_strata(line, worlds, scene)):
        groups = _split(rows, [_value(scene, line.of, r, line.span) for r in rows])
        laws = [m for m in (_mixture(group, worlds, line) for group in groups) if m is not None]
        pairs = combinations(range(len(laws)), 2) if tolerance else ((0, j) for j in range(1, len(laws)))
        for i, j in pairs:
            yield Gap(f"{line.line}:{g}:{i}:{j}", line.span, laws[i], laws[j], columns, tolerance)


def _refuse_conditions_on_outputs(line: IndependenceRequirement, worlds: Worlds) -> None:
    """Lines that are not linear in the table.

    Raises: Failure PS0501.
    """
    nodes = worlds.model.nodes
    drawn = {name for name, node in nodes.items() if node.kind is VariableKind.OUTPUT}
    subjects, of = ", ".join(line.subjects), line.of
    if line.given in drawn:
        raise Failure(
            "PS0501",
            line.span,
            f"solve cannot compute predictive parity: what is true of those who get one {line.given} is a quotient of "
            "probabilities, which is not linear in the table",
            help=f"equalised odds can be computed: {line.given} is independent of {of} given {subjects}",
        )
    if of in drawn and not drawn & set(line.subjects):
        raise Failure(
            "PS0501",
            line.span,
            f"solve takes the law of an output in groups of people, not of people in groups of {of}",
            help=f"independence goes both ways: {of} is independent of {subjects}",
        )
    if of in drawn or not set(line.subjects) <= drawn:
        raise Failure("PS0501", line.span, "solve takes fairness of outputs between groups of people only")
    attributes = [name for name in (of, line.given) if name is not None]
    people = next((name for name in attributes if name in nodes and nodes[name].index is not None), None)
    if people is not None:
        raise Failure(
            "PS0501",
            line.span,
            f"solve cannot compare the people of {nodes[people].index}, whose {people} is one column of the data, yet",
            help="write the spec of one person",
        )


def _strata(line: IndependenceRequirement, worlds: Worlds, scene: Pointwise) -> Iterator[Sequence[int]]:
    """Rows by the value of what is given.

    Raises: Failure PS0323 if it never has the value asked for.
    """
    every = range(len(worlds.rows))
    if line.given is None:
        yield every
        return
    values = [_value(scene, line.given, r, line.span) for r in every]
    if line.equals is None:
        yield from _split(every, values)
        return
    wanted = key(line.equals)
    chosen = [r for r in every if values[r] == wanted]
    if not chosen:
        raise Failure("PS0323", line.span, f"{line.given} never takes this value")
    yield chosen


def _value(scene: Pointwise, name: str, row: int, span: Span) -> object:
    return key(scene.node(name, span).value(row, 0))


def _split(rows: Sequence[int], values: Sequence[object]) -> Iterator[list[int]]:
    for value in dict.fromkeys(values):
        yield [r for r, v in zip(rows, values, strict=True) if v == value]


def _mixture(rows: Sequence[int], worlds: Worlds, line: IndependenceRequirement) -> Mixture | None:
    """The law of the rows of a group; None if the data model says that nobody belongs to it."""
    if len(rows) == 1:
        return {rows[0]: Fraction(1)}
    if worlds.prior is None:
        others = [name for name in worlds.of if name not in (line.of, line.given)] or [line.of]
        law = f"({line.of}, {others[0]}) ~ categorical([[0.3, 0.2], [0.1, 0.4]])"
        given = f"{', '.join(line.subjects)} is independent of {line.of} given {others[0]}"
        raise Failure(
            "PS0401",
            line.span,
            f"people with one value of {line.of} differ in {listing(others)}, for which there is no data model",
            help=f"add a law such as {law}, or compare people who agree: {given}",
        )
    total = sum((worlds.prior[r] for r in rows), Fraction(0))
    return {r: worlds.prior[r] / total for r in rows if worlds.prior[r]} if total else None


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


def fairness_json(system: FiniteSystem, exact: ExactTable) -> list[dict[str, Any]]:
    """What each fairness line asks for and what a table reaches: the largest distance of two laws that it compares."""
    worlds = system.worlds
    found: dict[int, dict[str, Any]] = {}
    for gap in gaps(worlds, worlds.pointwise()):
        line = int(gap.name.partition(":")[0])
        reached = gap.reached(exact)
        known = found.get(line)
        if known is None or reached > Fraction(known["achieved"]):
            text = next(f.text for f in worlds.model.fairness if f.line == line)
            found[line] = {"line": line, "text": text, "tolerance": show(gap.tolerance), "achieved": str(reached)}
    return [entry | {"achieved": decimal_up(Fraction(entry["achieved"]))} for entry in found.values()]
