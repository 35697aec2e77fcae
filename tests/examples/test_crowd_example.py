"""The crowd example: it runs on made-up decisions everywhere, and without any; on the real ones where they are."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "crowd"
DATA = FOLDER.parents[2] / "shared" / "data" / "kidney_indecision_study2_strict_d3.csv.gz"
needs_decisions = pytest.mark.skipif(not DATA.is_file(), reason=f"the kidney decisions are not at {DATA}")
Call = Callable[..., subprocess.CompletedProcess[str]]
MODULES = ("crowds", "figures", "kidney", "plots", "readings", "run_crowd")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The modules of the example by name."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield {name: importlib.import_module(name) for name in MODULES}
    for name in MODULES:
        sys.modules.pop(name, None)


def test_without_the_data_it_says_so_and_does_the_rest(tmp_path: Path, call: Call) -> None:
    missing = tmp_path / "nothing.csv"
    done = call(FOLDER / "run_crowd.py", tmp_path, "--crowds", "2", "--only", "4", "8", "--data", missing)
    assert done.returncode == 0, done.stderr
    assert "figures 8 and 9, and half of 10, are skipped" in done.stderr
    assert (tmp_path / "figure_4.png").stat().st_size > 1000
    assert not (tmp_path / "figure_8.png").exists()
    points = pl.read_csv(tmp_path / "points.csv")
    assert set(points["reading"]) == {"calibrated", "as printed"}
    assert points["value"].is_between(0, 1).all()
    assert (tmp_path / "table.md").read_text("utf-8") == done.stdout
    assert "| order at epsilon 1: 1 > 3 > 2 |" in done.stdout


def test_halves_of_made_up_decisions(example: dict[str, ModuleType]) -> None:
    random = np.random.default_rng(5)
    decisions = random.standard_normal((30, 40, 3))
    decisions *= np.sign(decisions @ np.array([1.0, -0.5, 0.2]))[..., None]
    source = example["kidney"].halves(decisions, 20, 2.0)
    crowd, good = source(random)
    assert crowd.records.shape == (20, 20, 3)
    assert good(np.array([1.0, -0.5, 0.2])) > 0.9
    assert good(np.array([-1.0, 0.5, -0.2])) < 0.1


def test_what_the_noise_of_the_paper_is_in_truth(example: dict[str, ModuleType]) -> None:
    crowds, readings = example["crowds"], example["readings"]
    honest = crowds.algorithm(1, 1)
    source = crowds.synthetic(honest.system)
    assert (readings.true_epsilons(honest, source, 3) <= 1).all()
    assert (readings.true_epsilons(readings.printed(1, 1), source, 3) > 3).all()
    assert readings.paper_spread(10) == pytest.approx(11.41, abs=0.01)
    assert float(readings.printed(3, 1).way.noise[0].scale) == pytest.approx(11.41, abs=0.01)


def test_groups_of_voters(example: dict[str, ModuleType]) -> None:
    budgets = [float(e) for e in example["figures"].groups(50, 0.54, 0.01, 0.2)]
    assert len(budgets) == 50 and budgets.count(1.0) >= 5
    assert sum(e <= 0.2 for e in budgets) >= 27 and min(budgets) >= 0.01


@needs_decisions
def test_real_decisions_agree_by_halves(example: dict[str, ModuleType]) -> None:
    kidney, crowds = example["kidney"], example["crowds"]
    decisions = kidney.read_decisions()
    assert decisions.shape == (132, 40, 3)
    system = crowds.algorithm(1, 1, N=132, n=20, d=3).system
    base = crowds.without_noise(system, kidney.halves(decisions, 132, 2.0), 5)
    assert base.mean > 0.95
