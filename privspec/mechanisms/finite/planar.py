"""Planar Laplace noise, rounded to the nearest point of a grid: geo-indistinguishability as it is practised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import isfinite, prod
from typing import ClassVar

import numpy as np

from privspec.mechanisms.finite.context import Array, TableContext
from privspec.mechanisms.finite.mechanism import Candidate, shown
from privspec.mechanisms.finite.points import ProductGrid, coordinates, lengths, middles, product_grid
from privspec.mechanisms.finite.remap import best_remap

_NEGLIGIBLE = 45.0
"""Stretches of an edge where the density is e^-45 of its largest on the edge are left out."""
_PANELS, _NODES = 6, 16
_PARTS, _BORDER = 3, 2
"""Before the best guess a noisy place is known to a third of a cell, and up to two cells beyond the grid."""
_MOST_CELLS = 400_000


def edge_integrals(distance: Array, low: Array, high: Array) -> Array:
    """1/(2 pi) times the integral of (1 + r) e^-r over the angle that a stretch of a line is seen under, signed.

    The line is `distance` >= 0 away, the stretch from `low` to `high` along it, measured from its nearest point; r is
    the distance of the point on the line. With position = distance * sinh(s) the integrand is smooth at the scale of
    one for every distance, so that one rule serves all.
    """
    near = np.clip(0.0, low, high)
    closest = np.hypot(distance, near)
    reach = np.sqrt(np.maximum((closest + _NEGLIGIBLE) ** 2 - distance**2, 0.0))
    h = np.maximum(distance, 1e-300)
    first, last = np.arcsinh(np.clip(low, -reach, reach) / h), np.arcsinh(np.clip(high, -reach, reach) / h)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    total = np.zeros(np.broadcast(distance, low, high).shape)
    width = (last - first) / _PANELS
    for panel in range(_PANELS):
        for node, weight in zip(nodes, weights, strict=True):
            cosine = np.cosh(first + width * (panel + (node + 1) / 2))
            r = distance * cosine
            total += weight * (1 + r) * np.exp(-r) / cosine
    return np.asarray(np.where(distance > 0, total * width / (4 * np.pi), 0.0))


def planar_cells(points: Array, bounds: tuple[Array, Array], rate: float) -> Array:
    """Pr(a point plus planar Laplace noise lies in a rectangle) for points (X, 2): (X, columns, rows of rectangles).

    The noise has density rate^2 / (2 pi) e^(-rate |v|); rectangles are cut by the `bounds` on both axes, the outer ones
    without end. In polar coordinates about the point the integral over the radius is elementary, and its complement
    (1 + r) e^-r on the four edges keeps full precision in the tails.
    """
    edges = [rate * (np.concatenate(([-np.inf], b, [np.inf])) - points[:, i, None]) for i, b in enumerate(bounds)]
    inside = [(np.sign(e[:, 1:]) - np.sign(e[:, :-1])) / 2 for e in edges]
    mass = inside[0][:, :, None] * inside[1][:, None, :]
    for axis in (0, 1):
        lines, across = edges[axis][:, 1:-1], edges[1 - axis]
        shape = (len(points), lines.shape[1], across.shape[1] - 1)
        away = np.broadcast_to(lines[:, :, None], shape)
        stretch = [np.broadcast_to(part[:, None, :], shape) for part in (across[:, :-1], across[:, 1:])]
        flux = np.sign(away) * edge_integrals(np.abs(away), stretch[0], stretch[1])
        padded = np.pad(flux, ((0, 0), (1, 1), (0, 0)))
        loss = padded[:, 1:] - padded[:, :-1]
        mass -= loss if axis == 0 else loss.transpose(0, 2, 1)
    return np.asarray(np.maximum(mass, 0.0))


def finer(axis: Sequence[Fraction], parts: int, border: int) -> Array:
    """Bounds that cut each cell of an axis into parts, and as many cells beyond each end as `border` says."""
    values = np.array([float(v) for v in axis])
    ends = values[1] - values[0], values[-1] - values[-2]
    beyond = np.arange(1, border + 2)
    wide = np.concatenate((values[0] - ends[0] * beyond[::-1], values, values[-1] + ends[1] * beyond))
    bounds = (wide[1:] + wide[:-1]) / 2
    cuts = bounds[:-1, None] + np.diff(bounds)[:, None] * np.arange(parts) / parts
    return np.append(cuts.ravel(), bounds[-1])


class PlanarLaplace:
    """Planar Laplace noise, rounded to the nearest column; and with the best guess for prior and loss instead.

    The guess is from the noisy place, known more finely than to the nearest column (notes/planar-laplace.md).
    """

    note: ClassVar[str] = "planar-laplace"

    def candidates(self, context: TableContext) -> Iterator[Candidate]:
        """Both, where rows are points of the plane and the columns fill a grid in it."""
        points, outputs = coordinates(context.rows), coordinates(context.columns)
        if points is None or outputs is None or len(points[0]) != 2 or not context.epsilon:
            return
        grid = product_grid(outputs)
        rate = float(context.epsilon) * context.neighbours.rate(lengths(points, 2))
        if grid is None or len(grid.axes) != 2 or not isfinite(rate) or rate == 0:
            return
        at = np.array([[float(v) for v in point] for point in points])
        cells = planar_cells(at, (middles(grid.axes[0]), middles(grid.axes[1])), rate)
        places = np.array(grid.places)
        noise = f"planar Laplace noise, {shown(2 / rate)} away on average"
        raw = np.asarray(cells[:, places[:, 0], places[:, 1]])
        yield Candidate("planar Laplace", raw, f"{noise}, rounded to the nearest point", self.note)
        remapped = best_remap(context, self.fine(at, grid, rate))
        if remapped is not None:
            text = f"{noise}, then the best guess for this loss"
            yield Candidate("planar Laplace, remapped", remapped, text, self.note)

    def fine(self, points: Array, grid: ProductGrid, rate: float) -> Array:
        """The law of the noisy place on a finer and wider grid (X, Z); on the grid itself where that is too large."""
        sizes = [len(axis) for axis in grid.axes]
        cells = len(points) * prod((size + 2 * _BORDER) * _PARTS for size in sizes)
        refine = min(sizes) > 1 and cells <= _MOST_CELLS
        bounds = [finer(axis, _PARTS, _BORDER) if refine else middles(axis) for axis in grid.axes]
        return planar_cells(points, (bounds[0], bounds[1]), rate).reshape(len(points), -1)
