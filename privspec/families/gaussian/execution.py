"""Plans that add noise to linear answers, executed: exact strategy answers, exact noise, then post-processing.

`draw` is the one way from a base vector to released numbers, for releases and for exact simulation alike; simulation
can also use floating-point noise, which is never a release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import lcm, prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError
from privspec.core.matrices import WORD, DyadicMatrix, ExactVector, Integers, integers, multiply
from privspec.core.records import dataclass, replace
from privspec.execute.data import Grid, place_entries
from privspec.execute.family import Plan, read_plan, readable_plan
from privspec.kernel.core.linear import InputLayout, Matrix, Release
from privspec.kernel.core.problem import Data
from privspec.noise.gaussian import GaussianNoise
from privspec.noise.inverse import DOUBLE_BITS, NORMAL, DrawnNumbers
from privspec.noise.law import NoiseLaw, drawn
from privspec.noise.samplers import Randomness
from privspec.problem.linear import as_floats

Array = NDArray[np.float64]
DEVIATIONS_LIMIT = 2**24
"""Numbers of the map from the noise to the outputs that are worked out for their standard deviations."""


# --- what is executed -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Executed:
    """A mechanism as the kernel reads it, `release`, and its numbers in arrays: what is judged is what runs.

    strategy (k, n); reconstruction (m, k) of the outputs, or (n, k) of the base vector, of which the outputs are
    `target` (m, n); offset (m,), with what pulled answers are moved by and the public values that a run is given.
    `release.round_outputs`: the outputs, and not the strategy answers, are rounded, because some observer sees outputs
    that mix more strategy rows than its guarantee covers.
    """

    release: Release
    inputs: tuple[Grid, ...]
    strategy: DyadicMatrix
    noise: NoiseLaw
    reconstruction: DyadicMatrix
    target: Array
    offset: Array

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.release.problem.released)

    def given(self, constants: Mapping[str, Any]) -> Executed:
        """The same once the public values of a run are known: they are part of what is added after the noise.

        Raises: UsageError PS0824 if one is missing, of another shape or not finite.
        """
        offset, wanted = self.offset, self.release.problem.constants
        for name, shape, map_ in wanted:
            why = None
            value = np.asarray(constants.get(name, ()), dtype=np.float64)
            if name not in constants:
                why = f"{name} has no value in this plan, and none was given"
            elif value.size != prod(shape) or np.squeeze(value).shape != tuple(e for e in shape if e != 1):
                why = f"{name} has the shape {value.shape}, and {shape} is expected"
            elif not np.all(np.isfinite(value)):
                why = f"{name} is not finite"
            if why is not None:
                listed = ", ".join(f"--constant {name}=FILE" for name, _, _ in wanted)
                raise UsageError.of("PS0824", why, help=f"give {listed}")
            offset = offset + as_floats(map_) @ value.reshape(-1)
        return replace(self, offset=offset)

    @property
    def repeated(self) -> bool:
        """Whether members of a class send the same answers, each of what it holds and with noise of its own."""
        return max(self.release.senders) > 1

    def noise_variances(self) -> Array:
        """The variances of the noise in the answers (k,), or in the sums of what is sent."""
        release = self.release
        known = release.noise.variances(self.strategy.shape[0], release.grid)
        return np.array([float(v * release.excess * n) for v, n in zip(known, release.senders, strict=True)])

    def approximate_noise(self, repetitions: int, seed: int) -> Array:
        """Floating-point noise in the same (repetitions, k): simulation only."""
        senders, generator = np.array(self.release.senders), np.random.default_rng(seed)
        if not self.repeated:
            return self.noise.approximate(len(senders), repetitions, generator)
        return self.noise.approximate_sums(senders, repetitions, generator)

    @property
    def vectors(self) -> int:
        """How many numbers a coordinate of the base vector, an answer, and a released number stand for."""
        return self.release.problem.vectors or 1

    def split(self, values: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Released numbers (..., m) by output, each (..., *shape)."""
        released, each = self.release.problem.released, self.vectors
        return {
            o.name: values[..., each * o.start : each * o.stop].reshape(values.shape[:-1] + o.shape) for o in released
        }

    def laid_out(self, values: Array) -> Array:
        """Released numbers (repetitions x vectors, m), for each number of vectors in turn, in the order of outputs."""
        each = values.reshape(-1, self.vectors, values.shape[-1])
        return np.asarray(each.swapaxes(1, 2).reshape(len(each), -1))


def read_executed(plan: Plan) -> Executed:
    """What a plan executes, in arrays.

    Raises: UsageError (PS0820), also for numbers beyond those of 64 bits times a power of two.
    """
    frame, release = read_plan(plan)
    with readable_plan():
        inputs = zip(release.problem.held, release.steps, frame.data, strict=True)
        return Executed(
            release,
            tuple(
                Grid(_given(held, data), step, data.rule == "drop", data.party, data.kept, data.derived)
                for held, step, data in inputs
            ),
            _dyadic(release.strategy),
            drawn(release),
            _dyadic(release.reconstruction),
            as_floats(release.problem.target),
            np.array([value.numerator / value.denominator for value in release.problem.offset])
            + np.array([float(value) for value in release.shift or (0,)]),
        )


def _given(held: InputLayout, data: Data) -> InputLayout:
    """An input as it is given: one that is read through a function alone by the name of that."""
    return replace(held, name=data.asserted[0].function) if data.asserted else held


def _dyadic(matrix: Matrix) -> DyadicMatrix:
    whole, below = matrix.numer_denom()
    exponent = int(below).bit_length() - 1
    if int(below) != 2**exponent:
        raise ValueError("the unit of a matrix is no power of two")
    entries = [int(v) for v in whole.entries()]
    found = np.array(entries, dtype=np.int64 if all(abs(v) < 2**WORD for v in entries) else object)
    return DyadicMatrix(found.reshape(matrix.nrows(), matrix.ncols()), exponent)


# --- from a base vector to what is released -------------------------------------------------------


Base: TypeAlias = ExactVector | list[NDArray[Any]]
"""The base vector; or of each input the entries, where every party sends what depends on its own."""


def draw(executed: Executed, base: Base, randomness: Randomness) -> Array:
    """One draw of the mechanism at a base vector.

    Returns: released numbers (m,), multiples of the output grid.
    """
    return np.asarray(draws_of(executed, base, randomness, 1)[0])


def strategy_answers(executed: Executed, base: Base) -> list[ExactVector]:
    """Strategy answers, for each number of the vectors in turn; or their sums."""
    each = executed.vectors
    if not isinstance(base, ExactVector):
        base = _placed(executed, base)
    parts = [base] if each == 1 else [ExactVector(base.numerators[i::each], base.denominator) for i in range(each)]
    return [multiply(executed.strategy, part) for part in parts]


def draws_of(executed: Executed, base: Base, randomness: Randomness, repetitions: int) -> Array:
    """Released numbers (repetitions, all of them)."""
    if not isinstance(base, ExactVector):
        drawn = [sent(executed, base, randomness) for _ in range(repetitions)]
        return post_process(executed, np.stack([in_units(one, executed.release.grid) for one in drawn]))
    step, answers = _round_outputs if executed.release.round_outputs else _noisy, strategy_answers(executed, base)
    found = np.stack([step(executed, own, randomness) for _ in range(repetitions) for own in answers])
    return executed.laid_out(found if executed.release.round_outputs else post_process(executed, found))


def _noisy(executed: Executed, answers: ExactVector, randomness: Randomness) -> Array:
    grid = executed.release.grid
    return in_units(executed.noise.release(answers, grid, randomness), grid)


def post_process(executed: Executed, noisy: Array) -> Array:
    """Released numbers (repetitions, m) from noisy strategy answers (repetitions, k): no data are used."""
    rebuilt = noisy @ executed.reconstruction.to_float().T
    if executed.release.of_inputs:
        rebuilt = rebuilt @ executed.target.T
    # the nearest multiples of the grid; exact where it is a power of two and they are below 2^53 steps
    step = float(executed.release.output_grid)
    return np.asarray(np.rint((rebuilt + executed.offset) / step) * step + 0.0)


def output_deviations(executed: Executed) -> Array | None:
    """The standard deviation of the noise in each released number (m,) to six digits, rounding to the grid aside.

    None where outputs are computed from estimated inputs, and their map from the noise is too large to write down.
    """
    rows = executed.strategy.shape[0]
    noise = executed.reconstruction.to_float()
    if executed.release.of_inputs:
        if rows * len(executed.target) > DEVIATIONS_LIMIT:
            return None
        noise = executed.target @ noise
    deviations = np.sqrt(np.einsum("ij,ij,j->i", noise, noise, executed.noise_variances()))
    return np.array([float(f"{deviation:.6g}") for deviation in deviations.tolist()])


def deviations_of(executed: Executed) -> Mapping[str, Array]:
    """The same by output, of all numbers; none where the map is too large."""
    found = output_deviations(executed)
    return {} if found is None else executed.split(np.repeat(found, executed.vectors))


def in_units(steps: Integers, grid: Fraction) -> Array:
    """Steps of a lattice as doubles."""
    return np.array([s * grid.numerator / grid.denominator for s in steps], dtype=np.float64)


def _round_outputs(executed: Executed, answers: ExactVector, randomness: Randomness) -> Array:
    """L (B u + n) + offset rounded to the output grid with nothing else rounded.

    Each normal number is known to lie in an interval; it is refined until every output's nearest grid point is the same
    all over the interval that follows.
    """
    noise = executed.noise
    assert isinstance(noise, GaussianNoise)
    scaled = noise.in_standard_units(answers)
    reconstruction, sd = executed.reconstruction, noise.standard_deviation
    normals = DrawnNumbers(NORMAL, len(answers), randomness)
    offset = [Fraction(float(x)) for x in executed.offset]
    widths = integers(np.abs(reconstruction.integers).sum(axis=1, dtype=object))
    unit, grid = reconstruction.unit * sd, executed.release.output_grid
    bits = DOUBLE_BITS
    while True:
        low, high = normals.ends(bits, signed=True)
        # a strategy answer is between quotient + low and quotient + 1 + high: their sum, and half a width, are halved
        middles = 2 * ((scaled.numerators << bits) // scaled.denominator) + low + high + 1
        spread = widths * (max(high - low) + 1)
        centre = multiply(DyadicMatrix(reconstruction.integers.copy(), 0), ExactVector(middles, 1)).numerators
        decided = []
        for middle, reach, shift in zip(centre, spread, offset, strict=True):
            first, last = (
                ((middle + side * reach) * unit / 2 ** (bits + 1) + shift) / grid + Fraction(1, 2) for side in (-1, 1)
            )
            if first // 1 != last // 1:
                break
            decided.append(int(first // 1))
        else:
            return in_units(integers(decided), grid)
        bits *= 2


def origin(executed: Executed) -> Base:
    """The base vector of data that are all zero (clipped to the domain), or of an empty table."""
    return base_of(executed, [np.zeros(one.size) for one in executed.inputs])


def base_of(executed: Executed, values: list[NDArray[Any]]) -> Base:
    """The base vector of data."""
    return values if executed.repeated else _placed(executed, values)


def _placed(executed: Executed, values: list[NDArray[Any]]) -> ExactVector:
    return ExactVector.joined([place_entries(*pair) for pair in zip(executed.inputs, values, strict=True)])


# --- what all parties send ------------------------------------------------------------------------


AT_ONCE = 2**17
"""Answers of parties who count alike that are worked out and drawn at once."""


def sent(run: Executed, values: Sequence[NDArray[Any]], randomness: Randomness) -> Integers:
    """The sums of what all parties send, each its answers with noise of its own, in steps of the lattice.

    Args: values, of each input what `read_values` reads.
    """
    matrix, law, grid = run.strategy, run.noise, run.release.grid
    found, used = integers([0] * matrix.shape[0]), matrix.integers != 0
    for inputs, columns, members in _classes(run):
        rows = np.flatnonzero(used[:, columns].any(axis=1))
        own = DyadicMatrix(np.ascontiguousarray(matrix.integers[np.ix_(rows, columns)]), matrix.exponent)
        each = max(AT_ONCE // max(len(columns), len(rows), 1), 1)
        for start in range(0, len(members) if len(rows) else 0, each):
            some = members[start : start + each]
            held = [place_entries(one, values[i].reshape(-1, size)[some].ravel()) for i, one, size in inputs]
            base = _beside(
                [part.numerators.reshape(len(some), -1) for part in held], [part.denominator for part in held]
            )
            answers = multiply(own, ExactVector(base.numerators.T, base.denominator))
            for parts in [[k] for k in range(len(rows))] if law.separate else [list(range(len(rows)))]:
                asked = ExactVector(answers.numerators[parts].ravel(), answers.denominator)
                noisy = law.part(rows[parts]).release(asked, grid, randomness)
                found[rows[parts]] += noisy.reshape(len(parts), -1).sum(axis=1)
    none = np.flatnonzero(~used.any(axis=1))
    if len(none):
        found[none] = law.part(none).release(ExactVector(integers([0] * len(none)), 1), grid, randomness)
    return found


def _beside(parts: list[Integers], below: list[int]) -> ExactVector:
    """Arrays (members, numbers) over denominators, one beside the other over one."""
    whole = lcm(*below)
    return ExactVector(np.hstack([part * (whole // own) for part, own in zip(parts, below, strict=True)]), whole)


def _classes(run: Executed) -> Iterator[tuple[list[tuple[int, Grid, int]], NDArray[np.intp], NDArray[np.intp]]]:
    """For each class of parties its inputs, with their places and how many numbers a member holds; and its coordinates.

    Then which parties its members are. What is laid out is one member's.
    """
    places, sets = run.release.problem.places, dict[str, list[tuple[int, Grid]]]()
    for i, one in enumerate(run.inputs):
        sets.setdefault(f"{one.index}," if one.index else one.held.name, []).append((i, one))
    for some in sets.values():
        alike = places[some[0][1].held.start][1]
        labels = np.repeat(alike.classes, alike.counts)
        for kind in range(len(alike.copies)):
            own = [(i, one, *places[one.held.start]) for i, one in some]
            columns = [np.arange(at + kind * each.length, at + (kind + 1) * each.length) for _, _, at, each in own]
            inputs = [(i, replace(one, held=replace(one.held, units=None)), each.length) for i, one, _, each in own]
            yield inputs, np.concatenate(columns), np.flatnonzero(labels == kind)
