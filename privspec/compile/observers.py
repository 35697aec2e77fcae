"""What helps the kernel to bound what observers of a linear release see: nothing of it is believed."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from privspec.compile.problem import Problem
from privspec.compile.release import NEGLIGIBLE, LinearRelease, achieved_amount
from privspec.core.diagnostics import InternalError
from privspec.core.matrices import DyadicMatrix
from privspec.kernel.core.linear import Cells, Release, read_linear, read_release
from privspec.kernel.core.linear_privacy import VERTICES, Piece, bounds, pieces
from privspec.kernel.core.numbers import sqrt_up
from privspec.kernel.core.problem import Frame, read_frame
from privspec.kernel.core.reading import Item
from privspec.problem.linear import Difference, differences_of
from privspec.solvers.programs import Array, box_scaling

ROUND_OFF = Fraction(1, 2**42)
"""Relative room above an achieved figure for others that work it out in doubles."""
INVERSE_BITS = 56
"""Bits of the largest entry of a right inverse."""
SCALING_BITS = 50
"""Bits of the numbers that scale a box."""


def levelled(matrix: DyadicMatrix, rows: list[int]) -> Array:
    """Some rows, each times the power of two that makes its largest entry have as many digits as the largest of all."""
    values = matrix.to_float()[rows]
    tops = np.frexp(np.abs(values).max(axis=1, initial=0.0))[1]
    return np.asarray(np.ldexp(values, (tops.max(initial=0) - tops)[:, None]))


def read_back(whole: dict[str, Any], family: str, executed: dict[str, Any]) -> tuple[Frame, Release]:
    """The frame of a problem and what a plan executes, as the kernel reads them."""
    frame = read_frame(Item(whole, "problem"))
    linear = read_linear(Item(whole["blocks"][0], "block"), frame)
    return frame, read_release(Item(family, "family"), Item(executed, "executed"), linear, frame)


def achieved(
    problem: Problem, own: LinearRelease, frame: Frame, release: Release, views: list[dict[str, Any]]
) -> list[Fraction]:
    """What the release reaches for each requirement, mu or epsilon, as the kernel will bound it, rounded up.

    Raises: InternalError if that is more than a requirement allows.
    """
    found, gaussian = [], release.noise.shape == "gaussian"
    for index, (view, figure) in enumerate(bounds(release, frame, Item(views, "claims.views"))):
        budgets = problem.budgets if gaussian else problem.epsilons
        allowed = [b for b, one in zip(budgets, problem.system.views, strict=True) if one.index == index]
        most = min((b for b in allowed if b is not None), default=None)
        amount = sqrt_up(figure, 100) if gaussian else figure
        if most is None or amount > most:
            raise InternalError(f"the release reaches {float(amount)!r} of {most}, which is more than it may")
        # a view that nothing moves but round-off is claimed with a bound that round-off does not pass
        known = [
            achieved_amount(own, seen, rows)
            for seen, rows in zip(problem.system.views, own.view_rows, strict=True)
            if seen.index == index
        ]
        stated = min(max(amount * (1 + ROUND_OFF), *known), most)
        found.append(stated if amount == 0 and view.mixture is None else max(stated, most * NEGLIGIBLE))
    return found


def view_witnesses(problem: Problem, release: LinearRelease) -> list[dict[str, Any]]:
    """For each requirement: a right inverse of what a mixed view sees, and the scaling of large boxes."""
    found = []
    for requirement in problem.model.requirements:
        exposed = problem.model.exposed(requirement)
        rows = [i for o in problem.system.outputs if o.name in exposed for i in range(o.start, o.stop)]
        mixed = release.rounding == "outputs" and len(rows) < problem.system.outputs_count
        strategy = release.strategy.to_float()
        inverse = None
        if mixed and release.outputs_matrix is not None:
            seen = levelled(release.outputs_matrix, rows)
            back = np.asarray(np.linalg.pinv(seen), dtype=np.float64)
            strategy = back @ seen @ strategy
            inverse = DyadicMatrix.rounded(back, INVERSE_BITS).to_json()
        scaling = [_scaling(strategy, difference) for difference in differences_of(problem.model, requirement)]
        found.append({"inverse": inverse, "scaling": scaling if any(one is not None for one in scaling) else None})
    return found


def _scaling(strategy: Array, difference: Difference) -> list[list[str]] | None:
    """A number for each piece of each unit, where some unit is a box of many numbers."""
    if isinstance(difference, Cells):
        return None
    listed, _ = pieces(difference)
    boxes = [all(piece.shape == "box" for piece in unit) for unit in listed]
    if not any(box and len(unit) > VERTICES for box, unit in zip(boxes, listed, strict=True)):
        return None
    return [
        _box(strategy, unit) if box else [str(piece.amount or 1) for piece in unit]
        for box, unit in zip(boxes, listed, strict=True)
    ]


def _box(strategy: Array, unit: list[Piece]) -> list[str]:
    at, amounts = [piece.at[0] for piece in unit], [piece.amount or Fraction(1) for piece in unit]
    columns = strategy[:, at] * np.array([float(amount) for amount in amounts])
    shares = box_scaling(columns.T @ columns)
    whole = np.maximum(np.rint(np.ldexp(shares / shares.max(), SCALING_BITS)), 1.0).astype(np.int64).tolist()
    return [str(amount * share) for amount, share in zip(amounts, whole, strict=True)]
