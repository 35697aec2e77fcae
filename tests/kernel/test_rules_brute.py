"""Every rule and every law beside brute force: worlds are enumerated, and laws are worked out point by point."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, pairwise, product
from typing import Any

import pytest
from flint import fmpq_mat
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privspec.kernel.changes import Piece, Rows, Units
from privspec.kernel.core.numbers import gaussian_delta_up, rational
from privspec.kernel.core.reading import Refused
from privspec.kernel.laws.gaussian import Gaussian, GaussianShares
from privspec.kernel.laws.knorm import KNorm
from privspec.kernel.laws.laplace import Laplace
from privspec.kernel.laws.law import Law
from privspec.kernel.laws.staircase import Staircase
from privspec.kernel.losses import GRID as LOG_RATIOS
from privspec.kernel.losses import Loss
from privspec.kernel.rules import Hint, Theorem, derive, independent, weaken
from privspec.kernel.stepped import Stepped
from privspec.kernel.strategies.dense import Dense, Lattice
from privspec.kernel.terms import Independent, Noise, Reports, Shares, Table, Times

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
        term = noisy(fmpq_mat([[factor]]), Staircase(law), F(1), F(1))
        found = derive(term, EVERY & term.outputs, change).loss
        for move in range(1, amount + 1):
            shift = move * abs(factor)
            gaps = (p - math.exp(law.epsilon) * chances.get(z + shift, 0.0) for z, p in chances.items())
            delta = sum(gap for gap in gaps if gap > 0) if shift else 0.0
            assert delta <= float(found.delta) + 1e-6

    tried(examples, holds, st.tuples(stairs(), st.integers(-3, 3), st.integers(1, 4)))


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
        weaker = weaken(theorem).loss.delta_up(epsilon)
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


def test_theorems_about_other_terms_or_views_are_no_premises() -> None:
    one, other = noisy(fmpq_mat([[1]]), Gaussian(F(1))), noisy(fmpq_mat([[5]]), Gaussian(F(1)))
    change = Units((((Piece((0,), "box", F(1)),), 1),), 1)
    little = derive(one, frozenset({"a0"}), change)
    nothing = derive(one, frozenset(), change)
    with pytest.raises(Refused):
        independent(Independent((other,)), frozenset({"a0"}), (little,))
    with pytest.raises(Refused):
        independent(Independent((one,)), frozenset({"a0"}), (nothing,))


def test_what_changes_and_is_seen_is_never_still() -> None:
    term = noisy(fmpq_mat([[1]]), Gaussian(F(1)))
    with pytest.raises(Refused):
        derive(term, frozenset({"a0"}), Rows(((0, 1),)))
