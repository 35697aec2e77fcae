"""Sections, statements and comments: where each begins and ends, before any statement is read.

A statement ends at the end of its line unless a bracket is open; the header of a section at the start of
a line ends it in any case. So every statement can be parsed, and fail, by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from privspec.core.records import dataclass, field
from privspec.core.spans import Span

SECTIONS: Mapping[str, str] = {
    "parameters": "parameter",
    "parties": "party",
    "components": "component",
    "variables": "variable",
    "background": "background",
    "loss": "loss",
    "accuracy": "target",
    "privacy": "requirement",
    "fairness": "fairness",
    "options": "option",
}
"""Every section and the grammar rule of its statements, in the canonical order."""

_HEADER = re.compile(r"[ \t]*([^\W\d][\w-]*(?:[ \t]+[^\W\d][\w-]*){0,2})[ \t]*:(?!=)")
_BARE = re.compile(r"[ \t]*(" + "|".join(SECTIONS) + r")(?:[ \t]*(?=\r?\n|\Z|#)|[ \t]+(?=[^\W\d]|[(0-9|‖]))")
_NOT_BARE = re.compile(r"[ \t]*\w+[ \t]+(in|has|is|are)\b")
_SPEC = re.compile(r"[ \t]*spec(?![\w])[ \t]*")
_LATE_SPEC = re.compile(r"[ \t]*spec[ \t]+(?=[^\W\d]\w*[ \t]*(?:#|\r?\n|\Z))")
_STEP = re.compile(r'"""|"[^"\n]*"|"|#[^\n]*|\n|[([{]|[)\]}]|[^"#\n()\[\]{}]+')


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment with its `#`; `own_line` if nothing stands before it on its line."""

    span: Span
    own_line: bool


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something wrong with the layout: what (a key of the messages in `mistakes.py`) and where."""

    kind: str
    span: Span
    word: str = ""
    other: Span | None = None


@dataclass(slots=True)
class Section:
    """A header and the places of its statements; `name` is None where the word is no section."""

    name: str | None
    header: Span
    statements: list[Span] = field(default_factory=list)


@dataclass(slots=True)
class Layout:
    """A file cut into pieces.

    `title` is what follows the word `spec`, `doc` the text between triple quotes, with them; `stray` are
    statements before the first section; `within` are the specs that follow in the same file, to be its parts. All
    comments and flaws of a file stand in its first layout.
    """

    spec: Span | None = None
    title: Span | None = None
    doc: Span | None = None
    sections: list[Section] = field(default_factory=list)
    stray: list[Span] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    flaws: list[Flaw] = field(default_factory=list)
    within: list[Layout] = field(default_factory=list)


def guess(word: str) -> str | None:
    """The section that a misspelt header, or one in other words, means."""
    from privspec.core.suggest import nearest
    from privspec.language.meanings import SECTIONS as SENSES

    for part in word.lower().split():
        if part in SECTIONS:
            return part
    return SENSES.get(word.lower()) or nearest(word, SECTIONS)


def lay_out(text: str) -> Layout:
    """The pieces of a text; never fails, what is wrong is listed in `flaws`."""
    return _Scanner(text).scan()


class _Scanner:
    """One pass over the text; the open statement is `first..last`, None when between statements."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.whole = self.layout = Layout()
        self.brackets: list[int] = []
        self.first: int | None = None
        self.last = 0
        self.broken = False
        self.position = 0

    def scan(self) -> Layout:
        text, size = self.text, len(self.text)
        if text.startswith("\ufeff"):
            self.position = 1
        at_line_start = True
        while self.position < size:
            if at_line_start and self._line_start():
                at_line_start = text[self.position - 1] == ":"
                continue
            at_line_start = False
            match = _STEP.match(text, self.position)
            assert match is not None
            piece, start = match[0], self.position
            self.position = match.end()
            if piece == "\n":
                at_line_start = True
                if not self.brackets:
                    self._close()
            elif piece[0] == "#":
                self._comment(start, match.end())
            elif piece == '"""':
                self._doc(start)
            elif piece == '"':
                self._open_string(start)
            else:
                self._take(piece, start, match.end())
        self._close()
        if self.whole.spec is None and not self.layout.sections and self.layout in self.whole.within:
            # no further spec, but the name of the one above
            self.whole.within.remove(self.layout)
            self.whole.flaws.append(Flaw("late_spec", self.layout.spec or Span(0, 0)))
        return self.whole

    def _line_start(self) -> bool:
        """Handle a section header or the `spec` line, if one begins here."""
        text, position = self.text, self.position
        if (header := _HEADER.match(text, position)) and self._is_header(header):
            self._close()
            self._section(header[1], Span(header.start(1), header.end()))
            self.position = header.end()
            return True
        if not self.brackets and (bare := _BARE.match(text, position)) and not _NOT_BARE.match(text, position):
            section = self.layout.sections[-1] if self.layout.sections else None
            if section is None or section.name != "loss" or section.statements:
                self._close()
                span = Span(bare.start(1), bare.end(1))
                self.whole.flaws.append(Flaw("colon", span, bare[1]))
                self._section(bare[1], span)
                self.position = bare.end(1)
                return True
        pattern = _LATE_SPEC if self.layout.sections else _SPEC
        if not self.brackets and (spec := pattern.match(text, position)):
            self._close()
            self._spec_line(spec)
            return True
        return False

    def _is_header(self, match: re.Match[str]) -> bool:
        """Whether `words:` is meant as a header, perhaps misspelt, and not as `name: value`."""
        word = match[1]
        if word in SECTIONS or word == "spec":
            return True
        from privspec.language.meanings import SECTIONS as SENSES

        # other words for a section are words for values, too: `  cost: 3` is a line, `cost:` at the margin a header
        margin = match.start(1) == match.start()
        if guess(word) is not None and (margin or word.lower() not in SENSES):
            return True
        end = self.text.find("\n", match.end())
        rest = self.text[match.end() : end if end >= 0 else len(self.text)].partition("#")[0]
        return " " not in word and not rest.strip() and not self.brackets

    def _spec_line(self, match: re.Match[str]) -> None:
        layout, text = self.layout, self.text
        end = text.find("\n", match.end())
        end = len(text) if end < 0 else end
        comment = text.find("#", match.end(), end)
        quotes = text.find('"""', match.end(), comment if comment >= 0 else end)
        if quotes >= 0:
            comment, end = -1, quotes
        title_end = comment if comment >= 0 else end
        title = text[match.end() : title_end].rstrip()
        word = Span(match.start() + len(match[0]) - len(match[0].lstrip()), match.start() + len(match[0].rstrip()))
        if layout.sections:
            layout = self.layout = Layout()
            self.whole.within.append(layout)
        elif layout.spec is not None:
            self.whole.flaws.append(Flaw("second_spec", word, other=layout.spec))
        elif layout.stray:
            self.whole.flaws.append(Flaw("late_spec", word))
        layout.spec = word
        layout.title = Span(match.end(), match.end() + len(title))
        if comment >= 0:
            self._comment(comment, end)
        self.position = end

    def _section(self, word: str, span: Span) -> None:
        layout = self.layout
        if word in SECTIONS:
            before = next((s for s in layout.sections if s.name == word), None)
            if before is not None and not any(flaw.kind == "duplicate" for flaw in self.whole.flaws):
                self.whole.flaws.append(Flaw("duplicate", span, word, before.header))
            layout.sections.append(Section(word, span))
            return
        self.whole.flaws.append(Flaw("unknown_section", span, word))
        layout.sections.append(Section(guess(word), span))

    def _comment(self, start: int, end: int) -> None:
        if self.text[end - 1] == "\r":
            end -= 1
        before = self.text[self.text.rfind("\n", 0, start) + 1 : start]
        self.whole.comments.append(Comment(Span(start, end), not before.strip("\ufeff \t\r")))

    def _doc(self, start: int) -> None:
        close = self.text.find('"""', start + 3)
        layout = self.layout
        if close < 0:
            self.whole.flaws.append(Flaw("open_doc", Span(start, start + 3)))
            # The rest of the file may be text or statements: nothing sure can be said about it.
            self.position = len(self.text)
            self.broken = True
            return
        self.position = close + 3
        span = Span(start, close + 3)
        fits = layout.spec is not None and layout.doc is None and not layout.sections and not layout.stray
        if fits and self.first is None:
            layout.doc = span
        else:
            self.whole.flaws.append(Flaw("doc_place", span))
            self.broken = True

    def _open_string(self, start: int) -> None:
        end = self.text.find("\n", start)
        end = len(self.text) if end < 0 else end
        stop = start + len(self.text[start:end].rstrip())
        self.whole.flaws.append(Flaw("open_string", Span(start, stop)))
        self._take("x", start, stop)
        self.broken = True
        self.brackets.clear()
        self.position = end

    def _take(self, piece: str, start: int, end: int) -> None:
        """Count a piece into the open statement."""
        if piece in "([{":
            self.brackets.append(start)
        elif piece in ")]}":
            if self.brackets:
                self.brackets.pop()
        else:
            stripped = piece.strip(" \t\r")
            if not stripped:
                return
            start += len(piece) - len(piece.lstrip(" \t\r"))
            end = start + len(stripped)
        if self.first is None:
            self.first = start
        self.last = end

    def _close(self) -> None:
        broken = self.broken
        if self.brackets:
            opener = self.brackets[0]
            broken = True
            self.whole.flaws.append(Flaw("open_bracket", Span(opener, opener + 1), self.text[opener]))
            self.brackets.clear()
        if self.first is not None:
            span = Span(self.first, self.last)
            sections = self.layout.sections
            if not sections:
                self.layout.stray.append(span)
            elif broken:
                # Kept with no length: the section is not empty, and the flaw is already told.
                sections[-1].statements.append(Span(self.first, self.first))
            else:
                sections[-1].statements.append(span)
        self.first = None
        self.broken = False
