"""Noise in steps: a law on the cells of a lattice, whole weights up to a last cell and tails that fall by a ratio.

The noise is none at all, of weight `point`, or J w + U lattice steps: J a cell of weight `weights[|J|]`, U uniform on
the w (odd) steps around 0. Beyond the last weight, weight k is `ratio` times weight k - `period`. Answers of
neighbours that are t steps apart lie a or a + 1 cells apart, a = t // w, so that what cells let through at epsilon, the
sum of (p(z) - e^epsilon p(z + t))+ over z, is a mixture of what it is for these two whole shifts; the point adds no
more than its chance (noise/notes/stepped.md).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import comb

from privspec.kernel.changes import Piece, Units
from privspec.kernel.core.numbers import BITS, ZERO, exp_down
from privspec.kernel.core.reading import Positive, Refused, Size, Wholes, frozen
from privspec.kernel.core.records import dataclass
from privspec.kernel.laws.law import WORDS_OF, Law, NoisyView
from privspec.kernel.losses import Loss, Response
from privspec.kernel.strategies.dense import Scaling, Shared, largest, unit_costs

LARGEST = 4096
"""Most weights, and most cells that neighbours are apart."""


@dataclass(frozen=True)
class Stepped:
    """A law of noise, and the epsilon at which it is accounted: see above."""

    epsilon: Size
    width: Positive
    period: Positive
    ratio: Size
    point: int
    weights: Wholes

    def __post_init__(self) -> None:
        if not self.width % 2 or not len(self.weights) >= self.period or min(self.weights) < 0:
            raise Refused("has cells of an even width, a weight below 0, or a period of more cells than weights")
        if self.ratio >= 1 or not any(self.weights) or len(self.weights) > LARGEST:
            raise Refused("has tails that do not fall, no weight that is not 0, or too many")

    def spread(self, times: int) -> Stepped:
        """The same with cells of one step so many steps apart, and none between them."""
        weights = tuple(weight for own in self.weights for weight in (own, *(0,) * (times - 1)))
        return self if times == 1 else replace(self, period=self.period * times, weights=weights)

    def tail(self, power: int) -> list[Fraction]:
        """Sums of ratio^i i^n over i = 1, 2, .. for n up to `power` (Eulerian numbers), at most 4."""
        r, polynomials = self.ratio, ((1,), (1,), (1, 1), (1, 4, 1), (1, 11, 11, 1))
        return [r * sum(c * r**k for k, c in enumerate(polynomials[n])) / (1 - r) ** (n + 1) for n in range(power + 1)]

    def moment(self, power: int) -> Fraction:
        """The sum over cells J of weight |J|^power."""
        sums, last = self.tail(power), range(len(self.weights) - self.period, len(self.weights))
        core = sum(w * k**power for k, w in enumerate(self.weights) if k) * 2 + self.weights[0] * (not power)
        tail = sum(
            comb(power, n) * self.period**n * sums[n] * sum(self.weights[k] * k ** (power - n) for k in last)
            for n in range(power + 1)
        )
        return Fraction(core + 2 * tail)

    @property
    def total(self) -> Fraction:
        return self.point + self.moment(0)

    @property
    def square(self) -> Fraction:
        """The variance, in squared lattice steps: that of a cell, and of a step within it."""
        inside = Fraction(self.width**2 - 1, 12) * (1 - self.point / self.total)
        return self.width**2 * self.moment(2) / self.total + inside

    @property
    def size(self) -> Fraction:
        """The average size, in lattice steps; a step within the cell around 0 counts, others cancel out."""
        inside = self.weights[0] * Fraction(self.width**2 - 1, 4 * self.width)
        return (self.width * self.moment(1) + inside) / self.total

    def weight(self, k: int) -> Fraction:
        """The weight of a cell."""
        over = max(0, -(-(abs(k) + 1 - len(self.weights)) // self.period))
        return self.weights[abs(k) - over * self.period] * self.ratio**over

    def delta_up(self, steps: int, together: int = 1) -> Fraction:
        """At least what is let through at epsilon where answers are at most so many lattice steps apart.

        Args: together, what they are apart by whole multiples of.
        """
        cells, apart = -(-steps // self.width), max(1, 0 if together % self.width else together // self.width)
        if cells * len(self.weights) > LARGEST**2 or cells > LARGEST:
            raise Refused("has neighbours that are too many cells apart")
        key, shifts = (self, cells, apart), range(apart, cells + 1, apart)
        if key not in KNOWN:
            KNOWN[key] = _let_through(self, shifts) if shifts else ZERO
        return (KNOWN[key] + self.point) / self.total if cells else ZERO


KNOWN: dict[tuple[Stepped, int, int], Fraction] = {}
"""What cells of a law let through at multiples of a shift up to another."""


def _let_through(law: Stepped, shifts: range) -> Fraction:
    """The largest sum over cells k of (w(k) - e^epsilon w(k + shift))+, e^epsilon rounded down.

    Beyond the last weight (on the left, beyond it and the shift) terms fall by the ratio every period.
    """
    last, period, most = len(law.weights) - 1, law.period, 0
    above, below = law.ratio.as_integer_ratio()
    scale = int(below ** -(-shifts[-1] // period))  # of the ratio, at most: weights times `scale` are whole
    whole = [w * scale for w in law.weights]
    for k in range(last + 1, last + shifts[-1] + 1):
        whole.append(whole[k - period] * above // below)
    up, down = int(exp_down(law.epsilon) * (1 << BITS)), 1 << BITS
    own, moved = [w * down for w in whole], [w * up for w in whole]
    for shift in shifts:
        beside = zip(own[last + shift : 0 : -1], moved[last::-1] + moved[1:shift], strict=True)
        left = [a - b if a > b else 0 for a, b in beside]
        right = [a - b if a > b else 0 for a, b in zip(own, moved[shift : shift + last + 1], strict=False)]
        tails = sum(left[:period]) + sum(right[-period:])
        most = max(most, (below - above) * (sum(left) + sum(right)) + above * tails)
    return Fraction(most, scale * down * (below - above))


@frozen
class Staircase(Law):
    """A law for each answer, or one for all, independent: moves of several do not follow from those of each."""

    laws: tuple[Stepped, ...]
    family = FORM = "stepped"
    words = WORDS_OF["staircase"]
    title = "noise in steps"
    notes = ("stepped",)
    figures = ("epsilon", "delta")
    joint = in_cells = True

    def __post_init__(self) -> None:
        if len({law.epsilon for law in self.laws}) != 1:
            raise Refused("has no laws, or laws that are accounted at several epsilons")

    @property
    def answers(self) -> int | None:
        return len(self.laws) if self.laws[1:] else None

    def of(self, answers: int) -> tuple[Stepped, ...]:
        """The law of each of so many answers."""
        return self.laws if self.laws[1:] else self.laws * answers

    @property
    def accounted(self) -> dict[str, Fraction]:
        return {"epsilon": self.laws[0].epsilon}

    def sizes(self, grid: Fraction) -> tuple[Fraction, ...]:
        return (grid,)

    def variances(self, answers: int, grid: Fraction) -> list[Fraction]:
        return [law.square * grid**2 for law in self.of(answers)]

    def mean_sizes(self, answers: int, grid: Fraction) -> list[Fraction]:
        return [law.size * grid for law in self.of(answers)]

    def let_through(self, view: NoisyView, change: Units, scaling: list[Scaling] | None) -> Loss:
        steps, laws = view.rounding(), self.of(view.strategy.matrix.nrows())
        moved = by_cells(change.grouped(), view.lattice.shared)
        unmoved, most = {*range(len(moved.units))}, ZERO
        for row, step in zip(view.rows, steps, strict=True):
            answer = view.strategy.chosen([row])
            costs = unit_costs(answer.matrix, [view.lattice.grid], [step], moved, view.lattice.shared)
            moving = {unit for unit, cost in enumerate(costs) if cost}
            if moving and view.rows[1:] and (moved.count > 1 or not moving <= unmoved):
                raise Refused("has laws in steps for answers that move together")
            unmoved -= moving
            apart = 1 if step else view.lattice.together(answer, change)
            most = max(most, laws[row].delta_up(int(largest(costs, moved)), apart))
        if len(unmoved) == len(moved.units):
            return Loss()
        return Loss(factors=(Response(self.laws[0].epsilon),), delta=most)


def by_cells(change: Units, shared: Shared) -> Units:
    """The same, where a record that comes or goes is a unit of its own in each cell, or in those it stands in at once.

    At least all that changes: where several change at once, any of these may.
    """
    units = list[tuple[tuple[Piece, ...], int]]()
    for unit, copies in change.units:
        (piece, *more) = unit
        together = dict[int, list[int]]()
        for i in piece.at if piece.shape == "cell" and piece.amount == 1 and not more else ():
            together.setdefault(shared.get(i, i), []).append(i)
        units += [((replace(piece, at=tuple(own)),), copies) for own in together.values()] or [(unit, copies)]
    return replace(change, units=tuple(units))


LAWS = (Staircase,)
