"""The values of single inputs: one by one, or as counts where nothing looks at the order of their records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import combinations, combinations_with_replacement
from math import comb, factorial, prod
from typing import Any

import numpy as np

from privspec.core.records import dataclass
from privspec.language import syntax
from privspec.language.walk import children, names_used, reached
from privspec.model.domains import Domain, PartialRankingOf, Power
from privspec.model.evaluate import evaluate
from privspec.model.graph import GraphNode, Model
from privspec.model.library import function_of
from privspec.model.measures import Personalised
from privspec.model.neighbours import (
    ByNeighbour,
    GivenTheModel,
    Indices,
    NeighbourRelation,
    ReplacingEntry,
    ReplacingEverything,
    ReplacingOneOf,
    ReplacingVoter,
)
from privspec.model.priors import Law
from privspec.model.reports import Failure
from privspec.model.requirements import Requirement, takes_distance
from privspec.model.targets import Degree, degree_in, degree_of, environment, values_at
from privspec.model.values import Array, Value, as_float, show


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
        waiting += line.wrt if isinstance(line, Requirement) else line.people

    def hidden(name: str) -> bool:
        return name in model.nodes and model.nodes[name].secret and not _drawn(model, name)

    found = reached(waiting, lambda name: () if hidden(name) else model.uses(name))
    return tuple(name for name in model.order if name in found and hidden(name))


def _drawn(model: Model, name: str) -> bool:
    """Whether a value depends on an output or a choice."""
    kinds = (syntax.VariableKind.OUTPUT, syntax.VariableKind.CHOOSE)
    return any(model.nodes[n].kind in kinds for n in reached([name], model.uses) if n in model.nodes)


# --- the order of records -------------------------------------------------------------------------

_NONE: frozenset[str] = frozenset()
MOST = 256
"""Numbers of all inputs up to which an affine map is looked at one by one."""


def order_matters(model: Model, name: str) -> bool:
    """Whether anything looks at the order of the records of an input.

    `f(name)` and `f(e for voter)` do not where f is symmetric and e uses only `name[voter]` of what belongs to the
    voter. Distances look at it, and so do joint laws and those of entries, a line that counts on the model or is about
    all that one person holds in several inputs, and figures of people's own.
    """
    people = [one for line in model.fairness if not isinstance(line, Requirement) for one in line.people]
    if name in people:
        return True
    index, named = model.nodes[name].index, {one for line in model.requirements for one in line.wrt}
    if index is not None and name in named and any(model.nodes[one].index == index for one in named - {name}):
        return True  # what one person has in two inputs is told apart from what another has in the second
    if any(chain.subject == name for chain in model.chains):
        return True
    for data in model.models:
        used = {*data.subjects, *(used for argument in data.arguments for used in names_used(argument))}
        if name in used and (data.joint or data.distribution == "proportional" or len(used & {*model.nodes}) > 1):
            return True
    for line in (*model.requirements, *model.fairness):
        if isinstance(line, Requirement) and name in line.wrt:
            joined = isinstance(line.neighbours, ReplacingVoter | ReplacingOneOf) and len(line.wrt) > 1
            given = isinstance(line.neighbours, GivenTheModel)
            if isinstance(line.neighbours, ByNeighbour):  # a record may have several entries
                given = not isinstance(line.neighbours.inner, ReplacingVoter)
            if joined or given or takes_distance(line) or isinstance(line.measure, Personalised):
                return True
    looks = _Looks(model, name, model.nodes[name].index)
    facts = (one.relation for one in model.facts)
    return any(looks.inside(expr) for expr in (*expressions(model), *facts, *map(syntax.Name, people)))


def _weighted(call: syntax.Node) -> bool:
    """Whether a call gives every record a weight of its own."""
    return any(word.name == "weights" for word in children(call) if isinstance(word, syntax.Keyword))


@dataclass(frozen=True, slots=True)
class _Looks:
    """Looks for uses of an input that tell its records apart; `party` its index set."""

    model: Model
    name: str
    party: str | None

    def inside(self, node: syntax.Node, members: frozenset[str] = _NONE) -> bool:
        """Whether there is one; `members` are variables that run through the whole index set around the node."""
        match node:
            case syntax.Name(id=found):
                computed = self.model.nodes.get(found)
                if computed is None or computed.definition is None:
                    return found == self.name or found in members
                return found in members or self.inside(computed.definition)
            case syntax.Binary() | syntax.Call() | syntax.Vector() | syntax.Each() if self._alike(node):
                return False
            case syntax.Index(base=syntax.Name(id=base), indices=(syntax.Name(id=member), *others)) if (
                base == self.name and member in members
            ):
                return any(self.inside(other, members) for other in others)
            case syntax.Call(arguments=(first, *others)) if function_of(node).symmetric and not _weighted(node):
                whole = [a for a in (first, *others) if isinstance(a, syntax.Name) and a.id == self.name]
                if whole:
                    return any(self.inside(a, members) for a in (first, *others) if a not in whole)
                if isinstance(first, syntax.Comprehension) and self._whole(first) and not others:
                    return self.inside(first.body, members | {first.variable})
        return any(self.inside(child, members) for child in children(node))

    def _alike(self, expr: syntax.Expr) -> bool:
        """Whether it is an affine map of the inputs that is the same for all records of this one."""
        model, names = self.model, [name for name in names_used(expr) if name in self.model.nodes]
        block = next(block for block in model.blocks if block.name == self.name)
        records = block.type.shape[0] if block.type.numeric and block.type.shape else 0
        if not records or model.size > MOST or self.name not in reached(names, model.uses):
            return False
        if any(_drawn(model, name) for name in names):
            return False
        if degree_in(expr, {name: degree_of(model, name) for name in names}) is not Degree.AFFINE:
            return False

        def at(place: int) -> Array:
            u = np.arange(model.size) == place
            return as_float(evaluate(expr, environment(model, values_at(model, expr, u.astype(np.float64)))))

        try:
            moved = np.array([at(place) - at(-1) for place in range(block.start, block.stop)])
        except (Failure, TypeError):
            return False
        each = moved.reshape(records, -1)
        return bool(np.allclose(each, each[0], rtol=1e-12, atol=0))

    def _whole(self, each: syntax.Comprehension) -> bool:
        """Whether its variable runs through the whole index set of the input."""
        if self.party is None:
            return False
        match each.domain:
            case None:
                return each.variable == self.party
            case syntax.Name(id=domain):
                return domain == self.party
        return False


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
    if len({part.shape for part in arrays}) == 1:
        return np.stack(arrays)
    data = np.empty(len(parts), dtype=object)
    for i, part in enumerate(parts):
        # rankings of different lengths make no array: each is a tuple
        data[i] = tuple(part) if isinstance(part, np.ndarray) else part
    return data


def values_of(domain: Domain) -> tuple[Value, ...]:
    """All values of a domain, in its order; partial rankings stay tuples, as their lengths differ."""
    if isinstance(domain, Power) and isinstance(domain.base, PartialRankingOf):
        return tuple(_places(element) for element in domain.elements())
    partial = isinstance(domain, PartialRankingOf)
    return tuple(element if partial else as_value(element) for element in domain.elements())


def _places(items: Sequence[Any]) -> Value:
    """Partial rankings, one for each place: tuples of several lengths, which are no arrays."""
    data = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):
        data[place] = item
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
        return values_of(self.domain)

    @property
    def size(self) -> int:
        return self.domain.size or 0

    @property
    def labels(self) -> tuple[Any, ...]:
        return tuple(label(v) for v in self.values)

    def weights(self, law: Law) -> Law:
        """The law of these values, from that of all values."""
        return law

    @property
    def all_values(self) -> Iterator[Value]:
        """The values that laws are given for."""
        return iter(self.values)

    def alike(self, relation: NeighbourRelation, count: int) -> Indices:
        """Sets of values (K, s): every two of a set differ in up to `count` units, and any two that do are in one."""
        units = self.units(relation)
        if not count:
            return np.arange(self.size)[:, None]
        if count >= len(units):
            return np.arange(self.size)[None]
        some = combinations(range(len(units)), count)
        return np.concatenate([self.of_units(relation, chosen) for chosen in some])

    def of_units(self, relation: NeighbourRelation, chosen: Sequence[int]) -> Indices:
        """Sets of values (K, s) that differ in these units alone."""
        units = self.units(relation)
        if not units:
            return np.arange(self.size)[None]
        places = np.arange(self.size).reshape(units)
        last = np.moveaxis(places, chosen, range(-len(chosen), 0))
        return last.reshape(-1, prod(units[i] for i in chosen))

    def units(self, relation: NeighbourRelation) -> list[int]:
        """Sizes of the units that a relation replaces one at a time; none if it replaces the whole value."""
        domain = self.domain
        if isinstance(relation, ReplacingEverything) or not isinstance(domain, Power) or self.size == 1:
            return []
        if isinstance(relation, ReplacingEntry):
            return [domain.innermost.size or 0] * prod(domain.shape)
        if self.node.index is None and relation.unit_name not in ("record", "entry"):
            return []
        inner = Power(domain.base, domain.exponents[1:]) if len(domain.exponents) > 1 else domain.base
        return [inner.size or 0] * domain.exponents[0]


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
        return values_of(self.base)

    @cached_property
    def counts(self) -> tuple[tuple[int, ...], ...]:
        """Counts of the values of D, one tuple for each class."""
        return _tallies(self.records, len(self.items))

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """One input of each class."""
        together = _places if isinstance(self.base, PartialRankingOf) else _array
        listed = ([[item] * count for item, count in zip(self.items, counts, strict=True)] for counts in self.counts)
        return tuple(together([item for some in each for item in some]) for each in listed)

    @property
    def size(self) -> int:
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

    def alike(self, relation: NeighbourRelation, count: int) -> Indices:
        """Sets of classes (K, s): every two of a set differ in up to `count` records, and any two that do are in one.

        What the records that stay are picks the set.
        """
        if not count:
            return np.arange(self.size)[:, None]
        if isinstance(relation, ReplacingEverything) or count >= self.records:
            return np.arange(self.size)[None]
        number, kinds = {counts: i for i, counts in enumerate(self.counts)}, len(self.items)
        moved = np.array(_tallies(count, kinds))
        rest = np.array(_tallies(self.records - count, kinds))
        return np.array([[number[tuple(one)] for one in (moved + own).tolist()] for own in rest], dtype=np.intp)

    def of_units(self, relation: NeighbourRelation, chosen: Sequence[int]) -> Indices:
        """Nothing tells one unit from another."""
        raise TypeError(f"the records of {self.node.name} are counted")


def _tallies(records: int, kinds: int) -> tuple[tuple[int, ...], ...]:
    """How often each of some kinds stands in each choice of so many records."""
    every = combinations_with_replacement(range(kinds), records)
    return tuple(tuple(found[i] for i in range(kinds)) for found in map(Counter, every))


Space = Listed | Counted


def space_of(model: Model, node: GraphNode) -> Space:
    """How the values of an input are held."""
    domain = node.domain
    assert domain is not None
    if node.index is not None:
        domain = Power(domain, (model.parties[node.index].size,))
    if isinstance(domain, Power) and not order_matters(model, node.name):
        base = Power(domain.base, domain.exponents[1:]) if len(domain.exponents) > 1 else domain.base
        return Counted(node, domain, base, domain.exponents[0])
    return Listed(node, domain)
