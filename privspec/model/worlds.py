"""A finite spec as rows and columns: what the mechanism distinguishes of the secret, and what it may draw.

A row is a joint value of the nodes `of`. Three ways, the first that applies:
- computed values that have a data model of their own (`count ~ uniform`): the mechanism sees these values only;
- inputs, where an input `D^n` whose order nothing looks at is held as counts of its values (averaging a mechanism over
  all orders keeps every requirement and the loss, so nothing is lost);
- computed values, where there are too many inputs to list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations, combinations_with_replacement, product
from math import comb, factorial, prod
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from privspec.language import syntax
from privspec.model.distances import distances, takes_distance
from privspec.model.domains import Domain, Power, Real
from privspec.model.evaluate import Environment
from privspec.model.graph import GraphNode, Model
from privspec.model.neighbours import (
    NeighbourRelation,
    ReplacingEntry,
    ReplacingEverything,
    ReplacingOneOf,
    ReplacingVoter,
)
from privspec.model.pointwise import Pointwise
from privspec.model.priors import Law, joint_law, law_of, short
from privspec.model.reports import Failure
from privspec.model.requirements import DataModel, Requirement
from privspec.model.targets import environment
from privspec.model.values import Symbol, Value, show
from privspec.model.walk import children, names_used

ROW_LIMIT = 1024
"""Inputs that are listed one by one: up to so many joint values."""
WORLD_LIMIT = 2**16
"""Joint values of the inputs that are listed to find what computed values they lead to."""
TABLE_LIMIT = 2**22
"""Entries of the largest table."""
PAIR_LIMIT = 2**22
"""Pairs of neighbours of one requirement."""


def is_finite(domain: Domain) -> bool:
    """Whether a domain has finitely many values, however many."""
    return is_finite(domain.base) if isinstance(domain, Power) else domain.size is not None


def finite(model: Model) -> bool:
    """Whether the spec asks for a table: every input and every output has a finite domain."""
    nodes = (*model.inputs, *model.outputs)
    free = all(node.definition is None for node in model.outputs)
    return bool(model.outputs) and free and all(n.domain is not None and is_finite(n.domain) for n in nodes)


def as_value(element: Any) -> Value:
    """An element of a domain as the evaluator has it: products of numbers or words become arrays."""
    if not isinstance(element, tuple):
        found: Value = element
        return found
    return _array(element)


def _array(items: Sequence[Any]) -> Value:
    parts = [_array(item) if isinstance(item, tuple) else item for item in items]
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if arrays:
        return np.stack(arrays)
    data = np.empty(len(parts), dtype=object)
    data[:] = parts
    return data


def label(value: Value) -> Any:
    """A value as plans write it: text, or a list of such."""
    if isinstance(value, np.ndarray):
        return [label(item) for item in value]
    return [show(item) for item in value] if isinstance(value, tuple) else show(value)


def key(value: Value) -> Any:
    """A value that can be looked up."""
    return tuple(key(item) for item in value) if isinstance(value, np.ndarray) else value


# --- one input ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Listed:
    """Every value of an input, one by one."""

    node: GraphNode
    domain: Domain

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """All values, in the order of the domain."""
        return tuple(as_value(element) for element in self.domain.elements())

    @property
    def size(self) -> int:
        """How many."""
        return self.domain.size or 0

    @property
    def labels(self) -> tuple[Any, ...]:
        """As plans write them."""
        return tuple(label(v) for v in self.values)

    def weights(self, law: Law) -> Law:
        """The law of these values, from that of all values."""
        return law

    @property
    def all_values(self) -> Iterator[Value]:
        """The values that laws are given for."""
        return iter(self.values)

    def moves(self, relation: NeighbourRelation) -> Iterator[tuple[int, int]]:
        """Ordered pairs of different values of which one becomes the other when up to `group` units are replaced."""
        parts = _factors(self.domain, self.node, relation)
        if parts is None or relation.group >= len(parts):
            yield from ((a, b) for a in range(self.size) for b in range(self.size) if a != b)
            return
        strides = [prod(parts[i + 1 :]) for i in range(len(parts))]
        for a in range(self.size):
            reached = {a}
            for _ in range(relation.group):
                reached |= {
                    b + (other - b // stride % extent) * stride
                    for b in tuple(reached)
                    for stride, extent in zip(strides, parts, strict=True)
                    for other in range(extent)
                }
            yield from ((a, b) for b in sorted(reached - {a}))


def _factors(domain: Domain, node: GraphNode, relation: NeighbourRelation) -> list[int] | None:
    """Sizes of the units that a relation replaces one at a time; None if it replaces the whole value."""
    if isinstance(relation, ReplacingEverything) or not isinstance(domain, Power):
        return None
    entries = isinstance(relation, ReplacingEntry)
    inner: Domain = domain.base
    extents = list(domain.exponents)
    if not entries and len(extents) > 1:
        inner, extents = Power(domain.base, tuple(extents[1:])), extents[:1]
    while entries and isinstance(inner, Power):
        extents += inner.exponents
        inner = inner.base
    if not entries and node.index is None and relation.unit_name not in ("record", "entry"):
        return None
    return [inner.size or 0] * prod(extents)


@dataclass(frozen=True, eq=False)
class Counted:
    """An input D^n whose order nothing looks at: how often each value of D stands in it."""

    node: GraphNode
    domain: Domain
    base: Domain
    records: int

    @cached_property
    def items(self) -> tuple[Value, ...]:
        """The values of one record."""
        return tuple(as_value(element) for element in self.base.elements())

    @cached_property
    def _chosen(self) -> tuple[tuple[int, ...], ...]:
        return tuple(combinations_with_replacement(range(len(self.items)), self.records))

    @cached_property
    def counts(self) -> tuple[tuple[int, ...], ...]:
        """Counts of the values of D, one tuple for each class."""
        found = [Counter(chosen) for chosen in self._chosen]
        return tuple(tuple(c[i] for i in range(len(self.items))) for c in found)

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """One input of each class."""
        return tuple(_array([self.items[i] for i in chosen]) for chosen in self._chosen)

    @property
    def size(self) -> int:
        """How many classes."""
        return comb(self.records + (self.base.size or 1) - 1, self.records)

    @property
    def labels(self) -> tuple[Any, ...]:
        """Counts, in the order of D."""
        return tuple([str(c) for c in counts] for counts in self.counts)

    @property
    def all_values(self) -> Iterator[Value]:
        """The values of one record, which laws are given for."""
        return iter(self.items)

    def weights(self, law: Law) -> Law:
        """Multinomial weights of the classes when records are independent with the law of one record."""
        return tuple(
            Fraction(factorial(self.records), prod(factorial(c) for c in counts))
            * prod((p**c for p, c in zip(law, counts, strict=True)), start=Fraction(1))
            for counts in self.counts
        )

    def moves(self, relation: NeighbourRelation) -> Iterator[tuple[int, int]]:
        """Ordered pairs of classes of which one becomes the other when up to `group` records are replaced."""
        at = {counts: i for i, counts in enumerate(self.counts)}
        reach = self.records if isinstance(relation, ReplacingEverything) else min(relation.group, self.records)
        for a, counts in enumerate(self.counts):
            reached = {counts}
            for _ in range(reach):
                reached |= {other for known in tuple(reached) for other in _replaced(known)}
                if len(reached) == self.size:
                    break
            yield from ((a, at[other]) for other in sorted(reached - {counts}, key=at.__getitem__))


def _replaced(counts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Counts after one record has taken another value."""
    for i, many in enumerate(counts):
        for j in range(len(counts)) if many else ():
            if i != j:
                moved = list(counts)
                moved[i] -= 1
                moved[j] += 1
                yield tuple(moved)


Space = Listed | Counted


# --- what the spec looks at -----------------------------------------------------------------------


def expressions(model: Model) -> Iterator[syntax.Node]:
    """Everything that the mechanism is judged by: loss, accuracy, conditions."""
    if model.loss is not None:
        yield model.loss
    for target in model.accuracy:
        yield target.target
    for constraint in model.constraints:
        yield constraint.relation


def looked_at(model: Model) -> tuple[str, ...]:
    """Secret values that these lines refer to, also by way of values computed from outputs, in graph order."""
    waiting = [name for expr in expressions(model) for name in names_used(expr)]
    for line in model.fairness:
        names = line.wrt if isinstance(line, Requirement) else (line.of, line.given)
        waiting += [name for name in names if name is not None]
    found: set[str] = set()
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        node = model.nodes.get(name)
        if node is None or name in seen:
            continue
        seen.add(name)
        if node.secret and not _drawn(model, name):
            found.add(name)
        elif node.definition is not None:
            waiting += names_used(node.definition)
    return tuple(name for name in model.order if name in found)


def _drawn(model: Model, name: str) -> bool:
    """Whether a value depends on an output or a choice."""
    kinds = (syntax.VariableKind.OUTPUT, syntax.VariableKind.CHOOSE)
    waiting, seen = [name], set()
    while waiting:
        current = waiting.pop()
        node = model.nodes.get(current)
        if node is None or current in seen:
            continue
        seen.add(current)
        if node.kind in kinds:
            return True
        if node.definition is not None:
            waiting += names_used(node.definition)
    return False


def _order_matters(model: Model, name: str) -> bool:
    """Whether anything looks at the order of the records of an input: anything but f(name) for symmetric f.

    Distances look at it, and so do joint laws and a line about all that one person holds in several inputs.
    """
    from privspec.model.library import library

    def inside(node: syntax.Node) -> bool:
        match node:
            case syntax.Name(id=found):
                return found == name
            case syntax.Call(function=function, arguments=(syntax.Name(id=found),)) if found == name:
                known = library().get(function)
                return known is None or not known.symmetric
        return any(inside(child) for child in children(node))

    definitions = [node.definition for node in model.nodes.values() if node.definition is not None]
    if any(getattr(line, "of", None) == name or getattr(line, "given", None) == name for line in model.fairness):
        return True
    if any(name in data.joint for data in model.models):
        return True
    for line in (*model.requirements, *model.fairness):
        if isinstance(line, Requirement) and name in line.wrt:
            joined = isinstance(line.neighbours, ReplacingVoter) and len(line.wrt) > 1
            if joined or takes_distance(line):
                return True
    return any(inside(expr) for expr in (*expressions(model), *definitions))


def space_of(model: Model, node: GraphNode) -> Space:
    """How the values of an input are held."""
    domain = node.domain
    assert domain is not None
    if node.index is not None:
        domain = Power(domain, (model.parties[node.index].size,))
    if isinstance(domain, Power) and not _order_matters(model, node.name):
        base = Power(domain.base, domain.exponents[1:]) if len(domain.exponents) > 1 else domain.base
        return Counted(node, domain, base, domain.exponents[0])
    return Listed(node, domain)


# --- the whole ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Pairs of rows (K, 2), each ordered pair once, that a requirement compares; `distances` for metric privacy."""

    pairs: NDArray[np.intp]
    complete: bool
    distances: tuple[Fraction, ...] | None = None


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
        self,
        fixed: Mapping[str, Fraction] | None = None,
        laws: Mapping[str, Mapping[Symbol, Fraction]] | None = None,
    ) -> Pointwise:
        """Evaluates expressions at every pair of a row and a column."""
        return Pointwise(
            self.model,
            {name: [row[i] for row in self.rows] for i, name in enumerate(self.of)},
            {name: [column[i] for column in self.columns] for i, name in enumerate(self.releases)},
            fixed or {},
            laws or {},
        )

    def view(self, outputs: Sequence[str]) -> NDArray[np.intp] | None:
        """What whoever sees these outputs tells apart: a number for each column; None if everything."""
        seen = [name for name in self.releases if name in outputs]
        if len(seen) == len(self.releases):
            return None
        sizes = [self.model.nodes[name].domain.size or 0 for name in self.releases]  # type: ignore[union-attr]
        places = np.unravel_index(np.arange(prod(sizes)), sizes)
        number = np.zeros(prod(sizes), dtype=np.intp)
        for name, extent, place in zip(self.releases, sizes, places, strict=True):
            if name in seen:
                number = number * extent + place
        return number

    def neighbours(self, requirement: Requirement) -> Neighbours:
        """The rows that a requirement compares, without those that are one row.

        With their distances where the line takes one: the least of two worlds that lead to the rows.
        Raises: Failure PS0515 if there are too many, PS0516 if the number of records changes.
        """
        count = len(self.rows)
        nearest = self._nearest(requirement) if takes_distance(requirement) else None
        found = sorted(self._row_pairs(requirement) if nearest is None else nearest)
        pairs = np.array(found, dtype=np.intp).reshape(-1, 2)
        complete = len(pairs) == count * (count - 1) and count > 1
        return Neighbours(pairs, complete, None if nearest is None else tuple(nearest[pair] for pair in found))

    def _row_pairs(self, requirement: Requirement) -> set[tuple[int, int]]:
        rows = self.world_rows
        found: set[tuple[int, int]] = set()
        for worlds in self._alike(requirement):
            members = sorted({rows[w] for w in worlds})
            found.update((a, b) for a in members for b in members if a != b)
            self._few(len(found), requirement)
        found.update((rows[a], rows[b]) for a, b in self._moved(requirement) if rows[a] != rows[b])
        return found

    def _nearest(self, requirement: Requirement) -> dict[tuple[int, int], Fraction]:
        """The least distance of two worlds of each pair of rows."""
        spaces = {s.node.name: s for s in self.spaces}
        named = [name for name in requirement.wrt if name in spaces]
        apart = distances(self.model, requirement, {name: tuple(spaces[name].values) for name in named})
        every_world = np.arange(prod(self._sizes))
        strides = dict(zip(spaces, self._strides, strict=True))
        number = np.zeros(len(every_world), dtype=np.intp)
        for name in named:
            number = number * spaces[name].size + every_world // strides[name] % spaces[name].size
        groups = [list(worlds) for worlds in self._alike(requirement)]
        self._few(sum(len(worlds) ** 2 for worlds in groups), requirement)
        every = chain(((a, b) for worlds in groups for a in worlds for b in worlds), self._moved(requirement))
        rows, at = self.world_rows, number.tolist()
        known: dict[tuple[int, int], Fraction] = {}
        found: dict[tuple[int, int], Fraction] = {}
        for a, b in every:
            if rows[a] == rows[b]:
                continue
            joint = (min(at[a], at[b]), max(at[a], at[b]))
            if joint not in known:
                known[joint] = apart.between(*joint)
            pair = rows[a], rows[b]
            if pair not in found or known[joint] < found[pair]:
                found[pair] = known[joint]
        return found

    @staticmethod
    def _few(pairs: int, requirement: Requirement) -> None:
        if pairs > PAIR_LIMIT:
            raise Failure(
                "PS0515",
                requirement.span,
                f"this line compares more than {PAIR_LIMIT:,} pairs of values",
                help="use fewer values or coarser ones, or let the loss look at fewer of them",
            )

    @property
    def _sizes(self) -> list[int]:
        return [s.size for s in self.spaces]

    @property
    def _strides(self) -> list[int]:
        sizes = self._sizes
        return [prod(sizes[i + 1 :]) for i in range(len(sizes))]

    def _named(self, requirement: Requirement) -> list[int]:
        return [i for i, s in enumerate(self.spaces) if s.node.name in requirement.wrt]

    def _alike(self, requirement: Requirement) -> Iterator[Sequence[int]]:
        """Sets of worlds of which every two are neighbours, where the relation has such."""
        relation, named = requirement.neighbours, self._named(requirement)
        if relation.adding:
            raise Failure("PS0516", requirement.span, "tables are for a fixed number of records")
        parts: list[tuple[int, int]]
        if isinstance(relation, ReplacingEverything):
            parts = [(self._strides[i], self._sizes[i]) for i in named]
            yield from self._agreeing(parts)
        elif _one_voter_in_several(relation, named):
            people = self.model.parties[relation.party].size
            for chosen in combinations(range(people), min(relation.group, people)):
                parts = []
                for i in named:
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
        """Ordered pairs of neighbouring worlds, for relations that change one input."""
        relation, named = requirement.neighbours, self._named(requirement)
        if isinstance(relation, ReplacingEverything) or _one_voter_in_several(relation, named):
            return
        sizes, strides = self._sizes, self._strides
        for i in named:
            space = self.spaces[i]
            own = relation.of(self.model.block(space.node.name)) if isinstance(relation, ReplacingOneOf) else relation
            others = [range(n) if j != i else range(1) for j, n in enumerate(sizes)]
            rest = [sum(k * s for k, s in zip(place, strides, strict=True)) for place in product(*others)]
            for a, b in space.moves(own):
                yield from ((base + a * strides[i], base + b * strides[i]) for base in rest)


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


def _joint(labels: list[Any]) -> Any:
    return labels[0] if len(labels) == 1 else labels


def worlds(model: Model) -> Worlds:
    """Rows and columns of a finite spec.

    Raises: Failure PS0515 if there are too many, PS0514 and others for data models without an exact law.
    """
    seen = looked_at(model)
    modelled = {name for m in model.models for name in m.subjects}
    inputs = _inputs_behind(model, seen)
    spaces = tuple(space_of(model, model.nodes[name]) for name in inputs)
    size = prod(s.size for s in spaces)
    own_model = any(name in modelled and name not in inputs for name in seen)
    if size > WORLD_LIMIT:
        big = max(spaces, key=lambda s: s.size)
        raise Failure(
            "PS0515",
            big.node.span,
            f"the inputs take {size:,} values together; tables are found for up to {WORLD_LIMIT:,}",
            label=f"{big.size:,} values",
            help="use fewer values or coarser ones; functions such as sum, that do not look at the order, need fewer",
        )
    base = tuple(product(*(s.values for s in spaces)))
    if own_model or size > ROW_LIMIT:
        of, rows, world_rows = _computed_rows(model, seen, inputs, base)
        labels = tuple(_joint([label(v) for v in row]) for row in rows)
    else:
        of, rows, world_rows = inputs, base, tuple(range(size))
        labels = tuple(_joint(list(parts)) for parts in product(*(s.labels for s in spaces)))
    columns = _columns(model, len(rows))
    prior = _prior(model, of, spaces, rows, world_rows)
    return Worlds(model, of, spaces, rows, labels, tuple(o.name for o in model.outputs), columns, world_rows, prior)


def _inputs_behind(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    """Inputs that these names are computed from, and those that share a joint law with one of them.

    The best mechanism may look at what tells something of a value. Inputs that are independent of it tell nothing:
    averaging over them keeps the loss and every requirement.
    """
    partners = {name: data.joint for data in model.models for name in data.joint}
    waiting, found = list(names), set()
    while waiting:
        name = waiting.pop()
        node = model.nodes.get(name)
        if node is None or name in found:
            continue
        found.add(name)
        waiting += partners.get(name, ())
        if node.definition is not None:
            waiting += names_used(node.definition)
    return tuple(node.name for node in model.inputs if node.name in found)


def _computed_rows(
    model: Model, names: tuple[str, ...], inputs: tuple[str, ...], base: tuple[tuple[Value, ...], ...]
) -> tuple[tuple[str, ...], tuple[tuple[Value, ...], ...], tuple[int, ...]]:
    """Distinct joint values of computed nodes, in order, and the row of every world."""
    scene = Pointwise(model, {name: [world[i] for world in base] for i, name in enumerate(inputs)})
    grids = [scene.node(name, model.nodes[name].span) for name in names]
    found = [tuple(grid.value(w, 0) for grid in grids) for w in range(len(base))]
    keys = [tuple(key(v) for v in values) for values in found]
    order = sorted(dict.fromkeys(keys), key=_sortable)
    number = {k: i for i, k in enumerate(order)}
    first = dict(zip(reversed(keys), reversed(found), strict=True))
    return names, tuple(first[k] for k in order), tuple(number[k] for k in keys)


def _sortable(item: Any) -> Any:
    """Numbers by size, words by letters, tuples by their parts."""
    if isinstance(item, tuple):
        return tuple(_sortable(part) for part in item)
    return (0, item, "") if isinstance(item, Fraction) else (1, Fraction(0), str(item))


def _columns(model: Model, rows: int) -> tuple[tuple[Value, ...], ...]:
    size = prod(o.domain.size or 0 for o in model.outputs if o.domain is not None)
    if size * rows > TABLE_LIMIT:
        big = max(model.outputs, key=lambda o: (o.domain.size or 0) if o.domain is not None else 0)
        raise Failure(
            "PS0515", big.span, f"the table would have {rows:,} rows and {size:,} columns", help="use coarser outputs"
        )
    each = [[as_value(e) for e in o.domain.elements()] for o in model.outputs if o.domain is not None]
    return tuple(product(*each))


def _prior(
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
    if any(name not in known for name in inputs):
        return None
    masses = world_law(model, spaces)
    total = [Fraction(0)] * len(rows)
    for row, mass in zip(world_rows, masses, strict=True):
        total[row] += mass
    return short(tuple(total), known[inputs[0]].span if inputs else model.spec.span)


def world_law(model: Model, spaces: Sequence[Space]) -> Sequence[Fraction]:
    """Probabilities of all joint values of inputs that have models: those without a common one are independent.

    Raises: as `priors.law_of`.
    """
    public = environment(model)
    sizes = [s.size for s in spaces]
    place = {s.node.name: i for i, s in enumerate(spaces)}
    masses = np.array([Fraction(1)] * prod(sizes), dtype=object).reshape(sizes)
    for data in model.models:
        named = [name for name in data.subjects if name in place]
        if not named:
            continue
        if data.joint:
            law = _common_law(model, data, [place.get(name) for name in data.subjects], spaces, public)
        else:
            law = np.array(_input_law(spaces[place[named[0]]], data, public), dtype=object)
        axes = [place[name] for name in named]
        ordered = law.transpose(np.argsort(axes))
        masses = masses * ordered.reshape([n if i in axes else 1 for i, n in enumerate(sizes)])
    found: list[Fraction] = masses.ravel().tolist()
    return found


def _common_law(
    model: Model, data: DataModel, places: Sequence[int | None], spaces: Sequence[Space], public: Environment
) -> NDArray[np.object_]:
    """A joint law as an array with an axis for each subject that is listed; the others are averaged over."""
    lists: list[Sequence[Value]] = []
    for name, at in zip(data.subjects, places, strict=True):
        space = Listed(model.nodes[name], model.nodes[name].domain or Real()) if at is None else spaces[at]
        if space.size > WORLD_LIMIT:
            raise Failure("PS0515", space.node.span, f"{name} has too many values for a joint law")
        lists.append(space.values)
    sizes = [len(values) for values in lists]
    if prod(sizes) > WORLD_LIMIT:
        raise Failure("PS0515", data.span, f"a joint law has up to {WORLD_LIMIT:,} values")
    law = np.array(joint_law(data, lists, public), dtype=object).reshape(sizes)
    found: NDArray[np.object_] = np.asarray(law.sum(axis=tuple(i for i, at in enumerate(places) if at is None)))
    return found


def _input_law(space: Space, model: DataModel, public: Environment) -> Law:
    """The law of an input's listed values; of one record where counts are held or the law is one of records."""
    if isinstance(space, Counted):
        return space.weights(law_of(model, tuple(space.all_values), public))
    try:
        return law_of(model, space.values, public)
    except Failure:
        if not isinstance(space.domain, Power):
            raise
        each = law_of(model, tuple(as_value(e) for e in space.domain.base.elements()), public)
        places = prod(space.domain.exponents)
        return tuple(prod(masses, start=Fraction(1)) for masses in product(each, repeat=places))


LAWS_CHECKED = 2**12
"""Laws of up to so many values are computed when a spec is checked."""


def wrong_laws(model: Model) -> Iterator[Failure]:
    """What is wrong with the data models of the inputs of a finite spec; that a law is not exact is left to solve."""
    if not finite(model):
        return
    for data in model.models:
        nodes = [model.nodes[name] for name in data.subjects]
        if any(node.kind is not syntax.VariableKind.INPUT for node in nodes):
            continue
        spaces = [space_of(model, node) for node in nodes]
        if prod(space.size for space in spaces) > LAWS_CHECKED:
            continue
        try:
            if data.joint:
                _common_law(model, data, range(len(spaces)), spaces, environment(model))
            else:
                _input_law(spaces[0], data, environment(model))
        except Failure as failure:
            if failure.code not in ("PS0261", "PS0514"):
                yield failure
