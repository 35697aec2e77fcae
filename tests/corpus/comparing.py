"""What differs between two texts of a spec, read by the house's rule of tests/pasting.py; and between their times.

A figure that is asked for is exact, so that it is the same or another one. A figure that follows from a search in
floating point is the same where it differs by one in the last of the digits that a page shows, at most. Texts written
at different times and by different versions of the code are compared: nothing here reads a plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from fractions import Fraction

from tests.pasting import NUMBER, reads_alike

SECTION = re.compile(r"^== (.+)\n((?:(?!== ).*\n?)*)", re.MULTILINE)
FIGURES = ("plan", "guarantees", "others")
"""Sections of figures by name; all other sections are of lines in their order."""
DIGITS = 6
"""Significant digits by which a figure of a search is compared: those that pages show."""
NOTHING = 1e-12
"""Figures of a search that are smaller are nothing."""


@dataclass(slots=True)
class Comparison:
    """What differs, in lines; and by how much the figures do that read alike, relative."""

    lines: list[str] = field(default_factory=list)
    apart: float = 0.0
    apart_in: str = ""


def sections(text: str) -> dict[str, list[str]]:
    """The sections of a text by name, each as its lines."""
    return {name: body.rstrip("\n").split("\n") for name, body in SECTION.findall(text)}


def compared(old: str, new: str) -> Comparison:
    """What differs between two texts of one spec."""
    before, after, found = sections(old), sections(new), Comparison()
    for name in [*before, *(one for one in after if one not in before)]:
        if name not in after:
            found.lines.append(f"{name}: only in the old text, {len(before[name])} lines")
        elif name not in before:
            found.lines.append(f"{name}: only in the new text: {'; '.join(after[name])[:200]}")
        elif name in FIGURES:
            found.lines += [f"{name}: {line}" for line in _figures(before[name], after[name], found)]
        else:
            found.lines += [f"{name}: {line}" for line in _words(before[name], after[name])]
    return found


def _named(lines: list[str]) -> dict[str, str]:
    """Figures by name; a name that occurs again has a number."""
    found: dict[str, str] = {}
    for line in lines:
        name, _, value = line.rpartition(": ")
        while name in found:
            name += "'"
        found[name] = value
    return found


def _figures(old: list[str], new: list[str], found: Comparison) -> Iterator[str]:
    before, after = _named(old), _named(new)
    for name in [*before, *(one for one in after if one not in before)]:
        if name not in after or name not in before:
            yield f"{name}: {before.get(name, 'nothing')} -> {after.get(name, 'nothing')}"
        elif not _same(name, before[name], after[name], found):
            yield f"{name}: {before[name]} -> {after[name]}"


def _same(name: str, old: str, new: str, found: Comparison) -> bool:
    if old == new:
        return True
    if " asked " in name:
        return False
    one, other = _number(old), _number(new)
    if one is None or other is None:
        return reads_alike(new, old)
    size = max(abs(one), abs(other))
    if size <= NOTHING:
        return True
    if not reads_alike(_shown(other), _shown(one)):
        return False
    if (apart := abs(one - other) / size) > found.apart:
        found.apart, found.apart_in = apart, name
    return True


def _number(text: str) -> float | None:
    try:
        return float(Fraction(text))
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def _shown(number: float) -> str:
    """In so many digits, with a point or an exponent: no count."""
    return f"{number:.{DIGITS - 1}e}".replace("e+", "e")


def _words(old: list[str], new: list[str]) -> Iterator[str]:
    """Lines that differ in words or in more than the last digit of a figure, in their order."""
    if reads_alike("\n".join(new), "\n".join(old)):
        return
    before, after = ([masked(line) for line in lines] for lines in (old, new))
    for what, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what == "equal":
            pairs = zip(old[i:j], new[k:m], strict=True)
            yield from (f"{one} -> {other}" for one, other in pairs if not reads_alike(other, one))
        else:
            yield from (f"- {line}" for line in old[i:j])
            yield from (f"+ {line}" for line in new[k:m])


def masked(line: str) -> str:
    """The words of a line, without its figures."""
    return " ".join(NUMBER.sub("#", line).split())


# --- times ----------------------------------------------------------------------------------------

WIDE = 42
"""Characters of a name in a table of times."""
STEPS = ("solve", "verify", "run")
Times = Mapping[str, Mapping[str, float]]
"""CPU seconds by spec and step."""


def read_times(text: str) -> dict[str, dict[str, float]]:
    """The table that `write_times` makes."""
    found = {}
    for line in text.splitlines()[1:]:
        name, *cells = line.split("\t")
        found[name] = {step: float(cell) for step, cell in zip(STEPS, cells, strict=True) if cell != "-"}
    return found


def write_times(times: Times) -> str:
    """CPU seconds of each step of each spec; "-" where a step has no place."""
    lines = ["\t".join(("spec", *STEPS))]
    for name, known in sorted(times.items()):
        lines.append("\t".join((name, *(f"{known[step]:.4f}" if step in known else "-" for step in STEPS))))
    return "\n".join(lines) + "\n"


def compared_times(old: Times, new: Times, *, each: bool = True) -> str:
    """Seconds of both and their ratio: of each spec, where it is wanted, and in sum."""
    both = [name for name in old if name in new]
    wide = max(WIDE, *map(len, both)) if both else WIDE
    lines = [f"{'CPU seconds':<{wide}}" + "".join(f"  {step + ': old':>12} {'new':>9} {'ratio':>6}" for step in STEPS)]
    sums = {step: [0.0, 0.0] for step in STEPS}
    for name in both:
        cells = []
        for step in STEPS:
            known = [one[name].get(step) for one in (old, new)]
            if known[0] is None or known[1] is None:
                cells.append(_cells(None, None))
                continue
            sums[step][0] += known[0]
            sums[step][1] += known[1]
            cells.append(_cells(known[0], known[1]))
        if each:
            lines.append(f"{name:<{wide}}" + "".join(cells))
    lines.append(f"{f'sum of {len(both)} specs':<{wide}}" + "".join(_cells(*sums[step]) for step in STEPS))
    return "\n".join(lines)


def _cells(old: float | None, new: float | None) -> str:
    if old is None or new is None:
        return f"  {'-':>12} {'-':>9} {'-':>6}"
    return f"  {old:>12.3f} {new:>9.3f} {new / old if old else 1.0:>6.2f}"
