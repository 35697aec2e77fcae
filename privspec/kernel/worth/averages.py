"""What no mechanism is below on average over a law of the records: a value on the wrong side of thresholds.

Whether the value sought is beyond a threshold t is told by how many of the n records of a group are at or below it: it
is where these are at most A(n) = max(ceil(share n), 1) - 1. Of data with A(n) - j and A(n) + 1 + j such records, n in
all, some mechanism is wrong with chances e_j and e'_j. Where records that move change no chance by more than R, one of
them, or R_j, j of them, e_0 + e'_0 is at least 2 / (1 + R) and e_j and e'_j are at least e_0 / R_j and e'_0 / R_j.
Where one goes and one comes, each changing chances by r, the data between the two say more: 1 / r, as R is r^2. So the
mean cost is at least

    2 / (1 + R)  sum over t and j of  C_tj / R_j,    C_tj = sum over n of the smaller one of cost times chance of both,

with 1 / r before the sum in the second case. The chances of both, as those of any three kinds of records, are
log-concave along n, n + v, n + 2 v, ... where the share is u / v: sums between two n are those of harmonic means at
least (noise/notes/scores.md, section 7).
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from flint import arb, ctx

from privspec.kernel.core.numbers import BITS, ZERO, ball, end, exp_up
from privspec.kernel.core.reading import JsonNode, Refused, canonical, frozen

FINE, ODDS = 96, 64
"""Binary places of chances, and of what they are multiplied by."""
LARGEST = 2**22
"""Most chances of one bound."""


@frozen
class Sought:
    """A value at a share of the records, over data of `size` independent records.

    `groups`: the chance that a record is of each group and counts; `chances`: those of answers, in order, then; `gaps`:
    what it costs to be on the wrong side of each threshold between them, or None for so many records as the threshold
    is off; `added`: whether costs of several thresholds add up.
    """

    size: int
    share: Fraction
    groups: tuple[Fraction, ...]
    chances: tuple[Fraction, ...]
    gaps: tuple[Fraction, ...] | None
    added: bool


@frozen
class Averaged:
    """A bound at every epsilon: `cells[j]` is C_j, whole parts of 2^-FINE; `weight` stands before all."""

    cells: tuple[int, ...]
    weight: Fraction

    def at(self, epsilon: Fraction, count: int, moves: int) -> Fraction:
        """At most the mean cost under a pure epsilon.

        Args: count, so many records at a time change no chance by more than e^epsilon; moves, how many of these changes
            replace as many, 2 where they all come or all go.
        """
        power = exp_up(epsilon)
        smaller = int((1 << FINE) / power**moves)
        found, ratio, reached = 0, 1 << FINE, 0
        for j, cell in enumerate(self.cells):
            while reached < -(-j // count):
                ratio, reached = ratio * smaller >> FINE, reached + 1
            found += cell * ratio >> FINE
        return self.weight * found / (1 << FINE) / ((1 + power) / 2 if moves == 1 else power)


REMEMBERED = 64
"""Bounds that are remembered at most."""
KNOWN: dict[tuple[Sought, Fraction, str], Averaged] = {}
"""What was worked out of a law, a weight and a witness: curves ask for it again."""


def averaged(sought: Sought, weight: Fraction, witness: JsonNode) -> Averaged:
    """What thresholds prove of every mechanism, worked out once."""
    key = sought, weight, canonical(witness.value)
    if key not in KNOWN:
        if len(KNOWN) >= REMEMBERED:
            KNOWN.clear()
        KNOWN[key] = _averaged(sought, weight, witness)
    return KNOWN[key]


def _averaged(sought: Sought, weight: Fraction, witness: JsonNode) -> Averaged:
    """The same.

    `cells`: how many j are looked at; `groups`: for some of them thresholds, and numbers of records in order, multiples
    of the denominator of the share apart, between which sums are bounded.
    """
    cells, groups = witness.fields("cells", "groups")
    many, known = cells.integer(1, LARGEST), set[int]()
    found, work, steps = [0] * many, 0, sought.share.denominator
    for one in groups.items():
        group, thresholds, records = one.fields("group", "thresholds", "records")
        number = group.integer(0, len(sought.groups) - 1)
        places = [item.integer(0, len(sought.chances) - 2) for item in thresholds.items()]
        points = [item.integer(1, sought.size) for item in records.items()]
        apart = [points[k + 1] - points[k] for k in range(len(points) - 1)]
        if number in known or len(set(places)) < len(places) or not points:
            raise one.wrong("is a group, or a threshold, for the second time, or without records")
        if not sought.added and len(places) > 1:
            raise thresholds.wrong("are several, and being beyond them costs no more than being beyond one")
        if any(step <= 0 or step % steps for step in apart):
            raise records.wrong("are no numbers in order that are whole shares apart")
        known.add(number)
        work += len(places) * len(points) * many * steps
        if work > LARGEST:
            raise groups.wrong("ask for too many chances")
        for place in places:
            for rest in range(steps):
                own = [n + rest for n in points if n + rest <= sought.size]
                _add(found, sought, number, place, own)
    return Averaged(tuple(found), weight)


def _add(found: list[int], sought: Sought, group: int, place: int, points: list[int]) -> None:
    """Add what a threshold proves, of numbers of records of one remainder."""
    at_most = sum(sought.chances[: place + 1])
    below, above = sought.groups[group] * at_most, sought.groups[group] * (sum(sought.chances) - at_most)
    if not below or not above or not points:
        return
    rows = [_chances(sought, below, above, n, len(found)) for n in points]
    scale = Fraction(1) if sought.gaps is None else sought.gaps[place]
    for j in range(len(found)):
        total = rows[-1][j]
        for k in range(len(points) - 1):
            one, other = rows[k][j], rows[k + 1][j]
            if one and other:
                often = (points[k + 1] - points[k]) // sought.share.denominator
                total += 2 * often * often * one * other // ((often + 1) * other + (often - 1) * one)
        found[j] += total * scale.numerator // scale.denominator


def _chances(sought: Sought, below: Fraction, above: Fraction, n: int, many: int) -> list[int]:
    """For each j the smaller chance of A - j and A + 1 + j records of n at or below a threshold, times what each costs.

    Whole parts of 2^-FINE, rounded down; costs in records where there are no gaps.
    """
    target = sought.share * n
    first = max(ceil(target), 1) - 1
    left, right = first, first + 1  # records at or below
    if right > n:
        return [0] * many
    low, high = (_chance(sought.size, below, above, a, n - a) for a in (left, right))
    odds, against = int((1 << ODDS) * above / below), int((1 << ODDS) * below / above)
    found = []
    for _ in range(many):
        if sought.gaps is None:
            found.append(int(min(low * max(target - left, ZERO), high * max(right - target, ZERO))))
        else:
            found.append(min(low, high))
        if not left or right >= n:
            break
        low = low * left * odds // (n - left + 1) >> ODDS
        high = high * (n - right) * against // (right + 1) >> ODDS
        left, right = left - 1, right + 1
    return found + [0] * (many - len(found))


def _chance(size: int, below: Fraction, above: Fraction, a: int, b: int) -> int:
    """That a of `size` records are of one kind and b of another, in whole parts of 2^-FINE, rounded down."""
    rest, left = 1 - below - above, size - a - b
    if rest < 0:
        raise Refused("has a law whose chances are more than one")
    if not rest and left:
        return 0
    with ctx.workprec(BITS):
        found = arb(size + 1).lgamma()
        for many, chance in ((a, below), (b, above), (left, rest)):
            found -= arb(many + 1).lgamma()
            found += many * ball(chance).log() if many else arb(0)
        return max(int(end((found.exp() * arb(2) ** FINE).lower())), 0)
