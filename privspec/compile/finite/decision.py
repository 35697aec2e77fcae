"""What the finite family found: an exact table, what was chosen beside it, and the proof that no table is better."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privspec.compile.document import float_down, float_up
from privspec.compile.finite.program import Lowered
from privspec.compile.finite.system import Costs, Debiased, FiniteSystem
from privspec.compile.problem import Settings
from privspec.model.graph import Model
from privspec.solvers.programs import Array
from privspec.solvers.table_programs import (
    CompleteDual,
    CompleteRatio,
    ExactTable,
    Privacy,
    TableDual,
    TableSolution,
)
from privspec.solvers.table_search_programs import DebiasedProgram, DebiasedSolution, SearchSplit

ROOM = Fraction(1, 2**40)
"""Share of the loss by which a bound is stated below what its multipliers prove."""


@dataclass(frozen=True, eq=False)
class TableDecision(ABC):
    """An exact table with the system that it solves."""

    model: Model
    system: FiniteSystem
    settings: Settings

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
        """The loss, rounded up."""
        return float_up(self.exact_loss)

    @property
    def lower_bound(self) -> float:
        """The bound, rounded down, with room for a checker that adds up and rounds multipliers in another order."""
        return float_down(self.exact_bound - ROOM * abs(self.exact_loss))

    def document(self) -> dict[str, Any]:
        """The plan."""
        from privspec.compile.finite.raising import raise_table

        return raise_table(self)


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
        scalars, over = self.scalars, Fraction(0)
        for k, (weight, worst) in enumerate(self.system.worst):
            if f"worst:{k}" in scalars:
                over += weight * (scalars[f"worst:{k}"] - max(self._row_losses(k, worst)))
        prior = self.system.worlds.prior or ()
        for gap in (gap for gap in self.system.apart if gap.worst is None):
            for r, (share, reached) in enumerate(zip(prior, gap.reached(self.exact), strict=True)):
                slacks = sum((scalars[name] for name in gap.slacks(r)), Fraction(0))
                over += gap.weight * share * (slacks - reached)
        return over

    def _row_losses(self, k: int, worst: Costs) -> list[Fraction]:
        """What stands in a worst case at each row."""
        exact, rows = self.exact, zip(worst, self.exact.numerators, strict=True)
        found = [sum((c * n for c, n in zip(*row, strict=True)), Fraction(0)) / exact.denominator for row in rows]
        for gap in (gap for gap in self.system.apart if gap.worst == k):
            found = [old + gap.weight * more for old, more in zip(found, gap.reached(exact), strict=True)]
        return found

    @property
    def scalars(self) -> Mapping[str, Fraction]:
        """Those of the program."""
        return dict(zip(self.lowered.program.extra.names, self.exact.extra, strict=True))

    def certificate(self) -> dict[str, Any]:
        """One dual point."""
        names = [line.name for line in (*self.lowered.equalities, *self.lowered.inequalities)]
        dual = dual_json(self.solution.dual, self.lowered.blocks, self.lowered.program.privacy, names)
        return {"kind": "table", "scope": "tables", "lower_bound": self.lower_bound, "dual": dual}

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
    def debiased(self) -> Debiased:
        """What is estimated."""
        assert self.system.debiased is not None
        return self.system.debiased

    @property
    def scalars(self) -> Mapping[str, Fraction]:
        """Alpha and the masses of the law."""
        labels = self.system.laws.get(self.debiased.law or "", ())
        names = (f"{self.debiased.law}:{label}" for label in labels)
        return {self.debiased.alpha: self.solution.alpha, **dict(zip(names, self.solution.masses, strict=True))}

    def certificate(self) -> dict[str, Any]:
        """Dual points that bound the loss where they are used, and the tree of boxes that says where."""
        names = self._row_names()
        return {
            "kind": "search",
            "scope": "tables",
            "lower_bound": self.lower_bound,
            "cuts": [
                {"empty": cut.empty, "dual": dual_json(cut.dual, self.blocks, self.program.privacy, names)}
                for cut in self.solution.cuts
            ],
            "tree": [
                {"coordinate": item.coordinate, "at": item.at} if isinstance(item, SearchSplit) else item
                for item in self.solution.tree
            ],
        }

    def _row_names(self) -> list[str]:
        """Names of the rows of `DebiasedProgram.program`."""
        moments, rows = self.debiased.moments, len(self.system.worlds.rows)
        names = [f"condition:{moment.line}:{r}" for moment in moments for r in range(rows)]
        names += [f"law:{self.debiased.law}"] if self.program.values else []
        names += [f"mean:{moments[k].line}" for k in self.program.means]
        further = [line for line in self.system.lines if line.name.partition(":")[0] not in ("condition", "law")]
        return names + [line.name for line in sorted(further, key=lambda line: not line.equality)]

    def solver(self) -> dict[str, Any]:
        """Method, iterations, seconds."""
        found = self.solution
        return {
            "name": "tables (search over the scale and the means)",
            "iterations": found.iterations,
            "seconds": found.seconds,
            "notes": list(found.notes),
        }


# --- dual points ----------------------------------------------------------------------------------


def dual_json(
    dual: TableDual, blocks: Sequence[int], privacy: Sequence[Privacy], names: Sequence[str]
) -> dict[str, Any]:
    """A dual point by requirement and by the names of rows."""
    values = (*dual.equalities.tolist(), *dual.inequalities.tolist())
    return {
        "privacy": [
            {"requirement": index} | _block_json(part, block)
            for index, part, block in zip(blocks, dual.privacy, privacy, strict=True)
        ],
        "rows": {name: value for name, value in zip(names, values, strict=True) if value},
        "loss_weights": None if dual.loss_weights is None else dual.loss_weights.tolist(),
    }


def _block_json(part: Any, block: Privacy) -> dict[str, Any]:
    if isinstance(part, CompleteDual):
        return {"form": "complete", "below": _sparse(part.below), "above": _sparse(part.above)}
    assert not isinstance(block, CompleteRatio)
    entries = zip(block.pairs[part.pairs].tolist(), part.columns.tolist(), part.values.tolist(), strict=True)
    return {"form": "pairs", "entries": [[a, b, s, v] for (a, b), s, v in entries if v > 0]}


def _sparse(matrix: Array) -> list[list[Any]]:
    return [[int(r), int(s), float(matrix[r, s])] for r, s in np.argwhere(matrix > 0)]
