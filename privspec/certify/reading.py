"""A plan read strictly: what is missing, of another kind, not finite or out of range is refused with its place."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.matrices import DyadicMatrix

Array: TypeAlias = NDArray[np.float64]

FORMAT, MAJOR = "privspec-plan", 2
TEXT_LIMIT = 4096
"""Characters of the longest number."""
CELL_LIMIT = 2**24
"""Most values of a column of a table."""
EXPONENT_LIMIT = 4096
"""Largest binary or decimal exponent of a number."""


class Malformed(ValueError):  # noqa: N818 - a finding about the plan
    """Something in a plan is not what it has to be; the message says where."""


def canonical_digest(plan: Mapping[str, Any]) -> str:
    """sha256 of the canonical JSON of everything but the digest.

    Raises: ValueError if it holds NaN or infinity, TypeError if it is no JSON.
    """
    body = {key: value for key, value in plan.items() if key != "digest"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True)
class At:
    """A value of a plan with its place, for messages."""

    value: Any
    place: str = "plan"

    def __getitem__(self, key: str | int) -> At:
        found = self.get(key)
        if found is None:
            raise Malformed(f"{self.place} has no {key}")
        return found

    def filled(self) -> At | None:
        """Itself, None if it is empty."""
        return self if self.value else None

    def get(self, key: str | int) -> At | None:
        """An entry, None if there is none or it is null."""
        place = f"{self.place}.{key}" if isinstance(key, str) else f"{self.place}[{key}]"
        if isinstance(key, str):
            if not isinstance(self.value, Mapping):
                raise Malformed(f"{self.place} is not an object")
            inner = self.value.get(key)
        else:
            if not isinstance(self.value, list) or not 0 <= key < len(self.value):
                raise Malformed(f"{self.place} has no entry {key}")
            inner = self.value[key]
        return None if inner is None else At(inner, place)

    def only(self, *keys: str) -> At:
        """Itself, an object that has no other entries: what this checker does not read is not to be executed.

        Raises: Malformed.
        """
        if not isinstance(self.value, Mapping):
            raise Malformed(f"{self.place} is not an object")
        for key in self.value:
            if key not in keys:
                raise Malformed(f"{self.place} has an entry {str(key)[:40]!r} that is not known")
        return self

    def items(self) -> list[At]:
        """The entries of a list."""
        if not isinstance(self.value, list):
            raise Malformed(f"{self.place} is not a list")
        return [At(item, f"{self.place}[{i}]") for i, item in enumerate(self.value)]

    def text(self) -> str:
        """A string."""
        if not isinstance(self.value, str):
            raise Malformed(f"{self.place} is not a text")
        return self.value

    def names(self) -> tuple[str, ...]:
        """One name, names with commas, or a list of names."""
        if isinstance(self.value, str):
            return tuple(part.strip() for part in self.value.split(","))
        return tuple(item.text() for item in self.items())

    def integer(self) -> int:
        """A whole number written as one."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise Malformed(f"{self.place} is not a whole number")
        return self.value

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            raise Malformed(f"{self.place} is neither true nor false")
        return self.value

    def double(self) -> float:
        """A finite JSON number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or abs(self.value) > 1e308:
            raise Malformed(f"{self.place} is not a number")
        if not isfinite(self.value):
            raise Malformed(f"{self.place} is not finite")
        return float(self.value)

    def exact(self) -> Fraction:
        """A decimal, a fraction, a power of two written 2^-30; a JSON number stands for its shortest decimal."""
        text = self.value if isinstance(self.value, str) else repr(self.double()) if self._plain else ""
        if isinstance(self.value, int) and self._plain:
            text = str(self.value)
        power = text.removeprefix("2^")
        try:
            if len(text) > TEXT_LIMIT or "_" in text:
                raise Malformed(f"{self.place} is not a number")
            if power != text:
                exponent = int(power)
                if abs(exponent) > EXPONENT_LIMIT:
                    raise Malformed(f"{self.place} is out of range")
                return Fraction(2) ** exponent
            _, _, tail = text.lower().partition("e")
            if tail and abs(int(tail)) > EXPONENT_LIMIT:
                raise Malformed(f"{self.place} is out of range")
            return Fraction(text)
        except (ValueError, ZeroDivisionError) as error:
            raise Malformed(f"{self.place} is not a number") from error

    @property
    def _plain(self) -> bool:
        return isinstance(self.value, int | float) and not isinstance(self.value, bool)

    def positive(self) -> Fraction:
        """An exact number above 0."""
        number = self.exact()
        if number <= 0:
            raise Malformed(f"{self.place} is not positive")
        return number

    def matrix(self) -> DyadicMatrix:
        """An exact matrix."""
        try:
            matrix = DyadicMatrix.from_json(self.value)
        except ValueError as error:
            raise Malformed(f"{self.place}: {error}") from error
        if matrix.integers.size and not -(2**61) < int(matrix.integers.min()) <= int(matrix.integers.max()) < 2**61:
            raise Malformed(f"{self.place} has entries out of range")
        return matrix

    def list(self) -> list[Any]:
        """The raw entries."""
        if not isinstance(self.value, list):
            raise Malformed(f"{self.place} is not a list")
        return self.value

    def doubles(self, size: int) -> Array:
        """A list of so many finite numbers."""
        items = self.items()
        if len(items) != size:
            raise Malformed(f"{self.place} has {len(items)} entries in place of {size}")
        return np.array([item.double() for item in items], dtype=np.float64)

    def span(self, at: int) -> tuple[int, int]:
        """`start` and `stop`, where start has to be `at`."""
        start, stop = self["start"].integer(), self["stop"].integer()
        if start != at or stop < start:
            raise Malformed(f"{self.place} does not follow the one before it")
        return start, stop


# --- what is executed -------------------------------------------------------------------------------


class Noise(ABC):
    """The law of the noise on the strategy answers."""

    __slots__ = ()

    @abstractmethod
    def deviations(self, rows: int, grid: float) -> Array:
        """Standard deviation (k,) of every answer on a lattice; answers are uncorrelated."""


@dataclass(frozen=True, slots=True)
class Gaussian(Noise):
    """Independent, one standard deviation for all."""

    standard_deviation: Fraction

    def deviations(self, rows: int, grid: float) -> Array:
        """The same for all; the real sum is rounded, which is counted with the grids."""
        return np.full(rows, float(self.standard_deviation))


@dataclass(frozen=True, slots=True)
class Laplace(Noise):
    """Independent on the lattice g Z: probabilities ~ exp(-|z| / b), variance g^2 / (2 sinh(g / 2b)^2)."""

    scales: tuple[Fraction, ...]

    def deviations(self, rows: int, grid: float) -> Array:
        """Close to sqrt(2) times the scales when the lattice is fine."""
        ratios = grid / np.array([float(b) for b in self.scales])
        # a scale far below the step leaves no noise at all
        result: Array = np.sqrt(2.0) * grid * np.exp(-ratios / 2) / -np.expm1(-ratios)
        return result


@dataclass(frozen=True, slots=True)
class KNorm(Noise):
    """Density ~ exp(-||z||_2 / scale): radius Gamma(k, scale), so each coordinate has variance (k + 1) scale^2."""

    scale: Fraction

    def deviations(self, rows: int, grid: float) -> Array:
        """The same for all."""
        return np.full(rows, float(self.scale) * np.sqrt(rows + 1.0))


@dataclass(frozen=True, slots=True)
class Input:
    """Coordinates start:stop of the base vector, clipped to lower..upper, on a grid of `grid` times the width."""

    name: str
    start: int
    stop: int
    layout: str
    lower: tuple[Fraction | None, ...]
    upper: tuple[Fraction | None, ...]
    grid: Fraction
    ball: tuple[Fraction, int, int] | None
    attributes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    records: int | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Output:
    """Released numbers start:stop, with the constant that is added to them."""

    name: str
    start: int
    stop: int
    shape: tuple[int, ...]
    offset: Array


@dataclass(frozen=True, eq=False, slots=True)
class OpenConstant:
    """A public value that a run is given: map (m, size) of its entries is added to the outputs after the noise."""

    name: str
    shape: tuple[int, ...]
    map: DyadicMatrix


@dataclass(frozen=True, slots=True)
class View:
    """Outputs that are said to be functions of the first `rows` strategy answers."""

    outputs: tuple[str, ...]
    rows: int


@dataclass(frozen=True, eq=False, slots=True)
class Executed:
    """strategy B (k, n), reconstruction (m, k) of the outputs or (n, k) of the inputs."""

    inputs: tuple[Input, ...]
    strategy: DyadicMatrix
    noise: Noise
    grid: Fraction
    of_inputs: bool
    reconstruction: DyadicMatrix
    outputs: tuple[Output, ...]
    output_grid: Fraction
    views: tuple[View, ...]
    round_outputs: bool
    constants: tuple[OpenConstant, ...]

    @property
    def size(self) -> int:
        """Number of released numbers."""
        return self.outputs[-1].stop if self.outputs else 0

    def rows_of(self, names: tuple[str, ...]) -> NDArray[np.int64]:
        """Released numbers that belong to some outputs."""
        parts = [np.arange(o.start, o.stop) for o in self.outputs if o.name in names]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _bounds(data: At | None, size: int) -> tuple[Fraction | None, ...]:
    def one(item: At | None) -> Fraction | None:
        unbounded = item is None or (isinstance(item.value, str) and item.value in ("inf", "-inf"))
        return None if unbounded or item is None else item.exact()

    if data is None or not isinstance(data.value, list):
        return (one(data),) * size
    if len(data.value) != size:
        raise Malformed(f"{data.place} has {len(data.value)} entries in place of {size}")
    return tuple(one(data.get(i)) for i in range(size))


def _attribute(data: At) -> tuple[str, tuple[str, ...]]:
    """Name and values of a column of a table, in the order of the cells."""
    if data.get("values") is not None:
        return data["name"].text(), tuple(item.text() for item in data["values"].items())
    lower, upper = data["lower"].integer(), data["upper"].integer()
    if upper - lower > CELL_LIMIT:
        raise Malformed(f"{data.place} is out of range")
    return data["name"].text(), tuple(str(i) for i in range(lower, upper + 1))


INPUT_ENTRIES = ("name", "start", "stop", "layout", "lower", "upper", "grid", "ball", "attributes", "records")
OUTPUT_ENTRIES = ("name", "start", "stop", "shape", "offset")
EXECUTED_ENTRIES = (
    *("inputs", "strategy", "noise", "grid", "reconstruction", "outputs", "output_grid", "views", "rounding"),
    "constants",
)


def _input(data: At, at: int) -> Input:
    start, stop = data.only(*INPUT_ENTRIES).span(at)
    layout = data["layout"].text()
    if layout not in ("entries", "cells"):
        raise Malformed(f"{data.place}.layout is unknown")
    cells = layout == "cells"
    grid = Fraction(1) if cells and data.get("grid") is None else data["grid"].positive()
    if grid.numerator != 1:
        raise Malformed(f"{data.place}.grid is not one over a whole number")
    ball = data.get("ball")
    lower, upper = data.get("lower"), data.get("upper")
    return Input(
        data["name"].text(),
        start,
        stop,
        layout,
        (Fraction(0),) * (stop - start) if cells and lower is None else _bounds(lower, stop - start),
        _bounds(upper, stop - start),
        grid,
        None if ball is None else (ball["radius"].positive(), ball["size"].integer(), ball["norm"].integer()),
        tuple(_attribute(item) for item in data["attributes"].items()) if cells else (),
        None if data.get("records") is None else data["records"].integer(),
    )


def _output(data: At, at: int) -> Output:
    start, stop = data.only(*OUTPUT_ENTRIES).span(at)
    shape = tuple(item.integer() for item in data["shape"].items())
    if any(extent < 0 for extent in shape) or int(np.prod(shape, dtype=object)) != stop - start:
        raise Malformed(f"{data.place}.shape does not fit")
    offset = data["offset"]
    size = stop - start
    values = offset.doubles(size) if isinstance(offset.value, list) else np.full(size, offset.double())
    return Output(data["name"].text(), start, stop, shape, values)


def _noise(data: At, rows: int) -> Noise:
    shape = data["shape"].text()
    if shape == "gaussian":
        return Gaussian(data["standard_deviation"].positive())
    if shape == "knorm-l2":
        return KNorm(data["scale"].positive())
    if shape != "laplace":
        raise Malformed(f"{data.place}.shape is unknown")
    scale = data["scale"]
    scales = tuple(s.positive() for s in scale.items()) if isinstance(scale.value, list) else (scale.positive(),)
    if len(scales) not in (1, rows):
        raise Malformed(f"{scale.place} has {len(scales)} entries in place of {rows}")
    return Laplace(scales if len(scales) == rows else scales * rows)


def read_executed(data: At) -> Executed:
    """What `run` will do.

    Raises: Malformed.
    """
    strategy = data.only(*EXECUTED_ENTRIES)["strategy"].matrix()
    k, n = strategy.shape
    inputs: list[Input] = []
    for item in data["inputs"].items():
        inputs.append(_input(item, inputs[-1].stop if inputs else 0))
    outputs: list[Output] = []
    for item in data["outputs"].items():
        outputs.append(_output(item, outputs[-1].stop if outputs else 0))
    of = data["reconstruction"]["of"].text()
    if of not in ("inputs", "outputs"):
        raise Malformed(f"{data.place}.reconstruction.of is unknown")
    reconstruction = data["reconstruction"]["matrix"].matrix()
    size = outputs[-1].stop if outputs else 0
    if not size or not k or (inputs[-1].stop if inputs else 0) != n:
        raise Malformed(f"{data.place} has no outputs, no strategy, or inputs that do not fit it")
    if reconstruction.shape != (n if of == "inputs" else size, k):
        raise Malformed(f"{data.place}.reconstruction does not fit the strategy")
    rounding = data.get("rounding")
    views = [
        View(v["outputs"].names(), v["rows"].integer()) for v in (data["views"].items() if data.get("views") else ())
    ]
    round_outputs = rounding is not None and rounding.text() == "outputs"
    if rounding is not None and rounding.text() not in ("outputs", "strategy"):
        raise Malformed(f"{rounding.place} is unknown")
    noise = _noise(data["noise"], k)
    if round_outputs and (of == "inputs" or not isinstance(noise, Gaussian)):
        raise Malformed(f"{data.place}: only Gaussian noise on outputs can be rounded there")
    return Executed(
        tuple(inputs),
        strategy,
        noise,
        data["grid"].positive(),
        of == "inputs",
        reconstruction,
        tuple(outputs),
        data["output_grid"].positive(),
        tuple(views),
        round_outputs,
        _constants(data.get("constants"), size),
    )


def _constants(data: At | None, size: int) -> tuple[OpenConstant, ...]:
    found: list[OpenConstant] = []
    for item in data.items() if data is not None else ():
        shape = tuple(extent.integer() for extent in item.only("name", "shape", "map")["shape"].items())
        constant = OpenConstant(item["name"].text(), shape, item["map"].matrix())
        if constant.map.shape != (size, int(np.prod(shape, dtype=object))) or min(shape, default=1) < 1:
            raise Malformed(f"{item.place}.map does not fit")
        if any(other.name == constant.name for other in found):
            raise Malformed(f"{item.place} is listed twice")
        found.append(constant)
    return tuple(found)


@dataclass(frozen=True, eq=False, slots=True)
class Guarantee:
    """What the plan promises; `figures` are those of the measure, `achieved` what it says it reaches."""

    outputs: tuple[str, ...]
    wrt: tuple[str, ...]
    neighbours: str
    observer: str
    measure: str
    figures: Mapping[str, Fraction]
    achieved: Mapping[str, Fraction]
    line: int | None
    text: str | None
    requirement: int
    place: str


FIGURES = ("epsilon", "delta", "rho", "mu", "order")


def read_guarantee(data: At) -> Guarantee:
    """One guarantee.

    Raises: Malformed.
    """
    achieved = data["achieved"]
    if not isinstance(achieved.value, Mapping):
        raise Malformed(f"{achieved.place} is not an object")
    for note in data["because"].items():
        note.text()
    line, text = data.get("line"), data.get("text")
    return Guarantee(
        data["outputs"].names(),
        data["wrt"].names(),
        data["neighbours"].text(),
        data["observer"].text() if isinstance(data["observer"].value, str) else " and ".join(data["observer"].names()),
        data["measure"].text(),
        {key: data[key].exact() for key in FIGURES if data.get(key) is not None},
        {str(key): achieved[key].exact() for key in achieved.value},
        None if line is None else line.integer(),
        None if text is None else text.text(),
        data["requirement"].integer(),
        data.place,
    )


@dataclass(frozen=True, eq=False, slots=True)
class DualView:
    """Weighted differences of one requirement."""

    requirement: int
    differences: tuple[Mapping[int, Fraction], ...]
    weights: Array
    place: str


@dataclass(frozen=True, eq=False, slots=True)
class Proof:
    """The certificate of optimality; `guide` (m, k) only helps to choose vectors: any would prove something."""

    scope: str
    lower_bound: float
    views: tuple[DualView, ...]
    loss_weights: Array | None
    limit_weights: Array | None
    hammersley: bool
    guide: Array | None
    place: str


def _differences(data: At) -> tuple[dict[int, Fraction], ...]:
    """Sparse differences [[coordinate, amount], ...]; there may be millions, with few amounts among them."""
    amounts: dict[Any, Fraction] = {}
    found: list[dict[int, Fraction]] = []
    for pairs in data.list():
        difference: dict[int, Fraction] = {}
        for pair in pairs if isinstance(pairs, list) else (None,):
            if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) is not int or pair[0] in difference:
                raise Malformed(f"{data.place}[{len(found)}] is not a difference")
            written = pair[1] if isinstance(pair[1], str) else repr(pair[1])
            if written not in amounts:
                amounts[written] = At(pair[1], f"{data.place}[{len(found)}]").exact()
            difference[pair[0]] = amounts[written]
        found.append(difference)
    return tuple(found)


def read_proof(data: At) -> Proof:
    """The certificate of optimality.

    Raises: Malformed.
    """
    views: list[DualView] = []
    for item in data["dual"].items():
        differences = _differences(item["differences"])
        weights = item["weights"].doubles(len(differences))
        if np.any(weights < 0):
            raise Malformed(f"{item.place} has a negative weight")
        views.append(DualView(item["requirement"].integer(), differences, weights, item.place))
    given, hammersley, guide = data.get("loss_weights"), data.get("hcr"), data.get("guide")
    if hammersley is not None:
        hammersley["statement"].text()
    loss_weights = None if given is None else given.doubles(len(given.items()))
    prices = data.get("limit_weights")
    limit_weights = None if prices is None else prices.doubles(len(prices.items()))
    return Proof(
        data["scope"].text(),
        data["lower_bound"].double(),
        tuple(views),
        loss_weights,
        limit_weights,
        hammersley is not None,
        None if guide is None else guide.matrix().to_float(),
        data.place,
    )
