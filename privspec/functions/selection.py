"""One value that is picked by how many records lie below and above it, or are like it: quantiles, the mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from privspec.core.records import dataclass
from privspec.functions.numeric import extreme, selected, vector
from privspec.model.domains import Between, Domain, FiniteSet, Power, Symbols, Tables, Type, is_numeric
from privspec.model.library import Arguments, Binder, Bound, Function, FunctionError, by_name, without_value

if TYPE_CHECKING:
    from privspec.core.columns import Cells


@dataclass(frozen=True, slots=True)
class Sought:
    """What a function of a column looks for: values at `shares` of the records in order; without any, the commonest.

    `several`: how many it looks for, where it gives a vector of them; None where it gives one value.
    """

    shares: tuple[Fraction, ...]
    several: int | None = None

    @property
    def share(self) -> Fraction | None:
        """The first share."""
        return self.shares[0] if self.shares else None


def sought(function: str, arguments: Arguments) -> Sought:
    """What a call looks for.

    Raises: FunctionError for a share that is not public, or not between 0 and 1, and for a number that is none.
    """
    if function in SHARES:
        return Sought((SHARES[function],))
    place = 2 if isinstance(arguments[0].type.element, Tables) else 1
    asked, at = arguments[place].value if len(arguments) > place else None, min(place, len(arguments) - 1)
    if function == "quantile":
        if not isinstance(asked, Fraction) or not _is_share(asked):
            text = f"quantile takes a public share between 0 and 1, a fraction of at most {LARGEST_PARTS:,} parts"
            raise FunctionError(text, at, help="as in quantile(people.age, 0.9)")
        return Sought((asked,))
    if function == "quantiles":
        shares = tuple(asked.tolist()) if isinstance(asked, np.ndarray) and asked.ndim == 1 else ()
        fits = all(map(_is_share, shares)) and list(shares) == sorted(set(shares))
        if not fits or not 2 <= len(shares) <= MOST_SHARES:
            text = f"quantiles takes 2 to {MOST_SHARES} public shares between 0 and 1, each larger than the one before"
            raise FunctionError(text, at, help="as in quantiles(people.age, [0.25, 0.5, 0.75])")
        return Sought(shares, len(shares))
    if function == "top":
        if not isinstance(asked, Fraction) or asked.denominator > 1 or asked < 1:
            text = "top takes how many of the most frequent values are asked for, a whole number"
            raise FunctionError(text, at, help="as in top(histogram(visits.page), 5)")
        return Sought((), int(asked))
    return Sought(())


def _is_share(value: Any) -> bool:
    return isinstance(value, Fraction) and 0 <= value <= 1 and value.denominator <= LARGEST_PARTS


SHARES = {"median": Fraction(1, 2), "min": Fraction(0), "max": Fraction(1)}
LARGEST_PARTS, MOST_SHARES = 1000, 100
"""Largest denominator of a share: scores are whole numbers of such parts of a record."""


def of_one_number_each(arguments: Arguments, name: str) -> int:
    """The number of entries of a vector.

    Raises: FunctionError for other arguments: of vectors one may move a median from end to end, however many there are.
    """
    kind = arguments[0].type
    if len(kind.shape) > 1:
        text = f"{name} takes one number of each, and this is {kind.describe()}: one of them may move the median of "
        text += "each number from one end of its range to the other, so that its noise is that of a crowd of one"
        hint = "mean(...) is moved by a share of the range alone"
        raise FunctionError(text, 0, help=hint, code="PS0207")
    return vector(arguments, 0, name)


def column_of(arguments: Arguments, name: str) -> Domain:
    """The domain of the column that a call on a table is about.

    Raises: FunctionError where it is about none, or one whose values have no order and need one.
    """
    element = arguments[0].type.element
    asked = arguments[1].value if len(arguments) > 1 else None
    if not isinstance(element, Tables) or not isinstance(asked, tuple) or len(asked) != 1:
        raise FunctionError(f"{name} is about a column of a table", 0, help=f"as in {name}(people.age)")
    domain = dict(element.table.attributes).get(str(asked[0]))
    if domain is None:
        raise FunctionError(f"the table has no column {asked[0]}", 1)
    ordered = is_numeric(domain)
    if not ordered and sought(name, arguments).share is not None:
        hint = f"the most frequent of them is mode(t.{asked[0]})"
        raise FunctionError(f"the values of {asked[0]} are words, which have no order", 1, help=hint)
    if isinstance(domain, Between) and sought(name, arguments).share is None:
        hint = f"declare it in steps, as in {asked[0]} in grid({domain.low}, {domain.high}, 1)"
        raise FunctionError(f"{asked[0]} is measured, not counted: nobody says which values are alike", 1, help=hint)
    return domain


def of_column(arguments: Arguments, name: str) -> Bound:
    """A value of a column of secret records, or one for each group: its type, and nothing to compute it by."""
    domain, groups = column_of(arguments, name), selected(arguments, name, ())
    aim = sought(name, arguments)
    if column_name(arguments) in {groups.table.names[i] for i in groups.by}:
        raise FunctionError(f"{name} of {column_name(arguments)} by itself: every group has one value", "by")
    shape = (groups.size,) if groups.by else ()
    if aim.several is not None:
        if groups.by:
            raise FunctionError(f"{name} of groups: ask for one group in a condition", "by", help="as in sex = F")
        if not aim.shares and domain.size is not None and aim.several >= domain.size:
            text = f"{column_name(arguments)} has {domain.size:,} values, and {name} gives fewer"
            raise FunctionError(text, 2, help="ask for the counts: histogram")
        shape = (aim.several,)
    kind = Type(shape, Symbols(domain.items)) if isinstance(domain, FiniteSet) and not domain.numeric else Type(shape)
    apply = without_value("it picks a value of secret records")
    known = domain if not shape else Power(domain, shape)
    labels = groups.labels if groups.by else None if aim.several is None else lambda: _places(aim)
    return Bound(kind, apply, domain=None if isinstance(domain, Between) else known, labels=labels)


def _places(aim: Sought) -> Mapping[str, Cells]:
    """What entries are about: the share of each quantile, or the place of each of the most frequent values."""
    if aim.shares:
        return {"share": np.array([f"{float(share):g}" for share in aim.shares], dtype=object)}
    return {"place": np.arange(1, (aim.several or 0) + 1)}


def column_name(arguments: Arguments) -> str:
    """The column that a call on a table is about."""
    asked = arguments[1].value if len(arguments) > 1 else None
    return str(asked[0]) if isinstance(asked, tuple) and asked else ""


def _picked(of_values: Callable[[Any, Fraction], Any]) -> Binder:
    """Bind a quantile of a vector, or of a column of a table."""

    def bind(arguments: Arguments, name: str) -> Bound:
        if isinstance(arguments[0].type.element, Tables):
            return of_column(arguments, name)
        if of_one_number_each(arguments, name) == 0:
            raise FunctionError(f"{name} of nothing", 0)
        share = sought(name, arguments).share
        assert share is not None
        return Bound(Type(), lambda values: of_values(values, share))

    return bind


def _end(fold: Callable[..., Any]) -> Binder:
    """Bind the largest or the least: of a column of a table, of several numbers, or along the first axis of one."""
    of_numbers = extreme(fold)

    def bind(arguments: Arguments, name: str) -> Bound:
        if isinstance(arguments[0].type.element, Tables):
            return of_column(arguments, name)
        for word in arguments.keywords:
            raise FunctionError(f"{name} of numbers has no setting {word}", word)
        return of_numbers(arguments, name)

    return bind


def at_share(values: Any, share: Fraction) -> Any:
    """The least of some values that a share of them is at most."""
    listed = sorted(values.tolist() if isinstance(values, np.ndarray) else values)
    found = listed[max(ceil(share * len(listed)) - 1, 0)]
    return Fraction(found)


def _commonest(arguments: Arguments, name: str) -> Bound:
    if not isinstance(arguments[0].type.element, Tables):
        text = f"{name} is about a column of a table, or the groups of one"
        hint = "as in argmax(histogram(people, by = {district})); for ranges of a column write "
        hint += "people.group = cut(people.age, [0, 10, 20]) under background; the winner of votes is plurality(votes)"
        hint += "; of sums over parties, release the sums, of which whoever has them takes the largest"
        raise FunctionError(text, 0, help=hint)
    return of_column(arguments, name)


def _of_table(arguments: Arguments, name: str) -> Bound:
    if not isinstance(arguments[0].type.element, Tables):
        asked = "quantiles(people.age, [0.25, 0.5, 0.75])" if name == "quantiles" else "top(histogram(visits.page), 5)"
        raise FunctionError(f"{name} is about a column of a table", 0, help=f"as in {asked}")
    return of_column(arguments, name)


def _rank_error(arguments: Arguments, name: str) -> Bound:
    left, right = (one.type for one in arguments.positional)
    if left.shape != right.shape or len(left.shape) > 1:
        raise FunctionError(f"{name} compares a released value with the one that is asked for", 1, code="PS0207")
    return Bound(Type(), without_value("it counts secret records"), data=(0, 1))


FUNCTIONS: Mapping[str, Function] = by_name(
    Function("median(t.column, conditions), median(v)", _picked(at_share), arity=(1, 2), keywords=None, symmetric=True),
    Function(
        "quantile(t.column, 0.9, conditions), quantile(v, 0.9)",
        _picked(at_share),
        arity=(2, 3),
        keywords=None,
        symmetric=True,
    ),
    Function(
        "max(e for i in 1..N), max(v), max(a, b), max(t.column, conditions)",
        _end(np.max),
        arity=(1, None),
        keywords=None,
        symmetric=True,
    ),
    Function(
        "min(e for i in 1..N), min(v), min(a, b), min(t.column, conditions)",
        _end(np.min),
        arity=(1, None),
        keywords=None,
        symmetric=True,
    ),
    Function("argmax(histogram(t, by = {column}, conditions))", _commonest, arity=(1, 2), keywords=None),
    Function("quantiles(t.column, [0.25, 0.5, 0.75], conditions)", _of_table, arity=(2, 3), keywords=None),
    Function("top(histogram(t.column, conditions), k)", _of_table, arity=(2, 3), keywords=None),
    Function("mode(t.column, conditions)", _commonest, arity=(1, 2), keywords=None),
    Function("rank_error(m, median(t.column))", _rank_error, arity=(2, 2), same_type=True),
    Function("bound_error(m, quantile(t.column, 0.9))", _rank_error, arity=(2, 2), same_type=True),
)
