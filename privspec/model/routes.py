"""Ways to release a function of bounded records: which statistic is made noisy, how far a unit moves it, how to finish.

A library function that is not linear offers routes (`probit_mle`: its result, the coefficients of its objective, the
sum of the records). Noise may enter at each party's statistic or, where somebody is trusted with the pool, at its mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.model.values import Array


class Unit(Enum):
    """What a neighbour may replace: all that one party holds, or one of its records."""

    PARTY = "party"
    RECORD = "record"


class NormName(Enum):
    """The norm that a spread is measured in."""

    L1 = "l1"
    L2 = "l2"
    LINF = "linf"


@dataclass(frozen=True, slots=True)
class Records:
    """What one party holds: `count` vectors of `dimension` numbers of Euclidean norm at most `radius` (None: any)."""

    count: int
    dimension: int
    radius: Fraction | None


GRID_BITS = 20
GRID = Fraction(1, 2**GRID_BITS)
"""Step of the numbers that records and statistics are put on before noise is added."""
Steps: TypeAlias = NDArray[np.int64]
"""Numbers in steps of `GRID`."""
Bounds: TypeAlias = Mapping[NormName, Fraction]
"""Proven upper bounds, rounded up, by norm; a norm that is missing has none."""


class Route(Protocol):
    """One statistic of a party's records from which the function's value can be found."""

    @property
    def name(self) -> str:
        """In a few words, as rankings list it."""

    @property
    def at(self) -> str:
        """What is made noisy, in terms of the call: "result", "objective", "records"."""

    @property
    def note(self) -> str:
        """The stem of the note that proves the spreads."""

    @property
    def size(self) -> int:
        """Numbers in the statistic."""

    @property
    def linear(self) -> bool:
        """Whether finishing is linear, so that pooling before or after it comes to the same."""

    def statistic(self, records: Array) -> Array:
        """The statistics (N, k) of parties with records (N, n, d), in doubles: for simulation only."""

    def exact(self, records: Steps) -> Steps:
        """The statistics (N, k) in steps of `GRID`, of records (N, n, d) in the same steps that lie in their ball."""

    def spread(self, unit: Unit) -> Bounds:
        """How far a party's exact statistic moves when one unit is replaced, its rounding included."""

    def bound(self) -> Bounds:
        """How large a party's exact statistic is."""

    def finish(self, statistic: Array) -> Array:
        """The function's value (..., d) from noisy statistics (..., k): uses public numbers only."""

    def to_json(self) -> dict[str, Any]:
        """The public numbers that whoever executes or checks the route needs."""
