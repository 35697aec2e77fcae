"""What a winner costs at one profile: the bodies of `E[ ... ]` and `worst[ ... ]` in losses and accuracy lines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privspec.certify.finite.averages import number
from privspec.certify.lotteries.meaning import FIRST, POINTS_OF, Ballots, Scores, expanded
from privspec.certify.lotteries.subject import LotterySubject
from privspec.certify.motion import NotUnderstood
from privspec.language import syntax
from privspec.language.syntax import VariableKind
from privspec.language.walk import names_used
from privspec.model.pointwise import Pointwise

SHARES, LARGEST = "shares", "largest"
TARGETS = {"random_dictator": SHARES, "borda_lottery": SHARES, "plurality": LARGEST}
"""Lotteries without noise: in proportion to points, or the largest, the first among equals."""


class Cost(ABC):
    """A number for each profile, in numbers of the kind of `one`."""

    __slots__ = ()

    @abstractmethod
    def at(self, law: Sequence[Any], scores: Scores, one: Any) -> Any:
        """At one profile."""

    def mixed(self, share: Fraction, ballots: Ballots, voters: int, operator: str, weights: Any) -> Fraction | None:
        """For the law (1 - w) S / sum S + w / m, over all profiles of so many voters; None where it is not known."""
        return None


def wanted(target: str, scores: Scores) -> Scores:
    """The law of a lottery without noise; uniform where nobody voted."""
    whole, m = sum(scores, Fraction(0)), len(scores)
    if target == SHARES:
        return tuple(s / whole for s in scores) if whole else (Fraction(1, m),) * m
    first = scores.index(max(scores))
    return tuple(Fraction(a == first) for a in range(m))


def ball(value: Fraction, one: Any) -> Any:
    """A fraction in the numbers of `one`."""
    return value if isinstance(one, Fraction) else one * value.numerator / value.denominator


@dataclass(frozen=True, slots=True)
class Apart(Cost):
    """Total variation between the law of the winner and that of a lottery without noise."""

    target: str

    def at(self, law: Sequence[Any], scores: Scores, one: Any) -> Any:
        """Half the sum of the absolute differences."""
        gaps = [abs(p - ball(q, one)) for p, q in zip(law, wanted(self.target, scores), strict=True)]
        return sum(gaps, one * 0) / 2

    def mixed(self, share: Fraction, ballots: Ballots, voters: int, operator: str, weights: Any) -> Fraction | None:
        """Worst from the shares q themselves: w times the largest total variation between q and the uniform law.

        With p = (1 - w) q + w u, p - q = w (u - q). The distance from u is convex in q, and q is a mean of the shares
        of single ballots: it is largest where all cast one and the same ballot, and among ballots at a full order,
        as one that leaves alternatives out has the mean of the shares of its full orders. That one has m - 1, ..., 0
        points (or 1 for the first); an order of all alternatives but the last is the same, and shorter ones are listed.
        """
        if self.target != SHARES or operator != "worst" or not voters:
            return None
        m = ballots.size
        longest = tuple(range(m if ballots.kind == "ranking" else min(max(ballots.places, 1), m)))
        shares = [s / ballots.total for s in ballots.scores(longest)] if m > 1 else [Fraction(1)]
        return share * sum((max(q - Fraction(1, m), Fraction(0)) for q in shares), Fraction(0))


@dataclass(frozen=True, slots=True)
class Missed(Cost):
    """The probability that the winner is another than one drawn independently by a lottery without noise."""

    target: str

    def at(self, law: Sequence[Any], scores: Scores, one: Any) -> Any:
        """One less the probability to agree."""
        agree = [p * ball(q, one) for p, q in zip(law, wanted(self.target, scores), strict=True)]
        return one - sum(agree, one * 0)

    def mixed(self, share: Fraction, ballots: Ballots, voters: int, operator: str, weights: Any) -> Fraction | None:
        """From shares of first choices: as for the voters that the winner misses."""
        shares = self.target == SHARES and ballots.points == FIRST
        return _squares(share, ballots, voters, operator, weights) if shares else None


@dataclass(frozen=True, slots=True)
class VotesMissed(Cost):
    """The share of voters whose first choice does not win."""

    def at(self, law: Sequence[Any], scores: Scores, one: Any) -> Any:
        """One less the average share of the winner."""
        whole = sum(scores, Fraction(0))
        if not whole:
            raise NotUnderstood("a mean over no voters")
        return one - sum((p * ball(s / whole, one) for p, s in zip(law, scores, strict=True)), one * 0)

    def mixed(self, share: Fraction, ballots: Ballots, voters: int, operator: str, weights: Any) -> Fraction | None:
        """One less the sum of squares of shares, mixed with the uniform law."""
        return _squares(share, ballots, voters, operator, weights) if ballots.points == FIRST else None


def _squares(share: Fraction, ballots: Ballots, voters: int, operator: str, weights: Any) -> Fraction | None:
    """1 - (1 - w) sum q^2 - w / m; over profiles sum q^2 is least where votes are spread evenly.

    On average E[N^2] = T p (1 - p) + T^2 p^2 for each alternative.
    """
    m, t = ballots.size, voters
    if not t:
        return None
    if operator == "worst":
        each, more = divmod(t, m)
        squares = Fraction(more * (each + 1) ** 2 + (m - more) * each**2, t * t)
    elif weights is None:
        return None
    else:
        squares = sum((p * (1 - p) / t + p * p for p in weights.values()), Fraction(0))
    return 1 - (1 - share) * squares - share / m


@dataclass(frozen=True, slots=True)
class Body:
    """A sum of weighted costs and a constant."""

    parts: tuple[tuple[Fraction, Cost], ...]
    constant: Fraction

    def at(self, law: Sequence[Any], scores: Scores, one: Any) -> Any:
        """At one profile."""
        total = ball(self.constant, one)
        for weight, cost in self.parts:
            total = total + ball(weight, one) * cost.at(law, scores, one)
        return total


def body_of(subject: LotterySubject, scene: Pointwise, expr: syntax.Expr) -> Body:
    """A body, from its text.

    Raises: NotUnderstood.
    """
    parts: list[tuple[Fraction, Cost]] = []
    constant = Fraction(0)
    for weight, cost in _parts(subject, scene, expanded(subject.model, expr), Fraction(1)):
        if cost is None:
            constant += weight
        else:
            parts.append((weight, cost))
    return Body(tuple(parts), constant)


def _public(subject: LotterySubject, expr: syntax.Node) -> bool:
    nodes = subject.model.nodes
    return all(name not in nodes or nodes[name].kind is VariableKind.CONSTANT for name in names_used(expr))


def _parts(
    subject: LotterySubject, scene: Pointwise, expr: Any, weight: Fraction
) -> Iterator[tuple[Fraction, Cost | None]]:
    match expr:
        case syntax.Binary(op="+" | "-"):
            yield from _parts(subject, scene, expr.left, weight)
            yield from _parts(subject, scene, expr.right, weight if expr.op == "+" else -weight)
        case syntax.Negate():
            yield from _parts(subject, scene, expr.operand, -weight)
        case syntax.Call(
            function="mean",
            arguments=(syntax.Comprehension(body=syntax.Call(function="mismatch") as call, domain=None) as each,),
        ) if each.variable == subject.meaning.party and _is_vote(subject, call):
            yield weight, VotesMissed()
        case syntax.Call(function="total_variation"):
            yield weight, Apart(_target(subject, expr))
        case syntax.Call(function="mismatch"):
            yield weight, Missed(_target(subject, expr))
        case _ if _public(subject, expr):
            yield weight * number(scene, expr), None
        case syntax.Binary(op="*") if _public(subject, expr.left):
            yield from _parts(subject, scene, expr.right, weight * number(scene, expr.left))
        case syntax.Binary(op="*") if _public(subject, expr.right):
            yield from _parts(subject, scene, expr.left, weight * number(scene, expr.right))
        case syntax.Binary(op="/") if _public(subject, expr.right):
            yield from _parts(subject, scene, expr.left, weight / number(scene, expr.right))
        case _:
            raise NotUnderstood("what the winner is compared with")


def _beside(subject: LotterySubject, call: syntax.Call) -> Any:
    """What the winner stands beside.

    Raises: NotUnderstood.
    """
    match call.arguments:
        case (syntax.Name(id=name), other) if name == subject.meaning.output:
            return other
        case (other, syntax.Name(id=name)) if name == subject.meaning.output:
            return other
    raise NotUnderstood("a comparison without the winner")


def _target(subject: LotterySubject, call: syntax.Call) -> str:
    match _beside(subject, call):
        case syntax.Call(function=function, arguments=(syntax.Name(id=name),)) if (
            name == subject.meaning.source and function in TARGETS and POINTS_OF[function] == subject.ballots.points
        ):
            return TARGETS[function]
    raise NotUnderstood("what the winner is compared with")


def _is_vote(subject: LotterySubject, call: syntax.Call) -> bool:
    """`mismatch(O, vote[voter])`, a vote being one alternative."""
    match _beside(subject, call):
        case syntax.Index(base=syntax.Name(id=name), indices=(syntax.Name(id=index),)):
            return (name, index) == (subject.meaning.source, subject.meaning.party) and subject.ballots.kind == FIRST
    return False
