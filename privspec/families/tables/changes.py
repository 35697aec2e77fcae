"""Lines of a finite spec that ask for something: its problem without one of them, and changes that ask for less.

Every change edits the problem; the spec is only looked at for its words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from privspec.core.records import dataclass, replace
from privspec.families.decision import conflict_line, decimal_up
from privspec.families.tables.system import edited, table_of
from privspec.kernel.core.reading import Grid
from privspec.kernel.tables_forms import Choice, Condition, Scaled
from privspec.kernel.writing import exact_grid
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.model.graph import Model
from privspec.model.measures import AskedMeasure, MeasureAt, Personalised
from privspec.model.requirements import AccuracyTarget, IndependenceRequirement, MechanismConstraint, Requirement
from privspec.model.values import show
from privspec.model.worlds import worlds
from privspec.problem.elaborate import Problem, measure_of
from privspec.problem.table_lines import Conditions

LARGEST_EPSILON = Fraction(16)
"""A factor of e^16 between probabilities is nothing that double precision can tell from any other."""
LARGEST_DELTA = Fraction(1, 10)
"""A larger delta is no privacy to speak of, so none is offered."""
FIGURE = "the figure"
"""A chosen number under a name that no author can write."""
DIGITS = 3
_FREE = Fraction(10**6)


# --- changes --------------------------------------------------------------------------------------


class Change(ABC):
    """A change by an amount t > 0, up to `most`; searches start at `first` and grow by `growth`."""

    growth: int = 2
    digits = DIGITS

    line: int | None
    first: Fraction
    most: Fraction

    def value(self, amount: Fraction) -> Fraction:
        """The figure that then stands in the spec."""
        return amount

    @abstractmethod
    def apply(self, problem: Problem, value: Fraction) -> Problem:
        """The changed problem."""

    @abstractmethod
    def words(self, value: Fraction) -> str:
        """The change in a few words."""

    def chosen(self, problem: Problem) -> Problem | None:
        """The problem with the figure as a number `FIGURE` to be chosen; None where that is not linear."""
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


@dataclass(frozen=True, eq=False)
class Figure(Change):
    """A figure of one line that grows, or falls: `setter` writes it into the problem, `text` says so."""

    name: str
    line: int
    now: Fraction
    first: Fraction
    most: Fraction
    setter: Callable[[Problem, Fraction], Problem]
    text: Callable[[Fraction], str]
    growth: int = 2
    falls: bool = False

    def value(self, amount: Fraction) -> Fraction:
        return self.now - amount if self.falls else self.now + amount

    def apply(self, problem: Problem, value: Fraction) -> Problem:
        return self.setter(problem, value)

    def words(self, value: Fraction) -> str:
        return self.text(value)


@dataclass(frozen=True, eq=False)
class Slack(Change):
    """A condition met up to an amount: `E[g] = e` between e - t and e + t, `E[g] <= e` up to e + t."""

    constraint: MechanismConstraint
    size: Fraction

    @property
    def line(self) -> int:  # type: ignore[override]
        return self.constraint.line

    @property
    def first(self) -> Fraction:  # type: ignore[override]
        return self.size / 64

    @property
    def most(self) -> Fraction:  # type: ignore[override]
        return self.size * 64

    def apply(self, problem: Problem, value: Fraction) -> Problem:
        return self._relaxed(problem, lambda one: _sum(one, -value))

    def chosen(self, problem: Problem) -> Problem:
        room = self._relaxed(problem, lambda one: _sum(one, Fraction(0), {FIGURE: [Fraction(-1)] * _rows(one)}))
        return _with_choice(room, FIGURE, Fraction(0), self.most)

    def _relaxed(self, problem: Problem, room: Callable[[Condition], Condition]) -> Problem:
        found: list[Condition] = []
        for one in table_of(problem).conditions:
            sides = [one] if one.line != self.line else [room(replace(one, equality=False))]
            if one.line == self.line and one.equality:
                sides.append(room(_negated(replace(one, equality=False))))
            found += sides
        return edited(problem, conditions=tuple(found))

    def words(self, value: Fraction) -> str:
        relation, slack = self.constraint.relation, syntax.Number(value)
        up = replace(relation, op="<=", right=syntax.Binary("+", relation.right, slack))
        down = replace(relation, op=">=", right=syntax.Binary("-", relation.right, slack))
        said = (up, down) if relation.op == "=" else (down,) if relation.op in (">=", "≥") else (up,)
        return "accept " + " and ".join(map(spell, said))


@dataclass(frozen=True, eq=False)
class Share(Change):
    """Part of the signal: `E[g | x] = alpha e + c` with a constant c of each line, for the largest alpha that works.

    `signals`: the right sides e, by row.
    """

    constraints: tuple[MechanismConstraint, ...]
    signals: tuple[tuple[Fraction, ...], ...]
    size: Fraction
    first = Fraction(1, 64)
    most = Fraction(999, 1000)
    digits = 2

    @property
    def line(self) -> int | None:  # type: ignore[override]
        """That of the condition, if it is one."""
        return self.constraints[0].line if len(self.constraints) == 1 else None

    def value(self, amount: Fraction) -> Fraction:
        return 1 - amount

    def constant(self, k: int) -> str:
        """The name under which the constant of a line is chosen; no author can write it."""
        return f"constant of line {self.constraints[k].line}"

    def apply(self, problem: Problem, value: Fraction) -> Problem:
        return self._applied(problem, value)

    def chosen(self, problem: Problem) -> Problem:
        return _with_choice(self._applied(problem, None), FIGURE, 1 - self.most, Fraction(1))

    def _applied(self, problem: Problem, alpha: Fraction | None, constants: Sequence[Fraction] = ()) -> Problem:
        """With this alpha, or one to be chosen, and with constants for the first conditions; the others are chosen."""
        conditions = list(table_of(problem).conditions)
        for k, (constraint, signal) in enumerate(zip(self.constraints, self.signals, strict=True)):
            known = k < len(constants)
            scalars = {} if known else {self.constant(k): [Fraction(-1)] * len(signal)}
            scalars |= {FIGURE: [-value for value in signal]} if alpha is None else {}
            less = [(1 - (alpha or 0)) * value - (constants[k] if known else 0) for value in signal]
            conditions = [_sum(c, less, scalars) if c.line == constraint.line else c for c in conditions]
            problem = problem if known else _with_choice(problem, self.constant(k), -self.size, self.size)
        return edited(problem, conditions=tuple(conditions))

    def settled(self, problem: Problem, value: Fraction, constants: Sequence[Fraction]) -> Problem:
        """With these constants for the first conditions."""
        return self._applied(problem, value, constants)

    def words(self, value: Fraction) -> str:
        lines = " and ".join(str(constraint.line) for constraint in self.constraints)
        where = "" if self.line else f" in lines {lines}, each with a constant of its own"
        return f"accept alpha = {show(value)} of the signal{where}"

    def settled_words(self, value: Fraction, constants: Sequence[Fraction]) -> str:
        """Alpha, and what the lines then say."""
        said = []
        for constraint, constant in zip(self.constraints, constants, strict=True):
            scaled = syntax.Binary("*", syntax.Number(value), constraint.relation.right)
            said.append(replace(constraint.relation, right=syntax.Binary("+", scaled, syntax.Number(constant))))
        return f"accept alpha = {show(value)} of the signal: {'; '.join(map(spell, said))}"


def _rows(condition: Condition) -> int:
    return len(condition.constant.entries)


def _sum(
    condition: Condition, more: Fraction | Sequence[Fraction], scalars: dict[str, list[Fraction]] | None = None
) -> Condition:
    """A condition with more in its constant, at every row, and with further scalars."""
    each = [more] * _rows(condition) if isinstance(more, Fraction) else more
    constant = [a + b for a, b in zip(condition.constant.values(), each, strict=True)]
    named = [Scaled(name, exact_grid(values, (len(values),))) for name, values in (scalars or {}).items()]
    return replace(
        condition,
        constant=exact_grid(constant, condition.constant.shape),
        scalars=tuple(sorted((*condition.scalars, *named), key=lambda one: one.name)),
    )


def _negated(condition: Condition) -> Condition:
    def less(numbers: Grid) -> Grid:
        return replace(numbers, entries=tuple(-entry for entry in numbers.entries))

    return replace(
        condition,
        average=None if condition.average is None else less(condition.average),
        scalars=tuple(replace(one, values=less(one.values)) for one in condition.scalars),
        constant=less(condition.constant),
    )


def _with_choice(problem: Problem, name: str, low: Fraction, high: Fraction) -> Problem:
    """With a further number that the solver picks."""
    more = Choice(name, low, high, False, False)
    return edited(problem, choices=(*table_of(problem).choices, more))


# --- lines ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Line(ABC):
    """A line of the spec that asks for something: its number in the source, and what it says."""

    number: int
    text: str

    @abstractmethod
    def without(self, problem: Problem) -> Problem:
        """The problem that does not ask for it."""

    @abstractmethod
    def changes(self, problem: Problem) -> Iterator[Change]:
        """Changes of it alone, the best first; those after the first that works are not needed."""


def lines_of(model: Model, problem: Problem) -> tuple[Line, ...]:
    """Every line that asks for something, privacy last."""
    found: list[Line] = []
    for choice in table_of(problem).choices:
        said = conflict_line(model, model.nodes[choice.name].span)
        found.append(ChoiceLine(said.line, said.text, choice))
    found += [FairnessLine(line.line, line.text, line) for line in model.fairness]
    found += [AccuracyLine(target.line, target.text, target) for target in model.accuracy]
    found += [ConditionLine(one.line, one.text, model, one) for one in model.constraints]
    return (*found, *(PrivacyLine(one.line, one.text, model, one) for one in model.requirements))


def _find(items: Sequence[Any], line: int) -> Any:
    return next(item for item in items if item.line == line)


def _others(items: Sequence[Any], line: int) -> tuple[Any, ...]:
    return tuple(item for item in items if item.line != line)


def _changed(items: Sequence[Any], line: int, **parts: Any) -> tuple[Any, ...]:
    return tuple(replace(item, **parts) if item.line == line else item for item in items)


@dataclass(frozen=True, eq=False, slots=True)
class PrivacyLine(Line):
    """A privacy requirement."""

    model: Model
    requirement: Requirement

    def without(self, problem: Problem) -> Problem:
        both = zip(problem.obligations, table_of(problem).compared, strict=True)
        kept = [(one, compared) for one, compared in both if one.line != self.number]
        changed = edited(problem, compared=tuple(compared for _, compared in kept))
        return replace(changed, obligations=tuple(one for one, _ in kept))

    def changes(self, problem: Problem) -> Iterator[Figure]:
        """A larger epsilon, rho or mu, a larger delta."""
        measure = self.requirement.measure
        for name, now in measure.amounts.items():
            if name in ("epsilon", "rho", "mu") and now < LARGEST_EPSILON:
                most = LARGEST_EPSILON - now
                yield self._amount(name, now, now / 16, most, lambda e, name=name: _with(measure, name, e))  # type: ignore[misc]
        delta = measure.amounts.get("delta", Fraction(0))
        may_fail = isinstance(measure, MeasureAt) and measure.of.of_laws and measure.of.with_delta is not None
        if isinstance(measure, MeasureAt) and may_fail and delta < LARGEST_DELTA:
            first = max(delta / 16, Fraction(1, 10**9))
            weaker = self._amount("delta", delta, first, LARGEST_DELTA - delta, measure.with_delta)
            yield weaker if delta else replace(weaker, growth=10)

    def _amount(
        self, name: str, now: Fraction, first: Fraction, most: Fraction, measure: Callable[[Fraction], AskedMeasure]
    ) -> Figure:
        def setter(problem: Problem, value: Fraction) -> Problem:
            weaker = measure_of(measure(value), self.model)
            return replace(problem, obligations=_changed(problem.obligations, self.number, measure=weaker))

        def text(value: Fraction) -> str:
            return f"accept {measure(value).describe()}"

        return Figure(name, self.number, now, first, most, setter, text)

    @property
    def pure(self) -> bool:
        """Whether it compares probabilities by a factor alone."""
        return not self.requirement.measure.amounts.get("delta")


def _with(measure: AskedMeasure, name: str, amount: Fraction) -> AskedMeasure:
    if isinstance(measure, Personalised):
        share = amount / measure.amounts[name]
        return replace(measure, each=tuple(_with(one, name, share * one.amounts[name]) for one in measure.each))
    assert isinstance(measure, MeasureAt)
    return measure.changed(**{name: amount})


@dataclass(frozen=True, eq=False, slots=True)
class ConditionLine(Line):
    """`E[g | x] = e`, or an inequality."""

    model: Model
    constraint: MechanismConstraint

    def without(self, problem: Problem) -> Problem:
        return edited(problem, conditions=_others(table_of(problem).conditions, self.number))

    def changes(self, problem: Problem) -> Iterator[Change]:
        """Part of the signal where the right side is one, else an error that is allowed."""
        share = self.share(problem)
        if share is not None:
            yield share
        yield Slack(self.constraint, self._size(problem))

    def _size(self, problem: Problem) -> Fraction:
        """The size of the values that it compares."""
        one = _find(table_of(problem).conditions, self.number)
        entries = [] if one.average is None else one.average.values()
        size = max(map(abs, entries), default=Fraction(0)) + max(map(abs, one.constant.values()))
        return size or Fraction(1)

    def share(self, problem: Problem) -> Share | None:
        """Part of the signal; None where the right side is none: unknown, the same at every row, or no equality."""
        one: Condition = _find(table_of(problem).conditions, self.number)
        if not one.equality or one.scalars:
            return None
        space = worlds(self.model)
        found = Conditions(space, space.pointwise()).affine(self.constraint.relation.right)
        signal = tuple(found.constant.tolist())
        if not found.certain or len(set(signal)) < 2:
            return None
        return Share((self.constraint,), (signal,), self._size(problem))


@dataclass(frozen=True, eq=False, slots=True)
class AccuracyLine(Line):
    """A bound on a loss, or on what a lie brings."""

    target: AccuracyTarget

    def without(self, problem: Problem) -> Problem:
        table = table_of(problem)
        kept = (_others(items, self.number) for items in (table.accuracy, table.manipulation))
        return edited(problem, **dict(zip(("accuracy", "manipulation"), kept, strict=True)))

    def changes(self, problem: Problem) -> Iterator[Change]:
        """A larger bound."""

        def setter(problem: Problem, value: Fraction) -> Problem:
            table = table_of(problem)
            both = (_changed(items, self.number, limit=value) for items in (table.accuracy, table.manipulation))
            return edited(problem, **dict(zip(("accuracy", "manipulation"), both, strict=True)))

        def text(value: Fraction) -> str:
            return f"accept {spell(self.target.target.left)} <= {show(value)}"

        table = table_of(problem)
        now = _find((*table.accuracy, *table.manipulation), self.number).limit
        first = max(abs(now), Fraction(1, 1000)) / 64
        yield Figure("bound", self.number, now, first, max(abs(now), Fraction(1)) * 2**20, setter, text)


@dataclass(frozen=True, eq=False, slots=True)
class FairnessLine(Line):
    """Groups, or people, that must be treated alike."""

    requirement: IndependenceRequirement | Requirement

    def without(self, problem: Problem) -> Problem:
        return edited(problem, fairness=_others(table_of(problem).fairness, self.number))

    def changes(self, problem: Problem) -> Iterator[Change]:
        """A larger tolerance."""
        line = self.requirement
        if isinstance(line, IndependenceRequirement):
            fair = _find(table_of(problem).fairness, self.number)
            now, first, most = fair.tolerances[0], Fraction(1, 256), Fraction(999, 1000) - fair.tolerances[0]
            yield Figure("tolerance", self.number, now, first, most, self._tolerant, _apart)
        elif isinstance(line.measure, MeasureAt) and line.measure.of.fairness:
            measure, (now,) = line.measure, line.measure.values

            def scaled(problem: Problem, value: Fraction) -> Problem:
                return self._scaled(problem, value / now)

            def words(value: Fraction) -> str:
                return f"accept {replace(measure, values=(value,)).describe()}"

            first, most = max(now, Fraction(1, 1000)) / 64, max(now, Fraction(1)) * 1024
            yield Figure("tolerance", self.number, now, first, most, scaled, words)

    def _tolerant(self, problem: Problem, value: Fraction) -> Problem:
        changed = _changed(table_of(problem).fairness, self.number, tolerances=(value,), squares=(value**2,))
        return edited(problem, fairness=changed)

    def _scaled(self, problem: Problem, factor: Fraction) -> Problem:
        """With every tolerance times a factor."""
        fair = _find(table_of(problem).fairness, self.number)
        tolerances = tuple(tolerance * factor for tolerance in fair.tolerances)
        squares = tuple(square * factor**2 for square in fair.squares)
        changed = _changed(table_of(problem).fairness, self.number, tolerances=tolerances, squares=squares)
        return edited(problem, fairness=changed)


def _apart(value: Fraction) -> str:
    return f"accept groups up to {show(value)} apart"


@dataclass(frozen=True, eq=False, slots=True)
class ChoiceLine(Line):
    """The range of a number that the solver picks."""

    choice: Choice

    def without(self, problem: Problem) -> Problem:
        """With a range that nothing reaches the end of."""
        return self._with(problem, low=-_FREE, high=_FREE)

    def _with(self, problem: Problem, **parts: Fraction) -> Problem:
        choices = table_of(problem).choices
        changed = tuple(replace(one, **parts) if one.name == self.choice.name else one for one in choices)  # type: ignore[arg-type]
        return edited(problem, choices=changed)

    def changes(self, problem: Problem) -> Iterator[Change]:
        """Another end: shares stay shares, from 0 up to 1 where the range lies between them, else far beyond."""
        low, high = self.choice.low, self.choice.high
        for falls, now in ((True, low), (False, high)):
            most = max(abs(now), Fraction(1)) * 2**10
            if low >= 0 and high <= 1:
                most = now * Fraction(999, 1000) if falls else 1 - now
            if most:
                yield self._end(now, most, falls)

    def _end(self, now: Fraction, most: Fraction, falls: bool) -> Figure:
        def setter(problem: Problem, value: Fraction) -> Problem:
            return self._with(problem, **{"low" if falls else "high": value})

        def text(value: Fraction) -> str:
            return f"let {self.choice.name} be as {'small' if falls else 'large'} as {show(value)}"

        return Figure("end", self.number, now, most / 2**20, most, setter, text, falls=falls)
