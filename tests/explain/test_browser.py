"""The three pages of every template in a headless Chromium: no errors, readable by all, at any width, and on paper.

Needs a Chromium and axe-core (named by PRIVSPEC_AXE, or fetched by npm); is skipped where one is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from privspec.api import load
from privspec.core.diagnostics import SolveError
from privspec.explain.reports import READERS
from privspec.manual import list_templates

from .browser import Browser, axe_script, chromium, program

pytestmark = pytest.mark.slow

NARROW, WIDE = 400, 1200
WITHOUT_A_PLAN = {"noothigattu_baseline"}
"""Templates that ask for no privacy: there is nothing to explain."""
NAMES = [one.name for one in list_templates() if one.name not in WITHOUT_A_PLAN]
_PAGE = re.compile(rb"/Type\s*/Page\b")
OFF_THE_EDGE = """[document.documentElement.scrollWidth, innerWidth]"""
FOCUSED = """(() => { const e = document.activeElement, s = getComputedStyle(e);
  const seen = s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0;
  return [e.tagName, [...document.querySelectorAll('*')].indexOf(e), seen,
          e.tagName === 'SUMMARY' ? e.parentElement.open : null]; })()"""


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    script = axe_script(tmp_path_factory.mktemp("axe"))
    if script is None:
        pytest.skip("axe-core is missing: set PRIVSPEC_AXE to axe.min.js, or let npm reach its registry")
    return script


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if (path := program()) is None:
        pytest.skip("there is no Chromium on this machine")
    with chromium(path, tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The three pages of a template, each solved once."""
    folder, made = tmp_path_factory.mktemp("pages"), dict[str, dict[str, Path]]()

    def of(name: str) -> dict[str, Path]:
        if name not in made:
            try:
                plan = load(name).solve()
            except SolveError as error:
                pytest.fail(f"{name} does not solve: {error}")
            made[name] = {reader: folder / f"{name}.{reader}.html" for reader in READERS}
            for reader, path in made[name].items():
                path.write_text(plan.explain(reader, "html"), encoding="utf-8")
            (folder / f"{name}.md").write_text(plan.explain("public"), encoding="utf-8")
        return made[name]

    return of


@pytest.mark.parametrize("name", NAMES)
def test_pages_of_a_template(name: str, pages: Any, browser: Browser, axe: str) -> None:
    for reader, path in pages(name).items():
        for width, dark in ((WIDE, False), (NARROW, False), (NARROW, True)):
            browser.open(path, width, dark=dark)
            where = f"{name}.{reader} at {width}{', dark' * dark}"
            assert not browser.heard, where
            needed, there = browser.run(OFF_THE_EDGE)
            assert needed <= there, where
            browser.run(f"{axe};0")
            found = browser.run(
                "axe.run().then(r => r.violations.map(v => [v.impact, v.id, v.nodes.map(n => n.html.slice(0, 120))]))"
            )
            assert not found, (where, found)


@pytest.mark.parametrize("name", NAMES)
def test_every_page_prints_and_the_page_to_sign_is_one(name: str, pages: Any, browser: Browser) -> None:
    for reader, path in pages(name).items():
        browser.open(path)
        printed = browser.pdf()
        assert printed.startswith(b"%PDF-"), reader
        sheets = len(_PAGE.findall(printed))
        if reader == "public":
            assert sheets <= 2
        if reader == "auditor":
            browser.run("document.querySelectorAll('section:not(.first-page), footer').forEach(e => e.remove())")
            assert len(_PAGE.findall(browser.pdf())) == 1 < sheets


@pytest.mark.parametrize("name", NAMES)
def test_keyboard(name: str, pages: Any, browser: Browser) -> None:
    """Tab goes down a page, what has the focus is outlined, Enter opens a fold, and a note is one step away."""
    for reader, path in pages(name).items():
        browser.open(path)
        folds, places = 0, []
        for _ in range(60):
            browser.press("Tab", 9)
            tag, place, outlined, opened = browser.run(FOCUSED)
            if tag == "BODY" or place in places[:1]:  # past the end, or round again
                break
            assert outlined, (reader, tag)
            places.append(place)
            if tag == "SUMMARY" and not opened and not folds:
                browser.press("Enter", 13, "\r")
                folds += 1
                assert browser.run(FOCUSED)[3] is True, reader
        assert all(a < b for a, b in pairwise(places)), reader
        assert browser.run("document.querySelectorAll('a[href], summary, button, input').length") == 0 or places, reader
        if reader == "auditor":
            assert len(places) > 5
            target = browser.run("document.querySelector('.basis a').getAttribute('href')")
            browser.run(f"location.hash = '{target}'")
            assert browser.run(f"document.querySelector('{target}').closest('details').open")


@pytest.mark.parametrize("name", NAMES)
def test_the_public_page_of_a_template_is_short(name: str, pages: Any) -> None:
    """300 to 450 words, in which no name of a variable, no formula and no file occurs."""
    text = pages(name)["public"].with_name(f"{name}.md").read_text("utf-8")
    assert 300 <= sum(1 for word in text.split() if re.search(r"\w", word)) <= 450
    assert not re.search(r"[εδμρΣ√α@=^]|epsilon|delta|sqrt|\bO\b|\w_\w|\.priv|\.csv|\bspec\b", text)
    assert re.search(
        r"A guesser who errs equally often both ways would on average accuse at least [\d,]+ of [\d,]+ ", text
    )
