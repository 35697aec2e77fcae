"""What a name may stand for: an exact number, an array, a word, a set, the counts of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any, TypeAlias

from numpy.typing import NDArray

from privspec.core.records import dataclass
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
    "joined_length",
    "readable",
    "show",
    "word",
]


@dataclass(frozen=True, eq=False, slots=True)
class CellCounts:
    """A table as counts of its cells, (cells, *batch), numbered row-major in attribute order."""

    table: Table
    counts: Array


Value: TypeAlias = Fraction | NDArray[Any] | str | tuple[Symbol, ...] | CellCounts
"""A number (exact), an array (float64, or object holding fractions), a word or text, a set, a table."""

Values: TypeAlias = Mapping[str, Value]


def word(element: object) -> str:
    """An element of a domain as data write it: a ranking best first, with spaces."""
    return " ".join(show(item) for item in element) if isinstance(element, tuple) else show(element)


def joined_length(shapes: Sequence[tuple[int, ...]]) -> int | None:
    """The entries of `[u, v]` where numbers and vectors of several lengths are joined; None for parts of one shape.

    Raises: ValueError where parts neither have one shape nor are numbers and vectors.
    """
    if len(set(shapes)) <= 1:
        return None
    if any(len(shape) > 1 for shape in shapes):
        raise ValueError("matrices are not joined")
    return sum(prod(shape) for shape in shapes)
