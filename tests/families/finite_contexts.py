"""Contexts that the tests of finite mechanisms share, and the optimum of each."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from privspec.solvers.table_programs import CompleteRatio, PairRatio, Privacy, TableProgram, TableSolution
from privspec.solvers.tables import solve_table

from privspec.families.tables.noise import Neighbours, TableContext

Exact = list[list[Fraction]]


def numbers(*values: int | Fraction) -> tuple[tuple[Fraction], ...]:
    return tuple((Fraction(v),) for v in values)


def words(text: str) -> tuple[tuple[str], ...]:
    return tuple((letter,) for letter in text)


def apart(n: int) -> np.ndarray:
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)


def chain(n: int) -> np.ndarray:
    return np.array([(a, b) for a in range(n) for b in (a - 1, a + 1) if 0 <= b < n])


def count(
    n: int, epsilon: str, prior: np.ndarray | None = None, cost: np.ndarray | None = None, worst: bool = False
) -> TableContext:
    """A count from 0 to n, absolute loss unless another is given."""
    size = n + 1
    law = np.full(size, 1 / size) if prior is None else prior
    rows = numbers(*range(size))
    neighbours = Neighbours.adjacent(size, chain(size))
    return TableContext(rows, rows, Fraction(epsilon), neighbours, apart(size) if cost is None else cost, law, worst)


def local(k: int, epsilon: str, prior: np.ndarray | None = None, delta: str = "0") -> TableContext:
    """One of k words, every two neighbours; the loss is 1 where the answer is wrong."""
    law = np.full(k, 1 / k) if prior is None else prior
    rows = words("abcdefghij"[:k])
    neighbours = Neighbours.complete(k)
    return TableContext(rows, rows, Fraction(epsilon), neighbours, 1 - np.eye(k), law, delta=Fraction(delta))


def plane(side: int, epsilon: str, prior: np.ndarray | None = None) -> TableContext:
    """A square grid under Euclidean metric privacy and loss."""
    places = [(a, b) for a in range(1, side + 1) for b in range(1, side + 1)]
    at = np.array(places, dtype=float)
    distances = np.linalg.norm(at[:, None] - at[None], axis=2)
    law = np.full(len(at), 1 / len(at)) if prior is None else prior
    rows = tuple((Fraction(a), Fraction(b)) for a, b in places)
    return TableContext(rows, rows, Fraction(epsilon), Neighbours.metric(distances), distances, law)


def optimum(context: TableContext) -> TableSolution:
    """The best table for the requirement and the loss of a context without delta."""
    size = len(context.rows)
    privacy: Privacy
    if context.neighbours.uniform:
        privacy = CompleteRatio(context.epsilon)
    else:
        pairs = np.argwhere(context.neighbours.pairs)
        steps = context.neighbours.distances[pairs[:, 0], pairs[:, 1]]
        privacy = PairRatio(pairs, tuple(context.epsilon * Fraction(step) for step in steps.tolist()))
    assert context.prior is not None or context.worst
    weights = np.ones(size) if context.worst else context.prior
    found = solve_table(TableProgram(context.cost * weights[:, None], (privacy,), worst=context.worst))
    assert isinstance(found, TableSolution)
    return found


def fractions(found: TableSolution) -> Exact:
    return [[Fraction(entry, found.exact.denominator) for entry in row] for row in found.exact.numerators]
