"""Histograms of what each party holds, where a curator or a secure sum adds them up: tables of a record of each."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privspec.api import load
from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode
from privspec.model.build import load_model
from privspec.noise.samplers import SimulationRandomness
from privspec.pipeline import Request, solve
from privspec.plan import Plan
from tests.plans import Document, mutate, resign, solved_text

SPEC = """\
parties: person in 1..60
variables:
  input word[person] in {{north, east, south}}
  output H
loss: E[ ||H - histogram(word)||^2 ]
privacy: H is {line}
options: trust {trust}
"""
TABLE = """\
variables:
  input people in table(word in {{north, east, south}})^60
  output H
loss: E[ ||H - histogram(people)||^2 ]
privacy: H is {line}
"""
WORDS = ["north"] * 30 + ["east"] * 20 + ["south"] * 10


def asked(line: str = "1-DP wrt word, replacing one person", trust: str = "curator") -> Document:
    return solved_text(SPEC.format(line=line, trust=trust))


@pytest.mark.parametrize(
    ("measure", "unit", "of_table"),
    [
        ("1-GDP", "replacing one person", "replacing one record"),
        ("1-DP", "adding or removing one person", "adding or removing one record"),
        ("(1, 1e-6)-DP", "replacing up to 2 persons", "replacing up to 2 records"),
        ("0.5-zCDP", "replacing everything", "replacing everything"),
    ],
)
def test_a_histogram_of_parties_is_one_of_as_many_records(measure: str, unit: str, of_table: str) -> None:
    plan = asked(f"{measure} wrt word, {unit}")
    assert judge(JsonNode(plan, "plan")).ok
    table = solved_text(TABLE.format(line=f"{measure} wrt people, {of_table}"))
    assert plan["loss"]["value"] == pytest.approx(table["loss"]["value"], rel=1e-6)


def test_whom_nobody_knows_add_the_noise_of_a_secure_sum() -> None:
    """Gaussian noise in shares: 10 of 60 shares are known, and the other 50 have to hide everybody."""
    alone, shared = (
        asked("1-GDP wrt word, replacing one person"),
        asked("1-GDP wrt word, replacing one person", "secure_sum(colluding = 10)"),
    )
    assert judge(JsonNode(shared, "plan")).ok
    assert shared["loss"]["value"] == pytest.approx(alone["loss"]["value"] * 60 / 50, rel=1e-6)


@pytest.mark.parametrize("trust", ["curator", "secure_sum"])
def test_less_noise_and_other_parties_are_refused(trust: str) -> None:
    plan = asked("1-GDP wrt word, replacing one person", trust)
    noise = plan["mechanism"]["executed"]["noise"]
    key = "scale" if trust == "curator" else "variance"
    forged = mutate(plan, ("mechanism", "executed", "noise", key), str(Fraction(noise[key]) / 2))
    assert "privacy" in {one.name for one in judge(JsonNode(resign(forged), "plan")).failed}
    if trust == "secure_sum":
        other = judge(JsonNode(resign(mutate(plan, ("mechanism", "executed", "noise", "honest"), 61)), "plan"))
        assert not other.ok


def test_two_words_of_everybody_change_at_once() -> None:
    """All that a person holds: each of two histograms moves by e_i - e_j, and their squares add up."""
    text = SPEC.replace("  output H\n", "  input colour[person] in {{red, blue}}\n  output H\n  output C\n").replace(
        "histogram(word)||^2 ]", "histogram(word)||^2 ] + E[ ||C - histogram(colour)||^2 ]"
    )
    line, alone = "1-GDP wrt (word, colour), replacing one person", "1-GDP wrt word, replacing one person"
    plan = solved_text(text.format(line=line, trust="curator").replace("H is", "(H, C) is"))
    assert judge(JsonNode(plan, "plan")).ok
    # four directions in all, of which a person moves by 2 in two and by 2 in one
    assert plan["loss"]["value"] <= asked(alone)["loss"]["value"] * 4


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solve(
        Request(Source("words.priv", SPEC.format(line="1-DP wrt word, replacing one person", trust="curator")))
    )


def files(folder: Path) -> dict[str, Any]:
    numbers = list(range(1, 61))
    (folder / "one.csv").write_text("word\n" + "\n".join(WORDS) + "\n", "utf-8")
    rows = [f"{n},{word}" for n, word in zip(numbers, WORDS, strict=True)]
    (folder / "two.csv").write_text("person,word\n" + "\n".join(rows) + "\n", "utf-8")
    (folder / "list.json").write_text(json.dumps(WORDS), "utf-8")
    records = [{"person": n, "word": word} for n, word in zip(numbers, WORDS, strict=True)]
    (folder / "records.json").write_text(json.dumps(records), "utf-8")
    (folder / "columns.json").write_text(json.dumps({"word": WORDS}), "utf-8")
    frame = pl.DataFrame({"person": numbers, "word": WORDS})
    written = {path.name: path for path in folder.iterdir()}
    return {**written, "list": WORDS, "array": np.array(WORDS), "frame": frame, "mapping": {"word": WORDS}}


def test_data_of_any_form_are_counted_alike(plan: Plan, tmp_path: Path) -> None:
    every = files(tmp_path)
    found = [plan.run({"word": one}, randomness=SimulationRandomness(1)).values["H"] for one in every.values()]
    assert all(np.array_equal(one, found[0]) for one in found)
    assert np.abs(found[0] - [30, 20, 10]).max() < 25


def test_what_is_no_word_counts_as_the_first(plan: Plan) -> None:
    strange = [*WORDS[:-1], "west"]
    same = [plan.run({"word": some}, randomness=SimulationRandomness(1)).values["H"] for some in (WORDS, strange)]
    assert (same[1] - same[0]).tolist() == pytest.approx([1, 0, -1])


def test_numbers_that_change_with_words_are_refused_in_one_line() -> None:
    text = SPEC.format(line="1-DP wrt (word, pay), replacing one person", trust="curator")
    text = text.replace("  output H\n", "  input pay[person] in [0, 1]\n  output H\n  output p\n")
    text = text.replace("^2 ]\n", "^2 ] + E[ (p - sum(pay))^2 ]\n").replace("H is", "(H, p) is")
    with pytest.raises(SpecError, match="a histogram beside numbers that change with word"):
        solve(Request(Source("both.priv", text)))


def test_words_that_are_looked_at_otherwise_stay_words() -> None:
    text = SPEC.format(line="1-DP wrt word, replacing one person", trust="curator")
    assert [block.tallied for block in load_model(Source("a.priv", text)).blocks] == [True]
    other = text.replace("output H\n", "output H\n  output O in {north, east, south}\n").replace(
        "^2 ]\n", "^2 ] + worst[ mismatch(O, plurality(word)) ]\n"
    )
    model = load_model(Source("b.priv", other.replace("H is", "(H, O) is")))
    assert [block.tallied for block in model.blocks] == [False]
    assert [block.tallied for block in load_model(Source("c.priv", text.replace("curator", "nobody"))).blocks] == [
        False
    ]


def test_a_winner_and_its_counts(tmp_path: Path) -> None:
    text = SPEC.format(line="1-DP wrt word, replacing one person", trust="curator")
    text = text.replace("output H\n", "output H\n  output O in {north, east, south}\n").replace(
        "^2 ]\n", "^2 ] + 10 * worst[ mismatch(O, plurality(word)) ]\n"
    )
    (tmp_path / "both.priv").write_text(text.replace("H is", "(H, O) is"), "utf-8")
    found = load(tmp_path / "both.priv").solve()
    assert found.verify().ok
    values = found.run({"word": WORDS}, randomness=SimulationRandomness(1)).values
    assert values["H"].shape == (3,)
    assert str(np.ravel(values["O"])[0]) in WORDS
