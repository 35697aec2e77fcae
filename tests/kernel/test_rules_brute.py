"""Every rule and every law beside brute force: worlds are enumerated, and laws are worked out point by point."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from typing import Any

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from privspec.kernel.changes import (
    ConditionalLaw,
    Entries,
    GivenModel,
    InARow,
    Piece,
    Records,
    Rows,
    SequenceModel,
    Units,
)
from privspec.kernel.core.numbers import gaussian_delta_up, rational
from privspec.kernel.core.reading import Grid, Refused
from privspec.kernel.laws.gaussian import Gaussian, GaussianShares
from privspec.kernel.laws.knorm import KNorm, KNormBlocks
from privspec.kernel.laws.laplace import Laplace, WholeLaplace
from privspec.kernel.laws.law import Law
from privspec.kernel.laws.staircase import Staircase, Stepped
from privspec.kernel.laws.threshold import Normal, Threshold
from privspec.kernel.losses import GRID as LOG_RATIOS
from privspec.kernel.losses import Loss, Response
from privspec.kernel.rules import Hint, Theorem, derive, independent
from privspec.kernel.strategies.dense import Dense, Lattice
from privspec.kernel.strategies.residuals import Residuals, Separate
from privspec.kernel.strategies.sequences import ByLaws, ByQuilts, ByWindows, Proof, Sums
from privspec.kernel.terms import Independent, Noise, Reports, Shares, Shown, Structured, Table, Times

F = Fraction
FEW, MANY = 15, 2000
Move = dict[int, Fraction]
EXAMPLES = pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])


def tried(examples: int, holds: Callable[[Any], None], drawn: st.SearchStrategy[Any]) -> None:
    """A property, on so many instances; always the same ones."""
    silent = list(HealthCheck)
    wanted = settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=silent
    )
    wanted(given(drawn)(holds))()


# --- worlds ------------------------------------------------------------------------------------------------------


def vertices(piece: Piece) -> list[Move]:
    """The farthest that a piece moves; of a Euclidean ball some of it."""
    a, at = piece.amount, piece.at
    if piece.along is not None:
        ways = [{i: sign * a * share for i, share in zip(at, piece.along, strict=True)} for sign in (1, -1)]
    elif piece.shape == "swap":
        ways = [{i: a, j: -a} for i in at for j in at if i != j]
    elif piece.shape == "l2" and len(at) > 1:
        # rational points of the circle, and the ends of all axes
        ways = [
            {i: a * F(3, 5) * s, j: a * F(4, 5) * t} for i in at for j in at if i != j for s in (1, -1) for t in (1, -1)
        ]
        ways += [{i: sign * a} for i in at for sign in (1, -1)]
    else:
        ways = [{i: sign * a} for i in at for sign in (1, -1)]
    return [*ways, {}]


def added(moves: tuple[Move, ...]) -> Move:
    found: Move = {}
    for move in moves:
        for i, v in move.items():
            found[i] = found.get(i, F(0)) + v
    return found


def worlds(change: Units) -> Iterator[Move]:
    """Every difference of two neighbours, at the ends of what units move."""
    single = [[added(parts) for parts in product(*map(vertices, unit))] for unit, _ in change.units]
    listed = [k for k, (_, copies) in enumerate(change.units) for _ in range(copies)]
    for many in range(1, change.count + 1):
        for chosen in sorted(set(combinations(listed, many))):
            steps = [b - a for a, b in pairwise(chosen)]
            if change.apart is not None and any(step < change.apart for step in steps):
                continue
            if change.exactly and any(step != change.apart for step in steps):
                continue
            yield from (added(moves) for moves in product(*(single[k] for k in chosen)))


amounts = st.sampled_from([F(0), F(1, 2), F(1), F(3)])


@st.composite
def changes(draw: st.DrawFn, size: int = 4) -> Units:
    """Units that share out some coordinates, of one shape each or a mixture, alone or several at once."""
    owner = [draw(st.integers(0, 2)) for _ in range(size)]
    units = []
    for k in sorted(set(owner)):
        at = [i for i in range(size) if owner[i] == k]
        shape = draw(st.sampled_from(["box", "l1", "l2", "cell", "swap", "along"]))
        if shape == "box":
            pieces = [Piece((i,), "box", draw(amounts)) for i in at]
        elif shape == "along":
            shares = tuple(F(draw(st.integers(-2, 2))) for _ in at)
            pieces = [*(Piece((i,), "box", draw(amounts)) for i in at), Piece(tuple(at), "box", F(1), along=shares)]
        elif shape == "swap" and len(at) < 2:
            pieces = [Piece(tuple(at), "cell", draw(amounts))]
        else:
            pieces = [Piece(tuple(at), shape, draw(amounts))]
        units.append((tuple(pieces), draw(st.sampled_from([1, 1, 2]))))
    return Units(tuple(units), draw(st.integers(1, 2)))


@st.composite
def in_a_row(draw: st.DrawFn) -> Units:
    """Numbers in a row of which one unit changes several, apart."""
    size, amount = draw(st.integers(3, 6)), draw(amounts)
    units = tuple(((Piece((i,), "box", amount),), 1) for i in range(size))
    return Units(units, draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.booleans()))


def strategies(answers: int, size: int) -> st.SearchStrategy[fmpq_mat]:
    numbers = st.lists(st.integers(-3, 3), min_size=answers * size, max_size=answers * size)
    return numbers.map(lambda flat: fmpq_mat(answers, size, flat))


def applied(matrix: fmpq_mat, move: Move) -> list[Fraction]:
    rows = [[F(int(v.p), int(v.q)) for v in row] for row in matrix.tolist()]
    return [sum((row[i] * v for i, v in move.items()), F(0)) for row in rows]


GRID, POINT = F(1, 16), F(1, 2)


def noisy(matrix: fmpq_mat, law: Law, grid: Fraction = GRID, point: Fraction = POINT, **more: Any) -> Noise:
    """Answers that are shown one by one, as a0, a1, ..."""
    rows = range(matrix.nrows())
    shows = tuple((f"a{r}", fmpq_mat([[int(r == k) for k in rows]])) for r in rows)
    return Noise(Dense(matrix), law, Lattice(grid, ((point,),) * matrix.ncols(), {}), shows, **more)


EVERY = frozenset({"a0", "a1", "a2"})


# --- noise -------------------------------------------------------------------------------------------------------


@EXAMPLES
@pytest.mark.parametrize("rows", ["all", "one"])
def test_gaussian_noise_lets_through_no_more(examples: int, rows: str) -> None:
    """mu^2 is at least |B d|^2 / sigma^2 for every difference, whatever is seen, and whatever the scaling is."""

    def holds(drawn: tuple[Units, fmpq_mat, list[int]]) -> None:
        change, matrix, scaling = drawn
        seen = EVERY if rows == "all" else frozenset({"a1"})
        term = noisy(matrix, Gaussian(F(3, 2)))
        moved = (applied(matrix, move) for move in worlds(change))
        worst = max((sum((v**2 for r, v in enumerate(one) if f"a{r}" in seen), F(0)) for one in moved), default=F(0))
        found = derive(term, seen & term.outputs, change).loss
        assert found.mu_squared >= worst / F(9, 4)
        assert not found.factors
        assert not found.delta
        sizes = iter(scaling * 40)
        given = [[F(next(sizes)) for _ in unit] for unit, _ in change.grouped().units]
        assert derive(term, seen & term.outputs, change, Hint(scaling=given)).loss.mu_squared >= worst / F(9, 4)

    scalings = st.lists(st.integers(1, 5), min_size=3, max_size=3)
    tried(examples, holds, st.tuples(changes(), strategies(3, 4), scalings))


@EXAMPLES
def test_units_apart_let_through_no_more(examples: int) -> None:
    def holds(change: Units) -> None:
        size = len(change.units)
        matrix = fmpq_mat([[int(j <= i) * (1 + (i + j) % 3) for j in range(size)] for i in range(size)])
        worst = max((sum(v**2 for v in applied(matrix, move)) for move in worlds(change)), default=F(0))
        assert Dense(matrix).quadratic_sensitivity(change) >= worst

    tried(examples, holds, in_a_row())


@EXAMPLES
def test_laplace_noise_lets_through_no_more(examples: int) -> None:
    """Answers are rounded to the lattice where they lie between its points; all worlds are tried from one of them."""

    def holds(drawn: tuple[Units, fmpq_mat, list[int], Fraction]) -> None:
        change, matrix, start, grid = drawn
        scales = F(1), F(2), F(5, 2)
        term = noisy(matrix, Laplace(scales), grid)
        found = derive(term, EVERY, change).loss.epsilons()
        assert found is not None
        before = applied(matrix, {i: F(n, 2) for i, n in enumerate(start)})
        for move in worlds(change):
            if any((2 * v).denominator > 1 for v in move.values()):
                continue  # inputs are multiples of 1 / 2
            after = [a + b for a, b in zip(before, applied(matrix, move), strict=True)]
            # halves go up, as samplers have it
            ends = [[math.floor(v / grid + F(1, 2)) for v in answers] for answers in (before, after)]
            points = [abs(a - b) * grid for a, b in zip(*ends, strict=True)]
            assert sum((d / b for d, b in zip(points, scales, strict=True)), F(0)) <= sum(found)

    starts = st.lists(st.integers(-3, 3), min_size=4, max_size=4)
    grids = st.sampled_from([F(1, 4), F(1, 3), F(1), F(2)])
    tried(examples, holds, st.tuples(changes(), strategies(3, 4), starts, grids))


def test_half_a_record_rounds_as_a_whole_one() -> None:
    """An answer that moves from 0 to 1/2 of a step is rounded from 0 to 1: half a record pays the whole step."""
    change = Units((((Piece((0,), "cell", F(1, 2)),), 1),), 1)
    loss = derive(noisy(fmpq_mat([[1]]), Laplace((F(1),)), grid=F(1)), frozenset({"a0"}), change).loss
    assert loss.epsilons() == [F(3, 2)]


@EXAMPLES
def test_k_norm_noise_lets_through_no_more(examples: int) -> None:
    """Of a density ~ e^(-|v| / scale) no log ratio is above |d| / scale, of all answers whoever sees one."""

    def holds(drawn: tuple[Units, fmpq_mat]) -> None:
        change, matrix = drawn
        found = derive(noisy(matrix, KNorm(F(2))), frozenset({"a0"}), change).loss.epsilons()
        assert found is not None
        for move in worlds(change):
            assert (2 * sum(found)) ** 2 >= sum(v**2 for v in applied(matrix, move))

    tried(examples, holds, st.tuples(changes(), strategies(2, 4)))


@EXAMPLES
def test_k_norm_noise_of_blocks_lets_through_no_more(examples: int) -> None:
    """The norm of each move, from its definition, of all blocks of which an answer is seen."""

    def holds(drawn: tuple[Units, fmpq_mat, tuple[tuple[int, ...], ...], list[int]]) -> None:
        change, matrix, shape, sizes = drawn
        scales, places, start = [F(n, 2) for n in sizes], list[list[list[int]]](), 0
        for parts in shape:
            places.append([])
            for size in parts:
                places[-1].append(list(range(start, start + size)))
                start += size
        blocks = tuple(tuple(tuple(scales[i] for i in part) for part in own) for own in places)
        term = noisy(matrix, KNormBlocks(blocks))
        for seen in (EVERY, frozenset({"a0"}), frozenset({"a3"})):
            found = derive(term, seen, change).loss.epsilons()
            assert found is not None
            rows = {int(name[1:]) for name in seen}
            shown = [own for own in places if rows & {i for part in own for i in part}]
            for move in worlds(change):
                moved = [abs(v) / scale for v, scale in zip(applied(matrix, move), scales, strict=True)]
                assert sum(found) >= sum(max(sum((moved[i] for i in part), F(0)) for part in own) for own in shown)

    shapes = st.sampled_from([((1, 1, 1, 1),), ((1, 1), (1, 1)), ((4,),), ((2, 2),), ((1,), (2, 1)), ((3,), (1,))])
    sizes = st.lists(st.integers(1, 6), min_size=4, max_size=4)
    tried(examples, holds, st.tuples(changes(), strategies(4, 4), shapes, sizes))


def test_the_corner_of_a_box_is_as_far_as_each_of_its_sides() -> None:
    """Six numbers that all move by 1 in a block of half sides 1: 1, and as one part or as blocks of their own 6."""
    change = Units(((tuple(Piece((i,), "box", F(1)) for i in range(6)), 1),), 1)
    matrix, one = fmpq_mat([[int(i == j) for j in range(6)] for i in range(6)]), (F(1),)
    every = frozenset(f"a{i}" for i in range(6))
    laws = {1: ((one,) * 6,), 6: ((one * 6,),), 2: ((one,) * 3,) * 2}
    for epsilon, blocks in laws.items():
        assert derive(noisy(matrix, KNormBlocks(blocks)), every, change).loss.epsilons() == [epsilon]


@st.composite
def stairs(draw: st.DrawFn) -> Stepped:
    weights = tuple(draw(st.lists(st.integers(0, 9), min_size=1, max_size=4).filter(any)))
    period = draw(st.integers(1, len(weights)))
    epsilon, ratio = F(draw(st.integers(0, 8)), 4), F(draw(st.integers(0, 7)), 8)
    return Stepped(epsilon, draw(st.sampled_from([1, 3])), period, ratio, draw(st.integers(0, 2)), weights)


@EXAMPLES
def test_noise_in_steps_lets_through_no_more(examples: int) -> None:
    """The law is written out point by point, and every shift up to the largest is tried."""

    def holds(drawn: tuple[Stepped, int, int]) -> None:
        law, factor, amount = drawn
        cells, half = 400, law.width // 2
        chances: dict[int, float] = {0: float(law.point / law.total)}
        for cell in range(-cells, cells + 1):
            each = float(law.weight(cell) / law.total / law.width)
            for inside in range(-half, half + 1):
                place = cell * law.width + inside
                chances[place] = chances.get(place, 0.0) + each
        change = Units((((Piece((0,), "box", F(amount)),), 1),), 1, multiples=((F(1),),))
        term = noisy(fmpq_mat([[factor]]), Staircase((law,)), F(1), F(1))
        found = derive(term, EVERY & term.outputs, change).loss
        for move in range(1, amount + 1):
            shift = move * abs(factor)
            gaps = (p - math.exp(law.epsilon) * chances.get(z + shift, 0.0) for z, p in chances.items())
            delta = sum(gap for gap in gaps if gap > 0) if shift else 0.0
            assert delta <= float(found.delta) + 1e-6

    tried(examples, holds, st.tuples(stairs(), st.integers(-3, 3), st.integers(1, 4)))


@EXAMPLES
def test_laws_in_steps_of_several_answers_let_through_no_more(examples: int) -> None:
    """Of moves of one answer what that answer's law does; moves of two are refused, whoever sees both."""

    def holds(drawn: tuple[Stepped, Stepped, Units, fmpq_mat]) -> None:
        first, second, change, matrix = drawn
        laws = first, replace(second, epsilon=first.epsilon)
        term = noisy(matrix, Staircase(laws), F(1), F(1))
        moves = [[abs(v) for v in applied(matrix, move)] for move in worlds(change)]
        apart = change.grouped().count == 1 and all(min(move) == 0 for move in moves)
        for seen in (frozenset({"a0"}), frozenset({"a1"}), frozenset({"a0", "a1"})):
            rows = sorted(int(name[1:]) for name in seen)
            try:
                found = derive(term, seen, change).loss
            except Refused:
                # a bound on a move may be above it, but answers that do not move are known
                assert any(max(move) for move in moves)
                continue
            assert len(seen) == 1 or apart
            for row in rows:
                most = max(move[row] for move in moves)
                assert delta_of(laws[row], int(most)) <= float(found.delta) + 1e-6

    tried(examples, holds, st.tuples(stairs(), stairs(), changes(), strategies(2, 4)))


def delta_of(law: Stepped, most: int) -> float:
    """What it lets through at its epsilon of any shift up to one in steps, point by point."""
    chances: dict[int, float] = {0: float(law.point / law.total)}
    for cell in range(-300, 301):
        for place in range(cell * law.width - law.width // 2, cell * law.width + law.width // 2 + 1):
            chances[place] = chances.get(place, 0.0) + float(law.weight(cell) / law.total / law.width)
    gaps = (
        sum(max(p - math.exp(law.epsilon) * chances.get(z + shift, 0.0), 0.0) for z, p in chances.items())
        for shift in range(1, most + 1)
    )
    return max(gaps, default=0.0)


@pytest.mark.parametrize(("variance", "honest", "shift"), [(128, 1, 9), (128, 2, 20), (300, 3, 11)])
def test_shares_let_through_no_more_than_is_charged(variance: int, honest: int, shift: int) -> None:
    """The law of the sum of discrete normal shares, by convolution."""
    wide = 40 * math.isqrt(variance)
    one = [math.exp(-(z**2) / (2 * variance)) for z in range(-wide, wide + 1)]
    one = [p / sum(one) for p in one]
    law = one
    for _ in range(honest - 1):
        spread = [0.0] * (len(law) + len(one) - 1)
        for i, p in enumerate(law):
            if p > 1e-30:
                for j in range(max(0, wide - 300), wide + 301):
                    spread[i + j] += p * one[j]
        law = spread
    term = noisy(fmpq_mat([[shift]]), GaussianShares(F(variance), honest), F(1), F(1))
    change = Units((((Piece((0,), "box", F(1)),), 1),), 1)
    found = derive(Shares(honest + 1, 1, term), frozenset(), change).loss
    for epsilon in (F(0), F(1, 2), F(1)):
        moved = [*law[shift:], *[0.0] * shift]
        gaps = (p - math.exp(epsilon) * q for p, q in zip(law, moved, strict=True))
        assert sum(gap for gap in gaps if gap > 0) <= float(found.delta_up(epsilon)) + 1e-9
    with pytest.raises(Refused):
        derive(Shares(honest + 2, 1, term), frozenset(), change)


@EXAMPLES
def test_whoever_sees_a_mixture_sees_no_more_than_is_charged(examples: int) -> None:
    """(L B d)' (L L')^-1 (L B d) is what a mixture L z lets through; a wrong inverse is refused, or makes it more."""

    def holds(drawn: tuple[Units, fmpq_mat, list[int], int]) -> None:
        change, matrix, left, near = drawn
        length = sum(v * v for v in left)
        if not length:
            return
        row = fmpq_mat([left])
        shows = (("mixed", row), ("other", fmpq_mat([[1, 0, 0]])))
        lattice = Lattice(F(1, 16), ((F(1, 2),),) * 4, {})
        term = Noise(Dense(matrix), Gaussian(F(1)), lattice, shows, mixed=True)
        inverse = fmpq_mat([[rational(F(near, 100) / length)]])
        inverse *= rational(F(math.isqrt(length * 10**8), 10**4))
        worst = max((applied(row * matrix, move)[0] ** 2 / length for move in worlds(change)), default=F(0))
        assert derive(term, frozenset({"mixed"}), change).loss.mu_squared >= worst
        try:
            found = derive(term, frozenset({"mixed"}), change, Hint(inverse=inverse))
        except Refused:
            return
        assert found.loss.mu_squared >= worst

    row = st.lists(st.integers(-2, 2), min_size=3, max_size=3)
    tried(examples, holds, st.tuples(changes(), strategies(3, 4), row, st.integers(20, 150)))


def test_a_mixture_is_for_normal_noise_of_which_nothing_else_is_seen() -> None:
    change = Units((((Piece((0,), "box", F(1)),), 1),), 1)
    lattice, shows = Lattice(F(1), ((F(1),),), {}), (("a", fmpq_mat([[1, 1]])), ("b", fmpq_mat([[1, 0]])))
    hint = Hint(inverse=fmpq_mat([[1]]))
    for law, mixed, seen in (
        (Laplace((F(1), F(1))), True, {"a"}),
        (Gaussian(F(1)), False, {"a"}),
        (Gaussian(F(1)), True, {"a", "b"}),
    ):
        with pytest.raises(Refused):
            derive(Noise(Dense(fmpq_mat([[1], [1]])), law, lattice, shows, mixed), frozenset(seen), change, hint)


@EXAMPLES
def test_a_message_of_two_parties_is_no_report(examples: int) -> None:
    def holds(drawn: tuple[fmpq_mat, list[int]]) -> None:
        matrix, owner = drawn
        change = Units(tuple(((Piece((i,), "box", F(1)),), 1) for i in range(3)), 1)
        term = Reports(tuple(map(str, owner)), noisy(matrix, Gaussian(F(1))))
        local = all(len({o for o, v in zip(owner, row, strict=True) if v}) < 2 for row in matrix.tolist())
        if not local:
            with pytest.raises(Refused):
                derive(term, frozenset(), change)
            return
        # all messages are seen, whatever an observer is said to see
        worst = max(sum(v**2 for v in applied(matrix, move)) for move in worlds(change))
        assert derive(term, frozenset(), change).loss.mu_squared >= worst

    owners = st.lists(st.integers(0, 2), min_size=3, max_size=3)
    tried(examples, holds, st.tuples(strategies(2, 3), owners))


# --- tables, and parts together ----------------------------------------------------------------------------------


@st.composite
def tables(draw: st.DrawFn, name: str = "t") -> Table:
    width, height, whole = draw(st.integers(2, 4)), draw(st.integers(2, 3)), 60
    rows = []
    for _ in range(height):
        cuts = sorted(draw(st.lists(st.integers(0, whole), min_size=width - 1, max_size=width - 1)))
        rows.append(tuple(b - a for a, b in zip([0, *cuts], [*cuts, whole], strict=True)))
    places = tuple((f"{name}{k}", tuple(draw(st.integers(0, 2)) for _ in range(width))) for k in range(2))
    return Table(tuple(rows), whole, places)


def law_of(term: Table, row: int, seen: frozenset[str]) -> dict[tuple[int, ...], Fraction]:
    found: dict[tuple[int, ...], Fraction] = {}
    for column, chance in enumerate(term.rows[row]):
        shown = tuple(places[column] for name, places in term.places if name in seen)
        found[shown] = found.get(shown, F(0)) + F(chance, term.whole)
    return found


def hockey_stick(p: dict[Any, Fraction], q: dict[Any, Fraction], epsilon: Fraction) -> float:
    over = (float(v) - math.exp(epsilon) * float(q.get(key, 0)) for key, v in p.items())
    return sum(gap for gap in over if gap > 0)


EPSILONS = st.sampled_from([F(0), F(1, 3), F(1), F(2)])
SEEN = st.sampled_from([frozenset({"t0"}), frozenset({"t0", "t1"})])


@EXAMPLES
def test_laws_of_rows_let_through_no_more(examples: int) -> None:
    """Which row it is, is drawn first: by hand, one law after another."""

    def holds(drawn: tuple[Table, list[list[int]], Fraction]) -> None:
        term, shares, epsilon = drawn
        laws = tuple((*own[: len(term.rows) - 1], 60 - sum(own[: len(term.rows) - 1])) for own in shares)
        seen = frozenset({"t0"})
        found = derive(term, seen, Rows((), (tuple(range(len(laws))),), laws))
        mixed = list[dict[Any, Fraction]]()
        for law in laws:
            mixed.append({})
            for row, share in enumerate(law):
                for shown, chance in law_of(term, row, seen).items():
                    mixed[-1][shown] = mixed[-1].get(shown, F(0)) + F(share, 60) * chance
        worst = max(hockey_stick(mixed[a], mixed[b], epsilon) for a, b in permutations(range(len(laws)), 2))
        assert float(found.loss.delta_up(epsilon)) == pytest.approx(worst, abs=1e-12)

    shares = st.lists(st.lists(st.integers(0, 30), min_size=2, max_size=2), min_size=2, max_size=3)
    tried(examples, holds, st.tuples(tables(), shares, EPSILONS))


@pytest.mark.parametrize("laws", [((1, 1), (2, 1)), ((1, 1, 0), (2, 0, 0)), ((-1, 3), (1, 1)), ((0, 0), (0, 0))])
def test_what_is_no_law_of_rows_is_refused(laws: tuple[tuple[int, ...], ...]) -> None:
    term = Table(((1, 3), (2, 2)), 4, (("O", (0, 1)),))
    with pytest.raises(Refused, match="no laws of rows"):
        derive(term, frozenset({"O"}), Rows(((0, 1),), (), laws))


@EXAMPLES
def test_tables_let_through_no_more(examples: int) -> None:
    def holds(drawn: tuple[Table, frozenset[str], Fraction, bool]) -> None:
        term, seen, epsilon, clique = drawn
        listed = range(len(term.rows))
        pairs = tuple(combinations(listed, 2))
        change = Rows((), (tuple(listed),)) if clique else Rows(pairs)
        found = derive(term, seen, change)
        hinted = derive(term, seen, change, Hint(epsilon=epsilon))
        laws = [law_of(term, row, seen) for row in listed]
        worst = max(hockey_stick(laws[a], laws[b], epsilon) for a, b in [*pairs, *((b, a) for a, b in pairs)])
        assert float(found.loss.delta_up(epsilon)) == pytest.approx(worst, abs=1e-12)
        assert float(found.loss.delta_up(epsilon)) >= worst - 1e-15
        assert float(hinted.loss.delta) >= worst - 1e-15
        pure = found.loss.epsilons()
        ratios = [p / laws[b].get(key, F(0)) for a, b in [*pairs, *((b, a) for a, b in pairs)]
                  for key, p in laws[a].items() if p and laws[b].get(key)]  # fmt: skip
        endless = any(p and not laws[b].get(key) for a in listed for b in listed for key, p in laws[a].items())
        assert (pure is None) == endless
        if pure is not None:
            assert float(pure[0]) == pytest.approx(math.log(max(ratios, default=F(1))), abs=1e-12)

    tried(examples, holds, st.tuples(tables(), SEEN, EPSILONS, st.booleans()))


@EXAMPLES
def test_independent_parts_let_through_no_more(examples: int) -> None:
    """Two tables and normal noise, on one difference of all: every joint answer by itself."""

    def holds(drawn: tuple[Table, Table, int, Fraction, int]) -> None:
        one, other, moved, epsilon, count = drawn
        twice = Times(other, count)
        plain = noisy(fmpq_mat([[moved]]), Gaussian(F(2)))
        term = Independent((one, twice, plain))
        unit = Units((((Piece((0,), "box", F(1)),), 1),), 1)
        change = (Rows(((0, 1),)), Rows(((0, 1),)), unit)
        seen = term.outputs
        theorem = derive(term, seen, change)
        laws = [[law_of(part, row, seen) for row in (0, 1)] for part in (one, *[other] * count)]
        worst = 0.0
        for ways in product((0, 1), repeat=len(laws)):
            total = 0.0
            for keys in product(*(law[way] for law, way in zip(laws, ways, strict=True))):
                p = math.prod(law[way][key] for law, way, key in zip(laws, ways, keys, strict=True))
                q = math.prod(law[1 - way].get(key, F(0)) for law, way, key in zip(laws, ways, keys, strict=True))
                if p and q:
                    rest = epsilon - F(math.log(p / q)).limit_denominator(10**12)
                    total += float(p) * float(gaussian_delta_up(rest, F(moved**2, 4)))
                elif p:
                    total += float(p)
            worst = max(worst, total)
        try:
            found = theorem.loss.delta_up(epsilon)
        except Refused:
            return  # a ratio without limit
        pure = theorem.loss.epsilons()
        assert pure is not None
        responses = Loss(theorem.loss.mu_squared, tuple(map(Response, pure)), theorem.loss.delta)
        weaker = responses.delta_up(epsilon)
        assert float(min(found, weaker)) >= worst - 1e-9
        # log ratios of finite laws are rounded up to a grid, once for each law; those of a response are not
        assert weaker >= found - F(2 * len(laws), LOG_RATIOS)

    tried(examples, holds, st.tuples(tables("t"), tables("s"), st.integers(0, 3), EPSILONS, st.integers(1, 2)))


@EXAMPLES
def test_a_part_on_a_condition_lets_through_no_more(examples: int) -> None:
    """It is drawn where what is shown first is not 0; whoever sees it has to be said to see that."""

    def holds(drawn: tuple[Table, Table, Fraction]) -> None:
        first, second, epsilon = drawn
        term = Independent((first, Times(second, 1, "t0")))
        change = (Rows(((0, 1),)), Rows(((0, 1),)))
        with pytest.raises(Refused):
            derive(term, frozenset({"s0"}), change)
        seen = frozenset({"t0", "s0"})
        joint: list[dict[Any, Fraction]] = [{}, {}]
        for row in (0, 1):
            for key, p in law_of(first, row, seen).items():
                for own, q in law_of(second, row, seen).items():
                    shown = key, own if key[0] else None
                    joint[row][shown] = joint[row].get(shown, F(0)) + p * q
        try:
            found = derive(term, seen, change).loss.delta_up(epsilon)
        except Refused:
            return
        assert float(found) >= max(hockey_stick(*joint, epsilon), hockey_stick(*joint[::-1], epsilon)) - 1e-9

    tried(examples, holds, st.tuples(tables("t"), tables("s"), EPSILONS))


# --- tables of counts --------------------------------------------------------------------------------------------


def part_of(sizes: tuple[int, ...], own: tuple[int, ...], inner: fmpq_mat) -> fmpq_mat:
    """From the counts of all cells, those of columns in order last, to B_T applied to the part of a set of columns."""
    found = fmpq_mat([[1]])
    for i, n in enumerate(sizes):
        centred = [[fmpq(int(a == b)) - fmpq(1, n) for b in range(n)] for a in range(n)]
        found = kronecker(found, fmpq_mat(centred if i in own else [[1] * n]))
    return kronecker(found, inner)


def kronecker(left: fmpq_mat, right: fmpq_mat) -> fmpq_mat:
    return fmpq_mat([[a * b for a in one for b in other] for one in left.tolist() for other in right.tolist()])


def of_records(cells: int, change: Records) -> Iterator[Move]:
    """What records that come or go, or are replaced, change in the counts of all cells."""
    single = [{i: sign * F(1)} for i in range(cells) for sign in (1, -1)]
    if not change.adding:
        single = [{i: F(1), j: F(-1)} for i in range(cells) for j in range(cells) if i != j]
    for chosen in product([*single, {}], repeat=change.count):
        yield added(chosen)


@st.composite
def residual_spaces(draw: st.DrawFn) -> tuple[Residuals, int]:
    """Some sets of columns with a matrix each on cells in order, and how many of these there are."""
    sizes = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=2)))
    inner = draw(st.integers(1, 3))
    every = [own for k in range(len(sizes) + 1) for own in combinations(range(len(sizes)), k)]
    parts = {own: draw(strategies(draw(st.integers(1, 2)), inner)) for own in every if draw(st.integers(0, 3))}
    listed = list(parts)
    some = tuple(draw(st.lists(st.sampled_from(listed), unique=True))) if listed else ()
    return Residuals(sizes, parts, {"all": tuple(listed), "some": some}), inner


RECORDS = st.builds(lambda count, adding: Records(count, adding, count), st.integers(1, 2), st.booleans())


@EXAMPLES
def test_residual_spaces_let_through_no_more(examples: int) -> None:
    """mu^2 is the largest squared length of what records change, of all parts that are told of; no less, no more."""

    def holds(drawn: tuple[tuple[Residuals, int], Records, str]) -> None:
        (strategy, inner), change, name = drawn
        term = Structured(strategy, Gaussian(F(1, 2)), frozenset(strategy.told))
        seen = frozenset({name})
        cells = math.prod(strategy.sizes) * inner
        change = change if cells <= 6 else replace(change, count=1)
        parts = [part_of(strategy.sizes, own, strategy.parts[own]) for own in strategy.told[name]]
        worst = F(0)
        for move in of_records(cells, change):
            worst = max(worst, sum((v**2 for part in parts for v in applied(part, move)), F(0)))
        try:
            found = derive(term, seen, change).loss.mu_squared
        except Refused:
            assert inner > 1 and not change.adding
            return
        assert found >= 4 * worst
        # columns of one value differ in no two records: what they may say is counted all the same
        assert found == 4 * worst or (1 in strategy.sizes and not change.adding)

    tried(examples, holds, st.tuples(residual_spaces(), RECORDS, st.sampled_from(["all", "some"])))


@EXAMPLES
def test_separate_tables_let_through_no_more(examples: int) -> None:
    """Epsilon is at least the sum of what records change in all counts, in scales."""

    def holds(drawn: tuple[list[int], list[int], Records]) -> None:
        sizes, scales = tuple(drawn[0]), drawn[1]
        change = drawn[2] if math.prod(sizes) <= 6 else replace(drawn[2], count=1)
        every = [own for k in range(len(sizes) + 1) for own in combinations(range(len(sizes)), k)]
        tables = tuple((own, F(scale)) for own, scale in zip(every, scales, strict=False))
        term = Structured(Separate(sizes, tables), WholeLaplace(F(1, 3)), frozenset({"O"}))
        worst = F(0)
        for move in of_records(math.prod(sizes), change):
            total = F(0)
            for own, scale in tables:
                flat = [fmpq_mat([[int(a == b) for b in range(n)] for a in range(n)]) if i in own
                        else fmpq_mat([[1] * n]) for i, n in enumerate(sizes)]  # fmt: skip
                whole = fmpq_mat([[1]])
                for one in flat:
                    whole = kronecker(whole, one)
                total += sum(map(abs, applied(whole, move)), F(0)) / scale
            worst = max(worst, total)
        (found,) = derive(term, frozenset({"O"}), change).loss.epsilons() or [F(0)]
        assert found >= 3 * worst
        # two records that differ in all columns move two counts of every table
        assert found == 3 * worst

    drawn = st.tuples(
        st.lists(st.integers(1, 3), min_size=1, max_size=2),
        st.lists(st.integers(1, 5), min_size=1, max_size=4),
        RECORDS,
    )
    tried(examples, holds, drawn)


def test_a_part_without_noise_is_still_or_refused() -> None:
    """The number of records does not change where they are replaced; any other part does, and so does that one else."""
    parts: dict[tuple[int, ...], fmpq_mat | None] = {(): None, (0,): fmpq_mat([[1]])}
    term = Structured(Residuals((3,), parts, {"O": ((), (0,))}), Gaussian(F(1)), frozenset({"O"}))
    assert derive(term, frozenset({"O"}), Records(1, False, 1)).loss.mu_squared == 2
    with pytest.raises(Refused, match="without noise that moves"):
        derive(term, frozenset({"O"}), Records(1, True, 1))
    bare = Structured(replace(term.strategy, parts={(0,): None}, told={"O": ((0,),)}), term.law, term.outputs)
    with pytest.raises(Refused, match="without noise that moves"):
        derive(bare, frozenset({"O"}), Records(1, False, 1))


def test_tables_are_moved_by_records_alone_and_by_laws_that_fit_them() -> None:
    tables = Structured(Separate((2,), (((0,), F(1)),)), WholeLaplace(F(1)), frozenset({"O"}))
    with pytest.raises(Refused, match="other units"):
        derive(tables, frozenset({"O"}), InARow(2, F(1), 1, 1, False))
    with pytest.raises(Refused, match="squares"):
        derive(replace(tables, law=Gaussian(F(1))), frozenset({"O"}), Records(1, True, 1))
    with pytest.raises(Refused, match="with structure"):
        derive(replace(tables, law=KNorm(F(1))), frozenset({"O"}), Records(1, True, 1))


# --- keys that nobody has listed ---------------------------------------------------------------------------------


def of_key(law: Threshold, count: int) -> NDArray[np.float64]:
    """Chances of what a key of so many records shows: that it is hidden, that it occurs, or n - i from 0 on."""
    found = np.zeros(10)
    for threshold, step in enumerate(law.steps, 1):
        place = 0 if count < threshold else 1 + (count - threshold) * law.counts
        found[place] += step / sum(law.steps)
    return found


def by_key(change: Records) -> Iterator[tuple[int, ...]]:
    """By how many records some keys differ."""
    for signs in range(change.moves + 1):
        for size in product(range(1, change.each + 1), repeat=signs):
            for way in product((1, -1), repeat=signs):
                moved = [a * b for a, b in zip(size, way, strict=True)]
                gone, come = (sum(abs(v) for v in moved if v * sign > 0) for sign in (1, -1))
                if gone + come <= change.count if change.adding else max(gone, come) <= change.count:
                    yield tuple(moved)


laws_of_thresholds = st.builds(
    Threshold, st.lists(st.integers(0, 6), min_size=1, max_size=4).map(tuple).filter(any), st.booleans()
)
MOVED_KEYS = st.sampled_from([(1, True, 1), (2, True, 1), (2, True, 2), (3, True, 2), (1, False, 1), (3, True, 3)])
WITNESSES = st.one_of(
    st.sampled_from([F(0), F(1, 4), F(1, 3), F(1, 2), F(1), F(2)]),
    st.builds(Normal, st.sampled_from([F(1, 2), F(1), F(3)]), st.sampled_from([F(0), F(3, 2), F(3)])),
)


@EXAMPLES
def test_keys_above_thresholds_let_through_no_more(examples: int) -> None:
    """Whatever the witness is, the delta is at least that of all joint laws of keys at counts on either side."""

    def holds(drawn: tuple[Threshold, tuple[int, bool, int], Fraction, Fraction | Normal]) -> None:
        law, change, epsilon, by = drawn[0], Records(*drawn[1]), drawn[2], drawn[3]
        term = Shown("O", law)
        loss = derive(term, frozenset({"O"}), change, Hint(epsilon=epsilon, threshold=by)).loss
        assert loss.epsilons() == [epsilon]
        laws = [of_key(law, count) for count in range(len(law.steps) + 5)]
        worst = 0.0
        for moved in by_key(change):
            for counts in product(range(len(law.steps) + 2), repeat=len(moved)):
                if any(n + by < 0 for n, by in zip(counts, moved, strict=True)):
                    continue
                one = other = np.ones(1)
                for n, move in zip(counts, moved, strict=True):
                    one, other = np.outer(one, laws[n]).ravel(), np.outer(other, laws[n + move]).ravel()
                worst = max(worst, float(np.maximum(one - math.exp(epsilon) * other, 0).sum()))
        assert float(loss.delta) >= worst - 1e-12

    tried(examples, holds, st.tuples(laws_of_thresholds, MOVED_KEYS, EPSILONS, WITNESSES))


def test_the_delta_of_one_record_of_one_key_is_exact() -> None:
    """A key of one record is shown by a chance of 1/10, and none of no record: that is the delta, and no less."""
    term = Shown("O", Threshold((1, 8, 1), counts=False))
    alone = derive(term, frozenset({"O"}), Records(1, True, 1), Hint(epsilon=F(9), threshold=F(9)))
    assert alone.loss.delta == F(1, 10)
    with pytest.raises(Refused, match="at which epsilon"):
        derive(term, frozenset({"O"}), Records(1, True, 1))
    with pytest.raises(Refused, match="no rule"):
        derive(term, frozenset({"O"}), Rows(((0, 1),)), Hint(epsilon=F(9), threshold=F(9)))
    with pytest.raises(Refused, match="no size"):
        derive(term, frozenset({"O"}), Records(1, True, 1), Hint(epsilon=F(9), threshold=Normal(F(0), F(1))))
    with pytest.raises(Refused, match="no law"):
        Threshold((0, 0), counts=True)


# --- sequences ---------------------------------------------------------------------------------------------------


def grid_of(rows: list[list[int]]) -> Grid:
    """Weights as chances, over a common denominator."""
    whole = math.lcm(*map(sum, rows))
    entries = [weight * (whole // sum(row)) for row in rows for weight in row]
    return Grid((len(rows), len(rows[0])), F(1, whole), tuple(entries))


@st.composite
def sequences(draw: st.DrawFn) -> tuple[Sums, SequenceModel]:
    """A few entries of two or three values, some chances of which are 0; drawn in turn, or each in its own way."""
    size, length, numbers = draw(st.integers(2, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 2))
    weights = st.lists(st.integers(0, 4), min_size=size, max_size=size).filter(any)
    gains = st.lists(st.integers(0, 2), min_size=size, max_size=size).map(lambda row: tuple(v - min(row) for v in row))
    counts = tuple(tuple(draw(gains) for _ in range(numbers)) for _ in range(length))
    none = Grid((0, size), F(1), ())
    if draw(st.booleans()):
        rows = [draw(weights) for _ in range(size * draw(st.integers(1, 2)))]
        return Sums(counts), SequenceModel(grid_of([draw(weights)]), grid_of(rows))
    network = list[ConditionalLaw]()
    for t in range(length):
        parents = tuple(sorted(draw(st.sets(st.integers(0, t - 1), max_size=2)))) if t else ()
        network.append(ConditionalLaw(parents, grid_of([draw(weights) for _ in range(size ** len(parents))])))
    return Sums(counts), SequenceModel(none, none, tuple(network))


def of_sequences(sums: Sums, model: SequenceModel) -> Iterator[dict[tuple[int, ...], Fraction]]:
    """For each law of a model the chance of every sequence."""
    values = list(product(range(sums.size), repeat=sums.length))
    if model.network:
        found = dict.fromkeys(values, F(1))
        for x in values:
            for s, law in zip(x, model.network, strict=True):
                row = 0
                for parent in law.parents:
                    row = row * sums.size + x[parent]
                found[x] *= law.chances.rows[row][s] * law.chances.unit
        yield found
    for _, first, step in model.every():
        units = model.starts.unit * model.steps.unit ** (sums.length - 1)
        yield {x: math.prod((step[a][b] for a, b in pairwise(x)), start=first[x[0]]) * units for x in values}


def noisy_chance(answer: tuple[int, ...], seen: tuple[int, ...], scale: Fraction) -> float:
    return math.exp(-sum(abs(a - w) for a, w in zip(answer, seen, strict=True)) / scale)


def largest_ratio(sums: Sums, model: SequenceModel, scale: Fraction) -> float:
    """The largest log ratio of what is seen given two values of an entry, at all answers and a step beyond."""
    top = [sum(max(rows[j]) for rows in sums.counts) for j in range(sums.numbers)]
    box, worst = list(product(*(range(-1, most + 2) for most in top))), 0.0
    for chances in of_sequences(sums, model):
        for t in range(sums.length):
            laws = []
            for s in range(sums.size):
                given: dict[tuple[int, ...], float] = {}
                for x, p in chances.items():
                    if x[t] == s and p:
                        rows = zip(*(sums.counts[u][:] for u in range(sums.length)), strict=True)
                        answer = tuple(sum(row[v] for row, v in zip(own, x, strict=True)) for own in rows)
                        given[answer] = given.get(answer, 0.0) + float(p)
                if given:
                    whole = sum(given.values())
                    laws.append([sum(p * noisy_chance(a, w, scale) for a, p in given.items()) / whole for w in box])
            for seen in zip(*laws, strict=True):
                worst = max(worst, math.log(max(seen) / min(seen)))
    return worst


@st.composite
def proofs(draw: st.DrawFn, sums: Sums, model: SequenceModel) -> Proof:
    """Any of the ways to show it, also where it shows nothing."""
    ways = [ByLaws(), ByWindows(draw(st.integers(0, 3)))]
    size = len(model.every()) * sums.length * sums.size**2 * 2
    ways.append(ByQuilts(tuple(draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)))))
    ways.append(ByQuilts(tuple([0] * size)))
    return draw(st.sampled_from(ways))


@EXAMPLES
def test_noisy_sums_of_a_sequence_let_through_no_more(examples: int) -> None:
    """Given a model, by laws just what is true, and by quilts and windows no less; without one, all that moves."""

    def holds(data: st.DataObject) -> None:
        sums, model = data.draw(sequences())
        scale, seen = data.draw(st.sampled_from([F(1, 2), F(2), F(5)])), frozenset({"O"})
        term = Structured(sums, WholeLaplace(scale), seen)
        for every in (False, True):
            (found,) = derive(term, seen, Entries(every)).loss.epsilons() or [F(0)]
            moved = F(0)
            for x, y in product(product(range(sums.size), repeat=sums.length), repeat=2):
                if every or sum(a != b for a, b in zip(x, y, strict=True)) <= 1:
                    own = zip(sums.counts, x, y, strict=True)
                    steps = [[row[a] - row[b] for row in rows] for rows, a, b in own]
                    moved = max(moved, F(sum(abs(sum(one)) for one in zip(*steps, strict=True))))
            assert found >= moved / scale
            assert every or found == moved / scale
        proof = data.draw(proofs(sums, model))
        worst = largest_ratio(sums, model, scale)
        try:
            (given,) = derive(term, seen, GivenModel(model), Hint(sequence=proof)).loss.epsilons() or [F(0)]
        except Refused:
            return
        assert float(given) >= worst - 1e-9
        if isinstance(proof, ByLaws):
            assert float(given) == pytest.approx(worst, abs=1e-9)

    tried(examples, holds, st.data())


def test_models_and_sums_that_do_not_fit_are_refused() -> None:
    one, two = grid_of([[1, 1]]), grid_of([[1, 1], [1, 3]])
    model = SequenceModel(one, two)
    sums = Sums((((0, 1),), ((0, 1),)))
    term = Structured(sums, WholeLaplace(F(1)), frozenset({"O"}))
    with pytest.raises(Refused, match="does not say how"):
        derive(term, frozenset({"O"}), GivenModel(model))
    with pytest.raises(Refused, match="no noisy sum"):
        derive(replace(term, law=Gaussian(F(1))), frozenset({"O"}), GivenModel(model), Hint(sequence=ByLaws()))
    with pytest.raises(Refused, match="other units"):
        derive(term, frozenset({"O"}), Records(1, True, 1))
    for steps, words in ((grid_of([[1, 1]]), "parts of one"), (Grid((2, 2), F(1, 2), (1, 1, 1, 2)), "add up")):
        with pytest.raises(Refused, match=words):
            SequenceModel(one, steps)
    network = SequenceModel(Grid((0, 2), F(1), ()), Grid((0, 2), F(1), ()), (ConditionalLaw((), one),))
    three = SequenceModel(grid_of([[1, 1, 1]]), grid_of([[1, 1, 1]] * 3))
    for other in (network, three):
        with pytest.raises(Refused, match="other entries"):
            derive(term, frozenset({"O"}), GivenModel(other), Hint(sequence=ByLaws()))
    for counts in ((((1, 2),),), (((0, -1),),), (((0, 1),), ((0, 1), (0, 1)))):
        with pytest.raises(Refused, match="has entries"):
            Sums(counts)


# --- what no rule makes ------------------------------------------------------------------------------------------


def test_a_theorem_is_neither_made_nor_changed_elsewhere() -> None:
    term = noisy(fmpq_mat([[1]]), Gaussian(F(1)))
    change = Units((((Piece((0,), "box", F(1)),), 1),), 1)
    theorem = derive(term, frozenset({"a0"}), change)
    with pytest.raises(Refused):
        Theorem(object(), term, frozenset({"a0"}), change, Loss())
    with pytest.raises(Refused):
        theorem.loss = Loss()
    with pytest.raises(Refused):
        Loss(mu_squared=F(-1))


def test_every_part_is_on_a_change_of_its_own_and_its_theorem_is_about_what_is_seen_of_it() -> None:
    one, other = noisy(fmpq_mat([[1]]), Gaussian(F(1))), noisy(fmpq_mat([[5]]), Gaussian(F(1)))
    other = replace(other, shows=tuple((f"b{name}", shown) for name, shown in other.shows))
    change = Units((((Piece((0,), "box", F(1)),), 1),), 1)
    parts, names = Independent((one, other)), [*one.outputs, *other.outputs]
    for changes in ((change,), (change, change, change)):
        with pytest.raises(ValueError, match="zip"):
            independent(parts, frozenset(names), changes)
    seen = [frozenset(names[:k]) for k in range(3)]
    assert [independent(parts, some, (change, change)).loss.mu_squared for some in seen] == [0, 1, 26]


def test_what_changes_and_is_seen_is_never_still() -> None:
    term = noisy(fmpq_mat([[1]]), Gaussian(F(1)))
    with pytest.raises(Refused):
        derive(term, frozenset({"a0"}), Rows(((0, 1),)))
