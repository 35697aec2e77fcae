"""Data models: the exact law of the values of a finite domain, or crowds that are drawn from one.

`uniform`, `categorical`, `empirical`, `binomial`, `bernoulli` and `geometric` are rational as they are. The weights of
`normal`, `laplace`, `exponential`, `poisson`, `gamma`, `beta` and `lognormal` are rounded to the nearest multiple of
2^-60 of the largest one. A data model serves the expected loss alone, so the rounding touches no guarantee; it makes
the law exact, the same on every machine, and short enough to be written into a plan. Crowds that are drawn are never
real data, and nothing a guarantee rests on.

Of how many records each person has, `count(visits, by = {person}) ~ empirical(csv("visits.csv"))` is a law: it serves
what a choice of k in `one person with at most k records` costs. The people are as many as the party of that name
(`parties: person in 1..1000`), or as the list of an empirical law.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from math import comb, lgamma, log, sqrt
from typing import Any, Protocol, TypeAlias

import numpy as np

from privspec.core.records import dataclass
from privspec.core.spans import Span
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.model.domains import Cut, Domain, Follows, Table, measured
from privspec.model.evaluate import Environment, evaluate
from privspec.model.graph import Model
from privspec.model.reports import Failure, Report
from privspec.model.requirements import DataModel, RecordsLaw
from privspec.model.values import Array, Value, show

BITS = 60
"""Binary places of a weight."""
DENSITY_BITS = 256
NOTHING = 50
"""Weights below e^-50 of the largest are rounded to 0 (so are all below 2^-61)."""


def falling(exponents: Sequence[Fraction | None]) -> list[Fraction]:
    """e^-q for each q >= 0, over the largest of them, correctly rounded; 0 for None."""
    least = min((q for q in exponents if q is not None), default=Fraction(0))
    return [Fraction(0) if q is None else Fraction(_power(least - q), 1 << BITS) for q in exponents]


def _power(exponent: Fraction) -> int:
    """2^60 e^exponent for exponent <= 0, to the nearest whole number.

    e^q is irrational for every rational q but 0, so that enough digits always decide.
    """
    import flint

    if exponent == 0:
        return 1 << BITS
    if exponent < -NOTHING:
        return 0
    precision = 160
    while True:
        with flint.ctx.workprec(precision):
            ball = flint.arb(flint.fmpq(exponent.numerator, exponent.denominator)).exp() * flint.arb(2) ** BITS
            nearest = (ball + flint.arb(1) / 2).floor().unique_fmpz()
        if nearest is not None:
            return int(nearest)
        precision *= 2


def poisson(mean: Fraction, counts: Sequence[int | None]) -> list[Fraction]:
    """mean^k / k! for each k >= 0, over the largest of them, correctly rounded (half up); 0 for None."""
    logs = [None if k is None else k * log(mean) - lgamma(k + 1) for k in counts]
    known = [(value, k) for value, k in zip(logs, counts, strict=True) if value is not None and k is not None]
    if not known:
        return [Fraction(0)] * len(counts)
    top, mode = max(known)
    near = [None if value is None or value < top - NOTHING else k for value, k in zip(logs, counts, strict=True)]
    ratios = [Fraction(0) if k is None else _ratio(mean, mode, k) for k in near]
    largest = max(ratios)
    return [Fraction((2 * (r / largest) * (1 << BITS) + 1) // 2, 1 << BITS) for r in ratios]


def _ratio(mean: Fraction, base: int, count: int) -> Fraction:
    """(mean^k / k!) / (mean^m / m!) for m = base."""
    found = Fraction(1)
    for j in range(min(base, count) + 1, max(base, count) + 1):
        found *= mean / j
    return found if count >= base else 1 / found


Law: TypeAlias = tuple[Fraction, ...]
"""Probabilities of listed values; they sum to one."""
LARGEST_COUNT = 2**16
"""Whole numbers beyond have powers that are too long to compute with."""
LARGEST_BITS = 2**13
"""Longest numerator and denominator of a probability."""


class LawError(Exception):
    """What a law cannot be with these arguments, or on these values; the line that declares it is told."""

    def __init__(self, message: str, code: str = "PS0406") -> None:
        self.code = code
        super().__init__(message)


@contextmanager
def declared_at(span: Span) -> Iterator[None]:
    """What is wrong with a law is told where it is declared.

    Raises: Failure PS0406, PS0514.
    """
    try:
        yield
    except LawError as error:
        raise Failure(error.code, span, str(error)) from error


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution of the language: how many arguments it takes, and the weights that it gives to listed values.

    `positive`: what each argument is called that has to be a positive number, empty for others. `of_values`: its
    arguments are about the values themselves; such a law may be one of several inputs together. Without `weights` it
    has no exact law.
    """

    counts: tuple[int, ...]
    weights: Callable[..., list[Fraction]] | None = None
    positive: tuple[str, ...] = ()
    of_values: bool = False

    def checked(self, arguments: Sequence[Value]) -> Sequence[Value]:
        """The arguments.

        Raises: LawError if they are too many or too few, or not positive where they have to be.
        """
        if len(arguments) not in self.counts:
            count = self.counts[-1]
            raise LawError(f"this law takes {count} plain value{'' if count == 1 else 's'}")
        for value, what in zip(arguments, self.positive, strict=False):
            if what and _number(value) <= 0:
                raise LawError(f"{what} is a positive number")
        return arguments


def arguments_of(model: DataModel, environment: Environment) -> list[Value]:
    """The values of the arguments of a law."""
    return [evaluate(a, environment) for a in model.arguments if not isinstance(a, syntax.NO_EXPRESSION)]


def weights_of(known: Distribution, values: Sequence[Value], arguments: Sequence[Value], span: Span) -> list[Fraction]:
    """What a distribution with an exact law gives to each of the values.

    Raises: Failure PS0406, PS0514.
    """
    assert known.weights is not None
    with declared_at(span):
        return known.weights(values, *known.checked(arguments))


def law_of(model: DataModel, values: Sequence[Value], environment: Environment) -> Law:
    """What a data model says of each of the values.

    Raises: Failure PS0514 for a distribution without an exact law on these values, PS0406 for wrong arguments.
    """
    if model.distribution == "proportional":
        return _proportional(model, [(value,) for value in values], environment)
    known = DISTRIBUTIONS.get(model.distribution)
    if known is None or known.weights is None:
        message = f"{model.distribution} has no exact law on a finite domain"
        listed = (name for name, one in DISTRIBUTIONS.items() if one.weights is not None)
        raise Failure("PS0514", model.span, message, help=f"use {', '.join(listed)}")
    return _shares(model, weights_of(known, values, arguments_of(model, environment), model.span))


def _shares(model: DataModel, weights: Sequence[Fraction]) -> Law:
    """Weights over their sum.

    Raises: Failure PS0406 where they are all zero, or one is below it.
    """
    total = sum(weights, Fraction(0))
    if total <= 0 or min(weights) < 0:
        raise Failure("PS0406", model.span, f"this law gives {model.subject} no probability on its domain")
    return short(tuple(weight / total for weight in weights), model.span)


def _proportional(model: DataModel, values: Sequence[Sequence[Value]], environment: Environment) -> Law:
    """The law in proportion to a product of potentials, exact but for powers of e: these are rounded as in `falling`.

    Args: values, the joint values of the names that the law is about.
    Raises: Failure PS0406 where a potential is no exact number.
    """
    factors = list(_potentials(_plain(model.arguments[0], model.span), 1))
    weights, exponents = [], []
    for own in values:
        known = replace(environment, values={**environment.values, **dict(zip(model.subjects, own, strict=True))})
        exponent, weight = Fraction(0), Fraction(1)
        for potential, sign in factors:
            match potential:
                case syntax.Call(function="exp", arguments=(power,)):
                    exponent += sign * _exact(_plain(power, model.span), known)
                case _:
                    found = _exact(potential, known)
                    if sign < 0 and not found:
                        raise Failure("PS0406", potential.span, "a potential is divided by zero")
                    weight *= found**sign
        exponents.append(exponent)
        weights.append(weight)
    top = max(exponents)
    powers = falling([top - exponent for exponent in exponents])
    return _shares(model, [weight * power for weight, power in zip(weights, powers, strict=True)])


def _exact(expr: syntax.Expr, known: Environment) -> Fraction:
    found = evaluate(expr, known)
    if not isinstance(found, Fraction):
        hint = "as in proportional(exp(x[1] * x[2]) * (1 + x[3]))"
        raise Failure("PS0406", expr.span, "a potential is an exact number at all values", help=hint)
    return found


def _potentials(expr: syntax.Expr, sign: int) -> Iterator[tuple[syntax.Expr, int]]:
    """The factors of a product, with -1 for those that it is divided by."""
    match expr:
        case syntax.Binary(op="*" | "/"):
            yield from _potentials(expr.left, sign)
            yield from _potentials(expr.right, sign if expr.op == "*" else -sign)
        case _:
            yield expr, sign


def fits(model: DataModel, environment: Environment) -> None:
    """Whether a law takes the numbers that it is given, whatever its values are.

    Raises: Failure PS0406, and PS0261 for a constant without a value.
    """
    known = DISTRIBUTIONS.get(model.distribution)
    if known is not None and known.weights is not None and not known.of_values:
        weights_of(known, (), arguments_of(model, environment), model.span)


def short(law: Law, span: Span) -> Law:
    """A law whose probabilities can be written down.

    Raises: Failure PS0514 otherwise.
    """
    if max(max(p.numerator.bit_length(), p.denominator.bit_length()) for p in law) > LARGEST_BITS:
        message = "the exact probabilities of this law have thousands of digits"
        raise Failure("PS0514", span, message, help="use fewer records, smaller numbers, or weights with fewer digits")
    return law


def joint_law(model: DataModel, lists: Sequence[Sequence[Value]], environment: Environment) -> Law:
    """The law of several inputs, over their joint values in row-major order of `lists` (one for each subject).

    Raises: as `law_of`.
    """
    if model.distribution == "proportional":
        return _proportional(model, list(product(*lists)), environment)
    if model.distribution == "categorical":
        weights = evaluate(_plain(model.arguments[0], model.span), environment)
        sizes = tuple(len(values) for values in lists)
        if isinstance(weights, np.ndarray) and weights.ndim > 1 and weights.shape != sizes:
            message = (
                f"{' x '.join(map(str, weights.shape))} weights for {model.subject}, "
                f"which takes {' x '.join(map(str, sizes))} values"
            )
            hint = "a row for each value of the first name; the last name changes fastest"
            raise Failure("PS0406", model.span, message, help=hint)
    return law_of(model, [_joined(parts) for parts in product(*lists)], environment)


def _joined(parts: Sequence[Value]) -> Value:
    """Several values one after another."""
    flat = [entry for part in parts for entry in (part.ravel() if isinstance(part, np.ndarray) else [part])]
    joined = np.empty(len(flat), dtype=object)
    joined[:] = flat
    return joined


def _plain(argument: syntax.Argument, span: Span) -> syntax.Expr:
    if isinstance(argument, syntax.NO_EXPRESSION):
        raise Failure("PS0406", span, "a plain value is expected here")
    return argument


# --- laws that are rational as they are ------------------------------------------------------------


def _uniform(values: Sequence[Value], *ends: Value) -> list[Fraction]:
    if not ends:
        return [Fraction(1)] * len(values)
    low, high = map(_number, ends)
    return [Fraction(low <= _number(value) <= high) for value in values]


def _categorical(values: Sequence[Value], given: Value) -> list[Fraction]:
    weights = _flat(given)
    if len(weights) != len(values):
        raise LawError(f"{len(weights)} weights for {len(values)} values")
    return [_number(weight) for weight in weights]


def _empirical(values: Sequence[Value], observed: Value) -> list[Fraction]:
    if not isinstance(observed, np.ndarray):
        raise LawError("empirical takes observations: a vector, or a matrix with one in each row")
    width = values[0].size if isinstance(values[0], np.ndarray) else 1
    rows = _flat(observed)
    if len(rows) % width:
        raise LawError(f"each observation needs {width} numbers")
    at = {tuple(_flat(value)): i for i, value in enumerate(values)}
    counts = [Fraction(0)] * len(values)
    for start in range(0, len(rows), width):
        place = at.get(tuple(rows[start : start + width]))
        if place is None:
            raise LawError(f"observation {start // width + 1} lies outside the domain")
        counts[place] += 1
    return counts


def _binomial(values: Sequence[Value], count: Value, chance: Value) -> list[Fraction]:
    n, p = _number(count), _number(chance)
    if n.denominator != 1 or n < 0 or not 0 <= p <= 1:
        raise LawError("binomial takes a whole number and a probability")
    _limited((n,))
    return [_binomial_mass(int(n), p, _number(value)) for value in values]


def _binomial_mass(n: int, p: Fraction, value: Fraction) -> Fraction:
    if value.denominator != 1 or not 0 <= value <= n:
        return Fraction(0)
    k = int(value)
    return comb(n, k) * p**k * (1 - p) ** (n - k)


def _bernoulli(values: Sequence[Value], chance: Value) -> list[Fraction]:
    return _binomial(values, Fraction(1), chance)


def _geometric(values: Sequence[Value], chance: Value) -> list[Fraction]:
    """Pr(k) proportional to (1 - p)^k on the values of the domain."""
    p = _number(chance)
    if not 0 < p < 1:
        raise LawError("geometric takes a probability between 0 and 1")
    numbers = [_number(value) for value in values]
    if any(number.denominator != 1 for number in numbers):
        raise LawError("geometric is a law of whole numbers")
    _limited(numbers)
    return [(1 - p) ** int(number) for number in numbers]


def _limited(numbers: Iterable[Fraction]) -> None:
    if any(abs(number) > LARGEST_COUNT for number in numbers):
        raise LawError(f"this law has exact probabilities for numbers up to {LARGEST_COUNT:,} only", "PS0514")


# --- laws with rounded weights ---------------------------------------------------------------------


def _normal(values: Sequence[Value], mean: Value, deviation: Fraction) -> list[Fraction]:
    """Density at each value; at each point for a vector, with independent coordinates."""
    gaps = [_gaps(value, mean) for value in values]
    return falling([sum((gap * gap for gap in own), Fraction(0)) / (2 * deviation * deviation) for own in gaps])


def _laplace(values: Sequence[Value], mean: Value, scale: Fraction) -> list[Fraction]:
    return falling([sum(map(abs, _gaps(value, mean)), Fraction(0)) / scale for value in values])


def _exponential(values: Sequence[Value], rate: Fraction) -> list[Fraction]:
    numbers = [_number(value) for value in values]
    return falling([rate * number if number >= 0 else None for number in numbers])


def _poisson(values: Sequence[Value], mean: Fraction) -> list[Fraction]:
    numbers = [_number(value) for value in values]
    _limited(numbers)
    return poisson(mean, [int(n) if n >= 0 and n.denominator == 1 else None for n in numbers])


def _densities(
    values: Sequence[Value], logarithm: Callable[[Any], Any | None], ends: Mapping[Fraction, Fraction]
) -> list[Fraction]:
    """Weights e^logarithm (None: 0) over the largest of them; `ends`: powers of the distance from ends of the range.

    Raises: LawError where a density is infinite.
    """
    import flint

    found: list[Any] = []
    with flint.ctx.workprec(DENSITY_BITS):
        for value in values:
            number = _number(value)
            power = ends.get(number, Fraction(0))
            if power < 0:
                raise LawError(f"the density of this law is infinite at {show(number)}")
            known = None if power else logarithm(_ball(number))
            found.append(flint.arb(0) if known is None else known.exp())
        largest = max(found, key=lambda one: float(one.mid()), default=flint.arb(1))
        if not largest > 0:
            return [Fraction(0)] * len(found)
        return [Fraction(int((one / largest * 2**BITS + 0.5).mid().floor().unique_fmpz()), 1 << BITS) for one in found]


def _gamma(values: Sequence[Value], shape: Fraction, rate: Fraction) -> list[Fraction]:
    """Density x^(shape - 1) e^(-rate x) at each value."""

    def logarithm(x: Any) -> Any | None:
        if x < 0 or (x == 0 and shape != 1):
            return None
        return -_ball(rate) * x + (_ball(shape - 1) * x.log() if x > 0 else 0)

    return _densities(values, logarithm, {Fraction(0): shape - 1})


def _beta(values: Sequence[Value], a: Fraction, b: Fraction) -> list[Fraction]:
    """Density x^(a - 1) (1 - x)^(b - 1) at each value."""

    def logarithm(x: Any) -> Any | None:
        if x < 0 or x > 1:
            return None
        low, high = (_ball(p - 1) * t.log() if p != 1 else 0 for p, t in ((a, x), (b, 1 - x)))
        return low + high + 0 * x

    return _densities(values, logarithm, {Fraction(0): a - 1, Fraction(1): b - 1})


def _lognormal(values: Sequence[Value], mean: Value, deviation: Fraction) -> list[Fraction]:
    """Density e^(-(log x - mean)^2 / 2 sd^2) / x at each value."""
    mu, sigma = _ball(_number(mean)), _ball(deviation)

    def logarithm(x: Any) -> Any | None:
        return -((((x.log() - mu) / sigma) ** 2) / 2) - x.log() if x > 0 else None

    return _densities(values, logarithm, {})


def _ball(value: Fraction) -> Any:
    import flint

    return flint.arb(flint.fmpq(value.numerator, value.denominator))


DISTRIBUTIONS: Mapping[str, Distribution] = {
    "uniform": Distribution((0, 2), _uniform, of_values=True),
    "normal": Distribution((2,), _normal, ("", "a standard deviation")),
    "lognormal": Distribution((2,), _lognormal, ("", "a standard deviation")),
    "binomial": Distribution((2,), _binomial),
    "bernoulli": Distribution((1,), _bernoulli),
    "categorical": Distribution((1,), _categorical, of_values=True),
    "proportional": Distribution((1,), of_values=True),
    "multinomial": Distribution((2,)),
    "dirichlet": Distribution((1,)),
    "empirical": Distribution((1,), _empirical, of_values=True),
    "poisson": Distribution((1,), _poisson, ("a mean",)),
    "geometric": Distribution((1,), _geometric),
    "exponential": Distribution((1,), _exponential, ("a rate",)),
    "laplace": Distribution((2,), _laplace, ("", "a scale")),
    "gamma": Distribution((2,), _gamma, ("a shape or rate",) * 2),
    "beta": Distribution((2,), _beta, ("a parameter of beta",) * 2),
    "thurstone_mosteller": Distribution((2,)),
}
"""Every distribution of the language by name."""


# --- arguments ------------------------------------------------------------------------------------


def _gaps(value: Value, mean: Value) -> list[Fraction]:
    """Differences from the mean, entry by entry; one mean may serve all entries of a point."""
    entries = [_number(entry) for entry in _flat(value)]
    means = [_number(entry) for entry in _flat(mean)]
    if isinstance(mean, Fraction) and isinstance(value, np.ndarray):
        raise LawError(f"the mean of {len(entries)} numbers is a vector of {len(entries)}")
    if len(means) != len(entries):
        raise LawError(f"a mean of {len(means)} numbers for values of {len(entries)}")
    return [entry - middle for entry, middle in zip(entries, means, strict=True)]


def _number(value: Value) -> Fraction:
    if not isinstance(value, Fraction):
        raise LawError("this law is for single numbers")
    return value


def _flat(value: Value) -> list[Any]:
    """Entries in order, numbers as fractions; words as they are."""
    if not isinstance(value, np.ndarray):
        return list(value) if isinstance(value, tuple) else [value]
    if value.dtype != object and not np.isfinite(value).all():
        raise LawError("a number here is not finite")
    return [entry if isinstance(entry, Fraction | str) else Fraction(float(entry)) for entry in value.ravel()]


@dataclass(frozen=True, eq=False, slots=True)
class Drawn:
    """What every party of a simulated crowd holds: records (N, n, d), and hidden attributes such as weights (N, d).

    `axis` (d,), where there is one: of length one, and given what all parties share, a party is as likely as its mirror
    image, all of whose vectors keep their part along the axis and have the rest of them turned round.
    """

    records: Array
    attributes: Mapping[str, Array]
    axis: Array | None = None

    def mirrored(self) -> Drawn:
        """The image of the crowd; itself where there is no axis."""
        axis = self.axis
        if axis is None:
            return self

        def image(vectors: Array) -> Array:
            return np.asarray(2 * (vectors @ axis)[..., None] * axis - vectors)

        return Drawn(image(self.records), {name: image(values) for name, values in self.attributes.items()}, axis)


class Generator(Protocol):
    """A data model that can be drawn from."""

    def draw(self, parties: int, random: np.random.Generator) -> Drawn:
        """One crowd."""


@dataclass(frozen=True, slots=True)
class ThurstoneMosteller:
    """Pairwise choices of voters with hidden weights (Wang et al. 2019, section 5.1).

    m uniform on [-1, 1]^d; weights N(m, I) for every voter; n pairs of alternatives N(0, I) each; the voter chooses the
    one of larger utility, where utilities are weights' alternative plus noise of variance 1/2. A record is the chosen
    alternative minus the other one, clipped to a ball of `radius` if there is one.
    """

    records: int
    dimension: int
    radius: float | None

    def draw(self, parties: int, random: np.random.Generator) -> Drawn:
        """One society and its voters."""
        centre = random.uniform(-1.0, 1.0, self.dimension)
        weights = centre + random.standard_normal((parties, self.dimension))
        # The difference of two alternatives N(0, I) is N(0, 2 I), that of the noises of two utilities N(0, 1).
        difference = sqrt(2.0) * random.standard_normal((parties, self.records, self.dimension))
        utility = np.einsum("vnd,vd->vn", difference, weights) + random.standard_normal((parties, self.records))
        chosen = np.where(utility[..., None] > 0, difference, -difference)
        return Drawn(clipped(chosen, self.radius), {"weights": weights}, centre / np.linalg.norm(centre))


def clipped(records: Array, radius: float | None) -> Array:
    """Every record drawn in to the ball, by itself: what it becomes does not depend on any other."""
    if radius is None:
        return records
    lengths = np.linalg.norm(records, axis=-1, keepdims=True)
    shrunk: Array = records * np.minimum(1.0, radius / np.maximum(lengths, 1e-300))
    return shrunk


def generator_of(model: Model, subject: str, records: int, dimension: int, radius: float | None) -> Generator | None:
    """The data model of an input, if it can be drawn from."""
    for known in model.models:
        if known.subject == subject and known.distribution == "thurstone_mosteller":
            return ThurstoneMosteller(records, dimension, radius)
    return None


MOST = 255
"""Records that a person may have under a law that does not say how many at most."""
LISTED = 2**16
"""Records that a person may have under any law."""


def set_laws_apart(spec: syntax.Spec) -> tuple[syntax.Spec, tuple[syntax.Relation, ...]]:
    """The spec without its laws of records per person, and these."""
    relations = (one for one in spec.background if isinstance(one, syntax.Relation) and one.op == "~")
    found = tuple(one for one in relations if _of_records(one))
    return replace(spec, background=tuple(one for one in spec.background if one not in found)), found


def _of_records(statement: syntax.Relation) -> tuple[str, str] | None:
    """The table and the column of `count(visits, by = {person}) ~ ...`; None for any other statement."""
    match statement.left:
        case syntax.Call(function="count", arguments=(syntax.Name(id=table), syntax.Keyword(name="by", value=by))):
            match by:
                case syntax.SetOf(items=(syntax.Name(id=column),)) | syntax.SetOf(items=(syntax.String(value=column),)):
                    return table, column
    return None


def laws_that_follow(
    laws: Mapping[str, DataModel], domains: Mapping[str, Domain], environment: Environment
) -> dict[str, DataModel]:
    """By its name, as in "people.group", the law of a column that follows from one that has values and a law."""
    found = {}
    columns = (
        (table, domain, *one)
        for table, domain in domains.items()
        if isinstance(domain, Table)
        for one in domain.derived
    )
    for table, domain, name, one in columns:
        (source, held), *others = one.columns
        law, own = laws.get(f"{table}.{source}"), dict(domain.attributes).get(name)
        if law is None or own is None or others or f"{table}.{name}" in laws or measured(held) or measured(own):
            continue
        values = list(held.elements())
        weights = [Fraction(0)] * (own.size or 0)
        try:
            chances = law_of(law, values, environment)
        except Failure:
            continue  # a law that is wrong, or not exact, is told where it is used
        for place, chance in enumerate(chances):
            weights[_place(one, own, place, values[place])] += chance
        vector = syntax.Vector(tuple(syntax.Number(weight, span=law.span) for weight in weights), span=law.span)
        found[f"{table}.{name}"] = DataModel(f"{table}.{name}", "categorical", (vector,), law.span, law.line)
    return found


def _place(follows: Follows, own: Domain, place: int, value: Any) -> int:
    """Where a value of its source stands in a column."""
    if follows.formula is None:
        return follows.places[place]
    (name, _), *_ = follows.columns
    number = follows.formula.value({name: Fraction(value)})
    cuts = follows.cuts or (own.cuts if isinstance(own, Cut) else ())
    if cuts:
        return sum(number > cut or (number == cut and not up_to) for cut, up_to in cuts)
    low, _ = own.bounds
    return int(number - (low or 0))


def read_laws(
    statements: Sequence[syntax.Relation], domains: Mapping[str, Domain], environment: Environment, report: Report
) -> tuple[RecordsLaw, ...]:
    """The laws as they are stated; what is wrong with one is told."""
    named = [(one, of) for one in statements if (of := _of_records(one))]
    found = [report.told(partial(_read, one, *of, domains, environment, report)) for one, of in named]
    return tuple(one for one in found if one is not None)


def _read(
    statement: syntax.Relation,
    name: str,
    person: str,
    domains: Mapping[str, Domain],
    environment: Environment,
    report: Report,
) -> RecordsLaw:
    table, law = domains.get(name), statement.right
    if not isinstance(table, Table) or person not in table.ids:
        text, hint = f"{name} has no column {person} that says whose a record is", f"table({person} in id, ...)"
        if isinstance(table, Table) and person in table.names:
            said = f"{spell(statement.left)}"
            hint = f"a law of other counts has a name: `intermediate sizes`, `sizes = {said}`, `sizes ~ ...`"
            raise Failure("PS0531", statement.left.span, text, help=hint)
        raise Failure("PS0531", statement.left.span, text, help=f"declare the column: {hint}")
    if not isinstance(law, syntax.Call):
        hint = f"as in {spell(statement.left)} ~ poisson(4), or ~ empirical(numbers)"
        raise Failure("PS0531", law.span, "a law of records a person is expected here", help=hint)
    plain = [one for one in law.arguments if not isinstance(one, syntax.NO_EXPRESSION)]
    first, last, listed = 0, MOST, list[Fraction]()
    if law.function in ("categorical", "empirical") and plain:
        listed = [Fraction(one) for one in np.asarray(evaluate(plain[0], environment)).ravel().tolist()]
    if law.function == "categorical":
        first, last = 1, len(listed)
    elif listed:
        if max(listed) > LISTED or any(one < 0 or one.denominator > 1 for one in listed):
            raise Failure("PS0531", law.span, f"numbers of records are whole, from 0 to {LISTED:,}")
        last = int(max(listed))
    data = DataModel(name, law.function, law.arguments, law.span, report.line(statement.span)[0])
    chances = law_of(data, [Fraction(value) for value in range(first, last + 1)], environment)
    people = environment.parties.get(person, len(listed) if law.function == "empirical" else None)
    if people is None:
        hint = f"say for how many people the error is predicted: parties: {person} in 1..1000"
        raise Failure("PS0531", statement.span, "nothing says how many people there are", help=hint)
    return RecordsLaw(name, person, people, (Fraction(0),) * first + chances, statement.span)
