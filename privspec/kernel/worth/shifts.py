"""One number: no mechanism has less loss than multipliers of shifts show (noise/notes/shift-bound.md).

Let neighbours move the answer by any part of its sensitivity, or by all of it only. A law f of the error d, or an
average of any mechanism's laws over data of any size, has (f(d) - e^eps f(d + s))+ add up to at most delta for each of
these shifts s and for -s. So for multipliers z_s(d) from 0 to most_s, linear between the points of a grid of errors,

    E[loss] >= min over d of { loss(d) + C(d) } - delta sum most_s,    C(d) = sum over s of z_s(d) - e^eps z_s(d - s).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from math import comb, exp, expm1, prod, sqrt
from typing import TypeVar

from flint import ctx, fmpq, fmpq_mat

from privspec.kernel.changes import COUNTED, PERSON, Piece
from privspec.kernel.core.linear import Difference, Linear, Measured, Owner, Release, Released, owners, read_matrix
from privspec.kernel.core.numbers import BITS, ZERO, ball, end, exp_down, exp_up, fraction, rational
from privspec.kernel.core.problem import Frame, Obligation
from privspec.kernel.core.reading import JsonNode, Refused, frozen
from privspec.kernel.divergences import HockeyStick
from privspec.kernel.measures import APPROXIMATE, PURE
from privspec.kernel.moves import units_of
from privspec.kernel.rows import identity, laid_out
from privspec.kernel.worth import LowerBound

SCOPE = "shifts"
LIMIT = "limit"
ADDITIVE = "additive noise of any law"
ALONE = "additive noise of any law that each party draws alone"
EVERY = "all mechanisms of any kind, for data of any size"
OF_PURE = {
    ADDITIVE: "additive noise of any law of the same pure epsilon",
    ALONE: "additive noise of any law of the same pure epsilon that each party draws alone",
    EVERY: "all mechanisms of the same pure epsilon, for data of any size",
}
"""Of lines that have a delta, which such mechanisms do not use."""
SAME_EPSILON = (PURE, APPROXIMATE)
SEVERAL = 2**14
"""Most coefficients of the errors of several numbers."""
LARGEST = 2**20
"""Most points of the grid, and multipliers."""
MULTIPLIED = ("cells", "shifts", "start", "multipliers")
Number = TypeVar("Number", Fraction, float)


@frozen
class Reach:
    """How far neighbours of a line move the answer, by which parts of it, and what a bound on it is about.

    `parts`: of so many equal parts by every whole number, as what moves in steps; None: by any part.
    """

    sensitivity: Fraction
    parts: int | None
    among: str
    epsilon: Fraction
    delta: Fraction


def reach(frame: Frame, block: Linear, line: int) -> Reach:
    """What neighbours of a line can do to a single number.

    Raises: Refused where there are several, or its line is of another measure or of other neighbours.
    """
    if block.size > 1:
        raise Refused("is about more than one number")
    return Reach(*_moved(frame, block, line), *_amounts(frame.obligations[line]))


def _moved(frame: Frame, block: Linear, line: int) -> tuple[Fraction, int | None, str]:
    """The same but for the amounts of the line."""
    asked, row = frame.obligations[line], _row(block)
    found = list[tuple[Fraction, Fraction | None]]()
    for difference in block.surely(line):
        change = units_of(difference, block.places).grouped()
        left, each = change.count, [(_furthest(row, unit), copies, unit) for unit, copies in change.units]
        furthest, used = ZERO, tuple[Piece, ...]()
        for size, copies, unit in sorted(each, key=lambda one: one[:2], reverse=True):
            taken = min(copies, left) if size else 0
            if taken:
                furthest += size * taken
                left -= taken
                used += unit
        found.append((furthest, _step(frame, block, asked, difference, used)))
    sensitivity, step = max(found, key=_best, default=(ZERO, None))
    if not sensitivity:
        raise Refused("has neighbours that do not move the answer")
    words = EVERY if _of_any_size(block, asked) else ADDITIVE
    return sensitivity, None if step is None else int(sensitivity / step), words


def _best(found: tuple[Fraction, Fraction | None]) -> tuple[Fraction, bool, Fraction]:
    """By how far something moves the answer, and then in how small steps."""
    return found[0], found[1] is None, -(found[1] or ZERO)


def _of_parties(frame: Frame, block: Linear, line: int) -> list[tuple[Fraction, int | None, int]]:
    """The same of what each party holds, where each adds noise alone: how far, by which parts, and how many do so."""
    asked, owner, best = frame.obligations[line], owners(frame, block), dict[Owner, tuple[Fraction, Fraction | None]]()
    row = _row(block)
    for difference in block.surely(line):
        for unit, _ in units_of(difference, block.places).grouped().units:
            for who in {owner[piece.at[0]] for piece in unit}:
                own = tuple(piece for piece in unit if owner[piece.at[0]] == who)
                found = _furthest(row, own), _step(frame, block, asked, difference, own)
                best[who] = max(best.get(who, found), found, key=_best)
    moving = ((size, step, count) for (_, count), (size, step) in best.items() if size)
    return [(size, None if step is None else int(size / step), count) for size, step, count in moving]


def words_of_any_law(frame: Frame, block: Linear, asked: dict[int, DirectionLaw], excess: Fraction) -> str | None:
    """What a bound of squares by laws along directions is about, a law for each of some lines; None where none is.

    Along every direction noise of any law is a law of one number (noise/notes/shift-bound.md). A secure sum shows what
    a curator would; `excess`: by how much more coalitions have shares add up to.
    """
    lines, means = [frame.obligations[line] for line in asked], frame.trust.means
    kinds = {one.measure.common for one in lines}
    if not kinds <= set(SAME_EPSILON):
        return None
    kinds = {PURE if law.multipliers else one.measure.common for one, law in zip(lines, asked.values(), strict=True)}
    people = any(part.shape in PERSON for some in block.differences for one in some for part in one.parts)
    every = not people and all(_of_any_size(block, one) for one in lines)
    classes = ALONE if means.alone else EVERY if every and excess == 1 else ADDITIVE
    return "shares of " * (excess != 1) + (classes if kinds <= {PURE} else OF_PURE[classes])


def along(frame: Frame, block: Linear, line: int, item: JsonNode) -> DirectionLaw:
    """What neighbours of a line that move an error by one ask of its law; by multipliers, if they are given."""
    parts = None if by_any_part(frame, block, line) else 1
    if item.absent:
        return DirectionLaw(parts)
    cells, shifts, *given = item.fields(*MULTIPLIED)
    fine, some = _in_cells(cells, shifts)
    if parts and some != [fine]:
        raise shifts.wrong("divide what neighbours move as a whole")
    return DirectionLaw(parts, fine, read_multipliers(some, *given))


def by_any_part(frame: Frame, block: Linear, line: int) -> bool:
    """Whether neighbours that move something may also move any part of it: real numbers, which may come as 0."""
    parts = [part for one in block.surely(line) for part in one.parts]
    ends, adding = {(one.start, one.stop) for one in parts}, any(one.adding for one in frame.obligations[line].units)
    if any(one.shape not in ("box", "l1", "l2") for one in parts):
        return False
    return all(
        data.domain.startswith("[")
        and not held.cells
        and (not adding or (held.lower is not None and held.upper is not None and held.lower <= 0 <= held.upper))
        for held, data in zip(block.held, frame.data, strict=True)
        if (held.start, held.stop) in ends
    )


def _in_cells(cells: JsonNode, shifts: JsonNode) -> tuple[int, list[int]]:
    """In how many cells neighbours move an error, and the shifts by some of them, in order."""
    fine = cells.integer(1, LARGEST)
    some = [one.integer(1, fine) for one in shifts.items()]
    if any(a >= b for a, b in zip([0, *some], some, strict=False)) or not some:
        raise shifts.wrong("are not shifts in order")
    return fine, some


def _of_any_size(block: Linear, asked: Obligation) -> bool:
    """Whether there may be any number of records of each kind: in cells, or numbers that all count alike."""
    if asked.measure.of.local:
        return False  # parties that report are as many as there are
    adding = all(unit.adding for unit in asked.units)
    rows = block.target.tolist()
    for held in block.held:
        at, own = block.places[held.start]
        alike = adding and all(len(set(row[at : at + len(own.numbers)])) == 1 for row in rows)
        if not (held.cells and (adding or held.records is None)) and not alike:
            return False
    return True


def _step(
    frame: Frame, block: Linear, asked: Obligation, difference: Difference, used: tuple[Piece, ...]
) -> Fraction | None:
    """What pieces move the answer by every multiple of, up to the most: that itself, or None where by any part of it.

    Numbers of an interval move by any part, those in steps by steps, records by what they count. A record that comes
    or goes moves a sum by what it holds: any part of the most, if it may hold 0.
    Raises: Refused where they move something else.
    """
    row = _row(block)
    most = _furthest(row, used)
    if any(part.shape in PERSON for part in difference.parts):
        raise Refused("has neighbours whose records lie in several tables, or in cells that hold only so many")
    if all(part.shape in COUNTED for part in difference.parts):
        return None if most == _by_parts(block, difference, row) else _by_steps(row, used) or most
    ends, found = {(part.start, part.stop) for part in difference.parts}, set[Fraction | None]()
    for held, data in zip(block.held, frame.data, strict=True):
        if (held.start, held.stop) in ends:
            low, high, adding = held.lower, held.upper, any(unit.adding for unit in asked.units)
            real = data.domain.startswith("[")
            if not (real or held.step) or low is None or high is None or held.cells:
                raise Refused("has neighbours that do not move numbers of an interval, or in steps")
            if adding and not low <= 0 <= high:
                raise Refused("has records that move the answer by no less than some amount")
            at, own = block.places[held.start]
            moving = (i for piece in used for i in piece.at if at <= i < at + len(own.numbers) and row[i])
            step = ZERO if held.step is None or held.gaps or (adding and low % held.step) else held.step
            found |= {None if real else abs(row[i]) * step or most for i in moving}
    return found.pop() if len(found) == 1 else most


def _by_steps(row: list[Fraction], used: tuple[Piece, ...]) -> Fraction:
    """What records move the answer by every multiple of, up to what one moves it by at most; 0 if there is no such."""
    if len(used) != 1:
        return ZERO
    ends = {row[i] for i in used[0].at}
    least = min(ends) if used[0].shape == "swap" else ZERO
    values = sorted({abs(value - least) for value in ends} - {ZERO})
    # of two cells any two: differences of values that are evenly far apart
    even = all(value == k * values[0] for k, value in enumerate(values, 1))
    return values[0] if values and even else ZERO


def _by_parts(block: Linear, difference: Difference, row: list[Fraction]) -> Fraction:
    """How far records move the answer by any part: a number of theirs stands in two cells by its share of each."""
    part, best = difference.parts[0], ZERO
    held = next(one for one in block.held if (one.start, one.stop) == (part.start, part.stop))
    sizes = [column.size for column in held.columns]
    numbers = [i for i, column in enumerate(held.columns) if column.shared]
    if len(difference.parts) > 1 or len(numbers) != 1 or prod(sizes) != part.stop - part.start:
        return ZERO
    inner, size, at = prod(sizes[numbers[0] + 1 :]), sizes[numbers[0]], block.places[held.start][0]
    for first in (i for i in range(prod(sizes)) if not i // inner % size):
        along = row[at + first : at + first + inner * size : inner]
        if part.shape == "swap":
            best = max(best, max(along) - min(along))
        elif min(along) <= 0 <= max(along):
            best = max(best, *map(abs, along))
    return best * part.amount


def _row(block: Linear) -> list[Fraction]:
    return [fraction(value) for value in block.target.tolist()[0]]


def _furthest(row: list[Fraction], unit: tuple[Piece, ...]) -> Fraction:
    """How far the pieces of a unit move the answer together at most."""
    total = ZERO
    for piece in unit:
        ends = [row[i] for i in piece.at]
        if piece.along:
            ends = [sum((row[i] * share for i, share in piece.edges[0]), ZERO)]
        total += piece.amount * (max(ends) - min(ends) if piece.shape == "swap" else max(map(abs, ends)))
    return total


def shifted(frame: Frame, release: Release, item: JsonNode) -> LowerBound:
    """What multipliers prove of the loss of mechanisms of the kind that is executed.

    Without any coalition's shares the noise has as much variance: on average over coalitions, all of it has more.
    """
    found = shown(frame, release.problem, item)
    if release.excess == 1 or release.problem.errors.sizes:
        return found
    return replace(found, times=release.excess, among=(f"shares of {ADDITIVE}",))


def shown(frame: Frame, block: Linear, item: JsonNode) -> ShiftBound | LawBound | SumBound:
    """The same; nothing that is executed matters. Of pure epsilon it is a closed form, which takes no multipliers.

    The variances of what parties draw alone add up, and each is what its party needs for what it holds. Of several
    numbers each error is one of a number that is linear in the data: what no law of it is below adds up, or, of the
    worst of them, is that of one.
    """
    _, number, *rest = item.fields("scope", "requirement", optional=MULTIPLIED)
    if block.size > 1 and number.absent and all(one.absent for one in rest):
        return _by_any_line(frame, block)
    line, several = number.integer(0, len(frame.obligations) - 1), block.size > 1
    known = single_errors(frame, block, line) if several else {0: (block, reach(frame, block, line))}
    movers = [(one, own.sensitivity, own.parts, 1) for one, own in known.values()]
    alone = frame.trust.means.alone and not block.errors.sizes
    if alone:
        movers = [(block, *own) for own in _of_parties(frame, block, line)]
    words = (ALONE if alone else _words(own for _, own in known.values()),)
    if all(one.absent for one in rest) and not several:
        laws = tuple((count, ByLaw(*_priced(one, size), parts)) for one, size, parts, count in movers)
        return LawBound(words, line, laws)
    fine, some, *given = rest
    cells, shifts = _in_cells(fine, some)
    weights = list[tuple[int, Fraction, int]]()
    for one, size, parts, count in movers:
        if parts is None or not any(shift * parts % cells for shift in shifts):
            weights.append((count, *_priced(one, size / cells)))
        elif not alone and not several:
            raise some.wrong("divide what neighbours move as a whole")
    if several and block.worst:
        weights = sorted(weights, key=lambda own: own[1])[-1:]
    return ShiftBound(words, line, read_multipliers(shifts, *given), tuple(weights))


def _words(known: Iterable[Reach]) -> str:
    """What a bound about all of them is about."""
    return EVERY if all(own.among == EVERY for own in known) else ADDITIVE


def _by_any_line(frame: Frame, block: Linear) -> LawBound | SumBound:
    """The closed form for each error of several numbers, by the line that asks for most."""
    best, known = dict[int, tuple[float, int, ByLaw]](), list[Reach]()
    for line in range(len(frame.obligations)):
        for error, (one, own) in single_errors(frame, block, line).items():
            if not own.delta:
                law = ByLaw(*_priced(one, own.sensitivity), own.parts)
                found = law.near(float(own.epsilon)), line, law
                best[error] = max(best.get(error, found), found, key=lambda pair: pair[0])
                known.append(own)
    if not best:
        raise Refused("has neighbours that do not move the answers, or lines with a delta")
    kept = [max(best.values(), key=lambda pair: pair[0])] if block.worst else best.values()
    words, used = (_words(known),), sorted({line for _, line, _ in kept})
    bounds = [LawBound(words, line, tuple((1, law) for _, own, law in kept if own == line)) for line in used]
    return bounds[0] if len(bounds) == 1 else SumBound(words, tuple(bounds))


def single_errors(frame: Frame, block: Linear, line: int) -> dict[int, tuple[Linear, Reach]]:
    """Each error of several numbers that a line is about, as one of a single number, and what neighbours do to it.

    That is one of outputs that the line names, or that its observers see.
    """
    errors, asked, found = block.errors, frame.obligations[line], dict[int, tuple[Linear, Reach]]()
    if frame.trust.means.alone or block.vectors or len(errors.weights) * block.inputs > SEVERAL:
        raise Refused("is about several numbers that parties draw alone, or vectors, or too many numbers")
    seen, every = block.rows_of(asked.seen), _of_any_size(block, asked)
    terms = laid_out(errors.of(identity(block.size))).tolist(), laid_out(errors.of(block.target)).tolist()
    for error, (term, row) in enumerate(zip(*terms, strict=True)):
        one = _of_error(block, row, errors.weights[error])
        if all(i in seen for i, own in enumerate(term) if own):
            try:
                own = reach(frame, one, line)
            except Refused:
                continue
            found[error] = one, own if every else replace(own, among=ADDITIVE)
    return found


def _of_error(block: Linear, row: list[fmpq], weight: Fraction) -> Linear:
    """The same problem of one number, and the error of that."""
    return replace(
        block,
        released=(Released("", 0, 1, (), defined=True),),
        target=fmpq_mat([row]),
        offset=(ZERO,),
        constants=(),
        errors=Measured(None, (weight,), block.errors.sizes),
        worst=False,
        accuracy=(),
        sites=None,
    )


def _priced(block: Linear, step: Fraction) -> tuple[Fraction, int]:
    """What an error of a step costs, and the power of errors in the loss."""
    power = 1 if block.errors.sizes else 2
    terms = zip(block.errors.weights, laid_out(block.errors.of(fmpq_mat([[1]]))).entries(), strict=True)
    each = [w * abs(fraction(own) * step) ** power for w, own in terms]
    return (max(each) if block.worst else sum(each, ZERO)), power


@frozen
class ByLaw:
    """What no law of pure epsilon is below (note, "Pure epsilon"): `weight` is the cost of an error of what one moves.

    `parts`: neighbours move the answer by every whole number of so many parts of that; None: by any part of it.
    """

    weight: Fraction
    power: int
    parts: int | None

    def at(self, epsilon: Fraction) -> Fraction:
        """At most the loss."""
        if not epsilon:
            return ZERO
        if self.parts is not None:
            return self.weight * in_steps(exp_up(epsilon), self.parts, self.power)
        with ctx.workprec(BITS):
            grown = ball(exp_up(epsilon))
            if self.power == 1:
                found = grown.sqrt() / (grown - 1)
            else:
                found = (((grown * (grown + 1) / 2) ** 2).root(3) + grown) / (grown - 1) ** 2
            return self.weight * max(end(found.lower()), ZERO)

    def near(self, epsilon: float) -> float:
        """About the loss, in doubles."""
        grown, more = exp(epsilon), expm1(epsilon)
        if self.parts is not None:
            found = in_steps(grown, self.parts, self.power)
        elif self.power == 1:
            found = sqrt(grown) / more
        else:
            found = ((grown * (grown + 1) / 2) ** (2 / 3) + grown) / more**2
        return float(self.weight) * found


def in_steps(grown: Number, parts: int, power: int) -> Number:
    """The least loss of a law, in what neighbours move: they do so by steps, so many at most (note, "In steps").

    Its most likely errors are `wide` points of a lattice around 0, and each time that chances fall, to 1 / grown of
    what they were, there are `parts` more points on either side: so many points cost what those nearest to 0 do.
    """
    ratio, step = 1 / grown, 2 * parts
    rest = 1 - ratio
    falls = [1 / rest, ratio / rest**2, ratio * (1 + ratio) / rest**3, ratio * (1 + 4 * ratio + ratio**2) / rest**4]

    def paid(wide: int) -> tuple[Number, Number]:
        """What all points cost, and how much of a law they are, in chances of the most likely."""
        many, squares, cubes = (
            sum((comb(n, i) * wide ** (n - i) * step**i * falls[i] for i in range(1, n + 1)), wide**n * falls[0])
            for n in (1, 2, 3)
        )
        return ((cubes - many) / 12 if power == 2 else (squares - wide % 2 * falls[0]) / 4), many

    def rises(wide: int) -> bool:
        """Whether one point more costs more: if so, any more do."""
        (cost, many), (after, more) = paid(wide), paid(wide + 1)
        return after * many >= cost * more

    low, high = 0, 1
    while not rises(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rises(middle) else (middle, high)
    cost, many = paid(high)
    least: Number = cost / many / parts**power
    return least


@frozen
class Outside:
    """How often errors are beyond a limit, at least: of points one sensitivity apart `inside` are within (the note)."""

    inside: int

    def at(self, epsilon: Fraction) -> Fraction:
        """At most the chance."""
        ratio, half = exp_down(-epsilon), self.inside // 2
        return 2 * ratio ** (half + 1) / (1 + ratio) if self.inside % 2 else ratio**half


@frozen
class LimitBound(LowerBound):
    """By how much the least error of an accuracy line, or the least chance of it, is above what is allowed."""

    line: int
    least: ByLaw | Outside
    most: Fraction

    def at(self, lines: tuple[Obligation, ...]) -> Fraction:
        epsilon, delta = _amounts(lines[self.line])
        if delta:
            raise Refused("has a delta, under which other laws are better")
        return self.least.at(epsilon) - self.most


def limited(frame: Frame, release: Release, item: JsonNode) -> LimitBound:
    """What a line of pure epsilon, of any amount, shows of an accuracy line about one number."""
    _, number, limit = item.fields("scope", "requirement", "limit")
    block, line = release.problem, number.integer(0, len(frame.obligations) - 1)
    errors, most, *_, chance = block.accuracy[limit.integer(0, len(block.accuracy) - 1)]
    if block.size > 1 or block.vectors or frame.trust.means.alone or release.excess != 1:
        raise item.wrong("is about several numbers, or about what parties draw alone")
    one = replace(block, errors=errors, worst=False, accuracy=())
    sensitivity, parts, among = _moved(frame, one, line)
    words = (f"{among}, within the accuracy lines",)
    if chance is None:
        return LimitBound(words, line, ByLaw(*_priced(one, sensitivity), parts), most)
    factors = [abs(fraction(own)) for own in laid_out(errors.of(fmpq_mat([[1]]))).entries()]
    if errors.sizes or errors.weights != (Fraction(1),) or not any(factors):
        raise limit.wrong("is the chance of more than one error")
    return LimitBound(words, line, Outside(2 * most // (factors[0] * sensitivity) + 1), 1 - chance)


@frozen
class LawBound(LowerBound):
    """By the closed form of one line of pure epsilon: what so many laws, each of what moves one number, cost."""

    line: int
    laws: tuple[tuple[int, ByLaw], ...]
    times: Fraction = Fraction(1)

    def at(self, lines: tuple[Obligation, ...]) -> Fraction:
        epsilon, delta = _amounts(lines[self.line])
        if delta:
            raise Refused("has a delta, under which other laws are better")
        return self.times * sum((count * law.at(epsilon) for count, law in self.laws), ZERO)

    def near(self, epsilon: float) -> float:
        """About the same at an epsilon, in doubles."""
        return float(self.times) * sum(count * law.near(epsilon) for count, law in self.laws)


@frozen
class SumBound(LowerBound):
    """Of several lines, each about errors of its own."""

    bounds: tuple[LawBound, ...]
    times: Fraction = Fraction(1)

    def at(self, lines: tuple[Obligation, ...]) -> Fraction:
        return self.times * sum((bound.at(lines) for bound in self.bounds), ZERO)


@frozen
class Multipliers:
    """By the points of the grid of errors: what z_s adds up to at d, and at d + s; and the sum of the largest of each.

    The multipliers of a shift and of its mirror image are half of these each, which meet at 0.
    """

    plus: dict[int, fmpq]
    minus: dict[int, fmpq]
    most: Fraction

    def reduced(self, epsilon: Fraction) -> list[fmpq]:
        """C at the points 0, 1, .. of the grid, up to one at which it is 0 for good."""
        grown, last = rational(exp_up(epsilon)), max([0, *self.plus, *self.minus])
        own = [self.plus.get(k, fmpq()) - grown * self.minus.get(k, 0) for k in range(last + 2)]
        return [own[0], *(value / 2 for value in own[1:])]


def read_multipliers(shifts: list[int], start: JsonNode, multipliers: JsonNode) -> Multipliers:
    """For each shift multipliers at the points of the grid from `start` on."""
    first, width = start.integer(-LARGEST, 0), multipliers.extents(2)[1]
    if not 0 < len(shifts) * width <= LARGEST:
        raise multipliers.wrong("are too many")
    given, plus, minus = read_matrix(multipliers, len(shifts), width).tolist(), dict[int, fmpq](), dict[int, fmpq]()
    for shift, row in zip(shifts, given, strict=True):
        if min(row) < 0:
            raise multipliers.wrong("are below 0")
        for k, entry in enumerate(row, first):
            if entry:
                plus[abs(k)] = plus.get(abs(k), 0) + entry
                minus[abs(k + shift)] = minus.get(abs(k + shift), 0) + entry
    return Multipliers(plus, minus, sum((fraction(max(row)) for row in given), ZERO))


@frozen
class ShiftBound(LowerBound):
    """By multipliers of shifts, for each mover (so many of them) the cost and the power of an error of one cell."""

    line: int
    multipliers: Multipliers
    movers: tuple[tuple[int, Fraction, int], ...]
    times: Fraction = Fraction(1)

    def at(self, lines: tuple[Obligation, ...]) -> Fraction:
        epsilon, delta = _amounts(lines[self.line])
        reduced, paid = self.multipliers.reduced(epsilon), delta * self.multipliers.most
        total = ZERO
        for count, weight, power in self.movers:
            total += count * weight * (least(reduced, power) - paid)
        return self.times * total


@frozen
class DirectionLaw:
    """What the square of an error is at least that neighbours move by one, and by any part of it if `parts` is None.

    By the closed form of pure epsilon, or by multipliers on a grid of `cells` to what neighbours move.
    """

    parts: int | None
    cells: int = 1
    multipliers: Multipliers | None = None

    def at(self, asked: Obligation) -> Fraction:
        """At the amounts of a line, at most; without multipliers as if it had no delta."""
        epsilon, delta = _amounts(asked)
        if self.multipliers is None:
            return ByLaw(Fraction(1), 2, self.parts).at(epsilon)
        found = least(self.multipliers.reduced(epsilon), 2) - delta * self.multipliers.most
        return max(found, ZERO) / self.cells**2


def _amounts(asked: Obligation) -> tuple[Fraction, Fraction]:
    """The ratio and what may exceed it, of laws of outputs as they are."""
    condition = asked.measure.of.condition(asked.measure.figures({}))
    if asked.measure.common is None or not asked.measure.of.of_laws or not isinstance(condition, HockeyStick):
        raise Refused("is of a measure without a bound of shifts")
    return condition.epsilon, condition.delta


def least(own: list[fmpq], power: int) -> Fraction:
    """The least of |d|^power + C(d), C linear between the points of a grid of step 1, and 0 beyond the last."""
    found = [k**power + value for k, value in enumerate(own)]
    for k in range(len(own) - 1) if power == 2 else ():
        here, after = own[k : k + 2]
        lowest = -(after - here) / 2
        if k < lowest < k + 1:
            found.append(here + (after - here) * (lowest - k) + lowest**2)
    return fraction(min(found))
