"""Every code in the tree has its long form, and every long form its code."""

import re
from pathlib import Path

import pytest

from privspec.core.catalogue import Entry, entries, explain_code, written
from privspec.core.diagnostics import UsageError
from privspec.core.spans import Source
from privspec.language.parser import parse
from privspec.registry import FAMILIES

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"\bPS\d{4}\b")


def used() -> dict[str, list[str]]:
    """The codes of the code, and where they stand."""
    found: dict[str, list[str]] = {}
    for folder in ("privspec", "solvers"):
        for path in (ROOT / folder).rglob("*.py"):
            for code in CODE.findall(path.read_text("utf-8")):
                found.setdefault(code, []).append(str(path.relative_to(ROOT)))
    return found


def test_every_code_has_an_entry() -> None:
    missing = {code: places for code, places in used().items() if code not in entries() and code != "PS0000"}
    assert not missing, f"add entries to privspec/core/catalogue.md: {missing}"


def test_every_entry_is_used() -> None:
    unused = sorted(set(entries()) - set(used()))
    assert not unused


def test_entries_stand_in_order_and_once() -> None:
    codes = [entry.code for entry in written()]
    assert codes == sorted(set(codes))


@pytest.mark.parametrize("code", sorted(entries()))
def test_text(code: str) -> None:
    text = explain_code(code)
    assert text.startswith(f"{code}: ")
    assert text.endswith("\n")
    assert max(len(line) for line in text.splitlines()) <= 120
    title = entries()[code].title
    assert not title.endswith(".")
    assert "anonym" not in text.lower()


def test_lookup_is_lenient_and_helps() -> None:
    assert explain_code(" ps0103 ") == explain_code("PS0103")
    with pytest.raises(UsageError) as caught:
        explain_code("PS0199")
    assert caught.value.diagnostics[0].code == "PS0703"
    with pytest.raises(UsageError):
        explain_code("nonsense")


def test_entry_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match="not a code"):
        Entry("PS1", "title", "text")
    with pytest.raises(ValueError, match="no text"):
        Entry("PS0101", "title", " ")


def test_right_forms_of_the_syntax_examples_parse() -> None:
    """In `PS0106` and others the line marked right is a statement of the background."""
    for code in ("PS0105", "PS0106", "PS0103"):
        line = next(x for x in entries()[code].example.splitlines() if "# right" in x)
        parse(Source(code, f"background:\n{line}\n"))


def test_lists_of_words_are_whole() -> None:
    """What an entry lists is what the language has."""
    from privspec.model.evaluate import DOMAIN_CALLS
    from privspec.model.option_rules import families
    from privspec.model.priors import DISTRIBUTIONS

    lists = {"PS0220": DOMAIN_CALLS, "PS0404": DISTRIBUTIONS, "PS0272": families()}
    for code, words in lists.items():
        missing = [word for word in words if not re.search(rf"\b{word}\b", explain_code(code))]
        assert not missing, f"{code} does not name {missing}"


def test_items_of_lists_stand_on_lines_of_their_own() -> None:
    entry = Entry("PS0101", "title", "One of:\n- a short one;\n- a longer one,\n  which goes on.\nAnd then\nmore.")
    assert entry.text().split("\n\n")[1].splitlines() == [
        "One of:",
        "- a short one;",
        "- a longer one, which goes on.",
        "And then more.",
    ]


def test_every_part_of_the_compiler_is_named_where_solve_refuses() -> None:
    text = explain_code("PS0501")
    named = {
        "linear": "sums and counts",
        "table": "tables of probabilities",
        "votes": "votes",
        "statistics": "statistics of many parties",
        "selection": "medians, quantiles, extremes",
        "system": "outputs of several of these",
        "chain": "sums over a sequence",
        "points": "reports of one real point or number",
        "cells": "the\n  report has finitely many values",
        "frequencies": "how many parties hold each of finitely many values",
        "means": "sums and means of functions of each party's number",
        "keys": "keys that nobody has listed",
        "marginals": "tables of counts of any size",
        "stream": "running totals of more than 2,048",
        "design": "choices among finitely many values",
        "priced": "an amount of privacy at least cost",
    }
    assert {family.form for family in FAMILIES} == set(named)
    assert all(words in text for words in named.values())
