"""Positions in a source text, and what is wrong there, as data: a stable code, a sentence, a fix if one is known."""

from __future__ import annotations

from functools import cached_property
from typing import Self

from privspec.core.records import dataclass, replace


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Half-open range of character offsets `start:end` in a source text."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"not a span: {self.start}..{self.end}")

    def to(self, other: Span) -> Span:
        """The smallest span that covers both."""
        return Span(min(self.start, other.start), max(self.end, other.end))


NOWHERE = Span(0, 0)
"""The span of a tree that was built from Python and has no text."""


@dataclass(frozen=True)
class Source:
    """A named text with its lines (columns count characters from 1).

    `files`: where the text is that of several files, one behind another, the offset at which each of them starts.
    `skipped`: where the text is the rest of a file, how many of its lines stand before.
    """

    name: str
    text: str
    files: tuple[tuple[int, Source], ...] = ()
    skipped: int = 0

    @property
    def main(self) -> Source:
        """The file that uses the others."""
        return self.files[0][1] if self.files else self

    def place(self, span: Span) -> tuple[Source, Span]:
        """The file in which a span begins, and the span there."""
        start, file = next((one for one in reversed(self.files) if one[0] <= span.start), (0, self))
        end = min(span.end - start, len(file.text))
        return file, Span(min(span.start - start, end), end)

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        starts = [0]
        starts.extend(i + 1 for i, c in enumerate(self.text) if c == "\n")
        return tuple(starts)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        from bisect import bisect_right

        line = bisect_right(self._starts, offset)
        return line + self.skipped, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line, without its end."""
        number -= self.skipped
        start = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def span(self, number: int) -> Span:
        """Where the words of a line stand, without its indentation."""
        text = self.line(number)
        start = self._starts[number - 1 - self.skipped]
        return Span(start + len(text) - len(text.lstrip()), start + len(text.rstrip()))

    def slice(self, span: Span) -> str:
        """The text under a span."""
        return self.text[span.start : span.end]


@dataclass(frozen=True, slots=True)
class Label:
    """A span with the words to print under its carets; `primary` uses ^, others -."""

    span: Span
    text: str = ""
    primary: bool = True


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning.

    `code` is stable ("PS0207") and has a long form in the catalogue. `labels` may be empty only for
    errors that have no place in a spec (usage, data files). No field ever holds a value of a secret.
    """

    code: str
    message: str
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str | None = None
    severity: str = "error"
    source: Source | None = None

    @classmethod
    def at(
        cls,
        source: Source | None,
        span: Span,
        code: str,
        message: str,
        *,
        label: str = "",
        help: str | None = None,  # noqa: A002
    ) -> Self:
        """What is wrong at one place of a source."""
        return cls(code, message, (Label(span, label),), help=help, source=source)

    @property
    def is_error(self) -> bool:
        """Whether it stops the work; warnings do not."""
        return self.severity == "error"

    @property
    def located(self) -> Diagnostic:
        """The same in the file that it is about, where the source is made of several: other places become notes."""
        if self.source is None or not self.source.files or not self.labels:
            return self
        file, _ = self.source.place(next((one for one in self.labels if one.primary), self.labels[0]).span)
        labels, notes = [], []
        for label in self.labels:
            where, span = self.source.place(label.span)
            if where is file:
                labels.append(replace(label, span=span))
            else:
                line, column = where.position(span.start)
                notes.append(f"{label.text or 'also'}: {where.name}:{line}:{column}")
        return replace(self, source=file, labels=tuple(labels), notes=(*notes, *self.notes))
