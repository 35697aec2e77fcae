"""Plans of the family "table" made by hand from exact fractions; no compiler, no solver."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from .plans import Plan, _spec, finished, made_once

Rows = list[list[Fraction]]

RESPONSE = '''spec commuting
"""How people travel to work; each sends one randomised report"""
parameters:
  epsilon = 1.0
variables:
  input answer in {car, train, bicycle, foot}
  output report in {car, train, bicycle, foot}
background:
  answer ~ uniform
loss:
  E[ mismatch(report, answer) ]
privacy:
  report is epsilon-LDP wrt answer
options:
  trust nobody
'''

COUNTING = '''spec counting
"""How many of ten people said yes"""
variables:
  input answers in {0, 1}^10
  intermediate total
  output O in 0..10
background:
  total = sum(answers)
  total ~ uniform
loss:
  E[ |O - total| ]
privacy:
  O is 1-DP wrt answers, replacing one record
options:
  trust curator
'''

LINE = '''spec kilometres
"""How far people live from work, in kilometres"""
variables:
  input x in 0..20
  output z in 0..20
background:
  x ~ uniform
loss:
  E[ |z - x| ]
privacy:
  z is 0.5-metric-DP wrt x, distance manhattan
options:
  trust nobody
'''

PLACES = '''spec places
"""Where people are, on a map of 5 by 5 points"""
variables:
  input place in (1..5)^2
  output report in (1..5)^2
loss:
  worst[ ||report - place|| ]
privacy:
  report is 0.8-metric-DP wrt place, distance euclidean
options:
  trust nobody
'''

OBSERVERS = '''spec two_counts
"""A coarse count for the press, a finer one for the auditors"""
variables:
  input answers in {0, 1}^4
  intermediate total
  output rough in 0..4
  output fine in 0..4
background:
  total = sum(answers)
  total ~ uniform
loss:
  E[ |rough - total| ] + E[ |fine - total| ]
privacy:
  rough is 0.5-DP wrt answers, replacing one record, seen by press
  (rough, fine) is 1-DP wrt answers, replacing one record, seen by auditors
options:
  trust curator
'''

PER_ATOM = '''spec single_outputs
"""A number under a condition on each single output"""
variables:
  input x in {low, high}
  choose alpha in (0, 1]
  choose B in law(1..3)
  output z in 1..20
background:
  x ~ uniform
  E[z | x] = alpha * 10 + (1 - alpha) * E[B]
loss:
  E[ (z - 10)^2 ]
privacy:
  z is (1, 0.1)-per-atom-LDP wrt x
options:
  trust nobody
'''

FAIR = '''spec fair_report
"""Whether one fell ill, with like odds in two groups"""
variables:
  input group in {F, M}
  input outcome in {well, ill}
  output report in {well, ill}
background:
  group ~ uniform
  outcome ~ uniform
loss:
  E[ mismatch(report, outcome) ]
privacy:
  report is 1-LDP wrt outcome
fairness:
  report is independent of group given outcome, up to 0.05
options:
  trust nobody
'''


def ratio_down(epsilon: Fraction) -> Fraction:
    """A rational a little below e^epsilon."""
    return Fraction(math.floor(math.exp(epsilon) * 2**40) - 1, 2**40)


def k_response(k: int, epsilon: Fraction) -> Rows:
    """k-randomised response."""
    r = ratio_down(epsilon)
    return [[(r if a == b else Fraction(1)) / (r + k - 1) for b in range(k)] for a in range(k)]


def geometric(n: int, epsilon: Fraction) -> Rows:
    """The truncated geometric mechanism on 0..n."""
    r = 1 / ratio_down(epsilon)

    def entry(i: int, j: int) -> Fraction:
        inner = Fraction(1) if j in (0, n) else 1 - r
        return inner / (1 + r) * r ** abs(i - j)

    return [[entry(i, j) for j in range(n + 1)] for i in range(n + 1)]


def exponential(points: Sequence[tuple[int, int]], epsilon: Fraction) -> Rows:
    """Weights that fall with half the distance; normalising may cost the other half."""
    rows = []
    for a in points:
        weights = [Fraction(math.exp(-float(epsilon) / 2 * math.dist(a, b))).limit_denominator(2**30) for b in points]
        total = sum(weights)
        rows.append([w / total for w in weights])
    return rows


def joint(one: Rows, other: Rows) -> Rows:
    """Two independent draws from each row."""
    return [[p * q for p, q in product(a, b)] for a, b in zip(one, other, strict=True)]


def largest_rate(rows: Rows, pairs: Sequence[tuple[int, int]], apart: Callable[[int, int], float]) -> str:
    """The least epsilon for each unit of distance, as a decimal rounded up."""
    rate = max(
        math.log(rows[a][c] / rows[b][c]) / apart(a, b) for a, b in pairs for c in range(len(rows[0])) if rows[b][c]
    )
    return f"{rate + 1e-12:.15f}"


def _table(of: list[str], releases: list[str], inputs: list[Any], outputs: list[Any], rows: Rows) -> dict[str, Any]:
    return {
        "family": "table",
        "of": of,
        "counted": [],
        "releases": releases,
        "inputs": inputs,
        "outputs": outputs,
        "prior": [str(Fraction(1, len(inputs)))] * len(inputs),
        "probabilities": [[str(p) for p in row] for row in rows],
        "scalars": {},
        "laws": {},
        "recognised": None,
    }


def _guarantee(text: str, measure: str, **figures: Any) -> dict[str, Any]:
    return {
        "observer": "anyone",
        "neighbours": "replacing everything",
        "measure": measure,
        "because": ["tables"],
        "text": text,
        "requirement": 0,
        **figures,
    }


def _plan(
    name: str,
    source: str,
    mechanism: dict[str, Any],
    guarantees: list[dict[str, Any]],
    loss: float,
    kind: str = "expected",
    binding: Sequence[dict[str, Any]] = (),
    recognised: dict[str, Any] | None = None,
    **more: Any,
) -> Plan:
    lines = [line.strip() for line in source.splitlines()]
    number = lines.index("loss:") + 1
    for item in (*guarantees, *more.get("fairness", ()), *binding):
        item["line"] = lines.index(item["text"]) + 1
    return finished(
        {
            "format": "privspec-plan/2.0",
            "spec": _spec(name, source, {"epsilon": "1"} if "epsilon = 1.0" in source else {}),
            "status": "optimal",
            "loss": {
                "value": loss,
                "lower_bound": loss,
                "relative_gap": 1e-15,
                "expression": lines[number],
                "units": "units of the loss expression",
                "among": f"all tables Pr({', '.join(mechanism['releases'])} | {', '.join(mechanism['of'])})",
                "kind": kind,
            },
            "alternatives": [],
            "mechanism": mechanism,
            "guarantees": guarantees,
            "accuracy": [],
            "assumptions": [
                {
                    "text": "Random bits come from the operating system and nobody else knows them.",
                    "status": "assumed",
                    "because": {"note": "tables"},
                }
            ],
            "claims": {"kind": "table", "scope": "tables", "lower_bound": loss, "dual": {}},
            **more,
            "remarks": {
                "binding": list(binding),
                "recognised": recognised,
                "solver": {
                    "name": "tables (rays)",
                    "iterations": 3,
                    "seconds": 0.02,
                    "tolerance": 1e-9,
                    "notes": [],
                    "versions": {"privspec": "0.1.0"},
                },
            },
        }
    )


@made_once
def commuting() -> Plan:
    """4-randomised response at epsilon 1."""
    words = ["car", "train", "bicycle", "foot"]
    rows = k_response(4, Fraction(1))
    mechanism = _table(["answer"], ["report"], words, words, rows)
    truth = f"{float(rows[0][0]):.4g}"
    recognised = {
        "name": "k-randomised response",
        "text": f"the truth with probability {truth}, each other value with {float(rows[0][1]):.4g}",
        "note": "tables",
    }
    guarantee = _guarantee(
        "report is epsilon-LDP wrt answer",
        "epsilon-LDP",
        outputs=["report"],
        wrt="answer",
        epsilon="1.0",
        achieved={"epsilon": "1.0"},
    )
    others = [
        {"name": "exponential mechanism", "loss": 0.6453, "admissible": True, "reason": "half of epsilon is lost"},
        {"name": "the best answer without looking", "loss": 0.75, "admissible": True, "reason": "one law for all"},
    ]
    return _plan(
        "commuting", RESPONSE, mechanism, [guarantee], float(1 - rows[0][0]), alternatives=others, recognised=recognised
    )


@made_once
def counting() -> Plan:
    """The truncated geometric mechanism for a count of ten, epsilon 1."""
    rows = geometric(10, Fraction(1))
    numbers = [str(i) for i in range(11)]
    loss = sum(rows[i][j] * abs(i - j) for i in range(11) for j in range(11)) / 11
    guarantee = _guarantee(
        "O is 1-DP wrt answers, replacing one record",
        "epsilon-DP",
        outputs=["O"],
        wrt="answers",
        neighbours="replacing one record",
        epsilon="1",
        achieved={"epsilon": "1"},
    )
    binding = [{"text": guarantee["text"], "change": "epsilon 1 -> 1.1", "loss_change": -0.12}]
    mechanism = _table(["total"], ["O"], numbers, numbers, rows)
    return _plan("counting", COUNTING, mechanism, [guarantee], float(loss), binding=binding)


@made_once
def kilometres() -> Plan:
    """Geometric noise on a line, epsilon 0.5 for each unit of distance."""
    rows = geometric(20, Fraction(1, 2))
    numbers = [str(i) for i in range(21)]
    loss = sum(rows[i][j] * abs(i - j) for i in range(21) for j in range(21)) / 21
    guarantee = _guarantee(
        "z is 0.5-metric-DP wrt x, distance manhattan",
        "epsilon-metric-DP",
        outputs=["z"],
        wrt="x",
        epsilon="0.5",
        achieved={"epsilon": "0.5"},
    )
    return _plan("kilometres", LINE, _table(["x"], ["z"], numbers, numbers, rows), [guarantee], float(loss))


@made_once
def places() -> Plan:
    """Reports of places on a small map; a worst case without a prior."""
    points = [(i, j) for i in range(1, 6) for j in range(1, 6)]
    rows = exponential(points, Fraction(4, 5))
    pairs = [(a, b) for a in range(25) for b in range(25) if a != b]
    rate = largest_rate(rows, pairs, lambda a, b: math.dist(points[a], points[b]))
    labels = [[str(i), str(j)] for i, j in points]
    loss = max(sum(float(p) * math.dist(points[a], points[b]) for b, p in enumerate(row)) for a, row in enumerate(rows))
    guarantee = _guarantee(
        "report is 0.8-metric-DP wrt place, distance euclidean",
        "epsilon-metric-DP",
        outputs=["report"],
        wrt="place",
        epsilon="0.8",
        achieved={"epsilon": rate},
    )
    mechanism = _table(["place"], ["report"], labels, labels, rows) | {"prior": None}
    return _plan("places", PLACES, mechanism, [guarantee], loss, "worst")


@made_once
def two_counts() -> Plan:
    """Two observers: independent geometric draws at half of epsilon each."""
    half = geometric(4, Fraction(1, 2))
    rows = joint(half, half)
    numbers = [str(i) for i in range(5)]
    loss = 2 * sum(half[i][j] * abs(i - j) for i in range(5) for j in range(5)) / 5
    common = {"wrt": "answers", "neighbours": "replacing one record"}
    guarantees = [
        _guarantee(
            "rough is 0.5-DP wrt answers, replacing one record, seen by press",
            "epsilon-DP",
            outputs=["rough"],
            **common,
            observer="press",
            epsilon="0.5",
            achieved={"epsilon": "0.5"},
        ),
        _guarantee(
            "(rough, fine) is 1-DP wrt answers, replacing one record, seen by auditors",
            "epsilon-DP",
            outputs=["rough", "fine"],
            **common,
            observer="auditors",
            epsilon="1",
            achieved={"epsilon": "1"},
            requirement=1,
        ),
    ]
    outputs = [list(pair) for pair in product(numbers, numbers)]
    mechanism = _table(["total"], ["rough", "fine"], numbers, outputs, rows)
    return _plan("two_counts", OBSERVERS, mechanism, guarantees, float(loss))


@made_once
def single_outputs(delta: str = "0.1") -> Plan:
    """The paper's condition on single outputs, met although sets of outputs have a delta of a half."""
    low = [Fraction(1, 20)] * 20
    high = [Fraction(0)] * 10 + [Fraction(1, 10)] * 10
    numbers = [str(i) for i in range(1, 21)]
    mechanism = _table(["x"], ["z"], ["low", "high"], numbers, [low, high])
    mechanism |= {"scalars": {"alpha": "2381/8000"}, "laws": {"B": {"1": "1/4", "2": "0", "3": "3/4"}}}
    guarantee = _guarantee(
        "z is (1, 0.1)-per-atom-LDP wrt x",
        "(epsilon, delta)-per-atom-LDP",
        outputs=["z"],
        wrt="x",
        epsilon="1",
        delta=delta,
        achieved={"epsilon": "1", "delta": "0.5"},
    )
    return _plan("single_outputs", PER_ATOM, mechanism, [guarantee], 33.0)


@made_once
def fair_report() -> Plan:
    """Two inputs, one of them protected, and a fairness line."""
    r = ratio_down(Fraction(1))
    truth = {"F": r / (r + 1), "M": r / (r + 1) - Fraction(1, 25)}
    inputs = [[group, outcome] for group in ("F", "M") for outcome in ("well", "ill")]
    rows = [[truth[g] if out == own else 1 - truth[g] for out in ("well", "ill")] for g, own in inputs]
    guarantee = _guarantee(
        "report is 1-LDP wrt outcome",
        "epsilon-LDP",
        outputs=["report"],
        wrt="outcome",
        epsilon="1",
        achieved={"epsilon": "1"},
    )
    fairness = [
        {
            "text": "report is independent of group given outcome, up to 0.05",
            "tolerance": "0.05",
            "achieved": "0.04",
        }
    ]
    mechanism = _table(["group", "outcome"], ["report"], inputs, ["well", "ill"], rows)
    loss = float(1 - (truth["F"] + truth["M"]) / 2)
    return _plan("fair_report", FAIR, mechanism, [guarantee], loss, fairness=fairness)
