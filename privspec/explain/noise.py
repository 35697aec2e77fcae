"""The noise of a plan: what each site adds and how far each released number may be off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.matrices import DyadicMatrix
from privspec.explain.quantities import parse_exact

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
