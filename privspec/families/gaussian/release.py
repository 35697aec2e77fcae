"""A linear release in exact numbers, ready for a plan, and what a mechanism offers.

Every additive mechanism of the linear family is executed in one way: draw `z = B u + noise`, publish functions
`L z + offset` of it. Gaussian placement, Laplace sites and K-norm noise differ in B, L and the law only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, lcm, log2, sqrt
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from privspec.core.diagnostics import InternalError
from privspec.core.matrices import LIST_LIMIT, DyadicMatrix
from privspec.core.records import dataclass, replace
from privspec.core.rounding import common
from privspec.families.decision import Alternative, Decision
from privspec.families.gaussian.problem import SOME, Points, ProtectedView
from privspec.kernel.core.linear import Matrix, Release
from privspec.kernel.core.linear_privacy import change_of, term_of
from privspec.kernel.core.reading import Grid
from privspec.kernel.laws.gaussian import Gaussian
from privspec.kernel.laws.law import Law
from privspec.kernel.linear import COUNT
from privspec.kernel.rows import matrix_of
from privspec.kernel.rules import derive
from privspec.kernel.trust import CURATOR, Trust
from privspec.model.domains import Between
from privspec.model.neighbours import Asserted
from privspec.problem.linear import ROUNDED_UP, grid_of, short_denominator
from privspec.solvers.programs import Array, DualPoint, Indices, Pairs, largest_norm

if TYPE_CHECKING:
    from privspec.families.gaussian.problem import Problem
    from privspec.families.program import Form

FINE_BITS = 52
"""The same where some outputs have next to no noise, which would not hide the rounding."""
UNEVEN = 1e-2
"""Ratio of the least to the largest standard deviation of the outputs below which that is so."""
STRATEGY_BITS = 42
"""Bits of the largest entry of the smallest strategy row; the loss moves by about 2^-42 of itself."""
MOST_BITS = 60
"""Bits of the largest strategy entry: rows of very different size share one exponent."""
SPARE_BITS = 12
"""Bits that columns, or rows of a large reconstruction, may be short of: the others are enough."""
RECONSTRUCTION_BITS = 60
"""Bits of the largest entry of the smallest row of a reconstruction (public, free of charge)."""
GRID_EXPONENT = 30
"""The noisy strategy answers are released on multiples of 2^-30 noise units (or data units)."""
NEGLIGIBLE = Fraction(1, 10**6)
"""Share of what a requirement allows below which a release does not say how little it uses: that is round-off."""
LEVEL = 2.0**-40
"""Relative difference up to which entries of a strategy row are the same but for round-off."""
LONGEST, SHORTEST, LAST_DIGIT = 40, 1000, 2.0**-50
"""Bits of whole numbers that a row is taken to be made of; their ratios otherwise; how near doubles are to them."""
SLACK = 1e-11
"""Relative room left for float error when a strategy is made to meet its sensitivity."""
INPUT_GRID_BITS = 24
"""Inputs are put on a grid of at least 2^24 steps across their domain."""
FINEST_INPUT_GRID_BITS = 52
"""Finer than that doubles cannot say where an input lies in its domain."""
ROUNDED_SHARE = 2.0**-12
"""Share of its standard deviation by which the grids of the inputs may move an output."""
OUTPUT_STEPS = 14
"""The released grid has at least 2^14 steps in the standard deviation of every output."""


@dataclass(frozen=True, eq=False, slots=True)
class LinearRelease:
    """`z = strategy @ u + noise`, outputs a linear function of z.

    Exactly one of `outputs_matrix` (m, k) and `inputs_matrix` (n, k) is given (see `executed.reconstruction` of
    a plan). `view_rows[o]`: how many leading rows view o's outputs depend on. `grid`: lattice of z;
    `rounding`: "strategy" when z itself is rounded, "outputs" when only the outputs are. `senders` (k,): how many
    parties send each answer, of what they hold themselves and with noise of their own, where that is not one; z is
    the sum. `parties`: how many add shares of the noise. `shift` (m,): what is added to answers that are pulled,
    whose biases `domination` bounds.
    """

    strategy: DyadicMatrix
    noise: Law
    outputs_matrix: DyadicMatrix | None
    inputs_matrix: DyadicMatrix | None
    view_rows: tuple[int, ...]
    grid: str = f"2^-{GRID_EXPONENT}"
    output_grid: str = "2^-20"
    rounding: str = "strategy"
    senders: Array | None = None
    parties: int = 1
    shift: tuple[Fraction, ...] | None = None
    domination: tuple[Fraction, ...] | None = None

    @property
    def step(self) -> Fraction:
        """The lattice step."""
        return _power(self.grid)

    def row_variances(self) -> Array:
        """Variance of the noise on each strategy row, that of all who send it together."""
        excess = Fraction(self.parties, self.noise.honest or self.parties)
        known = self.noise.variances(self.strategy.shape[0], self.step)
        each = np.array([float(variance * excess) for variance in known])
        return each if self.senders is None else each * self.senders

    def output_map(self, target: Array) -> Array:
        """The map (m, k) from strategy noise to the outputs."""
        if self.outputs_matrix is not None:
            return self.outputs_matrix.to_float()
        if self.inputs_matrix is None:
            raise InternalError("a release without reconstruction")
        return np.asarray(target @ self.inputs_matrix.to_float())

    def noise_map(self, target: Array) -> Array:
        """The map (m, k) from independent noise of deviation one to the outputs."""
        return np.asarray(self.output_map(target) * np.sqrt(self.row_variances()))

    def output_variances(self, target: Array) -> Array:
        """The variance (m,) of the noise in each output."""
        deviations = np.sqrt(self.row_variances())
        if self.outputs_matrix is not None:
            return np.asarray(np.sum((self.output_map(target) * deviations) ** 2, axis=1))
        parts = (target[start : start + SOME] for start in range(0, len(target), SOME))
        return np.concatenate([np.sum((self.output_map(part) * deviations) ** 2, axis=1) for part in parts])


def _power(text: str) -> Fraction:
    """A number, or a power of one such as 2^-30."""
    base, _, power = text.partition("^")
    return Fraction(base) ** int(power or 1)


def exact(matrix: DyadicMatrix) -> Matrix:
    """The same matrix as the kernel computes with it."""
    return matrix_of(Grid(matrix.shape, matrix.unit, tuple(matrix.integers.ravel().tolist())))


def judged(problem: Problem, release: LinearRelease) -> Release:
    """The release as the kernel judges it."""
    of_inputs = release.inputs_matrix is not None
    matrix = release.inputs_matrix if of_inputs else release.outputs_matrix
    if matrix is None:
        raise InternalError("a release without reconstruction")
    bits, rows = input_grid_bits(problem, release), release.strategy.shape[0]
    senders = [1] * rows if release.senders is None else [int(count) for count in release.senders]
    return Release(
        problem.block,
        tuple(grid_of(block, bits) for block in problem.model.blocks),
        exact(release.strategy),
        release.noise,
        release.step,
        exact(matrix),
        _power(release.output_grid),
        of_inputs,
        release.rounding == "outputs",
        tuple(senders),
        release.parties,
        release.shift,
        release.domination,
    )


def reached(problem: Problem, release: LinearRelease) -> list[Fraction]:
    """What each view of noise at a curator lets through, in the last figure of the noise: as the kernel derives it.

    Raises: Refused where nothing is known of such changes.
    """
    made = judged(problem, release)
    term = term_of(made, replace(problem.frame, trust=Trust(CURATOR.name, 0)))
    found, known = list[Fraction](), dict[tuple[int, int], Fraction]()
    for view in problem.system.views:
        key = id(view.exact), id(view.chosen)
        if key not in known:
            change = change_of(made, view.exact)
            if view.chosen is not None:
                own = tuple(unit for unit in change.units if view.chosen[unit[0][0].at[0]])
                change = replace(change, units=own)
            seen = frozenset(problem.frame.obligations[view.index].seen)
            known[key] = derive(term, seen, change).loss.figure(release.noise.figures[-1])
        found.append(known[key])
    return found


def length_up(release: LinearRelease, view: ProtectedView, rows: int) -> Fraction:
    """At least how far a view moves the first rows of a strategy: in doubles, raised by more than their error."""
    integers = release.strategy.integers[:rows]
    if isinstance(view.differences, Pairs):
        # what is common to all cells (the number of records, which nothing hides) may be far larger than what is not
        integers = integers - integers[:, view.differences.coordinates[:1]]
    answers = np.ldexp(integers.astype(np.float64), -release.strategy.exponent)
    margin = 1 + 1e-12 + 8 * (len(answers) + 8) * float(np.finfo(float).eps)
    return Fraction(sqrt(largest_norm(answers, view.differences)) * margin)


def common_step(strategy: DyadicMatrix, points: Points | None, *, moves: bool = False) -> Fraction | None:
    """What all answers are whole multiples of, or all that neighbours move them by; None where they lie anywhere."""
    if points is None:
        return None
    parts = ((at, {step} if moves or not low else {step, low}) for at, step, low in points)
    return strategy.unit * common(
        int(np.gcd.reduce(np.abs(strategy.integers[:, at]), axis=None, initial=0)) * abs(point)
        for at, values in parts
        for point in values
    )


def in_whole_numbers(matrix: Array) -> tuple[DyadicMatrix, list[Fraction]] | None:
    """The rows as whole numbers without a common divisor, times a size each; None if some are no such rows.

    What sums, means and counts are made of: their answers lie on a lattice wherever what they are taken of does.
    """
    integers, sizes = np.zeros(matrix.shape, dtype=np.int64), list[Fraction]()
    for row, found in zip(matrix, integers, strict=True):
        size = _divisor(np.unique(np.abs(row[row != 0])))
        if size is None:
            return None
        found[:] = np.rint(row / float(size))
        sizes.append(size)
    return DyadicMatrix(integers, 0), sizes


def _divisor(values: Array) -> Fraction | None:
    """The largest number that all of these, which are not 0, are whole multiples of but for the last digit."""
    if not len(values):
        return Fraction(1)
    below, unit = short_denominator(values.tolist()), Fraction(1)
    if below is None:  # of large numbers, or of none that is short, how many times the least of them
        unit, below = Fraction(float(values[0])), 1
        for value in values.tolist():
            below = lcm(below, Fraction(value / float(unit)).limit_denominator(SHORTEST).denominator)
            if below > SHORTEST:
                return None
    ratios = values / float(unit) * below
    whole = np.rint(ratios)
    if whole.max() >= 2.0**LONGEST or np.any(np.abs(ratios - whole) > LAST_DIGIT * ratios):
        return None
    return unit * Fraction(int(np.gcd.reduce(whole.astype(np.int64))), below)


def rounded_strategy(strategy: Array, views: Sequence[ProtectedView] = (), bits: int = STRATEGY_BITS) -> DyadicMatrix:
    """The strategy in exact numbers, every row with so many bits of its own where `MOST_BITS` allow it.

    Columns of inputs that are far larger than others have as many as these have, but for `SPARE_BITS`.
    Where the records of a view only move between cells, a row that is the same for all these cells but for round-off
    is made exactly the same: it counts records that nothing adds or takes away, and so needs no noise.
    """
    rows, columns = (_spread(np.abs(strategy).max(axis=axis, initial=0.0)) for axis in (1, 0))
    found = DyadicMatrix.rounded(strategy, min(bits + rows, MOST_BITS) + max(columns - SPARE_BITS, 0))
    integers = found.integers.copy()
    for view in views:
        if isinstance(view.differences, Pairs):
            cells = integers[:, view.differences.coordinates]
            low, high = cells.min(axis=1), cells.max(axis=1)
            level = (high - low) <= LEVEL * np.abs(cells).max(axis=1)
            integers[np.ix_(level, view.differences.coordinates)] = (low + (high - low) // 2)[level, None]
    return DyadicMatrix(integers, found.exponent)


def rounded_reconstruction(matrix: Array) -> DyadicMatrix:
    """The matrix in exact numbers: a row of little noise counts digits that are nothing to the largest."""
    spread = _spread(np.abs(matrix).max(axis=1, initial=0.0))
    return DyadicMatrix.rounded(
        matrix, RECONSTRUCTION_BITS + (spread if matrix.size <= LIST_LIMIT else max(spread - SPARE_BITS, 0))
    )


def _spread(tops: Array) -> int:
    """By how many bits the largest of some sizes is longer than the least that is not 0."""
    tops = tops[tops > 0]
    return int(np.ceil(np.log2(tops.max() / tops.min()))) if len(tops) else 0


def exact_gaussian(
    strategy: Array,
    outputs_matrix: Array | None,
    inputs_matrix: Array | None,
    view_rows: tuple[int, ...],
    views: Sequence[ProtectedView],
    bits: int = STRATEGY_BITS,
    senders: Array | None = None,
) -> LinearRelease:
    """Round a Gaussian release to exact numbers, after leaving `SLACK` of room."""
    reconstruction = outputs_matrix if outputs_matrix is not None else inputs_matrix
    if reconstruction is None:
        raise InternalError("a release without reconstruction")
    deviations = np.linalg.norm(reconstruction if senders is None else reconstruction * np.sqrt(senders), axis=1)
    return LinearRelease(
        rounded_strategy(strategy * (1 - SLACK), views, bits),
        Gaussian(Fraction(1)),
        None if outputs_matrix is None else rounded_reconstruction(outputs_matrix / (1 - SLACK)),
        None if inputs_matrix is None else rounded_reconstruction(inputs_matrix / (1 - SLACK)),
        view_rows,
        output_grid=output_grid(deviations),
        senders=senders,
    )


def output_grid(deviations: Array) -> str:
    """A power of two fine enough for the least noisy output."""
    least = float(deviations[deviations > 0].min(initial=1.0))
    return f"2^{min(int(np.floor(np.log2(least))) - OUTPUT_STEPS, -20)}"


def input_grid_bits(problem: Problem, release: LinearRelease) -> int:
    """Bits of the grid of the inputs: what rounding moves is lost in the noise of every output."""
    system = problem.system
    layout = system.lowered.layout
    widths = np.zeros(system.inputs_count)
    for block in problem.model.blocks:
        if block.schema is None:
            low, high = block.domain.bounds
            at, share = layout.places[block.name]
            widths[at : at + share.width] = 1.0 if low is None or high is None else float(high - low)
    widths *= layout.copies
    deviations = np.sqrt(release.output_variances(system.target))
    noisy = deviations > 0
    moved = (np.abs(system.target) @ widths)[noisy] if widths.any() else np.zeros(int(noisy.sum()))
    for block in problem.model.blocks:
        if block.schema is not None and not block.whole:
            # each record's shares of two cells, for each column that is added up
            at, share = layout.places[block.name]
            rounded = 2 * sum(isinstance(domain, Between) for _, domain in block.schema) * (block.records or COUNT)
            moved += rounded * np.abs(system.target[noisy, at : at + share.width]).max(axis=1, initial=0.0)
    reach = moved / (2 * ROUNDED_SHARE * deviations[noisy])
    needed = ceil(log2(max(float(np.max(reach, initial=1.0)), 1.0)))
    for line in problem.model.requirements:
        if isinstance(line.neighbours, Asserted):
            # what rounding adds to what is asserted is within the factor by which that was enlarged
            at, share = layout.places[line.wrt[0]]
            room = line.neighbours.amount * (ROUNDED_UP - 1) / (share.width + 1)
            needed = max(needed, ceil(log2(max(widths[at : at + share.width])) - log2(room)))
    return min(max(needed, INPUT_GRID_BITS), FINEST_INPUT_GRID_BITS)


@dataclass(frozen=True, eq=False, slots=True)
class Dual:
    """The dual point behind a lower bound: the solver's, with the budgets that its differences were divided by."""

    point: DualPoint
    budgets: tuple[float, ...]
    scope: str
    """ "full" when any covariance was allowed, "sites" or "messages" otherwise. """
    guide: Array | None = None
    """A root (m, k) of the output covariance that shows the bound, where the mechanism's own does not."""
    owners: Indices | None = None
    """The party who holds each number, where the scope is "parties": each draws noise alone."""
    weights: Array | None = None
    """Of a loss of sizes: the weights (q,) of the squares that the point is about."""


@dataclass(frozen=True, eq=False, slots=True)
class Mechanism:
    """A release that can be executed, with what plans say about it."""

    release: LinearRelease
    sites: tuple[dict[str, Any], ...]
    """Where independent noise enters, with its variances, or its scales wherever that is; of other noise nothing."""
    dual: Dual | None
    solver: str
    iterations: int
    seconds: float
    notes: tuple[str, ...] = ()
    bounds: tuple[dict[str, Any], ...] = ()
    """Data, or proofs of their own, that bounds on answers that are pulled may rest on."""


@dataclass(frozen=True, eq=False, slots=True)
class Candidate:
    """One way to meet the spec, or one that people use and that is shown for comparison.

    `lower_bound` holds for every mechanism that `among` names. A candidate without a mechanism is a classic
    that is only compared; one that is not admissible breaks an option (or a requirement) that `reason` names.
    `program`: the convex program whose optimum it is, with what makes decisions of candidates; or why there is none.
    """

    name: str
    family: str
    loss: float
    reason: str
    admissible: bool = True
    lower_bound: float | None = None
    among: str = ""
    mechanism: Mechanism | None = None
    program: Callable[[Decide], Form | str] = lambda _: "no convex program is known of which this noise is the optimum"

    @property
    def compared(self) -> Alternative:
        """Beside another that is taken."""
        return Alternative(self.name, self.loss, self.reason, self.admissible)


Decide: TypeAlias = Callable[[Candidate], Decision]
