"""The exponential mechanism: answers by their loss, or by their distance from the truth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from privspec.mechanisms.finite.context import Array, TableContext
from privspec.mechanisms.finite.mechanism import Candidate, decay
from privspec.mechanisms.finite.points import positions


def exponential_table(loss: Array, rate: float) -> Array:
    """Pr(y | x) proportional to e^(-rate loss[x, y])."""
    weights = np.exp(-rate * (loss - loss.min(axis=1, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


class Exponential:
    """Pr(y | x) proportional to e^(-rate loss(x, y)); rate is half of what the loss may change (notes/exponential.md).

    Under metric differential privacy the distance itself serves as the loss too, at rate epsilon / 2.
    """

    note: ClassVar[str] = "exponential"

    def candidates(self, context: TableContext) -> Iterator[Candidate]:
        """By the loss; by the distance too where every two rows have one."""
        sensitivity = np.zeros(context.neighbours.distances.shape)
        for a, row in enumerate(context.cost):
            sensitivity[a] = np.max(np.abs(context.cost - row), axis=1)
        rate = float(context.epsilon) * context.neighbours.rate(sensitivity) / 2
        if np.isfinite(rate):
            text = f"an answer with probability proportional to {decay(rate, 'loss')}"
            yield Candidate("exponential mechanism", exponential_table(context.cost, rate), text, self.note)
        yield from self.by_distance(context)

    def by_distance(self, context: TableContext) -> Iterator[Candidate]:
        """The metric version, where the columns are the rows."""
        at = positions(context.columns, context.rows)
        distances = context.neighbours.distances
        if at is None or not np.isfinite(distances).all() or context.neighbours.uniform:
            return
        rate = float(context.epsilon) / 2
        text = f"an answer with probability proportional to {decay(rate, 'distance')}"
        table = exponential_table(distances[:, at], rate)
        yield Candidate("exponential mechanism by distance", table, text, self.note)
