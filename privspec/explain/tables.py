"""The mechanism of a plan of the family "table": read into facts, and its words on every page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from privspec.core.records import dataclass, field, replace
from privspec.explain import drawing, probabilities
from privspec.explain.claims import Question, about_vote, how_near, of_hidden, times_of, took_part, which_answer
from privspec.explain.context import REPORTED, Effects, LossTerm, Shape
from privspec.explain.curves import EpsilonDeltaCurve, dominating
from privspec.explain.document import (
    Block,
    Judged,
    Note,
    Paragraph,
    Plot,
    Points,
    Section,
    Sentence,
    SpecLine,
    Table,
    sections,
)
from privspec.explain.facts import (
    ChosenNumber,
    MechanismFact,
    chosen_numbers,
    given,
    standing,
)
from privspec.explain.messages import phrase, plotted, say, sentences, tabled
from privspec.explain.probabilities import ProbabilityTable, RowFact, row_facts, spoken
from privspec.explain.quantities import DOWN, UP, Quantity, count, known, rounded
from privspec.explain.rule_comparison import comparison, rounds_fact
from privspec.kernel.tables import Executed
from privspec.model.graph import Model
from privspec.model.pointwise import Grid, Pointwise
from privspec.model.reports import Failure, listing
from privspec.model.values import Value, exact_array
from privspec.stated import Named, Stated, parse_exact

if TYPE_CHECKING:
    from privspec.explain.claims import Claim
    from privspec.explain.context import Context
    from privspec.explain.curves import Curve
    from privspec.explain.facts import AlternativeFact, Facts
    from privspec.model.graph import Model
    from privspec.model.observers import Unit

_TABLES = Note("tables")
_ENTRY, _LOSS = Judged("law"), Judged("loss")
TRACE = Fraction(1, 10**6)
"""Masses below are traces of exact repairs: they are summed up."""
MOST_MASSES = 12
FEW_MASSES = 4


@dataclass(frozen=True, slots=True)
class ChosenLaw:
    """A law that the solver picked: its masses but for traces, these together, and its mean if it is of numbers."""

    name: str
    masses: tuple[tuple[str, Quantity], ...]
    traces: Quantity | None
    values: Quantity
    mean: Quantity | None
    lines: tuple[SpecLine, ...]

    def __str__(self) -> str:
        """In a line: its masses where they are few, else its mean."""
        if len(self.masses) <= FEW_MASSES:
            return phrase("shared.law.few", {"masses": self._listed}, self)
        given = {"shown": len(self.masses), "mean": self._mean("mean_in_short")}
        return phrase("shared.law.many", given, self)

    @property
    def _listed(self) -> list[str]:
        return [phrase("shared.law.mass", label=label, mass=mass) for label, mass in self.masses]

    def _mean(self, key: str) -> str:
        return "" if self.mean is None else phrase(f"shared.law.{key}", self)

    def sentence(self) -> Sentence:
        """For auditors."""
        shown, left = self._listed[:MOST_MASSES], len(self.masses) - MOST_MASSES
        more = phrase("shared.law.more", shown=", ".join(shown), left=left) if left > 0 else shown
        rest = phrase("shared.law.traces", self) if self.traces else ""
        given = {"line": self.lines[:1], "standing": standing(self.lines), "mean": self._mean("mean")}
        return say("shared.chosen.law", {"masses": more, "rest": rest}, given, self)

    def table(self) -> Table:
        """For engineers."""
        rows = [*self.masses, *([(phrase("shared.law.others"), self.traces)] if self.traces else [])]
        return tabled("shared.law", rows, name=self.name, mean=self._mean("mean_of_table"))


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

    @property
    def kind(self) -> str:
        """What is averaged."""
        return f"{self.shape.name}{', over the worst input' if self.worst else ''}"


@dataclass(frozen=True, slots=True)
class Domain:
    """A secret input, what it is in, and its line."""

    name: str
    domain: str
    line: SpecLine


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFact(MechanismFact):
    """A table of probabilities; `local` is whether each person draws from it for themselves."""

    table: ProbabilityTable
    rows: Quantity
    columns: Quantity
    entries: Quantity
    zeros: Quantity
    bits: Quantity
    local: bool
    recognised: Named | None
    numbers: tuple[ChosenNumber, ...]
    laws: tuple[ChosenLaw, ...]
    truths: tuple[Truth, ...]
    errors: tuple[ErrorTerm, ...]
    listed: tuple[RowFact, ...]
    metrics: Mapping[int, str] = field(repr=False)
    inputs: frozenset[str] = field(repr=False)

    page = "tables"

    # --- facts

    @property
    def known_note(self) -> Note:
        """The note on a table that is known by a name."""
        return Note(self.recognised.note if self.recognised else "tables")

    @property
    def effects(self) -> Effects:
        """Those on reports, and on words."""
        return REPORTED if self.local or any(e.shape.of_words for e in self.errors) else {}

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """Local claims and those of distances are about one report, and as exact as the rows of the table."""
        if claim.conditional:
            return claim, of_hidden(claim, stays=self.local)
        if claim.per_distance is not None:
            return self._near(claim, claim.per_distance)
        reached = claim.achieved if isinstance(claim.achieved, EpsilonDeltaCurve) else None
        times = times_of(claim)
        if not claim.local:  # of votes, whether or how somebody voted
            if self.comparison is None or times is None or claim.relation.unit is None:
                return claim, took_part(claim.relation)
            return claim, about_vote(claim.relation, claim.relation.unit, times, local=False)
        pairs = self.table.pairs(claim.wrt)
        example = [int(r) for r in pairs[-1]] if len(pairs) else [0, -1]
        if reached is not None and self._compares_rows(claim):
            bound = reached.epsilon, reached.delta
            found = probabilities.curve_of(self.table.seen(claim.outputs), pairs, bound)
            example = example if found is None else [int(r) for r in pairs[found.worst]]
            claim = replace(claim, achieved=found or dominating(*bound))
        names, of = (self._named(example[0], claim), self._named(example[1], claim)), "answer"
        if len(claim.wrt) == 1 and len(self.table.of) > 1 and claim.wrt[0] in self.table.of:
            of = claim.wrt[0].replace("_", " ")
            names = names[0].removeprefix(f"{claim.wrt[0]} "), names[1].removeprefix(f"{claim.wrt[0]} ")
        same = tuple(name for name in self.table.of if name not in claim.wrt and self._compares_rows(claim))
        return claim, which_answer(self.local, names, times, same, of)

    def _named(self, row: int, claim: Claim) -> str:
        """A row by the values that a claim is about: "red", or "outcome 1" where rows hold several."""
        label = self.table.rows[row]
        parts = [(name, spoken((part,))) for name, part in zip(self.table.of, label, strict=True) if name in claim.wrt]
        return ", ".join(map(" ".join, parts)) if len(label) > 1 and parts else spoken(label)

    def _compares_rows(self, claim: Claim) -> bool:
        """Whether a claim compares any two rows that differ in nothing but its inputs."""
        return claim.local and set(self.table.of) <= self.inputs

    def _near(self, claim: Claim, rate: Fraction) -> tuple[Claim, Question]:
        """The curve is that of the least of a few distances."""
        metric = self.metrics.get(claim.line.number, "")
        found = probabilities.reaches(self.table.seen(claim.outputs), claim.wrt, metric, rate)
        at = self.table.row_points
        plane = at is not None and at.shape[1] == 2 and len(self.table.of) == 1
        return replace(claim, achieved=found[0][2]), how_near(self.local, found, plane=plane)

    def seen(self, outputs: frozenset[str], claim: Claim, model: Model | None, unit: Unit | None) -> Curve | None:
        if claim.conditional:
            return None
        local = self._compares_rows(claim)
        pairs = self.table.pairs(claim.wrt) if local else probabilities.neighbours(self.table, claim, unit, model)
        return None if pairs is None else probabilities.bound_of(self.table.seen(tuple(outputs)), pairs)

    # --- the short table

    def drawn(self, facts: Facts) -> str:
        table = self.table
        several = len(table.releases) > 1
        what = "each report is" if self.local else f"{listing(table.releases)} {'are' if several else 'is'}"
        return (
            f"{what} drawn{' jointly' * several}{facts.context.place.removeprefix(',')} from a table of {self.rows} × "
            f"{self.columns} probabilities, a row for each value of {listing(table.of)}"
        )

    def error(self, facts: Facts) -> tuple[str, str]:
        loss = facts.loss
        if loss is None:
            return "Expected loss", ""
        if not self.errors:
            return ("Largest expected loss" if loss.worst else "Expected loss"), str(loss.value)
        label = "Largest expected error" if any(e.worst for e in self.errors) else "Expected error"
        if len(self.errors) == 1:
            only = self.errors[0]
            return label, f"{only.brief}{'' if only.shape.of_words and not only.worst else f'  ({only.kind})'}"
        kinds = {e.kind for e in self.errors}
        one = f"{self.errors[0].kind}; " if len(kinds) == 1 else ""
        each = " · ".join(f"{e.output} {e.brief}{'' if one else f' ({e.kind})'}" for e in self.errors)
        return label, f"{each}  ({one}loss {loss.value})"

    def compared(self, item: AlternativeFact, facts: Facts) -> str:
        if len(self.errors) == 1 and facts.loss is not None and facts.loss.value.value > 0:
            weight = facts.context.loss_terms[0].weight
            figure = self.errors[0].shape.figure(item.loss.value / float(weight))
            if figure.text != self.errors[0].figure.text:
                return f" {figure}"
        return f" {item.weighed}"

    # --- the pages

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        # a wrong answer is told as the probability of the true one; distances say more than that
        asked = {(e.output, e.against) for e in self.errors if e.shape.of_words}
        told = {(truth.output, truth.node): truth for truth in self.truths}
        found = []
        for key, truth in told.items():
            if key in asked:
                size = truth.output, truth.least.value, truth.largest.value
                found.append(facts.of_chance(self._truth(truth, facts), f"probability of {truth.node}", size))
        for e in self.errors:
            if not (e.shape.of_words and (e.output, e.against) in told):
                drawn = e.output if e.output in self.table.releases else self.table.releases[0]
                of = "" if drawn == e.output else f" of {e.output}"
                measure = f"{e.shape.name}{of} against {e.against}{', at worst' * e.worst}"
                found.append(facts.of_chance(self._off(e, facts), measure, (drawn, e.figure.value, e.figure.value)))
        averaged = self.table.prior is not None and any(not (e.worst or e.shape.of_words) for e in self.errors)
        revealing = self.local and np.linalg.matrix_rank(self.table.shares) == len(self.table.rows)
        return *found, *sentences("tables.public_more", facts, averaged=averaged, revealing=revealing)

    def _truth(self, truth: Truth, facts: Facts) -> Sentence:
        """How often an output is the true value."""
        whose = "published" if not self.local else "one_of_several" if len(self.table.of) > 1 else "report"
        one = truth.least.text == truth.largest.text or truth.largest.value - truth.least.value < 1e-9
        given = {"whose": phrase(f"tables.whose.{whose}", truth), "chance": rounded(truth.least.value)}
        return say(f"tables.public_truth.{'one' if one else 'span'}", given, truth, facts)

    def _off(self, term: ErrorTerm, facts: Facts) -> Sentence:
        """How far an output is off."""
        what = "published" if not self.local else "report" if term.output in self.table.releases else "computed"
        figure = str(term.figure)
        words = term.words.replace(figure, f"{figure}{facts.unit(term.output, figure)}", 1)
        return say("tables.public_error.off", {"what": phrase(f"tables.what.{what}", term), "off": words}, term, facts)

    def values(self, facts: Facts) -> Mapping[str, object]:
        table, where = self.table, facts.context
        relations = [c.claim.relation for c in facts.claims if not c.claim.by_distance]
        model = () if facts.model is None else facts.model.requirements
        counting = {c.claim.requirement for c in facts.claims if c.claim.conditional}
        return {
            "counting": [model[k].line for k in sorted(counting) if k < len(model)],
            "counting_lines": tuple(c.claim.line for c in facts.claims if c.claim.conditional),
            "people": sorted({r.plural for r in relations if r.single and not r.adds}),
            "picked": " · ".join(map(str, (*self.numbers, *self.laws))),
            "releases": ", ".join(table.releases),
            "of": ", ".join(table.of),
            "of_listed": listing(table.of),
            "as_counts": sorted(table.counted),
            "one": 1,
            "none": 0,
            "domains": [Domain(name, domain, where.line_of(name)) for name, domain in where.input_domains.items()],
            "files": given(where.input_domains),
        }

    def public_sections(self, facts: Facts) -> tuple[Section, ...]:
        """What the odds take for granted where a line counts on the model."""
        found, rounds = self._sentences("public_model", facts), MechanismFact.public_sections(self, facts)
        return (*sections(("What if the model is wrong?", (Paragraph(found),) if found else ())), *rounds)

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        counted_on = self._sentences("counted_on", facts)
        laws = (law.sentence() for law in self.laws)
        return *MechanismFact.auditor_points(self, facts), *counted_on, *self._numbers(), *laws

    def _numbers(self) -> list[Sentence]:
        return [number.sentence() for number in self.numbers]

    def auditor_tables(self, facts: Facts) -> tuple[Block, ...]:
        rows = [(e.output, e.against, e.kind, str(e.figure)) for e in self.errors]
        true, span = "tables.errors.true", "tables.errors.span"
        rows += [(t.output, t.node, phrase(true), phrase(span, t)) for t in self.truths]
        errors = tabled("tables.errors", rows)
        return (*((errors,) if rows else ()), *self._rounds(), *(self.comparison.blocks() if self.comparison else ()))

    def _rounds(self) -> tuple[Block, ...]:
        return () if self.rounds is None else (Points(self.rounds.points()), self.rounds.table())

    def engineer_points(self, facts: Facts) -> list[Sentence]:
        counted_on = self._sentences("counted_on", facts)
        return [*MechanismFact.engineer_points(self, facts), *counted_on, *self._numbers()]

    def engineer_blocks(self, facts: Facts) -> list[Block]:
        return [*(law.table() for law in self.laws), *table_plots(self.table), *self._rounds()]


# --- pictures -------------------------------------------------------------------------------------


MOST_MAPS = 4


def table_plots(table: ProbabilityTable) -> tuple[Plot, ...]:
    """The heat map of a table, one more of each output where several are drawn together, and maps of a few rows."""
    if not table.rows or not table.columns:
        return ()
    single = [table.seen([name]) for name in table.releases] if len(table.releases) > 1 else []
    parts = [*single[:MOST_MAPS], table]
    found = [heat_map(part, f"table{place if place > 1 else ''}") for place, part in enumerate(parts, start=1)]
    maps = plane_maps(table)
    return (*found, *((maps,) if maps is not None else ()))


def heat_map(table: ProbabilityTable, name: str = "table") -> Plot:
    """A whole table: a row for each value of the secret, a column for each value drawn."""
    drawn, of, size = listing(table.releases), listing(table.of), max(table.shares.shape)
    named, names = list(map(spoken, table.rows)), list(map(spoken, table.columns))
    row, column = np.unravel_index(int(np.argmax(table.shares)), table.shares.shape)
    given = {
        "of": of,
        "drawn": drawn,
        "high": len(named),
        "wide": len(names),
        "largest": rounded(float(table.shares.max())),
        "row": named[row],
        "column": names[column],
        "releases": ", ".join(table.releases),
        "given": ", ".join(table.of),
        "blocks": size > drawing.MOST_CELLS,
        "one": 1,
    }
    cells = ((label, *(rounded(float(p)) for p in shares)) for label, shares in zip(named, table.shares, strict=True))
    whole = plotted(
        "plots.table",
        lambda: drawing.table_chart(table.shares, named, names, of, drawn),
        cells if size <= drawing.MOST_NUMBERS else (),
        name=name,
        more=[f"#{name}" for name in names],
        **given,
    )
    return whole if size <= drawing.MOST_NUMBERS else replace(whole, twin=_summed_up(table, of, drawn))


def _summed_up(table: ProbabilityTable, of: str, drawn: str) -> Table:
    listed = row_facts(table)
    true = [phrase("plots.rows.true")] if any(item.truth is not None for item in listed) else []
    rows = ((i.row, i.likeliest, i.probability, i.truth)[: 3 + len(true)] for i in listed)
    rest = phrase("plots.rows.rest", listed=len(listed), many=len(table.rows)) if len(listed) < len(table.rows) else ""
    return tabled("plots.rows", rows, true, of=of, drawn=drawn, rest=rest)


def plane_maps(table: ProbabilityTable) -> Plot | None:
    """Where the reports of a few places fall; None unless both are points in the plane on a grid."""
    at, to = table.row_points, table.column_points
    if at is None or to is None or at.shape[1] != 2 or to.shape[1] != 2 or len(table.of) != 1 or table.counted:
        return None
    (xs, column), (ys, row) = (np.unique(to[:, k], return_inverse=True) for k in (0, 1))
    if len(xs) * len(ys) > 2 * len(to) or max(len(xs), len(ys)) > drawing.MOST_CELLS:
        return None
    rows, maps = [], []
    for place in spread_out(at):
        shares, name = table.shares[place], spoken(table.rows[place])
        best, mean = int(np.argmax(shares)), (rounded(float(value)).text for value in shares @ to)
        rows.append((name, spoken(table.columns[best]), rounded(float(shares[best])), f"({', '.join(mean)})"))
        picture = np.zeros((len(ys), len(xs)))
        np.add.at(picture, (len(ys) - 1 - row, column), shares)
        ring = [float(np.interp(at[place, k], ends, np.arange(len(ends)))) for k, ends in enumerate((xs, ys))]
        maps.append(drawing.Map(f"{table.of[0]} = {name}", picture, (ring[0], ring[1])))
    places = [name for name, *_ in rows]
    return plotted("plots.maps", lambda: drawing.map_chart(maps), rows, places=places, many=len(places))


def spread_out(at: probabilities.Array) -> list[int]:
    """A few points (n, d) that show the whole: one in the middle, then always the one farthest from those chosen."""
    chosen = [int(np.argmin(((at - at.mean(axis=0)) ** 2).sum(axis=1)))]
    apart = np.sqrt(((at[:, None, :] - at[None, :, :]) ** 2).sum(axis=2))
    while len(chosen) < min(MOST_MAPS, len(at)):
        nearest = apart[:, chosen].min(axis=1)
        if nearest.max() <= 0:
            break
        chosen.append(int(np.argmax(nearest)))
    return chosen


# --- reading --------------------------------------------------------------------------------------


def table_fact(plan: Stated, context: Context) -> TableFact:
    """The mechanism of a plan of the family "table".

    Raises: ValueError if it is not of that form.
    """
    found: Executed = plan.executed
    table, rounds = probabilities.read_table(found), found.rounds
    return TableFact(
        family=found.FORM,
        released=frozenset(table.releases),
        comparison=comparison(plan),
        rounds=None if rounds is None else rounds_fact(rounds, EpsilonDeltaCurve(float(rounds.each)), chosen=False),
        table=table,
        rows=count(len(table.rows)),
        columns=count(len(table.columns)),
        entries=count(table.shares.size),
        zeros=count(int(np.count_nonzero(table.shares == 0))),
        bits=count(probabilities.common_bits(found)),
        local=context.alone,
        recognised=plan.remarks.recognised,
        numbers=chosen_numbers(plan, context),
        laws=tuple(_law(name, masses, context) for name, masses in found.laws.items()),
        truths=tuple(_truths(table, context)),
        errors=tuple(_errors(plan, table, context)),
        listed=row_facts(table),
        metrics=context.distances,
        inputs=frozenset(context.input_domains),
    )


def _law(name: str, masses: Mapping[str, Fraction], context: Context) -> ChosenLaw:
    numbers, rest = _numeric(masses), sum((mass for mass in masses.values() if mass < TRACE), Fraction(0))
    return ChosenLaw(
        name,
        tuple((label, rounded(mass, 4)) for label, mass in masses.items() if mass >= TRACE),
        rounded(rest, 2, UP) if rest else None,
        count(len(masses)),
        rounded(sum((value * mass for value, mass in numbers.items()), Fraction(0)), 4) if numbers else None,
        context.choices.get(name, ()),
    )


def _numeric(masses: Mapping[str, Fraction]) -> dict[Fraction, Fraction]:
    """A law by its values, where these are numbers; empty otherwise."""
    try:
        return {parse_exact(label): mass for label, mass in masses.items()}
    except ValueError:
        return {}


def _truths(table: ProbabilityTable, context: Context) -> Sequence[Truth]:
    """For each output and the value that the loss compares it with; without such a loss, where there is but one."""
    pairs = dict.fromkeys((t.left, t.right) for t in context.loss_terms)
    if not pairs and len(table.releases) == len(table.of) == 1:
        pairs = {(table.releases[0], table.of[0]): None}
    found = []
    for output, node in pairs:
        shares = table.truths(output, node)
        if shares is not None and len(shares):
            least, largest = (rounded(float(bound(shares)), 3, way) for bound, way in ((min, DOWN), (max, UP)))
            found.append(Truth(output, node, least, largest, known(table.mean(shares))))
    return found


def _errors(plan: Stated, table: ProbabilityTable, context: Context) -> Sequence[ErrorTerm]:
    """Each error of the loss with its average; none where one of them cannot be computed."""
    terms, loss = context.loss_terms, plan.loss
    if len(terms) == 1 and terms[0].weight > 0 and loss is not None:
        return (_term(terms[0], loss.value / float(terms[0].weight)),)
    if context.formulas.model is None:
        return ()
    scene = _scene(context.formulas.model, plan.executed, table)
    try:
        found = [(term, _average(scene.of(term.body), table, worst=term.worst)) for term in terms]
    except Failure:
        return ()
    averages = tuple(_term(term, average) for term, average in found if average is not None)
    return averages if len(averages) == len(found) else ()


def _average(errors: Grid, table: ProbabilityTable, *, worst: bool) -> float | None:
    """The average of errors, or their largest average over the rows; None where rows have no law."""
    rows = (table.shares * errors.spread(*table.shares.shape).astype(float)).sum(axis=1)
    return float(rows.max()) if worst else table.mean(rows)


def _term(term: LossTerm, average: float) -> ErrorTerm:
    shape = term.shape
    figures = shape.figure(average), shape.brief(average), shape.words(average)
    return ErrorTerm(term.left, term.right, shape, term.worst, *figures)


def _scene(model: Model, found: Executed, table: ProbabilityTable) -> Pointwise:
    """The values that errors are computed from; those that are held as counts have none."""

    def values(names: Sequence[str], labels: Sequence[probabilities.Label]) -> dict[str, Sequence[Value]]:
        return {n: [_value(one[i]) for one in labels] for i, n in enumerate(names) if n not in table.counted}

    laws = {name: {_scalar(value): mass for value, mass in law.items()} for name, law in found.laws.items()}
    return Pointwise(model, values(table.of, table.rows), values(table.releases, table.columns), found.scalars, laws)


def _value(part: probabilities.Part) -> Value:
    scalars = [_scalar(text) for text in part]
    if len(scalars) == 1:
        return scalars[0]
    numbers = [one for one in scalars if isinstance(one, Fraction)]
    return exact_array(numbers, (len(numbers),)) if len(numbers) == len(scalars) else tuple(scalars)


def _scalar(text: str) -> Fraction | str:
    try:
        return parse_exact(text)
    except ValueError:
        return text
