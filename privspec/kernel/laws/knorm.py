"""K-norm noise: one vector of density ~ e^(-|v| / scale) in the Euclidean norm, rounded together with the answers.

Answers that move by d let through |d| / scale (Hardt & Talwar 2010; noise/notes/knorm-l2.md), whatever is rounded
afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privspec.kernel.changes import Units
from privspec.kernel.core.numbers import sqrt_up
from privspec.kernel.core.reading import Refused
from privspec.kernel.laws.law import Law, NoisyView
from privspec.kernel.losses import Loss, Response
from privspec.kernel.strategies.dense import Scaling


@dataclass(frozen=True, slots=True)
class KNorm(Law):
    """Whoever sees some answers is charged for all of them: the numbers of one vector are not independent."""

    scale: Fraction
    notes = ("laplace", "knorm-l2")
    joint = True

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise Refused("has noise of no size")

    def let_through(self, view: NoisyView, change: Units, scaling: list[Scaling] | None) -> Loss:
        epsilon = sqrt_up(view.strategy.quadratic_sensitivity(change, scaling), 100) / self.scale
        return Loss(factors=(Response(epsilon),)) if epsilon else Loss()
