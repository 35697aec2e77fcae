"""Runs the parse table of `grammar.lark` over one statement: no recursion, tokens found as the state allows.

Importing Lark and building the table costs more than a whole `privspec check` may take, and a cache
in a user's folder can be missing, read-only or forged, so the table, grammar.json, is part of the package:
`grammar.py` writes it, a test compares it with the grammar.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from privspec.core.records import dataclass
from privspec.core.spans import Span
from privspec.kernel.measures import PATTERN
from privspec.language.layout import SECTIONS

STARTS = tuple(SECTIONS.values())
END = "$END"


@dataclass(frozen=True, slots=True)
class Production:
    """A production: the nonterminal it yields, how many symbols it takes, and the name of its action."""

    head: str
    size: int
    action: str


@dataclass(frozen=True, slots=True)
class ParseTable:
    """An LALR(1) table.

    `states[s][symbol]` is t >= 0 for "shift (or go) to t" and -(r + 1) for "reduce by rule r"; literal
    terminals are keyed by their own text, the others by their name in the grammar,
    nonterminals as `<name>`.
    """

    rules: Sequence[Production]
    states: Sequence[Mapping[str, int]]
    starts: Mapping[str, int]
    ends: Mapping[str, int]
    terminals: frozenset[str]


@cache
def parse_table() -> ParseTable:
    """The table of the package."""
    return decode(Path(__file__).with_name("grammar.json").read_text("utf-8"))


def decode(text: str) -> ParseTable:
    """The table written by `grammar.encode`."""
    data = json.loads(text)
    return ParseTable(
        rules=tuple(Production(*rule) for rule in data["rules"]),
        states=tuple(data["states"]),
        starts=data["starts"],
        ends=data["ends"],
        terminals=frozenset(data["terminals"]),
    )


NAMES = {
    "ε": "epsilon", "ϵ": "epsilon", "δ": "delta", "μ": "mu", "µ": "mu", "ρ": "rho", "α": "alpha",
    "ℝ": "real", "𝔼": "E",
}  # fmt: skip
"""Letters that are a name by themselves; a letter inside a longer name stays as it is."""

SIGNS = {"∈": "IN", "≤": "<=", "≥": ">=", "≠": "!=", "∼": "~", "·": "*", "⊤": "'", "‑": "-", "‐": "-", "−": "-"}
"""Unicode signs and the tokens they stand for."""

KINDS = frozenset({"input", "constant", "intermediate", "output", "choose"})

MAX_EXPONENT = 400
MAX_DIGITS = 400

REFUSED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]|\r(?!\n)"
)
"""Characters that may stand nowhere: controls, changes of direction, halves of characters, lone carriage returns."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)+")
_WORD = re.compile(r"[^\W\d_²³¹][^\W²³¹]*")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:00)?(?![\w-])")
_STRING = re.compile(r'"[^"\n]*"')
_MEASURE = re.compile(rf"[-‐‑]({PATTERN})\b")
_WRT = re.compile(r"wrt\b|w\.r\.t\.|with +respect +to\b")
_ADVANTAGE = re.compile(r"advantage(?= *\()")
_OVER = re.compile(r"([E𝔼]|worst)(?= *\[)")
_NORM_P = re.compile(r"(?:\|\||‖)_(1|2|inf)\b")
_SIGN = re.compile(r"==|\*\*|!=|<>|=<|=>|<-|->|:=|&&|\.\.|<=|>=|[-+*/@^²'=~,.()\[\]{}<>:;!]")


class Token(NamedTuple):
    """A terminal with the text it stands for and its place.

    `type` is a key of the parse table, "STRANGE" for a character that begins no token, "TOO_LONG" for a
    number beyond any use, or a sign that no rule knows (`==`), which every state refuses.
    """

    type: str
    value: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


def is_name(text: str) -> bool:
    """Whether a text is one name."""
    return _WORD.fullmatch(text) is not None


def skip_blank(text: str, position: int, end: int) -> int:
    """The next position that is neither white space nor comment."""
    match = _BLANK.match(text, position, end)
    return match.end() if match else position


def next_token(
    text: str, position: int, end: int, accepted: Container[str], truly: Callable[[str], bool]
) -> Token | None:
    """The token at or after `position`, None at the end.

    `accepted` holds the terminals of the parser's state, `truly` tells whether a terminal would survive the
    reductions it triggers; only `||` needs to know, which closes either one norm or two absolute values.
    """
    start = skip_blank(text, position, end)
    if start >= end:
        return None
    first = text[start]
    if first == "|" or first == "‖":
        return _bar(text, start, end, accepted, truly)
    if first in "-‐‑" and "MEASURE" in accepted and (match := _MEASURE.match(text, start, end)):
        return Token("MEASURE", match[1], start, match.end())
    if first in "0123456789":
        day = DAY.match(text, start, end) if "DAY" in accepted else None
        return _number(text, start, end) if day is None else Token("DAY", day[0], start, day.end())
    if match := _WORD.match(text, start, end):
        return _word(text, start, end, match[0], accepted)
    if first in SIGNS:
        return Token(SIGNS[first], first, start, start + 1)
    if match := _STRING.match(text, start, end):
        return Token("STRING", match[0][1:-1], start, match.end())
    if match := _SIGN.match(text, start, end):
        return Token(match[0], match[0], start, match.end())
    return Token("STRANGE", first, start, start + 1)


def _word(text: str, start: int, end: int, word: str, accepted: Container[str]) -> Token:
    if "WRT" in accepted and (match := _WRT.match(text, start, end)):
        return Token("WRT", "wrt", start, match.end())
    if "OVER" in accepted and (match := _OVER.match(text, start, end)):
        return Token("OVER", NAMES.get(match[1], match[1]), start, match.end())
    if "ADVANTAGE" in accepted and (match := _ADVANTAGE.match(text, start, end)):
        return Token("ADVANTAGE", match[0], start, match.end())
    stop = start + len(word)
    if word in KINDS and "KIND" in accepted:
        return Token("KIND", word, start, stop)
    if word == "in" and "IN" in accepted:
        return Token("IN", word, start, stop)
    if word in accepted and word.islower():
        return Token(word, word, start, stop)
    return Token("NAME", NAMES.get(word, word), start, stop)


def _number(text: str, start: int, end: int) -> Token:
    match = _NUMBER.match(text, start, end)
    assert match is not None
    digits = match[0]
    _, _, exponent = digits.lower().partition("e")
    size = abs(int(exponent)) if 0 < len(exponent) < 6 else len(exponent)
    far = len(exponent) >= 6 or size > MAX_EXPONENT or len(digits) > MAX_DIGITS
    return Token("TOO_LONG" if far else "NUMBER", digits, start, match.end())


def _bar(text: str, start: int, end: int, accepted: Container[str], truly: Callable[[str], bool]) -> Token:
    if "NORM_P" in accepted and (match := _NORM_P.match(text, start, end)) and truly("NORM_P"):
        return Token("NORM_P", match[1], start, match.end())
    if text[start] == "‖":
        return Token("NORM", "||", start, start + 1)
    if text.startswith("||", start, end) and (truly("NORM") or not truly("|")):
        return Token("NORM", "||", start, start + 2)
    return Token("|", "|", start, start + 1)


class Inline(list[Any]):
    """What a helper rule collected; its items become children of the rule around it."""


@dataclass(frozen=True, slots=True)
class ParseFailure(Exception):  # noqa: N818 - a stop inside the front end, turned into a diagnostic there
    """The parser met a token that no continuation allows.

    `seen` are the tokens before it, `expected` the terminals that could have stood there, `stack` the
    states (to ask the table about other continuations).
    """

    token: Token
    seen: tuple[Token, ...]
    expected: frozenset[str]
    stack: tuple[int, ...]


Action = Callable[[list[Any]], Any]


def survives(table: ParseTable, stack: list[int] | tuple[int, ...], terminal: str) -> bool:
    """Whether a terminal can be shifted after the reductions it triggers, or the end be reached."""
    height = len(stack)  # what is left of the stack, under the states pushed in thought
    pushed: list[int] = []
    while True:
        step = table.states[pushed[-1] if pushed else stack[height - 1]].get(terminal)
        if step is None:
            return False
        if step >= 0:
            return True
        rule = table.rules[-step - 1]
        height -= max(0, rule.size - len(pushed))
        del pushed[max(0, len(pushed) - rule.size) :]
        target = table.states[pushed[-1] if pushed else stack[height - 1]][rule.head]
        pushed.append(target)
        if terminal == END and target in table.ends.values():
            return True


def expected(table: ParseTable, stack: list[int] | tuple[int, ...]) -> frozenset[str]:
    """All terminals that can stand next."""
    row = table.states[stack[-1]]
    return frozenset(t for t in row if t in table.terminals and survives(table, stack, t))


def run(
    table: ParseTable, rule_name: str, text: str, start: int, end: int, actions: dict[str, Action]
) -> tuple[Any, int]:
    """The tree of the statement in `text[start:end]`, read by the rule `rule_name`, and its number of tokens.

    Raises: ParseFailure at the first token that fits nothing; its end token has the type `$END`.
    """
    stack = [table.starts[rule_name]]
    values: list[Any] = []
    seen: list[Token] = []
    goal = table.ends[rule_name]
    position = start
    while True:
        row = table.states[stack[-1]]
        token = next_token(text, position, end, row, lambda terminal: survives(table, stack, terminal))
        if token is None:
            token = Token(END, "", end, end)
        if not _feed(table, stack, values, token, goal, actions):
            raise ParseFailure(token, tuple(seen), expected(table, stack), tuple(stack))
        if token.type == END:
            return values[0], len(seen)
        seen.append(token)
        position = token.end


class Reached(NamedTuple):
    """What the parser knows at a place inside a statement: the tokens before it, and the terminals that may follow.

    `callable`: whether a name that stands here may be a function's.
    """

    seen: tuple[Token, ...]
    expected: frozenset[str]
    callable: bool


def reach(table: ParseTable, rule_name: str, text: str, start: int, end: int) -> Reached | None:
    """What may follow the unfinished statement in `text[start:end]`; None where it cannot be read up to there."""
    stack, values, seen = [table.starts[rule_name]], list[Any](), list[Token]()
    position, actions = start, _Nothing()
    while True:
        row = table.states[stack[-1]]
        token = next_token(text, position, end, row, lambda terminal: survives(table, stack, terminal))
        if token is None:
            break
        if not _feed(table, stack, values, token, -1, actions):
            return None
        seen.append(token)
        position = token.end
    found = expected(table, stack)
    called = "NAME" in found and _feed(table, stack, values, Token("NAME", "f", end, end), -1, actions)
    return Reached(tuple(seen), found, called and "(" in expected(table, stack))


class _Nothing(dict[str, Action]):
    """Actions that build nothing."""

    def __missing__(self, action: str) -> Action:
        return len


def _feed(
    table: ParseTable, stack: list[int], values: list[Any], token: Token, goal: int, actions: dict[str, Action]
) -> bool:
    # A failing lookahead must not reduce first: the diagnosis wants the stack as it was.
    if not survives(table, stack, token.type):
        return False
    while True:
        step = table.states[stack[-1]][token.type]
        if step >= 0:
            stack.append(step)
            values.append(token)
            return True
        rule = table.rules[-step - 1]
        cut = len(stack) - rule.size
        children = values[cut - 1 :]
        del stack[cut:], values[cut - 1 :]
        stack.append(table.states[stack[-1]][rule.head])
        values.append(_reduced(rule.action, children, actions))
        if token.type == END and stack[-1] == goal:
            return True


def _reduced(action: str, children: list[Any], actions: dict[str, Action]) -> Any:
    if not action:
        return children[0]
    collects = action.startswith("_") or actions[action] is Inline
    # A helper rule repeats itself on its left: extending that list keeps long lists linear.
    flat = children[0] if collects and isinstance(children[0], Inline) else Inline()
    for child in children[1:] if flat is children[0] else children:
        if isinstance(child, Inline):
            flat.extend(child)
        else:
            flat.append(child)
    return flat if collects else actions[action](flat)
