"""Pages as HTML: well formed, self-contained, accessible, and deaf to what a spec smuggles in."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from privspec.explain.document import IconRow
from privspec.explain.reports import READERS, icon_svg

from .plans import LINEAR, explain, page, plan, plan_html

VOID = {"meta", "br", "link", "img", "hr", "input", "path", "circle", "use"}


class Outline(HTMLParser):
    """Checks nesting and collects what the tests ask for."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.errors: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.errors.append(f"</{tag}> closes something else")


def outline(text: str) -> Outline:
    found = Outline()
    found.feed(text)
    found.close()
    assert not found.errors
    assert not found.open
    return found


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {f"{name}.{reader}": page(name, reader, "html") for name in LINEAR for reader in READERS}


def test_well_formed_and_accessible(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        found = outline(text)
        tags = found.tags
        assert text.startswith("<!DOCTYPE html>"), name
        assert [a.get("lang") for t, a in tags if t == "html"] == ["en-GB"]
        assert sum(t == "h1" for t, _ in tags) == 1
        levels = [int(t[1]) for t, _ in tags if re.fullmatch("h[1-6]", t)]
        assert all(b - a <= 1 for a, b in pairwise(levels))
        assert sum(t == "table" for t, _ in tags) == sum(t == "caption" for t, _ in tags)
        ids = Counter(a["id"] for _, a in tags if a.get("id"))
        assert not [i for i, n in ids.items() if n > 1], name
        labelled = [a for t, a in tags if a.get("role") in ("img", "group")]
        assert labelled
        assert all(a.get("aria-label") for a in labelled)
        for reference in re.findall(r"url\(#([^)]+)\)", text) + re.findall(r'href="#([^"]+)"', text):
            assert reference in ids, name


def test_dark_mode_and_print(pages: dict[str, str]) -> None:
    for text in pages.values():
        assert "prefers-color-scheme: dark" in text
        assert "@media print" in text
    svg = "".join(re.findall(r"<svg.*?</svg>", pages["prefix_sums.engineer"], re.DOTALL))
    colours = set(re.findall(r"#[0-9a-fA-F]{6}", re.sub(r"var\([^)]*\)", "", svg)))
    assert not colours


def test_specs_cannot_inject() -> None:
    found = plan("histogram")
    evil = "<script>alert(1)</script><img src=x>"
    found["spec"]["name"] = evil
    found["spec"]["source"] = found["spec"]["source"].replace("How many", evil)
    found["alternatives"][0]["name"] = evil
    found["mechanism"]["sites"][0]["at"] = evil
    found["problem"]["blocks"][0]["released"][0]["name"] = evil
    found["guarantees"][0]["outputs"] = [evil]
    found["problem"]["obligations"][0] |= {"outputs": [evil], "seen": [evil]}
    for reader in READERS:
        text = re.sub(r'<img src="data:[^>]*>', "", explain(found, reader, "html"))
        outline(text)
        assert "<script" not in text
        assert "<img" not in text
    assert "<script" not in plan_html(found)


def test_graph_is_an_image_apart() -> None:
    found = outline(page("prefix_sums", "engineer", "html"))
    images = [a for t, a in found.tags if t == "img"]
    assert len(images) == 1
    assert images[0]["alt"]
    assert (images[0]["src"] or "").startswith("data:image/svg+xml;base64,")
    assert "x" in page("prefix_sums", "engineer").split("## Graph")[1]


def test_icons_count() -> None:
    for filled, of, drawn in (
        (26, 100, 26),
        (74, 100, 74),
        (2, 1000, 0),
        (998, 1000, 100),
        (0, 100, 0),
        (100, 100, 100),
    ):
        svg = str(icon_svg(IconRow("row", filled, of)))
        assert svg.count("icon-full") == drawn
        assert svg.count("<circle") == 100


def test_notebook_fragment_has_the_error() -> None:
    assert "± 8.87" in plan_html(plan("prefix_sums"))
