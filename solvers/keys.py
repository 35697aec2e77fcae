"""How small the error of counts of unknown keys can be: multipliers of the rows that privacy puts on their laws.

A key with n records gives an outcome o, "hidden" (o = 0) or a whole count o >= 1, with chances x[n, o]; x[0, 0] = 1.
Of all laws with x[n + 1, o] <= R x[n, o] + s[n, o] and x[n, o] <= R x[n + 1, o] + t[n, o], where the sums of s and of
t over o are at most delta, the mean error is least at the optimum of a linear program; any multipliers of its rows
bound it. They are free up to a number of records `near`, and beyond the same for all counts, in proportion to the
chance of n.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from privspec.solvers.highs import linear_program

Array = NDArray[np.float64]
MOST = 16_000
"""Unknowns of the largest program."""
FEW = 1e-9
"""Chances of a size that are left out where multipliers are in proportion to them."""


@dataclass(frozen=True, eq=False, slots=True)
class Multipliers:
    """Of the rows between n and n + 1 records: `columns` by outcome, each with its first n, upwards and downwards.

    `near`: from here on rows have `far` multipliers, upwards and downwards, by count less records from -reach to reach,
    in proportion to the chance of n, up to `end`. `weights`: of 1, 2, ... records, where the worst of them counts.
    """

    columns: tuple[tuple[int, int, Array, Array], ...]
    near: int
    end: int
    far: tuple[Array, Array]
    weights: Array | None


@dataclass(frozen=True, slots=True)
class Shape:
    """Records up to which a key may be hidden, and how far counts are looked at from the records."""

    hidden: int
    reach: int
    near: int

    def rows(self, outcome: int) -> range:
        """The numbers of records at which an outcome is looked at."""
        if outcome == 0:
            return range(1, self.hidden + 1)
        first = 1 if outcome <= self.hidden else max(1, outcome - self.reach)
        return range(first, min(self.near, outcome + self.reach) + 1)

    @property
    def size(self) -> int:
        return 2 * sum(len(self.rows(o)) for o in range(self.near + self.reach + 1))


def solve(epsilon: float, delta: float, sizes: Array | None, power: int, steps: int) -> Multipliers | None:
    """The best multipliers of such a form; None where the program is too large, or is not solved.

    Args: sizes, the chances of 1, 2, ... records, None for the worst; power, 1 or 2, of the error; steps, records with
    which a key can be shown for certain.
    """
    reach = int(np.ceil((8 + 4 * power) / epsilon)) + 2
    near = steps + (reach if sizes is not None else 2 * reach)
    if sizes is not None:
        near = min(near, len(sizes))
    shape = Shape(min(steps + reach, near), reach, near)
    return None if shape.size > MOST else _Program(epsilon, delta, sizes, power, shape).solved()


class _Program:
    """The rows of the dual program, one after another."""

    def __init__(self, epsilon: float, delta: float, sizes: Array | None, power: int, shape: Shape) -> None:
        self.ratio, self.delta, self.sizes, self.power, self.shape = np.exp(epsilon), delta, sizes, power, shape
        self.known: dict[tuple[object, ...], int] = {}
        self.gain: defaultdict[int, float] = defaultdict(float)
        self.entries: list[tuple[int, int, float]] = []
        self.limits: list[float] = []

    def at(self, *name: object) -> int:
        return self.known.setdefault(name, len(self.known))

    def row(self, limit: float, *terms: tuple[int, float]) -> None:
        self.entries += [(len(self.limits), place, value) for place, value in terms]
        self.limits.append(limit)

    def below(self, count: int, error: float, *terms: tuple[int, float]) -> None:
        """A row whose limit is an error at so many records, times their chance or weight."""
        if self.sizes is None:
            self.row(0.0, *terms, (self.at("weight", count), -error))
        else:
            self.row(float(self.sizes[count - 1]) * error, *terms)

    def solved(self) -> Multipliers | None:
        shape, sizes = self.shape, self.sizes
        tail = sizes is not None and len(sizes) > shape.near + 2
        for count in range(1, shape.near + 1):
            self.gain[self.at("least", count)] += 1.0
        for outcome in range(shape.near + shape.reach + 1):
            self._outcome(outcome, tail=tail)
        for count in range(1, shape.near + 1):
            # outcomes without multipliers there: below, above, and the hidden one
            seen = [o for o in range(1, shape.near + shape.reach + 1) if count in shape.rows(o)]
            others = [count - min(seen) + 1] * (min(seen) > 1) + [count] * (count > shape.hidden)
            others += [max(seen) + 1 - count] * (tail or max(seen) < shape.near + shape.reach)
            for error in others:
                self.below(count, error**self.power, (self.at("least", count), 1.0))
        end = self._tail() if tail and sizes is not None else shape.near
        self.gain[self.at("down", 0, 0)] += 1.0
        self.gain[self.at("up", 0, 0)] -= self.ratio
        return self._found(end)

    def _outcome(self, outcome: int, *, tail: bool) -> None:
        """The rows of one outcome, at every number of records."""
        counts = self.shape.rows(outcome)
        up = {n: self.at("up", n, outcome) for n in counts if n + 1 in counts}
        down = {n: self.at("down", n, outcome) for n in counts if n + 1 in counts}
        if 1 in counts:  # with no record a key is hidden for certain
            up[0] = self.at("up", 0, outcome)
            down |= {0: self.at("down", 0, 0)} if outcome == 0 else {}
        for n in counts:
            signs = ((up.get(n - 1), -1.0), (up.get(n), self.ratio), (down.get(n), -1.0), (down.get(n - 1), self.ratio))
            terms = [(place, value) for place, value in signs if place is not None]
            if (
                tail
                and n == self.shape.near
                and 0 < outcome <= n + self.shape.reach
                and outcome >= n - self.shape.reach
            ):
                chance = float(self.sizes[n - 1]) if self.sizes is not None else 0.0
                terms += [(self.at("far up", outcome - n), self.ratio * chance)]
                terms += [(self.at("far down", outcome - n), -chance)]
            error = n**self.power if outcome == 0 else abs(outcome - n) ** self.power
            self.below(n, error, (self.at("least", n), 1.0), *terms)
        for side, places in (("up", up), ("down", down)):
            for n, place in places.items():
                most = self.at("most", side, n)
                self.gain[most] = -self.delta
                self.row(0.0, (place, 1.0), (most, -1.0))

    def _tail(self) -> int:
        """The rows of all counts beyond, for the least and the largest ratio of the chances of two sizes."""
        assert self.sizes is not None
        chances, reach = self.sizes[self.shape.near - 1 :], self.shape.reach
        end = int(np.flatnonzero(chances > FEW)[-1]) if (chances > FEW).any() else 0
        if end < 2:
            return self.shape.near
        ratios = chances[:end] / chances[1 : end + 1]
        least = self.at("tail")
        for before in {float(ratios.min()), float(ratios.max())}:
            for k in range(-reach - 1, reach + 1):
                terms = [(least, 1.0)]
                if k + 1 <= reach:
                    terms += [(self.at("far up", k + 1), -before), (self.at("far down", k + 1), self.ratio * before)]
                if k >= -reach:
                    terms += [(self.at("far up", k), self.ratio), (self.at("far down", k), -1.0)]
                self.row(float(abs(k) ** self.power), *terms)
        self.row(float((reach + 1) ** self.power), (least, 1.0))
        for side in ("far up", "far down"):
            most = self.at("most", side)
            self.gain[most] = -self.delta * float(chances[:end].sum())
            for k in range(-reach, reach + 1):
                self.row(0.0, (self.at(side, k), 1.0), (most, -1.0))
        self.gain[least] = float(chances[1 : end + 1].sum())
        return self.shape.near + end

    def _found(self, end: int) -> Multipliers | None:
        size, known, shape = len(self.known), self.known, self.shape
        cost, free = np.zeros(size), np.zeros(size)
        for place, value in self.gain.items():
            cost[place] = -value
        for name, place in known.items():
            if name[0] in ("least", "tail"):
                free[place] = -np.inf
        rows, places, values = (np.array(part) for part in zip(*self.entries, strict=True))
        matrix = scipy.sparse.coo_matrix((values, (rows, places)), shape=(len(self.limits), size)).tocsr()
        one = None
        if self.sizes is None:
            one = np.array([[float(name[0] == "weight") for name in known]]), np.ones(1)
        done = linear_program(cost, (matrix, np.array(self.limits)), one, low=free)
        if done is None:
            return None
        found = np.maximum(done.solution, 0.0)

        def chosen(*name: object) -> float:
            return float(found[known[name]]) if name in known else 0.0

        columns = []
        for outcome in range(shape.near + shape.reach + 1):
            counts = [n for n in range(shape.near) if ("up", n, outcome) in known]
            if counts:
                between = range(counts[0], counts[-1] + 1)
                up, down = (np.array([chosen(side, n, outcome) for n in between]) for side in ("up", "down"))
                columns.append((outcome, counts[0], up, down))
        far = tuple(
            np.array([chosen(side, k) for k in range(-shape.reach, shape.reach + 1)]) for side in ("far up", "far down")
        )
        weights = None
        if self.sizes is None:
            weights = np.array([chosen("weight", n) for n in range(1, shape.near + 1)])
        return Multipliers(tuple(columns), shape.near, end, (far[0], far[1]), weights)
