"""Inputs of linear plans as the kernel reads them, made by hand."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any

from privspec.execute.data import Grid
from privspec.execute.statistic import Attribute
from privspec.kernel.core.linear import Ball, Column, InputLayout
from privspec.kernel.core.problem import ContributionBound

Named = tuple[str, tuple[str, ...], int | None, int | None]
AGE_SEX: tuple[Named, ...] = (("age", (), 0, 2), ("sex", ("F", "M"), None, None))


def held(name: str, size: int, lower: Any = None, upper: Any = None, ball: Any = None) -> InputLayout:
    """An input of so many entries."""
    vectors = None if ball is None else Ball(*ball)
    return InputLayout(name, 0, size, "entries", (size,), lower, upper, vectors, (), None, None)


def cells(size: int, columns: tuple[Named, ...], *, drops: bool, records: int | None = None) -> Grid:
    """A table of so many cells."""
    return grid(tuple((*one, (), False) for one in columns), drops=drops, records=records, size=size)


def grid(
    columns: tuple[Any, ...],
    *,
    drops: bool,
    records: int | None = None,
    steps: int = 1,
    kept: ContributionBound | None = None,
    size: int | None = None,
) -> Grid:
    """A table with columns as the kernel reads them, numbers in so many steps."""
    columns = tuple(Column(*one) for one in columns)
    size = size or prod(Attribute.of(column).size for column in columns)
    held = InputLayout("x", 0, size, "cells", (), Fraction(0), None, None, columns, records, None)
    return Grid(held, Fraction(1, steps), drops, kept=kept)
