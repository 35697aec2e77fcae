"""Laws of choices, and long rows, beside brute force: all data sets, neighbours and answers are enumerated."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise, permutations, product
from math import comb, exp, log

import pytest
from hypothesis import strategies as st

from privspec.kernel.changes import Anything, ByDistance, InARow, Records
from privspec.kernel.core.reading import Refused
from privspec.kernel.laws.exponential import BoundedRange, ByScores, Target
from privspec.kernel.laws.gaussian import Gaussian
from privspec.kernel.laws.knorm import NORMS, KNormBlocks, NoisyPoint
from privspec.kernel.laws.subsets import SetOfValues
from privspec.kernel.rules import derive
from privspec.kernel.strategies.banded import BITS, Banded, roots
from privspec.kernel.terms import Pick, Structured

from .test_rules_brute import EXAMPLES, F, tried

CLOSE = 1e-9
Held = tuple[int, ...]
"""The answer nearest to each record."""


# --- draws by scores ---------------------------------------------------------------------------------------------


def scores(held: Held, size: int, target: Target | None) -> list[int]:
    """Whole steps by which answers are behind, from what the note says alone."""
    counts = Counter(held)
    if target is None:
        most = max(counts[r] for r in range(size))
        return [most - counts[r] for r in range(size)]
    unit, aim = target.share.denominator, target.aim(len(held))
    below = [sum(counts[s] for s in range(r)) for r in range(size)]
    away = [max(low - aim, aim - low - counts[r], F(0)) * unit for r, low in enumerate(below)]
    assert all(step.denominator == 1 for step in away)
    return [int(step) for step in away]


def chances(behind: list[int], family: str, base: Fraction) -> list[Fraction]:
    """Exactly: in proportion to base^-score, or the first of a random order that is taken by that chance."""
    taken = [base**-step for step in behind]
    if family == "exponential":
        return [one / sum(taken) for one in taken]
    assert min(behind) == 0
    found = [F(0)] * len(behind)
    orders = list(permutations(range(len(behind))))
    for order in orders:
        left = F(1)
        for r in order:
            found[r] += left * taken[r] / len(orders)
            left *= 1 - taken[r]
    return found


@dataclass(frozen=True)
class Drawn:
    """A law, how many records there are, how many of them change and how, and by how much answers are handicapped."""

    law: ByScores
    records: int
    change: Records
    handicaps: tuple[int, ...]

    def law_of(self, held: Held) -> list[Fraction]:
        behind = [a + b for a, b in zip(scores(held, self.law.size, self.law.target), self.handicaps, strict=True)]
        return chances(behind, self.law.family, self.law.base)

    def few(self, some: Held) -> bool:
        """Whether one person may have these records."""
        return all(count <= self.change.each for count in Counter(some).values())

    def neighbours(self) -> list[tuple[Held, Held]]:
        every = range(self.law.size)
        if self.change.adding:
            bases = [combinations_with_replacement(every, n) for n in range(self.records + 1)]
            return [
                (held, (*held, *more))
                for listed in bases
                for held in listed
                for count in range(1, self.change.count + 1)
                for more in combinations_with_replacement(every, count)
                if self.few(more)
            ]
        found = []
        for held in product(every, repeat=self.records):
            for count in range(1, min(self.change.count, self.records) + 1):
                if self.few(held[:count]):
                    some = (more for more in product(every, repeat=count) if self.few(more))
                    found += [(held, (*more, *held[count:])) for more in some]
        return found


@st.composite
def draws(draw: st.DrawFn) -> Drawn:
    adding = draw(st.booleans())
    size, records = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    share = draw(st.sampled_from([None, F(0), F(1, 3), F(1, 2), F(3, 4), F(1)]))
    # records that come and go may lie on either side of what is added to the aim: it is said of known numbers alone
    offset = 0 if adding else draw(st.sampled_from([0, 0, 1]))
    target = None if share is None else Target(share, offset)
    handicaps = draw(st.one_of(st.just((0,) * size), st.tuples(*[st.integers(0, 3)] * size)))
    family = "exponential" if any(handicaps) else draw(st.sampled_from(["exponential", "permute_and_flip"]))
    base = draw(st.sampled_from([F(1), F(9, 8), F(3, 2), F(5, 2), F(20)]))
    law = ByScores(family, base, size, target, None if adding else records, False, any(handicaps))
    count = draw(st.integers(1, 2))
    return Drawn(law, records, Records(count, adding, draw(st.integers(1, count))), handicaps)


def lets_through_no_more(drawn: Drawn) -> None:
    """No chance of an answer is more than e^epsilon times that beside neighbours; log ratios are as near as said."""
    (factor,) = derive(Pick("O", drawn.law), frozenset({"O"}), drawn.change).loss.factors
    assert factor.epsilon is not None
    most = exp(factor.epsilon) * (1 + CLOSE)
    spread = exp(factor.spread) * (1 + CLOSE) if isinstance(factor, BoundedRange) else None
    known: dict[Held, list[Fraction]] = {}
    for one, other in drawn.neighbours():
        p, q = (known.setdefault(held, drawn.law_of(held)) for held in (tuple(sorted(one)), tuple(sorted(other))))
        ratios = [a / b for a, b in zip(p, q, strict=True) if a or b]
        assert max(ratios) <= most
        assert 1 / min(ratios) <= most
        if spread is not None:
            assert max(ratios) / min(ratios) <= spread


@EXAMPLES
def test_draws_by_scores_let_through_no_more(examples: int) -> None:
    tried(examples, lets_through_no_more, draws())


@pytest.mark.parametrize("share", [None, F(0), F(1, 3), F(1, 2)], ids=str)
@pytest.mark.parametrize("adding", [True, False], ids=["adding", "replacing"])
@pytest.mark.parametrize("family", ["exponential", "permute_and_flip"])
def test_draws_of_each_kind_let_through_no_more(family: str, adding: bool, share: Fraction | None) -> None:
    target = None if share is None else Target(share, 0)
    law = ByScores(family, F(3, 2), 3, target, None if adding else 3, False, False)
    lets_through_no_more(Drawn(law, 3, Records(1, adding, 1), (0, 0, 0)))


@EXAMPLES
def test_draws_in_groups_let_through_no_more(examples: int) -> None:
    """An answer for each of two groups: a record is of one of them, and may leave it for the other."""

    def holds(drawn: tuple[str, Fraction, Fraction | None, bool, int]) -> None:
        family, base, share, adding, size = drawn
        target = None if share is None else Target(share, 0)
        law = ByScores(family, base, size, target, None, True, False)
        change = Records(1, adding, 1)
        (factor,) = derive(Pick("O", law), frozenset({"O"}), change).loss.factors
        assert factor.epsilon is not None
        most = exp(factor.epsilon) * (1 + CLOSE)
        spread = exp(factor.spread) * (1 + CLOSE) if isinstance(factor, BoundedRange) else None
        cells = list(product(range(2), range(size)))
        fewer = [list(held) for n in range(3) for held in combinations_with_replacement(cells, n)]
        if adding:
            pairs = [(held, [*held, cell]) for held in fewer for cell in cells]
        else:
            pairs = [([*held, a], [*held, b]) for held in fewer for a in cells for b in cells]
        for one, other in pairs:
            sides = []
            for held in (one, other):
                groups = [tuple(answer for group, answer in held if group == number) for number in range(2)]
                sides.append([chances(scores(own, size, target), family, base) for own in groups])
            ratios = [
                (sides[0][0][i] * sides[0][1][j]) / (sides[1][0][i] * sides[1][1][j])
                for i in range(size)
                for j in range(size)
            ]
            assert max(ratios) <= most
            assert 1 / min(ratios) <= most
            if spread is not None:
                assert max(ratios) / min(ratios) <= spread

    families = st.sampled_from(["exponential", "permute_and_flip"])
    bases = st.sampled_from([F(9, 8), F(3, 2), F(5, 2), F(20)])
    shares = st.sampled_from([None, F(0), F(1, 3), F(1, 2), F(1)])
    tried(examples, holds, st.tuples(families, bases, shares, st.booleans(), st.integers(2, 3)))


# --- reports -----------------------------------------------------------------------------------------------------


@EXAMPLES
def test_sets_of_values_let_through_what_is_charged(examples: int) -> None:
    """Chances of all sets beside two values: the largest ratio is the one that is charged."""

    def holds(drawn: tuple[int, int, Fraction]) -> None:
        values, subset, weight = drawn
        subset = min(subset, values - 1)
        # any chance between that of a uniform set and 1
        low = F(subset, values)
        chance = low + (1 - low) * weight
        law = SetOfValues(values, ((subset, chance),))
        (factor,) = derive(Pick("O", law), frozenset({"O"}), Anything()).loss.factors
        assert factor.epsilon is not None
        inside, outside = chance / comb(values - 1, subset - 1), (1 - chance) / comb(values - 1, subset)
        ratios = [
            (inside if 0 in one else outside) / (inside if 1 in one else outside)
            for one in combinations(range(values), subset)
        ]
        assert max(ratios) <= exp(factor.epsilon) * (1 + CLOSE)
        assert log(max(ratios)) >= float(factor.epsilon) - CLOSE

    weights = st.fractions(F(1, 1000), F(999, 1000), max_denominator=1000)
    tried(examples, holds, st.tuples(st.integers(2, 7), st.integers(1, 6), weights))


def squared(move: tuple[int, ...], norm: str) -> Fraction:
    """The square of a norm."""
    sizes = {"l1": sum(map(abs, move)) ** 2, "l2": sum(v * v for v in move), "linf": max(map(abs, move)) ** 2}
    return F(sizes[norm])


@EXAMPLES
def test_noisy_points_let_through_no_more(examples: int) -> None:
    """Densities of two points let through their distance in scales, in any norm that distance is told in."""

    def holds(drawn: tuple[str, str, Fraction, tuple[int, ...], list[tuple[int, ...]]]) -> None:
        norm, other, scale, move, points = drawn
        (factor,) = derive(
            Pick("O", NoisyPoint(norm, len(move), scale, None)), frozenset({"O"}), ByDistance(other)
        ).loss.factors
        assert factor.epsilon is not None
        for at in points:
            beside = tuple(a - b for a, b in zip(at, move, strict=True))
            through = abs(float(squared(at, norm)) ** 0.5 - float(squared(beside, norm)) ** 0.5) / float(scale)
            assert through <= float(factor.epsilon) * float(squared(move, other)) ** 0.5 * (1 + CLOSE) + CLOSE
        with pytest.raises(Refused, match="nothing is known"):
            derive(Pick("O", NoisyPoint(norm, len(move), scale, None)), frozenset({"O"}), Anything())

    vectors = st.integers(1, 4).flatmap(
        lambda n: st.tuples(st.tuples(*[st.integers(-9, 9)] * n), st.lists(st.tuples(*[st.integers(-9, 9)] * n)))
    )
    scales = st.sampled_from([F(1, 3), F(1), F(7, 2)])
    drawn = st.tuples(st.sampled_from(NORMS), st.sampled_from(NORMS), scales, vectors)
    tried(examples, holds, drawn.map(lambda one: (*one[:3], *one[3])))


# --- long rows ---------------------------------------------------------------------------------------------------


@EXAMPLES
def test_long_rows_let_through_no_more(examples: int) -> None:
    """Every choice of places that are far enough apart, and of their signs, by the strategy as it is written."""

    def holds(drawn: tuple[Banded, InARow]) -> None:
        strategy, change = drawn
        size = strategy.size
        found = derive(Structured(strategy, Gaussian(F(1)), frozenset({"O"})), frozenset({"O"}), change).loss.mu_squared
        first = [F(value, 2**BITS) for value in roots(strategy.ramp, strategy.band)]
        deviations = [s for s, count in zip(strategy.deviations, strategy.lengths, strict=True) for _ in range(count)]
        worst = F(0)
        for count in range(1, change.count + 1):
            for places in combinations(range(size), count):
                steps = [b - a for a, b in pairwise(places)]
                if any(step != change.apart if change.exactly else step < change.apart for step in steps):
                    continue
                for signs in product((1, -1), repeat=count):
                    moved = [F(0)] * size
                    for place, sign in zip(places, signs, strict=True):
                        for m, value in enumerate(first[: size - place]):
                            moved[place + m] += sign * value * change.amount
                    worst = max(worst, sum(((v / s) ** 2 for v, s in zip(moved, deviations, strict=True)), F(0)))
        assert found >= worst

    tried(examples, holds, rows())


@st.composite
def rows(draw: st.DrawFn) -> tuple[Banded, InARow]:
    lengths = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    deviations = st.lists(st.sampled_from([F(1), F(2), F(7, 3)]), min_size=len(lengths), max_size=len(lengths))
    band = draw(st.integers(1, sum(lengths)))
    ramp = draw(st.sampled_from([F(0), F(1, 2), F(3)]))
    strategy = Banded(ramp, band, lengths, tuple(draw(deviations)))
    amount, exactly = draw(st.sampled_from([F(1), F(1, 3), F(5)])), draw(st.booleans())
    change = InARow(strategy.size, amount, draw(st.integers(1, 3)), draw(st.integers(1, 4)), exactly)
    return strategy, change


# --- vectors of K-norm noise -------------------------------------------------------------------------------------

STEPS = 6


def cells(parts: tuple[int, ...], at: tuple[float, float], reach: int = 7) -> dict[tuple[int, int], float]:
    """Chances of whole numbers for a vector at a point, of scales 1 and 1/2: sums over a finer lattice."""
    found = dict[tuple[int, int], float]()
    offsets = [(i + 0.5) / STEPS - 0.5 for i in range(STEPS)]
    for x, y in product(range(-reach, reach + 1), repeat=2):
        total = 0.0
        for dx, dy in product(offsets, repeat=2):
            sizes = abs(x + dx - at[0]), abs(y + dy - at[1]) * 2
            total += exp(-(max(sizes) if parts == (1, 1) else sum(sizes)))
        found[x, y] = total
    return found


@pytest.mark.parametrize("parts", [(1, 1), (2,)])
def test_rounded_vectors_tell_neighbours_apart_by_the_norm_at_most(parts: tuple[int, ...]) -> None:
    """The chances of rounded points, summed up cell by cell; and the moments that the law states, by the same sums."""
    law = KNormBlocks((((F(1),), (F(1, 2),)) if parts == (1, 1) else ((F(1), F(1, 2)),),))
    here = cells(parts, (0.0, 0.0), 14)
    for d in ((1.0, 0.0), (0.5, 0.5), (1.0, -0.5), (0.25, 0.5), (0.0, 1.0)):
        sizes = abs(d[0]), 2 * abs(d[1])
        epsilon = max(sizes) if parts == (1, 1) else sum(sizes)
        ratios = [abs(log(here[cell] / chance)) for cell, chance in cells(parts, d).items()]
        assert 0.9 * epsilon < max(ratios) <= epsilon + CLOSE
    whole = sum(here.values())
    squares = [sum(chance * cell[i] ** 2 for cell, chance in here.items()) / whole for i in (0, 1)]
    # a rounded number has about a twelfth more
    assert squares == pytest.approx([float(v) + 1 / 12 for v in law.variances(2, F(1))], rel=0.05)


@pytest.mark.parametrize("blocks", [(), ((),), (((F(1),), ()),), (((F(0),),),), (((F(1), F(-1)),),)])
def test_blocks_that_are_none_are_refused(blocks: tuple[tuple[tuple[Fraction, ...], ...], ...]) -> None:
    with pytest.raises(Refused):
        KNormBlocks(blocks)
