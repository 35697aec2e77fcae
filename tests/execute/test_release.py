"""Releases as files: tidy and complete in themselves, one for each observer, and all or nothing."""

from __future__ import annotations

import csv
import json
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest

from privspec.api import Problem, load
from privspec.core import files
from privspec.core.diagnostics import SolveError, UsageError
from privspec.core.files import AtomicFile
from privspec.core.spans import Source
from privspec.execute import ledger
from privspec.execute import release as release_files
from privspec.execute.ledger import Receipt
from privspec.execute.release import Release, observers_of, places, write_release
from privspec.model.build import load_model
from privspec.noise.samplers import SimulationRandomness
from tests.execute.begun import execute_plan, run

PAID = Receipt("12" * 16, 3, "ab" * 32)
MARKS = "true,3:abababababababababababababababab,abc"


def release(outputs: dict[str, Any], kind: str = "numpy", **more: Any) -> Release:
    arrays = {name: np.array(v) if isinstance(v, list) else np.array(float(v)) for name, v in outputs.items()}
    return Release("abc", arrays, ({"measure": "mu-GDP"},), "2^-20", True, kind=kind, ledger=PAID, **more)


def test_json_has_the_keys_of_the_interface(tmp_path: Path) -> None:
    write_release(release({"O": [1.5, 2.0]}, deviations={"O": np.array([0.5, 0.25])}), tmp_path / "o.json")
    data = json.loads((tmp_path / "o.json").read_text())
    assert data["format"] == "privspec-release/2.0"
    assert data["plan_sha256"] == "abc" and data["private"] is True
    assert data["outputs"] == {
        "O": {
            "labels": {"index": [1, 2]},
            "values": [1.5, 2.0],
            "standard_deviation": [0.5, 0.25],
            "private": True,
        }
    }
    assert data["ledger"] == {"identity": "12" * 16, "event": 3, "head": "ab" * 32}
    assert data["guarantees"] == [{"measure": "mu-GDP"}] and data["grid"] == "2^-20"


@pytest.mark.parametrize(
    ("outputs", "lines"),
    [
        ({"O": [1.5, 2.0]}, ["output,index,value,standard_deviation", "O,1,1.5,", "O,2,2.0,"]),
        (
            {"O": [[1.0, 2.0], [3.0, 4.0]]},
            ["output,row,column,value,standard_deviation", "O,1,1,1.0,", "O,1,2,2.0,", "O,2,1,3.0,", "O,2,2,4.0,"],
        ),
        ({"A": [1.0, 2.0], "t": 3}, ["output,index,value,standard_deviation", "A,1,1.0,", "A,2,2.0,", "t,,3.0,"]),
        ({"n": [3, 4], "w": ["a,b", 'c"d']}, ["output,index,value,standard_deviation", "n,1,3,", "n,2,4,"]),
    ],
)
def test_one_row_a_number(tmp_path: Path, outputs: dict[str, Any], lines: list[str]) -> None:
    write_release(release(outputs), tmp_path / "o.csv")
    first, *rest = (tmp_path / "o.csv").read_text().splitlines()
    assert first == lines[0] + ",private,ledger,plan"
    assert rest[: len(lines) - 1] == [f"{line},{MARKS}" for line in lines[1:]]
    assert [p.name for p in tmp_path.iterdir()] == ["o.csv"], "nothing stands beside it"
    with (tmp_path / "o.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == sum(np.size(v) for v in outputs.values())


def test_a_seeded_release_says_so_in_every_row_of_every_format(tmp_path: Path, identity_plan: dict[str, Any]) -> None:
    for suffix in ("csv", "parquet", "npy", "json"):
        path = tmp_path / f"o.{suffix}"
        run(identity_plan, {"x": [0.5] * 4}, output=path, randomness=SimulationRandomness(1))
        if suffix == "json":
            found = json.loads(path.read_text())
            assert found["private"] is False and found["ledger"] is None and found["guarantees"] == []
        elif suffix == "npy":
            rows = np.load(path)
            assert not rows["private"].any() and set(rows["ledger"]) == {""}
        else:
            frame = pl.read_csv(path) if suffix == "csv" else pl.read_parquet(path)
            assert frame["private"].to_list() == [False] * 4 and frame["ledger"].null_count() == 4


def test_an_output_that_no_line_protects_is_not_called_private(tmp_path: Path) -> None:
    """P carries next to no noise: the release of both is private only where it says O."""
    import privspec

    plan = privspec.Problem(
        "variables:\n  input x in [0, 1]^3\n  output O\n  output P\n"
        "loss: E[ ||O - x||^2 ] + E[ (P - x[1])^2 ]\nprivacy: O is 1-GDP wrt x"
    ).solve()
    for i, suffix in enumerate(("csv", "parquet", "npy", "json")):
        path, book = tmp_path / f"o.{suffix}", tmp_path / f"{suffix}.db"
        found = plan.run({"x": [0.5, 0.25, 0.1 * i]}, ledger=book, new_ledger=True, output=path)
        assert "protects P" in str(found.notice)
        if suffix == "json":
            document = json.loads(path.read_text())
            assert document["private"] is False and "protects P" in document["notice"]
            assert {name: one["private"] for name, one in document["outputs"].items()} == {"O": True, "P": False}
        elif suffix == "npy":
            assert np.load(path)["private"].tolist() == [True, True, True, False]
        else:
            frame = pl.read_csv(path) if suffix == "csv" else pl.read_parquet(path)
            assert frame["private"].to_list() == [True, True, True, False]


def test_parquet_and_arrays(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    both = release({"A": [1.0], "B": [2.0, 3.0]}, deviations={"A": np.array([0.5])})
    write_release(both, tmp_path / "o.parquet")
    table = pq.read_table(tmp_path / "o.parquet")
    assert table["value"].to_pylist() == [1, 2, 3] and table["standard_deviation"].to_pylist() == [0.5, None, None]
    assert json.loads(table.schema.metadata[b"privspec"])["plan_sha256"] == "abc"
    write_release(both, tmp_path / "o.npy")
    rows = np.load(tmp_path / "o.npy")
    assert rows["output"].tolist() == ["A", "B", "B"] and rows["value"].tolist() == [1, 2, 3]
    assert rows["private"].all() and set(rows["plan"]) == {"abc"}
    for bad in ("o.npz", "o.txt", "no/o.json"):
        with pytest.raises(UsageError, match=r"PS083|PS0713"):
            write_release(both, tmp_path / bad)


def test_names_of_columns_are_never_taken_twice(tmp_path: Path) -> None:
    labels = {"O": {"value": np.array([1, 2]), "private": np.array(["yes", "no"], dtype=object)}}
    write_release(release({"O": [1.5, 2.0]}, labels=labels), tmp_path / "o.csv")
    assert pl.read_csv(tmp_path / "o.csv").columns[1:4] == ["value_label", "private_label", "value"]
    reports = release({"private": ["yes", "no"], "plan": ["a", "b"]}, reports=True)
    assert list(reports.rows()) == ["private", "plan", "release_private", "ledger", "release_plan"]


def test_doubles_survive_the_text(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(-(2**50), 2**50, 100) * 2.0**-20
    write_release(release({"O": values.tolist()}), tmp_path / "o.csv")
    with (tmp_path / "o.csv").open() as file:
        assert [float(row["value"]) for row in csv.DictReader(file)] == values.tolist()


# --- labels and deviations ------------------------------------------------------------------------

CELLS = """\
parties:
  shop in 1..3
variables:
  input people in table(age in 0..1, sex in {F, M})
  input x in [0, 1]^(2, 2)
  input y[shop] in [0, 1]
  intermediate sums
  output O
  output P
  output Q
  output R
  output S[shop]
background:
  sums = marginals(people, {sex}, 2)
loss:
  (E[ ||O - sums||^2 ] + E[ ||P - x||^2 ] + E[ ||Q - range_sums(2 * histogram(people))||^2 ]
    + E[ (R - count(people))^2 ] + E[ ||S - y||^2 ])
privacy: all outputs are 1-GDP wrt all inputs
"""


def test_labels_are_attributes_parties_and_places() -> None:
    from privspec.model.targets import labels_of

    model = load_model(Source("cells.priv", CELLS))
    found = {o.name: labels_of(model, o.name, o.type.shape) for o in model.outputs}
    shown = {name: {title: labels.tolist() for title, labels in of.items()} for name, of in found.items()}
    assert shown["O"] == {"sex": ["F", "M", "F", "M", "F", "M"], "age": [None, None, 0, 0, 1, 1]}
    assert shown["P"] == {"row": [1, 1, 2, 2], "column": [1, 2, 1, 2]}
    assert list(shown["Q"]) == ["from", "to"]
    assert shown["Q"]["from"] == [1, 1, 1, 1, 2, 2, 2, 3, 3, 4] and shown["Q"]["to"][:4] == [1, 2, 3, 4]
    assert shown["R"] == {} and shown["S"] == {"shop": [1, 2, 3]}


def test_labels_stand_where_the_language_counts(tmp_path: Path) -> None:
    """Entry v[i] of the spec is the row with index i."""
    import privspec

    plan = privspec.Problem(
        "variables:\n  input x in [0, 1]^3\n  output O\n  output T\n"
        "loss: E[ ||O - x||^2 ] + E[ (T - x[2])^2 ]\nprivacy: all outputs are 500-GDP wrt x"
    ).solve()
    plan.run({"x": [0.25, 0.5, 0.75]}, ledger=tmp_path / "l.db", output=tmp_path / "o.csv", new_ledger=True)
    rows = {(r["output"], r["index"]): r["value"] for r in pl.read_csv(tmp_path / "o.csv").to_dicts()}
    assert rows["O", 2] == pytest.approx(0.5, abs=0.05) and rows["T", None] == pytest.approx(0.5, abs=0.05)


LAWS = [
    {"shape": "gaussian", "scale": "1"},
    {"shape": "laplace", "scales": ["1", "2", "1"]},
    {"shape": "knorm-l2", "scale": "1"},
]


@pytest.mark.parametrize("noise", LAWS, ids=[str(n["shape"]) for n in LAWS])
def test_standard_deviations_are_those_of_the_noise(make_plan: Callable[..., dict[str, Any]], noise: Any) -> None:
    from privspec.execute.family import simulate

    plan = make_plan(np.eye(3), [[1.0, 1, 0], [0, 0, 0.5]], noise=noise, grid="2^-10")
    stated = execute_plan(plan, {"x": [0.5] * 3}, randomness=SimulationRandomness(1)).deviations["O"]
    seen = simulate(plan, 200_000, 3, approximate=True).std(axis=0)
    assert stated == pytest.approx(seen, rel=0.02)


def test_standard_deviations_of_outputs_of_estimates(make_plan: Callable[..., dict[str, Any]]) -> None:
    outputs, target = [("T", ()), ("A", (2,))], [[1, 1], [1, 0], [0, 3]]
    plan = make_plan(np.eye(2), 2 * np.eye(2), of="inputs", outputs=outputs, target=target)
    found = execute_plan(plan, {"x": [0, 1]}, randomness=SimulationRandomness(1)).deviations
    assert found["T"] == pytest.approx(8**0.5, rel=1e-5) and found["A"].tolist() == [2, 6]


# --- one file an observer -------------------------------------------------------------------------


def line(observer: str, *outputs: str) -> dict[str, Any]:
    return {"observer": observer, "outputs": list(outputs), "wrt": "x"}


@pytest.mark.parametrize(
    ("lines", "given"),
    [
        ([line("anyone", "A"), line("anyone", "B")], {}),
        ([line("alice", "A", "B")], {}),
        ([line("alice", "A"), line("bob", "B")], {"alice": "A", "bob": "B"}),
        ([line("press", "A"), line("auditors", "A", "B")], {"press": "A", "auditors": "AB"}),
        ([line("press", "A")], {"press": "A", "anyone": "B"}),
        ([line("press", "A"), line("anyone", "A", "B")], {"press": "A", "anyone": "AB"}),
        ([line("a", "A"), line("b", "B"), line("a and b", "A", "B")], {"a": "A", "b": "B"}),
        ([line("a", "A"), line("a and b", "A", "B")], {"a": "A", "a and b": "AB"}),
    ],
)
def test_who_is_given_what(lines: Sequence[dict[str, Any]], given: dict[str, str]) -> None:
    assert observers_of(lines, ("A", "B")) == {who: tuple(names) for who, names in given.items()}


def two_observers(make_plan: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    lines = [
        line("alice", "A") | {"neighbours": "replacing one entry", "achieved": {"mu": "1/10"}, "requirement": 0},
        line("bob", "B") | {"neighbours": "replacing one entry", "achieved": {"mu": "1/5"}, "requirement": 1},
        line("alice and bob", "A", "B")
        | {"neighbours": "replacing one entry", "achieved": {"mu": "1/2"}, "requirement": 2},
    ]
    return make_plan(np.eye(4), np.eye(4), outputs=[("A", (2,)), ("B", (2,))], guarantees=lines)


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet", "npy"])
def test_each_observer_has_a_file_of_their_own(
    tmp_path: Path, make_plan: Callable[..., dict[str, Any]], suffix: str
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    found = run(two_observers(make_plan), {"x": [0.5] * 4}, tmp_path / "l.db", folder / f"o.{suffix}")
    assert sorted(p.name for p in folder.iterdir()) == [f"o.alice.{suffix}", f"o.bob.{suffix}"]
    assert list(places(Path("o.csv"), found.observers).values()) == [Path("o.alice.csv"), Path("o.bob.csv")]
    if suffix == "csv":
        assert {r["output"] for r in pl.read_csv(folder / "o.bob.csv").to_dicts()} == {"B"}
    if suffix == "json":
        bob = json.loads((folder / "o.bob.json").read_text())
        assert list(bob["outputs"]) == ["B"] and [g["observer"] for g in bob["guarantees"]] == ["bob", "alice and bob"]
        assert bob["private"] is True and bob["ledger"]["event"] == found.ledger.event  # type: ignore[union-attr]
    assert ledger.show(tmp_path / "l.db").debits == 1


# --- whole or not at all --------------------------------------------------------------------------


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "o.json"
    path.write_text("old")
    with pytest.raises(RuntimeError), AtomicFile(path):
        raise RuntimeError
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["o.json"]


def test_only_the_owner_reads_a_release_unless_told_otherwise(tmp_path: Path, identity_plan: dict[str, Any]) -> None:
    mask = os.umask(0)
    try:
        for mode in (0o600, 0o640):
            more = {} if mode == 0o600 else {"mode": mode}
            path = tmp_path / f"{mode}.csv"
            path.write_text("older, and open to all")
            run(identity_plan, {"x": [mode / 1000] * 4}, tmp_path / f"{mode}.db", path, **more)
            assert path.stat().st_mode & 0o777 == mode
    finally:
        os.umask(mask)


def test_a_folder_in_the_place_of_the_release_costs_nothing(tmp_path: Path, identity_plan: dict[str, Any]) -> None:
    (tmp_path / "o.json").mkdir()
    with pytest.raises(UsageError, match="PS0713"):
        run(identity_plan, {"x": [0.5] * 4}, tmp_path / "l.db", tmp_path / "o.json")
    assert not (tmp_path / "l.db").exists()


def test_what_the_first_format_put_beside_a_release_goes(tmp_path: Path) -> None:
    beside = tmp_path / "o.csv.guarantee.json"
    for content, stays in (('{"format": "privspec-release/1.0", "private": true}', False), ('{"mine": 1}', True)):
        beside.write_text(content)
        write_release(release({"O": [1.0]}), tmp_path / "o.csv", force=True)
        assert beside.exists() is stays


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def forked(work: Callable[[], object]) -> int:
    """A child that does the work; it never returns to the tests."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


def killed(child: int) -> None:
    """The child was killed, or is now."""
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)


def kill_myself(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(10)


@forks
@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_killed_write_leaves_no_half_file_and_the_next_one_takes_its_traces(tmp_path: Path, moment: str) -> None:
    path = tmp_path / "o.json"

    def work() -> None:
        if moment == "fsync":
            os.fsync = kill_myself
        else:
            Path.replace = kill_myself  # type: ignore[method-assign, assignment]
        write_release(release({"O": [1.5] * 10_000}), path)

    _, status = os.waitpid(forked(work), 0)
    assert os.WIFSIGNALED(status)
    assert not path.exists() and len(list(tmp_path.iterdir())) == 1
    write_release(release({"O": [2.5]}), path)
    assert [p.name for p in tmp_path.iterdir()] == ["o.json"]


@forks
def test_a_file_that_somebody_is_writing_is_not_taken_away(tmp_path: Path) -> None:
    path, other = tmp_path / "o.json", tmp_path / "o.json.longer"
    with AtomicFile(path) as mine, AtomicFile(other) as longer:

        def work() -> None:
            with AtomicFile(path) as file:
                file.commit(b"theirs")

        assert os.waitpid(forked(work), 0)[1] == 0
        assert path.read_bytes() == b"theirs"
        mine.commit(b"mine")
        longer.commit(b"longer")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"o.json": b"mine", "o.json.longer": b"longer"}


@forks
def test_killed_between_two_observers(tmp_path: Path, make_plan: Callable[..., dict[str, Any]]) -> None:
    """One file is of this release, the other of the one before: each says of its own rows what is true of them."""
    plan, path, book = two_observers(make_plan), tmp_path / "o.csv", tmp_path / "l.db"
    run(plan, {"x": [0.5] * 4}, output=path, randomness=SimulationRandomness(1))

    def work() -> None:
        placed = AtomicFile.place

        def place(self: AtomicFile) -> None:
            placed(self)
            kill_myself()

        AtomicFile.place = place  # type: ignore[method-assign]
        run(plan, {"x": [0.5] * 4}, book, path)

    _, status = os.waitpid(forked(work), 0)
    assert os.WIFSIGNALED(status)
    assert standing(tmp_path, book) == {"o.alice.csv": True, "o.bob.csv": False}


def standing(folder: Path, book: Path) -> dict[str, bool]:
    """Whether each file is private; every row of it says the same, and what is private was paid for."""
    events = {e["sequence"]: e for e in ledger.export(book)["events"]} if book.exists() else {}
    found = {}
    for path in sorted(folder.glob("o.*.csv")):
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["index"] for row in rows] == ["1", "2"]
        (mark,) = {(row["private"], row["ledger"], row["plan"]) for row in rows}
        found[path.name] = mark[0] == "true"
        assert mark[0] in ("true", "false") and (mark[1] != "") == found[path.name]
        if mark[1]:
            number, _, head = mark[1].partition(":")
            event = events[int(number)]
            assert event["body"]["kind"] == "debit" and event["digest"].startswith(head)
    return found


def kills(folder: Path, plan: dict[str, Any], times: int, seed: int) -> None:
    """A process that makes simulations and releases under one name in turn, killed at any time, many times."""
    chance, path, book = Random(seed), folder / "o.csv", folder / "l.db"
    ledger.create(book, ["mu=100000 wrt x, replacing one entry"])

    def work() -> None:
        for i in range(10_000):
            run(plan, {"x": [0.5] * 4}, output=path, randomness=SimulationRandomness(i), force=True)
            run(plan, {"x": [0.5] * 4}, book, path, force=True)

    for _ in range(times):
        child = forked(work)
        time.sleep(chance.uniform(0, 0.06))
        killed(child)
        standing(folder, book)
    ledger.verify(book)
    run(plan, {"x": [0.5] * 4}, book, path, force=True)
    assert standing(folder, book) == {"o.alice.csv": True, "o.bob.csv": True}
    assert not [p.name for p in folder.iterdir() if p.name.endswith(".privspec-tmp")]


@forks
def test_kills_at_any_time(tmp_path: Path, make_plan: Callable[..., dict[str, Any]]) -> None:
    kills(tmp_path, two_observers(make_plan), 25, 1)


@forks
@pytest.mark.slow
def test_many_kills_at_any_time(tmp_path: Path, make_plan: Callable[..., dict[str, Any]]) -> None:
    kills(tmp_path, two_observers(make_plan), 500, 2)


# --- in the library of the data -------------------------------------------------------------------


@pytest.mark.parametrize("library", ["polars", "pyarrow", "numpy", "pandas"])
def test_outputs_come_back_in_the_library_of_the_data(library: str) -> None:
    pytest.importorskip(library)
    result = release({"O": [1.0, 2.0], "M": [[1.0, 2.0], [3.0, 4.0]]}, library)
    for found in (result["O"], result.outputs["M"], result.table()):
        assert type(found).__module__.split(".")[0] == library
    assert float(release({"t": 3}, library)["t"]) == 3
    words = release({"z": ["a", "b"]}, library, reports=True)
    assert list(words["z"].tolist() if library == "numpy" else map(str, words["z"])) == ["a", "b"]


def test_frames_have_the_columns_of_the_files() -> None:
    result = release({"O": [1.0, 2.0], "M": [[1.0, 2.0], [3.0, 4.0]]}, "polars")
    assert result["O"].name == "O" and result["M"].columns == ["M_1", "M_2"]
    assert result.table().columns[:3] == ["output", "index", "row"]
    assert result.table()["value"].to_list() == [1, 2, 1, 2, 3, 4]


@pytest.mark.parametrize("wrap", [pl.Series, lambda v: pl.DataFrame({"x": v}), lambda v: pl.LazyFrame({"x": v})])
def test_polars_in_polars_out(identity_plan: dict[str, Any], wrap: Callable[[list[float]], Any]) -> None:
    result = execute_plan(identity_plan, {"x": wrap([0.0, 1.0, 0.5, 0.25])})
    assert isinstance(result["O"], pl.Series) and isinstance(result.table(), pl.DataFrame)
    assert result.plan_sha256 == identity_plan["digest"]


def test_the_library_is_that_of_any_input(make_plan: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    """A path beside a frame does not hide the frame."""
    box = {"layout": "entries", "lower": "0", "upper": "1", "grid": "2^-24"}
    inputs = [box | {"name": n, "start": i, "stop": i + 1} for i, n in enumerate("xy")]
    (tmp_path / "x.csv").write_text("x\n0.5\n")
    plan = make_plan(np.eye(2), np.eye(2), inputs=inputs)
    result = execute_plan(plan, {"x": tmp_path / "x.csv", "y": pl.Series([0.5])})
    assert isinstance(result["O"], pl.Series)


# --- room for a release, before it is paid for -----------------------------------------------------

SPEC = """
spec wide
variables:
  input t in table(a in 0..59, b in {"=x, y", "é\U0001d11e"}, c in 0..19)
  output O
loss: E[ ||O - marginals(t, {a, b}, {b, c}, {a, c})||^2 ]
privacy: O is 1-GDP wrt t, adding or removing one record
"""
SUFFIXES = ("json", "csv", "parquet", "npy")


@pytest.fixture(scope="module")
def wide() -> tuple[dict[str, Any], Any]:
    plan = json.loads(Problem(SPEC).solve().to_json())
    return plan, load_model(Source("wide.priv", SPEC))


RECORDS = {"t": pl.DataFrame({"a": [3, 4], "b": ["=x, y"] * 2, "c": [0, 1]})}


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """What a full disk does to a process, for this one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_costs_nothing(suffix: str, tmp_path: Path, wide: tuple[dict[str, Any], Any]) -> None:
    plan, model = wide
    out, ledger_file = tmp_path / f"o.{suffix}", tmp_path / "t.ledger.db"
    with (
        files_of_at_most(60_000),
        pytest.raises(UsageError, match=rf"PS0713.*o\.{suffix} cannot be") as error,
    ):
        run(plan, RECORDS, ledger_file, out, model=model)
    assert "nothing was spent" in str(error.value.diagnostics[0].notes)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_room_that_is_reserved_is_enough(
    suffix: str, tmp_path: Path, wide: tuple[dict[str, Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for a description of half a megabyte, names of many bytes, and without a byte of what was too much."""
    plan, model = wide
    sizes: list[int] = []
    monkeypatch.setattr(files, "allocate", lambda _file, _start, size: sizes.append(size))
    monkeypatch.setattr(release_files, "_HEAD", 0)
    run(plan, RECORDS, tmp_path / "t.ledger.db", tmp_path / f"o.{suffix}", model=model)
    taken = (tmp_path / f"o.{suffix}").stat().st_size
    assert taken <= sizes[0] <= 10 * taken + 30_000, (taken, sizes)


def test_the_room_for_reports_and_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(files, "allocate", lambda _file, _start, size: sizes.append(size))
    monkeypatch.setattr(release_files, "_HEAD", 0)
    plan = load("frequency_survey").solve()
    values = sorted(plan.model().nodes)[:1]
    names = [one["name"] for one in plan.document["problem"]["data"]]
    assert values and len(names) == 1
    for suffix in SUFFIXES:
        out = tmp_path / f"o.{suffix}"
        plan.run({names[0]: pl.DataFrame({names[0]: ["a"] * 4000})}, output=out, seed=1)
        assert out.stat().st_size <= sizes[-1] <= 10 * out.stat().st_size + 120_000, suffix


def test_memory_is_reckoned_before_anything_is_spent(
    tmp_path: Path, wide: tuple[dict[str, Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, model = wide
    monkeypatch.setattr("privspec.execute.run.free_memory", lambda: 1e5, raising=False)
    with pytest.raises(SolveError, match=r"numbers take some .* and 100 kB are free"):
        run(plan, RECORDS, tmp_path / "t.ledger.db", tmp_path / "o.csv", model=model)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_release_that_was_paid_for_is_not_replaced(
    suffix: str, tmp_path: Path, identity_plan: dict[str, Any]
) -> None:
    out, ledger_file = tmp_path / f"o.{suffix}", tmp_path / "x.ledger.db"
    data = {"x": [0.5] * 4}
    for _ in range(2):  # simulations are for nothing
        run(identity_plan, data, output=out, randomness=SimulationRandomness(1))
    ledger.create(ledger_file, ["mu=20"])
    run(identity_plan, data, ledger_file, out)
    paid, spent = out.read_bytes(), ledger.look(ledger_file).debits
    for how in ({"randomness": SimulationRandomness(2)}, {"ledger": ledger_file}):
        with pytest.raises(UsageError, match="PS0833"):
            run(identity_plan, data, output=out, **how)
        assert out.read_bytes() == paid and ledger.look(ledger_file).debits == spent
    run(identity_plan, data, ledger_file, out, force=True)
    assert out.read_bytes() != paid and ledger.look(ledger_file).debits == spent + 1
