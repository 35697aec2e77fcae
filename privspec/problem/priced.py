"""Privacy as a cost: an amount that solving picks from a range, and that the loss adds beside errors, or alone.

At each value of the number the spec is an ordinary one: that of its other terms of the loss, and of all its lines. The
block of that spec is the same at every value; only the amounts of the obligations are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TypeAlias

from privspec.core.diagnostics import SpecError
from privspec.core.records import dataclass, replace
from privspec.core.spans import Span
from privspec.kernel.measures import PURE
from privspec.kernel.priced import RISING, Price, Priced
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import every, names_used
from privspec.model.build import build
from privspec.model.domains import Interval
from privspec.model.graph import GraphNode, Model, once
from privspec.model.measures import AskedMeasure, Chosen, MeasureAt
from privspec.model.requirements import Requirement
from privspec.problem.terms import factor_of, public, public_number
from privspec.problem.words import block_words
from privspec.registry import Family, family_of

POWERS = (1, 2, 3, 4)
"""Powers of a chosen number that a loss may add up."""
ZERO = syntax.Number(Fraction(0))


def words(priced: Priced) -> Iterator[str]:
    """The range, what the number costs, then what the block says."""
    top = "any number from it on" if priced.high is None else f"{priced.high}"
    powers = (f"{priced.name}^{price.power}" if price.power > 1 else priced.name for price in priced.prices)
    costs = [f"{price.weight} times {power}" for price, power in zip(priced.prices, powers, strict=True)]
    yield f"{priced.name} is picked between {priced.low} and {top}."
    yield f"The loss is `{priced.loss}`: {' and '.join(costs)}, beside what follows."
    yield from block_words(priced.block)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A spec taken apart: the number that is picked, its prices, and the other terms of the loss, None without any."""

    node: GraphNode
    low: Fraction
    high: Fraction | None
    prices: tuple[Price, ...]
    rest: syntax.Expr | None

    def cost(self, value: Fraction) -> Fraction:
        """What the loss adds for the number."""
        return sum((price.weight * value**price.power for price in self.prices), Fraction(0))


def reads(model: Model) -> bool:
    """Whether an amount of a privacy line is picked from an interval."""
    return not model.components and bool(_picked(model))


def block_of(model: Model) -> Priced:
    """The block of a spec.

    Raises: SpecError PS05xx.
    """
    found, fixed = parsed(model), inner(model)
    block = family_of(fixed).reads.block_of(fixed)
    assert model.loss is not None
    return Priced(found.node.name, found.low, found.high, found.prices, spell(model.loss), block)


def difference_of(model: Model, moved: Requirement) -> object:
    """What one unit changes, in the numbers of the block."""
    return family_of(inner(model)).difference(inner(model), moved)


def inner_family(model: Model) -> Family:
    """The family of the spec at any value of the number.

    Raises: SpecError PS0524.
    """
    return family_of(inner(model))


def reference(model: Model) -> Fraction:
    """A value of the range at which the block is read."""
    found = parsed(model)
    middle = max(found.low * 2, Fraction(1)) if found.high is None else (found.low + found.high) / 2
    below = (1 / factor for factor in factors_of_delta(model))
    middle = min((middle, *((found.low + end) / 2 for end in below if found.low < end)))
    return Fraction(1) if found.low < 1 < middle else middle


@once
def inner(model: Model) -> Model:
    """The spec at one value of the number: there it is a parameter, and costs nothing."""
    found, spec = parsed(model), model.spec
    node, value = found.node, reference(model)
    given = syntax.Parameter(syntax.Ref(node.name, span=node.span), syntax.Number(value, span=node.span))
    kept = tuple(one for one in spec.variables if one.target.name != node.name)
    fixed = replace(spec, variables=kept, parameters=(*spec.parameters, given), loss=found.rest)
    return build(fixed, model.source, parameters=model.parameters, base=model.base, files=model.files)


def lines_at(model: Model, value: Fraction) -> tuple[Requirement, ...]:
    """The lines of privacy at a value of the number."""
    found = []
    for one, known in zip(model.requirements, inner(model).requirements, strict=True):
        amounts = one.measure.amounts_as_written if isinstance(one.measure, Chosen) else ()
        factors = [factor_of(amount, parsed(model).node.name, model) for amount in amounts]
        picked = {
            word: factor[0] * value
            for word, factor in zip(one.measure.figures, factors, strict=False)
            if factor is not None
        }
        measure: AskedMeasure = known.measure
        found.append(replace(known, measure=measure.changed(**picked) if isinstance(measure, MeasureAt) else measure))
    return tuple(found)


def factors_of_delta(model: Model) -> list[Fraction]:
    """How many times the number each delta is that grows with it."""
    name = parsed(model).node.name
    amounts = (
        factor_of(amount, name, model)
        for line in model.requirements
        if isinstance(line.measure, Chosen)
        for word, amount in zip(line.measure.figures, line.measure.amounts_as_written, strict=False)
        if word == "delta"
    )
    return [found[0] for found in amounts if found is not None]


def _picked(model: Model) -> list[GraphNode]:
    lines = [one.measure for one in model.requirements if isinstance(one.measure, Chosen)]
    used = {name for measure in lines for expr in measure.amounts_as_written for name in names_used(expr)}
    return [node for node in model.choices if node.name in used and isinstance(node.domain, Interval)]


@once
def parsed(model: Model) -> Parsed:
    """The number, its prices and the rest of the loss.

    Raises: SpecError PS0524 for more numbers than one, amounts that do not grow with it, losses of another form;
    PS0504 where the loss does not make it small, or no line asks for any accuracy.
    """
    first, *more = _picked(model)
    if more:
        raise _error(model, more[0].span, "solve picks one amount at a time", help_="give the others a value")
    domain = first.domain
    assert isinstance(domain, Interval)
    if domain.low is None or domain.low < 0:
        raise _error(model, first.span, f"{first.name} is an amount of privacy: its range begins at 0 or above")
    _check_places(model, first.name)
    _check_amounts(model, first.name)
    if model.loss is None or first.name not in names_used(model.loss):
        text = f"the loss does not mention {first.name}, so its upper end would be picked"
        raise _error(model, first.span, text, "PS0504", f"loss: {first.name}, or a term such as 3 * {first.name}")
    weights: dict[int, Fraction] = {}
    rest = _Splitter(model, first.name, weights).rest(model.loss, Fraction(1))
    if rest is None and not model.accuracy:
        text = f"no line asks for any accuracy, so the lower end of the range of {first.name} would be picked"
        hint = "add accuracy: E[ (O - y)^2 ] <= 4, or a term of the errors to the loss"
        raise _error(model, model.loss.span, text, "PS0504", hint)
    prices = tuple(Price(power, weight) for power, weight in sorted(weights.items()))
    return Parsed(first, Fraction(domain.low), None if domain.high is None else Fraction(domain.high), prices, rest)


def _error(model: Model, span: Span, text: str, code: str = "PS0524", help_: str | None = None) -> SpecError:
    return SpecError.at(model.source, span, code, text, help=help_)


def _check_places(model: Model, name: str) -> None:
    """Nothing but amounts of privacy and the loss may depend on the number: the block is one for all its values."""
    spec = model.spec
    others: tuple[syntax.Node, ...] = (*spec.parties, *spec.variables, *spec.background, *spec.accuracy)
    others = (*others, *spec.fairness, *spec.options, *(clause for line in spec.privacy for clause in line.clauses))
    for one in others:
        if any(node.id == name for node in every(one, syntax.Name)):
            text = f"{name} is an amount of privacy that is picked: it stands in amounts and in the loss only"
            raise _error(model, one.span, text, help_="write a number here, or a parameter")


def _check_amounts(model: Model, name: str) -> None:
    """Amounts that grow with the number, so that whatever meets the lines at one value does at every larger one."""
    for line, written in ((one, one.measure) for one in model.requirements):
        if not isinstance(written, Chosen):
            continue
        if written.of.by_distance or written.amounts_as_written[1:] == (ZERO,):
            raise _error(model, line.span, f"solve cannot pick an amount of {line.text}")
        for word, amount in zip(written.figures, written.amounts_as_written, strict=True):
            found = factor_of(amount, name, model) if name in names_used(amount) else None
            if name in names_used(amount) and (word not in RISING or found is None or found[1] or found[0] <= 0):
                text = f"an amount that is picked at least cost is {name} or a multiple of it"
                raise _error(model, line.span, text, help_=f"({name}, 1e-6)-{PURE.word}, or (2 * {name})-{PURE.word}")


Expr: TypeAlias = syntax.Expr


@dataclass(frozen=True, slots=True)
class _Splitter:
    """Takes what a loss adds for the number `name` into `weights`, by its power."""

    model: Model
    name: str
    weights: dict[int, Fraction]

    def rest(self, expr: Expr, weight: Fraction) -> Expr | None:
        """The terms without the number, `weight` left out; None where there are none.

        Raises: SpecError PS0524.
        """
        if self.name not in names_used(expr):
            return expr
        match expr:
            case syntax.Binary(op="+", left=left, right=right):
                one, other = self.rest(left, weight), self.rest(right, weight)
                return other if one is None else one if other is None else replace(expr, left=one, right=other)
            case syntax.Binary(op="*", left=left, right=right) if public(left, self.model):
                inner = self.rest(right, weight * public_number(left, self.model))
                return None if inner is None else replace(expr, right=inner)
            case syntax.Binary(op="*" | "/", left=left, right=right) if public(right, self.model):
                factor = public_number(right, self.model)
                inner = self.rest(left, weight * factor if expr.op == "*" else weight / factor)
                return None if inner is None else replace(expr, left=inner)
        power = self._power(expr)
        if power is None or weight <= 0:
            text = f"solve takes sums of errors and of {self.name} or its powers, with positive weights, as the loss"
            raise _error(self.model, expr.span, text, help_=f"loss: {self.name}, or E[ ||O - y||^2 ] + 3 * {self.name}")
        self.weights[power] = self.weights.get(power, Fraction(0)) + weight
        return None

    def _power(self, expr: Expr) -> int | None:
        match expr:
            case syntax.Name(id=name) if name == self.name:
                return 1
            case syntax.Binary(op="^", left=syntax.Name(id=name), right=right) if public(right, self.model):
                power = public_number(right, self.model)
                return int(power) if name == self.name and power in POWERS else None
        return None
