"""Today's tree against the book: what becomes of every spec of the corpus, and what the kernel says of the mutants.

What differs on purpose is accepted with `pytest --accept -m "slow or not slow" tests/corpus`; look at each difference.
"""

from __future__ import annotations

import pytest

from privspec.kernel import judge
from tests.corpus.book import BOOK, VERDICTS, book_text, place_of, verdicts_text
from tests.corpus.comparing import compared, compared_times, masked, read_times, write_times
from tests.corpus.measured import measured
from tests.corpus.mutants import Verdict, stored_plans, verdicts
from tests.corpus.specs import corpus

FAST = (
    "small/counting_query",
    "small/prefix_sums",
    "small/dp_random_dictatorship",
    "templates/k_randomised_response",
    "templates/histogram",
    "questions/how_many_people",
    "questions/spread_of_hours",
    "forms/parameter_set",
    "forms/component_no_such_parameter",
)

MUTATED = ("small/counting_query", "forms/parameter_number")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in corpus()]
)
def test_what_becomes_of_a_spec_is_what_the_book_says(name: str, request: pytest.FixtureRequest) -> None:
    place, now = place_of(name), book_text(name, measured(corpus()[name]).text)
    lines = compared(place.read_text("utf-8"), now).lines if place.exists() else ["the book does not have it"]
    if lines and request.config.getoption("--accept"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(now, "utf-8", newline="")
    elif lines:
        pytest.fail("\n".join([f"{name}: if that is meant, run pytest --accept", *lines]))


def test_the_book_has_the_specs_of_the_corpus_and_no_others() -> None:
    kept = {place.relative_to(BOOK).with_suffix("").as_posix() for place in BOOK.rglob("*.txt")}
    assert kept == set(corpus())
    assert len(corpus()) > 300


@pytest.mark.slow
def test_the_kernel_says_of_all_mutants_what_it_said(request: pytest.FixtureRequest) -> None:
    found = [one for name, plan in sorted(stored_plans().items()) for one in verdicts(judge, name, plan)]
    untrue = [one.line() for one in found if one.accepted and not one.true]
    assert not untrue
    assert len(found) > 10_000
    text = verdicts_text([one.line() for one in found])
    if request.config.getoption("--accept"):
        VERDICTS.write_text(text, "utf-8", newline="")
    assert text == VERDICTS.read_text("utf-8")


@pytest.mark.parametrize("name", MUTATED)
def test_the_kernel_says_of_some_mutants_what_it_said(name: str) -> None:
    text = verdicts_text([one.line() for one in verdicts(judge, name, stored_plans()[name])])
    assert text in VERDICTS.read_text("utf-8")


# --- what counts as a difference ------------------------------------------------------------------

TEXT = """\
== plan
status: optimal
loss: 0.5835056306749407

== guarantees
1: O wrt x, seen by anyone: (epsilon, delta)-DP
1 asked epsilon: 1
1 achieved mu: 0.236704380659888

== claims
ok      privacy      mu is 0.23670438 at most

== page public
Off by 0.584 on average.
At least 26 of 100.
"""


@pytest.mark.parametrize(
    ("old", "new", "differ"),
    [
        ("", "", 0),
        ("0.5835056306749407", "0.5835056306841", 0),
        ("0.5835056306749407", "0.583512", 1),
        ("epsilon: 1", "epsilon: 1.0000001", 1),
        ("0.236704380659888", "0.2367043806", 0),
        ("mu is 0.23670438", "mu is 0.23670439", 0),
        ("mu is 0.23670438", "mu is 0.2367044", 1),
        ("by 0.584", "by 0.585", 0),
        ("by 0.584", "by 0.587", 1),
        ("26 of 100", "27 of 100", 1),
        ("optimal", "feasible", 1),
        ("on average", "in the mean", 2),
        ("At least 26 of 100.\n", "", 1),
        ("== page public", "== page editor", 2),
        ("ok  ", "failed", 2),
    ],
)
def test_what_differs_is_told_and_nothing_else(old: str, new: str, differ: int) -> None:
    assert old in TEXT
    found = compared(TEXT, TEXT.replace(old, new, 1))
    assert len(found.lines) == differ, found.lines
    assert found.apart < 2e-5


def test_digests_of_pages_say_which_section_reads_otherwise() -> None:
    page = TEXT + "== page auditor\n# Report\n## Loss\nIt is 0.5835.\n## Law\nA table of 25.\n"
    book = book_text("small/none", page)
    assert not compared(book, book_text("small/none", page.replace("is 0.5835", "is 0.5840"))).lines
    lines = compared(book, book_text("small/none", page.replace("A table", "One table"))).lines
    assert [line[:21] for line in lines] == ["page auditor: - Law: ", "page auditor: + Law: "]
    assert masked("O = 0.5 of 1,000") == "O = # of #"


def test_times_are_read_as_they_are_written() -> None:
    times = {"a/b": {"solve": 0.25, "verify": 0.125, "run": 1.0}, "a/c": {"solve": 2.0}}
    assert read_times(write_times(times)) == times
    last = compared_times(times, {"a/b": {"solve": 0.5, "run": 1.0}, "a/c": {"solve": 2.0}}).splitlines()[-1]
    assert " ".join(last.split()) == "sum of 2 specs 2.250 2.500 1.11 0.000 0.000 1.00 1.000 1.000 1.00"


def test_a_verdict_is_read_as_it_is_written() -> None:
    one = Verdict("small/a", "guarantees.0", "removed", "accepted", False)
    assert Verdict.read(one.line()) == one
