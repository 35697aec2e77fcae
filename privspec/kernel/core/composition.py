"""What independent parts prove together of one difference that moves all of them at once (noise/notes/composition.md).

Gaussian parts are one, of the sum of their squared mu. A part of pure epsilon is dominated by binary randomised
response of that epsilon, one of (epsilon, delta) by the same that fails with probability delta: such laws
reach these bounds.
"""

from __future__ import annotations

from fractions import Fraction

from flint import ctx

from privspec.kernel.core.numbers import ball, end, gaussian_delta_up
from privspec.kernel.core.reading import Refused

PURE_PARTS = 12
"""Parts that are not Gaussian of which one line may be composed: 2^12 patterns of their answers."""
SHARES = ("epsilon-DP", "(epsilon, delta)-DP", "mu-GDP")
"""Measures in which parts spend."""
Spent = tuple[str, dict[str, Fraction]]


def composed_proves(measure: str, asked: dict[str, Fraction], shares: list[Spent]) -> bool:
    """Whether parts that each satisfy their own measure satisfy another one together.

    Raises: Refused for a share in a measure that does not compose here, and for too many of them.
    """
    if any(name not in SHARES for name, _ in shares):
        raise Refused("a share of a line is in a measure that does not compose")
    gaussian = sum((amounts["mu"] ** 2 for name, amounts in shares if name == "mu-GDP"), Fraction(0))
    pure = [amounts["epsilon"] for name, amounts in shares if name != "mu-GDP"]
    delta = sum((amounts.get("delta", Fraction(0)) for _, amounts in shares), Fraction(0))
    if len(pure) > PURE_PARTS:
        raise Refused(f"more than {PURE_PARTS} parts share a line")
    if measure == "epsilon-DP":
        return not gaussian and not delta and sum(pure) <= asked["epsilon"]
    if measure == "(epsilon, delta)-DP":
        return delta + delta_up(asked["epsilon"], gaussian, pure) <= asked["delta"]
    if measure == "rho-zCDP":
        return not delta and (gaussian + sum(q * q for q in pure)) / 2 <= asked["rho"]
    if measure == "mu-GDP":
        return not delta and gaussian + sum(pure_mu_up(q) ** 2 for q in pure) <= asked["mu"] ** 2
    raise Refused("a line in this measure is not shared by parts")


def delta_up(epsilon: Fraction, mu_squared: Fraction, pure: list[Fraction]) -> Fraction:
    """At least delta(epsilon) of Gaussian noise and of randomised responses of some epsilons, on one difference.

    The sum over the answers of the responses of P(answers) delta_G(epsilon - log ratio; mu) (PROBLEM.md, composition).
    """
    found = Fraction(0)
    with ctx.workprec(256):
        answers = [(Fraction(0), ball(Fraction(1)))]
        for q in pure:
            answers = [(log + one, chance / (1 + ball(-one).exp())) for log, chance in answers for one in (q, -q)]
        for log, chance in answers:
            found += end(chance.upper()) * gaussian_delta_up(epsilon - log, mu_squared)
    return found


def pure_mu_up(epsilon: Fraction) -> Fraction:
    """At least the mu of which a law of pure epsilon satisfies mu-GDP: Phi(-mu / 2) = 1 / (1 + e^epsilon).

    The trade-off curve of randomised response is the chords of the Gaussian one through (0, 1), that point and (1, 0).
    """
    low, high = Fraction(0), 2 * epsilon + 2
    with ctx.workprec(256):
        least = 1 / (1 + ball(epsilon).exp())
        for _ in range(64):
            middle = (low + high) / 2
            hides = (ball(middle) / ball(Fraction(8)).sqrt()).erfc() / 2 <= least
            low, high = (low, middle) if hides else (middle, high)
        if not (ball(high) / ball(Fraction(8)).sqrt()).erfc() / 2 <= least:
            raise Refused("an epsilon out of proportion")
    return high
