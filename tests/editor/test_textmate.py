"""The grammar that colours specs: it is made from the language, and colours each token as what the parser reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from privspec.cli import run_command_line
from privspec.editor.textmate import shipped, text
from privspec.functions import REGISTRY
from privspec.kernel.measures import BY_WORD
from privspec.language.automaton import parse_table, reach
from privspec.language.layout import SECTIONS, lay_out
from privspec.manual import examples, page

TOP = Path(__file__).parents[2]
GRAMMAR = json.loads(shipped())
SCOPES = {
    "NUMBER": "constant.numeric",
    "DAY": "constant.numeric",
    "STRING": "string.quoted.double",
    "KIND": "storage.type",
    "MEASURE": "support.type.measure",
    "WRT": "keyword.other.wrt",
    "OVER": "keyword.operator.average",
    "IN": "keyword.operator.in",
    "NORM": "keyword.operator",
    "NORM_P": "keyword.operator",
}
SPECS = {
    path.name: path.read_text("utf-8") for path in (*TOP.glob("specs/*.priv"), *TOP.glob("tests/questions/*.priv"))
}
SPECS |= {f"{part} {i}": one.text for part in ("language", "functions") for i, one in enumerate(examples(page(part)))}


def coloured(source: str) -> list[str]:
    """The innermost scope of each character, as editors find it: by lines, the leftmost rule, the first of equals."""
    found: list[str] = []
    open_rules: list[dict[str, Any]] = []
    for line in source.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        own, at = [""] * len(line), 0
        while True:
            inside = open_rules[-1] if open_rules else None
            rules = inside.get("patterns", []) if inside else GRAMMAR["patterns"]
            tried = [(re.compile(rule.get("match") or rule["begin"]).search(bare, at), rule) for rule in rules]
            if inside:
                tried.insert(0, (re.compile(inside["end"]).search(bare, at), inside))
            hits = [(match, rule) for match, rule in tried if match]
            if not hits:
                own[at:] = [inside["name"] if inside else ""] * (len(line) - at)
                break
            match, rule = min(hits, key=lambda hit: hit[0].start())
            own[at : match.start()] = [inside["name"] if inside else ""] * (match.start() - at)
            own[match.start() : match.end()] = [rule.get("name", "")] * len(match[0])
            for number, capture in (rule.get("captures") or rule.get("beginCaptures") or {}).items():
                if match.re.groups >= int(number) and match[int(number)]:
                    own[match.start(int(number)) : match.end(int(number))] = [capture["name"]] * len(match[int(number)])
            if rule is inside:
                open_rules.pop()
            elif "begin" in rule:
                open_rules.append(rule)
            assert rule is inside or match.end() > at or "begin" in rule, rule
            at = match.end()
        found += own
    return found


def tokens(source: str) -> Iterator[tuple[str, str, int]]:
    """The type, the text and the place of each token, as the parser reads it."""
    layout = lay_out(source)
    for part in (layout, *layout.within):
        for section in part.sections:
            yield "header", source[section.header.start : section.header.end - 1], section.header.start
            for span in section.statements:
                reached = reach(parse_table(), SECTIONS[section.name or ""], source, span.start, span.end)
                assert reached is not None
                for token in reached.seen:
                    yield token.type, source[token.start : token.end], token.start
    for comment in layout.comments:
        yield "comment", "#", comment.span.start


def test_what_ships_is_made_from_the_language() -> None:
    assert shipped() == text(), "run python -m privspec.editor.textmate"
    assert all(re.search(rf"\b{name}\b", shipped()) for name in (*REGISTRY, *BY_WORD, *SECTIONS))


@pytest.mark.parametrize("name", SPECS)
def test_every_token_has_the_colour_of_what_it_is(name: str) -> None:
    source = SPECS[name]
    scopes = coloured(source)
    for kind, word, at in tokens(source):
        scope = scopes[at]
        what = f"{word} at {at} is {scope or 'plain'}"
        if kind == "header":
            assert scope.startswith("keyword.control.section"), what
        elif kind == "comment":
            assert scope.startswith("comment"), what
        elif kind in SCOPES:
            assert scope.startswith(SCOPES[kind]), what
        elif kind == "NAME":
            assert scope.startswith(("meta", "support.function", "support.constant", "constant.language")), what
            assert not scope.startswith("support.function") or source[at + len(word) :].lstrip()[:1] == "(", what
        elif kind.isalpha():
            assert scope.startswith("keyword.other"), what


def test_a_doc_text_and_strings_hide_what_is_in_them() -> None:
    source = 'spec a\n"""Words: is 3 # wrt\nprivacy: all"""\nvariables:\n  output O "65 # in" in 0..5\n'
    scopes = coloured(source)
    assert scopes[source.index("# wrt")].startswith("string.quoted.triple")
    assert scopes[source.index("privacy")].startswith("string.quoted.triple")
    assert scopes[source.index("# in")].startswith("string.quoted.double")
    assert scopes[source.index("0..5")].startswith("constant.numeric")


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["lsp", "--grammar"]) == 0
    assert json.loads(capsys.readouterr().out) == GRAMMAR
