"""Ways in which records of a person are gathered, as a run does: in polars, and in SQL, with the same results.

Sums are of whole numbers, or of whole steps of a power of two, some 2^24 of which make up what a value ranges over, so
that neither the order of records nor the engine changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import frexp
from typing import TYPE_CHECKING

from privspec.core.records import dataclass
from privspec.execute import warehouse
from privspec.model.derived import NO, YES, of_whole_numbers

if TYPE_CHECKING:
    import polars as pl

    from privspec.kernel.derived import Derived
    from privspec.kernel.persons import Gathered

BITS = 24
"""What a number that is added up ranges over is at most so many bits of steps."""
EXACT = 2**53
"""Sums are whole numbers of at most this size, which doubles hold."""


@dataclass(frozen=True, slots=True)
class Gathering:
    """What the values of a person's records come to, of those of which the conditions hold; labels are numbers here.

    `frame`: of a column that is null where they do not; where no value is looked at it is true where they do.
    `query`: of a column, and when they hold. `nothing`: what a person has without records; missing if there is none.
    """

    frame: Callable[[pl.Expr, Derived | None], pl.Expr]
    query: Callable[[str, str, Derived | None], str]
    nothing: float | str | None = None

    def or_nothing(self, cell: str) -> str:
        """A cell of a query that says something of a person without records too."""
        nothing = warehouse.text_of(self.nothing) if isinstance(self.nothing, str) else self.nothing
        return cell if nothing is None else f"coalesce({cell}, {nothing})"


def _only(value: pl.Expr, _: Derived | None) -> pl.Expr:
    import polars as pl

    return pl.when(value.min() == value.max()).then(value.min())


def _sum(value: pl.Expr, of: Derived | None) -> pl.Expr:
    import polars as pl

    def inside(sums: pl.Expr) -> pl.Expr:
        return sums.clip(-EXACT, EXACT).cast(pl.Float64)

    low, high, step = _steps(of)
    if step is None:
        return inside(value.cast(pl.Int64).cast(pl.Int128).sum())
    steps = ((value.clip(low, high) - low) * (1 / step) + 0.5).floor().cast(pl.Int64).sum()
    return value.count().cast(pl.Float64) * low + inside(steps) * step


def _sum_in_query(x: str, held: str, of: Derived | None) -> str:
    def inside(summand: str) -> str:
        total = f"sum({summand}) FILTER ({held})"
        return f"CAST(least(greatest(coalesce({total}, 0), {-EXACT}), {EXACT}) AS DOUBLE)"

    low, high, step = _steps(of)
    if step is None:
        return inside(f"CAST({x} AS BIGINT)")
    least, near = warehouse.real_of(low), warehouse.clipped(x, (low, high))
    steps = f"CAST(floor(({near} - {least}) * {warehouse.real_of(1 / step)} + 0.5e0) AS BIGINT)"
    many = f"CAST(count({x}) FILTER ({held}) AS DOUBLE) * {least}"
    return f"{many} + {inside(steps)} * {warehouse.real_of(step)}"


def _steps(value: Derived | None) -> tuple[float, float, float | None]:
    """The ends of what is added up, and the steps that it is added up in; none where it is whole numbers."""
    assert value is not None
    low, high = value.between() or (0, 0)
    if of_whole_numbers(value) and max(-low, high) < EXACT // 2:
        return float(low), float(high), None
    _, exponent = frexp(float(high - low))
    return float(low), float(high), 2.0 ** max(exponent - BITS, -1000)


def parts_of(column: Gathered) -> tuple[Derived, ...]:
    """What a record is looked at for: the conditions, and its value where one is."""
    return column.when if column.value is None else (*column.when, column.value)


GATHERING: Mapping[str, Gathering] = {
    "count": Gathering(lambda held, _: held.sum(), lambda _, held, __: f"count(*) FILTER ({held})", 0),
    "any": Gathering(
        lambda held, _: held.any().replace_strict({True: YES, False: NO}),
        lambda _, held, __: f"CASE WHEN bool_or({held}) THEN '{YES}' ELSE '{NO}' END",
        NO,
    ),
    "sum": Gathering(_sum, _sum_in_query, 0.0),
    "least": Gathering(lambda value, _: value.min(), lambda x, held, _: f"min({x}) FILTER ({held})"),
    "greatest": Gathering(lambda value, _: value.max(), lambda x, held, _: f"max({x}) FILTER ({held})"),
    "only": Gathering(
        _only,
        lambda x, held, _: (
            f"CASE WHEN min({x}) FILTER ({held}) = max({x}) FILTER ({held}) THEN min({x}) FILTER ({held}) END"
        ),
    ),
}
"""By the kernel's name of the way (`privspec.kernel.persons`)."""
