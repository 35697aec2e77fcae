"""The pages as texts: golden files, honest numbers, statuses, words that are never used; well-formed HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from privspec.core.diagnostics import UsageError
from privspec.explain.document import Status
from privspec.explain.reports import READERS, plain
from privspec.explain.reports import _explain as unjudged
from privspec.explain.summary import _summary as short

from .plans import LINEAR, SPECS, VOTES, explain, facts, page, plan, plan_html, summary
from .test_html import outline

GOLDEN = Path(__file__).parent / "golden"
NOTES = Path(__file__).parents[2] / "privspec/noise/notes"
PAGES = [(name, reader) for name in SPECS for reader in READERS]
FORMATS = ("md", "html", "json")


@pytest.mark.parametrize(("name", "reader"), PAGES)
def test_golden(golden: Callable[..., None], name: str, reader: str) -> None:
    golden(GOLDEN / f"{name}.{reader}.md", page(name, reader), solved=True)


@pytest.mark.parametrize("width", [100, 60])
@pytest.mark.parametrize("name", SPECS)
def test_golden_summary(golden: Callable[..., None], name: str, width: int) -> None:
    golden(
        GOLDEN / f"{name}.summary.{width}.txt", summary(plan(name), width=width, path=f"{name}.plan.json"), solved=True
    )


NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?(?![\w])")
WORDING = {"100", "256", "1.25", "2", "1", "3", "0", "4", "2020", "3.3", "2019"}
"""Numbers of fixed wording: of 100, SHA-256, the classic calibration, "Guarantee 1 of 3", the years of papers."""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value)


@pytest.mark.parametrize(("name", "reader"), PAGES)
def test_every_number_is_a_fact(name: str, reader: str) -> None:
    """But for plots, which compute further points of the same curves: they are checked with the drawings."""
    known = {n for text in _texts(plain(facts(plan(name)))) for n in NUMBER.findall(text)}
    known |= set(NUMBER.findall(SPECS[name])) | WORDING
    found = json.loads(page(name, reader, "json"))
    graph = set(NUMBER.findall(found["facts"]["graph_words"]))
    blocks = (block for section in found["sections"] for block in section["blocks"] if block["kind"] != "plot")
    unknown = {n for block in blocks for text in _texts(block) for n in NUMBER.findall(text)} - known - graph
    assert not unknown


@pytest.mark.parametrize(("name", "reader"), PAGES)
@pytest.mark.parametrize("form", FORMATS)
def test_words_that_are_never_used(name: str, reader: str, form: str) -> None:
    text = page(name, reader, form).lower()
    for word in ("anonym", "what was known before", "differentially private", "guaranteed privacy", "cannot describe"):
        assert word not in text


@pytest.mark.parametrize("name", SPECS)
def test_public_pages_are_short_and_have_no_formulas(name: str) -> None:
    text = page(name, "public")
    most = 520 if name == "nine_rounds" else 450  # what rounds come to is said besides
    assert 300 <= sum(1 for word in text.split() if re.search(r"\w", word)) <= most
    assert not re.search(r"[εδμρΣ√α@=]|e\^|epsilon|delta|sqrt|\bm k\b|\bO\b|\w_\w|\.priv|\bspec\b", text)
    another = "any other (answer|two (answers|votes|values))|which of two (places|values) is yours"
    assert re.search(f"compared with not (taking part|voting)|{another}", text)
    assert name not in VOTES or "drawn by lot" in text or "changed at random" in text


@pytest.mark.parametrize(("name", "reader"), list(product(SPECS, ("auditor", "engineer"))))
def test_every_sentence_has_status_and_source(name: str, reader: str) -> None:
    document = json.loads(page(name, reader, "json"))
    found = [s for section in document["sections"] for b in section["blocks"] for s in b.get("sentences", ())]
    assert len(found) > (20 if reader == "auditor" else 3)
    source = SPECS[name].splitlines()
    for sentence in found:
        assert sentence["status"] in {s.value for s in Status}
        assert sentence["because"]
        for because in sentence["because"]:
            if "line" in because:
                assert because["text"] in source[because["line"] - 1]
            elif "note" in because:
                assert (NOTES / f"{because['note']}.md").is_file(), because
            else:
                assert because["claim"]


@pytest.mark.parametrize(("name", "reader"), PAGES)
def test_html_is_well_formed_and_needs_nothing(name: str, reader: str) -> None:
    text = page(name, reader, "html")
    outline(text)
    for url in re.findall(r"https?://[^\s\"'<>)]+", text):
        assert url in ("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"), url
    assert not re.search("<script|<link|@import", text)
    svg = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    assert not re.findall(r"#[0-9a-fA-F]{6}", re.sub(r"var\([^)]*\)", "", svg))


@pytest.mark.parametrize("name", SPECS)
def test_notebook_fragment(name: str) -> None:
    fragment = plan_html(plan(name))
    found = outline(fragment)
    assert found.tags[0][0] == "div"
    assert "<html" not in fragment
    assert not [a for _, a in found.tags if "id" in a]
    assert len(fragment) < 40_000


@pytest.mark.parametrize(
    "note", ["gaussian-exact", "post-processing", "laplace", "placement", "group-privacy", "odds", "shares"]
)
def test_notes_have_their_parts(note: str) -> None:
    text = (NOTES / f"{note}.md").read_text("utf-8")
    assert text.startswith("# ")
    for part in ("**Statement", "**Rounding direction.**"):
        assert part in text, part
    assert "Proof" in text
    assert max(len(line) for line in text.splitlines()) < 180


@pytest.mark.parametrize("name", LINEAR)
def test_sections_follow_the_guideline(name: str) -> None:
    text = page(name, "auditor")
    order = [
        "Guarantee",
        "Composition",
        "Trust model",
        "Mechanism and implementation",
        "Data collection",
        "Assumptions",
    ]
    places = [text.index(f"## {heading}") for heading in order]
    assert places == sorted(places)


@pytest.mark.parametrize("name", ["prefix_sums", "council_seat"])
def test_the_auditors_page_can_be_signed(name: str) -> None:
    """First a page with who proved what, when and of which texts, and room to sign; every note named is in the page."""
    first = page(name, "auditor").split("## ")[1]
    for part in ("Kernel and date", "0.1.0, source 0123456789abcdef, 2026-11-30", "Plan (SHA-256)", "Spec (SHA-256)"):
        assert part in first
    assert "| Auditor |  |  |  |" in first
    html = page(name, "auditor", "html")
    linked = set(re.findall(r'<a href="#note-([^"]+)"', html))
    assert linked
    assert linked == set(re.findall(r'<div id="note-([^"]+)"', html))
    for note in linked:
        words = (NOTES / f"{note}.md").read_text("utf-8").split("**Statement")[0].split("\n", 1)[0].removeprefix("# ")
        assert words.replace('"', "&#34;").replace("'", "&#39;") in html


@pytest.mark.parametrize("reader", READERS)
def test_a_guarantee_without_odds_says_what_cannot_be_explained(reader: str) -> None:
    found = plan("histogram")
    found["guarantees"][0] |= {"measure": "personalised epsilon-DP", "epsilon": "1", "achieved": {}}
    assert re.search("cannot|no odds can be given", explain(found, reader))
    for form in FORMATS:
        assert explain(found, reader, form)


@pytest.mark.parametrize("reader", READERS)
def test_infeasible_plans_name_lines_and_changes(reader: str) -> None:
    found = {
        "format": "privspec-plan/3.0",
        "spec": {"name": "tight", "source": "spec tight\nvariables:\n  input x in [0, 1]\n", "path": "tight.priv"},
        "status": "infeasible",
        "conflicts": [{"line": 3, "text": "input x in [0, 1]"}],
        "reason": "nothing fits",
        "relaxations": [{"change": "epsilon 1 -> 2", "line": 3, "loss": 12.5}],
    }
    text = explain(found, reader)
    assert "nothing fits" in text
    assert "12.5" in text


def test_questions_that_have_no_answer() -> None:
    with pytest.raises(UsageError, match="PS0721"):
        explain(plan("histogram"), "martian")
    with pytest.raises(UsageError, match="PS0721"):
        explain(plan("histogram"), "public", "pdf")
    with pytest.raises(UsageError, match="PS0711"):
        explain({"guarantees": [{}]}, "public")


def test_json_carries_facts_and_digest() -> None:
    found = json.loads(page("prefix_sums", "engineer", "json"))
    assert found["format"] == "privspec-explanation/1.0"
    assert found["plan_digest"] == "0" * 64
    assert found["facts"]["loss"]["error"] == {
        "value": pytest.approx(8.8712, abs=1e-4),
        "text": "8.87",
        "rounding": "rounded to the nearest",
    }


def test_markdown_escapes_what_a_spec_says() -> None:
    found = plan("histogram")
    found["spec"]["source"] = found["spec"]["source"].replace("How many", "*<b>* [x](y) How many")
    assert "\\*\\<b>\\* \\[x\\](y)" in explain(found, "public")


@pytest.mark.parametrize("reader", READERS)
def test_nothing_is_called_proved_without_a_report_of_the_kernel(reader: str) -> None:
    found = plan("prefix_sums")
    sections = json.loads(unjudged(found, reader, "json"))["sections"]
    statuses = {s["status"] for section in sections for block in section["blocks"] for s in block.get("sentences", ())}
    assert "proved" not in statuses
    assert "reported by the compiler, not certified" in statuses
    assert "(certified)" not in short(found)
    assert "(certified)" in summary(found)


def test_the_auditors_page_says_how_to_list_what_privacy_rests_on() -> None:
    commands = page("prefix_sums", "auditor").partition("## How to check this report")[2].splitlines()
    assert "privspec verify prefix_sums.plan.json --trusted" in commands
