"""What the pages say of a table of probabilities: in a line, to the public, to auditors and to engineers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privspec.explain.additive import randomness
from privspec.explain.document import Block, Points, Section
from privspec.explain.document import Table as Grid
from privspec.explain.finite import heatmap
from privspec.explain.finite.table import spoken
from privspec.explain.jsonform import plain
from privspec.explain.lotteries import rounds
from privspec.explain.quantities import rounded
from privspec.explain.sentences import CertificateEntry, Note, Sentence, SpecLine, asserted, assumed, proved
from privspec.explain.words import joined

if TYPE_CHECKING:
    from privspec.explain.fact_types import AlternativeFact, Facts
    from privspec.explain.finite.facts import ChosenLaw, ChosenNumber, ErrorTerm, TableFact, Truth

_TABLES = Note("tables")
_ENTRY, _LOSS = CertificateEntry("table"), CertificateEntry("loss")
MOST_MASSES = 12
MOST_VALUES = 8


def table_json(fact: TableFact) -> dict[str, object]:
    """All facts but the probabilities, which the plan holds exactly."""
    names = ("rows", "columns", "entries", "zeros", "bits", "local", "recognised", "numbers", "laws", "truths")
    return {
        "family": fact.family,
        "of": list(fact.table.of),
        "releases": list(fact.table.releases),
        **{name: plain(getattr(fact, name)) for name in (*names, "errors", "listed", "comparison")},
    }


# --- in a line ------------------------------------------------------------------------------------


def drawn(fact: TableFact, facts: Facts) -> str:
    """What is drawn, where, and from how large a table."""
    names = joined(fact.table.releases)
    what = "each report is" if fact.local else f"{names} is" if len(fact.table.releases) == 1 else f"{names} are"
    together = " jointly" if len(fact.table.releases) > 1 else ""
    words = facts.context.trust_words
    place = f" {words.place}" if words else ""
    rows = f"a row for each value of {joined(fact.table.of)}"
    return f"{what} drawn{together}{place} from a table of {fact.rows} × {fact.columns} probabilities, {rows}"


def summary_rows(fact: TableFact, _facts: Facts) -> list[tuple[str, str]]:
    """The known mechanism, and what the solver chose."""
    found = []
    if fact.recognised is not None:
        found.append(("Known as", f"{fact.recognised.name}: {fact.recognised.text}"))
    chosen = [f"{n.name} = {n.value}" for n in fact.numbers] + [_law_words(law) for law in fact.laws]
    if chosen:
        found.append(("Chosen by the solver", " · ".join(chosen)))
    return found + ([] if fact.rounds is None else rounds.summary_rows(fact.rounds))


def _law_words(law: ChosenLaw) -> str:
    """A law in a line: its masses where they are few, else its mean."""
    if len(law.masses) <= MOST_VALUES // 2:
        return f"{law.name} is {joined([f'{label} with probability {mass}' for label, mass in law.masses])}"
    mean = f", mean {law.mean}" if law.mean is not None else ""
    return f"{law.name} spread over {len(law.masses)} of {law.values} values{mean}"


def error(fact: TableFact, facts: Facts) -> tuple[str, str]:
    """The errors that the loss adds up, in words."""
    loss = facts.loss
    if loss is None:
        return "Expected loss", ""
    label = "Expected error" if not any(e.worst for e in fact.errors) else "Largest expected error"
    if not fact.errors:
        return ("Largest expected loss" if loss.worst else "Expected loss"), str(loss.value)
    if len(fact.errors) == 1:
        return label, f"{fact.errors[0].brief}{_aside(_kind(fact.errors[0]), fact)}"
    kinds = {_kind(e) for e in fact.errors}
    one = len(kinds) == 1
    each = " · ".join(f"{e.output} {e.brief}{'' if one else f' ({_kind(e)})'}" for e in fact.errors)
    shared = f"{kinds.pop()}; " if one else ""
    return label, f"{each}  ({shared}loss {loss.value})"


def _aside(kind: str, fact: TableFact) -> str:
    """What is averaged, in brackets; nothing where the figure says so itself."""
    only = fact.errors[0]
    return "" if only.shape.of_words and not only.worst else f"  ({kind})"


def _kind(term: ErrorTerm) -> str:
    return f"{term.shape.name}{', over the worst input' if term.worst else ''}"


def compared(fact: TableFact, item: AlternativeFact, facts: Facts) -> str:
    """The error of another design in the measure of the loss, or how many times the loss it has."""
    if len(fact.errors) != 1 or facts.loss is None or facts.loss.value.value <= 0:
        return f" {item.times} × the loss"
    weight = facts.context.loss_terms[0].weight
    figure = fact.errors[0].shape.figure(item.loss.value / float(weight))
    if figure.text == fact.errors[0].figure.text:
        return f" {item.times} × the loss"
    return f" {figure}"


# --- the public -----------------------------------------------------------------------------------


def public_accuracy(fact: TableFact, facts: Facts) -> tuple[Sentence, ...]:
    """How often the truth is reported, and the error of the loss."""
    because = (facts.context.loss_because, _LOSS)
    found = [proved(_truth_words(fact, truth), *because) for truth in fact.truths if _is_mismatch(fact, truth)]
    told = {(truth.output, truth.node) for truth in fact.truths}
    found += [
        proved(_error_words(fact, term), *because)
        for term in fact.errors
        if not (term.shape.of_words and (term.output, term.against) in told)
    ]
    averaged = any(not (term.worst or term.shape.of_words) for term in fact.errors)
    if averaged and fact.table.prior is not None:
        words = "Averages are over the values as likely as the spec takes them to be."
        found.append(assumed(words, facts.context.loss_because))
    if fact.local and np.linalg.matrix_rank(fact.table.shares) == len(fact.table.rows):
        found.append(proved("Many reports together tell how frequent each value is.", _TABLES))
    return tuple(found)


def _is_mismatch(fact: TableFact, truth: Truth) -> bool:
    """Whether the truth is what the loss asks for; distances say more elsewhere."""
    return any(e.shape.of_words and (e.output, e.against) == (truth.output, truth.node) for e in fact.errors)


def _truth_words(fact: TableFact, truth: Truth) -> str:
    several = len(fact.table.of) > 1
    own = f"Your {truth.output} is your true {truth.node}" if several else "Your report is your true value"
    whose = own if fact.local else f"{truth.output} is the true value of {truth.node}"
    if truth.least.text == truth.largest.text or truth.largest.value - truth.least.value < 1e-9:
        return f"{whose} with probability {rounded(truth.least.value)}."
    return f"{whose} with a probability of {truth.least} to {truth.largest}, depending on the value."


def _error_words(fact: TableFact, term: ErrorTerm) -> str:
    if term.output in fact.table.releases:
        what = "A report" if fact.local else f"The published {term.output}"
    else:
        what = f"The {term.output} computed from a report" if fact.local else f"The published {term.output}"
    worst = " in the worst case" if term.worst else ""
    return f"{what} is {term.words}{worst}."


def exactly(fact: TableFact, facts: Facts) -> str:
    """The table is public, and so is that something was sent."""
    if fact.local:
        return "That a report was sent, and the table of probabilities that it was drawn from."
    relations = [c.claim.relation for c in facts.claims if not c.claim.by_distance]
    counted = sorted({r.plural for r in relations if not r.adds and r.unit not in (None, "everything")})
    sizes = f", and how many {joined(counted)} there are" if counted else ""
    return f"The question asked, the table of probabilities that the answer was drawn from{sizes}."


# --- auditors -------------------------------------------------------------------------------------


def auditor_points(fact: TableFact, _facts: Facts) -> tuple[Sentence, ...]:
    """The table, how a value is drawn from it, what it is known as, and what was chosen with it."""
    found = [
        proved(
            f"The mechanism is a table Pr({', '.join(fact.table.releases)} | {', '.join(fact.table.of)}) of "
            f"{fact.entries} probabilities; each is an exact fraction, and each row adds up to exactly 1.",
            _TABLES,
            _ENTRY,
        ),
        proved(
            "What is executed is that table: a whole number below the common denominator of a row decides which "
            "column is drawn, so that no floating-point number takes part.",
            _TABLES,
        ),
        *randomness(_TABLES),
    ]
    if fact.table.counted:
        names = joined(sorted(fact.table.counted))
        found.append(proved(f"Of {names}, only how often each value occurs decides the row, not the order.", _TABLES))
    if fact.recognised is not None:
        words = f"The table is known as {fact.recognised.name}: {fact.recognised.text}."
        found.append(proved(words, Note(fact.recognised.note)))
    found += [_number_sentence(number) for number in fact.numbers]
    found += [_law_sentence(law) for law in fact.laws]
    return tuple(found)


def _number_sentence(number: ChosenNumber) -> Sentence:
    exactly_ = "" if len(number.exactly) > 24 or number.exactly == number.value.text else f" (exactly {number.exactly})"
    return proved(
        f"The solver chose {number.name} = {number.value}{exactly_}{_standing(number.lines)}.", *_because(number.lines)
    )


def _law_sentence(law: ChosenLaw) -> Sentence:
    shown = [f"{label} with probability {mass}" for label, mass in law.masses[:MOST_MASSES]]
    more = f" and {len(law.masses) - MOST_MASSES} more values" if len(law.masses) > MOST_MASSES else ""
    traces = f", all other values together {law.traces}" if law.traces else ""
    mean = f"; its mean is {law.mean}" if law.mean is not None else ""
    return proved(
        f"The solver chose the law {law.name}{_standing(law.lines)}: {joined(shown) if not more else ', '.join(shown)}"
        f"{more}{traces}{mean}. It is public and depends on nobody's data.",
        *_because(law.lines),
    )


def _standing(lines: tuple[SpecLine, ...]) -> str:
    numbers = [str(line.number) for line in lines]
    return f", which stands in line{'s' if len(numbers) > 1 else ''} {joined(numbers)}" if numbers else ""


def _because(lines: tuple[SpecLine, ...]) -> tuple[SpecLine | CertificateEntry, ...]:
    return (*lines[:1], _ENTRY)


def auditor_tables(fact: TableFact, _facts: Facts) -> tuple[Block, ...]:
    """The errors of the outputs, each in its own measure; for votes all rules that were compared."""
    compared = fact.comparison.blocks() if fact.comparison is not None else ()
    if fact.rounds is not None:
        compared = (Points(tuple(rounds.points(fact.rounds))), rounds.rounds_table(fact.rounds), *compared)
    if not fact.errors and not fact.truths:
        return compared
    rows = [(e.output, e.against, _kind(e), e.figure.text) for e in fact.errors]
    true = "probability of the true value, least and largest over the inputs"
    rows += [(t.output, t.node, true, f"{t.least} to {t.largest}") for t in fact.truths]
    table = Grid("Errors of what is drawn", ("Output", "Against", "Measure", "Figure"), tuple(rows), frozenset({3}))
    return (table, *compared)


def data(facts: Facts) -> tuple[Sentence, ...]:
    """The secret inputs and their domains."""
    where = facts.context
    return tuple(
        asserted(f"Secret input {name}, in {domain}.", where.input_lines.get(name, where.trust_because))
        for name, domain in where.input_domains.items()
    )


# --- engineers ------------------------------------------------------------------------------------


def engineer_sections(fact: TableFact, facts: Facts) -> tuple[Section, ...]:
    """The table in a drawing and in figures, and what was chosen with it."""
    words = [proved(f"What is drawn: {drawn(fact, facts)}.", facts.context.sites_because, _ENTRY)]
    if fact.recognised is not None:
        text = f"It is known as {fact.recognised.name}: {fact.recognised.text}."
        words.append(proved(text, Note(fact.recognised.note)))
    words += [_number_sentence(number) for number in fact.numbers]
    blocks: list[Block] = [Points(tuple(words))]
    blocks += [_law_table(law) for law in fact.laws]
    blocks += heatmap.plots(fact)
    if fact.rounds is not None:
        blocks += [Points(tuple(rounds.points(fact.rounds))), rounds.rounds_table(fact.rounds)]
    sections = [Section("Table", tuple(blocks))]
    if fact.comparison is not None:
        sections.append(Section("Rules compared", fact.comparison.blocks()))
    return tuple(sections)


def _law_table(law: ChosenLaw) -> Grid:
    rows = [(label, mass.text) for label, mass in law.masses]
    rows += [("all others together", law.traces.text)] if law.traces else []
    mean = f"; mean {law.mean}" if law.mean is not None else ""
    caption = f"The law {law.name} that the solver chose{mean}"
    return Grid(caption, ("Value", "Probability"), tuple(rows), frozenset({1}))


def execution(fact: TableFact, facts: Facts) -> tuple[Block, ...]:
    """Which row, how a column is drawn, and how long the numbers are."""
    names, rows = ", ".join(fact.table.releases), joined(fact.table.of)
    items = (
        ("Row", f"the value of {rows}, one of {fact.rows}"),
        ("Column", f"the value of {names}, one of {fact.columns}"),
        ("Entries", f"{fact.entries} exact fractions, {fact.zeros} of them 0"),
        ("Common denominator of a row", f"up to {fact.bits} bits"),
        *((f"Input {name}", f"in {domain}") for name, domain in facts.context.input_domains.items()),
        ("Certificate entries", ", ".join(facts.certificate_entries) or "none"),
    )
    draw = proved(
        "A draw: the operating system gives a whole number below the common denominator of the row, each as likely as "
        "any other; the first column whose running sum exceeds it is drawn.",
        _TABLES,
    )
    return (Grid("What `privspec run` executes", ("Item", "Value"), items), Points((draw,)))


def run_commands(fact: TableFact, facts: Facts, plan: str) -> tuple[str, ...]:
    """Each report from a row of a file; local reports are put together again by `aggregate`."""
    data = "".join(f" --input {name}={name}.csv" for name in facts.context.input_domains)
    if not fact.local:
        return (f"privspec run {plan}{data}",)
    return (f"privspec run {plan}{data} -o reports.csv", f"privspec aggregate {plan} reports.csv")


def label_words(fact: TableFact) -> str:
    """The rows in words, cut where they are many: "red, green, blue and yellow"."""
    names = [spoken(row) for row in fact.table.rows]
    return joined(names) if len(names) <= MOST_VALUES else f"{names[0]}, {names[1]}, … {names[-1]}"
