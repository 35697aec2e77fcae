"""Gaussian noise for running totals of a long row, the bound in closed form below it, and what draws it, exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from math import floor, inf, log2
from typing import Any

import numpy as np
from flint import fmpz_poly
from numpy.typing import NDArray

from privspec.core.diagnostics import InternalError
from privspec.core.matrices import ExactVector, integers
from privspec.execute.data import Grid, place_entries, read_inputs
from privspec.execute.family import RunContext
from privspec.families.decision import Alternative, decimal_up, gaussian_prices
from privspec.families.family import Settings
from privspec.families.gaussian.drawing import DRAWN, DrawnMechanism, DrawnSecret, six_digits
from privspec.families.gaussian.structured import OUTPUT_STEPS, Offer, Structured, System
from privspec.kernel.core.numbers import sqrt_up
from privspec.kernel.core.problem import Data
from privspec.kernel.strategies.banded import BITS, roots
from privspec.kernel.streams import AMONG, NOTES, Banded, Pattern, Stream, pattern_of
from privspec.kernel.streams import least as lower_bound
from privspec.kernel.writing import write
from privspec.noise.gaussian import GaussianNoise
from privspec.noise.samplers import Randomness
from privspec.solvers.totals import Row, convolved, ramp_of, summed_inverse
from privspec.solvers.totals import deviations as sizes_of

DIGITS, RAMP_BITS = 30, 10
"""Binary digits of a deviation, and of the ramp."""
SPARE = Fraction(1, 2**28)
"""By so much of itself a deviation is larger than it has to be."""
GRID_BITS = 30
"""Noisy answers lie on a grid of the least deviation times 2^-30, what is released on one of 2^-14 of it."""
INPUT_BITS = 24
"""Of the grid of the inputs, beside those that count the numbers in the row."""
Band = tuple[float, Fraction, int, list[int], list[float]]
"""A loss, and the ramp, the band, the lengths of stretches and their deviations."""


class LongRows(Structured):
    """Takes running totals of one long row."""

    def offers(self, system: System, settings: Settings) -> Iterator[Offer]:
        """Noise near the least loss in a band."""
        block, pattern = system.block, _pattern(system)
        whole = (block.steps, pattern.times, pattern.apart, pattern.exactly)
        evenly = pattern.times * block.steps * (block.steps + 1) / 2
        bands: list[Band] = [(evenly, Fraction(0), 1, [block.steps], [1.0])]
        for band in sorted({pattern.apart, block.steps}):
            ramp = Fraction(round(ramp_of(Row(*whole, band)) * 2**RAMP_BITS), 2**RAMP_BITS)
            lengths, sizes, loss = sizes_of(Row(*whole, band), float(ramp))
            meet = pattern.times if band > pattern.apart else 1
            bands.append((loss * meet, ramp, band, lengths.tolist(), sizes.tolist()))
        found, least = None, inf
        for loss, ramp, band, stretches, deviations in sorted(bands):
            # what is executed loses no less than was reckoned: it is that which counts
            if loss * _unit_loss(system) < least:
                executed, mu = _executed(system, ramp, band, stretches, deviations)
                reached = float(executed.loss()[0])
                if found is None or reached < least:
                    found, least = (executed, mu), reached
        assert found is not None
        executed, mu = found
        yield Offer(
            "correlated Gaussian noise: a banded root of the totals",
            least,
            write(executed),
            ({"mu": str(mu)},),
            NOTES,
            {"line": 0, "mu": system.mu_of(0)},
            # no Gaussian noise of any covariance has less
            partial(lower_bound, system.frame.obligations, block),
            AMONG,
            lambda: gaussian_prices(system.model.requirements[0]),
            {"name": "banded root of the totals"},
            tuple(_alternatives(system)) if settings.alternatives else (),
        )

    def size(self, system: System) -> int:
        """No matrix is laid out."""
        return 1


def _pattern(system: System) -> Pattern:
    """What one unit changes."""
    return pattern_of(system.frame.obligations[0], system.block)


def _executed(
    system: System, ramp: Fraction, band: int, lengths: list[int], sizes: list[float]
) -> tuple[Banded, Fraction]:
    """The noise with the line met exactly, and the mu that it reaches."""
    block = system.block
    allowed = system.model.requirements[0].measure.gaussian_mu_down() or Fraction(0)
    shares = tuple(Fraction(round(size / min(sizes) * 2**DIGITS), 2**DIGITS) for size in sizes)
    input_grid = Fraction(1, 2 ** (INPUT_BITS + block.steps.bit_length()))
    bare = Banded(block, ramp, band, tuple(lengths), shares, input_grid, Fraction(1), Fraction(1))
    reached = sqrt_up(bare.mu_squared(_pattern(system)), 100)
    unit = _short(reached / allowed * (1 + SPARE))
    least_size = floor(log2(unit * min(shares)))
    grid, output_grid = (Fraction(2) ** (least_size - bits) for bits in (GRID_BITS, OUTPUT_STEPS))
    deviations = tuple(unit * share for share in shares)
    found = replace(bare, deviations=deviations, grid=grid, output_grid=output_grid)
    mu = Fraction(decimal_up(reached / unit))  # noise and what it hides scale alike
    if mu > allowed:
        raise InternalError("the noise that was found does not meet the line")
    return found, mu


def _unit_loss(system: System) -> float:
    """What a loss of 1 is, of single numbers that move by 1 where mu is 1."""
    block: Stream = system.block
    return float(block.weight * block.amount**2) * block.each / system.mus[0] ** 2


def _short(value: Fraction) -> Fraction:
    """A short binary fraction near a number."""
    shift = Fraction(2) ** (DIGITS - floor(log2(value)))
    return round(value * shift) / shift


def _alternatives(system: System) -> Iterator[Alternative]:
    """What usual ways to add noise to running totals would cost, each at its least."""
    block, pattern = system.block, _pattern(system)
    steps, scale = block.steps, _unit_loss(system)
    found = [
        ("equal noise on each number", pattern.times * steps * (steps + 1) / 2),
        ("equal noise on each total", steps * _of_totals(steps, pattern)),
    ]
    for name, loss in sorted(found, key=lambda one: one[1]):
        yield Alternative(name, loss * scale, "meets the line of the spec")


def _of_totals(steps: int, pattern: Pattern) -> float:
    """The largest squared change of all totals by what one unit changes: all the same way, as early as may be."""
    places = [turn * pattern.apart for turn in range(pattern.times)]
    ends = [*places[1:], steps]
    return float(
        sum((turn + 1) ** 2 * (end - start) for turn, (start, end) in enumerate(zip(places, ends, strict=True)))
    )


# --- runs ----

Array = NDArray[np.float64]


class StreamMechanism(DrawnMechanism[Banded, ExactVector]):
    """The answers of the strategy get noise; totals are those of what the noisy answers say."""

    BLOCK = Stream

    @staticmethod
    def content(block: Any, source: Data, data: Mapping[str, Any], circumstances: RunContext) -> ExactVector:
        """The numbers on the grid of a spec that has no plan yet."""
        return read_inputs((Grid(block.held, Fraction(1, 2**24), kept=source.kept),), data, circumstances)

    @property
    def grid(self) -> Grid:
        """The input as data are read into it."""
        return Grid(self.executed.block.held, self.executed.input_grid)

    @property
    def released(self) -> tuple[Any, ...]:
        return (self.executed.block.released,)

    @property
    def nothing(self) -> ExactVector:
        """Data that are all zero, clipped to the domain."""
        return place_entries(self.grid, np.zeros(self.grid.size))

    def kept(self, data: Mapping[str, Any], circumstances: RunContext) -> ExactVector:
        return read_inputs((self.grid,), data, circumstances)

    def secret(self, content: ExactVector, strict: bool) -> StreamSecret:
        return StreamSecret(self, content, strict)

    def errors(self, draws: int, seed: int) -> Mapping[str, Array]:
        """Noise in floating point; rounding to the grid aside."""
        block, generator = self.executed.block, np.random.default_rng(seed)
        if draws * self.grid.size > DRAWN:
            return {}
        noise = generator.standard_normal((draws, block.each, block.steps)) * self.sizes
        totals = convolved(noise, self.inverse, block.steps)
        return {block.released.name: totals.swapaxes(1, 2).reshape(draws, *block.released.shape)}

    @property
    def inverse(self) -> Array:
        """What noise in a number adds to later totals."""
        return summed_inverse(self.executed.block.steps, float(self.executed.ramp), self.executed.band)

    @property
    def sizes(self) -> Array:
        """The deviation of the noise on each answer."""
        return np.repeat([float(size) for size in self.executed.deviations], self.executed.lengths)


class StreamSecret(DrawnSecret[StreamMechanism, ExactVector]):
    """The numbers on their grid."""

    @property
    def size(self) -> int:
        return len(self.content)

    def numbers(self, randomness: Randomness) -> Array:
        """The released totals: exact until the noisy answers are written as doubles."""
        executed, each = self.mechanism.executed, self.mechanism.executed.block.each
        strategy, grid = fmpz_poly(roots(executed.ramp, executed.band)), executed.grid
        noisy = np.empty((each, executed.block.steps))
        for i in range(each):
            row = fmpz_poly(self.content.numerators[i::each].tolist())
            answers = integers(row.mul_low(strategy, noisy.shape[1]).coeffs())
            answers = np.concatenate((answers, integers([0] * (noisy.shape[1] - len(answers)))))
            at = 0
            for count, size in zip(executed.lengths, executed.deviations, strict=True):
                exact = ExactVector(answers[at : at + count], self.content.denominator << BITS)
                steps = GaussianNoise(size).release(exact, grid, randomness)
                noisy[i, at : at + count] = [step * grid.numerator / grid.denominator for step in steps]
                at += count
        return self.on_grid([self._summed(noisy)])

    @cached_property
    def _plain(self) -> Array:
        """The totals without noise."""
        block = self.mechanism.executed.block
        return np.cumsum(self.content.to_float().reshape(block.steps, block.each), axis=0).reshape(-1)

    def noisy(self, generator: np.random.Generator) -> Array:
        block = self.mechanism.executed.block
        noise = generator.standard_normal((block.each, block.steps)) * self.mechanism.sizes
        return self.on_grid([self._plain + self._summed(noise)])

    def deviations(self) -> Mapping[str, Array]:
        block, squares = self.mechanism.executed.block, self.mechanism.inverse**2
        spread = np.sqrt(convolved(self.mechanism.sizes**2, squares, block.steps))
        return self.mechanism.split(np.repeat(six_digits(spread), block.each))

    def _summed(self, noisy: Array) -> Array:
        """Totals of what noisy answers (d, n) say, (n d,)."""
        return np.asarray(convolved(noisy, self.mechanism.inverse, noisy.shape[1]).T.reshape(-1))
