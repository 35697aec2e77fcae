"""Noise on numbers and points as tables: Laplace, geometric, staircase, planar Laplace.

Also what a mechanism knows of a table: labels as points, neighbours, costs, prior; and what it makes of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import exp, gcd, isfinite, lcm, prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.core.rounding import graded
from privspec.solvers.highs import linear_program

Array: TypeAlias = NDArray[np.float64]
Value: TypeAlias = Fraction | str
Label: TypeAlias = tuple[Value, ...]
"""One row or column: a value for each node or coordinate that it is made of."""

_RELATIVE = 1e-9
_ABSOLUTE = 1e-13


@dataclass(frozen=True, eq=False, slots=True)
class Neighbours:
    """Which rows must look alike: Pr(S | a) <= e^(epsilon distances[a, b]) Pr(S | b) + delta where it is finite.

    `distances` (X, X) are >= 0, infinite where there is no condition.
    """

    distances: Array

    @classmethod
    def complete(cls, rows: int) -> Neighbours:
        """Every two rows are neighbours: local differential privacy, or replacing everything."""
        return cls(1.0 - np.eye(rows))

    @classmethod
    def adjacent(cls, rows: int, pairs: NDArray[np.intp]) -> Neighbours:
        """The ordered pairs (K, 2) are neighbours, such as counts that differ by one."""
        distances = np.full((rows, rows), np.inf)
        distances[pairs[:, 0], pairs[:, 1]] = 1.0
        np.fill_diagonal(distances, 0.0)
        return cls(distances)

    @classmethod
    def metric(cls, distances: Array) -> Neighbours:
        """Every two rows, by their distance (X, X): metric differential privacy."""
        return cls(np.asarray(distances, dtype=float))

    @property
    def pairs(self) -> NDArray[np.bool_]:
        """Which two different rows are under a condition (X, X)."""
        found: NDArray[np.bool_] = np.isfinite(self.distances)
        np.fill_diagonal(found, False)
        return found

    @property
    def least(self) -> float:
        """The least distance of two neighbours; infinite where there are none."""
        return float(np.min(self.distances[self.pairs], initial=np.inf))

    @property
    def uniform(self) -> bool:
        """Whether every two rows are neighbours at one distance."""
        off = self.distances[~np.eye(len(self.distances), dtype=bool)]
        return bool(off.size and np.isfinite(off).all() and np.all(off == off[0]))

    def rate(self, lengths: Array) -> float:
        """The greatest rate with rate * lengths[a, b] <= distances[a, b] for all neighbours; infinite without any."""
        at = self.pairs & (lengths > 0)
        return float(np.min(self.distances[at] / lengths[at], initial=np.inf))


@dataclass(frozen=True, eq=False, slots=True)
class TableContext:
    """One requirement and one loss over tables Pr(column | row).

    Args: rows, columns, their values; epsilon, delta of the requirement between `neighbours`; cost (X, Y), the loss
        of each pair, without the prior; prior (X,), for the expected loss; worst, whether the loss is the largest
        over the rows instead.
    Raises: ValueError for parts that do not fit together.
    """

    rows: tuple[Label, ...]
    columns: tuple[Label, ...]
    epsilon: Fraction
    neighbours: Neighbours
    cost: Array
    prior: Array | None = None
    worst: bool = False
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        """Refuse parts of different sizes, and an expected loss without a prior."""
        inputs, outputs = len(self.rows), len(self.columns)
        if self.cost.shape != (inputs, outputs) or self.neighbours.distances.shape != (inputs, inputs):
            raise ValueError("cost and distances must have a row for each row of the table")
        if self.prior is None and not self.worst:
            raise ValueError("an expected loss needs a prior")
        if self.prior is not None and self.prior.shape != (inputs,):
            raise ValueError("the prior must have one weight for each row")

    @property
    def points(self) -> Coordinates | None:
        """The rows as points; None where they are none, or nothing is spent on what they are."""
        return coordinates(self.rows) if self.epsilon else None

    @property
    def grid(self) -> ProductGrid | None:
        """The grid that the columns fill."""
        points = coordinates(self.columns)
        return None if points is None else product_grid(points)

    def rate(self, order: int) -> float | None:
        """How fast probabilities may fall with the distance of points in the l1 or l2 norm.

        None without points, and at no distance, which would need endless noise.
        """
        points = self.points
        rate = 0.0 if points is None else float(self.epsilon) * self.neighbours.rate(lengths(points, order))
        return rate if rate and isfinite(rate) else None

    def loss(self, table: Array) -> float:
        """The loss of a table (X, Y): expected under the prior, or the largest over the rows."""
        losses = np.sum(table * self.cost, axis=1)
        if self.worst:
            return float(losses.max())
        assert self.prior is not None
        return float(self.prior @ losses)

    def excess(self, table: Array) -> float:
        """How far the table breaks the requirement: 0 if it meets it, up to the rounding of doubles.

        With a delta: the largest delta beyond it. Without: the largest probability beyond its ratio.
        """
        allowed = np.where(self.neighbours.pairs, self.neighbours.distances, np.inf)
        with np.errstate(over="ignore"):
            ratios = np.exp(float(self.epsilon) * allowed)
        worst = 0.0
        if self.neighbours.uniform and not self.delta:
            # the extremes of a column decide
            low, high = table.min(axis=0), table.max(axis=0)
            worst = float(np.max(high * (1 - _RELATIVE) - ratios[0, 1] * low, initial=0.0))
            return worst if worst > _ABSOLUTE else 0.0
        for a, row in enumerate(table):
            others = np.isfinite(ratios[a])
            over = row - ratios[a, others, None] * table[others]
            if self.delta:
                spent = np.maximum(over, 0.0).sum(axis=1) - float(self.delta)
                worst = max(worst, float(np.max(spent, initial=0.0)))
            else:
                worst = max(worst, float(np.max(over - _RELATIVE * row, initial=0.0)))
        return worst if worst > _ABSOLUTE else 0.0


Coordinates = tuple[tuple[Fraction, ...], ...]
"""For each label its numbers."""


def coordinates(labels: Sequence[Label]) -> Coordinates | None:
    """The labels as numbers; None if one is a word, or has another number of parts."""
    found = []
    for label in labels:
        numbers = tuple(v for v in label if isinstance(v, Fraction))
        if len(numbers) != len(labels[0]) or not numbers:
            return None
        found.append(numbers)
    return tuple(found)


def lengths(points: Coordinates, order: int) -> Array:
    """Distances in the l1 (order 1) or l2 norm between every two points (X, X)."""
    at = np.array([[float(v) for v in point] for point in points])
    result: Array = np.linalg.norm(at[:, None] - at[None], ord=order, axis=2)
    return result


def positions(labels: Sequence[Label], among: Sequence[Label]) -> NDArray[np.intp] | None:
    """Where each label stands among others (X,); None unless all are there, each once."""
    number = {label: k for k, label in enumerate(among)}
    if len(number) != len(among) or any(label not in number for label in labels):
        return None
    return np.array([number[label] for label in labels], dtype=np.intp)


@dataclass(frozen=True, slots=True)
class ProductGrid:
    """Points that are every combination of values on each axis (`axes`, ascending), in any order.

    `places` holds for each point the number of its value on every axis.
    """

    axes: tuple[tuple[Fraction, ...], ...]
    places: tuple[tuple[int, ...], ...]

    def gather(self, factors: Sequence[Array]) -> Array:
        """The table (X, Y) of independent coordinates, from one (X, values) for each axis."""
        result = np.ones((len(factors[0]), len(self.places)))
        for axis, factor in enumerate(factors):
            result *= factor[:, [place[axis] for place in self.places]]
        return result


def product_grid(points: Coordinates) -> ProductGrid | None:
    """The grid that the points fill; None if one is missing or twice there."""
    axes = tuple(tuple(sorted(set(values))) for values in zip(*points, strict=True))
    if prod(len(axis) for axis in axes) != len(points) or len(set(points)) != len(points):
        return None
    number = [{value: k for k, value in enumerate(axis)} for axis in axes]
    return ProductGrid(axes, tuple(tuple(number[i][v] for i, v in enumerate(point)) for point in points))


def step(values: Sequence[Fraction]) -> Fraction | None:
    """The greatest step of an even grid that holds all of the values; None for less than two different ones."""
    gaps = [abs(v - values[0]) for v in values if v != values[0]]
    if not gaps:
        return None
    common = lcm(*(g.denominator for g in gaps))
    return Fraction(gcd(*(int(g * common) for g in gaps)), common)


def even_grid(low: Fraction, high: Fraction, width: Fraction, through: Fraction) -> tuple[Fraction, ...]:
    """The points through + k width between low and high, both included."""
    first = -((through - low) // width)
    last = (high - through) // width
    return tuple(through + k * width for k in range(first, last + 1))


def steps_between(values: Sequence[Fraction], grid: Sequence[Fraction]) -> NDArray[np.intp]:
    """How many steps of an even grid lie between each value, whole steps from it, and each grid point (X, Z)."""
    width = grid[1] - grid[0]
    at = np.array([int((v - grid[0]) / width) for v in values], dtype=np.intp)
    return np.arange(len(grid), dtype=np.intp)[None, :] - at[:, None]


def middles(axis: Sequence[Fraction]) -> Array:
    """Where the nearest value of the axis changes: (values - 1,)."""
    return np.array([float((a + b) / 2) for a, b in itertools.pairwise(axis)])


@dataclass(frozen=True, eq=False, slots=True)
class Candidate:
    """A mechanism calibrated to a context: its table (X, Y), and one sentence on how it draws."""

    name: str
    table: Array
    text: str
    note: str


@dataclass(frozen=True, eq=False, slots=True)
class Comparison(Candidate):
    """A mechanism that people use, beside the optimum: its loss in the context.

    `admissible`: it meets the requirement; `reason` says how it is calibrated, or by how much it misses.
    """

    loss: float
    admissible: bool
    reason: str


Mechanism: TypeAlias = "Callable[[TableContext], Iterator[Candidate]]"
"""The tables of a mechanism for a context, calibrated to the requirement; none where it does not apply."""


def shown(value: float) -> str:
    """A number in a sentence."""
    return f"{value:.4g}"


def decay(rate: float, exponent: str) -> str:
    """The power e^(-rate exponent) in a sentence."""
    factor = shown(rate)
    return f"e^(-{exponent})" if factor == "1" else f"e^(-{factor} {exponent})"


_LARGEST = 1_000_000
"""Entries of the program over random remaps up to which it is worth its time for a comparison."""


def best_remap(context: TableContext, noise: Array) -> Array | None:
    """The table (X, Y) after the best remap of noisy values, from their law `noise` (X, Z).

    For an expected loss each noisy value becomes the column of least posterior loss; for the worst case the remap may
    be random, from a linear program. None if that is too large.
    """
    remap = worst_case_remap(context, noise) if context.worst else bayes_remap(context, noise)
    return None if remap is None else np.asarray(noise @ remap)


def bayes_remap(context: TableContext, noise: Array) -> Array:
    """For each noisy value (Z, Y) the column of least expected loss given it, as a 0/1 matrix; the first of several."""
    assert context.prior is not None
    losses = noise.T @ (context.prior[:, None] * context.cost)
    # ties are decided by position, not by the last bit of a sum
    ties = losses <= losses.min(axis=1, keepdims=True) + 1e-13 * np.max(np.abs(losses), axis=1, keepdims=True)
    chosen: Array = np.eye(context.cost.shape[1])[np.argmax(ties, axis=1)]
    return chosen


def worst_case_remap(context: TableContext, noise: Array) -> Array | None:
    """The random remap (Z, Y) with the least largest loss over the rows; None if the program is too large."""
    values, (inputs, outputs) = noise.shape[1], context.cost.shape
    if inputs * values * outputs > _LARGEST:
        return None
    losses = (noise[:, :, None] * context.cost[:, None, :]).reshape(inputs, -1)
    whole = np.hstack((np.kron(np.eye(values), np.ones((1, outputs))), np.zeros((values, 1))))
    found = linear_program(
        np.append(np.zeros(values * outputs), 1.0),
        (np.hstack((losses, -np.ones((inputs, 1)))), np.zeros(inputs)),
        (whole, np.ones(values)),
        low=np.append(np.zeros(values * outputs), -np.inf),
    )
    if found is None:
        return None
    remap: Array = np.maximum(found.solution[:-1], 0.0).reshape(values, outputs)
    remap /= remap.sum(axis=1, keepdims=True)
    return remap


# --- noise of known laws --------------------------------------------------------------------------


def laplace_cells(values: Array, bounds: Array, rate: float) -> Array:
    """Pr(a value plus Laplace noise lies between two bounds), for values (X,) and bounds (Z - 1,): (X, Z).

    The noise has density proportional to e^(-rate |t|); tails are computed without cancellation.
    """
    edges = np.concatenate(([-np.inf], bounds, [np.inf]))
    low, high = rate * (edges[None, :-1] - values[:, None]), rate * (edges[None, 1:] - values[:, None])
    # cells on one side of the value: mirror to the right, then e^-near (1 - e^-(width)) / 2
    near = np.where(low >= 0, low, -high)
    one_side = 0.5 * np.exp(-np.maximum(near, 0.0)) * -np.expm1(-(high - low))
    around = 1 - 0.5 * np.exp(np.minimum(low, 0.0)) - 0.5 * np.exp(-np.maximum(high, 0.0))
    return np.asarray(np.where((low < 0) & (high > 0), around, one_side))


def laplace_candidates(context: TableContext) -> Iterator[Candidate]:
    """Laplace noise on each coordinate, rounded to the nearest column (notes/rounded-laplace.md).

    One, where rows and columns are numbers and the columns fill a grid.
    """
    points, grid, rate = context.points, context.grid, context.rate(1)
    if points is None or grid is None or rate is None or len(points[0]) != len(grid.axes):
        return
    values = np.array([[float(v) for v in point] for point in points])
    table = grid.gather([laplace_cells(values[:, i], middles(axis), rate) for i, axis in enumerate(grid.axes)])
    several = len(grid.axes) > 1
    name = "Laplace noise on each coordinate, rounded" if several else "Laplace noise, rounded"
    where = " on each coordinate" if several else ""
    text = f"Laplace noise of scale {shown(1 / rate)}{where}, rounded to the nearest answer"
    yield Candidate(name, table, text, "rounded-laplace")


HULL_LIMIT = 2**14
"""Points of the largest grid that noise is compared on."""


def geometric_table(values: Sequence[Fraction], grid: Sequence[Fraction], decay: float) -> Array:
    """Pr(grid value | value) of geometric noise on an even grid, what is beyond its ends added to them (X, Z).

    The noise is k steps with probability (1 - decay) / (1 + decay) decay^|k|; values are whole steps from the grid.
    """
    if len(grid) == 1:
        return np.ones((len(values), 1))
    steps = steps_between(values, grid)
    powers = decay ** np.abs(steps)
    table = powers * (1 - decay) / (1 + decay)
    # Pr(k or fewer) for k <= 0, its complement for k > 0; and the mirror image
    for end, sign in ((0, 1), (-1, -1)):
        k = sign * steps[:, end]
        beyond = decay ** np.abs(np.where(k <= 0, k, k + 1)) / (1 + decay)
        table[:, end] = np.where(k <= 0, beyond, 1 - beyond)
    return np.asarray(table)


@dataclass(frozen=True, slots=True)
class GeometricNoise:
    """Geometric noise calibrated to a context: for each coordinate its step and the decay a step."""

    points: Coordinates
    steps: tuple[Fraction, ...]
    rate: float

    @classmethod
    def of(cls, context: TableContext) -> GeometricNoise | None:
        """The least noise on the even grid of the rows that meets the requirement; None where there is no such grid."""
        points, rate = context.points, context.rate(1)
        if points is None or rate is None:
            return None
        steps = [step(axis) for axis in zip(*points, strict=True)]
        known = tuple(s for s in steps if s is not None)
        return cls(points, known, rate) if len(known) == len(steps) else None

    @property
    def decays(self) -> tuple[float, ...]:
        """For each coordinate the ratio of probabilities one step apart."""
        return tuple(exp(-self.rate * float(s)) for s in self.steps)

    def table(self, grids: Sequence[Sequence[Fraction]]) -> list[Array]:
        """For each coordinate its truncated law (X, Z)."""
        axes = zip(*self.points, strict=True)
        return [geometric_table(axis, grid, decay) for axis, grid, decay in zip(axes, grids, self.decays, strict=True)]

    def hull(self) -> Array | None:
        """The law on the smallest grid that holds all rows (X, Z), last coordinate fastest; None where it is too large.

        That is where the rows lie far apart for the step that holds them all.
        """
        axes = list(zip(*self.points, strict=True))
        if prod((max(a) - min(a)) / s + 1 for a, s in zip(axes, self.steps, strict=True)) > HULL_LIMIT:
            return None
        grids = [even_grid(min(a), max(a), s, a[0]) for a, s in zip(axes, self.steps, strict=True)]
        result = np.ones((len(self.points), 1))
        for factor in self.table(grids):
            result = (result[:, :, None] * factor[:, None, :]).reshape(len(self.points), -1)
        return result

    def describe(self) -> str:
        """What is drawn, in words."""
        noise = [decay(self.rate * float(s), "|k|") for s in self.steps]
        if len(set(noise)) > 1:
            return "noise of k steps on each coordinate with probabilities proportional to " + " and ".join(noise)
        where = "" if len(noise) == 1 else " on each coordinate"
        return f"noise of k steps{where} with probability proportional to {noise[0]}"


def geometric_candidates(context: TableContext) -> Iterator[Candidate]:
    """Geometric noise on the even grid of the rows, truncated (notes/truncated-geometric.md), and with a remap.

    Rows of several coordinates get independent noise on each. The raw mechanism needs columns that hold the grid; with
    the best remap any columns will do.
    """
    noise = GeometricNoise.of(context)
    if noise is None:
        return
    raw, text = _raw(context, noise), f"{noise.describe()}, truncated at both ends"
    if raw is not None:
        yield Candidate("truncated geometric", raw, text, "truncated-geometric")
    hull = noise.hull()
    remapped = None if hull is None else best_remap(context, hull)
    if remapped is not None:
        text += ", then the best guess for this loss"
        yield Candidate("truncated geometric, remapped", remapped, text, "bayes-remap")


def _raw(context: TableContext, noise: GeometricNoise) -> Array | None:
    """The table (X, Y) over the columns; None if the grid of the noise leaves them."""
    columns, factors = context.grid, []
    if columns is None or len(columns.axes) != len(noise.steps):
        return None
    if any((a[-1] - a[0]) // s > len(a) for a, s in zip(columns.axes, noise.steps, strict=True)):
        return None  # the grid has more points than there are columns
    ends = zip(columns.axes, noise.steps, noise.points[0], strict=True)
    grids = [even_grid(axis[0], axis[-1], width, through) for axis, width, through in ends]
    if not all(set(grid) <= set(axis) and grid for grid, axis in zip(grids, columns.axes, strict=True)):
        return None
    for axis, grid, law in zip(columns.axes, grids, noise.table(grids), strict=True):
        spread = np.zeros((len(law), len(axis)))
        spread[:, [axis.index(g) for g in grid]] = law
        factors.append(spread)
    return columns.gather(factors)


_MOST_STAIRS = 48
"""How many widths of the upper stair are tried at most."""


@dataclass(frozen=True, slots=True)
class StaircaseNoise:
    """Noise on the integers that falls in stairs of `period` steps: `upper` of them high, the others e^-epsilon of it.

    Pr(k) = top for |k| < upper, top e^-epsilon for upper <= |k| < period, and e^-epsilon of it each period farther on.
    Source: Geng & Viswanath 2014 (sections 2 and 6), with the discrete law.
    """

    period: int
    upper: int
    epsilon: float

    @property
    def top(self) -> float:
        """The probability of no noise."""
        drop = exp(-self.epsilon)
        return (1 - drop) / (2 * self.upper + 2 * drop * (self.period - self.upper) - (1 - drop))

    def law(self, steps: NDArray[np.intp]) -> Array:
        """Pr(k) for whole numbers k."""
        blocks, within = np.divmod(np.abs(steps), self.period)
        return np.asarray(self.top * np.exp(-self.epsilon * (blocks + (within >= self.upper))))

    def beyond(self, steps: NDArray[np.intp]) -> Array:
        """Pr(noise >= k)."""
        blocks, within = np.divmod(np.where(steps > 0, steps, 1 - steps), self.period)
        drop = exp(-self.epsilon)
        block = self.upper + drop * (self.period - self.upper)
        left = np.maximum(self.upper - within, 0) + drop * (self.period - np.maximum(within, self.upper))
        tail = self.top * drop**blocks * (left + block * drop / (1 - drop))
        return np.asarray(np.where(steps > 0, tail, 1 - tail))


def staircase_table(values: Sequence[Fraction], grid: Sequence[Fraction], noise: StaircaseNoise) -> Array:
    """Pr(grid value | value) of staircase noise on an even grid, what is beyond its ends added to them (X, Y)."""
    steps = steps_between(values, grid)
    table = noise.law(steps)
    table[:, 0], table[:, -1] = noise.beyond(-steps[:, 0]), noise.beyond(steps[:, -1])
    return table


def staircase_candidates(context: TableContext) -> Iterator[Candidate]:
    """Staircase noise on the grid of the columns, with the best upper stair (notes/staircase.md).

    It applies in one dimension, to neighbours that are all at one distance and some of them several steps apart: with
    one step between neighbours it is the geometric mechanism.
    """
    points, outputs = context.points, coordinates(context.columns)
    if points is None or outputs is None or len(points[0]) != 1 or len(outputs[0]) != 1:
        return
    values, grid = [p[0] for p in points], [p[0] for p in outputs]
    width, pairs = step(grid), context.neighbours.pairs
    if width is None or not pairs.any() or np.ptp(context.neighbours.distances[pairs]) > 0:
        return
    even = even_grid(min(grid), max(grid), width, grid[0])
    if len(even) != len(grid) or any((v - grid[0]) % width for v in values):
        return
    period = round(float(np.max(lengths(points, 1)[pairs])) / float(width))
    if period < 2:
        return
    epsilon = float(context.epsilon) * context.neighbours.least
    stairs = np.unique(np.linspace(1, period, min(period, _MOST_STAIRS)).round().astype(int))
    order = [even.index(g) for g in grid]
    tables = {
        int(upper): staircase_table(values, even, StaircaseNoise(period, int(upper), epsilon))[:, order]
        for upper in stairs
    }
    best = min(tables, key=lambda upper: graded(context.loss(tables[upper])))
    text = (
        f"noise in stairs of {period} steps, the upper {best} of them {shown(exp(epsilon))} times as likely as the "
        "others, truncated at both ends"
    )
    yield Candidate("staircase mechanism", tables[best], text, "staircase")


_NEGLIGIBLE = 45.0
"""Stretches of an edge where the density is e^-45 of its largest on the edge are left out."""
_PANELS, _NODES = 6, 16
_PARTS, _BORDER = 3, 2
"""Before the best guess a noisy place is known to a third of a cell, and up to two cells beyond the grid."""
_MOST_CELLS = 400_000


def edge_integrals(distance: Array, low: Array, high: Array) -> Array:
    """1/(2 pi) times the integral of (1 + r) e^-r over the angle that a stretch of a line is seen under, signed.

    The line is `distance` >= 0 away, the stretch from `low` to `high` along it, measured from its nearest point; r is
    the distance of the point on the line. With position = distance * sinh(s) the integrand is smooth at the scale of
    one for every distance, so that one rule serves all.
    """
    near = np.clip(0.0, low, high)
    closest = np.hypot(distance, near)
    reach = np.sqrt(np.maximum((closest + _NEGLIGIBLE) ** 2 - distance**2, 0.0))
    h = np.maximum(distance, 1e-300)
    first, last = np.arcsinh(np.clip(low, -reach, reach) / h), np.arcsinh(np.clip(high, -reach, reach) / h)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    total = np.zeros(np.broadcast(distance, low, high).shape)
    width = (last - first) / _PANELS
    for panel in range(_PANELS):
        for node, weight in zip(nodes, weights, strict=True):
            cosine = np.cosh(first + width * (panel + (node + 1) / 2))
            r = distance * cosine
            total += weight * (1 + r) * np.exp(-r) / cosine
    return np.asarray(np.where(distance > 0, total * width / (4 * np.pi), 0.0))


def planar_cells(points: Array, bounds: tuple[Array, Array], rate: float) -> Array:
    """Pr(a point plus planar Laplace noise lies in a rectangle) for points (X, 2): (X, columns, rows of rectangles).

    The noise has density rate^2 / (2 pi) e^(-rate |v|); rectangles are cut by the `bounds` on both axes, the outer ones
    without end. In polar coordinates about the point the integral over the radius is elementary, and its complement
    (1 + r) e^-r on the four edges keeps full precision in the tails.
    """
    edges = [rate * (np.concatenate(([-np.inf], b, [np.inf])) - points[:, i, None]) for i, b in enumerate(bounds)]
    inside = [(np.sign(e[:, 1:]) - np.sign(e[:, :-1])) / 2 for e in edges]
    mass = inside[0][:, :, None] * inside[1][:, None, :]
    for axis in (0, 1):
        lines, across = edges[axis][:, 1:-1], edges[1 - axis]
        shape = (len(points), lines.shape[1], across.shape[1] - 1)
        away = np.broadcast_to(lines[:, :, None], shape)
        stretch = [np.broadcast_to(part[:, None, :], shape) for part in (across[:, :-1], across[:, 1:])]
        flux = np.sign(away) * edge_integrals(np.abs(away), stretch[0], stretch[1])
        padded = np.pad(flux, ((0, 0), (1, 1), (0, 0)))
        loss = padded[:, 1:] - padded[:, :-1]
        mass -= loss if axis == 0 else loss.transpose(0, 2, 1)
    return np.asarray(np.maximum(mass, 0.0))


def finer(axis: Sequence[Fraction], parts: int, border: int) -> Array:
    """Bounds that cut each cell of an axis into parts, and as many cells beyond each end as `border` says."""
    values = np.array([float(v) for v in axis])
    ends = values[1] - values[0], values[-1] - values[-2]
    beyond = np.arange(1, border + 2)
    wide = np.concatenate((values[0] - ends[0] * beyond[::-1], values, values[-1] + ends[1] * beyond))
    bounds = (wide[1:] + wide[:-1]) / 2
    cuts = bounds[:-1, None] + np.diff(bounds)[:, None] * np.arange(parts) / parts
    return np.append(cuts.ravel(), bounds[-1])


def planar_candidates(context: TableContext) -> Iterator[Candidate]:
    """Planar Laplace noise, rounded to the nearest column; and with the best guess for prior and loss instead.

    Both, where rows are points of the plane and the columns fill a grid in it. The guess is from the noisy place, known
    more finely than to the nearest column (notes/planar-laplace.md).
    """
    points, grid, rate = context.points, context.grid, context.rate(2)
    if points is None or grid is None or rate is None or len(points[0]) != 2 or len(grid.axes) != 2:
        return
    at = np.array([[float(v) for v in point] for point in points])
    cells = planar_cells(at, (middles(grid.axes[0]), middles(grid.axes[1])), rate)
    places = np.array(grid.places)
    noise = f"planar Laplace noise, {shown(2 / rate)} away on average"
    raw = np.asarray(cells[:, places[:, 0], places[:, 1]])
    yield Candidate("planar Laplace", raw, f"{noise}, rounded to the nearest point", "planar-laplace")
    remapped = best_remap(context, _fine(at, grid, rate))
    if remapped is not None:
        text = f"{noise}, then the best guess for this loss"
        yield Candidate("planar Laplace, remapped", remapped, text, "planar-laplace")


def _fine(points: Array, grid: ProductGrid, rate: float) -> Array:
    """The law of the noisy place on a finer and wider grid (X, Z); on the grid itself where that is too large."""
    sizes = [len(axis) for axis in grid.axes]
    cells = len(points) * prod((size + 2 * _BORDER) * _PARTS for size in sizes)
    refine = min(sizes) > 1 and cells <= _MOST_CELLS
    bounds = [finer(axis, _PARTS, _BORDER) if refine else middles(axis) for axis in grid.axes]
    return planar_cells(points, (bounds[0], bounds[1]), rate).reshape(len(points), -1)
