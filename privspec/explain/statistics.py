"""Plans of statistics and of selections: what is made noisy or drawn, where, and what that protects in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import compress
from math import sqrt
from typing import TYPE_CHECKING, Any

from privspec.core.records import dataclass
from privspec.explain.document import Accuracy, Block, Note, Sentence, SpecLine, table
from privspec.explain.facts import AddedNoise, MechanismFact, randomness
from privspec.explain.messages import phrase, phrases
from privspec.explain.quantities import UP, Quantity, count, known, rounded
from privspec.kernel.core.problem import read_frame
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.selection import Drawn, Ranks, Selected, Where, read_drawn
from privspec.model.reports import listing
from privspec.stated import Site, Stated, Statistic

if TYPE_CHECKING:
    from privspec.explain.context import Context
    from privspec.explain.facts import AlternativeFact, Facts


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
    error = MechanismFact.error

    # --- words

    @property
    def party(self) -> str:
        """One of those who hold the records."""
        return self.statistic.party

    @property
    def place(self) -> str:
        """Where the noise enters."""
        where = "sum" if not self.each_party else "message" if self.local else "party"
        return phrase(f"statistics.where.{where}", self)

    @property
    def law(self) -> str:
        """The shape of the noise."""
        return " and ".join(dict.fromkeys(_shape(n.shape)[0] for n in self.noise))

    @property
    def law_notes(self) -> tuple[Note, ...]:
        """The notes about it."""
        return tuple(dict.fromkeys(Note(note) for n in self.noise for note in _shape(n.shape)[1:]))

    @property
    def input(self) -> str:
        """The secret input and its size."""
        sizes = f"{self.parties} × {self.records} records of {self.dimension} numbers"
        return f"{self.statistic.source}: {sizes}"

    @property
    def stand_in(self) -> bool:
        """Whether parties of a simulated crowd stand for more."""
        return self.stand_ins.value != self.parties.value

    @property
    def run_note(self) -> Note:
        return self.note

    def values(self, facts: Facts) -> Mapping[str, object]:
        """An angle in degrees, and the claims by whether they are about all records of one party."""
        scale, digits = (180, 2) if self.angle else (1, DIGITS)
        loss = math.nan if facts.loss is None else facts.loss.value.value
        whole = [f"one {self.party}" in fact.claim.relation.text for fact in facts.claims]
        return {
            "off": rounded(scale * loss, digits),
            "bare": None if self.without_noise is None else rounded(scale * self.without_noise.value, digits),
            "decided": rounded(100 * loss, 2),
            "all_of": 100,
            "claims_of_all": list(compress(facts.claims, whole)),
            "claims_of_one": list(compress(facts.claims, (not one for one in whole))),
        }

    def compared(self, item: AlternativeFact, facts: Facts) -> str:
        return f" {item.loss}"

    # --- the pages

    def accuracies(self, facts: Facts) -> Mapping[str, Accuracy]:
        loss = math.nan if facts.loss is None else facts.loss.value.value
        return dict.fromkeys(("off", "off_more"), Accuracy("crowds", ((self.statistic.output, loss, loss),)))

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        protects = () if facts.loss is None else self._sentences("protects", facts)
        return *AddedNoise.public_accuracy(self, facts), *protects

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        return *self._sentences("auditor", facts), *self._sentences("protects", facts), *randomness(self.note)

    def in_figures(self) -> list[Block]:
        rows = [(n.at, n.shape, key, value) for n in self.noise[:_LISTED] for key, value in n.parameters.items()]
        more = f", the first {_LISTED} of {len(self.noise)} parties" if len(self.noise) > _LISTED else ""
        return [table(f"Noise as executed (exact numbers){more}", "Site | Shape | Parameter | Value", rows)]


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
        local=context.alone,
        angle=plan.loss is not None and plan.loss.expression.replace(" ", "").startswith("E[disagreement("),
        input_line=context.line_of(found.source),
    )


# --- selections -----------------------------------------------------------------------------------


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

    # --- words

    @property
    def answers(self) -> str:
        """The answers in a few words."""
        answers = self.block.answers
        if self.block.numbers:
            return f"{len(answers)} values from {answers[0]} to {answers[-1]}"
        return listing(list(answers[:FEW])) + (f" and {len(answers) - FEW} more" if len(answers) > FEW else "")

    @property
    def share(self) -> Fraction | None:
        """Of the records, that the value that is sought is at; None for the most frequent one."""
        return self.block.score.share if isinstance(self.block.score, Ranks) else None

    @property
    def most_frequent(self) -> bool:
        """Whether the most frequent value is sought."""
        return self.share is None

    @property
    def sought(self) -> str:
        """What is looked for, in words."""
        share = self.share
        ends = {Fraction(0): "smallest", Fraction(1): "largest", Fraction(1, 2): "median"}
        found = {"column": self.block.column}
        if share is None:
            return phrase("selection.sought.frequent", found)
        percent = f"{float(100 * share):g}"
        return phrase(f"selection.sought.{ends.get(share, 'rank')}", found, {"percent": percent})

    @property
    def columns(self) -> str:
        """What groups are made by."""
        return listing([one.column for one in self.block.by])

    @property
    def among(self) -> str:
        """Which records count, with the space before it."""
        each = f" in each of the {self.groups} groups by {self.columns}"
        kept = f" among records with {listing([_kept(one) for one in self.block.where])}" if self.block.where else ""
        return (each if self.block.by else "") + kept

    @property
    def groups(self) -> int:
        """How many values are drawn."""
        return self.block.groups

    @property
    def rule(self) -> str:
        """The rule by name."""
        return phrase(f"selection.rule.{self.family}")

    @property
    def beside(self) -> str:
        """What it aims at, and by what it weighs, after a comma."""
        many = "1 record" if abs(self.offset) == 1 else f"{count(abs(self.offset))} records"
        aim = {"aim": many if self.offset else "", "offset_up": self.offset > 0}
        return "".join(text for _, text in phrases("selection.beside", aim, self))

    @property
    def grouped(self) -> bool:
        """Whether a value is drawn for each of some groups."""
        return bool(self.block.by)

    @property
    def of_numbers(self) -> bool:
        """Whether the answers are numbers."""
        return self.block.numbers is not None

    @property
    def squared(self) -> bool:
        """Whether errors are squared."""
        return self.block.cost.power == 2

    @property
    def of_values(self) -> bool:
        """Whether errors are sizes of differences of values."""
        return self.block.cost.form not in ("ranks", "mismatch")

    @property
    def measure(self) -> str:
        """What the error is."""
        kind = "squared" if self.squared else "absolute" if self.of_values else self.block.cost.form
        return phrase(f"selection.measure.{kind}")

    @property
    def each_off(self) -> Quantity:
        """The error of a value of one group."""
        if not self.block.by:
            return self.off
        return rounded(self.off.value / (sqrt(self.groups) if self.squared else self.groups), 3, UP)

    def values(self, facts: Facts) -> Mapping[str, object]:
        block, share = self.block, self.share
        whole = share is None or share.denominator == 1
        unit = {"unit": facts.unit(block.output, self.each_off.text)}
        chance = 1 / self.base
        return {
            "at_worst": facts.loss is not None and block.cost.worst,
            "size": "".join(text for _, text in phrases("selection.size", unit, self)),
            "values_many": len(block.answers),
            "step": "one record" if share is None or whole else f"1/{share.denominator} of a record",
            "step_factor": f"{float(chance):.6g}",
            "step_exactly": "" if self.family == "table" else f"; a step of a score has the chance {chance}",
            "chance_of_step": str(chance),
            "records": "a secret number of records" if block.records is None else f"{count(block.records)} records",
            "one": 1,
        }

    def accuracies(self, facts: Facts) -> Mapping[str, Accuracy]:
        cost, size = self.block.cost, self.each_off.value if self.of_values else self.off.value
        measure = f"{cost.form} {cost.power}{', at worst' * cost.worst}"
        return dict.fromkeys(("off", "off_simulated"), Accuracy(measure, ((self.block.output, size, size),)))

    # --- the pages

    def auditor_tables(self, facts: Facts) -> tuple[Block, ...]:
        return (self.ways(facts),) if facts.alternatives else ()

    def engineer_blocks(self, facts: Facts) -> list[Block]:
        return list(self.auditor_tables(facts))


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
