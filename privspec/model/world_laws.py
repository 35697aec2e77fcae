"""The law of the rows of a table, from the data models of the inputs or of computed values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from privspec.language import syntax
from privspec.model.domains import Power
from privspec.model.evaluate import Environment
from privspec.model.graph import GraphNode, Model
from privspec.model.priors import Law, joint_law, law_of, short
from privspec.model.reports import Failure
from privspec.model.requirements import DataModel
from privspec.model.spaces import Counted, Space, as_value, finite, space_of
from privspec.model.targets import environment
from privspec.model.values import Value

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
