"""Optimal finite mechanisms: the linear program, and the exact table near its solution.

A single pure requirement over all pairs or over a forest of neighbours goes to column generation (`table_rays`), every
other program to HiGHS row by row (`table_rows`). The float solution is repaired to an exact table.
Where there are linear rows, it is mixed with the table of greatest margin (which meets the equalities too, so the
mixture does), and the rounding errors of the equalities are taken out on as many entries as there are equalities, by an
exact solve. The share of the mixture grows from 2^-44 until every constraint holds exactly (notes/tables.md).

Finite ratios make neighbours share the set of outputs that are possible at all. Where linear rows force an entry to be
zero, all neighbours must do without that output: if that leaves nothing, no ratio is enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
import scipy
from highspy import HighsModelStatus
from numpy.typing import NDArray
from privspec.solvers import table_programs
from privspec.solvers.highs import HighsProgram
from privspec.solvers.programs import Array, OutOfTimeError, Progress, SolverError, Watch
from privspec.solvers.table_divergences import CurveRatio
from privspec.solvers.table_rays import cone_of, solve_cone
from privspec.solvers.table_rows import RowsProgram, RowsResult, float_rows, solve_rows, widest_table

_GRID_BITS = 80
_SHARES = tuple(2.0**-power for power in range(44, 12, -4))
_FINER = tuple(2.0**-power for power in range(40, 8, -1))
_UNUSED = 1e-8
"""Columns that are nowhere more likely are left out of mixtures."""
_RANK = 1e-11
_SMALL = 1000
"""Denominators of fractions that are tried first."""
_NEAR = 1e-10
"""How near to them the entries of the float optimum lie."""


@dataclass(frozen=True, slots=True)
class _Equation:
    """sum of coefficients[c] v[c] = bound, over entries of the table and further scalars."""

    coefficients: dict[int, Fraction]
    bound: Fraction

    def residual(self, values: Sequence[Fraction]) -> Fraction:
        """How much is missing on the left."""
        return self.bound - sum((a * values[c] for c, a in self.coefficients.items()), Fraction(0))


def repair_affine(
    program: table_programs.TableProgram, table: Array, extra: Array, inner: tuple[Array, Array] | None = None
) -> table_programs.ExactTable:
    """An exact table near the float one that meets every constraint of the program; `inner` one well inside, if known.

    Raises: SolverError if no table lies strictly inside the inequalities, so that rounding cannot be absorbed.
    """
    point = np.concatenate((table.ravel(), extra))
    simple = _simplest(program, point)
    if simple is not None:
        return simple
    margin, *widest = widest_table(program) if inner is None else (0.0, *inner)
    inside = np.concatenate([part.ravel() for part in widest])
    equations = _equations(program)
    for share in _SHARES if inner is None else _FINER:
        mixed = (1 - share) * point + share * inside
        for staged in (True, False):
            exact = _corrected(program, equations, mixed, staged)
            if table_programs.valid(program, exact):
                return exact
    raise SolverError(f"no exact table was found near the optimum: the constraints leave a margin of {margin:.1e} only")


def mixed(program: table_programs.TableProgram, table: Array) -> table_programs.ExactTable:
    """An exact table near the float one, mixed with as little of the mean of its rows as every measure needs.

    Raises: SolverError if lines forbid it.
    """
    table = np.where(table.max(axis=0) < _UNUSED, 0.0, table)
    table /= table.sum(axis=1, keepdims=True)
    for power in range(40, 3, -1):
        found = _mixture(program, table, 2.0**-power)
        if found is not None:
            finer = (_mixture(program, table, 2.0**-power * part) for part in (0.5625, 0.625, 0.75))
            return next((one for one in finer if one is not None), found)
    raise SolverError("no exact table was found near the optimum")


def _mixture(program: table_programs.TableProgram, table: Array, share: float) -> table_programs.ExactTable | None:
    """The table with a share of the mean of its rows in whole numbers, if it meets every constraint."""
    near, whole = (1 - share) * table + share * table.mean(axis=0), 1 << _GRID_BITS
    rows = [[int(Fraction(float(v)) * whole) for v in row] for row in near]
    for row in rows:
        row[row.index(max(row))] += whole - sum(row)
    exact = table_programs.ExactTable(tuple(map(tuple, rows)), whole, ())
    return exact if table_programs.valid(program, exact) else None


def _simplest(program: table_programs.TableProgram, point: Array) -> table_programs.ExactTable | None:
    """The fractions of small denominators next to the point, where they meet every constraint.

    They do where a vertex has no powers of e in it, as without privacy lines; a table that is as good as the optimum
    then is the optimum, and its zeros are zeros.
    """
    values = [Fraction(float(v)).limit_denominator(_SMALL) for v in point]
    away = np.abs(np.array([float(v) for v in values]) - point)
    if away.max(initial=0.0) > _NEAR or math.lcm(*(v.denominator for v in values)) > 1 << _GRID_BITS:
        return None
    exact = _written(program, values)
    return exact if table_programs.valid(program, exact) else None


def _equations(program: table_programs.TableProgram) -> list[_Equation]:
    inputs, outputs = program.shape
    sums = [_Equation({x * outputs + y: Fraction(1) for y in range(outputs)}, Fraction(1)) for x in range(inputs)]
    return sums + _from_rows(program.equalities)


def _from_rows(rows: table_programs.LinearRows) -> list[_Equation]:
    found = [_Equation({}, bound) for bound in rows.bounds]
    for row, column, value in zip(rows.rows, rows.columns, rows.values, strict=True):
        coefficients = found[row].coefficients
        coefficients[int(column)] = coefficients.get(int(column), Fraction(0)) + value
    return found


def _corrected(
    program: table_programs.TableProgram, equations: list[_Equation], mixed: Array, staged: bool
) -> table_programs.ExactTable:
    """Round to a grid and make the equalities exact: the scalars first and then the table, or all at once."""
    entries = program.shape[0] * program.shape[1]
    values = [Fraction(math.floor(Fraction(float(v)) * (1 << _GRID_BITS)), 1 << _GRID_BITS) for v in mixed]
    low, high = program.extra.lower, program.extra.upper
    free = []
    for k in range(len(program.extra)):
        values[entries + k] = min(max(values[entries + k], low[k]), high[k])
        if low[k] < high[k]:
            free.append(entries + k)
    if staged:
        alone = [e for e in equations if all(c >= entries for c in e.coefficients)]
        _correct(values, alone, np.array(free, dtype=np.intp), mixed)
        rest = [e for e in equations if any(c < entries for c in e.coefficients)]
        _correct(values, rest, np.arange(entries), mixed)
    else:
        _correct(values, equations, np.append(np.arange(entries), free).astype(np.intp), mixed)
    return _written(program, values)


def _written(program: table_programs.TableProgram, values: list[Fraction]) -> table_programs.ExactTable:
    entries = program.shape[0] * program.shape[1]
    common = math.lcm(*(v.denominator for v in values[:entries]))
    numerators = [v.numerator * (common // v.denominator) for v in values[:entries]]
    width = program.shape[1]
    rows = tuple(tuple(numerators[start : start + width]) for start in range(0, entries, width))
    return table_programs.ExactTable(rows, common, tuple(values[entries:]))


def _correct(values: list[Fraction], equations: list[_Equation], columns: np.ndarray, weights: Array) -> None:
    """Change `values` at some of the `columns` so that the equations hold, where they are independent there."""
    if not equations or not len(columns):
        return
    position = {int(c): k for k, c in enumerate(columns)}
    cells = [(k, position[c], a) for k, e in enumerate(equations) for c, a in e.coefficients.items() if c in position]
    rows = np.array([cell[0] for cell in cells], dtype=np.intp)
    at = np.array([cell[1] for cell in cells], dtype=np.intp)
    matrix = scipy.sparse.csr_array(
        (np.array([float(cell[2]) for cell in cells]), (rows, at)), shape=(len(equations), len(columns))
    )
    size = len(equations) + len(columns)
    touches = scipy.sparse.csr_array((np.ones(len(rows)), (rows, at + len(equations))), shape=(size, size))
    _, label = scipy.sparse.csgraph.connected_components(touches, directed=False)
    by_row, by_column = label[: len(equations)], label[len(equations) :]
    for part in np.unique(by_row):
        own, touched = np.flatnonzero(by_row == part), np.flatnonzero(by_column == part)
        if len(touched):
            dense = matrix[own][:, touched].toarray()
            _correct_part(values, [equations[k] for k in own], columns[touched], dense, weights)


def _correct_part(
    values: list[Fraction], equations: list[_Equation], columns: np.ndarray, matrix: Array, weights: Array
) -> None:
    import flint

    # Large entries are moved first: they have most room. Rows are scaled alike so that ranks can be judged.
    scale = np.abs(matrix).max(axis=1, keepdims=True)
    weighted = matrix / np.where(scale > 0, scale, 1.0) * (1e-6 + np.abs(weights[columns]))
    _, triangle, order = scipy.linalg.qr(weighted, mode="economic", pivoting=True)
    size = np.abs(np.diag(triangle))
    rank = int(np.sum(size > _RANK * size[0]))
    basis = order[:rank]
    _, _, chosen = scipy.linalg.qr(weighted[:, basis].T, mode="economic", pivoting=True)
    independent = chosen[:rank]

    def fraction(value: Fraction) -> flint.fmpq:
        return flint.fmpq(value.numerator, value.denominator)

    left = [fraction(equations[k].coefficients.get(int(columns[c]), Fraction(0))) for k in independent for c in basis]
    right = [fraction(equations[k].residual(values)) for k in independent]
    steps = flint.fmpq_mat(rank, rank, left).solve(flint.fmpq_mat(rank, 1, right))
    for k, c in enumerate(basis):
        step = steps[k, 0]
        values[int(columns[c])] += Fraction(int(step.p), int(step.q))


# --- the best table -------------------------------------------------------------------------------


def solve_table(
    program: table_programs.TableProgram,
    tolerance: float = 1e-9,
    deadline: float | None = None,
    progress: Progress | None = None,
    cost: table_programs.Entries | None = None,
) -> table_programs.TableSolution | table_programs.InfeasibleTable:
    """The optimal table, exact, with its multipliers; or which constraints conflict.

    Args: tolerance, relative, of the float optimum; deadline in seconds; cost (X, Y) of Fractions, the exact loss that
        `program.cost` rounds (used for `value` only).
    Raises: OutOfTimeError if the deadline passed before there was a feasible table; SolverError if HiGHS gave up.
    Source: TABLES.md; Kairouz, Oh, Viswanath 2016 (complete adjacency); notes/tables.md.
    """
    watch = Watch(deadline, progress)
    cone = cone_of(program)
    if cone is None:
        found = solve_rows(program, watch)
        method = "rows"
        if isinstance(found, table_programs.InfeasibleTable):
            return found
    else:
        rays = solve_cone(program, cone, tolerance, watch)
        found = RowsResult(rays.table, np.zeros(0), rays.value, rays.dual, rays.rows, rays.notes)
        method = "rays"
    return exact_solution(program, found, method, watch, cost)


def exact_solution(
    program: table_programs.TableProgram,
    found: RowsResult,
    method: str,
    watch: Watch,
    cost: table_programs.Entries | None = None,
    inner: tuple[Array, Array] | None = None,
) -> table_programs.TableSolution:
    """A float solution made exact; `cost` as for `solve_table`, `inner` a table with scalars well inside, if known."""
    return table_programs.TableSolution(
        program=program,
        table=found.table,
        optimum=found.value,
        make=partial(_exact, program, found, inner),
        dual=found.dual,
        method=method,
        rows=found.rows,
        iterations=watch.iterations,
        seconds=watch.seconds,
        notes=found.notes,
        cost=cost,
    )


def _exact(
    program: table_programs.TableProgram, found: RowsResult, inner: tuple[Array, Array] | None
) -> table_programs.ExactTable:
    curved = any(isinstance(block, CurveRatio) for block in program.privacy)
    if program.plain and curved:
        return mixed(program, found.table)
    if program.plain:
        exact = table_programs.repair(program, found.table)
        # Ratios of one with a delta may leave no room to pad: a mixture always has some.
        if table_programs.valid(program, exact):
            return exact
    return repair_affine(program, found.table, found.extra, inner)


# --- whether any table is possible ----------------------------------------------------------------


Mask = NDArray[np.bool_]
_MANY = 2000


def without_loss(program: table_programs.TableProgram) -> table_programs.TableProgram:
    """The same constraints with nothing to minimise."""
    extra = program.extra
    free = table_programs.Extra(extra.lower, extra.upper, tuple(c * 0 for c in extra.cost), extra.names)
    return replace(program, cost=np.zeros(program.shape), worst=False, extra=free)


def has_table(program: table_programs.TableProgram, watch: Watch) -> bool:
    """Whether a table meets the constraints, as far as doubles can tell.

    Raises: OutOfTimeError if the deadline passed.
    """
    if program.plain:
        return True
    rows = RowsProgram(without_loss(program))
    if rows.rows > _MANY:
        # The simplex method may run in circles where a table is just impossible.
        rows.lp.set("solver", "ipm")
        rows.lp.set("run_crossover", "off")
    status = rows.settle(watch)
    if watch.expired:
        raise OutOfTimeError(None)
    return status == HighsModelStatus.kOptimal


@dataclass(frozen=True, eq=False, slots=True)
class NoSupport:
    """No set of possible outputs fits all rows; `possible` (X, Y) are those that the linear rows alone allow."""

    possible: Mask


def no_common_support(program: table_programs.TableProgram, block: table_programs.Privacy) -> NoSupport | None:
    """Proof that the linear rows fit no table that meets this pure block with finite ratios; None if there is none.

    The other blocks are left out: with them there are fewer tables still.
    """
    inputs, outputs = program.shape
    seen = table_programs.classes(block, outputs)
    label = _components(block, inputs)
    allowed = np.ones((inputs, outputs), dtype=bool)
    first: Mask | None = None
    while True:
        found = _possible(program, allowed)
        if found is None:
            return NoSupport(allowed if first is None else first)
        first = found if first is None else first
        kept = _shared(found, label, seen)
        if np.array_equal(kept, allowed):
            return None
        allowed = kept


def _components(block: table_programs.Privacy, inputs: int) -> NDArray[np.int32]:
    """Inputs that are bound together, by number."""
    if isinstance(block, table_programs.CompleteRatio):
        return np.zeros(inputs, dtype=np.int32)
    first, second = block.pairs.T
    graph = scipy.sparse.csr_array((np.ones(len(first)), (first, second)), shape=(inputs, inputs))
    label: NDArray[np.int32] = scipy.sparse.csgraph.connected_components(graph, directed=False)[1]
    return label


def _shared(possible: Mask, label: NDArray[np.int32], seen: NDArray[np.intp]) -> Mask:
    """What remains possible when neighbours see the same outputs."""
    members = seen[None, :] == np.arange(int(seen.max()) + 1)[:, None]
    shown = (possible.astype(int) @ members.T.astype(int)) > 0
    for part in range(int(label.max()) + 1):
        own = label == part
        shown[own] = shown[own].all(axis=0)
    remaining: Mask = possible & shown[:, seen]
    return remaining


def _possible(program: table_programs.TableProgram, allowed: Mask) -> Mask | None:
    """Entries that are positive in some table within `allowed`; None if there is no table.

    All at once: entries of a multiple of a table, as many as can be brought to one, are counted by caps at one.
    """
    entries, scalars = allowed.size, len(program.extra)
    lp = HighsProgram()
    ceiling = np.where(allowed.ravel(), np.inf, 0.0)
    lp.add_columns(np.zeros(entries), np.zeros(entries), ceiling)
    lp.add_columns(np.zeros(scalars), np.full(scalars, -np.inf), np.full(scalars, np.inf))
    lp.add_columns(np.zeros(1), np.ones(1), np.full(1, np.inf))
    lp.add_columns(-np.ones(entries), np.zeros(entries), np.ones(entries))
    more = scipy.sparse.eye_array(entries, 2 * entries + scalars + 1, k=entries + scalars + 1)
    caps = scipy.sparse.csr_array(more - scipy.sparse.eye_array(*more.shape))
    for matrix, bounds, equal in (*_rows(program), (caps, np.zeros(entries), False)):
        # of a multiple k of table and scalars, whose column stands behind theirs
        shape = (len(bounds), more.shape[1])
        wide = scipy.sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=shape)
        none, at = np.zeros(len(bounds)), (np.arange(len(bounds)), np.full(len(bounds), entries + scalars))
        part = scipy.sparse.csr_array(wide - scipy.sparse.csr_array((bounds, at), shape=shape))
        lp.add_rows(none if equal else none - np.inf, none, part)
    if lp.run() != HighsModelStatus.kOptimal:
        return None
    found: Mask = (lp.column_value()[-entries:] > 0.5).reshape(allowed.shape)
    return found


def _rows(program: table_programs.TableProgram) -> Iterator[tuple[scipy.sparse.csr_array, NDArray[np.float64], bool]]:
    """The linear constraints of table and scalars, with their bounds, and whether they are equalities."""
    inputs, outputs = program.shape
    entries, scalars = inputs * outputs, len(program.extra)
    yield (
        scipy.sparse.csr_array(scipy.sparse.kron(scipy.sparse.eye_array(inputs), np.ones((1, outputs)))),
        np.ones(inputs),
        True,
    )
    for rows, equal in ((program.equalities, True), (program.inequalities, False)):
        yield float_rows(rows, entries + scalars), np.array([float(b) for b in rows.bounds]), equal
    own = scipy.sparse.csr_array(scipy.sparse.eye_array(scalars, entries + scalars, k=entries))
    for sign, ends in ((1.0, program.extra.upper), (-1.0, program.extra.lower)):
        yield scipy.sparse.csr_array(sign * own), sign * np.array([float(e) for e in ends]), False
