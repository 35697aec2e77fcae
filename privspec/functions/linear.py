"""Linear maps of vectors, the matrices of the same maps, and elementary functions, entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np

from privspec.model.domains import Anything, Numbers, Type
from privspec.model.library import Argument, Arguments, Bound, Function, FunctionError
from privspec.model.targets import Labels
from privspec.model.values import Array, as_float


def vector(arguments: Arguments, position: int, function: str) -> int:
    """The extent of an argument that must be a vector of numbers.

    Raises: FunctionError PS0207.
    """
    kind = arguments[position].type
    if not isinstance(kind.element, Numbers | Anything) or len(kind.shape) != 1:
        raise FunctionError(f"{function} takes a vector, and this is {kind.describe()}", position, code="PS0207")
    return kind.shape[0]


def numbers(arguments: Arguments, position: int, function: str) -> Type:
    """The type of an argument that must be made of numbers.

    Raises: FunctionError PS0208.
    """
    kind = arguments[position].type
    if not isinstance(kind.element, Numbers | Anything):
        raise FunctionError(f"{function} takes numbers, and this is {kind.describe()}", position, code="PS0208")
    return kind


def public_whole(argument: Argument, position: int, what: str, least: int = 1, most: int = 2**31) -> int:
    """The value of an argument that must be a public whole number.

    Raises: FunctionError PS0206.
    """
    value = argument.value
    if isinstance(value, Fraction) and value.denominator == 1 and least <= value <= most:
        return int(value)
    upper = f" to {most}" if most < 2**31 else " on"
    raise FunctionError(f"{what} must be a public whole number from {least}{upper}", position)


ENTRIES_LIMIT = 2**26
"""Largest matrix that a constructor lays out."""


def prefix_sums(values: Array) -> Array:
    """Running totals along axis 0, (k, *batch) -> (k, *batch)."""
    return np.cumsum(as_float(values), axis=0)


def suffix_sums(values: Array) -> Array:
    """Totals of what is left along axis 0, (k, *batch) -> (k, *batch)."""
    backwards: Array = np.cumsum(as_float(values)[::-1], axis=0)
    return backwards[::-1]


def range_sums(values: Array) -> Array:
    """Totals of every range lo..hi of axis 0, ordered by lo then hi, (k, *batch) -> (k (k + 1) / 2, *batch)."""
    array = as_float(values)
    before = np.concatenate([np.zeros((1, *array.shape[1:])), np.cumsum(array, axis=0)])
    low, high = np.triu_indices(array.shape[0])
    totals: Array = before[high + 1] - before[low]
    return totals


def total(values: Array) -> Array:
    """Sum along axis 0, (k, *batch) -> batch."""
    summed: Array = np.sum(as_float(values), axis=0)
    return summed


def differences(values: Array) -> Array:
    """Each entry less the one before it along axis 0, (k, *batch) -> (k - 1, *batch)."""
    return np.diff(as_float(values), axis=0)


def _vector_map(
    name: str,
    apply: Callable[[Array], Array],
    shape: Callable[[int], tuple[int, ...]],
    least: int = 1,
    labels: Callable[[int], Labels] | None = None,
) -> Callable[[Arguments], Bound]:
    """Bind a linear map of one vector."""

    def bind(arguments: Arguments) -> Bound:
        extent = vector(arguments, 0, name)
        if extent < least:
            raise FunctionError(f"{name} needs at least {least} entries", 0)
        return Bound(Type(shape(extent)), apply, linear=True, labels=None if labels is None else lambda: labels(extent))

    return bind


def range_labels(extent: int) -> Labels:
    """The first and the last entry of every range, counted from 1, in the order of `range_sums`."""
    low, high = np.triu_indices(extent)
    return {"from": low + 1, "to": high + 1}


def _bind_total(arguments: Arguments) -> Bound:
    """Any shape is added up to one number; the compiler sees the flat vector of entries."""
    kind = numbers(arguments, 0, "total")
    rank = len(kind.shape)
    if not rank:
        raise FunctionError("total takes a vector or an array, and this is one number", 0, code="PS0207")
    return Bound(Type(), lambda values: np.sum(as_float(values), axis=tuple(range(rank))), linear=True)


def _matrix(name: str, make: Callable[[int], Array], rows: Callable[[int], int]) -> Callable[[Arguments], Bound]:
    """Bind a public matrix given by its number of columns."""

    def bind(arguments: Arguments) -> Bound:
        n = public_whole(arguments[0], 0, f"the size of {name}")
        if rows(n) * n > ENTRIES_LIMIT:
            raise FunctionError(f"{name}({n}) would have {rows(n) * n:,} entries", 0, code="PS0225")
        return Bound(Type((rows(n), n)), lambda: make(n), data=())

    return bind


def range_matrix(n: int) -> Array:
    """The 0/1 matrix of `range_sums`, (n (n + 1) / 2, n)."""
    low, high = np.triu_indices(n)
    columns = np.arange(n)
    inside: Array = ((columns >= low[:, None]) & (columns <= high[:, None])).astype(np.float64)
    return inside


def _filled(value: float) -> Callable[[Arguments], Bound]:
    """Bind a public array full of one number."""

    def bind(arguments: Arguments) -> Bound:
        shape = tuple(public_whole(a, i, "a size") for i, a in enumerate(arguments.positional))
        size = int(np.prod(np.array(shape, dtype=object)))
        if size > ENTRIES_LIMIT:
            raise FunctionError(f"this array would have {size:,} entries", 0, code="PS0225")
        return Bound(Type(shape), lambda: np.full(shape, value), data=())

    return bind


def _bind_diagonal(arguments: Arguments) -> Bound:
    n = vector(arguments, 0, "diagonal")
    if n * n > ENTRIES_LIMIT:
        raise FunctionError(f"this matrix would have {n * n:,} entries", 0, code="PS0225")

    def apply(values: Any) -> Array:
        array = as_float(values)
        result = np.zeros((n, *array.shape))
        result[np.arange(n), np.arange(n)] = array
        return result

    return Bound(Type((n, n)), apply, linear=True)


VECTORS: Mapping[str, Function] = {
    f.name: f
    for f in (
        Function(
            "prefix_sums",
            "prefix_sums(v)",
            "The running totals v[1], v[1] + v[2], ..., one for each entry of the vector v.",
            _vector_map("prefix_sums", prefix_sums, lambda k: (k,)),
            linear=True,
        ),
        Function(
            "suffix_sums",
            "suffix_sums(v)",
            "The totals of v from each entry to the end.",
            _vector_map("suffix_sums", suffix_sums, lambda k: (k,)),
            linear=True,
        ),
        Function(
            "range_sums",
            "range_sums(v)",
            "The totals v[lo] + ... + v[hi] of every range lo <= hi, ordered by lo, then by hi: n (n + 1) / 2 of them.",
            _vector_map("range_sums", range_sums, lambda k: (k * (k + 1) // 2,), labels=range_labels),
            linear=True,
        ),
        Function("total", "total(v)", "The sum of all entries.", _bind_total, linear=True, symmetric=True),
        Function(
            "differences",
            "differences(v)",
            "Each entry of the vector v less the one before it: one fewer than v has.",
            _vector_map("differences", differences, lambda k: (k - 1,), least=2),
            linear=True,
        ),
        Function(
            "identity",
            "identity(n)",
            "The n x n identity matrix (public).",
            _matrix("identity", lambda n: np.eye(n), lambda n: n),
        ),
        Function(
            "prefix_matrix",
            "prefix_matrix(n)",
            "The n x n matrix with prefix_matrix(n) @ v = prefix_sums(v): ones on and below the diagonal (public).",
            _matrix("prefix_matrix", lambda n: np.tril(np.ones((n, n))), lambda n: n),
        ),
        Function(
            "range_matrix",
            "range_matrix(n)",
            "The matrix with range_matrix(n) @ v = range_sums(v): n (n + 1) / 2 rows (public).",
            _matrix("range_matrix", range_matrix, lambda n: n * (n + 1) // 2),
        ),
        Function("ones", "ones(n), ones(m, n)", "An array full of ones (public).", _filled(1.0), arity=(1, 4)),
        Function("zeros", "zeros(n), zeros(m, n)", "An array full of zeros (public).", _filled(0.0), arity=(1, 4)),
        Function(
            "diagonal",
            "diagonal(v)",
            "The square matrix with the vector v on its diagonal and zeros elsewhere.",
            _bind_diagonal,
            linear=True,
        ),
    )
}


def _entrywise(
    name: str, apply: Callable[[Any], Any], exact: Callable[[Fraction], Fraction] | None = None
) -> Callable[[Arguments], Bound]:
    def bind(arguments: Arguments) -> Bound:
        kind = numbers(arguments, 0, name)

        def checked(value: Any) -> Any:
            if isinstance(value, Fraction) and exact is not None:
                return exact(value)
            with np.errstate(all="ignore"):
                result = apply(as_float(value))
            if not np.all(np.isfinite(result)):
                raise FunctionError(f"{name} has no finite value here", 0)
            return Fraction(float(result)) if np.shape(result) == () else result

        return Bound(kind, checked)

    return bind


def _sign(value: Fraction) -> Fraction:
    return Fraction((value > 0) - (value < 0))


ELEMENTARY: Mapping[str, Function] = {
    f.name: f
    for f in (
        Function("sqrt", "sqrt(e)", "The square root, entry by entry (nearest double).", _entrywise("sqrt", np.sqrt)),
        Function("exp", "exp(e)", "The exponential, entry by entry (nearest double).", _entrywise("exp", np.exp)),
        Function("log", "log(e)", "The natural logarithm, entry by entry (nearest double).", _entrywise("log", np.log)),
        Function("abs", "abs(e)", "The absolute value; also written |e|.", _entrywise("abs", np.abs, abs)),
        Function(
            "floor",
            "floor(e)",
            "The largest whole number not above, entry by entry.",
            _entrywise("floor", np.floor, lambda v: Fraction(floor(v))),
        ),
        Function(
            "ceil",
            "ceil(e)",
            "The least whole number not below, entry by entry.",
            _entrywise("ceil", np.ceil, lambda v: Fraction(ceil(v))),
        ),
        Function("sign", "sign(e)", "-1, 0 or 1, entry by entry.", _entrywise("sign", np.sign, _sign)),
    )
}

FUNCTIONS: Mapping[str, Function] = {**VECTORS, **ELEMENTARY}
