"""Which rows of a table a requirement compares: sets of mutual neighbours, or single pairs with their distance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, singledispatchmethod
from itertools import combinations
from math import comb, prod

import numpy as np

from privspec.certify.finite.ratios import Indices
from privspec.certify.finite.worlds import Facet, Part, Rows, Worlds
from privspec.certify.motion import NotUnderstood
from privspec.certify.relations import COMBINATION_LIMIT, Unbounded, together
from privspec.model import neighbours as words
from privspec.model.domains import Power
from privspec.model.graph import Model
from privspec.model.requirements import Requirement

GROUP_ENTRIES = 2**25
"""Most entries of all sets of neighbouring worlds of one requirement."""


@dataclass(frozen=True, eq=False, slots=True)
class Move:
    """Sets (G, m) of worlds that one unit leads to one another; `unit`: whose it is, from 0, where that is told."""

    sets: Indices
    unit: int | None = None


@dataclass(frozen=True, eq=False)
class Neighbours:
    """For each unit (or for all, None) the sets of rows whose every two members are neighbours.

    Rows of one set may repeat; sets of one row are left out.
    """

    rows: int
    sets: Mapping[int | None, tuple[Indices, ...]]

    @property
    def cliques(self) -> Iterator[Indices]:
        """All sets, (G, m) at a time."""
        for found in self.sets.values():
            yield from found

    @cached_property
    def codes(self) -> Indices:
        """Every ordered pair of different neighbours a, b as a * rows + b, sorted."""
        found = [np.zeros(0, dtype=np.int64)]
        for groups in self.cliques:
            for group in groups:
                members = np.unique(group)
                found.append((members[:, None] * self.rows + members[None, :]).ravel())
            found = [np.unique(np.concatenate(found))]
        codes: Indices = found[0]
        different: Indices = codes[codes // self.rows != codes % self.rows]
        return different

    def partners(self, a: int) -> Indices:
        """The neighbours of one row."""
        low, high = np.searchsorted(self.codes, [a * self.rows, (a + 1) * self.rows])
        return self.codes[low:high] % self.rows

    def holds(self, a: Indices, b: Indices) -> bool:
        """Whether every a is a neighbour of its b."""
        asked = a * self.rows + b
        at = np.searchsorted(self.codes, asked)
        return len(asked) == 0 or (
            bool(len(self.codes)) and bool(np.all(self.codes[np.minimum(at, len(self.codes) - 1)] == asked))
        )

    def mutual(self, members: Indices) -> bool:
        """Whether every two of some rows are neighbours."""
        own = np.unique(members)
        a, b = (part.ravel() for part in np.meshgrid(own, own, indexing="ij"))
        return self.holds(a[a != b], b[a != b])


def neighbours(model: Model, rows: Rows, requirement: Requirement) -> Neighbours:
    """What a requirement compares.

    Raises: Unbounded, NotUnderstood.
    """
    known = {facet.part.name for facet in rows.worlds.facets}
    if any(name not in {block.name for block in model.blocks} for name in requirement.wrt):
        raise Unbounded("a guarantee is for something that is no input")
    wrt = tuple(name for name in requirement.wrt if name in known)
    found: dict[int | None, list[Indices]] = {}
    for move in Units(model, rows.worlds).moves(requirement.neighbours, wrt):
        sets = np.sort(rows.row_of[move.sets], axis=1)
        sets = np.unique(sets[sets[:, 0] != sets[:, -1]], axis=0)
        if len(sets):
            found.setdefault(move.unit, []).append(sets)
    return Neighbours(rows.size, {unit: tuple(sets) for unit, sets in found.items()})


# --- units ---------------------------------------------------------------------------------------------

Unit = list[tuple[str, range]]
"""Single values of some inputs, by their place in each."""


@dataclass(frozen=True, eq=False, slots=True)
class Units:
    """Reads neighbour relations over laid-out worlds."""

    model: Model
    worlds: Worlds

    @singledispatchmethod
    def moves(self, relation: words.NeighbourRelation, wrt: Sequence[str]) -> Iterator[Move]:
        """Sets of mutually neighbouring worlds that differ in the inputs named; all pairs stand in some set.

        Raises: Unbounded, NotUnderstood.
        """
        raise Unbounded(f"the relation {relation.describe()!r} is not understood")

    @moves.register
    def _(self, relation: words.ReplacingEverything, wrt: Sequence[str]) -> Iterator[Move]:
        if wrt:
            yield Move(self.worlds.agreeing_outside([axis for name in wrt for axis in self._axes(name)]))

    @moves.register
    def _(self, relation: words.ReplacingOneOf, wrt: Sequence[str]) -> Iterator[Move]:
        for own, names in together(relation, tuple(wrt)):
            yield from (Move(move.sets) for move in self.moves(own, names))

    @moves.register
    def _(self, relation: words.ReplacingEntry, wrt: Sequence[str]) -> Iterator[Move]:
        for name in wrt:
            yield from self._of(relation, [[(name, range(i, i + 1))] for i in range(self._part(name).atoms)])

    @moves.register
    def _(self, relation: words.ReplacingRecord, wrt: Sequence[str]) -> Iterator[Move]:
        for name in wrt:
            part, domain = self._part(name), self.model.block(name).domain
            length = prod(domain.shape[1:]) if isinstance(domain, Power) else prod(domain.shape)
            units: list[Unit] = [[(name, range(i, i + length))] for i in range(0, part.atoms, length)]
            people = self.model.parties[part.index].size if part.index is not None else 1
            whose = [place // (len(units) // people) for place in range(len(units))]
            yield from self._of(relation, units, whose if part.index is not None else None)

    @moves.register
    def _(self, relation: words.ReplacingVoter, wrt: Sequence[str]) -> Iterator[Move]:
        """All that one person holds, in all inputs named."""
        parts = [self._part(name) for name in wrt]
        if any(part.index != relation.party for part in parts):
            raise Unbounded(f"an input does not belong to one {relation.party}")
        people = range(self.model.parties[relation.party].size if parts else 0)
        own = {part.name: part.atoms // len(people) for part in parts}
        units: list[Unit] = [[(name, range(i * n, (i + 1) * n)) for name, n in own.items()] for i in people]
        yield from self._of(relation, units, list(people))

    def _part(self, name: str) -> Part:
        return self._facet(name).part

    def _facet(self, name: str) -> Facet:
        return self.worlds.facets[self.worlds.position(name)]

    def _axes(self, name: str) -> list[int]:
        start = self.worlds.first_axis(name)
        return list(range(start, start + len(self._facet(name).axes)))

    def _of(
        self, relation: words.NeighbourRelation, units: Sequence[Unit], whose: Sequence[int] | None = None
    ) -> Iterator[Move]:
        """Up to `group` of some units change; units of an input that is held as counts are its records."""
        group = min(relation.group, len(units))
        names = {name for unit in units for name, _ in unit}
        if not units:
            return
        if relation.adding:
            yield from self._absent(units, group)
        elif any(self._facet(name).counted for name in names):
            yield Move(self._counted(names, units, group))
        else:
            if (
                self.worlds.size * comb(len(units), group) > GROUP_ENTRIES
                or comb(len(units), group) > COMBINATION_LIMIT
            ):
                raise NotUnderstood("too many groups of units")
            for chosen in combinations(range(len(units)), group):
                axes = [self.worlds.first_axis(n) + i for u in chosen for n, places in units[u] for i in places]
                single = whose is not None and group == 1
                yield Move(self.worlds.agreeing_outside(axes), whose[chosen[0]] if whose and single else None)

    def _counted(self, names: set[str], units: Sequence[Unit], group: int) -> Indices:
        name = next(iter(names))
        histograms = self._facet(name).counted
        if len(names) > 1 or histograms is None or len(units) != histograms.records:
            raise NotUnderstood("units that are not the records of which counts are held")
        return self.worlds.moved_histograms(name, histograms.replaced(group))

    def _absent(self, units: Sequence[Unit], group: int) -> Iterator[Move]:
        """One unit is there or is not: it takes any value, or counts as 0."""
        if group > 1:
            raise NotUnderstood("adding or removing several units of a finite input")
        for unit in units:
            zero = 0
            axes: list[int] = []
            for name, places in unit:
                facet = self._facet(name)
                if facet.counted or Fraction(0) not in facet.part.items:
                    raise NotUnderstood(f"what an absent unit of {name} counts as")
                for place in places:
                    zero = zero * len(facet.part.items) + facet.part.items.index(Fraction(0))
                    axes.append(self.worlds.first_axis(name) + place)
            sets = self.worlds.agreeing_outside(axes)
            without = np.broadcast_to(sets[:, zero : zero + 1], sets.shape)
            yield Move(np.stack([sets.ravel(), without.ravel()], axis=1))
