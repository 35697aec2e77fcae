"""Tables, maps and the chances of elections as SVG, drawn by hand, each with a table of its numbers.

A cell for each probability, the stronger its colour, the likelier. Cells of one shade are one path, so that a table of
100 x 100 stays small. Colours are CSS variables with the printed colour as their fallback, as in `drawing`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from xml.sax.saxutils import escape

import numpy as np

from privspec.explain import drawing
from privspec.explain.document import Plot, Table
from privspec.explain.quantities import Rounding, rounded
from privspec.explain.table import Array, Indices, Label, ProbabilityTable, row_facts, spoken, spread_out
from privspec.explain.voting_rules import MOST, Chance, Dictator, Example, Rule, Vote
from privspec.model.reports import listing

MOST_NUMBERS = 12
"""Rows and columns up to which the numbers stand in the cells."""
MOST_CELLS = 100
"""Rows and columns that are drawn; larger tables are drawn as means of blocks."""
SHADES = 24
WIDTH = 374.0  # as wide as the other drawings of a page, so that letters are of one size
HIGHEST = 460.0
LEAST, LARGEST = 14.0, 40.0
"""The least height and the largest size of a cell, where there is room."""
APART = 10.5
"""How far apart labels stand."""
_LETTER = 5.4
_LONGEST = 14


@dataclass(frozen=True, eq=False, slots=True)
class PlaneGrid:
    """Points as cells of a grid: distinct coordinates, and for each point its place among them."""

    x: Array
    y: Array
    column: Indices
    row: Indices


@dataclass(frozen=True, slots=True)
class _Cell:
    """The size of a cell."""

    wide: float
    high: float


def _colour(name: str, printed: str) -> str:
    return f"var({name}, {printed})"


_INK, _PAGE = _colour("--ink", drawing.INK), _colour("--page", drawing.PAGE)
_MUTED, _LINE = _colour("--muted", drawing.MUTED), _colour("--grid", drawing.GRID)
_FILL, _MARK = _colour("--accent", drawing.ACCENT), _colour("--second", drawing.SECOND)


def draw_table(table: ProbabilityTable) -> str:
    """The whole table with its labels and its scale."""
    shares = _blocks(table.shares)
    rows, columns = shares.shape
    row_names = _few(table.rows, rows, HIGHEST / rows)
    longest = max((len(name) for _, name in row_names), default=0)
    left = 22.0 + _LETTER * longest
    wide = min(LARGEST, (WIDTH - left - 4) / columns)
    high = min(max(wide, LEAST), LARGEST, HIGHEST / rows)
    cell = _Cell(wide, high)
    row_names, column_names = _few(table.rows, rows, high), _few(table.columns, columns, wide)
    widest = _LETTER * max(len(name) for _, name in column_names)
    upright = widest + 4 <= wide * _step(column_names, columns)
    top = 20.0 + (10.0 if upright else widest + 4)
    numbers = max(table.shares.shape) <= MOST_NUMBERS and wide >= 18 and high >= 12
    height = top + high * rows + 30
    parts = [
        _text(left, 10, f"{listing(table.releases)} →", anchor="start", colour=_MUTED),
        _text(8, top + high * rows / 2, f"← {listing(table.of)}", turned=-90, colour=_MUTED),
        *(_text(left - 5, top + high * (i + 0.5) + 3, name, anchor="end") for i, name in row_names),
        *_column_labels(column_names, left, top, wide, upright=upright),
        *_cells(shares, left, top, cell),
        *(_numbers(shares, left, top, cell) if numbers else ()),
        _frame(left, top, wide * columns, high * rows),
        *_legend(float(shares.max()), left, top + high * rows + 14),
    ]
    return _svg(parts, WIDTH, height)


def _column_labels(names: list[tuple[int, str]], left: float, top: float, size: float, *, upright: bool) -> list[str]:
    if upright:
        return [_text(left + size * (i + 0.5), top - 4, name) for i, name in names]
    return [_text(left + size * (i + 0.5) + 3, top - 4, name, anchor="start", turned=-90) for i, name in names]


def _step(names: list[tuple[int, str]], columns: int) -> int:
    """How many columns share a label."""
    return columns if len(names) < 2 else names[1][0] - names[0][0]


def _few(labels: Sequence[Label], drawn: int, size: float) -> list[tuple[int, str]]:
    """The numbers of the rows (as drawn, `size` apart) that get a label, and the labels; far enough to be read."""
    block = -(-len(labels) // drawn)
    step = max(1, -(-int(10 * APART) // max(1, int(10 * size))))
    return [(i, _short(spoken(labels[min(i * block, len(labels) - 1)]))) for i in range(0, drawn, step)]


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _blocks(shares: Array) -> Array:
    """The table itself, or means of blocks where it is too large to draw."""
    for axis in (0, 1):
        block = -(-shares.shape[axis] // MOST_CELLS)
        if block > 1:
            starts = np.arange(0, shares.shape[axis], block)
            sizes = np.diff(np.append(starts, shares.shape[axis]))
            shape = (-1, 1) if axis == 0 else (1, -1)
            shares = np.add.reduceat(shares, starts, axis=axis) / sizes.reshape(shape)
    return shares


def _frame(left: float, top: float, wide: float, high: float) -> str:
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{high:.1f}" fill="none" '
        f'stroke="{_LINE}" stroke-width="0.6"/>'
    )


def _cells(shares: Array, left: float, top: float, cell: _Cell, largest: float | None = None) -> list[str]:
    """Cells of one shade together; row 0 on top."""
    most = largest if largest is not None else float(shares.max())
    shade_of = np.minimum(np.ceil(SHADES * shares / most), SHADES) if most > 0 else np.zeros(shares.shape)
    shape = f"h{cell.wide:.2f}v{cell.high:.2f}h-{cell.wide:.2f}z"
    found = []
    for shade in range(1, SHADES + 1):
        places = np.argwhere(shade_of == shade)
        if len(places):
            path = "".join(f"M{left + cell.wide * c:.2f} {top + cell.high * r:.2f}{shape}" for r, c in places.tolist())
            found.append(f'<path d="{path}" fill="{_FILL}" fill-opacity="{shade / SHADES:.3f}"/>')
    return found


def _numbers(shares: Array, left: float, top: float, cell: _Cell) -> list[str]:
    most = float(shares.max())
    found = []
    for (r, c), share in np.ndenumerate(shares):
        colour = _PAGE if share > 0.7 * most else _INK
        x, y = left + cell.wide * (c + 0.5), top + cell.high * (r + 0.5) + 2.6
        found.append(_text(x, y, _inside(float(share)), size=7, colour=colour))
    return found


def _inside(share: float) -> str:
    """A probability in a cell: two decimals, or a trace of one."""
    if share == 0:
        return "0"
    text = f"{share:.2f}"
    return {"0.00": "·", "1.00": "1"}.get(text, text.removeprefix("0"))


def _legend(most: float, left: float, top: float) -> list[str]:
    """The scale: from 0 to the largest probability."""
    width = 60.0
    bars = [
        f'<rect x="{left + 12 + width * i / SHADES:.2f}" y="{top:.1f}" width="{width / SHADES:.2f}" height="7" '
        f'fill="{_FILL}" fill-opacity="{(i + 1) / SHADES:.3f}"/>'
        for i in range(SHADES)
    ]
    return [
        _text(left + 5, top + 7, "0", colour=_MUTED),
        *bars,
        _text(left + width + 16, top + 7, rounded(most).text, anchor="start", colour=_MUTED),
    ]


def draw_maps(table: ProbabilityTable, chosen: list[int], grid: PlaneGrid) -> str:
    """A map for each of the rows chosen, two side by side, all to one scale."""
    at = table.row_points
    columns, rows = len(grid.x), len(grid.y)
    gap, head = 14.0, 16.0
    size = min(24.0, ((WIDTH - gap) / 2 - 4) / columns)
    wide, high = size * columns, size * rows
    largest = float(table.shares[chosen].max())
    parts = []
    for number, row in enumerate(chosen):
        left = 2 + (number % 2) * (wide + gap)
        top = head + (number // 2) * (high + head + 6)
        picture = np.zeros((rows, columns))
        np.add.at(picture, (rows - 1 - grid.row, grid.column), table.shares[row])
        parts += [
            _text(left, top - 5, f"{table.of[0]} = {spoken(table.rows[row])}", anchor="start"),
            *_cells(picture, left, top, _Cell(size, size), largest),
            _frame(left, top, wide, high),
        ]
        if at is not None:
            x = np.interp(at[row, 0], grid.x, np.arange(columns))
            y = np.interp(at[row, 1], grid.y, np.arange(rows))
            parts.append(
                f'<circle cx="{left + size * (x + 0.5):.2f}" cy="{top + size * (rows - 0.5 - y):.2f}" '
                f'r="{max(2.5, 0.36 * size):.2f}" fill="none" stroke="{_MARK}" stroke-width="1.6"/>'
            )
    lines = -(-len(chosen) // 2)
    bottom = head + lines * (high + head + 6) - 10
    parts += _legend(largest, 2, bottom)
    return _svg(parts, WIDTH, bottom + 14)


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "middle",
    turned: int = 0,
    size: float = 9,
    colour: str = _INK,
) -> str:
    turn = f' transform="rotate({turned} {x:.1f} {y:.1f})"' if turned else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" fill="{colour}"{turn}>'
        f"{escape(text)}</text>"
    )


def _svg(parts: Sequence[str], width: float, height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.1f} {height:.1f}" aria-hidden="true" '
        f'focusable="false" font-family="system-ui, sans-serif">{"".join(parts)}</svg>'
    )


MOST_MAPS = 4


def table_plots(table: ProbabilityTable) -> tuple[Plot, ...]:
    """The heat map of a table, one more of each output where several are drawn together, and maps of a few rows."""
    if not table.rows or not table.columns:
        return ()
    single = [table.seen([name]) for name in table.releases] if len(table.releases) > 1 else []
    drawn = [*single[:MOST_MAPS], table]
    found = [heat_map(part, "table" if number == 0 else f"table{number + 1}") for number, part in enumerate(drawn)]
    maps = plane_maps(table)
    return (*found, *((maps,) if maps is not None else ()))


def heat_map(table: ProbabilityTable, name: str = "table") -> Plot:
    """A whole table: a row for each value of the secret, a column for each value drawn."""
    drawn, of = listing(table.releases), listing(table.of)
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


def _caption(table: ProbabilityTable) -> str:
    words = (
        f"Pr({', '.join(table.releases)} | {', '.join(table.of)}): each row adds up to 1, the stronger the colour, "
        "the likelier. The plan holds all entries as exact fractions."
    )
    if max(table.shares.shape) > MOST_CELLS:
        return f"{words} Neighbouring rows and columns are drawn together, as means of blocks."
    return words


def _whole(table: ProbabilityTable) -> Table:
    header = (listing(table.of), *(spoken(c) for c in table.columns))
    rows = tuple(
        (spoken(label), *(rounded(float(p)).text for p in shares))
        for label, shares in zip(table.rows, table.shares, strict=True)
    )
    caption = f"Probabilities of {listing(table.releases)}, numbers of the plot"
    return Table(caption, header, rows, frozenset(range(1, len(header))))


def _summed_up(table: ProbabilityTable) -> Table:
    listed = row_facts(table)
    known = any(item.truth is not None for item in listed)
    header = (listing(table.of), "Likeliest", "With probability", *(("The true value with",) if known else ()))
    rows = tuple(
        (i.row, i.likeliest, i.probability.text, *((i.truth.text if i.truth else "",) if known else ())) for i in listed
    )
    every = "" if len(listed) == len(table.rows) else f", {len(listed)} of {len(table.rows):,} rows"
    names = listing(table.releases)
    caption = f"The likeliest value of {names} for each row{every}"
    return Table(caption, header, rows, frozenset({2, 3} if known else {2}))


def plane_maps(table: ProbabilityTable) -> Plot | None:
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
        alt=f"Maps of where reports fall for the places {listing(places)}, the true place ringed.",
        caption=f"Where reports fall, for {len(chosen)} places; the ring is the true one. All maps have one scale.",
        twin=Table(
            "The places of the maps",
            ("Place", "Likeliest report", "With probability", "Mean report"),
            tuple(_map_row(table, r, to) for r in chosen),
            frozenset({2}),
        ),
    )


def _map_row(table: ProbabilityTable, row: int, to: Array) -> tuple[str, str, str, str]:
    shares = table.shares[row]
    best = int(np.argmax(shares))
    mean = ", ".join(rounded(float(v)).text for v in shares @ to)
    return spoken(table.rows[row]), spoken(table.columns[best]), rounded(float(shares[best])).text, f"({mean})"


def _grid(points: Array) -> PlaneGrid | None:
    x, column = np.unique(points[:, 0], return_inverse=True)
    y, row = np.unique(points[:, 1], return_inverse=True)
    full = len(x) * len(y) <= 2 * len(points) and max(len(x), len(y)) <= MOST_CELLS
    return PlaneGrid(x, y, column.astype(np.intp), row.astype(np.intp)) if full else None


FACTORS = tuple(Fraction(n, d) for n, d in ((1, 8), (1, 4), (1, 2), (1, 1), (2, 1), (4, 1), (8, 1)))
"""Multiples of this plan's dummy votes that are drawn."""
_ROW, _BAR, _HEAD = 24.0, 8.0, 26.0


def laws_plot(found: Sequence[Example], rule: Rule, vote: Vote) -> Plot | None:
    """Bars of the chances at two invented elections, beside those without noise."""
    if not found:
        return None
    rows = tuple(
        (example.title, c.name, c.votes.text, c.chance.text, c.without.text)
        for example in found
        for c in example.chances[:MOST]
    )
    said = "; ".join(
        f"where {e.title}, {e.chances[0].name} wins with probability {e.chances[0].chance} ({e.chances[0].without} in "
        f"{rule.without})"
        for e in found
    )
    left = len(vote.names) - MOST
    cut = f" The first {MOST} of {len(vote.names)} candidates." if left > 0 else ""
    return Plot(
        name="laws",
        draw=lambda: _laws(found, rule.without),
        alt=f"Bars of the chances of the candidates at invented elections: {said}.",
        caption=f"Invented elections, nobody's votes. Full bars: this plan. Thin bars: {rule.without}.{cut}",
        twin=Table(
            f"Chances at invented elections, this plan and {rule.without}",
            ("Invented election", "Candidate", "Votes", "This plan", "Without noise"),
            rows,
            numeric=frozenset({2, 3, 4}),
        ),
    )


def _laws(found: Sequence[Example], without: str) -> str:
    names = [c.name for e in found for c in e.chances[:MOST]]
    left = 14.0 + 5.4 * min(14, max(len(name) for name in names))
    wide = WIDTH - left - 44
    parts: list[str] = []
    top = 0.0
    for example in found:
        parts.append(_text(2, top + 12, f"{example.voters} voters: {example.title}", anchor="start"))
        top += _HEAD - 6
        for chance in example.chances[:MOST]:
            parts += _pair(chance, left, top, wide)
            top += _ROW
        top += 8
    legend = [
        _bar(2, top + 2, 14, _BAR, _FILL),
        _text(20, top + 9, "this plan", anchor="start", colour=_MUTED),
        _bar(80, top + 4, 14, 4, _MARK),
        _text(98, top + 9, without, anchor="start", colour=_MUTED),
    ]
    return _svg([*parts, *legend], WIDTH, top + 16)


def _pair(chance: Chance, left: float, top: float, wide: float) -> list[str]:
    high, bare = wide * chance.chance.value, wide * chance.without.value
    return [
        _text(left - 6, top + 11, _short(chance.name), anchor="end"),
        _bar(left, top + 2, high, _BAR, _FILL),
        _bar(left, top + 2 + _BAR, bare, 4, _MARK),
        _text(left + max(high, bare) + 4, top + 12, chance.chance.text, anchor="start"),
    ]


def _bar(x: float, y: float, wide: float, high: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(wide, 0.0):.2f}" height="{high:.1f}" fill="{colour}"/>'


def dummies_plot(rule: Rule, vote: Vote) -> Plot | None:
    """Epsilon against the number of dummy votes, with this plan's."""
    if not isinstance(rule, Dictator) or not rule.amount:
        return None
    highest = vote.points.highest
    kappas = [rule.amount * f for f in FACTORS]
    spent = [math.log1p(float(highest / k)) for k in kappas]
    line = drawing.Line("ε", [float(k) for k in kappas], spent)
    own = spent[FACTORS.index(Fraction(1))]
    rows = tuple(
        (
            rounded(k, 4).text,
            rounded(e * (1 + 1e-12), 4, Rounding.UP).text,
            rounded(k * vote.size, 4).text,
            "this plan" if k == rule.amount else "",
        )
        for k, e in zip(kappas, spent, strict=True)
    )
    return Plot(
        name="dummies",
        draw=lambda: drawing.frontier_chart(
            line,
            (float(rule.amount), own, "this plan"),
            "dummy votes for each candidate",
            "ε of one vote",
            "dummies",
        ),
        alt=f"ε against dummy votes: from {rounded(spent[0])} at {rounded(kappas[0])} down to {rounded(spent[-1])} at "
        f"{rounded(kappas[-1])} for each candidate; this plan has {rounded(rule.amount)}.",
        caption="The diamond marks this plan. Every further dummy vote protects more and follows the votes less.",
        twin=Table(
            "ε by the number of dummy votes, log(1 + most points of a ballot / dummy votes)",
            ("Dummy votes for each candidate", "ε", "Dummy votes in all", "Remark"),
            rows,
            numeric=frozenset({0, 1, 2}),
        ),
    )
