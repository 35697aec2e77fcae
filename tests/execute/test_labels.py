"""Labels of outputs: on the page for people, in files, in words; a spec without them is as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from privspec.api import Problem
from privspec.core.spans import Source
from privspec.explain.graphs import describe_graph
from privspec.language.formatter import format_source
from privspec.pipeline import Request, check

TEXT = """\
variables:
  input x in [0, 1]^3
  output O "people over 65"
  output P
loss: E[ (O - sum(x))^2 ] + E[ ||P - x||^2 ]
privacy: all outputs are 1-GDP wrt x, replacing one entry
"""


def test_the_public_page_uses_the_label() -> None:
    page = Problem(TEXT, {}).solve().explain("public")
    assert "The noise alone typically moves the published “people over 65” by" in page
    assert "each figure in result P by" in page
    assert " O " not in page
    assert "people over 65" not in Problem(TEXT.replace(' "people over 65"', ""), {}).solve().explain("public")


def test_files_carry_the_label(tmp_path: Path) -> None:
    release = Problem(TEXT, {}).solve().run({"x": [0.1, 0.2, 0.3]}, tmp_path / "l.db", new_ledger=True)
    rows = release.rows()
    assert list(rows)[:2] == ["output", "called"]
    assert rows["called"].tolist() == ["people over 65", None, None, None]
    document = release.to_json()["outputs"]
    assert document["O"]["called"] == "people over 65"
    assert "called" not in document["P"]


def test_a_computed_output_has_its_label_too(tmp_path: Path) -> None:
    text = TEXT.replace("  output P", '  output Q "half of them" = O / 2\n  output P')
    plan = Problem(text, {}).solve()
    rows = plan.run({"x": [0.1, 0.2, 0.3]}, tmp_path / "l.db", new_ledger=True).rows()
    assert rows["called"].tolist().count("half of them") == 1
    assert "From these figures “half of them” is worked out afterwards" in plan.explain("public")


def test_check_prints_it() -> None:
    assert 'called "people over 65"' in describe_graph(check(Request(Source("a.priv", TEXT))))


@pytest.mark.parametrize("line", ['output O "people over 65" in 0..5', 'input x[voter] "a vote" in {a, b} = z'])
def test_it_is_formatted(line: str) -> None:
    text = f"variables:\n  {line}\n"
    assert format_source(Source("a.priv", text)) == text
