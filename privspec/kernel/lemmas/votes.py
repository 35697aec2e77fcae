"""Plans of votes: what is asked, what is executed, its privacy, its loss over all profiles, bounds for all rules."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privspec.kernel.core.case import Case, Rules
from privspec.kernel.core.numbers import exp_up, nearest_double
from privspec.kernel.core.problem import Frame, Guarantee, Obligation, Share, pure_proves, read_guarantees
from privspec.kernel.core.reading import READERS, WORDS, Item, Refused, Size, read
from privspec.kernel.lemmas.votes_rules import RULES, Ballots, Change, Rule, Scores, totals, within

OPTIMAL_GAP = 1e-6
FARTHEST = 500
"""Exponents beyond which a bound is nothing."""
SPENT = Fraction(1, 2**30)
"""By how much of itself a stated epsilon may be above the one that is derived."""
SCOPES = {
    "walk": "every rule that meets the requirement",
    "near tie": "every rule that meets the requirement",
    "strategy-proof": "every strategy-proof rule that meets the requirement",
}
"""What a loss is the least of, by the form of the bound."""
LISTED = "the rules of private voting that this plan lists"
STATED = ("value", "lower_bound", "relative_gap", "expression", "units", "among", "kind")
NONE, ONE = Fraction(0), Fraction(1)
SHARES, PLURALITY = Rule("dictator", NONE), Rule("plurality", NONE)
MIXTURES = ("dictator", "local_dictator")
"""Rules of a law (1 - w) S / sum S + w / m."""
Value = tuple[Fraction, Fraction]
"""A number, and by how much it may be off; or two numbers that it is between."""
Chosen = dict[str, Fraction]


# --- what the problem asks --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cost:
    """`weight` times what a winner's law costs at a profile: its distance from another rule's, or the mismatch.

    Votes that are missed on average are a mismatch with the shares.
    """

    weight: Fraction
    form: str
    family: str
    number: Size

    @property
    def beside(self) -> tuple[bool, Rule]:
        """Whether it is a distance, and from what."""
        return self.form == "distance", Rule(self.family, self.number)

    def at(self, rule: Rule, scores: Scores) -> Value:
        (one, off), (other, more) = rule.law(scores), self.beside[1].law(scores)
        pairs = list(zip(one, other, strict=True))
        missed = 1 - sum((p * q for p, q in pairs), NONE)
        cost = sum((abs(p - q) for p, q in pairs), NONE) / 2 if self.form == "distance" else missed
        return self.weight * cost, abs(self.weight) * 2 * (off + more)

    def worst(self, rule: Rule, ballots: Ballots, voters: int) -> list[Scores]:
        """Profiles of which one is the worst; none where that is not known (worst-cases).

        The randomised winner misses plurality alike everywhere. Mixtures with the uniform law are farthest from the
        shares where all cast one of the longest ballots. Of first choices: a mismatch with the shares is largest where
        votes are even, as laws order alternatives as votes do (Chebyshev's sum inequality); a loss beside plurality
        where j lead with the least score that j of them, and no j + 1, can have, the rest in one hand; for the
        randomised winner beside shares also the largest such score.
        """
        m, (apart, other), winner = ballots.size, self.beside, rule.family == "randomised_winner"
        longest = tuple(voters * p for p in ballots.points(tuple(range(ballots.places))))
        if (winner and other == PLURALITY) or (
            rule.family in MIXTURES and self.beside == (True, SHARES) and self.weight >= 0
        ):
            return [longest]
        if self.weight < 0 or ballots.borda or other not in (SHARES, PLURALITY):
            return []
        each, more = divmod(voters, m)
        found = [[each + 1] * more + [each] * (m - more)] if other == SHARES else []
        if other == SHARES and not winner and (apart or (more and rule.family not in MIXTURES)):
            return []
        for j in range(1, m + 1 if winner or not found else 1):
            for most in (voters // (j + 1) + 1 if j < m else voters // m, *[voters // j] * len(found[:1])):
                rest = voters - j * most
                if most >= 1 and 0 <= rest <= most and (j < m or not rest):
                    found.append(([most] * j + [rest] + [0] * m)[:m])
        return [tuple(map(Fraction, one)) for one in found]

    def mean(self, rule: Rule, ballots: Ballots, voters: int, law: list[tuple[Scores, Fraction]]) -> Value:
        """On average. Of mixtures the mismatch is 1 - (1 - w) sum q^2 - w / m, E[N^2] = T p (1 - p) + T^2 p^2."""
        m = ballots.size
        if rule.family in MIXTURES and self.beside == (False, SHARES) and not ballots.borda:
            w = m * min(rule.law((Fraction(voters), *[NONE] * (m - 1)))[0]) if m > 1 else ONE
            squares = sum((p * (1 - p) / voters + p * p for _, p in law), NONE)
            return self.weight * (1 - (1 - w) * squares - w / m), NONE
        if rule.family == "randomised_winner" and self.beside[1] == PLURALITY:
            return self.at(rule, self.worst(rule, ballots, voters)[0])
        return added([(mass, *self.at(rule, one)) for one, mass in totals(ballots, voters, law)])


def added(values: list[tuple[Fraction, Fraction, Fraction]]) -> Value:
    """The sum of numbers by their weights."""
    return sum((mass * value for mass, value, _ in values), NONE), sum(
        (abs(mass) * off for mass, _, off in values), NONE
    )


@dataclass(frozen=True, slots=True)
class Term:
    """E[...] or worst[...], over all profiles, of a sum of costs."""

    operator: str
    parts: tuple[Cost, ...]

    def of(self, rule: Rule, vote: Vote) -> Value:
        ballots, voters = vote.ballots, vote.voters
        if not voters:
            raise Refused("a loss of no voters")
        if self.operator == "E":
            if vote.law is None:
                raise Refused("an average over votes without a data model")
            return added([(ONE, *part.mean(rule, ballots, voters, vote.law)) for part in self.parts])
        known = self.parts[0].worst(rule, ballots, voters) if len(self.parts) == 1 else []
        every = known or [one for one, _ in totals(ballots, voters, [(kind, ONE) for kind in ballots.kinds()])]
        found = [added([(ONE, *part.at(rule, scores)) for part in self.parts]) for scores in every]
        return max(value for value, _ in found), max(off for _, off in found)


@dataclass(frozen=True, slots=True)
class Total:
    """A sum of terms and a constant."""

    FORM = "measured"

    terms: tuple[Term, ...]
    offset: Fraction

    def of(self, rule: Rule, vote: Vote, chosen: Chosen) -> Value:
        """Two numbers that it is between, under a rule; refused where it cannot be worked out."""
        value, off = added([(ONE, self.offset, NONE), *((ONE, *term.of(rule, vote)) for term in self.terms)])
        return value - off, value + off

    def alone(self, *wanted: tuple[bool, Rule]) -> Fraction | None:
        """The w > 0 where it is w * worst[cost] and a constant, the cost being one of those wanted; else None."""
        parts = [(term.operator, part) for term in self.terms for part in term.parts]
        alike = [part.weight for word, part in parts if word == "worst" and part.beside in wanted and part.weight > 0]
        return alike[0] if len(self.terms) == len(parts) == len(alike) == 1 else None


@dataclass(frozen=True, slots=True)
class Choice:
    """A number in a range that is picked, and that is the whole loss: weight times it, or weight divided by it."""

    FORM = "choice"

    name: str
    low: Size
    high: Size | None
    whole: bool
    weight: Fraction
    inverse: bool

    def of(self, rule: Rule, vote: Vote, chosen: Chosen) -> Value:
        number = chosen[self.name]
        return (self.weight / number if self.inverse else self.weight * number,) * 2


@dataclass(frozen=True, slots=True)
class Line:
    """An accuracy line: `measured`, or without it what a lie brings a voter, is at most `bound`."""

    line: int
    text: str
    measured: Total | None
    bound: Fraction


@dataclass(frozen=True, slots=True)
class Rounds:
    """So many votes share an epsilon; None where solving picks how many."""

    name: str
    budget: Size
    count: int | None


@dataclass(frozen=True, slots=True)
class Vote:
    """The block of a vote; `secret`: the number of voters may not become public; `law` that of points of a ballot."""

    FORM = "votes"

    source: str
    party: str
    output: str
    voters: int
    secret: bool
    ballots: Ballots
    law: BallotLaw | None
    loss: Total | Choice
    expression: str
    limits: tuple[Line, ...]
    rounds: Rounds | None
    families: tuple[str, ...]

    def __post_init__(self) -> None:
        kinds, law = {kind for kind, _ in self.law or ()}, self.law or [((Fraction(self.ballots.total),), ONE)]
        if sum(weight for _, weight in law) != 1 or (self.law is not None and len(kinds) != len(law)):
            raise Refused("has what is no law of the points of a ballot")
        if self.voters > 10**18 or any(sum(kind) != self.ballots.total for kind, _ in law):
            raise Refused("has what is no law of the points of a ballot, or too many voters")

    @property
    def public_voters(self) -> int | None:
        return None if self.secret else self.voters


def _law(item: Item) -> BallotLaw:
    pairs = [pair.items(2) for pair in item.items()]
    return [(tuple(points.exact(0) for points in kind.items()), weight.exact(0)) for kind, weight in pairs]


BallotLaw = list[tuple[Scores, Fraction]]
READERS |= {"BallotLaw": _law}
WORDS |= {
    "Cost.form": ("distance", "mismatch", "votes missed"),
    "Cost.family": (*RULES, "plurality"),
    "Term.operator": ("E", "worst"),
}


# --- bounds for every rule --------------------------------------------------------------------------------


def proved(case: Case, vote: Vote, witness: Item, low: Fraction) -> Fraction | None:
    """What no rule's loss is below; of a number that is picked `low`, where at the next better one no rule is left."""
    choice = vote.loss
    if isinstance(choice, Total):
        return max(bounds(case, vote, witness, choice, {}), default=None)
    falls = choice.inverse == (choice.weight > 0)
    amounts = [amount for one in case.frame.obligations for amount in one.measure.amounts.values()]
    if not choice.weight or any(isinstance(one, Share) and one.inverse != falls for one in amounts):
        raise Refused("the loss does not fall with the number of rounds")
    number = choice.weight / low if choice.inverse else low / choice.weight
    better = Fraction(number // 1 + 1) if falls and choice.whole else number
    out = choice.high is not None and better > choice.high if falls else better <= choice.low
    measured = [(limit.measured, limit.bound) for limit in vote.limits if limit.measured is not None]
    missed = (max(bounds(case, vote, witness, m, {choice.name: better}), default=b) > b for m, b in measured)
    return low if out or any(missed) else None


def bounds(case: Case, vote: Vote, witness: Item, measured: Total, chosen: Chosen) -> list[Fraction]:
    """What a witness proves of a sum under any rule, by each line, rounded down; none where it is about other sums.

    lottery-bound, randomised-winner: from unanimity k votes move to another alternative, or from a near tie one vote
    makes anyone win; each moved vote is one neighbour away, or two where voters come and go. A strategy-proof law of
    m > 2 alternatives is f_a = d_a + s n_a, no better than dummy votes, of these at least g / (e^eps - 1) for each.
    """
    form, m, voters = witness.form(*SCOPES), vote.ballots.size, vote.voters
    lines = [(one, one.measure.name, one.measure.figures(chosen)["epsilon"]) for one in case.frame.obligations]
    pure = [(one, name, epsilon) for one, name, epsilon in lines if name in ("epsilon-DP", "epsilon-LDP")]
    if vote.ballots.borda or m < 2 or not voters:
        raise Refused("no such bound is known for these ballots")
    if form == "strategy-proof":
        witness.fields("form")
        honest = any(limit.measured is None and limit.bound == 0 for limit in vote.limits)
        if vote.ballots.kind != "first choice" or m < 3 or not honest:
            raise Refused("a bound for strategy-proof rules, where lies are allowed or such rules are not known")
        even = vote.law is not None and len(vote.law) == m and len({weight for _, weight in vote.law}) == 1
        parts = [(term.operator, part) for term in measured.terms for part in term.parts]
        if not all(part.weight >= 0 and part.beside[1] == SHARES and (word != "E" or even) for word, part in parts):
            return []
        moved = [(change_of(one, vote), epsilon) for one, name, epsilon in pure if name == "epsilon-DP" and epsilon > 0]
        dummies = [change.moved / (_power(epsilon) - 1) for change, epsilon in moved if not change.adding]
        return [measured.of(Rule("dictator", each), vote, chosen)[0] for each in dummies]
    _, detail = witness.fields("form", "votes" if form == "walk" else "profile")
    each, more = divmod(voters, m)
    if form == "near tie" and [n.integer() for n in detail.items(m)] != [each] * (m - more) + [each + 1] * more:
        raise detail.wrong("is no profile from which one vote leads to every winner")
    votes = detail.integer(1, voters) if form == "walk" else 1
    weight = measured.alone((True, SHARES)) if form == "walk" else measured.alone((True, PLURALITY), (False, PLURALITY))
    costs = [least_cost(form, voters, m, votes, epsilon, 1 + one.units[0].adding) for one, _, epsilon in pure]
    return [weight * cost + measured.offset for cost in costs] if weight else []


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


# --- plans ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Executed:
    """What `run` does: draws the winner of the ballots of `vote` by this rule.

    `drops`: ballots that do not fit are left out, not mapped; `rounds`: how many votes share which epsilon.
    """

    vote: Vote
    rule: Rule
    drops: bool
    rounds: tuple[int, Fraction] | None
    chosen: Chosen


def read_executed(mechanism: Item, frame: Frame) -> Executed:
    """All but the rule, its number and the numbers that are picked is as the problem says."""
    vote = read(Vote, frame.blocks[0])
    assert isinstance(vote, Vote)
    _units(frame, vote)
    family = mechanism.value.get("family") if isinstance(mechanism.value, dict) else None
    if family not in RULES:
        raise mechanism.wrong("is of a family that is not known")
    (key, least, _), ballots, drops = RULES[family], vote.ballots, frame.data[0].rule == "drop"
    said: dict[str, object] = {"input": vote.source, "party": vote.party, "output": vote.output}
    said |= {"ballots": ballots.kind, "places": ballots.places, "points": ballots.counted}
    said |= {"alternatives": ballots.alternatives, "voters": vote.public_voters, "leaves_out": drops}
    _, number, shared, scalars, *same = mechanism.fields("family", key, "rounds", "scalars", *said)
    for item, value in zip(same, said.values(), strict=True):
        item.same(value)
    rule = Rule(family, number.exact(least), family == "local_dictator" and local(frame))
    names = [vote.loss.name] if isinstance(vote.loss, Choice) else []
    chosen = {name: item.exact(0) for name, item in zip(names, scalars.fields(*names), strict=True)}
    if vote.rounds is None:
        shared.same(None)
        return Executed(vote, rule, drops, None, chosen)
    budget, known = vote.rounds.budget, vote.rounds.count
    count = chosen.get(vote.rounds.name, NONE) if known is None else Fraction(known)
    if count < 1 or count.denominator != 1:
        raise shared.wrong("is no number of rounds")
    if [item.exact() for item in shared.fields("count", "budget", "each", "fit")] != [
        count,
        budget,
        budget / count,
        count,
    ]:
        raise shared.wrong("does not share the epsilon that rounds have together")
    return Executed(vote, rule, drops, (int(count), budget), chosen)


def _units(frame: Frame, vote: Vote) -> None:
    """One input of ballots, one winner, one unit a line: a voter, several, or all of them."""
    lines, units = frame.obligations, [unit for one in frame.obligations for unit in one.units]
    voter = [(unit.kind, unit.party) == ("party", vote.party) for unit in units]
    every = [unit.kind == "everything" and not unit.adding and not vote.secret for unit in units]
    known = all(map(max, voter, every)) and all(unit.apart is None for unit in units)
    held, coming = [(one.name, one.party) for one in frame.data], [unit.adding for unit in units]
    about, heads = ((vote.output,), (vote.output,), (vote.source,)), {(one.outputs, one.seen, one.wrt) for one in lines}
    for text, holds in (
        ("does not read just the one input of the problem", held == [(vote.source, vote.party)] and coming),
        ("gives another output than the lines are about", heads == {about}),
        ("has a line about another unit than voters", known and len(units) == len(lines)),
        ("makes the number of voters public, though voters come and go", vote.secret == any(coming)),
        ("leaves ballots out where their number may not change", (frame.data[0].rule == "drop") == all(coming)),
        ("is under a trust that is not known for votes", frame.trust in ("curator", "nobody")),
    ):
        if not holds:
            raise frame.blocks[0].wrong(text)


def local(frame: Frame) -> bool:
    """Whether voters have to send reports."""
    return frame.trust == "nobody" or any("LDP" in one.measure.name for one in frame.obligations)


def change_of(obligation: Obligation, vote: Vote) -> Change:
    """What an obligation compares."""
    (unit,), voters = obligation.units, vote.public_voters
    group = vote.voters if unit.kind == "everything" else unit.count
    return Change(unit.adding, group if unit.adding or voters is None else min(group, voters), voters)


class VoteRules(Rules):
    """Plans that draw a winner from votes."""

    def judge(self, case: Case) -> Executed:
        executed = read_executed(case.mechanism, case.frame)
        case.fairness.same(None)
        self._mechanism(case, executed)
        for one in read_guarantees(case.guarantees, case.frame, executed.chosen):
            self._privacy(case, executed, one)
        exact = self._loss(case, executed)
        self._accuracy(case, executed)
        self._bound(case, executed.vote, exact)
        return executed

    def _mechanism(self, case: Case, executed: Executed) -> None:
        vote, rule, choice = executed.vote, executed.rule, executed.vote.loss
        text = "the winner is seen" + (", and every report" if rule.seen else "")
        case.says("view", rule.seen or not local(case.frame), text)
        fits = vote.ballots.whole or rule.family not in ("exponential", "permute_and_flip")
        allowed = not vote.families or rule.family in vote.families
        case.says("law", allowed and fits, f"{rule.family} with {RULES[rule.family][0]} {rule.number}")
        if isinstance(choice, Choice):
            picked = executed.chosen[choice.name]
            inside = max(picked, choice.low) == picked > 0 and (choice.high is None or picked <= choice.high)
            text = f"{choice.name} = {picked} is in the range that the problem leaves open"
            case.says("choices", inside and (picked.denominator == 1 or not choice.whole), text)
        if executed.rounds is not None and vote.rounds is not None:
            count, budget = executed.rounds
            known = (Share(vote.rounds.name, budget, True), budget / count)
            holds = all(one.measure.amounts["epsilon"] in known for one in case.frame.obligations)
            case.says("rounds", holds, f"{count} votes share an epsilon of {budget}, each with {budget / count}")

    def _privacy(self, case: Case, executed: Executed, one: Guarantee) -> None:
        vote, family, measure, unit = (
            executed.vote,
            executed.rule.family,
            one.obligation.measure,
            one.obligation.units[0],
        )
        ratio = executed.rule.ratio(vote.ballots, change_of(one.obligation, vote))
        many = (vote.voters if unit.kind == "everything" else unit.count) > 1
        named = (RULES[family][2], *["group-privacy"] * many, *["repeated-votes"] * (vote.rounds is not None))
        if one.because != named:
            raise case.guarantees.wrong("names another lemma than the one it rests on")
        said = one.achieved.get("epsilon", -ONE)
        proved = set(one.achieved) == {"epsilon"} and within(ratio, said) and not measure.each
        spare = said != one.asked["epsilon"] and said > 0 and within(ratio, said * (1 - SPENT))
        text = f"{one.obligation.neighbours}: no probability changes by more than e^{float(said):.6g} ({named[0]})"
        holds = proved and pure_proves(measure.name, one.asked, said) and not spare
        case.says("privacy", holds, f"{measure.name}, {text}", one.number)

    def _loss(self, case: Case, executed: Executed) -> bool:
        """Whether the value that is stated is the nearest double of the one derived; False where it was simulated."""
        stated = case.loss.fields(*STATED, optional=("standard_error", "profiles"))
        value, _, _, expression, units, _, kind, error, profiles = stated
        vote, asked = executed.vote, executed.vote.loss
        expression.same(vote.expression)
        units.same("units of the loss expression")
        kind.same("expected" if any(t.operator == "E" for t in getattr(asked, "terms", ())) else "worst")
        try:
            low, high = map(nearest_double, asked.of(executed.rule, vote, executed.chosen))
        except Refused:
            if error.absent:
                raise
            count, off = profiles.integer(1), error.double()
            text = f"tested, not proved: a mean over {count} simulated profiles, standard error {off:.2g}"
            case.says("loss", off > 0 and case.status == "feasible", text)
            return False
        if not error.absent or not profiles.absent:
            raise error.wrong("is of a simulation, where the exact loss is known")
        case.says("loss", low == high == value.double(), f"re-derived {low:.12g}, the plan says {value.double():.12g}")
        return True

    def _accuracy(self, case: Case, executed: Executed) -> None:
        vote, rule = executed.vote, executed.rule
        for i, (item, limit) in enumerate(zip(case.accuracy.items(len(vote.limits)), vote.limits, strict=True)):
            line, text, value, bound = item.fields("line", "text", "value", "bound")
            line.same(limit.line)
            text.same(limit.text)
            found = (NONE, NONE) if limit.measured is None else limit.measured.of(rule, vote, executed.chosen)
            if limit.measured is None and rule.family not in MIXTURES and vote.ballots.size > 2:
                raise Refused(f"line {limit.line}: nobody knows what a lie brings at most under this rule")
            low, high, most = map(nearest_double, (*found, limit.bound))
            holds = low == high == value.double() and found[1] <= limit.bound and most == bound.double()
            case.says("accuracy", holds, f"line {limit.line}: {low:.10g}, asked for at most {most:.10g}", i)

    def _bound(self, case: Case, vote: Vote, exact: bool) -> None:
        (witness,) = case.claims.fields(optional=("bound",))
        said, bound, gap, _, _, among, *_ = case.loss.fields(*STATED, optional=("standard_error", "profiles"))
        among.same(LISTED if witness.absent else SCOPES[witness.form(*SCOPES)])
        if witness.absent:
            if not (bound.absent and gap.absent and case.status == "feasible"):
                raise bound.wrong("is claimed without its proof")
            return
        if not exact:
            raise bound.wrong("stands beside a simulated loss")
        low, high = Fraction(bound.double()), Fraction(said.double())
        try:
            found = proved(case, vote, witness, low)
        except Refused as reason:
            case.says("bound", False, str(reason))
            return
        if found is None:
            case.says("bound", False, "a bound is claimed for a loss that it is not known for, or by no line")
            return
        text = f"{among.text()}: none has a loss below {nearest_double(found):.10g}"
        case.says("bound", low <= found, text)
        off = nearest_double((high - low) / abs(high)) if high else 0.0
        holds = gap.double() == off and (case.status == "optimal") == (off <= OPTIMAL_GAP)
        case.says("gap", holds, f"{100 * off:.3g} % of the loss lies above the bound: {case.status}")
