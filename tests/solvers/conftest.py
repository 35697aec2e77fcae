"""A plain convex program as oracle, and small programs."""

from __future__ import annotations

from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pytest
from privspec.solvers.programs import (
    Array,
    Balls,
    Differences,
    ExpectedLoss,
    GaussianProgram,
    Site,
    Vectors,
    View,
    WorstLoss,
    explicit,
    slices,
)
from scipy import sparse


def _reference(program: GaussianProgram) -> float:
    """The optimal loss by the semidefinite program of MATH.md, through a general solver."""
    m, n = program.target.shape
    constraints: list[cp.Constraint] = []
    if program.sites is None:
        sigma: cp.Expression = cp.Variable((m, m), PSD=True)
    else:
        parts = []
        for site in program.sites:
            variances = cp.Variable(site.map.shape[1], nonneg=True)
            parts.append(site.map @ cp.diag(variances) @ site.map.T)
        sigma = sum(parts)
    for view in program.views:
        rows = np.arange(m) if view.rows is None else view.rows
        shown = sigma[np.ix_(rows, rows)] if len(rows) < m else sigma
        directions = explicit(view.differences, n)
        for part in slices(directions.sizes):
            effects = program.target[rows] @ directions.matrix[:, part].toarray()
            size = effects.shape[1]
            constraints.append(cp.bmat([[shown, effects], [effects.T, np.eye(size)]]) >> 0)
    errors = cp.diag(program.loss.error_map @ sigma @ program.loss.error_map.T)
    objective = cp.max(errors) if isinstance(program.loss, WorstLoss) else cp.sum(errors)
    problem = cp.Problem(cp.Minimize(objective), constraints)
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


@pytest.fixture
def reference() -> Callable[[GaussianProgram], float]:
    return _reference


def _entries(n: int) -> Vectors:
    return Vectors(sparse.csc_array(sparse.eye_array(n)))


def _program(
    target: Array,
    *,
    differences: Differences | None = None,
    worst: bool = False,
    rows: tuple[tuple[int, ...] | None, ...] = (None,),
    sites: bool = False,
) -> GaussianProgram:
    """Replacing one entry of [0, 1]^n unless told otherwise; `sites`: noise at the input and at the output."""
    m, n = target.shape
    error_map = np.eye(m)
    views = tuple(View(None if r is None else np.array(r), differences or _entries(n)) for r in rows)
    places = (Site("x", target), Site("y", np.eye(m))) if sites else None
    return GaussianProgram(target, WorstLoss(error_map) if worst else ExpectedLoss(error_map), views, places)


@pytest.fixture
def make() -> Callable[..., GaussianProgram]:
    return _program


@pytest.fixture
def blocks() -> Callable[..., Balls]:
    def build(*sizes: int, radius: float = 1.0) -> Balls:
        stops = np.cumsum(sizes)
        return Balls(tuple(np.arange(b - s, b) for s, b in zip(sizes, stops, strict=True)), radius)

    return build
