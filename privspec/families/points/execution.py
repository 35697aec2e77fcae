"""A plan about real points as a mechanism that can be run: exact points, exact noise, rounded once they are added."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, isfinite, isqrt, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privspec.execute.data import located
from privspec.execute.family import (
    Circumstances,
    Drawn,
    Plan,
    Secret,
    Simulation,
    readable_plan,
    refuse_long_simulation,
    refuse_unknown,
)
from privspec.execute.keeper import STRICT_RULE, given_for, refuse, refuse_strictly
from privspec.execute.reading import Declared, Fields, batches, number, read_entries
from privspec.families.points.messages import Reports
from privspec.kernel.core.reading import Item
from privspec.kernel.points import Error, PointBlock, Points, moment, read_points
from privspec.noise.samplers import Randomness, SimulationRandomness
from privspec.noise.vectors import VECTORS, approximate

if TYPE_CHECKING:
    from privspec.model.graph import Model

RULE = (
    "each point by itself: a number outside its limits moves to the nearer one, a point outside a ball is drawn in to "
    "it, and what is missing or cannot be read becomes the number nearest to zero; nothing is rounded before the noise"
)
FINE = 64
"""Binary digits to which a point outside a ball is drawn in."""


def points_of_plan(plan: Plan) -> Points:
    """Raises: UsageError PS0820 if the plan is not one that this version can execute."""
    with readable_plan():
        (block,) = plan["problem"]["blocks"]
        return read_points(Item(block, "block"), Item(plan["mechanism"], "mechanism"))


def inside(block: PointBlock, point: Sequence[float]) -> list[Fraction]:
    """The point itself where it lies in the domain, exactly; else one that does."""
    low, high = block.lower, block.upper
    nearest = max(low or Fraction(0), Fraction(0)) if high is None else min(max(low or Fraction(0), Fraction(0)), high)
    found = []
    for value in point:
        exact = nearest
        if isfinite(value):
            exact = Fraction(value)
        elif value in (inf, -inf):
            end = high if value > 0 else low
            exact = nearest if end is None else end
        exact = exact if low is None else max(exact, low)
        found.append(exact if high is None else min(exact, high))
    return found if block.radius is None else _drawn_in(found, block.radius, block.ball == "l2")


def _drawn_in(point: list[Fraction], radius: Fraction, euclidean: bool) -> list[Fraction]:
    """A point outside a ball, shortened to 2^-64 of its radius within it."""
    size = sum(value * value for value in point) if euclidean else sum(map(abs, point))
    if size <= (radius * radius if euclidean else radius):
        return point
    share = size / radius**2 if euclidean else (size / radius) ** 2
    # 2^64 radius / length, rounded down
    times = isqrt((share.denominator << 2 * FINE) // share.numerator)
    return [value * times / 2**FINE for value in point]


def moved(block: PointBlock, number: Fraction) -> Fraction:
    """A number of a report, or the end beyond which it lies."""
    above = number if block.least is None else max(number, block.least)
    return above if block.most is None else min(above, block.most)


def _outside(point: Sequence[float], placed: Sequence[Fraction]) -> bool:
    return any(not isfinite(value) or Fraction(value) != exact for value, exact in zip(point, placed, strict=True))


@dataclass(frozen=True, eq=False)
class PointMechanism(Reports):
    """Each point gets noise of its own; every record is one person's where points have no index."""

    points: Points
    trust: str

    @classmethod
    def of_plan(cls, plan: Plan) -> PointMechanism:
        return cls(points_of_plan(plan), str(plan["problem"]["trust"]["kind"]))

    @staticmethod
    def fit(model: Model, data: Mapping[str, Any], circumstances: Circumstances) -> None:
        from privspec.kernel.core.reading import read
        from privspec.problem.form import document
        from privspec.problem.points import block_of

        block = read(PointBlock, Item(document(block_of(model)), "block"))
        assert isinstance(block, PointBlock)
        read_points_of(block, data, circumstances)

    @property
    def held(self) -> PointBlock:
        return self.points.block

    def alone(self) -> PointMechanism:
        block = replace(self.points.block, count=1, shape=(1, *self.points.block.shape[1:]))
        return PointMechanism(replace(self.points, block=block), self.trust)

    def possible(self, report: Sequence[float]) -> bool:
        """Whether a report lies on the grid, or at an end."""
        block, ends = self.held, {None if end is None else float(end) for end in (self.held.least, self.held.most)}
        inside = all(moved(block, Fraction(value)) == value or value in ends for value in report)
        on_grid = (value in ends or (Fraction(value) / self.points.step).denominator == 1 for value in report)
        return inside and all(on_grid)

    def read(self, data: Mapping[str, Any], circumstances: Circumstances) -> Secret:
        """The points, as exact numbers within their domain.

        Raises: DataError PS0801 to PS0809.
        """
        block = self.points.block
        refuse_unknown(data, (block.source,))
        return PointSecret(self.points, read_points_of(block, data, circumstances), circumstances.strict)

    def simulate(self, asked: Simulation) -> NDArray[np.float64]:
        """Draws at the given data; at the point of the domain that is nearest to zero otherwise."""
        block = self.points.block
        data = asked.data
        if data is None:
            placed = [inside(block, [0.0] * block.size)] * block.count
        else:
            placed = [list(point) for point in read_points_of(block, data, Circumstances())]
        if asked.approximate:
            generator = np.random.default_rng(asked.seed)
            at = np.array(placed, dtype=np.float64)
            noise = approximate(self.points.norm, block.size, asked.repetitions * len(at), generator)
            spread = noise.reshape(asked.repetitions, len(at), block.size) * float(self.points.scale)
            ends = (
                -inf if block.least is None else float(block.least),
                inf if block.most is None else float(block.most),
            )
            return np.clip((at + spread).reshape(asked.repetitions, -1), *ends)
        count = asked.repetitions * len(placed) * block.size
        refuse_long_simulation(count, f"{count} exact draws", "take fewer")
        secret = PointSecret(self.points, placed, strict=False)
        randomness = SimulationRandomness(asked.seed)
        return np.array([secret.numbers(randomness).reshape(-1) for _ in range(asked.repetitions)])


def read_points_of(block: PointBlock, data: Mapping[str, Any], circumstances: Circumstances) -> list[list[Fraction]]:
    """Exact points within the domain; how they fit is told to the keeper.

    Raises: DataError PS0801 to PS0809.
    """
    source = located(block.source, given_for(block.source, data))
    keeper, name = circumstances.keeper, block.source
    plain, size = len(block.shape) == (block.party is not None), block.size
    ends = (None if one is None else float(one) for one in (block.lower, block.upper))
    low, high = ends
    fields = Fields(name, None if plain else size)
    fate = f"each becomes {'zero' if block.ball else 'the number nearest to zero'}"
    what = "in points outside the ball" if block.ball else ""
    columns = (None,) if block.party is not None else fields.columns
    fits = [keeper.fit(name, column, fate=fate, what=what, lower=low, upper=high) for column in columns]
    found: list[list[float]] = []
    if block.party is not None:
        declared = Declared(name, block.shape, block.party, told=fits[0].cell)
        values = read_entries(declared, source, header=circumstances.header)
        fits[0].rows += len(values)
        if block.ball is None:
            fits[0].numbers(values)
        found = np.asarray(values, dtype=np.float64).reshape(-1, size).tolist()
    else:
        for batch in batches(fields, source, header=circumstances.header):
            read = [_numbers(column, fit.cell) for column, fit in zip(batch, fits, strict=True)]
            for values, fit in zip(read, fits, strict=True):
                fit.rows += len(values)
                if block.ball is None:
                    fit.numbers(values)
            found += np.stack(read, axis=1).tolist()
            circumstances.progress("records read", len(found), None)
        if not found:
            refuse("PS0808", "there are no records", help="one record a row, below a line that names the columns")
    placed = [inside(block, point) for point in found]
    outside = [_outside(point, exact) for point, exact in zip(found, placed, strict=True)]
    if block.ball is not None:
        for fit in fits:
            fit.outside += sum(outside) * size // len(fits)
    if circumstances.strict and any(outside):
        refuse_strictly(name)
    return placed


def _numbers(column: Sequence[Any] | NDArray[Any], told: Callable[[Any], None]) -> NDArray[np.float64]:
    values = np.array([number(cell) for cell in column], dtype=np.float64)
    for place in np.flatnonzero(np.isnan(values)).tolist():
        told(column[place])
    return values


@dataclass(frozen=True, eq=False, slots=True)
class PointSecret(Secret):
    """The exact points."""

    points: Points
    placed: Sequence[Sequence[Fraction]]
    strict: bool

    @property
    def rules(self) -> tuple[str, ...]:
        return (STRICT_RULE,) if self.strict else (RULE,)

    def numbers(self, randomness: Randomness) -> NDArray[np.float64]:
        """The reports (points, size): exact until they are written as doubles."""
        points = self.points
        law, size, step = VECTORS[points.norm], points.block.size, points.step
        drawn = (law(size, points.scale, randomness).nearest(point, step) for point in self.placed)
        return np.array([[float(moved(points.block, step * one)) for one in point] for point in drawn])

    def draw(self, randomness: Randomness) -> Drawn:
        block, values = self.points.block, self.numbers(randomness)
        if block.party is not None:
            return Drawn({block.output: values.reshape(block.shape)}, str(self.points.step))
        if not block.shape:
            return Drawn({block.output: values[:, 0]}, str(self.points.step), reports=True)
        columns = {block.output: Fields(block.output, block.size).columns}
        shape = (len(values), *block.shape)
        return Drawn({block.output: values.reshape(shape)}, str(self.points.step), columns, reports=True)

    def deviations(self) -> Mapping[str, NDArray[np.float64]]:
        """That of each number: noise of a norm has numbers of one variance."""
        block = self.points.block
        squares = moment(self.points.norm, block.size, Error("l2", 2, Fraction(1)))
        if squares is None or block.party is None or block.moved:
            return {}
        each = float(self.points.scale) * sqrt(float(squares) / block.size)
        return {block.output: np.full(block.shape, float(f"{each:.6g}"))}
