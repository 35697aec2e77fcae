"""What rules do to data that do not fit, and what pages, summaries and releases say of it beside errors by chance."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privspec.api import Problem
from privspec.explain.auditor import published
from privspec.explain.reading import facts
from privspec.noise.samplers import SimulationRandomness
from privspec.plan import Plan
from privspec.problem.fitting import rules
from tests.plans import solved_text

LEFT_OUT, CLIPPED, NOT_LISTED = "left out", "clipped", "not listed"
LOW, HIGH, EITHER = "too low", "too high", "either way"
LINE = "privacy: all outputs are 1-DP wrt {}, {}"
METRIC = "privacy: O is 1-metric-DP wrt x, distance manhattan"
RECORD = LINE.format("t", "adding or removing one record")


def spec(variables: str, loss: str, privacy: str = RECORD, more: str = "") -> str:
    return f"variables:\n  {variables}\n{more}loss: {loss}\n{privacy}\n"


def moved(text: str, *, strict: bool = False) -> Mapping[str, Mapping[str, str]]:
    plan = Plan.of(solved_text(text))
    found = rules(plan.document["problem"], plan.model(), strict=strict)
    return {one.done.value: {name: way.value for name, way in one.moves} for one in found}


COUNT = spec("input t in table(sex in {F, M}, age in 0..99)\n  output O", "E[ ||O - histogram(t, by = {sex})||^2 ]")
VISITS = "input t in table(person in id, sex in {F, M}, spent in [0, 9])\n  output n\n  output s"
PERSON = LINE.format("t", "adding or removing one person with at most 3 records")
BOTH = "E[ (n - count(t))^2 ] + E[ (s - sum(t.spent))^2 ]"
CASES = {
    "a histogram": (COUNT, {LEFT_OUT: {"O": LOW}}),
    "a histogram of numbers": (
        spec("input t in table(age in 0..9)\n  output O", "E[ ||O - histogram(t)||^2 ]"),
        {LEFT_OUT: {"O": LOW}, CLIPPED: {"O": EITHER}},
    ),
    "a number of a list is left out where it is another one": (
        spec("input t in table(age in grid(0, 60, 20))\n  output O", "E[ ||O - histogram(t)||^2 ]"),
        {LEFT_OUT: {"O": LOW}},
    ),
    "people's records": (
        spec(VISITS, BOTH, PERSON),
        {LEFT_OUT: {"n": LOW, "s": LOW}, CLIPPED: {"s": EITHER}},
    ),
    "what is subtracted is too high": (
        spec("input t in table(sex in {F, M})\n  output O", "E[ (O - (100 - count(t, sex = F)))^2 ]"),
        {LEFT_OUT: {"O": HIGH}},
    ),
    "a difference": (
        spec("input t in table(sex in {F, M})\n  output O", "E[ (O - (count(t, sex = M) - count(t, sex = F)))^2 ]"),
        {LEFT_OUT: {"O": EITHER}},
    ),
    "what is computed from it": (
        spec(f"{VISITS}\n  output mean_spent = s / n", BOTH),
        {LEFT_OUT: {"n": LOW, "s": LOW, "mean_spent": EITHER}, CLIPPED: {"s": EITHER, "mean_spent": EITHER}},
    ),
    "numbers": (
        spec("input x in [0, 1]^4\n  output O", "E[ (O - sum(x))^2 ]", LINE.format("x", "replacing one entry")),
        {CLIPPED: {"O": EITHER}},
    ),
    "records that stay": (
        spec(
            "input t in table(sex in {F, M})^50\n  output O",
            "E[ ||O - histogram(t)||^2 ]",
            LINE.format("t", "replacing one record"),
        ),
        {NOT_LISTED: {"O": EITHER}},
    ),
    "all records, whatever they say": (
        spec(
            "input t in table(sex in {F, M})^50\n  output O\n  output n",
            "E[ ||O - histogram(t)||^2 ] + E[ (n - count(t))^2 ]",
            LINE.format("t", "replacing one record"),
        ),
        {NOT_LISTED: {"O": EITHER}},
    ),
    "unknown keys": (
        spec(
            "input t in table(town in unknown)\n  output O",
            "worst[ mean(|O - histogram(t, by = {town})|) ]",
            "privacy: O is (1, 1e-6)-DP wrt t, adding or removing one record",
        ),
        {LEFT_OUT: {"O": LOW}},
    ),
    "a report": (
        "variables:\n  input a in {yes, no}\n  output O in {yes, no}\nbackground: a ~ uniform\n"
        "loss: E[ mismatch(O, a) ]\nprivacy: O is 1-LDP wrt a\noptions: trust nobody\n",
        {NOT_LISTED: {"O": EITHER}},
    ),
    "any number at all": (
        spec("input x in real^2\n  output O", "E[ ||O - x||^2 ]", METRIC),
        {},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_which_way_rules_move_what_is_released(name: str) -> None:
    text, ways = CASES[name]
    assert moved(text) == ways


def test_where_misfits_are_refused_only_people_have_too_many_records() -> None:
    text, _ = CASES["people's records"]
    assert moved(text, strict=True) == {LEFT_OUT: {"n": LOW, "s": LOW}}
    assert moved(COUNT, strict=True) == {}


# --- sentences ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def visits() -> Plan:
    return Plan.of(solved_text(spec(VISITS, BOTH, PERSON)))


BESIDES = r"(besides|Apart from chance), what is left out makes them too low(, and| ·) clipping moves “?s”? either way"


@pytest.mark.parametrize("reader", ["public", "auditor", "engineer"])
def test_every_page_says_what_noise_alone_is_and_what_moves_figures_besides(visits: Plan, reader: str) -> None:
    page = visits.explain(reader)
    named = BESIDES.replace("“?s”?", ".{1,12}")
    assert [line for line in page.splitlines() if "alone" in line and re.search(named, line)]
    assert "adds nothing and takes nothing away" not in page


def test_the_summary_and_the_page_to_sign_say_so(visits: Plan) -> None:
    summary = " ".join(visits.summary().split())
    assert re.search(rf"\(root mean square.*\) by chance alone · {BESIDES}", summary)
    first = visits.explain("auditor").split("## How to read")[0]
    assert re.search(rf"\| How exact it is \| Expected error per answer: .* by chance alone · {BESIDES}", first)


def test_the_public_page_says_what_happens_to_values_outside_their_bounds(visits: Plan) -> None:
    page = visits.explain("public")
    assert "“spent” below 0 counts as 0, above 9 as 9." in page
    assert "Records that do not fit are left out." in page
    assert "At most 3 of your records count, drawn at random." in page


def test_sentences_carry_what_they_say_for_machines(visits: Plan) -> None:
    sections = json.loads(visits.explain("public", "json"))["sections"]
    every = [s for section in sections for block in section["blocks"] for s in block.get("sentences", ())]
    (noise,) = (s["accuracy"] for s in every if s.get("accuracy", {}).get("measure") == "deviation")
    assert [one["output"] for one in noise["sizes"]] == ["result n", "result s"]
    assert {tuple(one.values()) for one in noise["besides"]} == {
        ("result n", LEFT_OUT, LOW),
        ("result s", LEFT_OUT, LOW),
        ("result s", CLIPPED, EITHER),
    }


def test_what_is_published_names_what_is_computed_and_what_is_centred() -> None:
    text = spec(
        "input t in table(sex in {F, M}, pay in [0, 200])^100\n  output average", "E[ (average - mean(t.pay))^2 ]"
    )
    plan = Plan.of(solved_text(text))
    found = published(facts(plan.document, plan.model()))
    assert found == "average.count and average.sum (“average, centred sum of pay”); worked out from that: average"
    assert found in plan.explain("auditor").split("## How to read")[0]
    around_zero = Plan.of(solved_text(text.replace("[0, 200]", "[-100, 100]")))
    assert "centred" not in published(facts(around_zero.document, around_zero.model()))


# --- what a law of records lets expect --------------------------------------------------------------


def test_what_is_cut_is_foretold_by_the_law_of_records() -> None:
    """Of ten people three have 1, 2 or 6 records each with equal chances: (0 + 0 + 4) / 3 a person beyond two."""
    text = spec(
        "input t in table(person in id, sex in {F, M})\n  output O",
        "E[ ||O - histogram(t)||^2 ]",
        LINE.format("t", "adding or removing one person with at most 2 records"),
        "background:\n  count(t, by = {person}) ~ empirical([1, 2, 6])\n  t.sex ~ categorical([0.75, 0.25])\n",
    )
    plan = Plan.of(solved_text("parties: person in 1..30\n" + text))
    (cut,) = facts(plan.document, plan.model()).fitting.cut
    assert cut.records.value == pytest.approx(40)
    ((name, least, most),) = cut.lower
    assert (name, least.value, most.value) == ("O", pytest.approx(10), pytest.approx(30))
    words = "By the author's law of records, about 40 of them are cut, which lowers each figure by about 10 to 30."
    assert words in plan.explain("public")
    assert "Expected to be cut" in plan.summary()


# --- releases -------------------------------------------------------------------------------------


def released(plan: Plan, folder: Path, name: str) -> Any:
    rows = ["person,sex,spent", *(f"p{i % 5},F,{i}" for i in range(30))]
    (folder / "t.csv").write_text("\n".join(rows) + "\n", "utf-8")
    return plan.run({"t": folder / "t.csv"}, output=folder / name, randomness=SimulationRandomness(1))


def test_rows_of_a_release_say_which_way_they_are_moved_besides(visits: Plan, tmp_path: Path) -> None:
    release = released(visits, tmp_path, "r.csv")
    with (tmp_path / "r.csv").open(encoding="utf-8") as file:
        rows = {row["output"]: row for row in csv.DictReader(file)}
    assert {name: (row["left_out"], row["clipped"]) for name, row in rows.items()} == {
        "n": (LOW, ""),
        "s": (LOW, EITHER),
    }
    assert float(rows["n"]["standard_deviation"]) > 0
    assert release.to_json()["outputs"]["s"]["bias"] == {"left_out": LOW, "clipped": EITHER}
    columns = list(rows["n"])
    place = columns.index("standard_deviation")
    assert columns[place : place + 3] == ["standard_deviation", "left_out", "clipped"]


def test_a_release_that_nothing_moves_has_no_such_columns(tmp_path: Path) -> None:
    plan = Plan.of(solved_text(CASES["any number at all"][0]))
    release = plan.run({"x": np.array([[1.0, 2.0]])}, randomness=SimulationRandomness(1))
    assert not {"left_out", "clipped", "not_listed"} & set(release.rows())


def test_a_column_of_the_data_keeps_its_name(tmp_path: Path) -> None:
    text = spec(
        "input t in table(clipped in {no, yes}, n in [0, 1])\n  output O", "E[ ||O - sum(t.n, by = {clipped})||^2 ]"
    )
    plan = Problem(text).solve()
    (tmp_path / "t.csv").write_text("clipped,n\nno,0.5\n", "utf-8")
    rows = plan.run({"t": tmp_path / "t.csv"}, randomness=SimulationRandomness(1)).rows()
    assert list(rows["clipped"]) == ["no", "yes"]
    assert list(rows["clipped_bias"]) == [EITHER, EITHER]
