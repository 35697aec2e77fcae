"""Single changes of a spec, each with one amount, tried out within a limit of work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Span
from privspec.families.document import decimal_up
from privspec.families.family import Settings
from privspec.families.tables.program import to_program
from privspec.families.tables.system import FiniteSystem, lower
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.syntax import VariableKind
from privspec.model.domains import Interval, Type
from privspec.model.graph import GraphNode, Model
from privspec.model.reports import Failure
from privspec.model.requirements import MechanismConstraint
from privspec.model.values import show
from privspec.solvers.programs import OutOfTimeError, SolverError, Watch
from privspec.solvers.table_programs import CompleteRatio, Extra, TableProgram, TableSolution
from privspec.solvers.table_rows import RowsResult, solve_rows
from privspec.solvers.table_support import has_table
from privspec.solvers.tables import solve_table

A_SECOND = 300_000
"""Work that takes about a second."""
LEAST_WORK = 3_500
"""Work of the smallest program."""


class EnoughError(Exception):
    """All the work that was allowed is done."""


def work(program: TableProgram) -> int:
    """About how long a program takes, from its size: a slack for each entry of each pair weighs most."""
    columns = program.shape[1]
    total = LEAST_WORK + int(program.cost.size**1.25)
    for block in program.privacy:
        if not isinstance(block, CompleteRatio):
            entries = len(block.pairs) * columns
            total += entries**2 // 400 if getattr(block, "delta", 0) else entries
    return total


Solver: TypeAlias = Callable[[Model, FiniteSystem, Settings], tuple[float | None, int]]
"""Solves a changed spec: the loss of its best table, None if there is none, and how many programs a search solved."""


@dataclass(frozen=True, slots=True)
class Worked:
    """A spec that an exact table meets, with its least loss if that is known."""

    loss: float | None


@dataclass(frozen=True, eq=False, slots=True)
class Trials:
    """Asks whether changed specs can be met, with `limit` of work in all (`work`).

    Every question raises EnoughError once it would take more; OutOfTimeError where the user's own time limit is over.
    """

    settings: Settings
    limit: float
    again: Solver
    watch: Watch = field(default_factory=Watch)
    done: list[int] = field(default_factory=list)

    def _charge(self, amount: int) -> None:
        """Count further work.

        Raises: EnoughError, OutOfTimeError.
        """
        if sum(self.done) + amount > self.limit:
            raise EnoughError
        self.done.append(amount)
        if self.left is not None and self.left <= 0:
            raise OutOfTimeError(None)

    def constraints(self, model: Model) -> TableProgram | None:
        """The program of a spec without its loss; None where it has no meaning (division by zero, too many values)."""
        try:
            return to_program(lower(model, priced=False)).program
        except (Failure, SpecError):
            return None

    def possible(self, model: Model) -> bool:
        """Whether a table meets the spec, as far as doubles can tell."""
        program = self.constraints(model)
        if program is None:
            return False
        self._charge(work(program))
        return has_table(program, Watch(self.left))

    def extreme(self, model: Model, name: str, *, largest: bool) -> float | None:
        """The largest, or least, value that a chosen number can have in a spec that is met; None if it is not met."""
        program = self.constraints(model)
        if program is None or name not in program.extra.names:
            return None
        index, extra = program.extra.names.index(name), program.extra
        price = Fraction(-1 if largest else 1)
        cost = tuple(price if k == index else Fraction(0) for k in range(len(extra)))
        sought = replace(program, extra=Extra(extra.lower, extra.upper, cost, extra.names))
        self._charge(work(program))
        try:
            found = solve_rows(sought, Watch(self.left), explained=False)
        except OutOfTimeError:
            raise
        except SolverError:
            return None
        return float(found.extra[index]) if isinstance(found, RowsResult) else None

    def works(self, model: Model) -> Worked | None:
        """Whether an exact table meets the spec, and the least loss where it is found."""
        loss = self.loss(model)
        if loss is not None:
            return Worked(loss)
        program = self.constraints(model)
        if program is None:
            return None
        self._charge(work(program))
        try:
            found = solve_table(program, deadline=self.left)
        except OutOfTimeError:
            raise
        except (SolverError, ArithmeticError):
            return None
        return Worked(None) if isinstance(found, TableSolution) else None

    def loss(self, model: Model, system: FiniteSystem | None = None) -> float | None:
        """The loss of the best table; None if there is none, or it was not found.

        Args: system, the model lowered, if that is known.
        """
        try:
            system = system or lower(model)
            each = work(to_program(system).program)
            self._charge(each)
            quiet = replace(self.settings, alternatives=False, progress=None, deadline=self.left)
            loss, rounds = self.again(model, system, quiet)
        except OutOfTimeError:
            raise
        except (Failure, SpecError, SolverError, ArithmeticError):
            return None
        if rounds:
            self.done.append(each * rounds)
        return loss

    @property
    def left(self) -> float | None:
        """Seconds of the user's time limit that are left; None without one."""
        return None if self.settings.deadline is None else self.settings.deadline - self.watch.seconds


DIGITS = 3
FIGURE = "the figure"
"""A chosen number under a name that no author can write."""
_CLOSE = Fraction(1, 4000)
_ATTEMPTS = 3


class Change(ABC):
    """A change by an amount t > 0, up to `most`; searches start at `first` and grow by `growth`."""

    growth: int = 2
    digits = DIGITS

    line: int | None
    first: Fraction
    most: Fraction

    @abstractmethod
    def value(self, amount: Fraction) -> Fraction:
        """The figure that then stands in the spec."""

    @abstractmethod
    def apply(self, model: Model, value: Fraction) -> Model:
        """The changed spec."""

    @abstractmethod
    def words(self, value: Fraction) -> str:
        """The change in a few words."""

    def chosen(self, model: Model) -> Model | None:
        """The spec with the figure as a number `FIGURE` to be chosen; None where that is not linear."""
        return None

    @property
    def up(self) -> bool:
        """Whether larger figures ask for less."""
        return self.value(self.most) > self.value(Fraction(0))

    def rounded(self, value: Fraction, attempt: int) -> Fraction:
        """To few digits, on the side that asks for less; a unit of the last one further with every attempt."""
        sign = 1 if self.up else -1
        found = Fraction(decimal_up(sign * value, self.digits))
        unit = Fraction(1)
        while unit * 10**self.digits <= abs(found) or (found and unit * 10 ** (self.digits - 1) > abs(found)):
            unit = unit * 10 if unit * 10**self.digits <= abs(found) else unit / 10
        return sign * (found + attempt * unit)


def smallest(change: Change, model: Model, trials: Trials) -> Iterator[Fraction]:
    """Figures to try, the closest to the spec first, from the least amount with which the changed spec is possible.

    Raises: OutOfTimeError.
    """
    chosen = change.chosen(model)
    if chosen is None:
        value = _searched(change, model, trials)
    else:
        found = trials.extreme(chosen, FIGURE, largest=not change.up)
        value = None if found is None else Fraction(found)
    if value is not None:
        yield from (change.rounded(value, attempt) for attempt in range(_ATTEMPTS))


def _searched(change: Change, model: Model, trials: Trials) -> Fraction | None:
    """By doubling the amount, then halving what is between."""

    def works(amount: Fraction) -> bool:
        return trials.possible(change.apply(model, change.value(amount)))

    low, high = Fraction(0), min(change.first, change.most)
    while not works(high):
        if high >= change.most:
            return None
        low, high = high, min(high * change.growth, change.most)
    while high - low > _CLOSE * max(abs(change.value(high)), high):
        middle = Fraction(float(low + high) / 2) if low * 3 > high or not low else Fraction(float(low * high) ** 0.5)
        low, high = (low, middle) if works(middle) else (middle, high)
    return change.value(high)


def number(value: Fraction) -> syntax.Number:
    """A literal."""
    return syntax.Number(value)


# --- figures --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Figure(Change):
    """A figure of one line that grows, or falls: `setter` writes it into the spec, `text` says so."""

    name: str
    line: int
    now: Fraction
    first: Fraction
    most: Fraction
    setter: Callable[[Model, Fraction], Model]
    text: Callable[[Fraction], str]
    growth: int = 2
    falls: bool = False

    def value(self, amount: Fraction) -> Fraction:
        """The figure."""
        return self.now - amount if self.falls else self.now + amount

    def apply(self, model: Model, value: Fraction) -> Model:
        """With another figure."""
        return self.setter(model, value)

    def words(self, value: Fraction) -> str:
        """What it then says."""
        return self.text(value)


# --- right sides ----------------------------------------------------------------------------------


def _with_relation(model: Model, old: MechanismConstraint, *new: syntax.Relation) -> Model:
    found: list[MechanismConstraint] = []
    for constraint in model.constraints:
        found += [replace(old, relation=relation) for relation in new] if constraint is old else [constraint]
    return replace(model, constraints=tuple(found))


def with_choice(model: Model, name: str, low: Fraction, high: Fraction, span: Span) -> Model:
    """With a further number that the solver picks."""
    node = GraphNode(name, VariableKind.CHOOSE, Type(), span, Interval(low, high))
    return replace(model, nodes={**model.nodes, name: node})


@dataclass(frozen=True, eq=False)
class Slack(Change):
    """A condition met up to an amount: `E[g] = e` between e - t and e + t, `E[g] <= e` up to e + t."""

    constraint: MechanismConstraint
    size: Fraction

    @property
    def line(self) -> int:  # type: ignore[override]
        """That of the condition."""
        return self.constraint.line

    @property
    def first(self) -> Fraction:  # type: ignore[override]
        """A small part of the values at hand."""
        return self.size / 64

    @property
    def most(self) -> Fraction:  # type: ignore[override]
        """Beyond the values at hand."""
        return self.size * 64

    def value(self, amount: Fraction) -> Fraction:
        """The amount itself."""
        return amount

    def _relations(self, slack: syntax.Expr) -> tuple[syntax.Relation, ...]:
        relation = self.constraint.relation
        up = replace(relation, op="<=", right=syntax.Binary("+", relation.right, slack))
        down = replace(relation, op=">=", right=syntax.Binary("-", relation.right, slack))
        return (up, down) if relation.op == "=" else (down,) if relation.op in (">=", "≥") else (up,)

    def apply(self, model: Model, value: Fraction) -> Model:
        """With inequalities that leave room."""
        return _with_relation(model, self.constraint, *self._relations(number(value)))

    def chosen(self, model: Model) -> Model:
        """With the room to be chosen."""
        changed = _with_relation(model, self.constraint, *self._relations(syntax.Name(FIGURE)))
        return with_choice(changed, FIGURE, Fraction(0), self.most, self.constraint.relation.span)

    def words(self, value: Fraction) -> str:
        """The inequalities."""
        return "accept " + " and ".join(spell(relation) for relation in self._relations(number(value)))


@dataclass(frozen=True, eq=False)
class Share(Change):
    """Part of the signal: `E[g | x] = alpha e + c` with a constant c of each line, for the largest alpha that works."""

    constraints: tuple[MechanismConstraint, ...]
    size: Fraction
    first = Fraction(1, 64)
    most = Fraction(999, 1000)
    digits = 2

    @property
    def line(self) -> int | None:  # type: ignore[override]
        """That of the condition, if it is one."""
        return self.constraints[0].line if len(self.constraints) == 1 else None

    def value(self, amount: Fraction) -> Fraction:
        """Alpha."""
        return 1 - amount

    def constant(self, k: int) -> str:
        """The name under which the constant of a line is chosen; no author can write it."""
        return f"constant of line {self.constraints[k].line}"

    def apply(self, model: Model, value: Fraction) -> Model:
        """With constants that the solver picks."""
        return self._applied(model, number(value))

    def chosen(self, model: Model) -> Model:
        """With alpha to be chosen as well."""
        span = self.constraints[0].relation.span
        return with_choice(self._applied(model, syntax.Name(FIGURE)), FIGURE, 1 - self.most, Fraction(1), span)

    def _applied(self, model: Model, alpha: syntax.Expr) -> Model:
        for k, constraint in enumerate(self.constraints):
            name = self.constant(k)
            model = _with_relation(model, constraint, self._relation(k, alpha, syntax.Name(name)))
            model = with_choice(model, name, -self.size, self.size, constraint.relation.span)
        return model

    def _relation(self, k: int, alpha: syntax.Expr, constant: syntax.Expr) -> syntax.Relation:
        relation = self.constraints[k].relation
        return replace(relation, right=syntax.Binary("+", syntax.Binary("*", alpha, relation.right), constant))

    def settled(self, model: Model, value: Fraction, constants: Sequence[Fraction]) -> Model:
        """With these constants for the first conditions."""
        for k, constant in enumerate(constants):
            (met,) = (c for c in model.constraints if c.line == self.constraints[k].line)
            model = _with_relation(model, met, self._relation(k, number(value), number(constant)))
        return model

    def words(self, value: Fraction) -> str:
        """Alpha."""
        lines = " and ".join(str(constraint.line) for constraint in self.constraints)
        where = "" if self.line else f" in lines {lines}, each with a constant of its own"
        return f"accept alpha = {show(value)} of the signal{where}"

    def settled_words(self, value: Fraction, constants: Sequence[Fraction]) -> str:
        """Alpha, and what the lines then say."""
        said = "; ".join(
            spell(self._relation(k, number(value), number(constant))) for k, constant in enumerate(constants)
        )
        return f"accept alpha = {show(value)} of the signal: {said}"
