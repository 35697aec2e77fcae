"""Which specs are votes, and whether a table could list all that there is to list."""

from __future__ import annotations

from math import comb

from privspec.language import syntax
from privspec.mechanisms.lotteries.register import RULES
from privspec.model.domains import Domain, FiniteSet, PartialRankingOf, RankingOf
from privspec.model.evaluate import bind_call, evaluate, value_type
from privspec.model.graph import GraphNode, Model
from privspec.model.library import Argument, Arguments
from privspec.model.lotteries import Drawn
from privspec.model.measures import Chosen
from privspec.model.spaces import Listed, space_of
from privspec.model.targets import environment
from privspec.model.trust import Nobody
from privspec.model.walk import walk
from privspec.model.worlds import ROW_LIMIT


def voting(model: Model) -> GraphNode | None:
    """The ballots of a vote: the one input, one ballot for each party, with a winner that stands free; else None."""
    if len(model.inputs) != 1 or len(model.outputs) != 1 or model.components:
        return None
    (source,), (output,) = model.inputs, model.outputs
    ballots = isinstance(source.domain, FiniteSet | RankingOf | PartialRankingOf)
    free = output.definition is None and isinstance(output.domain, FiniteSet)
    if not ballots or not free or source.index is None:
        return None
    return source if _compared(model, source, output.name) else None


def _compared(model: Model, source: GraphNode, output: str) -> bool:
    """Whether the winner is compared with a lottery of the votes, or with the votes one by one."""
    for expr in _lines(model):
        for node in walk(expr):
            match node:
                case syntax.Call(function="total_variation" | "mismatch", arguments=arguments):
                    names = [a for a in arguments if isinstance(a, syntax.Name) and a.id == output]
                    others = [a for a in arguments if a not in names]
                    if names and any(_is_ballots(model, other, source) for other in others):
                        return True
    return False


def _lines(model: Model) -> tuple[syntax.Node, ...]:
    loss = () if model.loss is None else (model.loss,)
    return (*loss, *(target.target for target in model.accuracy))


def _is_ballots(model: Model, expr: syntax.Node, source: GraphNode) -> bool:
    match expr:
        case syntax.Index(base=syntax.Name(id=name)):
            return name == source.name
        case syntax.Name() | syntax.Call():
            return drawn_of(model, expr, source) is not None
    return False


def drawn_of(model: Model, expr: syntax.Node, source: GraphNode) -> Drawn | None:
    """The lottery that draws a value from the votes, by name or written out; None for anything else.

    Raises: Failure where a setting of the lottery is wrong.
    """
    match expr:
        case syntax.Name(id=name) if (node := model.nodes.get(name)) is not None and node.definition is not None:
            return drawn_of(model, node.definition, source)
        case syntax.Call(arguments=(syntax.Name(id=name), *others)) if name == source.name:
            if any(isinstance(other, _SPECIAL) for other in others):
                return None
            public = environment(model)
            values = [evaluate(other, public) for other in others]  # type: ignore[arg-type]
            votes = Argument(source.type, None, source.domain, expr.span)
            settings = tuple(Argument(value_type(value), value, None, expr.span) for value in values)
            return bind_call(expr, Arguments((votes, *settings))).drawn
    return None


_SPECIAL = (syntax.Keyword, syntax.Member, syntax.Comprehension, syntax.RangeOf)


# --- tables ---------------------------------------------------------------------------------------


def beyond_tables(model: Model, source: GraphNode) -> bool:
    """Whether a table is not for this vote: by its requirements and options, or because it would have too many rows."""
    if any(r.neighbours.adding or isinstance(r.measure, Chosen) for r in model.requirements):
        return True
    if isinstance(model.trust, Nobody):
        return True
    if set(model.families) & {rule.family for rule in RULES} and "table" not in model.families:
        return True
    return not _listed(model, source)


def _listed(model: Model, source: GraphNode) -> bool:
    """Whether a table has few rows, found without counting them where there are very many."""
    assert source.domain is not None and source.index is not None
    kinds, voters = source.domain.size or 0, model.parties[source.index].size
    if kinds > 1 and (kinds - 1) * voters >= ROW_LIMIT:  # there are more classes of counts than that
        return False
    if comb(voters + kinds - 1, voters) > ROW_LIMIT:
        return False
    space = space_of(model, source)
    return not isinstance(space, Listed) or 0 < space.size <= ROW_LIMIT


def kind_of(domain: Domain | None) -> tuple[str, int]:
    """How plans call ballots, and how many alternatives one of them names at most."""
    match domain:
        case RankingOf(alternatives=alternatives):
            return "ranking", len(alternatives)
        case PartialRankingOf(places=places):
            return "partial ranking", places
    return "first choice", 1
