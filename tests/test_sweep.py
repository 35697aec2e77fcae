"""Privacy against loss: ranges, one solve for all values, and the same answers as separate solves."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspec.api import Problem
from privspec.core.diagnostics import Diagnostic, SolveError, SpecError, UsageError
from privspec.core.spans import Source
from privspec.families.family import Family, Settings
from privspec.manual import template_text
from privspec.model.graph import Model
from privspec.pipeline import Request
from privspec.sweep import files_of, frontier_svg, parse_range, sweep_files, sweep_spec, table_csv, table_json


def request(text: str) -> Request:
    return Request(Source("test.priv", text))


PREFIX = template_text("prefix_sums").replace("n = 64", "n = 6")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("epsilon=0.1,0.5,1", ("epsilon", ("0.1", "0.5", "1"))),
        (" epsilon = 0.1 , 1/2 ", ("epsilon", ("0.1", "1/2"))),
        ("n=1:9:lin:5", ("n", ("1", "3", "5", "7", "9"))),
        ("epsilon=0.1:10:log:3", ("epsilon", ("0.1", "1", "10"))),
        ("epsilon=1/4:4:log:5", ("epsilon", ("0.25", "0.5", "1", "2", "4"))),
        ("epsilon=2:2:log:1", ("epsilon", ("2",))),
        ("epsilon=3:9:lin:1", ("epsilon", ("3",))),
    ],
)
def test_ranges(text: str, expected: tuple[str, tuple[str, ...]]) -> None:
    assert parse_range(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "epsilon",
        "=1,2",
        "epsilon=",
        "epsilon=1:2",
        "epsilon=1:2:log",
        "epsilon=1:2:cubic:3",
        "epsilon=2:1:log:3",
        "epsilon=0:1:log:3",
        "epsilon=-1:1:log:3",
        "epsilon=1:2:log:0",
        "epsilon=1:2:log:-3",
        "epsilon=1:2:log:1000000",
        "epsilon=1:2:log:x",
        "epsilon=a:2:log:3",
        "epsilon=1/0:2:log:3",
        "epsilon=nan:2:log:3",
        "epsilon=1:inf:lin:3",
        "epsilon=,",
        "epsilon=1:1e999:lin:3",
        "epsilon=1e-999999999:1:lin:3",
        "epsilon=1:1e999999999:log:3",
        "epsilon=1:snan:lin:3",
        "epsilon=1:2/nan:lin:3",
    ],
)
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_range(text)
    assert [d.code for d in caught.value.diagnostics] == ["PS0722"]


@given(st.text(max_size=20))
def test_any_text_is_a_range_or_refused(text: str) -> None:
    for given_text in (text, f"a={text}", f"a=1:2:log:{text}", f"a={text}:2:lin:3"):
        try:
            name, values = parse_range(given_text)
        except UsageError:
            continue
        assert name
        assert values


@pytest.mark.parametrize("options", ["", "  noise at x, y\n"])
def test_a_sweep_is_what_separate_solves_give(options: str) -> None:
    text = PREFIX + options
    values = ("0.1", "0.5", "1", "4")
    settings = Settings()
    rows = sweep_spec(request(text), "epsilon", values, settings=settings)
    assert settings.cache.hits == len(values) - 1
    for row, value in zip(rows, values, strict=True):
        plan = Problem(text).solve(epsilon=value)
        assert row.value == value
        assert row.loss == pytest.approx(plan.loss.value, rel=1e-6)
        assert row.lower_bound == pytest.approx(plan.loss.lower_bound, rel=1e-6)
        assert row.relative_gap is not None
        assert 0 <= row.relative_gap <= 1e-6
    losses = [row.loss for row in rows]
    assert losses == sorted(losses, reverse=True)  # type: ignore[type-var]


def test_a_sweep_over_a_size_solves_each() -> None:
    settings = Settings()
    rows = sweep_spec(request(template_text("prefix_sums")), "n", ("2", "4", "8"), settings=settings)
    assert settings.cache.hits == 0
    assert [row.loss for row in rows] == sorted(row.loss for row in rows)  # type: ignore[type-var]


def test_a_sweep_tells_how_far_it_is() -> None:
    told: list[tuple[int, int]] = []
    sweep_spec(request(PREFIX), "epsilon", ("1", "2"), progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]


def test_values_without_a_mechanism_have_an_empty_row() -> None:
    """With delta 0 no Gaussian noise will do."""
    rows = sweep_spec(request(PREFIX), "delta", ("0", "1e-6"))
    assert rows[0].loss is None
    assert rows[0].mechanism
    assert rows[1].loss is not None
    (header, first, second) = csv.reader(io.StringIO(table_csv("delta", rows)))
    assert header == ["delta", "loss", "lower_bound", "relative_gap", "mechanism", "status"]
    assert first[:4] == ["0", "", "", ""]
    assert (first[5], second[5]) == ("infeasible", "solved")
    assert float(second[1]) == rows[1].loss
    assert (frontier_svg("delta", rows) or "").lstrip().startswith("<")


@pytest.mark.parametrize(("name", "value"), [("epsilon", "0"), ("epsilon", "nan"), ("nothing", "1"), ("delta", "-1")])
def test_values_that_make_no_spec(name: str, value: str) -> None:
    with pytest.raises(SpecError):
        sweep_spec(request(PREFIX), name, (value,))


def test_tables() -> None:
    rows = sweep_spec(request(PREFIX), "epsilon", ("0.5", "1"))
    data = json.loads(table_json("epsilon", rows))
    assert (data["format"], data["over"]) == ("privspec-sweep/1.0", "epsilon")
    assert [row["value"] for row in data["rows"]] == ["0.5", "1"]
    table = list(csv.DictReader(io.StringIO(table_csv("epsilon", rows))))
    assert [float(row["loss"]) for row in table] == [row.loss for row in rows]
    picture = frontier_svg("epsilon", rows) or ""
    assert "<svg" in picture
    assert "</svg>" in picture


def test_losses_below_zero_are_drawn_as_what_is_gained() -> None:
    """Rounds of votes that fit a budget: the loss is minus their number."""
    text = """spec v
parameters:
  budget = 2
  d = 0.1
parties:
  voter in 1..40
variables:
  input vote[voter] in {gate, bridge, tower}
  choose rounds in 1..100
  output O
loss:
  -rounds
privacy:
  O is (budget / rounds)-DP wrt vote, adding or removing one voter
accuracy:
  worst[ total_variation(O, random_dictator(vote)) ] <= d
options:
  noise family dictator
"""
    rows = sweep_spec(request(text), "d", ("0.1", "0.2"))
    assert [row.loss for row in rows] == [-5.0, -12.0]
    assert all(row.relative_gap == 0 for row in rows)
    picture = frontier_svg("d", rows)
    assert "minus the loss" in picture
    assert "certified upper bound" in picture


# --- values that fail, and files ------------------------------------------------------------------------------


def test_a_value_that_fails_does_not_end_the_sweep() -> None:
    """Each has a row that says why; only where all fail the first error stands for all."""
    rows = sweep_spec(request(PREFIX), "epsilon", ("0", "1", "-2", "word", "2"))
    assert [row.status for row in rows] == ["refused", "solved", "refused", "refused", "solved"]
    assert all(row.mechanism.startswith("PS0") for row in rows if row.loss is None)
    data = json.loads(table_json("epsilon", rows))
    assert [row["loss"] is None for row in data["rows"]] == [True, False, True, True, False]
    assert len(list(csv.reader(io.StringIO(table_csv("epsilon", rows))))) == 6
    assert frontier_svg("epsilon", rows) is not None


def test_an_answer_that_does_not_come_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    from privspec import sweep

    real = sweep.compiler_of

    def compiler_of(model: Model) -> Family:
        if model.parameters["epsilon"] == 2:
            raise SolveError(Diagnostic("PS0610", "no answer within the limits"))
        return real(model)

    monkeypatch.setattr(sweep, "compiler_of", compiler_of)
    rows = sweep_spec(request(PREFIX), "epsilon", ("1", "2", "3"))
    assert [row.status for row in rows] == ["solved", "unsolved", "solved"]
    with pytest.raises(SolveError):
        sweep_spec(request(PREFIX), "epsilon", ("2",))


def test_nothing_to_draw() -> None:
    assert frontier_svg("delta", sweep_spec(request(PREFIX), "delta", ("0",))) is None
    solved = sweep_spec(request(PREFIX), "epsilon", ("1",))
    assert frontier_svg("epsilon", [replace(row, value="{a, b}") for row in solved]) is None


@pytest.mark.parametrize(
    ("output", "plot", "as_json", "expected"),
    [
        (None, None, False, (None, None)),
        (None, "p.svg", False, (None, "p.svg")),
        ("x.csv", None, False, ("x.csv", "x.svg")),
        ("x.csv", None, True, ("x.csv", "x.svg")),
        ("x.json", None, False, ("x.json", "x.svg")),
        ("x.svg", None, False, ("x.csv", "x.svg")),
        ("x.svg", None, True, ("x.json", "x.svg")),
        ("a.b/x.svg", "p.svg", False, ("a.b/x.csv", "p.svg")),
    ],
)
def test_a_table_and_a_plot(
    output: str | None, plot: str | None, as_json: bool, expected: tuple[str | None, str | None]
) -> None:
    given = (None if name is None else Path(name) for name in (output, plot))
    assert sweep_files(*given, (), as_json=as_json) == tuple(None if n is None else Path(n) for n in expected)


@pytest.mark.parametrize(("output", "plot"), [("x", None), ("x.txt", None), ("x.priv", None), ("x.csv", "p.csv")])
def test_other_suffixes_are_refused(output: str, plot: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        sweep_files(Path(output), None if plot is None else Path(plot), ())
    assert [d.code for d in caught.value.diagnostics] == ["PS0721"]


@pytest.mark.parametrize("output", ["data.csv", "data.svg", "../{here}/data.csv"])
def test_what_a_sweep_reads_is_not_overwritten(tmp_path: Path, output: str) -> None:
    text = 'variables:\n  constant A = csv("data.csv")\n  input x in [0, 1]^2\n  output O\n'
    spec = Request(Source("t.priv", text), base=tmp_path)
    assert files_of(spec) == (tmp_path / "data.csv",)
    with pytest.raises(UsageError) as caught:
        sweep_files(tmp_path / output.format(here=tmp_path.name), None, files_of(spec))
    assert "overwritten" in caught.value.diagnostics[0].message
