"""Runs that are killed at any time, run at once, or find their ledger changed: no release is ever free."""

from __future__ import annotations

import csv
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from privspec.core.diagnostics import BudgetError
from privspec.execute import ledger
from privspec.execute.run import _run as run

MakePlan = Callable[..., dict[str, Any]]
LIMIT = 12
"""Releases that fit the budget of the tests below."""


@pytest.fixture
def plan(make_plan: MakePlan) -> dict[str, Any]:
    return make_plan(np.eye(4), np.eye(4), achieved={"rho": "1"})


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("x\n0.1\n0.25\n0.3\n0.45\n")
    return path


def forked(work: Callable[[], None]) -> int:
    """A child of this process, in which everything is loaded; 0 released, 6 refused."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BudgetError as error:
            status = error.exit_code
        finally:
            os._exit(status)
    return child


def ended(child: int) -> int | None:
    """Exit status of a child, None if it was killed."""
    _, status = os.waitpid(child, 0)
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None


def mark_of(release: Path) -> str:
    """The entry of the ledger that all rows of a release name."""
    with release.open(newline="") as file:
        (mark,) = {row["ledger"] for row in csv.DictReader(file)}
    return mark


def kills(plan: dict[str, Any], data: Path, times: int, seed: int) -> None:
    """Runs that are killed at a random time, in between the ledger is deleted or put back older: never free."""
    chance, folder = Random(seed), data.parent
    book = folder / "people.ledger.db"
    # how long a run takes here, so that kills fall everywhere within it
    began = time.monotonic()
    ledger.create(book, [f"rho={times}"])
    assert ended(forked(lambda: run(plan, {"x": data}, output=folder / "first.csv"))) == 0
    usual = time.monotonic() - began
    done = [folder / "first.csv"]
    killed = 0
    for i in range(times):
        out = folder / f"o{i}.csv"
        older = book.read_bytes()
        child = forked(lambda out=out: run(plan, {"x": data}, output=out))  # type: ignore[misc]
        time.sleep(chance.uniform(0, 1.2 * usual))
        os.kill(child, signal.SIGKILL)
        killed += ended(child) is None
        # a machine may become slower or faster: kills fall before the release and after it
        usual *= 0.9 if out.exists() else 1.1
        if out.exists():
            done.append(out)
        state = ledger.verify(book, done[-1:])
        marks = [mark_of(path) for path in done]
        assert len(set(marks)) == len(marks) <= state.debits, "each release has a debit of its own"
        if i % 10 == 0 and out.exists():
            newest = book.read_bytes()
            attack(plan, data, book, older)
            book.write_bytes(newest)
    ledger.verify(book, done)
    assert killed > times / 10 and len(done) > times / 10, "kills fell before, within and after releases"


def attack(plan: dict[str, Any], data: Path, book: Path, older: bytes) -> None:
    """After a release its ledger is deleted, or an older copy put back: nothing more is released."""
    free = data.with_name("free.csv")
    for journal in data.parent.glob("*-journal"):
        journal.unlink()
    book.unlink()
    for new in (True, False):
        assert ended(forked(lambda new=new: run(plan, {"x": data}, output=free, new_ledger=new))) == 6  # type: ignore[misc]
    book.write_bytes(older)
    assert ended(forked(lambda: run(plan, {"x": data}, output=free))) == 6
    assert not free.exists()


def test_no_kill_gives_a_release_without_its_debit(plan: dict[str, Any], data: Path) -> None:
    kills(plan, data, 40, 1)


@pytest.mark.slow
def test_of_500_kills_none_gives_a_release_without_its_debit(plan: dict[str, Any], data: Path) -> None:
    kills(plan, data, 500, 2)


def test_no_kill_of_a_first_run_makes_a_second_one_free(plan: dict[str, Any], tmp_path: Path) -> None:
    chance, usual = Random(3), 0.0
    outcomes = set()
    for i in range(30):
        folder = tmp_path / str(i)
        folder.mkdir()
        data, out = folder / "people.csv", folder / "o.csv"
        data.write_text(f"x\n0.{i + 100}\n0.5\n0.5\n0.5\n")

        def first(data: Path = data, out: Path = out) -> None:
            run(plan, {"x": data}, output=out, new_ledger=True, force=True)

        began = time.monotonic()
        child = forked(first)
        if i:
            time.sleep(chance.uniform(0, 1.2 * usual) if i > 1 else 0)
            os.kill(child, signal.SIGKILL)
            ended(child)
        else:
            # how long a run takes here
            assert ended(child) == 0
            usual = time.monotonic() - began
        released = out.exists()
        usual *= 0.9 if released else 1.1
        out.unlink(missing_ok=True)
        # somebody who tries it all: again, as a first run, and after deleting the ledger
        tries = [ended(forked(lambda data=data, out=out: run(plan, {"x": data}, output=out)))]  # type: ignore[misc]
        tries.append(ended(forked(first)))
        for path in (*folder.glob("*.db"), *folder.glob("*-journal")):
            path.unlink()
        tries.append(ended(forked(first)))
        assert set(tries) <= {0, 6}
        assert tries.count(0) <= 1 - released, "one release in all"
        outcomes.add(released)
    assert outcomes == {True, False}


def _writer(plan: dict[str, Any], data: Path, number: int, start: Any, results: Any) -> None:
    start.wait()
    try:
        run(plan, {"x": data}, output=data.with_name(f"w{number}.csv"))
        results.put(number)
    except BudgetError as error:
        results.put(-error.exit_code)


def test_fifty_writers_at_once_stay_within_the_limit(plan: dict[str, Any], data: Path) -> None:
    book = data.with_name("people.ledger.db")
    ledger.create(book, [f"rho={LIMIT}"])
    context = multiprocessing.get_context("fork")
    start, results = context.Barrier(50), context.Queue()
    writers = [context.Process(target=_writer, args=(plan, data, i, start, results)) for i in range(50)]
    for process in writers:
        process.start()
    outcomes = [results.get(timeout=240) for _ in writers]
    for process in writers:
        process.join()
    released = [number for number in outcomes if number >= 0]
    assert len(released) == LIMIT and sorted(set(outcomes) - set(released)) == [-6]
    files = [data.with_name(f"w{number}.csv") for number in released]
    assert ledger.verify(book, files).debits == LIMIT
    assert len({mark_of(file) for file in files}) == LIMIT


def _beginner(plan: dict[str, Any], data: Path, start: Any, results: Any) -> None:
    start.wait()
    try:
        run(plan, {"x": data}, new_ledger=True)
        results.put("released")
    except BudgetError:
        results.put("refused")


@pytest.mark.parametrize("copies", [False, True])
def test_of_first_runs_at_once_one_declares_the_budget(plan: dict[str, Any], data: Path, copies: bool) -> None:
    """The same file, or a copy for each that has another ledger by default."""
    places = [data] * 6
    if copies:
        places = [data.with_name(f"copy{i}.csv") for i in range(6)]
        for place in places:
            shutil.copy(data, place)
    context = multiprocessing.get_context("fork")
    start, results = context.Barrier(6), context.Queue()
    processes = [context.Process(target=_beginner, args=(plan, place, start, results)) for place in places]
    for process in processes:
        process.start()
    outcomes = sorted(results.get(timeout=120) for _ in processes)
    for process in processes:
        process.join()
    assert outcomes == ["refused"] * 5 + ["released"]
