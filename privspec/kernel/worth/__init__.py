"""What a plan states of its loss and of its lines, judged by one rule for every form of block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from privspec.kernel.core.numbers import ZERO, digits_down
from privspec.kernel.core.problem import Frame, Obligation, PlanUnderCheck, Rules
from privspec.kernel.core.reading import JsonNode, frozen

OPTIMAL_GAP = Fraction(1, 10**6)
Line = tuple[int, str, Fraction, Fraction]
"""Its number, its text, what it asks for at most, and what is."""
SAID, SIMULATED = ("expression", "units", "kind"), ("standard_error", "profiles")
CLOSE = 10**9
"""Inverse of the share by which noise may differ from that of the places named, and exceed what a line asks for."""


@frozen
class LowerBound(ABC):
    """What no mechanism of a class is below, as a function of what the lines allow: made by the certificates alone.

    `among`: the words for the class, any of which a plan may use.
    """

    among: tuple[str, ...]

    @abstractmethod
    def at(self, lines: tuple[Obligation, ...]) -> Fraction:
        """At most the loss of every mechanism of the class that satisfies lines like its own, at any amounts."""

    def restated(self, mus: JsonNode) -> LowerBound:
        """The same with other witnesses of what amounts allow that have no closed form."""
        mus.same([])
        return self


class PriceableRules(Rules):
    """Rules of a form of which an amount may be picked; `claims` are the keys of its proofs, the bound last."""

    claims: tuple[str, ...]

    def measured(self, case: PlanUnderCheck) -> tuple[object, Fraction, list[str]]:
        """What is executed, its loss, and how that is said; all but the bound is judged."""
        raise NotImplementedError

    def free(self, executed: Any) -> bool:
        """Whether the block has no loss of its own: then what is proved to be above 0 is not met at all."""
        raise NotImplementedError

    def floor(self, executed: Any) -> Fraction:
        """At most the loss of the block, whatever its lines are."""
        raise NotImplementedError

    def proofs(self, frame: Frame, executed: Any, items: JsonNode) -> tuple[Sequence[LowerBound], tuple[str, ...]]:
        """What each of some proofs shows, and the words for the mechanisms that they are about."""
        raise NotImplementedError


def judge_bounded(
    case: PlanUnderCheck,
    exact: Fraction | None,
    bound: LowerBound | None,
    noun: str,
    words: list[str],
    without: str = "",
) -> None:
    """`judge_loss` by what was shown of the lines of the plan itself; other lines are asked of `case.bounded`.

    Args: without, what a plan without a bound says that it is about.
    """
    case.bounded = bound
    derived, classes = (None, (without,)) if bound is None else (bound.at(case.frame.obligations), bound.among)
    judge_loss(case, exact, derived, classes, noun, words)


def judge_loss(
    case: PlanUnderCheck,
    exact: Fraction | None,
    derived: Fraction | None,
    classes: tuple[str, ...],
    noun: str,
    words: list[str],
) -> None:
    """The value is the nearest double of the exact one, and the bound at most the one that is derived, if there is any.

    Args: exact, None for a mean over simulated data, which is only read, and never optimal; classes, what the bound may
        be said to be about, and one of these, `noun`; words, expression, units and kind.
    """
    known, drawn = dict[str, object](zip(SAID, words, strict=True)), SIMULATED if exact is None else ()
    value, low, gap, among, *more = case.loss.stating(known, "value", "lower_bound", "relative_gap", "among", *drawn)
    rounded, mean = value.double(), "mean " * (exact is None)
    if exact is None:
        off, count = more[0].double(), more[1].integer(1)
        text = f"tested, not proved: a mean over {count} simulations, standard error {off:.2g}"
        case.says("loss", off >= 0 and case.status == "feasible", text, derived=False)
    else:
        value.same(float(exact))
        case.says("loss", True, f"the loss of what is executed is {rounded:.6g}")
    if among.text() not in classes:
        raise among.wrong("is not what the bound is about")
    if derived is None:
        low.same(None)
        gap.same(None)
        if case.status == "optimal":
            case.says("bound", False, "the plan is said to be optimal without a bound")
        return
    stated = Fraction(low.double())
    apart = (Fraction(rounded) - stated) / (Fraction(abs(rounded)) or 1)
    gap.same(float(apart))
    text = f"no {noun} has a {mean}loss below {digits_down(min(stated, derived))} ({among.text()})"
    case.says("bound", stated <= derived and apart >= 0, text)
    holds = (case.status == "optimal") == (apart <= OPTIMAL_GAP and exact is not None)
    case.says("bound", holds, f"the {mean}loss is within {near(apart)} of the bound: {case.status}")


def near(apart: Fraction) -> str:
    """A relative gap, at least the one at which a plan is optimal: what is below hangs on the solver's processor."""
    return f"{float(max(apart, OPTIMAL_GAP)):.2g}"


def judge_lines(case: PlanUnderCheck, found: list[Line], spare: Fraction, *, stated: bool) -> None:
    """Each line with what it asks for at most, and what is: up to a share of it more; whether the plan states both."""
    known = [{"line": n, "text": t, "value": float(v), "bound": float(b)} for n, t, b, v in found]
    case.accuracy.same(known if stated else [])
    for number, (line, _, limit, value) in enumerate(found):
        over = f", met to within {float(value / limit - 1):.0e} of it" if value > limit > 0 else ""
        text = f"line {line}: {float(value):.9g}, asked for at most {float(limit):.9g}{over}"
        case.says("accuracy", value <= limit * (1 + spare), text, number)


def listed(names: list[str]) -> str:
    """Names, the last two with an "and"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def judge_worth(
    case: PlanUnderCheck,
    exact: Fraction | None,
    derived: Fraction | None,
    classes: tuple[str, ...],
    noun: str,
    words: list[str],
    lines: Iterable[Line] = (),
) -> None:
    """The loss, its bound and lines of accuracy, which hold exactly, of a plan without requirements of fairness."""
    judge_loss(case, exact, derived, classes, noun, words)
    judge_lines(case, list(lines), ZERO, stated=True)
    case.fairness.same(None)
