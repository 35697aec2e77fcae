"""The mechanisms that people use, beside the optimum; and the known one that a table is, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb, exp
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.core.rounding import graded
from privspec.families.tables.noise import (
    Array,
    Candidate,
    Comparison,
    GeometricNoise,
    Label,
    Mechanism,
    TableContext,
    best_remap,
    coordinates,
    decay,
    geometric_candidates,
    laplace_candidates,
    planar_candidates,
    positions,
    shown,
    staircase_candidates,
)
from privspec.model.reports import listing
from privspec.model.values import show


def constant_candidates(context: TableContext) -> Iterator[Candidate]:
    """The best answer without looking: all rows have one law (notes/bayes-remap.md)."""
    table = best_remap(context, np.ones((len(context.rows), 1)))
    if table is not None:
        yield Candidate("the best answer without looking at the data", table, "one law for every input", "bayes-remap")


def exponential_table(loss: Array, rate: float) -> Array:
    """Pr(y | x) proportional to e^(-rate loss[x, y])."""
    weights = np.exp(-rate * (loss - loss.min(axis=1, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def exponential_candidates(context: TableContext) -> Iterator[Candidate]:
    """Pr(y | x) proportional to e^(-rate loss(x, y)); rate is half of what the loss may change (notes/exponential.md).

    Where every two rows have a distance and the columns are the rows, the distance serves as the loss too, at rate
    epsilon / 2.
    """
    sensitivity = np.zeros(context.neighbours.distances.shape)
    for a, row in enumerate(context.cost):
        sensitivity[a] = np.max(np.abs(context.cost - row), axis=1)
    rate = float(context.epsilon) * context.neighbours.rate(sensitivity) / 2
    if np.isfinite(rate):
        text = f"an answer with probability proportional to {decay(rate, 'loss')}"
        yield Candidate("exponential mechanism", exponential_table(context.cost, rate), text, "exponential")
    at, distances = positions(context.columns, context.rows), context.neighbours.distances
    if at is None or not np.isfinite(distances).all() or context.neighbours.uniform:
        return
    rate = float(context.epsilon) / 2
    text = f"an answer with probability proportional to {decay(rate, 'distance')}"
    table = exponential_table(distances[:, at], rate)
    yield Candidate("exponential mechanism by distance", table, text, "exponential")


def response_text(k: int, truth: float, other: float) -> str:
    """What it draws."""
    each = "the other value" if k == 2 else f"each of the other {k - 1} values"
    return f"the truth with probability {shown(truth)}, {each} with {shown(other)}"


def response_name(k: int) -> str:
    """Its name for k values."""
    return "randomised response" if k == 2 else "k-randomised response"


def response_candidates(context: TableContext) -> Iterator[Candidate]:
    """The truth with probability (e^t + (k - 1) delta) / (e^t + k - 1) (notes/k-randomised-response.md).

    t is epsilon times the least distance of two neighbours. Columns must hold every row.
    """
    at = positions(context.rows, context.columns)
    k, least = len(context.rows), context.neighbours.least
    if at is None or k < 2 or not np.isfinite(least):
        return
    inverse, delta = exp(-float(context.epsilon) * least), float(context.delta)
    other = (1 - delta) * inverse / (1 + (k - 1) * inverse)
    table = np.zeros(context.cost.shape)
    table[:, at] = other
    table[np.arange(k), at] = 1 - (k - 1) * other
    yield Candidate(response_name(k), table, response_text(k, 1 - (k - 1) * other, other), "k-randomised-response")


_MOST_SETS = 1_000


def subset_table(k: int, size: int, epsilon: float) -> tuple[NDArray[np.bool_], Array]:
    """All subsets of a size (as indicators, (k, N)) and Pr(subset | value) (k, N)."""
    members = np.zeros((k, comb(k, size)), dtype=bool)
    for column, chosen in enumerate(combinations(range(k), size)):
        members[list(chosen), column] = True
    inverse = exp(-epsilon)
    return members, np.where(members, 1.0, inverse) / (comb(k - 1, size - 1) + comb(k - 1, size) * inverse)


def subset_candidates(context: TableContext) -> Iterator[Candidate]:
    """A random subset of s of the k values; those that hold the truth are e^epsilon times as likely.

    The one of least loss, for local differential privacy. Where the columns are indicators of subsets it is compared as
    it is, elsewhere with the best guess from the subset; s is the best of 1..k-1 (notes/subset-selection.md).
    """
    k = len(context.rows)
    if context.neighbours.uniform and k > 2:
        epsilon = float(context.epsilon) * context.neighbours.least
        found = [c for size in range(1, k) if (c := _of_size(context, size, epsilon)) is not None]
        yield from sorted(found, key=lambda c: graded(context.loss(c.table)))[:1]


def _of_size(context: TableContext, size: int, epsilon: float) -> Candidate | None:
    k = len(context.rows)
    if comb(k, size) > _MOST_SETS:
        return None
    members, law = subset_table(k, size, epsilon)
    words = f"a set of {size} of the {k} values, {shown(exp(epsilon))} times as likely if it holds the truth"
    name = f"subset selection of size {size}" if size > 1 else "k-randomised response"
    places = _indicators(context)
    if places is not None:
        at = [places.get(tuple(bool(v) for v in column)) for column in members.T]
        if any(a is None for a in at):
            return None
        table = np.zeros(context.cost.shape)
        table[:, [a for a in at if a is not None]] = law
        return Candidate(name, table, words, "subset-selection")
    remapped = best_remap(context, law)
    if remapped is None:
        return None
    words = f"{words}; then the best guess for this loss"
    return Candidate(f"{name}, remapped", remapped, words, "subset-selection")


def _indicators(context: TableContext) -> dict[tuple[bool, ...], int] | None:
    """Columns by the subset of rows that they indicate; None if they are no vectors of zeros and ones."""
    points = coordinates(context.columns)
    if points is None or len(points[0]) != len(context.rows):
        return None
    if any(v not in (Fraction(0), Fraction(1)) for point in points for v in point):
        return None
    return {tuple(bool(v) for v in point): column for column, point in enumerate(points)}


MECHANISMS: tuple[Mechanism, ...] = (
    response_candidates,
    geometric_candidates,
    laplace_candidates,
    staircase_candidates,
    planar_candidates,
    exponential_candidates,
    subset_candidates,
    constant_candidates,
)
"""In the order in which they are compared; of two equal tables the first names them."""
_SAME = 1e-12


def comparisons(context: TableContext) -> tuple[Comparison, ...]:
    """The mechanisms that apply, each calibrated to the requirement, best first; no table twice."""
    kept: list[Candidate] = []
    for mechanism in MECHANISMS:
        for candidate in mechanism(context):
            if not any(np.allclose(candidate.table, other.table, rtol=0, atol=_SAME) for other in kept):
                kept.append(candidate)
    found = [_judged(context, candidate) for candidate in kept]
    return tuple(sorted(found, key=lambda c: graded(c.loss)))


def _judged(context: TableContext, candidate: Candidate) -> Comparison:
    excess = context.excess(candidate.table)
    reason = candidate.text if not excess else f"it breaks the requirement by a probability of {shown(excess)}"
    said = candidate.name, candidate.table, candidate.text, candidate.note
    return Comparison(*said, context.loss(candidate.table), not excess, reason)


# --- known mechanisms -----------------------------------------------------------------------------


_MOST_LISTED = 5


@dataclass(frozen=True, eq=False, slots=True)
class Recognition(Candidate):
    """A table is, up to `deviation` in any probability, this mechanism."""

    deviation: float


def spoken(label: Label) -> str:
    """A row or column as an author would write it."""
    parts = [show(value) for value in label]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def listed(parts: Sequence[str], most: int = _MOST_LISTED, between: str = ", ") -> str:
    """The first of several parts, and how many are left out."""
    if len(parts) > most:
        return between.join([*parts[:most], f"and {len(parts) - most} more"])
    return listing(parts) if between == ", " else between.join(parts)


def named(labels: Sequence[Label], among: Sequence[Label]) -> str:
    """Labels in the order of the domain; three or more in a row as `a to c`."""
    number = {label: k for k, label in enumerate(among)}
    runs: list[list[Label]] = []
    for label in sorted(labels, key=number.__getitem__):
        if runs and number[label] == number[runs[-1][-1]] + 1:
            runs[-1].append(label)
        else:
            runs.append([label])
    parts: list[str] = []
    for run in runs:
        parts += [f"{spoken(run[0])} to {spoken(run[-1])}"] if len(run) > 2 else [spoken(label) for label in run]
    return listed(parts)


@dataclass(frozen=True, eq=False, slots=True)
class Levels:
    """Columns of a table split into high and low entries.

    `used` (N,) are the columns that occur at all; `high` (X, N) tells their high entries; `upper`, `lower` (N,) are the
    means of both groups, equal where a column does not vary.
    """

    used: NDArray[np.intp]
    high: NDArray[np.bool_]
    upper: Array
    lower: Array

    @classmethod
    def of(cls, table: Array, tolerance: float) -> Levels:
        """Split every column halfway between its extremes, unless it varies by less than the tolerance."""
        used = np.flatnonzero(table.max(axis=0) > tolerance)
        part = table[:, used]
        top, bottom = part.max(axis=0), part.min(axis=0)
        high = (part > (top + bottom) / 2) & (top - bottom > tolerance)
        count = high.sum(axis=0)
        lower = np.sum(part * ~high, axis=0) / np.maximum(len(part) - count, 1)
        upper = np.where(count > 0, np.sum(part * high, axis=0) / np.maximum(count, 1), lower)
        return cls(used, high, upper, lower)

    @property
    def sizes(self) -> NDArray[np.intp]:
        """How many entries of each column are high."""
        return np.asarray(self.high.sum(axis=0), dtype=np.intp)

    def scaled(self, table: Array, ratio: float) -> Array:
        """The nearest table whose used columns have two levels of exactly this ratio (X, Y)."""
        patterns = np.where(self.high, ratio, 1.0)
        result = np.zeros_like(table)
        result[:, self.used] = patterns * (table[:, self.used].sum(axis=0) / patterns.sum(axis=0))
        return result


def randomised_response(context: TableContext, table: Array, tolerance: float) -> Iterator[Candidate]:
    """(k-)randomised response among the answers that are used."""
    used = np.flatnonzero(table.max(axis=0) > tolerance)
    m, answers = len(used), [context.columns[y] for y in used]
    own = positions(answers, context.rows)
    if m < 2 or own is None:
        return
    truth = float(np.mean(table[own, used]))
    other = (1 - truth) / (m - 1)
    ideal = table.copy()
    ideal[own] = 0.0
    ideal[np.ix_(own, used)] = np.where(np.eye(m) > 0, truth, other)
    if truth - other > tolerance:
        name, text = response_name(m), response_text(m, truth, other)
        if m < len(context.rows) and np.allclose(ideal, table, rtol=0, atol=tolerance):
            name, text = f"{name} after merging inputs", f"{_merged(context, table, own, tolerance)}. Then {text}"
        yield Candidate(name, ideal, text, "k-randomised-response")


def _merged(context: TableContext, table: Array, own: NDArray[np.intp], tolerance: float) -> str:
    """Which inputs draw like which of the answers, in words."""
    groups: dict[int, list[Label]] = {int(x): [] for x in own}
    apart = np.max(np.abs(table[:, None] - table[None, own]), axis=2)
    others = []
    for x, label in enumerate(context.rows):
        if apart[x].min() <= tolerance:
            groups[int(own[np.argmin(apart[x])])].append(label)
        else:
            others.append(label)
    parts = [f"{named(group, context.rows)} → {spoken(context.rows[x])}" for x, group in groups.items()]
    parts += [f"{named(others, context.rows)} → one of them by chance"] if others else []
    return f"inputs are first merged, {listed(parts, between=' · ')}"


def subset_selection(context: TableContext, table: Array, tolerance: float) -> Iterator[Candidate]:
    """Every answer is likelier for one set of inputs; all sets have one size and all answers one ratio."""
    levels = Levels.of(table, tolerance)
    k, sizes = len(context.rows), levels.sizes
    if not len(sizes) or sizes.min() != sizes.max() or not 0 < sizes[0] < k or levels.lower.min() <= 0:
        return
    ratio = float(levels.upper.sum() / levels.lower.sum())
    size, sets = int(sizes[0]), len({tuple(column) for column in levels.high.T.tolist()})
    every = comb(k, size)
    which = f"one of {sets} of the {every:,} sets" if sets < every else f"one of the {every:,} sets"
    text = f"{which} of {size} of the {k} values; a set that holds the truth is {shown(ratio)} times as likely"
    if np.ptp(levels.lower) > tolerance:
        text += "; the sets have unequal weights"
    yield Candidate(f"subset selection of size {size}", levels.scaled(table, ratio), text, "subset-selection")


def extremal(context: TableContext, table: Array, tolerance: float) -> Iterator[Candidate]:
    """Every answer is e^epsilon times as likely for some inputs as for all others, or the same for all."""
    levels = Levels.of(table, tolerance)
    if context.neighbours.uniform and not context.delta and levels.high.any():
        ratio = exp(float(context.epsilon) * context.neighbours.least)
        text = (
            f"each of the {len(levels.used)} answers in use is {shown(ratio)} times as likely for some inputs as for "
            "all others, as in every mechanism that is extreme among those of this epsilon"
        )
        yield Candidate("extremal (staircase) mechanism", levels.scaled(table, ratio), text, "extremal-tables")


_LARGEST = 600
"""Rows up to which a system is solved."""


def remap_of(base: Array, table: Array, tolerance: float) -> Array | None:
    """The row-stochastic M with base @ M = table up to the tolerance, 0/1 where one fits; None if there is none."""
    try:
        solved = np.linalg.solve(base, table)
    except np.linalg.LinAlgError:
        return None
    outputs = table.shape[1]
    sure: Array = np.eye(outputs)[np.argmax(solved, axis=1)]
    clipped = np.where(solved > 1e-9, solved, 0.0)
    sums = clipped.sum(axis=1, keepdims=True)
    if np.any(sums <= 0):
        return None
    mixed: Array = clipped / sums
    for remap in (sure, mixed):
        if np.max(np.abs(base @ remap - table)) <= tolerance:
            return remap
    return None


def geometric_remapped(context: TableContext, table: Array, tolerance: float) -> Iterator[Candidate]:
    """Truncated geometric noise on the grid of the rows, then a remap."""
    noise = GeometricNoise.of(context)
    if noise is None or context.neighbours.uniform or len(table) > _LARGEST:
        return
    base = noise.hull()
    if base is None or base.shape[0] != base.shape[1]:
        return
    remap = remap_of(base, table, tolerance)
    if remap is None:
        return
    # columns of the hull are the rows in ascending order, last coordinate fastest
    order = sorted(range(len(noise.points)), key=lambda x: noise.points[x])
    values = [context.rows[x] for x in order]
    text = f"{noise.describe()}, truncated at both ends. Then {_reported(values, context.columns, remap)}"
    yield Candidate("truncated geometric, remapped", base @ remap, text, "truncated-geometric")


def response_remapped(context: TableContext, table: Array, tolerance: float) -> Iterator[Candidate]:
    """(k-)randomised response on the rows, then a remap."""
    if not context.neighbours.uniform or len(table) > _LARGEST:
        return
    k = len(table)
    own = TableContext(
        context.rows, context.rows, context.epsilon, context.neighbours, np.zeros((k, k)), worst=True,
        delta=context.delta,
    )  # fmt: skip
    for base in response_candidates(own):
        remap = remap_of(base.table, table, tolerance)
        if remap is not None:
            text = f"{base.text}. Then {_reported(context.rows, context.columns, remap)}"
            yield Candidate(f"{response_name(k)}, remapped", base.table @ remap, text, base.note)


def _reported(values: Sequence[Label], columns: Sequence[Label], remap: Array) -> str:
    """Which noisy values, in the order of the domain, are reported as what."""
    merged: dict[int, list[Label]] = {}
    drawn = []
    for value, row in zip(values, remap, strict=True):
        targets = np.flatnonzero(row).tolist()
        if len(targets) > 1:
            chances = listing([shown(row[y]) for y in targets])
            names = " or ".join(spoken(columns[y]) for y in targets)
            drawn.append(f"{spoken(value)} → {names} with probabilities {chances}")
        else:
            merged.setdefault(targets[0], []).append(value)
    changed = {y: group for y, group in merged.items() if group != [columns[y]]}
    parts = [f"{named(group, values)} → {spoken(columns[y])}" for y, group in changed.items()]
    return listed(parts + drawn, between=" · ")


__all__ = ["Recognition", "recognise"]

Table: TypeAlias = "Array | NDArray[Any] | Sequence[Sequence[Fraction]]"
Recogniser: TypeAlias = Callable[[TableContext, Array, float], Iterator[Candidate]]
"""Mechanisms that a table may be, each with the table that it would then have."""


def recognise(context: TableContext, table: Table, tolerance: float = 1e-6) -> Recognition | None:
    """The known mechanism that a table (X, Y) is, or None.

    Args: table, exact fractions or floats; tolerance, the largest difference of a probability from the mechanism's.
    """
    floats = np.array([[float(entry) for entry in row] for row in table], dtype=float)
    for recogniser in RECOGNISERS:
        for found in recogniser(context, floats, tolerance):
            deviation = float(np.max(np.abs(found.table - floats)))
            if deviation <= tolerance:
                return Recognition(found.name, found.table, found.text, found.note, deviation)
    return None


def constant(context: TableContext, table: Array, tolerance: float) -> Iterator[Candidate]:
    """One law for every input."""
    law = table.mean(axis=0)
    sure = np.flatnonzero(law >= 1 - tolerance)
    if len(sure):
        text = f"always {spoken(context.columns[sure[0]])}, whatever the input"
    else:
        likely = [y for y in np.argsort(-law, kind="stable") if law[y] > tolerance]
        parts = [f"{spoken(context.columns[y])} with probability {shown(law[y])}" for y in likely]
        text = f"one law for every input: {listed(parts)}"
    yield Candidate("constant output", np.broadcast_to(law, table.shape), text, "bayes-remap")


def geometric(context: TableContext, table: Array, tolerance: float) -> Iterator[Candidate]:  # noqa: ARG001
    """Truncated geometric noise, or staircase noise, calibrated to the context."""
    for candidate in (*geometric_candidates(context), *staircase_candidates(context)):
        if not candidate.name.endswith("remapped"):
            yield candidate


def exponential(context: TableContext, table: Array, tolerance: float) -> Iterator[Candidate]:
    """Logarithms of the probabilities fall linearly with the loss, or with the distance from the truth."""
    if table.min() <= tolerance:
        return
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
        if rate > 0:
            text = f"an answer with probability proportional to {decay(rate, word)}"
            yield Candidate("exponential mechanism", exponential_table(score, rate), text, "exponential")


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
