"""How far one unit moves a party's statistic, in three norms: formulas of the checker's own, all rounded up.

A statistic is what is executed: whole multiples of 2^-20, computed from records that are such multiples and lie in
their ball. Proofs: note probit-routes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

from privspec.certify.exact import sqrt_up
from privspec.model.values import show

BITS = 20
STEP = Fraction(1, 2**BITS)
"""The grid of records and statistics."""


@dataclass(frozen=True, slots=True)
class Moves:
    """Upper bounds on the l1, l2 and l_inf norms of what one unit changes."""

    l1: Fraction
    l2: Fraction
    linf: Fraction

    def times(self, count: int) -> Moves:
        """Of so many such changes."""
        return Moves(count * self.l1, count * self.l2, count * self.linf)


@dataclass(frozen=True, slots=True)
class Records:
    """What one party holds, and the ball of the weights that are estimated (`within_l1`: its norm)."""

    count: int
    dimension: int
    radius: Fraction | None
    within_l1: bool
    within: Fraction


@dataclass(frozen=True, slots=True)
class Statistic:
    """One statistic: numbers, what one record moves, what all records of a party move, and its largest l2 norm."""

    name: str
    at: str
    size: int
    record: Moves
    party: Moves
    length: Fraction


def root(value: Fraction) -> Fraction:
    """The square root: exact where it is rational, else rounded up."""
    above, below = isqrt(value.numerator), isqrt(value.denominator)
    exact = Fraction(above, below)
    return exact if exact * exact == value else sqrt_up(value)


def statistic_of(at: str, records: Records) -> Statistic | None:
    """The statistic that a plan names; None if there is none for such records."""
    build = STATISTICS.get(at)
    return None if build is None else build(records)


# --- points of a ball --------------------------------------------------------------------------------


def _twice(l1: Fraction, l2: Fraction, linf: Fraction) -> Moves:
    """Two points of a symmetric set are apart by the sum of their norms at most."""
    return Moves(2 * l1, 2 * l2, 2 * linf)


def _result(records: Records) -> Statistic:
    """Weights in their ball: any record may lead from one end to the other."""
    b, d = records.within, records.dimension
    moves = _twice(b if records.within_l1 else b * root(Fraction(d)), b, b)
    return Statistic("estimated weights", "result", d, moves, moves, b)


def _signs(records: Records) -> Statistic:
    """Entries -1, 0, 1."""
    d = Fraction(records.dimension)
    moves = _twice(d, root(d), Fraction(1))
    return Statistic(f"signs of the {_estimated(records)}", "signs", records.dimension, moves, moves, root(d))


WIDER = 10
"""Directions and signs are of weights estimated in a ball so many times wider than the spec's (note probit-routes)."""


def _estimated(records: Records) -> str:
    norm = "l1 ball" if records.within_l1 else "ball"
    return f"weights estimated in the {norm} of radius {show(records.within * WIDER)}"


def _unit_vector(of: str, at: str, records: Records) -> Statistic:
    moves = _twice(root(Fraction(records.dimension)), Fraction(1), Fraction(1))
    return Statistic(f"direction of the {of}", at, records.dimension, moves, moves, Fraction(1))


def _direction(records: Records) -> Statistic:
    return _unit_vector(_estimated(records), "direction", records)


def _direction_of_records(records: Records) -> Statistic | None:
    if records.radius is None:
        return None
    return _unit_vector("sum of the records", "direction_of_records", records)


def _sums(records: Records) -> Statistic | None:
    """A record in a Euclidean ball moves by 2 r at most; sums of multiples of the step are exact."""
    if records.radius is None:
        return None
    r, n = records.radius, records.count
    record = _twice(r * root(Fraction(records.dimension)), r, r)
    return Statistic("sum of the records", "records", records.dimension, record, record.times(n), n * r)


# --- coefficients of the second-order objective ------------------------------------------------------


def _ball(value: Fraction) -> Any:
    from flint import arb, fmpq

    return arb(fmpq(value.numerator, value.denominator))


def _upper(ball: Any) -> Fraction:
    """A fraction at or above a whole ball."""
    mantissa, exponent = ball.upper().man_exp()
    mantissa, exponent = int(mantissa), int(exponent)
    return Fraction(mantissa) * (Fraction(2) ** exponent)


def _binary_down(value: Any) -> Fraction:
    """A ball's number to 20 binary places, rounded down."""
    floor = (value * 2**BITS).floor().unique_fmpz()
    if floor is None:
        raise ArithmeticError("a constant lies on the grid")
    return Fraction(int(floor), 2**BITS)


def _constants() -> tuple[Fraction, Fraction, Fraction]:
    """sqrt(2 / pi), 1 / pi and the weight of a product of two features, sqrt(2) / pi, as they are executed."""
    from flint import arb, ctx

    with ctx.workprec(128):
        slope, curve = _binary_down((2 / arb.pi()).sqrt()), _binary_down(1 / arb.pi())
        pair = _binary_down(arb(2).sqrt()) * curve
    return slope, curve, Fraction(pair.numerator * 2**BITS // pair.denominator, 2**BITS)


def _objective(records: Records) -> Statistic | None:
    """c1 v, then c2 v_i v_i and sqrt(2) c2 v_i v_j: each record's numbers are rounded towards zero.

    With s = |v - w| and t = |v + w|, |v v' - w w'|^2 = (s^2 t^2 + (|v|^2 - |w|^2)^2) / 2; the largest values are those
    of two records of full length, where s^2 + t^2 = 4 r^2. Norms of m numbers: l1 <= sqrt(m) l2.
    """
    if records.radius is None:
        return None
    slope, curve, pair = _constants()
    r, d, n = records.radius, records.dimension, records.count
    products, pairs = d * (d + 1) // 2, d * (d - 1) // 2
    # An entry is off by less than a step for v, and for w; a product is rounded before its weight, and after it.
    each = (2 * STEP, 2 * (1 + curve) * STEP, 2 * (1 + pair) * STEP)
    counts = (d, d, pairs)
    off = Moves(
        sum((c * e for c, e in zip(counts, each, strict=True)), Fraction(0)),
        root(sum((c * e * e for c, e in zip(counts, each, strict=True)), Fraction(0))),
        max(each),
    )
    record = Moves(
        _largest_sum(slope * root(Fraction(d)), curve * root(Fraction(products)), r) + off.l1,
        root(_largest_square(slope, curve, r)) + off.l2,
        max(2 * slope * r, curve * r * r, pair * r * r) + off.linf,
    )
    length = n * root((slope * r) ** 2 + (curve * r * r) ** 2)
    return Statistic("coefficients of the objective", "objective", d + products, record, record.times(n), length)


def _largest_sum(linear: Fraction, quadratic: Fraction, r: Fraction) -> Fraction:
    """The largest of linear s + quadratic s sqrt((4 r^2 - s^2) / 2) over 0 <= s <= 2 r, rounded up.

    With s = 2 r sin(x) it is a sin(x) + b sin(2 x), a = 2 r linear, b = sqrt(2) r^2 quadratic: concave for x in
    [0, pi / 2], with its only stationary point at cos(x) = (sqrt(a^2 + 32 b^2) - a) / (8 b).
    """
    from flint import arb, ctx

    with ctx.workprec(256):
        a, b = 2 * _ball(r) * _ball(linear), arb(2).sqrt() * _ball(r * r) * _ball(quadratic)
        cosine = ((a * a + 32 * b * b).sqrt() - a) / (8 * b)
        sine = (1 - cosine * cosine).sqrt()
        return _upper(sine * (a + 2 * b * cosine))


def _largest_square(slope: Fraction, curve: Fraction, r: Fraction) -> Fraction:
    """The largest of slope^2 u + curve^2 u (4 r^2 - u) / 2 over 0 <= u <= 4 r^2, exactly: a concave parabola in u."""
    u = min(slope**2 / curve**2 + 2 * r * r, 4 * r * r)
    return slope**2 * u + curve**2 * u * (4 * r * r - u) / 2


STATISTICS: Mapping[str, Callable[[Records], Statistic | None]] = {
    "result": _result,
    "direction": _direction,
    "signs": _signs,
    "objective": _objective,
    "records": _sums,
    "direction_of_records": _direction_of_records,
}
"""By the place that `noise at` names."""
