"""What a plan states of a linear release: figures and bounds by the functions with which the kernel judges them.

The problem and the mechanism are read as the kernel reads them, so that a figure is rounded once and in one way. What
helps the kernel to bound what observers see is not believed by it. Nor are witnesses of lower bounds: a solver's dual
point as whole numbers that the kernel multiplies (notes/placement.md). For weights p on differences d, with F the
columns sqrt(p) d and V the weighted error terms of what they do, the loss is at least (nuclear norm of V)^2 / (sum of p
mu^2): its witness is the polar factor U of V. Where observers see different outputs, U comes from a covariance near the
best one, and what is missing from U'U = 1 is written out beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from math import frexp, lcm
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from privspec.core.diagnostics import InternalError
from privspec.core.records import dataclass, replace
from privspec.families.decision import accuracy_json, float_down, inverse_root, mu_up, shares_of
from privspec.families.gaussian.problem import Problem, site_maps
from privspec.families.gaussian.release import NEGLIGIBLE, Dual, LinearRelease, Mechanism, judged
from privspec.kernel.changes import Piece, boxed
from privspec.kernel.core.linear import Difference, Places, Release
from privspec.kernel.core.linear_privacy import losses
from privspec.kernel.core.problem import Frame
from privspec.kernel.core.reading import Grid, JsonNode, Refused
from privspec.kernel.laws.laplace import Laplace
from privspec.kernel.laws.staircase import Staircase
from privspec.kernel.linear import (
    COMBINED,
    COVARIANCE_LIMIT,
    SCOPE,
    Figures,
    enters,
    loads,
    placed,
    together,
)
from privspec.kernel.moves import units_of
from privspec.kernel.rows import covariance, doubles
from privspec.kernel.strategies.dense import VERTICES
from privspec.kernel.worth import LowerBound
from privspec.kernel.worth.shifts import OF_PURE, shifted
from privspec.kernel.worth.traces import proved
from privspec.kernel.writing import array
from privspec.kernel.writing import sparse as sparse_json
from privspec.problem.elaborate import elaborate
from privspec.solvers.programs import MEETING, Array, Pairs, Streams, box_scaling, shorter

Json = dict[str, Any]
Judge = Callable[[Frame, Release, JsonNode], LowerBound]
"""What a witness proves of the loss, and of which mechanisms."""
APART: Json = {"alone": "1", "signs": None}
"""Random data that are drawn apart."""
SCALING_BITS = 50
"""Bits of the numbers that scale a box."""


def achieved(
    problem: Problem, frame: Frame, release: Release, views: list[dict[str, Any]]
) -> list[dict[str, Fraction]]:
    """What the release reaches for each requirement, in the figures of its noise, as the kernel bounds it, rounded up.

    Raises: InternalError if that is more than a requirement allows.
    """
    found, noise = list[dict[str, Fraction]](), release.noise
    deltas = tuple((one.requirement.measure.ratio or (None, Fraction(0)))[1] for one in problem.system.views)
    budgets = {"mu": problem.budgets, "epsilon": problem.epsilons, "delta": deltas}[noise.figures[-1]]
    for index, (asked, view) in enumerate(zip(frame.obligations, views, strict=True)):
        moved = release.problem.differences[index]
        known = losses(release, frame, asked.seen, moved, JsonNode(view, "claims.views"))
        *first, amount = (max((one.figure(key) for one in known), default=Fraction(0)) for key in noise.figures)
        allowed = [b for b, one in zip(budgets, problem.system.views, strict=True) if one.index == index]
        most = (max if asked.measure.each else min)((b for b in allowed if b is not None), default=None)
        if most is None or amount > most:
            raise InternalError(f"the release reaches {float(amount)!r} of {most}, which is more than it may")
        # a view that nothing moves but round-off is claimed with a bound that round-off does not pass
        kept = len(noise.figures) > 1 or (amount == 0 and view["inverse"] is None)
        found.append(
            dict(zip(noise.figures, (*first, amount if kept else max(amount, most * NEGLIGIBLE)), strict=True))
        )
    return found


def view_witnesses(problem: Problem, release: LinearRelease, read: Release) -> list[dict[str, Any]]:
    """For each requirement: an inverse root of what a mixed view sees, and the scaling of large boxes."""
    found = []
    for requirement, differences in zip(problem.model.requirements, read.problem.differences, strict=True):
        exposed = problem.model.exposed(requirement)
        rows = [i for o in problem.system.outputs if o.name in exposed for i in range(o.start, o.stop)]
        mixed = release.rounding == "outputs" and len(rows) < problem.system.outputs_count
        strategy = release.strategy.to_float()
        inverse = None
        if mixed and release.outputs_matrix is not None:
            seen = release.outputs_matrix.to_float()[rows]
            inverse, root = inverse_root(seen)
            strategy = root @ strategy
        scaling = [box_scalings(strategy, difference, read.problem.places) for difference in differences]
        found.append({"inverse": inverse, "scaling": scaling if any(one is not None for one in scaling) else None})
    return found


def box_scalings(strategy: Array, difference: Difference, places: Places) -> list[list[str]] | None:
    """A number for each piece of each unit, where some unit is a box of many numbers, or of vectors that meet."""
    change = units_of(difference, places)
    if change.crowded:
        return None
    listed = [boxed(unit) for unit, _ in change.grouped().units]
    boxes = [all(piece.shape == "box" for piece in unit) for unit in listed]
    boxes = [len(unit) > VERTICES if box else _meet(strategy, unit) for box, unit in zip(boxes, listed, strict=True)]
    if not any(boxes):
        return None
    return [
        _box(strategy, unit) if box else [str(piece.amount or 1) for piece in unit]
        for box, unit in zip(boxes, listed, strict=True)
    ]


def _meet(strategy: Array, unit: tuple[Piece, ...]) -> bool:
    """Whether vectors of one coordinate each, that change at once, have products that count."""
    if len(unit) < 2 or any(piece.shape != "l2" or len(piece.at) > 1 for piece in unit):
        return False
    columns = strategy[:, [piece.at[0] for piece in unit]]
    gram = np.abs(columns.T @ columns)
    return bool(gram.sum() > np.trace(gram) * (1 + MEETING))


def _box(strategy: Array, unit: tuple[Piece, ...]) -> list[str]:
    amounts = [piece.amount or Fraction(1) for piece in unit]
    edges = [(edge, amount) for piece, amount in zip(unit, amounts, strict=True) for edge in piece.edges]
    columns = np.array([sum(strategy[:, i] * float(a * amount) for i, a in edge) for edge, amount in edges]).T
    shares = box_scaling(columns.T @ columns)
    whole = np.maximum(np.rint(np.ldexp(shares / shares.max(), SCALING_BITS)), 1.0).astype(np.int64).tolist()
    return [str(amount * share) for amount, share in zip(amounts, whole, strict=True)]


@dataclass(frozen=True, eq=False)
class Stated:
    """A release with its problem, as the kernel reads them."""

    problem: Problem
    mechanism: Mechanism

    @property
    def frame(self) -> Frame:
        """The problem."""
        return elaborate(self.problem.model)

    @cached_property
    def release(self) -> Release:
        """What is executed."""
        return judged(self.problem, self.mechanism.release)

    @cached_property
    def figures(self) -> Figures:
        """Exact figures of what is executed."""
        return Figures.of(self.release)

    def loss(self) -> float:
        """The nearest double of the loss."""
        return float(self.figures.value)

    def accuracy(self) -> list[dict[str, Any]]:
        """Every instance of an accuracy line with what is expected and what was asked for."""
        lines = self.release.problem.accuracy
        found = zip(lines, self.figures.lines, strict=True)
        return accuracy_json((line, text, value, bound) for (_, bound, line, text, _), value in found)

    def covariance(self) -> list[list[float]] | None:
        """That of the outputs, where it is small enough to be stated."""
        if self.release.problem.size > COVARIANCE_LIMIT:
            return None
        return doubles(covariance(self.figures.noise, self.figures.variances))

    def sites(self) -> list[dict[str, Any]]:
        """Where the noise enters, with figures of what is executed."""
        if any("variance" in site for site in self.mechanism.sites):
            return list(self.mechanism.sites)
        if self.release.noise.entry != "scale":
            return together(self.release, self.figures)
        found = self._where()
        if found is None:
            raise InternalError("the noise does not enter where the problem lets it")
        return [found]

    def _where(self) -> dict[str, Any] | None:
        """Where noise with scales enters, and its scales there: at one place, or at all inputs, outputs or places."""
        block, nothing = self.release.problem, JsonNode(None, "sites")
        alone = max(self.release.senders) > 1
        inputs = [one.name for one in block.held if alone or max(block.places[one.start][1].copies) == 1]
        groups = [inputs, [one.name for one in block.released]]
        if block.sites is not None:
            groups = [[name for name, *_ in block.sites]]
        there = [float(scale) for site in self.mechanism.sites for scale in site.get("scale", ())]
        tried = [(names, there) for names in [*([name] for group in groups for name in group), *filter(None, groups)]]
        if block.sites is None:
            tried.append(([COMBINED], list(map(float, self.release.noise.sizes(self.release.grid)))))
        for names, scales in tried:
            if enters(self.release, self.figures, nothing, names, scales):
                return {"at": " and ".join(names), "scale": scales}
        return None

    @cached_property
    def bound(self) -> Bound | None:
        """The largest lower bound: of the solver's dual point, or of Laplace noise at places; None if none is known."""
        tried: list[tuple[Judge, dict[str, Any]]] = []
        if self.mechanism.dual is not None:
            tried += [(proved, one) for one in self._duals(self.mechanism.dual)]
        if isinstance(self.release.noise, Laplace):
            tried += [(placed, one) for one in placed_witnesses(self.frame, self.release)]
        if self.release.problem.size == 1 or not self.release.noise.normal:
            from privspec.families.gaussian.stepped import shift_witnesses  # most specs are of several numbers

            tried += [(shifted, one) for one in shift_witnesses(self.frame, self.release.problem)]
        if self.release.shift is not None:
            from privspec.kernel.worth.affine import SCOPE as AFFINE
            from privspec.kernel.worth.affine import affine  # few plans pull what is released

            known = [one for _, one in tried]
            data = [one for one in self.mechanism.bounds if "of" not in one] + [APART]
            pulled = [{"of": stated, **one} for stated in known for one in data]
            tried = [
                (affine, {"scope": AFFINE, **one})
                for one in [*pulled, *(own for own in self.mechanism.bounds if "of" in own)]
            ]
        found = []
        for judge, stated in tried:
            try:
                shows = judge(self.frame, self.release, JsonNode(stated, "claims.bound"))
                derived = float_down(shows.at(self.frame.obligations))
            except Refused:
                continue
            found.append(Bound(stated, min(max(derived, 0.0), self.loss()), shows.among[0]))
        # where they differ by next to nothing, what is about more mechanisms says more, and then what is shorter
        values = [one.value * (1 if one.narrow else BROADER) for one in found]
        best = [one for one, value in zip(found, values, strict=True) if value >= max(values) * (1 - 1e-9)]
        return min(best, key=lambda one: len(one.witness), default=None)

    def _duals(self, dual: Dual) -> Iterator[dict[str, Any]]:
        """What a dual point proves: of all unbiased mechanisms, or of noise of any law under lines with a delta."""
        stated, noise = bound_witness(self.problem, self.mechanism, dual), self.release.noise
        if noise.normal:
            yield stated
            return
        from privspec.families.gaussian.stepped import along_directions  # most specs have normal noise beside

        more = along_directions(self.frame, self.release.problem, stated)
        # a law in steps with a delta is none of pure epsilon
        if not isinstance(noise, Staircase) or not any("delta" in own for own in self._amounts):
            yield stated
        if more is not None:
            yield more

    @property
    def _amounts(self) -> list[dict[str, Fraction]]:
        """Of the lines."""
        return [one.measure.figures({}) for one in self.frame.obligations if one.measure.common is not None]


def _listed(values: tuple[Fraction, ...]) -> Grid:
    """Numbers over one denominator."""
    unit = Fraction(1, lcm(*(value.denominator for value in values)))
    return Grid((len(values),), unit, tuple(int(value / unit) for value in values))


def placed_witnesses(frame: Frame, release: Release) -> Iterator[dict[str, Any]]:
    """For each line, weights of its units under which a mixture of them asks for the most Laplace noise.

    Of units that move different numbers, each weighs as the cube of what it asks for alone.
    """
    for line in range(len(frame.obligations)):
        try:
            costs, moves = loads(frame, release, line)
        except Refused:
            continue
        prices = np.array([float(cost) for cost in costs])
        alone = [float(np.cbrt(prices * np.array(list(map(float, move))) ** 2).sum()) ** 3 for move in moves]
        if any(alone):
            weights = shares_of(np.array(alone))
            yield {"scope": SCOPE, "requirement": line, "weights": [str(weight) for weight in weights]}


BROADER = 1.01
"""By how much a bound may be lower that is not about mechanisms of the same pure epsilon alone."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound with its witness, rounded down, and the mechanisms that it is about."""

    witness: dict[str, Any]
    value: float
    among: str

    @property
    def narrow(self) -> bool:
        """Whether they are those of the same pure epsilon alone, under a line with a delta."""
        return self.among.removeprefix("shares of ") in OF_PURE.values()


def bound_witness(
    problem: Problem, mechanism: Mechanism, dual: Dual, prices: list[Fraction] | None = None
) -> dict[str, Any]:
    """The dual point of a solver in whole numbers; `prices` of the accuracy lines, by default those of the point."""
    system, point = problem.system, dual.point
    rows, weights = system.lowered.errors.rows.csr, system.lowered.errors.weights
    shares = None
    if dual.weights is not None:
        weights = dual.weights
        shares = None if problem.alone else list(map(Fraction, weights.tolist()))
    if system.worst and prices is None:
        shares = shares_of(point.loss_weights)
        weights = weights * np.array([float(share) for share in shares])
    if point.limit_weights is not None and prices is None:
        prices = [Fraction(max(float(price), 0.0)) for price in point.limit_weights]
    if prices is not None:
        limits = [limit.errors for limit in system.lowered.limits]
        rows = scipy.sparse.csr_array(scipy.sparse.vstack([rows, *(limit.rows.csr for limit in limits)]))
        priced = [
            float(price) * limit.weights ** (1 + limit.sizes) for price, limit in zip(prices, limits, strict=True)
        ]
        weights = np.concatenate([weights, *priced])
    maps = None
    if dual.scope == "sites":
        names = problem.model.noise_at or ()
        maps = np.hstack([site.map for site in site_maps(problem.model, system, tuple(names))])
    guide = dual.guide
    if guide is None and not (dual.scope == "full" and system.seen_whole):
        inputs = mechanism.release.inputs_matrix
        messages = dual.scope == "messages" and inputs is not None
        # what a party sends has its own noise only
        release = replace(mechanism.release, senders=None) if messages else mechanism.release
        deviations = np.sqrt(release.row_variances())
        root = inputs.to_float() if messages and inputs is not None else mechanism.release.output_map(system.target)
        guide = root * deviations
    scene = DualProblem(dual.scope, system.target, rows, weights, maps, guide, dual.owners)
    return {
        "loss_weights": None if shares is None else [str(share) for share in shares],
        "prices": None if prices is None else [str(price) for price in prices],
        **witness(scene, list(_seen(problem, mechanism, dual))),
    }


def _alike(
    kinds: NDArray[np.intp], part: scipy.sparse.csc_array, weights: Array
) -> tuple[scipy.sparse.csc_array, Array]:
    """One of all differences that move what is asked alike, with the weights of all.

    Args: kinds (n,), equal for inputs that count alike in all that is asked.
    """
    if kinds.max() + 1 == len(kinds):
        return part, weights
    first = dict[bytes, int]()
    of = np.empty(part.shape[1], dtype=np.intp)
    part.sort_indices()
    for column, (start, stop) in enumerate(pairwise(part.indptr.tolist())):
        moved = kinds[part.indices[start:stop]].tobytes() + part.data[start:stop].tobytes()
        of[column] = first.setdefault(moved, column)
    kept, whose = np.unique(of, return_inverse=True)
    together = np.bincount(whose, weights).astype(float)
    return scipy.sparse.csc_array(part[:, kept]), together


def _within_runs(pairs: scipy.sparse.csc_array, among: Pairs) -> scipy.sparse.csc_array:
    """Pairs of cells as columns (n, K), the second moved to the run of the first: a question sees the same of both."""
    if among.runs == 1 or np.any(np.diff(pairs.indptr) != 2):
        return pairs
    places = np.zeros(pairs.shape[0], dtype=np.intp)
    places[among.coordinates] = np.arange(len(among.coordinates))
    length = len(among.coordinates) // among.runs
    first, second = places[pairs.indices.reshape(-1, 2)].T
    moved = among.coordinates[first // length * length + second % length]
    cells = np.column_stack([among.coordinates[first], moved])
    return scipy.sparse.csc_array((pairs.data, cells.ravel(), pairs.indptr), shape=pairs.shape)


def _seen(problem: Problem, mechanism: Mechanism, dual: Dual) -> list[Seen]:
    """Differences with their weights, those of one requirement together."""
    pure = not mechanism.release.noise.normal
    # noise of single parties is about what each of them holds
    apart = all(isinstance(view.differences, Streams) for view in problem.system.views)
    together = not apart and dual.scope != "messages" and dual.owners is None
    kinds = np.unique(problem.system.target, axis=1, return_inverse=True)[1] if together else None
    found: dict[int, Seen] = {}
    for view, budget, part, weights in zip(
        problem.system.views, dual.budgets, dual.point.differences, dual.point.weights, strict=True
    ):
        visible = np.zeros(problem.system.outputs_count, dtype=bool)
        visible[slice(None) if view.rows is None or dual.scope == "messages" else view.rows] = True
        measure = view.requirement.measure
        mu = None if pure else mu_up(measure, budget)
        cells = None
        among = view.differences
        if isinstance(among, Pairs):
            part = _within_runs(scipy.sparse.csc_array(part), among)
            cells = among.coordinates if among.runs == 1 else None
        weighed, shares = part, weights
        if kinds is not None and not isinstance(among, Streams):
            weighed, shares = _alike(kinds, scipy.sparse.csc_array(part), weights)
            cells = cells if len(shares) == len(weights) else None
        own = Seen(
            view.index,
            mu,
            budget / view.cover,
            visible,
            scipy.sparse.csc_array(weighed * (budget / view.cover)),
            shares,
            None if cells is None else (int(cells[0]), int(cells[-1]) + 1),
        )
        found[view.index] = own if view.index not in found else found[view.index].joined(own)
    return list(found.values())


# --- witnesses of lower bounds ------------------------------------------------------------------


VECTOR_BITS = 44
"""Bits of the largest entry of U: its defect is about 2^-44 times the root of its size."""
DIFFERENCE_BITS = 44
LIGHTEST = 1e-15
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
    differences: scipy.sparse.csc_array
    weights: Array
    cells: tuple[int, int] | None = None

    def joined(self, other: Seen) -> Seen:
        """More differences of the same requirement."""
        scaled = other.weights * (self.budget / other.budget) ** 2
        both = scipy.sparse.csc_array(scipy.sparse.hstack([self.differences, other.differences]))
        return replace(self, differences=both, weights=np.concatenate([self.weights, scaled]), cells=None)


@dataclass(frozen=True, eq=False, slots=True)
class DualProblem:
    """The errors that a bound is about: rows (q, m) with weights (q,) over the outputs, target (m, n).

    `maps` (m, K): where noise is confined; `guide` (m, k): a root of a covariance near the best one; `owners` (n,): the
    party who holds each number, where each draws noise alone.
    """

    scope: str
    target: Array
    rows: scipy.sparse.csr_array
    weights: Array
    maps: Array | None
    guide: Array | None
    owners: NDArray[np.intp] | None = None


Vectors = Callable[
    [Sequence[Seen], list[scipy.sparse.csc_array], scipy.sparse.csc_array], tuple[str, Json, Json | None]
]
"""By what is charged, and columns of each and of all: what the rows of vectors stand for, these, and what they miss."""


def witness(scene: DualProblem, views: Sequence[Seen]) -> dict[str, Any]:
    """What the kernel reads as the proof of a lower bound."""
    return witness_of(views, partial(_vectors, scene), scene.target.shape[1] if scene.scope == "full" else 0)


def witness_of(views: Sequence[Seen], vectors: Vectors, listed: int = 0) -> dict[str, Any]:
    """The same of vectors that are given for differences; `listed`: inputs, where very many are replaced by a root."""
    charged = [view for view in views if np.any(view.weights > 0)]
    heaviest = max(float(np.max(view.weights * view.budget**-2, initial=0.0)) for view in charged)
    parts = [_columns(view, heaviest) for view in charged]
    moment = _moment(charged[0], listed) if listed and len(charged) == 1 else None
    stated = []
    for k, (view, part) in enumerate(zip(charged, parts, strict=True)):
        parts[k], columns = _rounded(part) if moment is None else _balanced(moment)
        mu = None if view.mu is None else str(view.mu)
        stated.append({"requirement": view.requirement, "mu": mu, "columns": columns})
    scope, found, slack = vectors(charged, parts, scipy.sparse.csc_array(scipy.sparse.hstack(parts)))
    return {"scope": scope, "differences": stated, "vectors": found, "slack": slack}


def _columns(view: Seen, heaviest: float) -> scipy.sparse.csc_array:
    """Differences times the roots of their weights, for one mu of all requirements; negligible ones are left out."""
    shares = view.weights * view.budget**-2 / heaviest
    kept = np.flatnonzero(shares > LIGHTEST)
    part = scipy.sparse.csc_array(view.differences[:, kept])
    return scipy.sparse.csc_array(part @ scipy.sparse.diags_array(np.sqrt(shares[kept])))


def _unit(values: Array, bits: int) -> tuple[Fraction, int]:
    exponent = frexp(float(np.max(np.abs(values), initial=1e-300)))[1] - bits
    return Fraction(2) ** exponent, exponent


def _rounded(part: scipy.sparse.csc_array) -> tuple[scipy.sparse.csc_array, dict[str, Any]]:
    """Columns in whole numbers, as doubles and as the rows of a matrix of a plan."""
    unit, exponent = _unit(part.data, DIFFERENCE_BITS)
    rows = scipy.sparse.csr_array(part.T)
    rows.sort_indices()
    whole = np.rint(np.ldexp(rows.data, -exponent)).astype(np.int64)
    rows.data = np.ldexp(whole.astype(np.float64), exponent)
    shape, size = tuple(map(int, rows.shape)), len(whole)
    at = np.repeat(np.arange(shape[0]), np.diff(rows.indptr)) * shape[1] + rows.indices
    values = Grid((size,), unit, tuple(whole.tolist()))
    return scipy.sparse.csc_array(rows.T), sparse_json(shape, at.tolist(), values)


def _moment(view: Seen, n: int) -> Array | None:
    """A root (n, r) of sum p d d' for very many differences of two cells each; None where they are few or others."""
    if view.cells is None or not view.visible.all() or len(view.weights) <= LISTED * n:
        return None
    start, stop = view.cells
    kept = scipy.sparse.csc_array(
        view.differences @ scipy.sparse.diags_array(np.sqrt(view.weights / view.weights.max()))
    )
    moment = np.asarray((kept @ kept.T).toarray())[start:stop, start:stop]
    size = stop - start
    moment += MARGIN * float(np.max(np.diagonal(moment))) * (np.eye(size) - 1 / size)
    values, vectors = np.linalg.eigh(moment)
    root = (vectors[:, 1:] * np.sqrt(np.maximum(values[1:], 0.0))) @ vectors[:, 1:].T
    found = np.zeros((n, size))
    found[start:stop] = root
    return found


def _balanced(moment: Array) -> tuple[scipy.sparse.csc_array, dict[str, Any]]:
    """The root likewise, each column of sum zero."""
    unit, exponent = _unit(moment, DIFFERENCE_BITS)
    whole = np.rint(np.ldexp(moment.T, -exponent)).astype(np.int64)
    whole[np.arange(len(whole)), np.argmax(np.abs(whole), axis=1)] -= whole.sum(axis=1)
    columns = scipy.sparse.csc_array(np.ldexp(whole.T.astype(np.float64), exponent))
    return columns, array(Grid(tuple(whole.shape), unit, tuple(whole.ravel().tolist())))


def _vectors(
    scene: DualProblem, views: Sequence[Seen], parts: list[scipy.sparse.csc_array], columns: scipy.sparse.csc_array
) -> tuple[str, dict[str, Any], dict[str, Any] | None]:
    """What the rows of the vectors stand for, these, and what they miss of being orthonormal."""
    if scene.scope == "messages":
        assert scene.guide is not None
        precisions = 1 / np.einsum("ik,ik->i", scene.guide, scene.guide)
        return scene.scope, _matrix_json(np.asarray((columns * precisions[:, None]).toarray())), None
    if scene.scope == "sites":
        return scene.scope, _matrix_json(np.hstack(_guided(scene.guide, scene.target, views, parts, None))), None
    roots = np.sqrt(scene.weights)
    errors = np.asarray(scipy.sparse.diags_array(roots) @ scene.rows @ scene.target)
    if scene.owners is not None:
        image = np.asarray((columns.T @ errors.T).T)
        whose = scene.owners[np.array([columns.indices[start] for start in columns.indptr[:-1]], dtype=np.intp)]
        found = np.zeros(image.shape)
        for party in np.unique(whose):
            left, _, right = np.linalg.svd(image[:, whose == party], full_matrices=False)
            found[:, whose == party] = left @ right
        return "parties", grid_json(found, VECTOR_BITS), None
    terms = [_terms(scene.rows, view.visible) for view in views]
    if not all(fine.all() for fine in terms):
        assert scene.guide is not None
        guide = np.asarray(scipy.sparse.diags_array(roots) @ scene.rows @ scene.guide)
        spread: Array = np.hstack(_guided(guide, errors, views, parts, terms))
        return of_spread(spread)
    if len(errors) <= TALL * columns.shape[1] + 16:
        left, _, right = np.linalg.svd(np.asarray((columns.T @ errors.T).T), full_matrices=False)
        return "errors", grid_json(left @ right, VECTOR_BITS), None
    small = shorter(errors)
    left, values, right = np.linalg.svd(np.asarray((columns.T @ small.T).T), full_matrices=False)
    kept = values > TINY * values[0]
    inner = np.asarray(columns @ (right[kept].T / values[kept])) @ right[kept]
    free = np.linalg.svd(right[kept], full_matrices=True)[2][int(kept.sum()) :].T
    return "inputs", _matrix_json(inner), _slack_json(free, np.ones(free.shape[1], dtype=bool))


def of_spread(spread: Array) -> tuple[str, Json, Json | None]:
    """Vectors (q, N) for error terms, no longer than one together, and what they miss of it."""
    gram = spread @ spread.T if spread.shape[0] <= spread.shape[1] else spread.T @ spread
    values, vectors = np.linalg.eigh(gram)
    largest = float(values[-1]) * (1 + 1e-13)
    missing = np.sqrt(np.maximum(1 - values / largest, 0.0))
    return "errors", grid_json(spread / np.sqrt(largest), VECTOR_BITS), _slack_json(vectors * missing, missing > 1e-12)


def _guided(
    guide: Array | None,
    target: Array,
    views: Sequence[Seen],
    parts: list[scipy.sparse.csc_array],
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


def _terms(rows: scipy.sparse.csr_array, visible: NDArray[np.bool_]) -> NDArray[np.bool_]:
    hidden = (abs(rows) @ (~visible).astype(np.float64)).reshape(-1)
    return np.asarray(hidden == 0)


def _matrix_json(values: Array) -> dict[str, Any]:
    unit, exponent = _unit(values, VECTOR_BITS)
    whole = np.rint(np.ldexp(values, -exponent)).astype(np.int64)
    return array(Grid(tuple(values.shape), unit, tuple(whole.ravel().tolist())))


def grid_json(values: Array, bits: int) -> dict[str, Any]:
    """Numbers on a grid of so many binary digits, as a plan writes them."""
    whole = np.rint(np.ldexp(values, bits)).astype(np.int64)
    return array(Grid(tuple(values.shape), Fraction(1, 2**bits), tuple(whole.ravel().tolist())))


def _slack_json(values: Array, kept: NDArray[np.bool_]) -> dict[str, Any] | None:
    return grid_json(values[:, kept], VECTOR_BITS) if kept.any() else None
