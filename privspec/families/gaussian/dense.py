"""Gaussian noise for linear systems: where to put it (Ramon & Basu 2020, section 3.2; notes/placement.md).

Beside the optimum stand the ways that people use, under the same neighbour relation: noise on each input, equal noise
on each answer, and both as the paper calibrates them (its own formulas mix two relations; MATH.md section 8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from privspec.core.diagnostics import InternalError
from privspec.core.matrices import DyadicMatrix
from privspec.families.family import Settings
from privspec.families.gaussian.problem import FORCED, LOCAL, Problem, Verdict, site_map, site_maps
from privspec.families.gaussian.release import (
    FINE_BITS,
    UNEVEN,
    Candidate,
    Dual,
    LinearRelease,
    Mechanism,
    exact_gaussian,
    length_up,
    output_grid,
    rounded_reconstruction,
)
from privspec.families.gaussian.sizes import sized
from privspec.kernel.changes import CROWD
from privspec.kernel.measures import APPROXIMATE
from privspec.model.reports import listing
from privspec.solvers.bounds import chain
from privspec.solvers.gaussian import solve_gaussian
from privspec.solvers.programs import (
    Array,
    Balls,
    Boxes,
    Differences,
    GaussianProgram,
    GaussianSolution,
    NotSpecialError,
    OutOfTimeError,
    Pairs,
    Progress,
    ReferenceFailedError,
    Site,
    SolverError,
    Streams,
    Units,
    Unprotectable,
    Vectors,
    largest_norm,
    shorter,
)
from privspec.solvers.several import several_at_once

if TYPE_CHECKING:
    from privspec.families.gaussian.release import Decide
    from privspec.families.program import Form

PAPER = ", the paper's calibration"
"""What follows the name of a design whose noise is that of the paper's formula."""
BANDED_SIZE = 256
"""Vectors in a row up to which a strategy in a band is sought beside the best one."""
ALTERNATIVE_SIZE = 192
"""Inputs and outputs together up to which an alternative that needs a solve of its own is computed."""


def gaussian_budgets(problem: Problem) -> tuple[float, ...] | None:
    """The budgets as doubles, rounded down; None if some requirement allows no Gaussian noise."""
    floats = []
    for budget in problem.budgets:
        if budget is None:
            return None
        value = float(budget)
        floats.append(value if value <= budget else float(np.nextafter(value, 0.0)))
    return tuple(floats)


def gaussian_candidates(problem: Problem) -> Iterator[Candidate | Unprotectable]:
    """The best Gaussian release that the options allow, then those it is compared with."""
    budgets = gaussian_budgets(problem)
    if budgets is None:
        return
    system, forced, more = problem.system, problem.model.noise_at, problem.settings.alternatives
    rule = problem.family_verdict("gaussian")
    small = more and system.outputs_count + system.inputs_count <= ALTERNATIVE_SIZE
    small = small and system.lowered.layout.dimension == 1
    if problem.local:
        pass  # what parties draw alone is no noise at a curator: see `local`
    elif forced is not None:
        maps = site_maps(problem.model, system, tuple(forced))
        found = sized(problem, lambda own: _restricted(own, budgets, maps, rule))
        yield found
        if small:
            # what correlated noise would reach if `noise at` allowed it; nothing when that takes too long
            with suppress(SolverError):
                best = sized(problem, lambda own: _correlated(own, budgets, Verdict(False, FORCED)))
                yield Candidate(best.name, best.family, best.loss, best.reason, False)
    else:
        try:
            yield sized(problem, lambda own: _correlated(own, budgets, rule))
        except NotSpecialError:
            # too large for any covariance: noise at places by itself may still be found
            small, apart = False, _apart(problem, budgets, rule)
            if not isinstance(apart, Candidate):
                raise
            # its bound is about noise at places that the spec does not ask for
            mechanism = None if apart.mechanism is None else replace(apart.mechanism, dual=None)
            yield replace(apart, lower_bound=None, among="", mechanism=mechanism)
        if small:
            yield from _paper_placement(problem, budgets, rule)
    if more:
        yield from classics(problem, budgets, rule)


def offered(
    problem: Problem,
    rule: Verdict,
    solution: GaussianSolution,
    release: LinearRelease,
    dual: Dual,
    words: tuple[str, str, str],
    sites: Iterable[dict[str, Any]] = (),
    bound: float | None = None,
) -> Candidate:
    """A solution as a candidate.

    Args: words, its name, what speaks for it, and the mechanisms that its bound is about; sites, where
        independent noise enters, with its variances; bound, a lower bound, by default the solution's own.
    """
    name, reason, among = words
    system, diagonal = problem.system, _diagonal(problem.system.error_map)
    variance = release.output_variances(system.target)
    if diagonal is None:
        loss = problem.loss_of_output_noise(release.output_map(system.target) * np.sqrt(release.row_variances()))
    else:
        loss = problem.total(diagonal**2 * variance)
    return Candidate(
        name,
        "gaussian",
        loss,
        rule.reason or reason,
        rule.admissible,
        problem.proved(solution.lower_bound if bound is None else bound),
        f"{among}, unbiased",
        Mechanism(
            release,
            tuple(sites),
            dual,
            solution.method,
            solution.iterations,
            solution.seconds,
            solution.notes,
        ),
    )


# --- any covariance -------------------------------------------------------------------------------


def _correlated(problem: Problem, budgets: tuple[float, ...], rule: Verdict) -> Candidate:
    program = correlated_program(problem, budgets)
    solution = several_at_once(program, solved(problem, program))
    release = exact_release(problem, budgets, solution, *_reconstruction(problem, solution))
    name, among = "correlated noise on the answers, at the curator", "Gaussian noise of any covariance"
    words = (name, "the least loss of all Gaussian noise", among)
    found = offered(problem, rule, solution, release, full_dual(problem, solution, budgets), words)
    again = partial(_correlated, budgets=budgets, rule=rule)
    return replace(found, program=gaussian_program(problem, budgets, program, solution, again))


def gaussian_program(*stated: Any) -> Callable[[Decide], Form | str]:
    """What `gaussian_form` says of a program, when it is asked for: few look at the program itself."""

    def form(decide: Decide) -> Form | str:
        from privspec.families.gaussian.stated import gaussian_form

        return gaussian_form(decide, *stated)

    return form


def full_dual(problem: Problem, solution: GaussianSolution, budgets: tuple[float, ...]) -> Dual:
    """The dual point over any covariance; with the covariance that shows it where observers see different outputs."""
    return Dual(solution.dual, budgets, "full", None if problem.system.seen_whole else solution.root)


def correlated_program(problem: Problem, budgets: tuple[float, ...]) -> GaussianProgram:
    """The program over any covariance, reduced to the error terms when every view sees all outputs.

    With error terms e = E o the loss is that of e alone; when there are more of them than inputs, R with
    R'R = (E F)'(E F) stands for them (same loss, same privacy).
    """
    system = problem.system
    views = problem.views(budgets)
    if not system.seen_whole:
        return GaussianProgram(system.target, problem.loss(system.error_map.toarray()), views)
    errors = problem.errors
    if errors.shape[0] > errors.shape[1] and not system.worst:
        errors = shorter(errors)
    return GaussianProgram(errors, problem.loss(np.eye(errors.shape[0])), views)


def _reconstruction(problem: Problem, solution: GaussianSolution) -> tuple[Array | None, Array | None]:
    """How outputs come from the strategy answers: directly (m, k), or through estimated inputs (n, k)."""
    system = problem.system
    if not system.seen_whole:
        return solution.reconstruction, None
    if not problem.through_inputs and solution.reconstruction is not None:
        diagonal = _diagonal(system.error_map)
        if diagonal is not None and solution.reconstruction.shape[0] == len(diagonal):
            return solution.reconstruction / diagonal[:, None], None
    inverse = solution.input_estimate
    if inverse is None:
        inverse = np.asarray(np.linalg.pinv(solution.strategy), dtype=np.float64)
    if not problem.through_inputs:
        return system.target @ inverse, None
    return None, inverse


def exact_release(
    problem: Problem,
    budgets: tuple[float, ...],
    solution: GaussianSolution,
    outputs: Array | None,
    inputs: Array | None,
) -> LinearRelease:
    """The solution in exact numbers.

    The strategy answers are rounded when every view is protected from all of those that it may see a part of, else
    only the outputs are.
    """
    system = problem.system
    found = exact_gaussian(solution.strategy, outputs, inputs, solution.blocks, system.views)
    deviations = np.sqrt(found.output_variances(system.target))
    added_up = not system.lowered.layout.plain
    if added_up or deviations.min(initial=1.0) < UNEVEN * deviations.max(initial=1.0):
        found = exact_gaussian(solution.strategy, outputs, inputs, solution.blocks, system.views, FINE_BITS)
    if added_up and found.outputs_matrix is not None:
        found = replace(found, outputs_matrix=_closer(found.outputs_matrix, found.strategy, system.target))
    found = replace(found, output_grid=output_grid(deviations))
    nested = chain(problem.views(budgets), system.outputs_count)[1]
    if nested or all(
        length_up(found, view, rows) <= budget
        for view, rows, budget in zip(system.views, found.view_rows, problem.budgets, strict=True)
        if budget is not None
    ):
        return found
    return replace(found, rounding="outputs")


def _closer(outputs: DyadicMatrix, strategy: DyadicMatrix, target: Array) -> DyadicMatrix:
    """Outputs from the answers that they use, nearer to the target: a digit off counts for every number added up."""
    rebuilt, answers = outputs.to_float(), strategy.to_float()
    off, used = target - rebuilt @ answers, outputs.integers != 0
    for pattern in np.unique(used, axis=0):
        rows = np.flatnonzero((used == pattern).all(axis=1))
        rebuilt[np.ix_(rows, pattern)] += off[rows] @ np.linalg.pinv(answers[pattern])
    return rounded_reconstruction(rebuilt)


def _diagonal(matrix: scipy.sparse.csr_array) -> Array | None:
    rows, columns = matrix.shape
    if rows != columns or matrix.nnz != rows:
        return None
    diagonal = np.asarray(matrix.diagonal())
    return diagonal if np.all(diagonal != 0) else None


def run_solver(problem: Problem, program: GaussianProgram) -> GaussianSolution | Unprotectable:
    """The special solver, or cvxpy where it is asked for or nothing special fits; solved programs are remembered."""
    if problem.given is not None:
        return problem.given(program)
    settings = problem.settings
    known = settings.cache.find(settings.solver, program)
    if known is not None:
        return known
    solution = _solve(problem, program)
    if isinstance(solution, GaussianSolution):
        settings.cache.add(settings.solver, program, solution)
    return solution


def solved(problem: Problem, program: GaussianProgram) -> GaussianSolution:
    """The same for noise that hides every difference: of any covariance, or on every input."""
    solution = run_solver(problem, program)
    if isinstance(solution, Unprotectable):
        raise InternalError("noise everywhere hides every difference")
    return solution


def _solve(problem: Problem, program: GaussianProgram) -> GaussianSolution | Unprotectable:
    units = Units.of(program)
    try:
        found = _solved_in_units(problem.settings, units.program(program), units.progress(problem.settings.progress))
    except OutOfTimeError as late:
        raise OutOfTimeError(None if late.best is None else units.solution(late.best)) from None
    return units.solution(found) if isinstance(found, GaussianSolution) else found


def _solved_in_units(
    settings: Settings, program: GaussianProgram, progress: Progress | None
) -> GaussianSolution | Unprotectable:
    streams = any(isinstance(view.differences, Streams) for view in program.views)
    if streams and program.limits:
        return _at_prices(settings, program)
    if streams:
        from privspec.solvers.streams import solve_streams  # few specs have any

        return solve_streams(program, settings.tolerance, settings.deadline, progress)
    if settings.solver != "cvxpy" and not program.limits:
        try:
            return solve_gaussian(program, settings.tolerance, settings.deadline, progress)
        except NotSpecialError:
            found = _by_one_line(settings, program, progress)
            if found is not None:
                return found
    from privspec.families.gaussian.reference import TooLargeError, solve_with_cvxpy

    try:
        return solve_with_cvxpy(program, deadline=settings.deadline)
    except (TooLargeError, ReferenceFailedError) as failed:
        if not program.limits or settings.solver == "cvxpy":
            raise
        try:
            return _at_prices(settings, program)
        except NotSpecialError:
            raise failed from None


def _at_prices(settings: Settings, program: GaussianProgram) -> GaussianSolution:
    """What a special solver finds where limits on errors have a price each."""
    from privspec.solvers.limits import solve_at_prices  # few specs have lines that bind

    return solve_at_prices(program, lambda own: _solved_in_units(settings, own, None))


SEVERAL = 4
"""Views of which each is tried alone."""


def _by_one_line(settings: Settings, program: GaussianProgram, progress: Progress | None) -> GaussianSolution | None:
    """The best noise for one view that keeps all others too: what one asks for is then what all do."""
    views, alike = program.views, {view.rows is None for view in program.views}
    if not 1 < len(views) <= SEVERAL or alike != {True} or program.sites:
        return None
    for number, view in enumerate(views):
        try:
            one = replace(program, views=(view,))
            found = solve_gaussian(one, settings.tolerance, settings.deadline, progress)
        except NotSpecialError:
            return None
        if isinstance(found, Unprotectable):
            return None
        if all(largest_norm(found.strategy, own.differences) <= 1 for own in views if own is not view):
            nothing = scipy.sparse.csc_array((found.strategy.shape[1], 0)), np.zeros(0)
            points = found.dual.differences[0], found.dual.weights[0]
            parts, weights = zip(*(points if k == number else nothing for k in range(len(views))), strict=True)
            dual = replace(found.dual, differences=parts, weights=weights)
            return replace(found, dual=dual, blocks=found.blocks * len(views))
    return None


# --- noise at given sites -------------------------------------------------------------------------


def _restricted(
    problem: Problem, budgets: tuple[float, ...], sites: tuple[Site, ...], rule: Verdict
) -> Candidate | Unprotectable:
    system, names = problem.system, [site.name for site in sites]
    error_map = problem.loss(system.error_map.toarray())
    program = GaussianProgram(system.target, error_map, problem.views(budgets), sites)
    solution = run_solver(problem, program)
    if isinstance(solution, Unprotectable):
        return solution
    release = exact_release(problem, budgets, solution, solution.reconstruction, None)
    words = (
        f"separate noise at {listing(names)}",
        "the least loss of independent Gaussian noise at these places",
        f"independent Gaussian noise at {listing(names)}",
    )
    dual = Dual(solution.dual, budgets, "sites", problem.given and solution.root)
    found = offered(problem, rule, solution, release, dual, words, described(sites, solution))
    again = partial(_restricted, budgets=budgets, sites=sites, rule=rule)
    return replace(found, program=gaussian_program(problem, budgets, program, solution, again))


def described(sites: tuple[Site, ...], solution: GaussianSolution) -> Iterator[dict[str, Any]]:
    """The variances at places, as a plan states them."""
    assert solution.variances is not None
    for site, variances in zip(sites, solution.variances, strict=True):
        yield {"at": site.name, "variance": variances.tolist()}


def _paper_placement(problem: Problem, budgets: tuple[float, ...], rule: Verdict) -> Iterator[Candidate]:
    """Ramon & Basu's own placement: separate noise at each input and at each value the loss compares."""
    with suppress(SolverError):  # shown for comparison only
        found = _apart(problem, budgets, rule)
        if isinstance(found, Candidate):
            reason = rule.reason or "more loss: noise may not be correlated"
            yield Candidate(found.name, "gaussian", found.loss, reason, rule.admissible)


def _apart(problem: Problem, budgets: tuple[float, ...], rule: Verdict) -> Candidate | Unprotectable | None:
    listed = (*(node.name for node in problem.model.numeric_inputs), *(o.name for o in problem.system.outputs))
    sites = tuple(s for s in (site_map(problem.model, problem.system, name) for name in listed) if s.map.any())
    found = sized(problem, lambda own: _restricted(own, budgets, sites, rule))
    if not isinstance(found, Candidate):
        return found
    return replace(found, name=f"separate noise on inputs and answers ({listing([site.name for site in sites])})")


def classics(problem: Problem, budgets: tuple[float, ...], rule: Verdict) -> Iterator[Candidate]:
    """Noise on each input, noise on each answer, and both as the paper calibrates them."""
    system = problem.system
    forced = set(problem.model.noise_at) if problem.model.noise_at is not None else None
    inputs = problem.loss_of_input_noise(input_variances(problem, budgets))
    inputs_rule = answers_rule = rule
    if forced is not None and not {node.name for node in problem.model.numeric_inputs} <= forced:
        inputs_rule = Verdict(False, rule.reason or FORCED)
    variance = 0.0
    for view, budget in zip(system.views, budgets, strict=True):
        target = system.target if view.rows is None else system.target[view.rows]
        variance = max(variance, largest_norm(target, view.differences) / budget**2)
    each = np.asarray(system.error_map.multiply(system.error_map).sum(axis=1))
    answers = problem.total(each * variance)
    if problem.local:
        answers_rule = Verdict(False, rule.reason or f"{LOCAL}: nobody holds the answers before noise")
    elif forced is not None and not _answers_listed(problem, forced):
        answers_rule = Verdict(False, rule.reason or FORCED)
    found = [("noise on each input", inputs, inputs_rule), ("equal noise on each answer", answers, answers_rule)]
    stream = problem.views(budgets)[0].differences
    if isinstance(stream, Streams) and system.inputs_count <= BANDED_SIZE:
        from privspec.solvers.streams import loss_in_band  # few specs have any

        effects = np.asarray(system.error_map @ system.target)
        found.append(("a strategy in a band, columns of one length", loss_in_band(effects, stream), rule))
    for name, loss, own in found:
        yield Candidate(name, "gaussian", loss, own.reason or "more loss", own.admissible)
    ratio = paper_ratio(problem, budgets)
    if ratio is None:
        return
    for name, loss, own in found:
        unsafe = "less noise there than this guarantee needs: sqrt(2 ln(1.25/delta))/epsilon is wrong at this epsilon"
        words = "valid but wasteful: sqrt(2 ln(1.25/delta))/epsilon is not exact"
        reason = rule.reason or (unsafe if ratio < 1 else words)
        fine = own.admissible and ratio >= 1
        yield Candidate(f"{name}{PAPER}", "gaussian", problem.scaled(loss, ratio), reason, fine)


def _answers_listed(problem: Problem, forced: set[str]) -> bool:
    """Whether `noise at` lists, for every output, the output or a value that it equals."""
    system = problem.system
    outputs = {o.name for o in system.outputs}
    if outputs <= forced:
        return True
    maps = [site.map for site in site_maps(problem.model, system, tuple(sorted(forced)))]
    covered = np.zeros(system.outputs_count, dtype=bool)
    for site in maps:
        single = (np.count_nonzero(site, axis=0) == 1) & (np.abs(site).sum(axis=0) == 1)
        covered |= site[:, single].any(axis=1)
    return bool(covered.all())


def input_variances(problem: Problem, budgets: tuple[float, ...]) -> Array:
    """Variances of noise on each number of the inputs, of sums by class, that alone hides every difference."""
    n = problem.system.inputs_count
    variances = np.zeros(n)
    for view, budget in zip(problem.system.views, budgets, strict=True):
        own = _own_variances(view.differences, n) if view.numbers is None else view.numbers
        variances = np.maximum(variances, own / budget**2)
    return variances * problem.system.lowered.layout.copies


def _own_variances(differences: Differences, n: int) -> Array:
    out = np.zeros(n)
    match differences:
        case Vectors(matrix, count):
            counts = np.diff(matrix.indptr)
            weight = np.repeat(counts, counts) / (count if len(counts) <= CROWD else 1)
            np.maximum.at(out, matrix.indices, weight * matrix.data**2)
        case Pairs(coordinates, scale):
            out[coordinates] = 2 * scale**2
        case Balls(blocks, radius):
            for block in blocks:
                out[block] = np.maximum(out[block], radius**2)
        case Boxes(blocks):
            reach = differences.reaches()
            for block in blocks:
                out[block] = np.maximum(out[block], len(block) * reach[block] ** 2)
        case Streams(reach=radius, most=count):
            out[:] = count * radius**2
    return out


def paper_ratio(problem: Problem, budgets: tuple[float, ...]) -> float | None:
    """How many times the exact variance the paper's sqrt(2 ln(1.25/delta))/epsilon gives; None without a delta."""
    ratios = []
    for view, budget in zip(problem.system.views, budgets, strict=True):
        measure = view.requirement.measure
        if measure.common is not APPROXIMATE:
            return None
        epsilon, delta = map(float, measure.amounts.values())
        deviation = sqrt(2 * log(1.25 / delta)) / epsilon
        ratios.append((deviation * budget) ** 2)
    return min(ratios) if ratios else None
