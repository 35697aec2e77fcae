"""A plan of tables of counts: noise in the parts of sets of columns, and how far each table may be off.

Also one of counts of unknown keys: which are listed, and how far their counts may be off. And one of running totals of
a long row: how large the noise on the answers is, and how far each total may be off.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import accumulate
from math import prod, sqrt
from typing import TYPE_CHECKING

from privspec.core.records import dataclass
from privspec.explain.additive import AdditiveNoise, CompactNoise, InputFact, OutputFact, behind
from privspec.explain.document import (
    Accuracy,
    Block,
    Note,
    SpecLine,
    table,
)
from privspec.explain.facts import MechanismFact, typical
from privspec.explain.fitting import Effects
from privspec.explain.quantities import UP, Quantity, count, percent, rounded
from privspec.kernel.keys import KeyBlock, read_keys
from privspec.kernel.marginals import Marginals, Residuals, Separate, Strategies, read_executed
from privspec.kernel.streams import Banded, read_banded
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

    page = "keys"

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

    @property
    def half(self) -> int:
        """With so many records a key is shown with a chance of at least a half."""
        return self.reached(Fraction(1, 2))

    @property
    def most(self) -> int:
        """With so many records a key is always shown."""
        return len(self.kept)

    @property
    def squared(self) -> bool:
        """Whether errors are squared."""
        return self.block.error == "squared"

    @property
    def share(self) -> Quantity:
        """The loss as a share of the keys."""
        return percent(Fraction(self.error_size.value), 3, UP)

    @property
    def only(self) -> list[str]:
        """Columns of which only some values count."""
        return [column.name for column in self.block.columns if column.kept is not None]

    # --- the pages

    def values(self, facts: Facts) -> Mapping[str, object]:
        """How rarely a key of one record is shown: the chance rounded up, or the odds where they are small."""
        alone = self.kept[0]
        often = int(1 / alone) if alone else 0
        step = 10 ** max(len(str(often)) - 2, 0)
        return {
            "never": not alone,
            "seldom": often // step * step if often > 2 else None,
            "alone": percent(alone, 3, UP),
            "alone_rounded": rounded(alone, 3, UP),
            "at_least": self.block.at_least if self.block.at_least > 1 else None,
        }

    def accuracies(self, facts: Facts) -> Mapping[str, Accuracy]:
        measure = f"key {self.block.error if self.block.counts else 'missed'}{'' if self.averaged else ', at worst'}"
        off = Accuracy(measure, ((self.block.output, self.error_size.value, self.error_size.value),))
        return dict.fromkeys(("off", "missed", "missed_of_frequent"), off)

    def in_figures(self) -> list[Block]:
        every = range(1, len(self.kept) + 1)
        step = -(-len(self.kept) // MOST_ROWS)
        places = [n for n in every if n % step == 0 or n in (1, len(self.kept))]
        rows = [(count(n), rounded(self.kept[n - 1], 4), rounded(self.chances[n - 1], 4)) for n in places]
        caption = f"Chance that a {self.key} is shown, by how many records have it"
        return [table(caption, "Records | Shown | Threshold of so many", rows, 0, 1, 2)]


def key_fact(plan: Stated, context: Context) -> KeyFact:
    """The mechanism of a plan of the family "keys".

    Raises: KeyError, TypeError, ValueError if it is not of that form.
    """
    keys = plan.executed_as(read_keys)
    block, chances = keys.block, tuple(Fraction(step, keys.total) for step in keys.steps)
    return KeyFact(
        family=plan.mechanism.family,
        released=frozenset(keys.outputs),
        block=block,
        kept=tuple(accumulate(chances)),
        chances=chances,
        centre=keys.centre,
        error_size=typical(plan, block.weight, squared=block.error == "squared"),
        averaged=plan.loss is not None and plan.loss.kind == "expected",
        input_line=context.line_of(block.source),
    )


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
        caption = "Standard deviation of the noise that is drawn"
        return [table(caption, "Answers | Numbers | Deviation", rows, 1, 2), self.ways(facts)]


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
