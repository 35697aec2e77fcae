"""From a solved mechanism back to the spec: the plan, in which each number leads to a line."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log2
from typing import Any

import numpy as np
from scipy import sparse

from privspec.compile.accuracy import accuracy_json
from privspec.compile.candidate import Candidate, Dual, Mechanism
from privspec.compile.document import (
    decimal_up,
    guarantee_head,
    plan_document,
    versions,
)
from privspec.compile.observers import achieved, read_back, view_witnesses
from privspec.compile.prices import binding_prices
from privspec.compile.problem import Problem
from privspec.compile.release import LinearRelease
from privspec.core import OPTIMAL_GAP
from privspec.core.diagnostics import InternalError
from privspec.core.matrices import DyadicMatrix
from privspec.language.spelling import spell
from privspec.model.graph import Model
from privspec.model.neighbours import PairDifferences, VectorDifferences
from privspec.model.requirements import Requirement

COVARIANCE_LIMIT = 512
"""Outputs up to which a plan holds their covariance."""
INPUT_GRID_BITS = 24
"""Inputs are put on a grid of at least 2^24 steps across their domain."""
FINEST_INPUT_GRID_BITS = 52
"""Finer than that doubles cannot say where an input lies in its domain."""
ROUNDED_SHARE = 2.0**-12
"""Share of its standard deviation by which the grids of the inputs may move an output."""
GUIDE_BITS = 50
"""Bits of a covariance root that only helps to evaluate the lower bound."""


def raise_plan(problem: Problem, chosen: Candidate, others: tuple[Candidate, ...]) -> dict[str, Any]:
    """The plan of a chosen mechanism.

    Args: others, the candidates that were considered and not chosen.
    """
    mechanism = chosen.mechanism
    if mechanism is None:
        raise InternalError("a classic cannot be executed")
    bound = chosen.lower_bound
    gap = None if bound is None or chosen.loss <= 0 else max((chosen.loss - bound) / chosen.loss, 0.0)
    model = problem.model
    stated = _mechanism(problem, mechanism)
    views = view_witnesses(problem, mechanism.release)
    amounts = achieved(problem, mechanism.release, *read_back(problem, stated["family"], stated["executed"]), views)
    document = {
        "status": "optimal" if gap is not None and gap <= OPTIMAL_GAP else "feasible",
        "loss": {
            "value": chosen.loss,
            "lower_bound": bound,
            "relative_gap": gap,
            "expression": spell(model.loss) if model.loss is not None else "",
            "units": _units(model),
            "among": chosen.among,
            "kind": "worst" if problem.system.worst else "expected",
        },
        "alternatives": [
            {"name": c.name, "loss": c.loss, "admissible": c.admissible, "reason": c.reason} for c in others
        ],
        "mechanism": stated,
        "guarantees": [
            _guarantee(r, i, mechanism.release, amount)
            for i, (r, amount) in enumerate(zip(model.requirements, amounts, strict=True))
        ],
        "accuracy": accuracy_json(problem, mechanism.release),
        "claims": _certificate(problem, chosen, mechanism, views),
        "remarks": {
            "binding": binding_prices(problem, mechanism, chosen.loss),
            "solver": {
                "name": mechanism.solver,
                "iterations": mechanism.iterations,
                "seconds": mechanism.seconds,
                "tolerance": problem.settings.tolerance,
                "notes": list(mechanism.notes),
                "versions": versions(),
            },
        },
    }
    return plan_document(model, document)


def _units(model: Model) -> str:
    """A squared error has the squared units of what the loss compares."""
    names = [o.name for o in model.outputs]
    return "squared units of " + " and ".join(names)


# --- the mechanism --------------------------------------------------------------------------------


def _mechanism(problem: Problem, mechanism: Mechanism) -> dict[str, Any]:
    release, system = mechanism.release, problem.system
    out: dict[str, Any] = {"family": release.noise.family, "sites": list(mechanism.sites)}
    root = release.output_map(system.target)
    if system.outputs_count <= COVARIANCE_LIMIT:
        weighted = root * np.sqrt(release.row_variances())
        out["output_covariance"] = (weighted @ weighted.T).tolist()
    return out | {"executed": _executed(problem, mechanism)}


def _executed(problem: Problem, mechanism: Mechanism) -> dict[str, Any]:
    release = mechanism.release
    matrix = release.outputs_matrix if release.outputs_matrix is not None else release.inputs_matrix
    if matrix is None:
        raise InternalError("a release without reconstruction")
    bits = _input_grid_bits(problem, mechanism)
    return {
        "inputs": [
            {"name": block.name, "grid": "1" if block.layout == "cells" else f"2^-{bits}"}
            for block in problem.model.blocks
        ],
        "strategy": release.strategy.to_json(),
        "noise": release.noise.to_json(),
        "grid": release.grid,
        "reconstruction": {
            "of": "outputs" if release.outputs_matrix is not None else "inputs",
            "matrix": matrix.to_json(),
        },
        "output_grid": release.output_grid,
        "rounding": release.rounding,
    }


def _input_grid_bits(problem: Problem, mechanism: Mechanism) -> int:
    """Bits of the grid of the inputs: what rounding moves is lost in the noise of every output."""
    release, system = mechanism.release, problem.system
    widths = np.zeros(system.inputs_count)
    for block in problem.model.blocks:
        if block.schema is None:
            low, high = block.domain.bounds
            widths[block.start : block.stop] = 1.0 if low is None or high is None else float(high - low)
    deviations = np.linalg.norm(release.output_map(system.target) * np.sqrt(release.row_variances()), axis=1)
    noisy = deviations > 0
    reach = (np.abs(system.target[noisy]) @ widths) / (2 * ROUNDED_SHARE * deviations[noisy])
    needed = ceil(log2(max(float(np.max(reach, initial=1.0)), 1.0)))
    return min(max(needed, INPUT_GRID_BITS), FINEST_INPUT_GRID_BITS)


# --- guarantees -----------------------------------------------------------------------------------


def _guarantee(requirement: Requirement, index: int, release: LinearRelease, amount: Fraction) -> dict[str, Any]:
    notes = [*release.noise.notes, *(["group-privacy"] if requirement.neighbours.group > 1 else [])]
    return guarantee_head(requirement, index) | {
        "achieved": {release.noise.amount: decimal_up(amount)},
        "because": notes,
    }


# --- assumptions and certificate ------------------------------------------------------------------


def _certificate(
    problem: Problem, chosen: Candidate, mechanism: Mechanism, views: list[dict[str, Any]]
) -> dict[str, Any]:
    dual = mechanism.dual
    if dual is None:
        return {
            "views": views,
            "dual": [],
            "loss_weights": None,
            "scope": "none",
            "lower_bound": chosen.lower_bound or 0.0,
        }
    weights = dual.point.loss_weights
    out: dict[str, Any] = {
        "views": views,
        "dual": [_dual_json(problem, dual, o) for o in range(len(problem.system.views))],
        "loss_weights": None if weights is None else weights.tolist(),
        "scope": dual.scope,
        "lower_bound": chosen.lower_bound,
    }
    if dual.guide is not None:
        out["guide"] = DyadicMatrix.rounded(dual.guide, GUIDE_BITS).to_json()
    if dual.point.limit_weights is not None:
        out["limit_weights"] = dual.point.limit_weights.tolist()
    if mechanism.release.noise.amount == "epsilon":
        out["hcr"] = {"statement": "mu^2 = 4 sinh(epsilon / 2)^2 (Hammersley, Chapman & Robbins)"}
    return out


def _dual_json(problem: Problem, dual: Dual, o: int) -> dict[str, Any]:
    view, budget = problem.system.views[o], dual.budgets[o]
    columns: sparse.csc_array = sparse.csc_array(dual.point.differences[o])
    weights = dual.point.weights[o]
    amounts, cover = _exact_amounts(view.exact), Fraction(view.cover)
    listed, kept = [], []
    floor = 1e-14 * float(weights.max(initial=0.0))
    for j in np.flatnonzero(weights > floor):
        entries = []
        for at in range(columns.indptr[j], columns.indptr[j + 1]):
            i, value = int(columns.indices[at]), float(columns.data[at]) * budget
            if value == 0:
                continue
            exact = amounts.get(i) if amounts is not None else None
            # a difference of exact size keeps only the sign; one inside a ball or box is drawn in a little
            size = exact if exact is not None else Fraction(value * (1 - 1e-12)).limit_denominator(2**60)
            entries.append([i, str((size if exact is None or value > 0 else -size) / cover)])
        listed.append(entries)
        kept.append(float(weights[j]))
    return {"requirement": view.index, "differences": listed, "weights": kept}


def _exact_amounts(differences: object) -> dict[int, Fraction] | None:
    """Exact size of a change of each coordinate, where differences change coordinates by fixed amounts."""
    match differences:
        case VectorDifferences(indices, amounts, _):
            return {int(i): Fraction(a) for i, a in zip(indices, amounts, strict=True)}
        case PairDifferences(coordinates, scale, _):
            return {int(i): scale for i in coordinates}
        case _:
            return None
