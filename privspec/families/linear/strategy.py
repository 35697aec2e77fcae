"""Executes a plan: exact strategy answers, exact noise, then post-processing to the released numbers.

`draw` is the one way from a base vector to released numbers, for releases and for exact simulation alike;
`simulate` can also use
floating-point noise, which is never a release.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.matrices import DyadicMatrix
from privspec.execute.base import place_counts, place_entries
from privspec.execute.exact import ExactVector, Integers, integers, multiply
from privspec.execute.executed import Executed
from privspec.execute.family import Target, mechanism_of, refuse_long_simulation
from privspec.execute.noise import GaussianNoise
from privspec.execute.randomness import Randomness, SimulationRandomness
from privspec.execute.samplers import Normal


def draw(
    executed: Executed, base: ExactVector, randomness: Randomness, target: Target | None = None
) -> NDArray[np.float64]:
    """One draw of the mechanism at a base vector.

    Returns: released numbers (m,), multiples of the output grid.
    """
    answers = multiply(executed.strategy, base)
    if executed.round_outputs:
        return _round_outputs(executed, answers, randomness)
    noisy = executed.noise.release(answers, executed.grid, randomness)
    released: NDArray[np.float64] = post_process(executed, _to_float(noisy, executed.grid)[None, :], target)[0]
    return released


def post_process(executed: Executed, noisy: NDArray[np.float64], target: Target | None = None) -> NDArray[np.float64]:
    """Released numbers (repetitions, m) from noisy strategy answers (repetitions, k): no data are used."""
    rebuilt = noisy @ executed.reconstruction.to_float().T
    if executed.of_inputs:
        if target is not None:
            # the spec's definitions have their constants in them
            return on_grid(np.stack([_flat(executed, target(row)) for row in rebuilt]), executed.output_grid)
        rebuilt = rebuilt @ executed.target.T
    return on_grid(rebuilt + executed.offset, executed.output_grid)


def on_grid(values: NDArray[np.float64], grid: Fraction) -> NDArray[np.float64]:
    """The nearest multiples of the grid; exact where it is a power of two and they are below 2^53 steps."""
    step = float(grid)
    rounded: NDArray[np.float64] = np.rint(values / step) * step + 0.0
    return rounded


DEVIATIONS_LIMIT = 2**24
"""Numbers of the map from the noise to the outputs that are worked out for their standard deviations."""


def output_deviations(executed: Executed) -> NDArray[np.float64] | None:
    """The standard deviation of the noise in each released number (m,) to six digits, rounding to the grid aside.

    None where outputs are computed from estimated inputs, and their map from the noise is too large to write down.
    """
    rows = executed.strategy.shape[0]
    noise = executed.reconstruction.to_float()
    if executed.of_inputs:
        if rows * executed.size > DEVIATIONS_LIMIT:
            return None
        noise = executed.target @ noise
    variances = executed.noise.variances(rows, executed.grid)
    deviations = np.sqrt(np.einsum("ij,ij,j->i", noise, noise, variances))
    return np.array([float(f"{deviation:.6g}") for deviation in deviations.tolist()])


def _to_float(steps: Integers, grid: Fraction) -> NDArray[np.float64]:
    return np.array([s * grid.numerator / grid.denominator for s in steps], dtype=np.float64)


def _flat(executed: Executed, outputs: Mapping[str, NDArray[np.float64]] | NDArray[np.float64]) -> NDArray[np.float64]:
    if isinstance(outputs, Mapping):
        return np.concatenate([np.asarray(outputs[o.name], dtype=np.float64).reshape(-1) for o in executed.outputs])
    return np.asarray(outputs, dtype=np.float64).reshape(-1)


def _round_outputs(executed: Executed, answers: ExactVector, randomness: Randomness) -> NDArray[np.float64]:
    """L (B u + n) + offset rounded to the output grid with nothing else rounded.

    Each normal number is known to lie in an interval; it is refined until every output's nearest grid
    point is
    the same all over the interval that follows.
    """
    noise = executed.noise
    assert isinstance(noise, GaussianNoise)
    scaled = noise.in_standard_units(answers)
    reconstruction, sd = executed.reconstruction, noise.standard_deviation
    normals = [Normal(randomness) for _ in range(len(answers))]
    offset = [Fraction(float(x)) for x in executed.offset]
    spread = integers(np.abs(reconstruction.integers).sum(axis=1, dtype=object))
    unit, grid = reconstruction.unit * sd, executed.output_grid
    bits = scaled.denominator.bit_length() + 96
    while True:
        lows = integers(
            (v << bits) // scaled.denominator + normal.floor(bits)
            for v, normal in zip(scaled.numerators, normals, strict=True)
        )
        # every strategy answer is in [low, low + 2) / 2^bits: one step for the quotient, one for the
        # normal number
        centre = _integer_product(reconstruction, lows + 1)
        decided = []
        for middle, reach, shift in zip(centre, spread, offset, strict=True):
            first, last = (
                ((middle + side * reach) * unit / 2**bits + shift) / grid + Fraction(1, 2) for side in (-1, 1)
            )
            if first // 1 != last // 1:
                break
            decided.append(int(first // 1))
        else:
            return _to_float(integers(decided), grid)
        bits *= 2


def _integer_product(matrix: DyadicMatrix, vector: Integers) -> Integers:
    return multiply(DyadicMatrix(matrix.integers.copy(), 0), ExactVector(vector, 1)).numerators


def origin(executed: Executed) -> ExactVector:
    """The base vector of data that are all zero (clipped to the domain), or of an empty table."""
    parts = [
        place_counts(np.zeros(i.size, dtype=np.int64)) if i.layout == "cells" else place_entries(i, np.zeros(i.size))
        for i in executed.inputs
    ]
    return ExactVector.joined(parts)


def simulate(
    plan: Mapping[str, Any],
    repetitions: int,
    seed: int,
    *,
    base: ExactVector | Mapping[str, Any] | None = None,
    target: Target | None = None,
    approximate: bool = False,
) -> NDArray[np.float64]:
    """Many seeded draws of a mechanism at one base vector (by default `origin`): never a release.

    Without `approximate` the draws come from the samplers of a release, fed from the seed; with it, noise
    comes from floating-point generators: for large numbers of repetitions. `base` may also be data by input
    name; a table is simulated at them, by default at its first row.

    Returns: (repetitions, m), outputs one after another; words of a table by their place in its domain.
    Raises: UsageError (PS0822) if that many exact draws would take too long.
    """
    return mechanism_of(plan).simulate(repetitions, seed, base, target, approximate=approximate)


def simulate_linear(
    executed: Executed,
    repetitions: int,
    seed: int,
    base: ExactVector | None,
    target: Target | None,
    *,
    approximate: bool,
) -> NDArray[np.float64]:
    """`simulate` for a linear map with additive noise."""
    base = origin(executed) if base is None else base
    rows = executed.strategy.shape[0]
    if approximate:
        answers = multiply(executed.strategy, base).to_float()
        noise = executed.noise.approximate(rows, repetitions, np.random.default_rng(seed))
        return post_process(executed, answers + noise, target)
    refuse_long_simulation(
        repetitions * rows,
        f"{repetitions} exact draws of {rows} numbers",
        "pass approximate=True: floating-point noise, good enough for a simulation",
    )
    randomness = SimulationRandomness(seed)
    if executed.round_outputs:
        return np.stack([draw(executed, base, randomness, target) for _ in range(repetitions)])
    answers_exact = multiply(executed.strategy, base)
    noisy = [
        _to_float(executed.noise.release(answers_exact, executed.grid, randomness), executed.grid)
        for _ in range(repetitions)
    ]
    return post_process(executed, np.stack(noisy), target)
