"""Sums over votes of what each ranking counts for, as linear answers: Borda scores and pairwise comparisons."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.core.diagnostics import SpecError
from privspec.plan import verify
from tests.plans import resign

VOTES = """\
parties: voter in 1..6
variables:
  input ballot[voter] in ranking of {ann, bob, cy}
  output S
loss: E[ ||S - CALL(ballot)||^2 ]
privacy: S is MEASURE wrt ballot, replacing one voter
"""
BALLOTS = ("ann bob cy", "ann cy bob", "bob ann cy", "cy bob ann", "ann bob cy", "ann bob cy")


def points(call: str, ballot: tuple[str, ...]) -> np.ndarray:
    """What one ballot adds, as the manual says it."""
    names = ("ann", "bob", "cy")
    above = np.array([[float(ballot.index(a) < ballot.index(b)) for b in names] for a in names])
    return above if call == "pairwise" else above.sum(axis=1)


@pytest.mark.parametrize("call", ["pairwise", "borda_scores"])
def test_what_is_released_are_sums_over_the_ballots(
    call: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, plan, data = (tmp_path / name for name in ("s.priv", "s.json", "b.csv"))
    spec.write_text(VOTES.replace("CALL", call).replace("MEASURE", "90-DP"), "utf-8")
    data.write_text("\n".join(("ballot", *BALLOTS)) + "\n", "utf-8")
    assert run_command_line(["solve", str(spec), "-q", "-o", str(plan)]) == 0
    capsys.readouterr()
    run = ["run", str(plan), "--input", f"ballot={data}", "--ledger", str(tmp_path / "l.db"), "--new-ledger"]
    assert run_command_line(run) == 0
    found = np.array(json.loads(capsys.readouterr().out)["outputs"]["S"]["values"], dtype=float)
    wanted = sum(points(call, tuple(ballot.split())) for ballot in BALLOTS)
    assert found == pytest.approx(np.ravel(wanted), abs=1e-6)


@pytest.mark.parametrize("call", ["pairwise", "borda_scores"])
def test_the_noise_hides_every_change_of_a_ballot(call: str) -> None:
    """Of Gaussian noise: the longest change of the answers, in deviations of the noise, is what the line allows."""
    plan = Problem(VOTES.replace("CALL", call).replace("MEASURE", "2-GDP")).solve()
    assert plan.verify().ok
    each = [points(call, one).ravel() for one in permutations(("ann", "bob", "cy"))]
    covariance = np.array(plan.document["mechanism"]["output_covariance"], dtype=float)
    inverse = np.linalg.pinv(covariance, hermitian=True, rcond=1e-6)
    moved = [(a - b) @ inverse @ (a - b) for a in each for b in each]
    assert max(moved) == pytest.approx(4, rel=1e-6)


def test_forged_plans_are_refused() -> None:
    """Less noise than the line asks for, and a problem in which one order of the names counts for nothing."""
    text = VOTES.replace("CALL", "pairwise")
    document, loud = (Problem(text.replace("MEASURE", f"{mu}-GDP")).solve().document for mu in (2, 4))
    assert verify(json.dumps(document)).ok
    quiet = json.loads(json.dumps(document)) | {"mechanism": loud["mechanism"]}
    assert not verify(json.dumps(resign(quiet))).ok
    fewer = json.loads(json.dumps(document))
    rows = fewer["problem"]["blocks"][0]["target"]["rows"]
    assert rows[6:12] == [1, 1, 0, 0, 1, 0]  # who stands above whom in each order
    rows[6] = 0
    assert not verify(json.dumps(resign(fewer))).ok


def test_a_ballot_that_is_used_otherwise_is_no_sum() -> None:
    text = VOTES.replace("CALL(ballot)", "[borda_scores(ballot)[1], plurality(ballot)]").replace("MEASURE", "2-GDP")
    with pytest.raises(SpecError):
        Problem(text).solve()
