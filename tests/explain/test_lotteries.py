"""Pages of plans that draw a winner by lot: golden files, and what holds of every page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest

from privspec import Problem
from privspec.explain.document import Status
from privspec.explain.reports import READERS, plain
from privspec.explain.summary import infeasible_text

from . import lottery_plans
from .finite_plans import commuting, counting
from .judged import explain, facts, plan_html, summary
from .lottery_plans import chair, council_seat, kept, landmark, lunch, nine_rounds, quick_poll, sushi
from .plans import Plan
from .test_html import outline
from .test_pages import NUMBER, WORDING, _texts

GOLDEN = Path(__file__).parent / "golden"
PLANS: dict[str, Callable[[], Plan]] = {
    make.__name__: make for make in (council_seat, landmark, sushi, lunch, quick_poll, nine_rounds, chair)
}
PAGES = [(name, reader) for name in PLANS for reader in READERS]
FORMATS = ("md", "html", "json")


@lru_cache
def page(name: str, reader: str, form: str = "md") -> str:
    return explain(getattr(lottery_plans, name)(), reader, form)


@pytest.mark.parametrize(("name", "reader"), PAGES)
def test_golden(golden: Callable[[Path, str], None], name: str, reader: str) -> None:
    golden(GOLDEN / f"{name}.{reader}.md", explain(PLANS[name]() | {"digest": "0" * 64}, reader))


@pytest.mark.parametrize("width", [100, 60])
@pytest.mark.parametrize("name", PLANS)
def test_golden_summary(golden: Callable[[Path, str], None], name: str, width: int) -> None:
    golden(GOLDEN / f"{name}.summary.{width}.txt", summary(PLANS[name](), width=width, path=f"{name}.plan.json"))


FIXED = {"0", "2019", "4"}
"""Numbers of fixed wording besides: the year of the paper."""


@pytest.mark.parametrize(("name", "reader"), PAGES)
def test_every_number_is_a_fact(name: str, reader: str) -> None:
    plan = PLANS[name]()
    known = {n for text in _texts(plain(facts(plan))) for n in NUMBER.findall(text)}
    known |= set(NUMBER.findall(plan["spec"]["source"])) | WORDING | FIXED
    texts = [
        text
        for section in json.loads(page(name, reader, "json"))["sections"]
        for block in section["blocks"]
        if block["kind"] != "plot"  # checked in test_lottery_drawings
        for text in _texts(block)
    ]
    unknown = {n for text in texts for n in NUMBER.findall(text)} - known
    assert not unknown


@pytest.mark.parametrize(("name", "reader"), PAGES)
@pytest.mark.parametrize("form", FORMATS)
def test_words_that_are_never_used(name: str, reader: str, form: str) -> None:
    text = page(name, reader, form).lower()
    for word in ("anonym", "what was known before", "differentially private", "guaranteed privacy", "cannot describe"):
        assert word not in text


@pytest.mark.parametrize("name", PLANS)
def test_public_pages_are_short_and_have_no_formulas(name: str) -> None:
    text = page(name, "public")
    assert len(text.split()) < 950
    assert not re.search(r"[εδμρΣ√α]|e\^|epsilon|delta|sqrt|\bm k\b", text)
    assert re.search("compares with (another vote instead of yours|not voting)", text)
    assert "drawn by lot" in text or "changed at random" in text


@pytest.mark.parametrize("reader", ["auditor", "engineer"])
@pytest.mark.parametrize("name", PLANS)
def test_every_sentence_has_status_and_source(name: str, reader: str) -> None:
    document = json.loads(page(name, reader, "json"))
    found = [s for section in document["sections"] for b in section["blocks"] for s in b.get("sentences", ())]
    assert len(found) > 3
    source = PLANS[name]()["spec"]["source"].splitlines()
    notes = Path(__file__).parents[2] / "privspec/noise/notes"
    for sentence in found:
        assert sentence["status"] in {s.value for s in Status}
        for because in sentence["because"]:
            if "line" in because:
                assert because["text"] in source[because["line"] - 1]
            elif "note" in because:
                assert (notes / f"{because['note']}.md").is_file(), because
            else:
                assert because["claim"]


@pytest.mark.parametrize(("name", "reader"), PAGES)
def test_html_is_well_formed_and_needs_nothing(name: str, reader: str) -> None:
    text = page(name, reader, "html")
    outline(text)
    for url in re.findall(r"https?://[^\s\"'<>)]+", text):
        assert url in ("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"), url
    assert "<script" not in text
    svg = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    assert not re.findall(r"#[0-9a-fA-F]{6}", re.sub(r"var\([^)]*\)", "", svg))


@pytest.mark.parametrize("reader", READERS)
def test_labels_cannot_inject(reader: str) -> None:
    plan = council_seat()
    evil = "<script>alert(1)</script>"
    plan["mechanism"]["alternatives"][0] = plan["alternatives"][0]["name"] = evil
    plan["remarks"]["paper"][0]["quantity"] = plan["remarks"]["properties"][1]["counterexample"] = evil
    text = explain(plan, reader, "html")
    outline(text)
    assert "<script" not in text
    assert "<script" not in plan_html(plan)


# --- numbers come from the plan -------------------------------------------------------------------


def test_more_dummy_votes_change_the_words() -> None:
    one, three = (explain(council_seat(1000, k), "public") for k in ("1", "3"))
    assert "1 dummy ticket for every candidate is in the drum" in one
    assert "3 dummy tickets for every candidate are in the drum" in three
    assert "more than 2 times as likely" in one
    assert "more than 1.334 times as likely" in three
    assert "one of 1,009 tickets" in summary(council_seat(1000, "3"), width=200)
    assert "one of 200,000/197" not in summary(council_seat(1000, "1000/197"), width=200)
    assert "k = 5.07614 (exactly 1000/197) dummy votes" in explain(council_seat(1000, "1000/197"), "auditor")
    assert "(a dummy ticket may count for a part of a ticket)" in explain(council_seat(1000, "3/2"), "public")


def test_fewer_voters_change_the_odds() -> None:
    assert "at least 49 of 100" in explain(council_seat(1000), "public")
    few = explain(council_seat(1), "public")
    # 1 ticket of 4 moves: (1 - 1/4) / 2
    assert "at least 37 of 100" in few
    assert "at most 63 of 100" in few


def test_the_lottery_says_what_it_keeps() -> None:
    text = " ".join(summary(lunch(), width=200).split())
    assert "treats all voters alike · not ex-post efficient · not strategy-proof" in text
    assert "39.7 % of voters" in text
    assert "0.6026 ± 0.0012" in text
    public = explain(lunch(), "public")
    assert "another vote than the true one can serve a voter better" in public
    assert "no other vote serves you better" in explain(council_seat(), "public")


def test_epsilon_as_the_loss_is_a_price() -> None:
    plan = council_seat()
    plan["loss"] |= {"expression": "epsilon", "value": 0.6931}
    assert "Privacy spent ε = 0.6931" in " ".join(summary(plan, width=200).split())


def test_rounds_are_told_together() -> None:
    public, engineer = page("nine_rounds", "public"), page("nine_rounds", "engineer")
    assert "There are 9 votes like this one; the odds above are for all of them together." in public
    assert "| 9 | 9 of 9 |" in public
    assert "9 of them fit the budget" in engineer


def test_guarantees_of_one_round() -> None:
    plan = nine_rounds()
    each = plan["mechanism"]["rounds"]["each"]
    plan["mechanism"]["rounds"] = {"count": 9, "budget": "0.7", "each": each, "fit": 9}
    plan["guarantees"][0]["achieved"]["epsilon"] = each
    public = explain(plan, "public")
    assert "the odds above are for one of them" in public
    one, many = facts(plan).claims[0].shown, facts(nine_rounds()).claims[0].shown
    assert one is not None
    assert many is not None
    assert f"| 1 | 1 of 9 | {one.odds.without_words} | {one.odds.taking_part_words} |" in public
    assert f"| 9 | 9 of 9 | {many.odds.without_words} | {many.odds.taking_part_words} |" in public
    assert one.odds.error.value > many.odds.error.value
    assert "together ε 0.7; 9 of them fit" in " ".join(summary(plan, width=200).split())


def test_as_many_rounds_as_possible() -> None:
    plan = nine_rounds()
    plan["loss"] |= {"expression": "-rounds", "value": -9.0}
    assert "Votes that fit 9, the most of all rules compared" in " ".join(summary(plan, width=200).split())
    bounded = {**plan, "loss": plan["loss"] | {"lower_bound": -31.0}}
    assert "compared; no rule at all has more than 31" in " ".join(summary(bounded, width=200).split())
    for reader in READERS:
        assert explain(plan, reader)


# --- the rules compared ---------------------------------------------------------------------------


def test_rules_are_compared() -> None:
    for reader in ("auditor", "engineer"):
        text = page("council_seat", reader)
        assert "| Rule | Treats all voters alike | Ex-post efficient | Strategy-proof |" in text
        assert "| permute-and-flip | 0.61 | 0.7 | 0.61 | 0.305 | 0.4 |" in text
        assert "| permute-and-flip | yes | no | no |" in text
        assert "For example, one voter who likes north better than east: east wins with probability 1/4." in text
    assert "Rules compared" not in page("council_seat", "public")


def test_distortions_say_from_what() -> None:
    plan = lunch()
    assert "at most 0.6 from that of the lottery without noise" in explain(plan, "auditor")
    plan["remarks"]["compared"] = "random_dictator"
    text = explain(plan, "auditor")
    assert "at most 0.6 from that of random dictatorship without noise" in text
    assert "law from that of random dictatorship without noise, welfare" in text


def test_rules_without_figures_say_so() -> None:
    plan = council_seat()
    plan["alternatives"].append(
        {
            "name": "no dummy votes",
            "loss": 0.0,
            "admissible": False,
            "reason": "no epsilon",
            "figures": {"epsilon": None, "properties": {"strategy_proof": True}},
        }
    )
    plan["alternatives"].append({"name": "a table", "loss": None, "admissible": False, "reason": "", "figures": {}})
    text = explain(plan, "engineer")
    assert "| no dummy votes (ruled out) | 0 |" + 4 * " not stated |" in text
    assert "| no dummy votes (ruled out) | not stated | not stated | yes |" in text
    assert "a table (ruled out)" in text


def test_tables_for_votes_are_compared_too() -> None:
    plan = commuting()
    for reader in ("auditor", "engineer"):
        assert "Strategy-proof" not in explain(plan, reader)
    plan["remarks"]["properties"] = kept("one voter", proof=False)
    plan["remarks"]["figures"] = {"worst_distortion": 0.0926}
    plan["alternatives"] = council_seat()["alternatives"]
    for reader in ("auditor", "engineer"):
        text = explain(plan, reader)
        assert "k-randomised response (this plan)" in text
        assert "0.0926" in text
        assert "| randomised ballots | 0.44 | 0.7 |" in text
        assert "the third gains by ranking squid last" in text


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
    assert "| epsilon of Lemma 1 at T = 10 | 0.6131 | 0.69315 |" in text
    assert "paper" not in page("landmark", "public").lower()
    assert "Lemma" not in page("quick_poll", "engineer")


def test_other_numbers_of_dummy_votes_stand_beside_the_papers() -> None:
    plan = landmark()
    plan["mechanism"]["dummy_votes"] = "1/2"
    text = explain(plan, "auditor")
    assert "ε is log 2, at most 0.69315. The dummy votes of this plan give log 3, at most 1.0987." in text
    text = explain(council_seat(1000, "3"), "engineer")
    assert "its Lemma 2 is true" in text
    assert "give log 1.3334, at most 0.28769." in text
    assert "The dummy votes of this plan" not in page("council_seat", "engineer")


def test_without_noise_no_plan_and_why() -> None:
    plan = council_seat()
    infeasible = {k: plan[k] for k in ("format", "spec", "digest")} | {
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
    assert mechanism["rule"]["value"]["value"] == 1
    assert mechanism["comparison"]["rows"][0]["name"] == "dummy votes"


@pytest.mark.parametrize(
    "change",
    [{"alternatives": ["north"]}, {"points": "approval"}, {"dummy_votes": "many"}, {"alternatives": ["a", "a"]}],
)
def test_plans_of_another_form_are_refused(change: dict[str, object]) -> None:
    plan = council_seat()
    plan["mechanism"] |= change
    with pytest.raises(ValueError, match=r"alternatives|points|not a number"):
        facts(plan)


def test_tables_for_votes_ask_how_one_voted() -> None:
    plan = counting()
    assert "Could someone tell that you took part?" in explain(plan, "public")
    plan["remarks"]["properties"] = kept("one voter")
    text = explain(plan, "public")
    assert "Could someone tell how you voted?" in text
    assert "If you voted another way, at least 26 of 100" in text
    assert "more than 2.72 times as likely" in text
    plan["guarantees"][0]["neighbours"] = "adding or removing one voter"
    assert "Could someone tell whether you voted?" in explain(plan, "public")


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
    plan = Problem(text).solve()
    words = {
        "public": "Where several candidates are level, the one that is named first",
        "engineer": "Ties in plurality",
    }
    assert words.get(reader, "plurality takes, among equals, the one that was declared first") in plan.explain(reader)
    assert "Ties plurality takes, among equals, the one that was declared first" in " ".join(plan.summary(100).split())
