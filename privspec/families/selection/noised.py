"""Quantiles at ranks that are off by one noise: which are compared, and what they cost on average, in doubles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil, exp, log

import numpy as np
from numpy.typing import NDArray

from privspec.kernel.core.problem import ContributionBound, Obligation
from privspec.kernel.selection import AtRanks, Quantiles, Ranks, Selected

Array = NDArray[np.float64]
PLACES = 40
LET_THROUGH = ((0.02, 0.12), (0.02, 0.22), (0.06, 0.25), (0.15, 0.35))
"""What answers that are filled up, and jitters, let through, as shares of epsilon."""
MOST_RANKS = 150
"""Ranks on each side at which several quantiles are worked out."""
OFTEN, SELDOM = 11.0, 15.0
"""Logarithms of chances that are left out, of a jitter, and of the noise."""


def at_ranks(
    block: Selected, lines: Sequence[Obligation], *, drops: bool, kept: ContributionBound | None
) -> Iterator[AtRanks]:
    """Those that are compared, not yet calibrated: of records that are replaced, of a public number."""
    sought = isinstance(block.score, Ranks | Quantiles) and not block.by and not block.cost.worst
    units = [unit for line in lines for unit in line.units]
    if not sought or block.records is None or block.law is None or block.families or any(one.adding for one in units):
        return
    amounts = [(line.measure.figures({}), line.units[0].count) for line in lines]
    epsilon = min(float(one.get("epsilon", one.get("mu", one.get("rho", 1)))) / count for one, count in amounts)
    chances = np.cumsum([float(entry) for row in block.law.chances.rows for entry in row])
    shares = [float(one.score.share) for one in block.singly if isinstance(one.score, Ranks)]
    middle = int(np.searchsorted(chances, chances[-1] * shares[len(shares) // 2]))
    for fill, jitter in (
        LET_THROUGH if len(shares) > 1 else [(fill, 0.0) for fill in sorted({own for own, _ in LET_THROUGH})]
    ):
        filled, moved = ceil(len(shares) / (fill * epsilon)), jitter * epsilon / max(len(shares) // 2, 1)
        chance = Fraction(round(exp(-moved) * 2**PLACES), 2**PLACES)
        yield AtRanks(block, Fraction(1), 1 / chance, filled, min(middle, block.size - 2), drops, kept)


def noised(drawn: AtRanks, tables: Sequence[NDArray[np.int64]], prices: Sequence[Sequence[Array]]) -> Array:
    """What they cost on average at each of some tables (t,), of prices of each quantile (q, t, k)."""
    chance, found = float(1 / drawn.base), np.zeros(len(tables))
    for number, counts in enumerate(tables):
        rows = [np.array(row) for row in drawn.thresholds(counts.tolist())]
        costs = [own[number] for own in prices]
        if len(rows) == 1:
            found[number] = np.diff(_upto(rows[0], chance), prepend=0.0, append=1.0) @ costs[0]
        else:
            found[number] = _together(rows, costs, chance, float(1 / drawn.jitter))
    return found


def _together(rows: list[NDArray[np.int64]], costs: list[Array], chance: float, jitter: float) -> float:
    """Of several quantiles: how many thresholds are passed, by the noise, then which, by jitters (note, section 10)."""
    wide = ceil(OFTEN / -log(jitter))
    reach = wide + ceil(SELDOM / -log(chance))
    each = ceil(reach / MOST_RANKS)  # so many ranks count as the one in their middle
    blocks = np.arange(-(reach // each) - 1, reach // each + 1)
    ranks = each * blocks + (each + 1) / 2
    likely, dear, sure = np.ones((len(ranks), 1)), np.zeros((len(ranks), 1)), 0
    for row, cost in zip(rows, costs, strict=True):
        low, high = np.searchsorted(row, [ranks[0] - wide, ranks[-1] + wide])
        passed = _below(np.asarray(ranks[:, None] - row[low:high], dtype=np.float64), jitter)
        own = -np.diff(passed, axis=1, prepend=1.0, append=0.0)
        dear = _added(dear, own) + _added(likely, own * cost[low : high + 1])
        likely, sure = _added(likely, own), sure + low
    at_most = np.cumsum(likely, axis=1)[:, :-1] - (blocks < 0)[:, None]
    shares = np.diff(_upto(each * at_most.sum(axis=0), chance), prepend=0.0, append=1.0)
    weights = likely.sum(axis=0)
    return float(shares @ (dear.sum(axis=0) / np.maximum(weights, 1e-300)))


def _added(one: Array, other: Array) -> Array:
    """The law of a sum at each rank."""
    found = np.zeros((len(one), one.shape[1] + other.shape[1] - 1))
    for place in range(other.shape[1]):
        found[:, place : place + one.shape[1]] += one * other[:, place : place + 1]
    return found


def _below(off: Array, chance: float) -> Array:
    """The chance that a jitter is below so many records."""
    tail = chance ** np.where(off <= 0, 1.0 - off, off) / (1 + chance)
    return np.where(off <= 0, tail, 1 - tail)


def _upto(places: NDArray[np.int64] | Array, chance: float) -> Array:
    """The chance that the noise, uniform between whole numbers, is at most so much."""
    whole = np.floor(places)
    before = np.where(whole <= 0, chance ** np.maximum(1 - whole, 0.0), 1 + chance - chance ** np.maximum(whole, 0.0))
    found: Array = (before + (places - whole) * (1 - chance) * chance ** np.abs(whole)) / (1 + chance)
    return found
