"""Which rows of a table a requirement compares: those of worlds that differ in one unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from math import prod
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass, replace
from privspec.core.rounding import root
from privspec.model.distances import distances, takes_distance
from privspec.model.domains import Power
from privspec.model.graph import Model
from privspec.model.measures import Personalised
from privspec.model.neighbours import NeighbourRelation, ReplacingEverything, ReplacingOneOf, ReplacingVoter
from privspec.model.reports import Failure
from privspec.model.requirements import Requirement
from privspec.model.spaces import Space

PAIR_LIMIT = 2**22
"""Pairs of neighbours of one requirement."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The rows that a requirement compares: every two of a clique, and the pairs `joined` (K, 3) as a < b and a level.

    `squares` are the squared distances of the levels, exactly; none where the line takes no distance. Both ways count.
    """

    rows: int
    cliques: tuple[tuple[int, ...], ...]
    joined: NDArray[np.intp]
    squares: tuple[Fraction, ...] = ()

    @cached_property
    def _ordered(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        levels = {(a, b): 0 for clique in self.cliques for a, b in combinations(clique, 2)}
        levels |= {(a, b): level for a, b, level in self.joined.tolist()}
        half = np.array([(a, b, level) for (a, b), level in levels.items()], dtype=np.intp).reshape(-1, 3)
        both = np.concatenate([half, half[:, [1, 0, 2]]])
        both = both[np.lexsort((both[:, 1], both[:, 0]))]
        return both[:, :2], both[:, 2]

    @property
    def pairs(self) -> NDArray[np.intp]:
        """Each ordered pair once, in order."""
        return self._ordered[0]

    @property
    def complete(self) -> bool:
        """Whether every two rows are compared."""
        return len(self.pairs) == self.rows * (self.rows - 1) and self.rows > 1

    @cached_property
    def distances(self) -> tuple[Fraction, ...] | None:
        """Of each pair, irrational ones rounded down; None where the line takes no distance."""
        roots = [root(square) for square in self.squares]
        return tuple(roots[level] for level in self._ordered[1]) if self.squares else None


@dataclass(frozen=True, eq=False, slots=True)
class Adjacency:
    """The worlds of some inputs, numbered row-major, and the row that each of them leads to."""

    model: Model
    spaces: Sequence[Space]
    world_rows: Sequence[int]

    def neighbours(self, requirement: Requirement) -> Neighbours:
        """The rows that a requirement compares, without those that are one row.

        With their distances where the line takes one: the least of two worlds that lead to the rows.
        Raises: Failure PS0515 if there are too many, PS0516 if the number of records changes.
        """
        count = max(self.world_rows, default=-1) + 1
        if takes_distance(requirement):
            return self._measured(requirement, count)
        if isinstance(requirement.measure, Personalised):
            return self._personal(requirement, requirement.measure, count)
        rows = self.world_rows
        found = {tuple(sorted({rows[w] for w in worlds})) for worlds in self._alike(requirement)}
        cliques = tuple(sorted(clique for clique in found if len(clique) > 1))
        self._few(sum(len(clique) ** 2 for clique in cliques), requirement)
        moved = {(rows[a], rows[b]) for a, b in self._moved(requirement) if rows[a] < rows[b]}
        moved |= {(rows[b], rows[a]) for a, b in self._moved(requirement) if rows[a] > rows[b]}
        moved -= {pair for clique in cliques for pair in combinations(clique, 2)}
        if 2 * len(moved.union(*(combinations(clique, 2) for clique in cliques))) == count * (count - 1) > 0:
            cliques, moved = (tuple(range(count)),), set()
        return Neighbours(count, cliques, np.array([(*p, 0) for p in sorted(moved)], dtype=np.intp).reshape(-1, 3))

    def _personal(self, requirement: Requirement, measure: Personalised, count: int) -> Neighbours:
        """Pairs of rows by whose data differ: the square of a person's epsilon in units of the least one.

        Raises: Failure PS0501 for figures beside epsilon, PS0516 if the number of people changes.
        """
        if set(measure.amounts) != {"epsilon"} or not isinstance(requirement.neighbours, ReplacingVoter):
            text = f"solve takes an epsilon for each {measure.party} in tables, and no other figure"
            raise Failure("PS0501", requirement.span, text, help=f"as in O is epsilon[{measure.party}]-DP wrt x")
        if requirement.neighbours.adding or requirement.neighbours.group > 1:
            raise Failure("PS0516", requirement.span, "tables take people with a figure of their own one at a time")
        least = measure.amounts["epsilon"]
        shares = [one.amounts["epsilon"] / least for one in measure.each]
        known, found = sorted(set(shares)), dict[tuple[int, int], int]()
        for person, share in enumerate(shares):
            parts = []
            for i in self._named(requirement):
                each = _size_of_one(self.spaces[i])
                parts.append((self._strides[i] * each ** (len(shares) - 1 - person), each))
            for worlds in self._agreeing(parts):
                rows = sorted({self.world_rows[w] for w in worlds})
                for pair in combinations(rows, 2):
                    found[pair] = min(found.get(pair, len(known)), known.index(share))
        self._few(len(found), requirement)
        triples = np.array([(*pair, level) for pair, level in sorted(found.items())], dtype=np.intp).reshape(-1, 3)
        return Neighbours(count, (), triples, tuple(share**2 for share in known))

    def _measured(self, requirement: Requirement, count: int) -> Neighbours:
        """Pairs of rows with the least distance of two of their worlds."""
        spaces = {s.node.name: s for s in self.spaces}
        named = [name for name in requirement.wrt if name in spaces]
        apart = distances(self.model, requirement, {name: tuple(spaces[name].values) for name in named})
        a, b = self._world_pairs(requirement)
        every_world = np.arange(prod(self._sizes))
        strides = dict(zip(spaces, self._strides, strict=True))
        number = np.zeros(len(every_world), dtype=np.intp)
        for name in named:
            number = number * spaces[name].size + every_world // strides[name] % spaces[name].size
        rows = np.asarray(self.world_rows, dtype=np.intp)
        kinds, squares = apart.levels(number[a], number[b])
        low, high = np.minimum(rows[a], rows[b]), np.maximum(rows[a], rows[b])
        order = np.lexsort((kinds, high, low))
        found = np.stack([low, high, kinds], axis=1)[order]
        first = np.any(np.diff(found[:, :2], axis=0, prepend=-1) != 0, axis=1)
        return Neighbours(count, (), found[first], tuple(squares))

    def _world_pairs(self, requirement: Requirement) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Ordered pairs of neighbouring worlds in different rows."""
        groups = [np.asarray(worlds, dtype=np.intp) for worlds in self._alike(requirement)]
        self._few(sum(len(worlds) ** 2 for worlds in groups), requirement)
        meshes = [np.meshgrid(worlds, worlds, indexing="ij") for worlds in groups]
        moved = np.array(list(self._moved(requirement)), dtype=np.intp).reshape(-1, 2)
        a = np.concatenate([*(one.ravel() for one, _ in meshes), moved[:, 0]])
        b = np.concatenate([*(other.ravel() for _, other in meshes), moved[:, 1]])
        rows = np.asarray(self.world_rows, dtype=np.intp)
        apart = rows[a] != rows[b]
        return a[apart], b[apart]

    @staticmethod
    def _few(pairs: int, requirement: Requirement) -> None:
        if pairs > PAIR_LIMIT:
            message = f"this line compares more than {PAIR_LIMIT:,} pairs of values"
            hint = "use fewer values or coarser ones, or let the loss look at fewer of them"
            raise Failure("PS0515", requirement.span, message, help=hint)

    @property
    def _sizes(self) -> list[int]:
        return [s.size for s in self.spaces]

    @property
    def _strides(self) -> list[int]:
        sizes = self._sizes
        return [prod(sizes[i + 1 :]) for i in range(len(sizes))]

    def _named(self, requirement: Requirement) -> list[int]:
        return [i for i, s in enumerate(self.spaces) if s.node.name in requirement.wrt]

    def _relations(self, requirement: Requirement) -> list[tuple[NeighbourRelation, list[int]]]:
        """The relations of a line, each with the inputs that it moves at once."""
        relation, named = requirement.neighbours, self._named(requirement)
        parts = relation.joined if isinstance(relation, ReplacingOneOf) else ((relation, requirement.wrt),)
        found: list[tuple[NeighbourRelation, list[int]]] = []
        for own, names in parts:
            places = [i for i in named if self.spaces[i].node.name in names]
            together = isinstance(own, ReplacingEverything | ReplacingVoter) or own.group > 1
            found += [(own, places)] if together else [(own, [i]) for i in places]
        return found

    def _alike(self, requirement: Requirement) -> Iterator[Sequence[int]]:
        """Sets of worlds of which every two are neighbours, where the relation has such."""
        if requirement.neighbours.adding:
            raise Failure("PS0516", requirement.span, "tables are for a fixed number of records")
        for relation, places in self._relations(requirement):
            parts: list[tuple[int, int]]
            if isinstance(relation, ReplacingEverything):
                parts = [(self._strides[i], self._sizes[i]) for i in places]
                yield from self._agreeing(parts)
            elif _one_voter_in_several(relation, places):
                people = self.model.parties[relation.party].size
                for chosen in combinations(range(people), min(relation.group, people)):
                    parts = []
                    for i in places:
                        each = _size_of_one(self.spaces[i])
                        parts += [(self._strides[i] * each ** (people - 1 - person), each) for person in chosen]
                    yield from self._agreeing(parts)

    def _agreeing(self, parts: Sequence[tuple[int, int]]) -> Iterator[Sequence[int]]:
        """Worlds that agree in all but some places, which have a stride and an extent each."""
        inside = [sum(place) for place in product(*(range(0, s * n, s) for s, n in parts))]
        rest = np.arange(prod(self._sizes))
        for stride, extent in parts:
            rest = rest[rest // stride % extent == 0]
        for base in rest.tolist():
            yield [base + offset for offset in inside]

    def _moved(self, requirement: Requirement) -> Iterator[tuple[int, int]]:
        """Ordered pairs of neighbouring worlds, for relations whose units lie in one input each."""
        sizes, strides = self._sizes, self._strides
        for relation, places in self._relations(requirement):
            if not places or isinstance(relation, ReplacingEverything) or _one_voter_in_several(relation, places):
                continue
            others = [range(1) if j in places else range(n) for j, n in enumerate(sizes)]
            rest = [sum(k * s for k, s in zip(place, strides, strict=True)) for place in product(*others)]
            for shares in _shares(relation.group, len(places)):
                # a group may lie in several inputs: so many of its units in each
                ways = [
                    [(v * strides[i], v * strides[i]) for v in range(sizes[i])]
                    + [(a * strides[i], b * strides[i]) for a, b in self._moves(i, relation, k)]
                    for i, k in zip(places, shares, strict=True)
                ]
                for moved in product(*ways):
                    a, b = (sum(side) for side in zip(*moved, strict=True))
                    yield from ((base + a, base + b) for base in rest if a != b)

    def _moves(self, place: int, relation: NeighbourRelation, units: int) -> Iterator[tuple[int, int]]:
        """Ordered pairs of values of one input of which one becomes the other when so many units change."""
        if units:
            yield from self.spaces[place].moves(replace(relation, group=units))


def _shares(group: int, inputs: int) -> Iterator[tuple[int, ...]]:
    """Every way to divide a group of units among some inputs."""
    if inputs == 1:
        yield (group,)
        return
    for first in range(group + 1):
        yield from ((first, *others) for others in _shares(group - first, inputs - 1))


def _one_voter_in_several(relation: NeighbourRelation, named: Sequence[int]) -> TypeGuard[ReplacingVoter]:
    """Whether all that one person holds in several inputs changes at once."""
    return isinstance(relation, ReplacingVoter) and len(named) > 1


def _size_of_one(space: Space) -> int:
    """How many values one person's part of an input has."""
    assert isinstance(space.domain, Power)
    return space.domain.base.size or 0


def inputs_compared(model: Model, requirement: Requirement) -> int:
    """How many joint values the inputs of a line take, of one person where they are indexed: |X| of per-atom-LDP."""
    domains = [model.nodes[name].domain for name in requirement.wrt]
    return prod((domain.size if domain is not None else None) or 1 for domain in domains)
