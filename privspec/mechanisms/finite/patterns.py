"""Tables whose columns have two levels: randomised response, subset selection, extremal mechanisms."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, exp

import numpy as np
from numpy.typing import NDArray

from privspec.mechanisms.finite.context import Array, Label, TableContext
from privspec.mechanisms.finite.mechanism import shown
from privspec.mechanisms.finite.points import positions
from privspec.mechanisms.finite.response import response_name
from privspec.mechanisms.finite.sayings import Recognition, listed, named, spoken


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
    each = "the other value" if m == 2 else f"each of the other {m - 1} values"
    text = f"the truth with probability {shown(truth)}, {each} with {shown(other)}"
    if m == len(context.rows):
        return Recognition(response_name(m), text, "k-randomised-response", deviation)
    text = f"{_merged(context, table, own, tolerance)}; then {text}"
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
    return f"inputs are first merged: {listed(parts, between='; ')}"


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
