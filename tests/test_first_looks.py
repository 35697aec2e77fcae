"""A first look at a spec spares modules, and never hides a spec from the family that takes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from privspec.core.diagnostics import PrivspecError
from privspec.core.spans import Source
from privspec.model.build import load_model
from privspec.registry import FAMILIES, family_of

TOP = Path(__file__).parents[1]
SPECS = sorted([*TOP.glob("specs/*.priv"), *TOP.glob("tests/questions/**/*.priv"), *TOP.glob("tests/golden/**/*.priv")])


@pytest.mark.parametrize(("every", "families"), [(4, 8), pytest.param(1, len(FAMILIES) - 2, marks=pytest.mark.slow)])
def test_each_spec_is_taken_by_the_first_family_that_reads_it(every: int, families: int) -> None:
    taken = set()
    for path in SPECS[::every]:
        try:
            model = load_model(Source(path.name, path.read_text(encoding="utf-8")), base=path.parent)
            whole = next(family for family in FAMILIES if family.reads.reads(model))
        except PrivspecError:
            continue
        assert family_of(model) is whole, path
        taken.add(whole.form)
    assert len(taken) >= families, taken
