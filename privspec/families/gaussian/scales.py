"""The convex program of the scales of Laplace noise at a place, in words, with its parameters, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from privspec.families.decision import Decision
from privspec.families.gaussian.places import Place
from privspec.families.gaussian.problem import INVERSE, STEPS, WEIGHTS, Problem
from privspec.families.gaussian.release import Candidate, Decide
from privspec.families.gaussian.stated import labels_of, same_but_for_amounts
from privspec.families.program import Form, Part, Stated, Values
from privspec.kernel.laws.laplace import Laplace
from privspec.model.graph import Model
from privspec.model.measures import Personalised
from privspec.solvers.programs import Array

LEAST = 1e-9
"""Share of the largest inverse scale that the least one counts as."""


def scales_form(
    problem: Problem,
    place: Place,
    changes: Sequence[Array],
    weights: Array,
    step: Fraction | None,
    anew: Callable[..., Candidate | None],
    decide: Decide,
) -> Form | str:
    """The program over the scales of Laplace noise at a place; or why there is none.

    Args: changes (N, k), of each view, how far rows move; weights (J, k), of the variances in each of J losses of which
        the largest counts; step, of the lattice of the noise where that is coarse; anew, the candidate at other scales.
    """
    if place.law is not Laplace:
        return "its noise is of a law whose variance is no convex function that a solver knows"
    if problem.sizes or problem.system.limits:
        return "sizes of errors, or lines of accuracy, are about Laplace noise, and are not stated as constraints"
    labels, k = labels_of(problem), weights.shape[1]
    parts = [
        Part(label, "sum over j of m[j] u[j] <= epsilon, m[j] how far a unit moves number j", len(own))
        for label, own in zip(labels, changes, strict=True)
    ]
    variance = "2 / u[j]^2"
    if step is not None:
        variance = f"{step}^2 2 q / (1 - q)^2 with q = e^(-{step} u[j]), of noise in steps of {step}"
        parts.append(
            Part(STEPS, "e^(-y[j]) + e^(-a[j]) <= 1, a steps in a scale: v[j] is 2 e^(2 y[j] - a[j]) steps squared", k)
        )
    each = f"sum over j = 1..{k} of w[j] v[j]"
    if len(weights) > 1:
        parts.append(Part("loss", f"{each} <= t, for each error", len(weights)))

    def state() -> Stated:
        from privspec.families.gaussian.reference import scales_stated

        return scales_stated(dict(zip(labels, changes, strict=True)), amounts(problem.model), weights, step)

    def amounts(model: Model) -> Values:
        lines = (model.requirements[view.index].measure for view in problem.system.views)
        pairs = zip(labels, problem.system.views, lines, strict=True)
        return {
            f"{label}: epsilon": np.array(
                float((view.requirement.measure if isinstance(line, Personalised) else line).pure_epsilon or 0)
            )
            for label, view, line in pairs
        } | {WEIGHTS: weights}

    def settle(values: Values) -> Decision:
        scales = 1 / np.maximum(values[INVERSE], LEAST * np.max(values[INVERSE], initial=LEAST))
        candidate = anew(given=scales)
        assert candidate is not None
        return decide(candidate)

    return Form(
        problem.model,
        (f"{INVERSE} ({k}) > 0: one over the scale of the noise {place.where}, for each number there",),
        each if len(weights) == 1 else "t",
        tuple(parts),
        (f"v[j]: the variance of the noise on number j, {variance}", "w: what the loss makes of it"),
        amounts,
        partial(same_but_for_amounts, problem),
        state,
        settle,
    )
