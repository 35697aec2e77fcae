"""Lines that cannot hold together, or bind: which conflict, the best mechanism that meets the accuracy lines, ways out.

Whether the best mechanism meets them, the best that does, or proof that none can (exit 4); options that leave a
difference bare, and what each single change would cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from math import inf, isfinite, sqrt

import numpy as np

from privspec.core.diagnostics import Diagnostic, Label, SolveError
from privspec.core.records import dataclass, replace
from privspec.core.spans import Span
from privspec.families.decision import ConflictLine, Infeasible, Relaxation, conflict_line, needed
from privspec.families.gaussian.dense import exact_release, full_dual, offered, run_solver, solved
from privspec.families.gaussian.problem import AccuracyLimit, Problem, Verdict, lower
from privspec.families.gaussian.release import Candidate, LinearRelease
from privspec.families.gaussian.sizes import line_value
from privspec.kernel.measures import PURE
from privspec.kernel.trust import CURATOR
from privspec.language import syntax
from privspec.model.graph import Model
from privspec.model.measures import AskedMeasure, MeasureAt
from privspec.model.requirements import Requirement, TrustIn
from privspec.problem.linear import spacing_of
from privspec.solvers.programs import (
    Array,
    ExpectedLoss,
    GaussianProgram,
    GaussianSolution,
    Limit,
    Unprotectable,
    View,
    WorstLoss,
)

MET = 1e-9
"""Relative amount by which a target may be missed through float error."""
MEETS = 1e-5
"""The same for what is offered as a way out, in rounded figures."""
ROOM = 1e-7
"""Relative room left below each target for the tolerance of the reference solver."""
NARROW = Fraction(1, 1000)
"""Relative width at which an epsilon that is enough is no longer halved."""
TIGHTENED = 4
"""Times that targets are narrowed until what is found meets them."""
REFERENCE_SIZE = 64
"""Outputs up to which lines of several errors beside observers of some outputs are solved (by the reference path)."""


def accuracy_values(problem: Problem, release: LinearRelease) -> tuple[float, ...]:
    """What every accuracy instance bounds, under a release, in the terms of its `bound`: the squares of errors.

    Of other noise than normal, of which a line bounds the size or a probability, the square of how far it is from that.
    """
    root = release.noise_map(problem.system.target)
    return tuple(
        limit.bound * (line_value(problem, release, limit.stated) / float(limit.stated.bound)) ** 2
        if not release.noise.normal and not limit.stated.of_squares
        else float(np.sum(np.asarray(limit.error_map @ root) ** 2))
        for limit in problem.system.limits
    )


def meets(problem: Problem, release: LinearRelease) -> bool:
    """Whether a release meets every accuracy line."""
    values = accuracy_values(problem, release)
    return all(v <= limit.bound * (1 + MET) for v, limit in zip(values, problem.system.limits, strict=True))


def within_limits(problem: Problem, budgets: tuple[float, ...]) -> Candidate | Infeasible:
    """The least loss of Gaussian noise that meets every accuracy line, or the lines that conflict."""
    system = problem.system
    views = problem.views(budgets)
    slack = _least_excess(problem, views, system.limits)
    if slack.bound > 1:
        return conflict_at(problem, budgets, slack.value)
    room = np.full(len(system.limits), 1 - ROOM)
    for _ in range(TIGHTENED):
        limits = tuple(
            Limit(limit.error_map.toarray(), limit.bound * share)
            for limit, share in zip(system.limits, room, strict=True)
        )
        program = GaussianProgram(system.target, problem.loss(system.error_map.toarray()), views, limits=limits)
        solution = solved(problem, program)
        release = exact_release(problem, budgets, solution, solution.reconstruction, solution.input_estimate)
        if meets(problem, release):
            break
        # what the reference solver missed them by is left below them
        values = np.array(accuracy_values(problem, release))
        room /= np.maximum(values / np.array([limit.bound for limit in system.limits]), 1.0)
    words = (
        "correlated noise on the answers that meets the accuracy lines, at the curator",
        "the least loss of all Gaussian noise that meets the accuracy lines",
        "Gaussian noise of any covariance that meets the accuracy lines",
    )
    dual = full_dual(problem, solution, budgets)
    bound = _bound_at_targets(solution, limits, room)
    return offered(problem, Verdict(), solution, release, dual, words, bound=bound)


def _bound_at_targets(solution: GaussianSolution, limits: Sequence[Limit], shares: Array) -> float:
    """The lower bound for the targets as written: the room left below them is paid at their prices."""
    prices = solution.dual.limit_weights
    if prices is None:
        return solution.lower_bound
    pairs = zip(prices, limits, shares, strict=True)
    room = sum(float(nu) * limit.bound * (1 / share - 1) for nu, limit, share in pairs)
    return float(solution.lower_bound - room * (1 + 1e-9))


LawsInSteps = Callable[[Problem], Iterable[Candidate]]


def pure_conflict(
    problem: Problem, epsilons: Sequence[Fraction], known: Sequence[Candidate], in_steps: LawsInSteps
) -> Infeasible:
    """The lines that no unbiased mechanism of these pure epsilons meets together.

    Args: known, the mechanisms that were computed and miss some line; in_steps, what finds the best law of one number.
    Raises: SolveError PS0612 when none is known and none is proved not to exist.
    """
    near = min(known, key=lambda c: _missed(problem, c))
    ratio = _missed(problem, near)
    ways = tuple(_pure_relaxations(problem, epsilons, ratio, in_steps)) if isfinite(ratio) else ()
    budgets = problem.unbiased_budgets(map(float, epsilons))
    # the bound on unbiased mechanisms is about their variances, and says nothing of sizes or tails
    plain = [limit for limit in problem.system.limits if limit.stated.of_squares]
    least = _least_excess(problem, problem.views(budgets), plain)
    if least.bound > 1 and len(plain) == len(problem.system.limits):
        return replace(conflict_at(problem, budgets, least.value), relaxations=ways)
    spans = {limit.stated.span: Label(limit.stated.span) for limit in problem.system.limits}
    raise SolveError(
        Diagnostic(
            "PS0612",
            "no mechanism that solve knows meets the accuracy lines, and none is proved not to exist",
            tuple(spans.values()),
            notes=(
                f"the nearest, {near.name}, misses one by a factor of {_missed(problem, near, told=True):.4g}"
                if isfinite(ratio)
                else f"how large the errors of {near.name} may be is not known",
                *(
                    (f"no unbiased mechanism has errors below {least.bound:.4g} times what is allowed",)
                    if plain
                    else ()
                ),
            ),
            help=", or ".join(f"{way.change} (line {way.line})" for way in ways) or "allow larger errors",
            source=problem.model.source,
        )
    )


def _missed(problem: Problem, candidate: Candidate, *, told: bool = False) -> float:
    """The largest ratio of an error to its target, in squares; `told`, in what its line bounds."""
    if candidate.mechanism is None:
        return inf
    values = accuracy_values(problem, candidate.mechanism.release)
    ratios = [value / limit.bound for value, limit in zip(values, problem.system.limits, strict=True)]
    if told:
        pairs = zip(ratios, problem.system.limits, strict=True)
        ratios = [ratio if limit.stated.of_squares else sqrt(ratio) for ratio, limit in pairs]
    return max(ratios)


def _pure_relaxations(
    problem: Problem, epsilons: Sequence[Fraction], ratio: float, in_steps: LawsInSteps
) -> Iterator[Relaxation]:
    """What lets the nearest known mechanism meet the lines: noise of pure epsilon shrinks as epsilon grows."""
    lines, requirements = {limit.stated.line for limit in problem.system.limits}, problem.model.requirements
    if len(lines) == 1:
        yield _looser_target(problem.system.limits, ratio * (1 + 1e-5))
    if len(requirements) == 1:
        wanted = Fraction(f"{float(epsilons[0]) * sqrt(ratio) * (1 + 1e-4):.4g}")
        if problem.system.outputs_count == 1:
            wanted = _less_in_steps(problem, epsilons[0], wanted, in_steps)
        weaker = _with(requirements[0].measure, "epsilon", max(wanted, epsilons[0]))
        if weaker is not None and weaker.pure_epsilon is not None:
            yield Relaxation(f"accept {weaker.describe()}", requirements[0].line)


def _less_in_steps(problem: Problem, low: Fraction, high: Fraction, in_steps: LawsInSteps) -> Fraction:
    """An epsilon in four digits at which the best law of one number meets the lines, or `high`: it shrinks faster."""

    def enough(epsilon: Fraction) -> bool:
        (line,) = problem.model.requirements
        weaker = _with(line.measure, "epsilon", epsilon)
        if weaker is None:
            return False
        model = replace(problem.model, requirements=(replace(line, measure=weaker),))
        system = lower(model)
        if isinstance(system, Infeasible):
            return False
        changed = Problem(model, system, problem.settings)
        found = (one.mechanism for one in in_steps(changed))
        return any(mechanism is not None and meets(changed, mechanism.release) for mechanism in found)

    while high - low > NARROW * high:
        middle = Fraction(f"{float(low + high) / 2:.4g}")
        if not low < middle < high:
            break
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


# --- feasibility ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Excess:
    """By which factor all targets together must be loosened: reached by a mechanism, and a certified lower bound."""

    value: float
    bound: float


def _least_excess(problem: Problem, views: tuple[View, ...], limits: Sequence[AccuracyLimit]) -> Excess:
    """The least, over covariances, of the largest ratio of an expected error to its target."""
    if not limits or not views:
        return Excess(0.0, 0.0)
    system = problem.system
    rows = np.vstack([limit.error_map.toarray() / sqrt(limit.bound) for limit in limits])
    sizes = [limit.error_map.shape[0] for limit in limits]
    groups = None if max(sizes) == 1 else np.repeat(np.arange(len(sizes)), sizes)
    loss = ExpectedLoss(rows) if len(sizes) == 1 else WorstLoss(rows, groups)
    program = GaussianProgram(system.target, loss, views)
    if groups is not None and not system.seen_whole:
        _check_size(problem)
    solution = run_solver(problem, program)
    if isinstance(solution, Unprotectable):
        return Excess(float("inf"), float("inf"))
    return Excess(solution.value, solution.lower_bound)


def _check_size(problem: Problem) -> None:
    if problem.system.outputs_count > REFERENCE_SIZE:
        spans = {limit.stated.span: Label(limit.stated.span) for limit in problem.system.limits}
        raise SolveError(
            Diagnostic(
                "PS0611",
                f"beside observers of some outputs, accuracy lines about several errors are solved for at most "
                f"{REFERENCE_SIZE} outputs, not {problem.system.outputs_count}",
                tuple(spans.values()),
                help="ask for the accuracy in the loss instead: max(E[ (O[j] - y[j])^2 ] for j in ...)",
                source=problem.model.source,
            )
        )


# --- conflicts ------------------------------------------------------------------------------------


def conflict_at(problem: Problem, budgets: tuple[float, ...], excess: float) -> Infeasible:
    """The smallest set of lines that conflict (each is needed: without it the others hold), and ways out."""
    system, model = problem.system, problem.model

    def conflicting(requirements: Iterable[int], targets: Iterable[int]) -> bool:
        kept_views = set(requirements)
        kept_lines = set(targets)
        views = tuple(
            view
            for view, source in zip(problem.views(budgets), system.views, strict=True)
            if source.index in kept_views
        )
        limits = [limit for limit in system.limits if limit.stated.line in kept_lines]
        return _least_excess(problem, views, limits).bound > 1

    every = range(len(model.requirements))
    lines = needed(
        sorted({limit.stated.line for limit in system.limits}), lambda some: bool(some) and conflicting(every, some)
    )
    binding = needed(every, lambda some: bool(some) and conflicting(some, lines))
    kept = [limit for limit in system.limits if limit.stated.line in lines]
    views = tuple(
        view for view, source in zip(problem.views(budgets), system.views, strict=True) if source.index in binding
    )
    least = _least_excess(problem, views, kept).value if len(kept) < len(system.limits) else excess
    conflicts: list[ConflictLine] = [
        conflict_line(model, next(limit.stated.span for limit in kept if limit.stated.line == line)) for line in lines
    ]
    # looser targets of one line are a way out only where the others hold beside them
    looser = [replace(one, bound=one.bound * least) if one.stated.line in lines else one for one in system.limits]
    alone = len(kept) == len(looser) or _least_excess(problem, problem.views(budgets), looser).value <= 1 + MEETS
    requirements = [model.requirements[index] for index in binding]
    conflicts += [conflict_line(model, requirement.span) for requirement in requirements]
    times = least if any(limit.asked is None for limit in kept) else sqrt(least)
    return Infeasible(
        f"the privacy asked for makes errors at least {times:.4g} times as large as the accuracy allows",
        tuple(conflicts),
        tuple(_relaxations(lines if alone else [], kept, requirements, least, excess)),
    )


def _relaxations(
    lines: Sequence[int],
    limits: Sequence[AccuracyLimit],
    requirements: Sequence[Requirement],
    least: float,
    excess: float,
) -> Iterator[Relaxation]:
    if len(lines) == 1:
        yield _looser_target(limits, least)
    if len(requirements) == 1:
        weaker = loosened(requirements[0].measure, sqrt(excess) * (1 + 1e-6))
        if weaker is not None:
            yield Relaxation(f"accept {weaker.describe()}", requirements[0].line)


def _looser_target(limits: Sequence[AccuracyLimit], factor: float) -> Relaxation:
    """All targets of one line times a factor."""
    bounds = sorted({limit.bound if limit.asked is None else limit.asked for limit in limits})
    grown = factor if limits[0].asked is None else sqrt(factor)
    values = ", ".join(f"{bound * grown:.6g}" for bound in bounds)
    return Relaxation(f"accept {values} in place of {', '.join(f'{b:.6g}' for b in bounds)}", limits[0].stated.line)


def loosened(measure: AskedMeasure, factor: float) -> AskedMeasure | None:
    """The same measure with the least figure that allows a Gaussian release `factor` times the mu."""
    mu = measure.gaussian_mu_down()
    if mu is None:
        return None
    wanted = mu * Fraction(factor)
    for name in ("mu", "rho", "epsilon"):
        now = measure.amounts.get(name)
        if now is None:
            continue
        low, high = now, now * 2
        while (reached := _with(measure, name, high)) is not None and (reached.gaussian_mu_down() or 0) < wanted:
            low, high = high, high * 2
        for _ in range(24):
            middle = (low + high) / 2
            found = _with(measure, name, middle)
            if found is not None and (found.gaussian_mu_down() or 0) >= wanted:
                high = middle
            else:
                low = middle
        return _with(measure, name, Fraction(f"{float(high) * (1 + 5e-5):.4g}"))
    return None


def _with(measure: AskedMeasure, name: str, value: Fraction) -> AskedMeasure | None:
    return measure.changed(**{name: value}) if isinstance(measure, MeasureAt) else None


# --- options ------------------------------------------------------------------------------------


RELAXED_DELTA = Fraction(1, 10**6)
"""The delta offered where pure epsilon rules Gaussian noise out."""


def explain_unprotectable(problem: Problem, bare: Unprotectable, names: tuple[str, ...]) -> Infeasible:
    """No noise at the listed nodes hides some difference from a view (exit 4)."""
    model, view = problem.model, problem.system.views[bare.view]
    listed = " and ".join(names)
    requirement = view.requirement
    return Infeasible(
        f"noise at {listed} cannot hide every change of {', '.join(requirement.wrt)} from "
        f"{', '.join(requirement.outputs)}: part of it reaches the output by another way",
        (*_option_lines(model, syntax.NoiseAt), conflict_line(model, requirement.span)),
        tuple(_more_sites(problem, names)),
    )


def _more_sites(problem: Problem, names: tuple[str, ...]) -> Iterator[Relaxation]:
    line = _first_line(problem.model, syntax.NoiseAt)
    for extra in problem.system.candidates:
        if extra not in names:
            loss = _loss_if(problem, noise_at=(*names, extra))
            if loss is not None:
                yield Relaxation(f"noise at {', '.join((*names, extra))}", line, loss)
    loss = _loss_if(problem, noise_at=None)
    if loss is not None:
        yield Relaxation("drop the line: noise anywhere at the curator", line, loss)


def local_conflict(problem: Problem, names: tuple[str, ...]) -> Infeasible:
    """`trust nobody` with noise asked for where no party could add it (exit 4)."""
    model = problem.model
    inputs = tuple(node.name for node in model.inputs)
    wrong = ", ".join(name for name in names if name not in inputs)
    relaxations = []
    for change, kind, options in (
        (CURATOR.written, syntax.Trust, {"trust": TrustIn(CURATOR)}),
        (f"noise at {', '.join(inputs)}", syntax.NoiseAt, {"noise_at": inputs}),
    ):
        loss = _loss_if(problem, **options)
        if loss is not None:
            relaxations.append(Relaxation(change, _first_line(model, kind), loss))
    return Infeasible(
        f"with `trust {model.trust.name}` each party adds noise to its own values; nobody could add it at {wrong}",
        (*_option_lines(model, syntax.Trust), *_option_lines(model, syntax.NoiseAt)),
        tuple(relaxations),
    )


def family_conflict(problem: Problem) -> Infeasible:
    """Every noise family that the spec allows breaks a requirement, or is not for such inputs (exit 4)."""
    model = problem.model
    if "geometric" in model.families and None not in problem.epsilons:
        return _between_points(problem)
    bare = [r for r in model.requirements if r.measure.gaussian_mu_down() is None]
    lines = [conflict_line(model, r.span) for r in bare[:1] or model.requirements[:1]]
    relaxations = []
    loss = _loss_if(problem, families=(), family_spans=())
    if loss is not None:
        relaxations.append(Relaxation("drop the line: any noise family", _first_line(model, syntax.NoiseFamily), loss))
    for requirement in bare:
        if isinstance(requirement.measure, MeasureAt) and requirement.measure.of is PURE:
            weaker = requirement.measure.with_delta(RELAXED_DELTA)
            others = tuple(replace(r, measure=weaker) if r is requirement else r for r in model.requirements)
            loss = _loss_if(problem, requirements=others)
            if loss is not None:
                relaxations.append(Relaxation(f"accept {weaker.describe()}", requirement.line, loss))
    return Infeasible(
        f"noise of family {', '.join(model.families)} never satisfies this requirement",
        (*_option_lines(model, syntax.NoiseFamily), *lines),
        tuple(relaxations),
    )


def _between_points(problem: Problem) -> Infeasible:
    """Noise in whole steps of a lattice is asked for, and answers lie between its points."""
    model = problem.model
    anywhere = [model.nodes[block.name] for block in model.blocks if not block.whole and spacing_of(block) is None]
    names = " and ".join(node.name for node in anywhere) or "the answers"
    loss = _loss_if(problem, families=("laplace",), family_spans=model.family_spans[:1])
    relaxed = Relaxation("noise family laplace", _first_line(model, syntax.NoiseFamily), loss) if loss else None
    return Infeasible(
        f"geometric noise is a whole number of steps of a lattice, and values of {names} lie between its points",
        (*_option_lines(model, syntax.NoiseFamily), *(conflict_line(model, node.span) for node in anywhere)),
        (relaxed,) if relaxed else (),
    )


def _loss_if(problem: Problem, **changes: object) -> float | None:
    """The loss of the same spec with one thing changed; None if that does not help."""
    if problem.best_loss is None:
        return None
    return problem.best_loss(replace(problem.model, **changes), problem.settings)  # type: ignore[arg-type]


def _option_lines(model: Model, kind: type) -> Iterable[ConflictLine]:
    return [conflict_line(model, option.span) for option in model.spec.options if isinstance(option, kind)]


def _first_line(model: Model, kind: type) -> int | None:
    spans: list[Span] = [option.span for option in model.spec.options if isinstance(option, kind)]
    return model.source.position(spans[0].start)[0] if spans else None
