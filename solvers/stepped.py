"""Laws of noise for one number, in steps, and the multipliers that bound what any law can be worth: linear programs.

The unknown is the chance of each cell of a grid, with the same chance for d and -d; neighbours are up to so many cells
apart, and what (f(d) - e^eps f(d + s))+ adds up to is at most delta for each shift s. Chances are solved for in units
that fall as the law does, since they are compared with a delta far below them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, exp, log1p
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array: TypeAlias = NDArray[np.float64]
Loss: TypeAlias = Callable[[Array], Array]
"""Of an error, in units of the sensitivity."""
FALL = 0.9
"""Share of the fastest fall that the units follow, and half of it where no delta is compared with."""
DECAYS = 18.0
"""Tails of laws of pure epsilon are left out of bounds after they fell by e^-18."""
BEYOND = 1.3
"""Units of sensitivity that a law may go on beyond the end of a truncated Laplace law of the same line."""
FREE = 2.5
"""How often a law may fall by e further on, where it need not end, until its last cells are free of neighbours."""
EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True, eq=False, slots=True)
class Solved:
    """Chances (K + 1,) of the cells 0 .. K, `point` of no error at all, the loss, and multipliers of each shift.

    A multiplier (shift in grid cells, first cell, values): what a cell of a row of (f(d) - e^eps f(d + s)) is worth.
    """

    chances: Array
    point: float
    loss: float
    multipliers: tuple[tuple[int, int, Array], ...]


def end_of_law(epsilon: float, delta: float) -> float:
    """How far a truncated Laplace law reaches, in units of the sensitivity; for delta 0, where its tails are left."""
    if not delta:
        return DECAYS / epsilon
    return log1p((exp(epsilon) - 1) / (2 * delta)) / epsilon


def solve(
    epsilon: float,
    delta: float,
    cells: int,
    shifts: Sequence[int],
    loss: Loss,
    *,
    smear: Loss | None = None,
    ends: bool = False,
) -> Solved | None:
    """The best law on a grid of so many cells in a sensitivity, whose neighbours are some numbers of cells apart.

    Args: loss, of errors on the grid; smear, what a cell adds to it that errors are spread over (then a law may have
        a point that is not spread); ends, whether the law has to be one that ends with the grid, delta > 0. Otherwise
        the last cells stand for all that is beyond them: no law has less loss.
    Returns: None if the solver finds none.
    """
    beyond = BEYOND / 2 if ends else BEYOND + (FREE / epsilon if delta else 0.0)
    last, grown, steps = ceil(cells * (end_of_law(epsilon, delta) + beyond)), exp(epsilon), len(shifts)
    k = np.arange(last + 1)
    fall = np.exp(-(FALL if delta else FALL / 2) * epsilon / cells * k)
    copies = np.where(k == 0, 1.0, 2.0)
    cost = copies * fall * (loss(k / cells) + (0.0 if smear is None else smear(k / cells)))
    rows, columns, values, stops = list[NDArray[Any]](), list[NDArray[Any]](), list[Array](), [0]
    over: list[tuple[int, NDArray[Any], Array]] = []
    for shift in shifts:
        d = np.arange(-(shift // 2), last + 1)
        d = d[np.abs(d + shift) > np.abs(d)]
        if not ends:
            d = d[np.abs(d + shift) <= last]
        a, b, at = np.abs(d), np.abs(d + shift), stops[-1] + np.arange(len(d))
        inside = b <= last
        rows += [at, at[inside]]
        columns += [a, b[inside]]
        values += [np.ones(len(d)), -grown * fall[b[inside]] / fall[a[inside]]]
        over.append((shift, d, fall[a]))
        stops.append(stops[-1] + len(d))
    count, wide = stops[-1], last + 1
    if delta:
        rows.append(np.arange(count))
        columns.append(wide + np.arange(count))
        values.append(-np.ones(count))
        rows.append(count + np.repeat(np.arange(steps), np.diff(stops)))
        columns.append(wide + np.arange(count))
        values.append(np.concatenate([fallen for *_, fallen in over]) / delta)
        wide += count
    if smear is not None:
        rows.append(count + np.arange(steps))
        columns.append(np.full(steps, wide))
        values.append(np.full(steps, 1 / delta))
        wide += 1
    height = count + (steps if delta else 0)
    limits = np.concatenate([np.zeros(count), np.ones(height - count)])
    matrix: Any = sparse.csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(height, wide)
    )
    costs, whole = np.zeros(wide), np.zeros(wide)
    costs[: last + 1], whole[: last + 1] = cost, copies * fall
    if smear is not None:
        whole[-1] = 1.0
    from scipy.optimize import linprog  # slow to load

    found = linprog(costs, matrix, limits, whole[None], [1.0], method="highs", options=EXACT)  # type: ignore[call-overload]
    if found.x is None:
        return None
    prices = -found.ineqlin.marginals[:count]
    multipliers = tuple(
        (shift, int(d[0]), np.maximum(prices[start:stop], 0.0) / fallen)
        for (shift, d, fallen), start, stop in zip(over, stops, stops[1:], strict=False)
    )
    chances = np.maximum(found.x[: last + 1], 0.0) * fall
    return Solved(chances, float(found.x[-1]) if smear is not None else 0.0, float(found.fun), multipliers)


def stairs(epsilon: float, cells: int, power: int) -> int:
    """How many cells around no error have the largest chance, for the staircase of least error to a power of 1 or 2.

    Over all periods i of weights e^(-epsilon i): sums of i^n are those of a geometric law (notes/staircase.md).
    """
    b, k = exp(-epsilon), np.arange(cells)
    once, first, second = 1 / (1 - b), b / (1 - b) ** 2, b * (1 + b) / (1 - b) ** 3
    errors = k * once + cells * first if power == 1 else k**2 * once + 2 * k * cells * first + cells**2 * second
    upper = np.cumsum(np.stack([np.full(cells, once), errors]), axis=1)
    whole, error = 2 * (upper + b * (upper[:, -1:] - upper))
    return int(np.argmin(error / (whole - 1))) + 1
