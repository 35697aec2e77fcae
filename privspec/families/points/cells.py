"""The best finite reports of a real number: a program over its cells, then exact chances, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import exp
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.core.rounding import exp_down
from privspec.families.decision import STEP, Alternative, Decided, Decision, Infeasible, price, promised
from privspec.families.family import Settings
from privspec.kernel.cells import CLASSES, NOTE, CellBlock, Cells, lower_bound, units_of
from privspec.kernel.core.reading import Item
from privspec.model.graph import Model
from privspec.problem.cells import block_of
from privspec.problem.form import Numbers
from privspec.solvers.listed import cell_reports

BITS = 62
"""Binary places of the least chances, and of e^epsilon."""
LOWERED = (0.0, 1e-12, 1e-10, 1e-8, 1e-7, 1e-5, 1.0)
"""Shares by which multipliers are lowered."""
Rows = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True, eq=False, slots=True)
class System:
    """A spec in numbers, as the kernel reads it, with the strictest epsilon and the number of its line."""

    model: Model
    block: CellBlock
    epsilon: Fraction
    binding: int


class Reports:
    """Takes specs of one real number and a report of it that has finitely many values."""

    def lower(self, model: Model) -> System:
        """The cells and what reports cost in them.

        Raises: SpecError PS05xx, PS0401.
        """
        block = block_of(model)
        asked = [line.measure.amounts["epsilon"] for line in model.requirements]
        return System(model, block, min(asked), asked.index(min(asked)))

    def decide(self, model: Model, system: System, settings: Settings) -> Decision | Infeasible:
        """The best rows.

        Raises: SolverError.
        """
        started = perf_counter()
        block, epsilon = system.block, system.epsilon
        cells, witness = best(block, epsilon)
        others = tuple(_alternatives(system)) if settings.alternatives else ()
        loss, line = float(cells.loss()), model.requirements[system.binding]
        return Decided(
            model,
            f"a table of {block.cells} cells",
            loss,
            lambda: _stated(model, cells) | {"claims": {"bound": witness}},
            # no mechanism that sees the number itself has less
            lambda: lower_bound(block, epsilon, Item(witness, "bound")),
            CLASSES[1],
            units_of(block),
            "worst" if block.costs is None else "expected",
            others,
            lambda: [price(line, float(best(block, epsilon * STEP)[0].loss()) / loss - 1)],
            {"name": "HiGHS", "seconds": perf_counter() - started},
        )

    def size(self, system: System) -> int:
        """Entries of the table."""
        return system.block.cells * len(system.block.values)


def best(block: CellBlock, epsilon: Fraction) -> tuple[Cells, dict[str, Any]]:
    """The rows that were found, and the multipliers that bound every other mechanism."""
    if block.costs is not None:
        costs = np.array([[float(entry * block.costs.unit) for entry in row] for row in block.costs.rows])
    else:
        errors = [[float(error) for error in block.errors(number)] for number in block.ends]
        costs = np.array([errors[cell : cell + 2] for cell in range(block.cells)])
    size = float(costs.max())
    found = cell_reports(costs / size, exp(float(epsilon)))
    least = [Fraction(int(chance * 2**BITS), 2**BITS) for chance in found.least.tolist()]
    rows = exact_rows(block, least, epsilon)
    ends = None if found.ends is None else found.ends.tolist()
    # multipliers a little too large cost e^epsilon times as much: all are lowered alike until the bound is best
    tried = [{"rows": (found.rows * size * (1 - less)).tolist(), "ends": ends} for less in LOWERED]
    tried.append(_nearest(costs))
    return as_cells(block, rows), max(tried, key=lambda one: lower_bound(block, epsilon, Item(one, "bound")))


def _nearest(costs: NDArray[np.float64]) -> dict[str, Any]:
    """Multipliers that say what the nearest value would cost, near what is reached at a large epsilon."""
    least = costs.min(axis=-1)
    if costs.ndim == 2:
        return {"rows": least.tolist(), "ends": None}
    cell, side = np.unravel_index(int(least.argmax()), least.shape)
    rows, ends = np.zeros(len(costs)), np.zeros(least.shape)
    rows[cell], ends[cell, side] = least[cell, side], 1.0
    return {"rows": rows.tolist(), "ends": ends.tolist()}


def exact_rows(block: CellBlock, least: Sequence[Fraction], epsilon: Fraction) -> Rows:
    """The cheapest rows with chances between m_y and R m_y: nearest values first, until a row adds up to one."""
    ratio = exp_down(epsilon, BITS)
    whole = sum(least, Fraction(0))
    if whole > 1 or whole * ratio < 1:
        # a little less, or a little more, of every report
        goal = Fraction(1) if whole > 1 else 1 / ratio
        least = [chance * goal / whole for chance in least]
        whole = goal
    rows = []
    for low, high in pairwise(block.ends):
        middle, left = (low + high) / 2, 1 - whole
        row = list(least)
        for y in sorted(range(len(row)), key=lambda y: (abs(block.values[y] - middle), y)):
            more = min(left, (ratio - 1) * least[y])
            row[y] += more
            left -= more
        rows.append(tuple(row))
    return tuple(rows)


def as_cells(block: CellBlock, rows: Rows) -> Cells:
    """The rows in whole numbers of one sum."""
    table = Numbers.of([chance for row in rows for chance in row], (len(rows), len(block.values)))
    wide = len(block.values)
    whole = tuple(table.entries[i : i + wide] for i in range(0, len(table.entries), wide))
    return Cells(block, whole, sum(whole[0]))


def _alternatives(system: System) -> Iterator[Alternative]:
    """Randomised response about the nearest value: what people use."""
    block = system.block
    ratio, many = exp_down(system.epsilon, BITS), len(block.values)
    least = [1 / (ratio + many - 1)] * many
    cells = as_cells(block, exact_rows(block, least, system.epsilon))
    yield Alternative("k-randomised response of the nearest value", float(cells.loss()))


def _stated(model: Model, cells: Cells) -> dict[str, Any]:
    """The rows as they stand in the plan, with what they guarantee."""
    block, ratio = cells.block, cells.epsilon() or Fraction(0)
    entries = tuple(entry for row in cells.rows for entry in row)
    table = Numbers((block.cells, len(block.values)), Fraction(1, cells.total), entries)
    guarantees = [promised(line, number, ratio, NOTE) for number, line in enumerate(model.requirements)]
    return {"mechanism": {"family": "cells", "table": table.to_json()}, "guarantees": guarantees}
