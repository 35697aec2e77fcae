"""A figure: the calibrated reading in the first row, the printed one in the second, with error bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from crowds import Measured
from matplotlib.figure import Figure

Line: TypeAlias = Mapping[float, Measured]
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444")
MARKS = "osD^vP*"


def draw(
    title: str,
    panels: Sequence[tuple[str, str, bool]],
    lines: Mapping[str, Sequence[Mapping[str, tuple[Line, bool]]]],
    path: Path,
) -> None:
    """Write a figure, PNG or SVG by the suffix of the path.

    Args: panels (title, axis, relative); lines by reading, then panel, then label: points, and whether they are of none
        of the paper's algorithms.
    """
    figure = Figure(figsize=(max(4.6 * len(panels), 7.0), 8.4), layout="constrained")
    axes = figure.subplots(len(lines), len(panels), squeeze=False)
    for row, (reading, of_panels) in zip(axes, lines.items(), strict=True):
        for place, (name, axis, relative), curves in zip(row, panels, of_panels, strict=True):
            for i, (label, (points, best)) in enumerate(curves.items()):
                place.errorbar(
                    list(points),
                    [one.mean for one in points.values()],
                    [2 * one.error for one in points.values()],
                    label=label,
                    color=COLOURS[i % len(COLOURS)],
                    marker=MARKS[i % len(MARKS)],
                    linestyle="--" if best else "-",
                    markersize=4,
                    linewidth=1.2,
                    capsize=2,
                )
            if axis == "epsilon":
                place.set_xscale("log")
            place.set_ylim(0.35, 1.04)
            place.set_xlabel(axis)
            place.set_ylabel("relative to no privacy" if relative else "accuracy")
            place.set_title(f"{name}\n{reading}", fontsize=9)
            place.grid(alpha=0.3)
            longest = max(map(len, curves))
            columns = 3 if longest < 15 else 2 if len(curves) > 4 else 1
            place.legend(fontsize=6.5, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=columns)
    figure.suptitle(f"{title} (bars: two standard errors)", fontsize=11)
    figure.savefig(path, dpi=110)
