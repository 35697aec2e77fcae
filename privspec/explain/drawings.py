"""Tables, maps and the chances of elections as SVG, drawn by hand, each with a table of its numbers.

A cell for each probability, the stronger its colour, the likelier. Cells of one shade are one path, so that a table of
100 x 100 stays small. Colours are CSS variables with the printed colour as their fallback, as in `drawing`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from privspec.explain import drawing
from privspec.explain.document import Plot, Table
from privspec.explain.document import table as make_table
from privspec.explain.drawing import (
    ACCENT,
    GRID,
    INK,
    LETTER,
    MUTED,
    PAGE,
    SECOND,
    WIDTH,
    rect,
    say,
    svg,
    tag,
    themed,
    upwards,
)
from privspec.explain.quantities import UP, rounded
from privspec.explain.table import Array, Indices, Label, ProbabilityTable, row_facts, spoken
from privspec.explain.voting_rules import MOST, Chance, Dictator, Example, Rule, Vote
from privspec.model.reports import listing

MOST_NUMBERS = 12
"""Rows and columns up to which the numbers stand in the cells."""
MOST_CELLS = 100
"""Rows and columns that are drawn; larger tables are drawn as means of blocks."""
SHADES = 24
HIGHEST = 460.0
LEAST, LARGEST = 14.0, 40.0
"""The least height and the largest size of a cell, where there is room."""
APART = 10.5
"""How far apart labels stand."""
_LONGEST = 14
_FILL, _MARK = themed(ACCENT), themed(SECOND)

PlaneGrid: TypeAlias = tuple[Array, Array, Indices, Indices]
"""Points as cells of a grid: distinct coordinates, and for each point its column and row among them."""


def _frame(left: float, top: float, wide: float, high: float) -> str:
    return rect(left, top, wide, high, fill="none", stroke=themed(GRID), stroke_width=0.6)


def draw_table(table: ProbabilityTable) -> str:
    """The whole table with its labels and its scale."""
    shares = _blocks(table.shares)
    rows, columns = shares.shape
    longest = max((len(name) for _, name in _few(table.rows, rows, HIGHEST / rows)), default=0)
    left = 22.0 + LETTER * longest
    wide = min(LARGEST, (WIDTH - left - 4) / columns)
    high = min(max(wide, LEAST), LARGEST, HIGHEST / rows)
    row_names, column_names = _few(table.rows, rows, high), _few(table.columns, columns, wide)
    widest = LETTER * max(len(name) for _, name in column_names)
    # several columns may share a label
    upright = widest + 4 <= wide * (columns if len(column_names) < 2 else column_names[1][0])
    top = 20.0 + (10.0 if upright else widest + 4)
    across = ((left + wide * (i + 0.5), name) for i, name in column_names)
    most, numbers = float(shares.max()), []
    if max(table.shares.shape) <= MOST_NUMBERS and wide >= 18 and high >= 12:
        for (r, c), share in np.ndenumerate(shares):
            x, y = left + wide * (c + 0.5), top + high * (r + 0.5) + 2.6
            numbers.append(say(x, y, _inside(float(share)), colour=PAGE if share > 0.7 * most else INK, size=7))
    parts = [
        say(left, 10, f"{listing(table.releases)} →", "start", MUTED),
        upwards(8, top + high * rows / 2, f"← {listing(table.of)}", colour=MUTED),
        *(say(left - 5, top + high * (i + 0.5) + 3, name, "end") for i, name in row_names),
        *(say(x, top - 4, n) if upright else upwards(x + 3, top - 4, n, "start") for x, n in across),
        *_cells(shares, left, top, wide, high),
        *numbers,
        _frame(left, top, wide * columns, high * rows),
        *_legend(most, left, top + high * rows + 14),
    ]
    return svg(parts, top + high * rows + 30)


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
            shares = np.add.reduceat(shares, starts, axis=axis) / np.expand_dims(sizes, 1 - axis)
    return shares


def _cells(shares: Array, left: float, top: float, wide: float, high: float, largest: float | None = None) -> list[str]:
    """Cells of one shade together; row 0 on top."""
    most = largest if largest is not None else float(shares.max())
    shade_of = np.minimum(np.ceil(SHADES * shares / most), SHADES) if most > 0 else np.zeros(shares.shape)
    shape = f"h{wide:.2f}v{high:.2f}h-{wide:.2f}z"
    found = []
    for shade in range(1, SHADES + 1):
        places = np.argwhere(shade_of == shade)
        if len(places):
            path = "".join(f"M{left + wide * c:.2f} {top + high * r:.2f}{shape}" for r, c in places.tolist())
            found.append(tag("path", d=path, fill=_FILL, fill_opacity=f"{shade / SHADES:.3f}"))
    return found


def _inside(share: float) -> str:
    """A probability in a cell: two decimals, or a trace of one."""
    if share == 0:
        return "0"
    return {"0.00": "·", "1.00": "1"}.get(f"{share:.2f}", f"{share:.2f}".removeprefix("0"))


def _legend(most: float, left: float, top: float) -> list[str]:
    """The scale: from 0 to the largest probability."""
    width = 60.0
    bars = (
        rect(left + 12 + width * i / SHADES, top, width / SHADES, 7, fill=_FILL, fill_opacity=f"{(i + 1) / SHADES:.3f}")
        for i in range(SHADES)
    )
    most_words = say(left + width + 16, top + 7, rounded(most).text, "start", MUTED)
    return [say(left + 5, top + 7, "0", colour=MUTED), *bars, most_words]


def draw_maps(table: ProbabilityTable, chosen: list[int], grid: PlaneGrid) -> str:
    """A map for each of the rows chosen, two side by side, all to one scale."""
    at, (xs, ys, column, line) = table.row_points, grid
    columns, rows = len(xs), len(ys)
    gap, head = 14.0, 16.0
    size = min(24.0, ((WIDTH - gap) / 2 - 4) / columns)
    wide, high = size * columns, size * rows
    largest = float(table.shares[chosen].max())
    parts = []
    for number_, row in enumerate(chosen):
        left = 2 + (number_ % 2) * (wide + gap)
        top = head + (number_ // 2) * (high + head + 6)
        picture = np.zeros((rows, columns))
        np.add.at(picture, (rows - 1 - line, column), table.shares[row])
        parts += [
            say(left, top - 5, f"{table.of[0]} = {spoken(table.rows[row])}", "start"),
            *_cells(picture, left, top, size, size, largest),
            _frame(left, top, wide, high),
        ]
        if at is not None:
            x, y = (float(np.interp(at[row, k], grid[k], np.arange(len(grid[k])))) for k in (0, 1))
            place = {"cx": left + size * (x + 0.5), "cy": top + size * (rows - 0.5 - y), "r": max(2.5, 0.36 * size)}
            parts.append(tag("circle", **place, fill="none", stroke=_MARK, stroke_width=1.6))
    bottom = head + -(-len(chosen) // 2) * (high + head + 6) - 10
    return svg([*parts, *_legend(largest, 2, bottom)], bottom + 14)


MOST_MAPS = 4


def table_plots(table: ProbabilityTable) -> tuple[Plot, ...]:
    """The heat map of a table, one more of each output where several are drawn together, and maps of a few rows."""
    if not table.rows or not table.columns:
        return ()
    single = [table.seen([name]) for name in table.releases] if len(table.releases) > 1 else []
    drawn = [*single[:MOST_MAPS], table]
    found = [heat_map(part, f"table{place if place > 1 else ''}") for place, part in enumerate(drawn, start=1)]
    maps = plane_maps(table)
    return (*found, *((maps,) if maps is not None else ()))


def heat_map(table: ProbabilityTable, name: str = "table") -> Plot:
    """A whole table: a row for each value of the secret, a column for each value drawn."""
    drawn, of, (rows, columns) = listing(table.releases), listing(table.of), table.shares.shape
    row, column = np.unravel_index(int(np.argmax(table.shares)), table.shares.shape)
    where = f"{spoken(table.columns[column])} where {of} is {spoken(table.rows[row])}"
    blocks = " Neighbouring rows and columns are drawn together, as means of blocks."
    return Plot(
        name=name,
        draw=lambda: draw_table(table),
        alt=f"Heat map of a table of {rows:,} × {columns:,} probabilities, a row for each value of {of}, "
        f"a column for each value of {drawn}. The largest is {rounded(float(table.shares.max()))}, of {where}.",
        caption=f"Pr({', '.join(table.releases)} | {', '.join(table.of)}): each row adds up to 1, the stronger the "
        "colour, the likelier. The plan holds all entries as exact fractions."
        f"{blocks if max(rows, columns) > MOST_CELLS else ''}",
        twin=_whole(table) if max(rows, columns) <= MOST_NUMBERS else _summed_up(table),
    )


def _whole(table: ProbabilityTable) -> Table:
    header = (listing(table.of), *map(spoken, table.columns))
    labelled = zip(table.rows, table.shares, strict=True)
    rows = ((spoken(label), *(rounded(float(p)) for p in shares)) for label, shares in labelled)
    caption = f"Probabilities of {listing(table.releases)}, numbers of the plot"
    return make_table(caption, header, rows, *range(1, len(header)))


def _summed_up(table: ProbabilityTable) -> Table:
    listed = row_facts(table)
    shown = 4 if any(item.truth is not None for item in listed) else 3
    header = (listing(table.of), "Likeliest", "With probability", "The true value with")
    rows = ((i.row, i.likeliest, i.probability, i.truth)[:shown] for i in listed)
    every = "" if len(listed) == len(table.rows) else f", {len(listed)} of {len(table.rows):,} rows"
    caption = f"The likeliest value of {listing(table.releases)} for each row{every}"
    return make_table(caption, header[:shown], rows, *range(2, shown))


def plane_maps(table: ProbabilityTable) -> Plot | None:
    """Where the reports of a few places fall; None unless both are points in the plane on a grid."""
    at, to = table.row_points, table.column_points
    if at is None or to is None or at.shape[1] != 2 or to.shape[1] != 2 or len(table.of) != 1 or table.counted:
        return None
    (x, column), (y, row) = (np.unique(to[:, k], return_inverse=True) for k in (0, 1))
    if len(x) * len(y) > 2 * len(to) or max(len(x), len(y)) > MOST_CELLS:
        return None
    chosen = spread_out(at, MOST_MAPS)
    rows = []
    for r in chosen:
        best, mean = int(np.argmax(table.shares[r])), (rounded(float(v)).text for v in table.shares[r] @ to)
        likeliest = spoken(table.columns[best]), rounded(float(table.shares[r, best]))
        rows.append((spoken(table.rows[r]), *likeliest, f"({', '.join(mean)})"))
    return Plot(
        name="maps",
        draw=lambda: draw_maps(table, chosen, (x, y, column, row)),
        alt=f"Maps of where reports fall for the places {listing([row[0] for row in rows])}, the true place ringed.",
        caption=f"Where reports fall, for {len(chosen)} places; the ring is the true one. All maps have one scale.",
        twin=make_table("The places of the maps", "Place | Likeliest report | With probability | Mean report", rows, 2),
    )


def spread_out(at: Array, most: int) -> list[int]:
    """A few points (n, d) that show the whole: one in the middle, then always the one farthest from those chosen."""
    chosen = [int(np.argmin(((at - at.mean(axis=0)) ** 2).sum(axis=1)))]
    apart = np.sqrt(((at[:, None, :] - at[None, :, :]) ** 2).sum(axis=2))
    while len(chosen) < min(most, len(at)):
        nearest = apart[:, chosen].min(axis=1)
        if nearest.max() <= 0:
            break
        chosen.append(int(np.argmax(nearest)))
    return chosen


FACTORS = tuple(Fraction(n, d) for n, d in ((1, 8), (1, 4), (1, 2), (1, 1), (2, 1), (4, 1), (8, 1)))
"""Multiples of this plan's dummy votes that are drawn."""
_ROW, _BAR, _HEAD = 24.0, 8.0, 26.0


def laws_plot(found: Sequence[Example], rule: Rule, vote: Vote) -> Plot | None:
    """Bars of the chances at two invented elections, beside those without noise."""
    if not found:
        return None
    rows = ((e.title, c.name, c.votes, c.chance, c.without) for e in found for c in e.chances[:MOST])
    firsts = ((e.title, e.chances[0]) for e in found)
    said = "".join(
        f" Where {title}, {c.name} wins with probability {c.chance} ({c.without} in {rule.without})."
        for title, c in firsts
    )
    cut = f" The first {MOST} of {len(vote.names)} candidates." if len(vote.names) > MOST else ""
    return Plot(
        name="laws",
        draw=lambda: _laws(found, rule.without),
        alt=f"Bars of the chances of the candidates at invented elections.{said}",
        caption=f"Invented elections, nobody's votes. Full bars: this plan. Thin bars: {rule.without}.{cut}",
        twin=make_table(
            f"Chances at invented elections, this plan and {rule.without}",
            "Invented election | Candidate | Votes | This plan | Without noise",
            rows,
            *range(2, 5),
        ),
    )


def _laws(found: Sequence[Example], without: str) -> str:
    left = 14.0 + LETTER * min(14, max(len(c.name) for e in found for c in e.chances[:MOST]))
    wide = WIDTH - left - 44
    parts: list[str] = []
    top = 0.0
    for example in found:
        parts.append(say(2, top + 12, f"{example.voters} voters: {example.title}", "start"))
        top += _HEAD - 6
        for chance in example.chances[:MOST]:
            parts += _pair(chance, left, top, wide)
            top += _ROW
        top += 8
    parts += [
        rect(2, top + 2, 14, _BAR, fill=_FILL),
        say(20, top + 9, "this plan", "start", MUTED),
        rect(80, top + 4, 14, 4, fill=_MARK),
        say(98, top + 9, without, "start", MUTED),
    ]
    return svg(parts, top + 16)


def _pair(chance: Chance, left: float, top: float, wide: float) -> list[str]:
    high, bare = wide * chance.chance.value, wide * chance.without.value
    return [
        say(left - 6, top + 11, _short(chance.name), "end"),
        rect(left, top + 2, high, _BAR, fill=_FILL),
        rect(left, top + 2 + _BAR, bare, 4, fill=_MARK),
        say(left + max(high, bare) + 4, top + 12, chance.chance.text, "start"),
    ]


def dummies_plot(rule: Rule, vote: Vote) -> Plot | None:
    """Epsilon against the number of dummy votes, with this plan's."""
    if not isinstance(rule, Dictator) or not rule.amount:
        return None
    kappas = [rule.amount * f for f in FACTORS]
    spent = [math.log1p(float(vote.points.highest / k)) for k in kappas]
    line = drawing.Line("ε", [float(k) for k in kappas], spent)
    chosen = float(rule.amount), spent[FACTORS.index(Fraction(1))], "this plan"
    rows = (
        (rounded(k, 4), rounded(e * (1 + 1e-12), 4, UP), rounded(k * vote.size, 4), "this plan" * (k == rule.amount))
        for k, e in zip(kappas, spent, strict=True)
    )
    each = "dummy votes for each candidate"
    return Plot(
        name="dummies",
        draw=lambda: drawing.frontier_chart(line, chosen, each, "ε of one vote"),
        alt=f"ε against dummy votes: from {rounded(spent[0])} at {rounded(kappas[0])} down to {rounded(spent[-1])} at "
        f"{rounded(kappas[-1])} for each candidate; this plan has {rounded(rule.amount)}.",
        caption="The diamond marks this plan. Every further dummy vote protects more and follows the votes less.",
        twin=make_table(
            "ε by the number of dummy votes, log(1 + most points of a ballot / dummy votes)",
            "Dummy votes for each candidate | ε | Dummy votes in all | Remark",
            rows,
            *range(3),
        ),
    )
