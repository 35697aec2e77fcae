"""Plans of random dictatorship that are run as a joint draw."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from privspec.cli import run_command_line
from privspec.core.diagnostics import BudgetError, DataError, UsageError, VerificationError
from privspec.families.voting.joint_draw import parties
from privspec.families.voting.joint_draw.parties import Voter, joint_draw, read_transcript, shuffled
from privspec.families.voting.joint_draw.terms import Terms
from privspec.kernel.writing import plan_digest
from privspec.noise.samplers import SimulationRandomness
from tests.execute.begun import run

from .voting import make_lottery_plan

BALLOTS = ["north"] * 3 + ["south"] * 2


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "ledger.db", tmp_path / "transcript.json"


def test_a_run_pays_releases_a_winner_and_leaves_a_transcript(paths: tuple[Path, Path], tmp_path: Path) -> None:
    ledger, board = paths
    plan = make_lottery_plan(voters=5)
    release = run(plan, {"vote": BALLOTS}, ledger, tmp_path / "winner.json", joint_draw=board)
    report = read_transcript(board, plan)
    assert report.ok and report.ballots == 5 and report.winner == str(release.outputs["O"])
    assert "0.606136; the last mixer reads the drawn ballot" in release.data_rules[-1]
    assert release.private and release.guarantees and ledger.is_file()
    head = json.loads(board.read_text())["head"]
    assert head["plan_sha256"] == plan["digest"]
    assert head["terms"] == {"alternatives": ["north", "south", "west"], "voters": 5, "dummy_votes": "3/2", "mixers": 2}
    with pytest.raises(BudgetError):
        run(plan, {"vote": BALLOTS}, ledger, joint_draw=board)


def test_rankings_count_by_their_first_place(paths: tuple[Path, Path]) -> None:
    plan = make_lottery_plan(voters=2, ballots="ranking", dummy_votes="0")
    ballots = ["west north south", "west south north"]
    assert str(run(plan, {"vote": ballots}, paths[0], joint_draw=paths[1]).outputs["O"]) == "west"


def test_alternatives_that_are_numbers(paths: tuple[Path, Path]) -> None:
    plan = make_lottery_plan(voters=2, alternatives=["1", "2"], dummy_votes="0")
    assert run(plan, {"vote": [2, 2]}, paths[0], joint_draw=paths[1]).outputs["O"] == 2


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("PS0852", {"voters": None}),
        ("PS0852", {"family": "exponential", "voters": 5}),
        ("PS0852", {"family": "local_dictator", "voters": 5}),
        ("PS0852", {"voters": 5, "ballots": "ranking", "points": "borda"}),
        ("PS0851", {"voters": 4000}),
    ],
)
def test_plans_that_are_refused_cost_nothing(code: str, changes: dict[str, Any], paths: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError) as caught:
        run(make_lottery_plan(**changes), {"vote": BALLOTS}, paths[0], joint_draw=paths[1])
    assert caught.value.diagnostics[0].code == code
    assert not paths[0].exists() and not paths[1].exists()


def test_simulations_and_wrong_numbers_and_unwritable_transcripts_cost_nothing(paths: tuple[Path, Path]) -> None:
    ledger, board = paths
    plan = make_lottery_plan(voters=5)
    with pytest.raises(UsageError, match="PS0851"):
        run(plan, {"vote": BALLOTS}, ledger, randomness=SimulationRandomness(1), joint_draw=board)
    with pytest.raises(DataError, match="PS0811"):
        run(plan, {"vote": BALLOTS[1:]}, ledger, joint_draw=board)
    with pytest.raises(UsageError, match="PS0713"):
        run(plan, {"vote": BALLOTS}, ledger, joint_draw=board.parent / "nowhere" / "transcript.json")
    assert not ledger.exists()


def test_a_void_draw_releases_nothing_and_says_who(
    paths: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class NoReveal(Voter):
        def reveal(self, board: Any) -> None:
            pass

    def with_a_cheater(*given: Any, **more: Any) -> Any:
        return joint_draw(*given, **more, voters={"voter 2": NoReveal})

    monkeypatch.setattr(parties, "joint_draw", with_a_cheater)
    with pytest.raises(VerificationError) as caught:
        run(make_lottery_plan(voters=5), {"vote": BALLOTS}, paths[0], tmp_path / "winner.json", joint_draw=paths[1])
    assert caught.value.diagnostics[0].code == "PS0854"
    assert caught.value.diagnostics[0].notes == ("voter 2 did not post its entry of kind reveal",)
    assert not (tmp_path / "winner.json").exists()
    assert run_command_line(["verify-draw", str(paths[1])]) == 7
    assert "voter 2 did not post" in capsys.readouterr().err


def test_anybody_verifies_a_draw_by_the_command_line(
    paths: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, board = make_lottery_plan(voters=5), paths[1]
    run(plan, {"vote": BALLOTS}, paths[0], joint_draw=board)
    assert run_command_line(["verify-draw", str(board)]) == 0
    shown = capsys.readouterr().out
    # log(1 + 2/3) and log(1 + 5/4 * 2/3), rounded up
    assert "a sound draw of 5 ballots" in shown and "epsilon 0.510826 " in shown and "drawn, 0.606136;" in shown
    assert run_command_line(["verify-draw", str(board), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True
    (tmp_path / "no.json").write_text("[")
    assert run_command_line(["verify-draw", str(tmp_path / "no.json")]) == 7
    assert "PS0855" in capsys.readouterr().err


def test_keys_and_session_come_from_who_verifies(
    paths: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One process can play all voters: what it cannot do is sign with the keys that the voters made known."""
    plan, board = make_lottery_plan(voters=5), paths[1]
    run(plan, {"vote": BALLOTS}, paths[0], joint_draw=board)
    head = json.loads(board.read_text())["head"]
    keys = {name: one["sign"] for part in ("voters", "mixers") for name, one in head[part].items()}

    def verified(keys: Any, *options: str) -> tuple[int, str]:
        given = tmp_path / "keys.json"
        given.write_text(keys if isinstance(keys, str) else json.dumps(keys))
        status = run_command_line(["verify-draw", str(board), "--keys", str(given), *options])
        shown = capsys.readouterr()
        return status, shown.out + shown.err

    assert run_command_line(["verify-draw", str(board)]) == 0
    assert "checked against keys that the transcript itself names" in capsys.readouterr().out
    status, shown = verified(keys, "--session", head["session"])
    assert status == 0 and "the keys given, of all voters and mixers; the session is the one given" in shown
    status, shown = verified({"voters": head["voters"]})
    assert status == 0 and "the transcript itself names those of the mixers" in shown
    assert "the session is the one that the transcript names" in shown
    status, shown = verified(keys | {"voter 6": "0" * 64})
    assert status == 0 and "not in this draw: voter 6" in shown
    # the same terms and names, played by another process
    outcome = joint_draw(Terms(("north", "south", "west"), 5, Fraction(3, 2)), BALLOTS, plan=plan["digest"])
    board.write_text(json.dumps(outcome.transcript))
    assert run_command_line(["verify-draw", str(board)]) == 0
    status, shown = verified(keys)
    assert status == 7 and "voter 1 has a different key from the one given" in shown
    status, shown = verified({name: key for name, key in keys.items() if name != "voter 2"})
    assert status == 7 and "voter 2 has no key" in shown
    assert run_command_line(["verify-draw", str(board), "--session", head["session"]]) == 7
    assert "is of another session" in capsys.readouterr().err
    twice = '{"a": "' + "0" * 64 + '", "a": "' + "1" * 64 + '"}'
    for junk in ("[", "{}", '{"voter 1": "ab"}', '{"voter 1": 3}', twice):
        status, shown = verified(junk)
        assert status == 2 and "PS0856" in shown, junk


def test_a_draw_of_another_plan_is_seen(paths: tuple[Path, Path]) -> None:
    plan = make_lottery_plan(voters=5)
    run(plan, {"vote": BALLOTS}, paths[0], joint_draw=paths[1])
    assert read_transcript(paths[1], plan).ok
    for other in (make_lottery_plan(voters=5, dummy_votes="1"), make_lottery_plan(voters=4)):
        report = read_transcript(paths[1], other)
        assert not report.ok and "not one of this plan" in report.findings[-1].text()
        # nor do the right digest and other terms help
        forged = {**other, "digest": plan_digest(plan)}
        assert not read_transcript(paths[1], forged).ok


def test_voters_are_numbered_in_a_random_order() -> None:
    assert sorted(shuffled(list(range(9)))) == list(range(9))
    found = Counter(tuple(shuffled([0, 1, 2])) for _ in range(1200))
    assert len(found) == 6 and min(found.values()) > 120
