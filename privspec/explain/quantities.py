"""Numbers as they are printed: a value, its text, and the direction in which the text was rounded.

Every number in an explanation is a `Quantity` that was computed from the plan. The direction is chosen by
the sentence: "at least" takes a number rounded down, "at most" one rounded up, so that it stays true.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

from privspec.core.records import dataclass
from privspec.core.rounding import in_digits
from privspec.kernel.worth import OPTIMAL_GAP
from privspec.stated import parse_exact

Real: TypeAlias = Fraction | float | int

LOSS_DIGITS = 6
"""Significant digits of every loss: the same loss reads the same in all texts, tables and plots."""

_WORKING_DIGITS = 60
_PLAIN_FROM, _PLAIN_TO = Decimal("1e-4"), Decimal("1e12")


class Rounding(Enum):
    """How a text relates to the value behind it."""

    EXACT = "exact"
    UP = "rounded up"
    DOWN = "rounded down"
    NEAREST = "rounded to the nearest"


EXACT, UP, DOWN, NEAREST = Rounding
_MODES = {UP: decimal.ROUND_CEILING, DOWN: decimal.ROUND_FLOOR, NEAREST: decimal.ROUND_HALF_EVEN}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number and the text that stands for it; `rounding` says which side of the value the text lies on."""

    value: float
    text: str
    rounding: Rounding = NEAREST

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, object]:
        value = self.value if math.isfinite(self.value) else None
        return {"value": value, "text": self.text, "rounding": self.rounding.value}


def rounded(value: Real, digits: int = 3, rounding: Rounding = NEAREST) -> Quantity:
    """The value to so many significant digits, in the given direction."""
    if isinstance(value, float) and not math.isfinite(value):
        return Quantity(value, "unlimited" if value > 0 else "undefined", EXACT)
    number = in_digits(value, _WORKING_DIGITS, _MODES[rounding]) if isinstance(value, Fraction) else Decimal(value)
    return Quantity(
        float(value), _plain(decimal.Context(prec=digits, rounding=_MODES[rounding]).plus(number)), rounding
    )


def known(value: Real | None, digits: int = 3, rounding: Rounding = NEAREST) -> Quantity | None:
    """The same of a value that may not be known."""
    return None if value is None else rounded(value, digits, rounding)


def simulated(error: float, draws: int) -> Quantity:
    """A root mean square to as many digits as so many draws of normal noise leave: it is off by 1 / sqrt(2 draws)."""
    return rounded(error, max(1, int(math.log10(math.sqrt(2 * draws))) + 1))


def told(value: float, error: float | None) -> Quantity:
    """A loss to as many digits as a standard error leaves: down to the place where that begins."""
    if not error or not value:
        return rounded(value, LOSS_DIGITS)
    places = math.floor(math.log10(abs(value))) - math.floor(math.log10(error))
    return rounded(value, min(max(places + 1, 1), LOSS_DIGITS))


def exact(value: Fraction | str | int | float) -> Quantity:
    """The value written out in full where that is short, else the nearest number of 6 digits."""
    number = parse_exact(value)
    shortened = rounded(number, 6)
    if Fraction(ungrouped(shortened.text)) == number:
        return Quantity(float(number), shortened.text, EXACT)
    if number.denominator < 1000:
        return Quantity(float(number), f"{number.numerator:,}/{number.denominator}", EXACT)
    return shortened


def share_up(value: float, digits: int = 3) -> Quantity:
    """A share that was computed in doubles, rounded up, and never more than 1."""
    return rounded(min(1.0, value * (1 + 1e-12)), digits, UP)


def count(value: int) -> Quantity:
    """A whole number, exactly."""
    return Quantity(float(value), f"{value:,}", EXACT)


def ungrouped(text: str) -> str:
    """The text of a number without the commas between its groups of three digits."""
    return text.replace(",", "")


def unit_words(unit: str, figure: str) -> str:
    """A unit behind a figure, with the space before it: " hours", of 1 " hour"; empty where there is none."""
    one = {"people": "person"}.get(unit, unit.removesuffix("s") if unit.isalpha() and not unit.endswith("ss") else unit)
    return f" {one if figure == '1' else unit}" if unit else ""


def percent(share: Real, digits: int = 2, rounding: Rounding = NEAREST) -> Quantity:
    """A share as a percentage, the sign kept."""
    return Quantity(float(share), f"{rounded(Fraction(share) * 100, digits, rounding)} %", rounding)


def gap_words(relative: float | None) -> Quantity | None:
    """A relative gap, rounded up; never below the one at which plans are optimal, as less hangs on the processor."""
    if relative is None:
        return None
    gap = max(OPTIMAL_GAP, Fraction(relative))
    return percent(gap, 2, UP) if gap >= Fraction(1, 1000) else rounded(gap, 1, UP)


def _plain(number: Decimal) -> str:
    if number == 0:
        return "0"
    if _PLAIN_FROM <= abs(number) < _PLAIN_TO:
        text = format(number, ",f")  # from 1,000 on in groups of three
        return text.rstrip("0").rstrip(".") if "." in text else text
    exponent = number.adjusted()
    mantissa = format(number.scaleb(-exponent), "f")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}e{exponent}"
