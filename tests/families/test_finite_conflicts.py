"""Finite specs that nothing can meet: the lines that conflict, none too many, and changes that work as they say."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from math import tanh

import pytest

from privspec.api import Problem
from privspec.explain.summary import infeasible_text
from privspec.plan import Plan


def spec(
    variables: str, background: str, privacy: str, loss: str = "E[ (z - x)^2 ]", accuracy: str = "", fairness: str = ""
) -> str:
    """A spec with one statement a line."""
    sections = {
        "variables": variables,
        "background": background,
        "loss": loss,
        "accuracy": accuracy,
        "privacy": privacy,
        "fairness": fairness,
    }
    written = [f"{name}:\n  " + "\n  ".join(text.split("; ")) for name, text in sections.items() if text]
    return "\n".join(written) + "\n"


@dataclass(frozen=True)
class Case:
    """A spec, the lines that conflict, and for each change that is offered the line as it then reads.

    `just` are lines a little beyond the changes, which do not work.
    """

    text: str
    lines: tuple[str, ...]
    changes: dict[str, str]
    just: tuple[str, ...] = ()
    hopeless: tuple[str, ...] = field(default=())


UNBIASED = spec("input x in 1..10; output z in 1..10", "x ~ uniform; E[z | x] = x", "z is 1.0-LDP wrt x")
CASES = {
    "an unbiased report within the range of the values": Case(
        UNBIASED,
        ("output z in 1..10", "E[z | x] = x", "z is 1.0-LDP wrt x"),
        {
            "widen z to at least -5..16": "output z in -5..16",
            "accept alpha = 0.46 of the signal: E[z | x] = 0.46 * x + 2.97": "E[z | x] = 0.46 * x + 2.97",
        },
        ("output z in -4..16", "output z in -5..15", "E[z | x] = 0.47 * x + 2.92"),
        ("no epsilon is enough: for x = 10 an unbiased z must always be 10",),
    ),
    "a report whose mean is out of reach": Case(
        spec("input x in 1..5; output z in 1..5", "x ~ uniform; E[z | x] = 7", "z is 1-LDP wrt x"),
        ("output z in 1..5", "E[z | x] = 7"),
        {"widen z to at least 1..7": "output z in 1..7"},
        ("output z in 1..6",),
    ),
    "more signal than epsilon and delta allow": Case(
        spec("input x in 1..5; output z in 1..5", "x ~ uniform; E[z | x] = 0.9 * x + 0.3", "z is (1, 0.01)-LDP wrt x"),
        ("output z in 1..5", "E[z | x] = 0.9 * x + 0.3", "z is (1, 0.01)-LDP wrt x"),
        {"accept (2.94, 0.01)-LDP": "z is (2.94, 0.01)-LDP wrt x"},
        ("z is (2.92, 0.01)-LDP wrt x",),
    ),
    "a scale that must be large": Case(
        spec(
            "input x in 1..10; output z in 1..10; choose alpha in [0.6, 1]; choose B in law(1..10)",
            "x ~ uniform; E[z | x] = alpha * x + (1 - alpha) * E[B]",
            "z is 1.0-LDP wrt x",
        ),
        (
            "output z in 1..10",
            "choose alpha in [0.6, 1]",
            "E[z | x] = alpha * x + (1 - alpha) * E[B]",
            "z is 1.0-LDP wrt x",
        ),
        {"let alpha be as small as 0.462": "choose alpha in [0.462, 1]", "accept 1.39-LDP": "z is 1.39-LDP wrt x"},
        ("choose alpha in [0.463, 1]", "z is 1.38-LDP wrt x"),
    ),
    "more accuracy than privacy allows": Case(
        spec(
            "input x in 1..6; output z in 1..6",
            "x ~ uniform",
            "z is 0.5-LDP wrt x",
            "E[ |z - x| ]",
            "E[ (z - x)^2 ] <= 1",
        ),
        ("E[ (z - x)^2 ] <= 1", "z is 0.5-LDP wrt x"),
        {"accept E[ (z - x)^2 ] <= 2.8": "E[ (z - x)^2 ] <= 2.8", "accept 3-LDP": "z is 3-LDP wrt x"},
        ("E[ (z - x)^2 ] <= 2.78", "z is 2.98-LDP wrt x"),
    ),
    "an error bound at every value": Case(
        spec(
            "input x in {0, 1, 2, 3}; output z in {0, 1, 2, 3}",
            "x ~ uniform; E[(z - x)^2 | x] <= 0.4",
            "z is 1-metric-DP wrt x, distance manhattan",
        ),
        ("E[(z - x)^2 | x] <= 0.4", "z is 1-metric-DP wrt x, distance manhattan"),
        {
            "accept E[ (z - x)^2 | x ] <= 0.4 + 0.391": "E[(z - x)^2 | x] <= 0.791",
            "accept 1.61-metric-DP (manhattan distance)": "z is 1.61-metric-DP wrt x, distance manhattan",
        },
        ("E[(z - x)^2 | x] <= 0.789", "z is 1.6-metric-DP wrt x, distance manhattan"),
    ),
    "accuracy, privacy and equal treatment": Case(
        spec(
            "input group in {young, old}; input outcome in {well, ill}; output report in {well, ill}",
            "(group, outcome) ~ categorical([[45, 5], [25, 25]])",
            "report is 1-LDP wrt outcome",
            "E[ mismatch(report, outcome) ]",
            "E[ mismatch(report, outcome) ] <= 0.27",
            "report is independent of group, up to 0.05",
        ),
        (
            "E[ mismatch(report, outcome) ] <= 0.27",
            "report is 1-LDP wrt outcome",
            "report is independent of group, up to 0.05",
        ),
        {
            "accept groups up to 0.13 apart": "report is independent of group, up to 0.13",
            "accept E[ mismatch(report, outcome) ] <= 0.289": "E[ mismatch(report, outcome) ] <= 0.289",
            "accept 1.26-LDP": "report is 1.26-LDP wrt outcome",
            "accept (1, 0.0889)-LDP": "report is (1, 0.0889)-LDP wrt outcome",
        },
        (
            "report is independent of group, up to 0.129",
            "E[ mismatch(report, outcome) ] <= 0.288",
            "report is 1.25-LDP wrt outcome",
            "report is (1, 0.0885)-LDP wrt outcome",
        ),
    ),
}


@cache
def solved(text: str) -> Plan:
    return Problem(text).solve()


def changed(text: str, old: tuple[str, ...], line: str) -> str:
    """The spec with the one of its lines that begins like this one replaced by it."""

    def likeness(other: str) -> int:
        return next((k for k, pair in enumerate(zip(other, line, strict=False)) if pair[0] != pair[1]), len(line))

    return text.replace(max(old, key=likeness), line)


@pytest.mark.parametrize("name", CASES)
def test_the_least_set_of_lines(name: str) -> None:
    case = CASES[name]
    document = solved(case.text).document
    assert document["status"] == "infeasible"
    assert tuple(entry["text"] for entry in document["conflicts"]) == case.lines
    rows = case.text.split("\n")
    for entry in document["conflicts"]:
        assert rows[entry["line"] - 1].strip() == entry["text"]
    works = {r["change"] for r in document["relaxations"] if r.get("works", True)}
    assert works >= set(case.changes)
    assert tuple(r["change"] for r in document["relaxations"] if not r.get("works", True)) == case.hopeless


@pytest.mark.parametrize("name", CASES)
def test_changes_work_cost_what_they_say_and_are_the_smallest(name: str) -> None:
    case = CASES[name]
    offered = {r["change"]: r for r in solved(case.text).document["relaxations"]}
    for change, line in case.changes.items():
        text = changed(case.text, case.lines, line)
        entry = offered[change]
        assert text.split("\n")[entry["line"] - 1].strip() == line
        plan = solved(text)
        assert plan.feasible
        if entry["loss"] is not None:
            assert entry["loss"] == pytest.approx(plan.loss.value, rel=1e-5)
    for line in case.just:
        assert not solved(changed(case.text, case.lines, line)).feasible


def test_the_largest_share_of_the_signal() -> None:
    offered = solved(UNBIASED).document["relaxations"]
    (share,) = [r["change"] for r in offered if "of the signal" in r["change"]]
    assert tanh(1 / 2) - 0.01 < float(share.split()[3]) <= tanh(1 / 2)


def test_one_share_for_two_conditions() -> None:
    text = spec(
        "input x in 1..10; output z in 1..10",
        "x ~ uniform; E[z | x] = x; E[1 / z | x] = 1 / x",
        "z is 1.0-LDP wrt x",
    )
    document = solved(text).document
    (found,) = [r for r in document["relaxations"] if r.get("works", True)]
    first, second = found["change"].removeprefix("accept alpha = 0.33 of the signal: ").split("; ")
    both = text.replace("E[z | x] = x", first).replace("E[1 / z | x] = 1 / x", second)
    assert solved(both).loss.value == pytest.approx(found["loss"], rel=1e-6)


def test_the_page() -> None:
    text = infeasible_text(solved(UNBIASED).document)
    assert "Smallest single changes that work:\n" in text
    assert text.endswith("  no epsilon is enough: for x = 10 an unbiased z must always be 10  (line 10)\n")
    assert text.startswith(
        "infeasible[PS0601]: these lines cannot all hold\n"
        "     3 | output z in 1..10\n"
        "     6 | E[z | x] = x\n"
        "    10 | z is 1.0-LDP wrt x\n"
    )
