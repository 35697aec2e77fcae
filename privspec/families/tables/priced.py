"""The least privacy cost of a table that meets its accuracy lines: the least amount at which some table does.

At an amount, one line is minimised under all others: a linear program. The least value falls as the amount grows; where
it is what the line asks for lies the least amount. Its dual at an amount just below shows that no table meets the line
there, and so at no smaller amount.
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from math import exp, log
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from privspec.core.diagnostics import Diagnostic, Label, SolveError
from privspec.core.records import dataclass, replace
from privspec.families import amounts
from privspec.families.amounts import Bound, cell, down, no_price
from privspec.families.decision import Decided, Infeasible, decimal_up, float_down
from privspec.families.family import Settings
from privspec.families.tables.decision import LinearTable, explained, solved
from privspec.families.tables.family import executed_of, fairness_of, guarantee_of
from privspec.families.tables.system import TableSystem, table_of, to_program
from privspec.kernel.core.reading import Refused
from privspec.kernel.measures import DELTA
from privspec.kernel.tables import Tables, among, least_of_any
from privspec.kernel.worth import PriceableRules
from privspec.kernel.writing import write
from privspec.model.graph import Model
from privspec.model.values import show
from privspec.problem.elaborate import Problem, elaborate, measure_of
from privspec.problem.priced import inner, lines_at, parsed
from privspec.problem.table_forms import Table
from privspec.solvers.programs import Array, OutOfTimeError, SolverError
from privspec.solvers.table_programs import InfeasibleTable

DIGITS = 10
"""Decimal digits of an amount that is picked, rounded up."""
CLOSE, WIDE, ROUNDS = 1e-8, 1e-3, 60
"""Relative widths at which the least amount is known in the range, and beyond; the amounts that are tried at most."""
NEAR, CELLS, HALVINGS, PASSES = 1e-3, 24, 40, 3
"""Of errors beside an amount: the width at which it is known, most cells of the bound, and how these are found."""
ROOM = 8
"""How often the amount is moved by four times as much, until the exact table meets its lines, or the bound proves."""


@dataclass(eq=False)
class Search(amounts.Search):
    """A spec whose amount is picked, with the table that it is about at any amount."""

    problem: Problem
    farthest: ClassVar[Fraction] = Fraction(40)
    rules: ClassVar[PriceableRules] = Tables()

    @property
    def table(self) -> Table:
        """The block."""
        return table_of(self.problem)

    def at(self, value: Fraction, block: Table) -> tuple[Model, TableSystem]:
        """The model and the system at an amount, about a block."""
        lines = lines_at(self.model, value)
        model = replace(inner(self.model), requirements=lines)
        asked = zip(self.problem.obligations, lines, strict=True)
        obligations = tuple(replace(one, measure=measure_of(line.measure, model)) for one, line in asked)
        return model, TableSystem(replace(self.problem, obligations=obligations, blocks=(block,)))

    def least(self, value: Fraction, line: int) -> LinearTable | None:
        """The table of least left side of an accuracy line under all others; None where no table meets them."""
        lines = self.table.accuracy
        others = (*lines[:line], *lines[line + 1 :])
        return self.solved(value, replace(self.table, loss=lines[line].amount, accuracy=others))

    def solved(self, value: Fraction, block: Table) -> LinearTable | None:
        """The table of least loss of a block at an amount; None where there is none."""
        model, system = self.at(value, block)
        lowered = to_program(system)
        found = solved(lowered, self.settings)
        if isinstance(found, InfeasibleTable):
            return None
        return LinearTable(model, system, self.settings, found, lowered)


def priced(model: Model, settings: Settings) -> Decided | Infeasible:
    """The least amount at which a table meets all lines.

    Raises: SpecError PS0501 for losses that add errors to the amount, SolveError PS0610.
    """
    found = parsed(model)
    search = Search(model, replace(settings, progress=None), found, perf_counter(), elaborate(inner(model)))
    if search.table.estimates is not None or (found.rest is None and not search.table.accuracy):
        raise no_price(model, found.node, "estimates or bounds on lies")
    if found.rest is not None:
        return _weighed(search)
    tried = (max(search.end / 2**k, search.found.low) for k in range(ROOM))
    enough = next((value for value in tried if _meets(search, value) is not None), None)
    if enough is None:
        return _out_of_range(search, search.end)
    short_of = search.found.low
    if (short_of > 0 or found.node.name == DELTA.name) and _meets(search, short_of) is not None:
        return _decided(search, short_of)
    value = enough
    for _ in range(ROUNDS):
        if short_of and enough - short_of <= short_of * Fraction(CLOSE):
            break
        value = Fraction(decimal_up(Fraction(exp((log(short_of) + log(enough)) / 2)) if short_of else enough / 16, 17))
        if _meets(search, value) is None:
            short_of = value
        else:
            enough = value
    return _decided(search, enough)


def _weighed(search: Search) -> Decided | Infeasible:
    """The amount at which it costs least together with the errors of the best table: the best of those tried."""
    known: dict[Fraction, LinearTable | None] = {}

    def table(value: Fraction) -> LinearTable | None:
        if value not in known:
            try:
                known[value] = search.solved(value, search.table)
            except OutOfTimeError:
                raise
            except SolverError:
                known[value] = None  # ratios too wide for doubles: other amounts are tried
        return known[value]

    def errors(value: Fraction) -> float | None:
        found = table(value)
        return None if found is None else found.loss

    value = search.weighed(search.found.low, errors, NEAR)
    found = table(value)
    if found is None:
        return _out_of_range(search, search.end)
    samples = [(float(at), one.loss) for at, one in sorted(known.items()) if one is not None]
    return PricedTable(search, value, found, tuple(samples)).decided()


def _meets(search: Search, value: Fraction) -> LinearTable | None:
    """A table that meets all lines at an amount, exactly; None where none was found."""
    try:
        found = search.least(value, 0)
    except OutOfTimeError:
        raise
    except SolverError:
        return None  # ratios too wide for doubles: smaller amounts are tried
    return found if found is not None and found.exact_loss <= search.table.accuracy[0].limit else None


def _decided(search: Search, value: Fraction) -> Decided:
    step, at = Fraction(CLOSE), Fraction(decimal_up(value, DIGITS))
    for _ in range(ROOM):
        at = min(at, search.end)
        found = _meets(search, at)
        if found is not None:
            return PricedTable(search, at, found).decided()
        at, step = Fraction(decimal_up(at * (1 + step), DIGITS)), 4 * step
    label = Label(search.found.node.span)
    said = f"no exact table was found at the least {search.found.node.name}"
    raise SolveError(Diagnostic("PS0610", said, (label,), source=search.model.source))


def _out_of_range(search: Search, value: Fraction) -> Infeasible:
    """The lines that conflict at the end of the range."""
    search.check_end()
    model, system = search.at(value, search.table)
    found = explained(model, system, search.settings)
    node = search.found.node
    if found is None:
        said = f"no table that meets the lines was found at {node.name} = {show(value)}"
        raise SolveError.at(search.model.source, node.span, "PS0612", said)
    found = replace(found, relaxations=tuple(replace(way, loss=None) for way in found.relaxations))
    needed = _beyond(search)
    return search.out_of_range(found, value, None if needed is None else float(needed))


def _beyond(search: Search) -> Fraction | None:
    """An amount above the range at which a table meets all lines, near the least one; None where none was found."""
    if search.found.high is None:
        return None
    short_of, enough = search.end, min(2 * search.end, search.most)
    while _meets(search, enough) is None:
        if enough >= search.most:
            return None
        short_of, enough = enough, min(2 * enough, search.most)
    while enough - short_of > enough * Fraction(WIDE):
        middle = (short_of + enough) / 2
        short_of, enough = (middle, enough) if _meets(search, middle) is None else (short_of, middle)
    return Fraction(decimal_up(enough, 4))


@dataclass(frozen=True, eq=False)
class PricedTable:
    """An amount that is picked, and a table that meets all lines at it."""

    search: Search
    value: Fraction
    table: LinearTable
    samples: tuple[tuple[float, float], ...] = ()
    """Amounts, ascending, with the least errors at them, where the loss adds these."""

    @property
    def loss(self) -> float:
        """What the amount costs, and the errors where they are in the loss."""
        rest = Fraction(0) if self.search.found.rest is None else self.table.exact_loss
        return float(self.search.found.cost(self.value) + rest)

    def decided(self) -> Decided:
        """As a decision."""
        search, system = self.search, self.table.system
        worst = search.found.rest is not None and system.loss.only_worst
        kind = "worst" if worst else "expected"
        return search.decided(self.value, self.table.name, self.loss, kind, self._stated)

    def _stated(self) -> dict[str, Any]:
        """The table as it stands in the plan, and the bound."""
        search, table = self.search, self.table
        said = {
            "mechanism": write(executed_of(table)),
            "guarantees": [guarantee_of(table, one) for one in table.system.requested],
            "fairness": fairness_of(table),
            "remarks": {"recognised": None, "binding": []},
        }
        solver = {**table.solver(), "tolerance": search.settings.tolerance}
        return search.stated(said, self._bound(self.loss), solver)

    def _bound(self, loss: float) -> Bound | None:
        """The witness that no smaller amount will do, the cost that it proves, and the words for the mechanisms."""
        search, own = self.search, self.search.table
        executed = replace(executed_of(self.table), block=own)
        step, low = Fraction(CLOSE), search.found.low
        if search.found.rest is not None:
            known, best = dict(self.samples), None
            for _ in range(PASSES):
                with suppress(Refused):
                    found = search.bound(executed, self._cells(known), loss)
                    best = found if best is None or found[1] > best[1] else best
            return best
        for _ in range(ROOM):
            at = down(self.value * (1 - step))
            step *= 4
            if at <= low:
                return {"proofs": [], "cells": [cell()]}, min(float_down(search.found.cost(low)), loss), among(own)
            for line in range(len(own.accuracy)):
                witness = self._witness(at, line)
                if witness is None:
                    continue
                made = {"proofs": [witness], "cells": [cell(at, 0), cell()]}
                with suppress(Refused):
                    derived, words = search.proved(executed, made)
                    if derived >= search.found.cost(at):
                        return made, min(float_down(derived), loss), words
        return None

    def _cells(self, known: dict[float, float]) -> dict[str, Any]:
        """Cells of about equal bounds, each with the dual of the best table at its upper end, which is then `known`."""
        at, errors = (np.array(column) for column in zip(*sorted(known.items()), strict=True))
        floor = float(least_of_any(self.search.table))  # what is proved beside the price, above what holds anyway
        errors -= floor
        low, high = 0.0, self.loss - floor
        for _ in range(HALVINGS):
            aim = (low + high) / 2
            low, high = (low, aim) if self._ends(aim, at, errors) is None else (aim, high)
        proofs, cells = list[dict[str, Any]](), list[dict[str, Any]]()
        for end in self._ends(low, at, errors) or []:
            found = self.search.solved(end, self.search.table)
            if found is not None:
                known[float(end)] = found.loss
                cells.append(cell(end, len(proofs)))
                proofs.append(next(iter(found.witnesses())))
        if cells and Fraction(cells[-1]["upto"]) == self.search.found.high:
            cells[-1]["upto"] = None
            return {"proofs": proofs, "cells": cells}
        return {"proofs": proofs, "cells": [*cells, cell()]}

    def _ends(self, aim: float, at: Array, errors: Array) -> list[Fraction] | None:
        """Ends of cells in which about so much is proved, by the amounts that were tried; None for too many."""
        search, found = self.search, list[Fraction]()
        low = search.found.low
        while float(search.found.cost(low)) < aim and low < search.end:
            need = aim - float(search.found.cost(low))
            if len(found) == CELLS or need > errors[0]:
                return None
            # errors fall as the amount grows; beyond what was tried they count as the last of them
            beyond = need <= errors[-1]
            near = float(search.end) if beyond else exp(float(np.interp(-need, -errors, np.log(at))))
            value = search.end if beyond else min(down(Fraction(near)), search.end)
            if value <= low:
                return None
            found.append(value)
            low = value
        return found

    def _witness(self, value: Fraction, line: int) -> dict[str, Any] | None:
        """The dual of the least left side of a line at an amount, with a multiplier of one for that line itself."""
        found = self.search.least(value, line)
        if found is None:
            return None
        first = next(iter(found.witnesses()))
        tangent, nothing = first.pop("loss"), dict[str, Any](worst=[], shares=[])
        others = [one | {"line": one["line"] + (one["line"] >= line)} for one in first["accuracy"]]
        return first | {"loss": nothing, "accuracy": [*others, {"line": line, "multiplier": 1.0, "tangent": tangent}]}
