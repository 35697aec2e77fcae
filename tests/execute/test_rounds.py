"""Rounds that share a budget: as many as the plan says, or each voter in as many; counted before anything is drawn."""

from __future__ import annotations

import json
import sqlite3
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from privspec.core.diagnostics import BudgetError, DataError, UsageError, VerificationError
from privspec.execute import ledger
from privspec.execute.keeper import DataOwnerReport
from privspec.execute.receipts import participation
from privspec.kernel.writing import plan_digest
from privspec.noise.samplers import SimulationRandomness
from tests.execute.begun import execute_plan, run
from tests.execute.voting import make_lottery_plan
from tests.plans import executed_of

Plan = dict[str, Any]
SECRET = "Ada Lovelace"


def rounds_plan(count: int = 3, *, budget: str = "3", each: str = "1", voters: int | None = None) -> Plan:
    return make_lottery_plan(voters=voters, rounds=(count, budget, each))


def ballots(names: Iterable[str], choice: str = "north") -> dict[str, Any]:
    listed = list(names)
    return {"vote": {"voter": listed, "choice": [choice] * len(listed)}}


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def roll(tmp_path: Path) -> Path:
    return tmp_path / "voters.db"


def counts(roll: Path) -> dict[str, int]:
    with sqlite3.connect(roll) as database:
        return dict(database.execute("SELECT voter, rounds FROM voters").fetchall())


# --- without a list of voters ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "budget", "each"), [(3, "3", "1"), (7, "1", "1/7"), (20, "2", "1/10"), (1, "1", "1")]
)
def test_exactly_so_many_rounds(book: Path, count: int, budget: str, each: str) -> None:
    plan = rounds_plan(count, budget=budget, each=each)
    plan["guarantees"][0]["achieved"]["epsilon"] = "0.01"  # a rule that spends less than its share buys no more rounds
    plan["digest"] = plan_digest(plan)
    for number in range(1, count + 1):
        release = run(plan, {"vote": ["north", "south"]}, book)
        assert release.round == f"{number} of {count}"
        assert release.to_json()["round"] == release.round
    with pytest.raises(BudgetError) as caught:
        run(plan, {"vote": ["north", "south"]}, book)
    (found,) = caught.value.diagnostics
    assert found.code == "PS1001"
    assert f"all {count} rounds of this plan were held: this would be round {count + 1} of {count}" in found.notes
    assert any("--participation" in note for note in found.notes)
    state = ledger.verify(book)
    assert state.debits == count
    assert f"epsilon={float(budget):g} of epsilon={float(budget):g}" in state.describe()


def test_known_number_of_voters(book: Path) -> None:
    plan = rounds_plan(2, budget="2", voters=2)
    assert [run(plan, {"vote": ["north", "south"]}, book).round for _ in range(2)] == ["1 of 2", "2 of 2"]
    with pytest.raises(BudgetError) as caught:
        run(plan, {"vote": ["north", "south"]}, book)
    assert not any("--participation" in note for note in caught.value.diagnostics[0].notes)


def test_table_of_few_voters(book: Path) -> None:
    from privspec.core.spans import Source
    from privspec.pipeline import Request, solve
    from tests.families.test_voting_rounds import given

    privacy = "O is (budget / rounds)-DP wrt vote, replacing one voter"
    text = given(privacy=privacy, voters=2, parameters="  rounds = 2\n")
    votes = {"vote": {"choice": ["north", "south"]}}
    plan = solve(Request(Source("v.priv", text)))
    assert plan.document["mechanism"]["family"] == "table"
    assert plan.run(votes, book, new_ledger=True).round == "1 of 2"
    assert plan.run(votes, book).round == "2 of 2"
    with pytest.raises(BudgetError) as caught:
        plan.run(votes, book)
    assert "round 3 of 2" in "".join(caught.value.diagnostics[0].notes)


def test_budget_of_the_keeper_is_kept(book: Path) -> None:
    ledger.create(book, ["epsilon=2 wrt vote, adding or removing one voter"])
    plan = rounds_plan()
    run(plan, ballots("ab"), book)
    run(plan, ballots("ab"), book)
    with pytest.raises(BudgetError) as caught:
        run(plan, ballots("ab"), book)
    assert "this would be round 3 of 3" in caught.value.diagnostics[0].notes


def test_simulations_are_no_rounds(book: Path, roll: Path) -> None:
    plan = rounds_plan()
    release = run(plan, ballots("ab"), book, randomness=SimulationRandomness(1), participation=roll)
    assert release.round is None
    assert not book.exists()
    run(plan, ballots("ab"), book, participation=roll)
    assert counts(roll) == {"a": 1, "b": 1}


def test_plan_for_one_release_says_nothing_of_rounds(book: Path) -> None:
    release = run(make_lottery_plan(), ballots("ab"), book)
    assert release.round is None
    assert "round" not in release.to_json()


@pytest.mark.parametrize("wrong", [{"count": 4}, {"each": "2"}, {"fit": 4}, {"count": 0}, {"budget": "x"}, {"fit": 0}])
def test_figures_that_do_not_fit_are_refused(wrong: dict[str, Any]) -> None:
    plan = rounds_plan()
    plan["mechanism"]["rounds"] |= wrong
    plan["digest"] = plan_digest(plan)
    with pytest.raises(UsageError) as caught:
        execute_plan(plan, ballots("ab"))
    assert caught.value.diagnostics[0].code == "PS0820"


# --- with a list of voters ------------------------------------------------------------------------


def winners(plan: Plan, votes: dict[str, Any], book: Path, roll: Path, times: int) -> set[str]:
    return {str(run(plan, votes, book, participation=roll)["O"]) for _ in range(times)}


def test_voters_who_took_part_often_enough_are_left_out(book: Path, roll: Path) -> None:
    """Without dummy votes the winner is somebody's vote: after two rounds only the newcomer's counts."""
    plan = rounds_plan(2, budget="2")
    plan["mechanism"]["dummy_votes"] = "0"
    plan["digest"] = plan_digest(plan)
    early = ballots(["a", "b"], "north")
    assert winners(plan, early, book, roll, 2) == {"north"}
    mixed = {"vote": {"voter": ["a", "b", "c"], "choice": ["north", "north", "south"]}}
    assert winners(plan, mixed, book, roll, 2) == {"south"}
    assert counts(roll) == {"a": 2, "b": 2, "c": 2}
    # nobody is left: a round is held all the same, as its refusal would tell
    release = run(plan, mixed, book, participation=roll)
    assert release.round == "5, of which one voter takes part in at most 2"
    assert counts(roll) == {"a": 2, "b": 2, "c": 2}
    state = ledger.verify(book)
    assert state.debits == 1
    assert "5 rounds for one budget, one voter takes part in at most 2" in state.describe()


def test_more_rounds_than_the_plan_counts(book: Path, roll: Path) -> None:
    plan = rounds_plan(2, budget="2")
    for number in range(12):
        run(plan, ballots([f"voter {number}", f"voter {number + 1}"]), book, participation=roll)
    assert max(counts(roll).values()) == 2
    assert len(counts(roll)) == 13


def test_names_are_one_however_they_are_written(book: Path, roll: Path) -> None:
    plan = rounds_plan()
    run(plan, {"vote": {"voter": [7, 8], "choice": ["north", "south"]}}, book, participation=roll)
    run(plan, {"vote": {"voter": [7.0, 8.0], "choice": ["north", "south"]}}, book, participation=roll)
    run(plan, {"vote": {"voter": [" 7 ", "8"], "choice": ["north", "south"]}}, book, participation=roll)
    assert counts(roll) == {"7": 3, "8": 3}


def test_ballot_that_is_none_counts_as_taking_part(book: Path, roll: Path) -> None:
    votes = {"vote": {"voter": ["a", "b"], "choice": ["north", "elsewhere"]}}
    run(rounds_plan(), votes, book, participation=roll)
    assert counts(roll) == {"a": 1, "b": 1}


def test_what_is_refused_does_not_depend_on_who_is_left_out(book: Path, roll: Path) -> None:
    plan = rounds_plan(1, budget="1")
    run(plan, ballots("a"), book, participation=roll)
    # the only ballot that fits is that of somebody who is left out
    votes = {"vote": {"voter": ["a", "b"], "choice": ["north", "elsewhere"]}}
    assert run(plan, votes, book, participation=roll).round is not None


def test_progress_does_not_tell_how_many_were_left_out(book: Path, roll: Path) -> None:
    told: list[Any] = []
    run(rounds_plan(), ballots("abc"), book, participation=roll, progress=lambda *what: told.append(what))
    assert told == []


# --- pays first, and all or nothing ---------------------------------------------------------------


class _Broken(SimulationRandomness):
    """Fails at the first number: a crash in the middle of a draw."""

    private = True

    def below(self, bound: int) -> int:
        raise RuntimeError("power cut")


def test_counted_and_paid_before_the_draw(book: Path, roll: Path) -> None:
    with pytest.raises(RuntimeError):
        run(rounds_plan(), ballots("ab"), book, participation=roll, randomness=_Broken(1))
    assert counts(roll) == {"a": 1, "b": 1}
    assert ledger.show(book).debits == 1
    assert run(rounds_plan(), ballots("ab"), book, participation=roll).round is not None


def test_refused_by_the_ledger_counts_nobody(book: Path, roll: Path) -> None:
    plan = rounds_plan()
    run(plan, ballots("ab"), book)
    with pytest.raises(BudgetError) as caught:
        run(plan, ballots("ab"), book, participation=roll)
    assert any("pays the whole budget with its first round" in note for note in caught.value.diagnostics[0].notes)
    assert counts_or_none(roll) == {}
    assert ledger.verify(book).debits == 1


def counts_or_none(roll: Path) -> dict[str, int]:
    try:
        return counts(roll)
    except sqlite3.OperationalError:
        return {}


def test_ledger_fails_after_the_count_and_nothing_is_drawn(
    book: Path, roll: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between the two files leaves voters counted for a round that was not drawn, never the other way round."""
    plan = rounds_plan()
    run(plan, ballots("ab"), book, participation=roll)
    from privspec.execute.receipts import Participation

    commit = Participation.commit

    def fail(self: Participation) -> None:
        commit(self)
        raise RuntimeError("power cut")

    monkeypatch.setattr(Participation, "commit", fail)
    with pytest.raises(RuntimeError):
        run(plan, ballots("ab"), book, participation=roll)
    monkeypatch.undo()
    assert counts(roll) == {"a": 2, "b": 2}
    assert run(plan, ballots("ab"), book, participation=roll).round == ("3, of which one voter takes part in at most 3")


def test_older_copy_is_refused(book: Path, roll: Path, tmp_path: Path) -> None:
    plan = rounds_plan()
    run(plan, ballots("ab"), book, participation=roll)
    copy = roll.read_bytes()
    run(plan, ballots("ab"), book, participation=roll)
    roll.write_bytes(copy)
    with pytest.raises(UsageError) as caught:
        run(plan, ballots("ab"), book, participation=roll)
    assert caught.value.diagnostics[0].code == "PS0849"
    with pytest.raises(BudgetError):  # nor does a new file begin anew
        run(plan, ballots("ab"), book, participation=tmp_path / "new.db")
    with pytest.raises(BudgetError) as refused:  # nor a round without one
        run(plan, ballots("ab"), book)
    assert any("counted for each voter" in note for note in refused.value.diagnostics[0].notes)


def test_ledger_with_a_round_that_nobody_paid_for(book: Path) -> None:
    run(rounds_plan(), ballots("ab"), book)
    body = {"kind": "round", "plan_sha256": "0", "participation": {"file": "f", "round": 2, "fit": 3}}
    with ledger._transaction(book) as database:
        ledger._append(database, body)
    with pytest.raises(VerificationError) as caught:
        ledger.verify(book)
    assert caught.value.diagnostics[0].code == "PS1005"


def test_two_runs_at_once_wait_for_each_other(roll: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privspec.execute.receipts.WAIT_SECONDS", 0.05)
    rounds = executed_of(rounds_plan()).rounds
    assert rounds is not None
    with participation(roll, "digest", rounds) as first:
        with pytest.raises(UsageError) as caught, participation(roll, "digest", rounds):
            pass
        assert caught.value.diagnostics[0].code == "PS0849"
        first.commit()


def test_file_is_for_its_owner_alone(book: Path, roll: Path) -> None:
    run(rounds_plan(), ballots("ab"), book, participation=roll)
    assert stat.S_IMODE(roll.stat().st_mode) == 0o600


def test_the_keeper_hears_nothing_of_who_is_left_out(book: Path, roll: Path) -> None:
    heard = []
    for _ in range(4):
        keeper = DataOwnerReport()
        votes = {"vote": {"voter": ["a", "b"], "choice": ["north", "nord"]}}
        run(rounds_plan(), votes, book, participation=roll, keeper=keeper)
        heard.append(keeper.report())
    assert heard == [heard[0]] * 4


# --- errors ---------------------------------------------------------------------------------------


def test_one_ballot_a_voter_and_round(book: Path, roll: Path) -> None:
    keeper = DataOwnerReport()
    run(rounds_plan(), ballots([SECRET, "b", SECRET]), book, participation=roll, keeper=keeper)
    assert keeper.brief() == ["vote: 1 of 3 rows are further ballots of a voter, and are left out"]
    assert counts_or_none(roll) == {SECRET: 1, "b": 1}


@pytest.mark.parametrize(
    "votes", [["north", "south"], {"choice": ["north", "south"]}, {"choice": ["north"], "count": [2]}]
)
def test_column_of_voters_is_wanted(book: Path, roll: Path, votes: Any) -> None:
    with pytest.raises(DataError) as caught:
        run(rounds_plan(), {"vote": votes}, book, participation=roll)
    (found,) = caught.value.diagnostics
    assert found.code == "PS0804"
    assert "column voter" in found.message


@pytest.mark.parametrize(
    ("plan", "says"),
    [(make_lottery_plan(), "no rounds share a budget"), (rounds_plan(voters=2), "all voters take part in every round")],
)
def test_plans_without_participants(book: Path, roll: Path, plan: Plan, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(plan, ballots("ab"), book, participation=roll)
    (found,) = caught.value.diagnostics
    assert found.code == "PS0848"
    assert says in found.message


def test_groups_are_not_counted(book: Path, roll: Path) -> None:
    """Three voters who take turns are in three times as many rounds as one of them."""
    plan = rounds_plan()
    plan["guarantees"][0]["neighbours"] = "adding or removing up to 3 voters"
    plan["digest"] = plan_digest(plan)
    with pytest.raises(UsageError) as caught:
        run(plan, ballots("ab"), book, participation=roll)
    assert "several voters together" in caught.value.diagnostics[0].message
    assert run(plan, ballots("ab"), book).round == "1 of 3"


def test_other_files(book: Path, roll: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("this is no database " * 100)
    run(rounds_plan(), ballots("ab"), book, participation=roll)
    other = rounds_plan(6, budget="6")
    for plan, path in ((rounds_plan(), text), (rounds_plan(), book), (other, roll)):
        with pytest.raises(UsageError) as caught:
            run(plan, ballots("ab"), tmp_path / "another ledger.db", participation=path)
        assert caught.value.diagnostics[0].code == "PS0849"


def test_releases_and_ledger_name_nobody(book: Path, roll: Path) -> None:
    release = run(rounds_plan(), ballots([SECRET, "b"]), book, participation=roll)
    assert SECRET not in json.dumps(release.to_json())
    assert SECRET not in json.dumps(ledger.export(book))
