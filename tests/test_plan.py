"""Nothing of a plan is run or shown before every claim of it was re-derived, from whichever entrance."""

from __future__ import annotations

import ast
import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import privspec
from privspec.audit import audit
from privspec.cli import run_command_line
from privspec.core.diagnostics import UsageError, VerificationError
from privspec.kernel.writing import plan_digest
from privspec.manual import template_text
from privspec.plan import Plan
from privspec.profiles import fit_of_plan, profile_text

TOTALS = """\
variables:
  input x in [0, 1]^3
  output O
loss: E[ ||O - x||^2 ]
privacy: O is 1-GDP wrt x, replacing one entry
"""
DATA = {"x": [0.25, 0.5, 0.75]}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return privspec.Problem(TOTALS).solve()


def forged(plan: Plan) -> dict[str, Any]:
    """The plan with a hundredth of its noise, under a digest that fits."""
    document = copy.deepcopy(dict(plan.document))
    document["mechanism"]["executed"]["noise"]["scale"] = "1/100"
    document["digest"] = plan_digest(document)
    return document


ENTRANCES: dict[str, Callable[[Plan, Path], object]] = {
    "run": lambda p, folder: p.run(DATA, ledger=folder / "l.db", new_ledger=True, output=folder / "o.json"),
    "combine": lambda p, _: p.combine([]),
    "aggregate": lambda p, _: p.aggregate([["a", "b"]]),
    "explain": lambda p, _: p.explain("auditor"),
    "explain a release": lambda p, folder: p.explain_release(folder / "o.json"),
    "summary": lambda p, _: p.summary(),
    "html": lambda p, _: p._repr_html_(),
    "data": lambda p, _: fit_of_plan(p, DATA),
    "profile": lambda p, _: profile_text(p, DATA),
    "audit": lambda p, _: audit(p),
    "register": lambda p, _: p.explain("register"),
    "verified": lambda p, _: p.verified(),
}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_a_forged_plan_gives_nothing(plan: Plan, entrance: str, tmp_path: Path) -> None:
    with pytest.raises(VerificationError) as caught:
        ENTRANCES[entrance](Plan(forged(plan)), tmp_path)
    (found,) = caught.value.diagnostics
    assert found.code == "PS0910" and found.notes
    assert list(tmp_path.iterdir()) == []


COMMANDS = (
    "run {plan} --input x=x.csv --seed 1",
    "run {plan} --input x=x.csv --new-ledger -o o.json",
    "explain {plan}",
    "explain {plan} -o page.html",
    "explain {plan} --profile x=x.csv",
    "data {plan} --input x=x.csv",
    "audit {plan}",
    "diff {plan} {plan}",
    "aggregate {plan} x.csv",
    "verify-draw x.csv --plan {plan}",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_runs_or_prints_a_forged_plan(
    plan: Plan, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("x\n0.25\n0.5\n0.75\n", "utf-8")
    Path("forged.json").write_text(json.dumps(forged(plan)), "utf-8")
    assert run_command_line(command.format(plan="forged.json").split()) == 7
    printed = capsys.readouterr()
    assert not printed.out and "is not verified" in printed.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["forged.json", "x.csv"]


def test_no_page_of_a_release_rests_on_a_forged_plan(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither one that names the forged plan nor one that the true plan made is explained by it."""
    monkeypatch.chdir(tmp_path)
    plan.run(DATA, seed=1, output="true.json")
    release, other = json.loads(Path("true.json").read_text("utf-8")), forged(plan)
    Path("forged.plan.json").write_text(json.dumps(other), "utf-8")
    Path("o.json").write_text(json.dumps({**release, "plan_sha256": other["digest"]}), "utf-8")
    for command in ("explain o.json", "explain o.json -o page.html", "explain true.json"):
        assert run_command_line([*command.split(), "--plan", "forged.plan.json"]) == 7
        printed = capsys.readouterr()
        assert not printed.out and "is not verified" in printed.err
    assert run_command_line(["explain", "o.json"]) == 7, "found by the digest that both name"
    plan.write("true.plan.json")
    assert run_command_line(["explain", "o.json", "--plan", "true.plan.json"]) == 2
    assert "a release of another plan" in capsys.readouterr().err
    assert not Path("page.html").exists()


def test_a_release_that_claims_less_noise_than_its_plan_draws_is_refused(plan: Plan, tmp_path: Path) -> None:
    """So no page shows limits that are too narrow; figures that were changed nobody can tell from others."""
    plan.run(DATA, seed=1, output=tmp_path / "o.json")
    release = json.loads((tmp_path / "o.json").read_text("utf-8"))
    assert plan.explain_release(tmp_path / "o.json")
    for deviations in ([1e-3] * 3, [0.0] * 3, [release["outputs"]["O"]["standard_deviation"][0], 0.5, 10.0]):
        release["outputs"]["O"]["standard_deviation"] = deviations
        (tmp_path / "forged.json").write_text(json.dumps(release), "utf-8")
        with pytest.raises(UsageError, match="PS0735"):
            plan.explain_release(tmp_path / "forged.json")


ABOUT_NO_MECHANISM = {"check_digest", "plan_digest", "round_words", "infeasible_text"}
"""A digest, words of a round that was paid for, and why there is no mechanism."""


def test_nothing_else_is_open_that_runs_or_shows_the_document_of_a_plan() -> None:
    """Whatever takes a plan as it stands, and gives a release or a text, is for those who verified it."""
    found = set()
    for path in Path(privspec.__file__).parent.rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.args.args and "kernel" not in path.parts:
                given, result = node.args.args[0].annotation, node.returns
                believed = given is not None and ast.unparse(given).startswith(("Mapping[str, Any]", "dict[str, Any]"))
                shows = result is not None and ast.unparse(result).startswith(("str", "Release", "Aggregate"))
                found |= {node.name} if believed and shows and not node.name.startswith("_") else set()
    assert found <= ABOUT_NO_MECHANISM


def test_a_document_changed_after_it_was_verified_is_another_one(plan: Plan, tmp_path: Path) -> None:
    document = copy.deepcopy(dict(plan.document))
    open_to_change = Plan(document)
    assert open_to_change.verify().ok
    open_to_change.run(DATA, ledger=tmp_path / "first.db", new_ledger=True)
    document["mechanism"]["executed"]["noise"]["scale"] = "1/100"
    for digest in (document["digest"], plan_digest(document)):
        document["digest"] = digest
        with pytest.raises(VerificationError, match="PS0910"):
            open_to_change.run(DATA, ledger=tmp_path / "second.db", new_ledger=True)
    assert not (tmp_path / "second.db").exists()


def test_a_document_changed_while_it_runs_does_not_matter(plan: Plan, tmp_path: Path) -> None:
    document = copy.deepcopy(dict(plan.document))
    executed = document["mechanism"]["executed"]["noise"]

    class Changing(dict[str, Any]):
        """Data whose reading changes the plan."""

        def __getitem__(self, name: str) -> Any:
            executed["scale"] = "0"
            return super().__getitem__(name)

    release = Plan(document).run(Changing(DATA), ledger=tmp_path / "l.db", new_ledger=True)
    assert executed["scale"] == "0" and release.plan_sha256 == plan.digest
    assert (release.outputs["O"] != DATA["x"]).all()


def test_a_verdict_fits_its_terminal_and_shows_what_fails(plan: Plan) -> None:
    """Lines are cut as those of `solve` are, claims under their texts; colours say what became of each."""
    report = plan.verify()
    assert str(report) == report.text() == report.text(None)
    for width in (30, 50, 80, 100, 300):
        lines = report.text(width).splitlines()
        assert max(map(len, lines)) <= min(width, 120)
        assert " ".join(report.text(width).split()) == " ".join(str(report).split())
    assert any(line.startswith(" " * 21) for line in report.text(80).splitlines())
    coloured = report.text(80, colour=True)
    assert coloured.count("\x1b[32mok\x1b[0m") == len(report.claims)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == report.text(80)
    changed = copy.deepcopy(dict(plan.document))
    changed["loss"]["value"] *= 2
    failed = Plan(changed).verify().text(80, colour=True)
    assert "\x1b[1;31mfailed\x1b[0m" in failed
    assert failed.rstrip().endswith("failed\x1b[0m")


def test_a_plan_is_verified_once(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again = Plan(json.loads(plan.to_json()))
    monkeypatch.setattr("privspec.plan.verify", lambda text: pytest.fail("verified once more"))
    assert again.summary() and again.explain()
    assert again.run(DATA, ledger=tmp_path / "l.db", new_ledger=True).private


def test_a_plan_that_was_only_read_says_so(plan: Plan) -> None:
    assert repr(plan) == "<Plan <python>: optimal, loss 3>"
    assert repr(Plan(forged(plan))) == "<Plan <python>: optimal, loss 3, not verified yet>"


def test_an_infeasible_plan_promises_nothing() -> None:
    limit = "accuracy: E[ (O[1] - x[1])^2 ] <= 0.001\nloss:"
    plan = privspec.Problem(TOTALS.replace("loss:", limit)).solve()
    assert plan.status == "infeasible" and "<=" in plan.explain()
    document = {**plan.document, "guarantees": privspec.Problem(TOTALS).solve().document["guarantees"]}
    document["digest"] = plan_digest(document)
    for changed in (document, {**plan.document, "conflicts": []}):
        with pytest.raises(VerificationError):
            Plan(changed).summary()


def test_reports_of_a_forged_plan_are_not_counted() -> None:
    plan = privspec.Problem(template_text("k_randomised_response")).solve()
    document = copy.deepcopy(dict(plan.document))
    table = document["mechanism"]["probabilities"]
    table[0] = [*table[0][1:], table[0][0]]
    document["digest"] = plan_digest(document)
    with pytest.raises(VerificationError, match="PS0910"):
        Plan(document).aggregate([["a"]])


def test_the_plan_is_not_written_over(plan: Plan, tmp_path: Path) -> None:
    written = plan.write(tmp_path / "mine.plan.json")
    with pytest.raises(UsageError, match="PS0832"):
        written.run(DATA, ledger=tmp_path / "l.db", new_ledger=True, output=tmp_path / "mine.plan.json")
    assert Plan.read(tmp_path / "mine.plan.json") == plan and not (tmp_path / "l.db").exists()
