"""Pages as Markdown: plots become their tables, rows of figures become text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch

from privspec.explain.document import (
    Block,
    Document,
    IconArray,
    IconRow,
    Listing,
    Paragraph,
    Picture,
    Plot,
    Points,
    Table,
)
from privspec.explain.sentences import Sentence

ICONS_IN_A_LINE = 50
_FILLED, _EMPTY = "●", "○"


def to_markdown(document: Document) -> str:
    """The page as CommonMark with pipe tables; ends with a newline."""
    parts = [f"# {escape(document.title)}", escape(document.subtitle)]
    for section in document.sections:
        parts.append(f"## {escape(section.heading)}")
        parts.extend(_block(block, document.shows_basis) for block in section.blocks)
    if document.footer:
        parts.append(f"---\n\n{escape(document.footer)}")
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(text: str) -> str:
    """Text whose marks are taken literally; backquoted code is kept."""
    pieces = text.split("`")
    for i in range(0, len(pieces), 2):
        for mark in ("\\", "*", "_", "<", "[", "]"):
            pieces[i] = pieces[i].replace(mark, f"\\{mark}")
    return "`".join(pieces)


def icon_lines(row: IconRow, figures: int = 100) -> tuple[str, ...]:
    """The figures of a row, 50 a line."""
    drawn = icons_drawn(row, figures)
    text = _FILLED * drawn + _EMPTY * (figures - drawn)
    return tuple(text[i : i + ICONS_IN_A_LINE] for i in range(0, figures, ICONS_IN_A_LINE))


def icons_drawn(row: IconRow, figures: int = 100) -> int:
    """How many of the figures are filled."""
    return row.filled * figures // row.of if row.filled * 2 < row.of else -(-row.filled * figures // row.of)


@singledispatch
def _block(block: Block, _shows_basis: bool) -> str:
    raise TypeError(f"no Markdown for {type(block).__name__}")


@_block.register
def _(block: Paragraph, shows_basis: bool) -> str:
    text = " ".join(_sentences(block.sentences, shows_basis))
    return f"**{text}**" if block.strong and not shows_basis else text


@_block.register
def _(block: Points, shows_basis: bool) -> str:
    return "\n".join(f"- {text}" for text in _sentences(block.sentences, shows_basis))


@_block.register
def _(block: Table, _shows_basis: bool) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(escape(c).replace("|", "\\|").replace("\n", " ") for c in cells) + " |"

    rule = "| " + " | ".join("---:" if i in block.numeric else "---" for i in range(len(block.header))) + " |"
    rows = "\n".join(line(row) for row in block.rows)
    return f"*{escape(block.caption)}*\n\n{line(block.header)}\n{rule}\n{rows}"


@_block.register
def _(block: Plot, shows_basis: bool) -> str:
    return _block(block.twin, shows_basis)


@_block.register
def _(_: Picture, _shows_basis: bool) -> str:
    return ""


@_block.register
def _(block: IconArray, _shows_basis: bool) -> str:
    rows = "\n\n".join("\n".join((row.label, *icon_lines(row))) for row in block.rows)
    return f"```text\n{rows}\n```\n\n*{escape(block.caption)}*"


@_block.register
def _(block: Listing, _shows_basis: bool) -> str:
    fence = "```" if "```" not in block.text else "````"
    head = f"*{escape(block.caption)}*\n\n" if block.caption else ""
    return f"{head}{fence}text\n{block.text}\n{fence}"


def _sentences(sentences: Iterable[Sentence], shows_basis: bool) -> list[str]:
    if not shows_basis:
        return [escape(s.text) for s in sentences]
    return [f"{escape(s.text)} *({escape(s.basis)})*" for s in sentences]
