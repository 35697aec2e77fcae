"""Quantiles by one noise on all of their ranks, drawn exactly (noise/notes/scores.md, section 10).

What is compared with uniform digits are sums in balls, which enclose all that is left out of them; where a ball does
not tell, digits and bits are doubled. So the chances are exactly those of the note.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cached_property
from itertools import count, pairwise
from math import ceil, log

from flint import arb, arb_poly, ctx

from privspec.core.records import dataclass, field
from privspec.kernel.core.numbers import ball
from privspec.noise.samplers import Randomness, bernoulli_fraction

FIRST_BITS = 64
Rows = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class OneNoise:
    """The draw of one answer for each of several rows of ascending `thresholds`, in records from what is sought.

    One noise says how many thresholds of all rows are passed; which, jitters of the rows where some are near others.
    """

    base: Fraction
    jitter: Fraction
    thresholds: Rows
    known: dict[int, Jittered] = field(default_factory=dict)

    def draw(self, randomness: Randomness) -> list[int]:
        """How many thresholds of each row are passed."""
        off = _two_sided(1 / self.base, randomness)
        if len(self.thresholds) == 1:
            return [bisect_right(self.thresholds[0], off)]
        passed = self._passed(off, randomness)
        if passed in (0, len(self.merged)):
            return [len(row) if passed else 0 for row in self.thresholds]
        center = (self.merged[passed - 1] + self.merged[passed]) // 2
        rank = center + _unfolded(_picked(lambda bits: self.at(bits).ranks(passed, center), randomness))
        found, left = list[int](), passed
        for row in range(len(self.thresholds) - 1):
            asked = row, rank, left
            found.append(_picked(lambda bits, asked=asked: self.at(bits).answers(*asked), randomness))  # type: ignore[misc]
            left -= found[-1]
        return [*found, left]

    @cached_property
    def merged(self) -> list[int]:
        """All thresholds in one order."""
        return sorted(one for row in self.thresholds for one in row)

    def at(self, bits: int) -> Jittered:
        """Its sums to so many bits."""
        if bits not in self.known:
            self.known[bits] = Jittered(1 / self.jitter, self.thresholds, self.merged, bits)
        return self.known[bits]

    def _passed(self, off: int, randomness: Randomness) -> int:
        """How many of the mean places of thresholds are below a uniform place between `off` and the next."""
        bits, digits = FIRST_BITS, randomness.bits(FIRST_BITS)
        # no mean is farther from its place without jitters than the mean of the largest jitter
        chance = 1 / self.jitter
        far = ceil(len(self.thresholds) * 2 * chance / (1 - chance * chance))
        low, high = bisect_left(self.merged, off - far), bisect_right(self.merged, off + 1 + far)
        while low < high:
            middle = (low + high) // 2
            with ctx.workprec(4 * bits):
                mean, place = self.at(bits).mean_place(middle), off + arb(digits) / 2**bits
                if mean <= place:
                    low = middle + 1
                elif mean >= place + arb(1) / 2**bits:
                    high = middle
                else:
                    digits, bits = digits << bits | randomness.bits(bits), 2 * bits
        return low


class Jittered:
    """Chances and means over jitters of the rows: a jitter is n with a chance in proportion to chance^|n|."""

    def __init__(self, chance: Fraction, thresholds: Rows, merged: list[int], bits: int) -> None:
        self.thresholds, self.merged, self.bits = thresholds, merged, bits
        step, many = log(chance.denominator) - log(chance.numerator), len(thresholds)
        self.reach = ceil((bits * log(2) + log(8 * many * (1 + 1 / step))) / step) + 1
        self.sums, self.beyond = dict[tuple[int, int], tuple[int, list[arb]]](), dict[int, arb]()
        with ctx.workprec(4 * bits):
            self.chance = ball(chance)
            tail = self.chance**self.reach
            # what jitters beyond the reach add to a mean, and those beyond twice the reach to a chance
            self.left_out = arb(0, 4 * many * tail / (1 - self.chance))
            self.far = arb(0, len(merged) * tail * tail)

    def mean_place(self, number: int) -> arb:
        """The mean of the place of a threshold by its number in order."""
        first = self.merged[number] - self.reach
        found = first - 1 + self.left_out
        for x in range(first, first + 2 * self.reach + 1):
            before, chances = self.numbers(0, x)
            found += sum(chances[: max(number - before + 1, 0)], arb(0))
        return found

    def below(self, off: int) -> arb:
        """The chance that a jitter is below so many records."""
        if off not in self.beyond:
            tail = self.chance ** (1 - off if off <= 0 else off) / (1 + self.chance)
            self.beyond[off] = tail if off <= 0 else 1 - tail
        return self.beyond[off]

    def row(self, row: int, x: int) -> tuple[int, list[arb]]:
        """At a rank: so many thresholds of a row are passed for sure, and the chances of so many more."""
        places = self.thresholds[row]
        low, high = bisect_left(places, x - 2 * self.reach), bisect_right(places, x + 2 * self.reach)
        passed = [arb(1), *(self.below(x - place) for place in places[low:high]), arb(0)]
        return low, [a - b for a, b in pairwise(passed)]

    def numbers(self, first: int, x: int) -> tuple[int, list[arb]]:
        """The same of all rows from the `first` on, together."""
        if (first, x) not in self.sums:
            found, before = arb_poly([1]), 0
            for row in range(first, len(self.thresholds)):
                low, chances = self.row(row, x)
                found, before = found * arb_poly(chances), before + low
            self.sums[first, x] = before, [one + self.far for one in found.coeffs()]
        return self.sums[first, x]

    def number(self, first: int, x: int, number: int) -> arb:
        """The chance that so many thresholds of the rows from the `first` on are passed at a rank."""
        before, chances = self.numbers(first, x)
        return chances[number - before] if 0 <= number - before < len(chances) else self.far

    def ranks(self, passed: int, center: int) -> Iterator[arb]:
        """How much each rank has of all at which so many are passed, from the center on, to and fro."""
        total = self.mean_place(passed) - self.mean_place(passed - 1)
        for number in range(2 * (self.reach + self.merged[passed] - self.merged[passed - 1] + 1)):
            yield self.number(0, center + _unfolded(number), passed) / total

    def answers(self, row: int, x: int, number: int) -> Iterator[arb]:
        """The chance of each answer of a row at a rank, given how many are passed from there on."""
        low, chances = self.row(row, x)
        total = self.number(row, x, number)
        for answer in range(min(number, len(self.thresholds[row])) + 1):
            near = 0 <= answer - low < len(chances)
            yield (chances[answer - low] if near else self.far) * self.number(row + 1, x, number - answer) / total


def _unfolded(number: int) -> int:
    """0, 1, -1, 2, -2, .."""
    return (number + 1) // 2 if number % 2 else -(number // 2)


def _two_sided(chance: Fraction, randomness: Randomness) -> int:
    """A whole number n with a chance in proportion to chance^|n|: the difference of two that are not below 0."""
    tosses = chance.as_integer_ratio()
    up, down = (next(n for n in count() if not bernoulli_fraction(*tosses, randomness)) for _ in range(2))
    return up - down


def _picked(chances: Callable[[int], Iterable[arb]], randomness: Randomness) -> int:
    """A place by its chance; what so many bits do not tell takes more of them."""
    bits, digits = FIRST_BITS, randomness.bits(FIRST_BITS)
    while True:
        with ctx.workprec(4 * bits):
            low, high, upto = arb(digits) / 2**bits, arb(digits + 1) / 2**bits, arb(0)
            for place, chance in enumerate(chances(bits)):
                upto += chance
                if upto >= high:
                    return place
                if not upto <= low:
                    break
        digits, bits = digits << bits | randomness.bits(bits), 2 * bits
