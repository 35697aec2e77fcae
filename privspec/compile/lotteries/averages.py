"""Averages under the data model: exact where profiles can be listed, else over profiles that are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from time import monotonic

import numpy as np

from privspec.compile.lotteries.costs import Body
from privspec.compile.lotteries.doubles import laws
from privspec.compile.lotteries.electorate import Scores, draw, listed
from privspec.compile.lotteries.estimates import Estimate
from privspec.compile.lotteries.system import LotterySystem
from privspec.model.lotteries import Lottery

DRAWN = 20_000
"""Profiles that averages are taken over."""


@dataclass(frozen=True, eq=False)
class Averages:
    """Averages of several costs for several lotteries at the same profiles.

    Args: deadline: seconds after which no further batch of profiles is drawn; progress as in `Settings`.
    """

    system: LotterySystem
    deadline: float | None = None
    progress: Callable[[int, float, float], None] | None = None

    @cached_property
    def profiles(self) -> Mapping[Scores, Fraction] | None:
        """All of them with their probabilities, where they are few."""
        return None if self.system.law is None else listed(self.system, self.system.law)

    def of(self, lotteries: Sequence[Lottery], bodies: Sequence[Body]) -> list[list[Estimate]]:
        """For each lottery, the average of each body."""
        if self.profiles is not None:
            return [[self._exact(lottery, body) for body in bodies] for lottery in lotteries]
        return self._drawn(lotteries, bodies)

    def _exact(self, lottery: Lottery, body: Body) -> Estimate:
        assert self.profiles is not None
        total = Fraction(0)
        for scores, mass in self.profiles.items():
            total += mass * body.at(lottery.law(scores), scores)
        return Estimate(total, profiles=len(self.profiles))

    def _drawn(self, lotteries: Sequence[Lottery], bodies: Sequence[Body]) -> list[list[Estimate]]:
        assert self.system.law is not None
        started = monotonic()
        count = 0
        sums = np.zeros((2, len(lotteries), len(bodies)))
        for sample in draw(self.system, self.system.law, DRAWN):
            for i, lottery in enumerate(lotteries):
                winners = laws(lottery, sample.scores)
                for j, body in enumerate(bodies):
                    costs = body.many(winners, sample.scores)
                    sums[:, i, j] += costs.sum(), (costs * costs).sum()
            count += len(sample.scores)
            if self.progress is not None and sums.size:
                self.progress(count, float(sums[0].min() / count), 0.0)
            if self.deadline is not None and monotonic() - started > self.deadline:
                break
        mean = sums[0] / count
        error = np.sqrt(np.maximum(sums[1] / count - mean * mean, 0) / max(count - 1, 1))
        return [
            [Estimate(Fraction(float(m)), False, float(e), count) for m, e in zip(ms, es, strict=True)]
            for ms, es in zip(mean, error, strict=True)
        ]
