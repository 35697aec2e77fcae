"""The pages as texts: golden files, honest numbers, statuses, words that are never used."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from privspec.core.diagnostics import UsageError
from privspec.explain.document import Status
from privspec.explain.reports import READERS, plain
from privspec.explain.reports import explain as unjudged
from privspec.explain.summary import summary as short

from .judged import explain, facts, summary
from .plans import Plan, explained, histogram, prefix_sums, two_observers

GOLDEN = Path(__file__).parent / "golden"
PLANS: dict[str, Callable[[], Plan]] = {
    "prefix_sums": prefix_sums,
    "histogram": histogram,
    "two_observers": two_observers,
}
PAGES = [(name, reader) for name in PLANS for reader in READERS]
FORMATS = ("md", "html", "json")


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    return {name: make() for name, make in PLANS.items()}


@pytest.mark.parametrize(("name", "reader"), PAGES)
def test_golden(plans: dict[str, Plan], golden: Callable[[Path, str], None], name: str, reader: str) -> None:
    plan = plans[name] | {"digest": "0" * 64}  # the true one depends on the last bits of linear algebra
    golden(GOLDEN / f"{name}.{reader}.md", explain(plan, reader))


NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?(?![\w])")
WORDING = {"100", "256", "1.25", "2", "1", "3"}
"""Numbers that belong to fixed wording: of 100, SHA-256, the formula of the classic calibration, "Guarantee 1 of 3"."""


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
def test_every_number_is_a_fact(plans: dict[str, Plan], name: str, reader: str) -> None:
    plan = plans[name]
    found = facts(plan)
    known = {n for text in _texts(plain(found)) for n in NUMBER.findall(text)}
    known |= set(NUMBER.findall(plan["spec"]["source"])) | WORDING
    page = json.loads(explained(name, reader, "json"))["sections"]
    twins: set[str] = set()  # plots compute further points of the same curves; checked in test_plots
    texts = []
    for section in page:
        for block in section["blocks"]:
            (twins.update if block["kind"] == "plot" else texts.extend)(list(_texts(block)))
    unknown = {n for text in texts for n in NUMBER.findall(text)} - known
    assert not unknown


@pytest.mark.parametrize(("name", "reader"), PAGES)
@pytest.mark.parametrize("form", FORMATS)
def test_words_that_are_never_used(name: str, reader: str, form: str) -> None:
    text = explained(name, reader, form).lower()
    for word in ("anonym", "what was known before", "differentially private", "guaranteed privacy"):
        assert word not in text


@pytest.mark.parametrize("name", PLANS)
def test_public_page_is_short_and_has_no_formulas(plans: dict[str, Plan], name: str) -> None:
    text = explain(plans[name], "public")
    assert len(text.split()) < 900
    assert not re.search(r"[εδμρΣ√]|e\^|epsilon|delta|sqrt", text)
    assert "compared with not taking part" in text


@pytest.mark.parametrize("name", PLANS)
def test_every_sentence_of_an_auditor_has_status_and_source(plans: dict[str, Plan], name: str) -> None:
    page = json.loads(explain(plans[name], "auditor", "json"))
    sentences = [
        sentence
        for section in page["sections"]
        for block in section["blocks"]
        for sentence in block.get("sentences", ())
    ]
    assert len(sentences) > 20
    source = plans[name]["spec"]["source"].splitlines()
    for sentence in sentences:
        assert sentence["status"] in {s.value for s in Status}
        assert sentence["because"]
        for because in sentence["because"]:
            if "line" in because:
                assert because["text"]
                assert because["text"] in source[because["line"] - 1]
            else:
                assert because.get("note") or because.get("claim")


def test_notes_that_are_named_exist() -> None:
    notes = Path(__file__).parents[2] / "privspec/noise/notes"
    for name in PLANS:
        for reader in READERS:
            for note in set(re.findall(r'"note": "([\w-]+)"', explained(name, reader, "json"))):
                assert (notes / f"{note}.md").is_file(), note


@pytest.mark.parametrize("note", ["gaussian-exact", "post-processing", "laplace", "placement", "group-privacy", "odds"])
def test_notes_have_their_parts(note: str) -> None:
    text = (Path(__file__).parents[2] / f"privspec/noise/notes/{note}.md").read_text("utf-8")
    assert text.startswith("# ")
    for part in ("**Statement", "**Rounding direction.**"):
        assert part in text, part
    assert "Proof" in text
    assert max(len(line) for line in text.splitlines()) < 180


def test_sections_follow_the_guideline(plans: dict[str, Plan]) -> None:
    text = explain(plans["prefix_sums"], "auditor")
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


@pytest.mark.parametrize("reader", READERS)
def test_unknown_family_and_measure_say_what_cannot_be_explained(reader: str) -> None:
    plan = histogram()
    plan["mechanism"] = {"family": "oracle", "sites": [{"at": "O", "kind": "magic"}]}
    plan["guarantees"][0] |= {"measure": "weird-privacy", "achieved": {}}
    text = explain(plan, reader)
    assert "cannot" in text
    for form in FORMATS:
        assert explain(plan, reader, form)


@pytest.mark.parametrize("reader", READERS)
def test_a_plan_with_the_least_keys(reader: str) -> None:
    plan = {
        "format": "privspec-plan/2.0",
        "spec": {"name": "least", "sha256": "", "source": "", "parameters": {}, "constants": {}},
        "status": "feasible",
        "loss": {"value": 1.5, "lower_bound": None, "relative_gap": None},
        "alternatives": [],
        "mechanism": {"family": "table", "inputs": [], "outputs": [], "probabilities": []},
        "guarantees": [],
        "assumptions": [],
        "claims": {},
    }
    for form in FORMATS:
        assert explain(plan, reader, form)


@pytest.mark.parametrize("reader", READERS)
def test_infeasible_plans_name_lines_and_changes(reader: str) -> None:
    plan = {
        "format": "privspec-plan/2.0",
        "spec": {
            "name": "tight",
            "source": "spec tight\nvariables:\n  input x in [0, 1]\n",
            "path": "tight.priv",
        },
        "status": "infeasible",
        "conflicts": [{"line": 3, "text": "input x in [0, 1]"}],
        "reason": "nothing fits",
        "relaxations": [{"change": "epsilon 1 -> 2", "line": 3, "loss": 12.5}],
    }
    text = explain(plan, reader)
    assert "nothing fits" in text
    assert "12.5" in text


def test_questions_that_have_no_answer() -> None:
    plan = histogram()
    with pytest.raises(UsageError, match="PS0721"):
        explain(plan, "martian")
    with pytest.raises(UsageError, match="PS0721"):
        explain(plan, "public", "pdf")
    with pytest.raises(UsageError, match="PS0711"):
        explain({"guarantees": [{}]}, "public")


def test_json_carries_facts_and_digest(plans: dict[str, Plan]) -> None:
    page = json.loads(explain(plans["prefix_sums"], "engineer", "json"))
    assert page["format"] == "privspec-explanation/1.0"
    assert page["plan_digest"] == plans["prefix_sums"]["digest"]
    assert page["facts"]["loss"]["error"] == {
        "value": pytest.approx(8.8712, abs=1e-4),
        "text": "8.87",
        "rounding": "rounded to the nearest",
    }


def test_markdown_escapes_what_a_spec_says() -> None:
    plan = histogram()
    plan["spec"]["source"] = plan["spec"]["source"].replace("How many", "*<b>* [x](y) How many")
    text = explain(plan, "public")
    assert "\\*\\<b>\\* \\[x\\](y)" in text


@pytest.mark.parametrize("reader", READERS)
def test_nothing_is_called_proved_without_a_report_of_the_kernel(reader: str) -> None:
    plan = prefix_sums()
    page = json.loads(unjudged(plan, reader, "json"))["sections"]
    found = {s["status"] for section in page for block in section["blocks"] for s in block.get("sentences", ())}
    assert "proved" not in found
    assert "reported by the compiler, not certified" in found
    assert "(certified)" not in short(plan)
    assert "(certified)" in summary(plan)
