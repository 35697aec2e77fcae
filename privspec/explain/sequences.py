"""A plan about a sequence whose entries tell of one another: its noise, the model, and what holds if that is wrong."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import isclose, sqrt
from typing import TYPE_CHECKING, ClassVar

from privspec.core.records import dataclass
from privspec.explain import document
from privspec.explain.curves import EpsilonDeltaCurve, consequences
from privspec.explain.facts import AddedNoise, Moved, executed, randomness, run_command
from privspec.explain.quantities import UP, Quantity, count, exact, rounded
from privspec.explain.questions import Question, of_entry, took_part
from privspec.kernel.chains import ChainBlock, read_chain, variance
from privspec.kernel.core.reading import Grid
from privspec.kernel.measures import PURE
from privspec.model.reports import listing
from privspec.stated import Stated

if TYPE_CHECKING:
    from privspec.explain.claims import Claim
    from privspec.explain.context import Context
    from privspec.explain.facts import Facts

_NOISE, _QUILT, _WITHOUT = document.Note("discrete-laplace"), document.Note("quilt"), document.Judged("no model")
BY = {
    "laws": "the exact law of the answer, given each value of each entry",
    "windows": "quilts at one distance from each entry, and the exact law of the answer between them",
    "quilts": "a Markov quilt for each pair of values of each entry",
}
"""How a line that counts on the model is proved."""


@dataclass(frozen=True, slots=True)
class SequenceFact(AddedNoise):
    """Discrete Laplace noise on sums over a sequence; `entry` and `everything`: epsilon whatever the model is."""

    sequence: ChainBlock
    length: int
    deviation: Quantity
    variance: Quantity
    alone: Quantity
    together: Quantity
    odds_alone: tuple[str, str]
    scale: Quantity
    unit: Quantity
    starts: tuple[tuple[Quantity, ...], ...]
    steps: tuple[tuple[tuple[Quantity, ...], ...], ...]
    network: tuple[tuple[tuple[Quantity, ...], ...], ...]
    proofs: tuple[str, ...]
    input_line: document.SpecLine
    model_lines: tuple[document.SpecLine, ...]

    exact_curve: ClassVar[str] = "the noise as executed (a bound)"
    entry: ClassVar[document.Judged] = document.Judged("privacy")
    loss_note: ClassVar[document.Note] = _QUILT
    compared_with: ClassVar[tuple[str, str]] = (
        "The same noise, sized in other ways",
        "Way | Loss | Meets the lines | Reason",
    )
    measure: ClassVar[str] = "noise is added to what is released, sized by the model that this report names."
    heading: ClassVar[str] = "Noise, and the model it is sized by"

    @property
    def _source(self) -> str:
        return self.sequence.source

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """A line that counts on the model is about one entry, and about observers who know the model."""
        if claim.requirement not in self.sequence.lines:
            return claim, took_part(claim.relation)
        return claim, of_entry(self._source, self.sequence.states)

    def variance_behind(self, plan: Stated, where: Context) -> tuple[float | None, str]:
        """That of each number, if the loss is the plain sum of squared errors."""
        each, numbers = self.variance.value, sum(one.stop - one.start for one in self.sequence.released)
        if plan.loss is None or not isclose(plan.loss.value, each * numbers, rel_tol=1e-6):
            return None, ""
        return each, "an answer" if numbers > 1 else "the answer"

    def drawn(self, facts: Facts) -> str:
        names = listing([one.name for one in self.sequence.released])
        return f"discrete Laplace noise at {names} (± {self.deviation}){facts.context.place}"

    def summary_rows(self, facts: Facts) -> list[tuple[str, str]]:
        """What holds without the model."""
        return [
            (
                "If the model is wrong",
                f"{PURE.at((str(self.alone),))} for one entry, {PURE.at((str(self.together),))} for all entries",
            )
        ]

    # --- the pages

    @property
    def _model(self) -> document.Sentence:
        text = f"This counts on a model of {self._source} that was declared and not checked"
        lines = f" ({'; '.join(line.text for line in self.model_lines)})" if self.model_lines else ""
        before = "earlier ones" if self.network else "the one before it"
        return document.assumed(f"{text}: each entry is drawn given {before}{lines}.", *self.model_lines)

    def moved_by(self, facts: Facts) -> tuple[Moved, ...]:
        size, names = self.deviation, (one.name for one in self.sequence.released)
        return tuple(Moved(name, size, facts.unit(name, size.text)) for name in names)

    def public_accuracy(self, facts: Facts) -> tuple[document.Sentence, ...]:
        return (document.proved("The noise protects you.", _QUILT),)

    def public_sections(self, facts: Facts) -> tuple[document.Section, ...]:
        """What the odds take for granted, and what is left of them otherwise."""
        without, taking_part = self.odds_alone
        several = len(self.starts) * len(self.steps) > 1
        others = "others" if self.network else "each other one"
        law = "several laws, any of which may be the true one" if several else "one law"
        found = (
            document.assumed(
                f"This counts on a model of the data that was declared and not checked. It states {law}: how often "
                f"each value follows {others}. If your data do not behave like that, the odds may be worse.",
                *self.model_lines,
            ),
            document.proved(
                f"Whatever the model: someone who knows all entries but one would wrongly accuse {without}, and "
                f"rightly find {taking_part}. Whoever can work out one entry from others learns about it from those "
                "too.",
                _WITHOUT,
            ),
        )
        return tuple(document.sections(("What if the model is wrong?", (document.Paragraph(found),))))

    def exactly(self, facts: Facts) -> tuple[str, ...]:
        return "the questions asked", "the model", f"how many entries there are ({count(self.length)})"

    def auditor_points(self, facts: Facts) -> tuple[document.Sentence, ...]:
        step, grid = f"The answers lie on a grid of step {self.unit}", "so does the noise, and nothing is rounded"
        return (
            self._model,
            *(
                document.proved(f"Line {line} is proved by {BY[by]}, for every law and pair.", _QUILT)
                for line, by in zip(self._lines(facts), self.proofs, strict=True)
            ),
            document.proved(
                f"Whatever the model: ε at most {self.alone} if one entry changes and no other does, at most "
                f"{self.together} if all entries may change.",
                _WITHOUT,
            ),
            document.proved(
                "Guarantees given a model do not add up over releases. A ledger is charged for one entry, whatever the "
                f"model: ε {self.alone}.",
                _QUILT,
            ),
            document.proved(f"{step}; {grid}. The noise is drawn in exact arithmetic.", _NOISE),
            *randomness(_NOISE),
        )

    def _lines(self, facts: Facts) -> list[int]:
        return [fact.claim.line.number for fact in facts.claims if fact.claim.requirement in self.sequence.lines]

    def in_figures(self) -> list[document.Block]:
        states = self.sequence.states
        found: list[document.Block] = []
        for number, law in enumerate(self.starts, 1):
            rows = [(state, str(chance)) for state, chance in zip(states, law, strict=True)]
            found.append(document.table(f"The first entry, law {number} (assumed)", "Value | Chance", rows, 1))
        for number, step in enumerate(self.steps, 1):
            after = [(before, *map(str, row)) for before, row in zip(states, step, strict=True)]
            caption = f"Chances of an entry (column) after another (row), law {number} (assumed)"
            found.append(document.table(caption, ("After", *states), after, *range(1, len(states) + 1)))
        drawn = [
            (f"{place}", ", ".join(f"{p + 1} is {s}" for p, s in zip(one.parents, before, strict=True)), *map(str, row))
            for place, (one, rows) in enumerate(zip(self.sequence.network, self.network, strict=True), 1)
            for before, row in zip(product(states, repeat=len(one.parents)), rows, strict=True)
        ]
        if drawn:
            header = ("Entry", "If entry", *states)
            found.append(document.table("Chances of an entry (assumed)", header, drawn, *range(2, len(states) + 2)))
        return found

    def data(self, facts: Facts) -> tuple[document.Sentence, ...]:
        values = ", ".join(self.sequence.states)
        text = f"Secret input {self._source}: {count(self.length)} entries, each one of {values}."
        return (document.asserted(text, self.input_line),)

    def engineer_points(self, facts: Facts) -> list[document.Sentence]:
        return [*AddedNoise.engineer_points(self, facts), self._model]

    def execution(self, facts: Facts) -> tuple[document.Block, ...]:
        rows = [
            ("Noise", f"discrete Laplace, chance of k steps in proportion to exp(-|k| / {self.scale})"),
            ("Step", self.unit.text),
            ("Input", f"{self._source}: {count(self.length)} entries"),
        ]
        said = document.proved("Whole steps are summed, whole steps of noise are added, and that is released.", _NOISE)
        return executed(facts, rows, said)

    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        return (run_command(plan, (self._source,)),)


def sequence_fact(plan: Stated, context: Context) -> SequenceFact:
    """The mechanism of a plan of the family "chain".

    Raises: KeyError, TypeError, ValueError if it is not of that form.
    """
    chain = plan.executed_as(read_chain)
    block, size = chain.block, len(chain.block.states)
    each = float(chain.unit) ** 2 * float(variance(chain.scale))
    steps = _chances(block.steps)
    without = {key: Fraction(value) for key, value in plan.claims["without_model"].items()}
    odds = consequences(EpsilonDeltaCurve(float(without["entry"]), 0.0)).odds
    return SequenceFact(
        family=plan.mechanism.family,
        released=frozenset(chain.outputs),
        sequence=block,
        length=chain.length,
        deviation=rounded(sqrt(each)),
        variance=rounded(each),
        alone=rounded(without["entry"], 4, UP),
        together=rounded(without["everything"], 4, UP),
        odds_alone=(odds.without_words, odds.taking_part_words),
        scale=rounded(chain.scale, 9),
        unit=exact(chain.unit),
        starts=_chances(block.starts),
        steps=tuple(steps[i : i + size] for i in range(0, len(steps), size)),
        network=tuple(_chances(one.chances) for one in block.network),
        proofs=tuple(str(one["by"]) for one in plan.claims["given"]),
        input_line=context.line_of(block.source),
        model_lines=context.entry_laws.get(block.source, ()),
    )


def _chances(rows: Grid) -> tuple[tuple[Quantity, ...], ...]:
    return tuple(tuple(exact(entry * rows.unit) for entry in row) for row in rows.rows)
