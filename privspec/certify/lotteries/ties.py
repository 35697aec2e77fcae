"""The bound beside plurality: from one profile a single replaced vote leads to every winner that there can be.

Let a rule for T voters meet epsilon-DP, and miss the winner of plurality with probability d at most. Where a wins it is
drawn with 1 - d, so at a profile from which one replaced vote makes a win with e^-epsilon (1 - d). Beside the winner of
that profile, whom the others leave 1 - d, there are m - 1 such: d >= (m - 1) e^-epsilon (1 - d). Adding and removing:
two steps for a vote that is replaced, see `miss`. The profile of a plan is tried here vote by vote.
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
    first = _winner(counts)
    moved = ([n - (a == first) + (a == target) for a, n in enumerate(counts)] for target in range(size))
    if [_winner(reached) for reached in moved] != list(range(size)):
        raise Malformed(f"one vote does not lead from {profile.place} to every winner")


def _winner(counts: list[int]) -> int:
    return wanted(LARGEST, tuple(Fraction(n) for n in counts)).index(1)


def miss(voters: int, size: int, epsilon: Fraction, steps: int) -> Fraction:
    """(m - 1) / (e^(steps epsilon) + m - 1), or 1 - e^epsilon / m where steps are two; rounded down.

    Two steps are a vote of the winner that goes and another that comes; between them are T - 1 votes, from which each
    of the m alternatives is one step away, so that there 1 >= m e^-epsilon (1 - d).
    """
    found = (size - 1) / (_power(steps * epsilon) + size - 1)
    return max(found, 1 - _power(epsilon) / size) if steps == 2 and voters > 1 else found


def _power(exponent: Fraction) -> Fraction:
    """e^exponent, rounded up."""
    return Fraction(LogRatio.of(exponent).up, 1 << BITS)


def odds(voters: int, size: int, missed: Fraction, steps: int) -> list[tuple[Fraction, int]]:
    """Ratios r and numbers k: a miss of at most that needs k epsilon >= log r, for each of them."""
    if missed <= 0:
        return []
    found = [((size - 1) * (1 - missed) / missed, steps)]
    return [*found, (size * (1 - missed), 1)] if steps == 2 and voters > 1 else found
