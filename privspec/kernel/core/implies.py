"""What a pure epsilon or a Gaussian sensitivity proves, measure by measure; of other measures nothing."""

from __future__ import annotations

from fractions import Fraction

from privspec.kernel.core.numbers import gaussian_delta_up

APPROXIMATE = ("epsilon-DP", "(epsilon, delta)-DP", "epsilon-LDP", "(epsilon, delta)-LDP")
"""Measures of epsilon, with a delta that is 0 where it is not named."""


def pure_proves(measure: str, asked: dict[str, Fraction], epsilon: Fraction) -> bool:
    """Whether every law of that pure epsilon satisfies a measure.

    rho = epsilon^2 / 2 (Bun & Steinke 2016, proposition 1.4); Rényi: min(epsilon, order epsilon^2 / 2).
    """
    if measure in APPROXIMATE:
        return epsilon <= asked["epsilon"]
    if measure == "rho-zCDP":
        return epsilon * epsilon / 2 <= asked["rho"]
    return measure == "(order, epsilon)-RDP" and min(epsilon, asked["order"] * epsilon**2 / 2) <= asked["epsilon"]


def gaussian_proves(measure: str, asked: dict[str, Fraction], mu_squared: Fraction) -> bool:
    """Whether Gaussian noise satisfies a measure, given the square of its sensitivity in its own deviations."""
    if measure in APPROXIMATE:
        return gaussian_delta_up(asked["epsilon"], mu_squared) <= asked.get("delta", 0)
    if measure == "rho-zCDP":
        return mu_squared / 2 <= asked["rho"]
    if measure == "mu-GDP":
        return mu_squared <= asked["mu"] ** 2
    return measure == "(order, epsilon)-RDP" and asked["order"] * mu_squared / 2 <= asked["epsilon"]
