"""What the finite family found: an exact table, what was chosen beside it, and the proof that no table is better."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privspec.compile.document import float_down
from privspec.compile.finite.program import Lowered
from privspec.compile.finite.system import Debiased, FiniteSystem, Key, slacks
from privspec.compile.finite.trials import Solver
from privspec.compile.finite.witness import boxes, keys, multipliers
from privspec.compile.problem import Settings
from privspec.model.graph import Model
from privspec.problem.table_forms import Variation
from privspec.problem.table_losses import Costs, fractions
from privspec.solvers.table_programs import (
    ExactTable,
    TableSolution,
)
from privspec.solvers.table_search_programs import DebiasedProgram, DebiasedSolution

ROOM = Fraction(1, 2**40)
"""Share of the loss by which a bound is stated below what its multipliers prove."""


@dataclass(frozen=True, slots=True)
class Ways:
    """What a decision leads to: its plan, and the loss of a changed spec."""

    plan: Callable[[TableDecision], dict[str, Any]]
    again: Solver


@dataclass(frozen=True, eq=False)
class TableDecision(ABC):
    """An exact table with the system that it solves."""

    model: Model
    system: FiniteSystem
    settings: Settings
    ways: Ways

    @property
    def name(self) -> str:
        """The mechanism in a few words."""
        rows, columns = self.system.shape
        return f"table of {rows} x {columns} probabilities"

    @property
    @abstractmethod
    def exact(self) -> ExactTable:
        """The table."""

    @property
    @abstractmethod
    def exact_loss(self) -> Fraction:
        """Its loss."""

    @property
    @abstractmethod
    def exact_bound(self) -> Fraction:
        """A certified bound on the loss of every table."""

    @property
    @abstractmethod
    def scalars(self) -> Mapping[str, Fraction]:
        """The numbers found beside the table, by name."""

    @abstractmethod
    def certificate(self) -> dict[str, Any]:
        """What a plan lists as proof of the bound."""

    @abstractmethod
    def solver(self) -> dict[str, Any]:
        """How it was found."""

    @property
    def loss(self) -> float:
        """The loss, as the nearest double."""
        return float(self.exact_loss)

    @property
    def lower_bound(self) -> float:
        """The bound, rounded down, with room for a checker that adds up and rounds multipliers in another order."""
        return float_down(self.exact_bound - ROOM * abs(self.exact_loss))

    def document(self) -> dict[str, Any]:
        """The plan."""
        return self.ways.plan(self)


@dataclass(frozen=True, eq=False)
class LinearTable(TableDecision):
    """The optimum of one linear program."""

    lowered: Lowered
    solution: TableSolution

    @property
    def exact(self) -> ExactTable:
        """The table."""
        return self.solution.exact

    @property
    def exact_loss(self) -> Fraction:
        """Its loss, with worst cases as they are and not as the scalars that stand for them."""
        return self.solution.value + self.system.offset - self._overstated

    @property
    def exact_bound(self) -> Fraction:
        """From the multipliers."""
        return self.solution.lower_bound + self.system.offset

    @property
    def _overstated(self) -> Fraction:
        """By how much the scalars that stand for worst cases and total variations exceed these, weighted."""
        scalars, over, loss = self.scalars, Fraction(0), self.system.loss
        for k, (weight, worst) in enumerate(self.system.worst):
            if f"worst:{k}" in scalars:
                over += weight * (scalars[f"worst:{k}"] - max(self._row_losses(k, worst)))
        prior = self.system.prior if self.system.prior is not None else ()
        for j, one in enumerate(loss.variations):
            law = fractions(one.law)
            for r, (share, true) in enumerate(zip(prior, reached(one, self.exact), strict=True)):
                stated = sum((scalars[name] for name in slacks(("loss", "mean", j), law, r).values()), Fraction(0))
                over += one.weight * share * (stated - true)
        return over

    def _row_losses(self, k: int, worst: Costs) -> list[Fraction]:
        """What stands in a worst case at each row."""
        exact, rows = self.exact, zip(worst, self.exact.numerators, strict=True)
        found = [sum((c * n for c, n in zip(*row, strict=True)), Fraction(0)) / exact.denominator for row in rows]
        for one in self.system.loss.worst[k].variations:
            found = [old + one.weight * more for old, more in zip(found, reached(one, exact), strict=True)]
        return found

    @property
    def scalars(self) -> Mapping[str, Fraction]:
        """Those of the program."""
        return dict(zip(self.lowered.program.extra.names, self.exact.extra, strict=True))

    def certificate(self) -> dict[str, Any]:
        """One dual point."""
        lowered = self.lowered
        rows = keys((*lowered.equalities, *lowered.inequalities))
        return multipliers(self.system, self.solution.dual, lowered.blocks, lowered.program.privacy, rows)

    def solver(self) -> dict[str, Any]:
        """Method, iterations, seconds."""
        found = self.solution
        return {
            "name": f"tables ({found.method})",
            "iterations": found.iterations,
            "seconds": found.seconds,
            "notes": list(found.notes),
        }


@dataclass(frozen=True, eq=False)
class DebiasedTable(TableDecision):
    """The best table, scale and background law for the loss of debiased estimates."""

    blocks: tuple[int, ...]
    debiased: Debiased
    program: DebiasedProgram
    solution: DebiasedSolution

    @property
    def exact(self) -> ExactTable:
        """The table."""
        return self.solution.exact

    @property
    def exact_loss(self) -> Fraction:
        """Its loss."""
        return self.solution.value + self.system.offset

    @property
    def exact_bound(self) -> Fraction:
        """From the cuts and the tree of boxes."""
        return self.solution.lower_bound + self.system.offset

    @property
    def scalars(self) -> Mapping[str, Fraction]:
        """Alpha and the masses of the law."""
        masses = zip(self.debiased.masses, self.solution.masses, strict=True)
        return {self.debiased.alpha: self.solution.alpha, **dict(masses)}

    def certificate(self) -> dict[str, Any]:
        """Dual points that bound the loss where they are used, and the tree of boxes that says where."""
        table, rows = self.system.table, range(self.system.shape[0])
        found: list[Key] = [("condition", k, r) for k in range(len(table.conditions)) for r in rows]
        found += [("law", law.name) for law in table.laws]
        found += [("mean", k) for k in self.program.means]
        found += keys(sorted(self.debiased.beside(self.system), key=lambda line: not line.equality))
        return boxes(self.system, self.solution, self.blocks, self.program.privacy, found)

    def solver(self) -> dict[str, Any]:
        """Method, iterations, seconds."""
        found = self.solution
        return {
            "name": "tables (search over the scale and the means)",
            "iterations": found.iterations,
            "seconds": found.seconds,
            "notes": list(found.notes),
        }


def reached(variation: Variation, exact: ExactTable) -> list[Fraction]:
    """The total variation in every row of a table."""
    found = []
    for numerators, law in zip(exact.numerators, fractions(variation.law), strict=True):
        mass = [0] * len(law)
        for c, o in enumerate(variation.values):
            mass[o] += numerators[c]
        gaps = (Fraction(m, exact.denominator) - chance for m, chance in zip(mass, law, strict=True))
        found.append(sum((gap for gap in gaps if gap > 0), Fraction(0)))
    return found
