"""What a trade-off curve means for an observer: odds, the largest advantage, the least misses."""

from __future__ import annotations

from fractions import Fraction

from privspec.explain.curves import Curve, odds
from privspec.explain.fact_types import Consequences, OddsFact
from privspec.explain.quantities import Rounding, count, percent, rounded, share_up

FALSE_ALARMS = (Fraction(1, 100), Fraction(5, 100), Fraction(10, 100))


def odds_fact(curve: Curve) -> OddsFact:
    """The odds of a curve."""
    found = odds(curve)
    return OddsFact(
        count(found.without),
        count(found.taking_part),
        count(found.of),
        count(found.of // 2),
        rounded(100 * (curve.equal_error() - 1e-12), 4, Rounding.DOWN),
        found,
    )


def consequences(curve: Curve) -> Consequences:
    """All that follows from a curve, rounded so that "at least" and "at most" stay true."""
    misses = tuple(
        (percent(a), percent(max(0.0, curve.misses(float(a)) - 1e-12), 3, Rounding.DOWN)) for a in FALSE_ALARMS
    )
    return Consequences(curve.words, curve.exact, odds_fact(curve), share_up(curve.advantage()), misses)
