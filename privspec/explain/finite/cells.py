"""Tables and maps as SVG, drawn by hand: a cell for each probability, the stronger its colour, the likelier.

Cells of one shade are one path, so that a table of 100 x 100 stays small. Colours are CSS variables with the printed
colour as their fallback, as in `drawing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np

from privspec.explain import drawing
from privspec.explain.finite.table import Array, Indices, Label, Table, spoken
from privspec.explain.quantities import rounded
from privspec.explain.words import joined

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


def draw_table(table: Table) -> str:
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
        _text(left, 10, f"{joined(table.releases)} →", anchor="start", colour=_MUTED),
        _text(8, top + high * rows / 2, f"← {joined(table.of)}", turned=-90, colour=_MUTED),
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


def draw_maps(table: Table, chosen: list[int], grid: PlaneGrid) -> str:
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
