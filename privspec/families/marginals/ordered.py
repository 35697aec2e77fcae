"""Tables of counts with columns in order: strategies that share one limit, and what is worked out of their answers."""

from __future__ import annotations

from fractions import Fraction
from math import floor, log2, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import InternalError
from privspec.core.matrices import DyadicMatrix
from privspec.families.decision import Alternative
from privspec.kernel.core.linear import Matrix
from privspec.kernel.core.numbers import sqrt_up
from privspec.kernel.core.reading import Item
from privspec.kernel.marginals import Marginals
from privspec.kernel.ordered import Kinds, Strategies, asked_of, kinds_of, read_strategies, ways_of
from privspec.kernel.rows import doubles
from privspec.problem.form import Numbers
from privspec.solvers.marginals import Strategies as Found
from privspec.solvers.marginals import strategies

SPARE = 1e-11
"""By so much of itself a strategy is smaller than the solver says."""
BITS = 56
"""Binary digits of the largest entry of a matrix."""
OUTPUT_STEPS = 14
LIMB = 25
"""Bits of the pieces in which a strategy is multiplied with counts in 64 bits."""
Array = NDArray[np.float64]


def solved(block: Marginals) -> Found:
    """The strategies of least loss, at a limit of 1, one for all sets of columns whose V_T are alike up to a factor."""
    kinds = kinds_of(block)
    asked = [floats(asked_of(block, weights)) for weights in kinds.weights]
    return strategies(asked, _prices(block, kinds).tolist())


def _prices(block: Marginals, kinds: Kinds) -> Array:
    """Of each kind: sets T of one kind, V_T = a_T V, are as one whose price has the root of the sum of all p_T a_T."""
    found = np.zeros(len(kinds.weights))
    for own, (kind, factor) in kinds.places.items():
        found[kind] += sqrt(block.share(own) * factor)
    return found**2


def rounded(block: Marginals, found: Found, allowed: Fraction) -> tuple[Strategies, dict[str, Any]]:
    """What is executed at the mu that one record may have, and as it stands in a plan."""
    mu, spare, kinds = float(allowed), SPARE, kinds_of(block)
    prices = _prices(block, kinds)
    for _ in range(40):
        parts = list[dict[str, Any]]()
        for own, (kind, factor) in kinds.places.items():
            part, size = found.parts[kind], mu * (1 - spare) * (prices[kind] * factor / block.share(own)) ** 0.25
            strategy, estimates = (
                DyadicMatrix.rounded(one, BITS) for one in (part.strategy * size, part.estimates / size)
            )
            parts.append({"columns": list(own), "strategy": strategy.to_json(), "reconstruction": estimates.to_json()})
        # no deviation is below 1 / mu
        grid = f"2^{min(floor(-log2(mu)) - OUTPUT_STEPS, -20)}"
        said = {"family": "ordered", "parts": parts, "grid": "2^-30", "output_grid": grid}
        executed = read_strategies(block, Item(said, "mechanism"))
        if sqrt_up(executed.most(block.subsets), 100) <= allowed * (1 - Fraction(1, 10**14)):
            return executed, said
        spare *= 4
    raise InternalError("the strategies that were found do not meet the lines")


def witness_of(found: Found, line: int, mu: str | None) -> dict[str, Any]:
    """The line that allows least, a scale for each ordered cell, and vectors of each kind of V_T."""
    scales = np.rint(np.ldexp(np.sqrt(found.shares), BITS)).astype(np.int64)
    return {
        "line": line,
        "mu": mu,
        "scales": Numbers(scales.shape, Fraction(1, 2**BITS), tuple(scales.tolist())).to_json(),
        "parts": [DyadicMatrix.rounded(part.vectors, BITS).to_json() for part in found.parts],
    }


def alternatives(block: Marginals, mu: float) -> list[Alternative]:
    """What usual ways to add noise to these tables would cost."""
    every = prod(map(float, block.sizes))
    # by table: its weight times its numbers, and how many of them a record counts in; cells that all of them add up
    weights, most, cells = list[float](), list[int](), 0.0
    for place, weight in block.terms[0]:
        columns, asked = block.tables[place], block.asks[place]
        weights.append(float(weight) * block.numbers[place])
        most.append(prod(_counted_in(block.sizes[i], asked.get(i)) for i in columns))
        added = prod(_added(block.sizes[i], asked.get(i)) for i in columns)
        cells += float(weight) * added * every / prod(block.sizes[i] for i in columns)
    found = {
        "noise on each table, each of its own size": sum(sqrt(w * m) for w, m in zip(weights, most, strict=True)) ** 2,
        "equal noise on each answer": sum(most) * sum(weights),
        "equal noise on each cell of the whole table": cells,
    }
    return [Alternative(name, loss / mu**2) for name, loss in sorted(found.items(), key=lambda one: one[1])]


def _counted_in(n: int, way: str | None) -> int:
    """In how many numbers along a column a record counts at most."""
    return n if way == "running" else (n // 2 + 1) * (n - n // 2) if way == "ranges" else 1


def _added(n: int, way: str | None) -> int:
    """How many values all numbers along a column add up."""
    return n * (n + 1) // 2 if way == "running" else n * (n + 1) * (n + 2) // 6 if way == "ranges" else n


# --- what is released --------------------------------------------------------------------------------


def floats(matrix: Matrix) -> Array:
    """An exact matrix in doubles."""
    return np.array(doubles(matrix), dtype=np.float64).reshape(matrix.nrows(), matrix.ncols())


def times(left: NDArray[Any], whole: list[int], rows: int) -> NDArray[Any]:
    """Whole numbers (cells, M) times the transpose of a matrix (rows, M) of whole numbers, exactly."""
    entries, total, shift = (
        np.array(whole, dtype=object).reshape(rows, -1),
        np.zeros((len(left), rows), dtype=object),
        0,
    )
    signs, sizes = np.where(entries < 0, -1, 1), np.abs(entries)
    most = float(np.abs(left).astype(np.float64).max(initial=0.0)) * left.shape[1] * 2.0**LIMB
    while (sizes > 0).any():
        limb = signs * (sizes % 2**LIMB)
        part = left @ limb.T if left.dtype == object or most >= 2.0**62 else left @ limb.astype(np.int64).T
        total = total + part.astype(object) * 2**shift
        sizes, shift = sizes // 2**LIMB, shift + LIMB
    return total


def along(block: Marginals, place: int, values: Array, axes: int) -> Array:
    """What a table, by its place, asks of the ordered cells, the last axis; those before are left as they are."""
    found = values.reshape((*values.shape[:axes], *(block.sizes[i] for i in block.ordered)))
    at = axes
    for way in ways_of(block, place):
        if way == "all":
            found = found.sum(axis=at)
            continue
        if way == "running":
            found = found.cumsum(axis=at)
        elif way == "ranges":
            low, high = np.triu_indices(found.shape[at])
            before = np.insert(found.cumsum(axis=at), 0, 0.0, axis=at)
            found = np.take(before, high + 1, axis=at) - np.take(before, low, axis=at)
        at += 1
    return found


def variances(executed: Strategies) -> Array:
    """The variance of every released number, in order."""
    block, found = executed.block, list[Array]()
    roots = {own: floats(part.reconstruction).T for own, part in executed.parts.items()}
    for place, table in enumerate(block.tables):
        plain, total = block.plain(table), np.zeros(())
        for own in block.within(table):
            spread = prod(block.sizes[i] for i in plain if i not in own)
            squares = (along(block, place, roots[own], 1) ** 2).sum(axis=0)
            total = total + squares * (float(block.share(own)) / spread**2)
        axes = [*plain, *(i for i in block.ordered if i in table)]
        full = np.broadcast_to(total, [*(block.sizes[i] for i in plain), *total.shape])
        found.append(full.transpose([axes.index(i) for i in table]).reshape(-1))
    return np.concatenate(found)
