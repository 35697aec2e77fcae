"""Shares of values from local reports: how often each was made, estimates, intervals, and why this estimator."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError, VerificationError
from privspec.core.records import dataclass
from privspec.core.suggest import nearest
from privspec.execute.data import located
from privspec.execute.drawing import NO_PLACE, Labels, TableLaw
from privspec.execute.family import PARTY, Plan, Progress, mechanism_of, silent
from privspec.execute.keeper import refuse, refuse_unreadable
from privspec.execute.reading import Batches, Fields, batches
from privspec.execute.release import DIGITS, MAJOR, Release, mark_names
from privspec.execute.sources import column_names, is_frame, load_frame
from privspec.families.tables.estimators import COARSE, ESTIMATORS, Array, Channel, Estimator

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

    Args: sources, files or objects with one report per row; all of them are counted together.
    Raises: UsageError (PS0841) if the plan makes no local reports; DataError, VerificationError.
    """
    local = mechanism_of(plan).local_reports(model)
    if local is None:
        raise UsageError.of(
            "PS0841",
            "this plan makes no local reports: it releases values about all data at once",
            help="read its release as it is; `aggregate` is for plans of one report per person (LDP, metric privacy)",
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


# --- which estimator ------------------------------------------------------------------------------


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


# --- counts of reports ----------------------------------------------------------------------------


def count_reports(law: TableLaw, sources: Iterable[Any], digest: str, progress: Progress = silent) -> NDArray[np.int64]:
    """How often each joint output of a table was reported (columns,).

    Args: sources, each a path, a release, or an object with one report per row; digest, of the plan.
    Raises: DataError (PS0802 to PS0808, PS0842), VerificationError (PS0843) if a file says that its reports were made
        under another plan.
    """
    counts, known = np.zeros(len(law.columns), dtype=np.int64), set[str]()
    for source in sources:
        reports, said = _opened(located("the reports", source))
        if said not in (None, digest):
            raise _other_plan()
        # a person's report by `run --party` says whose it is
        who = (
            set(map(str, np.ravel(reports[PARTY]))) if isinstance(reports, Mapping) and PARTY in reports else set[str]()
        )
        if known & who:
            refuse("PS0842", f"there are two reports of party {min(known & who)}")
        known |= who
        counts += _count(law.columns, reports, digest, progress)
    if not counts.any():
        refuse("PS0808", "there are no reports", help="one report per row, below a line that names the columns")
    impossible = np.all([np.diff((0, *row.cumulative)) == 0 for row in law.laws], axis=0)
    if counts[impossible].any():
        refuse("PS0842", "among the reports are some that the plan gives to no value at all")
    return counts


def _count(labels: Labels, source: Any, digest: str, progress: Progress) -> NDArray[np.int64]:
    counts = np.zeros(len(labels), dtype=np.int64)
    streams = [batches(fields, source) for fields in labels.fields]
    marks = mark_names(name for fields in labels.fields for name in fields.columns)
    if set(marks) <= _columns(source):
        # rows of a release say by themselves which plan made them, however files were put together
        streams.append(_of_plan(batches(Fields(marks[-1]), source), digest[:DIGITS]))
    done = 0
    for parts in zip(*streams, strict=True):
        columns = [column for part in parts for column in part]
        codes = [atom.codes(column, strict=True) for atom, column in zip(labels.atoms, columns, strict=True)]
        different, places, how_many = np.unique(np.stack(codes, axis=1), axis=0, return_index=True, return_counts=True)
        for key, place, number in zip(different.tolist(), places.tolist(), how_many.tolist(), strict=True):
            found = None if NO_PLACE in key else labels.places.get(tuple(key))
            if found is None:
                refuse(
                    "PS0842",
                    f"report {done + place + 1} is not one that the plan can make",
                    help=f"reports are values of {', '.join(f.name for f in labels.fields)} as the spec declares them",
                )
            counts[found] += number
        done += len(columns[0])
        progress("reports read", done, None)
    return counts


def _of_plan(plans: Batches, digest: str) -> Batches:
    """No columns, batch after batch, of rows that all say that they were made under one plan.

    Raises: VerificationError PS0843.
    """
    for (said,) in plans:
        if any(str(plan) != digest for plan in said):
            raise _other_plan()
        yield []


def _other_plan() -> VerificationError:
    return VerificationError.of(
        "PS0843",
        "these reports were made under another plan",
        help="aggregate them with the plan that made them: its table says what they mean",
    )


def _opened(source: Any) -> tuple[Any, Any]:
    """Reports as `batches` takes them, and the plan that they say they were made under; None where they do not say."""
    if isinstance(source, Release):
        return dict(source.values), source.plan_sha256
    suffix = source.suffix.lower() if isinstance(source, Path) else ""
    try:
        if suffix == ".json":
            found = json.loads(source.read_text(encoding="utf-8"))
            if isinstance(found, Mapping) and isinstance(found.get("outputs"), Mapping):
                if not str(found.get("format")).startswith(MAJOR):
                    refuse("PS0842", f"these reports have a different format from {MAJOR}x", help="make them again")
                return {n: o["values"] for n, o in found["outputs"].items()}, found.get("plan_sha256")
        if suffix == ".npy":
            array = np.load(source, mmap_mode="r", allow_pickle=False)
            if array.dtype.names is not None:
                return {name: array[name] for name in array.dtype.names}, None
    except (OSError, ValueError, EOFError, RecursionError, TypeError, KeyError):
        refuse_unreadable("the reports", "a release of local reports")
    return source, None


def _columns(source: Any) -> set[str]:
    """The names of a table's columns; none where it has no names."""
    if isinstance(source, Mapping):
        return set(map(str, source))
    suffixes = (".parquet", ".csv", ".tsv", ".csv.gz")
    if is_frame(source) or (isinstance(source, Path) and source.name.lower().endswith(suffixes)):
        return set(column_names("the reports", load_frame("the reports", source)))
    return set()
