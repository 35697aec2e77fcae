"""The program of Gaussian noise in cvxpy, as written in the notes, without any trick; and what solving it gives.

Slow (an LMI a difference) and therefore the yardstick of the special solvers, and their fallback for programs
that they decline. What `program()` shows is stated here too.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import log
from typing import Any

import cvxpy
import numpy as np
import scipy

from privspec.core.records import dataclass, field, replace
from privspec.families.gaussian.problem import INVERSE, SIGMA, STEPS, VARIANCES, WEIGHTS, cones
from privspec.families.program import Stated, Values, labelled
from privspec.solvers.bounds import lower_bound, root_of, site_maps
from privspec.solvers.gaussian import package
from privspec.solvers.programs import (
    VERTEX_LIMIT,
    Array,
    Boxes,
    Differences,
    DualPoint,
    ExpectedLoss,
    GaussianProgram,
    GaussianSolution,
    Indices,
    NotSpecialError,
    OutOfTimeError,
    ReferenceFailedError,
    Watch,
    WorstLoss,
    box_vertices,
    explicit,
    on_block,
    seen_rows,
    slices,
)

cp: Any = cvxpy
"""cvxpy under its usual name; its atoms are built at run time and have no types."""
LARGEST_CONES = 5e7
"""Squared entries of all cones together: the doubles that one step of the solver factors in a minute or so."""


class TooLargeError(NotSpecialError):
    """The program would fill the memory before the general solver begins."""

    def __init__(self, program: GaussianProgram) -> None:
        super().__init__(
            f"{len(program.target)} outputs under {sum(count for _, count in _cones(program)):,} conditions are too "
            "many for the general convex solver, and no special one takes this program"
        )
        if program.limits:
            self.advice = "ask for the accuracy in the loss instead of a line: a term of more weight has less error"


def solve_with_cvxpy(
    program: GaussianProgram, solver: str | None = None, deadline: float | None = None
) -> GaussianSolution:
    """The optimum of a Gaussian program by cvxpy, repaired to strict feasibility and with its dual point.

    Raises: ReferenceFailedError if no usable solution comes back, TooLargeError, OutOfTimeError.
    Source: Ramon & Basu 2020, section 3.2; notes/placement.md (Schur complement form).
    """
    watch = Watch()
    if sum(count * (side * (side + 1) / 2) ** 2 for side, count in _cones(program)) > LARGEST_CONES:
        raise TooLargeError(program)
    stated = GaussianStated(program)
    problem = stated.problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            options = {"time_limit": deadline} if deadline is not None and solver is None else {}
            problem.solve(solver=solver or cp.CLARABEL, **options)
        except cp.SolverError as error:
            raise ReferenceFailedError("solver_error") from error
    if problem.status == cp.USER_LIMIT:
        raise OutOfTimeError(None)
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise ReferenceFailedError(problem.status)
    dual, noise = stated.dual(), stated.noise()
    root = noise if program.sites is None else site_maps(program) * noise
    watch.iterations = int(problem.solver_stats.num_iters or 0)
    method = f"cvxpy ({problem.solver_stats.solver_name})"
    return package(program, noise, dual, _bound(program, dual, root), method, watch)


@dataclass(eq=False)
class GaussianStated:
    """A Gaussian program in cvxpy.

    `labels`: what the constraints of each view and limit are called; `budgets`: the mu of each view, by whose inverse
    the differences of the program are multiplied already; `weights`: those of the squared rows of the loss, which the
    program's rows are without.
    """

    program: GaussianProgram
    labels: tuple[str, ...] = ()
    budgets: tuple[float, ...] = ()
    weights: Array | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    constraints: dict[str, list[Any]] = field(default_factory=dict)
    blocks: list[list[_Block]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """State every constraint."""
        program, m = self.program, len(self.program.target)
        self.variances: Any = None
        if program.sites is None:
            self.sigma: Any = cp.Variable((m, m), name=SIGMA, PSD=True)
        else:
            maps = site_maps(program)
            self.variances = cp.Variable(maps.shape[1], name=VARIANCES, nonneg=True)
            self.sigma = maps @ cp.diag(self.variances) @ maps.T
        labels = self.labels or tuple(map(str, range(len(program.views) + len(program.limits))))
        for k, (view, label) in enumerate(zip(program.views, labels, strict=False)):
            budget = self.budgets[k] if self.budgets else 1.0
            square = self._parameter(f"{label}: mu^2", budget**2) if self.budgets else 1.0
            own = list(_blocks(program, seen_rows(view, m), view.differences, self.sigma, budget, square))
            self.blocks.append(own)
            found = self.constraints.setdefault(label, [])
            found += [block.constraint for block in own]
            found += [cp.sum(block.corner) <= square for block in own if block.corner is not None]
        C = program.loss.error_map
        losses = cp.sum(cp.multiply(C @ self.sigma, C), axis=1)
        if self.weights is not None:
            losses = cp.multiply(self._parameter(WEIGHTS, self.weights), losses)
        self.worst: Any = None
        self.largest: Any = None
        objective = cp.sum(losses)
        if isinstance(program.loss, WorstLoss):
            objective = self.largest = cp.Variable(name="t")
            loss = program.loss
            groups = np.eye(len(C)) if loss.groups is None else np.eye(loss.count)[:, loss.groups]
            self.worst = groups @ losses <= objective
            self.constraints["loss"] = [self.worst]
        self.limits = [
            cp.sum(cp.multiply(c.error_map @ self.sigma, c.error_map)) / c.bound <= 1 for c in program.limits
        ]
        for limit, label in zip(self.limits, labels[len(program.views) :], strict=True):
            self.constraints.setdefault(label, []).append(limit)
        self.problem = cp.Problem(cp.Minimize(objective), labelled(self.constraints))

    def _parameter(self, name: str, value: Any) -> Any:
        if name not in self.parameters:
            self.parameters[name] = cp.Parameter(np.shape(value), name=name, nonneg=True, value=value)
        return self.parameters[name]

    def noise(self) -> Array:
        """A root of the covariance that was found, or the standard deviations at sites."""
        if self.variances is not None:
            return np.asarray(np.sqrt(np.maximum(self.variances.value, 0.0)))
        return root_of(np.asarray(self.sigma.value, dtype=float))

    def dual(self) -> DualPoint:
        """The multipliers that were found."""
        loss_weights = limit_weights = None
        if self.worst is not None:
            raw = np.maximum(np.asarray(self.worst.dual_value, dtype=float), 0.0)
            loss_weights = raw / raw.sum()
        if self.limits:
            prices = np.array([max(float(c.dual_value), 0.0) for c in self.limits])
            limit_weights = prices / np.array([c.bound for c in self.program.limits])
        return replace(_dual_point(self.program, self.blocks, loss_weights), limit_weights=limit_weights)


def scales_stated(changes: Mapping[str, Array], amounts: Values, weights: Array, step: Fraction | None) -> Stated:
    """The program of scales: how far units move numbers (N, k) by line, and weights (J, k) of their variances.

    Args: amounts, of the parameters; step, of the lattice of the noise where that is coarse. There the variance is
        2 q / (1 - q)^2 for q = e^-a, a steps in a scale, whose logarithm is log 2 - a - 2 log(1 - q).
    """
    inverse = cp.Variable(weights.shape[1], name=INVERSE, nonneg=True)
    parameters = {
        name: cp.Parameter(np.shape(value), name=name, nonneg=True, value=value) for name, value in amounts.items()
    }
    constraints = {label: [moved @ inverse <= parameters[f"{label}: epsilon"]] for label, moved in changes.items()}
    variables = {INVERSE: inverse}
    variances = 2 * cp.power(inverse, -2)
    if step is not None:
        steps, more = float(step) * inverse, cp.Variable(weights.shape[1], name="y")
        constraints[STEPS] = [cp.exp(-more) + cp.exp(-steps) <= 1]
        variances = float(step) ** 2 * cp.exp(log(2) - steps + 2 * more)
    losses = parameters[WEIGHTS] @ variances
    objective = cp.sum(losses)
    if len(weights) > 1:
        objective = cp.Variable(name="t")
        constraints["loss"] = [losses <= objective]
    problem = cp.Problem(cp.Minimize(objective), labelled(constraints))
    return Stated(problem, variables, parameters, constraints, {"variances": variances})


def _bound(program: GaussianProgram, dual: DualPoint, root: Array) -> float:
    """The certified lower bound; limits join the loss at their prices, and their bounds are paid back."""
    if dual.limit_weights is None:
        return lower_bound(program, dual, root)
    if isinstance(program.loss, WorstLoss):
        weights = dual.loss_weights if dual.loss_weights is not None else np.ones(program.loss.count)
        weights = program.loss.spread(weights)
        loss_rows = np.sqrt(weights)[:, None] * program.loss.error_map
    else:
        loss_rows = program.loss.error_map
    priced = [np.sqrt(nu) * limit.error_map for nu, limit in zip(dual.limit_weights, program.limits, strict=True)]
    joined = replace(program, loss=ExpectedLoss(np.vstack([loss_rows, *priced])), limits=())
    paid = sum(float(nu) * limit.bound for nu, limit in zip(dual.limit_weights, program.limits, strict=True))
    return max(
        lower_bound(joined, replace(dual, limit_weights=None, loss_weights=None), root) - paid * (1 + 1e-15), 0.0
    )


def _cones(program: GaussianProgram) -> Iterator[tuple[int, int]]:
    """Side and number of the positive semidefinite matrices of a program."""
    for view in program.views:
        yield from cones(view, len(program.target))


@dataclass(frozen=True, eq=False, slots=True)
class _Block:
    """One LMI `[[Sigma_o, P F D], [., R]] >= 0` and the columns D that it protects; `corner` R's of a relaxed box."""

    constraint: Any
    columns: Array
    corner: Any = None


def _blocks(
    program: GaussianProgram, rows: Indices, differences: Differences, sigma: Any, budget: float, square: Any
) -> Iterator[_Block]:
    """The LMIs of a view; what differences, divided by the budget, move is stated beside its square."""
    seen, target = sigma[rows, :][:, rows], program.target[rows] * budget
    for columns, relaxed in _columns(differences, program.target.shape[1]):
        corner = cp.Variable(columns.shape[1], nonneg=True) if relaxed else None
        image = target @ columns
        inner = square * np.eye(columns.shape[1]) if corner is None else cp.diag(corner)
        yield _Block(cp.bmat([[seen, image], [image.T, inner]]) >> 0, columns, corner)


def _columns(differences: Differences, n: int) -> Iterator[tuple[Array, bool]]:
    """Columns that one LMI protects together, and whether its corner is the relaxed box of notes/placement.md."""
    if isinstance(differences, Boxes):
        for block, edges in differences.edges():
            if edges.shape[1] > VERTEX_LIMIT:
                yield on_block(edges, block, n).toarray(), True
            else:
                vertices = on_block(box_vertices(edges), block, n).toarray()
                yield from ((vertices[:, [k]], False) for k in range(vertices.shape[1]))
        return
    directions = explicit(differences, n)
    dense = directions.matrix.toarray()
    yield from ((dense[:, part], False) for part in slices(directions.sizes))


def _dual_point(program: GaussianProgram, blocks: list[list[_Block]], loss_weights: Array | None) -> DualPoint:
    """Weights from the corners of the dual matrices, each split along its eigenvectors."""
    columns, weights = [], []
    for view in blocks:
        found: list[Array] = []
        mass: list[float] = []
        for block in view:
            size = block.columns.shape[1]
            corner = np.asarray(block.constraint.dual_value, dtype=float)[-size:, -size:]
            values, vectors = np.linalg.eigh((corner + corner.T) / 2)
            if block.corner is not None:
                # the dual of a relaxed box has no vertex decomposition; sign vectors of its factors are admissible
                vectors = np.sign(vectors) + (vectors == 0)
            kept = values > 0
            found += list((block.columns @ vectors[:, kept]).T)
            mass += values[kept].tolist()
        columns.append(scipy.sparse.csc_array(np.array(found).T if found else np.zeros((program.target.shape[1], 0))))
        weights.append(np.array(mass))
    return DualPoint(tuple(columns), tuple(weights), loss_weights)
