"""Columns of a table that follow from others of the same record, in operations that are named here.

What follows is worked out for each record alone and then read as if it stood in the data: whatever it is, a record
stands in one place of its column, or in none. So no guarantee rests on what is here, but what figures mean does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from operator import add, mul, sub, truediv
from typing import Any, TypeVar

from privspec.kernel.core.reading import JsonNode, Refused, Whole, frozen, typed

T = TypeVar("T")
Interval = tuple[Fraction, Fraction]
MOST = 64
"""Columns that one formula names."""
POWER = 8
"""The highest power."""
DEGREE = 256
"""Numbers that are multiplied with each other at most, so that no value grows out of proportion."""


class Formula:
    """What is computed of the numbers of a record. Whatever is asked of it is one `fold` of its parts."""

    __slots__ = ()

    def fold(
        self,
        column: Callable[[str], T],
        number: Callable[[Fraction], T],
        combined: Callable[[str, T, T], T],
        power: Callable[[T, int, bool], T],
    ) -> T:
        """Of a column, a public number, two parts that are combined by a sign, or a power of a part, or of its size."""

        def of(part: object) -> T:
            match part:
                case Named(name):
                    return column(name)
                case Fixed(value):
                    return number(value)
                case Combined(sign, left, right):
                    return combined(sign, of(left), of(right))
                case Power(base, exponent, size):
                    return power(of(base), exponent, size)
            raise AssertionError(part)

        return of(self)

    @property
    def named(self) -> tuple[str, ...]:
        """Its columns, each as often as it stands there."""
        nothing: tuple[str, ...] = ()
        return self.fold(lambda name: (name,), lambda _: nothing, lambda _, a, b: a + b, lambda base, *_: base)

    @property
    def degree(self) -> int:
        """How many numbers are multiplied with each other at most."""
        found: int = self.fold(lambda _: 1, lambda _: 1, lambda _, a, b: a + b, lambda base, power, _: base * power)
        return found

    def value(self, record: Mapping[str, Fraction]) -> Fraction:
        return self.fold(record.__getitem__, lambda number: number, combined, powered)

    def between(self, ends: Mapping[str, Interval]) -> Interval:
        """Where its values lie. Raises: Refused where it may divide by 0."""
        return self.fold(ends.__getitem__, lambda number: (number, number), _combined_ends, _power_ends)

    def words(self) -> str:
        return self.fold(str, str, _combined_words, _power_words)

    def __post_init__(self) -> None:
        if self.degree > DEGREE:
            raise Refused("has powers and products that grow out of proportion")


@frozen
class Named(Formula):
    """The number of a column."""

    FORM = "column"
    name: str


@frozen
class Fixed(Formula):
    """A public number."""

    FORM = "number"
    number: Fraction


@frozen
class Combined(Formula):
    """Two numbers added, subtracted, multiplied, divided; the less or the greater of them."""

    FORM = "combined"
    sign: str
    left: Formula
    right: Formula


@frozen
class Power(Formula):
    """A whole power from 2 on; `size`: of the size of the number, which a first power is as well."""

    FORM = "power"
    base: Formula
    exponent: int
    size: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.exponent <= POWER or (self.exponent == 1 and not self.size):
            raise Refused("has a power that is not computed")
        Formula.__post_init__(self)


COMBINED: dict[str, Callable[[Any, Any], Any]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": truediv,
    "min": min,
    "max": max,
}


def combined(sign: str, left: Fraction, right: Fraction) -> Fraction:
    """Two numbers that a sign combines."""
    found: Fraction = COMBINED[sign](left, right)
    return found


def powered(base: Fraction, exponent: int, size: bool) -> Fraction:
    """A power of a number, or of its size."""
    return (abs(base) if size else base) ** exponent


def _combined_ends(sign: str, left: Interval, right: Interval) -> Interval:
    if sign == "/" and right[0] <= 0 <= right[1]:
        raise Refused("divides by what may be 0")
    found = [combined(sign, a, b) for a in left for b in right]
    return min(found), max(found)


def _power_ends(base: Interval, exponent: int, size: bool) -> Interval:
    found = [powered(end, exponent, size) for end in base]
    if (size or exponent % 2 == 0) and base[0] < 0 < base[1]:
        found.append(Fraction(0))
    return min(found), max(found)


def _combined_words(sign: str, left: str, right: str) -> str:
    return f"{sign}({left}, {right})" if sign in ("min", "max") else f"({left} {sign} {right})"


def _power_words(base: str, exponent: int, size: bool) -> str:
    inner = f"|{base}|" if size else base
    return inner if exponent == 1 else f"{inner}^{exponent}"


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
        cuts = list(map(cut_at, self.cuts))
        if cuts != sorted(set(cuts)):
            raise Refused("has cuts that do not ascend")
        self.between()

    def between(self) -> Interval | None:
        """Where its numbers lie; nothing of words. Raises: Refused where it may divide by 0."""
        return None if self.formula is None else self.formula.between({one.name: one.ends for one in self.columns})

    def words(self) -> str:
        """How it follows, in a sentence."""
        if self.formula is None:
            return f"{self.name} follows from {self.columns[0].name}, value by value."
        formula = self.formula.words()
        words = f"{self.name} follows from {formula[1:-1] if formula.startswith('(') else formula}"
        if self.cuts:
            pairs = [f"{label} if it is {side}" for label, side in zip(self.labels, sides(self.cuts), strict=False)]
            words += f": {', '.join(pairs)}, else {self.labels[-1]}"
        return f"{words}, each number being moved between its ends first."


def sides(cuts: tuple[str, ...]) -> list[str]:
    """What lies before each cut, in words: "below 18", "at most 30"."""
    return [one.replace("<=", "at most").replace("<", "below") for one in cuts]


def cut_at(text: str) -> tuple[Fraction, bool]:
    """Where a cut is, and whether the number there lies before it."""
    sign, _, number = text.partition(" ")
    if sign not in ("<", "<="):
        raise Refused("has a cut that is not written as one")
    return JsonNode(number, "a cut").exact(), sign == "<="


READERS = {"Formula": read_formula}
