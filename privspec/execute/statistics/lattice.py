"""Exact K-norm draws on the lattice: for the largest entry (notes/knorm-linf.md), and for the length (knorm-l2.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from privspec.execute.randomness import Randomness
from privspec.execute.samplers import Normal, bernoulli_exp, bernoulli_exp_real, bernoulli_fraction, round_half_up


def geometric(scale: Fraction, randomness: Randomness) -> int:
    """An integer j >= 0 with probability proportional to exp(-j / scale), exactly.

    Source: Canonne, Kamath & Steinke 2020, algorithm 2, without its sign.
    """
    top = scale.numerator
    while not bernoulli_exp(remainder := randomness.below(top), top, randomness):
        pass
    quotient = 0
    while bernoulli_exp(1, 1, randomness):
        quotient += 1
    return (remainder + top * quotient) // scale.denominator


def discrete_knorm_linf(dimension: int, scale: Fraction, randomness: Randomness) -> list[int]:
    """An integer vector z with probability proportional to exp(-max |z_j| / scale), exactly.

    exp(-a / scale) is the sum over m >= a of (1 - q) q^m with q = exp(-1 / scale): z is uniform on a cube of half side
    m, where m has weight (2 m + 1)^k q^m. That m is drawn as a sum of k + 1 geometric numbers, of weight
    C(m + k, k) q^m, and kept with the ratio of both over its upper bound 2^k k!, the product of
    (2 m + 1) / (2 m + 2 i) over i = 1..k.
    """
    while True:
        m = sum(geometric(scale, randomness) for _ in range(dimension + 1))
        if all(bernoulli_fraction(2 * m + 1, 2 * (m + i), randomness) for i in range(1, dimension + 1)):
            return [randomness.below(2 * m + 1) - m for _ in range(dimension)]


# --- the length -----------------------------------------------------------------------------------


def smooth_knorm_l2(dimension: int, scale: Fraction, randomness: Randomness) -> list[int]:
    """An integer vector z with probability proportional to exp(-||z||_2 / scale), exactly, for any dimension.

    A real vector x of density proportional to exp(-||x|| / scale) is rounded to z, which is kept with probability
    exp(-(||z|| - ||x||) / scale - c), c >= sqrt(k) / (2 scale): the factors of ||x|| cancel inside every cell. x is
    exact to as many digits as rounding and comparison ask for. Meant for scales well above sqrt(k).
    """
    while True:
        proposal = _RealVector(dimension, scale, randomness)
        if bernoulli_exp_real(_Excess(proposal), randomness):
            return proposal.rounded


class _RealVector:
    """scale * Gamma(k) * (uniform direction): half the sum of 2 k squared normals is Gamma(k)."""

    def __init__(self, dimension: int, scale: Fraction, randomness: Randomness) -> None:
        self.scale = scale
        self._direction = [Normal(randomness) for _ in range(dimension)]
        self._size = [Normal(randomness) for _ in range(2 * dimension)]
        self.slack = Fraction(isqrt(dimension << 64) + 1, 1 << 33) / scale
        """c, rounded up."""
        bits = 64
        while (found := self._round(bits)) is None:
            bits *= 2
        self.rounded: list[int] = found
        self.square = sum(z * z for z in found)

    def radius(self, bits: int) -> tuple[int, int]:
        """Integers low <= ||x|| / scale * 2^(2 bits + 1) <= high."""
        ends = [_square(number.floor(bits)) for number in self._size]
        return sum(low for low, _ in ends), sum(high for _, high in ends)

    def _round(self, bits: int) -> list[int] | None:
        """The nearest integers of x; None where more bits are needed."""
        floors = [number.floor(bits) for number in self._direction]
        ends = [_square(floor) for floor in floors]
        shortest, longest = isqrt(sum(low for low, _ in ends)), isqrt(sum(high for _, high in ends)) + 1
        if shortest == 0:
            return None
        low, high = self.radius(bits)
        top, bottom = self.scale.numerator, self.scale.denominator << (2 * bits + 1)
        out = []
        for floor in floors:
            # x_j = scale radius g_j / ||g||: the corners of its enclosure, by the sign of g_j
            below = Fraction(
                top * floor * (low if floor >= 0 else high), bottom * (longest if floor >= 0 else shortest)
            )
            ceiling = floor + 1
            above = Fraction(
                top * ceiling * (high if ceiling > 0 else low), bottom * (shortest if ceiling > 0 else longest)
            )
            first = round_half_up(below.numerator, below.denominator)
            if first != round_half_up(above.numerator, above.denominator):
                return None
            out.append(first)
        return out


def _square(floor: int) -> tuple[int, int]:
    """Bounds of n^2 for n in [floor, floor + 1]."""
    one, other = floor * floor, (floor + 1) * (floor + 1)
    return min(one, other), max(one, other)


@dataclass(frozen=True, slots=True)
class _Excess:
    """The real number (||z|| - ||x||) / scale + c >= 0."""

    proposal: _RealVector

    def enclosure(self, bits: int) -> tuple[int, int]:
        """Integers low <= t * 2^bits <= high, as close as that many digits of x allow."""
        found = self.proposal
        fine = bits + 16
        root = isqrt(found.square << (2 * fine))
        small, large = found.radius(fine)
        constant = found.slack * 2**fine
        low = root / found.scale - Fraction(large, 2 ** (fine + 1)) + constant
        high = (root + 1) / found.scale - Fraction(small, 2 ** (fine + 1)) + constant
        return max(int(low // 2**16), 0), -int(-high // 2**16)
