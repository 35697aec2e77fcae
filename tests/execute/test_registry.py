"""A data set has one ledger, whatever its files, plans and ledgers are called, and however old they are."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import stat
import struct
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privspec.core.diagnostics import BudgetError, Diagnostic, UsageError
from privspec.core.render import render
from privspec.execute import ledger
from privspec.execute.budget import Unit
from privspec.execute.fingerprint import Seeds
from privspec.execute.keeper import DataOwnerReport
from privspec.execute.ledger import Account, LedgerState, names_in
from privspec.execute.registry import registration, registry_path
from privspec.execute.run import _run as run
from privspec.execute.sketching import found_in
from privspec.execute.sources import TextFiles
from privspec.kernel.writing import plan_digest
from tests.execute.knowing import pay_for, refusal, tables

MakePlan = Callable[..., dict[str, Any]]
VALUES = [0.1, 0.25, 0.3, 0.45]


def written(path: Path, values: list[float] = VALUES) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x\n" + "\n".join(map(str, values)) + "\n")
    return path


def refused(code: str, plan: dict[str, Any], data: Any, **how: Any) -> BudgetError:
    with pytest.raises(BudgetError, match=code) as caught:
        run(plan, {"x": data}, **how)
    assert caught.value.exit_code == 6
    return caught.value


@pytest.fixture
def paid(tmp_path: Path, identity_plan: dict[str, Any]) -> Path:
    """Data that were released once, with a ledger under its default name."""
    data = written(tmp_path / "people.csv")
    run(identity_plan, {"x": data}, new_ledger=True)
    return data


def test_a_run_without_a_budget_is_refused_with_both_commands(tmp_path: Path, identity_plan: dict[str, Any]) -> None:
    data = written(tmp_path / "people.csv")
    (told,) = refused("PS1010", identity_plan, data).diagnostics
    assert render(told).splitlines() == [
        "error[PS1010]: this data set has no budget yet",
        "  = help: decide what all releases of it together may spend:  "
        f"privspec ledger init {tmp_path / 'people.ledger.db'} --limit 'epsilon=2 delta=1e-6'",
        "  = help: or give it exactly what this plan spends:            privspec run ... --new-ledger",
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["people.csv"]
    refused("PS1010", identity_plan, VALUES)
    ledger.create(tmp_path / "people.ledger.db", ["mu=1"])
    run(identity_plan, {"x": data})


def test_a_budget_is_declared_once(paid: Path, identity_plan: dict[str, Any]) -> None:
    refused("PS1001", identity_plan, paid)
    refused("PS1011", identity_plan, paid, new_ledger=True)


def test_another_plan_of_the_same_data_is_paid_from_the_same_ledger(
    paid: Path, make_plan: MakePlan, identity_plan: dict[str, Any]
) -> None:
    other = make_plan(2 * np.eye(4), np.eye(4) / 2, achieved={"mu": "1/100"})
    copied = {**identity_plan, "spec": {"name": "copied"}}
    copied["digest"] = plan_digest(copied)
    for plan in (other, copied):
        refused("PS1001", plan, paid)
        refused("PS1011", plan, paid, new_ledger=True)


@pytest.mark.parametrize("new", [True, False])
def test_a_copy_another_name_or_another_format_is_the_same_data(
    paid: Path, identity_plan: dict[str, Any], new: bool
) -> None:
    folder = paid.parent / "elsewhere"
    folder.mkdir()
    shutil.copy(paid, folder / "copy.csv")
    pl.DataFrame({"another name": VALUES}).write_parquet(folder / "x.parquet")
    np.save(folder / "x.npy", np.array(VALUES))
    (folder / "x.json").write_text(json.dumps({"x": VALUES}))
    (folder / "bare.csv").write_text("".join(f"{v:.3f}\n" for v in VALUES))
    for name in ("copy.csv", "x.parquet", "x.npy", "x.json"):
        error = refused("PS1012", identity_plan, folder / name, new_ledger=new)
        assert f"--ledger {paid.parent / 'people.ledger.db'}" in (error.diagnostics[0].help or "")
    for values in (VALUES, np.array(VALUES), pl.Series(VALUES), pl.DataFrame({"x": VALUES})):
        refused("PS1012", identity_plan, values, ledger=folder / "named.db", new_ledger=new)
    refused("PS1012", identity_plan, folder / "bare.csv", texts=TextFiles(header=False), new_ledger=new)
    assert not list(folder.glob("*.db"))


def test_a_ledger_of_another_name_does_not_begin_anew(
    paid: Path, identity_plan: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = paid.parent / "other.db"
    refused("PS1012", identity_plan, paid, ledger=other)
    refused("PS1012", identity_plan, paid, ledger=other, new_ledger=True)
    monkeypatch.setenv("PRIVSPEC_LEDGER", str(other))
    refused("PS1012", identity_plan, paid, new_ledger=True)
    ledger.create(other, ["mu=9"])
    refused("PS1012", identity_plan, paid)


def test_a_deleted_ledger_does_not_begin_anew(paid: Path, identity_plan: dict[str, Any]) -> None:
    book = paid.with_name("people.ledger.db")
    book.unlink()
    for new in (True, False):
        refused("PS1013", identity_plan, paid, new_ledger=new)
        # a corrected file is the same people, and their ledger stood here
        refused("PS1013", identity_plan, written(paid.with_name("people.csv"), [0.1, 0.2, 0.3, 0.4]), new_ledger=new)
        written(paid)
    ledger.create(book, ["mu=9"])
    refused("PS1013", identity_plan, paid)


def test_an_older_copy_of_the_ledger_is_noticed(paid: Path, identity_plan: dict[str, Any]) -> None:
    book, old = paid.with_name("people.ledger.db"), paid.with_name("old")
    ledger.create(book, ["mu=9 wrt x, replacing one entry"], change=True)
    shutil.copy(book, old)
    run(identity_plan, {"x": paid})
    newest = book.read_bytes()
    shutil.copy(old, book)
    refused("PS1013", identity_plan, paid)
    refused("PS1013", identity_plan, paid, ledger=old)
    book.write_bytes(newest)
    run(identity_plan, {"x": paid})
    # two copies that both went on: only one of them holds what was paid
    refused("PS1013", identity_plan, paid, ledger=old)


def test_a_ledger_that_moved_is_used_at_its_new_place(paid: Path, identity_plan: dict[str, Any]) -> None:
    book, moved = paid.with_name("people.ledger.db"), paid.with_name("moved.db")
    ledger.create(book, ["mu=9 wrt x, replacing one entry"], change=True)
    book.rename(moved)
    refused("PS1013", identity_plan, paid)
    run(identity_plan, {"x": paid}, ledger=moved)
    # and a corrected file under it is the same people
    run(identity_plan, {"x": written(paid.with_name("corrected.csv"), [0.1, 0.2, 0.3, 0.4])}, ledger=moved)
    assert ledger.verify(moved).debits == 3


@pytest.mark.parametrize(
    ("first", "then", "known"),
    [("1", "2", False), ("1", "1", True), ("1", None, True), (None, "1", True), (None, None, True)],
)
def test_the_same_answer_of_two_parties_is_two_data_sets(
    tmp_path: Path, first: str | None, then: str | None, known: bool
) -> None:
    pay_for(["red"], tmp_path / "first.db", party=first)
    assert bool(refusal(["red"], tmp_path, party=then)) is known


def test_the_registry_is_for_its_user_alone_and_its_secrets_stay_in_it(
    paid: Path, identity_plan: dict[str, Any]
) -> None:
    out = paid.with_name("o.json")
    book = paid.with_name("people.ledger.db")
    ledger.create(book, ["mu=9 wrt x, replacing one entry"], change=True)
    run(identity_plan, {"x": paid}, output=out)
    place = registry_path()
    assert stat.S_IMODE(place.stat().st_mode) == 0o600 and stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    database = sqlite3.connect(place)
    ((key,),) = database.execute("SELECT key FROM secret").fetchall()
    tags = {row[0] for row in database.execute("SELECT tag FROM columns UNION SELECT known FROM data")}
    database.close()
    assert len(key) == 32 and len(tags) >= 2
    for text in (out.read_text(), book.read_bytes().decode("latin-1")):
        assert key.hex() not in text and not any(tag in text for tag in tags)
    # what is kept is no plain digest of the data, which anybody could compare with a guess
    for table in found_in("x", paid, Seeds.of(key)).tables:
        for sketch in table.columns.values():
            said = (sketch.digest(), hashlib.sha256(sketch.digest()).digest())
            assert not any(tag in one.hex() for tag in tags for one in said)
    whole = place.read_bytes()
    assert not any(struct.pack(order + kind, value) in whole for order in "<>" for kind in "df" for value in VALUES)
    assert not any(str(value).encode() in whole for value in VALUES)


def test_without_a_registry_nothing_is_released(
    tmp_path: Path, identity_plan: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for state in ("file", "taken"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / state))
        if state == "taken":
            registry_path().parent.mkdir(parents=True)
            registry_path().write_bytes(b"somebody's")
        with pytest.raises(UsageError, match="PS1014"):
            run(identity_plan, {"x": VALUES}, ledger=tmp_path / "l.db", new_ledger=True)
    assert not (tmp_path / "l.db").exists()


def test_what_cannot_be_read_as_a_table_is_known_by_its_bytes(tmp_path: Path) -> None:
    for name, content in (("a.json", b"[" * 10**5), ("a.npy", b"?"), ("a.soc", b"1")):
        (tmp_path / name).write_bytes(content)
        first = tables(tmp_path / name)
        (tmp_path / name).write_bytes(content + b" ")
        assert all(first) and first != tables(tmp_path / name)
    assert tables([[1], [2, 3]]) != tables([[1], [2, 4]])
    assert tables(7) == tables([7]) == tables(np.array([[7.0]]))
    assert tables([]) == [frozenset()]
    # days beyond every calendar, numbers beyond what Python prints, signs that are no text
    far = pa.array([2**31 - 1, 0], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"x": [1.0, 2.0], "day": far}), tmp_path / "a.parquet")
    for source in (tmp_path / "a.parquet", pl.read_parquet(tmp_path / "a.parquet"), [10**5000, 1], {"x": ["a\ud800"]}):
        assert all(tables(source))


# --- so little that it may agree by chance --------------------------------------------------------

ANSWERS = ["yes"] * 6 + ["no"] * 4


def test_the_same_few_answers_of_other_people_are_stated_on_record(
    tmp_path: Path, identity_plan: dict[str, Any]
) -> None:
    first, second = tmp_path / "may.ledger.db", tmp_path / "june.ledger.db"
    run(identity_plan, {"x": VALUES}, ledger=first, new_ledger=True)
    error = refused("PS1012", identity_plan, VALUES[::-1], ledger=second, new_ledger=True)
    assert error.diagnostics[0].help == (
        f"give --ledger {first}\n\nif they are other people's, say so on record:  --other-people 'why'"
    )
    for why in ("", "  ", "x" * 201, "a\x1b[2J"):
        with pytest.raises(UsageError, match="PS0721"):
            run(identity_plan, {"x": VALUES}, ledger=second, new_ledger=True, other_people=why)
    assert not second.exists()
    run(identity_plan, {"x": VALUES}, ledger=second, new_ledger=True, other_people="the class\n of June")
    assert ledger.verify(second).debits == 1
    assert "these are other people's data: the class of June" in ledger.show(second).describe()
    # from now on either ledger is theirs, and none besides
    for path in (first, second):
        refused("PS1001", identity_plan, VALUES, ledger=path)
        ledger.create(path, ["mu=9 wrt x, replacing one entry"], change=True)
        run(identity_plan, {"x": VALUES}, ledger=path)
    refused("PS1012", identity_plan, VALUES, ledger=tmp_path / "third.db", new_ledger=True)


@pytest.mark.parametrize(
    "data", [[], [None] * 4, ["yes"], ANSWERS, list(range(1, 9)), {"a": ANSWERS, "id": [*range(10)]}]
)
def test_empty_and_tiny_data_that_agree_are_refused_with_a_way_out(tmp_path: Path, data: Any) -> None:
    pay_for(data, tmp_path / "one.db")
    told = refusal(data, tmp_path)
    assert told is not None and "--other-people" in told
    assert refusal(data, tmp_path, others=True) is None
    pay_for(data, tmp_path / "two.db", others=True)


def test_of_few_cells_neither_a_row_number_nor_a_column_beside_makes_other_data(tmp_path: Path) -> None:
    pay_for(ANSWERS, tmp_path / "one.db")
    beside = ([*range(10)], ["a"] * 10, [None] * 10, [0.5, 3, 1, 7, 2, 2, 9, 4, 8, 1])
    for column in beside:
        assert refusal({"n": column, "x": ANSWERS}, tmp_path)
    pay_for({"x": [3, 1, 4, 1, 5, 9, 2, 6], "y": [2, 7, 1, 8, 2, 8, 1, 9]}, tmp_path / "two.db")
    assert refusal([3, 1, 4, 1, 5, 9, 2, 6], tmp_path)


def test_data_of_other_people_that_share_a_column_are_stated_on_record(tmp_path: Path) -> None:
    """Whoever shares an id with data that were released has to say that they are others."""
    rng = np.random.default_rng(1)
    ids, pay, age = rng.integers(0, 10**8, 99), rng.random(99), rng.random(99)
    pay_for({"id": ids, "pay": pay}, tmp_path / "one.db")
    told = refusal({"id": ids, "age": age}, tmp_path)
    assert told is not None and "--other-people" in told
    assert refusal({"id": ids, "age": age}, tmp_path, others=True) is None


# --- nearly the same ------------------------------------------------------------------------------


def changed(values: list[float], how: str) -> list[float]:
    return {
        "one less": values[1:],
        "three more": [*values, 0.111, 0.222, 0.333],
        "one other": [0.555, *values[1:]],
        "one in twenty others": [*np.linspace(0.1, 0.2, len(values) // 20), *values[len(values) // 20 :]],
    }[how]


@pytest.mark.parametrize("how", ["one less", "three more", "one other", "one in twenty others"])
@pytest.mark.parametrize("rows", [60, 2_000])
def test_data_that_are_nearly_the_same_are_pointed_out(tmp_path: Path, rows: int, how: str) -> None:
    values = np.random.default_rng(rows).random(rows).tolist()
    first, second = tmp_path / "one.ledger.db", tmp_path / "two.ledger.db"
    pay_for({"x": values, "y": [1, 2] * (rows // 2)}, first)
    near = {"z": changed(values, how)}
    with registration(near) as known:
        known.check(second, None)
        said = known.near()
    assert said is not None and said.code == "PS1017" and said.severity == "warning"
    assert str(first) in said.notes[0] and "--other-people" in (said.help or "")
    assert not any(f"{value}" in render(said) for value in values)
    # under their own ledger they are the same people in a corrected file
    with registration(near) as known:
        known.check(first, ledger.show(first))
        assert known.near() is None


def test_who_is_asked_and_declines_has_spent_nothing(tmp_path: Path, make_plan: MakePlan) -> None:
    plan = make_plan(np.eye(64), np.eye(64), achieved={"mu": "1/2"})
    values = np.random.default_rng(1).random(64).tolist()
    near, book = [0.5, *values[1:]], tmp_path / "two.db"
    run(plan, {"x": values}, ledger=tmp_path / "one.db", new_ledger=True)
    asked = list[Diagnostic]()

    def asks(said: Diagnostic) -> bool:
        asked.append(said)
        return False

    with pytest.raises(BudgetError, match="PS1017"):
        run(plan, {"x": near}, ledger=book, new_ledger=True, keeper=DataOwnerReport(asks=asks))
    assert len(asked) == 1 and not book.exists()
    # what is stated on record is asked no more, and who is not asked is warned
    run(
        plan,
        {"x": near},
        ledger=book,
        new_ledger=True,
        keeper=DataOwnerReport(asks=asks),
        other_people="a class beside",
    )
    assert len(asked) == 1
    with pytest.warns(UserWarning, match="nearly those of another ledger"):
        run(plan, {"x": [0.7, *near[1:]]}, ledger=tmp_path / "three.db", new_ledger=True)


def test_other_data_are_not_said_to_be_nearly_the_same(tmp_path: Path) -> None:
    """Fifty pairs of columns that have the same law: none is pointed out."""
    rng = np.random.default_rng(1)

    def draw() -> dict[str, Any]:
        return {
            "age": rng.integers(0, 90, 500),
            "pay": rng.lognormal(7, 1, 500).round(0),
            "sex": rng.integers(0, 2, 500),
            "id": rng.permutation(510)[:500],
            "few": rng.integers(0, 30, 500),
        }

    pay_for(draw(), tmp_path / "one.db")
    for _ in range(50):
        with registration({"x": draw()}) as known:
            known.check(tmp_path / "two.db", None)
            assert known.near() is None


# --- variables of other names ---------------------------------------------------------------------


def renamed(plan: dict[str, Any], name: str) -> dict[str, Any]:
    found = json.loads(json.dumps(plan).replace('"x"', f'"{name}"'))
    found["digest"] = plan_digest(found)
    return dict(found)


def test_a_variable_of_another_name_is_debited_to_the_same_unit(
    tmp_path: Path, make_plan: MakePlan, identity_plan: dict[str, Any]
) -> None:
    folks, book = renamed(identity_plan, "folks"), tmp_path / "l.db"
    run(identity_plan, {"x": VALUES}, ledger=book, new_ledger=True)
    with pytest.raises(BudgetError, match="PS1001"):
        run(folks, {"folks": VALUES}, ledger=book)
    # nor is a limit of their own of any use to the same people under another name
    ledger.create(book, ["mu=9 wrt folks, replacing one entry"], change=True)
    with pytest.raises(BudgetError, match="PS1001"):
        run(folks, {"folks": VALUES}, ledger=book)
    ledger.create(book, ["mu=9 wrt x, replacing one entry"], change=True)
    run(folks, {"folks": VALUES}, ledger=book)
    accounts = {account.unit.wrt: len(account.spends) for account in ledger.show(book).accounts}
    assert accounts == {("x",): 2, ("folks",): 0}


def test_a_corrected_file_under_another_name_is_debited_to_the_same_unit(
    tmp_path: Path, identity_plan: dict[str, Any]
) -> None:
    book = tmp_path / "l.db"
    run(identity_plan, {"x": VALUES}, ledger=book, new_ledger=True)
    with pytest.raises(BudgetError, match="PS1001"):
        run(renamed(identity_plan, "folks"), {"folks": [0.9, 0.8, 0.7, 0.6]}, ledger=book)


def test_names_of_data_in_a_ledger() -> None:
    def state(*names: str) -> Any:
        units = [Unit((name,), "replacing one record") for name in names]
        return LedgerState(tuple(Account(unit, None, ()) for unit in units), None, ())

    assert names_in(None, ["a"], {}, {}) == {"a": "a"}
    assert names_in(state("a"), ["b"], {}, {}) == {"b": "a"}
    assert names_in(state("a"), ["b"], {"b": "c"}, {}) == {"b": "c"}
    assert names_in(state("a", "b"), ["c"], {}, {}) == {"c": "c"}
    assert names_in(state("a", "b"), ["a", "c"], {}, {}) == {"a": "a", "c": "b"}
    assert names_in(state("a"), ["a", "c"], {}, {}) == {"a": "a", "c": "c"}
    assert names_in(state("a"), ["b", "c"], {}, {"c": "b"}) == {"b": "a", "c": "a"}
    unit = Unit(("v", "w"), "replacing one record of v or one voter of w")
    assert unit.known_as({"w": "u"}, ()) == Unit(("u", "v"), "replacing one record of v or one voter of u")
    voters = Unit(("w",), "replacing up to 3 voters, at least 2 apart")
    assert Unit(("u",), "replacing up to 3 citizens, at least 2 apart").known_as({"u": "w"}, [voters]) == voters
    for other in (
        "replacing one entry",
        "replacing one record",
        "adding or removing one voter",
        "replacing everything",
    ):
        assert Unit(("w",), other).known_as({}, [Unit(("w",), "replacing one voter")]).neighbours == other


def test_two_inputs_that_hold_the_same_people_are_charged_together(tmp_path: Path, make_plan: MakePlan) -> None:
    inputs = [
        {"name": name, "start": 40 * k, "stop": 40 * (k + 1), "layout": "entries", "lower": "0", "upper": "1"}
        for k, name in enumerate("xy")
    ]
    lines = [
        {"outputs": ["O"], "wrt": name, "neighbours": "replacing one entry", "achieved": {"mu": mu}, "requirement": k}
        for k, (name, mu) in enumerate((("x", "1/2"), ("y", "1/4")))
    ]
    plan = make_plan(np.eye(80), np.eye(80), inputs=inputs, guarantees=lines, outputs=[("O", (80,))])
    one, other = np.random.default_rng(1).random((2, 40))
    apart, both = tmp_path / "apart.db", tmp_path / "both.db"
    run(plan, {"x": one, "y": other}, ledger=apart, new_ledger=True)
    assert [str(a.limit.amounts["mu"]) for a in ledger.show(apart).accounts if a.limit] == ["1/2", "1/4"]
    three = np.random.default_rng(2).random(40)
    run(plan, {"x": three, "y": three[::-1]}, ledger=both, new_ledger=True)
    (account,) = ledger.show(both).accounts
    assert account.unit == Unit(("x",), "replacing one entry") and account.spends[0].mu == Fraction(3, 4)


# --- a registry from before -----------------------------------------------------------------------


@pytest.fixture
def earlier(paid: Path) -> Path:
    """The registry as the first version left it: ledgers, and fingerprints that are not made any more."""
    place = registry_path()
    database = sqlite3.connect(place)
    for name in ("data", "columns"):
        database.execute(f"DROP TABLE {name}")
    ((identity,),) = database.execute("SELECT identity FROM ledgers")
    database.execute("INSERT INTO inputs VALUES ('0123', ?)", (identity,))
    database.commit()
    database.close()
    return paid


def test_a_registry_from_before_begins_no_budget_anew(earlier: Path, identity_plan: dict[str, Any]) -> None:
    book, other = earlier.with_name("people.ledger.db"), earlier.with_name("other.db")
    copy = written(earlier.with_name("copy.csv"))
    error = refused("PS1016", identity_plan, copy, ledger=other, new_ledger=True)
    assert f"--ledger {book}" in (error.diagnostics[0].help or "") and str(book) in error.diagnostics[0].notes[0]
    ledger.create(other, ["mu=9"])
    refused("PS1016", identity_plan, copy, ledger=other)
    # who says which data that ledger was for is asked no more
    ledger.create(book, ["mu=9 wrt x, replacing one entry"], change=True)
    run(identity_plan, {"x": copy}, ledger=book)
    refused("PS1012", identity_plan, earlier, ledger=other)
    run(identity_plan, {"x": [0.9, 0.8, 0.7, 0.6]}, ledger=other)


def test_with_a_registry_from_before_other_people_are_stated_on_record(
    earlier: Path, identity_plan: dict[str, Any]
) -> None:
    other = earlier.with_name("other.db")
    run(identity_plan, {"x": [0.9, 0.8, 0.7, 0.6]}, ledger=other, new_ledger=True, other_people="a second town")
    assert "a second town" in ledger.show(other).describe()


def test_a_registry_of_another_version_is_refused(paid: Path, identity_plan: dict[str, Any]) -> None:
    database = sqlite3.connect(registry_path())
    database.execute("CREATE TABLE more (x TEXT)")
    database.commit()
    database.close()
    with pytest.raises(UsageError, match="PS1014"):
        run(identity_plan, {"x": paid})


@pytest.mark.parametrize("how", ["name", "symlink", "hard link", "case"])
@pytest.mark.parametrize("what", ["input", "ledger"])
def test_an_output_never_takes_the_place_of_an_input_or_the_ledger(
    tmp_path: Path, identity_plan: dict[str, Any], what: str, how: str
) -> None:
    data, book = written(tmp_path / "people.csv"), tmp_path / "book.json"
    ledger.create(book, ["mu=9"])
    target = data if what == "input" else book
    out = tmp_path / f"out{target.suffix}"
    if how == "symlink":
        out.symlink_to(target)
    elif how == "hard link":
        out.hardlink_to(target)
    else:
        out = target if how == "name" else target.with_name(target.name.upper())
    before = target.read_bytes()
    with pytest.raises(UsageError, match="PS0832"):
        run(identity_plan, {"x": data}, ledger=book, output=out)
    assert target.read_bytes() == before and ledger.verify(book).debits == 0


def test_a_new_ledger_that_is_its_own_output_is_refused(tmp_path: Path, identity_plan: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="PS0832"):
        run(identity_plan, {"x": VALUES}, ledger=tmp_path / "l.json", output=tmp_path / "L.json", new_ledger=True)
    assert not list(tmp_path.iterdir())
