"""What someone who sees every output may learn: computed on the executed strategy, never by adding claims.

Guarantees of outputs that share noise do not add up (two outputs with opposite noise reveal everything when
averaged). Everything that is released is computed from the noisy strategy answers, so the guarantee of those
answers holds for all outputs together (notes/post-processing.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import singledispatch
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.matrices import DyadicMatrix
from privspec.explain.claims import Claim
from privspec.explain.curves import Curve, EpsilonDeltaCurve, GaussianCurve
from privspec.explain.noise import executed
from privspec.explain.quantities import parse_exact
from privspec.model.neighbours import (
    BallDifferences,
    BoxDifferences,
    Differences,
    PairDifferences,
    UnboundedError,
    VectorDifferences,
)

if TYPE_CHECKING:
    from privspec.model.graph import Model

Array: TypeAlias = NDArray[np.float64]

_UP = 1 + 1e-9  # more than the rounding of float norms in any plan that fits in memory


def covering(released: frozenset[str], claim: Claim, stated: Sequence[Claim]) -> Curve | None:
    """The curve of a claim for the same unit that names every output; None where there is none."""
    for other in (claim, *stated):
        same = other.wrt == claim.wrt and other.relation == claim.relation
        if same and released <= set(other.outputs) and other.curve is not None:
            return other.curve
    return None


def everything_released(
    plan: Mapping[str, Any], claim: Claim, stated: Sequence[Claim], model: Model | None = None
) -> Curve | None:
    """The curve of one who sees all outputs, for the unit of a claim; None where it is not known.

    `stated` are all claims of the plan: one for the same unit that covers everything is itself the bound.
    """
    run = executed(plan)
    released = frozenset(str(o["name"]) for o in run.get("outputs") or ())
    if (known := covering(released, claim, stated)) is not None:
        return known
    noise = run.get("noise") or {}
    changes = _differences(plan, claim, model)
    if not changes or "strategy" not in run:
        return None
    strategy = DyadicMatrix.from_json(run["strategy"]).to_float()
    if noise.get("shape") == "gaussian":
        deviation = float(parse_exact(noise.get("standard_deviation", "1")))
        return GaussianCurve(max(_longest(d, strategy) for d in changes) / deviation * _UP)
    if noise.get("shape") == "laplace":
        scales = np.array([float(parse_exact(s)) for s in noise["scale"]])
        grid = float(parse_exact(run.get("grid", "0")))
        lattice = float(np.sum(grid / scales))  # each row may move by one more step (note discrete-laplace)
        return EpsilonDeltaCurve((max(_widest(d, strategy / scales[:, None]) for d in changes) + lattice) * _UP)
    return None


def _differences(plan: Mapping[str, Any], claim: Claim, model: Model | None) -> Sequence[Differences]:
    """Differences of neighbours: from the model, or from the executed inputs for simple relations."""
    if model is not None and 0 <= claim.requirement < len(model.requirements):
        blocks = [block for block in model.blocks if block.name in claim.wrt]
        try:
            return model.requirements[claim.requirement].neighbours.differences(blocks, model.size)
        except UnboundedError:
            return ()
    found = [_from_block(b, claim) for b in executed(plan).get("inputs") or () if str(b["name"]) in claim.wrt]
    return () if None in found else [d for d in found if d is not None]


def _from_block(block: Mapping[str, Any], claim: Claim) -> Differences | None:
    relation = claim.relation
    where = np.arange(int(block["start"]), int(block["stop"]), dtype=np.intp)
    if block.get("layout") == "cells" and relation.unit == "record":
        amount = Fraction(relation.group)
        return (
            VectorDifferences(where, _filled(amount, where.size)) if relation.adds else PairDifferences(where, amount)
        )
    bounds = block.get("lower"), block.get("upper")
    if relation.unit != "entry" or relation.adds or "ball" in block or None in bounds:
        return None
    if any(isinstance(b, list) for b in bounds):
        return None
    width = parse_exact(bounds[1]) - parse_exact(bounds[0])
    return VectorDifferences(where, _filled(width * relation.group, where.size))


def _filled(value: Fraction, size: int) -> NDArray[Any]:
    out = np.empty(size, dtype=object)
    out[:] = value
    return out


@singledispatch
def _longest(differences: object, _matrix: Array) -> float:
    """An upper bound on ||matrix d||_2 over the differences (exact for vectors, pairs and balls)."""
    raise TypeError(type(differences).__name__)


@_longest.register
def _(differences: VectorDifferences, matrix: Array) -> float:
    norms = np.linalg.norm(matrix[:, differences.indices], axis=0)
    return float(np.max(norms * differences.amounts.astype(float), initial=0.0))


@_longest.register
def _(differences: PairDifferences, matrix: Array) -> float:
    columns = matrix[:, differences.coordinates]
    gram = columns.T @ columns
    squares = np.diag(gram)
    farthest = np.max(squares[:, None] + squares[None, :] - 2 * gram, initial=0.0)
    return float(np.sqrt(max(0.0, farthest)) * float(differences.scale))


@_longest.register
def _(differences: BallDifferences, matrix: Array) -> float:
    return max(
        (float(np.linalg.norm(matrix[:, b], 2)) * float(differences.radius) for b in differences.blocks),
        default=0.0,
    )


@_longest.register
def _(differences: BoxDifferences, matrix: Array) -> float:
    reach = differences.reach.astype(float)

    def block(where: NDArray[np.intp]) -> float:
        columns = matrix[:, where] * reach[where]
        return float(np.sqrt(np.abs(columns.T @ columns).sum()))

    return max((block(b) for b in differences.blocks), default=0.0)


@singledispatch
def _widest(differences: object, _matrix: Array) -> float:
    """An upper bound on ||matrix d||_1 over the differences (exact for vectors and boxes of one row each)."""
    raise TypeError(type(differences).__name__)


@_widest.register
def _(differences: VectorDifferences, matrix: Array) -> float:
    sums = np.abs(matrix[:, differences.indices]).sum(axis=0)
    return float(np.max(sums * differences.amounts.astype(float), initial=0.0))


@_widest.register
def _(differences: PairDifferences, matrix: Array) -> float:
    sums = np.sort(np.abs(matrix[:, differences.coordinates]).sum(axis=0))
    return float(sums[-2:].sum() * float(differences.scale))


@_widest.register
def _(differences: BallDifferences, matrix: Array) -> float:
    radius = float(differences.radius)
    return max((float(np.linalg.norm(matrix[:, b], axis=1).sum()) * radius for b in differences.blocks), default=0.0)


@_widest.register
def _(differences: BoxDifferences, matrix: Array) -> float:
    reach = differences.reach.astype(float)
    return max((float((np.abs(matrix[:, b]) @ reach[b]).sum()) for b in differences.blocks), default=0.0)
