"""What is known of a loss: its exact value, a number that it is not below, or an average over drawn profiles."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import hypot


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and how it is known.

    `at_least`: the value is a lower bound only. `standard_error` is 0 unless profiles were drawn; `profiles`: how many
    were looked at, 0 where a formula gives the value.
    """

    value: Fraction
    at_least: bool = False
    standard_error: float = 0.0
    profiles: int = 0

    @property
    def exact(self) -> bool:
        """Whether the value is the number itself."""
        return not self.at_least and not self.standard_error

    def scaled(self, weight: Fraction) -> Estimate:
        """Times a number of at least 0, or any number where the value is exact."""
        return Estimate(self.value * weight, self.at_least, self.standard_error * abs(float(weight)), self.profiles)

    def __add__(self, other: Estimate) -> Estimate:
        """The sum; errors of averages add up as if they were independent."""
        return Estimate(
            self.value + other.value,
            self.at_least or other.at_least,
            hypot(self.standard_error, other.standard_error),
            max(self.profiles, other.profiles),
        )
