"""Tables, maps and the chances of elections as SVG, drawn by hand, each with a table of its numbers.

A cell for each probability, the stronger its colour, the likelier. Cells of one shade are one path, so that a table of
100 x 100 stays small. Colours are CSS variables with the printed colour as their fallback, as in `drawing`.

The table of a plan as figures has rows, columns, what an observer sees of it, and which rows are compared: those that
differ in nothing but the inputs of a line, or where the model says that one unit moves between them; for privacy by
distance, those that are at most so far apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.explain import drawing
from privspec.explain.curves import Curve, EpsilonDeltaCurve, PairsCurve, largest_ratio
from privspec.explain.document import Plot, Table
from privspec.explain.document import table as make_table
from privspec.explain.drawing import (
    ACCENT,
    GRID,
    INK,
    LETTER,
    MUTED,
    PAGE,
    SECOND,
    WIDTH,
    rect,
    say,
    svg,
    tag,
    themed,
    upwards,
)
from privspec.explain.quantities import UP, Quantity, rounded, ungrouped
from privspec.explain.voting_rules import MOST, Chance, Dictator, Example, Rule, Vote
from privspec.kernel.measures import PURE
from privspec.model.measures import MeasureAt
from privspec.model.reports import Failure, listing
from privspec.model.requirements import Requirement
from privspec.stated import Mechanism, parse_exact

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


def read_table(mechanism: Mechanism) -> ProbabilityTable:
    """The table of a plan of the family "table".

    Raises: ValueError if the mechanism is not of that form.
    """
    of, releases = mechanism.of, mechanism.releases
    rows = tuple(_label(item, len(of)) for item in mechanism.inputs)
    columns = tuple(_label(item, len(releases)) for item in mechanism.outputs)
    listed = [[_share(text) for text in row] for row in mechanism.probabilities]
    shares = np.array(listed, dtype=np.float64).reshape(len(listed), -1 if listed else len(columns))
    if shares.shape != (len(rows), len(columns)):
        raise ValueError("the table has not one row for each input and one column for each output")
    weights = None if mechanism.prior is None else np.array([_share(text) for text in mechanism.prior])
    if weights is not None and weights.shape != (len(rows),):
        raise ValueError("the prior has not one weight for each input")
    return ProbabilityTable(of, releases, frozenset(mechanism.counted), rows, columns, shares, weights)


def _label(item: Any, nodes: int) -> Label:
    return tuple(_part(part) for part in item) if nodes > 1 else (_part(item),)


def _part(item: Any) -> Part:
    if not isinstance(item, list):
        return (str(item),)
    return tuple(scalar for inner in item for scalar in _part(inner))


def _share(text: str) -> float:
    """The double nearest to a fraction: division of whole numbers rounds once."""
    top, _, bottom = text.partition("/")
    try:
        return int(top) / int(bottom or "1")
    except (ValueError, ZeroDivisionError):
        return float(parse_exact(text))


def common_bits(mechanism: Mechanism) -> int:
    """How long the whole numbers are that a draw takes: bits of the largest common denominator of a row."""
    rows = ({int(text.partition("/")[2] or "1") for text in row} for row in mechanism.probabilities)
    return max((math.lcm(*bottoms) for bottoms in rows), default=1).bit_length()


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
    try:
        found = worlds(model)
        pairs = found.neighbours(line).pairs
    except Failure:
        return None
    if found.of != table.of or len(found.rows) != len(table.rows):
        return None
    return np.unique(np.sort(pairs, axis=1), axis=0)


MOST_STEPS = 3
"""Round distances that are shown, besides the largest."""
_NEAR = 1 + 1e-9
"""Two values count as at most d apart up to this factor, so that roots in doubles leave none out."""


Reach: TypeAlias = tuple[Fraction, Fraction, Curve]
"""A distance, the epsilon that holds for two values at most so far apart, and what an observer can tell of them."""


def reaches(table: ProbabilityTable, wrt: Sequence[str], metric: str, epsilon: Fraction) -> list[Reach]:
    """The curves at a few round distances between the least and the largest of the table, from near to far.

    The round ones are the first of 1, 2, 5 times a power of ten; the largest is rounded up.

    Args: epsilon for each unit of distance; metric, the distance as the spec names it.
    """
    pairs = table.pairs(wrt)
    apart = _distances(table, wrt, metric, pairs)
    if apart is None or not apart.any():
        return [(d, epsilon * d, EpsilonDeltaCurve(float(epsilon * d))) for d in map(Fraction, (1, 2, 5))]
    least, largest = float(apart[apart > 0].min()), float(apart.max())
    ten = Fraction(10) ** int(np.floor(np.log10(least)))
    steps = (digit * ten * 10**power for power in range(40) for digit in (1, 2, 5))
    inside = [step for step in steps if least <= float(step) * _NEAR and float(step) < largest / _NEAR]
    found: list[Reach] = []
    for distance in (*inside[:MOST_STEPS], Fraction(ungrouped(rounded(largest, 3, UP).text))):
        bound = float(epsilon * distance) * _NEAR
        exact = curve_of(table, pairs[apart <= float(distance) * _NEAR], (bound, 0.0))
        found.append((distance, epsilon * distance, exact or EpsilonDeltaCurve(bound)))
    return found


def _distances(table: ProbabilityTable, wrt: Sequence[str], metric: str, pairs: Indices) -> Array | None:
    """The distances of pairs of rows (K,), in doubles; None if they are not known here."""
    apart = _METRICS.get(metric)
    at = [i for i, name in enumerate(table.of) if name in wrt]
    if apart is None or not at or any(table.of[i] in table.counted for i in at):
        return None
    scalars = [[scalar for i in at for scalar in row[i]] for row in table.rows]
    if len({len(row) for row in scalars}) != 1:
        return None
    return apart(np.column_stack([_gaps([row[k] for row in scalars], pairs) for k in range(len(scalars[0]))]))


def _gaps(values: list[str], pairs: Indices) -> Array:
    """Sizes of the differences (K,) of numbers; words are one apart where they differ."""
    try:
        numbers = np.array([float(parse_exact(text)) for text in values])
    except ValueError:
        words = np.array(values)
        return np.asarray(words[pairs[:, 0]] != words[pairs[:, 1]], dtype=float)
    return np.asarray(np.abs(numbers[pairs[:, 0]] - numbers[pairs[:, 1]]))


_METRICS: Mapping[str, Callable[[Array], Array]] = {
    "euclidean": lambda gaps: np.sqrt((gaps**2).sum(axis=1)),
    "manhattan": lambda gaps: gaps.sum(axis=1),
    "chebyshev": lambda gaps: gaps.max(axis=1),
    "hamming": lambda gaps: np.count_nonzero(gaps, axis=1).astype(float),
    "discrete": lambda gaps: gaps.any(axis=1).astype(float),
}
"""Distances (K,) from the differences of all scalars (K, d); those of rankings are not drawn."""


# --- drawings -------------------------------------------------------------------------------------


MOST_NUMBERS = 12
"""Rows and columns up to which the numbers stand in the cells."""
MOST_CELLS = 100
"""Rows and columns that are drawn; larger tables are drawn as means of blocks."""
SHADES = 24
HIGHEST = 460.0
LEAST, LARGEST = 14.0, 40.0
"""The least height and the largest size of a cell, where there is room."""
APART = 10.5
"""How far apart labels stand."""
_LONGEST = 14
_FILL, _MARK = themed(ACCENT), themed(SECOND)

PlaneGrid: TypeAlias = tuple[Array, Array, Indices, Indices]
"""Points as cells of a grid: distinct coordinates, and for each point its column and row among them."""


def _frame(left: float, top: float, wide: float, high: float) -> str:
    return rect(left, top, wide, high, fill="none", stroke=themed(GRID), stroke_width=0.6)


def draw_table(table: ProbabilityTable) -> str:
    """The whole table with its labels and its scale."""
    shares = _blocks(table.shares)
    rows, columns = shares.shape
    longest = max((len(name) for _, name in _few(table.rows, rows, HIGHEST / rows)), default=0)
    left = 22.0 + LETTER * longest
    wide = min(LARGEST, (WIDTH - left - 4) / columns)
    high = min(max(wide, LEAST), LARGEST, HIGHEST / rows)
    row_names, column_names = _few(table.rows, rows, high), _few(table.columns, columns, wide)
    widest = LETTER * max(len(name) for _, name in column_names)
    # several columns may share a label
    upright = widest + 4 <= wide * (columns if len(column_names) < 2 else column_names[1][0])
    top = 20.0 + (10.0 if upright else widest + 4)
    across = ((left + wide * (i + 0.5), name) for i, name in column_names)
    most, numbers = float(shares.max()), []
    if max(table.shares.shape) <= MOST_NUMBERS and wide >= 18 and high >= 12:
        for (r, c), share in np.ndenumerate(shares):
            x, y = left + wide * (c + 0.5), top + high * (r + 0.5) + 2.6
            numbers.append(say(x, y, _inside(float(share)), colour=PAGE if share > 0.7 * most else INK, size=7))
    parts = [
        say(left, 10, f"{listing(table.releases)} →", "start", MUTED),
        upwards(8, top + high * rows / 2, f"← {listing(table.of)}", colour=MUTED),
        *(say(left - 5, top + high * (i + 0.5) + 3, name, "end") for i, name in row_names),
        *(say(x, top - 4, n) if upright else upwards(x + 3, top - 4, n, "start") for x, n in across),
        *_cells(shares, left, top, wide, high),
        *numbers,
        _frame(left, top, wide * columns, high * rows),
        *_legend(most, left, top + high * rows + 14),
    ]
    return svg(parts, top + high * rows + 30)


def _few(labels: Sequence[Label], drawn: int, size: float) -> list[tuple[int, str]]:
    """The numbers of the rows (as drawn, `size` apart) that get a label, and the labels; far enough to be read."""
    block = -(-len(labels) // drawn)
    step = max(1, -(-int(10 * APART) // max(1, int(10 * size))))
    return [(i, _short(spoken(labels[min(i * block, len(labels) - 1)]))) for i in range(0, drawn, step)]


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _blocks(shares: Array) -> Array:
    """The table itself, or means of blocks where it is too large to draw."""
    for axis in (0, 1):
        block = -(-shares.shape[axis] // MOST_CELLS)
        if block > 1:
            starts = np.arange(0, shares.shape[axis], block)
            sizes = np.diff(np.append(starts, shares.shape[axis]))
            shares = np.add.reduceat(shares, starts, axis=axis) / np.expand_dims(sizes, 1 - axis)
    return shares


def _cells(shares: Array, left: float, top: float, wide: float, high: float, largest: float | None = None) -> list[str]:
    """Cells of one shade together; row 0 on top."""
    most = largest if largest is not None else float(shares.max())
    shade_of = np.minimum(np.ceil(SHADES * shares / most), SHADES) if most > 0 else np.zeros(shares.shape)
    shape = f"h{wide:.2f}v{high:.2f}h-{wide:.2f}z"
    found = []
    for shade in range(1, SHADES + 1):
        places = np.argwhere(shade_of == shade)
        if len(places):
            path = "".join(f"M{left + wide * c:.2f} {top + high * r:.2f}{shape}" for r, c in places.tolist())
            found.append(tag("path", d=path, fill=_FILL, fill_opacity=f"{shade / SHADES:.3f}"))
    return found


def _inside(share: float) -> str:
    """A probability in a cell: two decimals, or a trace of one."""
    if share == 0:
        return "0"
    return {"0.00": "·", "1.00": "1"}.get(f"{share:.2f}", f"{share:.2f}".removeprefix("0"))


def _legend(most: float, left: float, top: float) -> list[str]:
    """The scale: from 0 to the largest probability."""
    width = 60.0
    bars = (
        rect(left + 12 + width * i / SHADES, top, width / SHADES, 7, fill=_FILL, fill_opacity=f"{(i + 1) / SHADES:.3f}")
        for i in range(SHADES)
    )
    most_words = say(left + width + 16, top + 7, rounded(most).text, "start", MUTED)
    return [say(left + 5, top + 7, "0", colour=MUTED), *bars, most_words]


def draw_maps(table: ProbabilityTable, chosen: list[int], grid: PlaneGrid) -> str:
    """A map for each of the rows chosen, two side by side, all to one scale."""
    at, (xs, ys, column, line) = table.row_points, grid
    columns, rows = len(xs), len(ys)
    gap, head = 14.0, 16.0
    size = min(24.0, ((WIDTH - gap) / 2 - 4) / columns)
    wide, high = size * columns, size * rows
    largest = float(table.shares[chosen].max())
    parts = []
    for number_, row in enumerate(chosen):
        left = 2 + (number_ % 2) * (wide + gap)
        top = head + (number_ // 2) * (high + head + 6)
        picture = np.zeros((rows, columns))
        np.add.at(picture, (rows - 1 - line, column), table.shares[row])
        parts += [
            say(left, top - 5, f"{table.of[0]} = {spoken(table.rows[row])}", "start"),
            *_cells(picture, left, top, size, size, largest),
            _frame(left, top, wide, high),
        ]
        if at is not None:
            x, y = (float(np.interp(at[row, k], grid[k], np.arange(len(grid[k])))) for k in (0, 1))
            place = {"cx": left + size * (x + 0.5), "cy": top + size * (rows - 0.5 - y), "r": max(2.5, 0.36 * size)}
            parts.append(tag("circle", **place, fill="none", stroke=_MARK, stroke_width=1.6))
    bottom = head + -(-len(chosen) // 2) * (high + head + 6) - 10
    return svg([*parts, *_legend(largest, 2, bottom)], bottom + 14)


MOST_MAPS = 4


def table_plots(table: ProbabilityTable) -> tuple[Plot, ...]:
    """The heat map of a table, one more of each output where several are drawn together, and maps of a few rows."""
    if not table.rows or not table.columns:
        return ()
    single = [table.seen([name]) for name in table.releases] if len(table.releases) > 1 else []
    drawn = [*single[:MOST_MAPS], table]
    found = [heat_map(part, f"table{place if place > 1 else ''}") for place, part in enumerate(drawn, start=1)]
    maps = plane_maps(table)
    return (*found, *((maps,) if maps is not None else ()))


def heat_map(table: ProbabilityTable, name: str = "table") -> Plot:
    """A whole table: a row for each value of the secret, a column for each value drawn."""
    drawn, of, (rows, columns) = listing(table.releases), listing(table.of), table.shares.shape
    row, column = np.unravel_index(int(np.argmax(table.shares)), table.shares.shape)
    where = f"{spoken(table.columns[column])} where {of} is {spoken(table.rows[row])}"
    blocks = " Neighbouring rows and columns are drawn together, as means of blocks."
    return Plot(
        name=name,
        draw=lambda: draw_table(table),
        alt=f"Heat map of a table of {rows:,} × {columns:,} probabilities, a row for each value of {of}, "
        f"a column for each value of {drawn}. The largest is {rounded(float(table.shares.max()))}, of {where}.",
        caption=f"Pr({', '.join(table.releases)} | {', '.join(table.of)}): each row adds up to 1, the stronger the "
        "colour, the likelier. The plan holds all entries as exact fractions."
        f"{blocks if max(rows, columns) > MOST_CELLS else ''}",
        twin=_whole(table) if max(rows, columns) <= MOST_NUMBERS else _summed_up(table),
    )


def _whole(table: ProbabilityTable) -> Table:
    header = (listing(table.of), *map(spoken, table.columns))
    labelled = zip(table.rows, table.shares, strict=True)
    rows = ((spoken(label), *(rounded(float(p)) for p in shares)) for label, shares in labelled)
    caption = f"Probabilities of {listing(table.releases)}, numbers of the plot"
    return make_table(caption, header, rows, *range(1, len(header)))


def _summed_up(table: ProbabilityTable) -> Table:
    listed = row_facts(table)
    shown = 4 if any(item.truth is not None for item in listed) else 3
    header = (listing(table.of), "Likeliest", "With probability", "The true value with")
    rows = ((i.row, i.likeliest, i.probability, i.truth)[:shown] for i in listed)
    every = "" if len(listed) == len(table.rows) else f", {len(listed)} of {len(table.rows):,} rows"
    caption = f"The likeliest value of {listing(table.releases)} for each row{every}"
    return make_table(caption, header[:shown], rows, *range(2, shown))


def plane_maps(table: ProbabilityTable) -> Plot | None:
    """Where the reports of a few places fall; None unless both are points in the plane on a grid."""
    at, to = table.row_points, table.column_points
    if at is None or to is None or at.shape[1] != 2 or to.shape[1] != 2 or len(table.of) != 1 or table.counted:
        return None
    (x, column), (y, row) = (np.unique(to[:, k], return_inverse=True) for k in (0, 1))
    if len(x) * len(y) > 2 * len(to) or max(len(x), len(y)) > MOST_CELLS:
        return None
    chosen = spread_out(at, MOST_MAPS)
    rows = []
    for r in chosen:
        best, mean = int(np.argmax(table.shares[r])), (rounded(float(v)).text for v in table.shares[r] @ to)
        likeliest = spoken(table.columns[best]), rounded(float(table.shares[r, best]))
        rows.append((spoken(table.rows[r]), *likeliest, f"({', '.join(mean)})"))
    return Plot(
        name="maps",
        draw=lambda: draw_maps(table, chosen, (x, y, column, row)),
        alt=f"Maps of where reports fall for the places {listing([row[0] for row in rows])}, the true place ringed.",
        caption=f"Where reports fall, for {len(chosen)} places; the ring is the true one. All maps have one scale.",
        twin=make_table("The places of the maps", "Place | Likeliest report | With probability | Mean report", rows, 2),
    )


def spread_out(at: Array, most: int) -> list[int]:
    """A few points (n, d) that show the whole: one in the middle, then always the one farthest from those chosen."""
    chosen = [int(np.argmin(((at - at.mean(axis=0)) ** 2).sum(axis=1)))]
    apart = np.sqrt(((at[:, None, :] - at[None, :, :]) ** 2).sum(axis=2))
    while len(chosen) < min(most, len(at)):
        nearest = apart[:, chosen].min(axis=1)
        if nearest.max() <= 0:
            break
        chosen.append(int(np.argmax(nearest)))
    return chosen


FACTORS = tuple(Fraction(n, d) for n, d in ((1, 8), (1, 4), (1, 2), (1, 1), (2, 1), (4, 1), (8, 1)))
"""Multiples of this plan's dummy votes that are drawn."""
_ROW, _BAR, _HEAD = 24.0, 8.0, 26.0


def laws_plot(found: Sequence[Example], rule: Rule, vote: Vote) -> Plot | None:
    """Bars of the chances at two invented elections, beside those without noise."""
    if not found:
        return None
    rows = ((e.title, c.name, c.votes, c.chance, c.without) for e in found for c in e.chances[:MOST])
    firsts = ((e.title, e.chances[0]) for e in found)
    said = "".join(
        f" Where {title}, {c.name} wins with probability {c.chance} ({c.without} in {rule.without})."
        for title, c in firsts
    )
    cut = f" The first {MOST} of {len(vote.names)} candidates." if len(vote.names) > MOST else ""
    return Plot(
        name="laws",
        draw=lambda: _laws(found, rule.without),
        alt=f"Bars of the chances of the candidates at invented elections.{said}",
        caption=f"Invented elections, nobody's votes. Full bars: this plan. Thin bars: {rule.without}.{cut}",
        twin=make_table(
            f"Chances at invented elections, this plan and {rule.without}",
            "Invented election | Candidate | Votes | This plan | Without noise",
            rows,
            *range(2, 5),
        ),
    )


def _laws(found: Sequence[Example], without: str) -> str:
    left = 14.0 + LETTER * min(14, max(len(c.name) for e in found for c in e.chances[:MOST]))
    wide = WIDTH - left - 44
    parts: list[str] = []
    top = 0.0
    for example in found:
        parts.append(say(2, top + 12, f"{example.voters} voters: {example.title}", "start"))
        top += _HEAD - 6
        for chance in example.chances[:MOST]:
            parts += _pair(chance, left, top, wide)
            top += _ROW
        top += 8
    parts += [
        rect(2, top + 2, 14, _BAR, fill=_FILL),
        say(20, top + 9, "this plan", "start", MUTED),
        rect(80, top + 4, 14, 4, fill=_MARK),
        say(98, top + 9, without, "start", MUTED),
    ]
    return svg(parts, top + 16)


def _pair(chance: Chance, left: float, top: float, wide: float) -> list[str]:
    high, bare = wide * chance.chance.value, wide * chance.without.value
    return [
        say(left - 6, top + 11, _short(chance.name), "end"),
        rect(left, top + 2, high, _BAR, fill=_FILL),
        rect(left, top + 2 + _BAR, bare, 4, fill=_MARK),
        say(left + max(high, bare) + 4, top + 12, chance.chance.text, "start"),
    ]


def dummies_plot(rule: Rule, vote: Vote) -> Plot | None:
    """Epsilon against the number of dummy votes, with this plan's."""
    if not isinstance(rule, Dictator) or not rule.amount:
        return None
    kappas = [rule.amount * f for f in FACTORS]
    spent = [math.log1p(float(vote.points.highest / k)) for k in kappas]
    line = drawing.Line("ε", [float(k) for k in kappas], spent)
    chosen = float(rule.amount), spent[FACTORS.index(Fraction(1))], "this plan"
    rows = (
        (rounded(k, 4), rounded(e * (1 + 1e-12), 4, UP), rounded(k * vote.size, 4), "this plan" * (k == rule.amount))
        for k, e in zip(kappas, spent, strict=True)
    )
    each = "dummy votes for each candidate"
    return Plot(
        name="dummies",
        draw=lambda: drawing.frontier_chart(line, chosen, each, "ε of one vote"),
        alt=f"ε against dummy votes: from {rounded(spent[0])} at {rounded(kappas[0])} down to {rounded(spent[-1])} at "
        f"{rounded(kappas[-1])} for each candidate; this plan has {rounded(rule.amount)}.",
        caption="The diamond marks this plan. Every further dummy vote protects more and follows the votes less.",
        twin=make_table(
            "ε by the number of dummy votes, log(1 + most points of a ballot / dummy votes)",
            "Dummy votes for each candidate | ε | Dummy votes in all | Remark",
            rows,
            *range(3),
        ),
    )
