"""Many normal or discrete Laplace numbers at once, exact: the inverse of the distribution function at uniform numbers.

A uniform number is a word of 64 bits and all the digits that could still be drawn. Doubles enclose the number that
belongs to it, by Taylor polynomials whose error was bounded in ball arithmetic; where the enclosure does not decide
the whole number that is asked for, balls decide it, with more digits if need be. Notes rounded-gaussian and
discrete-laplace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache

import flint
import numpy as np
from numpy.typing import NDArray

from privspec.core.matrices import ExactVector, Integers, integers
from privspec.noise.samplers import WORD, Randomness

Words = NDArray[np.uint64]
Array = NDArray[np.float64]

OCTAVES = 24
"""Uniform numbers from 2^-24 on have a polynomial; the few below it are decided in balls."""
PIECES = 32
"""Polynomials for each octave, on pieces of one width."""
DEGREE = 9
_DIGITS = WORD - 1
"""Bits of a word that are digits; the last one is a sign."""
_INSIDE = _DIGITS - 1 - (PIECES - 1).bit_length()
"""Digits of an octave's number that say where in its piece it stands."""
UNIT = 2.0**-53
"""The largest relative error of one operation in doubles."""
CHUNK = 2**14
"""Numbers that are worked out together: they stay in the cache of a core."""
DOUBLE_BITS = 48
"""Binary digits after the point that doubles have."""
_LARGEST = 2.0**52
"""Of what doubles enclose: beyond it they have no digits after the point."""
SLACK = 1 + 2.0**-20
"""Covers the roundings of error bounds, which are worked out in doubles themselves."""


class Inverse(ABC):
    """A monotone function g on (0, 1], in balls: g(U) for a uniform U has the law of the size of a number."""

    @abstractmethod
    def at(self, uniform: flint.arb) -> flint.arb:
        """Its value."""

    @abstractmethod
    def series(self, uniform: flint.arb, width: flint.arb, order: int) -> list[flint.arb]:
        """The first coefficients of g(uniform + width t) in t; at a ball, balls that hold those of all its points."""


class NormalSize(Inverse):
    """|n| for a standard normal n: sqrt 2 times the inverse of erfc."""

    def at(self, uniform: flint.arb) -> flint.arb:
        return flint.arb(2).sqrt() * uniform.erfcinv()

    def series(self, uniform: flint.arb, width: flint.arb, order: int) -> list[flint.arb]:
        # x' = -k y and y' = x x' y for y = exp(x^2 / 2)
        k = width * (flint.arb.pi() / 2).sqrt()
        x = [self.at(uniform)]
        y = [(x[0] ** 2 / 2).exp()]
        moved = list[flint.arb]()
        """x x'"""
        for n in range(order - 1):
            x.append(-k * y[n] / (n + 1))
            moved.append(sum((x[i] * (n + 1 - i) * x[n + 1 - i] for i in range(n + 1)), flint.arb(0)))
            y.append(sum((moved[i] * y[n - i] for i in range(n + 1)), flint.arb(0)) / (n + 1))
        return x


class ExponentialSize(Inverse):
    """An exponential number: -log U."""

    def at(self, uniform: flint.arb) -> flint.arb:
        return -uniform.log()

    def series(self, uniform: flint.arb, width: flint.arb, order: int) -> list[flint.arb]:
        ratio = -width / uniform
        return [self.at(uniform), *(ratio**n / n for n in range(1, order))]


class UniformSize(Inverse):
    """U itself, as a size: with a fair sign it is uniform in (-1, 1)."""

    def at(self, uniform: flint.arb) -> flint.arb:
        return uniform

    def series(self, uniform: flint.arb, width: flint.arb, order: int) -> list[flint.arb]:
        return [uniform, width, *(flint.arb(0) for _ in range(order - 2))]


NORMAL, EXPONENTIAL, UNIFORM = NormalSize(), ExponentialSize(), UniformSize()


@lru_cache(maxsize=256)
def _octave(law: Inverse, octave: int) -> tuple[Array, Array]:
    """Polynomials (PIECES, DEGREE + 1) for U in [2^-octave-1, 2^-octave), and bounds (PIECES,) of their errors.

    A piece is U = middle + width t, |t| <= 1/2. The errors are those of the coefficients as doubles, of the rest of the
    series, of Horner's rule, and of t: it is rounded, and digits behind those of the word are not known.
    """
    coefficients, errors = np.empty((PIECES, DEGREE + 1)), np.empty(PIECES)
    unsure = 2.0**-55 + 2.0 ** (octave - _INSIDE)
    with flint.ctx.workprec(160):
        width = flint.arb(1) / (PIECES << octave + 1)
        for piece in range(PIECES):
            middle = width * (PIECES + piece) + width / 2
            around = law.series(flint.arb(middle, width / 2), width, DEGREE + 2)
            exact = law.series(middle, width, DEGREE + 1)
            taken = [float(a.mid()) for a in exact]
            wrong = float((around[DEGREE + 1].abs_upper() / 2 ** (DEGREE + 1)).upper())
            wrong += sum(float((abs(a - f) / 2**i).upper()) for i, (a, f) in enumerate(zip(exact, taken, strict=True)))
            size, horner = abs(taken[-1]), 0.0
            for f in taken[-2::-1]:
                product = (size + horner) / 2
                horner = horner / 2 + UNIT * product
                size = abs(f) + size / 2
                horner += UNIT * (size + horner)
            slope = float(around[1].abs_upper())
            coefficients[piece] = taken
            errors[piece] = (wrong + horner + slope * unsure) * SLACK
    return coefficients, errors


@lru_cache(maxsize=16)
def _table(law: Inverse, octaves: int) -> tuple[Array, Array]:
    """Polynomials of the first octaves, by degree (DEGREE + 1, pieces), and bounds of their errors (pieces,)."""
    parts = [_octave(law, octave) for octave in range(octaves)]
    return np.concatenate([p for p, _ in parts]).T.copy(), np.concatenate([e for _, e in parts])


def enclosed(law: Inverse, words: Words) -> tuple[Array, Array]:
    """Doubles near g(U) and bounds of their errors, infinite where there is no polynomial."""
    digits = words >> np.uint64(1)
    length = np.frexp(digits.astype(np.float64))[1].astype(np.int64)
    # a number that was rounded up to a power of two
    length -= (digits >> np.maximum(length - 1, 0).astype(np.uint64)) == 0
    octave = _DIGITS - length
    known = octave < OCTAVES
    octave[~known] = 0
    polynomials, errors = _table(law, int(octave.max(initial=0)) + 1)
    digits = digits << octave.astype(np.uint64)
    piece = octave * PIECES + ((digits >> np.uint64(_INSIDE)).astype(np.int64) & (PIECES - 1))
    inside = (digits & np.uint64(2**_INSIDE - 1)).astype(np.int64) - 2 ** (_INSIDE - 1)
    t = inside.astype(np.float64) * 2.0**-_INSIDE
    found = polynomials[DEGREE][piece]
    for coefficients in polynomials[DEGREE - 1 :: -1]:
        found *= t
        found += coefficients[piece]
    return found, np.where(known, errors[piece], np.inf)


def floors_near(size: Array, error: Array, scale: Array | float, part: Array | float) -> tuple[Array, Array]:
    """Between which doubles floor(part + scale size) is, for sizes that are known within errors.

    They are infinite, or no numbers, where doubles cannot say. Args: scale > 0, part: each the nearest double.
    """
    size = size * scale
    value = size + part
    # of the enclosure; of the factor and the product; of the part; of the sum and of both ends
    error = (error * scale + UNIT * (2 * np.abs(size) + 1 + 2 * np.abs(value))) * SLACK
    error[np.abs(value) >= _LARGEST] = np.inf
    return np.floor(value - error), np.floor(value + error)


def _odd(words: Words) -> NDArray[np.bool_]:
    return (words & np.uint64(1)).astype(bool)


class DrawnNumbers:
    """Numbers of one law, drawn together; each is the same however often and however closely it is asked for."""

    def __init__(self, law: Inverse, count: int, randomness: Randomness) -> None:
        self._law, self._words, self._randomness = law, randomness.words(count), randomness
        self._longer = dict[int, tuple[int, int]]()
        """Digits of the uniform numbers that one word did not decide, and how many they are."""

    def __len__(self) -> int:
        return len(self._words)

    @property
    def odd(self) -> NDArray[np.bool_]:
        """A fair coin for each."""
        return _odd(self._words)

    def floors(self, starts: ExactVector, factors: Sequence[Fraction], *, signed: bool) -> Integers:
        """floor(start + factor size), the integer; where `signed`, with - for + if the number is odd.

        Args: starts, as many as numbers; factors > 0, as many, or one.
        """
        above, below = starts.numerators, starts.denominator
        found = above // below
        parts = ((above - found * below) / below).astype(np.float64)
        scales = np.array([float(factor) for factor in factors])
        for here in self._chunks(0, len(self)):
            scale = scales[here] if len(scales) > 1 else scales
            low, high = floors_near(*self.enclosed(here, signed=signed), scale, parts[here])
            sure = low == high
            found[here] += np.where(sure, low, 0).astype(np.int64).astype(object)
            for i in (here.start + np.flatnonzero(~sure)).tolist():
                factor = factors[i if len(factors) > 1 else 0]
                turned = -factor if signed and self._words[i] & np.uint64(1) else factor
                found[i], _ = self._balls(i, Fraction(above[i], below), turned, 0)
        return np.asarray(found)

    def enclosed(self, here: slice, *, signed: bool) -> tuple[Array, Array]:
        """Doubles near some of them, and bounds of their errors, infinite where they cannot say; `signed` as above."""
        size, error = enclosed(self._law, self._words[here])
        if signed:
            np.negative(size, where=_odd(self._words[here]), out=size)
        return size, error

    def ends(self, bits: int, *, signed: bool, within: slice = slice(None)) -> tuple[Integers, Integers]:
        """Integers low <= size * 2^bits <= high of each, at most three apart in nearly all cases; `signed` as above.

        Args: within, which of them are asked for.
        """
        first, last, _ = within.indices(len(self))
        low, high = (nothing(last - first).numerators for _ in range(2))
        open_ = np.ones(last - first, dtype=bool)
        for here in self._chunks(first, last) if bits <= DOUBLE_BITS else ():
            below, above = floors_near(*self.enclosed(here, signed=signed), 2.0**bits, 0.0)
            there = slice(here.start - first, here.stop - first)
            open_[there] = np.isinf(above - below)
            low[there] = np.where(open_[there], 0, below).astype(np.int64)
            high[there] = np.where(open_[there], 0, above + 1).astype(np.int64)
        for i in np.flatnonzero(open_).tolist():
            factor = Fraction(-(1 << bits) if signed and self._words[first + i] & np.uint64(1) else 1 << bits)
            low[i], most = self._balls(first + i, Fraction(0), factor, 1)
            high[i] = most + 1
        return low, high

    def _chunks(self, first: int, last: int) -> Iterator[slice]:
        return (slice(start, min(start + CHUNK, last)) for start in range(first, last, CHUNK))

    def _balls(self, i: int, start: Fraction, factor: Fraction, apart: int) -> tuple[int, int]:
        """The floors of start + factor size at both ends of what is known, with digits until they are so close."""
        digits, bits = self._longer.get(i) or (int(self._words[i]) >> 1, _DIGITS)
        large = start.denominator.bit_length() + int(max(abs(start), abs(factor))).bit_length()
        while True:
            if digits:
                with flint.ctx.workprec(2 * bits + large):
                    at, scale = (flint.arb(flint.fmpq(*x.as_integer_ratio())) for x in (start, factor))
                    balls = [at + scale * self._law.at(flint.arb(digits + k) / (1 << bits)) for k in (0, 1)]
                    floors = [int(side.floor().fmpz()) for one in balls for side in (one.lower(), one.upper())]
                if max(floors) - min(floors) <= apart:
                    return min(floors), max(floors)
            digits, bits = digits << WORD | self._randomness.word(), bits + WORD
            self._longer[i] = digits, bits


def nearest_normal(answers: ExactVector, step: Fraction, randomness: Randomness) -> Integers:
    """How many steps the whole multiples of a step are that are nearest to answer + n, halves up, n ~ N(0, 1)."""
    twice = 2 * answers.denominator * step.numerator
    starts = ExactVector(2 * step.denominator * answers.numerators + twice // 2, twice)
    return DrawnNumbers(NORMAL, len(answers), randomness).floors(starts, (1 / step,), signed=True)


def nothing(count: int) -> ExactVector:
    """So many zeros."""
    return ExactVector(integers([0] * count), 1)


def laplace_steps(scales: Sequence[Fraction], count: int, randomness: Randomness) -> Integers:
    """Independent integers j with probability proportional to exp(-|j| / scale), one scale > 0 or one for each.

    The integer part of scale times an exponential number is geometric; it has a fair sign, and - 0 is drawn again.
    """
    found, left = nothing(count).numerators, np.arange(count)
    while len(left):
        drawn = DrawnNumbers(EXPONENTIAL, len(left), randomness)
        factors = scales if len(scales) == 1 else [scales[i] for i in left.tolist()]
        sizes = drawn.floors(nothing(len(left)), factors, signed=False)
        found[left] = np.where(drawn.odd, -sizes, sizes)
        left = left[drawn.odd & (sizes == 0)]
    return found
