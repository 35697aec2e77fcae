"""A value that is selected by ranks or counts: how far one record moves the scores, and what the draw tells of it.

Every answer has a score, whole steps of a unit from the best one, which is at 0. The exponential mechanism draws in
proportion to base^-score; permute-and-flip goes through the answers in random order and takes each with that chance.
Both are as private as `ratio_up` says, by what one record can do to the scores (noise/notes/scores.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from fractions import Fraction
from itertools import accumulate
from math import ceil, comb, factorial, floor, prod
from typing import Any

from flint import arb, ctx

from privspec.kernel.changes import Records
from privspec.kernel.changes import Rows as Compared
from privspec.kernel.core.numbers import BITS, ZERO, ball, end, exp_up
from privspec.kernel.core.problem import (
    Bound,
    ContributionBound,
    Frame,
    Guarantee,
    Obligation,
    PlanUnderCheck,
    Unit,
    View,
    read_guarantees,
    wrong_person,
)
from privspec.kernel.core.reading import Grid, JsonNode, Positive, Refused, Size, Whole, frozen, read
from privspec.kernel.core.tables import table_of
from privspec.kernel.divergences import Renyi
from privspec.kernel.laws.exponential import FAMILIES, PRECISION, ByScores, Target
from privspec.kernel.laws.several import ByLargest, ByPeeling, ByRankNoise
from privspec.kernel.measures import PURE
from privspec.kernel.promises import Accuracy, OneOutput, Promise, Question, judge_promises
from privspec.kernel.rules import derive
from privspec.kernel.tables_forms import means
from privspec.kernel.terms import Pick, Table
from privspec.kernel.worth import Line, LowerBound, PriceableRules, judge_lines, judge_worth
from privspec.kernel.worth.averages import Averaged, Sought, averaged
from privspec.kernel.worth.duals import ONE, Dual, multiplier

NOTE = "scores"
LISTED = "the mechanisms that this plan lists"
CLASSES = (LISTED, "all mechanisms")
FINEST = 2**64
"""Largest denominator of 1 / base: chances of so many binary places are compared when a plan is run."""
LARGEST_PARTS = 1000
MOST_SHARES = 100
"""Quantiles of one question at most."""
MOST_ENTRIES = 4000
"""Chances of the largest table of laws."""


# --- what the problem asks --------------------------------------------------------------------------------


@frozen
class Ranks:
    """Sought is the value that a share of the records is at most."""

    FORM, ordered, values = "ranks", True, 1

    share: Size

    def __post_init__(self) -> None:
        if self.share > 1 or self.share.denominator > LARGEST_PARTS:
            raise Refused("is no share of the records")


@frozen
class Counts:
    """Sought is the value that the most records have."""

    FORM, ordered, values = "counts", False, 1


@frozen
class Quantiles:
    """Sought are the values that these shares of the records are at most, in order."""

    FORM, ordered = "quantiles", True

    shares: tuple[Size, ...]

    def __post_init__(self) -> None:
        if len(self.each) < 2 or list(self.shares) != sorted(set(self.shares)) or self.values > MOST_SHARES:
            raise Refused("has shares that are not in order, or too many of them")

    @property
    def each(self) -> tuple[Ranks, ...]:
        """They one by one."""
        return tuple(map(Ranks, self.shares))

    @property
    def values(self) -> int:
        return len(self.shares)


@frozen
class Leaders:
    """Sought are so many `values`: those that the most records have, the most frequent one first."""

    FORM, ordered = "leaders", False

    values: Positive


@frozen
class Where:
    """Records count whose column has one of these values."""

    column: str
    values: tuple[str, ...]
    kept: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.kept or list(self.kept) != sorted(set(self.kept)) or self.kept[-1] >= len(self.values):
            raise Refused("keeps values that the column does not have")


@frozen
class Law:
    """For averages alone: `size` records, the chance that one counts, and those of answers, and of groups, then."""

    size: Positive
    counted: Size
    chances: Grid
    groups: tuple[Fraction, ...]


@frozen
class Cost:
    """`weight` times the mean of "ranks" off, of "distance" to a power, of "mismatch": by the law, or at the worst."""

    form: str
    power: Positive
    weight: Size
    worst: bool

    def __post_init__(self) -> None:
        if self.power > 2 or (self.power > 1 and self.form != "distance") or (self.worst and self.form != "ranks"):
            raise Refused("is no cost that is known")


@frozen
class Selected:
    """The block: one of `answers`, of a column of a table; `records` are public where they are given.

    The weight of the cost is 0 where lines of accuracy alone limit errors; such lines are about worst losses. `bounds`:
    a number is read at the least of the answers that it does not exceed, and not at the nearest.
    """

    FORM = "selection"

    source: str
    output: str
    column: str
    answers: tuple[str, ...]
    numbers: tuple[Fraction, ...] | None
    where: tuple[Where, ...]
    by: tuple[Where, ...]
    score: Ranks | Counts | Quantiles | Leaders
    records: Positive | None
    law: Law | None
    cost: Cost
    expression: str
    families: tuple[str, ...]
    accuracy: tuple[Accuracy, ...] = ()
    bounds: bool = False

    def __post_init__(self) -> None:
        if self.bounds and (self.numbers is None or self.law is not None):
            raise Refused("has bounds among words, or by a law")
        if (self.accuracy and not self.cost.worst) or not (self.cost.weight or self.accuracy):
            raise Refused("has lines of accuracy of what is averaged, or weighs errors by nothing")
        if not all(one.weight for one in self.accuracy):
            raise Refused("has lines of accuracy of nothing")
        known = len(set(self.answers)) == len(self.answers) > 1
        known = known and (self.numbers is not None) == self.score.ordered
        if self.numbers is not None:
            known = known and list(self.numbers) == sorted(set(self.numbers)) and len(self.numbers) == len(self.answers)
        if not known or (self.records is not None and (self.where or self.by)) or (self.law is None) != self.cost.worst:
            raise Refused("has answers that are not in order, or a number of records that nobody knows")
        if self.law is not None and len(self.law.groups) != self.groups:
            raise Refused("has a law of other groups")
        if self.law is not None and sum(map(len, self.law.chances.rows)) != len(self.answers):
            raise Refused("has a law of other answers")
        added = ("ranks", "distance") if self.score.ordered else ("ranks",)
        if self.several and (self.by or self.cost.worst or self.cost.form not in added):
            raise Refused("asks for several values by group, at the worst, or by a cost that is not known of them")
        if isinstance(self.score, Leaders) and self.score.values >= self.size:
            raise Refused("asks for as many values as there are, or more")

    @property
    def several(self) -> bool:
        """Whether several values are sought at once."""
        return isinstance(self.score, Quantiles | Leaders)

    @property
    def singly(self) -> tuple[Selected, ...]:
        """Each quantile as a question of its own; the same for what is one."""
        score = self.score
        return tuple(replace(self, score=one) for one in score.each) if isinstance(score, Quantiles) else (self,)

    @property
    def size(self) -> int:
        return len(self.answers)

    @property
    def groups(self) -> int:
        """How many values are drawn, each of its own records."""
        return prod(len(one.kept) for one in self.by)

    def best(self, counts: tuple[int, ...]) -> int:
        """The place of what is sought: the least answer that the share is at most, the first of equals."""
        if not isinstance(self.score, Ranks):
            return counts.index(max(counts))
        rank = max(ceil(self.score.share * sum(counts)), 1)
        return next((i for i in range(self.size) if sum(counts[: i + 1]) >= rank), 0)

    def costs(self, counts: tuple[int, ...]) -> list[Fraction]:
        """What each answer costs at a table of counts, without the weight."""
        if self.cost.form == "ranks":
            target = Target(self.score.share, 0) if isinstance(self.score, Ranks) else None
            unit = 1 if target is None else target.share.denominator
            return [Fraction(one, unit) for one in behind(target, list(counts))]
        best = self.best(counts)
        if self.cost.form == "mismatch":
            return [Fraction(i != best) for i in range(self.size)]
        if self.numbers is None:
            raise Refused("has distances of words")
        return [abs(one - self.numbers[best]) ** self.cost.power for one in self.numbers]

    def weights(self) -> list[Fraction]:
        """The chances of all tables by the law, of records that all count."""
        law = self.law
        if law is None or law.counted != 1 or law.size != self.records:
            raise Refused("has no law of its tables")
        chances = [entry * law.chances.unit for row in law.chances.rows for entry in row]
        whole = factorial(law.size)
        return [
            Fraction(whole, prod(map(factorial, table))) * prod(p**c for p, c in zip(chances, table, strict=True))
            for table in tables_of(self)
        ]

    def sought(self) -> Sought:
        """What thresholds say of means by the law; refused of what has no thresholds, or no law."""
        law, score, numbers = self.law, self.score, self.numbers
        if law is None or numbers is None or not isinstance(score, Ranks):
            raise Refused("has no thresholds, or no law of the data")
        apart = [(numbers[i + 1] - numbers[i]) ** self.cost.power for i in range(self.size - 1)]
        gaps = {"distance": tuple(apart), "mismatch": (Fraction(1),) * len(apart), "ranks": None}[self.cost.form]
        chances, groups = [entry for row in law.chances.rows for entry in row], law.groups
        if min(chances) < 0 or min(groups) < 0 or not sum(chances) or not sum(groups) or law.counted > 1:
            raise Refused("has a law that is none")
        each = tuple(law.counted * one / sum(groups) for one in groups)
        shares = tuple(Fraction(one, sum(chances)) for one in chances)
        return Sought(law.size, score.share, each, shares, gaps, self.cost.form == "distance")


WORDS = {
    "Cost.form": ("ranks", "distance", "mismatch"),
    "Drawn.family": FAMILIES,
    "Peeled.draw": FAMILIES,
}


# --- how far records move scores --------------------------------------------------------------------------


def behind(target: Target | None, counts: list[int]) -> list[int]:
    """The steps that every answer is behind, of how many records stand at each; without a target by counts."""
    if target is None:
        most = max(counts)
        return [most - one for one in counts]
    unit, below, found = target.share.denominator, 0, []
    aim = target.aim(sum(counts)) * unit
    for one in counts:
        found.append(int(max(below * unit - aim, aim - (below + one) * unit, ZERO)))
        below += one
    return found


# --- what an answer costs ---------------------------------------------------------------------------------


def shortfall(family: str, base: Fraction, size: int, steps: int) -> arb:
    """The chance that the best answer is passed over where all others are so many steps behind."""
    y = ball(base) ** -steps
    if family == "exponential":
        return (size - 1) * y / (1 + (size - 1) * y)
    return 1 - (1 - (1 - y) ** size) / (size * y)


def worst_ranks(family: str, base: Fraction, size: int, unit: int) -> Fraction:
    """The largest mean of what the answer drawn is behind, in records, over all scores with a best one.

    All answers but one stand alike at the worst (McKenna & Sheldon 2020, proposition 5). The chance falls with the
    steps, so that between two numbers of steps no mean is above the later one times the chance at the earlier one, and
    no mean is above steps k base^-steps, which falls from 1 / log base on.
    """
    if base == 1:
        raise Refused("draws every answer alike: its worst loss has no limit")
    with ctx.workprec(PRECISION):
        top, best = 1, arb(0)
        while True:
            here = top * shortfall(family, base, size, top)
            best = best if best > here else here
            if top * ball(base).log() >= 1 and top * size * ball(base) ** -top < best:
                break
            top *= 2
        waiting = [(0, 1), *((2**i, 2 ** (i + 1)) for i in range(top.bit_length() - 1))]
        while waiting:
            low, high = waiting.pop()
            if high - low <= 1 or high * shortfall(family, base, size, low) <= best:
                continue
            middle = (low + high) // 2
            here = middle * shortfall(family, base, size, middle)
            best = best if best > here else here
            waiting += [(low, middle), (middle, high)]
        return end(best.upper()) / unit


def least_ranks(block: Selected, unit: Unit, most: int, epsilon: Fraction, far: Fraction) -> Fraction:
    """What no mechanism of pure epsilon is below at the worst: data of which each has an answer of its own.

    Beside its own answer every other is at least `far` records off. From one to the next w records are replaced, `most`
    a step, or go and come, two steps (note, section 5). If every one draws its own with chance p at least, those of
    the others add up: p (1 + (k - 1) e^-distance epsilon) <= 1, and k p <= e^(w epsilon) where w records come to one
    data set that is common to all.
    """
    many, size = block.records, block.size
    if isinstance(block.score, Ranks):
        share = block.score.share
        if many is None:
            moved = 2 * ceil(far)
        else:
            below = floor(share * many - far)
            moved = ceil(share * many + far) - below
            if below < 0 or below + moved > many:
                return ZERO
        if share in (0, 1):
            return ZERO
    else:
        moved = ceil(far)
        if many is not None and (moved > many or (many - moved) % size):
            return ZERO
    reached = -(-moved // most)
    with ctx.workprec(PRECISION):
        own = 1 / (1 + (size - 1) * (-ball(epsilon) * reached * (2 if unit.adding else 1)).exp())
        if unit.adding:
            other = (ball(epsilon) * reached).exp() / size
            own = own if own < other else other
        return max(end((ball(far) * (1 - own)).lower()), ZERO)


# --- plans ------------------------------------------------------------------------------------------------


class ByChances(OneOutput):
    """What is executed where every step of a score has the chance 1 / base."""

    __slots__ = ()
    GIVEN = "block", "drops", "kept"
    base: Fraction
    law: Any
    kept: ContributionBound | None

    def check(self) -> None:
        if self.base < 1 or self.base.numerator > FINEST:
            raise Refused("has chances that grow with every step, or more binary places than are drawn")

    @property
    def term(self) -> Pick:
        """The answer, as it is drawn."""
        return Pick(self.block.output, self.law)

    @property
    def words(self) -> str:
        return f"each step has the chance {1 / self.base}"

    def change(self, unit: Unit) -> Records:
        """What one unit changes: of a person no more records in one answer than are kept of them in one cell."""
        found = changed(unit, self.block.records)
        most = None if self.kept is None or unit.kind == "everything" else self.kept.per_cell
        return found if most is None else replace(found, each=most)


@frozen
class Drawn(ByChances):
    """A draw by the scores.

    `handicap`: steps that every answer is behind whatever the data are, none where it is empty.
    """

    block: Selected
    family: str
    base: Fraction
    target: Target | None = None
    handicap: tuple[int, ...] = ()
    drops: bool = False
    kept: ContributionBound | None = None

    def __post_init__(self) -> None:
        self.check()
        target = self.target
        if self.block.several:
            raise Refused("draws one value where several are asked for")
        if (target is None) == self.block.score.ordered:
            raise Refused("has a target that is not what such scores are about")
        if target is not None and target.share.denominator > LARGEST_PARTS:
            raise Refused("has a target of more parts than are drawn")
        if self.handicap and len(self.handicap) != self.block.size:
            raise Refused("has a handicap that is of other answers")

    @property
    def rule(self) -> str:
        """The family of the options that it is of."""
        return self.family

    def scores(self, counts: list[int]) -> list[int]:
        """The steps of every answer, of how many records stand at each, and those that it always has."""
        own = behind(self.target, counts)
        return [a + b for a, b in zip(own, self.handicap, strict=True)] if self.handicap else own

    @property
    def off(self) -> Fraction:
        """The largest mean of the records that answers are behind, over all data, added up over the groups."""
        unit = 1 if self.target is None else self.target.share.denominator
        return self.block.groups * worst_ranks(self.family, self.base, self.block.size, unit)

    @property
    def law(self) -> ByScores:
        """What is drawn, as the rules know it."""
        block = self.block
        grouped, handicapped = bool(block.by), bool(self.handicap)
        return ByScores(self.family, self.base, block.size, self.target, block.records, grouped, handicapped)


@frozen
class Jointly(ByChances):
    """Quantiles drawn together, by the largest of their scores, each times its weight; then put in order."""

    FORM, family, rule = "joint", "joint", "exponential"

    block: Selected
    base: Fraction
    weights: tuple[Positive, ...]
    drops: bool = False
    kept: ContributionBound | None = None

    def __post_init__(self) -> None:
        self.check()
        if len(self.weights) != len(self.targets):
            raise Refused("has weights of other quantiles")

    @property
    def targets(self) -> tuple[Target, ...]:
        score = self.block.score
        if not isinstance(score, Quantiles):
            raise Refused("draws quantiles where none are asked for")
        return tuple(Target(share, 0) for share in score.shares)

    def scores(self, counts: list[int]) -> list[list[int]]:
        """For each quantile the steps of every answer."""
        each = zip(self.targets, self.weights, strict=True)
        return [[weight * one for one in behind(target, counts)] for target, weight in each]

    @property
    def law(self) -> ByLargest:
        return ByLargest(self.base, self.targets, self.weights, self.block.records)


@frozen
class AtRanks(ByChances):
    """Quantiles of a public number of records at ranks that are off by one noise; then put in order.

    Thresholds stand so many records from what is sought, from the one above the `middle` answer on: answers count as
    `filled` records at least. `jitter`: 1 over the chance of a step of what moves all thresholds of one quantile.
    """

    FORM = family = rule = "rank_noise"

    block: Selected
    base: Fraction
    jitter: Fraction
    filled: Positive
    middle: Whole
    drops: bool = False
    kept: ContributionBound | None = None

    def __post_init__(self) -> None:
        self.check()
        block = self.block
        if not isinstance(block.score, Ranks | Quantiles) or block.by or block.cost.worst or block.records is None:
            raise Refused("is at ranks where none are sought, of groups, at the worst, or of a number that is a secret")
        if self.jitter.numerator > FINEST or not 0 <= self.middle < block.size - 1:
            raise Refused("has a middle that is no answer, or jitters of more binary places than are drawn")

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """Those of the quantiles."""
        score = self.block.score
        return score.shares if isinstance(score, Quantiles) else (score.share,) if isinstance(score, Ranks) else ()

    def thresholds(self, counts: list[int]) -> list[list[int]]:
        """For each quantile how far each threshold is from it: above 0 where it is at or below the threshold."""
        upto = list(accumulate(max(one, self.filled) for one in counts))
        start, many = sum(counts[: self.middle + 1]) - upto[self.middle] + 1, sum(counts)
        aims = [start - max(ceil(share * many), 1) for share in self.shares]
        return [[aim + one for one in upto[:-1]] for aim in aims]

    @property
    def law(self) -> ByRankNoise:
        return ByRankNoise(self.base, self.jitter, self.filled, len(self.shares), self.block.records or 0)


@frozen
class Peeled(ByChances):
    """The most frequent values one after another, each drawn by counts among those that are left."""

    FORM = family = "peeling"

    block: Selected
    base: Fraction
    draw: str
    drops: bool = False
    kept: ContributionBound | None = None

    def __post_init__(self) -> None:
        self.check()
        if not isinstance(self.block.score, Leaders):
            raise Refused("draws the most frequent values where they are not asked for")

    @property
    def rule(self) -> str:
        """The family of the options that each draw is of."""
        return self.draw

    @property
    def law(self) -> ByPeeling:
        return ByPeeling(self.draw, self.base, self.block.size, self.block.score.values)


def changed(unit: Unit, records: int | None) -> Records:
    """The records that a unit changes; refused where everything may, and nobody says how many there are."""
    if unit.kind == "everything":
        if records is None:
            raise Refused("everything may change, and nobody says how many records there are")
        return Records(records, unit.adding, records)
    return Records(unit.count, unit.adding, unit.count)


@frozen
class Listed(OneOutput):
    """What is executed: the law of the answers at every table of counts; these are as in `tables_of`."""

    FORM = family = rule = "table"
    GIVEN = "block", "drops"

    block: Selected
    table: Grid
    drops: bool = False
    term: Table = field(init=False)

    def __post_init__(self) -> None:
        if self.table.shape != (len(tables_of(self.block)), self.block.size):
            raise Refused("has laws of other tables or answers")
        object.__setattr__(self, "term", table_of(self.table, self.block.output))

    @property
    def words(self) -> str:
        return f"{len(self.term.rows)} laws"

    @property
    def kept(self) -> None:
        """All records count: how many there are is public."""

    def change(self, unit: Unit) -> Compared:
        """The tables that one unit leads to from each other, so many records at once."""
        tables = tables_of(self.block)
        if unit.kind == "everything":
            return Compared((), (tuple(range(len(tables))),))
        if unit.count == 1:
            at = {table: i for i, table in enumerate(tables)}
            return Compared(tuple((i, at[other]) for table, i in at.items() for other in beside(table)))
        pairs = ((i, j) for i in range(len(tables)) for j in range(i))
        return Compared(tuple((i, j) for i, j in pairs if apart(tables[i], tables[j]) <= unit.count))

    def loss(self) -> Fraction:
        """By the law of the records, or at the worst table."""
        found = means(self.term, map(self.block.costs, tables_of(self.block)))
        if self.block.cost.worst:
            return self.block.cost.weight * max(found)
        weights = self.block.weights()
        return self.block.cost.weight * sum((w * mean for w, mean in zip(weights, found, strict=True)), ZERO)


def tables_of(block: Selected) -> list[tuple[int, ...]]:
    """Every table of counts of the answers, of so many records as everybody knows; refused where there are too many."""
    many, size = block.records, block.size
    if many is None or block.several or comb(many + size - 1, size - 1) * size > MOST_ENTRIES:
        raise Refused("has tables that are too many to list")
    found: list[tuple[int, ...]] = [()]
    for place in range(size):
        last = place == size - 1
        found = [(*one, more) for one in found for more in ((many - sum(one),) if last else range(many - sum(one) + 1))]
    return found


def beside(table: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The tables in which one record has another answer."""
    found = []
    for i, here in enumerate(table):
        for j in range(len(table)) if here else ():
            if i != j:
                moved = list(table)
                moved[i], moved[j] = here - 1, table[j] + 1
                found.append(tuple(moved))
    return found


def apart(table: tuple[int, ...], other: tuple[int, ...]) -> int:
    """How many records have other answers."""
    return sum(max(a - b, 0) for a, b in zip(table, other, strict=True))


@frozen
class Multipliers:
    """For a table, one beside it and an answer, that of "at most e^epsilon times as likely"; `shares` of tables."""

    block: Selected
    pairs: tuple[tuple[int, int, int, int], ...]
    shares: tuple[Fraction, ...]

    def dual(self, epsilon: Fraction) -> Dual:
        """What they leave of costs of mechanisms that a record replaced changes by at most e^epsilon."""
        found, ratio = Dual(len(self.shares), self.block.size), int(exp_up(epsilon) * 2**BITS)
        for row, (share, table) in enumerate(zip(self.shares, tables_of(self.block), strict=True)):
            scale = share * self.block.cost.weight * ONE
            found.reduced[row] = [floor(cost * scale) for cost in self.block.costs(table)]
        for i, j, answer, size in self.pairs:
            found.compare({i: Fraction(1)}, {j: Fraction(1)}, ratio, [answer], size)
        return found

    def at(self, epsilon: Fraction) -> Fraction:
        """At most the loss of such mechanisms."""
        return self.dual(epsilon).value()


def of_tables(block: Selected, witness: JsonNode) -> Multipliers:
    """What no mechanism is below that a record replaced changes by at most e^epsilon, by multipliers (note, section 6).

    `pairs`: a table, one beside it, an answer, and the multiplier of "no more than e^epsilon times as likely";
    `weights`: of the tables, where the loss is that at the worst one.
    """
    tables = tables_of(block)
    many = len(tables)
    pairs, weights = witness.fields("pairs", "weights")
    if block.cost.worst:
        given = [Fraction(one.double()) for one in weights.items(many)]
        if min(given) < 0 or not sum(given):
            raise weights.wrong("are no weights of tables")
        shares = [one / sum(given) for one in given]
    else:
        weights.same(None)
        shares = block.weights()
    found = list[tuple[int, int, int, int]]()
    for pair in pairs.items():
        one, other, answer, size = pair.items(4)
        i, j, r = one.integer(0, many - 1), other.integer(0, many - 1), answer.integer(0, block.size - 1)
        if size.double() < 0 or apart(tables[i], tables[j]) != 1:
            raise pair.wrong("is about tables that are no neighbours, or has a multiplier below 0")
        found.append((i, j, r, multiplier(size.double() * float(block.cost.weight))))
    return Multipliers(block, tuple(found), tuple(shares))


@frozen
class Each:
    """What bounds each of several values, whose costs add up."""

    parts: tuple[Averaged, ...]


Witness = Fraction | Averaged | Multipliers | Each
"""What bounds losses at every epsilon: records that data are apart, thresholds, or multipliers of tables."""


def read_witness(block: Selected, item: JsonNode) -> Witness:
    """As the loss asks for it: of listed tables, of a worst loss in ranks, or of a mean by the law."""
    if block.several:
        (each,) = item.fields("each")
        parts = zip(block.singly, each.items(len(block.singly)), strict=True)
        return Each(tuple(averaged(one.sought(), block.cost.weight, own) for one, own in parts))
    if "pairs" in dict(item.entries()):
        return of_tables(block, item)
    if block.cost.worst:
        (far,) = item.fields("records")
        return far.exact(0)
    return averaged(block.sought(), block.cost.weight, item)


def least(block: Selected, lines: tuple[Obligation, ...], kept: ContributionBound | None, witness: Witness) -> Fraction:
    """What no mechanism is below under lines of pure epsilon; refused where there is none that it is about.

    Of one person who moves from one answer to another only so many records as are `kept` in one cell.
    """
    if isinstance(witness, Each):
        return sum((least(block, lines, kept, one) for one in witness.parts), ZERO)
    found = []
    for line in lines:
        (unit,), epsilon = line.units, line.measure.figures({}).get("epsilon", ZERO)
        if line.measure.common is not PURE:
            continue
        if isinstance(witness, Fraction):
            most = (kept and kept.per_cell) or unit.count
            found.append(block.cost.weight * block.groups * least_ranks(block, unit, most, epsilon, witness))
        elif isinstance(witness, Averaged) and unit.kind in ("record", "everything"):
            found.append(witness.at(epsilon, unit.count, 2 if unit.adding else 1))
        elif isinstance(witness, Multipliers) and unit.kind == "record" and not unit.adding:
            found.append(witness.at(epsilon))
    if not found:
        raise Refused("has a bound that is about no line")
    return max(found)


@frozen
class OfSelection(LowerBound):
    """By a witness, at any amounts; of a block without a loss, by how much some line of accuracy is missed."""

    block: Selected
    kept: ContributionBound | None
    witness: Witness

    def at(self, lines: tuple[Obligation, ...]) -> Fraction:
        block = self.block
        if block.cost.weight:
            return least(block, lines, self.kept, self.witness)
        costs = ((replace(block.cost, weight=one.weight), one.bound) for one in block.accuracy)
        return max(least(replace(block, cost=own), lines, self.kept, self.witness) - bound for own, bound in costs)


def _units(frame: Frame, block: Selected, item: JsonNode) -> None:
    """One table that one keeper holds, one output, one unit a line: a record, several, or all of them."""
    lines, units = frame.obligations, [unit for one in frame.obligations for unit in one.units]
    about = {((block.output,), (block.output,), (block.source,))}
    kinds, coming = {unit.kind for unit in units}, [unit.adding for unit in units]
    held = [(data.name, data.party) for data in frame.data] == [(block.source, None)]
    single = all(unit.apart is None for unit in units) and len(units) == len(lines)
    every = any(unit.adding and unit.kind == "everything" for unit in units)
    people = wrong_person(units[:1], [frame.data[0].kept]) if held and units else ""
    people = people or ("is about people, and about records" if "person" in kinds and len(kinds) > 1 else "")
    for text, holds in (
        ("does not read just the one input of the problem", held),
        ("gives an output that its lines are not about", {(one.outputs, one.seen, one.wrt) for one in lines} == about),
        ("has a line about a different unit from records", kinds <= {"record", "person", "everything"} and not every),
        ("has a line about records apart, or several units", single),
        (people, not people),
        ("keeps another number of records than a line says", len({u.count for u in units if u.kind == "person"}) < 2),
        ("makes a number of records public that is a secret", block.records is None or not any(coming)),
        ("leaves records out where their number may not change", (frame.data[0].rule == "drop") == all(coming)),
        ("is under a trust that is not known here", frame.trust.means.central),
    ):
        if not holds:
            raise item.wrong(text)
    if "person" in kinds and block.records is not None:
        raise item.wrong("makes a number of records public, of which some are not kept")


Executed = Drawn | Listed | Jointly | Peeled | AtRanks


class SelectionRules(PriceableRules):
    """Plans that select values of a column."""

    claims = ("bound",)

    def read(self, frame: Frame, mechanism: JsonNode) -> Executed:
        (block,), data = frame.blocks, frame.data[0]
        found, drops = read(Selected, block), data.rule == "drop"
        _units(frame, found, block)
        form = mechanism.form(*FAMILIES, *(kind.FORM for kind in (Listed, Jointly, Peeled, AtRanks)), tag=Listed.TAG)
        if form == Listed.FORM:
            return read(Listed, mechanism, block=found, drops=drops)
        kind = {Jointly.FORM: Jointly, Peeled.FORM: Peeled, AtRanks.FORM: AtRanks}.get(form, Drawn)
        drawn: Executed = read(kind, mechanism, block=found, drops=drops, kept=data.kept)
        return drawn

    def privacy(self, case: PlanUnderCheck) -> Executed:
        drawn = self.read(case.frame, case.mechanism)
        block = drawn.block
        each = f", for each of {block.groups} groups" if block.by else ""
        each += f", {block.score.values} times" if block.several else ""
        case.says("view", True, f"{block.output} alone is seen, one of {block.size} values{each}")
        allowed = not block.families or drawn.rule in block.families
        case.says("law", allowed, f"{drawn.family}: {drawn.words}")
        guarantees = read_guarantees(case.guarantees, case.frame)
        judge_promises(case, drawn.term, [_promise(drawn, one) for one in guarantees])
        return drawn

    def judge(self, case: PlanUnderCheck) -> Executed:
        drawn = self.privacy(case)
        block, (witness,) = drawn.block, case.claims.fields(optional=("bound",))
        lines, kept = case.frame.obligations, case.frame.data[0].kept
        derived = None if witness.absent else least(block, lines, kept, read_witness(block, witness))
        value = self._loss(case, drawn)
        exactly = isinstance(drawn, Listed) or not block.cost.worst
        classes = (CLASSES[derived is not None],) if exactly else CLASSES[derived is not None :]
        judge_worth(case, value, derived, classes, "mechanism", self._words(block), self._lines(drawn))
        return drawn

    @staticmethod
    def _words(block: Selected) -> list[str]:
        return [block.expression, units_of(block), "worst" if block.cost.worst else "expected"]

    def _loss(self, case: PlanUnderCheck, drawn: Executed) -> Fraction | None:
        """A worst loss in ranks is derived, and any of a table; a mean over data that are not listed is tested only."""
        if isinstance(drawn, Listed):
            return drawn.loss()
        if not drawn.block.cost.worst or not isinstance(drawn, Drawn):
            return None
        block, target = drawn.block, drawn.target
        aside = target is not None and isinstance(block.score, Ranks) and target != Target(block.score.share, 0)
        if aside or drawn.handicap:
            raise case.mechanism.wrong("aims beside what is sought, and its worst loss is not known")
        return block.cost.weight * drawn.off

    @staticmethod
    def _lines(drawn: Executed) -> list[Line]:
        """Lines of accuracy with what is reached."""
        lines = drawn.block.accuracy
        if lines and not isinstance(drawn, Drawn):
            raise Refused("has lines of accuracy, and is a table of laws")
        return [(one.line, one.text, one.bound, one.weight * drawn.off) for one in lines if isinstance(drawn, Drawn)]

    def measured(self, case: PlanUnderCheck) -> tuple[object, Fraction, list[str]]:
        """What is executed, its loss, and how that is said; lines of accuracy are judged."""
        drawn = self.privacy(case)
        loss = self._loss(case, drawn)
        if loss is None:
            raise case.problem.wrong("adds a price to a loss that is not derived")
        judge_lines(case, self._lines(drawn), ZERO, stated=True)
        case.fairness.same(None)
        expression, _, kind = self._words(drawn.block)
        return drawn, loss, [expression, "units of the loss expression", kind]

    def free(self, executed: Executed) -> bool:
        return not executed.block.cost.weight

    def floor(self, executed: Executed) -> Fraction:
        return ZERO

    def proofs(self, frame: Frame, executed: Executed, items: JsonNode) -> tuple[Sequence[LowerBound], tuple[str, ...]]:
        """By one witness each."""
        block, kept = executed.block, frame.data[0].kept
        made = [OfSelection(CLASSES[1:], block, kept, read_witness(block, item)) for item in items.items()]
        return made, CLASSES[1:]

    def reach(
        self, case: PlanUnderCheck, executed: Executed, view: View, outputs: tuple[str, ...], witness: JsonNode
    ) -> Bound:
        witness.same(None)
        (unit,) = view.units
        person = "person" if executed.kept else "record"
        if unit.kind not in (person, "everything") or unit.apart is not None or outputs != executed.outputs:
            return None
        return {"epsilon": epsilon_of_unit(executed, unit), "delta": ZERO}


def _promise(drawn: Executed, one: Guarantee) -> Promise:
    """What a line promises; a range of log ratios says more of a Rényi divergence than the epsilon that is stated."""
    (unit,), measure = one.obligation.units, one.obligation.measure
    if measure.each or not measure.of.of_laws:
        raise Refused(f"{measure.name} is asked for, which a selection is not judged by")
    ranged = not isinstance(drawn, Listed) and isinstance(measure.of.condition(one.asked), Renyi)
    question = Question(drawn.change(unit), one.asked, one.achieved)
    words = f"{measure.name}: no chance changes by more than e^{{:.8g}} ({NOTE})"
    return Promise(one, (question,), (NOTE,), words, by_loss=ranged)


def epsilon_of_unit(drawn: Executed, unit: Unit) -> Fraction:
    """The logarithm of the largest ratio of chances beside what one unit changes; refused where it has no limit."""
    return derive(drawn.term, drawn.term.outputs, drawn.change(unit)).loss.figure("epsilon")


def keeps(drawn: Executed, line: Obligation) -> bool:
    """Whether what is drawn lets through no more than a line asks for."""
    (unit,), measure = line.units, line.measure
    loss = derive(drawn.term, drawn.term.outputs, drawn.change(unit)).loss
    condition = measure.of.condition(measure.figures({}))
    return measure.of.of_laws and not measure.each and loss.satisfies(condition)


def units_of(block: Selected) -> str:
    """The units of the loss."""
    if block.cost.form == "distance":
        return f"{'squared ' * (block.cost.power == 2)}units of {block.column}"
    return "records" if block.cost.form == "ranks" else "units of the loss expression"
