"""A plan of the family "statistic": which statistic is made noisy, where, and what that protects in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from privspec.core.records import dataclass
from privspec.explain.document import Block, Judged, Note, Sentence, SpecLine, asserted, proved, table, tested
from privspec.explain.facts import AddedNoise, executed, randomness, run_command
from privspec.explain.quantities import Quantity, count, known, rounded
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

    exact_curve: ClassVar[str] = "the noise as executed (exact)"
    entry: ClassVar[Judged] = Judged("view")
    loss_note: ClassVar[Note] = Note("probit-routes")
    compared_with: ClassVar[tuple[str, str]] = (
        "All ways that were compared, by predicted loss",
        "Way | Loss | Allowed | Reason",
    )
    accuracy_heading: ClassVar[str] = "How good is the published result?"
    measure: ClassVar[str] = "noise is added to a statistic of bounded records, as this report describes."

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
        value = rounded(loss.value.value, DIGITS)
        stand = (
            "" if self.stand_ins.value == self.parties.value else f" of {self.stand_ins}, who stand for {self.parties}"
        )
        return "Predicted loss", f"{value}{error}  ({self.crowds} simulated crowds{stand}; standard error)"

    def compared(self, item: AlternativeFact, facts: Facts) -> str:
        return f" {rounded(item.loss.value, DIGITS)}"

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
        off, bare, what = facts.loss.value.value, self.without_noise, f"The published {self.statistic.output}"
        asked = "; without any noise, the estimate that was asked for would be"
        text = f"{what} is off by {rounded(off, DIGITS)} on average{f'{asked} off by {bare}' if bare else ''}."
        if self.angle:
            tail = f"{asked} {rounded(180 * bare.value, 2)} degrees off" if bare else ""
            text = (
                f"{what} points in a direction about {rounded(180 * off, 2)} degrees off{tail}. Of 100 choices between "
                f"two alternatives it decides about {rounded(100 * off, 2)} differently from people's true values."
            )
        return tested(text, facts.context.loss_because), *self.protects(facts)

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
        local=context.trust == "nobody",
        angle=plan.loss is not None and plan.loss.expression.replace(" ", "").startswith("E[disagreement("),
        input_line=context.line_of(found.source),
    )
