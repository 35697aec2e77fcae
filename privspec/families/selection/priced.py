"""The least amount at which a selected value keeps to its lines of accuracy: of the draws known, and of any."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from time import perf_counter
from typing import Any, ClassVar

from privspec.core.records import dataclass, replace
from privspec.families import amounts
from privspec.families.amounts import Bound, beyond, cell, down, no_price
from privspec.families.decision import Decided, decimal_up
from privspec.families.family import Settings
from privspec.families.selection.family import NAMES, System, calibrated, mechanisms, stated, system_of
from privspec.kernel.core.reading import Refused
from privspec.kernel.selection import Drawn, Selected, SelectionRules
from privspec.kernel.worth import PriceableRules
from privspec.model.graph import Model
from privspec.problem.priced import inner, lines_at, parsed
from privspec.problem.selection import LARGEST_EPSILON, block_of

DIGITS = 6
"""Decimal digits of an amount that is picked, rounded up."""
CLOSE = Fraction(1, 10**7)
"""Relative width at which the least amount is known, that of the draws and that of the bound."""


@dataclass(eq=False)
class Search(amounts.Search):
    """A selected value whose amount of privacy is picked."""

    block: Selected
    farthest: ClassVar[Fraction] = Fraction(LARGEST_EPSILON)
    rules: ClassVar[PriceableRules] = SelectionRules()

    def at(self, value: Fraction) -> System:
        """The spec at an amount."""
        return system_of(replace(inner(self.model), requirements=lines_at(self.model, value)), self.block)

    def drawn(self, value: Fraction) -> Drawn | None:
        """The draw at an amount that is off least; None where that misses a line."""
        system = self.at(value)
        best = min((calibrated(one, system.lines) for one in mechanisms(system)), key=_off)
        lines = self.block.accuracy
        return best if best.base > 1 and all(one.weight * best.off <= one.bound for one in lines) else None

    def shown(self, value: Fraction, drawn: Drawn) -> dict[str, Any] | None:
        """Cells that prove that no mechanism keeps to the lines up to an amount; None where none are known."""
        halves = [Fraction(k, 2) for k in range(1, 41)] if self.block.records is not None else []
        for far in (*halves, *(Fraction(round(1.2**k)) for k in range(1, 60))):
            made = {"proofs": [{"records": str(far)}], "cells": [cell(value, 0), cell()]}
            with suppress(Refused):
                cost, _ = self.proved(drawn, made)
                if cost >= self.found.cost(value):
                    return made
        return None


def _off(drawn: Drawn) -> Fraction:
    return drawn.off if drawn.base > 1 else Fraction(10**30)


def priced(model: Model, settings: Settings) -> Decided:
    """The least amount at which a draw keeps to every line of accuracy.

    Raises: SpecError PS0501 for losses that add errors to the amount, or are no worst ones; SolveError PS0612.
    """
    found = parsed(model)
    block = block_of(inner(model))
    if found.rest is not None or not block.cost.worst:
        raise no_price(model, found.node, "errors of a selected value")
    search = Search(model, settings, found, perf_counter(), block)
    short_of, enough = search.found.low, search.end
    if search.drawn(enough) is None:
        raise beyond(model, found.node, enough)
    while enough - short_of > enough * CLOSE:
        middle = (short_of + enough) / 2
        short_of, enough = (middle, enough) if search.drawn(middle) is None else (short_of, middle)
    value = min(Fraction(decimal_up(enough, DIGITS)), search.end)
    drawn = search.drawn(value)
    assert drawn is not None
    loss = float(found.cost(value))
    return search.decided(value, NAMES[drawn.family], loss, "worst", lambda: _stated(search, value, drawn, loss))


def _stated(search: Search, value: Fraction, drawn: Drawn, loss: float) -> dict[str, Any]:
    """The draw as it stands in the plan, and the bound."""
    said, solver = stated(search.at(value), drawn), {"name": "calibration at the exact ratio"}
    return search.stated(said, _bound(search, value, drawn, loss), solver)


def _bound(search: Search, value: Fraction, drawn: Drawn, loss: float) -> Bound | None:
    """The largest amount up to which a witness proves that no mechanism keeps to the lines."""
    low, high, best = search.found.low, value, None
    while high - low > high * CLOSE * 100:
        middle = down((low + high) / 2)
        if not low < middle < high:
            break
        made = search.shown(middle, drawn)
        low, high, best = (low, middle, best) if made is None else (middle, high, made)
    return None if best is None else search.bound(drawn, best, loss)
