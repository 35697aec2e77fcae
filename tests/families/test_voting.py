"""Votes: which family takes them, which rule is taken and why, the least epsilon, and what plans say."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from privspec.solvers.programs import OutOfTimeError

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.families.decision import Infeasible
from privspec.families.family import compiler_of
from privspec.families.voting import profiles as priced
from privspec.families.voting.profiles import Averages
from privspec.kernel.laws.voting import DUMMY_VOTES, EXPONENTIAL, PERMUTE_AND_FLIP
from privspec.kernel.laws.voting import PLURALITY as MOST_VOTES
from privspec.manual import template_text
from privspec.model.voting import Lottery
from privspec.pipeline import Request, solve
from privspec.plan import Plan
from privspec.problem.voting import beside
from privspec.sweep import sweep_spec
from tests.families.voting import VOTES_MISSED, WORST, decided, model_of, rule, system_of, vote

REPLACING = "O is 0.5-DP wrt vote, replacing one voter"
BORDA = "worst[ total_variation(O, borda_lottery(vote)) ]"
PLURALITY = "worst[ total_variation(O, plurality(vote)) ]"
TWICE = "O is (2 * epsilon)-DP wrt vote, replacing one voter"
PROPERTIES = ("treats_voters_alike", "ex_post_efficient", "strategy_proof")
CHOICE: dict[str, Any] = {
    "loss": "epsilon",
    "choose": "choose epsilon in [0.001, 5]",
    "privacy": "O is epsilon-DP wrt vote, replacing one voter",
}


def solved(text: str) -> Plan:
    return solve(Request(Source("v.priv", text)))


def accuracy(bound: str, left: str = WORST) -> str:
    return f"accuracy:\n  {left} <= {bound}"


# --- who takes a vote -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "family"),
    [
        (vote(), "Voting"),
        (vote(voters=10), "Voting"),
        (vote(voters=10, privacy=REPLACING), "Finite"),
        (vote(voters=1000, privacy=REPLACING), "Voting"),
        (vote(voters=10, privacy=REPLACING, extra="options:\n  noise family dictator"), "Voting"),
        (vote(voters=10, privacy=REPLACING, extra="options:\n  noise family table"), "Finite"),
        (vote(voters=10, privacy=REPLACING, extra="options:\n  noise family dictator, table"), "Finite"),
        (vote(voters=10, privacy=REPLACING, extra="options:\n  trust nobody"), "Voting"),
        (vote(voters=10, extra=accuracy("0.2"), **CHOICE), "Voting"),
        (vote(BORDA, ballots="ranking of {a, b, c, d, e, f, g}", voters=2, privacy=REPLACING), "Voting"),
        (vote(BORDA, ballots="ranking of {a, b, c}", voters=3, privacy=REPLACING), "Finite"),
    ],
)
def test_votes_beyond_tables_are_lotteries(text: str, family: str) -> None:
    assert type(compiler_of(model_of(text))).__name__ == family


def test_votes_of_a_million() -> None:
    for text in (
        vote(voters=10**6),
        vote(f"E[ {VOTES_MISSED} ]", voters=10**6, privacy=REPLACING, background="vote ~ uniform"),
        vote(BORDA, voters=10**6, ballots="ranking of {a, b, c, d}", privacy=REPLACING),
        vote(voters=10**6, extra=accuracy("1e-6"), **CHOICE),
    ):
        started = time.perf_counter()
        model = model_of(text)
        assert type(compiler_of(model)).__name__ == "Voting"
        decided(text).decided().document()
        assert time.perf_counter() - started < 2


# --- rules and their losses -----------------------------------------------------------------------


def test_dummy_votes_win_where_the_worst_distance_counts() -> None:
    decision = decided(vote(voters=1000))
    dummies = 1 / math.expm1(0.5)
    assert decision.chosen.rule.family == "dictator"
    assert float(decision.chosen.draw.number) == pytest.approx(dummies, rel=1e-8)
    assert decision.decided().loss == pytest.approx(2 * dummies / (1000 + 3 * dummies), rel=1e-8)
    assert decision.ranking[0].rule.family == "none"
    assert not rule(decision, "none").admissible


def test_the_figures_of_the_tables() -> None:
    """T = 10, m = 3, epsilon = 1/2: dummy votes .2108, and no rule below .0926 (TABLES.md)."""
    decision = decided(vote(voters=10, privacy=REPLACING, extra="options:\n  noise family dictator, local_dictator"))
    assert round(decision.decided().loss, 4) == 0.2108
    assert round(decision.decided().lower_bound, 4) == 0.0926
    assert all(one.loss.exact for one in decision.ranking)


def test_permute_and_flip_wins_where_the_winner_should_please() -> None:
    text = vote(f"E[ {VOTES_MISSED} ]", voters=50, privacy=REPLACING, background="vote ~ uniform")
    decision = decided(text)
    assert [one.rule.family for one in decision.ranking if one.admissible][:2] == ["permute_and_flip", "exponential"]
    figures = decision.chosen.figures
    assert figures.expected_welfare.value + decision.chosen.loss.value == 1


@pytest.mark.parametrize("loss", [PLURALITY, f"worst[ {VOTES_MISSED} ]", "worst[ mismatch(O, plurality(vote)) ]"])
def test_losses_of_the_winner_are_exact_for_any_number(loss: str) -> None:
    decision = decided(vote(loss, voters=3 * 10**5, privacy=REPLACING))
    assert all(one.loss.exact for one in decision.ranking)
    assert decision.decided().document()["loss"]["kind"] == "worst"


def test_a_sum_of_losses_ranks_by_the_sum() -> None:
    text = vote(f"2 * {WORST} + 0.5 * E[ {VOTES_MISSED} ] + 1", voters=20, background="vote ~ uniform")
    both, first = decided(text), decided(vote(voters=20))
    second = decided(vote(f"E[ {VOTES_MISSED} ]", voters=20, background="vote ~ uniform"))
    for one in both.ranking:
        parts = [rule(d, one.rule.family).loss.value for d in (first, second)]
        assert one.loss.value == 2 * parts[0] + parts[1] / 2 + 1


@pytest.mark.parametrize("options", ["noise family exponential", "noise family permute_and_flip", "trust nobody"])
def test_options_choose_the_rule(options: str) -> None:
    decision = decided(vote(PLURALITY, voters=9, privacy=REPLACING, extra=f"options:\n  {options}"))
    assert decision.chosen.rule.family == options.split()[-1].replace("nobody", "local_dictator")
    plan = Plan(decision.decided().document())
    assert plan.verify().ok


def test_the_strictest_of_several_requirements() -> None:
    text = vote(privacy=f"{REPLACING}\n  O is 0.25-DP wrt vote, adding or removing one voter")
    decision = decided(text)
    assert float(decision.chosen.draw.number) == pytest.approx(1 / math.expm1(0.25), rel=1e-8)
    # one line lets voters come and go: their number is a secret, whatever the others say
    assert decision.decided().document()["problem"]["blocks"][0]["secret"]


def test_a_worst_case_without_an_exact_value() -> None:
    text = vote(privacy=REPLACING, extra="options:\n  noise family exponential, permute_and_flip")
    with pytest.raises(SpecError) as caught:
        decided(text)
    assert [d.code for d in caught.value.diagnostics] == ["PS0523"]


# --- averages -------------------------------------------------------------------------------------


def test_averages_over_all_votes() -> None:
    """Every list of votes, one by one."""
    text = vote(f"E[ {VOTES_MISSED} ]", voters=4, background="vote ~ categorical([5, 3, 2])")
    system = system_of(text)
    lotteries = (Lottery(DUMMY_VOTES), Lottery(MOST_VOTES), Lottery(DUMMY_VOTES))
    forms = ("votes missed", "distance", "distance")
    bodies = [(beside(form, other),) for form, other in zip(forms, lotteries, strict=True)]
    lotteries = [
        Lottery(DUMMY_VOTES, Fraction(1, 2)),
        Lottery(PERMUTE_AND_FLIP, Fraction(3, 2)),
        Lottery(EXPONENTIAL, Fraction(2)),
    ]
    found = Averages(system).of(lotteries, bodies)
    shares = [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]
    for lottery, row in zip(lotteries, found, strict=True):
        for body, estimate in zip(bodies, row, strict=True):
            total = Fraction(0)
            for votes in product(range(3), repeat=4):
                scores = [Fraction(votes.count(a)) for a in range(3)]
                total += math.prod((shares[v] for v in votes), start=Fraction(1)) * body[0].at(
                    lottery.law(scores), scores
                )
            assert abs(estimate.value - total) < Fraction(1, 2**200)


def test_drawn_votes_agree_with_all_votes(monkeypatch: pytest.MonkeyPatch) -> None:
    text = vote(
        f"E[ {VOTES_MISSED} ]",
        voters=50,
        privacy=REPLACING,
        background="vote ~ uniform",
    )
    exact = decided(text)
    priced.listed.cache_clear()
    monkeypatch.setattr("privspec.kernel.voting.PROFILES", 10)
    drawn = decided(text)
    priced.listed.cache_clear()
    assert drawn.chosen.loss.standard_error > 0 and drawn.chosen.loss.profiles == priced.DRAWN
    gap = abs(float(exact.chosen.loss.value - drawn.chosen.loss.value))
    assert gap < 6 * drawn.chosen.loss.standard_error
    assert drawn.decided().document()["loss"]["standard_error"] == drawn.chosen.loss.standard_error


def test_the_same_votes_are_drawn_every_time_and_time_is_limited() -> None:
    text = vote(f"E[ {VOTES_MISSED} ]", voters=10**5, background="vote ~ uniform")
    system = system_of(text)
    body, told = (beside("votes missed", Lottery(DUMMY_VOTES)),), []
    first = Averages(system, None, lambda *step: told.append(step)).of([Lottery(EXPONENTIAL, Fraction(2))], [body])
    again = Averages(system).of([Lottery(EXPONENTIAL, Fraction(2))], [body])
    assert first == again
    assert len(told) == 10
    with pytest.raises(OutOfTimeError):
        Averages(system, deadline=0.0).of([Lottery(EXPONENTIAL, Fraction(2))], [body])


# --- the least epsilon ----------------------------------------------------------------------------


@pytest.mark.parametrize("voters", [10, 1000])
@pytest.mark.parametrize("adding", [False, True])
def test_the_least_epsilon(voters: int, adding: bool) -> None:
    relation = "adding or removing" if adding else "replacing"
    choice = CHOICE | {"privacy": f"O is epsilon-DP wrt vote, {relation} one voter"}
    decision = decided(vote(voters=voters, extra=accuracy("0.01"), **choice))
    dummies = Fraction(voters, 100) / (2 - Fraction(3, 100))
    assert decision.chosen.draw.number == dummies
    assert decision.decided().loss == pytest.approx(math.log1p(1 / dummies), rel=1e-14)
    assert decision.decided().loss >= math.log1p(1 / dummies) * (1 - 1e-15)
    assert decision.decided().lower_bound < decision.decided().loss
    counts = [k for k in range(1, voters + 1) if 2 * (k / voters / 0.01 - 1) > 1]
    walks = [math.log(2 * (k / (voters * 0.01) - 1)) / k for k in counts]
    assert decision.decided().lower_bound == pytest.approx(max(walks) / (2 if adding else 1), rel=1e-9)
    plan = Plan(decision.decided().document())
    assert plan.document["mechanism"]["scalars"] == {"epsilon": str(decision.epsilon)}
    assert plan.verify().ok


def test_the_least_epsilon_of_another_rule() -> None:
    """By bisection: at a near tie others than randomised response of the winner win; on average they miss it less."""
    text = vote(voters=12, extra=accuracy("0.5", "worst[ mismatch(O, plurality(vote)) ]"), **CHOICE)
    families = "options:\n  noise family dictator, permute_and_flip, exponential"
    assert isinstance(decided(text + families), Infeasible)
    decision = decided(text)
    assert decision.chosen.rule.family == "randomised_winner"
    assert decision.decided().loss == pytest.approx(math.log(2), rel=1e-9)
    average = accuracy("0.35", "E[ mismatch(O, plurality(vote)) ]")
    decision = decided(vote(voters=12, background="vote ~ uniform", extra=average, **CHOICE))
    assert decision.chosen.rule.family == "permute_and_flip"
    (reached,) = decision.chosen.limits
    assert Fraction(34, 100) < reached.value <= Fraction(35, 100)
    assert Plan(decision.decided().document()).verify().ok


def test_a_range_that_begins_higher_than_needed() -> None:
    choice = CHOICE | {"choose": "choose epsilon in [2, 5]"}
    decision = decided(vote(extra=accuracy("0.01"), **choice))
    assert decision.decided().loss == 2


def test_no_epsilon_is_enough_for_the_votes_alone() -> None:
    found = decided(vote(extra=accuracy("0"), **CHOICE))
    assert isinstance(found, Infeasible)
    assert found.reason.startswith("no epsilon is enough: a vote for an alternative that nobody else chose reveals")
    assert [line.text.split()[0] for line in found.conflicts] == ["worst[", "O"]
    works = [r for r in found.relaxations if r.works]
    vain = [r for r in found.relaxations if not r.works]
    assert len(works) == 1 and "at epsilon = 5" in works[0].change
    again = decided(vote(extra=accuracy(works[0].change.split()[4].rstrip(",")), **CHOICE))
    assert again.decided().loss == pytest.approx(5, rel=1e-3)
    assert "no epsilon is enough" in vain[0].change
    assert all("no guarantee" in r.change and "depends on the votes" in r.change for r in vain[1:])
    assert len(vain) == 3


def test_an_epsilon_beyond_the_range() -> None:
    choice = CHOICE | {"choose": "choose epsilon in [0.01, 0.1]"}
    found = decided(vote(extra=accuracy("0.01"), **choice))
    assert isinstance(found, Infeasible)
    assert len(found.conflicts) == 3
    assert any("epsilon of 0.1798" in r.change for r in found.relaxations)


def test_an_accuracy_line_with_a_fixed_epsilon() -> None:
    assert decided(vote(extra=accuracy("0.01"))).chosen.rule.family == "dictator"
    found = decided(vote(extra=accuracy("0.001")))
    assert isinstance(found, Infeasible)
    assert "misses line" in found.reason


def test_options_that_leave_no_rule() -> None:
    found = decided(vote(extra="options:\n  trust nobody"))
    assert isinstance(found, Infeasible)
    assert any("replacing one voter" in r.change for r in found.relaxations)
    other = decided(vote(extra="options:\n  noise family gaussian, dictator\n  trust nobody", privacy=REPLACING))
    assert isinstance(other, Infeasible)
    assert len(other.conflicts) == 3


# --- what cannot be computed ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        (vote(output="output O in {north, east}"), "PS0519", 6),
        (vote(f"{WORST} + E[ mismatch(O, vote[1]) ]", background="vote ~ uniform"), "PS0520", 10),
        (vote(f"{WORST} + {BORDA}", ballots="ranking of {a, b, c}"), "PS0520", 8),
        (vote(privacy="O is 1-zCDP wrt vote, adding or removing one voter"), "PS0521", 10),
        (vote(privacy="O is 1-DP wrt vote, adding or removing one entry"), "PS0521", 10),
        (vote(**(CHOICE | {"loss": f"epsilon + {WORST}"})), "PS0524", 9),
        (
            vote(extra=accuracy("0.1"), **(CHOICE | {"privacy": TWICE})),
            "PS0524",
            11,
        ),
    ],
)
def test_refusals_say_where(text: str, code: str, line: int) -> None:
    with pytest.raises(SpecError) as caught:
        decided(text)
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert model_of(text).source.position(found.labels[0].span.start)[0] == line


BESIDE_PLURALITY = accuracy("0.9", "E[ mismatch(O, plurality(vote)) ]")


def test_the_winner_turned_misses_plurality_alike_everywhere() -> None:
    """Profiles are too many to list: of the other rules nobody can tell whether they meet the line."""
    decision = decided(vote(extra=BESIDE_PLURALITY, background="vote ~ uniform"))
    assert decision.chosen.rule.family == "randomised_winner" and decision.chosen.limits[0].exact


@pytest.mark.parametrize(
    "text",
    [
        vote(extra=f"{BESIDE_PLURALITY}\noptions:\n  noise family exponential", background="vote ~ uniform"),
        vote(PLURALITY, privacy=REPLACING, extra=f"{accuracy('0.9')}\noptions:\n  noise family exponential"),
    ],
)
def test_what_nobody_can_tell_is_no_contradiction(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        decided(text)
    (found,) = caught.value.diagnostics
    assert found.code == "PS0523"
    assert "<=" in model_of(text).source.slice(found.labels[0].span)


def test_too_many_kinds_of_ballots_to_read_a_model() -> None:
    text = vote("E[ total_variation(O, borda_lottery(vote)) ]", ballots="ranking of 1..8", background="vote ~ uniform")
    with pytest.raises(SpecError) as caught:
        decided(text.replace("1..8", "{a, b, c, d, e, f, g, h}"))
    assert [d.code for d in caught.value.diagnostics] == ["PS0522"]


# --- plans ----------------------------------------------------------------------------------------


def test_a_plan_says_what_holds_and_what_the_paper_says() -> None:
    text = template_text("dp_random_dictatorship").replace("= 0.5", "= 0.69315").replace("T = 1000", "T = 10")
    plan = solved(text).document
    remarks = plan["remarks"]
    assert plan["problem"]["blocks"][0]["secret"]
    assert remarks["compared"] == "random_dictator"
    assert [p["name"] for p in remarks["properties"]] == list(PROPERTIES)
    (remark,) = remarks["paper"]
    assert remark["quantity"] == "epsilon of Lemma 1 at T = 10"
    assert remark["says"] == pytest.approx(math.log(2 * 13 / 14), abs=1e-4)
    assert remark["holds"] == pytest.approx(math.log(2), abs=1e-4)
    assert all(item["status"] in ("assumed", "proved", "asserted by the user") for item in plan["assumptions"])
    for other in plan["alternatives"]:
        assert set(other["figures"]["properties"]) == set(PROPERTIES)
        assert other["rule"]["family"]
        assert other["reason"]


def test_a_chosen_epsilon_stands_in_the_guarantee() -> None:
    plan = solved(template_text("random_dictatorship")).document
    (guarantee,) = plan["guarantees"]
    assert guarantee["epsilon"] == guarantee["achieved"]["epsilon"] == "0.179818426575837"
    (line,) = plan["accuracy"]
    assert (line["value"], line["bound"]) == (0.01, 0.01)


@pytest.mark.parametrize("name", ["random_dictatorship", "borda_lottery", "private_plurality"])
def test_templates_are_solved_with_other_numbers(name: str) -> None:
    text = template_text(name)
    for voters in ("46", "2000") if name == "private_plurality" else ("100", "12345"):
        start = text.index("T = ")
        changed = text[:start] + f"T = {voters}" + text[start:].lstrip("T= 0123456789")
        assert solved(changed.replace("#", "  #")).verify().ok


def test_a_sweep_over_epsilon() -> None:
    rows = sweep_spec(Request(Source("v.priv", template_text("dp_random_dictatorship"))), "epsilon", ("0.1", "1", "2"))
    losses = [row.loss for row in rows]
    assert all(loss is not None for loss in losses)
    assert losses == sorted(losses, reverse=True)  # type: ignore[type-var]
    assert {row.mechanism for row in rows} == {"dummy votes"}
