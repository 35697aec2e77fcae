"""What a plan says about errors: averages, the loss, the covariance and the noise at its sites."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from privspec.certify.measures import Finding
from privspec.certify.motion import Array, NotUnderstood
from privspec.certify.promises import claim
from privspec.certify.reading import At, Gaussian, KNorm, Laplace, Malformed
from privspec.certify.report import Claim
from privspec.certify.subject import Subject
from privspec.core.spans import Source
from privspec.language.parser import parse_expression
from privspec.language.walk import names_used
from privspec.model.targets import meaning, target

SAME = 1e-9
"""Relative difference of two figures that are meant to be equal; both were computed in doubles."""
BIAS = 1e-6
"""Share of a standard deviation by which an average may be off."""
GRID = 1e-3
"""Share of a standard deviation by which rounding to grids may move an output."""
COUNT = 1e3
"""For inputs without bounds (counts): the size at which a bias is judged."""
COVARIANCE_LIMIT = 512
"""Up to so many outputs a plan states their covariance."""
DENSE_LIMIT = 4096
"""Up to so many outputs whole covariances are compared, beyond it variances."""


# --- averages ----------------------------------------------------------------------------------------


def unbiased(subject: Subject) -> Iterator[Claim]:
    """The average of what is released is what the spec says it estimates."""
    map_, deviation = subject.target, subject.deviation
    # an answer that is always the same carries no noise; it is judged in its own units
    scale = np.where(deviation > 0, deviation, 1.0)
    offsets = _check_linear(subject)
    said = np.concatenate([o.offset for o in subject.executed.outputs])
    middle, half = _box(subject)
    error = subject.released - map_
    off = float(np.max((np.abs(error @ middle + said - offsets) + np.abs(error) @ half) / scale))
    text = f"reconstruction times strategy is the target, within {off:.1e} standard deviations"
    yield claim("unbiased", Finding(off <= BIAS, text))
    yield from _constants(subject)
    terms = subject.errors(subject.released, subject.system.input_seeds()).rows
    limit = np.sqrt((subject.noise_errors.rows**2).sum(axis=1))
    drift = float(np.max((np.abs(terms) @ half) / np.where(limit > 0, limit, 1.0), initial=0.0))
    text = f"every error of the loss averages to zero, within {drift:.1e} standard deviations"
    yield claim("unbiased", Finding(drift <= BIAS, text))
    moved = float(np.max(_rounding(subject) / scale))
    yield claim("grids", Finding(moved <= GRID, f"rounding to grids moves an output by at most {moved:.1e} of its ±"))


def _constants(subject: Subject) -> Iterator[Claim]:
    """Public values that a run is given enter the outputs as the spec says, all of them and no others."""
    listed = {constant.name: constant for constant in subject.executed.constants}
    opened = _open(subject)
    for name in sorted({*listed, *opened}):
        if name not in opened or (name in listed and listed[name].shape != opened[name]):
            yield Claim("unbiased", "failed", f"{name} is no constant of the spec that a run is given")
            continue
        size = prod(opened[name])
        wanted = subject.respond({name: np.eye(size).reshape(*opened[name], size)})
        given = listed[name].map.to_float() if name in listed else np.zeros_like(wanted)
        off = float(np.max(np.abs(wanted - given), initial=0.0))
        holds = off <= SAME * max(1.0, float(np.max(np.abs(wanted), initial=0.0)))
        yield claim("unbiased", Finding(holds, f"{name} is added after the noise as the spec says, within {off:.1e}"))


def _open(subject: Subject) -> dict[str, tuple[int, ...]]:
    """Constants of the spec without a value, with their shapes."""
    model = subject.model
    nodes = [node for node in model.constants if node.definition is None and node.name not in model.values]
    return {node.name: subject.system.node_shape(node.name) for node in nodes}


def _check_linear(subject: Subject) -> Array:
    """The map read here against the evaluator of the model at two points; returns the constants (m,).

    Those of outputs whose entries are compared with different things are taken from the plan.
    """
    model = subject.model
    known = {*model.nodes, *model.values}
    aims = {name: meaning(model, name) for name in subject.names}
    judged = [name for name, aim in aims.items() if aim is not None and set(names_used(aim)) <= known]
    constants = np.concatenate([o.offset for o in subject.executed.outputs])
    if not judged:
        return constants
    rows = np.concatenate([subject.executed.rows_of((name,)) for name in judged])

    without = {name: np.zeros(shape) for name, shape in _open(subject).items()}

    def at(base: Array) -> Array:
        return np.concatenate([np.asarray(target(model, name, base, without)).ravel() for name in judged])

    generator = np.random.default_rng(1)
    constants[rows] = at(np.zeros(model.size))
    map_ = subject.target[rows]
    for _ in range(2):
        base = generator.uniform(0.25, 1.0, model.size)
        size = np.abs(map_) @ np.abs(base) + np.abs(constants[rows]) + 1e-300
        if np.any(np.abs(at(base) - constants[rows] - map_ @ base) > 1e-9 * size):
            raise NotUnderstood("the outputs do not estimate linear functions of the inputs")
    return constants


def _box(subject: Subject) -> tuple[Array, Array]:
    """Centre and half width (n,) of the inputs; counts and what has no bounds up to COUNT."""
    middle, half = np.zeros(subject.model.size), np.full(subject.model.size, COUNT)
    for data in subject.executed.inputs:
        for i, (low, high) in enumerate(zip(data.lower, data.upper, strict=True)):
            if low is not None and high is not None:
                middle[data.start + i], half[data.start + i] = float(low + high) / 2, float(high - low) / 2
    return middle, half


def _rounding(subject: Subject) -> Array:
    """How far (m,) the grids of inputs, strategy answers and outputs can move a released number."""
    executed = subject.executed
    step = np.zeros(subject.model.size)
    for index, data in enumerate(executed.inputs):
        if data.layout == "entries":
            step[data.start : data.stop] = float(data.grid * subject.width(index)) / 2
    moved: Array = np.abs(subject.target) @ step
    whole = executed.strategy.unit.denominator == 1 and not np.any(step)
    if not (whole and executed.output_grid == executed.grid == 1):
        # counts times whole numbers stay on a lattice of whole numbers: nothing is rounded there
        moved = moved + float(executed.output_grid) / 2
    if not executed.round_outputs and not (whole and executed.grid == 1):
        deviations = executed.noise.deviations(subject.noise_map.shape[1], float(executed.grid))
        moved = moved + np.abs(subject.noise_map / deviations).sum(axis=1) * float(executed.grid) / 2
    return moved


# --- loss --------------------------------------------------------------------------------------------


def loss(subject: Subject) -> Iterator[Claim]:
    """The expected loss, from the loss of the spec and the noise that is executed."""
    stated = subject.plan["loss"]
    said, errors = stated["value"].double(), subject.noise_errors
    if stated.get("standard_error") is not None:
        yield Claim("loss", "failed", "a simulated loss where the exact one is known")
    value = errors.value()
    close = abs(value - said) <= SAME * value
    yield claim("loss", Finding(close, f"re-derived {value:.10g}, the plan says {said:.10g}"))
    if stated["kind"].text() != ("worst" if errors.worst else "expected"):
        yield Claim("loss", "failed", f"the loss of the spec is not of the kind {stated['kind'].text()!r}")
    if parse_expression(Source("plan", stated["expression"].text())) != subject.model.loss:
        yield Claim("loss", "failed", "the loss of the plan is not the loss of the spec")


# --- covariance and sites ----------------------------------------------------------------------------


def noise(subject: Subject) -> Iterator[Claim]:
    """Covariance of the outputs and the noise at each site, against what is executed."""
    factor, m = subject.noise_map, subject.executed.size
    said = subject.plan["mechanism"].get("output_covariance")
    if said is not None:
        rows = np.array([row.doubles(m) for row in said.items()]).reshape(-1, m)
        if rows.shape != (m, m):
            raise Malformed(f"{said.place} has another size")
        off = _share(rows - factor @ factor.T, subject.deviation)
        yield claim("covariance", Finding(off <= SAME, f"the output covariance fits, within {off:.1e}"))
    elif m <= COVARIANCE_LIMIT:
        yield Claim("covariance", "failed", "the plan does not state the covariance of its outputs")
    sites = subject.plan["mechanism"]["sites"].items()
    if not sites:
        yield Claim("sites", "failed", "the plan names no site of its noise")
    elif isinstance(subject.executed.noise, Laplace):
        yield from _laplace_sites(subject, sites)
    elif isinstance(subject.executed.noise, KNorm):
        yield from _knorm_site(subject, sites)
    elif any(site.get("covariance") is not None for site in sites):
        yield from _correlated(subject, sites)
    else:
        yield from _independent(subject, sites)


def _share(difference: Array, deviation: Array) -> float:
    scale = np.where(deviation > 0, deviation, 1e-300)
    return float(np.max(np.abs(difference) / scale[:, None] / scale[None, :], initial=0.0))


def _allowed(subject: Subject, name: str) -> bool:
    return subject.model.noise_at is None or name in subject.model.noise_at


def _correlated(subject: Subject, sites: list[At]) -> Iterator[Claim]:
    named = [site["at"].text() for site in sites]
    good = tuple(named) == subject.names and subject.model.noise_at is None
    good = good and all(site["covariance"].text() == "full" for site in sites)
    off = 0.0
    for site, output in zip(sites, subject.executed.outputs, strict=False):
        if site.get("variance") is not None:
            variances = site["variance"].doubles(output.stop - output.start)
            actual = subject.deviation[output.start : output.stop] ** 2
            off = max(off, float(np.max(np.abs(variances - actual) / np.maximum(actual, 1e-300), initial=0.0)))
    text = f"noise enters at the outputs, correlated; variances fit, within {off:.1e}"
    yield claim("sites", Finding(good and off <= SAME, text))


def _independent(subject: Subject, sites: list[At]) -> Iterator[Claim]:
    factor = np.zeros((subject.executed.size, 0))
    for site in sites:
        name = site["at"].text()
        if not _allowed(subject, name):
            yield Claim("sites", "failed", f"the spec does not allow noise at {name}")
            return
        variance = site["variance"].doubles(prod(subject.system.node_shape(name)))
        if np.any(variance < 0):
            raise Malformed(f"{site.place} has a negative variance")
        factor = np.hstack([factor, subject.site_map(name) * np.sqrt(variance)])
    if len(factor) <= DENSE_LIMIT:
        off = _share(factor @ factor.T - subject.noise_map @ subject.noise_map.T, subject.deviation)
    else:
        actual = subject.deviation**2
        off = float(np.max(np.abs(np.einsum("mk,mk->m", factor, factor) - actual) / actual))
    yield claim("sites", Finding(off <= SAME, f"the variances at the sites give the executed noise, within {off:.1e}"))


def _laplace_sites(subject: Subject, sites: list[At]) -> Iterator[Claim]:
    """Scales of the strategy answers; where they are measured at variables, those must be allowed."""
    noise_ = subject.executed.noise
    assert isinstance(noise_, Laplace)
    said = np.concatenate([site["scale"].doubles(len(site["scale"].items())) for site in sites])
    actual = np.array([float(b) for b in noise_.scales])
    good = len(said) == len(actual) and bool(np.all(np.abs(said - actual) <= SAME * actual))
    named = [name for site in sites for name in site["at"].text().split(" and ")]
    if subject.model.noise_at is not None and not all(_allowed(subject, name) for name in named):
        yield Claim("sites", "failed", "the spec does not allow noise there")
    yield claim("sites", Finding(good, "the scales are those that are executed"))
    if not all(name in subject.model.nodes for name in named):
        derived = len(named) == 1 and "strategy" in named[0]
        yield claim("sites", Finding(derived, "noise on combinations of the inputs chosen for the answers"))
    else:
        measured = np.vstack([_value_map(subject, name) for name in named])
        moved = subject.executed.strategy.to_float()
        fits = measured.shape == moved.shape and np.allclose(
            measured, moved, rtol=1e-9, atol=1e-9 * np.abs(moved).max()
        )
        yield claim("sites", Finding(bool(fits), "the noisy answers are the values of " + " and ".join(named)))


def _value_map(subject: Subject, name: str) -> Array:
    """How a variable moves with the base vector (size, n)."""
    if name in subject.names:
        rows = next(o for o in subject.executed.outputs if o.name == name)
        return subject.target[rows.start : rows.stop]
    found = subject.system.response(subject.system.input_seeds()).motions.get(name)
    if found is None:
        raise Malformed(f"{name} does not depend on the inputs")
    return found.reshape(-1, subject.model.size)


def _knorm_site(subject: Subject, sites: list[At]) -> Iterator[Claim]:
    noise_ = subject.executed.noise
    assert isinstance(noise_, KNorm)
    good = len(sites) == 1 and subject.model.noise_at is None
    for site in sites:
        parameters = site["parameters"]
        good = good and site["shape"].text() == "knorm-l2" and parameters["scale"].exact() == noise_.scale
        good = good and parameters["rows"].integer() == subject.executed.strategy.shape[0]
        good = good and site["grid"].exact() == subject.executed.grid
        good = good and tuple(site["at"].text().split(" and ")) == subject.names
    yield claim("sites", Finding(good, "the K-norm noise is the one that is executed"))


__all__ = ["Gaussian", "loss", "noise", "unbiased"]
