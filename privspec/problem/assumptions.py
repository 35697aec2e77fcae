"""What a plan takes for granted, and by whose word: a function of its spec and of what it executes, of nothing else.

A plan lists these sentences for those who read its JSON; whoever verifies it writes them again and compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from privspec.kernel.measures import LOCAL_APPROXIMATE
from privspec.kernel.trust import NORMS
from privspec.language import syntax
from privspec.model.conditions import unread_columns
from privspec.model.domains import Table
from privspec.model.graph import Model
from privspec.model.neighbours import (
    Asserted,
    ByNeighbour,
    GivenTheModel,
    InputBlock,
    NeighbourRelation,
    ReplacingEverything,
    ReplacingPerson,
    WholePerson,
)
from privspec.model.reports import listing
from privspec.model.requirements import Chain, Requirement, takes_distance
from privspec.model.values import show
from privspec.problem.words import kept_words
from privspec.registry import block_of, family_of

RANDOM_BITS = "Random bits come from the operating system and nobody else knows them."
Assumption = dict[str, Any]


def assumptions(model: Model, plan: Mapping[str, Any]) -> list[Assumption]:
    """Every sentence with its status and what it rests on.

    Args: plan, its document or the parts of it that a family has written: mechanism, guarantees and claims.
    Raises: KeyError, TypeError if the mechanism is not of the form of its family.
    """
    own = OF_FORM[family_of(model).form](model, plan)
    units = (*_units(model), *_graphs(model), *_different(model), *_facts(model))
    return [_trust(model), *_parts(model), *own, *_correlations(model), *units, *_cut(model)]


def _said(text: str, status: str, **because: Any) -> Assumption:
    return {"text": text, "status": status, "because": because}


def _drawn(note: str, what: str = "The noise drawn is exact") -> Iterator[Assumption]:
    """How what is random is drawn, by the note that proves it."""
    yield _said(f"{what}: no floating-point number takes part in it.", "proved", note=note)
    yield _said(RANDOM_BITS, "assumed", note=note)


ALONE = "by a public rule for it alone."
RULE = "by a public rule that looks at that {} alone (the release states it)."
AVERAGES = "The data model serves averages only: the guarantees hold for all {}."
CLIPPED = "Values of {} outside their declared domain are clipped to it before anything else."
OPTIMUM = "The optimum is relative to unbiased noise of the kinds that the plan names."


def _read(model: Model, name: str, text: str) -> Assumption:
    """How the data of an input are read, whose name the text leaves open."""
    return _said(text.replace("{}", name, 1), "proved", line=model.line(model.nodes[name]))


def _served(model: Model, name: str, text: str) -> Iterator[Assumption]:
    """What the data models of an input are used for."""
    return (_said(text, "asserted by the user", line=data.line) for data in model.models if name in data.subjects)


def _bounded(plan: Mapping[str, Any], text: str) -> Iterator[Assumption]:
    """What the optimum is relative to, where a bound is claimed."""
    if plan["claims"].get("bound") is not None:
        yield _said(text, "proved", claim="bound")


def _trust(model: Model) -> Assumption:
    """Who sees the raw data."""
    stated = [option for option in model.spec.options if isinstance(option, syntax.Trust)]
    stated += [part.stated for part in model.components if part.stated is not None]
    line = next((model.line(one) for one in stated), None)
    because = {"line": line} if line else {"note": "trust-by-default"}
    return _said(f"Trust: {model.trust.describe()}.", "assumed", **because)


def _parts(model: Model) -> Iterator[Assumption]:
    """Whose lines are those of other files, and which data parts are about because of their names alone."""
    starts = dict.fromkeys(model.source.position(start)[0] for start, _ in model.source.files[1:])
    for first, (_, file) in zip(starts, model.source.files[1:], strict=True):
        end = first + file.text.rstrip("\n").count("\n")
        text = f"Lines {first} to {end} are those of {Path(file.name).name}, in the names of the whole."
        yield _said(text, "proved", line=first)
    for part in model.components:
        for own in part.by_name:
            text = f"The {own} of {part.name} is taken to be {part.links[own]}: nothing else was passed."
            yield _said(text, "assumed", line=model.line(part))


def _different(model: Model) -> Iterator[Assumption]:
    """Inputs that are said to be of different people, or of the same: who is in several is protected less."""
    for one in model.different:
        text = f"Nobody is in two of {listing(one.names)}: whoever is, is protected less."
        yield _said(text, "asserted by the user", line=model.line(one))
    for one in model.same:
        text = f"Somebody may be in all of {listing(one.names)}: the plan states what all lines let through together."
        yield _said(text, "asserted by the user", line=model.line(one))


def _graphs(model: Model) -> Iterator[Assumption]:
    """Lines that compare values that a graph joins."""
    for requirement in model.requirements:
        if isinstance(requirement.neighbours, ByNeighbour):
            text = (
                f"Line {requirement.line} hides a value among its neighbours in the graph: among values several steps "
                "away as often as there are steps, and not among values to which no way leads."
            )
            yield _said(text, "proved", note="group-privacy")


def _facts(model: Model) -> Iterator[Assumption]:
    """What is true of all data: nothing is promised of others."""
    for one in model.facts:
        text = (
            f"Line {one.line} is true of all data ({one.text}). Nothing is promised of data of which it is not, and "
            "they are compared with no others."
        )
        yield _said(text, "asserted by the user", line=one.line)


def _units(model: Model) -> Iterator[Assumption]:
    """Units of privacy that no line names; lines about one person's report say of themselves what they compare."""
    for requirement in model.requirements:
        if requirement.unit_by_default and not requirement.measure.local and not takes_distance(requirement):
            unit: NeighbourRelation = requirement.neighbours
            text = f"The unit of privacy, {unit.describe()}, was taken by default."
            yield _said(text, "assumed", line=requirement.line)
        if isinstance(requirement.neighbours, WholePerson):
            yield from _made(model, requirement.neighbours, requirement)
        elif isinstance(requirement.neighbours, ReplacingPerson) and requirement.neighbours.by_id:
            yield from _kept(requirement.neighbours, requirement)
        elif isinstance(requirement.neighbours, ReplacingPerson):
            person, most = requirement.neighbours.person, requirement.neighbours.group
            text = (
                f"No {person} has more than {most} records in the data: nothing says whose a record is, and whoever "
                "has more is protected less."
            )
            yield _said(text, "assumed", line=requirement.line)


def _kept(relation: ReplacingPerson, requirement: Requirement) -> Iterator[Assumption]:
    """What is counted of a person's records, and by whose word ids tell people apart."""
    tables = listing(requirement.wrt)
    text = f"Of {tables}, {kept_words(relation.kept)}. What is released is about the records that are kept."
    yield _said(text, "proved", note="people")
    text = f"Each {relation.person} has one id in {tables}: whoever has two counts as two, and is protected less."
    yield _said(text, "assumed", line=requirement.line)


def _made(model: Model, relation: WholePerson, requirement: Requirement) -> Iterator[Assumption]:
    """What a person's one record is made of, and by whose word ids tell people apart."""
    (table,) = requirement.wrt
    domain = model.block(table).base_domain
    tables = listing([one.table for one in domain.persons]) if isinstance(domain, Table) else table
    text = f"A record is made of all records that one {relation.person} has in {tables}, and of no others; a record "
    yield _said(f"{text}that says no {relation.person} is left out.", "proved", note="persons")
    text = f"Each {relation.person} has one id in {tables}: whoever has two counts as two, and is protected less."
    yield _said(text, "assumed", line=requirement.line)


def _cut(model: Model) -> Iterator[Assumption]:
    """What a law of records a person says of the error, where the number that is kept is given."""
    from privspec.problem.elaborate import cut_of, elaborate

    real = (not one.whole if one.schema else one.base_domain.spacing is None for one in model.blocks)
    if (model.models or model.chosen) and any(real):
        yield from _clipping(model)
    cut = cut_of(model, elaborate(model)) if model.records and not model.chosen else None
    if cut is not None:
        line = model.line(model.records[0])
        text = (
            f"The loss is about the records that are kept. By the law of line {line}, what is cut of {cut.people} "
            f"people adds {float(cut.lost):.6g} to it."
        )
        yield _said(text, "asserted by the user", line=line)


def _clipping(model: Model) -> Iterator[Assumption]:
    """What clipping to limits costs by a law; of limits that are chosen also where none says so."""
    from privspec.problem.clipping import clipped_of, limited
    from privspec.problem.elaborate import elaborate

    numbers = limited(model)
    if not numbers or elaborate(model).blocks[0].FORM != "linear":
        return
    found = clipped_of(model, elaborate(model))
    for one in numbers:
        if found is None or one.law is None:
            continue
        about = "counts that" if one.chosen else "is about clipped values"
        text = f"By the law of line {one.law.line}, clipping {one.name} to {show(one.low)}..{show(one.high)} adds "
        text += f"{float(found.lost):.6g} to the loss, which {about}."
        yield _said(text, "asserted by the user", line=one.law.line)
    for one in numbers:
        if one.chosen and (found is None or one.law is None):
            text = f"Nothing is known of what clipping {one.name} to limits that are chosen costs, and the choice does "
            yield _said(f"{text}not weigh it.", "assumed", line=model.line(model.nodes[one.block.name]))


def _correlations(model: Model) -> Iterator[Assumption]:
    """Lines about entries that are declared to tell of one another, and which do not count on that."""
    for chain in model.chains:
        lines = _lines(chain)
        for requirement in model.requirements:
            relation = requirement.neighbours
            if chain.subject in requirement.wrt and not isinstance(relation, GivenTheModel | ReplacingEverything):
                text = (
                    f"Line {requirement.line} compares with not taking part ({relation.describe()}). It does not bound "
                    f"what correlations tell: entries of {chain.subject} tell of one another ({lines})."
                )
                yield _said(text, "proved", line=requirement.line)


def _lines(chain: Chain) -> str:
    numbers = [str(number) for number, _ in chain.lines]
    return f"line{'s' if len(numbers) > 1 else ''} {' and '.join(numbers)}"


def _chain(model: Model, plan: Mapping[str, Any]) -> Iterator[Assumption]:
    block = plan["problem"]["blocks"][0]
    source, without = block["source"], plan["claims"]["without_model"]
    chain = next(one for one in model.chains if one.subject == source)
    yield _read(model, source, "An entry of {} that is none of its values counts as one of them, " + ALONE)
    written = "; ".join(words for _, words in chain.lines)
    numbers = _lines(chain)
    for number in block["lines"]:
        text = (
            f"Line {model.requirements[number].line} counts on the model of {source} in {numbers} ({written}), "
            "with the parameters that the plan states. Nothing checks it against data; if it is wrong, this line may "
            "not hold."
        )
        yield _said(text, "assumed", line=chain.lines[0][0])
    text = (
        f"Whatever the model: if one entry changes and no other does, epsilon is at most {_figure(without['entry'])}; "
        f"if all entries may change, at most {_figure(without['everything'])}."
    )
    yield _said(text, "proved", claim="no model")
    yield from _drawn("discrete-laplace")
    text = "The optimum is relative to discrete Laplace noise of one size, on the grid of the answers."
    yield from _bounded(plan, text)


def _points(model: Model, plan: Mapping[str, Any]) -> Iterator[Assumption]:
    source, note = plan["problem"]["blocks"][0]["source"], "real-points"
    yield _read(model, source, "What {} holds that is no point of its domain counts as one, " + ALONE)
    text = "A number of the data is the nearest double; one that is written with more digits counts as that."
    yield _said(text, "assumed", note=note)
    text = "Noise has as many digits as are asked for, and the point with its noise is rounded last: nothing else is."
    yield _said(text, "proved", note=note)
    yield _said(RANDOM_BITS, "assumed", note=note)
    if plan["loss"]["lower_bound"] is not None:
        text = "The optimum is relative to noise of one law, whatever the point."
        yield _said(text, "proved", claim="bound")
    yield from _served(model, source, "The data model serves averages only, and the error is the same at every point.")


def _cells(model: Model, plan: Mapping[str, Any]) -> Iterator[Assumption]:
    source = plan["problem"]["blocks"][0]["source"]
    yield _read(model, source, "What {} holds that is no number of its domain counts as one, " + ALONE)
    yield from _drawn("real-cells", "The report is drawn from exact probabilities")
    yield from _served(model, source, AVERAGES.format("data"))


def _frequencies(model: Model, plan: Mapping[str, Any]) -> Iterator[Assumption]:
    yield from _of_reports(model, plan, "local-histograms", "Sets", "value")


def _means(model: Model, plan: Mapping[str, Any]) -> Iterator[Assumption]:
    yield from _of_reports(model, plan, "local-means", "Reports", "number")
    yield from _served(model, plan["problem"]["blocks"][0]["source"], AVERAGES.format("data"))


def _of_reports(model: Model, plan: Mapping[str, Any], note: str, sent: str, held: str) -> Iterator[Assumption]:
    """What estimates from one report of each party rest on: what is `sent`, of the value or number that is `held`."""
    block = plan["problem"]["blocks"][0]
    yield _read(model, block["source"], f"What {{}} holds that is no {held} of its domain counts as one, " + ALONE)
    yield from _drawn(note, f"{sent} are drawn from exact probabilities")
    text = (
        f"The number of reports is public, and every {block['party']} sends one; whoever sends another than the plan "
        "says moves the estimates."
    )
    yield _said(text, "assumed", note=note)
    text = "Estimates are unbiased, from one report of each, none of which depends on another; bounds are among such."
    yield _said(text, "proved", note=note)


def _keys(model: Model, plan: Mapping[str, Any]) -> Iterator[Assumption]:
    (block,) = plan["problem"]["blocks"]
    text = "A record of {} without a key, or with a value that is not declared, is left out; which one that is "
    yield _read(model, block["source"], text + "follows from that record alone.")
    yield from _drawn("unknown-keys", "Keys are shown, and counted, by exact chances")
    text = "The law of the sizes of keys serves the loss only: the guarantees hold for all data."
    yield from (_said(text, "asserted by the user", line=data.line) for data in model.models)


def _selection(model: Model, plan: Mapping[str, Any]) -> Iterator[Assumption]:
    (held,), (block,) = plan["problem"]["data"], plan["problem"]["blocks"]
    fate = "is left out" if held["rule"] == "drop" else "counts as the first value"
    text = f"A record of {{}} without a {block['column']} that can be read {fate}, {RULE.format('record')}"
    yield _read(model, block["source"], text)
    yield from _drawn("scores", "The value is drawn from exact probabilities")
    for line in dict.fromkeys(one.line for one in model.models if one.subject.startswith(f"{block['source']}.")):
        yield _said(AVERAGES.format("data"), "asserted by the user", line=line)


def _figure(text: str) -> str:
    """An epsilon in five digits, rounded up."""
    near = f"{float(Fraction(text)):.5g}"
    return near if Fraction(near) >= Fraction(text) else f"{float(Fraction(text)) * (1 + 1e-5):.5g}"


def _linear(model: Model, plan: Mapping[str, Any]) -> Iterator[Assumption]:
    from privspec.kernel.laws.law import by_shape  # most of the kernel, which few of these need

    executed = plan["mechanism"]["executed"]
    note = by_shape()[executed["noise"]["shape"]].notes[-1]
    for block in model.blocks:
        if block.layout == "cells":
            yield _counted(model, block)
            continue
        if block.name in model.through:
            text = f"Values of {model.through[block.name]} outside their declared domain are clipped to it first."
            yield _read(model, block.name, text)
        else:
            yield _read(model, block.name, CLIPPED)
    yield from _asserted(model)
    yield from _drawn(note)
    if note == "shares":
        text = "The secure sum shows the sum and nothing else, and every party adds the share that it is meant to add."
        yield _said(text, "assumed", note=note)
    text = "The bound is about every mechanism that the plan names, its loss the worst over all data."
    yield from _bounded(plan, OPTIMUM if "unbiased" in (plan["loss"]["among"] or "") else text)
    if "shift" in executed:
        over = "at the worst data that their domains allow"
        if block_of(plan).get("law") is not None:
            over = "on average over the model of the data, which nothing checks"
        yield _said(f"Answers are pulled towards public values; the loss is that {over}.", "proved", note="pulled")
    for constant in block_of(plan)["constants"]:
        text = "{} is public: each run is given its value and adds it after the noise."
        yield _read(model, constant["name"], text) | {"status": "assumed"}
    if executed.get("of_inputs"):
        text = "Outputs are computed from noisy estimates of the inputs, which costs no privacy."
        yield _said(text, "proved", note="post-processing")


def _marginals(model: Model, plan: Mapping[str, Any]) -> Iterator[Assumption]:
    yield from (_counted(model, block) for block in model.blocks)
    separate = plan["mechanism"]["family"] == "laplace"
    yield from _drawn("discrete-laplace" if separate else "rounded-gaussian")
    yield from _bounded(plan, OPTIMUM)
    if separate:
        return
    text = "Tables are put together from the noisy parts of their sets of columns, which costs no privacy."
    yield _said(text, "proved", note="post-processing")


def _stream(model: Model, plan: Mapping[str, Any]) -> Iterator[Assumption]:
    yield from (_read(model, block.name, CLIPPED) for block in model.blocks)
    yield from _drawn("rounded-gaussian")
    yield from _bounded(plan, OPTIMUM)
    yield _said("Totals are computed from noisy answers, which costs no privacy.", "proved", note="post-processing")


def _counted(model: Model, block: InputBlock) -> Assumption:
    """How a table is read."""
    text = "Records of {} are counted by their declared attributes; one that does not fit is handled "
    text += RULE.format("record")
    lines = [one.neighbours for one in model.requirements if block.name in one.wrt]
    whose = {one.person for one in lines if isinstance(one, ReplacingPerson) and one.by_id}
    table = block.base_domain
    read = (*(name for name, _ in block.schema or ()), *(table.columns if isinstance(table, Table) else ()))
    if left := [one for one in unread_columns(model.spec, block.name, read) if one not in whose]:
        text += f" No question is about {listing(left)}, which {'is' if len(left) == 1 else 'are'} not read."
    return _read(model, block.name, text)


def _asserted(model: Model) -> Iterator[Assumption]:
    """Functions that nobody here can see into: by whose word they move so little."""
    for one in (line.neighbours for line in model.requirements):
        if isinstance(one, Asserted):
            name = next(name for name, function in model.through.items() if function == one.function)
            text = (
                f"The values of {one.function} that a run is given are those of {name}, and {one.describe()} of {name} "
                f"moves them by at most {show(one.amount)} ({NORMS[one.norm]}). Nothing checks it; if it is wrong, no "
                f"guarantee about {name} holds. Other releases of {name} are counted with this one only if they share "
                "a ledger (run --ledger)."
            )
            yield _said(text, "asserted by the user", line=one.line)


def _table(model: Model, plan: Mapping[str, Any]) -> Iterator[Assumption]:
    block = block_of(plan)
    text = "Values of {} outside its declared domain are handled " + RULE.format("value")
    yield from (_read(model, block.name, text) for block in model.blocks)
    yield from _drawn("tables", "Outputs are drawn from exact probabilities")
    if any(name not in {block.name for block in model.blocks} for name in block["of"]):
        text = f"The mechanism looks at {', '.join(block['of'])} only; the optimum is among such mechanisms."
        yield _said(text, "proved", note="tables")
    if block["prior"] is not None:
        text = "The data model serves the expected loss only: the guarantees hold for all data."
        if not any(isinstance(one.neighbours, GivenTheModel) for one in model.requirements):
            yield _said(text, "proved", note="tables")
    yield from _counted_on(model)
    for requirement, guarantee in zip(model.requirements, plan["guarantees"], strict=True):
        measure = requirement.measure
        if measure.of.each_output and "delta" in guarantee["achieved"]:
            # what a condition on each single output (Ramon & Basu 2020, 3.3) means for sets of outputs
            share = show(measure.amounts["delta"])
            exact = LOCAL_APPROXIMATE.at((show(measure.amounts["epsilon"]), "delta"))
            text = (
                f"Line {requirement.line} bounds each single output, by {share} over the number of "
                f"inputs. Over sets of outputs the table is {exact} with a true delta of "
                f"at most {guarantee['achieved']['delta']}."
            )
            yield _said(text, "proved", note="tables")


def _counted_on(model: Model) -> Iterator[Assumption]:
    """Lines that count on the model of the data, by the lines that declare it."""
    declared = {one.line for one in model.models} | {line for chain in model.chains for line, _ in chain.lines}
    where = f"line{'s' if len(declared) > 1 else ''} {listing([*map(str, sorted(declared))])}"
    for requirement in model.requirements:
        if isinstance(requirement.neighbours, GivenTheModel):
            text = (
                f"Line {requirement.line} counts on the model of the data in {where}. "
                "Nothing checks it against data; if it is wrong, this line may not hold."
            )
            yield _said(text, "assumed", line=min(declared))


def _votes(model: Model, plan: Mapping[str, Any]) -> Iterator[Assumption]:
    from privspec.kernel.laws.voting import BY_NAME

    mechanism, block = plan["mechanism"], block_of(plan)
    source = block["source"]
    note = BY_NAME[mechanism["family"]].note
    (held,) = plan["problem"]["data"]
    fate = "is left out" if held["rule"] == "drop" else "counts as the first of all ballots,"
    yield _read(model, source, f"What {{}} holds that is no ballot {fate} {RULE.format('ballot')}")
    yield from _drawn(note, "The winner is drawn from exact probabilities")
    if any(requirement.neighbours.adding for requirement in model.requirements):
        party = model.parties[block["party"]]
        text = (
            f"The guarantee holds for every number of voters; the {party.size} of the spec serve the loss and the "
            "figures only."
        )
        yield _said(text, "proved", note=note)
    if mechanism.get("rounds") is not None:
        text = (
            "From round to round, what the others do depends on a voter through the winners only, and nothing but the "
            "winners is published: not who took part, nor how many."
        )
        yield _said(text, "assumed", note="repeated-votes")
    yield from _served(model, source, AVERAGES.format("votes"))


def _statistic(model: Model, plan: Mapping[str, Any]) -> Iterator[Assumption]:
    from privspec.problem.statistics import block_of

    block = block_of(model)
    text = "Records of {} may have any size: the noise does not depend on it."
    if block.radius is not None:
        text = "Records of {} outside the ball are drawn in to it, each by itself."
    yield _read(model, block.source, text)
    data = next(one for one in model.models if one.subject == block.source)
    text = "Loss and ranking are predicted for data of the data model; the guarantees hold for all data."
    yield _said(text, "asserted by the user", line=data.line)
    yield _said(RANDOM_BITS, "assumed", note="post-processing")
    for route in block.routes:
        if route.at == plan["mechanism"]["route"] and route.estimated_within is not None:
            text = (
                f"What is made noisy is not the estimate that the spec names but the {route.name}. In that ball of its "
                "own the estimate is less often cut off. How far one unit moves it does not depend on that ball."
            )
            yield _said(text, "proved", note="probit-routes")


def _system(model: Model, plan: Mapping[str, Any]) -> Iterator[Assumption]:
    from privspec.problem.systems import part_names, parts_of

    said = []
    problems, made = plan["problem"]["blocks"][0]["parts"], plan["mechanism"]["components"]
    for part, name, problem in zip(parts_of(model), part_names(plan), problems, strict=True):
        found = OF_FORM[part.family.form](part.model, {**made[name], **problem})
        said += [one for one in found if one not in said]
    text = "Parts draw their noise independently; what they spend of a line is composed for one unit in all of them."
    if model.drawn is not None:
        text = f"What {model.drawn.name} and the case after it spend of a line is composed for one unit in both."
    yield _said(text, "proved", note="composition")
    yield from said


def _priced(model: Model, plan: Mapping[str, Any]) -> Iterator[Assumption]:
    from privspec.problem.priced import inner, inner_family

    (block,) = plan["problem"]["blocks"]
    alone = plan["problem"] | {"blocks": [block["block"]]}
    return OF_FORM[inner_family(model).form](inner(model), {**plan, "problem": alone})


OF_FORM: Mapping[str, Callable[[Model, Mapping[str, Any]], Iterator[Assumption]]] = {
    "chain": _chain,
    "points": _points,
    "cells": _cells,
    "frequencies": _frequencies,
    "means": _means,
    "keys": _keys,
    "selection": _selection,
    "table": _table,
    "statistics": _statistic,
    "votes": _votes,
    "linear": _linear,
    "marginals": _marginals,
    "stream": _stream,
    "system": _system,
    "priced": _priced,
}
"""By the form of the problem."""
