"""Factors of covariances that release what is asked, and lower bounds on the loss.

From a covariance of the outputs to a release: strategy rows, noise of one standard deviation, reconstruction. And what
any dual point proves, rounded down (MATH.md section 2).

For any weights p >= 0, vectors z and admissible differences with effects v:
    v' S^-1 v >= 2 z'v - z' S z,    so    loss >= (sum p z'v)^2 / (kappa sum p)
as long as unit noise at every allowed place is charged at most kappa times its cost: sum p (z'm)^2 <= kappa c(m).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import scipy
from privspec.solvers.programs import (
    Array,
    DualPoint,
    GaussianProgram,
    GaussianSolution,
    Indices,
    View,
    WorstLoss,
    largest_norm,
    seen_rows,
    sees_all,
)

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


def root_of(covariance: Array) -> Array:
    """A root (m, k) of a covariance (m, m)."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    kept = values > 1e-14 * len(values) * max(float(values[-1]), 0.0)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def chain(views: tuple[View, ...], m: int) -> tuple[list[Indices], bool]:
    """Output rows in the order in which ever larger views see them, and whether the views are nested.

    Returns: groups of rows, a partition of range(m); the union of the first ones is what a view sees.
    """
    shown = sorted((set(seen_rows(view, m).tolist()) for view in views), key=len)
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
    spread = 0.0
    strategy, reconstruction = np.zeros((0, n)), np.zeros((m, 0))
    remaining, sizes, pinned = root, [], 0
    for number, group in enumerate(groups):
        later = np.concatenate([group, *groups[number + 1 :]])
        left, singular, right = np.linalg.svd(remaining[group], full_matrices=False)
        if not spread:
            first = singular.max(initial=0.0) if len(groups) == 1 else np.linalg.norm(root, 2) if root.size else 0.0
            spread = float(first) if first > 0 else 1.0
        kept = singular > RANK_TOLERANCE * spread
        left, singular, right = left[:, kept], singular[kept], right[kept]
        columns = np.zeros((m, len(singular)))
        columns[group] = left * singular
        if len(later) > len(group):
            columns[later[len(group) :]] = remaining[later[len(group) :]] @ right.T
            remaining = remaining - (remaining @ right.T) @ right
        effect = target[group] - reconstruction[group] @ strategy if len(strategy) else target[group]
        inner = left.T @ effect
        turn = settled(inner / singular[:, None])
        reconstruction = np.column_stack([reconstruction, columns @ turn.T])
        strategy = np.vstack([strategy, turn @ (inner / singular[:, None])])
        rest = effect - left @ inner
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
    blocks = tuple(_last_block(groups, sizes, seen_rows(view, m)) for view in views)
    return Release(strategy, reconstruction, blocks, nested, pinned)


TIED = 1e-3
"""Relative difference up to which sizes of columns are the same: solved strategies are no more exact."""


def settled(rows: Array) -> Array:
    """A rotation (r, r) of rows (r, n) that depends on their products alone, and on no solver's round-off.

    Gaussian noise fixes a strategy up to a rotation: without a rule a machine's arithmetic would choose it, and with it
    what simulations draw. Triangular in the first columns, or where these are next to dependent in others.
    """
    turn, upper = np.linalg.qr(rows[:, : len(rows)])
    sizes = np.abs(np.diag(upper))
    if len(sizes) == len(rows) and sizes.min(initial=1.0) > TIED * sizes.max(initial=1.0):
        return np.asarray((turn * np.sign(np.diag(upper))).T)
    return triangular(rows)


def triangular(rows: Array) -> Array:
    """The rotation (r, r) of rows (r, n) that makes them triangular in some of their columns, positive where these end.

    Columns are taken as they add most to those before, the first of those that add as much.
    """
    left, basis = rows.copy(), np.zeros((len(rows), len(rows)))
    for k in range(len(rows)):
        sizes = np.sum(left**2, axis=0)
        at = int(np.argmax(sizes >= sizes.max() * (1 - TIED)))
        basis[k] = left[:, at] / max(np.sqrt(sizes[at]), 1e-300)
        left = rows - basis[: k + 1].T @ (basis[: k + 1] @ rows)
    turn, upper = np.linalg.qr(basis.T)
    return np.asarray((turn * np.where(np.diag(upper) < 0, -1.0, 1.0)).T)


def _nominal_deviation(root: Array, spread: float, count: int) -> float:
    """Standard deviation of nominal noise in `count` directions: too little to show in the loss."""
    share = np.sqrt(PINNED_SHARE / count) * float(np.linalg.norm(root))
    return min(PINNED * spread, share) if share > 0 else PINNED * spread


def _last_block(groups: list[Indices], sizes: list[int], rows: Indices) -> int:
    """Strategy rows up to the last group that holds one of the rows."""
    return max((size for group, size in zip(groups, sizes, strict=True) if np.isin(group, rows).any()), default=0)


def view_strategy(view: View, release: Release, block: int, target: Array) -> Array:
    """A strategy (k', n) of noise N(0, I) that says exactly what the view's outputs say."""
    if release.nested or sees_all(view, len(target)):
        return release.strategy[:block]
    rows = seen_rows(view, len(target))
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


def release_of(program: GaussianProgram, solution: GaussianSolution) -> Release:
    """The release of a solution; without its reconstruction the views are measured on the strategy rows they need."""
    nested = solution.reconstruction is None or chain(program.views, len(program.target))[1]
    outputs = np.zeros((len(program.target), 0)) if solution.reconstruction is None else solution.reconstruction
    return Release(solution.strategy, outputs, solution.blocks, nested, 0)


def tighten(views: tuple[View, ...], target: Array, release: Release) -> tuple[Release, float]:
    """Scale the noise so that the largest squared distance is just below one; the factor on the covariance."""
    scale = release_mahalanobis(views, target, release) * (1 + MARGIN)
    if scale <= 0:
        return release, 1.0
    deviation = np.sqrt(scale)
    strategy, reconstruction = release.strategy / deviation, release.reconstruction * deviation
    return replace(release, strategy=strategy, reconstruction=reconstruction), scale


def loss_of(program: GaussianProgram, reconstruction: Array) -> float:
    """The loss of the program under output noise reconstruction @ N(0, I)."""
    errors = np.sum(np.asarray(program.loss.error_map @ reconstruction) ** 2, axis=1)
    if isinstance(program.loss, WorstLoss):
        return float(program.loss.added(errors).max(initial=0.0))
    return float(errors.sum())


UNIT = float(np.finfo(float).eps)
LARGEST_PRODUCT = 2e7
"""Entries of the matrix of all effects above which only its Gram matrix is formed."""


def weighted_error_map(program: GaussianProgram, dual: DualPoint) -> Array:
    """The error map C (q, m), its rows times the roots of the loss weights of a worst-case loss."""
    error_map = program.loss.error_map
    if not isinstance(program.loss, WorstLoss):
        return error_map
    if dual.loss_weights is None:
        raise ValueError("a worst-case loss needs loss weights")
    weights = np.maximum(dual.loss_weights, 0.0)
    # the weights are made to sum to at most one, which is all the bound needs
    weights = program.loss.spread(weights / (weights.sum() * (1 + 4 * UNIT * len(weights))))
    if scipy.sparse.issparse(error_map):
        return scipy.sparse.csr_array(scipy.sparse.diags_array(np.sqrt(weights)) @ error_map)  # type: ignore[return-value]
    return np.asarray(np.sqrt(weights)[:, None] * error_map)


def lower_bound(program: GaussianProgram, dual: DualPoint, root: Array | None = None) -> float:
    """The lower bound on the optimal loss that a dual point proves, rounded down.

    Args: program; dual; root (m, k) of any covariance root @ root.T, from which z = (P S P')^-1 v is taken (its
        quality changes the bound, never its truth); not needed for full covariance when every view that has
        weights sees all rows.
    Returns: a number that the loss of no feasible covariance is below; 0.0 when the dual point proves nothing.
    """
    charged = [view for view, weights in zip(program.views, dual.weights, strict=True) if np.any(weights > 0)]
    if program.sites is None and all(sees_all(view, len(program.target)) for view in charged):
        return nuclear_bound(program, dual)
    if root is None:
        raise ValueError("a covariance root is needed for this program")
    return _general_bound(program, dual, root)


def nuclear_bound(program: GaussianProgram, dual: DualPoint) -> float:
    """Squared nuclear norm of C F D^(1/2) over the sum of the weights, by singular values, rounded down."""
    errors = weighted_error_map(program, dual)
    effects = np.asarray(errors @ program.target)
    count = sum(len(weights) for weights in dual.weights)
    if count * effects.shape[1] > LARGEST_PRODUCT and count > 4 * effects.shape[1]:
        return _moment_bound(effects, dual)
    parts = [
        np.asarray(scipy.sparse.csr_array(part.T * np.sqrt(weights)[:, None]) @ effects.T)
        for part, weights in zip(dual.differences, dual.weights, strict=True)
    ]
    matrix = np.vstack(parts).T
    mass = sum(float(np.sum(weights)) for weights in dual.weights)
    if mass <= 0 or not matrix.size:
        return 0.0
    singular = np.linalg.svd(matrix, compute_uv=False)
    rank = min(matrix.shape)
    # round-off of the products, normwise, and backward error of the singular values
    sizes = np.asarray(abs(errors) @ np.abs(program.target))
    magnitude = sum(
        float(np.sum((scipy.sparse.csr_array(abs(part).T) @ sizes.T) ** 2 * weights[:, None]))
        for part, weights in zip(dual.differences, dual.weights, strict=True)
    )
    terms = _inner_length(errors) + max(_inner_length(scipy.sparse.csr_array(part.T)) for part in dual.differences) + 8
    backward = 4 * np.sqrt(rank * max(matrix.shape)) * float(np.linalg.norm(singular))
    slack = np.sqrt(rank) * UNIT * (backward + terms * np.sqrt(magnitude))
    total = float(np.sum(singular)) - slack
    return float(max(total, 0.0) ** 2 / (mass * (1 + UNIT * (len(dual.weights) + 64))))


def _moment_bound(effects: Array, dual: DualPoint) -> float:
    """The bound for very many differences, through M = sum p v v' with v = effects @ difference.

    For any positive semidefinite Z the vectors z = Z v prove (tr Z M)^2 / (lambda_max(Z M Z) sum p); with Z near M^-1/2
    this is the nuclear-norm bound, but round-off in M only enters at first order.
    """
    if effects.shape[0] > effects.shape[1]:
        effects = np.asarray(np.linalg.qr(effects, mode="r"))
    n = effects.shape[1]
    total = np.zeros((n, n))
    for part, weights in zip(dual.differences, dual.weights, strict=True):
        total += scipy.sparse.csr_array(part * weights[None, :] @ part.T).toarray()
    mass = sum(float(np.sum(weights)) for weights in dual.weights)
    moment = effects @ total @ effects.T
    magnitude = float(np.linalg.norm(np.abs(effects) @ np.abs(total) @ np.abs(effects).T))
    values, vectors = np.linalg.eigh((moment + moment.T) / 2)
    kept = values > 1e-11 * max(float(values[-1]), 1e-300)
    if mass <= 0 or not kept.any():
        return 0.0
    doubt = 8 * n**0.5 * UNIT * magnitude
    shape = (vectors[:, kept] / values[kept] ** 0.5) @ vectors[:, kept].T
    gain = float(np.sum(shape * moment)) - doubt * float(np.trace(shape)) * (1 + 1e-9)
    norm = float(np.linalg.norm(shape, 2))
    kappa = float(np.linalg.eigvalsh(shape @ moment @ shape)[-1]) * (1 + 16 * n * UNIT) + 2 * norm**2 * doubt
    return float(max(gain, 0.0) ** 2 / (kappa * mass * (1 + UNIT * (len(dual.weights) + 64))))


def _inner_length(errors: Array | scipy.sparse.csr_array) -> float:
    """Terms in one inner product with the rows of a matrix."""
    if scipy.sparse.issparse(errors):
        return float(np.max(np.diff(scipy.sparse.csr_array(errors).indptr), initial=0))
    return float(np.max(np.count_nonzero(errors, axis=1), initial=0))


def _general_bound(program: GaussianProgram, dual: DualPoint, root: Array) -> float:
    """The bound with z from a covariance, for sites or views of different rows."""
    m, n = program.target.shape
    errors = weighted_error_map(program, dual)
    errors = errors.toarray() if scipy.sparse.issparse(errors) else errors  # type: ignore[attr-defined]
    maps, cost = _places(program, errors)
    free = maps[:, cost <= 0] if program.sites is not None else _null_space(errors)
    magnitude = np.abs(program.target)
    charge_root: list[Array] = []
    gain = mass = 0.0
    for view, differences, weights in zip(program.views, dual.differences, dual.weights, strict=True):
        rows = seen_rows(view, m)
        kept = np.flatnonzero(weights > 0)
        part, p = differences[:, kept], weights[kept]
        effects = np.asarray(scipy.sparse.csr_array(part.T) @ program.target[rows].T).T
        z = _apply_inverse(root[rows], effects)
        if free.shape[1]:
            z = _orthogonal_to(z, free[rows])
        inner = np.sum(z * effects, axis=0)
        doubt = np.sum(np.abs(z) * (np.asarray(scipy.sparse.csr_array(abs(part).T) @ magnitude[rows].T).T), axis=0)
        gain += float(p @ (inner - (m + n + 8) * UNIT * doubt))
        mass += float(p.sum())
        lifted = np.zeros((m, len(kept)))
        lifted[rows] = z * np.sqrt(p)
        charge_root.append(lifted)
    if mass <= 0 or gain <= 0:
        return 0.0
    kappa = _kappa(program, np.column_stack(charge_root), maps, cost, errors)
    if not 0 < kappa < np.inf:
        return 0.0
    slack = 1 + UNIT * (64 + 2 * sum(len(weights) for weights in dual.weights))
    return gain**2 / (kappa * mass * slack)


def site_maps(program: GaussianProgram) -> Array:
    """The maps of all sites side by side (m, K)."""
    return np.column_stack([np.zeros((len(program.target), 0)), *(site.map for site in program.sites or ())])


def _places(program: GaussianProgram, errors: Array) -> tuple[Array, Array]:
    """Site maps and the cost of unit noise at each column, rounded down."""
    maps = site_maps(program)
    product, doubt = np.abs(errors @ maps), np.abs(errors) @ np.abs(maps)
    low = np.maximum(product - (len(maps) + 2) * UNIT * doubt, 0.0)
    return maps, np.sum(low**2, axis=0) * (1 - (len(errors) + 4) * UNIT)


def _kappa(program: GaussianProgram, charges: Array, maps: Array, cost: Array, errors: Array) -> float:
    """Largest ratio of charge to cost of admissible unit noise, rounded up; charges (m, N) with columns sqrt(p) z."""
    m = len(charges)
    if program.sites is not None:
        product = np.abs(charges.T @ maps) + (m + 2) * UNIT * (np.abs(charges).T @ np.abs(maps))
        charge = np.sum(product**2, axis=0) * (1 + (charges.shape[1] + 4) * UNIT)
        paid = cost > 0
        return float(np.max(charge[paid] / cost[paid], initial=0.0))
    _, singular, right = np.linalg.svd(errors, full_matrices=False)
    kept = singular > 1e-12 * singular[0]
    # least t with C't = z: its norm is the cost of z
    terms = (right[kept] @ charges) / singular[kept, None]
    norm = float(np.linalg.norm(terms, 2))
    return (norm * (1 + 8 * m * UNIT * float(singular[0] / singular[kept][-1]))) ** 2


def _apply_inverse(root: Array, effects: Array) -> Array:
    """(root root')^-1 effects on the range of the root."""
    left, singular, _ = np.linalg.svd(root, full_matrices=False)
    kept = singular > 1e-11 * max(float(singular[0]), 1e-300)
    left, singular = left[:, kept], singular[kept]
    return np.asarray(left @ ((left.T @ effects) / singular[:, None] ** 2))


def _null_space(errors: Array) -> Array:
    """Output directions (m, f) that the loss does not see."""
    _, singular, right = np.linalg.svd(errors, full_matrices=True)
    rank = int(np.count_nonzero(singular > 1e-12 * max(float(singular[0]), 1e-300)))
    return np.asarray(right[rank:].T)


def _orthogonal_to(z: Array, free: Array) -> Array:
    """The part of z that noise of no cost cannot reach (up to round-off)."""
    basis, singular, _ = np.linalg.svd(free, full_matrices=False)
    basis = basis[:, singular > 1e-12 * max(float(singular[0]), 1e-300)]
    return np.asarray(z - basis @ (basis.T @ z))
