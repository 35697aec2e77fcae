"""One entry of the catalogue of diagnostics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import dedent, fill, indent

_CODE = re.compile(r"PS\d{4}")


def _filled(paragraph: str) -> Iterator[str]:
    """The lines of a paragraph at the width of a page; what begins with `- ` is an item of a list."""
    pieces: list[str] = []
    for line in paragraph.split("\n"):
        listed = bool(pieces) and pieces[-1].startswith("- ")
        goes_on = line.startswith("  ") or not (line.startswith("- ") or listed)
        if pieces and goes_on:
            pieces[-1] += " " + line.strip()
        else:
            pieces.append(line)
    for piece in pieces:
        hang = "  " if piece.startswith("- ") else ""
        yield fill(piece, 88, subsequent_indent=hang, break_on_hyphens=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """A code with its title (a short sentence without a full stop), its explanation and an example.

    `long_text` says what is wrong, why it matters and what to do, in paragraphs; `example` shows a wrong
    and a right form as lines of a spec or commands. Both may be indented as is handy in the source.
    """

    code: str
    title: str
    long_text: str
    example: str = ""

    def __post_init__(self) -> None:
        if not _CODE.fullmatch(self.code):
            raise ValueError(f"not a code: {self.code}")
        if not self.title or not self.long_text.strip():
            raise ValueError(f"{self.code} has no text")

    def text(self) -> str:
        """The entry as `privspec explain-error` prints it, with a final line end."""
        paragraphs = dedent(self.long_text).strip().split("\n\n")
        parts = [f"{self.code}: {self.title}", *("\n".join(_filled(p)) for p in paragraphs)]
        if self.example:
            parts.append(indent(dedent(self.example).strip("\n").rstrip(), "    "))
        return "\n\n".join(parts) + "\n"
