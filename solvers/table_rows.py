"""Tables by rows of a linear program that grow as they are needed (HiGHS).

HiGHS held open: a linear program that grows by rows and columns and is solved again from its last basis.

The linear program over tables for any mixture of constraints; ratio rows are added as they are violated.

Complete adjacency takes 2 X Y rows (m_y <= f_xy <= R m_y), exact (eps, delta) one slack for each pair and seen output.
Many pairs (distances in the plane) start with the near ones; rows that the solution violates are added and the dual
simplex method goes on from its basis, which is exact when no row is violated.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import highspy
import numpy as np
from highspy import HighsModelStatus
from numpy.typing import NDArray
from privspec.solvers.programs import Array, Indices, OutOfTimeError, SolverError, Watch
from privspec.solvers.table_programs import (
    AtomRatio,
    CompleteDual,
    CompleteRatio,
    InfeasibleTable,
    LinearRows,
    PairDual,
    PairRatio,
    TableDual,
    TableProgram,
    classes,
    float_ratio,
    float_ratios,
    log_ratio_of,
)
from scipy import sparse

_FEASIBILITY = 1e-10  # the finest that HiGHS accepts


class HighsProgram:
    """Minimise cost . v with bounded variables and rows."""

    def __init__(self, primal: bool = False) -> None:
        """Choose the primal simplex method where columns are added, else the dual one (rows are added)."""
        self._highs = highspy.Highs()  # type: ignore[no-untyped-call]
        self.set("output_flag", False)
        self.set("threads", 1)
        self.set("small_matrix_value", 1e-12)
        self.set("primal_feasibility_tolerance", _FEASIBILITY)
        self.set("dual_feasibility_tolerance", _FEASIBILITY)
        if primal:
            self.set("simplex_strategy", 4)

    def set(self, option: str, value: bool | int | float | str) -> None:
        """Set an option of HiGHS."""
        self._highs.setOptionValue(option, value)

    def add_rows(self, low: Array, high: Array, matrix: sparse.csr_array | None = None) -> None:
        """Add rows low <= matrix v <= high; without a matrix they are empty."""
        if matrix is None:
            matrix = sparse.csr_array((len(low), self._highs.getNumCol()))
        self._highs.addRows(
            len(low),
            low,
            high,
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
        )

    def add_columns(self, cost: Array, low: Array, high: Array, matrix: sparse.csc_array | None = None) -> None:
        """Add variables with the columns of a matrix (rows, N), or empty ones."""
        if not len(cost):
            return
        entries = sparse.csc_array((self._highs.getNumRow(), len(cost))) if matrix is None else matrix
        self._highs.addCols(
            len(cost), cost, low, high, entries.nnz, entries.indptr[:-1].astype(np.int32),
            entries.indices.astype(np.int32), entries.data,
        )  # fmt: skip

    def go_on_from_basis(self) -> None:
        """Choose the simplex method without presolve: best after rows were added (7 x 7 grid: 3.3 s, not 7 s)."""
        self.set("solver", "simplex")
        self.set("presolve", "off")
        self.set("simplex_dual_edge_weight_strategy", 1)

    def set_costs(self, columns: Indices, costs: Array) -> None:
        """Replace the costs of some columns."""
        self._highs.changeColsCost(len(columns), columns.astype(np.int32), costs)

    def set_ranges(self, columns: Indices, low: Array, high: Array) -> None:
        """Replace the ranges of some columns."""
        self._highs.changeColsBounds(len(columns), columns.astype(np.int32), low, high)

    def basis(self) -> highspy.HighsBasis:
        """The last basis."""
        return self._highs.getBasis()

    def start_from(self, basis: highspy.HighsBasis | None) -> None:
        """Start the next run from a basis of this many rows and columns, or from nothing."""
        if basis is None:
            self._highs.clearSolver()
        else:
            self._highs.setBasis(basis)

    def finish_by_primal(self, seconds: float | None = None) -> HighsModelStatus:
        """Go on with the primal simplex method, once, from where the dual one ended without an answer.

        Ratios over many powers of ten leave it at a feasible basis whose duals it cannot clear (10 x 10 grid with a
        prior of two powers of ten, epsilon 2 a step: e^25).
        """
        self.set("solver", "simplex")
        self.set("simplex_strategy", 4)
        status = self.run(seconds)
        self.set("simplex_strategy", 1)
        return status

    def clear_cost(self, columns: int) -> None:
        """Set the cost of the first columns to zero."""
        for column in range(columns):
            self._highs.changeColCost(column, 0.0)

    def run(self, seconds: float | None = None) -> HighsModelStatus:
        """Solve from the last basis, for at most so many further seconds."""
        limit = np.inf if seconds is None else self._highs.getRunTime() + max(seconds, 0.1)
        self.set("time_limit", float(limit))
        self._highs.run()
        return self._highs.getModelStatus()

    def value(self) -> float:
        """The value of the objective at the solution."""
        return float(self._highs.getInfo().objective_function_value)

    def column_value(self) -> Array:
        """The solution."""
        return np.array(self._highs.getSolution().col_value, dtype=float)

    def column_dual(self) -> Array:
        """The reduced costs of the columns."""
        return np.array(self._highs.getSolution().col_dual, dtype=float)

    def row_dual(self) -> Array:
        """The multipliers of the rows: <= 0 where an upper bound binds."""
        return np.array(self._highs.getSolution().row_dual, dtype=float)

    def iterations(self) -> int:
        """Simplex iterations of the last run."""
        return int(self._highs.getInfo().simplex_iteration_count)


_EAGER = 20_000  # ratio rows of a block that are all stated at the start
_NEAR = 1.5  # pairs within this multiple of the least log ratio are stated at the start
_LARGE = 10_000  # rows from which an interior-point start beats the simplex method from nothing
_VIOLATION = 1e-10
_MOST_ADDED = 60_000
_BEYOND = 1e11  # rows with larger ratios are below the tolerances of HiGHS: the exact repair alone meets them


@dataclass(frozen=True, eq=False, slots=True)
class RowsResult:
    """The table (X, Y), the further scalars, the loss, the dual, and the number of rows at the end."""

    table: Array
    extra: Array
    value: float
    dual: TableDual
    rows: int
    notes: tuple[str, ...] = ()


def membership(view: Indices) -> sparse.csr_array:
    """The 0/1 matrix (seen, Y) of which outputs look alike."""
    return sparse.csr_array((np.ones(len(view)), (view, np.arange(len(view)))), shape=(int(view.max()) + 1, len(view)))


def float_rows(rows: LinearRows, columns: int) -> sparse.csr_array:
    """Linear rows in floats."""
    values = np.array([float(value) for value in rows.values])
    return sparse.csr_array((values, (rows.rows, rows.columns)), shape=(len(rows.bounds), columns))


@dataclass(slots=True)
class _Block:
    """A privacy block in the program: `stated` (rows, 3) lists row number, pair (or input), seen output."""

    block: CompleteRatio | PairRatio | AtomRatio
    ratios: Array
    shown: sparse.csr_array
    stated: list[tuple[int, Indices, Indices]] = field(default_factory=list)
    missing: NDArray[np.bool_] | None = None
    scales: Array = field(default_factory=lambda: np.ones(1))

    def scale(self, pairs: Indices) -> Array:
        """What the rows of these pairs are multiplied by."""
        return self.scales[pairs] if len(self.scales) > 1 else np.full(len(pairs), self.scales[0])


class RowsProgram:
    """The program in HiGHS with the meaning of its rows and columns."""

    def __init__(self, program: TableProgram, elastic: bool = False, widest: bool = False) -> None:
        self.program = program
        self.margin: int | None = None
        self.inputs, self.outputs = program.shape
        self.entries = self.inputs * self.outputs
        self.lp = HighsProgram()
        self.rows = 0
        self._columns()
        if widest:
            self.lp.clear_cost(self.columns)
            self.margin = int(self._new_columns(1, cost=-1.0)[0])
            self._inner_ranges()
        self._linear(elastic or widest, elastic)
        self.blocks = [self._state(block) for block in program.privacy]

    def _columns(self) -> None:
        program = self.program
        cost = np.zeros(self.entries) if program.worst else program.cost.ravel()
        self.lp.add_columns(cost, np.zeros(self.entries), np.full(self.entries, np.inf))
        extra = program.extra
        ranges = [np.array([float(v) for v in values]) for values in (extra.cost, extra.lower, extra.upper)]
        self.lp.add_columns(ranges[0], ranges[1], ranges[2])
        self.columns = self.entries + len(extra)

    def _new_columns(self, count: int, cost: float = 0.0, low: float = 0.0) -> Indices:
        self.lp.add_columns(np.full(count, cost), np.full(count, low), np.full(count, np.inf))
        self.columns += count
        return np.arange(self.columns - count, self.columns)

    def _add(self, matrix: sparse.csr_array, low: Array | None, high: Array) -> int:
        matrix = sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], self.columns))
        if self.margin is not None and low is None:
            column = np.full(len(high), self.margin)
            matrix = sparse.csr_array(
                matrix + sparse.csr_array((np.ones(len(high)), (np.arange(len(high)), column)), shape=matrix.shape)
            )
        self.lp.add_rows(np.full(len(high), -np.inf) if low is None else low, high, matrix)
        self.rows += len(high)
        return self.rows - len(high)

    def _inner_ranges(self) -> None:
        """Keep every entry and every scalar away from the ends of its range by the margin."""
        extra = self.program.extra
        free = [k for k in range(len(extra)) if extra.lower[k] < extra.upper[k]]
        signs = np.concatenate((-np.ones(self.entries), -np.ones(len(free)), np.ones(len(free))))
        scalars = self.entries + np.array(free, dtype=np.intp)
        at = np.concatenate((np.arange(self.entries), scalars, scalars))
        bounds = [0.0] * self.entries + [-float(extra.lower[k]) for k in free] + [float(extra.upper[k]) for k in free]
        matrix = sparse.csr_array((signs, (np.arange(len(at)), at)), shape=(len(at), self.columns))
        self._add(matrix, None, np.array(bounds))

    def _linear(self, no_loss: bool, elastic: bool) -> None:
        program = self.program
        ones = np.ones(self.inputs)
        self._add(sparse.csr_array(sparse.kron(sparse.eye_array(self.inputs), np.ones((1, self.outputs)))), ones, ones)
        if elastic:
            self.lp.clear_cost(self.columns)
        equal, most = program.equalities, program.inequalities
        known = self.columns
        blocks = [float_rows(equal, known), float_rows(most, known)]
        if elastic:
            count = len(equal.bounds)
            self._new_columns(2 * count + len(most.bounds), cost=1.0)
            unit = sparse.eye_array(count)
            blocks[0] = sparse.csr_array(sparse.hstack((blocks[0], unit, -unit)))
            gap = sparse.csr_array((len(most.bounds), 2 * count))
            blocks[1] = sparse.csr_array(sparse.hstack((blocks[1], gap, -sparse.eye_array(len(most.bounds)))))
        bounds = [np.array([float(v) for v in rows.bounds]) for rows in (equal, most)]
        self.equal_at = self._add(blocks[0], bounds[0], bounds[0])
        self.most_at = self._add(blocks[1], None, bounds[1])
        self.loss_at = self.rows
        if program.worst and not no_loss:
            level = self._new_columns(1, cost=1.0, low=-np.inf)[0]
            rows = np.repeat(np.arange(self.inputs), self.outputs)
            where = (
                np.append(rows, np.arange(self.inputs)),
                np.append(np.arange(self.entries), np.full(self.inputs, level)),
            )
            values = np.append(program.cost.ravel(), -ones)
            self._add(sparse.csr_array((values, where), shape=(self.inputs, self.columns)), None, np.zeros(self.inputs))

    def _state(self, block: CompleteRatio | PairRatio | AtomRatio) -> _Block:
        shown = membership(classes(block, self.outputs))
        if isinstance(block, CompleteRatio):
            return self._state_complete(block, shown)
        state = _Block(block, float_ratios(block), shown)
        if self.margin is None:
            # HiGHS has absolute tolerances: unscaled, a ratio of e^20 magnifies them to gaps of percents
            state.scales = state.ratios**-0.5
        if isinstance(block, PairRatio) and block.delta > 0:
            self._state_slacks(state, block)
            return state
        count = len(block.pairs)
        everything = self.margin is not None or count * shown.shape[0] <= _EAGER
        logs = np.array([float(log_ratio_of(block, k)) for k in range(count)])
        visible = state.ratios <= _BEYOND
        near = np.flatnonzero(visible & (everything | (logs <= _NEAR * logs.min())))
        if not everything:
            state.missing = np.repeat(visible[:, None], shown.shape[0], axis=1)
        pairs, columns = np.meshgrid(near, np.arange(shown.shape[0]), indexing="ij")
        self.state_pairs(state, pairs.ravel(), columns.ravel())
        return state

    def _state_complete(self, block: CompleteRatio, shown: sparse.csr_array) -> _Block:
        state = _Block(block, np.array([float_ratio(block.log_ratio)]), shown)
        least = self._new_columns(shown.shape[0])
        inputs, columns = (
            part.ravel() for part in np.meshgrid(np.arange(self.inputs), np.arange(len(least)), indexing="ij")
        )
        rows, at = self._shown_entries(shown, inputs, columns)
        number = np.arange(len(inputs))
        for sign, scale in ((-1.0, 1.0), (1.0, -state.ratios[0])):
            values = np.concatenate((np.full(len(rows), sign), np.full(len(inputs), scale)))
            where = (np.concatenate((rows, number)), np.concatenate((at, least[columns])))
            matrix = sparse.csr_array((values, where), shape=(len(inputs), self.columns))
            state.stated.append((self._add(matrix, None, np.zeros(len(inputs))), inputs, columns))
        return state

    def _shown_entries(self, shown: sparse.csr_array, inputs: Indices, columns: Indices) -> tuple[Indices, Indices]:
        """Row numbers and the entries of the table that make up the seen outputs `columns` at `inputs`."""
        members = sparse.coo_array(shown[columns])
        rows = np.asarray(members.row, dtype=np.intp)
        return rows, inputs[rows] * self.outputs + members.col

    def _pair_matrix(self, state: _Block, pairs: Indices, columns: Indices) -> sparse.coo_array:
        assert not isinstance(state.block, CompleteRatio)
        first, second = state.block.pairs[pairs].T
        rows, above = self._shown_entries(state.shown, first, columns)
        _, below = self._shown_entries(state.shown, second, columns)
        scale = state.scale(pairs)[rows]
        values = np.concatenate((scale, -state.ratios[pairs][rows] * scale))
        where = (np.concatenate((rows, rows)), np.concatenate((above, below)))
        return sparse.coo_array((values, where), shape=(len(pairs), self.columns))

    def state_pairs(self, state: _Block, pairs: Indices, columns: Indices) -> None:
        """Add the rows of these pairs and seen outputs."""
        slack = float(state.block.slack) if isinstance(state.block, AtomRatio) else 0.0
        matrix = sparse.csr_array(self._pair_matrix(state, pairs, columns))
        at = self._add(matrix, None, slack * state.scale(pairs))
        state.stated.append((at, pairs, columns))
        if state.missing is not None:
            state.missing[pairs, columns] = False

    def _state_slacks(self, state: _Block, block: PairRatio) -> None:
        count, width = len(block.pairs), state.shown.shape[0]
        pairs, columns = (part.ravel() for part in np.meshgrid(np.arange(count), np.arange(width), indexing="ij"))
        slacks = self._new_columns(count * width)
        matrix = self._pair_matrix(state, pairs, columns)
        own = sparse.csr_array((-state.scale(pairs), (np.arange(len(slacks)), slacks)), shape=matrix.shape)
        state.stated.append((self._add(sparse.csr_array(matrix + own), None, np.zeros(len(slacks))), pairs, columns))
        budget = sparse.csr_array((np.ones(len(slacks)), (pairs, slacks)), shape=(count, self.columns))
        self._add(budget, None, np.full(count, float(block.delta)))

    def table(self) -> Array:
        """The current table, clipped to >= 0."""
        return np.maximum(self.lp.column_value()[: self.entries], 0.0).reshape(self.inputs, self.outputs)

    def add_violated(self, table: Array) -> int:
        """State the rows that the table violates; how many there were."""
        added = 0
        for state in self.blocks:
            if state.missing is None or isinstance(state.block, CompleteRatio):
                continue
            shown = table @ state.shown.T
            first, second = state.block.pairs.T
            slack = float(state.block.slack) if isinstance(state.block, AtomRatio) else 0.0
            excess = np.where(state.missing, shown[first] - state.ratios[:, None] * shown[second] - slack, 0.0)
            pairs, columns = np.nonzero(excess > _VIOLATION)
            if len(pairs) > _MOST_ADDED:
                worst = np.argpartition(-excess[pairs, columns], _MOST_ADDED)[:_MOST_ADDED]
                pairs, columns = pairs[worst], columns[worst]
            if len(pairs):
                self.state_pairs(state, pairs, columns)
            added += len(pairs)
        return added

    def dual(self) -> TableDual:
        """The multipliers of the last solution."""
        prices = self.lp.row_dual()
        found: list[CompleteDual | PairDual] = []
        for state in self.blocks:
            multipliers = [np.maximum(-prices[at : at + len(pairs)], 0.0) for at, pairs, _ in state.stated]
            if isinstance(state.block, CompleteRatio):
                below, above = (part.reshape(self.inputs, -1) for part in multipliers)
                found.append(CompleteDual(below, above))
                continue
            pairs = np.concatenate([part for _, part, _ in state.stated])
            values = np.concatenate(multipliers) * state.scale(pairs)
            used = np.flatnonzero(values > 0)
            columns = np.concatenate([part for _, _, part in state.stated])
            found.append(PairDual(pairs[used], columns[used], values[used]))
        program = self.program
        equalities = prices[self.equal_at : self.equal_at + len(program.equalities.bounds)]
        inequalities = np.maximum(-prices[self.most_at : self.most_at + len(program.inequalities.bounds)], 0.0)
        loss_weights = None
        if program.worst and self.loss_at < self.rows:
            loss_weights = np.maximum(-prices[self.loss_at : self.loss_at + self.inputs], 0.0)
            loss_weights = loss_weights / loss_weights.sum() if loss_weights.sum() > 0 else None
        return TableDual(tuple(found), equalities, inequalities, loss_weights)


def solve_rows(program: TableProgram, watch: Watch, *, explained: bool = True) -> RowsResult | InfeasibleTable:
    """The optimum of any program, stating ratio rows as they are violated; conflicts are named if they are `explained`.

    Raises: OutOfTimeError, SolverError.
    """
    rows = RowsProgram(program)
    if rows.rows > _LARGE:
        rows.lp.set("solver", "ipm")
    while True:
        left = None if watch.deadline is None else watch.deadline - watch.seconds
        status = rows.lp.run(left)
        if status == HighsModelStatus.kUnknown:
            status = rows.lp.finish_by_primal(left)
        if status in (HighsModelStatus.kInfeasible, HighsModelStatus.kUnboundedOrInfeasible):
            return explain_infeasible(program) if explained else InfeasibleTable((), (), (), 0.0)
        if status == HighsModelStatus.kTimeLimit:
            raise OutOfTimeError(None)
        if status != HighsModelStatus.kOptimal:
            raise SolverError(f"the linear program over tables ended with {status.name}")
        table = rows.table()
        watch.step(rows.lp.value(), rows.lp.value())
        if not rows.add_violated(table):
            break
        rows.lp.go_on_from_basis()
    extra = rows.lp.column_value()[rows.entries : rows.entries + len(program.extra)]
    return RowsResult(table, extra, rows.lp.value(), rows.dual(), rows.rows)


def explain_infeasible(program: TableProgram) -> InfeasibleTable:
    """The least violation of the linear rows, and the constraints that its multipliers need."""
    rows = RowsProgram(program, elastic=True)
    while rows.lp.run() == HighsModelStatus.kOptimal and rows.add_violated(rows.table()):
        pass
    dual = rows.dual()
    privacy = tuple(
        k
        for k, part in enumerate(dual.privacy)
        if np.any((part.above if isinstance(part, CompleteDual) else part.values) > 1e-7)
    )
    equalities = tuple(int(k) for k in np.flatnonzero(np.abs(dual.equalities) > 1e-7))
    inequalities = tuple(int(k) for k in np.flatnonzero(dual.inequalities > 1e-7))
    return InfeasibleTable(privacy, equalities, inequalities, rows.lp.value())


def widest_table(program: TableProgram) -> tuple[float, Array, Array]:
    """The greatest margin by which one table and its scalars meet every inequality, with that table (X, Y)."""
    rows = RowsProgram(program, widest=True)
    if rows.lp.run() != HighsModelStatus.kOptimal:
        raise SolverError("no table meets the constraints with a margin")
    extra = rows.lp.column_value()[rows.entries : rows.entries + len(program.extra)]
    return -rows.lp.value(), rows.table(), extra


__all__ = ["RowsProgram", "RowsResult", "explain_infeasible", "float_rows", "membership", "solve_rows", "widest_table"]
