"""Exact bounds on e^epsilon, and small exact helpers that the modules on tables share."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from privspec.solvers.programs import Array
from privspec.solvers.results import Indices
from privspec.solvers.table_programs import AtomRatio, CompleteRatio, Entries, PairRatio, log_ratio_of

RATIO_BITS = 64
"""Ratios are rounded to multiples of 2^-RATIO_BITS."""


@lru_cache(maxsize=100_000)
def ratio_bounds(log_ratio: Fraction) -> tuple[int, int]:
    """Integers lo, hi with lo / 2^64 <= e^log_ratio <= hi / 2^64, each the nearest: the one rounds down, the other up.

    Source: ball arithmetic (flint); `floor(math.exp(eps) 2^64)` is too large in half of all cases.
    """
    if log_ratio == 0:
        return 1 << RATIO_BITS, 1 << RATIO_BITS
    import flint

    precision = 2 * RATIO_BITS + max(0, int(2 * log_ratio))
    while True:
        with flint.ctx.workprec(precision):
            scaled = (
                flint.arb(flint.fmpq(log_ratio.numerator, log_ratio.denominator)).exp() * flint.arb(2) ** RATIO_BITS
            )
            low = scaled.floor().unique_fmpz()
        if low is not None:
            # e^q is irrational for rational q other than 0, so the ceiling is the next integer.
            return int(low), int(low) + 1
        precision *= 2


def ratio_down(log_ratio: Fraction) -> int:
    """floor(e^log_ratio 2^64), what privacy is checked with."""
    return ratio_bounds(log_ratio)[0]


def ratio_up(log_ratio: Fraction) -> int:
    """ceil(e^log_ratio 2^64), what lower bounds are computed with."""
    return ratio_bounds(log_ratio)[1]


def float_ratio(log_ratio: Fraction) -> float:
    """The lower bound on e^log_ratio as a float, for linear programs."""
    return float(ratio_down(log_ratio) / 2**RATIO_BITS)


def pair_ratios(block: PairRatio | AtomRatio, up: bool = False) -> Entries:
    """The integer ratio of each pair (K,), over 2^64, rounded down or up."""
    choose = 1 if up else 0
    found = [ratio_bounds(log_ratio_of(block, k))[choose] for k in range(len(block.pairs))]
    return np.array(found, dtype=object)


def float_ratios(block: PairRatio | AtomRatio) -> Array:
    """The ratios of a block as floats (K,)."""
    return np.asarray([float_ratio(log_ratio_of(block, k)) for k in range(len(block.pairs))], dtype=float)


def classes(block: CompleteRatio | PairRatio | AtomRatio, columns: int) -> Indices:
    """What the observer of the block sees for each output (Y,)."""
    return np.arange(columns, dtype=np.intp) if block.view is None else block.view


def seen(block: CompleteRatio | PairRatio | AtomRatio, columns: int) -> int:
    """How many outputs the observer of the block can tell apart."""
    return columns if block.view is None else int(block.view.max()) + 1


def merged(block: CompleteRatio | PairRatio | AtomRatio, table: Entries) -> Entries:
    """Exact table of the outputs that the observer of the block sees (X, seen)."""
    if block.view is None:
        return table
    result: Entries = np.zeros((table.shape[0], seen(block, table.shape[1])), dtype=object)
    for column, shown in enumerate(block.view):
        result[:, shown] += table[:, column]
    return result
