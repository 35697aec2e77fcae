"""What is wrong with a file's layout and characters, and what a statement that does not parse has to say of itself.

What such a statement was meant to be is guessed in `mistakes.py`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import Final

from privspec.core.diagnostics import Diagnostic, Label
from privspec.core.records import dataclass, replace
from privspec.core.spans import Source, Span
from privspec.kernel.measures import PURE
from privspec.language import syntax
from privspec.language.automaton import END, KINDS, REFUSED, ParseFailure, Token, is_name, parse_table, run
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
        frozenset({"NAME", "NUMBER", "OVER", "STRING", "DAY", "(", "[", "{", "|", "NORM", "-"}),
        "an expression",
    ),
    (
        frozenset({"+", "-", "*", "/"}),
        frozenset({"+", "-", "*", "/", "@", "^", "²", "'", "[", "(", "."}),
        "an operator",
    ),
    (frozenset({"ranking"}), frozenset({"ranking", "NAME", "NUMBER", "DAY", "(", "[", "{", "-"}), "a domain"),
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
    "MEASURE": f"a measure such as -{PURE.word}",
    "WRT": "wrt",
    "OVER": "E[ or worst[",
    "ADVANTAGE": "advantage(",
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

_MESSAGES: Mapping[str, tuple[str, str, str, str]] = {
    "colon": ("PS0107", "a colon is missing after {word}", "this begins a section", "write {word}:"),
    "unknown_section": ("PS0108", "there is no section {word}", "not a section", "{advice}"),
    "duplicate": (
        "PS0109",
        "the section {word} stands here twice",
        "the second",
        "move these lines under the first header; a further spec of the file begins with a line such as spec part",
    ),
    "open_bracket": (
        "PS0103",
        "this {word} is never closed",
        "a {close} is missing after this",
        "write {close} where it ends; lines are read as one while a bracket is open",
    ),
    "open_string": (
        "PS0112",
        "this quotation has no end on its line",
        'a " is missing',
        'a text in quotes starts and ends on one line: "queries.csv"',
    ),
    "open_doc": (
        "PS0113",
        "the text that begins here never ends",
        'a second """ is missing',
        'close the description with """; nothing after this was read',
    ),
    "doc_place": (
        "PS0114",
        "a description has its place right after the line with spec, and nowhere else",
        "found here",
        "move it there, or begin its lines with # to make it a comment",
    ),
    "second_spec": (
        "PS0129",
        "this spec has a name already",
        "the second",
        "leave one of them out; a further spec of the file follows all lines of this one",
    ),
    "same_name": ("PS0129", "this file has another spec {name}", "the second", "give each spec of a file its own name"),
    "unused_spec": (
        "PS0129",
        "no component is the spec {name}",
        "not used",
        "name it under components, as in first = spec({name}), or put it into a file of its own",
    ),
    "late_spec": ("PS0129", "the line with spec comes first", "too late here", "move it to the top"),
    "line_end": (
        "PS0118",
        "a carriage return stands here without the end of a line",
        "the character {word}",
        "save the file with the line ends of Unix or Windows",
    ),
    "direction": (
        "PS0118",
        "an invisible character here changes the order in which the line is shown",
        "the character {word}",
        "delete it",
    ),
    "character": (
        "PS0118",
        "the character {word} is no part of a text",
        "the character {word}",
        "delete it, or save the file as UTF-8 text",
    ),
    "too_long": (
        "PS0119",
        "the file has {size:,} characters, a spec at most {limit:,}",
        "this file",
        'put large tables into files of their own and read them with csv("...") or npy("...")',
    ),
    "too_deep": (
        "PS0120",
        "this is nested more than {limit} levels deep",
        "starts here",
        "name parts of it as intermediate variables; a long chain of + can be a sum",
    ),
    "many_more": ("PS0134", "and {size} more errors", "the first of them", "fix those above and look again"),
    "empty": (
        "PS0117",
        "there is no section in this file",
        "nothing to read here",
        "a spec has at least variables:, loss: and privacy:; `privspec templates` lists whole ones",
    ),
    "stray": ("PS0122", "this line stands before the first section", "this line belongs to no section", "{advice}"),
    "no_loss": (
        "PS0123",
        "the loss is missing",
        "nothing stands under this header",
        "write what should be small, for instance E[ ||O - y||^2 ], or leave the section out",
    ),
    "losses": (
        "PS0124",
        "there is one loss, and here are {size}",
        "a second one",
        "add them up, with weights if they count differently: a + 3 * b",
    ),
    "no_name": ("PS0130", "the spec has no name", "a name should follow", "for instance: spec shop_queries"),
    "name": (
        "PS0130",
        "a name is one word of letters, digits and _ that starts with a letter",
        "not a name",
        "for instance: spec {better}",
    ),
}
"""By kind: the code, what is wrong, the words under the carets, and what to do."""


def _told(
    source: Source, kind: str, span: Span, other: Span | None = None, notes: tuple[str, ...] = (), **words: object
) -> Diagnostic:
    """The diagnostic of a kind; `other` is the first of two places."""
    code, message, label, advice = (text.format(**words) for text in _MESSAGES[kind])
    labels = [Label(span, label)] + ([] if other is None else [Label(other, "the first", primary=False)])
    return Diagnostic(code, message, tuple(labels), notes, advice, "error", source)


def refused_characters(source: Source) -> Iterator[Diagnostic]:
    """Characters that may stand nowhere, not even in a comment: they would deceive a reader."""
    for match in islice(REFUSED.finditer(source.text), _MAX_REFUSED):
        hidden = unicodedata.category(match[0]) == "Cf"
        kind = "line_end" if match[0] == "\r" else "direction" if hidden else "character"
        yield _told(source, kind, Span(match.start(), match.end()), word=f"U+{ord(match[0]):04X}")


def too_long(source: Source, limit: int) -> Diagnostic:
    """The file is beyond any spec."""
    return _told(source, "too_long", Span(0, 0), size=len(source.text), limit=limit)


def too_deep(source: Source, span: Span, limit: int) -> Diagnostic:
    """A statement that no reader could follow either."""
    return _told(source, "too_deep", _first_line(source, span), limit=limit)


def many_more(source: Source, hidden: Sequence[Diagnostic]) -> Diagnostic:
    """Stands for the errors that are not listed."""
    told = _told(source, "many_more", Span(0, 0), size=len(hidden))
    return replace(told, labels=tuple(replace(label, text=told.labels[0].text) for label in hidden[0].labels[:1]))


def empty(source: Source) -> Diagnostic:
    """Nothing but comments."""
    return _told(source, "empty", Span(0, 0))


def stray(source: Source, statements: Sequence[Span]) -> Diagnostic:
    """Lines before the first header."""
    word = next(iter(source.slice(statements[0]).split()), "")
    advice = "begin with the header of a section, for instance variables:"
    if word in KINDS:
        advice = "write variables: on the line before"
    elif word.lower() == "spec":
        advice = "write the name of the spec after the word spec"
    elif word.startswith('"'):
        advice = 'a description stands between three quotes on both sides, """ ... """, after the line with spec'
    more = len(statements) - 1
    notes = (f"so do {more} lines after it" if more > 1 else "so does the line after it",) if more else ()
    return _told(source, "stray", _first_line(source, statements[0]), None, notes, advice=advice)


def loss_count(source: Source, header: Span, statements: Sequence[Span]) -> Diagnostic:
    """`loss` without its expression, or with several."""
    if not statements:
        return _told(source, "no_loss", header)
    first, second = (_first_line(source, span) for span in statements[:2])
    return _told(source, "losses", second, first, size=len(statements))


def bad_title(source: Source, spec: Span, title: Span) -> Diagnostic:
    """The word `spec` without a proper name."""
    if not source.slice(title):
        return _told(source, "no_name", spec)
    better = re.sub(r"[\W²³¹]+", "_", source.slice(title)).strip("_")
    return _told(source, "name", title, better=better if is_name(better) else "my_spec")


def within(source: Source, spec: syntax.Spec, *, again: bool) -> Diagnostic:
    """A further spec of a file whose name is another's, or that nothing in it uses."""
    span = _first_line(source, spec.span)
    return _told(source, "same_name" if again else "unused_spec", span, name=spec.name)


def flaw(source: Source, item: Flaw) -> Diagnostic:
    """The diagnostic of a flaw of the layout."""
    better = guess(item.word) if item.kind == "unknown_section" else None
    advice = "the sections are " + ", ".join(SECTIONS) if better is None else f"write {better}:"
    if item.word == "spec":
        advice = "the name of a spec follows without a colon: spec shop_queries"
    span = _first_line(source, item.span) if item.kind == "doc_place" else item.span
    return _told(source, item.kind, span, item.other, word=item.word, close=OPENERS.get(item.word), advice=advice)


def _first_line(source: Source, span: Span) -> Span:
    """A span cut at the end of its first line, and never empty."""
    end = source.text.find("\n", span.start, span.end)
    return Span(span.start, max(span.end if end < 0 else end, min(span.start + 1, len(source.text))))
