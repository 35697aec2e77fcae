"""A plan about a sequence whose entries tell of one another: its noise, the model, and what holds if that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from math import isclose, sqrt
from typing import TYPE_CHECKING

from privspec.core.records import dataclass
from privspec.explain import document
from privspec.explain.curves import EpsilonDeltaCurve, consequences
from privspec.explain.facts import AddedNoise, Moved, randomness
from privspec.explain.messages import phrase, say
from privspec.explain.quantities import UP, Quantity, exact, rounded
from privspec.explain.questions import Question, of_entry, took_part
from privspec.kernel.chains import ChainBlock, read_chain
from privspec.kernel.core.reading import Grid
from privspec.kernel.laws.laplace import laplace_variance
from privspec.kernel.measures import PURE
from privspec.stated import Stated

if TYPE_CHECKING:
    from privspec.explain.claims import Claim
    from privspec.explain.context import Context
    from privspec.explain.facts import Facts


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

    page = "sequences"

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

    def summary_rows(self, facts: Facts) -> list[tuple[str, str]]:
        """What holds without the model."""
        return [
            (
                "If the model is wrong",
                f"{PURE.at((str(self.alone),))} for one entry, {PURE.at((str(self.together),))} for all entries",
            )
        ]

    # --- the pages

    def values(self, facts: Facts) -> Mapping[str, object]:
        lines = "; ".join(line.text for line in self.model_lines)
        return {
            "names": [one.name for one in self.sequence.released],
            "states": ", ".join(self.sequence.states),
            "several_laws": len(self.starts) * len(self.steps) > 1,
            "accused": self.odds_alone[0],
            "found": self.odds_alone[1],
            "laws_quoted": f" ({lines})" if lines else "",
        }

    def moved_by(self, facts: Facts) -> tuple[Moved, ...]:
        size, names = self.deviation, (one.name for one in self.sequence.released)
        return tuple(Moved(name, size, facts.unit(name, size.text)) for name in names)

    def public_sections(self, facts: Facts) -> tuple[document.Section, ...]:
        """What the odds take for granted, and what is left of them otherwise."""
        found = document.Paragraph(self._sentences("public_model", facts))
        return tuple(document.sections(("What if the model is wrong?", (found,))))

    def auditor_points(self, facts: Facts) -> tuple[document.Sentence, ...]:
        proofs = (
            say("sequences.auditor_line.proof", line=line, by=phrase(f"sequences.by.{by}"))
            for line, by in zip(self._lines(facts), self.proofs, strict=True)
        )
        found = *self._sentences("auditor", facts), *proofs, *self._sentences("auditor_more", facts)
        return *found, *randomness(document.Note("discrete-laplace"))

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

    def engineer_points(self, facts: Facts) -> list[document.Sentence]:
        return [*AddedNoise.engineer_points(self, facts), *self._sentences("auditor", facts)]


def sequence_fact(plan: Stated, context: Context) -> SequenceFact:
    """The mechanism of a plan of the family "chain".

    Raises: KeyError, TypeError, ValueError if it is not of that form.
    """
    chain = plan.executed_as(read_chain)
    block, size = chain.block, len(chain.block.states)
    each = float(laplace_variance(chain.scale * chain.unit, chain.unit))
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
