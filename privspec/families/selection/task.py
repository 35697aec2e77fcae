"""What a rule of private voting is asked for and must say of itself; numbers rounded towards privacy."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from privspec.model.lotteries import Lottery, Points
from privspec.model.values import Symbol

# --- Logarithms and powers as simple rationals, rounded towards privacy by ball arithmetic

CLOSE = Fraction(1, 1 << 30)
"""How far, relatively, a simple rational may be from the number that it replaces."""
LARGEST = Fraction(256)
"""Larger epsilons are treated as this one: far beyond any privacy."""
_PRECISION = 192


def growth_down(epsilon: Fraction) -> Fraction:
    """At most e^epsilon - 1, relatively within 2^-100; epsilon > 0."""
    from flint import arb, ctx, fmpq

    epsilon = min(epsilon, LARGEST)
    with ctx.workprec(_PRECISION):
        return _dyadic(arb(fmpq(epsilon.numerator, epsilon.denominator)).expm1().lower())


def log_up(ratio: Fraction) -> Fraction:
    """At least the logarithm of a number >= 1, relatively within 2^-100."""
    from flint import arb, ctx, fmpq

    beyond = ratio - 1
    with ctx.workprec(_PRECISION):
        return _dyadic(arb(fmpq(beyond.numerator, beyond.denominator)).log1p().upper())


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


def _dyadic(ball: Any) -> Fraction:
    """An exact ball as a fraction."""
    mantissa, exponent = (int(part) for part in ball.man_exp())
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)


def decimal_up(value: Fraction, places: int = 6) -> str:
    """A decimal that is not below the value, with so many places; trailing zeros are left out."""
    whole = -(-value.numerator * 10**places // value.denominator)
    text = f"{whole // 10**places}.{whole % 10**places:0{places}d}".rstrip("0")
    return text.rstrip(".")


# --- What a rule of private voting must say of itself; one object for each, in a file of its ow


@dataclass(frozen=True, slots=True)
class VotingTask:
    """Which electorates must look alike to whoever sees the winner, and how ballots count.

    Args: points, what a ballot gives to the alternatives; voters, their number, None where it is secret or may be
        any; adding, whether neighbours have voters more or fewer instead of voters with other ballots; group, up to how
        many voters they differ in; whole, whether every ballot gives whole numbers of points.
    With `adding` and a number, `voters` is the size of the smaller of two electorates, which the larger one contains.
    """

    points: Points
    voters: int | None = None
    adding: bool = False
    group: int = 1
    whole: bool = True

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


class Draw(Protocol):
    """A lottery with its exact numbers, and what it keeps."""

    @property
    def family(self) -> str:
        """The word after `noise family`: "dictator"; "none" for the lottery without noise."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Stems of the notes that prove what it claims."""

    @property
    def lottery(self) -> Lottery:
        """The exact law of the winner."""

    def properties(self, task: VotingTask) -> tuple[Property, ...]:
        """What it keeps and what it gives up, three of them, each with a proof or a counterexample."""

    def to_json(self) -> dict[str, Any]:
        """Family and exact parameters, from which whoever draws or checks it needs nothing else."""


class Calibrated(Draw, Protocol):
    """A lottery that meets some epsilon."""

    def ratio(self, task: VotingTask) -> Fraction:
        """No probability of two neighbours of the task has a larger ratio; the largest over all sizes where secret."""

    def exact(self, task: VotingTask) -> bool:
        """Whether `ratio` is the largest ratio itself, and not only a bound on it."""

    def epsilon(self, task: VotingTask) -> Fraction:
        """The logarithm of `ratio`, rounded up."""


class Rule(Protocol):
    """A family of lotteries."""

    @property
    def family(self) -> str:
        """The word after `noise family` that asks for it."""

    @property
    def name(self) -> str:
        """As rankings list it: "dummy votes"."""

    @property
    def note(self) -> str:
        """Stem of the note that proves its guarantee."""

    def calibrate(self, task: VotingTask, epsilon: Fraction) -> Calibrated | str:
        """The lottery nearest to the votes that meets epsilon in the task, or why there is none."""
