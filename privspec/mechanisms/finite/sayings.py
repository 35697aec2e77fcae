"""What is said of a recognised table, and the words that all recognisers share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privspec.mechanisms.finite.context import Label
from privspec.model.values import show

_MOST_LISTED = 5


@dataclass(frozen=True, slots=True)
class Recognition:
    """A table is, up to `deviation` in any probability, the mechanism of this name; `note` proves its guarantee."""

    name: str
    text: str
    note: str
    deviation: float


def spoken(label: Label) -> str:
    """A row or column as an author would write it."""
    parts = [show(value) for value in label]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def listed(parts: Sequence[str], most: int = _MOST_LISTED, between: str = ", ") -> str:
    """The first of several parts, and how many are left out."""
    if len(parts) > most:
        return between.join([*parts[:most], f"and {len(parts) - most} more"])
    return joined(parts) if between == ", " else between.join(parts)


def joined(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def named(labels: Sequence[Label], among: Sequence[Label]) -> str:
    """Labels in the order of the domain; three or more in a row as `a to c`."""
    number = {label: k for k, label in enumerate(among)}
    runs: list[list[Label]] = []
    for label in sorted(labels, key=number.__getitem__):
        if runs and number[label] == number[runs[-1][-1]] + 1:
            runs[-1].append(label)
        else:
            runs.append([label])
    parts: list[str] = []
    for run in runs:
        parts += [f"{spoken(run[0])} to {spoken(run[-1])}"] if len(run) > 2 else [spoken(label) for label in run]
    return listed(parts)
