"""Values of parties of which only histograms are taken: a table of a record of each, to whoever can add them up."""

from __future__ import annotations

from privspec.core.records import replace
from privspec.language import syntax
from privspec.language.walk import every
from privspec.model.domains import FiniteSet, Grid, IntegerRange, PartialRankingOf, RankingOf, Table
from privspec.model.graph import GraphNode, Model
from privspec.model.library import function_of
from privspec.model.measures import Personalised
from privspec.model.neighbours import InputBlock
from privspec.model.requirements import EachPart

COUNTED = (FiniteSet, IntegerRange, Grid)
"""Domains whose values a histogram counts."""
VOTES = (*COUNTED, RankingOf, PartialRankingOf)


def with_tallies(model: Model) -> Model:
    """With the counts of values as the numbers of such inputs, and of no others.

    Not where everybody has figures of their own, and so is told apart, nor where parties report alone.
    """
    apart = {name for line in model.requirements if isinstance(line.measure, Personalised) for name in line.wrt}
    together = not model.trust.alone and not isinstance(model.trust, EachPart)
    blocks, start = list[InputBlock](), 0
    for block in model.blocks:
        node = model.nodes[block.name]
        tallied, domain = together and block.name not in apart and _only_tallied(model, node), node.domain
        if tallied and domain is not None and not block.tallied:
            table = Table(((block.name, domain),), records=1)
            block = replace(block, stop=block.start + table.cell_count, layout="cells", domain=table, tallied=True)
        elif block.tallied and not tallied and domain is not None:
            block = replace(block, stop=block.start + node.type.size, layout="entries", domain=domain, tallied=False)
        blocks.append(replace(block, start=start, stop=start + block.size))
        start += block.size
    return replace(model, blocks=tuple(blocks))


def _only_tallied(model: Model, node: GraphNode) -> bool:
    """Whether each party holds one of finitely many values, of which only sums over all parties are looked at."""
    listed = [output.domain is not None and output.domain.size is not None for output in model.outputs]
    if not node.index or len(node.type.shape) != 1 or not isinstance(node.domain, VOTES) or all(listed):
        return False
    calls = [call for expr in model.expressions for call in every(expr, syntax.Call) if _adds(call)]
    counted = sum(isinstance(arg, syntax.Name) and arg.id == node.name for call in calls for arg in call.arguments)
    used = sum(name.id == node.name for expr in model.expressions for name in every(expr, syntax.Name))
    return 0 < counted == used


def _adds(call: syntax.Call) -> bool:
    """Whether it is a sum over all votes of what each of them counts for."""
    return call.function == "histogram" or function_of(call).additive
