"""Where noise of pure epsilon may enter, what its scales cost there, and a bound on all mechanisms.

A place is somewhere in the graph that answers are computed from, or the best Gaussian strategy. The lower bound is that
of every unbiased mechanism of pure epsilon (Hammersley, Chapman & Robbins; notes/laplace.md): the Gaussian optimum at
mu^2 = 4 sinh(eps/2)^2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise, product
from math import inf
from time import perf_counter
from typing import Any

import numpy as np

from privspec.core.diagnostics import InternalError
from privspec.core.matrices import DyadicMatrix
from privspec.core.records import dataclass, replace
from privspec.core.rounding import SHORT_BITS, short_up
from privspec.families.gaussian.accuracy import ROOM as LIMIT_ROOM
from privspec.families.gaussian.dense import correlated_program, full_dual, solved
from privspec.families.gaussian.problem import Problem, ProtectedView, Verdict, site_map
from privspec.families.gaussian.release import (
    FINE_BITS,
    GRID_EXPONENT,
    Candidate,
    LinearRelease,
    Mechanism,
    in_whole_numbers,
    reached,
    rounded_reconstruction,
    rounded_strategy,
)
from privspec.families.gaussian.sizes import variance_limit
from privspec.kernel.core.numbers import ZERO
from privspec.kernel.core.reading import Refused
from privspec.kernel.laws.knorm import KNorm, KNormBlocks
from privspec.kernel.laws.laplace import Scaled
from privspec.kernel.laws.law import Law
from privspec.kernel.linear import SHORT
from privspec.problem.linear_affine import INPUTS, Affine
from privspec.problem.linear_interpreter import Cells, Interpreter
from privspec.solvers.bounds import TIED, triangular
from privspec.solvers.laplace import laplace_scales
from privspec.solvers.programs import (
    Array,
    Balls,
    Boxes,
    GaussianSolution,
    OutOfTimeError,
    Pairs,
    SolverError,
    Streams,
    Vectors,
)

ROOM = Fraction(1, 10**12)
"""Relative room below epsilon for the float error of whoever checks it."""
CLOSE = Fraction(1, 10**9)
"""Relative distance at which a short fraction stands for a scale."""
UNPRICED = 1e-12
"""Price of noise that no loss sees, as a share of the dearest."""
CARRIED = 1e-12
"""Share of each output below which a strategy row carries nothing but round-off."""
GUIDED_ROOM = 1e-6
"""Relative room below a bound that is shown with vectors taken from a rounded covariance."""
ROWS = 4096
"""Answers of all parties up to which each of them has noise of its own."""
PAIR_LIMIT = 200
"""Coordinates up to which all pairs are listed for Laplace costs."""
SIGNED_ROWS = 10
"""Rows up to which, of more, the farthest apart are looked for under all signs of the rows."""


@dataclass(frozen=True, eq=False, slots=True)
class Place:
    """Somewhere that noise of scales may enter: what is measured there, and how the answers use it."""

    law: type[Scaled]
    where: str
    strategy: Array
    outputs: Array
    rule: Verdict
    messages: bool = False
    """Whether it is the inputs themselves, which each party sends under `trust nobody`."""

    @property
    def name(self) -> str:
        return f"{self.law.title} {self.where}"

    @property
    def spread(self) -> float:
        """The variance of the noise of scale 1."""
        return float(self.law.variance(Fraction(1), ZERO))


@dataclass(frozen=True, eq=False, slots=True)
class Bound:
    """The Hammersley-Chapman-Robbins bound, with the Gaussian optimum that gives it."""

    solution: GaussianSolution
    budgets: tuple[float, ...]
    value: float
    """Loss that no unbiased mechanism of these pure epsilons is below."""
    among = "all unbiased mechanisms of the same pure epsilon"

    @classmethod
    def of(cls, problem: Problem, solution: GaussianSolution, budgets: tuple[float, ...]) -> Bound:
        """With room for the rounding of the guide, which a checker starts from."""
        room = 1.0 if problem.system.seen_whole else 1 - GUIDED_ROOM
        return cls(solution, budgets, problem.proved(solution.lower_bound) * room)


def bound_of_any(problem: Problem, epsilons: tuple[float, ...]) -> Bound | None:
    """The bound; None where its program is too large, or there is none for some line."""
    budgets = problem.unbiased_budgets(epsilons)
    if inf in budgets:
        return None
    try:
        solution = solved(problem, correlated_program(problem, budgets))
    except OutOfTimeError:
        raise
    except SolverError:
        return None
    return Bound.of(problem, solution, budgets)


def on_inputs(problem: Problem, law: type[Scaled]) -> Place | None:
    """The inputs themselves, where each of their numbers is one."""
    system, names = problem.system, [node.name for node in problem.model.numeric_inputs]
    if not system.lowered.layout.plain and not problem.local:
        return None
    rule = problem.verdict(law.words, set(names), curator=False)
    where = f"on {' and '.join(names)}"
    return Place(law, where, np.eye(system.inputs_count), system.target, rule, problem.local)


def places(problem: Problem, law: type[Scaled], bound: Bound | None) -> Iterator[Place]:
    """Those beside the inputs themselves."""
    system, model = problem.system, problem.model
    inputs, outputs = [node.name for node in model.numeric_inputs], [output.name for output in system.outputs]
    quiet = Interpreter(model, system.lowered.layout)
    if problem.local:
        yield from _of_parties(problem, law)
    for name in system.candidates:
        node = model.nodes[name]
        if name in inputs or (node.definition is None and name not in outputs):
            continue
        place = _node_place(problem, quiet, name)
        if place is not None:
            yield Place(law, f"on {name}", *place, problem.verdict(law.words, {name}))
    if len(outputs) > 1:
        rule = problem.verdict(law.words, set(outputs))
        yield Place(law, f"on {' and '.join(outputs)}", system.target, np.eye(len(system.target)), rule)
    if bound is None:
        return
    strategy, rebuilt = bound.solution.strategy, bound.solution.reconstruction
    if system.seen_whole or rebuilt is None:
        rebuilt = system.target @ np.linalg.pinv(strategy)
    errors, ends = np.asarray(system.error_map @ rebuilt), sorted({0, *bound.solution.blocks, len(strategy)})
    # answers that some observers alone see are turned among themselves
    parts = [(strategy[a:b], errors[:, a:b]) for a, b in pairwise(ends)]
    turns = ([triangular(own) for own, _ in parts], [_axes(*part) for part in parts])
    plain, axes = map(_blocks, turns)
    costs = [_expense(one @ strategy, errors @ one.T) for one in (plain, axes)]
    turn = axes if costs[1] < costs[0] * (1 - TIED) else plain
    measured = _levelled(turn @ strategy, rebuilt @ turn.T)
    yield Place(law, "on the best Gaussian strategy", *measured, problem.verdict(law.words, None))


def rule_of_vectors(problem: Problem) -> Verdict:
    """Whether K-norm noise is allowed, which is drawn together: at a curator, or in a report of one party's own."""
    inputs, measures = problem.model.inputs, [one.measure for one in problem.model.requirements]
    alone = len(inputs) == 1 and inputs[0].index is None and all(one.local for one in measures)
    return problem.verdict(KNorm.words, None, curator=not alone)


def _of_parties(problem: Problem, law: type[Scaled]) -> Iterator[Place]:
    """What each party alone adds to the answers: a row for each of the answers that it has a part in."""
    from privspec.families.gaussian.parties import numbers_by_party

    parties, target = numbers_by_party(problem), problem.system.target
    if parties is None or len(parties) * len(target) > ROWS:
        return
    rows = [(own, np.flatnonzero(target[:, own].any(axis=1))) for own in parties]
    strategy, outputs = np.zeros((sum(len(used) for _, used in rows), target.shape[1])), list[Array]()
    for own, used in rows:
        start = sum(map(len, outputs))
        strategy[np.ix_(np.arange(start, start + len(used)), own)] = target[np.ix_(used, own)]
        outputs.append(np.eye(len(target))[used])
    rule = problem.verdict(law.words, None, curator=False)
    yield Place(law, "by each party on answers of its own", strategy, np.vstack(outputs).T, rule)


def _blocks(parts: list[Array]) -> Array:
    """A matrix of square blocks along its diagonal."""
    ends = np.cumsum([0, *map(len, parts)])
    found = np.zeros((ends[-1], ends[-1]))
    for (a, b), own in zip(pairwise(ends), parts, strict=True):
        found[a:b, a:b] = own
    return found


def _expense(strategy: Array, errors: Array) -> float:
    """What Laplace noise on these rows costs that hides, for itself, the one input that moves them most."""
    shares = np.sum(errors**2, axis=0) ** (1 / 3)
    return float(np.max(shares @ np.abs(strategy) ** (2 / 3)))


def _axes(strategy: Array, errors: Array) -> Array:
    """The rotation (r, r) to the principal axes of the errors (q, r), triangular where some of these are alike."""
    _, sizes, turn = np.linalg.svd(errors)
    sizes = np.concatenate([sizes, np.zeros(len(turn) - len(sizes))])
    ends = [*(np.flatnonzero(sizes[:-1] - sizes[1:] > TIED * sizes[0]) + 1), len(turn)]
    for first, last in zip([0, *ends], ends, strict=False):
        turn[first:last] = triangular(turn[first:last] @ strategy) @ turn[first:last]
    return np.asarray(turn)


def _levelled(strategy: Array, outputs: Array) -> tuple[Array, Array]:
    """The same answers measured in rows of the same size, without rows that carry round-off only."""
    sizes = np.abs(strategy).max(axis=1)
    shares = sizes * np.abs(outputs)
    kept = (shares > CARRIED * shares.max(axis=1, keepdims=True)).any(axis=0)
    return strategy[kept] / sizes[kept, None], outputs[:, kept] * sizes[kept]


def _node_place(problem: Problem, quiet: Interpreter, name: str) -> tuple[Array, Array] | None:
    """The map to a node and from it to the outputs, if the outputs depend on the inputs through it alone."""
    system = problem.system
    site = site_map(problem.model, system, name)
    if name in {o.name for o in system.outputs}:
        if not system.seen_whole and len(system.outputs) > 1:
            return None
        inner = system.target if len(system.outputs) == 1 else None
    else:
        value = quiet.node(name, problem.model.nodes[name].span)
        moved = value.counts if isinstance(value, Cells) else value
        inner = moved.dense(INPUTS, system.inputs_count) if isinstance(moved, Affine) else None
    if inner is None:
        return None
    through = site.map @ inner
    if np.abs(through - system.target).max(initial=0.0) > 1e-9 * max(1.0, np.abs(system.target).max(initial=0.0)):
        return None
    return inner, site.map


def move_costs(
    problem: Problem, strategy: Array, used: Array, epsilons: tuple[Fraction, ...], at: Array | None = None
) -> Array | None:
    """|B d| / epsilon, one row a difference, over the strategy rows that are seen: by the view's outputs, or by all.

    Of many pairs those that cost most at inverse scales `at` (1 over each row's range without it), signs by signs.
    """
    rows = []
    for view, epsilon in zip(problem.system.views, epsilons, strict=True):
        seen = used if view.rows is None else used[view.rows]
        mask = seen.any(axis=0) | problem.local
        match view.differences:
            case Vectors(matrix):
                moved = np.abs(np.asarray(matrix.T @ strategy.T))
            case Pairs(coordinates, scale) if len(coordinates) <= PAIR_LIMIT:
                first, second = np.triu_indices(len(coordinates), 1)
                moved = scale * np.abs(strategy[:, coordinates[first]] - strategy[:, coordinates[second]]).T
            case Pairs(coordinates, scale) if len(strategy) <= SIGNED_ROWS:
                moved = scale * _widest(strategy[:, coordinates], at)
            case Boxes() if view.requirement.neighbours.group == 1:
                moved = np.array([np.abs(own).sum(axis=1) for own in view.differences.moved(strategy)])
            case Pairs() | Balls() | Boxes() | Streams():
                return None
        rows.append(moved * mask / float(epsilon))
    return np.vstack(rows)


def _widest(values: Array, at: Array | None) -> Array:
    """|v_i - v_j| (N, k) of columns of values (k, n): for all signs of the rows times `at`, the pair farthest apart."""
    if at is None:
        ranges = np.ptp(values, axis=1)
        at = np.divide(1, ranges, out=np.zeros_like(ranges), where=ranges > 0)
    signs = np.array(list(product((1.0, -1.0), repeat=len(values) - 1)))
    sums = np.column_stack([np.ones(len(signs)), signs]) * at @ values
    ends = np.unique(np.column_stack([sums.argmin(axis=1), sums.argmax(axis=1)]), axis=0)
    return np.abs(values[:, ends[:, 0]] - values[:, ends[:, 1]]).T


def prices(problem: Problem, place: Place) -> Array:
    """What squared scales cost (J, k): one row, or one for every error term of which the largest counts."""
    weights = place.spread * np.asarray(problem.system.error_map @ place.outputs) ** 2 * problem.senders(place.strategy)
    groups = problem.system.groups
    if not problem.system.worst:
        weights = weights.sum(axis=0, keepdims=True)
    elif groups is not None:
        weights = np.stack([weights[groups == group].sum(axis=0) for group in range(int(groups.max()) + 1)])
    return _priced(weights)


def _priced(weights: Array) -> Array:
    """The same weights (J, k) with a little on what none of them sees."""
    return np.maximum(weights, np.where(weights.max(axis=0) > 0, 0.0, UNPRICED * weights.max()))


def best_scales(problem: Problem, place: Place, costs: Array, gathered: Array | None = None) -> Array:
    """The scales of least loss that meet the accuracy lines; where none do, those that come nearest.

    Args: gathered (k, b), of b scales that numbers share: what their squares add to the squared scale of each.
    """
    system, deadline, weights = problem.system, problem.settings.deadline, prices(problem, place)
    weights = weights if gathered is None else weights @ gathered
    if system.limits:
        squares = [(np.asarray(limit.error_map @ place.outputs) ** 2).sum(axis=0) for limit in system.limits]
        errors = place.spread * np.array(squares) * problem.senders(place.strategy)
        errors = errors if gathered is None else errors @ gathered
        most = [one.bound if one.stated.of_squares else variance_limit(one.stated) for one in system.limits]
        bounds = np.array(most) * (1 - LIMIT_ROOM)
        found = laplace_scales(costs, weights, deadline=deadline, limits=(errors, bounds))
        if found is not None:
            return found.scales
        weights = _priced(errors / bounds[:, None])
    found = laplace_scales(costs, weights, deadline=deadline)
    if found is None:
        raise InternalError("scales without limits can always be larger")
    return found.scales


def offered(
    problem: Problem,
    release: LinearRelease,
    words: tuple[str, str, str],
    rule: Verdict,
    bound: Bound | None,
    started: float,
    sites: tuple[dict[str, Any], ...] = (),
    iterations: int = 0,
) -> Candidate:
    """A release as a candidate, with the bound on all mechanisms where one is known.

    Args: words, its name, what speaks for it, and the solver; started, when its search was; sites, where noise enters.
    """
    name, reason, solver = words
    root = release.noise_map(problem.system.target)
    dual = None if bound is None else full_dual(problem, bound.solution, bound.budgets)
    return Candidate(
        name,
        release.noise.family,
        problem.loss_of_output_noise(root),
        rule.reason or reason,
        rule.admissible,
        None if bound is None else bound.value,
        "" if bound is None else bound.among,
        Mechanism(release, sites, dual, solver, iterations, perf_counter() - started),
    )


def in_exact_numbers(
    place: Place, views: Sequence[ProtectedView], bits: int = FINE_BITS
) -> tuple[Place, DyadicMatrix, list[Fraction], bool]:
    """A place whose answers are measured in some sizes: its strategy, these, and whether they make it whole numbers."""
    whole = in_whole_numbers(place.strategy)
    if whole is not None and max(size.denominator for size in whole[1]) > SHORT:
        whole = None  # a plan could not say exactly which scale that is where the noise enters
    strategy, sizes = whole or (rounded_strategy(place.strategy, views, bits), [Fraction(1)] * len(place.strategy))
    if not place.messages:
        place = replace(place, outputs=place.outputs * np.array(list(map(float, sizes))))
    return place, strategy, sizes, whole is not None


def released(
    problem: Problem,
    place: Place,
    strategy: DyadicMatrix,
    noise: Law,
    grids: tuple[str, str],
    epsilons: tuple[Fraction, ...],
    *,
    whole: bool = True,
) -> LinearRelease | None:
    """Noise at a place, raised until it hides what moves; None where nothing is known of how much it hides.

    Args: grids, those of the noisy answers and of the outputs; whole, as of `fitted`.
    """
    release = LinearRelease(
        strategy,
        noise,
        # what each party sends is seen itself: the noisy inputs, from which outputs are computed
        None if place.messages else rounded_reconstruction(place.outputs),
        rounded_reconstruction(place.strategy) if place.messages else None,
        tuple(strategy.shape[:1]) * len(problem.system.views)
        if place.messages
        else view_rows(problem, place.outputs != 0),
        *grids,
        senders=problem.senders(strategy.to_float()),
    )
    try:
        return fitted(release, reached(problem, release), epsilons, whole=whole)
    except Refused:
        return None


def lattice(scale: float) -> str:
    """A power of two at least 2^GRID_EXPONENT times finer than the least noise."""
    return f"2^{min(int(np.floor(np.log2(scale))), 0) - GRID_EXPONENT}"


def on_points(step: Fraction) -> str:
    """A lattice of which all answers are points."""
    return "2^0" if step == 1 else str(step)


def fraction_up(value: float) -> Fraction:
    """The scale as a fraction of few bits, not below (but for float error, which `fitted` makes good)."""
    exact = Fraction(value).limit_denominator(1000)
    return exact if abs(exact - Fraction(value)) < Fraction(value) * CLOSE else _short_up(Fraction(value))


def fitted(
    release: LinearRelease, amounts: list[Fraction], epsilons: tuple[Fraction, ...], *, whole: bool = False
) -> LinearRelease:
    """Raise every scale by one exact factor so that each view's epsilon is met exactly.

    Args: amounts, what each view reaches; whole, whether answers are points of the lattice, which a checker needs no
        room for.
    """
    room = 1 if whole else 1 - ROOM
    excess = max(amount / (epsilon * room) for amount, epsilon in zip(amounts, epsilons, strict=True))
    noise = release.noise
    scaled: Law
    if isinstance(noise, Scaled):
        factor = excess if abs(excess - 1) < Fraction(1, 10**6) or excess > 1 else Fraction(1)
        larger = {b: _short_up(b * factor) for b in set(noise.scales)}
        scaled = replace(noise, scales=tuple(map(larger.__getitem__, noise.scales)))
    elif isinstance(noise, KNorm):
        scaled = KNorm(_short_up(noise.scale * excess))
    elif isinstance(noise, KNormBlocks):
        scaled = KNormBlocks(
            tuple(tuple(tuple(_short_up(b * excess) for b in part) for part in own) for own in noise.blocks)
        )
    else:
        scaled = noise.times(_short_up(excess))
    return replace(release, noise=scaled)


def _short_up(value: Fraction) -> Fraction:
    """Itself when it is short, else rounded up."""
    return value if value.denominator < 2**SHORT_BITS else short_up(value)


def view_rows(problem: Problem, used: Array) -> tuple[int, ...]:
    """How many of the first rows each view sees, of those that outputs have a part in."""
    rows = []
    for view in problem.system.views:
        seen = used if view.rows is None else used[view.rows]
        touched = np.flatnonzero(seen.any(axis=0))
        rows.append(int(touched[-1]) + 1 if len(touched) else 0)
    return tuple(rows)
