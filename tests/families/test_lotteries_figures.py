"""Distortion and welfare of lotteries, against profiles gone through ballot by ballot and the figures of the field."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

import pytest

from privspec.families.selection.figures import (
    distortion,
    expected_welfare,
    mean_distortion,
    profiles,
    total_variation,
    worst_distortion,
)
from privspec.families.selection.rules import RULES
from privspec.families.selection.task import VotingTask
from privspec.model.lotteries import (
    Borda,
    Exponential,
    FirstChoice,
    Largest,
    LocalPick,
    Lottery,
    PermuteAndFlip,
    Points,
    Proportional,
    scores,
)

ABC = ("a", "b", "c")
PLAIN = Proportional()
LOTTERIES: tuple[Lottery, ...] = (
    Proportional(Fraction(3, 2)),
    Exponential(Fraction(3, 2)),
    PermuteAndFlip(Fraction(3, 2)),
    LocalPick(Fraction(3)),
    Proportional(),
)


def calibrated(family: str, voters: int, m: int, epsilon: Fraction) -> Lottery:
    task = VotingTask(FirstChoice(tuple("abcd"[:m])), voters)
    (rule,) = (r for r in RULES if r.family == family)
    found = rule.calibrate(task, epsilon)
    assert not isinstance(found, str)
    return found.lottery


@pytest.mark.parametrize(
    ("voters", "m", "epsilon", "welfare"),
    [
        (3, 2, "1", (0.6463, 0.6322, 0.6201, 0.5770)),
        (10, 3, "1", (0.4449, 0.4281, 0.3901, 0.3576)),
        (20, 3, "1/2", (0.3975, 0.3845, 0.3604, 0.3393)),
        (8, 4, "1", (0.3626, 0.3446, 0.3226, 0.2782)),
        # weighted rules that spend what they may at four voters, and not at every number of voters
        (4, 3, "4/5", (0.4567, 0.4434, 0.4367, 0.3817)),
    ],
)
def test_expected_welfare_of_the_table(voters: int, m: int, epsilon: str, welfare: tuple[float, ...]) -> None:
    points = FirstChoice(tuple("abcd"[:m]))
    found = profiles(points, voters, {a: Fraction(1, m) for a in points.alternatives})
    assert found is not None and sum(p.probability for p in found) == 1
    families = ("permute_and_flip", "exponential", "dictator", "local_dictator")
    shown = [expected_welfare(calibrated(f, voters, m, Fraction(epsilon)), found) for f in families]
    assert [round(w, 4) for w in shown] == list(welfare)


def test_worst_distortion_of_dummy_votes_in_the_table() -> None:
    lottery = calibrated("dictator", 10, 3, Fraction(1, 2))
    worst = worst_distortion(lottery, PLAIN, FirstChoice(ABC), 10)
    assert worst is not None and round(float(worst), 4) == 0.2108


@pytest.mark.parametrize("lottery", LOTTERIES, ids=repr)
def test_worst_distortion_is_the_largest_of_all_profiles(lottery: Lottery) -> None:
    for m, voters in product((1, 2, 3), range(6)):
        points = FirstChoice(ABC[:m])
        every = [
            distortion(lottery, PLAIN, scores(points, profile))
            for profile in combinations_with_replacement(points.alternatives, voters)
        ]
        assert worst_distortion(lottery, PLAIN, points, voters) == max(every)


@pytest.mark.parametrize("lottery", [Proportional(Fraction(3, 2)), LocalPick(Fraction(3))], ids=repr)
def test_worst_distortion_with_borda_points(lottery: Lottery) -> None:
    points = Borda(ABC)
    kinds = [k for n in (1, 2, 3) for k in permutations(ABC, n)]
    for voters in range(4):
        every = [
            distortion(lottery, PLAIN, scores(points, profile))
            for profile in combinations_with_replacement(kinds, voters)
        ]
        assert worst_distortion(lottery, PLAIN, points, voters) == max(every)


def test_worst_distortion_over_all_sizes_is_that_of_one_voter() -> None:
    for lottery in (Proportional(Fraction(3, 2)), LocalPick(Fraction(3))):
        found = [worst_distortion(lottery, PLAIN, FirstChoice(ABC), t) for t in range(30)]
        assert worst_distortion(lottery, PLAIN, FirstChoice(ABC), None) == max(f for f in found if f is not None)


def test_worst_distortion_is_left_out_where_nothing_is_known() -> None:
    assert worst_distortion(Exponential(Fraction(2)), PLAIN, FirstChoice(ABC), None) is None
    assert worst_distortion(Exponential(Fraction(2)), PLAIN, FirstChoice(ABC), 10**6) is None
    assert worst_distortion(Exponential(Fraction(2)), PLAIN, Borda(ABC), 3) is None
    assert worst_distortion(Proportional(Fraction(1)), Largest(), FirstChoice(ABC), None) is None
    assert worst_distortion(Proportional(Fraction(1)), PLAIN, FirstChoice(ABC), 10**6) is not None


@pytest.mark.parametrize("lottery", LOTTERIES, ids=repr)
@pytest.mark.parametrize("points", [FirstChoice(ABC), Borda(ABC)], ids=lambda p: p.name)
def test_means_are_those_of_every_sequence_of_ballots(lottery: Lottery, points: Points) -> None:
    kinds = list(permutations(ABC))
    chances = [Fraction(n, 12) for n in (4, 3, 2, 1, 1, 1)]
    law = dict(zip(kinds, chances, strict=True))
    found = profiles(points, 3, law)
    assert found is not None
    welfare = mean = Fraction(0)
    for profile in product(kinds, repeat=3):
        weight = law[profile[0]] * law[profile[1]] * law[profile[2]]
        totals = scores(points, profile)
        welfare += weight * sum(
            p * Fraction(sum(ballot[0] == a for ballot in profile), 3)
            for a, p in zip(ABC, lottery.law(totals), strict=True)
        )
        mean += weight * total_variation(lottery.law(totals), PLAIN.law(totals))
    assert expected_welfare(lottery, found) == pytest.approx(float(welfare), rel=1e-14)
    assert mean_distortion(lottery, PLAIN, found) == pytest.approx(float(mean), rel=1e-14)


def test_profiles_are_left_to_simulation_where_there_are_many() -> None:
    uniform = {a: Fraction(1, 3) for a in ABC}
    assert profiles(FirstChoice(ABC), 120, uniform) is None
    only = profiles(FirstChoice(ABC), 120, {"a": Fraction(1), "b": Fraction(0)})
    assert only is not None and len(only) == 1
    with pytest.raises(ValueError, match="sum to 1"):
        profiles(FirstChoice(ABC), 3, {"a": Fraction(1, 2)})
    with pytest.raises(ValueError, match="voters"):
        profiles(FirstChoice(ABC), 0, uniform)
