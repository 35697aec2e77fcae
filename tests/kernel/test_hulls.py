"""Noise by the norm of a polytope, beside brute force: norms by definition, chances of points and their moments.

What the kernel is told of a body is forged in every way that its note names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from math import exp

import pytest
from flint import fmpq_mat
from hypothesis import strategies as st

from privspec.kernel.changes import Piece, Units
from privspec.kernel.core.reading import Grid, Refused
from privspec.kernel.laws.knorm import Body, KNormHulls, KNormSwaps, contrasts, expected_square
from privspec.kernel.rules import derive

from .test_rules_brute import EVERY, EXAMPLES, F, applied, changes, noisy, strategies, tried, worlds

ONE = F(1)
Point = tuple[int, ...]
Norm = Callable[[list[Fraction]], Fraction]


def grid(rows: list[Point], unit: Fraction = ONE) -> Grid:
    return Grid((len(rows), len(rows[0])), unit, tuple(v for row in rows for v in row))


def hexagon(*, whole: bool = False, scale: Fraction = ONE, unit: Fraction = ONE) -> Body:
    """All swaps of three counts: the first less the second, and the sum of both."""
    counts = [(1, 0), (1, -1), (0, -1), (-1, 0), (-1, 1), (0, 1)]
    corners = [(a - b, a + b) for a, b in counts]
    return Body(grid(corners, unit), grid([(i, (i + 1) % 6) for i in range(6)]), scale, whole)


def crosses(size: int, *, whole: bool = False) -> Body:
    """A cross-polytope in orthants."""
    corners = [tuple(s * int(i == j) for j in range(size)) for s in (1, -1) for i in range(size)]
    cones = [tuple(i + size * (s < 0) for i, s in enumerate(signs)) for signs in product((1, -1), repeat=size)]
    return Body(grid(corners), grid(cones), F(1), whole)


def cube(size: int, *, whole: bool = False) -> Body:
    """A cube whose facets are divided in steps from the middle of a facet to a corner."""
    corners = [corner for corner in product((-1, 0, 1), repeat=size) if any(corner)]
    cones = []
    for signs in product((1, -1), repeat=size):
        for order in permutations(range(size)):
            chain = [tuple(signs[i] * int(i in order[: k + 1]) for i in range(size)) for k in range(size)]
            cones.append(tuple(map(corners.index, chain)))
    return Body(grid(corners), grid(cones), F(1), whole)


def swaps(v: list[Fraction]) -> Fraction:
    """Half the sum of sizes of three counts that add up to 0, from two sums of them."""
    a, b = (v[0] + v[1]) / 2, (v[1] - v[0]) / 2
    return (abs(a) + abs(b) + abs(a + b)) / 2


BODIES: dict[str, tuple[Body, Norm]] = {
    "swaps": (hexagon(), swaps),
    "crosses of 2": (crosses(2), lambda v: sum(map(abs, v), F(0))),
    "crosses of 3": (crosses(3), lambda v: sum(map(abs, v), F(0))),
    "crosses of 4": (crosses(4), lambda v: sum(map(abs, v), F(0))),
    "square": (cube(2), lambda v: max(map(abs, v))),
    "cube": (cube(3), lambda v: max(map(abs, v))),
    "one number": (crosses(1), lambda v: abs(v[0])),
}


@pytest.mark.parametrize("name", BODIES)
def test_the_chance_of_each_point_falls_by_the_norm(name: str) -> None:
    """On a lattice: cones and geometric numbers up to some size are added up, and their squares are the variances."""
    body, norm = BODIES[name]
    body, ratio, most = replace(body, whole=True, scale=F(1, 2)), exp(-2), 5
    found, inside, known = defaultdict[Point, float](float), body.corners.rows, body.geometry
    for cone, starts in zip(body.cones.rows, known.starts, strict=True):
        for numbers in product(range(most + 1), repeat=body.size):
            if all(n >= start for n, start in zip(numbers, starts, strict=True)):
                at = tuple(sum(n * inside[i][j] for n, i in zip(numbers, cone, strict=True)) for j in range(body.size))
                found[at] += (1 - ratio) ** body.size * ratio ** sum(numbers)
    whole = sum(ratio ** sum(starts) for starts in known.starts)
    at_zero = found[(0,) * body.size]
    near = {at: chance for at, chance in found.items() if norm(list(map(F, at))) <= most}
    assert len(near) > 2 * body.size
    for at, chance in near.items():
        assert chance == pytest.approx(at_zero * ratio ** float(norm(list(map(F, at)))), rel=1e-9)
    squares = [sum(chance * at[j] ** 2 for at, chance in found.items()) / whole for j in range(body.size)]
    assert squares == pytest.approx(list(map(float, body.variances())), rel=2e-2)


def test_variances_of_known_shapes() -> None:
    """Of exponential numbers: 2 each for a cross-polytope, (k + 1)(k + 2) / 3 for a cube, and 10 of three counts."""
    assert KNormHulls((crosses(3),)).variances(3, F(1)) == [2, 2, 2]
    assert list(map(float, cube(3).variances())) == pytest.approx([20 / 3] * 3, rel=1e-30)
    first, both = hexagon(scale=F(3), unit=F(1, 2)).variances()
    assert float(first) / 2 + float(both) * 3 / 2 == pytest.approx(10 * 9 / 4, rel=1e-30)


@EXAMPLES
def test_what_polytopes_let_through(examples: int) -> None:
    """The norm of each move by its definition, of all bodies of which an answer is seen; the largest where one is."""

    def holds(drawn: tuple[Units, fmpq_mat, tuple[str, ...], int]) -> None:
        change, matrix, names, size = drawn
        bodies = tuple(replace(BODIES[name][0], scale=F(size, 3)) for name in names)
        term, starts = noisy(matrix, KNormHulls(bodies)), [0]
        for body in bodies:
            starts.append(starts[-1] + body.size)
        for seen in (EVERY, frozenset({"a0"}), frozenset({"a3"})):
            found = derive(term, seen, change).loss.epsilons()
            assert found is not None
            rows, norms = {int(name[1:]) for name in seen}, list[Fraction]()
            for move in worlds(change):
                moved, own = applied(matrix, move), F(0)
                for name, body, start in zip(names, bodies, starts, strict=False):
                    if rows & set(range(start, start + body.size)):
                        own += BODIES[name][1](moved[start : start + body.size]) / body.scale
                norms.append(own)
            assert sum(found) >= max(norms, default=F(0))
            if change.count == 1 and len(bodies) == 1 and all(len(unit) == 1 for unit, _ in change.units):
                assert sum(found) == max(norms, default=F(0))

    shapes = [
        ("crosses of 4",),
        ("swaps", "square"),
        ("crosses of 3", "one number"),
        ("cube", "one number"),
        ("one number", "cube"),
    ]
    tried(examples, holds, st.tuples(changes(), strategies(4, 4), st.sampled_from(shapes), st.integers(1, 6)))


def test_records_of_a_person_that_add_up_and_such_that_do_not() -> None:
    """Of three cells any may have one record more: no difference of two cells moves by more than one of them does."""
    matrix = fmpq_mat([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    # the hull of all moves by 0 or 1, and their opposites: the most above 0 and the most below it
    corners = [c for c in product((-1, 0, 1), repeat=3) if any(c) and not {1, -1} <= set(c)]
    cones = []
    for order in permutations(range(4)):
        # counts in order with a fourth, of 0, between them; and where each next one starts to be larger
        steps = [tuple(int(order.index(i) > k) - int(order.index(3) > k) for i in range(3)) for k in range(3)]
        cones.append(tuple(map(corners.index, steps)))
    corner = {(1, -1, 0), (1, 0, 0)}
    assert corner - set(corners)  # a person who comes has no record less
    points, chosen = fmpq_mat([list(c) for c in corners]), grid(cones)
    # corners in numbers that are uncorrelated: the sum, and what differs from it
    turn = [(1, 1, 1), (1, -1, 0), (1, 1, -2)]
    turned = [tuple(sum(a * b for a, b in zip(row, c, strict=True)) for row in turn) for c in corners]
    body = Body(grid(turned), chosen, F(1), whole=True)
    assert points.nrows() == 14 and len(cones) == 24
    change = Units((((Piece(range(3), "kept", F(3), 1),), 1),), 1)
    term = noisy(fmpq_mat([list(row) for row in turn]) * matrix, KNormHulls((body,)), grid=F(1), point=F(1))
    assert derive(term, frozenset({"a0"}), change).loss.epsilons() == [1]
    both = Units((((Piece(range(3), "replaced", F(3), 1),), 1),), 1)
    assert derive(term, frozenset({"a0"}), both).loss.epsilons() == [2]


def test_answers_between_points_get_no_noise_of_the_lattice() -> None:
    """Half a count, and a lattice that is no part of that of the noise, or is finer than what is released."""
    change = Units((((Piece(range(3), "swap", F(1)),), 1),), 1)
    matrix = fmpq_mat([[1, -1, 0], [1, 1, 0]])
    law = KNormHulls((hexagon(whole=True),))
    seen = frozenset({"a0"})
    assert derive(noisy(matrix, law, grid=F(1), point=F(1)), seen, change).loss.epsilons() == [1]
    for moved, step, point in (
        (matrix, F(1), F(1, 2)),
        (matrix, F(2), F(1)),
        (fmpq_mat([[1, 0, 0], [0, 1, 0]]), F(1), F(1)),
    ):
        with pytest.raises(Refused, match="between the points"):
            derive(noisy(moved, law, grid=step, point=point), seen, change)


def without(rows: Grid, *places: int) -> Grid:
    kept = [tuple(row) for i, row in enumerate(rows.rows) if i not in places]
    return grid(kept)


def changed(rows: Grid, place: int, row: Point) -> Grid:
    return grid([row if i == place else tuple(own) for i, own in enumerate(rows.rows)])


HEXAGON = hexagon()
FORGED: dict[str, tuple[Callable[[], object], str]] = {
    "a cone that is missing": (lambda: replace(HEXAGON, cones=without(HEXAGON.cones, 2)), "divide all"),
    "cones of one half": (lambda: replace(HEXAGON, cones=without(HEXAGON.cones, 0, 1, 2)), "divide all"),
    "a cone twice": (lambda: replace(HEXAGON, cones=grid([*map(tuple, HEXAGON.cones.rows), (0, 1)])), "divide all"),
    "cones one over the other": (lambda: replace(HEXAGON, cones=changed(HEXAGON.cones, 0, (0, 2))), "divide all"),
    "a flat cone": (lambda: replace(HEXAGON, cones=changed(HEXAGON.cones, 0, (0, 3))), "flat"),
    "a corner twice in a cone": (lambda: replace(HEXAGON, cones=changed(HEXAGON.cones, 0, (0, 0))), "flat"),
    "a corner that is none": (lambda: replace(HEXAGON, cones=changed(HEXAGON.cones, 0, (0, 6))), "does not have"),
    "a corner pulled in": (
        lambda: Body(grid([(4, 0), (1, 1), (0, 4), (-4, 0), (-1, -1), (0, -4)]), HEXAGON.cones, F(1)),
        "convex",
    ),
    "a corner outside": (
        lambda: replace(crosses(2), corners=grid([*map(tuple, crosses(2).corners.rows), (1, 1)])),
        "convex",
    ),
    "one side longer": (lambda: Body(grid([(2,), (-1,)]), grid([(0,), (1,)]), F(1)), "mirror"),
    "a triangle": (lambda: Body(grid([(1, 0), (0, 1), (-1, -1)]), grid([(0, 1), (1, 2), (2, 0)]), F(1)), "mirror"),
    "other dimensions": (lambda: replace(HEXAGON, cones=grid([(0,), (1,)])), "dimensions"),
    "no scale": (lambda: replace(HEXAGON, scale=F(0)), "no size"),
    "a lattice of two kinds of cones": (
        lambda: replace(crosses(2, whole=False), corners=grid([(2, 0), (0, 1), (-2, 0), (0, -1), (1, 0)]), whole=True),
        "lattice",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_bodies_that_are_none_are_refused(name: str) -> None:
    made, words = FORGED[name]
    with pytest.raises(Refused, match=words):
        made()


def test_numbers_that_go_together_have_no_variance_each() -> None:
    leaning = Body(grid([(1, 1), (0, 1), (-1, -1), (0, -1)]), grid([(0, 1), (1, 2), (2, 3), (3, 0)]), F(1))
    with pytest.raises(Refused, match="uncorrelated"):
        KNormHulls((leaning,)).variances(2, F(1))
    slightly = replace(
        HEXAGON, corners=grid([(2**30 * a + b, 2**30 * b) for a, b in HEXAGON.corners.rows], F(1, 2**30))
    )
    assert slightly.variances() > HEXAGON.variances()


def test_the_steps_to_the_next_cone_are_counted_once() -> None:
    """Cones by how many of their walls belong to others: for swaps of k counts squares of binomial coefficients."""
    for body, expected in ((hexagon(), [1, 4, 1]), (crosses(3), [1, 3, 3, 1]), (cube(2), [1, 6, 1])):
        counts = [sum(start) for start in body.geometry.starts]
        assert [counts.count(k) for k in range(body.size + 1)] == expected


# --- swaps of many counts ---------------------------------------------------------------------------------------------


def swapping(
    size: int, *, whole: bool, seen: str = "a0", point: Fraction = ONE, step: Fraction = ONE
) -> list[Fraction] | None:
    """What noise of scale 1/2 lets through of one record that moves between so many cells."""
    rows = [[v - row[0] for v in row] for row in contrasts(size)] + [[1] * size]
    change = Units((((Piece(range(size), "swap", F(1)),), 1),), 1)
    term = noisy(fmpq_mat(rows), KNormSwaps(size, F(1, 2), F(1, 100), whole), grid=step, point=point)
    return derive(term, frozenset({seen}), change).loss.epsilons()


@pytest.mark.parametrize("size", [2, 3, 6])
@pytest.mark.parametrize("whole", [False, True])
def test_a_record_that_moves_is_as_long_as_any_other(size: int, *, whole: bool) -> None:
    """Of all cells: 1 / scale; of the total alone nothing."""
    assert swapping(size, whole=whole) == [2]
    assert swapping(size, whole=whole, seen=f"a{size - 1}") == []


@EXAMPLES
def test_what_noise_on_swaps_lets_through(examples: int) -> None:
    """Half the sum of sizes of counts that add up to 0 and have these contrasts, and the size of the last answer."""

    def holds(drawn: tuple[Units, fmpq_mat, int]) -> None:
        change, matrix, size = drawn
        law = KNormSwaps(4, F(size, 2), F(1, size))
        for seen, last in ((frozenset({"a0"}), 0), (frozenset({"a3"}), 1), (frozenset({"a1", "a3"}), 2)):
            found = derive(noisy(matrix, law), seen, change).loss.epsilons()
            assert found is not None
            for move in worlds(change):
                y = applied(matrix, move)
                # n4 = -y3 / 4, and so on down: each next count from its contrast, and the sum of those before it
                rest, sizes = y[2] / 4, [abs(y[2] / 4)]
                for j in (2, 1):
                    count = (rest - y[j - 1]) / (j + 1)
                    rest, sizes = rest - count, [*sizes, abs(count)]
                norm = (sum(sizes, F(0)) + abs(rest)) / 2 / law.scale
                own = {0: norm, 1: abs(y[3]) / law.quiet, 2: norm + abs(y[3]) / law.quiet}[last]
                assert sum(found) >= own

    tried(examples, holds, st.tuples(changes(), strategies(4, 4), st.integers(1, 5)))


@pytest.mark.parametrize(("size", "scale"), [(2, F(1)), (3, F(2, 3)), (4, F(1, 2))])
def test_expected_squares_of_whole_swaps(size: int, scale: Fraction) -> None:
    """All points up to a size are listed; on real numbers it is the figure of bodies of the same cones."""
    most, found, whole = 12 if size == 4 else 22, 0.0, 0.0
    for point in product(range(-most, most + 1), repeat=size - 1):
        every = (*point, -sum(point))
        chance = exp(-sum(map(abs, every)) / 2 / float(scale))
        found, whole = found + chance * sum(v * v for v in every), whole + chance
    assert float(expected_square(size, scale, True)) == pytest.approx(found / whole, rel=1e-5)
    first, both = hexagon().variances()
    assert float(expected_square(3, F(1), False)) == pytest.approx(float(first) / 2 + float(both) * 3 / 2, rel=1e-12)


def test_swaps_that_are_none_are_refused() -> None:
    for size, scale, quiet, whole in (
        (1, F(1), F(1), False),
        (3, F(0), F(1), False),
        (3, F(1), F(0), False),
        (3, F(1, 3000), F(1), True),
    ):
        with pytest.raises(Refused, match="no size"):
            KNormSwaps(size, scale, quiet, whole)
    for point, step in ((F(1, 2), F(1)), (F(1), F(2)), (F(1), F(2, 3))):
        with pytest.raises(Refused, match="between the points"):
            swapping(3, whole=True, point=point, step=step)
