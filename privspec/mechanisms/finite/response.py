"""k-randomised response: the truth with one probability, every other value with another."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp
from typing import ClassVar

import numpy as np

from privspec.mechanisms.finite.context import TableContext
from privspec.mechanisms.finite.mechanism import Candidate, shown
from privspec.mechanisms.finite.points import positions


def response_name(k: int) -> str:
    """Its name for k values."""
    return "randomised response" if k == 2 else "k-randomised response"


class RandomisedResponse:
    """The truth with probability (e^t + (k - 1) delta) / (e^t + k - 1) (notes/k-randomised-response.md).

    t is epsilon times the least distance of two neighbours. Columns must hold every row.
    """

    note: ClassVar[str] = "k-randomised-response"

    def candidates(self, context: TableContext) -> Iterator[Candidate]:
        """One, where the answers hold the inputs."""
        at = positions(context.rows, context.columns)
        k, least = len(context.rows), context.neighbours.least
        if at is None or k < 2 or not np.isfinite(least):
            return
        inverse = exp(-float(context.epsilon) * least)
        delta = float(context.delta)
        other = (1 - delta) * inverse / (1 + (k - 1) * inverse)
        table = np.zeros(context.cost.shape)
        table[:, at] = other
        table[np.arange(k), at] = 1 - (k - 1) * other
        truth = shown(1 - (k - 1) * other)
        text = f"the truth with probability {truth}, each of the other {k - 1} values with {shown(other)}"
        if k == 2:
            text = f"the truth with probability {truth}, the other value with {shown(other)}"
        yield Candidate(response_name(k), table, text, self.note)
