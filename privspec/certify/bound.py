"""The lower bound on the loss, re-derived from the weighted differences that a plan lists (MATH.md, section 2).

For weights p_i >= 0, admissible differences with images v_i (in units of the largest mu that the
requirement allows) and any vectors z_i, v' S^-1 v >= 2 z'v - z'Sz gives, for every noise covariance S that
meets the requirements,

    loss(S) >= (sum p z'v)^2 / (kappa sum p)

where kappa is the largest ratio of sum p (z'e)^2 to the loss of e over the unit noises e that the mechanism
may use. The z here are chosen from the plan's own covariance or by a singular value decomposition; whatever
they are, the bound holds, and it is evaluated with every rounding counted against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, isfinite

import numpy as np
from numpy.typing import NDArray

from privspec.certify.exact import (
    BITS,
    ROUNDINGS,
    UNIT_ROUNDOFF,
    Array,
    Integers,
    exact_product,
    largest_eigenvalue_up,
    squared_norm_up,
    to_integers,
)

TINY = 1e-9
"""Singular values below this share of the largest are left out (which can only lower the bound)."""


@dataclass(frozen=True, eq=False, slots=True)
class Images:
    """What the differences of one requirement do: columns of `moves` (n, N), divided by mu, with root weights (N,).

    `terms` (R,) bool: the error terms that depend only on outputs the requirement covers; `seen`: those
    outputs.
    """

    moves: Array
    roots: Array
    terms: NDArray[np.bool_]
    seen: NDArray[np.int64]


def _total(views: Sequence[Images]) -> float:
    """The sum of weights, rounded up."""
    return fsum(float(r) * float(r) for view in views for r in view.roots) * (1 + 4 * UNIT_ROUNDOFF)


def _quotient(alpha: float, kappa: float, total: float) -> float:
    """The bound, rounded down.

    Raises: ValueError if anything overflowed on the way.
    """
    if not all(isfinite(part) and part < 1e150 for part in (alpha, kappa, total)):
        raise ValueError("the dual point is out of range")
    if not (alpha > 0 and kappa > 0 and total > 0):
        return 0.0
    return alpha * alpha / (kappa * total) * (1 - 16 * UNIT_ROUNDOFF)


def _inner(left: Array, right: Array, error: Array) -> float:
    """A lower bound of sum(left * right) where right is known within `error`."""
    products = left * right
    slack = float(np.sum(np.abs(left) * error)) + 2 * UNIT_ROUNDOFF * float(np.sum(np.abs(products)))
    return fsum(products.ravel().tolist()) - slack * (1 + 1e-6)


def full_bound(errors: Array, noise: Array, views: Sequence[Images]) -> float:
    """No unbiased mechanism with additive noise of any covariance that meets the requirements has a smaller loss.

    Args: errors (R, n), how the error terms move with the base vector through the aims; noise (R, k), how
    they move with the noise of the plan (only guides the choice of z). The loss is the sum of squares of
    the terms.
    """
    images = [errors @ (view.moves * view.roots) for view in views]
    sizes = [np.abs(errors) @ np.abs(view.moves * view.roots) for view in views]
    for view, image, size in zip(views, images, sizes, strict=True):
        image[~view.terms] = 0.0
        size[~view.terms] = 0.0
    longest = max(int(np.count_nonzero(view.moves, axis=0).max(initial=0)) for view in views)
    roundings = 2 * (longest + 16) * UNIT_ROUNDOFF
    image, size = np.hstack(images), np.hstack(sizes)
    if not np.any(image):
        return 0.0
    if all(np.array_equal(view.terms, views[0].terms) for view in views):
        return _polar_bound(image, size * roundings, _total(views))
    parts = [_guided(noise, image_, view.terms) for image_, view in zip(images, views, strict=True)]
    chosen, exponent = to_integers(np.hstack(parts))
    z = np.ldexp(chosen.astype(np.float64), exponent)
    small = chosen if chosen.shape[1] <= chosen.shape[0] else np.ascontiguousarray(chosen.T)
    return _quotient(_inner(z, image, size * roundings), squared_norm_up(small, exponent), _total(views))


def _polar_bound(image: Array, error: Array, total: float) -> float:
    """The squared nuclear norm of the image over the sum: z is the polar factor, in two nearly orthonormal parts."""
    core = np.linalg.qr(image, mode="r") if image.shape[0] > image.shape[1] else image
    _, values, right = np.linalg.svd(core, full_matrices=False)
    keep = values > TINY * values[0]
    basis = right[keep].T
    left, left_exponent = to_integers((image @ basis) / values[keep], BITS)
    basis_integers, basis_exponent = to_integers(basis, BITS)
    kappa = squared_norm_up(left, left_exponent) * squared_norm_up(basis_integers, basis_exponent)
    outer = np.ldexp(left.astype(np.float64), left_exponent)
    inner = np.ldexp(basis_integers.astype(np.float64), basis_exponent)
    # the long sums are exact, over the image rounded to integers
    rounded, exponent = to_integers(np.ascontiguousarray(image.T), BITS)
    product = exact_product(rounded, basis_integers).to_float(exponent + basis_exponent)
    error = error + 2.0 ** (exponent - 1)
    slack = error @ np.abs(inner) * (1 + 1e-6) + ROUNDINGS * UNIT_ROUNDOFF * np.abs(product)
    return _quotient(_inner(outer, product, slack), kappa * (1 + 4 * UNIT_ROUNDOFF), total)


@dataclass(frozen=True, eq=False, slots=True)
class Moment:
    """Very many differences of one size: sum p d d' = factor * matrix, and the sum of the p, both integers.

    `factor` is (size / mu)^2 rounded down.
    """

    matrix: Integers
    total: int
    factor: float


def moment_bound(errors: Array, moment: Moment) -> float:
    """As `full_bound` for a requirement that covers every term, with z = K d for one matrix K.

    Then sum p z'v = tr K'TM and sum p zz' = K M K'; M is exact, K is rounded to integers.
    """
    basis, basis_exponent, norm = None, 0, 1.0
    small = errors
    if errors.shape[0] > errors.shape[1]:
        basis, basis_exponent = to_integers(np.linalg.qr(errors)[0], BITS)
        norm = squared_norm_up(basis, basis_exponent)
        small = np.ldexp(basis.astype(np.float64), basis_exponent).T @ errors
    guide = _guide(small, moment.matrix.astype(np.float64) / float(moment.total))
    k, exponent = to_integers(guide, BITS)
    product = exact_product(np.ascontiguousarray(k.T), moment.matrix).to_float(exponent)
    error = ROUNDINGS * UNIT_ROUNDOFF * np.abs(product)
    rounded, shift = to_integers(product, BITS)
    size = np.abs(np.ldexp(k.astype(np.float64), exponent))
    square = exact_product(np.ascontiguousarray(rounded.T), np.ascontiguousarray(k.T)).to_float(shift + exponent)
    loose = (error + 2.0 ** (shift - 1)) @ size.T + ROUNDINGS * UNIT_ROUNDOFF * np.abs(square)
    kappa = largest_eigenvalue_up((square + square.T) / 2, float(np.linalg.norm(loose)) * (1 + 1e-9))
    if basis is not None:
        outer = np.ldexp(basis.astype(np.float64), basis_exponent) @ product
        slack = np.abs(np.ldexp(basis.astype(np.float64), basis_exponent)) @ (
            error + (len(k) + 4) * UNIT_ROUNDOFF * np.abs(product)
        )
        alpha = _inner(errors, outer, slack)
    else:
        alpha = _inner(errors, product, error)
    return (
        _quotient(alpha, kappa * norm, float(moment.total) * (1 + 2 * UNIT_ROUNDOFF))
        * moment.factor
        * (1 - 4 * UNIT_ROUNDOFF)
    )


def _guide(errors: Array, moment: Array) -> Array:
    """K (r, n) with K M K' near a projection and tr K'TM near the nuclear norm of T M^(1/2)."""
    values, vectors = np.linalg.eigh(moment)
    keep = values > TINY * values[-1]
    roots, basis = np.sqrt(values[keep]), vectors[:, keep]
    left, sizes, right = np.linalg.svd((errors @ basis) * roots, full_matrices=False)
    good = sizes > TINY * sizes[0]
    return np.asarray((left[:, good] @ right[good] / roots) @ basis.T, dtype=np.float64)


def _guided(noise: Array, image: Array, terms: NDArray[np.bool_]) -> Array:
    """Z = S^+ v in the space of the error terms of one view, S the covariance of those terms in the plan."""
    z = np.zeros_like(image)
    z[terms] = _solve(noise[terms], image[terms])
    return z


def _solve(factor: Array, right: Array) -> Array:
    """(factor factor')^+ right."""
    # by singular values: the product factor factor' would lose to round-off what little noise there is beside much
    left, values, _ = np.linalg.svd(factor, full_matrices=False)
    keep = values > TINY**1.25 * values[0]
    basis, squares = left[:, keep], values[keep] ** 2
    return np.asarray(basis @ ((basis.T @ right) / squares[:, None]), dtype=np.float64)


def sites_bound(target: Array, reconstruction: Array, maps: Array, costs: Array, views: Sequence[Images]) -> float:
    """No independent noise at the given sites that meets the requirements has a smaller loss.

    Args: target (m, n); reconstruction (m, k) of the plan in noise units (only guides the choice of z);
    maps (m, K), columns of all site coordinates; costs (K,), the loss of unit noise at each, rounded down.
    """
    used = np.any(maps != 0.0, axis=0)
    maps, costs = maps[:, used], costs[used]
    loads = np.zeros(maps.shape[1])
    alpha = 0.0
    for view in views:
        moves = view.moves * view.roots
        image = target[view.seen] @ moves
        longest = int(np.count_nonzero(moves, axis=0).max(initial=0))
        size = 2 * (longest + 16) * UNIT_ROUNDOFF * (np.abs(target[view.seen]) @ np.abs(moves))
        z = _solve(reconstruction[view.seen], image)
        alpha += _inner(z, image, size)
        seen = maps[view.seen]
        error = 2 * (len(seen) + 4) * UNIT_ROUNDOFF * (np.abs(z).T @ np.abs(seen))
        loads += (((np.abs(z.T @ seen) + error) ** 2).sum(axis=0)) * (1 + 4 * (len(moves.T) + 4) * UNIT_ROUNDOFF)
    if np.any((costs <= 0) & (loads > 0)):
        return 0.0
    ratios = loads[costs > 0] / costs[costs > 0]
    kappa = float(np.max(ratios, initial=0.0)) * (1 + 8 * UNIT_ROUNDOFF)
    return _quotient(alpha, kappa, _total(views))
