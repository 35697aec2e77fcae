"""What a spec says of records, function, ball, pool and output, read from its graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import Malformed
from privspec.certify.statistics.spreads import Records
from privspec.language import syntax
from privspec.model.domains import Ball, L1Ball, L2Ball, Power
from privspec.model.graph import GraphNode, Model


@dataclass(frozen=True, slots=True)
class Meaning:
    """Records of `source` by `parties` members of `party`; `each` names the value of one, `pool` that of all."""

    source: str
    party: str | None
    parties: int
    function: str
    records: Records
    each: str
    pool: str
    mean: bool
    output: str


FUNCTION = "probit_mle"
"""The one function whose statistics are known here."""


def meaning_of(model: Model) -> Meaning:
    """Raises: Malformed if the spec is none of noisy statistics; NotUnderstood if it is not covered here."""
    if model.components:
        raise NotUnderstood("a system of components with noisy statistics")
    each, source = _call(model)
    pool, mean = _pool(model, each)
    outputs = model.outputs
    if len(outputs) != 1 or outputs[0].definition is not None or outputs[0].type.shape != pool.type.shape:
        raise Malformed(f"the spec has no one output that is released for {pool.name}")
    count, dimension, radius = _records(source)
    ball = each.domain
    if not isinstance(ball, Ball) or ball.dimension != dimension:
        raise Malformed(f"the weights {each.name} are in no ball of {dimension} features")
    records = Records(count, dimension, radius, isinstance(ball, L1Ball), ball.radius)
    parties = 1 if source.index is None else model.parties[source.index].size
    return Meaning(source.name, source.index, parties, FUNCTION, records, each.name, pool.name, mean, outputs[0].name)


def _call(model: Model) -> tuple[GraphNode, GraphNode]:
    """The node that is the function of an input, party by party, and the input."""
    calls = []
    for node in model.nodes.values():
        match node.definition:
            case syntax.Call(function=name, arguments=(argument, *_)) if name == FUNCTION:
                calls.append((node, argument))
    if len(calls) != 1:
        raise Malformed(f"the spec does not use {FUNCTION} once")
    node, argument = calls[0]
    match argument:
        case syntax.Name(id=name):
            index = None
        case syntax.Index(base=syntax.Name(id=name), indices=(syntax.Name(id=index),)):
            pass
        case _:
            raise Malformed(f"{node.name} is not computed from an input")
    source = model.nodes.get(name)
    if source is None or source.kind is not syntax.VariableKind.INPUT or not source.index == node.index == index:
        raise Malformed(f"{node.name} is not computed from each party's own records")
    return node, source


def _pool(model: Model, each: GraphNode) -> tuple[GraphNode, bool]:
    if each.index is None:
        return each, True
    found = list(_pools(model, each.name))
    if not found:
        raise Malformed(f"nothing is the mean or the sum of {each.name}")
    return found[0]


def _pools(model: Model, each: str) -> Iterator[tuple[GraphNode, bool]]:
    for name in model.order:
        node = model.nodes[name]
        match node.definition:
            case syntax.Call(
                function="mean" | "sum" as function,
                arguments=(
                    syntax.Comprehension(
                        body=syntax.Index(base=syntax.Name(id=inner), indices=(syntax.Name(id=index),)),
                        variable=variable,
                        domain=None,
                    ),
                ),
            ) if (inner, index) == (each, variable):
                yield node, function == "mean"
            case syntax.Call(function="mean" | "sum" as function, arguments=(syntax.Name(id=inner),)) if inner == each:
                yield node, function == "mean"


def _records(source: GraphNode) -> tuple[int, int, Fraction | None]:
    """Count, dimension and radius (None: of any size)."""
    match source.domain:
        case Power(base=L2Ball(radius=radius, dimension=dimension), exponents=(count,)):
            return count, dimension, radius
        case Power(base=base, exponents=(count, dimension)) if not isinstance(base, Ball):
            if base.bounds == (None, None):
                return count, dimension, None
    raise NotUnderstood(f"records of {source.name} that are in no Euclidean ball")
