"""What a plan promises line by line, and whether theorems of the rules keep it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from privspec.kernel.changes import Change
from privspec.kernel.core.numbers import ZERO
from privspec.kernel.core.problem import PLAN, Guarantee, Mechanism, PlanUnderCheck, notes_of
from privspec.kernel.core.reading import JsonNode, Positive, Refused, Size, Whole, frozen, read
from privspec.kernel.divergences import Condition
from privspec.kernel.losses import Loss, Response
from privspec.kernel.measures import APPROXIMATE, GAUSSIAN, PURE, RENYI, ZERO_CONCENTRATED, Measure
from privspec.kernel.rules import NOTHING, Hint, derive
from privspec.kernel.terms import Structured, Term

Amounts = dict[str, Fraction]
STATED = {frozenset(one.figures): one for one in (PURE, APPROXIMATE, GAUSSIAN, ZERO_CONCENTRATED, RENYI)}
"""What figures alone say, by which of them there are; others are those of the measure that is asked for."""


class OneOutput(Mechanism):
    """What is executed for a block of one output."""

    __slots__ = ()
    block: Any

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.block.output,)


def are_chances(values: Sequence[Fraction | int], whole: Fraction | int = 1) -> bool:
    """Whether some numbers are chances, in shares of the whole: none below 0, and the whole together."""
    return bool(values) and min(values) >= 0 and sum(values) == whole


@frozen
class SharedBudget:
    """So many rounds share a budget: what each spends, and how many one voter may take part in."""

    count: Positive
    budget: Fraction
    each: Fraction
    fit: Positive

    def __post_init__(self) -> None:
        if self.each < 0 or self.count * self.each != self.budget or self.fit > self.count:
            raise Refused("has rounds that do not share their budget")


@frozen
class Accuracy:
    """A line that asks for `weight` times an error, of the kind that the loss is about, to be `bound` at most."""

    weight: Size
    bound: Fraction
    line: Whole
    text: str


@frozen
class Question:
    """One change of a line: what it has to satisfy (`asked`), what the plan states of it, and what helps to show it.

    `single`: the largest excess of a single value, at most, where a line bounds that too.
    """

    change: Change
    asked: Amounts
    stated: Amounts
    hint: Hint = NOTHING
    single: tuple[Fraction, Fraction] | None = None


@frozen
class Line:
    """What a line promises of whoever sees some outputs, by every change of its neighbours.

    `by_loss`: what is let through has to prove what is asked, and what is stated need not.
    """

    number: int
    seen: frozenset[str]
    measure: Measure
    questions: tuple[Question, ...]
    fits: bool = True
    by_loss: bool = False


@frozen
class Verdict:
    """Whether a line of a plan holds, and what is let through on each of its changes at most."""

    holds: bool
    line: int
    losses: tuple[Loss, ...]

    def largest(self, keys: tuple[str, ...]) -> Amounts:
        """The largest of some figures of all changes."""
        return {key: max((one.figure(key) for one in self.losses), default=ZERO) for key in keys}


Read = tuple[Term, list[Line]]


def promised(case: PlanUnderCheck) -> Read:
    """What the rules of its block have read of a plan: what is executed, and what every line promises."""
    found: Any = case.promised
    assert found is not None
    term, lines = found
    return term, lines


def plan_within(problem: JsonNode, body: dict[str, object], place: str) -> PlanUnderCheck:
    """What is said of a problem inside of a plan, which does not repeat what the plan says of all of it."""
    given = {"format": PLAN, "spec": None, "assumptions": None, "digest": "", "problem": problem.value}
    if set(body) & {*given, "exposures"}:
        raise Refused(f"{place} repeats what the plan says")
    return read(PlanUnderCheck, JsonNode(body | given, place))


def epsilon_of(term: Term, change: Change) -> Fraction | None:
    """At least the epsilon of all that a term shows, on a change; None where it has no limit."""
    pure = derive(term, term.outputs, change).loss.epsilons()
    return None if pure is None else sum(pure, ZERO)


def verdict(term: Term, line: Line) -> Verdict:
    """A line holds if for every change some theorem is strong enough for what is asked and what is stated."""
    losses = tuple(derive(term, line.seen, one.change, one.hint).loss for one in line.questions)
    proved = line.by_loss or any(_proves(one, line.measure) for one in line.questions)
    within = all(_within(loss, line.measure, one) for loss, one in zip(losses, line.questions, strict=True))
    return Verdict(line.fits and proved and within and bool(line.questions), line.number, losses)


def _within(loss: Loss, measure: Measure, question: Question) -> bool:
    """What is let through is no more than what is stated, and within what is asked."""
    stated = STATED.get(frozenset(question.stated), measure)
    if set(stated.figures) != set(question.stated) or not loss.satisfies(stated.condition(question.stated)):
        return False
    return loss.satisfies(measure.condition(question.asked)) and (
        question.single is None or _single(loss, *question.single)
    )


def _proves(question: Question, measure: Measure) -> bool:
    """Whether what the plan states proves what is asked, of one of the changes at least."""
    stated, asked = question.stated, question.asked
    if set(stated) == set(asked):
        return all(stated[key] <= asked[key] for key in asked) and stated.get("order") == asked.get("order")
    return _implies(stated, measure.condition(asked))


def _implies(stated: Amounts, condition: Condition) -> bool:
    """Whether figures of Gaussian noise or of a ratio prove a condition."""
    if not set(stated) <= set(GAUSSIAN.figures + APPROXIMATE.figures):
        return False
    pure = tuple(Response(stated[key]) for key in PURE.figures if key in stated)
    loss = Loss(stated.get("mu", ZERO) ** 2, pure, stated.get("delta", ZERO))
    return loss.satisfies(condition)


def _single(loss: Loss, epsilon: Fraction, most: Fraction) -> bool:
    (factor,) = loss.factors
    excess = getattr(factor, "largest_excess", None)
    return excess is not None and excess(epsilon) <= most


@frozen
class Promise:
    """What a guarantee asks of all that a term shows, the notes that it rests on, and what is said of it.

    `words` has {} for the first of the `figures`, which is derived; the others are those asked for. `otherwise`: what
    is said where the guarantee does not hold, if that is something else, with {} for what is stated as well. `by_loss`:
    as of a `Line`.
    """

    guarantee: Guarantee
    questions: tuple[Question, ...]
    notes: tuple[str, ...]
    words: str
    figures: tuple[str, ...] = ("epsilon",)
    otherwise: str = ""
    by_loss: bool = False


def judge_promises(case: PlanUnderCheck, term: Term, promises: list[Promise]) -> None:
    """Whether a plan states a figure between what is derived and what is asked for, line by line."""
    lines = list[Line]()
    for one in promises:
        guarantee, (figure, *others) = one.guarantee, one.figures
        asked, said = guarantee.obligation, guarantee.achieved
        fits = guarantee.because == one.notes and set(said) == set(one.figures)
        fits = fits and all(said[name] == guarantee.asked[name] for name in others)
        lines.append(Line(asked.line, frozenset(asked.seen), asked.measure.of, one.questions, fits, one.by_loss))
        if case.part:
            continue
        found = verdict(term, lines[-1])
        least = float(found.largest((figure,))[figure])
        tail = one.otherwise or f"{one.words}; the plan states {{:.8g}}, where {{:.8g}} is asked for"
        figures = least, float(said.get(figure, 0)), float(guarantee.asked.get(figure, 0))
        text = (one.words if found.holds else tail).format(*figures)
        case.says("privacy", found.holds, f"{', '.join(asked.outputs)}, {asked.neighbours}: {text}", guarantee.number)
    case.promised = term, lines


def of_one_figure(
    case: PlanUnderCheck, term: Structured, guarantee: Guarantee, change: Change, notes: tuple[str, ...], sees: str
) -> Promise:
    """What a line asks of noise by one figure, about one change of the records or numbers of a curator.

    Args: notes, what noise of this law rests on; sees, what whoever sees the outputs sees, in words.
    """
    asked, measure, (name,) = guarantee.obligation, guarantee.obligation.measure, term.law.figures
    rests = *notes, *notes_of(asked.units)
    fits = guarantee.because == rests and set(guarantee.achieved) == {name} and measure.of.of_laws
    if not fits or measure.each:
        raise case.guarantees.wrong("rests on notes, or gives figures, that do not fit the noise")
    figures = ", ".join(f"{key} = {float(value):.8g}" for key, value in guarantee.asked.items())
    case.says("view", True, f"whoever sees {' and '.join(asked.seen)} sees {sees}", guarantee.number)
    least, line = f"{name} is {{:.8g}} at most, which", f"{measure.name} with {figures}"
    otherwise = f"{least} does not give, with the {{:.8g}} that is stated, {line}"
    question = Question(change, guarantee.asked, guarantee.achieved)
    return Promise(guarantee, (question,), rests, f"{least} gives {line}", (name,), otherwise)
