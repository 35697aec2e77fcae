"""Convex programs as plain data: what the compiler lowers to and every solver takes.

Gaussian placement (notes/placement.md; Ramon & Basu 2020, section 3.2). Unknown is the covariance
`Sigma` (m, m) of the output noise, either any positive semidefinite matrix or `sum_k M_k diag(s_k) M_k'`
over given sites. Minimise `loss(Sigma)` subject to, for each view o (an observer of the rows P_o under one
requirement) and each admissible difference d of the inputs,

    (P_o F d)' (P_o Sigma P_o')^-1 (P_o F d) <= 1

(differences come divided by the mu that the requirement allows).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Vectors:
    """The differences +-column, for each column of a sparse (n, N) matrix."""

    matrix: sparse.csc_array


@dataclass(frozen=True, eq=False, slots=True)
class Pairs:
    """The differences scale * (e_i - e_j), i != j, over the given coordinates (a record that moves between cells)."""

    coordinates: NDArray[np.intp]
    scale: float


@dataclass(frozen=True, eq=False, slots=True)
class Balls:
    """Every vector of l2 norm at most `radius` that is supported on one of the blocks."""

    blocks: tuple[NDArray[np.intp], ...]
    radius: float


@dataclass(frozen=True, eq=False, slots=True)
class Boxes:
    """Every vector with |d_i| <= reach[i] that is supported on one of the blocks; reach has length n."""

    blocks: tuple[NDArray[np.intp], ...]
    reach: Array


Differences: TypeAlias = Vectors | Pairs | Balls | Boxes


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """What one requirement protects: output rows seen (None = all) and input differences divided by mu."""

    rows: NDArray[np.intp] | None
    differences: Differences
    name: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class ExpectedLoss:
    """`trace(C Sigma C')`: C (q, m) maps output noise to error terms (weights as square roots)."""

    error_map: Array


@dataclass(frozen=True, eq=False, slots=True)
class WorstLoss:
    """`max_j (C Sigma C')_jj` over the q rows of C."""

    error_map: Array


Loss: TypeAlias = ExpectedLoss | WorstLoss


@dataclass(frozen=True, eq=False, slots=True)
class Site:
    """A place where independent noise may enter: `name`, and the map (m, k) from its coordinates to the outputs."""

    name: str
    map: Array


@dataclass(frozen=True, eq=False, slots=True)
class Limit:
    """An accuracy that must hold: `trace(C Sigma C') <= bound`, C (q, m)."""

    error_map: Array
    bound: float


@dataclass(frozen=True, eq=False, slots=True)
class GaussianProgram:
    """The whole program; `sites` None means that any covariance is allowed (a trusted curator).

    Only the reference path takes `limits`.
    """

    target: Array
    loss: Loss
    views: tuple[View, ...]
    sites: tuple[Site, ...] | None = None
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class DualPoint:
    """A certificate of optimality: weights on chosen differences, and on loss rows for a worst-case loss.

    For each view o, `differences[o]` (n, N_o) sparse with admissible columns (already divided by mu) and
    `weights[o]` (N_o,) >= 0. `loss_weights` (q,) >= 0 summing to 1 for `WorstLoss`, else None. With
    v = P_o F d, any z_oi, p = weights:
    lower bound = (sum p z'v)^2 / (kappa sum p), kappa the largest ratio over admissible unit noise of
    sum p (z' P_o m)^2 to its cost (full covariance: the least kappa with sum p P_o'zz'P_o <= kappa W).
    With limits: `limit_weights` nu (L,) >= 0; the bound is that of the loss plus sum nu trace(C Sigma C'), less
    sum nu bound (weak duality).
    """

    differences: tuple[sparse.csc_array, ...]
    weights: tuple[Array, ...]
    loss_weights: Array | None = None
    limit_weights: Array | None = None


@dataclass(frozen=True, eq=False, slots=True)
class GaussianSolution:
    """A feasible point with its proof of quality.

    `variances`: one vector for each site, or None for full covariance. `strategy` (k, n) and
    `reconstruction` (m, k): output = reconstruction @ (strategy @ x + N(0, I)), reconstruction @ strategy = target
    on the inputs, and Sigma = reconstruction @ reconstruction'. When m is far larger than n the
    `input_estimate` (n, k) is given instead and reconstruction = target @ input_estimate.
    Rows of the strategy are ordered so that views that are nested see prefixes: `blocks[o]` is the number of
    leading strategy rows that view o's outputs depend on.
    `root` (m, r): a root of the covariance of what is protected, up to its scale, without the nominal noise on what is
    not; `lower_bound` is shown with vectors taken from it.
    """

    value: float
    lower_bound: float
    strategy: Array
    reconstruction: Array | None
    input_estimate: Array | None
    blocks: tuple[int, ...]
    variances: tuple[Array, ...] | None
    dual: DualPoint
    method: str
    iterations: int
    seconds: float
    notes: tuple[str, ...] = ()
    root: Array | None = None

    @property
    def relative_gap(self) -> float:
        """(value - lower bound) / value."""
        return (self.value - self.lower_bound) / self.value if self.value > 0 else 0.0
