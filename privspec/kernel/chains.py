"""Sequences whose entries tell of one another: what noise lets through of one entry, when the others are drawn with it.

A line that counts on the laws is judged for every law that is allowed, every entry and every two values that it may
have, in one of two ways (noise/notes/quilt.md): by the laws of the answer themselves, given each value, or by a Markov
quilt for each pair of values (Song, Wang & Chaudhuri 2017), entries that separate the near ones from the far ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd

from flint import arb, arb_mat, ctx, fmpz_poly

from privspec.kernel.core.numbers import ball, end
from privspec.kernel.core.problem import Bound, Case, Guarantee, Rules, View, read_guarantees
from privspec.kernel.core.reading import Grid, Item, Refused, Size, read
from privspec.kernel.measures import PURE
from privspec.kernel.quality.stated import judge_lines, judge_loss

NOISE = ("discrete-laplace",)
CONDITIONAL = "entry given the model"
CLASSES = ("", "discrete Laplace noise of one size, on the grid of the answers")
PRECISION = 256
MOST_LAWS = 64
MOST_SEQUENCES = 2**14
"""Sequences of a network, which are listed."""
MOST_RATIOS = 2 * 10**6
"""Ratios that are worked out where laws are those between quilts."""
MOST_BITS = 10**9
"""Entries times values times bits of a law of the answer, up to which these laws are worked out."""
FINEST = Fraction(1, 64)
"""Least size of the noise, in steps of the answers."""


@dataclass(frozen=True, slots=True)
class Output:
    """Where an output stands among the released numbers."""

    name: str
    start: int
    stop: int
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ConditionalLaw:
    """Chances (rows, S) of an entry, a row for all values of its `parents`, earlier entries: the last one's fastest."""

    parents: tuple[int, ...]
    chances: Grid


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The sum over the numbers of weights (m,) times the squared error is at most `bound` on average."""

    weights: Grid
    bound: Size
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class ChainBlock:
    """As the problem states it: laws of the first entry and of a step, and what every entry adds to every number.

    Where entries are drawn each in its own way, `network` has the law of each, and there are no laws of a step.
    """

    FORM = "chain"

    source: str
    states: tuple[str, ...]
    starts: Grid
    steps: Grid
    network: tuple[ConditionalLaw, ...]
    released: tuple[Output, ...]
    added: Grid
    offset: Grid
    weights: Grid
    expression: str
    accuracy: tuple[Accuracy, ...]
    lines: tuple[int, ...]

    def __post_init__(self) -> None:
        size, width = len(self.states), len(self.offset.values())
        laws = (self.starts, self.steps, *(one.chances for one in self.network))
        rows = [row for grid in (*laws, self.added) for row in grid.rows]
        if not size or len(set(self.states)) != size or any(len(row) != size for row in rows):
            raise Refused("has rows that do not fit its values")
        for law, unit in ((row, grid.unit) for grid in laws for row in grid.rows):
            if min(law) < 0 or sum(law) * unit != 1:
                raise Refused("has a law whose chances do not add up to one")
        if self.network:
            known = not self.starts.rows and not self.steps.rows and len(self.network) * width == len(self.added.rows)
            for place, one in enumerate(self.network):
                parents = len(set(one.parents)) == len(one.parents) and all(parent < place for parent in one.parents)
                known = known and parents and len(one.chances.rows) == size ** len(one.parents)
            if not known or size ** len(self.network) > MOST_SEQUENCES:
                raise Refused("has a network whose laws do not fit its entries, or one that is too large to be listed")
        elif not self.starts.rows or not self.steps.rows or len(self.steps.rows) % size:
            raise Refused("has no laws of a step, or parts of one")
        if len(self.starts.rows) * self.laws > MOST_LAWS:
            raise Refused("has more laws than are judged")
        ends = [0, *(one.stop for one in self.released)]
        if [one.start for one in self.released] != ends[:-1] or ends[-1] != width or not width:
            raise Refused("has outputs that do not share out its numbers")
        if not self.added.rows or len(self.added.rows) % width or len(self.weights.values()) != width:
            raise Refused("has entries that do not add to every number")

        if any(len(one.weights.values()) != width for one in self.accuracy):
            raise Refused("has a line of accuracy that is not about its numbers")

    @property
    def laws(self) -> int:
        return len(self.steps.rows) // len(self.states)


@dataclass(frozen=True, slots=True)
class Chain:
    """What is executed: `offset` + `unit` times (whole numbers, summed over the entries, + noise of a size).

    `counts[t][j][s]`: what entry t adds to number j in steps if it has value s, at least 0, and 0 for some value;
    `starts` and `steps`: the laws in whole numbers over a common denominator; `scale`: of discrete Laplace noise.
    """

    block: ChainBlock
    counts: tuple[tuple[tuple[int, ...], ...], ...]
    offset: tuple[Fraction, ...]
    unit: Fraction
    scale: Fraction

    @property
    def length(self) -> int:
        return len(self.counts)

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.block.released)

    def models(self) -> list[tuple[int, list[int], list[list[int]]]]:
        """Every law: the number of its steps, the first entry, and an entry (column) given the one before (row)."""
        size = len(self.block.states)
        steps = [self.block.steps.rows[i : i + size] for i in range(0, len(self.block.steps.rows), size)]
        return [(number, first, step) for first in self.block.starts.rows for number, step in enumerate(steps)]

    def moved(self, t: int, a: int, b: int) -> int:
        """How far all numbers move together, in steps, if entry t changes from one value to another."""
        return sum(abs(row[a] - row[b]) for row in self.counts[t])

    def reach(self, t: int) -> int:
        """The same for any two values."""
        size = range(len(self.block.states))
        if len(self.counts[t]) == 1:
            return max(self.counts[t][0])
        return max(self.moved(t, a, b) for a in size for b in size)

    def everything(self) -> int:
        """At least how far all numbers move, whatever changes."""
        return sum(self.reach(t) for t in range(self.length))


def read_chain(block: Item, mechanism: Item) -> Chain:
    """What a plan executes for a block."""
    found = read(ChainBlock, block)
    assert isinstance(found, ChainBlock)
    family, noise, unit, scale = mechanism.fields("family", "noise", "unit", "scale")
    family.same("chain")
    noise.one_of(*NOISE)
    step, size, width = unit.exact(), scale.exact(), len(found.offset.values())
    if step <= 0 or size < FINEST:
        raise mechanism.wrong("has noise of no size, or of one that is too small to be drawn")
    lowest = [min(row) for row in found.added.rows]
    parts = found.added.unit / step
    moved = [[(value - low) * parts for value in row] for row, low in zip(found.added.rows, lowest, strict=True)]
    if parts.denominator != 1 and any(value.denominator != 1 for row in moved for value in row):
        raise unit.wrong("is no step of the answers: they lie between multiples of it")
    rows = [tuple(int(value) for value in row) for row in moved]
    base = [sum(lowest[j::width]) * found.added.unit + offset for j, offset in enumerate(found.offset.values())]
    counts = tuple(tuple(rows[i : i + width]) for i in range(0, len(rows), width))
    return Chain(found, counts, tuple(base), step, size)


def step_of(block: ChainBlock) -> Fraction:
    """The coarsest grid on which all answers lie, but for their offsets."""
    whole = gcd(*(value - min(row) for row in block.added.rows for value in row))
    return whole * block.added.unit if whole else Fraction(1)


def variance(scale: Fraction) -> Fraction:
    """That of discrete Laplace noise in steps, 2 p / (1 - p)^2 with p = e^(-1 / scale), up to 2^-200 of it."""
    with ctx.workprec(PRECISION):
        p = (-1 / ball(scale)).exp()
        return end((2 * p / (1 - p) ** 2).mid())


def units_of(chain: Chain) -> str:
    """The units of the loss."""
    return f"squared units of {' and '.join(chain.outputs)}"


def errors_of(chain: Chain, weights: Grid) -> Fraction:
    """The mean of a weighted sum of squared errors."""
    return sum(weights.values()) * chain.unit**2 * variance(chain.scale)


def loss_of(chain: Chain, scale: Fraction) -> Fraction:
    """The expected loss with noise of a size."""
    return errors_of(replace(chain, scale=scale), chain.block.weights)


# --- the laws of the answer ------------------------------------------------------------------------------


def affordable(chain: Chain) -> bool:
    """Whether the laws of the answer are small enough to be worked out."""
    if len(chain.offset) != 1 or chain.block.network:
        return len(chain.offset) == 1 and chain.everything() <= MOST_SEQUENCES
    bits = sum(grid.unit.denominator.bit_length() for grid in (chain.block.starts, chain.block.steps))
    values = chain.length * len(chain.block.states) * (chain.everything() + 1)
    return values * 2 * chain.length * bits * len(chain.models()) <= MOST_BITS


Laws = list[list[fmpz_poly]]
"""For every entry t and value s: chances of the answers 0, 1, ... together with s, times one common number."""


def all_laws(chain: Chain) -> list[Laws]:
    """The laws of the answer, for every law that is allowed."""
    if chain.block.network:
        return [network_laws(chain)]
    return [answer_laws(chain, first, step) for _, first, step in chain.models()]


def laws_of(chain: Chain, number: int) -> Laws:
    """The same for one of them."""
    if chain.block.network and not number:
        return network_laws(chain)
    models = chain.models()
    if number >= len(models):
        raise Refused("a law is named that is not allowed")
    return answer_laws(chain, *models[number][1:])


def network_laws(chain: Chain) -> Laws:
    """By listing every sequence, with its chance in whole numbers."""
    size, gains, width = len(chain.block.states), [row[0] for row in chain.counts], chain.everything()
    drawn: list[tuple[tuple[int, ...], int, int]] = [((), 1, 0)]
    for gain, law in zip(gains, chain.block.network, strict=True):
        longer, rows = [], law.chances.rows
        for before, chance, answer in drawn:
            row = 0
            for parent in law.parents:
                row = row * size + before[parent]
            for s, weight in enumerate(rows[row]):
                if weight:
                    longer.append(((*before, s), chance * weight, answer + gain[s]))
        drawn = longer
    found = [[[0] * (width + 1) for _ in range(size)] for _ in gains]
    for values, chance, answer in drawn:
        for t, s in enumerate(values):
            found[t][s][answer] += chance
    return [[fmpz_poly(law) for law in row] for row in found]


def answer_laws(chain: Chain, first: list[int], step: list[list[int]]) -> Laws:
    """Of a chain, by the sums over what comes before an entry, and after it."""
    size, gains = range(len(first)), [row[0] for row in chain.counts]
    ahead = [[fmpz_poly([0] * gains[0][s] + [first[s]]) for s in size]]
    for gain in gains[1:]:
        last = ahead[-1]
        mixed = [sum((last[r] * step[r][s] for r in size), fmpz_poly()) for s in size]
        ahead.append([fmpz_poly([0] * gain[s] + [1]) * mixed[s] for s in size])
    behind, found = [fmpz_poly([1])] * len(first), []
    for t in reversed(range(chain.length)):
        found.append([ahead[t][s] * behind[s] for s in size])
        moved = [fmpz_poly([0] * gains[t][s] + [1]) * behind[s] for s in size]
        behind = [sum((moved[s] * step[r][s] for s in size), fmpz_poly()) for r in size]
    return found[::-1]


def noisy(law: fmpz_poly, width: int, decay: arb, mass: int = 0) -> list[arb]:
    """Chances of the noisy answers 0..width given a value, times one common number: the sum of law[k] decay^|w - k|.

    Chances of a law are shares of `mass`, of all of them together where it is 0.
    """
    whole = arb(mass or sum(law.coeffs()))
    chances = [arb(value) / whole for value in law.coeffs()] + [arb(0)] * (width + 1 - len(law.coeffs()))
    down, up = _faded(chances, decay), _faded(chances[::-1], decay)[::-1]
    return [one + other - own for one, other, own in zip(down, up, chances, strict=True)]


def _faded(chances: list[arb], decay: arb) -> list[arb]:
    """For each place, the sum over those up to it of chance times decay^distance."""
    found, last = [], arb(0)
    for chance in chances:
        last = last * decay + chance
        found.append(last)
    return found


def reached_by_laws(chain: Chain) -> Fraction:
    """The least epsilon of the noise given the model, rounded up: answers outside 0..width tell as much as the ends."""
    width = chain.everything()
    with ctx.workprec(PRECISION):
        decay, worst = (-1 / ball(chain.scale)).exp(), arb(1)
        for every in all_laws(chain):
            for laws in every:
                seen = [noisy(law, width, decay) for law in laws if law.length()]
                for chances in zip(*seen, strict=True):
                    most = least = chances[0]
                    for one in chances[1:]:
                        most, least = most.max(one), least.min(one)
                    worst = worst.max(most / least)
        return max(end(worst.log().upper()), Fraction(0))


def told_apart(chain: Chain, scale: Fraction, place: tuple[int, int, int, int, int], epsilon: Fraction) -> bool:
    """Whether noise of a size lets through more than epsilon, at a law, an entry, two values and an answer."""
    number, t, a, b, w = place
    if t >= chain.length or max(a, b) >= len(chain.block.states) or w > chain.everything():
        return False
    with ctx.workprec(PRECISION):
        decay, laws = (-1 / ball(scale)).exp(), laws_of(chain, number)[t]
        if not laws[a].length() or not laws[b].length():
            return False
        one, other = (noisy(law, chain.everything(), decay)[w] for law in (laws[a], laws[b]))
        return bool(one > ball(epsilon).exp() * other)


def told_beyond(chain: Chain, scale: Fraction, place: list[int], signs: list[int], epsilon: Fraction) -> bool:
    """Whether answers beyond all others, up or down in each number by `signs`, let through more than epsilon.

    There the chances given a value are in proportion to the mean of e^(signs . answer / scale): one sum a value.
    """
    number, t, a, b = place
    models, size = chain.models(), range(len(chain.block.states))
    if number >= len(models) or t >= chain.length or max(a, b) >= len(size) or len(signs) != len(chain.offset):
        return False
    _, first, step = models[number]
    with ctx.workprec(PRECISION):
        rows = arb_mat([[arb(value) for value in row] for row in step])
        unit = ball(chain.block.steps.unit)
        powers: dict[int, arb] = {}

        def weight(u: int, s: int) -> arb:
            gain = sum(sign * row[s] for sign, row in zip(signs, chain.counts[u], strict=True))
            if gain not in powers:
                powers[gain] = (ball(Fraction(gain)) / ball(scale)).exp()
            return powers[gain]

        ahead = bare = arb_mat(1, len(size), [arb(value) for value in first])
        for u in range(t + 1):
            if u:
                ahead, bare = unit * (ahead * rows), unit * (bare * rows)
            ahead = arb_mat(1, len(size), [ahead[0, s] * weight(u, s) for s in size])
        behind = arb_mat(len(size), 1, [arb(1)] * len(size))
        for u in range(chain.length - 1, t, -1):
            behind = unit * (rows * arb_mat(len(size), 1, [behind[s, 0] * weight(u, s) for s in size]))
        one, other = (ahead[0, s] * behind[s, 0] for s in (a, b))
        if bare[0, a].is_zero() or bare[0, b].is_zero():
            return False
        return bool(one * bare[0, b] > ball(epsilon).exp() * other * bare[0, a])


# --- Markov quilts ---------------------------------------------------------------------------------------


class Influence:
    """How much entries at a distance tell of one entry, for one law: largest ratios of chances, rounded up."""

    def __init__(self, chain: Chain, first: list[int], step: list[list[int]], farthest: int) -> None:
        size = self.size = len(first)
        rows = [[ball(value * chain.block.steps.unit) for value in row] for row in step]
        self.powers = [arb_mat(size, size, [arb(i == j) for i in range(size) for j in range(size)])]
        one = arb_mat(rows)
        for _ in range(farthest):
            self.powers.append(self.powers[-1] * one)
        self.chances = [arb_mat(1, size, [ball(value * chain.block.starts.unit) for value in first])]
        for _ in range(chain.length - 1):
            self.chances.append(self.chances[-1] * one)
        self._known: dict[tuple[int, int, int, tuple[bool, ...]], arb | None] = {}

    def possible(self, t: int) -> tuple[bool, ...]:
        """Which values entry t may have. Chances are sums of products of numbers from 0, so that none is in doubt."""
        return tuple(not self.chances[t][0, s].is_zero() for s in range(self.size))

    def after(self, distance: int, a: int, b: int) -> arb | None:
        """Of an entry so far behind, given a and given b; None if there is no limit."""
        power, worst = self.powers[distance], arb(0)
        for z in range(self.size):
            if power[a, z].is_zero():
                continue
            if power[b, z].is_zero():
                return None
            worst = worst.max(power[a, z] / power[b, z])
        return worst

    def before(self, t: int, distance: int, a: int, b: int) -> arb | None:
        """Of an entry so far ahead of entry t."""
        key = distance, a, b, self.possible(t - distance)
        if key not in self._known:
            power, worst = self.powers[distance], arb(0)
            for y in (y for y in range(self.size) if key[3][y] and not power[y, a].is_zero()):
                if power[y, b].is_zero():
                    self._known[key] = None
                    break
                worst = worst.max(power[y, a] / power[y, b])
            else:
                self._known[key] = worst
        found = self._known[key]
        return None if found is None else found * self.chances[t][0, b] / self.chances[t][0, a]


def reached_by_quilts(chain: Chain, quilts: Item) -> Fraction:
    """The epsilon given the model that quilts prove, rounded up: one for every law, entry and ordered pair of values.

    A quilt is a distance back and one ahead, 0 for none on that side: the entries at these distances. The near ones,
    between them, may move freely; the far ones are drawn alike given the quilt.
    """
    models, size, length = chain.models(), len(chain.block.states), chain.length
    if chain.block.network:
        quilts.same(None)
        return chain.everything() / chain.scale
    listed = quilts.array(len(models), length, size, size, 2)
    if listed.unit != 1 or min(flat := listed.entries) < 0:
        raise quilts.wrong("are not distances")
    sums = [0]
    for t in range(length):
        sums.append(sums[-1] + chain.reach(t))
    largest: dict[int, arb] = {}
    with ctx.workprec(PRECISION):
        for number, (_, first, step) in enumerate(models):
            own = flat[number * length * size * size * 2 : (number + 1) * length * size * size * 2]
            farthest = max(own)
            if farthest >= length:
                raise quilts.wrong("do not separate: an entry lies outside the sequence")
            told = Influence(chain, first, step, farthest)
            for t in range(length):
                possible = told.possible(t)
                for a, b in ((a, b) for a in range(size) for b in range(size)):
                    if a == b or not (possible[a] and possible[b]):
                        continue
                    at = ((t * size + a) * size + b) * 2
                    back, ahead = own[at], own[at + 1]
                    if back > t or t + ahead >= length:
                        raise quilts.wrong("do not separate: an entry lies outside the sequence")
                    left, right = t - back + 1 if back else 0, t + ahead if ahead else length
                    near = sums[right] - sums[left] - chain.reach(t) + chain.moved(t, a, b)
                    ratio = arb(1)
                    for part in (
                        told.before(t, back, a, b) if back else arb(1),
                        told.after(ahead, a, b) if ahead else arb(1),
                    ):
                        if part is None:
                            raise Refused(f"entry {t + 1}: a quilt tells for certain what its value is not")
                        ratio *= part
                    largest[near] = largest.get(near, ratio).max(ratio)
        worst = [near / chain.scale + end(ratio.log().upper()) for near, ratio in largest.items()]
    return max(worst, default=Fraction(0))


# --- quilts at one distance, and the laws of the answer between them ------------------------------------


def window_laws(chain: Chain, model: tuple[int, list[int], list[list[int]]], near: tuple[int, int, int]) -> list[Laws]:
    """Laws of what entries between two others add, with the value of one of them: [value before][value][value after].

    Several numbers are the digits of one, to a base that none of them reaches (`base_of`).
    Args: near, the entry t, and the distances back and ahead of the two, 0 for none: then all are near on that side.
    """
    (t, back, ahead), (_, first, step) = near, model
    size, base = range(len(first)), base_of(chain, near)
    one, none = fmpz_poly([1]), fmpz_poly()
    start, stop = between(chain, near)
    gains = {
        u: [sum(row[s] * base**j for j, row in enumerate(chain.counts[u])) for s in size] for u in range(start, stop)
    }

    def shifted(u: int, s: int) -> fmpz_poly:
        return fmpz_poly([0] * gains[u][s] + [1])

    left = []
    for y in size if back else range(1):
        last = [one if s == y else none for s in size] if back else [first[s] * shifted(0, s) for s in size]
        for u in range(t - back + 1 if back else 1, t + 1):
            mixed = [sum((last[r] * step[r][s] for r in size), none) for s in size]
            last = [mixed[s] * shifted(u, s) for s in size]
        left.append(last)
    right = []
    for z in size if ahead else range(1):
        last = [one if s == z or not ahead else none for s in size]
        for u in range(t + ahead - 1 if ahead else chain.length - 2, t - 1, -1):
            within = u + 1 < (t + ahead if ahead else chain.length)
            moved = [last[s] * shifted(u + 1, s) if within else last[s] for s in size]
            last = [sum((moved[s] * step[r][s] for s in size), none) for r in size]
        right.append(last)
    return [[[one_left[a] * one_right[a] for one_right in right] for a in size] for one_left in left]


def between(chain: Chain, near: tuple[int, int, int]) -> tuple[int, int]:
    """The entries between two others: from the first on, up to the last but one."""
    t, back, ahead = near
    return (t - back + 1 if back else 0), (t + ahead if ahead else chain.length)


def base_of(chain: Chain, near: tuple[int, int, int]) -> int:
    """More than any number that the entries between two others add up to."""
    start, stop = between(chain, near)
    return 1 + max(sum(max(chain.counts[u][j]) for u in range(start, stop)) for j in range(len(chain.offset)))


def noisy_box(law: fmpz_poly, base: int, numbers: int, decay: arb, mass: int) -> list[arb]:
    """As `noisy` for several numbers, each from 0 up to the base: noise is added to one of them after the other."""
    found = [arb(value) / arb(mass) for value in law.coeffs()]
    found += [arb(0)] * (base**numbers - len(found))
    for stride in (base**j for j in range(numbers)):
        for at in (at for at in range(len(found)) if at // stride % base == 0):
            line = found[at : at + stride * base : stride]
            both = zip(_faded(line, decay), _faded(line[::-1], decay)[::-1], line, strict=True)
            found[at : at + stride * base : stride] = [one + other - own for one, other, own in both]
    return found


def largest_ratios(
    laws: list[Laws], seen: tuple[bool, ...], base: int, numbers: int, decay: arb
) -> list[list[arb | None]]:
    """For two values the largest ratio of noisy laws, over values before (those `seen`) and after; None: no limit."""
    size = range(len(laws[0]))
    mass = max(int(sum(law.coeffs())) for every in laws for row in every for law in row) or 1
    found: list[list[arb | None]] = [[arb(0) for _ in size] for _ in size]
    for before in (row for row, may in zip(laws, seen, strict=True) if may):
        for z in range(len(before[0])):
            parts = [before[a][z] for a in size]
            curves = [noisy_box(law, base, numbers, decay, mass) if law.length() else None for law in parts]
            for a, b in ((a, b) for a in size for b in size if a != b and curves[a] is not None):
                own, other, worst = curves[a], curves[b], found[a][b]
                if worst is None or own is None:
                    continue
                if other is None:
                    found[a][b] = None
                    continue
                for high, low in zip(own, other, strict=True):
                    worst = worst.max(high / low)
                found[a][b] = worst
    return found


def windows(chain: Chain, distance: int) -> dict[tuple[object, ...], tuple[int, int, int]]:
    """The windows that differ, each with one entry that has it, and the distances of its ends."""
    found: dict[tuple[object, ...], tuple[int, int, int]] = {}
    for t in range(chain.length):
        found.setdefault(window_of(chain, t, distance), (t, *ends(chain, t, distance)))
    return found


def ends(chain: Chain, t: int, distance: int) -> tuple[int, int]:
    """How far back and ahead the quilt of an entry is; 0 where the sequence ends before."""
    return (distance if distance <= t else 0), (distance if t + distance < chain.length else 0)


def window_of(chain: Chain, t: int, distance: int) -> tuple[object, ...]:
    """What the laws between the ends of an entry's quilt depend on, apart from the law of the sequence."""
    back, ahead = ends(chain, t, distance)
    start, stop = between(chain, (t, back, ahead))
    return back, ahead, t - start, stop - t, chain.counts[start:stop]


def work_of_windows(chain: Chain, distance: int) -> int:
    """Ratios of chances that are worked out."""
    size, numbers = len(chain.block.states), len(chain.offset)
    widest = max(max(max(row) for row in rows) for rows in chain.counts)
    box = (1 + 2 * distance * widest) ** numbers
    return 2 * MOST_RATIOS if box > MOST_RATIOS else len(windows(chain, distance)) * len(chain.models()) * size**4 * box


def reached_by_windows(chain: Chain, distance: int) -> Fraction:
    """The epsilon given the model, rounded up, by a quilt at one distance for all entries, and what is between exactly.

    As for quilts, but that what the near entries add, and the noise, are compared by their laws given the quilt.
    """
    if chain.block.network or not 0 < distance < chain.length:
        raise Refused("windows are of a chain, and shorter than it")
    if work_of_windows(chain, distance) > MOST_RATIOS:
        raise Refused("windows are too many, or too wide, to be worked out")
    with ctx.workprec(PRECISION):
        worst = arb(1)
        decay = (-1 / ball(chain.scale)).exp()
        for model in chain.models():
            told = Influence(chain, *model[1:], 0)
            every = (True,)
            near = windows(chain, distance)
            laws = {key: window_laws(chain, model, place) for key, place in near.items()}
            known: dict[object, list[list[arb | None]]] = {}
            for t in range(chain.length):
                key, back = window_of(chain, t, distance), ends(chain, t, distance)[0]
                seen = told.possible(t - back) if back else every
                if (key, seen) not in known:
                    base = base_of(chain, near[key])
                    known[key, seen] = largest_ratios(laws[key], seen, base, len(chain.offset), decay)
                may, size = told.possible(t), range(told.size)
                for a, b in ((a, b) for a in size for b in size if a != b and may[a] and may[b]):
                    ratio = known[key, seen][a][b]
                    if ratio is None:
                        raise Refused(f"entry {t + 1}: a quilt tells for certain what its value is not")
                    ratio *= told.chances[t][0, b] / told.chances[t][0, a]
                    worst = worst.max(ratio)
        return max(end(worst.log().upper()), Fraction(0))


# --- plans -----------------------------------------------------------------------------------------------


class ChainRules(Rules):
    """How plans about sequences are judged."""

    def judge(self, case: Case) -> Chain:
        chain = read_chain(case.block, case.mechanism)
        held = [(data.name, data.party) for data in case.frame.data]
        if held != [(chain.block.source, None)] or case.frame.trust.means.public:
            raise case.block.wrong("is about other data, or other trust, than the problem")
        case.says("view", True, "only the noisy answers are seen, under trust curator")
        case.says("rounding", True, f"the answers lie on the grid {chain.unit}, like the noise: nothing is rounded")
        given, without, bound = case.claims.fields("given", "without_model", "bound")
        proofs = {}
        for entry in given.items(len(chain.block.lines)):
            line, by, witness = entry.fields("line", "by", "witness")
            proofs[line.integer()] = by.one_of("laws", "quilts", "windows"), witness
        guarantees = _guarantees(case, chain)
        if sorted(proofs) != sorted(chain.block.lines):
            raise given.wrong("are not about the lines that count on the model")
        for guarantee in guarantees:
            self._guarantee(case, chain, guarantee, proofs.get(guarantee.number))
        self._without(case, chain, without)
        self._loss(case, chain, guarantees, bound)
        return chain

    def _guarantee(self, case: Case, chain: Chain, guarantee: Guarantee, proof: tuple[str, Item] | None) -> None:
        asked, said = guarantee.obligation, guarantee.achieved.get("epsilon", Fraction(-1))
        if proof is None:
            reached, why = plain(chain, asked.units[0].kind) / chain.scale, "discrete-laplace"
            words = "from how far the answers move"
        elif proof[0] == "laws":
            proof[1].same(None)
            if not affordable(chain):
                raise Refused("the laws of the answer are not of one number, or too large to be worked out")
            reached, why, words = reached_by_laws(chain), "quilt", "by the laws of the answer given each value"
        elif proof[0] == "windows":
            distance = proof[1].integer(1)
            words = f"by quilts {distance} entries away, and the laws of the answer between them"
            reached, why = reached_by_windows(chain, distance), "quilt"
        else:
            reached, why, words = reached_by_quilts(chain, proof[1]), "quilt", "by Markov quilts"
        holds = guarantee.holds({"epsilon": reached}) and guarantee.because == (why,)
        head = f"{', '.join(chain.outputs)}, {asked.neighbours}: epsilon {float(reached):.8g} {words}"
        tail = "" if holds else f"; the plan states epsilon {float(max(said, Fraction(0))):.8g}, or asks for less"
        case.says("privacy", holds, f"{head}{tail}", guarantee.number)

    def _without(self, case: Case, chain: Chain, stated: Item) -> None:
        """What holds whatever the data are, if the model is wrong."""
        entry, everything = stated.fields("entry", "everything")
        for item, kind, words in ((entry, "entry", "one entry"), (everything, "everything", "all entries")):
            least = plain(chain, kind) / chain.scale
            text = f"whatever the model: epsilon {float(least):.8g} if {words} may change"
            case.says("no model", item.exact(0) >= least, text)

    def _loss(self, case: Case, chain: Chain, guarantees: list[Guarantee], bound: Item) -> None:
        derived = None
        if not bound.absent:
            line, scale, place, beyond = bound.fields("line", "scale", "place", "beyond")
            guarantee = guarantees[line.integer(0, len(guarantees) - 1)]
            smaller, epsilon = scale.exact(0), guarantee.asked["epsilon"]
            if guarantee.obligation.measure.common is not PURE or not smaller or chain.unit != step_of(chain.block):
                raise bound.wrong("is about a line that noise may meet in other ways")
            if guarantee.number in chain.block.lines and not beyond.absent:
                signs = [1 if up.flag() else -1 for up in beyond.items(len(chain.offset))]
                above = told_beyond(chain, smaller, [item.integer() for item in place.items(4)], signs, epsilon)
            elif guarantee.number in chain.block.lines:
                at = [item.integer() for item in place.items(5)]
                above = affordable(chain) and told_apart(chain, smaller, (at[0], at[1], at[2], at[3], at[4]), epsilon)
            else:
                place.same(None)
                beyond.same(None)
                kind = guarantee.obligation.units[0].kind
                exact = kind != "everything" or len(chain.offset) == 1
                above = exact and smaller * epsilon <= plain(chain, kind)
            text = f"noise below a size of {float(smaller):.8g} steps breaks line {guarantee.obligation.line}"
            case.says("bound", above, text)
            derived = loss_of(chain, smaller)
        words = [chain.block.expression, units_of(chain), "expected"]
        noun = "noise of this kind"
        judge_loss(case, loss_of(chain, chain.scale), derived, CLASSES[derived is not None :], noun, words)
        lines = [(one.line, one.text, one.bound, errors_of(chain, one.weights)) for one in chain.block.accuracy]
        judge_lines(case, lines, Fraction(0), stated=True)
        case.fairness.same(None)

    def reach(self, case: Case, executed: object, view: View, outputs: tuple[str, ...], witness: Item) -> Bound:
        witness.same(None)
        assert isinstance(executed, Chain)
        (unit,) = view.units
        kinds = ("entry", "record", "everything")
        if unit.kind not in kinds or unit.adding or unit.count > 1 or not set(outputs) <= set(executed.outputs):
            return None
        return {"epsilon": plain(executed, unit.kind) / executed.scale, "delta": Fraction(0)}


def plain(chain: Chain, kind: str) -> Fraction:
    """How far all numbers move, in steps, if one entry changes, or all of them do."""
    whole = chain.everything() if kind == "everything" else max(chain.reach(t) for t in range(chain.length))
    return Fraction(whole)


def _guarantees(case: Case, chain: Chain) -> list[Guarantee]:
    """The guarantees; each is about all outputs, the sequence, and a unit that is known here."""
    found = read_guarantees(case.guarantees, case.frame)
    for one in found:
        asked = one.obligation
        (unit, *more), conditional = asked.units, one.number in chain.block.lines
        kinds = (CONDITIONAL,) if conditional else ("entry", "record", "everything")
        about = sorted(asked.outputs) == sorted(asked.seen) == sorted(chain.outputs)
        fits = not more and unit.kind in kinds and (unit.count, unit.adding, unit.apart) == (1, False, None)
        if not about or asked.wrt != (chain.block.source,) or not fits or asked.measure.each:
            raise Refused(f"line {asked.line} is about outputs, inputs or units that are not judged here")
    return found
