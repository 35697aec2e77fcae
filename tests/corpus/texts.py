"""A solved spec as text that does not hang on the format of plans: the one place of the corpus that reads plans.

A text has sections, each below a line "== name". Figures are lines "name: value" under their names in the field; values
are written in full. Claims and pages follow as they are printed, but for what differs from run to run and from machine
to machine: seconds, dates, fingerprints and versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from privspec.core.diagnostics import PrivspecError
from privspec.core.render import render_all
from privspec.plan import Plan, Verification

READERS = ("public", "auditor", "engineer")
LONGEST = 60
"""Characters of an exact number that is written whole."""
PASSING = (
    (re.compile(r"(solved in|Seconds \|) [0-9.e-]+"), r"\1 -"),
    (re.compile(r"(\| Versions \|) .*"), r"\1 - |"),
    (re.compile(r"\b\d{4}-\d{2}-\d{2} \|"), "DATE |"),
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "FINGERPRINT"),
)
"""What a page says that is another thing each time, and what stands for it."""


def text_of_plan(plan: Plan, verification: Verification, pages: Mapping[str, str]) -> str:
    """All that the corpus compares of a plan."""
    sections = {"plan": [*_result(plan)], "guarantees": [*_guarantees(plan)], "others": [*_others(plan)]}
    sections["claims"] = [str(claim) for claim in verification.claims]
    for reader, page in pages.items():
        sections[f"page {reader}"] = lasting(page).splitlines()
    return written(sections)


def text_of_refusal(error: PrivspecError, folder: Path) -> str:
    """What becomes of a spec of a folder that is not solved: its diagnostics, each with its places."""
    said = render_all(error.diagnostics).replace(str(folder), "FOLDER")
    return written({"refused": said.splitlines()})


def written(sections: Mapping[str, list[str]]) -> str:
    """Sections as one text; empty ones are left out."""
    return "".join(f"== {name}\n{chr(10).join(lines)}\n\n" for name, lines in sections.items() if lines)


def lasting(page: str) -> str:
    """A page without what is another thing each time."""
    for what, stands in PASSING:
        page = what.sub(stands, page)
    return page.strip()


def _result(plan: Plan) -> Iterator[str]:
    stated = plan.stated
    yield f"status: {stated.status}"
    if stated.reason:
        yield f"reason: {stated.reason}"
    if stated.loss is not None:
        loss = stated.loss
        yield from _lines("loss", loss.value)
        yield from _lines("lower bound", loss.lower_bound)
        yield from _lines("standard error", loss.standard_error)
        yield from _lines("kind", loss.kind)
        yield from _lines("among", loss.among)


def _guarantees(plan: Plan) -> Iterator[str]:
    for number, one in enumerate(plan.guarantees, 1):
        outputs, data = ", ".join(one.outputs), ", ".join(one.wrt)
        yield f"{number}: {outputs} wrt {data}, {one.neighbours}, seen by {one.observer}: {one.measure}"
        yield from _lines(f"{number} asked", one.figures)
        yield from _lines(f"{number} achieved", one.achieved)
    for number, seen in enumerate(plan.stated.exposures, 1):
        outputs, data = ", ".join(seen.outputs), ", ".join(seen.wrt)
        yield f"exposure {number}: {seen.observer} sees {outputs} of {data}, {seen.neighbours}"
        yield from _lines(f"exposure {number} not protected", ", ".join(seen.not_protected))
        yield from _lines(f"exposure {number} bound", seen.bound or {"any": "none"})


def _others(plan: Plan) -> Iterator[str]:
    stated = plan.stated
    for one in stated.alternatives:
        yield from _lines(f"alternative {one.name}: loss", one.loss)
        yield f"alternative {one.name}: admissible: {one.admissible}"
        yield from _lines(f"alternative {one.name}: reason", one.reason)
    for kind, lines in (("accuracy", stated.accuracy), ("fairness", stated.fairness)):
        for one in lines:
            yield from _lines(f"{kind} of line {one.line}: value", one.value)
            yield from _lines(f"{kind} of line {one.line}: bound", one.bound)
    for one in stated.remarks.binding:
        yield from _lines(f"line {one.line} binds, {one.change}: loss change", one.loss_change)
    for one in stated.conflicts:
        yield f"conflict: line {one.line}: {one.text}"
    for one in stated.relaxations:
        yield f"relaxation of line {one.line}: {one.change}: works: {one.works}"
        yield from _lines(f"relaxation of line {one.line}: loss", one.loss)


def _lines(name: str, value: Any) -> Iterator[str]:
    """A figure, or each one of several, under its name; nothing where there is none."""
    if value is None or value == "":
        return
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _lines(f"{name} {key}", part)
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value, 1):
            yield from _lines(f"{name} {number}", part)
    else:
        yield f"{name}: {_figure(value)}"


def _figure(value: Any) -> str:
    """An exact number whole, unless it has very many digits; a double by its shortest decimal."""
    text = str(value)
    if len(text) <= LONGEST:
        return text
    try:
        return repr(float(Fraction(text)))
    except (ValueError, OverflowError):
        return text
