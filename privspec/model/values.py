"""What a name may stand for: an exact number, an array, a word, a set, the counts of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from numpy.typing import NDArray

from privspec.core.rounding import Array, approximate, as_float, as_fraction, exact_array, readable, show
from privspec.model.domains import Symbol, Table

__all__ = [
    "Array",
    "CellCounts",
    "Symbol",
    "Value",
    "Values",
    "approximate",
    "as_float",
    "as_fraction",
    "exact_array",
    "readable",
    "show",
]


@dataclass(frozen=True, eq=False, slots=True)
class CellCounts:
    """A table as counts of its cells, (cells, *batch), numbered row-major in attribute order."""

    table: Table
    counts: Array


Value: TypeAlias = Fraction | NDArray[Any] | str | tuple[Symbol, ...] | CellCounts
"""A number (exact), an array (float64, or object holding fractions), a word or text, a set, a table."""

Values: TypeAlias = Mapping[str, Value]
