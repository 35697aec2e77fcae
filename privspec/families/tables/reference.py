"""The program of a table in cvxpy, every row stated at once and as it is written; and what solving it gives.

The yardstick of the special solvers. What comes back is repaired and bounded like theirs: no float reaches a plan. What
`program()` shows is stated here too.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import cvxpy
import numpy as np

from privspec.core.records import dataclass, field, replace
from privspec.families.program import labelled
from privspec.families.tables.system import COST, DELTA, RANGES, RATIO, ROWS, SCALARS, TABLE, Labels, amounts_of
from privspec.solvers import table_programs
from privspec.solvers.programs import Array, Indices, OutOfTimeError, Progress, ReferenceFailedError, SolverError, Watch
from privspec.solvers.table_divergences import CurveDual, CurveRatio, Supported
from privspec.solvers.table_rows import RowsResult, explain_infeasible, float_rows, membership, solve_rows
from privspec.solvers.tables import exact_solution

cp: Any = cvxpy
"""cvxpy under its usual name; its atoms are built at run time and have no types."""
_FEASIBILITY = 1e-9
Pairs = list[tuple[int, int, float]]
"""Rows a and b, and a level."""
_FEASIBILITIES = ("primal_feasibility_tolerance", "dual_feasibility_tolerance")
_CONIC = ((1e-10, 0.99), (1e-10, 0.9), (1e-9, 0.7), (1e-8, 0.5))
"""Tolerances and step fractions that Clarabel is asked for, one after another, until it ends."""
_EXCESS = 3e-9
"""Excess of a bound that the exact repair takes out."""
_SAME = 2e-5
"""Levels this near are one."""
_NOISE = 1e-7
"""Probabilities below are not told from 0."""
_FEW_ROUNDS, _MOST_ROUNDS = 15, 60
"""Rounds in which orders are replaced, after which they only add up; and all rounds: the rest is for the repair."""
_MIXED = 2.0**-27
"""Share of the mean law that laws are mixed with before they are judged, as by the repair."""


def solve_with_cvxpy(
    program: table_programs.TableProgram,
    deadline: float | None = None,
    progress: Progress | None = None,
    cost: table_programs.Entries | None = None,
) -> table_programs.TableSolution | table_programs.InfeasibleTable:
    """The optimal table by cvxpy and HiGHS, exact and with a certified bound; or which constraints conflict.

    Args: as for `solvers.tables.solve_table`.
    Raises: ReferenceFailedError if no usable solution comes back, OutOfTimeError.
    """
    watch = Watch(deadline, progress)
    stated, levels = optimum(program, watch)
    if stated.infeasible:
        return _conflict(program) if levels else explain_infeasible(program)
    inner = _widest(program, levels) if levels and not program.plain else None
    return exact_solution(program, _sharpened(program, stated.result(), watch), "cvxpy", watch, cost, inner)


def optimum(program: table_programs.TableProgram, watch: Watch) -> tuple[TableStated, Levels]:
    """The solved program, with all levels of measures that it takes; or the first that is infeasible.

    Raises: ReferenceFailedError, OutOfTimeError.
    """
    levels = Levels.of(program)
    while True:
        stated = TableStated(program, levels)
        stated.solve(levels, watch.left)
        status = stated.problem.status
        if stated.infeasible:
            return stated, levels
        if status == cp.USER_LIMIT:
            raise OutOfTimeError(None)
        if status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            raise ReferenceFailedError(status)
        watch.step(float(stated.problem.value), float(stated.problem.value))
        table = stated.result().table
        if watch.iterations > _MOST_ROUNDS or not levels.add(program, table, watch.iterations < _FEW_ROUNDS):
            return stated, levels


def _conflict(program: table_programs.TableProgram) -> table_programs.InfeasibleTable:
    """All that is asked: which of it is in conflict is not known."""
    every = (program.privacy, program.equalities.bounds, program.inequalities.bounds)
    privacy, equalities, inequalities = (tuple(range(len(part))) for part in every)
    return table_programs.InfeasibleTable(privacy, equalities, inequalities, 1.0)


def _widest(program: table_programs.TableProgram, levels: Levels) -> tuple[Array, Array]:
    """A table with its scalars that is well inside of every inequality.

    Raises: ReferenceFailedError.
    """
    stated = TableStated(program, levels, widest=True)
    stated.solve(levels, None)
    if stated.problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise ReferenceFailedError(stated.problem.status)
    return stated.table.value, np.zeros(0) if stated.extra is None else stated.extra.value


def _sharpened(program: table_programs.TableProgram, found: RowsResult, watch: Watch) -> RowsResult:
    """With the multipliers that prove most from the same linear bounds: those of the linear program with just these.

    Conic multipliers are right to five digits or so.
    """
    supports = [
        (k, one) for k, part in enumerate(found.dual.privacy) if isinstance(part, CurveDual) for one in part.supports
    ]
    if not supports:
        return found
    columns, less = program.shape[1], program.inequalities
    bounds, cells = list(less.bounds), list(zip(less.rows.tolist(), less.columns.tolist(), less.values, strict=True))
    sizes = []
    for number, one in supports:
        block = program.privacy[number]
        assert isinstance(block, CurveRatio)
        limit, up, down = block.curve.line(one.level, one.at)
        view, size = table_programs.classes(block, columns), max(limit, 1e-3)
        sizes.append(size)
        for row, factors in zip(one.rows, (up, -down), strict=True):
            cells += [(len(bounds), row * columns + c, Fraction(factors[view[c]] / size)) for c in range(columns)]
        bounds.append(Fraction(limit / size))
    rows, at = (np.array([cell[part] for cell in cells], dtype=np.intp) for part in (0, 1))
    kept = [k for k, block in enumerate(program.privacy) if not isinstance(block, CurveRatio)]
    linear = replace(
        program,
        privacy=tuple(program.privacy[k] for k in kept),
        inequalities=table_programs.LinearRows(rows, at, tuple(cell[2] for cell in cells), tuple(bounds)),
    )
    try:
        sharp = solve_rows(linear, watch, explained=False)
    except SolverError:
        return found
    if isinstance(sharp, table_programs.InfeasibleTable):
        return found
    paid, parts = sharp.dual.inequalities[len(less.bounds) :], list(found.dual.privacy)
    for k, part in zip(kept, sharp.dual.privacy, strict=True):
        parts[k] = part
    for k in set(range(len(parts))) - set(kept):
        every = zip(supports, paid, sizes, strict=True)
        own = [(one, z / size) for (number, one), z, size in every if number == k]
        parts[k] = CurveDual(tuple(replace(one, multiplier=float(z)) for one, z in own if z > 0))
    return replace(
        found, dual=replace(sharp.dual, privacy=tuple(parts), inequalities=sharp.dual.inequalities[: len(less.bounds)])
    )


class Levels(dict[int, dict[float, list[tuple[int, int]]]]):
    """The pairs of rows that are stated at each level, by the number of the privacy block of a measure."""

    @classmethod
    def of(cls, program: table_programs.TableProgram) -> Levels:
        """Every pair at the levels of the start."""
        found = cls()
        for number, block in enumerate(program.privacy):
            if isinstance(block, CurveRatio):
                pairs = [(a, b) for a, b in block.pairs.tolist() if a < b or block.both]
                found[number] = {level: list(pairs) for level in block.curve.starts}
        return found

    def add(self, program: table_programs.TableProgram, table: Array, replacing: bool) -> int:
        """State the levels that a table breaks, `replacing` orders close by; how many there were."""
        added = 0
        for number, known in self.items():
            block = program.privacy[number]
            assert isinstance(block, CurveRatio)
            laws = np.asarray(table @ membership(table_programs.classes(block, program.shape[1])).T)
            laws = (1 - _MIXED) * laws + _MIXED * laws.mean(axis=0)
            for a, b in (pair for pair in block.pairs.tolist() if pair[0] < pair[1] or block.both):
                for level, excess in block.curve.broken(laws[a], laws[b]):
                    stated = [one for one, pairs in known.items() if (a, b) in pairs]
                    if excess > _EXCESS and all(abs(one - level) > _SAME * max(1, abs(level)) for one in stated):
                        for one in stated if block.both and replacing else []:
                            # orders that lie close together say nearly the same, and are hard to tell apart in doubles
                            if 0.5 < (one - 1) / (level - 1 or 1) < 2:
                                known[one].remove((a, b))
                        known.setdefault(level, []).append((a, b))
                        added += 1
            self[number] = {level: pairs for level, pairs in known.items() if pairs}
        return added


@dataclass(eq=False, slots=True)
class _Curved:
    """The levels of a measure: pairs with a level each, their bounds, and the constraints of what they have of it."""

    block: CurveRatio
    parts: list[tuple[Pairs, Any, Any]]
    shown: Any

    @property
    def constraints(self) -> list[Any]:
        """All of them."""
        return [one for *_, bounds, own in self.parts for one in (bounds, own)]

    def dual(self) -> CurveDual:
        """Multipliers of supports: those of tangents at the ratios of the table, or of what of a value is counted."""
        found, laws = [], np.maximum(np.asarray(self.shown.value), 1e-300)
        for pairs, bounds, own in self.parts:
            paid = np.maximum(np.atleast_1d(bounds.dual_value), 0.0)
            for k, ((*pair, level), multiplier) in enumerate(zip(pairs, paid.tolist(), strict=True)):
                if not multiplier:
                    continue
                if self.block.both:
                    p, q = laws[pair[0]], laws[pair[1]]
                    s = level - 1
                    # the multiplier of q says the ratio as well, also of what hardly occurs: s t^order, or t at order 1
                    paid_q = np.abs(np.asarray(own.dual_value[1 if s else 2]).reshape(len(pairs), -1)[k]) / multiplier
                    limit = self.block.curve.bound(level)
                    ratios = (paid_q / s) ** (1 / level) * np.exp(s * limit / level) if s else paid_q
                    rare = np.maximum(p, q) < _NOISE
                    at = np.where(rare, np.clip(ratios, 1e-9, 1e9), p / q)
                    multiplier *= level * s * np.exp(-s * limit) if s else 1.0
                    if rare.any():  # or the tangent that is nothing there, whichever proves more
                        found.append(Supported((pair[0], pair[1]), level, 0.0, np.where(rare, 1.0, at)))
                else:
                    at = np.clip(own.dual_value[k] / multiplier, 0.0, 1.0)
                found.append(Supported((pair[0], pair[1]), level, float(multiplier), at))
        return CurveDual(tuple(found))


@dataclass(eq=False, slots=True)
class _Block:
    """The constraints of one privacy block whose multipliers its dual consists of."""

    block: table_programs.Privacy
    constraints: list[Any]

    def dual(self) -> table_programs.CompleteDual | table_programs.PairDual:
        """The multipliers in the solvers' form."""
        values = [np.maximum(np.asarray(c.dual_value, dtype=float), 0.0) for c in self.constraints]
        if isinstance(self.block, table_programs.CompleteRatio):
            return table_programs.CompleteDual(*values)
        pairs, columns = np.nonzero(values[0])
        return table_programs.PairDual(pairs, columns, values[0][pairs, columns])


@dataclass(eq=False)
class TableStated:
    """The whole program as cvxpy has it.

    `labels`: what its parts are called: privacy blocks, equalities and inequalities; by their numbers where nothing is
    said. `widest`: for the table well inside of every inequality, not for the one of least loss.
    """

    program: table_programs.TableProgram
    levels: Levels
    labels: Labels | None = None
    widest: bool = False
    parameters: dict[str, Any] = field(default_factory=dict)
    constraints: dict[str, list[Any]] = field(default_factory=dict)
    table: Any = field(init=False)
    margin: Any = field(init=False)
    extra: Any = field(init=False)
    blocks: list[_Block | _Curved] = field(init=False)
    problem: Any = field(init=False)

    def __post_init__(self) -> None:
        """State every row."""
        program, labels = self.program, self.labels or Labels.numbered(self.program)
        self.table = cp.Variable(program.shape, name=TABLE, nonneg=True)
        self.margin = cp.Variable(nonneg=True) if self.widest else 0.0
        self.extra = cp.Variable(len(program.extra), name=SCALARS) if len(program.extra) else None
        self.constraints[ROWS] = [cp.sum(self.table, axis=1) == 1]
        if self.widest:
            self.constraints[ROWS].append(self.table >= self.margin)
        self.blocks = [
            self._state(block, number, label)
            for number, (block, label) in enumerate(zip(program.privacy, labels.privacy, strict=True))
        ]
        if self.extra is not None:
            self.constraints[RANGES] = self._ranges()
        self.equalities = self._linear(program.equalities, labels.equalities, equal=True)
        self.inequalities = self._linear(program.inequalities, labels.inequalities, equal=False)
        losses = cp.sum(cp.multiply(self._parameter(COST, program.cost), self.table), axis=1)
        self.worst: Any = None
        self.largest: Any = None
        objective = cp.sum(losses)
        if program.worst:
            objective = self.largest = cp.Variable(name="t")
            self.worst = losses <= objective
            self.constraints["loss"] = [self.worst]
        if self.extra is not None:
            objective = objective + np.array([float(v) for v in program.extra.cost]) @ self.extra
        goal = cp.Maximize(self.margin) if self.widest else cp.Minimize(objective)
        self.problem = cp.Problem(goal, labelled(self.constraints))

    def _parameter(self, name: str, value: Any) -> Any:
        self.parameters[name] = cp.Parameter(np.shape(value), name=name, value=value)
        if np.min(value) >= 0:
            self.parameters[name] = cp.Parameter(np.shape(value), name=name, nonneg=True, value=value)
        return self.parameters[name]

    def solve(self, levels: Levels, seconds: float | None) -> None:
        """By HiGHS where it is linear; else by Clarabel, with tolerances that it reaches.

        Raises: ReferenceFailedError.
        """
        options: dict[str, Any] = {} if seconds is None else {"time_limit": seconds}
        names = ("tol_gap_abs", "tol_gap_rel", "tol_feas") if levels else _FEASIBILITIES
        for tolerance, step in _CONIC if levels else ((_FEASIBILITY, None),):
            try:
                more = {} if step is None else {"max_step_fraction": step}
                solver = cp.CLARABEL if levels else cp.HIGHS
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self.problem.solve(solver=solver, **dict.fromkeys(names, tolerance), **more, **options)
            except cp.SolverError as error:
                failed = error
            else:
                return
        raise ReferenceFailedError("solver_error") from failed

    @property
    def infeasible(self) -> bool:
        """Whether no table meets it."""
        status = self.problem.status
        return status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE, cp.settings.INFEASIBLE_OR_UNBOUNDED)

    def _ranges(self) -> list[Any]:
        extra = self.program.extra
        low, high = (np.array([float(v) for v in ends]) for ends in (extra.lower, extra.upper))
        inside = self.margin * (low < high)
        return [self.extra >= low + inside, self.extra <= high - inside]

    def _linear(
        self, rows: table_programs.LinearRows, labels: Sequence[str], *, equal: bool
    ) -> list[tuple[Indices, Any]]:
        """The rows of each label together, with their numbers."""
        if not rows.bounds:
            return []
        everything = cp.reshape(self.table, (self.table.size,), order="C")
        if self.extra is not None:
            everything = cp.hstack([everything, self.extra])
        matrix, right = float_rows(rows, everything.size), np.array([float(bound) for bound in rows.bounds])
        found = []
        for label in dict.fromkeys(labels):
            own = np.array([k for k, one in enumerate(labels) if one == label], dtype=np.intp)
            left = matrix[own] @ everything
            bound = right[own] if equal else self._parameter(f"{label}: bound", right[own])
            stated = left == bound if equal else left + self.margin <= bound
            self.constraints.setdefault(label, []).append(stated)
            found.append((own, stated))
        return found

    def _state(self, block: table_programs.Privacy, number: int, label: str) -> _Block | _Curved:
        shown, stated = self.table @ membership(table_programs.classes(block, self.program.shape[1])).T, list[Any]()
        self.constraints.setdefault(label, stated)
        amounts = {name: self._parameter(f"{label}: {name}", value) for name, value in amounts_of(block).items()}
        if isinstance(block, CurveRatio):
            every = [[(a, b, level) for a, b in pairs] for level, pairs in self.levels[number].items()]
            parts = every if block.both else [[one for part in every for one in part]]
            curved = _Curved(block, [(part, *self._levels(block, shown, part, label)) for part in parts], shown)
            stated += curved.constraints
            return curved
        if isinstance(block, table_programs.CompleteRatio):
            least = np.ones((shown.shape[0], 1)) @ cp.Variable((1, shown.shape[1]), name=f"least law, {label}")
            tops = amounts[RATIO] * least
            found = _Block(block, [least + self.margin <= shown, shown + self.margin <= tops])
            stated += found.constraints
            return found
        first, second = block.pairs.T
        ratio, below = amounts[RATIO], shown[second]
        if ratio.size > 1:
            _, each = np.unique(table_programs.float_ratios(block), return_inverse=True)
            ratios = cp.reshape(np.eye(ratio.size)[each] @ ratio, (len(first), 1), order="C")
            tops = cp.multiply(ratios @ np.ones((1, shown.shape[1])), below)
        else:
            tops = ratio * below
        excess = shown[first] - tops + self.margin
        most = 0.0 if block.pure else amounts[DELTA]
        if block.delta:
            slack = cp.Variable(excess.shape, name=f"excess, {label}", nonneg=True)
            stated.append(cp.sum(slack, axis=1) + self.margin <= most)
            most = slack
        found = _Block(block, [excess <= most])
        stated += found.constraints
        return found

    def _levels(self, block: CurveRatio, shown: Any, pairs: Pairs, label: str) -> tuple[Any, Any]:
        """What pairs have of a level, together at most its bound, and that it is no less than their generator.

        Orders are one for all of the pairs.
        """
        first, second = (shown[[one[k] for one in pairs]] for k in (0, 1))
        share, level = cp.Variable(first.shape, nonneg=True), pairs[0][2]
        limit, s = block.curve.bound(level), level - 1
        if not block.both:
            limits = self._parameter(f"{label}: bounds", np.array([block.curve.bound(one[2]) for one in pairs]))
            ratios = np.exp([[one[2]] * first.shape[1] for one in pairs])
            return cp.sum(share, axis=1) + self.margin <= limits, first - cp.multiply(ratios, second) <= share
        p, q, each = (cp.vec(part, order="C") for part in (first, second, share))
        if not s:
            limit = self._parameter(f"{label}: bound at order 1", limit)
            each = cp.Variable(each.shape)
            total = cp.sum(cp.reshape(each, first.shape, order="C"), axis=1)
            return total + self.margin <= limit, cp.constraints.ExpCone(-each, p, q)
        # shares of the bound: p^order q^-s <= share e^(s limit)
        small = self._parameter(f"{label}: e^(-(a - 1) bound / a) at order a = {level:g}", np.exp(-s * limit / level))
        return cp.sum(share, axis=1) + self.margin <= 1, cp.constraints.PowCone3D(each, q, small * p, 1 / level)

    def result(self) -> RowsResult:
        """Table, scalars and multipliers of the solution."""
        program = self.program
        table: Array = np.maximum(np.asarray(self.table.value, dtype=float), 0.0)
        extra = np.zeros(0) if self.extra is None else np.asarray(self.extra.value, dtype=float)
        # cvxpy adds multipliers times (left - right), HiGHS and `TableDual` subtract those of equalities
        equal = -_multipliers(program.equalities, self.equalities)
        less = _multipliers(program.inequalities, self.inequalities)
        weights = None
        if program.worst:
            weights = np.maximum(np.asarray(self.worst.dual_value, dtype=float), 0.0)
            weights = weights / weights.sum()
        dual = table_programs.TableDual(
            tuple(block.dual() for block in self.blocks), equal, np.maximum(less, 0.0), weights
        )
        rows = sum(constraint.size for constraint in self.problem.constraints)
        return RowsResult(table, extra, float(self.problem.value), dual, rows)


def _multipliers(rows: table_programs.LinearRows, stated: list[tuple[Indices, Any]]) -> Array:
    """Those of all rows, in order."""
    found = np.zeros(len(rows.bounds))
    for own, constraint in stated:
        found[own] = constraint.dual_value
    return found
