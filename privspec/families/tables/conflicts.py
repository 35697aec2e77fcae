"""Requirements that no table meets: the smallest set of lines in conflict, and the smallest relaxations.

Changed problems are tried out within a limit of work, up to the smallest figures that work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import prod
from typing import TypeAlias

import numpy as np

from privspec.core.diagnostics import SpecError
from privspec.core.records import dataclass, field, replace
from privspec.core.rounding import least_whole
from privspec.families.decision import ConflictLine, Infeasible, Relaxation, conflict_line, needed
from privspec.families.family import Settings
from privspec.families.tables import changes
from privspec.families.tables.system import Lowered, TableSystem, TooManyError, edited, table_of, to_program
from privspec.kernel.tables_forms import Amount
from privspec.language import syntax
from privspec.model.domains import Domain, FiniteSet, Grid, IntegerRange, Power
from privspec.model.graph import GraphNode, Model
from privspec.model.values import show
from privspec.problem.elaborate import Problem
from privspec.problem.tables import block_of
from privspec.solvers.programs import OutOfTimeError, SolverError, Watch
from privspec.solvers.table_programs import CompleteRatio, Extra, InfeasibleTable, TableProgram, TableSolution
from privspec.solvers.table_rows import RowsResult, solve_rows
from privspec.solvers.tables import has_table, no_common_support, solve_table

A_SECOND = 300_000
"""Work that takes about a second."""
LEAST_WORK = 3_500
"""Work of the smallest program."""
_CLOSE = Fraction(1, 4000)
_ATTEMPTS = 3

Solver: TypeAlias = Callable[[Model, Problem, Settings], tuple[float | None, int]]
"""Solves a changed problem: the loss of its best table, None without one, and how many programs a search solved."""


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


def without_loss(problem: Problem) -> Problem:
    """The same lines with nothing to minimise."""
    return edited(problem, loss=Amount(None, (), (), (), Fraction(0)), estimates=None)


@dataclass(frozen=True, slots=True)
class Worked:
    """A problem that an exact table meets, with its least loss if that is known."""

    loss: float | None


@dataclass(frozen=True, eq=False, slots=True)
class Trials:
    """Asks whether changed problems can be met, with `limit` of work in all (`work`).

    Every question raises EnoughError once it would take more; OutOfTimeError where the user's own time limit is over.
    """

    model: Model
    settings: Settings
    limit: float
    again: Solver
    watch: Watch
    done: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, model: Model, settings: Settings, limit: float, again: Solver) -> Trials:
        """Trials of changes of one spec, within the user's time limit."""
        return cls(model, settings, limit, again, Watch(settings.deadline))

    def _charge(self, amount: int) -> None:
        """Count further work.

        Raises: EnoughError, OutOfTimeError.
        """
        if sum(self.done) + amount > self.limit:
            raise EnoughError
        self.done.append(amount)
        if self.watch.left is not None and self.watch.left <= 0:
            raise OutOfTimeError(None)

    def constraints(self, problem: Problem) -> TableProgram | None:
        """The program of a problem without its loss; None where it has too many rows."""
        try:
            return to_program(TableSystem(without_loss(problem))).program
        except TooManyError:
            return None

    def possible(self, problem: Problem) -> bool:
        """Whether a table meets the problem, as far as doubles can tell."""
        program = self.constraints(problem)
        if program is None:
            return False
        self._charge(work(program))
        return has_table(program, Watch(self.watch.left))

    def extreme(self, problem: Problem, name: str, *, largest: bool) -> float | None:
        """The largest, or least, value that a chosen number can have in a problem that is met; None if it is not."""
        program = self.constraints(problem)
        if program is None or name not in program.extra.names:
            return None
        index, extra = program.extra.names.index(name), program.extra
        price = Fraction(-1 if largest else 1)
        cost = tuple(price if k == index else Fraction(0) for k in range(len(extra)))
        sought = replace(program, extra=Extra(extra.lower, extra.upper, cost, extra.names))
        self._charge(work(program))
        try:
            found = solve_rows(sought, Watch(self.watch.left), explained=False)
        except OutOfTimeError:
            raise
        except SolverError:
            return None
        return float(found.extra[index]) if isinstance(found, RowsResult) else None

    def works(self, problem: Problem) -> Worked | None:
        """Whether an exact table meets the problem, and the least loss where it is found."""
        loss = self.loss(problem)
        if loss is not None:
            return Worked(loss)
        program = self.constraints(problem)
        if program is None:
            return None
        self._charge(work(program))
        try:
            found = solve_table(program, deadline=self.watch.left)
            if not isinstance(found, TableSolution) or not found.exact.numerators:
                return None
        except OutOfTimeError:
            raise
        except (SolverError, ArithmeticError):
            return None
        return Worked(None)

    def loss(self, problem: Problem) -> float | None:
        """The loss of the best table; None if there is none, or it was not found."""
        try:
            each = work(to_program(TableSystem(problem)).program)
            self._charge(each)
            quiet = replace(self.settings, alternatives=False, progress=None)
            loss, rounds = self.again(self.model, problem, quiet)
        except OutOfTimeError:
            raise
        except (TooManyError, SpecError, SolverError, ArithmeticError):
            return None
        if rounds:
            self.done.append(each * rounds)
        return loss


def smallest(change: changes.Change, problem: Problem, trials: Trials) -> Iterator[Fraction]:
    """Figures to try, the closest to the spec first, from the least amount with which the changed problem is possible.

    Raises: OutOfTimeError.
    """
    chosen = change.chosen(problem)
    if chosen is None:
        value = _searched(change, problem, trials)
    else:
        found = trials.extreme(chosen, changes.FIGURE, largest=not change.up)
        value = None if found is None else Fraction(found)
    if value is not None:
        yield from (change.rounded(value, attempt) for attempt in range(_ATTEMPTS))


def _searched(change: changes.Change, problem: Problem, trials: Trials) -> Fraction | None:
    """By doubling the amount, then halving what is between."""

    def works(amount: Fraction) -> bool:
        return trials.possible(change.apply(problem, change.value(amount)))

    low, high = Fraction(0), min(change.first, change.most)
    while not works(high):
        if high >= change.most:
            return None
        low, high = high, min(high * change.growth, change.most)
    while high - low > _CLOSE * max(abs(change.value(high)), high):
        middle = Fraction(float(low + high) / 2) if low * 3 > high or not low else Fraction(float(low * high) ** 0.5)
        low, high = (low, middle) if works(middle) else (middle, high)
    return change.value(high)


# --- conflicts ------------------------------------------------------------------------------------


MOST_ENTRIES = 10_000
"""Entries of the largest table that is tried."""
MOST_TIMES = 32
"""Widest range that is tried, in widths of the range as written."""
_FEW = 4


Possible = Callable[[Problem], bool]


@dataclass(frozen=True, eq=False, slots=True)
class RangeLine:
    """The line that says where a numeric output lies; other values of it make another table, of so many `rows`."""

    model: Model
    node: GraphNode
    problem: Problem

    @property
    def number(self) -> int:
        """Where the output is declared."""
        return conflict_line(self.model, self.node.span).line

    def wider(self, below: int, above: int, *, priced: bool = False) -> Problem | None:
        """The problem with further values of the output; None where the table would be too large."""
        assert self.node.domain is not None
        domain = extended(self.node.domain, below, above)
        if domain is None:
            return None
        sizes = [o.domain.size or 0 for o in self.model.outputs if o.domain is not None and o.name != self.node.name]
        if prod(sizes) * (domain.size or 0) * len(table_of(self.problem).rows) > MOST_ENTRIES:
            return None
        return self._with(domain, priced)

    def direction(self, possible: Possible) -> tuple[int, int] | None:
        """Which ends must move, as (1, 1), (0, 1) or (1, 0), if a much wider range is enough; None if it is not.

        Of the wide range a few values are tried: others need not be used.
        """
        assert self.node.domain is not None
        for below, above in ((1, 1), (0, 1), (1, 0)):
            most = self._most(below, above)
            few = sparse_range(self.node.domain, below * most, above * most)
            changed = self._with(few, False) if most and few is not None else None
            if changed is not None and possible(changed):
                return below, above
        return None

    def _with(self, domain: Domain, priced: bool) -> Problem | None:
        nodes = {**self.model.nodes, self.node.name: replace(self.node, domain=domain)}
        try:
            found = block_of(replace(self.model, nodes=nodes), priced=priced)
        except SpecError:
            return None  # no meaning at these values, such as a division by zero
        return replace(self.problem, blocks=(found,))

    def _most(self, below: int, above: int) -> int:
        """How often the range can be widened by so much."""
        size = getattr(self.node.domain, "size", None) or 0
        most = size * MOST_TIMES // max(below + above, 1)
        while most and self.wider(below * most, above * most) is None:
            most //= 2
        return most

    def smallest(self, possible: Possible) -> tuple[int, int] | None:
        """How many values to add below and above, neither of which can be made smaller by itself; None if none help."""

        def works(below: int, above: int) -> bool:
            changed = self.wider(below, above)
            return changed is not None and possible(changed)

        found = self.direction(possible)
        if found is None:
            return None
        below, above = found
        both = _least(lambda k: works(below * k, above * k), self._most(below, above))
        low = _fewer(lambda k: works(k, above * both), below * both)
        return low, _fewer(lambda k: works(low, k), above * both)

    def words(self, below: int, above: int) -> str:
        """The range to ask for."""
        assert self.node.domain is not None
        domain = extended(self.node.domain, below, above)
        assert domain is not None
        return f"widen {self.node.name} to at least {domain.describe()}"


def _least(works: Callable[[int], bool], high: int) -> int:
    """The least number from 0 that works, where `high` does and more never harms."""
    low, step = -1, 1
    while low + step < high and not works(low + step):
        low, step = low + step, 2 * step
    return least_whole(works, low, min(high, low + step))


def _fewer(works: Callable[[int], bool], high: int) -> int:
    """As `_least`, where it is likely that `high` is it."""
    return _least(works, high) if high and works(high - 1) else high


def extended(domain: Domain, below: int, above: int) -> Domain | None:
    """With so many values more at both ends, spaced as they are; None for words and uneven sets."""
    match domain:
        case IntegerRange():
            return IntegerRange(domain.low - below, domain.high + above)
        case Grid():
            last = domain.low + ((domain.size or 1) - 1) * domain.step
            return Grid(domain.low - below * domain.step, last + above * domain.step, domain.step)
        case FiniteSet(items=items):
            return _extended_set(items, below, above)
        case Power():
            base = extended(domain.base, below, above)
            return None if base is None else Power(base, domain.exponents)
    return None


def sparse_range(domain: Domain, below: int, above: int) -> Domain | None:
    """The domain with a few of the values that `extended` would add."""
    if isinstance(domain, Power):
        base = sparse_range(domain.base, below, above)
        return None if base is None else Power(base, domain.exponents)
    wide = extended(domain, below, above)
    if wide is None:
        return None
    every = tuple(wide.elements())
    ends = [k * below // _FEW for k in range(_FEW)], [len(every) - 1 - k * above // _FEW for k in range(_FEW)]
    own = range(below, len(every) - above)
    return FiniteSet(tuple(every[k] for k in sorted({*ends[0], *own, *ends[1]})))


def _extended_set(items: tuple[object, ...], below: int, above: int) -> FiniteSet | None:
    numbers = sorted(item for item in items if isinstance(item, Fraction))
    steps = {b - a for a, b in pairwise(numbers)}
    if len(numbers) != len(items) or len(steps) != 1:
        return None
    (step,) = steps
    lower = [numbers[0] - k * step for k in range(below, 0, -1)]
    return FiniteSet((*lower, *numbers, *(numbers[-1] + k * step for k in range(1, above + 1))))


LIMIT = 12 * A_SECOND
"""Work that the search for changes may take."""
ENDED = "; the time limit ended the search for fewer lines and for changes"
MOST_SLACKS = 20_000
"""Slacks of (epsilon, delta) up to which a larger delta is tried."""
MOST_SUPPORTS = 4000
"""Entries of a table up to which it is asked whether any epsilon is enough."""


def explain_infeasible(
    model: Model, system: TableSystem, lowered: Lowered, found: InfeasibleTable, settings: Settings, again: Solver
) -> Infeasible:
    """The lines that conflict; with `settings.alternatives` the least such set, and ways out."""
    numbers = [lowered.lines[k] for k in found.equalities]
    equal = len(lowered.program.equalities.bounds)
    numbers += [lowered.lines[equal + k] for k in found.inequalities]
    spans = [model.nodes[str(one.key[1])].span for one in numbers if one.key[0] == "law"]
    spans += [model.source.span(one.line) for one in numbers if one.line]
    spans += [model.requirements[lowered.blocks[k]].span for k in found.privacy]
    proof = _ordered([conflict_line(model, span) for span in spans])
    reason = f"no law of {', '.join(node.name for node in model.outputs)} meets these lines together"
    if not settings.alternatives:
        return Infeasible(reason, proof, ())
    search = _Search(model, system.problem, Trials.of(model, settings, LIMIT, again))
    try:
        conflict = search.conflict()
    except EnoughError:
        return Infeasible(reason, proof, ())
    except OutOfTimeError:
        return Infeasible(reason + ENDED, proof, ())
    lines = _ordered([conflict_line(model, model.source.span(item.number)) for item in conflict])
    relaxations = tuple(search.relaxations(conflict))
    return Infeasible(reason + (ENDED if search.late else ""), lines or proof, relaxations)


def _ordered(found: Sequence[ConflictLine]) -> tuple[ConflictLine, ...]:
    """Each line once, in order."""
    lines = {line.line: line for line in found}
    return tuple(lines[number] for number in sorted(lines))


@dataclass(frozen=True, eq=False, slots=True)
class _Search:
    """Tries changes of one problem; `late` tells whether the user's time limit ended it early."""

    model: Model
    problem: Problem
    trials: Trials
    late: list[OutOfTimeError] = field(default_factory=list)

    # -- what conflicts

    def conflict(self) -> tuple[changes.Line | RangeLine, ...]:
        """Lines of which none can be left out; ranges of outputs that stand in the way of these belong to them.

        Raises: OutOfTimeError.
        """
        every = changes.lines_of(self.model, self.problem)
        kept = needed(every, lambda some: not self.trials.possible(self._only(some, self.problem)))
        ranges = [RangeLine(self.model, node, self.problem) for node in self.model.outputs]
        stand = [r for r in ranges if r.direction(lambda p: self.trials.possible(self._only(kept, p))) is not None]
        return (*stand, *kept)

    def _only(self, kept: Sequence[changes.Line], problem: Problem) -> Problem:
        numbers = {other.number for other in kept}
        for line in changes.lines_of(self.model, self.problem):
            if line.number not in numbers:
                problem = line.without(problem)
        return problem

    # -- ways out

    def relaxations(self, conflict: Sequence[changes.Line | RangeLine]) -> Iterator[Relaxation]:
        """Single changes that work, as far as work and time allow."""
        order = sorted(conflict, key=lambda line: (isinstance(line, RangeLine), isinstance(line, changes.PrivacyLine)))
        try:
            shared = False
            for line in order:
                if isinstance(line, RangeLine):
                    yield from self._wider(line)
                    continue
                if isinstance(line, changes.PrivacyLine):
                    yield from self._weaker(line)
                    continue
                found = (r for change in line.changes(self.problem) for r in self._tried(change))
                if isinstance(line, changes.ConditionLine):
                    first = next(found, None)
                    shared = shared or first is not None
                    yield from () if first is None else (first,)
                    continue
                yield from found
            if not shared:
                yield from self._shares_of_all(conflict)
        except EnoughError:
            return
        except OutOfTimeError as late:
            self.late.append(late)

    def _tried(self, change: changes.Change) -> Iterator[Relaxation]:
        """The least figure for which there is an exact table."""
        for value in smallest(change, self.problem, self.trials):
            if isinstance(change, changes.Share):
                constants = self._constants(change, value)
                settled = None if constants is None else change.settled(self.problem, value, constants)
                found = None if settled is None else self.trials.works(settled)
                if constants is not None and found is not None:
                    yield Relaxation(change.settled_words(value, constants), change.line, found.loss)
                    return
            found = self.trials.works(change.apply(self.problem, value))
            if found is not None:
                yield Relaxation(change.words(value), change.line, found.loss)
                return

    def _constants(self, change: changes.Share, value: Fraction) -> list[Fraction] | None:
        """A constant of few digits for each condition, well inside what is possible."""
        fixed: list[Fraction] = []
        for k in range(len(change.constraints)):
            partly = change.settled(self.problem, value, fixed)
            ends = [self.trials.extreme(partly, change.constant(k), largest=largest) for largest in (False, True)]
            if ends[0] is None or ends[1] is None:
                return None
            fixed.append(short_decimal(ends[0], ends[1]))
        return fixed

    def _shares_of_all(self, conflict: Sequence[changes.Line | RangeLine]) -> Iterator[Relaxation]:
        """One share of the signal in every condition, where none of them alone is enough."""
        lines = [line for line in changes.lines_of(self.model, self.problem) if isinstance(line, changes.ConditionLine)]
        found = [share for share in (line.share(self.problem) for line in lines) if share is not None]
        if len(found) > 1 and any(isinstance(line, changes.ConditionLine) for line in conflict):
            constraints = tuple(one for share in found for one in share.constraints)
            signals = tuple(signal for share in found for signal in share.signals)
            yield from self._tried(changes.Share(constraints, signals, max(share.size for share in found)))

    def _wider(self, line: RangeLine) -> Iterator[Relaxation]:
        least = line.smallest(self.trials.possible)
        if least is None:
            return
        below, above = least
        # At the least range there may be one table only, on the edge of every constraint, and no exact one nearby.
        for more in ((0, 0), (0, 1), (1, 0), (1, 1)):
            low, high = below + more[0], above + more[1]
            changed = line.wider(low, high, priced=True)
            found = None if changed is None else self.trials.works(changed)
            if found is not None:
                yield Relaxation(line.words(low, high), line.number, found.loss)
                return

    # -- privacy

    def _weaker(self, line: changes.PrivacyLine) -> Iterator[Relaxation]:
        """A larger epsilon, or why none is enough; a larger delta."""
        if not self.trials.possible(line.without(self.problem)):
            return
        why = self._no_support(line) if line.pure else None
        hopeless = f"no epsilon is enough: {why}"
        for change in line.changes(self.problem):
            if change.name == "delta" and not self._small():
                continue
            if why is None or change.name != "epsilon":
                found = list(self._tried(change))
                yield from found
                if (
                    change.name == "epsilon"
                    and not found
                    and not self.trials.possible(change.apply(self.problem, change.value(change.most)))
                ):
                    why, hopeless = "", f"no epsilon up to {show(changes.LARGEST_EPSILON)} is enough"
        if why is not None:
            yield Relaxation(hopeless, line.number, None, works=False)

    def _small(self) -> bool:
        """Whether a delta can be tried: it takes a slack for each pair of inputs and each output."""
        program = self.trials.constraints(self.problem)
        return program is not None and program.shape[0] * program.cost.size <= MOST_SLACKS

    def _no_support(self, line: changes.PrivacyLine) -> str | None:
        lowered = to_program(TableSystem(self.problem))
        blocks = [k for k, index in enumerate(lowered.blocks) if self.problem.obligations[index].line == line.number]
        if len(blocks) != 1 or lowered.cost.size > MOST_SUPPORTS:
            return None
        found = no_common_support(lowered.program, lowered.program.privacy[blocks[0]])
        return None if found is None else self._support_words(found.possible)

    def _support_words(self, possible: np.ndarray[tuple[int, int], np.dtype[np.bool_]]) -> str:
        """What the lines leave one row."""
        table = table_of(self.problem)
        drawn, of = _named(table.outputs), _named(table.of)
        certain = np.flatnonzero(possible.sum(axis=1) == 1)
        if len(certain):
            row = int(certain[-1])
            value = _label(table.columns[int(np.flatnonzero(possible[row])[0])])
            kind = "an unbiased " if self._unbiased(table.of) else ""
            return f"for {of} = {_label(table.rows[row])} {kind}{drawn} must always be {value}"
        row, column = (int(k) for k in np.argwhere(~possible)[-1])
        return (
            f"for {of} = {_label(table.rows[row])} {drawn} can never be {_label(table.columns[column])}, "
            f"so that it never could be, and nothing is left"
        )

    def _unbiased(self, inputs: Sequence[str]) -> bool:
        """Whether one condition says E[z | x] = x."""
        relations = [constraint.relation for constraint in self.model.constraints]
        return len(relations) == 1 and any(
            isinstance(one.left, syntax.Over)
            and isinstance(one.left.body, syntax.Name)
            and isinstance(one.right, syntax.Name)
            and one.right.id in inputs
            for one in relations
        )


def short_decimal(low: float, high: float) -> Fraction:
    """The decimal of fewest digits in the middle half of an interval."""
    middle, quarter = (low + high) / 2, (high - low) / 4
    for digits in range(1, 17):
        found = Fraction(f"{middle:.{digits}g}")
        if abs(float(found) - middle) <= quarter:
            return found
    return Fraction(middle)


def _named(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _label(label: object) -> str:
    return f"({', '.join(_label(part) for part in label)})" if isinstance(label, list | tuple) else str(label)
