"""From a solved mechanism back to the spec: the plan, in which each number leads to a line.

And what binds, and what a little more budget would buy. With one requirement the loss scales with its budget
(notes/placement.md). With several, a tenth more of one of them may make another bind: the spec is solved again; where
that takes too long, the price is a slope, and marked as one.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from privspec.core.diagnostics import InternalError, PrivspecError
from privspec.families.decision import Infeasible, increased, price
from privspec.families.document import decimal_up, guarantee_head, plan_document, rated
from privspec.families.linear.choose import best_loss
from privspec.families.linear.exact import Stated, achieved, read_back, view_witnesses
from privspec.families.linear.problem import Problem
from privspec.families.linear.program import lower
from privspec.families.linear.release import Candidate, LinearRelease, Mechanism, input_grid_bits
from privspec.kernel.participation import notes_of
from privspec.model.graph import Model
from privspec.model.requirements import Requirement
from privspec.problem.elaborate import elaborate, units_of
from privspec.problem.form import document as problem_document
from privspec.problem.linear import grid_of
from privspec.solvers.programs import SolverError


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
    low, among = (None, "") if bound is None else (bound.value, bound.among)
    document = {
        "problem": whole,
        **rated(
            model, loss, low, among, _units(model, sizes=problem.sizes), "worst" if problem.system.worst else "expected"
        ),
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
            },
        },
    }
    return plan_document(model, document)


def _units(model: Model, *, sizes: bool) -> str:
    """A squared error has the squared units of what the loss compares, its size the units."""
    names = [o.name for o in model.outputs]
    return "squared " * (not sizes) + "units of " + " and ".join(names)


# --- the mechanism --------------------------------------------------------------------------------


def _executed(problem: Problem, mechanism: Mechanism) -> dict[str, Any]:
    release = mechanism.release
    matrix = release.outputs_matrix if release.outputs_matrix is not None else release.inputs_matrix
    if matrix is None:
        raise InternalError("a release without reconstruction")
    bits = input_grid_bits(problem, release)
    grids = ((block.name, grid_of(block, bits)) for block in problem.model.blocks)
    fine = Fraction(1, 2**bits)
    return {
        "inputs": [{"name": name, "grid": f"2^-{bits}" if grid == fine else str(grid)} for name, grid in grids],
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
    units = units_of(requirement.neighbours, requirement.wrt)
    notes = [*release.noise.notes, *notes_of([(unit.kind, unit.count) for unit in units])]
    return guarantee_head(requirement, index) | {
        "achieved": {**release.noise.beside, release.noise.amount: decimal_up(amount)},
        "because": notes,
    }


# --- what lines cost ------------------------------------------------------------------------------


SLACK_SHARE = 1e-6
"""Share of the dual mass below which a requirement does not bind."""


RESOLVED = 4096
"""Entries of the map from inputs to outputs up to which a spec is solved again for each price."""


def binding_prices(problem: Problem, mechanism: Mechanism, loss: float) -> list[dict[str, Any]]:
    """For each requirement that binds, the relative change of the loss for a tenth more budget."""
    alone = len(problem.model.requirements) == 1 and not problem.system.limits
    if mechanism.release.noise.family == "stepped":
        return _of_laws(problem, loss)
    if not alone and problem.settings.alternatives and problem.system.target.size <= RESOLVED:
        return _solved_again(problem, loss)
    return _slopes(problem, mechanism, {} if alone else {"first_order": True})


def _of_laws(problem: Problem, loss: float) -> list[dict[str, Any]]:
    """By the law in steps for a tenth more of epsilon, where one line alone asks for it."""
    from privspec.families.linear.stepped import stepped_candidates  # most specs are of several numbers

    lines, found = problem.model.requirements, list[dict[str, Any]]()
    for amount, more in increased(lines[0]) if len(lines) == 1 else ():
        system = lower(replace(problem.model, requirements=(more,)))
        if not isinstance(system, Infeasible):
            changed = Problem(replace(problem.model, requirements=(more,)), system, problem.settings)
            found += [
                price(lines[0], after.loss / loss - 1, amount) for after in stepped_candidates(changed, bounded=False)
            ]
    return found


def _solved_again(problem: Problem, loss: float) -> list[dict[str, Any]]:
    found = []
    lines = problem.model.requirements
    for index, requirement in enumerate(lines):
        for amount, more in increased(requirement):
            changed = replace(problem.model, requirements=(*lines[:index], more, *lines[index + 1 :]))
            try:
                after = best_loss(changed, problem.settings)
            except (SolverError, PrivspecError):
                continue  # a price is a remark: the plan stands without it
            if after is not None and abs(after - loss) > SLACK_SHARE * loss:
                found.append(price(requirement, after / loss - 1, amount))
    return found


def _slopes(problem: Problem, mechanism: Mechanism, how: dict[str, Any]) -> list[dict[str, Any]]:
    """From the shares of the dual mass: d log loss / d log mu_o^2 = -p_o / sum p, by homogeneity.

    Exact where one requirement is all there is, a slope elsewhere. A bound that is not of the mechanism's own kind
    says nothing of its slope.
    """
    if mechanism.dual is None or mechanism.dual.point.limit_weights is not None:
        return []  # with accuracy lines that bind, the loss is no longer homogeneous in the budgets
    masses: dict[int, float] = {}
    for view, weights in zip(problem.system.views, mechanism.dual.point.weights, strict=True):
        masses[view.index] = masses.get(view.index, 0.0) + float(weights.sum())
    total, power = sum(masses.values()), 1 if problem.sizes else 2
    pure = mechanism.release.noise.amount == "epsilon"
    if how and pure:
        return []
    found = []
    for index, requirement in enumerate(problem.model.requirements):
        share = masses.get(index, 0.0) / total if total > 0 else 0.0
        if share <= SLACK_SHARE:
            continue
        for amount, more in increased(requirement):
            before, after = (
                r.measure.pure_epsilon if pure else r.measure.gaussian_mu_down() for r in (requirement, more)
            )
            if before is not None and after is not None:
                found.append(price(requirement, float(before / after) ** (power * share) - 1, amount) | how)
    return found
