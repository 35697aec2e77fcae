"""What units move, against all that they may: those that come and go, in several inputs; what bounds rest on."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from scipy.optimize import linprog

from privspec.kernel.core.linear import Difference, Part
from privspec.kernel.core.reading import Refused
from privspec.kernel.moves import units_of
from privspec.kernel.strategies.dense import Dense
from privspec.kernel.worth.traces import gauge, owners_of

F = Fraction
Ends = tuple[Fraction, Fraction]
UNITS: dict[str, tuple[list[tuple[int, Ends]], int]] = {
    "from 0 to 1": ([(3, (F(0), F(1)))], 1),
    "away from 0": ([(2, (F(1), F(3)))], 1),
    "about 0, one side longer": ([(3, (F(-1), F(2)))], 1),
    "below 0": ([(2, (F(-3), F(-1)))], 1),
    "two inputs of two signs": ([(2, (F(0), F(1))), (1, (F(-3), F(-1)))], 1),
    "beside one about 0": ([(1, (F(1), F(2))), (2, (F(-1), F(1)))], 1),
    "a number that is known": ([(1, (F(2), F(2))), (1, (F(0), F(1)))], 1),
    "two of three units": ([(2, (F(0), F(1)))], 2),
}
"""Of each input how many numbers a unit has and their ends; how many units change at once."""
RUNS = 3


def difference(name: str) -> Difference:
    """Units that come and go."""
    inputs, count = UNITS[name]
    parts, start = [], 0
    for length, (low, high) in inputs:
        stop = start + length * RUNS
        parts.append(Part(start, stop, length, "box", 1, (high - low) / 2, middle=(high + low) / 2 or None))
        start = stop
    return Difference(tuple(parts), count)


def changes(name: str) -> Iterator[list[Fraction]]:
    """By extreme values: each unit comes, goes or stays."""
    inputs, count = UNITS[name]
    width = RUNS * sum(length for length, _ in inputs)
    values = [ends for length, ends in inputs for _ in range(length)]
    some = [tuple(s * v for v in one) for one in product(*values) for s in (1, -1)]
    for each in product([None, *some], repeat=RUNS):
        if sum(one is not None for one in each) <= count:
            found, start = [F(0)] * width, 0
            for at, (length, _) in enumerate(inputs):
                before = sum(own for own, _ in inputs[:at])
                for unit, one in enumerate(each):
                    here = slice(start + unit * length, start + (unit + 1) * length)
                    found[here] = [F(0)] * length if one is None else one[before : before + length]
                start += length * RUNS
            yield found


@pytest.mark.parametrize("name", UNITS)
def test_who_comes_or_goes_moves_all_numbers_one_way(name: str) -> None:
    """The largest length is that of all changes, exactly; the largest sum of sizes is not below it."""
    moved, moves = list(changes(name)), units_of(difference(name))
    for seed in range(4):
        whole = np.random.default_rng(seed).integers(-4, 5, (2, len(moved[0]))).tolist()
        rows = [[sum(a * b for a, b in zip(row, move, strict=True)) for row in whole] for move in moved]
        assert Dense(fmpq_mat(whole)).quadratic_sensitivity(moves) == max(sum(v * v for v in row) for row in rows)
        cost = max(sum((abs(v) / b for v, b in zip(row, (F(1), F(3, 7)), strict=True)), F(0)) for row in rows)
        assert Dense(fmpq_mat(whole)).absolute_sensitivity([F(1), F(3, 7)], [F(0)] * 2, moves, {}) >= cost


@pytest.mark.parametrize("name", UNITS)
def test_the_hull_of_who_comes_and_goes_holds_a_column_so_many_times(name: str) -> None:
    """By a linear program over all changes; what it does not hold at all is told as such."""
    moves = units_of(difference(name))
    corners = np.array(list(changes(name)), dtype=float).T
    for seed in range(8):
        column = np.random.default_rng(seed).integers(-3, 4, corners.shape[0])
        column *= seed % 2 or np.arange(len(column)) % RUNS == 0
        least = linprog(np.ones(corners.shape[1]), A_eq=corners, b_eq=column)
        found = gauge(moves, owners_of(moves), {i: fmpq(int(v)) for i, v in enumerate(column) if v})
        assert (found is None) == (least.status == 2)
        assert found is None or float(found) == pytest.approx(least.fun, rel=1e-9, abs=1e-9)


def test_many_numbers_are_bounded() -> None:
    """Beyond the size at which corners are listed: by no more than numbers that move freely."""
    unit = Difference((Part(0, 40, 40, "box", 1, F(1, 2), middle=F(1, 2)),), 1)
    whole = np.eye(40, dtype=int)
    assert Dense(fmpq_mat(whole.tolist())).quadratic_sensitivity(units_of(unit)) == pytest.approx(40, rel=1e-6)
    # of what all have in common nothing is seen: half of them come, and not all
    seen, scaling = Dense(fmpq_mat((40 * whole - 1).tolist()) / 40), [[*[F(1, 2)] * 40, F(100)]]
    found = seen.quadratic_sensitivity(units_of(unit)), seen.quadratic_sensitivity(units_of(unit), scaling)
    assert 10 <= found[1] < 10.001 < found[0] < 10.2501


def test_bounds_rest_on_what_neighbours_surely_have() -> None:
    part = Part(0, 2, 1, "box", 1, F(3))
    assert Difference((part,), 1).surely() == Difference((part,), 1)
    assert Difference((part,), 1, cover=F(3, 2)).surely().parts[0].amount == 2
    for cover in (F(0), F(1, 2)):
        with pytest.raises(Refused, match="no neighbours may have"):
            Difference((part,), 1, cover=cover).surely()
