"""Privacy at least cost through the command line: solved, verified, run, told to three readers, swept."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from privspec.cli import run_command_line
from privspec.explain.summary import _summary

SPEC = """\
spec answers
\"\"\"Eight running totals, each off by at most three in 95 of 100 releases, at least epsilon.\"\"\"

parameters:
  size = 3  # how far off a total may be

variables:
  input visits in [0, 1]^8
  choose epsilon in [0, 10]
  intermediate y
  output O

background:
  y = prefix_sums(visits)

loss:
  epsilon

accuracy:
  |O[j] - y[j]| <= size for j in 1..8 with probability 0.95

privacy:
  O is (epsilon, 1e-6)-DP wrt visits, replacing one entry
"""


def test_the_whole_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("answers.priv").write_text(SPEC, "utf-8")
    Path("visits.csv").write_text("visits\n" + "0.5\n" * 8, "utf-8")

    def call(*words: str) -> str:
        assert run_command_line(list(words)) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    shown = call("solve", "answers.priv")
    assert "Picked at least cost" in shown
    plan = json.loads(Path("answers.plan.json").read_text("utf-8"))
    value = plan["mechanism"]["scalars"]["epsilon"]
    assert plan["status"] == "optimal"
    assert "proved to be at least" in " ".join(shown.split())
    unjudged = " ".join(_summary(plan).split())
    assert "reported to be at least" in unjudged
    assert "proved to be" not in unjudged
    assert "epsilon" in call("check", "answers.priv", "--problem")
    assert "no such mechanism has a loss below" in call("verify", "answers.plan.json")
    call("run", "answers.plan.json", "--input", "visits=visits.csv", "--new-ledger", "-o", "release.json")
    release = json.loads(Path("release.json").read_text("utf-8"))
    assert release["guarantees"][0]["epsilon"] == value
    for reader in ("public", "auditor", "engineer"):
        page = call("explain", "answers.plan.json", "--for", reader)
        assert "off by" in page if reader == "public" else "The solver chose epsilon" in page or "chose epsilon" in page
    call("sweep", "answers.priv", "--over", "size=3,6", "-o", "sweep.csv")
    rows = list(csv.DictReader(Path("sweep.csv").read_text("utf-8").splitlines()))
    assert [row["status"] for row in rows] == ["solved", "solved"]
    assert float(rows[0]["loss"]) == pytest.approx(float(value))
    assert float(rows[1]["loss"]) < float(rows[0]["loss"]) / 2
