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
from privspec.compile.finite.system import Debiased, FiniteSystem, LinearLine, slacks
from privspec.compile.problem import Settings
from privspec.model.graph import Model
from privspec.problem.table_forms import Variation
from privspec.problem.table_losses import Costs, fractions
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
        names = [old_name(self.system, line) for line in (*self.lowered.equalities, *self.lowered.inequalities)]
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
        names += [f"law:{law.name}" for law in self.system.table.laws]
        names += [f"mean:{moments[k].line}" for k in self.program.means]
        further = sorted(self.debiased.beside(self.system), key=lambda line: not line.equality)
        return names + [old_name(self.system, line) for line in further]

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


def old_name(system: FiniteSystem, line: LinearLine) -> str:
    """The name of a line in certificates."""
    key: Any = line.key
    word, *rest = key
    table = system.table
    if word in ("law", "worst"):
        return ":".join(map(str, line.key))
    if word == "apart":
        where = [rest[0], rest[2]] if rest[0] == "loss" else [table.accuracy[rest[1]].line, rest[3]]
        return ":".join(map(str, ["apart", *where, *rest[-2:]]))
    lines: dict[str, Any] = {"condition": table.conditions, "accuracy": table.accuracy, "lie": table.manipulation}
    if word == "fairness":
        fair = table.fairness[rest[0]]
        a, b, _ = fair.pairs.entries[3 * rest[1] : 3 * rest[1] + 3]
        roots = sorted(
            {
                x
                for x, y, _ in zip(*[iter(fair.pairs.entries)] * 3, strict=True)
                if not any(z == x for _, z, _ in zip(*[iter(fair.pairs.entries)] * 3, strict=True))
            }
        )
        from privspec.model.requirements import Requirement

        lipschitz = isinstance(system.model.fairness[rest[0]], Requirement)
        g = 0 if lipschitz else max(i for i, x in enumerate(roots) if x <= a)
        first = 0 if lipschitz else roots[g]
        return f"fairness:{fair.line}:{g}:{a - first}:{b - first}:{rest[2]}"
    return ":".join(map(str, [word, lines[word][rest[0]].line, *rest[1:]]))


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
