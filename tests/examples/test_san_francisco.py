"""The San Francisco example: on made-up check-ins everywhere, on the real ones where they are."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest

Call = Callable[..., subprocess.CompletedProcess[str]]
FOLDER = Path(__file__).resolve().parents[2] / "examples" / "san_francisco"
SCRIPT = FOLDER / "run_san_francisco.py"
DATA = FOLDER.parents[2] / "shared" / "data" / "gowalla_san_francisco.csv.gz"
needs_check_ins = pytest.mark.skipif(not DATA.is_file(), reason=f"the check-ins are not at {DATA}")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ModuleType, ModuleType]]:
    """`check_ins` and `mechanisms`."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("check_ins"), importlib.import_module("mechanisms")
    for name in ("check_ins", "mechanisms", "map_picture"):
        sys.modules.pop(name, None)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Two hundred check-ins of twenty users around a few places, one of them beyond the map."""
    rng = np.random.default_rng(2)
    centre = rng.choice(3, 200, p=[0.6, 0.3, 0.1])
    lat = np.array([37.78, 37.75, 37.72])[centre] + rng.normal(0, 0.01, 200)
    lon = np.array([-122.41, -122.44, -122.50])[centre] + rng.normal(0, 0.01, 200)
    lat[0] = 38.0
    path = tmp_path / "check_ins.csv"
    pl.DataFrame({"user": rng.integers(0, 20, 200), "lat": lat, "lon": lon}).write_csv(path)
    return path


def run(*arguments: str | Path, script: Path = SCRIPT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(script), *[str(a) for a in arguments]],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def test_one_command(rows: Path, tmp_path: Path, call: Call) -> None:
    out = tmp_path / "out"
    done = call(SCRIPT, out, "--data", rows, "--side", 3, "--epsilon", "1.5", "--repetitions", 3)
    assert done.returncode == 0, done.stderr
    assert "claims verified" in done.stderr
    table = pl.read_csv(out / "san_francisco.csv")
    names = ["optimum", "planar Laplace", "planar Laplace, remapped", "k-randomised response"]
    assert table["mechanism"].to_list() == names
    expected = dict(zip(names, table["expected_steps"], strict=True))
    assert expected["optimum"] <= expected["planar Laplace, remapped"] <= expected["planar Laplace"]
    assert {f"variation_{name}" for name in ("inverse", "clip", "simplex", "ibu")} <= set(table.columns)
    assert (out / "san_francisco.md").read_text("utf-8").strip() == done.stdout.strip()
    for suffix in ("png", "svg", "plan.json"):
        assert (out / f"san_francisco_1.5.{suffix}").stat().st_size > 1000
    assert not list(out.glob("*.db"))


def test_without_the_data_it_says_so(tmp_path: Path) -> None:
    done = run(tmp_path / "out", "--data", tmp_path / "nothing.csv")
    assert done.returncode == 0 and "skipped: the check-ins are not at" in done.stderr
    assert not (tmp_path / "out").exists()
    for file in FOLDER.glob("*.py"):
        shutil.copy(file, tmp_path / file.name)
    done = run(tmp_path / "out", script=tmp_path / "run_san_francisco.py")
    assert done.returncode == 0 and "skipped" in done.stderr


def test_users_are_split_and_places_beyond_the_map_are_its_border(
    rows: Path, example: tuple[ModuleType, ModuleType]
) -> None:
    check_ins, _ = example
    people = check_ins.read_check_ins(rows, 4)
    table = pl.read_csv(rows)
    assert len(people.public) == int((table["user"] % 2 == 0).sum())
    assert len(people.public) + len(people.reporting) == 200
    every = np.concatenate((people.public, people.reporting))
    assert every.min() >= 1 and every.max() <= 4
    first = people.public[0] if table["user"][0] % 2 == 0 else people.reporting[0]
    assert first[1] == 4
    assert people.visits.sum() == len(people.public) + 16
    assert people.truth.sum() == pytest.approx(1)
    np.testing.assert_array_equal(people.number(np.array([[1, 1], [1, 2], [2, 1], [4, 4]])), [0, 1, 4, 15])


def test_simulated_distances_agree_with_the_expected_ones(rows: Path, example: tuple[ModuleType, ModuleType]) -> None:
    """Reports of places drawn like the prior: every mean is within four standard errors."""
    check_ins, mechanisms = example
    people = check_ins.read_check_ins(rows, 3)
    whole = np.rint(people.visits).astype(int)
    places = np.stack(np.divmod(np.repeat(np.arange(9), whole), 3), axis=1) + 1
    same = check_ins.CheckIns(3, people.public, places, 10, 10)
    for mechanism in mechanisms.others(3, Fraction(1), people.prior):
        table = np.array([[w / law.total for w in law.weights] for law in mechanism.laws])
        np.testing.assert_allclose(table, mechanism.table, atol=1e-14)
        found = mechanisms.outcome(mechanism, same, 40, seed=5)
        mean, error = found.distance
        assert abs(mean - mechanism.loss) <= 4 * error + 1e-12
        assert found.reports.sum() == pytest.approx(1)
        assert set(found.variation) == {"inverse", "clip", "simplex", "ibu"}


@needs_check_ins
def test_the_real_check_ins(example: tuple[ModuleType, ModuleType]) -> None:
    check_ins, mechanisms = example
    people = check_ins.read_check_ins()
    assert (len(people.public), len(people.reporting)) == (7804, 9595)
    assert (people.public_users, people.reporting_users) == (167, 166)
    assert np.abs(people.prior - people.truth).sum() / 2 == pytest.approx(0.146, abs=5e-4)
    losses = {m.name: m.loss for m in mechanisms.others(10, Fraction(1), people.prior)}
    assert losses == pytest.approx(
        {"planar Laplace": 1.8808, "planar Laplace, remapped": 1.1049, "k-randomised response": 4.3446}, abs=5e-5
    )


@needs_check_ins
@pytest.mark.slow
def test_the_printed_figures(tmp_path: Path) -> None:
    """The table of the README, where it does not depend on a simulation."""
    done = run(tmp_path, "--epsilon", "1", "--repetitions", "2")
    assert done.returncode == 0, done.stderr
    row = next(line for line in done.stdout.splitlines() if line.startswith("| 1 | optimum"))
    assert row.startswith("| 1 | optimum | 15 | 1.0148 steps, 1.54 km |")
    assert row[:45] in (FOLDER / "README.md").read_text("utf-8")
