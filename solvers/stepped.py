"""Laws of noise for one number, in steps, and the multipliers that bound what any law can be worth: linear programs.

The unknown is the chance of each cell of a grid, with the same chance for d and -d; neighbours are up to so many cells
apart, and what (f(d) - e^eps f(d + s))+ adds up to is at most delta for each shift s. Chances are solved for in units
that fall as the law does, since they are compared with a delta far below them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, exp, log1p
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

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
AT_ONCE = 2000
"""Rows up to which a program has all of them at once."""
CENTRE = 1.3
"""Cells up to this share of the first step of a staircase have all their rows from the start."""
MET, NEGLIGIBLE = 1e-7, 1e-8
"""Share by which delta may be passed without more rows, and that of it which a row has to let through to be one."""
NOTHING = 50.0
"""Tails are left out of losses after they fell by e^-50."""


@dataclass(frozen=True, eq=False, slots=True)
class Solved:
    """Chances (K + 1,) of the cells 0 .. K, `point` of no error at all, the loss, and multipliers of each shift.

    A multiplier (shift in grid cells, values of the cells -K .. K): what a row of (f(d) - e^eps f(d + s)) is worth.
    """

    chances: Array
    point: float
    loss: float
    multipliers: tuple[tuple[int, Array], ...]


def end_of_law(epsilon: float, delta: float) -> float:
    """How far a truncated Laplace law reaches, in units of the sensitivity; for delta 0, where its tails are left."""
    if not delta:
        return DECAYS / epsilon
    return log1p((exp(epsilon) - 1) / (2 * delta)) / epsilon if epsilon else 1 / (2 * delta)


def solve(
    epsilon: float,
    delta: float,
    cells: int,
    shifts: Sequence[int],
    loss: Loss,
    *,
    smear: Loss | None = None,
    tails: bool = False,
    kept: Callable[[Array, Array], Array] | None = None,
) -> Solved | None:
    """The best law on a grid of so many cells in a sensitivity, whose neighbours are some numbers of cells apart.

    Args: shifts, in order; loss, of errors on the grid; smear, what a cell adds to it that errors are spread over (then
        a law may have a point that is not spread); tails, whether cells beyond the last one have e^-epsilon times what
        cells a sensitivity closer have, maybe nothing. Otherwise the last cells stand for all that is beyond them: no
        law has less loss. kept, rows by their shifts and cells in sensitivities: without the others losses are lower.
    Returns: None if the solver finds none.
    """
    free = FREE / (epsilon or 2 * delta) if delta else 0.0
    beyond = BEYOND / 2 + 1 if tails else BEYOND + free
    last, ratio = ceil(cells * (end_of_law(epsilon, delta) + beyond)), exp(-epsilon)
    k, d, apart = np.arange(last + 1), np.arange(-last, last + 1), np.array(shifts)[:, None]
    fall = np.exp(-(FALL if delta else FALL / 2) * epsilon / cells * k)
    whole, cost = np.where(k == 0, 1.0, 2.0), _spread(k / cells, loss, smear)
    for n in range(1, int(NOTHING / epsilon) + 2) if tails else ():
        cost[-cells:] += ratio**n * _spread(k[-cells:] / cells + n, loss, smear)
        whole[-cells:] += 2 * ratio**n
    cost *= np.where(k == 0, 1.0, 2.0)

    def cell(at: NDArray[Any]) -> tuple[NDArray[Any], Array]:
        """Of cells of either side, the one that stands for each, and how many times as likely it is."""
        size = np.abs(at)
        periods = np.maximum(0, -(-(size - last) // cells))
        return size - periods * cells, ratio**periods if tails else (size <= last) * 1.0

    (here, times), (there, over) = cell(d), cell(d + apart)
    outward = np.abs(d + apart) > np.abs(d)
    asked = np.full(outward.shape, fill_value=True) if tails else outward & (np.abs(d + apart) <= last)
    if kept is not None:
        asked &= kept(apart / cells, d / cells)
    used = asked & outward  # laws rise hardly anywhere, and never by as much where neighbours are far apart
    if used.sum() > AT_ONCE and kept is None:  # most rows bind nowhere but around the first step of a staircase
        used &= (np.abs(d) <= CENTRE * cells / (1 + exp(epsilon / 2)) + 2) | (apart == shifts[-1])
    while True:
        found = _program(used, (here, there, over), fall, whole, cost, (exp(epsilon), delta, smear is not None))
        if found is None or (used == asked).all():
            break
        chances = found.chances
        lost = np.where(asked, chances[here] * times - exp(epsilon) * chances[there] * over, 0.0)
        spare = delta * (1 + MET) - found.point - np.maximum(lost, 0.0).sum(axis=1)
        more = used | ((lost > NEGLIGIBLE * (delta or chances[0])) & (spare < 0)[:, None])
        if (more == used).all():
            break
        used = more
    return (
        None
        if found is None
        else replace(
            found, multipliers=tuple((shift, row) for shift, (_, row) in zip(shifts, found.multipliers, strict=True))
        )
    )


def _spread(at: Array, loss: Loss, smear: Loss | None) -> Array:
    return loss(at) + (0.0 if smear is None else smear(at))


def _program(
    used: NDArray[Any],
    places: tuple[NDArray[Any], NDArray[Any], Array],
    fall: Array,
    whole: Array,
    cost: Array,
    asked: tuple[float, float, bool],
) -> Solved | None:
    """The linear program with the rows (shifts, cells) that are used.

    Args: places, the cell of a row, the one that it is compared with, and how many times as likely that one is; whole,
        how much of a law a chance is; asked, e^epsilon, delta and whether there may be a point.
    """
    (here, there, over), (grown, delta, point) = places, asked
    (number, at), wide, steps = np.nonzero(used), len(fall), len(used)
    count, a, b = len(at), here[at], there[number, at]
    rows, columns = [np.arange(count), np.arange(count)], [a, b]
    values = [np.ones(count), -grown * over[number, at] * fall[b] / fall[a]]
    if delta:
        rows += [np.arange(count), count + number]
        columns += [wide + np.arange(count)] * 2
        values += [-np.ones(count), fall[a] / delta]
        wide += count
    if point:
        rows.append(count + np.arange(steps))
        columns.append(np.full(steps, wide))
        values.append(np.full(steps, 1 / delta))
        wide += 1
    height = count + (steps if delta else 0)
    limits = np.concatenate([np.zeros(count), np.ones(height - count)])
    matrix: Any = scipy.sparse.csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(height, wide)
    )
    costs, total = np.zeros(wide), np.zeros(wide)
    costs[: len(fall)], total[: len(fall)] = cost * fall, whole * fall
    if point:
        total[-1] = 1.0
    from privspec.solvers.highs import linear_program  # few specs have laws in steps, and loading HiGHS takes time

    found = linear_program(costs, (matrix, limits), (total[None], np.ones(1)))
    if found is None:
        return None
    prices = np.zeros(used.shape)
    prices[number, at] = np.maximum(-found.most[:count], 0.0) / fall[a]
    chances = np.maximum(found.solution[: len(fall)], 0.0) * fall
    return Solved(chances, float(found.solution[-1]) if point else 0.0, found.value, tuple(enumerate(prices)))


def stairs(epsilon: float, cells: int, power: int, *, spread: bool = False, halfway: bool = False) -> tuple[int, float]:
    """How many cells around no error have the largest chance, for the staircase of least error to a power of 1 or 2.

    Over all periods i of weights e^(-epsilon i): sums of i^n are those of a geometric law (notes/staircase.md).
    Args: spread, whether errors are spread over their cells; halfway, whether there is none at no error: all are
        half a cell farther.
    Returns: that, of one side where there is none at no error, and the error in sensitivities.
    """
    b, k = exp(-epsilon), np.arange(cells) + halfway / 2
    once, first, second = 1 / (1 - b), b / (1 - b) ** 2, b * (1 + b) / (1 - b) ** 3
    errors = k * once + cells * first if power == 1 else k**2 * once + 2 * k * cells * first + cells**2 * second
    upper = np.cumsum(np.stack([np.full(cells, once), errors]), axis=1)
    whole, error = 2 * (upper + b * (upper[:, -1:] - upper))
    found = error / (whole - (not halfway))
    if spread:
        found += 1 / 12 if power == 2 else 1 / 4 / (whole - 1)
    best = int(np.argmin(found))
    return best + 1, float(found[best]) / cells**power
