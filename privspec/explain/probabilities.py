"""The table of a plan as figures: its rows and columns, what an observer sees of it, and which rows are compared.

Those are compared that differ in nothing but the inputs of a line, or where the model says that one unit moves between
them; for privacy by distance, those that are at most so far apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.explain.claims import NOT_WORSE, Reach, round_distances
from privspec.explain.curves import Curve, EpsilonDeltaCurve, PairsCurve, largest_ratio
from privspec.explain.quantities import Quantity, rounded
from privspec.kernel.measures import PURE
from privspec.kernel.tables import Executed
from privspec.model.distances import MEASURED
from privspec.model.measures import MeasureAt
from privspec.model.neighbours import GivenTheModel
from privspec.model.reports import Failure
from privspec.model.requirements import Requirement
from privspec.stated import parse_exact

if TYPE_CHECKING:
    from privspec.explain.claims import Claim
    from privspec.model.graph import Model
    from privspec.model.observers import Unit


Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
Part: TypeAlias = tuple[str, ...]
"""The value of one node, as its scalars: one for a number or word, several for a vector."""
Label: TypeAlias = tuple[Part, ...]
"""A row or column: one part for each node."""


@dataclass(frozen=True, eq=False)
class ProbabilityTable:
    """Pr(column | row) as doubles (rows, columns), each the nearest to its exact fraction.

    `of` and `releases` name the nodes of rows and of columns; `counted` those nodes whose values are held as counts;
    `prior` (rows,) is None where expected losses use no law.
    """

    of: tuple[str, ...]
    releases: tuple[str, ...]
    counted: frozenset[str]
    rows: tuple[Label, ...]
    columns: tuple[Label, ...]
    shares: Array
    prior: Array | None

    def seen(self, outputs: Sequence[str]) -> ProbabilityTable:
        """What one learns who sees only these outputs: columns that look the same are added up."""
        kept = [i for i, name in enumerate(self.releases) if name in outputs]
        if len(kept) == len(self.releases):
            return self
        shown = [tuple(column[i] for i in kept) for column in self.columns]
        names = tuple(dict.fromkeys(shown))
        number = {name: k for k, name in enumerate(names)}
        shares = np.zeros((len(self.rows), len(names)))
        np.add.at(shares.T, [number[s] for s in shown], self.shares.T)
        releases = tuple(self.releases[i] for i in kept)
        return ProbabilityTable(self.of, releases, self.counted, self.rows, names, shares, self.prior)

    def pairs(self, wrt: Sequence[str]) -> Indices:
        """Unordered pairs of rows (K, 2) that differ in nothing but these nodes."""
        groups: dict[Label, list[int]] = {}
        for r, row in enumerate(self.rows):
            groups.setdefault(
                tuple(part for part, name in zip(row, self.of, strict=True) if name not in wrt), []
            ).append(r)
        found = (np.array(g, dtype=np.intp)[np.column_stack(np.triu_indices(len(g), k=1))] for g in groups.values())
        return np.concatenate([np.zeros((0, 2), dtype=np.intp), *found])

    def truths(self, output: str, node: str) -> Array | None:
        """The probability in each row (rows,) that an output is the value of a node; None if it cannot always be."""
        if output not in self.releases or node not in self.of:
            return None
        out, at = self.releases.index(output), self.of.index(node)
        columns: dict[Part, list[int]] = {}
        for c, column in enumerate(self.columns):
            columns.setdefault(column[out], []).append(c)
        if any(row[at] not in columns for row in self.rows):
            return None
        return np.array([self.shares[r, columns[row[at]]].sum() for r, row in enumerate(self.rows)])

    def to_json(self) -> dict[str, object]:
        return {"of": self.of, "releases": self.releases}

    def mean(self, values: Array) -> float | None:
        """The mean over the rows by the prior; None without one."""
        return None if self.prior is None else float(values @ self.prior)

    @cached_property
    def row_points(self) -> Array | None:
        """The rows as points (rows, d) where all their scalars are numbers."""
        return points(self.rows)

    @cached_property
    def column_points(self) -> Array | None:
        """The columns as points (columns, d) where all their scalars are numbers."""
        return points(self.columns)


def points(labels: Sequence[Label]) -> Array | None:
    """Labels as points; None where one is no number, or they differ in length."""
    try:
        listed = [[float(parse_exact(scalar)) for part in label for scalar in part] for label in labels]
    except ValueError:
        return None
    if not listed or len({len(point) for point in listed}) != 1:
        return None
    return np.array(listed)


def spoken(label: Label) -> str:
    """A label as an author would write it: "red", "(1, 2)", "F, low"."""
    parts = [part[0] if len(part) == 1 else f"({', '.join(part)})" for part in label]
    return ", ".join(parts)


def read_table(found: Executed) -> ProbabilityTable:
    """The table of a plan."""
    task, whole = found.block, found.table.whole
    rows = tuple(_label(item, len(task.of)) for item in task.rows)
    columns = tuple(_label(item, len(task.outputs)) for item in task.columns)
    # division of whole numbers rounds once
    shares = np.array([[n / whole for n in row] for row in found.table.rows], dtype=np.float64)
    weights = np.array([float(weight) for weight in task.weights()]) if task.prior is not None else None
    return ProbabilityTable(task.of, task.outputs, frozenset(task.counted), rows, columns, shares, weights)


def _label(item: Any, nodes: int) -> Label:
    return tuple(_part(part) for part in item) if nodes > 1 else (_part(item),)


def _part(item: Any) -> Part:
    if not isinstance(item, list):
        return (str(item),)
    return tuple(scalar for inner in item for scalar in _part(inner))


def common_bits(found: Executed) -> int:
    """How long the whole numbers are that a draw takes: bits of the largest common denominator of a row."""
    return max((math.lcm(*(p.denominator for p in row)) for row in found.probabilities), default=1).bit_length()


ENTRIES = 1_000_000
"""Entries of all pairs together up to which curves are exact; beyond it the guarantee's own bound is used."""


def curve_of(table: ProbabilityTable, pairs: Indices, bound: tuple[float, float]) -> PairsCurve | None:
    """The exact curve of pairs of rows; None where there are none, or too many for the time a page may take."""
    if len(pairs) == 0 or len(pairs) * table.shares.shape[1] > ENTRIES:
        return None
    return PairsCurve(table.shares[pairs[:, 0]], table.shares[pairs[:, 1]], bound)


def bound_of(table: ProbabilityTable, pairs: Indices) -> Curve:
    """The exact curve of pairs of rows, or what their largest ratio or distance allows where there are too many."""
    if len(pairs) == 0:
        return EpsilonDeltaCurve(0.0)
    first, second = table.shares[pairs[:, 0]], table.shares[pairs[:, 1]]
    same = np.array_equal(first > 0, second > 0)
    ratio = largest_ratio(first, second) * (1 + 1e-12) if same else math.inf
    exact = curve_of(table, pairs, (ratio, 0.0))
    if exact is not None or same:
        return exact or EpsilonDeltaCurve(ratio)
    apart = max(0.5 * float(np.abs(table.shares[a] - table.shares[b]).sum()) for a, b in pairs)
    return EpsilonDeltaCurve(0.0, min(1.0, apart * (1 + 1e-9)))


MOST_LISTED = 100
"""Rows of a table that are summed up one by one; of larger tables every so many."""


@dataclass(frozen=True, slots=True)
class RowFact:
    """A row: its likeliest column with its probability, and the probability of the truth where that is a column."""

    row: str
    likeliest: str
    probability: Quantity
    truth: Quantity | None


def row_facts(table: ProbabilityTable) -> tuple[RowFact, ...]:
    """The rows of a table, at most `MOST_LISTED` of them, evenly chosen."""
    if not table.columns:
        return ()
    truths = table.truths(table.releases[0], table.of[0]) if len(table.of) == len(table.releases) == 1 else None
    step = -(-len(table.rows) // MOST_LISTED)
    return tuple(
        RowFact(
            spoken(table.rows[r]),
            spoken(table.columns[int(np.argmax(table.shares[r]))]),
            rounded(float(table.shares[r].max())),
            None if truths is None else rounded(float(truths[r])),
        )
        for r in range(0, len(table.rows), max(step, 1))
    )


def neighbours(table: ProbabilityTable, claim: Claim, unit: Unit | None, model: Model | None) -> Indices | None:
    """Unordered pairs of rows (K, 2); None without a model, or where its rows are not those of the table."""
    if model is None or unit is None:
        return None
    from privspec.model.worlds import worlds

    if unit.requirement >= 0:
        line = model.requirements[unit.requirement]
    else:  # a line that compares what a unit compares; its measure is not looked at
        measure, span = MeasureAt(PURE, (Fraction(1),)), model.block(unit.wrt[0]).span
        line = Requirement(claim.outputs, unit.wrt, unit.relation, measure, ("anyone",), span, 0, "")
    if isinstance(line.neighbours, GivenTheModel):
        return None  # it compares laws of rows
    try:
        found = worlds(model)
        pairs = found.neighbours(line).pairs
    except Failure:
        return None
    if found.of != table.of or len(found.rows) != len(table.rows):
        return None
    return np.unique(np.sort(pairs, axis=1), axis=0)


def reaches(table: ProbabilityTable, wrt: Sequence[str], metric: str, epsilon: Fraction) -> list[Reach]:
    """The curves at a few round distances between the least and the largest of the table, from near to far.

    The round ones are the first of 1, 2, 5 times a power of ten; the largest is rounded up.

    Args: epsilon for each unit of distance; metric, the distance as the spec names it.
    """
    pairs = table.pairs(wrt)
    apart = _distances(table, wrt, metric, pairs)
    if apart is None or not apart.any():
        return [(d, epsilon * d, EpsilonDeltaCurve(float(epsilon * d))) for d in map(Fraction, (1, 2, 5))]
    found: list[Reach] = []
    for distance in round_distances(float(apart[apart > 0].min()), float(apart.max())):
        bound = float(epsilon * distance) * NOT_WORSE
        exact = curve_of(table, pairs[apart <= float(distance) * NOT_WORSE], (bound, 0.0))
        found.append((distance, epsilon * distance, exact or EpsilonDeltaCurve(bound)))
    return found


def _distances(table: ProbabilityTable, wrt: Sequence[str], metric: str, pairs: Indices) -> Array | None:
    """The distances of pairs of rows (K,), in doubles; None if they are not known here."""
    apart = MEASURED.get(metric)
    at = [i for i, name in enumerate(table.of) if name in wrt]
    if apart is None or not at or any(table.of[i] in table.counted for i in at):
        return None
    scalars = [[scalar for i in at for scalar in row[i]] for row in table.rows]
    if len({len(row) for row in scalars}) != 1:
        return None
    found = apart(np.column_stack([_gaps([row[k] for row in scalars], pairs) for k in range(len(scalars[0]))]))
    return np.sqrt(found) if metric == "euclidean" else np.asarray(found, dtype=float)


def _gaps(values: list[str], pairs: Indices) -> Array:
    """Sizes of the differences (K,) of numbers; words are one apart where they differ."""
    try:
        numbers = np.array([float(parse_exact(text)) for text in values])
    except ValueError:
        words = np.array(values)
        return np.asarray(words[pairs[:, 0]] != words[pairs[:, 1]], dtype=float)
    return np.asarray(np.abs(numbers[pairs[:, 0]] - numbers[pairs[:, 1]]))
