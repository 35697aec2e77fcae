"""One record, of any bytes or kind, moves one unit at most, and neither refusals nor messages, whatever the format."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from privspec.core.diagnostics import PrivspecError
from privspec.execute.sketching import found_in
from privspec.execute.sources import TextFiles
from tests.execute.knowing import SEEDS

from .neighbours import CASES, FORMATS, Case, Format, any_pair

NAMED = [pytest.param(form, id=form.name) for form in FORMATS]
EACH = -(-2_000 // len(FORMATS))
"""Pairs of each format, 2,000 together."""


def outcome(case: Case, source: Any, texts: TextFiles, size: int) -> tuple[str, Any]:
    """What is read; or what is said, all but the folder that the files are in. Data are known again."""
    found_in("x", source, SEEDS)
    try:
        return "read", case.read(source, texts, size)
    except PrivspecError as error:
        said = [(one.code, one.message, one.notes, one.help) for one in error.diagnostics]
        return "refused", repr(said).replace("/before/", "/").replace("/after/", "/")


def violations(form: Format, folder: Path, pairs: int, seed: int) -> list[str]:
    draws, found = random.Random(f"{form.name} {seed}"), []
    for _ in range(pairs):
        pair = any_pair(draws, folder, form, outcome)
        if not pair.sound:
            found.append(f"{pair.words}\n    {str(pair.before)[:600]}\n    {str(pair.after)[:600]}")
    return found


@pytest.mark.parametrize("form", NAMED)
def test_a_record_decides_nothing_but_its_own_unit(form: Format, tmp_path: Path) -> None:
    assert not violations(form, tmp_path, form.some, 1)


@pytest.mark.slow
@pytest.mark.parametrize("form", NAMED)
def test_a_record_decides_nothing_but_its_own_unit_in_2000_pairs(form: Format, tmp_path: Path) -> None:
    assert not violations(form, tmp_path, EACH, 2)


def test_every_case_is_held_by_some_format() -> None:
    assert all(any(form.fits(case) for form in FORMATS) for case in CASES)
