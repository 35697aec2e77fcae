"""The finite family: any law of the outputs, as a table; and its plan, beside the mechanisms people use.

Others stand beside it only where one requirement and one kind of loss say all there is: further lines, or a second
observer, are nothing that these mechanisms know of.

What binds, and what asking for a little less would bring, is told by solving again, or to first order from the dual
point, in the logarithm of the loss: with multipliers z of f_a <= e^t f_b + slack, the derivative of the least loss by t
is -sum z e^t f_b, that by delta minus the multiplier of the budget of each pair, which is its largest z.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from privspec.core.diagnostics import SolveError, SpecError
from privspec.core.records import dataclass
from privspec.core.rounding import readable, root
from privspec.families.decision import STEP, Alternative, Decided, Infeasible, decimal_up, guarantee
from privspec.families.family import Settings, Work
from privspec.families.tables.changes import ConditionLine, Figure, Line, PrivacyLine, lines_of
from privspec.families.tables.conflicts import A_SECOND, EnoughError, Trials, work
from privspec.families.tables.decision import LinearTable, SolvedTable, best_table, loss_of
from privspec.families.tables.noise import Label, Neighbours, TableContext
from privspec.families.tables.recognition import comparisons, recognise
from privspec.families.tables.system import Requested, TableSystem, to_program
from privspec.kernel.divergences import HockeyStick
from privspec.kernel.losses import FiniteLaws
from privspec.kernel.measures import APPROXIMATE, PURE
from privspec.kernel.promises import SharedBudget
from privspec.kernel.rules import derive
from privspec.kernel.tables import Executed
from privspec.kernel.tables_forms import Choice
from privspec.kernel.writing import write
from privspec.model.graph import Model
from privspec.model.measures import Chosen
from privspec.model.values import Value, as_float, show
from privspec.problem.elaborate import elaborate
from privspec.problem.refusals import without_loss
from privspec.solvers import table_programs
from privspec.solvers.programs import Array, OutOfTimeError
from privspec.solvers.table_divergences import CurveDual, CurveRatio
from privspec.solvers.table_rows import membership

if TYPE_CHECKING:
    from privspec.families.program import Form

BYTES, SECONDS = 1700, 6e-5
"""Of an entry of a table, as measured of counts of 127 to 511 people, the tables that are found most easily.

The exact cost and probability of each entry are there as fractions, of some 150 bytes each, in the system, in the
table that is repaired, in the plan as it is written and read, and in what the independent check makes of it.
"""


class Finite:
    """Takes specs whose inputs and outputs all have finitely many values.

    `spends`: the measures in which a share of a line is priced again and again; others take a convex program each time.
    """

    spends = (PURE,)

    def __init__(self) -> None:
        """Remember the last table: a part of a system is lowered at one share after another."""
        self.last: TableSystem | None = None

    def lower(self, model: Model) -> TableSystem:
        """Rows, columns, costs and lines in exact numbers.

        Raises: SpecError, also for requirements that tables do not know.
        """
        if model.loss is None:
            raise without_loss(model).of_spec(model.source)
        problem = elaborate(model)
        again = self.last is not None and self.last.problem.blocks == problem.blocks
        self.last = system = self.last.asked(problem) if again and self.last else TableSystem(problem)
        _check_measures(model, system)
        return system

    def decide(self, model: Model, system: TableSystem, settings: Settings) -> Decided | Infeasible:
        """The table of least loss.

        Raises: SpecError PS05xx for lines that tables do not know, and the solvers' errors.
        """
        found = best_table(model, system, settings)
        return found if isinstance(found, Infeasible) else decided(found)

    def size(self, system: TableSystem) -> int:
        """Rows and columns."""
        return max(system.shape)

    def work(self, system: TableSystem) -> Work:
        """What the entries of the table take."""
        rows, columns = system.shape
        what = f"the numbers of a table of {rows:,} rows and {columns:,} columns"
        smaller = "coarser values of inputs or outputs take less"
        return Work(what, BYTES * rows * columns, SECONDS * rows * columns, smaller)


def _check_measures(model: Model, system: TableSystem) -> None:
    """Check that tables know what lines ask for, beside a scale too.

    Raises: SpecError PS0501.
    """
    for requested in system.requested:
        requirement, text = model.requirements[requested.index], ""
        if isinstance(requirement.measure, Chosen) and len(requested.neighbours.pairs):
            text = f"solve cannot choose the amount of {requirement.measure.text} for tables"
            hint = "give it a value under `parameters:`; privspec sweep SPEC --over compares many"
        elif system.table.estimates is not None and isinstance(requested.block, CurveRatio):
            text = f"solve cannot compute {requirement.measure.name} beside a scale that is chosen"
            hint = f"write {PURE.name} or {APPROXIMATE.name}, or give the scale a value"
        if text:
            raise SpecError.at(model.source, requirement.span, "PS0501", text, help=hint)


# --- the plan -------------------------------------------------------------------------------------


def decided(found: SolvedTable) -> Decided:
    """A table as a decision."""
    table, loss = found.system.table, found.system.loss
    counted = " (its order is not looked at)" if table.counted else ""
    return Decided(
        found.model,
        found.name,
        found.loss,
        partial(_stated, found),
        lambda: found.proof[0],
        f"all tables Pr({', '.join(table.outputs)} | {', '.join(table.of)}){counted}",
        kind="worst" if loss.only_worst and table.estimates is None else "expected",
        witnesses=found.witnesses,
        program=partial(_program, found),
    )


def _program(found: SolvedTable) -> Form | str:
    """The program whose optimum the table is."""
    from privspec.families.tables.stated import table_form  # few look at the program itself

    return table_form(found, decided)


def _stated(found: SolvedTable) -> dict[str, Any]:
    """The table as it stands in the plan, beside the mechanisms that it was compared with."""
    others, named = compared(found)
    notes = list(found.solver()["notes"])
    return {
        "problem": found.problem,
        "alternatives": [one.to_json() for one in others],
        "mechanism": write(executed_of(found)),
        "guarantees": [guarantee_of(found, one) for one in found.system.requested],
        "fairness": fairness_of(found),
        "claims": found.proof[1],
        "remarks": {
            "recognised": named,
            **_of_votes(found),
            "binding": binding_prices(found, notes),
            "solver": {**found.solver(), "notes": notes, "tolerance": found.settings.tolerance},
        },
    }


def _of_votes(decision: SolvedTable) -> dict[str, Any]:
    """What a table of votes keeps and does, where it is one."""
    if not decision.model.parties:
        return {}
    from privspec.families.tables.votes import kept_properties, table_figures  # a vote may be many modules away

    return {"properties": kept_properties(decision), **table_figures(decision)}


# --- the mechanism --------------------------------------------------------------------------------


def executed_of(decision: SolvedTable) -> Executed:
    """What is drawn, exactly.

    Raises: SolveError PS0613 where a number lies on an end that its range leaves out.
    """
    table, exact = decision.system.table, decision.exact
    rounds = table.rounds
    values, laws = decision.scalars, {}
    for law in table.laws:
        masses = [values[name] for name in law.masses]
        total = sum(masses, Fraction(0))
        even = Fraction(1, len(law.labels))
        laws[law.name] = {
            label: mass / total if total else even for label, mass in zip(law.labels, masses, strict=True)
        }
    for one in table.choices:
        _check_reached(decision.model, one, values[one.name])
    probabilities = tuple(tuple(Fraction(n, exact.denominator) for n in row) for row in exact.numerators)
    scalars = {one.name: values[one.name] for one in table.choices}
    shared = (
        None
        if rounds is None
        else SharedBudget(rounds.count, rounds.budget, rounds.budget / rounds.count, rounds.count)
    )
    return Executed(decision.task, list(table.rows), list(table.columns), probabilities, scalars, laws, shared)


def _check_reached(model: Model, choice: Choice, value: Fraction) -> None:
    """An end that a range leaves out is not picked.

    Raises: SolveError PS0613 where the loss falls all the way to it.
    """
    left_out = (choice.low_open and value <= choice.low) or (choice.high_open and value >= choice.high)
    if left_out:
        end, node = show(choice.low if value <= choice.low else choice.high), model.nodes[choice.name]
        said = f"the least loss is not reached: it falls as {choice.name} nears {end}, which its range leaves out"
        hint = f"let its range end at a number that may be picked ({end} itself, or one near it)"
        raise SolveError.at(model.source, node.span, "PS0613", said, help=hint)


# --- guarantees -----------------------------------------------------------------------------------


def guarantee_of(decision: SolvedTable, requested: Requested) -> dict[str, Any]:
    """What the table reaches of a line."""
    notes = ["tables"]
    if any(unit.count > 1 for unit in requested.obligation.units):
        notes.append("group-privacy")
    if decision.system.table.rounds is not None:
        notes.append("repeated-votes")
    line = decision.model.requirements[requested.index]
    return guarantee(line, requested.index, achieved(decision, requested), notes)


def achieved(decision: SolvedTable, requested: Requested) -> dict[str, str]:
    """What the table spends: the least epsilon (per unit of distance), or the requirement's with its true delta.

    Both are what the kernel's rules derive of the table, on every change of the line.
    """
    condition, stated = requested.condition, {name: show(amount) for name, amount in requested.amounts.items()}
    if not isinstance(condition, HockeyStick):
        return stated
    epsilon, seen = condition.epsilon, frozenset(requested.obligation.seen)
    if requested.block is None:
        return {"epsilon": "0"} if epsilon else stated
    least, spent = Fraction(0), Fraction(0)
    for square, change in decision.system.table.compared[requested.index].changes:
        (laws,) = derive(decision.executed, seen, change).loss.factors
        assert isinstance(laws, FiniteLaws)
        if condition.delta:
            spent = max(spent, laws.delta_up(epsilon * root(square)))
        elif square:
            least = max(least, (laws.epsilon or Fraction(0)) / root(square))
    if condition.delta:
        (*_, last) = stated  # a delta stands last
        return stated | {last: decimal_up(spent)}
    text = decimal_up(least)
    # rounded up, but not above what the exact ratios were held to
    return {"epsilon": text if Fraction(text) < epsilon else show(epsilon)}


def fairness_of(decision: SolvedTable) -> list[dict[str, Any]]:
    """What each fairness line asks for and what the table reaches, as the kernel evaluates it: the largest distance."""
    table, found = decision.system.table, []
    for line in table.fairness:
        reached, asked, _ = line.largest(decision.executed, table.weights())
        entry = {"line": line.line, "text": line.text, "tolerance": show(asked)}
        found.append(entry | {"achieved": decimal_up(reached)})
    return found


# --- mechanisms beside the plan's -----------------------------------------------------------------


SAME = 1e-6
"""Probabilities closer than this everywhere make the same mechanism."""


def context_of(decision: SolvedTable) -> TableContext | None:
    """The system as the mechanisms see it; None where there is more to it."""
    system, worlds = decision.system, decision.worlds
    if (
        not system.plain
        or system.loss.variations
        or any(worst.variations for worst in system.loss.worst)
        or len(system.requested) != 1
        or (system.expected is not None) == bool(system.worst)
    ):
        return None
    (requested,) = system.requested
    if (
        requested.first
        or requested.view is not None
        or len(system.worst) > 1
        or requested.obligation.measure.of.each_output
    ):
        return None
    condition = requested.condition
    if not isinstance(condition, HockeyStick) or not condition.epsilon:
        return None
    if worlds.counted or not len(requested.neighbours.pairs):
        return None
    prior = None if system.prior is None else as_float(system.prior)
    return TableContext(
        tuple(_label(row) for row in worlds.rows),
        tuple(_label(column) for column in worlds.columns),
        condition.epsilon,
        _neighbours(requested, len(worlds.rows)),
        _cost(system, prior),
        prior if not system.worst else None,
        bool(system.worst),
        condition.delta,
    )


def _label(values: tuple[Value, ...]) -> Label:
    parts: list[Any] = []
    for value in values:
        parts += list(value.ravel()) if isinstance(value, np.ndarray) else [value]
    return tuple(parts)


def _neighbours(requested: Requested, rows: int) -> Neighbours:
    found = requested.neighbours
    if found.complete and found.distances is None:
        return Neighbours.complete(rows)
    if found.distances is None:
        return Neighbours.adjacent(rows, found.pairs)
    distances = np.full((rows, rows), np.inf)
    np.fill_diagonal(distances, 0.0)
    distances[found.pairs[:, 0], found.pairs[:, 1]] = [float(d) for d in found.distances]
    return Neighbours.metric(distances)


def _cost(system: TableSystem, prior: Array | None) -> Array:
    """The loss of each pair without the prior."""
    if system.worst:
        weight, worst = system.worst[0]
        return as_float(worst * weight)
    assert prior is not None and system.expected is not None
    weighted = as_float(system.expected)
    return np.divide(weighted, prior[:, None], out=np.zeros_like(weighted), where=prior[:, None] > 0)


def compared(decision: SolvedTable) -> tuple[list[Alternative], dict[str, Any] | None]:
    """The alternatives of the plan and what its mechanism is recognised as (None if nothing)."""
    context = context_of(decision)
    if context is None:
        if not decision.settings.alternatives or not decision.model.parties:
            return [], None
        from privspec.families.tables.votes import rules_beside  # a vote may be many modules away

        return rules_beside(decision), None
    table = decision.exact.to_array()
    found = recognise(context, table, SAME)
    named = None if found is None else {"name": found.name, "text": found.text, "note": found.note}
    if not decision.settings.alternatives:
        return [], named
    offset = float(decision.system.loss.constant)
    least = -inf if decision.proof[0] is None else decision.proof[0]
    others = [
        # their tables are doubles: a rounding must not make them better than anything can be
        Alternative(c.name, max(c.loss + offset, least if c.admissible else -inf), c.reason, c.admissible)
        for c in comparisons(context)
        if float(np.max(np.abs(c.table - table))) > SAME
    ]
    return others, named


# --- what lines cost ------------------------------------------------------------------------------


RESOLVED = 3 * A_SECOND
"""Work up to which a solution is found again for each price; larger ones are priced to first order."""
SLACK_SHARE = 1e-6
"""Relative change of the loss below which a line does not bind."""
_PRICED = ("epsilon", "rho", "mu", "delta", "bound", "tolerance")


Dual = table_programs.CompleteDual | table_programs.PairDual | CurveDual


@dataclass(frozen=True, eq=False, slots=True)
class _Question:
    """A line with a change of it: `change` in the words of plans; `figure` what grows, None if the line is left out."""

    line: Line
    change: str
    figure: Figure | None = None


def binding_prices(decision: SolvedTable, notes: list[str] | None = None) -> list[dict[str, Any]]:
    """For each line that binds, the relative change of the loss for a tenth more of what it allows, or without it.

    `notes` is told where the user's time limit ended this early.
    """
    if not decision.settings.alternatives or not decision.loss:
        return []
    lines = lines_of(decision.model, decision.system.problem)[::-1]
    asked = [q for line in lines if _may_bind(decision, line) for q in _questions(decision, line)]
    # what solving it once more takes
    again = work(to_program(decision.system).program) * max(int(decision.solver()["iterations"]), 1)
    answers = _solved_again(decision, asked, notes) if again <= RESOLVED else _first_order(decision, asked)
    return [
        {"line": question.line.number, "text": question.line.text, "change": question.change, "loss_change": change}
        | how
        for question, change, how in answers
        if abs(change) > SLACK_SHARE
    ]


def _questions(decision: SolvedTable, line: Line) -> Iterator[_Question]:
    if isinstance(line, ConditionLine):
        yield _Question(line, "leaving it out")
        return
    for figure in line.changes(decision.system.problem):
        if isinstance(figure, Figure) and figure.name in _PRICED and figure.now > 0:
            more = figure.now * STEP
            yield _Question(line, f"{figure.name} {readable(figure.now)} -> {readable(more)}", figure)


def _may_bind(decision: SolvedTable, line: Line) -> bool:
    """Whether some multiplier of the line is not zero, as far as the proof tells."""
    if not isinstance(decision, LinearTable):
        return True
    if isinstance(line, PrivacyLine):
        return any(bool(np.any(part.largest > 0)) for _, part in _blocks(decision, line))
    return any(value for value in _multipliers(decision, line))


def _blocks(decision: LinearTable, line: PrivacyLine) -> list[tuple[table_programs.Privacy, Dual]]:
    """The blocks of a line, with their multipliers."""
    lowered, obligations = decision.lowered, decision.system.problem.obligations
    every = zip(lowered.blocks, lowered.program.privacy, decision.solution.dual.privacy, strict=True)
    return [(block, part) for index, block, part in every if obligations[index].line == line.number]


def _multipliers(decision: LinearTable, line: Line, *words: str) -> list[float]:
    """Those of the rows of a line, of all or of those that come from some words."""
    dual = decision.solution.dual
    rows = zip(decision.lowered.lines, (*dual.equalities.tolist(), *dual.inequalities.tolist()), strict=True)
    return [value for row, value in rows if row.line == line.number and (not words or row.key[0] in words)]


# --- by solving again -----------------------------------------------------------------------------


def _solved_again(
    decision: SolvedTable, asked: list[_Question], notes: list[str] | None
) -> Iterator[tuple[_Question, float, dict[str, Any]]]:
    trials = Trials.of(decision.model, decision.settings, 3 * RESOLVED, loss_of)
    for question in asked:
        figure, problem = question.figure, decision.system.problem
        if figure is None:
            changed = question.line.without(problem)
        else:
            changed = figure.apply(problem, figure.value(figure.now * (STEP - 1)))
        try:
            loss = trials.loss(changed)
        except EnoughError:
            return
        except OutOfTimeError:
            if notes is not None:
                notes.append("the time limit ended the search for prices: there may be more lines that bind")
            return
        if loss is not None:
            yield question, (loss - decision.loss) / abs(decision.loss), {}


# --- to first order -------------------------------------------------------------------------------


def _first_order(decision: SolvedTable, asked: list[_Question]) -> Iterator[tuple[_Question, float, dict[str, Any]]]:
    if not isinstance(decision, LinearTable):
        return
    for question in asked:
        if question.figure is not None:
            change = _slope(decision, question.line, question.figure)
            if change is not None:
                # in the logarithm of the loss, where it has one
                share = change / abs(decision.loss)
                yield question, math.expm1(share) if decision.loss > 0 else share, {"first_order": True}


def _slope(decision: LinearTable, line: Line, figure: Figure) -> float | None:
    """The change of the loss, to first order, for a tenth more."""
    if not isinstance(line, PrivacyLine):
        paid = sum(_multipliers(decision, line, "accuracy", "lie"))
        return -float(figure.now * (STEP - 1)) * paid if figure.name == "bound" else None
    blocks = _blocks(decision, line)
    if figure.name != "delta":
        return sum(_ratio_slope(decision, block, part) for block, part in blocks)
    return sum(_delta_slope(block, part) for block, part in blocks)


def _ratio_slope(decision: LinearTable, block: table_programs.Privacy, part: Dual) -> float:
    table = decision.solution.table
    if isinstance(block, CurveRatio):
        assert isinstance(part, CurveDual)
        return -sum(one.multiplier * block.growth(one.level, float(STEP - 1)) for one in part.supports)
    shown = np.asarray(table @ membership(table_programs.classes(block, table.shape[1])).T)
    if isinstance(block, table_programs.CompleteRatio):
        assert isinstance(part, table_programs.CompleteDual)
        return -_growth(block.log_ratio) * float(np.sum(part.above.sum(axis=0) * shown.min(axis=0)))
    assert isinstance(part, table_programs.PairDual)
    growth = np.array([_growth(table_programs.log_ratio_of(block, k)) for k in range(len(block.pairs))])
    return -float(np.sum(part.values * growth[part.pairs] * shown[block.pairs[part.pairs, 1], part.columns]))


def _growth(log_ratio: Fraction) -> float:
    """By how much a ratio grows, to first order, when its logarithm grows by a tenth."""
    return math.exp(log_ratio) * float(log_ratio * (STEP - 1))


def _delta_slope(block: table_programs.Privacy, part: Dual) -> float:
    if isinstance(block, table_programs.CompleteRatio | CurveRatio) or not isinstance(part, table_programs.PairDual):
        return 0.0
    if block.slack:
        return -float(block.slack * (STEP - 1)) * float(part.values.sum())
    largest = np.zeros(len(block.pairs))
    np.maximum.at(largest, part.pairs, part.values)
    return -float(block.delta * (STEP - 1)) * float(largest.sum())
