"""Privacy against loss around the chosen point, and the classic calibration beside the exact one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privspec.core.matrices import DyadicMatrix
from privspec.explain.claims import Claim
from privspec.explain.noise import executed, strategy_variances
from privspec.explain.quantities import LOSS_DIGITS, Quantity, Rounding, exact, rounded, ungrouped

FACTORS = tuple(Fraction(n, d) for n, d in ((1, 8), (1, 4), (1, 2), (3, 4), (1, 1), (3, 2), (2, 1), (4, 1), (8, 1)))


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """The loss that the same plan, rescaled, would have at another privacy parameter."""

    parameter: Quantity
    loss: Quantity
    chosen: bool


@dataclass(frozen=True, slots=True)
class Frontier:
    """The exact scaling of a plan: `axis` names the parameter, `law` says how the loss depends on it."""

    axis: str
    law: str
    points: tuple[FrontierPoint, ...]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The classic Gaussian calibration beside the exact one, for one (epsilon, delta) claim.

    `classic` and `needed` are noise deviations for each unit of sensitivity, `ratio` that of their variances
    (classic over needed); `delta` is what the classic noise really gives at that epsilon.
    """

    epsilon: Quantity
    delta: Quantity
    classic: Quantity
    needed: Quantity
    ratio: Quantity
    true_delta: Quantity
    proved: bool
    enough: bool


def calibration(claim: Claim) -> Calibration | None:
    """The comparison for a claim with delta > 0 that Gaussian noise meets; None for all others.

    Source: Ramon & Basu 2020, section 3.2, for the classic formula; Balle & Wang 2018 for the exact one.
    """
    epsilon, delta = claim.epsilon, claim.delta
    if not epsilon or not delta or claim.achieved_parameter is None or claim.achieved_parameter[0] != "μ":
        return None
    from privspec.core.gaussian import delta_bounds, mu_down

    exact_mu = mu_down(epsilon, delta)
    classic_mu = float(epsilon) / math.sqrt(2 * math.log(1.25 / float(delta)))
    _, true_delta = delta_bounds(epsilon, Fraction(classic_mu))
    return Calibration(
        exact(epsilon),
        exact(delta),
        rounded(1 / classic_mu, 4),
        rounded(1 / exact_mu, 4, Rounding.UP),
        rounded((float(exact_mu) / classic_mu) ** 2, 3),
        rounded(true_delta, 3, Rounding.UP),
        proved=epsilon < 1,
        enough=true_delta <= delta,
    )


def frontier(plan: Mapping[str, Any], claims: tuple[Claim, ...]) -> Frontier | None:
    """The loss at other privacy parameters by exact scaling of this plan; None where no scaling law is known.

    Gaussian noise: the loss goes as 1/mu^2 when every mu is scaled together. Laplace and K-norm noise: as the
    variance at scales divided by the factor, 1/epsilon^2 away from the lattice.
    """
    loss = (plan.get("loss") or {}).get("value")
    shape = str((executed(plan).get("noise") or {}).get("shape"))
    law = _LAWS.get(shape)
    if loss is None or law is None or not claims:
        return None
    if len(claims) > 1:
        return _jointly(float(loss)) if shape == "gaussian" else None
    return law(float(loss), claims[0], plan)


def _points(loss: float, values: list[tuple[Fraction, float]], chosen: Fraction) -> tuple[FrontierPoint, ...]:
    return tuple(
        FrontierPoint(rounded(value, 4), rounded(loss * scale, LOSS_DIGITS), value == chosen) for value, scale in values
    )


def _jointly(loss: float) -> Frontier:
    values = [(f, 1 / float(f) ** 2) for f in FACTORS]
    return Frontier(
        "factor on every guarantee at once (1 = this plan)",
        "the loss goes with one over the square of the factor",
        _points(loss, values, Fraction(1)),
    )


def _gaussian(loss: float, claim: Claim, _: Mapping[str, Any]) -> Frontier | None:
    if claim.epsilon and claim.delta:
        from privspec.core.gaussian import mu_down

        chosen = claim.epsilon
        base = float(mu_down(chosen, claim.delta))
        values = [(chosen * f, (base / float(mu_down(chosen * f, claim.delta))) ** 2) for f in FACTORS]
        axis = f"ε, at δ = {exact(claim.delta)}"
        return Frontier(axis, "the loss goes with one over μ(ε, δ) squared", _points(loss, values, chosen))
    if not claim.parameters:
        return None
    name, amount = claim.parameters[-1]
    chosen = Fraction(ungrouped(amount.text))
    power = _POWERS.get(name)
    if power is None:
        return None
    values = [(chosen * f, float(f) ** -power) for f in FACTORS]
    return Frontier(name, f"the loss goes with one over {name}{_SQUARES[power]}", _points(loss, values, chosen))


_POWERS = {"mu": 2, "rho": 1, "epsilon": 1}
_SQUARES = {1: "", 2: " squared"}


def _pure(loss: float, claim: Claim, plan: Mapping[str, Any]) -> Frontier | None:
    if claim.achieved_parameter is None or claim.achieved_parameter[0] != "ε" or claim.epsilon is None:
        return None
    base = _total_variance(plan, 1.0)
    values = [(claim.epsilon * f, _total_variance(plan, float(f)) / base) for f in FACTORS]
    law = "the loss goes with one over ε squared while the noise is wide on its lattice"
    return Frontier("ε", law, _points(loss, values, claim.epsilon))


def _total_variance(plan: Mapping[str, Any], shrink: float) -> float:
    """The variance of all outputs together with every scale of the noise divided by `shrink`."""
    run = executed(plan)
    matrix = DyadicMatrix.from_json(run["reconstruction"]["matrix"]).to_float()
    variances = strategy_variances(run, matrix.shape[1], shrink)
    if variances is None:
        raise ValueError("no variance is known for this noise")
    return float(((matrix**2) @ variances).sum())


_LAWS: Mapping[str, Callable[[float, Claim, Mapping[str, Any]], Frontier | None]] = {
    "gaussian": _gaussian,
    "laplace": _pure,
    "knorm-l2": _pure,
}
