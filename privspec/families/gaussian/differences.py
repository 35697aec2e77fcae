"""What units that change do to the coordinates of a problem, as convex sets of doubles: one for a program each.

A difference set is symmetric in effect: only its extreme points matter for a norm. Where units of an input count alike,
coordinates are the sums of their numbers, by the layout of the problem. No privacy rests on these: what a release
reaches is worked out by the kernel, from the exact changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, compress
from math import comb

import numpy as np
import scipy
from numpy.typing import NDArray

from privspec.core.diagnostics import InternalError, SpecError
from privspec.core.records import dataclass
from privspec.core.rounding import Array, sqrt_up
from privspec.kernel.changes import COUNTED, GROUPS, PERSON, Piece, Room
from privspec.kernel.core.linear import Difference
from privspec.kernel.core.reading import Refused
from privspec.kernel.moves import units_of
from privspec.kernel.strategies.dense import moves_of
from privspec.model.graph import Model
from privspec.model.neighbours import UnboundedError
from privspec.model.reports import Failure
from privspec.model.requirements import Requirement
from privspec.problem.linear import moved_by
from privspec.problem.linear_affine import Layout
from privspec.solvers.programs import (
    NORM_VERTICES,
    Balls,
    Boxes,
    Differences,
    Indices,
    Pairs,
    Streams,
    Vectors,
    largest_norm,
)


def of_units(differences: Differences, chosen: NDArray[np.bool_]) -> Differences:
    """Those of units whose coordinates are chosen, of inputs that are laid out; a unit has all of its own or none."""
    match differences:
        case Vectors(matrix, count):
            return Vectors(scipy.sparse.csc_array(matrix[:, chosen[matrix.indices]]), count)
        case Balls(blocks, radius):
            return Balls(tuple(block for block in blocks if chosen[block[0]]), radius)
        case Boxes(blocks, reach, lines):
            own = [bool(chosen[block[0]]) for block in blocks]
            return Boxes(tuple(compress(blocks, own)), reach, tuple(compress(lines, own)))
        case Pairs() | Streams():
            raise InternalError("cells of a table have no parties, nor have units that lie apart")


def _vectors(width: int, indices: Indices, amounts: Iterable[Fraction], count: int = 1) -> Vectors:
    """The differences +-amounts[i] e_(indices[i]), of those that are not 0; or sums of shares of so many of them."""
    values = np.array(list(map(float, amounts)))
    kept = values > 0
    many = int(kept.sum())
    matrix = scipy.sparse.csc_array((values[kept], (indices[kept], np.arange(many))), shape=(width, many))
    return Vectors(matrix, count)


def sets_of(difference: Difference, layout: Layout, target: Array) -> Iterator[tuple[Differences, float]]:
    """Sets whose union holds every difference, in the coordinates of a layout; `target`: what is asked of them.

    With each its cover: how many times larger it is than what units surely do (1 where it is exact).
    """
    (part, *_), amount = difference.parts, difference.parts[0].amount
    if part.shape in PERSON:
        yield _of_person(difference, layout, target)
        return
    together = layout.dimension > 1 or units_of(difference, layout.kernel_places).crowded
    if together and difference.apart is not None:
        size, exactly = part.stop - part.start, bool(difference.exactly)
        yield Streams(size, float(amount), difference.count, difference.apart, exactly, layout.dimension), 1.0
        return
    if part.shape not in COUNTED:
        yield from _of_units(difference, layout)
        return
    start, many = layout.kernel_places[part.start][0], difference.count
    cells = np.arange(start, start + part.stop - part.start, dtype=np.intp)
    if part.shape != "swap":
        yield _vectors(layout.width, cells, [amount] * len(cells)), 1.0
        return
    # a record that moves to a cell of another party is seen as one that stays with its own, where all their
    # records count alike: such parties are one set, and noise of every cell hides what any of them does
    alike: dict[bytes, list[Indices]] = {}
    for run in cells.reshape(-1, part.length):
        alike.setdefault(target[:, run].tobytes(), []).append(run)
    for runs in alike.values():
        yield Pairs(np.concatenate(runs), float(amount * many), len(runs)), 1.0


def _of_person(difference: Difference, layout: Layout, target: Array) -> tuple[Differences, float]:
    """What one person changes: listed, or else within a ball or a sum of sizes, whichever asks for less noise."""
    both = difference.parts[0].shape == PERSON[1]
    rooms = [Room.of(p.stop - p.start, int(p.amount), p.most, p.cells) for p in difference.parts]
    listed = moves_of(rooms, difference.parts[0].shape)
    starts = [(layout.kernel_places[p.start][0], p.stop - p.start) for p in difference.parts]
    at = np.concatenate([np.arange(start, start + size, dtype=np.intp) for start, size in starts])
    if listed is not None:
        entries = [(at[i], k, v) for k, one in enumerate(listed) for i, v in one.items()]
        rows, columns, values = (list(some) for some in zip(*entries, strict=True))
        shape = (layout.width, len(listed))
        return Vectors(scipy.sparse.csc_array((np.array(values, dtype=np.float64), (rows, columns)), shape=shape)), 1.0
    square = sum(r.most // r.each * r.each**2 + (r.most % r.each) ** 2 for r in rooms) * (1 + both)
    amounts = [Fraction(p.amount * len(rooms) * (1 + both)) for p in difference.parts for _ in range(p.start, p.stop)]
    cover = float(max(Fraction(room.most, room.each) for room in rooms)) * len(rooms)
    used = target[:, at]
    lengths = np.linalg.norm(used, axis=0) * np.array(list(map(float, amounts)))
    if np.linalg.norm(used, 2) * np.sqrt(square) < lengths.max(initial=0.0):
        return Balls((at,), float(sqrt_up(Fraction(square)))), cover
    return _vectors(layout.width, at, amounts), cover


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
        # what units do at once is no more than any of them so many times
        amounts = (unit[0].amount * count for unit in units)
        alone = all(copies == 1 for _, copies in listed)
        yield _vectors(layout.width, np.concatenate(blocks), amounts, count if alone else 1), float(spare)
        return
    least = min(piece.amount for unit in units for piece in unit)
    if shapes == {"l1"}:
        sums = [sum((piece.amount for piece in unit), Fraction(0)) * count for unit in units]
        sizes = [size for size, block in zip(sums, blocks, strict=True) for _ in block]
        cover = spare * max(sizes) / (least * count)
        yield _vectors(layout.width, np.concatenate(blocks), sizes), float(cover)
    elif shapes == {"l2"}:
        radii = [_radius(unit) for unit in units]
        for radius in sorted(set(radii)):
            some = tuple(block for block, own in zip(blocks, radii, strict=True) if own == radius)
            cover = spare * radius / least
            yield Balls(some, float(radius * count)), float(cover)
    else:
        yield from ((found, float(spare)) for found in _boxes(units, blocks, count, layout.width))


def _radius(unit: Sequence[Piece]) -> Fraction:
    return unit[0].amount if len(unit) == 1 else sqrt_up(sum((piece.amount**2 for piece in unit), Fraction(0)))


def _boxes(units: Sequence[Sequence[Piece]], blocks: Sequence[Indices], count: int, width: int) -> Iterator[Boxes]:
    """Boxes, in as few sets as agree on how far each number moves."""
    sets: list[tuple[list[tuple[Indices, Array]], dict[int, Fraction]]] = []
    for unit, block in zip(units, blocks, strict=True):
        reach = {i: piece.amount * count for piece in unit if not piece.along for i in piece.at}
        fits = ((some, known) for some, known in sets if all(known.get(i, r) == r for i, r in reach.items()))
        some, known = next(fits, ([], {}))
        if not some:
            sets.append((some, known))
        some.append((block, _lines(unit, block, count)))
        known.update(reach)
    for some, known in sets:
        kept, lines = zip(*some, strict=True)
        amounts = np.array([float(known.get(i, 0)) for i in range(width)])
        yield Boxes(kept, amounts, lines if any(own.size for own in lines) else ())


def _lines(unit: Sequence[Piece], block: Indices, count: int) -> Array:
    """What moves as one in a unit: a column for each such, a row for each of its coordinates."""
    moving = [dict(piece.edges[0]) for piece in unit if piece.along]
    entries = [[float(own.get(i, Fraction(0)) * count) for own in moving] for i in block.tolist()]
    return np.array(entries).reshape(len(block), len(moving))


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
        layout = Layout.laid(model.blocks)
        found = [part for one in moved for part in sets_of(one, layout, matrix)]
    except (UnboundedError, Failure, SpecError, Refused):
        return None
    if not found:
        return None
    lengths = [_largest(matrix, part) for part, _ in found]
    return Sensitivity(max(lengths), all(cover == 1 and _exact(part) for part, cover in found))


def _largest(matrix: Array, part: Differences) -> float:
    if isinstance(part, Pairs) and not _exact(part):
        return 2 * float(np.linalg.norm(matrix[:, part.coordinates], axis=0).max(initial=0.0)) * part.scale
    return float(largest_norm(matrix, part) ** 0.5)


def _exact(part: Differences) -> bool:
    """Whether the largest change is worked out for such differences, and not bounded."""
    match part:
        case Vectors(count=count):
            return count == 1
        case Pairs(coordinates):
            return len(coordinates) <= PAIRS_LIMIT
        case Boxes():
            return all(edges.shape[1] <= NORM_VERTICES for _, edges in part.edges())
    return not isinstance(part, Streams)
