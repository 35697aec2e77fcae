"""Pictures as SVG text, written by hand: deterministic, with direct labels, readable in light and dark.

A picture is made of marks (lines, curves, bars, diamonds, words) along axes; a chart takes figures as data and says
nothing of what they are. Six colours are used; in an SVG that stands inside a page each is a CSS variable with the
printed colour as its fallback, so that pages can change it in the dark. Blue and vermilion (Okabe & Ito) stay apart for
all common kinds of colour blindness. Lengths are points; the font is the reader's, so that widths of texts are
estimates.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass
from privspec.explain.quantities import rounded

PAGE, INK, MUTED, GRID, ACCENT, SECOND = "#ffffff", "#1b1f24", "#5b6570", "#d5dae0", "#0072b2", "#d55e00"
_VARIABLES = {PAGE: "--page", INK: "--ink", MUTED: "--muted", GRID: "--grid", ACCENT: "--accent", SECOND: "--second"}

Array: TypeAlias = NDArray[np.float64]


def themed(colour: str) -> str:
    """A colour that pages can change in the dark."""
    return f"var({_VARIABLES[colour]}, {colour})"


WIDTH = 374.0
"""Of every drawing: small enough for labels to stay readable on a telephone."""
LETTER = 5.4
"""The width of a letter of the size that is used, at most on average."""


def cut(words: str, most: int) -> str:
    """Words in at most so many letters."""
    return words if len(words) <= most else f"{words[: most - 1].rstrip()}…"


# --- marks ----------------------------------------------------------------------------------------


def tag(name: str, *inside: str, **attributes: object) -> str:
    """One element with others inside; `stroke_width` is the attribute stroke-width, None leaves one out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{number(value) if isinstance(value, float) else escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{''.join(inside)}</{name}>" if inside else f"<{name}{given}/>"


def number(value: float) -> str:
    """To two decimals, without zeros at the end."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def way(*steps: str | float) -> str:
    """A path: commands and numbers, one after the other."""
    return " ".join(step if isinstance(step, str) else number(step) for step in steps)


def text(x: float, y: float, words: str, **attributes: object) -> str:
    """A line of text."""
    return tag("text", escape(words, quote=False), x=float(x), y=float(y), **attributes)


def say(x: float, y: float, words: str, anchor: str = "middle", colour: str = INK, **more: object) -> str:
    """A line of text in the size and the colours of drawings."""
    return text(x, y, words, font_size=more.pop("size", 9), text_anchor=anchor, fill=themed(colour), **more)


def upwards(x: float, y: float, words: str, anchor: str = "middle", colour: str = INK) -> str:
    """The same, read from below."""
    return say(x, y, words, anchor, colour, transform=f"rotate(-90 {number(x)} {number(y)})")


def rect(x: float, y: float, wide: float, high: float, **paint: object) -> str:
    """A rectangle; one that is less than nothing wide has no width."""
    return tag("rect", x=float(x), y=float(y), width=max(float(wide), 0.0), height=float(high), **paint)


def line(x: float, y: float, to_x: float, to_y: float, colour: str, wide: float, dashes: str | None = None) -> str:
    """A straight line."""
    ends = {"x1": float(x), "y1": float(y), "x2": float(to_x), "y2": float(to_y)}
    return tag("line", **ends, stroke=themed(colour), stroke_width=wide, stroke_dasharray=dashes)


def diamond(x: float, y: float, size: float, colour: str) -> str:
    """The mark of what was chosen."""
    path = way("M", x, y - size, "L", x + size, y, "L", x, y + size, "L", x - size, y, "Z")
    return tag("path", d=path, fill=themed(colour))


def circle(x: float, y: float, radius: float, **paint: object) -> str:
    """A dot or a ring."""
    return tag("circle", cx=float(x), cy=float(y), r=float(radius), **paint)


def svg(parts: Iterable[str], height: float, *, alone: bool = False) -> str:
    """A whole drawing; `alone` for a file of its own, on white paper."""
    paper = [rect(0, 0, WIDTH, height, fill=PAGE)] if alone else []
    found = tag(
        "svg",
        *paper,
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(WIDTH)} {number(height)}",
        aria_hidden=None if alone else "true",
        focusable=None if alone else "false",
        font_family="system-ui, sans-serif",
    )
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    return head + re.sub(r"var\(--\w+, (#\w+)\)", r"\1", found) + "\n" if alone else found


_HALO: Any = {"stroke": themed(PAGE), "stroke_width": 3.0, "paint_order": "stroke"}
"""The page behind a label that may lie on a line."""


# --- axes -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high` along a line from `start` to `stop`; by their logarithms, or as shares, if asked for.

    The numbers of shares are per cents.
    """

    low: float
    high: float
    start: float
    stop: float
    logarithmic: bool = False
    shares: bool = False

    def __call__(self, value: float) -> float:
        """Where a value stands."""
        low, high, value = (
            map(math.log, (self.low, self.high, value)) if self.logarithmic else (self.low, self.high, value)
        )
        return self.start + (self.stop - self.start) * (value - low) / (high - low)

    def ticks(self) -> list[float]:
        """A few round values, as many as there is room for."""
        room = abs(self.stop - self.start)
        if not self.logarithmic:
            return _round(self.low, self.high, 4 if self.shares else max(2, int(room / 30)))
        subs = (1, 2, 5) if self.high / self.low < 300 else (1,)
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        found = [s * 10.0**k for k in decades for s in subs if self.low <= s * 10.0**k <= self.high]
        if len(found) < 2:
            return _round(self.low, self.high, 3)
        each = 20 if self.start > self.stop else max(len(self.tick(value)) for value in found) * LETTER + 10
        return found[:: max(1, math.ceil(len(found) * each / room))]

    def tick(self, value: float) -> str:
        """The number of a tick, written as in the texts."""
        return f"{100 * value:g} %" if self.shares and value else rounded(value, 6).text

    def margin(self) -> float:
        """Room to the left for the numbers of an upright axis and its title."""
        return 20 + LETTER * max((len(self.tick(value)) for value in self.ticks()), default=1)


def spread(values: Iterable[float]) -> tuple[float, float]:
    """The ends of a logarithmic axis for values above 0, with some room on both sides."""
    found = list(values)
    low, high = min(found), max(found)
    room = max(high / low, 2.0) ** 0.06
    return low / room, high * room


def _round(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten, at most about so many."""
    least = (high - low) / most
    power = 10.0 ** math.floor(math.log10(least))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= least * (1 - 1e-9))
    return [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def across(scale: Scale, top: float, bottom: float, title: str) -> Iterator[str]:
    """The axis below: its line, its numbers, lines of the grid upwards, and its title."""
    yield line(scale.start, bottom, scale.stop, bottom, MUTED, 0.8)
    for value in scale.ticks():
        x = scale(value)
        yield line(x, bottom, x, bottom + 3, MUTED, 0.8)
        yield line(x, top, x, bottom, GRID, 0.6)
        yield say(x, bottom + 13, scale.tick(value))
    yield say((scale.start + scale.stop) / 2, bottom + 26, title)


def upright(scale: Scale, left: float, right: float, title: str) -> Iterator[str]:
    """The axis to the left: the same."""
    yield line(left, scale.start, left, scale.stop, MUTED, 0.8)
    for value in scale.ticks():
        y = scale(value)
        yield line(left - 3, y, left, y, MUTED, 0.8)
        yield line(left, y, right, y, GRID, 0.6)
        yield say(left - 5, y + 3, scale.tick(value), "end")
    yield upwards(9, (scale.start + scale.stop) / 2, title)


# --- charts: curves -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """A named curve through points, each of them with a dot if it says so."""

    label: str
    points: Sequence[tuple[float, float]]
    colour: str = ACCENT
    dashes: str | None = None
    dots: bool = False


DASHED, DOTTED = "6 3", "1 2"


def line_chart(
    lines: Sequence[Line],
    marks: Iterable[tuple[float, float, str]],
    xlabel: str,
    ylabel: str,
    *,
    title: str = "",
    shares: bool = False,
    alone: bool = False,
) -> str:
    """Curves, named at the top right, and labelled points; between shares of all, or else on logarithmic axes."""
    heads = textwrap.wrap(title, 62)
    top = 8.0 + 12 * len(heads)
    bottom = top + (244 if shares else 170)
    if shares:
        down = Scale(0, 1, bottom, top, shares=True)
        along = Scale(0, 1, down.margin(), down.margin() + 244, shares=True)
    else:
        down = Scale(*spread(y for one in lines for _, y in one.points), bottom, top, logarithmic=True)
        along = Scale(*spread(x for one in lines for x, _ in one.points), down.margin(), WIDTH - 14, logarithmic=True)
    parts = [say(along.start, 11 + 12 * i, one, "start") for i, one in enumerate(heads)]
    parts += [*across(along, top, bottom, xlabel), *upright(down, along.start, along.stop, ylabel)]
    for one in lines:
        places = [(along(x), down(y)) for x, y in one.points]
        path = " L ".join(f"{number(x)} {number(y)}" for x, y in places)
        paint = {"stroke": themed(one.colour), "stroke_width": 1.8, "stroke_dasharray": one.dashes}
        parts.append(tag("path", d=f"M {path}", fill="none", **paint))
        parts += [circle(x, y, 2.4, fill=themed(one.colour)) for x, y in places if one.dots]
    for place, one in enumerate(lines):
        parts.append(say(along.stop - 4, top + 13 + 18 * place, one.label, "end", one.colour, **_HALO))
    for share, height, words in marks:
        x, y = along(share), down(height)
        ends = x + 14 + LETTER * len(words) > WIDTH
        label = say(x + (4 if ends else 14), y - 12, words, "end" if ends else "start", **_HALO)
        parts += [diamond(x, y, 5.0, INK), label]
    return svg(parts, bottom + 32, alone=alone)


# --- charts: bars and rows ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bars:
    """One panel of bars: a title, the heights, and a short label for each; only a few of these are shown.

    `ranges`: from where to where each value may lie, as a line through the end of its bar.
    """

    title: str
    heights: Sequence[float]
    labels: Sequence[str]
    ranges: Sequence[tuple[float, float]] = ()

    @property
    def values(self) -> list[float]:
        """All that is drawn, and where bars begin."""
        return [0.0, *self.heights, *(end for ends in self.ranges for end in ends)]


_PANEL = 105.0
"""How high a panel of bars is."""


def bar_chart(panels: Sequence[Bars], ylabel: str, xlabel: str, *, alone: bool = False) -> str:
    """Panels of bars one above the other, all to the same vertical scale."""
    values = [value for panel in panels for value in panel.values]
    low, high = 1.05 * min(values), 1.05 * max(values)
    high = high if high > low else 1.0
    left = Scale(low, high, _PANEL, 0).margin()
    parts, top = list[str](), 0.0
    for panel in panels:
        scale = Scale(low, high, top + 18 + _PANEL, top + 18)
        slot, marks = (WIDTH - left - 4) / len(panel.heights), few(len(panel.labels))
        wide = slot * (0.8 if len(panel.heights) <= 40 else 1.0)
        parts += [say(left, top + 11, panel.title, "start"), *upright(scale, left, WIDTH - 4, ylabel)]
        for i, height in enumerate(panel.heights):
            middle, ends = left + slot * (i + 0.5), sorted((scale(0), scale(height)))
            parts.append(rect(middle - wide / 2, ends[0], wide, ends[1] - ends[0], fill=themed(ACCENT)))
            if panel.ranges:
                parts.append(line(middle, scale(panel.ranges[i][0]), middle, scale(panel.ranges[i][1]), INK, 1.0))
        room = max(3, int((WIDTH - left) / len(marks) / LETTER))
        parts += [say(left + slot * (i + 0.5), scale.start + 12, cut(panel.labels[i], room)) for i in marks]
        top = scale.start + 16
    return svg([*parts, say((left + WIDTH) / 2, top + 9, xlabel)], top + 14, alone=alone)


def few(count: int) -> list[int]:
    """About six evenly spaced positions, the first and the last among them."""
    if count <= 12:
        return list(range(count))
    step = max(1, round((count - 1) / 6))
    marks = list(range(0, count - 1, step))
    if count - 1 - marks[-1] <= step / 2:
        marks.pop()
    return [*marks, count - 1]


@dataclass(frozen=True, slots=True)
class Row:
    """A labelled value, its figure next to it: `chosen` the one of this plan, `hollow` one that was not admissible.

    With another value below it (`other`) it is a bar with a thin one, else a dot; without a figure it is a heading.
    """

    label: str
    value: float = 0.0
    figure: str = ""
    chosen: bool = False
    hollow: bool = False
    other: float | None = None


def row_chart(rows: Sequence[Row], xlabel: str, bound: float | None = None) -> str:
    """Labels to the left, values next to them: bars of shares, or dots on a logarithmic axis with a bound dashed."""
    shown, parts, top = [row for row in rows if row.figure], list[str](), 4.0
    labels = {row.label: textwrap.wrap(row.label, 24) or [row.label] for row in shown}
    left = 10 + LETTER * max(len(one) for lines in labels.values() for one in lines)
    right = WIDTH - LETTER * max(len(row.figure) for row in shown) - 14
    values = [row.value for row in shown] + ([] if bound is None else [bound])
    scale = Scale(*spread(values), left + 6, right, logarithmic=True)
    if any(row.other is not None for row in shown):
        scale = Scale(0, 1, left, right, shares=True)
    for row in rows:
        if not row.figure:
            parts.append(say(2, top + 10, row.label, "start"))
            top += 18
            continue
        lines, x = labels[row.label], scale(row.value)
        high = max(24.0, 11.0 * len(lines) + 6)
        y = top + high / 2
        parts += [say(left - 4, y + 3 + 11 * (i - (len(lines) - 1) / 2), one, "end") for i, one in enumerate(lines)]
        if row.other is not None:
            parts.append(rect(left, y - 7, x - left, 8, fill=themed(ACCENT)))
            parts.append(rect(left, y + 1, scale(row.other) - left, 4, fill=themed(SECOND)))
            x = max(x, scale(row.other)) - 4
        elif row.chosen:
            parts.append(diamond(x, y, 4.6, ACCENT))
        else:
            face = themed(PAGE if row.hollow else MUTED)
            parts.append(circle(x, y, 3.4, stroke=themed(MUTED), stroke_width=1.2, fill=face))
        parts.append(say(x + 8, y + 3, row.figure, "start"))
        top += high
    back = list(across(scale, 4, top, xlabel))
    back += [] if bound is None else [line(scale(bound), 4, scale(bound), top, SECOND, 1.2, DASHED)]
    return svg([*back, *parts], top + 32)


# --- charts: cells --------------------------------------------------------------------------------


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


def table_chart(shares: Array, rows: Sequence[str], columns: Sequence[str], of: str, drawn: str) -> str:
    """A table of probabilities with its labels and its scale: a row for each value of `of`, a column for `drawn`."""
    blocks = _blocks(shares)
    down, along = blocks.shape
    longest = max((len(name) for _, name in _labels(rows, down, HIGHEST / down)), default=0)
    left = 22.0 + LETTER * longest
    wide = min(LARGEST, (WIDTH - left - 4) / along)
    high = min(max(wide, LEAST), LARGEST, HIGHEST / down)
    names = _labels(columns, along, wide)
    widest = LETTER * max(len(name) for _, name in names)
    # several columns may share a label
    level = widest + 4 <= wide * (along if len(names) < 2 else names[1][0])
    top = 20.0 + (10.0 if level else widest + 4)
    bottom, most = top + high * down, float(blocks.max())
    parts = [say(left, 10, f"{drawn} →", "start", MUTED), upwards(8, (top + bottom) / 2, f"← {of}", colour=MUTED)]
    parts += [say(left - 5, top + high * (i + 0.5) + 3, name, "end") for i, name in _labels(rows, down, high)]
    for i, name in names:
        x = left + wide * (i + 0.5)
        parts.append(say(x, top - 4, name) if level else upwards(x + 3, top - 4, name, "start"))
    parts += _cells(blocks, left, top, wide, high, most)
    if max(shares.shape) <= MOST_NUMBERS and wide >= 18 and high >= 12:
        for (r, c), share in np.ndenumerate(blocks):
            x, y = left + wide * (c + 0.5), top + high * (r + 0.5) + 2.6
            parts.append(say(x, y, _inside(float(share)), colour=PAGE if share > 0.7 * most else INK, size=7))
    return svg([*parts, *_legend(most, left, bottom + 14)], bottom + 30)


def _labels(names: Sequence[str], drawn: int, size: float) -> list[tuple[int, str]]:
    """The numbers of the rows (as drawn, `size` apart) that get a label, and the labels; far enough to be read."""
    block = -(-len(names) // drawn)
    step = max(1, -(-int(10 * APART) // max(1, int(10 * size))))
    return [(i, cut(names[min(i * block, len(names) - 1)], _LONGEST)) for i in range(0, drawn, step)]


def _blocks(shares: Array) -> Array:
    """The table itself, or means of blocks where it is too large to draw."""
    for axis in (0, 1):
        block = -(-shares.shape[axis] // MOST_CELLS)
        if block > 1:
            starts = np.arange(0, shares.shape[axis], block)
            sizes = np.diff(np.append(starts, shares.shape[axis]))
            shares = np.add.reduceat(shares, starts, axis=axis) / np.expand_dims(sizes, 1 - axis)
    return shares


def _cells(shares: Array, left: float, top: float, wide: float, high: float, most: float) -> Iterator[str]:
    """Cells of one shade together, so that a table of 100 x 100 stays small; row 0 on top, all in a frame."""
    shades = np.minimum(np.ceil(SHADES * shares / most), SHADES) if most > 0 else np.zeros(shares.shape)
    shape = f"h{wide:.2f}v{high:.2f}h-{wide:.2f}z"
    for shade in range(1, SHADES + 1):
        places = np.argwhere(shades == shade).tolist()
        path = "".join(f"M{left + wide * c:.2f} {top + high * r:.2f}{shape}" for r, c in places)
        if path:
            yield tag("path", d=path, fill=themed(ACCENT), fill_opacity=f"{shade / SHADES:.3f}")
    rows, columns = shares.shape
    yield rect(left, top, wide * columns, high * rows, fill="none", stroke=themed(GRID), stroke_width=0.6)


def _inside(share: float) -> str:
    """A probability in a cell: two decimals, or a trace of one."""
    if share == 0:
        return "0"
    return {"0.00": "·", "1.00": "1"}.get(f"{share:.2f}", f"{share:.2f}".removeprefix("0"))


def _legend(most: float, left: float, top: float) -> Iterator[str]:
    """The scale: from 0 to the largest probability."""
    step = 60.0 / SHADES
    yield say(left + 5, top + 7, "0", colour=MUTED)
    for i in range(SHADES):
        opacity = f"{(i + 1) / SHADES:.3f}"
        yield rect(left + 12 + step * i, top, step, 7, fill=themed(ACCENT), fill_opacity=opacity)
    yield say(left + 76, top + 7, rounded(most).text, "start", MUTED)


@dataclass(frozen=True, eq=False, slots=True)
class Map:
    """Shares by place, the least coordinates in the first column and the last row, and the place that is ringed."""

    title: str
    shares: Array
    ring: tuple[float, float]


def map_chart(maps: Sequence[Map]) -> str:
    """Maps two side by side, all to one scale."""
    rows, columns = maps[0].shares.shape
    gap, head = 14.0, 16.0
    size = min(24.0, ((WIDTH - gap) / 2 - 4) / columns)
    wide, high = size * columns, size * rows
    most = max(float(one.shares.max()) for one in maps)
    parts = list[str]()
    for place, one in enumerate(maps):
        left = 2 + (place % 2) * (wide + gap)
        top = head + (place // 2) * (high + head + 6)
        x, y = one.ring
        at = left + size * (x + 0.5), top + size * (rows - 0.5 - y)
        parts += [say(left, top - 5, one.title, "start"), *_cells(one.shares, left, top, size, size, most)]
        parts.append(circle(*at, max(2.5, 0.36 * size), fill="none", stroke=themed(SECOND), stroke_width=1.6))
    bottom = head + -(-len(maps) // 2) * (high + head + 6) - 10
    return svg([*parts, *_legend(most, 2, bottom)], bottom + 14)
