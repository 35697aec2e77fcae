"""Specs of noisy statistics as blocks: records of some people, a function that offers routes for noise, and a pool."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from privspec.core.records import dataclass
from privspec.kernel.statistics import VERSION, Ball, ErrorLimit, NoisyRoute, SimulatedLoss, StatisticBlock
from privspec.kernel.trust import CURATOR, NOBODY
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import names_used
from privspec.model.domains import Ball as BallDomain
from privspec.model.domains import L1Ball, L2Ball, Power
from privspec.model.graph import GraphNode, Model
from privspec.model.library import GRID, Function, Records, Route, function_of, library
from privspec.model.neighbours import ReplacingEverything, ReplacingRecord, ReplacingVoter
from privspec.model.reports import Failure
from privspec.model.requirements import AccuracyTarget, Requirement
from privspec.model.targets import needed
from privspec.model.values import show
from privspec.problem.refusals import reading, without_loss
from privspec.problem.terms import public_number

SEED = 20190406
"""Of the simulation, so that a plan can be made again."""
MOST_CROWDS = 400
NORMS = {"l1": L1Ball, "l2": L2Ball}


def offered(block: StatisticBlock) -> tuple[Route, ...]:
    """The statistics themselves, as the function computes them, in the order of `routes`."""
    function, within = library()[block.function], NORMS[block.within.norm](block.within.radius, block.dimension)
    assert function.routes is not None
    return function.routes(Records(block.count, block.dimension, block.radius), within)


def words(block: StatisticBlock) -> Iterator[str]:
    """Records, function, pool, routes, options and loss."""
    who, loss, within = block.party or "party", block.loss, block.within
    routes = " · ".join(f"the {route.name} ({route.size} numbers)" for route in block.routes)
    size = "of any length"
    if block.radius is not None:
        size = f"of Euclidean length at most {show(block.radius)}; a longer one is drawn in to it, by itself"
    yield (
        f"{block.parties} parties ({who}) hold {block.count} records of {block.dimension} numbers each in "
        f"{block.source}, {size}. Numbers are rounded towards zero to multiples of {block.grid}."
    )
    yield (
        f"{block.output} is released for {block.pool}, the {'mean' if block.mean else 'sum'} over all of {block.each}: "
        f"{block.function} (version {block.version}) of one's records within the {within.norm} ball of radius "
        f"{show(within.radius)}."
    )
    yield f"Noise may enter at these {len(block.routes)} statistics: {routes}."
    if block.sites is not None:
        yield f"Of these the spec allows noise at {', '.join(block.sites)}."
    if block.families is not None:
        yield f"The spec allows noise of the family {', '.join(block.families)}."
    where = f", where {'; '.join(loss.definitions)}" if loss.definitions else ""
    yield (
        f"The loss is `{loss.expression}`{where}. It is simulated with data of the model {loss.model}, in at most "
        f"{loss.crowds} crowds from the seed {loss.seed}, and never proved."
    )
    for limit in block.limits:
        yield f"Line {limit.line} bounds the error of what is released by chance, on any data: `{limit.text}`."


@dataclass(frozen=True, eq=False, slots=True)
class RoutedCall:
    """A call of a function with routes on one input, at the node of each party."""

    node: GraphNode
    function: Function
    source: str


def routed_call(model: Model) -> RoutedCall | None:
    """The first value that is computed from an input by a function that offers routes."""
    for name in model.order:
        node = model.nodes[name]
        match node.definition:
            case syntax.Call(arguments=(argument, *_)):
                known, source = function_of(node.definition), _input_of(model, argument)
                if known.routes is not None and source is not None:
                    return RoutedCall(node, known, source)
    return None


def _input_of(model: Model, argument: syntax.Argument) -> str | None:
    """V of `V` or `V[voter]`."""
    base = argument.base if isinstance(argument, syntax.Index) else argument
    if isinstance(base, syntax.Name) and base.id in model.nodes:
        node = model.nodes[base.id]
        return base.id if node.kind is syntax.VariableKind.INPUT else None
    return None


def reads(model: Model) -> bool:
    """Whether some value is computed from an input by a function that offers routes."""
    return routed_call(model) is not None


@reading()
def block_of(model: Model) -> StatisticBlock:
    """Records, function, pool, routes and loss.

    Raises: SpecError PS05xx with the first construct that cannot be computed.
    """
    call = routed_call(model)
    assert call is not None and call.function.routes is not None
    source = model.nodes[call.source]
    if source.index != call.node.index:
        text = f"solve takes a value of {call.function.name} for each {source.index}, and this is for one of them"
        hint = f"{call.node.name}[{source.index}] = {call.function.name}({source.name}[{source.index}], ...)"
        raise Failure("PS0501", call.node.span, text, help=hint)
    records = records_of(source)
    pool, mean = _pool(model, call.node)
    output = _output(model, pool)
    parties = model.parties[source.index].size if source.index is not None else 1
    within = call.node.domain
    if not isinstance(within, BallDomain):
        raise Failure("PS0501", call.node.span, f"solve takes values of {call.function.name} within a ball")
    _all_answered(model)
    limits = tuple(_limit(target, model, output.name, pool.name) for target in model.accuracy)
    for requirement in model.requirements:
        _protected(requirement, output.name, call.source, parties)
    return StatisticBlock(
        function=call.function.name,
        version=VERSION,
        source=call.source,
        party=source.index,
        parties=parties,
        count=records.count,
        dimension=records.dimension,
        radius=records.radius,
        within=Ball("l1" if isinstance(within, L1Ball) else "l2", within.radius),
        grid=GRID,
        each=call.node.name,
        pool=pool.name,
        mean=mean,
        output=output.name,
        routes=tuple(_route(route) for route in call.function.routes(records, within)),
        sites=model.noise_at,
        families=model.families or None,
        loss=_simulated(model, source),
        limits=limits,
    )


def _route(route: Route) -> NoisyRoute:
    wider = route.to_json().get("estimated_within")
    ball = None if wider is None else Ball(wider["norm"], Fraction(wider["radius"]))
    return NoisyRoute(route.at, route.name, route.size, ball)


def _limit(target: AccuracyTarget, model: Model, output: str, pool: str) -> ErrorLimit:
    """Raises: Failure PS0501 for a line about anything but the largest error, with a probability."""
    asked = target.target
    match asked.left:
        case syntax.Norm(operand=syntax.Binary("-", syntax.Name() as one, syntax.Name() as other), order="inf"):
            if {one.id, other.id} == {output, pool} and asked.probability is not None and asked.variable is None:
                most, often = public_number(asked.right, model), public_number(asked.probability, model)
                return ErrorLimit(target.line, target.text, most, often)
    text = "where statistics are made noisy, solve bounds the largest error of all numbers, with a probability"
    hint = f"||{output} - {pool}||_inf <= 0.5 with probability 0.95"
    raise Failure("PS0501", target.target.span, text, help=hint)


def _all_answered(model: Model) -> None:
    """Nothing is asked for that noise at a statistic does not answer.

    Raises: Failure PS0501.
    """
    spans = [line.span for line in model.fairness] + [line.relation.span for line in model.constraints]
    for span in spans:
        raise Failure("PS0501", span, "solve does not answer this line where statistics are made noisy")
    if model.asserted:
        text = "solve takes no asserted functions where statistics are made noisy"
        raise Failure("PS0501", model.spec.span, text)
    if not model.trust.drawn_whole:
        hint = f"write `{NOBODY.written}`, where each party's estimate is noisy by itself, or `{CURATOR.written}`"
        span, text = model.trust_span, f"`trust {model.trust.name}` of estimates of parties"
        raise Failure("PS0501", span, f"solve cannot compute {text}", help=hint)


def records_of(source: GraphNode) -> Records:
    """N records of d numbers, each in a Euclidean ball about 0 or unbounded.

    Raises: Failure PS0501 for others.
    """
    match source.domain:
        case Power(base=L2Ball(radius=radius, dimension=dimension), exponents=(count,)):
            return Records(count, dimension, radius)
        case Power(base=base, exponents=(count, dimension)) if not isinstance(base, BallDomain):
            if base.bounds == (None, None):
                return Records(count, dimension, None)
    text = f"solve takes records in an l2 ball, or of any size, and {source.name} is not of that form"
    hint = f"input {source.name}[voter] in l2_ball(1, d)^n, or in real^(n, d)"
    raise Failure("PS0501", source.span, text, help=hint)


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
    text = f"solve takes a mean or a sum of {each.name} over all parties"
    hint = f"society = mean({each.name}[{each.index}] for {each.index})"
    raise Failure("PS0501", each.span, text, help=hint)


def _output(model: Model, pool: GraphNode) -> GraphNode:
    free = [node for node in model.outputs if node.definition is None]
    if len(model.outputs) != 1 or len(free) != 1:
        raise Failure("PS0501", model.outputs[-1].span, "solve releases one output of such functions")
    if free[0].type.shape != pool.type.shape:
        text = f"solve releases {free[0].name} for {pool.name}, which has another shape"
        raise Failure("PS0501", free[0].span, text, help=f"compare it with {pool.name} in the loss")
    return free[0]


def _protected(requirement: Requirement, output: str, source: str, parties: int) -> None:
    """Raises: Failure PS0501 for an obligation that is not on one party or one of its records."""
    span, relation = requirement.span, requirement.neighbours
    if requirement.outputs != (output,) or requirement.wrt != (source,):
        raise Failure("PS0501", span, f"solve takes requirements on {output} with respect to {source} here")
    if relation.adding:
        text = f"where a {relation.unit_name} may come or go, a crowd of one may become one of two, whose mean is up "
        text += "to half a range away: the noise of every crowd would be as large as that"
        raise Failure("PS0501", span, text, help="replacing one voter, or replacing one record")
    if relation.group != 1:
        text = "noise at statistics of parties is known where one unit changes"
        raise Failure("PS0501", span, text, help="replacing one voter, or replacing one record")
    known = isinstance(relation, ReplacingRecord | ReplacingVoter | ReplacingEverything)
    if not known or (isinstance(relation, ReplacingEverything) and parties > 1):
        raise Failure("PS0501", span, f"solve cannot protect {relation.describe()} here")


# --- the loss ------------------------------------------------------------------------------------------


def _simulated(model: Model, source: GraphNode) -> SimulatedLoss:
    match model.loss:
        case syntax.Over(operator="E", body=body, given=None):
            pass
        case None:
            raise without_loss(model)
        case other:
            raise Failure("PS0502", other.span, "solve predicts a loss of the form E[ ... ] here")
    known = [known.distribution for known in model.models if known.subject == source.name]
    if not known:
        text = f"nothing says how {source.name} is distributed, so no loss can be predicted"
        hint = f"add a data model under background: {source.name} ~ thurstone_mosteller(d, n)"
        raise Failure("PS0517", source.span, text, help=hint)
    return SimulatedLoss(known[0], SEED, MOST_CROWDS, spell(model.loss), tuple(_definitions(model, body)))


def _definitions(model: Model, body: syntax.Expr) -> Iterator[str]:
    """The computed values that the loss names, each with what it is computed as."""
    names = [name for name in names_used(body) if name in model.nodes]
    for name in dict.fromkeys(before for one in names for before in needed(model, one)):
        node = model.nodes[name]
        if node.kind is syntax.VariableKind.INTERMEDIATE and node.definition is not None:
            index = f"[{node.index}]" if node.index is not None else ""
            yield f"{name}{index} = {spell(node.definition)}"
