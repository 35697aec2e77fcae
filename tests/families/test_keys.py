"""Keys that nobody has listed: solved, run, told, tested against their law; and what is refused."""

from __future__ import annotations

import csv
import json
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate

import numpy as np
import polars as pl
import pytest
from scipy import stats

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.core.diagnostics import PrivspecError
from privspec.execute.family import RunContext, simulate
from privspec.execute.run import _run as run
from privspec.families.number.execution import KeyMechanism, text_of
from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode
from privspec.noise.samplers import SimulationRandomness
from privspec.plan import Plan
from tests.plans import mutate, solved_text

ALARM = 1e-6
KEYS = "keys(people, by = {district})"
SQUARED = "E[ mean((shown - sizes)^2) ]"
LINE = "accuracy: worst[ missed(shown, keys(people, by = {{district}}, at_least = {0})) ] <= {1}\n"
COUNT = "count(people, by = {district})"
SPEC = """spec districts
variables:
  input people in table({columns})
{more}  output shown
{background}loss: {loss}
{accuracy}privacy:
  {line}
{options}"""


def spec(loss=f"worst[ missed(shown, {KEYS}) ]", line="shown is (1, 1e-3)-DP wrt people", **rest):
    given = {
        "columns": "district in unknown, age in 0..120",
        "more": "",
        "background": "",
        "options": "",
        "accuracy": "",
    } | rest
    unit = "" if "," in line.rpartition("wrt")[2] else ", adding or removing one record"
    return SPEC.format(loss=loss, line=line + unit, **given)


def with_sizes(law, loss=f"E[ missed(shown, {KEYS}) ]", **rest):
    background = f"background:\n  sizes = {COUNT}\n  sizes ~ {law}\n"
    return spec(loss, more="  intermediate sizes\n", background=background, **rest)


@pytest.mark.parametrize(
    "text",
    [
        spec(),
        spec(f"2 * worst[ missed(shown, {KEYS.replace('})', '}, at_least = 9)')}) ]"),
        spec(f"worst[ missed(shown, {KEYS.replace('})', '}, age >= 65)')}) ]"),
        spec("worst[ missed(shown, keys(people)) ]", columns="district in unknown, page in unknown"),
        with_sizes("geometric(0.1)"),
        with_sizes("poisson(12)"),
        with_sizes("uniform(1, 40)"),
        with_sizes("lognormal(2, 1)"),
        with_sizes("categorical([3, 1, 0, 0, 0, 4])"),
        with_sizes("geometric(0.1)", line="shown is (0.01, 1e-9)-DP wrt people"),
        with_sizes("geometric(0.1)", line="shown is (8, 0.3)-DP wrt people"),
    ],
)
def test_what_is_shown_of_one_record_more_is_the_most_there_can_be(text):
    plan = solved_text(text)
    assert plan["status"] == "optimal"
    assert plan["loss"]["among"] == "all mechanisms that show only keys that occur"
    assert all(one["loss"] >= plan["loss"]["value"] * (1 - 1e-9) for one in plan["alternatives"])
    assert Plan(plan).verify().ok


@pytest.mark.parametrize(
    "text",
    [
        spec(f"worst[ mean(|shown - {COUNT}|) ]"),
        spec("worst[ mean((histogram(people, by = {district}) - shown)^2) ]"),
        with_sizes("geometric(0.1)", "E[ mean(|shown - sizes|) ]"),
        spec(line="shown is (1, 1e-3)-DP wrt people, replacing one record"),
        spec(line="shown is (1, 1e-3)-DP wrt people, adding or removing one person with at most 4 records"),
    ],
)
def test_others_say_what_is_left_between_them_and_the_bound(text):
    plan = solved_text(text)
    assert plan["status"] == "feasible"
    assert 0 < plan["loss"]["lower_bound"] < plan["loss"]["value"]
    assert Plan(plan).verify().ok


def test_lines_of_accuracy_hold_or_say_what_is_possible(tmp_path, capsys):
    """At most one in ten keys of 12 records missed: met at (1, 1e-3), and impossible at (1, 1e-5)."""
    met = solved_text(spec(accuracy=LINE.format(12, "0.1")))
    assert Plan(met).verify().ok
    assert met["accuracy"][0]["value"] < 0.1
    both = with_sizes("geometric(0.1)", SQUARED, accuracy="accuracy: E[ mean(|shown - sizes|) ] <= 4\n")
    assert solved_text(both)["accuracy"][0]["value"] < 4
    assert not judge(JsonNode(mutate(met, ("accuracy", 0, "value"), 0.0), "plan")).ok
    assert not judge(JsonNode(mutate(met, ("problem", "blocks", 0, "accuracy", 0, "bound"), "1/1000"), "plan")).ok
    path = tmp_path / "never.priv"
    path.write_text(spec(line="shown is (1, 1e-5)-DP wrt people", accuracy=LINE.format(12, "0.1")), "utf-8")
    assert run_command_line(["solve", str(path)]) == 4
    said = " ".join(capsys.readouterr().err.split())
    assert "of every mechanism at least" in said
    assert "accept 0." in said


def test_the_truncated_geometric_law_by_its_closed_form():
    """Where delta is that of a symmetric truncated geometric law, thresholds have it (Desfontaines et al. 2022)."""
    epsilon, k = 0.7, 9
    weights = np.exp(-epsilon * np.abs(np.arange(-k, k + 1)))
    delta = weights[0] / weights.sum()
    keys = KeyMechanism.of_plan(solved_text(spec(line=f"shown is ({epsilon}, {delta:.25f})-DP wrt people"))).executed
    found = np.array([step / keys.total for step in keys.steps])[: 2 * k + 1]
    assert found == pytest.approx(weights / weights.sum(), abs=1e-9)


REFUSED = [
    (spec(line="shown is (1, 1e-3)-LDP wrt people"), "PS03", ""),
    (spec(options="options: trust nobody\n"), "PS", ""),
    (spec(options="options: noise family laplace\n"), "PS0501", "the noise family laplace"),
    (spec(f"worst[ ||shown - {COUNT}|| ]"), "PS0502", "one error of shown"),
    (spec(f"worst[ missed(shown, {KEYS}) ] + worst[ missed(shown, {KEYS}) ]"), "PS0502", "one error of shown"),
    (spec(f"E[ missed(shown, {KEYS}) ]"), "PS0401", "how many records the keys of people have"),
    (with_sizes("geometric(0.1)", "E[ mean(|shown - count(people, by = {district}, age = 3)|) ]"), "PS0401", "no law"),
    (with_sizes("normal(4, 2)", line="shown is 1-GDP wrt people").replace("1-GDP", "(1, 1e-3)-RDP"), "PS", ""),
    (with_sizes("beta(1, 2)"), "PS0406", "no probability"),
    (spec(accuracy=LINE.format(9, "0.1").replace("9)", "9, age = 3)")), "PS0502", "about other keys"),
    (spec(accuracy=LINE.format(9, "0.1").replace("worst[", "E[")), "PS0401", "no law"),
    (
        with_sizes("uniform(1, 5)", f"E[ missed(shown, {KEYS.replace('})', '}, at_least = 9)')}) ]"),
        "PS0406",
        "no key has 9",
    ),
    (spec(f"worst[ missed(shown, {KEYS.replace('})', '}, at_least = 0)')}) ]"), "PS0206", "a whole number of records"),
    (spec(f"worst[ missed(shown, {KEYS.replace('})', '}, district = north)')}) ]"), "PS0206", "unknown values"),
    (spec("worst[ missed(shown, keys(people, by = {age})) ]"), "PS0206", "none is unknown"),
    (
        spec(
            line="shown is (1, 1e-3)-DP wrt people, adding or removing one record\n  shown is (2, 1e-9)-DP wrt people"
        ),
        "PS0501",
        "a second line",
    ),
    (
        spec(more="  output other\n", loss=f"worst[ missed(shown, {KEYS}) ] + E[ (other - count(people, age = 3))^2 ]"),
        "PS0502",
        "about other keys",
    ),
    (
        spec(more="  output other\n", loss=f"worst[ missed(shown, {KEYS}) ] + E[ mean(|other - {COUNT}|) ]"),
        "PS0502",
        "one error of other",
    ),
    (spec(line="shown is (1, 1e-3)-DP wrt people, replacing everything"), "PS", ""),
    (spec(line="shown is (1e-6, 1e-12)-DP wrt people"), "PS0515", "thresholds"),
    (
        with_sizes("geometric(0.1)").replace("  sizes ~", f"  {COUNT} ~"),
        "PS0531",
        "no column district that says whose a record is",
    ),
]


@pytest.mark.parametrize(("text", "code", "words"), REFUSED)
def test_what_is_not_known_is_refused_by_a_line(text, code, words):
    with pytest.raises(PrivspecError) as caught:
        Problem(text).solve()
    first = caught.value.diagnostics[0]
    assert first.code.startswith(code), str(first)
    assert words in first.message, first.message
    assert first.labels


@pytest.mark.parametrize("measure", ["1-DP", "1-GDP", "0.5-zCDP", "(1, 0)-DP"])
def test_without_delta_no_key_can_be_shown(measure, tmp_path, capsys):
    path = tmp_path / "none.priv"
    path.write_text(spec(line=f"shown is {measure} wrt people"), "utf-8")
    assert run_command_line(["solve", str(path)]) == 4
    said = " ".join(capsys.readouterr().err.split())
    assert "the chance to show it is 0" in said
    assert "write (" in said


# --- data ----------------------------------------------------------------------------------------------

SURE = spec(f"worst[ mean(|shown - {COUNT}|) ]", line="shown is (20, 0.5)-DP wrt people")
"""So weak that every key of a few records is shown, with its count."""


def shown(document, data, **more):
    released = run(document, {"people": data}, randomness=SimulationRandomness(5), model=Plan(document).model(), **more)
    return dict(zip(released.labels["shown"]["district"].tolist(), released.values["shown"].tolist(), strict=True))


def table_of(*districts):
    return pl.DataFrame({"district": list(districts), "age": [70] * len(districts)})


def test_keys_are_the_same_text_or_others():
    """Composed and decomposed letters, blanks and control signs; capitals and look-alikes stay apart."""
    many = ["café", "cafe\u0301", " café ", "ca\tfe\u0301".replace("\t", ""), "Café", "саfé"] * 20
    found = shown(solved_text(SURE), table_of(*many))
    assert set(found) == {"café", "Café", "саfé"}
    assert found["café"] > 60
    assert text_of("a\x1b[31m\r\n b\u2028c") == "a [31m b c"
    assert text_of("\ud800x") == "x"
    assert [text_of(cell) for cell in (None, "  ", float("nan"), "\x00", 3.0, 3, True, 2.5)] == [
        "", "", "", "", "3", "3", "True", "2.5",
    ]  # fmt: skip


def test_keys_stand_in_the_order_of_their_texts_whatever_the_data_say():
    plan = solved_text(SURE)
    names = ["b", "a", "Z", "é", "-1", "=2"] * 30
    first = shown(plan, table_of(*names))
    again = shown(plan, table_of(*names[::-1]))
    assert list(first) == sorted(first)
    # one seed, other order: not one number differs
    assert first == again


def test_every_engine_counts_the_same_keys(tmp_path):
    """Text, Parquet, a folder of it and a table of a database: the same keys with the same numbers of records."""
    wild = ["café", "cafe\u0301", "'; drop table people; --", 'a "b"', "=1", "ÀÉ", "à", "x\ty"]
    names = [*(wild * 3), None, "", "  "]
    frame = pl.DataFrame({"person": [f"p{i // 2}" for i in range(len(names))], "district": names, "age": 70})
    with (tmp_path / "people.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([frame.columns, *frame.rows()])
    (tmp_path / "folder").mkdir()
    frame.write_parquet(tmp_path / "people.parquet")
    for i, part in enumerate((frame[:9], frame[9:])):
        part.write_parquet(tmp_path / "folder" / f"{i}.parquet")
    sources = [frame, *(tmp_path / name for name in ("people.csv", "people.parquet", "folder"))]
    if find_spec("duckdb"):
        duckdb = import_module("duckdb")
        with duckdb.connect(str(tmp_path / "people.duckdb")) as database:
            text = "create table people as select * from read_parquet(?)"
            database.execute(text, [str(tmp_path / "people.parquet")])
        sources.append(f"{tmp_path / 'people.duckdb'}::people")
    plain = KeyMechanism.of_plan(solved_text(SURE))
    person = "one person with at most 2 records, at most 1 in one cell"
    by_id = SURE.replace("table(", "table(person in id, ").replace("one record", person).replace("(20, ", "(60, ")
    for mechanism, twice in ((plain, 6), (KeyMechanism.of_plan(solved_text(by_id)), 3)):
        found = [
            mechanism.read({"people": source}, RunContext(randomness=SimulationRandomness(1))).content
            for source in sources
        ]
        assert found[0]["café",] == (twice,)  # its two ways of writing are one person's each time
        assert found[0]["x y",] == (3,)
        assert all(counts == found[0] for counts in found[1:])


def test_a_release_of_nothing_is_one(tmp_path):
    plan = solved_text(spec(line="shown is (1, 1e-9)-DP wrt people"))
    for name in ("release.csv", "release.json", "release.parquet", "release.npy"):
        run(plan, {"people": table_of("a")}, output=tmp_path / name, randomness=SimulationRandomness(1))
    assert (tmp_path / "release.csv").read_text("utf-8").count("\n") == 1
    assert json.loads((tmp_path / "release.json").read_text("utf-8"))["outputs"]["shown"]["values"] == []


@pytest.mark.slow
def test_many_records_of_a_person_are_quick():
    text = SURE.replace("table(district", "table(person in id, district").replace(
        "one record", "one person with at most 1000 records, at most 1 in one cell"
    )
    plan = solved_text(text.replace("(20, 0.5)", "(4, 1e-5)"))
    assert set(plan["claims"]) == {"scale", "middle"}
    assert Plan(plan).verify().ok


def test_records_without_a_key_or_with_other_values_are_left_out():
    plan = solved_text(SURE)
    frame = pl.DataFrame({"district": ["a", None, "", "a"] * 25, "age": ["40", "41", "3", "old"] * 25})
    on_condition = solved_text(SURE.replace("{district}", "{district}, age >= 41"))
    assert set(shown(plan, frame)) == {"a"}
    assert shown(plan, frame)["a"] == pytest.approx(50, abs=6)
    assert shown(on_condition, frame) == {}


def test_one_person_counts_once_for_each_key():
    """Whoever has a thousand records of one key is one of it; of too many keys of a person some are drawn."""
    text = SURE.replace("table(district", "table(person in id, district").replace(
        "one record", "one person with at most 3 records, at most 1 in one cell"
    )
    plan = solved_text(text.replace("(20, 0.5)", "(60, 0.5)"))
    assert Plan(plan).verify().ok
    crowd = [(f"p{i}", "park") for i in range(300)]
    one = [("glutton", "cellar")] * 1000 + [("glutton", f"room {i}") for i in range(8)]
    frame = pl.DataFrame({"person": [who for who, _ in crowd + one], "district": [where for _, where in crowd + one]})
    mechanism = KeyMechanism.of_plan(plan)
    seen = [
        mechanism.read({"people": frame}, RunContext(randomness=SimulationRandomness(seed))).content
        for seed in range(40)
    ]
    assert all(counts[("park",)] == (300,) for counts in seen)
    assert all(len(counts) == 4 and set(counts.values()) == {(300,), (1,)} for counts in seen)
    assert 2 <= sum(("cellar",) in counts for counts in seen) <= 26  # three of nine keys are drawn: 13.3 of 40
    rules = mechanism.read({"people": frame}, RunContext(randomness=SimulationRandomness(1))).rules
    assert "3 records of each person (1 in one cell) are kept" in " ".join(rules)
    without = frame.with_columns(person=pl.lit(None, dtype=pl.String))
    assert mechanism.read({"people": without}, RunContext(randomness=SimulationRandomness(1))).content == {}


def test_files_hold_texts_and_no_formulas(tmp_path):
    """A key that a spreadsheet would compute is a text in the file of separated values, and itself elsewhere."""
    plan = solved_text(SURE)
    wild = ["=HYPERLINK(1)", "+1+1", "@x", "-a", "-1", 'say "no", twice', "new\nline"]
    data = {"people": table_of(*(wild * 30))}
    for name in ("release.csv", "release.json"):
        run(plan, data, output=tmp_path / name, randomness=SimulationRandomness(1), model=Plan(plan).model())
    with (tmp_path / "release.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["district"] for row in rows] == [
        "'+1+1", "-1", "'-a", "'=HYPERLINK(1)", "'@x", "new line", 'say "no", twice',
    ]  # fmt: skip
    whole = json.loads((tmp_path / "release.json").read_text("utf-8"))
    assert set(whole["outputs"]["shown"]["labels"]["district"]) == {*wild[:-1], "new line"}


def test_nothing_says_a_key_that_is_not_shown(tmp_path, capsys):
    """A secret key of one record: in no file, no log, no message of solve, data, run, or a refusal."""
    path, plan, data, out = (tmp_path / name for name in ("q.priv", "q.plan.json", "people.csv", "out.json"))
    path.write_text(spec(line="shown is (1, 1e-9)-DP wrt people"), "utf-8")
    data.write_text("district,age\n" + "north,70\n" * 400 + "hidden-person,70\nbad-age-person,old\n", "utf-8")
    given = f"people={data}"
    assert run_command_line(["solve", str(path), "-o", str(plan)]) == 0
    assert run_command_line(["verify", str(plan)]) == 0
    assert run_command_line(["data", str(plan), "--input", given]) == 0
    assert run_command_line(["run", str(plan), "--input", given, "--new-ledger", "-o", str(out)]) == 0
    assert run_command_line(["run", str(plan), "--input", given, "-o", str(tmp_path / "again.json")]) == 6
    assert run_command_line(["run", str(plan), "--input", given, "--strict", "--seed", "3"]) != 6
    for reader in ("public", "auditor", "engineer"):
        assert run_command_line(["explain", str(plan), "--for", reader]) == 0
    assert json.loads(out.read_text("utf-8"))["outputs"]["shown"]["labels"] == {"district": ["north"]}
    spoken = capsys.readouterr()
    files = [one for one in tmp_path.rglob("*") if one.is_file() and one != data]
    written = b"".join(one.read_bytes() for one in files)
    for word in ("hidden-person", "bad-age-person"):
        assert word not in spoken.out + spoken.err
        assert word.encode() not in written


# --- the law -------------------------------------------------------------------------------------------


def test_releases_follow_the_law_of_the_plan():
    """Chi-squared tests of 4,000 releases of three keys, at a stated rate of false alarms."""
    plan = solved_text(spec(f"worst[ mean(|shown - {COUNT}|) ]", line="shown is (0.8, 0.02)-DP wrt people"))
    keys, counts = KeyMechanism.of_plan(plan).executed, {"few": 3, "half": 6, "many": 40}
    data = table_of(*(name for name, count in counts.items() for _ in range(count)))
    secret = KeyMechanism.of_plan(plan).read({"people": data}, RunContext())
    assert {key: count for (key,), (count,) in secret.content.items()} == counts
    randomness, draws = SimulationRandomness(17), 4000
    seen: dict[str, list[int | None]] = {name: [] for name in counts}
    for _ in range(draws):
        found = {key: value for (key,), value in secret.shown(randomness)}
        for name, values in seen.items():
            values.append(found.get(name))
    for name, count in counts.items():
        steps = [step / keys.total for step in keys.steps]
        shown_ = {count - i + keys.centre: step for i, step in enumerate(steps, 1) if i <= count}
        expected = {None: 1 - sum(shown_.values()), **shown_}
        assert set(seen[name]) <= {value for value, chance in expected.items() if chance > 0}
        groups = [[0.0, 0.0]]
        for value, chance in expected.items():
            groups[-1][0] += draws * chance
            groups[-1][1] += seen[name].count(value)
            if groups[-1][0] >= 20:
                groups.append([0.0, 0.0])
        last = groups.pop()
        groups[-1] = [groups[-1][0] + last[0], groups[-1][1] + last[1]]
        if len(groups) > 1:
            expected_, observed = zip(*groups, strict=True)
            assert stats.chisquare(observed, np.array(expected_) * draws / sum(expected_)).pvalue > ALARM / 3


def test_the_loss_is_that_of_releases():
    """The mean error of keys of sizes by the law, within five standard errors."""
    text = with_sizes("geometric(0.1)", "E[ mean(|shown - sizes|) ]", line="shown is (1, 1e-2)-DP wrt people")
    plan = solved_text(text)
    rng = np.random.default_rng(3)
    sizes = rng.geometric(0.1, 400)
    data = table_of(*(f"k{i:03}" for i, size in enumerate(sizes) for _ in range(size)))
    draws = simulate(plan, 30, 11, base={"people": data})
    errors = np.abs(draws - sizes)
    # each key's mean error, over draws: keys are what is random
    each = errors.mean(axis=0)
    assert abs(each.mean() - plan["loss"]["value"]) < 5 * each.std() / np.sqrt(len(sizes))
    alone = solved_text(with_sizes("geometric(0.1)", line="shown is (1, 1e-2)-DP wrt people"))
    kept = list(
        accumulate(
            step / KeyMechanism.of_plan(alone).executed.total for step in KeyMechanism.of_plan(alone).executed.steps
        )
    )
    share = simulate(alone, 200, 11, base={"people": table_of(*["x"] * 5)}).mean()
    assert abs(share - kept[4]) < 5 * np.sqrt(kept[4] * (1 - kept[4]) / 200)
    assert simulate(alone, 4, 1).shape == (4, 1)


def test_the_whole_command_line(tmp_path, capsys):
    path, plan, out = tmp_path / "q.priv", tmp_path / "q.plan.json", tmp_path / "out.csv"
    path.write_text(with_sizes("geometric(0.02)", "E[ mean((shown - sizes)^2) ]"), "utf-8")
    assert run_command_line(["check", str(path)]) == 0
    assert run_command_line(["solve", str(path), "-o", str(plan)]) == 0
    assert run_command_line(["verify", str(plan)]) == 0
    assert run_command_line(["audit", str(plan), "--seconds", "1", "--seed", "4"]) == 0
    people = tmp_path / "people.csv"
    people.write_text("district,age\n" + "north,70\n" * 90 + "south,20\n" * 70, "utf-8")
    assert run_command_line(["run", str(plan), "--input", f"people={people}", "--new-ledger", "-o", str(out)]) == 0
    capsys.readouterr()
    for reader, words in (
        ("public", "A district is listed only if enough records have it"),
        ("auditor", "Every district that occurs draws a threshold of its own"),
        ("engineer", "Laplace noise, shown above a threshold"),
    ):
        assert run_command_line(["explain", str(plan), "--for", reader]) == 0
        assert words in " ".join(capsys.readouterr().out.split())
    assert run_command_line(["sweep", str(path), "--over", "epsilon=1:2:lin:2", "--json"]) != 0
    rows = out.read_text("utf-8").splitlines()
    assert rows[0].startswith("output,district,value")
    assert [row.split(",")[1] for row in rows[1:]] == ["north", "south"]


# --- sums beside keys ----------------------------------------------------------------------------------

SUMS = """spec spending
variables:
  input visits in table({columns}, shop in unknown, spent in {spent})
  output shown
  output spent
  output spent_elsewhere
  output everything
loss: ({operator}[ mean(|shown - count(visits, by = {{shop}})|) ]
  + 0.01 * {operator}[ mean(|spent - sum(visits.spent, by = {{shop}})|) ]
  + 0.01 * {operator}[ |spent_elsewhere - others(shown, sum(visits.spent, by = {{shop}}))| ]
  + {operator}[ (everything - count(visits))^2 ])
privacy:
  (shown, spent, spent_elsewhere, everything) is ({epsilon}, {delta})-DP wrt visits, {unit}
"""


def sums(epsilon="40", delta="0.4", unit="adding or removing one record", **rest):
    rest = {"columns": "age in 0..9", "spent": "-5..20", "operator": "worst", **rest}
    return SUMS.format(epsilon=epsilon, delta=delta, unit=unit, **rest)


@pytest.mark.parametrize("spent", ["-5..20", "[0, 30]", "grid(-1, 2, 0.25)"])
def test_sums_beside_keys_are_released_with_the_noise_that_is_said(spent):
    """Of 400 releases: every number within six standard errors of the truth, as far off as its standard deviation."""
    plan = solved_text(sums("3", "0.2", spent=spent))
    assert Plan(plan).verify().ok
    amounts = {"here": [1.25, 2.0] * 60, "there": [1.5] * 80, "rare": [2.0]}
    rows = [(shop, amount) for shop, some in amounts.items() for amount in some]
    step = 1 if spent == "-5..20" else 0.25
    whole = {name: sum(np.floor(np.array(some) / step + 0.5) * step) for name, some in amounts.items()}
    data = pl.DataFrame({"age": 3, "shop": [shop for shop, _ in rows], "spent": [amount for _, amount in rows]})
    secret = KeyMechanism.of_plan(plan).read({"visits": data}, RunContext())
    found: dict[str, list[float]] = {name: [] for name in ("here", "there", "others", "everything")}
    for seed in range(400):
        drawn = secret.draw(SimulationRandomness(seed))
        names = drawn.labels["spent"]["shop"].tolist()
        each = dict(zip(names, drawn.outputs["spent"].tolist(), strict=True))
        hidden = sum(whole[name] for name in whole if name not in names)
        found["here"].append(each["here"] - whole["here"])
        found["there"].append(each["there"] - whole["there"])
        found["others"].append(float(drawn.outputs["spent_elsewhere"]) - hidden)
        found["everything"].append(float(drawn.outputs["everything"]) - len(rows))
        sizes = {name: float(np.reshape(size, -1)[0]) for name, size in drawn.deviations.items()}
    said = {**dict.fromkeys(("here", "there"), sizes["spent"]), "others": sizes["spent_elsewhere"]}
    said["everything"] = sizes["everything"]
    for name, errors in found.items():
        assert abs(np.mean(errors)) < 6 * said[name] / 20 + 0.01
        # the fourth moment of the law of Laplace is six times the square of its second
        assert np.std(errors) == pytest.approx(said[name], rel=6 * np.sqrt(5 / 400) / 2 + 0.01)


def test_what_stands_beside_a_hidden_key_is_with_the_others():
    plan = solved_text(sums("1", "1e-9"))
    data = pl.DataFrame({"age": [3] * 3, "shop": ["a", "b", "b"], "spent": [20, 20, None]})
    secret = KeyMechanism.of_plan(plan).read({"visits": data}, RunContext())
    # a record without a number has no key; ends count as steps from the lower one
    assert secret.content == {("a",): (1, 25), ("b",): (1, 25)}
    drawn = secret.draw(SimulationRandomness(3))
    assert drawn.outputs["spent"].size == 0
    assert np.shape(drawn.outputs["spent_elsewhere"]) == ()


def test_a_law_of_sizes_weighs_the_sums_of_keys():
    text = sums("1", "1e-3", operator="E")
    law = "  intermediate sizes\nbackground:\n  sizes = count(visits, by = {shop})\n  sizes ~ geometric(0.01)\n"
    plan = solved_text(text.replace("loss:", law + "loss:"))
    assert Plan(plan).verify().ok
    assert plan["loss"]["kind"] == "expected"


def test_every_engine_adds_up_the_same(tmp_path):
    """Persons of whom three visits are kept, and all records: text, Parquet and a database hold the same sums."""
    random = np.random.default_rng(4)
    count = 400
    frame = pl.DataFrame(
        {
            "person": [f"p{i % 90}" for i in range(count)],
            "shop": [f"s{i}" for i in random.integers(0, 5, count)],
            # what a person spends is always the same, so that it matters not which of their visits to a shop are kept
            "spent": random.normal(8, 9, 90).round(2)[np.arange(count) % 90],
        }
    )
    frame.write_csv(tmp_path / "visits.csv")
    frame.write_parquet(tmp_path / "visits.parquet")
    sources = [frame, tmp_path / "visits.csv", tmp_path / "visits.parquet"]
    if find_spec("duckdb"):
        with import_module("duckdb").connect(str(tmp_path / "visits.duckdb")) as database:
            text = "create table visits as select * from read_parquet(?)"
            database.execute(text, [str(tmp_path / "visits.parquet")])
        sources.append(f"{tmp_path / 'visits.duckdb'}::visits")
    person = "adding or removing one person with at most 3 records"
    for unit in ("adding or removing one record", person):
        columns = "person in id, " if unit == person else ""
        plan = solved_text(sums(unit=unit).replace("age in 0..9, ", columns))
        mechanism = KeyMechanism.of_plan(plan)
        found = [
            mechanism.read({"visits": source}, RunContext(randomness=SimulationRandomness(1))).content
            for source in sources
        ]
        assert all(one == found[0] for one in found[1:])
        assert sum(records for records, _ in found[0].values()) == (count if unit != person else 270)
