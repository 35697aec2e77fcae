"""The linear family: answers that are linear in the data, with unbiased additive noise; which is taken, and its plan.

In the plan each number leads to a line: what binds, and what a little more budget would buy. With one requirement the
loss scales with its budget (notes/placement.md). With several, a tenth more of one of them may make another bind: the
spec is solved again; where that takes too long, the price is a slope, and marked as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import partial
from math import inf
from typing import Any, NoReturn

import numpy as np

from privspec.core.diagnostics import InternalError, PrivspecError
from privspec.core.records import dataclass, replace
from privspec.core.rounding import LISTED, graded
from privspec.families.decision import Decided, Infeasible, Unbounded, decimal_up, guarantee, increased, price
from privspec.families.family import Settings, Work
from privspec.families.gaussian.accuracy import (
    explain_unprotectable,
    family_conflict,
    local_conflict,
    meets,
    pure_conflict,
    within_limits,
)
from privspec.families.gaussian.dense import gaussian_budgets, gaussian_candidates
from privspec.families.gaussian.exact import Stated, achieved, view_witnesses
from privspec.families.gaussian.problem import LinearSystem, Problem, lower
from privspec.families.gaussian.pure import pure_candidates
from privspec.families.gaussian.release import Candidate, LinearRelease, Mechanism
from privspec.families.gaussian.sizes import size_of, sized
from privspec.families.gaussian.stepped import stepped_candidates
from privspec.kernel.core.linear import Additive
from privspec.kernel.core.problem import notes_of
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.laws.knorm import KNormBlocks, KNormHulls, KNormSwaps
from privspec.kernel.laws.laplace import Scaled
from privspec.kernel.laws.law import OfOneScale, laws
from privspec.kernel.linear import pulled
from privspec.kernel.writing import write
from privspec.language import syntax
from privspec.model.graph import Model
from privspec.model.requirements import Requirement
from privspec.problem.elaborate import units_of
from privspec.problem.refusals import refuse_missing, without_loss
from privspec.solvers.programs import NotSpecialError, SolverError, Streams, Unprotectable

BYTES, SECONDS = 600, 2.5e-5
"""Of an entry of a square matrix, as measured of running totals of 256 to 800 numbers.

Twenty matrices of doubles are there at once while noise is sought (target, errors, their products and roots, the
strategy and its inverse, and copies), and then the exact numbers of the plan, of some 50 bytes each, in the text, in
what is read of it, and in the products by which it is checked. The seconds are those of the check
alone: the search for noise takes longer yet where there are many.
"""


class Linear:
    """Takes every spec that no other family takes: what it cannot compute it refuses with a reason."""

    def lower(self, model: Model) -> LinearSystem | Infeasible:
        """The linear system."""
        if model.loss is None:
            raise without_loss(model).of_spec(model.source)
        found = lower(model)
        if not isinstance(found, Unbounded):
            return found
        (bound,) = found.relaxations
        return replace(found, relaxations=(replace(bound, loss=_loss_in_unit_box(model, found.input)),))

    def decide(self, model: Model, system: LinearSystem, settings: Settings) -> Decided | Infeasible:
        """The admissible release of least loss."""
        problem = Problem(model, system, settings, best_loss)
        found = choose(problem, pulling=True)
        return found if isinstance(found, Infeasible) else decided(problem, found)

    def size(self, system: LinearSystem) -> int:
        """The smaller side of the map from inputs to outputs."""
        return min(system.outputs_count, system.inputs_count)

    def work(self, system: LinearSystem) -> Work | None:
        """Square matrices of the smaller side; None where each number stands alone (not measured)."""
        rows, columns = system.target.shape
        if np.count_nonzero(system.target) <= max(rows, columns):
            return None
        what = f"the matrices from {columns:,} numbers to {rows:,}"
        smaller = "fewer numbers, or totals of several of them, take less"
        return Work(what, BYTES * self.size(system) ** 2, SECONDS * self.size(system) ** 2, smaller)


def _loss_in_unit_box(model: Model, name: str) -> float | None:
    """The loss if the input were declared in [0, 1]; None where that is no answer (tables, half-open intervals)."""
    from privspec.model.build import build

    variables = tuple(
        replace(v, domain=_bounded(v.domain)) if v.target.name == name else v for v in model.spec.variables
    )
    if variables == model.spec.variables:
        return None
    spec = replace(model.spec, variables=variables)
    bounded = build(spec, model.source, parameters=model.parameters, base=model.base, files=model.files)
    return best_loss(bounded, Settings(alternatives=False))


def _bounded(domain: syntax.Domain | None) -> syntax.Domain | None:
    match domain:
        case syntax.Name(id="real"):
            return syntax.Interval(syntax.Number(Fraction(0)), syntax.Number(Fraction(1)))
        case syntax.Power(base=base):
            return replace(domain, base=_bounded(base) or base)
        case _:
            return domain


# --- the best of all that is offered ---------------------------------------------------------------


OPTIMAL = 1e-6
"""Share of a loss by which its bound may be lower, to be called optimal."""
COMPARED_SIZE = 600
"""Inputs and outputs together up to which mechanisms that the spec rules out are computed for comparison."""
FEW = 10
"""Outputs up to which they are, of however many inputs."""


@dataclass(frozen=True, eq=False, slots=True)
class Choice:
    """The mechanism chosen, and those it was compared with, best first."""

    chosen: Candidate
    others: tuple[Candidate, ...]


def choose(problem: Problem, *, pulling: bool = False) -> Choice | Infeasible:
    """The admissible mechanism of least loss; `pulling`: also among answers that are pulled towards public values.

    Returns: the choice, or why no allowed mechanism meets the requirements.
    Raises: SpecError PS0501 when a family asked for cannot be computed for these requirements yet.
    """
    model = problem.model
    inputs = {node.name for node in model.inputs}
    if problem.local and model.noise_at is not None and not set(model.noise_at) <= inputs:
        return local_conflict(problem, model.noise_at)
    found: list[Candidate] = []
    for candidate in _candidates(problem):
        if isinstance(candidate, Unprotectable):
            return explain_unprotectable(problem, candidate, tuple(model.noise_at or ()))
        found.append(candidate)
    if model.trust.shared:
        from privspec.families.gaussian.parties import in_shares  # few specs are of secure sums

        found = [own for own in (in_shares(problem, candidate) for candidate in found) if own is not None]
    offered, found = found, sorted(found, key=lambda c: c.loss)
    possible = [c for c in found if c.admissible and c.mechanism is not None]
    if possible:
        possible = _plainest_first(possible, offered)
    if problem.system.limits and possible:
        return _within_accuracy(problem, found, possible)
    if not possible:
        known = "laplace" not in model.families or any(p is not None for p in problem.epsilons)
        if model.families and known:
            return family_conflict(problem)
        _refuse(model)
    chosen = possible[0]
    wanted = problem.block.biased or (problem.settings.alternatives and not problem.lopsided)
    if pulling and not model.accuracy and wanted:
        from privspec.families.gaussian.pulled import RIGHT, pulled_candidates  # few losses are those at the worst data

        for one in pulled_candidates(problem, possible):
            if one.mechanism is not None:
                offered = [replace(own, reason=RIGHT) if own is chosen else own for own in offered]
                chosen = one
            offered.append(one)
    return Choice(chosen, tuple(sorted((c for c in offered if c is not chosen), key=lambda c: graded(c.loss, LISTED))))


def _refuse(model: Model) -> NoReturn:
    """Say why reports of finite values do not do either, where these are asked for, or that nothing is known.

    Raises: SpecError PS05xx.
    """
    from privspec.problem.frequencies import block_of, counted  # few specs are of parties

    if counted(model):
        block_of(model)
    refuse_missing(model)


def _plainest_first(possible: list[Candidate], offered: list[Candidate]) -> list[Candidate]:
    """Sorted candidates, but of losses that differ by what solvers leave the one offered first leads: it is plainer.

    First those that are shown to be as good as any.
    """
    near = [c for c in possible if c.loss <= possible[0].loss * (1 + OPTIMAL)]
    proved = [c for c in near if c.lower_bound is not None and c.lower_bound >= c.loss * (1 - OPTIMAL)]
    first = min(proved or near, key=offered.index)
    return [first, *(c for c in possible if c is not first)]


def _within_accuracy(problem: Problem, found: list[Candidate], possible: list[Candidate]) -> Choice | Infeasible:
    """The best mechanism that meets the accuracy lines; others lose their admissibility."""
    fine = {id(c) for c in possible if c.mechanism is not None and meets(problem, c.mechanism.release)}
    judged = [
        c
        if id(c) in fine
        else replace(c, admissible=False, reason="it misses an accuracy line, or is not known to meet it")
        for c in found
    ]
    kept = [c for c in judged if c.admissible]
    if possible[0] in kept:
        return Choice(possible[0], tuple(c for c in judged if c is not possible[0]))
    budgets = gaussian_budgets(problem)
    if budgets is None or problem.local or problem.model.noise_at is not None or not problem.family_allowed("gaussian"):
        if kept:
            return Choice(kept[0], tuple(c for c in judged if c is not kept[0]))
        epsilons = [epsilon for epsilon in problem.epsilons if epsilon is not None]
        if len(epsilons) == len(problem.epsilons):
            return pure_conflict(problem, epsilons, possible, partial(stepped_candidates, bounded=False))
        _refuse(problem.model)
    best: Candidate | Infeasible | None
    if problem.model.trust.shared:
        from privspec.families.gaussian.parties import within_limits_in_shares

        best = sized(problem, lambda own: within_limits_in_shares(own, budgets))
    else:
        best = sized(problem, lambda own: within_limits(own, budgets))
    if best is None or isinstance(best, Infeasible):
        return best or _refuse(problem.model)
    if kept and kept[0].loss <= best.loss:
        best, judged = kept[0], [best, *(c for c in judged if c is not kept[0])]
    return Choice(best, tuple(c for c in judged if c is not best))


def _candidates(problem: Problem) -> Iterator[Candidate | Unprotectable]:
    budgets = gaussian_budgets(problem)
    if problem.local and budgets is not None:
        yield from _alone(problem, budgets)
    losses = list[float]()
    for candidate in gaussian_candidates(problem):
        yield candidate
        if isinstance(candidate, Candidate) and candidate.admissible:
            losses.append(candidate.loss)
    yield from stepped_candidates(problem, least=min(losses, default=inf))
    gaussian = budgets is not None and problem.family_allowed("gaussian")
    wanted = problem.family_allowed(*(word for law in laws() if law.figures == ("epsilon",) for word in law.words))
    size = problem.system.outputs_count + problem.system.inputs_count
    if any(isinstance(view.differences, Streams) for view in problem.system.views):
        return  # of units that lie apart, or have vectors, Gaussian noise alone is bounded
    compared = size <= COMPARED_SIZE or problem.system.outputs_count <= FEW
    if (not gaussian and wanted) or (compared and (wanted or problem.settings.alternatives)):
        try:
            yield from pure_candidates(problem)
        except SolverError:
            if not gaussian:
                raise
            # Gaussian noise was found, and pure noise is only compared with it


def _alone(problem: Problem, budgets: tuple[float, ...]) -> Iterator[Candidate]:
    """Gaussian noise that parties draw alone: on each number, and on answers of their own."""
    from privspec.families.gaussian.parties import own_answers, own_numbers  # few specs are of parties

    together, rule = sized(problem, lambda own: own_answers(own, budgets)), problem.family_verdict("gaussian")
    try:
        found = sized(problem, lambda own: own_numbers(own, budgets, rule))
    except NotSpecialError:
        if together is None:
            raise
        # noise on each number of all parties is only compared with the best that each party can do
        yield together
        return
    yield from (found,) if together is None else (_as_good(found, together), together)


def _as_good(candidate: Candidate, best: Candidate) -> Candidate:
    """With the bound of the best, which is about more mechanisms, where it shows that the candidate is as good."""
    known = best.lower_bound is not None and best.lower_bound >= candidate.loss * (1 - OPTIMAL)
    if not known or candidate.mechanism is None or best.mechanism is None:
        return candidate
    mechanism = replace(candidate.mechanism, dual=best.mechanism.dual)
    return replace(candidate, lower_bound=best.lower_bound, among=best.among, mechanism=mechanism)


def best_loss(model: Model, settings: Settings) -> float | None:
    """The loss of the best admissible mechanism of a model, None if there is none."""
    system = lower(model)
    if isinstance(system, Infeasible):
        return None
    problem = Problem(model, system, replace(settings, alternatives=False, progress=None), best_loss)
    choice = choose(problem, pulling=True)
    return choice.chosen.loss if isinstance(choice, Choice) else None


# --- the plan -------------------------------------------------------------------------------------


def decided(problem: Problem, choice: Choice) -> Decided:
    """A choice as a decision; no mechanism that the plan names has less than its bound."""
    chosen, mechanism = choice.chosen, choice.chosen.mechanism
    if mechanism is None:
        raise InternalError("a classic cannot be executed")
    stated = Stated(problem, mechanism)

    def bound() -> float | None:
        """Of sizes of errors what the plan's witness shows."""
        if (problem.sizes or mechanism.release.shift is not None) and chosen.lower_bound is None:
            return None if stated.bound is None else stated.bound.value
        return chosen.lower_bound

    return Decided(
        problem.model,
        chosen.name,
        chosen.loss,
        partial(parts_of, stated),
        bound,
        units=_units(problem.model, sizes=problem.sizes),
        kind=kind_of(problem),
        others=tuple(one.compared for one in choice.others),
        scaled=partial(_scaled, problem, chosen.loss, mechanism.release),
        program=partial(chosen.program, lambda candidate: decided(problem, Choice(candidate, ()))),
    )


def kind_of(problem: Problem) -> str:
    """Which errors the loss is about."""
    return "worst" if problem.system.worst else "expected"


def _scaled(problem: Problem, loss: float, release: LinearRelease, factor: Fraction) -> float | None:
    """The loss if lines asked for so many times the mu or epsilon, of this noise scaled; None where unknown."""
    noise = release.noise
    if problem.system.limits or release.shift is not None:
        return None
    if isinstance(noise, Scaled | KNormHulls | KNormSwaps):  # what stands on a lattice stays there
        release = replace(release, noise=noise.times(1 / factor))
        if problem.sizes:
            return size_of(problem, release)
        return problem.loss_of_output_noise(release.noise_map(problem.system.target))
    if isinstance(noise, OfOneScale | KNormBlocks):
        return problem.scaled(loss, float(factor) ** -2)
    return None


def parts_of(stated: Stated) -> dict[str, Any]:
    """What a plan says of a mechanism, all figures as the kernel derives them."""
    problem, mechanism, release = stated.problem, stated.mechanism, stated.mechanism.release
    views = view_witnesses(problem, release, stated.release)
    amounts = achieved(problem, stated.frame, stated.release, views)
    loss, bound, covariance = stated.loss(), stated.bound, stated.covariance()
    moved = pulled(stated.release, stated.figures)
    said = release.noise.family, stated.sites(), write(stated.release), covariance, moved
    pairs = enumerate(zip(problem.model.requirements, amounts, strict=True))
    return {
        "problem": write(stated.frame),
        "value": loss,
        "bound": None if bound is None else bound.value,
        "among": "" if bound is None else bound.among,
        "mechanism": write(Additive(*(JsonNode(own, "mechanism") for own in said))),
        "guarantees": [_guarantee(line, number, release, figures) for number, (line, figures) in pairs],
        "accuracy": stated.accuracy(),
        "claims": {"views": views, "bound": None if bound is None else bound.witness},
        "remarks": {
            "binding": binding_prices(problem, mechanism, loss),
            "solver": {
                "name": mechanism.solver,
                "iterations": mechanism.iterations,
                "seconds": mechanism.seconds,
                "tolerance": problem.settings.tolerance,
                "notes": list(mechanism.notes),
            },
        },
    }


def _units(model: Model, *, sizes: bool) -> str:
    """A squared error has the squared units of what the loss compares, its size the units."""
    names = [o.name for o in model.outputs]
    return "squared " * (not sizes) + "units of " + " and ".join(names)


def _guarantee(
    requirement: Requirement, index: int, release: LinearRelease, figures: Mapping[str, Fraction]
) -> dict[str, Any]:
    units = units_of(requirement.neighbours, requirement.wrt)
    notes = *release.noise.notes, "post-processing", *notes_of(units)
    last = release.noise.figures[-1]
    return guarantee(requirement, index, {**figures, last: decimal_up(figures[last])}, notes)


# --- what lines cost ------------------------------------------------------------------------------


SLACK_SHARE = 1e-6
"""Share of the dual mass below which a requirement does not bind."""


RESOLVED = 4096
"""Entries of the map from inputs to outputs up to which a spec is solved again for each price."""


def binding_prices(problem: Problem, mechanism: Mechanism, loss: float) -> list[dict[str, Any]]:
    """For each requirement that binds, the relative change of the loss for a tenth more budget."""
    alone = len(problem.model.requirements) == 1 and not problem.system.limits and mechanism.release.shift is None
    if mechanism.release.noise.accounted and not problem.system.limits and mechanism.release.shift is None:
        return _of_laws(problem, loss)
    if not alone and problem.settings.alternatives and problem.system.target.size <= RESOLVED:
        return _solved_again(problem, loss)
    if mechanism.release.shift is not None:
        return []
    return _slopes(problem, mechanism, {} if alone else {"first_order": True})


def _of_laws(problem: Problem, loss: float) -> list[dict[str, Any]]:
    """By the law in steps for a tenth more of epsilon, where one line alone asks for it."""
    lines, found = problem.model.requirements, list[dict[str, Any]]()
    # where an amount alone is paid for, errors cost nothing
    for amount, more in increased(lines[0]) if len(lines) == 1 and loss else ():
        system = lower(replace(problem.model, requirements=(more,)))
        if not isinstance(system, Infeasible):
            changed = Problem(replace(problem.model, requirements=(more,)), system, problem.settings)
            found += [
                price(lines[0], after.loss / loss - 1, amount) for after in stepped_candidates(changed, bounded=False)
            ]
    return found


def _solved_again(problem: Problem, loss: float) -> list[dict[str, Any]]:
    found = []
    lines = problem.model.requirements
    for index, requirement in enumerate(lines):
        for amount, more in increased(requirement):
            changed = replace(problem.model, requirements=(*lines[:index], more, *lines[index + 1 :]))
            try:
                after = best_loss(changed, problem.settings)
            except (SolverError, PrivspecError):
                continue  # a price is a remark: the plan stands without it
            if after is not None and abs(after - loss) > SLACK_SHARE * loss:
                found.append(price(requirement, after / loss - 1, amount))
    return found


def _slopes(problem: Problem, mechanism: Mechanism, how: dict[str, Any]) -> list[dict[str, Any]]:
    """From the shares of the dual mass: d log loss / d log mu_o^2 = -p_o / sum p, by homogeneity.

    Exact where one requirement is all there is, a slope elsewhere. A bound that is not of the mechanism's own kind
    says nothing of its slope.
    """
    if mechanism.dual is None or mechanism.dual.point.limit_weights is not None:
        return []  # with accuracy lines that bind, the loss is no longer homogeneous in the budgets
    masses: dict[int, float] = {}
    for view, weights in zip(problem.system.views, mechanism.dual.point.weights, strict=True):
        masses[view.index] = masses.get(view.index, 0.0) + float(weights.sum())
    total, power = sum(masses.values()), 1 if problem.sizes else 2
    pure = not mechanism.release.noise.normal
    if how and pure:
        return []
    found = []
    for index, requirement in enumerate(problem.model.requirements):
        share = masses.get(index, 0.0) / total if total > 0 else 0.0
        if share <= SLACK_SHARE:
            continue
        for amount, more in increased(requirement):
            before, after = (
                r.measure.pure_epsilon if pure else r.measure.gaussian_mu_down() for r in (requirement, more)
            )
            if before is not None and after is not None:
                found.append(price(requirement, float(before / after) ** (power * share) - 1, amount) | how)
    return found
