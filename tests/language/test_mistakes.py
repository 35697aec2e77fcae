"""Common mistakes in specs: tests/golden/mistakes/NAME.priv, its diagnostic NAME.txt, and, where the fix is
mechanical, NAME.fixed.priv: the diagnostic names what the fix writes, and `check` accepts the result."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from privspec.core.catalogue import entries
from privspec.core.diagnostics import Diagnostic, SpecError
from privspec.core.render import render_all
from privspec.core.spans import Source
from privspec.model.build import load_model
from privspec.model.graph import Model

MISTAKES = Path(__file__).parents[1] / "golden" / "mistakes"
NAMES = sorted(p.stem for p in MISTAKES.glob("*.priv") if not p.stem.endswith(".fixed"))
FIXED = [name for name in NAMES if (MISTAKES / f"{name}.fixed.priv").exists()]

BEGINS = re.compile(r"(?:write|did you mean|for instance|with|or|as in) `?|[,:] `?")
TOKEN = re.compile(r"\w+|[^\w\s]")


def read(name: str) -> str:
    return (MISTAKES / f"{name}.priv").read_text("utf-8")


def check(name: str) -> Model:
    return load_model(Source(f"{name}.priv", read(name)), base=MISTAKES)


def complaints(name: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(SpecError) as caught:
        check(name)
    return caught.value.diagnostics


def test_there_are_as_many_as_was_asked_for() -> None:
    assert len(NAMES) >= 40
    assert len(FIXED) >= 40


@pytest.mark.parametrize("name", NAMES)
def test_one_cause_is_told_once_with_its_place_and_a_way_out(name: str, golden: Callable[[Path, str], None]) -> None:
    found = complaints(name)
    golden(MISTAKES / f"{name}.txt", render_all(found).replace(str(MISTAKES), "FOLDER"))
    errors = [d for d in found if d.is_error]
    assert len(errors) == 1
    assert errors[0].code in entries()
    assert errors[0].labels and errors[0].help


def applies(error: Diagnostic, wrong: str, fixed: str) -> bool:
    """Whether writing a piece of the help over, before or behind the marked place turns one text into the other."""
    span, advice = error.labels[0].span, error.help or ""
    if "leave" in advice and wrong[: span.start] + wrong[span.end :] == fixed:
        return True
    starts = [match.end() for match in BEGINS.finditer(advice)]
    ends = [match.end() for match in TOKEN.finditer(advice)]
    for written in {advice[start:end] for start in starts for end in ends if end > start}:
        place = fixed.find(written)
        while place >= 0:
            kept = len(fixed) - place - len(written)
            touches = place <= span.end and len(wrong) - kept >= span.start and place + kept <= len(wrong)
            if touches and wrong.startswith(fixed[:place]) and wrong.endswith(fixed[place + len(written) :]):
                return True
            place = fixed.find(written, place + 1)
    return False


BY_HAND = {
    "bracket_never_closed",
    "comment_with_slashes",
    "count_with_condition",
    "delta_too_large",
    "local_with_curator",
    "norm_never_closed",
    "output_that_is_an_input",
    "privacy_missing",
    "reserved_name",
    "section_twice",
}
"""Fixes that take more than writing one piece of text in one place."""


@pytest.mark.parametrize("name", FIXED)
def test_the_fix_that_is_named_works(name: str) -> None:
    (error,) = (d for d in complaints(name) if d.is_error)
    written = Counter(TOKEN.findall(read(f"{name}.fixed"))) - Counter(TOKEN.findall(read(name)))
    assert not set(written) - set(TOKEN.findall(error.help or "")), "the fix writes what the help does not name"
    assert name in BY_HAND or applies(error, read(name), read(f"{name}.fixed")), "what the help writes is another text"
    check(f"{name}.fixed")
