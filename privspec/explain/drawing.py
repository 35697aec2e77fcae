"""Small charts as SVG text, written by hand: deterministic, with direct labels, readable in light and dark.

Six colours are used; in an SVG that stands inside a page each is a CSS variable with the printed colour as its
fallback, so that pages can change it in the dark. Blue and vermilion (Okabe & Ito) stay apart for all common kinds of
colour blindness. Lengths are points; the font is the reader's, so that widths of texts are estimates.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from privspec.core.records import dataclass
from privspec.explain.quantities import rounded

PAGE, INK, MUTED, GRID, ACCENT, SECOND = "#ffffff", "#1b1f24", "#5b6570", "#d5dae0", "#0072b2", "#d55e00"
_VARIABLES = {PAGE: "--page", INK: "--ink", MUTED: "--muted", GRID: "--grid", ACCENT: "--accent", SECOND: "--second"}


def themed(colour: str) -> str:
    """A colour that pages can change in the dark."""
    return f"var({_VARIABLES[colour]}, {colour})"


WIDTH = 374.0
"""Of every drawing: small enough for labels to stay readable on a telephone."""
LETTER = 5.4
"""The width of a letter of the size that is used, at most on average."""


# --- elements -------------------------------------------------------------------------------------


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


def svg(parts: Sequence[str], height: float, *, alone: bool = False) -> str:
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


# --- scales and axes ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high` along a line from `start` to `stop`; by their logarithms where it says so."""

    low: float
    high: float
    start: float
    stop: float
    logarithmic: bool = False

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
            return _round(self.low, self.high, max(2, int(room / 30)))
        subs = (1, 2, 5) if self.high / self.low < 300 else (1,)
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        found = [s * 10.0**k for k in decades for s in subs if self.low <= s * 10.0**k <= self.high]
        if len(found) < 2:
            return _round(self.low, self.high, 3)
        each = 20 if self.start > self.stop else max(len(tick(value)) for value in found) * LETTER + 10
        return found[:: max(1, math.ceil(len(found) * each / room))]


def spread(values: Sequence[float], before: float = 0.06, after: float = 0.06) -> tuple[float, float]:
    """The ends of a logarithmic axis for values above 0, with room on both sides as shares of what they span."""
    low, high = min(values), max(values)
    span = max(high / low, 2.0)
    return low / span**before, high * span**after


def _round(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten, at most about so many."""
    least = (high - low) / most
    power = 10.0 ** math.floor(math.log10(least))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= least * (1 - 1e-9))
    return [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def tick(value: float) -> str:
    """The number of a tick, written as in the texts."""
    return rounded(value, 6).text


def across(scale: Scale, top: float, bottom: float, title: str, *, grid: bool = True) -> Iterator[str]:
    """The axis below: its line, its numbers, lines of the grid upwards, and its title."""
    yield _line(scale.start, bottom, scale.stop, bottom, MUTED, 0.8)
    for value in scale.ticks():
        x = scale(value)
        yield _line(x, bottom, x, bottom + 3, MUTED, 0.8)
        yield from (_line(x, top, x, bottom, GRID, 0.6),) if grid else ()
        yield say(x, bottom + 13, tick(value))
    yield say((scale.start + scale.stop) / 2, bottom + 26, title)


def upright(scale: Scale, left: float, right: float, title: str) -> Iterator[str]:
    """The axis to the left: the same."""
    yield _line(left, scale.start, left, scale.stop, MUTED, 0.8)
    for value in scale.ticks():
        y = scale(value)
        yield _line(left - 3, y, left, y, MUTED, 0.8)
        yield _line(left, y, right, y, GRID, 0.6)
        yield say(left - 5, y + 3, tick(value), "end")
    yield upwards(9, (scale.start + scale.stop) / 2, title)


def margin(scale: Scale) -> float:
    """Room to the left for the numbers of an axis and its title."""
    return 20 + LETTER * max((len(tick(value)) for value in scale.ticks()), default=1)


def _line(x: float, y: float, to_x: float, to_y: float, colour: str, wide: float, dashes: str | None = None) -> str:
    ends = {"x1": float(x), "y1": float(y), "x2": float(to_x), "y2": float(to_y)}
    return tag("line", **ends, stroke=themed(colour), stroke_width=wide, stroke_dasharray=dashes)


def _curve(points: Sequence[tuple[float, float]], colour: str, wide: float = 1.8, dashes: str | None = None) -> str:
    path = " L ".join(f"{number(x)} {number(y)}" for x, y in points)
    how = {"fill": "none", "stroke": themed(colour), "stroke_width": wide, "stroke_dasharray": dashes}
    return tag("path", d=f"M {path}", **how)


def _diamond(x: float, y: float, size: float, colour: str) -> str:
    path = way("M", x, y - size, "L", x + size, y, "L", x, y + size, "L", x - size, y, "Z")
    return tag("path", d=path, fill=themed(colour))


_DASHED = "6 3"


# --- charts ---------------------------------------------------------------------------------------


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
    def bottom(self) -> float:
        """The least value drawn, at most 0."""
        return min(0.0, *self.heights, *(low for low, _ in self.ranges))

    @property
    def top(self) -> float:
        """The largest value drawn."""
        return max(*self.heights, *(high for _, high in self.ranges), 0.0)


@dataclass(frozen=True, slots=True)
class Dot:
    """A labelled value; `strong` for the chosen one, `open` for one that was not admissible."""

    label: str
    value: float
    text: str
    strong: bool = False
    hollow: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A named curve through points."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    dashed: bool = False
    second: bool = False


_PANEL = 105.0
"""How high a panel of bars is."""


def bar_chart(panels: Sequence[Bars], ylabel: str, xlabel: str, *, alone: bool = False) -> str:
    """Panels of bars one above the other, all to the same vertical scale."""
    high, low = 1.05 * max(panel.top for panel in panels), 1.05 * min(panel.bottom for panel in panels)
    high = high if high > low else 1.0
    left = margin(Scale(low, high, _PANEL, 0))
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
                parts.append(_line(middle, scale(panel.ranges[i][0]), middle, scale(panel.ranges[i][1]), INK, 1.0))
        room = max(3, int((WIDTH - left) / len(marks) / LETTER))
        parts += [say(left + slot * (i + 0.5), scale.start + 12, _cut(panel.labels[i], room)) for i in marks]
        top = scale.start + 16
    return svg([*parts, say((left + WIDTH) / 2, top + 9, xlabel)], top + 14, alone=alone)


def dot_chart(items: Sequence[Dot], xlabel: str, bound: tuple[float, str] | None = None) -> str:
    """A dot plot on a logarithmic axis, labels to the left and values beside the dots."""
    labels = [textwrap.wrap(item.label, 24) or [item.label] for item in items]
    left = 10 + LETTER * min(24, max(len(line) for lines in labels for line in lines))
    values = [item.value for item in items] + ([bound[0]] if bound else [])
    longest = LETTER * max(len(item.text) for item in items) + 14
    scale = Scale(*spread(values), left + 6, WIDTH - longest, logarithmic=True)
    parts, top = list[str](), 4.0
    for item, lines in zip(items, labels, strict=True):
        high = max(24.0, 11.0 * len(lines) + 6)
        x, y = scale(item.value), top + high / 2
        parts += [say(left - 4, y + 3 + 11 * (i - (len(lines) - 1) / 2), one, "end") for i, one in enumerate(lines)]
        dot = {"cx": x, "cy": y, "r": 3.4, "stroke": themed(MUTED), "stroke_width": 1.2}
        face = themed(PAGE if item.hollow else MUTED)
        parts.append(_diamond(x, y, 4.6, ACCENT) if item.strong else tag("circle", **dot, fill=face))
        parts.append(say(x + 8, y + 3, item.text, "start"))
        top += high
    back = list(across(scale, 4, top, xlabel))
    back += [_line(scale(bound[0]), 4, scale(bound[0]), top, SECOND, 1.2, _DASHED)] if bound else []
    return svg([*back, *parts], top + 32)


def frontier_chart(
    line: Line,
    chosen: tuple[float, float, str] | None,
    xlabel: str,
    ylabel: str,
    *,
    bound: Line | None = None,
    alone: bool = False,
) -> str:
    """Loss against a privacy parameter on logarithmic axes, with the chosen point."""
    top, bottom = 6.0, 176.0
    down = Scale(*spread([*line.y, *(bound.y if bound else ())]), bottom, top, logarithmic=True)
    left = margin(down)
    along = Scale(*spread([*line.x, *(bound.x if bound else ())]), left, WIDTH - 14, logarithmic=True)

    def places(one: Line) -> list[tuple[float, float]]:
        return [(along(x), down(y)) for x, y in zip(one.x, one.y, strict=True)]

    points = places(line)
    parts = [*across(along, top, bottom, xlabel), *upright(down, left, along.stop, ylabel), _curve(points, ACCENT)]
    parts += [tag("circle", cx=x, cy=y, r=2.4, fill=themed(ACCENT)) for x, y in points]
    parts.append(say(points[0][0] + 9, points[0][1] - 3, line.label, "start", ACCENT))
    if bound is not None:
        limits = places(bound)
        x, y = limits[len(limits) // 2]
        parts += [_curve(limits, SECOND, 1.4, _DASHED), say(x - 8, y + 14, bound.label, "end", SECOND)]
    if chosen is not None:
        x, y = along(chosen[0]), down(chosen[1])
        right = x + 10 + LETTER * len(chosen[2]) > WIDTH
        parts.append(_diamond(x, y, 5.5, INK))
        parts.append(say(x + (4 if right else 9), y - 8, chosen[2], "end" if right else "start", **_HALO))
    return svg(parts, bottom + 32, alone=alone)


_HALO: Any = {"stroke": themed(PAGE), "stroke_width": 3.0, "paint_order": "stroke"}
"""The page behind a label that may lie on a line."""


def tradeoff_chart(
    curves: Sequence[Line], marks: Sequence[tuple[float, float, str]], xlabel: str, ylabel: str, title: str = ""
) -> str:
    """Curves in the unit square with the line of a blind guess, labelled beside the curves."""
    heads = textwrap.wrap(title, 62)
    left, top, size = 52.0, 10.0 + 12 * len(heads), 244.0
    along, down = Scale(0, 1, left, left + size), Scale(0, 1, top + size, top)
    parts = [say(left, 11 + 12 * i, one, "start") for i, one in enumerate(heads)]
    for share, words in ((0.0, "0"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1.0, "100 %")):
        x, y = along(share), down(share)
        parts += [_line(x, top, x, top + size, GRID, 0.6), _line(left, y, left + size, y, GRID, 0.6)]
        parts += [say(x, top + size + 13, words), say(left - 5, y + 3, words, "end")]
    parts += [
        _line(left, top + size, left + size, top + size, MUTED, 0.8),
        _line(left, top, left, top + size, MUTED, 0.8),
    ]
    parts += [say(left + size / 2, top + size + 27, xlabel), upwards(9, top + size / 2, ylabel)]
    parts.append(_line(along(0), down(1), along(1), down(0), MUTED, 1.0, "1 2"))
    parts.append(say(along(0.2) + 6, down(0.8) - 3, "a coin toss", "start", MUTED))
    for line in curves:
        points = [(along(x), down(y)) for x, y in zip(line.x, line.y, strict=True)]
        parts.append(_curve(points, SECOND if line.second else ACCENT, dashes=_DASHED if line.dashed else None))
    for place, line in enumerate(curves):
        y = down(0.96 - 0.075 * place) + 3
        parts.append(say(left + size, y, line.label, "end", SECOND if line.second else ACCENT, **_HALO))
    for share, misses, words in marks:
        x, y = along(share), down(misses)
        parts += [_diamond(x, y, 4.4, INK), say(x + 14, y - 12, words, "start", **_HALO)]
    return svg(parts, top + size + 33)


def few(count: int) -> list[int]:
    """About six evenly spaced positions, the first and the last among them."""
    if count <= 12:
        return list(range(count))
    step = max(1, round((count - 1) / 6))
    marks = list(range(0, count - 1, step))
    if count - 1 - marks[-1] <= step / 2:
        marks.pop()
    return [*marks, count - 1]


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[: most - 1]}…"
