"""Laws of lotteries in doubles, for simulations at any number of votes: large powers are never formed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privspec.model.lotteries import Exponential, Lottery, PermuteAndFlip

Floats = NDArray[np.float64]


def law_in_doubles(lottery: Lottery, scores: Sequence[Fraction]) -> Floats:
    """The law of the winner (m,), rounded; the exact one is `lottery.law(scores)`."""
    match lottery:
        case Exponential(base=base):
            weights = _accepted(base, scores)
        case PermuteAndFlip(base=base):
            weights = _flipped(_accepted(base, scores))
        case _:
            weights = np.array([float(p) for p in lottery.law(scores)])
    found: Floats = weights / weights.sum()
    return found


def _accepted(base: Fraction, scores: Sequence[Fraction]) -> Floats:
    """base^(score - largest score)."""
    most = max(scores)
    gaps = np.array([float(most - score) for score in scores])
    logarithm = float(np.log1p(float(base - 1)))
    accepted: Floats = np.exp(-gaps * logarithm)
    return accepted


def _flipped(accepted: Floats) -> Floats:
    """Each y_a times the integral over t in [0, 1] of the product over b != a of (1 - t y_b): see the model's law."""
    # Gauss-Legendre with k nodes is exact to degree 2k - 1, and the product has degree m - 1
    nodes, weights = np.polynomial.legendre.leggauss(len(accepted) // 2 + 1)
    times = (nodes + 1) / 2
    factors = 1 - times[:, None] * accepted
    found = [
        chance * float((weights / 2) @ np.delete(factors, a, axis=1).prod(axis=1)) for a, chance in enumerate(accepted)
    ]
    return np.array(found)
