"""A table of exact probabilities: the values that its labels stand for, and exact draws from its rows.

A draw finds a uniform number among the cumulated shares of its row, by as many of its digits as it takes: no
floating-point number takes part in it, and the probability of each entry is exactly the fraction that the plan states.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import gcd
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass, replace
from privspec.execute.cells import id_text
from privspec.execute.family import Plan, Progress, RunContext, read_plan, silent
from privspec.execute.keeper import DataOwnerReport, Fit, refuse_strictly
from privspec.execute.reading import Coded, Declared, Fields, number, read_entries
from privspec.execute.sources import cell_text
from privspec.model.values import Symbol, show, word
from privspec.noise.samplers import WORD, Randomness

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
        elif isinstance(column, Coded):
            values = np.array([number(cell) for cell in column.cells])[column.places]
        else:
            values = np.array([number(cell) for cell in column], dtype=np.float64)
        if fit is not None:
            for place in np.flatnonzero(np.isnan(values)).tolist():
                fit.cell(column[place])
            self.tell(values, fit)
        places = self.places(values)
        return np.where(self.fits(values), places, NO_PLACE) if strict else places

    def fit(self, keeper: DataOwnerReport, name: str, column: str | None = None) -> Fit:
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
        return np.arange(len(self.elements), dtype=np.float64)

    @cached_property
    def _place(self) -> dict[str, int]:
        return {id_text(word(e)) or "": i for i, e in enumerate(self.elements)}

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
        cells = column.tolist() if isinstance(column, np.ndarray) else column
        plain = isinstance(cells, Coded) or set(map(type, cells)) <= {str}
        texts = cells if plain else [_text(cell) for cell in cells]
        coded = Coded.of(texts)
        known = np.array([self._find(_text(text)) for text in coded.cells], dtype=np.intp)
        if fit is not None:
            fit.rows += len(coded)
            for text, place, times in zip(coded.cells, known, np.bincount(coded.places, minlength=1), strict=False):
                if place == NO_PLACE and times:
                    fit.cell(_text(text), int(times))
        places: NDArray[np.intp] = known[coded.places]
        return places if strict else np.maximum(places, 0)

    def fit(self, keeper: DataOwnerReport, name: str, column: str | None = None) -> Fit:
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
        found = self._place.get(id_text(text) or "")
        return self._quantities.get(number(text), NO_PLACE) if found is None else found


def _text(cell: Any) -> str:
    """A cell as text, a ranking with spaces; blank where there is none."""
    return cell_text(cell) or ""


def atom_of(elements: Sequence[Any]) -> Atom:
    """The values of one place: numbers if all of them are."""
    if all(isinstance(e, Fraction) for e in elements):
        return Numbers(tuple(elements))
    return Words(tuple(elements))


def read_places(atom: Atom, declared: Declared, source: Any, circumstances: RunContext) -> NDArray[np.intp]:
    """The place of every entry of an input, each put among its values by itself; the keeper is told how they fit.

    Raises: DataError PS0802 to PS0809.
    """
    fit = atom.fit(circumstances.keeper, declared.name)
    found = read_entries(replace(declared, read=atom.read, told=fit.cell), source, circumstances.texts)
    atom.tell(found, fit)
    if circumstances.strict and not atom.fits(found).all():
        refuse_strictly(declared.name)
    return atom.places(found)


def symbol(text: str) -> Symbol:
    """A label of a plan as a number, or as the word it is."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return text


@dataclass(frozen=True, eq=False)
class Labels:
    """Joint values of some variables, one for each row or column of a table.

    `entries[i]` holds the label of joint value i as one text for each place of each variable, one variable after
    another; `fields` says how many places a variable has.
    """

    fields: tuple[Fields, ...]
    entries: tuple[tuple[str, ...], ...]

    @classmethod
    def read(cls, names: Sequence[str], labels: Sequence[Any]) -> Labels:
        """Labels as plans write them: a text, a list of texts for a vector, and a list of these for several variables.

        Raises: ValueError if they are not of one form, or one of them stands there twice.
        """
        parts = [[label] if len(names) == 1 else label for label in labels]
        if not parts or any(not isinstance(p, list) or len(p) != len(names) for p in parts):
            raise ValueError(f"labels are expected for {', '.join(names)}")
        flat = [[tuple(_texts(value)) for value in part] for part in parts]
        fields = []
        for at, name in enumerate(names):
            sizes = {len(values[at]) for values in flat}
            if len(sizes) > 1:
                raise ValueError(f"labels of {name} have different lengths")
            single = all(isinstance(part[at], str) for part in parts)
            fields.append(Fields(name, None if single else sizes.pop()))
        entries = tuple(tuple(text for value in values for text in value) for values in flat)
        if len(set(entries)) < len(entries):
            raise ValueError("a label stands there twice")
        return cls(tuple(fields), entries)

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """The values of each place, in the order in which labels name them."""
        return tuple(atom_of([symbol(t) for t in dict.fromkeys(texts)]) for texts in zip(*self.entries, strict=True))

    @cached_property
    def places(self) -> dict[tuple[int, ...], int]:
        """From the values of all places, by number, to the joint value."""
        numbers = [{text: i for i, text in enumerate(dict.fromkeys(t))} for t in zip(*self.entries, strict=True)]
        return {
            tuple(known[text] for known, text in zip(numbers, entry, strict=True)): i
            for i, entry in enumerate(self.entries)
        }

    def figures(self) -> NDArray[np.float64]:
        """Each joint value as one number a place (labels, places): its number, or a word's place in its set."""
        codes = np.array(list(self.places), dtype=np.intp)
        return np.stack([atom.figures[codes[:, j]] for j, atom in enumerate(self.atoms)], axis=1)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """One text for each joint value: "3", "3, 4", "F, high"."""
        return tuple(", ".join(entry) for entry in self.entries)

    def values(self) -> dict[str, NDArray[Any]]:
        """The values of each variable, one row for each joint value: whole numbers, doubles, or words."""
        return dict(self._values)

    @cached_property
    def _values(self) -> dict[str, NDArray[Any]]:
        out: dict[str, NDArray[Any]] = {}
        columns = list(zip(*self.entries, strict=True))
        start = 0
        for found in self.fields:
            part = [_column(texts) for texts in columns[start : start + found.count]]
            start += found.count
            words = any(column.dtype == object for column in part)
            stacked = np.stack([c.astype(object) if words else c for c in part], axis=1)
            out[found.name] = stacked[:, 0] if found.size is None else stacked
        return out


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value
    else:
        raise ValueError("a label is a text")


def _column(texts: Sequence[str]) -> NDArray[Any]:
    symbols = [symbol(text) for text in texts]
    numbers = [s for s in symbols if isinstance(s, Fraction)]
    if len(numbers) < len(symbols):
        return np.array(texts, dtype=object)
    whole = all(s.denominator == 1 and abs(s) < 2**62 for s in numbers)
    return np.array([int(s) if whole else float(s) for s in numbers])


BATCH = 65_536
"""Rows that are looked at together."""


@dataclass(frozen=True)
class RowLaw:
    """The law of the joint output at one row: entry j has weight cumulative[j] - cumulative[j - 1] of `total`."""

    cumulative: tuple[int, ...]
    total: int

    @classmethod
    def of(cls, numerators: Sequence[int], denominator: int) -> RowLaw:
        """A row in lowest terms."""
        shared = gcd(*numerators, denominator)
        return cls(tuple(accumulate(n // shared for n in numerators)), denominator // shared)

    @cached_property
    def _cuts(self) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """The cumulated shares in 2^-64, rounded down, and where that cut something off."""
        found = [divmod(c << WORD, self.total) for c in self.cumulative if c < self.total]
        return np.array([cut for cut, _ in found], dtype=np.uint64), np.array([rest > 0 for _, rest in found], bool)

    def draws(self, count: int, randomness: Randomness) -> NDArray[np.intp]:
        """Numbers of joint outputs (count,), exactly: a word is below a share or not, else more digits say it."""
        words, (cuts, inside) = randomness.words(count), self._cuts
        found = np.searchsorted(cuts, words, side="right")
        if inside.any():
            last = np.maximum(found - 1, 0)
            for i in np.flatnonzero((cuts[last] == words) & inside[last] & (found > 0)):
                found[i] = self._place(int(words[i]), randomness)
        return found

    def draw(self, randomness: Randomness) -> int:
        """The number of a joint output."""
        return int(self.draws(1, randomness)[0])

    def _place(self, digits: int, randomness: Randomness) -> int:
        """Where a uniform number stands among the shares, whose first digits are known."""
        bits = WORD
        while True:
            first = bisect_right(self.cumulative, digits * self.total >> bits)
            if first == bisect_left(self.cumulative, -(-(digits + 1) * self.total >> bits)):
                return first
            digits, bits = digits << WORD | randomness.word(), bits + WORD

    @property
    def weights(self) -> tuple[int, ...]:
        return tuple(b - a for a, b in zip((0, *self.cumulative), self.cumulative, strict=False))


def draw_each(
    laws: Sequence[RowLaw], rows: NDArray[np.integer[Any]], randomness: Randomness, progress: Progress = silent
) -> NDArray[np.unsignedinteger[Any]]:
    """One draw for each row number (n,): the number of its joint output."""
    drawn, done = np.empty(len(rows), dtype=small(len(laws[0].cumulative))), 0
    order = np.argsort(rows, kind="stable")
    for alike in np.split(order, np.flatnonzero(np.diff(rows[order])) + 1) if len(rows) else ():
        drawn[alike] = laws[rows[alike[0]]].draws(len(alike), randomness)
        done += len(alike)
        progress("reports drawn", done, len(rows))
    return drawn


@dataclass(frozen=True, eq=False, slots=True)
class TableLaw:
    """Pr(joint output | row): labels of rows and columns, and the law of every row."""

    rows: Labels
    columns: Labels
    laws: tuple[RowLaw, ...]
    prior: tuple[Fraction, ...] = ()
    """The law of the rows, where there is one."""

    @classmethod
    def of_plan(cls, plan: Plan) -> TableLaw:
        """The table of a plan, as the kernel reads it.

        Raises: KeyError, TypeError, ValueError, UsageError PS0820 if it is none.
        """
        found = read_plan(plan)[1]
        task, table = found.block, found.table
        rows, columns = Labels.read(task.of, task.rows), Labels.read(task.outputs, task.columns)
        return cls(rows, columns, tuple(RowLaw.of(row, table.whole) for row in table.rows), tuple(task.weights()))

    def draw(
        self, rows: NDArray[np.integer[Any]], randomness: Randomness, progress: Progress = silent
    ) -> NDArray[np.unsignedinteger[Any]]:
        """One draw for each row number (n,): the number of its joint output."""
        return draw_each(self.laws, rows, randomness, progress)

    def matrix(self) -> NDArray[np.float64]:
        """The probabilities in doubles (rows, columns)."""
        return np.array([[w / law.total for w in law.weights] for law in self.laws])


def small(count: int) -> np.dtype[Any]:
    """The smallest type of whole number for places 0..count - 1."""
    return np.min_scalar_type(max(count - 1, 0))
