"""A walk through the language: every form solves, or one clear line refuses it (language_forms.txt)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from privspec.api import Problem
from privspec.core.catalogue import entries
from privspec.core.diagnostics import PrivspecError

TEXT = (Path(__file__).parent / "language_forms.txt").read_text("utf-8")
FORMS = re.findall(r"^== (.+) => (\w+)\n((?:(?!== ).*\n?)*)", TEXT, flags=re.M)
"""Name, what becomes of it ("solves", "infeasible", or the code of its error), and a spec."""
SLOW = ("probit_mle",)
"""Forms whose losses are simulated."""


def _case(name: str, *rest: str) -> object:
    return pytest.param(*rest, id=name, marks=[pytest.mark.slow] if name in SLOW else [])


@pytest.mark.parametrize(("becomes", "spec"), [_case(*form) for form in FORMS])
def test_every_form_solves_or_is_refused_by_a_line(becomes: str, spec: str) -> None:
    """What is refused today may come to solve; what solves is never refused again."""
    try:
        plan = Problem(spec).solve()
    except PrivspecError as error:
        found = error.diagnostics
        assert found[0].code == becomes
        assert len(found) <= 2
        for one in found:
            assert one.code in entries()
            assert one.labels, "it stands at a place of the spec"
            assert "\n" not in one.message
            assert len(one.message) <= 200
        return
    assert becomes.startswith("PS") or plan.feasible == (becomes == "solves")


def test_the_list_is_read_whole() -> None:
    names = [name for name, *_ in FORMS]
    assert len(names) == len(set(names)) == TEXT.count("\n== ")
    assert len(names) >= 120
