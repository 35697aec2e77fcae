"""A finite spec as numbers: rows, columns, what a draw costs, what observers may learn, and further linear lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.spans import Span
from privspec.model.requirements import Requirement
from privspec.model.worlds import Neighbours, Worlds

if TYPE_CHECKING:
    from privspec.compile.finite.apart import Apart

Costs: TypeAlias = NDArray[np.object_]
"""Exact costs (rows, columns)."""


@dataclass(frozen=True, eq=False, slots=True)
class LinearLine:
    """sum table[r, c] f_rc + sum scalars[name] w_name = bound, or <= bound; `name` as certificates list it."""

    name: str
    span: Span
    table: Mapping[tuple[int, int], Fraction]
    scalars: Mapping[str, Fraction]
    bound: Fraction
    equality: bool


@dataclass(frozen=True, slots=True)
class Scalar:
    """A further unknown number with its range and its share in the loss."""

    name: str
    low: Fraction
    high: Fraction
    cost: Fraction = Fraction(0)


@dataclass(frozen=True, eq=False, slots=True)
class Requested:
    """A requirement with the rows it compares and what its observer tells apart (None: all outputs).

    `inputs`: how many values the inputs that it names take, the |X| of per-atom-LDP.
    """

    index: int
    requirement: Requirement
    neighbours: Neighbours
    view: NDArray[np.intp] | None
    inputs: int = 1


@dataclass(frozen=True, eq=False, slots=True)
class Moment:
    """E[g(z) | x] = alpha t(x) + sum over the law's values of mass h: g (columns,), t (rows,), h by value.

    `weight` that of the squared error of (g - s) / alpha in the loss, 0 if it does not stand there.
    """

    line: int
    g: Costs
    t: Costs
    h: Mapping[str, Fraction]
    weight: Fraction = Fraction(0)


@dataclass(frozen=True, eq=False, slots=True)
class Debiased:
    """The chosen number alpha with its range, the law of the background (None without), and the moments.

    `weighted`: the masses of the law sum to 1 - alpha, else to 1.
    """

    alpha: str
    low: Fraction
    high: Fraction
    law: str | None
    weighted: bool
    moments: tuple[Moment, ...]


@dataclass(frozen=True, eq=False, slots=True)
class FiniteSystem:
    """The program in exact numbers.

    loss = sum expected[r, c] f_rc + sum over k of weights_k max_r sum_c worst_k[r, c] f_rc + offset + costs of scalars;
    `expected` holds the prior already.
    """

    worlds: Worlds
    expected: Costs | None
    worst: tuple[tuple[Fraction, Costs], ...]
    offset: Fraction
    requested: tuple[Requested, ...]
    lines: tuple[LinearLine, ...] = ()
    scalars: tuple[Scalar, ...] = ()
    debiased: Debiased | None = None
    """The loss, where it is that of debiased estimates with a scale that is chosen; the other parts are then empty."""
    laws: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The values (as labels) over which each chosen law ranges; its masses are scalars `B:<label>`."""
    apart: tuple[Apart, ...] = ()
    """Total variations from drawn winners in the loss: added to the average, or to the worst case that they name."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.worlds.rows), len(self.worlds.columns)

    @property
    def only_worst(self) -> bool:
        """Whether the loss is one worst case of costs and nothing else."""
        return self.one_worst and not self.apart

    @property
    def one_worst(self) -> bool:
        """Whether the loss is one worst case, also of total variations, and nothing else."""
        return self.expected is None and len(self.worst) == 1
