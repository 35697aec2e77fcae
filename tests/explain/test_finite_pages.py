"""Pages of plans that draw from a table: golden files, and what holds of every page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest

from privspec.explain.document import Status
from privspec.explain.reports import READERS, plain

from . import finite_plans
from .finite_plans import commuting, counting, fair_report, kilometres, places, single_outputs, two_counts
from .judged import explain, facts, plan_html, summary
from .plans import Plan
from .test_html import outline
from .test_pages import NUMBER, WORDING, _texts

GOLDEN = Path(__file__).parent / "golden"
PLANS: dict[str, Callable[[], Plan]] = {
    make.__name__: make for make in (commuting, counting, kilometres, places, two_counts, single_outputs, fair_report)
}
PAGES = [(name, reader) for name in PLANS for reader in READERS]
FORMATS = ("md", "html", "json")


@lru_cache
def page(name: str, reader: str, form: str) -> str:
    return explain(getattr(finite_plans, name)(), reader, form)


@pytest.mark.parametrize(("name", "reader"), PAGES)
def test_golden(golden: Callable[[Path, str], None], name: str, reader: str) -> None:
    golden(GOLDEN / f"{name}.{reader}.md", explain(PLANS[name]() | {"digest": "0" * 64}, reader))


@pytest.mark.parametrize("width", [100, 60])
@pytest.mark.parametrize("name", PLANS)
def test_golden_summary(golden: Callable[[Path, str], None], name: str, width: int) -> None:
    golden(GOLDEN / f"{name}.summary.{width}.txt", summary(PLANS[name](), width=width, path=f"{name}.plan.json"))


@pytest.mark.parametrize(("name", "reader"), PAGES)
def test_every_number_is_a_fact(name: str, reader: str) -> None:
    plan = PLANS[name]()
    known = {n for text in _texts(plain(facts(plan))) for n in NUMBER.findall(text)}
    known |= set(NUMBER.findall(plan["spec"]["source"])) | WORDING | {"0"}
    texts = [
        text
        for section in json.loads(page(name, reader, "json"))["sections"]
        for block in section["blocks"]
        if block["kind"] != "plot"  # checked in test_finite_drawings
        for text in _texts(block)
    ]
    assert not {n for text in texts for n in NUMBER.findall(text)} - known - {"2020", "3.3"}


@pytest.mark.parametrize(("name", "reader"), PAGES)
@pytest.mark.parametrize("form", FORMATS)
def test_words_that_are_never_used(name: str, reader: str, form: str) -> None:
    text = page(name, reader, form).lower()
    for word in ("anonym", "what was known before", "differentially private", "guaranteed privacy", "cannot describe"):
        assert word not in text


@pytest.mark.parametrize("name", PLANS)
def test_public_pages_are_short_and_have_no_formulas(name: str) -> None:
    text = page(name, "public", "md")
    assert len(text.split()) < 900
    assert not re.search(r"[εδμρΣ√]|e\^|epsilon|delta|sqrt", text)
    assert re.search("compared with not taking part|compares with another (answer|place|value) instead of yours", text)


@pytest.mark.parametrize("name", PLANS)
def test_every_sentence_of_an_auditor_has_status_and_source(name: str) -> None:
    document = json.loads(page(name, "auditor", "json"))
    found = [s for section in document["sections"] for b in section["blocks"] for s in b.get("sentences", ())]
    assert len(found) > 20
    source = PLANS[name]()["spec"]["source"].splitlines()
    notes = Path(__file__).parents[2] / "privspec/noise/notes"
    for sentence in found:
        assert sentence["status"] in {s.value for s in Status}
        for because in sentence["because"]:
            if "line" in because:
                assert because["text"] in source[because["line"] - 1]
            elif "note" in because:
                assert (notes / f"{because['note']}.md").is_file()
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
    plan = commuting()
    evil = "<script>alert(1)</script>"
    plan["mechanism"]["inputs"][0] = plan["mechanism"]["outputs"][0] = evil
    plan["remarks"]["recognised"]["name"] = evil
    text = explain(plan, reader, "html")
    outline(text)
    assert "<script" not in text
    assert "<script" not in plan_html(plan)


@pytest.mark.parametrize("name", PLANS)
def test_notebook_fragment(name: str) -> None:
    fragment = plan_html(PLANS[name]())
    outline(fragment)
    assert "What is drawn" in fragment


def test_facts_of_a_table_are_machine_readable() -> None:
    found = json.loads(page("commuting", "engineer", "json"))["facts"]
    mechanism = found["mechanism"]
    assert mechanism["family"] == found["family"] == "table"
    assert mechanism["rows"]["value"] == mechanism["columns"]["value"] == 4
    assert mechanism["recognised"]["name"] == "k-randomised response"
    assert mechanism["truths"][0]["output"] == "report"
    assert mechanism["errors"][0]["figure"]["value"] == pytest.approx(0.5246, abs=1e-4)
    assert found["claims"][0]["question"]["largest_ratio"]["text"] == "2.72"
    steps = json.loads(page("kilometres", "auditor", "json"))["facts"]["claims"][0]["question"]["steps"]
    assert [step["distance"]["text"] for step in steps] == ["1", "2", "5", "20"]


@pytest.mark.parametrize("change", [{"inputs": []}, {"probabilities": [["1/2", "1/2"]]}, {"prior": ["1"]}])
def test_tables_that_do_not_fit_are_refused(change: dict[str, object]) -> None:
    plan = commuting()
    plan["mechanism"] |= change
    with pytest.raises(ValueError, match=r"the (table|prior) has not one"):
        facts(plan)
