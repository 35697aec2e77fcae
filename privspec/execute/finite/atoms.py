"""Single values of finite domains, and the public rule that puts any value of a record into its domain.

Every rule looks at that value alone, so that two data sets that differ in one record still do after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.execute.arrays import number
from privspec.model.domains import Domain, Power
from privspec.model.values import Symbol, show

NO_PLACE = -1
"""The place of a value that the rule puts nowhere."""
Atom: TypeAlias = "Numbers | Words"


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers in the order of their domain.

    A number goes to the nearest of them, halves to the larger; what is missing or cannot be read goes to the one
    nearest to zero.
    """

    elements: tuple[Fraction, ...]

    @cached_property
    def figures(self) -> NDArray[np.float64]:
        """The numbers themselves, in doubles."""
        return np.array([float(e) for e in self.elements])

    @cached_property
    def _middles(self) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Where one number ends and the next begins, in increasing order, and the places in that order."""
        order = np.argsort(self.figures, kind="stable")
        values = self.figures[order]
        return (values[1:] + values[:-1]) / 2, order

    @cached_property
    def _nearest_to_zero(self) -> float:
        return float(min(self.elements, key=lambda e: (abs(e), e)))

    def read(self, cell: Any) -> float:
        """A value as it was read, as a number; not a number where there is none."""
        return number(cell)

    def places(self, values: NDArray[np.float64]) -> NDArray[np.intp]:
        """The place of each number."""
        middles, order = self._middles
        known = np.where(np.isnan(values), self._nearest_to_zero, values)
        found: NDArray[np.intp] = order[np.searchsorted(middles, known, side="right")]
        return found

    def fits(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which numbers are values of the domain as they stand."""
        fits: NDArray[np.bool_] = self.figures[self.places(values)] == values
        return fits

    def codes(self, column: Sequence[Any] | NDArray[Any], *, strict: bool = False) -> NDArray[np.intp]:
        """The place of each value of a column; NO_PLACE, if `strict`, where it is no value of the domain."""
        if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
            values = column.astype(np.float64)
        else:
            values = np.array([number(cell) for cell in column], dtype=np.float64)
        places = self.places(values)
        return np.where(self.fits(values), places, NO_PLACE) if strict else places


@dataclass(frozen=True, eq=False)
class Words:
    """Words in the order of their domain; any other value has no place."""

    elements: tuple[Any, ...]

    @cached_property
    def figures(self) -> NDArray[np.float64]:
        """The places of the words."""
        return np.arange(len(self.elements), dtype=np.float64)

    @cached_property
    def _place(self) -> dict[str, int]:
        return {word(e): i for i, e in enumerate(self.elements)}

    def read(self, cell: Any) -> float:
        """The place of a value as a number; not a number where it has none."""
        place = self._find(cell)
        return float("nan") if place == NO_PLACE else float(place)

    def places(self, values: NDArray[np.float64]) -> NDArray[np.intp]:
        """Places that `read` gave; what had none goes to the first word."""
        return np.nan_to_num(values, nan=0.0).astype(np.intp)

    def fits(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of what `read` gave are places."""
        return ~np.isnan(values)

    def codes(self, column: Sequence[Any] | NDArray[Any], *, strict: bool = False) -> NDArray[np.intp]:
        """The place of each value of a column, NO_PLACE where it has none."""
        cells = column.tolist() if isinstance(column, np.ndarray) else column
        try:
            # columns hold few different values: each is looked up once
            known = {cell: self._find(cell) for cell in set(cells)}
            return np.array([known[cell] for cell in cells], dtype=np.intp)
        except TypeError:
            return np.array([self._find(cell) for cell in cells], dtype=np.intp)

    def _find(self, cell: Any) -> int:
        if isinstance(cell, list | tuple):
            cell = " ".join(map(str, cell))
        return self._place.get(" ".join(str(cell).split()), NO_PLACE)


def word(element: Any) -> str:
    """An element of a domain as data write it: a ranking best first, with spaces."""
    return " ".join(show(item) for item in element) if isinstance(element, tuple) else show(element)


def atom_of(elements: Sequence[Any]) -> Atom:
    """The values of one place: numbers if all of them are."""
    if all(isinstance(e, Fraction) for e in elements):
        return Numbers(tuple(elements))
    return Words(tuple(elements))


def base_of(domain: Domain) -> Domain:
    """A domain without its powers."""
    return base_of(domain.base) if isinstance(domain, Power) else domain


def symbol(text: str) -> Symbol:
    """A label of a plan as a number, or as the word it is."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return text
