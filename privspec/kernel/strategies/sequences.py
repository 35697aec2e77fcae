"""Noisy sums over a sequence whose entries tell of one another: what they let through of one entry.

Each entry adds a whole number to each of some numbers, by its value, and each number has discrete Laplace noise of a
scale. Whatever the data are, an entry lets through how far it moves all numbers together. Given a model by which all
other entries are drawn with it, every law that the model allows, every entry and every two of its values are judged in
one of three ways (noise/notes/quilt.md): by the laws of the answer, given each value; by a Markov quilt for each pair
of values (Song, Wang & Chaudhuri 2017), entries that separate the near ones from the far ones; or by both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb, arb_mat, ctx, fmpz_poly

from privspec.kernel.changes import MOST_SEQUENCES, Change, Entries, GivenModel, SequenceModel
from privspec.kernel.core.numbers import ZERO, ball, end
from privspec.kernel.core.reading import Refused, frozen
from privspec.kernel.laws.laplace import WholeLaplace
from privspec.kernel.laws.law import Law, Strategy
from privspec.kernel.losses import Loss, Response

PRECISION = 256
MOST_RATIOS = 2 * 10**6
"""Ratios that are worked out where laws are those between quilts."""
MOST_BITS = 10**9
"""Entries times values times bits of a law of the answer, up to which these laws are worked out."""


Counts = tuple[tuple[tuple[int, ...], ...], ...]
Step = Sequence[Sequence[int]]


@frozen
class Sums(Strategy):
    """`counts[t][j][s]`: what entry t adds to number j if it has value s; at least 0, and 0 for some value."""

    counts: Counts

    def __post_init__(self) -> None:
        sizes = {len(row) for rows in self.counts for row in rows}
        if len(sizes) != 1 or len({len(rows) for rows in self.counts}) != 1 or sizes == {0}:
            raise Refused("has entries that do not add to every number")
        if any(min(row) for rows in self.counts for row in rows):
            raise Refused("has entries that add no number from 0 on")

    @property
    def length(self) -> int:
        return len(self.counts)

    @property
    def size(self) -> int:
        """How many values an entry may have."""
        return len(self.counts[0][0])

    @property
    def numbers(self) -> int:
        """How many numbers are released."""
        return len(self.counts[0])

    def moved(self, t: int, a: int, b: int) -> int:
        """How far all numbers move together, in steps, if entry t changes from one value to another."""
        return sum(abs(row[a] - row[b]) for row in self.counts[t])

    def reach(self, t: int) -> int:
        """The same for any two values."""
        size = range(self.size)
        if len(self.counts[t]) == 1:
            return max(self.counts[t][0])
        return max(self.moved(t, a, b) for a in size for b in size)

    def everything(self) -> int:
        """At least how far all numbers move, whatever changes."""
        return sum(self.reach(t) for t in range(self.length))

    def absolute_sensitivity(self, change: Change, seen: frozenset[str]) -> Fraction:
        """In steps; whoever sees some number may see all of them."""
        if not isinstance(change, Entries):
            raise Refused("is about other units than entries of the sequence")
        return Fraction(self.everything() if change.every else max(self.reach(t) for t in range(self.length)))


@frozen
class Drawn(Sums):
    """Such sums where a model draws the entries, with discrete Laplace noise of a `scale`, in steps."""

    model: SequenceModel
    scale: Fraction

    def __post_init__(self) -> None:
        Sums.__post_init__(self)
        entries = len(self.model.network) or self.length
        if self.model.size != self.size or entries != self.length or self.scale <= 0:
            raise Refused("has a model of other entries, or noise of no size")

    def models(self) -> list[tuple[int, list[int], list[list[int]]]]:
        """Every law: the number of its steps, the first entry, and an entry (column) given the one before (row)."""
        return self.model.every()


class Proof:
    """In which way it is shown what is let through."""

    @property
    def words(self) -> str:
        """As claims say it."""
        raise NotImplementedError

    def epsilon(self, chain: Drawn) -> Fraction:
        """At least what is let through of an entry, given the model.

        Raises: Refused where it does not show that, or would be too much work.
        """
        raise NotImplementedError

    def let_through(self, strategy: Strategy, law: Law, change: GivenModel) -> Loss:
        """What noise of a law on a strategy lets through of an entry, given the model of a change."""
        if not isinstance(strategy, Sums) or not isinstance(law, WholeLaplace):
            raise Refused("is no noisy sum of a sequence")
        epsilon = self.epsilon(Drawn(strategy.counts, change.model, law.scale))
        return Loss(factors=(Response(epsilon),)) if epsilon else Loss()


@frozen
class ByLaws(Proof):
    """Worked out whole."""

    @property
    def words(self) -> str:
        return "by the laws of the answer given each value"

    def epsilon(self, chain: Drawn) -> Fraction:
        if not affordable(chain):
            raise Refused("the laws of the answer are not of one number, or too large to be worked out")
        return reached_by_laws(chain)


@frozen
class ByQuilts(Proof):
    """`distances` (models, entries, values, values, 2); where a model is a network by none."""

    distances: tuple[int, ...] = ()

    @property
    def words(self) -> str:
        return "by Markov quilts"

    def epsilon(self, chain: Drawn) -> Fraction:
        return reached_by_quilts(chain, self.distances)


@frozen
class ByWindows(Proof):
    """At one `distance` for all entries."""

    distance: int

    @property
    def words(self) -> str:
        return f"by quilts {self.distance} entries away, and the laws of the answer between them"

    def epsilon(self, chain: Drawn) -> Fraction:
        return reached_by_windows(chain, self.distance)


# --- the laws of the answer ------------------------------------------------------------------------------


def affordable(chain: Drawn) -> bool:
    """Whether the laws of the answer are small enough to be worked out."""
    if chain.numbers != 1 or chain.model.network:
        return chain.numbers == 1 and chain.everything() <= MOST_SEQUENCES
    bits = sum(grid.unit.denominator.bit_length() for grid in (chain.model.starts, chain.model.steps))
    values = chain.length * chain.size * (chain.everything() + 1)
    return values * 2 * chain.length * bits * len(chain.models()) <= MOST_BITS


Laws = list[list[fmpz_poly]]
"""For every entry t and value s: chances of the answers 0, 1, ... together with s, times one common number."""


def all_laws(chain: Drawn) -> list[Laws]:
    """The laws of the answer, for every law that is allowed."""
    return [laws_of(chain, number) for number in range(len(chain.models()) or 1)]


def laws_of(chain: Drawn, number: int) -> Laws:
    """The same for one of them."""
    if chain.model.network and not number:
        return network_laws(chain)
    models = chain.models()
    if number >= len(models):
        raise Refused("a law is named that is not allowed")
    _, first, step = models[number]
    return answer_laws(chain.counts, tuple(first), tuple(map(tuple, step)))


def network_laws(chain: Drawn) -> Laws:
    """By listing every sequence, with its chance in whole numbers."""
    size, gains, width = chain.size, [row[0] for row in chain.counts], chain.everything()
    drawn: list[tuple[tuple[int, ...], int, int]] = [((), 1, 0)]
    for gain, law in zip(gains, chain.model.network, strict=True):
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


@lru_cache(maxsize=8)
def answer_laws(counts: Counts, first: tuple[int, ...], step: tuple[tuple[int, ...], ...]) -> Laws:
    """Of a chain, by the sums over what comes before an entry, and after it: the same whatever noise is added."""
    size = range(len(first))
    start, *later = ([power(row[s]) for s in size] for (row,) in counts)
    ahead, behind = sums_ahead([start[s] * first[s] for s in size], step, later), sums_behind(step, later)
    return [[ahead[t][s] * behind[t][s] for s in size] for t in range(len(counts))]


def power(exponent: int) -> fmpz_poly:
    """A power of x: products of these say in their exponents what is added in all."""
    return fmpz_poly([0] * exponent + [1])


def sums_ahead(start: list[Any], step: Step, weights: list[list[Any]]) -> list[list[Any]]:
    """For each value of an entry, and of each after it, the sum over all that comes before, with its own weight.

    Args: start, those of the first entry; weights, of each later entry by its value: of polynomials, or of balls.
    """
    size, found = range(len(step)), [start]
    for own in weights:
        last = found[-1]
        found.append([own[s] * sum(last[r] * step[r][s] for r in size) for s in size])
    return found


def sums_behind(step: Step, weights: list[list[Any]]) -> list[list[Any]]:
    """For each value of each entry, in their order, the sum over all that comes after it: of the last entry, 1.

    Args: weights, of each entry but the first by its value.
    """
    size = range(len(step))
    found: list[list[Any]] = [[1] * len(step)]
    for own in reversed(weights):
        moved = [own[s] * found[-1][s] for s in size]
        found.append([sum(moved[s] * step[r][s] for s in size) for r in size])
    return found[::-1]


def noisy(law: fmpz_poly, width: int, decay: arb) -> list[arb]:
    """Chances of the noisy answers 0..width given a value, times one common number: the sum of law[k] decay^|w - k|.

    Chances of a law are shares of all of them together.
    """
    return noisy_box(law, width + 1, 1, decay, int(sum(law.coeffs())))


def _faded(chances: list[arb], decay: arb) -> list[arb]:
    """For each place, the sum over those up to it of chance times decay^distance."""
    found, last = [], arb(0)
    for chance in chances:
        last = last * decay + chance
        found.append(last)
    return found


def reached_by_laws(chain: Drawn) -> Fraction:
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
        return max(end(worst.log().upper()), ZERO)


# --- Markov quilts ---------------------------------------------------------------------------------------


class Influence:
    """How much entries at a distance tell of one entry, for one law: largest ratios of chances, rounded up."""

    def __init__(self, chain: Drawn, first: list[int], step: list[list[int]], farthest: int) -> None:
        size = self.size = len(first)
        rows = [[ball(value * chain.model.steps.unit) for value in row] for row in step]
        self.powers = [arb_mat(size, size, [arb(i == j) for i in range(size) for j in range(size)])]
        one = arb_mat(rows)
        for _ in range(farthest):
            self.powers.append(self.powers[-1] * one)
        self.chances = [arb_mat(1, size, [ball(value * chain.model.starts.unit) for value in first])]
        for _ in range(chain.length - 1):
            self.chances.append(self.chances[-1] * one)
        self._known: dict[tuple[int, int, int, tuple[bool, ...]], arb | None] = {}

    def possible(self, t: int) -> tuple[bool, ...]:
        """Which values entry t may have. Chances are sums of products of numbers from 0, so that none is in doubt."""
        return tuple(not self.chances[t][0, s].is_zero() for s in range(self.size))

    def after(self, distance: int, a: int, b: int) -> arb | None:
        """Of an entry so far behind, given a and given b; None if there is no limit."""
        power = self.powers[distance]
        return _largest((power[a, z], power[b, z]) for z in range(self.size))

    def before(self, t: int, distance: int, a: int, b: int) -> arb | None:
        """Of an entry so far ahead of entry t."""
        key = distance, a, b, self.possible(t - distance)
        if key not in self._known:
            power = self.powers[distance]
            self._known[key] = _largest((power[y, a], power[y, b]) for y in range(self.size) if key[3][y])
        found = self._known[key]
        return None if found is None else found * self.chances[t][0, b] / self.chances[t][0, a]


def _largest(pairs: Iterable[tuple[arb, arb]]) -> arb | None:
    """The largest ratio of one chance to another; None if there is no limit."""
    worst = arb(0)
    for one, other in pairs:
        if one.is_zero():
            continue
        if other.is_zero():
            return None
        worst = worst.max(one / other)
    return worst


def reached_by_quilts(chain: Drawn, distances: tuple[int, ...]) -> Fraction:
    """The epsilon given the model that quilts prove, rounded up: one for every law, entry and ordered pair of values.

    A quilt is a distance back and one ahead, 0 for none on that side: the entries at these distances. The near ones,
    between them, may move freely; the far ones are drawn alike given the quilt.
    """
    models, size, length = chain.models(), chain.size, chain.length
    if chain.model.network:
        return chain.everything() / chain.scale
    if len(distances) != len(models) * length * size**2 * 2 or min(distances) < 0:
        raise Refused("quilts are not distances")
    sums = [0]
    for t in range(length):
        sums.append(sums[-1] + chain.reach(t))
    largest: dict[int, arb] = {}
    with ctx.workprec(PRECISION):
        for number, (_, first, step) in enumerate(models):
            own = distances[number * length * size * size * 2 : (number + 1) * length * size * size * 2]
            farthest = max(own)
            if farthest >= length:
                raise Refused("quilts do not separate: an entry lies outside the sequence")
            told = Influence(chain, first, step, farthest)
            for t in range(length):
                possible = told.possible(t)
                for a, b in ((a, b) for a in range(size) for b in range(size)):
                    if a == b or not (possible[a] and possible[b]):
                        continue
                    at = ((t * size + a) * size + b) * 2
                    back, ahead = own[at], own[at + 1]
                    if back > t or t + ahead >= length:
                        raise Refused("quilts do not separate: an entry lies outside the sequence")
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
    return max(worst, default=ZERO)


# --- quilts at one distance, and the laws of the answer between them ------------------------------------


def window_laws(chain: Drawn, model: tuple[int, list[int], list[list[int]]], near: tuple[int, int, int]) -> list[Laws]:
    """Laws of what entries between two others add, with the value of one of them: [value before][value][value after].

    Several numbers are the digits of one, to a base that none of them reaches (`base_of`).
    Args: near, the entry t, and the distances back and ahead of the two, 0 for none: then all are near on that side.
    """
    (t, back, ahead), (_, first, step) = near, model
    size, base = range(len(first)), base_of(chain, near)
    alone: list[list[Any]] = [[int(s == y) for s in size] for y in size]

    def weights(start: int, stop: int) -> list[list[fmpz_poly]]:
        rows = (chain.counts[u] for u in range(start, stop))
        return [[power(sum(row[s] * base**j for j, row in enumerate(own))) for s in size] for own in rows]

    if back:
        starts, inside = alone, weights(t - back + 1, t + 1)
    else:
        own, *inside = weights(0, t + 1)
        starts = [[own[s] * first[s] for s in size]]
    after = weights(t + 1, t + ahead if ahead else chain.length)
    left = [sums_ahead(start, step, inside)[-1] for start in starts]
    right = [sums_behind(step, [*after, *last])[0] for last in ([[one] for one in alone] if ahead else [[]])]
    whole = fmpz_poly([1])
    return [[[whole * one[a] * other[a] for other in right] for a in size] for one in left]


def between(chain: Drawn, near: tuple[int, int, int]) -> tuple[int, int]:
    """The entries between two others: from the first on, up to the last but one."""
    t, back, ahead = near
    return (t - back + 1 if back else 0), (t + ahead if ahead else chain.length)


def base_of(chain: Drawn, near: tuple[int, int, int]) -> int:
    """More than any number that the entries between two others add up to."""
    start, stop = between(chain, near)
    return 1 + max(sum(max(chain.counts[u][j]) for u in range(start, stop)) for j in range(chain.numbers))


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


def windows(chain: Drawn, distance: int) -> dict[tuple[object, ...], tuple[int, int, int]]:
    """The windows that differ, each with one entry that has it, and the distances of its ends."""
    found: dict[tuple[object, ...], tuple[int, int, int]] = {}
    for t in range(chain.length):
        found.setdefault(window_of(chain, t, distance), (t, *ends(chain, t, distance)))
    return found


def ends(chain: Drawn, t: int, distance: int) -> tuple[int, int]:
    """How far back and ahead the quilt of an entry is; 0 where the sequence ends before."""
    return (distance if distance <= t else 0), (distance if t + distance < chain.length else 0)


def window_of(chain: Drawn, t: int, distance: int) -> tuple[object, ...]:
    """What the laws between the ends of an entry's quilt depend on, apart from the law of the sequence."""
    back, ahead = ends(chain, t, distance)
    start, stop = between(chain, (t, back, ahead))
    return back, ahead, t - start, stop - t, chain.counts[start:stop]


def work_of_windows(chain: Drawn, distance: int) -> int:
    """Ratios of chances that are worked out."""
    size, numbers = chain.size, chain.numbers
    widest = max(max(max(row) for row in rows) for rows in chain.counts)
    box = (1 + 2 * distance * widest) ** numbers
    return 2 * MOST_RATIOS if box > MOST_RATIOS else len(windows(chain, distance)) * len(chain.models()) * size**4 * box


def reached_by_windows(chain: Drawn, distance: int) -> Fraction:
    """The epsilon given the model, rounded up, by a quilt at one distance for all entries, and what is between exactly.

    As for quilts, but that what the near entries add, and the noise, are compared by their laws given the quilt.
    """
    if chain.model.network or not 0 < distance < chain.length:
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
                    known[key, seen] = largest_ratios(laws[key], seen, base, chain.numbers, decay)
                may, size = told.possible(t), range(told.size)
                for a, b in ((a, b) for a in size for b in size if a != b and may[a] and may[b]):
                    ratio = known[key, seen][a][b]
                    if ratio is None:
                        raise Refused(f"entry {t + 1}: a quilt tells for certain what its value is not")
                    ratio *= told.chances[t][0, b] / told.chances[t][0, a]
                    worst = worst.max(ratio)
        return max(end(worst.log().upper()), ZERO)
