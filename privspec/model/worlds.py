"""A finite spec as rows and columns: what the mechanism distinguishes of the secret, and what it may draw.

A row is a joint value of the nodes `of`. Three ways, the first that applies:
- computed values that have a data model of their own (`count ~ uniform`): the mechanism sees these values only;
- inputs, where an input `D^n` whose order nothing looks at is held as counts of its values (averaging a mechanism over
  all orders keeps every requirement and the loss, so nothing is lost);
- computed values, where there are too many inputs to list.

The law of the rows comes from the data models of the inputs or of the computed values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.language import syntax
from privspec.language.walk import reached
from privspec.model.adjacency import Adjacency, Neighbours, inputs_compared
from privspec.model.domains import Power
from privspec.model.evaluate import Environment
from privspec.model.graph import GraphNode, Model
from privspec.model.pointwise import Pointwise
from privspec.model.priors import Law, joint_law, law_of, short
from privspec.model.reports import Failure
from privspec.model.requirements import DataModel, Requirement
from privspec.model.spaces import Counted, Listed, Space, as_value, finite, key, label, looked_at, space_of, values_of
from privspec.model.targets import environment
from privspec.model.values import Symbol, Value

LAWS_LISTED = 2**16
"""Joint values of the largest joint law."""


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
        axes = [place[name] for name in data.subjects if name in place]
        if not axes:
            continue
        own = [spaces[axis] for axis in axes]
        law = _common_law(data, own, public) if data.joint else np.array(_input_law(own[0], data, public), dtype=object)
        shape = [n if i in axes else 1 for i, n in enumerate(sizes)]
        masses = masses * law.transpose(np.argsort(axes)).reshape(shape)
    found: list[Fraction] = masses.ravel().tolist()
    return found


def _common_law(data: DataModel, spaces: Sequence[Space], public: Environment) -> NDArray[np.object_]:
    """A joint law as an array with an axis for each subject."""
    sizes = [s.size for s in spaces]
    if prod(sizes) > LAWS_LISTED:
        raise Failure("PS0515", data.span, f"a joint law has up to {LAWS_LISTED:,} values")
    law = joint_law(data, [s.values for s in spaces], public)
    found: NDArray[np.object_] = np.array(law, dtype=object).reshape(sizes)
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


def _one_persons_law(model: Model, data: DataModel, node: GraphNode) -> None:
    """The law of what one person holds, if it can be listed: there may be a million of them.

    A law of all that the people hold together, such as an empirical one, is left to solve.
    Raises: as `priors.law_of`.
    """
    domain = node.domain
    if domain is None or not 0 < (domain.size or 0) <= LAWS_CHECKED or data.distribution == "empirical":
        return
    law_of(data, tuple(as_value(e) for e in domain.elements()), environment(model))


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
        try:
            if len(nodes) == 1 and nodes[0].index is not None:
                _one_persons_law(model, data, nodes[0])
                continue
            spaces = [space_of(model, node) for node in nodes]
            if not 0 < prod(space.size for space in spaces) <= LAWS_CHECKED:
                continue
            if data.joint:
                _common_law(data, spaces, environment(model))
            else:
                _input_law(spaces[0], data, environment(model))
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
    modelled = {name for m in model.models for name in m.subjects}
    inputs = _inputs_behind(model, seen)
    if not inputs:
        span = model.loss.span if model.loss is not None else model.spec.span
        message = "no line looks at the data, so that the best answer is the same whatever they are"
        raise Failure("PS0511", span, message, help="compare an output with an input, as in E[ (z - x)^2 ]")
    spaces = tuple(space_of(model, model.nodes[name]) for name in inputs)
    size = prod(s.size for s in spaces)
    own_model = any(name in modelled and name not in inputs for name in seen)
    if size > WORLD_LIMIT:
        big = max(spaces, key=lambda s: s.size)
        message = f"the inputs take {size:,} values together; tables are found for up to {WORLD_LIMIT:,}"
        hint = "use fewer values or coarser ones; functions such as sum, that do not look at the order, need fewer"
        raise Failure("PS0515", big.node.span, message, label=f"{big.size:,} values", help=hint)
    base = tuple(product(*(s.values for s in spaces)))
    if own_model or size > ROW_LIMIT:
        of, rows, world_rows = _computed_rows(model, seen, inputs, base)
        labels = tuple(_joint([label(v) for v in row]) for row in rows)
    else:
        of, rows, world_rows = inputs, base, tuple(range(size))
        labels = tuple(_joint(list(parts)) for parts in product(*(s.labels for s in spaces)))
    columns = _columns(model, len(rows))
    prior = row_law(model, of, spaces, rows, world_rows)
    return Worlds(model, of, spaces, rows, labels, tuple(o.name for o in model.outputs), columns, world_rows, prior)


def _inputs_behind(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    """Inputs that these names are computed from, and those that share a joint law with one of them.

    The best mechanism may look at what tells something of a value. Inputs that are independent of it tell nothing:
    averaging over them keeps the loss and every requirement.
    """
    partners = {name: data.joint for data in model.models for name in data.joint}
    found = reached(names, lambda name: (*partners.get(name, ()), *model.uses(name)))
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
    return tuple(product(*[values_of(o.domain) for o in model.outputs if o.domain is not None]))
