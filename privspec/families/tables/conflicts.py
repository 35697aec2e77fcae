"""Requirements that no table meets: the smallest set of lines in conflict, and the smallest relaxations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from math import prod

import numpy as np

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Span
from privspec.families.family import Settings
from privspec.families.infeasible import ConflictLine, Infeasible, Relaxation, conflict_line
from privspec.families.tables.changes import A_SECOND, Change, EnoughError, Figure, Share, Solver, Trials, smallest
from privspec.families.tables.lines import LARGEST_EPSILON, ConditionLine, Line, PrivacyLine, lines_of, sizes
from privspec.families.tables.program import Lowered, to_program
from privspec.families.tables.system import lower
from privspec.language import syntax
from privspec.model.domains import Domain, FiniteSet, Grid, IntegerRange, Power
from privspec.model.graph import GraphNode, Model
from privspec.model.reports import Failure
from privspec.model.values import show
from privspec.model.worlds import Worlds
from privspec.solvers.programs import OutOfTimeError
from privspec.solvers.table_programs import InfeasibleTable
from privspec.solvers.table_support import no_common_support

MOST_ENTRIES = 10_000
"""Entries of the largest table that is tried."""
MOST_TIMES = 32
"""Widest range that is tried, in widths of the range as written."""
_FEW = 4


@dataclass(frozen=True, eq=False, slots=True)
class RangeLine:
    """The line that says where a numeric output lies."""

    node: GraphNode
    rows: int

    @property
    def span(self) -> Span:
        """Where the output is declared."""
        return self.node.span

    def wider(self, model: Model, below: int, above: int) -> Model | None:
        """The spec with further values of the output; None where the table would be too large."""
        assert self.node.domain is not None
        domain = extended(self.node.domain, below, above)
        if domain is None:
            return None
        sizes = [o.domain.size or 0 for o in model.outputs if o.domain is not None and o.name != self.node.name]
        if prod(sizes) * (domain.size or 0) * self.rows > MOST_ENTRIES:
            return None
        return self._with(model, domain)

    def direction(self, model: Model, possible: Callable[[Model], bool]) -> tuple[int, int] | None:
        """Which ends must move, as (1, 1), (0, 1) or (1, 0), if a much wider range is enough; None if it is not.

        Of the wide range a few values are tried: others need not be used.
        """
        assert self.node.domain is not None
        for below, above in ((1, 1), (0, 1), (1, 0)):
            most = self._most(model, below, above)
            few = sparse_range(self.node.domain, below * most, above * most)
            if most and few is not None and possible(self._with(model, few)):
                return below, above
        return None

    def _with(self, model: Model, domain: Domain) -> Model:
        return replace(model, nodes={**model.nodes, self.node.name: replace(self.node, domain=domain)})

    def _most(self, model: Model, below: int, above: int) -> int:
        """How often the range can be widened by so much."""
        size = getattr(self.node.domain, "size", None) or 0
        most = size * MOST_TIMES // max(below + above, 1)
        while most and self.wider(model, below * most, above * most) is None:
            most //= 2
        return most

    def smallest(self, model: Model, possible: Callable[[Model], bool]) -> tuple[int, int] | None:
        """How many values to add below and above, neither of which can be made smaller by itself; None if none help."""

        def works(below: int, above: int) -> bool:
            changed = self.wider(model, below, above)
            return changed is not None and possible(changed)

        found = self.direction(model, possible)
        if found is None:
            return None
        below, above = found
        both = _least(lambda k: works(below * k, above * k), self._most(model, below, above))
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
    high = min(high, low + step)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return high


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
    model: Model, lowered: Lowered, found: InfeasibleTable, settings: Settings, again: Solver
) -> Infeasible:
    """The lines that conflict; with `settings.alternatives` the least such set, and ways out."""
    proof = _from_proof(model, lowered, found)
    if not settings.alternatives:
        return Infeasible(_reason(model), proof, ())
    search = _Search(model, Trials(settings, LIMIT, again))
    try:
        conflict = search.conflict()
    except EnoughError:
        return Infeasible(_reason(model), proof, ())
    except OutOfTimeError:
        return Infeasible(_reason(model) + ENDED, proof, ())
    lines = {line.line: line for line in (conflict_line(model, item.span) for item in conflict)}
    ordered = tuple(lines[number] for number in sorted(lines))
    relaxations = tuple(search.relaxations(conflict))
    return Infeasible(_reason(model) + (ENDED if search.ended else ""), ordered or proof, relaxations)


def _reason(model: Model) -> str:
    return f"no law of {', '.join(node.name for node in model.outputs)} meets these lines together"


def _from_proof(model: Model, lowered: Lowered, found: InfeasibleTable) -> tuple[ConflictLine, ...]:
    """The lines behind the rows of a proof of infeasibility."""
    spans = [lowered.equalities[k].span for k in found.equalities]
    spans += [lowered.inequalities[k].span for k in found.inequalities]
    spans += [model.requirements[lowered.blocks[k]].span for k in found.privacy]
    lines = {line.line: line for line in (conflict_line(model, span) for span in spans)}
    return tuple(lines[number] for number in sorted(lines))


@dataclass(frozen=True, eq=False, slots=True)
class _Search:
    """Tries changes of one spec."""

    model: Model
    trials: Trials
    late: list[OutOfTimeError] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        """Whether the user's time limit ended it early."""
        return bool(self.late)

    # -- what conflicts

    def conflict(self) -> tuple[Line | RangeLine, ...]:
        """Lines of which none can be left out; ranges of outputs that stand in the way of these belong to them.

        Raises: OutOfTimeError.
        """
        kept = list(lines_of(self.model))
        for line in tuple(kept):
            fewer = [other for other in kept if other is not line]
            if not self.trials.possible(self._only(fewer)):
                kept = fewer
        least = self._only(kept)
        ranges = [r for r in self._ranges() if r.direction(least, self.trials.possible) is not None]
        return (*ranges, *kept)

    def _only(self, kept: Sequence[Line]) -> Model:
        model = self.model
        for line in lines_of(self.model):
            if not any(line.span == other.span for other in kept):
                model = line.without(model)
        return model

    def _ranges(self) -> tuple[RangeLine, ...]:
        program = self.trials.constraints(self.model)
        rows = 1 if program is None else program.shape[0]
        return tuple(RangeLine(node, rows) for node in self.model.outputs)

    # -- ways out

    def relaxations(self, conflict: Sequence[Line | RangeLine]) -> Iterator[Relaxation]:
        """Single changes that work, as far as work and time allow."""
        order = sorted(conflict, key=lambda line: (isinstance(line, RangeLine), isinstance(line, PrivacyLine)))
        try:
            shared = False
            for line in order:
                if isinstance(line, RangeLine):
                    yield from self._wider(line)
                    continue
                if isinstance(line, PrivacyLine):
                    yield from self._weaker(line)
                    continue
                found = (r for change in line.changes(self.model) for r in self._tried(change))
                if isinstance(line, ConditionLine):
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

    def _tried(self, change: Change) -> Iterator[Relaxation]:
        """The least figure for which there is an exact table."""
        for value in smallest(change, self.model, self.trials):
            if isinstance(change, Share):
                constants = self._constants(change, value)
                found = None if constants is None else self.trials.works(change.settled(self.model, value, constants))
                if constants is not None and found is not None:
                    yield Relaxation(change.settled_words(value, constants), change.line, found.loss)
                    return
            found = self.trials.works(change.apply(self.model, value))
            if found is not None:
                yield Relaxation(change.words(value), change.line, found.loss)
                return

    def _constants(self, change: Share, value: Fraction) -> list[Fraction] | None:
        """A constant of few digits for each condition, well inside what is possible."""
        fixed: list[Fraction] = []
        for k in range(len(change.constraints)):
            model = change.settled(change.apply(self.model, value), value, fixed)
            ends = [self.trials.extreme(model, change.constant(k), largest=largest) for largest in (False, True)]
            if ends[0] is None or ends[1] is None:
                return None
            fixed.append(short_decimal(ends[0], ends[1]))
        return fixed

    def _shares_of_all(self, conflict: Sequence[Line | RangeLine]) -> Iterator[Relaxation]:
        """One share of the signal in every condition, where none of them alone is enough."""
        signals = []
        for constraint in self.model.constraints:
            size, signal = sizes(self.model, constraint)
            if signal:
                signals.append((constraint, size))
        if len(signals) > 1 and any(isinstance(line, ConditionLine) for line in conflict):
            yield from self._tried(Share(tuple(c for c, _ in signals), max(size for _, size in signals)))

    def _wider(self, line: RangeLine) -> Iterator[Relaxation]:
        least = line.smallest(self.model, self.trials.possible)
        if least is None:
            return
        below, above = least
        # At the least range there may be one table only, on the edge of every constraint, and no exact one nearby.
        for more in ((0, 0), (0, 1), (1, 0), (1, 1)):
            low, high = below + more[0], above + more[1]
            changed = line.wider(self.model, low, high)
            found = None if changed is None else self.trials.works(changed)
            if found is not None:
                yield Relaxation(line.words(low, high), conflict_line(self.model, line.span).line, found.loss)
                return

    # -- privacy

    def _weaker(self, line: PrivacyLine) -> Iterator[Relaxation]:
        """A larger epsilon, or why none is enough; a larger delta."""
        if not self.trials.possible(line.without(self.model)):
            return
        why = self._no_support(line) if line.pure else None
        hopeless = f"no epsilon is enough: {why}"
        for change in line.changes(self.model):
            if change.name == "delta" and not self._small():
                continue
            if why is None or change.name != "epsilon":
                found = list(self._tried(change))
                yield from found
                if change.name == "epsilon" and not found and not self._possible_at_most(change):
                    why, hopeless = "", f"no epsilon up to {show(LARGEST_EPSILON)} is enough"
        if why is not None:
            yield Relaxation(hopeless, line.requirement.line, None, works=False)

    def _small(self) -> bool:
        """Whether a delta can be tried: it takes a slack for each pair of inputs and each output."""
        program = self.trials.constraints(self.model)
        return program is not None and program.shape[0] * program.cost.size <= MOST_SLACKS

    def _possible_at_most(self, change: Figure) -> bool:
        return self.trials.possible(change.apply(self.model, change.value(change.most)))

    def _no_support(self, line: PrivacyLine) -> str | None:
        try:
            system = lower(self.model)
            lowered = to_program(system)
        except (Failure, SpecError):
            return None
        index = next(k for k, r in enumerate(self.model.requirements) if r is line.requirement)
        if index not in lowered.blocks or lowered.cost.size > MOST_SUPPORTS:
            return None
        block = lowered.program.privacy[lowered.blocks.index(index)]
        found = no_common_support(lowered.program, block)
        return None if found is None else self._support_words(system.worlds, found.possible)

    def _support_words(self, worlds: Worlds, possible: np.ndarray[tuple[int, int], np.dtype[np.bool_]]) -> str:
        """What the lines leave one row."""
        drawn = _named(worlds.releases)
        certain = np.flatnonzero(possible.sum(axis=1) == 1)
        if len(certain):
            row = int(certain[-1])
            value = _label(worlds.column_labels[int(np.flatnonzero(possible[row])[0])])
            kind = "an unbiased " if self._unbiased(worlds) else ""
            return f"for {_named(worlds.of)} = {_label(worlds.labels[row])} {kind}{drawn} must always be {value}"
        row, column = (int(k) for k in np.argwhere(~possible)[-1])
        value = _label(worlds.column_labels[column])
        return (
            f"for {_named(worlds.of)} = {_label(worlds.labels[row])} {drawn} can never be {value}, "
            f"so that it never could be, and nothing is left"
        )

    def _unbiased(self, worlds: Worlds) -> bool:
        """Whether one condition says E[z | x] = x."""
        return len(self.model.constraints) == 1 and any(
            isinstance(c.relation.left, syntax.Over)
            and isinstance(c.relation.left.body, syntax.Name)
            and isinstance(c.relation.right, syntax.Name)
            and c.relation.right.id in worlds.of
            for c in self.model.constraints
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
    return f"({', '.join(_label(part) for part in label)})" if isinstance(label, list) else str(label)
