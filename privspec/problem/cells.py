"""Finite reports of a real number in numbers: the cells in which it may lie, and what a report costs in each of them.

The cells end at the middles of two values of the report (and at the values, where an absolute error has its kink):
for losses that grow with the distance, a mechanism of pure epsilon needs no others (noise/notes/real-cells.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

from flint import arb, ctx

from privspec.core.records import dataclass
from privspec.kernel.core.numbers import ball, end
from privspec.kernel.core.reading import Grid
from privspec.kernel.measures import PURE_MEASURES
from privspec.kernel.reports import CellBlock
from privspec.kernel.writing import exact_grid
from privspec.language.spelling import spell
from privspec.model.domains import Interval
from privspec.model.graph import Model, once
from privspec.model.priors import DISTRIBUTIONS, LawError, arguments_of, declared_at
from privspec.model.reports import Failure, Unsupported
from privspec.model.requirements import DataModel
from privspec.model.targets import environment
from privspec.model.values import show
from privspec.problem.points import ErrorReader
from privspec.problem.refusals import besides, other_families, other_unit, reading, too_weak

LARGEST_EPSILON = 30
MOST_ENTRIES = 20_000
"""Cells times values of the largest table."""
LARGEST_COUNT = 1_000_000
BITS = 100
"""Binary places of chances and mean costs that are no fractions."""
PRECISION = 320
FAR = Fraction(10) ** 12
"""From where on nothing lies farther."""
LEAST = Fraction(1, 10**9)
"""Least probability of the domain under a law that goes beyond it."""
LEAST_TAIL = arb(2) ** -PRECISION


def words(block: CellBlock) -> tuple[str, ...]:
    """The number, its cells, its report, and the loss."""
    whose = f" for each {block.party}" if block.party else ""
    low, high = show(block.ends[0]), show(block.ends[-1])
    error = "squared error" if block.power == 2 else "absolute error"
    times = f"{show(block.weight)} times " if block.weight != 1 else ""
    over = "at the worst number" if block.costs is None else "by the stated law of the number"
    return (
        f"{block.source} is a number{whose}, between {low} and {high}; {block.output} is one of {len(block.values)} "
        f"values from {show(block.values[0])} to {show(block.values[-1])}.",
        f"What is drawn depends on which of {len(block.ends) - 1} cells the number lies in. They end at the middles "
        "of two values, so that within a cell the values are always in the same order by cost. No mechanism of "
        "pure epsilon that sees the number itself does better (note real-cells).",
        f"The loss is {times}the mean {error} {over}: `{block.expression}`.",
    )


def reads(model: Model) -> bool:
    """Whether a spec is of one real number and of one report of it that has finitely many numbers as values."""
    if len(model.inputs) != 1 or len(model.outputs) != 1 or model.loss is None:
        return False
    (source,), (output,) = model.inputs, model.outputs
    own = source.type.shape[1:] if source.index else source.type.shape
    real = isinstance(source.domain, Interval) and source.domain.size is None and not own
    values = output.domain is not None and output.domain.size is not None and output.type.numeric
    return real and values and output.definition is None and output.index == source.index


@once
@reading(lambda model: _unsupported(model))
def block_of(model: Model) -> CellBlock:
    """The cells of a spec, and what a report costs in each.

    Raises: SpecError PS05xx with every construct that cannot be computed, PS0401 for an average without a data model.
    """
    (source,), (output,) = model.inputs, model.outputs
    assert source.domain is not None and output.domain is not None and model.loss is not None
    reader = ErrorReader(model, source, output)
    error, kind = reader.read(model.loss)
    values = tuple(sorted({Fraction(value) for value in output.domain.elements()}))
    low, high = source.domain.bounds
    assert low is not None and high is not None
    if len(values) ** 2 > MOST_ENTRIES:
        message = f"{output.name} takes {len(values):,} values, which make a larger table than is solved"
        raise Failure("PS0515", output.span, message, help="use fewer values")
    kinks = values if error.power == 1 else ()
    middles = {(a + b) / 2 for i, a in enumerate(values) for b in values[:i]} | set(kinks)
    law = next((one for one in model.models if source.name in one.subjects), None)
    if kind == "expected" and law is None:
        text = "this average is over data without a model"
        hint = f"write worst[ ... ], or add a model such as {source.name} ~ uniform"
        raise Failure("PS0401", model.loss.span, text, help=hint)
    known = None if kind == "worst" or law is None else real_law(model, law, low, high)
    inner = middles if known is None else middles | known.ends
    ends = (low, *sorted(one for one in inner if low < one < high), high)
    if (len(ends) - 1) * len(values) > MOST_ENTRIES or len(values) < 2:
        message = f"{output.name} takes {len(values):,} values, which make {len(ends) - 1:,} cells of {source.name}"
        raise Failure("PS0515", output.span, message, help="use fewer values, at equal distances")
    return CellBlock(
        source=source.name,
        output=output.name,
        party=source.index,
        count=reader.count,
        shape=output.type.shape,
        values=values,
        ends=ends,
        power=error.power,
        weight=error.weight,
        expression=spell(model.loss),
        costs=None if known is None or law is None else _costs(known, law, ends, values, error.power),
    )


# --- the law of the number ------------------------------------------------------------------------


Above = Callable[[Fraction], Sequence[Any]]
"""The mass of a law above a number, and its first two moments there, in balls or exactly; all times one number."""


@dataclass(frozen=True, slots=True)
class RealLaw:
    """A law of a real number; `ends`: where it begins and ends, and where else cells have to end."""

    above: Above
    least: Fraction | None = None
    most: Fraction | None = None
    kinks: tuple[Fraction, ...] = ()

    @property
    def ends(self) -> set[Fraction]:
        return {one for one in (self.least, self.most, *self.kinks) if one is not None}

    def between(self, low: Fraction, high: Fraction) -> list[Fraction]:
        """Mass and moments between two numbers."""
        start, stop = (self.above(self._within(end)) for end in (low, high))
        return [_exact(one - other) for one, other in zip(start, stop, strict=True)]

    def _within(self, number: Fraction) -> Fraction:
        above = number if self.least is None else max(number, self.least)
        return above if self.most is None else min(above, self.most)


def _costs(law: RealLaw, line: DataModel, ends: Sequence[Fraction], values: Sequence[Fraction], power: int) -> Grid:
    """What every value costs in every cell, times the probability of the cell; the law is that within the domain."""
    with ctx.workprec(PRECISION):
        found = [law.between(a, b) for a, b in pairwise(ends)]
    whole, rows = sum(part[0] for part in found), []
    if whole <= LEAST:
        raise Failure("PS0406", line.span, f"this law gives {line.subject} no probability on its domain")
    for (mass, first, second), low in zip(found, ends, strict=False):
        for value in values:
            if power == 2:
                cost = value * value * mass - 2 * value * first + second
            else:
                cost = (first - value * mass) * (1 if value <= low else -1)
            share = cost / whole
            short = share.denominator.bit_length() <= BITS
            rows.append(max(share if short else Fraction(round(share * 2**BITS), 2**BITS), Fraction(0)))
    return exact_grid(rows, (len(found), len(values)))


def _exact(value: Any) -> Fraction:
    """A ball by its middle, a fraction as it is; what is nothing beside a whole law is nothing."""
    if isinstance(value, Fraction):
        return value
    return end(value.mid()) if abs(value) > LEAST_TAIL else Fraction(0)


def real_law(model: Model, law: DataModel, low: Fraction, high: Fraction) -> RealLaw:
    """Raises: Failure PS0514 for a law that is not known here, PS0406 for wrong arguments."""
    rule = LAWS.get(law.distribution)
    if rule is None or law.joint:
        message = f"{law.distribution} has no exact law on the cells of a real number"
        raise Failure("PS0514", law.span, message, help=f"use {', '.join(LAWS)}")
    given = arguments_of(law, environment(model))
    if not all(isinstance(one, Fraction) for one in given):
        raise Failure("PS0406", law.span, "this law is for single numbers")
    with declared_at(law.span):
        numbers: Any = DISTRIBUTIONS[law.distribution].checked(given)
        return rule(*(numbers or (low, high)))


def shares_of_law(
    model: Model, law: DataModel, low: Fraction, high: Fraction
) -> tuple[Sequence[Fraction], Sequence[Fraction], Sequence[Fraction]]:
    """The chances, and the first two moments, of what lies below two ends, between them, and above.

    Raises: Failure PS0514, PS0406 for laws that are not known here.
    """
    found = real_law(model, law, low, high)
    least = found.least if found.least is not None else min(low, Fraction(0)) - FAR
    most = found.most if found.most is not None else max(high, Fraction(0)) + FAR
    ends = ((min(least, low), low), (low, high), (high, max(most, high)))
    with ctx.workprec(PRECISION):
        below, inside, above = (found.between(*some) for some in ends)
    whole = below[0] + inside[0] + above[0]  # what is uniform is told by lengths
    return tuple([part / whole for part in some] for some in (below, inside, above))  # type: ignore[return-value]


def mean_within(model: Model, law: DataModel, low: Fraction, high: Fraction) -> Fraction:
    """The mean of a number that is moved between two ends, to so many binary places, inside of them.

    Raises: Failure PS0514, PS0406 for laws that are not known here.
    """
    below, inside, above = shares_of_law(model, law, low, high)
    mean = low * below[0] + inside[1] + high * above[0]
    return min(max(Fraction(round(mean * 2**BITS), 2**BITS), low), high)


def _uniform(start: Fraction, stop: Fraction) -> RealLaw:
    if start >= stop:
        raise LawError("the width of a uniform law is a positive number")
    return RealLaw(lambda t: [(stop**k - t**k) / k for k in (1, 2, 3)], start, stop)


def _normal(mean: Fraction, deviation: Fraction) -> RealLaw:
    def above(t: Fraction) -> Sequence[Any]:
        x, sigma = ball((t - mean) / deviation), ball(deviation)
        mass, density = (x / arb(2).sqrt()).erfc() / 2, (-x * x / 2).exp() / (2 * arb.pi()).sqrt()
        return _moved(mean, mass, sigma * density, sigma * sigma * (mass + x * density))

    return RealLaw(above)


def _laplace(mean: Fraction, scale: Fraction) -> RealLaw:
    def above(t: Fraction) -> Sequence[Any]:
        mass, first, second = (part / 2 for part in _tail(Fraction(1), 1 / scale, abs(t - mean)))
        if t < mean:
            mass, second = 1 - mass, 2 * ball(scale) ** 2 - second
        return _moved(mean, mass, first, second)

    return RealLaw(above, kinks=(mean,))


def _moved(mean: Fraction, mass: Any, first: Any, second: Any) -> Sequence[Any]:
    """Moments about a mean as those about zero."""
    mu = ball(mean)
    return mass, mu * mass + first, mu * mu * mass + 2 * mu * first + second


def _tail(shape: Fraction, rate: Fraction, t: Fraction) -> Sequence[Any]:
    """Of a gamma law above a number from 0 on."""
    factors = (arb(1), ball(shape / rate), ball(shape * (shape + 1) / rate**2))
    return [factor * ball(t * rate).gamma_upper(ball(shape + k), 1) for k, factor in enumerate(factors)]


def _exponential(rate: Fraction) -> RealLaw:
    return _gamma(Fraction(1), rate)


def _gamma(shape: Fraction, rate: Fraction) -> RealLaw:
    return RealLaw(partial(_tail, shape, rate), Fraction(0))


def _beta(a: Fraction, b: Fraction) -> RealLaw:
    mean = a / (a + b)
    factors = (Fraction(1), mean, mean * (a + 1) / (a + b + 1))

    def above(t: Fraction) -> Sequence[Any]:
        return [ball(f) * (1 - ball(t).beta_lower(ball(a + k), ball(b), True)) for k, f in enumerate(factors)]

    return RealLaw(above, Fraction(0), Fraction(1))


def _lognormal(mean: Fraction, deviation: Fraction) -> RealLaw:
    def above(t: Fraction) -> Sequence[Any]:
        mu, sigma = ball(mean), ball(deviation)
        logs = [((ball(t).log() - mu) / sigma - k * sigma) / arb(2).sqrt() for k in range(3)] if t else []
        tails = [one.erfc() / 2 for one in logs] or [arb(1)] * 3
        return [(k * mu + k * k * sigma * sigma / 2).exp() * tail for k, tail in enumerate(tails)]

    return RealLaw(above, Fraction(0))


LAWS: Mapping[str, Callable[..., RealLaw]] = {
    "uniform": _uniform,
    "normal": _normal,
    "laplace": _laplace,
    "exponential": _exponential,
    "beta": _beta,
    "gamma": _gamma,
    "lognormal": _lognormal,
}
"""Laws of a real number, within its domain."""


# --- what cannot be computed yet ------------------------------------------------------------------


def _unsupported(model: Model) -> Iterator[Unsupported]:
    """Constructs that are not known here: where, what, and what to write in their place."""
    (source,), (output,) = model.inputs, model.outputs
    finite = f"finite reports of the real number {source.name}"
    low, high = source.bounds
    step = Fraction(1, 10) if low is None or high is None else (high - low) / 10
    ends = f"{show(low or Fraction(0))}, {show(high if high is not None else Fraction(1))}, {show(step)}"
    grid = (
        f"write `input {source.name} in grid({ends})`, or a finer grid: numbers of the data move to its nearest value"
    )
    if source.domain is None or not source.domain.bounded:
        yield source.span, f"{finite}, which has no bounds", f"write `input {source.name} in [0, 1]`"
    if source.type.size > LARGEST_COUNT:
        hint = f"at most {LARGEST_COUNT:,} are reported in one spec"
        yield source.span, f"with {source.name}, of {source.type.size:,} numbers", hint
    yield from besides(model, finite, grid)
    if not model.requirements:
        yield output.span, f"{finite} without a line of privacy", grid
    for line in model.requirements:
        measure = line.measure
        yield from other_unit(line, source, finite)
        if measure.of.by_distance:
            hint = f"write `output {output.name}`: noise is added to the number, and rounding it then is free"
            yield line.span, f"{measure.of.word} of {finite}", hint
        elif measure.common not in PURE_MEASURES:
            yield line.span, f"{measure.name} of {finite}", grid
        elif measure.amounts["epsilon"] > LARGEST_EPSILON:
            yield too_weak(line, measure, LARGEST_EPSILON)
    for target in model.accuracy:
        yield target.target.span, f"lines of accuracy of {finite}", grid
    yield from other_families(model, ("table",), f" of {finite}", "a table can be computed: noise family table")
    if model.noise_at is not None:
        yield model.noise_at_spans[0], f"places for noise of {finite}", "the table says how they are drawn"
