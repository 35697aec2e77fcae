"""What is wrong with a file's layout and characters, and what a statement that does not parse has to say of itself.

What such a statement was meant to be is guessed in `mistakes.py`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Final

from privspec.core.diagnostics import Diagnostic, Label
from privspec.core.spans import Source, Span
from privspec.language import syntax
from privspec.language.automaton import END, REFUSED, ParseFailure, Token, is_name, parse_table, run
from privspec.language.build import ACTIONS
from privspec.language.layout import SECTIONS, Flaw, guess

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
                tree, _ = run(parse_table(), rule, self.source.text, self.span.start, self.span.end, ACTIONS)
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


_GROUPS: Final[tuple[tuple[frozenset[str], frozenset[str], str], ...]] = (
    # if all of the first are expected, say the words once for all of the second
    (
        frozenset({"NAME", "NUMBER", "OVER"}),
        frozenset({"NAME", "NUMBER", "OVER", "STRING", "(", "[", "{", "|", "NORM", "-"}),
        "an expression",
    ),
    (
        frozenset({"+", "-", "*", "/"}),
        frozenset({"+", "-", "*", "/", "@", "^", "²", "'", "[", "(", "."}),
        "an operator",
    ),
    (frozenset({"ranking"}), frozenset({"ranking", "NAME", "NUMBER", "(", "[", "{", "-"}), "a domain"),
    (
        frozenset({"replacing", "adding"}),
        frozenset({"replacing", "adding", "distance", "seen"}),
        "replacing, adding or removing, distance, or seen by",
    ),
)

_POSTFIX: Final = frozenset({".", "["})

_WORDS: Final = {
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a text in quotes",
    "KIND": "input, constant, intermediate, output or choose",
    "MEASURE": "a measure such as -DP",
    "WRT": "wrt",
    "OVER": "E[ or worst[",
    "NORM": "||",
    "NORM_P": "||_1",
    "IN": "in",
    ",": "a comma",
    END: "the end of the line",
}


def plain(terminal: str) -> str:
    """A terminal as a reader would call it."""
    return _WORDS.get(terminal, terminal)


def plain_list(expected: Set[str], most: int = 5) -> str:
    """What may stand somewhere: `a, b or c`; groups are named as one."""
    left = set(expected)
    found: list[str] = []
    for key, members, words in _GROUPS:
        if key <= left:
            found.append(words)
            left -= members
    if "NORM" in left:
        left.discard("NORM_P")
    if left > _POSTFIX:
        left -= _POSTFIX  # true behind every name, and hardly ever what is missing
    rest = sorted(plain(t) for t in left if t != END)
    found = [w for w in found if w != "an operator"] + rest + (["an operator"] if "an operator" in found else [])
    if END in left:
        found.append(plain(END))
    if len(found) > most:
        found = [*found[: most - 1], "something else"]
    if len(found) <= 1:
        return "".join(found) or "nothing more"
    return ", ".join(found[:-1]) + " or " + found[-1]


_MAX_REFUSED = 20


def _error(
    code: str, source: Source, message: str, *labels: Label, advice: str | None = None, notes: tuple[str, ...] = ()
) -> Diagnostic:
    return Diagnostic(code, message, labels, notes, advice, "error", source)


def refused_characters(source: Source) -> Iterator[Diagnostic]:
    """Characters that may stand nowhere, not even in a comment: they would deceive a reader."""
    for count, match in enumerate(REFUSED.finditer(source.text)):
        if count == _MAX_REFUSED:
            return
        span = Span(match.start(), match.end())
        point = f"U+{ord(match[0]):04X}"
        label = Label(span, f"the character {point}")
        if match[0] == "\r":
            message = "a carriage return stands here without the end of a line"
            yield _error("PS0118", source, message, label, advice="save the file with the line ends of Unix or Windows")
        elif unicodedata.category(match[0]) == "Cf":
            message = "an invisible character here changes the order in which the line is shown"
            yield _error("PS0118", source, message, label, advice="delete it")
        else:
            message = f"the character {point} is no part of a text"
            yield _error("PS0118", source, message, label, advice="delete it, or save the file as UTF-8 text")


def too_long(source: Source, limit: int) -> Diagnostic:
    """The file is beyond any spec."""
    return _error(
        "PS0119",
        source,
        f"the file has {len(source.text):,} characters, a spec at most {limit:,}",
        Label(Span(0, 0), "this file"),
        advice='put large tables into files of their own and read them with csv("...") or npy("...")',
    )


def too_deep(source: Source, span: Span, limit: int) -> Diagnostic:
    """A statement that no reader could follow either."""
    return _error(
        "PS0120",
        source,
        f"this is nested more than {limit} levels deep",
        Label(_first_line(source, span), "starts here"),
        advice="name parts of it as intermediate variables; a long chain of + can be a sum",
    )


def many_more(source: Source, hidden: Sequence[Diagnostic]) -> Diagnostic:
    """Stands for the errors that are not listed."""
    labels = (Label(hidden[0].labels[0].span, "the first of them"),) if hidden[0].labels else ()
    message = f"and {len(hidden)} more errors"
    return _error("PS0134", source, message, *labels, advice="mend those above and look again")


def empty(source: Source) -> Diagnostic:
    """Nothing but comments."""
    return _error(
        "PS0117",
        source,
        "there is no section in this file",
        Label(Span(0, 0), "nothing to read here"),
        advice="a spec has at least variables:, loss: and privacy:; `privspec templates` lists whole ones",
    )


def stray(source: Source, statements: Sequence[Span]) -> Diagnostic:
    """Lines before the first header."""
    first = statements[0]
    label = Label(_first_line(source, first), "this line belongs to no section")
    word = next(iter(source.slice(first).split()), "")
    help_text = "begin with the header of a section, for instance variables:"
    if word in {"input", "constant", "intermediate", "output", "choose"}:
        help_text = "write variables: on the line before"
    elif word.lower() == "spec":
        help_text = "write the name of the spec after the word spec"
    elif word.startswith('"'):
        help_text = 'a description stands between three quotes on both sides, """ ... """, after the line with spec'
    more = len(statements) - 1
    notes = (f"so do {more} lines after it" if more > 1 else "so does the line after it",) if more else ()
    return _error("PS0122", source, "this line stands before the first section", label, advice=help_text, notes=notes)


def loss_count(source: Source, header: Span, statements: Sequence[Span]) -> Diagnostic:
    """`loss` without its expression, or with several."""
    if not statements:
        return _error(
            "PS0123",
            source,
            "the loss is missing",
            Label(header, "nothing stands under this header"),
            advice="write what should be small, for instance E[ ||O - y||^2 ], or leave the section out",
        )
    return _error(
        "PS0124",
        source,
        f"there is one loss, and here are {len(statements)}",
        Label(_first_line(source, statements[1]), "a second one"),
        Label(_first_line(source, statements[0]), "the first", primary=False),
        advice="add them up, with weights if they count differently: a + 3 * b",
    )


def bad_title(source: Source, spec: Span, title: Span) -> Diagnostic:
    """The word `spec` without a proper name."""
    text = source.slice(title)
    if not text:
        return _error(
            "PS0130",
            source,
            "the spec has no name",
            Label(spec, "a name should follow"),
            advice="for instance: spec shop_queries",
        )
    better = re.sub(r"[\W²³¹]+", "_", text).strip("_")
    better = better if is_name(better) else "my_spec"
    return _error(
        "PS0130",
        source,
        "a name is one word of letters, digits and _ that starts with a letter",
        Label(title, "not a name"),
        advice=f"for instance: spec {better}",
    )


def flaw(source: Source, item: Flaw) -> Diagnostic:
    """The diagnostic of a flaw of the layout."""
    return _FLAWS[item.kind](source, item)


def _first_line(source: Source, span: Span) -> Span:
    """A span cut at the end of its first line, and never empty."""
    end = source.text.find("\n", span.start, span.end)
    stop = span.end if end < 0 else end
    return Span(span.start, max(stop, min(span.start + 1, len(source.text))))


def _colon(source: Source, item: Flaw) -> Diagnostic:
    return _error(
        "PS0107",
        source,
        f"a colon is missing after {item.word}",
        Label(item.span, "this begins a section"),
        advice=f"write {item.word}:",
    )


def _unknown_section(source: Source, item: Flaw) -> Diagnostic:
    better = guess(item.word)
    if item.word == "spec":
        help_text: str = "the name of a spec follows without a colon: spec shop_queries"
    elif better is not None:
        help_text = f"write {better}:"
    else:
        help_text = "the sections are " + ", ".join(SECTIONS)
    return _error(
        "PS0108", source, f"there is no section {item.word}", Label(item.span, "not a section"), advice=help_text
    )


def _duplicate(source: Source, item: Flaw) -> Diagnostic:
    labels = [Label(item.span, "the second")]
    if item.other is not None:
        labels.append(Label(item.other, "the first", primary=False))
    return _error(
        "PS0109",
        source,
        f"the section {item.word} stands here twice",
        *labels,
        advice="move these lines under the first header; each section appears once",
    )


def _open_bracket(source: Source, item: Flaw) -> Diagnostic:
    close = {"(": ")", "[": "]", "{": "}"}[item.word]
    return _error(
        "PS0103",
        source,
        f"this {item.word} is never closed",
        Label(item.span, f"a {close} is missing after this"),
        advice=f"write {close} where it ends; lines are read as one while a bracket is open",
    )


def _open_string(source: Source, item: Flaw) -> Diagnostic:
    return _error(
        "PS0112",
        source,
        "this quotation has no end on its line",
        Label(item.span, 'a " is missing'),
        advice='a text in quotes starts and ends on one line: "queries.csv"',
    )


def _open_doc(source: Source, item: Flaw) -> Diagnostic:
    return _error(
        "PS0113",
        source,
        "the text that begins here never ends",
        Label(item.span, 'a second """ is missing'),
        advice='close the description with """; nothing after this was read',
    )


def _doc_place(source: Source, item: Flaw) -> Diagnostic:
    return _error(
        "PS0114",
        source,
        "a description has its place right after the line with spec, and nowhere else",
        Label(_first_line(source, item.span), "found here"),
        advice="move it there, or begin its lines with # to make it a comment",
    )


def _second_spec(source: Source, item: Flaw) -> Diagnostic:
    labels = [Label(item.span, "the second")]
    if item.other is not None:
        labels.append(Label(item.other, "the first", primary=False))
    return _error("PS0129", source, "a file holds one spec", *labels, advice="put the other into a file of its own")


def _late_spec(source: Source, item: Flaw) -> Diagnostic:
    return _error(
        "PS0129",
        source,
        "the line with spec comes first",
        Label(item.span, "too late here"),
        advice="move it to the top",
    )


_FLAWS: dict[str, Callable[[Source, Flaw], Diagnostic]] = {
    "colon": _colon,
    "unknown_section": _unknown_section,
    "duplicate": _duplicate,
    "open_bracket": _open_bracket,
    "open_string": _open_string,
    "open_doc": _open_doc,
    "doc_place": _doc_place,
    "second_spec": _second_spec,
    "late_spec": _late_spec,
}
