"""What measures allow at most: the converse of what noise proves, for bounds on every mechanism that meets a line."""

from __future__ import annotations

from fractions import Fraction

from flint import arb, ctx

from privspec.kernel.core.numbers import ball, end, exp_up
from privspec.kernel.core.problem import Measure
from privspec.kernel.core.reading import Item

NONE = Fraction(0)


def largest_mu_squared(measure: Measure, pure: bool, stated: Item) -> Fraction:
    """At least the mu^2 of every Gaussian release (every unbiased mechanism, if `pure`) that satisfies a measure.

    Hammersley, Chapman and Robbins for pure epsilon: mu^2 = e^eps + e^-eps - 2. For (epsilon, delta) the mu that is
    stated is shown to be too large.
    """
    amounts, name = measure.figures({}), measure.name.replace("LDP", "DP")
    epsilon, order = amounts.get("epsilon", NONE), amounts.get("order", Fraction(1))
    squares = {"mu-GDP": amounts.get("mu", 0) ** 2, "rho-zCDP": 2 * amounts.get("rho", 0)}
    squares |= {"(order, epsilon)-RDP": 2 * epsilon / order}
    if name == "(epsilon, delta)-DP" and not pure:
        mu = stated.exact(0)
        if mu == 0 or not exceeds(epsilon, mu, amounts["delta"]):
            raise stated.wrong("is not shown to be more than the measure allows")
        return mu * mu
    stated.same(None)
    if pure and name in ("epsilon-DP", "(epsilon, delta)-DP"):
        return exp_up(epsilon) + exp_up(-epsilon) - 2
    if pure or name not in squares:
        raise stated.wrong("goes with a measure for which no bound is known")
    return Fraction(squares[name])


def variance_up(size: Fraction, probability: Fraction) -> Fraction:
    """At least the variance of all normal noise that does not pass a size, with a probability."""
    with ctx.workprec(256):
        return end(((ball(size) / ball(probability).erfinv()) ** 2 / 2).upper())


def variance_of_size_up(size: Fraction) -> Fraction:
    """At least the variance of all normal noise of which the size is no larger on average."""
    with ctx.workprec(256):
        return end((ball(size) ** 2 * arb.pi() / 2).upper())


def exceeds(epsilon: Fraction, mu: Fraction, delta: Fraction) -> bool:
    """Whether Gaussian noise at distance mu surely has delta(epsilon) > delta; then so has every larger mu."""
    with ctx.workprec(512):
        eps, size, root = ball(epsilon), ball(mu), arb(2).sqrt()
        value = ((eps / size - size / 2) / root).erfc() - eps.exp() * ((eps / size + size / 2) / root).erfc()
        return bool(value / 2 > ball(delta))
