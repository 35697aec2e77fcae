"""An epsilon of local histograms that is picked: at each the best sets and the least error are in closed form."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from time import perf_counter
from typing import Any, ClassVar

from privspec.core.records import dataclass, replace
from privspec.families import amounts
from privspec.families.amounts import Bound, cell, down
from privspec.families.decision import Decided, Infeasible, decimal_up, missed
from privspec.families.family import Settings
from privspec.families.number.reports import Histograms, System, best_of_all, name_of, sets_stated
from privspec.kernel.reports import Frequencies, FrequencyBlock, FrequencyRules, least_loss, least_of_all
from privspec.kernel.worth import PriceableRules
from privspec.model.graph import Model
from privspec.problem.frequencies import LARGEST_EPSILON, block_of
from privspec.problem.priced import inner, lines_at, parsed

DIGITS = 10
"""Decimal digits of an amount that is picked, rounded up."""
CLOSE = Fraction(1, 10**9)
"""Relative width at which the least epsilon is known."""
CELLS, HALVINGS, STEPS = 48, 14, 30
"""Most cells of the bound where errors are added, and how these and their ends are found."""


@dataclass(eq=False)
class Search(amounts.Search):
    """A local histogram whose epsilon is picked."""

    block: FrequencyBlock
    farthest: ClassVar[Fraction] = Fraction(LARGEST_EPSILON)
    rules: ClassVar[PriceableRules] = FrequencyRules()

    @cached_property
    def limits(self) -> list[tuple[tuple[Fraction, bool], ...]]:
        """For each line the epsilon of each party, or of all: at an amount of 1, and whether it grows with it."""
        once, twice = (
            [[one.amounts["epsilon"] for one in line.measure.by_person] for line in lines_at(self.model, value)]
            for value in (Fraction(1), Fraction(2))
        )
        pairs = zip(once, twice, strict=True)
        return [tuple((a, a != b) for a, b in zip(one, other, strict=True)) for one, other in pairs]

    def at(self, value: Fraction) -> System:
        """The spec at an amount."""
        lines = [[one * value if grows else one for one, grows in line] for line in self.limits]
        return Histograms.system(self.model, self.block, lines)

    def model_at(self, value: Fraction) -> Model:
        """The same with the lines at the amount."""
        return replace(inner(self.model), requirements=lines_at(self.model, value))

    def error(self, value: Fraction) -> float | None:
        """What the best sets lose at an amount; None where a line of accuracy is missed."""
        found = best_of_all(self.at(value))
        fits = all(found.error(one.weight) <= one.bound for one in self.block.accuracy)
        return float(found.error(self.block.weight)) if fits and self.block.weight else 0.0 if fits else None

    def enough(self, low: Fraction, high: Fraction) -> Fraction:
        """The least amount above one that misses a line, up to one that meets all, in few digits."""
        while high - low > CLOSE * high:
            middle = down((low + high) / 2)
            low, high = (middle, high) if self.error(middle) is None else (low, middle)
        return Fraction(decimal_up(high, DIGITS))

    def least(self, value: Fraction) -> Fraction:
        """At most the errors of any unbiased estimate at an amount."""
        system = self.at(value)
        limits = system.limits
        return least_loss(self.block, system.epsilon) if limits is None else least_of_all(self.block, list(limits))


def priced(model: Model, settings: Settings) -> Decided | Infeasible:
    """The epsilon that costs least together with the errors at it, or the least that meets every line of accuracy."""
    search = Search(model, settings, parsed(model), perf_counter(), block_of(inner(model)))
    if search.error(search.end) is None:
        return _out_of_range(search)
    low = max(search.found.low, Fraction(1, 10**6))
    if search.error(low) is None:
        low = min(search.enough(low, search.end), search.end)
    value = low
    if search.found.rest is not None:
        value = search.weighed(low, search.error)
    found = best_of_all(search.at(value))
    rest = found.error(search.block.weight) if search.block.weight else Fraction(0)
    loss = float(search.found.cost(value) + rest)
    return search.decided(value, name_of(found.kinds[0]), loss, "expected", lambda: _stated(search, value, found, loss))


def _stated(search: Search, value: Fraction, found: Frequencies, loss: float) -> dict[str, Any]:
    """The sets as they stand in the plan, and the bound."""
    said = sets_stated(search.model_at(value), found)
    return search.stated(said, _bound(search, value, found, loss), {"name": "closed form"})


def _bound(search: Search, value: Fraction, found: Frequencies, loss: float) -> Bound:
    """The cells of the range that prove the cost, and what they prove."""
    if search.found.rest is None:
        ends = [down(value * (1 - 2 * CLOSE))]
        ends = [end for end in ends if end > search.found.low]
    else:
        ends = _ends(search, Fraction(loss))
    return search.bound(found, {"proofs": [], "cells": [*(cell(end, 0) for end in ends), cell()]}, loss)


def _ends(search: Search, loss: Fraction) -> list[Fraction]:
    """Ends of cells in which about the same is proved: the errors at the end, with the cost at the beginning."""
    low, high, best = Fraction(0), loss, list[Fraction]()
    for _ in range(HALVINGS):
        aim = (low + high) / 2
        found = _cut(search, aim)
        low, high, best = (low, aim, best) if found is None else (aim, high, found)
    return best


def _cut(search: Search, aim: Fraction) -> list[Fraction] | None:
    """Ends of cells each of which costs so much at least; None where they are too many, or cannot be."""
    found, low = list[Fraction](), search.found.low
    while search.found.cost(low) < aim and low < search.end:
        need = aim - search.found.cost(low)
        if len(found) == CELLS:
            return None
        high = _last(search, need, low)
        if high is None:
            return None
        found.append(high)
        low = high
    return found


def _last(search: Search, need: Fraction, low: Fraction) -> Fraction | None:
    """The largest amount above one, in few digits, at which errors are so large at least; None where there is none."""
    if search.least(search.end) >= need:
        return search.end
    start, high = low, search.end
    for _ in range(STEPS):
        middle = down((low + high) / 2)
        if not low < middle < high:
            break
        low, high = (middle, high) if search.least(middle) >= need else (low, middle)
    return low if low > start else None


def _out_of_range(search: Search) -> Infeasible:
    """The lines that conflict at the end of the range."""
    search.check_end()
    system = search.at(search.end)
    found = best_of_all(system)
    one = next(one for one in search.block.accuracy if found.error(one.weight) > one.bound)
    conflict = missed(search.model_at(search.end), one, found.error(one.weight), system.binding)
    beyond = search.error(search.most) is not None
    needed = float(decimal_up(search.enough(search.end, search.most), 4)) if beyond else None
    return search.out_of_range(conflict, search.end, needed)
