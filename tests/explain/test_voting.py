"""What holds of the pages of plans that draw a winner by lot."""

from __future__ import annotations

import json
import re

import pytest

from privspec import Problem
from privspec.explain.reports import READERS
from privspec.explain.summary import infeasible_text

from .plans import drum, explain, facts, page, plan, plan_html, words
from .test_html import outline


@pytest.mark.parametrize("reader", READERS)
def test_labels_cannot_inject(reader: str) -> None:
    found = plan("council_seat")
    evil = "<script>alert(1)</script>"
    found["problem"]["blocks"][0]["ballots"]["alternatives"][0] = found["alternatives"][0]["name"] = evil
    found["remarks"]["paper"] = [{"quantity": evil, "says": "0.6931", "holds": "0.7", "text": evil}]
    found["remarks"]["properties"][1]["counterexample"] = evil
    text = explain(found, reader, "html")
    outline(text)
    assert "<script" not in text
    assert "<script" not in plan_html(found)


# --- numbers come from the plan -------------------------------------------------------------------


def test_more_dummy_votes_change_the_words() -> None:
    one, three = (explain(drum(k), "public") for k in ("1", "3"))
    assert "1 dummy ticket is added for every candidate" in one
    assert "3 dummy tickets are added for every candidate" in three
    assert "one of 1,009 tickets" in words(drum("3"))
    assert "one of 200,000/197" not in words(drum("1000/197"))
    assert "k = 5.07614 (exactly 1000/197) dummy votes" in explain(drum("1000/197"), "auditor")
    assert "(parts of a ticket count)" in explain(drum("3/2"), "public")


def test_fewer_voters_change_the_odds() -> None:
    assert "at least 49 of 100" in explain(drum("1"), "public")
    few = explain(drum("1", 1), "public")
    # 1 ticket of 4 moves: (1 - 1/4) / 2
    assert "at least 37 of 100" in few
    assert "at most 63 of 100" in few


def test_the_lottery_says_what_it_keeps() -> None:
    text = words(plan("lunch"))
    assert "treats all voters alike · not ex-post efficient · not strategy-proof" in text
    assert re.search(r"[\d.]+ % of voters, on average", text)
    assert re.search(r"Expected loss 0.635[5-7] ± 0.00\d+  ?\(", text)
    assert "a vote other than the true one does better" in page("lunch", "public")
    assert "The best you can do is to" in page("council_seat", "public")


def test_epsilon_as_the_loss_is_a_price() -> None:
    found = plan("council_seat")
    found["loss"] |= {"expression": "epsilon", "value": 0.6931}
    assert "Privacy spent ε = 0.6931" in words(found)


def test_guarantees_of_one_round() -> None:
    public = page("nine_rounds", "public")
    assert "There are 9 votes like this one; the odds above are for one of them. Each vote in which" in public
    one = facts(plan("nine_rounds")).claims[0].shown
    assert one is not None
    last = re.search(r"After all of them, at least (\d+) of 100", public)
    assert last is not None
    assert int(last[1]) < one.odds.without
    assert "together ε 0.7; 9 of them fit the budget" in page("nine_rounds", "engineer")


def test_as_many_rounds_as_possible() -> None:
    found = plan("nine_rounds")
    assert "Votes that fit 9, the most of all rules compared" in words(found)
    found["loss"]["lower_bound"] = -31.0
    assert "compared; no rule at all has more than 31" in words(found)


# --- the rules compared ---------------------------------------------------------------------------


def test_rules_are_compared() -> None:
    (flip,) = [a for a in plan("council_seat")["alternatives"] if a["name"] == "permute-and-flip"]
    for reader in ("auditor", "engineer"):
        text = page("council_seat", reader)
        assert "| Rule | Treats all voters alike | Ex-post efficient | Strategy-proof |" in text
        assert f"| permute-and-flip | {'at least ' * flip.get('at_least', False)}{flip['loss']:.4f}"[:-1] in text
        assert "| permute-and-flip | yes | no | no |" in text
        assert "For example, one voter who likes north better than east: east wins with probability" in text
    assert "Rules compared" not in page("council_seat", "public")


def test_distortions_say_from_what() -> None:
    found = plan("lunch")
    found["remarks"]["figures"]["worst_distortion"] = 0.6
    for compared, said in (("", "the lottery"), ("random_dictator", "random dictatorship")):
        found["remarks"]["compared"] = compared
        text = explain(found, "auditor")
        assert f"at most 0.6 from that of {said} without noise" in text
        assert f"law from that of {said} without noise. Welfare" in text


def test_rules_without_figures_say_so() -> None:
    found, other = plan("council_seat"), {"admissible": False, "reason": "no epsilon"}
    figures = {"epsilon": None, "properties": {"strategy_proof": True}}
    found["alternatives"].append(other | {"name": "no dummy votes", "loss": 0.0, "figures": figures})
    found["alternatives"].append(other | {"name": "a table", "loss": None, "figures": {}})
    text = explain(found, "engineer")
    assert "| no dummy votes (ruled out) | 0 |" + 4 * " not stated |" in text
    assert "| no dummy votes (ruled out) | not stated | not stated | yes |" in text
    assert "a table (ruled out)" in text


def test_tables_for_votes_are_compared_too() -> None:
    found, council = plan("commuting"), plan("council_seat")
    for reader in ("auditor", "engineer"):
        assert "Strategy-proof" not in explain(found, reader)
    found["remarks"]["properties"] = plan("lunch")["remarks"]["properties"]
    found["remarks"]["figures"] = {"worst_distortion": 0.0926}
    found["alternatives"] = council["alternatives"]
    for reader in ("auditor", "engineer"):
        text = explain(found, reader)
        assert "k-randomised response (this plan)" in text
        assert "0.0926" in text
        assert "| exponential mechanism |" in text
        assert "Strategy-proof (no voter gains by casting a ballot that is not the true one): no" in text


# --- the paper ------------------------------------------------------------------------------------


def test_what_the_paper_says_and_what_holds() -> None:
    text = page("landmark", "auditor")
    assert "What the paper says, and what holds" in text
    assert "| 0 | 1.3333 | 1.5 | no |" in text
    assert "| 10 | 1.8462 | 1.8462 | yes |" in text
    assert "| any number | none | 2 |  |" in text
    assert "log 2, at most 0.69315" in text
    assert "by a factor of 1.5, and the lemma allows 4/3" in text
    assert "None of these conditional statements is a privacy guarantee" in text
    assert "paper" not in page("landmark", "public").lower()
    assert "Lemma" not in page("quick_poll", "engineer")


def test_other_numbers_of_dummy_votes_stand_beside_the_papers() -> None:
    found = plan("landmark")
    found["mechanism"]["dummy_votes"] = "1/2"
    text = explain(found, "auditor")
    assert "ε is log 2, at most 0.69315." in text
    assert "- The dummy votes of this plan give log 3, at most 1.0987." in text
    text = explain(drum("3"), "engineer")
    assert "its Lemma 2 is true" in text
    assert "give log 1.3334, at most 0.28769." in text
    assert "The dummy votes of this plan" not in explain(drum("1"), "engineer")


def test_without_noise_no_plan_and_why() -> None:
    found = plan("council_seat")
    infeasible = {k: found[k] for k in ("format", "spec", "digest")} | {
        "status": "infeasible",
        "conflicts": [{"line": 9, "text": "worst[ total_variation(O, winner) ] <= 0"}],
        "reason": "no epsilon is enough",
        "relaxations": [
            {"change": "no epsilon is enough", "line": 10, "loss": None, "works": False},
            {"change": "theorem 2 of Torra 2019, which is no guarantee", "line": None, "loss": None, "works": False},
        ],
    }
    text = explain(infeasible, "auditor")
    assert "No epsilon is enough." in text
    printed = infeasible_text(infeasible)
    assert "What is true nevertheless:\n  theorem 2 of Torra 2019, which is no guarantee" in printed
    assert "What is true without noise" in text
    assert "Theorem 1 (ii) is a conditional statement" in text
    assert "without noise no ε holds" in text


def test_facts_are_machine_readable() -> None:
    mechanism = json.loads(page("council_seat", "engineer", "json"))["facts"]["mechanism"]
    assert mechanism["family"] == "dictator"
    assert mechanism["vote"]["voters"] == 1000
    assert mechanism["rule"]["value"]["value"] == pytest.approx(1)
    assert mechanism["comparison"]["rows"][0]["name"] == "dummy votes"


@pytest.mark.parametrize(
    "change",
    [{"alternatives": ["north"]}, {"points": "approval"}, {"dummy_votes": "many"}, {"base": "2"}],
)
def test_plans_of_another_form_are_refused(change: dict[str, object]) -> None:
    found = plan("council_seat")
    found["mechanism"] |= change
    with pytest.raises(ValueError, match=r"alternatives|points|not an exact number|another number"):
        facts(found)


def test_tables_for_votes_ask_how_one_voted() -> None:
    assert "Could someone tell what you answered?" in page("counting", "public")
    found = plan("counting")
    found["remarks"]["properties"] = plan("lunch")["remarks"]["properties"]
    text = explain(found, "public")
    assert "Could someone tell how you voted?" in text
    assert "accuse at least 26 of 100 people who voted another way" in text
    found["guarantees"][0]["neighbours"] = "adding or removing one voter"
    assert "Could someone tell whether you voted?" in explain(found, "public")


@pytest.mark.parametrize("reader", ["public", "auditor", "engineer"])
def test_ties_of_plurality_stand_on_every_page(reader: str) -> None:
    """Where several are level the loss takes the one declared first, which no reader could know."""
    text = """parties: voter in 1..2
variables:
  input vote[voter] in {north, south}
  output O in {north, south}
loss: worst[ mismatch(O, plurality(vote)) ]
privacy: O is 1-DP wrt vote, replacing one voter
"""
    found = Problem(text).solve()
    expected = {
        "public": "Where several candidates are level, the one that is named first",
        "engineer": "Ties in plurality",
    }
    assert expected.get(reader, "plurality takes, among equals, the one that was declared first") in found.explain(
        reader
    )
    assert "Ties plurality takes, among equals, the one that was declared first" in " ".join(found.summary(100).split())
