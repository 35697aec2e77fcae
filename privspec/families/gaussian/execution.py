"""Plans that add noise to linear answers, executed: exact strategy answers, exact noise, then post-processing.

`draw` is the one way from a base vector to released numbers, for releases and for exact simulation alike; simulation
can also use floating-point noise, which is never a release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError
from privspec.core.matrices import WORD, DyadicMatrix, ExactVector, Integers, integers, multiply
from privspec.core.records import dataclass, replace
from privspec.execute.budget import Spend
from privspec.execute.data import Grid, data_rules, place_entries, read_inputs, read_values
from privspec.execute.family import (
    Circumstances,
    Drawn,
    Exposure,
    FamilyMechanism,
    Keys,
    Mechanism,
    Plan,
    Secret,
    Simulation,
    readable_plan,
    refuse_long_simulation,
)
from privspec.families.gaussian.messages import Parts, PartyMechanism, combined, sent
from privspec.kernel.core.linear import Held, Matrix, Release, read_linear, read_release
from privspec.kernel.core.linear_privacy import largest_loss
from privspec.kernel.core.problem import Data, Frame, read_frame
from privspec.kernel.core.reading import Item, read
from privspec.kernel.laws.staircase import Noise
from privspec.kernel.rows import Intervals, Rows, chosen_rows, doubles, laid_out
from privspec.noise.gaussian import GaussianNoise
from privspec.noise.inverse import DOUBLE_BITS, NORMAL, DrawnNumbers
from privspec.noise.knorm import KNormL2Noise
from privspec.noise.laplace import LaplaceNoise
from privspec.noise.law import NoiseLaw
from privspec.noise.samplers import Randomness, SimulationRandomness
from privspec.noise.shares import GaussianShares, LaplaceShares
from privspec.registry import block_of

if TYPE_CHECKING:
    from privspec.model.graph import Model

Array = NDArray[np.float64]
DEVIATIONS_LIMIT = 2**24
"""Numbers of the map from the noise to the outputs that are worked out for their standard deviations."""


# --- what is executed -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Executed:
    """A mechanism as the kernel reads it, `release`, and its numbers in arrays: what is judged is what runs.

    strategy (k, n); reconstruction (m, k) of the outputs, or (n, k) of the base vector, of which the outputs are
    `target` (m, n); offset (m,), with the public values that a run is given. `release.round_outputs`: the outputs, and
    not the strategy answers, are rounded, because some observer sees outputs that mix more strategy rows than its
    guarantee covers.
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
            offset = offset + _floats(map_) @ value.reshape(-1)
        return replace(self, offset=offset)

    @property
    def repeated(self) -> bool:
        """Whether members of a class send the same answers, each of what it holds and with noise of its own."""
        return max(self.release.senders) > 1

    def noise_variances(self) -> Array:
        """The variances of the noise in the answers (k,), or in the sums of what is sent."""
        each = self.noise.row_variances(self.strategy.shape[0], self.release.grid)
        return np.asarray(each * np.array(self.release.senders))

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


def read_kernel(plan: Plan) -> tuple[Frame, Release]:
    """The frame of a plan's problem and its executed mechanism, by the kernel's readers.

    Raises: UsageError (PS0820) if the plan has none that this version can execute.
    """
    with readable_plan():
        mechanism, block = plan["mechanism"], block_of(plan)
        frame = read_frame(Item(plan["problem"], "problem"))
        linear = read_linear(Item(block, "problem.blocks[0]"), frame)
        family, executed = Item(mechanism["family"], "family"), Item(mechanism["executed"], "executed")
        return frame, read_release(family, executed, linear, frame)


def read_executed(plan: Plan) -> Executed:
    """The same in arrays.

    Raises: UsageError (PS0820), also for numbers beyond those of 64 bits times a power of two.
    """
    frame, release = read_kernel(plan)
    with readable_plan():
        inputs = zip(release.problem.held, release.steps, frame.data, strict=True)
        return Executed(
            release,
            tuple(
                Grid(_given(held, data), step, data.rule == "drop", data.party, data.kept)
                for held, step, data in inputs
            ),
            _dyadic(release.strategy),
            _law(release.noise, release.grid),
            _dyadic(release.reconstruction),
            _floats(release.problem.target),
            np.array([value.numerator / value.denominator for value in release.problem.offset]),
        )


def _given(held: Held, data: Data) -> Held:
    """An input as it is given: one that is read through a function alone by the name of that."""
    return replace(held, name=data.asserted[0].function) if data.asserted else held


def _law(noise: Noise, grid: Fraction) -> NoiseLaw:
    if noise.law:
        from privspec.noise.stepped import SteppedNoise  # most plans are of several numbers

        return SteppedNoise(noise.law, grid)
    first, among = noise.scales[0], (noise.parties, noise.honest)
    laws: dict[str, Callable[[], NoiseLaw]] = {
        "gaussian": lambda: GaussianNoise(first),
        "laplace": lambda: LaplaceNoise(noise.scales),
        "knorm-l2": lambda: KNormL2Noise(first),
        "gaussian-shares": lambda: GaussianShares(*among, first),
        "laplace-shares": lambda: LaplaceShares(*among, noise.scales),
    }
    return laws[noise.shape]()


def _dyadic(matrix: Matrix) -> DyadicMatrix:
    whole, below = matrix.numer_denom()
    exponent = int(below).bit_length() - 1
    if int(below) != 2**exponent:
        raise ValueError("the unit of a matrix is no power of two")
    entries = [int(v) for v in whole.entries()]
    found = np.array(entries, dtype=np.int64 if all(abs(v) < 2**WORD for v in entries) else object)
    return DyadicMatrix(found.reshape(matrix.nrows(), matrix.ncols()), exponent)


def _floats(matrix: Rows) -> Array:
    """The nearest doubles."""
    if isinstance(matrix, Intervals):
        places = np.arange(matrix.width)
        starts, ends = np.array(matrix.starts)[:, None], np.array(matrix.ends)[:, None]
        return np.asarray((starts <= places) & (places < ends), dtype=np.float64)
    return np.array(doubles(laid_out(matrix)), dtype=np.float64).reshape(matrix.nrows(), matrix.ncols())


# --- from a base vector to what is released -------------------------------------------------------


Base: TypeAlias = ExactVector | list[NDArray[Any]]
"""The base vector; or of each input the entries, where every party sends what depends on its own."""


def draw(executed: Executed, base: Base, randomness: Randomness) -> Array:
    """One draw of the mechanism at a base vector.

    Returns: released numbers (m,), multiples of the output grid.
    """
    return np.asarray(_draws(executed, base, randomness, 1)[0])


def _answers(executed: Executed, base: Base) -> list[ExactVector]:
    """Strategy answers, for each number of the vectors in turn; or their sums."""
    each = executed.vectors
    if not isinstance(base, ExactVector):
        base = _placed(executed, base)
    parts = [base] if each == 1 else [ExactVector(base.numerators[i::each], base.denominator) for i in range(each)]
    return [multiply(executed.strategy, part) for part in parts]


def _draws(executed: Executed, base: Base, randomness: Randomness, repetitions: int) -> Array:
    """Released numbers (repetitions, all of them)."""
    if not isinstance(base, ExactVector):
        drawn = [sent(executed, base, randomness) for _ in range(repetitions)]
        return post_process(executed, np.stack([_to_float(one, executed.release.grid) for one in drawn]))
    step, answers = _round_outputs if executed.release.round_outputs else _noisy, _answers(executed, base)
    found = np.stack([step(executed, own, randomness) for _ in range(repetitions) for own in answers])
    return executed.laid_out(found if executed.release.round_outputs else post_process(executed, found))


def _noisy(executed: Executed, answers: ExactVector, randomness: Randomness) -> Array:
    grid = executed.release.grid
    return _to_float(executed.noise.release(answers, grid, randomness), grid)


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


def _to_float(steps: Integers, grid: Fraction) -> Array:
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
            return _to_float(integers(decided), grid)
        bits *= 2


def origin(executed: Executed) -> Base:
    """The base vector of data that are all zero (clipped to the domain), or of an empty table."""
    return _base(executed, [np.zeros(one.size) for one in executed.inputs])


def _base(executed: Executed, values: list[NDArray[Any]]) -> Base:
    return values if executed.repeated else _placed(executed, values)


def _placed(executed: Executed, values: list[NDArray[Any]]) -> ExactVector:
    return ExactVector.joined([place_entries(*pair) for pair in zip(executed.inputs, values, strict=True)])


# --- runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class LinearMechanism(FamilyMechanism):
    """Exact strategy answers, exact noise, then post-processing."""

    executed: Executed
    grid: str
    trust: str
    digest: str

    @classmethod
    def of_plan(cls, plan: Plan) -> LinearMechanism:
        grid, trust = str(plan["mechanism"]["executed"]["output_grid"]), str(plan["problem"]["trust"]["kind"])
        return cls(read_executed(plan), grid, trust, str(plan.get("digest", "")))

    @property
    def by_messages(self) -> bool:
        """Whether parties hold all data, and each adds noise by itself, or a share of it."""
        return Parts(self.executed, self.trust).apart

    @property
    def masked(self) -> bool:
        return Parts(self.executed, self.trust).sums

    @staticmethod
    def fit(model: Model, data: Mapping[str, Any], circumstances: Circumstances) -> None:
        from privspec.families.gaussian.release import INPUT_GRID_BITS
        from privspec.problem.elaborate import data_of
        from privspec.problem.form import document
        from privspec.problem.linear import grid_of, held_of

        found = []
        for block in model.blocks:
            held = read(Held, Item(document(held_of(block)), block.name))
            assert isinstance(held, Held)
            step = grid_of(block, INPUT_GRID_BITS)
            said = data_of(model, model.nodes[block.name])
            name = model.through.get(block.name, block.name)
            found.append(Grid(replace(held, name=name), step, said.rule == "drop", said.party, said.kept))
        read_inputs(found, data, circumstances)

    def of_party(self, party: str, keys: Keys | None = None) -> Mechanism:
        """What one party sends: noisy answers of its own, or its masked part of a secure sum.

        Raises: UsageError PS0844, PS0850, PS0857.
        """
        return PartyMechanism.of(self, party, keys)

    def combine(self, digest: str, messages: Sequence[Mapping[str, Any]]) -> Drawn:
        """The release, from the messages of all parties.

        Raises: UsageError PS0844; DataError PS0811, PS0842, PS0843.
        """
        executed = self.executed.given({})
        noisy = _to_float(combined(self, messages), executed.release.grid)
        values = executed.split(np.asarray(post_process(executed, noisy[None, :])[0]))
        return Drawn(values, self.grid, deviations=deviations_of(executed))

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.executed.outputs

    def read(self, data: Mapping[str, Any], circumstances: Circumstances) -> Secret:
        """The base vector of the data.

        Raises: DataError; UsageError PS0824.
        """
        ready = replace(self, executed=self.executed.given(circumstances.constants))
        base = _base(self.executed, read_values(self.executed.inputs, data, circumstances))
        added = (
            f"{name}: a public value given at this run, added after the noise"
            for name, _, _ in self.executed.release.problem.constants
        )
        return _BaseVector(ready, base, (*data_rules(self.executed.inputs, circumstances.strict), *added))

    def errors(self, draws: int, seed: int) -> Mapping[str, Array]:
        """Noise in floating point; rounding to the grid aside."""
        executed, rows = self.executed, self.executed.strategy.shape[0]
        if rows * draws * executed.vectors > DEVIATIONS_LIMIT:
            return {}
        noise = executed.approximate_noise(draws * executed.vectors, seed)
        rebuilt = noise @ executed.reconstruction.to_float().T
        return executed.split(executed.laid_out(rebuilt @ executed.target.T if executed.release.of_inputs else rebuilt))

    def simulate(self, asked: Simulation) -> Array:
        """Draws at a base vector, by default that of data that are all zero."""
        executed = self.executed
        rows = sum(executed.release.senders) * executed.vectors
        if isinstance(asked.base, ExactVector) and not executed.repeated:
            base: Base = asked.base
        else:
            data = asked.data
            base = origin(executed) if data is None else _base(executed, read_values(executed.inputs, data))
        if asked.approximate:
            noise = executed.approximate_noise(asked.repetitions * executed.vectors, asked.seed)
            whole = np.tile(np.stack([own.to_float() for own in _answers(executed, base)]), (asked.repetitions, 1))
            return executed.laid_out(post_process(executed, whole + noise))
        refuse_long_simulation(
            asked.repetitions * rows,
            f"{asked.repetitions} exact draws of {rows} numbers",
            "pass approximate=True: floating-point noise, good enough for a simulation",
        )
        return _draws(executed, base, SimulationRandomness(asked.seed), asked.repetitions)


@dataclass(frozen=True, eq=False, slots=True)
class _BaseVector(Secret):
    mechanism: LinearMechanism
    base: Base
    rules: tuple[str, ...]

    def draw(self, randomness: Randomness) -> Drawn:
        executed = self.mechanism.executed
        return Drawn(executed.split(draw(executed, self.base, randomness)), self.mechanism.grid)

    def deviations(self) -> Mapping[str, Array]:
        return deviations_of(self.mechanism.executed)


class LinearExposure(Exposure):
    """All outputs are functions of the noisy strategy answers (notes/post-processing.md)."""

    @cached_property
    def _read(self) -> tuple[Frame, Release]:
        return read_kernel(self.plan)

    @property
    def outputs(self) -> frozenset[str]:
        return frozenset(one.name for one in self._read[1].problem.released)

    def covers(self, requirement: int, outputs: frozenset[str]) -> bool:
        """These are all outputs or, where answers are rounded, outputs that every strategy answer goes into."""
        _, release = self._read
        if self.outputs <= outputs or release.of_inputs or release.round_outputs:
            return self.outputs <= outputs or release.of_inputs
        shown = chosen_rows(release.reconstruction, release.problem.rows_of(tuple(outputs))).transpose().tolist()
        return all(any(column) for column in shown)

    def joint_spend(self, model: Model, requirement: int) -> Spend | None:
        """The cost of all noisy strategy answers, as the kernel bounds it."""
        from privspec.families.gaussian.exact import box_scalings
        from privspec.problem.linear import difference_of

        differences, (frame, release) = difference_of(model, model.requirements[requirement]), self._read
        if differences is None:
            return None
        strategy = _floats(release.strategy)
        scaling = [box_scalings(strategy, one, release.problem.places) for one in differences]
        witness = Item({"inverse": None, "scaling": scaling}, "witness")
        found = largest_loss(release, frame, tuple(self.outputs), differences, witness)
        if release.noise.law:
            epsilon = release.noise.law.epsilon
            return Spend(pair=(epsilon, found)) if found else Spend(pure=epsilon)
        return Spend(mu=found) if release.noise.gaussian else Spend(pure=found)
