"""Rules that draw a winner from sums of points: one object each, its law, and what a change of ballots lets through.

S_a are the points of alternative a, of m; a ballot gives at most h to one, s to all. A rule has one number, and its
`ratio` says how far apart the probabilities of two neighbours are at most; the proof is the `note` of the rule.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from fractions import Fraction
from math import comb, factorial, lcm, perm
from typing import TYPE_CHECKING, ClassVar

from privspec.kernel.core.reading import Positive, Refused, frozen
from privspec.kernel.laws.law import Choice

if TYPE_CHECKING:
    # the compiler asks for names and laws to check a spec, which needs no arithmetic of balls
    from flint import arb

    from privspec.kernel.changes import Change, Records
    from privspec.kernel.losses import FiniteLaws, Loss

ZERO = Fraction(0)
PRECISION, OFF = 256, Fraction(1, 2**220)
KINDS, PAIRS, POWER_BITS = 5040, 3000, 2**16
"""Most kinds of ballots, pairs of profiles that are gone through, and binary digits of a power."""
Scores = tuple[Fraction, ...]
Ratio = tuple[Fraction, int]
"""A base and a power of it."""


# --- ballots -----------------------------------------------------------------------------------------------------


@frozen
class Ballots:
    """Ballots of a kind, naming up to `places` of the alternatives; first choices count, or Borda's points.

    `supporters`: in every electorate that exists so many at least put each alternative first.
    """

    kind: str
    alternatives: tuple[str, ...]
    places: Positive
    counted: str
    supporters: int = 0

    def __post_init__(self) -> None:
        least, most = {"first choice": (1, 1), "ranking": (self.size, self.size)}.get(self.kind, (1, self.size))
        other = self.borda and (self.supporters or self.kind == "first choice")
        if not least <= self.places <= most or other or len(set(self.alternatives)) < self.size:
            raise Refused("has ballots of another length, points that they do not give, or an alternative twice")

    @property
    def size(self) -> int:
        return len(self.alternatives)

    @property
    def borda(self) -> bool:
        return self.counted == "borda"

    @property
    def ladder(self) -> list[int]:
        """The points of a first place, a second, and so on."""
        return [self.size - 1 - i if self.borda else int(i == 0) for i in range(self.size)]

    @property
    def highest(self) -> int:
        """The most points that a ballot gives to an alternative; the least is none."""
        return self.ladder[0]

    @property
    def whole(self) -> bool:
        """Whether every ballot gives whole numbers of points."""
        return not self.borda or self.kind == "ranking"

    def points(self, order: tuple[int, ...]) -> Scores:
        """What an order of alternatives gives: those that it leaves out share evenly what is left."""
        ladder = self.ladder
        shared = Fraction(sum(ladder[len(order) :]), max(1, self.size - len(order)))
        return tuple(Fraction(ladder[order.index(a)]) if a in order else shared for a in range(self.size))

    def kinds(self) -> list[Scores]:
        """The different points that ballots give; refused where there are too many ballots to list."""
        lengths = range(self.size if self.kind == "ranking" else 1, self.places + 1) if self.borda else range(1, 2)
        if self.borda and sum(perm(self.size, k) for k in lengths) > KINDS:
            raise Refused("there are too many kinds of ballots to list")
        orders: list[tuple[int, ...]] = [()]
        found: dict[Scores, None] = {}
        for length in range(1, lengths[-1] + 1):
            orders = [(*order, a) for order in orders for a in range(self.size) if a not in order]
            found |= dict.fromkeys(self.points(order) for order in orders if length in lengths)
        return list(found)


WORDS = {"Ballots.kind": ("first choice", "ranking", "partial ranking"), "Ballots.counted": ("first choice", "borda")}


# --- rules -------------------------------------------------------------------------------------------------------


class VotingRule(ABC):
    """A rule that draws a winner at the points of all ballots; it has one number.

    `name`: as specs and plans call it; `parameter`: what its number is called in plans, where it is `least` or more.
    """

    name: ClassVar[str]
    parameter: ClassVar[str]
    least: ClassVar[int] = 1
    note: ClassVar[str]
    """The proof of its ratio."""
    affine: ClassVar[bool] = False
    """Whether its law is (1 - w) S / sum S + w / m, with a w that is the same at any points of so many voters."""
    reported: ClassVar[bool] = False
    """Whether each voter's ballot may be made noisy by itself, so that nobody has to be trusted."""
    off: ClassVar[Fraction] = ZERO
    """By how much its probabilities may be wrong together; then points have to be whole numbers."""

    def weights(self, number: Fraction, scores: Scores) -> list[Fraction]:
        """What the probabilities of the alternatives are in proportion to; all of them alike where all are 0."""
        raise NotImplementedError

    def law(self, number: Fraction, scores: Scores) -> list[Fraction]:
        """The probabilities of the alternatives at their points."""
        weights = self.weights(number, scores)
        whole = sum(weights)
        return [weight / whole if whole else Fraction(1, len(scores)) for weight in weights]

    @abstractmethod
    def ratio(self, drawn: Winner, change: Records) -> Ratio:
        """(base, power): no ratio of the probabilities of two neighbours is above base^power.

        There are two alternatives or more, and no more ballots change than there are.
        Raises: Refused where nothing is known.
        """

    def of_report(self, number: Fraction, ballots: Ballots) -> Fraction:
        """The same of the report of one voter, which everybody sees."""
        raise Refused("has no reports of single voters")


class DummyVotes(VotingRule):
    """In proportion to points and so many dummy votes for each alternative, whatever the number of voters."""

    name, parameter, least, note = "dictator", "dummy_votes", 0, "dummy-votes"
    affine = True

    def weights(self, number: Fraction, scores: Scores) -> list[Fraction]:
        return [score + number for score in scores]

    def ratio(self, drawn: Winner, change: Records) -> Ratio:
        least = drawn.number + drawn.ballots.supporters
        if not least:
            raise Refused("without dummy votes a vote that nobody shares reveals its voter")
        return 1 + change.count * drawn.ballots.highest / least, 1


class OneReport(VotingRule):
    """Every ballot goes through randomised response, the truth so many times as likely; then one report is drawn."""

    name, parameter, note = "local_dictator", "ratio", "local-votes"
    affine = reported = True

    def weights(self, number: Fraction, scores: Scores) -> list[Fraction]:
        whole = sum(scores)
        return [score * (number - 1) + whole for score in scores]

    def of_report(self, number: Fraction, ballots: Ballots) -> Fraction:
        return 1 + (number - 1) * Fraction(ballots.highest, sum(ballots.ladder))

    def ratio(self, drawn: Winner, change: Records) -> Ratio:
        """1 + w g / T for g of T replaced, 1 + w = `of_report`, and 1 + w for any change.

        One who comes to nobody, or leaves nobody: a report against the uniform law; beside others the share moves by
        half at most.
        """
        most, m = self.of_report(drawn.number, drawn.ballots), drawn.ballots.size
        if change.adding and change.count == 1:
            whole = drawn.number + m - 1
            return max(m * most / whole, whole / m, (1 + most) / 2), 1
        if change.adding or drawn.voters is None:
            return most, 1
        return 1 + (most - 1) * change.count / drawn.voters, 1


class ByPowers(VotingRule):
    """A rule whose law is made of powers base^(points - most points), each of which is closely enclosed."""

    parameter, note = "base", "weighted-votes"
    off = OFF

    @abstractmethod
    def of_chances(self, chances: list[arb]) -> list[arb]:
        """The law, by these powers."""

    @abstractmethod
    def at_most(self, base: Fraction, size: int, group: int, voters: int) -> Fraction | None:
        """The largest ratio at so many first choices of which a `group` is replaced, where it is known."""

    def law(self, number: Fraction, scores: Scores) -> list[Fraction]:
        from flint import arb

        from privspec.kernel.core.numbers import end

        tiny = arb(2) ** -300
        law = [p if p > tiny else arb(0, tiny) for p in self.balls(number, scores)]
        if sum(end(p.rad()) for p in law) > OFF:
            raise Refused("powers out of proportion")
        return [end(p.mid()) for p in law]

    def balls(self, number: Fraction, scores: Scores) -> list[arb]:
        """The law, each probability closely enclosed."""
        from flint import ctx

        from privspec.kernel.core.numbers import ball

        gaps = [max(scores) - score for score in scores]
        if any(gap.denominator != 1 for gap in gaps):
            raise Refused("powers of shared points are not rational")
        with ctx.workprec(PRECISION):
            return self.of_chances([1 / ball(number) ** int(gap) for gap in gaps])

    def ratio(self, drawn: Winner, change: Records) -> Ratio:
        from flint import ctx

        base, power = drawn.number, (1 if change.adding else 2) * change.count * drawn.ballots.highest
        with ctx.workprec(PRECISION):
            found = None if change.adding else self._at(drawn, change.count)
        return (base, power) if found is None or found > base**power else (found, 1)

    def _at(self, drawn: Winner, group: int) -> Fraction | None:
        """At so many voters, where more is known than of any number; few pairs of profiles are gone through."""
        from privspec.kernel.core.numbers import end

        base, ballots, voters = drawn.number, drawn.ballots, drawn.voters
        if voters is None:
            return None
        if not ballots.borda and voters * base.numerator.bit_length() <= POWER_BITS:
            found = self.at_most(base, ballots.size, group, voters)
            if found is not None:
                return found
        kinds = factorial(min(ballots.size, 8)) if ballots.borda else ballots.size
        pairs = comb(voters + kinds - 1, min(voters, kinds - 1, 64)) * kinds * kinds
        if group > 1 or not ballots.whole or pairs > PAIRS:
            return None
        rest: dict[Scores, None] = {(ZERO,) * ballots.size: None}
        for _ in range(voters - 1):
            rest = dict.fromkeys(plus(one, kind) for one in rest for kind in ballots.kinds())
        worst = Fraction(1)
        for common in rest:
            laws = [self.balls(base, plus(common, kind)) for kind in ballots.kinds()]
            ratios = (p / q for one in laws for other in laws for p, q in zip(one, other, strict=True))
            worst = max(worst, end(max(ratio.upper() for ratio in ratios)))
        return worst


class Exponential(ByPowers):
    """In proportion to base^points."""

    name = "exponential"

    def of_chances(self, chances: list[arb]) -> list[arb]:
        whole = sum(chances[1:], chances[0])
        return [chance / whole for chance in chances]

    def at_most(self, base: Fraction, size: int, group: int, voters: int) -> Fraction | None:
        """b^g (b^T + m - 1) / (b^(T-g) + b^g + m - 2): all vote for one, and g of them leave for another."""
        return base**group * (base**voters + size - 1) / (base ** (voters - group) + base**group + size - 2)


class PermuteAndFlip(ByPowers):
    """Alternatives in random order, each taken with its chance y = base^(points - most points), else the next one."""

    name = "permute_and_flip"

    def of_chances(self, chances: list[arb]) -> list[arb]:
        """y_a times the integral over t, the share of the order before a, of the product over b != a of 1 - t y_b."""
        return [chance * _passed([*chances[:a], *chances[a + 1 :]]) for a, chance in enumerate(chances)]

    def at_most(self, base: Fraction, size: int, group: int, voters: int) -> Fraction | None:
        """For one: b^2 A(b^(1-T)) / A(b^-T), A(y) the integral over t in [0, 1] of (1 - t) (1 - t y)^(m-2)."""
        from flint import arb

        from privspec.kernel.core.numbers import ball, end

        if group > 1 or voters == 1:
            return None
        near, far = (_passed([arb(1), *[ball(base**k / base**voters)] * (size - 2)]) for k in (1, 0))
        return end((ball(base * base) * near / far).upper())


class TurnedWinner(VotingRule):
    """Randomised response of the alternative with most points; some ballot decides it, at every number of voters."""

    name, parameter, note = "randomised_winner", "ratio", "randomised-winner"

    def weights(self, number: Fraction, scores: Scores) -> list[Fraction]:
        first = scores.index(max(scores))
        return [number if a == first else Fraction(1) for a in range(len(scores))]

    def ratio(self, drawn: Winner, change: Records) -> Ratio:
        return drawn.number, 1


class Plurality(VotingRule):
    """The alternative with most points, of several the first, without chance: no ballot is hidden."""

    name, parameter, least, note = "plurality", "", 0, ""

    def weights(self, number: Fraction, scores: Scores) -> list[Fraction]:
        first = scores.index(max(scores))
        return [Fraction(a == first) for a in range(len(scores))]

    def ratio(self, drawn: Winner, change: Records) -> Ratio:
        raise Refused("a winner without chance reveals the ballot that decides")


DUMMY_VOTES, ONE_REPORT, EXPONENTIAL = DummyVotes(), OneReport(), Exponential()
PERMUTE_AND_FLIP, TURNED_WINNER, PLURALITY = PermuteAndFlip(), TurnedWinner(), Plurality()
VOTING: tuple[VotingRule, ...] = (
    DUMMY_VOTES,
    PERMUTE_AND_FLIP,
    EXPONENTIAL,
    ONE_REPORT,
    TURNED_WINNER,
)
"""Those that a plan may execute, in the order in which they are compared."""
BY_NAME = {one.name: one for one in VOTING}


def _passed(chances: list[arb]) -> arb:
    """The integral over t in [0, 1] of the product of 1 - t y."""
    from flint import arb, arb_poly

    product = arb_poly([1])
    for chance in chances:
        product *= arb_poly([1, -chance])
    return sum(product.integral().coeffs(), arb(0))


def plus(one: Scores, other: Scores) -> Scores:
    """The points of all ballots together."""
    return tuple(a + b for a, b in zip(one, other, strict=True))


# --- the law of a winner -----------------------------------------------------------------------------------------


@frozen
class Winner(Choice):
    """One alternative, drawn by a rule from the ballots of so many `voters`, None where their number is a secret.

    `seen`: every voter's report is public, and not the winner alone.
    """

    rule: VotingRule
    number: Fraction
    ballots: Ballots
    voters: int | None
    seen: bool = False

    def __post_init__(self) -> None:
        if self.number < self.rule.least or (self.voters or 0) < 0:
            raise Refused("draws by a number that the rule does not take, or from less than no voters")
        if self.seen and not self.rule.reported:
            raise Refused("has no reports of single voters")

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]  # one to each rule
        return (self.rule.note,)

    def let_through(self, change: Change) -> Loss:
        """By all laws of two neighbours where these are few, else by their largest ratio."""
        from flint import ctx

        from privspec.kernel.changes import Records
        from privspec.kernel.core.numbers import ball, end
        from privspec.kernel.losses import Loss, Response

        if not isinstance(change, Records) or change.each != 1:
            raise Refused("is drawn from ballots, one a voter, and nothing is known of such a change of them")
        base, power = self.ratio(change)
        finite = self._laws(change)
        if finite is not None:
            return Loss(factors=(finite,))
        with ctx.workprec(PRECISION):
            return Loss(factors=(Response(max(end(ball(base).log().upper()) * power, ZERO)),))

    def ratio(self, change: Records) -> Ratio:
        """(base, power): no ratio of what is seen of two neighbours is above base^power."""
        if change.adding and (self.seen or self.voters is not None):
            raise Refused("everybody knows how many vote, or who does: nothing is hidden of a voter who comes or goes")
        many = change.count if self.voters is None else min(change.count, self.voters)
        if self.ballots.size == 1 or not many:
            return Fraction(1), 1
        if self.seen:
            return self.rule.of_report(self.number, self.ballots), many
        return self.rule.ratio(self, replace(change, count=many))

    def _laws(self, change: Records) -> FiniteLaws | None:
        """Of first choices and one voter who votes otherwise, where all others agree: others let through no more.

        The laws are affine in the counts of the others' votes, and what is let through is convex in both laws together.
        """
        choices, several = range(self.ballots.size), change.adding or change.count > 1
        if (
            several
            or self.seen
            or self.ballots.borda
            or self.ballots.supporters
            or not (self.rule.affine and self.voters)
        ):
            return None
        from privspec.kernel.losses import FiniteLaws

        laws = [
            self.rule.law(self.number, tuple(Fraction((self.voters - 1) * (a == others) + (a == to)) for a in choices))
            for others in choices[:3]
            for to in (0, 1)
        ]
        whole = lcm(*(p.denominator for law in laws for p in law))
        rows = tuple(tuple(int(p * whole) for p in law) for law in laws)
        return FiniteLaws(rows, whole, tuple((k, k + 1) for k in range(0, len(rows), 2)), ())
