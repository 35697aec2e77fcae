"""The voting example: figures and welfare everywhere, elections where their ballots are."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from math import log
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "voting"
DATA = FOLDER.parents[2] / "shared" / "data"
Call = Callable[..., subprocess.CompletedProcess[str]]
MODULES = ("curves", "elections", "welfare")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The modules of the example by name."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield {name: importlib.import_module(name) for name in MODULES}
    for name in MODULES:
        sys.modules.pop(name, None)


def test_the_curves_are_those_of_the_paper(example: dict[str, ModuleType]) -> None:
    one, two, three = example["curves"].figures()
    assert one.curves[0].values == pytest.approx([log(2 * t / (t + 1)) for t in one.curves[0].voters])
    assert one.curves[2].values == pytest.approx([log(2)] * 148)
    assert all(a < b for a, b in zip(one.curves[0].values, one.curves[2].values, strict=True))
    assert two.curves[0].values == pytest.approx([100 * t / (2 * t + 1) for t in two.curves[0].voters])
    assert three.curves[0].values == pytest.approx([log((2 * t + 100) / (2 * (t + 1))) for t in three.curves[0].voters])


def test_the_figures_that_the_paper_quotes(example: dict[str, ModuleType]) -> None:
    text = example["curves"].landmarks()
    for figure in ("0.5978", "0.6931 = log 2", "4/3", "3/2"):
        assert figure in text


@pytest.mark.parametrize(
    ("case", "values"),
    [
        ((3, 2, "1"), (0.6580, 0.6463, 0.6322, 0.6201, 0.5770)),
        ((10, 3, "1"), (0.4520, 0.4449, 0.4281, 0.3901, 0.3576)),
        ((20, 3, "0.5"), (0.4022, 0.3975, 0.3845, 0.3604, 0.3393)),
        ((8, 4, "1"), (0.3772, 0.3626, 0.3446, 0.3226, 0.2782)),
    ],
)
def test_welfare(
    example: dict[str, ModuleType], case: tuple[int, int, str], values: tuple[float, float, float, float, float]
) -> None:
    welfare = example["welfare"]
    found = [welfare.best(*case), *welfare.of_rules(*case)]
    assert found == pytest.approx(values, abs=5e-5)


@pytest.mark.parametrize("number", [0, 1])
def test_elections(example: dict[str, ModuleType], number: int, tmp_path: Path) -> None:
    elections = example["elections"]
    election = elections.ELECTIONS[number]
    if not (DATA / election.file).is_file():
        pytest.skip(f"the ballots are not at {DATA / election.file}")
    outcome = elections.held(election, DATA / election.file, tmp_path)
    assert outcome.winner in outcome.alternatives
    assert sum(outcome.noisy) == sum(outcome.plain) == 1
    # the distance on these ballots is at most the worst one, which is what the plan promises
    assert 0 < outcome.distance <= outcome.plan.loss.value
    assert min(outcome.noisy) > 0
    assert (tmp_path / f"{election.spec}_public.html").stat().st_size > 1000


def test_without_the_ballots_it_says_so(tmp_path: Path, call: Call) -> None:
    done = call(FOLDER / "run_voting.py", tmp_path, "--data", tmp_path / "nowhere")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("is skipped: there is no") == 2
    assert all((tmp_path / f"figure_{i}.png").stat().st_size > 1000 for i in (1, 2, 3))
    assert "| 10, 3, 1 | 0.4520 | 0.4449 | 0.4281 | 0.3901 | 0.3576 |" in done.stdout
