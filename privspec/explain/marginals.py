"""A plan of tables of counts: noise in the parts of sets of columns, and how far each table may be off.

Also one of counts of unknown keys: which are listed, and how far their counts may be off.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import accumulate
from math import prod, sqrt
from typing import TYPE_CHECKING, ClassVar

from privspec.core.records import dataclass
from privspec.explain.additive import AdditiveNoise, CompactNoise, InputFact, OutputFact
from privspec.explain.document import Block, Judged, Note, Sentence, SpecLine, asserted, assumed, proved, table
from privspec.explain.facts import MechanismFact, executed, randomness, run_command
from privspec.explain.fitting import Effects
from privspec.explain.quantities import UP, Quantity, count, percent, rounded
from privspec.kernel.keys import KeyBlock, read_keys
from privspec.kernel.marginals import Marginals, Residuals, Separate, Strategies, read_executed
from privspec.model.reports import listing
from privspec.problem.fitting import Done
from privspec.stated import Stated

if TYPE_CHECKING:
    from privspec.explain.context import Context
    from privspec.explain.facts import Facts


_NOTE = Note("marginals")
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

    loss_note = _NOTE

    def variance_behind(self, plan: Stated, where: Context) -> tuple[float | None, str]:
        """The error variance behind the loss, if that is the sum, the mean or the largest of the numbers'."""
        if plan.loss is None:
            return None, ""
        total, numbers = sum(n * variance for n, variance in self.spread), sum(n for n, _ in self.spread)
        largest = max(variance for _, variance in self.spread)
        if plan.loss.kind == "worst":
            return (largest, "the worst answer") if math.isclose(plan.loss.value, largest, rel_tol=1e-6) else (None, "")
        if any(math.isclose(plan.loss.value, known, rel_tol=1e-6) for known in (total, total / numbers)):
            return total / numbers, "an answer" if numbers > 1 else "the answer"
        return None, ""

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

    def engineer_points(self, facts: Facts) -> list[Sentence]:
        goes = MechanismFact.engineer_points(self, facts)
        if self.shape == "laplace":
            return goes
        how = (
            "A table is the sum of the parts of all sets of its columns, each spread evenly over its other columns: "
            "what two tables share is drawn once."
        )
        return [*goes, proved(how, _NOTE)]

    def engineer_blocks(self, facts: Facts) -> list[Block]:
        caption = "Standard deviation of the noise that is drawn"
        return [
            _table(caption, "Sets of so many columns", self.parts),
            _table("Standard deviation of the tables", "Tables by so many columns", self.asked),
            self.ways(facts),
        ]

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        rows = [
            ("Noise", self.shape),
            ("Columns of the table", str(self.columns)),
            *((f"Sets of {one.columns} columns", f"{one.tables}, {one.numbers} noisy numbers") for one in self.parts),
            (
                "Lattice of the noisy parts",
                f"{self.grid} of the deviation of each number" if self.shape == "gaussian" else self.grid,
            ),
            ("Grid of the outputs", self.output_grid),
            *((f"Input {one.name}", f"{one.size} {one.layout}, {one.limits}") for one in self.inputs),
        ]
        words = "Everything released is computed from the noisy parts of the sets of columns."
        return executed(facts, rows, proved(words, Note("post-processing")))

    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        return (run_command(plan, (one.name for one in self.inputs)),)


def _table(caption: str, first: str, ways: Iterable[Ways]) -> Block:
    header = f"{first} | How many | Numbers | Root mean square | Least | Largest"
    rows = [(str(one.columns), one.tables, one.numbers, one.typical, one.least, one.largest) for one in ways]
    return table(caption, header, rows, *range(6))


def table_noise(plan: Stated, where: Context) -> TableNoise:
    """The mechanism of a plan of the family "marginals".

    Raises: KeyError, TypeError, ValueError if it is not of that form.
    """
    done = plan.executed_as(read_executed)
    known, at, outputs = done.block, 0, dict[str, list[Spread]]()
    spread = list(_spreads(done))
    for one in known.released:
        outputs[one.name] = spread[at : at + len(one.tables)]
        at += len(one.tables)
    asked = [(len(own), found) for own, found in zip(known.tables, spread, strict=True)]
    if isinstance(done, Separate):
        drawn = [one for one, scale in zip(asked, done.scales, strict=True) if scale is not None]
    elif isinstance(done, Strategies):
        rows = {own: part.strategy.nrows() for own, part in done.parts.items()}
        drawn = [(len(own), [(prod(known.sizes[i] for i in own) * n, 1.0)]) for own, n in rows.items()]
    else:
        sizes = done.deviations.items()
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
    said, sizes = plan.mechanism, known.sizes
    names = " × ".join(name for name, *_ in known.columns)
    cells, line = count(prod(sizes)), where.line_of(known.source)
    return TableNoise(
        family=said.family,
        released=frozenset(outputs),
        inputs=(InputFact(known.source, cells, "counts of cells", names, clipped=False, line=line),),
        outputs=tuple(_output(name, [one for own in tables for one in own]) for name, tables in outputs.items()),
        sites=(),
        shape="laplace" if said.family == "laplace" else "gaussian",
        grid=said.grid or "1",
        output_grid=said.output_grid or "1",
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


# --- counts of unknown keys -----------------------------------------------------------------------


_KEY_NOTE = Note("unknown-keys")
MOST_ROWS = 40
"""Counts of which a table tells the chance to be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFact(MechanismFact):
    """The chance that a key of 1, 2, ... records is shown, and what its count is off by on average."""

    block: KeyBlock
    kept: tuple[Fraction, ...]
    chances: tuple[Fraction, ...]
    centre: int
    error_size: Quantity
    averaged: bool
    input_line: SpecLine

    drawn_label: ClassVar[str] = "What is drawn"
    subject: ClassVar[str] = "The table of chances"
    reached_label: ClassVar[str] = "Reached by the chances"
    exact_curve: ClassVar[str] = "the chances (a bound)"
    entry: ClassVar[Judged] = Judged("law")
    loss_note: ClassVar[Note] = _KEY_NOTE
    accuracy_heading: ClassVar[str] = "What is missing, and how exact is the rest?"
    measure: ClassVar[str] = "what is shown is drawn by the chances that this report describes."
    heading: ClassVar[str] = "Chances"
    compared_with: ClassVar[tuple[str, str]] = "What people use", "Release | Loss | Meets the lines | Reason"

    @property
    def effects(self) -> Effects:
        """Counts are too low; where there are none, fewer keys are shown."""
        return {} if self.block.counts else {Done.LEFT_OUT: "may hide more of them"}

    @property
    def key(self) -> str:
        """What a key is called: its columns."""
        return listing([column.name for column in self.block.columns if column.grouped])

    def reached(self, chance: Fraction) -> int:
        """The fewest records with which a key is shown with so large a chance."""
        return next(n for n, kept in enumerate(self.kept, 1) if kept >= chance)

    def drawn(self, facts: Facts) -> str:
        what = "the keys that are shown, with their counts" if self.block.counts else "the keys that are shown"
        half, most = self.reached(Fraction(1, 2)), len(self.kept)
        return f"{what}: at least half of those with {count(half)} records, all with {count(most)}{facts.context.place}"

    def error(self, facts: Facts) -> tuple[str, str]:
        label = "Expected error" if self.averaged else "Largest expected error"
        if not self.block.counts:
            return label, f"{self._share()} of the keys missed"
        kind = "root mean square" if self.block.error == "squared" else "mean absolute"
        return label, f"{self.error_size} records  ({kind}, a hidden count being 0)"

    def _share(self) -> str:
        """The loss as a share of the keys."""
        return f"{percent(Fraction(self.error_size.value), 3, UP)}"

    # --- the pages

    def public_accuracy(self, facts: Facts) -> tuple[Sentence, ...]:
        half, most = self.reached(Fraction(1, 2)), len(self.kept)
        because = facts.context.loss_because
        said = [
            proved(
                f"A {self.key} is listed only if enough records have it: of those with {count(half)} records at least "
                f"half are listed, of those with {count(most)} or more all.",
                _KEY_NOTE,
                Judged("law"),
            ),
            proved(f"One that only one record has is almost never listed: {_rare(self.kept[0])}.", _KEY_NOTE),
        ]
        if self.block.counts:
            how = "typically" if self.block.error == "squared" else "on average"
            at = "" if self.averaged else ", at worst"
            text = f"By chance alone a count is {how} off by {self.error_size}{at}, one not listed being 0."
        else:
            least = f" with at least {self.block.at_least} records" if self.block.at_least > 1 else ""
            worst = "" if self.averaged else ", at worst"
            text = f"By chance alone, of all of them{least}, {self._share()} are not listed{worst}."
        measure = f"key {self.block.error if self.block.counts else 'missed'}{'' if self.averaged else ', at worst'}"
        off = proved(text, because, Judged("loss"))
        size = self.error_size.value
        said.append(facts.of_chance(off, measure, (self.block.output, size, size)))
        if self.averaged:
            said.append(assumed("Averages are over sizes the author expects.", because))
        return tuple(said)

    def exactly(self, facts: Facts) -> tuple[str, ...]:
        return (f"the text of each listed {self.key}, as it stands in the data, but not which are left out",)

    def auditor_points(self, facts: Facts) -> tuple[Sentence, ...]:
        shown = (
            f"The count that is released is its records less its threshold, and {self.centre} more."
            if self.block.counts
            else "No count is released."
        )
        return (
            proved(
                f"Every {self.key} that occurs draws a threshold of its own, from 1 to {count(len(self.kept))}, by "
                f"exact chances, and is shown if it has at least so many records. {shown}",
                Judged("law"),
            ),
            proved("What no record has is never shown; the order of what is shown is that of the texts.", _KEY_NOTE),
            proved(
                f"One record alone is shown with a chance of {rounded(self.kept[0], 3, UP)}: no more than delta.",
                _KEY_NOTE,
                Judged("privacy"),
            ),
            *randomness(_KEY_NOTE),
        )

    def in_figures(self) -> list[Block]:
        every = range(1, len(self.kept) + 1)
        step = -(-len(self.kept) // MOST_ROWS)
        places = [n for n in every if n % step == 0 or n in (1, len(self.kept))]
        rows = [(count(n), rounded(self.kept[n - 1], 4), rounded(self.chances[n - 1], 4)) for n in places]
        caption = f"Chance that a {self.key} is shown, by how many records have it"
        return [table(caption, "Records | Shown | Threshold of so many", rows, 0, 1, 2)]

    def data(self, facts: Facts) -> tuple[Sentence, ...]:
        only = [column.name for column in self.block.columns if column.kept is not None]
        condition = f"; only some values of {listing(only)} count" if only else ""
        text = f"Secret input {self.block.source}: a table of records; which {self.key} occur is secret too{condition}."
        return (asserted(text, self.input_line),)

    def execution(self, facts: Facts) -> tuple[Block, ...]:
        items = [
            ("Threshold", f"one for each key that occurs, from 1 to {count(len(self.kept))}"),
            ("Shown", "a key with at least as many records as its threshold"),
        ]
        if self.block.counts:
            items.append(("Count", f"records - threshold + {self.centre}"))
        text = "A uniform whole number below the common denominator is found among the running sums of the chances."
        return executed(facts, items, proved(text, _KEY_NOTE))

    def run_commands(self, facts: Facts, plan: str) -> tuple[str, ...]:
        return (f"{run_command(plan, (self.block.source,))} -o {self.block.output}.csv",)


def _rare(chance: Fraction) -> str:
    """A small chance in natural frequencies, rounded up."""
    if not chance:
        return "never"
    often = int(1 / chance)
    if often <= 2:
        return f"with a chance of {percent(chance, 3, UP)}"
    step = 10 ** max(len(str(often)) - 2, 0)
    return f"at most once in {often // step * step:,}"


def key_fact(plan: Stated, context: Context) -> KeyFact:
    """The mechanism of a plan of the family "keys".

    Raises: KeyError, TypeError, ValueError if it is not of that form.
    """
    keys = plan.executed_as(read_keys)
    block, chances = keys.block, tuple(Fraction(step, keys.total) for step in keys.steps)
    each = (plan.loss.value if plan.loss else 0.0) / float(block.weight)
    return KeyFact(
        family=plan.mechanism.family,
        released=frozenset(keys.outputs),
        block=block,
        kept=tuple(accumulate(chances)),
        chances=chances,
        centre=keys.centre,
        error_size=rounded(sqrt(each) if block.error == "squared" else each),
        averaged=plan.loss is not None and plan.loss.kind == "expected",
        input_line=context.line_of(block.source),
    )
