"""Reports of finitely many values, each of one party's own, drawn by itself: of a real number, or of one of k values.

Of a real number a report is drawn by a row of exact probabilities for each cell that the number may lie in. Where it
costs more the farther it is from the number, the order of its values by cost changes only at the middles of two of
them. A mechanism of pure epsilon needs no more cells than these ends make: the bound here is about every mechanism that
sees the number itself (noise/notes/real-cells.md).

How many people hold each of k values: each reports a set of values. The own value is in the set with one exact chance,
the other values of the set are a uniform choice of all others. What is released is the only estimate that is linear in
how many sets hold each value, and unbiased. No unbiased estimate from a report of each person has less error than the
best size of set (noise/notes/local-histograms.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

from privspec.kernel.changes import Anything, Rows
from privspec.kernel.core.linear import Column
from privspec.kernel.core.numbers import LARGEST_LOG, ZERO, exp_up
from privspec.kernel.core.problem import (
    AskedMeasure,
    Bound,
    Frame,
    Guarantee,
    Obligation,
    PlanUnderCheck,
    Rules,
    View,
    read_guarantees,
)
from privspec.kernel.core.reading import (
    Grid,
    JsonNode,
    Positive,
    Refused,
    Size,
    Wholes,
    frozen,
)
from privspec.kernel.core.tables import table_of
from privspec.kernel.laws.subsets import SetOfValues
from privspec.kernel.measures import PURE_MEASURES, Measure
from privspec.kernel.promises import Accuracy, OneOutput, Promise, Question, epsilon_of, judge_promises
from privspec.kernel.tables_forms import means
from privspec.kernel.terms import Pick, Table
from privspec.kernel.worth import LowerBound, PriceableRules, judge_bounded, judge_lines, judge_worth

CELLS_NOTE, SETS_NOTE = "real-cells", "local-histograms"
OF_NUMBERS = ("", "all mechanisms that see the number itself")
AMONG = "all unbiased estimates from one report of each party"
KINDS = ("expected", "worst")
WORDS = {"FrequencyBlock.kind": KINDS}
MOST_VALUES = 1_000_000
MOST_PARTIES = 100_000_000


class ReportRules(Rules):
    """How plans are judged of reports that are each `of` one thing that a party holds, and drawn by itself."""

    of = ""
    by_keeper = True
    """Whether one keeper may make all reports."""

    def view(self, case: PlanUnderCheck, block: Any) -> None:
        """Each report is of one party's own, whoever is trusted with that."""
        held, trust = [(data.name, data.party) for data in case.frame.data], case.frame.trust
        if held != [(block.source, block.party)] or not (trust.means.alone or (self.by_keeper and trust.means.central)):
            raise case.block.wrong("is about other data, or other trust, than the problem")
        case.says("view", True, f"each report is of one {self.of or block.party} alone, under {trust.means.written}")

    def reach(
        self, case: PlanUnderCheck, executed: Any, view: View, outputs: tuple[str, ...], witness: JsonNode
    ) -> Bound:
        """What a report lets through of all that it is about, where that is what may move, whatever is looked at."""
        witness.same(None)
        block, epsilon, (unit,) = executed.block, executed.epsilon(), view.units
        kinds = ("party",) if block.party is not None else ("entry", "record", "everything")
        if (
            epsilon is None
            or unit.adding
            or unit.count > 1
            or unit.kind not in kinds
            or not set(outputs) <= set(executed.outputs)
        ):
            return None
        return {"epsilon": epsilon, "delta": ZERO}


def guarantees_of(
    case: PlanUnderCheck,
    block: Any,
    measures: tuple[Measure, ...],
    each: int = 0,
    outputs: tuple[str, ...] | None = None,
) -> list[Guarantee]:
    """The guarantees; each is of an epsilon, about the report, what it is of, and all of that.

    Args: each, of how many parties a line may have figures of their own; 0 where none may; outputs, all that are made
        of the reports, whoever sees one of which sees these.
    """
    known = (block.output,) if outputs is None else outputs
    found = read_guarantees(case.guarantees, case.frame)
    for one in found:
        asked = one.obligation
        (unit, *more), kind = asked.units, "everything" if block.party is None else "party"
        seen = tuple(name for name in known if name in asked.seen)  # each once, in order
        made = tuple(name for name in seen if name in asked.outputs)
        about = made and (made, seen, (block.source,)) == (asked.outputs, asked.seen, asked.wrt)
        fits = (unit.kind, unit.party, unit.count, unit.adding, unit.apart) == (kind, block.party, 1, False, None)
        own = asked.measure.each
        judged = {one.common for one in own or (asked.measure,)} <= set(measures) and len(own) in {0, each}
        if more or not about or not fits or not judged:
            raise Refused(f"line {asked.line} is about outputs, inputs, units or a measure that are not judged here")
    if not found:
        raise Refused("no line asks for privacy")
    return found


# --- cells of a real number ---------------------------------------------------------------------


@frozen
class CellBlock:
    """`count` numbers between two ends, each with a report, one of `values`; the loss weighs |report - number|^power.

    `ends`: those of the cells, in order. `costs` (cells, values): the mean over the law of the number of what a report
    costs, times the probability of the cell, all times 1 / weight; None where the loss is that at the worst number.
    """

    FORM = "cells"

    source: str
    output: str
    party: str | None
    count: Positive
    shape: tuple[int, ...]
    values: tuple[Fraction, ...]
    ends: tuple[Fraction, ...]
    power: Positive
    weight: Size
    expression: str
    costs: Grid | None

    def __post_init__(self) -> None:
        ordered = all(list(some) == sorted(set(some)) for some in (self.values, self.ends))
        if not ordered or len(self.values) < 2 or len(self.ends) < 2 or not self.weight or self.power > 2:
            raise Refused("has values or cells that are not in order, or an error that is not known")
        known, (low, *_, high) = set(self.ends), self.ends
        middles = ((a + b) / 2 for i, a in enumerate(self.values) for b in self.values[:i])
        if any(low < middle < high and middle not in known for middle in middles):
            raise Refused("has a cell in which one value becomes nearer than another")
        if prod(self.shape) != self.count or (self.count > 1 and self.party is None):
            raise Refused("has numbers that are nobody's")
        wide = [len(row) for row in self.costs.rows] if self.costs is not None else []
        if self.costs is not None and wide != [len(self.values)] * self.cells:
            raise Refused("has costs of other cells or values")

    @property
    def cells(self) -> int:
        return len(self.ends) - 1

    def cell(self, number: Fraction) -> int:
        """Where a number lies; an end belongs to the cell above it."""
        return min(max(sum(end <= number for end in self.ends) - 1, 0), self.cells - 1)

    def errors(self, number: Fraction) -> list[Fraction]:
        """What each value costs at a number, without the weight."""
        return [abs(value - number) ** self.power for value in self.values]


@frozen
class Cells(OneOutput):
    """What is executed: the cell of the number picks a row of the table."""

    FORM = "cells"

    block: CellBlock
    table: Grid
    term: Table = field(init=False)

    def __post_init__(self) -> None:
        if self.table.shape != (self.block.cells, len(self.block.values)):
            raise Refused("has a table of other cells or values")
        object.__setattr__(self, "term", table_of(self.table, self.block.output))

    def loss(self) -> Fraction:
        """By the law of the number, or at the worst one: within a cell it is convex in the number."""
        block = self.block
        if block.costs is not None:
            return block.weight * block.costs.unit * sum(means(self.term, block.costs.rows))
        sides = (map(block.errors, side) for side in (block.ends[:-1], block.ends[1:]))
        return block.weight * max(error for side in sides for error in means(self.term, side))

    @property
    def change(self) -> Rows:
        """A number may move from any cell to any other."""
        return Rows((), (tuple(range(self.block.cells)),))

    def epsilon(self) -> Fraction | None:
        """The logarithm of the largest ratio of two chances of one report, rounded up; None where it has no limit."""
        return epsilon_of(self.term, self.change)


def lower_bound(block: CellBlock, epsilon: Fraction, witness: JsonNode) -> Fraction:
    """What multipliers prove of every mechanism of pure epsilon.

    With least chances m_y every chance is between m_y and R m_y, R = e^epsilon, and the m_y add up to at most one. For
    any multiplier l of "a row adds up to one", a row costs at least l plus the sum over y of m_y times the least of
    (cost - l) u, u from 1 to R.
    """
    rows, ends = witness.fields("rows", "ends")
    multipliers = [Fraction(item.double()) for item in rows.items(block.cells)]
    ratio = exp_up(epsilon)
    if block.costs is not None:
        ends.same(None)
        costs = [[Fraction(entry) * block.costs.unit for entry in row] for row in block.costs.rows]
    else:
        weights = [[Fraction(one.double()) for one in pair.items(2)] for pair in ends.items(block.cells)]
        whole = sum(map(sum, weights))
        if min(map(min, weights)) < 0 or not whole:
            raise ends.wrong("are no weights of numbers")
        errors = [block.errors(number) for number in block.ends]
        costs = [
            [(low * a + high * b) / whole for a, b in zip(errors[cell], errors[cell + 1], strict=True)]
            for cell, (low, high) in enumerate(weights)
        ]
    reduced = [ZERO] * len(block.values)
    for row, multiplier in zip(costs, multipliers, strict=True):
        for y, cost in enumerate(row):
            reduced[y] += (cost - multiplier) * (1 if cost >= multiplier else ratio)
    return block.weight * (sum(multipliers, ZERO) + min(min(reduced), ZERO))


def units_of_cells(block: CellBlock) -> str:
    """The units of the loss."""
    return f"{'squared ' * (block.power == 2)}units of {block.source}"


class CellRules(ReportRules):
    """How plans about finite reports of real numbers are judged."""

    mechanisms = (Cells,)

    of = "number"

    def privacy(self, case: PlanUnderCheck) -> Cells:
        cells: Cells = self.read(case.frame, case.mechanism)
        block = cells.block
        self.view(case, block)
        case.says("law", True, f"{block.cells} rows of {len(block.values)} chances, each of exactly one in all")
        text = "the cell of a number is a function of that number alone: it costs no privacy"
        case.says("rounding", True, f"{text}; within a cell the order of the values by cost never changes")
        promises = [
            Promise(one, (Question(cells.change, one.asked, one.achieved),), (CELLS_NOTE,), "epsilon {:.8g}")
            for one in guarantees_of(case, block, PURE_MEASURES)
        ]
        judge_promises(case, cells.term, promises)
        return cells

    def judge(self, case: PlanUnderCheck) -> Cells:
        cells = self.privacy(case)
        block = cells.block
        (bound,) = case.claims.fields(optional=("bound",))
        strictest = min(one.measure.figures({})["epsilon"] for one in case.frame.obligations)
        derived = None if bound.absent else lower_bound(block, strictest, bound)
        words = [block.expression, units_of_cells(block), "worst" if block.costs is None else "expected"]
        judge_worth(case, cells.loss(), derived, OF_NUMBERS[derived is not None :], "such mechanism", words)
        return cells


# --- sets of values -------------------------------------------------------------------------------


def together(columns: tuple[Column, ...]) -> tuple[str, ...]:
    """The values of a record, one of each column, the last one fastest."""
    if any(column.shared or column.cuts or column.size > MOST_VALUES for column in columns):
        raise Refused("has columns without a list of values")
    every = (one.values or [str((one.lower or 0) + k) for k in range(one.size)] for one in columns)
    return tuple(", ".join(some) for some in product(*every))


@frozen
class FrequencyBlock:
    """As the problem states it: the values that each of `count` parties may hold, and what errors of counts cost.

    Values are `listed`, or the numbers from `lower` on, each `step` above the one before. The output is `scale` times
    the counts (with `columns`, those of a record of each, `listed` has their values together, the last column fastest);
    the loss is `weight` times the sum of its squared errors, 0 where lines alone limit them. With a `group` of values,
    by their places, the output is how many hold one of these, and all that a report is about is whether the value is.
    """

    FORM = "frequencies"

    source: str
    output: str
    party: str
    count: Positive
    values: Positive
    listed: tuple[str, ...]
    lower: Fraction | None
    step: Fraction | None
    group: tuple[int, ...] | None
    scale: Size
    weight: Size
    expression: str
    kind: str
    accuracy: tuple[Accuracy, ...]
    columns: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        if self.columns and self.listed != together(self.columns):
            raise Refused("has values that are not those of its columns together")
        words = self.lower is None and self.step is None and len(set(self.listed)) == len(self.listed) == self.values
        if not words and (self.listed or self.lower is None or self.step is None or self.step <= 0):
            raise Refused("has values that are neither words nor numbers")
        if not 2 <= self.values <= MOST_VALUES or self.count > MOST_PARTIES:
            raise Refused("has one value only, or too many values or parties")
        group = (0,) if self.group is None else self.group
        if list(group) != sorted(set(group)) or not 0 < len(group) < self.values or group[-1] >= self.values:
            raise Refused("counts no values together, or all of them")
        if not self.scale or not all(one.weight for one in self.accuracy) or not (self.weight or self.accuracy):
            raise Refused("weighs errors by nothing")

    @property
    def told(self) -> int:
        """How many values reports tell apart."""
        return self.values if self.group is None else 2

    def value(self, place: int) -> Fraction | str:
        """The value of a place, from 0."""
        return self.listed[place] if self.lower is None or self.step is None else self.lower + place * self.step

    def summed(self, each: Fraction) -> Fraction:
        """The loss, where the counts of all values told apart have this sum of squared errors of one report each.

        Those of a group and of the rest add up to all, so that they err alike.
        """
        return self.weight * self.scale**2 * self.count * each / (1 if self.group is None else 2)


@frozen
class Sets:
    """What so many parties as the block counts send: `subset` values, with the own one among them by this `chance`."""

    block: FrequencyBlock
    subset: int
    chance: Fraction

    @property
    def others(self) -> Fraction:
        """The chance that a set holds one given value other than the own."""
        return (self.subset - self.chance) / (self.block.told - 1)

    @property
    def ratio(self) -> Fraction:
        """By how much a set is likelier at a value that it holds than at one that it does not."""
        return self.chance / (1 - self.chance) * Fraction(self.block.told - self.subset, self.subset)

    def variances(self) -> tuple[Fraction, Fraction]:
        """Of the estimate of one person's share in a count: that of the own value, and that of any other."""
        apart = (self.chance - self.others) ** 2
        return self.chance * (1 - self.chance) / apart, self.others * (1 - self.others) / apart

    def error(self, weight: Fraction) -> Fraction:
        """The expected sum of the squared errors of what is released, times a weight; whatever people hold."""
        own, other = self.variances()
        return replace(self.block, weight=weight).summed(own + (self.block.told - 1) * other)


SetLaw = tuple[int, Fraction]
"""The size of a set, and the chance that it holds the own value."""
READERS = {"SetLaw": {"subset": "Positive", "chance": "Fraction"}}


@frozen
class Frequencies(OneOutput):
    """What is executed: a kind of sets for each epsilon, and `of` each party which of these it sends (None: the one).

    What is released is the sum of the estimates from all kinds.
    """

    FORM = "frequencies"

    block: FrequencyBlock
    sets: tuple[SetLaw, ...]
    of: Wholes | None = None
    kinds: tuple[Sets, ...] = field(init=False)

    def __post_init__(self) -> None:
        block, of = self.block, self.of
        if any(not size < block.told or not Fraction(size, block.told) < chance < 1 for size, chance in self.sets):
            raise Refused("has what is no chance, or none that tells the own value from any other")
        if (of is not None and len(of) != block.count) or {0, *(of or ())} != set(range(len(self.sets))):
            raise Refused("does not say of each party what it sends, or some kind is sent by none")
        sent = [0] * len(self.sets)
        for kind in of or ():
            sent[kind] += 1
        sizes = [block.count] if of is None else sent
        if not all(sizes):
            raise Refused("has a kind that is sent by none")
        kinds = (Sets(replace(block, count=size), *law) for size, law in zip(sizes, self.sets, strict=True))
        object.__setattr__(self, "kinds", tuple(kinds))

    def error(self, weight: Fraction) -> Fraction:
        """The expected sum of the squared errors of what is released, times a weight: reports are independent."""
        return sum((kind.error(weight) for kind in self.kinds), ZERO)

    @property
    def term(self) -> Pick:
        """Reports that all may see."""
        return Pick(self.block.output, SetOfValues(self.block.told, self.sets), public=True)

    def epsilon(self, kind: int | None = None) -> Fraction:
        """That of a kind, or the largest of any party, rounded up."""
        found = epsilon_of(self.term, Anything(kind))
        assert found is not None
        return found


def information(values: int, subset: int, ratio: Fraction) -> Fraction:
    """What a set of `subset` likelier values tells: the part of its column across the ones, squared, by its mean."""
    return values * subset * (values - subset) * (ratio - 1) ** 2 / (subset * ratio + values - subset) ** 2


def best_subset(values: int, ratio: Fraction) -> int:
    """The size of set that tells most: d (k - d) / (k + d (R - 1))^2 grows up to d = k / (R + 1), and then falls."""
    near = min(max(int(values / (ratio + 1)), 1), values - 1)
    return max((near, min(near + 1, values - 1)), key=lambda size: information(values, size, ratio))


def least_of_all(block: FrequencyBlock, limits: list[Fraction]) -> Fraction:
    """The same where each party has an epsilon of its own."""
    counted = dict[Fraction, int]()
    for one in limits:
        counted[one] = counted.get(one, 0) + 1
    return sum((least_loss(replace(block, count=count), one) for one, count in counted.items()), ZERO)


def least_loss(block: FrequencyBlock, epsilon: Fraction) -> Fraction:
    """At most the loss of any unbiased estimate from reports, each epsilon-DP and drawn by one party alone."""
    if epsilon > LARGEST_LOG:
        return ZERO
    k, ratio = block.told, exp_up(epsilon)
    if ratio <= 1:
        raise Refused("asks for reports that tell nothing")
    each = Fraction((k - 1) ** 2) / information(k, best_subset(k, ratio), ratio) - Fraction(k - 1, k)
    return max(block.summed(each), ZERO)


def _limits(asked: AskedMeasure) -> list[Fraction]:
    """The epsilon that a line allows, or those of all parties in order."""
    return [own.figures({})["epsilon"] for own in asked.each or (asked,)]


def _promised(found: Frequencies, one: Guarantee) -> Promise:
    """What a line asks of every report; where each party has a figure of its own, the plan states the largest."""
    limits = _limits(one.obligation.measure)
    if not one.obligation.measure.each:
        question = Question(Anything(), one.asked, one.achieved)
        return Promise(one, (question,), (SETS_NOTE,), "epsilon {:.8g}, the logarithm of the largest ratio of chances")
    pairs = dict.fromkeys(zip(found.of or (0,) * found.block.count, limits, strict=True))
    reached = [float(found.epsilon(kind)) for kind in range(len(found.kinds))]
    questions = tuple(Question(Anything(kind), {"epsilon": limit}, one.achieved) for kind, limit in pairs)
    figure = f"epsilon from {min(reached):.8g} to {max(reached):.8g}, which"
    otherwise = f"{figure} is more than some own figure allows, or another is stated"
    return Promise(one, questions, (SETS_NOTE,), f"{figure} each own figure allows", otherwise=otherwise)


def units_of_counts(block: FrequencyBlock) -> str:
    """The units of the loss."""
    return f"squared {block.party}s" if block.scale == 1 else "squared units of the output"


@frozen
class SetsBound(LowerBound):
    """In closed form, at any epsilon of each party; of a block without a loss, by how much some line is missed."""

    block: FrequencyBlock

    def at(self, lines: tuple[Obligation, ...]) -> Fraction:
        limits = [_limits(one.measure) for one in lines]
        whole = [some * self.block.count if len(some) == 1 else some for some in limits]
        least = [min(own) for own in zip(*whole, strict=True)] if any(len(some) > 1 for some in limits) else None

        def of(weight: Fraction) -> Fraction:
            own = replace(self.block, weight=weight)
            return least_loss(own, min(some[0] for some in limits)) if least is None else least_of_all(own, least)

        if self.block.weight:
            return of(self.block.weight)
        return max(of(one.weight) - one.bound for one in self.block.accuracy)


class FrequencyRules(ReportRules, PriceableRules):
    """How plans about histograms of reports are judged."""

    mechanisms = (Frequencies,)

    by_keeper = False

    claims = ("bound",)

    def privacy(self, case: PlanUnderCheck) -> Frequencies:
        found: Frequencies = self.read(case.frame, case.mechanism)
        block = found.block
        self.view(case, block)
        for kind in found.kinds:
            law = f"sets of {kind.subset} of {block.told} values: the own one with chance {float(kind.chance):.8g}"
            case.says("law", True, f"{law}, all other choices alike; the estimate of every count is unbiased")
        guarantees = guarantees_of(case, block, PURE_MEASURES, block.count)
        judge_promises(case, found.term, [_promised(found, one) for one in guarantees])
        return found

    def judge(self, case: PlanUnderCheck) -> Frequencies:
        case.claims.fields()
        found, loss, words = self.measured(case)
        words[1] = units_of_counts(found.block)
        judge_bounded(case, loss, SetsBound((AMONG,), found.block), "such estimate", words)
        return found

    def measured(self, case: PlanUnderCheck) -> tuple[Frequencies, Fraction, list[str]]:
        """What is executed, its loss, and how that is said; lines of accuracy are judged."""
        found = self.privacy(case)
        block = found.block
        lines = [(one.line, one.text, one.bound, found.error(one.weight)) for one in block.accuracy]
        judge_lines(case, lines, ZERO, stated=True)
        case.fairness.same(None)
        loss = found.error(block.weight) if block.weight else ZERO
        return found, loss, [block.expression, "units of the loss expression", block.kind]

    def free(self, executed: object) -> bool:
        assert isinstance(executed, Frequencies)
        return not executed.block.weight

    def floor(self, executed: object) -> Fraction:
        return ZERO

    def proofs(self, frame: Frame, executed: object, items: JsonNode) -> tuple[Sequence[LowerBound], tuple[str, ...]]:
        """The closed form, which needs no witness."""
        assert isinstance(executed, Frequencies)
        items.same([])
        return (SetsBound((AMONG,), executed.block),), (AMONG,)
