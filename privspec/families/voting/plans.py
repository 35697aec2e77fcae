"""Every rule of private voting at a spec: what it draws, whether the spec allows it, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, product

from privspec.core.records import dataclass, replace
from privspec.families.voting.profiles import Averages, Estimate, rule_of, worst_case
from privspec.families.voting.rules import WITHOUT, Draw, Promise, Property, Rule, VotingSystem
from privspec.kernel.laws.voting import DUMMY_VOTES, OFF, Scores
from privspec.kernel.voting import Limit, Total
from privspec.model.values import show
from privspec.model.voting import Lottery
from privspec.problem.voting import Costs, beside, compared

# --- What a lie brings a voter under the rules of private voting: `accuracy: manipulation(O, vo


def gain(system: VotingSystem, draw: Draw) -> Estimate:
    """The most that a lie brings a voter: 0 by proof, or a number that it is not below."""
    if truthful(system, draw).holds:
        return Estimate(Fraction(0))
    law = lru_cache(maxsize=None)(rule_of(draw.lottery).law)
    return Estimate(max((lie.gain(law) for lie in _lies(system)), default=Fraction(0)), at_least=True)


def truthful(system: VotingSystem, draw: Draw) -> Property:
    """Whether no lie pays under a rule, at any number of voters."""
    kept = draw.properties(system.promises[0].task)
    return next(item for item in kept if item.name == "strategy_proof")


def missed(system: VotingSystem, draw: Draw, limit: Limit, found: Estimate) -> str:
    """Why a rule under which lies may pay does not meet a line, or is not known to."""
    case = truthful(system, draw).counterexample
    example = f". For example, {case}" if case else ""
    if found.value > limit.bound:
        least = f"at least {float(found.value):.2g} > {show(limit.bound)}"
        return f"it misses line {limit.line}, as a lie can pay ({least}){example}"
    return f"it is not known to meet line {limit.line}: what a lie brings at most is not computed{example}"


@dataclass(frozen=True, slots=True)
class _Lie:
    """A true order, by the numbers of alternatives, and the points of all with the true ballot and with a lie."""

    order: tuple[int, ...]
    honest: Scores
    lying: Scores

    def gain(self, law: Callable[[Scores], list[Fraction]]) -> Fraction:
        """What it adds to the probability of the k best alternatives, for the best k; rounded down."""
        before, after = law(self.honest), law(self.lying)
        return max(accumulate(after[a] - before[a] for a in self.order)) - 2 * OFF


def _lies(system: VotingSystem) -> Iterator[_Lie]:
    """For a few true orders: the second alternative comes first, or last, beside others who want another one first."""
    m, others = system.votes.ballots.size, system.votes.voters - 1
    if m < 2 or others < 1:
        return
    for order in dict.fromkeys((tuple(range(m)), tuple(range(m))[::-1], (m - 1, *range(m - 1)))):
        swapped, buried = (order[1], order[0], *order[2:]), (order[0], *order[:0:-1])
        camps = [_ballot(system, each) for each in (swapped, (*order[1:], order[0]), (order[-1], *order[:-1]))]
        true = _ballot(system, order)
        for one, other in product(camps, repeat=2):
            half = others // 2
            given = tuple((others - half) * a + half * b for a, b in zip(one, other, strict=True))
            for lie in (swapped, buried):
                yield _Lie(order, _with(given, true), _with(given, _ballot(system, lie)))


def _ballot(system: VotingSystem, order: tuple[int, ...]) -> Scores:
    return system.votes.ballots.points(order[: system.votes.ballots.places])


def _with(given: Scores, ballot: Scores) -> Scores:
    return tuple(a + b for a, b in zip(given, ballot, strict=True))


# --- Every rule of private voting at a spec: what it draws, whether the spec allows it, and wha

SHARES: Costs = (beside("votes missed", Lottery(DUMMY_VOTES)),)
"""One less the share of first choices that the winner has."""


@dataclass(frozen=True, eq=False, slots=True)
class Figures:
    """How far a rule is from the lottery without noise, and how many first choices its winner has on average."""

    worst_distortion: Estimate
    mean_distortion: Estimate | None
    expected_welfare: Estimate | None


@dataclass(frozen=True, eq=False, slots=True)
class Judged:
    """A rule at a spec: `draw` is None where there is no such lottery; `reason` says why it is out, or is empty.

    `unsure` is the accuracy line of which it is not known whether it holds, where that is the reason.
    `calibrated` is None where no epsilon is met, `loss` where there is none: no such lottery, no epsilon to choose.
    """

    rule: Rule
    draw: Draw | None
    calibrated: Draw | None
    reason: str
    unsure: Limit | None = None
    loss: Estimate | None = None
    limits: tuple[Estimate, ...] = ()
    figures: Figures | None = None

    @property
    def admissible(self) -> bool:
        """Whether the spec allows it and it meets every line."""
        return self.calibrated is not None and not self.reason


# --- calibration ----------------------------------------------------------------------------------


def calibrated(system: VotingSystem, rule: Rule, epsilons: tuple[Fraction, ...]) -> Judged:
    """The rule at the epsilons of the requirements, one for each promise."""
    refusal = ""
    for promise, epsilon in zip(system.promises, epsilons, strict=True):
        found = rule.calibrate(promise.task, epsilon)
        if isinstance(found, str):
            refusal = found
            continue
        if all(spent(system, p, found) <= e for p, e in zip(system.promises, epsilons, strict=True)):
            return Judged(rule, found, found, forbidden(system, rule))
    without = Draw(WITHOUT) if rule.family == WITHOUT else None
    return Judged(rule, without, None, refusal or "it spends more than the requirements allow together")


def spent(system: VotingSystem, promise: Promise, found: Draw) -> Fraction:
    """The epsilon that a rule uses up: of the winner alone, or of each report where nobody is trusted."""
    return found.epsilon(promise.task, seen=system.local)


def forbidden(system: VotingSystem, rule: Rule) -> str:
    """Why the options of the spec rule a rule out; empty if they do not."""
    model = system.model
    if system.local and any(promise.task.adding for promise in system.promises):
        return "where nobody is trusted everybody sees who sends a report, so that taking part is no secret"
    if system.local and not Draw(rule.family).rule.reported:
        return "nobody is trusted with all ballots, and this rule needs them"
    if model.families and rule.family not in model.families:
        return f"the spec asks for noise of family {', '.join(model.families)}"
    return ""


# --- losses ---------------------------------------------------------------------------------------


def judge(system: VotingSystem, judged: list[Judged], averages: Averages) -> list[Judged]:
    """With losses, the left sides of the accuracy lines and figures."""
    drawn = [one for one in judged if one.draw is not None]
    bodies = list(dict.fromkeys(_averaged(system)))
    lotteries = [one.draw.lottery for one in drawn if one.draw is not None]
    found = averages.of(lotteries, bodies) if bodies and system.votes.law is not None else [[] for _ in drawn]
    out = []
    for one, row in zip(drawn, found, strict=True):
        means = dict(zip(bodies, row, strict=False))
        assert one.draw is not None
        limits = tuple(_limit(system, one.draw, limit, means) for limit in system.votes.limits)
        figures = _figures(system, one, means)
        loss = _value(system, one.draw.lottery, system.loss, means)
        out.append(replace(one, loss=loss, limits=limits, figures=figures))
    return [limited(system, one) for one in out] + [one for one in judged if one.draw is None]


def _averaged(system: VotingSystem) -> list[Costs]:
    """Everything that an average is wanted of."""
    measured = (system.loss, *(limit.measured for limit in system.votes.limits if limit.measured is not None))
    bodies = [term.parts for m in measured for term in m.terms if term.operator == "E"]
    if system.votes.law is not None:
        bodies.append(distortion(system))
        if not system.votes.ballots.borda:
            bodies.append(SHARES)
    return bodies


def distortion(system: VotingSystem) -> Costs:
    """Total variation from the lottery without noise."""
    return (beside("distance", compared(system.votes)),)


def _limit(system: VotingSystem, draw: Draw, limit: Limit, means: dict[Costs, Estimate]) -> Estimate:
    """The left side of an accuracy line."""
    if limit.measured is None:
        return gain(system, draw)
    return _value(system, draw.lottery, limit.measured, means)


def _value(system: VotingSystem, lottery: Lottery, measured: Total, means: dict[Costs, Estimate]) -> Estimate:
    total = Estimate(measured.offset)
    for term in measured.terms:
        total = total + (means[term.parts] if term.operator == "E" else worst_case(system, lottery, term.parts))
    return total


def _figures(system: VotingSystem, one: Judged, means: dict[Costs, Estimate]) -> Figures:
    assert one.draw is not None
    missed = means.get(SHARES)
    welfare = None if missed is None else replace(missed, value=1 - missed.value)
    return Figures(worst_case(system, one.draw.lottery, distortion(system)), means.get(distortion(system)), welfare)


def limited(system: VotingSystem, one: Judged) -> Judged:
    """Without its admissibility where an accuracy line is missed, or not known to hold."""
    if not one.admissible:
        return one
    for limit, found in zip(system.votes.limits, one.limits, strict=True):
        line = limit.line
        if limit.measured is None and one.draw is not None and not found.exact:
            why = missed(system, one.draw, limit, found)
            return replace(one, reason=why, unsure=None if found.value > limit.bound else limit)
        if found.value > limit.bound and not found.standard_error:
            least = "at least " if found.at_least else ""
            return replace(one, reason=f"it misses line {line}: {least}{float(found.value):.4g} > {show(limit.bound)}")
        if not found.exact:
            why = f"it is not known to meet line {line}: profiles are too many to list"
            return replace(one, reason=why, unsure=limit)
    return one
