"""Laws whose exact probabilities are too long to write down, enclosed by ball arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from privspec.model.lotteries import Exponential, Law, Lottery, PermuteAndFlip

LONGEST = 1 << 16
"""Binary digits of the largest power that is computed exactly."""
_PRECISION = 256


def near_law(lottery: Lottery, scores: Sequence[Fraction]) -> tuple[Law, Fraction]:
    """The law of the winner and how far it may be from it, in l1: 0 where powers are short, else below 2^-200."""
    if not isinstance(lottery, Exponential | PermuteAndFlip):
        return lottery.law(scores), Fraction(0)
    gaps = [max(scores) - score for score in scores]
    if max(gaps) * lottery.base.numerator.bit_length() <= LONGEST:
        return lottery.law(scores), Fraction(0)
    from flint import arb, ctx, fmpq

    with ctx.workprec(_PRECISION):
        base = arb(fmpq(lottery.base.numerator, lottery.base.denominator))
        chances = [base ** (-arb(fmpq(gap.numerator, gap.denominator))) for gap in gaps]
        balls = _in_proportion(chances) if isinstance(lottery, Exponential) else _flips(chances)
        centres = tuple(_fraction(ball.mid()) for ball in balls)
        return centres, sum((_fraction(ball.rad()) for ball in balls), Fraction(0))


def _in_proportion(chances: list[Any]) -> list[Any]:
    total = sum(chances[1:], chances[0])
    return [chance / total for chance in chances]


def _flips(chances: list[Any]) -> list[Any]:
    """As `PermuteAndFlip.law`: the integral over t in [0, 1] of prod over the others of (1 - t y)."""
    one = chances[0] / chances[0]
    found = []
    for a, chance in enumerate(chances):
        polynomial = [one]
        for other in (*chances[:a], *chances[a + 1 :]):
            raised = [0 * one, *(-other * c for c in polynomial)]
            polynomial = [c + r for c, r in zip([*polynomial, 0 * one], raised, strict=True)]
        found.append(chance * sum((c / (k + 1) for k, c in enumerate(polynomial)), 0 * one))
    return found


def _fraction(ball: Any) -> Fraction:
    """An exact ball as a fraction."""
    mantissa, exponent = (int(part) for part in ball.man_exp())
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)
