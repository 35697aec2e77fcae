"""Expected sizes of errors under additive noise, and sizes that errors do not pass.

A normal error of variance S is of size sqrt(2 S / pi) on average. Laplace noise of scales b on the multiples of a grid:
one of them is of size grid / sinh(grid / b); several on one lattice by the integral of (1 - phi(t)) / (1 - cos t), phi
their characteristic function; several on a lattice next to which they are wide by partial fractions, scales that are
the same set apart upwards, which only raises the figure. A K-norm vector of k numbers has a radius of law Gamma(k); of
a polytope, where all corners of each cone lie on one side, sizes are those of averages (noise/notes/knorm-hulls.md).
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, lcm

from flint import acb, arb, ctx, fmpq, fmpq_mat

from privspec.kernel.core.linear import Matrix, Measured, Release
from privspec.kernel.core.numbers import BITS, ZERO, ball, end, fraction, nearest, rational
from privspec.kernel.core.reading import Refused
from privspec.kernel.laws.gaussian import Normal
from privspec.kernel.laws.knorm import KNorm, KNormHulls, KNormSwaps, contrasts, numbers_of
from privspec.kernel.laws.laplace import STEEPEST, Laplace, LaplaceShares

WIDE = Fraction(1, 2**18)
"""Share of its scale up to which the step of a lattice moves no figure by more than 2^-37 of it."""
MOST, STEPS, PRECISION = 64, 64, 2**16
"""Noises in one error, steps of the lattice that one of them is multiplied by, and binary digits of partial sums."""
NEAR_NORMAL, TRIED = Fraction(14, 25), 32
"""The constant of Berry and Esseen for noises of any laws (Shevtsova 2010); Chernoff's bounds that are tried."""
NEARLY = Fraction(1, 2**30)
"""Share of a size that moves to the other side."""
APART = Fraction(1, 2**70)
"""Shares by which equal scales are set apart."""
Noises = list[tuple[Fraction, Fraction]]
"""Factors and scales of the Laplace noises of an error."""


# --- what is executed ---------------------------------------------------------------------------------


def expected_sizes(release: Release, moved: Matrix, squares: list[fmpq]) -> list[fmpq]:
    """The expected size of each error, of which noise is `moved` by rows and `squares` is the expected square.

    Raises: Refused where none is known of such noise.
    """
    law = release.noise
    if isinstance(law, Normal):
        if release.grid**2 > WIDE**2 * law.variances(1, release.grid)[0]:
            raise Refused("the size of normal noise on so coarse a lattice is not known")
        with ctx.workprec(2 * BITS):
            return [rational(nearest((2 * arb(square) / arb.pi()).sqrt())) for square in squares]
    if isinstance(law, KNorm):
        k = arb(moved.ncols())
        with ctx.workprec(2 * BITS):
            factor = k * (k / 2).gamma() / (arb.pi().sqrt() * ((k + 1) / 2).gamma())
            return [rational(nearest((arb(square) / (k + 1)).sqrt() * factor)) for square in squares]
    if isinstance(law, KNormHulls):
        return [_size_of_hulls(row, law) for row in moved.tolist()]
    if isinstance(law, KNormSwaps):
        return [_size_of_swaps(row, law) for row in moved.tolist()]
    scaled = isinstance(law, Laplace | LaplaceShares)
    sizes = law.sizes(release.grid) if scaled else tuple(law.mean_sizes(moved.ncols(), release.grid))
    known, found = dict[object, fmpq](), []
    for row in moved.tolist():
        own = sorted(_noises(release, row, sizes))
        key = tuple(own)
        if key not in known:
            known[key] = rational(laplace_size(own, release.grid, release.excess) if scaled else _size_of_one(own))
        found.append(known[key])
    return found


def _noises(release: Release, row: list[fmpq], sizes: tuple[Fraction, ...]) -> Noises:
    """The factor and the size of each noise that an error is made of."""
    parts = zip(row, sizes, release.senders, strict=True)
    return [(abs(fraction(factor)), size) for factor, size, count in parts if factor for _ in range(count)]


def _size_of_hulls(row: list[fmpq], law: KNormHulls) -> fmpq:
    """At most the size of a sum of answers: given a cone all of whose corners move it to one side, that of its average.

    Sizes add up to no less than that of a sum: of several bodies, and of corners that move it to the other side a bit.
    """
    total, start = ZERO, 0
    for body in law.bodies:
        own, known = row[start : start + body.size], body.geometry
        start += body.size
        with ctx.workprec(4 * BITS):
            mean, _, unit = numbers_of(body.corners.unit, body.scale, body.whole)
            size, weights = arb(0), arb(0)
            moved = [sum((a * b for a, b in zip(own, corner, strict=True)), fmpq(0)) for corner in body.corners.rows]
            for cone, starts, volume in zip(body.cones.rows, known.starts, known.volumes, strict=True):
                sides = [moved[i] for i in cone]
                both = sum((abs(v) for v in sides), fmpq(0)), sum(sides, fmpq(0))
                if both[0] > abs(both[1]) * rational(1 + NEARLY):
                    raise Refused("the size of sums of such noises is not known")
                weight = (-ball(sum(starts) / body.scale)).exp() if body.whole else arb(volume)
                weights += weight
                numbers = ((mean + one if body.whole else mean) for one in starts)
                size += weight * sum((abs(v) * n for v, n in zip(sides, numbers, strict=True)), arb(0))
            total += nearest(unit * size / weights)
    return rational(total)


def _size_of_swaps(row: list[fmpq], law: KNormSwaps) -> fmpq:
    """At most the size of one count, whose sizes add up to twice how many records swap; and of the last answer.

    An error is a sum of counts, all but one of them alike but for digits of the plan, and counts add up to 0.
    """
    *own, last = row
    every = (fmpq_mat([own]) * fmpq_mat(contrasts(law.cells))).entries()
    middle = sorted(every)[law.cells // 2]
    apart = sorted(abs(v - middle) for v in every)
    if sum(apart[:-1], fmpq(0)) > apart[-1] * rational(NEARLY):
        raise Refused("the size of sums of such noises is not known")
    with ctx.workprec(4 * BITS):
        size, swaps = law.cells - 1, (law.cells - 1) * ball(law.scale)
        if law.whole:
            ratio = (-1 / ball(law.scale)).exp()
            ways = [comb(size, j) ** 2 * ratio**j for j in range(size + 1)]
            swaps = sum((j * way for j, way in enumerate(ways)), arb(0)) / sum(ways, arb(0)) + size * ratio / (
                1 - ratio
            )
        each = 2 * swaps / law.cells
        return rational(nearest(arb(sum(apart, fmpq(0))) * each + arb(abs(last)) * ball(law.quiet)))


def _size_of_one(own: Noises) -> Fraction:
    if len(own) > 1:
        raise Refused("the size of sums of such noises is not known")
    return sum((factor * size for factor, size in own), ZERO)


def laplace_size(own: Noises, grid: Fraction, shape: Fraction) -> Fraction:
    """That of one error; `shape`: what a coalition leaves out makes sums of shares wider than one law."""
    if not own:
        return ZERO
    fine = all(grid <= WIDE * b for _, b in own)
    (c, b), *more = own
    alike = all(one == own[0] for one in more)
    if shape != 1 or (more and alike and fine):
        if not alike or not fine:
            raise Refused("the size of sums of such shares is not known")
        with ctx.workprec(2 * BITS):
            r = ball(shape * len(own))
            return nearest(2 * ball(c * b) * (r + arb("0.5")).gamma() / (arb.pi().sqrt() * r.gamma()))
    if not more:
        with ctx.workprec(4 * BITS):
            return nearest(ball(c * grid) / ball(grid / b).sinh()) if grid < STEEPEST * b else ZERO
    if fine:
        parts, bits = _fractions([c * b for c, b in own])
        with ctx.workprec(bits):
            return nearest(sum((share * own for share, own in parts), arb(0)))
    return _on_a_lattice(own, grid)


def _fractions(scales: list[Fraction]) -> tuple[list[tuple[arb, arb]], int]:
    """The size of a sum of Laplace noises is beyond t with probability sum A e^(-t / b): pairs of A and b.

    With the binary digits that sums of them take.
    """
    if len(scales) > MOST:
        raise Refused(f"the size of sums of more than {MOST} Laplace noises is not known")
    listed = [b * (1 + i * APART) for i, b in enumerate(sorted(scales, reverse=True)[::-1])]
    bits = 4 * BITS
    while bits <= PRECISION:
        with ctx.workprec(bits):
            found, squares = [], [ball(b) ** 2 for b in listed]
            for i, own in enumerate(squares):
                share = arb(1)
                for j, other in enumerate(squares):
                    share = share if i == j else share * own / (own - other)
                found.append((share, ball(listed[i])))
            total = sum((share for share, _ in found), arb(0))
            if total.rad() < arb(2) ** -(2 * BITS):
                return found, bits
        bits *= 2
    raise Refused("the scales of Laplace noises are too near to each other")


def _on_a_lattice(own: Noises, grid: Fraction) -> Fraction:
    """With 1 - prod phi = sum over k of (prod of phi before k)(1 - phi_k), of which 1 - cos t is a factor."""
    below = lcm(*(c.denominator for c, _ in own))
    alike = _alike(own)
    if max(c * below for c, _ in alike) > STEPS or len(alike) > MOST:
        raise Refused("the size of such a sum of Laplace noises on a coarse lattice is not known")
    with ctx.workprec(2 * BITS):
        parts = [(int(c * below), (-ball(grid / b)).exp(), many) for (c, b), many in sorted(alike.items())]

        def part(t: acb, _: bool) -> acb:
            total, before = acb(0), acb(1)
            for c, a, many in parts:
                wave, cosine = _ratio_of_sines(c, t), (c * t).cos()
                below = 1 - 2 * a * cosine + a * a
                one = (1 - a) ** 2 / below
                total += before * 2 * a * wave * wave / below * _powers(one, many)
                before *= one**many
            return total

        value = acb.integral(part, acb(0), acb(arb.pi())).real / arb.pi()
        return nearest(value * ball(grid / below))


def _alike(own: Noises) -> dict[tuple[Fraction, Fraction], int]:
    """How many noises have one factor and scale."""
    found: dict[tuple[Fraction, Fraction], int] = {}
    for one in own:
        found[one] = found.get(one, 0) + 1
    return found


def _powers(ratio: acb, many: int) -> acb:
    """1 + ratio + ratio^2 + ... with so many terms."""
    found, reached = acb(0), acb(1)
    for bit in bin(many)[2:]:
        found, reached = found * (1 + reached), reached * reached
        if bit == "1":
            found, reached = 1 + ratio * found, reached * ratio
    return found


def _ratio_of_sines(count: int, t: acb) -> acb:
    """sin(count t / 2) / sin(t / 2)."""
    twice, before, found = 2 * (t / 2).cos(), acb(0), acb(1)
    for _ in range(count - 1):
        before, found = found, twice * found - before
    return found


# --- sizes that are not passed ------------------------------------------------------------------------


def size_up(release: Release, errors: Measured, moved: Matrix, square: Fraction, probability: Fraction) -> Fraction:
    """At least the size that one error does not pass, with a probability; `square`: what is expected of its square.

    Raises: Refused where no tail is known.
    """
    law, (row, *more) = release.noise, moved.tolist()
    if more or errors.sizes or errors.weights != (Fraction(1),):
        raise Refused("no tail is known of more than one error, or of one with a weight")
    if isinstance(law, Normal):
        with ctx.workprec(2 * BITS):
            return end((ball(probability).erfinv() * (2 * ball(square)).sqrt()).upper())
    if not isinstance(law, Laplace | LaplaceShares) or release.excess != 1:
        raise Refused("no tail is known of such noise")
    return laplace_tail(_noises(release, row, law.scales), release.grid, 1 - probability)


def laplace_tail(own: Noises, grid: Fraction, tail: Fraction) -> Fraction:
    """At least the size beyond which a sum of Laplace noises lies with so small a probability."""
    if len(own) < 2:
        return max((c * grid * _steps(grid / b, tail) for c, b in own), default=ZERO)
    if len(own) > MOST or any(grid > WIDE * b for _, b in own):
        return _of_many(own, grid, tail)
    return _tail([c * b for c, b in own], tail)


def _of_many(own: Noises, grid: Fraction, tail: Fraction) -> Fraction:
    """The same by moments, the less of two: Berry and Esseen's (a distance to the normal law), and Chernoff's."""
    with ctx.workprec(2 * BITS):
        parts = [(ball(c * grid), (-ball(grid / b)).exp(), many) for (c, b), many in _alike(own).items()]
        square = sum((many * x**2 * 2 * a / (1 - a) ** 2 for x, a, many in parts), arb(0))
        cube = sum(
            (many * x**3 * 2 * a * (1 + 4 * a + a * a) / ((1 + a) * (1 - a) ** 3) for x, a, many in parts), arb(0)
        )
        found, most = [], min((-a.log() / x for x, a, _ in parts), key=float)
        left = ball(tail) - 2 * ball(NEAR_NORMAL) * cube / square ** arb("1.5")
        if left > 0:
            found.append((2 * square).sqrt() * left.erfcinv())
        log, best = (2 / ball(tail)).log(), (2 * (2 / ball(tail)).log() / square).sqrt()
        for k in range(1, TRIED):
            s = most * k / TRIED if best > most else best * (TRIED + k) / (2 * TRIED) * (most / best).min(arb(1))
            waves = [((1 - a) ** 2 / ((1 - a * (x * s).exp()) * (1 - a / (x * s).exp())), many) for x, a, many in parts]
            found.append((sum((many * wave.log() for wave, many in waves), arb(0)) + log) / s)
        ends = [end(one.upper()) for one in found if one.is_finite()]
    return min(ends)


def _steps(rate: Fraction, tail: Fraction) -> int:
    """The least k with Pr(|Z| > k) = 2 a^(k + 1) / (1 + a) <= tail, for a = e^-rate."""
    with ctx.workprec(2 * BITS):
        least = (2 / (ball(tail) * (1 + (-ball(rate)).exp()))).log() / ball(rate) - 1
        return max(int(least.upper().ceil().unique_fmpz() or 0), 0)


def _tail(scales: list[Fraction], tail: Fraction) -> Fraction:
    """The same on a lattice next to which they are wide, by halving."""
    parts, bits = _fractions(scales)

    def enough(size: Fraction) -> bool:
        with ctx.workprec(bits):
            return bool(sum((a * (-ball(size) / b).exp() for a, b in parts), arb(0)) <= ball(tail))

    low, high = ZERO, max(scales)
    while not enough(high):
        low, high = high, 2 * high
    for _ in range(BITS // 2):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
