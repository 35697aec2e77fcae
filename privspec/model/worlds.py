"""A finite spec as rows and columns: what the mechanism distinguishes of the secret, and what it may draw.

A row is a joint value of the nodes `of`. Three ways, the first that applies:
- computed values that have a data model of their own (`count ~ uniform`): the mechanism sees these values only;
- inputs, where an input `D^n` whose order nothing looks at is held as counts of its values (averaging a mechanism over
  all orders keeps every requirement and the loss, so nothing is lost);
- computed values, where there are too many inputs to list.

The law of the rows comes from the data models of the inputs or of the computed values. A requirement compares the rows
of worlds that differ in one unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, combinations, product
from math import prod
from operator import eq, ge, le
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.core.rounding import root
from privspec.kernel.measures import PURE
from privspec.language import syntax
from privspec.language.walk import every, names_used, reached
from privspec.model.domains import Table
from privspec.model.graph import Model
from privspec.model.joint_laws import input_law, laws_given, modelled, parents, partners, world_law
from privspec.model.measures import Personalised
from privspec.model.neighbours import (
    ByNeighbour,
    GivenTheModel,
    Indices,
    NeighbourRelation,
    ReplacingEverything,
    ReplacingOneOf,
    ReplacingVoter,
)
from privspec.model.pointwise import Pointwise
from privspec.model.priors import Law, fits, joint_law, law_of, short
from privspec.model.reports import Failure
from privspec.model.requirements import DataModel, Requirement, takes_distance
from privspec.model.spaces import Counted, Listed, Space, as_value, finite, key, label, looked_at, space_of, values_of
from privspec.model.targets import environment
from privspec.model.values import Symbol, Value

HOLDS = {"=": eq, "<=": le, ">=": ge}
NOWHERE = -1
"""The row of a world that does not exist."""
PAIR_LIMIT = 2**22
"""Pairs of neighbours of one requirement."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The rows that a requirement compares: every two of a clique, and the pairs `joined` (K, 3) as a < b and a level.

    `squares` are the squared distances of the levels, exactly; none where the line takes no distance. Both ways count.
    Where a line counts on the model it compares `laws` of rows in place of rows.
    """

    rows: int
    cliques: tuple[tuple[int, ...], ...]
    joined: NDArray[np.intp]
    squares: tuple[Fraction, ...] = ()
    laws: tuple[Law, ...] = ()

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
        if isinstance(requirement.neighbours, GivenTheModel):
            laws, alike = laws_given(self.model, self.spaces, self.world_rows, requirement)
            return Neighbours(len(laws), alike, np.zeros((0, 3), dtype=np.intp), laws=laws)
        if takes_distance(requirement):
            return self._measured(requirement, count)
        if isinstance(requirement.measure, Personalised):
            return self._personal(requirement, requirement.measure, count)
        whole, joined = set[tuple[int, ...]](), set[tuple[int, ...]]()
        for all_at_once, worlds in self._alike(requirement):
            found = self._rows_of(worlds)
            if all_at_once:
                whole |= found
            else:
                self._few(max(map(len, found), default=0) ** 2, requirement)
                joined.update(pair for clique in found for pair in combinations(clique, 2))
        cliques = tuple(sorted(whole))
        self._few(sum(len(clique) ** 2 for clique in cliques), requirement)
        inside = {pair for clique in cliques for pair in combinations(clique, 2)}
        joined -= inside
        if 2 * (len(joined) + len(inside)) == count * (count - 1) > 0:
            cliques, joined = (tuple(range(count)),), set()
        return Neighbours(count, cliques, np.array([(*p, 0) for p in sorted(joined)], dtype=np.intp).reshape(-1, 3))

    def _personal(self, requirement: Requirement, measure: Personalised, count: int) -> Neighbours:
        """Pairs of rows by whose data differ: the square of a person's epsilon in units of the least one.

        Raises: Failure PS0501 for figures beside epsilon, PS0516 if the number of people changes.
        """
        relation = requirement.neighbours
        if set(measure.amounts) != {"epsilon"} or not isinstance(relation, ReplacingVoter):
            text = f"solve takes an epsilon for each {measure.party} in tables, and no other figure"
            hint = f"as in O is epsilon[{measure.party}]-{PURE.word} wrt x"
            raise Failure("PS0501", requirement.span, text, help=hint)
        if relation.adding or relation.group > 1:
            raise Failure("PS0516", requirement.span, "tables take people with a figure of their own one at a time")
        least = measure.amounts["epsilon"]
        shares = [one.amounts["epsilon"] / least for one in measure.each]
        known, found = sorted(set(shares)), dict[tuple[int, ...], int]()
        for person, share in enumerate(shares):
            own = {i: self.spaces[i].of_units(relation, (person,)) for i in self._named(requirement)}
            for rows in self._rows_of(self._worlds(own)):
                for pair in combinations(rows, 2):
                    found[pair] = min(found.get(pair, len(known)), known.index(share))
        self._few(len(found), requirement)
        triples = np.array([(*pair, level) for pair, level in sorted(found.items())], dtype=np.intp).reshape(-1, 3)
        return Neighbours(count, (), triples, tuple(share**2 for share in known))

    def _measured(self, requirement: Requirement, count: int) -> Neighbours:
        """Pairs of rows with the least distance of two of their worlds."""
        place = {s.node.name: i for i, s in enumerate(self.spaces)}
        named = [name for name in requirement.wrt if name in place]
        from privspec.model.distances import distances

        apart = distances(self.model, requirement, {name: tuple(self.spaces[place[name]].values) for name in named})
        sizes = [s.size for s in self.spaces]
        values = np.unravel_index(np.arange(prod(sizes)), sizes)
        number = np.zeros(prod(sizes), dtype=np.intp)
        for name in named:
            number = number * sizes[place[name]] + values[place[name]]
        a, b = self._world_pairs(requirement)
        rows = np.asarray(self.world_rows, dtype=np.intp)
        kinds, squares = apart.levels(number[a], number[b])
        low, high = np.minimum(rows[a], rows[b]), np.maximum(rows[a], rows[b])
        order = np.lexsort((kinds, high, low))
        found = np.stack([low, high, kinds], axis=1)[order]
        first = np.any(np.diff(found[:, :2], axis=0, prepend=-1) != 0, axis=1)
        return Neighbours(count, (), found[first], tuple(squares))

    def _world_pairs(self, requirement: Requirement) -> tuple[Indices, Indices]:
        """Pairs of neighbouring worlds in different rows."""
        rows, pairs = np.asarray(self.world_rows, dtype=np.intp), 0
        found = [(np.zeros(0, dtype=np.intp),) * 2]
        for all_at_once, worlds in self._alike(requirement):
            sets, size = worlds.shape
            pairs += all_at_once * sets * size**2
            self._few(max(pairs, size**2), requirement)
            one, other = np.triu_indices(size, 1)
            a, b = worlds[:, one].ravel(), worlds[:, other].ravel()
            apart = (rows[a] != rows[b]) & (rows[a] != NOWHERE) & (rows[b] != NOWHERE)
            found.append((a[apart], b[apart]))
        first, second = zip(*found, strict=True)
        return np.concatenate(first), np.concatenate(second)

    @staticmethod
    def _few(pairs: int, requirement: Requirement) -> None:
        if pairs > PAIR_LIMIT:
            message = f"this line compares more than {PAIR_LIMIT:,} pairs of values"
            hint = "use fewer values or coarser ones, or let the loss look at fewer of them"
            raise Failure("PS0515", requirement.span, message, help=hint)

    def _named(self, requirement: Requirement) -> list[int]:
        return [i for i, s in enumerate(self.spaces) if s.node.name in requirement.wrt]

    def _rows_of(self, worlds: Indices) -> set[tuple[int, ...]]:
        """The rows that sets of worlds lead to, where these are several."""
        rows = np.asarray(self.world_rows, dtype=np.intp)[worlds]
        found = {tuple(sorted({*some} - {NOWHERE})) for some in rows.tolist()}
        return {some for some in found if len(some) > 1}

    def _relations(self, requirement: Requirement) -> Iterator[tuple[NeighbourRelation, list[int]]]:
        """The relations of a line, each with the inputs that it moves at once."""
        relation, named = requirement.neighbours, self._named(requirement)
        parts = relation.joined if isinstance(relation, ReplacingOneOf) else ((relation, requirement.wrt),)
        for own, names in parts:
            places = [i for i in named if self.spaces[i].node.name in names]
            together = isinstance(own, ReplacingEverything | ReplacingVoter) or own.group > 1
            yield from [(own, places)] if together and places else [(own, [i]) for i in places]

    def _alike(self, requirement: Requirement) -> Iterator[tuple[bool, Indices]]:
        """Arrays of worlds (K, s), every two in a row of which are neighbours; together they are all that there are.

        With each whether a unit is all of some inputs, or all of a person in several: such sets are compared as sets.
        """
        if requirement.neighbours.adding:
            raise Failure("PS0516", requirement.span, "tables are for a fixed number of records")
        for relation, places in self._relations(requirement):
            held = [self.spaces[i] for i in places]
            if isinstance(relation, ByNeighbour):
                for i, space in zip(places, held, strict=True):
                    one = space.alike(relation.inner, 1)
                    yield from ((False, self._worlds({i: one[:, edge]})) for edge in map(list, relation.edges))
                continue
            if isinstance(relation, ReplacingEverything):
                yield True, self._worlds({i: space.alike(relation, 1) for i, space in zip(places, held, strict=True)})
            elif isinstance(relation, ReplacingVoter) and len(places) > 1:
                people = self.model.parties[relation.party].size
                for chosen in combinations(range(people), min(relation.group, people)):
                    own = {i: space.of_units(relation, chosen) for i, space in zip(places, held, strict=True)}
                    yield True, self._worlds(own)
            else:
                for shares in _shares(relation.group, len(places)):
                    # a group may lie in several inputs: so many of its units in each
                    moved = [space.alike(relation, units) for space, units in zip(held, shares, strict=True)]
                    yield False, self._worlds(dict(zip(places, moved, strict=True)))

    def _worlds(self, moved: Mapping[int, Indices]) -> Indices:
        """Sets of worlds (K, s) that agree but in some inputs, whose values are those of one of their sets."""
        found = np.zeros((1, 1), dtype=np.intp)
        for i, space in enumerate(self.spaces):
            own = moved[i] if i in moved else np.arange(space.size)[:, None]
            found = (found[:, None, :, None] * space.size + own[None, :, None, :]).reshape(len(found) * len(own), -1)
        return found


def _shares(group: int, inputs: int) -> Iterator[tuple[int, ...]]:
    """Every way to divide a group of units among some inputs."""
    if inputs == 1:
        yield (group,)
        return
    for first in range(group + 1):
        yield from ((first, *others) for others in _shares(group - first, inputs - 1))


def inputs_compared(model: Model, requirement: Requirement) -> int:
    """How many joint values the inputs of a line take, of one person where they are indexed: |X| of per-atom-LDP."""
    return prod(model.nodes[name].value_count or 1 for name in requirement.wrt)


def row_law(
    model: Model,
    of: tuple[str, ...],
    spaces: tuple[Space, ...],
    rows: tuple[tuple[Value, ...], ...],
    world_rows: tuple[int, ...],
) -> Law | None:
    """The law of the rows: of computed values that have one of their own, else pushed forward from the inputs."""
    known = {name: m for m in model.models for name in m.subjects}
    public = environment(model)
    inputs = tuple(s.node.name for s in spaces)
    own = [name for name in of if name in known and name not in inputs]
    if own:
        if len(of) != 1:
            raise Failure("PS0514", known[own[0]].span, f"{own[0]} has a law, but the loss looks at other values too")
        return law_of(known[own[0]], [row[0] for row in rows], public)
    if any(name not in modelled(model) for name in inputs):
        return None
    masses = world_law(model, spaces)
    if masses is None:
        return None
    total = [Fraction(0)] * len(rows)
    for row, mass in zip(world_rows, masses, strict=True):
        if row != NOWHERE:
            total[row] += mass
    place = known[inputs[0]].span if inputs and inputs[0] in known else model.spec.span
    whole = sum(total, Fraction(0))
    if not whole:
        raise Failure("PS0406", place, "the laws of the data give no probability to data of which all facts are true")
    return short(tuple(mass / whole for mass in total), place)


def _check_law(model: Model, data: DataModel) -> None:
    """Compute a law that can be listed: of a column, of one person's data, or of the inputs of a finite spec.

    There may be a million people. A law of all that they hold together, such as an empirical one, is left to solve.
    Raises: as `priors.law_of`.
    """
    public = environment(model)
    if parents(model, data):
        inputs = _inputs_behind(model, data.subjects)
        spaces = [space_of(model, model.nodes[name]) for name in inputs]
        if set(inputs) <= modelled(model) and prod(space.size for space in spaces) <= LAWS_CHECKED:
            world_law(model, spaces)
        return
    fits(data, public)
    table, _, column = data.subject.partition(".")
    nodes = [model.nodes[name] for name in data.subjects if name in model.nodes]
    held = model.nodes[table].domain if table in model.nodes and not nodes else None
    domain = dict(held.attributes).get(column) if isinstance(held, Table) else None
    if nodes and (not finite(model) or any(node.kind is not syntax.VariableKind.INPUT for node in nodes)):
        return
    if len(nodes) == 1 and nodes[0].index is not None and data.distribution != "empirical":
        domain = nodes[0].domain
    if domain is not None and 0 < (domain.size or 0) <= LAWS_CHECKED:
        law_of(data, tuple(as_value(e) for e in domain.elements()), public)
    spaces = [space_of(model, node) for node in nodes if node.index is None]
    if spaces and 0 < prod(space.size for space in spaces) <= LAWS_CHECKED:
        _ = joint_law(data, [s.values for s in spaces], public) if data.joint else input_law(spaces[0], data, public)


LAWS_CHECKED = 2**12
"""Laws of up to so many values are computed when a spec is checked."""


def wrong_laws(model: Model) -> Iterator[Failure]:
    """What is wrong with data models, as far as they can be listed; that a law is not exact is left to solve."""
    for data in model.models:
        try:
            _check_law(model, data)
        except Failure as failure:
            if failure.code not in ("PS0261", "PS0514"):
                yield failure


__all__ = [
    "Counted",
    "Listed",
    "Neighbours",
    "Worlds",
    "as_value",
    "finite",
    "inputs_compared",
    "key",
    "label",
    "looked_at",
    "space_of",
    "worlds",
]

ROW_LIMIT = 1024
"""Inputs that are listed one by one: up to so many joint values."""
WORLD_LIMIT = 2**16
"""Joint values of the inputs that are listed to find what computed values they lead to."""
ROUNDING = ("floor", "ceil")
"""Functions that take numbers to whole ones."""
TABLE_LIMIT = 2**22
"""Entries of the largest table."""


@dataclass(frozen=True, eq=False)
class Worlds:
    """Rows, columns and the law of the rows.

    `of` picks the row; `rows[r]` holds the values of these nodes (of one member of the class where counts are held),
    `labels[r]` what plans write. `prior` is None where the data have no model.
    """

    model: Model
    of: tuple[str, ...]
    spaces: tuple[Space, ...]
    rows: tuple[tuple[Value, ...], ...]
    labels: tuple[Any, ...]
    releases: tuple[str, ...]
    columns: tuple[tuple[Value, ...], ...]
    world_rows: tuple[int, ...]
    prior: Law | None

    @property
    def computed(self) -> bool:
        """Whether rows are computed values and not inputs."""
        return tuple(s.node.name for s in self.spaces) != self.of

    @property
    def counted(self) -> tuple[str, ...]:
        """Inputs that are held as counts."""
        return tuple(s.node.name for s in self.spaces if isinstance(s, Counted)) if not self.computed else ()

    @cached_property
    def column_labels(self) -> tuple[Any, ...]:
        """The outputs as plans write them."""
        return tuple(_joint([label(v) for v in column]) for column in self.columns)

    def pointwise(
        self, fixed: Mapping[str, Fraction] | None = None, laws: Mapping[str, Mapping[Symbol, Fraction]] | None = None
    ) -> Pointwise:
        """Evaluates expressions at every pair of a row and a column."""
        return Pointwise(
            self.model,
            {name: [row[i] for row in self.rows] for i, name in enumerate(self.of)},
            {name: [column[i] for column in self.columns] for i, name in enumerate(self.releases)},
            fixed or {},
            laws or {},
        )

    def neighbours(self, requirement: Requirement) -> Neighbours:
        """The rows that a requirement compares, with their distances where it takes one.

        Raises: Failure PS0515 if there are too many, PS0516 if the number of records changes.
        """
        return Adjacency(self.model, self.spaces, self.world_rows).neighbours(requirement)


def _joint(labels: list[Any]) -> Any:
    return labels[0] if len(labels) == 1 else labels


def worlds(model: Model) -> Worlds:
    """Rows and columns of a finite spec.

    Raises: Failure PS0515 if there are too many, PS0514 and others for data models without an exact law, PS0511 if
    nothing looks at the data.
    """
    seen = looked_at(model)
    hidden = [name for line in model.requirements if isinstance(line.neighbours, GivenTheModel) for name in line.wrt]
    known = {name for m in model.models for name in m.subjects}
    stated = [name for one in model.facts for name in names_used(one.relation)]
    inputs = _inputs_behind(model, (*seen, *hidden, *stated))
    if not inputs:
        message = "no line looks at the data, so that the best answer is the same whatever they are"
        raise Failure("PS0511", model.loss_span, message, help="compare an output with an input, as in E[ (z - x)^2 ]")
    spaces = tuple(space_of(model, model.nodes[name]) for name in inputs)
    size = prod(s.size for s in spaces)
    own_model = any(name in known and name not in inputs for name in seen)
    if size > WORLD_LIMIT:
        big = max(spaces, key=lambda s: s.size)
        message = f"the inputs take {size:,} values together; tables are found for up to {WORLD_LIMIT:,}"
        hint = "use fewer values or coarser ones; functions such as sum, that do not look at the order, need fewer"
        calls = (call for expr in model.expressions for call in every(expr, syntax.Call))
        if any(call.function in ROUNDING for call in calls) and len(model.outputs) == 1:
            hint = (
                f"leave rounding to whoever has the result, where it is free: write `output {model.outputs[0].name}`, "
            )
            hint += "without a domain, and compare it with what is not rounded, so that noise is added to that"
        raise Failure("PS0515", big.node.span, message, label=f"{big.size:,} values", help=hint)
    base = tuple(product(*(s.values for s in spaces)))
    exist = _exist(model, inputs, base)
    if own_model or size > ROW_LIMIT:
        of, rows, world_rows = _computed_rows(model, seen, inputs, base, exist)
        labels = tuple(_joint([label(v) for v in row]) for row in rows)
    else:
        of, rows = inputs, tuple(world for world, there in zip(base, exist, strict=True) if there)
        world_rows = tuple(n - 1 if there else NOWHERE for n, there in zip(accumulate(exist), exist, strict=True))
        listed = product(*(s.labels for s in spaces))
        labels = tuple(_joint(list(parts)) for parts, there in zip(listed, exist, strict=True) if there)
    columns = _columns(model, len(rows))
    prior = row_law(model, of, spaces, rows, world_rows)
    return Worlds(model, of, spaces, rows, labels, tuple(o.name for o in model.outputs), columns, world_rows, prior)


def _inputs_behind(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    """Inputs that these names are computed from, and those that share a joint law with one of them.

    The best mechanism may look at what tells something of a value. Inputs that are independent of it tell nothing:
    averaging over them keeps the loss and every requirement.
    """
    others = partners(model)
    found = reached(names, lambda name: (*others.get(name, ()), *model.uses(name)))
    return tuple(node.name for node in model.inputs if node.name in found)


def _computed_rows(
    model: Model,
    names: tuple[str, ...],
    inputs: tuple[str, ...],
    base: tuple[tuple[Value, ...], ...],
    exist: Sequence[bool],
) -> tuple[tuple[str, ...], tuple[tuple[Value, ...], ...], tuple[int, ...]]:
    """Distinct joint values of computed nodes, in order, and the row of every world."""
    scene = Pointwise(model, {name: [world[i] for world in base] for i, name in enumerate(inputs)})
    grids = [scene.node(name, model.nodes[name].span) for name in names]
    found = [tuple(grid.value(w, 0) for grid in grids) for w in range(len(base))]
    keys = [tuple(key(v) for v in values) for values in found]
    order = sorted(dict.fromkeys(k for k, there in zip(keys, exist, strict=True) if there), key=_sortable)
    number = {k: i for i, k in enumerate(order)}
    first = dict(zip(reversed(keys), reversed(found), strict=True))
    world_rows = (number[k] if there else NOWHERE for k, there in zip(keys, exist, strict=True))
    return names, tuple(first[k] for k in order), tuple(world_rows)


def _exist(model: Model, inputs: tuple[str, ...], base: tuple[tuple[Value, ...], ...]) -> list[bool]:
    """Whether a world is one of those of which all facts are true.

    Raises: Failure PS0345 if none is.
    """
    scene = Pointwise(model, {name: [world[i] for world in base] for i, name in enumerate(inputs)})
    exist = [True] * len(base)
    for one in model.facts:
        sides = one.relation.left, one.relation.right
        gap = scene.of(syntax.Binary("-", *sides, span=one.relation.span)).spread(len(base), 1)
        true = [all(HOLDS[one.relation.op](entry, 0) for entry in np.ravel(row)) for row in gap]
        exist = [before and now for before, now in zip(exist, true, strict=True)]
    if not any(exist):
        text = "no data are such that all facts of this spec are true"
        raise Failure("PS0345", model.facts[-1].relation.span, text)
    return exist


def _sortable(item: Any) -> Any:
    """Numbers by size, words by letters, tuples by their parts."""
    if isinstance(item, tuple):
        return tuple(_sortable(part) for part in item)
    return (0, item, "") if isinstance(item, Fraction) else (1, Fraction(0), str(item))


def _columns(model: Model, rows: int) -> tuple[tuple[Value, ...], ...]:
    size = prod(output.value_count for output in model.outputs)
    if size * rows > TABLE_LIMIT:
        big = max(model.outputs, key=lambda output: output.value_count)
        raise Failure(
            "PS0515", big.span, f"the table would have {rows:,} rows and {size:,} columns", help="use coarser outputs"
        )
    return tuple(product(*[values_of(o.domain) for o in model.outputs if o.domain is not None]))
