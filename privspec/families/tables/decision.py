"""What was found: an exact table, what was chosen beside it, and the multipliers that prove that none is better."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import repeat
from math import exp, lcm
from typing import Any

import numpy as np

from privspec.families.document import float_down
from privspec.families.family import Settings
from privspec.families.tables.changes import Solver
from privspec.families.tables.program import Lowered
from privspec.families.tables.system import Debiased, Electorate, FiniteSystem, Key, LinearLine, slacks
from privspec.model.graph import Model
from privspec.problem.table_forms import Amount, Variation
from privspec.problem.table_losses import Costs, fractions
from privspec.solvers.programs import Array
from privspec.solvers.table_programs import (
    CompleteDual,
    CompleteRatio,
    ExactTable,
    PairDual,
    Privacy,
    TableDual,
    TableSolution,
    violations,
)
from privspec.solvers.table_search_programs import DebiasedProgram, DebiasedSolution, SearchSplit


def target_itself(system: FiniteSystem, lowered: Lowered) -> TableSolution | None:
    """The law that the loss compares the output with, where the loss is nothing else and every line allows it."""
    loss = system.loss
    costs = [] if loss.average is None else [loss.average]
    costs += [worst.costs for worst in loss.worst]
    apart = (*loss.variations, *(one for worst in loss.worst for one in worst.variations))
    if not apart or system.lines or system.scalars or any(any(cost.entries) for cost in costs):
        return None
    values, laws = apart[0].values, fractions(apart[0].law)
    if len(set(values)) < len(values) or any(sum(law) != 1 for law in laws):
        return None
    if any(one.law != apart[0].law or one.values != values for one in apart):
        return None
    whole = lcm(*(chance.denominator for law in laws for chance in law))
    rows = tuple(tuple(int(law[o] * whole) for o in values) for law in laws)
    program = lowered.program
    exact = ExactTable(rows, whole, (Fraction(0),) * len(program.extra))
    if violations(program, exact):
        return None
    none = (np.zeros(len(lines)) for lines in (lowered.equalities, lowered.inequalities))
    dual = TableDual(tuple(_nothing(block, program.shape) for block in program.privacy), *none)
    zero = Fraction(0)
    return TableSolution(exact.to_array(), 0.0, exact, zero, zero, dual, "the law itself", 0, 0, 0.0)


def _nothing(block: Privacy, shape: tuple[int, int]) -> CompleteDual | PairDual:
    """No multipliers."""
    if isinstance(block, CompleteRatio):
        return CompleteDual(np.zeros(shape), np.zeros(shape))
    none = np.zeros(0, dtype=np.intp)
    return PairDual(none, none, np.zeros(0))


Values = Mapping[Key, tuple[float, bool]]
"""Multipliers of lines by where these come from, and whether the line is an equality."""


def multipliers(
    system: FiniteSystem, dual: TableDual, blocks: Sequence[int], privacy: Sequence[Privacy], lines: Sequence[Key]
) -> dict[str, Any]:
    """The witness of one dual point; `lines` are the keys of its rows, equalities first."""
    values = _values(dual, lines)
    return {"loss": _tangent(system, ("loss",), system.loss, values, 1.0, dual.loss_weights)} | _terms(
        system, dual, blocks, privacy, values
    )


def boxes(
    system: FiniteSystem,
    found: DebiasedSolution,
    blocks: Sequence[int],
    privacy: Sequence[Privacy],
    lines: Sequence[Key],
) -> dict[str, Any]:
    """The witness of a search: cuts, and the tree of boxes that says where each is used."""
    cuts = []
    for cut in found.cuts:
        values = _values(cut.dual, lines)
        means = [[key[1], -value] for key, (value, _) in values.items() if key[0] == "mean" and value]
        head = {"empty": cut.empty, "means": means}
        cuts.append(head | _terms(system, cut.dual, blocks, privacy, values))
    tree = [
        {"coordinate": item.coordinate, "at": item.at} if isinstance(item, SearchSplit) else item for item in found.tree
    ]
    return {"cuts": cuts, "tree": tree}


def _values(dual: TableDual, lines: Sequence[Key]) -> Values:
    equal = dual.equalities.tolist()
    every = [(value, True) for value in equal] + [(value, False) for value in dual.inequalities.tolist()]
    return dict(zip(lines, every, strict=True))


def _of(values: Values, word: str) -> Iterable[tuple[tuple[Any, ...], float]]:
    """The places of some lines with what their differences are multiplied with: those of equalities are subtracted."""
    for key, (value, equality) in values.items():
        if key[0] == word and value:
            yield key[1:], -value if equality else value


def _terms(
    system: FiniteSystem, dual: TableDual, blocks: Sequence[int], privacy: Sequence[Privacy], values: Values
) -> dict[str, Any]:
    table = system.table
    pairs: dict[tuple[int, ...], float] = defaultdict(float)
    for index, part, block in zip(blocks, dual.privacy, privacy, strict=True):
        for at, value in _pairs(part, block):
            pairs[index, *at] += value
    first = len(table.compared)
    for (k, row, ballot, lie, chosen), value in _of(values, "lie"):
        lied = Electorate(table.manipulation[k]).lied(row, ballot, lie)
        for a in (a for a in range(table.manipulation[k].alternatives) if chosen >> a & 1):
            pairs[first + k, *((lied, row) if value > 0 else (row, lied)), a] += abs(value)
    first += len(table.manipulation)
    for (k, number, seen), value in _of(values, "fairness"):
        if seen != "total":
            a, b, _ = table.fairness[k].pairs.entries[3 * number : 3 * number + 3]
            pairs[first + k, *((a, b) if value > 0 else (b, a)), seen] += abs(value)
    accuracy = []
    for k, line in enumerate(table.accuracy):
        rows = {at[1:]: value for at, value in _of(values, "accuracy") if at[0] == k}
        total = sum(rows.values())
        if total:
            weights = np.array([rows.get((r,), 0.0) for r in range(system.shape[0])])
            tangent = _tangent(system, ("accuracy", k), line.amount, values, total, weights)
            accuracy.append({"line": k, "multiplier": total, "tangent": tangent})
    return {
        "pairs": [[*at, value] for at, value in pairs.items()],
        "conditions": [[*at, value] for at, value in _of(values, "condition")],
        "accuracy": accuracy,
    }


def _tangent(
    system: FiniteSystem, where: Key, amount: Amount, values: Values, factor: float, weights: Array | None
) -> dict[str, Any]:
    """An affine function below an amount: weights of rows, and shares of what is drawn too often."""
    rows = system.shape[0]
    worst: list[list[float]] = []
    for k in range(len(amount.worst)):
        found = weights if weights is not None else np.array([values[("worst", k, r)][0] for r in range(rows)])
        positive = np.maximum(np.asarray(found, dtype=float), 0.0)
        worst.append((positive if positive.any() else np.ones(rows)).tolist())
    shares = []
    for key, (value, _) in values.items():
        if key[0] != "apart" or key[1 : 1 + len(where)] != where or not value > 0:
            continue
        place: Any = key[1 + len(where) :]
        kind, j, row, o = place
        if kind == "mean":
            prior = system.prior
            whole = 0.0 if prior is None else float(prior[row]) * float(amount.variations[j].weight)
            number = 0
        else:
            part = worst[kind][row] / sum(worst[kind])
            whole = part * float(amount.worst[kind].weight * amount.worst[kind].variations[j].weight)
            number = kind + 1
        if whole:
            shares.append([number, j, row, o, min(1.0, value / (whole * factor))])
    return {"worst": worst, "shares": shares}


def _pairs(part: Any, block: Privacy) -> Iterator[tuple[tuple[int, int, int], float]]:
    """Rows a and b and what is seen, with the multiplier of f_a <= R f_b there."""
    if isinstance(part, PairDual):
        assert not isinstance(block, CompleteRatio)
        listed = zip(block.pairs[part.pairs].tolist(), part.columns.tolist(), part.values.tolist(), strict=True)
        yield from (((a, b, seen), value) for (a, b), seen, value in listed if value > 0)
        return
    assert isinstance(block, CompleteRatio)
    # f_a <= R m <= R f_b: what is above and what is below the least law m, pair by pair
    for seen, (above, below) in enumerate(zip(part.above.T, part.below.T / exp(block.log_ratio), strict=True)):
        tops, bottoms = (np.cumsum(one - np.minimum(above, below)) for one in (above, below))
        ends = np.union1d(tops, bottoms)
        ends = ends[(ends > 0) & (ends <= min(tops[-1], bottoms[-1]))]
        first, second = (np.searchsorted(one, ends).tolist() for one in (tops, bottoms))
        yield from zip(zip(first, second, repeat(seen), strict=False), np.diff(ends, prepend=0.0).tolist(), strict=True)


def keys(lines: Iterable[LinearLine]) -> list[Key]:
    """Where lines come from."""
    return [line.key for line in lines]


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
