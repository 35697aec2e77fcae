"""What is cut of people's records, by a public law of how many they have: what it is expected to add to a loss."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from privspec.core.records import replace
from privspec.kernel.core.reading import Item, Refused
from privspec.language.walk import names_used
from privspec.model.graph import Model
from privspec.model.neighbours import InputBlock
from privspec.model.priors import law_of
from privspec.model.reports import Failure
from privspec.model.requirements import Requirement
from privspec.model.targets import environment
from privspec.problem.form import Numbers, document

if TYPE_CHECKING:
    from privspec.kernel.designs import Cut
    from privspec.problem.types import Problem


def cut_of(model: Model, problem: Problem) -> Cut | None:
    """What is cut of people's records, where a law says how many they have; None where none does, and none is needed.

    Raises: Failure PS0531 where it is needed, because how many are kept is chosen, or does not say enough.
    """
    line = next((one for one in model.requirements if one.neighbours.by_id and _is_chosen(model, one)), None)
    if line is None and not model.records:
        return None
    kept = {data.name for data in problem.data if data.kept is not None}
    if len(model.records) != 1 or {one.table for one in model.records} != kept:
        where, whose = (line.wrt[0], line.neighbours.unit_name) if line else (model.records[0].table, "person")
        text = "what is cut is known of one table, of which only so many records of each person are kept, by one law"
        hint = f"under background, one line: count({where}, by = {{{whose}}}) ~ poisson(4)"
        raise Failure("PS0531", line.span if line else model.records[0].span, text, help=hint)
    from privspec.kernel.designs import Cut  # reads every form of block

    (law,), held = model.records, model.block(model.records[0].table)
    found = Cut(law.table, law.people, numbers(law.chances), _cells(model, held), Fraction(0))
    try:
        return replace(found, lost=found.derived(Item(document(problem), "problem")))
    except Refused as why:
        columns = ", ".join(f"{law.table}.{name} ~ uniform" for name, _ in held.schema or ())
        hint = f"say in which cells records lie, by uniform or categorical(weights): {columns}"
        text = f"what is cut cannot be predicted: the plan {str(why).partition(' ')[2]}"
        raise Failure("PS0531", law.span, text, help=None if found.cells else hint) from why


def _is_chosen(model: Model, line: Requirement) -> bool:
    """Whether the number of records in a line is one that is chosen."""
    units = (
        clause.unit
        for one in model.spec.privacy
        if one.span == line.span
        for clause in one.clauses
        if hasattr(clause, "unit")
    )
    return any(set(names_used(unit)) & set(model.chosen) for unit in units)


def _cells(model: Model, held: InputBlock) -> Numbers | None:
    """The chances of the cells in which a record of a table lies, where laws of all of its columns say so, exactly."""
    laws = {one.subject.partition(".")[2]: one for one in model.models if one.subject.partition(".")[0] == held.name}
    schema = held.schema or ()
    if not {name for name, _ in schema} <= set(laws) or not held.whole:
        return None
    each = [law_of(laws[name], list(domain.elements()), environment(model)) for name, domain in schema]
    return numbers([prod(some, start=Fraction(1)) for some in product(*each)])


def numbers(values: Sequence[Fraction]) -> Numbers:
    """A list of exact numbers."""
    return Numbers.of(values, (len(values),))
