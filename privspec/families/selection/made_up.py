"""Made-up tables that averages are compared over: many near the thresholds where mechanisms are wrong, weighed for it.

A quantile of many records is released exactly but where some answer's records end within a few records of it. That is
rare, and means over plain samples of tables are off by half or more. So most tables are drawn given that it is so, and
each counts by how often it comes up, divided by how often it is drawn (Veach & Guibas 1995, the balance heuristic).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, sqrt

import numpy as np
import scipy
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.kernel.selection import Ranks, Selected

Array = NDArray[np.float64]
PROFILES = 1000
"""Tables that are simulated to compare averages, fewer where there are many answers."""
WORK = 3e8
NODES = 96
SEED = 20220
"""Of what simulates tables: made-up data alone, so that the same spec always gives the same plan."""
PLAIN = 4
"""One table in so many is drawn from the law alone, so that none counts more than so many."""


@dataclass(frozen=True, eq=False, slots=True)
class MadeUp:
    """How many records of each table stand at each answer (k,), and what each set of tables counts in a mean.

    The tables of the groups of one set of records stand side by side.
    """

    tables: tuple[NDArray[np.int64], ...]
    often: Array


def profiles(block: Selected) -> int:
    """How many tables are simulated: fewer where there are many answers."""
    return int(max(50, min(PROFILES, WORK / (block.size * block.groups * NODES) / 20)))


def simulated(block: Selected) -> MadeUp:
    """Tables by the law of the records, always the same: shares of a budget are compared over one set of them."""
    law = block.law
    assert law is not None
    chances = tuple(float(entry * law.chances.unit) for row in law.chances.rows for entry in row)
    groups = tuple(map(float, law.groups))
    quantiles = block.singly if block.groups == 1 else ()
    within = (one.score.share for one in quantiles if isinstance(one.score, Ranks))
    shares = tuple(share for share in within if 0 < share < 1)  # extremes are missed as a rule
    return _tables(law.size, min(float(law.counted), 1.0), chances, groups, shares, profiles(block))


@lru_cache(maxsize=8)
def _tables(
    size: int,
    counted: float,
    chances: tuple[float, ...],
    groups: tuple[float, ...],
    shares: tuple[Fraction, ...],
    many: int,
) -> MadeUp:
    random, found = np.random.default_rng(SEED), list[NDArray[np.int64]]()
    law, of_groups = np.array(chances) / sum(chances), np.array(groups) / sum(groups)
    if not shares:
        for _ in range(many):
            each = random.multinomial(random.binomial(size, counted), of_groups)
            found += [random.multinomial(records, law) for records in each]
        return MadeUp(tuple(found), np.ones(many))
    sizes = random.binomial(size, counted, many)
    near = Near.of(law, shares, max(round(size * counted), 1))
    plain = np.arange(many) % PLAIN == 0
    for records, given, (quantile, threshold, off, above) in zip(sizes, plain, near.draws(random, many), strict=True):
        last = _last_below(shares[quantile], records)
        below = last + 1 + off if above else last - off
        if given or not 0 <= below <= records:
            found.append(random.multinomial(records, law))
            continue
        sides = (below, law[: threshold + 1]), (records - below, law[threshold + 1 :])
        found.append(np.concatenate([random.multinomial(part, own / own.sum()) for part, own in sides]))
    share = float(plain.mean())
    drawn = share + (1 - share) * near.ratios(np.array(found), sizes)
    return MadeUp(tuple(found), 1 / drawn)


def _last_below(share: Fraction, records: int) -> int:
    """At most so many of the records are at or below what is below the quantile."""
    return max(-(-share.numerator * int(records) // share.denominator), 1) - 1


@dataclass(frozen=True, eq=False, slots=True)
class Near:
    """How tables near a threshold are drawn: one of a quantile (q, t), and so many records off, below it or above.

    `upto`: the chance that a record is at or below each threshold (t,).
    """

    shares: tuple[Fraction, ...]
    upto: Array
    chosen: Array
    offsets: Array

    @staticmethod
    def of(law: Array, shares: tuple[Fraction, ...], records: int) -> Near:
        """Thresholds as often as a quantile is at them; what is nearer more often, at all scales alike."""
        upto = np.clip(np.cumsum(law)[:-1], 0.0, 1.0)
        last = np.array([[_last_below(share, records)] for share in shares])
        chosen = np.exp(_log_chances(last, records, upto)) + np.exp(_log_chances(last + 1, records, upto))
        offsets = 1 / np.arange(1.0, ceil(4 * sqrt(records)) + 2)
        return Near(shares, upto, chosen / chosen.sum(), offsets / offsets.sum())

    def draws(self, random: np.random.Generator, many: int) -> list[tuple[int, int, int, bool]]:
        """Quantile, threshold, records off, and whether above; thresholds as evenly as can be."""
        places = (np.arange(many) + random.random(many)) / many
        picked = np.searchsorted(np.cumsum(self.chosen), random.permutation(places))
        off = random.choice(len(self.offsets), size=many, p=self.offsets)
        each = zip(np.minimum(picked, self.chosen.size - 1), off, random.random(many) < 1 / 2, strict=True)
        return [(*divmod(int(place), len(self.upto)), int(far), bool(above)) for place, far, above in each]

    def ratios(self, tables: NDArray[np.int64], sizes: NDArray[np.int64]) -> Array:
        """How much more often tables are drawn so than by the law (n,); those that cannot be so come by the law."""
        at_most, records, found = np.cumsum(tables, axis=1)[:, :-1], sizes[:, None], np.zeros(len(tables))
        least = _log_chances(at_most, records, self.upto)
        far, chance = np.arange(len(self.offsets)), np.append(self.offsets, 0.0)
        for share, chosen in zip(self.shares, self.chosen, strict=True):
            last = np.array([[_last_below(share, int(one))] for one in sizes])
            beyond = at_most - last
            off = np.where(beyond > 0, beyond - 1, -beyond)
            with np.errstate(over="ignore"):
                more = np.exp(-least) * chance[np.minimum(off, len(self.offsets))] / 2
            found += np.where(chosen > 0, chosen * more, 0.0).sum(axis=1)
            never = (last - far < 0) * 1.0 + (last + 1 + far > records)
            found += chosen.sum() * (never @ self.offsets) / 2
        return found


def _log_chances(at_most: NDArray[np.int64], records: NDArray[np.int64] | int, upto: Array) -> Array:
    """The logarithm of the chance that so many of the records are at or below each threshold."""
    gamma, rest = scipy.special.gammaln, records - at_most
    with np.errstate(divide="ignore", invalid="ignore"):
        within = np.where(at_most > 0, at_most * np.log(upto), 0.0) + np.where(rest > 0, rest * np.log1p(-upto), 0.0)
    found: Array = gamma(np.add(records, 1.0)) - gamma(at_most + 1.0) - gamma(rest + 1.0) + within
    return found
