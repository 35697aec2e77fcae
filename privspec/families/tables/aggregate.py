"""Shares of values from local reports: how often each was made, estimates, intervals, and why this estimator.

From local reports back to the law of what was reported on: a table as a channel, and estimators of its input.

Iterative Bayesian update goes from the uniform law to one of greatest likelihood, many samples at once. One
update (Agrawal & Aggarwal 2001; Palamidessi's lecture) is p_x <- p_x g_x with g_x = sum_y q_y C_xy / (p C)_y, an
EM step: it never lowers the log-likelihood L(p) = sum_y n_y log (p C)_y. Near-uniform tables, which privacy asks for,
make it crawl, so the exponent of g is raised while L grows and lowered when it does not (adaptive overrelaxation,
Salakhutdinov & Roweis 2003); a step that would lower L is replaced by the plain update. Fixed points are the same.

Stopping: L is concave and sum_x p_x g_x = 1, so no law has a log-likelihood above L(p) + n (max_x g_x - 1), the duality
gap of Frank and Wolfe. A gap of 0.01 means that the law found is at most 1 % less likely than the best one; shares may
then still be off by a tenth of their spread.

Where matrix inversion gives a law, it leads to the very shares of the reports, and no law is likelier: it is the start.
The start has full support elsewhere: a share that starts at 0 stays 0. The lecture says that the fixed point and the
law of greatest likelihood are unique where C is invertible; they need not be when some reports never occur
(`Channel.unique_maximum`), and the answer then depends on the start.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError, VerificationError
from privspec.core.records import dataclass
from privspec.core.rounding import LISTED, graded
from privspec.core.suggest import nearest
from privspec.execute.data import located
from privspec.execute.drawing import NO_PLACE, Labels, TableLaw
from privspec.execute.family import PARTY, Plan, Progress, mechanism_of, silent
from privspec.execute.keeper import refuse, refuse_unreadable
from privspec.execute.reading import Batches, Fields, batches
from privspec.execute.release import DIGITS, MAJOR, Release, mark_names
from privspec.execute.sources import column_names, is_frame, load_frame
from privspec.kernel.measures import BY_DISTANCE, LOCAL_PURE

if TYPE_CHECKING:
    from privspec.model.graph import Model


Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Channel:
    """Pr(report | value), `matrix` (values, reports) with rows that sum to one, and a text for each value."""

    matrix: Array
    values: tuple[str, ...]

    @classmethod
    def of(cls, table: Sequence[Sequence[Fraction | float]] | NDArray[Any], values: Sequence[str] = ()) -> Channel:
        """A table of exact or floating-point probabilities.

        Raises: ValueError if a row is no law.
        """
        matrix = np.array([[float(p) for p in row] for row in table], dtype=np.float64)
        if matrix.ndim != 2 or not matrix.size or np.any(matrix < 0) or np.any(abs(matrix.sum(axis=1) - 1) > 1e-9):
            raise ValueError("each row of the table must be a law")
        return cls(matrix, tuple(values) or tuple(str(i + 1) for i in range(len(matrix))))

    @property
    def size(self) -> int:
        """The number of values whose shares are wanted."""
        return len(self.matrix)

    @cached_property
    def rank(self) -> int:
        """How many shares the law of the reports determines."""
        return int(np.linalg.matrix_rank(self.matrix))

    @property
    def identified(self) -> bool:
        """Whether the law of the reports determines all shares: without it, no number of reports tells them apart."""
        return self.rank == self.size

    def unique_maximum(self, counts: Array) -> bool:
        """Whether one law alone has the greatest likelihood.

        The likelihood looks at the reports that occurred only; two laws that give these the same probabilities are as
        likely, even if the whole table is invertible.
        """
        seen = self.matrix[:, counts > 0]
        return int(np.linalg.matrix_rank(np.column_stack([seen, np.ones(self.size)]))) == self.size

    @cached_property
    def inverse(self) -> Array:
        """Least squares (reports, values): q @ inverse is the r nearest to q = r C, before it must sum to one."""
        inverse: Array = np.linalg.pinv(self.matrix).astype(np.float64)
        return inverse

    @cached_property
    def correction(self) -> Array:
        """What is added for each unit that the shares lack of one, so that they stay nearest in least squares."""
        towards: Array = np.linalg.pinv(self.matrix @ self.matrix.T).sum(axis=1)
        total = float(towards.sum())
        return towards / total if total > 0 else np.full(self.size, 1 / self.size)

    def reports(self, law: Array, people: int, runs: int, generator: np.random.Generator) -> Array:
        """Counts of reports (runs, reports) of so many people whose values have a law (values,) or (runs, values)."""
        shares = np.clip(law @ self.matrix, 0, None)
        return generator.multinomial(people, shares / shares.sum(axis=-1, keepdims=True), size=runs).astype(np.float64)


# --- iterative Bayesian update --------------------------------------------------------------------


GROW, SHRINK = 1.2, 0.25
_LOG_RANGE = 50.0
"""No share changes by more than a factor of e^50 in one step."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When the update stops: at a `gap` in log-likelihood, or after so many steps."""

    gap: float = 1e-6
    steps: int = 50_000


FINE = Limits()
COARSE = Limits(0.1, 5_000)
"""For simulations: far below the spread from sample to sample."""


@dataclass(frozen=True, eq=False, slots=True)
class Updated:
    """Shares (runs, values), the gap in log-likelihood of each run, which of them reached the limit, and the steps."""

    shares: Array
    gap: Array
    converged: NDArray[np.bool_]
    steps: int


def bayesian_update(matrix: Array, counts: Array, limits: Limits = FINE, start: Array | None = None) -> Updated:
    """Laws of greatest likelihood, up to the limits.

    Args: matrix (values, reports); counts (runs, reports), at least one report in each run, and none that no value
        can lead to; start (runs, values), taken where it is a law that leads to all reports: else the uniform law.
    """
    occurred = counts.sum(axis=0) > 0
    table = matrix[:, occurred]
    people = counts.sum(axis=1)
    shares = np.full((len(counts), len(matrix)), 1 / len(matrix))
    if start is not None:
        laws = (start > 0).all(axis=1)
        shares[laws] = start[laws] / start[laws].sum(axis=1, keepdims=True)
    gaps = np.full(len(counts), np.inf)
    active = np.arange(len(counts))
    state = _State.start(table, counts[:, occurred] / people[:, None], shares)
    steps = 0
    while True:
        gain = state.gain()
        gaps[active] = people[active] * (gain.max(axis=1) - 1)
        shares[active] = state.shares
        open_ = gaps[active] > limits.gap
        if not open_.any() or steps == limits.steps:
            return Updated(shares, np.maximum(gaps, 0), gaps <= limits.gap, steps)
        if not open_.all():
            active, gain = active[open_], gain[open_]
            state = state.only(open_)
        state = state.step(gain)
        steps += 1


@dataclass(frozen=True, eq=False, slots=True)
class _State:
    """Runs that go on: their laws, the laws of reports that follow, log-likelihoods a report, exponents."""

    table: Array
    observed: Array
    shares: Array
    expected: Array
    likelihood: Array
    exponent: Array

    @classmethod
    def start(cls, table: Array, observed: Array, shares: Array) -> _State:
        expected = shares @ table
        return cls(table, observed, shares, expected, _likelihood(observed, expected), np.ones((len(observed), 1)))

    def gain(self) -> Array:
        """The factors g of the plain update (runs, values)."""
        gain: Array = (self.observed / self.expected) @ self.table.T
        return gain

    def only(self, keep: NDArray[np.bool_]) -> _State:
        return _State(
            self.table,
            self.observed[keep],
            self.shares[keep],
            self.expected[keep],
            self.likelihood[keep],
            self.exponent[keep],
        )

    def step(self, gain: Array) -> _State:
        """The overrelaxed update, or the plain one where it does not lower the likelihood."""
        with np.errstate(divide="ignore"):
            factor = np.clip(self.exponent * np.log(gain), -_LOG_RANGE, _LOG_RANGE)
        shares = self.shares * np.exp(factor)
        shares /= shares.sum(axis=1, keepdims=True)
        expected = shares @ self.table
        likelihood = _likelihood(self.observed, expected)
        worse = ~(likelihood >= self.likelihood)
        exponent = np.where(worse[:, None], np.maximum(self.exponent * SHRINK, 1), self.exponent * GROW)
        if worse.any():
            shares[worse] = (self.shares * gain)[worse]
            expected[worse] = shares[worse] @ self.table
            likelihood[worse] = _likelihood(self.observed[worse], expected[worse])
        return _State(self.table, self.observed, shares, expected, likelihood, exponent)


def _likelihood(observed: Array, expected: Array) -> Array:
    """Log-likelihood a report (runs,); reports of a batch that a run does not have do not count in it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(observed > 0, observed * np.log(expected), 0.0)
    total: Array = terms.sum(axis=1)
    return total


# --- estimators -----------------------------------------------------------------------------------


def inverse(channel: Channel, counts: Array, limits: Limits = FINE) -> Array:  # noqa: ARG001
    """Matrix inversion, r = q C^-1 (Kairouz, Bonawitz & Ramage 2016); least squares where C is not square.

    Unbiased where the shares are identified, and the only one here that is: shares below 0 or above 1 are its price.
    Where there are more reports than values, r minimises |r C - q| among vectors that sum to one.
    """
    raw = counts / counts.sum(axis=1, keepdims=True) @ channel.inverse
    return np.asarray(raw + (1 - raw.sum(axis=1, keepdims=True)) * channel.correction)


def clip(channel: Channel, counts: Array, limits: Limits = FINE) -> Array:  # noqa: ARG001
    """Matrix inversion, negative shares set to 0, the rest scaled to sum to one.

    Scaling pulls large shares down where much was clipped; at low signal this shrinking is what makes it good.
    """
    kept = np.clip(inverse(channel, counts), 0, None)
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))


def simplex(channel: Channel, counts: Array, limits: Limits = FINE) -> Array:  # noqa: ARG001
    """The law nearest to the matrix inversion in Euclidean distance (Duchi et al. 2008): one number is taken off all.

    Never farther from the truth than the inversion itself in that distance, since the truth is a law.
    """
    return project(inverse(channel, counts))


def project(points: Array) -> Array:
    """The nearest points (runs, k) of the probability simplex, by sorting."""
    falling = -np.sort(-points, axis=1)
    excess = np.cumsum(falling, axis=1) - 1
    ranks = np.arange(1, points.shape[1] + 1)
    support = np.count_nonzero(falling * ranks > excess, axis=1)
    level = excess[np.arange(len(points)), support - 1] / support
    shares: Array = np.clip(points - level[:, None], 0, None)
    return shares


def update(channel: Channel, counts: Array, limits: Limits = FINE) -> Array:
    """Iterative Bayesian update, to within the limits of the greatest likelihood."""
    return _updated(channel, counts, limits).shares


def _updated(channel: Channel, counts: Array, limits: Limits) -> Updated:
    """The update from the matrix inversion, where it is a law, or from the uniform law."""
    return bayesian_update(channel.matrix, counts, limits, inverse(channel, counts) if channel.identified else None)


def _of_update(channel: Channel, counts: Array) -> Iterator[str]:
    """Whether the steps sufficed, and whether the maximum is unique."""
    found = _updated(channel, counts[None, :], FINE)
    if not found.converged.all():
        gap = f"{found.gap.max():.2g}"
        yield f"stopped after {found.steps} steps: the log-likelihood is at most {gap} below its maximum"
    if channel.identified and not channel.unique_maximum(counts):
        yield (
            "several laws are equally likely, since some reports never occurred: this is the one that the update "
            "reaches from the uniform law"
        )


@dataclass(frozen=True, slots=True)
class Estimator:
    """A way from counts of reports to shares of values: its name, as it is asked for, and its title in words.

    `shares`: estimates (runs, values) from counts of reports (runs, reports), of which every run has one; `more`: what
    a reader of an estimate from counts (reports,) must know of this one.
    """

    name: str
    title: str
    shares: Callable[..., Array]
    more: Callable[[Channel, Array], Iterable[str]] = lambda *_: ()

    def notes(self, channel: Channel, counts: Array) -> tuple[str, ...]:
        """What a reader of an estimate from these counts (reports,) must know."""
        unknown = (
            f"the reports determine {channel.rank} of {channel.size} shares only: values that lead to the same mix of "
            "reports cannot be told apart by any number of them"
        )
        return (*(() if channel.identified else (unknown,)), *self.more(channel, counts))


_NEGATIVE = "unbiased; small shares can come out negative"
ESTIMATORS: Mapping[str, Estimator] = {
    one.name: one
    for one in (
        Estimator("inverse", "matrix inversion", inverse, lambda *_: (_NEGATIVE,)),
        Estimator("clip", "matrix inversion, clipped at 0 and rescaled", clip),
        Estimator("simplex", "matrix inversion, projected on the laws", simplex),
        Estimator("ibu", "iterative Bayesian update (maximum likelihood)", update, _of_update),
    )
}
"""All estimators by name."""


# --- reports added up -----------------------------------------------------------------------------


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


def prior_of(law: TableLaw) -> Array | None:
    """The declared law of the rows, None where there is none."""
    return np.array([float(p) for p in law.prior]) if law.prior else None


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


def _aggregate_reports(
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
            help="read its release as it is; `aggregate` is for plans of one report per person "
            f"({LOCAL_PURE.word}, {BY_DISTANCE.word})",
        )
    if estimator != AUTO:
        named_estimator(estimator)
    counts = count_reports(local.law, sources, str(plan.get("digest", "")), progress)
    names = tuple(field.name for field in local.law.rows.fields)
    return estimate(
        Channel.of(local.law.matrix(), local.values),
        counts,
        prior_of(local.law),
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
    return Choice(best, tuple(sorted(scores, key=lambda s: graded(s.mean, LISTED))), runs, clear, under)


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
