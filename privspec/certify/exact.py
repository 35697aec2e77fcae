"""Arithmetic for claims: exact integers at the speed of floats, and floats with proved error bounds.

Products of integer matrices are exact: the integers are cut into limbs so small that a product of limb
matrices stays below 2^53, where double arithmetic makes no error in any order of summation. What cannot be
exact is enclosed: `largest_eigenvalue_up` by a floating-point Cholesky factorisation with the a-priori
bound of Rump (2006, "Verification of positive definiteness"), `privacy_curve` in ball arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import frexp, isqrt, sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

UNIT_ROUNDOFF = 2.0**-53
ROUNDINGS = 16
"""More roundings than `ExactMatrix.to_float` makes."""
BITS = 50
"""Bits of the integers that stand for float matrices where a Gram matrix must be exact."""


@dataclass(frozen=True, eq=False, slots=True)
class ExactMatrix:
    """The integer matrix `sum_s levels[s] * 2^(width s)`, exactly; every level but the last lies in [0, 2^width)."""

    levels: tuple[Integers, ...]
    width: int

    @classmethod
    def normalised(cls, levels: Sequence[Integers], width: int) -> ExactMatrix:
        """Carry whatever exceeds a level into the next."""
        done: list[Integers] = []
        carry: Any = 0
        for level in levels[:-1]:
            total = level + carry
            done.append(total & ((1 << width) - 1))
            carry = total >> width
        return cls((*done, levels[-1] + carry), width)

    def map(self, function: Callable[[Integers], Integers]) -> ExactMatrix:
        """Apply an integer linear function (with small coefficients) to every level."""
        return ExactMatrix.normalised([function(level) for level in self.levels], self.width)

    def at(self, index: tuple[int, ...]) -> int:
        """One entry."""
        return sum(int(level[index]) << (self.width * s) for s, level in enumerate(self.levels))

    def list(self) -> list[int]:
        """All entries, row-major."""
        flat = [level.ravel().tolist() for level in self.levels]
        return [sum(int(v) << (self.width * s) for s, v in enumerate(entry)) for entry in zip(*flat, strict=True)]

    def largest(self) -> int:
        """The largest entry: digits are compared from the top, as in a dictionary."""
        candidates = [level.ravel() for level in self.levels]
        total = 0
        for s in reversed(range(len(candidates))):
            best = int(candidates[s].max())
            keep = candidates[s] == best
            candidates = [level[keep] for level in candidates]
            total += best << (self.width * s)
        return total

    def to_float(self, exponent: int = 0) -> Array:
        """The entries times 2^exponent, each within `ROUNDINGS` roundings of itself (Horner from the top level)."""
        value = self.levels[-1].astype(np.float64)
        for level in reversed(self.levels[:-1]):
            value = np.ldexp(value, self.width) + level
        return np.ldexp(value, exponent)


def _limbs(integers: Integers, width: int) -> list[Integers]:
    """Signed limbs in [-2^(width-1), 2^(width-1)), least first."""
    limbs: list[Integers] = []
    rest, half, mask = integers, 1 << (width - 1), (1 << width) - 1
    while not limbs or np.any(rest):
        low = ((rest + half) & mask) - half
        limbs.append(low)
        rest = (rest - low) >> width
    return limbs


def _width(terms: int) -> int:
    """The widest limbs for which a sum of so many products of two is exact in doubles."""
    return (55 - max(terms, 1).bit_length()) // 2


def _products(left: Integers, right: Integers, product: Callable[[Integers, Integers], Integers]) -> ExactMatrix:
    """`product(left, right)` for a bilinear product that sums over the rows of both."""
    width = _width(left.shape[0])
    first = _limbs(left, width)
    second = first if right is left else _limbs(right, width)
    levels: list[Any] = [0] * (len(first) + len(second) - 1)
    for a, one in enumerate(first):
        for b, other in enumerate(second):
            levels[a + b] = levels[a + b] + product(one, other)
    return ExactMatrix.normalised(levels, width)


def exact_product(left: Integers, right: Integers) -> ExactMatrix:
    """X'Y for X (k, m) and Y (k, n), exactly."""

    def product(one: Integers, other: Integers) -> Integers:
        return (one.T.astype(np.float64) @ other.astype(np.float64)).astype(np.int64)

    return _products(left, right, product)


def exact_gram(integers: Integers) -> ExactMatrix:
    """X'X for X (k, n), exactly."""
    return exact_product(integers, integers)


def exact_squares(integers: Integers) -> ExactMatrix:
    """The squared column norms (n,) of X (k, n), exactly."""
    return _products(integers, integers, lambda one, other: (one * other).sum(axis=0))


def to_integers(values: Array, bits: int = BITS) -> tuple[Integers, int]:
    """Integers X and an exponent e with X 2^e near the values: the largest has about `bits` bits."""
    if not np.all(np.isfinite(values)):
        raise ValueError("a matrix is not finite")
    exponent = frexp(float(np.max(np.abs(values), initial=0.0)))[1] - bits
    return np.rint(np.ldexp(values, -exponent)).astype(np.int64), exponent


def is_nonnegative(matrix: Array, radius: float = 0.0) -> bool:
    """Whether every symmetric matrix within `radius` (spectral norm) of this one is positive semidefinite.

    Source: Rump 2006, corollary 2.4: if the Cholesky factorisation of A - c I runs to its end in floats
    with c above gamma_(n+1) tr A / (1 - gamma_(n+1)), then A is positive definite. The constant here is
    twice that.
    """
    n = matrix.shape[0]
    trace = float(np.trace(np.abs(matrix)))
    shift = (2 * (n + 4) * UNIT_ROUNDOFF * trace + radius) * (1 + 1e-9) + n * 1e-300
    try:
        np.linalg.cholesky((matrix + matrix.T) / 2 - shift * np.eye(n))
    except np.linalg.LinAlgError:
        return False
    return True


def largest_eigenvalue_up(matrix: Array, radius: float = 0.0) -> float:
    """An upper bound of the largest eigenvalue of every symmetric matrix within `radius` of the given one."""
    n = matrix.shape[0]
    size = float(np.linalg.norm(matrix)) + radius
    guess = float(np.linalg.eigvalsh(matrix)[-1])
    pad = 16 * UNIT_ROUNDOFF * abs(guess) + 2 * radius + 1e-300
    for _ in range(60):
        bound = guess + pad
        if is_nonnegative(bound * np.eye(n) - matrix, radius + 2 * UNIT_ROUNDOFF * (abs(bound) + size)):
            return bound
        pad *= 2
    raise ValueError("an eigenvalue bound was not found")


def squared_norm_up(integers: Integers, exponent: int) -> float:
    """An upper bound of the squared spectral norm of X 2^exponent."""
    gram = exact_gram(integers).to_float(2 * exponent)
    return largest_eigenvalue_up(gram, ROUNDINGS * UNIT_ROUNDOFF * float(np.linalg.norm(gram)))


def sqrt_up(value: Fraction) -> Fraction:
    """A rational at or above the square root, within 2^-100 of it."""
    shift = 2**200
    return Fraction(isqrt(-(-value.numerator * shift // value.denominator)) + 1, 2**100)


def float_up(value: Fraction) -> float:
    """A double at or above an exact number."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else float(np.nextafter(nearest, np.inf))


def privacy_curve(epsilon: Fraction, mu: Fraction, precision: int = 128) -> Any:
    """A ball (flint.arb) around delta(epsilon) of a Gaussian release of sensitivity mu > 0.

    Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), Balle & Wang 2018, theorem 8; the precision grows until
    the difference keeps 40 bits.
    """
    from flint import arb, ctx, fmpq

    while True:
        with ctx.workprec(precision):
            e = arb(fmpq(epsilon.numerator, epsilon.denominator))
            m = arb(fmpq(mu.numerator, mu.denominator))
            root = arb(2).sqrt()
            upper = ((e / m - m / 2) / root).erfc() / 2
            lower = ((e / m + m / 2) / root).erfc() / 2
            curve = upper - e.exp() * lower
        if curve.rel_accuracy_bits() >= 40 or precision >= 1 << 14:
            return curve
        precision *= 2


def at_most(ball: Any, limit: Fraction) -> bool:
    """Whether all of a ball lies at or below a limit."""
    from flint import arb, ctx, fmpq

    with ctx.workprec(4096):
        return bool(ball <= arb(fmpq(limit.numerator, limit.denominator)))


def largest_mu_up(epsilon: Fraction, delta: Fraction) -> float:
    """A sensitivity that no (epsilon, delta)-DP Gaussian release exceeds, within 1e-13 of the largest one.

    Bisection only proposes it; that its curve exceeds delta is proved, so every larger sensitivity does too.
    """
    from flint import arb, ctx, fmpq

    if not 0 < delta < 1:
        raise ValueError("no Gaussian release meets this delta")
    low, high = 1e-9, 1e9
    while high / low > 1 + 1e-13:
        middle = sqrt(low * high)
        ball = privacy_curve(epsilon, Fraction(middle), 256)
        with ctx.workprec(4096):
            above = bool(ball > arb(fmpq(delta.numerator, delta.denominator)))
        low, high = (low, middle) if above else (middle, high)
    return high


def hammersley_mu_up(log_ratio: Fraction) -> float:
    """The mu with mu^2 = 4 sinh(log_ratio / 2)^2, rounded up (MATH.md, section 3)."""
    from flint import arb, ctx, fmpq

    with ctx.workprec(128):
        value = 2 * (arb(fmpq(log_ratio.numerator, log_ratio.denominator)) / 2).sinh()
        return float(value.upper()) * (1 + 2**-50)
