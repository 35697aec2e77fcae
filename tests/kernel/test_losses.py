"""Composition by what parts execute: beside brute force over all pairs of worlds, integrals, and an accountant."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from privspec.kernel.counted import _of_laws
from privspec.kernel.laws.voting import BY_NAME, Ballots
from privspec.kernel.losses import CHANCES, GRID, PrivacyLoss, covers, kept, pair_of, response
from privspec.kernel.measures import PURE
from privspec.kernel.promises import Line, Question
from privspec.kernel.systems import delta_of
from privspec.kernel.voting import Executed, RuleAt, Total, Vote

ZERO = Fraction(0)


def gaussian(mu: float) -> PrivacyLoss:
    """Noise that reaches its mu."""
    square = Fraction(mu).limit_denominator(10**9) ** 2
    return PrivacyLoss(own=True, mu_squared=(square, square))


def table(rows: list[list[int]], pairs: list[tuple[int, int]]) -> PrivacyLoss:
    found = kept([(rows[a], rows[b]) for i, j in pairs for a, b in ((i, j), (j, i))], sum(rows[0]))
    assert found is not None
    return found


def curve(epsilon: float, mu: float) -> float:
    if mu == 0:
        return max(0.0, 1 - math.exp(epsilon))
    return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


def brute(epsilon: float, mu: float, laws: list[tuple[list[list[int]], list[tuple[int, int]]]]) -> float:
    """The largest divergence over all pairs of worlds, each part moved or not; every answer by itself."""
    worst = 0.0
    ways = [[*pairs, *((b, a) for a, b in pairs), *((a, a) for a, _ in pairs)] for _, pairs in laws]
    for picked in product(*ways):
        total = 0.0
        for answers in product(*(range(len(rows[0])) for rows, _ in laws)):
            p = math.prod(rows[a][o] / sum(rows[a]) for (rows, _), (a, _), o in zip(laws, picked, answers, strict=True))
            q = math.prod(rows[b][o] / sum(rows[b]) for (rows, _), (_, b), o in zip(laws, picked, answers, strict=True))
            total += p * curve(epsilon - math.log(p / q), mu) if p else 0.0
        worst = max(worst, total)
    return worst


WHOLE = 1000


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[int]], list[tuple[int, int]]]:
    """Two to four rows of chances over two to four values, and some of the pairs of rows."""
    count, size = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    rows = []
    for _ in range(count):
        cuts = sorted(draw(st.lists(st.integers(1, WHOLE - 1), min_size=size - 1, max_size=size - 1, unique=True)))
        rows.append([b - a for a, b in zip([0, *cuts], [*cuts, WHOLE], strict=True)])
    every = [(a, b) for a in range(count) for b in range(a)]
    return rows, draw(st.lists(st.sampled_from(every), min_size=1, unique=True))


@given(
    laws=st.lists(tables(), min_size=1, max_size=2),
    mu=st.sampled_from([0.0, 0.2, 1.0]),
    epsilon=st.sampled_from([0.0, 0.3, 1.0, 2.0]),
)
@settings(deadline=None, max_examples=40)
def test_finite_laws_and_a_gaussian_are_composed_as_all_pairs_of_worlds_are(
    laws: list[Any], mu: float, epsilon: float
) -> None:
    parts = [(table(*one), 1) for one in laws]
    ends = delta_of(Fraction(epsilon), [(gaussian(mu), 1), *parts])
    assert ends is not None
    expected, beside = brute(epsilon, mu, laws), brute(epsilon * (1 - 1e-6), mu, laws)
    assert float(ends[0]) == pytest.approx(expected, rel=1e-8, abs=1e-10)
    assert ends[0] >= Fraction(expected) - Fraction(1, 10**11)
    assert float(ends[1]) == pytest.approx(beside, rel=1e-8, abs=1e-10)
    assert ends[1] <= Fraction(beside) + Fraction(1, 10**11)


def test_runs_of_a_part_move_along_the_same_pair() -> None:
    rows = [[700, 200, 100], [350, 400, 250]]
    same = max(
        sum(
            math.prod(rows[a][o] / WHOLE for o in answers)
            * curve(0.5 - sum(math.log(rows[a][o] / rows[b][o]) for o in answers), 0.3)
            for answers in product(range(3), repeat=2)
        )
        for a, b in ((0, 1), (1, 0))
    )
    ends = delta_of(Fraction(1, 2), [(gaussian(0.3), 1), (table(rows, [(0, 1)]), 2)])
    assert ends is not None
    assert float(ends[0]) == pytest.approx(same, rel=1e-8)


@pytest.mark.parametrize("mu", [0.0, 0.15, 1.0])
@pytest.mark.parametrize("own", [0.05, 0.7, 2.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5])
def test_a_laplace_law_is_two_atoms_and_a_density(mu: float, own: float, epsilon: float) -> None:
    """By quadrature over the noise itself, not over log ratios; the lattice is too fine to be seen."""
    laplace = PrivacyLoss(own=True, laplace=(Fraction(own), Fraction(own)), step=Fraction(1, 2**40))
    rows = [[600, 400], [400, 600]]
    ends = delta_of(Fraction(epsilon), [(gaussian(mu), 1), (laplace, 1), (table(rows, [(0, 1)]), 1)])
    assert ends is not None

    def at(x: float) -> float:
        """Noise at x, where the value is 0 in one world and `own` scales above it in the other."""
        ratio = abs(x - own) - abs(x)
        p = math.exp(-abs(x)) / 2
        return p * sum(c / WHOLE * curve(epsilon - ratio - math.log(c / d), mu) for c, d in zip(*rows, strict=True))

    pieces = [(-40.0, 0.0), (0.0, own), (own, own + 40.0)]
    expected = sum(quad(at, *ends, epsabs=1e-12, limit=400)[0] for ends in pieces)
    assert float(ends[0]) == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert ends[1] <= ends[0] or epsilon > 0


def test_the_law_of_a_lattice_is_between_both_ends() -> None:
    """Two-sided geometric noise with a coarse step, value by value."""
    step, moves = 0.01, 70
    laplace = PrivacyLoss(own=True, laplace=(Fraction(moves, 100), Fraction(moves, 100)), step=Fraction(1, 100))
    for epsilon, mu in ((0.2, 0.0), (0.5, 0.0), (0.5, 0.3), (1.0, 0.3)):
        at = np.arange(-3000, 3000)
        p = np.exp(-step * np.abs(at)) * np.tanh(step / 2)
        ratio = step * (np.abs(at - moves) - np.abs(at))
        expected = sum(float(a) * curve(epsilon - float(r), mu) for a, r in zip(p, ratio, strict=True))
        ends = delta_of(Fraction(epsilon), [(gaussian(mu), 1), (laplace, 1)])
        assert ends is not None
        assert float(ends[1]) <= expected <= float(ends[0])


# --- pairs -------------------------------------------------------------------------------------------------------


def test_a_pair_counts_for_another_only_if_it_lets_through_as_much_everywhere() -> None:
    def law(one: list[int], other: list[int]) -> dict[int, int]:
        pair = pair_of(one, other, WHOLE)
        assert pair is not None
        return pair[0]

    response, coarse = law([600, 400], [400, 600]), law([550, 450], [450, 550])
    assert covers(response, coarse)
    assert not covers(coarse, response)
    rare = law([20, 980], [10, 990])  # ratio 2, of small chance: covers neither, and is covered by neither
    assert not covers(response, rare)
    assert not covers(rare, response)
    back = law([10, 990], [20, 980])
    assert not covers(rare, back)
    assert len(kept([([20, 980], [10, 990]), ([10, 990], [20, 980])], WHOLE).pairs) == 2  # type: ignore[union-attr]


def test_a_chain_of_pairs_does_not_add_up_what_each_lets_another_spare() -> None:
    """Each pair lets through a little less at 0 than the one before, within the slack, and a little more beyond."""
    whole, size, step = 2**58, 2**56, 2**16
    chain = []
    for i in range(200):
        high, low = size + i * step, size - i * (3 * step // 2 + 5 * step // 8)
        one, other = [high, low], [high // 4, low // 2]
        chain.append(([*one, whole - sum(one)], [*other, whole - sum(other)]))
    found = kept(chain, whole)
    assert found is not None
    least = max(sum(max(p - q, 0) for p, q in zip(*pair, strict=True)) for pair in chain) * Fraction(1, whole)
    with_ratios = (
        sum(chance * (1 - math.exp(-at / GRID)) for at, chance in up.items() if at > 0) for up, _ in found.pairs
    )
    assert max(with_ratios) / CHANCES >= float(least)


def test_answers_alike_are_one_and_rounded_against_the_plan() -> None:
    pair = pair_of([333, 333, 334], [333, 333, 334], WHOLE)
    assert pair is not None
    (log, chance), *more = pair[0].items()
    assert not more
    assert 0 <= log <= 8
    assert chance == CHANCES
    (low, least), *_ = pair[1].items()
    assert -8 <= low <= 0
    assert least <= CHANCES
    assert pair_of([1, 999], [0, 1000], WHOLE) is None


def test_too_many_picks_are_left_to_the_upper_bound() -> None:
    rows = [[500 + 7 * k, 300 - 3 * k, 200 - 4 * k] for k in range(40)]
    many = table(rows, [(a, a + 1) for a in range(39)])
    if len(many.pairs) > 22:
        assert delta_of(Fraction(1), [(many, 1), (many, 1)]) is None
    laplace = PrivacyLoss(own=True, laplace=(Fraction(1), Fraction(1)), step=Fraction(1, 2**40))
    assert delta_of(Fraction(1), [(laplace, 2)]) is None


@pytest.mark.parametrize(("family", "number"), [("dictator", "1/2"), ("dictator", "7"), ("local_dictator", "3")])
@pytest.mark.parametrize(("voters", "alternatives"), [(1, "ab"), (5, "ab"), (4, "abc"), (3, "abcd")])
def test_votes_count_by_electorates_in_which_all_others_agree(
    family: str, number: str, voters: int, alternatives: str
) -> None:
    """Beside every electorate and every change of one vote: those that are looked at let through as much."""
    ballots = Ballots("first choice", tuple(alternatives), 1, "first choice")
    rule, amount = RuleAt(BY_NAME[family], Fraction(number)), {BY_NAME[family].parameter: Fraction(number)}
    vote = Vote(
        "vote", "voter", "seat", voters, False, ballots, None, Total((), ZERO), "", (), None, ()
    )  # fmt: skip
    unit = SimpleNamespace(adding=False, kind="party", count=1)
    executed, obligation = Executed(vote, family, {}, **amount), SimpleNamespace(units=[unit])
    question = Question(vote.change(cast("Any", obligation)), {}, {})
    line = Line(1, executed.term.outputs, PURE, (question,))
    found = _of_laws(cast("Any", SimpleNamespace(promised=(executed.term, [line]))), executed, 0, {})
    assert found is not None
    assert found.own
    every = [one for one in product(range(voters), repeat=len(alternatives)) if sum(one) == voters - 1]
    for epsilon, mu in ((0.0, 0.0), (0.2, 0.0), (0.1, 0.3), (0.6, 0.3)):
        worst = 0.0
        for rest, to in product(every, range(1, len(alternatives))):
            pair = [rule.law(tuple(Fraction(n + (a == own)) for a, n in enumerate(rest))) for own in (0, to)]
            for one, other in (pair, pair[::-1]):
                terms = ((float(p), math.log(p / q)) for p, q in zip(one, other, strict=True))
                worst = max(worst, sum(p * curve(epsilon - log, mu) for p, log in terms))
        ends = delta_of(Fraction(epsilon), [(gaussian(mu), 1), (found, 1)])
        assert ends is not None
        assert float(ends[0]) == pytest.approx(worst, rel=1e-8, abs=1e-11)


# --- beside another accountant, where it is installed -------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_delta_is_between_the_ends_of_googles_accountant(seed: int) -> None:
    """One pair of laws, Gaussian and Laplace noise, composed by `dp_accounting` with losses rounded either way."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    random = np.random.default_rng(seed)
    mu, own, epsilon = float(random.uniform(0.1, 1)), float(random.uniform(0.1, 1)), float(random.uniform(0.2, 2))
    rows = [[int(n) for n in random.integers(50, 200, 3)] for _ in range(2)]
    rows = [[*row, WHOLE - sum(row)] for row in rows]
    laplace = PrivacyLoss(own=True, laplace=(Fraction(own), Fraction(own)), step=Fraction(1, 2**40))
    ends = delta_of(Fraction(epsilon), [(gaussian(mu), 1), (laplace, 1), (table(rows, [(0, 1)]), 1)])
    assert ends is not None
    worst = {}
    for up in (False, True):
        given = {"value_discretization_interval": 1e-3, "pessimistic_estimate": up}
        first = pld.from_gaussian_mechanism(1 / mu, **given)
        second = pld.from_laplace_mechanism(1 / own, **given)
        found = []
        for one, other in (rows, rows[::-1]):
            logs = [{o: math.log(n / WHOLE) for o, n in enumerate(row)} for row in (one, other)]
            third = pld.from_two_probability_mass_functions(*logs, symmetric=False, **given)
            found.append(first.compose(second).compose(third).get_delta_for_epsilon(epsilon))
        worst[up] = max(found)
    assert worst[False] <= float(ends[0]) <= worst[True]


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 10**30), Fraction(1, 1000), Fraction(1)])
def test_a_response_has_the_whole_of_its_chances(epsilon: Fraction) -> None:
    """At epsilon 0 both of its answers have the same ratio, and beside it noise lets through what it does alone."""
    ((law, _),) = response(epsilon).pairs
    assert sum(law.values()) >= CHANCES
    beside = delta_of(Fraction(0), [(gaussian(0.5), 1), (response(epsilon), 2)])
    assert beside is not None
    assert float(beside[0]) >= curve(0, 0.5) - 1e-12
