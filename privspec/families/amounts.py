"""Amounts of privacy that are picked: where a cost is least, and short decimals on the right side."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import exp, log, sqrt

from privspec.core.diagnostics import SolveError
from privspec.families.document import decimal_up
from privspec.model.graph import GraphNode, Model
from privspec.model.values import show

COARSE = 8
"""Decimal digits of an amount whose cost is added to that of errors: the sum is flat where it is least."""
WIDE, NARROW, FAR = log(4), 1e-5, 24
"""Steps of the logarithm of an amount: when its neighbourhood is looked for, and at the end; the most of them."""
DIGITS = 15
"""Decimal digits of an amount that is rounded down."""


def minimum(
    cost: Callable[[Fraction], float], low: Fraction, high: Fraction, start: Fraction, narrow: float = NARROW
) -> Fraction:
    """Where a cost is least between two ends, to some digits: golden sections of the logarithm of a bracket."""

    def short(log_value: float) -> Fraction:
        """An amount in few digits, between the ends."""
        return min(max(Fraction(decimal_up(Fraction(exp(log_value)), COARSE)), low), high)

    here = log(max(start, low))
    steps = {k: cost(short(here + k * WIDE)) for k in (-1, 0, 1)}
    best = min(steps, key=lambda k: steps[k])
    while abs(best) < FAR and (best - 1 not in steps or best + 1 not in steps):
        for k in (best - 1, best + 1):
            steps[k] = cost(short(here + k * WIDE))
        best = min(steps, key=lambda k: steps[k])
    left, right = here + (best - 1) * WIDE, here + (best + 1) * WIDE
    golden = (sqrt(5) - 1) / 2
    inner = [right - golden * (right - left), left + golden * (right - left)]
    values = [cost(short(at)) for at in inner]
    while right - left > narrow:
        if values[0] <= values[1]:
            right, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = right - golden * (right - left)
            values[0] = cost(short(inner[0]))
        else:
            left, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = left + golden * (right - left)
            values[1] = cost(short(inner[1]))
    tried = [short(at) for at in (*inner, left, right)]
    return min((*tried, short(here + best * WIDE)), key=cost)


def down(value: Fraction) -> Fraction:
    """Rounded down to a short decimal."""
    context = Context(prec=DIGITS, rounding=ROUND_FLOOR)
    return Fraction(str(context.divide(Decimal(value.numerator), Decimal(value.denominator))))


def beyond(model: Model, node: GraphNode, farthest: Fraction) -> SolveError:
    """PS0612: no amount up to the largest that is tried is known to do, and the range goes on."""
    said = f"no {node.name} up to {show(farthest)} is known to meet the accuracy lines, and larger ones protect nothing"
    return SolveError.at(model.source, node.span, "PS0612", said, help="allow larger errors")
