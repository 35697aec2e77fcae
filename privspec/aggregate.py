"""Shares recovered from local reports, as people read them: a short table, a file, a picture."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from privspec.core.diagnostics import UsageError
from privspec.core.files import write_atomically

if TYPE_CHECKING:
    from privspec.families.tables.aggregate import Aggregate, Choice

MOST_ROWS = 40
"""Values that are printed; files hold all of them."""
BAR = 24


def aggregate_text(aggregate: Aggregate, name: str) -> str:
    """The table that `privspec aggregate` prints.

    Args: name, of the spec.
    """
    of = ", ".join(aggregate.names)
    title = f"{name} · {aggregate.reports:,} reports · shares of the values of {of}"
    lines = [title, _estimator(aggregate), ""]
    order = sorted(range(len(aggregate.values)), key=lambda i: -aggregate.shares[i])
    # all values in their own order, or the largest where there are too many
    shown = list(range(len(order))) if len(order) <= MOST_ROWS else order[:MOST_ROWS]
    width = max(len(of), *(len(aggregate.values[i]) for i in shown))
    lines.append(f"  {of:<{width}}   share    {f'{100 * aggregate.level:g} % interval':<18}")
    top = max(float(aggregate.shares.max()), 1e-12)
    for i in shown:
        share, low, high = (float(column[i]) for column in (aggregate.shares, aggregate.low, aggregate.high))
        bar = "█" * max(round(BAR * share / top), 0)
        lines.append(f"  {aggregate.values[i]:<{width}}  {share:6.3f}    {low:.3f} to {high:<8.3f} {bar}".rstrip())
    if len(shown) < len(order):
        lines.append(f"  and {len(order) - len(shown)} smaller ones; -o FILE.csv holds all of them")
    return "\n".join([*lines, "", *(f"  {note}" for note in aggregate.notes)]) + "\n"


def _estimator(aggregate: Aggregate) -> str:
    """Which estimator, and why."""
    estimator, choice = aggregate.estimator, aggregate.choice
    if choice is None:
        return f"estimated by {estimator.title} ({estimator.name}, as asked for)"
    return f"estimated by {estimator.title} ({estimator.name}), {_why(choice)}"


def _why(choice: Choice) -> str:
    best = choice.score(choice.estimator)
    others = ", ".join(f"{s.estimator} {s.mean:.3f}" for s in choice.scores if s.estimator != choice.estimator)
    lead = "" if choice.clear else "; no clear lead"
    if all(s.mean <= 1.01 * best.mean for s in choice.scores):
        lead = ": all are as good here, and this is the simplest of them"
    return (
        f"the nearest to the truth in {choice.runs} simulated samples from {choice.under}:\n"
        f"mean total variation {best.mean:.3f} ± {best.standard_error:.3f}; {others}{lead}"
    )


def aggregate_json(aggregate: Aggregate) -> str:
    """The result as JSON, format privspec-aggregate/1.0."""
    return json.dumps(aggregate.to_json(), indent=1, ensure_ascii=False) + "\n"


def aggregate_csv(aggregate: Aggregate) -> str:
    """A row for each value: value, share, low, high."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([", ".join(aggregate.names), "share", "low", "high"])
    columns = (aggregate.shares.tolist(), aggregate.low.tolist(), aggregate.high.tolist())
    writer.writerows(zip(aggregate.values, *columns, strict=True))
    return out.getvalue()


def aggregate_svg(aggregate: Aggregate) -> str:
    """Bars of the shares with their intervals."""
    from privspec.explain.drawing import Bars, bar_chart

    ranges = list(zip(aggregate.low.tolist(), aggregate.high.tolist(), strict=True))
    title = f"{aggregate.reports:,} reports, {aggregate.estimator.title}, {100 * aggregate.level:g} % intervals"
    panel = Bars(title, aggregate.shares.tolist(), list(aggregate.values), ranges)
    return bar_chart([panel], "share", ", ".join(aggregate.names), alone=True)


_WRITERS: Mapping[str, Callable[[Aggregate], str]] = {
    ".json": aggregate_json,
    ".csv": aggregate_csv,
    ".svg": aggregate_svg,
}


def check_suffix(path: Path) -> None:
    """Refuse a file name before anything is computed.

    Raises: UsageError PS0721.
    """
    if path.suffix.lower() not in _WRITERS:
        raise UsageError.of("PS0721", f"no shares are written as {path.name}", help="use .json, .csv or .svg")


def write_aggregate(aggregate: Aggregate, path: Path) -> None:
    """Write the result, by the suffix of the file.

    Raises: UsageError (PS0721, PS0713).
    """
    check_suffix(path)
    write_atomically(path, _WRITERS[path.suffix.lower()](aggregate).encode("utf-8"))
