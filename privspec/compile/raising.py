"""From a solved mechanism back to the spec: the plan, in which each number leads to a line."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspec.compile.accuracy import accuracy_json
from privspec.compile.candidate import Candidate, Dual, Mechanism
from privspec.compile.document import (
    decimal_up,
    guarantee_head,
    plan_document,
    versions,
)
from privspec.compile.prices import binding_prices
from privspec.compile.problem import Problem
from privspec.compile.release import RECONSTRUCTION_BITS, checked_amount
from privspec.core import OPTIMAL_GAP
from privspec.core.diagnostics import InternalError
from privspec.core.matrices import DyadicMatrix
from privspec.language.spelling import spell
from privspec.model.domains import Domain, IntegerRange
from privspec.model.graph import Model
from privspec.model.neighbours import BallGeometry, InputBlock, PairDifferences, VectorDifferences
from privspec.model.requirements import Requirement
from privspec.model.values import show
from privspec.problem.linear_lowering import OpenConstant

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
        "mechanism": _mechanism(problem, mechanism),
        "guarantees": [_guarantee(problem, r, i, mechanism) for i, r in enumerate(model.requirements)],
        "accuracy": accuracy_json(problem, mechanism.release),
        "claims": _certificate(problem, chosen, mechanism),
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
    out["executed"] = _executed(problem, mechanism)
    return out


def _executed(problem: Problem, mechanism: Mechanism) -> dict[str, Any]:
    release, system = mechanism.release, problem.system
    matrix = release.outputs_matrix if release.outputs_matrix is not None else release.inputs_matrix
    if matrix is None:
        raise InternalError("a release without reconstruction")
    bits = _input_grid_bits(problem, mechanism)
    rows_of: dict[int, int] = {}
    for view, rows in zip(system.views, release.view_rows, strict=True):
        rows_of[view.index] = max(rows_of.get(view.index, 0), rows)
    return {
        **({"constants": [_constant_json(constant) for constant in system.constants]} if system.constants else {}),
        "inputs": [input_json(block, bits) for block in problem.model.blocks],
        "strategy": release.strategy.to_json(),
        "noise": release.noise.to_json(),
        "grid": release.grid,
        "reconstruction": {
            "of": "outputs" if release.outputs_matrix is not None else "inputs",
            "matrix": matrix.to_json(),
        },
        "outputs": [
            {
                "name": o.name,
                "start": o.start,
                "stop": o.stop,
                "shape": list(o.shape),
                "offset": _offset_json(system.offset[o.start : o.stop]),
            }
            for o in system.outputs
        ],
        "output_grid": release.output_grid,
        "rounding": release.rounding,
        "views": [
            {"outputs": list(problem.model.requirements[i].outputs), "rows": rows}
            for i, rows in sorted(rows_of.items())
        ],
    }


def _constant_json(constant: OpenConstant) -> dict[str, Any]:
    """A public value that a run is given, and what it adds to the outputs, after the noise."""
    map_ = DyadicMatrix.rounded(constant.map, RECONSTRUCTION_BITS)
    return {"name": constant.name, "shape": list(constant.shape), "map": map_.to_json()}


def _offset_json(offset: NDArray[np.float64]) -> Any:
    return 0 if not np.any(offset) else offset.tolist()


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


def input_json(block: InputBlock, bits: int) -> dict[str, Any]:
    """Where an input stands in the base vector, and how its values are put there: on a grid of so many bits."""
    head: dict[str, Any] = {
        "name": block.name,
        "start": block.start,
        "stop": block.stop,
        "layout": block.layout,
    }
    if block.schema is not None:
        if block.records is not None:
            head["records"] = block.records
        return head | {"attributes": [_attribute_json(name, domain) for name, domain in block.schema]}
    low, high = block.domain.bounds
    head |= {
        "lower": None if low is None else str(low),
        "upper": None if high is None else str(high),
        "grid": f"2^-{bits}",
    }
    geometry = block.geometry
    if isinstance(geometry, BallGeometry):
        head["ball"] = {"radius": str(geometry.radius), "size": geometry.dimension, "norm": geometry.norm}
    return head


def _attribute_json(name: str, domain: Domain) -> dict[str, Any]:
    match domain:
        case IntegerRange():
            low, high = domain.bounds
            return {"name": name, "lower": int(low or 0), "upper": int(high or 0)}
        case _:
            return {"name": name, "values": [_member(item) for item in domain.elements()]}


def _member(item: Any) -> str:
    """A value of a finite domain as data write it; a ranking best first, with spaces."""
    return " ".join(show(word) for word in item) if isinstance(item, tuple) else show(item)


# --- guarantees -----------------------------------------------------------------------------------


def _guarantee(problem: Problem, requirement: Requirement, index: int, mechanism: Mechanism) -> dict[str, Any]:
    release = mechanism.release
    amounts = [
        checked_amount(release, view, rows, budget, epsilon)
        for view, rows, budget, epsilon in zip(
            problem.system.views, release.view_rows, problem.budgets, problem.epsilons, strict=True
        )
        if view.index == index
    ]
    worst = max(amounts)
    notes = list(release.noise.notes)
    if requirement.neighbours.group > 1:
        notes.append("group-privacy")
    return guarantee_head(requirement, index) | {
        "achieved": {release.noise.amount: decimal_up(worst)},
        "because": notes,
    }


# --- assumptions and certificate ------------------------------------------------------------------


def _certificate(problem: Problem, chosen: Candidate, mechanism: Mechanism) -> dict[str, Any]:
    dual = mechanism.dual
    if dual is None:
        return {"dual": [], "loss_weights": None, "scope": "none", "lower_bound": chosen.lower_bound or 0.0}
    weights = dual.point.loss_weights
    out: dict[str, Any] = {
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
