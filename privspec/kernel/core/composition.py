"""What laws of some epsilon or mu prove, alone and as independent parts that one difference moves all at once.

Gaussian parts are one, of the sum of their squared mu. A part of pure epsilon is dominated by binary randomised
response of that epsilon, one of (epsilon, delta) by the same that fails with probability delta: such laws
reach these bounds (noise/notes/composition.md).
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb, ctx

from privspec.kernel.core.numbers import NONE, ball, end, gaussian_delta_up
from privspec.kernel.core.reading import Refused

PURE_PARTS = 12
"""Parts that are not Gaussian of which one line may be composed: 2^12 patterns of their answers."""
APPROXIMATE = ("epsilon-DP", "(epsilon, delta)-DP", "epsilon-LDP", "(epsilon, delta)-LDP")
"""Measures of epsilon, with a delta that is 0 where it is not named."""


def proves(measure: str, asked: dict[str, Fraction], *parts: dict[str, Fraction]) -> bool:
    """Whether independent laws, each of an epsilon (but for a delta) or Gaussian noise of a mu, satisfy a measure.

    rho = epsilon^2 / 2 (Bun & Steinke 2016, proposition 1.4); Rényi: min(epsilon, order epsilon^2 / 2). Laws of a rho
    add up to another one (lemma 1.7 there), and to nothing else here.
    """
    mu_squared = sum((part["mu"] ** 2 for part in parts if "mu" in part), NONE)
    pure = [part["epsilon"] for part in parts if "epsilon" in part]
    delta = sum((part.get("delta", NONE) for part in parts), NONE)
    rho = sum((part["rho"] for part in parts if "rho" in part), NONE)
    if len(pure) > PURE_PARTS:
        raise Refused(f"more than {PURE_PARTS} parts share a line")
    if rho and measure != "rho-zCDP":
        return False
    if measure in APPROXIMATE:
        within = not mu_squared and sum(pure) <= asked["epsilon"]
        over = NONE if within else delta_up(asked["epsilon"], mu_squared, pure)
        return delta + over <= asked.get("delta", 0)
    if measure == "rho-zCDP":
        return not delta and rho + (mu_squared + sum(q * q for q in pure)) / 2 <= asked["rho"]
    if measure == "mu-GDP":
        return not delta and mu_squared + sum(pure_mu_up(q) ** 2 for q in pure) <= asked["mu"] ** 2
    order, renyi = asked.get("order", NONE), sum(min(q, asked.get("order", NONE) * q * q / 2) for q in pure)
    return measure == "(order, epsilon)-RDP" and not delta and order * mu_squared / 2 + renyi <= asked["epsilon"]


def delta_up(epsilon: Fraction, mu_squared: Fraction, pure: list[Fraction]) -> Fraction:
    """At least delta(epsilon) of Gaussian noise and of randomised responses of some epsilons, on one difference.

    The sum over the answers of the responses of P(answers) delta_G(epsilon - log ratio; mu) (PROBLEM.md, composition).
    """
    with ctx.workprec(256):
        answers = [(Fraction(0), ball(Fraction(1)))]
        for q in pure:
            answers = [(log + one, chance / (1 + ball(-one).exp())) for log, chance in answers for one in (q, -q)]
        parts = (end(chance.upper()) * gaussian_delta_up(epsilon - log, mu_squared) for log, chance in answers)
        return sum(parts, Fraction(0))


def pure_mu_up(epsilon: Fraction) -> Fraction:
    """At least the mu of which a law of pure epsilon satisfies mu-GDP: Phi(-mu / 2) = 1 / (1 + e^epsilon).

    The trade-off curve of randomised response is the chords of the Gaussian one through (0, 1), that point and (1, 0).
    """
    with ctx.workprec(256):
        return end((arb(8).sqrt() * (2 / (1 + ball(epsilon).exp())).erfcinv()).upper())
