"""Sums and means of functions of one party's number, where nobody is trusted with it: in numbers.

What each party sends is a report of its own, drawn from what it holds; what is released are unbiased estimates of all
sums. noise/notes/local-means.md has the mechanism, the bound and their proofs.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate, pairwise
from math import prod, sqrt

from privspec.core.records import dataclass, replace
from privspec.kernel.means import MEASURES, MOST_POWER, MOST_ROWS, WEAKER, Curve, Listed, MeanBlock, Number, Output
from privspec.kernel.measures import PURE_MEASURES
from privspec.kernel.reports import MOST_PARTIES
from privspec.kernel.trust import NOBODY
from privspec.kernel.writing import exact_grid
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.walk import reference
from privspec.model.domains import FiniteSet, Grid, IntegerRange, Interval
from privspec.model.evaluate import Environment, Values
from privspec.model.graph import GraphNode, Model, once
from privspec.model.measures import AskedMeasure
from privspec.model.priors import law_of
from privspec.model.reports import Failure, Unsupported
from privspec.model.requirements import Requirement
from privspec.model.targets import environment
from privspec.model.values import Value, show
from privspec.problem.refusals import PURE_NAMES, besides, other_families, other_unit, reading, too_weak
from privspec.problem.terms import Term, behind, measured, multiples, public, public_number, terms

LARGEST_EPSILON = 20
MOST_KINDS = 12
"""Epsilons of parties for each of which the best report is found."""
ENOUGH = 10**9
"""An epsilon that stands for another measure is a decimal."""
LARGEST_OF_CURVES = 8
"""Reports of few points of a curve are no good where a number itself is hardly hidden."""
FINE = 1024
"""Steps by which the length of a curve is measured."""
DIGITS = 3
"""Digits of the ends of pieces."""
SHOWN = 6
"""Numbers of a block that are told one by one."""


def words(block: MeanBlock) -> tuple[str, ...]:
    """What is held and summed, and the loss."""
    held, names = block.held, " and ".join(one.name for one in block.outputs)
    if isinstance(held, Listed):
        first, last = show(held.values[0]), show(held.values[-1])
        what = f"one of {len(held.values)} values, from {first} to {last}"
        functions = [
            [f"{show(value)} gives {_short(row[j])}" for value, row in _ends(held)] for j in range(held.numbers)
        ]
        sums = [f"a function of which {' and '.join(some)}" for some in functions]
    else:
        what = f"a number from {show(held.ends[0])} to {show(held.ends[-1])}"
        sums = [f"its power {power}" for power in held.powers]
    listed = "; ".join(
        f"{show(number.scale)} times the sum of {one}"
        + (f", and {show(number.shift)}" if number.shift else "")
        + (f"; released is its power 1 / {number.root}" if number.root != 1 else "")
        for number, one in zip(block.numbers[:SHOWN], sums, strict=False)
    )
    over = "by the stated law" if block.law is not None else "at the worst numbers that people may hold"
    return (
        f"{block.source} of each {block.party} is {what}; there are {block.count:,} of them.",
        f"{names}: estimated from one report of each {block.party}, which depends on that one's number alone, without "
        f"bias for {listed}{'; ..' if len(block.numbers) > SHOWN else ''}.",
        f"The loss is the expected sum of squared errors, weighed, {over}: `{block.expression}`.",
    )


def _ends(held: Listed) -> list[tuple[Fraction, list[Fraction]]]:
    points = held.points()
    return [(held.values[place], points[place]) for place in (0, -1)]


def _short(value: Fraction) -> str:
    return show(value) if len(str(value)) <= 12 else f"{float(value):.6g}"


def reads(model: Model) -> bool:
    """Whether a spec asks for sums of functions of each party's number that these reports can say.

    Sums of numbers themselves may also be released with noise that is added: only what is all known here is taken.
    """
    if not model.trust.alone or len(model.inputs) != 1 or model.loss is None or not model.outputs:
        return False
    (source,) = model.inputs
    number = bool(source.index) and len(source.type.shape) == 1 and source.type.numeric
    if not number or any(node.domain is not None or node.definition is not None for node in model.outputs):
        return False
    reader, lines = Reader(model, source), model.requirements
    found = reader.found
    # where no line is pure, noise that is added may be normal; where some are strict for some, answers may be pulled
    known = bool(found) and any(map(pure, lines)) and all(pure(line) or line.measure.common in WEAKER for line in lines)
    alike = all(line.measure.common in PURE_MEASURES for line in lines)
    known = known and (alike or model.unbiased or not reader.worst)
    return not all(one.plain for one in found) or (known and not any(_unsupported(model)))


def pure(line: Requirement) -> bool:
    """Whether a line asks for pure epsilon, for all alike or for each."""
    return all(one.common in PURE_MEASURES for one in line.measure.by_person)


def enough(measure: AskedMeasure) -> Fraction:
    """A pure epsilon that a line is satisfied by, the largest that is known."""
    found = measure.implied_by_pure() or Fraction(0)
    return found if measure.pure_epsilon is not None else Fraction(int(found * ENOUGH), ENOUGH)


@once
@reading(lambda model: _unsupported(model))
def block_of(model: Model) -> MeanBlock:
    """What each party holds, and the sums that are released.

    Raises: SpecError PS05xx with every construct that cannot be computed.
    """
    (source,) = model.inputs
    assert source.index is not None and model.loss is not None and source.domain is not None
    reader = Reader(model, source)
    found = reader.read()
    numbers = tuple(Number(one.scale, one.shift, one.weight, one.root) for one in found)
    law = next((one for one in model.models if source.name in one.subjects), None)
    held: Listed | Curve
    if isinstance(source.domain, Interval):
        costs = [float(one.weight * one.scale**2) for one in found]
        held, chances = _curve(source.domain, [one.power for one in found], costs), None
    else:
        values = reader.values
        functions = [one.at(value) for value in values for one in found]
        held = Listed(values, exact_grid(functions, (len(values), len(found))))
        chances = None if law is None or reader.worst else law_of(law, values, environment(model))
    return MeanBlock(
        source=source.name,
        party=source.index,
        count=source.type.shape[0],
        held=held,
        outputs=tuple(Output(node.name, node.type.shape) for node in model.outputs),
        numbers=numbers,
        law=chances,
        expression=spell(model.loss),
        kind="worst" if chances is None else "expected",
    )


def _curve(domain: Interval, powers: list[int], costs: list[float]) -> Curve:
    """Pieces of a curve of about the same length, by what errors cost."""
    low, high = domain.bounds
    assert low is not None and high is not None
    whole = Curve((low, high), tuple(powers))
    pieces = (MOST_ROWS - 1) // whole.degree
    if powers == [1]:
        return Curve(tuple(low + (high - low) * k / pieces for k in range(pieces + 1)), (1,))
    steps = [low + (high - low) * k / FINE for k in range(FINE + 1)]
    points = [[float(one) for one in whole.at(step)] for step in steps]
    lengths = [
        sqrt(sum(cost * (a - b) ** 2 for cost, a, b in zip(costs, one, other, strict=True)))
        for one, other in pairwise(points)
    ]
    run = [0.0, *accumulate(lengths)]
    inner = set()
    for k in range(1, pieces):
        place = next(i for i, length in enumerate(run) if length >= run[-1] * k / pieces)
        inner.add(Fraction(f"{float(steps[place]):.{DIGITS}g}"))
    return Curve((low, *sorted(one for one in inner if low < one < high), high), tuple(powers))


# --- the loss --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Sum:
    """A number that is released: `scale` times the sum over all parties of a `body`, and `shift`.

    `power`: the body is this power of what a party holds; 0 where it is another function. `plain`: it is the number
    itself, or a multiple.
    """

    reader: Reader
    weight: Fraction
    scale: Fraction
    shift: Fraction
    body: syntax.Expr
    power: int
    root: int = 1

    @property
    def plain(self) -> bool:
        return self.power == 1 and self.root == 1

    def at(self, value: Fraction) -> Fraction:
        """What it is of a value.

        Raises: Failure for what has no value there.
        """
        (source,) = self.reader.model.inputs
        found = OfParty(environment(self.reader.model), self.reader.model, source.name, value).of(self.body)
        if not isinstance(found, Fraction):
            raise Failure("PS0208", self.body.span, "a number is expected here")
        return found


@dataclass(frozen=True, eq=False, slots=True)
class OfParty(Values):
    """Values where one party's number is known: `x[i]`, `w[i]`, and `x` where it is taken entry by entry."""

    model: Model
    source: str
    value: Fraction

    def bind(self, variable: str, place: Value) -> Values:
        return Values(self.environment.bind(variable, place))

    def name(self, expr: syntax.Name) -> Value:
        node = self.model.nodes.get(expr.id)
        if expr.id == self.source:
            return self.value
        if node is not None and node.index and node.definition is not None:
            return self.of(node.definition)
        return Values(self.environment).name(expr)

    def index(self, expr: syntax.Index) -> Value:
        base = reference(expr)
        node = None if base is None else self.model.nodes.get(base)
        if node is not None and node.index and len(expr.indices) == 1 and isinstance(expr.indices[0], syntax.Name):
            return self.of(expr.base)
        return Values(self.environment).of(expr)


@dataclass(frozen=True, eq=False, slots=True)
class Reader:
    """Reads losses as weighted squared errors of numbers, each beside a sum over all parties."""

    model: Model
    source: GraphNode

    @property
    def known(self) -> Environment:
        return environment(self.model)

    @property
    def worst(self) -> bool:
        """Whether the loss is that at the worst numbers, by its own words."""
        return any(isinstance(one, Term) and one.operator == "worst" for one in terms(self._loss, self.model))

    @property
    def _loss(self) -> syntax.Expr:
        assert self.model.loss is not None
        return self.model.loss

    @property
    def values(self) -> tuple[Fraction, ...]:
        """What a party may hold, in order."""
        assert self.source.domain is not None
        return tuple(sorted({Fraction(value) for value in self.source.domain.elements()}))

    @property
    def found(self) -> tuple[Sum, ...]:
        """The same, or nothing where the loss is of another form."""
        try:
            return self.read()
        except Failure:
            return ()

    def read(self) -> tuple[Sum, ...]:
        """The numbers of all outputs, in order.

        Raises: Failure PS0502 for a loss of another form.
        """
        found: dict[tuple[str, int], Sum] = {}
        every = list(terms(self._loss, self.model))
        for term in every:
            if not isinstance(term, Term) or term.weight <= 0 or (term.operator == "worst" and len(every) > 1):
                raise self._other(self._loss)
            for weight, inner in multiples(term.body, self.model):
                for key, one in self._error(inner, term.weight * weight):
                    if key in found or one.weight <= 0:
                        raise self._other(inner)
                    found[key] = one
        keys = [(node.name, place) for node in self.model.outputs for place in range(prod(node.type.shape))]
        if set(keys) != set(found):
            raise self._other(self._loss)
        return tuple(found[key] for key in keys)

    def _other(self, expr: syntax.Expr) -> Failure:
        name = self.model.outputs[0].name
        message = "solve takes squared errors of sums and means over parties as the loss of reports by them"
        hint = f"E[ ({name} - mean({self.source.name}[i]^2 for i))^2 ], or a weighted sum of such"
        return Failure("PS0502", expr.span, message, help=hint)

    def _error(self, expr: syntax.Expr, weight: Fraction) -> Iterator[tuple[tuple[str, int], Sum]]:
        """The numbers that a squared error is about."""
        found = measured(expr)
        if not found.squared or found.each is not None or (found.function and found.norm):
            raise self._other(expr)
        outputs = {node.name for node in self.model.outputs}
        every = [(factor, inner) for factor, inner in multiples(found.error, self.model)]
        mine = [(factor, inner) for factor, inner in every if reference(inner) in outputs]
        if len(mine) != 1 or not mine[0][0]:
            raise self._other(expr)
        ((scale, output),) = mine
        weight *= scale**2
        rest = [(-factor / scale, inner) for factor, inner in every if inner is not output]
        name = str(reference(output))
        shape = self.model.nodes[name].type.shape
        single = found.norm in (None, "abs") and not found.function
        match output:
            case syntax.Index(indices=(place,)) if public(place, self.model) and len(shape) == 1 and single:
                at = public_number(place, self.model)
                if at not in range(1, shape[0] + 1):
                    raise self._other(expr)
                yield (name, int(at) - 1), self._sum(rest, weight, expr)
            case syntax.Name() if not shape and single:
                yield (name, 0), self._sum(rest, weight, expr)
            case syntax.Name() if len(shape) == 1 and (found.norm == "2" or found.function) and len(rest) == 1:
                ((factor, other),) = rest
                meant = behind(self.model, other)
                if not isinstance(meant, syntax.Vector) or len(meant.items) != shape[0]:
                    raise self._other(expr)
                each = weight / (shape[0] if found.function == "mean" else 1)
                for number, item in enumerate(meant.items):
                    yield (name, number), self._sum([(factor, item)], each, expr)
            case _:
                raise self._other(expr)

    def _sum(self, target: list[tuple[Fraction, syntax.Expr]], weight: Fraction, within: syntax.Expr) -> Sum:
        """What an output is compared with."""
        match [(factor, behind(self.model, inner)) for factor, inner in target]:
            case [(factor, syntax.Binary(op="^", left=left, right=right))] if factor == 1 and public(right, self.model):
                exponent = public_number(right, self.model)
                mean = self._sum([(Fraction(1), left)], weight, within)
                of_all = mean.scale == Fraction(1, self.source.type.shape[0]) and not mean.shift
                if not exponent or (1 / exponent).denominator != 1 or not of_all:
                    raise self._other(within)
                return replace(mean, root=int(1 / exponent))
        shift, sums, waiting = Fraction(0), list[tuple[Fraction, syntax.Expr]](), list(target)
        while waiting:
            factor, inner = waiting.pop()
            meant = behind(self.model, inner)
            parts = list(multiples(meant, self.model, factor))
            if public(inner, self.model):
                shift += factor * public_number(inner, self.model)
            elif len(parts) > 1 or parts[0][1] is not meant:
                waiting += parts
            else:
                sums.append((factor * self._share(meant), self._body(meant)))
        if len(sums) != 1 or not sums[0][0]:
            raise self._other(within)
        ((scale, body),) = sums
        times, power = self._power(body)
        return Sum(self, weight, scale * (times if power else 1), shift, self._bare(body) if power else body, power)

    def _share(self, call: syntax.Expr) -> Fraction:
        count = self.source.type.shape[0]
        return Fraction(1, count) if isinstance(call, syntax.Call) and call.function == "mean" else Fraction(1)

    def _body(self, call: syntax.Expr) -> syntax.Expr:
        """What a sum or mean is of, for one party."""
        match call:
            case syntax.Call(function="sum" | "mean", arguments=(syntax.Comprehension() as each,)):
                domain = each.domain
                whole = domain is None and each.variable == self.source.index
                named = isinstance(domain, syntax.Name) and domain.id == self.source.index
                if whole or named:
                    return each.body
            case syntax.Call(function="sum" | "mean", arguments=(body,)) if not isinstance(body, syntax.NO_EXPRESSION):
                if self._entrywise(body):
                    return body
        raise self._other(call)

    def _entrywise(self, expr: syntax.Node) -> bool:
        """Whether it is computed from the numbers of all parties entry by entry."""
        match expr:
            case syntax.Binary(op="+" | "-" | "*" | "/" | "^", left=left, right=right):
                return self._entrywise(left) and self._entrywise(right)
            case syntax.Negate(operand=inner) | syntax.Absolute(operand=inner):
                return self._entrywise(inner)
            case syntax.Number():
                return True
            case syntax.Name(id=name):
                node = self.model.nodes.get(name)
                own = node is not None and (node is self.source or bool(node.index))
                return own or (public(expr, self.model) and isinstance(self.known.values.get(name), Fraction))
        return False

    def _power(self, body: syntax.Expr) -> tuple[Fraction, int]:
        """The c and p where a body is c x^p with a whole p; p = 0 where it is something else."""
        meant = self._meant(body)
        match meant:
            case syntax.Name(id=self.source.name):
                return Fraction(1), 1
            case syntax.Negate(operand=inner):
                times, power = self._power(inner)
                return -times, power
            case syntax.Binary(op="^", left=left, right=right) if public(right, self.model):
                times, power = self._power(left)
                exponent = public_number(right, self.model)
                if power and exponent and exponent.denominator == 1 and abs(power * exponent) <= MOST_POWER:
                    return times ** int(exponent), power * int(exponent)
            case syntax.Binary(op="*", left=left, right=right) if public(left, self.model):
                times, power = self._power(right)
                return times * public_number(left, self.model), power
            case syntax.Binary(op="*", left=left, right=right) if public(right, self.model):
                times, power = self._power(left)
                return times * public_number(right, self.model), power
            case syntax.Binary(op="/", left=left, right=right) if public(left, self.model):
                times, power = self._power(right)
                if power:
                    return public_number(left, self.model) / times, -power
            case syntax.Binary(op="/", left=left, right=right) if public(right, self.model):
                times, power = self._power(left)
                return times / (public_number(right, self.model) or Fraction(1)), power
        return Fraction(1), 0

    def _meant(self, body: syntax.Expr) -> syntax.Expr:
        """A party's number by its name, and through names of what is computed from it."""
        while reference(body) in self.model.nodes:
            node = self.model.nodes[str(reference(body))]
            if isinstance(body, syntax.Index) and node.index:
                body = body.base
            elif isinstance(body, syntax.Name) and node.index and node.definition is not None:
                body = node.definition
            else:
                break
        return body

    def _bare(self, body: syntax.Expr) -> syntax.Expr:
        """The power alone, of the number itself."""
        _, power = self._power(body)
        name = syntax.Name(self.source.name, span=body.span)
        exponent = syntax.Number(Fraction(power), span=body.span)
        return name if power == 1 else syntax.Binary("^", name, exponent, span=body.span)


# --- what cannot be computed yet -------------------------------------------------------------------------------------


def _unsupported(model: Model) -> Iterator[Unsupported]:
    """Constructs that are not known here: where, what, and what to write in their place."""
    (source,) = model.inputs
    what = f"functions of the {source.name} of each {source.index}"
    yield from besides(model, what, "release them by a spec of their own")
    domain = source.domain
    if not isinstance(domain, Interval | FiniteSet | IntegerRange | Grid):
        yield source.span, f"{what}, which has no bounds", f"write `input {source.name}[{source.index}] in [0, 1]`"
    elif isinstance(domain, Interval):
        yield from _of_interval(model, source, what)
    elif not 2 <= (domain.size or 0) <= MOST_ROWS:
        hint = f"write at most {MOST_ROWS} values, as in grid(0, 1, 0.1)"
        yield source.span, f"{what}, which has {domain.size:,} values", hint
    else:
        rooted = [one for one in Reader(model, source).found if one.root != 1]
        if any(one.at(value) <= 0 for one in rooted for value in Reader(model, source).values):
            yield source.span, f"a root of a mean of {what}, where it need not be above 0", "use values above 0"
    if source.type.shape[0] > MOST_PARTIES:
        yield source.span, f"{what}: it takes up to {MOST_PARTIES:,} of them", None
    if model.computed or model.components:
        yield model.outputs[0].span, f"outputs computed from sums of {what}", "whoever has the sums can compute them"
    roots = any(one.root != 1 for one in Reader(model, source).found)
    for line in model.requirements:
        yield from _line(line, source, what)
        if roots and line.measure.common is None:
            yield line.span, f"{line.measure.name} of roots of sums of {what}", "ask for the same of everybody"
    for target in model.accuracy:
        yield target.target.span, f"lines of accuracy of {what}", None
    best = "leave the option out: the best reports are found"
    yield from other_families(model, ("table",), f" for {what}", best)
    if model.noise_at is not None:
        yield model.noise_at_spans[0], "such a place for noise", "leave it out"


def _of_interval(model: Model, source: GraphNode, what: str) -> Iterator[Unsupported]:
    """What is not known of real numbers."""
    low, high = source.bounds
    if low is None or high is None or low >= high:
        yield source.span, f"{what}, which has no bounds", f"write `input {source.name}[{source.index}] in [0, 1]`"
        return
    grid = f"write `{source.name}[{source.index}] in grid({show(low)}, {show(high)}, {show((high - low) / 10)})`"
    found = Reader(model, source).found
    powers = [one.power for one in found]
    rooted = any(one.root != 1 for one in found)
    if 0 in powers or (low <= 0 and (min(powers, default=0) < 0 or rooted)):
        yield source.span, f"{what}, a number of an interval: it takes powers x^p that have a value there", grid
    elif max(0, 0, *powers) - min(0, 0, *powers) >= MOST_ROWS // 2:
        yield source.span, f"{what}, a number of an interval, to such powers", grid
    for law in model.models:
        if source.name in law.subjects:
            yield law.span, f"a data model of {source.name}, a number of an interval", grid
    for line in model.requirements:
        for one in dict.fromkeys(line.measure.by_person):
            if enough(one) > LARGEST_OF_CURVES:
                yield too_weak(line, one, LARGEST_OF_CURVES)


def _line(line: Requirement, source: GraphNode, what: str) -> Iterator[Unsupported]:
    """What a line asks for that is not known here."""
    yield from other_unit(line, source, what)
    every = dict.fromkeys(line.measure.by_person)
    for one in every:
        if one.common not in MEASURES or not one.implied_by_pure():
            yield line.span, f"{one.name} of {what}", f"write {PURE_NAMES}, with `{NOBODY.written}`"
        elif enough(one) > LARGEST_EPSILON:
            yield too_weak(line, one, LARGEST_EPSILON)
    if len(every) > MOST_KINDS:
        yield line.span, f"{len(every)} amounts of {what}", f"ask for at most {MOST_KINDS} different ones"
