"""The mechanism of a plan of the family "table": read into facts, and its words on every page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privspec.explain.additive import randomness
from privspec.explain.curves import EpsilonDeltaCurve, consequences, dominating
from privspec.explain.document import (
    Block,
    Judged,
    Note,
    Points,
    Section,
    Sentence,
    SpecLine,
    Table,
    asserted,
    assumed,
    proved,
    reported,
)
from privspec.explain.drawings import table_plots
from privspec.explain.facts import MechanismFact, Rows
from privspec.explain.loss_terms import LossTerm, Scene, Shape, numeric_law
from privspec.explain.quantities import Quantity, Rounding, count, exact, parse_exact, rounded
from privspec.explain.questions import Question, Step, about_vote, how_near, largest_factor, took_part, which_answer
from privspec.explain.rule_comparison import (
    Comparison,
    Rounds,
    comparison,
    public_rounds,
    rounds_fact,
    rounds_points,
    rounds_rows,
    rounds_table,
)
from privspec.explain.table import (
    ProbabilityTable,
    RowFact,
    bound_of,
    common_bits,
    curve_of,
    neighbours,
    reaches,
    read_table,
    row_facts,
    spoken,
)
from privspec.model.reports import listing

if TYPE_CHECKING:
    from privspec.explain.claims import Claim
    from privspec.explain.context import Context
    from privspec.explain.curves import Curve
    from privspec.explain.facts import AlternativeFact, Facts
    from privspec.model.graph import Model
    from privspec.model.observers import Unit


@dataclass(frozen=True, slots=True)
class Recognised:
    """The known mechanism that a table is: its name, a clause that describes it, and the note that proves it."""

    name: str
    text: str
    note: str


@dataclass(frozen=True, slots=True)
class ChosenNumber:
    """A number that the solver picked, and the lines that it stands in."""

    name: str
    value: Quantity
    exactly: str
    lines: tuple[SpecLine, ...]


@dataclass(frozen=True, slots=True)
class ChosenLaw:
    """A law that the solver picked: its masses but for traces, these together, and its mean if it is of numbers."""

    name: str
    masses: tuple[tuple[str, Quantity], ...]
    traces: Quantity | None
    values: Quantity
    mean: Quantity | None
    lines: tuple[SpecLine, ...]


@dataclass(frozen=True, slots=True)
class Truth:
    """How often an output is the true value of a node: least and largest over the rows, mean by the prior if any."""

    output: str
    node: str
    least: Quantity
    largest: Quantity
    mean: Quantity | None


@dataclass(frozen=True, slots=True)
class ErrorTerm:
    """One error of the loss with its average (or its largest average over the rows)."""

    output: str
    against: str
    shape: Shape
    worst: bool
    figure: Quantity
    brief: str
    words: str


@dataclass(frozen=True, slots=True)
class TableFact(MechanismFact):
    """A table of probabilities; `local` is whether each person draws from it for themselves."""

    table: ProbabilityTable
    rows: Quantity
    columns: Quantity
    entries: Quantity
    zeros: Quantity
    bits: Quantity
    local: bool
    recognised: Recognised | None
    numbers: tuple[ChosenNumber, ...]
    laws: tuple[ChosenLaw, ...]
    truths: tuple[Truth, ...]
    errors: tuple[ErrorTerm, ...]
    listed: tuple[RowFact, ...]
    metrics: Mapping[int, str]
    inputs: frozenset[str]
    comparison: Comparison | None = None
    rounds: Rounds | None = None

    drawn_label: ClassVar[str] = "What is drawn"
    subject: ClassVar[str] = "The table"
    reached_label: ClassVar[str] = "Reached by the table"
    exact_curve: ClassVar[str] = "the table (exact)"
    entry: ClassVar[Judged] = Judged("law")
    loss_note: ClassVar[Note] = Note("tables")
    accuracy_heading: ClassVar[str] = "How exact is what is released?"
    measure: ClassVar[str] = "what is released is drawn from the table of probabilities that this report describes."

    # --- facts

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """Local claims and those of distances are about one report, and as exact as the rows of the table."""
        if claim.per_distance is not None:
            return self._near(claim, claim.per_distance)
        if not claim.local:
            return claim, self._of_votes(claim)
        pairs = self.table.pairs(claim.wrt)
        example = tuple(int(r) for r in pairs[-1]) if len(pairs) else (0, -1)
        bound = _bound(claim)
        if bound is not None and self._compares_rows(claim):
            found = curve_of(self.table.seen(claim.outputs), pairs, bound)
            example = example if found is None else tuple(int(r) for r in pairs[found.worst])
            claim = replace(claim, achieved=found or dominating(*bound))
        times = largest_factor(bound[0]) if bound is not None and bound[1] == 0.0 else None
        names = self._named(example[0], claim), self._named(example[1], claim)
        same = tuple(name for name in self.table.of if name not in claim.wrt and self._compares_rows(claim))
        return claim, which_answer(self.local, names, times, same)

    def _of_votes(self, claim: Claim) -> Question:
        """Whether somebody took part, which of votes is whether or how somebody voted."""
        bound = _bound(claim)
        if self.comparison is None or bound is None or bound[1] > 0 or claim.relation.unit is None:
            return took_part(claim.relation)
        return about_vote(claim.relation, claim.relation.unit, largest_factor(bound[0]), local=False)

    def _named(self, row: int, claim: Claim) -> str:
        """A row by the values that a claim is about: "red", or "outcome 1" where rows hold several."""
        table = self.table
        parts = [spoken((table.rows[row][i],)) for i, name in enumerate(table.of) if name in claim.wrt]
        if len(table.of) == 1 or not parts:
            return spoken(table.rows[row])
        names = [name for name in table.of if name in claim.wrt]
        return ", ".join(f"{name} {part}" for name, part in zip(names, parts, strict=True))

    def _compares_rows(self, claim: Claim) -> bool:
        """Whether a claim compares any two rows that differ in nothing but its inputs."""
        return claim.local and set(self.table.of) <= self.inputs

    def _near(self, claim: Claim, epsilon: Fraction) -> tuple[Claim, Question]:
        """The curve is that of the least of a few distances."""
        metric = self.metrics.get(claim.line.number, "")
        found = reaches(self.table.seen(claim.outputs), claim.wrt, metric, epsilon)
        steps = tuple(Step(exact(r.distance), rounded(r.epsilon, 4, Rounding.UP), consequences(r.curve)) for r in found)
        at = self.table.row_points
        plane = at is not None and at.shape[1] == 2 and len(self.table.of) == 1
        return replace(claim, achieved=found[0].curve), how_near(self.local, steps, plane=plane)

    def released(self) -> frozenset[str]:
        return frozenset(self.table.releases)

    def seen(
        self,
        _plan: Mapping[str, Any],
        outputs: frozenset[str],
        claim: Claim,
        unit: Unit | None,
        model: Model | None,
    ) -> Curve | None:
        pairs = (
            self.table.pairs(claim.wrt) if self._compares_rows(claim) else neighbours(self.table, claim, unit, model)
        )
        if pairs is None:
            return None
        return bound_of(self.table.seen(tuple(outputs)), pairs)

    def to_json(self) -> dict[str, object]:
        names = ("rows", "columns", "entries", "zeros", "bits", "local", "recognised", "numbers", "laws", "truths")
        return {
            "family": self.family,
            "of": list(self.table.of),
            "releases": list(self.table.releases),
            **{name: getattr(self, name) for name in (*names, "errors", "listed", "comparison")},
        }

    # --- words

    def drawn(self, facts: Facts) -> str:
        names = listing(self.table.releases)
        what = "each report is" if self.local else f"{names} is" if len(self.table.releases) == 1 else f"{names} are"
        together = " jointly" if len(self.table.releases) > 1 else ""
        words = facts.context.trust_words
        place = f" {words.place}" if words else ""
        rows = f"a row for each value of {listing(self.table.of)}"
        return f"{what} drawn{together}{place} from a table of {self.rows} × {self.columns} probabilities, {rows}"

    def summary_rows(self, facts: Facts) -> Rows:
        found = []
        if self.recognised is not None:
            found.append(("Known as", f"{self.recognised.name}: {self.recognised.text}"))
        chosen = [f"{n.name} = {n.value}" for n in self.numbers] + [_law_words(law) for law in self.laws]
        if chosen:
            found.append(("Chosen by the solver", " · ".join(chosen)))
        return found + ([] if self.rounds is None else rounds_rows(self.rounds))

    def error(self, facts: Facts) -> tuple[str, str]:
        loss = facts.loss
        if loss is None:
            return "Expected loss", ""
        label = "Expected error" if not any(e.worst for e in self.errors) else "Largest expected error"
        if not self.errors:
            return ("Largest expected loss" if loss.worst else "Expected loss"), str(loss.value)
        if len(self.errors) == 1:
            return label, f"{self.errors[0].brief}{_aside(_kind(self.errors[0]), self)}"
        kinds = {_kind(e) for e in self.errors}
        one = len(kinds) == 1
        each = " · ".join(f"{e.output} {e.brief}{'' if one else f' ({_kind(e)})'}" for e in self.errors)
        shared = f"{kinds.pop()}; " if one else ""
        return label, f"{each}  ({shared}loss {loss.value})"

    def compared(self, item: AlternativeFact, facts: Facts) -> str:
        if len(self.errors) != 1 or facts.loss is None or facts.loss.value.value <= 0:
            return f" {item.times} × the loss"
        weight = facts.context.loss_terms[0].weight
        figure = self.errors[0].shape.figure(item.loss.value / float(weight))
        if figure.text == self.errors[0].figure.text:
            return f" {item.times} × the loss"
        return f" {figure}"

    def next_commands(self, _facts: Facts) -> tuple[str, ...]:
        return ("run", "aggregate", "explain", "verify") if self.local else ("run", "explain", "verify")

    def public_sections(self, facts: Facts) -> tuple[Section, ...]:
        return public_rounds(self.rounds, facts)

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        because = (facts.context.loss_because, _LOSS)
        found = [proved(_truth_words(self, truth), *because) for truth in self.truths if _is_mismatch(self, truth)]
        told = {(truth.output, truth.node) for truth in self.truths}
        found += [
            proved(_error_words(self, term), *because)
            for term in self.errors
            if not (term.shape.of_words and (term.output, term.against) in told)
        ]
        averaged = any(not (term.worst or term.shape.of_words) for term in self.errors)
        if averaged and self.table.prior is not None:
            words = "Averages are over the values as likely as the spec takes them to be."
            found.append(assumed(words, facts.context.loss_because))
        if self.local and np.linalg.matrix_rank(self.table.shares) == len(self.table.rows):
            found.append(proved("Many reports together tell how frequent each value is.", _TABLES))
        return tuple(found)

    def exactly(self, facts: Facts) -> str:
        if self.local:
            return "That a report was sent, and the table of probabilities that it was drawn from."
        relations = [c.claim.relation for c in facts.claims if not c.claim.by_distance]
        counted = sorted({r.plural for r in relations if not r.adds and r.unit not in (None, "everything")})
        sizes = f", and how many {listing(counted)} there are" if counted else ""
        return f"The question asked, the table of probabilities that the answer was drawn from{sizes}."

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        found = [
            proved(
                f"The mechanism is a table Pr({', '.join(self.table.releases)} | {', '.join(self.table.of)}) of "
                f"{self.entries} probabilities; each is an exact fraction, and each row adds up to exactly 1.",
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
        if self.table.counted:
            names = listing(sorted(self.table.counted))
            found.append(
                proved(f"Of {names}, only how often each value occurs decides the row, not the order.", _TABLES)
            )
        if self.recognised is not None:
            words = f"The table is known as {self.recognised.name}: {self.recognised.text}."
            found.append(reported(words, Note(self.recognised.note)))
        found += [_number_sentence(number) for number in self.numbers]
        found += [_law_sentence(law) for law in self.laws]
        return tuple(found)

    def auditor_tables(self, facts: Facts) -> tuple[Block, ...]:
        compared = self.comparison.blocks() if self.comparison is not None else ()
        if self.rounds is not None:
            compared = (Points(tuple(rounds_points(self.rounds))), rounds_table(self.rounds), *compared)
        if not self.errors and not self.truths:
            return compared
        rows = [(e.output, e.against, _kind(e), e.figure.text) for e in self.errors]
        true = "probability of the true value, least and largest over the inputs"
        rows += [(t.output, t.node, true, f"{t.least} to {t.largest}") for t in self.truths]
        table = Table(
            "Errors of what is drawn", ("Output", "Against", "Measure", "Figure"), tuple(rows), frozenset({3})
        )
        return (table, *compared)

    def data(self, facts: Facts) -> tuple[Sentence, ...]:
        where = facts.context
        return tuple(
            asserted(f"Secret input {name}, in {domain}.", where.input_lines.get(name, where.trust_because))
            for name, domain in where.input_domains.items()
        )

    def engineer_sections(self, facts: Facts) -> tuple[Section, ...]:
        words = [proved(f"What is drawn: {self.drawn(facts)}.", facts.context.sites_because, _ENTRY)]
        if self.recognised is not None:
            text = f"It is known as {self.recognised.name}: {self.recognised.text}."
            words.append(reported(text, Note(self.recognised.note)))
        words += [_number_sentence(number) for number in self.numbers]
        blocks: list[Block] = [Points(tuple(words))]
        blocks += [_law_table(law) for law in self.laws]
        blocks += table_plots(self.table)
        if self.rounds is not None:
            blocks += [Points(tuple(rounds_points(self.rounds))), rounds_table(self.rounds)]
        sections = [Section("Table", tuple(blocks))]
        if self.comparison is not None:
            sections.append(Section("Rules compared", self.comparison.blocks()))
        return tuple(sections)

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        names, rows = ", ".join(self.table.releases), listing(self.table.of)
        items = (
            ("Row", f"the value of {rows}, one of {self.rows}"),
            ("Column", f"the value of {names}, one of {self.columns}"),
            ("Entries", f"{self.entries} exact fractions, {self.zeros} of them 0"),
            ("Common denominator of a row", f"up to {self.bits} bits"),
            *((f"Input {name}", f"in {domain}") for name, domain in facts.context.input_domains.items()),
            ("Claims of the kernel", ", ".join(sorted(facts.judgement.derived)) or "none"),
        )
        draw = proved(
            "A draw: the operating system gives a whole number below the common denominator of the row, each as "
            "likely as any other; the first column whose running sum exceeds it is drawn.",
            _TABLES,
        )
        return (Table("What `privspec run` executes", ("Item", "Value"), items), Points((draw,)))

    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        data = "".join(f" --input {name}={name}.csv" for name in facts.context.input_domains)
        if not self.local:
            return (f"privspec run {plan}{data}",)
        return (f"privspec run {plan}{data} -o reports.csv", f"privspec aggregate {plan} reports.csv")


def _bound(claim: Claim) -> tuple[float, float] | None:
    """The epsilon and delta that were reached, where the plan states them."""
    curve = claim.achieved
    return (curve.epsilon, curve.delta) if isinstance(curve, EpsilonDeltaCurve) else None


TRACE = Fraction(1, 10**6)
"""Masses below are traces of exact repairs: they are summed up."""


def table_fact(plan: Mapping[str, Any], context: Context) -> TableFact:
    """The mechanism of a plan of the family "table".

    Raises: KeyError, ValueError if it is not of that form.
    """
    mechanism = plan["mechanism"]
    table = read_table(mechanism)
    found = plan.get("remarks", {}).get("recognised")
    known = None if not found else Recognised(str(found["name"]), str(found["text"]), str(found.get("note", "tables")))
    scalars, laws = mechanism.get("scalars") or {}, mechanism.get("laws") or {}
    return TableFact(
        family=str(mechanism["family"]),
        table=table,
        rows=count(len(table.rows)),
        columns=count(len(table.columns)),
        entries=count(table.shares.size),
        zeros=count(int(np.count_nonzero(table.shares == 0))),
        bits=count(common_bits(mechanism)),
        local=context.trust == "nobody",
        recognised=known,
        numbers=tuple(_number(name, value, context) for name, value in scalars.items()),
        laws=tuple(_law(name, masses, context) for name, masses in laws.items()),
        truths=tuple(_truths(table, context)),
        errors=tuple(_errors(plan, table, context)),
        listed=row_facts(table),
        metrics=context.distances,
        inputs=frozenset(context.input_domains),
        comparison=comparison(plan),
        rounds=_rounds(plan["mechanism"].get("rounds")),
    )


def _number(name: str, value: Any, context: Context) -> ChosenNumber:
    number = parse_exact(value)
    return ChosenNumber(name, rounded(number, 6), str(value), context.choices.get(name, ()))


def _law(name: str, masses: Mapping[str, Any], context: Context) -> ChosenLaw:
    shares = {str(label): parse_exact(mass) for label, mass in masses.items()}
    mean = None
    try:
        mean = rounded(sum((parse_exact(label) * mass for label, mass in shares.items()), Fraction(0)), 4)
    except ValueError:
        mean = None
    return ChosenLaw(
        name,
        tuple((label, rounded(mass, 4)) for label, mass in shares.items() if mass >= TRACE),
        rounded(rest, 2, Rounding.UP) if (rest := sum(mass for mass in shares.values() if mass < TRACE)) else None,
        count(len(shares)),
        mean,
        context.choices.get(name, ()),
    )


def _truths(table: ProbabilityTable, context: Context) -> Sequence[Truth]:
    """For each output and the value that the loss compares it with; without such a loss, where there is but one."""
    pairs = dict.fromkeys((t.left, t.right) for t in context.loss_terms)
    if not pairs and len(table.releases) == len(table.of) == 1:
        pairs = {(table.releases[0], table.of[0]): None}
    found = []
    for output, node in pairs:
        shares = table.truths(output, node)
        if shares is not None and len(shares):
            mean = table.mean(shares)
            found.append(
                Truth(
                    output,
                    node,
                    rounded(float(shares.min()), 3, Rounding.DOWN),
                    rounded(float(shares.max()), 3, Rounding.UP),
                    None if mean is None else rounded(mean),
                )
            )
    return found


def _errors(plan: Mapping[str, Any], table: ProbabilityTable, context: Context) -> Sequence[ErrorTerm]:
    """Each error of the loss with its average; none where one of them cannot be computed."""
    terms = context.loss_terms
    scene = _scene(plan["mechanism"], table, context)
    if len(terms) == 1 and terms[0].weight > 0 and (plan.get("loss") or {}).get("value") is not None:
        return (_term(terms[0], float(plan["loss"]["value"]) / float(terms[0].weight)),)
    found = [(term, scene.average(term)) for term in terms]
    known = [(term, average) for term, average in found if average is not None]
    return tuple(_term(term, average) for term, average in known) if len(known) == len(found) else ()


def _term(term: LossTerm, average: float) -> ErrorTerm:
    shape = term.shape
    return ErrorTerm(
        term.left, term.right, shape, term.worst, shape.figure(average), shape.brief(average), shape.words(average)
    )


def _scene(mechanism: Mapping[str, Any], table: ProbabilityTable, context: Context) -> Scene:
    """The values that errors are computed from."""
    scalars = {str(name): float(parse_exact(value)) for name, value in (mechanism.get("scalars") or {}).items()}
    laws = {
        str(name): numeric_law({str(label): float(parse_exact(mass)) for label, mass in masses.items()})
        for name, masses in (mechanism.get("laws") or {}).items()
    }
    public = {name: float(value) for name, value in context.formulas.parameters.items()}
    return Scene(table, {**public, **scalars}, laws, context.formulas)


def _rounds(item: Mapping[str, Any] | None) -> Rounds | None:
    if item is None:
        return None
    return rounds_fact(item, None, EpsilonDeltaCurve(float(parse_exact(item["each"]))), chosen=False)


_TABLES = Note("tables")
_ENTRY, _LOSS = Judged("law"), Judged("loss")
MOST_MASSES = 12
MOST_VALUES = 8


# --- in a line ------------------------------------------------------------------------------------


def _law_words(law: ChosenLaw) -> str:
    """A law in a line: its masses where they are few, else its mean."""
    if len(law.masses) <= MOST_VALUES // 2:
        return f"{law.name} is {listing([f'{label} with probability {mass}' for label, mass in law.masses])}"
    mean = f", mean {law.mean}" if law.mean is not None else ""
    return f"{law.name} spread over {len(law.masses)} of {law.values} values{mean}"


def _aside(kind: str, fact: TableFact) -> str:
    """What is averaged, in brackets; nothing where the figure says so itself."""
    only = fact.errors[0]
    return "" if only.shape.of_words and not only.worst else f"  ({kind})"


def _kind(term: ErrorTerm) -> str:
    return f"{term.shape.name}{', over the worst input' if term.worst else ''}"


# --- the public -----------------------------------------------------------------------------------


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


# --- auditors -------------------------------------------------------------------------------------


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
        f"The solver chose the law {law.name}{_standing(law.lines)}: {listing(shown) if not more else ', '.join(shown)}"
        f"{more}{traces}{mean}. It is public and depends on nobody's data.",
        *_because(law.lines),
    )


def _standing(lines: tuple[SpecLine, ...]) -> str:
    numbers = [str(line.number) for line in lines]
    return f", which stands in line{'s' if len(numbers) > 1 else ''} {listing(numbers)}" if numbers else ""


def _because(lines: tuple[SpecLine, ...]) -> tuple[SpecLine | Judged, ...]:
    return (*lines[:1], Judged("choices"))


# --- engineers ------------------------------------------------------------------------------------


def _law_table(law: ChosenLaw) -> Table:
    rows = [(label, mass.text) for label, mass in law.masses]
    rows += [("all others together", law.traces.text)] if law.traces else []
    mean = f"; mean {law.mean}" if law.mean is not None else ""
    caption = f"The law {law.name} that the solver chose{mean}"
    return Table(caption, ("Value", "Probability"), tuple(rows), frozenset({1}))
