"""Reads ballots: equal ones are counted before anything else happens to them, so that millions are read at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.execute.ballots.form import NOT_ONE, Form
from privspec.execute.ballots.parsing import Codes, parse
from privspec.execute.ballots.sources import BALLOT, COUNT, PARTY, open_ballots
from privspec.execute.frames import collect, column_names
from privspec.execute.problems import refuse
from privspec.model.values import Symbol

if TYPE_CHECKING:
    import polars as pl

MOST_BALLOTS = 2**53
"""Ballots that are counted, at most."""
_ROW = "row"
_WHOLE = r"^(\d+)\.0+$"
Roll: TypeAlias = "Callable[[pl.Series], pl.Series]"
"""Whether each of these parties, named once each, may take part."""


@dataclass(frozen=True, eq=False, slots=True)
class Ballots:
    """Different ballots and how often each occurs (n,).

    ranked (n, places): numbers of alternatives, best first, NOT_ONE below the last place.
    """

    form: Form
    ranked: Codes
    counts: NDArray[np.int64]

    @property
    def number(self) -> int:
        """How many ballots there are."""
        return int(self.counts.sum())

    def each(self) -> Iterator[tuple[tuple[Symbol, ...], int]]:
        """The alternatives of each different ballot, best first, and how often it occurs."""
        items = self.form.alternatives
        for line, count in zip(self.ranked.tolist(), self.counts.tolist(), strict=True):
            yield tuple(items[place] for place in line if place != NOT_ONE), count


def read_ballots(
    form: Form, source: Any, *, strict: bool = False, only: str | None = None, roll: Roll | None = None
) -> Ballots:
    """The ballots of an input.

    Args: source, see `sources.open_ballots`; strict, refuse what a rule would have to be applied to; only, the one
        party whose ballot is read; roll, says whose ballots count.
    Raises: DataError (PS0802 to PS0805, PS0809, PS0815 to PS0819); a row is named by its number, never by its ballot.
    """
    import polars as pl

    frame, find = open_ballots(form, source)
    names = column_names(form.name, frame)
    frame = frame.with_row_index(_ROW)
    if roll is not None:
        if PARTY not in names:
            _refuse_unnamed(form)
        # one voter has one name, however a table of numbers writes it
        frame = frame.with_columns(pl.col(PARTY).str.replace(_WHOLE, "${1}"))
    if PARTY in names:
        # rows without a party belong to nobody
        frame = frame.filter(pl.col(PARTY) == only if only is not None else pl.col(PARTY) != "")
        _check_parties(form, frame, counted=COUNT in names)
    if COUNT in names:
        # text, whole numbers and doubles alike; what is no number stays null
        frame = frame.with_columns(pl.col(COUNT).cast(pl.Float64, strict=False).alias(COUNT))
        _check_counts(form, frame)
    if roll is not None:
        frame, names = _counted(form, frame, roll, counts=COUNT in names), [*names, COUNT]
    many = pl.col(COUNT).cast(pl.Int64).sum() if COUNT in names else pl.len().cast(pl.Int64)
    grouped = collect(form.name, frame.group_by(BALLOT).agg(many.alias(COUNT), pl.col(_ROW).min()))
    counts = grouped[COUNT].to_numpy().astype(np.int64)
    found = parse(form, grouped[BALLOT], find)
    # what is refused does not depend on whose ballots count
    seen = (counts > 0) | (roll is not None)
    fits = found.exact if strict else found.valid
    bad = seen & ~fits
    if bad.any() and (strict or not form.drops):
        _refuse_ballot(form, _first_row(grouped, bad), strict=strict)
    if bad.any() and not (seen & fits).any():
        _refuse_all(form)
    kept = (counts > 0) & fits
    return Ballots(form, found.ranked[kept], counts[kept])


def _first_row(grouped: pl.DataFrame, bad: NDArray[np.bool_]) -> int:
    return int(grouped[_ROW].to_numpy()[bad].min()) + 1


def _counted(form: Form, frame: pl.LazyFrame, roll: Roll, *, counts: bool) -> pl.LazyFrame:
    """With a count of 0 for the ballots of those who may not take part."""
    import polars as pl

    rows = collect(form.name, frame)
    count = pl.col(COUNT) if counts else pl.lit(1.0)
    return rows.with_columns(pl.when(roll(rows[PARTY])).then(count).otherwise(0.0).alias(COUNT)).lazy()


def _refuse_unnamed(form: Form) -> NoReturn:
    party = form.party or "voter"
    refuse(
        "PS0804",
        f"the data for {form.name} have no column {party}: who takes part in a round is counted",
        "nothing was drawn and nothing was spent",
        help=f"the first line of the file names its columns: {party},choice",
    )


def _check_counts(form: Form, frame: pl.LazyFrame) -> None:
    import polars as pl

    count = pl.col(COUNT)
    wrong = ~((count >= 0) & (count <= MOST_BALLOTS) & (count == count.floor())).fill_null(value=False)
    looked = collect(form.name, frame.select(pl.col(_ROW).filter(wrong).min().alias(_ROW), count.sum().alias(COUNT)))
    row, total = looked.row(0)
    if row is not None:
        refuse(
            "PS0816",
            f"the count of row {row + 1} of {form.name} is no whole number from 0",
            "nothing was drawn and nothing was spent",
            help="the column count says how many ballots of this kind there are",
        )
    if total > MOST_BALLOTS:
        refuse("PS0816", f"the counts of {form.name} add up to more than 2^53 ballots")


def _check_parties(form: Form, frame: pl.LazyFrame, *, counted: bool) -> None:
    """Nobody has two ballots: privacy is about one of each."""
    import polars as pl

    several = pl.col(COUNT).cast(pl.Float64, strict=False) > 1 if counted else pl.lit(value=False)
    looked = collect(
        form.name, frame.select(pl.col(PARTY).n_unique(), pl.len().alias(_ROW), several.any().alias(COUNT))
    )
    different, rows, found = looked.row(0)
    if different == rows and not found:
        return
    repeated = (pl.col(PARTY).is_duplicated() & ~pl.col(PARTY).is_first_distinct()) | several
    row = collect(form.name, frame.select(pl.col(_ROW).filter(repeated).min())).item()
    refuse(
        "PS0817",
        f"row {row + 1} of {form.name} is a further ballot of a {form.party} who has one already",
        "nothing was drawn and nothing was spent",
        help=f"one row for each {form.party}; the column count is for ballots of which nobody knows whose they are",
    )


def refuse_number(form: Form, wanted: int, found: int) -> NoReturn:
    """Both numbers are public."""
    refuse(
        "PS0811",
        f"the plan is for {wanted} ballots, the data have {found}",
        f"the number of members of {form.party or 'voter'} is public; nothing was drawn and nothing was spent",
        help="solve the spec for this number; with `adding or removing one ...` in place of `replacing` it is secret",
    )


def _refuse_ballot(form: Form, row: int, *, strict: bool) -> NoReturn:
    """Which row, never what stands in it."""
    if strict:
        refuse(
            "PS0809",
            f"row {row} of {form.name} is not {form.what} as it stands, and --strict was asked for",
            "nothing was drawn and nothing was spent",
        )
    partial = form.least > 1
    refuse(
        "PS0815",
        f"row {row} of {form.name} is not {form.what}",
        "nothing was drawn and nothing was spent",
        help="for rankings of some alternatives write `in partial_ranking(A)`"
        if partial
        else "correct the row, or leave it out if its voter does not take part",
    )


def _refuse_all(form: Form) -> NoReturn:
    refuse(
        "PS0819",
        f"no row of {form.name} is {form.what}",
        "nothing was drawn and nothing was spent",
        help="write the alternatives as the spec does, or as numbers in its order",
    )
