"""The dual of a linear program over laws: what multipliers prove of every table of chances.

Unknown are laws x_i over columns, chances from 0 on that add up to one. Let every table in question keep to x_a(S) <=
ratio x_b(S) + slack for some sets S of columns. For multipliers z >= 0 of these, the sum over rows of the least cost of
a column, where z is added to the costs of a in S and ratio z taken from those of b, less z times the slack, is no more
than what any such table costs: whatever the multipliers are, a wrong one only makes the bound worse. They are read as
whole numbers over 2^GRID; ratios are rounded up and all else down, which lowers the bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from privspec.kernel.core.numbers import BITS, ZERO

GRID = 160
ONE = 1 << GRID
Mixture = dict[int, Fraction]
"""Shares of rows."""


class Dual:
    """Reduced costs (rows, columns) in whole numbers over 2^GRID, prices of numbers that are chosen, and a constant."""

    def __init__(self, rows: int, columns: int) -> None:
        self.reduced = [[0] * columns for _ in range(rows)]
        self.prices, self.constant = dict[str, Fraction](), ZERO

    def costs(self, row: int, numbers: Iterable[int], unit: Fraction) -> None:
        """Costs of a row, rounded down."""
        top, bottom = unit.numerator << GRID, unit.denominator
        self.reduced[row] = [old + n * top // bottom for old, n in zip(self.reduced[row], numbers, strict=True)]

    def price(self, name: str, amount: Fraction) -> None:
        self.prices[name] = self.prices.get(name, ZERO) + amount

    def compare(self, one: Mixture, other: Mixture, ratio: int, columns: Iterable[int], z: int) -> None:
        """A multiplier of "one mixture of laws is at most ratio / 2^BITS times another at each of these columns"."""
        for mixture, factor in ((one, z << BITS), (other, -z * ratio)):
            for row, share in mixture.items():
                change, own = factor * share.numerator // (share.denominator << BITS), self.reduced[row]
                for column in columns:
                    own[column] += change

    def join(self, other: Dual) -> None:
        """Add another set of multipliers: both together are one of a program of twice the costs."""
        self.constant += other.constant
        pairs = zip(self.reduced, other.reduced, strict=True)
        self.reduced = [[a + b for a, b in zip(*rows, strict=True)] for rows in pairs]
        for name, price in other.prices.items():
            self.price(name, price)

    def value(self) -> Fraction:
        """The least over all tables, where no number is chosen."""
        return self.constant + Fraction(sum(map(min, self.reduced)), ONE)


def multiplier(value: float) -> int:
    """A number from 0 on as whole parts of 2^-GRID, rounded down."""
    top, bottom = value.as_integer_ratio()
    return (top << GRID) // bottom
