"""The lower bound on losses of debiased estimates, for every scale alpha and every background law at once.

In the notation of `estimates`, with m_k = alpha T_k + s_k the mean of g_k(z) over rows and draws (T_k that of t_k),

    loss = (sum f cost - sum_k w_k m_k^2) / alpha^2 - sum_k w_k Var(t_k),      cost = Pr(x) sum_k w_k g_k(y)^2:

the variance within rows is that of everything less that between rows, alpha^2 Var(t_k). Each cut of a plan gives
multipliers under which sum f cost is at least affine in alpha and the means; or, with no cost, that what is affine is
at most zero wherever there is a table. In a box of alpha and the means the numerator is then concave in each mean and
affine in alpha, so its quotient has its least value at an end, or where its derivative vanishes. Where the law has a
single value, or there is none, the means are known, and g is measured from there.

Without a cut: g takes values at least `gap` apart, so Var(g) >= (gap / 2) E|g - m| >= (gap / 2) alpha E|t - T|.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from privspec.certify.finite.averages import Costs
from privspec.certify.finite.estimates import Estimates, estimates
from privspec.certify.finite.lagrangian import Lagrangian, LinearRow, Scalar
from privspec.certify.finite.multipliers import add_privacy
from privspec.certify.finite.rows import Loss, Rows, law_of_rows
from privspec.certify.finite.subject import FiniteSubject
from privspec.certify.reading import At, Malformed

Range = tuple[Fraction, Fraction]
Box = tuple[Range, ...]
"""Ranges of alpha and of the free means."""


@dataclass(frozen=True, slots=True)
class Cut:
    """constant + slopes . (alpha, free means): at most sum f cost, or (`empty`) at most zero, for every table."""

    constant: Fraction
    slopes: tuple[Fraction, ...]
    empty: bool


@dataclass(frozen=True, eq=False)
class Search:
    """The bound of one plan."""

    subject: FiniteSubject
    proof: At

    @cached_property
    def rows(self) -> Rows:
        """Rows by name; the loss is not linear, and none of it."""
        return Rows(self.subject, Loss((), (), {}, Fraction(0)))

    @cached_property
    def about(self) -> Estimates:
        """What is estimated."""
        return estimates(self.subject, self.rows.conditions)

    @cached_property
    def free(self) -> tuple[int, ...]:
        """Moments with a weight whose mean can vary: the law has several values."""
        several = len(self.about.masses) > 1
        return tuple(k for k, weight in enumerate(self.about.weights) if weight and several)

    @cached_property
    def law(self) -> tuple[Fraction, ...]:
        """Probabilities of the rows."""
        return law_of_rows(self.subject)

    def value(self) -> Fraction:
        """What cuts and boxes prove of every table, every alpha and every law; never below zero, as squares are.

        Raises: Malformed, NotUnderstood.
        """
        cuts = [self._cut(item) for item in self.proof["cuts"].items()]
        leaves = [bound for bound in self._leaves(cuts) if bound is not None]
        if not leaves:
            raise Malformed(f"{self.proof.place}.tree leaves no table at all, and there is one")
        return max(Fraction(0), min(leaves) - self._spread) + self.about.constant

    # --- the numbers of the formula ----------------------------------------------------------------------

    def _mean(self, values: Sequence[Fraction]) -> Fraction:
        return sum((p * v for p, v in zip(self.law, values, strict=True)), Fraction(0))

    def _origin(self, k: int) -> Fraction:
        """Where g is measured from: the known share s = h (1 - alpha) of a law of one value has h here."""
        moment = self.about.moments[k]
        return next(iter(moment.h.values())) if len(moment.h) == 1 else Fraction(0)

    @cached_property
    def _spread(self) -> Fraction:
        """What the quotient exceeds the loss by."""
        total = Fraction(0)
        for k, weight in enumerate(self.about.weights):
            t = self.about.moments[k].t
            # means that are known: E[g - h | x] = alpha (t - h)
            middle = self._mean(t) if k in self.free else self._origin(k)
            total += weight * self._mean([(v - middle) ** 2 for v in t])
        return total

    @cached_property
    def _cost(self) -> Costs:
        columns = range(self.subject.table.shape[1])
        squares = [
            sum(
                (w * (self.about.moments[k].g[y] - self._origin(k)) ** 2 for k, w in enumerate(self.about.weights)),
                Fraction(0),
            )
            for y in columns
        ]
        return Costs.of(np.array([squares] * self.subject.rows.size, dtype=object))

    @cached_property
    def _least_variance(self) -> Fraction:
        """A number c with sum_k w_k Var(g_k) >= c alpha for every table."""
        total = Fraction(0)
        for moment, weight in zip(self.about.moments, self.about.weights, strict=True):
            gap = min((b - a for a, b in pairwise(sorted(set(moment.g)))), default=Fraction(0))
            middle = self._mean(moment.t)
            total += weight * gap / 2 * self._mean([abs(t - middle) for t in moment.t])
        return total

    # --- cuts --------------------------------------------------------------------------------------------

    def _mean_row(self, k: int) -> LinearRow:
        """Alpha T + sum of masses h - m = 0."""
        moment = self.about.moments[k]
        scalars = {self.about.alpha: self._mean(moment.t), f"mean:{moment.line}": Fraction(-1)}
        return LinearRow({}, {**moment.h, **scalars}, Fraction(0), True)

    def _row(self, name: str) -> LinearRow:
        for k in self.free:
            if name == f"mean:{self.about.moments[k].line}":
                return self._mean_row(k)
        return self.rows.row(name)

    def _cut(self, item: At) -> Cut:
        dual, empty = item["dual"], item["empty"].flag()
        listed = dual["rows"]
        if not isinstance(listed.value, Mapping) or dual.get("loss_weights") is not None:
            raise Malformed(f"{dual.place} is no cut")
        rows = {str(name): self._row(str(name)) for name in listed.value}
        own = [self.about.alpha, *self.about.masses, *(f"mean:{self.about.moments[k].line}" for k in self.free)]
        others = {name for row in rows.values() for name in row.scalars} - set(own)
        scalars = dict.fromkeys(own, Scalar(None, None)) | {n: Scalar(Fraction(0), Fraction(1)) for n in others}
        lagrangian = Lagrangian(self.subject.table.shape, Fraction(0), scalars)
        if not empty:
            lagrangian.add_costs(self._cost, self.law)
        for block in dual["privacy"].items():
            add_privacy(lagrangian, self.subject, block)
        for name, row in rows.items():
            lagrangian.add_row(row, Fraction(listed[name].double()), listed.place)
        constant = lagrangian.value(without=frozenset(own))
        prices = lagrangian.prices
        # masses are not negative and sum to 1 - alpha
        least = min((prices[name] for name in self.about.masses), default=Fraction(0))
        slopes = (prices[self.about.alpha] - least, *(prices[f"mean:{self.about.moments[k].line}"] for k in self.free))
        return Cut(constant + least, slopes, empty)

    # --- boxes -------------------------------------------------------------------------------------------

    def _leaves(self, cuts: Sequence[Cut]) -> Iterator[Fraction | None]:
        """The bound in each box of the tree, written in preorder; None where there is no table."""
        ends = [(min(self.about.moments[k].g), max(self.about.moments[k].g)) for k in self.free]
        stack: list[Box] = [((self.about.low, self.about.high), *ends)]
        for node in self.proof["tree"].items():
            if not stack:
                raise Malformed(f"{node.place} is more than the boxes need")
            box = stack.pop()
            if isinstance(node.value, Mapping):
                stack.extend(reversed(_halves(box, node)))
            elif node.integer() == -1:
                # alpha is above zero: there is none in a box that ends there
                yield self._least_variance / box[0][1] if box[0][1] else None
            elif 0 <= node.integer() < len(cuts):
                yield self._in_box(cuts[node.integer()], box)
            else:
                raise Malformed(f"{node.place} names no cut")
        if stack:
            raise Malformed(f"{self.proof.place}.tree leaves boxes open")

    def _in_box(self, cut: Cut, box: Box) -> Fraction | None:
        """The least quotient in a box."""
        if cut.empty:
            least = sum((min(s * low, s * high) for s, (low, high) in zip(cut.slopes, box, strict=True)), cut.constant)
            return None if least > 0 else Fraction(0)
        constant = cut.constant
        for k, slope, (low, high) in zip(self.free, cut.slopes[1:], box[1:], strict=True):
            weight = self.about.weights[k]
            constant += min(slope * end - weight * end * end for end in (low, high))
        return least_quotient(constant, cut.slopes[0], *box[0])


def _halves(box: Box, node: At) -> tuple[Box, Box]:
    """Both sides of a split."""
    place, at = node["coordinate"].integer(), Fraction(node["at"].double())
    if not 0 <= place < len(box) or not box[place][0] <= at <= box[place][1]:
        raise Malformed(f"{node.place} splits outside its box")
    low, high = box[place]
    sides: list[Any] = [(*box[:place], side, *box[place + 1 :]) for side in ((low, at), (at, high))]
    return sides[0], sides[1]


def least_quotient(constant: Fraction, slope: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """The least of (constant + slope a) / a^2 over 0 < a in [low, high], and never below zero.

    With t = 1 / a it is constant t^2 + slope t for t in [1 / high, 1 / low], to infinity where low is 0.
    """
    first = 1 / high if high else None
    if first is None:
        return Fraction(0)
    last = 1 / low if low else None
    if last is None and (constant < 0 or (constant == 0 and slope < 0)):
        return Fraction(0)
    points = [first] if last is None else [first, last]
    if constant > 0:
        turn = -slope / (2 * constant)
        if turn > first and (last is None or turn < last):
            points.append(turn)
    return max(Fraction(0), min(constant * t * t + slope * t for t in points))
