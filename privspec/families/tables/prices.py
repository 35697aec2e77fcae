"""What binds, and what asking for a little less would bring: by solving again, or to first order from the dual point.

To first order, in the logarithm of the loss: with multipliers z of f_a <= e^t f_b + slack, the derivative of the least
loss by t is -sum z e^t f_b, that by delta minus the multiplier of the budget of each pair, which is its largest z.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from privspec.core.rounding import readable
from privspec.families.tables.changes import ConditionLine, Figure, Line, PrivacyLine, lines_of
from privspec.families.tables.decision import LinearTable
from privspec.families.tables.system import to_program
from privspec.families.tables.trials import A_SECOND, EnoughError, Trials, work
from privspec.solvers.programs import OutOfTimeError
from privspec.solvers.table_divergences import CurveDual, CurveRatio
from privspec.solvers.table_programs import (
    AtomRatio,
    CompleteDual,
    CompleteRatio,
    PairDual,
    Privacy,
    classes,
    log_ratio_of,
)
from privspec.solvers.table_rows import membership

if TYPE_CHECKING:
    from privspec.families.tables.decision import TableDecision

STEP = Fraction(11, 10)
"""Prices are for a tenth more of an amount."""
RESOLVED = 3 * A_SECOND
"""Work up to which a solution is found again for each price; larger ones are priced to first order."""
SLACK_SHARE = 1e-6
"""Relative change of the loss below which a line does not bind."""
_PRICED = ("epsilon", "rho", "mu", "delta", "bound", "tolerance")


Dual = CompleteDual | PairDual | CurveDual


@dataclass(frozen=True, eq=False, slots=True)
class _Question:
    """A line with a change of it: `change` in the words of plans; `figure` what grows, None if the line is left out."""

    line: Line
    change: str
    figure: Figure | None = None


def binding_prices(decision: TableDecision, notes: list[str] | None = None) -> list[dict[str, Any]]:
    """For each line that binds, the relative change of the loss for a tenth more of what it allows, or without it.

    `notes` is told where the user's time limit ended this early.
    """
    if not decision.settings.alternatives or not decision.loss:
        return []
    lines = lines_of(decision.model, decision.system.problem)[::-1]
    asked = [q for line in lines if _may_bind(decision, line) for q in _questions(decision, line)]
    answers = _solved_again(decision, asked, notes) if _work(decision) <= RESOLVED else _first_order(decision, asked)
    return [
        {"line": question.line.number, "text": question.line.text, "change": question.change, "loss_change": change}
        | how
        for question, change, how in answers
        if abs(change) > SLACK_SHARE
    ]


def _work(decision: TableDecision) -> int:
    """What solving it once more takes."""
    return work(to_program(decision.system).program) * max(int(decision.solver()["iterations"]), 1)


def _questions(decision: TableDecision, line: Line) -> Iterator[_Question]:
    if isinstance(line, ConditionLine):
        yield _Question(line, "leaving it out")
        return
    for figure in line.changes(decision.system.problem):
        if isinstance(figure, Figure) and figure.name in _PRICED and figure.now > 0:
            more = figure.now * STEP
            yield _Question(line, f"{figure.name} {readable(figure.now)} -> {readable(more)}", figure)


def _may_bind(decision: TableDecision, line: Line) -> bool:
    """Whether some multiplier of the line is not zero, as far as the proof tells."""
    if not isinstance(decision, LinearTable):
        return True
    if isinstance(line, PrivacyLine):
        return any(bool(np.any(part.largest > 0)) for _, part in _blocks(decision, line))
    return any(value for value in _multipliers(decision, line))


def _blocks(decision: LinearTable, line: PrivacyLine) -> list[tuple[Privacy, Dual]]:
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
    decision: TableDecision, asked: list[_Question], notes: list[str] | None
) -> Iterator[tuple[_Question, float, dict[str, Any]]]:
    trials = Trials.of(decision.model, decision.settings, 3 * RESOLVED, decision.ways.again)
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


def _first_order(decision: TableDecision, asked: list[_Question]) -> Iterator[tuple[_Question, float, dict[str, Any]]]:
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


def _ratio_slope(decision: LinearTable, block: Privacy, part: Dual) -> float:
    table = decision.solution.table
    if isinstance(block, CurveRatio):
        assert isinstance(part, CurveDual)
        return -sum(one.multiplier * block.growth(one.level, float(STEP - 1)) for one in part.supports)
    shown = np.asarray(table @ membership(classes(block, table.shape[1])).T)
    if isinstance(block, CompleteRatio):
        assert isinstance(part, CompleteDual)
        return -_growth(block.log_ratio) * float(np.sum(part.above.sum(axis=0) * shown.min(axis=0)))
    assert isinstance(part, PairDual)
    growth = np.array([_growth(log_ratio_of(block, k)) for k in range(len(block.pairs))])
    return -float(np.sum(part.values * growth[part.pairs] * shown[block.pairs[part.pairs, 1], part.columns]))


def _growth(log_ratio: Fraction) -> float:
    """By how much a ratio grows, to first order, when its logarithm grows by a tenth."""
    return math.exp(log_ratio) * float(log_ratio * (STEP - 1))


def _delta_slope(block: Privacy, part: Dual) -> float:
    if isinstance(block, CompleteRatio | CurveRatio) or not isinstance(part, PairDual):
        return 0.0
    if isinstance(block, AtomRatio):
        return -float(block.slack * (STEP - 1)) * float(part.values.sum())
    largest = np.zeros(len(block.pairs))
    np.maximum.at(largest, part.pairs, part.values)
    return -float(block.delta * (STEP - 1)) * float(largest.sum())
