"""What could be had if choices between whole things could be made in part: told beside a plan, and never one.

Choices of 0 and 1 that share one budget, as sums with Laplace noise do, are known by their losses: the cube root of
what is kept is the sum of the cube roots of each alone. Their relaxation is a convex program (`solvers.selection`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from privspec.model.alternatives import Design
from privspec.solvers.programs import SolverError
from privspec.solvers.selection import select

CLOSE = 1e-6
"""Relative difference up to which losses are those of a shared budget."""


def relaxation(design: Design, losses: Sequence[float | None], costs: Sequence[Fraction]) -> dict[str, Any] | None:
    """The value of the relaxation and its choices; None where what is open is no selection on one budget.

    Args: the loss (None without a plan) and the cost of each alternative, in order.
    """
    if len(design.choices) != 1 or not isinstance(design.choices[0].values[0], tuple):
        return None
    kept = [tuple(map(int, value)) for value in design.choices[0].values if isinstance(value, tuple)]
    size = len(kept[0])
    if len(kept) != 2**size or any(set(one) - {0, 1} for one in kept):
        return None
    loss, cost = dict(zip(kept, losses, strict=True)), dict(zip(kept, costs, strict=True))
    nothing = (0,) * size
    single = [tuple(int(i == j) for j in range(size)) for i in range(size)]
    prices = [cost[nothing] - cost[one] for one in single]
    affine = all(
        cost[one] == cost[nothing] - sum(p for p, take in zip(prices, one, strict=True) if take) for one in kept
    )
    alone = np.array([loss[one] or 0.0 for one in single])
    if not affine or min(prices) < 0 or alone.min() <= 0:
        return None
    for one in kept:
        shared, known = float(np.cbrt(alone) @ one) ** 3, loss[one]
        if one != nothing and (known is None or abs(known - shared) > CLOSE * shared):
            return None
    try:
        whole, relaxed = select(alone, np.array(list(map(float, prices))))
    except SolverError:
        return None
    rest = float(cost[(1,) * size])
    choices = [round(float(share), 6) for share in relaxed.chosen]
    return {"value": relaxed.value + rest, "choices": choices, "whole": whole.value + rest, "nodes": whole.nodes}
