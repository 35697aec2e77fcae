"""Exact integer arithmetic: vectors of rationals over one denominator, and dyadic matrices times them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.matrices import DyadicMatrix

Integers = NDArray[np.object_]
"""An array of Python integers, of any size."""


@dataclass(frozen=True, eq=False, slots=True)
class ExactVector:
    """The vector `numerators / denominator`, exactly; numerators (n,) Python integers, denominator > 0."""

    numerators: Integers
    denominator: int

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
    """The product, exactly.

    Both factors are cut into limbs so short that every int64 sum is below 2^62; the limbs are joined as
    Python integers.
    """
    rows, columns = matrix.shape
    if columns != len(vector):
        raise ValueError(f"a matrix with {columns} columns times a vector of {len(vector)}")
    width = (62 - max(columns, 2).bit_length()) // 2
    total = integers([0] * rows)
    right = list(_limbs_of_integers(vector.numerators, width))
    for left_shift, left in _limbs_of_matrix(matrix.integers, width):
        for right_shift, part in right:
            total = total + ((left @ part).astype(object) << (left_shift + right_shift))
    if matrix.exponent >= 0:
        return ExactVector(total, vector.denominator << matrix.exponent)
    return ExactVector(total << -matrix.exponent, vector.denominator)


def _limbs_of_matrix(values: NDArray[np.int64], width: int) -> Iterable[tuple[int, NDArray[np.int64]]]:
    """(shift, limb): the matrix is the sum of limb << shift; the last limb has the sign."""
    bits = int(max(int(values.max(initial=0)), -int(values.min(initial=0)))).bit_length()
    shift = 0
    while bits - shift > width:
        yield shift, (values >> shift) & ((1 << width) - 1)
        shift += width
    yield shift, values >> shift


def _limbs_of_integers(values: Integers, width: int) -> Iterable[tuple[int, NDArray[np.int64]]]:
    bits = max((abs(v).bit_length() for v in values), default=0)
    shift = 0
    while bits - shift > width:
        yield shift, ((values >> shift) & ((1 << width) - 1)).astype(np.int64)
        shift += width
    yield shift, (values >> shift).astype(np.int64)
