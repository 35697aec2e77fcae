"""The mechanisms that people use, beside the optimum: constant, exponential, randomised response, subset selection."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from math import comb, exp

import numpy as np
from numpy.typing import NDArray

from privspec.families.tables.context import (
    Array,
    Candidate,
    Comparison,
    Mechanism,
    TableContext,
    best_remap,
    coordinates,
    decay,
    positions,
    shown,
)
from privspec.families.tables.noise import (
    geometric_candidates,
    laplace_candidates,
    planar_candidates,
    staircase_candidates,
)


def constant_candidates(context: TableContext) -> Iterator[Candidate]:
    """The best answer without looking: all rows have one law (notes/bayes-remap.md)."""
    table = best_remap(context, np.ones((len(context.rows), 1)))
    if table is not None:
        yield Candidate("the best answer without looking at the data", table, "one law for every input", "bayes-remap")


def exponential_table(loss: Array, rate: float) -> Array:
    """Pr(y | x) proportional to e^(-rate loss[x, y])."""
    weights = np.exp(-rate * (loss - loss.min(axis=1, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def exponential_candidates(context: TableContext) -> Iterator[Candidate]:
    """Pr(y | x) proportional to e^(-rate loss(x, y)); rate is half of what the loss may change (notes/exponential.md).

    Where every two rows have a distance and the columns are the rows, the distance serves as the loss too, at rate
    epsilon / 2.
    """
    sensitivity = np.zeros(context.neighbours.distances.shape)
    for a, row in enumerate(context.cost):
        sensitivity[a] = np.max(np.abs(context.cost - row), axis=1)
    rate = float(context.epsilon) * context.neighbours.rate(sensitivity) / 2
    if np.isfinite(rate):
        text = f"an answer with probability proportional to {decay(rate, 'loss')}"
        yield Candidate("exponential mechanism", exponential_table(context.cost, rate), text, "exponential")
    at, distances = positions(context.columns, context.rows), context.neighbours.distances
    if at is None or not np.isfinite(distances).all() or context.neighbours.uniform:
        return
    rate = float(context.epsilon) / 2
    text = f"an answer with probability proportional to {decay(rate, 'distance')}"
    table = exponential_table(distances[:, at], rate)
    yield Candidate("exponential mechanism by distance", table, text, "exponential")


def response_text(k: int, truth: float, other: float) -> str:
    """What it draws."""
    each = "the other value" if k == 2 else f"each of the other {k - 1} values"
    return f"the truth with probability {shown(truth)}, {each} with {shown(other)}"


def response_name(k: int) -> str:
    """Its name for k values."""
    return "randomised response" if k == 2 else "k-randomised response"


def response_candidates(context: TableContext) -> Iterator[Candidate]:
    """The truth with probability (e^t + (k - 1) delta) / (e^t + k - 1) (notes/k-randomised-response.md).

    t is epsilon times the least distance of two neighbours. Columns must hold every row.
    """
    at = positions(context.rows, context.columns)
    k, least = len(context.rows), context.neighbours.least
    if at is None or k < 2 or not np.isfinite(least):
        return
    inverse, delta = exp(-float(context.epsilon) * least), float(context.delta)
    other = (1 - delta) * inverse / (1 + (k - 1) * inverse)
    table = np.zeros(context.cost.shape)
    table[:, at] = other
    table[np.arange(k), at] = 1 - (k - 1) * other
    yield Candidate(response_name(k), table, response_text(k, 1 - (k - 1) * other, other), "k-randomised-response")


_MOST_SETS = 1_000


def subset_table(k: int, size: int, epsilon: float) -> tuple[NDArray[np.bool_], Array]:
    """All subsets of a size (as indicators, (k, N)) and Pr(subset | value) (k, N)."""
    members = np.zeros((k, comb(k, size)), dtype=bool)
    for column, chosen in enumerate(combinations(range(k), size)):
        members[list(chosen), column] = True
    inverse = exp(-epsilon)
    return members, np.where(members, 1.0, inverse) / (comb(k - 1, size - 1) + comb(k - 1, size) * inverse)


def subset_candidates(context: TableContext) -> Iterator[Candidate]:
    """A random subset of s of the k values; those that hold the truth are e^epsilon times as likely.

    The one of least loss, for local differential privacy. Where the columns are indicators of subsets it is compared as
    it is, elsewhere with the best guess from the subset; s is the best of 1..k-1 (notes/subset-selection.md).
    """
    k = len(context.rows)
    if context.neighbours.uniform and k > 2:
        epsilon = float(context.epsilon) * context.neighbours.least
        found = [c for size in range(1, k) if (c := _of_size(context, size, epsilon)) is not None]
        yield from sorted(found, key=lambda c: context.loss(c.table))[:1]


def _of_size(context: TableContext, size: int, epsilon: float) -> Candidate | None:
    k = len(context.rows)
    if comb(k, size) > _MOST_SETS:
        return None
    members, law = subset_table(k, size, epsilon)
    words = f"a set of {size} of the {k} values, {shown(exp(epsilon))} times as likely if it holds the truth"
    name = f"subset selection of size {size}" if size > 1 else "k-randomised response"
    places = _indicators(context)
    if places is not None:
        at = [places.get(tuple(bool(v) for v in column)) for column in members.T]
        if any(a is None for a in at):
            return None
        table = np.zeros(context.cost.shape)
        table[:, [a for a in at if a is not None]] = law
        return Candidate(name, table, words, "subset-selection")
    remapped = best_remap(context, law)
    if remapped is None:
        return None
    words = f"{words}; then the best guess for this loss"
    return Candidate(f"{name}, remapped", remapped, words, "subset-selection")


def _indicators(context: TableContext) -> dict[tuple[bool, ...], int] | None:
    """Columns by the subset of rows that they indicate; None if they are no vectors of zeros and ones."""
    points = coordinates(context.columns)
    if points is None or len(points[0]) != len(context.rows):
        return None
    if any(v not in (Fraction(0), Fraction(1)) for point in points for v in point):
        return None
    return {tuple(bool(v) for v in point): column for column, point in enumerate(points)}


MECHANISMS: tuple[Mechanism, ...] = (
    response_candidates,
    geometric_candidates,
    laplace_candidates,
    staircase_candidates,
    planar_candidates,
    exponential_candidates,
    subset_candidates,
    constant_candidates,
)
"""In the order in which they are compared; of two equal tables the first names them."""
_SAME = 1e-12


def comparisons(context: TableContext) -> tuple[Comparison, ...]:
    """The mechanisms that apply, each calibrated to the requirement, best first; no table twice."""
    kept: list[Candidate] = []
    for mechanism in MECHANISMS:
        for candidate in mechanism(context):
            if not any(np.allclose(candidate.table, other.table, rtol=0, atol=_SAME) for other in kept):
                kept.append(candidate)
    found = [_judged(context, candidate) for candidate in kept]
    return tuple(sorted(found, key=lambda c: c.loss))


def _judged(context: TableContext, candidate: Candidate) -> Comparison:
    excess = context.excess(candidate.table)
    reason = candidate.text if not excess else f"it breaks the requirement by a probability of {shown(excess)}"
    said = candidate.name, candidate.table, candidate.text, candidate.note
    return Comparison(*said, context.loss(candidate.table), not excess, reason)
