"""The bound beside plurality: from one profile a single replaced vote leads to every winner that there can be.

Let a rule for T voters meet epsilon-DP, and miss the winner of plurality with probability d at most. Where a wins it is
drawn with 1 - d, so at a profile from which one replaced vote makes a win with e^-epsilon (1 - d). Beside the winner of
that profile, whom the others leave 1 - d, there are m - 1 such: d >= (m - 1) e^-epsilon (1 - d). Adding and removing:
two steps for a vote that is replaced. The profile of a plan is tried here vote by vote.
"""

from __future__ import annotations

from fractions import Fraction

from privspec.certify.finite.ratios import BITS, LogRatio
from privspec.certify.lotteries.costs import LARGEST, wanted
from privspec.certify.reading import At, Malformed


def check_profile(profile: At, voters: int, size: int) -> None:
    """Whether one replaced vote leads from the votes that are listed to every winner.

    Raises: Malformed if not.
    """
    counts = [item.integer() for item in profile.items()]
    if len(counts) != size or min(counts) < 0 or sum(counts) != voters:
        raise Malformed(f"{profile.place} is no profile of {voters} votes")
    won = {_winner(counts)}
    for source in range(size):
        for target in range(size):
            if counts[source]:
                won.add(_winner([n - (a == source) + (a == target) for a, n in enumerate(counts)]))
    if len(won) < size:
        raise Malformed(f"one vote does not lead from {profile.place} to every winner")


def _winner(counts: list[int]) -> int:
    return wanted(LARGEST, tuple(Fraction(n) for n in counts)).index(1)


def miss(size: int, step: Fraction) -> Fraction:
    """(m - 1) / (e^step + m - 1), rounded down; `step` is the epsilon of one replaced vote."""
    return (size - 1) / (Fraction(LogRatio.of(step).up, 1 << BITS) + size - 1)


def odds(size: int, missed: Fraction) -> Fraction:
    """The least e^step for which that is at most `missed`; 1 where every step will do."""
    return max((size - 1) * (1 - missed) / missed, Fraction(1)) if missed > 0 else Fraction(1)
