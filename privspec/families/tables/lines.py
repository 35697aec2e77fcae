"""Lines of a finite spec that can conflict: the spec without one of them, and the changes of it that ask for less."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from privspec.core.spans import Span
from privspec.families.infeasible import conflict_line
from privspec.families.tables.changes import Change, Figure, Share, Slack, number
from privspec.language.spelling import spell
from privspec.model.domains import Interval
from privspec.model.evaluate import evaluate
from privspec.model.graph import GraphNode, Model
from privspec.model.measures import LDP, EpsilonDelta, Lipschitz, Measure, PureDP
from privspec.model.requirements import AccuracyTarget, IndependenceRequirement, MechanismConstraint, Requirement
from privspec.model.targets import environment
from privspec.model.values import show

LARGEST_EPSILON = Fraction(16)
"""A factor of e^16 between probabilities is nothing that double precision can tell from any other."""
LARGEST_DELTA = Fraction(1, 10)
"""A larger delta is no privacy to speak of, so none is offered."""
_FREE = Fraction(10**6)


class Line(Protocol):
    """A line of the spec that asks for something."""

    @property
    def span(self) -> Span:
        """Where it stands."""

    @property
    def number(self) -> int:
        """Its number in the source."""

    @property
    def text(self) -> str:
        """What it says, without its comment."""

    def without(self, model: Model) -> Model:
        """The spec that does not ask for it."""

    def changes(self, model: Model) -> Iterator[Change]:
        """Changes of it alone, the best first; those after the first that works are not needed."""


def lines_of(model: Model) -> tuple[Line, ...]:
    """Every line that asks for something, privacy last."""
    found: list[Line] = [
        ChoiceLine(node, node.domain, line.line, line.text)
        for node in model.choices
        if isinstance(node.domain, Interval)
        for line in (conflict_line(model, node.span),)
    ]
    found += [FairnessLine(line) for line in model.fairness]
    found += [AccuracyLine(target) for target in model.accuracy]
    found += [ConditionLine(constraint) for constraint in model.constraints]
    return (*found, *(PrivacyLine(requirement) for requirement in model.requirements))


@dataclass(frozen=True, eq=False, slots=True)
class PrivacyLine:
    """A privacy requirement."""

    requirement: Requirement

    @property
    def span(self) -> Span:
        """Its own."""
        return self.requirement.span

    @property
    def number(self) -> int:
        """Its number in the source."""
        return self.requirement.line

    @property
    def text(self) -> str:
        """What it says."""
        return self.requirement.text

    def without(self, model: Model) -> Model:
        """As if it had not been written."""
        kept = tuple(written for written in model.spec.privacy if written.span != self.requirement.span)
        others = tuple(r for r in model.requirements if r is not self.requirement)
        return replace(model, requirements=others, spec=replace(model.spec, privacy=kept))

    def changes(self, model: Model) -> Iterator[Figure]:
        """A larger epsilon, a larger delta."""
        measure = self.requirement.measure
        now = measure.amounts.get("epsilon")
        if now is not None and now < LARGEST_EPSILON:
            yield self._amount("epsilon", now, now / 16, LARGEST_EPSILON - now, lambda e: _with_epsilon(measure, e))
        delta = measure.amounts.get("delta", Fraction(0))
        if isinstance(measure, PureDP | EpsilonDelta | LDP) and delta < LARGEST_DELTA:
            first = max(delta / 16, Fraction(1, 10**9))
            weaker = self._amount("delta", delta, first, LARGEST_DELTA - delta, lambda d: _with_delta(measure, d))
            yield weaker if delta else replace(weaker, growth=10)

    def _amount(
        self, name: str, now: Fraction, first: Fraction, most: Fraction, measure: Callable[[Fraction], Measure]
    ) -> Figure:
        def setter(model: Model, value: Fraction) -> Model:
            other = replace(self.requirement, measure=measure(value))
            return replace(model, requirements=tuple(other if r is self.requirement else r for r in model.requirements))

        def text(value: Fraction) -> str:
            return f"accept {measure(value).describe()}"

        return Figure(name, self.requirement.line, now, first, most, setter, text)

    @property
    def pure(self) -> bool:
        """Whether it compares probabilities by a factor alone."""
        return not self.requirement.measure.amounts.get("delta")


def _with_epsilon(measure: Measure, epsilon: Fraction) -> Measure:
    return replace(measure, epsilon=epsilon)  # type: ignore[type-var]


def _with_delta(measure: Measure, delta: Fraction) -> Measure:
    if isinstance(measure, LDP):
        return LDP(measure.epsilon, delta)
    return EpsilonDelta(measure.amounts["epsilon"], delta)


@dataclass(frozen=True, eq=False, slots=True)
class ConditionLine:
    """`E[g | x] = e`, or an inequality."""

    constraint: MechanismConstraint

    @property
    def span(self) -> Span:
        """Its own."""
        return self.constraint.relation.span

    @property
    def number(self) -> int:
        """Its number in the source."""
        return self.constraint.line

    @property
    def text(self) -> str:
        """What it says."""
        return self.constraint.text

    def without(self, model: Model) -> Model:
        """As if it had not been written."""
        return replace(model, constraints=tuple(c for c in model.constraints if c is not self.constraint))

    def changes(self, model: Model) -> Iterator[Change]:
        """Part of the signal where the right side is one, else an error that is allowed."""
        size, share = sizes(model, self.constraint)
        if share:
            yield Share((self.constraint,), size)
        yield Slack(self.constraint, size)


def sizes(model: Model, constraint: MechanismConstraint) -> tuple[Fraction, bool]:
    """The size of the values that a condition compares; whether its right side is a signal (certain, not constant)."""
    from privspec.model.worlds import worlds
    from privspec.problem.table_lines import Conditions

    space = worlds(model)
    found = Conditions(space, space.pointwise()).constraint(constraint)
    entries = [] if found.average is None else [abs(value) for value in found.average.values()]
    bounds = found.constant.values()
    size = max(entries, default=Fraction(0)) + max(abs(b) for b in bounds)
    signal = found.equality and not found.scalars and len(set(bounds)) > 1
    return size or Fraction(1), signal


@dataclass(frozen=True, eq=False, slots=True)
class AccuracyLine:
    """A bound on a loss."""

    target: AccuracyTarget

    @property
    def span(self) -> Span:
        """Its own."""
        return self.target.target.span

    @property
    def number(self) -> int:
        """Its number in the source."""
        return self.target.line

    @property
    def text(self) -> str:
        """What it says."""
        return self.target.text

    def without(self, model: Model) -> Model:
        """As if it had not been written."""
        return replace(model, accuracy=tuple(t for t in model.accuracy if t is not self.target))

    def changes(self, model: Model) -> Iterator[Change]:
        """A larger bound."""
        now = evaluate(self.target.target.right, environment(model))
        if not isinstance(now, Fraction):
            return

        def setter(model: Model, value: Fraction) -> Model:
            other = replace(self.target, target=replace(self.target.target, right=number(value)))
            return replace(model, accuracy=tuple(other if t is self.target else t for t in model.accuracy))

        def text(value: Fraction) -> str:
            return f"accept {spell(self.target.target.left)} <= {show(value)}"

        first = max(abs(now), Fraction(1, 1000)) / 64
        yield Figure("bound", self.target.line, now, first, max(abs(now), Fraction(1)) * 2**20, setter, text)


@dataclass(frozen=True, eq=False, slots=True)
class FairnessLine:
    """Groups, or people, that must be treated alike."""

    requirement: IndependenceRequirement | Requirement

    @property
    def span(self) -> Span:
        """Its own."""
        return self.requirement.span

    @property
    def number(self) -> int:
        """Its number in the source."""
        return self.requirement.line

    @property
    def text(self) -> str:
        """What it says."""
        return self.requirement.text

    def without(self, model: Model) -> Model:
        """As if it had not been written."""
        return replace(model, fairness=tuple(f for f in model.fairness if f is not self.requirement))

    def changes(self, model: Model) -> Iterator[Change]:
        """A larger tolerance."""
        line = self.requirement
        if isinstance(line, IndependenceRequirement):
            now = Fraction(0) if line.tolerance is None else evaluate(line.tolerance, environment(model))
            if isinstance(now, Fraction):
                yield self._figure(
                    now, Fraction(1, 256), Fraction(999, 1000) - now, lambda v: replace(line, tolerance=number(v)),
                    lambda v: f"accept groups up to {show(v)} apart",
                )  # fmt: skip
            return
        measure = line.measure
        if isinstance(measure, Lipschitz):
            now = measure.constant
            first, most = max(now, Fraction(1, 1000)) / 64, max(now, Fraction(1)) * 1024
            yield self._figure(
                now, first, most, lambda v: replace(line, measure=replace(measure, constant=v)),
                lambda v: f"accept {replace(measure, constant=v).describe()}",
            )  # fmt: skip

    def _figure(
        self,
        now: Fraction,
        first: Fraction,
        most: Fraction,
        weaker: Callable[[Fraction], IndependenceRequirement | Requirement],
        text: Callable[[Fraction], str],
    ) -> Figure:
        def setter(model: Model, value: Fraction) -> Model:
            fairness = tuple(weaker(value) if f is self.requirement else f for f in model.fairness)
            return replace(model, fairness=fairness)

        return Figure("tolerance", self.requirement.line, now, first, most, setter, text)


@dataclass(frozen=True, eq=False, slots=True)
class ChoiceLine:
    """The range of a number that the solver picks."""

    node: GraphNode
    interval: Interval
    number: int
    text: str

    @property
    def span(self) -> Span:
        """Its own."""
        return self.node.span

    def without(self, model: Model) -> Model:
        """With a range that nothing reaches the end of."""
        free = replace(self.node, domain=Interval(-_FREE, _FREE))
        return replace(model, nodes={**model.nodes, self.node.name: free})

    def changes(self, model: Model) -> Iterator[Change]:
        """Another end."""
        for falls, now in ((True, self.interval.low), (False, self.interval.high)):
            most = None if now is None else self._most(now, falls)
            if now is not None and most:
                yield self._end(now, most, falls)

    def _most(self, now: Fraction, falls: bool) -> Fraction:
        """Shares stay shares: from 0 up to 1 where the range lies between them, else far beyond."""
        low, high = self.interval.low, self.interval.high
        if low is not None and high is not None and low >= 0 and high <= 1:
            return now * Fraction(999, 1000) if falls else 1 - now
        return max(abs(now), Fraction(1)) * 2**10

    def _end(self, now: Fraction, most: Fraction, falls: bool) -> Figure:
        def setter(model: Model, value: Fraction) -> Model:
            domain = replace(self.interval, low=value) if falls else replace(self.interval, high=value)
            return replace(model, nodes={**model.nodes, self.node.name: replace(self.node, domain=domain)})

        def text(value: Fraction) -> str:
            return f"let {self.node.name} be as {'small' if falls else 'large'} as {show(value)}"

        return Figure("end", self.number, now, most / 2**20, most, setter, text, falls=falls)
