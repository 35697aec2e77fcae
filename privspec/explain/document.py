"""A page as data: sections of sentences, tables, plots and figures that every renderer understands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from privspec.explain.sentences import Sentence


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences that run on; `strong` for the one thing a reader should take away."""

    sentences: tuple[Sentence, ...]
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Points:
    """Sentences one below the other."""

    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a caption; the first cell of a row names it. `numeric` columns are aligned to the right."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    label: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing with words for those who do not see it, and the table of its numbers.

    `draw` makes the SVG text; it is called only by renderers that show drawings. `caption` is what all readers
    see below it, `alt` what it shows.
    """

    name: str
    draw: Callable[[], str]
    alt: str
    caption: str
    twin: Table


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing without numbers, whose words stand beside it: an SVG file as text, kept apart from the page."""

    svg: str
    alt: str


@dataclass(frozen=True, slots=True)
class IconRow:
    """`filled` figures of `of`, under a short label."""

    label: str
    filled: int
    of: int


@dataclass(frozen=True, slots=True)
class IconArray:
    """Rows of figures drawn to the same scale."""

    caption: str
    rows: tuple[IconRow, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """Text to be shown as it is: commands, lines of the spec."""

    caption: str
    text: str


Block: TypeAlias = Paragraph | Points | Table | Plot | Picture | IconArray | Listing


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it."""

    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A whole page. `shows_basis` is whether every sentence is followed by its status and sources."""

    title: str
    subtitle: str
    reader: str
    shows_basis: bool
    sections: tuple[Section, ...]
    footer: str = ""
    lang: str = "en-GB"

    def sentences(self) -> tuple[Sentence, ...]:
        """All sentences, in order."""
        return tuple(
            sentence
            for section in self.sections
            for block in section.blocks
            if isinstance(block, Paragraph | Points)
            for sentence in block.sentences
        )
