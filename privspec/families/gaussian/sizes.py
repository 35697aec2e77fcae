"""Losses that add up sizes of errors: the best noise for them, and what each law makes of an error's size.

The sum of w sqrt(S) over the variances S of errors is concave in the noise, yet its stationary points are optima: each
is the optimum of squares with weights w / sqrt(S), whose dual point proves it (noise/notes/sizes.md). So squares are
solved again and again, with the weights of the noise before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import inf, log, sqrt
from typing import TypeVar

import numpy as np

from privspec.core.sparse import SparseMatrix
from privspec.families.gaussian.problem import NORMAL, Problem
from privspec.families.gaussian.release import Candidate, LinearRelease, judged
from privspec.kernel.core.linear import Measured
from privspec.kernel.core.numbers import fraction, rational
from privspec.kernel.core.reading import Refused
from privspec.kernel.worth.sizes import expected_sizes, size_up
from privspec.problem.linear import exact_matrix
from privspec.problem.linear_lowering import Limit
from privspec.solvers.programs import Array

T = TypeVar("T")
ROUNDS = 60
STILL = 1e-10
"""Relative change of the loss at which it is taken for its limit."""
LEAST = 1e-9
"""Share of the largest deviation that the least one counts as."""
SUMS = 2**17
"""Numbers in all errors together up to which the sizes of sums of noises are worked out."""


def sized(problem: Problem, build: Callable[[Problem], T]) -> T:
    """What a builder of candidates for squares makes of a loss of sizes: the same for a loss of squares."""
    errors = problem.system.lowered.errors
    if not errors.sizes:
        return build(problem)
    if problem.alone:
        found = build(problem.of_squares(errors.weights**2))
        return _valued(problem, found, errors.weights**2 * NORMAL**2)  # type: ignore[return-value]
    weights, before = errors.weights.copy(), np.inf
    for _ in range(ROUNDS):
        found = build(problem.of_squares(weights))
        if not isinstance(found, Candidate) or found.mechanism is None:
            return found
        release = found.mechanism.release
        # the standard deviations (q,) of the error terms
        root = release.noise_map(problem.system.target)
        deviations = np.linalg.norm(np.asarray(problem.system.error_map @ root), axis=1)
        value = float(deviations.sum())
        used = weights
        if abs(before - value) <= STILL * value:
            break
        before = value
        # the slopes of the loss in the variances, so that prices of lines are in its units
        weights = NORMAL / 2 * errors.weights**2 / np.maximum(deviations, LEAST * deviations.max())
    return _valued(problem, found, used)  # type: ignore[return-value]


def _valued(problem: Problem, found: object, weights: Array) -> object:
    """A candidate with its own loss, and the weights of squares that its dual point is about."""
    if not isinstance(found, Candidate) or found.mechanism is None:
        return found
    loss, mechanism = size_of(problem, found.mechanism.release), found.mechanism
    if loss is None:
        return None
    dual = None if mechanism.dual is None else replace(mechanism.dual, weights=weights)
    return replace(found, loss=loss, lower_bound=None, mechanism=replace(mechanism, dual=dual))


def size_of(problem: Problem, release: LinearRelease) -> float | None:
    """The loss, of sizes of errors, under a release; None where that is not known."""
    each = sizes_of(problem.system.lowered.errors.scaled, problem, release)
    return None if each is None else float(each.max() if problem.system.worst else each.sum())


def sizes_of(rows: SparseMatrix, problem: Problem, release: LinearRelease) -> Array | None:
    """The expected size of rows (q, m) of the errors of the outputs; None where that is not known."""
    moved = np.asarray(rows @ release.output_map(problem.system.target))
    squares = np.asarray(moved**2 @ release.row_variances())
    if release.noise.normal:
        return np.asarray(NORMAL * np.sqrt(squares))
    if np.count_nonzero(moved) > SUMS:
        return None
    try:
        exact = [rational(Fraction(square)) for square in squares.tolist()]
        found = expected_sizes(judged(problem, release), exact_matrix(moved), exact)
    except Refused:
        return None
    return np.array([float(fraction(size)) for size in found])


def line_value(problem: Problem, release: LinearRelease, limit: Limit) -> float:
    """What an accuracy line bounds, under a release: sums of squares, a size, or one that a probability is about.

    Infinite where that is not known.
    """
    errors = limit.errors
    if errors.sizes:
        found = sizes_of(errors.scaled, problem, release)
        return inf if found is None else float(found.sum())
    moved = np.asarray(errors.scaled @ release.output_map(problem.system.target))
    square = float((moved**2 @ release.row_variances()).sum())
    if limit.probability is None:
        return square
    if release.noise.normal:
        return float(limit.bound) * sqrt(square / float(limit.square))
    one = Measured(None, (Fraction(1),))
    try:
        return float(size_up(judged(problem, release), one, exact_matrix(moved), Fraction(square), limit.probability))
    except Refused:
        return inf


def variance_limit(limit: Limit) -> float:
    """What the variance of an error of one scale may be about at most, to meet an accuracy line."""
    if limit.errors.sizes:
        return 2 * float(limit.bound) ** 2
    if limit.probability is None:
        return float(limit.bound)
    return 2 * (float(limit.bound) / log(1 / (1 - limit.probability))) ** 2
