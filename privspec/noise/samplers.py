"""Exact samplers, and where their random bits come from: the operating system for releases, a seed for simulations.

Samplers compare uniform digits and calculate with integers; nothing in them is a floating-point number. Sources: Karney
2016 (ACM TOMS 42(1), algorithms H, B and N) for the normal law; Canonne, Kamath, Steinke 2020 (CKS, arXiv 2004.00010,
algorithms 1 to 3) for Bernoulli(exp(-x)), the discrete Laplace law and the discrete Gaussian law. Notes:
rounded-gaussian, discrete-laplace, knorm-l2, shares.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Protocol

import numpy as np

WORD = 64
"""Bits in one word of randomness."""
_BATCH = 512


class Randomness(ABC):
    """A source of independent uniform 64-bit words.

    `private` says whether a release drawn from it may claim its guarantee. A buffer of unused words is
    dropped in a child process, so that two processes never share noise.
    """

    private: bool

    def __init__(self) -> None:
        self._buffer: list[int] = []
        _LIVE.add(self)

    @abstractmethod
    def _fresh(self, count: int) -> bytes:
        """`8 * count` uniform bytes."""

    def word(self) -> int:
        """A uniform integer in [0, 2^64)."""
        if not self._buffer:
            self._buffer = np.frombuffer(self._fresh(_BATCH), dtype="<u8").tolist()
        return self._buffer.pop()

    def bits(self, count: int) -> int:
        """A uniform integer in [0, 2^count)."""
        value = 0
        for _ in range(-(-count // WORD)):
            value = value << WORD | self.word()
        return value >> (-count % WORD)

    def below(self, bound: int) -> int:
        """A uniform integer in [0, bound), exactly (by rejection); bound >= 1."""
        if bound < 1:
            raise ValueError("an empty range")
        count = (bound - 1).bit_length()
        while (value := self.bits(count)) >= bound:
            pass
        return value

    def sign(self) -> int:
        """1 or -1, each with probability one half."""
        return 1 if self.word() & 1 else -1

    def forget(self) -> None:
        """Drop the words that were fetched and not used."""
        self._buffer = []


_LIVE: weakref.WeakSet[Randomness] = weakref.WeakSet()


def _forget_in_child() -> None:
    for source in list(_LIVE):
        source.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)


class SystemRandomness(Randomness):
    """The operating system's generator: the only source whose releases are private."""

    private = True

    def _fresh(self, count: int) -> bytes:
        return os.urandom(8 * count)


class SimulationRandomness(Randomness):
    """A reproducible stream (SHAKE-256). Simulation only: the seed gives the noise away."""

    private = False

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed
        self._counter = 0

    def _fresh(self, count: int) -> bytes:
        self._counter += 1
        return hashlib.shake_256(f"privspec simulation {self.seed} {self._counter}".encode()).digest(8 * count)


# --- laws -----------------------------------------------------------------------------------------

KNORM_LIMIT = 24
"""The rejection sampler of the l2 K-norm law accepts about one proposal in 500 at 24 dimensions, and far
fewer above."""
_HALF = 1 << (WORD - 1)


def _less(left: list[int], right: list[int], randomness: Randomness) -> bool:
    """Whether the real number with the digits `left` is below that of `right`; draws digits as needed."""
    index = 0
    while True:
        if index == len(left):
            left.append(randomness.word())
        if index == len(right):
            right.append(randomness.word())
        if left[index] != right[index]:
            return left[index] < right[index]
        index += 1


def _bernoulli_exp_half(randomness: Randomness) -> bool:
    """True with probability exp(-1/2): whether the longest run 1/2 > U1 > U2 > ... has even length (H)."""
    first = randomness.word()
    if first >= _HALF:
        return True
    last, even = [first], False
    while _less(following := [randomness.word()], last, randomness):
        last, even = following, not even
    return even


def _keep(k: int, x: list[int], randomness: Randomness) -> bool:
    """True with probability exp(-x (2k + x) / (2k + 2)) for x in (0, 1) (Karney, B)."""
    last, even = x, True
    while True:
        following = [randomness.word()]
        if not _less(following, last, randomness):
            return even
        # a second uniform number, below (2k + x)/(2k + 2): its integer part decides unless it is 2k
        part = randomness.below(2 * k + 2)
        if part > 2 * k or (part == 2 * k and not _less([randomness.word()], x, randomness)):
            return even
        last, even = following, not even


class Normal:
    """One standard normal number, exact: a sign, an integer part and as many digits as are asked for."""

    __slots__ = ("_digits", "_integer", "_negative", "_randomness")

    def __init__(self, randomness: Randomness) -> None:
        self._randomness = randomness
        while True:
            k = 0
            while _bernoulli_exp_half(randomness):
                k += 1
            if not all(_bernoulli_exp_half(randomness) for _ in range(k * (k - 1))):
                continue
            digits = [randomness.word()]
            if all(_keep(k, digits, randomness) for _ in range(k + 1)):
                break
        self._integer, self._digits = k, digits
        self._negative = randomness.sign() < 0

    def floor(self, bits: int) -> int:
        """The integer part of n * 2^bits, bits >= 0; a later call with more bits refines the same number."""
        words = -(-bits // WORD)
        while len(self._digits) < words:
            self._digits.append(self._randomness.word())
        value = self._integer
        for digit in self._digits[:words]:
            value = value << WORD | digit
        value >>= words * WORD - bits
        # the number is irrational with probability 1: never on a multiple of 2^-bits
        return -value - 1 if self._negative else value


def round_half_up(numerator: int, denominator: int) -> int:
    """floor(numerator / denominator + 1/2), denominator > 0."""
    return (2 * numerator + denominator) // (2 * denominator)


def round_noisy(numerator: int, denominator: int, grid: Fraction, noise: Normal) -> int:
    """floor((numerator/denominator + noise) / grid + 1/2), exactly: the noise is refined until it is decided.

    Privacy is that of the real number before rounding, which is post-processing (notes/rounded-gaussian.md).
    """
    bits = max(denominator.bit_length(), grid.denominator.bit_length()) + 2
    divisor = 2 * grid.numerator * denominator
    while True:
        low = noise.floor(bits)
        # ((numerator 2^bits + denominator n) grid.denominator / (denominator grid.numerator) + 2^(bits-1))
        # / 2^bits
        base = 2 * (numerator << bits) * grid.denominator + (grid.numerator * denominator << bits)
        step = 2 * denominator * grid.denominator
        first = (base + step * low) // (divisor << bits)
        last = -(-(base + step * (low + 1)) // (divisor << bits)) - 1
        if first == last:
            return first
        bits *= 2


def bernoulli_fraction(numerator: int, denominator: int, randomness: Randomness) -> bool:
    """True with probability numerator/denominator, exactly."""
    return randomness.below(denominator) < numerator


def bernoulli_exp(numerator: int, denominator: int, randomness: Randomness) -> bool:
    """True with probability exp(-numerator/denominator) <= 1, exactly (CKS, algorithm 1)."""
    while numerator > denominator:
        if not bernoulli_exp(1, 1, randomness):
            return False
        numerator -= denominator
    k = 1
    while bernoulli_fraction(numerator, denominator * k, randomness):
        k += 1
    return k % 2 == 1


def discrete_laplace(scale: Fraction, randomness: Randomness) -> int:
    """An integer j with probability proportional to exp(-|j| / scale), exactly (CKS, algorithm 2)."""
    if scale <= 0:
        raise ValueError("the scale must be positive")
    top, bottom = scale.numerator, scale.denominator
    while True:
        remainder = randomness.below(top)
        if not bernoulli_exp(remainder, top, randomness):
            continue
        quotient = 0
        while bernoulli_exp(1, 1, randomness):
            quotient += 1
        magnitude = (remainder + top * quotient) // bottom
        negative = randomness.sign() < 0
        if magnitude or not negative:
            return -magnitude if negative else magnitude


def discrete_gaussian(variance: Fraction, randomness: Randomness) -> int:
    """An integer j with probability proportional to exp(-j^2 / 2 variance), exactly (CKS, algorithm 3)."""
    if variance <= 0:
        raise ValueError("the variance must be positive")
    scale = isqrt(int(variance)) + 1
    top, bottom = variance.numerator, variance.denominator
    while True:
        proposal = discrete_laplace(Fraction(scale), randomness)
        excess = abs(proposal) * scale * bottom - top
        if bernoulli_exp(excess * excess, 2 * top * bottom * scale * scale, randomness):
            return proposal


def poisson(rate: Fraction, randomness: Randomness) -> int:
    """A Poisson number, exactly: of a sum of rates up to 1/2, each by rejection of a run of Bernoulli(rate / k)."""
    pieces = max(-(-2 * rate.numerator // rate.denominator), 1)
    top, bottom, total = rate.numerator, rate.denominator * pieces, 0
    for _ in range(pieces):
        while True:
            count = 0
            while bernoulli_fraction(top, bottom * (count + 1), randomness):
                count += 1
            # so far rate^count / count! (1 - rate / (count + 1))
            if bernoulli_fraction((bottom - top) * (count + 1), bottom * (count + 1) - top, randomness):
                break
        total += count
    return total


def polya(share: Fraction, scale: Fraction, randomness: Randomness) -> int:
    """A share of a geometric number: 1 / share independent ones add up to j with probability ~ exp(-j / scale).

    A negative binomial number, the sum of Poisson points j = 1, 2, ... of rate share exp(-j / scale) / j, which are
    thinned from blocks of rate `share` each: below 2^I >= scale those of j from 2^i on, of 1 / 2^i each; then the m-th
    of 2^I numbers, of 2^-m / 2^I each, where (2/e)^m and exp(m - j / scale) make good for it.
    """
    blocks = max(-(-scale.numerator // scale.denominator) - 1, 0).bit_length()
    total = 0
    for _ in range(poisson(share * (blocks + 1), randomness)):
        block, turn = randomness.below(blocks + 1), 0
        first = size = 1 << block
        if block == blocks:
            turn = 1
            while randomness.sign() > 0:
                turn += 1
            first = size * turn
        point = first + randomness.below(size)
        kept = bernoulli_fraction(size, point, randomness) and all(_two_over_e(randomness) for _ in range(turn))
        excess = point * scale.denominator - turn * scale.numerator
        if kept and bernoulli_exp(excess, scale.numerator, randomness):
            total += point
    return total


def _two_over_e(randomness: Randomness) -> bool:
    """True with probability 2 / e: a run of Bernoulli(1 / k) is even, if it has two successes (CKS, algorithm 1)."""
    k = 3
    while bernoulli_fraction(1, k, randomness):
        k += 1
    return k % 2 == 1


class Enclosed(Protocol):
    """A real number t >= 0 that is known by enclosures as narrow as asked for."""

    def enclosure(self, bits: int) -> tuple[int, int]:
        """Integers low <= t * 2^bits <= high whose distance stays bounded as `bits` grows."""


@dataclass(frozen=True, slots=True)
class RootDifference:
    """The real number t = sqrt(square) * slope - shift >= 0, known by enclosures as narrow as asked for."""

    square: int
    slope: Fraction
    shift: Fraction

    def enclosure(self, bits: int) -> tuple[int, int]:
        """Integers low <= t * 2^bits <= high that are at most slope + 2 apart."""
        square = self.square << (2 * bits)
        root = isqrt(square)
        above = root if root * root == square else root + 1
        factor, divisor = self.slope.numerator * self.shift.denominator, self.slope.denominator
        divisor *= self.shift.denominator
        shift = self.shift.numerator * self.slope.denominator << bits
        return max((root * factor - shift) // divisor, 0), -((shift - above * factor) // divisor)


def bernoulli_exp_real(real: Enclosed, randomness: Randomness) -> bool:
    """True with probability exp(-t) for the real number t, exactly.

    exp(-t) = exp(-t/m)^m with an integer m >= t, and the parity of a run of Bernoulli(t/(m k)), k = 1, 2, ...,
    gives exp(-t/m); each such comparison of a uniform number with t/(m k) draws digits and narrows the
    enclosure until it is decided.
    """
    first = real.enclosure(WORD)
    pieces = max(1, -(-first[1] >> WORD))

    def below(divisor: int) -> bool:
        bits, (low, high) = WORD, first
        uniform = randomness.word()
        while True:
            if (uniform + 1) * divisor <= low:
                return True
            if uniform * divisor >= high:
                return False
            uniform, bits = uniform << bits | randomness.bits(bits), 2 * bits
            low, high = real.enclosure(bits)

    for _ in range(pieces):
        k = 1
        while below(pieces * k):
            k += 1
        if k % 2 == 0:
            return False
    return True


def discrete_knorm_l2(dimension: int, scale: Fraction, randomness: Randomness) -> Sequence[int]:
    """An integer vector z with probability proportional to exp(-||z||_2 / scale), exactly.

    Rejection from independent discrete Laplace numbers of a rational scale w >= scale * sqrt(dimension),
    for which
    ||z||_2 / scale >= ||z||_1 / w. Raises: ValueError above KNORM_LIMIT dimensions.
    """
    if not 1 <= dimension <= KNORM_LIMIT:
        raise ValueError(f"the exact K-norm sampler takes 1 to {KNORM_LIMIT} dimensions")
    bits = 32
    wide = scale * Fraction(isqrt((dimension << (2 * bits)) - 1) + 1, 1 << bits)
    while True:
        proposal = [discrete_laplace(wide, randomness) for _ in range(dimension)]
        excess = RootDifference(sum(z * z for z in proposal), 1 / scale, Fraction(sum(map(abs, proposal))) / wide)
        if bernoulli_exp_real(excess, randomness):
            return proposal
