"""Distances of neighbouring rows, exactly: squares as whole numbers over one scale, so that roots never appear."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations
from math import lcm, prod
from typing import Any, TypeAlias

import numpy as np

from privspec.certify.finite.ratios import Indices, LogRatio
from privspec.certify.finite.relations import GROUP_ENTRIES, Units
from privspec.certify.finite.worlds import Facet, Rows, part_of
from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import Malformed
from privspec.language import syntax
from privspec.model.evaluate import evaluate
from privspec.model.graph import Model
from privspec.model.measures import Lipschitz, MetricDP
from privspec.model.requirements import Requirement
from privspec.model.targets import environment

LARGEST = 2**31
"""Largest sum of the widths of all coordinates, as whole numbers over the common denominator: squares fit 62 bits."""

Squares: TypeAlias = Callable[[Indices], Indices]
"""From gaps (m, m, coordinates) to squared distances (m, m)."""

METRICS: Mapping[str, Squares] = {
    "euclidean": lambda gaps: (gaps * gaps).sum(axis=2),
    "manhattan": lambda gaps: gaps.sum(axis=2) ** 2,
    "chebyshev": lambda gaps: gaps.max(axis=2, initial=0) ** 2,
    "hamming": lambda gaps: np.count_nonzero(gaps, axis=2).astype(np.int64) ** 2,
    "discrete": lambda gaps: np.any(gaps, axis=2).astype(np.int64),
}
"""Distances of vectors by name; words are one apart where they differ."""
COUNTING = ("hamming", "discrete")
"""Distances that are the same whatever the units of the numbers."""


def _kendall(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Pairs of alternatives in another order."""
    place = {item: i for i, item in enumerate(b)}
    return sum(place[x] > place[y] for x, y in combinations(a, 2))


def _footrule(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Places that alternatives move."""
    place = {item: i for i, item in enumerate(b)}
    return sum(abs(place[item] - i) for i, item in enumerate(a))


RANKINGS: Mapping[str, Callable[[Sequence[Any], Sequence[Any]], int]] = {"kendall": _kendall, "footrule": _footrule}
"""Distances of rankings by name."""


@dataclass(frozen=True, eq=False, slots=True)
class Apart:
    """Ordered pairs of rows a * rows + b, sorted, each with the least distance of two of their worlds.

    `kind`: for each pair the place of its distance in `squares`; a distance is the root of squares / scale^2.
    """

    rows: int
    codes: Indices
    kind: Indices
    squares: Indices
    scale: int

    def ratios(self, epsilon: Fraction) -> list[LogRatio]:
        """The ratio of each kind."""
        return [LogRatio(epsilon * epsilon * Fraction(int(s), self.scale * self.scale)) for s in self.squares]

    def partners(self, a: int) -> tuple[Indices, Indices]:
        """The neighbours of one row, and the kinds of their distances."""
        low, high = np.searchsorted(self.codes, [a * self.rows, (a + 1) * self.rows])
        return self.codes[low:high] % self.rows, self.kind[low:high]

    def kinds_of(self, a: Indices, b: Indices) -> Indices | None:
        """The kinds of some pairs; None if one of them is no pair of neighbours."""
        asked = a * self.rows + b
        if not bool(np.all(np.isin(asked, self.codes))):
            return None
        return self.kind[np.searchsorted(self.codes, asked)]


def apart(model: Model, rows: Rows, requirement: Requirement) -> Apart:
    """The rows that a requirement with a distance compares.

    Raises: NotUnderstood, Unbounded, Malformed for a matrix that holds no distances.
    """
    measure = requirement.measure
    if not isinstance(measure, MetricDP | Lipschitz):
        raise NotUnderstood(f"a distance for {measure.describe()}")
    known = {facet.part.name for facet in rows.worlds.facets}
    wrt = tuple(name for name in requirement.wrt if name in known)
    facets = [rows.worlds.facets[rows.worlds.position(name)] for name in wrt]
    if any(facet.counted for facet in facets):
        raise NotUnderstood("distances of inputs that are held as counts")
    places = np.array([rows.worlds.places(name) for name in wrt], dtype=np.int64).reshape(len(wrt), rows.worlds.size)
    found: Measured
    if measure.matrix is not None:
        found = _matrix(model, requirement, measure.matrix, places, facets)
    elif measure.metric in RANKINGS:
        found = Rankings(facets, places, RANKINGS[measure.metric])
    elif measure.metric in METRICS:
        found = Named(facets, places, measure.metric)
    else:
        raise NotUnderstood(f"the distance {measure.metric}")
    codes, squares = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for move in Units(model, rows.worlds).moves(requirement.neighbours, wrt):
        if move.sets.size * move.sets.shape[1] > GROUP_ENTRIES:
            raise NotUnderstood("too many pairs with a distance")
        for worlds in move.sets:
            own = rows.row_of[worlds]
            different = own[:, None] != own[None, :]
            codes.append((own[:, None] * rows.size + own[None, :])[different])
            squares.append(found.squares(worlds)[different])
    return _nearest(rows.size, np.concatenate(codes), np.concatenate(squares), found.scale)


def _nearest(rows: int, codes: Indices, squares: Indices, scale: int) -> Apart:
    """Each pair once, with its least distance."""
    order = np.lexsort((squares, codes))
    codes, squares = codes[order], squares[order]
    first = np.ones(len(codes), dtype=bool)
    first[1:] = codes[1:] != codes[:-1]
    kinds, kind = np.unique(squares[first], return_inverse=True)
    return Apart(rows, codes[first], kind.astype(np.int64), kinds, scale)


# --- what is measured ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Measured:
    """Inputs of a line with, for each, the place of its value in every world (inputs, worlds)."""

    facets: Sequence[Facet]
    places: Indices

    @cached_property
    def scale(self) -> int:
        """What distances are multiplied with to be whole numbers."""
        return 1

    def squares(self, at: Indices) -> Indices:
        """Squared distances (m, m) of some worlds, times the scale squared."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Named(Measured):
    """A distance of vectors: of the numbers and words of all inputs, one after another."""

    metric: str

    @cached_property
    def _flat(self) -> list[list[tuple[Any, ...]]]:
        """For each input its values as flat tuples; a ranking is the list of its alternatives."""
        return [
            [tuple(chain.from_iterable(v if isinstance(v, tuple) else (v,) for v in flat)) for flat in facet.flat]
            for facet in self.facets
        ]

    @cached_property
    def scale(self) -> int:
        """The common denominator of all numbers."""
        scale = 1
        numbers = {v for facet in self.facets for v in facet.part.items if isinstance(v, Fraction)}
        for value in numbers if self.metric not in COUNTING else ():
            scale = lcm(scale, value.denominator)
            if scale > LARGEST:
                raise NotUnderstood("the coordinates are too long to compare exactly")
        return scale

    @cached_property
    def _columns(self) -> tuple[Indices, Any]:
        """Coordinates (worlds, c) as whole numbers, and which of them are words."""
        columns: list[Indices] = []
        words: list[bool] = []
        room = LARGEST
        for flat, at in zip(self._flat, self.places, strict=True):
            number = self._numbers({v for value in flat for v in value})
            extent = max(number.values()) - min(number.values())
            worded = any(not isinstance(v, Fraction) for v in number) or self.metric in COUNTING
            room -= max(extent, self.scale) * len(flat[0])
            if room <= 0:
                raise NotUnderstood("the coordinates are too long to compare exactly")
            columns.append(np.array([[number[v] for v in value] for value in flat], dtype=np.int64)[at])
            words.extend([worded] * len(flat[0]))
        return np.concatenate(columns, axis=1), np.array(words, dtype=bool)

    def _numbers(self, values: set[Any]) -> dict[Any, int]:
        """Numbers times the scale, from the least on; where there are words, numbers that tell values apart."""
        if self.metric in COUNTING or any(not isinstance(v, Fraction) for v in values):
            return {value: i for i, value in enumerate(sorted(values, key=str))}
        low = min(values)
        return {value: int((value - low) * self.scale) for value in values}

    def squares(self, at: Indices) -> Indices:
        """By the gaps of all coordinates."""
        columns, words = self._columns
        gaps = np.abs(columns[at][:, None, :] - columns[at][None, :, :])
        return METRICS[self.metric](np.where(words, (gaps != 0) * self.scale, gaps))


@dataclass(frozen=True, eq=False)
class Rankings(Measured):
    """A distance of rankings; those of several rankings add up."""

    between: Callable[[Sequence[Any], Sequence[Any]], int]

    def squares(self, at: Indices) -> Indices:
        """Ranking by ranking."""
        total = np.zeros((len(at), len(at)), dtype=np.int64)
        for facet, places in zip(self.facets, self.places, strict=True):
            values = [facet.flat[place] for place in places[at]]
            total += np.array([[sum(map(self.between, a, b)) for b in values] for a in values], dtype=np.int64)
        return total**2


@dataclass(frozen=True, eq=False)
class Matrix(Measured):
    """A distance of the user's own: whole numbers (n, n) over the scale, joint values row-major in the line's order."""

    entries: Indices
    denominator: int

    @cached_property
    def scale(self) -> int:
        """The common denominator of the entries."""
        return self.denominator

    def squares(self, at: Indices) -> Indices:
        """Looked up."""
        sizes = [facet.size for facet in self.facets]
        joint = np.ravel_multi_index(tuple(self.places[:, at]), sizes)
        found: Indices = self.entries[joint[:, None], joint[None, :]] ** 2
        return found


def _matrix(
    model: Model, requirement: Requirement, expr: syntax.Expr, places: Indices, facets: Sequence[Facet]
) -> Matrix:
    """A double stands for its shortest decimal. Inputs that rows do not look at may have changed or not.

    Raises: Malformed if it is no matrix of distances.
    """
    value = evaluate(expr, environment(model))
    sizes = [part_of(model, model.nodes[name]).count for name in requirement.wrt]
    size = prod(sizes)
    if not isinstance(value, np.ndarray) or value.shape != (size, size):
        raise Malformed(f"line {requirement.line}: the distances are no matrix of all values")
    exact = [v if isinstance(v, Fraction) else Fraction(repr(float(v))) for v in value.ravel().tolist()]
    scale = lcm(*{v.denominator for v in exact})
    if min(exact) < 0 or max(exact) * scale > LARGEST or any(exact[i * size + i] for i in range(size)):
        raise Malformed(
            f"line {requirement.line}: the matrix holds no distances, or longer ones than are compared here"
        )
    entries = np.array([int(v * scale) for v in exact], dtype=np.int64).reshape(*sizes, *sizes)
    looked_at = {facet.part.name for facet in facets}
    hidden = [i for i, name in enumerate(requirement.wrt) if name not in looked_at]
    least = entries.min(axis=(*hidden, *(len(sizes) + i for i in hidden))) if hidden else entries
    own = prod(facet.size for facet in facets)
    return Matrix(facets, places, least.reshape(own, own), scale)
