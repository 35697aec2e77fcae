"""Runs the parse table over one statement: no recursion, tokens found as the state allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from privspec.language.tables import END, Table
from privspec.language.tokens import Token, next_token


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


def survives(table: Table, stack: list[int] | tuple[int, ...], terminal: str) -> bool:
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


def expected(table: Table, stack: list[int] | tuple[int, ...]) -> frozenset[str]:
    """All terminals that can stand next."""
    row = table.states[stack[-1]]
    return frozenset(t for t in row if t in table.terminals and survives(table, stack, t))


def run(table: Table, rule_name: str, text: str, start: int, end: int, actions: dict[str, Action]) -> tuple[Any, int]:
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
            before = tuple(seen)
            raise ParseFailure(token, before, expected(table, stack), tuple(stack))
        if token.type == END:
            return values[0], len(seen)
        seen.append(token)
        position = token.end


def _feed(
    table: Table, stack: list[int], values: list[Any], token: Token, goal: int, actions: dict[str, Action]
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
