"""Plans of votes: what is executed, its privacy, its loss over all profiles, and bounds for rules of any kind."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import ctx

from privspec.kernel.core.case import Case, Rules
from privspec.kernel.core.numbers import ball, end, exp_up, nearest_double
from privspec.kernel.core.problem import Frame, Obligation, Share, pure_proves, read_guarantees
from privspec.kernel.core.reading import Item, Refused
from privspec.kernel.lemmas.votes_losses import Choice, Measured, Value, Vote, read_vote, value_of
from privspec.kernel.lemmas.votes_rules import RULES, Ballots, Change, Rule, winner, within

PRECISION = 256
OPTIMAL_GAP = 1e-6
FARTHEST = 500
"""Exponents beyond which a bound is nothing."""
SPENT = Fraction(1, 2**30)
"""By how much of itself a stated epsilon may be above the one that is derived."""
PURE = ("epsilon-DP", "epsilon-LDP")
SCOPES = {
    "": "the rules of private voting that this plan lists",
    "walk": "every rule that meets the requirement",
    "near tie": "every rule that meets the requirement",
    "strategy-proof": "every strategy-proof rule that meets the requirement",
}
"""What a loss is the least of, by the form of the bound."""
STATED = ("value", "lower_bound", "relative_gap", "expression", "units", "among", "kind")


# --- bounds for every rule --------------------------------------------------------------------------------


def bounds(case: Case, vote: Vote, witness: Item) -> list[Fraction]:
    """What a witness proves of the loss of any rule, by each line, rounded down; the largest of them holds.

    lottery-bound, randomised-winner: from unanimity k votes move to another alternative, or from a near tie one vote
    makes anyone win; each moved vote is one neighbour away, or two where voters come and go.
    """
    form = witness.form(*filter(None, SCOPES))
    pure = [(one, 2 if one.units[0].adding else 1) for one in case.frame.obligations if one.measure.name in PURE]
    asked = [(one.measure.amounts["epsilon"], step) for one, step in pure]
    m, voters = vote.ballots.size, vote.voters
    if vote.ballots.borda or m < 2 or not voters:
        raise Refused("no such bound is known for these ballots")
    if form == "strategy-proof":
        witness.fields("form")
        return _truthful(vote, [one for one, step in pure if step == 1 and one.measure.name == "epsilon-DP"])
    _, detail = witness.fields("form", "votes" if form == "walk" else "profile")
    votes = detail.integer(1, voters) if form == "walk" else _near_tie(detail, voters, m)
    target = "shares" if form == "walk" else "plurality"
    if isinstance(vote.loss, Measured):
        scale = vote.loss.alone(target)
        if scale is None:
            raise Refused("a bound is claimed for a loss that it is not known for")
        known = [(epsilon, step) for epsilon, step in asked if isinstance(epsilon, Fraction)]
        return [scale[0] * least_cost(form, voters, m, votes, *one) + scale[1] for one in known]
    step = min((step for epsilon, step in asked if isinstance(epsilon, Share)), default=None)
    found = []
    for limit in vote.limits:
        scale = None if limit.measured is None else limit.measured.alone(target)
        if scale is not None and step is not None and limit.bound > scale[1]:
            found += least_epsilon(form, voters, m, votes, (limit.bound - scale[1]) / scale[0], step)
    return _chosen(vote, found)


def _near_tie(profile: Item, voters: int, m: int) -> int:
    """One vote, which leads from the votes listed to every winner."""
    counts = [n.integer() for n in profile.items(m)]
    first = counts.index(max(counts))
    moved = [tuple(Fraction(n - (a == first) + (a == b)) for a, n in enumerate(counts)) for b in range(m)]
    if sum(counts) != voters or any(not winner(reached)[b] for b, reached in enumerate(moved)):
        raise profile.wrong("is no profile from which one vote leads to every winner")
    return 1


def _power(exponent: Fraction) -> Fraction:
    """At least e^exponent; beyond `FARTHEST` so much that a bound is nothing."""
    return exp_up(exponent) if exponent <= FARTHEST else Fraction(2) ** 4096


def least_cost(form: str, voters: int, m: int, votes: int, epsilon: Fraction, step: int) -> Fraction:
    """Walk: k / T / (1 + e^(k step eps) / (m - 1)); (m - 1) / (e^(step eps) + m - 1), for two steps 1 - e^eps / m."""
    power = _power(votes * step * epsilon)
    if form == "walk":
        return Fraction(votes, voters) / (1 + power / (m - 1))
    found = (m - 1) / (power + m - 1)
    return max(found, 1 - _power(epsilon) / m) if step == 2 and voters > 1 else found


def least_epsilon(form: str, voters: int, m: int, votes: int, cost: Fraction, step: int) -> list[Fraction]:
    """The same read for epsilon: at a cost that is at most so much."""
    if form == "walk":
        return [log_down((m - 1) * (Fraction(votes, voters) / cost - 1)) / (votes * step)]
    if cost <= 0:
        return []
    found = [log_down((m - 1) * (1 - cost) / cost) / step]
    return [*found, log_down(m * (1 - cost))] if step == 2 and voters > 1 else found


def _chosen(vote: Vote, least: list[Fraction]) -> list[Fraction]:
    """The loss of the number that is picked, where epsilon is at least so much."""
    choice = vote.loss
    if not isinstance(choice, Choice):
        raise Refused("a bound of a number that is not picked")
    if not choice.whole:
        return [choice.weight * epsilon for epsilon in least] if choice.weight > 0 and not choice.inverse else []
    if vote.rounds is None or (choice.weight > 0) != choice.inverse:
        raise Refused("the loss does not fall with the number of rounds")
    most = [vote.rounds[1] // epsilon for epsilon in least if epsilon > 0]
    fit = [n if choice.high is None else min(Fraction(n), choice.high) for n in most if n >= 1]
    return [choice.loss(Fraction(n)) for n in fit]


def _truthful(vote: Vote, lines: list[Obligation]) -> list[Fraction]:
    """lottery-bound: a strategy-proof law of m > 2 alternatives is f_a = d_a + s n_a, no better than dummy votes.

    Of these at least g / (e^eps - 1) for each alternative; at a distance of at most d from the shares at most
    K = T d / (m - 1 - m d), hence eps >= log(1 + g / K).
    """
    m, voters = vote.ballots.size, vote.voters
    honest = any(limit.measured is None and limit.bound == 0 for limit in vote.limits)
    if vote.ballots.kind != "first choice" or m < 3 or not honest:
        raise Refused("a bound for strategy-proof rules, where lies are allowed or such rules are not known")
    moved = [(one.measure.amounts["epsilon"], change_of(one, vote).moved) for one in lines]
    if isinstance(vote.loss, Choice):
        found = []
        for limit in vote.limits:
            scale = None if limit.measured is None else limit.measured.alone("shares")
            distance = Fraction(0) if scale is None else (limit.bound - scale[1]) / scale[0]
            if 0 < distance < Fraction(m - 1, m):
                most = voters * distance / (m - 1 - m * distance)
                found += [log_down(1 + g / most) for epsilon, g in moved if isinstance(epsilon, Share)]
        return _chosen(vote, found)
    uniform = vote.law is not None and len(vote.law) == m and len({p for _, p in vote.law}) == 1
    for term in vote.loss.terms:
        grows = all(w >= 0 and (cost.form == "votes missed" or cost.shares) for w, cost in term.parts)
        if term.weight < 0 or not grows or (term.mean and not uniform):
            raise Refused("a bound is claimed for a loss that it is not known for")
    fewest = [g / (_power(epsilon) - 1) for epsilon, g in moved if isinstance(epsilon, Fraction) and epsilon > 0]
    return [value_of(Rule("dictator", dummies), vote, vote.loss)[0] for dummies in fewest]


def log_down(ratio: Fraction) -> Fraction:
    """At most a logarithm; 0 where it is below that."""
    return max(end(ball(ratio).log().lower()), Fraction(0)) if ratio > 1 else Fraction(0)


# --- plans ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Executed:
    """What `run` does: draws the winner of these ballots by this rule.

    `voters` is None where their number is secret; `drops`: ballots that do not fit are left out, not mapped; `rounds`:
    how many votes share which epsilon.
    """

    rule: Rule
    source: str
    party: str
    output: str
    alternatives: tuple[str, ...]
    ballots: Ballots
    voters: int | None
    drops: bool
    rounds: tuple[int, Fraction] | None
    chosen: dict[str, Fraction]


def read_executed(mechanism: Item, vote: Vote, frame: Frame) -> Executed:
    """The mechanism of a plan: all but the rule, its number and the numbers that are picked is as the problem says.

    Raises: Refused.
    """
    family = mechanism.value.get("family") if isinstance(mechanism.value, dict) else None
    if family not in RULES:
        raise mechanism.wrong("is of a family that is not known")
    key, least, _ = RULES[family]
    _, number, *same, rounds, scalars = mechanism.fields(
        "family", key, "input", "party", "output", "ballots", "places", "points", "alternatives", "voters",
        "leaves_out", "rounds", "scalars",
    )  # fmt: skip
    drops, ballots, voters = frame.data[0].rule == "drop", vote.ballots, None if vote.secret else vote.voters
    whose, points = (vote.source, vote.party, vote.output), "borda" if ballots.borda else "first choice"
    expected = (*whose, ballots.kind, ballots.places, points, list(vote.words), voters, drops)
    for item, value in zip(same, expected, strict=True):
        item.same(value)
    local = frame.trust == "nobody" or any("LDP" in one.measure.name for one in frame.obligations)
    rule = Rule(family, number.exact(least), family == "local_dictator" and local)
    chosen = {}
    if isinstance(vote.loss, Choice):
        chosen = {vote.loss.name: scalars.fields(vote.loss.name)[0].exact(0)}
    else:
        scalars.same({})
    shared = _rounds(rounds, vote, chosen)
    return Executed(rule, *whose, vote.words, ballots, voters, drops, shared, chosen)


def _rounds(stated: Item, vote: Vote, chosen: dict[str, Fraction]) -> tuple[int, Fraction] | None:
    if vote.rounds is None:
        stated.same(None)
        return None
    name, budget, known = vote.rounds
    count = chosen.get(name, Fraction(0)) if known is None else Fraction(known)
    if count < 1 or count.denominator != 1:
        raise stated.wrong("is no number of rounds")
    said = [item.exact() for item in stated.fields("count", "budget", "each", "fit")]
    if said != [count, budget, budget / count, count]:
        raise stated.wrong("does not share the epsilon that rounds have together")
    return int(count), budget


def change_of(obligation: Obligation, vote: Vote) -> Change:
    """What an obligation compares."""
    (unit,) = obligation.units
    voters = None if vote.secret else vote.voters
    group = vote.voters if unit.kind == "everything" else unit.count
    return Change(unit.adding, group if unit.adding or voters is None else min(group, voters), voters)


class VoteRules(Rules):
    """Plans that draw a winner from votes."""

    def judge(self, case: Case) -> Executed:
        """All statements of such a plan.

        Raises: Refused.
        """
        with ctx.workprec(PRECISION):
            vote = read_vote(case.block)
            self._frame(case, vote)
            executed = self._mechanism(case, vote)
            self._privacy(case, vote, executed)
            value = self._loss(case, vote, executed)
            self._accuracy(case, vote, executed.rule)
            self._bound(case, vote, value)
        return executed

    def _frame(self, case: Case, vote: Vote) -> None:
        """One input of ballots, one winner, one unit a line: a voter, several, or all of them."""
        frame, lines = case.frame, case.frame.obligations
        if [(one.name, one.party) for one in frame.data] != [(vote.source, vote.party)] or not lines:
            raise case.block.wrong("does not read just the one input of the problem")
        for one in lines:
            unit = one.units[0]
            known = (unit.kind == "party" and unit.party == vote.party) or (
                unit.kind == "everything" and not vote.secret
            )
            if one.outputs != (vote.output,) or one.seen != (vote.output,) or one.wrt != (vote.source,):
                raise case.block.wrong("gives another output than the lines are about")
            if len(one.units) != 1 or not known or unit.apart is not None or (unit.adding and unit.kind != "party"):
                raise case.block.wrong("has a line about another unit than voters")
        if vote.secret != any(one.units[0].adding for one in lines):
            raise case.block.wrong("makes the number of voters public, though voters come and go")
        if (frame.data[0].rule == "drop") != all(one.units[0].adding for one in lines):
            raise case.block.wrong("leaves ballots out where their number may not change")
        if frame.trust not in ("curator", "nobody") or not case.fairness.absent:
            raise case.block.wrong("is under a trust, or has lines of fairness, that is not known for votes")

    def _mechanism(self, case: Case, vote: Vote) -> Executed:
        executed = read_executed(case.mechanism, vote, case.frame)
        rule, allowed = executed.rule, not vote.families or executed.rule.family in vote.families
        local = case.frame.trust == "nobody" or any("LDP" in one.measure.name for one in case.frame.obligations)
        powers = rule.family in ("exponential", "permute_and_flip")
        case.says("view", rule.seen or not local, "the winner is seen" + (", and every report" if rule.seen else ""))
        text = f"{rule.family} with {RULES[rule.family][0]} {rule.number}"
        case.says("law", allowed and (vote.ballots.whole or not powers), text)
        if isinstance(vote.loss, Choice):
            low, high, picked = vote.loss.low, vote.loss.high, executed.chosen[vote.loss.name]
            inside = picked > 0 and low <= picked and (high is None or picked <= high)
            text = f"{vote.loss.name} = {picked} is in the range that the problem leaves open"
            case.says("choices", inside and (picked.denominator == 1 or not vote.loss.whole), text)
        if executed.rounds is not None and vote.rounds is not None:
            (count, budget), name = executed.rounds, vote.rounds[0]
            figures = [one.measure.amounts["epsilon"] for one in case.frame.obligations]
            holds = all(figure in (Share(name, budget, True), budget / count) for figure in figures)
            case.says("rounds", holds, f"{count} votes share an epsilon of {budget}, each with {budget / count}")
        return executed

    def _privacy(self, case: Case, vote: Vote, executed: Executed) -> None:
        for one in read_guarantees(case.guarantees, case.frame, executed.chosen):
            change, measure = change_of(one.obligation, vote), one.obligation.measure
            ratio, said = executed.rule.ratio(vote.ballots, change), one.achieved.get("epsilon", Fraction(-1))
            group = vote.voters if one.obligation.units[0].kind == "everything" else one.obligation.units[0].count
            named = [RULES[executed.rule.family][2], *(["group-privacy"] if group > 1 else [])]
            if list(one.because) != [*named, *(["repeated-votes"] if vote.rounds is not None else [])]:
                raise case.guarantees.wrong("names another lemma than the one it rests on")
            proved = set(one.achieved) == {"epsilon"} and within(ratio, said) and not measure.each
            holds = proved and pure_proves(measure.name, one.asked, said)
            spare = said != one.asked["epsilon"] and said > 0 and within(ratio, said * (1 - SPENT))
            text = (
                f"{measure.name}, {one.obligation.neighbours}: no probability changes by more than e^{float(said):.6g}"
            )
            case.says("privacy", holds and not spare, f"{text} ({named[0]})", one.number)

    def _loss(self, case: Case, vote: Vote, executed: Executed) -> Value | None:
        """The value that is stated is the nearest double of the one derived; None where it was simulated."""
        stated = case.loss.fields(*STATED, optional=("standard_error", "profiles"))
        value, _, _, expression, units, _, kind, error, profiles = stated
        expression.same(vote.expression)
        units.same("units of the loss expression")
        terms = vote.loss.terms if isinstance(vote.loss, Measured) else ()
        kind.same("expected" if any(term.mean for term in terms) else "worst")
        try:
            found = self._derived(vote, executed)
        except Refused:
            if error.absent:
                raise
            count, off = profiles.integer(1), error.double()
            text = f"tested, not proved: a mean over {count} simulated profiles, standard error {off:.2g}"
            case.says("loss", off > 0 and case.status == "feasible", text)
            return None
        if not error.absent or not profiles.absent:
            raise error.wrong("is of a simulation, where the exact loss is known")
        low, high = nearest_double(found[0]), nearest_double(found[1])
        case.says("loss", low == high == value.double(), f"re-derived {low:.12g}, the plan says {value.double():.12g}")
        return found

    def _derived(self, vote: Vote, executed: Executed) -> Value:
        if isinstance(vote.loss, Measured):
            return value_of(executed.rule, vote, vote.loss)
        return (vote.loss.loss(executed.chosen[vote.loss.name]),) * 2

    def _accuracy(self, case: Case, vote: Vote, rule: Rule) -> None:
        for i, (item, limit) in enumerate(zip(case.accuracy.items(len(vote.limits)), vote.limits, strict=True)):
            line, text, value, bound = item.fields("line", "text", "value", "bound")
            line.same(limit.line)
            text.same(limit.text)
            found = Fraction(0), Fraction(0)
            if limit.measured is not None:
                found = value_of(rule, vote, limit.measured)
            elif rule.family not in ("dictator", "local_dictator") and vote.ballots.size > 2:
                raise Refused(f"line {limit.line}: nobody knows what a lie brings at most under this rule")
            low, high, most = nearest_double(found[0]), nearest_double(found[1]), nearest_double(limit.bound)
            holds = low == high == value.double() and found[1] <= limit.bound and most == bound.double()
            case.says("accuracy", holds, f"line {limit.line}: {low:.10g}, asked for at most {most:.10g}", i)

    def _bound(self, case: Case, vote: Vote, value: Value | None) -> None:
        (witness,) = case.claims.fields(optional=("bound",))
        said, bound, gap, _, _, among, *_ = case.loss.fields(*STATED, optional=("standard_error", "profiles"))
        if witness.absent:
            among.same(SCOPES[""])
            if not (bound.absent and gap.absent and case.status == "feasible"):
                raise bound.wrong("is claimed without its proof")
            return
        if value is None:
            raise bound.wrong("stands beside a simulated loss")
        among.same(SCOPES[witness.form(*filter(None, SCOPES))])
        try:
            found = max(bounds(case, vote, witness), default=None)
        except Refused as reason:
            case.says("bound", False, str(reason))
            return
        if found is None:
            case.says("bound", False, "a bound is claimed, and there is no line that it could come from")
            return
        low, high = bound.double(), said.double()
        holds = Fraction(low) <= found
        case.says("bound", holds, f"{among.text()}: none has a loss below {nearest_double(found):.10g}")
        off = nearest_double((Fraction(high) - Fraction(low)) / abs(Fraction(high))) if high else 0.0
        holds = gap.double() == off and (case.status == "optimal") == (off <= OPTIMAL_GAP)
        case.says("gap", holds, f"{100 * off:.3g} % of the loss lies above the bound: {case.status}")
