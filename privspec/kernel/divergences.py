"""Measures of two finite laws that no single ratio says: Rényi divergences of an order, of all orders, and mu-GDP.

Laws p and q are whole numbers over one `whole`. With s = order - 1, the generator (p^order q^-s - order p + s q) /
(order s) is convex, >= 0, and adds up to (e^(s divergence) - 1) / (order s); notes/divergences.md.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb, ctx

from privspec.kernel.core.numbers import BITS, LARGEST_LOG, ball, end, exp_up, gaussian_delta_up
from privspec.kernel.core.reading import Item

SMALLEST = Fraction(1, 2**1000)
"""Smaller ratios count as this."""
STEPS = 2**12
"""Most intervals of orders that are looked at for one pair."""
Amounts = dict[str, Fraction]
Law = list[int]


def log_ratios(p: Law, q: Law) -> list[tuple[int, arb]]:
    """Of each value of p its share, and the logarithm of p / q; q has all that p has."""
    return [(a, arb(a).log() - arb(b).log()) for a, b in zip(p, q, strict=True) if a]


def log_moment(ratios: list[tuple[int, arb]], whole: int, s: arb) -> arb:
    """Log sum p (p / q)^s, convex in s and 0 at 0."""
    return (sum((a * (s * ratio).exp() for a, ratio in ratios), arb(0)) / whole).log()


def renyi(p: Law, q: Law, whole: int, asked: Amounts) -> bool:
    """Whether the divergence of p from q of one order is at most epsilon."""
    s = ball(asked["order"] - 1)
    return bool(log_moment(log_ratios(p, q), whole, s) <= s * ball(asked["epsilon"]))


def concentrated(p: Law, q: Law, whole: int, asked: Amounts) -> bool:
    """Whether the divergence of p from q of every order above 1 is at most rho times the order.

    Log-moments are then at most rho s (s + 1), as they are beyond s = (largest log ratio) / rho. Before, their chord
    over an interval is below it at both ends and where it comes nearest, or else the interval is halved.
    """
    ratios, rho, left, low = log_ratios(p, q), ball(asked["rho"]), arb(0), arb(0)
    last = (ball(max(Fraction(a, b) for a, b in zip(p, q, strict=True) if b)).log() / rho).upper()
    todo = [(last, log_moment(ratios, whole, last).upper())]
    for _ in range(STEPS):
        right, high = todo[-1]
        slope = (high - low) / (right - left)
        nearest = (slope / rho - 1) / 2
        if not high <= rho * right * (right + 1):
            return False
        if nearest <= left or nearest >= right or low - slope * left + (slope - rho) ** 2 / (4 * rho) <= 0:
            left, low = todo.pop()
        else:
            middle = ((left + right) / 2).mid()
            todo.append((middle, log_moment(ratios, whole, middle).upper()))
        if not todo:
            return True
    return False


def gaussian(p: Law, q: Law, whole: int, asked: Amounts) -> bool:
    """Whether no test of q against p has more power than one of two Gaussians mu apart.

    The best tests count values by falling p / q; all others mix them, and the curve of Gaussians is concave.
    """
    mu, power, size = ball(asked["mu"]) / arb(2).sqrt(), 0, 0
    for a, b in sorted(zip(p, q, strict=True), key=lambda one: Fraction(*one) if one[1] else Fraction(0), reverse=True):
        power, size = power + a, size + b
        most = arb(1) if size == whole else (ball(Fraction(2 * size, whole)).erfcinv() - mu).erfc() / 2
        if size and not ball(Fraction(power, whole)) <= most:
            return False
    return True


MEASURES = {"(order, epsilon)-RDP": renyi, "rho-zCDP": concentrated, "mu-GDP": gaussian}


def satisfies(measure: str, asked: Amounts, p: Law, q: Law, whole: int) -> bool:
    """Whether two laws satisfy a measure, both ways; other laws do not, if one has a value that the other has not."""
    same = all((a > 0) == (b > 0) for a, b in zip(p, q, strict=True))
    with ctx.workprec(2 * BITS):
        judged = MEASURES[measure]
        return p == q or (same and judged(p, q, whole, asked) and judged(q, p, whole, asked))


def support(
    measure: str, asked: Amounts, level: Item, multiplier: Item, at: Item, values: int
) -> tuple[Fraction, list[Fraction], list[Fraction]]:
    """A bound, up, and factors u, down, and v, up, for which sum u p - v q is at most the bound.

    Times a multiplier >= 0. For each value there is a t >= 0: of mu-GDP the level is an epsilon, and t says how much
    of a value is counted, at most 1; of Rényi divergences it is the order where all are asked for, and t the ratio at
    which the generator has its tangent.
    """
    picked, z = Fraction(level.double()), Fraction(multiplier.double())
    points, order = [Fraction(t.double()) for t in at.items(values)], asked.get("order", picked)
    if min(z, *points) < 0 or abs(picked) > LARGEST_LOG or (order < 1 and "mu" not in asked):
        raise level.wrong("is no order or epsilon, or has a multiplier or a ratio below 0")
    if measure == "mu-GDP":
        counted = [z * min(t, Fraction(1)) for t in points]
        return z * gaussian_delta_up(picked, asked["mu"] ** 2), counted, [t * exp_up(picked) for t in counted]
    with ctx.workprec(2 * BITS):
        s, limit = ball(order - 1), ball(asked["epsilon"] if "order" in asked else asked["rho"] * order)
        logs = [ball(max(t, SMALLEST)).log() for t in points]
        most = (s * limit).expm1() / (s * ball(order)) if order > 1 else limit
        ups = [(s * log).expm1() / s if order > 1 else log for log in logs]
        downs = [(ball(order) * log).expm1() / ball(order) for log in logs]
        return z * end(most.upper()), [z * end(up.lower()) for up in ups], [z * end(down.upper()) for down in downs]
