"""Tables of probabilities as drawings: a heat map of the whole, and for points in the plane a map of a few rows.

Each has a table of its numbers beside it; what is drawn is in `cells`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privspec.explain.document import Plot
from privspec.explain.document import Table as Grid
from privspec.explain.finite.cells import MOST_CELLS, MOST_NUMBERS, PlaneGrid, draw_maps, draw_table
from privspec.explain.finite.rows import row_facts
from privspec.explain.finite.steps import spread_out
from privspec.explain.finite.table import Array, Table, spoken
from privspec.explain.quantities import rounded
from privspec.explain.words import joined

if TYPE_CHECKING:
    from privspec.explain.finite.facts import TableFact

MOST_MAPS = 4


def plots(fact: TableFact) -> tuple[Plot, ...]:
    """The heat map of a table, one more of each output where several are drawn together, and maps of a few rows."""
    table = fact.table
    if not table.rows or not table.columns:
        return ()
    single = [table.seen([name]) for name in table.releases] if len(table.releases) > 1 else []
    drawn = [*single[:MOST_MAPS], table]
    found = [heat_map(part, "table" if number == 0 else f"table{number + 1}") for number, part in enumerate(drawn)]
    maps = plane_maps(table)
    return (*found, *((maps,) if maps is not None else ()))


def heat_map(table: Table, name: str = "table") -> Plot:
    """A whole table: a row for each value of the secret, a column for each value drawn."""
    drawn, of = joined(table.releases), joined(table.of)
    row, column = np.unravel_index(int(np.argmax(table.shares)), table.shares.shape)
    small = max(table.shares.shape) <= MOST_NUMBERS
    rows, columns = table.shares.shape
    where = f"{spoken(table.columns[column])} where {of} is {spoken(table.rows[row])}"
    return Plot(
        name=name,
        draw=lambda: draw_table(table),
        alt=f"Heat map of a table of {rows:,} × {columns:,} probabilities, a row for each value of {of}, "
        f"a column for each value of {drawn}; the largest is {rounded(float(table.shares.max()))}, of {where}.",
        caption=_caption(table),
        twin=_whole(table) if small else _summed_up(table),
    )


def _caption(table: Table) -> str:
    words = (
        f"Pr({', '.join(table.releases)} | {', '.join(table.of)}): each row adds up to 1, the stronger the colour, "
        "the likelier. The plan holds all entries as exact fractions."
    )
    if max(table.shares.shape) > MOST_CELLS:
        return f"{words} Neighbouring rows and columns are drawn together, as means of blocks."
    return words


def _whole(table: Table) -> Grid:
    header = (joined(table.of), *(spoken(c) for c in table.columns))
    rows = tuple(
        (spoken(label), *(rounded(float(p)).text for p in shares))
        for label, shares in zip(table.rows, table.shares, strict=True)
    )
    caption = f"Probabilities of {joined(table.releases)}, numbers of the plot"
    return Grid(caption, header, rows, frozenset(range(1, len(header))))


def _summed_up(table: Table) -> Grid:
    listed = row_facts(table)
    known = any(item.truth is not None for item in listed)
    header = (joined(table.of), "Likeliest", "With probability", *(("The true value with",) if known else ()))
    rows = tuple(
        (i.row, i.likeliest, i.probability.text, *((i.truth.text if i.truth else "",) if known else ())) for i in listed
    )
    every = "" if len(listed) == len(table.rows) else f", {len(listed)} of {len(table.rows):,} rows"
    names = joined(table.releases)
    caption = f"The likeliest value of {names} for each row{every}"
    return Grid(caption, header, rows, frozenset({2, 3} if known else {2}))


def plane_maps(table: Table) -> Plot | None:
    """Where the reports of a few places fall; None unless both are points in the plane on a grid."""
    at, to = table.row_points, table.column_points
    if at is None or to is None or at.shape[1] != 2 or to.shape[1] != 2 or len(table.of) != 1 or table.counted:
        return None
    grid = _grid(to)
    if grid is None:
        return None
    chosen = spread_out(at, MOST_MAPS)
    places = [spoken(table.rows[r]) for r in chosen]
    return Plot(
        name="maps",
        draw=lambda: draw_maps(table, chosen, grid),
        alt=f"Maps of where reports fall for the places {joined(places)}, the true place ringed.",
        caption=f"Where reports fall, for {len(chosen)} places; the ring is the true one. All maps have one scale.",
        twin=Grid(
            "The places of the maps",
            ("Place", "Likeliest report", "With probability", "Mean report"),
            tuple(_map_row(table, r, to) for r in chosen),
            frozenset({2}),
        ),
    )


def _map_row(table: Table, row: int, to: Array) -> tuple[str, str, str, str]:
    shares = table.shares[row]
    best = int(np.argmax(shares))
    mean = ", ".join(rounded(float(v)).text for v in shares @ to)
    return spoken(table.rows[row]), spoken(table.columns[best]), rounded(float(shares[best])).text, f"({mean})"


def _grid(points: Array) -> PlaneGrid | None:
    x, column = np.unique(points[:, 0], return_inverse=True)
    y, row = np.unique(points[:, 1], return_inverse=True)
    full = len(x) * len(y) <= 2 * len(points) and max(len(x), len(y)) <= MOST_CELLS
    return PlaneGrid(x, y, column.astype(np.intp), row.astype(np.intp)) if full else None
