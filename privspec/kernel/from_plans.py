"""Plans of format 2 as terms and changes, and the verdict of the rules on every line of one.

This file goes with that format: format 3 states terms and changes themselves. It reads what the readers of each form
read, which know every key, and hands the rules what is executed and what neighbours differ in. What it does not know it
refuses: a form that no function below is about is not judged, and no line of it holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

from privspec.kernel.changes import Anything, Rows, Units
from privspec.kernel.core.linear_privacy import read_promises
from privspec.kernel.core.problem import Case, Guarantee, Obligation, read_guarantees
from privspec.kernel.core.reading import Item, Refused, parse, read
from privspec.kernel.designs import Design, case_of
from privspec.kernel.forms import HOMES, rules_of
from privspec.kernel.judging import DEFECTS, read_case
from privspec.kernel.priced import PricedRules, at
from privspec.kernel.promises import Line, Question, Verdict, promised, verdict
from privspec.kernel.rules import Hint
from privspec.kernel.systems import (
    PLAIN_UNITS,
    PartOfSystem,
    SystemRules,
    picked_shares,
    read_system,
    units_within,
)
from privspec.kernel.terms import Independent, Term, Times
from privspec.kernel.voting import read_executed as read_voted

BITS = 256


Read = tuple[Term, list[Line]]


def judge_privacy(plan: str | Item) -> list[Verdict]:
    """Every line of a plan, judged by the rules alone. Never raises for a bad plan: no line of it holds then."""
    try:
        return _verdicts(_read(parse(plan) if isinstance(plan, str) else plan))
    except Refused as reason:
        return [Verdict(False, 0, (), f"refused: {reason}")]
    except DEFECTS as error:
        return [Verdict(False, 0, (), f"cannot be judged ({type(error).__name__}: {str(error)[:80]})")]


def _read(plan: Item) -> Read:
    """What is executed and promised by a plan, of which every key is known and the digest fits."""
    case, design = read_case(plan)
    if design is not None:
        problem, picked, outcomes = design.fields("problem", "chosen", "outcomes")
        known = read(Design, problem)
        assert isinstance(known, Design)
        number = picked.integer(0, len(known.alternatives) - 1)
        came = outcomes.items(len(known.alternatives))[number]
        case = case_of(case, known, known.alternatives[number], came, chosen=True)
    return _of_form(case)


def _of_form(case: Case) -> Read:
    form = case.block.form(*FORMS)
    if any(data.asserted for data in case.frame.data) and form not in ("linear", "priced"):
        raise case.problem.wrong("asserts how a function moves, which such a block does not look at")
    return FORMS[form](case)


def _verdicts(found: Read) -> list[Verdict]:
    term, lines = found
    return [verdict(term, line) for line in lines]


# --- additive noise ----------------------------------------------------------------------------------------------


def _linear(case: Case) -> Read:
    """Noisy linear answers, drawn by a curator, in messages, or in shares of a secure sum."""
    _, term, promises = read_promises(case)
    return term, [line for _, line in promises]


def _by_its_rules(case: Case) -> Read:
    """A form whose own judge goes by theorems."""
    rules_of(case.block.form(*HOMES)).privacy(case)
    if not all(claim.holds for claim in case.found if claim.name != "privacy"):
        raise case.mechanism.wrong("does not hold")
    term, lines = promised(case)
    return term, lines


def _voting(case: Case) -> Read:
    """A winner that is drawn from ballots."""
    voted = read_voted(case.mechanism, case.frame)
    if not all(holds for _, holds, _ in voted.fits(case.frame)):
        raise case.mechanism.wrong("draws a winner in a way that the problem does not allow")
    return voted.term, [line for _, line in voted.promised(case)]


# --- an amount that is picked ------------------------------------------------------------------------------------


def _priced(case: Case) -> Read:
    """A plan at the number that is picked, which lies in its range."""
    asked, _, scalars, own = PricedRules().inner(case)
    picked = scalars.exact(0)
    if picked < asked.low or (asked.high is not None and picked > asked.high):
        raise case.mechanism.wrong(f"picks {asked.name} out of its range")
    own.frame = at(replace(case.frame, blocks=(asked.block,)), asked.name, picked)
    return _of_form(own)


# --- systems -----------------------------------------------------------------------------------------------------


def _system(case: Case) -> Read:
    """Independent parts, each read as a plan of its own; then what they let through together, line by line."""
    rules, system = SystemRules(), read_system(case)
    family, _, picked = case.mechanism.fields("family", "components", optional=("choices",))
    family.same("composite")
    cases = [rules.case_of(case, part, plan) for part, plan in rules.plans(case, system)]
    known = list(zip(cases, system.parts, map(_of_form, cases), strict=True))
    chosen = picked_shares(picked, system.choices)
    parts = [Times(term, p.times, p.only_if) if p.times > 1 or p.only_if else term for _, p, (term, _) in known]
    whole = Independent(tuple(parts))
    if whole.outputs != frozenset(system.outputs):
        raise case.block.wrong("has parts that do not give its outputs, each of them once")
    for _, _, own in known:
        if not all(one.holds for one in _verdicts(own)):
            raise case.mechanism.wrong("has a part that does not keep to its own lines")
    return whole, [_together(guarantee, known) for guarantee in read_guarantees(case.guarantees, case.frame, chosen)]


Part = tuple[Case, PartOfSystem, Read]


def _together(guarantee: Guarantee, known: list[Part]) -> Line:
    """A line of what all parts show together, moved by one unit in all inputs at once."""
    asked, number, reached = guarantee.obligation, guarantee.number, guarantee.achieved
    sharing = [(own, part.lines.index(number), part.times) for own, part, _ in known if number in part.lines]
    made = [(own.frame.obligations[line].measure, times) for own, line, times in sharing]
    single = sum(times for _, times in made) == 1
    if single:
        ((one, _),) = made
        fits = (one.name, one.distance, one.each) == (asked.measure.name, asked.measure.distance, asked.measure.each)
        fits = fits and one.figures({}) == guarantee.asked == reached
    else:
        fits = asked.measure.common is not None and all(asked.measure.of.shared_by(one.of) for one, _ in made)
        fits = fits and all(unit.kind in PLAIN_UNITS for unit in asked.units) and set(reached) == set(guarantee.asked)
        fits = fits and all(reached[key] <= value for key, value in guarantee.asked.items())
        fits = fits and all(one.distance is None and not one.each for one, _ in made)
    each = [_of_part(asked, number, *one) for one in known]
    questions = list[Question]()
    for picked in product(*each):
        moved = [one for one in picked if isinstance(one.change, Units | Rows)]
        # a single part is asked for what it is asked for by itself, which may differ from one change to another
        amounts, said = (moved[0].asked, moved[0].asked) if single and moved else (guarantee.asked, reached)
        hint = Hint(parts=tuple(one.hint for one in picked))
        questions.append(Question(tuple(one.change for one in picked), amounts, said, hint))
    return Line(asked.line, frozenset(asked.seen), asked.measure.of, tuple(questions), fits)


def _of_part(asked: Obligation, number: int, own: Case, part: PartOfSystem, found: Read) -> list[Question]:
    """The changes of a part by one unit of a line of its system; of what nobody sees nothing has to be known."""
    held, term = {data.name for data in own.frame.data}, found[0]
    if not held & set(asked.wrt):
        return [Question(None, {}, {})]
    given = term.outputs if term.public else frozenset(asked.seen) & term.outputs
    if not given:
        return [Question(Anything(), {}, {})]
    moved = tuple(name for name in asked.wrt if name in held), units_within(asked.units, held)
    if number not in part.lines:
        raise Refused(f"{', '.join(sorted(given))} has no share of line {asked.line}")
    line = part.lines.index(number)
    one = own.frame.obligations[line]
    if not given <= set(one.seen) or (one.wrt, one.units) != moved:
        raise Refused(f"{', '.join(sorted(given))} has no share of line {asked.line} that is about the same units")
    share = one.measure.figures({}) if not one.measure.each else {}
    epsilon = share.get("epsilon") if "delta" in share else None
    return [replace(own, hint=replace(own.hint, epsilon=epsilon)) for own in found[1][line].questions]


FORMS: dict[str, Callable[[Case], Read]] = {
    "linear": _linear,
    "table": _by_its_rules,
    "frequencies": _by_its_rules,
    "points": _by_its_rules,
    "cells": _by_its_rules,
    "selection": _by_its_rules,
    "stream": _by_its_rules,
    "votes": _voting,
    "marginals": _by_its_rules,
    "keys": _by_its_rules,
    "chain": _by_its_rules,
    "priced": _priced,
    "system": _system,
}
"""The forms that have come over; of all others no line holds."""
