"""What is written is what is read: every problem of the corpus, form by form, and arrays of every size and unit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from importlib import import_module
from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspec.api import Problem
from privspec.kernel import judge
from privspec.kernel.core.problem import Frame
from privspec.kernel.core.reading import Grid, JsonNode, Refused, canonical, read
from privspec.kernel.writing import LISTED, array, exact_grid, write
from privspec.problem.elaborate import elaborate
from tests.corpus.mutants import stored_plans
from tests.plans import executed_of, mutate, solved

FORMS = {
    "votes": "voting.Vote",
    "priced": "priced.Priced",
    "chain": "chains.ChainBlock",
    "points": "points.PointBlock",
    "cells": "reports.CellBlock",
    "frequencies": "reports.FrequencyBlock",
    "keys": "keys.KeyBlock",
    "selection": "selection.Selected",
    "marginals": "marginals.Marginals",
    "stream": "streams.Stream",
    "system": "systems.System",
    "table": "tables_forms.Task",
    "design": "designs.Design",
}
"""Where the type of each form stands in the kernel."""
LONG_ROW = """spec totals
variables:
  input x in [0, 1]^4000
  intermediate y
  output O
background:
  y = prefix_sums(x)
loss: E[ ||O - y||^2 ]
privacy:
  O is 1-GDP wrt x, replacing up to 3 entries, exactly 200 apart
"""
"""The one form of which no plan is short enough to be stored."""


@cache
def problems() -> dict[str, list[dict[str, Any]]]:
    """The problems of the stored plans, those of parts and of alternatives among them, by the form of their block."""
    found: dict[str, list[dict[str, Any]]] = {}

    def collect(problem: dict[str, Any]) -> None:
        (block,) = problem["blocks"]
        found.setdefault(block["form"], []).append(problem)
        if block["form"] == "priced":
            collect({**problem, "blocks": [block["block"]]})
        for part in block.get("parts", ()):
            collect(part["problem"])

    for text in stored_plans().values():
        plan = json.loads(text)
        collect(plan["problem"])
        if "design" in plan:
            found.setdefault("design", []).append({**plan["problem"], "blocks": [plan["design"]["problem"]]})
    collect(write(elaborate(Problem(LONG_ROW).check())))
    return found


def type_of(form: str) -> Any:
    home, _, name = FORMS[form].rpartition(".")
    return getattr(import_module(f"privspec.kernel.{home}"), name)


def stays(kind: Any, value: Any) -> Any:
    """A value as it is read, if writing gives what was read, and reading that an equal value."""
    found = read(kind, JsonNode(value, "value"))
    assert canonical(write(found)) == canonical(value)
    again = read(kind, JsonNode(write(found), "value"))
    assert write(again) == write(found)
    return found


def test_the_frame_of_every_problem_is_written_as_it_is_read() -> None:
    for some in problems().values():
        for problem in some:
            stays(Frame, problem)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_written_as_it_is_read(form: str) -> None:
    assert problems()[form]
    for problem in problems()[form]:
        stays(type_of(form), problem["blocks"][0])


UNREAD = ("block", "problem")
"""What a form holds that is read by the rules of another."""


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """All objects of a value that are read with it."""
    if isinstance(value, dict):
        yield value
        value = [part for key, part in value.items() if key not in UNREAD]
    for part in value if isinstance(value, list) else ():
        yield from objects(part)


@pytest.mark.parametrize("form", FORMS)
def test_the_world_of_every_form_is_closed(form: str) -> None:
    """A key more is refused wherever an object of a type stands, and is never carried along unread."""
    problem = min(problems()[form], key=lambda one: len(json.dumps(one)))
    block = json.loads(json.dumps(problem["blocks"][0]))
    for one in objects(block):
        one["more"] = 0
        with pytest.raises(Refused, match="more"):
            read(type_of(form), JsonNode(block, "block"))
        del one["more"]


UNITS = st.fractions(min_value=Fraction(1, 2**60), max_value=2**20)
SHAPES = st.lists(st.integers(0, 5), min_size=1, max_size=3).map(tuple)


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    shape = draw(SHAPES)
    sizes = st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-(10**40), 10**40)
    return Grid(shape, draw(UNITS), tuple(draw(sizes) for _ in range(prod(shape))))


@given(grids(), st.sampled_from((0, LISTED)))
def test_arrays_are_read_as_they_were_written(one: Grid, listed: int) -> None:
    """Plain and packed; numbers beyond 64 bits are listed however many there are."""
    written = array(one, listed)
    wide = any(abs(entry) >= 2**63 for entry in one.entries)
    assert ("data" in written) == (len(one.entries) > listed and not wide)
    item = JsonNode(json.loads(json.dumps(written)), "array")
    assert item.array(*item.extents()) == one


@given(st.lists(st.fractions(max_denominator=10**6), min_size=1, max_size=6))
def test_exact_values_stay_what_they_are(values: list[Fraction]) -> None:
    assert exact_grid(values).values() == values


def test_long_arrays_are_packed() -> None:
    """And the same whichever way they are made."""
    one = exact_grid(range(LISTED + 1))
    assert "data" in array(one)
    assert "rows" in array(exact_grid(range(LISTED)))
    assert write(one) == array(one)


TYPED = (
    "correlated_readings",
    "location_reports",
    "rounded_answers",
    "local_words",
    "pages_read",
    "wang_algorithm_2",
)


@pytest.mark.parametrize("name", TYPED)
def test_what_is_executed_is_written_as_it_stands_in_a_plan(name: str) -> None:
    """And in one way alone: what the problem says is not repeated, and no key is read that is not written."""
    document = solved(name)
    assert write(executed_of(document)) == document["mechanism"]
    for key in ("block", "output", "leaves_out"):
        forged = mutate(document, ("mechanism", key), None)
        assert [claim.text for claim in judge(JsonNode(forged, "plan")).failed] == [
            f"plan.mechanism has a key {key!r} that is not known"
        ]


def test_what_has_no_exact_form_is_not_written() -> None:
    with pytest.raises(TypeError, match="no exact form"):
        write(0.5)
