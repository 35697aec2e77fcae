"""From the domain an author wrote to the domain object, with every bad number refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING

from privspec.core.spans import Span
from privspec.core.suggest import advice
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.model import domains
from privspec.model.evaluate import DOMAIN_CALLS, Environment, evaluate
from privspec.model.reports import Failure, suggestion
from privspec.model.values import show

if TYPE_CHECKING:
    from privspec.kernel.persons import Source

LARGEST_SIZE = 2**48
"""Largest extent of one axis or set; anything above is taken for a slip of the pen."""

MOST_CELLS = 400
"""Binary digits of the number of cells of a table: what is not laid out has no other limit."""
LARGEST_NUMBER = Fraction(2**1000)


def read_domain(node: syntax.Domain, environment: Environment) -> domains.Domain:
    """The domain that a piece of syntax stands for.

    Raises: Failure PS0220-PS0227.
    """
    match node:
        case syntax.Name():
            return _named(node, environment)
        case syntax.RangeOf():
            return _range(node, environment)
        case syntax.SetOf():
            _refuse_groups(node, environment)
            return domains.FiniteSet(_items(evaluate(node, environment), node.span))
        case syntax.Interval():
            return _interval(node, environment)
        case syntax.RankingOf():
            return domains.RankingOf(_alternatives(node.alternatives, environment))
        case syntax.Power():
            return _power(node, environment)
        case syntax.Call(function=function) if function in CALLS:
            return CALLS[function](node, environment)
        case syntax.Call():
            from privspec.language import meanings

            hint = advice(node.function, DOMAIN_CALLS, meanings.DOMAINS) or f"these exist: {', '.join(DOMAIN_CALLS)}"
            raise Failure("PS0220", node.span, f"there is no domain {node.function}(...)", help=hint)


def number(expr: syntax.Expr, environment: Environment, what: str) -> Fraction:
    """A public, finite number.

    Raises: Failure PS0224 if it is none.
    """
    value = evaluate(expr, environment)
    if not isinstance(value, Fraction):
        listed = "values that are listed stand in braces: write {a, b}" if isinstance(value, str) else None
        raise Failure("PS0224", expr.span, f"{what} must be one number", help=listed)
    if abs(value) > LARGEST_NUMBER:
        raise Failure("PS0224", expr.span, f"{what} is too large to compute with")
    return value


def whole(expr: syntax.Expr, environment: Environment, what: str, least: int = 1) -> int:
    """A public whole number from `least` on.

    Raises: Failure PS0223 if it is none.
    """
    value = number(expr, environment, what)
    if value.denominator != 1 or value < least:
        kind = "a positive whole number" if least == 1 else f"a whole number from {least} on"
        raise Failure("PS0223", expr.span, f"{what} must be {kind}, not {show(value)}")
    if value > LARGEST_SIZE:
        raise Failure("PS0225", expr.span, f"{what} is {show(value)}; at most 2^48 is supported")
    return int(value)


def _end(expr: syntax.Expr, environment: Environment) -> Fraction | None:
    """One end of an interval; None for `inf` and `-inf`."""
    match expr:
        case syntax.Name(id="inf") | syntax.Negate(operand=syntax.Name(id="inf")):
            return None
        case _:
            return number(expr, environment, "the end of an interval")


def _interval(node: syntax.Interval, environment: Environment) -> domains.Domain:
    if isinstance(node.low, syntax.String) and isinstance(node.high, syntax.String):
        hint = f"write {spell(node.low)}..{spell(node.high)}"
        raise Failure("PS0223", node.span, "days are whole: they are listed as a range", help=hint)
    low, high = _end(node.low, environment), _end(node.high, environment)
    if (low is None and isinstance(node.low, syntax.Name)) or (high is None and isinstance(node.high, syntax.Negate)):
        raise Failure("PS0221", node.span, "this interval is empty", help="write [lo, hi] with lo below hi")
    if low is not None and high is not None:
        if low > high:
            message = f"this interval is empty: {show(low)} is above {show(high)}"
            raise Failure("PS0221", node.span, message, help=f"did you mean [{show(high)}, {show(low)}]?")
        if low == high and (node.low_open or node.high_open):
            raise Failure("PS0221", node.span, f"this interval is empty: it leaves out {show(low)}")
    return domains.Interval(low, high, node.low_open, node.high_open)


MOST_MOMENTS = 36_525
"""A hundred years of days, or four of hours."""


def _moments(node: syntax.RangeOf, ends: list[syntax.String]) -> domains.FiniteSet:
    """The days, or the hours, of a range, each a word."""
    found = []
    for end in ends:
        try:
            found.append(domains.moment_of(end.value))
        except ValueError as error:
            hint = "as in 2025-01-31, or 2025-01-31T07:00"
            raise Failure("PS0224", end.span, f"there is no day {end.value}", help=hint) from error
    first, last = found
    if isinstance(first, datetime) != isinstance(last, datetime):
        hint = f"write {ends[0].value[:10]}T00:00..{ends[1].value[:10]}T23:00"
        raise Failure("PS0224", node.span, "a range runs from a day to a day, or from an hour to an hour", help=hint)
    if first > last:
        message = f"this range is empty: {ends[0].value} is after {ends[1].value}"
        raise Failure("PS0221", node.span, message, help=f"did you mean {ends[1].value}..{ends[0].value}?")
    hours = isinstance(first, datetime)
    step = timedelta(hours=1) if hours else timedelta(days=1)
    count = (last - first) // step + 1
    if count > MOST_MOMENTS:
        raise Failure("PS0225", node.span, f"these are more than {'four' if hours else 'a hundred'} years")
    return domains.FiniteSet(tuple((first + n * step).isoformat()[: len(ends[0].value)] for n in range(count)))


def _range(node: syntax.RangeOf, environment: Environment) -> domains.IntegerRange | domains.FiniteSet:
    days = [end for end in (node.low, node.high) if isinstance(end, syntax.String)]
    if len(days) == 2:
        return _moments(node, days)
    ends = []
    for expr in (node.low, node.high):
        if isinstance(expr, syntax.Name) and expr.id == "inf":
            raise Failure("PS0224", expr.span, "a range of whole numbers has two finite ends")
        value = number(expr, environment, "the end of a range")
        if value.denominator != 1:
            hint = "write [lo, hi] for all numbers between two ends"
            raise Failure("PS0223", expr.span, f"lo..hi runs through whole numbers; {show(value)} is none", help=hint)
        ends.append(int(value))
    low, high = ends
    if low > high:
        turned = f"did you mean {high}..{low}?" if max(abs(low), abs(high)) < 10**12 else None
        message = f"this range is empty: {show(Fraction(low))} is above {show(Fraction(high))}"
        raise Failure("PS0221", node.span, message, help=turned)
    if high - low >= LARGEST_SIZE:
        raise Failure("PS0225", node.span, "this range has more than 2^48 values")
    return domains.IntegerRange(low, high)


def _refuse_groups(node: syntax.SetOf, environment: Environment) -> None:
    """`{15-19, 20-24}` means -4 to whoever computes, and groups to whoever reads: it is refused.

    Raises: Failure PS0222.
    """
    for item in node.items:
        match item:
            case syntax.Binary(op="-", left=syntax.Number() as left, right=syntax.Number() as right) if (
                left.span.end + 1 == right.span.start
            ):
                quoted = ", ".join(f'"{spell(one).replace(" - ", "-")}"' for one in node.items)
                message = f"{spell(left)}-{spell(right)} is a difference here, {show(number(item, environment, 'it'))}"
                raise Failure("PS0222", node.span, message, help=f"write {{{quoted}}} for groups by their names")


def _items(value: object, span: Span) -> tuple[str | Fraction, ...]:
    if not isinstance(value, tuple) or not value:
        raise Failure("PS0221", span, "a set with at least one member is expected here")
    seen = set()
    for item in value:
        if item in seen:
            raise Failure("PS0222", span, f"{show(item)} stands twice in this set")
        if isinstance(item, Fraction) and abs(item) > LARGEST_NUMBER:
            raise Failure("PS0224", span, "a number of this set is too large to compute with")
        seen.add(item)
    if any(isinstance(item, str) for item in value) and any(isinstance(item, Fraction) for item in value):
        raise Failure("PS0222", span, "a set holds words or numbers, not both")
    return value


def _named(node: syntax.Name, environment: Environment) -> domains.Domain:
    if node.id == "real":
        return domains.Real()
    if node.id in environment.parties:
        return domains.IntegerRange(1, environment.parties[node.id])
    value = environment.values.get(node.id)
    if isinstance(value, tuple):
        return domains.FiniteSet(_items(value, node.span))
    if value is not None:
        raise Failure("PS0220", node.span, f"{node.id} is no domain", help=f"for the one value write {{{node.id}}}")
    from privspec.language import meanings

    hint = advice(node.id, ["real", *_sets(environment)], meanings.DOMAINS)
    hint = hint or "domains are real, [lo, hi], lo..hi, {a, b}, grid(...), ..."
    raise Failure("PS0220", node.span, f"there is no domain {node.id}", help=hint)


def _sets(environment: Environment) -> list[str]:
    return [name for name, held in environment.values.items() if isinstance(held, tuple)]


def _alternatives(node: syntax.SetOf | syntax.Name, environment: Environment) -> tuple[str | Fraction, ...]:
    """What can be ranked: a set that is written out, or a parameter that is one."""
    value = evaluate(node, environment) if isinstance(node, syntax.SetOf) else environment.values.get(node.id)
    if isinstance(node, syntax.Name) and not isinstance(value, tuple):
        hint = suggestion(node.id, _sets(environment)) or "declare it under `parameters:`, as in A = {a, b, c}"
        raise Failure("PS0220", node.span, f"{node.id} is not a set of alternatives", help=hint)
    return _items(value, node.span)


def _power(node: syntax.Power, environment: Environment) -> domains.Power | domains.Table:
    base = read_domain(node.base, environment)
    exponents = tuple(whole(item, environment, "the exponent of a domain") for item in node.exponents)
    if isinstance(base, domains.Table):  # `table(...)^n`: one table of n records
        if len(exponents) != 1 or base.records is not None:
            hint = "write table(...)^100 for a table of 100 records; several tables are several inputs"
            raise Failure("PS0226", node.span, "a table takes one exponent, the number of its records", help=hint)
        if base.ids:
            hint = "leave the exponent out: how many records of each person are kept is said by lines of privacy"
            raise Failure("PS0226", node.span, "a table with ids may have any number of records", help=hint)
        return replace(base, records=exponents[0])
    domain = domains.Power(base, exponents)
    if domain.type.size > LARGEST_SIZE:
        raise Failure("PS0225", node.span, "this domain has more than 2^48 entries")
    return domain


def _written(node: syntax.Call, count: int, form: str, *, each: bool = False) -> tuple[syntax.Expr, ...]:
    """The arguments of a domain that takes so many plain ones; `each`: a wrong one is pointed at by itself."""
    wrong = [argument for argument in node.arguments if isinstance(argument, syntax.NO_EXPRESSION)]
    if wrong or len(node.arguments) != count:
        span = wrong[0].span if each and len(node.arguments) == count else node.span
        raise Failure("PS0226", span, f"this domain is written {form}")
    return node.arguments  # type: ignore[return-value]


def _ball(node: syntax.Call, environment: Environment) -> domains.L1Ball | domains.L2Ball:
    one, other = _written(node, 2, f"{node.function}(radius, dimension)")
    radius = number(one, environment, "the radius of a ball")
    if radius <= 0:
        raise Failure("PS0226", one.span, f"the radius of a ball must be positive, not {show(radius)}")
    dimension = whole(other, environment, "the dimension of a ball")
    return (domains.L1Ball if node.function == "l1_ball" else domains.L2Ball)(radius, dimension)


def _grid(node: syntax.Call, environment: Environment) -> domains.Grid:
    parts = _written(node, 3, "grid(lo, hi, step)", each=True)
    low, high, step = (number(item, environment, "each part of a grid") for item in parts)
    if step <= 0:
        raise Failure("PS0226", parts[2].span, f"the step of a grid must be positive, not {show(step)}")
    if low > high:
        raise Failure("PS0221", node.span, f"this grid is empty: {show(low)} is above {show(high)}")
    if ((high - low) / step).denominator != 1:
        message = f"steps of {show(step)} from {show(low)} do not reach {show(high)}"
        last = low + (high - low) // step * step
        raise Failure("PS0226", node.span, message, help=f"the last point would be {show(last)}")
    if (high - low) / step >= LARGEST_SIZE:
        raise Failure("PS0225", node.span, "this grid has more than 2^48 points")
    return domains.Grid(low, high, step)


def _law(node: syntax.Call, environment: Environment) -> domains.Law:
    match node.arguments:
        case (syntax.RangeOf() | syntax.SetOf() | syntax.Name() | syntax.Call() as inner,):
            return domains.Law(read_domain(inner, environment))
        case _:
            raise Failure("PS0226", node.span, "this domain is written law(1..10), law({a, b}) or law(grid(...))")


def _partial_ranking(node: syntax.Call, environment: Environment) -> domains.PartialRankingOf:
    written = "written partial_ranking(A), or partial_ranking(A, places) for at most so many places"
    if not 1 <= len(node.arguments) <= 2:
        raise Failure("PS0226", node.span, f"this domain is {written}")
    first, second = (*node.arguments, None)[:2]
    if not isinstance(first, syntax.SetOf | syntax.Name):
        raise Failure(
            "PS0226", node.arguments[0].span, "a set of alternatives is expected here", help=f"this is {written}"
        )
    alternatives = _alternatives(first, environment)
    if second is None:
        return domains.PartialRankingOf(alternatives, len(alternatives))
    if isinstance(second, syntax.NO_EXPRESSION):
        raise Failure("PS0226", second.span, f"this domain is {written}")
    places = whole(second, environment, "the number of places of a ranking")
    if places > len(alternatives):
        message = f"a ranking of {len(alternatives)} alternatives has no {places} places"
        raise Failure("PS0226", second.span, message, help="leave the number out to allow all of them")
    return domains.PartialRankingOf(alternatives, places)


def as_far_as_readable(node: syntax.Domain, environment: Environment) -> domains.Table | None:
    """A table one of whose columns cannot be read, with numbers 0 and 1 in that column's place.

    What is wrong with the column is told where it stands; all others are there, so that no further line is complained
    about. None where it is no table, or where none of its columns can be read.
    """
    if isinstance(node, syntax.Power):  # of so many records, where their number can be read
        table = as_far_as_readable(node.base, environment)
        try:
            size = whole(node.exponents[0], environment, "the exponent of a domain")
        except Failure:
            return table
        return None if table is None else replace(table, records=size)
    if not isinstance(node, syntax.Call) or node.function != "table":
        return None
    columns: list[syntax.Member | syntax.Keyword] = []
    for item in node.arguments:
        if not isinstance(item, syntax.Member | syntax.Keyword) or item.name in {one.name for one in columns}:
            continue
        before = columns if isinstance(item, syntax.Keyword) else ()
        try:
            _table(replace(node, arguments=(*before, item, _STAND_IN)), environment)
            columns.append(item)
        except Failure:
            columns.append(replace(_STAND_IN, name=item.name, span=item.span))
    try:
        return _table(replace(node, arguments=tuple(columns)), environment)
    except Failure:
        return None


_STAND_IN = syntax.Member("", syntax.RangeOf(syntax.Number(Fraction(0)), syntax.Number(Fraction(1))))


GATHERED, PERSONS = "gathered from", "persons of"
"""Calls that no spec can write: `model.persons` makes them of definitions of columns."""


def gathering(item: syntax.Keyword) -> syntax.Call | None:
    """How a column is made of all records of a person, or what a table of persons is made of; None of others."""
    value = item.value
    return value if isinstance(value, syntax.Call) and value.function in (GATHERED, PERSONS) else None


def _table(node: syntax.Call, environment: Environment) -> domains.Table:
    attributes: dict[str, domains.Domain] = {}
    derived: dict[str, domains.Follows] = {}
    gathered: dict[str, domains.Gathers] = {}
    persons: tuple[Source, ...] = ()
    ids: list[str] = []
    for item in node.arguments:
        if isinstance(item, syntax.Keyword) and (made := gathering(item)) is not None:
            from privspec.model.gathered import gathers, sources_of

            if made.function == PERSONS:
                persons = sources_of(made, environment)
                continue
            if item.name in (*attributes, *ids):
                raise Failure("PS0202", item.span, f"the table has a column {item.name} already")
            attributes[item.name], gathered[item.name] = gathers(item.name, made, environment, read_domain)
            continue
        if isinstance(item, syntax.Keyword):
            if item.name in (*attributes, *ids):
                raise Failure("PS0202", item.span, f"the table has a column {item.name} already")
            from privspec.model.derived import follows

            attributes[item.name], derived[item.name] = follows(item, attributes, derived, environment)
            continue
        if not isinstance(item, syntax.Member):
            raise Failure("PS0226", item.span, "a table lists its attributes: table(age in 0..120, sex in {F, M})")
        if item.name in (*attributes, *ids):
            raise Failure("PS0202", item.span, f"the attribute {item.name} stands twice in this table")
        if isinstance(item.domain, syntax.Name) and item.domain.id == "id":
            ids.append(item.name)
            continue
        if isinstance(item.domain, syntax.Name) and item.domain.id == "unknown" and "unknown" not in environment.values:
            attributes[item.name] = domains.Unknown()
            continue
        domain = read_domain(item.domain, environment)
        if (
            isinstance(domain, domains.Interval)
            and domain.low is not None
            and domain.high is not None
            and domain.low < domain.high
        ):
            domain = domains.Between(domain.low, domain.high)
        attributes[item.name] = domain
        if domain.size is None or domain.shape:
            hint = "use a range lo..hi, a set or a grid"
            if isinstance(item.domain, syntax.Interval):
                low, high = spell(item.domain.low), spell(item.domain.high)
                hint = f"write {item.name} in {low}..{high} for whole numbers, or grid({low}, {high}, 1) for steps of 1"
            if isinstance(domain, domains.Real):
                message = f"the numbers of {item.name} have no bounds, so that no noise hides the largest"
                hint = f"write {item.name} in [0, 200000], say: what lies outside is moved to the nearest end"
                raise Failure("PS0226", item.span, message, help=hint)
            raise Failure("PS0226", item.span, f"the attribute {item.name} has infinitely many values", help=hint)
    if not attributes:
        raise Failure("PS0221", node.span, "a table has at least one attribute" + (" beside its ids" if ids else ""))
    table = domains.Table(
        tuple(attributes.items()), None, tuple(ids), tuple(derived.items()), tuple(gathered.items()), persons
    )
    if table.cell_count > 2**MOST_CELLS:
        raise Failure("PS0225", node.span, f"this table has more than 2^{MOST_CELLS} cells")
    return table


CALLS: Mapping[str, Callable[[syntax.Call, Environment], domains.Domain]] = {
    "grid": _grid,
    "l1_ball": _ball,
    "l2_ball": _ball,
    "law": _law,
    "partial_ranking": _partial_ranking,
    "table": _table,
}
"""Domains that are written like calls, as `evaluate.DOMAIN_CALLS` lists them."""
