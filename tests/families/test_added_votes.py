"""What ballots count for: sums over them as linear answers, and votes with public weights of their own."""

from __future__ import annotations

import json
from itertools import permutations, product
from math import exp
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

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


# --- weights --------------------------------------------------------------------------------------

LOTTERY = """\
parameters: w = WEIGHTS
parties: voter in 1..3
variables:
  input vote[voter] in {a, b}
  output O in {a, b}
loss: worst[ total_variation(O, random_dictator(vote, weights = w)) ]
privacy: O is 1-DP wrt vote, replacing one voter
"""


@pytest.mark.parametrize("weights", [(2, 1, 1), (1, 1, 1), (0.5, 3, 1)])
def test_a_weighted_lottery_is_kept_as_well_as_any_table_can(weights: tuple[float, ...]) -> None:
    """Against a linear program over all profiles: the chances of a, and how far the worst of them is off."""
    profiles = list(product((0, 1), repeat=3))
    rows, bounds = list[list[float]](), list[float]()
    for i, votes in enumerate(profiles):
        wanted = sum(w for w, vote in zip(weights, votes, strict=True) if vote) / sum(weights)
        for sign in (1.0, -1.0):
            rows.append([sign * (k == i) for k in range(8)] + [-1.0])
            bounds.append(sign * wanted)
        for j, other in enumerate(profiles):
            if sum(a != b for a, b in zip(votes, other, strict=True)) == 1:
                ratio = [(k == i) - exp(1) * (k == j) for k in range(8)]
                rows += [[*ratio, 0.0], [*(-one for one in ratio), 0.0]]
                bounds += [0.0, exp(1) - 1]
    found = linprog([0.0] * 8 + [1.0], np.array(rows), bounds, bounds=(0, 1))
    plan = Problem(LOTTERY.replace("WEIGHTS", str(list(weights)))).solve()
    assert plan.status == "optimal"
    assert plan.loss.value == pytest.approx(found.fun, rel=1e-6)
    assert plan.verify().ok


@pytest.mark.parametrize("weights", ["[1, 2]", "[1, 0, 2]", "3", "[[1, 2, 3]]"])
def test_weights_are_one_positive_number_for_each_voter(weights: str) -> None:
    with pytest.raises(SpecError, match="weights of votes are public positive numbers"):
        Problem(LOTTERY.replace("WEIGHTS", weights)).solve()
