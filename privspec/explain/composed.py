"""What someone who sees every output may learn: computed on the executed strategy, never by adding claims.

Guarantees of outputs that share noise do not add up (two outputs with opposite noise reveal everything when
averaged). Everything that is released is computed from the noisy strategy answers, so the guarantee of those
answers holds for all outputs together (notes/post-processing.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.matrices import DyadicMatrix
from privspec.explain.claims import Claim
from privspec.explain.curves import Curve, GaussianCurve
from privspec.explain.noise import executed
from privspec.explain.quantities import parse_exact

Array: TypeAlias = NDArray[np.float64]

_UP = 1 + 1e-9  # more than the rounding of float norms of up to 10^6 terms


def covers_everything(plan: Mapping[str, Any], claim: Claim) -> bool:
    """Whether a claim names every output."""
    return {str(o["name"]) for o in executed(plan).get("outputs") or ()} <= set(claim.outputs)


def everything_released(plan: Mapping[str, Any], claim: Claim) -> Curve | None:
    """The curve of one who sees all outputs, for the inputs and the relation of a claim; None where not known."""
    if covers_everything(plan, claim):
        return claim.curve
    run = executed(plan)
    noise = run.get("noise") or {}
    if noise.get("shape") != "gaussian" or "strategy" not in run:
        return None
    strategy = DyadicMatrix.from_json(run["strategy"]).to_float()
    norms = []
    for block in run.get("inputs") or ():
        if str(block["name"]) in claim.wrt:
            norm = _largest_norm(strategy[:, int(block["start"]) : int(block["stop"])], block, claim)
            if norm is None:
                return None
            norms.append(norm)
    if not norms:
        return None
    deviation = float(parse_exact(noise.get("standard_deviation", "1")))
    return GaussianCurve(max(norms) * claim.relation.group / deviation * _UP)


def _largest_norm(columns: Array, block: Mapping[str, Any], claim: Claim) -> float | None:
    relation = claim.relation
    if block.get("layout") == "cells" and relation.unit == "record":
        return _cells(columns) if relation.adds else _moves(columns)
    if block.get("layout") == "entries" and relation.unit == "entry" and not relation.adds:
        low, high = (_bounds(block[key], columns.shape[1]) for key in ("lower", "upper"))
        return float(np.max(np.linalg.norm(columns * (high - low), axis=0)))
    return None


def _cells(columns: Array) -> float:
    return float(np.max(np.linalg.norm(columns, axis=0)))


def _moves(columns: Array) -> float:
    gram = columns.T @ columns
    squares = np.diag(gram)
    return float(np.sqrt(max(0.0, np.max(squares[:, None] + squares[None, :] - 2 * gram))))


def _bounds(values: Any, size: int) -> Array:
    listed = values if isinstance(values, list) else [values] * size
    return np.array([float(parse_exact(v)) for v in listed])
