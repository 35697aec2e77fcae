"""Witnesses of lower bounds: a solver's dual point as whole numbers that the kernel multiplies (notes/placement.md).

For weights p on differences d, with F the columns sqrt(p) d and V the weighted error terms of what they do, the loss is
at least (nuclear norm of V)^2 / (sum of p mu^2): its witness is the polar factor U of V. Where observers see different
outputs, U comes from a covariance near the best one, and what is missing from U'U = 1 is written out beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import frexp
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspec.core.records import dataclass, replace
from privspec.problem.form import Numbers, document
from privspec.problem.linear import Sparse
from privspec.solvers.programs import shorter

Array = NDArray[np.float64]

VECTOR_BITS = 44
"""Bits of the largest entry of U: its defect is about 2^-44 times the root of its size."""
DIFFERENCE_BITS = 44
NEGLIGIBLE = 1e-15
"""Share of the heaviest weight below which a difference is left out."""
LISTED = 4
"""Differences of pairs of cells, in multiples of the inputs, up to which they are listed one by one."""
TALL = 2
"""Error terms, in multiples of the differences, from which on U is written through the target."""
TINY = 1e-9
"""Singular values below this share of the largest count as zero where nothing is divided by them."""
MARGIN = 1e-9
"""Share of the heaviest pair that is added to every pair, so that rounding leaves none below zero."""


@dataclass(frozen=True, eq=False, slots=True)
class Seen:
    """Differences (n, N) of one requirement, in data units, with weights (N,) for mu = `budget`.

    `mu`: a figure that no mechanism of the requirement reaches, where the kernel cannot work it out itself; `visible`
    (m,): the outputs that are seen; `cells`: the coordinates of which any two may change at once.
    """

    requirement: int
    mu: Fraction | None
    budget: float
    visible: NDArray[np.bool_]
    differences: sparse.csc_array
    weights: Array
    cells: tuple[int, int] | None = None

    def joined(self, other: Seen) -> Seen:
        """More differences of the same requirement."""
        scaled = other.weights * (self.budget / other.budget) ** 2
        both = sparse.csc_array(sparse.hstack([self.differences, other.differences]))
        return replace(self, differences=both, weights=np.concatenate([self.weights, scaled]), cells=None)


@dataclass(frozen=True, eq=False, slots=True)
class Scene:
    """The errors that a bound is about: rows (q, m) with weights (q,) over the outputs, target (m, n).

    `maps` (m, K): where noise is confined; `guide` (m, k): a root of a covariance near the best one; `owners` (n,): the
    party who holds each number, where each draws noise alone.
    """

    scope: str
    target: Array
    rows: sparse.csr_array
    weights: Array
    maps: Array | None
    guide: Array | None
    owners: NDArray[np.intp] | None = None


def witness(scene: Scene, views: Sequence[Seen]) -> dict[str, Any]:
    """What the kernel reads as the proof of a lower bound."""
    charged = [view for view in views if np.any(view.weights > 0)]
    heaviest = max(float(np.max(view.weights * view.budget**-2, initial=0.0)) for view in charged)
    parts = [_columns(view, heaviest) for view in charged]
    moment = _moment(charged[0], scene.target.shape[1]) if scene.scope == "full" and len(charged) == 1 else None
    listed = []
    for k, (view, part) in enumerate(zip(charged, parts, strict=True)):
        parts[k], columns = _rounded(part) if moment is None else _balanced(moment)
        mu = None if view.mu is None else str(view.mu)
        listed.append({"requirement": view.requirement, "mu": mu, "columns": columns})
    scope, vectors, slack = _vectors(scene, charged, parts, sparse.csc_array(sparse.hstack(parts)))
    return {"scope": scope, "differences": listed, "vectors": vectors, "slack": slack}


def _columns(view: Seen, heaviest: float) -> sparse.csc_array:
    """Differences times the roots of their weights, for one mu of all requirements; negligible ones are left out."""
    shares = view.weights * view.budget**-2 / heaviest
    kept = np.flatnonzero(shares > NEGLIGIBLE)
    part = sparse.csc_array(view.differences[:, kept])
    return sparse.csc_array(part @ sparse.diags_array(np.sqrt(shares[kept])))


def _unit(values: Array, bits: int) -> tuple[Fraction, int]:
    exponent = frexp(float(np.max(np.abs(values), initial=1e-300)))[1] - bits
    return Fraction(2) ** exponent, exponent


def _rounded(part: sparse.csc_array) -> tuple[sparse.csc_array, dict[str, Any]]:
    """Columns in whole numbers, as doubles and as the rows of a matrix of a plan."""
    unit, exponent = _unit(part.data, DIFFERENCE_BITS)
    rows = sparse.csr_array(part.T)
    rows.sort_indices()
    whole = np.rint(np.ldexp(rows.data, -exponent)).astype(np.int64)
    rows.data = np.ldexp(whole.astype(np.float64), exponent)
    shape, size = tuple(map(int, rows.shape)), len(whole)
    at = np.repeat(np.arange(shape[0]), np.diff(rows.indptr)) * shape[1] + rows.indices
    values = Numbers((size,), unit, tuple(whole.tolist()))
    found = document(Sparse(shape, Numbers((size,), Fraction(1), tuple(at.tolist())), values))
    return sparse.csc_array(rows.T), found


def _moment(view: Seen, n: int) -> Array | None:
    """A root (n, r) of sum p d d' for very many differences of two cells each; None where they are few or others."""
    if view.cells is None or not view.visible.all() or len(view.weights) <= LISTED * n:
        return None
    start, stop = view.cells
    kept = sparse.csc_array(view.differences @ sparse.diags_array(np.sqrt(view.weights / view.weights.max())))
    moment = np.asarray((kept @ kept.T).toarray())[start:stop, start:stop]
    size = stop - start
    moment += MARGIN * float(np.max(np.diagonal(moment))) * (np.eye(size) - 1 / size)
    values, vectors = np.linalg.eigh(moment)
    root = (vectors[:, 1:] * np.sqrt(np.maximum(values[1:], 0.0))) @ vectors[:, 1:].T
    found = np.zeros((n, size))
    found[start:stop] = root
    return found


def _balanced(moment: Array) -> tuple[sparse.csc_array, dict[str, Any]]:
    """The root likewise, each column of sum zero."""
    unit, exponent = _unit(moment, DIFFERENCE_BITS)
    whole = np.rint(np.ldexp(moment.T, -exponent)).astype(np.int64)
    whole[np.arange(len(whole)), np.argmax(np.abs(whole), axis=1)] -= whole.sum(axis=1)
    columns = sparse.csc_array(np.ldexp(whole.T.astype(np.float64), exponent))
    return columns, Numbers(tuple(whole.shape), unit, tuple(whole.ravel().tolist())).to_json()


def _vectors(
    scene: Scene, views: Sequence[Seen], parts: list[sparse.csc_array], columns: sparse.csc_array
) -> tuple[str, dict[str, Any], dict[str, Any] | None]:
    """What the rows of the vectors stand for, these, and what they miss of being orthonormal."""
    if scene.scope == "messages":
        assert scene.guide is not None
        precisions = 1 / np.einsum("ik,ik->i", scene.guide, scene.guide)
        return scene.scope, _matrix_json(np.asarray((columns * precisions[:, None]).toarray())), None
    if scene.scope == "sites":
        return scene.scope, _matrix_json(np.hstack(_guided(scene.guide, scene.target, views, parts, None))), None
    roots = np.sqrt(scene.weights)
    errors = np.asarray(sparse.diags_array(roots) @ scene.rows @ scene.target)
    if scene.owners is not None:
        image = np.asarray((columns.T @ errors.T).T)
        whose = scene.owners[np.array([columns.indices[start] for start in columns.indptr[:-1]], dtype=np.intp)]
        found = np.zeros(image.shape)
        for party in np.unique(whose):
            left, _, right = np.linalg.svd(image[:, whose == party], full_matrices=False)
            found[:, whose == party] = left @ right
        return "parties", _polar_json(found), None
    terms = [_terms(scene.rows, view.visible) for view in views]
    if not all(fine.all() for fine in terms):
        assert scene.guide is not None
        guide = np.asarray(sparse.diags_array(roots) @ scene.rows @ scene.guide)
        spread: Array = np.hstack(_guided(guide, errors, views, parts, terms))
        gram = spread @ spread.T if spread.shape[0] <= spread.shape[1] else spread.T @ spread
        values, vectors = np.linalg.eigh(gram)
        largest = float(values[-1]) * (1 + 1e-13)
        missing = np.sqrt(np.maximum(1 - values / largest, 0.0))
        return "errors", _polar_json(spread / np.sqrt(largest)), _slack_json(vectors * missing, missing > 1e-12)
    if len(errors) <= TALL * columns.shape[1] + 16:
        left, _, right = np.linalg.svd(np.asarray((columns.T @ errors.T).T), full_matrices=False)
        return "errors", _polar_json(left @ right), None
    small = shorter(errors)
    left, values, right = np.linalg.svd(np.asarray((columns.T @ small.T).T), full_matrices=False)
    kept = values > TINY * values[0]
    inner = np.asarray(columns @ (right[kept].T / values[kept])) @ right[kept]
    free = np.linalg.svd(right[kept], full_matrices=True)[2][int(kept.sum()) :].T
    return "inputs", _matrix_json(inner), _slack_json(free, np.ones(free.shape[1], dtype=bool))


def _guided(
    guide: Array | None,
    target: Array,
    views: Sequence[Seen],
    parts: list[sparse.csc_array],
    terms: list[NDArray[np.bool_]] | None,
) -> list[Array]:
    """For each view S^+ T f in the space of what it sees, S the covariance whose root is given."""
    assert guide is not None
    found = []
    for o, (view, part) in enumerate(zip(views, parts, strict=True)):
        seen = view.visible if terms is None else terms[o]
        z = np.zeros((len(guide), part.shape[1]))
        left, values, _ = np.linalg.svd(guide[seen], full_matrices=False)
        kept = values > TINY**1.25 * values[0]
        basis = left[:, kept]
        image = np.asarray(part.T @ target[seen].T).T
        z[seen] = basis @ ((basis.T @ image) / (values[kept] ** 2)[:, None])
        found.append(z)
    return found


def _terms(rows: sparse.csr_array, visible: NDArray[np.bool_]) -> NDArray[np.bool_]:
    hidden = (abs(rows) @ (~visible).astype(np.float64)).reshape(-1)
    return np.asarray(hidden == 0)


def _matrix_json(values: Array) -> dict[str, Any]:
    unit, exponent = _unit(values, VECTOR_BITS)
    whole = np.rint(np.ldexp(values, -exponent)).astype(np.int64)
    return Numbers(tuple(values.shape), unit, tuple(whole.ravel().tolist())).to_json()


def _polar_json(values: Array) -> dict[str, Any]:
    whole = np.rint(np.ldexp(values, VECTOR_BITS)).astype(np.int64)
    return Numbers(tuple(values.shape), Fraction(1, 2**VECTOR_BITS), tuple(whole.ravel().tolist())).to_json()


def _slack_json(values: Array, kept: NDArray[np.bool_]) -> dict[str, Any] | None:
    return _polar_json(values[:, kept]) if kept.any() else None
