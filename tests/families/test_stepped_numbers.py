"""Several numbers of which no unit moves two: each has the law of one number, and the bound is the sum of theirs."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from flint import fmpq_mat

from privspec.kernel import judge
from privspec.kernel.changes import Piece, Units
from privspec.kernel.core.linear import Linear, read_linear
from privspec.kernel.core.problem import read_frame
from privspec.kernel.core.reading import JsonNode, Refused
from privspec.kernel.laws.law import NoisyView
from privspec.kernel.laws.staircase import Staircase, Stepped
from privspec.kernel.strategies.dense import Dense, Lattice
from privspec.kernel.worth.shifts import ADDITIVE, EVERY, SCOPE, shown
from tests.plans import mutate, solved_text

ONE = """variables:
  input x in [0, 1]
  output O
loss: E[ (O - x)^2 ]
privacy: O is {epsilon}-DP wrt x
"""
GROUPS = """parties: v in 1..12
variables:
  input a[v] in [0, 1]
  output O
  output P
loss: E[ (O - sum(a[v] for v in 1..6))^2 ] + E[ (P - sum(a[v] for v in 7..12))^2 ]
privacy: all outputs are 5-DP wrt a, replacing one v
"""
TOTALS = """variables:
  input x in [0, 1]^4
  output O
loss: E[ ||O - prefix_sums(x)||^2 ]
privacy: O is 5-DP wrt x, replacing one entry
"""
WIDTHS = """variables:
  input x in [0, 1]^3
  input y in [0, 10]
  output O
  output P
loss: E[ ||O - x||^2 ] + E[ (P - y)^2 ]
privacy:
  O is 5-DP wrt x, replacing one entry
  P is 5-DP wrt y
"""


COLUMN = """variables:
  input people in table(district in {a, b, c}, pay in [0, 1])
  output S
loss: E[ ||S - sum(people.pay, by = {district})||^2 ]
privacy: S is 5-DP wrt people, adding or removing one record
"""


def one(epsilon: int) -> dict[str, Any]:
    return dict(solved_text(ONE.format(epsilon=epsilon))["loss"])


@pytest.mark.parametrize(("text", "times"), [(GROUPS, 2), (TOTALS, 1 + 2 + 3 + 4), (WIDTHS, 3 + 100), (COLUMN, 3)])
def test_each_number_has_the_law_of_one(text: str, times: int) -> None:
    """Sums by group, entries under totals, numbers of two widths: at epsilon 5 Laplace noise has .08 for each."""
    plan, alone = solved_text(text), one(5)
    report = judge(json.dumps(plan))
    assert report.ok, report.failed
    assert plan["mechanism"]["family"] == "stepped"
    assert plan["loss"]["value"] == pytest.approx(times * alone["value"], rel=1e-4)
    assert alone["value"] < 0.0298 < 0.08
    best = min(one["loss"] for one in plan["alternatives"] if "Laplace" in one["name"])
    assert best == pytest.approx(times * 0.08, rel=1e-6)


@pytest.mark.parametrize(("text", "times"), [(GROUPS, 2), (WIDTHS, 103)])
def test_the_bound_is_the_sum_of_those_of_one_number(text: str, times: int) -> None:
    plan = solved_text(text)
    assert plan["loss"]["lower_bound"] == pytest.approx(times * one(5)["lower_bound"], rel=1e-9)
    assert plan["loss"]["among"] == ADDITIVE
    assert plan["claims"]["bound"] == {"scope": SCOPE, "requirement": None}


def test_sizes_of_errors_and_the_worst_of_them() -> None:
    sizes = solved_text(
        GROUPS.replace("(O -", "|O -").replace("(P -", "|P -").replace(")^2", ")|").replace("))|", ")|")
    )
    assert judge(json.dumps(sizes)).ok
    assert sizes["loss"]["value"] < 0.9 * 2 * 0.2
    assert sizes["loss"]["lower_bound"] > 0.99 * sizes["loss"]["value"]


def test_counts_keep_whole_laplace_noise() -> None:
    """Which is geometric, the best law of what moves by one; nor is it left for a delta."""
    text = COLUMN.replace("sum(people.pay", "count(people")
    for amount in ("5", "(5, 1e-6)"):
        assert solved_text(text.replace("5-DP", f"{amount}-DP"))["mechanism"]["family"] == "laplace"


FORGED: dict[str, tuple[tuple[Any, ...], Any]] = {
    "a finer lattice, and so less noise": (("mechanism", "executed", "grid"), "1/100000000000"),
    "a law less than numbers": (("mechanism", "executed", "noise", "laws"), []),
    "a bound about one line": (("claims", "bound", "requirement"), 0),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_plans_are_refused(name: str) -> None:
    plan = solved_text(GROUPS)
    path, value = FORGED[name]
    assert not judge(json.dumps(mutate(plan, path, value))).ok


def test_laws_of_single_numbers_are_refused_where_a_unit_moves_two() -> None:
    """The same noise where two parties are replaced at once."""
    plan = solved_text(GROUPS)
    forged = mutate(plan, ("problem", "blocks", 0, "differences", 0, 0, "count"), 2)
    assert "answers that move together" in str(judge(json.dumps(forged)).failed)


@pytest.mark.parametrize(
    ("rows", "apart"),
    [
        ([[0, 1, 0, 0], [0, 0, 0, 1]], True),
        ([[0, 1, 0, 1], [0, 0, 0, 1]], False),
        ([[1, 0, 0, 0], [0, 1, 0, 0]], False),
    ],
)
@pytest.mark.parametrize("count", [1, 2])
def test_a_record_is_of_one_cell_or_of_the_two_between_which_its_number_lies(
    rows: list[list[int]], apart: bool, count: int
) -> None:
    """Cells 0 and 1 are the ends of a number, and so are 2 and 3: only of different pairs does a record move one."""
    strategy, grid = Dense(fmpq_mat(rows)), Fraction(1, 8)
    lattice = Lattice(grid, ((Fraction(1, 64),),) * 4, {0: 0, 1: 0, 2: 2, 3: 2})
    view = NoisyView(strategy, (0, 1), strategy, lattice)
    law = Staircase((Stepped(Fraction(1), 9, 1, Fraction(9, 25), 0, (1,)),))
    change = Units((((Piece(range(4), "cell", Fraction(1)),), count),), count)
    if apart and count == 1:
        alone = Units((((Piece((0, 1), "cell", Fraction(1)),), 1),), 1)
        single = NoisyView(strategy, (0,), strategy.chosen([0]), lattice)
        assert law.let_through(view, change, None) == law.let_through(single, alone, None)
    else:
        with pytest.raises(Refused, match="move together"):
            law.let_through(view, change, None)


def bound_of(text: str) -> tuple[float, str]:
    problem = solved_text(text)["problem"]
    frame = read_frame(JsonNode(problem, "problem"))
    block = read_linear(JsonNode(problem["blocks"][0], "block"), frame, Linear)
    found = shown(frame, block, JsonNode({"scope": SCOPE, "requirement": None}, "bound"))
    return float(found.at(frame.obligations)), found.among[0]


def test_a_line_bounds_errors_of_what_it_sees_alone() -> None:
    """Without a line on P nothing is known of its error; a histogram's bound is about data of any size."""
    both, among = bound_of(WIDTHS)
    assert among == ADDITIVE
    alone, _ = bound_of(WIDTHS.replace("  P is 5-DP wrt y\n", "  P is 5-DP wrt x, replacing one entry\n"))
    assert alone == pytest.approx(both * 3 / 103, rel=1e-9)
    counts, among = bound_of("""variables:
  input t in table(a in {u, v, w})
  output O
loss: E[ ||O - histogram(t)||^2 ]
privacy: O is 3-DP wrt t, adding or removing one record
""")
    assert among == EVERY
    ratio = Fraction(2718281828459045, 10**15) ** -3
    assert counts == pytest.approx(3 * float(2 * ratio / (1 - ratio) ** 2), rel=1e-9)


def test_multipliers_of_one_number_are_those_of_several() -> None:
    """Under a line with a delta, of which nothing is known in a closed form."""
    line = "(1, 0.05)-DP"
    plan = solved_text(GROUPS.replace("5-DP", line))
    assert judge(json.dumps(plan)).ok
    alone = solved_text(ONE.replace("{epsilon}-DP", line))["loss"]
    assert plan["loss"]["value"] == pytest.approx(2 * alone["value"], rel=1e-6)
    assert plan["loss"]["lower_bound"] == pytest.approx(2 * alone["lower_bound"], rel=1e-6)
    (one_line,) = plan["claims"]["bound"]["differences"]
    assert one_line["requirement"] == 0
    with pytest.raises(Refused):
        bound_of(GROUPS.replace("5-DP", line))
    values = ("claims", "bound", "differences", 0, "law", "multipliers", "values", "unit")
    assert not judge(json.dumps(mutate(plan, values, "1/1024"))).ok


@pytest.mark.parametrize(("most", "loss"), [("1.95", 1.918104), ("1.92", 1.918104)])
def test_accuracy_lines_are_met_by_the_law_that_is_best_without_them(most: str, loss: float) -> None:
    """Laplace noise, of 2, meets neither."""
    plan = solved_text(ONE.format(epsilon=1) + f"accuracy: E[ (O - x)^2 ] <= {most}\n")
    report = judge(json.dumps(plan))
    assert report.ok, report.failed
    assert plan["loss"]["value"] == pytest.approx(loss, rel=1e-6)


def test_an_amount_that_is_picked_keeps_its_bound() -> None:
    """Of a range of amounts the dual point of all unbiased mechanisms is known, which staircases take with them."""
    plan = solved_text("""variables:
  input x in [0, 1]^4
  choose epsilon in [0.5, 5]
  output O
loss: E[ ||O - x||^2 ] + 2 * epsilon
privacy: O is epsilon-DP wrt x, replacing one entry
""")
    report = judge(json.dumps(plan))
    assert report.ok, report.failed
    assert plan["mechanism"]["family"] == "stepped"
    assert plan["loss"]["lower_bound"] is not None
