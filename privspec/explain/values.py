"""Values that are drawn, or made noisy, one by one: what they are, how far off they are, and what they hide.

Of real points: their noise, and what distances hide. Finite reports of a real number: what each cell of the number
draws. Histograms of what parties hold: which sets they report, and how far the estimated counts are off. Sums of what
parties hold: how far they are off. Counts of
unknown keys: which are listed, and how far their counts may be off. Selections: which value is drawn, and by what rule.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from itertools import pairwise
from math import prod, sqrt
from typing import TYPE_CHECKING, Any, TypeAlias

import scipy

from privspec.core.records import dataclass, replace
from privspec.explain.claims import (
    Claim,
    Question,
    how_near,
    of_report,
    round_distances,
    took_part,
    which_answer,
)
from privspec.explain.context import REPORTED, Effects
from privspec.explain.curves import EpsilonDeltaCurve
from privspec.explain.document import Accuracy, Block, SpecLine
from privspec.explain.facts import MechanismFact
from privspec.explain.messages import phrase, phrases, tabled
from privspec.explain.quantities import UP, Quantity, count, exact, percent, rounded
from privspec.kernel.keys import Added, KeyBlock
from privspec.kernel.laws.knorm import root_up
from privspec.kernel.means import Listed, MeanBlock, Means
from privspec.kernel.points import NORM_OF, PointBlock, Points
from privspec.kernel.reports import CellBlock, FrequencyBlock, Sets
from privspec.kernel.selection import AtRanks, Drawn, Jointly, Peeled, Quantiles, Ranks, Selected, Where
from privspec.model.reports import listing
from privspec.problem.fitting import Done
from privspec.stated import Stated

if TYPE_CHECKING:
    from privspec.explain.context import Context
    from privspec.explain.facts import Facts


Cost: TypeAlias = tuple[Fraction, bool, int]
"""The weight of an error in the loss, whether it is squared, and how many numbers have one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueFact(MechanismFact):
    """Values as the kernel reads what is `done`; `error_size`: what each is typically off by.

    `averaged` is whether the loss is over a law of the data, `local` whether whoever holds a value draws for it.
    """

    done: Any
    error_size: Quantity
    averaged: bool
    local: bool
    input_line: SpecLine

    @staticmethod
    @abstractmethod
    def cost(block: Any) -> Cost:
        """What the problem says of errors."""

    @classmethod
    def of(cls, plan: Stated, where: Context) -> ValueFact:
        """The mechanism of a plan."""
        done, loss = plan.executed, plan.loss
        _, squared, numbers = cls.cost(done.block)
        each = max(cls.unweighted(done, loss.value if loss else 0.0) / numbers, 0.0)
        return cls(
            family=plan.mechanism.family,
            released=frozenset(done.outputs),
            done=done,
            error_size=rounded(sqrt(each) if squared else each),
            averaged=loss is not None and loss.kind == "expected",
            local=where.alone,
            input_line=where.line_of(done.block.source),
            **cls.figures(done, where),
        )

    @classmethod
    def unweighted(cls, done: Any, loss: float) -> float:
        """The error of all numbers together, without its weight in the loss."""
        return loss / float(cls.cost(done.block)[0])

    @classmethod
    def figures(cls, done: Any, where: Context) -> dict[str, Any]:  # noqa: ARG003 - most have no further fields
        """Further fields."""
        return {}

    @property
    def block(self) -> Any:
        """The problem."""
        return self.done.block

    @property
    def squared(self) -> bool:
        """Whether errors are squared."""
        return self.cost(self.block)[1]

    def off(self, measure: str) -> Accuracy:
        """What a sentence says that tells how far values are off."""
        return Accuracy(measure, ((self.block.output, self.error_size.value, self.error_size.value),))


# --- real points ----------------------------------------------------------------------------------


NEAR = Fraction(95, 100)
"""The share of reports of which pages tell how far off they are at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointFact(ValueFact):
    """Noise at each point; `apart` is the largest distance of two points, `near` within which most reports are."""

    scale: Quantity
    step: Quantity
    apart: float | None
    near: Quantity | None

    page = "points"

    @staticmethod
    def cost(block: PointBlock) -> Cost:
        return block.error.weight, block.error.power == 2, 1

    @classmethod
    def figures(cls, done: Points, where: Context) -> dict[str, Any]:
        points = done.block
        metric = next(iter(where.distances.values()), "euclidean")  # of the first line that names one
        square = points.diameter_squared(NORM_OF.get(metric, "l2"))
        round_ = points.error.norm == "l2" and (done.norm == "l2" or points.size == 1)
        near = float(done.scale) * float(scipy.special.gammaincinv(points.size, float(NEAR)))
        return {
            "scale": rounded(done.scale, 9),
            "step": exact(done.step),
            "apart": None if square is None else float(root_up(square)),
            "near": rounded(near, 3, UP) if round_ else None,
        }

    @property
    def effects(self) -> Effects:
        return REPORTED

    @property
    def norm(self) -> str:
        """The norm of its noise."""
        return str(self.done.norm)

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """What distances hide: the odds are those of the least that is shown."""
        rate = claim.per_distance
        if rate is None:
            names = "the first", "the second"
            return claim, which_answer(self.local, names, None, ()) if claim.local else took_part(claim.relation)
        # around the distance at which epsilon is 1
        distances = round_distances(float(1 / (5 * rate)), self.apart)
        reaches = [(far, rate * far, EpsilonDeltaCurve(float(rate * far))) for far in distances]
        return replace(claim, achieved=reaches[0][2]), how_near(self.local, reaches, plane=self.block.size == 2)

    # --- the short table

    @property
    def noise(self) -> str:
        """The noise of its norm."""
        return phrase(f"points.noise.{self.done.norm}")

    @property
    def moved(self) -> bool:
        """Whether reports are moved into a range."""
        return self.block.least is not None or self.block.most is not None

    @property
    def limits(self) -> str:
        """Where a point lies."""
        points = self.block
        if points.radius is not None:
            return phrase("points.limits.ball", points)
        ends = [phrase("points.limits.none") if end is None else end for end in (points.lower, points.upper)]
        return phrase("points.limits.range", first=ends[0], last=ends[1])

    # --- the pages

    def values(self, facts: Facts) -> Mapping[str, object]:
        points = self.block
        return {
            "several": points.size > 1,
            "numbers": phrase("points.limits.numbers", points) if points.size > 1 else "",
            "least": "-inf" if points.least is None else points.least,
            "largest": "inf" if points.most is None else points.most,
            "unit": facts.unit(points.output, self.error_size.text),
            "units": facts.unit(points.output),
            "most_of": NEAR.numerator * 100 // NEAR.denominator,
            "all_of": 100,
            "of_norm": self.done.norm.removeprefix("l"),
        }

    def accuracies(self, facts: Facts) -> Mapping[str, Accuracy]:
        measure = f"{'root mean square' if self.squared else 'mean'} {self.block.error.norm}"
        found = dict.fromkeys(("sum", "distance", "largest"), self.off(f"{measure} at most" if self.moved else measure))
        near = () if self.near is None else ((self.block.output, 0.0, self.near.value),)
        return {**found, "most": Accuracy("of 95 in 100", near)}


# --- finite reports of a real number --------------------------------------------------------------


MOST_CELLS = 40
"""Rows of a table that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFact(ValueFact):
    """A row of chances for each cell of the number."""

    page = "cells"

    @staticmethod
    def cost(block: CellBlock) -> Cost:
        return block.weight, block.power == 2, 1

    @property
    def effects(self) -> Effects:
        return REPORTED

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """About any two numbers."""
        names = exact(self.block.ends[0]).text, exact(self.block.ends[-1]).text
        return claim, of_report(claim, names, stays=self.local)

    # --- the pages

    def values(self, facts: Facts) -> Mapping[str, object]:
        block = self.block
        return {
            "cells": len(self.done.term.rows),
            "values_many": len(block.values),
            "first": block.ends[0],
            "last": block.ends[-1],
            "unit": facts.unit(block.output, self.error_size.text),
        }

    def accuracies(self, facts: Facts) -> Mapping[str, Accuracy]:
        measure = f"{'root mean square' if self.squared else 'mean'} l1{'' if self.averaged else ', at worst'}"
        return {"off": self.off(measure)}

    def in_figures(self) -> list[Block]:
        block = self.block
        rows = [
            (*map(exact, ends), *(rounded(Fraction(chance, self.done.term.whole), 4) for chance in row))
            for ends, row in zip(pairwise(block.ends), self.done.term.rows, strict=True)
        ][:MOST_CELLS]
        left = len(self.done.term.rows) - len(rows)
        more = phrase("cells.chances.more", left=left) if left else ""
        columns = [f"#{exact(value)}" for value in block.values]
        return [tabled("cells.chances", rows, columns, block=block, rest=more)]


# --- sets of values -------------------------------------------------------------------------------


MOST_KINDS = 40
"""Kinds of sets of which a table tells."""
NORMAL = 1.96
"""Standard errors within which 95 of 100 estimates lie that are sums of very many reports."""
MANY = 1000
"""Reports from which their sum counts as normal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrequencyFact(ValueFact):
    """The set that each party reports; an estimate is off by as much over all values."""

    page = "frequencies"

    @staticmethod
    def cost(block: FrequencyBlock) -> Cost:
        return block.weight, True, block.values if block.group is None else 1

    @classmethod
    def unweighted(cls, done: Any, loss: float) -> float:  # noqa: ARG003 - a loss may add what privacy costs
        return float(done.error(Fraction(1)))

    @property
    def ends(self) -> tuple[str, str]:
        """The first and the last value."""
        block = self.block
        first, last = (block.value(place) for place in (0, block.values - 1))
        return _shown(first), _shown(last)

    @property
    def reports(self) -> str:
        """What one report is."""
        sizes = sorted({kind.subset for kind in self.done.kinds})
        which = "group" if self.block.group is not None else "value" if sizes == [1] else "sets"
        return phrase(
            f"frequencies.reports.{which}", {"sizes": self._span(map(count, (sizes[0], sizes[-1])))}, self.block
        )

    def between(self, of: Callable[[Sets], Fraction], digits: int) -> str:
        """A chance in percent, from the least to the largest of all kinds."""
        chances = sorted(of(kind) for kind in self.done.kinds)
        return self._span(percent(chance, digits) for chance in (chances[0], chances[-1]))

    @staticmethod
    def _span(ends: Iterable[Quantity]) -> str:
        return " to ".join(dict.fromkeys(map(str, ends)))

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """About any two values."""
        return claim, of_report(claim, self.ends, stays=True)

    # --- the pages

    def values(self, facts: Facts) -> Mapping[str, object]:
        found, block = self.done, self.done.block
        several = max(kind.subset for kind in found.kinds) > 1
        group = block.group or ()
        return {
            "mixed": len(found.kinds) > 1,
            "grouped": block.group is not None,
            "kinds": len(found.kinds),
            "name": phrase(f"frequencies.name.{'two' if block.told == 2 else 'sets' if several else 'values'}"),
            "own": self.between(lambda kind: kind.chance, 3),
            "own_exactly": self.between(lambda kind: kind.chance, 4),
            "own_in_full": self.between(lambda kind: kind.chance, 8),
            "others": self.between(lambda kind: kind.others, 3),
            "of_group": "the value" if len(group) == 1 else phrase("frequencies.name.any_of_group", many=len(group)),
            "unit": facts.unit(block.output, self.error_size.text),
            "units": facts.unit(block.output),
            "far": rounded(self.error_size.value * NORMAL, 2, UP) if block.count >= MANY else None,
            "first": self.ends[0],
            "last": self.ends[1],
        }

    def accuracies(self, facts: Facts) -> Mapping[str, Accuracy]:
        return {"off": self.off("deviation")}

    def in_figures(self) -> list[Block]:
        found = self.done
        rows = [
            (count(kind.subset), count(kind.block.count), of, rounded(chance, 6), rounded(variance, 6))
            for kind in found.kinds[:MOST_KINDS]
            for of, chance, variance in zip(
                ("of the own value", "of any other value"), (kind.chance, kind.others), kind.variances(), strict=True
            )
        ]
        return [tabled("frequencies.chances", rows)]

    @property
    def largest(self) -> Quantity:
        """How many times as likely a report can be at one value as at another."""
        return rounded(max(kind.ratio for kind in self.done.kinds), 4, UP)


def _shown(value: Fraction | str) -> str:
    return value if isinstance(value, str) else str(exact(value))


# --- sums of what parties hold ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NumberFact:
    """A number that is released by name, and how far it is typically off."""

    name: str
    size: Quantity
    unit: str
    cost: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanFact(ValueFact):
    """A report of each party, and how far each number that is computed from all of them is off."""

    sizes: tuple[Quantity, ...]

    page = "means"

    @staticmethod
    def cost(block: MeanBlock) -> Cost:
        return (block.numbers[0].weight if len(block.numbers) == 1 else Fraction(1)), True, 1

    @classmethod
    def figures(cls, done: Means, where: Context) -> dict[str, Any]:  # noqa: ARG003 - as others
        return {"sizes": tuple(rounded(sqrt(max(float(done.loss_of(j)), 0.0))) for j in range(done.numbers))}

    @property
    def several(self) -> bool:
        """Whether more than one number is released."""
        return len(self.block.numbers) > 1

    @property
    def listed(self) -> bool:
        """Whether a party holds one of a few values, each with a row of its own."""
        return isinstance(self.block.held, Listed)

    @property
    def rooted(self) -> bool:
        """Whether roots of means are released."""
        return bool(self.block.rooted)

    @property
    def at_most(self) -> bool:
        """Whether errors that are told are the most that they can be."""
        return self.rooted or not self.listed

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """The least and the largest number that a party may hold."""
        held = self.block.held
        known = held.values if isinstance(held, Listed) else held.ends
        return known[0], known[-1]

    @property
    def largest(self) -> Quantity:
        """How many times as likely a report can be at one number as at another."""
        columns = (some for kind in self.done.kinds for some in zip(*kind.term.rows, strict=True))
        return rounded(max(Fraction(max(some), min(some)) for some in columns), 4, UP)

    @property
    def kinds(self) -> int:
        """How many kinds of reports there are."""
        return len(self.done.each)

    @property
    def personal(self) -> bool:
        """Whether there are several, by the epsilon of each party."""
        return self.kinds > 1

    @property
    def effects(self) -> Effects:
        return REPORTED

    def judged(self, claim: Claim) -> tuple[Claim, Question]:
        """About any two numbers."""
        first, last = (exact(one).text for one in self.ends)
        return claim, of_report(claim, (first, last), stays=True)

    # --- the pages

    def off_by(self, facts: Facts) -> list[NumberFact]:
        """Every number that is released, and how far it is off."""
        found, sizes = [], iter(zip(self.sizes, self.block.numbers, strict=True))
        for output in self.block.outputs:
            for place in range(prod(output.shape)):
                size, number = next(sizes)
                name = f"{output.name}[{place + 1}]" if output.shape else output.name
                found.append(NumberFact(name, size, facts.unit(output.name, size.text), number.weight))
        return found

    def values(self, facts: Facts) -> Mapping[str, object]:
        first, last = self.ends
        held = self.block.held
        return {
            "rows": len(self.done.kinds[0].term.rows),
            "columns": listing(list(dict.fromkeys(str(len(kind.term.rows[0])) for kind in self.done.kinds)), "or"),
            "values_many": len(held.values) if isinstance(held, Listed) else 0,
            "first": first,
            "last": last,
            "off_by": self.off_by(facts),
            "names": listing([one.name for one in self.block.outputs]),
        }

    def accuracies(self, facts: Facts) -> Mapping[str, Accuracy]:
        sizes = tuple((one.name.partition("[")[0], one.size.value, one.size.value) for one in self.off_by(facts))
        return {"off": Accuracy(f"deviation{'' if self.averaged else ', at worst'}", sizes)}

    def in_figures(self) -> list[Block]:
        held = self.block.held
        tables = list[Block]()
        for number, kind in enumerate(self.done.kinds, 1):
            laws, columns = kind.term, kind.columns()
            known = list(map(exact, held.values)) if isinstance(held, Listed) else [None] * len(laws.rows)
            shown = range(min(len(columns), MOST_CELLS))
            rows: list[tuple[Quantity | str | None, ...]] = [
                (known[r], *(rounded(Fraction(chances[z], laws.whole), 4) for z in shown))
                for r, chances in enumerate(laws.rows)
            ]
            rows += [
                (f"estimate {j + 1}" if self.several else "estimate", *(rounded(columns[z][j], 4) for z in shown))
                for j in range(self.done.numbers)
            ]
            more = phrase("means.chances.more", left=len(columns) - len(shown)) if len(columns) > len(shown) else ""
            own = phrase("means.chances.own", number=number, many=kind.block.count) if self.personal else ""
            heads = [f"#{z + 1}" for z in shown]
            tables.append(tabled("means.chances", rows, heads, block=self.block, rest=f"{own}{more}"))
        return tables


# --- counts of unknown keys -----------------------------------------------------------------------


MOST_ROWS = 40
"""Counts of which a table tells the chance to be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFact(ValueFact):
    """The chance that a key of 1, 2, ... records is shown, and what its count is off by on average."""

    page = "keys"

    @staticmethod
    def cost(block: KeyBlock) -> Cost:
        return block.weight, block.error == "squared", 1

    @classmethod
    def unweighted(cls, done: Any, loss: float) -> float:
        """The error of keys: that of sums beside them is none of it."""
        keys = float(done.error(done.block)) if done.block.added else loss
        return keys / float(done.block.weight)

    @property
    def kept(self) -> tuple[Fraction, ...]:
        """With so many records (from 1 on) a key is shown with these chances."""
        return tuple(self.done.kept())

    @property
    def centre(self) -> int:
        """What is added to a count that is shown."""
        return int(self.done.centre)

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
            "sums": listing(
                [
                    f"{'a figure of ' * (name == one.each)}{name} by {rounded(size).text}{facts.unit(name)}"
                    for one, size in self.noise
                    for name in one.outputs
                ]
            ),
        }

    @property
    def noise(self) -> list[tuple[Added, float]]:
        """What stands beside the keys, with the standard deviation of the noise in each of its numbers."""
        return [(one, sqrt(self.done.variance(one, scale))) for one, scale in self.done.sums]

    @property
    def scales(self) -> str:
        """How large that noise is, as it is drawn."""
        return listing(
            [
                f"{rounded(float(scale)).text} steps of {exact(self.block.unit(one)).text} in {listing(one.outputs)}"
                for one, scale in self.done.sums
            ]
        )

    def accuracies(self, facts: Facts) -> Mapping[str, Accuracy]:
        measure = f"key {self.block.error if self.block.counts else 'missed'}{'' if self.averaged else ', at worst'}"
        sizes = tuple((name, size, size) for one, size in self.noise for name in one.outputs)
        found = dict.fromkeys(("off", "missed", "missed_of_frequent"), self.off(measure))
        return {**found, "noise": Accuracy("noise beside keys", sizes)}

    def in_figures(self) -> list[Block]:
        kept, done = self.kept, self.done
        step = -(-len(kept) // MOST_ROWS)
        places = [n for n in range(1, len(kept) + 1) if n % step == 0 or n in (1, len(kept))]
        chances = [Fraction(one, done.total) for one in done.steps]
        rows = [(count(n), rounded(kept[n - 1], 4), rounded(chances[n - 1], 4)) for n in places]
        return [tabled("keys.chances", rows, what=self.key)]


# --- selections -----------------------------------------------------------------------------------


FEW = 6
"""Values that a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionFact(ValueFact):
    """One of the values of a column; errors are in units that readers know, roots where they are squares."""

    page = "selection"

    @staticmethod
    def cost(block: Selected) -> Cost:
        return block.cost.weight, block.cost.power == 2, 1

    @classmethod
    def unweighted(cls, done: Any, loss: float) -> float:
        if isinstance(done, Drawn) and done.block.cost.worst:
            return float(done.off)  # a loss may be what privacy costs alone
        return loss / float(done.block.cost.weight)

    @property
    def lottery(self) -> Drawn | None:
        """The steps that one value is drawn by; None for a table of chances, or several values."""
        return self.done if isinstance(self.done, Drawn) else None

    @property
    def several(self) -> bool:
        """Whether several values are drawn."""
        return bool(self.block.several)

    @property
    def many(self) -> int:
        """How many values are asked for, of each group."""
        return int(self.block.score.values)

    @property
    def tossed(self) -> bool:
        """Whether each chance is that of tosses of a coin."""
        return isinstance(self.done, Drawn | Peeled)

    @property
    def at_ranks(self) -> bool:
        """Whether they are what stands at ranks that are off by noise."""
        return isinstance(self.done, AtRanks)

    @property
    def together(self) -> bool:
        """Whether they are drawn at once."""
        return isinstance(self.done, Jointly)

    @property
    def peeled(self) -> bool:
        """Whether they are drawn one after another."""
        return isinstance(self.done, Peeled)

    @property
    def offset(self) -> int:
        """By how many records it aims away from what is sought."""
        target = None if self.lottery is None else self.lottery.target
        return 0 if target is None else int(target.offset)

    @property
    def weighed(self) -> bool:
        """Whether it weighs answers by a law."""
        return self.lottery is not None and any(self.lottery.handicap)

    # --- words

    @property
    def answers(self) -> str:
        """The answers in a few words."""
        answers = self.block.answers
        if self.block.numbers:
            return f"{len(answers)} values from {answers[0]} to {answers[-1]}"
        return listing(list(answers[:FEW])) + (f" and {len(answers) - FEW} more" if len(answers) > FEW else "")

    @property
    def share(self) -> Fraction | None:
        """Of the records, that the value that is sought is at; None for the most frequent one."""
        return self.block.score.share if isinstance(self.block.score, Ranks) else None

    @property
    def most_frequent(self) -> bool:
        """Whether the most frequent values are sought."""
        return not self.block.score.ordered

    @property
    def sought(self) -> str:
        """What is looked for, in words."""
        share = self.share
        ends = {Fraction(0): "smallest", Fraction(1): "largest", Fraction(1, 2): "median"}
        found: dict[str, object] = {"column": self.block.column}
        if isinstance(self.block.score, Quantiles):
            percents = listing([f"{float(100 * one):g}" for one in self.block.score.shares])
            return phrase("selection.sought.ranks", found, {"percents": percents})
        if self.several:
            return phrase("selection.sought.leaders", found)
        if share is None:
            return phrase("selection.sought.frequent", found)
        percent = f"{float(100 * share):g}"
        return phrase(f"selection.sought.{ends.get(share, 'rank')}", found, {"percent": percent})

    @property
    def columns(self) -> str:
        """What groups are made by."""
        return listing([one.column for one in self.block.by])

    @property
    def among(self) -> str:
        """Which records count, with the space before it."""
        each = f" in each of the {self.groups} groups by {self.columns}"
        kept = f" among records with {listing([_kept(one) for one in self.block.where])}" if self.block.where else ""
        return (each if self.block.by else "") + kept

    @property
    def groups(self) -> int:
        """How many values are drawn."""
        return int(self.block.groups)

    @property
    def rule(self) -> str:
        """The rule by name."""
        each = f"selection.rule.{self.done.draw}" if self.peeled else ""
        return phrase(f"selection.rule.{self.family}", {"each": phrase(each) if each else ""})

    @property
    def beside(self) -> str:
        """What it aims at, and by what it weighs, after a comma."""
        many = "1 record" if abs(self.offset) == 1 else f"{count(abs(self.offset))} records"
        aim = {"aim": many if self.offset else "", "offset_up": self.offset > 0}
        return "".join(text for _, text in phrases("selection.beside", aim, self))

    @property
    def grouped(self) -> bool:
        """Whether a value is drawn for each of some groups."""
        return bool(self.block.by)

    @property
    def one_of_many(self) -> bool:
        """Whether there are several published values, of groups or of one question."""
        return self.grouped or self.several

    @property
    def of_nearest(self) -> bool:
        """Whether the answers are numbers, at the nearest of which records are read."""
        return self.block.numbers is not None and not self.block.bounds

    @property
    def of_bounds(self) -> bool:
        """Whether numbers are read at bounds that they do not exceed."""
        return bool(self.block.bounds)

    @property
    def of_values(self) -> bool:
        """Whether errors are sizes of differences of values."""
        return self.block.cost.form not in ("ranks", "mismatch")

    @property
    def measure(self) -> str:
        """What the error is."""
        kind = "squared" if self.squared else "absolute" if self.of_values else self.block.cost.form
        return phrase(f"selection.measure.{kind}")

    @property
    def steps(self) -> str:
        """How many steps a record counts for each of several quantiles."""
        each = zip(self.done.targets, self.done.weights, strict=True)
        found = [str(target.share.denominator * weight) for target, weight in each]
        return listing(found if len(set(found)) > 1 else found[:1])

    @property
    def each_off(self) -> Quantity:
        """The error of a value of one group, or of one of several."""
        if not (self.block.by or self.several):
            return self.error_size
        numbers = self.groups * self.many
        return rounded(self.error_size.value / (sqrt(numbers) if self.squared else numbers), 3, UP)

    def values(self, facts: Facts) -> Mapping[str, object]:
        block, share = self.block, self.share
        whole = share is None or share.denominator == 1
        unit = {"unit": facts.unit(block.output, self.each_off.text)}
        chance = Fraction(1) if self.family == "table" else 1 / self.done.base
        step = "each further record" if self.at_ranks else "a step of a score"
        return {
            "at_worst": facts.loss is not None and block.cost.worst,
            "size": "".join(text for _, text in phrases("selection.size", unit, self)),
            "values_many": len(block.answers),
            "step": "one record" if share is None or whole else f"1/{share.denominator} of a record",
            "step_factor": f"{float(chance):.6g}",
            "step_exactly": "" if self.family == "table" else f"; {step} has the chance {chance}",
            "chance_of_step": str(chance),
            "parts": self.steps if self.together else "",
            "filled": self.done.filled if self.at_ranks else "",
            "jitter": str(1 / self.done.jitter) if self.at_ranks else "",
            "records": "a secret number of records" if block.records is None else f"{count(block.records)} records",
            "one": 1,
        }

    def accuracies(self, facts: Facts) -> Mapping[str, Accuracy]:
        cost, size = self.block.cost, self.each_off.value if self.of_values else self.error_size.value
        measure = f"{cost.form} {cost.power}{', at worst' * cost.worst}"
        return dict.fromkeys(("off", "off_simulated"), Accuracy(measure, ((self.block.output, size, size),)))

    # --- the pages

    def auditor_tables(self, facts: Facts) -> tuple[Block, ...]:
        return (self.ways(facts),) if facts.alternatives else ()

    def engineer_blocks(self, facts: Facts) -> list[Block]:
        return list(self.auditor_tables(facts))


def _kept(one: Where) -> str:
    """A condition in words: `age from 65 to 120`, `sex F`."""
    kept = [one.values[i] for i in one.kept]
    run = list(one.kept) == list(range(one.kept[0], one.kept[-1] + 1)) and len(kept) > 2
    number: Any = one.values[0].lstrip("-").replace(".", "").isdigit()
    if run and number:
        return f"{one.column} from {kept[0]} to {kept[-1]}"
    more = f" or {len(kept) - FEW} more" if len(kept) > FEW else ""
    return f"{one.column} {listing(kept[:FEW], 'or')}{more}"
