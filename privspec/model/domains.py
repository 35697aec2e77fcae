"""Domains: the sets in which variables live; types of values: a shape and what stands at each place.

All are frozen; nothing is enumerated until asked for.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from fractions import Fraction
from math import factorial, floor, perm, prod
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from privspec.core.records import dataclass, field
from privspec.core.rounding import common, show

if TYPE_CHECKING:
    from privspec.kernel.derived import Formula
    from privspec.kernel.persons import Gathered, Source

Symbol: TypeAlias = str | Fraction
"""A member of a finite set: a word or an exact number."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Real numbers."""

    noun: ClassVar[str] = "number"


@dataclass(frozen=True, slots=True)
class Symbols:
    """Words without arithmetic; None when the set is not known."""

    items: tuple[Symbol, ...] | None = None

    noun: ClassVar[str] = "word"


@dataclass(frozen=True, slots=True)
class Rankings:
    """Orders of alternatives, of all or of some of them."""

    of: RankingOf | PartialRankingOf

    noun: ClassVar[str] = "ranking"


@dataclass(frozen=True, slots=True)
class Tables:
    """Tables of records; evaluated through their cell counts."""

    table: Table

    noun: ClassVar[str] = "table"


@dataclass(frozen=True, slots=True)
class Laws:
    """Probability laws over a domain."""

    over: Domain | None = None

    noun: ClassVar[str] = "law"


@dataclass(frozen=True, slots=True)
class Sets:
    """Finite sets of words or numbers."""

    items: tuple[Symbol, ...] | None = None

    noun: ClassVar[str] = "set"


@dataclass(frozen=True, slots=True)
class Texts:
    """Quoted strings."""

    noun: ClassVar[str] = "text"


@dataclass(frozen=True, slots=True)
class Anything:
    """Not known (after an error, or not yet inferred): fits everything, so that one mistake is told once."""

    noun: ClassVar[str] = "value"


Element: TypeAlias = Numbers | Symbols | Rankings | Tables | Laws | Sets | Texts | Anything


@dataclass(frozen=True, slots=True)
class Type:
    """`shape` () for one value; a collection over an index set has that index as its first axis."""

    shape: tuple[int, ...] = ()
    element: Element = field(default_factory=Numbers)

    @property
    def known(self) -> bool:
        """Whether anything can be said about it."""
        return not isinstance(self.element, Anything)

    @property
    def numeric(self) -> bool:
        """Whether arithmetic applies (or nothing is known)."""
        return isinstance(self.element, Numbers | Anything)

    @property
    def size(self) -> int:
        return prod(self.shape)

    def with_shape(self, shape: tuple[int, ...]) -> Type:
        """The same element at another shape."""
        return Type(shape, self.element)

    def describe(self) -> str:
        """In words: "a vector of 64", "a 32 x 64 matrix"."""
        noun = self.element.noun
        if not self.known:
            return "something unknown"
        if not self.shape:
            return f"a {noun}"
        plain = isinstance(self.element, Numbers)
        tail = "" if plain else f" of {noun}s"
        match self.shape:
            case (0,):
                return f"one {noun} for each unknown key"
            case (n,):
                return f"a vector of {n}" if plain else f"{n} {noun}s"
            case (m, n):
                return f"a {m} x {n} matrix{tail}"
            case _:
                return f"a {' x '.join(str(n) for n in self.shape)} array{tail}"


NUMBER = Type()
UNKNOWN = Type((), Anything())
TEXT = Type((), Texts())


def fits(actual: Type, wanted: Type) -> bool:
    """Whether a value of one type may stand for the other: equal shapes, or nothing known of one of them."""
    if not actual.known or not wanted.known:
        return True
    return actual.shape == wanted.shape and type(actual.element) is type(wanted.element)


ENUMERATION_LIMIT = 2**22
"""Largest number of elements or coordinates that is ever laid out in memory."""

Bound = Fraction | None
"""An exact end of a domain; None where it is unbounded."""


class Domain(ABC):
    """A set of values; every entry of a value lies between the same two `bounds`."""

    __slots__ = ()

    @property
    def type(self) -> Type:
        """Shape and element of a value: one number unless a domain says otherwise."""
        return Type()

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def size(self) -> int | None:
        """Number of values, None if infinite; never enumerates."""
        return None

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        """Exact ends that every entry respects; (None, None) where there are none or no numbers."""
        return None, None

    @property
    def spacing(self) -> Fraction | None:
        """What its numbers are whole multiples of, beyond the least of them; None where some lie anywhere."""
        return None

    @property
    def bounded(self) -> bool:
        """Whether every entry has two ends."""
        low, high = self.bounds
        return low is not None and high is not None

    @property
    def innermost(self) -> Domain:
        """The domain without its powers."""
        return self

    def contains(self, value: Any) -> bool:
        """Whether a number, word, tuple or array is a value of this domain; no tables or laws are ever written out."""
        return False

    @abstractmethod
    def describe(self) -> str:
        """As it would be written in a spec."""

    def elements(self) -> Iterator[Any]:
        """Every value, in order.

        Raises: ValueError if there are too many.
        """
        if self.size is None:
            raise ValueError(f"{self.describe()} has infinitely many values")
        if self.size > ENUMERATION_LIMIT:
            most = f"at most {ENUMERATION_LIMIT:,} can be listed"
            raise ValueError(f"{self.describe()} has {self.size:,} elements; {most}")
        return self._elements()

    def _elements(self) -> Iterator[Any]:
        raise NotImplementedError


def _number(value: Any) -> Fraction | None:
    """A finite scalar as a fraction."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return Fraction(int(value))
    if isinstance(value, float | np.floating) and np.isfinite(value):
        return Fraction(float(value))
    return None


@dataclass(frozen=True, slots=True)
class Real(Domain):
    """Every real number."""

    def contains(self, value: Any) -> bool:
        return _number(value) is not None

    def describe(self) -> str:
        return "real"


@dataclass(frozen=True, slots=True)
class Interval(Domain):
    """Numbers between two ends; an end that is None is infinite."""

    low: Bound
    high: Bound
    low_open: bool = False
    high_open: bool = False

    @property
    def size(self) -> int | None:
        """Infinite, unless it is a single point."""
        return 1 if self.low is not None and self.low == self.high else None

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        return self.low, self.high

    def contains(self, value: Any) -> bool:
        """Whether it is a number between the ends."""
        number = _number(value)
        if number is None:
            return False
        above = self.low is None or (number > self.low if self.low_open else number >= self.low)
        return above and (self.high is None or (number < self.high if self.high_open else number <= self.high))

    def describe(self) -> str:
        left = "(" if self.low_open or self.low is None else "["
        right = ")" if self.high_open or self.high is None else "]"
        low = "-inf" if self.low is None else show(self.low)
        high = "inf" if self.high is None else show(self.high)
        return f"{left}{low}, {high}{right}"

    def _elements(self) -> Iterator[Any]:
        return iter((self.low,))


@dataclass(frozen=True, slots=True)
class Grid(Domain):
    """The numbers `low, low + step, ..., high`."""

    low: Fraction
    high: Fraction
    step: Fraction

    @property
    def size(self) -> int | None:
        return floor((self.high - self.low) / self.step) + 1

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        return Fraction(self.low), Fraction(self.high)

    @property
    def spacing(self) -> Fraction | None:
        return self.step if (self.high - self.low) % self.step == 0 else None

    def contains(self, value: Any) -> bool:
        number = _number(value)
        inside = number is not None and self.low <= number <= self.high
        return inside and ((number - self.low) / self.step).denominator == 1  # type: ignore[operator]

    def describe(self) -> str:
        return f"grid({show(self.low)}, {show(self.high)}, {show(self.step)})"

    def _elements(self) -> Iterator[Any]:
        return (self.low + i * self.step for i in range(self.size or 0))


@dataclass(frozen=True, slots=True)
class IntegerRange(Domain):
    """Whole numbers from `low` to `high`, both included."""

    low: int
    high: int

    @property
    def size(self) -> int | None:
        return self.high - self.low + 1

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        return Fraction(self.low), Fraction(self.high)

    @property
    def spacing(self) -> Fraction | None:
        return Fraction(1)

    def contains(self, value: Any) -> bool:
        number = _number(value)
        return number is not None and number.denominator == 1 and self.low <= number <= self.high

    def describe(self) -> str:
        return f"{self.low}..{self.high}"

    def _elements(self) -> Iterator[Any]:
        return (Fraction(i) for i in range(self.low, self.high + 1))


@dataclass(frozen=True, slots=True)
class Between(Domain):
    """A column of numbers between two ends, held as shares of the two: v is (high - v) / (high - low) of the low one.

    Counts and sums of records are the same, and no record moves them more than one that stands at an end.
    """

    low: Fraction
    high: Fraction

    @property
    def size(self) -> int | None:
        return 2

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        return self.low, self.high

    def contains(self, value: Any) -> bool:
        number = _number(value)
        return number is not None and self.low <= number <= self.high

    def describe(self) -> str:
        return f"[{show(self.low)}, {show(self.high)}]"

    def _elements(self) -> Iterator[Any]:
        return iter((self.low, self.high))


def cut_words(cuts: Iterable[tuple[Fraction, bool]]) -> tuple[str, ...]:
    """Cuts as they are written: "< 12", "<= 12"."""
    return tuple(f"{'<=' if up_to else '<'} {show(value)}" for value, up_to in cuts)


@dataclass(frozen=True, slots=True)
class Cut(Domain):
    """A column of numbers of which nothing is asked but on which side of some `cuts` they lie: a cell between two cuts.

    A cut (v, False) has the numbers below v before it, (v, True) those up to v. Its elements are one number of each
    cell.
    """

    whole: IntegerRange | Between
    cuts: tuple[tuple[Fraction, bool], ...]

    @property
    def size(self) -> int | None:
        return len(self.cuts) + 1

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        return self.whole.bounds

    def contains(self, value: Any) -> bool:
        return self.whole.contains(value)

    def describe(self) -> str:
        return self.whole.describe()

    def words(self) -> tuple[str, ...]:
        """The cuts as they are written."""
        return cut_words(self.cuts)

    def shares(self) -> list[Fraction]:
        """The part of its numbers that lies in each cell."""
        ends = self._ends() if isinstance(self.whole, Between) else [*self.elements(), Fraction(self.whole.high + 1)]
        return [(after - before) / (ends[-1] - ends[0]) for before, after in itertools.pairwise(ends)]

    def _ends(self) -> list[Fraction]:
        return [Fraction(self.whole.low), *(value for value, _ in self.cuts), Fraction(self.whole.high)]

    def _elements(self) -> Iterator[Any]:
        if isinstance(self.whole, Between):
            return ((first + last) / 2 for first, last in itertools.pairwise(self._ends()))
        return iter((Fraction(self.whole.low), *(value + up_to for value, up_to in self.cuts)))


@dataclass(frozen=True, slots=True)
class FiniteSet(Domain):
    """The items written out: words or exact numbers."""

    items: tuple[Symbol, ...]

    @property
    def numeric(self) -> bool:
        """Whether all items are numbers."""
        return all(isinstance(item, Fraction) for item in self.items)

    @property
    def type(self) -> Type:
        """One number if all items are numbers, else one word."""
        return Type() if self.numeric else Type((), Symbols(self.items))

    @property
    def size(self) -> int | None:
        return len(self.items)

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        numbers = [item for item in self.items if isinstance(item, Fraction)]
        return (min(numbers), max(numbers)) if self.numeric else (None, None)

    @property
    def spacing(self) -> Fraction | None:
        low = self.bounds[0]
        apart = () if low is None else (item - low for item in self.items if isinstance(item, Fraction))
        return common(one for one in apart if one) or None

    def contains(self, value: Any) -> bool:
        number = _number(value)
        return (number if number is not None else value) in self.items

    def describe(self) -> str:
        moments = moments_of(self)
        if moments and len(moments) > 1 and sorted(set(moments)) == moments:
            step = timedelta(hours=1) if isinstance(moments[0], datetime) else timedelta(days=1)
            if moments[-1] - moments[0] == step * (len(moments) - 1):
                return f"{self.items[0]}..{self.items[-1]}"
        return "{" + ", ".join(show(item) for item in self.items) + "}"

    def _elements(self) -> Iterator[Any]:
        return iter(self.items)


@dataclass(frozen=True, slots=True)
class Unknown(Domain):
    """A column of texts that nobody has listed: which of them occur is as secret as how often."""

    @property
    def type(self) -> Type:
        return Type((), Symbols())

    def contains(self, value: Any) -> bool:
        return isinstance(value, str)

    def describe(self) -> str:
        return "unknown"


@dataclass(frozen=True, slots=True)
class Ball(Domain):
    """Vectors of a bounded norm."""

    radius: Fraction
    dimension: int

    norm: ClassVar[int] = 2

    @property
    def type(self) -> Type:
        return Type((self.dimension,))

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        """Each entry is at most the radius in size."""
        return -self.radius, self.radius

    def contains(self, value: Any) -> bool:
        """Whether it is a vector of that dimension and norm, exactly."""
        array = np.asarray(value, dtype=object)
        numbers = [_number(entry) for entry in array.ravel()]
        sizes = [abs(number) ** self.norm for number in numbers if number is not None]
        return array.shape == (self.dimension,) == (len(sizes),) and sum(sizes) <= self.radius**self.norm

    def describe(self) -> str:
        return f"l{self.norm}_ball({show(self.radius)}, {self.dimension})"


@dataclass(frozen=True, slots=True)
class L1Ball(Ball):
    """Vectors whose absolute entries sum to at most the radius."""

    norm: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class L2Ball(Ball):
    """Vectors of Euclidean length at most the radius."""


@dataclass(frozen=True, slots=True)
class RankingOf(Domain):
    """Orders of all alternatives, best first; a value is a tuple of alternatives."""

    alternatives: tuple[Symbol, ...]

    @property
    def type(self) -> Type:
        return Type((), Rankings(self))

    @property
    def size(self) -> int | None:
        """Factorial of the number of alternatives."""
        return factorial(len(self.alternatives))

    def contains(self, value: Any) -> bool:
        """Whether every alternative stands in it exactly once."""
        if not isinstance(value, tuple | list) or len(value) != len(self.alternatives):
            return False
        return set(value) == set(self.alternatives)

    def describe(self) -> str:
        return "ranking of {" + ", ".join(show(item) for item in self.alternatives) + "}"

    def _elements(self) -> Iterator[Any]:
        return itertools.permutations(self.alternatives)


@dataclass(frozen=True, slots=True)
class PartialRankingOf(Domain):
    """Orders of one to `places` of the alternatives, best first; a value is a tuple of alternatives."""

    alternatives: tuple[Symbol, ...]
    places: int

    @property
    def type(self) -> Type:
        return Type((), Rankings(self))

    @property
    def size(self) -> int | None:
        """The number of orders of one alternative, of two, and so on."""
        return sum(perm(len(self.alternatives), k) for k in range(1, self.places + 1))

    def contains(self, value: Any) -> bool:
        """Whether it names some alternatives, none twice and not too many."""
        if not isinstance(value, tuple | list) or not 1 <= len(value) <= self.places:
            return False
        return len(set(value)) == len(value) and set(value) <= set(self.alternatives)

    def describe(self) -> str:
        items = "{" + ", ".join(show(item) for item in self.alternatives) + "}"
        places = f", {self.places}" if self.places < len(self.alternatives) else ""
        return f"partial_ranking({items}{places})"

    def _elements(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(
            itertools.permutations(self.alternatives, k) for k in range(1, self.places + 1)
        )


@dataclass(frozen=True, slots=True)
class Follows:
    """How a column follows from `columns` of the same record (`kernel.derived.Derived`); `text` as it is written.

    `every`: whether each of its values follows from some record, and for numbers between two ends each of these.
    """

    columns: tuple[tuple[str, Domain], ...]
    formula: Formula | None
    cuts: tuple[tuple[Fraction, bool], ...]
    labels: tuple[str, ...]
    places: tuple[int, ...]
    text: str
    every: bool


@dataclass(frozen=True, slots=True)
class Gathers:
    """How a column is made of all records that a person has in a table; `text` as it is written."""

    made: Gathered
    text: str


@dataclass(frozen=True, slots=True)
class Table(Domain):
    """Records over named attributes, as counts of the cells of their product.

    Cells are numbered row-major in the order of the attributes: the last attribute runs fastest. `records`: how many
    there are, as in `table(...)^100`; None for any number. `ids`: opaque columns that say whose a record is; no
    question is about them, and nothing that they hold is counted or shown. `derived`: how some attributes follow from
    columns of the data; `gathered`: how some of these are made of all records of a person, as far as they are used;
    `persons`: the tables of all of whose records it has one record for each person.
    """

    attributes: tuple[tuple[str, Domain], ...]
    records: int | None = None
    ids: tuple[str, ...] = ()
    derived: tuple[tuple[str, Follows], ...] = ()
    gathered: tuple[tuple[str, Gathers], ...] = ()
    persons: tuple[Source, ...] = ()

    @property
    def type(self) -> Type:
        return Type((), Tables(self))

    @property
    def columns(self) -> dict[str, Domain]:
        """The columns of the data that its attributes are, or follow from, as they are declared."""
        derived = dict(self.derived)
        own = {name: domain for name, domain in self.attributes if name not in derived}
        return dict(one for name in self.names if name in derived for one in derived[name].columns) | own

    @property
    def free(self) -> bool:
        """Whether records may have every combination of the attributes' values."""
        derived = dict(self.derived)
        used = [derived[name] for name in self.names if name in derived]
        sources = sum(len(one.columns) for one in used)
        return all(one.every for one in used) and len(self.columns) == len(self.names) - len(used) + sources

    @property
    def size(self) -> int | None:
        """None: tables are counted, never listed, even where the number of records is given."""
        return None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.attributes)

    @property
    def cell_shape(self) -> tuple[int, ...]:
        """Number of values of each attribute; 0 where they are unknown, so that there are no cells."""
        return tuple(domain.size or 0 for _, domain in self.attributes)

    @property
    def cell_count(self) -> int:
        """Number of cells; never enumerates."""
        return prod(self.cell_shape)

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        return Fraction(0), None

    def describe(self) -> str:
        """As a call, with its exponent."""
        power = "" if self.records is None else f"^{self.records}"
        derived = dict(self.derived)
        columns = [f"{name} in id" for name in self.ids]
        gathered = dict(self.gathered)
        columns += [
            f"{name} in {domain.describe()}"
            + (f" = {gathered[name].text}" if name in gathered and gathered[name].text != name else "")
            for name, domain in self.columns.items()
        ]
        columns += [
            f"{name} = {derived[name].text}" for name in self.names if name in derived and name != derived[name].text
        ]
        whose = f"persons({', '.join(one.table for one in self.persons)}): " if self.persons else ""
        return f"{whose}table({', '.join(columns)}){power}"


def moments_of(domain: Domain) -> list[date] | None:
    """The days, or the hours, that a column holds; None where it holds anything else."""
    if not isinstance(domain, FiniteSet) or not all(isinstance(one, str) for one in domain.items):
        return None
    try:
        return [moment_of(str(one)) for one in domain.items]
    except ValueError:
        return None


def moment_of(text: str) -> date:
    """A day, as in 2025-01-31, or an hour, as in 2025-01-31T07:00.

    Raises: ValueError for anything else.
    """
    if len(text) == len("2025-01-31"):
        return date.fromisoformat(text)
    found = datetime.strptime(text, "%Y-%m-%dT%H:00")
    if len(text) != len("2025-01-31T07:00"):
        raise ValueError(text)
    return found


def measured(domain: Domain) -> bool:
    """Whether a column holds numbers of an interval, whose values nobody lists."""
    return isinstance(domain.whole if isinstance(domain, Cut) else domain, Between)


def unknown_keys(domain: Domain | None) -> bool:
    """Whether it is a table with a column whose values nobody has listed."""
    return isinstance(domain, Table) and any(isinstance(column, Unknown) for _, column in domain.attributes)


@dataclass(frozen=True, slots=True)
class Law(Domain):
    """Every probability law over a domain."""

    over: Domain

    @property
    def type(self) -> Type:
        return Type((), Laws(self.over))

    def describe(self) -> str:
        return f"law({self.over.describe()})"


@dataclass(frozen=True, slots=True)
class Power(Domain):
    """Arrays of values of one domain; the outermost `exponents` come first in the shape."""

    base: Domain
    exponents: tuple[int, ...]

    @property
    def type(self) -> Type:
        """The base with more axes in front."""
        inner = self.base.type
        return Type(self.exponents + inner.shape, inner.element)

    @property
    def innermost(self) -> Domain:
        return self.base.innermost

    @property
    def size(self) -> int | None:
        """Size of the base to the number of places, None if infinite or beyond 2^4096."""
        inner, places = self.base.size, prod(self.exponents)
        if inner is None or places * inner.bit_length() > 4096:
            return inner if inner == 1 else None
        return int(inner**places)

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        return self.base.bounds

    def contains(self, value: Any) -> bool:
        """Whether every place holds a value of the base."""
        if not isinstance(value, np.ndarray | list | tuple) or len(value) != self.exponents[0]:
            return False
        inner = Power(self.base, self.exponents[1:]) if len(self.exponents) > 1 else self.base
        return all(inner.contains(item) for item in value)

    def describe(self) -> str:
        inner = self.base.describe()
        if isinstance(self.base, IntegerRange | RankingOf | Power):
            inner = f"({inner})"
        power = str(self.exponents[0]) if len(self.exponents) == 1 else f"({', '.join(map(str, self.exponents))})"
        return f"{inner}^{power}"

    def _elements(self) -> Iterator[Any]:
        inner = Power(self.base, self.exponents[1:]) if len(self.exponents) > 1 else self.base
        return itertools.product(tuple(inner.elements()), repeat=self.exponents[0])


def is_numeric(domain: Domain) -> bool:
    """Whether its values are numbers or arrays of numbers."""
    return isinstance(domain.type.element, Numbers)


def in_steps(column: str, domain: Domain) -> str:
    """What to write where a column of numbers has to be counted: a hundred steps between its ends."""
    low, high = (Fraction(end or 0) for end in domain.bounds)
    return f"declare {column} in steps, as in {column} in grid({show(low)}, {show(high)}, {show((high - low) / 100)})"
