"""Estimators of the shares of values from counts of local reports: one object each, its note beside it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privspec.families.tables.estimation.channel import Array, Channel
from privspec.families.tables.estimation.update import FINE, Limits, bayesian_update


@dataclass(frozen=True, slots=True)
class Estimator(ABC):
    """A way from counts of reports to shares of values."""

    name: ClassVar[str]
    """As it is asked for."""
    title: ClassVar[str]
    """In words."""

    @abstractmethod
    def shares(self, channel: Channel, counts: Array, limits: Limits = FINE) -> Array:
        """Estimated shares (runs, values) from counts of reports (runs, reports); every run has a report."""

    def notes(self, channel: Channel, counts: Array) -> tuple[str, ...]:
        """What a reader of an estimate from these counts (reports,) must know."""
        if channel.identified:
            return ()
        return (
            f"the reports determine {channel.rank} of {channel.size} shares only: values that lead to the same mix of "
            "reports cannot be told apart by any number of them",
        )


@dataclass(frozen=True, slots=True)
class Inverse(Estimator):
    """Matrix inversion, r = q C^-1 (Kairouz, Bonawitz & Ramage 2016); least squares where C is not square.

    Unbiased where the shares are identified, and the only one here that is: shares below 0 or above 1 are its price.
    Where there are more reports than values, r minimises |r C - q| among vectors that sum to one.
    """

    name = "inverse"
    title = "matrix inversion"

    def shares(self, channel: Channel, counts: Array, limits: Limits = FINE) -> Array:
        raw = counts / counts.sum(axis=1, keepdims=True) @ channel.inverse
        shares: Array = raw + (1 - raw.sum(axis=1, keepdims=True)) * channel.correction
        return shares

    def notes(self, channel: Channel, counts: Array) -> tuple[str, ...]:
        """That shares can be negative."""
        return (*Estimator.notes(self, channel, counts), "unbiased; small shares can come out negative")


@dataclass(frozen=True, slots=True)
class Clip(Estimator):
    """Matrix inversion, negative shares set to 0, the rest scaled to sum to one.

    Scaling pulls large shares down where much was clipped; at low signal this shrinking is what makes it good.
    """

    name = "clip"
    title = "matrix inversion, clipped at 0 and rescaled"

    def shares(self, channel: Channel, counts: Array, limits: Limits = FINE) -> Array:
        kept = np.clip(Inverse().shares(channel, counts), 0, None)
        shares: Array = kept / kept.sum(axis=1, keepdims=True)
        return shares


@dataclass(frozen=True, slots=True)
class Simplex(Estimator):
    """The law nearest to the matrix inversion in Euclidean distance (Duchi et al. 2008): one number is taken off all.

    Never farther from the truth than the inversion itself in that distance, since the truth is a law.
    """

    name = "simplex"
    title = "matrix inversion, projected on the laws"

    def shares(self, channel: Channel, counts: Array, limits: Limits = FINE) -> Array:
        return project(Inverse().shares(channel, counts))


@dataclass(frozen=True, slots=True)
class Update(Estimator):
    """Iterative Bayesian update: a law of greatest likelihood; see `update`."""

    name = "ibu"
    title = "iterative Bayesian update (maximum likelihood)"

    def shares(self, channel: Channel, counts: Array, limits: Limits = FINE) -> Array:
        """From the uniform law to within the limits of the greatest likelihood."""
        return bayesian_update(channel.matrix, counts, limits).shares

    def notes(self, channel: Channel, counts: Array) -> tuple[str, ...]:
        """Whether the steps sufficed, and whether the maximum is unique."""
        found = bayesian_update(channel.matrix, counts[None, :])
        notes = list(Estimator.notes(self, channel, counts))
        if not found.converged.all():
            gap = f"{found.gap.max():.2g}"
            notes.append(f"stopped after {found.steps} steps: the log-likelihood is at most {gap} below its maximum")
        if channel.identified and not channel.unique_maximum(counts):
            notes.append(
                "several laws are equally likely, since some reports never occurred: this is the one that the update "
                "reaches from the uniform law"
            )
        return tuple(notes)


def project(points: Array) -> Array:
    """The nearest points (runs, k) of the probability simplex, by sorting."""
    falling = -np.sort(-points, axis=1)
    excess = np.cumsum(falling, axis=1) - 1
    ranks = np.arange(1, points.shape[1] + 1)
    support = np.count_nonzero(falling * ranks > excess, axis=1)
    level = excess[np.arange(len(points)), support - 1] / support
    shares: Array = np.clip(points - level[:, None], 0, None)
    return shares


ESTIMATORS: Mapping[str, Estimator] = {e.name: e for e in (Inverse(), Clip(), Simplex(), Update())}
"""All estimators by name."""
