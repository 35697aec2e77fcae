"""Averages under the data model: exact where profiles can be listed, else over profiles that are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from privspec.compile.lotteries.doubles import body_at, laws
from privspec.compile.lotteries.electorate import Scores, draw, listed
from privspec.compile.lotteries.estimates import Estimate
from privspec.compile.lotteries.system import LotterySystem
from privspec.compile.lotteries.worst import mixture_mean
from privspec.model.lotteries import Lottery
from privspec.problem.vote_forms import Body
from privspec.solvers.programs import OutOfTimeError, Watch

LONGEST = 1 << 10
"""Binary digits beyond which a denominator is cut down to a quarter of them, upwards: powers share no factors."""
DRAWN = 20_000
"""Profiles that averages are taken over."""


@dataclass(frozen=True, eq=False)
class Averages:
    """Averages of several costs for several lotteries at the same profiles.

    Args: deadline in seconds, after which OutOfTimeError is raised: fewer profiles might have another winner; progress
    as in `Settings`.
    """

    system: LotterySystem
    deadline: float | None = None
    progress: Callable[[int, float, float], None] | None = None

    @cached_property
    def profiles(self) -> Mapping[Scores, Fraction] | None:
        """All of them with their probabilities, where they are few; those that permute alternatives as one.

        Every lottery treats alternatives alike, but for which of several equals is declared first: costs are the same.
        """
        every = None if self.system.law is None else listed(self.system, self.system.law)
        if every is None:
            return None
        found: dict[Scores, Fraction] = {}
        for scores, mass in every.items():
            ordered = tuple(sorted(scores, reverse=True))
            found[ordered] = found.get(ordered, Fraction(0)) + mass
        return found

    def of(self, lotteries: Sequence[Lottery], bodies: Sequence[Body]) -> list[list[Estimate]]:
        """For each lottery, the average of each body."""
        if self.profiles is not None:
            return [self._exact(lottery, bodies) for lottery in lotteries]
        known = [[mixture_mean(self.system, lottery, body) for body in bodies] for lottery in lotteries]
        left = [lottery for lottery, row in zip(lotteries, known, strict=True) if None in row]
        drawn = iter(self._drawn(left, bodies) if left else [])
        out: list[list[Estimate]] = []
        for row in known:
            simulated = next(drawn) if None in row else [one for one in row if one is not None]
            out.append([one if one is not None else other for one, other in zip(row, simulated, strict=True)])
        return out

    def _exact(self, lottery: Lottery, bodies: Sequence[Body]) -> list[Estimate]:
        assert self.profiles is not None
        totals = [Fraction(0)] * len(bodies)
        for scores, mass in self.profiles.items():
            law = lottery.law(scores)
            for i, body in enumerate(bodies):
                totals[i] += _short(mass * body.at(law, scores))
        return [Estimate(total, profiles=len(self.profiles)) for total in totals]

    def _drawn(self, lotteries: Sequence[Lottery], bodies: Sequence[Body]) -> list[list[Estimate]]:
        assert self.system.law is not None
        watch = Watch(self.deadline)
        count = 0
        sums = np.zeros((2, len(lotteries), len(bodies)))
        for sample in draw(self.system, self.system.law, DRAWN):
            if watch.expired:
                raise OutOfTimeError(None)
            for i, lottery in enumerate(lotteries):
                winners = laws(lottery, sample.scores)
                for j, body in enumerate(bodies):
                    costs = body_at(body, winners, sample.scores)
                    sums[:, i, j] += costs.sum(), (costs * costs).sum()
            count += len(sample.scores)
            if self.progress is not None and sums.size:
                self.progress(count, float(sums[0].min() / count), 0.0)
        mean = sums[0] / count
        error = np.sqrt(np.maximum(sums[1] / count - mean * mean, 0) / max(count - 1, 1))
        return [
            [Estimate(Fraction(float(m)), False, float(e), count) for m, e in zip(ms, es, strict=True)]
            for ms, es in zip(mean, error, strict=True)
        ]


def _short(value: Fraction) -> Fraction:
    """As it is where it is short, else rounded up far below what a double can show."""
    if value.denominator.bit_length() <= LONGEST:
        return value
    scale = 1 << (LONGEST // 4)
    return Fraction(-(-value.numerator * scale // value.denominator), scale)
