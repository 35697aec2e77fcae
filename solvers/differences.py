"""Sets of input differences as matrices: columns for single vectors, groups of columns for balls."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from privspec.solvers.boxes import box_bound
from privspec.solvers.programs import Array, Balls, Boxes, Differences, GaussianProgram, Pairs, Vectors, View
from privspec.solvers.results import Indices, NotSpecialError
from scipy import sparse

VERTEX_LIMIT = 12
"""Largest box block that is replaced by its vertices: 2^11 of them up to sign."""
VERTEX_TOTAL = 32_768
"""Largest number of box vertices in one view."""


@dataclass(frozen=True, eq=False, slots=True)
class Directions:
    """Finitely many differences, in groups: the set is every unit combination of the columns of one group.

    `matrix` (n, N) sparse; `sizes` (number of groups,): group g holds the next sizes[g] columns. A group of one
    column is a single vector (and its negative), a larger group is an l2 ball; groups of one come first.
    """

    matrix: sparse.csc_array
    sizes: Indices

    @property
    def slices(self) -> Iterator[slice]:
        """The columns of each group."""
        stops = np.cumsum(self.sizes)
        return (slice(int(stop - size), int(stop)) for stop, size in zip(stops, self.sizes, strict=True))

    @property
    def single(self) -> bool:
        """Whether every group is one vector."""
        return bool(np.all(self.sizes == 1))


def pair_matrix(coordinates: Indices, firsts: Indices, seconds: Indices, scale: float, n: int) -> sparse.csc_array:
    """The differences scale * (e_i - e_j), i = coordinates[firsts], j = coordinates[seconds], as columns (n, N)."""
    count = len(firsts)
    rows = np.concatenate([coordinates[firsts], coordinates[seconds]])
    columns = np.concatenate([np.arange(count), np.arange(count)])
    values = np.concatenate([np.full(count, scale), np.full(count, -scale)])
    return sparse.csc_array(sparse.coo_array((values, (rows, columns)), shape=(n, count)))


def box_vertices(block: Indices, reach: Array, n: int) -> sparse.csc_array:
    """The vertices of one box block up to sign, as columns (n, 2^(k-1)); entries of reach 0 are left out."""
    block = block[reach[block] > 0]
    signs = np.array([(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=max(len(block) - 1, 0))])
    values = signs[:, : len(block)] * reach[block]
    if not len(block):
        return sparse.csc_array((n, 0))
    count = len(values)
    rows = np.tile(block, count)
    columns = np.repeat(np.arange(count), len(block))
    return sparse.csc_array(sparse.coo_array((values.ravel(), (rows, columns)), shape=(n, count)))


def small_boxes(boxes: Boxes) -> bool:
    """Whether the box blocks have few enough vertices to list them."""
    widths = [int(np.count_nonzero(boxes.reach[block])) for block in boxes.blocks]
    return max(widths, default=0) <= VERTEX_LIMIT and sum(2**w for w in widths) <= 2 * VERTEX_TOTAL


def explicit(differences: Differences, n: int) -> Directions:
    """The differences as directions.

    Raises: NotSpecialError for boxes with too many vertices.
    """
    match differences:
        case Vectors(matrix):
            matrix = sparse.csc_array(matrix)
            kept = matrix[:, np.flatnonzero(abs(matrix).sum(axis=0) > 0)]
            return Directions(sparse.csc_array(kept), np.ones(kept.shape[1], np.intp))
        case Pairs(coordinates, scale):
            firsts, seconds = np.triu_indices(len(coordinates), 1)
            matrix = pair_matrix(coordinates, firsts, seconds, scale, n)
            return Directions(matrix, np.ones(len(firsts), np.intp))
        case Balls(blocks, radius):
            blocks = tuple(sorted((block for block in blocks if len(block)), key=lambda block: len(block) > 1))
            rows = np.concatenate([np.asarray(block, np.intp) for block in blocks] or [np.zeros(0, np.intp)])
            columns = np.arange(len(rows))
            values = np.full(len(rows), radius)
            matrix = sparse.csc_array(sparse.coo_array((values, (rows, columns)), shape=(n, len(rows))))
            return Directions(matrix, np.array([len(block) for block in blocks], np.intp))
        case Boxes(blocks, reach):
            if not small_boxes(differences):
                raise NotSpecialError("a box with more than 12 entries has too many vertices")
            parts = [box_vertices(block, reach, n) for block in blocks]
            matrix = sparse.csc_array(sparse.hstack(parts)) if parts else sparse.csc_array((n, 0))
            return Directions(matrix, np.ones(matrix.shape[1], np.intp))


def seen_rows(view: View, m: int) -> Indices | None:
    """The output rows that the view sees, sorted; None when it sees all of them."""
    if view.rows is None:
        return None
    rows = np.unique(np.asarray(view.rows, np.intp))
    return None if len(rows) == m else rows


def same_rows(program: GaussianProgram) -> bool:
    """Whether every view sees every output row."""
    return all(seen_rows(view, len(program.target)) is None for view in program.views)


def largest_norm(strategy: Array, differences: Differences) -> float:
    """Max ||strategy @ d||^2 over the differences (k, n); an upper bound for boxes with too many vertices."""
    match differences:
        case Vectors(matrix):
            effects = np.asarray(sparse.csr_array(matrix.T) @ strategy.T)
            return float(np.max(np.sum(effects**2, axis=1), initial=0.0))
        case Pairs(coordinates, scale):
            return _largest_pair(strategy[:, coordinates], scale)
        case Balls(blocks, radius):
            norms = (np.linalg.norm(strategy[:, block], 2) for block in blocks if len(block))
            return max((float(norm) for norm in norms), default=0.0) ** 2 * radius**2
        case Boxes(blocks, reach):
            return max((_largest_in_box(strategy[:, block] * reach[block]) for block in blocks), default=0.0)


def _largest_pair(columns: Array, scale: float) -> float:
    """Largest scaled squared distance of two columns: candidates by Gram matrix, evaluated again from the columns."""
    if columns.shape[1] < 2:
        return 0.0
    # a direction common to all columns (a total that is released exactly) would drown the differences
    columns = columns - columns.mean(axis=1, keepdims=True)
    distances = pair_distances(columns.T @ columns)
    firsts, seconds = np.triu_indices(len(distances), 1)
    values = distances[firsts, seconds]
    near = np.flatnonzero(values >= values.max() * (1 - 1e-9) - 1e-300)[:4096]
    exact = np.sum((columns[:, firsts[near]] - columns[:, seconds[near]]) ** 2, axis=0)
    # candidates left out are below the Gram value, which errs by round-off of the squared norms only
    slack = 8 * len(columns) * np.finfo(float).eps * float(np.max(np.sum(columns**2, axis=0)))
    return (max(float(exact.max()), float(values.max()) * (1 - 1e-9)) + slack) * scale**2


def pair_distances(gram: Array) -> Array:
    """Squared distances (k, k) of the points with this Gram matrix."""
    norms = np.diag(gram)
    return np.asarray(np.maximum(norms[:, None] + norms[None, :] - 2 * gram, 0.0))


def _largest_in_box(scaled: Array) -> float:
    """Max ||scaled @ h||^2 over |h_i| <= 1: exact by vertices; an upper bound when wide."""
    gram = scaled.T @ scaled
    scaled = scaled[:, np.diag(gram) > 0]
    width = scaled.shape[1]
    if width > VERTEX_LIMIT:
        return box_bound(gram)
    vertices = box_vertices(np.arange(width), np.ones(width), width).toarray()
    return float(np.max(np.sum((scaled @ vertices) ** 2, axis=0), initial=0.0))
