"""Lines with a figure for each party, what a unit of each reaches; and Laplace noise at places that are named.

Whoever sees an output that shows one noisy number alone knows that number. Independent noise of scales b keeps a line
of pure epsilon only if the sum of |v_j| / b_j is at most epsilon for how far v each difference moves the numbers, and
so for mixtures s of them; sum c_j 2 b_j^2 is then at least 2 (sum (c_j s_j^2)^(1/3))^3 / epsilon^2 (Hölder), and of
sizes of errors, each of one noise, sum c_j b_j at least (sum (c_j s_j)^(1/2))^2 / epsilon.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from privspec.kernel.core.linear import Difference, Held, Matrix, Measured, Release
from privspec.kernel.core.linear_privacy import Seen, reached, seen_by
from privspec.kernel.core.numbers import NONE, fraction, sqrt_down, sqrt_up
from privspec.kernel.core.problem import NOTHING, AskedMeasure, Case, Frame, Guarantee, read_guarantees
from privspec.kernel.core.reading import Item, Refused
from privspec.kernel.measures import PURE
from privspec.kernel.moves import Unit, units_of
from privspec.kernel.participation import Alike
from privspec.kernel.quality.linear import LinearRules, listed
from privspec.kernel.quality.stated import judge_loss
from privspec.kernel.rows import beside, laid_out, row_squares
from privspec.kernel.shifts import SCOPE as SHIFTS
from privspec.kernel.shifts import shifted
from privspec.kernel.sizes import cbrt_down
from privspec.kernel.trust import NORMS, Asserted

SCOPE = "laplace"


class PlacedRules(LinearRules):
    """The rules of linear answers, this bound on what noise at their places can be worth, and that of one number."""

    def judge(self, case: Case) -> object:
        bound = case.claims.fields("views", "bound")[1]
        shown = BOUNDS.get(str(bound.value.get("scope"))) if isinstance(bound.value, dict) else None
        if shown is None:
            return super().judge(case)
        release, value, words = self.measured(case)
        derived, names = shown(case.frame, release, bound)
        judge_loss(case, value, derived, names, "such mechanism", words)
        return release


def placed(frame: Frame, release: Release, item: Item) -> tuple[Fraction, tuple[str, ...]]:
    """What the weights of the units of a line prove of the loss, and the words for the mechanisms that it is about."""
    _, number, weights = item.fields("scope", "requirement", "weights")
    line = number.integer(0, len(frame.obligations) - 1)
    costs, moves = loads(frame, release, line)
    shares = [one.exact(0) for one in weights.items(len(moves))]
    if sum(shares) > 1:
        raise weights.wrong("are more than one together")
    moved = [sum((share * move[j] for share, move in zip(shares, moves, strict=True)), NONE) for j in range(len(costs))]
    epsilon, pairs = frame.obligations[line].measure.figures({})["epsilon"], list(zip(costs, moved, strict=True))
    words = (f"independent Laplace noise at {listed([name for name, *_ in release.problem.sites or ()])}, unbiased",)
    if release.problem.errors.sizes:
        return sum((sqrt_down(cost * size) for cost, size in pairs), NONE) ** 2 / epsilon, words
    return 2 * sum((cbrt_down(cost * size**2) for cost, size in pairs), NONE) ** 3 / epsilon**2, words


def loads(frame: Frame, release: Release, line: int) -> tuple[list[Fraction], list[list[Fraction]]]:
    """What the squared noise in each number costs, and how far each unit moves each number that shows by itself.

    Raises: Refused where a number that costs something does not show by itself, or units are not made of numbers.
    """
    block, asked = release.problem, frame.obligations[line]
    if not block.sites or block.worst or frame.trust.means.public or asked.measure.common is not PURE:
        raise Refused("the problem does not confine noise to places under one line of pure epsilon")
    if any(copies != 1 for *_, some in block.sites for copies in some):
        raise Refused("numbers that are added up have no place of their own")
    noise = beside([one for _, one, _ in block.sites])
    costs = _costs(block.errors, laid_out(block.errors.of(noise)))
    shows: dict[int, tuple[int, Fraction]] = {}
    for i in block.rows_of(asked.seen):
        used = [j for j in range(noise.ncols()) if noise[i, j]]
        if len(used) == 1:
            shows[used[0]] = i, abs(fraction(noise[i, used[0]]))
    if any(cost and j not in shows for j, cost in enumerate(costs)):
        raise Refused("some noise does not show by itself")
    units = [pieces for one in block.surely(line) for pieces, _ in units_of(one, block.places)[0]]
    if any(piece.shape != "box" for pieces in units for piece in pieces):
        raise Refused("units are not made of numbers that move by themselves")
    found, target = list[list[Fraction]](), laid_out(block.target)
    for pieces in units:
        step = [(k, piece.amount * share) for piece in pieces for edge in piece.edges for k, share in edge]
        own = {j: sum((fraction(target[i, k]) * v for k, v in step), NONE) / a for j, (i, a) in shows.items()}
        found.append([abs(own.get(j, NONE)) for j in range(len(costs))])
    return costs, found


def _costs(errors: Measured, moved: Matrix) -> list[Fraction]:
    """What the square of each noise costs; its size, where sizes of errors are added up."""
    if not errors.sizes:
        return list(map(fraction, row_squares(moved.transpose(), list(errors.weights))))
    rows = [[abs(fraction(v)) for v in row] for row in moved.tolist()]
    if any(sum(map(bool, row)) > 1 for row in rows):
        raise Refused("the size of an error of several noises is not a sum of theirs")
    pairs = zip(errors.weights, rows, strict=True)
    return [sum(column, NONE) for column in zip(*([w * v for v in row] for w, row in pairs), strict=True)]


BOUNDS = {SCOPE: placed, SHIFTS: shifted}
"""Bounds by their scope, beside those of quadratic forms."""


class PartyRules(PlacedRules):
    """The rules of linear answers, and lines with a figure for each party."""

    def measured(self, case: Case) -> tuple[Release, Fraction, list[str]]:
        release, value, words = super().measured(case)
        judge_asserted(case, release)
        views, _ = case.claims.fields("views", "bound")
        lines = zip(read_guarantees(case.guarantees, case.frame), views.items(), strict=True)
        for guarantee, view in lines:
            if guarantee.obligation.measure.each:
                _conclude(case, release, guarantee, view)
        return release, value, words


def judge_asserted(case: Case, release: Release) -> None:
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
    case: Case, said: Asserted | None, held: Held, step: Fraction, size: int, some: tuple[Difference, ...]
) -> None:
    parts = [part for one in some for part in one.parts]
    if said is None or len(parts) != 1 or some[0].count != 1:
        raise case.problem.wrong(f"moves {held.name} by a unit that nothing is asserted of")
    (part,), shape = parts, {"linf": "box"}.get(said.norm, said.norm)
    more = step * {"l1": Fraction(size), "l2": sqrt_up(Fraction(size))}.get(said.norm, Fraction(1))
    whole = (part.start, part.stop, part.length, part.shape) == (held.start, held.stop, size, shape)
    if not whole or part.dimension != (1 if shape == "box" else size) or part.amount < said.amount + more:
        raise case.problem.wrong(f"moves {said.function} by less than what is asserted, or in another norm")


def units_by_measure(
    release: Release, difference: Difference, each: tuple[AskedMeasure, ...]
) -> tuple[list[str], dict[str, list[Unit]]]:
    """The kind of measure of each party, and for each kind the units of those who have it.

    Raises: Refused where units are not those of the parties in turn, each laid out or in a class of one figure.
    """
    units, count = units_of(difference, release.problem.places)
    at, alike = release.problem.places[difference.parts[0].start]
    kinds, found = [f"{one.name} {one.amounts}" for one in each], dict[str, list[Unit]]()
    if alike.counts != (1,):
        of_class = _kinds_of_classes(alike, kinds)
        if count != 1:
            raise Refused("has a line with figures for parties whose units are not told apart, one at a time")
        for unit in units:
            found.setdefault(of_class[(unit[0][0].at[0] - at) // alike.length], []).append(unit)
        return kinds, found
    (first, *more), _ = units[0]
    if first.shape == "cell" and not more and len(units) == 1:
        # a record of one party comes or goes in a cell of that party's table
        step = len(first.at) // len(each)
        units = [((replace(first, at=first.at[i : i + step]),), 1) for i in range(0, len(first.at), step or 1)]
    if count != 1 or len(units) % len(each) or any(copies > 1 for _, copies in units):
        raise Refused("has a line with figures for parties whose units are not told apart, one at a time")
    own = len(units) // len(each)
    for number, unit in enumerate(units):
        found.setdefault(kinds[number // own], []).append(unit)
    return kinds, found


def _kinds_of_classes(alike: Alike, kinds: list[str]) -> dict[int, str]:
    """The kind of measure that the parties of each class share."""
    if sum(alike.counts) != len(kinds):
        raise Refused("has a line with figures for parties whose units are not told apart, one at a time")
    found, number = dict[int, str](), 0
    for size, own in zip(alike.counts, alike.classes, strict=True):
        if {*kinds[number : number + size], found.setdefault(own, kinds[number])} != {found[own]}:
            raise Refused("has a line with figures that parties of one class do not share")
        number += size
    return found


def by_measure(release: Release, seen: Seen, difference: Difference, each: tuple[AskedMeasure, ...]) -> list[Fraction]:
    """For each party what its units reach, as `reached` has it: those of one measure are bounded together."""
    kinds, found = units_by_measure(release, difference, each)
    figures = {kind: reached(release, seen, difference, NOTHING, (some, 1)) for kind, some in found.items()}
    return [figures[kind] for kind in kinds]


def _conclude(case: Case, release: Release, guarantee: Guarantee, view: Item) -> None:
    """Each party has what its own figure asks; the plan states the largest, which proves one of them."""
    asked, public = guarantee.obligation, case.frame.trust.means.public
    inverse, _ = view.fields("inverse", "scaling")
    seen, moved = seen_by(release, asked.seen, public=public, inverse=inverse), release.problem.differences
    parts = [by_measure(release, seen, one, asked.measure.each) for one in moved[guarantee.number]]
    found = [release.noise.figures(max(figures)) for figures in zip(*parts, strict=True)]
    key, holds = "mu" if release.noise.gaussian else "epsilon", guarantee.holds(*found)
    low, high = (float(end(one[key] for one in found)) for end in (min, max))
    text = f"{', '.join(asked.outputs)}, {asked.neighbours}: {key} from {low:.8g} to {high:.8g}"
    over = "which is more than some party's figure allows, or another is stated"
    tail = "which each party's own figure allows" if holds else over
    case.says("privacy", holds, f"{text}, {tail}", guarantee.number)
