"""Lies in votes of any size: which rules reward them, and what is the best of the rules that do not."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, combinations_with_replacement, permutations, product
from typing import Any

import pytest

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.families.decision import Infeasible
from privspec.families.family import compiler_of
from privspec.families.voting import profiles as priced
from privspec.families.voting.plans import gain
from privspec.families.voting.rules import RULES
from privspec.kernel.voting import SCOPES
from privspec.manual import template_text
from privspec.pipeline import Request, solve
from privspec.plan import Plan
from privspec.problem.voting import points_of
from tests.families.tables import compiled
from tests.families.voting import VOTES_MISSED, WORST, decided, model_of, rule, system_of, vote

REPLACING = "O is 0.5-DP wrt vote, replacing one voter"
ADDING = "O is 0.5-DP wrt vote, adding or removing one voter"
SHARES = "E[ total_variation(O, random_dictator(vote)) ]"
AGREES = "E[ mismatch(O, random_dictator(vote)) ]"
PLACES = {2: "{a, b}", 3: "{a, b, c}", 4: "{a, b, c, d}"}
UNIFORM = "vote ~ uniform"
EVERY_RULE, SCOPE = SCOPES["walk"], SCOPES["strategy-proof"]


def no_lies(bound: str = "0", options: str = "") -> str:
    return f"accuracy:\n  manipulation(O, vote) <= {bound}" + (f"\noptions:\n  {options}" if options else "")


def truthful(loss: str = WORST, **more: Any) -> Any:
    settings = {"privacy": REPLACING, "extra": no_lies()} | more
    return decided(vote(loss, **settings))


# --- what a lie brings ----------------------------------------------------------------------------


@pytest.mark.parametrize("ballots", ["{a, b, c}", "{a, b}", "ranking of {a, b, c}", "partial_ranking({a, b, c}, 2)"])
@pytest.mark.parametrize("voters", [1, 2, 3, 6])
def test_gains_are_below_those_of_all_lies(ballots: str, voters: int) -> None:
    """Every profile, every true order and every lie; for rules that are proved to reward none, nothing."""
    loss = WORST if ballots.startswith("{") else "worst[ total_variation(O, borda_lottery(vote)) ]"
    extra = "options:\n  noise family dictator"
    system = system_of(vote(loss, ballots=ballots, voters=voters, privacy=REPLACING, extra=extra))
    domain = model_of(vote(loss, ballots=ballots, privacy=REPLACING, extra=extra)).nodes["vote"].domain
    assert domain is not None
    points = points_of(system.votes.ballots)
    cast = list(domain.elements())
    none = (Fraction(0),) * len(system.votes.ballots.alternatives)
    ballots_of_others = combinations_with_replacement([points.of(ballot) for ballot in cast], voters - 1)
    others = {tuple(map(sum, zip(none, *given, strict=True))) for given in ballots_of_others}
    for each in RULES:
        draw = each.calibrate(system.promises[0].task, Fraction(1))
        if isinstance(draw, str):
            continue
        found, most = gain(system, draw), Fraction(0)
        law = lru_cache(maxsize=None)(draw.lottery.law)
        names = system.votes.ballots.alternatives
        for given, order in product(others, permutations(range(len(names)))):
            true = points.of([names[a] for a in order[: system.votes.ballots.places]])
            honest = law(tuple(a + b for a, b in zip(given, true, strict=True)))
            for lie in cast:
                lying = law(tuple(a + b for a, b in zip(given, points.of(lie), strict=True)))
                most = max(most, *accumulate(lying[a] - honest[a] for a in order))
        assert found.value <= most
        if not found.at_least:
            assert most == 0
        elif voters > 2:
            assert found.value > 0


def test_rules_that_reward_lies_are_out_with_the_case() -> None:
    decision = truthful(voters=10**6)
    assert decision.chosen.rule.family == "dictator"
    for family in ("permute_and_flip", "exponential", "randomised_winner"):
        one = rule(decision, family)
        assert not one.admissible
        assert one.reason.startswith("it misses line 12, as a lie can pay (at least 0.")
        assert "raises the probability of" in one.reason
    assert rule(decision, "local_dictator").admissible
    (line,) = decision.decided().document()["accuracy"]
    assert line == {"line": 12, "text": "manipulation(O, vote) <= 0", "value": 0.0, "bound": 0.0}


def test_a_bound_that_nobody_can_check_is_not_met() -> None:
    """The exponential mechanism gains 0.06 by the lies that are tried, and perhaps more."""
    decision = truthful(extra=no_lies("0.1"))
    one = rule(decision, "exponential")
    assert not one.admissible
    assert one.reason.startswith("it is not known to meet line 12")
    assert one.unsure is not None
    with pytest.raises(SpecError) as caught:
        truthful("worst[ mismatch(O, plurality(vote)) ]", extra=no_lies("0.1", "noise family exponential"))
    (found,) = caught.value.diagnostics
    assert found.code == "PS0523" and "with dummy votes no lie pays" in str(found.help)
    missed = truthful("worst[ mismatch(O, plurality(vote)) ]", extra=no_lies("0.01", "noise family exponential"))
    assert isinstance(missed, Infeasible)
    assert "as a lie can pay" in missed.reason
    assert [change.change for change in missed.relaxations] == [
        "allow `noise family dictator`: with dummy votes no lie pays"
    ]


def test_lies_with_a_distance_and_a_chosen_epsilon() -> None:
    text = vote(
        "epsilon",
        choose="choose epsilon in [0.01, 5]",
        privacy="O is epsilon-DP wrt vote, replacing one voter",
        extra=f"{no_lies()}\n  {WORST} <= 0.01",
    )
    decision = decided(text)
    assert decision.decided().loss == pytest.approx(math.log1p(1.97 / 10), rel=1e-12)
    plan = Plan(decision.decided().document())
    assert plan.verify().ok
    assert plan.document["status"] == "optimal"
    assert plan.document["loss"]["among"] == SCOPE
    assert [line["value"] for line in plan.document["accuracy"]] == [0.0, 0.01]


@pytest.mark.parametrize(
    ("privacy", "line", "proved"),
    [
        ("O is epsilon-DP wrt vote, replacing up to 2 voters", f"2 * {WORST} + 1 <= 1.1", True),
        ("O is epsilon-DP wrt vote, replacing one voter", f"{WORST} <= 0.05\n  {WORST} <= 0.1", True),
        ("O is epsilon-DP wrt vote, adding or removing one voter", f"{WORST} <= 0.05", False),
    ],
)
def test_the_least_epsilon_of_all_strategy_proof_rules(privacy: str, line: str, proved: bool) -> None:
    extra = f"{no_lies()}\n  {line}"
    decision = decided(vote("epsilon", voters=100, choose="choose epsilon in [0.01, 5]", privacy=privacy, extra=extra))
    plan = Plan(decision.decided().document())
    assert plan.verify().ok, str(plan.verify())
    assert (decision.bound.scope == SCOPE) == proved
    assert (plan.document["status"] == "optimal") == proved


@pytest.mark.parametrize("line", ["manipulation(O, vote) + 0.1 <= 0.2", "manipulation(winner, vote) <= 0"])
def test_lies_about_something_else_are_refused(line: str) -> None:
    text = vote("worst[ total_variation(O, winner) ]", privacy=REPLACING, extra=f"accuracy:\n  {line}")
    text = text.replace("loss:", "background:\n  winner = random_dictator(vote)\nloss:")
    text = text.replace("  output O", "  intermediate winner\n  output O")
    with pytest.raises(SpecError) as caught:
        decided(text)
    (found,) = caught.value.diagnostics
    assert found.code == "PS0501" and "by itself" in found.message


# --- the best rule under which none pays ----------------------------------------------------------


@pytest.mark.parametrize(("m", "voters"), [(3, 1), (3, 2), (3, 3), (3, 6), (4, 1), (4, 2), (4, 3)])
@pytest.mark.parametrize("loss", [WORST, SHARES, AGREES, f"E[ {VOTES_MISSED} ]", f"worst[ {VOTES_MISSED} ]"])
def test_tables_find_nothing_better(m: int, voters: int, loss: str) -> None:
    """The linear program over all tables of few voters, which knows nothing of dummy votes."""
    background = UNIFORM if loss.startswith("E") else ""
    common = {"ballots": PLACES[m], "voters": voters, "privacy": REPLACING, "background": background}
    lottery = truthful(loss, **common, extra=no_lies("0", "noise family dictator"))
    table = compiled(vote(loss, **common, extra=no_lies()))
    alone = loss == WORST and voters == 1  # then no rule at all is better
    assert lottery.bound is not None and lottery.bound.scope == (EVERY_RULE if alone else SCOPE)
    assert lottery.decided().lower_bound == pytest.approx(table.loss, abs=2e-9)
    assert lottery.decided().document()["status"] == "optimal"


def test_with_two_places_there_are_better_rules() -> None:
    common = {"ballots": PLACES[2], "voters": 6, "privacy": REPLACING}
    lottery = truthful(**common, extra=no_lies("0", "noise family dictator, local_dictator"))
    table = compiled(vote(**common, extra=no_lies()))
    assert table.loss < 0.9 * lottery.decided().loss
    assert lottery.bound is not None and lottery.bound.scope == EVERY_RULE
    assert lottery.decided().lower_bound <= table.loss
    assert lottery.decided().document()["status"] == "feasible"


@pytest.mark.parametrize("voters", [1000, 10**6])
@pytest.mark.parametrize("group", [1, 3])
def test_the_bound_of_dummy_votes(voters: int, group: int) -> None:
    relation = "one voter" if group == 1 else "up to 3 voters"
    decision = truthful(f"2 * {WORST} + 1", voters=voters, privacy=f"O is 0.5-DP wrt vote, replacing {relation}")
    k = group / math.expm1(0.5)
    assert decision.decided().lower_bound == pytest.approx(1 + 4 * k / (voters + 3 * k), rel=1e-12)
    plan = decision.decided().document()
    assert plan["status"] == "optimal"
    assert plan["claims"] == {"bound": {"form": "strategy-proof"}}
    assert plan["loss"]["among"] == SCOPE
    assert Plan(plan).verify().ok


def test_the_strictest_of_several_requirements() -> None:
    both = (
        f"{REPLACING}\n  O is 0.1-DP wrt vote, replacing one voter\n  O is 3-DP wrt vote, adding or removing one voter"
    )
    decision = truthful(privacy=both)
    k = 1 / math.expm1(0.1)
    assert decision.decided().lower_bound == pytest.approx(2 * k / (1000 + 3 * k), rel=1e-12)
    assert Plan(decision.decided().document()).verify().ok


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy": ADDING},
        {"extra": no_lies("0.01")},
        {"extra": ""},
        {"privacy": "O is (0.5, 1e-6)-DP wrt vote, replacing one voter"},
        {"loss": "worst[ total_variation(O, borda_lottery(vote)) ]", "ballots": "ranking of {a, b, c}"},
        {"ballots": "ranking of {a, b, c}"},
        {"loss": "worst[ mismatch(O, plurality(vote)) ]"},
        {"loss": "E[ total_variation(O, plurality(vote)) ]", "background": UNIFORM, "voters": 30},
        {"loss": SHARES, "background": "vote ~ categorical([2, 1, 1])", "voters": 30},
        {"loss": f"{WORST} - 0.5 * {SHARES}", "background": UNIFORM, "voters": 30},
    ],
)
def test_where_nothing_is_claimed(changes: dict[str, Any]) -> None:
    extra = {"extra": no_lies("0", "noise family dictator, local_dictator"), "voters": 1000} | changes
    decision = truthful(**extra)
    assert decision.bound is None or decision.bound.scope == EVERY_RULE
    assert decision.decided().document()["status"] == "feasible"


def test_for_large_epsilon_no_rule_at_all_is_better() -> None:
    for epsilon in (20, 50):
        decision = truthful(privacy=f"O is {epsilon}-DP wrt vote, replacing one voter")
        assert decision.bound is not None and decision.bound.scope == EVERY_RULE
        assert decision.decided().document()["status"] == "optimal"
        assert Plan(decision.decided().document()).verify().ok


def test_averages_over_drawn_votes_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    priced.listed.cache_clear()
    monkeypatch.setattr("privspec.kernel.voting.PROFILES", 10)
    decision = truthful(SHARES, voters=50, background=UNIFORM)
    priced.listed.cache_clear()
    assert decision.bound is None


def test_the_template_is_solved_to_optimality() -> None:
    plan = solve(Request(Source("v.priv", template_text("dp_random_dictatorship_compulsory")))).document
    assert plan["status"] == "optimal"
    assert plan["loss"]["among"] == SCOPE
    assert plan["loss"]["relative_gap"] < 1e-8


# --- rules without a loss -------------------------------------------------------------------------


def test_rules_without_a_loss_stand_apart() -> None:
    plan = solve(Request(Source("v.priv", template_text("random_dictatorship")))).document
    assert all(isinstance(one["loss"], float) for one in plan["alternatives"])
    considered = {one["name"]: one for one in plan["remarks"]["considered"]}
    assert set(considered) >= {"permute-and-flip", "exponential mechanism", "no dummy votes"}
    assert considered["permute-and-flip"]["reason"].startswith("with epsilon = 5 it misses line")
    assert considered["permute-and-flip"]["properties"]["strategy_proof"] is False
    assert "no epsilon allows that" in considered["no dummy votes"]["reason"]
    wide = template_text("random_dictatorship").replace("[0.001, 5]", "[0.001, 12]")
    plan = solve(Request(Source("v.priv", wide))).document
    listed = {one["name"]: one["loss"] for one in plan["alternatives"]}
    # a distance of 2 parts in x + 2, at most 1 %
    assert listed["randomised response, then one report"] == pytest.approx(math.log(198), rel=1e-6)


# --- who takes such a vote ------------------------------------------------------------------------


@pytest.mark.parametrize("line", [f"{WORST} <= 0.3", "manipulation(O, vote) <= 0"])
def test_small_votes_are_tables(line: str) -> None:
    def taken(**changes: Any) -> str:
        return type(compiler_of(model_of(vote(privacy=REPLACING, extra=f"accuracy:\n  {line}", **changes)))).__name__

    assert taken(voters=8) == "Finite"
    assert taken(voters=1000) == "Voting"
