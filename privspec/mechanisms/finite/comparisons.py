"""Every mechanism that applies to a context, with its loss: what the optimum is shown beside."""

from __future__ import annotations

import numpy as np

from privspec.mechanisms.finite.constant import Constant
from privspec.mechanisms.finite.context import TableContext
from privspec.mechanisms.finite.exponential import Exponential
from privspec.mechanisms.finite.geometric import TruncatedGeometric
from privspec.mechanisms.finite.laplace import RoundedLaplace
from privspec.mechanisms.finite.mechanism import Candidate, Comparison, FiniteMechanism, shown
from privspec.mechanisms.finite.planar import PlanarLaplace
from privspec.mechanisms.finite.response import RandomisedResponse
from privspec.mechanisms.finite.staircase import Staircase
from privspec.mechanisms.finite.subsets import SubsetSelection

MECHANISMS: tuple[FiniteMechanism, ...] = (
    RandomisedResponse(),
    TruncatedGeometric(),
    RoundedLaplace(),
    Staircase(),
    PlanarLaplace(),
    Exponential(),
    SubsetSelection(),
    Constant(),
)
"""In the order in which they are compared; of two equal tables the first names them."""
_SAME = 1e-12


def comparisons(context: TableContext) -> tuple[Comparison, ...]:
    """The mechanisms that apply, each calibrated to the requirement, best first; no table twice."""
    kept: list[Candidate] = []
    for mechanism in MECHANISMS:
        for candidate in mechanism.candidates(context):
            if not any(np.allclose(candidate.table, other.table, rtol=0, atol=_SAME) for other in kept):
                kept.append(candidate)
    found = [_judged(context, candidate) for candidate in kept]
    return tuple(sorted(found, key=lambda c: c.loss))


def _judged(context: TableContext, candidate: Candidate) -> Comparison:
    excess = context.excess(candidate.table)
    reason = candidate.text if not excess else f"it breaks the requirement by a probability of {shown(excess)}"
    loss = context.loss(candidate.table)
    return Comparison(candidate.name, candidate.table, loss, not excess, reason, candidate.note)
