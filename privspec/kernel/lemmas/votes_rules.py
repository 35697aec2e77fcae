"""Rules that draw a winner from sums of points: laws, and the largest ratio that a change of ballots brings.

S_a are the points of alternative a, of m; a ballot gives at most h to one, and s to all together. Laws are enclosed in
balls. Proofs: noise/notes, under the names in `RULES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb, factorial, perm

from flint import arb

from privspec.kernel.core.numbers import ball, end, exp_down
from privspec.kernel.core.reading import Refused

KINDS, PROFILES, PAIRS, WORK = 5040, 5000, 3000, 3_000_000
"""Most kinds of ballots, profiles, pairs of profiles, and steps towards them, that are listed."""
POWER_BITS = 2**16
"""Binary digits up to which powers of a base are worked out."""
RULES = {
    "dictator": ("dummy_votes", 0, "dummy-votes"),
    "local_dictator": ("ratio", 1, "local-votes"),
    "exponential": ("base", 1, "weighted-votes"),
    "permute_and_flip": ("base", 1, "weighted-votes"),
    "randomised_winner": ("ratio", 1, "randomised-winner"),
}
"""Families: where the one number of a rule stands, the least that it may be, and the note of its lemma."""
LOTTERIES = {
    "proportional": ("dictator", "dummies"),
    "exponential": ("exponential", "base"),
    "permute_and_flip": ("permute_and_flip", "base"),
}
"""Lotteries that a winner is compared with, beside plurality, as rules; and where their number stands."""
Scores = tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class Ballots:
    """Ballots of `kind` over `size` alternatives, naming up to `places`; first choices count, or Borda's points."""

    kind: str
    size: int
    places: int
    borda: bool

    @property
    def highest(self) -> int:
        """The h of one ballot."""
        return self.size - 1 if self.borda else 1

    @property
    def total(self) -> int:
        """The s of one ballot."""
        return comb(self.size, 2) if self.borda else 1

    @property
    def whole(self) -> bool:
        """Whether every ballot is sure to give whole numbers of points."""
        return not self.borda or self.kind == "ranking"

    def points(self, order: tuple[int, ...]) -> Scores:
        """What an order of alternatives gives; in Borda's count those that it leaves out share the rest evenly."""
        if not self.borda:
            return tuple(Fraction(a == order[0]) for a in range(self.size))
        shared = Fraction(self.size - len(order) - 1, 2)
        return tuple(Fraction(self.size - 1 - order.index(a)) if a in order else shared for a in range(self.size))

    def kinds(self) -> list[Scores]:
        """The different points that ballots give.

        Raises: Refused where there are too many ballots to list.
        """
        lengths = [self.size] if self.kind == "ranking" else list(range(1, self.places + 1))
        if not self.borda:
            return [self.points((a,)) for a in range(self.size)]
        if sum(perm(self.size, k) for k in lengths) > KINDS:
            raise Refused("there are too many kinds of ballots to list")
        orders: list[tuple[int, ...]] = [()]
        found: dict[Scores, None] = {}
        for length in range(1, lengths[-1] + 1):
            orders = [(*order, a) for order in orders for a in range(self.size) if a not in order]
            found |= dict.fromkeys(self.points(order) for order in orders if length in lengths)
        return list(found)


@dataclass(frozen=True, slots=True)
class Change:
    """Up to `moved` of the ballots are replaced, or come and go; `voters` is None where their number is secret."""

    adding: bool
    moved: int
    voters: int | None


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule with its one number; `seen`: whether every voter's report is public, not the winner alone."""

    family: str
    number: Fraction
    seen: bool = False

    def law(self, scores: Scores) -> list[arb]:
        """The probabilities of the alternatives at their points."""
        m, whole, number = len(scores), sum(scores), self.number
        match self.family:
            case "dictator":  # (S_a + k) / (sum S + m k)
                total = whole + m * number
                return [ball(Fraction(score + number, total) if total else Fraction(1, m)) for score in scores]
            case "local_dictator":  # each reports an alternative drawn by the own points, or another; one is drawn
                if not whole:
                    return [ball(Fraction(1, m))] * m
                return [ball((s * (number - 1) + whole) / (whole * (number + m - 1))) for s in scores]
            case "randomised_winner":  # the winner of plurality `number` times as likely as each other
                return [ball((number if won else 1) / (number + m - 1)) for won in winner(scores)]
        most, each = max(scores), ball(number)
        if any((most - score).denominator != 1 for score in scores):
            raise Refused("powers of shared points are not rational")
        chances = [1 / each ** int(most - score) for score in scores]
        return _flips(chances) if self.family == "permute_and_flip" else _normal(chances)

    def ratio(self, ballots: Ballots, change: Change) -> tuple[Fraction, int]:
        """(base, power): no ratio of the probabilities of two neighbours is above base^power.

        Raises: Refused where none is known.
        """
        m, g, t, number = ballots.size, change.moved, change.voters, self.number
        if m == 1 or not g:
            return Fraction(1), 1
        match self.family:
            case "dictator":  # whatever the number of voters
                if not number:
                    raise Refused("without dummy votes a vote that nobody shares reveals its voter")
                return 1 + g * ballots.highest / number, 1
            case "randomised_winner":  # some ballot decides, at every number of voters
                return number, 1
            case "local_dictator":
                return self._reports(ballots, change)
        if change.adding:
            return number, g * ballots.highest
        found = None if t is None else self._powers(ballots, g, t)
        return (number, 2 * g * ballots.highest) if found is None else (found, 1)

    def _reports(self, ballots: Ballots, change: Change) -> tuple[Fraction, int]:
        """1 + w for each report that changes, w = (r - 1) h / s; less where the winner alone is seen.

        There 1 + w g / T where g of T are replaced, and 1 + w for any change. One who comes to nobody, or leaves
        nobody: a report against the uniform law; beside others the share moves by half at most.
        """
        r, m, g, t = self.number, ballots.size, change.moved, change.voters
        w = (r - 1) * Fraction(ballots.highest, ballots.total)
        if self.seen and change.adding:
            raise Refused("reports tell who takes part: nothing is hidden of a voter who comes or goes")
        if self.seen:
            return 1 + w, g
        if change.adding and g == 1:
            return max(m * (1 + w) / (r + m - 1), (r + m - 1) / m, 1 + w / 2), 1
        return (1 + w if change.adding or t is None else 1 + w * g / t), 1

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
                return b * b * _passed(b / b**t, m - 2) / _passed(1 / b**t, m - 2)
        kinds = factorial(min(m, 8)) if ballots.borda else m
        few = g == 1 and comb(t + kinds - 1, min(t, kinds - 1, 64)) * kinds * kinds <= PAIRS
        return self._enumerated(ballots, t) if few and ballots.whole else None

    def _enumerated(self, ballots: Ballots, voters: int) -> Fraction:
        """At least the largest ratio of all pairs of profiles that differ in one ballot."""
        kinds, worst = ballots.kinds(), Fraction(1)
        rest: dict[Scores, None] = {(Fraction(0),) * ballots.size: None}
        for _ in range(voters - 1):
            rest = dict.fromkeys(_plus(one, kind) for one in rest for kind in kinds)
        for common in rest:
            rows = [self.law(_plus(common, kind)) for kind in kinds]
            ratios = [p / q for one in rows for other in rows for p, q in zip(one, other, strict=True)]
            worst = max(worst, *(end(ratio.upper()) for ratio in ratios))
        return worst

    def uniform_share(self, ballots: Ballots, voters: int) -> Fraction | None:
        """The w where the law is (1 - w) S / sum S + w / m at so many voters; None for other laws."""
        m = ballots.size
        if self.family == "dictator":
            whole = voters * ballots.total + m * self.number
            return m * self.number / whole if whole else Fraction(1)
        return m / (self.number + m - 1) if self.family == "local_dictator" else None


def winner(scores: Scores) -> list[bool]:
    """The alternative of most points, the first declared among equals."""
    first = scores.index(max(scores))
    return [a == first for a in range(len(scores))]


def _normal(chances: list[arb]) -> list[arb]:
    whole = sum(chances, arb(0))
    return [chance / whole for chance in chances]


def _flips(chances: list[arb]) -> list[arb]:
    """Alternatives in random order, each taken with its chance y, else the next one.

    y_a times the sum over sets R of the others of (-1)^|R| prod_R y / (|R| + 1): by inclusion and exclusion nobody
    before a would be taken. Sums over sets of one size are elementary symmetric polynomials.
    """
    law = []
    for a, chance in enumerate(chances):
        symmetric = [arb(1)]
        for other in (*chances[:a], *chances[a + 1 :]):
            symmetric = [e + other * d for e, d in zip([*symmetric, arb(0)], [arb(0), *symmetric], strict=True)]
        law.append(chance * sum((e * (-1) ** j / (j + 1) for j, e in enumerate(symmetric)), arb(0)))
    return law


def _passed(chance: Fraction, others: int) -> Fraction:
    terms = (comb(others, k) * (-chance) ** k / ((k + 1) * (k + 2)) for k in range(others + 1))
    return sum(terms, Fraction(0))


def _plus(one: Scores, other: Scores) -> Scores:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def within(ratio: tuple[Fraction, int], epsilon: Fraction) -> bool:
    """Whether base^power is at most e^epsilon."""
    base, power = ratio
    return epsilon >= 0 if base <= 1 or not power else base <= exp_down(epsilon / power)


# --- profiles ---------------------------------------------------------------------------------------------


def totals(ballots: Ballots, voters: int, law: list[tuple[Scores, Fraction]] | None) -> list[tuple[Scores, arb]]:
    """Every total of points of so many ballots, with its probability under a law of one ballot (without one: no sense).

    Totals that differ in the names of alternatives only are one, with the probability of all: rules and costs treat
    alternatives alike, but for which of several equals is the first, and that one is the same for rule and cost.
    Raises: Refused where there are too many.
    """
    weighted = [(kind, Fraction(1)) for kind in ballots.kinds()] if law is None else law
    steps = [(kind, ball(weight)) for kind, weight in weighted]
    first = all(max(kind) == 1 == sum(kind) for kind, _ in steps)
    if len(steps) > 1 and (voters >= PROFILES or (first and comb(voters + len(steps) - 1, voters) > PROFILES)):
        raise Refused("there are too many profiles of votes to list")
    if len(steps) == 1:
        found = {tuple(voters * points for points in steps[0][0]): arb(1)}
    else:
        found = _counts(steps, voters) if first else _walk(steps, voters)
    merged: dict[Scores, arb] = {}
    for total, mass in found.items():
        key = tuple(sorted(total, reverse=True))
        merged[key] = merged.get(key, arb(0)) + mass
    return list(merged.items())


def _walk(steps: list[tuple[Scores, arb]], voters: int) -> dict[Scores, arb]:
    """Ballot by ballot, in halves of points."""
    moves, work = [(tuple(int(2 * p) for p in kind), weight) for kind, weight in steps], 0
    known = {(0,) * len(moves[0][0]): arb(1)}
    for _ in range(voters):
        after: dict[tuple[int, ...], arb] = {}
        for total, mass in known.items():
            for kind, weight in moves:
                reached = tuple(a + b for a, b in zip(total, kind, strict=True))
                after[reached] = after.get(reached, 0) + mass * weight
        work += len(known) * len(steps)
        if len(after) > PROFILES or work > WORK:
            raise Refused("there are too many profiles of votes to list")
        known = after
    return {tuple(Fraction(p, 2) for p in total): mass for total, mass in known.items()}


def _counts(steps: list[tuple[Scores, arb]], voters: int) -> dict[Scores, arb]:
    """First choices: the multinomial law."""
    size, last, product = len(steps[0][0]), len(steps) - 1, [1]
    for n in range(1, voters + 1):
        product.append(product[-1] * n)
    ways = [((Fraction(0),) * size, voters, ball(Fraction(product[-1])))]
    for i, (kind, weight) in enumerate(steps):
        ways = [
            (_plus(total, tuple(n * p for p in kind)), left - n, mass * weight**n / product[n])
            for total, left, mass in ways
            for n in ([left] if i == last else range(left + 1))
        ]
    return {total: mass for total, _, mass in ways}
