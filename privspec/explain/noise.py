"""The noise of a plan: what each site adds, how far each released number may be off, and how the loss scales."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.matrices import DyadicMatrix
from privspec.explain.claims import Claim
from privspec.explain.quantities import LOSS_DIGITS, Quantity, exact, parse_exact, rounded, ungrouped
from privspec.problem.executed import executed_part

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Site:
    """A place where noise enters: its name, the law, and the deviation of each coordinate (size,), if known."""

    at: str
    law: str
    deviations: Array
    size: int
    correlated: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class OutputNoise:
    """The standard deviations (size,) of the noise in one output, row by row."""

    name: str
    shape: tuple[int, ...]
    deviations: Array

    @property
    def size(self) -> int:
        """How many numbers the output has."""
        return int(np.prod(self.shape, dtype=int))

    @property
    def without_noise(self) -> int:
        """How many of its numbers carry no noise at all."""
        return int(np.count_nonzero(self.deviations == 0.0))


def executed(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    """The executed strategy with its noise, empty where the plan has none."""
    part: Mapping[str, Any] = (plan.get("mechanism") or {}).get("executed") or {}
    if "strategy" in part:
        part = executed_part(plan)
    return part if isinstance(part.get("noise"), Mapping) or "strategy" in part else {}


def strategy_variances(run: Mapping[str, Any], rows: int, shrink: float = 1.0) -> Array | None:
    """The variance of the noise on each strategy row (rows,), all scales divided by `shrink`.

    None for a law that is not known here.
    """
    noise = run.get("noise") or {}
    reader = _VARIANCES.get(str(noise.get("shape")))
    return reader(run, noise, rows, shrink) if reader else None


def _gaussian(_: Mapping[str, Any], noise: Mapping[str, Any], rows: int, shrink: float) -> Array:
    return np.full(rows, (float(parse_exact(noise.get("standard_deviation", "1"))) / shrink) ** 2)


def _laplace(run: Mapping[str, Any], noise: Mapping[str, Any], rows: int, shrink: float) -> Array:
    scales = np.array([float(parse_exact(s)) for s in noise["scale"]]) / shrink
    if len(scales) != rows:
        raise ValueError("one Laplace scale is needed for each strategy row")
    return discrete_laplace_variance(scales, lattice(run))


def discrete_laplace_variance(scales: Array, grid: float) -> Array:
    """The variance of Laplace noise on a lattice: 2 g^2 p / (1 - p)^2 with p = exp(-g/b) (note discrete-laplace)."""
    if grid <= 0.0:
        return np.asarray(2.0 * scales**2)
    half = np.sinh(np.minimum(grid / (2.0 * scales), 300.0))  # p / (1 - p)^2 = 1 / (4 sinh(g / 2b)^2)
    return np.asarray(grid**2 / (2.0 * half**2))


def lattice(run: Mapping[str, Any]) -> float:
    """The step of the lattice that the noise lives on; 0 where the plan has none."""
    return float(parse_exact(run["grid"])) if run.get("grid") else 0.0


def _knorm(_: Mapping[str, Any], noise: Mapping[str, Any], rows: int, shrink: float) -> Array:
    # density ~ exp(-||z||/b) in R^k: the radius is Gamma(k, b), so E ||z||^2 = k (k + 1) b^2
    return np.full(rows, (rows + 1) * (float(parse_exact(noise["scale"])) / shrink) ** 2)


_VARIANCES = {"gaussian": _gaussian, "laplace": _laplace, "knorm-l2": _knorm}


def output_noise(plan: Mapping[str, Any]) -> tuple[OutputNoise, ...]:
    """The noise in each output, from the covariance or the reconstruction; empty if there is neither."""
    run = executed(plan)
    outputs = run.get("outputs") or ()
    variances = _output_variances(plan)
    if variances is None:
        return ()
    return tuple(
        OutputNoise(
            str(o["name"]),
            tuple(int(n) for n in o.get("shape", ())),
            np.sqrt(np.maximum(variances[int(o["start"]) : int(o["stop"])], 0.0)),
        )
        for o in outputs
    )


def _output_variances(plan: Mapping[str, Any]) -> Array | None:
    covariance = (plan.get("mechanism") or {}).get("output_covariance")
    if covariance is not None:
        return np.array([row[i] for i, row in enumerate(covariance)], dtype=float)
    run = executed(plan)
    reconstruction = run.get("reconstruction") or {}
    if reconstruction.get("of") != "outputs":
        return _site_variances(plan)
    matrix = DyadicMatrix.from_json(reconstruction["matrix"]).to_float()
    variances = strategy_variances(run, matrix.shape[1])
    return None if variances is None else np.asarray((matrix**2) @ variances)


def _site_variances(plan: Mapping[str, Any]) -> Array | None:
    """The variances that the sites state, where every site is an output and every output a site."""
    stated = {
        str(site.get("at")): np.asarray(site["variance"], dtype=float)
        for site in (plan.get("mechanism") or {}).get("sites") or ()
        if "variance" in site
    }
    sizes = output_sizes(plan)
    sites = (plan.get("mechanism") or {}).get("sites") or ()
    if not sizes or len(stated) != len(sites) or stated.keys() != sizes.keys():
        return None
    if any(stated[name].shape != (size,) for name, size in sizes.items()):
        return None
    return np.concatenate([stated[name] for name in sizes])


def output_sizes(plan: Mapping[str, Any]) -> dict[str, int]:
    """How many numbers each output has."""
    return {str(o["name"]): int(o["stop"]) - int(o["start"]) for o in executed(plan).get("outputs") or ()}


def sites(plan: Mapping[str, Any], outputs: tuple[OutputNoise, ...]) -> tuple[Site, ...]:
    """Where noise enters, from the mechanism; a full covariance shows the deviations of its outputs."""
    seen = _Seen({o.name: o.deviations for o in outputs}, output_sizes(plan), lattice(executed(plan)))
    return tuple(_site(site, seen) for site in (plan.get("mechanism") or {}).get("sites") or ())


@dataclass(frozen=True, eq=False, slots=True)
class _Seen:
    """What a site needs of the rest of the plan: deviations and sizes by output, and the lattice."""

    deviations: Mapping[str, Array]
    sizes: Mapping[str, int]
    grid: float


def _site(site: Mapping[str, Any], seen: _Seen) -> Site:
    at = str(site.get("at", "output"))
    for key, reader in _SITE_READERS.items():
        if key in site:
            return reader(at, site, seen)
    return Site(at, str(site.get("shape", site.get("kind", "unknown"))), np.zeros(0), 0)


def _numbers(values: Any) -> Array:
    listed = values if isinstance(values, list) else [values]
    return np.array([float(parse_exact(v)) for v in listed])


def _site_variance(at: str, site: Mapping[str, Any], _: _Seen) -> Site:
    deviations = np.sqrt(_numbers(site["variance"]))
    return Site(at, "Gaussian", deviations, deviations.size)


def _site_scale(at: str, site: Mapping[str, Any], seen: _Seen) -> Site:
    deviations = np.sqrt(discrete_laplace_variance(_numbers(site["scale"]), seen.grid))
    return Site(at, "Laplace", deviations, deviations.size)


def _site_full(at: str, _: Mapping[str, Any], seen: _Seen) -> Site:
    named = [name.strip(" ()") for name in at.split(",")]
    names = [name for name in named if name in seen.sizes] or list(seen.sizes)
    known = [seen.deviations[name] for name in names if name in seen.deviations]
    joined = np.concatenate(known) if known else np.zeros(0)
    return Site(at, "Gaussian", joined, sum(seen.sizes[name] for name in names), correlated=True)


def _site_shaped(at: str, site: Mapping[str, Any], seen: _Seen) -> Site:
    """Noise of a shape by name, added to the values themselves."""
    shape = str(site["shape"])
    deviations = seen.deviations.get(at, np.zeros(0))
    return Site(at, _SHAPES.get(shape, shape), deviations, deviations.size)


_SHAPES = {"knorm-l2": "K-norm noise (l2)"}
_SITE_READERS = {"covariance": _site_full, "variance": _site_variance, "scale": _site_scale, "shape": _site_shaped}


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


def _gaussian_frontier(loss: float, claim: Claim, _: Mapping[str, Any]) -> Frontier | None:
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
    "gaussian": _gaussian_frontier,
    "laplace": _pure,
    "knorm-l2": _pure,
}
