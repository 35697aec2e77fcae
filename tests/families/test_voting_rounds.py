"""Rounds that share a budget: as many as the accuracy lines leave room for, and the lines that stand against any."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from privspec.core.diagnostics import SpecError
from privspec.families.decision import Infeasible
from privspec.problem.voting import rounds_of
from tests.families.voting import WORST, decided, model_of, system_of, vote

ADDING = "O is epsilon-DP wrt vote, adding or removing one voter"


def rounds_spec(
    loss: str = "-rounds",
    *,
    distance: str = "0.1",
    choose: str = "choose rounds in 1..10000",
    budget: str = "2",
    privacy: str = "O is (budget / rounds)-DP wrt vote, adding or removing one voter",
    parameters: str = "",
    voters: int = 40,
    accuracy: bool = True,
    options: str = "noise family dictator",
) -> str:
    limit = f"accuracy:\n  {WORST} <= {distance}\n" if accuracy else ""
    head = f"parameters:\n  budget = {budget}\n{parameters}"
    end = f"options:\n  {options}\n" if options else ""
    return vote(loss, voters=voters, privacy=privacy, choose=choose, extra=head + limit + end)


def plan(text: str) -> dict[str, Any]:
    found: dict[str, Any] = decided(text).decided().document()
    return found


def distance_at(epsilon: float, voters: int) -> float:
    """What dummy votes reach: k = 1 / (e^epsilon - 1), three alternatives."""
    from math import expm1

    k = 1 / expm1(epsilon)
    return 3 * k / (voters + 3 * k) * 2 / 3


@pytest.mark.parametrize(
    ("voters", "distance", "budget"), [(40, 0.1, 2), (40, 0.05, 3), (1000, 0.01, 2), (1000, 0.02, 5), (200, 0.3, 1)]
)
def test_one_round_more_would_miss_the_line(voters: int, distance: float, budget: int) -> None:
    found = plan(rounds_spec(voters=voters, distance=str(distance), budget=str(budget)))
    count = found["mechanism"]["rounds"]["count"]
    assert found["mechanism"]["family"] == "dictator"
    assert distance_at(budget / count, voters) <= distance < distance_at(budget / (count + 1), voters)
    assert found["accuracy"][0]["value"] <= distance
    assert found["loss"]["value"] == -count
    assert found["loss"]["lower_bound"] is not None
    assert found["loss"]["lower_bound"] <= -count
    assert found["loss"]["relative_gap"] == pytest.approx(-found["loss"]["lower_bound"] / count - 1)


def test_plan_says_how_a_round_spends_its_share() -> None:
    found = plan(rounds_spec())
    assert found["mechanism"]["rounds"] == {"count": 5, "budget": "2", "each": "2/5", "fit": 5}
    assert found["mechanism"]["scalars"] == {"rounds": "5"}
    guarantee = found["guarantees"][0]
    assert guarantee["epsilon"] == "0.4"
    assert Fraction(guarantee["achieved"]["epsilon"]) <= Fraction(2, 5)
    assert guarantee["because"][-1] == "repeated-votes"


def test_share_that_is_no_decimal_is_exact() -> None:
    found = plan(rounds_spec(choose="choose rounds in 3..3"))
    assert found["mechanism"]["rounds"]["each"] == "2/3"
    assert found["guarantees"][0]["epsilon"] == "2/3"
    assert Fraction(found["guarantees"][0]["achieved"]["epsilon"]) <= Fraction(2, 3)


@pytest.mark.parametrize("loss", ["-rounds", "-1 * rounds", "rounds * (-1)", "1 / rounds", "-(2 * rounds) / 3"])
def test_ways_to_ask_for_most_rounds(loss: str) -> None:
    found = plan(rounds_spec(loss))
    assert found["mechanism"]["rounds"]["count"] == 5
    expected = {"1 / rounds": Fraction(1, 5), "-(2 * rounds) / 3": Fraction(-10, 3)}.get(loss, Fraction(-5))
    assert found["loss"]["value"] == pytest.approx(float(expected))
    assert found["loss"]["lower_bound"] <= found["loss"]["value"]


def test_range_ends_the_rounds() -> None:
    assert plan(rounds_spec(choose="choose rounds in 2..4"))["mechanism"]["rounds"]["count"] == 4


def test_replacing_one_voter() -> None:
    found = plan(rounds_spec(privacy="O is (budget / rounds)-DP wrt vote, replacing one voter"))
    assert not found["problem"]["blocks"][0]["secret"]
    assert found["mechanism"]["rounds"]["count"] == 5


def test_not_even_one_round() -> None:
    found = decided(rounds_spec(distance="0.001"))
    assert isinstance(found, Infeasible)
    assert found.reason.startswith("not even one round fits")
    assert len(found.conflicts) == 4  # the option among them
    wider, richer = found.relaxations
    assert "allow a distance of 0.007736" in wider.change
    assert "allow a budget of" in richer.change
    # both ways out work
    assert plan(rounds_spec(distance="0.007736"))["mechanism"]["rounds"]["count"] == 1
    budget = richer.change.split()[4]
    assert plan(rounds_spec(distance="0.001", budget=budget))["mechanism"]["rounds"]["count"] == 1


def test_no_distance_at_all() -> None:
    found = decided(rounds_spec(distance="0"))
    assert isinstance(found, Infeasible)
    assert "no epsilon is enough" in found.reason


def test_rule_that_comes_nearer_with_less_epsilon() -> None:
    """In one round the exponential mechanism is plurality, nearly: far from random dictatorship. In more it is not."""
    found = plan(rounds_spec(voters=10, distance="0.2", budget="4", options=""))
    dummies = plan(rounds_spec(voters=10, distance="0.2", budget="4"))
    assert found["mechanism"]["family"] in ("exponential", "permute_and_flip")
    assert found["mechanism"]["rounds"]["count"] > dummies["mechanism"]["rounds"]["count"]
    assert found["accuracy"][0]["value"] <= 0.2
    assert found["loss"]["lower_bound"] <= found["loss"]["value"]


# --- a number that is given -----------------------------------------------------------------------


def given(loss: str = WORST, parameters: str = "  rounds = 20\n", **other: Any) -> str:
    return rounds_spec(loss, choose="", parameters=parameters, accuracy=False, options="", **other)


def test_parameter_that_divides_a_budget() -> None:
    found = plan(given())
    assert found["mechanism"]["rounds"] == {"count": 20, "budget": "2", "each": "1/10", "fit": 20}
    assert found["mechanism"]["scalars"] == {}
    assert found["guarantees"][0]["epsilon"] == "0.1"


@pytest.mark.parametrize(
    "text",
    [
        given(privacy="O is (budget / 20)-DP wrt vote, adding or removing one voter"),
        given(parameters="  rounds = 5 / 2\n"),
        # a number that says something else as well is no number of rounds
        given(f"{WORST} * rounds"),
        given(
            privacy="O is (budget / rounds)-DP wrt vote, adding or removing one voter\n"
            "  O is 0.5-DP wrt vote, adding or removing up to 3 voters"
        ),
    ],
)
def test_other_quotients_are_amounts(text: str) -> None:
    assert rounds_of(model_of(text)) is None
    assert "rounds" not in plan(text)["mechanism"]


# --- what solve cannot choose ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (rounds_spec("rounds"), "as many as fit"),
        (rounds_spec("-1 / rounds"), "as many as fit"),
        (rounds_spec(choose="choose rounds in [1, 20]"), "whole numbers from 1"),
        (rounds_spec(choose="choose rounds in 0..20"), "whole numbers from 1"),
        (
            rounds_spec(
                privacy="O is (budget / rounds)-DP wrt vote, adding or removing one voter\n"
                "  O is 0.5-DP wrt vote, adding or removing up to 3 voters"
            ),
            "in every requirement",
        ),
    ],
)
def test_refusals(text: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        system_of(text)
    (found,) = caught.value.diagnostics
    assert found.code == "PS0525"
    assert says in found.message


def test_a_budget_of_nothing_is_refused_before_its_rounds_are_counted() -> None:
    with pytest.raises(SpecError) as caught:
        system_of(rounds_spec(budget="0"))
    assert [(one.code, one.message) for one in caught.value.diagnostics] == [
        ("PS0304", "epsilon must be positive, not 0")
    ]


def test_table_of_few_voters_says_it_too() -> None:
    from privspec.core.spans import Source
    from privspec.pipeline import Request, solve
    from privspec.plan import Plan
    from tests.plans import mutate

    text = given(privacy="O is (budget / rounds)-DP wrt vote, replacing one voter", voters=3)
    found = dict(solve(Request(Source("v.priv", text))).document)
    assert found["mechanism"]["family"] == "table"
    assert found["mechanism"]["rounds"] == {"count": 20, "budget": "2", "each": "1/10", "fit": 20}
    assert Plan.of(found).verify().ok
    for key, value in (("count", 21), ("budget", "3"), ("each", "1/11"), ("fit", 21)):
        assert not Plan.of(mutate(found, ("mechanism", "rounds", key), value)).verify().ok
    from privspec.explain.reports import _explain as explain

    assert "There are 20 votes like this one; the odds above are for one of them." in explain(found, "public")
    assert "round 21 is refused" in explain(found, "engineer")


def test_least_epsilon_of_a_rule_that_comes_nearer_with_less() -> None:
    """The same for `choose epsilon`: at the end of the range the exponential mechanism misses, below it does not."""
    limit = f"accuracy:\n  {WORST} <= 0.2\n"
    text = vote("epsilon", voters=10, privacy=ADDING, choose="choose epsilon in [0.001, 5]", extra=limit)
    free, dummies = plan(text), plan(f"{text}options:\n  noise family dictator\n")
    assert free["mechanism"]["family"] in ("exponential", "permute_and_flip")
    assert free["loss"]["lower_bound"] <= free["loss"]["value"] < dummies["loss"]["value"]
    assert free["accuracy"][0]["value"] <= 0.2


def test_rounds_that_are_weighed_against_errors_are_compared_one_by_one() -> None:
    with pytest.raises(SpecError) as caught:
        system_of(rounds_spec(f"{WORST} - rounds"))
    assert [found.code for found in caught.value.diagnostics] == ["PS0527"]
