"""The convex programs of additive noise in words, with their parameters, and what becomes of values found for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from privspec.families.decision import Decision
from privspec.families.gaussian.problem import SIGMA, VARIANCES, WEIGHTS, Problem, cones
from privspec.families.gaussian.release import Candidate, Decide
from privspec.families.program import Form, Part, Stated, Values
from privspec.model.graph import Model
from privspec.model.measures import AskedMeasure, Personalised
from privspec.problem.elaborate import elaborate
from privspec.solvers.bounds import root_of, site_maps
from privspec.solvers.gaussian import package
from privspec.solvers.programs import (
    VERTEX_LIMIT,
    Array,
    Balls,
    Boxes,
    Differences,
    GaussianProgram,
    GaussianSolution,
    Streams,
    Unprotectable,
    Watch,
    WorstLoss,
)

Again = Callable[[Problem], Candidate | Unprotectable]
"""Makes the candidate of a program once more."""


def labels_of(problem: Problem) -> tuple[str, ...]:
    """What the constraints of each view are called: its line; and for whom, where each person has an amount."""
    found = []
    for view in problem.system.views:
        line = problem.model.requirements[view.index]
        own = f", for those at {view.requirement.describe()}" if isinstance(line.measure, Personalised) else ""
        found.append(f"line {line.line}: {line.text}{own}")
    return tuple(found)


def same_but_for_amounts(problem: Problem, model: Model) -> bool:
    """Whether a model asks for other amounts of the same problem, with one for everybody."""
    lines, others = problem.model.requirements, model.requirements
    alike = [(one.outputs, one.wrt) for one in lines] == [(one.outputs, one.wrt) for one in others]
    plain = not any(isinstance(line.measure, Personalised) for line in lines)
    return alike and plain and elaborate(model).blocks == elaborate(problem.model).blocks


def amounts_of(
    problem: Problem, kind: str, amount: Callable[[AskedMeasure], float | Fraction | None], others: dict[str, Array]
) -> Callable[[Model], Values]:
    """The parameters of a program: the amount of each view's line, or of those for whom it is, and others."""

    def amounts(model: Model) -> Values:
        found = dict[str, Array]()
        for label, view in zip(labels_of(problem), problem.system.views, strict=True):
            line = model.requirements[view.index].measure
            measure = view.requirement.measure if isinstance(line, Personalised) else line
            found[f"{label}: {kind}"] = np.array(float(amount(measure) or 0))
        return found | others

    return amounts


def gaussian_form(
    decide: Decide,
    problem: Problem,
    budgets: tuple[float, ...],
    program: GaussianProgram,
    found: GaussianSolution,
    again: Again,
) -> Form | str:
    """The program over covariances, or over variances at sites; or why there is none.

    Args: program, as it was solved, with the solution that was found; again, which makes the candidate anew; decide,
        which makes a decision of it.
    """
    if any(isinstance(view.differences, Streams) for view in program.views):
        return "units that lie apart are too many sums of vectors to be listed as constraints"
    if problem.system.lowered.errors.sizes and not problem.alone:
        return "sizes of several errors are added up, which is a concave function of the variances"
    errors = problem.system.lowered.errors
    # as the outputs are named, unless there are more of them than numbers that move
    direct = program.sites is not None or not problem.system.seen_whole or _aligned(problem)
    stated, weights = program, None
    if direct:
        loss = replace(program.loss, error_map=errors.rows.csr.toarray())
        stated, weights = replace(program, target=problem.system.target, loss=loss), errors.weights
    names = " and ".join(output.name for output in problem.system.outputs)
    m, n = stated.target.shape
    rows = len(stated.loss.error_map)
    each = "w[j] (C Sigma C')[j, j]" if direct else "Sigma[j, j]"
    where = [f"F ({m} x {n}): {names if direct else 'errors'} as a linear map of the {n} numbers that are secret"]
    if direct:
        where.append(f"C ({rows} x {m}): the errors that the loss is about, of the noise of {names}; w: their weights")
    else:
        where.append(
            f"Sigma stands for the errors that the loss is about, times the roots of their weights ({m} of them)"
        )
    where.append("mu: the largest mu at which Gaussian noise meets the line")
    if program.sites is None:
        noisy = names if direct else "the errors"
        unknown = f"{SIGMA} ({m} x {m}), positive semidefinite: the covariance of the noise of {noisy}"
    else:
        places = ", ".join(f"{site.map.shape[1]} at {site.name}" for site in program.sites)
        unknown = f"{VARIANCES} >= 0: the variances of independent noise, {places}"
        size = f"{m} x {site_maps(program).shape[1]}"
        where.append(f"Sigma = M diag({VARIANCES}) M', M ({size}): what noise at places does to {names}")
    labels, unknowns = labels_of(problem), [unknown]
    parts = [
        Part(label, _formula(view.differences), sum(count for _, count in cones(view, m)))
        for label, view in zip(labels, program.views, strict=True)
    ]
    minimised = f"sum over j = 1..{rows} of {each}"
    if problem.system.worst:
        unknowns.append("t: the loss")
        each = each if problem.system.groups is None else f"sum over j in a group of {each}"
        parts.append(Part("loss", f"{each} <= t", stated.loss.count if isinstance(stated.loss, WorstLoss) else rows))
        minimised = "t"

    known = {} if weights is None else {WEIGHTS: weights}
    amounts = amounts_of(problem, "mu^2", lambda measure: (measure.gaussian_mu_down() or 0) ** 2, known)

    def state() -> Stated:
        from privspec.families.gaussian.reference import GaussianStated

        made = GaussianStated(stated, labels, budgets, weights)
        variables = {SIGMA: made.sigma} if program.sites is None else {VARIANCES: made.variances}
        if made.largest is not None:
            variables["t"] = made.largest
        back = np.eye(m) if direct else problem.system.target @ np.linalg.pinv(stated.target)
        covariance = {f"covariance of {names}": back @ made.sigma @ back.T}
        return Stated(made.problem, variables, made.parameters, made.constraints, covariance)

    def given(asked: GaussianProgram, noise: Array) -> GaussianSolution:
        own = package(asked, noise, found.dual, found.lower_bound, "values given, repaired", Watch())
        # the bound is shown with the best noise that is known
        known = found.variances
        root = found.root if known is None else site_maps(asked) * np.sqrt(np.concatenate(known))
        return replace(own, root=root)

    def settle(values: Values) -> Decision:
        if program.sites is not None:
            noise = np.sqrt(np.maximum(values[VARIANCES], 0.0))
        else:
            noise = root_of(values[SIGMA])
            if direct and problem.system.seen_whole:
                noise = np.asarray(problem.system.error_map @ noise)
        candidate = again(replace(problem, given=partial(given, noise=noise)))
        assert isinstance(candidate, Candidate)
        return decide(candidate)

    return Form(
        problem.model,
        tuple(unknowns),
        minimised,
        tuple(parts),
        tuple(where),
        amounts,
        partial(same_but_for_amounts, problem),
        state,
        settle,
    )


def _aligned(problem: Problem) -> bool:
    """Whether each error is that of one output, all of them count, and there are no more than inputs."""
    rows = problem.system.lowered.errors.rows.csr
    square = rows.shape[0] == rows.shape[1] == rows.nnz and bool(np.all(rows.diagonal() != 0))
    return square and problem.system.outputs_count <= problem.system.inputs_count


def _formula(differences: Differences) -> str:
    """What one constraint says."""
    match differences:
        case Balls():
            return "[[Sigma, r F B], [(r F B)', mu^2 I]] >= 0 for each ball of radius r, B its coordinates"
        case Boxes() if any(edges.shape[1] > VERTEX_LIMIT for _, edges in differences.edges()):
            return "[[Sigma, F E], [(F E)', diag(q)]] >= 0, sum(q) <= mu^2, for each box of edges E (sufficient)"
        case _:
            return (
                "[[Sigma, F d], [(F d)', mu^2]] >= 0, which is d' F' Sigma^-1 F d <= mu^2, for each change d of a unit"
            )
