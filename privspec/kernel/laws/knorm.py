"""K-norm noise: vectors of density ~ e^-|v| in a norm, rounded together with the answers.

Answers that move by d let through |d| (Hardt & Talwar 2010), whatever is rounded afterwards. The norm is the Euclidean
length in scales (noise/notes/knorm-l2.md), or one of blocks (noise/notes/knorm-blocks.md): the sum over blocks of the
largest of some sums of sizes. What moves in a box, a cross-polytope, a product of these, or in one of several such
shapes, is as long as any other move of its shape in a norm of that kind. Few numbers may have the norm of any polytope:
that of the hull of all that moves, in cones of its corners (noise/notes/knorm-hulls.md). With h(x) the sum of the
coefficients of x in the corners of its cone, h is the largest of the linear forms that are 1 on all corners of a cone,
if none of them is above 1 on any corner. A cone by the volume of its simplex, and in it a sum of corners times
exponential numbers, is of density ~ e^-h; on the lattice of the corners, a cone, and corners times geometric numbers.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import count
from math import comb

from flint import arb, arb_mat, ctx, fmpq, fmpq_mat, fmpz_mat

from privspec.kernel.changes import Anything, ByDistance, Change, Units
from privspec.kernel.core.numbers import BITS, ZERO, ball, end, fraction, nearest, rational, sqrt_up
from privspec.kernel.core.reading import Grid, Refused, frozen
from privspec.kernel.laws.law import WORDS_OF, Choice, Law, NoisyView, OfOneScale
from privspec.kernel.losses import Loss, Response
from privspec.kernel.strategies.dense import Answers, Dense, Scaling, chosen_rows

LISTED = 2**19
"""Numbers in the inverses of all cones of one body."""
UNEVEN, STEEPEST = Fraction(1, 10**6), Fraction(1, 2000)
"""Share of a variance by which numbers that are drawn may go together at most; the least scale on a lattice."""


@frozen
class KNorm(OfOneScale):
    """Whoever sees some answers is charged for all of them: the numbers of one vector are not independent."""

    family, FORM = "mixed", "knorm-l2"
    words = WORDS_OF["knorm"]
    title = "K-norm noise"
    notes = ("laplace", "knorm-l2")
    joint = True

    def variances(self, answers: int, grid: Fraction) -> list[Fraction]:
        """The radius of k numbers is of law Gamma(k)."""
        return [(answers + 1) * self.scale**2] * answers

    def let_through(self, view: NoisyView, change: Units, scaling: list[Scaling] | None) -> Loss:
        epsilon = sqrt_up(view.strategy.quadratic_sensitivity(change, scaling), 100) / self.scale
        return Loss(factors=(Response(epsilon),)) if epsilon else Loss()


@frozen
class KNormBlocks(Law):
    """A vector for each block of answers, |v| the largest over its parts of the sum of |v_i| / scale_i in each.

    `blocks`: the scale of each answer, by block and part.
    """

    blocks: tuple[tuple[tuple[Fraction, ...], ...], ...]
    family = FORM = "knorm-blocks"
    words = WORDS_OF["knorm"]
    title = "K-norm noise of the shape that moves"
    notes = ("laplace", "knorm-blocks")
    joint = True

    def __post_init__(self) -> None:
        if not all(parts and all(parts) for parts in self.blocks) or min(self.sizes(ZERO), default=ZERO) <= 0:
            raise Refused("has a block or a part without answers, or noise of no size")

    def times(self, factor: Fraction) -> Law:
        return KNormBlocks(
            tuple(tuple(tuple(scale * factor for scale in part) for part in parts) for parts in self.blocks)
        )

    @property
    def answers(self) -> int:
        return len(self.sizes(ZERO))

    def sizes(self, grid: Fraction) -> tuple[Fraction, ...]:
        return tuple(scale for parts in self.blocks for part in parts for scale in part)

    def _each(self) -> list[tuple[Fraction, int, int]]:
        """Of each answer its scale, how many its block has, and how many its part."""
        return [(scale, sum(map(len, parts)), len(part)) for parts in self.blocks for part in parts for scale in part]

    def variances(self, answers: int, grid: Fraction) -> list[Fraction]:
        """A vector is Gamma(k + 1) times a uniform point of the unit ball, a product of cross-polytopes."""
        return [2 * scale**2 * (k + 1) * (k + 2) / ((n + 1) * (n + 2)) for scale, k, n in self._each()]

    def mean_sizes(self, answers: int, grid: Fraction) -> list[Fraction]:
        return [scale * (k + 1) / (n + 1) for scale, k, n in self._each()]

    def let_through(self, view: NoisyView, change: Units, scaling: list[Scaling] | None) -> Loss:
        """Whoever sees an answer is charged for all answers of its block."""
        rows, shown = count(), list[list[Answers]]()
        for parts in self.blocks:
            own = [{next(rows): scale for scale in part} for part in parts]
            shown += [own] if any(row in part for part in own for row in view.rows) else []
        epsilon = view.strategy.largest_of_parts(shown, change)
        return Loss(factors=(Response(epsilon),)) if epsilon else Loss()


# --- polytopes ---------------------------------------------------------------------------------------------------


@frozen
class Geometry:
    """What follows from corners and cones, in units of the corners.

    `forms`: of which the largest is the norm, up to their signs; `volumes`: of each cone;
    `starts`: of each cone and corner, 1 where the points without that corner belong to the next cone, else 0;
    `inverse`: to coefficients in the corners of one cone, where each cone spans the lattice of all, else None.
    """

    forms: fmpq_mat
    volumes: tuple[int, ...]
    starts: tuple[tuple[int, ...], ...]
    inverse: fmpq_mat | None


@lru_cache(maxsize=64)
def geometry(corners: Grid, cones: Grid) -> Geometry:
    """What follows from corners and cones.

    Raises: Refused where the cones do not divide all of space, or the polytope is not convex and its own mirror image.
    """
    size, points, chosen = corners.shape[-1], corners.rows, cones.rows
    if len(corners.shape) != 2 or cones.shape != (len(chosen), size) or cones.unit != 1:
        raise Refused("has a body whose corners and cones are of other dimensions")
    if len(chosen) * size**2 > LISTED or not all(0 <= i < len(points) for cone in chosen for i in cone):
        raise Refused("has more cones than are judged, or cones of corners that a body does not have")
    every, volumes, starts, forms = (
        fmpq_mat(fmpz_mat(points)),
        list[int](),
        list[tuple[int, ...]](),
        set[tuple[Fraction, ...]](),
    )
    walls, inverses = dict[frozenset[int], list[tuple[list[fmpq], int]]](), list[fmpq_mat]()
    for cone in chosen:
        matrix = fmpz_mat([points[i] for i in cone])
        volumes.append(abs(int(matrix.det())))
        if not volumes[-1]:
            raise Refused("has a cone that is flat")
        inverses.append(fmpq_mat(matrix).inv())
        sides = inverses[-1].transpose().tolist()
        forms.add(tuple(fraction(sum(row, fmpq(0))) for row in inverses[-1].tolist()))
        starts.append(tuple(int(next(v for v in side if v) < 0) for side in sides))
        for corner, side in zip(cone, sides, strict=True):
            walls.setdefault(frozenset(cone) - {corner}, []).append((side, corner))
    for (side, _), *others in walls.values():
        # on both sides of a wall there is one cone: all points that are on no wall are in as many cones
        if len(others) != 1 or not sum(map(fmpq.__mul__, side, map(fmpq, points[others[0][1]])), fmpq(0)) < 0:
            raise Refused("has cones that do not divide all of space")
    rows = fmpq_mat([list(map(rational, form)) for form in sorted(forms) if next(v for v in form if v) > 0])
    mirrored = forms == {tuple(-v for v in form) for form in forms}
    if not mirrored or any(abs(value) > 1 for value in (rows * every.transpose()).entries()):
        raise Refused("has a body that is not convex, or not its own mirror image")
    spans = len(set(volumes)) == 1 and (every * inverses[0]).numer_denom()[1] == 1
    return Geometry(rows, tuple(volumes), tuple(starts), inverses[0] if spans else None)


@frozen
class Body:
    """Noise of density ~ e^(-|v| / scale), |v| in the norm of a polytope: its `corners`, as many numbers each.

    `cones`: each the places of as many corners. `whole`: on the points of the lattice that the corners span alone.
    """

    corners: Grid
    cones: Grid
    scale: Fraction
    whole: bool = False

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.corners.unit <= 0:
            raise Refused("has noise of no size")
        spans = self.geometry.inverse is not None
        if self.whole and (not spans or self.scale < STEEPEST):
            raise Refused("has a body whose cones do not all span its lattice, or next to no noise on it")

    @property
    def geometry(self) -> Geometry:
        return geometry(self.corners, self.cones)

    @property
    def size(self) -> int:
        """How many numbers it is for."""
        return self.corners.shape[1]

    def norms(self) -> fmpq_mat:
        """Forms of which the largest, without its sign, is the norm of a change, over the scale."""
        return self.geometry.forms * (1 / rational(self.corners.unit * self.scale))

    def moves(self, answers: fmpq_mat) -> bool:
        """Whether these are points (rows) of the lattice that the corners span."""
        inverse = self.geometry.inverse
        return inverse is not None and (answers * inverse * (1 / rational(self.corners.unit))).numer_denom()[1] == 1

    def variances(self) -> list[Fraction]:
        """Of each number, exact or to 128 bits; raised until no sum of numbers varies by more than independent ones do.

        The correlations with all others add up to what that takes at most (Gershgorin).
        """
        found = covariance_of(self.corners, self.cones, self.scale, self.whole)
        squares = (v * v / (own[i] * found[j][j]) for i, own in enumerate(found) for j, v in enumerate(own) if i != j)
        more = (self.size - 1) * sqrt_up(max(squares, default=ZERO))
        if more > UNEVEN:
            raise Refused("has noise whose numbers are not uncorrelated")
        return [own[i] * (1 + more) for i, own in enumerate(found)]


def numbers_of(unit: Fraction, scale: Fraction, whole: bool) -> tuple[arb, arb, arb]:
    """The average and the variance of what each corner is drawn with, and the unit of corners times it."""
    if not whole:
        return arb(1), arb(1), ball(unit * scale)
    ratio = (-1 / ball(scale)).exp()
    return ratio / (1 - ratio), ratio / (1 - ratio) ** 2, ball(unit)


@lru_cache(maxsize=64)
def covariance_of(corners: Grid, cones: Grid, scale: Fraction, whole: bool) -> list[list[Fraction]]:
    """Given the cone, the square of the average of a sum of its corners, and its variance."""
    known, points, chosen, size = geometry(corners, cones), corners.rows, cones.rows, corners.shape[1]
    kinds = dict[int, list[int]]()
    for cone, key in enumerate(map(sum, known.starts) if whole else known.volumes):
        kinds.setdefault(key, []).append(cone)
    with ctx.workprec(4 * BITS):
        mean, variance, unit = numbers_of(corners.unit, scale, whole)
        total, weights = arb_mat(size, size), arb(0)
        for key, own in kinds.items():
            weight = (-ball(key / scale)).exp() if whole else arb(key)
            averages, moved = list[list[arb]](), list[list[int]]()
            for cone in own:
                rows = [points[i] for i in chosen[cone]]
                each = [mean + start if whole else mean for start in known.starts[cone]]
                averages += (arb_mat([each]) * arb_mat(fmpz_mat(rows))).tolist()
                moved += rows
            squares, spread = arb_mat(averages), fmpz_mat(moved)
            total += weight * (squares.transpose() * squares + variance * arb_mat(spread.transpose() * spread))
            weights += weight * len(own)
        return [[nearest(unit**2 * v / weights) for v in row] for row in total.tolist()]


@frozen
class KNormHulls(Law):
    """A vector for the answers of each body in turn, in the norm of a polytope: the hull of what moves."""

    bodies: tuple[Body, ...]
    family = FORM = "knorm-hulls"
    words = WORDS_OF["knorm"]
    title = "K-norm noise of the hull of what moves"
    notes = ("laplace", "knorm-hulls")
    joint = True

    def times(self, factor: Fraction) -> Law:
        return KNormHulls(tuple(replace(body, scale=body.scale * factor) for body in self.bodies))

    @property
    def answers(self) -> int:
        return sum(body.size for body in self.bodies)

    def sizes(self, grid: Fraction) -> tuple[Fraction, ...]:
        """How far corners reach in each answer, in the scale of their body."""
        found = list[Fraction]()
        for body in self.bodies:
            columns = zip(*body.corners.rows, strict=True)
            found += [max(map(abs, column)) * body.corners.unit * body.scale for column in columns]
        return tuple(found)

    def variances(self, answers: int, grid: Fraction) -> list[Fraction]:
        """No sum of answers varies by more than under independent noise of these variances."""
        return [variance for body in self.bodies for variance in body.variances()]

    def let_through(self, view: NoisyView, change: Units, scaling: list[Scaling] | None) -> Loss:
        """Whoever sees an answer is charged for all answers of its body."""
        forms, shown, start = list[list[fmpq]](), list[list[Answers]](), 0
        for body in self.bodies:
            own = list(range(start, start + body.size))
            start += body.size
            if not set(own) & set(view.rows):
                continue
            if body.whole:
                _check_points(body, view, own)
            norms = (body.norms() * chosen_rows(view.strategy.matrix, own)).tolist()
            shown.append([{len(forms) + row: Fraction(1)} for row in range(len(norms))])
            forms += norms
        epsilon = Dense(fmpq_mat(forms)).largest_of_parts(shown, change) if forms else ZERO
        return Loss(factors=(Response(epsilon),)) if epsilon else Loss()


def _check_points(body: Body, view: NoisyView, own: list[int]) -> None:
    """All answers are points of the lattice that the corners of a body span."""
    whole = (body.corners.unit / view.lattice.grid).denominator == 1 and not any(
        view.lattice.rounding(view.strategy, own)
    )
    columns = chosen_rows(view.strategy.matrix, own).transpose().tolist()
    moved = [
        [v * rational(p) for v in column]
        for column, points in zip(columns, view.lattice.points, strict=True)
        for p in points
    ]
    if not whole or not body.moves(fmpq_mat(moved)):
        raise Refused("has answers between the points of the lattice that its noise is drawn on")


# --- swaps of many counts -----------------------------------------------------------------------------------------


@frozen
class KNormSwaps(Law):
    """Noise on `cells` counts that adds up to 0, in half the sum of its sizes; and of scale `quiet` on one answer more.

    Answers are contrasts: the first j counts less j times the next, for j = 1, 2, ..; they are uncorrelated. `whole`:
    on whole numbers alone. Note knorm-swaps.
    """

    cells: int
    scale: Fraction
    quiet: Fraction
    whole: bool = False
    family = FORM = "knorm-swaps"
    words = WORDS_OF["knorm"]
    title = "K-norm noise of the hull of what moves"
    notes = ("laplace", "knorm-swaps")
    joint = True

    def __post_init__(self) -> None:
        if self.cells < 2 or min(self.scale, self.quiet) <= 0 or (self.whole and self.scale < STEEPEST):
            raise Refused("has noise of no size, or next to none on a lattice")

    def times(self, factor: Fraction) -> Law:
        return replace(self, scale=self.scale * factor, quiet=self.quiet * factor)

    @property
    def answers(self) -> int:
        return self.cells

    def sizes(self, grid: Fraction) -> tuple[Fraction, ...]:
        return (*[self.scale] * (self.cells - 1), self.quiet)

    def variances(self, answers: int, grid: Fraction) -> list[Fraction]:
        """All directions but that of the total vary alike."""
        each = expected_square(self.cells, self.scale, self.whole) / (self.cells - 1)
        return [*(j * (j + 1) * each for j in range(1, self.cells)), 2 * self.quiet**2]

    def let_through(self, view: NoisyView, change: Units, scaling: list[Scaling] | None) -> Loss:
        """Whoever sees a contrast is charged for all of them."""
        rows, size, shown = view.strategy.matrix, self.cells, list[list[Answers]]()
        turn = fmpq_mat(contrasts(size)).transpose().tolist()
        back = [[v / (j * (j + 1)) for j, v in enumerate(row, 1)] for row in turn]
        counts = fmpq_mat(back) * chosen_rows(rows, list(range(size - 1)))
        if min(view.rows, default=size) < size - 1:
            shown.append([dict.fromkeys(range(size), 2 * self.scale)])
            if self.whole:
                self._check_points(view, counts)
        if size - 1 in view.rows:
            shown.append([{size: self.quiet}])
        every = Dense(fmpq_mat([*counts.tolist(), rows.tolist()[size - 1]]))
        epsilon = every.largest_of_parts(shown, change)
        return Loss(factors=(Response(epsilon),)) if epsilon else Loss()

    def _check_points(self, view: NoisyView, counts: fmpq_mat) -> None:
        """All counts that contrasts are made of are whole numbers, as is what one released step divides."""
        own = list(range(self.cells - 1))
        columns = zip(counts.transpose().tolist(), view.lattice.points, strict=True)
        whole = all((v * rational(point)).q == 1 for column, points in columns for point in points for v in column)
        if not whole or view.lattice.grid.numerator != 1 or any(view.lattice.rounding(view.strategy, own)):
            raise Refused("has answers between the points of the lattice that its noise is drawn on")


def contrasts(cells: int) -> list[list[int]]:
    """The first j counts less j times the next (cells - 1, cells)."""
    return [[1] * j + [-j] + [0] * (cells - 1 - j) for j in range(1, cells)]


@lru_cache(maxsize=64)
def expected_square(cells: int, scale: Fraction, whole: bool) -> Fraction:
    """Of the length of noise on counts that adds up to 0: exact, or to 128 bits.

    Of n records p counts above 0 are a composition of n, and the others one with parts of 0.
    """
    if not whole:
        ways = [comb(cells, p) * comb(cells - 2, p - 1) for p in range(1, cells)]
        parts = (Fraction(2, p + 1) + Fraction(2, cells - p + 1) for p in range(1, cells))
        return scale**2 * cells * (cells - 1) * sum(map(Fraction.__mul__, parts, map(Fraction, ways))) / sum(ways)
    sums = [_shell(cells, n) for n in range(cells + 2)]
    with ctx.workprec(4 * BITS + 8 * cells):
        ratio = (-1 / ball(scale)).exp()
        # as a series in the ratio whose terms are of a polynomial of degree d + 1: times (1 - ratio)^(d + 2) it ends
        top = [sum(comb(cells + 1, i) * (-1) ** i * sums[n - i] for i in range(n + 1)) for n in range(cells + 2)]
        found = sum((ball(v) * ratio**n for n, v in enumerate(top)), arb(0)) / (1 - ratio) ** 2
        return nearest(found / sum((comb(cells - 1, j) ** 2 * ratio**j for j in range(cells)), arb(0)))


def _shell(cells: int, n: int) -> Fraction:
    """The sum of squared lengths over all points at which n records swap."""
    total = ZERO
    for p in range(1, cells if n else 1):
        q = cells - p
        ways = comb(cells, p) * comb(n - 1, p - 1) * comb(n + q - 1, q - 1)
        total += ways * (Fraction(n * (2 * n - p + 1), p + 1) + Fraction(n * (2 * n + q - 1), q + 1))
    return total


LAWS = (KNorm, KNormBlocks, KNormHulls, KNormSwaps)
NORMS = ("l1", "l2", "linf")
"""From the largest to the least."""
PRECISION = 256


@frozen
class NoisyPoint(Choice):
    """A report of one point of `size` numbers: density ~ e^(-|v| / scale) in a norm, rounded afterwards.

    `diameter_squared`: the largest distance of two points in that norm, squared; None where points may lie anywhere.
    Two points let through their distance in scales, by the triangle inequality (notes/real-points.md).
    """

    norm: str
    size: int
    scale: Fraction
    diameter_squared: Fraction | None
    notes = ("real-points",)

    def __post_init__(self) -> None:
        if self.norm not in NORMS or self.scale <= 0 or self.size < 1:
            raise Refused("has noise of no size, or in no norm that is known")

    def let_through(self, change: Change) -> Loss:
        match change:
            case ByDistance(other):
                square: Fraction | None = ratio_squared(self.norm, other, self.size)
            case Anything():
                square = self.diameter_squared
            case _:
                square = None
        if square is None:
            raise Refused("is a report of one point, and nothing is known of such a change of it")
        return Loss(factors=(Response(root_up(square) / self.scale),))


def ratio_squared(norm: str, other: str, size: int) -> Fraction:
    """The square of the least c for which |v|_norm <= c |v|_other for all v."""
    return Fraction(size ** max(0, NORMS.index(other) - NORMS.index(norm)))


def root_up(value: Fraction) -> Fraction:
    """At least the square root: itself where it is rational."""
    with ctx.workprec(PRECISION):
        top, bottom = arb(value.numerator).sqrt(), arb(value.denominator).sqrt()
        if top.is_exact() and bottom.is_exact():
            return end(top) / end(bottom)
        return end((top / bottom).upper())
