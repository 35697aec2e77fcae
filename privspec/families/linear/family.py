"""The linear family: answers that are linear in the data, with unbiased additive noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from privspec.core.records import dataclass, replace
from privspec.families.decision import Decision, Infeasible, Unbounded
from privspec.families.family import Settings, Work
from privspec.families.linear.choose import Choice, best_loss, choose
from privspec.families.linear.priced import priced
from privspec.families.linear.problem import Problem
from privspec.families.linear.program import LinearSystem, lower
from privspec.families.linear.raising import raise_plan
from privspec.families.linear.sizes import size_of
from privspec.language import syntax
from privspec.model.graph import Model
from privspec.noise.gaussian import GaussianNoise
from privspec.noise.knorm import KNormL2Noise
from privspec.noise.laplace import LaplaceNoise
from privspec.problem.linear_interpreter import unsupported

BYTES, SECONDS = 600, 2.5e-5
"""Of an entry of a square matrix, as measured of running totals of 256 to 800 numbers.

Twenty matrices of doubles are there at once while noise is sought (target, errors, their products and roots, the
strategy and its inverse, and copies), and then the exact numbers of the plan, of some 50 bytes each, in the text, in
what is read of it, and in the products by which it is checked. The seconds are those of the check
alone: the search for noise takes longer yet where there are many.
"""


@dataclass(frozen=True, eq=False, slots=True)
class LinearDecision:
    """A chosen release with its problem."""

    problem: Problem
    choice: Choice

    @property
    def name(self) -> str:
        return self.choice.chosen.name

    @property
    def loss(self) -> float:
        return self.choice.chosen.loss

    @property
    def lower_bound(self) -> float | None:
        """No mechanism that the plan names has less; of sizes of errors what the plan's witness shows."""
        if self.problem.sizes and self.choice.chosen.lower_bound is None:
            bound: float | None = self.document()["loss"]["lower_bound"]
            return bound
        return self.choice.chosen.lower_bound

    def scaled(self, factor: Fraction) -> float | None:
        """The loss if lines asked for so many times the mu or epsilon, of this noise scaled; None where unknown."""
        problem, mechanism = self.problem, self.choice.chosen.mechanism
        if mechanism is None or problem.system.limits:
            return None
        release, noise = mechanism.release, mechanism.release.noise
        if isinstance(noise, LaplaceNoise):  # what stands on a lattice stays there
            noise = LaplaceNoise(tuple(b / factor for b in noise.scales))
            release = replace(release, noise=noise)
            if problem.sizes:
                return size_of(problem, release)
            return problem.loss_of_output_noise(
                release.output_map(problem.system.target) * np.sqrt(release.row_variances())
            )
        if isinstance(noise, (GaussianNoise, KNormL2Noise)):
            return problem.scaled(self.loss, float(factor) ** -2)
        return None

    def document(self) -> dict[str, Any]:
        return raise_plan(self.problem, self.choice.chosen, self.choice.others)


class Linear:
    """Takes every spec that no other family takes: what it cannot compute it refuses with a reason."""

    def lower(self, model: Model) -> LinearSystem | Infeasible:
        """The linear system."""
        if model.loss is None:
            raise unsupported(
                model.source, model.spec.span, "there is no loss to minimise", "PS0504", "add a loss: section"
            )
        found = lower(model)
        if not isinstance(found, Unbounded):
            return found
        (bound,) = found.relaxations
        return replace(found, relaxations=(replace(bound, loss=_loss_in_unit_box(model, found.input)),))

    def decide(self, model: Model, system: LinearSystem, settings: Settings) -> LinearDecision | Infeasible:
        """The admissible release of least loss."""
        problem = Problem(model, system, settings, best_loss)
        found = choose(problem)
        return found if isinstance(found, Infeasible) else LinearDecision(problem, found)

    def priced(self, model: Model, settings: Settings) -> Decision | Infeasible:
        """The least cost of an amount of privacy that a spec leaves open."""
        return priced(model, settings)

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
