"""What units that change do to the coordinates of a problem: pieces that move by themselves.

Units of a class move alike, and stand for each other; a list of pieces is as large a set as the difference says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from privspec.kernel.changes import Piece, Unit, Units
from privspec.kernel.core.linear import Difference, ExchangeableUnits, InputLayout, Part, Places, Release
from privspec.kernel.core.numbers import sqrt_up
from privspec.kernel.core.problem import PlanUnderCheck
from privspec.kernel.core.reading import Refused
from privspec.kernel.trust import NORMS, Asserted


def units_of(difference: Difference, places: Places | None = None) -> Units:
    """What a difference moves: every unit in the sums of units that count alike.

    Raises: Refused where units that change together do not count alike together, or lie apart in several inputs.
    """
    if difference.apart is not None and len(difference.parts) > 1:
        raise Refused("has units in several inputs that change at distances from each other")
    parts, found = difference.parts, dict[tuple[Piece, ...], int]()
    runs = [_runs(part, (places or {}).get(part.start), alone=len(parts) == 1) for part in parts]
    for unit, copies in runs[0] if len(runs) == 1 else _at_once(runs):
        found[unit] = found.get(unit, 0) + copies
    count = min(difference.count, sum(found.values()))
    return Units(tuple(found.items()), count, difference.apart, bool(difference.exactly))


def _at_once(runs: list[list[Unit]]) -> Iterator[Unit]:
    """Units that move something in each of several parts: the first of each part, then the second, and so on."""
    left = [run[::-1] for run in runs]
    while any(left):
        step, unit = min(run[-1][1] for run in left if run), tuple[Piece, ...]()
        for run in filter(None, left):
            moved, count = run.pop()
            unit += moved
            if count > step:
                run.append((moved, count - step))
        yield _as_one(unit), step


def _as_one(unit: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """What several inputs move as one moves as one in all of them."""
    rest, lines = ([piece for piece in unit if (piece.along is None) == plain] for plain in (True, False))
    if len(lines) < 2:
        return unit
    at = tuple(i for piece in lines for i in piece.at)
    return (*rest, Piece(at, "box", Fraction(1), along=tuple(a for piece in lines for a in piece.along or ())))


def _runs(part: Part, place: tuple[int, ExchangeableUnits] | None, *, alone: bool) -> list[Unit]:
    """What the units of a part move, in turn; in any order if it is `alone`."""
    at, alike = place or (part.start, ExchangeableUnits(part.stop - part.start, (1,), (0,)))
    if alike.length % _width(part):
        raise Refused("vectors do not lie in units that count alike")
    if alike.counts != (1,) and not (alone and alike.length % part.length == 0):
        return _runs_of_classes(part, at, alike)
    starts = range(at, at + len(alike.numbers), part.length)
    return [(_moved(part, i, part.length), n) for i, n in zip(starts, alike.numbers[:: part.length], strict=True)]


def _runs_of_classes(part: Part, at: int, alike: ExchangeableUnits) -> list[Unit]:
    """The same where units of a class have one coordinate for each of their numbers, together."""
    each, length = alike.length, part.length
    if length == part.stop - part.start:
        return [(tuple(p for k, n in enumerate(alike.copies) for p in _moved(part, at + k * each, each, n)), 1)]
    if length != each:
        raise Refused("units that change together do not count alike together")
    pairs = zip(alike.counts, alike.classes, strict=True)
    return [(_moved(part, at + kind * each, each), count) for count, kind in pairs]


def _width(part: Part) -> int:
    """How many coordinates move as one vector."""
    return 1 if part.shape == "box" else part.dimension


def _moved(part: Part, start: int, length: int, times: int = 1) -> tuple[Piece, ...]:
    """The pieces of so many coordinates, each of which adds up so many numbers."""
    width, amount = _width(part), part.amount * times
    starts = range(start, start + length, width)
    found = tuple(Piece(range(i, i + width), part.shape, amount, part.most, part.cells) for i in starts)
    if not part.middle:
        return found
    return (*found, Piece(range(start, start + length), "box", Fraction(1), along=(part.middle * times,) * length))


# --- units of parties with figures of their own --------------------------------------------------------------------


def units_by_measure(change: Units, place: tuple[int, ExchangeableUnits], kinds: list[str]) -> dict[str, Units]:
    """For each kind of measure the units of those parties who have it; `kinds`: that of each party.

    Args: place, the first coordinate of the input, and which of its units are added up.

    Raises: Refused where units are not those of the parties in turn, each laid out or in a class of one figure.
    """
    units, found = list(change.units), dict[str, list[Unit]]()
    at, alike = place
    if change.count != 1:
        raise Refused(TOGETHER)
    if alike.counts != (1,):
        of_class = _kinds_of_classes(alike, kinds)
        each = [of_class[(unit[0].at[0] - at) // alike.length] for unit, _ in units]
    else:
        (first, *more), _ = units[0]
        if first.shape == "cell" and not more and len(units) == 1:
            # a record of one party comes or goes in a cell of that party's table
            step = len(first.at) // len(kinds)
            units = [((replace(first, at=first.at[i : i + step]),), 1) for i in range(0, len(first.at), step or 1)]
        if len(units) % len(kinds) or any(copies > 1 for _, copies in units):
            raise Refused(TOGETHER)
        own = len(units) // len(kinds)
        each = [kinds[number // own] for number in range(len(units))]
    for kind, unit in zip(each, units, strict=True):
        found.setdefault(kind, []).append(unit)
    return {kind: replace(change, units=tuple(some)) for kind, some in found.items()}


TOGETHER = "has a line with figures for parties whose units are not told apart, one at a time"


def _kinds_of_classes(alike: ExchangeableUnits, kinds: list[str]) -> dict[int, str]:
    """The kind of measure that the parties of each class share."""
    if sum(alike.counts) != len(kinds):
        raise Refused(TOGETHER)
    found, number = dict[int, str](), 0
    for size, own in zip(alike.counts, alike.classes, strict=True):
        if {*kinds[number : number + size], found.setdefault(own, kinds[number])} != {found[own]}:
            raise Refused("has a line with figures that parties of one class do not share")
        number += size
    return found


# --- functions that nobody here sees into ------------------------------------------------------------------------


def judge_asserted(case: PlanUnderCheck, release: Release) -> None:
    """Of an input that is read through a function, every line moves what the author says, with room for rounding.

    Values are rounded to the nearest point of a grid, so that a difference grows by a step in each at most.
    Raises: Refused where a unit, a norm or an amount is another than what is said.
    """
    block, frame = release.problem, case.frame
    for held, step, data in zip(block.held, release.steps, frame.data, strict=True):
        size, known = held.stop - held.start, {one.neighbours: one for one in data.asserted or ()}
        if data.asserted is None:
            continue
        named = [one.wrt for one in frame.obligations] + [one.wrt for one in frame.views]
        same = len({one.function for one in data.asserted}) == len({one.norm for one in data.asserted}) == 1
        joined = any(data.name in wrt and wrt != (data.name,) for wrt in named)
        if held.cells or held.ball or data.party or not same or joined:
            raise case.problem.wrong(f"reads {data.name} through a function in a way that nobody asserts")
        for asked, some in zip(frame.obligations, block.differences, strict=True):
            if data.name in asked.wrt:
                _moves_as_said(case, known.get(asked.neighbours), held, step * held.width, size, some)
        for view in frame.views:
            if data.name in view.wrt and not view.difference.absent:
                some = block.moved(view.difference, frame, view)
                _moves_as_said(case, known.get(view.neighbours), held, step * held.width, size, some)
        for one in data.asserted:
            text = f"that {one.neighbours} of {data.name} moves {one.function} by at most {one.amount}"
            text += f" ({NORMS[one.norm]}) is what the author says, line {one.line}, and nothing here proves it"
            case.says("asserted", True, text)


def _moves_as_said(
    case: PlanUnderCheck,
    said: Asserted | None,
    held: InputLayout,
    step: Fraction,
    size: int,
    some: tuple[Difference, ...],
) -> None:
    parts = [part for one in some for part in one.parts]
    if said is None or len(parts) != 1 or some[0].count != 1:
        raise case.problem.wrong(f"moves {held.name} by a unit that nothing is asserted of")
    (part,), shape = parts, {"linf": "box"}.get(said.norm, said.norm)
    more = step * {"l1": Fraction(size), "l2": sqrt_up(Fraction(size))}.get(said.norm, Fraction(1))
    whole = (part.start, part.stop, part.length, part.shape) == (held.start, held.stop, size, shape)
    if not whole or part.dimension != (1 if shape == "box" else size) or part.amount < said.amount + more:
        raise case.problem.wrong(f"moves {said.function} by less than what is asserted, or in another norm")
