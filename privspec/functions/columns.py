"""Columns that follow from others of the same record: classes of numbers, and parts of days (`model.derived`)."""

from __future__ import annotations

from collections.abc import Mapping

from privspec.model.library import Arguments, Bound, Function, FunctionError, by_name

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _of_records(_: Arguments, name: str) -> Bound:
    """Raises: FunctionError, always: a column is defined by it, and nothing else."""
    raise FunctionError(
        f"{name} is what a column of a table follows by", 0, code="PS0206", help=f"as in {EXAMPLES[name]}"
    )


EXAMPLES = {
    "persons": "person = persons(visits)",
    "any": "person.any_flu = any(visits, code = J10)",
    "lookup": "people.region = lookup(people.county, south = {essex, kent}, north = {york})",
    "cut": "people.group = cut(people.age, [0, 15, 30, 65])",
    **{
        name: f"visits.{name} = {name}(visits.date)"
        for name in ("week", "month", "quarter", "year", "weekday", "day", "hour")
    },
}
FUNCTIONS: Mapping[str, Function] = by_name(
    Function("cut(t.column, numbers)", _of_records, arity=(2, 2)),
    Function("lookup(t.column, word = {values})", _of_records, arity=(1, 2), keywords=None),
    Function("persons(t)", _of_records, arity=(1, 16)),
    Function("any(t, conditions)", _of_records, arity=(1, 64)),
    Function("hour(t.column)", _of_records, of_day=lambda moment: f"{moment:%H:00}"),
    Function("day(t.column)", _of_records, of_day=lambda moment: f"{moment:%Y-%m-%d}"),
    Function("week(t.column)", _of_records, of_day=lambda day: "{}-W{:02}".format(*day.isocalendar()[:2])),
    Function("month(t.column)", _of_records, of_day=lambda day: f"{day:%Y-%m}"),
    Function("quarter(t.column)", _of_records, of_day=lambda day: f"{day.year}-Q{(day.month + 2) // 3}"),
    Function("year(t.column)", _of_records, of_day=lambda day: str(day.year)),
    Function("weekday(t.column)", _of_records, of_day=lambda day: WEEKDAYS[day.weekday()]),
)
