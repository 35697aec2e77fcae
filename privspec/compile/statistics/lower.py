"""From the graph to records, a function with routes, and a pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privspec.compile.statistics.system import Promise, StatisticSystem
from privspec.core.diagnostics import Diagnostic, Label, SpecError
from privspec.language import syntax
from privspec.model.domains import Ball, Domain, L2Ball, Power
from privspec.model.generators import generator_of
from privspec.model.graph import GraphNode, Model
from privspec.model.library import Function, library
from privspec.model.measures import Personalised
from privspec.model.neighbours import ReplacingEverything, ReplacingRecord, ReplacingVoter
from privspec.model.reports import Failure
from privspec.model.requirements import Requirement
from privspec.model.routes import Records, Unit
from privspec.model.targets import needed
from privspec.model.trust import Curator, Nobody
from privspec.model.walk import with_children


@dataclass(frozen=True, eq=False, slots=True)
class Found:
    """A call of a function with routes on one input, at the node of each party."""

    node: GraphNode
    function: Function
    source: str


def routed_call(model: Model) -> Found | None:
    """The first value that is computed from an input by a function that offers routes."""
    for name in model.order:
        node = model.nodes[name]
        match node.definition:
            case syntax.Call(function=function, arguments=(argument, *_)):
                known = library().get(function)
                source = _input_of(model, argument)
                if known is not None and known.routes is not None and source is not None:
                    return Found(node, known, source)
    return None


def _input_of(model: Model, argument: syntax.Argument) -> str | None:
    """V of `V` or `V[voter]`."""
    base = argument.base if isinstance(argument, syntax.Index) else argument
    if isinstance(base, syntax.Name) and base.id in model.nodes:
        node = model.nodes[base.id]
        return base.id if node.kind is syntax.VariableKind.INPUT else None
    return None


def lower(model: Model) -> StatisticSystem:
    """The system of a spec.

    Raises: SpecError PS05xx with the first construct that cannot be computed.
    """
    try:
        return _lower(model)
    except Failure as failure:
        label = Label(failure.span, failure.label)
        raise SpecError(
            Diagnostic(failure.code, failure.message, (label,), help=failure.help, source=model.source)
        ) from failure


def _lower(model: Model) -> StatisticSystem:
    call = routed_call(model)
    assert call is not None and call.function.routes is not None
    source = model.nodes[call.source]
    if source.index != call.node.index:
        raise Failure(
            "PS0501",
            call.node.span,
            f"solve takes a value of {call.function.name} for each {source.index}, and this is for one of them",
            help=f"{call.node.name}[{source.index}] = {call.function.name}({source.name}[{source.index}], ...)",
        )
    records = records_of(source)
    pool, mean = _pool(model, call.node)
    output = _output(model, pool)
    parties = model.parties[source.index].size if source.index is not None else 1
    loss = _opened(model, output.name, _loss(model))
    radius = None if records.radius is None else float(records.radius)
    generator = generator_of(model, call.source, records.count, records.dimension, radius)
    if generator is None:
        raise Failure(
            "PS0517",
            source.span,
            f"nothing says how {call.source} is distributed, so no loss can be predicted",
            help=f"add a data model under background: {call.source} ~ thurstone_mosteller(d, n)",
        )
    return StatisticSystem(
        model,
        call.source,
        source.index,
        parties,
        records,
        call.function.name,
        call.function.routes(records, call.node.domain),
        call.node.name,
        pool.name,
        mean,
        output.name,
        loss,
        generator,
        tuple(_promise(model, r, i, output.name, call.source, parties) for i, r in enumerate(model.requirements)),
    )


def records_of(source: GraphNode) -> Records:
    """N records of d numbers, each in a ball about 0 or unbounded.

    Raises: Failure PS0501 for others.
    """
    domain: Domain | None = source.domain
    if isinstance(domain, Power) and isinstance(domain.base, L2Ball) and len(domain.exponents) == 1:
        return Records(domain.exponents[0], domain.base.dimension, domain.base.radius)
    if isinstance(domain, Power) and len(domain.exponents) == 2 and not isinstance(domain.base, Ball):
        low, high = domain.base.bounds
        if low is None and high is None:
            return Records(domain.exponents[0], domain.exponents[1], None)
    raise Failure(
        "PS0501",
        source.span,
        f"solve takes records in an l2 ball, or of any size, and {source.name} is not of that form",
        help=f"input {source.name}[voter] in l2_ball(1, d)^n, or in real^(n, d)",
    )


def _pool(model: Model, each: GraphNode) -> tuple[GraphNode, bool]:
    """The node that adds up or averages the parties' values; the value itself where there is one party."""
    if each.index is None:
        return each, True
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
            ) if inner == each.name and index == variable:
                return node, function == "mean"
            case syntax.Call(function="mean" | "sum" as function, arguments=(syntax.Name(id=inner),)) if (
                inner == each.name
            ):
                return node, function == "mean"
    raise Failure(
        "PS0501",
        each.span,
        f"solve takes a mean or a sum of {each.name} over all parties",
        help=f"society = mean({each.name}[{each.index}] for {each.index})",
    )


def _output(model: Model, pool: GraphNode) -> GraphNode:
    free = [node for node in model.outputs if node.definition is None]
    if len(model.outputs) != 1 or len(free) != 1:
        raise Failure("PS0501", model.spec.span, "solve releases one output of such functions")
    if free[0].type.shape != pool.type.shape:
        raise Failure("PS0207", free[0].span, f"{free[0].name} has another shape than {pool.name}, which it releases")
    return free[0]


def _loss(model: Model) -> syntax.Expr:
    match model.loss:
        case syntax.Over(operator="E", body=body, given=None):
            return body
        case None:
            raise Failure("PS0504", model.spec.span, "there is no loss to minimise", help="add a loss: section")
        case other:
            raise Failure("PS0502", other.span, "solve predicts a loss of the form E[ ... ] here")


def _opened(model: Model, output: str, expr: Any) -> Any:
    """The loss with what is computed from the output written out, so that the rest stands still on one crowd.

    Raises: Failure PS0502 for a value of each party that depends on the output.
    """
    if isinstance(expr, syntax.Name) and expr.id != output and expr.id in model.nodes:
        node = model.nodes[expr.id]
        if node.definition is None or output not in needed(model, expr.id):
            return expr
        if node.index is not None:
            raise Failure(
                "PS0502",
                expr.span,
                f"solve cannot predict a loss with a {node.name} of each {node.index} that depends on {output}",
            )
        return _opened(model, output, node.definition)
    return with_children(expr, lambda child: _opened(model, output, child))


def _promise(model: Model, requirement: Requirement, index: int, output: str, source: str, parties: int) -> Promise:
    span = requirement.span
    if requirement.outputs != (output,) or requirement.wrt != (source,):
        raise Failure("PS0501", span, f"solve takes requirements on {output} with respect to {source} here")
    relation = requirement.neighbours
    if relation.adding or relation.group != 1:
        raise Failure("PS0501", span, "solve takes `replacing one` unit here", help="replacing one voter")
    units = {ReplacingRecord: Unit.RECORD, ReplacingVoter: Unit.PARTY, ReplacingEverything: Unit.PARTY}
    unit = units.get(type(relation))
    if unit is None or (isinstance(relation, ReplacingEverything) and parties > 1):
        raise Failure("PS0501", span, f"solve cannot protect {relation.describe()} here")
    measure = requirement.measure
    each = measure.each if isinstance(measure, Personalised) else (measure,) * parties
    if not isinstance(model.trust, Curator | Nobody):
        raise Failure("PS0501", span, f"solve cannot compute `trust {model.trust.name}` here yet")
    return Promise(index, requirement, unit, each)
