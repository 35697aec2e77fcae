"""Systems: parts that are judged like plans of their own, each within its share of the lines, and their composition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from fractions import Fraction
from itertools import product
from typing import Any

from privspec.kernel.changes import Anything, Rows, Units
from privspec.kernel.core.numbers import ZERO, digits_down, sqrt_up
from privspec.kernel.core.problem import (
    PARTS,
    AskedMeasure,
    Bound,
    Data,
    Guarantee,
    Mechanism,
    Obligation,
    PlanUnderCheck,
    Rules,
    Share,
    Unit,
    View,
    read_frame,
    read_guarantees,
    rules_of,
)
from privspec.kernel.core.reading import JsonNode, Positive, Refused, Size, frozen, read
from privspec.kernel.counted import counted
from privspec.kernel.divergences import PURE_PARTS, delta_up, pure_mu_up
from privspec.kernel.losses import TIGHT, Ends, PrivacyLoss, delta_to
from privspec.kernel.measures import APPROXIMATE, GAUSSIAN, PURE, Measure
from privspec.kernel.promises import Line, Question, plan_within, promised, verdict
from privspec.kernel.rules import Hint
from privspec.kernel.splits import BOXES, COSTS, CURVES, WITNESSES, Boxes, Curve, Known, SharedLine, Sharing, stated
from privspec.kernel.terms import Chosen, Independent, Term, Times
from privspec.kernel.worth import OPTIMAL_GAP, near

NOTE, EXACT = "composition", "composition-exact"
"""Why a line holds of several parts: by an upper bound, or by what they let through and no less."""
OTHERWISE = "names a different composition from the one it rests on"
AMONG = "all splits of what parts share, with independent noise, pure parts counted as randomised response"
APART = "all splits of what parts share, with independent noise, in which every part by itself keeps to the lines"
"""What bounds are about: of plans that keep to lines counted so, and of those that do so by their own laws alone."""
CASES = "mechanisms that spend in each case what the draw leaves it"
"""What bounds are about where a value is drawn first, and which part follows depends on it."""
DRAWN = "="
"""The sign of a condition by which just one of several parts of the same outputs is drawn."""
PLAIN_UNITS = ("entry", "record", "party", "person", "everything")
"""Units of which the guarantees of independent parts compose: those that change, the rest as it is.

Of a person parts keep so many records by chance; whichever these are, the others' records are as they were.
"""
SPENT_IN = {"epsilon": PURE, "mu": GAUSSIAN}
"""Measures in which parts spend."""
Spent = tuple[Measure | None, dict[str, Fraction]]


@frozen
class PartOfSystem:
    """The problem of a part, and for each of its obligations the number of the system's that it comes from.

    It is drawn `times` times, and only if what was released as `only_if` is not 0, or is as `sign` and `limit` say.
    """

    problem: Any
    lines: tuple[int, ...]
    times: Positive
    only_if: str | None
    sign: str = "!="
    limit: Fraction = ZERO

    def __post_init__(self) -> None:
        plain = self.sign == "!=" and not self.limit
        if self.sign not in ("!=", ">=", ">", "<=", "<", DRAWN) or (self.only_if is None and not plain):
            raise Refused("has a condition that compares nothing")


@frozen
class ChosenShare:
    """A number that a line asks for and that is picked, from `low` to `high` if it has an end."""

    name: str
    low: Size
    high: Size | None

    def allows(self, number: Fraction) -> bool:
        return number > 0 and number >= self.low and (self.high is None or number <= self.high)


@frozen
class System:
    """Outputs in parts with independent noise; the loss is the sum of theirs."""

    FORM = "system"

    outputs: tuple[str, ...]
    expression: str
    choices: tuple[ChosenShare, ...]
    parts: tuple[PartOfSystem, ...]

    @property
    def values(self) -> tuple[Fraction, ...]:
        """Of which value each part is the case, where one is drawn first; none where all parts stand side by side."""
        return tuple(part.limit for part in self.parts if part.sign == DRAWN)

    def __post_init__(self) -> None:
        """All parts but the first are cases of what it draws, or none is."""
        if not self.values:
            return
        first, *cases = self.parts
        if len({one.only_if for one in cases}) != 1 or [one.sign for one in cases] != [DRAWN] * len(self.values):
            raise Refused("has cases of what is drawn first, and other parts beside them")
        if first.only_if is not None or any(one.times > 1 for one in self.parts) or self.choices:
            raise Refused("draws a value first, and something of it several times, or at a number that is picked")


@frozen
class Composite(Mechanism):
    """What is executed: the plan of every part under its name, without what its system says; and numbers picked."""

    FORM = "composite"

    block: System
    components: dict[str, JsonNode]
    choices: dict[str, Size] | None = None
    plans: tuple[tuple[PartOfSystem, JsonNode], ...] = field(init=False)

    def __post_init__(self) -> None:
        block = self.block
        cases = [f"{part.only_if} = {part.limit}" for part in block.parts if part.sign == DRAWN]
        names, picked = component_names([part.problem for part in block.parts], cases), self.choices or {}
        if other := {*names} ^ {*self.components} or {*picked} ^ {one.name for one in self.block.choices}:
            raise Refused(f"does not have the parts or choices of the problem: {', '.join(sorted(other))[:40]}")
        if not all(one.allows(picked[one.name]) for one in self.block.choices):
            raise Refused("has a choice outside its range")
        object.__setattr__(self, "plans", tuple(zip(self.block.parts, map(self.components.get, names), strict=True)))


Judged = tuple[PlanUnderCheck, object, PartOfSystem]
"""A part as a plan of its own, what it executes, and its problem."""


def _is_of(own: Data, whole: Data) -> bool:
    """Whether what a part reads is held by the system: some columns of the same table, and what follows from them."""
    if own.people is not None and whole.people is not None:
        less = set(own.people.gathered) <= set(whole.people.gathered) and own.people.persons == whole.people.persons
        own = replace(own, people=whole.people) if less else own
    tables = [one for one in (own, whole) if one.people is not None or one.domain.startswith("table(")]
    alike = [replace(one, domain="table", derived=()) for one in tables]
    return alike[0] == alike[1] if len(alike) > 1 else own == whole


class SystemRules(Rules):
    """How plans of systems are judged."""

    mechanisms = (Composite,)

    def judge(self, case: PlanUnderCheck) -> Composite:
        """Every part, then what they spend together of each line, then the sum of their losses."""
        executed, parts = self._promises(case, worth=True)
        cases = [own for own, *_ in parts]
        if executed.block.values:
            _loss(case, cases, executed.block, *_least_of_cases(case, cases[1:]))
            return executed
        for one in read_guarantees(case.guarantees, case.frame, executed.choices):
            _judge_composition(case, one, parts)
        try:
            least, among = (None, "") if case.claims.value == {} else _least(case, parts)
        except Refused as reason:
            case.says("bound", False, str(reason))
            return executed
        _loss(case, cases, executed.block, least, among)
        return executed

    def privacy(self, case: PlanUnderCheck) -> Composite:
        return self._promises(case, worth=False)[0]

    def _promises(self, case: PlanUnderCheck, *, worth: bool) -> tuple[Composite, list[Judged]]:
        """Every part, and of each line what they spend together."""
        executed = self.read(case.frame, case.mechanism)
        system, parts = executed.block, self.parts(case, executed, worth=worth)
        cases = [own for own, *_ in parts]
        for own, part in zip(cases, system.parts, strict=True):
            names = ", ".join(outputs_of(own))
            names += f" where {part.only_if} = {part.limit}" if part.sign == DRAWN else ""
            case.found += [replace(claim, text=f"{names}: {claim.text}", item=None) for claim in own.found]
        if system.values:
            _check_cases(case, parts)
        apart = cases[:2] if system.values else cases
        if sorted(name for own in apart for name in outputs_of(own)) != sorted(system.outputs):
            raise case.block.wrong("has parts that do not give its outputs, each of them once")
        if any(part.only_if is not None for part in system.parts):
            _conditions(case, cases, system)
        whole, guarantees = _whole(parts, system), read_guarantees(case.guarantees, case.frame, executed.choices)
        lines = [_together(one, parts, system) for one in guarantees]
        case.promised = whole, lines
        for one, line in zip(guarantees, lines, strict=True):
            if one.because not in ((NOTE,), (EXACT,)):
                raise case.guarantees.wrong(OTHERWISE)
            spent = [_share_words(*share) for share in _sharing(one.number, parts)]
            holds = verdict(whole, line).holds
            kept = f"line {one.obligation.line} {'holds' if holds else 'does not hold'}"
            words = " and ".join(spent)
            if system.values:
                words = f"{spent[0]}, and then one of {' or '.join(dict.fromkeys(spent[1:]))}"
            case.says("privacy", holds, f"{kept}: {words}", one.number)
        return executed, parts

    def parts(self, case: PlanUnderCheck, executed: Composite, *, worth: bool = True) -> list[Judged]:
        """Every part, judged by the rules of its form, with what it is worth or without."""
        found = list[Judged]()
        for part, plan in executed.plans:
            own = self.case_of(case, part, plan)
            rules = rules_of(own.block.form(*PARTS))
            own.part = not worth
            found.append((own, rules.judge(own) if worth else rules.privacy(own), part))
        return found

    def reach(
        self, case: PlanUnderCheck, executed: Composite, view: View, outputs: tuple[str, ...], witness: JsonNode
    ) -> Bound:
        """What shares of parts add up to, where each part that shows some of the outputs has one of what moves."""
        witness.same(None)
        found = list[Spent]()
        parts = [(self.case_of(case, part, plan), part) for part, plan in executed.plans]
        shown = [part.only_if for own, part in parts if set(outputs_of(own)) & set(outputs)]  # by running at all
        wanted = {*outputs, *shown}
        for own, part in parts:
            given, held = wanted & set(outputs_of(own)), {data.name for data in own.frame.data}
            if not given or not held & set(view.wrt):
                continue
            moved = tuple(name for name in view.wrt if name in held), units_within(view.units, held)
            lines = [one for one in own.frame.obligations if set(one.seen) >= given and (one.wrt, one.units) == moved]
            lines = [one for one in lines if all(unit.kind in PLAIN_UNITS for unit in one.units)]
            measures = [(one.measure.common, one.measure.figures({})) for one in lines]
            spent = [(one, asked) for one, asked in measures if one is not None and one.shared_with_all]
            if not spent:
                return None
            found += [min(spent, key=lambda one: (one[1].get("delta", 0), *one[1].values()))] * part.times
        return _let_through(found)

    def case_of(self, case: PlanUnderCheck, part: PartOfSystem, plan: JsonNode) -> PlanUnderCheck:
        """The plan of a part about its problem, in which each line asks for the share that the plan gives it."""
        own = plan_within(part.problem, plan.without("shares"), plan.place)
        lines, asked = case.frame.obligations, own.frame.obligations
        if (part.times > 1 or part.only_if is not None) and not own.fairness.absent:
            raise plan.wrong("states fairness of a part that is not drawn just once")
        if part.times > PURE_PARTS:
            raise part.problem.wrong("is drawn too often to be composed")
        if len(set(part.lines)) != len(part.lines) or max(part.lines, default=-1) >= len(lines):
            raise part.problem.wrong("is under a line that the system does not have")
        if [one.measure for one in asked] != [lines[number].measure for number in part.lines]:
            raise part.problem.wrong("has lines in a different measure from the system")
        known = all(any(_is_of(one, data) for data in case.frame.data) for one in own.frame.data)
        if not case.frame.trust.holds_part(own.frame.trust) or not known:
            raise part.problem.wrong("is about other data, or other trust, than the system")
        shares = dict(plan.entries()).get("shares", JsonNode(None, f"{plan.place}.shares")).items(len(asked))
        pairs = zip(asked, shares, strict=True)
        spent = tuple(replace(one, measure=read(AskedMeasure, share)) for one, share in pairs)
        own.frame = replace(own.frame, obligations=spent)
        return own


def _let_through(measures: list[Spent]) -> Bound:
    """What independent parts let through together; not known of parts with a delta beside Gaussian ones."""
    mus = [figures["mu"] for _, figures in measures if "mu" in figures]
    pure = [figures for _, figures in measures if "mu" not in figures]
    delta = sum((one.get("delta", ZERO) for one in pure), ZERO)
    if not mus:
        return {"epsilon": sum((one["epsilon"] for one in pure), ZERO), "delta": delta}
    squares = [mu * mu for mu in mus] + [pure_mu_up(one["epsilon"]) ** 2 for one in pure]
    return None if delta else {"mu": sqrt_up(sum(squares, ZERO))}


def _conditions(case: PlanUnderCheck, cases: list[PlanUnderCheck], system: System) -> None:
    """Whoever sees a part that runs on a condition is told the condition as well, by a line that says so.

    Then what they see is computed from the part, always drawn, and from its condition: nothing is lost by drawing less.
    """
    for own, part in zip(cases, system.parts, strict=True):
        if part.only_if is None:
            continue
        first = [i for i, other in enumerate(cases) if part.only_if in outputs_of(other)]
        if len(first) != 1 or system.parts[first[0]].times > 1 or system.parts[first[0]].only_if is not None:
            raise case.block.wrong("has a part whose condition is no output that is always drawn, once")
        shown, given = {data.name for data in cases[first[0]].frame.data}, set(outputs_of(own))
        for asked in case.frame.obligations:
            if given & set(asked.seen) and shown & set(asked.wrt) and part.only_if not in asked.seen:
                raise Refused(f"line {asked.line} is about a part and not about the condition that its running shows")


def outputs_of(case: PlanUnderCheck) -> tuple[str, ...]:
    """What a part gives."""
    return outputs_in(case.block)


def outputs_in(item: JsonNode) -> tuple[str, ...]:
    """What a block gives, by the words of its form."""
    block = dict(item.entries())
    if block["form"].value == "priced":
        return outputs_in(block["block"])
    (names,) = (block[key] for key in ("outputs", "output", "released") if key in block)
    given = [names] if isinstance(names.value, str) else names.items()
    return tuple(one.text() if isinstance(one.value, str) else dict(one.entries())["name"].text() for one in given)


def component_names(problems: list[JsonNode], cases: Sequence[str] = ()) -> list[str]:
    """The name of each part: of the component that gives its outputs, if no two have the same; else its outputs.

    `cases`: the names of all parts but the first, where they are cases of what it draws.
    """
    if cases:
        return [*component_names(problems[:1]), *cases]
    given = [outputs_in(read_frame(problem).blocks[0]) for problem in problems]
    short = [{name.partition(".")[0] for name in names} for names in given]
    found = ["".join(one) if len(one) == 1 else ", ".join(names) for one, names in zip(short, given, strict=True)]
    return found if len(set(found)) == len(found) else [", ".join(names) for names in given]


def delta_of(epsilon: Fraction, parts: list[tuple[PrivacyLoss, int]]) -> Ends | None:
    """What independent parts, each drawn so many times, let through; None if that is too much work.

    Returns: at least delta at an epsilon, and at most delta at one that is smaller by `TIGHT` of it.
    """
    most = delta_to(0, epsilon, parts)
    least = delta_to(1, epsilon * (1 - TIGHT), parts)
    return None if most is None or least is None else (most, max(least, ZERO))


@frozen
class Composed:
    """What parts of one line let through together: at most a delta, and surely some figures; and each, so many times.

    `known`: each of them counts by what it executes, and one unit moves all of them at once, each as far as it can.
    """

    known: bool
    delta: Fraction
    least: dict[str, Fraction]
    parts: list[tuple[PrivacyLoss, int]]

    def because(self, figures: dict[str, Fraction]) -> tuple[str, ...]:
        """By what they satisfy these figures: exactly, where they do not satisfy smaller ones."""
        tight = all(value <= self.least.get(key, ZERO) * (1 + TIGHT) for key, value in figures.items())
        return (EXACT if self.known and tight else NOTE,)


def composed(
    asked: Obligation, number: int, parts: list[Judged], reached: dict[str, Fraction] | None = None
) -> Composed:
    """The parts of the line of that number together, at the epsilon that it asks for or is said to reach.

    Deltas are those of Gaussian and finite laws, and of one scalar Laplace, by what is executed where that is known; of
    mu and rho it is known what Gaussian noise lets through, and epsilons add up.
    """
    found, spent, held = list[tuple[PrivacyLoss, int]](), list[Spent](), list[str]()
    for own, executed, part in (one for one in parts if number in one[-1].lines):
        line = part.lines.index(number)
        measure = own.frame.obligations[line].measure
        found.append((counted(own, executed, line, measure.figures({})), part.times))
        spent += [(measure.common, measure.figures({}))] * part.times
        held += [data.name for data in own.frame.data if data.name in asked.wrt]
    _composing(asked.measure.common, spent)
    pure = [one["epsilon"] for _, one in spent if "epsilon" in one]
    if len(pure) > PURE_PARTS:
        raise Refused(f"more than {PURE_PARTS} parts share a line")
    mu_squared = sum((one.get("mu", ZERO) ** 2 for _, one in spent), ZERO)
    lump = sum((one.get("delta", ZERO) for _, one in spent), ZERO)
    figures = reached or asked.measure.figures({})
    epsilon, asks = figures.get("epsilon", ZERO), asked.measure.of is APPROXIMATE
    within = not mu_squared and sum(pure) <= epsilon
    ends = delta_of(epsilon, found) if asks else None
    delta = lump if within or not asks else ends[0] if ends else lump + delta_up(epsilon, mu_squared, pure)
    gaussian = sum((one.mu_squared[1] * times for one, times in found), ZERO)
    alone = ZERO if any(one.pairs or one.laplace[0] for one, _ in found) else gaussian
    epsilons = sum((one.epsilon_down * times for one, times in found), ZERO)
    (figure, *_), surely = asked.measure.of.figures, asked.measure.of.condition(figures).least(epsilons, alone)
    least = {"epsilon": epsilon, "delta": ZERO if ends is None else ends[1]} if asks else {figure: surely}
    moved = len(set(held)) == len(held) and [unit.kind in ("party", "everything") for unit in asked.units] == [True]
    known = moved and all(one.own for one, _ in found) and all(part.only_if is None for *_, part in parts)
    return Composed(known, delta, least, found)


def _check_cases(case: PlanUnderCheck, parts: list[Judged]) -> None:
    """What is drawn first is one number, and there is one case for each that it may be."""
    (first, executed, _), *cases = parts
    block: Any = getattr(executed, "block", None)
    answers = getattr(block, "numbers", None) if first.block.form(*PARTS) == "selection" else None
    if answers is None or block.by or tuple(part.limit for *_, part in cases) != answers:
        raise case.block.wrong("does not have one case for each number that may be drawn first")
    if len({frozenset(outputs_of(own)) for own, *_ in cases}) != 1:
        raise case.block.wrong("has cases that do not give the same outputs")


def _whole(parts: list[Judged], system: System) -> Term:
    """All that is executed."""
    terms = [(promised(own)[0], part) for own, _, part in parts]
    if system.values:
        (first, _), *cases = terms
        return Independent((first, Times(Chosen(tuple(term for term, _ in cases)), 1, system.parts[1].only_if)))
    drawn = [Times(term, p.times, p.only_if) if p.times > 1 or p.only_if else term for term, p in terms]
    return Independent(tuple(drawn))


def _sharing(number: int, parts: list[Judged]) -> list[tuple[Obligation, int]]:
    """The shares that parts have of a line, each so many times."""
    own = ((own, part) for own, _, part in parts if number in part.lines)
    return [(case.frame.obligations[part.lines.index(number)], part.times) for case, part in own]


def _split(asked: Obligation, sharing: list[tuple[Obligation, int]]) -> bool:
    """Whether parts share a line, or the one that has it spends another amount than it asks for, which is picked."""
    picked = any(isinstance(amount, Share) for _, amount in asked.measure.amounts)
    other = not picked and any(own.measure != asked.measure for own, _ in sharing)
    return other or sum(times for _, times in sharing) > 1


def _judge_composition(case: PlanUnderCheck, guarantee: Guarantee, parts: list[Judged]) -> None:
    """How a line counts what several parts spend of it: exactly, by their own laws, or by an upper bound.

    That it holds is shown by the theorem about all parts; only whether less could not be said is looked at here.
    """
    asked, number = guarantee.obligation, guarantee.number
    several = _split(asked, _sharing(number, parts))
    together = composed(asked, number, parts, guarantee.achieved) if several else None
    because = (NOTE,) if together is None else together.because(guarantee.achieved)
    if guarantee.because != because:
        raise case.guarantees.wrong(OTHERWISE)
    if together is None:
        return
    delta = f", delta {float(together.delta):.9g}" if "delta" in guarantee.asked else ""
    words = "by their own laws: exact" if because == (EXACT,) else "an upper bound"
    case.says("composition", True, f"line {asked.line}: all parts together{delta}, {words}", number)


def _together(guarantee: Guarantee, parts: list[Judged], system: System) -> Line:
    """A line of what all parts show together, moved by one unit in all inputs at once."""
    asked, reached, sharing = guarantee.obligation, guarantee.achieved, _sharing(guarantee.number, parts)
    single = bool(sharing) and not _split(asked, sharing)
    fits = _as_asked(guarantee, sharing[0][0]) if single else _composes(guarantee, [own.measure for own, _ in sharing])
    each = [_of_part(guarantee, own, part, parts) for own, _, part in parts]
    if system.values:
        each = [each[0], [_of_cases(each[1:])]]
    questions = list[Question]()
    for picked in product(*each):
        moved = [one for one in picked if isinstance(one.change, Units | Rows)]
        # a single part is asked for what it is asked for by itself, which may differ from one change to another
        amounts, said = (moved[0].asked, moved[0].asked) if single and moved else (guarantee.asked, reached)
        hint = Hint(parts=tuple(one.hint for one in picked))
        questions.append(Question(tuple(one.change for one in picked), amounts, said, hint))
    return Line(asked.line, frozenset(asked.seen), asked.measure.of, tuple(questions), fits)


def _of_cases(cases: list[list[Question]]) -> Question:
    """Of cases one of which is drawn, what any of them is asked."""
    changes: Any = tuple(tuple(one.change for one in questions) for questions in cases)
    hints = tuple(Hint(parts=tuple(one.hint for one in questions)) for questions in cases)
    return Question(changes, {}, {}, Hint(parts=hints))


def _as_asked(guarantee: Guarantee, own: Obligation) -> bool:
    """Whether the only part of a line is under all of it, and no more is stated."""
    whole = replace(guarantee.obligation.measure, amounts=tuple(guarantee.asked.items()))
    return own.measure == whole and guarantee.achieved == guarantee.asked


def _composes(guarantee: Guarantee, shares: list[AskedMeasure]) -> bool:
    """Whether shares of a line are in measures that add up to that of the line, of units that parts have apart."""
    asked = guarantee.obligation
    fits = asked.measure.common is not None and set(guarantee.achieved) == set(guarantee.asked)
    fits = fits and all(unit.kind in PLAIN_UNITS for unit in asked.units)
    return fits and all(asked.measure.of.shared_by(one.of) and one.distance is None and not one.each for one in shares)


def _of_part(guarantee: Guarantee, own: PlanUnderCheck, part: PartOfSystem, parts: list[Judged]) -> list[Question]:
    """The changes of a part by one unit of a line of its system; of what nobody sees nothing has to be known.

    A line that sees one part is about that part by itself: messages of others that all see are then held as they are.
    On a line about several parts they are seen.
    """
    asked, number, (term, lines) = guarantee.obligation, guarantee.number, promised(own)
    held, seen = {data.name for data in own.frame.data}, frozenset(asked.seen)
    alone = any(seen <= promised(one)[0].outputs for one, _, _ in parts)
    if not held & set(asked.wrt):
        return [Question(None, {}, {})]
    if not seen & term.outputs and (alone or not term.public):
        # what nobody sees may change, so that a condition among it has to be seen
        return [Question(None if term.public else Anything(), {}, {})]
    given = term.outputs if term.public else seen & term.outputs
    moved = tuple(name for name in asked.wrt if name in held), units_within(asked.units, held)
    if number not in part.lines:
        raise Refused(f"{', '.join(sorted(given))} has no share of line {asked.line}")
    line = part.lines.index(number)
    one = own.frame.obligations[line]
    if not given <= set(one.seen) or (one.wrt, one.units) != moved or not lines[line].fits:
        raise Refused(
            f"{', '.join(sorted(given))} has no share of line {asked.line} about the same units that it keeps"
        )
    share = {} if one.measure.each else one.measure.figures({})
    epsilon = share.get("epsilon") if "delta" in share else None
    return [replace(one, hint=replace(one.hint, epsilon=epsilon)) for one in lines[line].questions]


def composed_proves(measure: Measure | None, asked: dict[str, Fraction], shares: list[Spent]) -> bool:
    """Whether parts that each satisfy their own measure satisfy another one together."""
    return _composing(measure, shares).proved_by(asked, *(amounts for _, amounts in shares))


def _composing(line: Measure | None, shares: list[Spent]) -> Measure:
    """The measure of a line that these shares compose to."""
    if line is None or not line.shared or any(own is None or not line.shared_by(own) for own, _ in shares):
        raise Refused("a line, or a share of it, is in a measure that does not compose: it is not shared by parts")
    return line


def units_within(units: tuple[Unit, ...], held: set[str]) -> tuple[Unit, ...]:
    """The units of a line in some of its inputs."""
    found = [replace(unit, inputs=tuple(name for name in unit.inputs if name in held)) for unit in units]
    return tuple(unit for unit in found if unit.inputs)


def _share_words(own: Obligation, times: int) -> str:
    shown = ", ".join(f"{key} {float(value):.6g}" for key, value in own.measure.figures({}).items())
    return f"{f'{times} times ' if times > 1 else ''}{own.measure.name} ({shown})"


@frozen
class Shares:
    """What is to be shown of every split: the curves of the parts that share lines, what the others cost, and words.

    `alone`: of splits in which each part is only known to keep to the lines by itself.
    """

    boxes: Boxes
    curves: list[Curve]
    constant: Fraction
    among: str
    alone: bool

    @property
    def sum_of_parts(self) -> Fraction:
        """What all parts cost at the largest share that each may have."""
        pairs = zip(self.curves, self.boxes.whole, strict=True)
        return self.constant + sum((curve.at(most) for curve, most in pairs), ZERO)

    def cost(self, least: Fraction, most: int = BOXES) -> int:
        """How many boxes show that no split costs less; refused where more than `most` are needed."""
        if not self.alone:
            return self.boxes.cost(self.curves, least - self.constant, most)
        if least > self.sum_of_parts:
            raise Refused("the bound is more than what parts cost by themselves")
        return 1


def shares_of(case: PlanUnderCheck, parts: list[Judged], known: dict[int, Known] | None = None) -> Shares:
    """The curves of parts, from their own witnesses and those that the plan has at other shares.

    `known`: what was read before of the same witnesses, by the part's number; the judge passes nothing.
    """
    (witnesses,) = case.claims.fields("split")
    obligations = case.frame.obligations
    picked = [any(isinstance(one, Share) for _, one in line.measure.amounts) for line in obligations]
    several = [_split(line, _sharing(number, parts)) for number, line in enumerate(obligations)]
    common = [line for line, split in enumerate(several) if split and not picked[line]]
    sharing, place, constant, words = list[Sharing](), dict[int, int](), ZERO, list[str]()
    known = {} if known is None else known
    for number, (own, executed, part) in enumerate(parts):
        said, names, lines = dict(own.loss.entries()), ", ".join(outputs_of(own)), own.frame.obligations
        unknown = said["lower_bound"].absent
        if unknown and own.block.form(*PARTS) not in COSTS:
            raise Refused(f"{names}: nothing is proved of what it costs")
        about = "nothing is proved but that no cost is below 0" if unknown else said["among"].text()
        shared = [i for i, line in enumerate(part.lines) if line in common]
        if not shared:
            constant += ZERO if unknown else Fraction(said["lower_bound"].double())
            words.append(f"{names}: {about}")
            continue
        ((kind, share),) = lines[shared[0]].measure.figures({}).items()
        varying = (*shared, *(i for i, line in enumerate(part.lines) if picked[line]))
        sharing.append(Sharing(own, executed, kind, share, varying, known.setdefault(number, {})))
        if len({lines[i].units for i in shared}) > 1 or sharing[-1].obligations(share) != lines:
            raise Refused(f"{names}: it spends no one amount of one unit in the lines that it shares")
        place[number] = len(sharing) - 1
        words.append(f"{names}: {about}, at any {kind}")
    shared_lines = list[SharedLine]()
    for i in common:
        _moving_all(obligations[i], [own for own, _, part in parts if i in part.lines])
        copies = [place[n] for n, (*_, part) in enumerate(parts) if i in part.lines for _ in range(part.times)]
        measure = obligations[i].measure
        shared_lines.append(SharedLine(_composing(measure.common, []), measure.figures({}), tuple(copies)))
    boxes, curves = Boxes(shared_lines, [one.kind for one in sharing]), list[Curve]()
    for one, given, most in zip(sharing, witnesses.items(len(sharing)), boxes.whole, strict=True):
        pairs = [pair.fields("share", "claims") for pair in given.items()]
        if len(pairs) > WITNESSES:
            raise given.wrong("are too many")
        found = [(amount.exact(0), claims) for amount, claims in pairs]
        curves.append(CURVES[one.case.block.form(*CURVES)](one, found, most))
    alone = not all(
        composed_proves(
            one.measure,
            one.asked,
            [(SPENT_IN[sharing[k].kind], {sharing[k].kind: sharing[k].share}) for k in one.parts],
        )
        for one in shared_lines
    )
    if alone and any(one.share > most for one, most in zip(sharing, boxes.whole, strict=True)):
        raise Refused("a part spends more than it may by itself")
    return Shares(boxes, curves, constant, f"{APART if alone else AMONG} ({' · '.join(words)})", alone)


def _moving_all(asked: Obligation, sharing: list[PlanUnderCheck]) -> None:
    """Refuse a bound by a line of which no unit moves all parts that share it: what they spend need not add up.

    An entry, or a record, is one of one input; all that a party or a person has changes in all inputs at once.
    """
    held = [{data.name for data in own.frame.data} for own in sharing]
    for unit in asked.units:
        alone = unit.kind in ("entry", "record")
        for names in [{name} for name in unit.inputs] if alone else [set(unit.inputs)]:
            if all(names & some for some in held):
                return
    raise Refused(f"line {asked.line} has no unit that moves all of the parts that share it")


def _least(case: PlanUnderCheck, parts: list[Judged]) -> tuple[Fraction, str]:
    """The bound that is stated, once boxes have shown it of every split, and what it is about."""
    least, shares = Fraction(stated(case).double()), shares_of(case, parts)
    done = shares.cost(least)
    cut = f"shares cut into {done} box{'es' if done > 1 else ''}"
    case.says("bound", True, f"no split costs less than {digits_down(least)}, {cut}. Considered: {shares.among}")
    return least, shares.among


def _least_of_cases(case: PlanUnderCheck, cases: list[PlanUnderCheck]) -> tuple[Fraction | None, str]:
    """The bound of the case that costs most, as each was derived: no plan whose cases spend this much is below it."""
    case.claims.same({})
    parts = [dict(own.loss.entries()) for own in cases]
    if any(part["lower_bound"].absent for part in parts):
        return None, ""
    least, words = Fraction(stated(case).double()), " · ".join(dict.fromkeys(part["among"].text() for part in parts))
    if least > max(Fraction(part["lower_bound"].double()) for part in parts):
        raise case.loss.wrong("states a bound that is above those of all cases")
    return least, f"{CASES} ({words})"


def _loss(
    case: PlanUnderCheck, cases: list[PlanUnderCheck], system: System, least: Fraction | None, about: str
) -> None:
    """The loss is the sum of those of the parts, which were derived; `least` is below it, or nothing is proved.

    Where a value is drawn first it is that of the case that costs most.
    """
    value, low, gap, said, units, among, kind = case.loss.fields(
        "value", "lower_bound", "relative_gap", "expression", "units", "among", "kind"
    )
    parts = [dict(own.loss.entries()) for own in cases[bool(system.values) :]]
    costs = [Fraction(part["value"].double()) for part in parts]
    total = max(costs) if system.values else sum(costs, ZERO)
    value.same(float(total))
    said.same(system.expression)
    for item, key in ((units, "units"), (kind, "kind")):
        each = [part[key].text() for part in parts]
        item.same(" + ".join(dict.fromkeys(each) if system.values else each))
    apart = None if least is None else (Fraction(value.double()) - least) / (Fraction(abs(value.double())) or 1)
    among.same(about)
    low.same(None if least is None else low.double())
    gap.same(None if apart is None else float(apart))
    case.accuracy.same([line.value for own in cases for line in own.accuracy.items()])
    fairness = [line.value for own in cases if not own.fairness.absent for line in own.fairness.items()]
    case.fairness.same(fairness or None)
    which = "the case that costs most" if system.values else "all parts"
    case.says("loss", True, f"the loss of {which} is {float(total):.6g}")
    if apart is None:
        tried = "nothing is proved of some case" if system.values else "other splits of the budget were tried"
        case.says("bound", case.status == "feasible", f"{tried}; none is proved worse")
        return
    holds = apart >= 0 and (apart <= OPTIMAL_GAP) == (case.status == "optimal")
    case.says("bound", holds, f"the loss is within {near(apart)} of the bound")
