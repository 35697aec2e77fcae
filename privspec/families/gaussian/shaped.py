"""K-norm noise of the shape that moves: independent vectors for blocks of answers, each in the norm of a box.

Answers that one unit moves together, each by itself, lie in a box; the norm of that box charges it once for all of
them, where independent noise charges it for each (Hardt & Talwar 2010; noise/notes/knorm-blocks.md). Of a box that is
far wider in some directions than in others, blocks of like widths are better, of the best scales: which blocks is
found by dynamic programming, and the scales by the program of Laplace noise, with blocks for its rows.

Few numbers may have the norm of the hull of all that moves (noise/notes/knorm-hulls.md). Its cones are found in
doubles, of corners that are moved a little so that each facet is a simplex; the kernel takes no division that is none.
Where all cones span one lattice, which answers are points of, noise is drawn on this alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise, product
from math import lcm, sqrt
from time import perf_counter

import numpy as np

from privspec.core.matrices import DyadicMatrix
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
    on_points,
    prices,
    released,
    rule_of_vectors,
)
from privspec.families.gaussian.problem import Problem
from privspec.families.gaussian.release import (
    STRATEGY_BITS,
    Candidate,
    in_whole_numbers,
    output_grid,
    rounded_reconstruction,
    rounded_strategy,
)
from privspec.kernel.core.numbers import ZERO
from privspec.kernel.core.reading import Grid, Refused
from privspec.kernel.laws.knorm import LISTED as LISTED_NUMBERS
from privspec.kernel.laws.knorm import Body, KNormBlocks, KNormHulls, KNormSwaps, contrasts, covariance_of
from privspec.kernel.laws.laplace import Laplace
from privspec.kernel.laws.law import Law
from privspec.kernel.linear import BIAS, COUNT
from privspec.problem.linear import short_denominator
from privspec.solvers.programs import Array, Boxes, Indices, Pairs, Vectors

ROWS = 64
"""Answers up to which blocks of them are looked for."""
DIMENSIONS, GRIDDED, MOVES, LISTED = 6, 4, 400, 40
"""Numbers, of a box with a grid and of any, moves, and cells whose pairs are listed, up to which a hull is sought."""
FEW, CELLS = 4, 60
"""Cells that records move between: more than so many have noise on all of them by itself, up to so many."""
STILL = 1e-9
"""Share of the largest move that counts as none."""
BITS, MOST = 28, 2.0**45
"""Bits of the turn after which numbers are uncorrelated, and its largest entry."""
BENT, SHAKEN = 1e-3, 1e-6
"""Shares of their lengths by which corners are moved: towards cones of a grid of cubes, and so that none are tied."""
SHORTEST, NEAR, LARGEST = 1000, 1e-12, 2.0**16
"""Denominators of a turn, how near doubles are to such numbers, and the largest whole number in a corner."""
DIGITS = 12
"""Of numbers that no move changes, which a solver's last digits are cut off."""
QUIET = 1e-4
"""Deviation of noise on numbers that nobody moves, as a share of that of the others; by what it costs."""
FINE = 64
"""Steps of a lattice in the scale of its noise from which on it is no better than noise on any numbers."""


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


# --- the hull of what moves ------------------------------------------------------------------------------------------


def hulled(problem: Problem, epsilons: tuple[Fraction, ...], bound: Bound | None, *, whole: bool) -> Candidate | None:
    """Noise of the hull of what moves, on real numbers or on a lattice; None where none is known."""
    started, system, scale = perf_counter(), problem.system, 1 / max(epsilons)
    views = [view.differences for view in system.views]
    if len(views) == 1 and isinstance(views[0], Pairs) and len(views[0].coordinates) > FEW:
        one = _swapped(problem, views[0], epsilons, bound, started, whole=whole)
        if one is not None or len(views[0].coordinates) > LISTED:
            return one
    moves = None if problem.local or not system.seen_whole else _moves(problem, epsilons)
    if moves is None or moves.shape[1] > MOVES or (whole and (scale > FINE or len(set(epsilons)) > 1)):
        return None
    # answers without what is common to all cells of a table, which no record that moves changes
    target = system.target.copy()
    for own in views:
        if isinstance(own, Pairs):
            target[:, own.coordinates] -= target[:, own.coordinates[:1]]
    rows = _independent(target @ moves)
    found = in_whole_numbers(target[rows]) if 2 <= len(rows) <= DIMENSIONS else None
    vectors = None if found is None else _whole_vectors(found[0].to_float() @ moves)
    if found is None or vectors is None or np.abs(found[0].integers).max() > LARGEST:
        return None
    points, below = vectors
    made = None if whole and below > 1 else _body(points, scale, whole=whole)
    if made is None:
        return None
    body, turn, bits = made
    body = replace(body, corners=replace(body.corners, unit=Fraction(1, below << bits)))
    strategy = DyadicMatrix(turn @ found[0].integers, found[0].exponent + bits)
    still = _grid([[1], [-1]]), _grid([[0], [1]])

    def law(quiet: list[Fraction]) -> Law:
        return KNormHulls((body, *(Body(*still, own) for own in quiet)))

    return _offered(problem, law, body.variances(), strategy, moves, epsilons, bound, started, whole=whole)


def _swapped(
    problem: Problem,
    pairs: Pairs,
    epsilons: tuple[Fraction, ...],
    bound: Bound | None,
    started: float,
    *,
    whole: bool,
) -> Candidate | None:
    """The same for records that move between many cells, where answers are of all of these."""
    system, at, cells = problem.system, pairs.coordinates, len(pairs.coordinates)
    scale = Fraction(pairs.scale) / epsilons[0]
    centred = system.target[:, at] - system.target[:, at[:1]]
    if problem.local or not system.seen_whole or cells > CELLS or (whole and scale > FINE):
        return None
    if np.linalg.matrix_rank(centred) < cells - 1:
        return None
    moves, turn = np.zeros((system.inputs_count, cells - 1)), np.array(contrasts(cells))
    moves[at[1:], np.arange(cells - 1)], moves[at[0]] = 1, -1
    integers = np.zeros((cells - 1, system.inputs_count), dtype=np.int64)
    integers[:, at] = turn - turn[:, :1]
    variances = KNormSwaps(cells, scale, scale, whole).variances(cells, ZERO)[:-1]

    def law(quiet: list[Fraction]) -> Law | None:
        return KNormSwaps(cells, scale, quiet[0], whole) if len(quiet) == 1 else None

    return _offered(problem, law, variances, DyadicMatrix(integers, 0), moves, epsilons, bound, started, whole=whole)


def _offered(
    problem: Problem,
    build: Callable[[list[Fraction]], Law | None],
    variances: list[Fraction],
    strategy: DyadicMatrix,
    moves: Array,
    epsilons: tuple[Fraction, ...],
    bound: Bound | None,
    started: float,
    *,
    whole: bool,
) -> Candidate | None:
    """Noise of these variances on answers of a strategy, and next to none on what no move changes."""
    system, size, quiet = problem.system, len(variances), list[Fraction]()
    outputs = system.target @ moves @ np.linalg.pinv(strategy.to_float() @ moves)
    left = system.target - outputs @ strategy.to_float()
    # each answer in its own unit: one may count records beside another that adds up squares of money
    left[np.abs(left) < STILL * np.abs(system.target).max(axis=1, keepdims=True)] = 0
    rows = _independent(left)
    if rows:
        still = left[rows] / np.abs(left[rows]).max(axis=1, keepdims=True)
        outputs = np.hstack([outputs, left @ np.linalg.pinv(still)])
        plain = in_whole_numbers(np.round(still, DIGITS))
        more = rounded_strategy(still, system.views) if plain is None or set(plain[1]) != {1} else plain[0]
        strategy = _below(strategy, more)
        squares = np.asarray(system.error_map @ outputs) ** 2
        loss = float((squares[:, :size] @ list(map(float, variances))).sum())
        weights = squares[:, size:].sum(axis=0).tolist()
        quiet = [fraction_up(QUIET * sqrt(loss / (2 * len(rows) * weight))) for weight in weights]
    law = build(quiet)
    if law is None:
        return None
    deviations = np.sqrt(list(map(float, law.variances(len(strategy.integers), ZERO))))
    if _off(system.target, outputs, strategy, deviations):
        return None
    grid = on_points(strategy.unit) if whole else lattice(float(deviations.min()))
    place = Place(Laplace, "", strategy.to_float(), outputs, rule_of_vectors(problem))
    release = released(problem, place, strategy, law, (grid, output_grid(np.abs(outputs) @ deviations)), epsilons)
    if release is None:
        return None
    name = "K-norm noise (hull of what moves" + (", in whole steps)" if whole else ")")
    words = name, "K-norm noise of the hull of what moves", "cones of a convex hull"
    return offered(problem, release, words, place.rule, bound, started)


def _off(target: Array, outputs: Array, strategy: DyadicMatrix, deviations: Array) -> bool:
    """Whether what rounding outputs leaves is more than nothing beside their noise, in exact numbers."""
    exact = rounded_reconstruction(outputs)
    bits = exact.exponent + strategy.exponent
    whole = exact.integers.astype(object) @ strategy.integers.astype(object)
    unit = Fraction(2) ** -bits
    for row, wanted, size in zip(whole, target.tolist(), np.sqrt(outputs**2 @ deviations**2).tolist(), strict=True):
        off = max((abs(unit * int(a) - Fraction(b)) for a, b in zip(row, wanted, strict=True)), default=ZERO)
        if off * COUNT > Fraction(size) * BIAS / 2:
            return True
    return False


def _below(one: DyadicMatrix, other: DyadicMatrix) -> DyadicMatrix:
    """The rows of two matrices, in the finer of their units."""
    exponent = max(one.exponent, other.exponent)
    both = [own.integers * 2 ** (exponent - own.exponent) for own in (one, other)]
    return DyadicMatrix(np.vstack(both), exponent)


def _moves(problem: Problem, epsilons: tuple[Fraction, ...]) -> Array | None:
    """All that neighbours differ in, as a hull of columns (n, N) and their opposites, of the largest epsilon."""
    found, size = list[Array](), problem.system.inputs_count
    for view, epsilon in zip(problem.system.views, epsilons, strict=True):
        more = float(max(epsilons) / epsilon)
        match view.differences:
            case Vectors(matrix) if matrix.shape[1] <= MOVES:
                found.append(more * matrix.toarray())
            case Pairs(coordinates, scale) if len(coordinates) <= LISTED:
                first, second = np.triu_indices(len(coordinates), 1)
                unit = np.eye(size)[:, coordinates]
                found.append(more * scale * (unit[:, first] - unit[:, second]))
            case Boxes() if view.requirement.neighbours.group == 1:
                for inputs, edges in view.differences.edges():
                    if edges.shape[1] > DIMENSIONS:
                        return None
                    # all points of a small grid, whose cones span it
                    steps = (1.0, 0.0, -1.0) if edges.shape[1] <= GRIDDED else (1.0, -1.0)
                    signs = np.array(list(product(steps, repeat=edges.shape[1]))).T
                    corners = np.zeros((size, signs.shape[1]))
                    corners[inputs] = more * edges @ signs
                    found.append(corners)
            case _:
                return None
    return np.hstack(found)


def _independent(rows: Array) -> list[int]:
    """The first rows of which no other is a sum."""
    chosen, base, largest = list[int](), np.zeros((0, rows.shape[1])), np.linalg.norm(rows, axis=1).max(initial=0.0)
    for i, row in enumerate(rows):
        rest = row - base.T @ (base @ row)
        rest -= base.T @ (base @ rest)
        if np.linalg.norm(rest) > STILL * largest:
            chosen.append(i)
            base = np.vstack([base, rest / np.linalg.norm(rest)])
        if len(chosen) > DIMENSIONS:
            break
    return chosen


def _whole_vectors(moved: Array) -> tuple[Indices, int] | None:
    """The columns and their opposites as rows of whole numbers over one number, each once; None of other numbers."""
    below = short_denominator(np.unique(np.abs(moved[moved != 0])).tolist())
    if below is None or np.abs(moved).max() * below > LARGEST:
        return None
    points = np.rint(moved * below).astype(np.int64).T
    points = np.unique(np.vstack([points, -points]), axis=0)
    return points[points.any(axis=1)], below


def _body(points: Indices, scale: Fraction, *, whole: bool) -> tuple[Body, Indices, int] | None:
    """The hull of points (N, r), turned so that its numbers are uncorrelated: the body, the turn, and its bits.

    None where no division into cones is found that is one.
    """
    for cones in _divisions(points):
        volumes = np.abs(np.linalg.det(points[cones]))
        if cones.size * cones.shape[1] > LISTED_NUMBERS or (whole and round(np.ptp(volumes))):
            continue
        used = np.unique(cones)
        chosen = _grid([np.searchsorted(used, cone).tolist() for cone in cones])
        try:
            known = covariance_of(_grid(points[used].tolist()), chosen, scale, whole)
            spread = np.linalg.cholesky([list(map(float, row)) for row in known])
            turn, bits = _turn(np.asarray(spread, dtype=np.float64))
            body = Body(_grid((points[used] @ turn.T).tolist()), chosen, scale, whole)
            body.variances()
            return body, turn, bits
        except (Refused, np.linalg.LinAlgError):
            continue
    return None


def _turn(spread: Array) -> tuple[Indices, int]:
    """The inverse of a triangular root of a covariance, rows of any size, in short whole numbers or with many bits."""
    plain = np.linalg.inv(spread / np.diag(spread))
    rows = [[Fraction(v).limit_denominator(SHORTEST) for v in row] for row in plain.tolist()]
    if all(
        abs(float(v) - w) < NEAR for row, own in zip(rows, plain, strict=True) for v, w in zip(row, own, strict=True)
    ):
        return np.array([[int(v * lcm(*(w.denominator for w in row))) for v in row] for row in rows]), 0
    bits = BITS + int(np.ceil(np.log2(np.diag(spread).max())))
    turn = np.linalg.inv(spread) * 2.0**bits
    if np.abs(turn).max() > MOST:
        raise Refused("numbers of too different sizes")
    return np.rint(turn).astype(np.int64), bits


def _divisions(points: Indices) -> Iterator[Indices]:
    """Facets (M, r) of hulls of points that are moved a little, in several ways; the first those of cubes on a grid."""
    from scipy.spatial import ConvexHull, QhullError  # few specs are of few numbers that move together

    size, generator = points.shape[1], np.random.default_rng(0)
    plain = points / np.abs(points).max()
    squares = (plain**2).sum(axis=1)
    even = np.linalg.svd(plain, full_matrices=False)[0]  # as wide in all directions
    for bent in ((size + 1) * squares - plain.sum(axis=1) ** 2, 0 * squares, squares, -squares):
        shaken = SHAKEN * generator.uniform(size=len(plain)) * bent.any()
        moved = even * (1 - BENT * bent / max(np.abs(bent).max(), 1e-9) + shaken)[:, None]
        try:
            found = ConvexHull(moved).simplices
        except QhullError:
            continue
        yield found.astype(np.intp)


def _grid(rows: list[list[int]]) -> Grid:
    """Whole numbers as the kernel reads them."""
    return Grid((len(rows), len(rows[0])), Fraction(1), tuple(v for row in rows for v in row))
