"""Types of values: a shape and what stands at each place."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from privspec.model.domains import Domain, PartialRankingOf, RankingOf, Table

Symbol: TypeAlias = str | Fraction
"""A member of a finite set: a word or an exact number."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Real numbers."""

    @property
    def noun(self) -> str:
        """The word for one of them."""
        return "number"


@dataclass(frozen=True, slots=True)
class Symbols:
    """Words without arithmetic; None when the set is not known."""

    items: tuple[Symbol, ...] | None = None

    @property
    def noun(self) -> str:
        """The word for one of them."""
        return "word"


@dataclass(frozen=True, slots=True)
class Rankings:
    """Orders of alternatives, of all or of some of them."""

    of: RankingOf | PartialRankingOf

    @property
    def noun(self) -> str:
        """The word for one of them."""
        return "ranking"


@dataclass(frozen=True, slots=True)
class Tables:
    """Tables of records; evaluated through their cell counts."""

    table: Table

    @property
    def noun(self) -> str:
        """The word for one of them."""
        return "table"


@dataclass(frozen=True, slots=True)
class Laws:
    """Probability laws over a domain."""

    over: Domain | None = None

    @property
    def noun(self) -> str:
        """The word for one of them."""
        return "law"


@dataclass(frozen=True, slots=True)
class Sets:
    """Finite sets of words or numbers."""

    items: tuple[Symbol, ...] | None = None

    @property
    def noun(self) -> str:
        """The word for one of them."""
        return "set"


@dataclass(frozen=True, slots=True)
class Texts:
    """Quoted strings."""

    @property
    def noun(self) -> str:
        """The word for one of them."""
        return "text"


@dataclass(frozen=True, slots=True)
class Anything:
    """Not known (after an error, or not yet inferred): fits everything, so that one mistake is told once."""

    @property
    def noun(self) -> str:
        """The word for one of them."""
        return "value"


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
        """Number of entries."""
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
