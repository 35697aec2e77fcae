"""What a law of noise must say of itself; one object for each, in a file of its own beside its notes.

All of them are executed as `z = B u + noise` with an exact matrix B; outputs are functions of z.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.matrices import DyadicMatrix
from privspec.model.neighbours import Differences

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]


class NoiseLaw(Protocol):
    """A law of the noise on the strategy answers."""

    family: ClassVar[str]
    """The `mechanism.family` of plans."""
    notes: ClassVar[tuple[str, ...]]
    """Stems of the proof notes that a guarantee rests on; the second is about how the noise is drawn."""
    separate: ClassVar[bool]
    """Whether rows of the noise differ and are independent, so that a view is charged for those it sees alone."""
    amount: ClassVar[str]
    """What a release of this noise achieves: "mu" or "epsilon"."""

    def to_json(self) -> dict[str, Any]:
        """Its form under `executed.noise`."""
        ...

    def part(self, rows: Indices) -> NoiseLaw:
        """The law of some rows; the whole law where it has no parts."""
        ...

    def row_variances(self, rows: int, grid: Fraction) -> Array:
        """Variance of the noise on each strategy row (rows are uncorrelated)."""
        ...

    def achieved(self, strategy: DyadicMatrix, differences: Differences, grid: Fraction, counts: bool) -> Fraction:
        """The amount that the release reaches for these differences, rounded up.

        Args: strategy (k, n); grid, the lattice of z; counts, whether every input is a table's counts.
        """
        ...
