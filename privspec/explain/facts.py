"""The facts of a plan as data, and what a family of mechanisms and a question must say of themselves.

Quantities carry their rounding, ready to be put into sentences and tables. A plan has one mechanism; the pages ask its
fact object for words, tables and drawings and know no family by name. A guarantee bounds how well two worlds can be
told apart; which two these are decides the question that a reader has, and the pages ask it for its words.
"""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar

from privspec.core.records import dataclass, field, replace
from privspec.explain.claims import Calibration, Claim, Question, took_part
from privspec.explain.context import Context, Effects, Fitting
from privspec.explain.curves import Consequences, CountedOdds
from privspec.explain.designs import DesignFact
from privspec.explain.document import (
    Accuracy,
    Because,
    Block,
    Points,
    Section,
    Sentence,
    SpecLine,
    Table,
    sections,
)
from privspec.explain.messages import known, phrase, phrases, said, say, sentences, source, tabled
from privspec.explain.messages import section as section_of
from privspec.explain.quantities import Quantity, rounded, unit_words
from privspec.explain.rule_comparison import Comparison, Rounds, public_rounds, rounds_rows
from privspec.stated import Stated, parse_exact

if TYPE_CHECKING:
    from privspec.explain.curves import Curve
    from privspec.model.graph import Model
    from privspec.model.observers import Unit


MOST_IN_A_TABLE = 4
"""Outputs that a row of a table tells apart."""
MOST_WORDS = 25
"""Words up to which all that moves an output stands in one sentence."""
OWN_UNITS = "units of the loss expression"
"""What a plan says of a loss whose units have no name; the expression stands beside the figure."""

Rows = list[tuple[str, str]]
"""A label and a text each."""


@dataclass(frozen=True, slots=True)
class ClaimFact:
    """One guarantee with all that follows from it; what cannot be said is None or empty.

    `everything_words` is the bound for one who sees all outputs, "μ ≤ 0.45, that is (2, 1e-6)-DP".
    """

    claim: Claim
    question: Question
    shown: Consequences | None
    promised: Consequences | None
    repeats: tuple[CountedOdds, ...]
    groups: tuple[CountedOdds, ...]
    posteriors: tuple[tuple[Quantity, Quantity], ...]
    everything: Consequences | None
    everything_words: str
    covers_everything: bool
    calibration: Calibration | None


@dataclass(frozen=True, slots=True)
class ExposureFact:
    """What an observer learns of one input that no line bounds for all that they see.

    `fact` is about all that the observer sees together (nothing is shown where no bound is known), `unprotected` are
    the outputs among them that hide next to nothing of the input, `words` the bound: "μ ≤ 5.01, that is ..".
    """

    input: str
    fact: ClaimFact
    unprotected: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True)
class LossFact:
    """The loss, its bound, and the error of an answer where the loss is a plain squared error.

    `worst` is whether it is the largest over the inputs and not an average over them.
    """

    value: Quantity
    lower_bound: Quantity | None
    gap: Quantity | None
    standard_error: Quantity | None
    expression: str
    units: str
    among: str
    error: Quantity | None
    variance: Quantity | None
    error_of: str
    worst: bool

    @property
    def wide(self) -> bool:
        """Whether no bound is known, or none above half of the loss (of a loss below 0, within half of the bound)."""
        if self.lower_bound is None:
            return self.value.value != 0
        low, value = self.lower_bound.value, self.value.value
        return bool(2 * (value - low) > max(abs(value), abs(low)))

    @property
    def error_label(self) -> str:
        """What its error is called in a table: "Expected error per answer"."""
        return f"Expected error {'per answer' if self.error_of == 'an answer' else f'of {self.error_of}'}"

    @property
    def of_errors(self) -> bool:
        """Whether it is of errors, and not of an amount or a number that was chosen."""
        return "[" in self.expression

    @property
    def squared(self) -> bool:
        """Whether its root is an error."""
        return self.units.startswith("squared ")


@dataclass(frozen=True, slots=True)
class AlternativeFact:
    """A design that was considered and not chosen."""

    name: str
    loss: Quantity
    times: Quantity
    error: Quantity | None
    admissible: bool
    reason: str

    @property
    def weighed(self) -> str:
        """Its loss as a multiple of that of the plan, by itself where the plan loses nothing."""
        return f"{self.times} × the loss" if math.isfinite(self.times.value) else f"loss {self.loss}"


@dataclass(frozen=True, slots=True)
class BindingFact:
    """A line that limits the loss, and what relaxing it would give; `about` where only the slope is known."""

    line: SpecLine
    change: str
    lowers: bool
    about: bool
    loss_change: Quantity
    error_change: Quantity | None


@dataclass(frozen=True, slots=True)
class AccuracyFact:
    """An accuracy line at the instance of it that is nearest to its bound; `instances` is how many there are."""

    line: SpecLine
    instances: Quantity
    asked: Quantity
    expected: Quantity
    used: Quantity


@dataclass(frozen=True, slots=True)
class FairnessFact:
    """A fairness line: the difference that it allows, the one that was reached, and what is left between them."""

    line: SpecLine
    tolerance: Quantity
    achieved: Quantity
    margin: Quantity
    met: bool


@dataclass(frozen=True, slots=True)
class SolverFact:
    """How the plan was found."""

    name: str
    seconds: Quantity | None
    versions: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """The loss that the same plan, rescaled, would have at another privacy parameter."""

    parameter: Quantity
    loss: Quantity
    chosen: bool


@dataclass(frozen=True, slots=True)
class Frontier:
    """The exact scaling of a plan: `axis` names the parameter, `law` says how the loss depends on it."""

    axis: str
    law: str
    points: tuple[FrontierPoint, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the kernel derived again of a plan, by name and in words, and what the plan has to keep, in sentences.

    `kernel` is its version, `on` the day (YYYY-MM-DD).
    """

    claims: tuple[tuple[str, str], ...] = ()
    told: tuple[str, ...] = ()
    kernel: str = ""
    on: str = ""

    @property
    def derived(self) -> frozenset[str]:
        """The names of the claims."""
        return frozenset(name for name, _ in self.claims)

    def to_json(self) -> dict[str, object]:
        return {"claims": self.derived, "count": len(self.claims), "kernel": self.kernel, "on": self.on}


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the three readers' pages draw on; `units` are those that labels give, by the names that readers see."""

    name: str
    title: str
    digest: str
    spec_file: str
    spec_sha256: str
    status: str
    family: str
    mechanism: MechanismFact
    parameters: tuple[tuple[str, str], ...]
    parameter_words: tuple[tuple[str, str], ...]
    overridden: tuple[str, ...]
    context: Context
    claims: tuple[ClaimFact, ...]
    exposures: tuple[ExposureFact, ...]
    loss: LossFact | None
    alternatives: tuple[AlternativeFact, ...]
    accuracy: tuple[AccuracyFact, ...]
    fairness: tuple[FairnessFact, ...]
    binding: tuple[BindingFact, ...]
    assumptions: tuple[Sentence, ...]
    frontier: Frontier | None
    solver: SolverFact
    judgement: Judgement
    gaps: tuple[Sentence, ...]
    fitting: Fitting
    model: Model | None = field(repr=False)
    design: DesignFact | None = None
    computed_errors: tuple[tuple[str, Quantity, Quantity, str], ...] = ()
    """Outputs that are computed from others: the least and the largest error of an entry, and at which data."""
    units: Mapping[str, str] = field(default_factory=dict)

    def unit(self, name: str, figure: str = "") -> str:
        """The unit of an output as its label gives it, with the space before it; empty where it gives none."""
        return unit_words(self.units.get(name, ""), figure)

    def of_chance(self, sentence: Sentence, measure: str, *sizes: tuple[str, float, float]) -> Sentence:
        """A sentence on errors by chance, with what moves the outputs besides, and which way.

        Args: measure, what is told of them; sizes, the outputs with what is told, the least and the largest.
        """
        names = tuple(name for name, *_ in sizes)
        effects = self.mechanism.effects
        clauses = self.fitting.clauses(names, effects)
        clause = ", and ".join(clauses)
        if len(clause.split()) > MOST_WORDS:
            clause = ". ".join(f"{said[0].upper()}{said[1:]}" if at else said for at, said in enumerate(clauses))
        besides = tuple(
            (name, rule.done.value, effects.get(rule.done, way.value))
            for rule in self.fitting.rules
            for name, way in rule.moves
            if name in names
        )
        text = f"{sentence.text}{f' Apart from chance, {clause}.' if clause else ''}"
        return replace(sentence, text=text, accuracy=Accuracy(measure, sizes, besides))

    @property
    def error(self) -> tuple[str, str]:
        """A label and the expected error, with what moves what is released besides; empty where none is known."""
        label, text = self.mechanism.error(self)
        return label, f"{text} by chance alone{self.besides()}" if text and self.mechanism.by_chance else text

    def besides(self, names: Iterable[str] = ()) -> str:
        """What moves outputs besides chance, for a table; by default all that are drawn."""
        wanted = tuple(names) or tuple(sorted(self.mechanism.released))
        clauses = " · ".join(self.fitting.clauses(wanted, self.mechanism.effects, MOST_IN_A_TABLE))
        return f" · besides, {clauses}" if clauses else ""

    def with_units(self, units: Mapping[str, str]) -> Facts:
        """The same facts, and those of the parts of a system, with units of outputs."""
        return replace(self, units=units, mechanism=self.mechanism.with_units(units))

    @property
    def computed(self) -> tuple[tuple[str, str], ...]:
        """Outputs that are computed from released ones, and how."""
        return () if self.model is None else tuple((one.name, one.text) for one in self.model.computed)

    @property
    def bound_certified(self) -> bool:
        """Whether the kernel derived the lower bound on the loss."""
        return "bound" in self.judgement.derived

    @property
    def off_on_average(self) -> bool:
        """Whether answers are pulled, so that the loss counts how far their averages are off at the worst data."""
        return "bias" in self.judgement.derived

    @property
    def by_law(self) -> bool:
        """Whether that is counted on average over the model of the data."""
        return any(getattr(one, "by_law", False) for one in getattr(self.mechanism, "pulled", ()))

    @property
    def footer(self) -> str:
        """The fingerprints of plan and spec."""
        return f"Plan fingerprint (SHA-256) {self.digest}; spec fingerprint {self.spec_sha256}."

    @property
    def stem(self) -> str:
        """The name of the spec's file without its ending."""
        return PurePath(self.spec_file).stem

    @property
    def plan_file(self) -> str:
        """The name that `privspec solve` gives the plan of this spec."""
        return f"{self.stem}.plan.json"

    @property
    def unprotected(self) -> tuple[str, ...]:
        """The outputs that are not protected against somebody, for some input."""
        return tuple(dict.fromkeys(name for e in self.exposures for name in e.unprotected))

    @property
    def every(self) -> tuple[ClaimFact, ...]:
        """What is exposed, then the guarantees."""
        return *(e.fact for e in self.exposures), *self.claims

    @property
    def weakest(self) -> ClaimFact | None:
        """That under which an observer can tell the most, of guarantees and of what none covers; None without odds."""
        known = [c for c in (*self.claims, *(e.fact for e in self.exposures)) if c.shown is not None]
        return min(known, key=lambda c: c.shown.odds.error.value if c.shown else 1.0) if known else None


@dataclass(frozen=True, slots=True)
class Moved:
    """By how much noise typically moves an output, with its unit; `many`: each of its figures."""

    name: str
    size: Quantity
    unit: str
    many: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismFact(ABC):
    """One mechanism, as its family describes it, with the names of its outputs.

    `comparison` are the rules of voting beside it and `rounds` the votes that share its budget, if it is for votes.
    """

    family: str
    released: frozenset[str]
    comparison: Comparison | None = None
    rounds: Rounds | None = None

    page: ClassVar[str]
    """The message file with its sentences and labels."""
    kin: ClassVar[str] = ""
    """That of the mechanisms that it is one of: what its own file leaves out stands there."""
    by_chance: ClassVar[bool] = True
    """Whether its expected error is that of chance alone, at data that fit."""

    def label(self, name: str) -> str:
        """A label of its page: "drawn", "subject" ..; messages/shared.toml says what each of them is."""
        return phrase(next(filter(known, (f"{file}.labels.{name}" for file in self._files))), self)

    def why_wide(self, facts: Facts, loss: LossFact) -> str:
        """Why so much lies between the bound and the loss, and which side is believed to be the weak one."""
        return self.label("unbounded" if loss.lower_bound is None else "wide")

    @property
    def _files(self) -> tuple[str, ...]:
        """The message files that speak of it, its own first."""
        return self.page, self.kin or self.page, "shared"

    @property
    def entry(self) -> Because:
        """The claim of the kernel that is about it."""
        return source(self.label("entry"))

    @property
    def loss_note(self) -> Because:
        """The note that proves the bound on the loss."""
        return source(self.label("note"))

    @property
    def run_note(self) -> Because:
        """The note that proves how it is drawn."""
        return self.loss_note

    # --- facts

    @property
    def effects(self) -> Effects:
        """What rules for data that do not fit do to what is published, where that is no figure that they move."""
        return {}

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """The claim, sharpened by what is known of this mechanism, and what an observer tries to tell under it."""
        return claim, took_part(claim.relation)

    def seen(self, outputs: frozenset[str], claim: Claim, model: Model | None, unit: Unit | None) -> Curve | None:
        """The exact curve of one who sees these outputs, for the unit of a claim; None where the plan's bound is all.

        `claim` names what moves in words; `unit` is the same for programs, None where the model is not known.
        """
        return None

    def variance_behind(self, plan: Stated, where: Context) -> tuple[float | None, str]:
        """The error variance behind a squared loss and what it is the error of; None where the loss is another."""
        return None, ""

    def frontier(self, plan: Stated, claims: tuple[Claim, ...]) -> Frontier | None:
        """The loss at other privacy parameters by exact scaling of this plan; None where no scaling law is known."""
        return None

    @property
    def gaps(self) -> tuple[str, ...]:
        """What these pages cannot say of this mechanism."""
        return tuple(text for _, text in phrases(f"{self.page}.gaps", self))

    def with_units(self, units: Mapping[str, str]) -> MechanismFact:
        """The same mechanism, its parts with units of outputs."""
        return self

    # --- the short table

    def drawn(self, facts: Facts) -> str:
        """What is drawn and where, in one line."""
        return "".join(text for _, text in self._phrases("drawn", facts))

    def summary_rows(self, facts: Facts) -> Rows:
        """Further rows below it."""
        return [*self._phrases("rows", facts), *(rounds_rows(self.rounds) if self.rounds else ())]

    def error(self, facts: Facts) -> tuple[str, str]:
        """A label and the expected error; the text is empty where none is known."""
        label, *size = (text for _, text in self._phrases("error", facts))
        return label, "".join(size)

    def compared(self, item: AlternativeFact, facts: Facts) -> str:
        """How a design that was not chosen compares, with the space before it: " ± 24.1".

        How many times the loss, where errors are not known or read the same.
        """
        plan = facts.loss.error if facts.loss else None
        if item.error is None or (plan is not None and plan.text == item.error.text):
            return f" {item.weighed}"
        return f" ± {item.error}"

    def ways(self, facts: Facts) -> Table:
        """The designs that were considered beside the one that was chosen."""
        return tabled("shared.ways", facts.alternatives, caption=self.label("compared"), columns=self.label("ways"))

    def in_figures(self) -> list[Block]:
        """What is drawn, in figures."""
        return []

    def next_commands(self, facts: Facts) -> tuple[str, ...]:
        """The commands that a plan is good for."""
        own = (line.split()[1] for line in self.run_commands(facts, ""))
        return *dict.fromkeys(own), "explain", "verify"

    # --- the pages

    def moved_by(self, facts: Facts) -> tuple[Moved, ...]:
        """By how much noise typically moves each thing that is published."""
        return ()

    def values(self, facts: Facts) -> Mapping[str, object]:
        """What its sentences name besides its own attributes, and those of the facts."""
        return {}

    def _of(self, facts: Facts) -> tuple[object, ...]:
        return self.values(facts), self, facts

    def _at(self, section: str) -> str:
        own, *others = (f"{file}.{section}" for file in self._files)
        return next(filter(section_of, (own, *others)), own)

    def _phrases(self, section: str, facts: Facts, **given: object) -> Rows:
        return phrases(self._at(section), given, *self._of(facts))

    def _sentences(self, section: str, facts: Facts, **given: object) -> tuple[Sentence, ...]:
        return sentences(self._at(section), given, *self._of(facts))

    def accuracies(self, facts: Facts) -> Mapping[str, Accuracy]:
        """What its sentences say of errors, by their keys."""
        return {}

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        """How exact what is published is, besides that."""
        figures, found = self.accuracies(facts), list[Sentence]()
        for one, sentence in said(self._at("public"), *self._of(facts)):
            known = figures.get(one.key.rpartition(".")[2])
            if known is None:
                found.append(sentence)
            elif one.besides:
                found.append(facts.of_chance(sentence, known.measure, *known.sizes))
            else:
                found.append(replace(sentence, accuracy=known))
        return tuple(found)

    def public_sections(self, facts: Facts) -> tuple[Section, ...]:
        """Further sections for the public, below the odds."""
        if self.rounds is None or facts.weakest is None:
            return ()
        return public_rounds(self.rounds)

    def exactly(self, facts: Facts) -> tuple[str, ...]:
        """What is released exactly, without noise: things to be listed."""
        return tuple(text for _, text in self._phrases("exactly", facts))

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        """The mechanism as it is executed, for auditors."""
        more = self._sentences("auditor_more", facts)
        return *self._sentences("auditor", facts), *randomness(self.run_note), *more

    def auditor_tables(self, facts: Facts) -> tuple[Block, ...]:
        """Its figures."""
        return tuple(self.in_figures())

    def data(self, facts: Facts) -> tuple[Sentence, ...]:
        """The secret inputs."""
        return self._sentences("data", facts)

    def engineer_points(self, facts: Facts) -> list[Sentence]:
        """What is drawn, for engineers."""
        return list(self._sentences("engineer", facts, what=self.label("drawn"), goes=self.drawn(facts)))

    def engineer_blocks(self, facts: Facts) -> list[Block]:
        """What is drawn, in figures and drawings, and what it was compared with."""
        return [*self.in_figures(), self.ways(facts)]

    def engineer_sections(self, facts: Facts) -> tuple[Section, ...]:
        """What is drawn, and the rules of voting beside it."""
        points = tuple(self.engineer_points(facts))
        own = (*((Points(points),) if points else ()), *self.engineer_blocks(facts))
        rules = self.comparison.blocks() if self.comparison else ()
        return tuple(sections((self.label("heading"), own), ("Rules compared", rules)))

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        """What `privspec run` executes, item by item, with what the kernel derived of it, and in a sentence."""
        derived = "Claims of the kernel", ", ".join(sorted(facts.judgement.derived)) or "none"
        return tabled("shared.executed", (*self._phrases("executed", facts), derived)), Points(
            self._sentences("run", facts)
        )

    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        """The commands that execute a plan, given its file name."""
        return tuple(text for _, text in self._phrases("commands", facts, plan=plan))


def given(names: Iterable[str]) -> str:
    """What a command that executes a plan is given: the files of these inputs."""
    return "".join(f" --input {name}={name}.csv" for name in names)


def randomness(note: Because) -> tuple[Sentence, ...]:
    """Where random bits come from, and what of a run is outside the guarantee; true of every family."""
    return sentences("shared.randomness", note=note)


def same_loss(item: AlternativeFact, facts: Facts) -> bool:
    """Whether a design has the loss of the plan, to all digits that are printed."""
    return facts.loss is not None and item.loss.text == facts.loss.value.text


# --- numbers that solving picked ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChosenNumber:
    """A number that the solver picked, and the lines that it stands in."""

    name: str
    value: Quantity
    exactly: str
    lines: tuple[SpecLine, ...]

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"

    def sentence(self) -> Sentence:
        """For auditors and engineers, exactly where that is short."""
        short = len(self.exactly) <= 24 and self.exactly != self.value.text
        exactly = phrase("shared.standing.exactly", exactly=self.exactly) if short else ""
        given = {"line": self.lines[:1], "standing": standing(self.lines)}
        return say("shared.chosen.number", given, number=str(self), exactly=exactly)


def standing(lines: tuple[SpecLine, ...]) -> str:
    """Where a number stands, behind a comma; empty where no line is known."""
    numbers = [line.number for line in lines]
    return phrase("shared.standing.lines", lines=lines, numbers=numbers) if lines else ""


def chosen_numbers(plan: Stated, where: Context) -> tuple[ChosenNumber, ...]:
    """Those of a plan, with the lines that they stand in."""
    return tuple(
        ChosenNumber(name, rounded(parse_exact(value), 6), value, where.choices.get(name, ()))
        for name, value in plan.mechanism.scalars.items()
    )
