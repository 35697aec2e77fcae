"""Weak duality for tables: reduced costs of the entries, prices of further unknowns, and their least value.

For multipliers z >= 0 of f_a <= R f_b (R rounded up) and of linear rows, the sum over rows of the least reduced cost
bounds the loss of every table that meets the spec from below, whatever the multipliers are. Multipliers are read as
whole numbers over 2^GRID; every rounding lowers the bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, isfinite
from typing import Any

from privspec.certify.finite.averages import Costs
from privspec.certify.finite.ratios import BITS, Entries
from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import Malformed

GRID = 160
"""Binary places of multipliers and reduced costs."""


def on_grid(value: float) -> int:
    """floor(value 2^GRID)."""
    top, bottom = value.as_integer_ratio()
    return (top << GRID) // bottom


def multiplier(value: Any, place: str) -> int:
    """A multiplier >= 0 of a plan.

    Raises: Malformed.
    """
    if type(value) not in (int, float) or not isfinite(value) or not 0 <= value < 1e300:
        raise Malformed(f"{place} has a multiplier that is no number from 0 on")
    return on_grid(float(value))


def ceil_product(amount: int, ratio: int) -> int:
    """Ceil(amount ratio / 2^BITS)."""
    return -(-amount * ratio >> BITS)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A further unknown of the program: its range and its price in the loss; None for no end."""

    low: Fraction | None
    high: Fraction | None
    price: Fraction = Fraction(0)


@dataclass(frozen=True, eq=False, slots=True)
class LinearRow:
    """sum table[row][column] f + sum scalars[name] w <= bound, or = bound."""

    table: Mapping[int, Entries]
    scalars: Mapping[str, Fraction]
    bound: Fraction
    equality: bool


@dataclass(eq=False)
class Lagrangian:
    """What multipliers add up to; `reduced[row][column]` whole numbers over 2^GRID, at first zero."""

    shape: tuple[int, int]
    constant: Fraction
    scalars: Mapping[str, Scalar]
    reduced: list[list[int]] = field(init=False)
    prices: dict[str, Fraction] = field(init=False)

    def __post_init__(self) -> None:
        """Prices begin as those of the loss."""
        self.reduced = [[0] * self.shape[1] for _ in range(self.shape[0])]
        self.prices = {name: scalar.price for name, scalar in self.scalars.items()}

    def add_costs(self, costs: Costs, factors: Sequence[Fraction]) -> None:
        """The costs of a loss, each row times its factor, rounded down."""
        for row, numerators, factor in zip(self.reduced, costs.numerators, factors, strict=True):
            top, bottom = factor.numerator << GRID, factor.denominator * costs.scale
            row[:] = [old + value * top // bottom for old, value in zip(row, numerators.tolist(), strict=True)]

    def spend(self, amount: Fraction) -> None:
        """Lower the constant part."""
        self.constant -= amount

    def add_row(self, row: LinearRow, value: Fraction, place: str) -> None:
        """An equality is subtracted times its multiplier, an inequality added times one that is not negative.

        Raises: Malformed.
        """
        if not row.equality and value < 0:
            raise Malformed(f"{place} has a negative multiplier of an inequality")
        factor = -value if row.equality else value
        for x, coefficients in row.table.items():
            added = [floor(v * factor * (1 << GRID)) for v in coefficients]
            self.reduced[x] = [old + more for old, more in zip(self.reduced[x], added, strict=True)]
        for name, coefficient in row.scalars.items():
            self.prices[name] += factor * coefficient
        self.constant -= factor * row.bound

    def value(self, without: frozenset[str] = frozenset()) -> Fraction:
        """The least over all tables with rows that sum to one, and all scalars (but those left out) in their ranges.

        Raises: NotUnderstood if a scalar without an end would lower it without limit.
        """
        total = self.constant + Fraction(sum(min(row) for row in self.reduced), 1 << GRID)
        for name, price in self.prices.items():
            if name in without:
                continue
            end = self.scalars[name].low if price >= 0 else self.scalars[name].high
            if price and end is None:
                raise NotUnderstood(f"a price for {name}, which has no end")
            total += price * (end or 0)
        return total
