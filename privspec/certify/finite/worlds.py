"""The worlds of a finite spec laid out as one array, an axis for each single value of an input, and their rows.

An input that is held as counts (or whose order nothing looks at and that has too many values to list) has one axis
for all its histograms. Everything a requirement compares is then found by moving axes: worlds that agree outside some
axes are mutual neighbours. Written from the domains alone; nothing is taken from the model's own lists of worlds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, product
from math import comb, factorial, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.certify.finite.order import order_matters
from privspec.certify.finite.ratios import Indices
from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import Malformed
from privspec.language import syntax
from privspec.language.walk import names_used
from privspec.model.domains import Domain, Power
from privspec.model.graph import GraphNode, Model
from privspec.model.pointwise import Pointwise
from privspec.model.values import Value, show

LIST_LIMIT = 4096
"""Worlds that are listed one by one although histograms would do."""
WORLD_LIMIT = 2**18
"""Most worlds that are laid out."""
INPUT_LIMIT = 10
"""Most inputs that pick a row."""
ENTRY_LIMIT = 2**22
"""Most entries of a table."""


def written(value: Any) -> Any:
    """A value as plans write it: a text, or a tuple of such."""
    if isinstance(value, np.ndarray | tuple | list):
        return tuple(written(item) for item in value)
    return show(value)


def plain(value: Any) -> Any:
    """A value that can be compared and looked up."""
    if isinstance(value, np.ndarray | tuple | list):
        return tuple(plain(item) for item in value)
    return value


def rank(item: Any) -> Any:
    """Key of the order of computed values: numbers by size, before words by letters; lists part by part."""
    if isinstance(item, tuple):
        return tuple(rank(part) for part in item)
    return (0, item, "") if isinstance(item, Fraction) else (1, Fraction(0), str(item))


def boxed(flat: Sequence[Any], shape: tuple[int, ...]) -> Value:
    """Single values as one value of that shape."""
    if not shape:
        found: Value = flat[0]
        return found
    array: NDArray[np.object_] = np.empty(len(flat), dtype=object)
    for place, item in enumerate(flat):
        array[place] = item
    return array.reshape(shape)


@dataclass(frozen=True, eq=False)
class Part:
    """One input, or one output, as an array of single values of one domain.

    `extents`: lengths of the axes of the array, the index set and the outermost power first; `index`: whether there
    is an index set.
    """

    name: str
    extents: tuple[int, ...]
    items: tuple[Any, ...]
    index: str | None

    @property
    def atoms(self) -> int:
        """Single values in it."""
        return prod(self.extents)

    @property
    def count(self) -> int:
        """How many values it takes."""
        return int(len(self.items) ** self.atoms)

    @property
    def record_items(self) -> list[tuple[Any, ...]]:
        """The values of one record, a place of the outermost axis, as flat tuples."""
        return list(product(self.items, repeat=prod(self.extents[1:])))

    def values(self) -> Iterator[tuple[Any, ...]]:
        """All values as flat tuples; the last single value runs fastest."""
        return product(self.items, repeat=self.atoms)

    def boxed(self, flat: Sequence[Any]) -> Value:
        """A value in the shape of the variable."""
        return boxed(flat, self.extents)


def part_of(model: Model, node: GraphNode) -> Part:
    """An input or output by its single values.

    Raises: NotUnderstood if it has infinitely many.
    """
    domain, extents = node.domain, list[int]()
    if node.index is not None:
        extents.append(model.parties[node.index].size)
    while isinstance(domain, Power):
        extents.extend(domain.exponents)
        domain = domain.base
    if domain is None or not _listable(domain):
        raise NotUnderstood(f"{node.name} has no finite domain")
    return Part(node.name, tuple(extents), tuple(domain.elements()), node.index)


def _listable(domain: Domain) -> bool:
    return domain.size is not None and domain.size <= ENTRY_LIMIT


# --- axes ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Histograms:
    """Counts of the values of one record, for an input of so many records."""

    records: int
    kinds: int

    @cached_property
    def chosen(self) -> tuple[tuple[int, ...], ...]:
        """For each histogram the records in order of their value."""
        return tuple(combinations_with_replacement(range(self.kinds), self.records))

    @cached_property
    def counts(self) -> tuple[tuple[int, ...], ...]:
        """How often each value stands in it."""
        return tuple(tuple(np.bincount(c, minlength=self.kinds).tolist()) for c in self.chosen)

    @property
    def size(self) -> int:
        """How many histograms there are."""
        return comb(self.records + self.kinds - 1, self.records)

    def replaced(self, group: int) -> Indices:
        """Sets (G, m) of histograms that agree in all but `group` records."""
        group = min(group, self.records)
        number = {counts: i for i, counts in enumerate(self.counts)}
        rests = Histograms(self.records - group, self.kinds).counts
        added = Histograms(group, self.kinds).counts
        found = [[number[tuple(map(sum, zip(rest, more, strict=True)))] for more in added] for rest in rests]
        return np.array(found, dtype=np.int64)

    def ways(self) -> tuple[int, ...]:
        """How many orders of the records have each histogram."""
        return tuple(factorial(self.records) // prod(factorial(c) for c in counts) for counts in self.counts)


@dataclass(frozen=True, eq=False)
class Facet:
    """How the values of one input are laid out: an axis for each single value, or one axis of histograms."""

    part: Part
    counted: Histograms | None = None

    @cached_property
    def axes(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return (self.counted.size,) if self.counted else (len(self.part.items),) * self.part.atoms

    @property
    def size(self) -> int:
        """How many values are told apart."""
        return prod(self.axes)

    @cached_property
    def flat(self) -> tuple[tuple[Any, ...], ...]:
        """One flat value for each place of the axes."""
        if self.counted is None:
            return tuple(self.part.values())
        records = self.part.record_items
        return tuple(tuple(v for i in chosen for v in records[i]) for chosen in self.counted.chosen)

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """The same as values of the variable."""
        return tuple(self.part.boxed(flat) for flat in self.flat)

    def labels(self, *, as_counts: bool) -> tuple[Any, ...]:
        """As plans write them: the counts of an input that is told apart by its counts, else the values."""
        if as_counts and self.counted:
            return tuple(tuple(str(c) for c in counts) for counts in self.counted.counts)
        return tuple(written(value) for value in self.values)


@dataclass(frozen=True, eq=False)
class Worlds:
    """All joint values of some inputs: number the places of an array of shape `axes` row-major."""

    facets: tuple[Facet, ...]

    @cached_property
    def axes(self) -> tuple[int, ...]:
        """Lengths of all axes, in order of the inputs."""
        return tuple(length for facet in self.facets for length in facet.axes)

    @property
    def size(self) -> int:
        """How many worlds there are."""
        return prod(self.axes)

    def first_axis(self, name: str) -> int:
        """Where the axes of an input begin."""
        return sum(len(f.axes) for f in self.facets[: self.position(name)])

    def position(self, name: str) -> int:
        """The place of an input among the facets."""
        return next(i for i, facet in enumerate(self.facets) if facet.part.name == name)

    def agreeing_outside(self, axes: Sequence[int]) -> Indices:
        """Sets (G, m) of worlds that agree in all axes but these; members in row-major order of the axes."""
        return _joined(self.axes, axes)

    def moved_histograms(self, name: str, sets: Indices) -> Indices:
        """Sets (G, m) of worlds that agree in all inputs but one, whose histograms lie in one of the sets."""
        axis = self.first_axis(name)
        every = np.arange(self.size, dtype=np.int64).reshape(self.axes)
        return np.take(np.moveaxis(every, axis, -1), sets, axis=-1).reshape(-1, sets.shape[1])

    def places(self, name: str) -> Indices:
        """For each world the place of an input's value."""
        sizes = [facet.size for facet in self.facets]
        return np.unravel_index(np.arange(self.size), sizes)[self.position(name)].astype(np.int64)

    def values(self) -> dict[str, list[Value]]:
        """For each world the value of every input."""
        return {f.part.name: [f.values[i] for i in self.places(f.part.name)] for f in self.facets}


def _joined(shape: tuple[int, ...], axes: Sequence[int]) -> Indices:
    """Row-major numbers of the places of an array, one row for each place of the other axes."""
    # axes of one place are left out: numpy has room for 64 of them only
    kept = [i for i, length in enumerate(shape) if length > 1]
    every = np.arange(prod(shape), dtype=np.int64).reshape([shape[i] for i in kept])
    chosen = [kept.index(i) for i in axes if i in kept]
    last = np.moveaxis(every, chosen, range(every.ndim - len(chosen), every.ndim))
    return last.reshape(-1, prod(shape[i] for i in axes))


# --- from a spec and the nodes that pick the row -------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a table as this checker derives them.

    `values`: for each node of `of` its value in every row (of one member where counts are held); `row_of`: the row of
    every world.
    """

    of: tuple[str, ...]
    labels: tuple[Any, ...]
    values: Mapping[str, Sequence[Value]]
    worlds: Worlds
    row_of: Indices

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.labels)


def behind(model: Model, names: Sequence[str]) -> tuple[GraphNode, ...]:
    """Some nodes and all that they are computed from, in order of declaration.

    Raises: Malformed if one of them is an output or a choice.
    """
    waiting, seen = list(names), set[str]()
    while waiting:
        name = waiting.pop()
        node = model.nodes.get(name)
        if node is None or name in seen:
            continue
        seen.add(name)
        if node.kind in (syntax.VariableKind.OUTPUT, syntax.VariableKind.CHOOSE):
            raise Malformed(f"the rows of the table depend on {name}, which is no secret")
        if node.definition is not None:
            waiting.extend(names_used(node.definition))
    return tuple(node for node in model.nodes.values() if node.name in seen)


def derive_rows(model: Model, of: tuple[str, ...], stated: Sequence[Any]) -> Rows:
    """The rows that the nodes `of` pick; `stated` labels tell whether an input is told apart by its counts only.

    Raises: Malformed, NotUnderstood.
    """
    nodes = []
    for name in of:
        node = model.nodes.get(name)
        if node is None or not node.secret:
            raise Malformed(f"the table has a row for each value of {name}, which is no secret of the spec")
        nodes.append(node)
    if not of or len(set(of)) != len(of):
        raise Malformed("the plan does not say what picks the row, or says it twice")
    needed = behind(model, of)
    if all(node.kind is syntax.VariableKind.INPUT for node in nodes):
        return _input_rows(model, nodes, stated)
    return _computed_rows(model, of, needed)


def _counted(part: Part) -> Histograms | None:
    """The histograms of an input of several records."""
    if not part.extents or len(part.items) ** prod(part.extents[1:]) > LIST_LIMIT:
        return None
    return Histograms(part.extents[0], len(part.items) ** prod(part.extents[1:]))


def _input_rows(model: Model, nodes: Sequence[GraphNode], stated: Sequence[Any]) -> Rows:
    parts = [part_of(model, node) for node in nodes]
    histograms = [_counted(part) for part in parts]
    if len(parts) > INPUT_LIMIT:
        raise NotUnderstood("the rows have too many parts")
    for choice in product(*[(None, h) if h is not None else (None,) for h in histograms]):
        facets = tuple(Facet(part, h) for part, h in zip(parts, choice, strict=True))
        worlds = Worlds(facets)
        if worlds.size != len(stated) or worlds.size > ENTRY_LIMIT:
            continue
        labels = tuple(_joint(row) for row in product(*(facet.labels(as_counts=True) for facet in facets)))
        if labels == tuple(stated):
            places = np.arange(worlds.size, dtype=np.int64)
            return Rows(tuple(n.name for n in nodes), labels, worlds.values(), worlds, places)
    raise Malformed("the rows of the table are not the values of " + " and ".join(n.name for n in nodes))


def _computed_rows(model: Model, of: tuple[str, ...], needed: Sequence[GraphNode]) -> Rows:
    """Distinct joint values of computed nodes, in order; orders of records count where nothing looks at them."""
    parts = [part_of(model, node) for node in needed if node.kind is syntax.VariableKind.INPUT]
    facets = tuple(Facet(part) for part in parts)
    if prod(part.count for part in parts) > LIST_LIMIT:
        trees = [node.definition for node in needed if node.definition is not None]
        looked_at = [p.name in of or order_matters(p.name, p.index, trees) for p in parts]
        facets = tuple(Facet(p, None if at else _counted(p)) for p, at in zip(parts, looked_at, strict=True))
    if prod(f.counted.size if f.counted else f.part.count for f in facets) > WORLD_LIMIT:
        raise NotUnderstood("the inputs have too many values to list")
    worlds = Worlds(facets)
    scene = Pointwise(model, worlds.values())
    grids = [scene.node(name, model.nodes[name].span) for name in of]
    found = [tuple(grid.value(w, 0) for grid in grids) for w in range(worlds.size)]
    keys = [plain(values) for values in found]
    first: dict[Any, tuple[Value, ...]] = {}
    for known, values in zip(keys, found, strict=True):
        first.setdefault(known, values)
    order = sorted(first, key=rank)
    number = {known: row for row, known in enumerate(order)}
    labels = tuple(_joint([written(value) for value in first[known]]) for known in order)
    by_name = {name: [first[known][i] for known in order] for i, name in enumerate(of)}
    return Rows(of, labels, by_name, worlds, np.array([number[known] for known in keys], dtype=np.int64))


def _joint(labels: Sequence[Any]) -> Any:
    return labels[0] if len(labels) == 1 else tuple(labels)
