"""Exact samplers, and where their random bits come from: the operating system for releases, a seed for simulations.

Samplers compare uniform digits and calculate with integers; nothing in them is a floating-point number. Source:
Canonne, Kamath, Steinke 2020 (CKS, arXiv 2004.00010, algorithms 1 to 3) for Bernoulli(exp(-x)), the discrete Laplace
law and the discrete Gaussian law. Notes: discrete-laplace, shares.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from abc import ABC, abstractmethod
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

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

    def words(self, count: int) -> NDArray[np.uint64]:
        """So many of them at once; none is kept for later."""
        return np.frombuffer(self._fresh(count), dtype="<u8")

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
