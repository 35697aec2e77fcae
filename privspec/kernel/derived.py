"""Columns of a table that follow from others of the same record, in operations that are named here.

What follows is worked out for each record alone and then read as if it stood in the data: whatever it is, a record
stands in one place of its column, or in none. So no guarantee rests on what is here, but what figures mean does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from privspec.kernel.core.reading import JsonNode, Refused, Whole, frozen, typed

Interval = tuple[Fraction, Fraction]
MOST = 64
"""Columns that one formula names."""
POWER = 8
"""The highest power."""
DEGREE = 256
"""Numbers that are multiplied with each other at most, so that no value grows out of proportion."""


@frozen
class Named:
    """The number of a column."""

    FORM = "column"
    name: str

    degree = 1

    def value(self, record: Mapping[str, Fraction]) -> Fraction:
        return record[self.name]

    def between(self, ends: Mapping[str, Interval]) -> Interval:
        return ends[self.name]

    @property
    def named(self) -> tuple[str, ...]:
        return (self.name,)

    def words(self) -> str:
        return self.name


@frozen
class Fixed:
    """A public number."""

    FORM = "number"
    number: Fraction

    degree, named = 1, ()

    def value(self, _: Mapping[str, Fraction]) -> Fraction:
        return self.number

    def between(self, _: Mapping[str, Interval]) -> Interval:
        return self.number, self.number

    def words(self) -> str:
        return str(self.number)


@frozen
class Combined:
    """Two numbers added, subtracted, multiplied, divided; the less or the greater of them."""

    FORM = "combined"
    sign: str
    left: Formula
    right: Formula

    def __post_init__(self) -> None:
        _check(self.degree)

    @property
    def degree(self) -> int:
        return self.left.degree + self.right.degree

    @property
    def named(self) -> tuple[str, ...]:
        return (*self.left.named, *self.right.named)

    def value(self, record: Mapping[str, Fraction]) -> Fraction:
        return COMBINED[self.sign](self.left.value(record), self.right.value(record))

    def between(self, ends: Mapping[str, Interval]) -> Interval:
        left, right = self.left.between(ends), self.right.between(ends)
        if self.sign == "/" and right[0] <= 0 <= right[1]:
            raise Refused("divides by what may be 0")
        found = [COMBINED[self.sign](a, b) for a in left for b in right]
        return min(found), max(found)

    def words(self) -> str:
        if self.sign in ("min", "max"):
            return f"{self.sign}({self.left.words()}, {self.right.words()})"
        return f"({self.left.words()} {self.sign} {self.right.words()})"


@frozen
class Power:
    """A whole power from 2 on; `size`: of the size of the number, which a first power is as well."""

    FORM = "power"
    base: Formula
    exponent: int
    size: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.exponent <= POWER or (self.exponent == 1 and not self.size):
            raise Refused("has a power that is not computed")
        _check(self.degree)

    @property
    def degree(self) -> int:
        return self.base.degree * self.exponent

    @property
    def named(self) -> tuple[str, ...]:
        return self.base.named

    def value(self, record: Mapping[str, Fraction]) -> Fraction:
        return self._of(self.base.value(record))

    def _of(self, number: Fraction) -> Fraction:
        return (abs(number) if self.size else number) ** self.exponent

    def between(self, ends: Mapping[str, Interval]) -> Interval:
        low, high = self.base.between(ends)
        found = [self._of(low), self._of(high)]
        if (self.size or self.exponent % 2 == 0) and low < 0 < high:
            found.append(Fraction(0))
        return min(found), max(found)

    def words(self) -> str:
        inner = f"|{self.base.words()}|" if self.size else self.base.words()
        return inner if self.exponent == 1 else f"{inner}^{self.exponent}"


def _check(degree: int) -> None:
    if degree > DEGREE:
        raise Refused("has powers and products that grow out of proportion")


Formula = Named | Fixed | Combined | Power
COMBINED: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "min": min,
    "max": max,
}
WORDS = {"Combined.sign": tuple(COMBINED)}


def read_formula(item: JsonNode) -> Formula:
    """Raises: Refused for an operation that is not known, and for more than there may be."""
    found: Formula = typed("Named | Fixed | Combined | Power", item, __name__)  # type: ignore[assignment]
    return found


@frozen
class SourceColumn:
    """A column of the data: one of `values`, a whole number from `lower` to `upper`, or `between` the two values."""

    name: str
    values: tuple[str, ...]
    lower: Whole | None = None
    upper: Whole | None = None
    between: bool = False

    @property
    def size(self) -> int:
        """How many values it has."""
        return len(self.values) if self.lower is None or self.upper is None else self.upper - self.lower + 1

    @property
    def ends(self) -> Interval:
        """Of numbers."""
        if self.lower is not None and self.upper is not None:
            return Fraction(self.lower), Fraction(self.upper)
        if not self.between or len(self.values) != 2:
            raise Refused("is computed from what is no number between two ends")
        low, high = (JsonNode(value, f"the end of {self.name}").exact() for value in self.values)
        return low, high


@frozen
class Derived:
    """A column that follows from `columns` of the data, by one of two ways.

    `formula`: a number from numbers, each moved between the ends of its column, to the nearest whole number where it
    has only these; with `cuts`, as in "< 18", one of `labels`: there is one for what lies before each, and one more.
    `places`: for each value of the one column that it follows from, which of the `labels` it is.
    """

    name: str
    columns: tuple[SourceColumn, ...]
    formula: Formula | None = None
    cuts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    places: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        own = [one.name for one in self.columns]
        if len(set(own)) < len(own) or len(set(self.labels)) < len(self.labels):
            raise Refused("follows from a column twice, or has a label twice")
        if self.formula is None:
            listed = len(own) == 1 and self.places and not self.cuts and not self.columns[0].between
            if not listed or len(self.places) != self.columns[0].size or max(self.places) >= len(self.labels):
                raise Refused("does not say for each value what follows from it")
            return
        if self.places or set(self.formula.named) != set(own) or len(self.formula.named) > MOST:
            raise Refused("has a formula of other columns, or too long a one")
        if len(self.labels) != (len(self.cuts) + 1 if self.cuts else 0):
            raise Refused("does not have a label for each of its classes")
        cuts = list(map(_cut, self.cuts))
        if cuts != sorted(set(cuts)):
            raise Refused("has cuts that do not ascend")
        self.formula.between({one.name: one.ends for one in self.columns})

    def words(self) -> str:
        """How it follows, in a sentence."""
        if self.formula is None:
            return f"{self.name} follows from {self.columns[0].name}, value by value."
        formula = self.formula.words()
        words = f"{self.name} follows from {formula[1:-1] if formula.startswith('(') else formula}"
        if self.cuts:
            sides = [one.replace("<=", "at most").replace("<", "below") for one in self.cuts]
            pairs = [f"{label} if it is {side}" for label, side in zip(self.labels, sides, strict=False)]
            words += f": {', '.join(pairs)}, else {self.labels[-1]}"
        return f"{words}, each number being moved between its ends first."


def _cut(text: str) -> tuple[Fraction, bool]:
    """Where a cut is, and whether the number there lies before it."""
    sign, _, number = text.partition(" ")
    if sign not in ("<", "<="):
        raise Refused("has a cut that is not written as one")
    return JsonNode(number, "a cut").exact(), sign == "<="


READERS = {"Formula": read_formula}
