"""Plans about points, and about the cells of a real number, as mechanisms that can be run; what one party sends.

Points and noise are exact, rounded once they are added; so are cells and their chances. Where each party reports its
own point or number, it sends that report, and the release is of all of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import chain, pairwise
from math import inf, isfinite, isqrt, prod, sqrt
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import UsageError
from privspec.core.matrices import ExactVector
from privspec.core.records import dataclass, replace
from privspec.execute import family
from privspec.execute.data import located
from privspec.execute.drawing import Labels, RowLaw, TableLaw, draw_each
from privspec.execute.family import BlockSecret, Drawn, LocalReports, RunContext, Simulation
from privspec.execute.keeper import Fit, given_for, refuse, refuse_strictly
from privspec.execute.reading import Declared, Fields, batches, number, read_entries
from privspec.kernel.core.problem import Data
from privspec.kernel.points import Error, PointBlock, Points, moment
from privspec.kernel.reports import CellBlock, Cells
from privspec.kernel.trust import NOBODY
from privspec.model.graph import Model
from privspec.model.values import show
from privspec.noise.samplers import Randomness, SimulationRandomness
from privspec.noise.vectors import VECTORS, approximate


class Reports(family.BlockMechanism[family.E, family.C]):
    """Independent reports, each of one party's or one record's own."""

    def alone(self) -> Self:
        """The same for one party."""
        executed: Any = self.executed
        block = replace(executed.block, count=1, shape=(1, *executed.block.shape[1:]))
        return replace(self, executed=replace(executed, block=block))

    @abstractmethod
    def possible(self, report: Any) -> bool:
        """Whether what was heard may be a report."""

    def by_party(self, number: int) -> Self:
        """The mechanism by which the party of a place reports: that of all, unless each has its own."""
        return self

    def said(self, own: family.Secret, randomness: Randomness) -> NDArray[Any]:
        """What a party says: a draw from its own secret, as texts."""
        report = own.draw(randomness).outputs[self.executed.block.output].reshape(-1)
        return np.array([repr(float(value)) for value in report], dtype=object)

    def heard(self, said: Sequence[Any]) -> Any:
        """What a message says.

        Raises: TypeError, ValueError for what nobody says.
        """
        return [float(str(value)) for value in said]

    def combined(self, reports: Sequence[Any] | NDArray[Any]) -> family.Drawn:
        """The release from the reports of all parties, or of all records, in order."""
        block, values = self.executed.block, np.array(reports, dtype=np.float64)
        if block.party is not None:
            return family.Drawn({block.output: values.reshape(block.shape)}, self.step)
        columns = {block.output: Fields(block.output, prod(block.shape)).columns} if block.shape else {}
        shape = len(values), *block.shape
        return family.Drawn({block.output: values.reshape(shape)}, self.step, columns, reports=True)

    @property
    def step(self) -> str | None:
        """The grid of all reports, if they lie on one."""
        return None

    @property
    def by_messages(self) -> bool:
        return self.trust.by_parties and self.executed.block.party is not None

    def of_party(self, party: str, keys: family.Keys | None = None) -> family.Mechanism:
        if keys is not None:
            _no_message(f"no message is masked under `{self.trust.written}`: leave out --key and --roster")
        return OwnReport(self.by_party(self.number(party)), party)

    def number(self, party: str) -> int:
        """The place of a party, from 0.

        Raises: UsageError PS0844 if there is none, or parties make no messages.
        """
        held = self.executed.block
        if held.party is None or not self.trust.alone:
            _no_message("one keeper sees all data, or each record is one person's, who runs the plan alone")
        if not party.isdecimal() or not 1 <= int(party) <= held.count:
            _no_message(f"there is no {held.party} {party}: they are numbered from 1 to {held.count}")
        return int(party) - 1

    def combine(self, digest: str, messages: Sequence[Mapping[str, Any]]) -> family.Drawn:
        held = self.executed.block

        def read(outputs: Mapping[str, Any]) -> tuple[int, Any]:
            (who,) = outputs[str(held.party)]
            number = self.number(str(who))
            return number, self.by_party(number).heard(outputs[family.MESSAGE])

        def flaw(number: int, said: Any) -> str:
            return "" if self.by_party(number).possible(said) else f"is no report of {held.party} {number + 1}"

        found = family.messages_by_party(digest, messages, str(held.party), read, flaw)
        family.refuse_missing(found, ((number, str(number + 1)) for number in range(held.count)), str(held.party))
        return self.combined([found[number] for number in range(held.count)])


class OfPlaces(Reports[family.E, family.C]):
    """Reports of places in a list, of which only counts matter."""

    def alone(self) -> Self:
        executed: Any = self.executed
        return replace(self, executed=replace(executed, block=replace(executed.block, count=1)))


class PlacesSecret(BlockSecret[family.M, family.C]):
    """The place of each party."""

    def approximate(self, asked: Simulation) -> NDArray[np.float64]:
        """Exact all the same: many reports are drawn together."""
        randomness = SimulationRandomness(asked.seed)
        return np.array([self.numbers(randomness) for _ in range(asked.repetitions)])


@dataclass(frozen=True, eq=False, slots=True)
class OwnReport(family.Mechanism):
    """The plan for one party."""

    whole: Reports[Any, Any]
    party: str

    @property
    def outputs(self) -> tuple[str, ...]:
        """Who it is from, and what it says."""
        return str(self.whole.executed.block.party), family.MESSAGE

    def read(self, data: Mapping[str, Any], circumstances: family.RunContext) -> family.Secret:
        """The party's own point.

        Raises: DataError.
        """
        own, held = self.whole.alone().read(data, circumstances), self.whole.executed.block

        def say(randomness: Randomness) -> Mapping[str, NDArray[Any]]:
            return {family.MESSAGE: self.whole.said(own, randomness)}

        return family.OwnMessage(str(held.party), self.party, say, own.rules)

    def simulate(self, asked: family.Simulation) -> NDArray[np.float64]:
        _no_message("a message is simulated as part of a run")


def _no_message(why: str) -> NoReturn:
    help_ = f"with `{NOBODY.written}` and points of an index set, as in x[person], every party sends its own report"
    raise UsageError.of("PS0844", f"this message cannot be made: {why}", help=help_)


# --- points and cells ---------------------------------------------------------------------------


RULE = (
    "each point by itself: a number outside its limits moves to the nearer one, a point outside a ball is drawn in to "
    "it, and what is missing or cannot be read becomes the number nearest to zero; nothing is rounded before the noise"
)
FINE = 64
"""Binary digits to which a point outside a ball is drawn in."""


class Interval(NamedTuple):
    """Where a number lies, and whose it is, as a block of points says it."""

    source: str
    party: str | None
    shape: tuple[int, ...]
    size: int
    lower: Fraction
    upper: Fraction
    radius: None = None
    ball: None = None


def within(value: Fraction, low: Fraction | None, high: Fraction | None) -> Fraction:
    """A number, or the end beyond which it lies."""
    above = value if low is None else max(value, low)
    return above if high is None else min(above, high)


def inside(block: PointBlock | Interval, point: Sequence[float]) -> list[Fraction]:
    """The point itself where it lies in the domain, exactly; else one that does."""
    low, high, found = block.lower, block.upper, []
    for value in point:
        end = {inf: high, -inf: low}.get(value)
        exact = Fraction(value) if isfinite(value) else end or Fraction(0)
        found.append(within(exact, low, high))
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
    return within(number, block.least, block.most)


def _outside(point: Sequence[float], placed: Sequence[Fraction]) -> bool:
    return any(not isfinite(value) or Fraction(value) != exact for value, exact in zip(point, placed, strict=True))


class PointMechanism(Reports[Points, list[list[Fraction]]]):
    """Each point gets noise of its own; every record is one person's where points have no index."""

    BLOCK = PointBlock

    @staticmethod
    def content(block: Any, _source: Data, data: Mapping[str, Any], circumstances: RunContext) -> list[list[Fraction]]:
        return read_points_of(block, data, circumstances)

    @property
    def step(self) -> str:
        return str(self.executed.step)

    @property
    def nothing(self) -> list[list[Fraction]]:
        """The point of the domain that is nearest to zero."""
        block = self.executed.block
        return [inside(block, [0.0] * block.size)] * block.count

    def possible(self, report: Sequence[float]) -> bool:
        """Whether a report lies on the grid, or at an end."""
        points, block = self.executed, self.executed.block
        if len(report) != block.size or not all(map(isfinite, report)):
            return False
        ends = {None if end is None else float(end) for end in (block.least, block.most)}
        inside = all(moved(block, Fraction(value)) == value or value in ends for value in report)
        on_grid = (value in ends or (Fraction(value) / points.step).denominator == 1 for value in report)
        return inside and all(on_grid)


def read_points_of(
    block: PointBlock | Interval, data: Mapping[str, Any], circumstances: RunContext
) -> list[list[Fraction]]:
    """Exact points within the domain; how they fit is told to the keeper.

    Raises: DataError PS0801 to PS0809.
    """
    source = located(block.source, given_for(block.source, data))
    keeper, name = circumstances.keeper, block.source
    plain, size = len(block.shape) == (block.party is not None), block.size
    low, high = (None if one is None else float(one) for one in (block.lower, block.upper))
    fields = Fields(name, None if plain else size)
    fate = f"each becomes {'zero' if block.ball else 'the number nearest to zero'}"
    what = "in points outside the ball" if block.ball else ""
    columns = (None,) if block.party is not None else fields.columns
    fits = [keeper.fit(name, column, fate=fate, what=what, lower=low, upper=high) for column in columns]
    found: list[list[float]] = []

    def tell(fit: Fit, values: NDArray[np.float64]) -> NDArray[np.float64]:
        fit.rows += len(values)
        if block.ball is None:
            fit.numbers(values)
        return values

    if block.party is not None:
        declared = Declared(name, block.shape, block.party, told=fits[0].cell)
        found = tell(fits[0], read_entries(declared, source, circumstances.texts)).reshape(-1, size).tolist()
    else:
        for batch in batches(fields, source, circumstances.texts):
            each = zip(batch, fits, strict=True)
            found += np.stack([tell(fit, _numbers(column, fit.cell)) for column, fit in each], axis=1).tolist()
            circumstances.progress("records read", len(found), None)
        if not found:
            refuse("PS0808", "there are no records", help="one record per row, below a line that names the columns")
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


class PointSecret(BlockSecret[PointMechanism, list[list[Fraction]]]):
    """The exact points, within their domain."""

    RULE = RULE

    @property
    def size(self) -> int:
        return len(self.content) * self.mechanism.executed.block.size

    def numbers(self, randomness: Randomness) -> NDArray[np.float64]:
        """The reports (points, size): exact until they are written as doubles."""
        points = self.mechanism.executed
        vectors = VECTORS[points.norm](len(self.content), points.block.size, points.scale, randomness)
        drawn = vectors.nearest(ExactVector.of(chain.from_iterable(self.content)), points.step)
        return np.array([[float(moved(points.block, points.step * one)) for one in point] for point in drawn])

    def approximate(self, asked: Simulation) -> NDArray[np.float64]:
        points, at = self.mechanism.executed, np.array(self.content, dtype=np.float64)
        block, generator = points.block, np.random.default_rng(asked.seed)
        noise = approximate(points.norm, block.size, asked.repetitions * len(at), generator)
        spread = noise.reshape(asked.repetitions, len(at), block.size) * float(points.scale)
        least, most = -inf if block.least is None else block.least, inf if block.most is None else block.most
        return np.clip((at + spread).reshape(asked.repetitions, -1), float(least), float(most))

    def draw(self, randomness: Randomness) -> Drawn:
        return self.mechanism.combined(self.numbers(randomness))

    def deviations(self) -> Mapping[str, NDArray[np.float64]]:
        """That of each number: noise of a norm has numbers of one variance."""
        points, block = self.mechanism.executed, self.mechanism.executed.block
        squares = moment(points.norm, block.size, Error("l2", 2, Fraction(1)))
        if squares is None or block.party is None or block.moved:
            return {}
        each = float(points.scale) * sqrt(float(squares) / block.size)
        return {block.output: np.full(block.shape, float(f"{each:.6g}"))}


PointMechanism.SECRET = PointSecret


# --- finite reports of a real number --------------------------------------------------------------


CELL_RULE = (
    "each number by itself: one outside its limits moves to the nearer one, and what is missing or cannot be read "
    "becomes the number nearest to zero; a number at the end of a cell belongs to the cell above it"
)


ALIKE = 10**12
"""Inverse of the difference of chances that tells two cells apart in what many reports say."""


class CellMechanism(Reports[Cells, list[int]]):
    """Each number picks the row of its cell, and gets a draw of its own."""

    BLOCK = CellBlock

    @staticmethod
    def content(block: Any, _source: Data, data: Mapping[str, Any], circumstances: RunContext) -> list[int]:
        low, *_, high = block.ends
        domain = Interval(block.source, block.party, block.shape, 1, low, high)
        return [block.cell(number) for (number,) in read_points_of(domain, data, circumstances)]

    @property
    def nothing(self) -> list[int]:
        """The number of the domain that is nearest to zero."""
        block = self.executed.block
        return [block.cell(Fraction(0))] * block.count

    def possible(self, report: Sequence[float]) -> bool:
        """Whether a report is one of the values."""
        return len(report) == 1 and set(report) <= {float(value) for value in self.executed.block.values}

    def local_reports(self, model: Model | None) -> LocalReports | None:
        """The rows that differ, each with the cells that have it; where every record is one person's."""
        block = self.executed.block
        if block.party is not None:
            return None
        ends, rows = [show(end) for end in block.ends], self.executed.term.rows
        # neighbours whose chances differ by what rounding leaves are one value
        total = self.executed.term.whole
        same = [max(abs(a - b) for a, b in zip(*pair, strict=True)) * ALIKE <= total for pair in pairwise(rows)]
        starts = [0, *(cell for cell, alike in enumerate(same, 1) if not alike)]
        names = [f"{ends[cell]} to {ends[after]}" for cell, after in pairwise((*starts, block.cells))]
        laws = tuple(RowLaw.of(rows[cell], total) for cell in starts)
        values = Labels.read([block.output], [show(value) for value in block.values])
        return LocalReports(TableLaw(Labels.read([block.source], names), values, laws), tuple(names))


class CellSecret(BlockSecret[CellMechanism, list[int]]):
    """The cell of each number."""

    RULE = CELL_RULE

    @property
    def size(self) -> int:
        return len(self.content)

    def numbers(self, randomness: Randomness) -> NDArray[np.float64]:
        """The reports, each drawn from the row of its cell."""
        cells = self.mechanism.executed
        laws = [RowLaw.of(row, cells.term.whole) for row in cells.term.rows]
        values = np.array([float(value) for value in cells.block.values])
        return np.take(values, draw_each(laws, np.array(self.content), randomness))

    def draw(self, randomness: Randomness) -> Drawn:
        return self.mechanism.combined(self.numbers(randomness))


CellMechanism.SECRET = CellSecret
