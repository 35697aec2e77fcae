"""The known mechanism that a table is, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import comb, exp
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.families.tables.comparisons import exponential_table, response_candidates, response_name, response_text
from privspec.families.tables.context import Array, Label, TableContext, decay, positions, shown
from privspec.families.tables.noise import GeometricNoise, geometric_candidates, staircase_candidates
from privspec.model.values import show

_MOST_LISTED = 5


@dataclass(frozen=True, slots=True)
class Recognition:
    """A table is, up to `deviation` in any probability, the mechanism of this name; `note` proves its guarantee."""

    name: str
    text: str
    note: str
    deviation: float


def spoken(label: Label) -> str:
    """A row or column as an author would write it."""
    parts = [show(value) for value in label]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def listed(parts: Sequence[str], most: int = _MOST_LISTED, between: str = ", ") -> str:
    """The first of several parts, and how many are left out."""
    if len(parts) > most:
        return between.join([*parts[:most], f"and {len(parts) - most} more"])
    return joined(parts) if between == ", " else between.join(parts)


def joined(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


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


def randomised_response(context: TableContext, table: Array, tolerance: float) -> Recognition | None:
    """(k-)randomised response among the answers that are used."""
    used = np.flatnonzero(table.max(axis=0) > tolerance)
    m, answers = len(used), [context.columns[y] for y in used]
    own = positions(answers, context.rows)
    if m < 2 or own is None:
        return None
    laws = table[own]
    truth = float(np.mean(table[own, used]))
    other = (1 - truth) / (m - 1)
    ideal = np.full(laws.shape, 0.0)
    ideal[:, used] = np.where(np.eye(m) > 0, truth, other)
    deviation = float(np.max(np.abs(laws - ideal)))
    if deviation > tolerance or truth - other <= tolerance:
        return None
    text = response_text(m, truth, other)
    if m == len(context.rows):
        return Recognition(response_name(m), text, "k-randomised-response", deviation)
    text = f"{_merged(context, table, own, tolerance)}. Then {text}"
    return Recognition(f"{response_name(m)} after merging inputs", text, "k-randomised-response", deviation)


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


def subset_selection(context: TableContext, table: Array, tolerance: float) -> Recognition | None:
    """Every answer is likelier for one set of inputs; all sets have one size and all answers one ratio."""
    levels = Levels.of(table, tolerance)
    k, sizes = len(context.rows), levels.sizes
    if not len(sizes) or sizes.min() != sizes.max() or not 0 < sizes[0] < k or levels.lower.min() <= 0:
        return None
    ratio = float(levels.upper.sum() / levels.lower.sum())
    ideal = levels.scaled(table, ratio)
    deviation = float(np.max(np.abs(ideal - table)))
    if deviation > tolerance:
        return None
    size, sets = int(sizes[0]), len({tuple(column) for column in levels.high.T.tolist()})
    every = comb(k, size)
    which = f"one of {sets} of the {every:,} sets" if sets < every else f"one of the {every:,} sets"
    text = f"{which} of {size} of the {k} values; a set that holds the truth is {shown(ratio)} times as likely"
    weights = levels.lower
    if np.ptp(weights) > tolerance:
        text += "; the sets have unequal weights"
    return Recognition(f"subset selection of size {size}", text, "subset-selection", deviation)


def extremal(context: TableContext, table: Array, tolerance: float) -> Recognition | None:
    """Every answer is e^epsilon times as likely for some inputs as for all others, or the same for all."""
    if not context.neighbours.uniform or context.delta:
        return None
    levels = Levels.of(table, tolerance)
    ratio = exp(float(context.epsilon) * context.neighbours.least)
    deviation = float(np.max(np.abs(levels.scaled(table, ratio) - table)))
    if deviation > tolerance or not levels.high.any():
        return None
    count = len(levels.used)
    text = (
        f"each of the {count} answers in use is {shown(ratio)} times as likely for some inputs as for all others, "
        "as in every mechanism that is extreme among those of this epsilon"
    )
    return Recognition("extremal (staircase) mechanism", text, "extremal-tables", deviation)


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


def geometric_remapped(context: TableContext, table: Array, tolerance: float) -> Recognition | None:
    """Truncated geometric noise on the grid of the rows, then a remap."""
    noise = GeometricNoise.of(context)
    if noise is None or context.neighbours.uniform or len(table) > _LARGEST:
        return None
    base = noise.hull()
    if base is None or base.shape[0] != base.shape[1]:
        return None
    remap = remap_of(base, table, tolerance)
    if remap is None:
        return None
    # columns of the hull are the rows in ascending order, last coordinate fastest
    order = sorted(range(len(noise.points)), key=lambda x: noise.points[x])
    values = [context.rows[x] for x in order]
    text = f"{noise.describe()}, truncated at both ends. Then {_reported(values, context.columns, remap)}"
    deviation = float(np.max(np.abs(base @ remap - table)))
    return Recognition("truncated geometric, remapped", text, "truncated-geometric", deviation)


def response_remapped(context: TableContext, table: Array, tolerance: float) -> Recognition | None:
    """(k-)randomised response on the rows, then a remap."""
    if not context.neighbours.uniform or len(table) > _LARGEST:
        return None
    k = len(table)
    own = TableContext(
        context.rows, context.rows, context.epsilon, context.neighbours, np.zeros((k, k)), worst=True,
        delta=context.delta,
    )  # fmt: skip
    for base in response_candidates(own):
        remap = remap_of(base.table, table, tolerance)
        if remap is not None:
            text = f"{base.text}. Then {_reported(context.rows, context.columns, remap)}"
            deviation = float(np.max(np.abs(base.table @ remap - table)))
            return Recognition(f"{response_name(k)}, remapped", text, base.note, deviation)
    return None


def _reported(values: Sequence[Label], columns: Sequence[Label], remap: Array) -> str:
    """Which noisy values, in the order of the domain, are reported as what."""
    merged: dict[int, list[Label]] = {}
    drawn = []
    for value, row in zip(values, remap, strict=True):
        targets = np.flatnonzero(row).tolist()
        if len(targets) > 1:
            chances = joined([shown(row[y]) for y in targets])
            names = " or ".join(spoken(columns[y]) for y in targets)
            drawn.append(f"{spoken(value)} → {names} with probabilities {chances}")
        else:
            merged.setdefault(targets[0], []).append(value)
    changed = {y: group for y, group in merged.items() if group != [columns[y]]}
    parts = [f"{named(group, values)} → {spoken(columns[y])}" for y, group in changed.items()]
    return listed(parts + drawn, between=" · ")


__all__ = ["Recognition", "recognise"]

Table: TypeAlias = "Array | NDArray[Any] | Sequence[Sequence[Fraction]]"
Recogniser: TypeAlias = Callable[[TableContext, Array, float], Recognition | None]


def recognise(context: TableContext, table: Table, tolerance: float = 1e-6) -> Recognition | None:
    """The known mechanism that a table (X, Y) is, or None.

    Args: table, exact fractions or floats; tolerance, the largest difference of a probability from the mechanism's.
    """
    floats = np.array([[float(entry) for entry in row] for row in table], dtype=float)
    for recogniser in RECOGNISERS:
        found = recogniser(context, floats, tolerance)
        if found is not None:
            return found
    return None


def constant(context: TableContext, table: Array, tolerance: float) -> Recognition | None:
    """One law for every input."""
    law = table.mean(axis=0)
    deviation = float(np.max(np.abs(table - law)))
    if deviation > tolerance:
        return None
    sure = np.flatnonzero(law >= 1 - tolerance)
    if len(sure):
        text = f"always {spoken(context.columns[sure[0]])}, whatever the input"
    else:
        likely = [y for y in np.argsort(-law, kind="stable") if law[y] > tolerance]
        parts = [f"{spoken(context.columns[y])} with probability {shown(law[y])}" for y in likely]
        text = f"one law for every input: {listed(parts)}"
    return Recognition("constant output", text, "bayes-remap", deviation)


def geometric(context: TableContext, table: Array, tolerance: float) -> Recognition | None:
    """Truncated geometric noise, or staircase noise, calibrated to the context."""
    for mechanism in (geometric_candidates, staircase_candidates):
        for candidate in mechanism(context):
            deviation = float(np.max(np.abs(candidate.table - table)))
            if deviation <= tolerance and not candidate.name.endswith("remapped"):
                return Recognition(candidate.name, candidate.text, candidate.note, deviation)
    return None


def exponential(context: TableContext, table: Array, tolerance: float) -> Recognition | None:
    """Logarithms of the probabilities fall linearly with the loss, or with the distance from the truth."""
    if table.min() <= tolerance:
        return None
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
        deviation = float(np.max(np.abs(exponential_table(score, rate) - table)))
        if rate > 0 and deviation <= tolerance:
            text = f"an answer with probability proportional to {decay(rate, word)}"
            return Recognition("exponential mechanism", text, "exponential", deviation)
    return None


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
