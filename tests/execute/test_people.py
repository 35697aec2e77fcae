"""Records by person: the choice is uniform and exact, ids are one person's or not by a public rule, and never shown."""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privspec.api import Problem
from privspec.core.diagnostics import DataError, PrivspecError
from privspec.execute import kept as kept_records
from privspec.execute import statistic, warehouse
from privspec.execute.data import Grid, count_cells
from privspec.execute.family import RunContext
from privspec.execute.keeper import DataOwnerReport
from privspec.execute.kept import AGAIN, People, _at_most
from privspec.execute.sources import Folder, TextFiles
from privspec.execute.statistic import Attribute, Statistic
from privspec.execute.warehouse import OfTable, Table
from privspec.kernel.core.linear import Column, InputLayout
from privspec.kernel.core.problem import ContributionBound
from privspec.noise.samplers import SimulationRandomness

SECRET = "Ann-8675309"


def table(most: int, per_cell: int | None = None, person: str = "person") -> Grid:
    kind = Column("kind", ("a", "b", "c"), None, None, (), False)
    held = InputLayout("visits", 0, 3, "cells", (), Fraction(0), None, None, (kind,), None, None)
    return Grid(held, Fraction(1), drops=True, kept=ContributionBound(person, most, per_cell))


def counted(grid: Grid, source: Any, seed: int = 0, **said: Any) -> list[int]:
    found = count_cells(grid, source, RunContext(randomness=SimulationRandomness(seed), **said))
    return [int(count) for count in found]


def chosen(counts: list[int], most: int, *rounds: Sequence[int]) -> tuple[int, ...]:
    """What is left of one owner's records by the words of some rounds; others' around it stay as they are."""
    found, asked = np.array([1, *counts, most]), []

    def words(some: Any, number: int) -> Any:
        assert some.tolist() == [0]
        asked.append(number)
        return np.array([rounds[number % AGAIN][number // AGAIN]], dtype=np.uint64)

    def of(starts: Any) -> Any:
        assert starts.tolist() == [1]
        return words

    _at_most(most, np.array([0, 1, len(counts) + 1]), found, of)
    assert found[0] == 1
    assert found[-1] == most
    assert len(asked) == sum(map(len, rounds))
    return tuple(found[1:-1].tolist())


@pytest.mark.parametrize("counts", [[3, 2], [1, 1, 1, 1], [0, 4, 1]])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_every_choice_of_records_is_equally_likely(counts: list[int], most: int) -> None:
    """All that words can say enumerated: each set of records comes equally often."""
    total = sum(counts)
    every = product(*(range(total - drawn) for drawn in range(most)))
    # so that no word is taken again
    found = Counter(
        chosen(counts, most, *([total * (total - 1) * (total - 2) * 60 + word] for word in words)) for words in every
    )
    kinds = [kind for kind, count in enumerate(counts) for _ in range(count)]
    wanted: Counter[tuple[int, ...]] = Counter()
    for some in combinations(kinds, most):
        wanted[tuple(some.count(kind) for kind in range(len(counts)))] += 1
    share = Fraction(sum(found.values()), comb(total, most))
    assert {key: Fraction(value) for key, value in found.items()} == {k: v * share for k, v in wanted.items()}


def test_words_that_leave_the_choice_open_are_drawn_again() -> None:
    """2^64 is 1 more than a multiple of 3 and of 5: of all words the first would make 0 likelier."""
    assert chosen([1, 1, 1], 1, [0, 4]) == (0, 1, 0)
    assert chosen([1, 1, 1], 2, [0, 0, 2], [0]) == (0, 1, 1)
    assert chosen([2, 2, 1], 1, [2**64 - 2]) == (0, 0, 1)


KIND = ["a", "b", "c"]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("per_cell", [None, 1, 2])
def test_what_is_kept_of_a_person_follows_from_that_person_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, per_cell: int | None, *, whole: bool
) -> None:
    """Whoever else is there, in whichever order, engine and parts, ids whole or texts: a seed draws the same."""
    duckdb = pytest.importorskip("duckdb")
    drawn = random.Random(5)
    rows = [(who, drawn.choice(KIND)) for who in range(8) for _ in range(drawn.randint(1, 12))]
    each = {who: [row for row in rows if row[0] == who] for who in range(8)}
    grid, seed = table(4, per_cell), 11

    def kept(some: Sequence[tuple[int, str]]) -> list[int]:
        ids = pl.Series([who for who, _ in some], dtype=pl.Int64)
        return counted(
            grid, pl.DataFrame({"person": ids if whole else ids.cast(pl.String), "kind": [k for _, k in some]}), seed
        )

    alone = [kept(own) for own in each.values()]
    assert kept(rows) == np.sum(alone, axis=0).tolist()
    drawn.shuffle(rows)
    assert kept(rows) == np.sum(alone, axis=0).tolist()
    assert len({tuple(kept([row for row in rows if row[0] in (0, who)])) for who in range(1, 8)}) > 1
    with duckdb.connect(str(tmp_path / "x.duckdb")) as database:
        database.execute(f"CREATE TABLE t(person {'INTEGER' if whole else 'VARCHAR'}, kind VARCHAR)")
        database.executemany("INSERT INTO t VALUES (?, ?)", rows)
    asked = list[str]()
    monkeypatch.setattr(warehouse, "_frames", lambda *given: asked.append(given[2]) or FRAMES(*given))
    for most in (2**25, 20, 5):
        monkeypatch.setattr(warehouse, "MOST_AT_ONCE", most)
        monkeypatch.setattr(kept_records, "BLOCK", most)
        monkeypatch.setattr(statistic, "BATCH", min(most, 7))
        asked.clear()
        found = counted(grid, Table.of("x", tmp_path / "x.duckdb", "t"), seed)
        assert found == np.sum(alone, axis=0).tolist(), most
        assert len(asked) == {2**25: 1, 20: 4, 5: 16}[most]


FRAMES = warehouse._frames


def test_ids_that_are_written_in_several_ways_are_in_one_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.setattr(warehouse, "MOST_AT_ONCE", 1)
    ids = ["7", "7.0", " 7", "7 ", "ann", "an\u200bn", "bob"]
    with duckdb.connect(str(tmp_path / "x.duckdb")) as database:
        database.execute("CREATE TABLE t(person VARCHAR, kind VARCHAR)")
        database.executemany("INSERT INTO t VALUES (?, 'a')", [[one] for one in ids])
    assert counted(table(1), Table.of("x", tmp_path / "x.duckdb", "t")) == [3, 0, 0]


@pytest.mark.parametrize("per_cell", [None, 1, 2])
def test_many_cells_and_distant_ids_are_counted_as_few(per_cell: int | None) -> None:
    """Ids that lie close together are looked up in a table, others sorted: the same records are kept of each."""
    drawn = random.Random(3)
    rows = [(who, drawn.choice(KIND)) for who in (1, 2, 5, 9, 17) for _ in range(9)]
    near = {"person": [who for who, _ in rows], "kind": [kind for _, kind in rows]}
    far = pl.DataFrame({"person": [*near["person"], 2**62, -(2**62)], "kind": [*near["kind"], "a", "b"]})
    found = counted(table(4, per_cell), near, 2)
    assert counted(table(4, per_cell), far, 2) == [found[0] + 1, found[1] + 1, found[2]]
    assert sum(found) == 5 * min(4, 3 * (per_cell or 4))


def test_nobody_has_more_than_is_kept_and_others_lose_nothing() -> None:
    people = ["ann"] * 50 + ["bob"] * 2 + ["cyd"] * 9
    frame = {"person": people, "kind": (["a", "b", "c"] * 30)[: len(people)]}
    for seed in range(20):
        assert sum(counted(table(4), frame, seed)) == 4 + 2 + 4
        found = counted(table(6, 2), frame, seed)
        assert max(found) <= 2 * 3 and sum(found) == 6 + 2 + 6
    alone = {"person": ["ann"] * 9, "kind": ["a"] * 8 + ["b"]}
    assert counted(table(6, 2), alone) == [2, 1, 0]


def test_the_choice_is_fair_to_all_records() -> None:
    frame = {"person": ["ann"] * 10, "kind": ["a"] * 6 + ["b"] * 3 + ["c"]}
    mean = np.mean([counted(table(5), frame, seed) for seed in range(400)], axis=0)
    assert np.abs(mean - [3, 1.5, 0.5]).max() < 0.2


def test_one_person_changes_what_is_counted_by_no_more_than_is_kept() -> None:
    """The same coins for everybody else: what they keep does not depend on who else is there."""
    rest = [("bob", "a")] * 7 + [("cyd", "b")] * 2
    with_ann = rest + [("ann", "c")] * 30

    def laws(rows: list[tuple[str, str]]) -> set[tuple[int, ...]]:
        frame = {"person": [who for who, _ in rows], "kind": [kind for _, kind in rows]}
        return {tuple(counted(table(3), frame, seed)) for seed in range(10)}

    assert laws(rest) == {(3, 2, 0)}
    assert laws(with_ann) == {(3, 2, 3)}


SAME = [
    *(["ann", " ann", "ann\t", "ann "], ["Zoë", "Zoë"], ["7", "7 ", "7.0", "7.00", "+7"]),
    *(["ann", "an\u200bn", "\ufeffann", "ann\u00ad", "ann\u2060", "ann\x00"], ["a b", "a\u00a0b", "a\u2003 b", "a\tb"]),
]
APART = [["ann", "Ann", "ANN"], ["7", "007", "7.1", "7.10"], ["fi", "\ufb01"], ["a b", "ab"]]


@pytest.mark.parametrize("ids", SAME)
def test_ids_that_are_one_person(ids: list[str]) -> None:
    assert sum(counted(table(1), {"person": ids, "kind": ["a"] * len(ids)})) == 1


@pytest.mark.parametrize("ids", APART)
def test_ids_that_are_several_people_which_the_keeper_is_told(ids: list[str]) -> None:
    keeper = DataOwnerReport()
    assert sum(counted(table(1), {"person": ids, "kind": ["a"] * len(ids)}, keeper=keeper)) == len(ids)
    said = " ".join(keeper.report())
    assert ("count as different people" in said) == (ids[0] != "7")
    assert not any(f" {one} " in said for one in ids)


WHOLE = [
    pl.Series([7, 8]),
    pl.Series([7, 8], dtype=pl.UInt8),
    pl.Series([7.0, 8.0]),
    pl.Series([7.0, 8.0], dtype=pl.Float32),
    pl.Series([Decimal("7.00"), Decimal("8.00")]),
    pl.Series(["7", "8"]),
    pl.Series(["7.0", "\u200b8 "]),
    pl.Series(["7", "8"], dtype=pl.Categorical),
    pl.Series([b"7", b"8.0"]),
]


@pytest.mark.parametrize("engine", [True, False])
def test_a_whole_number_is_one_person_whatever_its_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: bool
) -> None:
    """In a folder whose files hold the ids as whole numbers, floats, decimals and words, and in memory."""
    if not engine:
        monkeypatch.setitem(sys.modules, "duckdb", None)
    for number, ids in enumerate(WHOLE):
        ids.to_frame("person").with_columns(kind=pl.lit("a")).write_parquet(tmp_path / f"{number}.parquet")
    keeper = DataOwnerReport()
    assert counted(table(1), Folder.of("x", tmp_path), keeper=keeper) == [2, 0, 0]
    assert any("person is of different kinds in different files" in line for line in keeper.brief())
    mixed = [7, 7.0, Decimal("7.00"), "7", np.float32(7), np.int8(7), "7.000\ufeff", b"7"]
    assert counted(table(1), {"person": mixed, "kind": ["a"] * len(mixed)}) == [1, 0, 0]
    listed = [{"person": one, "kind": "a"} for one in (7, 7.0, "7", " 7.0", 8)]
    (tmp_path / "x.json").write_text(json.dumps(listed))
    assert counted(table(1), tmp_path / "x.json") == [2, 0, 0]


def test_ids_of_a_database_are_the_same_whatever_their_kind(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    kinds = ("TINYINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL(9, 2)", "VARCHAR", "BLOB", "DATE", "TIMESTAMP")
    with duckdb.connect(str(tmp_path / "x.duckdb")) as database:
        for number, kind in enumerate(kinds):
            one = "DATE '2024-01-01'" if kind in ("DATE", "TIMESTAMP") else "'7'"
            database.execute(f"CREATE TABLE t{number} AS SELECT CAST({one} AS {kind}) AS person, 'a' AS kind")
    said = [OfTable("x", Table.of("x", tmp_path / "x.duckdb", f"t{number}")) for number in range(len(kinds))]
    asked = Statistic("x", (Attribute("kind", ("a", "b")),), 1, "person")
    found = [People.of(groups.people) for one in said for groups in one.groups(asked, lambda *_: None)]
    people = [text for one in found for text in one.texts(one.owner)]
    assert people == ["7"] * 7 + ["2024-01-01"] * 2


@pytest.mark.parametrize("blank", ["", "  ", None, "\u00a0", "\u200b", "\u2800 \ufeff"])
def test_a_record_of_nobody_is_left_out(blank: str | None) -> None:
    """Whatever their number: nothing says that they are several people's, or one's."""
    keeper = DataOwnerReport()
    frame = {"person": [blank, blank, "ann"], "kind": ["a", "a", "b"]}
    assert counted(table(5), frame, keeper=keeper) == [0, 1, 0]
    assert any("2 of 3 records say no person and are left out" in line for line in keeper.report())
    with pytest.raises(DataError, match="PS0809"):
        counted(table(5), frame, strict=True)


@pytest.mark.parametrize(
    "ids",
    [
        pl.Series([2**53, 2**53 + 1, 2**53]),
        pl.Series([2**63, 2**63 + 1, 2**63], dtype=pl.UInt64),
        pl.Series(["9007199254740992", "9007199254740993", "9007199254740992"]).cast(pl.Decimal(20, 0)),
        pl.Series(["x", "y", "x"], dtype=pl.Categorical),
    ],
)
def test_every_digit_of_an_id_counts(ids: pl.Series) -> None:
    assert sum(counted(table(1), pl.DataFrame({"person": ids, "kind": ["a", "a", "a"]}))) == 2


def test_numbers_that_are_none_are_nobody() -> None:
    frame = pl.DataFrame({"person": [1.0, float("nan"), None, float("nan")], "kind": ["a"] * 4})
    assert sum(counted(table(1), frame)) == 1


def test_misfits_take_no_place_of_a_person() -> None:
    """A record that fits no cell is left out before the choice."""
    frame = {"person": ["ann"] * 9, "kind": ["nowhere"] * 7 + ["a", "b"]}
    assert counted(table(2), frame) == [1, 1, 0]


@pytest.mark.parametrize("source", [[1, 2, 3], np.array([1, 2, 3]), {"count": [1, 2, 3]}])
def test_counts_made_elsewhere_are_refused(source: Any) -> None:
    with pytest.raises(DataError, match="PS0804"):
        counted(table(2), source)


def test_a_file_without_the_column_or_without_names(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text(f"who,kind\n{SECRET},a\n")
    for said in ({}, {"texts": TextFiles(header=False)}):
        with pytest.raises(DataError, match="PS0804") as caught:
            counted(table(2), path, **said)
        assert SECRET not in str(caught.value)


# --- end to end ----------------------------------------------------------------------------------------

SPEC = """\
variables:
  input visits in table(person in id, kind in {a, b, c}, spent in [0, 10])
  output O
  output S
loss: E[ ||O - histogram(visits, by = {kind})||^2 ] + E[ (S - sum(visits.spent))^2 ]
privacy: (O, S) is 100-GDP wrt visits, adding or removing one person with at most 2 records
"""


def test_a_release_says_what_is_kept_and_nothing_of_whom(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("person,kind,spent\n" + f"{SECRET},a,10\n" * 40 + "bob,b,5\n" + f"{SECRET} ,c,10\n,c,1\n")
    plan = Problem(SPEC, {}).solve()
    keeper = DataOwnerReport()
    release = plan.run({"visits": path}, randomness=SimulationRandomness(3), keeper=keeper)
    counts, spent = release.values["O"], release.values["S"]
    assert np.abs(np.sum(counts) - 3) < 0.5 and np.abs(spent - 25) < 2
    document = release.to_json()
    text = json.dumps(document, default=str)
    assert SECRET not in text and "cut" not in text
    assert not {"39", "40", "43"} & set(re.findall(r"\d+", json.dumps(document["data_rules"])))
    assert "at most 2 records of each person are kept, drawn uniformly at random" in text
    assert any("39 of 43 records are cut, those of 1 of 2 ids with more than 2" in line for line in keeper.report())
    assert all(SECRET not in plan.explain(reader) for reader in ("public", "auditor", "engineer"))


def test_pages_say_that_only_so_many_records_count() -> None:
    """However many somebody has: no page gives odds for two or ten records of one person."""
    plan = Problem(SPEC.replace("100-GDP", "1-GDP"), {}).solve()
    public, auditor = plan.explain("public"), plan.explain("auditor")
    assert "At most 2 of your records count, drawn at random." in public
    assert "records at once" not in public and "records are yours" not in public
    assert "If 2 people act as one, like a family" in public
    assert "person, of whom at most 2 records count" in auditor
    assert (
        "which is not read" not in auditor
        and "counts as two, and is protected less. *(assumed: spec line 6)*" in auditor
    )


def test_a_line_about_records_of_a_table_with_ids_is_warned_about() -> None:
    """It solves as asked: without ids, every record is its own unit, and none is left out."""
    text = SPEC.replace("one person with at most 2 records", "one record")
    problem = Problem(text, {})
    assert [one.code for one in problem.check().warnings] == ["PS0342"]
    plan = problem.solve()
    data = {"person": ["ann"] * 5, "kind": ["a"] * 5, "spent": ["1"] * 5}
    assert np.abs(plan.run({"visits": data}, randomness=SimulationRandomness(1)).values["O"] - [5, 0, 0]).max() < 0.5


TWO = """\
variables:
  input people in table(person in id, age in 0..1)
  input visits in table(person in id, kind in {a, b})
  output O
  output V
loss: E[ ||O - histogram(people)||^2 ] + E[ ||V - histogram(visits)||^2 ]
privacy: (O, V) is 100-GDP wrt (people, visits), UNIT one person with at most 2 records
"""


@pytest.mark.parametrize("verb", ["adding or removing", "replacing"])
def test_one_person_in_two_tables(verb: str) -> None:
    """All records of one person in both move at once, and each table keeps as many of them."""
    plan = Problem(TWO.replace("UNIT", verb), {}).solve()
    assert plan.verify().ok
    data = {"people": {"person": ["ann"] * 5, "age": ["1"] * 5}, "visits": {"person": ["ann"] * 9, "kind": ["b"] * 9}}
    release = plan.run(data, randomness=SimulationRandomness(1))
    assert np.abs(release.values["O"] - [0, 2]).max() < 0.5
    assert np.abs(release.values["V"] - [0, 2]).max() < 0.5
    assert plan.loss is not None
    alone = 4 * (2 * 2**0.5 / 100) ** 2
    assert plan.status == "optimal"
    # noise of equal size would be certain to hide it; that the parts move one way is worth something
    assert alone / 2 < plan.loss.value < alone * (2 if verb == "replacing" else 1)


REFUSED = {
    "no such column": ("visits in table(person in id, kind in {a})", "one user with at most 2 records", "PS0231"),
    "a party of the name": ("visits in table(kind in {a})", "one record, at most 1 in one cell", "PS0230"),
    "no ids for cells": (
        "visits in table(kind in {a})",
        "one person with at most 2 records, at most 1 in one cell",
        "PS0230",
    ),
    "a known number": ("visits in table(person in id, kind in {a})^9", "one record", "PS0226"),
    "ids alone": ("visits in table(person in id)", "one record", "PS0221"),
    "twice": ("visits in table(person in id, person in {a})", "one record", "PS0202"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_specs_that_are_refused(name: str) -> None:
    table, unit, code = REFUSED[name]
    text = f"variables:\n  input {table}\n  output O\nloss: E[ (O - count(visits))^2 ]\n"
    with pytest.raises(PrivspecError) as caught:
        Problem(f"{text}privacy: O is 1-GDP wrt visits, adding or removing {unit}", {}).solve()
    assert caught.value.diagnostics[0].code == code


@pytest.mark.parametrize("trust", ["nobody", "secure_sum"])
def test_one_keeper_has_to_hold_all_records_of_a_person(trust: str) -> None:
    text = SPEC + f"options: trust {trust}\n"
    with pytest.raises(PrivspecError, match=r"PS0501|PS0540"):
        Problem(text, {}).solve()


def test_the_other_lines_of_a_table_keep_the_same_records() -> None:
    other = SPEC.replace(
        "(O, S) is", "O is 1-GDP wrt visits, adding or removing one person with at most 3 records\n  (O, S) is"
    )
    with pytest.raises(PrivspecError, match="PS0501"):
        Problem(other, {}).solve()
