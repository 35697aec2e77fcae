"""Distances between values of inputs, for metric privacy and individual fairness: exact.

Named distances look at the numbers (or words) of all inputs that a line names, one after another. A matrix of the
user's own gives a distance for every two joint values of these inputs, in row-major order of their domains; it is read
here, and refused with the entry that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, islice, product
from math import lcm, prod
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.core.rounding import root
from privspec.core.spans import Span
from privspec.language import syntax
from privspec.language.walk import names_used
from privspec.model.domains import Numbers, PartialRankingOf, RankingOf, Rankings
from privspec.model.evaluate import Environment, evaluate
from privspec.model.graph import Model
from privspec.model.measures import MeasureAt, Metric
from privspec.model.neighbours import InputBlock
from privspec.model.reports import Failure, Report, listing, suggestion
from privspec.model.requirements import Requirement
from privspec.model.scope import Scope
from privspec.model.targets import environment
from privspec.model.values import Value, as_float, show

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
        raise Failure("PS0318", expr.span, "a matrix of distances is expected here", help=MATRIX)
    matrix = value.reshape(1, 1) if value.size == 1 else value
    if matrix.shape != (size, size):
        shape = " x ".join(str(n) for n in matrix.shape)
        message = f"{what} takes {size} values, so {size} x {size} distances are expected"
        hint = "one row and one column for each value, in the order of the domain"
        raise Failure("PS0318", expr.span, message, label=f"{shape} here", help=hint)
    try:
        rounded = as_float(matrix)
    except (TypeError, ValueError, OverflowError) as error:
        raise Failure("PS0318", expr.span, "distances are numbers") from error
    _check_entries(matrix, rounded, expr.span)
    return matrix


MATRIX = "a distance is a name, |x - x'|, ||x - x'||, or a matrix of distances such as csv(\"roads.csv\")"


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
            back = f"row {b + 1}, column {a + 1} says {show(exact_entry(matrix[b, a]))}; a distance has no direction"
            raise Failure("PS0318", span, message, help=back if "other way" in words else None)


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


def _entries(value: Value) -> list[Any]:
    """A value as a list: of its numbers or words, best first for a ranking."""
    if isinstance(value, np.ndarray):
        return list(value.ravel())
    return list(value) if isinstance(value, tuple) else [value]


def _kendall(a: Value, b: Value) -> int:
    """Pairs of alternatives that the two rankings order differently."""
    place = {item: i for i, item in enumerate(_entries(b))}
    return sum(place[x] > place[y] for x, y in combinations(_entries(a), 2))


def _footrule(a: Value, b: Value) -> int:
    """Sum over the alternatives of how many places they move."""
    place = {item: i for i, item in enumerate(_entries(b))}
    return sum(abs(place[item] - i) for i, item in enumerate(_entries(a)))


Gaps: TypeAlias = NDArray[Any]
"""Sizes of differences (K, k): of whole numbers in 64 bits, or of any size as objects."""
MEASURED: Mapping[str, Callable[[Gaps], Gaps]] = {
    "euclidean": lambda gaps: (gaps * gaps).sum(axis=1),
    "manhattan": lambda gaps: gaps.sum(axis=1),
    "chebyshev": lambda gaps: gaps.max(axis=1, initial=0),
    "hamming": lambda gaps: (gaps != 0).sum(axis=1),
    "discrete": lambda gaps: (gaps != 0).any(axis=1).astype(np.int64),
}
"""From gaps in units of 1 / scale to distances in these units, squared for the euclidean one."""
APART: Mapping[str, Callable[[Value, Value], int]] = {"kendall": _kendall, "footrule": _footrule}
"""Distances of rankings."""
DISTANCES = (*MEASURED, *APART)
"""The distances of the language by name."""

OF_NUMBERS = ("euclidean", "manhattan", "chebyshev")
"""Distances that measure differences of numbers."""
OF_RANKINGS = tuple(APART)
"""Distances that are for rankings and nothing else."""


Places: TypeAlias = NDArray[np.intp]


class Distances(Protocol):
    """How far apart joint values of some inputs are, by their numbers."""

    def levels(self, a: Places, b: Places) -> tuple[Places, Sequence[Fraction]]:
        """The distances of pairs a, b (K,): which of some, in increasing order, each is; and these, squared and exact.

        `root` gives the distances themselves, irrational ones rounded down so that privacy errs on the safe side.
        """


@dataclass(frozen=True, eq=False, slots=True)
class Lattice:
    """A named distance between points whose coordinates are whole numbers over a common denominator `scale`.

    `points` (n, k), in 64 bits where squares of their differences fit; `words` (k,) marks coordinates that are numbers
    of words, which are one apart where they differ.
    """

    metric: str
    points: NDArray[Any]
    words: NDArray[np.bool_]
    scale: int

    def levels(self, a: Places, b: Places) -> tuple[Places, Sequence[Fraction]]:
        found = np.zeros(len(a), dtype=self.points.dtype)
        for start in range(0, len(a), CHUNK):
            part = slice(start, start + CHUNK)
            gaps = np.abs(self.points[a[part]] - self.points[b[part]])
            found[part] = MEASURED[self.metric](np.where(self.words, (gaps != 0).astype(gaps.dtype) * self.scale, gaps))
        if found.dtype == object:  # distances that are rounded to the same number are one
            return _squared(_ranked([root(self._square(Fraction(int(kind)))) for kind in found]))
        kinds, place = np.unique(found, return_inverse=True)
        return place.reshape(-1), [self._square(Fraction(int(kind))) for kind in kinds]

    def _square(self, measured: Fraction) -> Fraction:
        if self.metric in COUNTING:
            return measured**2
        return measured / self.scale**2 if self.metric == "euclidean" else (measured / self.scale) ** 2


@dataclass(frozen=True, eq=False, slots=True)
class Named:
    """A distance of rankings; distances of the single ones add up."""

    values: Sequence[Sequence[Value]]
    apart: Callable[[Value, Value], int]

    def levels(self, a: Places, b: Places) -> tuple[Places, Sequence[Fraction]]:
        known: dict[tuple[int, int], Fraction] = {}
        pairs = list(zip(np.minimum(a, b).tolist(), np.maximum(a, b).tolist(), strict=True))
        for one, other in pairs:
            if (one, other) not in known:
                parts = zip(self.values[one], self.values[other], strict=True)
                known[one, other] = Fraction(sum(self.apart(x, y) for x, y in parts))
        return _squared(_ranked([known[pair] for pair in pairs]))


@dataclass(frozen=True, eq=False, slots=True)
class Given:
    """A distance of the user's own."""

    matrix: Matrix

    def levels(self, a: Places, b: Places) -> tuple[Places, Sequence[Fraction]]:
        entries = self.matrix[a, b]
        if entries.dtype == object:
            return _squared(_ranked([exact_entry(entry) for entry in entries]))
        kinds, place = np.unique(entries, return_inverse=True)
        return place.reshape(-1), [exact_entry(kind) ** 2 for kind in kinds]


def _squared(levels: tuple[Places, Sequence[Fraction]]) -> tuple[Places, Sequence[Fraction]]:
    return levels[0], [kind * kind for kind in levels[1]]


def _ranked(found: Sequence[Fraction]) -> tuple[Places, Sequence[Fraction]]:
    kinds = sorted(set(found))
    number = {kind: i for i, kind in enumerate(kinds)}
    return np.array([number[kind] for kind in found], dtype=np.intp), kinds


CHUNK = 2**18
"""Pairs that are measured at a time."""
LARGEST_SUM = 2**31
"""Coordinates together are below this, so that sums of squares fit 64 bits."""
COUNTING = ("hamming", "discrete")
"""Distances that are the same in all units."""


def _lattice(metric: str, values: Sequence[Sequence[Any]]) -> Lattice:
    """Values as lists of numbers and words on a lattice, as fine as it has to be."""
    columns = list(zip(*values, strict=True))
    words = [not all(isinstance(entry, Fraction) for entry in column) for column in columns]
    coded = [word or metric in COUNTING for word in words]
    numbers = [column for column, code in zip(columns, coded, strict=True) if not code]
    scale = lcm(*(entry.denominator for column in numbers for entry in column))
    points = np.zeros((len(values), len(columns)), dtype=object)
    room = LARGEST_SUM
    for place, (column, code) in enumerate(zip(columns, coded, strict=True)):
        number = {entry: i for i, entry in enumerate(dict.fromkeys(column))}
        low = 0 if code else min(column)
        points[:, place] = [number[entry] if code else int((entry - low) * scale) for entry in column]
        room -= scale if code else max(points[:, place], default=0)
    fits = room > 0 and scale <= LARGEST_SUM
    return Lattice(metric, points.astype(np.int64) if fits else points, np.array(words, dtype=bool), scale)


def distances(model: Model, requirement: Requirement, lists: Mapping[str, Sequence[Value]]) -> Distances:
    """The distances of a line between joint values of the inputs in `lists`, numbered row-major in the line's order.

    Args: lists, all values of those inputs after `wrt` that the mechanism looks at. Of the others the least distance
    counts: they may have changed or not.
    Raises: Failure PS0318 for a matrix that holds no distances, and what its evaluation raises.
    """
    measure = requirement.measure
    assert isinstance(measure, MeasureAt)
    named = [name for name in requirement.wrt if name in lists]
    if measure.matrix is None:
        values = list(product(*(lists[name] for name in named)))
        if measure.metric in OF_RANKINGS:
            each = [domain.innermost for name in named if (domain := model.nodes[name].domain) is not None]
            lengths = [len(one.alternatives) if isinstance(one, RankingOf) else 1 for one in each]
            return Named([_rankings(value, lengths) for value in values], APART[measure.metric])
        return _lattice(measure.metric, [[entry for part in value for entry in _entries(part)] for value in values])
    sizes = [model.nodes[name].value_count for name in requirement.wrt]
    matrix = read_matrix(measure.matrix, environment(model), prod(sizes), requirement.wrt)
    hidden = [i for i, name in enumerate(requirement.wrt) if name not in lists]
    if hidden:
        both = (*hidden, *(len(sizes) + i for i in hidden))
        size = prod(len(lists[name]) for name in named)
        matrix = np.asarray(matrix.reshape(*sizes, *sizes).min(axis=both)).reshape(size, size)
    return Given(matrix)


def _rankings(values: Sequence[Value], lengths: Sequence[int]) -> list[Value]:
    """The single rankings in some values, of so many alternatives each."""
    found: list[Value] = []
    for value, length in zip(values, lengths, strict=True):
        entries = _entries(value)
        found += [tuple(entries[i : i + length]) for i in range(0, len(entries), length)]
    return found


# --- as lines write them ------------------------------------------------------------------------------

NORMS = {"1": "manhattan", "2": "euclidean", "inf": "chebyshev"}
"""Distances that norms of a difference stand for."""
Side: TypeAlias = tuple[list[tuple[str, Span]], bool]
"""The inputs on one side of a difference, and whether they carry a prime."""


@dataclass(frozen=True, slots=True)
class DistanceReader:
    """Reads what follows `distance`; `public` holds parameters and constants, `blocks` the inputs."""

    scope: Scope
    report: Report
    public: Environment
    blocks: Mapping[str, InputBlock]

    def read(self, clause: syntax.Distance, wrt: tuple[str, ...]) -> Metric | None:
        """The distance between values of the inputs `wrt`; None after a complaint."""
        return self.report.told(lambda: self._read(clause, wrt))

    def _read(self, clause: syntax.Distance, wrt: tuple[str, ...]) -> Metric:
        match clause.metric:
            case syntax.Name(id=name) if name in DISTANCES:
                metric = Metric(name)
            case syntax.Absolute(operand=difference):
                metric = self._difference(difference, "manhattan", clause.metric, wrt)
            case syntax.Norm(operand=difference, order=order):
                metric = self._difference(difference, NORMS[order], clause.metric, wrt)
            case matrix:
                return self._matrix(matrix, wrt)
        for name in wrt:
            if name in self.blocks:
                self._check_fit(metric, clause, self.blocks[name])
        return metric

    def _check_fit(self, metric: Metric, clause: syntax.Distance, block: InputBlock) -> None:
        """Whether an input has what the distance measures.

        Raises: Failure PS0309 if it has not; a distance of words that is written as one of numbers is warned of.
        """
        name, element = block.name, block.domain.type.element
        message = hint = None
        if metric.name in OF_RANKINGS and not isinstance(element, Rankings):
            message = f"{metric.name} is a distance of rankings, and {name} is none"
            hint = f"these are for all values: {listing(n for n in DISTANCES if n not in OF_RANKINGS)}"
        elif isinstance(element, Rankings) and isinstance(element.of, PartialRankingOf):
            message = f"{metric.name} does not say how far partial rankings of different lengths are apart"
            hint = "give a matrix of distances"
        elif metric.name in OF_NUMBERS and not isinstance(element, Numbers) and block.layout != "cells":
            if not isinstance(clause.metric, syntax.Name):
                message = f"{name} is made of words, which have no difference"
                hint = "write distance discrete, or distance hamming"
            else:
                told = f"{name} is made of words: they count as one apart where they differ"
                way = "write distance discrete or distance hamming, or give a matrix of distances"
                self.report.warn("PS0309", clause.span, told, others=block.place, help=way)
        if message is not None:
            raise Failure("PS0309", clause.span, message, others=block.place, help=hint)

    def _difference(self, operand: syntax.Expr, name: str, metric: syntax.Expr, wrt: tuple[str, ...]) -> Metric:
        """A distance written as the size of a difference of two values of the inputs."""
        match operand:
            case syntax.Binary(op="-"):
                sides = [_side(operand.left), _side(operand.right)]
            case _:
                sides = []
        known = [side for side in sides if side is not None]
        if len(known) < 2:
            raise Failure("PS0309", metric.span, "this is no distance that is known here", help=MATRIX)
        (left, primed), (right, also_primed) = known
        first, second = ([place for place, _ in side] for side in (left, right))
        one = wrt[0] if len(wrt) == 1 else f"({', '.join(wrt)})"
        hint = f"write |{one} - {one}'|"
        if isinstance(metric, syntax.Norm):
            hint = f"write ||{one} - {one}'||" + ("" if metric.order == "2" else f"_{metric.order}")
        if len(first) == 1 and first[0] not in self.scope:
            first = second = list(wrt) if first == second else []  # any letter stands for a value of the inputs
        for place, span in (*left, *right):
            if place not in wrt and place in self.scope:
                message = f"this line is about {listing(wrt)}, and the distance speaks of {place}"
                raise Failure("PS0309", span, message, help=hint)
        if primed == also_primed or first != second or sorted(first) != sorted(wrt):
            message = f"a distance compares one value of {listing(wrt)} with another"
            raise Failure("PS0309", metric.span, message, help=hint)
        return Metric(name)

    def _matrix(self, expr: syntax.Expr, wrt: tuple[str, ...]) -> Metric:
        """A public matrix of distances between the values of the inputs."""
        if isinstance(expr, syntax.Name) and expr.id not in self.scope:
            hint = suggestion(expr.id, (*DISTANCES, *self.scope.of("parameter", "constant")))
            hint = hint or f"these exist: {', '.join(DISTANCES)}; or {MATRIX}"
            raise Failure("PS0309", expr.span, f"there is no distance {expr.id}", help=hint)
        for declared in (self.scope[name] for name in names_used(expr) if name in self.scope):
            if declared.what in ("input", "intermediate", "output"):
                raise Failure("PS0309", expr.span, "this is no distance that is known here", help=MATRIX)
            if declared.what not in ("parameter", "constant"):
                message = f"distances are public and known: {declared.name} is {declared.with_article}"
                raise Failure("PS0318", expr.span, message, others=declared.here)
        waits = [n for n in names_used(expr) if n in self.scope.of("constant") and n not in self.public.values]
        if not waits and all(name in self.blocks for name in wrt):  # else it is checked when it is given
            self._check_matrix(expr, [self.blocks[name] for name in wrt])
        return Metric(" ".join(self.report.source.slice(expr.span).split()), expr)

    def _check_matrix(self, expr: syntax.Expr, blocks: Sequence[InputBlock]) -> None:
        for block in blocks:
            if block.domain.size is None or block.index is not None:
                what = "belongs to several people" if block.index is not None else "has too many values for a matrix"
                message = f"a matrix lists the distances of all values, and {block.name} {what}"
                raise Failure("PS0318", expr.span, message, others=block.place)
        size = prod(block.domain.size or 0 for block in blocks)
        matrix = read_matrix(expr, self.public, size, [block.name for block in blocks])
        found = shortcut(matrix)
        if found is None:
            return
        a, b, c = found
        way, first, second = (show(exact_entry(matrix[i, j])) for i, j in ((a, c), (a, b), (b, c)))
        start, over, end = (_called(blocks, place) for place in found)
        message = (
            f"a detour is shorter than the way: {start} and {end} are {way} apart, "
            f"and {first} + {second} by way of {over}"
        )
        hint = "the line is taken as it stands, pair by pair: no distance is replaced by another"
        self.report.warn("PS0319", expr.span, message, help=hint)


def _called(blocks: Sequence[InputBlock], place: int) -> str:
    """The joint value with this number, in row-major order."""
    parts: list[object] = []
    for block in reversed(blocks):
        place, own = divmod(place, block.domain.size or 1)
        parts.append(next(islice(block.domain.elements(), own, None)))
    return _shown(parts[0] if len(parts) == 1 else tuple(reversed(parts)))


def _shown(value: object) -> str:
    return f"({', '.join(map(_shown, value))})" if isinstance(value, tuple) else show(value)


def _side(expr: syntax.Expr) -> Side | None:
    """One side of a difference: x, x', x[voter], (x, y), (x', y') or (x, y)'."""
    match expr:
        case syntax.Name(id=name) | syntax.Index(base=syntax.Name(id=name), indices=(syntax.Name(),)):
            return [(name, expr.span)], False
        case syntax.Transpose():
            inner = _side(expr.operand)
            return None if inner is None or inner[1] else (inner[0], True)
        case syntax.TupleOf():
            known = [side for side in map(_side, expr.items) if side is not None]
            if len(known) < len(expr.items) or len({primed for _, primed in known}) != 1:
                return None
            return [place for places, _ in known for place in places], known[0][1]
        case _:
            return None
