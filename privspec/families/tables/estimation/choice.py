"""Which estimator is best at this table and this many reports, by simulation under the declared law of the values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from privspec.execute.family import Progress, silent
from privspec.families.tables.estimation.channel import Array, Channel
from privspec.families.tables.estimation.estimators import ESTIMATORS, Estimator
from privspec.families.tables.estimation.update import COARSE

BATCH = 25
MOST_RUNS = 400
CLEAR = 4.0
"""Standard errors by which the best must lead all others before the simulation ends early; looking after every batch
calls for more than the 2 or 3 of a single look."""
SAME = 1e-3
"""Relative difference of means below which the simpler estimator is as good."""


@dataclass(frozen=True, slots=True)
class Score:
    """Mean total variation from the truth, with its standard error; the same of the lead of the best over it."""

    estimator: str
    mean: float
    standard_error: float
    behind: float
    behind_error: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The estimator with the least mean total variation, of equal ones the first (the simplest).

    `clear`: it leads all others by `CLEAR` standard errors; `under`: what the samples were drawn from.
    """

    estimator: str
    scores: tuple[Score, ...]
    runs: int
    clear: bool
    under: str

    def score(self, name: str) -> Score:
        return next(s for s in self.scores if s.estimator == name)


def choose_estimator(
    channel: Channel,
    prior: Array | None,
    reports_count: int,
    seed: int,
    *,
    estimators: Mapping[str, Estimator] = ESTIMATORS,
    runs: int = MOST_RUNS,
    progress: Progress = silent,
) -> Choice:
    """Simulates samples of reports and compares the estimates with the law they were drawn from.

    Every estimator sees the same samples (common random numbers), so that their differences are known far better than
    each by itself. Without a prior (values,), a law is drawn uniformly from all laws for every run.
    """
    generator = np.random.default_rng(seed)
    errors = {name: np.zeros(0) for name in estimators}
    done = 0
    while True:
        count = min(BATCH, runs - done)
        truth = generator.dirichlet(np.ones(channel.size), size=count) if prior is None else np.tile(prior, (count, 1))
        counts = channel.reports(truth, reports_count, count, generator)
        for name, estimator in estimators.items():
            found = total_variation(estimator.shares(channel, counts, COARSE), truth)
            errors[name] = np.append(errors[name], found)
        done += count
        progress("samples simulated", done, runs)
        choice = _compare(errors, done, "the declared law" if prior is not None else "laws drawn at random")
        if choice.clear or done >= runs:
            return choice


def total_variation(shares: Array, truth: Array) -> Array:
    """Half the sum of the absolute differences, for each run."""
    distance: Array = np.abs(shares - truth).sum(axis=-1) / 2
    return distance


def _compare(errors: Mapping[str, Array], runs: int, under: str) -> Choice:
    least = min(float(found.mean()) for found in errors.values())
    best = next(name for name, found in errors.items() if found.mean() <= (1 + SAME) * least)
    scores = tuple(Score(name, *_mean(found), *_mean(found - errors[best])) for name, found in errors.items())
    clear = all(s.behind > max(CLEAR * s.behind_error, SAME * least) for s in scores if s.estimator != best)
    return Choice(best, tuple(sorted(scores, key=lambda s: s.mean)), runs, clear, under)


def _mean(values: Array) -> tuple[float, float]:
    """Mean and its standard error."""
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return float(values.mean()), spread / len(values) ** 0.5
