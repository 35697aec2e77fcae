"""Privacy against loss: ranges, one solve for all values, and the same answers as separate solves."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspec.api import Problem
from privspec.compile.problem import Settings
from privspec.core.diagnostics import SpecError, UsageError
from privspec.core.spans import Source
from privspec.pipeline import Request
from privspec.sweep import frontier_svg, parse_range, sweep_spec, table_csv, table_json
from privspec.templates import template_text


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
    assert header == ["delta", "loss", "lower_bound", "relative_gap", "mechanism"]
    assert first[:4] == ["0", "", "", ""]
    assert float(second[1]) == rows[1].loss
    assert frontier_svg("delta", rows).lstrip().startswith("<")


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
    picture = frontier_svg("epsilon", rows)
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
    assert all(row.relative_gap is not None and row.relative_gap > 1 for row in rows)
    picture = frontier_svg("d", rows)
    assert "minus the loss" in picture
    assert "certified upper bound" in picture
