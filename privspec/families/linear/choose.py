"""Rank what every mechanism offers and take the best that the options allow."""

from __future__ import annotations

from collections.abc import Iterator

from privspec.core.records import dataclass, replace
from privspec.core.rounding import LISTED, graded
from privspec.families.decision import Infeasible
from privspec.families.family import Settings
from privspec.families.linear.accuracy import meets, pure_conflict, within_limits
from privspec.families.linear.gaussian import gaussian_budgets, gaussian_candidates
from privspec.families.linear.problem import Problem
from privspec.families.linear.program import lower
from privspec.families.linear.pure import pure_candidates
from privspec.families.linear.release import Candidate
from privspec.families.linear.sizes import sized
from privspec.families.linear.unprotectable import family_conflict, local_conflict
from privspec.model.graph import Model
from privspec.problem.linear_differences import StreamDifferences
from privspec.problem.linear_supported import refuse_missing
from privspec.solvers.programs import NotSpecialError, SolverError

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


def choose(problem: Problem) -> Choice | Infeasible:
    """The admissible mechanism of least loss.

    Returns: the choice, or why no allowed mechanism meets the requirements.
    Raises: SpecError PS0501 when a family asked for cannot be computed for these requirements yet.
    """
    model = problem.model
    inputs = {node.name for node in model.inputs}
    if problem.local and model.noise_at is not None and not set(model.noise_at) <= inputs:
        return local_conflict(problem, model.noise_at)
    found: list[Candidate] = []
    for candidate in _candidates(problem):
        if isinstance(candidate, Infeasible):
            return candidate
        found.append(candidate)
    if model.trust.shared:
        from privspec.families.linear.shares import in_shares  # few specs are of secure sums

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
        refuse_missing(model)
    chosen = possible[0]
    return Choice(chosen, tuple(sorted((c for c in offered if c is not chosen), key=lambda c: graded(c.loss, LISTED))))


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
            return pure_conflict(problem, epsilons, possible)
        refuse_missing(problem.model)
    best: Candidate | Infeasible | None
    if problem.model.trust.shared:
        from privspec.families.linear.shares import within_limits_in_shares

        best = sized(problem, lambda own: within_limits_in_shares(own, budgets))
    else:
        best = sized(problem, lambda own: within_limits(own, budgets))
    if best is None or isinstance(best, Infeasible):
        return best or refuse_missing(problem.model)
    if kept and kept[0].loss <= best.loss:
        best, judged = kept[0], [best, *(c for c in judged if c is not kept[0])]
    return Choice(best, tuple(c for c in judged if c is not best))


def _candidates(problem: Problem) -> Iterator[Candidate | Infeasible]:
    budgets = gaussian_budgets(problem)
    if problem.local and budgets is not None:
        yield from _alone(problem, budgets)
    yield from gaussian_candidates(problem)
    if problem.system.outputs_count == 1:
        from privspec.families.linear.stepped import stepped_candidates  # most specs are of several numbers

        yield from stepped_candidates(problem)
    gaussian = budgets is not None and problem.family_allowed("gaussian")
    wanted = problem.family_allowed("laplace", "geometric", "knorm")
    size = problem.system.outputs_count + problem.system.inputs_count
    if any(isinstance(view.exact, StreamDifferences) for view in problem.system.views):
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
    from privspec.families.linear.local import own_answers, own_numbers  # few specs are of parties

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
    choice = choose(Problem(model, system, replace(settings, alternatives=False, progress=None), best_loss))
    return choice.chosen.loss if isinstance(choice, Choice) else None
