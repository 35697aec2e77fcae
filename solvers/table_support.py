"""Whether any table meets the constraints, and whether some ratio, however large, would let one.

Finite ratios make neighbours share the set of outputs that are possible at all. Where linear rows force an entry to be
zero, all neighbours must do without that output: if that leaves nothing, no ratio is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from highspy import HighsModelStatus
from numpy.typing import NDArray
from privspec.solvers.programs import OutOfTimeError, Watch
from privspec.solvers.table_programs import CompleteRatio, Extra, Privacy, TableProgram, classes
from privspec.solvers.table_rows import HighsProgram, RowsProgram, float_rows
from scipy import sparse

Mask = NDArray[np.bool_]
_MANY = 2000


def without_loss(program: TableProgram) -> TableProgram:
    """The same constraints with nothing to minimise."""
    extra = program.extra
    free = Extra(extra.lower, extra.upper, tuple(c * 0 for c in extra.cost), extra.names)
    return replace(program, cost=np.zeros(program.shape), worst=False, extra=free)


def has_table(program: TableProgram, watch: Watch) -> bool:
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


def no_common_support(program: TableProgram, block: Privacy) -> NoSupport | None:
    """Proof that the linear rows fit no table that meets this pure block with finite ratios; None if there is none.

    The other blocks are left out: with them there are fewer tables still.
    """
    inputs, outputs = program.shape
    seen = classes(block, outputs)
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


def _components(block: Privacy, inputs: int) -> NDArray[np.int32]:
    """Inputs that are bound together, by number."""
    if isinstance(block, CompleteRatio):
        return np.zeros(inputs, dtype=np.int32)
    from scipy.sparse.csgraph import connected_components  # slow to load

    first, second = block.pairs.T
    graph = sparse.csr_array((np.ones(len(first)), (first, second)), shape=(inputs, inputs))
    label: NDArray[np.int32] = connected_components(graph, directed=False)[1]
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


def _possible(program: TableProgram, allowed: Mask) -> Mask | None:
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
    more = sparse.eye_array(entries, 2 * entries + scalars + 1, k=entries + scalars + 1)
    caps = sparse.csr_array(more - sparse.eye_array(*more.shape))
    for matrix, bounds, equal in (*_rows(program), (caps, np.zeros(entries), False)):
        # of a multiple k of table and scalars, whose column stands behind theirs
        shape = (len(bounds), more.shape[1])
        wide = sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=shape)
        none, at = np.zeros(len(bounds)), (np.arange(len(bounds)), np.full(len(bounds), entries + scalars))
        part = sparse.csr_array(wide - sparse.csr_array((bounds, at), shape=shape))
        lp.add_rows(none if equal else none - np.inf, none, part)
    if lp.run() != HighsModelStatus.kOptimal:
        return None
    found: Mask = (lp.column_value()[-entries:] > 0.5).reshape(allowed.shape)
    return found


def _rows(program: TableProgram) -> Iterator[tuple[sparse.csr_array, NDArray[np.float64], bool]]:
    """The linear constraints of table and scalars, with their bounds, and whether they are equalities."""
    inputs, outputs = program.shape
    entries, scalars = inputs * outputs, len(program.extra)
    yield sparse.csr_array(sparse.kron(sparse.eye_array(inputs), np.ones((1, outputs)))), np.ones(inputs), True
    for rows, equal in ((program.equalities, True), (program.inequalities, False)):
        yield float_rows(rows, entries + scalars), np.array([float(b) for b in rows.bounds]), equal
    own = sparse.csr_array(sparse.eye_array(scalars, entries + scalars, k=entries))
    for sign, ends in ((1.0, program.extra.upper), (-1.0, program.extra.lower)):
        yield sparse.csr_array(sign * own), sign * np.array([float(e) for e in ends]), False
