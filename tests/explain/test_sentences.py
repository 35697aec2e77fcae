"""No sentence of a page, or of a refusal, is longer than 35 words; what is listed is told apart by its signs."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import privspec
from privspec.api import Problem, load
from privspec.explain.reports import READERS
from privspec.manual import list_templates
from privspec.plan import Plan
from tests.corpus.book import BOOK
from tests.plans import SMALL, solved

from .plans import SPECS, page

MOST = 35
MOST_PUBLIC = 30
QUESTIONS = sorted((Path(__file__).parents[1] / "questions").glob("*.priv"))
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.priv"))
WITHOUT_A_PLAN = {"noothigattu_baseline", "personalised", "san_francisco"}
"""Nothing is promised, or files are needed that are made elsewhere."""
REFUSALS = {"Refused", "wrong", "says", "Claim"}
_ENDS = re.compile(r"(?<=[.?!])\s+(?=[A-Z“(])| · ")
_FORMULA = re.compile(r"`[^`]*`")


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, and the items of a list in it; a formula between backquotes is one word."""
    yield from _ENDS.split(_FORMULA.sub("formula", text))


def words(sentence: str) -> int:
    return sum(1 for word in sentence.split() if re.search(r"\w", word))


def texts(block: Any) -> Iterator[str]:
    """What a block of a page says to a reader: not commands, the text of the spec, and its formulas."""
    yield from (sentence["text"] for sentence in block.get("sentences", ()))
    yield block.get("alt", "")
    if block["kind"] in ("plot", "icons", "table"):
        yield block["caption"]
    if block["kind"] == "table":
        yield from (cell for row in block["rows"] for cell in row if row[0] != "Loss expression")
    if block["kind"] == "plot":
        yield from texts(block["table"])


def too_long(text: str) -> list[str]:
    blocks = (block for section in json.loads(text)["sections"] for block in section["blocks"])
    return [one for block in blocks for text in texts(block) for one in sentences(text) if words(one) > MOST]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", SPECS)
def test_sentences_of_every_kind_of_page(name: str, reader: str) -> None:
    assert not too_long(page(name, reader, "json"))


@pytest.mark.parametrize("name", SMALL)
def test_sentences_of_small_templates(name: str) -> None:
    plan = Plan.of(solved(name))
    assert not [one for reader in READERS for one in too_long(plan.explain(reader, "json"))]


EVERY = [*(t.name for t in list_templates()), *map(str, (*QUESTIONS, *EXAMPLES))]


@pytest.mark.slow
@pytest.mark.parametrize("spec", [one for one in EVERY if Path(one).stem not in WITHOUT_A_PLAN])
def test_sentences_of_every_spec(spec: str) -> None:
    found: Problem = load(spec)
    plan = found.solve()
    assert not [one for reader in READERS for one in too_long(plan.explain(reader, "json"))]


def public_page(place: Path) -> str:
    """What the book holds of the public page of a spec, without its tables' rules and its figures of people."""
    _, _, page = place.read_text("utf-8").partition("== page public\n")
    return page.partition("\n== ")[0]


def test_no_sentence_of_any_public_page_is_long() -> None:
    """Of all templates, examples, questions and forms: the book has their public pages in full."""
    pages = [(place, public_page(place)) for place in sorted(BOOK.rglob("*.txt"))]
    assert sum(1 for _, page in pages if page) > 250
    cells = ((place, cell) for place, page in pages for line in page.splitlines() for cell in line.split(" | "))
    long = {f"{place.stem}: {one}" for place, cell in cells for one in sentences(cell) if words(one) > MOST_PUBLIC}
    assert not long


def test_refusals_and_claims_of_the_kernel() -> None:
    """As they stand in its source, whatever they name counted as two words."""
    found = []
    for path in (Path(privspec.__file__).parent / "kernel").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            if getattr(called, "id", getattr(called, "attr", "")) in REFUSALS:
                assert isinstance(node, ast.Call)
                found += [one for given in node.args for text in _written(given) for one in sentences(text)]
    assert len(found) > 300
    assert not [one for one in found if words(one) > MOST]


def _written(node: ast.expr) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.JoinedStr):
            yield "".join(str(v.value) if isinstance(v, ast.Constant) else "some name" for v in one.values)
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value
