"""Every engine makes the same table of persons, and looks up the same, as a plain reading of records does."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privspec.api import Problem
from privspec.core.diagnostics import DataError
from privspec.execute.cells import id_text
from privspec.execute.family import RunContext
from privspec.execute.gathering import GATHERING
from privspec.execute.persons import of_plan
from privspec.execute.sources import TextFiles
from privspec.execute.warehouse import Table
from privspec.kernel.persons import WAYS
from privspec.kernel.writing import write
from privspec.model.gathered import FUNCTIONS, ONLY
from privspec.problem.elaborate import elaborate

duckdb = pytest.importorskip("duckdb")

VISITS = (
    "input visits in table(person in id, code in {A, B}, day in 2025-01-01..2025-01-09, age in 0..90, paid in [-5, 95])"
)
PATIENTS = "input patients in table(person in id, sex in {F, M}, born in 1900..2020)"
PERSONS = f"""
variables:
  {VISITS}
  {PATIENTS}
  output O
background:
  person = persons(visits, patients)
  person.many = min(count(visits, code = A), 3)
  person.paid = sum(visits.paid, age >= 18)
  person.paid in [-20, 200]
  person.old = max(visits.age)
  person.first = min(visits.day, code in {{A}})
  person.sex = patients.sex
  person.born = patients.born
loss: E[ (O - sum(person.paid, many >= 2, old >= 40, first = "2025-01-01", sex = F, born >= 1960))^2 ]
privacy: O is 1-DP wrt (visits, patients), adding or removing one person
"""
JOINED = f"""
variables:
  {VISITS}
  {PATIENTS}
  output O
background:
  visits.sex = patients.sex
  visits.born = patients.born
loss: E[ ||O - histogram(visits, by = {{code, sex, born}})||^2 ]
privacy: O is 1-DP wrt (visits, patients), adding or removing one person with at most 3 records
"""
IDS = [1, 2, 3, 40, 5, 6, None]


def visits(count: int) -> list[dict[str, Any]]:
    draws = random.Random(5)
    return [
        {
            "person": draws.choice(IDS),
            "code": draws.choice(["A", "B", "C", None]),
            "day": draws.choice(["2025-01-01", "2025-01-05", "2025-02-01", None]),
            "age": draws.choice([draws.randint(-3, 99), 17, 18, None]),
            "paid": draws.choice([draws.uniform(-20, 130), 50.0, None, float("nan")]),
        }
        for _ in range(count)
    ]


def patients(count: int) -> list[dict[str, Any]]:
    draws = random.Random(6)
    found = [{"person": draws.choice([*IDS, 70]), "sex": draws.choice("FMX"), "born": draws.choice([1950, 1990])}
             for _ in range(count)]  # fmt: skip
    return [*found, {"person": 6, "sex": "F", "born": 1890}]


def known(value: Any) -> bool:
    return value is not None and value == value


def by_person(records: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found = defaultdict(list)
    for one in records:
        if (whose := id_text(one["person"])) is not None:
            found[whose].append(one)
    return found


def only(values: set[Any]) -> Any:
    return values.pop() if len(values) == 1 else None


def looked_up(own: Sequence[dict[str, Any]]) -> tuple[Any, Any]:
    sex = {one["sex"] for one in own if one["sex"] in ("F", "M")}
    return only(sex), only({min(max(one["born"], 1900), 2020) for one in own})


def plainly(seen: Sequence[dict[str, Any]], told: Sequence[dict[str, Any]]) -> set[tuple[Any, ...]]:
    """What each person's records come to, by the sentences of the manual."""
    first, second = by_person(seen), by_person(told)
    found = set()
    for whose in {*first, *second}:
        own = first.get(whose, [])
        many = sum(one["code"] == "A" for one in own)
        grown = [
            one["paid"] for one in own if known(one["age"]) and min(max(one["age"], 0), 90) >= 18 and known(one["paid"])
        ]
        old = max((min(max(one["age"], 0), 90) for one in own if known(one["age"])), default=None)
        days = [one["day"] for one in own if one["code"] == "A" and one["day"] in ("2025-01-01", "2025-01-05")]
        paid = sum(round((min(max(x, -5), 95) + 5) * 2**17) for x in grown) / 2**17 - 5 * len(grown)
        found.add((whose, many, paid, old, min(days, default=None), *looked_up(second.get(whose, []))))
    return found


def made(text: str, data: dict[str, Any]) -> pl.DataFrame:
    document = {"problem": write(elaborate(Problem(text).check()))}
    (found,) = of_plan(document, data, RunContext()).values()
    return found if isinstance(found, pl.DataFrame) else found.frame("visits").collect()


def sources(tmp_path: Path, seen: list[dict[str, Any]], told: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The same records in every format."""
    tmp_path.mkdir(exist_ok=True)
    frames = {"visits": pl.DataFrame(seen, infer_schema_length=None), "patients": pl.DataFrame(told)}
    found: dict[str, dict[str, Any]] = {
        "frame": frames,
        "columns": {n: f.to_dict(as_series=False) for n, f in frames.items()},
    }
    with duckdb.connect(str(tmp_path / "x.duckdb")) as database:
        for name, frame in frames.items():
            frame.write_parquet(tmp_path / f"{name}.parquet")
            frame.write_csv(tmp_path / f"{name}.csv")
            (tmp_path / name).mkdir()
            for i in range(3):  # people are in several files
                frame[i::3].write_parquet(tmp_path / name / f"{i}.parquet")
            (tmp_path / f"{name}.json").write_text(json.dumps(frame.to_dicts()))
            database.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet('{tmp_path / name}.parquet')")
    for suffix in (".parquet", ".csv", ".json", ""):
        found[suffix or "folder"] = {name: tmp_path / f"{name}{suffix}" for name in frames}
    return found | {"table": {name: f"{tmp_path / 'x.duckdb'}::{name}" for name in frames}}


def rows(frame: pl.DataFrame) -> set[tuple[Any, ...]]:
    return set(frame.rows())


def test_every_engine_makes_the_same_persons(tmp_path: Path) -> None:
    seen, told = visits(120), patients(9)
    for name, data in sources(tmp_path, seen, told).items():
        said = RunContext()
        of_plan({"problem": write(elaborate(Problem(PERSONS).check()))}, data, said)
        nobody = sum(one["person"] is None for one in seen)
        assert f"{nobody} of 120 records say no person and are left out" in said.keeper.remarks["visits"], name
        found = made(PERSONS, data).select("person", "many", "paid", "old", "first", "sex", "born")
        assert rows(found) == plainly(seen, told), name


def test_every_engine_looks_up_the_same(tmp_path: Path) -> None:
    seen, told = visits(60), patients(9)
    (tmp_path / "columns.json").write_text(json.dumps(pl.DataFrame(seen).to_dict(as_series=False)))
    whose = {one: looked_up(own) for one, own in by_person(told).items()}
    wanted = sorted(repr((one["code"], *whose.get(id_text(one["person"]) or "", (None, None)))) for one in seen)
    for name, data in sources(tmp_path, seen, told).items():
        if name == ".json":
            with pytest.raises(DataError, match="list of objects"):
                made(JOINED, data)
            data = {**data, "visits": tmp_path / "columns.json"}
        found = made(JOINED, data).select("code", "sex", "born")
        # a blank cell of a text file is missing
        assert sorted(repr((code or None, sex, born and int(born))) for code, sex, born in found.rows()) == wanted, name


def test_databases_and_parquet_are_asked_once(tmp_path: Path) -> None:
    """One SELECT, but where texts are not those of their cells: then records are read, and give the same."""
    data = sources(tmp_path, visits(40), patients(5))
    document = {"problem": write(elaborate(Problem(PERSONS).check()))}
    for name in ("table", ".parquet", "folder"):
        (found,) = of_plan(document, data[name], RunContext()).values()
        assert isinstance(found, Table)
        assert found.query.startswith("WITH")
    odd = pl.DataFrame(
        [{"person": who, "code": " A", "day": "2025-01-01T05:00", "age": 3, "paid": 1.0} for who in ("7", "07")]
    )
    odd.write_parquet(tmp_path / "odd.parquet")
    (found,) = of_plan(document, {**data[".parquet"], "visits": tmp_path / "odd.parquet"}, RunContext()).values()
    assert isinstance(found, pl.DataFrame)
    whole, few = (
        made(PERSONS, {"visits": odd, "patients": data["frame"]["patients"]}),
        ["person", "many", "first", "sex"],
    )
    assert rows(found.select(few)) == rows(whole.select(few))
    assert ("07", 1, "2025-01-01", None) in rows(found.select(few))


def test_columns_of_any_name_are_told_apart(tmp_path: Path) -> None:
    text = (
        "variables:\n  input t in table(whose in id, id in {A, B}, everybody in 0..9)\n"
        "  input u in table(id in id, cell_0_0 in 0..9)\n  output O\nbackground:\n  person = persons(t, u)\n"
        "  person.id = any(t, id = A)\n  person.persons_0 = max(t.everybody)\n"
        "  person.cell_0_0 = min(count(u, cell_0_0 > 3), 4)\n"
        "loss: E[ ||O - histogram(person, by = {id, persons_0, cell_0_0})||^2 ]\n"
        "privacy: O is 1-zCDP wrt (t, u), adding or removing one whose\n"
    )
    t = pl.DataFrame({"whose": [1, 1, 2], "id": ["A", "B", "B"], "everybody": [4, 5, 6]})
    u = pl.DataFrame({"id": ["1", "3", "3"], "cell_0_0": [3, 4, 5]})
    wanted = {("1", "yes", 5, 0), ("2", "no", 6, 0), ("3", "no", None, 2)}
    for name, frame in (("t", t), ("u", u)):
        frame.write_parquet(tmp_path / f"{name}.parquet")
    for data in ({"t": t, "u": u}, {"t": tmp_path / "t.parquet", "u": tmp_path / "u.parquet"}):
        document = {"problem": write(elaborate(Problem(text).check()))}
        (found,) = of_plan(document, data, RunContext()).values()
        frame = found if isinstance(found, pl.DataFrame) else found.frame("t").collect()
        assert rows(frame.select("whose", "id", "persons_0", "cell_0_0")) == wanted


def test_an_empty_cell_is_the_word_missing_where_a_column_has_it(tmp_path: Path) -> None:
    text = JOINED.replace("sex in {F, M}", "sex in {F, M, missing}").replace("code in {A, B}", "code in {A, missing}")
    text = text.replace("code, sex, born", "code, sex").replace("  visits.born = patients.born\n", "")
    seen = [{"person": who, "code": code} for who, code in ((1, "A"), (1, None), (2, "B"), (3, "A"), (4, None))]
    told = [{"person": who, "sex": sex} for who, sex in ((1, "F"), (2, None), (3, "F"), (3, None), (5, "M"))]
    plan = Problem(text.replace("O is 1-DP", "O is 100-DP")).solve()
    for name, data in sources(tmp_path, seen, told).items():
        if name != ".json":
            (counts,) = plan.run(data, seed=1).values.values()
            assert np.rint(np.reshape(counts, -1)).tolist() == [1, 0, 1, 1, 0, 1], name
    persons = PERSONS.replace("sex in {F, M}", "sex in {F, M, missing}").replace("code = A", "code = missing")
    persons = persons.replace("code in {A, B}", "code in {A, missing}").replace("sex = F", "sex = missing")
    full = [{**one, "day": None, "age": 20, "paid": 1.0} for one in seen]
    for name, data in sources(tmp_path / "persons", full, [{**one, "born": 1950} for one in told]).items():
        found = made(persons, data).select("person", "many", "sex")
        assert rows(found) == {("1", 1, "F"), ("2", 0, "missing"), ("3", 0, None), ("4", 1, None), ("5", 0, "M")}, name


def test_a_table_that_is_looked_up_is_counted_as_well(tmp_path: Path) -> None:
    plan = Problem(
        f"variables:\n  {VISITS}\n  {PATIENTS}\n  output O\n  output N\nbackground: visits.sex = patients.sex\n"
        "loss: E[ ||O - histogram(visits, by = {code, sex})||^2 ] + E[ (N - count(patients, sex = F))^2 ]\n"
        "privacy: (O, N) is 1-zCDP wrt (visits, patients), adding or removing one person with at most 3 records\n"
    ).solve()
    data = sources(tmp_path, visits(60), patients(9))
    assert plan.run(data["frame"], seed=2).to_json() == plan.run(data[".csv"], seed=2).to_json()


def test_ids_are_compared_by_their_text() -> None:
    seen = [
        {"person": who, "code": "A", "day": None, "age": 20, "paid": 1.0}
        for who in ("7", "7.0", " 7 ", "07", "x", "X", "")
    ]
    told = [{"person": 7, "sex": "F", "born": 1950}]
    found = made(PERSONS, {"visits": pl.DataFrame(seen), "patients": pl.DataFrame(told)})
    assert rows(found.select("person", "many", "sex")) == {
        ("7", 3, "F"),
        ("07", 1, None),
        ("x", 1, None),
        ("X", 1, None),
    }


def test_data_of_all_tables_are_needed_with_their_columns() -> None:
    frame = pl.DataFrame(visits(3))
    for data, words in (
        ({"visits": frame}, "no data for the input patients"),
        ({"visits": frame, "patients": frame}, "no column sex, born"),
        ({"visits": frame, "patients": [1, 2]}, "person by person"),
        ({"visits": frame, "patients": frame, "more": frame}, ""),
    ):
        if words:
            with pytest.raises(DataError, match=words):
                made(PERSONS, data)
    with pytest.raises(DataError, match="person by person"):
        document = {"problem": write(elaborate(Problem(PERSONS).check()))}
        of_plan(document, {"visits": frame, "patients": frame}, RunContext(texts=TextFiles(header=False)))


def test_a_plan_runs(tmp_path: Path) -> None:
    text = PERSONS.replace(
        'sum(person.paid, many >= 2, old >= 40, first = "2025-01-01", sex = F, born >= 1960)',
        "count(person, many >= 2, sex = F)",
    )
    plan = Problem(text).solve()
    data = sources(tmp_path, visits(90), patients(9))
    found = [plan.run(data[name], seed=3).to_json() for name in ("frame", ".csv", "table")]
    assert found[0] == found[1] == found[2]


def test_each_way_of_gathering_is_known_to_the_language_and_the_run() -> None:
    functions = {one.way for one in FUNCTIONS.values()}
    assert functions | {ONLY} == set(WAYS) == set(GATHERING)
    assert all(way in functions for way in WAYS if not WAYS[way].of_values)
