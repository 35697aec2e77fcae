"""A selection as it is run: records are read at the nearest answer, scores are whole steps, and the draw is exact."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, prod
from typing import Any, ClassVar

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.execute.data import Grid, count_cells, kept_rule, located
from privspec.execute.drawing import Labels, RowLaw
from privspec.execute.family import BlockMechanism, BlockSecret, Drawn, RunContext
from privspec.execute.keeper import STRICT_RULE, given_for, refuse
from privspec.execute.reading import number
from privspec.execute.statistic import NO_PLACE, Attribute
from privspec.families.selection.one_noise import OneNoise
from privspec.families.voting.execution import sampler
from privspec.kernel.core.linear import InputLayout
from privspec.kernel.core.numbers import ball
from privspec.kernel.core.problem import Data
from privspec.kernel.laws.voting import BY_NAME
from privspec.kernel.selection import AtRanks, Executed, Jointly, Listed, Peeled, Selected, Where, tables_of
from privspec.kernel.selection import Drawn as DrawnOnce
from privspec.model.voting import Lottery
from privspec.noise.samplers import Randomness

# --- reading --------------------------------------------------------------------------------------


ANYTHING = 2**53
"""No number of a column is below its negative."""


@dataclass(frozen=True, slots=True)
class Nearest(Attribute):
    """Numbers are read at the nearest of some ascending ones, the higher of two that are as near.

    `bounds`: at the least of them that they do not exceed, or the largest.
    """

    numbers: tuple[Fraction, ...] = ()
    bounds: bool = False
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
            if self.bounds:
                return bisect_left(self.numbers, exact, hi=len(middles)), exact <= self.numbers[-1]
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
        # what a bound is asked for is not below it by mistake
        ends = -ANYTHING if block.bounds else floor(block.numbers[0]), ceil(block.numbers[-1])
        answers = Nearest(block.column, (), *ends, numbers=block.numbers, bounds=block.bounds)
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


@dataclass(frozen=True, slots=True)
class JointDraw:
    """An answer for each of several scores, in proportion to base^-(the largest score), exactly.

    base^-s is the sum of the differences of its powers at the levels from s on. So a level is drawn first, by its
    difference times the number of choices whose scores reach it at most, and then each answer among those, uniformly.
    `orders`: answers by their scores; `levels`: the scores that occur; `within`: how many answers are up to each.
    """

    base: Fraction
    orders: tuple[tuple[int, ...], ...]
    levels: tuple[int, ...]
    within: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(base: Fraction, scores: list[list[int]]) -> JointDraw:
        orders = tuple(tuple(sorted(range(len(own)), key=own.__getitem__)) for own in scores)
        least = max(map(min, scores))
        levels = tuple(sorted({one for own in scores for one in own if one >= least}))
        ranked = [sorted(own) for own in scores]
        return JointDraw(base, orders, levels, tuple(tuple(bisect_right(own, t) for own in ranked) for t in levels))

    def draw(self, randomness: Randomness) -> list[int]:
        """Uniform digits are compared with sums in balls, as many as it takes to tell: the chances are exact."""
        bits, digits = FIRST_DIGITS, randomness.bits(FIRST_DIGITS)
        while (level := self._level(digits, bits)) is None:
            digits, bits = digits << bits | randomness.bits(bits), 2 * bits
        return [order[randomness.below(many)] for order, many in zip(self.orders, self.within[level], strict=True)]

    def _level(self, digits: int, bits: int) -> int | None:
        """The level that a uniform number with these first digits falls to; None where they do not tell."""
        with ctx.workprec(2 * bits):
            step, total, sums = 1 / ball(self.base), arb(0), []
            powers = [step ** (t - self.levels[0]) for t in self.levels]
            for i, power in enumerate(powers):
                rest = power - powers[i + 1] if i + 1 < len(powers) else power
                total += rest * prod(self.within[i])
                sums.append(total)
            low, high = total * digits / 2**bits, total * (digits + 1) / 2**bits
            place = next(i for i, one in enumerate(sums) if not one <= low)
            above = place + 1 == len(sums) or sums[place] >= high
            return place if above else None


FIRST_DIGITS = 128


def peel(drawn: Peeled, counts: list[int], randomness: Randomness) -> list[int]:
    """The places of the values that are drawn, one after another among those that are left."""
    left, found = list(range(len(counts))), list[int]()
    for _ in range(drawn.block.score.values):
        if len(left) == 1:
            return [*found, *left]
        draw = sampler(Lottery(BY_NAME[drawn.draw], drawn.base), [Fraction(counts[place]) for place in left])
        found.append(left.pop(draw(randomness)))
    return found


class SelectionMechanism(BlockMechanism[Executed, list[list[int]]]):
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
        at = "least value that it does not exceed" if drawn.block.bounds else "nearest value"
        near = f"is read at the {at} of {drawn.block.output}; one that " if drawn.block.numbers else ""
        return (f"{drawn.block.source}: a record {near}has no such value, or none a condition knows, {fate}", *kept)

    @property
    def size(self) -> int:
        return 1

    def numbers(self, randomness: Randomness) -> NDArray[np.float64]:
        """The answer of each group, or all that are asked for, words by their place."""
        return np.take(self.mechanism.labels.figures()[:, 0], self.places(randomness))

    def places(self, randomness: Randomness) -> list[int]:
        """The places of answers, one after another."""
        drawn = self.mechanism.executed
        if isinstance(drawn, Jointly | AtRanks):
            return sorted(self.joint.draw(randomness))
        if isinstance(drawn, Peeled):
            return peel(drawn, self.content[0], randomness)
        return [draw(randomness) for draw in self.samplers]

    @cached_property
    def joint(self) -> JointDraw | OneNoise:
        """What draws all quantiles at once."""
        drawn = self.mechanism.executed
        if isinstance(drawn, AtRanks):
            return OneNoise(drawn.base, drawn.jitter, tuple(map(tuple, drawn.thresholds(self.content[0]))))
        assert isinstance(drawn, Jointly)
        return JointDraw.of(drawn.base, drawn.scores(self.content[0]))

    @cached_property
    def samplers(self) -> list[Callable[[Randomness], int]]:
        """What draws the place of an answer, for each group."""
        drawn = self.mechanism.executed
        assert isinstance(drawn, DrawnOnce | Listed)
        if isinstance(drawn, Listed):
            tables = tables_of(drawn.block)
            table = drawn.term
            return [RowLaw.of(table.rows[tables.index(tuple(counts))], table.whole).draw for counts in self.content]
        every = (drawn.scores(list(counts)) for counts in self.content)
        lottery = Lottery(BY_NAME[drawn.family], drawn.base)
        return [sampler(lottery, [Fraction(-one) for one in steps]) for steps in every]

    def draw(self, randomness: Randomness) -> Drawn:
        block = self.mechanism.executed.block
        found = self.mechanism.labels.values()[block.output][self.places(randomness)]
        return Drawn({block.output: np.asarray(found if block.by or block.several else found[0])})


SelectionMechanism.SECRET = Counted
