"""The rules of private voting, each calibrated to epsilon, in the order of comparison: what they keep, when lies pay.

What a rule's law is, and the largest ratio that a change of ballots brings, is the kernel's (`Rule`): one formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement, permutations
from typing import Any

from flint import ctx

from privspec.core.records import dataclass
from privspec.core.rounding import in_digits
from privspec.core.spans import Span
from privspec.kernel.changes import Records
from privspec.kernel.core.numbers import ball, end
from privspec.kernel.core.problem import Obligation
from privspec.kernel.laws.voting import (
    BY_NAME,
    DUMMY_VOTES,
    EXPONENTIAL,
    ONE_REPORT,
    PERMUTE_AND_FLIP,
    PLURALITY,
    TURNED_WINNER,
    Ballots,
    VotingRule,
    Winner,
)
from privspec.kernel.measures import PURE
from privspec.kernel.voting import Choice, Total, Vote
from privspec.model.graph import Model
from privspec.model.requirements import Requirement
from privspec.model.values import Symbol, show
from privspec.model.voting import (
    Ballot,
    FirstChoice,
    Law,
    Lottery,
    Points,
    scores,
)
from privspec.problem.elaborate import obligation_of
from privspec.problem.voting import block_of, points_of

# --- What may be kept


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a rule in a task: `note` proves it, or `counterexample` is the smallest case where it fails.

    Names: "treats_voters_alike", "ex_post_efficient", "strategy_proof".
    """

    name: str
    holds: bool
    note: str
    because: str
    counterexample: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As plans list it."""
        return {
            "name": self.name,
            "holds": self.holds,
            "note": self.note,
            "because": self.because,
            "counterexample": self.counterexample,
        }


# --- When a lie pays: a profile, a ranking, and a ballot that makes some of the best alternativ

_ALL = 4
"""With more alternatives than this, rankings that differ beyond the first three are left out."""


@dataclass(frozen=True, slots=True)
class Manipulation:
    """A voter who likes alternatives as in `truth` gains by the ballot `lie` beside `others`.

    `honest` and `lying` are the exact probabilities that one of the `best` first alternatives of `truth` wins.
    """

    others: tuple[Ballot, ...]
    truth: tuple[Symbol, ...]
    lie: Ballot
    best: int
    honest: Fraction
    lying: Fraction

    def describe(self, others: str | None = None, what: str = "ballot") -> str:
        """In one sentence; `others` in words, and what a voter casts."""
        wanted = " or ".join(show(a) for a in self.truth[: self.best])
        others = " and ".join(_words(ballot) for ballot in self.others) if others is None else others
        beside = f" beside {others}" if others else ""
        digits = next(d for d in (4, 6, 10, 20, 40) if spoken(self.honest, d) != spoken(self.lying, d) or d == 40)
        return (
            f"a voter who ranks {_words(self.truth)}{beside}: the {what} {_words(self.lie)} raises the probability "
            f"of {wanted} from {spoken(self.honest, digits)} to {spoken(self.lying, digits)}"
        )


def kinds(points: Points) -> tuple[Ballot, ...]:
    """Every ballot that counts differently: one for each first choice, or every full ranking."""
    if isinstance(points, FirstChoice):
        return points.alternatives
    return tuple(permutations(points.alternatives))


def manipulation(lottery: Lottery, points: Points, most: int = 3) -> Manipulation | None:
    """The first manipulation in the smallest electorate of at most `most` voters; None if there is none.

    For more than four alternatives only ballots that agree beyond the first three are tried.
    """
    ballots = _tried(points)
    first_wins_ties = lottery.rule in (PLURALITY, TURNED_WINNER)
    truths = _truths(points.alternatives) if first_wins_ties else (points.alternatives,)
    for voters in range(most):
        for others in combinations_with_replacement(ballots, voters):
            for truth in truths:
                found = next(gains(lottery.law, points, others, truth, ballots), None)
                if found is not None:
                    return found
    return None


def _truths(alternatives: tuple[Symbol, ...]) -> tuple[tuple[Symbol, ...], ...]:
    """Orders that count where alternatives are not treated alike: which of several equals wins."""
    if len(alternatives) <= _ALL:
        return tuple(permutations(alternatives))
    return tuple((*start, *alternatives[3:]) for start in permutations(alternatives[:3]))


def _tried(points: Points) -> tuple[Ballot, ...]:
    if isinstance(points, FirstChoice) or len(points.alternatives) <= _ALL:
        return kinds(points)
    return _truths(points.alternatives)


def gains(
    law_of: Callable[[Sequence[Fraction]], Law],
    points: Points,
    others: Sequence[Ballot],
    truth: tuple[Symbol, ...],
    ballots: Sequence[Ballot],
) -> Iterator[Manipulation]:
    """Every lie of the voter that pays for some number of best alternatives."""
    order = [points.alternatives.index(a) for a in truth]

    def best(ballot: Ballot) -> list[Fraction]:
        law = law_of(scores(points, (*others, ballot)))
        sums, total = [], Fraction(0)
        for a in order:
            total += law[a]
            sums.append(total)
        return sums

    honest = best(truth)
    for lie in ballots:
        for k, (true, false) in enumerate(zip(honest, best(lie), strict=True)):
            if false > true:
                yield Manipulation(tuple(others), truth, lie, k + 1, true, false)


def spoken(probability: Fraction, digits: int = 4) -> str:
    """Exact where that is short, else to so many significant digits."""
    if probability.denominator < 1000:
        return str(probability)
    return f"about {in_digits(probability, digits)}"


def _words(ballot: Ballot) -> str:
    named = (ballot,) if isinstance(ballot, str | Fraction) else tuple(ballot)
    return " > ".join(show(a) for a in named)


# --- What a rule keeps of random dictatorship, and the smallest case where it does not (notes/k

NOTE = "keeping"


TREATS_ALIKE = Property(
    "treats_voters_alike", True, NOTE, "the winner's law depends on the ballots through their sum, whoever cast them"
)
"""For every lottery of sums of points."""
TRUTHFUL = Property(
    "strategy_proof",
    True,
    NOTE,
    "the law is a mixture of one law for each ballot; whatever the others do, the true ballot gives the alternatives "
    "from the best down to any other one the largest probability",
)
"""For laws that are affine in every ballot."""


def inefficient(points: Points, lottery: Lottery) -> Property:
    """Ex-post efficiency, which no epsilon leaves: every alternative keeps a chance, also one that all find worse."""
    ballot = points.alternatives
    if len(ballot) < 2:
        return Property("ex_post_efficient", True, NOTE, "there is one alternative only")
    lost = lottery.law(points.of(ballot))[1]
    first, second = show(ballot[0]), show(ballot[1])
    case = f"one voter who likes {first} better than {second}: {second} wins with probability {spoken(lost)}"
    why = "for a finite epsilon every alternative wins with some probability, also one that everybody likes less"
    return Property("ex_post_efficient", False, NOTE, why, case)


def undominated(points: Points, lottery: Lottery) -> Property:
    """Ex-post efficiency of a lottery without noise: kept where points go to first choices only."""
    if points.highest == points.per_ballot:
        why = "only alternatives that somebody puts first can win"
        return Property("ex_post_efficient", True, NOTE, why)
    lost = inefficient(points, lottery)
    why = "alternatives that everybody likes less than another one have points too"
    return Property("ex_post_efficient", False, NOTE, why, lost.counterexample)


def swayed(points: Points, lottery: Lottery) -> Property:
    """Strategy-proofness of weights that are powers, and of plurality's winner: for two alternatives only."""
    if len(points.alternatives) < 3:
        why = "with two alternatives a vote for the better one can only help it"
        return Property("strategy_proof", True, NOTE, why)
    found = manipulation(lottery, points, most=3)
    assert found is not None
    why = "a vote counts for more where two alternatives are close, so that it pays to leave a hopeless first choice"
    return Property("strategy_proof", False, NOTE, why, found.describe())


# --- Logarithms and powers as simple rationals, rounded towards privacy by ball arithmetic

CLOSE = Fraction(1, 1 << 30)
"""How far, relatively, a simple rational may be from the number that it replaces."""
LARGEST = Fraction(256)
"""Larger epsilons are treated as this one: far beyond any privacy."""
_PRECISION = 192


def growth_down(epsilon: Fraction) -> Fraction:
    """At most e^epsilon - 1, relatively within 2^-100; epsilon > 0."""
    epsilon = min(epsilon, LARGEST)
    with ctx.workprec(_PRECISION):
        return end(ball(epsilon).expm1().lower())


def log_up(ratio: Fraction) -> Fraction:
    """At least the logarithm of a number >= 1, relatively within 2^-100."""
    with ctx.workprec(_PRECISION):
        return end(ball(ratio - 1).log1p().upper())


def growth_simple(epsilon: Fraction) -> Fraction:
    """The simplest rational that is at most e^epsilon - 1 and relatively within 2^-30 of it."""
    most = growth_down(epsilon)
    return simplest(most * (1 - CLOSE), most)


def simplest_up(value: Fraction) -> Fraction:
    """The simplest rational that is at least a positive value and relatively within 2^-30 of it."""
    return simplest(value, value * (1 + CLOSE))


def simplest(low: Fraction, high: Fraction) -> Fraction:
    """The rational of the smallest denominator in [low, high], 0 < low <= high (continued fractions)."""
    whole = low.numerator // low.denominator
    if low == whole:
        return Fraction(whole)
    if whole + 1 <= high:
        return Fraction(whole + 1)
    return whole + 1 / simplest(1 / (high - whole), 1 / (low - whole))


def decimal_up(value: Fraction, places: int = 6) -> str:
    """A decimal that is not below the value, with so many places; trailing zeros are left out."""
    whole = -(-value.numerator * 10**places // value.denominator)
    text = f"{whole // 10**places}.{whole % 10**places:0{places}d}".rstrip("0")
    return text.rstrip(".")


# --- A rule with its number, and what it does to the electorates of a task


@dataclass(frozen=True, slots=True)
class VotingTask:
    """Which electorates must look alike to whoever sees the winner, and how ballots count.

    Args: points, what a ballot gives to the alternatives; voters, their number, None where it is secret or may be
        any; adding, whether neighbours have voters more or fewer instead of voters with other ballots; group, up to how
        many voters they differ in; whole, whether every ballot gives whole numbers of points; supporters, how many
        votes every alternative surely has.
    With `adding` and a number, `voters` is the size of the smaller of two electorates, which the larger one contains.
    """

    points: Points
    voters: int | None = None
    adding: bool = False
    group: int = 1
    whole: bool = True
    supporters: int = 0

    @property
    def alternatives(self) -> tuple[Symbol, ...]:
        """In the order declared."""
        return self.points.alternatives

    @property
    def moved(self) -> int:
        """In how many ballots two neighbours can differ at most."""
        if self.adding or self.voters is None:
            return self.group
        return min(self.group, self.voters)

    @property
    def constant(self) -> bool:
        """Whether the winner cannot depend on the votes: one alternative, or nobody whose ballot could change."""
        return len(self.alternatives) < 2 or self.moved == 0

    @property
    def ballots(self) -> Ballots:
        """As the kernel counts them."""
        words = tuple(map(show, self.alternatives))
        if isinstance(self.points, FirstChoice):
            return Ballots("first choice", words, 1, self.points.name, self.supporters)
        return Ballots("ranking" if self.whole else "partial ranking", words, len(words), self.points.name)


WITHOUT = "none"
"""Random dictatorship as it is, by name."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A lottery of one number, and what it keeps; "none" is random dictatorship as it is, which meets no epsilon."""

    family: str
    number: Fraction = Fraction(0)

    @property
    def rule(self) -> VotingRule:
        """What draws the winner."""
        return BY_NAME.get(self.family, DUMMY_VOTES)

    @property
    def notes(self) -> tuple[str, ...]:
        """Stems of the notes that prove what it claims."""
        return ("no-dummies" if self.family == WITHOUT else self.rule.note,)

    @property
    def lottery(self) -> Lottery:
        """The exact law of the winner."""
        return Lottery(self.rule, self.number)

    def ratio(self, task: VotingTask, *, seen: bool = False) -> Fraction:
        """No probability of two neighbours of the task has a larger ratio; over all sizes where voters come and go.

        `seen`: every report is public, and not the winner alone.
        """
        seen = seen and not task.constant and not task.adding and self.rule.reported
        voters = None if task.adding else task.voters
        winner = Winner(self.rule, self.number, task.ballots, voters, seen)
        base, power = winner.ratio(Records(task.moved, task.adding, 1))
        return base**power

    def epsilon(self, task: VotingTask, *, seen: bool = False) -> Fraction:
        """The logarithm of `ratio`, rounded up."""
        return log_up(self.ratio(task, seen=seen))

    def properties(self, task: VotingTask) -> tuple[Property, ...]:
        """What it keeps and what it gives up, three of them, each with a proof or a counterexample.

        Laws that mix the shares of points are strategy-proof; others for two alternatives only. No epsilon leaves
        ex-post efficiency; without noise and with first choices both are kept, by nothing else (Gibbard 1977).
        """
        plain = self.rule is DUMMY_VOTES and not self.number
        efficient = undominated if plain else inefficient
        truthful = TRUTHFUL if self.rule.affine else swayed(task.points, self.lottery)
        return (TREATS_ALIKE, efficient(task.points, self.lottery), truthful)

    def to_json(self) -> dict[str, Any]:
        """Family and exact parameter, from which whoever draws or checks it needs nothing else."""
        return {"family": self.family, self.rule.parameter: str(self.number)}


@dataclass(frozen=True, slots=True)
class Rule:
    """A family of lotteries by the word after `noise family`, and as rankings list it.

    `calibrate`: the lottery nearest to the votes that meets epsilon in a task, or why there is none.
    """

    family: str
    name: str
    calibrate: Callable[[VotingTask, Fraction], Draw | str]


# --- calibration ------------------------------------------------------------------------------------------

NO_EPSILON = "with epsilon 0 no lottery may depend on the votes"
_NEAR = 1e-9
"""Share of an epsilon that a calibration may leave unused."""
_EXPANSIONS, _STEPS = 24, 24


def fewest_dummies(task: VotingTask, epsilon: Fraction) -> Draw | str:
    """As few dummy votes as epsilon allows, whatever the number of voters: g h / (e^epsilon - 1), rounded up.

    Fewer by the votes that every alternative surely has.
    """
    if epsilon <= 0:
        return NO_EPSILON
    reach = max(task.moved, 1) * max(task.points.highest, Fraction(1))
    return Draw(DUMMY_VOTES.name, simplest_up(max(Fraction(0), reach / growth_down(epsilon) - task.supporters)))


def largest_base(rule: VotingRule, task: VotingTask, epsilon: Fraction) -> Draw | str:
    """The largest base that meets epsilon, to 10^-9 of it, for every number of voters where that is secret.

    Every score moves by at most g h; when adding, all in one direction, so that the sum of the weights does not turn
    against the weight: base^(2 g h) when replacing, base^(g h) when adding (note weighted-votes). Where the number of
    voters is public, the ratio at that number decides, which is smaller: the base for every number is where the search
    starts.
    """
    if epsilon <= 0:
        return NO_EPSILON
    if not task.whole:
        return "ballots that leave out alternatives give halves of points, whose powers are not rational"
    drawn = partial(Draw, rule.name)
    reach = task.moved * task.points.highest * (1 if task.adding else 2)
    least = 1 + growth_simple(epsilon / max(reach, Fraction(1)))
    if task.voters is None or task.adding or task.constant:
        return drawn(least)
    limit, wanted = 1 + growth_simple(epsilon), float(epsilon)

    def over(base: Fraction) -> tuple[bool, float]:
        ratio = drawn(base).ratio(task)
        return ratio > limit, float(log_up(ratio)) - wanted

    best, (beyond, short) = least, over(least)
    if beyond:
        return drawn(least)
    low, left = math.log(least), short
    high, right = low, short
    for _ in range(_EXPANSIONS):
        if right > 0 or -right <= _NEAR * wanted:
            break
        low, left = high, right
        # a little beyond where the logarithm of the ratio would be if it grew as that of the base does
        high *= max(wanted / (wanted + right) * (1 + _NEAR), 1 + 2 * _NEAR)
        base = _rational(high)
        beyond, right = over(base)
        best = best if beyond else max(best, base)
    for _ in range(_STEPS):
        if left >= -_NEAR * wanted or right <= left:
            break
        middle = (low * right - high * left) / (right - left)
        base = _rational(middle)
        beyond, found = over(base)
        if beyond:
            high, right, left = middle, found, left / 2
        else:
            best, low, left, right = max(best, base), middle, found, right / 2
            if found >= -_NEAR * wanted:
                break
    return drawn(best)


def _rational(logarithm: float) -> Fraction:
    """A simple rational just below e^logarithm."""
    growth = Fraction(math.expm1(logarithm))
    return 1 + simplest(growth * (1 - CLOSE), growth)


def truest_reports(task: VotingTask, epsilon: Fraction) -> Draw | str:
    """Every report meets epsilon by itself, against whoever sees it: odds of e^epsilon for first choices.

    More for points that are spread; rounded down to a simple rational.
    """
    if epsilon <= 0:
        return "with epsilon 0 no report may depend on the vote"
    spread = task.points.per_ballot / task.points.highest if len(task.alternatives) > 1 else Fraction(1)
    return Draw(ONE_REPORT.name, 1 + growth_simple(epsilon / max(task.moved, 1)) * spread)


def turned_winner(_: VotingTask, epsilon: Fraction) -> Draw | str:
    """One draw from a function of the votes: whatever changes in these, and for groups, the odds are e^epsilon."""
    return Draw(TURNED_WINNER.name, 1 + growth_simple(epsilon)) if epsilon > 0 else NO_EPSILON


def no_dummies(task: VotingTask, __: Fraction) -> Draw | str:
    """Never admissible but as dummy votes of which there are none; it is listed to say why."""
    if task.supporters:
        return "it is the rule of dummy votes where the supporters that every alternative surely has are enough"
    return (
        "an alternative that nobody else supports can win only if one voter chose it: the winner then reveals "
        "that vote, and no epsilon allows that"
    )


DICTATOR = Rule(DUMMY_VOTES.name, "dummy votes", fewest_dummies)
RULES: tuple[Rule, ...] = (
    DICTATOR,
    Rule(PERMUTE_AND_FLIP.name, "permute-and-flip", partial(largest_base, PERMUTE_AND_FLIP)),
    Rule(EXPONENTIAL.name, "exponential mechanism", partial(largest_base, EXPONENTIAL)),
    Rule(ONE_REPORT.name, "randomised response, then one report", truest_reports),
    Rule(TURNED_WINNER.name, "randomised response of the winner", turned_winner),
    Rule(WITHOUT, "no dummy votes", no_dummies),
)
"""All rules of private voting, in the order in which they are compared."""


# --- a vote that the compiler takes ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Promise:
    """A requirement with the electorates that it compares; `epsilon` is None where the solver picks it.

    `obligation` is what the kernel reads of it.
    """

    index: int
    requirement: Requirement
    obligation: Obligation
    task: VotingTask
    epsilon: Fraction | None

    @property
    def pure(self) -> bool:
        return self.obligation.measure.common is PURE


@dataclass(frozen=True, eq=False, slots=True)
class VotingSystem:
    """The numbers of a vote are those of its block; the model serves diagnostics.

    `loss` is the sum of costs, empty where the loss is a number that solving picks: `picked`.
    """

    model: Model
    votes: Vote
    promises: tuple[Promise, ...]

    @property
    def loss(self) -> Total:
        return self.votes.loss if isinstance(self.votes.loss, Total) else Total((), Fraction(0))

    @property
    def picked(self) -> Choice | None:
        return self.votes.loss if isinstance(self.votes.loss, Choice) else None

    @property
    def chosen(self) -> Choice | None:
        """The epsilon that solving picks."""
        return None if self.picked is None or self.picked.whole else self.picked

    @property
    def counted(self) -> Choice:
        """The number of rounds that solving picks; only where it does."""
        assert self.picked is not None and self.picked.whole
        return self.picked

    @property
    def counting(self) -> bool:
        """Whether solving picks the number of rounds."""
        return self.picked is not None and self.picked.whole

    def loss_of(self, count: int | Fraction) -> Fraction:
        """Of so many rounds."""
        return self.counted.weight / count if self.counted.inverse else self.counted.weight * count

    def count_of(self, loss: Fraction) -> int:
        """The number of rounds of a loss."""
        return int(self.counted.weight / loss if self.counted.inverse else loss / self.counted.weight)

    @property
    def chosen_span(self) -> Span | None:
        """Where the number stands that solving picks."""
        return None if self.picked is None else self.model.nodes[self.picked.name].span

    @property
    def local(self) -> bool:
        """Whether nobody is trusted with the ballots."""
        return self.model.trust.alone


def lower(model: Model) -> VotingSystem:
    """The system of a vote, also of one that a table is for.

    Raises: SpecError PS05xx with the first construct that cannot be computed.
    """
    votes = block_of(model)
    promises = []
    for i, line in enumerate(model.requirements):
        asked = obligation_of(model, line)
        amount = dict(asked.measure.amounts)["epsilon"]
        adding, group = asked.units[0].adding, votes.group(asked)
        points, ballots = points_of(votes.ballots), votes.ballots
        task = VotingTask(points, votes.public_voters, adding, group, ballots.whole, ballots.supporters)
        promises.append(Promise(i, line, asked, task, amount if isinstance(amount, Fraction) else None))
    return VotingSystem(model, votes, tuple(promises))
