"""What a Gaussian sensitivity or a pure epsilon proves, measure by measure; and the most that a measure can allow."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch

from privspec.certify.exact import at_most, float_up, hammersley_mu_up, largest_mu_up, privacy_curve, sqrt_up
from privspec.model.measures import GDP, LDP, RDP, ZCDP, EpsilonDelta, Measure, PureDP


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a limit is kept, how far inside (relative to it), and the sentence."""

    holds: bool
    text: str
    margin: float | None = None


def within(value: Fraction, limit: Fraction, what: str) -> Finding:
    """Value <= limit, exactly."""
    sign = "≤" if value <= limit else ">"
    margin = float((limit - value) / limit) if limit > 0 else None
    return Finding(value <= limit, f"{what} = {float(value):.6g} {sign} {float(limit):.6g}", margin)


@singledispatch
def gaussian_proves(measure: Measure, mu: Fraction) -> Finding:  # noqa: ARG001
    """Whether a Gaussian release of sensitivity mu (in noise units) satisfies a measure."""
    return Finding(False, f"{measure.describe()} is not shown by Gaussian noise")


@gaussian_proves.register
def _(measure: EpsilonDelta, mu: Fraction) -> Finding:
    return _curve(measure.epsilon, measure.delta, mu)


@gaussian_proves.register
def _(measure: LDP, mu: Fraction) -> Finding:
    return _curve(measure.epsilon, measure.delta, mu)


def _curve(epsilon: Fraction, delta: Fraction, mu: Fraction) -> Finding:
    if mu == 0:
        return Finding(True, "the outputs do not depend on the data")
    ball = privacy_curve(epsilon, mu)
    holds = at_most(ball, delta)
    sign = "≤" if holds else "is not proved ≤"
    enclosure = ball.str(9, more=False, radius=True)
    return Finding(holds, f"δ({float(epsilon):g}; μ) ∈ {enclosure} {sign} {float(delta):g}")


@gaussian_proves.register
def _(measure: ZCDP, mu: Fraction) -> Finding:
    return within(mu * mu / 2, measure.rho, "ρ")


@gaussian_proves.register
def _(measure: GDP, mu: Fraction) -> Finding:
    return within(mu, measure.mu, "μ")


@gaussian_proves.register
def _(measure: RDP, mu: Fraction) -> Finding:
    return within(measure.order * mu * mu / 2, measure.epsilon, "Rényi ε")


@singledispatch
def pure_proves(measure: Measure, epsilon: Fraction) -> Finding:  # noqa: ARG001
    """Whether epsilon-DP implies a measure."""
    return Finding(False, f"{measure.describe()} is not shown by pure epsilon")


@pure_proves.register(PureDP)
@pure_proves.register(EpsilonDelta)
@pure_proves.register(LDP)
def _(measure: PureDP | EpsilonDelta | LDP, epsilon: Fraction) -> Finding:
    return within(epsilon, measure.epsilon, "ε")


@pure_proves.register
def _(measure: ZCDP, epsilon: Fraction) -> Finding:
    return within(epsilon * epsilon / 2, measure.rho, "ρ")


@pure_proves.register
def _(measure: RDP, epsilon: Fraction) -> Finding:
    return within(min(epsilon, measure.order * epsilon * epsilon / 2), measure.epsilon, "Rényi ε")


@singledispatch
def gaussian_mu_up(measure: Measure) -> float | None:  # noqa: ARG001
    """A mu that no Gaussian release that satisfies the measure exceeds; None if there is none or it is unknown."""
    return None


@gaussian_mu_up.register(EpsilonDelta)
@gaussian_mu_up.register(LDP)
def _(measure: EpsilonDelta | LDP) -> float | None:
    return largest_mu_up(measure.epsilon, measure.delta) if 0 < measure.delta < 1 else None


@gaussian_mu_up.register
def _(measure: ZCDP) -> float | None:
    return float_up(sqrt_up(2 * measure.rho))


@gaussian_mu_up.register
def _(measure: GDP) -> float | None:
    return float_up(measure.mu)


@gaussian_mu_up.register
def _(measure: RDP) -> float | None:
    return float_up(sqrt_up(2 * measure.epsilon / measure.order))


@singledispatch
def unbiased_mu_up(measure: Measure) -> float | None:  # noqa: ARG001
    """The same for every unbiased mechanism of a measure's pure epsilon, of any law; None where there is none.

    Source: Hammersley, Chapman and Robbins, with chi^2 <= e^eps + e^-eps - 2 (MATH.md, section 3).
    """
    return None


@unbiased_mu_up.register(PureDP)
@unbiased_mu_up.register(EpsilonDelta)
@unbiased_mu_up.register(LDP)
def _(measure: PureDP | EpsilonDelta | LDP) -> float | None:
    return hammersley_mu_up(measure.epsilon)
