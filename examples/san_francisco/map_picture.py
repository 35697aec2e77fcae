"""The maps of one epsilon side by side: prior and truth, then for every mechanism its reports and what they recover."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from check_ins import EAST, HIGH, NORTH, SOUTH, WEST, WIDE, CheckIns
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from mechanisms import Array, Outcome


def draw(people: CheckIns, epsilon: str, outcomes: Sequence[Outcome], path: Path) -> None:
    """Write the picture, PNG or SVG by the suffix of the path."""
    figure = Figure(figsize=(2.55 * (len(outcomes) + 1), 5.6), layout="constrained")
    axes = figure.subplots(2, len(outcomes) + 1, squeeze=False)
    highest = max(float(shares.max()) for shares in (people.prior, people.truth))
    norm = PowerNorm(0.5, 0, highest)

    def show(ax: Any, shares: Array, title: str, note: str) -> Any:
        grid = np.clip(shares, 0, highest).reshape(people.side, people.side).T
        image = ax.imshow(
            grid, origin="lower", norm=norm, cmap="viridis", extent=(WEST, EAST, SOUTH, NORTH), interpolation="nearest"
        )
        ax.set_aspect((EAST - WEST) / (NORTH - SOUTH) * HIGH / WIDE)
        ax.set_title(title, fontsize=9)
        ax.set_xlabel(note, fontsize=8)
        ax.set_xticks([])
        ax.set_yticks([])
        return image

    show(axes[0, 0], people.prior, "prior", f"{people.public_users} users, {len(people.public):,} check-ins")
    note = f"{people.reporting_users} users, {len(people.reporting):,} check-ins"
    image = show(axes[1, 0], people.truth, "truth of the other half", note)
    for column, found in zip(axes.T[1:], outcomes, strict=True):
        far = found.distance[0] * people.step
        show(column[0], found.reports, found.mechanism.name, f"reports, {far:.2f} km off on average")
        variation = float(np.abs(found.recovered - people.truth).sum() / 2)
        show(column[1], found.recovered, f"recovered by {found.chosen}", f"total variation {variation:.3f}")
    bar = figure.colorbar(image, ax=axes, shrink=0.7, format="{x:.0%}")
    bar.set_label("share of check-ins in a cell", fontsize=8)
    bar.ax.tick_params(labelsize=8)
    figure.suptitle(f"Check-ins in San Francisco, ε = {epsilon} a step of {people.step:.1f} km", fontsize=11)
    figure.savefig(path, dpi=130)
