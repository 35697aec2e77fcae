"""Plans of statistics and of selections: what is made noisy or drawn, where, and what that protects in plain words."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any

from privspec.core.records import dataclass, replace
from privspec.explain.document import (
    Accuracy,
    Block,
    Judged,
    Note,
    Sentence,
    SpecLine,
    asserted,
    assumed,
    proved,
    table,
    tested,
)
from privspec.explain.facts import AddedNoise, MechanismFact, executed, randomness, run_command
from privspec.explain.quantities import UP, Quantity, count, known, rounded
from privspec.kernel.core.problem import read_frame
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.selection import Drawn, Ranks, Selected, Where, read_drawn
from privspec.kernel.trust import NOBODY
from privspec.model.reports import listing
from privspec.stated import Site, Stated, Statistic

if TYPE_CHECKING:
    from privspec.explain.context import Context
    from privspec.explain.facts import AlternativeFact, Facts, Rows


_POST = Note("post-processing")
DIGITS = 3
"""Of predicted losses: more than their standard errors deserve."""
_LISTED = 5
_SHAPES = {
    "laplace": ("Laplace noise", "laplace", "discrete-laplace"),
    "gaussian": ("Gaussian noise", "gaussian-exact", "rounded-gaussian"),
    "knorm-l2": ("K-norm noise of the Euclidean ball", "knorm-l2"),
    "knorm-linf": ("K-norm noise of the cube", "knorm-linf"),
    "duchi-l2": ("a random point of a sphere", "duchi-l2"),
}
"""What each shape of noise is, and the notes about it."""


@dataclass(frozen=True, slots=True)
class StatisticFact(AddedNoise):
    """One statistic of bounded records with noise; `statistic` is what the spec means by it."""

    statistic: Statistic
    route: str
    own_ball: bool
    note: Note
    parties: Quantity
    records: Quantity
    dimension: Quantity
    radius: Quantity | None
    each_party: bool
    finish_first: bool
    noise: tuple[Site, ...]
    without_noise: Quantity | None
    crowds: Quantity
    stand_ins: Quantity
    """Parties of a simulated crowd, who may stand for more."""
    local: bool
    angle: bool
    """Whether the loss is an angle as a share of half a turn: the share of choices that are decided differently."""
    input_line: SpecLine

    page = "statistics"
    by_chance = False

    @property
    def gaps(self) -> tuple[str, ...]:
        return ("How good the result is was predicted by simulation; nothing is proved about it.",)

    # --- words

    @property
    def party(self) -> str:
        """One of those who hold the records."""
        return self.statistic.party

    @property
    def place(self) -> str:
        """Where the noise enters."""
        if self.each_party:
            return f"at each {self.party}, before anything is sent" if self.local else f"at each {self.party}"
        return "once, at the sum over all, by the curator"

    @property
    def law(self) -> str:
        """The shape of the noise."""
        return " and ".join(dict.fromkeys(_shape(n.shape)[0] for n in self.noise))

    @property
    def input(self) -> str:
        """The secret input and its size."""
        sizes = f"{self.parties} × {self.records} records of {self.dimension} numbers"
        return f"{self.statistic.source}: {sizes}"

    def drawn(self, facts: Facts) -> str:
        order = f"; each {self.party}'s noisy statistic is solved, then averaged" if self.finish_first else ""
        return f"{self.law} on the {self.route}, {self.place}{order}"

    def summary_rows(self, facts: Facts) -> Rows:
        if self.without_noise is None:
            return []
        return [("Without any noise", f"{self.without_noise}  for {self.statistic.function} itself; not private")]

    def error(self, facts: Facts) -> tuple[str, str]:
        loss = facts.loss
        if loss is None:
            return "Predicted loss", ""
        error = f" ± {loss.standard_error}" if loss.standard_error is not None else ""
        stand = (
            "" if self.stand_ins.value == self.parties.value else f" of {self.stand_ins}, who stand for {self.parties}"
        )
        crowds = f"{self.crowds} simulated crowds{stand}, clipped likewise"
        return "Predicted loss", f"{loss.value}{error}  ({crowds}; standard error)"

    def compared(self, item: AlternativeFact, facts: Facts) -> str:
        return f" {item.loss}"

    def protects(self, facts: Facts) -> tuple[Sentence, ...]:
        """What is protected and what is not, in plain words for the unit and the trust of the spec."""
        found = []
        for fact in facts.claims:
            if f"one {self.party}" in fact.claim.relation.text:
                text = (
                    f"The odds above are about everything that you as one {self.party} sent in, all {self.records} "
                    "records together."
                )
            else:
                text = (
                    f"The odds above are about any one of your {self.records} records. What your records have in "
                    "common is protected less, because they are protected one at a time."
                )
            found.append(proved(text, fact.claim.line, self.note))
        return tuple(found)

    # --- the pages

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        if facts.loss is None:
            return ()
        loss, bare, name = facts.loss.value.value, self.without_noise, self.statistic.output
        scale, of, digits = (180, " degrees", 2) if self.angle else (1, "", DIGITS)
        off = f"{rounded(scale * loss, digits)}{of}"
        asked = "" if bare is None else f" (as asked for, without noise: {rounded(scale * bare.value, digits)})"
        text = f"In simulated crowds, clipped likewise, the published {name} is about {off} off on average{asked}."
        said = [replace(tested(text, facts.context.loss_because), accuracy=Accuracy("crowds", ((name, loss, loss),)))]
        if self.angle:
            share = f"about {rounded(100 * loss, 2)} of 100 choices between two alternatives"
            text = f"So it decides {share} differently from people's true values."
            said.append(tested(text, facts.context.loss_because))
        return *said, *self.protects(facts)

    def exactly(self, facts: Facts) -> tuple[str, ...]:
        return f"how many took part ({self.parties})", f"how many records each has ({self.records})", "the rules"

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        fit = "taken as they are"
        if self.radius is not None:
            fit = f"drawn in to the ball of radius {self.radius}, each by itself"
        other = f"The noise is added to the {self.route}, which is not quite the estimate that the spec names."
        source, grid = self.statistic.source, self.statistic.grid
        notes = (Note(note) for n in self.noise for note in _shape(n.shape)[1:])
        return (
            proved(f"Records of {source} are {fit}, and put on a grid of step {grid}.", self.input_line, self.note),
            proved(
                f"Each {self.party}'s records give the {self.route}; the noise is calibrated to how far "
                "one unit can move it, rounding included.",
                self.note,
            ),
            proved(f"The noise is {self.law}, drawn in exact arithmetic {self.place}.", *dict.fromkeys(notes)),
            proved("All else is computed from noisy numbers and public ones.", _POST),
            *([proved(other, self.note)] if self.own_ball else []),
            *self.protects(facts),
            *randomness(self.note),
        )

    def in_figures(self) -> list[Block]:
        rows = [(n.at, n.shape, key, value) for n in self.noise[:_LISTED] for key, value in n.parameters.items()]
        more = f", the first {_LISTED} of {len(self.noise)} parties" if len(self.noise) > _LISTED else ""
        return [table(f"Noise as executed (exact numbers){more}", "Site | Shape | Parameter | Value", rows)]

    def data(self, facts: Facts) -> tuple[Sentence, ...]:
        return (asserted(f"Secret input {self.input}.", self.input_line),)

    def engineer_points(self, facts: Facts) -> list[Sentence]:
        return [tested(f"Chosen: {self.drawn(facts)}.", facts.context.loss_because)]

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        noise = f"{self.law}, {self.place}"
        rows = [("Input", self.input), ("Statistic", self.route), ("Noise", noise), ("Grid", self.statistic.grid)]
        return executed(
            facts, rows, proved("Everything released is computed from noisy numbers and public ones.", _POST)
        )

    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        return (f"{run_command(plan, (self.statistic.source,), 'parquet')} -o release.json",)


def _shape(name: str) -> tuple[str, ...]:
    return _SHAPES.get(name, (f"noise of the shape {name}", "post-processing"))


def statistic_fact(plan: Stated, context: Context) -> StatisticFact:
    """The mechanism of a plan of the family "statistic".

    Raises: KeyError, TypeError, ValueError if it is not of that form.
    """
    mechanism, (block,) = plan.mechanism, plan.problem.blocks
    found = Statistic.read(block)
    route = next(route for route in found.routes if route.at == mechanism.route)
    notes = [note for guarantee in plan.guarantees for note in guarantee.because]
    return StatisticFact(
        family=mechanism.family,
        released=frozenset({found.output}),
        statistic=found,
        route=route.name,
        own_ball=route.estimated_within is not None,
        note=Note(notes[0] if notes else "post-processing"),
        parties=count(found.parties),
        records=count(found.count),
        dimension=count(found.dimension),
        radius=known(found.radius, 6),
        each_party=mechanism.where == "each party",
        finish_first=mechanism.finish_first,
        noise=mechanism.sites,
        without_noise=None if plan.loss is None else known(plan.loss.without_noise),
        crowds=count(0 if plan.loss is None else plan.loss.crowds),
        stand_ins=count(0 if plan.loss is None else plan.loss.parties),
        local=context.trust == NOBODY.name,
        angle=plan.loss is not None and plan.loss.expression.replace(" ", "").startswith("E[disagreement("),
        input_line=context.line_of(found.source),
    )


# --- selections -----------------------------------------------------------------------------------


_NOTE = Note("scores")
NAMES = {
    "exponential": "the exponential mechanism",
    "permute_and_flip": "permute-and-flip",
    "table": "a table of exact chances, a row for each table of counts",
}
FEW = 6
"""Values that a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionFact(MechanismFact):
    """One of the values of a column; `off` the loss in units that readers know, its root where it is a square."""

    block: Selected
    base: Fraction
    offset: int
    weighed: bool
    off: Quantity
    input_line: SpecLine

    page = "selection"

    @property
    def answers(self) -> str:
        """The answers in a few words."""
        answers = self.block.answers
        if self.block.numbers:
            return f"{len(answers)} values from {answers[0]} to {answers[-1]}"
        return listing(list(answers[:FEW])) + (f" and {len(answers) - FEW} more" if len(answers) > FEW else "")

    @property
    def sought(self) -> str:
        """What is looked for, in words."""
        share = self.share
        if share is None:
            return f"the most frequent {self.block.column}"
        if share in (0, 1):
            return f"the {'largest' if share else 'smallest'} value of “{self.block.column}”"
        if share == Fraction(1, 2):
            return f"the median of “{self.block.column}” (the value in the middle)"
        return f"the value of “{self.block.column}” that {float(100 * share):g} % of the records do not exceed"

    @property
    def among(self) -> str:
        """Which records count, with the space before it."""
        each = f" in each of the {self.groups} groups by {listing([one.column for one in self.block.by])}"
        kept = f" among records with {listing([_kept(one) for one in self.block.where])}" if self.block.where else ""
        return (each if self.block.by else "") + kept

    @property
    def share(self) -> Fraction | None:
        """Of the records, that the value that is sought is at; None for the most frequent one."""
        return self.block.score.share if isinstance(self.block.score, Ranks) else None

    @property
    def groups(self) -> int:
        """How many values are drawn."""
        return self.block.groups

    def drawn(self, facts: Facts) -> str:
        each = f" for each of {self.groups} groups by {listing([one.column for one in self.block.by])}"
        where = f"{self.answers}{each if self.block.by else ''}"
        return f"{self.block.output} is drawn from {where} by {NAMES[self.family]}{self._beside()}"

    def _beside(self) -> str:
        if not self.offset:
            return ", weighed by the stated law" if self.weighed else ""
        many = "1 record" if abs(self.offset) == 1 else f"{count(abs(self.offset))} records"
        return f", aiming {many} {'above' if self.offset > 0 else 'below'} what is sought" + (
            ", weighed by the stated law" if self.weighed else ""
        )

    def error(self, facts: Facts) -> tuple[str, str]:
        loss, cost = facts.loss, self.block.cost
        if loss is None:
            return "Expected error", ""
        label = "Largest expected error" if cost.worst else "Expected error"
        kind = {"ranks": "in records", "mismatch": "chance of another value"}.get(cost.form, "mean absolute error")
        kind = "root mean square error" if cost.power == 2 else kind
        kind += ", all groups together" if self.block.by else ""
        spread = "" if loss.standard_error is None or cost.power == 2 else f" ± {loss.standard_error}"
        return label, f"{self.off}{spread}  ({kind})"

    # --- the pages

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        cost, off, unit = self.block.cost, self.off, self.block.output
        text = f"What is published is {self.sought}{self.among}, or a value near it. Chance decides, which protects "
        text += "everybody."
        kind, which = "typically" if cost.power == 2 else "on average", "a" if self.block.by else "the"
        if self.block.by and cost.form not in ("ranks", "mismatch"):
            off = rounded(off.value / (sqrt(self.groups) if cost.power == 2 else self.groups), 3, UP)
        size = {
            "ranks": f"at worst the published value is on average {off} records away from the true one",
            "mismatch": f"a value other than the true one is published with a chance of about {off}",
        }.get(cost.form, f"{which} published value is {kind} about {off}{facts.unit(unit, off.text)} off")
        if cost.form == "ranks" and self.share is None:
            size = f"at worst the published value has on average {off} records fewer than the most frequent one"
        if self.block.by and cost.form in ("ranks", "mismatch"):
            size += f", the sum over {self.groups} groups"
        where, measure = facts.context.loss_because, f"{cost.form} {cost.power}{', at worst' * cost.worst}"
        said = proved(f"By chance alone, {size}.", where, Judged("loss"))
        if not cost.worst:
            said = assumed(f"With simulated data as the author expects, {size}.", where)
        return proved(text, _NOTE, Judged("law")), facts.of_chance(said, measure, (unit, off.value, off.value))

    def exactly(self, facts: Facts) -> tuple[str, ...]:
        return "that a value was drawn", f"the {len(self.block.answers):,} values that it was drawn from"

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        block = self.block
        whole = self.share is None or self.share.denominator == 1
        step = "one record" if self.share is None or whole else f"1/{self.share.denominator} of a record"
        text = (
            f"{block.output} is one of {self.answers}. Each is behind the best one by a number of steps of {step}; "
            f"a step multiplies its chance by {float(1 / self.base):.6g}. It is drawn by {NAMES[self.family]}"
            f"{self._beside()}."
        )
        if self.family == "table":
            text = (
                f"{block.output} is one of {self.answers}, drawn by {NAMES[self.family]}; each row of it adds up to 1."
            )
        read = "Each record is read at the nearest of these values, by itself. " if block.numbers else ""
        why = f"{read}How far one record can move the steps, and with them the chances, is proved in the note."
        exact = "Draws compare whole numbers of the operating system's generator: no floating-point number takes part."
        return proved(text, Judged("law")), proved(why, _NOTE), proved(exact, _NOTE), *randomness(_NOTE)

    def auditor_tables(self, facts: Facts) -> tuple[Block, ...]:
        return (self.ways(facts),) if facts.alternatives else ()

    def data(self, facts: Facts) -> tuple[Sentence, ...]:
        block = self.block
        many = "a secret number of records" if block.records is None else f"{count(block.records)} records"
        text = f"Secret input {block.source}: a table of {many}, of which {self.sought}{self.among} is asked for."
        return (asserted(text, self.input_line),)

    def engineer_points(self, facts: Facts) -> list[Sentence]:
        step = "" if self.family == "table" else f"; a step of a score has the chance {1 / self.base}"
        words = f"How it is drawn: {self.drawn(facts)}{step}."
        return [proved(words, _NOTE, Judged("law"))]

    def engineer_blocks(self, facts: Facts) -> list[Block]:
        return list(self.auditor_tables(facts))

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        block = self.block
        rows = [
            ("Column", f"{block.column} of {block.source}{self.among}"),
            ("Values", self.answers),
            ("Rule", f"{NAMES[self.family]}{self._beside()}"),
            *([] if self.family == "table" else [("Chance of one step", str(1 / self.base))]),
            ("Released", block.output),
        ]
        text = "Chances are powers of one fraction: each is as many tosses of a coin that compares whole numbers."
        if self.family == "table":
            text = "A uniform whole number below the common sum of the chances is found among the sums of a row."
        return executed(facts, rows, proved(text, _NOTE))

    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        return (run_command(plan, (self.block.source,)),)


def _kept(one: Where) -> str:
    """A condition in words: `age from 65 to 120`, `sex F`."""
    kept = [one.values[i] for i in one.kept]
    run = list(one.kept) == list(range(one.kept[0], one.kept[-1] + 1)) and len(kept) > 2
    number: Any = one.values[0].lstrip("-").replace(".", "").isdigit()
    if run and number:
        return f"{one.column} from {kept[0]} to {kept[-1]}"
    more = f" or {len(kept) - FEW} more" if len(kept) > FEW else ""
    return f"{one.column} {listing(kept[:FEW], 'or')}{more}"


def selection_fact(plan: Stated, context: Context) -> SelectionFact:
    """The mechanism of a plan of the form "selection".

    Raises: KeyError, TypeError, ValueError if it is not of that form.
    """
    frame = read_frame(JsonNode(plan.document["problem"], "problem"))
    drawn = plan.executed_as(lambda block, mechanism: read_drawn(block, mechanism, frame))
    column, target = drawn.block, drawn.target if isinstance(drawn, Drawn) else None
    value = 0.0 if plan.loss is None else plan.loss.value / float(column.cost.weight)
    return SelectionFact(
        family=drawn.family,
        released=frozenset(drawn.outputs),
        block=column,
        base=drawn.base if isinstance(drawn, Drawn) else Fraction(1),
        offset=0 if target is None else target.offset,
        weighed=isinstance(drawn, Drawn) and any(drawn.handicap),
        off=rounded(sqrt(max(value, 0.0)) if column.cost.power == 2 else value),
        input_line=context.line_of(column.source),
    )
