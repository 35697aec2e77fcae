"""Single values of finite domains, and the public rule that puts any value of a record into its domain.

Every rule looks at that value alone, so that two data sets that differ in one record still do after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.execute.arrays import number
from privspec.execute.frames import cell_text
from privspec.execute.keeper import Fit, Keeper
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

    def codes(
        self, column: Sequence[Any] | NDArray[Any], *, strict: bool = False, fit: Fit | None = None
    ) -> NDArray[np.intp]:
        """The place of each value of a column; NO_PLACE, if `strict`, where it is no value of the domain."""
        if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
            values = column.astype(np.float64)
        else:
            values = np.array([number(cell) for cell in column], dtype=np.float64)
        if fit is not None:
            for place in np.flatnonzero(np.isnan(values)).tolist():
                fit.cell(column[place])
            self.tell(values, fit)
        places = self.places(values)
        return np.where(self.fits(values), places, NO_PLACE) if strict else places

    def fit(self, keeper: Keeper, name: str, column: str | None = None) -> Fit:
        """Where to count how values fit."""
        nearest = show(self.elements[int(self.places(np.array([np.nan]))[0])])
        ends = float(self.figures.min()), float(self.figures.max())
        return keeper.fit(name, column, fate=f"each counts as {nearest}", lower=ends[0], upper=ends[1])

    def tell(self, values: NDArray[np.float64], fit: Fit) -> None:
        """How numbers fit, as they were read; of what is none the keeper was told already."""
        fit.rows += len(values)
        fit.numbers(values)
        inside = (values > self.figures.min()) & (values < self.figures.max())
        fit.outside += int((inside & ~self.fits(values)).sum())


@dataclass(frozen=True, eq=False)
class Words:
    """Words in the order of their domain; any other value counts as the first, or has no place."""

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
        place = self._find(_text(cell))
        return float("nan") if place == NO_PLACE else float(place)

    def places(self, values: NDArray[np.float64]) -> NDArray[np.intp]:
        """Places that `read` gave; what had none goes to the first word."""
        return np.nan_to_num(values, nan=0.0).astype(np.intp)

    def fits(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of what `read` gave are places."""
        return ~np.isnan(values)

    def codes(
        self, column: Sequence[Any] | NDArray[Any], *, strict: bool = False, fit: Fit | None = None
    ) -> NDArray[np.intp]:
        """The place of each value of a column; NO_PLACE, if `strict`, where it has none, and else the first word's."""
        # columns hold few different values: each is looked up once
        texts = [_text(cell) for cell in (column.tolist() if isinstance(column, np.ndarray) else column)]
        known = {text: self._find(text) for text in set(texts)}
        if fit is not None:
            fit.rows += len(texts)
            for text, times in Counter(texts).items():
                if known[text] == NO_PLACE:
                    fit.cell(text, times)
        places = np.array([known[text] for text in texts], dtype=np.intp)
        return places if strict else np.maximum(places, 0)

    def fit(self, keeper: Keeper, name: str, column: str | None = None) -> Fit:
        """Where to count how values fit."""
        words = [word(element) for element in self.elements]
        return keeper.fit(name, column, fate=f"each counts as {words[0]}", words=words)

    def tell(self, values: NDArray[np.float64], fit: Fit) -> None:
        """How many values there are; of what is none the keeper was told already."""
        fit.rows += len(values)

    @cached_property
    def _quantities(self) -> dict[float, int]:
        """The words that are numbers: 1, 1.0 and "1.00" are the same."""
        return {float(e): i for i, e in enumerate(self.elements) if isinstance(e, Fraction)}

    def _find(self, text: str) -> int:
        found = self._place.get(" ".join(text.split()))
        return self._quantities.get(number(text), NO_PLACE) if found is None else found


def _text(cell: Any) -> str:
    """A cell as text, a ranking with spaces; blank where there is none."""
    return cell_text(cell) or ""


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
