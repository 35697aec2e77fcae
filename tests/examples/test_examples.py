"""Every example runs; the Adult ones skip where the data are absent."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest

from privspec import load
from privspec.core.spans import Source
from privspec.execute.data import read_inputs
from privspec.execute.family import RunContext
from privspec.families.gaussian.execution import read_executed
from privspec.model.build import load_model
from privspec.model.targets import target

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ADULT = EXAMPLES / "adult"
DATA = EXAMPLES.parents[1] / "shared" / "data" / "adult_discretised_privatepgm.csv.gz"
needs_adult = pytest.mark.skipif(not DATA.is_file(), reason=f"the Adult extract is not at {DATA}")


def call(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command with the `privspec` of this interpreter first on the path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, env=environment, check=False)


def module(path: Path) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = found
    spec.loader.exec_module(found)
    return found


def test_the_readme_names_every_example() -> None:
    text = (EXAMPLES / "README.md").read_text("utf-8")
    names = [p.name for p in EXAMPLES.rglob("*") if p.is_file() and p.suffix in (".py", ".sh", ".priv")]
    assert names and all(name in text for name in names)
    for command in re.findall(r"(?<!tests/)examples/[\w./]+", text):
        assert (EXAMPLES.parent / command).exists(), command


# --- Adult ----------------------------------------------------------------------------------------------------


@needs_adult
@pytest.mark.parametrize("name", ["age_ranges", "marginals"])
def test_adult(name: str, tmp_path: Path) -> None:
    done = call(sys.executable, ADULT / "run_adult.py", tmp_path, "--repetitions", "40", "--only", name)
    assert done.returncode == 0, done.stderr
    row = re.search(rf"{name}, [\d,]+ answers: the plan +([\d,]+) +([\d,]+) +([\d,]+) +(-?[\d.]+)", done.stdout)
    assert row is not None, done.stdout
    predicted, simulated, error = (float(figure.replace(",", "")) for figure in row.groups()[:3])
    assert abs(simulated - predicted) <= 4 * error + 1
    for suffix in ("plan.json", "release.json", "public.html", "auditor.html", "engineer.html"):
        assert (tmp_path / f"{name}.{suffix}").stat().st_size > 1000
    assert not list(tmp_path.glob("*.csv")) and not list(tmp_path.glob("*.db"))  # neither the rows nor the ledger


def test_without_the_data_it_says_so(tmp_path: Path) -> None:
    for name in ("adult_data.py", "run_adult.py"):
        shutil.copy(ADULT / name, tmp_path / name)
        done = call(sys.executable, tmp_path / name, tmp_path / "out")
        assert done.returncode == 0 and "skipped: the Adult extract is not at" in done.stderr
    assert not (tmp_path / "out").exists()


@needs_adult
def test_prepared_rows_fit_their_domains(tmp_path: Path) -> None:
    rows = tmp_path / "people.csv"
    assert call(sys.executable, ADULT / "adult_data.py", rows).returncode == 0
    people = pl.read_csv(rows)
    assert people.height == 48_842
    assert people["sex"].value_counts().sort("count")["count"].to_list() == [16_192, 32_650]  # the raw file's
    executed = read_executed(load(ADULT / "age_ranges.priv").solve().document)
    assert sum(read_inputs(executed.inputs, {"people": rows}, RunContext(strict=True)).to_float()) == 48_842


@pytest.mark.parametrize("name", ["age_ranges", "marginals"])
def test_exact_answers_are_those_of_the_spec(name: str) -> None:
    adult = module(ADULT / "adult_data.py")
    rng = np.random.default_rng(7)
    codes = {"age": rng.integers(0, adult.AGES, 60)}
    codes |= {column: rng.integers(0, len(words), 60) for column, words in adult.WORDS.items()}
    words = {column: [adult.WORDS[column][c] for c in codes[column]] for column in adult.WORDS}
    people = pl.DataFrame({"age": codes["age"], **words})
    model = load_model(Source(name, (ADULT / f"{name}.priv").read_text("utf-8")))
    attributes = [attribute for attribute, _ in model.blocks[0].schema]
    sizes = [adult.AGES if a == "age" else len(adult.WORDS[a]) for a in attributes]
    cells = np.zeros(sizes)
    np.add.at(cells, tuple(codes[a] for a in attributes), 1)
    np.testing.assert_array_equal(adult.EXACT[name](people), np.asarray(target(model, "y", cells.reshape(-1))))


# --- the others -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_compare_noise(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    example = module(EXAMPLES / "compare_noise.py")
    budgets = (("1", "1e-6"), ("8", "1e-2"))
    monkeypatch.setattr(example, "BUDGETS", budgets)
    assert example.main() == 0
    printed = capsys.readouterr().out
    assert "a little too little noise" in printed and "0.3884" in printed
    row = {line[:44].strip(): float(line[44:57].replace(",", "")) for line in printed.splitlines()[5:14]}
    assert row["noise on x and y"] < min(row["noise on x only"], row["noise on y only"])
    assert row[example.FULL] <= row["noise on x and y"] * (1 + 1e-6)
    assert row["any noise that privspec knows"] <= row[example.FULL]
    matrix = example.questions()
    local, _ = example.as_printed(matrix, "1", "1e-6")
    assert row["each x[i] by itself, paper's sigma"] == pytest.approx(local, abs=0.1)


def test_the_calibrations() -> None:
    example = module(EXAMPLES / "compare_noise.py")
    wasteful, short = example.calibration("1", "1e-6"), example.calibration("8", "1e-2")
    assert wasteful.enough and wasteful.delta_of_paper < 1e-6
    assert not short.enough and short.delta_of_paper > 1e-2
    assert short.paper / short.exact == pytest.approx(0.951, abs=5e-4)


def test_two_observers_sweep(tmp_path: Path) -> None:
    done = call("sh", EXAMPLES / "two_observers_sweep.sh", tmp_path, "3")
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "frontier.csv").read_text("utf-8").splitlines()
    assert rows[0].startswith("press_mu,loss") and len(rows) == 4
    found = [float(row.split(",")[1]) for row in rows[1:]]
    assert found == sorted(found, reverse=True)
    assert (tmp_path / "frontier.svg").read_text("utf-8").lstrip().startswith("<?xml")


def test_own_constraint(capsys: pytest.CaptureFixture[str]) -> None:
    example = module(EXAMPLES / "own_constraint.py")
    assert example.main() == 0
    lines = capsys.readouterr().out.splitlines()
    figures = {line[:34].strip(): [float(one.strip(",")) for one in line[34:].split()] for line in lines[1:7:2]}
    best, totals, quarters = figures.values()
    assert best[0] < quarters[0] < totals[0]
    assert best[1] < best[2]
    assert totals[1] == totals[2]
    assert quarters[3] == quarters[4]
    assert [line.split(":")[0].strip() for line in lines[2:7:2]] == ["optimal", "feasible", "feasible"]
    assert len({line.split()[-1] for line in lines[2:7:2]}) == 1
    swept = [float(line.split()[-1]) for line in lines[-3:]]
    assert swept == sorted(swept, reverse=True)
    assert swept[1] == pytest.approx(best[0], rel=1e-3)
