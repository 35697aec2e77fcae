"""The parse table of `grammar.lark`, loaded without Lark.

Importing Lark and building the table costs more than a whole `privspec check` may take, and a cache
in a user's folder can be missing, read-only or forged, so the table is a module of the package:
`grammar.py` writes it, a test compares it with the grammar.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

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
    terminals are keyed by their own text, the others by their name in the grammar,
    nonterminals as `<name>`.
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
    """The table written by `grammar.encode`."""
    data = json.loads(text)
    return Table(
        rules=tuple(Rule(*rule) for rule in data["rules"]),
        states=tuple(data["states"]),
        starts=data["starts"],
        ends=data["ends"],
        terminals=frozenset(data["terminals"]),
    )
