"""A plan of the family "statistic": which statistic is made noisy, where, and what that protects in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from privspec.explain.additive import randomness
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
    proved,
    tested,
)
from privspec.explain.facts import MechanismFact, Rows
from privspec.explain.quantities import Quantity, count, parse_exact, rounded
from privspec.explain.questions import Question, took_part

if TYPE_CHECKING:
    from privspec.explain.claims import Claim
    from privspec.explain.context import Context
    from privspec.explain.facts import AlternativeFact, Facts


_POST = Note("post-processing")
DIGITS = 3
"""Of predicted losses: more than their standard errors deserve."""


@dataclass(frozen=True, slots=True)
class SiteNoise:
    """The noise of one site (of each party in turn, where they differ): its shape and its exact size."""

    at: str
    shape: str
    parameters: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class StatisticFact(MechanismFact):
    """One statistic of bounded records with noise."""

    function: str
    route: str
    own_ball: bool
    note: str
    input: str
    party: str
    parties: Quantity
    records: Quantity
    dimension: Quantity
    radius: str
    each_party: bool
    finish_first: bool
    noise: tuple[SiteNoise, ...]
    output: str
    grid: str
    without_noise: Quantity | None
    crowds: Quantity
    local: bool
    input_line: SpecLine

    drawn_label: ClassVar[str] = "Where the noise goes"
    subject: ClassVar[str] = "The noise as executed"
    reached_label: ClassVar[str] = "Reached by the executed noise"
    exact_curve: ClassVar[str] = "the noise as executed (exact)"
    entry: ClassVar[Judged] = Judged("view")
    loss_note: ClassVar[Note] = Note("probit-routes")
    accuracy_heading: ClassVar[str] = "How good is the published result?"
    measure: ClassVar[str] = "noise is added to a statistic of bounded records, as this report describes."

    # --- facts

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """The claim as it stands; the question is whether one took part."""
        return claim, took_part(claim.relation)

    def released(self) -> frozenset[str]:
        return frozenset({self.output})

    # --- words

    @property
    def place(self) -> str:
        """Where the noise enters."""
        if self.each_party:
            return f"at each {self.party}, before anything is sent" if self.local else f"at each {self.party}"
        return "once, at the sum over all, by the curator"

    @property
    def law(self) -> str:
        """The shape of the noise."""
        shapes = list(dict.fromkeys(_SHAPES.get(n.shape, f"noise of the shape {n.shape}") for n in self.noise))
        return " and ".join(shapes)

    def drawn(self, facts: Facts) -> str:
        order = f"; each {self.party}'s noisy statistic is solved, then averaged" if self.finish_first else ""
        return f"{self.law} on the {self.route}, {self.place}{order}"

    def summary_rows(self, _facts: Facts) -> Rows:
        if self.without_noise is None:
            return []
        return [("Without any noise", f"{self.without_noise}  for {self.function} itself; not private")]

    def error(self, facts: Facts) -> tuple[str, str]:
        loss = facts.loss
        if loss is None:
            return "Predicted loss", ""
        error = f" ± {loss.standard_error}" if loss.standard_error is not None else ""
        value = rounded(loss.value.value, DIGITS)
        return "Predicted loss", f"{value}{error}  ({self.crowds} simulated crowds; standard error)"

    def compared(self, item: AlternativeFact, facts: Facts) -> str:
        return f" {rounded(item.loss.value, DIGITS)}"

    # --- what is protected, and what is not

    def protects(self, facts: Facts) -> tuple[Sentence, ...]:
        """In plain words for the unit and the trust of the spec."""
        found = []
        for fact in facts.claims:
            line = fact.claim.line
            whole = f"one {self.party}" in fact.claim.relation.text
            if whole:
                text = (
                    f"Protected: everything that you as one {self.party} sent in, all {self.records} records together. "
                    "What the result can tell of them is limited by the odds above."
                )
            else:
                text = (
                    f"Protected: any single one of your {self.records} records. Not in the same measure: what all "
                    "your records have in common, because they are protected one at a time and not together."
                )
            found.append(proved(text, line, Note(self.note)))
        if self.local:
            found.append(
                asserted(
                    "Nobody sees your records if your part runs on your own device: noise is added before anything "
                    "leaves you.",
                    facts.context.trust_because,
                )
            )
        else:
            text = "The keeper of the data sees all your records; only what is published is protected."
            found.append(asserted(text, facts.context.trust_because))
        return tuple(found)

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        if facts.loss is None:
            return ()
        value = rounded(facts.loss.value.value, DIGITS)
        text = f"By simulation, the error that the release is judged by is {value} on average"
        bare = f"; that of the same estimate without any noise is {self.without_noise}."
        tail = "." if self.without_noise is None else bare
        other = f"The noise is added to the {self.route}, which is not quite the estimate that the spec names."
        own = (proved(other, Note(self.note)),) if self.own_ball else ()
        return (tested(text + tail, facts.context.loss_because), *own, *self.protects(facts))

    def exactly(self, facts: Facts) -> str:
        return f"How many took part ({self.parties}), how many records each has ({self.records}), and the rules."

    # --- the auditor's page

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        note = Note(self.note)
        fit = f"drawn in to the ball of radius {self.radius}, each by itself" if self.radius else "taken as they are"
        found = [
            proved(f"Records of {self.input} are {fit}, and put on a grid of step {self.grid}.", self.input_line, note),
            proved(
                f"From each {self.party}'s records the {self.route} is computed; the noise is calibrated to how far "
                "one unit can move it, rounding included.",
                note,
            ),
            proved(
                f"The noise is {self.law}, drawn in exact arithmetic {self.place}.", *(Note(n) for n in _notes(self))
            ),
            proved("All else is computed from noisy numbers and public ones.", _POST),
        ]
        return (*found, *self.protects(facts), *randomness(note))

    def auditor_tables(self, facts: Facts) -> tuple[Block, ...]:
        rows = tuple((n.at, n.shape, key, value) for n in self.noise[:_LISTED] for key, value in n.parameters)
        caption = "Noise as executed (exact numbers)"
        if len(self.noise) > _LISTED:
            caption += f", the first {_LISTED} of {len(self.noise)} parties"
        return (Table(caption, ("Site", "Shape", "Parameter", "Value"), rows),)

    def data(self, facts: Facts) -> tuple[Sentence, ...]:
        text = f"Secret input {self.input}: {self.parties} × {self.records} records of {self.dimension} numbers."
        return (asserted(text, self.input_line),)

    # --- the engineer's page

    def engineer_sections(self, facts: Facts) -> tuple[Section, ...]:
        ranking = Table(
            "All ways that were compared, by predicted loss",
            ("Way", "Loss", "Allowed", "Reason"),
            tuple((a.name, a.loss.text, "yes" if a.admissible else "no", a.reason) for a in facts.alternatives),
            numeric=frozenset({1}),
        )
        words = tested(f"Chosen: {self.drawn(facts)}.", facts.context.loss_because)
        return (Section("Noise", (Points((words,)), *self.auditor_tables(facts), ranking)),)

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        rows = (
            ("Input", f"{self.input}: {self.parties} × {self.records} records of {self.dimension} numbers"),
            ("Statistic", self.route),
            ("Noise", f"{self.law}, {self.place}"),
            ("Grid", self.grid),
        )
        return (Table("What `privspec run` executes", ("Item", "Value"), rows),)

    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        return (f"privspec run {plan} --input {self.input}={self.input}.parquet -o release.json",)

    def gaps(self) -> tuple[str, ...]:
        return ("The loss and the ranking are predictions under the data model; nothing is proved about them.",)


_LISTED = 5
_SHAPES = {
    "laplace": "Laplace noise",
    "gaussian": "Gaussian noise",
    "knorm-l2": "K-norm noise of the Euclidean ball",
    "knorm-linf": "K-norm noise of the cube",
    "duchi-l2": "a random point of a sphere",
}
_NOTES = {
    "laplace": ("laplace", "discrete-laplace"),
    "gaussian": ("gaussian-exact", "rounded-gaussian"),
    "knorm-l2": ("knorm-l2",),
    "knorm-linf": ("knorm-linf",),
    "duchi-l2": ("duchi-l2",),
}


def _notes(fact: StatisticFact) -> tuple[str, ...]:
    found = [note for n in fact.noise for note in _NOTES.get(n.shape, ("post-processing",))]
    return tuple(dict.fromkeys(found))


def statistic_fact(plan: Mapping[str, Any], context: Context) -> StatisticFact:
    """The mechanism of a plan of the family "statistic".

    Raises: KeyError, ValueError if it is not of that form.
    """
    mechanism, loss = plan["mechanism"], plan.get("loss") or {}
    (block,) = plan["problem"]["blocks"]
    name, at = str(block["source"]), mechanism["route"]
    route = next(route for route in block["routes"] if route["at"] == at)
    notes = [str(n) for g in plan.get("guarantees") or () for n in g.get("because") or ()]
    without = loss.get("without_noise")
    return StatisticFact(
        family="statistic",
        function=str(block["function"]),
        route=str(route["name"]),
        own_ball=route["estimated_within"] is not None,
        note=notes[0] if notes else "post-processing",
        input=name,
        party=str(block["party"] or "person"),
        parties=count(int(block["parties"])),
        records=count(int(block["count"])),
        dimension=count(int(block["dimension"])),
        radius="" if block["radius"] is None else rounded(parse_exact(block["radius"]), 6).text,
        each_party=mechanism["where"] == "each party",
        finish_first=bool(mechanism["finish_first"]),
        noise=tuple(_noise(site) for site in mechanism["sites"]),
        output=str(block["output"]),
        grid=str(block["grid"]),
        without_noise=None if without is None else rounded(float(without), 3),
        crowds=count(int(loss.get("crowds", 0))),
        local=context.trust == "nobody",
        input_line=context.input_lines.get(name) or context.line(0),
    )


def _noise(site: Mapping[str, Any]) -> SiteNoise:
    parameters = tuple((str(key), str(value)) for key, value in (site.get("parameters") or {}).items())
    return SiteNoise(str(site["at"]), str(site["shape"]), parameters)
