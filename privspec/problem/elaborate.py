"""From the typed graph to the problem: deterministic and exact; what is expected to be cut of people's records.

Nothing of the language is left in a problem: no names to resolve, no expression to evaluate. `line` and `text` say
where an item comes from; they serve pages, and no check looks at them. It is in the kernel's own forms, which say what
may be written; the kernel derives nothing from what is built here: it reads the plan.

A `Unit` is an "entry", "record", "party" (`party` names the index set), "person" (all records that are kept of one, up
to `count` of a table) or "everything"; with `adding` units come and go, else they change in place; `apart` is the least
distance of changed entries of a stream, `exactly` where it is fixed. The rule of `Data` maps cells that do not fit. In
a `View`, `unnamed` are the outputs seen that depend on the input and that no line names for it, `lines` the obligations
that name all of those that depend on it (noise may tell more than they say); its `difference` is what one unit of `wrt`
changes in the numbers of the block, None where it has no limit; with `together` there is one for each of its units, all
of which move at once: of one person who may be in several inputs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from privspec.core.diagnostics import SpecError
from privspec.core.records import replace
from privspec.kernel.core.problem import (
    FORMAT,
    AskedMeasure,
    Computed,
    ContributionBound,
    Data,
    Fact,
    Frame,
    Obligation,
    PublicValue,
    Share,
    Unit,
    View,
)
from privspec.kernel.core.reading import Grid, JsonNode, Refused
from privspec.kernel.measures import PURE
from privspec.kernel.trust import Asserted as AssertedMove
from privspec.kernel.trust import Trust
from privspec.kernel.writing import exact_grid, write
from privspec.language import syntax
from privspec.language.walk import names_used
from privspec.model.domains import Between, Domain, Table, unknown_keys
from privspec.model.evaluate import written
from privspec.model.graph import GraphNode, Model, once
from privspec.model.measures import AskedMeasure as ModelMeasure
from privspec.model.measures import Chosen, MeasureAt, Personalised
from privspec.model.neighbours import (
    Asserted,
    ByNeighbour,
    GivenTheModel,
    InputBlock,
    NeighbourRelation,
    ReplacingOneOf,
    ReplacingPerson,
    ReplacingVoter,
    Spaced,
)
from privspec.model.observers import Observer, Together, looks, together, units
from privspec.model.observers import Unit as Change
from privspec.model.priors import law_of
from privspec.model.reports import Failure
from privspec.model.requirements import Requirement
from privspec.model.targets import environment
from privspec.problem.terms import factor_of, public_number
from privspec.registry import draws_a_winner, family_of

if TYPE_CHECKING:
    from privspec.kernel.derived import Derived
    from privspec.kernel.designs import Cut
    from privspec.kernel.persons import People


ELABORATOR = "1"
"""Version of the rules by which a spec becomes a problem: raised whenever one spec may give another problem."""


WITH_FACTS = ("table", "votes")
"""Forms whose rows are the data that exist."""
Problem = Frame
"""What a spec promises and wants: the frame that the kernel reads, with its block in the kernel's types."""


@once
def elaborate(model: Model) -> Problem:
    """The problem of a spec.

    Raises: SpecError PS05xx for what no block can say.
    """
    try:
        found = Problem(
            format=FORMAT,
            elaborator=ELABORATOR,
            name=model.name,
            trust=Trust(model.trust.name, model.trust.colluding),
            data=tuple(data_of(model, node) for node in model.inputs),
            public=tuple(public_values(model)),
            # while choices are open, each alternative has lines of its own
            obligations=() if model.open else tuple(obligation_of(model, line) for line in model.requirements),
            views=() if model.open else views_of(model),
            blocks=(block_of(model),),
            computed=tuple(Computed(one.name, one.sources, one.text, one.line) for one in model.computed),
            facts=tuple(Fact(one.line, one.text) for one in model.facts),
        )
        if not model.open and not model.chosen:
            cut_of(model, found)  # a law that says nothing of the error is refused
    except Failure as failure:
        raise failure.of_spec(model.source) from failure
    return found


def views_of(model: Model) -> tuple[View, ...]:
    """Each input and observer of whom no line names all that they see, for every unit in which the input may move."""
    found: list[View] = []
    for look in looks(model):
        seen = tuple(name for name in look.observer.outputs if name in model.nodes)
        named = [set(model.exposed(line)) for line in model.requirements if look.input in line.bounded]
        if not seen or any(set(seen) <= outputs for outputs in named):
            continue
        found.extend(
            View(
                input=look.input,
                observer=look.observer.name,
                outputs=seen,
                unnamed=look.unnamed,
                lines=look.joined if look.outputs else (),
                wrt=unit.wrt,
                neighbours=unit.relation.describe(),
                units=units_of(unit.relation, unit.wrt),
                difference=_moved(model, unit, seen, look.observer),
            )
            for unit in units(model, look.input)
        )
    # a line may move all of a person already
    stated = [(one.observer, {*one.wrt}, one.neighbours) for one in found]
    people = (one for one in together(model) if (one.observer.name, {*one.inputs}, one.neighbours) not in stated)
    return (*found, *(_view_of_people(model, one) for one in people))


def _moved(model: Model, unit: Change, seen: tuple[str, ...], who: Observer) -> Any:
    """What a unit changes in what somebody sees."""
    span = model.block(unit.wrt[0]).span
    line = Requirement(seen, unit.wrt, unit.relation, MeasureAt(PURE, (Fraction(1),)), (who.name,), span, 0, "")
    return family_of(model).difference(model, line)


def _view_of_people(model: Model, one: Together) -> View:
    """What one person may have in several inputs, all at once."""
    seen = tuple(name for name in one.observer.outputs if name in model.nodes)
    first, *others = (_moved(model, unit, seen, one.observer) for unit in one.units)
    moved: Any = (first, *others) if others else first
    return View(
        input=one.inputs[0],
        observer=one.observer.name,
        outputs=seen,
        unnamed=(),
        lines=(),
        wrt=one.inputs,
        neighbours=one.neighbours,
        units=tuple(found for unit in one.units for found in units_of(unit.relation, unit.wrt)),
        difference=moved,
        together=True if others else None,
    )


def block_of(model: Model) -> Any:
    """The numbers of a spec, in the forms of the first reading that takes it.

    Raises: SpecError PS05xx.
    """
    family = family_of(model)
    if model.facts and family.form not in WITH_FACTS:
        hint = "give inputs and outputs few values each, as in output z in 0..10, one output a spec"
        text = "solve takes facts about data where results are drawn from a table, or are winners of votes"
        raise SpecError.at(model.source, model.facts[0].relation.span, "PS0501", text, help=hint)
    for line in model.requirements:
        if isinstance(line.neighbours, ByNeighbour) and family.form != "table":
            text = f"solve computes {line.neighbours.describe()} where results are drawn from a table"
            hint = "give inputs and outputs few values each, as in output z in 0..10, one output a spec"
            raise SpecError.at(model.source, line.span, "PS0501", text, help=hint)
        special = isinstance(line.neighbours, Asserted | Spaced) or line.neighbours.by_id
        persons = line.neighbours.by_id and family.form in ("keys", "selection", "marginals", "system")
        if special and not persons and family.form not in ("linear", "stream", "priced", "design"):
            text = f"solve computes {line.neighbours.describe()} of sums and counts in one block of noise only"
            hint = "release it by a spec of its own"
            raise SpecError.at(model.source, line.span, "PS0501", text, help=hint)
        parties = any(model.block(name).index for name in line.wrt)
        if line.neighbours.by_id and (parties or not model.trust.central):
            text = "records of one person are counted by one keeper who holds them all"
            raise SpecError.at(
                model.source, line.span, "PS0501", text, help="leave `trust` and the index of the table out"
            )
    try:
        found = family.reads.block_of(model)
    except Refused as reason:  # what is built by the kernel's rules is no block, and no plan for it would be accepted
        text = f"what this spec asks for {reason}"
        raise SpecError.at(model.source, model.spec.span, "PS0501", text) from reason
    return found


def data_of(model: Model, node: GraphNode) -> Data:
    """An input as it is held."""
    block = model.block(node.name)
    rule = "clip" if block.layout == "entries" and block.domain.bounds != (None, None) else "map"
    if (block.layout == "cells" or _of_votes(model)) and _comes_and_goes(model, node.name):
        rule = "drop"
    if unknown_keys(node.domain):
        rule = "drop"  # a record without a key has none to be counted under
    line, function = model.line(node), model.through.get(node.name)
    said = {
        relation.describe(): AssertedMove(function, relation.norm, relation.amount, relation.describe(), relation.line)
        for relation in (requirement.neighbours for requirement in model.requirements if node.name in requirement.wrt)
        if isinstance(relation, Asserted) and function is not None
    }
    table, domain = block.base_domain, node.domain or block.domain
    return Data(
        name=node.name,
        domain=domain.describe(),
        rule=rule,
        party=node.index,
        line=line,
        asserted=tuple(said.values()) or None,
        kept=kept_of(model, node),
        derived=tuple(_derived(table)) if isinstance(table, Table) else (),
        people=_people(table) if isinstance(table, Table) else None,
    )


def _derived(table: Table) -> Iterator[Derived]:
    """The columns of a table that follow from others, as far as they are used."""
    if table.derived:
        from privspec.model.derived import kernel_form
    for name, one in table.derived:
        if name in table.names:
            yield kernel_form(name, one)


def _people(table: Table) -> People | None:
    """Its columns that are made of all records of a person, as far as they are used."""
    found = tuple(one.made for name, one in table.gathered if name in table.columns)
    if not found:
        return None
    from privspec.kernel.persons import People

    return People(found, table.persons)


def _of_votes(model: Model) -> bool:
    if not draws_a_winner(model):
        return False
    from privspec.problem.voting import voting  # most specs are of no votes, and it is many modules away

    return voting(model) is not None


def kept_of(model: Model, node: GraphNode) -> ContributionBound | None:
    """What is kept of a person's records in a table, where a line is about one person.

    Raises: SpecError PS0501 where lines want different records kept, or one is about something else that may change
    which are kept.
    """
    lines = [requirement for requirement in model.requirements if node.name in requirement.wrt]
    found = {
        one.neighbours.kept: one
        for one in lines
        if isinstance(one.neighbours, ReplacingPerson) and one.neighbours.by_id
    }
    other = next((one for one in lines if not one.neighbours.by_id), None)
    if not found:
        return None
    if len(found) > 1 or other is not None:
        (first, one), *rest = found.items()
        span = other.span if other is not None else rest[0][1].span
        text = f"line {one.line} keeps {_kept_of_each(first)} of {node.name}, and this line is about something else"
        hint = f"records are kept once, for all lines: write {one.neighbours.describe()} in each line about {node.name}"
        raise SpecError.at(model.source, span, "PS0501", text, help=hint)
    return next(iter(found))


def _kept_of_each(kept: ContributionBound) -> str:
    """As in "5 records of each person, 2 in one cell"."""
    cell = "" if kept.per_cell is None else f", {kept.per_cell} in one cell"
    return f"{kept.most} record{'s' * (kept.most > 1)} of each {kept.person}{cell}"


def _comes_and_goes(model: Model, name: str) -> bool:
    """Whether every line about a table adds or removes records: only then may one that does not fit be left out.

    To replace a record that fits by one that is left out would change their number, which no line covers.
    """
    lines = [requirement.neighbours for requirement in model.requirements if name in requirement.wrt]
    return bool(lines) and all(relation.adding for relation in lines)


def public_values(model: Model) -> list[PublicValue]:
    """Files and given constants that the numbers rest on."""
    found = []
    for name, array in sorted(model.files.items()):
        digest = hashlib.sha256(written(array)).hexdigest()
        where = f"the file {name.split(':', 1)[1]}" if ":" in name else "asserted: not computed from the data"
        found.append(PublicValue(name, tuple(int(n) for n in array.shape), digest, where))
    return found


def obligation_of(model: Model, requirement: Requirement) -> Obligation:
    """A line of privacy."""
    return Obligation(
        outputs=requirement.outputs,
        seen=model.exposed(requirement),
        wrt=requirement.wrt,
        neighbours=requirement.neighbours.describe(),
        units=units_of(requirement.neighbours, requirement.wrt),
        observers=requirement.observers,
        measure=measure_of(requirement.measure, model),
        line=requirement.line,
        text=requirement.text,
    )


def units_of(relation: NeighbourRelation, inputs: tuple[str, ...]) -> tuple[Unit, ...]:
    """What one difference may change: one of these units."""
    if isinstance(relation, Asserted):
        return units_of(relation.inner, inputs)
    if isinstance(relation, ByNeighbour):
        (unit,) = units_of(relation.inner, inputs)
        return (replace(unit, graph=relation.written.partition(" by a neighbour in ")[2]),)
    if isinstance(relation, Spaced):
        (unit,) = units_of(relation.inner, inputs)
        return (replace(unit, apart=relation.apart, exactly=relation.exactly),)
    if isinstance(relation, ReplacingOneOf):
        return tuple(unit for own, names in relation.joined for unit in units_of(own, names))
    party = relation.party if isinstance(relation, ReplacingVoter) else None
    kind = "party" if party is not None else "person" if relation.by_id else relation.unit
    if isinstance(relation, GivenTheModel) and relation != GivenTheModel():
        kind = "value given the model"
    return (Unit(kind, inputs, relation.adding, relation.group, party, None, exactly=False),)


def measure_of(measure: ModelMeasure, model: Model) -> AskedMeasure:
    """Its name and exact amounts.

    Raises: SpecError PS0524 for an amount that is no multiple of a chosen number, nor a number divided by one.
    """
    if isinstance(measure, Chosen):
        amounts = tuple(chosen_amount(one, model) for one in measure.amounts_as_written)
        return AskedMeasure(measure.name, tuple(zip(measure.figures, amounts, strict=True)), None, ())
    each = tuple(measure_of(one, model) for one in measure.each) if isinstance(measure, Personalised) else ()
    metric = measure.metric if measure.of.by_distance and not each else None
    return AskedMeasure(measure.name, tuple(measure.amounts.items()), metric, each)


def chosen_amount(expr: syntax.Expr, model: Model) -> Fraction | Share:
    """An amount in terms of a number that solving picks.

    Raises: SpecError PS0524.
    """
    numbers = [node.name for node in model.choices if node.name in names_used(expr)]
    found = factor_of(expr, numbers[0], model) if len(numbers) == 1 else None
    if not numbers:
        return public_number(expr, model)
    if found is None:
        message = "an amount that is chosen is a number, a multiple of it, or a number divided by it"
        hint = f"O is {PURE.name} wrt x, or (2 * epsilon)-{PURE.word}, or (budget / rounds)-{PURE.word}"
        raise SpecError.at(model.source, expr.span, "PS0524", message, label="not of such a form", help=hint)
    return Share(numbers[0], *found)


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
    cells = cell_chances(model, held) or _shares_of_ends(model, held)
    found = Cut(law.table, law.people, numbers(law.chances), cells, Fraction(0))
    try:
        return replace(found, lost=found.derived(JsonNode(write(problem), "problem")))
    except Refused as why:
        said = {one.subject for one in model.models}
        missing = [one for name, _ in held.schema or () if (one := f"{law.table}.{name}") not in said]
        columns = ", ".join(f"{name} ~ uniform" for name in missing)
        hint = f"say where records lie, by a law of each column: {columns}"
        text = f"what is cut cannot be predicted: the plan {why}"
        raise Failure("PS0531", law.span, text, help=None if found.cells else hint) from why


def _shares_of_ends(model: Model, held: InputBlock) -> Grid | None:
    """The same where columns are measured: a number counts at both of its ends, by shares whose means a law says.

    What a record adds to a square is then at most what it would at its ends, by those chances.
    """
    from privspec.problem.cells import mean_within

    laws = {one.subject.partition(".")[2]: one for one in model.models if one.subject.partition(".")[0] == held.name}
    schema, each = held.schema or (), list[list[Fraction]]()
    if not {name for name, _ in schema} <= set(laws):
        return None
    for name, domain in schema:
        if isinstance(domain, Between):
            upper = (mean_within(model, laws[name], domain.low, domain.high) - domain.low) / (domain.high - domain.low)
            each.append([1 - upper, upper])
        else:
            each.append(list(law_of(laws[name], list(domain.elements()), environment(model))))
    return numbers([prod(some, start=Fraction(1)) for some in product(*each)])


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


def cell_chances(model: Model, held: InputBlock) -> Grid | None:
    """The chances of the cells in which a record of a table lies, where laws of all of its columns say so, exactly."""
    return chances_of(model, held, held.schema or ()) if held.whole else None


def chances_of(model: Model, held: InputBlock, columns: Iterable[tuple[str, Domain]]) -> Grid | None:
    """The same of the cells of some columns."""
    laws, domains = {one.subject: one for one in model.models}, {f"{held.name}.{name}": own for name, own in columns}
    if not set(domains) <= set(laws):
        return None
    each = [law_of(laws[name], list(domain.elements()), environment(model)) for name, domain in domains.items()]
    return numbers([prod(some, start=Fraction(1)) for some in product(*each)])


def numbers(values: Sequence[Fraction]) -> Grid:
    """A list of exact numbers."""
    return exact_grid(values, (len(values),))
