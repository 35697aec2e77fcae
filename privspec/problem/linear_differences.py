"""What units that change do to the coordinates of a problem, as convex sets: one for a program, or for a sensitivity.

A difference set is symmetric in effect: only its extreme points matter for a norm. All amounts are exact. Where units
of an input count alike, coordinates are the sums of their numbers, by the layout of the problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, compress
from math import comb
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import InternalError, SpecError
from privspec.core.records import dataclass
from privspec.core.rounding import Array, as_float, sqrt_up
from privspec.core.sparse import SparseMatrix
from privspec.kernel.changes import GROUPS, PERSON, Piece, Room
from privspec.kernel.core.linear import COUNTED, Difference
from privspec.kernel.core.reading import Refused
from privspec.kernel.moves import units_of
from privspec.kernel.strategies.dense import moves_of
from privspec.model.graph import Model
from privspec.model.neighbours import UnboundedError
from privspec.model.reports import Failure
from privspec.model.requirements import Requirement
from privspec.problem.linear import moved_by
from privspec.problem.linear_affine import Layout

Indices: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, eq=False, slots=True)
class VectorDifferences:
    """The differences +-amounts[i] e_(indices[i]).

    `exact` False: the true differences lie in k times the convex hull of these, which holds them all. `moved`: how
    many units change at once; each may change answers that the others leave, and so their rounding. `mixed`: units of
    which any coordinates change together, and so the rounding of any answer that they have a part in. `alike`: cells
    that one record may have shares in, likewise.
    """

    indices: Indices
    amounts: NDArray[Any]
    exact: bool = True
    moved: int = 1
    mixed: tuple[Indices, ...] = ()
    alike: tuple[Indices, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class PairDifferences:
    """The differences scale (e_i - e_j), i != j: records that move between cells, `moved` of them.

    `runs`: the cells are those of so many parties, one after another, whose records no question tells apart.
    """

    coordinates: Indices
    scale: Fraction = Fraction(1)
    exact: bool = True
    moved: int = 1
    alike: tuple[Indices, ...] = ()
    runs: int = 1


@dataclass(frozen=True, eq=False, slots=True)
class BallDifferences:
    """Every vector of l2 norm at most `radius` on one of the blocks of coordinates."""

    blocks: tuple[Indices, ...]
    radius: Fraction
    exact: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class BoxDifferences:
    """Every vector with |d_i| <= reach[i] on one of the blocks; reach (n,) of fractions over all coordinates.

    `lines`: besides, each block moves as one along its own (n_b, k) of them, fractions, by a number from -1 to 1 each.
    """

    blocks: tuple[Indices, ...]
    reach: NDArray[Any]
    exact: bool = True
    lines: tuple[NDArray[Any], ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class StreamDifferences:
    """Vectors of `dimension` numbers, a coordinate each, of which up to `count` change by one of length `radius`.

    They lie `apart` from each other or, unless `exactly`, more.
    """

    size: int
    radius: Fraction
    count: int
    apart: int
    exactly: bool
    dimension: int


@dataclass(frozen=True, eq=False, slots=True)
class PersonDifferences:
    """What one person's records in tables change: `columns` (n, N) of them, whose hull with their opposites is all.

    `rooms`: for each table its first coordinate, and where records may lie; `both`: they come and go at once.
    """

    columns: SparseMatrix
    rooms: tuple[tuple[int, Room], ...]
    both: bool = False
    exact: bool = True
    alike: tuple[Indices, ...] = ()


def of_units(differences: Differences, chosen: NDArray[np.bool_]) -> Differences:
    """Those of units whose coordinates are chosen, of inputs that are laid out; a unit has all of its own or none."""
    match differences:
        case VectorDifferences(indices, amounts, exact, moved, mixed, alike):
            kept, blocks = chosen[indices], tuple(block for block in mixed if chosen[block[0]])
            return VectorDifferences(indices[kept], amounts[kept], exact, moved, blocks, alike)
        case BallDifferences(blocks, radius, exact):
            return BallDifferences(tuple(block for block in blocks if chosen[block[0]]), radius, exact)
        case BoxDifferences(blocks, reach, exact, lines):
            own = [bool(chosen[block[0]]) for block in blocks]
            return BoxDifferences(tuple(compress(blocks, own)), reach, exact, tuple(compress(lines, own)))
        case PairDifferences() | PersonDifferences() | StreamDifferences():
            raise InternalError("cells of a table have no parties, nor have units that lie apart")


Differences: TypeAlias = (
    VectorDifferences | PairDifferences | BallDifferences | BoxDifferences | PersonDifferences | StreamDifferences
)


def sets_of(moved: Iterable[Difference], layout: Layout, target: Array) -> Iterator[tuple[Differences, float]]:
    """Sets whose union holds every difference, in the coordinates of a layout; `target`: what is asked of them.

    With each its cover: how many times larger it is than what units surely do (1 where it is exact).
    """
    for difference in moved:
        (part, *_), amount = difference.parts, difference.parts[0].amount
        if part.shape in PERSON:
            yield _of_person(difference, layout, target)
            continue
        together = layout.dimension > 1 or units_of(difference, layout.kernel_places).crowded
        if together and difference.apart is not None:
            yield (
                StreamDifferences(
                    part.stop - part.start,
                    amount,
                    difference.count,
                    difference.apart,
                    bool(difference.exactly),
                    layout.dimension,
                ),
                1.0,
            )
            continue
        if part.shape not in COUNTED:
            yield from _of_units(difference, layout)
            continue
        start, many = layout.kernel_places[part.start][0], difference.count
        cells = np.arange(start, start + part.stop - part.start, dtype=np.intp)
        if part.shape == "swap":
            # a record that moves to a cell of another party is seen as one that stays with its own, where all their
            # records count alike: such parties are one set, and noise of every cell hides what any of them does
            alike: dict[bytes, list[Indices]] = {}
            for run in cells.reshape(-1, part.length):
                alike.setdefault(target[:, run].tobytes(), []).append(run)
            for runs in alike.values():
                found = np.concatenate(runs)
                yield PairDifferences(found, amount * many, moved=int(amount) * many, runs=len(runs)), 1.0
        else:
            yield VectorDifferences(cells, _fractions([amount] * len(cells)), moved=int(amount)), 1.0


def _of_person(difference: Difference, layout: Layout, target: Array) -> tuple[Differences, float]:
    """What one person changes: listed, or else within a ball or a sum of sizes, whichever asks for less noise."""
    both = difference.parts[0].shape == PERSON[1]
    rooms = tuple(
        (layout.kernel_places[p.start][0], Room.of(p.stop - p.start, int(p.amount), p.most, p.cells))
        for p in difference.parts
    )
    listed = moves_of([room for _, room in rooms], difference.parts[0].shape)
    parts = zip(rooms, difference.parts, strict=True)
    at = np.concatenate([np.arange(start, start + p.stop - p.start, dtype=np.intp) for (start, _), p in parts])
    if listed is not None:
        entries = [(at[i], k, v) for k, one in enumerate(listed) for i, v in one.items()]
        rows, columns, values = (list(some) for some in zip(*entries, strict=True))
        found = SparseMatrix.of((layout.width, len(listed)), rows, columns, values)
        return PersonDifferences(found, rooms, both), 1.0
    square = sum(r.most // r.each * r.each**2 + (r.most % r.each) ** 2 for _, r in rooms) * (1 + both)
    amounts = [Fraction(p.amount * len(rooms) * (1 + both)) for p in difference.parts for _ in range(p.start, p.stop)]
    cover = float(max(Fraction(room.most, room.each) for _, room in rooms)) * len(rooms)
    used = target[:, at]
    lengths = np.linalg.norm(used, axis=0) * as_float(_fractions(amounts))
    if np.linalg.norm(used, 2) * np.sqrt(square) < lengths.max(initial=0.0):
        return BallDifferences((at,), sqrt_up(Fraction(square)), exact=False), cover
    moved = sum(room.most for _, room in rooms) * (1 + both)
    return VectorDifferences(at, _fractions(amounts), exact=False, moved=moved), cover


def _of_units(difference: Difference, layout: Layout) -> Iterator[tuple[Differences, float]]:
    """Several units at once are covered by so many times one where groups of them are too many to list.

    That is what they can do if there are as many alike.
    """
    change = units_of(difference, layout.kernel_places).grouped()
    listed, count = change.units, change.count
    spare = max(Fraction(count, min(count, copies)) for _, copies in listed)
    units = [unit for unit, _ in listed]
    shapes = {piece.shape for unit in units for piece in unit}
    if len(shapes) > 1 and count > 1 and spare == count and comb(len(units), count) <= GROUPS:
        units, count, spare = [sum(some, ()) for some in combinations(units, count)], 1, Fraction(1)
    blocks = [np.array([i for piece in unit if not piece.along for i in piece.at], dtype=np.intp) for unit in units]
    if all(len(block) == 1 for block in blocks):
        amounts = _fractions(unit[0].amount * count for unit in units)
        yield VectorDifferences(np.concatenate(blocks), amounts, spare == 1, count), float(spare)
        return
    least = min(piece.amount for unit in units for piece in unit)
    if shapes == {"l1"}:
        sums = [sum((piece.amount for piece in unit), Fraction(0)) * count for unit in units]
        sizes = _fractions(size for size, block in zip(sums, blocks, strict=True) for _ in block)
        cover = spare * max(sizes) / (least * count)
        yield VectorDifferences(np.concatenate(blocks), sizes, cover == 1, count, tuple(blocks)), float(cover)
    elif shapes == {"l2"}:
        radii = [_radius(unit) for unit in units]
        for radius in sorted(set(radii)):
            some = tuple(block for block, own in zip(blocks, radii, strict=True) if own == radius)
            cover = spare * radius / least
            yield BallDifferences(some, radius * count, cover == 1), float(cover)
    else:
        yield from _boxes(units, blocks, count, spare, layout.width, shapes == {"box"})


def _radius(unit: Sequence[Piece]) -> Fraction:
    return unit[0].amount if len(unit) == 1 else sqrt_up(sum((piece.amount**2 for piece in unit), Fraction(0)))


def _boxes(
    units: Sequence[Sequence[Piece]], blocks: Sequence[Indices], count: int, spare: Fraction, width: int, exact: bool
) -> Iterator[tuple[Differences, float]]:
    """Boxes, in as few sets as agree on how far each number moves."""
    sets: list[tuple[list[tuple[Indices, NDArray[Any]]], dict[int, Fraction]]] = []
    for unit, block in zip(units, blocks, strict=True):
        reach = {i: piece.amount * count for piece in unit if not piece.along for i in piece.at}
        fits = ((some, known) for some, known in sets if all(known.get(i, r) == r for i, r in reach.items()))
        some, known = next(fits, ([], {}))
        if not some:
            sets.append((some, known))
        some.append((block, _lines(unit, block, count)))
        known.update(reach)
    for some, known in sets:
        amounts = _fractions(known.get(i, Fraction(0)) for i in range(width))
        kept, lines = zip(*some, strict=True)
        lines = lines if any(own.size for own in lines) else ()
        yield BoxDifferences(kept, amounts, exact and spare == 1, lines), float(spare)


def _lines(unit: Sequence[Piece], block: Indices, count: int) -> NDArray[Any]:
    """What moves as one in a unit: a column for each such, a row for each of its coordinates."""
    moving = [dict(piece.edges[0]) for piece in unit if piece.along]
    entries = (own.get(i, Fraction(0)) * count for i in block.tolist() for own in moving)
    return _fractions(entries).reshape(len(block), len(moving))


def _fractions(values: Iterable[Fraction]) -> NDArray[Any]:
    listed = list(values)
    found = np.empty(len(listed), dtype=object)
    found[:] = listed
    return found


# --- how far values move --------------------------------------------------------------------------

PAIRS_LIMIT = 512
"""Cells up to which all pairs of them are compared."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest Euclidean change of a value between neighbours; an upper bound unless `exact`."""

    l2: float
    exact: bool


def sensitivity(model: Model, requirement: Requirement, matrix: Array) -> Sensitivity | None:
    """The largest change of `matrix @ u` between the neighbours of a requirement.

    Returns: None if there is no limit, the inputs are not made of numbers, or units change in too many ways to list.
    """
    try:
        moved = moved_by(model, requirement)
        found = [_largest(matrix, part) for part, _ in sets_of(moved, Layout.laid(model.blocks), matrix)]
    except (UnboundedError, Failure, SpecError, Refused):
        return None
    if not found:
        return None
    return Sensitivity(max(one.l2 for one in found), all(one.exact for one in found))


def _largest(matrix: Array, part: Differences) -> Sensitivity:
    match part:
        case VectorDifferences():
            lengths = np.linalg.norm(matrix[:, part.indices] * as_float(part.amounts), axis=0)
            return Sensitivity(float(lengths.max(initial=0.0)), part.exact)
        case PersonDifferences():
            lengths = np.linalg.norm(matrix @ part.columns.toarray(), axis=0)
            return Sensitivity(float(lengths.max(initial=0.0)), part.exact)
        case PairDifferences():
            return _pairs(matrix[:, part.coordinates] * float(part.scale), exact=part.exact)
        case BallDifferences():
            norms = [np.linalg.norm(matrix[:, block], 2) for block in part.blocks]
            return Sensitivity(float(max(norms)) * float(part.radius), part.exact)
        case BoxDifferences():
            reach = as_float(part.reach)
            # the triangle inequality: exact only where one coordinate moves
            lengths = np.linalg.norm(matrix * reach, axis=0)
            lines = part.lines or (np.zeros((0, 0)),) * len(part.blocks)
            sums = [
                float(lengths[block].sum() + np.linalg.norm(matrix[:, block] @ as_float(own), axis=0).sum())
                if own.size
                else float(lengths[block].sum())
                for block, own in zip(part.blocks, lines, strict=True)
            ]
            alone = all(len(block) == 1 for block in part.blocks)
            return Sensitivity(max(sums), part.exact and alone)
        case StreamDifferences():
            lengths = np.sort(np.linalg.norm(matrix, axis=0))[-part.count :]
            return Sensitivity(float(lengths.sum()) * float(part.radius), exact=False)


def _pairs(columns: NDArray[np.float64], *, exact: bool) -> Sensitivity:
    count = columns.shape[1]
    if count > PAIRS_LIMIT:
        return Sensitivity(2 * float(np.linalg.norm(columns, axis=0).max(initial=0.0)), exact=False)
    gram = columns.T @ columns
    squares = np.add.outer(np.diag(gram), np.diag(gram)) - 2 * gram
    return Sensitivity(float(np.sqrt(max(squares.max(initial=0.0), 0.0))), exact)
