"""The manual: every function has its page, every example in it works as it is printed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privspec.cli import run_command_line
from privspec.core.diagnostics import UsageError
from privspec.core.spans import Source
from privspec.functions import REGISTRY
from privspec.kernel.measures import BY_WORD as MEASURES
from privspec.language.automaton import parse_table
from privspec.language.layout import SECTIONS
from privspec.manual import (
    WORDS,
    Example,
    examples,
    functions,
    help_text,
    list_templates,
    page,
    parts,
    search,
    see,
    sensitivity,
    stems,
    template_text,
    terms,
    words,
)
from privspec.model.distances import DISTANCES
from privspec.model.evaluate import DOMAIN_CALLS
from privspec.model.option_rules import families
from privspec.model.priors import DISTRIBUTIONS
from privspec.model.scope import TRUST_WORDS
from privspec.pipeline import Request, check, solve

FILES = {"csv"}
"""Entries that are words of the language rather than functions."""
PAGES = {"language": page("language"), "functions": page("functions"), "words": page(*WORDS)}
EXAMPLES = [(part, i, one) for part, text in PAGES.items() for i, one in enumerate(examples(text))]
CLAUSES = {rule.action for rule in parse_table().rules if rule.head == "<clause>"}
STARTS = {
    "given_the_model": "given",
    "seen_by": "seen",
    "adding_or_removing": "adding",
    "apart": "at",
    "in_one_cell": "at",
}
"""The word that a clause begins with, where it is not its name in the grammar."""


def test_every_function_has_a_page_and_nothing_else_has() -> None:
    assert set(functions()) - FILES == set(REGISTRY)
    assert [functions()[name].signature for name in REGISTRY] == [REGISTRY[name].signature for name in REGISTRY]


def test_every_function_is_used_in_an_example_of_its_own() -> None:
    for name, entry in functions().items():
        own = examples(f"{entry.text}\n")
        assert name in FILES or (len(own) == 1 and name in own[0].text), name


def test_every_function_says_how_it_is_written_what_it_is_and_how_far_it_moves() -> None:
    for name, entry in functions().items():
        text = help_text(name)
        assert text.startswith(f"{entry.signature}\n\n")
        assert len(entry.first) > 10, name
        assert name in FILES or ("\nSensitivity: " in text and "\nExample:\n" in text), name


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("measures", {*MEASURES}),
        ("clauses", {STARTS.get(name, name) for name in CLAUSES} | {"exactly"}),
        ("options", {"trust", "noise", *TRUST_WORDS}),
        ("noise families", {*families()} - {*REGISTRY}),
        ("domains", {"real", "ranking", *DOMAIN_CALLS}),
        ("distances", {*DISTANCES}),
        ("laws of the data", {*DISTRIBUTIONS}),
    ],
)
def test_every_word_has_a_page(kind: str, names: set[str]) -> None:
    known = {name for entry in words() for name in entry.names}
    assert names <= known, f"{kind} without a page: {names - known}"
    for name in names:
        assert "\nExample:\n" in help_text(name), name


def test_every_page_of_words_is_about_words_that_there_are() -> None:
    grammar = {word for row in parse_table().states for word in row}
    there = {
        *MEASURES,
        *TRUST_WORDS,
        *families(),
        *DOMAIN_CALLS,
        *DISTANCES,
        *DISTRIBUTIONS,
        *grammar,
        "real",
        "id",
        "unknown",
        "choose",
        "spends",
    }
    for entry in words():
        assert set(entry.names) <= there, set(entry.names) - there
        (own,) = examples(f"{entry.text}\n")
        assert any(name in own.text for name in entry.names), entry.signature


def test_every_section_has_a_page() -> None:
    for name in SECTIONS:
        assert len(help_text(name)) > 100, name


@pytest.mark.parametrize(("part", "number", "example"), EXAMPLES, ids=[f"{part}-{i}" for part, i, _ in EXAMPLES])
def test_every_example_works(part: str, number: int, example: Example) -> None:
    request = Request(Source(f"{part}-{number}.priv", example.text))
    if example.solves:
        assert solve(request).document["status"] in ("optimal", "feasible")
    else:
        check(request)


def test_sensitivities_are_those_of_the_maps() -> None:
    """Against matrices written out: the largest l1 and l2 norms of a column."""
    lower = np.tril(np.ones((8, 8)))
    said = {"prefix_sums": lower, "suffix_sums": lower.T, "total": np.ones((1, 8)), "mean": np.ones((1, 8)) / 8}
    said |= {"histogram": np.eye(4), "count": np.ones((1, 4)), "differences": np.diff(np.eye(8), axis=0)}
    for name, matrix in said.items():
        l1, l2 = np.abs(matrix).sum(axis=0).max(), np.sqrt((matrix**2).sum(axis=0).max())
        (line,) = sensitivity(name)
        assert line.endswith(f"at most {l1:.4g} (l1) and {l2:.4g} (l2)."), line
    assert not [*sensitivity("mismatch")]


def test_pages_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    for topic in (
        (),
        ("language",),
        ("functions",),
        ("words",),
        ("privacy",),
        ("zCDP",),
        *((one,) for one in functions()),
    ):
        assert run_command_line(["help", *topic]) == 0
        printed = capsys.readouterr().out
        assert printed.strip()
        assert "```" not in printed
        assert all(line == line.rstrip() for line in printed.splitlines())


def test_a_template_is_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    name = next(one.name for one in list_templates() if one.name not in functions())
    assert run_command_line(["help", name]) == 0
    assert capsys.readouterr().out == template_text(name)


def test_what_is_not_there_is_refused_with_what_is_near(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError) as caught:
        help_text("prefix_sum")
    assert caught.value.diagnostics[0].help == "did you mean prefix_sums?"
    assert run_command_line(["help", "nothing of the kind"]) == 2
    assert "PS0732" in capsys.readouterr().err


def test_the_pages_ship_with_the_package() -> None:
    wanted = Path(__file__).parents[1].joinpath("pyproject.toml").read_text("utf-8")
    for part, names in (("language", "*.md"), ("functions", "reference.md")):
        line = next(line for line in wanted.splitlines() if line.startswith(f'"privspec.{part}" = ['))
        assert f'"{names}"' in line


def test_the_language_is_read_at_a_sitting() -> None:
    """A new form takes a line; what more there is to say of it stands with its word, or its function."""
    assert len(page("language").encode("utf-8")) < 22_000


ASKED = (
    "Pufferfish",
    "partition selection",
    "randomized response",
    "Renyi",
    "Gaussian mechanism",
    "confidence interval",
    "group by",
    "clipping",
    "exponential mechanism",
    "join",
    "shuffle",
    "synthetic data",
    "k-anonymity",
    "Neighbours",
    "ledgers",
    "zcdp",
    "Prefix-Sums",
)
"""What people of the field look up first, as they write it."""


@pytest.mark.parametrize("term", ASKED)
def test_a_term_of_the_field_has_a_page(term: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["help", *term.split()]) == 0
    assert len(capsys.readouterr().out) > 80


LOOKED_FOR = {
    "average": "mean",
    "how do I average pay": "mean",
    "missing cells": "missing",
    "how do I join two tables": "join",
    "merge": "join",
    "how many users each day": "date",
    "timestamps": "date",
    "who decides the budget": "ledger",
    "top pages": "argmax",
    "how do I weight answers": "weights",
    "percent of people who say yes": "percent",
    "people by age group": "cut",
    "age brackets": "cut",
    "outlier": "clipping",
    "excel": "file",
    "compare two groups": "group by",
    "release again next month": "date",
    "what does the press see": "seen",
    "one person with several visits": "persons",
    "fit a regression line": "regression",
    "lottery vote": "borda_lottery",
    "median salary": "median",
    "how do I count women": "count",
    "synthetic rows": "synthetic data",
    "confidence interval of a mean": "confidence interval",
    "mean by group with counts": "group by",
    "five-year bins with errors": "bins",
    "top five pages": "top",
    "daily users of a year from timestamps": "date",
    "filtered count": "count",
    "correlation": "correlation",
    "cross-tab with margins": "contingency table",
    "join of three tables": "persons",
    "four quarters on one budget": "quarter",
    "awkward yes/no answers": "tutorial",
    "all two-way tables": "contingency table",
    "a vote": "plurality",
    "two audiences": "seen",
}
"""What somebody may type who does not know the words of the field, and a page that helps."""


@pytest.mark.parametrize(("asked", "page"), LOOKED_FOR.items())
def test_what_people_look_for_is_found_in_full_text(asked: str, page: str) -> None:
    assert page in [place.topic for place in search(asked)[:5]]
    assert f"privspec help {page}\n" in help_text(asked) or help_text(asked) == help_text(page)


def test_every_part_of_the_manual_is_found_by_its_own_title() -> None:
    for part in parts():
        if stems(part.title):
            assert part.topic in [found.topic for found in search(part.title)], part.title


def test_the_pages_that_terms_lead_to_are_there() -> None:
    for entry in terms():
        assert see(entry), entry.signature
        for name in see(entry):
            assert help_text(name), name
        for name in entry.names:
            assert help_text(name), name


def test_no_two_terms_are_one() -> None:
    folded = [" ".join(name.lower().split()) for entry in terms() for name in entry.names]
    assert len(folded) == len(set(folded))
