"""Inputs of linear plans as the kernel reads them, made by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from privspec.execute.data import Grid
from privspec.kernel.core.linear import Held

Column = tuple[str, tuple[str, ...], int | None, int | None]
AGE_SEX: tuple[Column, ...] = (("age", (), 0, 2), ("sex", ("F", "M"), None, None))


def held(name: str, size: int, lower: Any = None, upper: Any = None, ball: Any = None) -> Held:
    """An input of so many entries."""
    return Held(name, 0, size, "entries", (size,), lower, upper, ball, (), None, None)


def cells(size: int, columns: tuple[Column, ...], *, drops: bool, records: int | None = None) -> Grid:
    """A table of so many cells."""
    return Grid(
        Held(
            "x",
            0,
            size,
            "cells",
            (),
            Fraction(0),
            None,
            None,
            tuple((*one, (), False) for one in columns),
            records,
            None,
        ),
        Fraction(1),
        drops,
    )
