"""The best table: what is solved, an exact table with what is chosen beside it, and the multipliers that prove it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import repeat
from math import exp, lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from privspec.core.diagnostics import SpecError
from privspec.core.records import dataclass, replace
from privspec.families.decision import Infeasible, conflict_line, float_down
from privspec.families.family import Settings
from privspec.families.tables.system import (
    Key,
    Lowered,
    TableSystem,
    TooManyError,
    linear_rows,
    to_program,
)
from privspec.kernel.core.problem import Frame, read_frame
from privspec.kernel.core.reading import JsonNode, Refused, read
from privspec.kernel.tables import TableBound
from privspec.kernel.tables_forms import Amount, Task
from privspec.kernel.terms import Table as Executed
from privspec.kernel.writing import write
from privspec.model.graph import Model
from privspec.model.worlds import Worlds, worlds
from privspec.problem.elaborate import Problem
from privspec.problem.table_forms import laws_of
from privspec.solvers.programs import Array, SolverError
from privspec.solvers.table_divergences import CurveDual, CurveRatio
from privspec.solvers.table_programs import (
    CompleteDual,
    CompleteRatio,
    ExactTable,
    InfeasibleTable,
    PairDual,
    Privacy,
    TableDual,
    TableSolution,
    valid,
)
from privspec.solvers.tables import solve_table

if TYPE_CHECKING:
    from privspec.solvers.table_search_programs import DebiasedProgram, DebiasedSolution


def target_itself(system: TableSystem, lowered: Lowered) -> TableSolution | None:
    """The law that the loss compares the output with, where the loss is nothing else and every line allows it."""
    loss = system.loss
    costs = [] if loss.average is None else [loss.average]
    costs += [worst.costs for worst in loss.worst]
    apart = (*loss.variations, *(one for worst in loss.worst for one in worst.variations))
    if not apart or system.stated or system.mixtures or any(any(cost.entries) for cost in costs):
        return None
    values, laws = apart[0].values, laws_of(apart[0])
    if len(set(values)) < len(values) or any(sum(law) != 1 for law in laws):
        return None
    if any(one.laws != apart[0].laws or one.values != values for one in apart):
        return None
    whole = lcm(*(chance.denominator for law in laws for chance in law))
    rows = tuple(tuple(int(law[o] * whole) for o in values) for law in laws)
    program = lowered.program
    exact = ExactTable(rows, whole, (Fraction(0),) * len(program.extra))
    if not valid(program, exact):
        return None
    none = (np.zeros(len(rows.bounds)) for rows in (program.equalities, program.inequalities))
    dual = TableDual(tuple(_nothing(block, program.shape) for block in program.privacy), *none)
    return TableSolution(program, exact.to_array(), 0.0, lambda: exact, dual, "the law itself", 0, 0, 0.0)


def _nothing(block: Privacy, shape: tuple[int, int]) -> CompleteDual | PairDual | CurveDual:
    """No multipliers."""
    if isinstance(block, CompleteRatio):
        return CompleteDual(np.zeros(shape), np.zeros(shape))
    if isinstance(block, CurveRatio):
        return CurveDual(())
    none = np.zeros(0, dtype=np.intp)
    return PairDual(none, none, np.zeros(0))


EMPTY = 2.0**100
"""Multiple of what is at most 0 for every table, in boxes where it is above."""
Values = Mapping[Key, tuple[float, bool]]
"""Multipliers of lines by where these come from, and whether the line is an equality."""


def _values(dual: TableDual, lines: Sequence[Key]) -> Values:
    equal = dual.equalities.tolist()
    every = [(value, True) for value in equal] + [(value, False) for value in dual.inequalities.tolist()]
    return dict(zip(lines, every, strict=True))


def _of(values: Values, word: str) -> Iterable[tuple[tuple[Any, ...], float]]:
    """The places of some lines with what their differences are multiplied with: those of equalities are subtracted."""
    for key, (value, equality) in values.items():
        if key[0] == word and value:
            yield key[1:], -value if equality else value


def _terms(system: TableSystem, dual: TableDual, values: Values) -> dict[str, Any]:
    """The witness of one dual point, but for the tangent of the loss."""
    table = system.table
    pairs: dict[tuple[int, ...], float] = defaultdict(float)
    supports: list[list[Any]] = []
    for (index, block), part in zip(system.privacy, dual.privacy, strict=True):
        if isinstance(part, CurveDual):
            supports += [[index, *one.rows, one.level, one.multiplier, one.at.tolist()] for one in part.supports]
            continue
        start = system.requested[index].first
        for (a, b, seen), value in _pairs(part, block):
            pairs[index, a - start, b - start, seen] += value
    first = len(table.compared)
    for (k, lied, row, chosen), value in _of(values, "lie"):
        for a in (a for a in range(table.manipulation[k].alternatives) if chosen >> a & 1):
            pairs[first + k, *((lied, row) if value > 0 else (row, lied)), a] += abs(value)
    first += len(table.manipulation)
    apart: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
    for (k, number, seen), value in _of(values, "fairness"):
        if seen != "total":
            apart[k, number][seen] = value
    for (k, number), own in apart.items():
        a, b, _ = table.fairness[k].pairs.entries[3 * number : 3 * number + 3]
        count = max(table.table((), 1).view(table.fairness[k].outputs)) + 1
        # laws sum to one: multipliers of all values may rise together until none is below zero
        low = min(0.0, *own.values())
        pairs |= {(first + k, a, b, seen): own.get(seen, 0.0) - low for seen in range(count)}
    accuracy = []
    for k, line in enumerate(table.accuracy):
        rows = {at[1:]: value for at, value in _of(values, "accuracy") if at[0] == k}
        total = sum(rows.values())
        if total:
            weights = np.array([rows.get((r,), 0.0) for r in range(system.shape[0])])
            tangent = _tangent(system, ("accuracy", k), line.amount, values, total, weights)
            accuracy.append({"line": k, "multiplier": total, "tangent": tangent})
    return {
        "pairs": [[*at, value] for at, value in pairs.items() if value],
        "conditions": [[*at, value] for at, value in _of(values, "condition")],
        "accuracy": accuracy,
    } | ({"supports": supports} if supports else {})


def _tangent(
    system: TableSystem, where: Key, amount: Amount, values: Values, factor: float, weights: Array | None
) -> dict[str, Any]:
    """An affine function below an amount: weights of rows, and shares of what is drawn too often."""
    rows = system.shape[0]
    worst: list[list[float]] = []
    for k in range(len(amount.worst)):
        found = weights[:rows] if weights is not None else np.array([values[("worst", k, r)][0] for r in range(rows)])
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


CLOSE = 1e-9
"""Relative gap below which a bound is as good as any."""


@dataclass(frozen=True, eq=False)
class SolvedTable(ABC):
    """An exact table with the system that it solves; its figures are those that the kernel derives from both."""

    model: Model
    system: TableSystem
    settings: Settings
    solution: TableSolution | DebiasedSolution

    @property
    def name(self) -> str:
        rows, columns = self.system.shape
        return f"table of {rows} x {columns} probabilities"

    @cached_property
    def exact(self) -> ExactTable:
        """The table, without the rows of the program that are mixtures of its own."""
        found = self.solution.exact
        return replace(found, numerators=found.numerators[: self.system.shape[0]])

    @property
    def rounded_loss(self) -> float:
        """Its loss but for worst cases that scalars overstate by rounding."""
        return float(self.solution.value + self.system.loss.constant)

    @property
    @abstractmethod
    def scalars(self) -> Mapping[str, Fraction]:
        """The numbers found beside the table, by name."""

    @abstractmethod
    def witnesses(self) -> Iterator[dict[str, Any]]:
        """What a plan may list as proof of its bound, the one that is likely to prove most first."""

    @property
    @abstractmethod
    def method(self) -> str:
        """How it was found, in a few words."""

    def solver(self) -> dict[str, Any]:
        """How it was found."""
        found = self.solution
        return {
            "name": f"tables ({self.method})",
            "iterations": found.iterations,
            "seconds": found.seconds,
            "notes": list(found.notes),
        }

    @cached_property
    def worlds(self) -> Worlds:
        """The values behind rows and columns, for remarks about them."""
        return worlds(self.model)

    @cached_property
    def problem(self) -> dict[str, Any]:
        """The problem as it stands in the plan."""
        found: dict[str, Any] = write(self.system.problem)
        return found

    @cached_property
    def frame(self) -> Frame:
        """The problem's frame as the kernel reads it."""
        return read_frame(JsonNode(self.problem, "problem"))

    @cached_property
    def task(self) -> Task:
        """The problem's table as the kernel reads it, which refuses numbers of too many digits."""
        return read(Task, self.frame.blocks[0])

    @cached_property
    def executed(self) -> Executed:
        """What is executed as the kernel reads it."""
        return self.system.table.table(self.exact.numerators, self.exact.denominator)

    @cached_property
    def exact_loss(self) -> Fraction:
        """The loss of the exact table."""
        task, chosen = self.task, dict(self.scalars)
        found: Fraction = task.loss.value(self.executed, task.weights(), chosen) + task.errors(self.executed, chosen)
        return found

    @cached_property
    def loss(self) -> float:
        """The loss, as the nearest double."""
        return float(self.exact_loss)

    @cached_property
    def proof(self) -> tuple[float | None, dict[str, Any]]:
        """A bound on the loss of every table, rounded down, with its witness; None and nothing where none is proved."""
        best: tuple[float | None, dict[str, Any]] = None, {}
        for witness in self.witnesses():
            bound = TableBound((), self.task, JsonNode(witness, "claims"))
            try:
                found = float_down(bound.at(self.frame.obligations))
            except Refused:
                continue
            if best[0] is None or found > best[0]:
                best = min(found, self.loss), witness
            if self.loss - found <= CLOSE * abs(self.loss):
                break
        return best


@dataclass(frozen=True, eq=False)
class LinearTable(SolvedTable):
    """The optimum of one linear program."""

    solution: TableSolution
    lowered: Lowered

    @cached_property
    def loss(self) -> float:
        """The loss; where the settings ask for no exact table, that of the table in doubles."""
        return super().loss if self.settings.exact else self.solution.optimum + float(self.system.loss.constant)

    @property
    def scalars(self) -> Mapping[str, Fraction]:
        return dict(zip(self.lowered.program.extra.names, self.exact.extra, strict=True))

    def witnesses(self) -> Iterator[dict[str, Any]]:
        """All multipliers; or without those of privacy, or of any line, where the rest proves more.

        Where ratios are so wide that privacy hardly costs anything, a rounding error of a multiplier times the ratio
        does; where nothing need be lost, any rounding error does.
        """
        every = self.solution.dual
        for dual in (every, every.scaled(0, 1), every.scaled(0, 0)):
            values = _values(dual, [line.key for line in self.lowered.lines])
            tangent = _tangent(self.system, ("loss",), self.system.loss, values, 1.0, dual.loss_weights)
            yield {"loss": tangent} | _terms(self.system, dual, values)

    @property
    def method(self) -> str:
        return self.solution.method


@dataclass(frozen=True, eq=False)
class DebiasedTable(SolvedTable):
    """The best table, scale and background law for the loss of debiased estimates."""

    solution: DebiasedSolution
    program: DebiasedProgram

    @property
    def scalars(self) -> Mapping[str, Fraction]:
        table = self.system.table
        assert table.estimates is not None
        masses = zip(table.masses(), self.solution.masses, strict=True)
        return {table.estimates.alpha: self.solution.alpha, **dict(masses)}

    def witnesses(self) -> Iterator[dict[str, Any]]:
        """Cuts, which bound the loss where they are used, and the tree of boxes that says where."""
        table, rows = self.system.table, range(self.system.shape[0])
        found: list[Key] = [("condition", k, r) for k in range(len(table.conditions)) for r in rows]
        found += [("law", law.name) for law in table.laws]
        found += [("mean", k) for k in self.program.means]
        beside = self.system.beside("condition", "law")
        found += [line.key for line in sorted(beside, key=lambda line: not line.equality)]
        cuts = []
        from privspec.solvers.table_search_programs import SearchSplit

        for cut in self.solution.cuts:
            # where there is no table, what is at most 0 for every table counts as often as it takes
            dual = cut.dual.scaled(EMPTY, EMPTY) if cut.empty else cut.dual
            values = _values(dual, found)
            means = [[key[1], -value] for key, (value, _) in values.items() if key[0] == "mean" and value]
            cuts.append({"means": means} | _terms(self.system, dual, values))
        tree = [
            {"coordinate": item.coordinate, "at": item.at} if isinstance(item, SearchSplit) else item
            for item in self.solution.tree
        ]
        yield {"cuts": cuts, "tree": tree}

    @property
    def method(self) -> str:
        return "search over the scale and the means"


# --- from a system to a table ---------------------------------------------------------------------


SEARCH_TOLERANCE = 1e-6
"""Relative gap that the search for scale and background goes for."""


def best_table(model: Model, system: TableSystem, settings: Settings) -> SolvedTable | Infeasible:
    """The table of least loss.

    Raises: SpecError PS05xx for lines that tables do not know, and the solvers' errors.
    """
    try:
        solve = _linear if system.table.estimates is None else _debiased
        return solve(model, system, settings)
    except TooManyError as error:
        place = model.source.span(error.line)
        text = "there are too many ballots that could be a lie"
        raise SpecError.at(model.source, place, "PS0515", text) from None


def loss_of(model: Model, problem: Problem, settings: Settings) -> tuple[float | None, int]:
    """The loss of a changed problem, None if no table meets it, and how many programs a search solved."""
    found = best_table(model, TableSystem(problem), settings)
    rounds = found.solution.iterations if isinstance(found, DebiasedTable) else 0
    return None if isinstance(found, Infeasible) else found.rounded_loss, rounds


def explained(model: Model, system: TableSystem, settings: Settings) -> Infeasible | None:
    """Why no table meets the lines of a system; None where one does."""
    lowered = to_program(system)
    found = solved(lowered, settings)
    return _conflict(model, system, lowered, found, settings) if isinstance(found, InfeasibleTable) else None


def _conflict(
    model: Model, system: TableSystem, lowered: Lowered, found: InfeasibleTable, settings: Settings
) -> Infeasible:
    """Lines that no table meets: the fewest where programs are linear, else all of them."""
    if _curved(lowered):
        spans = [requirement.span for requirement in model.requirements]
        spans += [target.target.span for target in model.accuracy] + [one.relation.span for one in model.constraints]
        return Infeasible("no table meets all of these lines", tuple(conflict_line(model, s) for s in spans), ())
    from privspec.families.tables.conflicts import explain_infeasible  # solves again and again: many modules

    return explain_infeasible(model, system, lowered, found, settings, loss_of)


def _linear(model: Model, system: TableSystem, settings: Settings) -> SolvedTable | Infeasible:
    lowered = to_program(system)
    found = target_itself(system, lowered) or solved(lowered, settings)
    if isinstance(found, InfeasibleTable):
        return _conflict(model, system, lowered, found, settings)
    if settings.exact:
        found.exact  # noqa: B018 - an error is one of this decision
    return LinearTable(model, system, settings, found, lowered)


def _curved(lowered: Lowered) -> bool:
    """Whether some measure is no single ratio: programs are convex, and not linear."""
    return any(isinstance(block, CurveRatio) for block in lowered.program.privacy)


def solved(lowered: Lowered, settings: Settings) -> TableSolution | InfeasibleTable:
    """The least loss, or the constraints that conflict."""
    if settings.solver == "cvxpy" or _curved(lowered):
        from privspec.families.tables.reference import solve_with_cvxpy

        return solve_with_cvxpy(lowered.program, settings.deadline, settings.progress, lowered.cost)
    return solve_table(lowered.program, deadline=settings.deadline, progress=settings.progress, cost=lowered.cost)


def _debiased(model: Model, system: TableSystem, settings: Settings) -> SolvedTable | Infeasible:
    program = _program(model, system)
    from privspec.families.tables.conflicts import explain_infeasible
    from privspec.solvers.table_search import search_debiased

    found = search_debiased(program, SEARCH_TOLERANCE, settings.deadline, settings.progress)
    if not isinstance(found, InfeasibleTable):
        return DebiasedTable(model, system, settings, found, program)
    lowered = to_program(system)
    conflict = solve_table(lowered.program)
    if not isinstance(conflict, InfeasibleTable):
        raise SpecError.at(model.source, model.spec.span, "PS0502", "no scale above 0 meets these lines")
    return explain_infeasible(model, system, lowered, conflict, settings, loss_of)


def _program(model: Model, system: TableSystem) -> DebiasedProgram:
    """The search over the scale, the background law and the table.

    Raises: SolverError where conditions are not, or no longer, those of estimates; SpecError.
    """
    from privspec.solvers.table_search_programs import DebiasedProgram  # few losses are of debiased estimates

    table = system.table
    assert system.prior is not None and table.estimates is not None
    alpha, weights = table.estimates.alpha, table.estimates.weights
    found = [condition.moment(alpha) for condition in table.conditions]
    moments = [moment for moment in found if moment is not None]
    if not len(moments) == len(found) == len(weights):
        raise SolverError("the conditions of this table make no estimates unbiased")
    masses, lines = table.masses(), system.beside("condition", "law")
    equal, less = (tuple(line for line in lines if line.equality is kind) for kind in (True, False))
    for line in (*equal, *less):
        if line.scalars:
            place, hint = model.source.span(line.line), "give the scale a value under `parameters:`"
            text = "solve cannot compute this line beside a scale that is chosen"
            raise SpecError.at(model.source, place, "PS0501", text, help=hint)
    return DebiasedProgram(
        tuple(system.prior),
        tuple(tuple(moment.g) for moment in moments),
        tuple(tuple(moment.t) for moment in moments),
        weights,
        tuple(block for _, block in system.privacy),
        table.ends()[alpha],
        tuple(tuple(moment.h.get(name, Fraction(0)) for name in masses) for moment in moments) if masses else None,
        (Fraction(1), Fraction(-1 if any(law.weight is not None for law in table.laws) else 0)),
        linear_rows(equal, system.shape[1], {}),
        linear_rows(less, system.shape[1], {}),
    )
