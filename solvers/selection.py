"""Which of several sums to release on one budget, and which to leave out at a price: a program in whole choices.

A sum that has the share e of the budget costs c / e^2, as Laplace noise does; one that is left out costs its price. The
perspective c p^3 / e^2 of a choice p between 0 and 1 is convex: tangents to it are cuts of linear programs, which HiGHS
solves at the nodes of a tree. The relaxation is no plan: a sum that is half released may spend more than there is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from privspec.solvers.highs import linear_program
from privspec.solvers.programs import Array, SolverError

ROUNDS = 100
"""Times that cuts are added at a node."""
FIRST = np.logspace(-2, 0, 12)
"""Shares at which there are tangents from the start."""
LEAST = 1e-4
"""Smallest share at which a tangent touches, and smallest choice that is none."""
NODES = 10_000
"""Most nodes of a tree."""


@dataclass(frozen=True, eq=False, slots=True)
class Selection:
    """Choices (n,) from 0 to 1 and what they cost together; `nodes`: the linear programs' tree behind them."""

    chosen: Array
    value: float
    nodes: int = 1


def select(costs: Array, prices: Array, tolerance: float = 1e-8) -> tuple[Selection, Selection]:
    """The whole choices of least cost, and those of the relaxation, where a choice may be made in part.

    Args: costs (n,) > 0 of each sum with the whole budget; prices (n,) of leaving one out; relative tolerance.
    Raises: SolverError if the tree grows too large, or HiGHS ends without an answer.
    """
    program = _Program(costs, prices, tolerance)
    relaxed, bound = program.relaxed(np.zeros(len(costs)), np.ones(len(costs)))
    best = program.whole(np.zeros(len(costs)))
    nodes, waiting = 0, [(np.zeros(len(costs)), np.ones(len(costs)))]
    while waiting:
        low, high = waiting.pop()
        chosen, least = program.relaxed(low, high)
        nodes += 1
        if nodes > NODES:
            raise SolverError("there are too many choices between sums")
        found = program.whole(np.round(chosen))
        best = found if found.value < best.value else best
        if least >= best.value * (1 - tolerance):
            continue
        split = int(np.argmax(np.where(high > low, 0.5 - np.abs(chosen - 0.5), -1.0)))
        if high[split] == low[split]:
            continue
        for fixed in (0.0, 1.0):
            ends = low.copy(), high.copy()
            ends[0][split] = ends[1][split] = fixed
            waiting.append(ends)
    return Selection(best.chosen, best.value, nodes), Selection(relaxed, bound)


class _Program:
    """The tangents so far, which hold at every node."""

    def __init__(self, costs: Array, prices: Array, tolerance: float) -> None:
        self.costs, self.prices, self.tolerance = costs, prices, tolerance
        self.cuts = [(i, float(at)) for i in range(len(costs)) for at in FIRST]

    def whole(self, chosen: Array) -> Selection:
        """Whole choices with the best shares, in closed form."""
        value = float(np.cbrt(self.costs[chosen > 0]).sum() ** 3 + self.prices @ (1 - chosen))
        return Selection(chosen, value)

    def relaxed(self, low: Array, high: Array) -> tuple[Array, float]:
        """The best choices between two ends, and what none of these can be below."""
        size = len(self.costs)
        for _ in range(ROUNDS):
            chosen, shares, loss, least = self._solved(low, high)
            at = np.clip(np.divide(shares, chosen, out=np.ones(size), where=chosen > LEAST), LEAST, 1.0)
            true = np.where(chosen > LEAST, self.costs * chosen / at**2, 0.0)
            if float((true - loss).sum()) <= self.tolerance * max(1.0, abs(least)):
                break
            self.cuts += [(i, float(at[i])) for i in range(size) if true[i] > loss[i]]
        return chosen, least

    def _solved(self, low: Array, high: Array) -> tuple[Array, Array, Array, float]:
        """Choices, shares and losses under the tangents, and what they cost."""
        size = len(self.costs)
        rows = np.zeros((len(self.cuts), 3 * size))
        for row, (i, at) in zip(rows, self.cuts, strict=True):
            row[i], row[size + i], row[2 * size + i] = 3 * self.costs[i] / at**2, -2 * self.costs[i] / at**3, -1.0
        # no more shares than there are, and none for what is left out
        budget = np.concatenate([np.zeros(size), np.ones(size), np.zeros(size)])
        only = np.hstack([-np.eye(size), np.eye(size), np.zeros((size, size))])
        found = linear_program(
            np.concatenate([-self.prices, np.zeros(size), np.ones(size)]),
            (np.vstack([rows, budget[None, :], only]), np.concatenate([np.zeros(len(rows)), [1.0], np.zeros(size)])),
            low=np.concatenate([low, np.zeros(2 * size)]),
            high=np.concatenate([high, np.ones(size), np.full(size, np.inf)]),
        )
        if found is None:
            raise SolverError("no choice was found")
        chosen, shares, loss = np.split(found.solution, 3)
        return chosen, shares, loss, float(found.value + self.prices.sum())
