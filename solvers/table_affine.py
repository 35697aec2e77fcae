"""Exact tables for programs with linear rows: a mixture with a table well inside, corrected exactly on few entries.

The float optimum is mixed with the table of greatest margin (which meets the equalities too, so the mixture does), and
the rounding errors of the equalities are taken out on as many entries as there are equalities, by an exact solve. The
share of the mixture grows from 2^-44 until every constraint holds exactly (notes/tables.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from privspec.solvers.programs import Array, SolverError
from privspec.solvers.table_programs import ExactTable, LinearRows, TableProgram, valid
from privspec.solvers.table_rows import widest_table
from scipy import sparse

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
    program: TableProgram, table: Array, extra: Array, inner: tuple[Array, Array] | None = None
) -> ExactTable:
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
            if valid(program, exact):
                return exact
    raise SolverError(f"no exact table was found near the optimum: the constraints leave a margin of {margin:.1e} only")


def mixed(program: TableProgram, table: Array) -> ExactTable:
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


def _mixture(program: TableProgram, table: Array, share: float) -> ExactTable | None:
    """The table with a share of the mean of its rows in whole numbers, if it meets every constraint."""
    near, whole = (1 - share) * table + share * table.mean(axis=0), 1 << _GRID_BITS
    rows = [[int(Fraction(float(v)) * whole) for v in row] for row in near]
    for row in rows:
        row[row.index(max(row))] += whole - sum(row)
    exact = ExactTable(tuple(map(tuple, rows)), whole, ())
    return exact if valid(program, exact) else None


def _simplest(program: TableProgram, point: Array) -> ExactTable | None:
    """The fractions of small denominators next to the point, where they meet every constraint.

    They do where a vertex has no powers of e in it, as without privacy lines; a table that is as good as the optimum
    then is the optimum, and its zeros are zeros.
    """
    values = [Fraction(float(v)).limit_denominator(_SMALL) for v in point]
    away = np.abs(np.array([float(v) for v in values]) - point)
    if away.max(initial=0.0) > _NEAR or math.lcm(*(v.denominator for v in values)) > 1 << _GRID_BITS:
        return None
    exact = _written(program, values)
    return exact if valid(program, exact) else None


def _equations(program: TableProgram) -> list[_Equation]:
    inputs, outputs = program.shape
    sums = [_Equation({x * outputs + y: Fraction(1) for y in range(outputs)}, Fraction(1)) for x in range(inputs)]
    return sums + _from_rows(program.equalities)


def _from_rows(rows: LinearRows) -> list[_Equation]:
    found = [_Equation({}, bound) for bound in rows.bounds]
    for row, column, value in zip(rows.rows, rows.columns, rows.values, strict=True):
        coefficients = found[row].coefficients
        coefficients[int(column)] = coefficients.get(int(column), Fraction(0)) + value
    return found


def _corrected(program: TableProgram, equations: list[_Equation], mixed: Array, staged: bool) -> ExactTable:
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


def _written(program: TableProgram, values: list[Fraction]) -> ExactTable:
    entries = program.shape[0] * program.shape[1]
    common = math.lcm(*(v.denominator for v in values[:entries]))
    numerators = [v.numerator * (common // v.denominator) for v in values[:entries]]
    width = program.shape[1]
    rows = tuple(tuple(numerators[start : start + width]) for start in range(0, entries, width))
    return ExactTable(rows, common, tuple(values[entries:]))


def _correct(values: list[Fraction], equations: list[_Equation], columns: np.ndarray, weights: Array) -> None:
    """Change `values` at some of the `columns` so that the equations hold, where they are independent there."""
    if not equations or not len(columns):
        return
    from scipy.sparse.csgraph import connected_components  # slow to load

    position = {int(c): k for k, c in enumerate(columns)}
    cells = [(k, position[c], a) for k, e in enumerate(equations) for c, a in e.coefficients.items() if c in position]
    rows = np.array([cell[0] for cell in cells], dtype=np.intp)
    at = np.array([cell[1] for cell in cells], dtype=np.intp)
    matrix = sparse.csr_array(
        (np.array([float(cell[2]) for cell in cells]), (rows, at)), shape=(len(equations), len(columns))
    )
    size = len(equations) + len(columns)
    touches = sparse.csr_array((np.ones(len(rows)), (rows, at + len(equations))), shape=(size, size))
    _, label = connected_components(touches, directed=False)
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
    from scipy.linalg import qr  # slow to load

    # Large entries are moved first: they have most room. Rows are scaled alike so that ranks can be judged.
    scale = np.abs(matrix).max(axis=1, keepdims=True)
    weighted = matrix / np.where(scale > 0, scale, 1.0) * (1e-6 + np.abs(weights[columns]))
    _, triangle, order = qr(weighted, mode="economic", pivoting=True)
    size = np.abs(np.diag(triangle))
    rank = int(np.sum(size > _RANK * size[0]))
    basis = order[:rank]
    _, _, chosen = qr(weighted[:, basis].T, mode="economic", pivoting=True)
    independent = chosen[:rank]

    def fraction(value: Fraction) -> flint.fmpq:
        return flint.fmpq(value.numerator, value.denominator)

    left = [fraction(equations[k].coefficients.get(int(columns[c]), Fraction(0))) for k in independent for c in basis]
    right = [fraction(equations[k].residual(values)) for k in independent]
    steps = flint.fmpq_mat(rank, rank, left).solve(flint.fmpq_mat(rank, 1, right))
    for k, c in enumerate(basis):
        step = steps[k, 0]
        values[int(columns[c])] += Fraction(int(step.p), int(step.q))
