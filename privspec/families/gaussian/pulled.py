"""Answers that are pulled towards public values: less loss at the worst data, for a bias (noise/notes/pulled.md).

Where the loss is an average over a law of the data, the best estimates that are affine in the noisy answers are taken:
E[T u] + T C B' (B C B' + N)^-1 (z - B E[u]) for z = B u + noise of variances N, C the covariance of the data.

Answers y with noise that averages to 0 become s y + (1 - s) c, a factor s and a public value c for each, the middle of
what is possible: their squared error is at most (1 - s)^2 b^2 + s^2 v, with v the variance and b the farthest that the
answer is from c, which is least at s = b^2 / (b^2 + v). The least of all data-free answers is c itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from privspec.core.matrices import DyadicMatrix
from privspec.core.records import dataclass, replace
from privspec.families.gaussian.problem import Problem
from privspec.families.gaussian.release import Candidate, LinearRelease, Mechanism, judged, output_grid
from privspec.families.gaussian.release import rounded_reconstruction as rounded
from privspec.kernel.core.linear import Linear
from privspec.kernel.core.reading import Refused
from privspec.kernel.linear import Figures
from privspec.kernel.worth.bias import EUCLIDEAN, HeldSet, middle_and_sets, moments
from privspec.solvers.programs import Array

WORTHWHILE = 0.99
"""Answers are pulled where their loss is at most so much of that of answers that are right on average."""
LARGEST = 2**20
"""Numbers of the map from the noise to the outputs up to which each output has a factor of its own."""
BY_LAW = "with what the model of the data says"
COMPARED = 2**12
"""Numbers of the inputs up to which the middle is told of where it is not allowed."""
PULLED = "pulled towards the middle"
CONSTANT = "the middle, whatever the data"
WRONG = "wrong on average, which E[...] does not allow: worst[...] takes it, or better, where it loses less"
RIGHT = "more loss: averages are what is asked for"


@dataclass(frozen=True, eq=False, slots=True)
class Middle:
    """Of each output (m,) the public value that it is pulled to; of each error term (q,) how far that may be off.

    `loss`: that of these values themselves, at most.
    """

    values: Array
    far: Array
    loss: float


def middle_of(problem: Problem) -> Middle | None:
    """The middle of what the inputs allow; None where they have no ends, or nobody knows how many they are."""
    model, system, block = problem.model, problem.system, problem.block
    if block.vectors or system.groups is not None or any(line.neighbours.adding for line in model.requirements):
        return None
    try:
        middle, sets = middle_and_sets(block, set(np.flatnonzero(system.target.any(axis=0)).tolist()))
    except Refused:
        return None
    values = system.target @ np.array(list(map(float, middle)))
    reach = _reach(problem.errors, sets)
    each = reach if problem.sizes else reach**2
    return Middle(values, reach, float(each.max() if system.worst else each.sum()))


def _reach(errors: Array, sets: list[HeldSet]) -> Array:
    """At most how far weighted error terms (q, n) move from their middle, when the inputs take any values."""
    found = np.zeros(len(errors))
    for one in sets:
        moved = np.stack([sum(errors[:, i] * float(v) for i, v in moves) for moves in one.corners])
        found += np.linalg.norm(moved, axis=0) if one.kind == EUCLIDEAN else np.abs(moved).max(axis=0)
    return found


def pulled_candidates(problem: Problem, best: Candidate) -> Iterator[Candidate]:
    """The answers of a candidate pulled to the middle, and the middle itself; under a law the best that are affine.

    Where averages must be right the middle is only told of, if it loses less at the worst data.
    """
    model, block = problem.model, problem.block
    told = block.biased or problem.system.inputs_count <= COMPARED
    middle = middle_of(problem) if told and best.mechanism is not None else None
    if best.mechanism is None or middle is None:
        return
    if not block.biased:
        if middle.loss < best.loss and not model.unbiased:
            yield Candidate(CONSTANT, "constant", middle.loss, WRONG, False)
        return
    if block.law is not None:
        found = _by_law(problem, best, best.mechanism)
        if model.noise_at is None and found is not None and found.loss <= WORTHWHILE * best.loss:
            yield found
        return
    if model.noise_at is None and middle.loss * best.loss <= WORTHWHILE * best.loss * (middle.loss + best.loss):
        found = min(_pulled(problem, best, best.mechanism, middle), key=lambda one: one.loss, default=None)
        if found is not None and found.loss <= WORTHWHILE * best.loss:
            yield found
    yield Candidate(CONSTANT, "constant", middle.loss, "more loss")


def _pulled(problem: Problem, best: Candidate, mechanism: Mechanism, middle: Middle) -> Iterator[Candidate]:
    for factors in _factors(problem, best, mechanism.release, middle):
        release = shrunk(problem, mechanism.release, factors, middle.values)
        if release is None:
            continue
        loss = float(Figures.of(judged(problem, release)).value)
        own = replace(mechanism, release=release, sites=())
        name = f"{best.name}, {PULLED}"
        yield Candidate(name, best.family, loss, "less loss", mechanism=own)


def _by_law(problem: Problem, best: Candidate, mechanism: Mechanism) -> Candidate | None:
    """The best estimates that are affine in the noisy answers, under the law of the data (Wiener)."""
    mean, _ = moments(problem.block)
    if problem.system.target.size > LARGEST:
        return None
    release, centre = mechanism.release, np.array(list(map(float, mean)))
    spread = _covariance(problem.block, len(mean))
    answers = release.strategy.to_float()
    seen = answers @ spread @ answers.T + np.diag(release.row_variances())
    through = np.linalg.lstsq(seen, answers @ spread, rcond=None)[0].T
    outputs = problem.system.target @ through
    shift = tuple(map(Fraction, (problem.system.target @ centre - outputs @ (answers @ centre)).tolist()))
    deviations = np.sqrt(outputs**2 @ release.row_variances())
    made = replace(
        release,
        outputs_matrix=rounded(outputs),
        inputs_matrix=None,
        output_grid=output_grid(deviations),
        shift=shift,
    )
    loss = float(Figures.of(judged(problem, made)).value)
    own = replace(mechanism, release=made, sites=())
    return Candidate(f"{best.name}, {BY_LAW}", best.family, loss, "less loss", mechanism=own)


def _covariance(block: Linear, size: int) -> Array:
    """Of the coordinates: those of a table are counts of records, others are independent."""
    found = np.zeros((size, size))
    for held, law in zip(block.held, block.law or (), strict=True):
        at, one = block.places[held.start]
        span = slice(at, at + len(one.numbers))
        if law.chances is None:
            np.fill_diagonal(found[span, span], np.array(one.numbers) * float(law.variance))
        else:
            chances = np.array(list(map(float, law.chances)))
            found[span, span] = (held.records or 0) * (np.diag(chances) - np.outer(chances, chances))
    return found


def _factors(problem: Problem, best: Candidate, release: LinearRelease, middle: Middle) -> Iterator[Array]:
    """Factors (m,) that may be best: one for all outputs, and one for each that is an error term by itself."""
    size = problem.system.outputs_count
    if problem.sizes:
        yield np.zeros(size)
        return
    yield np.full(size, middle.loss / (middle.loss + best.loss))
    rows = problem.system.error_map
    if rows.shape == (size, size) == (rows.nnz, rows.nnz) and np.all(rows.diagonal()):
        weights = rows.diagonal() ** 2
        squares = middle.far**2
        noise = weights * release.output_variances(problem.system.target)
        with np.errstate(invalid="ignore"):
            yield np.where(noise > 0, squares / (squares + noise), 1.0)


def shrunk(problem: Problem, release: LinearRelease, factors: Array, values: Array) -> LinearRelease | None:
    """The release with each output times its factor, and the public value for the rest; None where it is too large."""
    short = np.ldexp(np.rint(np.ldexp(factors, 40)), -40)
    shift = tuple(Fraction(value) for value in ((1 - short) * values).tolist())
    deviations = np.sqrt(release.output_variances(problem.system.target)) * short
    alike = bool(np.all(short == short[0]))
    outputs: DyadicMatrix | None = release.outputs_matrix
    inputs = None
    if outputs is None and release.inputs_matrix is not None:
        if alike:
            inputs = rounded(release.inputs_matrix.to_float() * short[0])
        elif len(problem.system.target) * release.strategy.shape[0] <= LARGEST:
            outputs = rounded(release.output_map(problem.system.target) * short[:, None])
        else:
            return None
    elif outputs is not None:
        outputs = rounded(outputs.to_float() * short[:, None])
    grid = output_grid(deviations)
    return replace(release, outputs_matrix=outputs, inputs_matrix=inputs, output_grid=grid, shift=shift)
