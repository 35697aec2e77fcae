"""What binds, and what a little more budget would buy: shadow prices from the dual point (notes/placement.md)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from privspec.compile.candidate import Mechanism
from privspec.compile.problem import Problem
from privspec.model.measures import Measure
from privspec.model.requirements import Requirement
from privspec.model.values import readable

STEP = Fraction(11, 10)
"""Prices are for a tenth more of an amount."""
PRICED = ("epsilon", "rho", "mu")
"""Amounts that prices are given for."""
SLACK_SHARE = 1e-6
"""Share of the dual mass below which a requirement does not bind."""


def binding_prices(problem: Problem, mechanism: Mechanism) -> list[dict[str, Any]]:
    """For each requirement that binds, the relative change of the loss for a tenth more budget.

    The optimal loss is homogeneous in the budgets: with p_o the dual mass of requirement o,
    d log loss / d log mu_o^2 = -p_o / sum p, so the price is exact when one requirement binds and of first
    order (in the logarithm) when several do.
    """
    if mechanism.dual is None or mechanism.dual.point.limit_weights is not None:
        return []  # with accuracy lines that bind, the loss is no longer homogeneous in the budgets
    masses: dict[int, float] = {}
    for view, weights in zip(problem.system.views, mechanism.dual.point.weights, strict=True):
        masses[view.index] = masses.get(view.index, 0.0) + float(weights.sum())
    total = sum(masses.values())
    found = []
    for index, requirement in enumerate(problem.model.requirements):
        share = masses.get(index, 0.0) / total if total > 0 else 0.0
        if share <= SLACK_SHARE:
            continue
        pure = mechanism.release.noise.amount == "epsilon"
        for amount in PRICED:
            change = _change(requirement, amount, share, pure)
            if change is not None:
                found.append(change)
    return found


def _change(requirement: Requirement, amount: str, share: float, pure: bool) -> dict[str, Any] | None:
    now = requirement.measure.amounts.get(amount)
    if now is None:
        return None
    more: Measure = replace(requirement.measure, **{amount: now * STEP})  # type: ignore[type-var]
    before = requirement.measure.pure_epsilon if pure else requirement.measure.gaussian_mu_down()
    after = more.pure_epsilon if pure else more.gaussian_mu_down()
    if before is None or after is None:
        return None
    ratio = float(before) / float(after)
    return {
        "line": requirement.line,
        "text": requirement.text,
        "change": f"{amount} {readable(now)} -> {readable(now * STEP)}",
        "loss_change": ratio ** (2 * share) - 1,
    }
