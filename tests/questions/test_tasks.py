"""Everyday tasks as specs of a few lines: each is solved, verified, run on data in three formats and explained.

What its pages say of errors is true of simulated releases, also of data of which a tenth is cut or clipped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from privspec.api import Problem
from privspec.execute.family import RunContext
from privspec.execute.run import by_person
from privspec.language.layout import SECTIONS
from privspec.manual import examples
from privspec.noise.samplers import SimulationRandomness
from privspec.plan import Plan
from privspec.problem.fitting import Done
from tests.explain import test_accuracy_is_true as truth
from tests.explain.releases import Case, made
from tests.explain.test_accuracy_is_true import check_pages, check_sentences

PAGE = Path(__file__).with_name("tasks.md")
TASKS: Mapping[int, str] = {
    int(number): shown[0].text
    for number, body in re.findall(r"^## (\d+)\..*\n((?:(?!## ).*\n)*)", PAGE.read_text("utf-8"), re.M)
    if (shown := examples(body))
}
QUICK = {4, 7, 11, 16}
EACH = [pytest.param(number, marks=() if number in QUICK else pytest.mark.slow) for number in TASKS]
Columns = Mapping[str, Any]
Random = np.random.Generator


@cache
def plan(number: int) -> Plan:
    return Problem(TASKS[number], name=f"task {number}").solve()


# --- made-up data ---------------------------------------------------------------------------------


def people(random: Random, count: int) -> Columns:
    return {
        "age": random.integers(0, 100, count),
        "pay": random.uniform(0, 10_000, count).round(2),
        "sex": random.choice(["F", "M"], count),
        "dept": random.choice(["sales", "repair", "office"], count),
        "region": random.choice(["north", "east", "south", "west"], count),
    }


def moments(random: Random, count: int) -> list[datetime]:
    """Moments of a year, some of them close to midnight."""
    start = datetime(2025, 1, 1)
    return [start + timedelta(seconds=int(one)) for one in random.integers(0, 365 * 86_400, count)]


def owners(random: Random, count: int) -> list[str]:
    return [f"p{one}" for one in random.integers(0, 40, count)]


def quarters(random: Random) -> Columns:
    """Two persons have two sales in one quarter."""
    every = [(f"p{person}", quarter) for person in range(30) for quarter in range(1, 5)] + [("p1", 1), ("p2", 4)]
    return {
        "person": [person for person, _ in every],
        "quarter": [quarter for _, quarter in every],
        "pay": random.uniform(0, 1_000, len(every)).round(2),
    }


def six(random: Random, count: int) -> Columns:
    words = {
        "a": [1, 2, 3, 4],
        "b": [1, 2, 3],
        "c": ["x", "y"],
        "d": [1, 2, 3, 4, 5],
        "e": ["u", "v", "w"],
        "f": [1, 2],
    }
    return {name: random.choice(values, count) for name, values in words.items()}


PAGES = ["home", "news", "sport", "shop", "help", "jobs", "maps", "mail"]
DATA: Mapping[int, Callable[[Random], Mapping[str, Columns]]] = {
    2: lambda random: {"people": people(random, 500)},
    3: lambda random: {"people": {"pay": random.integers(0, 201, 1_000)}},
    5: lambda random: {"visits": {"page": random.choice(PAGES, 400)}},
    6: lambda random: {"visits": {"person": owners(random, 300), "day": moments(random, 300)}},
    11: lambda random: {
        "patients": {"patient": [f"p{one}" for one in range(40)], "sex": random.choice(["F", "M"], 40)},
        "visits": {"patient": owners(random, 90), "day": random.integers(1, 31, 90)},
        "diagnoses": {"patient": owners(random, 30), "code": random.choice(["J10", "E11"], 30)},
    },
    12: lambda random: {"sales": quarters(random)},
    13: lambda random: {"answer": {"person": np.arange(1, 1_001), "answer": random.choice(["yes", "no"], 1_000)}},
    14: lambda random: {"people": six(random, 300)},
    15: lambda random: {"vote": {"choice": random.choice(["north", "east", "south"], 100)}},
}
"""Where a task is not about the people of `people`."""


def tables_of(number: int) -> Mapping[str, Columns]:
    return DATA.get(number, lambda random: {"people": people(random, 1_000)})(np.random.default_rng(28))


def stored(tables: Mapping[str, Columns], folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """The same tables as CSV, as Parquet and in a DuckDB database, as `--input` takes them."""
    found: dict[str, dict[str, Any]] = {"csv": {}, "parquet": {}, "duckdb": {}}
    database = folder / "tables.duckdb"
    with duckdb.connect(database) as open_database:
        for name, columns in tables.items():
            frame = pl.DataFrame(columns, strict=False)
            frame.write_csv(folder / f"{name}.csv")
            frame.write_parquet(folder / f"{name}.parquet")
            open_database.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet('{folder}/{name}.parquet')")
            found["csv"][name] = folder / f"{name}.csv"
            found["parquet"][name] = folder / f"{name}.parquet"
            found["duckdb"][name] = f"{database}::{name}"
    return found


# --- what is tested -------------------------------------------------------------------------------


def test_sixteen_tasks_are_there() -> None:
    assert {*TASKS} == set(range(1, 17))
    for text in TASKS.values():
        lines = [line for line in text.splitlines() if line.strip()]
        assert len(lines) <= 15
        assert {line.partition(":")[0] for line in lines if not line.startswith(" ")} <= {*SECTIONS}


@pytest.mark.slow
def test_twenty_thousand_rows_agree_with_all_tables_of_two_columns() -> None:
    found = plan(14)
    release = found.run({"people": six(np.random.default_rng(5), 20_000)}, randomness=SimulationRandomness(2))
    rows = found.synthetic(release, 20_000)
    assert len(rows.places) == 20_000
    assert len(rows.tables) == 15
    assert all(one.within for one in rows.tables)


@pytest.mark.parametrize("number", EACH)
def test_a_task_is_solved_verified_run_on_three_formats_and_explained(number: int, tmp_path: Path) -> None:
    found = plan(number)
    assert found.status in ("optimal", "feasible")
    assert found.verify().ok
    model = found.model()
    drawn = []
    for form, inputs in stored(tables_of(number), tmp_path).items():
        release = found.run(inputs, randomness=SimulationRandomness(1))
        assert {node.name for node in model.outputs} <= set(release.values), form
        drawn.append({name: np.asarray(value).tolist() for name, value in release.values.items()})
    assert drawn[0] == drawn[1] == drawn[2]
    public, *others = (found.explain(reader) for reader in ("public", "auditor", "engineer"))
    assert all(len(page) > 1_000 for page in others)
    assert 300 <= sum(1 for word in public.split() if re.search(r"\w", word)) <= 450


# --- errors ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Told:
    """Data whose truth is worked out here, row by row: in place of `Made`, which knows declared columns alone."""

    files: Mapping[str, Any]
    true: Mapping[str, Any]
    spoilt: bool = False
    u: int = 0

    def truth(self, case: Case, name: str) -> Any:
        return np.asarray(self.true[name], dtype=float).reshape(-1)


def sums(table: Columns, name: str) -> Mapping[str, Any]:
    """The sums behind a correlation or a regression: age and pay run from -1 to 1 around the middle of their ranges."""
    age, pay = np.asarray(table["age"]) / 50 - 1, np.asarray(table["pay"]) / 5_000 - 1
    found = {"count": len(age), "age": age.sum(), "pay": pay.sum(), "products": age @ pay, "age*pay": age @ pay}
    return {f"{name}.{one}": value for one, value in (found | {"age*age": age @ age, "pay*pay": pay @ pay}).items()}


def flu(tables: Mapping[str, Columns]) -> list[int]:
    """Patients by sex, by flu, and by three visits or more: in this order are they labelled."""
    visits, ill = Counter(tables["visits"]["patient"]), set[str]()
    for patient, code in zip(*tables["diagnoses"].values(), strict=True):
        ill |= {patient} if code == "J10" else set()
    cells = Counter((sex, one in ill, visits[one] >= 3) for one, sex in zip(*tables["patients"].values(), strict=True))
    return [cells[sex, has, often] for sex in "FM" for has in (False, True) for often in (False, True)]


TRUE: Mapping[int, Callable[[Mapping[str, Columns]], Mapping[str, Any]]] = {
    4: lambda tables: {"bins": np.histogram(tables["people"]["age"], range(0, 101, 5))[0]},
    8: lambda tables: sums(tables["people"], "r"),
    9: lambda tables: sums(tables["people"], "line"),
    11: lambda tables: {"flu": flu(tables)},
}
"""Of tasks whose columns are derived, what is true of the data."""


def spoilt(tables: Mapping[str, Columns]) -> Mapping[str, Columns]:
    """The same tables with a tenth of the cells beyond any limit, or with words that nobody listed; ids stay."""

    def changed(name: str, cells: Any) -> list[Any]:
        far = "nobody" if isinstance(cells[0], str) else 10**6
        return [far if place % 10 == 0 and name != "patient" else one for place, one in enumerate(cells)]

    return {table: {name: changed(name, cells) for name, cells in columns.items()} for table, columns in tables.items()}


def read(case: Case, tables: Mapping[str, Columns], folder: Path) -> Mapping[str, Any]:
    """What a mechanism reads: files, or one record a person where the plan is about all of that person's."""
    return by_person(case.document, stored(tables, folder)["csv"], RunContext(model=case.model))


@pytest.mark.parametrize("number", EACH)
def test_stated_errors_are_met(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One figure is within three standard errors of 200 runs, each of many numbers within six, as the house has it."""
    case = Case(plan(number))
    check_sentences(case)
    if number not in TRUE:
        check_pages(case, tmp_path)
        told = [made(case, done, tmp_path) for done in (None, *Done)]
    else:
        tables = tables_of(number)
        (tmp_path / "spoilt").mkdir()
        told = [
            Told(read(case, tables, tmp_path), TRUE[number](tables)),
            Told(read(case, spoilt(tables), tmp_path / "spoilt"), {}, spoilt=True),
        ]
    for said in case.said:
        for data in told:
            with monkeypatch.context() as closer:
                closer.setattr(truth, "FAR", 6.0 if said.measure == "mean" else 3.0)
                truth.check_of(said.measure)(case, said, data, tmp_path)
