"""The report on real votes: computed from them, labelled line by line, and never for the public."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

from privspec.cli import app, run_command_line
from privspec.core.diagnostics import UsageError
from privspec.core.spans import Source
from privspec.explain.document import Document, Points, Table
from privspec.explain.paper import LABEL, profile_report
from privspec.explain.reports import to_markdown
from privspec.pipeline import Request, solve
from privspec.stated import Stated
from tests.execute.voting import make_lottery_plan

from .plans import SPECS, Plan, drum, plan

VOTES = [("north", 600), ("east", 390), ("south", 10)]


def report(plan: Plan, votes: list[tuple[object, int]]) -> Document:
    return profile_report(Stated.of(plan), votes)  # type: ignore[arg-type]


def text_of(plan: Plan, votes: list[tuple[object, int]]) -> str:
    return to_markdown(report(plan, votes)).replace("\\", "")


def test_it_begins_with_a_warning() -> None:
    first = report(drum("1"), VOTES).sections[0]
    assert first.heading == "Do not publish this report"
    text = text_of(drum("1"), VOTES)
    assert "None of it is differential privacy" in text
    assert "the least represented share α, and whether a condition holds reveal votes by themselves" in text.replace(
        "The number of voters, ", ""
    )


@pytest.mark.parametrize("plan", [drum("1"), plan("quick_poll"), plan("lunch")])
def test_every_figure_is_labelled(plan: Plan) -> None:
    document = report(plan, VOTES)
    for section in document.sections[1:]:
        for block in section.blocks:
            if isinstance(block, Table):
                assert all(row[-1] == LABEL for row in block.rows)
            elif isinstance(block, Points):
                figures = [s.text for s in block.sentences if any(c.isdigit() for c in s.text)]
                assert all(text.endswith(f"[{LABEL}]") for text in figures)


def test_figures_come_from_the_votes() -> None:
    text = text_of(drum("1"), VOTES)
    assert "1,000 ballots were read." in text
    assert "The least represented candidate is south, the first choice of 10: the share α is 1 %." in text
    rows = [line for line in text.splitlines() if line.startswith("| Theorem")]
    assert [row.split(" | ")[3] for row in rows] == ["0.69215", "0.094311", "0.69315", "0.095311"]
    assert all(" | yes | " in row for row in rows)
    assert math.log(2000 / 1001) == pytest.approx(0.69215, abs=1e-5)
    assert math.log(1100 / 1001) == pytest.approx(0.094311, abs=1e-5)
    assert math.log(1.1) == pytest.approx(0.095311, abs=1e-5)
    # this plan: one dummy vote for each
    law = [Fraction(n + 1, 1003) for _, n in VOTES]
    apart = sum(abs(p - Fraction(n, 1000)) for p, (_, n) in zip(law, VOTES, strict=True)) / 2
    assert f"This plan is {float(apart):.4g} from random dictatorship without noise" in text
    assert "| south | 10 | 0.01 | 0.010967 |" in text


def test_conditions_that_do_not_hold() -> None:
    text = text_of(drum("1"), [("north", 7), ("east", 3)])
    assert "the share α is 0 %" in text
    assert "| Theorem 1 (ii) | one voter more | no | none |" in text
    assert "has no bound" in text
    assert "The plan is for 1,000 voters" in text


def test_rankings_and_other_rules() -> None:
    ballots = [(("tuna", "egg", "squid", "shrimp"), 5), (("egg", "tuna", "shrimp", "squid"), 3)]
    text = text_of(plan("sushi"), ballots)
    assert "| Candidate | First choices | Random dictatorship | The lottery without dummy tickets | This plan |" in text
    assert "8 ballots were read." in text
    assert "from plurality without noise" in text_of(plan("lunch"), VOTES)


def test_nobody_voted() -> None:
    assert "0 ballots were read." in text_of(drum("1"), [])


def test_other_plans_have_no_votes() -> None:
    with pytest.raises(ValueError, match="no winner by lot"):
        report(plan("commuting"), VOTES)


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    # plans made by hand: the report is what is tested here, not whether they verify
    monkeypatch.setattr("privspec.plan.Plan.verified", lambda plan: plan)
    plan, ballots = tmp_path / "seat.plan.json", tmp_path / "ballots.csv"
    drawn = make_lottery_plan(alternatives=["north", "east", "south"], voters=1000, dummy_votes="1")
    seat = drum("1") | {key: drawn[key] for key in ("problem", "mechanism")}
    plan.write_text(json.dumps(seat), encoding="utf-8")
    lines = "".join(f"{name},{count}\n" for name, count in VOTES)
    ballots.write_text(f"choice,count\n{lines}", encoding="utf-8")
    return str(plan), str(ballots)


def test_the_command_prints_it(files: tuple[str, str]) -> None:
    plan, ballots = files
    result = CliRunner().invoke(app, ["explain", plan, "--profile", f"vote={ballots}"])
    assert result.exit_code == 0, result.output
    assert "Do not publish this report" in result.output
    assert "the share α is 1 %" in result.output


def test_the_command_writes_markdown_only(files: tuple[str, str], tmp_path: Path) -> None:
    plan, ballots = files
    out = tmp_path / "private.md"
    assert run_command_line(["explain", plan, "--profile", f"vote={ballots}", "-o", str(out)]) == 0
    assert "Do not publish this report" in out.read_text(encoding="utf-8")
    page = tmp_path / "private.html"
    assert run_command_line(["explain", plan, "--profile", f"vote={ballots}", "-o", str(page)]) == 2
    assert not page.exists()


def test_it_is_not_for_the_public(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    plan, ballots = files
    assert run_command_line(["explain", plan, "--for", "public", "--profile", f"vote={ballots}"]) == 2
    error = capsys.readouterr()
    assert "not for the public" in error.err
    assert "600" not in error.out + error.err


def test_plans_without_votes_refuse(files: tuple[str, str], tmp_path: Path) -> None:
    from privspec.plan import Plan as Found
    from privspec.profiles import profile_text

    other = tmp_path / "commuting.plan.json"
    other.write_text(json.dumps(plan("commuting")), encoding="utf-8")
    with pytest.raises(UsageError, match="draws no winner by lot"):
        profile_text(Found.read(other), {"answer": files[1]})


def test_ballots_that_are_none_show_nothing(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    plan, ballots = files
    Path(ballots).write_text("choice,count\nnorth,3\nsecretword,4\n", encoding="utf-8")
    assert run_command_line(["explain", plan, "--profile", f"vote={ballots}"]) == 0
    assert "secretword" not in "".join(capsys.readouterr())


def test_without_a_profile_the_public_page_is_the_default(tmp_path: Path) -> None:
    path = tmp_path / "poll.plan.json"
    path.write_text(solve(Request(Source("poll.priv", SPECS["quick_poll"]))).to_json(), encoding="utf-8")
    result = CliRunner().invoke(app, ["explain", str(path)])
    assert "What this release can reveal about you" in result.output
