"""Lies: which rules reward none, and the least loss of all rules that do not, from three alternatives on.

*Gains.* Where the law is a fixed one plus, for each ballot, its points times a positive number, the k best alternatives
of a voter get from the own ballot the sum of their points times that number, and the true ballot makes that as large
as it can be: dummy votes, reports. Of two alternatives every rule that is checked here likes one better the more it
leads by, so that a vote for the worse one never helps.

*The least loss.* First choices n_a of T voters, m >= 3. Averages of strategy-proof rules over all orders of the voters
are strategy-proof, as private, and no worse in a loss that is convex and treats voters alike; so let the law be f(n).
A vote that moves from a to b may lower f_c for no c but a: some voter ranks c last. For c other than a and b the move
back may neither: f_c stays, and is a function of n_c, since all others can trade votes (m >= 3). As the sum is 1,
f_a(i) - f_a(i - 1) = f_b(j + 1) - f_b(j) wherever i >= 1, j >= 0, i + j <= T; with j = 0 every step of f_a is the first
one of f_b: one slope s >= 0, f_a = d_a + s n_a. Where g votes may be replaced, d_a + g s <= e^epsilon d_a, hence
m s k <= sum d = 1 - s T for k = g / (e^epsilon - 1). Averaged over the names of the alternatives it is (1 - w) shares +
w / m with w = sum d >= m k / (T + m k). Distance from the shares (w times that of the uniform law) and the share of
votes missed (1 - (1 - w) sum q^2 - w / m, and sum q^2 >= 1 / m) grow with w at every profile, and so do averages and
worst cases of positive sums of these: none is below the loss of k dummy votes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from privspec.certify.finite.averages import Price, Term, about_lies, terms
from privspec.certify.finite.ratios import BITS, LogRatio
from privspec.certify.lotteries.costs import SHARES, Apart, Missed, VotesMissed, body_of
from privspec.certify.lotteries.losses import total
from privspec.certify.lotteries.meaning import FIRST
from privspec.certify.lotteries.rules import Dummies, Reports
from privspec.certify.lotteries.subject import LotterySubject
from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import At, Malformed
from privspec.language import syntax
from privspec.model.evaluate import evaluate
from privspec.model.measures import Chosen, PureDP
from privspec.model.pointwise import Pointwise
from privspec.model.requirements import AccuracyTarget, Requirement
from privspec.model.targets import environment

SCOPE = "every strategy-proof rule that meets the requirement"
GROWING = (Apart(SHARES), Missed(SHARES), VotesMissed())
"""Costs that are convex, treat alternatives alike and grow from the shares to the uniform law."""
SLACK = Fraction(1, 1 << 90)
"""More than a value over all profiles is off by."""


# --- gains -----------------------------------------------------------------------------------------------


def limits_lies(subject: LotterySubject, target: AccuracyTarget) -> bool:
    """Whether a line bounds what a lie brings a voter in `manipulation(O, vote)`.

    Raises: NotUnderstood for lies about something else.
    """
    written = target.target
    if not isinstance(written.left, syntax.Call) or not about_lies(written.left):
        return False
    meaning = subject.meaning
    named = written.left.arguments == (syntax.Name(meaning.output), syntax.Name(meaning.source))
    if not named or written.probability is not None or written.variable is not None:
        raise NotUnderstood("lies about something that is no vote")
    return True


def gained(subject: LotterySubject) -> Fraction | None:
    """The most that a lie brings a voter, where that is nothing; None where it is not known."""
    proved = isinstance(subject.rule, Dummies | Reports) or subject.ballots.size < 3
    return Fraction(0) if proved else None


# --- the least loss --------------------------------------------------------------------------------------


def bounds(subject: LotterySubject, proof: At) -> Iterator[Fraction]:
    """The loss of the fewest dummy votes that each requirement allows, or the epsilon of the most that accuracy allows.

    Rounded down.

    Raises: NotUnderstood for losses and lines without such a bound; Malformed where votes are said to prove it.
    """
    if proof.get("votes") is not None or proof.get("profile") is not None:
        raise Malformed(f"{proof.place} names votes, and no votes that move prove such a bound")
    ballots, loss = subject.ballots, subject.model.loss
    known = ballots.kind == FIRST and ballots.points == FIRST and ballots.size > 2 and _asked(subject)
    if not known or loss is None:
        raise NotUnderstood("a bound for strategy-proof rules")
    match list(terms(Pointwise(subject.model), loss)):
        case [Price(weight=weight, name=name)] if weight > 0:
            yield from (weight * found for found in _least_epsilon(subject, name))
        case _ if _grows(subject, loss):
            for dummies in _fewest(subject):
                found = total(replace(subject, rule=Dummies(dummies)), loss)
                yield found - (abs(found) + 1) * SLACK
        case _:
            raise NotUnderstood("a bound for strategy-proof rules")


def _asked(subject: LotterySubject) -> bool:
    """Whether no lie may bring anything."""
    public = environment(subject.model)
    lines = [line.target for line in subject.model.accuracy if limits_lies(subject, line)]
    return any(evaluate(line.right, public) == 0 for line in lines)


def _grows(subject: LotterySubject, loss: syntax.Expr) -> bool:
    """Whether it is a positive sum of averages and worst cases of such costs, votes being alike in their law."""
    scene, found = Pointwise(subject.model), False
    for term in terms(scene, loss):
        if isinstance(term, Fraction):
            continue
        if not isinstance(term, Term) or term.weight < 0 or (term.operator == "E" and not _uniform(subject)):
            return False
        parts = body_of(subject, scene, term.body).parts
        if any(weight < 0 or cost not in GROWING for weight, cost in parts):
            return False
        found = True
    return found


def _uniform(subject: LotterySubject) -> bool:
    law = subject.ballot_law
    return law is not None and len(law) == subject.ballots.size and len(set(law.values())) == 1


def _least_epsilon(subject: LotterySubject, name: str) -> Iterator[Fraction]:
    """The chosen epsilon for each accuracy line w (m - 1) / m <= d: w = m K / (T + m K), epsilon >= log(1 + g / K)."""
    size, voters = subject.ballots.size, subject.meaning.voters
    changes = [subject.change(r) for r in subject.requirements if _chosen(subject, r, name)]
    for line in subject.model.accuracy:
        distance = None if limits_lies(subject, line) else _distance(subject, line)
        if distance is None or not 0 < distance < Fraction(size - 1, size):
            continue
        most = voters * distance / (size - 1 - size * distance)
        yield from (log_down(1 + change.ballots / most) for change in changes if not change.adding)


def _chosen(subject: LotterySubject, requirement: Requirement, name: str) -> bool:
    match requirement.measure:
        case Chosen(kind="epsilon-DP", amounts_as_written=(syntax.Name(id=written),)):
            return written == name and subject.meaning.output in requirement.outputs
    return False


def _distance(subject: LotterySubject, line: AccuracyTarget) -> Fraction | None:
    """The d of a line weight * worst[total_variation(O, random_dictator(votes))] + constant <= limit; else None."""
    written, scene = line.target, Pointwise(subject.model)
    limit = evaluate(written.right, environment(subject.model))
    if written.probability is not None or written.variable is not None or not isinstance(limit, Fraction):
        return None
    try:
        found = list(terms(scene, written.left))
        constant = sum((term for term in found if isinstance(term, Fraction)), Fraction(0))
        match [term for term in found if not isinstance(term, Fraction)]:
            case [Term(operator="worst") as term] if term.weight > 0:
                body = body_of(subject, scene, term.body)
            case _:
                return None
    except NotUnderstood:
        return None
    if len(body.parts) != 1 or body.parts[0][1] != Apart(SHARES) or body.parts[0][0] <= 0:
        return None
    return ((limit - constant) / term.weight - body.constant) / body.parts[0][0]


def log_down(ratio: Fraction) -> Fraction:
    """A logarithm, rounded down; 0 where it would be below that."""
    from flint import arb, ctx, fmpq

    if ratio <= 1:
        return Fraction(0)
    with ctx.workprec(192):
        whole = (arb(fmpq(ratio.numerator, ratio.denominator)).log() * arb(2) ** BITS).lower().floor().unique_fmpz()
    return Fraction(0) if whole is None else Fraction(int(whole), 1 << BITS)


def _fewest(subject: LotterySubject) -> Iterator[Fraction]:
    """The dummy votes g / (e^epsilon - 1), rounded down, for each pure requirement on replaced votes."""
    for requirement in subject.requirements:
        measure, change = subject.measure(requirement), subject.change(requirement)
        if not isinstance(measure, PureDP) or change.adding or subject.meaning.output not in requirement.outputs:
            continue
        power = Fraction(LogRatio.of(measure.amounts["epsilon"]).up, 1 << BITS)
        if power > 1:
            yield change.ballots / (power - 1)
