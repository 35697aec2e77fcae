"""Noise in steps on one answer: a law on the cells of a lattice, of whole weights and tails that fall by a ratio.

What it lets through at its own epsilon, of answers that are at most so many steps apart, is worked out cell by cell and
counts as a lump of delta (noise/notes/stepped.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from privspec.kernel.changes import Units
from privspec.kernel.laws.law import Law, NoisyView
from privspec.kernel.losses import Loss, Response
from privspec.kernel.stepped import Stepped
from privspec.kernel.strategies.dense import Scaling


@dataclass(frozen=True, slots=True)
class Staircase(Law):
    """The law of the one answer: what it lets through of moves in several does not follow from their sum."""

    law: Stepped
    notes = ("stepped",)

    @property
    def answers(self) -> int:
        return 1

    def let_through(self, view: NoisyView, change: Units, scaling: list[Scaling] | None) -> Loss:
        rounding, steps = view.rounding(), [view.lattice.grid] * len(view.rows)
        cost = view.seen.absolute_sensitivity(steps, rounding, change, view.lattice.shared)
        apart = 1 if any(rounding) else view.lattice.together(view.strategy, change)
        return Loss(factors=(Response(self.law.epsilon),), delta=self.law.delta_up(int(cost), apart))
