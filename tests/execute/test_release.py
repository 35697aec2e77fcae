"""Releases as files: formats, guarantees beside them, and all or nothing."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privspec.core.diagnostics import UsageError
from privspec.core.files import AtomicFile
from privspec.execute.release import Release, write_release
from privspec.execute.run import execute_plan


def release(outputs: dict[str, Any], kind: str = "numpy") -> Release:
    arrays = {name: np.array(v, dtype=float) for name, v in outputs.items()}
    return Release("abc", arrays, ({"measure": "mu-GDP"},), "2^-20", True, kind=kind)


def test_json_has_the_keys_of_the_interface(tmp_path: Path) -> None:
    write_release(release({"O": [1.5, 2]}), tmp_path / "o.json")
    data = json.loads((tmp_path / "o.json").read_text())
    assert data["format"] == "privspec-release/1.0"
    assert data["plan_sha256"] == "abc" and data["outputs"] == {"O": [1.5, 2.0]} and data["private"] is True
    assert data["guarantees"] == [{"measure": "mu-GDP"}] and data["grid"] == "2^-20"


@pytest.mark.parametrize(
    ("outputs", "text"),
    [
        ({"O": [1.5, 2]}, "O\n1.5\n2.0\n"),
        ({"O": [[1, 2], [3, 4]]}, "O[0],O[1]\n1.0,2.0\n3.0,4.0\n"),
        ({"A": [1, 2], "B": [3, 4]}, "A,B\n1.0,3.0\n2.0,4.0\n"),
        ({"A": [1, 2], "t": 3}, "output,index,value\nA,0,1.0\nA,1,2.0\nt,0,3.0\n"),
    ],
)
def test_csv(tmp_path: Path, outputs: dict[str, Any], text: str) -> None:
    write_release(release(outputs), tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_text() == text
    beside = json.loads((tmp_path / "o.csv.guarantee.json").read_text())
    assert beside["guarantees"] and "outputs" not in beside


def test_parquet_and_arrays(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    write_release(release({"O": [1.5, 2]}), tmp_path / "o.parquet")
    table = pq.read_table(tmp_path / "o.parquet")
    assert table["O"].to_pylist() == [1.5, 2]
    assert json.loads(table.schema.metadata[b"privspec"])["plan_sha256"] == "abc"
    write_release(release({"O": [1.5, 2]}), tmp_path / "o.npy")
    assert np.load(tmp_path / "o.npy").tolist() == [1.5, 2]
    write_release(release({"A": [1], "B": [2, 3]}), tmp_path / "o.npz")
    assert np.load(tmp_path / "o.npz")["B"].tolist() == [2, 3]
    for bad in ("o.npy", "o.txt", "no/o.json"):
        with pytest.raises(UsageError, match=r"PS083|PS0713"):
            write_release(release({"A": [1], "B": [2, 3]}), tmp_path / bad)


def test_doubles_survive_the_text(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(-(2**50), 2**50, 100) * 2.0**-20
    write_release(release({"O": values}), tmp_path / "o.csv")
    assert np.array_equal(np.loadtxt(tmp_path / "o.csv", skiprows=1), values)


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "o.json"
    path.write_text("old")
    with pytest.raises(RuntimeError), AtomicFile(path):
        raise RuntimeError
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["o.json"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_killed_write_leaves_no_half_file(tmp_path: Path, moment: str) -> None:
    path = tmp_path / "o.json"
    child = os.fork()
    if child == 0:

        def kill(*_: Any) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        if moment == "fsync":
            os.fsync = kill
        else:
            Path.replace = kill  # type: ignore[method-assign, assignment]
        write_release(release({"O": [1.5] * 10_000}), path)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert not path.exists()


@pytest.mark.parametrize(("kind", "library"), [("polars", "polars"), ("pyarrow", "pyarrow"), ("numpy", "numpy")])
def test_outputs_come_back_in_the_library_of_the_data(kind: str, library: str) -> None:
    result = release({"O": [1, 2], "M": [[1, 2], [3, 4]]}, kind)
    assert type(result["O"]).__module__.split(".")[0] == library
    assert type(result["M"]).__module__.split(".")[0] == library


def test_the_library_is_recognised(identity_plan: dict[str, Any]) -> None:
    import polars as pl

    result = execute_plan(identity_plan, {"x": pl.Series([0.0, 1.0, 0.5, 0.25])})
    assert isinstance(result["O"], pl.Series)
    assert result.plan_sha256 == identity_plan["digest"]
