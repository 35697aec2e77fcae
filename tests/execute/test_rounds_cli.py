"""Rounds on the command line: which round it was, exit code 6 after the last, and counting voters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privspec.cli import run_command_line

SPEC = """spec drones
parameters:
  budget = 2
parties:
  drone in 1..40
variables:
  input vote[drone] in {gate, bridge, tower}
  choose rounds in 1..100
  output O
loss:
  -rounds
privacy:
  O is (budget / rounds)-DP wrt vote, adding or removing one drone
accuracy:
  worst[ total_variation(O, random_dictator(vote)) ] <= 0.13
options:
  noise family dictator
"""
VOTES = "drone,choice\nAda,gate\nBob,tower\nCleo,gate\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("drones.priv").write_text(SPEC)
    Path("round_1.csv").write_text(VOTES)
    assert run_command_line(["solve", "drones.priv", "-o", "drones.plan.json"]) == 0
    shown = capsys.readouterr()
    assert "Rounds" in shown.out + shown.err
    return tmp_path


RUN = ["run", "drones.plan.json", "--input", "vote=round_1.csv", "-o", "winner.json", "--force"]


def test_rounds_until_the_budget_is_used_up(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = json.loads((folder / "drones.plan.json").read_text())["mechanism"]["rounds"]["count"]
    assert count == 7
    for number in range(1, count + 1):
        assert run_command_line([*RUN, *(["--new-ledger"] if number == 1 else [])]) == 0
        assert f"round {number} of {count}\n" in capsys.readouterr().err
        assert json.loads((folder / "winner.json").read_text())["round"] == f"{number} of {count}"
    (folder / "winner.json").unlink()
    assert run_command_line(RUN) == 6
    told = capsys.readouterr().err
    assert "all 7 rounds of this plan were held" in told
    assert "each drone may take part in 7 rounds" in told
    assert not (folder / "winner.json").exists()


def test_more_rounds_with_every_voter_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(1, 10):
        first = ["--new-ledger"] if number == 1 else []
        assert run_command_line([*RUN, *first, "--participation", "drones.db"]) == 0
        told = capsys.readouterr().err
        assert f"round {number}, of which one voter takes part in at most 7" in told
        assert "as secret as the votes" in told
        assert not any(name in told for name in ("Ada", "Bob", "Cleo"))
    assert run_command_line(RUN) == 6
    assert "counted for each voter" in capsys.readouterr().err
    assert run_command_line(["ledger", "verify", "round_1.ledger.db"]) == 0


def test_column_of_voters_is_missing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "round_1.csv").write_text("choice\ngate\n")
    assert run_command_line([*RUN, "--participation", "drones.db"]) == 1
    assert "PS0804" in capsys.readouterr().err
