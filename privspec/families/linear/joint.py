"""What everything released together costs a unit for which no line of the spec names all outputs.

All outputs are functions of the noisy strategy answers (notes/post-processing.md), so these answers' own
guarantee holds for them together: the largest change of the strategy answers in units of their noise.
Computed in doubles and rounded up by far more than their error.
"""

from __future__ import annotations

from fractions import Fraction
from functools import singledispatch
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privspec.execute.budget import Spend
from privspec.execute.executed import Executed
from privspec.execute.noise import GaussianNoise, KNormNoise, LaplaceNoise, NoiseLaw
from privspec.model.neighbours import (
    BallDifferences,
    BoxDifferences,
    PairDifferences,
    UnboundedError,
    VectorDifferences,
)

if TYPE_CHECKING:
    from privspec.model.graph import Model

UP = 1 + 1e-9
"""Sums of k products of doubles are relatively k 2^-52 off: this covers k up to a million."""

Array = NDArray[np.float64]


def joint_spend(executed: Executed, model: Model, requirement: int) -> Spend | None:
    """The cost of all strategy answers under the relation of a requirement; None if it has no bound."""
    found = model.requirements[requirement]
    blocks = [block for block in model.blocks if block.name in found.wrt]
    try:
        differences = found.neighbours.differences(blocks, model.size)
    except UnboundedError:
        return None
    return _cost(executed.noise, executed, differences)


@singledispatch
def _cost(noise: NoiseLaw, executed: Executed, differences: tuple[object, ...]) -> Spend | None:  # noqa: ARG001
    raise TypeError(type(noise).__name__)


@_cost.register
def _(noise: GaussianNoise, executed: Executed, differences: tuple[object, ...]) -> Spend | None:
    longest = max((l2_reach(d, executed.strategy.to_float()) for d in differences), default=0.0)
    return Spend(mu=Fraction(longest * UP) / noise.standard_deviation)


@_cost.register
def _(noise: KNormNoise, executed: Executed, differences: tuple[object, ...]) -> Spend | None:
    strategy = executed.strategy.to_float()
    longest = max((l2_reach(d, strategy) for d in differences), default=0.0)
    rounding = float(executed.grid) * sqrt(len(strategy))
    return Spend(pure=Fraction((longest + rounding) * UP) / noise.scale)


@_cost.register
def _(noise: LaplaceNoise, executed: Executed, differences: tuple[object, ...]) -> Spend | None:
    strategy = executed.strategy.to_float()
    scales = np.array([float(s) for s in noise.scales])
    scales = np.broadcast_to(scales, (len(strategy),))
    widest = max((l1_reach(d, strategy / scales[:, None]) for d in differences), default=0.0)
    rounding = float((float(executed.grid) / scales).sum())
    return Spend(pure=Fraction((widest + rounding) * UP))


@singledispatch
def l2_reach(differences: object, matrix: Array) -> float:  # noqa: ARG001
    """An upper bound, up to rounding, on ||matrix d||_2 over a set of differences."""
    raise TypeError(type(differences).__name__)


@l2_reach.register
def _(differences: VectorDifferences, matrix: Array) -> float:
    norms = np.linalg.norm(matrix[:, differences.indices], axis=0)
    return float(np.max(norms * np.abs(differences.amounts.astype(float)), initial=0.0))


@l2_reach.register
def _(differences: PairDifferences, matrix: Array) -> float:
    columns = matrix[:, differences.coordinates]
    gram = columns.T @ columns
    squares = np.diag(gram)
    apart = squares[:, None] + squares[None, :] - 2 * gram
    error = 1e-13 * len(matrix) * np.max(squares, initial=0.0)
    return float(np.sqrt(max(np.max(apart, initial=0.0) + error, 0.0)) * abs(float(differences.scale)))


@l2_reach.register
def _(differences: BallDifferences, matrix: Array) -> float:
    norms = (float(np.linalg.norm(matrix[:, block], 2)) for block in differences.blocks)
    return max(norms, default=0.0) * float(differences.radius)


@l2_reach.register
def _(differences: BoxDifferences, matrix: Array) -> float:
    reach = differences.reach.astype(float)
    scaled = (matrix[:, block] * reach[block] for block in differences.blocks)
    return max((float(np.sqrt(np.abs(columns.T @ columns).sum())) for columns in scaled), default=0.0)


@singledispatch
def l1_reach(differences: object, matrix: Array) -> float:  # noqa: ARG001
    """An upper bound, up to rounding, on ||matrix d||_1 over a set of differences."""
    raise TypeError(type(differences).__name__)


@l1_reach.register
def _(differences: VectorDifferences, matrix: Array) -> float:
    sums = np.abs(matrix[:, differences.indices]).sum(axis=0)
    return float(np.max(sums * np.abs(differences.amounts.astype(float)), initial=0.0))


@l1_reach.register
def _(differences: PairDifferences, matrix: Array) -> float:
    largest = np.sort(np.abs(matrix[:, differences.coordinates]).sum(axis=0))[-2:]
    return float(largest.sum() * abs(float(differences.scale)))


@l1_reach.register
def _(differences: BallDifferences, matrix: Array) -> float:
    sums = (float(np.linalg.norm(matrix[:, block], axis=1).sum()) for block in differences.blocks)
    return max(sums, default=0.0) * float(differences.radius)


@l1_reach.register
def _(differences: BoxDifferences, matrix: Array) -> float:
    reach = differences.reach.astype(float)
    return max((float((np.abs(matrix[:, b]) @ reach[b]).sum()) for b in differences.blocks), default=0.0)
