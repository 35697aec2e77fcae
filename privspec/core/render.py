"""Diagnostics for people (text with carets) and for programs (JSON)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from itertools import groupby

from privspec.core.records import dataclass
from privspec.core.spans import Diagnostic, Source, Span

TAB = 4
MAX_COLUMNS = 160
"""Longer lines are cut around what is marked."""

_COLOURS = {"error": "1;31", "warning": "1;33", "note": "1;36", "gutter": "34", "strong": "1", "second": "34"}


def render(diagnostic: Diagnostic, *, colour: bool = False) -> str:
    """The text of a diagnostic, several lines without a final line end; ANSI colours only if asked for."""
    return _Renderer(diagnostic, colour).text()


def render_all(diagnostics: Iterable[Diagnostic], *, colour: bool = False) -> str:
    """Several diagnostics with an empty line between, and a final line end."""
    return "\n\n".join(render(d, colour=colour) for d in diagnostics) + "\n"


def diagnostic_to_json(diagnostic: Diagnostic) -> dict[str, object]:
    """A diagnostic as plain data; lines and columns count from 1, ends are exclusive."""
    diagnostic = diagnostic.located
    source = diagnostic.source
    labels: list[dict[str, object]] = []
    for label in diagnostic.labels:
        entry: dict[str, object] = {"text": label.text, "primary": label.primary}
        if source is not None:
            span = _inside(source, label.span)
            line, column = source.position(span.start)
            end_line, end_column = source.position(span.end)
            entry |= {"line": line, "column": column, "end_line": end_line, "end_column": end_column}
        labels.append(entry)
    result: dict[str, object] = {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "file": source.name if source is not None else None,
        "labels": labels,
        "notes": list(diagnostic.notes),
        "help": diagnostic.help,
    }
    place = _place(diagnostic)
    if place is not None:
        result["line"], result["column"] = place
    return result


def _place(diagnostic: Diagnostic) -> tuple[int, int] | None:
    """Line and column of the first primary label."""
    if diagnostic.source is None or not diagnostic.labels:
        return None
    first = next((label for label in diagnostic.labels if label.primary), diagnostic.labels[0])
    return diagnostic.source.position(_inside(diagnostic.source, first.span).start)


def _inside(source: Source, span: Span) -> Span:
    size = len(source.text)
    return Span(min(span.start, size), min(span.end, size))


def clean(text: str) -> str:
    """A text that a terminal shows as it is: control characters and changes of direction become U+FFFD."""
    if text.isprintable():
        return text
    return "".join("\ufffd" if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} else c for c in text)


def width(text: str) -> int:
    """How many columns a terminal gives to a text without tabs."""
    if text.isascii():
        return len(text)
    return sum(_char_width(c) for c in text)


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


@dataclass(frozen=True, slots=True)
class _Mark:
    """An underline on one line from `start` to `end`, and the words behind it (none where a span goes on)."""

    start: int
    end: int
    text: str
    primary: bool


class _Line:
    """A source line as shown, and where its characters stand; a long one is cut to what is marked."""

    def __init__(self, text: str, marked: int) -> None:
        self.first = 0
        cut_right = len(text) > 2 * MAX_COLUMNS
        if cut_right:
            self.first = max(0, marked - MAX_COLUMNS // 4)
            text = text[self.first : self.first + MAX_COLUMNS]
        shown = ["…"] if self.first else []
        self.columns = [len(shown)]
        for char in text:
            at = self.columns[-1]
            piece = " " * (TAB - at % TAB) if char == "\t" else clean(char)
            shown.append(piece)
            self.columns.append(at + width(piece))
        self.text = "".join(shown) + ("…" if cut_right else "")

    def column(self, index: int) -> int:
        """The column of a character of the line, counted from its start in the source."""
        return self.columns[max(0, min(index - self.first, len(self.columns) - 1))]

    def mark(self, mark: _Mark) -> _Mark:
        """The mark in columns instead of characters; never empty."""
        left = self.column(mark.start)
        return _Mark(left, max(self.column(mark.end), left + 1), mark.text, mark.primary)


class _Renderer:
    def __init__(self, diagnostic: Diagnostic, colour: bool) -> None:
        self.diagnostic = diagnostic.located
        self.colour = colour

    def paint(self, text: str, style: str) -> str:
        return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m" if self.colour and text else text

    def text(self) -> str:
        d = self.diagnostic
        style = d.severity if d.severity in _COLOURS else "error"
        head = self.paint(f"{d.severity}[{d.code}]", style) + self.paint(f": {clean(d.message)}", "strong")
        marks = self._marks()
        gutter = max((len(str(number)) for number in marks), default=1)
        lines = [head]
        place = _place(d)
        if d.source is not None:
            where = f"{clean(d.source.name)}" + (f":{place[0]}:{place[1]}" if place else "")
            lines.append(" " * gutter + self.paint("-->", "gutter") + f" {where}")
        if marks:
            lines.append(self._bar(gutter))
            for number in sorted(marks):
                lines.extend(self._source_line(number, marks[number], gutter))
            lines.append(self._bar(gutter))
        for kind, words in self._remarks():
            sign = self.paint("=", "gutter")
            first, *more = words.splitlines() or [""]
            lines.append(f"{' ' * gutter} {sign} {self.paint(kind, 'strong')}: {clean(first)}")
            indent = " " * (gutter + 5 + len(kind))
            lines.extend(indent + clean(line) for line in more)
        return "\n".join(lines)

    def _remarks(self) -> list[tuple[str, str]]:
        d = self.diagnostic
        remarks = [("note", note) for note in d.notes]
        if d.source is None:
            remarks = [("note", label.text) for label in d.labels if label.text] + remarks
        if d.help:
            # two ways out stand for themselves
            remarks += [("help", way) for way in d.help.split("\n\n")]
        return remarks

    def _bar(self, gutter: int, number: str = "") -> str:
        return self.paint(f"{number:>{gutter}} |", "gutter")

    def _marks(self) -> dict[int, list[_Mark]]:
        """The underlines of every line that is shown, in characters of the line."""
        source = self.diagnostic.source
        marks: dict[int, list[_Mark]] = {}
        if source is None:
            return marks
        for label in self.diagnostic.labels:
            span = _inside(source, label.span)
            first, start = source.position(span.start)
            last, end = source.position(max(span.start, span.end - 1))
            text = clean(label.text)
            if first != last:
                start_mark = _Mark(start - 1, len(source.line(first)), "", label.primary)
                marks.setdefault(first, []).append(start_mark)
                line = source.line(last)
                start = min(len(line) - len(line.lstrip()), end - 1) + 1
            marks.setdefault(last, []).append(_Mark(start - 1, end, text, label.primary))
        return marks

    def _source_line(self, number: int, marks: list[_Mark], gutter: int) -> list[str]:
        assert self.diagnostic.source is not None
        line = _Line(self.diagnostic.source.line(number), min(m.start for m in marks))
        out = [f"{self._bar(gutter, str(number))} {line.text}".rstrip()]
        marks = sorted(map(line.mark, marks), key=lambda m: (m.start, not m.primary))
        under: dict[int, tuple[str, bool]] = {}
        for mark in sorted(marks, key=lambda m: m.primary):  # carets are drawn over dashes
            for column in range(mark.start, mark.end):
                under[column] = ("^" if mark.primary else "-", mark.primary)
        last = marks[-1]
        behind = f" {last.text}" if last.text and max(under) == last.end - 1 else ""
        underline = self._drawn(under) + self.paint(behind, self._style(last.primary))
        out.append(f"{self._bar(gutter)} {underline}")
        waiting = [m for m in (marks[:-1] if behind else marks) if m.text]
        for i in range(len(waiting) - 1, -1, -1):
            stems = {m.start: ("|", m.primary) for m in waiting[:i]}
            mark = waiting[i]
            row = {c: s for c, s in stems.items() if c < mark.start}
            text = self.paint(mark.text, self._style(mark.primary))
            out.append(f"{self._bar(gutter)} {self._drawn(row, mark.start)}{text}")
        return out

    def _style(self, primary: bool) -> str:
        return "error" if primary and self.diagnostic.severity == "error" else "warning" if primary else "second"

    def _drawn(self, cells: dict[int, tuple[str, bool]], upto: int | None = None) -> str:
        end = max(cells, default=-1) + 1 if upto is None else upto
        row = [cells.get(column, (" ", False)) for column in range(end)]
        pieces = []
        for (char, primary), group in groupby(row):
            run = char * len(tuple(group))
            pieces.append(run if char == " " else self.paint(run, self._style(primary)))
        return "".join(pieces)
