"""How many check-ins of each user to count: on made-up check-ins everywhere, on the real ones where they are."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest

from privspec.execute.data import read_inputs
from privspec.execute.family import RunContext
from privspec.families.gaussian.execution import read_executed
from privspec.noise.samplers import SimulationRandomness

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "san_francisco"
DATA = next(
    (
        found
        for up in FOLDER.parents[1:3]
        if (found := up / "shared" / "data" / "gowalla_san_francisco.csv.gz").is_file()
    ),
    Path("nowhere"),
)


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("check_ins_a_user")
    for name in ("check_ins_a_user", "check_ins"):
        sys.modules.pop(name, None)


def test_what_is_cut_is_what_simulation_gives(example: ModuleType) -> None:
    half = example.Half(np.array([[3, 0, 1, 0], [1, 1, 0, 0], [0, 6, 2, 4]]))
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(4000):
        off = np.zeros(4)
        for row in half.counts:
            records = np.repeat(np.arange(4), row)
            kept = rng.permutation(records)[:3]
            off += row - np.bincount(kept, minlength=4)
        errors.append(off @ off)
    spread = np.std(errors) / len(errors) ** 0.5
    assert abs(np.mean(errors) - half.cut(3)) < 5 * spread


def test_one_command_on_made_up_check_ins(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(2)
    users = np.repeat(np.arange(60), rng.geometric(0.2, 60))
    hours = rng.integers(0, 24, len(users))
    path = tmp_path / "check_ins.csv"
    pl.DataFrame({"user": users, "time_utc": [f"2010-05-30T{hour:02}:00:00Z" for hour in hours]}).write_csv(path)
    assert example.main(["--epsilon", "4", "--data", str(path)]) == 0
    said = capsys.readouterr().out
    assert "(chosen)" in said and "verified: True" in said


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_file(), reason="the check-ins are not here")
@pytest.mark.parametrize("epsilon", [1, 0.02])
def test_the_number_that_is_chosen_is_nearly_the_best(example: ModuleType, epsilon: float) -> None:
    """Chosen by the public half, and the error of the other half is within one per cent of that of its best k."""
    public, other = example.read(DATA)
    found = example.solved(public, epsilon)
    true = found.noise + [other.cut(k) for k in range(1, 21)]
    assert true[found.chosen - 1] <= 1.01 * true.min()
    own = example.solved(other, epsilon)
    assert np.abs(own.predicted / true - 1).max() < 0.15
    assert own.plan.verify().ok


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_file(), reason="the check-ins are not here")
def test_what_a_run_cuts_of_real_check_ins_is_what_is_expected(example: ModuleType) -> None:
    """Read as a run reads them, many times: the mean squared error by the cut, within 5 standard errors."""
    public, other = example.read(DATA)
    found = example.solved(public, 0.02)
    inputs = read_executed(json.loads(found.plan.to_json())).inputs
    rows = [
        (user, part, n) for user, row in enumerate(other.counts) for part, n in zip(example.PARTS, row, strict=True)
    ]
    frame = pl.DataFrame(
        {"user": [u for u, _, n in rows for _ in range(n)], "part": [p for _, p, n in rows for _ in range(n)]}
    )
    errors = []
    for seed in range(60):
        said = RunContext(randomness=SimulationRandomness(seed))
        kept = np.array([int(v) for v in read_inputs(inputs, {"visits": frame}, said).numerators])
        assert kept.sum() == np.minimum(other.counts.sum(axis=1), found.chosen).sum()
        errors.append(float(((other.counts.sum(axis=0) - kept) ** 2).sum()))
    assert abs(np.mean(errors) - other.cut(found.chosen)) < 5 * np.std(errors) / len(errors) ** 0.5
