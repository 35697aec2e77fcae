"""Requirements that cannot hold together: the lines that conflict, and ways out that cost what they say."""

from __future__ import annotations

import pytest

from privspec.api import Problem
from privspec.plan import Plan

from .cases import ENTRY, PREFIX, SQUARES
from .specs import spec

SERIES = "input x in [0, 1]^4; intermediate y; output O"
TWO = (
    "input x in [0, 1]^4; intermediate y; intermediate t; output O; output P",
    "y = x; t = total(x)",
    "E[ ||O - y||^2 ] + E[ (P - t)^2 ]",
    "(O, P) is 1-GDP wrt x, replacing one entry",
)

CASES: dict[str, tuple[str, list[str], list[tuple[str, str]]]] = {
    "noise at a place that leaves a difference bare": (
        spec(*TWO, "noise at t"),
        ["noise at t", "(O, P) is 1-GDP wrt x, replacing one entry"],
        [
            ("noise at t, x", "noise at t, x"),
            ("noise at t, y", "noise at t, y"),
            ("noise at t, O", "noise at t, O"),
            ("drop the line", "trust curator"),
        ],
    ),
    "nobody trusted with noise at an answer": (
        spec(SERIES, PREFIX, SQUARES, ENTRY, "trust nobody; noise at y"),
        ["trust nobody", "noise at y"],
        [("trust curator", "trust curator"), ("noise at x", "noise at x")],
    ),
    "a family that never satisfies the measure": (
        spec(SERIES, PREFIX, SQUARES, "O is 1-DP wrt x, replacing one entry", "noise family gaussian"),
        ["noise family gaussian", "O is 1-DP wrt x, replacing one entry"],
        [
            ("drop the line", "trust curator"),
            ("accept (1, 1e-6)-DP", "O is (1, 1e-6)-DP wrt x, replacing one entry"),
        ],
    ),
    "an input without bounds": (
        spec("input x in real^4; intermediate y; output O", PREFIX),
        ["input x in real^4", ENTRY],
        [("give x a bounded domain, such as [0, 1]", "input x in [0, 1]^4")],
    ),
    "a table of any size": (
        spec(
            "input p in table(a in 0..2); output O",
            "",
            "E[ ||O - histogram(p)||^2 ]",
            "O is 1-GDP wrt p, replacing everything",
        ),
        ["input p in table(a in 0..2)", "O is 1-GDP wrt p, replacing everything"],
        [],
    ),
    "more accuracy than privacy allows": (
        spec(SERIES, PREFIX) + "\naccuracy:\n  E[ (O[1] - y[1])^2 ] <= 0.5",
        ["E[ (O[1] - y[1])^2 ] <= 0.5", ENTRY],
        [],
    ),
}


def solved(text: str) -> Plan:
    return Problem(text).solve()


@pytest.mark.parametrize("name", CASES)
def test_the_lines_that_conflict(name: str) -> None:
    text, lines, _ = CASES[name]
    plan = solved(text)
    assert (plan.status, plan.feasible) == ("infeasible", False)
    found = plan.document["conflicts"]
    assert [entry["text"] for entry in found] == lines
    rows = text.split("\n")
    for entry in found:
        assert rows[entry["line"] - 1].strip() == entry["text"]
    assert plan.document["reason"]
    assert plan.document["relaxations"]
    for entry in plan.document["relaxations"]:
        assert entry["line"] is None or entry["line"] in {e["line"] for e in found}


@pytest.mark.parametrize("name", CASES)
def test_ways_out_work_and_cost_what_they_say(name: str) -> None:
    text, _, changes = CASES[name]
    rows = text.split("\n")
    offered = solved(text).document["relaxations"]
    for start, line in changes:
        entry = next(e for e in offered if e["change"].startswith(start))
        changed = [*rows]
        changed[entry["line"] - 1] = line
        plan = solved("\n".join(changed))
        assert plan.feasible
        if entry["loss"] is not None:
            assert entry["loss"] == pytest.approx(plan.loss.value, rel=1e-5)


def test_an_accuracy_that_is_just_allowed() -> None:
    text = spec("input x in [0, 1]^2; output O", "", "E[ ||O - x||^2 ]")
    tight = "accuracy:\n  E[ (O[1] - x[1])^2 ] <= 0.999\n"
    wide = "accuracy:\n  E[ (O[1] - x[1])^2 ] <= 1.001\n"
    assert not solved(f"{tight}{text}").feasible
    assert solved(f"{wide}{text}").loss.value == pytest.approx(2, rel=1e-3)
