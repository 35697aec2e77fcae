"""What is executed: one language of terms for every plan.

A term is a random function of the data. It says what is drawn and what is shown of it by which name; nothing in it is
about neighbours (`changes`), or about what is let through (`losses`). A term is `public` where all see its messages,
whatever outputs they see. Whatever has a form that no class here has is no
term, and is refused by whoever reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from flint import fmpq, fmpq_mat

from privspec.kernel.changes import Units
from privspec.kernel.core.numbers import rational
from privspec.kernel.core.reading import Refused
from privspec.kernel.laws.law import Choice, Law
from privspec.kernel.strategies.banded import Banded
from privspec.kernel.strategies.dense import Dense, Shared

NONE = Fraction(0)
Strategy = Banded
"""Strategies whose matrices are never written out."""


@dataclass(frozen=True, slots=True)
class Lattice:
    """The noisy answers are rounded to whole multiples of `grid`.

    `points`: what the number of each coordinate is a sum of whole multiples of; `shared`: cells of a table of which a
    record may lie in several, by its share of each.
    """

    grid: Fraction
    points: tuple[tuple[Fraction, ...], ...]
    shared: Shared

    def rounding(self, strategy: Dense, rows: list[int]) -> list[Fraction]:
        """The step of the lattice for each of these answers that may lie between its points, else 0."""
        scaled = (strategy.chosen(rows).matrix * rational(1 / self.grid)).tolist()
        each = [[rational(point) for point in points] for points in self.points]
        off = (any((v * p).q != 1 for v, own in zip(row, each, strict=True) if v for p in own) for row in scaled)
        return [self.grid if one else NONE for one in off]

    def together(self, strategy: Dense, change: Units) -> int:
        """Answers that are points of the lattice move by whole multiples of so many of its steps."""
        if not change.multiples:
            return 1
        each = [[rational(amount) for amount in own] for own in change.multiples]
        rows = (strategy.matrix * rational(1 / self.grid)).tolist()
        moved: list[fmpq] = [v * a for row in rows for v, own in zip(row, each, strict=True) if v for a in own]
        return 1 if any(one.q != 1 for one in moved) else gcd(*(int(one.p) for one in moved))


@dataclass(frozen=True, slots=True)
class Noise:
    """z = B u + noise of a law, on a lattice; every output is made of z alone.

    `shows`: for each output the rows of a matrix that is applied to z; None if it may show all of z. `mixed`: an output
    is rounded to the lattice, and z itself is not: then whoever sees it sees that mixture of z and nothing else of z.
    """

    strategy: Dense
    law: Law
    lattice: Lattice
    shows: tuple[tuple[str, fmpq_mat | None], ...]
    mixed: bool = False

    def __post_init__(self) -> None:
        widths = {matrix.ncols() for _, matrix in self.shows if matrix is not None}
        if self.lattice.grid <= 0 or self.law.answers not in (None, self.strategy.answers):
            raise Refused("has noise on no lattice, or for another number of answers")
        if len(self.lattice.points) != self.strategy.matrix.ncols() or not widths <= {self.strategy.answers}:
            raise Refused("has inputs, or outputs, that do not fit its answers")

    public = False

    @property
    def outputs(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.shows)


@dataclass(frozen=True, slots=True)
class Table:
    """Pr(column | row): numerators over `whole`; `places`: for each output which of its values each column shows."""

    rows: tuple[tuple[int, ...], ...]
    whole: int
    places: tuple[tuple[str, tuple[int, ...]], ...]

    def __post_init__(self) -> None:
        width = {len(row) for row in self.rows} | {len(shown) for _, shown in self.places}
        if len(width) != 1 or any(min(row) < 0 or sum(row) != self.whole for row in self.rows):
            raise Refused("has a row that is no law of its columns")

    public = False

    @property
    def outputs(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.places)


@dataclass(frozen=True, slots=True)
class Pick:
    """A member of a list, or what is shown of counts, drawn by a law; `public` where all see it."""

    output: str
    law: Choice
    public: bool = False

    @property
    def outputs(self) -> frozenset[str]:
        return frozenset({self.output})


@dataclass(frozen=True, slots=True)
class Structured:
    """Normal noise on the answers of a strategy with structure, in its own deviations; outputs are made of them."""

    strategy: Strategy
    outputs: frozenset[str]
    public = False


@dataclass(frozen=True, slots=True)
class Reports:
    """Nobody is trusted: each answer is a message, of what one of the owners of the coordinates holds, seen by all."""

    owners: tuple[str, ...]
    term: Noise

    public = True

    @property
    def outputs(self) -> frozenset[str]:
        return self.term.outputs


@dataclass(frozen=True, slots=True)
class Shares:
    """A secure sum: each of `parties` adds a share of the noise, and `colluding` of them pool what they know."""

    parties: int
    colluding: int
    term: Noise

    public = True

    @property
    def outputs(self) -> frozenset[str]:
        return self.term.outputs


@dataclass(frozen=True, slots=True)
class Times:
    """A term that is drawn `count` times, independently; or only if what is shown as `only_if` is not 0."""

    term: Term
    count: int
    only_if: str | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise Refused("is drawn less often than once")

    @property
    def public(self) -> bool:
        return self.term.public

    @property
    def outputs(self) -> frozenset[str]:
        return self.term.outputs


@dataclass(frozen=True, slots=True)
class Independent:
    """Parts that are drawn independently of each other, of what is held of the same people."""

    parts: tuple[Term, ...]

    def __post_init__(self) -> None:
        names = [name for part in self.parts for name in part.outputs]
        if len(set(names)) < len(names):
            raise Refused("names an output twice")

    @property
    def public(self) -> bool:
        return any(part.public for part in self.parts)

    @property
    def outputs(self) -> frozenset[str]:
        return frozenset(name for part in self.parts for name in part.outputs)


Term = Noise | Table | Pick | Structured | Reports | Shares | Times | Independent
