"""Positions in a source text."""

from __future__ import annotations

from functools import cached_property

from privspec.core.records import dataclass


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
