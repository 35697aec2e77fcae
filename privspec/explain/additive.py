"""Mechanisms that add noise: Gaussian, Laplace and mixed ones, as the pages describe them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from privspec.explain.document import (
    Block,
    Judged,
    Note,
    Points,
    Section,
    Sentence,
    Table,
    asserted,
    assumed,
    proved,
    tested,
)
from privspec.explain.facts import MechanismFact
from privspec.explain.noise import executed, output_noise
from privspec.explain.quantities import count
from privspec.explain.questions import Question, took_part
from privspec.model.reports import listing

if TYPE_CHECKING:
    from privspec.explain.claims import Claim
    from privspec.explain.facts import AlternativeFact, Facts, InputFact, SiteFact

NEXT_TO_NONE = 0.01
"""The share of the largest deviation below which a deviation is called next to none."""

_POST = Note("post-processing")
_SITES = Judged("sites")
_KNOWN = frozenset({"gaussian", "laplace", "mixed"})


@dataclass(frozen=True, slots=True)
class AdditiveNoise(MechanismFact):
    """Noise at sites; all figures are in the facts themselves."""

    outputs: frozenset[str]
    sized: bool

    drawn_label: ClassVar[str] = "Where the noise goes"
    subject: ClassVar[str] = "The noise as executed"
    reached_label: ClassVar[str] = "Reached by the executed noise"
    exact_curve: ClassVar[str] = "the noise as executed (exact)"
    entry: ClassVar[Judged] = _SITES
    loss_note: ClassVar[Note] = Note("placement")
    measure: ClassVar[str] = "noise is added to what is released, by the plan that this report describes."

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """The claim as it stands; the question is whether one took part."""
        return claim, took_part(claim.relation)

    def released(self) -> frozenset[str]:
        return self.outputs

    def gaps(self) -> tuple[str, ...]:
        """A family that is not known here, or noise of unknown size."""
        if self.family not in _KNOWN:
            words = f"The noise of this plan belongs to the family {self.family!r}, which these pages cannot describe."
            return (words,)
        return () if self.sized else ("The plan does not say how large the noise in each released number is.",)

    # --- the short table

    def drawn(self, facts: Facts) -> str:
        if not facts.sites:
            return "not stated in the plan"
        words = facts.context.trust_words
        place = f", {words.place}" if words else ""
        joint = [site for site in facts.sites if site.correlated]
        alone = [site for site in facts.sites if not site.correlated]
        return f"{' · '.join([*_joint(joint), *map(_site, alone)])}{place}"

    def error(self, facts: Facts) -> tuple[str, str]:
        """A root mean square where the loss is a squared error, else the loss."""
        loss = facts.loss
        if loss is None:
            return "Expected loss", ""
        each = " · ".join(f"{o.name} ± {o.typical}" for o in facts.outputs)
        if loss.error is None or loss.variance is None:
            if each:
                return "Expected error an answer", f"{each}  (root mean square; loss {loss.value})"
            return "Expected loss", f"{loss.value} {loss.units}".strip()
        if len(facts.outputs) > 1:
            return f"Expected error {loss.error_of}", f"{each}  (root mean square)"
        return f"Expected error {loss.error_of}", f"± {loss.error}  (root mean square; variance {loss.variance})"

    def compared(self, item: AlternativeFact, facts: Facts) -> str:
        """The error of a design; how many times the loss where errors are not known or read the same."""
        plan = facts.loss.error if facts.loss else None
        if item.error is None or (plan is not None and plan.text == item.error.text):
            return f" {item.times} × the loss"
        return f" ± {item.error}"

    # --- the public's page

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        loss = facts.loss
        where = facts.context.loss_because
        entry = Judged("loss")
        found = [
            proved(f"Because of the noise, the figures in {o.name} are typically off by {o.typical}.", where, entry)
            for o in facts.outputs
            if o.typical.value > 0
        ]
        if not found and loss is not None and loss.error is not None:
            words = f"Because of the noise, {loss.error_of} is typically off by {loss.error}."
            found.append(proved(words, where, entry))
        if found and loss is not None:
            names = [o.name for o in facts.outputs if o.name not in facts.unprotected]
            what = "The noise" if not facts.unprotected else f"The noise in {listing(names)}"
            words = f"{what} is what protects you; on average it adds nothing and takes nothing away."
            if not names:
                words = "So little noise protects nobody."
            found.append(proved(words, Judged("unbiased")))
        return tuple(found)

    def exactly(self, facts: Facts) -> str:
        bare = [o for o in facts.outputs if o.without_noise.value > 0]
        if bare:
            names = ", ".join(f"{o.without_noise} of the {o.size} numbers in {o.name}" for o in bare)
            return f"{names}: they do not depend on anybody's data."
        if facts.claims and all(c.claim.relation.adds for c in facts.claims):
            return "The questions asked and the groups counted, but not how many people took part."
        sizes = ", ".join(f"{i.size} for {i.name}" for i in facts.inputs)
        return f"The questions asked, the limits of the values, and how many values there are ({sizes})."

    # --- the auditor's page

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        law, name = _LAWS.get(facts.noise_shape, (f"noise of the shape “{facts.noise_shape}”", "post-processing"))
        note = Note(name)
        lattice = _LATTICES[facts.rounding].format(grid=facts.noise_grid or "that the plan does not state")
        return (
            proved(
                f"What is executed is {law} drawn in exact arithmetic: {lattice}, so that the low bits of "
                "floating-point numbers cannot reveal anything.",
                note,
            ),
            *randomness(note),
            proved(
                f"Released values lie on a grid of step {facts.output_grid or 'not stated'}; rounding to it "
                "after the noise cannot weaken the guarantee.",
                _POST,
            ),
        )

    def auditor_tables(self, facts: Facts) -> tuple[Block, ...]:
        rows = tuple(
            (o.name, o.size.text, o.typical.text, o.least.text, o.largest.text, o.without_noise.text)
            for o in facts.outputs
        )
        return (
            Table(
                "Noise in the released numbers, in units of the output (claim loss)",
                ("Output", "Numbers", "Root mean square", "Least", "Largest", "Without noise"),
                rows or (("not stated in the plan", "", "", "", "", ""),),
                numeric=frozenset(range(1, 6)),
            ),
        )

    def data(self, facts: Facts) -> tuple[Sentence, ...]:
        found: list[Sentence] = []
        for item in facts.inputs:
            limits = f", {item.limits}" if item.limits else ""
            found.append(asserted(f"Secret input {item.name}: {item.size} {item.layout}{limits}.", item.because))
            if item.clipped and not _stated_clipping(facts, item):
                words = f"Values of {item.name} outside their limits are clipped to them before anything else."
                found.append(tested(words, item.because))
        return tuple(found)

    # --- the engineer's page

    def engineer_sections(self, facts: Facts) -> tuple[Section, ...]:
        from privspec.explain import plots

        rows = tuple(
            (
                s.at,
                f"{s.law}, correlated" if s.correlated else s.law,
                s.coordinates.text,
                s.typical.text,
                s.least.text,
                s.largest.text,
            )
            for s in facts.sites
        )
        table = Table(
            "Standard deviation of the noise by site",
            ("Site", "Law", "Coordinates", "Root mean square", "Least", "Largest"),
            rows or (("not stated in the plan", "", "", "", "", ""),),
            numeric=frozenset({2, 3, 4, 5}),
        )
        plot = plots.noise_plot(facts)
        words = proved(f"Where the noise goes: {self.drawn(facts)}.", facts.context.sites_because, _SITES)
        return (Section("Noise", (Points((words,)), table, *((plot,) if plot else ()))),)

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        shape = facts.strategy_shape
        rows = [
            ("Noise", facts.noise_shape),
            ("Strategy", f"{shape[0]} × {shape[1]}" if shape else "not stated"),
            ("Lattice of the noisy answers", facts.noise_grid or "not stated"),
            ("Grid of the outputs", facts.output_grid or "not stated"),
            *(
                (
                    f"Input {i.name}",
                    f"{i.size} {i.layout}{f', {i.limits}' if i.limits else ''}{', clipped' if i.clipped else ''}",
                )
                for i in facts.inputs
            ),
            ("Claims of the kernel", ", ".join(sorted(facts.judgement.derived)) or "none"),
        ]
        note = proved("Everything released is computed from the noisy strategy answers.", _POST)
        return (Table("What `privspec run` executes", ("Item", "Value"), tuple(rows)), Points((note,)))

    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        data = "".join(f" --input {i.name}={i.name}.csv" for i in facts.inputs)
        return (f"privspec run {plan}{data}",)


_LAWS = {
    "gaussian": ("Gaussian noise", "rounded-gaussian"),
    "laplace": ("Laplace noise", "discrete-laplace"),
    "knorm-l2": ("K-norm noise", "knorm-l2"),
}
_LATTICES = {
    "strategy": "the noisy values are lattice points of step {grid}",
    "outputs": "each released number is the point of the output grid nearest to an exact real number",
}


def randomness(note: Note) -> tuple[Sentence, Sentence]:
    """Where random bits come from, and what of a run is outside the guarantee; true of every family."""
    return (
        tested(
            "Randomness comes from the operating system's generator; a seed is accepted for simulations only, and the "
            "output then says that it is not private.",
            note,
        ),
        assumed("Side channels: the time a run takes and the memory it uses are not part of the guarantee.", note),
    )


def additive_noise(plan: Mapping[str, Any]) -> AdditiveNoise:
    """The mechanism of a plan that adds noise, or of a family that is not known."""
    family = str((plan.get("mechanism") or {}).get("family", "unknown"))
    outputs = frozenset(str(o["name"]) for o in executed(plan).get("outputs") or ())
    return AdditiveNoise(family, outputs, bool(output_noise(plan)))


def _stated_clipping(facts: Facts, item: InputFact) -> bool:
    """Whether the plan itself says, with its own status, that an input is clipped."""
    return any(item.because in s.because and "clipped" in s.text for s in facts.assumptions)


def _joint(sites: Sequence[SiteFact]) -> list[str]:
    """The sites whose noise is drawn together."""
    if not sites:
        return []
    answers = sum(int(site.coordinates.value) for site in sites)
    names = listing([site.at for site in sites])
    if len(sites) == 1:
        return [f"correlated across the {count(answers)} answers of {names}"]
    return [f"drawn together, correlated across all {count(answers)} answers of {names}"]


def _site(site: SiteFact) -> str:
    if not site.deviations:
        return f"{site.law} at {site.at}"
    if site.largest.value == 0:
        return f"none at {site.at}"
    same = site.least.text == site.largest.text
    least = "next to none" if site.least.value < NEXT_TO_NONE * site.largest.value else f"± {site.least}"
    size = (
        f"± {site.typical}" if same else f"{least} to {site.largest if least.startswith('±') else f'± {site.largest}'}"
    )
    return f"{site.law} at {site.at} ({size})"
