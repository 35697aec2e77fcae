"""What is executed: one language of terms for every plan.

A term is a random function of the data. It says what is drawn and what is shown of it by which name; nothing in it is
about neighbours (`changes`), or about what is let through (`losses`). A term is `public` where all see its messages,
whatever outputs they see. Whatever has a form that no class here has is no
term, and is refused by whoever reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from privspec.kernel.core.reading import Refused, frozen

if TYPE_CHECKING:
    from flint import fmpq, fmpq_mat

    from privspec.kernel.laws.law import Choice, Law, Strategy
    from privspec.kernel.laws.threshold import Threshold
    from privspec.kernel.strategies.dense import Dense, Lattice


@frozen
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
        # rounding lets nothing through of normal noise, whatever is rounded
        known = self.law.spherical or len(self.lattice.points) == self.strategy.matrix.ncols()
        if not known or not widths <= {self.strategy.answers}:
            raise Refused("has inputs, or outputs, that do not fit its answers")

    public = False

    @property
    def outputs(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.shows)

    def shown(self, seen: frozenset[str]) -> list[list[fmpq]] | None:
        """The rows that are applied to z to make outputs of it; None where these may show all of z."""
        rows: list[list[fmpq]] = []
        for matrix in (matrix for name, matrix in self.shows if name in seen):
            if matrix is None:
                return None
            rows += matrix.tolist()
        return rows

    def used(self, seen: frozenset[str]) -> list[int]:
        """The answers that outputs are made of: whoever sees the outputs sees no more than these."""
        rows = self.shown(seen)
        if rows is None:
            return list(range(self.strategy.answers))
        return sorted({r for row in rows for r, v in enumerate(row) if v})


@frozen
class Table:
    """Pr(column | row): numerators over `whole`; `places`: for each output which of its values each column shows."""

    rows: tuple[tuple[int, ...], ...]
    whole: int
    places: tuple[tuple[str, tuple[int, ...]], ...]

    def __post_init__(self) -> None:
        width = {len(row) for row in self.rows} | {len(shown) for _, shown in self.places}
        if len(width) != 1 or not self.places or any(min(row) < 0 or sum(row) != self.whole for row in self.rows):
            raise Refused("has a row that is no law of its columns: its chances do not add up to one")

    public = False

    def view(self, seen: Collection[str]) -> list[int]:
        """What whoever sees these outputs tells apart: a number for each column, from 0 on, the last output fastest."""
        shown = list(zip(*(places for name, places in self.places if name in seen), strict=True))
        number = {values: i for i, values in enumerate(sorted(set(shown)))}
        return [number[values] for values in shown] or [0] * len(self.places[0][1])

    def seen(self, view: Sequence[int]) -> list[list[int]]:
        """The numerators of what is seen: columns that look alike are one."""
        found = [[0] * (max(view) + 1) for _ in self.rows]
        for merged, row in zip(found, self.rows, strict=True):
            for place, numerator in zip(view, row, strict=True):
                merged[place] += numerator
        return found

    @property
    def outputs(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.places)


@frozen
class Pick:
    """A member of a list, drawn by a law; `public` where all see it."""

    output: str
    law: Choice
    public: bool = False

    @property
    def outputs(self) -> frozenset[str]:
        return frozenset({self.output})


@frozen
class Structured:
    """Noise of a law on the answers of a strategy with structure, of which outputs are made."""

    strategy: Strategy
    law: Law
    outputs: frozenset[str]
    public = False


@frozen
class Beside:
    """Noisy sums beside keys that are shown: of each of them, and of all others together.

    Given what is shown a record is in one of these sums, and spends `each`, of pure epsilon, at most.
    """

    outputs: tuple[str, ...]
    each: Fraction


@frozen
class Shown:
    """Of counts by keys that nobody has listed, the keys whose counts reach a threshold, drawn by a law for each."""

    output: str
    law: Threshold
    beside: tuple[Beside, ...] = ()
    public = False

    @property
    def outputs(self) -> frozenset[str]:
        return frozenset({self.output, *(name for one in self.beside for name in one.outputs)})


class OfTerm:
    """What has the outputs of another term."""

    __slots__ = ()
    term: Term

    @property
    def outputs(self) -> frozenset[str]:
        return self.term.outputs


@frozen
class Reports(OfTerm):
    """Nobody is trusted: each answer is a message, of what one of the owners of the coordinates holds, seen by all."""

    owners: tuple[str, ...]
    term: Noise

    public = True


@frozen
class Shares(OfTerm):
    """A secure sum: each of `parties` adds a share of the noise, and `colluding` of them pool what they know."""

    parties: int
    colluding: int
    term: Noise

    public = True


@frozen
class Times(OfTerm):
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


@frozen
class Chosen:
    """One of several terms of the same outputs is drawn, and the others are not: what was shown before says which."""

    cases: tuple[Term, ...]

    def __post_init__(self) -> None:
        if len({case.outputs for case in self.cases}) != 1:
            raise Refused("has cases that do not give the same outputs")

    @property
    def public(self) -> bool:
        return any(case.public for case in self.cases)

    @property
    def outputs(self) -> frozenset[str]:
        return self.cases[0].outputs


@frozen
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


Term = Noise | Table | Pick | Structured | Shown | Reports | Shares | Times | Chosen | Independent
