"""The lower bound of a plan: no rule that meets a requirement is nearer to random dictatorship.

Let d be the worst total variation from random dictatorship of any rule for T voters that meets epsilon-DP. Where all
T vote for one alternative the m - 1 others are drawn with probability d at most, one of them with p_0 <= d / (m - 1):
random dictatorship never draws them. Once k votes have moved to that one, p_k >= k / T - d. One vote replaced at a
time, p_k <= e^(k epsilon) p_0. So k / T - d <= e^(k epsilon) d / (m - 1). Adding and removing: two steps for each.
Read for d it bounds a loss; read for epsilon, where an accuracy line bounds d, it bounds an epsilon that is chosen.
For distances from plurality see `ties`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from privspec.certify.finite.averages import Price, Term, terms
from privspec.certify.finite.ratios import BITS, LogRatio
from privspec.certify.lotteries import ties, truthful
from privspec.certify.lotteries.claims import near
from privspec.certify.lotteries.costs import LARGEST, SHARES, Apart, Cost, Missed, body_of
from privspec.certify.lotteries.meaning import FIRST
from privspec.certify.lotteries.rounds import fewest_loss
from privspec.certify.lotteries.subject import KINDS, LotterySubject
from privspec.certify.lotteries.truthful import log_down
from privspec.certify.measures import Finding
from privspec.certify.motion import NotUnderstood
from privspec.certify.promises import claim
from privspec.certify.reading import At, Malformed
from privspec.certify.report import Claim
from privspec.certify.rounds import shared
from privspec.core import OPTIMAL_GAP
from privspec.language import syntax
from privspec.model.evaluate import evaluate
from privspec.model.measures import LDP, Chosen, Measure, PureDP
from privspec.model.pointwise import Pointwise
from privspec.model.requirements import Requirement
from privspec.model.targets import environment

SCOPE = "every rule that meets the requirement"


def walk(voters: int, others: int, votes: int, step: Fraction) -> Fraction:
    """The bound k / (T (1 + e^(k step) / (m - 1))) for m - 1 others, rounded down.

    Raises: Malformed for numbers of votes that there are not.
    """
    if not 1 <= votes <= voters:
        raise Malformed(f"{votes} of {voters} votes cannot change")
    power = Fraction(LogRatio.of(votes * step).up, 1 << BITS)
    return Fraction(votes, voters) / (1 + power / others)


def epsilon_of(subject: LotterySubject, requirement: Requirement) -> Fraction | None:
    """Of a requirement on the winner; None where it is not pure."""
    measure = subject.measure(requirement)
    pure = isinstance(measure, PureDP) or (isinstance(measure, LDP) and not measure.delta)
    if not pure or subject.meaning.output not in requirement.outputs:
        return None
    return measure.amounts["epsilon"]


def steps_of(subject: LotterySubject, requirement: Requirement) -> int:
    """How many neighbours a vote that moves is away."""
    return 2 if subject.change(requirement).adding else 1


FAR = (Apart(SHARES),)
"""The distance from random dictatorship, which a walk from unanimity bounds."""
MISSED = (Apart(LARGEST), Missed(LARGEST))
"""How often the winner of plurality does not win, which is the total variation as well: a near tie bounds it."""


def scaled(subject: LotterySubject, expr: syntax.Expr, costs: tuple[Cost, ...]) -> tuple[Fraction, Fraction]:
    """Weight and constant where it is weight * worst[cost] + constant, the cost being one of those named.

    Raises: NotUnderstood for other losses.
    """
    scene = Pointwise(subject.model)
    constant, weight = Fraction(0), Fraction(0)
    for term in terms(scene, expr):
        if isinstance(term, Fraction):
            constant += term
            continue
        if not isinstance(term, Term) or term.operator != "worst" or weight:
            raise NotUnderstood("a bound for such a loss")
        body = body_of(subject, scene, term.body)
        if len(body.parts) != 1 or body.parts[0][1] not in costs or subject.ballots.points != FIRST:
            raise NotUnderstood("a bound for such a loss")
        weight = term.weight * body.parts[0][0]
        constant += term.weight * body.constant
    if weight <= 0 or subject.ballots.size < 2:
        raise NotUnderstood("a bound for such a loss")
    return weight, constant


@dataclass(frozen=True, slots=True)
class Walk:
    """The votes that a certificate moves: so many from unanimity, or one from a near tie, whose `profile` it lists."""

    votes: int
    near_tie: bool

    @property
    def costs(self) -> tuple[Cost, ...]:
        """What it bounds."""
        return MISSED if self.near_tie else FAR

    def least(self, subject: LotterySubject, epsilon: Fraction, steps: int) -> Fraction:
        """The smallest cost, where each vote that moves takes so many steps."""
        voters, size = subject.meaning.voters, subject.ballots.size
        if self.near_tie:
            return ties.miss(voters, size, epsilon, steps)
        return walk(voters, size - 1, self.votes, epsilon * steps)

    def epsilon(self, subject: LotterySubject, cost: Fraction, steps: int) -> Fraction:
        """The least epsilon, where the cost is at most so much."""
        voters, size = subject.meaning.voters, subject.ballots.size
        if self.near_tie:
            found = (log_down(ratio) / times for ratio, times in ties.odds(voters, size, cost, steps))
            return max(found, default=Fraction(0))
        return farthest(voters, size - 1, self.votes, cost) / (self.votes * steps)


def read_walk(subject: LotterySubject, proof: At) -> Walk:
    """The votes of a certificate.

    Raises: Malformed.
    """
    votes, profile = proof["votes"].integer(), proof.get("profile")
    if profile is None:
        return Walk(votes, False)
    ties.check_profile(profile, subject.meaning.voters, subject.ballots.size)
    if votes != 1:
        raise Malformed(f"{proof.place}.votes is not the one vote that is tried")
    return Walk(votes, True)


def bounds(subject: LotterySubject, moved: Walk) -> Iterator[Fraction]:
    """What the votes that move prove of the loss, by each requirement or accuracy line; rounded down.

    Raises: NotUnderstood for losses without such a bound.
    """
    loss = subject.model.loss
    if loss is None:
        raise NotUnderstood("a bound without a loss")
    asked = shared(subject.model)
    if asked is not None and asked.name in subject.chosen:
        yield from (fewest_loss(subject, loss, found) for found in _chosen(subject, asked.name, moved))
        return
    match list(terms(Pointwise(subject.model), loss)):
        case [Price(weight=weight, name=name)] if weight > 0:
            yield from (weight * found for found in _chosen(subject, name, moved))
        case _:
            weight, constant = scaled(subject, loss, moved.costs)
            for requirement in subject.requirements:
                epsilon = epsilon_of(subject, requirement)
                if epsilon is not None:
                    yield weight * moved.least(subject, epsilon, steps_of(subject, requirement)) + constant


def _chosen(subject: LotterySubject, name: str, moved: Walk) -> Iterator[Fraction]:
    """The least epsilon that an accuracy line allows.

    From unanimity log((m - 1) (k / (T d) - 1)) / k, or half of it for two steps; from a near tie see `ties`.
    An epsilon below 0 is none, so that the bound is at least 0; it holds for a pure epsilon that is the chosen number.
    """
    chosen = [r for r in subject.requirements if _is(r.measure, name) and subject.meaning.output in r.outputs]
    if not chosen:
        return
    steps = min(steps_of(subject, requirement) for requirement in chosen)
    public = environment(subject.model)
    for line in subject.model.accuracy:
        if line.target.probability is not None or line.target.variable is not None:
            continue
        try:
            weight, constant = scaled(subject, line.target.left, moved.costs)
        except NotUnderstood:
            continue
        limit = evaluate(line.target.right, public)
        if isinstance(limit, Fraction) and limit > constant:
            yield moved.epsilon(subject, (limit - constant) / weight, steps)


def _is(measure: Measure, name: str) -> bool:
    match measure:
        case Chosen(kind=kind, amounts_as_written=(syntax.Name(id=written),)):
            return kind in KINDS and written == name
        case Chosen(kind=kind, amounts_as_written=(syntax.Binary(op="/", right=syntax.Name(id=written)),)):
            return kind in KINDS and written == name
    return False


def farthest(voters: int, others: int, votes: int, distance: Fraction) -> Fraction:
    """The logarithm of (m - 1) (k / (T d) - 1), rounded down; 0 where that is below 1.

    Raises: Malformed for numbers of votes that there are not.
    """
    if not 1 <= votes <= voters:
        raise Malformed(f"{votes} of {voters} votes cannot change")
    return log_down(others * (Fraction(votes, voters) / distance - 1))


def optimality(subject: LotterySubject) -> Iterator[Claim]:
    """The bound is that of the votes that the certificate names; the gap and the status are what follows."""
    stated, proof = subject.plan["loss"], subject.plan["claims"].filled()
    status = subject.plan["status"].text()
    bound = stated.get("lower_bound")
    if proof is not None and proof["kind"].text() != "lottery":
        raise Malformed("the certificate is of another kind")
    listed = None if proof is None else proof.get("lower_bound")
    if bound is None or proof is None or listed is None:
        claimed = [bound, listed, stated.get("relative_gap")]
        claimed += [] if proof is None else [proof.get("votes"), proof.get("profile")]
        if status != "feasible" or any(item is not None for item in claimed):
            yield Claim("optimality", "failed", "a bound is claimed without its proof")
        else:
            yield Claim("optimality", "not checked", "whether a better rule exists: no lower bound is claimed")
        return
    yield from _proved(subject, proof, bound.double(), listed.double(), status)


def _proved(subject: LotterySubject, proof: At, bound: float, listed: float, status: str) -> Iterator[Claim]:
    scope = proof["scope"].text()
    if scope not in (SCOPE, truthful.SCOPE):
        raise Malformed(f"{proof.place}.scope is not what the bound is about")
    if subject.plan["loss"]["among"].text() != scope:
        yield Claim("optimality", "failed", f"the bound is about {scope}, not about what the plan says")
    try:
        if scope == truthful.SCOPE:
            found, what, how = list(truthful.bounds(subject, proof)), "strategy-proof rule", "affine in the votes"
        else:
            moved = read_walk(subject, proof)
            how = "one vote that changes" if moved.votes == 1 else f"{moved.votes} votes that change"
            found, what = list(bounds(subject, moved)), "rule"
    except NotUnderstood:
        yield Claim("optimality", "failed", "a bound is claimed for a loss that it is not known for")
        return
    if not found:
        yield Claim("optimality", "failed", "a bound is claimed, and no line that it could come from")
        return
    best = max(found)
    fits = bound == listed and Fraction(bound) <= best and near(bound, best)
    text = f"no {what} is below {float(best):.10g} ({how})"
    yield claim("optimality", Finding(fits, text if fits else f"{text}; the plan says {bound:.10g}"))
    value = subject.plan["loss"]["value"].double()
    gap = max(0.0, (value - bound) / abs(value)) if value else 0.0
    said = subject.plan["loss"]["relative_gap"].double()
    if abs(said - gap) > 1e-9 + 1e-6 * gap:
        yield Claim("gap", "failed", f"the gap is {gap:.6g}, the plan says {said:.6g}")
    elif (status == "optimal") != (gap <= OPTIMAL_GAP):
        yield Claim("gap", "failed", f"with a gap of {gap:.3g} the plan is called {status}")
    else:
        yield Claim("gap", "ok", f"{100 * gap:.3g} % of the loss lies above the bound")
