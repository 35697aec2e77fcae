"""From a covariance of the outputs to a release: strategy rows, noise of one standard deviation, reconstruction."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from privspec.solvers.differences import largest_norm, seen_rows
from privspec.solvers.programs import Array, GaussianProgram, View, WorstLoss
from privspec.solvers.results import Indices

RANK_TOLERANCE = 1e-11
"""Singular values of a covariance root below this fraction of the largest count as zero."""
PINNED = 2e-4
"""Standard deviation, relative to the others, of the noise on effects that no requirement protects."""
PINNED_SHARE = 1e-7
"""Most that all of this noise together may add to the total variance, relatively."""
MARGIN = 1e-11
"""Relative margin by which the largest squared Mahalanobis distance stays below one."""


@dataclass(frozen=True, eq=False, slots=True)
class Release:
    """output = reconstruction @ (strategy @ x + N(0, I)).

    `strategy` (k, n), `reconstruction` (m, k), `blocks`: leading strategy rows that each view depends on,
    `nested`: whether the views form a chain (otherwise a view's block can hold more than the view shows),
    `pinned`: number of strategy rows whose noise is only nominal because nothing protects what they carry.
    """

    strategy: Array
    reconstruction: Array
    blocks: tuple[int, ...]
    nested: bool
    pinned: int


def factor(covariance: Array, target: Array, views: tuple[View, ...]) -> Release:
    """The release with this output covariance (m, m); see `factor_root`."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    kept = values > 1e-14 * len(values) * max(float(values[-1]), 0.0)
    return factor_root(vectors[:, kept] * np.sqrt(values[kept]), target, views)


def chain(views: tuple[View, ...], m: int) -> tuple[list[Indices], bool]:
    """Output rows in the order in which ever larger views see them, and whether the views are nested.

    Returns: groups of rows, a partition of range(m); the union of the first ones is what a view sees.
    """
    shown = sorted(
        (set(range(m)) if (rows := seen_rows(view, m)) is None else {int(row) for row in rows} for view in views),
        key=len,
    )
    nested = all(small <= large for small, large in itertools.pairwise(shown))
    groups: list[Indices] = []
    done: set[int] = set()
    for seen in [*shown, set(range(m))]:
        fresh = sorted(seen - done)
        if fresh:
            groups.append(np.array(fresh, np.intp))
            done.update(fresh)
    return groups, nested


def factor_root(root: Array, target: Array, views: tuple[View, ...]) -> Release:
    """The release with output covariance root @ root.T (m, m), rows ordered for nested views.

    A block LQ factorisation: outputs seen by the smallest view use the first strategy rows only. Effects
    outside the range of the covariance get nominal noise of relative standard deviation `PINNED`; they
    must be effects of inputs that no view protects.

    Args: root (m, k); target (m, n); views.
    Returns: a `Release` with reconstruction @ strategy = target up to round-off.
    """
    m, n = target.shape
    groups, nested = chain(views, m)
    largest = float(np.linalg.norm(root, 2)) if root.size else 0.0
    spread = largest if largest > 0 else 1.0
    strategy, reconstruction = np.zeros((0, n)), np.zeros((m, 0))
    remaining, sizes, pinned = root, [], 0
    for number, group in enumerate(groups):
        later = np.concatenate([group, *groups[number + 1 :]])
        left, singular, right = np.linalg.svd(remaining[group], full_matrices=False)
        kept = singular > RANK_TOLERANCE * spread
        left, singular, right = left[:, kept], singular[kept], right[kept]
        columns = np.zeros((m, len(singular)))
        columns[later] = remaining[later] @ right.T
        columns[group] = left * singular
        remaining = remaining - (remaining @ right.T) @ right
        effect = target[group] - reconstruction[group] @ strategy
        rows = (left.T @ effect) / singular[:, None]
        reconstruction = np.column_stack([reconstruction, columns])
        strategy = np.vstack([strategy, rows])
        rest = effect - left @ (left.T @ effect)
        outside = float(np.linalg.norm(rest)) > 1e-9 * max(float(np.linalg.norm(target[group])), 1e-300)
        if outside:
            basis, values, _ = np.linalg.svd(rest, full_matrices=False)
            basis = basis[:, values > 1e-9 * values[0]]
            nominal = _nominal_deviation(root, spread, basis.shape[1])
            extra = np.zeros((m, basis.shape[1]))
            extra[group] = basis * nominal
            reconstruction = np.column_stack([reconstruction, extra])
            strategy = np.vstack([strategy, (basis.T @ rest) / nominal])
            pinned += basis.shape[1]
        sizes.append(len(strategy))
    sees = [m if (rows := seen_rows(view, m)) is None else len(rows) for view in views]
    totals = np.cumsum([len(group) for group in groups])
    if nested:
        blocks = tuple(sizes[int(np.searchsorted(totals, count))] if count else 0 for count in sees)
    else:
        blocks = tuple(_last_block(groups, sizes, seen_rows(view, m)) for view in views)
    return Release(strategy, reconstruction, blocks, nested, pinned)


def _nominal_deviation(root: Array, spread: float, count: int) -> float:
    """Standard deviation of nominal noise in `count` directions: too little to show in the loss."""
    share = np.sqrt(PINNED_SHARE / count) * float(np.linalg.norm(root))
    return min(PINNED * spread, share) if share > 0 else PINNED * spread


def _last_block(groups: list[Indices], sizes: list[int], rows: Indices | None) -> int:
    """Strategy rows up to the last group that holds one of the rows."""
    if rows is None:
        return sizes[-1]
    touched = [size for group, size in zip(groups, sizes, strict=True) if np.intersect1d(group, rows).size]
    return max(touched, default=0)


def view_strategy(view: View, release: Release, block: int, target: Array) -> Array:
    """A strategy (k', n) of noise N(0, I) that says exactly what the view's outputs say."""
    rows = seen_rows(view, len(target))
    if release.nested or rows is None:
        return release.strategy[:block]
    left, singular, _ = np.linalg.svd(release.reconstruction[rows], full_matrices=False)
    kept = singular > RANK_TOLERANCE * max(float(singular[0]), 1e-300)
    return np.asarray((left[:, kept].T @ target[rows]) / singular[kept, None])


def release_mahalanobis(views: tuple[View, ...], target: Array, release: Release) -> float:
    """Largest squared Mahalanobis distance over all views and their differences."""
    return max(
        (
            largest_norm(view_strategy(view, release, block, target), view.differences)
            for view, block in zip(views, release.blocks, strict=True)
        ),
        default=0.0,
    )


def max_mahalanobis(
    program: GaussianProgram, strategy: Array, reconstruction: Array | None, blocks: tuple[int, ...]
) -> float:
    """Largest squared Mahalanobis distance of a release over all views and differences of the program.

    Nested views are measured on the strategy rows they depend on (an upper bound by post-processing, exact for
    the releases of `factor_root`); other views on the covariance of the rows they see.
    """
    _, nested = chain(program.views, len(program.target))
    outputs = np.zeros((len(program.target), 0)) if reconstruction is None else reconstruction
    release = Release(strategy, outputs, blocks, nested or reconstruction is None, 0)
    return release_mahalanobis(program.views, program.target, release)


def tighten(views: tuple[View, ...], target: Array, release: Release) -> tuple[Release, float]:
    """Scale the noise so that the largest squared distance is just below one; the factor on the covariance."""
    scale = release_mahalanobis(views, target, release) * (1 + MARGIN)
    if scale <= 0:
        return release, 1.0
    strategy, reconstruction = release.strategy / np.sqrt(scale), release.reconstruction * np.sqrt(scale)
    return Release(strategy, reconstruction, release.blocks, release.nested, release.pinned), scale


def loss_of(program: GaussianProgram, reconstruction: Array) -> float:
    """The loss of the program under output noise reconstruction @ N(0, I)."""
    errors = np.sum(np.asarray(program.loss.error_map @ reconstruction) ** 2, axis=1)
    return float(errors.max(initial=0.0)) if isinstance(program.loss, WorstLoss) else float(errors.sum())
