"""Noise for pure epsilon: of scales at a place of the graph, and K-norm mechanisms.

Each offers the least loss of its kind at one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from privspec.core.records import replace
from privspec.core.rounding import LISTED, graded
from privspec.families.gaussian.places import (
    Bound,
    Place,
    best_scales,
    bound_of_any,
    fitted,
    fraction_up,
    in_exact_numbers,
    lattice,
    move_costs,
    offered,
    on_inputs,
    on_points,
    places,
    prices,
    released,
    rule_of_vectors,
)
from privspec.families.gaussian.problem import INVERSE, STEPS, WEIGHTS, Problem
from privspec.families.gaussian.release import (
    SLACK,
    Candidate,
    Decide,
    common_step,
    exact_gaussian,
    length_up,
    output_grid,
)
from privspec.families.gaussian.shaped import hulled, shaped
from privspec.families.gaussian.sizes import sized
from privspec.kernel.laws.knorm import KNorm
from privspec.kernel.laws.laplace import Laplace, Scaled
from privspec.kernel.laws.law import laws
from privspec.problem.refusals import LARGEST_EPSILON
from privspec.solvers.programs import Array, Vectors

if TYPE_CHECKING:
    from privspec.families.decision import Decision
    from privspec.families.program import Form, Stated, Values

LEAST = 1e-9
"""Share of the largest inverse scale that the least one counts as."""
QUIET = 1e-4
"""Standard deviation of noise that hides nothing, as a share of the noise that does; by what it costs."""
CUTS = 30
"""Times that they are looked for."""
PLACES = 600
"""Numbers of the inputs up to which noise on each of them is always compared."""
ALONE = 64
"""Inputs and outputs together up to which noise of classes of parties is compared with what is best at a curator."""
TIED = 1e-6
"""Share of a loss by which a lower one is no better."""
TINY = 1e-3
"""Scales of noise in whole numbers below which there is next to none."""
FINEST = 2.0**40
"""Steps of a lattice in a scale up to which answers that are points of it are not rounded to another."""


def pure_candidates(problem: Problem) -> Iterator[Candidate]:
    """Noise of scales at every place of the graph and on the best Gaussian strategy, and K-norm noise there."""
    epsilons = [epsilon for epsilon in problem.epsilons if epsilon is not None]
    if len(epsilons) < len(problem.epsilons) or max(epsilons, default=0) > LARGEST_EPSILON or problem.system.normal:
        return
    plain = problem.of_squares(problem.system.lowered.errors.weights**2) if problem.sizes else problem
    size = problem.system.inputs_count + problem.system.outputs_count
    # of many parties who draw alone, what holds at a curator says next to nothing
    many = problem.local and not problem.system.lowered.layout.plain
    bound = None if many and size > ALONE else bound_of_any(plain, tuple(float(e) for e in epsilons))
    least = inf
    for one in _of_any_number(problem, epsilons, bound):
        least = min(least, one.loss)
        yield one
    yield from _of_hulls(problem, tuple(epsilons), bound, least)


def _of_any_number(problem: Problem, epsilons: list[Fraction], bound: Bound | None) -> Iterator[Candidate]:
    """Noise of scales, and of norms of simple shapes."""
    for law in laws():
        if not issubclass(law, Scaled):
            continue
        build = partial(of_scales, epsilons=tuple(epsilons), bound=bound)
        found = [sized(problem, partial(build, place=place)) for place in places(problem, law, bound)]
        best = min((one.loss for one in found if one is not None and one.admissible), default=inf)
        if _least_on_inputs(problem, epsilons) <= best and (inputs := on_inputs(problem, law)) is not None:
            found.insert(0, sized(problem, partial(build, place=inputs)))
        yield from (one for one in found if one is not None)
    yield from _of_blocks(problem, tuple(epsilons), bound)
    knorm = None if bound is None else sized(problem, lambda own: _knorm(own, tuple(epsilons), bound))
    if knorm is not None:
        yield knorm


def _of_blocks(problem: Problem, epsilons: tuple[Fraction, ...], bound: Bound | None) -> Iterator[Candidate]:
    """K-norm noise of blocks of answers, at the places of Laplace noise."""
    inputs = None if problem.local else on_inputs(problem, Laplace)
    every = (*(() if inputs is None else (inputs,)), *places(problem, Laplace, bound))
    found = (sized(problem, partial(shaped, place=place, epsilons=epsilons, bound=bound)) for place in every)
    yield from sorted((one for one in found if one is not None), key=lambda one: graded(one.loss, LISTED))[:1]


def _of_hulls(
    problem: Problem, epsilons: tuple[Fraction, ...], bound: Bound | None, least: float
) -> Iterator[Candidate]:
    """K-norm noise of the hull of what moves, where it is below the least loss of others."""
    build = partial(hulled, epsilons=epsilons, bound=bound)
    found = sized(problem, partial(build, whole=True)) or sized(problem, partial(build, whole=False))
    if found is not None and found.loss < least * (1 - TIED):
        yield found


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


def of_scales(
    problem: Problem,
    place: Place,
    epsilons: tuple[Fraction, ...],
    bound: Bound | None,
    given: Array | None = None,
) -> Candidate | None:
    """Noise of the best scales at a place, or of those `given`, where these are too small raised by one factor."""
    started, law, anew = perf_counter(), place.law, partial(of_scales, problem, place, epsilons, bound)
    system, points = problem.system, problem.system.views[0].points
    place, dyadic, sizes, plain = in_exact_numbers(place, system.views)
    strategy = dyadic.to_float()
    used = place.outputs != 0
    costs = move_costs(problem, strategy, used, epsilons)
    if costs is None or not costs.any():
        return None
    scales = best_scales(problem, place, costs) if given is None else given
    for _ in range(CUTS if given is None else 0):
        inverse = np.divide(1, scales, out=np.zeros_like(scales), where=scales > 0)
        more = move_costs(problem, strategy, used, epsilons, inverse)
        if more is None or (more @ inverse).max() <= 1 + SLACK:
            break
        costs = np.vstack([costs, more])
        scales = best_scales(problem, place, costs)
    # a row that never moves keeps nothing secret; its noise is only there because every scale is positive
    priced = prices(problem, place).max(axis=0)
    quiet = QUIET * np.sqrt(float(priced @ scales**2) / (len(scales) * priced))
    scales = np.where(scales > 0, scales, quiet)
    step = common_step(dyadic, points) if plain and law.in_steps else None
    whole = step is not None and step * FINEST >= scales.min()
    anywhere = set(law.words) - set(law.in_steps)
    if not whole and problem.family_allowed(*law.in_steps) and not problem.family_allowed(*anywhere):
        return None  # whole steps from one answer to another are asked for
    integer = whole and step == 1 and np.array_equal(np.rint(place.outputs), place.outputs)
    exact = {b: fraction_up(b) for b in set(scales.tolist())}
    grids = (
        on_points(step) if whole and step is not None else lattice(float(scales.min())),
        "2^0" if integer else output_grid(np.abs(place.outputs) @ scales),
    )
    noisy = law(tuple(map(exact.__getitem__, scales.tolist())))
    release = released(problem, place, dyadic, noisy, grids, epsilons, whole=whole)
    if release is None:
        return None
    noise = release.noise
    assert isinstance(noise, Scaled)
    said = {"scale": [float(b * size) for b, size in zip(noise.scales, sizes, strict=True)]}
    words = (place.name, f"{law.title} of the best scales at this place", f"{law.family} scales, interior point")
    found = offered(problem, release, words, place.rule, bound, started, (said,))
    return replace(found, program=partial(_form, problem, place, strategy, costs, step if whole else None, anew))


def _form(
    problem: Problem,
    place: Place,
    strategy: Array,
    costs: Array,
    step: Fraction | None,
    anew: Callable[..., Candidate | None],
    decide: Decide,
) -> Form | str:
    """The program over the scales of Laplace noise at a place; or why there is none.

    Args: strategy (r, n), of which the rows that some output uses get the noise; costs, all changes that its scales
        were found for; step, of the lattice of the noise where that is coarse; anew, the candidate at other scales.
    """
    alone = [replace(problem, system=replace(problem.system, views=(view,))) for view in problem.system.views]
    moved = [move_costs(own, strategy, place.outputs != 0, (Fraction(1),)) for own in alone]
    # how far rows move, of each view (N, k); what variances weigh in each of the losses of which the largest counts
    changes, weights = [one for one in moved if one is not None], prices(problem, place) / place.spread
    if sum(map(len, changes)) != len(costs):
        return "the changes that matter are looked for as the scales are found, and are not listed"
    if place.law is not Laplace:
        return "its noise is of a law whose variance is no convex function that a solver knows"
    if problem.sizes or problem.system.limits:
        return "sizes of errors, or lines of accuracy, are about Laplace noise, and are not stated as constraints"
    # few look at the program itself
    from privspec.families.gaussian.stated import amounts_of, labels_of, same_but_for_amounts
    from privspec.families.program import Form, Part

    labels, k = labels_of(problem), weights.shape[1]
    amounts = amounts_of(problem, "epsilon", lambda measure: measure.pure_epsilon, {WEIGHTS: weights})
    parts = [
        Part(label, "sum over j of m[j] u[j] <= epsilon, m[j] how far a unit moves number j", len(own))
        for label, own in zip(labels, changes, strict=True)
    ]
    variance = "2 / u[j]^2"
    if step is not None:
        variance = f"{step}^2 2 q / (1 - q)^2 with q = e^(-{step} u[j]), of noise in steps of {step}"
        parts.append(
            Part(STEPS, "e^(-y[j]) + e^(-a[j]) <= 1, a steps in a scale: v[j] is 2 e^(2 y[j] - a[j]) steps squared", k)
        )
    each = f"sum over j = 1..{k} of w[j] v[j]"
    if len(weights) > 1:
        parts.append(Part("loss", f"{each} <= t, for each error", len(weights)))

    def state() -> Stated:
        from privspec.families.gaussian.reference import scales_stated

        return scales_stated(dict(zip(labels, changes, strict=True)), amounts(problem.model), weights, step)

    def settle(values: Values) -> Decision:
        scales = 1 / np.maximum(values[INVERSE], LEAST * np.max(values[INVERSE], initial=LEAST))
        candidate = anew(given=scales)
        assert candidate is not None
        return decide(candidate)

    return Form(
        problem.model,
        (f"{INVERSE} ({k}) > 0: one over the scale of the noise {place.where}, for each number there",),
        each if len(weights) == 1 else "t",
        tuple(parts),
        (f"v[j]: the variance of the noise on number j, {variance}", "w: what the loss makes of it"),
        amounts,
        partial(same_but_for_amounts, problem),
        state,
        settle,
    )


def _knorm(problem: Problem, epsilons: tuple[Fraction, ...], bound: Bound) -> Candidate | None:
    """The l2 K-norm mechanism on the best Gaussian strategy."""
    started = perf_counter()
    system, solution = problem.system, bound.solution
    k = solution.strategy.shape[0]
    if k < 2 or not system.seen_whole:  # of one number it is Laplace noise
        return None
    rule = rule_of_vectors(problem)
    inverse = np.asarray(np.linalg.pinv(solution.strategy), dtype=np.float64)
    wide = problem.through_inputs
    outputs, inputs = (None, inverse) if wide else (system.target @ inverse, None)
    release = exact_gaussian(solution.strategy, outputs, inputs, (k,) * len(system.views), system.views)
    release = replace(release, noise=KNorm(Fraction(1)))
    amounts = [length_up(release, view, k) for view in system.views]
    release = fitted(release, amounts, epsilons)
    root = release.output_map(system.target) * np.sqrt(release.row_variances())
    release = replace(release, output_grid=output_grid(np.linalg.norm(root, axis=1)))
    words = ("K-norm noise (l2) on the best Gaussian strategy", "K-norm noise of the l2 ball", solution.method)
    return offered(problem, release, words, rule, bound, started, iterations=solution.iterations)
