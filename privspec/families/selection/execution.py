"""A selection as it is run: records are read at the nearest answer, scores are whole steps, and the draw is exact."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.execute.data import Grid, count_cells, kept_rule, located
from privspec.execute.drawing import Labels, RowLaw
from privspec.execute.family import BlockMechanism, BlockSecret, Drawn, RunContext
from privspec.execute.keeper import STRICT_RULE, given_for, refuse
from privspec.execute.reading import number
from privspec.execute.statistic import NO_PLACE, Attribute
from privspec.families.voting.execution import sampler
from privspec.kernel.core.linear import InputLayout
from privspec.kernel.core.problem import Data
from privspec.kernel.laws.voting import BY_NAME
from privspec.kernel.selection import Drawn as Executed
from privspec.kernel.selection import Listed, Selected, Where, tables_of
from privspec.model.voting import Lottery
from privspec.noise.samplers import Randomness

# --- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Nearest(Attribute):
    """Numbers are read at the nearest of some ascending ones, the higher of two that are as near."""

    numbers: tuple[Fraction, ...] = ()
    between: ClassVar[bool] = False

    @property
    def size(self) -> int:
        return len(self.numbers)

    def lookup(self) -> Callable[[Any], tuple[int, bool]]:
        middles = [(a + b) / 2 for a, b in zip(self.numbers, self.numbers[1:], strict=False)]
        known = set(self.numbers)

        def place(value: Any) -> tuple[int, bool]:
            quantity = number(value)
            if quantity != quantity:
                return NO_PLACE, False
            if abs(quantity) == float("inf"):
                return (len(middles) if quantity > 0 else 0), False
            exact = Fraction(quantity)
            return bisect_right(middles, exact), exact in known

        return place


@dataclass(frozen=True, slots=True)
class Allowed(Attribute):
    """Whether a value is one of those that a condition keeps: 1 or 0."""

    kept: frozenset[int] = frozenset()

    @property
    def size(self) -> int:
        return 2

    def lookup(self) -> Callable[[Any], tuple[int, bool]]:
        values = self.values or (self.lower,) * (self.upper - self.lower + 1)
        whole = Attribute(self.name, self.values, self.lower, self.upper).lookup()
        assert values

        def place(value: Any) -> tuple[int, bool]:
            found, fits = whole(value)
            return (NO_PLACE if found == NO_PLACE else int(found in self.kept)), fits

        return place


def _condition(one: Where) -> Allowed:
    """A range of whole numbers takes what is between two of them at the nearest, as counts do."""
    kept = frozenset(one.kept)
    if one.values[0].lstrip("-").isdigit() and one.values[-1].lstrip("-").isdigit():
        low, high = int(one.values[0]), int(one.values[-1])
        if list(one.values) == list(map(str, range(low, high + 1))):
            return Allowed(one.column, (), low, high, kept=kept)
    return Allowed(one.column, one.values, kept=kept)


def counts_of(block: Selected, said: Data, data: Mapping[str, Any], circumstances: RunContext) -> list[list[int]]:
    """How many records that count stand at each answer, group by group.

    Raises: DataError PS0801 to PS0809.
    """
    answers: Attribute
    if block.numbers is not None:
        ends = floor(block.numbers[0]), ceil(block.numbers[-1])
        answers = Nearest(block.column, (), *ends, numbers=block.numbers)
    else:
        answers = Attribute(block.column, block.answers)
    groups = [_condition(one) for one in block.by]
    attributes = [*(Attribute(one.name, one.values, one.lower, one.upper) for one in groups), answers]
    attributes += map(_condition, block.where)
    cells = prod(one.size for one in attributes)
    held = InputLayout(block.source, 0, cells, "cells", (), None, None, None, (), block.records, None)
    source = located(block.source, given_for(block.source, data))
    one = Grid(held, Fraction(1), said.rule == "drop", kept=said.kept, derived=said.derived)
    counted = count_cells(one, source, circumstances, attributes)
    whole = counted.reshape([group.size for group in attributes[: len(groups)]] + [block.size, -1])[..., -1]
    for axis, group in enumerate(block.by):
        whole = np.take(whole, group.kept, axis=axis)
    found: list[list[int]] = whole.reshape(block.groups, block.size).tolist()
    if block.records is not None and sum(map(sum, found)) != block.records:
        text = f"the spec says that {block.source} has {block.records:,} records, and the data have a different number"
        refuse("PS0805", text, help="declare it as table(...) if any number of records may come")
    return found


# --- drawing --------------------------------------------------------------------------------------


class SelectionMechanism(BlockMechanism[Executed | Listed, list[list[int]]]):
    """A value of a column, drawn by the scores of all answers."""

    BLOCK = Selected

    @staticmethod
    def content(block: Any, source: Data, data: Mapping[str, Any], circumstances: RunContext) -> list[list[int]]:
        return counts_of(block, source, data, circumstances)

    @property
    def nothing(self) -> list[list[int]]:
        """A table without records, or all of them at the first answer."""
        block = self.executed.block
        return [[block.records or 0, *[0] * (block.size - 1)]] * block.groups

    @cached_property
    def labels(self) -> Labels:
        """The answers, in their order."""
        return Labels.read([self.executed.block.output], list(self.executed.block.answers))


class Counted(BlockSecret[SelectionMechanism, list[list[int]]]):
    """How many records stand at each answer, group by group."""

    @property
    def rules(self) -> tuple[str, ...]:
        if self.strict:
            return (STRICT_RULE,)
        drawn = self.mechanism.executed
        fate = "is left out" if drawn.drops else "counts as the first one, or as one that conditions leave out"
        kept = [f"{drawn.block.source}: {kept_rule(drawn.kept)}"] if drawn.kept else []
        near = f"is read at the nearest value of {drawn.block.output}; one that " if drawn.block.numbers else ""
        return (f"{drawn.block.source}: a record {near}has no such value, or none a condition knows, {fate}", *kept)

    @property
    def size(self) -> int:
        return 1

    def numbers(self, randomness: Randomness) -> NDArray[np.float64]:
        """The answer of each group, words by their place."""
        return np.take(self.mechanism.labels.figures()[:, 0], [draw(randomness) for draw in self.samplers])

    @cached_property
    def samplers(self) -> list[Callable[[Randomness], int]]:
        """What draws the place of an answer, for each group."""
        drawn = self.mechanism.executed
        if isinstance(drawn, Listed):
            tables = tables_of(drawn.block)
            table = drawn.term
            return [RowLaw.of(table.rows[tables.index(tuple(counts))], table.whole).draw for counts in self.content]
        every = (drawn.scores(list(counts)) for counts in self.content)
        lottery = Lottery(BY_NAME[drawn.family], drawn.base)
        return [sampler(lottery, [Fraction(-one) for one in steps]) for steps in every]

    def draw(self, randomness: Randomness) -> Drawn:
        block = self.mechanism.executed.block
        found = self.mechanism.labels.values()[block.output][[draw(randomness) for draw in self.samplers]]
        return Drawn({block.output: np.asarray(found if block.by else found[0])})


SelectionMechanism.SECRET = Counted
