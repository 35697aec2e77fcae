"""Sensitivities of an exact linear map over sets of differences, rounded up so that they may stand in a claim."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from privspec.core.diagnostics import InternalError
from privspec.core.matrices import DyadicMatrix
from privspec.noise.law import Array
from privspec.problem.linear_differences import (
    BallDifferences,
    BoxDifferences,
    Differences,
    PairDifferences,
    VectorDifferences,
)
from privspec.solvers.programs import box_bound

VERTEX_BITS = 14
"""Boxes of at most this many coordinates are enumerated."""
UNIT = float(np.finfo(float).eps)


def l2_sensitivity_up(strategy: DyadicMatrix, differences: Differences) -> Fraction:
    """An upper bound, up to rounding the least one, of max ||B d||_2.

    Evaluated in doubles and raised by more than the float error of the evaluation. Boxes of more than
    `VERTEX_BITS` coordinates are bounded (notes/placement.md).
    """
    B = strategy.to_float()
    margin = 1 + 8 * (len(B) + 8) * UNIT
    match differences:
        case VectorDifferences(indices, amounts, _):
            norms = np.sqrt((B[:, indices] ** 2).sum(axis=0))
            reach = norms * np.array([float(a) for a in amounts])
            return Fraction(float(reach.max(initial=0.0)) * margin)
        case PairDifferences(coordinates, scale, _):
            # differences of columns do not change when one column is taken off all: what is common to them (the
            # number of records, which nothing hides) may be many times larger than what is not
            integers = strategy.integers[:, coordinates]
            columns = np.ldexp((integers - integers[:, :1]).astype(np.float64), -strategy.exponent)
            gram = columns.T @ columns
            norms = np.diag(gram)
            squared = norms[:, None] + norms[None, :] - 2 * gram
            np.fill_diagonal(squared, 0.0)
            error = 8 * (len(B) + 8) * UNIT * (norms[:, None] + norms[None, :])
            return Fraction(float(scale) * float(np.sqrt(np.max(squared + error))) * margin)
        case BallDifferences(blocks, radius, _):
            largest = max(float(np.linalg.norm(B[:, block], 2)) for block in blocks)
            return Fraction(largest * float(radius) * (1 + 1e-12))
        case BoxDifferences(blocks, reach, _):
            widths = np.array([float(r) for r in reach])
            return Fraction(max(_box_reach(B[:, b] * widths[b]) for b in blocks) * (1 + 1e-12))
    raise InternalError("an unknown set of differences")


def _box_reach(scaled: Array) -> float:
    """Max of ||B s|| over sign vectors s: enumerated when small, else bounded."""
    k = scaled.shape[1]
    if k <= VERTEX_BITS:
        signs = np.array(list(product((1.0, -1.0), repeat=k - 1)), dtype=float).reshape(2 ** (k - 1), k - 1)
        vertices = np.hstack([np.ones((len(signs), 1)), signs])
        return float(np.sqrt(((vertices @ scaled.T) ** 2).sum(axis=1).max()))
    return float(np.sqrt(box_bound(scaled.T @ scaled)))


def scaled_l1_sensitivity(
    strategy: DyadicMatrix, scales: tuple[Fraction, ...], differences: Differences, step: Fraction
) -> Fraction:
    """The largest sum over rows of (|B_r d| + step where row r moves) / scale_r, exactly.

    Where d moves several units, a bound of it: each may round rows of its own; of mixtures, wherever a unit has a part.
    Raises: InternalError for balls and boxes.
    """
    B = strategy.integers
    times = _moved(differences)
    worst = Fraction(0)
    mixed = differences.mixed if isinstance(differences, VectorDifferences) else ()
    own = Fraction(0) if mixed else step * times
    inverse = np.array([float(strategy.unit / b) for b in scales])
    steps = np.array([float(own / b) for b in scales])
    for first, second, amount in _moved_columns(differences):
        shift = np.abs(B[:, first] - (B[:, second] if second is not None else 0))
        moved = np.flatnonzero(shift)
        near = float(amount) * float(inverse @ shift) + float(steps[moved].sum())
        if near < float(worst) * (1 - 1e-9):
            continue
        exact = Fraction(0)
        for r in moved:
            exact += (int(shift[r]) * strategy.unit * amount + own) / scales[r]
        worst = max(worst, exact)
    touched = (np.flatnonzero(B[:, unit].any(axis=1)) for unit in (mixed if step else ()))
    return worst + times * max((sum((step / scales[r] for r in rows), Fraction(0)) for rows in touched), default=0)


def _moved(differences: Differences) -> int:
    match differences:
        case VectorDifferences(moved=moved) | PairDifferences(moved=moved):
            return moved
        case _:
            raise InternalError("an l1 sensitivity over balls or boxes")


def _moved_columns(differences: Differences) -> Iterator[tuple[int, int | None, Fraction]]:
    """Coordinates that change (one, or one up and another down) and by how much."""
    match differences:
        case VectorDifferences(indices, amounts, _):
            for i, amount in zip(indices, amounts, strict=True):
                yield int(i), None, Fraction(amount)
        case PairDifferences(coordinates, scale, _):
            for i, j in combinations(coordinates.tolist(), 2):
                yield i, j, scale
        case _:
            raise InternalError("an l1 sensitivity over balls or boxes")
