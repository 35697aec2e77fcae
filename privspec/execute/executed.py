"""The `executed` part of a plan, read and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import Diagnostic, UsageError
from privspec.core.matrices import DyadicMatrix
from privspec.execute.noise import GaussianNoise, NoiseLaw, noise_from_json
from privspec.problem.executed import executed_part

LAYOUTS = ("entries", "cells")


@dataclass(frozen=True, slots=True)
class Attribute:
    """One column of a table: either its admissible values in order, or integers lower..upper."""

    name: str
    values: tuple[str, ...] = ()
    lower: int = 0
    upper: int = -1

    @property
    def size(self) -> int:
        """How many values it can take."""
        return len(self.values) or self.upper - self.lower + 1


@dataclass(frozen=True, slots=True)
class InputBall:
    """Every `size` coordinates in turn are one vector of norm (1 or 2) at most `radius`."""

    radius: Fraction
    size: int
    norm: int = 2


@dataclass(frozen=True, slots=True)
class ExecutedInput:
    """Where an input stands in the base vector and how its values are put on their grid.

    `lower`, `upper`: one bound for each coordinate, None where there is none; `grid`: the step as a share of
    upper - lower (of one unit where a bound is missing, of the radius for balls); `ball`: radius and the
    number of coordinates
    of each ball; `attributes` of a table whose records are counted into cells; `drops`: records that do
    not fit
    are left out instead of being put into their nearest cell; `shape` of the declared value and
    the `index` set that its first axis runs over, where the plan says so; `records`, the number of records of a
    table, where it is public.
    """

    name: str
    start: int
    stop: int
    layout: str
    lower: tuple[Fraction | None, ...]
    upper: tuple[Fraction | None, ...]
    grid: Fraction
    ball: InputBall | None = None
    attributes: tuple[Attribute, ...] = ()
    drops: bool = False
    shape: tuple[int, ...] | None = None
    index: str | None = None
    records: int | None = None

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class ExecutedOutput:
    """Where an output stands among the released numbers."""

    name: str
    start: int
    stop: int
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False, slots=True)
class ExecutedConstant:
    """A public value that a run is given: map (m, size) of its entries is added to the outputs after the noise."""

    name: str
    shape: tuple[int, ...]
    map: DyadicMatrix


@dataclass(frozen=True, eq=False, slots=True)
class Executed:
    """A mechanism as it is executed: exact strategy and noise, then post-processing.

    strategy (k, n); reconstruction (m, k) of the outputs, or (n, k) of the base vector; offset (m,).
    `round_outputs`: the
    outputs, and not the strategy answers, are rounded, because some observer sees outputs that mix more
    strategy
    rows than its guarantee covers.
    """

    inputs: tuple[ExecutedInput, ...]
    strategy: DyadicMatrix
    noise: NoiseLaw
    grid: Fraction
    of_inputs: bool
    reconstruction: DyadicMatrix
    outputs: tuple[ExecutedOutput, ...]
    offset: NDArray[np.float64]
    output_grid: Fraction
    round_outputs: bool
    constants: tuple[ExecutedConstant, ...] = ()

    def given(self, constants: Mapping[str, NDArray[np.float64]]) -> Executed:
        """The same once the public values of a run are known: they are part of what is added after the noise."""
        added = [constant.map.to_float() @ constants[constant.name].reshape(-1) for constant in self.constants]
        return replace(self, offset=self.offset + np.sum(added, axis=0)) if added else self

    @property
    def size(self) -> int:
        """The number of released numbers."""
        return self.outputs[-1].stop if self.outputs else 0

    def split(self, values: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Released numbers (..., m) by output, each (..., *shape)."""
        return {o.name: values[..., o.start : o.stop].reshape(values.shape[:-1] + o.shape) for o in self.outputs}


def exact_number(value: Any) -> Fraction:
    """A number of a plan: a decimal, a fraction, or a power of two written 2^-30.

    Raises: ValueError.
    """
    text = str(value)
    if text.startswith("2^"):
        exponent = int(text[2:])
        if abs(exponent) > 4096:
            raise ValueError("out of range")
        return Fraction(2) ** exponent
    return Fraction(text)


def _bound(value: Any) -> Fraction | None:
    return None if value is None or "inf" in str(value).lower() else exact_number(value)


def _bounds(value: Any, size: int) -> tuple[Fraction | None, ...]:
    if not isinstance(value, list):
        return (_bound(value),) * size
    if len(value) != size:
        raise ValueError(f"{len(value)} bounds for {size} coordinates")
    return tuple(_bound(v) for v in value)


def _attribute(data: Mapping[str, Any]) -> Attribute:
    if "values" in data:
        return Attribute(str(data["name"]), values=tuple(str(v) for v in data["values"]))
    return Attribute(str(data["name"]), lower=int(data["lower"]), upper=int(data["upper"]))


def _ball(data: Mapping[str, Any], coordinates: int) -> InputBall:
    ball = InputBall(exact_number(data["radius"]), int(data["size"]), int(data.get("norm", 2)))
    if ball.radius <= 0 or ball.norm not in (1, 2) or ball.size < 1 or coordinates % ball.size:
        raise ValueError("not a ball")
    return ball


def read_input(data: Mapping[str, Any], guarantees: Sequence[Mapping[str, Any]]) -> ExecutedInput:
    """An input of a plan with these guarantees.

    Raises: KeyError, TypeError, ValueError.
    """
    start, stop, layout = int(data["start"]), int(data["stop"]), str(data["layout"])
    if layout not in LAYOUTS:
        raise ValueError(f"unknown layout {layout!r}")
    ball = data.get("ball")
    grid = exact_number(data.get("grid", "1"))
    if grid <= 0 or grid.numerator != 1:
        raise ValueError("a grid must be one over an integer")
    counts = layout == "cells"
    drops = _only_adding(str(data["name"]), guarantees)
    return ExecutedInput(
        str(data["name"]),
        start,
        stop,
        layout,
        _bounds("0" if counts else data.get("lower"), stop - start),
        _bounds(None if counts else data.get("upper"), stop - start),
        grid,
        None if ball is None else _ball(ball, stop - start),
        tuple(_attribute(a) for a in data.get("attributes", ())),
        drops,
        tuple(int(d) for d in data["shape"]) if "shape" in data else None,
        str(data["index"]) if data.get("index") is not None else None,
        None if drops or data.get("records") is None else int(data["records"]),
    )


def _only_adding(name: str, guarantees: Sequence[Mapping[str, Any]]) -> bool:
    """Whether every guarantee for the input is about adding or removing records.

    Only then may a record be left out: replacing a fitting record by one that is left out would change the
    number of records, which
    a guarantee for replacing does not cover.
    """
    relations = [str(g["neighbours"]) for g in guarantees if name in names_of(g.get("wrt", ()))]
    return bool(relations) and all(relation.startswith("adding") for relation in relations)


def names_of(value: Any) -> tuple[str, ...]:
    """The names in a `wrt` or `outputs` entry, which may be one name or a list."""
    return (value,) if isinstance(value, str) else tuple(str(v) for v in value)


def read_executed(plan: Mapping[str, Any]) -> Executed:
    """The executed mechanism of a plan.

    Raises: UsageError (PS0820) if the plan has none that this version can execute.
    """
    try:
        return _read(plan)
    except (KeyError, TypeError, ValueError, IndexError, ZeroDivisionError, AttributeError) as error:
        detail = f"no entry {error}" if isinstance(error, KeyError) else str(error)
        raise UsageError(
            Diagnostic(
                "PS0820",
                "this plan cannot be executed",
                notes=(detail,),
                help="solve the spec again with this version of privspec",
            )
        ) from error


def _read(plan: Mapping[str, Any]) -> Executed:
    executed = executed_part(plan)
    strategy = DyadicMatrix.from_json(executed["strategy"])
    rows, columns = strategy.shape
    inputs = tuple(read_input(i, plan.get("guarantees", [])) for i in executed["inputs"])
    _check_contiguous([(i.start, i.stop) for i in inputs], columns)
    reconstruction = DyadicMatrix.from_json(executed["reconstruction"]["matrix"])
    of = executed["reconstruction"]["of"]
    if of not in ("inputs", "outputs"):
        raise ValueError(f"unknown reconstruction {of!r}")
    outputs = tuple(
        ExecutedOutput(str(o["name"]), int(o["start"]), int(o["stop"]), tuple(int(d) for d in o["shape"]))
        for o in executed["outputs"]
    )
    size = outputs[-1].stop
    _check_contiguous([(o.start, o.stop) for o in outputs], size)
    expected = (columns if of == "inputs" else size, rows)
    if reconstruction.shape != expected:
        raise ValueError(f"the reconstruction is {reconstruction.shape}, not {expected}")
    result = Executed(
        inputs,
        strategy,
        noise_from_json(executed["noise"], rows),
        exact_number(executed["grid"]),
        of == "inputs",
        reconstruction,
        outputs,
        np.concatenate([_offset(o) for o in executed["outputs"]]),
        exact_number(executed["output_grid"]),
        executed.get("rounding", "strategy") == "outputs",
        tuple(_constant(item, size) for item in executed.get("constants", ())),
    )
    if result.grid <= 0 or result.output_grid <= 0:
        raise ValueError("a grid must be positive")
    if result.round_outputs and (result.of_inputs or not isinstance(result.noise, GaussianNoise)):
        raise ValueError("only Gaussian noise with a reconstruction of the outputs can be rounded at the outputs")
    if not result.round_outputs:
        _check_views(executed.get("views", []), result)
    return result


def _constant(data: Mapping[str, Any], size: int) -> ExecutedConstant:
    shape = tuple(int(extent) for extent in data["shape"])
    found = ExecutedConstant(str(data["name"]), shape, DyadicMatrix.from_json(data["map"]))
    if found.map.shape != (size, int(np.prod(shape, dtype=object))):
        raise ValueError(f"the map of {found.name} does not fit")
    return found


def _offset(output: Mapping[str, Any]) -> NDArray[np.float64]:
    size = int(output["stop"]) - int(output["start"])
    offset = np.array(output["offset"], dtype=np.float64).reshape(-1)
    if not np.all(np.isfinite(offset)):
        raise ValueError("an offset is no number")
    return np.broadcast_to(offset, (size,)) if size else np.zeros(0)


def _check_contiguous(ranges: list[tuple[int, int]], size: int) -> None:
    at = 0
    for start, stop in ranges:
        if start != at or stop < start:
            raise ValueError("inputs and outputs must follow one another")
        at = stop
    if at != size:
        raise ValueError(f"{at} coordinates in place of {size}")


def _check_views(views: list[Mapping[str, Any]], executed: Executed) -> None:
    """What a guarantee covers must be a function of the strategy rows it was proved for."""
    for view in views:
        seen = names_of(view["outputs"])
        if executed.of_inputs and int(view["rows"]) != executed.strategy.shape[0]:
            raise ValueError("outputs of estimated inputs use all strategy rows, a guarantee covers fewer")
        beyond = executed.reconstruction.integers[:, int(view["rows"]) :]
        for output in executed.outputs:
            if output.name in seen and beyond[output.start : output.stop].any():
                raise ValueError(f"{output.name} uses strategy rows that its guarantee does not cover")
