"""A selection as it is run: records are read at the nearest answer, scores are whole steps, and the draw is exact."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privspec.execute.data import Grid, count_cells, located
from privspec.execute.drawing import Labels, RowLaw
from privspec.execute.family import (
    Circumstances,
    Drawn,
    FamilyMechanism,
    Plan,
    Secret,
    Simulation,
    readable_plan,
    refuse_long_simulation,
    refuse_unknown,
)
from privspec.execute.keeper import STRICT_RULE, given_for, refuse
from privspec.execute.people import kept_rule
from privspec.execute.reading import number
from privspec.execute.statistic import NO_PLACE, Attribute
from privspec.families.selection.execution import sampler
from privspec.kernel.core.linear import Held
from privspec.kernel.core.problem import read_frame
from privspec.kernel.core.reading import Item, read
from privspec.kernel.participation import Kept
from privspec.kernel.selection import Drawn as Executed
from privspec.kernel.selection import Listed, Selected, Where, read_drawn, tables_of
from privspec.model.lotteries import lottery_of
from privspec.noise.samplers import Randomness, SimulationRandomness

if TYPE_CHECKING:
    from privspec.model.graph import Model


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


def counts_of(
    block: Selected, data: Mapping[str, Any], circumstances: Circumstances, drops: bool, kept: Kept | None
) -> list[list[int]]:
    """How many records that count stand at each answer, group by group.

    Raises: DataError PS0801 to PS0809.
    """
    refuse_unknown(data, (block.source,))
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
    held = Held(block.source, 0, cells, "cells", (), None, None, None, (), block.records, None)
    source = located(block.source, given_for(block.source, data))
    one = Grid(held, Fraction(1), drops, kept=kept)
    counted = count_cells(one, source, circumstances, attributes)
    whole = counted.reshape([group.size for group in attributes[: len(groups)]] + [block.size, -1])[..., -1]
    for axis, group in enumerate(block.by):
        whole = np.take(whole, group.kept, axis=axis)
    found: list[list[int]] = whole.reshape(block.groups, block.size).tolist()
    if block.records is not None and sum(map(sum, found)) != block.records:
        text = f"the spec says that {block.source} has {block.records:,} records, and the data have another number"
        refuse("PS0805", text, help="declare it as table(...) if any number of records may come")
    return found


def drawn_of_plan(plan: Plan) -> Executed | Listed:
    """What the kernel judges of a plan.

    Raises: UsageError PS0820 if it is none of a selection.
    """
    with readable_plan():
        problem = plan["problem"]
        (block,) = problem["blocks"]
        return read_drawn(
            Item(block, "block"), Item(plan["mechanism"], "mechanism"), read_frame(Item(problem, "problem"))
        )


# --- drawing --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SelectionMechanism(FamilyMechanism):
    """A value of a column, drawn by the scores of all answers."""

    drawn: Executed | Listed

    @classmethod
    def of_plan(cls, plan: Plan) -> SelectionMechanism:
        return cls(drawn_of_plan(plan))

    @staticmethod
    def fit(model: Model, data: Mapping[str, Any], circumstances: Circumstances) -> None:
        from privspec.problem.elaborate import data_of
        from privspec.problem.form import document
        from privspec.problem.selection import block_of

        block = read(Selected, Item(document(block_of(model)), "block"))
        assert isinstance(block, Selected)
        said = data_of(model, model.inputs[0])
        counts_of(block, data, circumstances, said.rule == "drop", said.kept)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.drawn.outputs

    @property
    def labels(self) -> Labels:
        """The answers, in their order."""
        return Labels.read([self.drawn.block.output], list(self.drawn.block.answers))

    def read(self, data: Mapping[str, Any], circumstances: Circumstances) -> Secret:
        """The scores of the data.

        Raises: DataError PS0801 to PS0809.
        """
        counts = counts_of(self.drawn.block, data, circumstances, self.drawn.drops, self.drawn.kept)
        return Counted(self, tuple(map(tuple, counts)), circumstances.strict)

    def simulate(self, asked: Simulation) -> NDArray[np.float64]:
        """Draws at data by input name, by default at a table without records."""
        block = self.drawn.block
        counts = [[block.records or 0, *[0] * (block.size - 1)]] * block.groups
        if asked.data is not None:
            counts = counts_of(self.drawn.block, asked.data, Circumstances(), self.drawn.drops, self.drawn.kept)
        figures = self.labels.figures()
        refuse_long_simulation(asked.repetitions, f"{asked.repetitions} exact draws", "take fewer")
        secret, randomness = Counted(self, tuple(map(tuple, counts)), strict=False), SimulationRandomness(asked.seed)
        draws = secret.samplers()
        places = [[draw(randomness) for draw in draws] for _ in range(asked.repetitions)]
        return np.take(figures[:, 0], places)


@dataclass(frozen=True, eq=False, slots=True)
class Counted(Secret):
    """How many records stand at each answer, group by group."""

    mechanism: SelectionMechanism
    counts: tuple[tuple[int, ...], ...]
    strict: bool

    @property
    def rules(self) -> tuple[str, ...]:
        if self.strict:
            return (STRICT_RULE,)
        drawn = self.mechanism.drawn
        fate = "is left out" if drawn.drops else "counts as the first one, or as one that conditions leave out"
        kept = [f"{drawn.block.source}: {kept_rule(drawn.kept)}"] if drawn.kept else []
        near = f"is read at the nearest value of {drawn.block.output}; one that " if drawn.block.numbers else ""
        return (
            f"{drawn.block.source}: a record {near}has no such value, or none a condition knows, {fate}",
            *kept,
        )

    def samplers(self) -> list[Callable[[Randomness], int]]:
        """What draws the place of an answer, for each group."""
        drawn = self.mechanism.drawn
        if isinstance(drawn, Listed):
            tables = tables_of(drawn.block)
            return [RowLaw.of(drawn.laws[tables.index(counts)], drawn.total).draw for counts in self.counts]
        every = (drawn.scores(list(counts)) for counts in self.counts)
        lottery = lottery_of(drawn.family, drawn.base)
        return [sampler(lottery, [Fraction(-one) for one in steps]) for steps in every]

    def draw(self, randomness: Randomness) -> Drawn:
        values = self.mechanism.labels.values()[self.mechanism.drawn.block.output]
        found = np.asarray(values[[draw(randomness) for draw in self.samplers()]])
        return Drawn(
            {self.mechanism.drawn.block.output: found if self.mechanism.drawn.block.by else np.asarray(found[0])}
        )
