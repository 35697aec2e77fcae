"""A data set has one ledger, whatever its files, plans and ledgers are called, and however old they are."""

from __future__ import annotations

import json
import shutil
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privspec.core.diagnostics import BudgetError, UsageError
from privspec.core.render import render
from privspec.execute import ledger
from privspec.execute.registry import digests, registry_path
from privspec.execute.run import _run as run
from privspec.problem.form import plan_digest

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
    assert digests("x", folder / "bare.csv") & digests("x", VALUES)
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


def test_the_same_answer_of_two_parties_is_two_data_sets() -> None:
    from privspec.execute.registry import registration

    def seen(first: str | None, then: str | None) -> bool:
        with registration({"x": ["red"]}, first) as one:
            kept = one._kept
        with registration({"x": ["red"]}, then) as other:
            return bool(kept & other._sought)

    assert not seen("1", "2")
    for same in (("1", "1"), ("1", None), (None, "1"), (None, None)):
        assert seen(*same)


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
    fingerprints = {row[0] for row in database.execute("SELECT fingerprint FROM inputs")}
    database.close()
    assert len(key) == 32 and len(fingerprints) >= 2
    for text in (out.read_text(), book.read_bytes().decode("latin-1")):
        assert key.hex() not in text and not any(f in text for f in fingerprints)
    # what is kept is no plain digest of the data, which anybody could compare with a guess
    assert not fingerprints & {digest.hex() for digest in digests("x", paid)}


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
    for name, content in (("a.json", b"[" * 10**5), ("a.npy", b"?"), ("a.csv", b'"' + b"y" * 200_000), ("a.soc", b"1")):
        (tmp_path / name).write_bytes(content)
        assert digests("x", tmp_path / name)
    assert digests("x", [[1], [2, 3]]) and digests("x", 7) == digests("x", [7]) == digests("x", np.array([[7.0]]))
    assert digests("x", []) == frozenset()
    # days beyond every calendar, numbers beyond what Python prints, signs that are no text
    far = pa.array([2**31 - 1, 0], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"x": [1.0, 2.0], "day": far}), tmp_path / "a.parquet")
    for source in (tmp_path / "a.parquet", pl.read_parquet(tmp_path / "a.parquet"), [10**5000, 1], {"x": ["\ud800"]}):
        assert digests("x", source)


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
