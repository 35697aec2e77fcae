"""What people use: noise on each input, equal noise on each answer, and both as the paper calibrates them.

Shown beside the optimum under the same neighbour relation; the paper's own formulas mix two (MATH.md section 8).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log, sqrt

import numpy as np

from privspec.compile.candidate import Candidate
from privspec.compile.lower import site_maps
from privspec.compile.problem import Problem
from privspec.model.measures import EpsilonDelta
from privspec.solvers.programs import Array, Balls, Boxes, Differences, Pairs, Vectors, largest_norm


def classics(problem: Problem, budgets: tuple[float, ...], allowed: bool, why_not: str) -> Iterator[Candidate]:
    """Noise on each input, noise on each answer, and both as the paper calibrates them."""
    system = problem.system
    forced = set(problem.model.noise_at) if problem.model.noise_at is not None else None
    on_inputs = problem.loss_of_input_noise(input_variances(problem, budgets))
    inputs_ok = forced is None or {node.name for node in problem.model.inputs} <= forced
    yield _classic("noise on each input", on_inputs, allowed, why_not, inputs_ok, "more loss")
    variance = 0.0
    for view, budget in zip(system.views, budgets, strict=True):
        target = system.target if view.rows is None else system.target[view.rows]
        variance = max(variance, largest_norm(target, view.differences) / budget**2)
    on_answers = float(problem.loss_per_output.sum() * variance)
    if system.worst:
        squared = system.error_map.multiply(system.error_map)
        on_answers = float(np.max(np.asarray(squared.sum(axis=1))) * variance)
    answers_ok = not problem.local and (forced is None or _answers_listed(problem, forced))
    trust_reason = "`trust nobody` rules it out: nobody holds the answers before noise" if problem.local else ""
    yield _classic("equal noise on each answer", on_answers, allowed, why_not or trust_reason, answers_ok, "more loss")
    ratio = paper_ratio(problem, budgets)
    if ratio is not None:
        unsafe = "less noise there than this guarantee needs: sqrt(2 ln(1.25/delta))/epsilon is wrong at this epsilon"
        words = "valid but wasteful: sqrt(2 ln(1.25/delta))/epsilon is not exact"
        for name, loss, fine in (
            ("noise on each input, the paper's calibration", on_inputs, inputs_ok),
            ("equal noise on each answer, the paper's calibration", on_answers, answers_ok),
        ):
            reason = why_not or (unsafe if ratio < 1 else words)
            yield _classic(name, loss * ratio, allowed and ratio >= 1, reason, fine, reason)


def _classic(name: str, loss: float, allowed: bool, why_not: str, sites_ok: bool, reason: str) -> Candidate:
    if not sites_ok and not why_not:
        why_not = "`noise at` rules it out"
    return Candidate(name, "gaussian", loss, why_not or reason, allowed and sites_ok)


def _answers_listed(problem: Problem, forced: set[str]) -> bool:
    """Whether `noise at` lists, for every output, the output or a value that it equals."""
    system = problem.system
    outputs = {o.name for o in system.outputs}
    if outputs <= forced:
        return True
    maps = [site.map for site in site_maps(problem.model, system, tuple(sorted(forced)))]
    covered = np.zeros(system.outputs_count, dtype=bool)
    for site in maps:
        single = (np.count_nonzero(site, axis=0) == 1) & (np.abs(site).sum(axis=0) == 1)
        covered |= site[:, single].any(axis=1)
    return bool(covered.all())


def input_variances(problem: Problem, budgets: tuple[float, ...]) -> Array:
    """Variances of independent noise on the inputs that alone hides every difference."""
    n = problem.system.inputs_count
    variances = np.zeros(n)
    for view, budget in zip(problem.system.views, budgets, strict=True):
        variances = np.maximum(variances, _own_variances(view.differences, n) / budget**2)
    return variances


def _own_variances(differences: Differences, n: int) -> Array:
    out = np.zeros(n)
    match differences:
        case Vectors(matrix):
            counts = np.diff(matrix.indptr)
            weight = np.repeat(counts, counts)
            np.maximum.at(out, matrix.indices, weight * matrix.data**2)
        case Pairs(coordinates, scale):
            out[coordinates] = 2 * scale**2
        case Balls(blocks, radius):
            for block in blocks:
                out[block] = np.maximum(out[block], radius**2)
        case Boxes(blocks, reach):
            for block in blocks:
                out[block] = np.maximum(out[block], len(block) * reach[block] ** 2)
    return out


def paper_ratio(problem: Problem, budgets: tuple[float, ...]) -> float | None:
    """How many times the exact variance the paper's sqrt(2 ln(1.25/delta))/epsilon gives; None without a delta."""
    ratios = []
    for view, budget in zip(problem.system.views, budgets, strict=True):
        measure = view.requirement.measure
        if not isinstance(measure, EpsilonDelta) or measure.delta <= 0:
            return None
        deviation = sqrt(2 * log(1.25 / float(measure.delta))) / float(measure.epsilon)
        ratios.append((deviation * budget) ** 2)
    return min(ratios) if ratios else None
