"""A linear release before and after rounding to exact numbers.

Every additive mechanism of the linear family is executed in one way: draw `z = B u + noise`, publish functions
`L z + offset` of it. Gaussian placement, Laplace sites and K-norm noise differ in B, L and the law only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Any, Protocol

import numpy as np

from privspec.compile.program import ProtectedView
from privspec.core.diagnostics import InternalError
from privspec.core.matrices import DyadicMatrix
from privspec.model.neighbours import PairDifferences, VectorDifferences
from privspec.solvers.programs import Array, Balls, Boxes, Differences, Pairs, Vectors

STRATEGY_BITS = 42
"""Bits of the largest strategy entry; the loss moves by about 2^-42 of itself."""
GRID_EXPONENT = 30
"""The noisy strategy answers are released on multiples of 2^-30 noise units (or data units)."""
SLACK = 1e-11
"""Relative room left for float error when a strategy is made to meet its sensitivity."""
VERTEX_BITS = 14
"""Boxes of at most this many coordinates are enumerated."""


class NoiseLaw(Protocol):
    """A law of the noise on the strategy answers; one object for each mechanism."""

    family: str
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Its form under `executed.noise`."""
        ...

    def row_variances(self, rows: int, grid: Fraction) -> Array:
        """Variance of the noise on each strategy row (rows are uncorrelated)."""
        ...

    def prefix(self, rows: int) -> NoiseLaw:
        """The law of the first rows; the whole law where it has no parts."""
        ...

    def achieved(self, strategy: DyadicMatrix, view: ProtectedView, grid: Fraction) -> tuple[str, Fraction]:
        """The name and an upper bound of what the release of these rows reaches for these differences."""
        ...


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Independent N(0, 1) on every strategy row (notes/rounded-gaussian.md)."""

    family: str = "gaussian"
    notes: tuple[str, ...] = ("gaussian-exact", "rounded-gaussian", "post-processing")

    def to_json(self) -> dict[str, Any]:
        """Its form under `executed.noise`."""
        return {"shape": "gaussian", "standard_deviation": "1"}

    def row_variances(self, rows: int, grid: Fraction) -> Array:
        """One each (rounding to the grid adds at most grid^2 / 4, below any digit shown)."""
        return np.ones(rows)

    def prefix(self, rows: int) -> NoiseLaw:
        """The same."""
        return self

    def achieved(self, strategy: DyadicMatrix, view: ProtectedView, grid: Fraction) -> tuple[str, Fraction]:
        """Mu: the l2 sensitivity."""
        return "mu", Fraction(gaussian_sensitivity_up(strategy.to_float(), view.differences))


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Independent discrete Laplace noise, one exact scale a row (notes/discrete-laplace.md)."""

    scales: tuple[Fraction, ...]
    family: str = "laplace"
    notes: tuple[str, ...] = ("laplace", "discrete-laplace", "post-processing")

    def to_json(self) -> dict[str, Any]:
        """Its form under `executed.noise`."""
        return {"shape": "laplace", "scale": [str(b) for b in self.scales]}

    def row_variances(self, rows: int, grid: Fraction) -> Array:
        """That of the discrete Laplace law: 2 g^2 p / (1 - p)^2 with p = exp(-g / b)."""
        g = float(grid)
        p = np.array([g / float(b) for b in self.scales])
        return np.asarray(2 * g * g * np.exp(-p) / np.expm1(-p) ** 2)

    def prefix(self, rows: int) -> NoiseLaw:
        """The first scales."""
        return LaplaceNoise(self.scales[:rows])

    def achieved(self, strategy: DyadicMatrix, view: ProtectedView, grid: Fraction) -> tuple[str, Fraction]:
        """Epsilon: the l1 sensitivity in units of the scales, with the rounding to the grid counted."""
        return "epsilon", laplace_epsilon_up(strategy, self.scales, view, grid)


@dataclass(frozen=True, slots=True)
class KNormL2Noise:
    """One vector with density proportional to exp(-||z||_2 / scale) (notes/knorm-l2.md)."""

    scale: Fraction
    family: str = "mixed"
    notes: tuple[str, ...] = ("knorm-l2", "post-processing")

    def to_json(self) -> dict[str, Any]:
        """Its form under `executed.noise`."""
        return {"shape": "knorm-l2", "scale": str(self.scale)}

    def row_variances(self, rows: int, grid: Fraction) -> Array:
        """The radius is Gamma(k, scale), the direction uniform: (k + 1) scale^2 each."""
        return np.full(rows, (rows + 1) * float(self.scale) ** 2)

    def prefix(self, rows: int) -> NoiseLaw:
        """The whole vector: part of it says no more than all of it."""
        return self

    def achieved(self, strategy: DyadicMatrix, view: ProtectedView, grid: Fraction) -> tuple[str, Fraction]:
        """Epsilon: the l2 sensitivity in units of the scale, with the rounding to the grid counted."""
        rows = strategy.shape[0]
        reach = Fraction(gaussian_sensitivity_up(strategy.to_float(), view.differences))
        return "epsilon", (reach + grid * Fraction(sqrt_up(rows))) / self.scale


@dataclass(frozen=True, eq=False, slots=True)
class LinearRelease:
    """`z = strategy @ u + noise`, outputs a linear function of z; exact, ready for a plan.

    Exactly one of `outputs_matrix` (m, k) and `inputs_matrix` (n, k) is given (see `executed.reconstruction` of
    a plan). `view_rows[o]`: how many leading rows view o's outputs depend on. `grid`: lattice of z;
    `rounding`: "strategy" when z itself is rounded, "outputs" when only the outputs are.
    """

    strategy: DyadicMatrix
    noise: NoiseLaw
    outputs_matrix: DyadicMatrix | None
    inputs_matrix: DyadicMatrix | None
    view_rows: tuple[int, ...]
    grid: str = f"2^-{GRID_EXPONENT}"
    output_grid: str = "2^-20"
    rounding: str = "strategy"

    @property
    def step(self) -> Fraction:
        """The lattice step."""
        return Fraction(2) ** int(self.grid.removeprefix("2^"))

    def row_variances(self) -> Array:
        """Variance of the noise on each strategy row."""
        return self.noise.row_variances(self.strategy.shape[0], self.step)

    def output_map(self, target: Array) -> Array:
        """The map (m, k) from strategy noise to the outputs."""
        if self.outputs_matrix is not None:
            return self.outputs_matrix.to_float()
        if self.inputs_matrix is None:
            raise InternalError("a release without reconstruction")
        return np.asarray(target @ self.inputs_matrix.to_float())


def achieved_amount(
    release: LinearRelease, view: ProtectedView, rows: int, budget: Fraction | None, epsilon: Fraction | None
) -> tuple[str, Fraction]:
    """What a view's outputs reach, in the terms of the noise: ("mu", ...) or ("epsilon", ...), rounded up.

    Raises: InternalError if it is more than the requirement allows.
    """
    head = DyadicMatrix(np.ascontiguousarray(release.strategy.integers[:rows]), release.strategy.exponent)
    if release.rounding == "outputs" and view.rows is not None and release.outputs_matrix is not None:
        # outputs are rounded one by one, so the view sees the Gaussian law of its own rows, nothing more
        seen = np.linalg.svd(release.outputs_matrix.to_float()[view.rows], full_matrices=False)[2]
        name, amount = "mu", Fraction(
            gaussian_sensitivity_up(seen @ release.strategy.to_float(), view.differences) * (1 + 1e-12)
        )
    else:
        name, amount = release.noise.prefix(rows).achieved(head, view, release.step)
    allowed = budget if name == "mu" else epsilon
    if allowed is None or amount > allowed:
        raise InternalError(f"the release reaches {name} {float(amount)!r}, which is more than it may")
    return name, amount


def sqrt_up(value: int) -> float:
    """A double not below the square root."""
    return float(np.nextafter(np.sqrt(value), np.inf))


def laplace_epsilon_up(
    strategy: DyadicMatrix, scales: tuple[Fraction, ...], view: ProtectedView, grid: Fraction
) -> Fraction:
    """Largest sum over rows of |B_r d| / b_r over a view's differences, exactly.

    Each answer is rounded to the lattice before noise, which adds one step wherever d touches a row, unless
    all answers are lattice points: whole multiples of the step when inputs are counts.
    """
    columns = _moved_columns(strategy, view)
    counts = isinstance(view.exact, PairDifferences) or view.counts
    rounded = not (counts and (strategy.unit / grid).denominator == 1)
    B = strategy.integers
    worst = Fraction(0)
    inverse = np.array([float(strategy.unit / b) for b in scales])
    steps = np.array([float(grid / b) for b in scales]) if rounded else np.zeros(len(scales))
    for first, second, amount in columns:
        shift = np.abs(B[:, first] - (B[:, second] if second is not None else 0))
        moved = np.flatnonzero(shift)
        near = float(amount) * float(inverse @ shift) + float(steps[moved].sum())
        if near < float(worst) * (1 - 1e-9):
            continue
        exact = Fraction(0)
        for r in moved:
            exact += (int(shift[r]) * strategy.unit * amount + (grid if rounded else 0)) / scales[r]
        worst = max(worst, exact)
    return worst


def _moved_columns(strategy: DyadicMatrix, view: ProtectedView) -> Iterator[tuple[int, int | None, Fraction]]:
    """Coordinates that change (one, or one up and another down) and by how much."""
    match view.exact:
        case VectorDifferences(indices, amounts, _):
            for i, amount in zip(indices, amounts, strict=True):
                yield int(i), None, Fraction(amount)
        case PairDifferences(coordinates, scale, _):
            for i, j in combinations(coordinates.tolist(), 2):
                yield i, j, scale
        case _:
            raise InternalError("Laplace noise is not offered for balls and boxes")


def gaussian_sensitivity_up(strategy: Array, differences: Differences) -> float:
    """An upper bound, up to rounding the least one, of max ||B d||_2 over the differences.

    Rounded up by more than the float error of the evaluation, so that it may stand in a claim.
    """
    k = strategy.shape[0]
    margin = 1.0 + 8 * (k + 8) * np.finfo(float).eps
    match differences:
        case Vectors(matrix):
            if matrix.shape[1] == 0:
                return 0.0
            image = (matrix.T @ strategy.T).T
            # several nonzeros a column add rounding of their own size, covered by the margin on absolute sums
            absolute = (abs(matrix).T @ np.abs(strategy).T).T
            extra = 4 * matrix.shape[0] * np.finfo(float).eps * np.sqrt((absolute**2).sum(axis=0))
            return float(np.max(np.sqrt((image**2).sum(axis=0)) * margin + extra))
        case Pairs(coordinates, scale):
            B = strategy[:, coordinates]
            gram = B.T @ B
            norms = np.diag(gram)
            squared = norms[:, None] + norms[None, :] - 2 * gram
            error = 8 * (k + 8) * np.finfo(float).eps * (norms[:, None] + norms[None, :])
            np.fill_diagonal(squared, 0.0)
            return float(scale * np.sqrt(np.max(squared + error))) * margin
        case Balls(blocks, radius):
            return max(float(np.linalg.norm(strategy[:, b], 2)) for b in blocks) * radius * (1 + 1e-11)
        case Boxes(blocks, reach):
            return max(_box_reach(strategy[:, b] * reach[b]) for b in blocks) * (1 + 1e-11)


def _box_reach(scaled: Array) -> float:
    """Max of ||B s|| over sign vectors s: enumerated when small, else the least of the two bounds of the note."""
    k = scaled.shape[1]
    if k <= VERTEX_BITS:
        signs = np.array(list(product((1.0, -1.0), repeat=k - 1)), dtype=float).reshape(2 ** (k - 1), k - 1)
        vertices = np.hstack([np.ones((len(signs), 1)), signs])
        return float(np.sqrt(((vertices @ scaled.T) ** 2).sum(axis=1).max()))
    gram = scaled.T @ scaled
    return float(np.sqrt(np.abs(gram).sum(axis=1).sum()))


def exact_gaussian(
    strategy: Array,
    outputs_matrix: Array | None,
    inputs_matrix: Array | None,
    view_rows: tuple[int, ...],
) -> LinearRelease:
    """Round a Gaussian release to exact numbers, after leaving `SLACK` of room."""
    return LinearRelease(
        DyadicMatrix.rounded(strategy * (1 - SLACK), STRATEGY_BITS),
        GaussianNoise(),
        None if outputs_matrix is None else DyadicMatrix.rounded(outputs_matrix / (1 - SLACK), STRATEGY_BITS + 6),
        None if inputs_matrix is None else DyadicMatrix.rounded(inputs_matrix / (1 - SLACK), STRATEGY_BITS + 6),
        view_rows,
    )
