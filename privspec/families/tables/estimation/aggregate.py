"""Shares of values from local reports: estimate, interval, and why this estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError
from privspec.core.suggest import nearest
from privspec.execute.family import Plan, Progress, mechanism_of, silent
from privspec.families.tables.estimation.channel import Array, Channel
from privspec.families.tables.estimation.choice import Choice, choose_estimator
from privspec.families.tables.estimation.estimators import ESTIMATORS, Estimator
from privspec.families.tables.estimation.reading import count_reports
from privspec.families.tables.estimation.update import COARSE

if TYPE_CHECKING:
    from privspec.model.graph import Model

FORMAT = "privspec-aggregate/1.0"
AUTO = "auto"
RESAMPLES = 500
UNBIASED = ESTIMATORS["inverse"]
INTERVAL_NOTE = "intervals: percentile bootstrap of the unbiased matrix inversion, cut to 0..1 and to hold the estimate"
SPREAD_NOTE = "intervals: percentile bootstrap of the estimate; they show its spread and claim no coverage"


@dataclass(frozen=True, eq=False, slots=True)
class Aggregate:
    """Estimated shares of the values (k,), with an interval for each.

    The interval is for the share in the population that the people are a sample of: it has the spread from who
    answered and from the noise of their reports.
    """

    names: tuple[str, ...]
    values: tuple[str, ...]
    shares: Array
    low: Array
    high: Array
    level: float
    reports: int
    estimator: Estimator
    choice: Choice | None
    notes: tuple[str, ...]
    seed: int

    def to_json(self) -> dict[str, Any]:
        """Public figures: they are computed from the reports alone."""
        rows = zip(self.values, self.shares.tolist(), self.low.tolist(), self.high.tolist(), strict=True)
        return {
            "format": FORMAT,
            "of": list(self.names),
            "reports": self.reports,
            "estimator": self.estimator.name,
            "chosen": None if self.choice is None else _choice_json(self.choice),
            "level": self.level,
            "seed": self.seed,
            "shares": [{"value": v, "share": s, "low": lo, "high": hi} for v, s, lo, hi in rows],
            "notes": list(self.notes),
        }


def _choice_json(choice: Choice) -> dict[str, Any]:
    return {
        "under": choice.under,
        "runs": choice.runs,
        "clear": choice.clear,
        "mean_total_variation": {
            s.estimator: {"mean": s.mean, "standard_error": s.standard_error} for s in choice.scores
        },
    }


def named_estimator(name: str) -> Estimator:
    """An estimator by its name.

    Raises: UsageError PS0721.
    """
    found = ESTIMATORS.get(name)
    if found is None:
        close = nearest(name, (AUTO, *ESTIMATORS))
        raise UsageError.of(
            "PS0721",
            f"there is no estimator {name}",
            help=f"did you mean {close}?" if close else f"use {', '.join((AUTO, *ESTIMATORS))}",
        )
    return found


def prior_of(plan: Plan) -> Array | None:
    """The declared law of the rows, None where there is none."""
    stated = plan["mechanism"].get("prior")
    return None if stated is None else np.array([float(Fraction(str(p))) for p in stated])


def estimate(
    channel: Channel,
    counts: NDArray[np.integer[Any]] | Array,
    prior: Array | None,
    names: tuple[str, ...] = ("x",),
    *,
    estimator: str = AUTO,
    level: float = 0.95,
    seed: int = 0,
    resamples: int = RESAMPLES,
    progress: Progress = silent,
) -> Aggregate:
    """Shares of the values behind counts of reports (reports,).

    Args: prior, the declared law of the values, which the estimator is chosen under; estimator, "auto" or a name in
        `ESTIMATORS`; level of the intervals; seed of the simulation and of the bootstrap.
    Raises: UsageError (PS0721).
    """
    if not 0 < level < 1:
        raise UsageError.of("PS0721", "--level takes a number between 0 and 1", help="--level 0.95")
    seen = np.asarray(counts, dtype=np.float64)
    people = int(seen.sum())
    picked = None if estimator == AUTO else named_estimator(estimator)
    choice = None
    if picked is None:
        choice = choose_estimator(channel, prior, people, seed, progress=progress)
        picked = ESTIMATORS[choice.estimator]
    shares = picked.shares(channel, seen[None, :])[0]
    low, high = _intervals(picked, channel, seen, level, seed, resamples, progress)
    notes = (*picked.notes(channel, seen), INTERVAL_NOTE if channel.identified else SPREAD_NOTE)
    return Aggregate(names, channel.values, shares, low, high, level, people, picked, choice, notes, seed)


def _intervals(
    estimator: Estimator, channel: Channel, counts: Array, level: float, seed: int, resamples: int, progress: Progress
) -> tuple[Array, Array]:
    """Percentile bootstrap of the matrix inversion, cut to 0..1 and widened to hold the estimate.

    The reports are resampled, which is post-processing of what is public. The inversion is unbiased, so its percentiles
    cover as often as they say; those of the other estimators do not: at 50 values, 1,000 reports and epsilon 0.5 the
    95 % percentiles of `clip` never hold the largest share, and those of `ibu` hold 6 in 10 of all shares. Where the
    shares are not identified nothing is unbiased, and the estimator's own percentiles show the spread only.
    """
    # a stream of its own: the intervals do not depend on whether the estimator was chosen by simulation
    generator = np.random.default_rng([seed, 1])
    base = UNBIASED if channel.identified else estimator
    people = int(counts.sum())
    batch = max(1, min(resamples, 2**22 // max(channel.matrix.shape)))
    found: list[Array] = []
    for start in range(0, resamples, batch):
        count = min(batch, resamples - start)
        again = generator.multinomial(people, counts / people, size=count).astype(np.float64)
        found.append(base.shares(channel, again, COARSE))
        progress("resamples of the reports", start + count, resamples)
    low, high = np.quantile(np.concatenate(found), [(1 - level) / 2, (1 + level) / 2], axis=0)
    shares = estimator.shares(channel, counts[None, :])[0]
    return np.minimum(np.clip(low, 0, 1), shares), np.maximum(np.clip(high, 0, 1), shares)


def aggregate_reports(
    plan: Plan,
    sources: Sequence[Any],
    model: Model | None = None,
    *,
    estimator: str = AUTO,
    level: float = 0.95,
    seed: int = 0,
    progress: Progress = silent,
) -> Aggregate:
    """Shares of the values behind local reports of a plan.

    Args: sources, files or objects with one report a row; all of them are counted together.
    Raises: UsageError (PS0841) if the plan makes no local reports; DataError, VerificationError.
    """
    local = mechanism_of(plan).local_reports(model)
    if local is None:
        raise UsageError.of(
            "PS0841",
            "this plan makes no local reports: it releases values about all data at once",
            help="read its release as it is; `aggregate` is for plans of one report a person (LDP, metric privacy)",
        )
    if estimator != AUTO:
        named_estimator(estimator)
    counts = count_reports(local.law, sources, str(plan.get("digest", "")), progress)
    names = tuple(field.name for field in local.law.rows.fields)
    return estimate(
        Channel.of(local.law.matrix(), local.values),
        counts,
        prior_of(plan),
        names,
        estimator=estimator,
        level=level,
        seed=seed,
        progress=progress,
    )
