"""The TextMate grammar that colours `.priv` files, made from the grammar of the language and its libraries.

After a change of either:

    python -m privspec.editor.textmate
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from privspec.functions import REGISTRY
from privspec.kernel.measures import PATTERN
from privspec.language.layout import SECTIONS
from privspec.model.evaluate import DOMAIN_CALLS
from privspec.model.option_rules import families
from privspec.model.priors import DISTRIBUTIONS
from privspec.model.scope import RESERVED, TRUST_WORDS

SHIPPED = Path(__file__).with_name("priv.tmLanguage.json")
NAME = "[^\\W\\d][\\w]*"
HEADERS = "|".join(SECTIONS)
NEXT = rf"(?=^[ \t]*(?:(?:{HEADERS})[ \t]*:|spec[ \t]+{NAME}))"
"""Where a section ends: at the next header."""
READERS = ("csv", "npy", "spec")
"""Calls that read a file."""


def shipped() -> str:
    """The grammar as it ships, JSON."""
    return SHIPPED.read_text("utf-8")


def words_of(grammar: str) -> tuple[dict[str, str], dict[str, frozenset[str]]]:
    """The regular expressions of a grammar by terminal, and the words that may stand in a statement, by its rule."""
    from lark import Lark
    from lark.grammar import NonTerminal
    from lark.lexer import PatternStr

    lark = Lark(grammar, parser="lalr", start=list(SECTIONS.values()), maybe_placeholders=False)
    literal = {one.name: one.pattern.value for one in lark.terminals if isinstance(one.pattern, PatternStr)}
    patterns = {one.name: one.pattern.value for one in lark.terminals if one.name not in literal}
    below: dict[str, set[str]] = {}
    for rule in lark.rules:
        below.setdefault(rule.origin.name, set()).update(
            symbol.name if isinstance(symbol, NonTerminal) else f"'{symbol.name}" for symbol in rule.expansion
        )
    words = {}
    for start in SECTIONS.values():
        reached, queue = {start}, [start]
        while queue:
            for name in below.get(queue.pop(), ()):
                if name not in reached:
                    reached.add(name)
                    queue.append(name)
        found = {literal.get(name[1:], "") for name in reached if name.startswith("'")}
        # an article alone is more often a name
        words[start] = frozenset(word for word in found if word.isalpha() and len(word) > 1)
    return patterns, words


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(set(words), key=lambda word: (-len(word), word)))


def _rule(scope: str, pattern: str, **captures: str) -> dict[str, Any]:
    rule: dict[str, Any] = {"name": f"{scope}.priv", "match": pattern} if scope else {"match": pattern}
    if captures:
        rule["captures"] = {number[1:]: {"name": f"{name}.priv"} for number, name in captures.items()}
    return rule


def grammar() -> dict[str, Any]:
    """The TextMate grammar of the language."""
    lark = Path(__file__).parents[1] / "language" / "grammar.lark"
    patterns, words = words_of(lark.read_text("utf-8"))
    common = [
        _rule("comment.line.number-sign", "#.*$"),
        {"name": "string.quoted.triple.priv", "begin": '"""', "end": '"""'},
        _rule("string.quoted.double", patterns["STRING"]),
    ]
    calls = _any((*REGISTRY, *DOMAIN_CALLS, *READERS, *DISTRIBUTIONS))
    values = [
        _rule("support.type.measure", rf"[-‐‑]({PATTERN})\b"),
        _rule("keyword.operator.average", patterns["OVER"]),
        _rule("keyword.other.wrt", rf"\b(?:{patterns['WRT']})"),
        _rule("constant.numeric", rf"(?<![\w.]){patterns['DAY']}|(?<=\.\.){patterns['DAY']}"),
        _rule("constant.numeric", rf"(?<![\w.]){patterns['NUMBER']}|(?<=\.\.){patterns['NUMBER']}"),
        _rule("support.function", rf"(?<![\w.])(?:{calls})(?=[ \t]*\()"),
        _rule("constant.language", rf"(?<![\w.])(?:{_any(RESERVED - {'E', 'worst', 'spec'})}|ℝ)(?!\w)"),
        _rule("keyword.operator.in", rf"\b{patterns['IN']}"),
        _rule("keyword.operator", r"\|\||‖|\.\.|<=|>=|!=|[-+*/@^²'=~<>|≤≥≠∼·⊤]"),
    ]
    sections = []
    for section, rule in SECTIONS.items():
        own = list(common)
        if section == "variables":
            own.append(_rule("storage.type", rf"(?<![\w.]){patterns['KIND']}(?=[ \t]+[^\W\d])"))
        if section == "options":
            own.append(_rule("", rf"\b(trust)[ \t]+({_any(TRUST_WORDS)})\b", _1="keyword.other", _2="support.constant"))
            own.append(_rule("support.constant", rf"(?<![\w.])(?:{_any(families())})\b(?![ \t]*\()"))
        if words[rule]:
            own.append(_rule("keyword.other", rf"(?<![\w.])(?:{_any(words[rule])})\b(?![ \t]*=)"))
        sections.append(
            {
                "name": f"meta.{section}.priv",
                "begin": rf"^[ \t]*({section})[ \t]*:",
                "beginCaptures": {"1": {"name": "keyword.control.section.priv"}},
                "end": NEXT,
                "patterns": [*own, *values],
            }
        )
    title = _rule("", rf"^[ \t]*(spec)[ \t]+({NAME})", _1="keyword.control.section", _2="entity.name.section")
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "privspec",
        "scopeName": "source.priv",
        "fileTypes": ["priv"],
        "patterns": [*common, title, *sections],
    }


def text() -> str:
    """The grammar as JSON, the same on every machine."""
    return json.dumps(grammar(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SHIPPED.write_text(text(), "utf-8")
