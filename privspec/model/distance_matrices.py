"""A distance of the user's own: a public matrix, read and refused with the entry that is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.spans import Span
from privspec.language import syntax
from privspec.model.evaluate import Environment, evaluate
from privspec.model.reports import Failure
from privspec.model.values import as_float, show

Matrix: TypeAlias = NDArray[Any]
"""Distances (n, n): doubles, or fractions in an object array."""


def exact_entry(entry: Any) -> Fraction:
    """A number of a matrix: a double stands for the shortest decimal that gives it, as a file most likely said."""
    return entry if isinstance(entry, Fraction) else Fraction(repr(float(entry)))


def read_matrix(expr: syntax.Expr, public: Environment, size: int, names: Sequence[str]) -> Matrix:
    """A square matrix of distances between `size` values: symmetric, zero on the diagonal, nowhere negative.

    The triangle inequality is not asked for: a requirement holds for each pair as written.
    Raises: Failure PS0318 with the entry that is wrong, and what evaluation raises.
    """
    value = evaluate(expr, public)
    what = " and ".join(names)
    if not isinstance(value, np.ndarray):
        raise Failure("PS0318", expr.span, "a matrix of distances is wanted here", help=MATRIX)
    matrix = value.reshape(1, 1) if value.size == 1 else value
    if matrix.shape != (size, size):
        shape = " x ".join(str(n) for n in matrix.shape)
        raise Failure(
            "PS0318",
            expr.span,
            f"{what} takes {size} values, so {size} x {size} distances are wanted",
            label=f"{shape} here",
            help="one row and one column for each value, in the order of the domain",
        )
    try:
        rounded = as_float(matrix)
    except (TypeError, ValueError, OverflowError) as error:
        raise Failure("PS0318", expr.span, "distances are numbers") from error
    _check_entries(matrix, rounded, expr.span)
    return matrix


MATRIX = "write a distance by name, |x - x'|, ||x - x'||, or a matrix of distances such as csv(\"roads.csv\")"


def _check_entries(matrix: Matrix, rounded: NDArray[np.float64], span: Span) -> None:
    for wrong, words in (
        (~np.isfinite(rounded), "is not finite"),
        (rounded < 0, "is negative"),
        (np.diag(np.diag(rounded)) != 0, "lies on the diagonal: a value is at distance 0 from itself"),
        (np.asarray(matrix != matrix.T, dtype=bool), "is not the same the other way round"),
    ):
        places = np.argwhere(wrong)
        if len(places):
            a, b = (int(i) for i in places[0])
            figure = show(exact_entry(matrix[a, b])) if np.isfinite(rounded[a, b]) else "this"
            message = f"row {a + 1}, column {b + 1} of these distances: {figure} {words}"
            raise Failure("PS0318", span, message, help=_symmetric(matrix, a, b) if "other way" in words else None)


def _symmetric(matrix: Matrix, a: int, b: int) -> str:
    return f"row {b + 1}, column {a + 1} says {show(exact_entry(matrix[b, a]))}; a distance has no direction"


TRIANGLES = 512
"""Matrices of up to so many values are searched for detours that are shorter than the way itself."""


def shortcut(matrix: Matrix) -> tuple[int, int, int] | None:
    """Values a, b, c for which the way from a to c by way of b is shorter than that from a to c, by the most."""
    rounded = as_float(matrix)
    if len(rounded) > TRIANGLES:
        return None
    best, found = 0.0, None
    for b in range(len(rounded)):
        saved = rounded - (rounded[:, b, None] + rounded[None, b, :])
        a, c = (int(i) for i in np.unravel_index(np.argmax(saved), saved.shape))
        if saved[a, c] > max(best, 1e-12 * rounded[a, c]):
            best, found = float(saved[a, c]), (a, b, c)
    return found
