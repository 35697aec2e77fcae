"""A plan of running totals of a long row: how large the noise on the answers is, and how far each total may be off."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from privspec.core.records import dataclass
from privspec.explain.additive import CompactNoise, InputFact, OutputFact
from privspec.explain.document import Block, Note, Sentence, proved, table
from privspec.explain.facts import MechanismFact, executed
from privspec.explain.quantities import count, rounded
from privspec.kernel.streams import Banded, read_banded
from privspec.stated import Stated

if TYPE_CHECKING:
    from privspec.explain.context import Context
    from privspec.explain.facts import Facts

_NOTE = Note("streams")


@dataclass(frozen=True, slots=True)
class StreamNoise(CompactNoise):
    """Noise of a few sizes on the answers of a banded strategy."""

    done: Banded

    page = "streams"

    def variance_behind(self, plan: Stated, where: Context) -> tuple[float | None, str]:
        """The error variance of a total, on average."""
        known = self.done.block
        numbers = known.steps * known.each
        value = math.nan if plan.loss is None else plan.loss.value
        return (value / float(known.weight) / numbers, "an answer") if plan.loss is not None else (None, "")

    def drawn(self, facts: Facts) -> str:
        sizes = [float(size) for size in self.done.deviations]
        answers = count(self.done.block.steps * self.done.block.each)
        size = f"± {rounded(min(sizes))} to {rounded(max(sizes))}"
        return f"Gaussian noise, correlated across {answers} totals: {size} on each answer{facts.context.place}"

    def engineer_points(self, facts: Facts) -> list[Sentence]:
        how = (
            f"An answer is the sum of the last {count(self.done.band)} numbers, each times a coefficient of "
            "(1 - x)^(-1/2), raised along a ramp; totals are computed from the noisy answers by the inverse of these."
        )
        return [*MechanismFact.engineer_points(self, facts), proved(how, _NOTE)]

    def engineer_blocks(self, facts: Facts) -> list[Block]:
        start, rows = 1, []
        for length, size in zip(self.done.lengths, self.done.deviations, strict=True):
            rows.append((f"{start} to {start + length - 1}", count(length), rounded(float(size))))
            start += length
        caption = "Standard deviation of the noise that is drawn"
        return [table(caption, "Answers | Numbers | Deviation", rows, 1, 2), self.ways(facts)]

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        rows = [
            ("Noise", self.shape),
            ("Numbers in an answer", str(count(self.done.band))),
            ("Lattice of the noisy answers", self.grid),
            ("Grid of the outputs", self.output_grid),
            *((f"Input {one.name}", f"{one.size} {one.layout}, {one.limits}") for one in self.inputs),
        ]
        return executed(
            facts, rows, proved("Everything released is computed from noisy answers.", Note("post-processing"))
        )


def stream_noise(plan: Stated, where: Context) -> StreamNoise:
    """The mechanism of a plan of the family "stream".

    Raises: ValueError if it is not of that form.
    """
    done = plan.executed_as(read_banded)
    block, held = done.block, done.block.held
    limits = f"{held.lower} to {held.upper}"
    if held.ball is not None:
        limits = f"in runs of {held.ball[1]} inside the l2 ball of radius {held.ball[0]}"
    size, line = count(block.steps * block.each), where.line_of(block.source)
    mean = math.sqrt(float(plan.loss.value / block.weight) / (block.steps * block.each)) if plan.loss else math.nan
    sizes = [float(one) for one in done.deviations]
    typical = rounded(mean)
    outputs = (OutputFact(block.released.name, size, typical, rounded(min(sizes)), typical, count(0), ()),)
    return StreamNoise(
        family=plan.mechanism.family,
        released=frozenset(done.outputs),
        inputs=(InputFact(block.source, size, "values", limits, clipped=True, line=line),),
        outputs=outputs,
        sites=(),
        shape="gaussian",
        grid=str(done.grid),
        output_grid=str(done.output_grid),
        rounding="strategy",
        strategy=(),
        shares=None,
        numbers=(),
        done=done,
    )
