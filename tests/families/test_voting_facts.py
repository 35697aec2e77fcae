"""Votes of which it is a fact that every alternative has supporters: what it saves, and what is refused."""

from __future__ import annotations

from math import exp
from pathlib import Path

import pytest

from privspec.cli import run_command_line
from privspec.core.diagnostics import SpecError
from tests.families.voting import WORST, decided, system_of, vote
from tests.plans import solved_text

ONE_EACH = "histogram(vote)[j] >= 1 for j in 1..3"
REPLACING = "O is 0.5-DP wrt vote, replacing one voter"


def test_supporters_take_the_place_of_dummy_votes() -> None:
    plain, sure = (float(decided(vote(background=fact)).chosen.draw.number) for fact in ("", ONE_EACH))
    assert plain == pytest.approx(1 / (exp(0.5) - 1), rel=1e-8) and sure == pytest.approx(plain - 1, rel=1e-8)


@pytest.mark.parametrize("least", ["2", "T / 10", "100"])
def test_enough_supporters_need_none(least: str) -> None:
    text = vote(background=f"histogram(vote)[j] >= {least} for j in 1..3", privacy=REPLACING)
    found = decided(text.replace("parties:", "parameters:\n  T = 1000\nparties:"))
    assert found.chosen.draw.number == 0 and found.chosen.loss.value == 0
    kept = {one.name: one.holds for one in found.chosen.draw.properties(found.system.promises[0].task)}
    assert kept == dict.fromkeys(("treats_voters_alike", "ex_post_efficient", "strategy_proof"), True)


def test_facts_line_by_line_are_one() -> None:
    lines = "\n  ".join(["histogram(vote)[1] >= 1", "1 <= histogram(vote)[2]", "histogram(vote)[3] >= 0.5"])
    assert system_of(vote(background=lines)).votes.ballots == system_of(vote(background=ONE_EACH)).votes.ballots


@pytest.mark.parametrize(
    ("fact", "code"),
    [
        ("histogram(vote)[1] >= 1", "PS0501"),
        ("histogram(vote)[j] >= j for j in 1..3", "PS0501"),
        ("histogram(vote)[j] <= 400 for j in 1..3", "PS0501"),
        ("histogram(vote)[j] >= 0 for j in 1..3", "PS0501"),
        ("sum(histogram(vote)) >= 5", "PS0501"),
        ("histogram(vote)[1] >= histogram(vote)[2]", "PS0501"),
        ("histogram(vote)[j] >= 334 for j in 1..3", "PS0345"),
        (f"{ONE_EACH}\n  vote ~ uniform", "PS0522"),
    ],
)
def test_other_facts_are_refused(fact: str, code: str) -> None:
    with pytest.raises(SpecError) as refused:
        system_of(vote(background=fact))
    assert refused.value.diagnostics[0].code == code


def test_where_no_vote_is_free_nothing_is_compared() -> None:
    with pytest.raises(SpecError) as refused:
        system_of(vote(voters=999, privacy=REPLACING, background="histogram(vote)[j] >= 333 for j in 1..3"))
    assert refused.value.diagnostics[0].code == "PS0346"


def test_the_paper_is_told_beside_what_holds() -> None:
    (remark,) = solved_text(vote(voters=10, background=ONE_EACH))["remarks"]["paper"]
    assert remark["quantity"] == "epsilon of Theorem 1 (ii) at T = 10"
    assert exp(remark["says"]) == pytest.approx(20 / 11) and exp(remark["holds"]) == pytest.approx(2)


def test_supporters_the_whole_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, plan, data = (tmp_path / name for name in ("s.priv", "s.plan.json", "x.csv"))
    spec.write_text(vote(WORST, background=ONE_EACH), "utf-8")
    assert run_command_line(["solve", str(spec), "-o", str(plan)]) == 0
    assert run_command_line(["verify", str(plan)]) == 0
    assert "every alternative has at least 1 of the votes" in capsys.readouterr().out
    run = ["run", str(plan), "--input", f"vote={data}", "--ledger", str(tmp_path / "l.db"), "--new-ledger", "-o"]
    for name, ballots in (("a", ["north"] * 5 + ["east"]), ("b", ["north"] * 5 + ["east", "south"])):
        data.write_text("\n".join(["vote", *ballots]) + "\n", "utf-8")
        assert (run_command_line([*run, str(tmp_path / f"{name}.json")]) == 0) == (name == "b")
    assert "PS0821" in capsys.readouterr().err
    for reader in ("public", "auditor", "engineer"):
        assert run_command_line(["explain", str(plan), "--for", reader, "-o", str(tmp_path / f"{reader}.md")]) == 0
        assert "histogram(vote)" in (tmp_path / f"{reader}.md").read_text("utf-8"), reader
    assert "all but 1 for each other candidate vote for north" in (tmp_path / "public.md").read_text("utf-8")
