"""Statistics of columns that are worked out from noisy sums: means, variances, linear regression.

Sums are those of deviations from the middle of a column's range: then noise on the number of records hardly matters
where values lie around the middle. What their errors cost is the squared error of the statistic to first order
(notes/sums.md): at the worst for a mean, on average over laws of the data for the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any, TypeAlias

import numpy as np

from privspec.functions.numeric import folded
from privspec.language import syntax
from privspec.model.domains import Anything, Numbers, Type
from privspec.model.library import (
    Arguments,
    Bound,
    FromSums,
    Function,
    FunctionError,
    NotComputableError,
    Question,
    Statistic,
    Sum,
    by_name,
    number,
    without_value,
)
from privspec.model.values import Array, as_float

LEAST_EIGENVALUE = 1.0
"""Eigenvalues of a noisy matrix of moments below it count as it: what one record adds at most to each of them."""
MOST = 8
"""Columns that a regression is on, at most."""
CELL_STEPS = 2.0**20
"""Steps of one in the cells of a consistent table."""
MEAN_SHARE, SPREAD_SHARE = Fraction(4, 3), Fraction(1, 5)
"""Averages of the squares of 2 d and of (3 d^2 - 1) / 2 over means d that lie evenly in [-1, 1] (notes/sums.md)."""
MEAN_SQUARE = Fraction(1, 3)
"""Of numbers that lie evenly in [-1, 1]."""
Names = Mapping[str, syntax.Expr]
Scale: TypeAlias = tuple[Fraction, Fraction]
"""The middle of a column's range, and half its width."""


def _quotient(asked: Question, above: syntax.Expr, count: syntax.Expr) -> syntax.Expr:
    """Over the larger of a noisy number of records and 1."""
    span = asked.call.span
    return syntax.Binary("/", above, syntax.Call("max", (count, number(1, span)), span=span), span=span)


def _middle(asked: Question, column: str) -> Scale:
    """That of a column.

    Raises: FunctionError for a column of one value, or of words.
    """
    low, high = asked.ends(column)
    if low == high:
        raise FunctionError(f"{column} has one value only", 0)
    return (low + high) / 2, (high - low) / 2


def _interval(asked: Question, low: Fraction, high: Fraction) -> syntax.Interval:
    span = asked.call.span
    return syntax.Interval(number(low, span), number(high, span), span=span)


def _mean(asked: Question) -> Statistic:
    """(e_S - d e_N) / n at a mean d from the middle, which is at most half the width: the worst of both signs."""
    (column,) = asked.columns
    middle, half = _middle(asked, column)
    one = Fraction(1)
    deviations = asked.plus((one, asked.sum_of(column)), (-middle, asked.sum_of()))

    def value(names: Names) -> syntax.Expr:
        quotient = _quotient(asked, names["sum"], names["count"])
        span = asked.call.span
        return syntax.Binary("+", number(middle, span), quotient, span=span) if middle else quotient

    sums = {"sum": Sum(deviations, one, _centred(middle, column)), "count": Sum(asked.sum_of(), half**2)}
    return Statistic(sums, value, _interval(asked, *asked.ends(column)))


def _centred(middle: Fraction, what: str) -> str:
    """What a sum of deviations from the middle is called."""
    return f"centred sum of {what}" if middle else ""


def _variance(asked: Question) -> Statistic:
    (column,) = asked.columns
    middle, half = _middle(asked, column)
    one, span = Fraction(1), asked.call.span
    first = asked.plus((one, asked.sum_of(column)), (-middle, asked.sum_of()))
    second = asked.plus(
        (one, asked.sum_of(column, column)), (-2 * middle, asked.sum_of(column)), (middle**2, asked.sum_of())
    )
    if asked.measured(column, column):
        second = asked.deviations((column, middle), (column, middle))

    def value(names: Names) -> syntax.Expr:
        mean = _quotient(asked, names["sum"], names["count"])
        squared = syntax.Binary("^", mean, number(2, span), span=span)
        return syntax.Binary("-", _quotient(asked, names["squares"], names["count"]), squared, span=span)

    sums = {
        "squares": Sum(second, one, _centred(middle, f"squares of {column}")),
        "sum": Sum(first, MEAN_SHARE * half**2, _centred(middle, column)),
        "count": Sum(asked.sum_of(), SPREAD_SHARE * half**4),
    }
    return Statistic(sums, value, _interval(asked, Fraction(0), half**2))


def _two(asked: Question) -> tuple[tuple[str, str], tuple[Scale, Scale]]:
    """Two different columns, and the middle of the range of each with half its width."""
    if len(asked.columns) != 2 or asked.columns[0] == asked.columns[1]:
        name, table = asked.call.function, asked.table.id
        hint = f"as in {name}({table}.age, {table}.pay)"
        raise FunctionError(f"{name} is of two columns of numbers of one table", 0, help=hint)
    left, right = asked.columns
    return (left, right), (_middle(asked, left), _middle(asked, right))


def _scaled(asked: Question, column: str, scale: Scale) -> syntax.Expr:
    """The sum of a column, from -1 to 1 around the middle of its range."""
    middle, half = scale
    return asked.plus((1 / half, asked.sum_of(column)), (-middle / half, asked.sum_of()))


def _products(asked: Question, columns: tuple[str, str], scales: tuple[Scale, Scale]) -> syntax.Expr:
    """The sum of products of two columns, or of squares of one, each from -1 to 1 around the middle of its range."""
    (left, right), ((a, h), (b, k)) = columns, scales
    if asked.measured(left, right):
        return asked.plus((1 / (h * k), asked.deviations((left, a), (right, b))))
    terms: dict[tuple[str, ...], Fraction] = {}
    for factor, names in ((Fraction(1), (left, right)), (-b, (left,)), (-a, (right,)), (a * b, ())):
        terms[names] = terms.get(names, Fraction(0)) + factor / (h * k)
    return asked.plus(*((factor, asked.sum_of(*names)) for names, factor in terms.items()))


def _covariation(asked: Question, names: Names, above: str, left: str, right: str) -> syntax.Expr:
    """The mean of products less the product of means."""
    means = [_quotient(asked, names[one], names["count"]) for one in (left, right)]
    span = asked.call.span
    return syntax.Binary(
        "-", _quotient(asked, names[above], names["count"]), syntax.Binary("*", *means, span=span), span=span
    )


def _covariance(asked: Question) -> Statistic:
    (left, right), scales = _two(asked)
    size = scales[0][1] * scales[1][1]

    def value(names: Names) -> syntax.Expr:
        inner = _covariation(asked, names, "products", left, right)
        return syntax.Binary("*", number(size, asked.call.span), inner, span=asked.call.span)

    sums = {"products": Sum(_products(asked, (left, right), scales), size**2, f"centred sum of {left} times {right}")}
    for column, scale in zip((left, right), scales, strict=True):
        sums[column] = Sum(_scaled(asked, column, scale), size**2 * MEAN_SQUARE, f"centred sum of {column}")
    sums["count"] = Sum(asked.sum_of(), size**2 * MEAN_SQUARE**2)
    return Statistic(sums, value, _interval(asked, -size, size))


def _correlation(asked: Question) -> Statistic:
    (left, right), scales = _two(asked)
    span = asked.call.span

    def value(names: Names) -> syntax.Expr:
        # what one record adds at most: no spread of released numbers is smaller
        least = _quotient(asked, number(1, span), names["count"])
        spreads = [_covariation(asked, names, f"{one}*{one}", one, one) for one in (left, right)]
        held = [syntax.Call("max", (spread, least), span=span) for spread in spreads]
        root = syntax.Call("sqrt", (syntax.Binary("*", *held, span=span),), span=span)
        return syntax.Binary("/", _covariation(asked, names, "products", left, right), root, span=span)

    sums = {
        "products": Sum(_products(asked, (left, right), scales), Fraction(9), f"centred sum of {left} times {right}")
    }
    for column, scale in zip((left, right), scales, strict=True):
        own = _products(asked, (column, column), (scale, scale))
        sums[f"{column}*{column}"] = Sum(own, Fraction(3, 4), f"centred sum of squares of {column}")
        sums[column] = Sum(_scaled(asked, column, scale), Fraction(4), f"centred sum of {column}")
    sums["count"] = Sum(asked.sum_of(), Fraction(22, 15))
    return Statistic(sums, value, _interval(asked, Fraction(-1), Fraction(1)))


def _regression(asked: Question) -> Statistic:
    """Moments of the columns, each from -1 to 1 around the middle of its range."""
    about, *on = asked.columns
    span = asked.call.span
    if not on or len(on) > MOST or len(set(asked.columns)) <= len(on) or asked.groups > 1:
        message = f"regression is of one column on 1 to {MOST} others, without groups"
        raise FunctionError(message, 0, help="as in regression(people.pay, on = {age, hours})")
    scales = {column: _middle(asked, column) for column in asked.columns}
    spread: dict[str, Fraction] = {}
    for column in on:
        middle, half = scales[column]
        if asked.measured(column, column):
            spread[column] = MEAN_SQUARE
            continue
        values = [(Fraction(v) - middle) / half for v in asked.domains[column].elements()]
        spread[column] = sum((v * v for v in values), Fraction(0)) / len(values)

    def deviations(column: str) -> syntax.Expr:
        return _scaled(asked, column, scales[column])

    def products(left: str, right: str) -> syntax.Expr:
        return _products(asked, (left, right), (scales[left], scales[right]))

    height = scales[about][1]
    slope = {c: (height / scales[c][1]) ** 2 * (1 + scales[c][0] ** 2) / spread[c] ** 2 for c in on}
    level = height**2
    sums = {"count": Sum(asked.sum_of(), level)}
    sums |= {c: Sum(deviations(c), level + slope[c], f"centred sum of {c}") for c in on}
    for left, right in combinations_with_replacement(on, 2):
        cost = slope[left] + (slope[right] if left != right else 0)
        sums[f"{left}*{right}"] = Sum(products(left, right), cost, f"centred sum of {left} times {right}")
    sums[about] = Sum(deviations(about), level, f"centred sum of {about}")
    sums |= {f"{c}*{about}": Sum(products(c, about), slope[c], f"centred sum of {c} times {about}") for c in on}

    def value(names: Names) -> syntax.Expr:
        def moment(left: str, right: str) -> syntax.Expr:
            if not left or not right:
                return names[left or right or "count"]
            return names[f"{left}*{right}"] if f"{left}*{right}" in names else names[f"{right}*{left}"]

        every = ["", *on]
        rows = [syntax.Vector(tuple(moment(a, b) for b in every), span=span) for a in every]
        right = syntax.Vector((names[about], *(names[f"{c}*{about}"] for c in on)), span=span)
        solved = syntax.Call("least_squares", (syntax.Vector(tuple(rows), span=span), right), span=span)
        first: list[Fraction] = [height, *(-scales[c][0] * height / scales[c][1] for c in on)]
        rest = [[height / scales[c][1] if c == d else Fraction(0) for d in every] for c in on]
        scaled = [syntax.Vector(tuple(number(v, span) for v in row), span=span) for row in [first, *rest]]
        product = syntax.Binary("@", syntax.Vector(tuple(scaled), span=span), solved, span=span)
        shift = syntax.Vector(tuple(number(v, span) for v in [scales[about][0], *(Fraction(0) for _ in on)]), span=span)
        return syntax.Binary("+", product, shift, span=span)

    return Statistic(sums, value, labels={"coefficient": ("intercept", *on)})


MEAN = FromSums(_mean, lambda call, n: _share(call, n))
VARIANCE = FromSums(_variance)
COVARIANCE = FromSums(_covariance)
CORRELATION = FromSums(_correlation)
REGRESSION = FromSums(_regression)


def _share(call: syntax.Call, records: int) -> syntax.Expr:
    """The sum of a column over a public number of records."""
    whole = syntax.Call("sum", call.arguments, span=call.span)
    return syntax.Binary("/", whole, number(records, call.span), span=call.span)


def _of_a_table(arguments: Arguments, name: str) -> Bound:
    """Raises: FunctionError, always: what is left of such calls is not of a column."""
    kind = arguments[0].type.describe()
    raise FunctionError(f"{name} is of a column of a table, and this is {kind}", 0, code="PS0229")


def solved(matrix: Array, right: Array) -> Array:
    """The x with A x = b for the symmetric part of A, whose eigenvalues below `LEAST_EIGENVALUE` count as that."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    found: Array = vectors @ ((vectors.T @ right) / np.maximum(values, LEAST_EIGENVALUE))
    return found


def _least_squares(arguments: Arguments, name: str) -> Bound:
    matrix, right = arguments[0].type, arguments[1].type
    for position, kind in enumerate((matrix, right)):
        if not isinstance(kind.element, Numbers | Anything):
            raise FunctionError(f"{name} takes numbers, and this is {kind.describe()}", position, code="PS0208")
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1] or right.shape != matrix.shape[:1]:
        message = f"{name} takes a square matrix and a vector of as many entries"
        raise FunctionError(message, 0, code="PS0207")

    def apply(left: Array, vector: Array) -> Array:
        a, b = as_float(left), as_float(vector)
        if a.ndim > 2:
            raise NotComputableError("it solves for released numbers")
        return solved(a, b)

    return Bound(Type(right.shape), apply, data=(0, 1))


def nearest(place: int, answers: Sequence[Array], maps: Sequence[Array]) -> Array:
    """What a non-negative table answers whose answers are nearest to noisy ones, in squares: those at a place.

    Its cells are multiples of 2^-20: where answers are sums of cells, sums of them are equal as doubles.
    Args: answers, each (m,); maps, each (m, cells), from the cells of a table.
    """
    import scipy

    every = np.vstack(maps)
    cells, _ = scipy.optimize.nnls(every, np.concatenate([one.ravel() for one in answers]), maxiter=30 * every.shape[1])
    found: Array = maps[place] @ (np.rint(cells * CELL_STEPS) / CELL_STEPS)
    return found.reshape(answers[place].shape)


def _consistent(arguments: Arguments, name: str) -> Bound:
    """Of answers; once a spec is read, behind the place of the one wanted and each with its map (`model.build`)."""
    first = arguments[0].value
    if isinstance(first, Fraction) and len(arguments) > 1:
        place, count = int(first), len(arguments) - 1

        def apply(*given: Array) -> Array:
            values = [as_float(one) for one in given]
            return nearest(place, values[0::2], values[1::2])

        return Bound(arguments[1 + 2 * place].type, apply, data=tuple(range(1, count + 1)))
    for position, one in enumerate(arguments.positional):
        if not isinstance(one.type.element, Numbers | Anything):
            raise FunctionError(f"{name} takes released answers about a table", position, code="PS0208")
    return Bound(arguments[0].type, _NOT_HERE, data=())


_NOT_HERE = without_value("it stands in outputs that are computed from others, and takes outputs")


def _average(values: Any) -> Any:
    return np.sum(values, axis=0) / Fraction(len(values)) if values.dtype == object else np.mean(values, axis=0)


FUNCTIONS: Mapping[str, Function] = by_name(
    Function(
        "mean(e for voter), mean(v), mean(t.column, conditions)",
        folded(_average, linear=True),
        linear=True,
        symmetric=True,
        of_sums=MEAN,
    ),
    Function(
        "variance(v), variance(t.column, conditions)",
        folded(lambda values: np.var(as_float(values), axis=0), linear=False),
        symmetric=True,
        of_sums=VARIANCE,
    ),
    Function("covariance(t.column, t.column, conditions)", _of_a_table, arity=(2, 2), of_sums=COVARIANCE),
    Function("correlation(t.column, t.column, conditions)", _of_a_table, arity=(2, 2), of_sums=CORRELATION),
    Function(
        "regression(t.column, on = {columns}, conditions)",
        _of_a_table,
        arity=(1, 1),
        keywords=("on",),
        of_sums=REGRESSION,
    ),
    Function("least_squares(A, b)", _least_squares, arity=(2, 2)),
    Function("consistent(O, P, ...)", _consistent, arity=(1, None), of_answers=True),
)
