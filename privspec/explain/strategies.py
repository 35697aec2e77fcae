"""Noise with a structure, read into facts: tables of counts, running totals, sequences under a model, statistics.

Of tables of counts: noise in the parts of sets of columns, and how far each table may be off. Of running totals of a
long row: how large the noise on the answers is. Of a sequence whose entries tell of one another: the model, and what
holds if that is wrong. Of statistics: what is made noisy, where, and what that protects in plain words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import compress, product
from math import isclose, prod, sqrt
from typing import TYPE_CHECKING

from privspec.core.records import dataclass
from privspec.explain import document
from privspec.explain.additive import AdditiveNoise, CompactNoise, InputFact, OutputFact, behind
from privspec.explain.claims import Question, of_entry, took_part
from privspec.explain.curves import EpsilonDeltaCurve, consequences
from privspec.explain.document import Accuracy, Block, Note, Sentence, SpecLine
from privspec.explain.facts import MechanismFact, Moved, randomness
from privspec.explain.messages import phrase, say, tabled
from privspec.explain.quantities import UP, Quantity, count, exact, known, rounded
from privspec.kernel.chains import ChainBlock
from privspec.kernel.core.reading import Grid
from privspec.kernel.laws.laplace import laplace_variance
from privspec.kernel.marginals import Marginals, Residuals, Separate, Strategies
from privspec.kernel.measures import PURE
from privspec.kernel.statistics import Site, StatisticBlock
from privspec.kernel.streams import Banded
from privspec.stated import Stated

if TYPE_CHECKING:
    from privspec.explain.claims import Claim
    from privspec.explain.context import Context
    from privspec.explain.facts import AlternativeFact, Facts


Spread = list[tuple[int, float]]
"""How many numbers have a variance."""


@dataclass(frozen=True, slots=True)
class Ways:
    """All tables, or all sets of columns, of so many columns: how many, their numbers, and deviations."""

    columns: int
    tables: Quantity
    numbers: Quantity
    typical: Quantity
    least: Quantity
    largest: Quantity

    @classmethod
    def of(cls, columns: int, tables: list[Spread]) -> Ways:
        """Of some tables."""
        spread = [one for own in tables for one in own]
        return cls(columns, count(len(tables)), count(sum(n for n, _ in spread)), *_deviations(spread))


def _deviations(spread: Spread) -> tuple[Quantity, Quantity, Quantity]:
    """Root mean square, least and largest."""
    total = sum(n for n, _ in spread) or 1
    mean = sum(n * variance for n, variance in spread) / total
    sizes = [variance for _, variance in spread] or [0.0]
    return rounded(sqrt(mean)), rounded(sqrt(min(sizes))), rounded(sqrt(max(sizes)))


@dataclass(frozen=True, slots=True)
class TableNoise(CompactNoise):
    """Noise drawn once for each set of columns; `parts` and tables `asked` for by how many columns."""

    spread: Spread
    columns: int
    parts: tuple[Ways, ...]
    asked: tuple[Ways, ...]

    page = "marginals"

    def variance_behind(self, plan: Stated, where: Context) -> tuple[float | None, str]:
        """The error variance behind the loss, if that is the sum, the mean or the largest of the numbers'."""
        if plan.loss is None:
            return None, ""
        total, numbers = sum(n * variance for n, variance in self.spread), sum(n for n, _ in self.spread)
        return behind(plan.loss.value, plan.loss.kind, total, max(variance for _, variance in self.spread), numbers)

    def drawn(self, facts: Facts) -> str:
        if self.shape == "laplace":
            noisy = sum(int(one.tables.value) for one in self.parts)
            others = sum(int(one.tables.value) for one in self.asked) - noisy
            rest = f"; the other {count(others)} are added up from these" if others > 1 else ""
            rest = "; the other one is added up from these" if others == 1 else rest
            answers = count(sum(int(one.numbers.value) for one in self.parts))
            noised = f"{count(noisy)} tables" if noisy > 1 else "one table"
            drawn = f"Laplace noise on each of {answers} answers of {noised}"
            return f"{drawn}{facts.context.place}{rest}"
        parts = sum(int(one.tables.value) for one in self.parts)
        tables = sum(int(one.tables.value) for one in self.asked)
        answers = count(sum(n for n, _ in self.spread))
        shared = (
            f"once for each of {count(parts)} sets of columns, shared by {count(tables)} tables ({answers} answers)"
        )
        return f"Gaussian noise, {shared}{facts.context.place}"

    def auditor_tables(self, facts: Facts) -> tuple[Block, ...]:
        caption = "Noise in the released tables, in records (claim loss)"
        return (*AdditiveNoise.auditor_tables(self, facts), _table(caption, "Tables by so many columns", self.asked))

    def engineer_blocks(self, facts: Facts) -> list[Block]:
        caption = "Standard deviation of the noise that is drawn"
        return [
            _table(caption, "Sets of so many columns", self.parts),
            _table("Standard deviation of the tables", "Tables by so many columns", self.asked),
            self.ways(facts),
        ]


def _table(caption: str, first: str, ways: Iterable[Ways]) -> Block:
    return tabled("marginals.ways", ways, caption=caption, first=first)


def table_noise(plan: Stated, where: Context) -> TableNoise:
    """The mechanism of a plan of the family "marginals".

    Raises: KeyError, TypeError, ValueError if it is not of that form.
    """
    done = plan.executed
    known, at, outputs = done.block, 0, dict[str, list[Spread]]()
    spread = list(_spreads(done))
    for one in known.released:
        outputs[one.name] = spread[at : at + len(one.tables)]
        at += len(one.tables)
    asked = [(len(own), found) for own, found in zip(known.tables, spread, strict=True)]
    if isinstance(done, Separate):
        drawn = [one for one, scale in zip(asked, done.scales, strict=True) if scale is not None]
    elif isinstance(done, Strategies):
        rows = {own: part.strategy.nrows() for own, part in done.each.items()}
        drawn = [(len(own), [(prod(known.sizes[i] for i in own) * n, 1.0)]) for own, n in rows.items()]
    else:
        sizes = done.each.items()
        drawn = [(len(own), [(prod(known.sizes[i] for i in own), float(size) ** 2)]) for own, size in sizes]
    return _noise(plan, where, known, outputs, drawn, asked)


def _spreads(done: Residuals | Separate | Strategies) -> Iterator[Spread]:
    """The variances of the numbers of every table."""
    known = done.block
    if isinstance(done, Strategies):
        from privspec.families.gaussian.drawing import variances  # few plans have columns in order

        values, at = variances(done).tolist(), 0
        for size in known.numbers:
            yield [(1, value) for value in values[at : at + size]]
            at += size
    elif isinstance(done, Separate):
        yield from ([(size, float(done.variance(place)))] for place, size in enumerate(known.numbers))
    else:
        each = {own: float(done.variance(own)) for own in dict.fromkeys(known.tables)}
        yield from ([(size, each[own])] for own, size in zip(known.tables, known.numbers, strict=True))


Counted = list[tuple[int, Spread]]
"""By how many columns."""


def _noise(
    plan: Stated, where: Context, known: Marginals, outputs: dict[str, list[Spread]], drawn: Counted, asked: Counted
) -> TableNoise:
    done, sizes = plan.executed, known.sizes
    names = " × ".join(one.name for one in known.columns)
    cells, line = count(prod(sizes)), where.line_of(known.source)
    return TableNoise(
        family=done.FORM,
        released=frozenset(outputs),
        pulled=(),
        inputs=(InputFact(known.source, cells, "counts of cells", names, clipped=False, line=line),),
        outputs=tuple(_output(name, [one for own in tables for one in own]) for name, tables in outputs.items()),
        sites=(),
        shape="laplace" if isinstance(done, Separate) else "gaussian",
        grid=str(getattr(done, "grid", 1)),
        output_grid=str(getattr(done, "output_grid", 1)),
        rounding="strategy",
        strategy=(),
        shares=None,
        numbers=(),
        spread=[one for tables in outputs.values() for own in tables for one in own],
        columns=len(sizes),
        parts=_by_columns(drawn),
        asked=_by_columns(asked),
    )


def _by_columns(items: Counted) -> tuple[Ways, ...]:
    found: dict[int, list[Spread]] = {}
    for columns, one in items:
        found.setdefault(columns, []).append(one)
    return tuple(Ways.of(columns, some) for columns, some in sorted(found.items()))


def _output(name: str, spread: Spread) -> OutputFact:
    bare = sum(n for n, variance in spread if not variance)
    return OutputFact(name, count(sum(n for n, _ in spread)), *_deviations(spread), count(bare), ())


# --- running totals of a long row ------------------------------------------------------------------


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

    @property
    def band(self) -> Quantity:
        """How many numbers are in an answer."""
        return count(self.done.band)

    def engineer_blocks(self, facts: Facts) -> list[Block]:
        start, rows = 1, []
        for length, size in zip(self.done.lengths, self.done.deviations, strict=True):
            rows.append((f"{start} to {start + length - 1}", count(length), rounded(float(size))))
            start += length
        return [tabled("streams.drawn_at", rows), self.ways(facts)]


def stream_noise(plan: Stated, where: Context) -> StreamNoise:
    """The mechanism of a plan of the family "stream".

    Raises: ValueError if it is not of that form.
    """
    done = plan.executed
    block, held = done.block, done.block.held
    limits = f"{held.lower} to {held.upper}"
    if held.ball is not None:
        limits = f"in runs of {held.ball.dimension} inside the l2 ball of radius {held.ball.radius}"
    size, line = count(block.steps * block.each), where.line_of(block.source)
    mean = math.sqrt(float(plan.loss.value / block.weight) / (block.steps * block.each)) if plan.loss else math.nan
    sizes = [float(one) for one in done.deviations]
    typical = rounded(mean)
    outputs = (OutputFact(block.released.name, size, typical, rounded(min(sizes)), typical, count(0), ()),)
    return StreamNoise(
        family=plan.mechanism.family,
        released=frozenset(done.outputs),
        pulled=(),
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


# --- sequences under a model ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SequenceFact(MechanismFact):
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
    input_line: SpecLine
    model_lines: tuple[SpecLine, ...]

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

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        proofs = (
            say("sequences.auditor_line.proof", line=line, by=phrase(f"sequences.by.{by}"))
            for line, by in zip(self._lines(facts), self.proofs, strict=True)
        )
        found = *self._sentences("auditor", facts), *proofs, *self._sentences("auditor_more", facts)
        return *found, *randomness(Note("discrete-laplace"))

    def _lines(self, facts: Facts) -> list[int]:
        return [fact.claim.line.number for fact in facts.claims if fact.claim.requirement in self.sequence.lines]

    def in_figures(self) -> list[Block]:
        states = self.sequence.states
        columns = [f"#{state}" for state in states]
        found: list[Block] = []
        for number, law in enumerate(self.starts, 1):
            found.append(tabled("sequences.first", zip(states, law, strict=True), number=number))
        for number, step in enumerate(self.steps, 1):
            after = ((before, *row) for before, row in zip(states, step, strict=True))
            found.append(tabled("sequences.after", after, columns, number=number))
        drawn = [
            (place, ", ".join(f"{p + 1} is {s}" for p, s in zip(one.parents, before, strict=True)), *row)
            for place, (one, rows) in enumerate(zip(self.sequence.network, self.network, strict=True), 1)
            for before, row in zip(product(states, repeat=len(one.parents)), rows, strict=True)
        ]
        if drawn:
            found.append(tabled("sequences.given", drawn, columns))
        return found

    def engineer_points(self, facts: Facts) -> list[Sentence]:
        return [*MechanismFact.engineer_points(self, facts), *self._sentences("auditor", facts)]


def sequence_fact(plan: Stated, context: Context) -> SequenceFact:
    """The mechanism of a plan of the family "chain".

    Raises: KeyError, TypeError, ValueError if it is not of that form.
    """
    chain = plan.executed
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
        model_lines=context.entry_laws.get(block.source) or context.whole_laws.get(block.source, ()),
    )


def _chances(rows: Grid) -> tuple[tuple[Quantity, ...], ...]:
    return tuple(tuple(exact(entry * rows.unit) for entry in row) for row in rows.rows)


# --- statistics -------------------------------------------------------------------------------------


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
class StatisticFact(MechanismFact):
    """One statistic of bounded records with noise; `statistic` is what the spec means by it."""

    statistic: StatisticBlock
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

    # --- words

    @property
    def party(self) -> str:
        """One of those who hold the records."""
        return self.statistic.party or "person"

    @property
    def grid(self) -> str:
        """The step of the records, in full."""
        return str(self.statistic.grid)

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
        return *MechanismFact.public_accuracy(self, facts), *protects

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        return *self._sentences("auditor", facts), *self._sentences("protects", facts), *randomness(self.note)

    def in_figures(self) -> list[Block]:
        rows = [(n.at, n.shape, key, str(value)) for n in self.noise[:_LISTED] for key, value in n.parameters.items()]
        many = {"listed": _LISTED, "parties": len(self.noise)}
        rest = phrase("statistics.drawn_at.rest", many) if len(self.noise) > _LISTED else ""
        return [tabled("statistics.drawn_at", rows, rest=rest)]


def _shape(name: str) -> tuple[str, ...]:
    return _SHAPES.get(name, (f"noise of the shape {name}", "post-processing"))


def statistic_fact(plan: Stated, context: Context) -> StatisticFact:
    """The mechanism of a plan of the family "statistic".

    Raises: KeyError, TypeError, ValueError if it is not of that form.
    """
    done = plan.executed
    found = done.block
    route = next(route for route in found.routes if route.at == done.route)
    notes = [note for guarantee in plan.guarantees for note in guarantee.because]
    return StatisticFact(
        family=done.FORM,
        released=frozenset({found.output}),
        statistic=found,
        route=route.name,
        own_ball=route.estimated_within is not None,
        note=Note(notes[0] if notes else "post-processing"),
        parties=count(found.parties),
        records=count(found.count),
        dimension=count(found.dimension),
        radius=known(found.radius, 6),
        each_party=done.each_party,
        finish_first=done.finish_first,
        noise=done.sites,
        without_noise=None if plan.loss is None else known(plan.loss.without_noise),
        crowds=count(0 if plan.loss is None else plan.loss.crowds),
        stand_ins=count(0 if plan.loss is None else plan.loss.parties),
        local=context.alone,
        angle=plan.loss is not None and plan.loss.expression.replace(" ", "").startswith("E[disagreement("),
        input_line=context.line_of(found.source),
    )
