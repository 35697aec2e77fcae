"""The linear program over tables for any mixture of constraints (HiGHS); ratio rows are added as they are violated.

Complete adjacency takes 2 X Y rows (m_y <= f_xy <= R m_y), exact (eps, delta) one slack for each pair and seen output.
Many pairs (distances in the plane) start with the near ones; rows that the solution violates are added and the dual
simplex method goes on from its basis, which is exact when no row is violated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import scipy
from highspy import HighsModelStatus
from numpy.typing import NDArray
from privspec.solvers import table_programs
from privspec.solvers.highs import HighsProgram
from privspec.solvers.programs import Array, Indices, OutOfTimeError, SolverError, Watch

if TYPE_CHECKING:
    from privspec.solvers.table_deltas import Sets

_EAGER = 20_000  # ratio rows of a block that are all stated at the start
_NEAR = 1.5  # pairs within this multiple of the least log ratio are stated at the start
_LARGE = 10_000  # rows from which an interior-point start beats the simplex method from nothing
_VIOLATION = 1e-10
_NOTHING = 1e-14  # excess that is taken to be none
_SETS = 5000  # slacks of a delta from which sets of outputs, found by an interior point, are stated in their place
_DENSE = 4000  # entries up to which it is
_MOST_ADDED = 60_000
_BEYOND = 1e11  # rows with larger ratios are below the tolerances of HiGHS: the exact repair alone meets them


@dataclass(frozen=True, eq=False, slots=True)
class RowsResult:
    """The table (X, Y), the further scalars, the loss, the dual, and the number of rows at the end."""

    table: Array
    extra: Array
    value: float
    dual: table_programs.TableDual
    rows: int
    notes: tuple[str, ...] = ()


def membership(view: Indices) -> scipy.sparse.csr_array:
    """The 0/1 matrix (seen, Y) of which outputs look alike."""
    return scipy.sparse.csr_array(
        (np.ones(len(view)), (view, np.arange(len(view)))), shape=(int(view.max()) + 1, len(view))
    )


def float_rows(rows: table_programs.LinearRows, columns: int) -> scipy.sparse.csr_array:
    """Linear rows in floats."""
    values = np.array([float(value) for value in rows.values])
    return scipy.sparse.csr_array((values, (rows.rows, rows.columns)), shape=(len(rows.bounds), columns))


@dataclass(slots=True)
class _Block:
    """A privacy block in the program: `stated` (rows, 3) lists row number, pair (or input), seen output.

    `sets`, where a delta is stated set by set and not by slacks: row numbers, pairs and their sets.
    """

    block: table_programs.Privacy
    ratios: Array
    shown: scipy.sparse.csr_array
    stated: list[tuple[int, Indices, Indices]] = field(default_factory=list)
    missing: NDArray[np.bool_] | None = None
    sets: list[tuple[int, Sets]] | None = None
    scales: Array = field(default_factory=lambda: np.ones(1))

    @property
    def slack(self) -> float:
        """What each single output may exceed its ratio by."""
        return float(self.block.slack) if isinstance(self.block, table_programs.PairRatio) else 0.0

    def scale(self, pairs: Indices) -> Array:
        """What the rows of these pairs are multiplied by."""
        return self.scales[pairs] if len(self.scales) > 1 else np.full(len(pairs), self.scales[0])


Entries = tuple[Indices, Indices, Array | float]
"""Row numbers, columns, and values of a part of some rows."""


class RowsProgram:
    """The program in HiGHS with the meaning of its rows and columns."""

    def __init__(
        self,
        program: table_programs.TableProgram,
        elastic: bool = False,
        widest: bool = False,
        starts: Sequence[Sets | None] | None = None,
    ) -> None:
        self.program = program
        self.inputs, self.outputs = program.shape
        self.entries = self.inputs * self.outputs
        self.lp = HighsProgram()
        self.rows = self.columns = 0
        extra, plain = program.extra, not (elastic or widest)
        self._new_columns(self.entries, program.cost.ravel() if plain and not program.worst else 0.0)
        ends = [np.array([float(v) for v in values]) for values in (extra.lower, extra.upper, extra.cost)]
        self._new_columns(len(extra), ends[2] if plain else 0.0, ends[0], ends[1])
        self.margin = int(self._new_columns(1, cost=-1.0)[0]) if widest else None
        if widest:
            self._inner_ranges()
        self._linear(elastic, plain)
        starts = [None] * len(program.privacy) if starts is None else starts
        self.blocks = [self._state(*both) for both in zip(program.privacy, starts, strict=True)]

    def _new_columns(
        self, count: int, cost: Array | float = 0.0, low: Array | float = 0.0, high: Array | float = np.inf
    ) -> Indices:
        costs, lows, highs = (np.broadcast_to(part, count).astype(float) for part in (cost, low, high))
        self.lp.add_columns(costs, lows, highs)
        self.columns += count
        return np.arange(self.columns - count, self.columns)

    def _add(self, parts: list[Entries], low: Array | None, high: Array) -> int:
        """Add rows that are the sums of these parts, `high` at most; with a margin below if there is no `low`."""
        if self.margin is not None and low is None:
            parts = [*parts, (np.arange(len(high)), np.full(len(high), self.margin), 1.0)]
        rows, columns = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        values = np.concatenate([np.broadcast_to(value, len(at)) for at, _, value in parts])
        order = np.lexsort((columns, rows))
        ends = np.searchsorted(rows[order], np.arange(len(high) + 1))
        matrix = scipy.sparse.csr_array((values[order], columns[order], ends), shape=(len(high), self.columns))
        matrix.sum_duplicates()
        self.lp.add_rows(np.full(len(high), -np.inf) if low is None else low, high, matrix)
        self.rows += len(high)
        return self.rows - len(high)

    def _inner_ranges(self) -> None:
        """Keep every entry and every scalar away from the ends of its range by the margin."""
        extra = self.program.extra
        free = np.array([k for k in range(len(extra)) if extra.lower[k] < extra.upper[k]], dtype=np.intp)
        low, high = ([float(ends[k]) for k in free] for ends in (extra.lower, extra.upper))
        below = np.append(np.arange(self.entries), self.entries + free)
        self._add([(np.arange(len(below)), below, -1.0)], None, -np.append(np.zeros(self.entries), low))
        self._add([(np.arange(len(free)), self.entries + free, 1.0)], None, np.array(high))

    def _linear(self, elastic: bool, with_loss: bool) -> None:
        program, each = self.program, np.arange(self.inputs)
        own: Entries = (np.repeat(each, self.outputs), np.arange(self.entries), 1.0)
        self._add([own], np.ones(self.inputs), np.ones(self.inputs))
        at = []
        for rows, equality in ((program.equalities, True), (program.inequalities, False)):
            bounds = np.array([float(v) for v in rows.bounds])
            parts: list[Entries] = [(rows.rows, rows.columns, np.array([float(v) for v in rows.values]))]
            signs = (1.0, -1.0) if equality else (-1.0,)
            if elastic:
                parts += [(np.arange(len(bounds)), self._new_columns(len(bounds), cost=1.0), sign) for sign in signs]
            at.append(self._add(parts, bounds if equality else None, bounds))
        self.equal_at, self.most_at = at
        self.loss_at = self.rows
        if program.worst and with_loss:
            level = np.repeat(self._new_columns(1, cost=1.0, low=-np.inf), self.inputs)
            self._add([(*own[:2], program.cost.ravel()), (each, level, -1.0)], None, np.zeros(self.inputs))

    def _state(self, block: table_programs.Privacy, sets: Sets | None) -> _Block:
        shown = membership(table_programs.classes(block, self.outputs))
        if isinstance(block, table_programs.CompleteRatio):
            return self._state_complete(block, shown)
        assert isinstance(block, table_programs.PairRatio), "curves are for the convex path"
        state = _Block(block, table_programs.float_ratios(block), shown)
        if self.margin is None:
            # HiGHS has absolute tolerances: unscaled, a ratio of e^20 magnifies them to gaps of percents
            state.scales = state.ratios**-0.5
        if block.delta:
            if sets is None:
                self._state_slacks(state, block)
            else:
                state.sets = []
                self._state_sets(state, sets)
            return state
        count = len(block.pairs)
        everything = self.margin is not None or count * shown.shape[0] <= _EAGER
        logs = np.array([float(table_programs.log_ratio_of(block, k)) for k in range(count)])
        visible = state.ratios <= _BEYOND
        near = np.flatnonzero(visible & (everything | (logs <= _NEAR * logs.min())))
        if not everything:
            state.missing = np.repeat(visible[:, None], shown.shape[0], axis=1)
        self.state_pairs(state, *_every(near, shown.shape[0]))
        return state

    def _state_complete(self, block: table_programs.CompleteRatio, shown: scipy.sparse.csr_array) -> _Block:
        state = _Block(block, np.array([table_programs.float_ratio(block.log_ratio)]), shown)
        least = self._new_columns(shown.shape[0])
        inputs, columns = _every(np.arange(self.inputs), len(least))
        rows, at = self._shown_entries(shown, inputs, columns)
        number = np.arange(len(inputs))
        for sign, scale in ((-1.0, 1.0), (1.0, -state.ratios[0])):
            parts: list[Entries] = [(rows, at, sign), (number, least[columns], scale)]
            state.stated.append((self._add(parts, None, np.zeros(len(inputs))), inputs, columns))
        return state

    def _shown_entries(
        self, shown: scipy.sparse.csr_array, inputs: Indices, columns: Indices
    ) -> tuple[Indices, Indices]:
        """Row numbers and the entries of the table that make up the seen outputs `columns` at `inputs`."""
        counts = np.diff(shown.indptr)[columns]
        rows = np.repeat(np.arange(len(columns)), counts)
        places = np.arange(len(rows)) + np.repeat(shown.indptr[columns] + counts - np.cumsum(counts), counts)
        return rows, inputs[rows] * self.outputs + shown.indices[places]

    def _ratio_rows(self, state: _Block, pairs: Indices, columns: Indices) -> list[Entries]:
        assert not isinstance(state.block, table_programs.CompleteRatio)
        first, second = state.block.pairs[pairs].T
        rows, above = self._shown_entries(state.shown, first, columns)
        _, below = self._shown_entries(state.shown, second, columns)
        scale = state.scale(pairs)[rows]
        return [(rows, above, scale), (rows, below, -state.ratios[pairs][rows] * scale)]

    def state_pairs(self, state: _Block, pairs: Indices, columns: Indices) -> None:
        """Add the rows of these pairs and seen outputs."""
        at = self._add(self._ratio_rows(state, pairs, columns), None, state.slack * state.scale(pairs))
        state.stated.append((at, pairs, columns))
        if state.missing is not None:
            state.missing[pairs, columns] = False

    def _state_slacks(self, state: _Block, block: table_programs.PairRatio) -> None:
        pairs, columns = _every(np.arange(len(block.pairs)), state.shown.shape[0])
        slacks = self._new_columns(len(pairs))
        parts = [*self._ratio_rows(state, pairs, columns), (np.arange(len(slacks)), slacks, -state.scale(pairs))]
        state.stated.append((self._add(parts, None, np.zeros(len(slacks))), pairs, columns))
        self._add([(pairs, slacks, 1.0)], None, np.full(len(block.pairs), float(block.delta)))

    def _state_sets(self, state: _Block, sets: Sets) -> None:
        """Add f_a(S) - R f_b(S) <= delta for pairs and sets of seen outputs."""
        assert isinstance(state.block, table_programs.PairRatio)
        assert state.sets is not None
        pairs, masks = sets
        at, columns = np.nonzero(masks)
        parts = [(at[rows], where, value) for rows, where, value in self._ratio_rows(state, pairs[at], columns)]
        state.sets.append((self._add(parts, None, float(state.block.delta) * state.scale(pairs)), sets))

    def settle(self, watch: Watch, primal: bool = False) -> HighsModelStatus:
        """Solve again and again, with the rows that a table violates, until none is or there is no table.

        Args: primal: whether the primal simplex method goes on where HiGHS ends without an answer.
        Raises: OutOfTimeError at the deadline.
        """
        while True:
            status = self.lp.run(watch.left)
            if status == HighsModelStatus.kUnknown and primal:
                status = self.lp.finish_by_primal(watch.left)
            if status == HighsModelStatus.kTimeLimit:
                raise OutOfTimeError(None)
            if status != HighsModelStatus.kOptimal:
                return status
            watch.step(self.lp.value(), self.lp.value())
            if not self.add_violated(self.table()):
                return status
            self.lp.go_on_from_basis()

    def table(self) -> Array:
        """The current table, clipped to >= 0."""
        return np.maximum(self.lp.column_value()[: self.entries], 0.0).reshape(self.inputs, self.outputs)

    def scalars(self) -> Array:
        """The current further scalars."""
        return self.lp.column_value()[self.entries : self.entries + len(self.program.extra)]

    def add_violated(self, table: Array) -> int:
        """State the rows that the table violates; how many there were."""
        added = 0
        for state in self.blocks:
            if isinstance(state.block, table_programs.CompleteRatio) or (state.missing is None and state.sets is None):
                continue
            shown = table @ state.shown.T
            first, second = state.block.pairs.T
            excess = shown[first] - state.ratios[:, None] * shown[second] - state.slack
            if state.sets is not None:
                added += self._add_sets(state, state.sets, excess)
                continue
            assert state.missing is not None
            excess = np.where(state.missing, excess, 0.0)
            pairs, columns = np.nonzero(excess > _VIOLATION)
            if len(pairs) > _MOST_ADDED:
                worst = np.argpartition(-excess[pairs, columns], _MOST_ADDED)[:_MOST_ADDED]
                pairs, columns = pairs[worst], columns[worst]
            if len(pairs):
                self.state_pairs(state, pairs, columns)
            added += len(pairs)
        return added

    def _add_sets(self, state: _Block, stated: list[tuple[int, Sets]], excess: Array) -> int:
        """State the sets that spend more than delta, each once: tolerances may leave a stated one violated."""
        assert isinstance(state.block, table_programs.PairRatio)
        masks = excess > _NOTHING
        spent = np.where(masks, excess, 0.0).sum(axis=1) - float(state.block.delta)
        known = {(int(k), mask.tobytes()) for _, sets in stated for k, mask in zip(*sets, strict=True)}
        broken = np.flatnonzero(spent > _VIOLATION)
        pairs = np.array([k for k in broken if (int(k), masks[k].tobytes()) not in known], dtype=np.intp)
        if len(pairs):
            self._state_sets(state, (pairs, masks[pairs]))
        return len(pairs)

    def dual(self) -> table_programs.TableDual:
        """The multipliers of the last solution."""
        prices = self.lp.row_dual()
        found: list[table_programs.CompleteDual | table_programs.PairDual] = []
        for state in self.blocks:
            multipliers = [np.maximum(-prices[at : at + len(pairs)], 0.0) for at, pairs, _ in state.stated]
            if state.sets is not None:
                found.append(_of_sets(state, state.sets, prices))
                continue
            if isinstance(state.block, table_programs.CompleteRatio):
                below, above = (part.reshape(self.inputs, -1) for part in multipliers)
                found.append(table_programs.CompleteDual(below, above))
                continue
            pairs = np.concatenate([part for _, part, _ in state.stated])
            values = np.concatenate(multipliers) * state.scale(pairs)
            used = np.flatnonzero(values > 0)
            columns = np.concatenate([part for _, _, part in state.stated])
            found.append(table_programs.PairDual(pairs[used], columns[used], values[used]))
        program = self.program
        equalities = prices[self.equal_at : self.equal_at + len(program.equalities.bounds)]
        inequalities = np.maximum(-prices[self.most_at : self.most_at + len(program.inequalities.bounds)], 0.0)
        loss_weights = None
        if program.worst and self.loss_at < self.rows:
            loss_weights = np.maximum(-prices[self.loss_at : self.loss_at + self.inputs], 0.0)
            loss_weights = loss_weights / loss_weights.sum() if loss_weights.sum() > 0 else None
        return table_programs.TableDual(tuple(found), equalities, inequalities, loss_weights)


def _of_sets(state: _Block, stated: list[tuple[int, Sets]], prices: Array) -> table_programs.PairDual:
    """The multipliers of single outputs: sums of those of the sets that they are in."""
    values = np.zeros((len(state.ratios), state.shown.shape[0]))
    for at, (pairs, masks) in stated:
        each = np.maximum(-prices[at : at + len(pairs)], 0.0) * state.scale(pairs)
        used = np.flatnonzero(each)
        np.add.at(values, pairs[used], each[used, None] * masks[used])
    pairs, columns = np.nonzero(values)
    return table_programs.PairDual(pairs, columns, values[pairs, columns])


def _every(rows: Indices, columns: int) -> tuple[Indices, Indices]:
    """Every one of some rows with every one of so many columns."""
    return np.repeat(rows, columns), np.tile(np.arange(columns), len(rows))


def solve_rows(
    program: table_programs.TableProgram, watch: Watch, *, explained: bool = True
) -> RowsResult | table_programs.InfeasibleTable:
    """The optimum of any program, stating ratio rows as they are violated; conflicts are named if they are `explained`.

    Raises: OutOfTimeError, SolverError.
    """
    if watch.expired:
        raise OutOfTimeError(None)
    slacks = sum(_slacks(block, program.shape[1]) for block in program.privacy)
    starts = None
    if slacks > _SETS and program.cost.size <= _DENSE:
        from privspec.solvers.table_deltas import sets_of  # few programs have so many slacks

        starts = sets_of(program, watch)
    rows = RowsProgram(program, starts=starts)
    if rows.rows > _LARGE and not (starts and any(starts)):
        rows.lp.set("solver", "ipm")
    status = rows.settle(watch, primal=True)
    if status in (HighsModelStatus.kInfeasible, HighsModelStatus.kUnboundedOrInfeasible):
        return explain_infeasible(program) if explained else table_programs.InfeasibleTable((), (), (), 0.0)
    if status != HighsModelStatus.kOptimal:
        raise SolverError(f"the linear program over tables ended with {status.name}")
    return RowsResult(rows.table(), rows.scalars(), rows.lp.value(), rows.dual(), rows.rows)


def _slacks(block: table_programs.Privacy, outputs: int) -> int:
    """How many slacks state its delta."""
    return (
        len(block.pairs) * table_programs.seen(block, outputs)
        if isinstance(block, table_programs.PairRatio) and block.delta
        else 0
    )


def explain_infeasible(program: table_programs.TableProgram) -> table_programs.InfeasibleTable:
    """The least violation of the linear rows, and the constraints that its multipliers need."""
    rows = RowsProgram(program, elastic=True)
    rows.settle(Watch())
    dual = rows.dual()
    parts = (part.largest for part in dual.privacy)
    needed = [np.flatnonzero(np.abs(part) > 1e-7).tolist() for part in (dual.equalities, dual.inequalities)]
    privacy = tuple(k for k, part in enumerate(parts) if np.any(part > 1e-7))
    return table_programs.InfeasibleTable(privacy, tuple(needed[0]), tuple(needed[1]), rows.lp.value())


def widest_table(program: table_programs.TableProgram) -> tuple[float, Array, Array]:
    """The greatest margin by which one table and its scalars meet every inequality, with that table (X, Y)."""
    rows = RowsProgram(program, widest=True)
    if rows.lp.run() != HighsModelStatus.kOptimal:
        raise SolverError("no table meets the constraints with a margin")
    return -rows.lp.value(), rows.table(), rows.scalars()
