"""Compiles `grammar.lark` into `grammar.json` with Lark; nothing imports this at run time.

After a change of the grammar:

    python -m privspec.language.grammar
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lark import Lark
from lark.grammar import Terminal
from lark.lexer import PatternStr
from lark.parsers.lalr_analysis import LALR_Analyzer, Shift

from privspec.language.automaton import END, STARTS

GRAMMAR = Path(__file__).with_name("grammar.lark")


def encode(grammar: str) -> str:
    """The table of a grammar as JSON text, the same on every machine; `automaton.decode` reads it.

    Raises: lark.exceptions.GrammarError on a conflict.
    """
    lark = Lark(grammar, parser="lalr", start=list(STARTS), maybe_placeholders=False)
    frontend: Any = lark.parser
    analysis: Any = LALR_Analyzer(frontend.parser.parser_conf)
    analysis.compute_lalr()
    spelling = _spelling(lark)
    rules = sorted(lark.rules, key=_rule_key)
    rows, numbers = _rows(analysis.parse_table, {rule: i for i, rule in enumerate(rules)}, spelling)
    terminals = {spelling[s.name] for rule in rules for s in rule.expansion if isinstance(s, Terminal)}
    data = {
        "rules": [[_head(rule.origin.name), len(rule.expansion), _action(rule)] for rule in rules],
        "starts": {start: numbers[analysis.parse_table.start_states[start]] for start in STARTS},
        "ends": {start: numbers[analysis.parse_table.end_states[start]] for start in STARTS},
        "terminals": sorted(terminals | {END}),
        "states": rows,
    }
    return json.dumps(data, separators=(",\n", ":"), ensure_ascii=False)


def _spelling(lark: Lark) -> dict[str, str]:
    """Literal terminals by their text, the others by their name."""
    return {END: END} | {
        t.name: t.pattern.value if isinstance(t.pattern, PatternStr) else t.name for t in lark.terminals
    }


def _head(name: str) -> str:
    """A nonterminal as a key of the table, which no word of a spec can be taken for."""
    return f"<{name}>"


def _rule_key(rule: Any) -> tuple[str, int, list[str], str]:
    return str(rule.origin.name), rule.order, [s.name for s in rule.expansion], rule.alias or ""


def _action(rule: Any) -> str:
    if rule.alias:
        return str(rule.alias)
    return "" if rule.options.expand1 and len(rule.expansion) == 1 else str(rule.origin.name)


def _rows(table: Any, rules: dict[Any, int], spelling: dict[str, str]) -> tuple[list[dict[str, int]], dict[Any, int]]:
    """The states as rows, numbered in the order in which they are found from the starts."""
    numbers: dict[Any, int] = {}
    queue: list[Any] = []

    def number(state: Any) -> int:
        if state not in numbers:
            numbers[state] = len(numbers)
            queue.append(state)
        return numbers[state]

    for start in STARTS:
        number(table.start_states[start])
    rows = [
        {
            spelling.get(name) or _head(name): number(target) if action is Shift else -(rules[target] + 1)
            for name, (action, target) in sorted(table.states[state].items())
        }
        for state in queue  # which grows meanwhile
    ]
    return rows, numbers


def table_text(grammar: str) -> str:
    """The text of `grammar.json` for a grammar, in lines of some length."""
    lines, line = [], ""
    for piece in encode(grammar).splitlines():
        if len(line) + len(piece) > 105:
            lines.append(line)
            line = ""
        line += piece
    return "\n".join([*lines, line]) + "\n"


if __name__ == "__main__":
    GRAMMAR.with_suffix(".json").write_text(table_text(GRAMMAR.read_text("utf-8")), "utf-8")
