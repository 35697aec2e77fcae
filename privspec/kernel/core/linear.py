"""Additive noise on linear answers: the problem, and the mechanism that is executed, as they are read.

z = B u + noise is drawn for the base vector u, in which every input stands on its grid; what is released is
R z + offset, or T (R z) + offset where R gives estimates of u, rounded to a grid. Whole numbers are times a unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

from flint import fmpz_mat

from privspec.kernel.core.problem import Data, Frame
from privspec.kernel.core.reading import ENTRIES, Item

FAMILIES = {"gaussian": ("gaussian",), "laplace": ("laplace", "geometric"), "mixed": ("knorm",)}
"""What a mechanism of each family may be called in a line that names the families allowed."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Whole numbers times a unit."""

    whole: fmpz_mat
    unit: Fraction

    def __matmul__(self, other: Matrix) -> Matrix:
        return Matrix(self.whole * other.whole, self.unit * other.unit)

    @property
    def rows(self) -> list[list[int]]:
        """The whole numbers, row by row."""
        width, flat = self.whole.ncols(), list(map(int, self.whole.entries()))
        return [flat[i * width : (i + 1) * width] for i in range(self.whole.nrows())]

    def some(self, rows: list[int]) -> Matrix:
        """Some of the rows."""
        listed, width = self.rows, self.whole.ncols()
        return Matrix(fmpz_mat(len(rows), width, [v for r in rows for v in listed[r]]), self.unit)


def read_lines(item: Item, rows: int, columns: int) -> tuple[list[dict[int, int]], Fraction]:
    """The entries that are not 0 of a matrix of a known shape, row by row, and the value of one step."""
    if not isinstance(item.value, dict) or "form" not in item.value:
        flat, unit = item.array(rows, columns)
        lines = (flat[i * columns : (i + 1) * columns] for i in range(rows))
        return [{j: v for j, v in enumerate(line) if v} for line in lines], unit
    item.form("sparse")
    _, shape, places, values = item.fields("form", "shape", "places", "values")
    shape.same([rows, columns])
    (count,) = places.extents(1)
    (at, one), (entries, unit) = places.array(count), values.array(count)
    if one != 1 or any(a >= b for a, b in zip([-1, *at], [*at, rows * columns], strict=True)):
        raise places.wrong("are not places in order")
    found: list[dict[int, int]] = [{} for _ in range(rows)]
    for place, value in zip(at, entries, strict=True):
        found[place // columns][place % columns] = value
    return found, unit


def read_matrix(item: Item, rows: int, columns: int) -> Matrix:
    """A matrix of a known shape, listed or sparse."""
    if rows * columns > ENTRIES:
        raise item.wrong("is too large")
    if not isinstance(item.value, dict) or "form" not in item.value:
        return Matrix(*item.matrix(rows, columns))
    lines, unit = read_lines(item, rows, columns)
    whole = fmpz_mat(rows, columns)
    for i, line in enumerate(lines):
        for j, value in line.items():
            whole[i, j] = value
    return Matrix(whole, unit)


# --- the problem --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Held:
    """An input: the coordinates `start` to `stop`; `ball`: radius, dimension and norm; `columns` of a table."""

    name: str
    start: int
    stop: int
    cells: bool
    shape: tuple[int, ...]
    lower: Fraction | None
    upper: Fraction | None
    ball: tuple[Fraction, int, int] | None
    columns: tuple[tuple[str, tuple[str, ...], int | None, int | None], ...]
    records: int | None
    drops: bool
    index: str | None

    @property
    def width(self) -> Fraction:
        """What a share of the grid is taken of: the radius, the distance of the ends, or one."""
        if self.ball:
            return self.ball[0]
        return Fraction(1) if self.lower is None or self.upper is None else self.upper - self.lower


@dataclass(frozen=True, slots=True)
class Part:
    """In runs of `length` coordinates from `start` to `stop`, one a unit, a unit moves numbers or vectors.

    `shape` "box": each coordinate by at most `amount`; "l1", "l2": every `dimension` coordinates in turn by a vector
    of that norm at most `amount`.
    """

    start: int
    stop: int
    length: int
    shape: str
    dimension: int
    amount: Fraction


@dataclass(frozen=True, slots=True)
class Units:
    """Up to `count` units change at once, each of them in all `parts` together; parts have the same number of runs."""

    FORM = "units"

    parts: tuple[Part, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Cells:
    """Up to `count` records of a table with the cells `start` to `stop` come or go or, `moving`, change their cells."""

    FORM = "cells"

    start: int
    stop: int
    count: int
    moving: bool


@dataclass(frozen=True, slots=True)
class Released:
    """An output: the numbers `start` to `stop` of what is released."""

    name: str
    start: int
    stop: int
    shape: tuple[int, ...]
    defined: bool


@dataclass(frozen=True, slots=True)
class Measured:
    """Error terms, each as {output: coefficient}, and the weights of their squares."""

    terms: tuple[dict[int, Fraction], ...]
    weights: tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class Linear:
    """The block of a problem: see `privspec.problem.linear`."""

    held: tuple[Held, ...]
    released: tuple[Released, ...]
    target: Matrix
    offset: tuple[Fraction, ...]
    constants: tuple[tuple[str, tuple[int, ...], Matrix], ...]
    errors: Measured
    worst: bool
    loss: str
    accuracy: tuple[tuple[Measured, Fraction, int, str], ...]
    differences: tuple[tuple[Units | Cells, ...], ...]
    sites: tuple[tuple[str, Matrix], ...] | None
    families: tuple[str, ...]

    @property
    def size(self) -> int:
        """Numbers released."""
        return self.released[-1].stop

    @property
    def inputs(self) -> int:
        """Coordinates of the base vector."""
        return self.held[-1].stop

    def rows_of(self, names: tuple[str, ...]) -> list[int]:
        """The released numbers of some outputs."""
        return [i for one in self.released if one.name in names for i in range(one.start, one.stop)]


def read_linear(item: Item, frame: Frame) -> Linear:
    """The block of a problem.

    Raises: Refused.
    """
    (_, held, released, target, offset, constants, errors, worst, loss, accuracy, differences, sites, families) = (
        item.fields(
            *("form", "held", "released", "target", "offset", "constants", "errors", "worst", "loss", "accuracy"),
            *("differences", "sites", "families"),
        )
    )
    inputs = tuple(read_held(one, data) for one, data in zip(held.items(len(frame.data)), frame.data, strict=True))
    outputs = tuple(map(_released, released.items()))
    if not outputs or not inputs or len({one.name for one in outputs}) < len(outputs):
        raise item.wrong("has no inputs or no outputs, or names one twice")
    for row in ([(h.name, h.start, h.stop) for h in inputs], [(r.name, r.start, r.stop) for r in outputs]):
        if [start for _, start, _ in row] != [0, *(stop for _, _, stop in row[:-1])]:
            raise item.wrong("does not put each of its parts where the one before ends")
    n, m = inputs[-1].stop, outputs[-1].stop
    pairs = zip(differences.items(len(frame.obligations)), frame.obligations, strict=True)
    limits = (one.fields("errors", "bound", "line", "text") for one in accuracy.items())
    places = None if sites.absent else [one.fields("name", "map") for one in sites.items()]
    return Linear(
        inputs,
        outputs,
        read_matrix(target, m, n),
        _exact(offset, m),
        tuple(_constant(one, m) for one in constants.items()),
        _measured(errors, m),
        worst.flag(),
        loss.text(),
        tuple((_measured(e, m), b.exact(0), line.integer(), text.text()) for e, b, line, text in limits),
        tuple(
            tuple(read_difference(one, [h for h in inputs if h.name in o.wrt]) for one in some.items())
            for some, o in pairs
        ),
        None
        if places is None
        else tuple((name.text(), read_matrix(map_, m, map_.extents(2)[1])) for name, map_ in places),
        families.texts(),
    )


def _exact(item: Item, size: int) -> tuple[Fraction, ...]:
    entries, unit = item.array(size)
    return tuple(entry * unit for entry in entries)


def _constant(item: Item, size: int) -> tuple[str, tuple[int, ...], Matrix]:
    name, shape, map_ = item.fields("name", "shape", "map")
    extents = tuple(one.integer(1, ENTRIES) for one in shape.items())
    return name.text(), extents, read_matrix(map_, size, prod(extents))


def _measured(item: Item, size: int) -> Measured:
    rows, weights = item.fields("rows", "weights")
    found = _exact(weights, *weights.extents(1))
    if min(found, default=Fraction(0)) <= 0:
        raise weights.wrong("are not positive")
    lines, unit = read_lines(rows, len(found), size)
    return Measured(tuple({j: v * unit for j, v in line.items()} for line in lines), found)


def read_held(item: Item, data: Data) -> Held:
    """An input, of which the frame says who holds it and what becomes of cells that do not fit."""
    name, start, stop, layout, shape, lower, upper, ball, columns, records = item.fields(
        "name", "start", "stop", "layout", "shape", "lower", "upper", "ball", "columns", "records"
    )
    name.same(data.name)
    layout.one_of("entries", "cells")
    radius = None
    if not ball.absent:
        size, dimension, norm = ball.fields("radius", "dimension", "norm")
        radius = size.exact(0), dimension.integer(1), norm.integer(1, 2)
    return Held(
        data.name, start.integer(), stop.integer(), layout.value == "cells", tuple(e.integer() for e in shape.items()),
        None if lower.absent else lower.exact(), None if upper.absent else upper.exact(), radius,
        tuple(map(_column, columns.items())), None if records.absent else records.integer(), data.rule == "drop",
        data.party,
    )  # fmt: skip


def _column(item: Item) -> tuple[str, tuple[str, ...], int | None, int | None]:
    """An attribute of a table with its values in order, or with the least and the largest of whole numbers."""
    name, values, lower, upper = item.fields("name", "values", "lower", "upper")
    if lower.absent and upper.absent:
        return name.text(), values.texts(), None, None
    low = lower.integer(None)
    return name.text(), tuple(one.text() for one in values.items(0)), low, upper.integer(low, low + ENTRIES)


def _released(item: Item) -> Released:
    name, start, stop, shape, defined = item.fields("name", "start", "stop", "shape", "defined")
    extents = tuple(extent.integer() for extent in shape.items())
    if prod(extents) != stop.integer() - start.integer():
        raise shape.wrong("does not fit")
    return Released(name.text(), start.integer(), stop.integer(), extents, defined.flag())


def read_difference(item: Item, held: list[Held]) -> Units | Cells:
    """What one unit can change in the inputs of an obligation; records are dropped only where they come and go."""
    if item.form("units", "cells") == "cells":
        _, start, stop, count, moving = item.fields("form", "start", "stop", "count", "moving")
        touched = [one for one in held if one.cells and [one.start, one.stop] == [start.integer(), stop.integer()]]
        found: Units | Cells = Cells(start.integer(), stop.integer(), count.integer(1), moving.flag())
    else:
        _, parts, count = item.fields("form", "parts", "count")
        read = tuple(map(_part, parts.items()))
        touched = [one for part in read for one in held if (one.start, one.stop) == (part.start, part.stop)]
        found = Units(read, count.integer(1))
    if not touched or len(touched) != (len(found.parts) if isinstance(found, Units) else 1):
        raise item.wrong("does not change inputs of its line, each of them as a whole")
    if any(one.drops for one in touched) and (isinstance(found, Units) or found.moving):
        raise item.wrong("replaces records of a table whose rule leaves records out")
    return found


def _part(item: Item) -> Part:
    start, stop, length, shape, dimension, amount = item.fields(
        "start", "stop", "length", "shape", "dimension", "amount"
    )
    shape.one_of("box", "l1", "l2")
    found = Part(
        start.integer(), stop.integer(), length.integer(1), shape.text(), dimension.integer(1), amount.exact(0)
    )
    if (found.stop - found.start) % found.length or found.length % found.dimension:
        raise item.wrong("is not made of whole runs")
    return found


# --- what is executed ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Noise:
    """Independent normal noise of `scales[0]` on every answer, Laplace noise of one scale each, or a K-norm vector."""

    shape: str
    scales: tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class Release:
    """z = strategy u + noise, on the lattice `grid` unless `round_outputs`; then `reconstruction` of outputs or inputs.

    `steps`: the grid of each input, as a share of its width (counts: 1).
    """

    problem: Linear
    steps: tuple[Fraction, ...]
    strategy: Matrix
    noise: Noise
    grid: Fraction
    of_inputs: bool
    reconstruction: Matrix
    output_grid: Fraction
    round_outputs: bool


NOISES = {
    "gaussian": ("gaussian", "standard_deviation"),
    "laplace": ("laplace", "scale"),
    "mixed": ("knorm-l2", "scale"),
}


def read_release(family: Item, item: Item, problem: Linear, frame: Frame) -> Release:
    """The mechanism that is executed.

    Raises: Refused for one that is not of a family that the problem allows.
    """
    inputs, strategy, noise, grid, reconstruction, output_grid, rounding = item.fields(
        "inputs", "strategy", "noise", "grid", "reconstruction", "output_grid", "rounding"
    )
    family.one_of(*FAMILIES)
    if problem.families and not set(FAMILIES[family.text()]) & set(problem.families):
        raise family.wrong("is not a family of noise that the problem allows")
    rows, _ = strategy.extents(2)
    shape, scale = noise.fields("shape", NOISES[family.text()][1])
    shape.same(NOISES[family.text()][0])
    scales = [one.exact() for one in (scale.items(rows) if family.text() == "laplace" else [scale])]
    of, matrix = reconstruction.fields("of", "matrix")
    of.one_of("inputs", "outputs")
    rounding.one_of("strategy", "outputs")
    of_inputs, round_outputs = of.value == "inputs", rounding.value == "outputs"
    steps = tuple(_step(*pair) for pair in zip(inputs.items(len(problem.held)), problem.held, strict=True))
    found = Release(
        problem, steps, read_matrix(strategy, rows, problem.inputs), Noise(shape.text(), tuple(scales)), grid.exact(),
        of_inputs, read_matrix(matrix, problem.inputs if of_inputs else problem.size, rows), output_grid.exact(),
        round_outputs,
    )  # fmt: skip
    if min(found.grid, found.output_grid, *scales) <= 0 or rows < 1:
        raise item.wrong("has a grid or a scale that is not positive, or no answers")
    local = frame.trust == "nobody"
    if round_outputs and (of_inputs or local or shape.value != "gaussian"):
        raise rounding.wrong("is for Gaussian noise on outputs at a curator")
    if frame.trust == "secure_sum" or (local and family.value == "mixed"):
        raise family.wrong("is not a mechanism for this trust")
    if local and any(sum(map(bool, row)) > 1 for row in found.strategy.rows):
        raise strategy.wrong("sends a message that depends on more than one number of one party")
    return found


def _step(item: Item, held: Held) -> Fraction:
    """The grid of an input: one over a whole number, so that both ends of an interval lie on it; counts are whole."""
    name, grid = item.fields("name", "grid")
    name.same(held.name)
    step = grid.exact()
    if step <= 0 or step.numerator != 1 or (held.cells and step != 1):
        raise grid.wrong("is not one over a whole number, or not the one of counts")
    return step
