"""A problem in full sentences, for `check --problem`, `verify` and the auditor's page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from privspec.kernel.trust import CURATOR, NORMS, PARTS
from privspec.model.neighbours import AGAINST, plural
from privspec.model.reports import listing
from privspec.model.values import show
from privspec.registry import FAMILIES

if TYPE_CHECKING:
    from privspec.kernel.core.problem import AskedMeasure, ContributionBound, Data, Obligation, PublicValue, Share, Unit
    from privspec.kernel.trust import Asserted, Trust
    from privspec.problem.elaborate import Problem


def words(problem: Problem) -> Iterator[str]:
    """Everything that the problem says, one sentence a line."""
    (block,) = problem.blocks
    if block.FORM == "design":
        yield from block_words(block)
        return
    yield trust_words(problem.trust)
    yield from (data_words(data, problem) for data in problem.data)
    yield from map(public_words, problem.public)
    for fact in problem.facts:
        yield f"Line {fact.line} is taken to be true of all data, and no line compares others: `{fact.text}`."
    yield from map(obligation_words, problem.obligations)
    if not problem.obligations:
        yield "No line asks for privacy: what is released may reveal the data."
    for view in problem.views:
        yield (
            f"No line names all that {view.observer} sees ({' and '.join(view.outputs)}) of {' and '.join(view.wrt)}, "
            f"{view.neighbours}: what that tells is bounded by the noise alone."
        )
    yield from block_words(block)
    for one in problem.computed:
        listed = " and ".join(one.sources)
        yield f"{one.name} is computed from {listed}, once they are released, which costs nothing: `{one.text}`."


def block_words(block: Any) -> Iterable[str]:
    """What a block says, in the words of its form."""
    reading = next(family for family in FAMILIES if family.form == block.FORM).reads
    found: Iterable[str] = reading.words(block) if hasattr(reading, "words") else block.words()
    return found


def output_names(block: Any) -> str:
    """The outputs that a block gives."""
    inner = getattr(block, "block", block)
    given = getattr(inner, "outputs", None) or getattr(inner, "released", None) or (inner.output,)
    return ", ".join(one if isinstance(one, str) else one.name for one in given)


def trust_words(trust: Trust) -> str:
    """Who sees what, and whose shares of the noise do not count."""
    left_out = f" The shares of {trust.colluding} of them are not counted on." if trust.colluding else ""
    said = "Who is trusted is said for each part by itself." if trust.kind == PARTS else trust.means.stated
    return said + left_out


def data_words(data: Data, problem: Problem) -> str:
    """How an input is held."""
    if data.asserted:
        return " ".join(_asserted_words(data, data.asserted))
    (block,) = problem.blocks
    parts = [part.problem for part in getattr(block, "parts", ())] or [problem]
    under = {(one.trust.means.held, one.blocks[0].FORM) for one in parts if data.name in {own.name for own in one.data}}
    local = any(line.measure.of.local and data.name in line.wrt for line in problem.obligations)
    held = CURATOR.held
    if data.party:
        held = f"each {data.party} holds a part of it"
    elif len(under) == 1 and not local:
        ((said, form),) = under
        held = said if form == "linear" else held
    kept = "" if data.kept is None else f" Before anything is counted, {kept_words(data.kept)}."
    follows = "".join(f" {one.words()}" for one in data.derived)
    follows = follows if data.people is None else f" {data.people.words(data.name)}{follows}"
    return f"Input {data.name} is in `{data.domain}`; {held}.{follows}{kept}"


def kept_words(kept: ContributionBound) -> str:
    """What is kept of a person's records, in words that say nothing about data."""
    cell = f" ({kept.per_cell} in one cell)" if kept.per_cell is not None else ""
    many = "one record" if kept.most == 1 else f"{kept.most} records"
    return (
        f"at most {many} of each {kept.person}{cell} are kept, drawn uniformly at random; a record that says no "
        f"{kept.person} is left out"
    )


def _asserted_words(data: Data, asserted: tuple[Asserted, ...]) -> Iterator[str]:
    function = asserted[0].function
    known = f"Of input {data.name} nothing is read but the values of {function}, in `{data.domain}`"
    yield f"{known}, which the keeper works out."
    for one in asserted:
        yield asserted_words(data.name, one)


def asserted_words(name: str, one: Asserted) -> str:
    """What the author says of a function, and that nothing checks it."""
    return (
        f"Line {one.line}: that {one.neighbours} of {name} moves {one.function} by at most {one.amount} "
        f"({NORMS[one.norm]}) is the author's word, and nothing here checks it."
    )


def public_words(value: PublicValue) -> str:
    """Where a public value comes from."""
    size = " x ".join(map(str, value.shape))
    name = value.name.removeprefix("words:")
    what = f"{size} {'numbers' if name == value.name else 'words'}" if size else "one number"
    return f"Public value {name}: {what}, from {value.provenance} (SHA-256 {value.sha256[:16]})."


def obligation_words(obligation: Obligation) -> str:
    """What is promised to whom, as in "one voter changes: all of x and y of that voter"."""
    units = " or ".join(map(unit_words, obligation.units))
    seen, who = listing(obligation.seen), " and ".join(obligation.observers)
    covered = f"Line {obligation.line} covers {seen}, as seen by {who}"
    asked = f"{'it satisfies' if len(obligation.seen) == 1 else 'they satisfy'} {measure_words(obligation.measure)}"
    if any(unit.kind == OF_ENTRY for unit in obligation.units):
        return (
            f"{covered}. For any two values that one entry of {listing(obligation.wrt)} may have, all other entries "
            f"drawn from the model given that one, {asked}."
        )
    if any(unit.kind == OF_ANY for unit in obligation.units):
        hidden, inputs = obligation.neighbours.partition(AGAINST)[0], listing(obligation.wrt)
        hidden = inputs if hidden == "all of it" else f"{inputs} of {hidden}" if hidden.startswith("one ") else hidden
        text = f"For any two values of positive probability of {hidden}, all data drawn from the model given the value"
        return f"{covered}. {text}, {asked}."
    return f"{covered}. If {units}, and nothing else does, {asked}."


OF_ENTRY, OF_ANY = "entry given the model", "value given the model"


def unit_words(unit: Unit) -> str:
    """What one difference changes: "one voter changes (all of x and y of that voter)"."""
    inputs = listing(unit.inputs)
    if unit.graph:
        what = inputs if unit.kind == "everything" else f"the value of one {unit.party or unit.kind} of {inputs}"
        return f"{what} becomes a neighbour of what it is in `{unit.graph}`"
    if unit.kind == "everything":
        return f"all of {inputs} changes"
    if unit.kind == "person":
        many = "the one record" if unit.count == 1 else f"up to {unit.count} records"
        verb = "comes or goes" if unit.adding else "changes"
        return f"one person {verb} ({many} of them that are kept in {inputs})"
    name = unit.party or unit.kind
    one = unit.count == 1
    verb = ("is" if one else "are") + " added or removed" if unit.adding else "changes" if one else "change at once"
    apart = "" if unit.apart is None else f", {'exactly' if unit.exactly else 'at least'} {unit.apart} apart"
    what = f"one {name}" if one else f"up to {unit.count} {plural(name)}"
    if unit.party:
        return f"{what} {verb} (all of {inputs} of {'that' if one else 'each'} {name}){apart}"
    return f"{what} of {inputs.replace(' and ', ' or ')} {verb}{apart}"  # in one of them, not in each


def measure_words(measure: AskedMeasure) -> str:
    """A measure with its exact amounts."""
    amounts = ", ".join(f"{name} = {_figure(amount)}" for name, amount in measure.amounts)
    distance = f" times the {measure.distance} distance" if measure.distance else ""
    if distance and len(measure.amounts) > 1:
        distance = f", epsilon{distance}"
    if measure.each:
        return f"{measure.name} ({len(measure.each)} amounts, one for each party; the least is {amounts}){distance}"
    return f"{measure.name} with {amounts}{distance}" if amounts else measure.name


def _figure(amount: Fraction | Share) -> str:
    """As in "2 / rounds, where the solver chooses rounds"."""
    if isinstance(amount, Fraction):
        return show(amount)
    if amount.inverse:
        return f"{amount.scale} / {amount.number}, where the solver chooses {amount.number}"
    if amount.scale != 1:
        return f"{amount.scale} * {amount.number}, where the solver chooses {amount.number}"
    return "what the solver chooses"
