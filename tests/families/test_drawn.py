"""Public values that are drawn from the data first: what is solved, run and told, and what is refused."""

from __future__ import annotations

import csv
import json
import random
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privspec.api import Problem
from privspec.core.diagnostics import PrivspecError
from privspec.core.spans import Source
from privspec.execute.family import simulate
from privspec.language.parser import parse
from privspec.language.spelling import spell
from privspec.noise.samplers import SimulationRandomness
from privspec.plan import Plan, verify
from privspec.problem.elaborate import elaborate
from privspec.problem.systems import parts_of
from tests.plans import Document, components, solved_text

PAY = """spec pay
variables:
  choose hi "upper limit" in {10, 100, 1000} from quantile(people.pay, 0.9), spends 0.2
  input people in table(pay in [0, hi])
  output total
loss: E[ (total - sum(people.pay))^2 ]
privacy: total is 1-DP wrt people, adding or removing one record
"""
SPENT = """variables:
  choose hi in {50, 200, 1000} from quantile(person.spent, 0.9), spends 0.2
  input visits in table(person in id, spent in [0, 1000])
  output total
background:
  person = persons(visits)
  person.spent in [0, 1000]
  person.spent = sum(visits.spent)
  person.kept = min(person.spent, hi)
loss: E[ (total - sum(person.kept))^2 ]
privacy: total is 1-DP wrt visits, adding or removing one person
"""
BINS = """variables:
  choose wide in {5, 20, 50} from quantile(people.age, 0.5), spends 0.1
  input people in table(age in 0..99)
  output counts
background: people.bin = cut(people.age, [0, wide])
loss: E[ ||counts - histogram(people, by = {bin})||^2 ]
privacy: counts is 0.5-zCDP wrt people, adding or removing one record
"""


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan.of(solved_text(PAY))


def pays(count: int, largest: float) -> dict[str, Any]:
    return {"people": {"pay": [largest * (i + 1) / count for i in range(count)]}}


def test_what_is_written_is_spelled_again() -> None:
    tree = parse(Source("pay.priv", PAY))
    assert spell(tree.variables[0]) in PAY
    assert tree.variables[0].drawn is not None and spell(tree.variables[0].drawn.epsilon) == "0.2"


def test_each_value_is_a_case_that_spends_what_the_draw_leaves(plan: Plan) -> None:
    model = plan.model()
    assert [(part.outputs, part.only_if, part.limit) for part in parts_of(model)] == [
        (("hi",), None, 0),
        *((("total",), "hi", value) for value in (10, 100, 1000)),
    ]
    made = components(plan.document)
    spent = [Fraction(dict(one["shares"][0]["amounts"])["epsilon"]) for one in made]
    assert spent == [Fraction(1, 5), *[Fraction(4, 5)] * 3]
    losses = [one["loss"]["value"] for one in made[1:]]
    assert losses == pytest.approx([losses[0], 100 * losses[0], 10_000 * losses[0]], rel=1e-6)
    alone = solved_text("""variables:
  input people in table(pay in [0, 1000])
  output total
loss: E[ (total - sum(people.pay))^2 ]
privacy: total is 0.8-DP wrt people, adding or removing one record
""")
    assert plan.loss.value == max(losses) == pytest.approx(alone["loss"]["value"], rel=1e-9)
    assert plan.document["loss"]["lower_bound"] == pytest.approx(alone["loss"]["lower_bound"], rel=1e-9)
    assert "in each case what the draw leaves it" in plan.document["loss"]["among"]
    assert verify(plan.to_json()).ok


VISITS = """variables:
  choose k in {1, 2, 5, 20} from quantile(person.visits, 0.9), spends 0.2
  input visits in table(person in id, code in {A, B, C})
  output number
background:
  person = persons(visits)
  person.visits = min(count(visits), 20)
  person.few = min(person.visits, k)
loss: E[ (number - sum(person.few))^2 ]
privacy: number is 1-DP wrt visits, adding or removing one person
"""


def test_so_many_visits_of_a_person_count_as_are_drawn() -> None:
    """300 people with 3 visits each, and 10 with 20: the number of visits up to what was drawn, for all of them."""
    found = Plan.of(solved_text(VISITS))
    assert verify(found.to_json()).ok
    people = [i for i in range(310) for _ in range(20 if i < 10 else 3)]
    true = {k: sum(min(20 if i < 10 else 3, k) for i in range(310)) for k in (1, 2, 5, 20)}
    for seed in range(4):
        data = {"visits": {"person": people, "code": ["A"] * len(people)}}
        values = found.run(data, randomness=SimulationRandomness(seed)).values
        assert int(values["k"].reshape(-1)[0]) == 5
        assert abs(float(values["number"].reshape(-1)[0]) - true[5]) < 80


NUMBER = """variables:
  choose n in {1, 2, 9} from median(people.rank), spends 0.3
  input people in table(age in 0..99, rank in 1..9)
  output counts
  output each = 10 * n * counts
background: people.bin = cut(people.age, [0, 10 * n])
loss: E[ ||counts - histogram(people, by = {bin})||^2 ]
privacy: counts is 1-DP wrt people, adding or removing one record
"""
BINNED = """variables:
  choose n in {2, 4, 10} from median(people.rank), spends 0.3
  input people in table(age in 0..99, rank in 1..9)
  output counts
background: people.bin = cut(people.age, [100 * i / n for i in 0..n - 1])
loss: E[ ||counts - histogram(people, by = {bin})||^2 ]
privacy: counts is 1-DP wrt people, adding or removing one record
"""


@pytest.mark.parametrize(("rank", "n"), [(1, 1), (2, 2), (8, 9)])
def test_labels_and_what_is_computed_are_those_of_what_was_drawn(rank: int, n: int) -> None:
    data = {"people": {"age": [i % 100 for i in range(300)], "rank": [rank] * 300}}
    release = Plan.of(solved_text(NUMBER)).run(data, randomness=SimulationRandomness(2))
    assert int(release.values["n"].reshape(-1)[0]) == n
    assert release.labels["counts"]["bin"].tolist() == [f"0 to {10 * n - 1}", f"{10 * n} to 99"]
    assert release.values["each"].tolist() == (10 * n * release.values["counts"]).tolist()


def test_made_up_records_lie_in_the_bins_that_were_drawn() -> None:
    data = {"people": {"age": [i % 100 for i in range(300)], "rank": [2] * 300}}
    plan = Plan.of(solved_text(NUMBER.replace("  output each = 10 * n * counts\n", "")))
    release = plan.run(data, randomness=SimulationRandomness(2))
    made = plan.synthetic(release, 300)
    assert set(made.columns["bin"].tolist()) == {"0 to 19", "20 to 99"}
    told = release.to_json()
    told["outputs"]["n"]["values"] = [7]
    with pytest.raises(PrivspecError, match="no value that n may have"):
        plan.synthetic(told, 300)


@pytest.mark.parametrize(("rank", "n"), [(1, 2), (4, 4), (9, 10)])
def test_there_are_as_many_bins_as_were_drawn(rank: int, n: int) -> None:
    data = {"people": {"age": [i % 100 for i in range(300)], "rank": [rank] * 300}}
    release = Plan.of(solved_text(BINNED)).run(data, randomness=SimulationRandomness(2))
    assert release.values["counts"].shape == (n,) == (len(release.labels["counts"]["bin"].tolist()),)
    assert abs(release.values["counts"] - 300 / n).max() < 30
    assert len(release.to_json()["outputs"]["counts"]["standard_deviation"]) == n


@pytest.mark.parametrize(
    ("values", "drawn"), [("{0.1, 0.3, 0.7}", 0.3), ("{1 / 7, 2 / 7, 1}", 2 / 7), ("{-1, 0, 5}", 5), ("{0, 8}", 8)]
)
def test_values_that_no_double_is_and_zero_have_their_case(values: str, drawn: float) -> None:
    text = PAY.replace("{10, 100, 1000}", values).replace("[0, hi]", "[-2, hi]")
    release = Plan.of(solved_text(text)).run(pays(500, 0.25), randomness=SimulationRandomness(1))
    assert float(release.values["hi"].reshape(-1)[0]) == drawn and "total" in release.values


@pytest.mark.parametrize("text", [SPENT, BINS])
def test_limits_of_persons_and_bins_may_be_drawn(text: str) -> None:
    assert verify(json.dumps(solved_text(text))).ok


@pytest.mark.parametrize("text", [PAY, SPENT, VISITS, BINS])
def test_draw_and_cases_are_the_specs_that_one_would_write_by_hand(text: str) -> None:
    """Word for word: the choice left out and its value in its place; and the draw by a spec of its own."""
    model = Problem(text).check()
    first, *cases = parts_of(model)
    assert model.drawn is not None
    (line,) = (one for one in text.splitlines() if one.startswith("  choose"))
    for value, case in zip(model.drawn.values, cases, strict=True):
        written = re.sub(rf"\b{model.drawn.name}\b", str(value), text.replace(line, "  # left out"))
        alone, own = elaborate(Problem(written).check()), elaborate(case.model)
        assert alone.blocks == own.blocks
        assert [one.units for one in alone.obligations] == [one.units for one in own.obligations]
        assert [one.name for one in alone.data] == [one.name for one in own.data]
    sought = spell(next(one.drawn.sought for one in parse(Source("x", text)).variables if one.drawn))
    name, values = model.drawn.name, list(map(str, model.drawn.values))
    widest = text.replace(line, f"  output {name} in {{{', '.join(values)}}}").replace(
        f"[0, {name}]", f"[0, {values[-1]}]"
    )
    left_out = rf"(?m)^  output (?!{name}\b).*|^  person\.(kept|few).*|^background: people\.bin.*"
    widest = re.sub(r"loss: .*", f"loss: worst[ bound_error({name}, {sought}) ]", re.sub(left_out, "", widest))
    widest = re.sub(r"privacy: \w+ ", f"privacy: {name} ", widest)
    assert elaborate(Problem(widest).check()).blocks == elaborate(first.model).blocks


@pytest.mark.parametrize(("largest", "wanted"), [(9.0, 10), (90.0, 100), (5000.0, 1000)])
def test_a_run_draws_the_limit_and_carries_out_its_case(plan: Plan, largest: float, wanted: int) -> None:
    """Of 2,000 records the limit that nine in ten do not exceed is nearly always drawn; the error stated is its own."""
    found = Counter[int]()
    for seed in range(10):
        release = plan.run(pays(2000, largest), randomness=SimulationRandomness(seed))
        drawn = int(release.values["hi"].reshape(-1)[0])
        found[drawn] += 1
        deviation = float(np.ravel(release.deviations["total"].tolist())[0])
        case = plan.document["mechanism"]["components"][f"hi = {drawn}"]
        assert deviation == pytest.approx(case["loss"]["value"] ** 0.5, rel=1e-4)
        true = sum(min(pay, drawn) for pay in pays(2000, largest)["people"]["pay"])
        assert abs(float(np.ravel(release.values["total"])[0]) - true) < 12 * deviation
        assert release.skipped == ()
    assert found[wanted] == 10


def test_values_are_drawn_as_often_as_they_are_read_at_bounds(plan: Plan) -> None:
    """A value stands for all records that do not exceed it: at few records other values are drawn as well."""
    drawn = simulate(plan.document, 400, 3, base={"people": {"pay": [9.0, 10.0, 10.5, 99.0]}})
    assert drawn.shape == (400, 2) and set(drawn[:, 0]) == {10.0, 100.0, 1000.0}
    spread = [drawn[drawn[:, 0] == value, 1].std() for value in (10.0, 100.0, 1000.0)]
    assert spread[0] * 5 < spread[1] and spread[1] * 5 < spread[2]


def test_a_file_is_read_alike_and_debited_once(plan: Plan, tmp_path: Path) -> None:
    source = random.Random(1)
    people = tmp_path / "people.csv"
    with people.open("w", newline="") as stream:
        csv.writer(stream).writerows([["pay"], *([round(source.uniform(0, 90), 2)] for _ in range(500))])
    release = plan.run({"people": people}, ledger=tmp_path / "l.db", new_ledger=True)
    assert release.ledger is not None
    assert release.statement()["guarantees"][0]["epsilon"] == "1"
    with pytest.raises(PrivspecError, match="budget"):
        plan.run({"people": people}, ledger=tmp_path / "l.db")


def test_pages_say_what_is_drawn_when_and_what_for(plan: Plan) -> None:
    public, auditor, engineer = (plan.explain(reader) for reader in ("public", "auditor", "engineer"))
    said = "The odds above count two draws: first of “upper limit”, which is 10, 100 or 1000, then of “total”"
    assert said in public
    assert "moves the published “total” by 17.4 to 1,740, as that value says" in public
    assert "First hi is drawn, which is 10, 100 or 1000; then total, in the one case that it says." in auditor
    assert "Then total is drawn in the one case that it says, and in no other." in auditor
    assert "Each case keeps to what hi leaves of a line. So whichever follows, both together keep to it." in auditor
    assert "hi spends 0.2-DP; total where hi is 10 spends 0.8-DP;" in auditor
    assert "as if it always were" not in auditor and "in which all is drawn" not in auditor
    assert "total where hi is 1000" in engineer
    several = solved_text(
        PAY.replace("total\nloss", "total\n  output n\nloss")
        .replace("))^2 ]", "))^2 ] + E[ (n - count(people))^2 ]")
        .replace("privacy: total", "privacy: (total, n)")
    )
    assert "and “total”, which depend on it" in Plan.of(several).explain("public")


def test_check_says_that_a_value_is_drawn() -> None:
    from privspec.explain.graphs import describe_graph

    assert "hi   drawn from the data first, which spends 0.2: 10, 100 or 1000" in describe_graph(Problem(PAY).check())


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        ("{10, 100, 1000}", "{a, b}", "PS0216", "one of 2 to 32 numbers"),
        ("{10, 100, 1000}", "{10}", "PS0216", "one of 2 to 32 numbers"),
        ("{10, 100, 1000}", "1..100", "PS0216", "one of 2 to 32 numbers"),
        ("{10, 100, 1000}", "{1, 1 + 1 / 2^60}", "PS0216", "one of 2 to 32 numbers"),
        ("choose hi", "output hi", "PS0216", "no value that is chosen"),
        ("spends 0.2", "spends 0", "PS0216", "an epsilon above 0"),
        ("quantile(people.pay, 0.9)", "sum(people.pay)", "PS0216", "near a quantile"),
        ("quantile(people.pay, 0.9)", "quantile(people, 0.9)", "PS0216", "near a quantile"),
        ("quantile(people.pay, 0.9)", "mode(people.pay)", "PS0216", "near a quantile or median of a column"),
        ("spends 0.2", "spends 1", "PS0501", "leaves nothing of this line"),
        ("1-DP", "(2, 1)-RDP", "PS0501", "shared by outputs of several kinds"),
        ("  output", "  choose q in {1, 2}\n  output", "PS0501", "other values are open"),
        ("  output", "  choose k in {1, 2} from median(people.pay), spends 0.1\n  output", "PS0501", "other values"),
        ("[0, hi]", "[hi, 50]", "PS0221", "100 is above 50"),
    ],
)
def test_what_cannot_be_drawn_is_refused(old: str, new: str, code: str, words: str) -> None:
    with pytest.raises(PrivspecError) as caught:
        Problem(PAY.replace(old, new)).solve()
    (found,) = (one for one in caught.value.diagnostics if one.is_error)
    assert (found.code, words in found.message) == (code, True), found.message


def test_what_one_person_may_change_does_not_depend_on_a_draw() -> None:
    text = VISITS.replace("  person.few = min(person.visits, k)\n", "").replace("sum(person.few)", "sum(person.visits)")
    own = (
        "choose k in {1, 2} from quantile(visits.n, 0.5), spends 0.2\n  input visits in table(person in id, n in 0..9)"
    )
    text = re.sub(r"choose[^\n]*\n[^\n]*", own, text).replace("sum(person.visits)", "sum(visits.n)")
    text = re.sub(r"background:[^:]*loss", "loss", text).replace("one person", "one person with at most k records")
    with pytest.raises(PrivspecError, match="no k on which it depends what one person may change"):
        Problem(text).solve()


def test_nobody_sets_what_is_drawn() -> None:
    with pytest.raises(PrivspecError, match="drawn from the data, and nobody sets it"):
        Problem(PAY, {"hi": "10"}).solve()


def test_outputs_of_several_kinds_after_a_draw_are_refused() -> None:
    text = PAY.replace("  output total", "  output total\n  output m in {0, 100}").replace(
        "loss: ", "loss: worst[ rank_error(m, median(people.pay)) ] + "
    )
    with pytest.raises(PrivspecError, match="before one kind of output"):
        Problem(text.replace("privacy: total", "privacy: (m, total)")).solve()


def test_only_the_main_spec_draws_a_value(tmp_path: Path) -> None:
    (tmp_path / "part.priv").write_text(PAY, "utf-8")
    main = """components: part = spec("part.priv", people = people)
variables:
  input people in table(pay in [0, 1000])
loss: part.loss
privacy: part.total is 1-DP wrt people, adding or removing one record
"""
    with pytest.raises(PrivspecError, match="only the main spec draws"):
        Problem(main, base=tmp_path).solve()


def test_a_line_about_the_draw_too_is_kept() -> None:
    """A stricter line of its own for what is drawn; what follows has what the other line leaves beside it."""
    text = PAY.replace("privacy: ", "privacy:\n  hi is 0.05-DP wrt people, adding or removing one record\n  ")
    found: Document = solved_text(text)
    assert verify(json.dumps(found)).ok
    first = components(found)[0]
    assert {one["epsilon"] for one in first["guarantees"]} == {"0.05", "0.2"}
    assert max(Fraction(one["achieved"]["epsilon"]) for one in first["guarantees"]) <= Fraction(1, 20)
