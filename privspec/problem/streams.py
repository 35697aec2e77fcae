"""Running totals of a long row of numbers or vectors, in numbers: who is hidden, and what an error costs.

Nothing of the square of the row's length is built. What makes such a block is the form of a spec: all that is released
are the running totals of one input, the loss adds up their squared errors with one weight, and one line hides entries
or records that are replaced, of which one person has some at distances.
"""

from __future__ import annotations

from fractions import Fraction

from privspec.kernel.core.linear import Released
from privspec.kernel.core.reading import Refused
from privspec.kernel.streams import MOST_STEPS, MOST_TIMES, Stream
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.model.graph import Model, once
from privspec.model.library import Tally
from privspec.model.measures import Personalised
from privspec.model.neighbours import NeighbourRelation, ReplacingEntry, ReplacingRecord, Spaced
from privspec.model.reports import Failure
from privspec.problem.linear import held_of
from privspec.problem.marginals import OtherFormError, Reader, alone, gaussian
from privspec.registry import of_a_long_row

TOTALS = (Tally((0,), frozenset({0})),)
"""All numbers of the input, added up in order."""


class StreamBlock(Stream):
    """Running totals of an input; the loss is the sum of squared errors, times a weight."""

    __slots__ = ()

    def words(self) -> tuple[str, ...]:
        """The input, what is released, and the loss."""
        what = f"{self.steps} numbers" if self.each == 1 else f"{self.steps} vectors of {self.each} numbers"
        found = [
            f"{self.source} is a row of {what}.",
            f"{self.released.name} is the running totals of {self.source}, plus noise that averages to 0.",
            f"The loss is the sum of expected squared errors, times {self.weight}: `{self.loss}`.",
        ]
        return (*found, *(("Noise may be of the family gaussian only.",) if self.families else ()))


class _Totals(Reader):
    """Reads expressions as running totals of the input."""

    def counts(self, expr: syntax.Node | None) -> tuple[Tally, ...]:
        (source,), nodes = self.model.inputs, self.model.nodes
        match expr:
            case syntax.Call(function="prefix_sums", arguments=(syntax.Name(id=name),)) if name == source.name:
                return TOTALS
            case syntax.Name(id=name) if name in nodes and nodes[name].kind is syntax.VariableKind.INTERMEDIATE:
                return self.counts(nodes[name].definition)
            case _:
                raise OtherFormError

    def _size(self, tables: tuple[Tally, ...]) -> int:
        return self.model.blocks[0].size


def reads(model: Model) -> bool:
    """Whether a spec is about the running totals of one long input, and about nothing else."""
    return _found(model) is not None


def block_of(model: Model) -> StreamBlock:
    """The block of a spec that `reads` takes."""
    found = _found(model)
    assert found is not None
    return found


@once
def _found(model: Model) -> StreamBlock | None:
    if not of_a_long_row(model) or not alone(model) or not gaussian(model):
        return None
    if len(model.requirements) != 1 or model.blocks[0].layout != "entries":
        return None
    (line,), (block,), (output,) = model.requirements, model.blocks, model.outputs
    if isinstance(line.measure, Personalised) or model.exposed(line) != (output.name,):
        return None
    if not _hides(line.neighbours, block.size // max(block.record_length, 1)):
        return None
    try:
        reader = _Totals(model)
        terms, worst = reader.loss()
        weight = sum((weight for _, _, weight in terms[0]), Fraction(0))
        if worst or len(terms) > 1 or reader.known.get(output.name) != TOTALS:
            return None
        released = Released(output.name, 0, block.size, tuple(output.type.shape), output.definition is not None)
        return StreamBlock(held_of(block), released, weight, spell(model.loss) if model.loss else "", model.families)
    except (OtherFormError, Failure, Refused):
        return None


def _hides(relation: NeighbourRelation, steps: int) -> bool:
    """Whether it is about entries or records that are replaced, at distances where there are several."""
    inner = relation.inner if isinstance(relation, Spaced) else relation
    apart = relation.apart if isinstance(relation, Spaced) else steps
    few = relation.group == 1 or (isinstance(relation, Spaced) and relation.group <= MOST_TIMES)
    plain = type(inner) in (ReplacingEntry, ReplacingRecord) and not relation.adding and not inner.adding
    return plain and few and apart > 0 and steps <= MOST_STEPS
