"""Columns of numbers in a table: a record stands at both ends of its column by its share of each, exactly."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privspec.core.diagnostics import DataError, SpecError
from privspec.core.spans import Source
from privspec.execute.data import Grid, count_cells
from privspec.families.decision import sealed
from privspec.kernel.core.linear import Column, InputLayout
from privspec.model.build import load_model
from privspec.model.domains import Between, Cut, IntegerRange, Table
from privspec.noise.samplers import SimulationRandomness
from privspec.pipeline import Request, solve
from privspec.plan import Plan
from privspec.problem.elaborate import elaborate
from privspec.problem.words import words

LOSS = "E[ ||N - count(people, by = {sex})||^2 ] + E[ ||S - sum(people.pay, by = {sex})||^2 ] "
LOSS += " + E[ (T - sum(people.hours))^2 ]"
LINE = "all outputs are (EPSILON, 1e-6)-DP wrt people, adding or removing one record"


def spec(epsilon: str = "1", loss: str = LOSS) -> str:
    return (
        "variables:\n  input people in table(sex in {F, M}, pay in [-10, 20], hours in [0, 60])\n"
        "  output N\n  output S\n  output T\n"
        f"loss: {loss}\nprivacy:\n  {LINE.replace('EPSILON', epsilon)}\n"
    )


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solve(Request(Source("pay.priv", spec("200"))))


STEPS = 2**10
COLUMNS = (
    Column("sex", ("F", "M"), None, None, (), False),
    Column("pay", ("-10", "20"), None, None, (), True),
    Column("hours", ("0", "60"), None, None, (), True),
)
HELD = InputLayout("people", 0, 8, "cells", (), Fraction(0), None, None, COLUMNS, None, None)


def frame(rows: list[tuple[str, float, float]]) -> Any:
    import polars as pl

    return pl.DataFrame(rows, schema=["sex", "pay", "hours"], orient="row")


@settings(max_examples=settings().max_examples * 3 // 5, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("FM"), st.floats(-40, 40, allow_nan=False), st.floats(-5, 90, allow_nan=False)),
        min_size=1,
        max_size=12,
    )
)
def test_shares_keep_counts_and_sums(rows: list[tuple[str, float, float]]) -> None:
    """Each record has all its steps, none of them negative; sums are those of the clipped values on their grid."""
    counts = count_cells(Grid(HELD, Fraction(1, STEPS), drops=True), frame(rows)).reshape(2, 2, 2)
    assert (counts >= 0).all()
    assert counts.sum() == STEPS * len(rows)
    for place, sex in enumerate("FM"):
        own = [row for row in rows if row[0] == sex]
        assert counts[place].sum() == STEPS * len(own)
        pay = counts[place].sum(axis=1) @ np.array([-10.0, 20.0]) / STEPS
        assert pay == pytest.approx(sum(min(max(row[1], -10), 20) for row in own), abs=len(own) * 30 / STEPS)
        hours = counts[place].sum(axis=0) @ np.array([0.0, 60.0]) / STEPS
        assert hours == pytest.approx(sum(min(max(row[2], 0), 60) for row in own), abs=len(own) * 60 / STEPS)
    for row in rows:
        one = count_cells(Grid(HELD, Fraction(1, STEPS), drops=True), frame([row]))
        # a record in the hull of records that stand at the ends: it moves nothing further than they do
        assert one.min() >= 0 and one.sum() == STEPS and np.count_nonzero(one) <= 3


def test_a_release_is_near_the_truth_at_a_huge_budget(plan: Plan, tmp_path: Path) -> None:
    generator = np.random.default_rng(5)
    rows = [("FM"[int(generator.integers(2))], *generator.uniform((-15, -5), (25, 70)).tolist()) for _ in range(300)]
    path = tmp_path / "people.csv"
    path.write_text("sex,pay,hours\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    release = plan.run({"people": path}, randomness=SimulationRandomness(2))
    pay = [sum(min(max(row[1], -10), 20) for row in rows if row[0] == sex) for sex in "FM"]
    assert np.asarray(release["S"]) == pytest.approx(pay, abs=12 * float(np.max(release.deviations["S"])))
    hours = sum(min(max(row[2], 0), 60) for row in rows)
    assert float(release["T"]) == pytest.approx(hours, abs=12 * float(np.max(release.deviations["T"])))
    missing = tmp_path / "missing.csv"
    missing.write_text("sex,pay,hours\nF,,3\nM,2,3\n")
    found = plan.run({"people": missing}, randomness=SimulationRandomness(2))
    assert np.asarray(found["N"]) == pytest.approx([0, 1], abs=1)


def test_products_with_counted_columns_are_those_of_the_records(tmp_path: Path) -> None:
    """A number times a counted value, and powers of it; a product of two numbers is a column of its own."""
    text = """variables:
  input people in table(days in 0..5, pay in [-10, 20], hours in [0, 60])
  output S
  output Q
loss: E[ (S - sum(people.days * people.pay, days >= 2))^2 ] + E[ (Q - sum(people.days^2))^2 ]
privacy: all outputs are (500, 1e-6)-DP wrt people, adding or removing one record
"""
    plan = solve(Request(Source("pay.priv", text)))
    assert plan.verify().ok
    generator = np.random.default_rng(6)
    rows = [(int(generator.integers(6)), float(generator.uniform(-15, 25))) for _ in range(400)]
    path = tmp_path / "people.csv"
    path.write_text("days,pay,hours\n" + "".join(f"{days},{pay},3\n" for days, pay in rows))
    release = plan.run({"people": path}, randomness=SimulationRandomness(2))
    wanted = sum(days * min(max(pay, -10), 20) for days, pay in rows if days >= 2)
    assert float(release["S"]) == pytest.approx(wanted, abs=12 * float(np.max(release.deviations["S"])) + 0.01)
    assert float(release["Q"]) == pytest.approx(
        sum(days**2 for days, _ in rows), abs=5 * float(release.deviations["Q"])
    )
    for product in ("people.pay * people.hours", "people.pay^2", "people.pay * people.days * people.pay"):
        table = load_model(Source("pay.priv", text.replace("people.days * people.pay", product))).nodes["people"].domain
        assert isinstance(table, Table)
        assert [one.text for _, one in table.derived] == [product.replace("people.", "")]


def test_a_record_moves_what_one_at_an_end_moves() -> None:
    """Noise of one count and one sum is that of a table with the two ends as values."""
    measured = solve(Request(Source("pay.priv", spec())))
    ends = solve(Request(Source("pay.priv", spec().replace("[-10, 20]", "{-10, 20}").replace("[0, 60]", "{0, 60}"))))
    assert measured.verify().ok
    # but for whole counts, whose noise may be whole as well
    assert 1 <= measured.document["loss"]["value"] / ends.document["loss"]["value"] < 1.1
    assert measured.document["loss"]["lower_bound"] == pytest.approx(ends.document["loss"]["lower_bound"], rel=1e-6)
    assert measured.document["problem"]["blocks"][0]["target"] == ends.document["problem"]["blocks"][0]["target"]


def test_words_say_how_numbers_are_held() -> None:
    said = words(elaborate(load_model(Source("pay.priv", spec()))))
    assert any("whose pay lies between -10 and 20 counts for both by its share of each" in line for line in said)


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        ("E[ (N - count(people, pay >= 3))^2 ] + E[ (S - sum(people.pay))^2 ]", "measured, not counted"),
        ("E[ (N - sum(people.pay, 3 <= pay))^2 ]", "measured, not counted"),
        ("E[ (N - count(people, pay in 3..5))^2 ]", "measured, and a range has whole numbers alone"),
        ("E[ (N - count(people, pay < 3))^2 ] + E[ ||S - marginals(people, {sex})||^2 ]", "measured, not counted"),
        ("E[ ||N - count(people, by = {pay})||^2 ]", "measured, not counted"),
        ("E[ ||N - marginals(people, {pay})||^2 ]", "no attribute pay"),
        ("E[ ||N - marginals(people, 2)||^2 ]", "no such marginals"),
    ],
)
def test_values_of_measured_columns_are_not_told_apart(loss: str, text: str) -> None:
    only = spec(loss=loss).replace("  output S\n  output T\n", "  output S\n" if "S -" in loss else "")
    with pytest.raises(SpecError) as caught:
        load_model(Source("pay.priv", only))
    assert text in caught.value.diagnostics[0].message


def wide(question: str, table: str = "sex in {F, M}, pay in [-10, 20], steps in 0..100000") -> str:
    return (
        f"variables:\n  input people in table({table})\n  output N\nloss: E[ (N - ({question}))^2 ]\n"
        "privacy: N is (300, 1e-6)-DP wrt people, replacing one record\n"
    )


EDGES = [-11.0, -10.0, -9.5, 2.9999999999999996, 3.0, 3.0000000000000004, 12.1, 19.9, 20.0, 50.0]
CUT = {
    "pay < 3": lambda pay: pay < 3,
    "pay <= 3": lambda pay: pay <= 3,
    "3 < pay": lambda pay: pay > 3,
    "pay >= 12.1": lambda pay: pay >= 12.1,
    "pay = 3": lambda pay: pay == 3,
    "pay != 3": lambda pay: pay != 3,
    "pay in {3, 20}": lambda pay: pay == 3 or pay >= 20,
    "pay in [3, 20)": lambda pay: 3 <= pay < 20,
    "pay in (-10, 12.1]": lambda pay: -10 < pay <= 12.1,
    "pay < 12.1, pay > 3": lambda pay: 3 < pay < 12.1,
}


@pytest.mark.parametrize("condition", CUT)
def test_conditions_cut_a_measured_column(condition: str, tmp_path: Path) -> None:
    """Where nothing else is asked of it; numbers at a cut lie on the side that the condition says."""
    plan = solve(Request(Source("pay.priv", wide(f"count(people, {condition})"))))
    path = tmp_path / "people.csv"
    path.write_text("pay\n" + "".join(f"{pay!r}\n" * 10 for pay in EDGES))
    release = plan.run({"people": path}, randomness=SimulationRandomness(3))
    wanted = 10 * sum(bool(CUT[condition](pay)) for pay in EDGES)
    assert float(release["N"]) == pytest.approx(wanted, abs=5)


def test_what_is_cut_is_as_good_as_two_words() -> None:
    """A sum over those beyond two cuts loses what it loses on a table of their three cells."""
    asked = "count(people, pay < 3) + 2 * count(people, pay >= 12, sex = F)"
    plan = solve(Request(Source("pay.priv", wide(asked))))
    three = asked.replace("pay < 3", "pay = a").replace("pay >= 12", "pay = c")
    same = solve(Request(Source("pay.priv", wide(three, "sex in {F, M}, pay in {a, b, c}"))))
    assert plan.verify().ok
    for figure in ("value", "lower_bound"):
        assert plan.document["loss"][figure] == same.document["loss"][figure]
    assert any("whether it is below 3 or below 12" in line for line in words(elaborate(plan_model(asked))))


def plan_model(asked: str) -> Any:
    return load_model(Source("pay.priv", wide(asked)))


@pytest.mark.parametrize(
    ("question", "cells"),
    [
        ("count(people, steps >= 5000)", 2),
        ("count(people, steps in 5..9, sex = F) + count(people, steps > 7)", 8),
        ("count(people, steps in {1, 3})", 5),
        ("sum(people.steps)", 2),
        ("sum(people.steps, sex = F)", 4),
        ("sum(people.steps, pay < 3)", 4),
    ],
)
def test_values_that_no_question_tells_apart_are_one_cell(question: str, cells: int, tmp_path: Path) -> None:
    """A hundred thousand whole numbers cost nothing where a condition only cuts them, or they are only added up."""
    (block,) = elaborate(plan_model(question)).blocks
    assert block.held[0].stop == cells  # type: ignore[attr-defined]
    plan = solve(Request(Source("pay.priv", wide(question))))
    path = tmp_path / "people.csv"
    path.write_text("sex,pay,steps\n" + "F,2,4\nF,3,6\nM,2.5,7.6\nM,9,100001\n" * 25 + "F,0,5000\n")
    release = plan.run({"people": path}, randomness=SimulationRandomness(4))
    wanted = {
        "count(people, steps >= 5000)": 26,
        "count(people, steps in 5..9, sex = F) + count(people, steps > 7)": 25 + 51,
        "count(people, steps in {1, 3})": 0,
        "sum(people.steps)": 25 * (4 + 6 + 7.6 + 100000) + 5000,
        "sum(people.steps, sex = F)": 25 * 10 + 5000,
        "sum(people.steps, pay < 3)": 25 * 11.6 + 5000,
    }[question]
    assert float(release["N"]) == pytest.approx(wanted, abs=6 * float(release.deviations["N"]) + 3)


def test_a_histogram_says_which_columns_it_counts() -> None:
    only = spec(loss="E[ ||N - histogram(people)||^2 ]").replace("  output S\n  output T\n", "")
    with pytest.raises(SpecError) as caught:
        load_model(Source("pay.priv", only))
    assert "pay is measured" in caught.value.diagnostics[0].message
    only = only.replace("histogram(people)", "histogram(people, by = {sex})")
    (block,) = elaborate(load_model(Source("pay.priv", only))).blocks
    assert (block.target.nrows(), block.target.ncols()) == (2, 2)


def test_counts_are_no_records(plan: Plan) -> None:
    with pytest.raises(DataError, match="PS0804"):
        plan.run({"people": np.ones(8)}, randomness=SimulationRandomness(1))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("problem", "blocks", 0, "held", 0, "columns", 1, "shared"), False),
        (("problem", "blocks", 0, "held", 0, "columns", 0, "shared"), True),
        (("problem", "blocks", 0, "held", 0, "columns", 1, "values"), ["-10", "10"]),
        (("mechanism", "executed", "steps", 0), "3"),
    ],
)
def test_forged_plans_are_refused(plan: Plan, path: tuple[Any, ...], value: Any) -> None:
    body = {key: entry for key, entry in json.loads(plan.to_json()).items() if key != "digest"}
    place = body
    for key in path[:-1]:
        place = place[key]
    assert place[path[-1]] != value
    place[path[-1]] = value
    assert not Plan(sealed(body)).verify().ok


def test_a_table_of_many_cells_holds_what_is_added_up_by_its_ends() -> None:
    """Four teams by 366 days are 1,464 cells one by one, and eight here: solved in no time, to the best there is."""
    text = """variables:
  input staff in table(team in {a, b, c, d}, days in 0..365)
  output sick
loss: max(E[ (sick[i] - sum(staff.days, by = {team})[i])^2 ] for i in 1..4)
privacy: sick is 0.5-zCDP wrt staff, replacing one record
"""
    plan = solve(Request(Source("sick.priv", text)))
    assert plan.status == "optimal" and plan.verify().ok
    assert plan.document["problem"]["blocks"][0]["held"][0]["stop"] == 8
    few = solve(Request(Source("sick.priv", text.replace("0..365", "{0, 365}"))))
    assert plan.document["loss"]["value"] == pytest.approx(few.document["loss"]["value"], rel=1e-6)


@pytest.mark.parametrize("columns", ["pay in [0, 9]", "pay in [0, 9], sex in {F, M}"])
def test_records_are_whole_where_nothing_is_asked_of_them(columns: str) -> None:
    """A count of a table whose columns no question is about is a count, and its noise that of whole numbers."""
    text = f"variables:\n  input people in table({columns})\n  output O\nloss: E[ (O - count(people))^2 ]\n"
    text += "privacy: O is (5, 1e-4)-DP wrt people, adding or removing one record\n"
    plan = solve(Request(Source("count.priv", text)))
    assert plan.verify().ok
    assert plan.document["loss"]["relative_gap"] < 1e-3


@pytest.mark.parametrize(
    ("domain", "cuts", "shares"),
    [
        (IntegerRange(0, 9), ((Fraction(3), False), (Fraction(4), False)), [3, 1, 6]),
        (Between(Fraction(0), Fraction(10)), ((Fraction(3), False), (Fraction(3), True)), [3, 0, 7]),
    ],
)
def test_records_spread_evenly_are_so_over_numbers_and_not_over_cells(
    domain: Any, cuts: Any, shares: list[int]
) -> None:
    assert Cut(domain, cuts).shares() == [Fraction(one, 10) for one in shares]


@pytest.mark.parametrize("steps", [60, 400])
def test_moments_of_fine_columns_have_laplace_noise(steps: int) -> None:
    """Of 80,000 pairs of values few are weighed at a time: the noise is that of coarse columns, in other units."""
    text = f"variables:\n  input people in table(pay in grid(0, {steps}, 1))^500\n  output v\n"
    text += "loss: E[ (v - variance(people.pay))^2 ]\nprivacy: v is (1, 1e-6)-DP wrt people, replacing one record\n"
    plan = solve(Request(Source("variance.priv", text)))
    assert plan.verify().ok and plan.document["mechanism"]["family"] == "laplace"
    # the coarsest column has the largest share of its squares between two steps
    assert plan.document["loss"]["value"] / steps**4 == pytest.approx(5.85e-6, rel=2e-3)


@pytest.mark.slow
def test_moments_of_two_columns_fit_memory() -> None:
    """Two hundred thousand pairs of cells: the kernel compares groups of near ones."""
    text = "variables:\n  input people in table(age in 0..30, edu in 0..9, pay in [0, 1000])^5000\n  output b\n"
    text += "loss: E[ ||b - regression(people.pay, on = {age, edu})||^2 ]\n"
    text += "privacy: b is (1, 1e-6)-DP wrt people, replacing one record\n"
    plan = solve(Request(Source("pay.priv", text)))
    assert plan.verify().ok


def test_grids_are_said_of_all_records() -> None:
    """A million records may each be rounded: the grid is finer for more of them, and what is said holds of all."""
    text = "variables:\n  input people in table(pay in [0, 100], sex in {F, M})^COUNT\n  output S\n"
    text += "loss: E[ (S - sum(people.pay, sex = F))^2 ]\nprivacy: S is 1-GDP wrt people, replacing one record\n"
    for count, bits in ((1000, 24), (10**6, 32)):
        plan = solve(Request(Source("pay.priv", text.replace("COUNT", str(count)))))
        assert plan.verify().ok
        (step,) = plan.document["mechanism"]["executed"]["steps"]
        assert Fraction(step) == Fraction(1, 2**bits)
        assert count * 2.0**-bits * 100 <= 1e-3 * plan.document["loss"]["value"] ** 0.5


def test_observers_of_many_answers_have_noise_at_places() -> None:
    """Any covariance of 51 answers with two observers is too much to compute; noise at places by itself is not."""
    text = "variables:\n  input sales in table(shop in 1..50, amount in [0, 500])\n  output all_shops\n  output each\n"
    text += (
        "loss: E[ (all_shops - sum(sales.amount))^2 ] + E[ ||each - sum(sales.amount, by = {shop})||^2 ]\nprivacy:\n"
    )
    text += "  (all_shops, each) is 1-zCDP wrt sales, adding or removing one record, seen by owners\n"
    text += "  all_shops is 0.1-zCDP wrt sales, adding or removing one record, seen by press\n"
    plan = solve(Request(Source("sales.priv", text)))
    assert plan.verify().ok and plan.status == "feasible"
