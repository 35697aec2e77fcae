"""A statement that does not parse, with what its diagnosis needs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from privspec.core.diagnostics import Diagnostic, Label
from privspec.core.spans import Source, Span
from privspec.language import syntax, tables
from privspec.language.automaton import ParseFailure, run
from privspec.language.build import ACTIONS
from privspec.language.layout import SECTIONS
from privspec.language.tables import END
from privspec.language.tokens import Token

OPERATORS = frozenset({"+", "-", "*", "/", "@", "^"})
CLOSERS = {")": "(", "]": "[", "}": "{"}
OPENERS = {"(": ")", "[": "]", "{": "}"}

_VALUE = re.compile(r"[^\W\d_]\w*[ \t]*=[ \t]*-?[0-9][0-9.eE+-]*")
_SENTENCES = ("variable", "requirement", "fairness", "option")
_OTHERS = {
    "parameter": _SENTENCES,
    "party": _SENTENCES,
    "component": _SENTENCES,
    "variable": ("requirement", "fairness", "option", "background"),
    "background": _SENTENCES,
    "loss": (*_SENTENCES, "target", "background"),
    "target": (*_SENTENCES, "background"),
    "requirement": ("variable", "fairness", "option", "target", "background"),
    "fairness": ("variable", "option", "target", "background"),
    "option": ("variable", "requirement", "fairness", "target", "background"),
}
"""Where else a line of a section may belong; what would accept nearly anything is left out."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A statement with the token at which it stops making sense."""

    source: Source
    rule: str
    span: Span
    token: Token
    seen: tuple[Token, ...]
    expected: frozenset[str]

    @property
    def place(self) -> Span:
        """What to point at: the token, or the last one when the statement just ends."""
        if self.token.type != END:
            return self.token.span
        return self.seen[-1].span if self.seen else self.span

    @property
    def section(self) -> str:
        """The section in which the statement stands."""
        return _section(self.rule)

    @property
    def rest(self) -> str:
        """The text from the token on."""
        return self.source.text[self.token.start : self.span.end]

    @property
    def last(self) -> Token | None:
        """The token before."""
        return self.seen[-1] if self.seen else None

    def open_brackets(self) -> list[Token]:
        """The brackets that are open at the token, outermost first."""
        found: list[Token] = []
        for token in self.seen:
            if token.type in OPENERS:
                found.append(token)
            elif token.type in CLOSERS and found:
                found.pop()
        return found

    def error(
        self, code: str, message: str, label: str, advice: str | None = None, at: Span | None = None
    ) -> Diagnostic:
        """A diagnostic that points at the place."""
        return Diagnostic(code, message, (Label(at or self.place, label),), (), advice, "error", self.source)

    def elsewhere(self) -> Diagnostic | None:
        """The diagnostic of a line that would be right in another section, if it would."""
        if self.span.end - self.span.start > 2000:
            return None
        text = self.source.slice(self.span)
        if self.rule not in {"parameter", "party"} and _VALUE.fullmatch(text):
            message = f"this is no line of the section {self.section}"
            return self.error("PS0125", message, "gives a value", "move it under parameters:", at=self.span)
        for rule in _OTHERS[self.rule]:
            try:
                tree, _ = run(tables.load(), rule, self.source.text, self.span.start, self.span.end, ACTIONS)
            except ParseFailure:
                continue
            if isinstance(tree, syntax.Membership):
                continue
            section = _section(rule)
            message = f"this is no line of the section {self.section}"
            label = f"reads like a line of {section}"
            return self.error("PS0125", message, label, f"move it under {section}:", at=self.span)
        return None


def _section(rule: str) -> str:
    return next(name for name, its_rule in SECTIONS.items() if its_rule == rule)
