"""Rules that draw a winner from sums of points: laws, and the largest ratio that a change of ballots brings.

S_a are the points of alternative a, of m; a ballot gives at most h to one, s to all. Proofs: noise/notes, by `RULES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb, factorial, lcm, perm

from flint import arb, arb_poly, ctx, fmpz_mpoly_ctx

from privspec.kernel.core.numbers import ball, end, exp_down
from privspec.kernel.core.reading import Positive, Refused

PRECISION, OFF, POWERS = 256, Fraction(1, 2**220), ("exponential", "permute_and_flip")
KINDS, PROFILES, PAIRS, WORK, POWER_BITS = 5040, 5000, 3000, 3_000_000, 2**16
"""Most kinds of ballots, profiles, pairs of profiles, steps towards them, and binary digits of a power, at once."""
RULES = {
    "dictator": ("dummy_votes", 0, "dummy-votes"),
    "local_dictator": ("ratio", 1, "local-votes"),
    "exponential": ("base", 1, "weighted-votes"),
    "permute_and_flip": ("base", 1, "weighted-votes"),
    "randomised_winner": ("ratio", 1, "randomised-winner"),
}
"""Families: where the one number of a rule stands, the least that it may be, and the note of its lemma."""
MIXTURES = ("dictator", "local_dictator")  # laws (1 - w) S / sum S + w / m
Scores = tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class Ballots:
    """Ballots of a kind, naming up to `places` of the alternatives; first choices count, or Borda's points."""

    kind: str
    alternatives: tuple[str, ...]
    places: Positive
    counted: str

    def __post_init__(self) -> None:
        least, most = {"first choice": (1, 1), "ranking": (self.size, self.size)}.get(self.kind, (1, self.size))
        points = len(set(self.alternatives)) == self.size and (not self.borda or self.kind != "first choice")
        if not least <= self.places <= most or not points:
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
    def whole(self) -> bool:  # every ballot gives whole numbers of points
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


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule with its one number; `seen`: whether every voter's report is public, not the winner alone."""

    family: str
    number: Fraction
    seen: bool = False

    def law(self, scores: Scores) -> list[Fraction]:
        """The probabilities of the alternatives at their points; those of `POWERS` may be off by `OFF` together."""
        number, m, whole, tiny = self.number, len(scores), sum(scores), arb(2) ** -300
        first = scores.index(max(scores))
        own: list[Fraction] | None = {
            "dictator": lambda: [score + number for score in scores],
            "local_dictator": lambda: [score * (number - 1) + whole for score in scores],
            "randomised_winner": lambda: [number if a == first else Fraction(1) for a in range(m)],
            "plurality": lambda: [Fraction(a == first) for a in range(m)],
        }.get(self.family, lambda: None)()
        if own is not None:
            return [weight / total if total else Fraction(1, m) for total in [sum(own)] for weight in own]
        law = [p if p > tiny else arb(0, tiny) for p in self.balls(scores)]
        if sum(end(p.rad()) for p in law) > OFF:
            raise Refused("powers out of proportion")
        return [end(p.mid()) for p in law]

    def balls(self, scores: Scores) -> list[arb]:
        """A law of `POWERS`, each probability closely enclosed.

        Permute-and-flip goes through alternatives in random order and takes each with its chance y, else the next: y_a
        times the integral over t in [0, 1] of prod over b != a of (1 - t y_b), t the share of the order before a.
        """
        gaps = [max(scores) - score for score in scores]
        if any(gap.denominator != 1 for gap in gaps):
            raise Refused("powers of shared points are not rational")
        with ctx.workprec(PRECISION):
            chances = [1 / ball(self.number) ** int(gap) for gap in gaps]
            if self.family == "permute_and_flip":
                return [chance * _passed([*chances[:a], *chances[a + 1 :]]) for a, chance in enumerate(chances)]
            return [chance / sum(chances, arb(0)) for chance in chances]

    def ratio(self, ballots: Ballots, adding: bool, g: int, t: int | None) -> tuple[Fraction, int]:
        """(base, power): no ratio of the probabilities of two neighbours is above base^power; refused where unknown.

        Up to g of t ballots (None: a secret number) are replaced, or come and go.
        Reports: 1 + w for each that changes, w = (r - 1) h / s. Where the winner alone is seen 1 + w g / T for g of T
        replaced, and 1 + w for any change; one who comes to nobody, or leaves nobody: a report against the uniform law;
        beside others the share moves by half at most.
        """
        m, number, highest = ballots.size, self.number, ballots.ladder[0]
        if m == 1 or not g:
            return Fraction(1), 1
        w = (number - 1) * Fraction(highest, sum(ballots.ladder))
        match self.family:
            case "dictator" if not number:
                raise Refused("without dummy votes a vote that nobody shares reveals its voter")
            case "dictator":  # whatever the number of voters
                return 1 + g * highest / number, 1
            case "randomised_winner":  # some ballot decides, at every number of voters
                return number, 1
            case "local_dictator" if self.seen and adding:
                raise Refused("reports tell who takes part: nothing is hidden of a voter who comes or goes")
            case "local_dictator" if self.seen:
                return 1 + w, g
            case "local_dictator" if adding and g == 1:
                return max(m * (1 + w) / (number + m - 1), (number + m - 1) / m, 1 + w / 2), 1
            case "local_dictator":
                return (1 + w if adding or t is None else 1 + w * g / t), 1
        power = (1 if adding else 2) * g * highest
        with ctx.workprec(PRECISION):
            found = None if adding or t is None else self._powers(ballots, g, t)
        return (number, power) if found is None or found > number**power else (found, 1)

    def _powers(self, ballots: Ballots, g: int, t: int) -> Fraction | None:
        """At T voters, g of them with other ballots; None where only what holds for every number is known.

        First choices. Exponential mechanism: b^g (b^T + m - 1) / (b^(T-g) + b^g + m - 2), where all vote for one and g
        of them leave for another. Permute-and-flip, g = 1: b^2 A(b^(1-T)) / A(b^-T), A(y) the integral over t in [0, 1]
        of (1 - t) (1 - t y)^(m-2). Few pairs of profiles are gone through one by one.
        """
        b, m = self.number, ballots.size
        if not ballots.borda and t * b.numerator.bit_length() <= POWER_BITS:
            if self.family == "exponential":
                return b**g * (b**t + m - 1) / (b ** (t - g) + b**g + m - 2)
            if g == 1 and t > 1:
                near, far = (_passed([arb(1), *[ball(b**k / b**t)] * (m - 2)]) for k in (1, 0))
                return end((ball(b * b) * near / far).upper())
        kinds = factorial(min(m, 8)) if ballots.borda else m
        if g > 1 or not ballots.whole or comb(t + kinds - 1, min(t, kinds - 1, 64)) * kinds * kinds > PAIRS:
            return None
        rest: dict[Scores, None] = {(Fraction(0),) * m: None}
        for _ in range(t - 1):
            rest = dict.fromkeys(_plus(one, kind) for one in rest for kind in ballots.kinds())
        worst = Fraction(1)
        for common in rest:
            laws = [self.balls(_plus(common, kind)) for kind in ballots.kinds()]
            ratios = (p / q for one in laws for other in laws for p, q in zip(one, other, strict=True))
            worst = max(worst, end(max(ratio.upper() for ratio in ratios)))
        return worst


def _passed(chances: list[arb]) -> arb:
    """The integral over t in [0, 1] of the product of 1 - t y."""
    product = arb_poly([1])
    for chance in chances:
        product *= arb_poly([1, -chance])
    return sum(product.integral().coeffs(), arb(0))


def _plus(one: Scores, other: Scores) -> Scores:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def within(ratio: tuple[Fraction, int], epsilon: Fraction) -> bool:
    """Whether base^power is at most e^epsilon."""
    base, power = ratio
    return epsilon >= 0 if base <= 1 or not power else base <= exp_down(epsilon / power)


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
