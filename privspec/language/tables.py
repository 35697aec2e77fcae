"""The parse table of `grammar.lark`: built by Lark, kept as text in `_table.py`, loaded without Lark.

Importing Lark and building the table costs more than a whole `privspec check` may take, and a cache
in a user's folder can be missing, read-only or forged, so the table is a file of the package.
A test compares it with the grammar; after a change of the grammar run

    python -m privspec.language.tables
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

GRAMMAR = Path(__file__).with_name("grammar.lark")
STARTS = (
    "parameter",
    "party",
    "component",
    "variable",
    "background",
    "loss",
    "target",
    "requirement",
    "fairness",
    "option",
)
END = "$END"


@dataclass(frozen=True, slots=True)
class Rule:
    """A production: the nonterminal it yields, how many symbols it takes, and the name of its action."""

    head: str
    size: int
    action: str


@dataclass(frozen=True, slots=True)
class Table:
    """An LALR(1) table.

    `states[s][symbol]` is t >= 0 for "shift (or go) to t" and -(r + 1) for "reduce by rule r"; literal
    terminals are keyed by their own text, the others by their name in the grammar.
    """

    rules: Sequence[Rule]
    states: Sequence[Mapping[str, int]]
    starts: Mapping[str, int]
    ends: Mapping[str, int]
    terminals: frozenset[str]


@cache
def load() -> Table:
    """The table of the package."""
    from privspec.language import _table

    return decode(_table.TABLE)


def decode(text: str) -> Table:
    """The table written by `encode`."""
    data = json.loads(text)
    return Table(
        rules=tuple(Rule(*rule) for rule in data["rules"]),
        states=tuple(data["states"]),
        starts=data["starts"],
        ends=data["ends"],
        terminals=frozenset(data["terminals"]),
    )


def encode(grammar: str) -> str:
    """The table of a grammar as JSON text, the same on every machine (states are numbered in order of discovery).

    Raises: lark.exceptions.GrammarError on a conflict.
    """
    from lark import Lark
    from lark.grammar import Terminal
    from lark.lexer import PatternStr
    from lark.parsers.lalr_analysis import LALR_Analyzer, Shift

    parser = Lark(grammar, parser="lalr", start=list(STARTS), maybe_placeholders=False)
    configuration = parser.parser.parser.parser_conf  # type: ignore[attr-defined]
    analysis = LALR_Analyzer(configuration)
    analysis.compute_lalr()
    table = analysis.parse_table
    spelling = {
        t.name: t.pattern.value if isinstance(t.pattern, PatternStr) else t.name for t in parser.terminals
    }
    spelling[END] = END

    def symbol(name: str) -> str:
        return spelling.get(name, name)

    terminals = sorted(
        {symbol(s.name) for rule in parser.rules for s in rule.expansion if isinstance(s, Terminal)} | {END}
    )
    rules: dict[object, int] = {}
    for rule in sorted(
        parser.rules, key=lambda r: (r.origin.name, r.order, [s.name for s in r.expansion], r.alias or "")
    ):
        rules[rule] = len(rules)
    listed = [
        [str(rule.origin.name), len(rule.expansion), str(_action(rule))]  # type: ignore[attr-defined]
        for rule in rules
    ]
    numbers: dict[object, int] = {}
    queue: list[object] = []

    def number(state: object) -> int:
        if state not in numbers:
            numbers[state] = len(numbers)
            queue.append(state)
        return numbers[state]

    starts = {start: number(table.start_states[start]) for start in STARTS}
    rows: list[dict[str, int]] = []
    for state in queue:  # grows while it is read
        row = {}
        for name, (action, target) in sorted(table.states[state].items()):
            row[symbol(name)] = number(target) if action is Shift else -(rules[target] + 1)
        rows.append(row)
    ends = {start: numbers[table.end_states[start]] for start in STARTS}
    return json.dumps(
        {"rules": listed, "starts": starts, "ends": ends, "terminals": terminals, "states": rows},
        separators=(",\n", ":"),
        ensure_ascii=False,
    )


def _action(rule: object) -> str:
    if rule.alias:  # type: ignore[attr-defined]
        return str(rule.alias)  # type: ignore[attr-defined]
    single = rule.options.expand1 and len(rule.expansion) == 1  # type: ignore[attr-defined]
    return "" if single else str(rule.origin.name)  # type: ignore[attr-defined]


def module_text(grammar: str) -> str:
    """The text of `_table.py` for a grammar."""
    lines, line = [], ""
    for piece in encode(grammar).splitlines():
        if len(line) + len(piece) > 105:
            lines.append(line)
            line = ""
        line += piece
    lines.append(line)
    body = "\n".join(lines)
    return (
        '"""The parse table of grammar.lark; written by `python -m privspec.language.tables`, never by hand."""\n\n'
        f'TABLE = r"""\n{body}\n"""\n'
    )


if __name__ == "__main__":
    Path(__file__).with_name("_table.py").write_text(module_text(GRAMMAR.read_text("utf-8")), "utf-8")
