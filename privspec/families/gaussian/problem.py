"""A linear system with the budgets of its requirements: what every mechanism of the linear family starts from."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from math import pi, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from privspec.core.records import dataclass, field, replace
from privspec.families.family import Settings
from privspec.model.graph import Model
from privspec.model.targets import meaning
from privspec.solvers.programs import Array, ExpectedLoss, View, WorstLoss

if TYPE_CHECKING:
    from privspec.families.gaussian.program import LinearSystem


NORMAL = sqrt(2 / pi)
"""The average size of a standard normal number."""
FORCED = "`noise at` rules it out"
LOCAL = "`trust nobody` rules it out"
TAILS = "the tail of its errors is not known to meet an accuracy line"


class Verdict(NamedTuple):
    """Whether the options of a spec allow a mechanism, and which rules it out."""

    admissible: bool = True
    reason: str = ""


@dataclass(eq=False)
class Problem:
    """The system, its model, and the Gaussian budget of each view (None where no Gaussian noise meets it).

    `best_loss` solves a changed spec, to price a way out where there is no mechanism.
    """

    model: Model
    system: LinearSystem
    settings: Settings = field(default_factory=Settings)
    best_loss: Callable[[Model, Settings], float | None] | None = None

    @cached_property
    def budgets(self) -> tuple[Fraction | None, ...]:
        """The largest mu that each view allows a Gaussian release, rounded down."""
        return tuple(view.requirement.measure.gaussian_mu_down() for view in self.system.views)

    @cached_property
    def epsilons(self) -> tuple[Fraction | None, ...]:
        """The pure epsilon that implies each view's requirement."""
        return tuple(view.requirement.measure.pure_epsilon for view in self.system.views)

    @property
    def local(self) -> bool:
        """Whether what each party sends is seen by all."""
        return self.model.trust.alone

    def senders(self, strategy: Array) -> Array:
        """How many parties send each answer of a strategy (k, n), with noise of their own: (k,); 1 at a curator."""
        if not self.local:
            return np.ones(len(strategy))
        copies, moved = self.system.lowered.layout.copies, strategy != 0
        return np.where(moved.any(axis=1), copies[moved.argmax(axis=1)], 1.0)

    @cached_property
    def through_inputs(self) -> bool:
        """Whether outputs are computed from noisy inputs: there are more of them, and each has one aim."""
        aimed = all(meaning(self.model, output.name) is not None for output in self.system.outputs)
        return self.system.outputs_count > self.system.inputs_count and aimed

    def family_allowed(self, *families: str) -> bool:
        """Whether the spec allows one of these noise families."""
        return not self.model.families or any(f in self.model.families for f in families)

    def family_verdict(self, *families: str) -> Verdict:
        """The same, with what rules them out: also lines with a probability, for noise whose tails are not known."""
        if "knorm" in families and any(limit.probability is not None for limit in self.system.lowered.limits):
            return Verdict(False, TAILS)
        if self.family_allowed(*families):
            return Verdict()
        return Verdict(False, f"`noise family {', '.join(self.model.families)}` rules it out")

    def verdict(self, families: tuple[str, ...], sites: set[str] | None, *, curator: bool = True) -> Verdict:
        """Whether the options allow noise of these families at these places, or just anywhere (None)."""
        found, forced = self.family_verdict(*families), self.model.noise_at
        if found.admissible and self.local and curator:
            return Verdict(False, LOCAL)
        if found.admissible and forced is not None and (sites is None or not sites <= set(forced)):
            return Verdict(False, FORCED)
        return found

    @cached_property
    def errors(self) -> Array:
        """Error terms as a function of the inputs (q, n): error_map @ target."""
        rows, target = self.system.error_map, self.system.target
        plain = rows.shape[0] == rows.shape[1] == rows.nnz and np.all(rows.diagonal() == 1.0)
        return target if plain else np.asarray(rows @ target)

    def views(self, budgets: tuple[float, ...]) -> tuple[View, ...]:
        """The views in the solvers' form, each divided by its budget."""
        from privspec.families.gaussian.program import (
            scaled_differences,  # tables need the settings of this module only
        )

        return tuple(
            View(view.rows, scaled_differences(view.differences, 1.0 / budget), view.requirement.text)
            for view, budget in zip(self.system.views, budgets, strict=True)
        )

    def loss(self, error_map: Array) -> ExpectedLoss | WorstLoss:
        """The loss over given error terms."""
        return WorstLoss(error_map, self.system.groups) if self.system.worst else ExpectedLoss(error_map)

    def total(self, rows: Array) -> float:
        """The loss of expected squares (q,) of the error terms."""
        if self.sizes:
            sizes = NORMAL * np.sqrt(rows)
            return float(sizes.max() if self.system.worst else sizes.sum())
        return float(WorstLoss(rows, self.system.groups).added(rows).max() if self.system.worst else rows.sum())

    def scaled(self, loss: float, factor: float) -> float:
        """A loss when all variances are so many times as large."""
        return loss * (sqrt(factor) if self.sizes else factor)

    @property
    def sizes(self) -> bool:
        """Whether sizes of normal errors are added up, and not their squares."""
        return self.system.lowered.errors.sizes

    @property
    def alone(self) -> bool:
        """Whether one error counts, or the largest: the root of squares has the same optimum."""
        return self.system.worst or self.system.error_map.shape[0] == 1

    def of_squares(self, weights: Array) -> Problem:
        """The same with squares of the errors, of these weights (q,), in place of sizes."""
        errors = replace(self.system.lowered.errors, weights=weights, sizes=False)
        lowered = replace(self.system.lowered, errors=errors)
        return replace(self, system=replace(self.system, lowered=lowered, error_map=errors.scaled.csr))

    def loss_of_output_noise(self, root: Array) -> float:
        """The loss when the output noise is root (m, k) times noise of unit variance."""
        rows = np.sum(np.asarray(self.system.error_map @ root) ** 2, axis=1)
        return self.total(rows)

    def loss_of_input_noise(self, variances: Array) -> float:
        """The loss when the inputs carry independent noise of these variances (n,)."""
        rows = self.errors**2 @ variances
        return self.total(rows)

    def proved(self, lower_bound: float) -> float:
        """What a solver's lower bound proves of the requirements as written, with room for the checker's rounding.

        Where a set of differences is larger than what neighbours can have, the dual point is listed at the size
        that they surely have, which divides the bound by the square of the factor.
        """
        cover = max((view.cover for view in self.system.views), default=1.0)
        return lower_bound * (1 - 1e-10) / cover**2
