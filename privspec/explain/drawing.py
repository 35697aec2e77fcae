"""Small charts as SVG text: deterministic, with direct labels, readable in light and dark.

Matplotlib is imported inside the functions only. Six colours are used; in an SVG that stands inside a page
each becomes a CSS variable with the printed colour as its fallback, so that pages can change it in the dark.
Blue and vermilion (Okabe & Ito) stay apart for all common kinds of colour blindness.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

from privspec.core.records import dataclass
from privspec.explain.quantities import rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


PAGE, INK, MUTED, GRID, ACCENT, SECOND = "#ffffff", "#1b1f24", "#5b6570", "#d5dae0", "#0072b2", "#d55e00"
_VARIABLES = {PAGE: "--page", INK: "--ink", MUTED: "--muted", GRID: "--grid", ACCENT: "--accent", SECOND: "--second"}


def themed(colour: str) -> str:
    """A colour that pages can change in the dark."""
    return f"var({_VARIABLES[colour]}, {colour})"


WIDTH, HEIGHT = 5.2, 3.0  # inches; small enough for labels to stay readable on a telephone

_PATCH = {"facecolor": PAGE, "edgecolor": "none", "pad": 1.5}
"""The page behind a label that may lie on a line."""

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.8,
}


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


_DASHED = (0, (4, 2))


def _say(axis: Axes, words: str, at: tuple[float, float], shift: tuple[float, float], **how: Any) -> None:
    """A label so many points away from a place."""
    axis.annotate(words, at, xytext=shift, textcoords="offset points", **how)


def bar_chart(panels: Sequence[Bars], ylabel: str, xlabel: str, name: str) -> str:
    """Panels of bars one above the other, all to the same vertical scale."""
    from matplotlib.ticker import FuncFormatter

    with _figure(name, WIDTH, 0.6 + 1.9 * len(panels)) as (figure, finish):
        axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
        top = 1.05 * max(panel.top for panel in panels)
        bottom = 1.05 * min(panel.bottom for panel in panels)
        for axis, panel in zip(axes, panels, strict=True):
            positions = range(len(panel.heights))
            axis.bar(positions, panel.heights, color=ACCENT, width=0.8 if len(panel.heights) <= 40 else 1.0)
            if panel.ranges:
                axis.vlines(positions, *zip(*panel.ranges, strict=True), colors=INK, linewidth=1.0)
            axis.set_title(panel.title, loc="left", fontsize=9)
            marks = _few(len(panel.labels))
            axis.set_xticks(marks, [panel.labels[i] for i in marks])
            axis.set_ylabel(ylabel)
            axis.set_ylim(bottom, top if top > 0 else 1.0)
            axis.yaxis.set_major_formatter(FuncFormatter(_tick))
            axis.grid(axis="y")
        axes[-1].set_xlabel(xlabel)
        return finish()


def dot_chart(items: Sequence[Dot], xlabel: str, name: str, bound: tuple[float, str] | None = None) -> str:
    """A dot plot on a logarithmic axis, labels to the left and values beside the dots."""
    with _figure(name, WIDTH, 0.8 + 0.42 * len(items)) as (figure, finish):
        axis = figure.subplots()
        axis.set_xscale("log")
        for row, item in enumerate(items):
            colour, marker = (ACCENT, "D") if item.strong else (MUTED, "o")
            face = "none" if item.hollow else colour
            axis.plot(
                [item.value], [row], marker=marker, markersize=7, color=colour, markerfacecolor=face, linestyle="none"
            )
            _say(axis, item.text, (item.value, row), (8, 0), va="center", color=INK)
        if bound is not None:
            axis.axvline(bound[0], color=SECOND, linestyle=_DASHED, linewidth=1.2)
        axis.set_yticks(range(len(items)), [_wrapped(item.label) for item in items])
        axis.set_ylim(len(items) - 0.5, -0.5)
        values = [item.value for item in items] + ([bound[0]] if bound else [])
        low, high = min(values), max(values)
        span = max(high / low, 2.0)
        axis.set_xlim(low / span**0.08, high * span**0.38)
        axis.set_xlabel(xlabel)
        axis.grid(axis="x")
        axis.tick_params(axis="y", length=0)
        _log_ticks(axis.xaxis)
        return finish()


def frontier_chart(
    line: Line,
    chosen: tuple[float, float, str] | None,
    xlabel: str,
    ylabel: str,
    name: str,
    *,
    bound: Line | None = None,
    inline: bool = True,
) -> str:
    """Loss against a privacy parameter on logarithmic axes, with the chosen point."""
    with _figure(name, WIDTH, HEIGHT, inline=inline) as (figure, finish):
        axis = figure.subplots()
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.plot(line.x, line.y, color=ACCENT, marker="o", markersize=4)
        _say(axis, line.label, (line.x[0], line.y[0]), (9, 3), color=ACCENT, va="bottom")
        if bound is not None:
            axis.plot(bound.x, bound.y, color=SECOND, linestyle=_DASHED, linewidth=1.4)
            middle = len(bound.x) // 2
            _say(axis, bound.label, (bound.x[middle], bound.y[middle]), (-8, -8), color=SECOND, ha="right", va="top")
        if chosen is not None:
            axis.plot([chosen[0]], [chosen[1]], marker="D", markersize=8, color=INK, linestyle="none")
            _say(axis, chosen[2], chosen[:2], (9, 6), color=INK)
        axis.set_xlabel(xlabel)
        axis.set_ylabel(ylabel)
        axis.grid()
        _log_ticks(axis.xaxis)
        _log_ticks(axis.yaxis)
        return finish()


def tradeoff_chart(
    curves: Sequence[Line],
    marks: Sequence[tuple[float, float, str]],
    xlabel: str,
    ylabel: str,
    name: str,
    title: str = "",
) -> str:
    """Curves in the unit square with the line of a blind guess, labelled beside the curves."""
    with _figure(name, WIDTH, 4.0) as (figure, finish):
        axis = figure.subplots()
        axis.plot([0, 1], [1, 0], color=MUTED, linewidth=1.0, linestyle=(0, (1, 2)))
        _say(axis, "a coin toss", (0.2, 0.8), (6, 3), color=MUTED)
        for line in curves:
            axis.plot(
                line.x, line.y, color=SECOND if line.second else ACCENT, linestyle=_DASHED if line.dashed else "-"
            )
        for position, line in enumerate(curves):
            label: Any = {"color": SECOND if line.second else ACCENT, "va": "center", "ha": "right"}
            axis.annotate(line.label, (1.0, 0.96 - 0.075 * position), annotation_clip=False, **label)
        for x, y, text in marks:
            axis.plot([x], [y], marker="D", markersize=6, color=INK, linestyle="none")
            _say(axis, text, (x, y), (16, 14), ha="left", va="bottom", bbox=_PATCH)
        axis.set_xlim(0, 1)
        axis.set_ylim(0, 1)
        axis.set_aspect("equal")
        if title:
            axis.set_title(_wrapped(title, 44), loc="left", fontsize=9)
        axis.set_xlabel(xlabel)
        axis.set_ylabel(ylabel)
        axis.grid()
        for side in (axis.set_xticks, axis.set_yticks):
            side([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
        return finish()


@contextmanager
def _figure(
    name: str, width: float, height: float, *, inline: bool = True
) -> Iterator[tuple[Figure, Callable[[], str]]]:
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    settings: Any = {**_STYLE, "svg.hashsalt": name}
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(width, height), layout="constrained")
        figure.patch.set_visible(not inline)

        def finish() -> str:
            for axis in figure.axes:
                axis.patch.set_visible(False)
            buffer = io.StringIO()
            nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            FigureCanvasSVG(figure).print_svg(buffer, metadata=nothing)  # type: ignore[no-untyped-call]
            return inlined(buffer.getvalue(), name) if inline else buffer.getvalue()

        yield figure, finish


def inlined(svg: str, name: str) -> str:
    """An SVG that may stand inside HTML: no prologue, ids of its own, colours as CSS variables."""
    body = svg[svg.index("<svg") :].strip()
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r"<style[^>]*>.*?</style>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", body)
    body = re.sub(r'xlink:href="#([^"]+)"', rf'href="#{name}-\1"', body)
    opening = r'<svg xmlns="http://www.w3.org/2000/svg" viewBox="\1" aria-hidden="true" focusable="false">'
    body = re.sub(r'<svg\b[^>]*?viewBox="([^"]+)"[^>]*>', opening, body, count=1)
    for colour in _VARIABLES:
        body = body.replace(colour, themed(colour))
    return body


def _few(count: int) -> list[int]:
    """About six evenly spaced positions, the first and the last among them."""
    if count <= 12:
        return list(range(count))
    step = max(1, round((count - 1) / 6))
    marks = list(range(0, count - 1, step))
    if count - 1 - marks[-1] < step / 2:
        marks.pop()
    return [*marks, count - 1]


def _wrapped(label: str, width: int = 22) -> str:
    return "\n".join(textwrap.wrap(label, width)) or label


_WIDE = 1e7
"""From here on the numbers of an axis are too wide to stand close together."""


def _tick(value: float, _: object) -> str:
    """The number of a tick, written as in the texts."""
    return rounded(value, 6).text


def _log_ticks(side: Axis) -> None:
    """Plain numbers on a logarithmic axis, and a few more of them where it spans little."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = side.get_view_interval()
    subs = (1.0, 2.0, 5.0) if high / low < 300 else (1.0,)
    side.set_major_locator(LogLocator(base=10, subs=subs, numticks=9 if high < _WIDE else 4))
    side.set_major_formatter(FuncFormatter(_tick))
    side.set_minor_formatter(NullFormatter())


# --- elements drawn by hand -----------------------------------------------------------------------


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
