"""Boxes of many entries: every vector with |d_i| <= reach_i (replacing everything). Exact maxima are NP-hard.

The largest s'Gs over sign vectors is bounded above by tr D for any diagonal D with D - G positive semidefinite (the
least such bound is within pi/2: Nesterov 1998), and below by any sign vector. The solver plays one against the other:
it meets the sign vectors found so far, looks for one that is violated, and at last scales by the upper bound.
"""

from __future__ import annotations

import numpy as np
from privspec.solvers.programs import Array

SWEEPS = 60
STARTS = 24
ROUNDS = 20
VIOLATED = 1e-7
"""Excess over one at which a sign vector is added to the program."""


def box_bound(gram: Array) -> float:
    """An upper bound of s'Gs over sign vectors s, within pi/2 of the largest; never below it but for round-off.

    Args: gram (k, k) positive semidefinite.
    """
    k = len(gram)
    if not k or not np.any(gram):
        return 0.0
    bounds = [float(np.abs(gram).sum())]
    diagonal = np.diag(gram)
    floor = 1e-12 * float(diagonal.max())
    for weights in (_dual_diagonal(gram), np.ones(k), diagonal):
        positive = np.maximum(weights, floor)
        roots = 1.0 / np.sqrt(positive)
        top = float(np.linalg.eigvalsh(roots[:, None] * gram * roots[None, :])[-1])
        bounds.append(float(positive.sum()) * top * (1 + 1e-12 * k))
    return min(bounds)


def box_scaling(gram: Array) -> Array:
    """Positive c (k,): the largest eigenvalue of c G c times the sum of 1 / c^2 is the bound of `box_bound`."""
    diagonal = np.diag(gram)
    floor = 1e-12 * float(diagonal.max(initial=1.0))
    known = [1.0 / np.sqrt(np.maximum(d, floor)) for d in (_dual_diagonal(gram), np.ones(len(gram)), diagonal)]
    return min(known, key=lambda c: float(np.sum(c**-2.0)) * float(np.linalg.eigvalsh(c[:, None] * gram * c)[-1]))


def _dual_diagonal(gram: Array) -> Array:
    """Near-optimal D: at unit vectors v_i that maximise sum G_ij v_i'v_j, d_i v_i = sum_j G_ij v_j."""
    k = len(gram)
    rank = min(k, int(np.sqrt(2 * k)) + 2)
    vectors = np.random.default_rng(0).standard_normal((k, rank))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    diagonal = np.diag(gram)
    sizes = np.zeros(k)
    for _ in range(SWEEPS):
        for i in range(k):
            pull = gram[i] @ vectors - diagonal[i] * vectors[i]
            sizes[i] = float(np.linalg.norm(pull))
            if sizes[i] > 0:
                vectors[i] = pull / sizes[i]
    return np.asarray(sizes + diagonal)


def large_signs(gram: Array, seed: int) -> Array:
    """Sign vectors (k, N), first entry +1, at local maxima of s'Gs: no single flip makes it larger."""
    k = len(gram)
    generator = np.random.default_rng(seed)
    starts = [np.ones(k), *(np.sign(generator.standard_normal((STARTS, k))) + 0.0)]
    values, vectors = np.linalg.eigh(gram)
    starts += [np.where(vectors[:, j] >= 0, 1.0, -1.0) for j in np.argsort(values)[-4:]]
    found = {tuple(_climb(gram, start)) for start in starts}
    return np.array(sorted(found)).T


def _climb(gram: Array, start: Array) -> Array:
    signs = np.where(start >= 0, 1.0, -1.0)
    diagonal = np.diag(gram)
    pull = gram @ signs
    for _ in range(20 * len(signs)):
        gains = diagonal - signs * pull  # a quarter of what flipping each entry gains
        best = int(np.argmax(gains))
        if gains[best] <= 1e-12 * max(float(diagonal.max()), 1e-300):
            break
        pull -= 2 * signs[best] * gram[:, best]
        signs[best] = -signs[best]
    return np.asarray(signs * signs[0])
