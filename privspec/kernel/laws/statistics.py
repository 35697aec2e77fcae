"""Noise at a statistic of bounded records: how far one unit moves it, and what each law hides of that.

Lemma probit-routes, version 1 of `probit_mle`: records are put on the grid 2^-20 inside their ball, each by itself; a
party's statistic is a function of its own records alone, in whole multiples of the grid. Lemmas laplace, knorm-l2,
knorm-linf, gaussian-exact, duchi-l2: what is rounded is rounded after the noise.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb, ctx

from privspec.kernel.changes import Change, OfParty
from privspec.kernel.core.numbers import ZERO, ball, end, sqrt_up
from privspec.kernel.core.reading import Refused, frozen
from privspec.kernel.laws.law import Choice
from privspec.kernel.losses import Loss, Response

STEP = Fraction(1, 2**20)
SLOPE, CURVE, PAIR = 836_642 * STEP, 333_772 * STEP, 472_024 * STEP
"""sqrt(2 / pi), 1 / pi and sqrt(2) / pi as the statistic is computed with them: the coefficients of its objective."""
LARGEST_RADIUS, WIDER = 2**10, 10
"""Products of records up to this length fit into 64 bits; the ball in which directions and signs are estimated."""
Moves = tuple[Fraction, ...]
"""Upper bounds on the l1, l2 and l_inf norms of what one unit changes."""


@frozen
class HeldRecords:
    """What one party holds: records in a Euclidean ball (`radius`; None: of any size), and the ball of the weights."""

    count: int
    dimension: int
    radius: Fraction | None
    norm: str
    within: Fraction


@frozen
class Statistic:
    """Its numbers, what one record and all of a party move, its largest l2 norm, and the ball of its own estimate."""

    size: int
    record: Moves
    party: Moves
    length: Fraction
    estimated: Fraction | None = None

    def moves(self, many: int) -> Moves:
        """What so many records that one party holds move, one after the other."""
        return tuple(min(many * one, most) for one, most in zip(self.record, self.party, strict=True))


def statistics_of(records: HeldRecords) -> dict[str, Statistic]:
    """Every statistic that is known of such records, in order, by its place in the call."""
    d, b, r, one = records.dimension, records.within, records.radius, Fraction(1)
    root, wide = sqrt_up(Fraction(d)), b * WIDER
    found = {
        "result": _point(d, (b if records.norm == "l1" else b * root, b, b)),
        "direction": _point(d, (root, one, one), wide),
        "signs": _point(d, (Fraction(d), root, one), wide),
    }
    if r is not None:
        found["objective"] = _objective(records, r)
        record = (2 * r * root, 2 * r, 2 * r)  # a record moves by 2 r at most; sums of multiples of the step are exact
        found["records"] = Statistic(d, record, tuple(records.count * x for x in record), records.count * r)
        found["direction_of_records"] = _point(d, (root, one, one))
    return found


def _point(size: int, reach: Moves, estimated: Fraction | None = None) -> Statistic:
    """A point of a symmetric set: two of them differ by the sum of their norms at most, whatever the unit is."""
    moves = tuple(2 * norm for norm in reach)
    return Statistic(size, moves, moves, reach[1], estimated)


def _objective(records: HeldRecords, r: Fraction) -> Statistic:
    """c1 v, then c2 v_i v_i and sqrt(2) c2 v_i v_j: each record's numbers are rounded towards zero.

    With s = |v - w| and t = |v + w|, |v v' - w w'|^2 = (s^2 t^2 + (|v|^2 - |w|^2)^2) / 2; the largest values are those
    of two records of full length, where s^2 + t^2 = 4 r^2. Norms of m numbers: l1 <= sqrt(m) l2.
    """
    d, n = records.dimension, records.count
    products, pairs = d * (d + 1) // 2, d * (d - 1) // 2
    # An entry is off by less than a step for v, and for w; a product is rounded before its weight, and after it.
    off = ((d, 2 * STEP), (d, 2 * (1 + CURVE) * STEP), (pairs, 2 * (1 + PAIR) * STEP))
    u = min(SLOPE**2 / CURVE**2 + 2 * r * r, 4 * r * r)  # s^2 where the l2 norm is largest: a concave parabola
    record = (
        _largest_sum(SLOPE * sqrt_up(Fraction(d)), CURVE * sqrt_up(Fraction(products)), r) + sum(k * e for k, e in off),
        sqrt_up(SLOPE**2 * u + CURVE**2 * u * (4 * r * r - u) / 2) + sqrt_up(Fraction(sum(k * e * e for k, e in off))),
        max(2 * SLOPE * r, CURVE * r * r, PAIR * r * r) + max(e for _, e in off),
    )
    length = n * sqrt_up((SLOPE * r) ** 2 + (CURVE * r * r) ** 2)
    return Statistic(d + products, record, tuple(n * norm for norm in record), length)


def _largest_sum(linear: Fraction, quadratic: Fraction, r: Fraction) -> Fraction:
    """The largest of linear s + quadratic s sqrt((4 r^2 - s^2) / 2) over 0 <= s <= 2 r, rounded up.

    With s = 2 r sin(x) it is a sin(x) + b sin(2 x), a = 2 r linear, b = sqrt(2) r^2 quadratic: concave for x in
    [0, pi / 2], with its only stationary point at cos(x) = (sqrt(a^2 + 32 b^2) - a) / (8 b).
    """
    with ctx.workprec(256):
        a, b = 2 * ball(r) * ball(linear), arb(2).sqrt() * ball(r * r) * ball(quadratic)
        cosine = ((a * a + 32 * b * b).sqrt() - a) / (8 * b)
        return end(((1 - cosine * cosine).sqrt() * (a + 2 * b * cosine)).upper())


# --- noise -------------------------------------------------------------------------------------------------------


@frozen
class Shape:
    """A law of noise: its `family` after `noise family`, the name of its size, its lemmas.

    `norm`: what it hides is counted in l1, l2 or l_inf; None of a report, which hides the same whatever it is about.
    """

    family: str
    size: str
    norm: int | None
    lemmas: tuple[str, ...]
    normal: bool = False


SHAPES = {
    "laplace": Shape("laplace", "scale", 0, ("laplace", "discrete-laplace")),
    "knorm-l2": Shape("knorm", "scale", 1, ("knorm-l2", "discrete-laplace")),
    "knorm-linf": Shape("knorm", "scale", 2, ("knorm-linf", "discrete-laplace")),
    "gaussian": Shape("gaussian", "standard_deviation", 1, ("gaussian-exact", "rounded-gaussian"), normal=True),
    "duchi-l2": Shape("sphere", "epsilon", None, ("duchi-l2",)),
}


@frozen
class Noise:
    """A law by shape; `size`: scale, standard deviation or a report's epsilon; `bound`: of the vectors reported of."""

    shape: str
    size: Fraction
    bound: Fraction | None

    def __post_init__(self) -> None:
        if self.shape not in SHAPES or self.size <= 0 or (self.bound is None) != (self.law.norm is not None):
            raise Refused("are no noise")

    @property
    def law(self) -> Shape:
        """What is known of its shape."""
        return SHAPES[self.shape]

    def let_through(self, moves: Moves) -> Loss:
        """Epsilon or mu for what moves so far: by the triangle inequality; of a report its epsilon."""
        amount = self.size if self.law.norm is None else moves[self.law.norm] / self.size
        return Loss(mu_squared=amount**2) if self.law.normal else Loss(factors=(Response(amount),))


@frozen
class NoisyStatistic(Choice):
    """Each party's own statistic, or the sum of all, with noise: `noises` of all alike, or of each party in order."""

    statistic: Statistic
    noises: tuple[Noise, ...]

    def __post_init__(self) -> None:
        reports = [one.bound for one in self.noises if one.bound is not None]
        if not self.noises or len({one.law.normal for one in self.noises}) > 1:
            raise Refused("has no noise, or laws of kinds that are not compared")
        if min(reports, default=self.statistic.length) < self.statistic.length:
            raise Refused("have a bound below the length of the statistic: reports would be biased")

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]  # one to each law
        lemmas = dict.fromkeys(lemma for noise in self.noises for lemma in noise.law.lemmas)
        return ("probit-routes", *lemmas, "post-processing")

    def let_through(self, change: Change) -> Loss:
        """By the noise of the party, or the least of all where any party may change."""
        if not isinstance(change, OfParty) or change.count < 0 or (change.party or 0) not in range(len(self.noises)):
            raise Refused("is about records that one party holds, and nothing is known of such a change of them")
        moves = self.statistic.moves(change.count)
        noises = self.noises if change.party is None else (self.noises[change.party],)
        losses = [one.let_through(moves) for one in noises]
        return max(losses, key=lambda loss: (loss.mu_squared, sum(loss.epsilons() or [], ZERO)))
