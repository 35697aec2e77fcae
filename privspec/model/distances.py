"""Distances between values of a domain, for metric privacy and individual fairness: exact, roots rounded down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from privspec.model.pointwise import root
from privspec.model.values import Value

Apart: TypeAlias = Callable[[Value, Value], Fraction]


def _entries(value: Value) -> list[Any]:
    """A value as a list: of its numbers or words, best first for a ranking."""
    if isinstance(value, np.ndarray):
        return list(value.ravel())
    return list(value) if isinstance(value, tuple) else [value]


def _gaps(a: Value, b: Value) -> list[Fraction]:
    """Sizes of the differences, entry by entry; words are one apart where they differ."""
    return [
        abs(x - y) if isinstance(x, Fraction) and isinstance(y, Fraction) else Fraction(x != y)
        for x, y in zip(_entries(a), _entries(b), strict=True)
    ]


def _euclidean(a: Value, b: Value) -> Fraction:
    return root(sum((gap * gap for gap in _gaps(a, b)), Fraction(0)))


def _manhattan(a: Value, b: Value) -> Fraction:
    return sum(_gaps(a, b), Fraction(0))


def _chebyshev(a: Value, b: Value) -> Fraction:
    return max(_gaps(a, b), default=Fraction(0))


def _hamming(a: Value, b: Value) -> Fraction:
    return Fraction(sum(gap != 0 for gap in _gaps(a, b)))


def _discrete(a: Value, b: Value) -> Fraction:
    return Fraction(any(gap != 0 for gap in _gaps(a, b)))


def _kendall(a: Value, b: Value) -> Fraction:
    """Pairs of alternatives that the two rankings order differently."""
    place = {item: i for i, item in enumerate(_entries(b))}
    return Fraction(sum(place[x] > place[y] for x, y in combinations(_entries(a), 2)))


def _footrule(a: Value, b: Value) -> Fraction:
    """Sum over the alternatives of how many places they move."""
    place = {item: i for i, item in enumerate(_entries(b))}
    return Fraction(sum(abs(place[item] - i) for i, item in enumerate(_entries(a))))


DISTANCES: Mapping[str, Apart] = {
    "euclidean": _euclidean,
    "manhattan": _manhattan,
    "chebyshev": _chebyshev,
    "hamming": _hamming,
    "discrete": _discrete,
    "kendall": _kendall,
    "footrule": _footrule,
}
"""The distances of the language by name."""


@dataclass(frozen=True, eq=False, slots=True)
class Distances:
    """How far apart the values of a list are, two at a time."""

    values: Sequence[Value]
    apart: Apart

    def between(self, a: int, b: int) -> Fraction:
        """The distance of two values by number; roots are rounded down, so that privacy errs on the safe side."""
        return self.apart(self.values[a], self.values[b])
