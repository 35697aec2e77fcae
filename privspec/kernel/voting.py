"""Plans of votes: what is asked, what is executed, its privacy, its loss over all profiles, bounds for all rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from fractions import Fraction
from math import comb, lcm

from flint import fmpz_mpoly_ctx

from privspec.kernel.changes import Records
from privspec.kernel.core.numbers import ZERO, exp_up
from privspec.kernel.core.problem import (
    Frame,
    Guarantee,
    Mechanism,
    Obligation,
    PlanUnderCheck,
    Rules,
    Share,
    read_guarantees,
)
from privspec.kernel.core.reading import JsonNode, Refused, Size, frozen, read
from privspec.kernel.laws.voting import (
    BY_NAME,
    DUMMY_VOTES,
    PLURALITY,
    TURNED_WINNER,
    Ballots,
    Scores,
    VotingRule,
    Winner,
)
from privspec.kernel.measures import LOCAL_PURE, PURE
from privspec.kernel.promises import Line, Question, SharedBudget, verdict
from privspec.kernel.terms import Pick
from privspec.kernel.worth import SIMULATED, LowerBound, judge_bounded, judge_lines
from privspec.kernel.worth import Line as AccuracyLine

FARTHEST, SPENT = 500, Fraction(1, 2**30)
"""Beyond such exponents a bound is nothing; by so much of itself a stated epsilon may be above the one derived."""
SCOPES = {
    "walk": "every rule that meets the requirement",
    "near tie": "every rule that meets the requirement",
    "strategy-proof": "every strategy-proof rule that meets the requirement",
    "dummy votes": "every number of dummy votes, the one rule that the options allow",
}
"""What a loss is the least of, by the form of the bound."""
LISTED = "the rules of private voting that this plan lists"
PROFILES, WORK = 5000, 3_000_000
"""Most profiles, and steps towards them, at once."""
COMPARED = {one.name: one for one in (*BY_NAME.values(), PLURALITY)}
"""Rules that a winner's law may be compared with."""
Chosen = dict[str, Fraction]
Lines = tuple[Obligation, ...]


# --- what the problem asks --------------------------------------------------------------------------------


@frozen
class RuleAt:
    """A rule with its number."""

    rule: VotingRule
    number: Fraction = ZERO

    def law(self, scores: Scores) -> list[Fraction]:
        """The probabilities of the alternatives at their points, off by what the rule says together."""
        return self.rule.law(self.number, scores)


SHARES, LARGEST = RuleAt(DUMMY_VOTES), RuleAt(PLURALITY)
MISSED = False, SHARES


@frozen
class Cost:
    """`weight` times what a winner's law costs at a profile: its distance from another rule's, or the mismatch.

    Votes that are missed on average are a mismatch with the shares.
    """

    weight: Fraction
    form: str
    family: str
    number: Size

    def __post_init__(self) -> None:
        missed = self.form == "votes missed" and self.beside != MISSED
        if missed or self.number < COMPARED[self.family].least:
            raise Refused("is no cost that is known")

    @property
    def beside(self) -> tuple[bool, RuleAt]:
        """Whether it is a distance, and from what."""
        return self.form == "distance", RuleAt(COMPARED[self.family], self.number)

    def at(self, law: list[Fraction], scores: Scores) -> Fraction:
        pairs = list(zip(law, self.beside[1].law(scores), strict=True))
        if self.form == "distance":
            return self.weight * sum((abs(p - q) for p, q in pairs), ZERO) / 2
        return self.weight * (1 - sum((p * q for p, q in pairs), ZERO))

    def worst(self, rule: RuleAt, vote: Vote) -> list[Scores]:
        """Profiles of which one is the worst; none where that is not known (worst-cases).

        The randomised winner misses plurality alike everywhere. Mixtures with the uniform law are farthest from the
        shares where all cast one of the longest ballots. Of first choices: a mismatch with the shares is largest where
        votes are even, as laws order alternatives as votes do (Chebyshev's sum inequality); a loss beside plurality
        where j lead with the least score that j of them, and no j + 1, can have, the rest in one hand; for the
        randomised winner beside shares also the largest such score. All of these are profiles: none is too many. Where
        alternatives surely have supporters, the first two are the same, and nothing is known of the last.
        """
        t, m, other, winner = vote.voters, vote.ballots.size, self.beside[1], rule.rule is TURNED_WINNER
        mixture, (each, more) = rule.rule.affine, divmod(t, m)
        if (winner and other == LARGEST) or (mixture and self.beside == (True, SHARES) and self.weight >= 0):
            return [unanimous(vote)]
        if vote.ballots.supporters and not (mixture and self.beside == MISSED and self.weight >= 0):
            return []
        known = other == LARGEST or (winner and other == SHARES) or (self.beside == MISSED and (mixture or not more))
        if self.weight < 0 or vote.ballots.borda or not known:
            return []
        found = [[each + 1] * more + [each] * (m - more)]
        leading = [] if vote.ballots.supporters else range(1, m + 1)
        for j, most in [(k, n) for k in leading for n in (t // (k + 1) + 1, t // k)]:
            rest = t - j * most
            if 0 <= rest <= most and (j < m or not rest):
                found.append(([most] * j + [rest] + [0] * m)[:m])
        return [tuple(map(Fraction, one)) for one in found]

    def mean(self, rule: RuleAt, vote: Vote, law: tuple[Weighed, ...]) -> Fraction:
        """On average. Of mixtures the mismatch is 1 - (1 - w) sum q^2 - w / m, E[N^2] = T p (1 - p) + T^2 p^2."""
        t, m = vote.voters, vote.ballots.size
        if rule.rule.affine and self.beside == MISSED and not vote.ballots.borda:
            w = m * min(rule.law((Fraction(t), *[ZERO] * (m - 1)))) if m > 1 else Fraction(1)
            squares = sum((p * (1 - p) / t + p * p for _, p in law), ZERO)
            return self.weight * (1 - (1 - w) * squares - w / m)
        if rule.rule is TURNED_WINNER and self.beside[1] == LARGEST:
            (one,) = self.worst(rule, vote)
            return self.at(rule.law(one), one)
        return sum((mass * self.at(rule.law(one), one) for one, mass in totals(vote.ballots, t, law)), ZERO)


@frozen
class Term:
    """E[...] or worst[...], over all profiles, of a sum of costs."""

    operator: str
    parts: tuple[Cost, ...]

    def of(self, rule: RuleAt, vote: Vote) -> Fraction:
        if not vote.voters:
            raise Refused("a loss of no voters")
        if self.operator == "E":
            if vote.law is None:
                raise Refused("an average over votes without a data model")
            return sum((part.mean(rule, vote, vote.law) for part in self.parts), ZERO)
        profiles = self.parts[0].worst(rule, vote) if len(self.parts) == 1 else []
        if not profiles:
            profiles = every_profile(vote)
        pairs = ((rule.law(one), one) for one in profiles)
        return max(sum((part.at(law, one) for part in self.parts), ZERO) for law, one in pairs)


@frozen
class Total:
    """A sum of terms and a constant."""

    FORM = "measured"

    terms: tuple[Term, ...]
    offset: Fraction

    def of(self, rule: RuleAt, vote: Vote, chosen: Chosen) -> Fraction:
        """Exactly; of powers as closely as they are known, and refused where that does not tell the nearest double."""
        parts = [part for term in self.terms for part in term.parts]
        most = max(rule.rule.off, *(part.beside[1].rule.off for part in parts), ZERO)
        value = self.offset + sum(term.of(rule, vote) for term in self.terms)
        off = 4 * most * sum((abs(part.weight) for part in parts), ZERO)
        if float(value - off) != float(value + off):
            raise Refused("a loss is not known as closely as it is stated")
        return value + off

    def alone(self, *wanted: tuple[bool, RuleAt]) -> Fraction | None:
        """The w > 0 where it is w * worst[cost] and a constant, the cost being one of those wanted; else None."""
        parts = [(term.operator, part) for term in self.terms for part in term.parts]
        alike = [part.weight for word, part in parts if word == "worst" and part.beside in wanted and part.weight > 0]
        return alike[0] if len(self.terms) == len(parts) == len(alike) == 1 else None


@frozen
class Choice:
    """A number in a range that is picked, and that is the whole loss: weight times it, or weight divided by it."""

    FORM = "choice"

    name: str
    low: Size
    high: Size | None
    whole: bool
    weight: Fraction
    inverse: bool

    def of(self, rule: RuleAt, vote: Vote, chosen: Chosen) -> Fraction:
        return self.weight / chosen[self.name] if self.inverse else self.weight * chosen[self.name]


@frozen
class Limit:
    """`measured` is at most `bound`; without it the most that a lie brings a voter is what is bounded."""

    line: int
    text: str
    measured: Total | None
    bound: Fraction


@frozen
class Rounds:
    """So many votes share a budget, each with `budget / name`; `count` is None where solving picks it."""

    name: str
    budget: Size
    count: int | None


@frozen
class Vote:
    """Ballots `source[party]`, one for each voter, and one output, a winner that is drawn.

    `voters` serve the loss only where `secret`: some line lets voters come and go, so that their number is never
    public. `law`: that of the points of a ballot. `families`: rules that the spec allows, all where empty.
    """

    FORM = "votes"

    source: str
    party: str
    output: str
    voters: int
    secret: bool
    ballots: Ballots
    law: tuple[Weighed, ...] | None
    loss: Total | Choice
    expression: str
    limits: tuple[Limit, ...]
    rounds: Rounds | None
    families: tuple[str, ...]

    def __post_init__(self) -> None:
        total, law = sum(self.ballots.ladder), self.law or ()
        fits = all(sum(kind) == total and len(kind) == self.ballots.size for kind, _ in law)
        fits = fits and len({kind for kind, _ in law}) == len(law)
        if (self.law is not None and sum(p for _, p in law) != 1) or not fits or self.voters > 10**18:
            raise Refused("has what is no law of the points of a ballot, or too many voters")
        if self.ballots.supporters and (self.voters < self.ballots.supporters * self.ballots.size or law):
            raise Refused("has fewer voters than surely support somebody, or a law that knows nothing of that")

    @property
    def public_voters(self) -> int | None:
        return None if self.secret else self.voters

    def group(self, obligation: Obligation) -> int:
        """How many ballots an obligation compares at most."""
        (unit,) = obligation.units
        return self.voters if unit.kind == "everything" else unit.count

    def change(self, obligation: Obligation) -> Records:
        """How many ballots come and go, or are replaced: one a voter."""
        return Records(self.group(obligation), obligation.units[0].adding, 1)

    def replaced(self, change: Records) -> int:
        """How many ballots two neighbours differ in at most."""
        return change.count if self.secret else min(change.count, self.voters)


Weighed = tuple[Scores, Fraction]
READERS = {"Weighed": ["tuple[Size, ...]", "Size"]}
WORDS = {
    "Cost.form": ("distance", "mismatch", "votes missed"),
    "Cost.family": tuple(COMPARED),
    "Term.operator": ("E", "worst"),
}


# --- bounds for every rule --------------------------------------------------------------------------------


@frozen
class VoteBound(LowerBound):
    """What no rule's loss is below; of a number that is picked `low`, where at the next better one no rule is left."""

    vote: Vote
    witness: JsonNode
    low: Fraction

    def at(self, lines: Lines) -> Fraction:
        choice, found = self.vote.loss, [self.low]
        if isinstance(choice, Total):
            found = bounds(lines, self.vote, self.witness, choice, {})
        elif not none_better(lines, self.vote, self.witness, choice, self.low):
            found = []
        if not found:
            raise Refused("a bound is claimed for a loss that it is not known for, or by no line")
        return max(found)


def none_better(lines: Lines, vote: Vote, witness: JsonNode, choice: Choice, low: Fraction) -> bool:
    """Whether no rule is left at the number next better than the one that costs `low`."""
    falls = choice.inverse == (choice.weight > 0)
    amounts = [amount for one in lines for _, amount in one.measure.amounts]
    if not choice.weight or any(isinstance(one, Share) and one.inverse != falls for one in amounts):
        raise Refused("the loss does not fall with the number of rounds")
    number = choice.weight / low if choice.inverse else low / choice.weight
    better = Fraction(number // 1 + 1) if falls and choice.whole else number
    out = choice.high is not None and better > choice.high if falls else better <= choice.low
    return out or any(
        max(bounds(lines, vote, witness, total, {choice.name: better}), default=bound) > bound
        for total, bound in ((limit.measured, limit.bound) for limit in vote.limits)
        if total is not None
    )


def bounds(lines: Lines, vote: Vote, witness: JsonNode, measured: Total, chosen: Chosen) -> list[Fraction]:
    """What a witness proves of a sum under any rule, by each line, rounded down; none where it is about other sums.

    lottery-bound, randomised-winner: from unanimity k votes move to another alternative, or from a near tie one vote
    makes anyone win; each moved vote is one neighbour away, or two where voters come and go. A strategy-proof law of
    m > 2 alternatives is f_a = d_a + s n_a, no better than dummy votes, of these at least g / (e^eps - 1) for each.
    dummy-votes: where a spec takes no other rule.
    Where alternatives surely have supporters all electorates on the way have them, but the last is not known to hold.
    """
    form, m, voters = witness.form(*SCOPES), vote.ballots.size, vote.voters
    asking = [(one, one.measure.common, one.measure.figures(chosen)["epsilon"]) for one in lines]
    pure = [(one, measure, epsilon) for one, measure, epsilon in asking if measure in (PURE, LOCAL_PURE)]
    if form == "dummy votes":
        witness.fields("form")
        if vote.families != (DUMMY_VOTES.name,):
            raise Refused("a bound for dummy votes, where the spec takes other rules too")
        asked = [part for term in measured.terms for part in term.parts]
        if not all(part.weight >= 0 and part.beside[1] in (SHARES, LARGEST) for part in asked):
            return []
        spent = [(vote.change(one), epsilon) for one, measure, epsilon in pure if measure is PURE and epsilon > 0]
        least = [n for one, epsilon in spent if (n := least_dummies(vote, one, epsilon)) is not None]
        return [measured.of(RuleAt(DUMMY_VOTES, each), vote, chosen) for each in least]
    if vote.ballots.borda or m < 2 or not voters:
        raise Refused("no such bound is known for these ballots")
    if form == "strategy-proof":
        witness.fields("form")
        honest = any(limit.measured is None and limit.bound == 0 for limit in vote.limits)
        if vote.ballots.kind != "first choice" or m < 3 or not honest or vote.ballots.supporters:
            raise Refused("a bound for strategy-proof rules, where lies are allowed or such rules are not known")
        even = vote.law is not None and len(vote.law) == m and len({weight for _, weight in vote.law}) == 1
        parts = [(term.operator, part) for term in measured.terms for part in term.parts]
        if not all(part.weight >= 0 and part.beside[1] == SHARES and (word != "E" or even) for word, part in parts):
            return []
        moved = [(vote.change(one), epsilon) for one, measure, epsilon in pure if measure is PURE and epsilon > 0]
        dummies = [vote.replaced(one) / (_power(epsilon) - 1) for one, epsilon in moved if not one.adding]
        return [measured.of(RuleAt(DUMMY_VOTES, each), vote, chosen) for each in dummies]
    _, detail = witness.fields("form", "votes" if form == "walk" else "profile")
    each, more = divmod(voters, m)
    if form == "near tie" and [n.integer() for n in detail.items(m)] != [each] * (m - more) + [each + 1] * more:
        raise detail.wrong("is no profile from which one vote leads to every winner")
    sure = vote.ballots.supporters
    if form == "near tie" and sure and each <= sure:
        raise detail.wrong("leads to electorates that do not exist, by what is known of all")
    votes = detail.integer(1, voters - m * sure) if form == "walk" else 1
    weight = measured.alone((True, SHARES)) if form == "walk" else measured.alone((True, LARGEST), (False, LARGEST))
    steps = [(epsilon, 1 + one.units[0].adding) for one, _, epsilon in pure]
    costs = [least_cost(form, voters, m, votes, epsilon, step, sure) for epsilon, step in steps]
    return [weight * cost + measured.offset for cost in costs] if weight else []


def least_dummies(vote: Vote, change: Records, epsilon: Fraction) -> Fraction | None:
    """The fewest dummy votes, rounded down; None where no electorate is known that needs as many.

    One is where some ballot gives an alternative nothing and another all, and enough of those free to choose give it
    nothing first.
    """
    ballots, group = vote.ballots, vote.replaced(change)
    enough = vote.secret or vote.voters >= ballots.size * ballots.supporters + group
    if not enough or (ballots.borda and ballots.places < ballots.size - 1) or epsilon > FARTHEST:
        return None
    return max(ZERO, Fraction(group * ballots.highest) / (exp_up(epsilon) - 1) - ballots.supporters)


def _power(exponent: Fraction) -> Fraction:
    """At least e^exponent; beyond `FARTHEST` so much that a bound is nothing."""
    return exp_up(exponent) if exponent <= FARTHEST else Fraction(2) ** 4096


def least_cost(form: str, voters: int, m: int, votes: int, epsilon: Fraction, step: int, sure: int = 0) -> Fraction:
    """Walk: (s + k - s q) / T / (1 + q / (m - 1)), q = e^(k step eps), s votes that each other surely has.

    Else (m - 1) / (e^(step eps) + m - 1), for two steps 1 - e^eps / m.
    """
    power = _power(votes * step * epsilon)
    if form == "walk":
        return max(ZERO, sure + votes - sure * power) / voters / (1 + power / (m - 1))
    found = (m - 1) / (power + m - 1)
    return max(found, 1 - _power(epsilon) / m) if step == 2 and voters > 1 else found


def unanimous(vote: Vote) -> Scores:
    """The points where all agree who need not support one of the others; of one voter where there are none."""
    ballots, sure = vote.ballots, vote.ballots.supporters
    free = max(1, vote.voters) - sure * ballots.size
    return tuple(sure + free * p for p in ballots.points(tuple(range(ballots.places))))


def every_profile(vote: Vote) -> list[Scores]:
    """Every total of points of an electorate that exists: of those free to choose, beside the supporters of all."""
    sure, kinds = vote.ballots.supporters, tuple((kind, Fraction(1)) for kind in vote.ballots.kinds())
    free = totals(vote.ballots, vote.voters - sure * vote.ballots.size, kinds)
    return [tuple(sure + n for n in one) for one, _ in free]


def totals(ballots: Ballots, voters: int, law: tuple[tuple[Scores, Fraction], ...]) -> list[tuple[Scores, Fraction]]:
    """Every total of points of so many ballots, with its probability under a law of one; refused for too many.

    Totals that differ in the names of alternatives only are one, with the probability of all: rules and costs treat
    alternatives alike, but for which of several equals is the first, and that one is the same for rule and cost.
    The terms of a power of the polynomial whose monomials are kinds of ballots, in halves of points.
    """
    whole, last = lcm(*(weight.denominator for _, weight in law)), len(law) - 1
    first = all(max(kind) == 1 == sum(kind) for kind, _ in law)
    many = Refused("there are too many profiles of votes to list")
    if last and (voters >= PROFILES or (first and comb(voters + last, voters) > PROFILES)):
        raise many
    ring = fmpz_mpoly_ctx.get([f"x{a}" for a in range(ballots.size)])
    one = ring.from_dict({tuple(int(2 * p) for p in kind): int(weight * whole) for kind, weight in law})
    power, work = ring.constant(1), 0
    for _ in range(0 if first or not last else voters):
        power, work = power * one, work + len(power) * len(law)
        if len(power) > PROFILES or work > WORK:
            raise many
    merged: dict[Scores, int] = {}
    for halves, mass in (one**voters if first or not last else power).to_dict().items():
        total = tuple(sorted((Fraction(int(p), 2) for p in halves), reverse=True))
        merged[total] = merged.get(total, 0) + int(mass)
    return [(total, Fraction(mass, whole**voters)) for total, mass in merged.items()]


# --- plans ------------------------------------------------------------------------------------------------


@frozen
class Executed(Mechanism):
    """Draws the winner by a rule of a `family`, whose number stands under the name that it has there.

    `drops`: ballots that do not fit are left out; `local`: voters have to send reports; `rounds`: votes that share an
    epsilon; `scalars`: numbers that are picked.
    """

    GIVEN = "block", "drops", "local"

    block: Vote
    family: str
    scalars: dict[str, Size]
    dummy_votes: Size | None = None
    base: Size | None = None
    ratio: Size | None = None
    rounds: SharedBudget | None = None
    drops: bool = False
    local: bool = False
    rule: RuleAt = field(init=False)

    def __post_init__(self) -> None:
        known, vote = BY_NAME.get(self.family), self.block
        numbers = {name: getattr(self, name) for name in ("dummy_votes", "base", "ratio")}
        given = [name for name, number in numbers.items() if number is not None]
        if known is None or given != [known.parameter]:
            raise Refused("is of a family that is not known, or states another number than that of its rule")
        object.__setattr__(self, "rule", RuleAt(known, numbers[known.parameter]))
        wanted = [vote.loss.name] if isinstance(vote.loss, Choice) else []
        if self.rule.number < known.least or list(self.scalars) != wanted:
            raise Refused("has a number below the least, or picks other numbers than the problem leaves open")
        shared, rounds = self.rounds, vote.rounds
        if rounds is None or shared is None:
            if rounds is not None or shared is not None:
                raise Refused("is not what the problem says of rounds")
            return
        count = self.scalars.get(rounds.name, ZERO) if rounds.count is None else Fraction(rounds.count)
        if count < 1 or count.denominator != 1:
            raise Refused("has what is no number of rounds")
        if shared != SharedBudget(int(count), rounds.budget, rounds.budget / count, int(count)):
            raise Refused("does not share the epsilon that rounds have together")

    @property
    def vote(self) -> Vote:
        return self.block

    @property
    def chosen(self) -> Chosen:
        return self.scalars

    def promised(self, case: PlanUnderCheck) -> list[tuple[Guarantee, Line]]:
        """Each guarantee with what it promises: an epsilon alone, by the note of the rule."""
        found = list[tuple[Guarantee, Line]]()
        for one in read_guarantees(case.guarantees, case.frame, self.chosen):
            asked, many, rounds = one.obligation, self.vote.group(one.obligation) > 1, self.rounds is not None
            if one.because != (self.rule.rule.note, *["group-privacy"] * many, *["repeated-votes"] * rounds):
                raise case.guarantees.wrong("names a different lemma from the one it rests on")
            question = Question(self.vote.change(asked), one.asked, one.achieved)
            fits = set(one.achieved) == {"epsilon"} and not asked.measure.each
            found.append((one, Line(asked.line, frozenset(asked.seen), asked.measure.of, (question,), fits)))
        return found

    def fits(self, frame: Frame) -> Iterator[tuple[str, bool, str]]:
        """What privacy takes beside the law of the winner: names, whether they hold, and what they say."""
        vote, rule, choice, seen = self.vote, self.rule.rule, self.vote.loss, self.winner.seen
        yield "view", seen or not self.local, "the winner is seen" + (", and every report" if seen else "")
        allowed = (not vote.families or rule.name in vote.families) and (vote.ballots.whole or not rule.off)
        yield "law", allowed, f"{rule.name} with {rule.parameter} {self.rule.number}".replace("_", " ")
        if isinstance(choice, Choice):
            picked = self.chosen[choice.name]
            inside = max(picked, choice.low) == picked > 0 and (choice.high is None or picked <= choice.high)
            text = f"{choice.name} = {picked} is in the range that the problem leaves open"
            yield "choices", inside and (picked.denominator == 1 or not choice.whole), text
        if self.rounds is not None and vote.rounds is not None:
            count, budget = self.rounds.count, self.rounds.budget
            known = (Share(vote.rounds.name, budget, True), budget / count)
            holds = all(dict(one.measure.amounts)["epsilon"] in known for one in frame.obligations)
            yield "rounds", holds, f"{count} votes share an epsilon of {budget}, each with {budget / count}"

    @property
    def winner(self) -> Winner:
        """Its law; every report is seen where voters send them."""
        vote, seen = self.vote, self.local and self.rule.rule.reported
        return Winner(self.rule.rule, self.rule.number, vote.ballots, vote.public_voters, seen)

    @property
    def term(self) -> Pick:
        """What is executed."""
        return Pick(self.vote.output, self.winner, self.winner.seen)


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
        ("gives an output that its lines are not about", heads == {about}),
        ("has a line about a different unit from voters", known and len(units) == len(lines)),
        ("makes the number of voters public, though voters come and go", vote.secret == any(coming)),
        ("leaves ballots out where their number may not change", (frame.data[0].rule == "drop") == all(coming)),
        ("is under a trust that is not known for votes", not frame.trust.means.shared),
        ("is not about the electorates that the facts say exist", bool(vote.ballots.supporters) == bool(frame.facts)),
    ):
        if not holds:
            raise frame.blocks[0].wrong(text)


class VoteRules(Rules):
    """Plans that draw a winner from votes."""

    def read(self, frame: Frame, mechanism: JsonNode) -> Executed:
        vote, drops = read(Vote, frame.blocks[0]), frame.data[0].rule == "drop"
        _units(frame, vote)
        local = frame.trust.means.alone or any(one.measure.of.local for one in frame.obligations)
        return read(Executed, mechanism, block=vote, drops=drops, local=local)

    def privacy(self, case: PlanUnderCheck) -> Executed:
        executed, lines = self.read(case.frame, case.mechanism), list[Line]()
        for name, holds, text in executed.fits(case.frame):
            case.says(name, holds, text)
        for one, line in executed.promised(case):
            lines.append(line)
            found = verdict(executed.term, line)
            said, note = one.achieved.get("epsilon", ZERO), executed.rule.rule.note
            words = f"{one.obligation.measure.name}, {one.obligation.neighbours}: no probability changes by more than "
            case.says("privacy", found.holds, f"{words}e^{float(said):.6g} ({note})", one.number)
            less = PURE.condition({"epsilon": said * (1 - SPENT)})
            if said not in (one.asked["epsilon"], 0) and found.losses[0].satisfies(less):
                case.says("figures", False, f"line {line.number} states more than is let through")
        case.promised = executed.term, lines
        return executed

    def judge(self, case: PlanUnderCheck) -> Executed:
        executed = self.privacy(case)
        case.fairness.same(None)
        self._loss(case, executed)
        self._accuracy(case, executed)
        return executed

    def _loss(self, case: PlanUnderCheck, executed: Executed) -> None:
        """The loss that is derived, and what no rule is below; a simulated one is tested only."""
        vote, asked, (witness,) = executed.vote, executed.vote.loss, case.claims.fields(optional=("bound",))
        averaged = isinstance(asked, Total) and any(term.operator == "E" for term in asked.terms)
        words = [vote.expression, "units of the loss expression", "expected" if averaged else "worst"]
        value, stated = None, dict(case.loss.entries())
        try:
            value = asked.of(executed.rule, vote, executed.chosen)
        except Refused:
            if not stated.keys() & {*SIMULATED}:
                raise
        try:
            bound = None
            if not witness.absent:
                low = Fraction(stated["lower_bound"].double())
                bound = VoteBound((SCOPES[witness.form(*SCOPES)],), vote, witness, low)
            judge_bounded(case, value, bound, "rule", words, LISTED)
        except Refused as reason:
            case.says("bound", False, str(reason))

    def _accuracy(self, case: PlanUnderCheck, executed: Executed) -> None:
        found, rule = list[AccuracyLine](), executed.rule
        for limit in executed.vote.limits:
            total, line = limit.measured, limit.line
            if total is None and not rule.rule.affine and executed.vote.ballots.size > 2:
                raise Refused(f"line {line}: nobody knows what a lie brings at most under this rule")
            value = ZERO if total is None else total.of(rule, executed.vote, executed.chosen)
            found.append((line, limit.text, limit.bound, value))
        judge_lines(case, found, ZERO, stated=True)
