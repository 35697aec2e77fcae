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

from privspec.families.tables.changes import A_SECOND, EnoughError, Figure, Trials, work
from privspec.families.tables.decision import LinearTable
from privspec.families.tables.lines import ConditionLine, Line, PrivacyLine, lines_of
from privspec.families.tables.program import to_program
from privspec.families.tables.system import FiniteSystem
from privspec.model.graph import Model
from privspec.model.values import readable
from privspec.solvers.programs import OutOfTimeError
from privspec.solvers.table_programs import AtomRatio, CompleteDual, CompleteRatio, PairDual, PairRatio, classes
from privspec.solvers.table_rows import membership

if TYPE_CHECKING:
    from privspec.families.tables.decision import TableDecision

STEP = Fraction(11, 10)
"""Prices are for a tenth more of an amount."""
RESOLVED = 3 * A_SECOND
"""Work up to which a solution is found again for each price; larger ones are priced to first order."""
SLACK_SHARE = 1e-6
"""Relative change of the loss below which a line does not bind."""
_PRICED = ("epsilon", "delta", "bound", "tolerance")


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
    if not decision.settings.alternatives or not decision.exact_loss:
        return []
    lines = lines_of(decision.model)[::-1]
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
    for figure in line.changes(decision.model):
        if isinstance(figure, Figure) and figure.name in _PRICED and figure.now > 0:
            more = figure.now * STEP
            yield _Question(line, f"{figure.name} {readable(figure.now)} -> {readable(more)}", figure)


def _may_bind(decision: TableDecision, line: Line) -> bool:
    """Whether some multiplier of the line is not zero, as far as the proof tells."""
    if not isinstance(decision, LinearTable):
        return True
    lowered, dual = decision.lowered, decision.solution.dual
    if isinstance(line, PrivacyLine):
        index = next(k for k, r in enumerate(decision.model.requirements) if r is line.requirement)
        return any(
            bool(np.any((part.above if isinstance(part, CompleteDual) else part.values) > 0))
            for block, part in zip(lowered.blocks, dual.privacy, strict=True)
            if block == index
        )
    rows = zip((*lowered.equalities, *lowered.inequalities), (*dual.equalities, *dual.inequalities), strict=True)
    return any(value for row, value in rows if row.span == line.span)


# --- by solving again -----------------------------------------------------------------------------


def _solved_again(
    decision: TableDecision, asked: list[_Question], notes: list[str] | None
) -> Iterator[tuple[_Question, float, dict[str, Any]]]:
    trials = Trials(decision.settings, 3 * RESOLVED, decision.ways.again)
    for question in asked:
        figure = question.figure
        if figure is None:
            changed = question.line.without(decision.model)
        else:
            changed = figure.apply(decision.model, figure.value(figure.now * (STEP - 1)))
        try:
            loss = trials.loss(changed, _lowered_again(decision, question.line, changed))
        except EnoughError:
            return
        except OutOfTimeError:
            if notes is not None:
                notes.append("the time limit ended the search for prices: there may be more lines that bind")
            return
        if loss is not None:
            yield question, (loss - decision.loss) / abs(decision.loss), {}


def _lowered_again(decision: TableDecision, line: Line, changed: Model) -> FiniteSystem | None:
    """The changed spec lowered, where only an amount of privacy differs: costs and neighbours stay as they are."""
    if not isinstance(line, PrivacyLine):
        return None
    return decision.system.given(changed.requirements)


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
    lowered, dual = decision.lowered, decision.solution.dual
    if not isinstance(line, PrivacyLine):
        if figure.name != "bound":
            return None
        rows = zip(lowered.inequalities, dual.inequalities, strict=True)
        return -float(figure.now * (STEP - 1)) * sum(float(value) for row, value in rows if row.span == line.span)
    index = next(k for k, r in enumerate(decision.model.requirements) if r is line.requirement)
    change = 0.0
    for number, block, part in zip(lowered.blocks, lowered.program.privacy, dual.privacy, strict=True):
        if number == index:
            epsilon = figure.name == "epsilon"
            change += _ratio_slope(decision, block, part) if epsilon else _delta_slope(block, part)
    return change


def _ratio_slope(
    decision: LinearTable, block: CompleteRatio | PairRatio | AtomRatio, part: CompleteDual | PairDual
) -> float:
    table = decision.solution.table
    shown = np.asarray(table @ membership(classes(block, table.shape[1])).T)
    if isinstance(block, CompleteRatio):
        assert isinstance(part, CompleteDual)
        return -_growth(block.log_ratio) * float(np.sum(part.above.sum(axis=0) * shown.min(axis=0)))
    assert isinstance(part, PairDual)
    growth = np.array([_growth(log_ratio) for log_ratio in block.log_ratios])
    each = growth[part.pairs] if len(growth) > 1 else growth[0]
    return -float(np.sum(part.values * each * shown[block.pairs[part.pairs, 1], part.columns]))


def _growth(log_ratio: Fraction) -> float:
    """By how much a ratio grows, to first order, when its logarithm grows by a tenth."""
    return math.exp(log_ratio) * float(log_ratio * (STEP - 1))


def _delta_slope(block: CompleteRatio | PairRatio | AtomRatio, part: CompleteDual | PairDual) -> float:
    if isinstance(block, CompleteRatio) or isinstance(part, CompleteDual):
        return 0.0
    if isinstance(block, AtomRatio):
        return -float(block.slack * (STEP - 1)) * float(part.values.sum())
    largest = np.zeros(len(block.pairs))
    np.maximum.at(largest, part.pairs, part.values)
    return -float(block.delta * (STEP - 1)) * float(largest.sum())
