"""Column generation over the rays of a simple cone: one row per input for any number of ratios (notes/tables.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from highspy import HighsModelStatus
from numpy.typing import NDArray
from privspec.solvers.programs import Array, Indices, OutOfTimeError, SolverError, Watch
from privspec.solvers.table_interior import Cone
from privspec.solvers.table_programs import TableDual, TableProgram
from privspec.solvers.table_rows import HighsProgram
from scipy import sparse
from scipy.sparse.linalg import splu

_SMOOTHING = 0.8
_CENTRAL = 40  # inputs from which worst cases are solved by interior points
_CENTRAL_SMOOTHING = 0.5
_NEGLIGIBLE = 1e-12  # the smallest matrix entry that HiGHS keeps
_PATIENCE = 50
_MOST_SHIFTS = 12
_MOST_RAYS = 4000  # beyond, the interior point itself is the answer
_CLOSED = 1e-7
_UNPROVEN = 10.0  # ranks prices whose shift has not settled below those that prove their bound


@dataclass(frozen=True, eq=False, slots=True)
class _Prices:
    """Multipliers of the row sums and of the inputs' losses, and the bound that they prove."""

    bound: float
    weights: Array
    loss_weights: Array | None

    def towards(self, other: _Prices, share: float) -> _Prices:
        """A mixture with `share` of these prices; its bound is not known yet."""
        loss_weights = None
        if self.loss_weights is not None and other.loss_weights is not None:
            loss_weights = share * self.loss_weights + (1 - share) * other.loss_weights
        return _Prices(-np.inf, share * self.weights + (1 - share) * other.weights, loss_weights)

    def reduced(self, program: TableProgram) -> Array:
        """Reduced costs of the entries of the table (X, Y)."""
        cost = program.cost if self.loss_weights is None else program.cost * self.loss_weights[:, None]
        return cost - self.weights[:, None]


def solve_cone(program: TableProgram, cone: Cone, tolerance: float, watch: Watch) -> ConeResult:
    """Column generation until value and Lagrangian bound agree within `tolerance` relative, or the deadline."""
    found = cone.interior(program, watch)
    best = None
    if found is not None:
        _, best = _prove(cone, _Prices(-np.inf, found.weights, found.loss_weights), program)
        if found.rays > _MOST_RAYS:
            value = _value(program, found.table)
            return ConeResult(found.table, value, _dual(cone, best, program), program.shape[0], _open(value, best))
    master = _Master(program, cone.sparsifier())
    if program.worst and found is None and program.shape[0] >= _CENTRAL:
        master.use_centre()
    for rays, outputs in cone.starts(program.cost) if found is None else found.starts():
        master.add(rays, outputs)
    notes: tuple[str, ...] = ()
    last, stalled = (np.inf, -np.inf), 0
    while True:
        try:
            value, prices = master.solve(watch)
        except SolverError:
            if not master.central and not watch.expired:
                master.use_centre()
                continue
            if best is None or master.amounts is None:
                raise
            # Rays that differ by little make the program over rays hard in the end: the last solution stands.
            value, notes = master.value, _open(master.value, best)
            break
        allowed = max(abs(value), 1e-12) * tolerance
        added = 0
        # Prices near the best ones so far give far better rays than the vertex of the master program's dual
        # (Wentges 1997); where they give none that helps, the vertex itself is tried.
        for trial in (prices,) if best is None else (best.towards(prices, master.smoothing), prices):
            rays, proven = _prove(cone, trial, program)
            best = proven if best is None or proven.bound > best.bound else best
            added = _add_improving(master, cone.parts, rays, prices.reduced(program), allowed)
            if added:
                break
        assert best is not None
        watch.step(value, best.bound)
        stalled = 0 if (value, best.bound) != last else stalled + 1
        last = (value, best.bound)
        if value - best.bound <= allowed or not added or stalled > _PATIENCE:
            break
        if watch.expired:
            notes = (f"stopped at the deadline with a relative gap of {(value - best.bound) / abs(value):.1e}",)
            break
    return ConeResult(master.table(), value, _dual(cone, best, program), master.rows, notes)


def _dual(cone: Cone, prices: _Prices, program: TableProgram) -> TableDual:
    return TableDual((cone.dual(prices.reduced(program)),), np.zeros(0), np.zeros(0), prices.loss_weights)


def _value(program: TableProgram, table: Array) -> float:
    rows = np.sum(program.cost * table, axis=1)
    return float(rows.max() if program.worst else rows.sum())


def _open(value: float, prices: _Prices) -> tuple[str, ...]:
    """What to say of a gap that is not closed."""
    gap = (value - prices.bound) / max(abs(value), 1e-300)
    return (f"stopped at a relative gap of {gap:.1e}",) if gap > _CLOSED else ()


def _prove(cone: Cone, trial: _Prices, program: TableProgram) -> tuple[Array, _Prices]:
    """The rays that the prices ask for, and the prices lowered just enough to prove a bound.

    Lowering all weights of a component by k adds k for each input to the price of a ray (of mean one): the least k is
    found by Dinkelbach's iteration.
    """
    reduced = trial.reduced(program)
    least, first = cone.price(reduced)
    weights = trial.weights.copy()
    for _ in range(_MOST_SHIFTS):
        shifts = np.maximum(-least.min(axis=1), 0.0) / cone.parts.sum(axis=1)
        if not shifts.any():
            break
        lowered = shifts @ cone.parts
        weights -= lowered
        reduced = reduced + lowered[:, None]
        least, _ = cone.price(reduced)
    shortfall = float(np.sum(np.maximum(-least.min(axis=1), 0.0)))
    return first, _Prices(float(weights.sum()) - shortfall * _UNPROVEN, weights, trial.loss_weights)


def _add_improving(master: _Master, parts: NDArray[np.bool_], rays: Array, reduced: Array, allowed: float) -> int:
    """Add the rays whose reduced cost is negative."""
    added = 0
    for part in parts:
        least = np.sum(rays[part] * reduced[part], axis=0)
        columns = np.flatnonzero(least < -0.01 * allowed / len(part))
        added += len(columns)
        master.add(rays[:, columns] * part[:, None], columns)
    return added


@dataclass(frozen=True, eq=False, slots=True)
class ConeResult:
    """The table (X, Y), its loss, the dual, the rows of the master program, and what the user should know."""

    table: Array
    value: float
    dual: TableDual
    rows: int
    notes: tuple[str, ...]


class _Master:
    """The program over rays: nonnegative multiples whose columns sum to one in each row.

    Its rows are those of the row sums, transformed by the cone's sparsifier.
    """

    def __init__(self, program: TableProgram, sparsifier: sparse.csc_array) -> None:
        self.program = program
        self.sparsifier = sparsifier
        size = program.shape[0]
        self.rows = size * (2 if program.worst else 1)
        self.lp = HighsProgram(primal=True)
        totals = sparsifier @ np.ones(size)
        self.lp.add_rows(
            np.concatenate((totals, np.full(self.rows - size, -np.inf))),
            np.concatenate((totals, np.zeros(self.rows - size))),
        )
        self.central, self.smoothing = False, _SMOOTHING
        self.amounts: Array | None = None
        self.value = np.inf
        self.steps: list[sparse.csc_array] = []
        self.outputs: list[Indices] = []
        if program.worst:
            level = np.concatenate((np.zeros(size), -np.ones(size)))
            self.lp.add_columns(np.ones(1), np.full(1, -np.inf), np.full(1, np.inf), sparse.csc_array(level[:, None]))

    def add(self, rays: Array, outputs: Indices) -> None:
        """Add rays (X, N), each to be used for one output."""
        if not len(outputs):
            return
        entries = self.sparsifier @ rays
        entries[np.abs(entries) < _NEGLIGIBLE] = 0.0
        steps = sparse.csc_array(entries)
        costs = rays * self.program.cost[:, outputs]
        if self.program.worst:
            matrix, prices = sparse.vstack((steps, sparse.csc_array(costs)), format="csc"), np.zeros(len(outputs))
        else:
            matrix, prices = steps, costs.sum(axis=0)
        self.lp.add_columns(prices, np.zeros(len(outputs)), np.full(len(outputs), np.inf), matrix)
        self.steps.append(steps)
        self.outputs.append(outputs)

    def use_centre(self) -> None:
        """Solve by interior points from now on: prices in the middle of the best ones, where a vertex is a poor guess.

        With the losses of the rows beside their sums there are many vertices, and the simplex method fails on them.
        """
        self.central, self.smoothing = True, _CENTRAL_SMOOTHING
        self.lp.set("solver", "ipm")
        self.lp.set("run_crossover", "off")
        self.lp.set("presolve", "off")

    def solve(self, watch: Watch) -> tuple[float, _Prices]:
        """The value and the prices.

        Raises: SolverError if HiGHS gave up; `amounts` and `value` are then those of the last solution.
        """
        # A deadline stops a search that has something to show for; until then a little more time is worth it.
        left = None if watch.deadline is None else max(watch.deadline - watch.seconds, 1.0)
        status = self.lp.run(left)
        if status == HighsModelStatus.kTimeLimit and self.amounts is None:
            raise OutOfTimeError(None)
        if status != HighsModelStatus.kOptimal:
            raise SolverError(f"the program over rays ended with {status.name}")
        self.amounts, self.value = np.maximum(self.lp.column_value(), 0.0), self.lp.value()
        dual = self.lp.row_dual()
        size = self.program.shape[0]
        weights = self.sparsifier.T @ dual[:size]
        if not self.program.worst:
            return self.lp.value(), _Prices(-np.inf, weights, None)
        loss_weights = np.maximum(-dual[size:], 0.0)
        return self.lp.value(), _Prices(-np.inf, weights, loss_weights / loss_weights.sum())

    def table(self) -> Array:
        """The table (X, Y) that the last multiples give."""
        assert self.amounts is not None
        amounts = self.amounts[1 if self.program.worst else 0 :]
        used = np.flatnonzero(amounts > 0)
        steps = sparse.hstack(self.steps, format="csc")[:, used].toarray()
        rays = np.maximum(splu(self.sparsifier).solve(steps), 0.0)
        result = np.zeros(self.program.shape)
        np.add.at(result.T, np.concatenate(self.outputs)[used], (rays * amounts[used]).T)
        return result
