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
from privspec.families.document import sealed
from privspec.kernel.core.linear import Held
from privspec.model.build import load_model
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
    ("sex", ("F", "M"), None, None, False),
    ("pay", ("-10", "20"), None, None, True),
    ("hours", ("0", "60"), None, None, True),
)
HELD = Held("people", 0, 8, "cells", (), Fraction(0), None, None, COLUMNS, None, None)


def frame(rows: list[tuple[str, float, float]]) -> Any:
    import polars as pl

    return pl.DataFrame(rows, schema=["sex", "pay", "hours"], orient="row")


@settings(max_examples=60, deadline=None)
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
    """A number times a counted value, and powers of it; two numbers have no product in their shares of the ends."""
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
        with pytest.raises(SpecError) as caught:
            load_model(Source("pay.priv", text.replace("people.days * people.pay", product)))
        assert "measured, not counted" in caught.value.diagnostics[0].message


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
        ("E[ (N - count(people, pay >= 3))^2 ]", "measured, not counted"),
        ("E[ (N - count(people, 3 <= pay))^2 ]", "measured, not counted"),
        ("E[ ||N - count(people, by = {pay})||^2 ]", "measured, not counted"),
        ("E[ ||N - marginals(people, {pay})||^2 ]", "no attribute pay"),
        ("E[ ||N - marginals(people, 2)||^2 ]", "no such marginals"),
    ],
)
def test_values_of_measured_columns_are_not_told_apart(loss: str, text: str) -> None:
    only = spec(loss=loss).replace("  output S\n  output T\n", "")
    with pytest.raises(SpecError) as caught:
        load_model(Source("pay.priv", only))
    assert text in caught.value.diagnostics[0].message


def test_a_histogram_says_which_columns_it_counts() -> None:
    only = spec(loss="E[ ||N - histogram(people)||^2 ]").replace("  output S\n  output T\n", "")
    with pytest.raises(SpecError) as caught:
        load_model(Source("pay.priv", only))
    assert "pay is measured" in caught.value.diagnostics[0].message
    only = only.replace("histogram(people)", "histogram(people, by = {sex})")
    (block,) = elaborate(load_model(Source("pay.priv", only))).blocks
    assert block.target.shape == (2, 2)  # type: ignore[attr-defined]


def test_counts_are_no_records(plan: Plan) -> None:
    with pytest.raises(DataError, match="PS0804"):
        plan.run({"people": np.ones(8)}, randomness=SimulationRandomness(1))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("problem", "blocks", 0, "held", 0, "columns", 1, "shared"), False),
        (("problem", "blocks", 0, "held", 0, "columns", 0, "shared"), True),
        (("problem", "blocks", 0, "held", 0, "columns", 1, "values"), ["-10", "10"]),
        (("mechanism", "executed", "inputs", 0, "grid"), "3"),
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
