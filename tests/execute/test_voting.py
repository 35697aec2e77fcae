"""Voting: exact draws against exact laws, plans, voters' own reports, the ledger and the command line."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privspec.cli import run_command_line
from privspec.core.diagnostics import BudgetError, DataError, PrivspecError, UsageError
from privspec.core.spans import Source
from privspec.execute.budget import Spend
from privspec.execute.family import Simulation, mechanism_of, simulate
from privspec.execute.ledger import spends_of_plan
from privspec.execute.run import _combine as combine
from privspec.families.voting.execution import Coin, draw, law_in_doubles, report, sampler, weighted
from privspec.kernel.laws.voting import (
    DUMMY_VOTES,
    EXPONENTIAL,
    ONE_REPORT,
    PERMUTE_AND_FLIP,
    PLURALITY,
    TURNED_WINNER,
    VotingRule,
)
from privspec.model.voting import Lottery
from privspec.noise.samplers import SimulationRandomness
from privspec.pipeline import Request, solve
from privspec.profiles import fit_of_plan, fit_of_spec
from tests.execute.begun import execute_plan, run

from .tables import ALARM, chi_square
from .voting import ABC, PARAMETERS, make_lottery_plan

DRAWS = 20_000


def _named(lottery: Lottery) -> str:
    return f"{lottery.rule.name} {lottery.number}"


LOTTERIES: list[Lottery] = [
    Lottery(DUMMY_VOTES),
    Lottery(DUMMY_VOTES, Fraction(1, 2)),
    Lottery(DUMMY_VOTES, Fraction(4657, 3001)),
    Lottery(PLURALITY),
    Lottery(EXPONENTIAL, Fraction(1)),
    Lottery(EXPONENTIAL, Fraction(3, 2)),
    Lottery(EXPONENTIAL, Fraction(2**60 + 3, 2**60)),
    Lottery(PERMUTE_AND_FLIP, Fraction(1)),
    Lottery(PERMUTE_AND_FLIP, Fraction(3, 2)),
    Lottery(PERMUTE_AND_FLIP, Fraction(2**64 + 2**61, 2**64)),
    Lottery(ONE_REPORT, Fraction(1)),
    Lottery(ONE_REPORT, Fraction(5, 2)),
    Lottery(ONE_REPORT, Fraction(2718, 1001)),
    Lottery(TURNED_WINNER, Fraction(1)),
    Lottery(TURNED_WINNER, Fraction(5, 2)),
    Lottery(TURNED_WINNER, Fraction(2**64 + 2**61, 2**64)),
]
SCORES: list[tuple[int, ...]] = [(5, 2, 0), (0, 0, 0), (3, 3, 3), (0, 1, 1, 4, 2), (40, 38)]


def exact(scores: Sequence[int]) -> tuple[Fraction, ...]:
    return tuple(Fraction(score) for score in scores)


def p_value(lottery: Lottery, scores: Sequence[int], seed: int, draws: int = DRAWS) -> float:
    law, randomness = lottery.law(exact(scores)), SimulationRandomness(seed)
    one = sampler(lottery, exact(scores))
    drawn = [one(randomness) for _ in range(draws)]
    return chi_square(np.bincount(drawn, minlength=len(law)), [float(p) for p in law])


@pytest.mark.parametrize("lottery", LOTTERIES, ids=_named)
def test_draws_follow_the_exact_law(lottery: Lottery) -> None:
    for seed, scores in enumerate(SCORES):
        assert p_value(lottery, scores, seed) > ALARM / (len(LOTTERIES) * len(SCORES))


@pytest.mark.parametrize(
    "lottery",
    [Lottery(DUMMY_VOTES, Fraction(1, 3)), Lottery(ONE_REPORT, Fraction(9, 4)), Lottery(TURNED_WINNER, Fraction(9, 4))],
    ids=_named,
)
def test_points_may_be_halves(lottery: Lottery) -> None:
    scores = (Fraction(1, 2), Fraction(9, 2), Fraction(0))
    law, randomness = lottery.law(scores), SimulationRandomness(8)
    one = sampler(lottery, scores)
    drawn = [one(randomness) for _ in range(DRAWS)]
    assert chi_square(np.bincount(drawn, minlength=3), [float(p) for p in law]) > ALARM


def test_halves_have_no_rational_power() -> None:
    with pytest.raises(ValueError, match="whole numbers"):
        draw(Lottery(EXPONENTIAL, Fraction(2)), (Fraction(1, 2), Fraction(1)), SimulationRandomness(1))


def test_a_single_alternative_always_wins() -> None:
    for lottery in LOTTERIES:
        assert {draw(lottery, exact((score,)), SimulationRandomness(1)) for score in (0, 7)} == {0}


def test_every_lottery_can_be_drawn_from() -> None:
    class Other(VotingRule):
        def weights(self, number: Fraction, scores: tuple[Fraction, ...]) -> list[Fraction]:
            return [Fraction(0), number, Fraction(3)]

        def ratio(self, drawn: object, change: object) -> tuple[Fraction, int]:
            return Fraction(1), 1

    randomness = SimulationRandomness(1)
    drawn = [draw(Lottery(Other(), Fraction(1)), exact((1, 2, 0)), randomness) for _ in range(4000)]
    assert 0 not in drawn
    assert abs(drawn.count(1) - 1000) < 5.5 * (4000 * 3 / 16) ** 0.5


@pytest.mark.parametrize("base", [Fraction(1), Fraction(3, 2), Fraction(1001, 1000), Fraction(2**70 + 2**65, 2**70)])
@pytest.mark.parametrize("gap", [0, 1, 3, 40, 700])
def test_powers_as_probabilities(base: Fraction, gap: int) -> None:
    expected, randomness = float(base**-gap), SimulationRandomness(gap)
    hits = sum(Coin.of(base, gap).toss(randomness) for _ in range(4000))
    if expected > 1 - 1e-12:
        assert hits == 4000
    else:
        spread = 5.5 * (4000 * expected * (1 - expected)) ** 0.5 + 5
        assert abs(hits - 4000 * expected) < spread


def test_a_million_points_apart() -> None:
    """Neither of these powers is ever formed: it would have millions of digits."""
    began = time.perf_counter()
    randomness = SimulationRandomness(4)
    scores = exact((10**6, 0, 10**6 - 3))
    for lottery in (
        Lottery(EXPONENTIAL, Fraction(3, 2)),
        Lottery(PERMUTE_AND_FLIP, Fraction(2**64 + 12345, 2**64 - 1) * 2),
    ):
        for _ in range(200):
            assert draw(lottery, scores, randomness) in (0, 2)
    # a base next to 1: the longest way there is
    slow = Lottery(PERMUTE_AND_FLIP, 1 + Fraction(1, 10**6))
    found = [draw(slow, exact((10**6, 0)), randomness) for _ in range(20)]
    assert set(found) <= {0, 1}
    assert time.perf_counter() - began < 20


def test_randomised_response() -> None:
    randomness, ratio = SimulationRandomness(3), Fraction(7, 2)
    for truth in range(4):
        found = np.bincount([report(ratio, truth, 4, randomness) for _ in range(DRAWS)], minlength=4)
        law = [1 / 6.5] * 4
        law[truth] = 3.5 / 6.5
        assert chi_square(found, law) > ALARM
    assert {report(ratio, 0, 1, randomness) for _ in range(20)} == {0}


def test_weights_that_are_all_zero_are_uniform() -> None:
    randomness = SimulationRandomness(3)
    anybody = weighted(exact((0, 0, 0)))
    found = np.bincount([anybody(randomness) for _ in range(3000)], minlength=3)
    assert chi_square(found, [1 / 3] * 3) > ALARM


@pytest.mark.parametrize("lottery", LOTTERIES, ids=_named)
def test_laws_in_doubles(lottery: Lottery) -> None:
    for scores in [*SCORES, tuple(range(12))]:
        ours = law_in_doubles(lottery, exact(scores))
        np.testing.assert_allclose(ours, [float(p) for p in lottery.law(exact(scores))], atol=1e-12)


def test_laws_in_doubles_of_large_elections() -> None:
    for lottery in (Lottery(EXPONENTIAL, Fraction(3, 2)), Lottery(PERMUTE_AND_FLIP, Fraction(3, 2))):
        np.testing.assert_allclose(law_in_doubles(lottery, exact((10**6, 0, 10**6)))[[0, 2]], 0.5)


# --- plans ----------------------------------------------------------------------------------------

VOTES = ["north"] * 5 + ["west"] * 2


@pytest.mark.parametrize("family", PARAMETERS)
def test_plans_draw_what_their_parameters_say(family: str) -> None:
    plan = make_lottery_plan(family)
    mechanism: Any = mechanism_of(plan)
    for seed, votes in enumerate((VOTES, [])):
        law = mechanism.lottery.law(exact([votes.count(word) for word in ABC]))
        for approximate in (False, True):
            drawn = simulate(plan, DRAWS, seed, base={"vote": votes}, approximate=approximate)
            assert drawn.shape == (DRAWS, 1)
            counts = np.bincount(drawn[:, 0].astype(int), minlength=3)
            assert chi_square(counts, [float(p) for p in law]) > ALARM


@pytest.mark.parametrize("family", PARAMETERS)
def test_releases_draw_it_too(family: str) -> None:
    plan = make_lottery_plan(family, voters=7)
    law = mechanism_of(plan).lottery.law(exact((5, 0, 2)))  # type: ignore[attr-defined]
    secret = mechanism_of(plan).read({"vote": VOTES}, _circumstances())
    randomness = SimulationRandomness(11)
    drawn = [str(secret.draw(randomness).outputs["O"]) for _ in range(4000)]
    counts = np.array([drawn.count(word) for word in ABC])
    assert chi_square(counts, [float(p) for p in law]) > ALARM


def _circumstances() -> Any:
    from privspec.execute.family import RunContext

    return RunContext()


def test_simulation_by_default() -> None:
    alone = make_lottery_plan("permute_and_flip", voters=500, base="3/2")
    assert set(simulate(alone, 100, 1)[:, 0]) == {0.0}
    nobody = simulate(make_lottery_plan("permute_and_flip"), 3000, 1)[:, 0].astype(int)
    assert chi_square(np.bincount(nobody, minlength=3), [1 / 3] * 3) > ALARM
    with pytest.raises(UsageError, match="PS0822"):
        simulate(alone, 10**9, 1)
    assert simulate(alone, 10**5, 1, approximate=True).shape == (10**5, 1)


def test_alternatives_that_are_numbers_are_released_as_numbers() -> None:
    plan = make_lottery_plan(alternatives=["10", "20"], dummy_votes="0")
    release = execute_plan(plan, {"vote": [20, 20, "20"]})
    assert release.to_json()["outputs"]["O"]["values"] == [20]
    assert simulate(plan, 3, 1, base={"vote": [20]}).tolist() == [[20.0]] * 3


def test_borda_points_of_rankings() -> None:
    plan = make_lottery_plan("dictator", ballots="partial ranking", points="borda", dummy_votes="1/2")
    votes = ["north south west", "north", "west {south north}"]
    secret: Any = mechanism_of(plan).read({"vote": votes}, _circumstances())
    # 2 + 2 + 1/2, 1 + 1/2 + 1/2, 0 + 1/2 + 2
    assert secret.scores == (Fraction(9, 2), Fraction(2), Fraction(5, 2))
    full = make_lottery_plan("permute_and_flip", ballots="ranking", points="borda")
    whole: Any = mechanism_of(full).read({"vote": votes[:1]}, _circumstances())
    assert whole.scores == exact((2, 1, 0))


def test_places_come_from_the_problem() -> None:
    plan = make_lottery_plan("dictator", voters=2, ballots="partial ranking", places=2, points="borda")
    release = execute_plan(plan, {"vote": ["west north south", "south"]})
    assert "the first 2 places of a longer ranking count" in release.data_rules[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"dummy_votes": "-1"},
        {"dummy_votes": "one"},
        {"points": "approval"},
        {"ballots": "approval"},
        {"alternatives": []},
        {"alternatives": ["a", "a"]},
        {"voters": "some"},
        {"voters": 7},
        {"leaves_out": False},
        {"output": "P"},
        {"alternatives": ["west", "north", "south"]},
        {"family": "none"},
    ],
)
def test_plans_that_are_none(changes: dict[str, Any]) -> None:
    plan = make_lottery_plan("dictator")
    with pytest.raises(UsageError, match="PS0820"):
        mechanism_of({**plan, "mechanism": plan["mechanism"] | changes})


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("permute_and_flip", {"base": "1/2"}),
        ("exponential", {"base": "0"}),
        ("local_dictator", {"ratio": "9/10"}),
        ("randomised_winner", {"ratio": "9/10"}),
    ],
)
def test_parameters_that_are_none(family: str, changes: dict[str, Any]) -> None:
    plan = make_lottery_plan(family)
    with pytest.raises(UsageError, match="PS0820"):
        mechanism_of({**plan, "mechanism": plan["mechanism"] | changes})


def test_reports_of_single_voters_are_first_choices() -> None:
    with pytest.raises(UsageError, match="PS0820"):
        mechanism_of(make_lottery_plan("local_dictator", ballots="ranking", points="borda"))


# --- data, ledger, files --------------------------------------------------------------------------


def test_the_number_of_ballots() -> None:
    public, secret = make_lottery_plan(voters=7), make_lottery_plan()
    for votes in (VOTES[:6], [*VOTES, "north"], []):
        with pytest.raises(DataError, match=f"7 ballots, the data have {len(votes)}"):
            execute_plan(public, {"vote": votes})
        assert execute_plan(secret, {"vote": votes}).outputs["O"].tolist() in ABC
    assert execute_plan(public, {"vote": [*VOTES[:6], "nord"]}).private
    assert execute_plan(secret, {"vote": [*VOTES, "nord"]}).private
    for data in ({}, {"votes": VOTES}, {"vote": VOTES, "x": VOTES}):
        with pytest.raises(DataError, match="PS0801"):
            execute_plan(secret, data)


def test_no_message_shows_a_ballot() -> None:
    plan = make_lottery_plan(voters=2)
    for votes in (["secretword", "north"], {"choice": ["secretword"], "count": ["secretcount"]}, ["secretword"] * 9):
        with pytest.raises(DataError) as caught:
            execute_plan(plan, {"vote": votes}, strict=True)
        assert "secret" not in str(caught.value)


def test_a_run_is_paid_for_once(tmp_path: Path) -> None:
    plan = make_lottery_plan()
    assert spends_of_plan(plan).popitem()[1] == Spend(pure=Fraction(9, 10))
    for name, text in (("a.json", None), ("b.csv", "output,value,")):
        book, votes = tmp_path / f"{name}.db", VOTES if text is None else VOTES[:1] * len(VOTES)
        run(plan, {"vote": votes}, book, tmp_path / name)
        content = (tmp_path / name).read_text()
        if text is None:
            assert json.loads(content)["outputs"]["O"]["values"][0] in ABC
        else:
            assert content.startswith(text)
        with pytest.raises(BudgetError):
            run(plan, {"vote": votes}, book, tmp_path / name, force=True)
    with pytest.raises(UsageError, match="PS0831"):
        run(plan, {"vote": VOTES}, tmp_path / "c.db", tmp_path / "c.npz")
    # what cannot be read costs nothing
    with pytest.raises(DataError):
        run(plan, {"vote": {"choose": ["north"]}}, tmp_path / "d.db")
    assert not (tmp_path / "d.db").exists()


# --- ballots that do not fit, as the problem says ---------------------------------------------------

LINES = {
    "replacing": ("replacing one voter",),
    "adding": ("adding or removing one voter",),
    "mixed": ("adding or removing one voter", "replacing one voter"),
}
READINGS: list[Any] = [
    lambda cast: cast,
    lambda cast: {"choice": cast},
    lambda cast: {"voter": [f"v{i}" for i in range(len(cast))], "choice": cast},
    lambda cast: [{"choice": ballot} for ballot in cast],
]


@pytest.mark.parametrize("lines", LINES)
@pytest.mark.parametrize("misfit", ["nord", "", None, "{north south}", 17])
def test_misfits_are_executed_as_the_problem_says(lines: str, misfit: Any, tmp_path: Path) -> None:
    """Among four ballots for west one is none: the number counted, the release's words, problem and plan agree."""
    privacy = "\n".join(f"  O is 1-DP wrt vote, {line}" for line in LINES[lines])
    text = SPEC.replace("  O is 1-DP wrt vote, adding or removing one voter", privacy).replace("1000000", "4")
    plan = solve(Request(Source("town.priv", text + "  noise family dictator\n")))
    document, cast = plan.document, ["west", "west", misfit, "west"]
    problem = document["problem"]
    drops = problem["data"][0]["rule"] == "drop"
    assert drops is (lines == "adding")
    assert problem["blocks"][0]["secret"] is (lines != "replacing")
    (said,) = [one["text"] for one in document["assumptions"] if "that is no ballot" in one["text"]]
    assert ("is left out" in said, "counts as the first of all ballots" in said) == (drops, not drops)
    wanted = exact((0, 0, 3)) if drops else exact((1, 0, 3))
    for reading in READINGS:
        secret: Any = mechanism_of(document).read({"vote": reading(cast)}, _circumstances())
        assert secret.scores == wanted
        assert secret.rules[0].endswith("is left out" if drops else "counts as north")
    release = plan.run({"vote": cast}, tmp_path / "ledger.db", new_ledger=True)
    assert release.data_rules == secret.rules
    assert fit_of_spec(plan.model(), {"vote": cast}).report() == fit_of_plan(plan, {"vote": cast}).report()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".parquet", ".soi"])
@pytest.mark.parametrize("misfit", ["nord", ""])
def test_a_misfit_does_not_change_a_public_number_of_voters(suffix: str, misfit: str, tmp_path: Path) -> None:
    """By its number alone nobody can tell a file with a ballot that is none: a run takes or refuses both."""
    plan, path = make_lottery_plan(voters=3), tmp_path / f"votes{suffix}"
    for voters, code in ((3, None), (2, "the data have 2"), (4, "the data have 4")):
        for cast in (["west"] * voters, ["west"] * (voters - 1) + [misfit], [misfit] + ["west"] * (voters - 1)):
            _written(path, cast)
            if code is None:
                assert mechanism_of(plan).read({"vote": path}, _circumstances()).rules  # taken
                continue
            with pytest.raises(DataError, match=code):
                execute_plan(plan, {"vote": path})


def _written(path: Path, cast: list[str]) -> None:
    frame = pl.DataFrame({"choice": cast})
    match path.suffix:
        case ".csv":
            path.write_text("\n".join(["choice", *cast]) + "\n")
        case ".tsv":
            path.write_text("\n".join(["voter\tchoice", *(f"{i}\t{one}" for i, one in enumerate(cast))]) + "\n")
        case ".json":
            path.write_text(json.dumps({"vote": cast}))
        case ".parquet":
            frame.write_parquet(path)
        case _:
            names = "".join(f"# ALTERNATIVE NAME {i}: {name}\n" for i, name in enumerate(ABC, 1))
            path.write_text(names + "".join(f"1: {3 if one == 'west' else one or '{1,2}'}\n" for one in cast))


# --- voters' own reports --------------------------------------------------------------------------


def message(plan: dict[str, Any], who: str, vote: str, **more: Any) -> Any:
    book = more.pop("book")
    return run(plan, {"vote": {"voter": ["x", who], "choice": ["south", vote]}}, book, party=who, **more)


def test_reports_of_voters(tmp_path: Path) -> None:
    plan = make_lottery_plan("local_dictator", voters=3, ratio="1000000000000")
    sent = [message(plan, who, vote, book=tmp_path / f"{who}.db") for who, vote in zip("abc", ABC, strict=True)]
    assert [m.to_json()["outputs"]["message"]["values"] for m in sent] == [[word] for word in ABC]
    assert sent[0].to_json()["outputs"]["voter"]["values"] == ["a"]
    winners = {combine(plan, sent).outputs["O"].tolist() for _ in range(100)}
    assert winners == set(ABC)
    for wrong, code in (
        (sent[:2], "PS0811"),
        ([*sent[:2], sent[0]], "PS0842"),
        ([*sent[:2], {"outputs": {}}], "PS0842"),
        ([*sent[:2], sent[2].to_json() | {"format": "privspec-release/1.0"}], "PS0842"),
        ([*sent[:2], sent[2].to_json() | {"outputs": {"voter": ["z"], "message": ["nord"]}}], "PS0842"),
        ([*sent[:2], sent[2].to_json() | {"plan_sha256": "0"}], "PS0843"),
    ):
        with pytest.raises(DataError, match=code):
            combine(plan, wrong)


def test_a_report_follows_randomised_response() -> None:
    plan = make_lottery_plan("local_dictator", voters=3, ratio="5/2")
    one = mechanism_of(plan).of_party("ann")
    assert one.outputs == ("voter", "message")
    secret = one.read({"vote": ["west"]}, _circumstances())
    randomness = SimulationRandomness(5)
    drawn = [str(secret.draw(randomness).outputs["message"][0]) for _ in range(4000)]
    law = [1 / 4.5, 1 / 4.5, 2.5 / 4.5]
    assert chi_square(np.array([drawn.count(word) for word in ABC]), law) > ALARM
    simulated = one.simulate(Simulation(4000, 1, {"vote": ["west"]}))[:, 0].astype(int)
    assert chi_square(np.bincount(simulated, minlength=3), law) > ALARM
    for votes in ([], ["west", "north"], {"voter": ["bob"], "choice": ["north"]}):
        with pytest.raises(DataError, match="PS0811"):
            one.read({"vote": votes}, _circumstances())


@pytest.mark.parametrize("family", ["dictator", "exponential", "permute_and_flip", "randomised_winner"])
def test_only_local_rules_have_reports(family: str) -> None:
    plan = make_lottery_plan(family)
    with pytest.raises(UsageError, match="PS0844"):
        mechanism_of(plan).of_party("ann")
    with pytest.raises(UsageError, match="PS0844"):
        combine(plan, [])


def test_nobody_sent_a_report() -> None:
    plan = make_lottery_plan("local_dictator")
    assert {combine(plan, []).outputs["O"].tolist() for _ in range(100)} == set(ABC)


# --- the command line -----------------------------------------------------------------------------

SPEC = """spec town
parameters:
  A = {north, south, west}
  N = 1000000
parties:
  voter in 1..N
variables:
  input vote[voter] in A
  output O in A
loss:
  worst[ total_variation(O, random_dictator(vote)) ]
privacy:
  O is 1-DP wrt vote, adding or removing one voter
options:
"""


def solved(folder: Path, options: str = "  trust curator\n", **changes: str) -> Path:
    text = SPEC + options
    for old, new in changes.items():
        text = text.replace(old, new)
    (folder / "town.priv").write_text(text)
    assert run_command_line(["solve", str(folder / "town.priv"), "--quiet"]) == 0
    return folder / "town.plan.json"


def test_an_election_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = solved(tmp_path)
    (tmp_path / "town.soi").write_text(
        "# ALTERNATIVE NAME 1: South\n# ALTERNATIVE NAME 2: West\n# ALTERNATIVE NAME 3: North\n900000: 2,{1,3}\n5: 1\n"
    )
    head = ["run", str(plan), "--input", f"vote={tmp_path / 'town.soi'}", "--quiet"]
    assert run_command_line([*head, "--new-ledger", "-o", str(tmp_path / "out.json")]) == 0
    release = json.loads((tmp_path / "out.json").read_text())
    assert release["outputs"]["O"]["values"] == ["west"]
    assert release["private"]
    assert run_command_line(head) == BudgetError.exit_code
    assert "PS1001" in capsys.readouterr().err
    assert run_command_line([*head, "--seed", "1"]) == 0
    assert run_command_line([*head, "--strict", "--ledger", str(tmp_path / "other.db")]) == DataError.exit_code
    found = capsys.readouterr()
    assert "PS0809" in found.err
    assert "row 1 of vote" in found.err


def test_reports_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = solved(tmp_path, "  trust nobody\n", **{"1000000": "2", "adding or removing": "replacing"})
    pl.DataFrame({"voter": ["ann", "bob"], "choice": ["west", "north"]}).write_csv(tmp_path / "votes.csv")
    votes = ["--input", f"vote={tmp_path / 'votes.csv'}", "--quiet"]
    for who in ("ann", "bob"):
        files = ["--new-ledger", "--ledger", str(tmp_path / f"{who}.db"), "-o", str(tmp_path / f"{who}.json")]
        assert run_command_line(["run", str(plan), "--party", who, *votes, *files]) == 0
    messages = [str(tmp_path / f"{who}.json") for who in ("ann", "bob")]
    capsys.readouterr()
    assert run_command_line(["aggregate", str(plan), *messages]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"]["O"]["values"][0] in ABC
    assert run_command_line(["aggregate", str(plan), messages[0]]) == DataError.exit_code
    # all of them at once, by whoever simulates them
    assert run_command_line(["run", str(plan), *votes, "-o", str(tmp_path / "all.csv"), "--seed", "1"]) == 0


def test_a_million_ballots_in_seconds(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    pl.DataFrame({"choice": np.array(ABC)[rng.integers(0, 3, 10**6)]}).write_csv(tmp_path / "votes.csv")
    for family in ("dictator", "permute_and_flip", "exponential", "local_dictator", "randomised_winner"):
        plan = make_lottery_plan(family, voters=10**6)
        began = time.perf_counter()
        assert execute_plan(plan, {"vote": tmp_path / "votes.csv"}).outputs["O"].tolist() in ABC
        assert time.perf_counter() - began < 2


def test_errors_are_diagnostics(tmp_path: Path) -> None:
    plan = make_lottery_plan()
    for name in ("votes.csv", "votes.parquet", "votes.npy", "votes.json", "votes.soi", "votes.csv.gz"):
        (tmp_path / name).write_bytes(b"\x00\xff\xfe{")
        with pytest.raises(PrivspecError):
            execute_plan(plan, {"vote": tmp_path / name})
