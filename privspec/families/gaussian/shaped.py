"""K-norm noise of the shape that moves: independent vectors for blocks of answers, each in the norm of a box.

Answers that one unit moves together, each by itself, lie in a box; the norm of that box charges it once for all of
them, where independent noise charges it for each (Hardt & Talwar 2010; noise/notes/knorm-blocks.md). Of a box that is
far wider in some directions than in others, blocks of like widths are better, of the best scales: which blocks is
found by dynamic programming, and the scales by the program of Laplace noise, with blocks for its rows.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from time import perf_counter

import numpy as np

from privspec.core.records import replace
from privspec.families.gaussian.places import (
    Bound,
    Place,
    best_scales,
    fraction_up,
    in_exact_numbers,
    lattice,
    move_costs,
    offered,
    prices,
    released,
    rule_of_vectors,
)
from privspec.families.gaussian.problem import Problem
from privspec.families.gaussian.release import (
    STRATEGY_BITS,
    Candidate,
    output_grid,
)
from privspec.kernel.laws.knorm import KNormBlocks
from privspec.solvers.programs import Array

ROWS = 64
"""Answers up to which blocks of them are looked for."""


def shaped(problem: Problem, place: Place, epsilons: tuple[Fraction, ...], bound: Bound | None) -> Candidate | None:
    """The best blocks that are found at a place; None where each answer is best by itself."""
    started, system = perf_counter(), problem.system
    if not 2 <= len(place.strategy) <= ROWS or not system.seen_whole or place.messages:
        return None
    place, dyadic, *_ = in_exact_numbers(place, system.views, STRATEGY_BITS)
    moved = move_costs(problem, dyadic.to_float(), place.outputs != 0, epsilons)
    if moved is None or not moved.any(axis=0).all():
        return None
    blocks = _blocks(moved, prices(problem, place).max(axis=0))
    if len(blocks) == len(place.strategy):
        return None
    order, reach = [row for own in blocks for row in own], moved.max(axis=0)
    dyadic = replace(dyadic, integers=dyadic.integers[order])
    place = replace(place, strategy=place.strategy[order], outputs=place.outputs[:, order])
    moved, reach = moved[:, order] / reach[order], reach[order]
    ends = np.cumsum([0, *map(len, blocks)])
    gathered = np.zeros((len(order), len(blocks)))
    for b, own in enumerate(blocks):
        gathered[ends[b] : ends[b + 1], b] = _width(len(own)) / place.spread
    gathered *= reach[:, None] ** 2
    costs = np.column_stack([moved[:, ends[b] : ends[b + 1]].max(axis=1) for b in range(len(blocks))])
    wide = np.repeat(best_scales(problem, place, costs, gathered), np.diff(ends)) * reach
    exact = [fraction_up(one) for one in wide.tolist()]
    law = KNormBlocks(tuple(tuple((one,) for one in exact[a:b]) for a, b in pairwise(ends)))
    grids = lattice(float(wide.min())), output_grid(np.abs(place.outputs) @ wide)
    release = released(problem, place, dyadic, law, grids, epsilons)
    if release is None:
        return None
    reason = "K-norm noise of the box that answers move in"
    words = (f"K-norm noise (box) {place.where}", reason, "K-norm blocks, interior point")
    return offered(problem, release, words, rule_of_vectors(problem), bound, started)


def _width(size: int) -> float:
    """The variance of each number of such noise of scale 1."""
    return (size + 1) * (size + 2) / 3


def _blocks(moved: Array, weights: Array) -> list[list[int]]:
    """Answers (k,) in blocks: those that the same units move, of like widths, by how far each unit moves each (N, k).

    Among blocks of answers next to each other by what they cost, of one unit that moves all of them the best: of
    scales for which a sum of costs over squares is least, the cube root of the loss is the sum of those of the costs.
    """
    costs, found = weights * moved.max(axis=0) ** 2, list[list[int]]()
    kinds = dict[bytes, list[int]]()
    for row, column in enumerate((moved > 0).T):
        kinds.setdefault(column.tobytes(), []).append(row)
    for rows in kinds.values():
        order = sorted(rows, key=costs.__getitem__, reverse=True)
        sums = np.concatenate([[0.0], np.cumsum(costs[order])])
        best, before = np.zeros(len(order) + 1), [0] * (len(order) + 1)
        for stop in range(1, len(order) + 1):
            each = [best[a] + (_width(stop - a) * (sums[stop] - sums[a])) ** (1 / 3) for a in range(stop)]
            before[stop] = int(np.argmin(each))
            best[stop] = each[before[stop]]
        stop, own = len(order), list[list[int]]()
        while stop:
            own.append(order[before[stop] : stop])
            stop = before[stop]
        found += own[::-1]
    return found
