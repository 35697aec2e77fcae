"""One number: no mechanism has less loss than multipliers of shifts show (noise/notes/shift-bound.md).

Let neighbours move the answer by any part of its sensitivity, or by all of it only. A law f of the error d, or an
average of any mechanism's laws over data of any size, has (f(d) - e^eps f(d + s))+ add up to at most delta for each of
these shifts s and for -s. So for multipliers z_s(d) from 0 to most_s, linear between the points of a grid of errors,

    E[loss] >= min over d of { loss(d) + C(d) } - delta sum most_s,    C(d) = sum over s of z_s(d) - e^eps z_s(d - s).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1, prod, sqrt

from flint import ctx, fmpq, fmpq_mat

from privspec.kernel.core.linear import COUNTED, Difference, Linear, Release, read_matrix, size_of
from privspec.kernel.core.numbers import ball, end, exp_up, fraction, rational
from privspec.kernel.core.problem import Frame, Obligation
from privspec.kernel.core.reading import Item, Refused
from privspec.kernel.moves import Piece, pieces
from privspec.kernel.participation import PERSON
from privspec.kernel.rows import laid_out
from privspec.kernel.trust import Meaning

SCOPE = "shifts"
ADDITIVE = "additive noise of any law"
EVERY = "all mechanisms of any kind, for data of any size"
OF_PURE = {
    ADDITIVE: "additive noise of any law of the same pure epsilon",
    EVERY: "all mechanisms of the same pure epsilon, for data of any size",
}
"""Of lines that have a delta, which such mechanisms do not use."""
SAME_EPSILON = ("epsilon-DP", "(epsilon, delta)-DP")
BITS = 128
LARGEST = 2**20
"""Most points of the grid, and multipliers."""
NONE = Fraction(0)


@dataclass(frozen=True, slots=True)
class Reach:
    """How far neighbours of a line move the answer, whether by every part of it, and what a bound on it is about."""

    sensitivity: Fraction
    divided: bool
    among: str
    epsilon: Fraction
    delta: Fraction


def reach(frame: Frame, block: Linear, line: int) -> Reach:
    """What neighbours of a line can do to a single number.

    Raises: Refused where there are several, or its line is of another measure or of other neighbours.
    """
    asked, amounts = frame.obligations[line], frame.obligations[line].measure.figures({})
    if block.size > 1 or asked.measure.each or asked.measure.name not in ("epsilon-DP", "(epsilon, delta)-DP"):
        raise Refused("is about more than one number, or a measure without a bound of shifts")
    row, found = [fraction(value) for value in block.target.tolist()[0]], list[tuple[Fraction, bool]]()
    for difference in block.surely(line):
        units, count = pieces(difference, block.places)
        real = _divided(frame, block, asked, difference)
        each = [(sum((_moved(row, piece) for piece in unit), NONE), copies) for unit, copies in units]
        furthest, left = NONE, count if real else 1
        for size, copies in sorted(each, reverse=True):
            furthest, left = furthest + size * min(copies, left), left - min(copies, left)
        found.append((furthest, real or furthest == _by_parts(block, difference, row)))
    sensitivity, divided = max(found, default=(NONE, False))
    if not sensitivity:
        raise Refused("has neighbours that do not move the answer")
    words = EVERY if _of_any_size(block, asked) else ADDITIVE
    return Reach(sensitivity, divided, words, amounts["epsilon"], amounts.get("delta", NONE))


def of_any_law(
    frame: Frame, release: Release, item: Item, value: Fraction, words: tuple[str, ...]
) -> tuple[Fraction, tuple[str, ...]]:
    """A bound of squares for unbiased mechanisms, by pure epsilon, as one for noise of any law or more: twice it.

    Along every direction such noise is a law of one number, whose square is at least 1 / (2 sinh(epsilon / 2)^2) times
    that of what neighbours move it by, where an unbiased mechanism has half as much (noise/notes/shift-bound.md).
    """
    witness, means, block = dict(item.entries()), frame.trust.means, release.problem
    lines = [one.fields("requirement", "mu", "columns")[0].integer() for one in witness["differences"].items()]
    asked = [frame.obligations[line] for line in lines]
    kinds = {(one.measure.name, one.measure.distance, one.measure.each) for one in asked}
    plain = witness["prices"].absent and not block.errors.sizes and not release.noise.gaussian
    if not plain or not kinds <= {(name, None, ()) for name in SAME_EPSILON} or means != Meaning():
        return value, words
    people = any(part.shape in PERSON for some in block.differences for one in some for part in one.parts)
    every = not people and all(_of_any_size(block, one) for one in asked)
    classes = EVERY if every else ADDITIVE
    return 2 * value, (classes if all(one.measure.name == SAME_EPSILON[0] for one in asked) else OF_PURE[classes],)


def _of_any_size(block: Linear, asked: Obligation) -> bool:
    """Whether there may be any number of records of each kind: in cells, or numbers that all count alike."""
    adding = all(unit.adding for unit in asked.units)
    rows = block.target.tolist()
    for held in block.held:
        at, own = block.places[held.start]
        alike = adding and all(len(set(row[at : at + len(own.numbers)])) == 1 for row in rows)
        if not (held.cells and (adding or held.records is None)) and not alike:
            return False
    return True


def _divided(frame: Frame, block: Linear, asked: Obligation, difference: Difference) -> bool:
    """Whether units move numbers of an interval, which can move by any part of what they can at most, and not records.

    A record that comes or goes moves a sum by what it holds: any part of the most, if it may hold 0.
    Raises: Refused where they move something else.
    """
    if any(part.shape in PERSON for part in difference.parts):
        raise Refused("has neighbours whose records lie in several tables, or in cells that hold only so many")
    if all(part.shape in COUNTED for part in difference.parts):
        return False
    ends = {(part.start, part.stop) for part in difference.parts}
    for held, data in zip(block.held, frame.data, strict=True):
        if (held.start, held.stop) in ends:
            low, high = held.lower, held.upper
            if not data.domain.startswith("[") or low is None or high is None or held.cells:
                raise Refused("has neighbours that do not move numbers of an interval")
            if any(unit.adding for unit in asked.units) and not low <= 0 <= high:
                raise Refused("has records that move the answer by no less than some amount")
    return True


def _by_parts(block: Linear, difference: Difference, row: list[Fraction]) -> Fraction:
    """How far records move the answer by any part: a number of theirs stands in two cells by its share of each."""
    part, best = difference.parts[0], NONE
    held = next(one for one in block.held if (one.start, one.stop) == (part.start, part.stop))
    sizes = [size_of(column) for column in held.columns]
    numbers = [i for i, column in enumerate(held.columns) if column[-1]]
    if len(difference.parts) > 1 or len(numbers) != 1 or prod(sizes) != part.stop - part.start:
        return NONE
    inner, size, at = prod(sizes[numbers[0] + 1 :]), sizes[numbers[0]], block.places[held.start][0]
    for first in (i for i in range(prod(sizes)) if not i // inner % size):
        along = row[at + first : at + first + inner * size : inner]
        if part.shape == "swap":
            best = max(best, max(along) - min(along))
        elif min(along) <= 0 <= max(along):
            best = max(best, *map(abs, along))
    return best * part.amount


def _moved(row: list[Fraction], piece: Piece) -> Fraction:
    """How far a piece moves the answer at most."""
    ends = [sum((row[i] * share for i, share in edge), NONE) for edge in piece.edges]
    return piece.amount * (max(ends) - min(ends) if piece.shape == "swap" else max(map(abs, ends)))


def shifted(frame: Frame, release: Release, item: Item) -> tuple[Fraction, tuple[str, ...]]:
    """What multipliers prove of the loss, and the words for the mechanisms of which none has less.

    Without any coalition's shares the noise has as much variance: on average over coalitions, all of it has more.
    """
    (value, words), noise = shown(frame, release.problem, item), release.noise
    if noise.parties == noise.honest or release.problem.errors.sizes:
        return value, words
    return value * noise.parties / noise.honest, (f"shares of {ADDITIVE}",)


def shown(frame: Frame, block: Linear, item: Item) -> tuple[Fraction, tuple[str, ...]]:
    """The same; nothing that is executed matters."""
    _, number, fine, some, *given = item.fields("scope", "requirement", "cells", "shifts", "start", "multipliers")
    found = reach(frame, block, number.integer(0, len(frame.obligations) - 1))
    cells = fine.integer(1, LARGEST)
    shifts = [one.integer(1, cells) for one in some.items()]
    if any(a >= b for a, b in zip([0, *shifts], shifts, strict=False)) or not shifts:
        raise some.wrong("are not shifts in order")
    if shifts != [cells] and not found.divided:
        raise some.wrong("divide what neighbours move as a whole")
    own, paid = combined(found, shifts, *given)
    weight, power = _priced(block, found.sensitivity / cells)
    return weight * (least(own, power) - paid), (found.among,)


def _priced(block: Linear, step: Fraction) -> tuple[Fraction, int]:
    """What an error of a step costs, and the power of errors in the loss."""
    power = 1 if block.errors.sizes else 2
    terms = zip(block.errors.weights, laid_out(block.errors.of(fmpq_mat([[1]]))).entries(), strict=True)
    each = [w * abs(fraction(own) * step) ** power for w, own in terms]
    return (max(each) if block.worst else sum(each, NONE)), power


@dataclass(frozen=True, slots=True)
class ByLaw:
    """What no law of pure epsilon is below (note, "Pure epsilon"): `weight` is the cost of an error of what one moves.

    `divided`: neighbours move the answer by any part of that, so that the staircase is the best law of all.
    """

    weight: Fraction
    power: int
    divided: bool

    def at(self, epsilon: Fraction) -> Fraction:
        """At most the loss."""
        if not epsilon:
            return NONE
        with ctx.workprec(BITS):
            grown = ball(exp_up(epsilon))
            if self.power == 1:
                found = grown.sqrt() / (grown - 1) if self.divided else 2 * grown / (grown**2 - 1)
            elif self.divided:
                found = ((grown * (grown + 1) / 2) ** 2).root(3) + grown
                found /= (grown - 1) ** 2
            else:
                found = 2 * grown / (grown - 1) ** 2
            return self.weight * max(end(found.lower()), NONE)

    def near(self, epsilon: float) -> float:
        """About the loss, in doubles."""
        grown, more = exp(epsilon), expm1(epsilon)
        if self.power == 1:
            found = sqrt(grown) / more if self.divided else 2 * grown / (more * (grown + 1))
        else:
            found = ((grown * (grown + 1) / 2) ** (2 / 3) + grown if self.divided else 2 * grown) / more**2
        return float(self.weight) * found


def by_law(frame: Frame, block: Linear, line: int) -> ByLaw:
    """The same of a line of pure epsilon about one number.

    Raises: Refused where it is no such line.
    """
    found = reach(frame, block, line)
    if found.delta:
        raise Refused("has a delta, under which other laws are better")
    return ByLaw(*_priced(block, found.sensitivity), found.divided)


def combined(found: Reach, shifts: list[int], start: Item, multipliers: Item) -> tuple[list[fmpq], Fraction]:
    """C at the points 0, 1, .. of the grid, up to one at which it is 0 for good, and delta sum most_s."""
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
    paid = sum((fraction(max(row)) for row in given), NONE)
    grown, last = rational(exp_up(found.epsilon)), max([0, *plus, *minus])
    own = [plus.get(k, fmpq()) - grown * minus.get(k, 0) for k in range(last + 2)]
    # the multipliers of a shift and of its mirror image are half of these each, which meet at 0
    return [own[0], *(value / 2 for value in own[1:])], found.delta * paid


def least(own: list[fmpq], power: int) -> Fraction:
    """The least of |d|^power + C(d), C linear between the points of a grid of step 1, and 0 beyond the last."""
    found = [k**power + value for k, value in enumerate(own)]
    for k in range(len(own) - 1) if power == 2 else ():
        here, after = own[k : k + 2]
        lowest = -(after - here) / 2
        if k < lowest < k + 1:
            found.append(here + (after - here) * (lowest - k) + lowest**2)
    return fraction(min(found))
