"""Numbers as they are printed: a value, its text, and the direction in which the text was rounded.

Every number in an explanation is a `Quantity` that was computed from the plan. The direction is chosen by
the sentence: "at least" takes a number rounded down, "at most" one rounded up, so that it stays true.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

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


_MODES = {
    Rounding.UP: decimal.ROUND_CEILING,
    Rounding.DOWN: decimal.ROUND_FLOOR,
    Rounding.NEAREST: decimal.ROUND_HALF_EVEN,
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number and the text that stands for it; `rounding` says which side of the value the text lies on."""

    value: float
    text: str
    rounding: Rounding = Rounding.NEAREST

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, object]:
        """The value as a double where it is finite, its text and the direction of rounding."""
        value = self.value if math.isfinite(self.value) else None
        return {"value": value, "text": self.text, "rounding": self.rounding.value}


def parse_exact(text: object) -> Fraction:
    """The number that a plan writes as a JSON number, a decimal string or a fraction string.

    Raises: ValueError if it is none of these or not finite.
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float | Fraction):
        raise ValueError(f"not a number: {text!r}")
    if isinstance(text, float):
        if not math.isfinite(text):
            raise ValueError(f"not finite: {text!r}")
        # A double in a plan is the number its shortest decimal says, as in the spec it came from.
        return Fraction(repr(text))
    try:
        if isinstance(text, str) and text.startswith("2^"):
            return Fraction(2) ** int(text[2:])
        return Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        raise ValueError(f"not a number: {text!r}") from error


def rounded(value: Real, digits: int = 3, rounding: Rounding = Rounding.NEAREST) -> Quantity:
    """The value to so many significant digits, in the given direction (`EXACT`: see `exact`)."""
    if rounding is Rounding.EXACT:
        return exact(Fraction(value))
    if isinstance(value, float) and not math.isfinite(value):
        return Quantity(value, "unlimited" if value > 0 else "undefined", Rounding.EXACT)
    number = _to_decimal(value, rounding)
    context = decimal.Context(prec=digits, rounding=_MODES[rounding])
    return Quantity(float(value), _plain(context.plus(number)), rounding)


def exact(value: Fraction | str | int | float) -> Quantity:
    """The value written out in full where that is short, else the nearest number of 6 digits."""
    number = parse_exact(value)
    shortened = rounded(number, 6)
    if Fraction(ungrouped(shortened.text)) == number:
        return Quantity(float(number), shortened.text, Rounding.EXACT)
    if number.denominator < 1000:
        return Quantity(float(number), f"{number.numerator:,}/{number.denominator}", Rounding.EXACT)
    return shortened


def share_up(value: float, digits: int = 3) -> Quantity:
    """A share that was computed in doubles, rounded up, and never more than 1."""
    return rounded(min(1.0, value * (1 + 1e-12)), digits, Rounding.UP)


def count(value: int) -> Quantity:
    """A whole number, exactly."""
    return Quantity(float(value), f"{value:,}", Rounding.EXACT)


def ungrouped(text: str) -> str:
    """The text of a number without the commas between its groups of three digits."""
    return text.replace(",", "")


def percent(share: Real, digits: int = 2, rounding: Rounding = Rounding.NEAREST) -> Quantity:
    """A share as a percentage, the sign kept."""
    inner = rounded(Fraction(share) * 100, digits, rounding)
    return Quantity(float(share), f"{inner.text} %", rounding)


def _to_decimal(value: Real, rounding: Rounding) -> Decimal:
    context = decimal.Context(prec=_WORKING_DIGITS, rounding=_MODES[rounding])
    if isinstance(value, Fraction):
        return context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return Decimal(value)


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
