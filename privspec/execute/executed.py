"""What is executed, from the mechanism as the kernel reads it: the numbers that are judged are those that run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import Diagnostic, UsageError
from privspec.core.matrices import DyadicMatrix
from privspec.execute.noise import NoiseLaw, law_of
from privspec.execute.samplers import KNORM_LIMIT
from privspec.kernel.core.linear import Alike, Held, Matrix, Release, read_linear, read_release
from privspec.kernel.core.problem import Frame, read_frame
from privspec.kernel.core.reading import Item, Refused


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

    `lower`, `upper`: a bound for each coordinate, or one for all of them, None where there is none; `grid`: the step
    as a share of upper - lower (of one unit where a bound is missing, of the radius for balls); `ball`: radius and
    the number of coordinates of each ball; `attributes` of a table whose records are counted into cells; `drops`:
    records that do not fit are left out instead of being put into their nearest cell; `shape` of the declared value
    and the `index` set that its first axis runs over, where the plan says so; `records`, the number of records of a
    table, where it is public; `alike`: which units are added up, where some are.
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
    alike: Alike | None = None

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
    map: NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Executed:
    """A mechanism as it is executed: exact strategy and noise, then post-processing.

    strategy (k, n); reconstruction (m, k) of the outputs, or (n, k) of the base vector, of which the outputs are
    `target` (m, n); offset (m,). `round_outputs`: the outputs, and not the strategy answers, are rounded, because some
    observer sees outputs that mix more strategy rows than its guarantee covers.
    """

    inputs: tuple[ExecutedInput, ...]
    strategy: DyadicMatrix
    noise: NoiseLaw
    grid: Fraction
    of_inputs: bool
    reconstruction: DyadicMatrix
    target: NDArray[np.float64]
    outputs: tuple[ExecutedOutput, ...]
    offset: NDArray[np.float64]
    output_grid: Fraction
    round_outputs: bool
    constants: tuple[ExecutedConstant, ...] = ()

    def given(self, constants: Mapping[str, NDArray[np.float64]]) -> Executed:
        """The same once the public values of a run are known: they are part of what is added after the noise."""
        added = [constant.map @ constants[constant.name].reshape(-1) for constant in self.constants]
        return replace(self, offset=self.offset + np.sum(added, axis=0)) if added else self

    @property
    def size(self) -> int:
        """The number of released numbers."""
        return self.outputs[-1].stop if self.outputs else 0

    def split(self, values: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Released numbers (..., m) by output, each (..., *shape)."""
        return {o.name: values[..., o.start : o.stop].reshape(values.shape[:-1] + o.shape) for o in self.outputs}


def names_of(value: Any) -> tuple[str, ...]:
    """The names in a `wrt` or `outputs` entry, which may be one name or a list."""
    return (value,) if isinstance(value, str) else tuple(str(v) for v in value)


def read_executed(plan: Mapping[str, Any]) -> Executed:
    """The executed mechanism of a plan, by the kernel's reader.

    Raises: UsageError (PS0820) if the plan has none that this version can execute.
    """
    try:
        mechanism, (block,) = plan["mechanism"], plan["problem"]["blocks"]
        frame = read_frame(Item(plan["problem"], "problem"))
        linear = read_linear(Item(block, "problem.blocks[0]"), frame)
        family, executed = Item(mechanism["family"], "family"), Item(mechanism["executed"], "executed")
        return executed_of(read_release(family, executed, linear, frame), frame)
    except (Refused, KeyError, TypeError, ValueError, OverflowError) as error:
        detail = f"no entry {error}" if isinstance(error, KeyError) else str(error)
        raise UsageError(
            Diagnostic(
                "PS0820",
                "this plan cannot be executed",
                notes=(detail,),
                help="solve the spec again with this version of privspec",
            )
        ) from error


def executed_of(release: Release, frame: Frame) -> Executed:
    """The same numbers in arrays.

    Raises: ValueError, OverflowError for numbers beyond those of 64 bits times a power of two.
    """
    problem, rows = release.problem, release.strategy.whole.nrows()
    units = (one if max(one.copies) > 1 else None for _, one in problem.places.values())
    held = zip(problem.held, release.steps, frame.data, units, strict=True)
    if release.noise.shape == "knorm-l2" and rows > KNORM_LIMIT:
        raise ValueError(f"the K-norm sampler takes at most {KNORM_LIMIT} strategy rows, not {rows}")
    return Executed(
        tuple(input_of(one, step, data.rule, data.party, alike) for one, step, data, alike in held),
        _dyadic(release.strategy),
        law_of(release.noise.shape, release.noise.scales),
        release.grid,
        release.of_inputs,
        _dyadic(release.reconstruction),
        _floats(problem.target),
        tuple(ExecutedOutput(one.name, one.start, one.stop, one.shape) for one in problem.released),
        np.array([value.numerator / value.denominator for value in problem.offset]),
        release.output_grid,
        release.round_outputs,
        tuple(ExecutedConstant(name, shape, _floats(map_)) for name, shape, map_ in problem.constants),
    )


def input_of(held: Held, grid: Fraction, rule: str, index: str | None, alike: Alike | None = None) -> ExecutedInput:
    """An input as it is read."""
    return ExecutedInput(
        held.name,
        held.start,
        held.stop,
        "cells" if held.cells else "entries",
        (held.lower,),
        (held.upper,),
        grid,
        None if held.ball is None else InputBall(*held.ball),
        tuple(
            Attribute(name, values=values) if low is None or high is None else Attribute(name, lower=low, upper=high)
            for name, values, low, high in held.columns
        ),
        rule == "drop",
        None if held.cells else held.shape,
        index,
        None if rule == "drop" else held.records,
        alike,
    )


def _dyadic(matrix: Matrix) -> DyadicMatrix:
    exponent = matrix.unit.denominator.bit_length() - matrix.unit.numerator.bit_length()
    if matrix.unit * Fraction(2) ** exponent != 1:
        raise ValueError("the unit of a matrix is no power of two")
    whole = np.array([int(v) for v in matrix.whole.entries()], dtype=np.int64)
    return DyadicMatrix(whole.reshape(matrix.whole.nrows(), matrix.whole.ncols()), exponent)


def _floats(matrix: Matrix) -> NDArray[np.float64]:
    """The nearest doubles."""
    unit = matrix.unit
    values = [int(v) * unit.numerator / unit.denominator for v in matrix.whole.entries()]
    return np.array(values, dtype=np.float64).reshape(matrix.whole.nrows(), matrix.whole.ncols())
