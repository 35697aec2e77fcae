"""Certified lower bounds on the loss of debiased estimates, from multipliers and a tree of boxes (notes/debiased.md).

Each cut is recomputed exactly from its multipliers; in a box of alpha and the means, an affine minorant less the
squares of the means, over alpha squared, has its least value at known points. Nothing of the float search is trusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from privspec.solvers.table_bounds import affine_bound
from privspec.solvers.table_programs import Entries, TableProgram
from privspec.solvers.table_search_programs import DebiasedProgram, SearchCut, SearchSplit, SearchTree


@dataclass(frozen=True, slots=True)
class Minorant:
    """constant + slopes . (alpha, free means): below the cost of every table, or at most 0 where `empty`."""

    constant: Fraction
    slopes: tuple[Fraction, ...]
    empty: bool


def slope(problem: DebiasedProgram) -> Fraction:
    """A number with which every table, private or not, has loss + spread >= slope / alpha.

    The sum over the moments of w_k gap_k d_k / 2: gap_k the least distance of two values of g_k, d_k the mean absolute
    deviation of t_k from its median. Source: notes/debiased.md.
    """
    total = Fraction(0)
    for weight, moment, target in zip(problem.weights, problem.moments, problem.targets, strict=True):
        values = sorted(set(moment))
        gap = min((b - a for a, b in pairwise(values)), default=Fraction(0))
        deviation = min(
            sum((p * abs(t - centre) for p, t in zip(problem.prior, target, strict=True)), Fraction(0))
            for centre in target
        )
        total += weight * gap * deviation / 2
    return total


def affine_minorants(problem: DebiasedProgram, cuts: Sequence[SearchCut]) -> list[Minorant]:
    """The exact affine function that the multipliers of each cut prove."""
    program = problem.program()
    cost, nothing = problem.cost(), np.full(program.shape, Fraction(0), dtype=object)
    return [_minorant(problem, program, cut, nothing if cut.empty else cost) for cut in cuts]


def _minorant(problem: DebiasedProgram, program: TableProgram, cut: SearchCut, cost: Entries) -> Minorant:
    constant, prices = affine_bound(program, cut.dual, cost)
    scale, masses, means = prices[0], prices[1 : 1 + problem.values], prices[1 + problem.values :]
    # The masses are not negative and sum to m_0 + m_1 alpha.
    least = min(masses, default=Fraction(0))
    return Minorant(constant + least * problem.mass[0], (scale + least * problem.mass[1], *means), cut.empty)


@dataclass(frozen=True, slots=True)
class Box:
    """Closed ranges of alpha and the free means."""

    low: tuple[Fraction, ...]
    high: tuple[Fraction, ...]

    def halves(self, split: SearchSplit) -> tuple[Box, Box]:
        """The parts below and above the split."""
        at, k = Fraction(split.at), split.coordinate
        if not self.low[k] <= at <= self.high[k]:
            raise ValueError("a split must lie in its box")
        below = Box(self.low, (*self.high[:k], at, *self.high[k + 1 :]))
        return below, Box((*self.low[:k], at, *self.low[k + 1 :]), self.high)


def whole_box(problem: DebiasedProgram) -> Box:
    """The box of all alpha and means that any table can have."""
    ranges = (problem.alpha, *problem.range_of_means)
    return Box(tuple(low for low, _ in ranges), tuple(high for _, high in ranges))


def certified_search_bound(problem: DebiasedProgram, cuts: Sequence[SearchCut], tree: SearchTree) -> Fraction:
    """A lower bound on the loss of every table of the problem, for every alpha in its range; at least 0.

    Raises: ValueError if the tree is not one, or proves that no table exists.
    """
    minorants = affine_minorants(problem, cuts)
    nodes = iter(tree)
    bounds = list(_leaves(problem, minorants, whole_box(problem), nodes))
    if next(nodes, None) is not None:
        raise ValueError("the tree of boxes has too many nodes")
    finite = [bound for bound in bounds if bound is not None]
    if not finite:
        raise ValueError("the cuts exclude every table")
    # Variances are not negative.
    return max(Fraction(0), min(finite) - problem.spread)


def _leaves(
    problem: DebiasedProgram, minorants: Sequence[Minorant], root: Box, nodes: Iterator[SearchSplit | int]
) -> Iterator[Fraction | None]:
    stack = [root]
    while stack:
        box, node = stack.pop(), next(nodes, None)
        if node is None:
            raise ValueError("the tree of boxes has too few nodes")
        if isinstance(node, SearchSplit):
            stack.extend(reversed(box.halves(node)))
        elif node < 0:
            yield slope(problem) / box.high[0]
        else:
            yield ratio_bound(problem, minorants[node], box)


def ratio_bound(problem: DebiasedProgram, minorant: Minorant, box: Box) -> Fraction | None:
    """The least of loss + spread in a box as far as the minorant tells; None if it excludes the box."""
    scale, *means = minorant.slopes
    ends = list(zip(box.low, box.high, strict=True))
    if minorant.empty:
        total = minorant.constant + sum(min(s * a, s * b) for s, (a, b) in zip(minorant.slopes, ends, strict=True))
        return None if total > 0 else Fraction(0)
    constant = minorant.constant
    for k, price, (low, high) in zip(problem.means, means, ends[1:], strict=True):
        # Concave in each mean: least at an end.
        constant += min(price * end - problem.weights[k] * end * end for end in (low, high))
    return _least_ratio(constant, scale, *ends[0])


def _least_ratio(constant: Fraction, scale: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """The least of (constant + scale alpha) / alpha^2 for alpha in [low, high], 0 if it is not above zero."""
    if low == 0 and (constant < 0 or (constant == 0 and scale < 0)):
        return Fraction(0)
    ends = [1 / high] if low == 0 else [1 / high, 1 / low]
    least = min(constant * t * t + scale * t for t in ends)
    if constant > 0:
        turn = -scale / (2 * constant)
        if turn > ends[0] and (low == 0 or turn < ends[-1]):
            least = min(least, constant * turn * turn + scale * turn)
    return max(Fraction(0), least)
