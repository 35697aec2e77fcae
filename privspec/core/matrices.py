"""Exact numbers: dyadic matrices as they stand in plans and are executed, vectors of rationals, and their products."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import lcm, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass

LIST_LIMIT = 4096
"""Matrices of at most this many entries are written as rows of integers, larger ones packed."""
WORD = 61
"""Bits of integers that are kept in 64 of them."""
ENTRY_LIMIT = 2**28
"""Most entries of an array in a plan."""


def pack(raw: bytes) -> str:
    """Bytes as they stand in a plan."""
    return base64.b64encode(raw).decode("ascii")


def unpack(packed: object, size: int) -> bytes:
    """The `size` bytes that `pack` wrote.

    Raises: ValueError.
    """
    if not isinstance(packed, str) or len(packed) != 4 * -(-size // 3):
        raise ValueError("no packed array of this size")
    return base64.b64decode(packed, validate=True)


def extent(shape: object) -> tuple[int, ...]:
    """The shape of an array in a plan, of at most `ENTRY_LIMIT` entries.

    Raises: ValueError.
    """
    if not isinstance(shape, list) or any(type(n) is not int or n < 0 for n in shape) or prod(shape) > ENTRY_LIMIT:
        raise ValueError("its shape is out of range")
    return tuple(shape)


def read_array(data: object) -> NDArray[np.float64]:
    """A public array of a plan: doubles, listed or packed.

    Raises: ValueError.
    """
    if not isinstance(data, dict) or ("values" in data) == ("packed" in data):
        raise ValueError("it needs either values or packed")
    shape = extent(data.get("shape"))
    if "packed" in data:
        array = np.frombuffer(unpack(data["packed"], 8 * prod(shape)), dtype="<f8").astype(np.float64)
    else:
        array = np.array(data["values"])
        if array.dtype.kind not in "iuf" and array.size:
            raise ValueError("its entries are not numbers")
        array = array.astype(np.float64)
    return array.reshape(shape)


@dataclass(frozen=True, eq=False, slots=True)
class DyadicMatrix:
    """The matrix `integers * 2**-exponent`, exactly.

    Args: integers (rows, columns) int64, below 2^62 in size, or Python's integers; exponent any integer.
    """

    integers: NDArray[Any]
    exponent: int

    def __post_init__(self) -> None:
        if self.integers.ndim != 2 or self.integers.dtype not in (np.int64, np.object_):
            raise ValueError("a dyadic matrix takes a 2-dimensional array of whole numbers")
        self.integers.setflags(write=False)

    @classmethod
    def rounded(cls, values: NDArray[np.float64], bits: int = 40) -> DyadicMatrix:
        """The nearest dyadic matrix whose largest entry has about `bits` bits."""
        if not np.all(np.isfinite(values)):
            raise ValueError("not finite")
        largest = float(np.max(np.abs(values), initial=0.0))
        exponent = bits - (int(np.frexp(largest)[1]) if largest > 0 else 0)
        return cls(whole_numbers(values, exponent), exponent)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.integers.shape
        return int(rows), int(columns)

    @property
    def unit(self) -> Fraction:
        """The value of one integer step."""
        return Fraction(1, 2**self.exponent) if self.exponent >= 0 else Fraction(2**-self.exponent)

    def to_float(self) -> NDArray[np.float64]:
        """The nearest doubles."""
        return np.ldexp(self.integers.astype(np.float64), -self.exponent)


def whole_numbers(values: NDArray[np.float64], shift: int) -> NDArray[Any]:
    """The whole numbers nearest to values times 2^shift: int64 if all are below 2^62 in size, else Python's."""
    whole = np.rint(np.ldexp(values, shift))
    if np.abs(whole).max(initial=0.0) < 2.0 ** (WORD + 1):
        return whole.astype(np.int64)
    exact = np.empty(whole.shape, dtype=object)
    exact.reshape(-1)[:] = [int(value) for value in whole.ravel().tolist()]
    return exact


def least_top(values: NDArray[np.float64], places: tuple[NDArray[Any], ...] | None = None) -> float:
    """The least of the largest entries, in size, of all rows and columns that have one; 1 if all are 0.

    Rows, or columns, may be of very different units: each is measured by its largest entry. Args: places, along each
    axis, of values that are the entries of a sparse array; of a row of numbers each is of its own unit.
    """
    at = np.nonzero(values) if places is None else places
    sizes, least = np.abs(values[at] if places is None else values), np.inf
    for axis in at if len(sizes) else ():
        tops = np.zeros(int(axis.max()) + 1)
        np.maximum.at(tops, axis, sizes)
        least = min(least, float(tops[tops > 0].min(initial=np.inf)))
    return least if least < np.inf else 1.0


Integers = NDArray[np.object_]
"""An array of Python integers, of any size."""


@dataclass(frozen=True, eq=False, slots=True)
class ExactVector:
    """The vector `numerators / denominator`, exactly; numerators (n,) Python integers, denominator > 0."""

    numerators: Integers
    denominator: int

    @classmethod
    def of(cls, values: Iterable[Fraction]) -> ExactVector:
        """The values, over their least common denominator."""
        items = list(values)
        denominator = lcm(*(item.denominator for item in items))
        return cls(integers(item.numerator * (denominator // item.denominator) for item in items), denominator)

    @classmethod
    def joined(cls, parts: Sequence[ExactVector]) -> ExactVector:
        """The parts one after another, over the least common denominator."""
        denominator = lcm(*(part.denominator for part in parts)) if parts else 1
        scaled = [part.numerators * (denominator // part.denominator) for part in parts]
        return cls(np.concatenate(scaled) if scaled else integers([]), denominator)

    def fractions(self) -> list[Fraction]:
        """The entries."""
        return [Fraction(n, self.denominator) for n in self.numerators]

    def to_float(self) -> NDArray[np.float64]:
        """The nearest doubles."""
        return np.array([n / self.denominator for n in self.numerators], dtype=np.float64)

    def __len__(self) -> int:
        return len(self.numerators)


def integers(values: Iterable[Any]) -> Integers:
    """A 1-dimensional array of Python integers."""
    items = [int(v) for v in values]
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def multiply(matrix: DyadicMatrix, vector: ExactVector) -> ExactVector:
    """The product, exactly, with a vector or with vectors beside each other, numerators (n, N).

    Both factors are cut into limbs so short that every int64 sum is below 2^62; the limbs are joined as
    Python integers.
    """
    rows, columns = matrix.shape
    if columns != len(vector):
        raise ValueError(f"a matrix with {columns} columns times a vector of {len(vector)}")
    width = (62 - max(columns, 2).bit_length()) // 2
    total: Integers = np.zeros((rows, *vector.numerators.shape[1:]), dtype=object)
    right = list(_limbs(vector.numerators, width))
    for left_shift, left in _limbs(matrix.integers, width):
        for right_shift, part in right:
            total = total + ((left @ part).astype(object) << (left_shift + right_shift))
    if matrix.exponent >= 0:
        return ExactVector(total, vector.denominator << matrix.exponent)
    return ExactVector(total << -matrix.exponent, vector.denominator)


def _limbs(values: NDArray[Any], width: int) -> Iterable[tuple[int, NDArray[np.int64]]]:
    """(shift, limb): the numbers are the sum of limb << shift; the last limb has the sign."""
    bits = int(max(int(values.max(initial=0)), -int(values.min(initial=0)))).bit_length()
    shift = 0
    while bits - shift > width:
        yield shift, ((values >> shift) & ((1 << width) - 1)).astype(np.int64)
        shift += width
    yield shift, (values >> shift).astype(np.int64)
