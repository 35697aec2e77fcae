"""From a solved mechanism back to the spec: the plan, in which each number leads to a line."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from privspec.core import OPTIMAL_GAP
from privspec.core.diagnostics import InternalError
from privspec.families.document import decimal_up, guarantee_head, plan_document, versions
from privspec.families.linear.exact import Stated, achieved, read_back, view_witnesses
from privspec.families.linear.prices import binding_prices
from privspec.families.linear.problem import Problem
from privspec.families.linear.release import Candidate, LinearRelease, Mechanism, input_grid_bits
from privspec.language.spelling import spell
from privspec.model.graph import Model
from privspec.model.requirements import Requirement
from privspec.problem.elaborate import elaborate
from privspec.problem.form import document as problem_document


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
    bits = input_grid_bits(problem, release)
    return {
        "inputs": [
            {"name": block.name, "grid": "1" if block.whole else f"2^-{bits}"} for block in problem.model.blocks
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


# --- guarantees -----------------------------------------------------------------------------------


def _guarantee(requirement: Requirement, index: int, release: LinearRelease, amount: Fraction) -> dict[str, Any]:
    notes = [*release.noise.notes, *(["group-privacy"] if requirement.neighbours.group > 1 else [])]
    return guarantee_head(requirement, index) | {
        "achieved": {release.noise.amount: decimal_up(amount)},
        "because": notes,
    }
