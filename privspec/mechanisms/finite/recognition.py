"""Which known mechanism a table is: the optimum is named where the literature has a name for it.

Every recogniser builds the table that its mechanism would have, with parameters read off the table given, and compares:
what is said of a table is true of it up to the deviation that is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.mechanisms.finite.context import Array, TableContext
from privspec.mechanisms.finite.exponential import exponential_table
from privspec.mechanisms.finite.geometric import TruncatedGeometric
from privspec.mechanisms.finite.mechanism import decay, shown
from privspec.mechanisms.finite.patterns import extremal, randomised_response, subset_selection
from privspec.mechanisms.finite.points import positions
from privspec.mechanisms.finite.remapped import geometric_remapped, response_remapped
from privspec.mechanisms.finite.sayings import Recognition, listed, spoken
from privspec.mechanisms.finite.staircase import Staircase

__all__ = ["Recognition", "recognise"]

Table: TypeAlias = "Array | NDArray[Any] | Sequence[Sequence[Fraction]]"
Recogniser: TypeAlias = Callable[[TableContext, Array, float], Recognition | None]


def recognise(context: TableContext, table: Table, tolerance: float = 1e-6) -> Recognition | None:
    """The known mechanism that a table (X, Y) is, or None.

    Args: table, exact fractions or floats; tolerance, the largest difference of a probability from the mechanism's.
    """
    floats = np.array([[float(entry) for entry in row] for row in table], dtype=float)
    for recogniser in RECOGNISERS:
        found = recogniser(context, floats, tolerance)
        if found is not None:
            return found
    return None


def constant(context: TableContext, table: Array, tolerance: float) -> Recognition | None:
    """One law for every input."""
    law = table.mean(axis=0)
    deviation = float(np.max(np.abs(table - law)))
    if deviation > tolerance:
        return None
    sure = np.flatnonzero(law >= 1 - tolerance)
    if len(sure):
        text = f"always {spoken(context.columns[sure[0]])}, whatever the input"
    else:
        likely = [y for y in np.argsort(-law, kind="stable") if law[y] > tolerance]
        parts = [f"{spoken(context.columns[y])} with probability {shown(law[y])}" for y in likely]
        text = f"one law for every input: {listed(parts)}"
    return Recognition("constant output", text, "bayes-remap", deviation)


def geometric(context: TableContext, table: Array, tolerance: float) -> Recognition | None:
    """Truncated geometric noise, or staircase noise, calibrated to the context."""
    for mechanism in (TruncatedGeometric(), Staircase()):
        for candidate in mechanism.candidates(context):
            deviation = float(np.max(np.abs(candidate.table - table)))
            if deviation <= tolerance and not candidate.name.endswith("remapped"):
                return Recognition(candidate.name, candidate.text, candidate.note, deviation)
    return None


def exponential(context: TableContext, table: Array, tolerance: float) -> Recognition | None:
    """Logarithms of the probabilities fall linearly with the loss, or with the distance from the truth."""
    if table.min() <= tolerance:
        return None
    at = positions(context.columns, context.rows)
    distances = context.neighbours.distances
    scores = [("loss", context.cost)]
    if at is not None and np.isfinite(distances).all():
        scores.append(("distance", distances[:, at]))
    logs = np.log(table)
    logs -= logs.mean(axis=1, keepdims=True)
    for word, score in scores:
        centred = score - score.mean(axis=1, keepdims=True)
        if not centred.any():
            continue
        rate = -float(np.sum(logs * centred) / np.sum(centred * centred))
        deviation = float(np.max(np.abs(exponential_table(score, rate) - table)))
        if rate > 0 and deviation <= tolerance:
            text = f"an answer with probability proportional to {decay(rate, word)}"
            return Recognition("exponential mechanism", text, "exponential", deviation)
    return None


RECOGNISERS: tuple[Recogniser, ...] = (
    constant,
    randomised_response,
    geometric,
    subset_selection,
    exponential,
    geometric_remapped,
    response_remapped,
    extremal,
)
"""In this order: the first that fits names the table."""
