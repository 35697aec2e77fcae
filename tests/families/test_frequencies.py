"""Histograms of what parties hold, where nobody is trusted: solved, run, told; and what is refused."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from math import comb, exp
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.core.diagnostics import PrivspecError
from privspec.execute.family import mechanism_of, simulate
from privspec.execute.run import _combine as combine
from privspec.execute.run import _run as run
from privspec.families.number.set_execution import choices, supports
from privspec.kernel import judge
from privspec.kernel.reports import FrequencyBlock, Sets
from privspec.manual import template_text
from privspec.noise.samplers import Randomness, SimulationRandomness
from privspec.plan import Plan
from tests.plans import mutate, resign, solved_text

ALARM = 1e-6
SPEC = """spec words
parties: p in 1..{count}
variables:
  input word[p] in {values}
{inner}  output O{domain}
{background}loss: {loss}
{more}privacy:
  {line}
options:
  trust {trust}
{options}"""


def spec(count=20, values="{car, bus, train, foot}", loss="E[ ||O - histogram(word)||^2 ]", **rest):
    given = {"inner": "", "background": "", "more": "", "line": "O is 1-LDP wrt word", "trust": "nobody"}
    given |= {"options": "", "domain": ""} | rest
    return SPEC.format(count=count, values=values, loss=loss, **given)


def k_rr(n, k, epsilon):
    """The error of k-randomised response."""
    return n * (k - 1) * (2 * exp(epsilon) + k - 2) / (exp(epsilon) - 1) ** 2


NAMED = {"inner": "  intermediate h\n", "background": "background:\n  h = histogram(word)\n"}


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        (spec(), k_rr(20, 4, 1)),
        (spec(loss="worst[ ||O - histogram(word)||^2 ]"), k_rr(20, 4, 1)),
        (spec(loss="E[ ||O - h||^2 ]", **NAMED), k_rr(20, 4, 1)),
        (spec(loss="2 * E[ ||h - O||^2 ]", **NAMED), 2 * k_rr(20, 4, 1)),
        (spec(loss="E[ mean((O - h)^2) ]", **NAMED), k_rr(20, 4, 1) / 4),
        (spec(loss="E[ sum((O - h)^2) ]", **NAMED), k_rr(20, 4, 1)),
        (spec(loss="E[ mean((O[j] - h[j])^2 for j in 1..4) ]", **NAMED), k_rr(20, 4, 1) / 4),
        (spec(loss="E[ ||O - histogram(word) / 20||^2 ]"), k_rr(20, 4, 1) / 400),
        (spec(line="O is 1-DP wrt word, replacing one p"), k_rr(20, 4, 1)),
        (spec(line="O is 1-LDP wrt word\n  O is 2-LDP wrt word"), k_rr(20, 4, 1)),
        (spec(values="{yes, no}"), k_rr(20, 2, 1)),
        (spec(values="2..4"), k_rr(20, 3, 1)),
        (spec(values="grid(0, 1, 0.5)"), k_rr(20, 3, 1)),
        (spec(values="{1, 5, 10}"), k_rr(20, 3, 1)),
        (spec(values="1..100", line="O is 6-LDP wrt word"), k_rr(20, 100, 6)),
        (spec(options="  noise family table\n"), k_rr(20, 4, 1)),
        (spec(loss="E[ (O - histogram(word)[2])^2 ]"), k_rr(20, 2, 1) / 2),
        (spec(loss="worst[ (O - h[2] / 20)^2 ]", **NAMED), k_rr(20, 2, 1) / 800),
        (spec(loss="3 * E[ |[0, 1, 1, 0] @ h - O|^2 ]", **NAMED), 3 * k_rr(20, 2, 1) / 2),
        (spec(options="  noise at word\n"), k_rr(20, 4, 1)),
    ],
)
def test_reports_are_the_best_there_are(text, loss):
    """k-randomised response where that is best, under every way to write the same."""
    plan = solved_text(text)
    assert plan["status"] == "optimal"
    assert plan["mechanism"]["family"] == "frequencies"
    assert plan["mechanism"]["sets"][0]["subset"] == 1
    assert plan["loss"]["value"] == pytest.approx(loss)
    assert all(one["loss"] >= plan["loss"]["value"] * (1 - 1e-9) for one in plan["alternatives"])
    assert Plan(plan).verify().ok


def test_many_values_are_reported_in_sets():
    plan = solved_text(spec(values="1..100", count=10_000))
    assert plan["mechanism"]["sets"][0]["subset"] == 27
    assert np.sqrt(plan["loss"]["value"] / 100) == pytest.approx(189.7, abs=0.1)
    names = {one["name"]: one["loss"] / plan["loss"]["value"] for one in plan["alternatives"]}
    assert names["k-randomised response"] == pytest.approx(9.64, abs=0.01)
    assert names["optimised unary encoding"] == pytest.approx(1.03, abs=0.01)


REFUSED = [
    (spec(line="O is (1, 0.01)-LDP wrt word"), "PS0501", "(epsilon, delta)-LDP of a histogram"),
    (spec(line="O is 0.5-zCDP wrt word"), "PS0501", "rho-zCDP of a histogram"),
    (spec(line="O is 1-DP wrt word, replacing up to 2 ps"), "PS0501", "replacing up to 2"),
    (spec(line="O is 50-LDP wrt word"), "PS0501", "protects nothing"),
    (spec(loss="E[ ||O - histogram(word)||_1 ]"), "PS0502", "the squared error of all counts"),
    (spec(loss="worst[ (O[1] - h[1])^2 ]", **NAMED), "PS0502", "the squared error of all counts"),
    (spec(loss="E[ sum((O[j] - h[j])^2 for j in 1..3) ]", **NAMED), "PS0502", "the squared error of all counts"),
    (spec(loss="E[ mean((O[j] - h[j])^2 for j in 2..4) ]", **NAMED), "PS0502", "the squared error of all counts"),
    (spec(loss="E[ sum((O[j] - h[j])^2 for j in {1, 2}) ]", **NAMED), "PS0502", "the squared error of all counts"),
    (spec(loss="E[ (O - [0, 1, 2, 0] @ h)^2 ]", **NAMED), "PS0502", "the squared error of all counts"),
    (spec(loss="E[ (O - [1, 1, 1, 1] @ h)^2 ]", **NAMED), "PS0502", "the squared error of all counts"),
    (spec(loss="E[ ||O - 0 * histogram(word)||^2 ]"), "PS0502", "the squared error of all counts"),
    (spec(options="  noise family laplace\n"), "PS0501", "noise family laplace"),
    (spec(values="{car}"), "PS0501", "from 2 to"),
    (spec(background="background:\n  word ~ categorical([1, 2, 3, 4])\n"), "PS0501", "a data model of word"),
    (spec(domain=" in [0, 20]^4"), "PS0501", "an estimate of counts in"),
    (spec(inner="  input age[p] in [0, 1]\n"), "PS0501", "beside a histogram"),
    (
        spec(more="accuracy:\n  E[ ||O - histogram(word)||^2 ] <= 4 with probability 0.9\n"),
        "PS0501",
        "line of accuracy",
    ),
]


@pytest.mark.parametrize(("text", "code", "words"), REFUSED)
def test_what_is_not_known_is_refused_by_a_line(text, code, words):
    with pytest.raises(PrivspecError) as caught:
        Problem(text).solve()
    found = caught.value.diagnostics
    assert any(one.code == code and words in one.message for one in found), [one.message for one in found]
    assert all(one.labels for one in found)


def test_accuracy_that_cannot_be_met_is_told():
    found = Problem(spec(more="accuracy:\n  E[ ||O - histogram(word)||^2 ] <= 10\n")).solve()
    assert found.status == "infeasible"
    found = Problem(spec(more="accuracy:\n  E[ mean((O - histogram(word))^2) ] <= 1000\n")).solve()
    assert found.status == "optimal"


# --- draws ---------------------------------------------------------------------------------------------


def frequencies(values, subset, chance, count=1):
    one = Fraction(1)
    block = FrequencyBlock("x", "O", "p", count, values, (), one, one, None, one, one, "O", "worst", ())
    return Sets(block, subset, chance)


@pytest.mark.parametrize(("many", "size"), [(5, 1), (5, 2), (5, 3), (5, 4), (5, 5), (9, 3), (7, 6)])
def test_every_choice_is_as_likely(many, size):
    drawn = [tuple(sorted(row)) for some in choices(many, size, 20_000, SimulationRandomness(3)) for row in some]
    found = np.unique(drawn, axis=0, return_counts=True)[1]
    assert len(found) == comb(many, size)
    assert len(found) == 1 or stats.chisquare(found).pvalue > ALARM


class Coarse(Randomness):
    """Words of a few bits, so that ties and rejected places are common."""

    private = False

    def __init__(self, seed, bits):
        super().__init__()
        self._source, self._bits = SimulationRandomness(seed), bits

    def _fresh(self, count):
        drawn = np.frombuffer(self._source._fresh(count), dtype=np.uint32) >> np.uint32(32 - self._bits)
        return (drawn << np.uint32(32 - self._bits)).tobytes()


def test_ties_are_drawn_again():
    """With words of three bits nearly all draws tie at first, and every choice is as likely all the same."""
    drawn = [tuple(sorted(row)) for some in choices(6, 3, 20_000, Coarse(4, 3)) for row in some]
    assert stats.chisquare(np.unique(drawn, axis=0, return_counts=True)[1]).pvalue > ALARM


@pytest.mark.parametrize("subset", [1, 2, 3])
def test_reports_have_their_law(subset):
    """Chi-square of the sets of 20,000 people who hold one value, against the law of the note."""
    found = frequencies(5, subset, Fraction(3, 4))
    mechanism, counts = SimulationRandomness(5), {}
    for _ in range(4000):
        held = tuple(np.flatnonzero(supports(found, np.array([2]), mechanism)).tolist())
        counts[held] = counts.get(held, 0) + 1
    own, other = comb(4, subset - 1), comb(4, subset)
    assert len(counts) == own + other
    expected = [0.75 / own if 2 in held else 0.25 / other for held in counts]
    assert stats.chisquare(list(counts.values()), 4000 * np.array(expected)).pvalue > ALARM


def test_errors_are_those_that_are_stated():
    """Estimates are right on average, with the stated sum of squared errors; by both ways to draw."""
    for values, line in (("1..12", "O is 1-LDP wrt word"), ("1..12", "O is 4-LDP wrt word")):
        plan = solved_text(spec(values=values, line=line, count=60))
        held = np.repeat([1, 2, 12], [40, 15, 5])
        truth = np.bincount(held - 1, minlength=12)
        for approximate in (True, False):
            drawn = simulate(plan, 600, 8, base={"word": held}, approximate=approximate)
            assert drawn.sum(axis=1) == pytest.approx(60)
            off = drawn - truth
            deviations = off.std(axis=0) / np.sqrt(len(off))
            assert (np.abs(off.mean(axis=0)) < 5.5 * deviations).all()
            squares = (off**2).sum(axis=1)
            assert abs(squares.mean() - plan["loss"]["value"]) < 5.5 * squares.std() / np.sqrt(len(squares))


def test_parties_send_their_own_reports(tmp_path):
    """Messages add up to a release; those that are none are refused. Sets of few values are lists, others bits."""
    for values, line in (("{car, bus, train, foot}", "O is 1-LDP wrt word"), ("1..40", "O is 0.5-LDP wrt word")):
        plan = solved_text(spec(values=values, line=line, count=3))
        first = "car" if "car" in values else 7
        messages = [
            run(plan, {"word": [first]}, party=str(p), randomness=SimulationRandomness(p)).to_json() for p in (1, 2, 3)
        ]
        release = combine(plan, messages)
        assert release.values["O"].sum() == pytest.approx(3)
        mechanism = mechanism_of(plan)
        lone = next(one for one in messages[0]["outputs"] if "message" in json.dumps(one))
        assert lone
        for said in (["0"], ["1", "1"], ["x"], [], ["zz"], ["ff" * 9], ["1", "2", "3", "4", "5"]):
            try:
                heard = mechanism.heard(said)
            except (TypeError, ValueError):
                continue
            assert not mechanism.possible(heard), said
        with pytest.raises(PrivspecError, match="missing"):
            combine(plan, messages[:2])


def test_each_may_have_an_epsilon_of_its_own():
    """The sum of the best for each; reports and estimates by kinds, as messages and together."""
    own = ", ".join(["0.5", "1", "3"] * 20)
    text = spec(count=60, values="1..12", line="O is epsilon[p]-DP wrt word[p], replacing one p\n  O is 2-LDP wrt word")
    text = text.replace("parties:", f"parameters:\n  epsilon[p] = [{own}]\nparties:", 1)
    plan = solved_text(text)
    assert plan["status"] == "optimal"
    assert len(plan["mechanism"]["sets"]) == 3
    assert plan["alternatives"][0]["loss"] > 1.5 * plan["loss"]["value"]
    held = np.repeat([1, 2, 12], [40, 15, 5])
    drawn = simulate(plan, 800, 8, base={"word": held}, approximate=True)
    off = drawn - np.bincount(held - 1, minlength=12)
    assert (np.abs(off.mean(axis=0)) < 5.5 * off.std(axis=0) / np.sqrt(800)).all()
    squares = (off**2).sum(axis=1)
    assert abs(squares.mean() - plan["loss"]["value"]) < 5.5 * squares.std() / np.sqrt(800)
    messages = [
        run(plan, {"word": [int(held[p])]}, party=str(p + 1), randomness=SimulationRandomness(p)).to_json()
        for p in range(60)
    ]
    release = combine(plan, messages)
    assert release.values["O"].sum() == pytest.approx(60)
    assert release.deviations["O"] == pytest.approx(np.full(12, np.sqrt(plan["loss"]["value"] / 12)), rel=0.3)
    other = json.loads(json.dumps(messages[0]).replace('"1"', '"2"', 1))
    assert other["outputs"]["p"] != messages[0]["outputs"]["p"]
    with pytest.raises(PrivspecError):  # a set of another size than that party sends
        combine(plan, [other, *messages[2:], messages[0]])
    assert "by its own epsilon (3 of them)" in Plan(plan).explain("auditor", "md")


def test_one_count_is_a_yes_or_no():
    """Binary randomised response of whether the value is counted: the law, the messages and the pages."""
    plan = solved_text(spec(loss="E[ (O - [0, 1, 1, 0] @ histogram(word))^2 ]", count=50))
    held = ["car"] * 20 + ["bus"] * 15 + ["train"] * 10 + ["foot"] * 5
    drawn = simulate(plan, 3000, 4, base={"word": held}, approximate=True)
    assert drawn.shape == (3000, 1)
    off = drawn[:, 0] - 25
    assert abs(off.mean()) < 5.5 * off.std() / np.sqrt(3000)
    assert off.var() == pytest.approx(plan["loss"]["value"], rel=0.15)
    release = run(plan, {"word": held}, randomness=SimulationRandomness(1))
    assert release.values["O"].shape == release.deviations["O"].shape == ()
    assert release.deviations["O"] == pytest.approx(np.sqrt(plan["loss"]["value"]), rel=1e-6)
    messages = [
        run(plan, {"word": [held[p]]}, party=str(p + 1), randomness=SimulationRandomness(p)).to_json()
        for p in range(50)
    ]
    assert combine(plan, messages).values["O"].shape == ()
    for reader, words in (("public", "The published count is typically off by"), ("auditor", "sends yes or no")):
        assert words in Plan(plan).explain(reader, "md")


def test_two_questions_share_a_line(tmp_path, capsys):
    """Parts of a system, with their values and standard errors in the release."""
    text = """spec two
parties: p in 1..50
variables:
  input word[p] in 1..30
  input age[p] in {young, middle, old}
  output A
  output B
loss: E[ ||A - histogram(word)||^2 ] + 4 * E[ ||B - histogram(age)||^2 ]
privacy: (A, B) is 2-DP wrt (word, age), replacing one p
options: trust nobody
"""
    plan = solved_text(text)
    data = {"word": np.arange(50) % 30 + 1, "age": ["young", "old"] * 25}
    release = run(plan, data, randomness=SimulationRandomness(2))
    assert release.labels["B"]["age"].tolist() == ["young", "middle", "old"]
    assert set(release.deviations) == {"A", "B"}
    messages = [
        run(plan, {"word": [p], "age": ["old"]}, party=str(p), randomness=SimulationRandomness(p)).to_json()
        for p in range(1, 51)
    ]
    release = combine(plan, messages)
    assert release.values["B"].sum() == pytest.approx(50)
    assert release.labels["A"]["word"].tolist() == list(range(1, 31))
    local = Problem(text.replace("2-DP wrt (word, age), replacing one p", "2-LDP wrt (word, age)")).solve()
    assert local.loss.value == pytest.approx(plan["loss"]["value"], rel=1e-9)
    assert local.verify().ok


def test_the_whole_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, plan, out = (tmp_path / name for name in ("words.priv", "words.plan.json", "counts.csv"))
    path.write_text(template_text("local_words"), "utf-8")
    words = np.random.default_rng(1).geometric(0.2, 10_000)
    (tmp_path / "word.csv").write_text("word\n" + "\n".join(map(str, words)) + "\n", "utf-8")
    assert run_command_line(["check", str(path), "--problem"]) == 0
    assert "word of each person is one of 100 values, from 1 to 100; there are 10,000" in capsys.readouterr().out
    assert run_command_line(["solve", str(path), "-o", str(plan)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "optimal" in said
    assert "a set of 27 of the 100 values" in said
    assert "(subset selection)" in said
    assert "Expected error per count ± 190" in said
    assert run_command_line(["verify", str(plan)]) == 0
    assert "all unbiased estimates from one report of each party" in capsys.readouterr().out
    data = f"word={tmp_path / 'word.csv'}"
    assert run_command_line(["data", str(plan), "--input", data]) == 0
    assert run_command_line(["run", str(plan), "--input", data, "--new-ledger", "-o", str(out)]) == 0
    rows = list(csv.DictReader(out.read_text("utf-8").splitlines()))
    assert [row["word"] for row in rows] == [str(word) for word in range(1, 101)]
    truth = np.bincount(np.minimum(words, 100), minlength=101)[1:]
    off = np.array([float(row["value"]) for row in rows]) - truth
    assert np.sqrt(np.mean(off**2)) < 300
    assert 185 < float(rows[50]["standard_deviation"]) < 215
    capsys.readouterr()
    for reader, told in (
        (
            "public",
            "A published count is typically off by 190 by chance alone. Apart from chance, clipping moves it either",
        ),
        ("auditor", "No other reports, and no other unbiased estimate, have a smaller sum of squared errors."),
        ("engineer", "What one report tells"),
    ):
        assert run_command_line(["explain", str(plan), "--for", reader]) == 0
        assert told in " ".join(capsys.readouterr().out.split())
    assert run_command_line(["sweep", str(path), "--over", "epsilon=1:4:lin:2", "--json"]) == 0
    losses = [row["loss"] for row in json.loads(capsys.readouterr().out)["rows"] if row]
    assert losses[0] > losses[1]


TABLE = """spec words
parties: p in 1..8
variables:
  input people[p] in table(word in 1..10)^1
  output O
loss: E[ ||O - {asked}||^2 ]
privacy: O is 1-DP wrt people, replacing one p
options: trust nobody
"""


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            TABLE.format(asked="histogram(people)").replace("||^2", "||_1").replace("1..8", "1..30"),
            "E[ ||O - histogram(people)||^2 ]",
        ),
        (
            TABLE.format(asked="sum(histogram(people[p], by = {word}) for p)"),
            "`input people[p] in 1..10` and histogram",
        ),
        (spec(loss="E[ ||O - sum(histogram(word[p]) for p)||^2 ]"), "is histogram(word), without an index"),
        (spec(loss="E[ (O - count(word))^2 ]"), "is histogram(word), without an index"),
        (spec(options="  noise family rappor\n"), "the best reports are found"),
        (spec(line="O is (1, 1e-6)-LDP wrt word"), "reports of a finite set need no delta"),
    ],
)
def test_what_to_write_instead(text, hint):
    with pytest.raises(PrivspecError) as caught:
        Problem(text).solve()
    assert any(hint in str(one.help) for one in caught.value.diagnostics), [
        one.help for one in caught.value.diagnostics
    ]


def test_parties_whose_records_count_alike_are_one_set():
    """The records of all are hidden, not those of one party: e_i - e_j in ten cells, 2 in each of nine directions."""
    text = TABLE.format(asked="histogram(people, by = {word})").replace("nobody", "curator").replace("1-DP", "1-GDP")
    plan = Problem(text).solve()
    assert plan.verify().ok
    assert plan.document["status"] == "optimal"
    assert plan.document["loss"]["value"] == pytest.approx(18, rel=1e-6)


RECORDS = """spec records
parties: p in 1..40
variables:
  input row[p] in table(age in {{young, old}}, visits in 0..2)^1
  output O
loss: E[ ||O - {asked}||^2 ]
privacy: O is 2-LDP wrt row
"""


@pytest.mark.parametrize(("by", "values"), [("", 6), (", by = {visits}", 3), (", by = {visits, age}", 6)])
def test_a_record_of_each_party_is_one_value_of_all_columns_counted(by, values):
    """The values of several columns together are those of one: the best reports of as many."""
    plan = Problem(RECORDS.format(asked=f"histogram(row{by})")).solve()
    other = Problem(spec(count=40, values=f"1..{values}", line="O is 2-LDP wrt word")).solve()
    assert plan.verify().ok
    assert plan.document["loss"] | {"expression": ""} == other.document["loss"] | {"expression": ""}


def test_records_are_read_by_party_and_counted_by_column():
    """With reports that are nearly always true, the counts are those of the data, whatever the order of rows."""
    text = RECORDS.replace("2-LDP", "30-LDP")
    rows = [("old", 2)] * 10 + [("young", 0)] * 25 + [("young", 2)] * 5
    frame = pl.DataFrame({"p": range(1, 41), "visits": [v for _, v in rows], "age": [a for a, _ in rows]})
    for data in (frame, frame.sample(fraction=1, shuffle=True, seed=1)):
        for by, counts in ((", by = {age}", [30, 10]), (", by = {visits}", [25, 0, 15]), ("", [25, 0, 5, 0, 0, 10])):
            plan = Problem(text.format(asked=f"histogram(row{by})")).solve()
            found = plan.run({"row": data}, randomness=SimulationRandomness(1))
            assert np.rint(found.values["O"]).tolist() == counts


def test_a_party_sends_the_report_of_its_own_record():
    plan = solved_text(RECORDS.replace("2-LDP", "30-LDP").replace("1..40", "1..3").format(asked="histogram(row)"))
    rows = [("old", 2), ("young", 0), ("young", 2)]
    messages = [
        run(plan, {"row": [{"age": age, "visits": visits}]}, party=str(p), randomness=SimulationRandomness(p)).to_json()
        for p, (age, visits) in enumerate(rows, 1)
    ]
    assert np.rint(combine(plan, messages).values["O"]).tolist() == [1, 0, 1, 0, 0, 1]


def test_columns_of_one_record_share_a_local_line():
    text = RECORDS.format(asked="histogram(row, by = {age})").replace("output O\n", "output O\n  output V\n")
    text = text.replace("^2 ]\n", "^2 ] + E[ ||V - histogram(row, by = {visits})||^2 ]\n").replace("O is", "(O, V) is")
    plan = Problem(text).solve()
    assert plan.verify().ok
    parts = plan.document["mechanism"]["components"].values()
    spent = [Fraction(one["guarantees"][0]["epsilon"]) for one in parts]
    assert len(spent) == 2
    assert sum(spent) <= 2


def test_a_block_of_columns_that_do_not_make_its_values_is_refused():
    plan = Problem(RECORDS.format(asked="histogram(row)")).solve().document
    path = ("problem", "blocks", 0, "listed", 0)
    assert not judge(json.dumps(resign(mutate(plan, path, "old, 0")))).ok


def test_choices_beside_histograms():
    """Who adds up counts needs less noise than reports, by more than it costs; an amount is picked."""
    text = spec(loss="E[ ||O - histogram(word)||^2 ] + cost(way, nobody = 1, curator = 2)", trust="way",
                inner="  choose way in {nobody, curator}\n", line="O is 1-DP wrt word, replacing one p")  # fmt: skip
    plan = Problem(text).solve()
    assert plan.verify().ok
    assert plan.document["loss"]["value"] < k_rr(20, 4, 1) + 1
    assert plan.document["problem"]["trust"]["kind"] == "curator"
    text = spec(loss="e", inner="  choose e in [0.1, 10]\n", line="O is e-LDP wrt word",
                more="accuracy:\n  E[ ||O - histogram(word)||^2 ] <= 400\n")  # fmt: skip
    assert Problem(text).solve().status == "optimal"
