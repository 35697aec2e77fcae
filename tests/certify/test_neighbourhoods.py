"""Every bound against brute force over random members of the set, every predicate against members and non-members."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from privspec.certify.neighbourhoods import (
    Balls,
    Boxes,
    Cells,
    EnclosedForm,
    Entries,
    LaplaceCost,
    StrategyForm,
)

K, N = 5, 6
RNG = np.random.default_rng(3)
INTEGERS = RNG.integers(-1000, 1000, (K, N))
UNIT = Fraction(1, 512)
FORM = StrategyForm(INTEGERS, UNIT**2)
B = INTEGERS / 512.0
SCALES = tuple(Fraction(i + 1, 2) for i in range(K))
COST = LaplaceCost(INTEGERS, UNIT, SCALES, Fraction(1, 64), np.ones(K, dtype=np.int64))


def square(d: np.ndarray) -> float:
    return float(np.sum((B @ d) ** 2))


def cost(d: np.ndarray) -> float:
    shift = np.abs(B @ d)
    return float(sum((s + (1 / 64 if s else 0)) / float(b) for s, b in zip(shift, SCALES, strict=True)))


def check(neighbourhood, members, *, tight_square=True, tight_cost=True):  # type: ignore[no-untyped-def]
    squares, costs = [square(d) for d in members], [cost(d) for d in members]
    reach, worst = float(neighbourhood.reach(FORM)), float(neighbourhood.cost(COST))
    assert max(squares) <= reach * (1 + 1e-12)
    assert max(costs) <= worst * (1 + 1e-12)
    if tight_square:
        assert reach == pytest.approx(max(squares), rel=1e-9)
    if tight_cost:
        assert worst == pytest.approx(max(costs), rel=1e-9)
    for d in members[:20]:
        exact = {i: Fraction(float(v)) for i, v in enumerate(d) if v}
        assert neighbourhood.admits(exact)


def unit(i: int, amount: float = 1.0) -> np.ndarray:
    d = np.zeros(N)
    d[i] = amount
    return d


def test_one_entry() -> None:
    ranges = {i: Fraction(i + 1) for i in range(N)}
    members = [unit(i, s * (i + 1)) for i in range(N) for s in (1, -1)]
    check(Entries(ranges), members)
    assert not Entries(ranges).admits({0: Fraction(1, 2), 1: Fraction(3, 2)})
    assert not Entries(ranges).admits({0: Fraction(-11, 10)})
    assert not Entries(ranges).admits({N: Fraction(1)})


def test_two_entries_are_bounded() -> None:
    ranges = {i: Fraction(1) for i in range(N)}
    members = [unit(i) + s * unit(j) for i in range(N) for j in range(N) if i != j for s in (1, -1)]
    check(Entries(ranges, group=2), members, tight_square=False, tight_cost=False)
    assert not Entries(ranges, group=2).admits({0: Fraction(2)})
    assert not Entries(ranges, group=2).admits({i: Fraction(1) for i in range(3)})


@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("group", [1, 3])
def test_cells(moving: bool, group: int) -> None:
    cells = Cells(np.arange(N), moving, group)
    if moving:
        members = [group * (unit(i) - unit(j)) for i in range(N) for j in range(N) if i != j]
    else:
        members = [group * s * unit(i) for i in range(N) for s in (1, -1)]
    check(cells, members, tight_cost=group == 1)
    assert not cells.admits({0: Fraction(group), 1: Fraction(group)})
    assert not cells.admits({0: Fraction(group) + Fraction(1, 100), 1: -Fraction(group) - Fraction(1, 100)})
    assert cells.admits({0: Fraction(group)}) is not moving


def test_boxes_by_vertices() -> None:
    units = (np.arange(3), np.arange(3, 6))
    reaches = {i: Fraction(i + 1) for i in range(N)}
    members = [
        sum(unit(int(i), s * (i + 1)) for i, s in zip(block, signs, strict=True))
        for block in units
        for signs in product((1, -1), repeat=3)
    ]
    check(Boxes(units, reaches), members)
    assert not Boxes(units, reaches).admits({0: Fraction(1), 3: Fraction(1)})
    assert not Boxes(units, reaches, whole=False).admits({0: Fraction(1)})


def test_large_boxes_are_bounded_well() -> None:
    n = 20
    integers = np.random.default_rng(5).integers(-9, 9, (8, n))
    box = Boxes((np.arange(n),), {i: Fraction(1) for i in range(n)})
    bound = float(box.reach(StrategyForm(integers, Fraction(1))))
    gram = (integers.T @ integers).astype(float)
    best = 0.0
    generator = np.random.default_rng(6)
    for _ in range(200):
        s = generator.choice([-1.0, 1.0], n)
        for _ in range(30):
            s = np.where((gram - np.diag(np.diag(gram))) @ s >= 0, 1.0, -1.0)
        best = max(best, float(s @ gram @ s))
    assert best <= bound <= best * np.pi / 2
    assert bound < np.abs(gram).sum() * 0.9
    assert not box.exact


def test_balls() -> None:
    units = (np.arange(3), np.arange(3, 6))
    ball = Balls(units, 3, Fraction(2))
    members = []
    for block in units:
        _, _, right = np.linalg.svd(B[:, block])
        for direction in (right[0], *np.random.default_rng(7).standard_normal((20, 3))):
            d = np.zeros(N)
            d[block] = direction / np.linalg.norm(direction) * 1.9999999999
            members.append(d)
    check(ball, members, tight_cost=False)
    assert not ball.admits({0: Fraction(2), 1: Fraction(1, 1000)})
    assert not ball.admits({0: Fraction(1), 3: Fraction(1)})
    assert Balls(units, 3, Fraction(2), group=2).admits({0: Fraction(2), 3: Fraction(2)})


def test_the_enclosed_form_agrees_with_the_exact_one() -> None:
    gram = B.T @ B
    enclosed = EnclosedForm(gram, np.full_like(gram, 1e-9))
    for neighbourhood in (
        Entries({i: Fraction(1) for i in range(N)}),
        Cells(np.arange(N), True),
        Boxes((np.arange(N),), {i: Fraction(1) for i in range(N)}),
        Balls((np.arange(N),), N, Fraction(1)),
    ):
        exact = float(neighbourhood.reach(FORM))
        assert exact <= float(neighbourhood.reach(enclosed)) <= exact + 1e-6


def test_laplace_cost_on_the_lattice_is_exact() -> None:
    eye = np.eye(3, dtype=np.int64)
    cost = LaplaceCost(eye, Fraction(1), (Fraction(3),) * 3, Fraction(1), np.zeros(3, dtype=np.int64))
    assert Cells(np.arange(3), False).cost(cost) == Fraction(1, 3)
    assert Cells(np.arange(3), True).cost(cost) == Fraction(2, 3)
