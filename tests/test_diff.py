"""What changed between two specs or plans, in plain words, with a verdict where one line implies the other."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.diff import Side, differences, implied, privacy_verdict
from privspec.kernel.measures import BY_DISTANCE, PURE, ZERO_CONCENTRATED

SPEC = """\
parameters:
  epsilon = 1
parties: person in 1..10
variables:
  input x[person] in [0, 1]
  output O
loss: E[ (O - mean(x))^2 ]
privacy: O is epsilon-DP wrt x, replacing one person
"""


def side(text: str) -> Side:
    return Side(Problem(text).check())


def verdicts(old: str, new: str) -> list[tuple[str, str]]:
    return [(change.about, change.verdict) for change in differences(side(old), side(new))]


def test_the_same_spec_has_no_differences() -> None:
    commented = SPEC.replace("output O", "output O  # what is told")
    assert verdicts(SPEC, commented) == []


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ("1-DP", "0.5-DP", "stronger"),
        ("1-DP", "2-DP", "weaker"),
        ("1-DP", "(1, 1e-6)-DP", "weaker"),
        ("(1, 1e-6)-DP", "0.9-DP", "stronger"),
        ("0.5-GDP", "(2, 1e-3)-DP", "weaker"),
        ("(1, 1e-6)-DP", "(2, 1e-9)-DP", "changed"),
        ("1-zCDP", "0.5-zCDP", "stronger"),
        ("1-DP", "0.5-zCDP", "weaker"),
    ],
)
def test_measures_are_compared_where_one_implies_the_other(old: str, new: str, verdict: str) -> None:
    texts = [SPEC.replace("epsilon-DP", measure).replace("parameters:\n  epsilon = 1\n", "") for measure in (old, new)]
    assert verdicts(*texts) == [("privacy", verdict)]


def test_group_privacy_is_stronger_and_other_units_are_told() -> None:
    group = SPEC.replace("replacing one person", "replacing up to 3 person")
    adding = SPEC.replace("replacing one person", "adding or removing one person")
    assert verdicts(SPEC, group) == [("privacy", "stronger")]
    assert verdicts(group, SPEC) == [("privacy", "weaker")]
    assert verdicts(SPEC, adding) == [("privacy", "changed")]


def test_lines_that_come_and_go() -> None:
    more = SPEC + "  O is 0.5-GDP wrt x, replacing one person, seen by press\n"
    assert verdicts(SPEC, more) == [("privacy", "stronger")]
    assert verdicts(more, SPEC) == [("privacy", "weaker")]


def test_trust_data_and_parameters() -> None:
    trusted = SPEC + "options: trust secure_sum\n"
    assert verdicts(SPEC, trusted) == [("trust", "stronger")]
    assert privacy_verdict(differences(side(trusted), side(SPEC))) == "weaker"
    wider = SPEC.replace("[0, 1]", "[0, 2]")
    assert verdicts(SPEC, wider) == [("data", "changed")]
    more = SPEC.replace("epsilon = 1", "epsilon = 2")
    assert verdicts(SPEC, more) == [("privacy", "weaker"), ("parameter", "changed")]
    opened = SPEC.replace("  output O", "  choose k in {1, 2}\n  output O").replace("^2 ]", "^2 ] + k")
    assert ("left open", "changed") in verdicts(SPEC, opened)


def test_implication_is_that_of_the_kernel() -> None:
    one, half = {"epsilon": Fraction(1)}, {"rho": Fraction(1, 2)}
    assert implied(ZERO_CONCENTRATED, half, PURE, one)
    assert not implied(PURE, one, ZERO_CONCENTRATED, half)
    assert not implied(BY_DISTANCE, one, PURE, one)
    assert not implied(None, one, PURE, one)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Plans are verified, then compared; exit 0 where nothing changed, 1 where something did."""
    paths = []
    for name, epsilon in (("old", "1"), ("new", "0.5")):
        paths.append(str(tmp_path / f"{name}.plan.json"))
        Problem(SPEC).solve(epsilon=epsilon).write(paths[-1])
    assert run_command_line(["diff", paths[0], paths[0]]) == 0
    assert "promise and do the same" in capsys.readouterr().out
    assert run_command_line(["diff", *paths, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["privacy"], found["same"]) == ("stronger", False)
    told = {change["about"]: change["verdict"] for change in found["changes"]}
    assert told == {
        "privacy": "stronger",
        "reached": "stronger",
        "parameter": "changed",
        "loss": "worse",
        "mechanism": "changed",
    }
    assert run_command_line(["diff", *paths]) == 1
    assert "noise in steps" in capsys.readouterr().out
    (tmp_path / "a.priv").write_text(SPEC, "utf-8")
    assert run_command_line(["diff", str(tmp_path / "a.priv"), paths[0]]) == 2
    tampered = Path(paths[0]).read_text("utf-8").replace('"epsilon": "1"', '"epsilon": "0.1"')
    Path(paths[0]).write_text(tampered, "utf-8")
    assert run_command_line(["diff", *paths]) == 7
