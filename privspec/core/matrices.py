"""Exact dyadic matrices: integers times a power of two, as they stand in plans and are executed."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

LIST_LIMIT = 4096
"""Matrices of at most this many entries are written as rows of integers, larger ones packed."""
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

    Args: integers (rows, columns) int64, below 2^62 in size; exponent any integer.
    """

    integers: NDArray[np.int64]
    exponent: int

    def __post_init__(self) -> None:
        if self.integers.ndim != 2 or self.integers.dtype != np.int64:
            raise ValueError("a dyadic matrix takes a 2-dimensional int64 array")
        self.integers.setflags(write=False)

    @classmethod
    def rounded(cls, values: NDArray[np.float64], bits: int = 40) -> DyadicMatrix:
        """The nearest dyadic matrix whose largest entry has about `bits` bits."""
        if not np.all(np.isfinite(values)):
            raise ValueError("not finite")
        largest = float(np.max(np.abs(values), initial=0.0))
        exponent = bits - (int(np.frexp(largest)[1]) if largest > 0 else 0)
        return cls(np.rint(np.ldexp(values, exponent)).astype(np.int64), exponent)

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

    def to_json(self) -> dict[str, Any]:
        """The form that stands in a plan: whole numbers in order when few, else base64 of little-endian int64."""
        head: dict[str, Any] = {"shape": list(self.shape), "unit": f"2^{-self.exponent}"}
        if self.integers.size <= LIST_LIMIT:
            return head | {"rows": self.integers.reshape(-1).tolist()}
        raw = self.integers.astype("<i8").tobytes()
        return head | {"data": pack(raw), "sha256": hashlib.sha256(raw).hexdigest()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> DyadicMatrix:
        """Read what `to_json` wrote.

        Raises: ValueError if it is not of that form.
        """
        try:
            rows, columns = extent(data["shape"])
            if not str(data["unit"]).startswith("2^"):
                raise ValueError("unit is not a power of two")
            exponent = -int(str(data["unit"])[2:])
            if abs(exponent) > 4096:
                raise ValueError("out of range")
            if ("rows" in data) == ("data" in data):
                raise ValueError("it needs either rows or data")
            if "rows" in data:
                if not all(type(entry) is int for entry in data["rows"]):
                    raise ValueError("its entries are not whole numbers")
                integers = np.array(data["rows"], dtype=np.int64).reshape(rows, columns)
            else:
                raw = unpack(data["data"], 8 * rows * columns)
                if hashlib.sha256(raw).hexdigest() != data.get("sha256"):
                    raise ValueError("it is damaged")
                integers = np.frombuffer(raw, dtype="<i8").astype(np.int64).reshape(rows, columns)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"not a dyadic matrix: {error}") from error
        return cls(integers, exponent)
