"""Noise for pure epsilon: of scales at a place of the graph, and the K-norm mechanism of the l2 ball.

Each offers the least loss of its kind at one place; the lower bound is that of every unbiased mechanism of
pure epsilon (Hammersley, Chapman & Robbins; notes/laplace.md): the Gaussian optimum at mu^2 = 4 sinh(eps/2)^2.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from math import inf

import numpy as np

from privspec.core.diagnostics import InternalError
from privspec.core.records import dataclass, replace
from privspec.core.rounding import SHORT_BITS, short_up
from privspec.families.gaussian.accuracy import ROOM as LIMIT_ROOM
from privspec.families.gaussian.accuracy import unbiased_budgets
from privspec.families.gaussian.dense import correlated_program, full_dual, solved
from privspec.families.gaussian.problem import Problem, Verdict, site_map
from privspec.families.gaussian.release import (
    FINE_BITS,
    GRID_EXPONENT,
    SLACK,
    Candidate,
    LinearRelease,
    Mechanism,
    common_step,
    in_whole_numbers,
    length_up,
    output_grid,
    reached,
    rounded_reconstruction,
    rounded_strategy,
)
from privspec.families.gaussian.sizes import sized, variance_limit
from privspec.kernel.core.numbers import ZERO
from privspec.kernel.core.reading import Refused
from privspec.kernel.laws.knorm import KNorm
from privspec.kernel.laws.laplace import Scaled
from privspec.kernel.laws.law import Law, laws
from privspec.kernel.linear import SHORT
from privspec.problem.linear_affine import INPUTS, Affine
from privspec.problem.linear_interpreter import Cells, Interpreter
from privspec.problem.refusals import LARGEST_EPSILON
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
QUIET = 1e-4
"""Standard deviation of noise that hides nothing, as a share of the noise that does; by what it costs."""
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
CUTS = 30
"""Times that they are looked for."""
PLACES = 600
"""Numbers of the inputs up to which noise on each of them is always compared."""
ALONE = 64
"""Inputs and outputs together up to which noise of classes of parties is compared with what is best at a curator."""
TINY = 1e-3
"""Scales of noise in whole numbers below which there is next to none."""
FINEST = 2.0**40
"""Steps of a lattice in a scale up to which answers that are points of it are not rounded to another."""


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


def pure_candidates(problem: Problem) -> Iterator[Candidate]:
    """Noise of scales at every place of the graph and on the best Gaussian strategy, and K-norm noise there."""
    epsilons = [epsilon for epsilon in problem.epsilons if epsilon is not None]
    if len(epsilons) < len(problem.epsilons) or max(epsilons, default=0) > LARGEST_EPSILON or problem.system.normal:
        return
    plain = problem.of_squares(problem.system.lowered.errors.weights**2) if problem.sizes else problem
    size = problem.system.inputs_count + problem.system.outputs_count
    # of many parties who draw alone, what holds at a curator says next to nothing
    many = problem.local and not problem.system.lowered.layout.plain
    bound = None if many and size > ALONE else _bound(plain, tuple(float(e) for e in epsilons))
    for law in laws():
        if not issubclass(law, Scaled):
            continue
        build = partial(_of_scales, epsilons=tuple(epsilons), bound=bound)
        found = [sized(problem, partial(build, place=place)) for place in _places(problem, law, bound)]
        best = min((one.loss for one in found if one is not None and one.admissible), default=inf)
        if _least_on_inputs(problem, epsilons) <= best and (inputs := _inputs(problem, law)) is not None:
            found.insert(0, sized(problem, partial(build, place=inputs)))
        yield from (one for one in found if one is not None)
    knorm = None if bound is None else sized(problem, lambda own: _knorm(own, tuple(epsilons), bound))
    if knorm is not None:
        yield knorm


@dataclass(frozen=True, eq=False, slots=True)
class Bound:
    """The Hammersley-Chapman-Robbins bound, with the Gaussian optimum that gives it."""

    solution: GaussianSolution
    budgets: tuple[float, ...]
    value: float
    """Loss that no unbiased mechanism of these pure epsilons is below."""

    @classmethod
    def of(cls, problem: Problem, solution: GaussianSolution, budgets: tuple[float, ...]) -> Bound:
        """With room for the rounding of the guide, which a checker starts from."""
        room = 1.0 if problem.system.seen_whole else 1 - GUIDED_ROOM
        return cls(solution, budgets, problem.proved(solution.lower_bound) * room)


def _bound(problem: Problem, epsilons: tuple[float, ...]) -> Bound | None:
    """The bound; None where its program is too large."""
    budgets = unbiased_budgets(epsilons)
    try:
        solution = solved(problem, correlated_program(problem, budgets))
    except OutOfTimeError:
        raise
    except SolverError:
        return None
    return Bound.of(problem, solution, budgets)


def _inputs(problem: Problem, law: type[Scaled]) -> Place | None:
    """The inputs themselves, where each of their numbers is one."""
    system, names = problem.system, [node.name for node in problem.model.inputs]
    if not system.lowered.layout.plain and not problem.local:
        return None
    rule = problem.verdict(law.words, set(names), curator=False)
    where = f"on {' and '.join(names)}"
    return Place(law, where, np.eye(system.inputs_count), system.target, rule, problem.local)


def _least_on_inputs(problem: Problem, epsilons: list[Fraction]) -> float:
    """A loss that noise on many inputs is not below: each hides what a unit changes there; 0 of few inputs.

    Noise of scales has no less variance than Laplace noise of the same in whole numbers.
    """
    views = problem.system.views
    sets = [view.differences for view in views if isinstance(view.differences, Vectors) and view.rows is None]
    if problem.system.inputs_count <= PLACES or problem.local or problem.sizes or len(sets) < len(views):
        return 0.0
    reach = [abs(one.matrix).max(axis=1).toarray() / float(e) for one, e in zip(sets, epsilons, strict=True)]
    scales = np.maximum(np.max(reach, axis=0).ravel(), TINY)
    # of whole numbers, which is less than of others
    return problem.loss_of_input_noise(1 / (2 * np.sinh(0.5 / scales) ** 2))


def _places(problem: Problem, law: type[Scaled], bound: Bound | None) -> Iterator[Place]:
    """Those beside the inputs themselves."""
    system, model = problem.system, problem.model
    inputs, outputs = [node.name for node in model.inputs], [output.name for output in system.outputs]
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


def _costs(
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


def _prices(problem: Problem, place: Place) -> Array:
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


def _scales(problem: Problem, place: Place, costs: Array) -> Array:
    """The scales of least loss that meet the accuracy lines; where none do, those that come nearest."""
    system, deadline, weights = problem.system, problem.settings.deadline, _prices(problem, place)
    if system.limits:
        squares = [(np.asarray(limit.error_map @ place.outputs) ** 2).sum(axis=0) for limit in system.limits]
        errors = place.spread * np.array(squares) * problem.senders(place.strategy)
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


def _of_scales(problem: Problem, place: Place, epsilons: tuple[Fraction, ...], bound: Bound | None) -> Candidate | None:
    started, law = time.perf_counter(), place.law
    system, points = problem.system, problem.system.views[0].points
    plain = in_whole_numbers(place.strategy)
    if plain is not None and max(size.denominator for size in plain[1]) > SHORT:
        plain = None  # a plan could not say exactly which scale that is where the noise enters
    alike = [Fraction(1)] * len(place.strategy)
    dyadic, sizes = plain or (rounded_strategy(place.strategy, system.views, FINE_BITS), alike)
    if not place.messages:
        place = replace(place, outputs=place.outputs * np.array(list(map(float, sizes))))
    strategy = dyadic.to_float()
    used = place.outputs != 0
    costs = _costs(problem, strategy, used, epsilons)
    if costs is None or not costs.any():
        return None
    scales = _scales(problem, place, costs)
    for _ in range(CUTS):
        inverse = np.divide(1, scales, out=np.zeros_like(scales), where=scales > 0)
        more = _costs(problem, strategy, used, epsilons, inverse)
        if more is None or (more @ inverse).max() <= 1 + SLACK:
            break
        costs = np.vstack([costs, more])
        scales = _scales(problem, place, costs)
    # a row that never moves keeps nothing secret; its noise is only there because every scale is positive
    priced = _prices(problem, place).max(axis=0)
    quiet = QUIET * np.sqrt(float(priced @ scales**2) / (len(scales) * priced))
    scales = np.where(scales > 0, scales, quiet)
    step = common_step(dyadic, points) if plain is not None and law.in_steps else None
    whole = step is not None and step * FINEST >= scales.min()
    anywhere = set(law.words) - set(law.in_steps)
    if not whole and problem.family_allowed(*law.in_steps) and not problem.family_allowed(*anywhere):
        return None  # whole steps from one answer to another are asked for
    integer = whole and step == 1 and np.array_equal(np.rint(place.outputs), place.outputs)
    exact = {b: _fraction_up(b) for b in set(scales.tolist())}
    release = LinearRelease(
        dyadic,
        law(tuple(map(exact.__getitem__, scales.tolist()))),
        # what each party sends is seen itself: the noisy inputs, from which outputs are computed
        None if place.messages else rounded_reconstruction(place.outputs),
        rounded_reconstruction(place.strategy) if place.messages else None,
        (len(strategy),) * len(system.views) if place.messages else _view_rows(problem, used),
        on_points(step) if whole and step is not None else lattice(float(scales.min())),
        "2^0" if integer else output_grid(np.abs(place.outputs) @ scales),
        senders=problem.senders(strategy),
    )
    try:
        release = _fit(release, reached(problem, release), epsilons, whole=whole)
    except Refused:
        return None
    root = release.output_map(system.target) * np.sqrt(release.row_variances())
    noise = release.noise
    assert isinstance(noise, Scaled)
    loss = problem.loss_of_output_noise(root)
    return Candidate(
        place.name,
        law.family,
        loss,
        place.rule.reason or f"{law.title} of the best scales at this place",
        place.rule.admissible,
        None if bound is None else bound.value,
        "" if bound is None else "all unbiased mechanisms of the same pure epsilon",
        Mechanism(
            release,
            ({"scale": [float(b * size) for b, size in zip(noise.scales, sizes, strict=True)]},),
            None if bound is None else full_dual(problem, bound.solution, bound.budgets),
            f"{law.family} scales, interior point",
            0,
            time.perf_counter() - started,
        ),
    )


def on_points(step: Fraction) -> str:
    """A lattice of which all answers are points."""
    return "2^0" if step == 1 else str(step)


def lattice(scale: float) -> str:
    """A power of two at least 2^GRID_EXPONENT times finer than the least noise."""
    return f"2^{min(int(np.floor(np.log2(scale))), 0) - GRID_EXPONENT}"


def _fraction_up(value: float) -> Fraction:
    """The scale as a fraction of few bits, not below (but for float error, which `_fit` makes good)."""
    exact = Fraction(value).limit_denominator(1000)
    return exact if abs(exact - Fraction(value)) < Fraction(value) * CLOSE else _short_up(Fraction(value))


def _view_rows(problem: Problem, used: Array) -> tuple[int, ...]:
    rows = []
    for view in problem.system.views:
        seen = used if view.rows is None else used[view.rows]
        touched = np.flatnonzero(seen.any(axis=0))
        rows.append(int(touched[-1]) + 1 if len(touched) else 0)
    return tuple(rows)


def _fit(
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
    else:
        raise InternalError("only pure noise is fitted this way")
    return replace(release, noise=scaled)


def _short_up(value: Fraction) -> Fraction:
    """Itself when it is short, else rounded up."""
    return value if value.denominator < 2**SHORT_BITS else short_up(value)


def _knorm(problem: Problem, epsilons: tuple[Fraction, ...], bound: Bound) -> Candidate | None:
    """The l2 K-norm mechanism on the best Gaussian strategy."""
    started = time.perf_counter()
    system, solution = problem.system, bound.solution
    k = solution.strategy.shape[0]
    if k < 2 or not system.seen_whole:  # of one number it is Laplace noise
        return None
    # a report of one party's own: its messages are drawn together
    inputs, measures = problem.model.inputs, [one.measure for one in problem.model.requirements]
    alone = len(inputs) == 1 and inputs[0].index is None and all(one.local for one in measures)
    rule = problem.verdict(("knorm",), None, curator=not alone)
    inverse = np.asarray(np.linalg.pinv(solution.strategy), dtype=np.float64)
    wide = problem.through_inputs
    release = LinearRelease(
        rounded_strategy(solution.strategy * (1 - SLACK), system.views),
        KNorm(Fraction(1)),
        None if wide else rounded_reconstruction(system.target @ inverse / (1 - SLACK)),
        rounded_reconstruction(inverse / (1 - SLACK)) if wide else None,
        tuple(k for _ in system.views),
        f"2^-{GRID_EXPONENT}",
    )
    amounts = [length_up(release, view, k) for view in system.views]
    release = _fit(release, amounts, epsilons)
    root = release.output_map(system.target) * np.sqrt(release.row_variances())
    release = replace(release, output_grid=output_grid(np.linalg.norm(root, axis=1)))
    return Candidate(
        "K-norm noise (l2) on the best Gaussian strategy",
        "mixed",
        problem.loss_of_output_noise(root),
        rule.reason or "K-norm noise of the l2 ball",
        rule.admissible,
        bound.value,
        "all unbiased mechanisms of the same pure epsilon",
        Mechanism(
            release,
            (),
            full_dual(problem, bound.solution, bound.budgets),
            solution.method,
            solution.iterations,
            time.perf_counter() - started,
        ),
    )
