"""When a lie pays: a profile, a ranking, and a ballot that makes some of the best alternatives more likely.

A lottery is strong-SD strategy-proof if no ballot but the true one gives, for any k, the k best alternatives of a voter
together a larger probability, whatever the others vote (Brandt 2017, section 4; Gibbard 1977).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from itertools import combinations_with_replacement, permutations

from privspec.mechanisms.lotteries.enumeration import kinds
from privspec.model.lotteries import (
    Ballot,
    FirstChoice,
    Largest,
    Lottery,
    Points,
    RandomisedLargest,
    scores,
)
from privspec.model.values import Symbol, show

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

    def describe(self) -> str:
        """In one sentence."""
        wanted = " or ".join(show(a) for a in self.truth[: self.best])
        others = " and ".join(_words(ballot) for ballot in self.others)
        beside = f" beside {others}" if others else ""
        digits = next(d for d in (4, 6, 10, 20, 40) if spoken(self.honest, d) != spoken(self.lying, d) or d == 40)
        return (
            f"a voter who ranks {_words(self.truth)}{beside}: the ballot {_words(self.lie)} raises the probability "
            f"of {wanted} from {spoken(self.honest, digits)} to {spoken(self.lying, digits)}"
        )


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
