"""Votes: tables that see how often each alternative is named, losses about winners that are drawn, and their proofs."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from math import exp, factorial, prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from privspec.cli import run_command_line
from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.families.decision import Infeasible, sealed
from privspec.families.family import Settings
from privspec.families.tables.family import Finite
from privspec.model.build import load_model
from privspec.model.spaces import order_matters
from privspec.plan import Plan

from .tables import compiled

NAMES = ("north", "east", "south", "west")
SATISFIED = "E[ mean(mismatch(O, vote[voter]) for voter) ]"


def election(voters: int, alternatives: int, epsilon: str, loss: str, background: str = "", **more: str) -> str:
    """A vote by first choices; `more`: output (its domain), variables, accuracy, ballot (its domain)."""
    places = "{" + ", ".join(NAMES[:alternatives]) + "}"
    output = more.get("output", f" in {places}")
    return "\n".join(
        [
            "spec election",
            f"parties: voter in 1..{voters}",
            "variables:",
            f"  input vote[voter] in {more.get('ballot', places)}",
            *(f"  {line}" for line in more.get("variables", "").split("; ") if line),
            f"  output O{output}",
            *(["background:", *(f"  {line}" for line in background.split("; "))] if background else []),
            *([f"accuracy: {more['accuracy']}"] if "accuracy" in more else []),
            f"loss: {loss}",
            f"privacy: O is {epsilon}-DP wrt vote, replacing one voter",
        ]
    )


# --- what each voter thinks of the winner ---------------------------------------------------------


@pytest.mark.parametrize(
    ("voters", "alternatives", "epsilon", "welfare"),
    [(3, 2, "1", 0.6580), (10, 3, "1", 0.4520), (20, 3, "0.5", 0.4022), (8, 4, "1", 0.3772)],
)
def test_welfare_with_votes_at_random(voters: int, alternatives: int, epsilon: str, welfare: float) -> None:
    found = compiled(election(voters, alternatives, epsilon, SATISFIED, "vote ~ uniform"))
    assert 1 - found.loss == pytest.approx(welfare, abs=5.1e-5)
    assert found.block["counted"] == ["vote"]


@pytest.mark.parametrize(
    ("term", "matters"),
    [
        ("mean(mismatch(O, vote[voter]) for voter)", False),
        ("max(mismatch(O, vote[v]) for v in voter)", False),
        ("sum(mean(mismatch(vote[u], vote[v]) for u in voter) * mismatch(O, vote[v]) for v in voter)", False),
        ("mean(mismatch(plurality(vote), vote[voter]) * mismatch(O, vote[voter]) for voter)", False),
        ("mismatch(O, vote[1])", True),
        ("sum(mismatch(O, vote[v]) for v in 1..2)", True),
        ("sum(voter * mismatch(O, vote[voter]) for voter)", True),
        ("sum(mismatch(O, vote[voter]) / voter for voter)", True),
        ("sum(mismatch(O, vote[voter]) * mismatch(vote[1], vote[voter]) for voter)", True),
        ("sum(mismatch(O, vote[voter]) * age[voter] for voter)", True),
        ("sum(sum(mismatch(vote[u], vote[v]) * u for u in voter) * mismatch(O, vote[v]) for v in voter)", True),
    ],
)
def test_who_looks_at_the_order(term: str, matters: bool) -> None:
    text = election(4, 2, "1", f"worst[ {term} ]", variables="input age[voter] in 0..1")
    model = load_model(Source("test.priv", text))
    assert order_matters(model, "vote") is matters


def test_order_is_seen_where_it_is_looked_at() -> None:
    """A voter with twice the weight: rows are lists of votes, and the answer is no worse for it."""
    loss = "E[ (mismatch(O, vote[1]) + sum(mismatch(O, vote[voter]) for voter)) / 4 ]"
    found = compiled(election(3, 2, "1", loss, "vote ~ uniform"))
    assert found.block["counted"] == []
    assert len(found.rows) == 8


# --- how far the winner's law is from that of a lottery -------------------------------------------

WINNER = "winner = random_dictator(vote)"
APART = "worst[ total_variation(O, winner) ]"
NAMED = {"variables": "intermediate winner", "output": ""}


def by_hand(voters: int, alternatives: int, epsilon: float, laws: dict[Any, list[float]], average: bool) -> float:
    """The least average (votes at random) or largest total variation from these laws by tallies, as a plain program."""
    tallies = list(laws)
    entries = len(tallies) * alternatives
    cost = np.zeros(2 * entries + 1)
    left: list[np.ndarray] = []
    right: list[float] = []

    def row(bound: float, **terms: float) -> None:
        left.append(np.zeros(2 * entries + 1))
        for place, value in terms.items():
            left[-1][int(place[1:])] += value
        right.append(bound)

    for k, tally in enumerate(tallies):
        for o in range(alternatives):
            row(laws[tally][o], **{f"_{k * alternatives + o}": 1.0, f"_{entries + k * alternatives + o}": -1.0})
        slacks = [entries + k * alternatives + o for o in range(alternatives)]
        if average:
            chance = factorial(voters) / prod(map(factorial, tally)) / alternatives**voters
            cost[slacks] = chance
        else:
            cost[-1] = 1.0
            row(0.0, **{f"_{s}": 1.0 for s in slacks}, **{f"_{2 * entries}": -1.0})
        for other in tallies:
            if sum(abs(a - b) for a, b in zip(tally, other, strict=True)) == 2:
                j = tallies.index(other)
                for o in range(alternatives):
                    places = {f"_{k * alternatives + o}": 1.0, f"_{j * alternatives + o}": -exp(epsilon)}
                    row(0.0, **places)
    sums = np.zeros((len(tallies), 2 * entries + 1))
    for k in range(len(tallies)):
        sums[k, k * alternatives : (k + 1) * alternatives] = 1.0
    found = linprog(cost, np.array(left), np.array(right), sums, np.ones(len(tallies)), bounds=(0, 1))
    return float(found.fun)


def tallies_of(voters: int, alternatives: int) -> list[tuple[int, ...]]:
    return [t for t in product(range(voters + 1), repeat=alternatives) if sum(t) == voters]


def test_distortion_of_ten_voters() -> None:
    """The best rule misses random dictatorship by .0926 where dummy votes miss it by .2108."""
    found = compiled(election(10, 3, "0.5", APART, WINNER, **NAMED))
    assert found.loss == pytest.approx(0.0926, abs=5e-5)
    assert found.document["loss"]["kind"] == "worst"
    shares = [[Fraction(int(count), 10) for count in row] for row in found.rows]
    gaps = [sum(abs(f - t) for f, t in zip(*laws, strict=True)) / 2 for laws in zip(found.table, shares, strict=True)]
    assert Fraction(found.loss) >= max(gaps) >= Fraction(found.loss) - Fraction(1, 10**15)


LAWS = {
    "random_dictator(vote)": lambda tally: [n / sum(tally) for n in tally],
    "exponential(vote, 3)": lambda tally: [exp(1.5 * n) / sum(exp(1.5 * k) for k in tally) for n in tally],
    "plurality(vote)": lambda tally: [float(o == tally.index(max(tally))) for o in range(len(tally))],
}


@pytest.mark.parametrize("winner", LAWS)
@pytest.mark.parametrize("average", [True, False])
def test_distortion_by_hand(winner: str, average: bool) -> None:
    body = f"total_variation(O, {winner})"
    loss, background = (f"E[ {body} ]", "vote ~ uniform") if average else (f"worst[ {body} ]", "")
    found = compiled(election(4, 3, "1", loss, background, output=""))
    laws = {tally: LAWS[winner](tally) for tally in tallies_of(4, 3)}
    assert found.loss == pytest.approx(by_hand(4, 3, 1.0, laws, average), abs=1e-8)


def test_sums_of_distances_of_laws() -> None:
    """Averages and worst cases together, beside costs; the loss is that of the table and not of its slacks."""
    apart = "total_variation(winner, O)"
    loss = (
        f"E[ 2 * {apart} + mismatch(O, winner) ] + worst[ {apart} / 3 + mean(mismatch(O, vote[v]) for v in voter) ] - 1"
    )
    found = compiled(election(4, 2, "1", loss, f"vote ~ uniform; {WINNER}", variables="intermediate winner"))
    total, most = Fraction(-1), Fraction(0)
    assert found.prior is not None
    for row, law, chance in zip(found.rows, found.table, found.prior, strict=True):
        shares = [Fraction(int(count), 4) for count in row]  # type: ignore[arg-type, union-attr]
        gap = sum(abs(f - t) for f, t in zip(law, shares, strict=True)) / 2
        miss = 1 - sum(f * t for f, t in zip(law, shares, strict=True))
        total += chance * (2 * gap + miss)
        most = max(most, gap / 3 + miss)
    assert Fraction(found.loss) == pytest.approx(total + most, abs=1e-15)


@pytest.mark.parametrize(
    ("ballot", "voters", "winner"),
    [
        ("ranking of {north, east, south}", 2, "borda_lottery(vote)"),
        ("ranking of {north, east, south}", 2, "random_dictator(vote)"),
        ("partial_ranking({north, east, south}, 2)", 2, "borda_lottery(vote)"),
        ("{north, east, south}", 3, "permute_and_flip(vote, 4)"),
    ],
)
def test_distortion_of_other_ballots(ballot: str, voters: int, winner: str) -> None:
    """Never below what any rule misses where one voter decides: p_1 <= e^epsilon p_0, and both miss by d at most."""
    found = compiled(election(voters, 3, "0.5", f"worst[ total_variation(O, {winner}) ]", ballot=ballot, output=""))
    assert found.document["status"] == "optimal"
    assert 0.01 < found.loss < 0.5


def test_the_same_by_the_reference_path() -> None:
    model = load_model(Source("test.priv", election(4, 3, "1", APART, WINNER, **NAMED)))
    losses = []
    for solver in (None, "cvxpy"):
        decision = Finite().decide(model, Finite().lower(model), replace(Settings(), solver=solver))
        assert not isinstance(decision, Infeasible)
        assert decision.lower_bound is not None
        losses += [decision.loss, decision.lower_bound]
    assert max(losses) - min(losses) < 1e-7


@pytest.mark.parametrize(("bound", "least"), [("worst[ {} ] <= 0.12", 0.5), ("E[ {} ] <= 0.055", 0.5)])
def test_distortion_as_accuracy(bound: str, least: float) -> None:
    body = "total_variation(O, random_dictator(vote))"
    text = election(4, 3, "1", SATISFIED, "vote ~ uniform", accuracy=bound.format(body))
    model = load_model(Source("test.priv", text))
    decision = Finite().decide(model, Finite().lower(model), Settings())
    assert not isinstance(decision, Infeasible)
    plan = Plan(json.loads(json.dumps(decision.document())))
    report = plan.verify()
    assert report.ok, [claim.text for claim in report.claims if claim.status == "failed"]
    assert {c.name for c in report.claims if c.status == "not checked"}.isdisjoint({"loss", "accuracy", "optimality"})
    free = compiled(election(4, 3, "1", SATISFIED, "vote ~ uniform"))
    assert decision.loss > free.loss + 1e-4 > least
    assert plan.document["status"] == "optimal"


@pytest.mark.parametrize("winner", ["permute_and_flip(vote, 0.5)", "exponential(vote, 0.5)"])
@pytest.mark.parametrize("loss", ["worst[ {} ]", "E[ 2 * {} ]", "E[ {0} ] + worst[ {0} ]"])
def test_a_rule_that_is_private_enough_is_taken_as_it_is(winner: str, loss: str) -> None:
    """Nothing is lost, exactly."""
    body = f"total_variation(O, {winner})"
    found = compiled(election(4, 3, "0.5", loss.format(body), "vote ~ uniform", output=""))
    assert found.loss == found.lower_bound == 0
    assert found.document["status"] == "optimal"
    assert float(found.achieved()["epsilon"]) <= 0.5


def test_laws_with_many_digits_are_stated_row_by_row() -> None:
    """Chances over a common denominator of their own row: one of all rows would have tens of thousands of digits."""
    found = compiled(election(10, 3, "1", "worst[ total_variation(O, exponential(vote, 1)) ]", output=""))
    assert found.loss == 0
    assert Plan(json.loads(json.dumps(found.document))).verify().ok


def test_numbers_that_the_kernel_does_not_read_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "election.priv"
    spec.write_text(election(30, 2, "1", "worst[ total_variation(O, exponential(vote, 1)) ]", output=""))
    assert run_command_line(["solve", str(spec), "-q"]) == 5
    assert "PS0610" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("loss", "code"),
    [
        ("-E[ total_variation(O, random_dictator(vote)) ]", "PS0502"),
        ("E[ 1 - total_variation(O, random_dictator(vote)) ]", "PS0502"),
        ("E[ total_variation(O, random_dictator(vote))^2 ]", "PS0501"),
        ("E[ mean(total_variation(O, random_dictator(vote)) * mismatch(O, vote[v]) for v in voter) ]", "PS0501"),
    ],
)
def test_distances_of_laws_that_are_not_linear(loss: str, code: str) -> None:
    model = load_model(Source("test.priv", election(3, 2, "1", loss, "vote ~ uniform")))
    with pytest.raises(SpecError) as caught:
        Finite().lower(model)
    assert [d.code for d in caught.value.diagnostics] == [code]


# --- beside the rules of private voting -----------------------------------------------------------


@pytest.mark.parametrize(
    ("voters", "alternatives", "flips", "weights", "dummies", "local"),
    [
        (3, 2, 0.6463, 0.6322, 0.6201, 0.5770),
        (10, 3, 0.4449, 0.4281, 0.3901, 0.3576),
        (8, 4, 0.3626, 0.3446, 0.3226, 0.2782),
    ],
)
def test_rules_beside_a_table(
    voters: int, alternatives: int, flips: float, weights: float, dummies: float, local: float
) -> None:
    found = compiled(election(voters, alternatives, "1", SATISFIED, "vote ~ uniform"))
    others = {one["name"]: one for one in found.document["alternatives"]}
    welfare = {
        "permute-and-flip": flips,
        "exponential mechanism": weights,
        "dummy votes": dummies,
        "randomised response, then one report": local,
    }
    for name, expected in welfare.items():
        assert others[name]["admissible"], name
        assert 1 - others[name]["loss"] == pytest.approx(expected, abs=5.1e-5)
        assert others[name]["figures"]["expected_welfare"] == pytest.approx(expected, abs=5.1e-5)
        assert others[name]["loss"] > found.loss
    assert not others["no dummy votes"]["admissible"]


def test_dummy_votes_beside_the_least_distortion() -> None:
    found = compiled(election(10, 3, "0.5", APART, WINNER, **NAMED))
    (dummies,) = (one for one in found.document["alternatives"] if one["name"] == "dummy votes")
    assert dummies["loss"] == pytest.approx(0.2108, abs=5e-5)
    assert dummies["figures"]["worst_distortion"] == dummies["loss"]
    assert dummies["figures"]["properties"]["strategy_proof"]
    kept = {p["name"]: p for p in found.document["remarks"]["properties"]}
    assert [kept[name]["holds"] for name in ("treats_voters_alike", "ex_post_efficient", "strategy_proof")] == [
        True,
        False,
        False,
    ]
    assert "raises the probability of" in kept["strategy_proof"]["counterexample"]


@pytest.mark.parametrize(("voters", "alternatives"), [(1, 3), (2, 2), (3, 2), (2, 3), (4, 3)])
def test_lies_by_going_through_all(voters: int, alternatives: int) -> None:
    """Every ranking, every profile of the others, every lie, every number of best alternatives."""
    found = compiled(election(voters, alternatives, "1", APART, WINNER, **NAMED))
    names = range(alternatives)
    laws = {tuple(int(n) for n in row): law for row, law in zip(found.rows, found.table, strict=True)}  # type: ignore[union-attr]

    def law(votes: tuple[int, ...]) -> list[Fraction]:
        return laws[tuple(votes.count(a) for a in names)]

    pays = any(
        sum(law((*others, lie))[a] for a in truth[:k]) > sum(law((*others, truth[0]))[a] for a in truth[:k])
        for others in product(names, repeat=voters - 1)
        for truth in permutations(names)
        for lie in names
        for k in names
    )
    kept = {p["name"]: p["holds"] for p in found.document["remarks"]["properties"]}
    assert kept["strategy_proof"] is not pays


def test_distortion_and_welfare_of_a_table() -> None:
    found = compiled(election(6, 3, "1", APART, f"{WINNER}\n  vote ~ uniform", **NAMED))
    mechanism = found.document["remarks"]
    assert mechanism["compared"] == "random_dictator"
    tallies = [tuple(map(int, row)) for row in found.rows]
    weights = [factorial(6) / prod(factorial(n) for n in tally) / 3**6 for tally in tallies]
    laws = [[float(p) for p in law] for law in found.table]
    pairs = list(zip(laws, tallies, strict=True))
    apart = [sum(abs(p - n / 6) for p, n in zip(law, tally, strict=True)) / 2 for law, tally in pairs]
    welfare = [sum(p * n / 6 for p, n in zip(law, tally, strict=True)) for law, tally in pairs]
    assert mechanism["figures"] == {
        "worst_distortion": pytest.approx(max(apart)),
        "mean_distortion": pytest.approx(float(np.dot(weights, apart))),
        "expected_welfare": pytest.approx(float(np.dot(weights, welfare))),
    }


def test_rankings_have_no_properties_of_first_choices() -> None:
    loss = "worst[ total_variation(O, borda_lottery(vote)) ]"
    found = compiled(election(2, 3, "1", loss, ballot="ranking of {north, east, south}", output=""))
    assert not found.document["remarks"]["properties"]
    assert {one["name"] for one in found.document["alternatives"]} >= {"dummy votes"}


# --- lies that may not pay ------------------------------------------------------------------------

TRUTHFUL = "manipulation(O, vote) <= 0"
DICTATOR = "worst[ total_variation(O, random_dictator(vote)) ]"


def rises(found: Any, orders: dict[int, tuple[int, ...]], m: int) -> Fraction:
    """The most that a lie adds to the probability of k best alternatives, by all rankings that fit a ballot."""
    longest = max(map(len, orders.values()))
    laws = {tuple(int(n) for n in row): law for row, law in zip(found.rows, found.table, strict=True)}
    most = Fraction(0)
    for counts, law in laws.items():
        for cast, lie in product(orders, repeat=2):
            if not counts[cast]:
                continue
            after = laws[tuple(n - (k == cast) + (k == lie) for k, n in enumerate(counts))]
            named = orders[cast]
            for truth in permutations(range(m)):
                if truth[: len(named)] == named:
                    for k in range(1, m if len(named) == longest else len(named) + 1):
                        most = max(most, sum((after[a] - law[a] for a in truth[:k]), Fraction(0)))
    return most


@pytest.mark.parametrize(("voters", "alternatives", "epsilon"), [(10, 3, "0.5"), (5, 4, "1"), (3, 3, "2")])
def test_dummy_votes_are_the_best_that_is_strategy_proof(voters: int, alternatives: int, epsilon: str) -> None:
    """From three alternatives on; the compiler finds them by itself."""
    found = compiled(election(voters, alternatives, epsilon, DICTATOR, accuracy=TRUTHFUL, output=""))
    growth = exp(float(epsilon)) - 1
    dummies = 1 / growth
    assert found.loss == pytest.approx((alternatives - 1) * dummies / (voters + alternatives * dummies), abs=1e-9)
    for row, law in zip(found.rows, found.floats, strict=True):
        for count, chance in zip(row, law, strict=True):  # type: ignore[call-overload]
            expected = (int(count) + dummies) / (voters + alternatives * dummies)
            assert chance == pytest.approx(expected, abs=1e-7)
    kept = {p["name"]: p["holds"] for p in found.document["remarks"]["properties"]}
    assert kept["strategy_proof"]
    assert rises(found, {a: (a,) for a in range(alternatives)}, alternatives) == 0
    others = {one["name"]: one for one in found.document["alternatives"]}
    assert others["dummy votes"]["admissible"]
    assert not others["permute-and-flip"]["admissible"]
    assert "misses line" in others["permute-and-flip"]["reason"]


@pytest.mark.parametrize("bound", ["0.01", "0.05", "0.1"])
def test_a_little_manipulation_buys_accuracy(bound: str) -> None:
    """Between the best rule of all and the best that is strategy-proof; the bound is met exactly."""
    found = compiled(election(4, 3, "1", DICTATOR, accuracy=f"manipulation(O, vote) <= {bound}", output=""))
    free = compiled(election(4, 3, "1", DICTATOR, output=""))
    strict = compiled(election(4, 3, "1", DICTATOR, accuracy=TRUTHFUL, output=""))
    assert free.loss - 1e-12 <= found.loss <= strict.loss + 1e-12
    gained = rises(found, {a: (a,) for a in range(3)}, 3)
    assert gained <= Fraction(bound)
    assert gained > Fraction(bound) - Fraction(1, 10**6) or found.loss == pytest.approx(free.loss, abs=1e-9)


@pytest.mark.parametrize(
    ("ballot", "places", "bound", "winner"),
    [
        ("ranking of {north, east, south}", (3,), "0", "borda_lottery"),
        ("ranking of {north, east, south}", (3,), "0.02", "borda_lottery"),
        ("partial_ranking({north, east, south}, 2)", (1, 2), "0", "borda_lottery"),
        ("partial_ranking({north, east, south}, 2)", (1, 2), "0.01", "random_dictator"),
    ],
)
def test_lies_about_rankings(ballot: str, places: tuple[int, ...], bound: str, winner: str) -> None:
    loss = f"worst[ total_variation(O, {winner}(vote)) ]"
    found = compiled(election(2, 3, "1", loss, accuracy=f"manipulation(O, vote) <= {bound}", ballot=ballot, output=""))
    orders = dict(enumerate(order for k in places for order in permutations(range(3), k)))
    assert rises(found, orders, 3) <= Fraction(bound)
    others = {one["name"]: one for one in found.document["alternatives"]}
    assert others["dummy votes"]["admissible"]
    assert found.loss <= others["dummy votes"]["loss"] + 1e-9


def test_bounds_on_lies_that_are_broken_are_found() -> None:
    document = compiled(election(4, 3, "1", DICTATOR, output="")).document
    strict = compiled(election(4, 3, "1", DICTATOR, accuracy=TRUTHFUL, output="")).document
    changed = json.loads(json.dumps(strict))
    del changed["digest"]
    changed["mechanism"]["probabilities"] = document["mechanism"]["probabilities"]
    failed = {claim.name for claim in Plan(sealed(changed)).verify().claims if claim.status == "failed"}
    assert "accuracy" in failed


def test_what_else_may_be_asked_about_lies() -> None:
    """A worst case or an average of it is refused, and so are tables of anything but votes."""
    with pytest.raises(SpecError):
        Finite().lower(load_model(Source("test.priv", election(3, 2, "1", "manipulation(O, vote)"))))
    text = "\n".join(
        [
            *("spec one", "variables:", "  input x in {a, b, c}", "  output O in {a, b, c}"),
            *("accuracy: manipulation(O, x) <= 0", "loss: worst[ mismatch(O, x) ]", "privacy: O is 1-LDP wrt x"),
        ]
    )
    with pytest.raises(SpecError) as caught:
        load_model(Source("test.priv", text))
    assert [d.code for d in caught.value.diagnostics] == ["PS0208"]
