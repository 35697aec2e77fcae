"""The law of all inputs of a finite spec together, and the laws of all of them given what a line hides.

Inputs have laws of their own, `x ~ uniform`; laws together, `(x, y) ~ categorical(w)`; laws given other inputs, as in
`answer ~ categorical(table[group])`, which make a Bayesian network; laws in proportion to a product of potentials,
`x ~ proportional(exp(x[1] * x[2]))`, a Markov random field; and laws entry by entry (`model.chains`), of which any of
several may be the true one.

A line that says `given the model` hides a value from those who know the law (Pufferfish, Kifer & Machanavajjhala 2014):
for every law that may be the true one, and any two values of positive probability, what is released must look alike
where the data are drawn by the law given the one value, or given the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import replace
from privspec.kernel.changes import MOST_SEQUENCES
from privspec.language import syntax
from privspec.language.walk import names_used, with_children
from privspec.model.domains import Domain, Power
from privspec.model.evaluate import Environment
from privspec.model.graph import Model
from privspec.model.neighbours import GivenTheModel, Indices, ReplacingEverything
from privspec.model.pointwise import Pointwise
from privspec.model.priors import Law, joint_law, law_of, short
from privspec.model.reports import Failure
from privspec.model.requirements import Chain, Conditional, DataModel, Requirement
from privspec.model.spaces import Counted, Space, as_value, key, values_of
from privspec.model.targets import environment
from privspec.model.values import Value

LAWS_LISTED = 2**16
"""Joint values of the largest joint law."""
LARGEST = 2**22
"""Shares of rows in all laws that a line compares."""
Shares = NDArray[np.object_]


def parents(model: Model, data: DataModel) -> tuple[str, ...]:
    """The other inputs that a law is given, in the order of their declaration."""
    used = {name for argument in data.arguments for name in names_used(argument)}
    return tuple(node.name for node in model.inputs if node.name in used and node.name not in data.subjects)


def partners(model: Model) -> dict[str, set[str]]:
    """Of each input, those that tell something of it: in one law with it, given it, or what it is given."""
    found: dict[str, set[str]] = {}
    for data in model.models:
        together = {*data.joint, *given, *data.subjects} if (given := parents(model, data)) else {*data.joint}
        for name in together:
            found.setdefault(name, set()).update(together)
    return found


def modelled(model: Model) -> frozenset[str]:
    """The names that have a law."""
    return frozenset(name for m in model.models for name in m.subjects) | {one.subject for one in model.chains}


def world_law(model: Model, spaces: Sequence[Space]) -> Law | None:
    """Probabilities of all joint values of inputs that have models; None where several laws may be the true one.

    Raises: as `priors.law_of`.
    """
    first, *others = world_laws(model, spaces)
    return None if others else first


def world_laws(model: Model, spaces: Sequence[Space]) -> Iterator[Law]:
    """Each law of all joint values that may be the true one: what has no common law is independent."""
    sizes = [space.size for space in spaces]
    place = {space.node.name: i for i, space in enumerate(spaces)}
    stated = {name for data in model.models for name in data.subjects}
    choices = [[_factor(model, data, spaces, place)] for data in model.models if any(n in place for n in data.subjects)]
    for chain in model.chains:
        if chain.subject in place and chain.subject not in stated:
            at = place[chain.subject]
            choices.append([((at,), law) for law in sequence_laws(chain, spaces[at].size)])
    for factors in product(*choices):
        masses = np.full(sizes, Fraction(1), dtype=object)
        for axes, law in factors:
            shape = [n if i in axes else 1 for i, n in enumerate(sizes)]
            masses = masses * law.transpose(np.argsort(axes)).reshape(shape)
        yield tuple(masses.ravel().tolist())


def _factor(
    model: Model, data: DataModel, spaces: Sequence[Space], place: Mapping[str, int]
) -> tuple[tuple[int, ...], Shares]:
    """The inputs that a law is about and those that it is given, by their places, and its shares over all of these."""
    public, given = environment(model), parents(model, data)
    axes = tuple(place[name] for name in data.subjects)
    own, before = [spaces[axis] for axis in axes], [spaces[place[name]] for name in given]
    sizes = [space.size for space in (*before, *own)]
    if (data.joint or given) and prod(sizes) > LAWS_LISTED:
        raise Failure("PS0515", data.span, f"a joint law has up to {LAWS_LISTED:,} values")
    laws = list[Fraction]()
    for places in product(*(range(space.size) for space in before)):
        known = {name: (at, space.values[at]) for name, at, space in zip(given, places, before, strict=True)}
        drawn, known_here = _given(data, known, public)
        if data.joint:
            laws += joint_law(drawn, [space.values for space in own], known_here)
        else:
            laws += input_law(own[0], drawn, known_here)
    found: Shares = np.array(laws, dtype=np.object_).reshape(sizes)
    return (*(place[name] for name in given), *axes), found


def _given(
    data: DataModel, known: Mapping[str, tuple[int, Value]], public: Environment
) -> tuple[DataModel, Environment]:
    """A law where other inputs have some values: as a place of an array a value is its number among all values."""

    def change(node: syntax.Node) -> syntax.Node:
        if isinstance(node, syntax.Index):
            places = (
                syntax.Number(Fraction(known[one.id][0] + 1), span=one.span)
                if isinstance(one, syntax.Name) and one.id in known
                else one
                for one in node.indices
            )
            node = replace(node, indices=tuple(places))
        return with_children(node, change)

    arguments: Any = tuple(change(argument) for argument in data.arguments) if known else data.arguments
    values = {name: value for name, (_, value) in known.items()}
    return replace(data, arguments=arguments), replace(public, values={**public.values, **values})


def input_law(space: Space, model: DataModel, public: Environment) -> Law:
    """The law of an input's listed values; of one record where counts are held or the law is one of records."""
    if isinstance(space, Counted):
        return space.weights(law_of(model, tuple(space.all_values), public))
    return listed_law(space.domain, model, public)


def listed_law(domain: Domain, model: DataModel, public: Environment) -> Law:
    """The law of all values of a domain, its records being independent where the law is one of records."""
    try:
        return law_of(model, values_of(domain), public)
    except Failure:
        if not isinstance(domain, Power) or model.distribution == "proportional":
            raise
        each = law_of(model, tuple(as_value(e) for e in domain.base.elements()), public)
        return tuple(prod(masses, start=Fraction(1)) for masses in product(each, repeat=prod(domain.exponents)))


def as_sequence(domain: Domain, data: DataModel, public: Environment, text: str) -> Chain | None:
    """A law of a sequence as laws of its entries, each given earlier ones; None where it is none, or too long."""
    if not isinstance(domain, Power) or len(domain.exponents) > 1 or domain.base.shape:
        return None
    (length,), size = domain.exponents, domain.base.size or MOST_SEQUENCES + 1
    if size**length > MOST_SEQUENCES:
        return None
    masses = np.array(listed_law(domain, data, public), dtype=object).reshape((size,) * length)
    network = []
    for place in range(length):
        joint = masses.sum(axis=tuple(range(place + 1, length)))
        before = joint.sum(axis=-1, keepdims=True)
        even: Any = Fraction(1, size)
        law = np.where(before == 0, even, joint / np.where(before == 0, even, before))
        given = list(range(place))
        for parent in range(place):  # those that make no difference are left out
            axis = given.index(parent)
            if np.all(law == law.take([0], axis=axis)):
                law = law.take(0, axis=axis)
                given.remove(parent)
        rows = tuple(map(tuple, law.reshape(-1, size).tolist()))
        network.append(Conditional(tuple(given), rows))
    return Chain(data.subject, length, (), (), ((data.line, text),), tuple(network))


def sequence_laws(chain: Chain, size: int) -> Iterator[Shares]:
    """The laws of all sequences, in the order of their values: one for each start with each step."""
    states = len((chain.starts or chain.network[0].rows)[0])
    shape = (states,) * chain.length
    assert size == states**chain.length
    for start, step in product(chain.starts or ((),), chain.steps or ((),)):
        each = [(one.parents, one.rows) for one in chain.network]
        each = each or [((), (start,)), *(((i - 1,), step) for i in range(1, chain.length))]
        found = np.full(shape, Fraction(1), dtype=object)
        for place, (before, rows) in enumerate(each):
            law = np.array(rows, dtype=object).reshape((states,) * (len(before) + 1))
            axes = (*before, place)
            wide = [states if i in axes else 1 for i in range(chain.length)]
            found = found * law.transpose(np.argsort(axes)).reshape(wide)
        yield found.ravel()


# --- given what is hidden -------------------------------------------------------------------------


def laws_given(
    model: Model, spaces: Sequence[Space], world_rows: Sequence[int], line: Requirement
) -> tuple[tuple[Law, ...], tuple[tuple[int, ...], ...]]:
    """The laws of rows given each value that a line hides, and which of them are compared, every two of a set.

    Raises: Failure PS0515 if they are too many, PS0340 where an input has no law.
    """
    without = next((one.node for one in spaces if one.node.name not in modelled(model)), None)
    if without is not None:
        hint = f"add a law under background, such as {without.name} ~ uniform"
        raise Failure("PS0340", line.span, f"no model says how {without.name} is drawn", help=hint)
    rows = np.asarray(world_rows, dtype=np.intp)
    count, numbers = int(rows.max()) + 1, dict[Law, int]()
    cliques = dict[tuple[int, ...], None]()
    kinds = list(_hidden(model, spaces, line))
    for masses in world_laws(model, spaces):
        for kind in kinds:
            alike = list[int]()
            for value in range(int(kind.max()) + 1):
                shares = [Fraction(0)] * count
                for world in np.flatnonzero((kind == value) & (rows >= 0)).tolist():
                    shares[rows[world]] += masses[world]
                total = sum(shares, Fraction(0))
                if total:
                    law = short(tuple(share / total for share in shares), line.span)
                    alike.append(numbers.setdefault(law, len(numbers)))
                if len(numbers) * count > LARGEST:
                    raise Failure("PS0515", line.span, "there are too many values to hide, given so many data")
            if len(found := tuple(sorted(set(alike)))) > 1:
                cliques[found] = None
    return tuple(numbers), tuple(cliques)


def _hidden(model: Model, spaces: Sequence[Space], line: Requirement) -> Iterator[Indices]:
    """For each thing that is hidden, the number of its value in every world."""
    relation, sizes = line.neighbours, [space.size for space in spaces]
    assert isinstance(relation, GivenTheModel)
    worlds = np.unravel_index(np.arange(prod(sizes)), sizes)
    if relation.secret:
        base = list(product(*(space.values for space in spaces)))
        scene = Pointwise(model, {space.node.name: [world[i] for world in base] for i, space in enumerate(spaces)})
        grid, numbers = scene.node(relation.secret, line.span), dict[object, int]()
        values = (key(grid.value(world, 0)) for world in range(len(base)))
        yield np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.intp)
        return
    named = [(space, worlds[i]) for i, space in enumerate(spaces) if space.node.name in line.wrt]
    parts = [_parts(space, at, relation) for space, at in named]
    if isinstance(relation.inner, ReplacingEverything) or relation.together:
        # one unit is all that one person has in these inputs, or all of them
        parts = [[_joined(own) for own in zip(*parts, strict=True)]]
    for own in parts:
        yield from (digits for digits, _ in own)


def _parts(space: Space, at: Indices, relation: GivenTheModel) -> list[tuple[Indices, int]]:
    """For each unit of an input the number of its value in every world, and how many values there are."""
    assert not isinstance(space, Counted)
    units = space.units(relation.inner) or [space.size]
    return list(zip(np.unravel_index(at, units), units, strict=True))


def _joined(parts: Sequence[tuple[Indices, int]]) -> tuple[Indices, int]:
    """Several values as one number."""
    digits, size = parts[0]
    for more, own in parts[1:]:
        digits, size = digits * own + more, size * own
    return digits, size
