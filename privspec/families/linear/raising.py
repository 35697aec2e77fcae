"""From a solved mechanism back to the spec: the plan, in which each number leads to a line."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log2
from typing import Any

import numpy as np

from privspec.core import OPTIMAL_GAP
from privspec.core.diagnostics import InternalError
from privspec.families.document import decimal_up, guarantee_head, plan_document, versions
from privspec.families.linear.exact import Stated, achieved, read_back, view_witnesses
from privspec.families.linear.prices import binding_prices
from privspec.families.linear.problem import Problem
from privspec.families.linear.release import Candidate, LinearRelease, Mechanism
from privspec.language.spelling import spell
from privspec.model.graph import Model
from privspec.model.requirements import Requirement
from privspec.problem.elaborate import elaborate
from privspec.problem.form import document as problem_document

INPUT_GRID_BITS = 24
"""Inputs are put on a grid of at least 2^24 steps across their domain."""
FINEST_INPUT_GRID_BITS = 52
"""Finer than that doubles cannot say where an input lies in its domain."""
ROUNDED_SHARE = 2.0**-12
"""Share of its standard deviation by which the grids of the inputs may move an output."""


def raise_plan(problem: Problem, chosen: Candidate, others: tuple[Candidate, ...]) -> dict[str, Any]:
    """The plan of a chosen mechanism.

    Args: others, the candidates that were considered and not chosen.
    """
    mechanism = chosen.mechanism
    if mechanism is None:
        raise InternalError("a classic cannot be executed")
    model, family = problem.model, mechanism.release.noise.family
    executed, whole = _executed(problem, mechanism), problem_document(elaborate(model))
    stated = Stated(problem, mechanism, *read_back(whole, family, executed))
    views = view_witnesses(problem, mechanism.release, stated.release)
    amounts = achieved(problem, stated.frame, stated.release, views)
    loss, bound, covariance = stated.loss(), stated.bound(), stated.covariance()
    gap = None if bound is None else bound.gap(loss)
    document = {
        "problem": whole,
        "status": "optimal" if gap is not None and gap <= OPTIMAL_GAP else "feasible",
        "loss": {
            "value": loss,
            "lower_bound": None if bound is None else bound.value,
            "relative_gap": gap,
            "expression": spell(model.loss) if model.loss is not None else "",
            "units": _units(model),
            "among": "" if bound is None else bound.among,
            "kind": "worst" if problem.system.worst else "expected",
        },
        "alternatives": [
            {"name": c.name, "loss": c.loss, "admissible": c.admissible, "reason": c.reason} for c in others
        ],
        "mechanism": {
            "family": family,
            "sites": stated.sites(),
            **({} if covariance is None else {"output_covariance": covariance}),
            "executed": executed,
        },
        "guarantees": [
            _guarantee(r, i, mechanism.release, amount)
            for i, (r, amount) in enumerate(zip(model.requirements, amounts, strict=True))
        ],
        "accuracy": stated.accuracy(),
        "claims": {"views": views, "bound": None if bound is None else bound.witness},
        "remarks": {
            "binding": binding_prices(problem, mechanism, loss),
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
    layout = system.lowered.layout
    widths = np.zeros(system.inputs_count)
    for block in problem.model.blocks:
        if block.schema is None:
            low, high = block.domain.bounds
            at, share = layout.places[block.name]
            widths[at : at + share.width] = 1.0 if low is None or high is None else float(high - low)
    widths *= layout.copies
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
