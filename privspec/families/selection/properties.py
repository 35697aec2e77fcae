"""What rules keep, when lies pay, and the largest ratio of a few voters by going through all electorates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from itertools import combinations_with_replacement, permutations
from typing import Any

from privspec.model.lotteries import Ballot, FirstChoice, Largest, Lottery, Points, RandomisedLargest, scores
from privspec.model.values import Symbol, show

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
    first_wins_ties = isinstance(lottery, Largest | RandomisedLargest)
    truths = _truths(points.alternatives) if first_wins_ties else (points.alternatives,)
    for voters in range(most):
        for others in combinations_with_replacement(ballots, voters):
            for truth in truths:
                found = next(gains(lottery, points, others, truth, ballots), None)
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
    lottery: Lottery, points: Points, others: Sequence[Ballot], truth: tuple[Symbol, ...], ballots: Sequence[Ballot]
) -> Iterator[Manipulation]:
    """Every lie of the voter that pays for some number of best alternatives."""
    order = [points.alternatives.index(a) for a in truth]

    def best(ballot: Ballot) -> list[Fraction]:
        law = lottery.law(scores(points, (*others, ballot)))
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
    places = Context(prec=digits)
    return f"about {places.divide(Decimal(probability.numerator), Decimal(probability.denominator))}"


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
