"""The long forms of diagnostics (catalogue.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import fill, indent

from privspec.core.diagnostics import UsageError
from privspec.core.records import dataclass
from privspec.core.suggest import nearest

_CODE = re.compile(r"PS\d{4}")
_FENCE = "\n\n```\n"


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
    """A code with its title, the paragraphs of its explanation and an example."""

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
        parts = [f"{self.code}: {self.title}", *("\n".join(_filled(p)) for p in self.long_text.split("\n\n"))]
        if self.example:
            parts.append(indent(self.example, "    "))
        return "\n\n".join(parts) + "\n"


def written() -> tuple[Entry, ...]:
    """The entries in the order in which they stand."""
    pages = re.split(r"^# PS..xx: .*\n", (Path(__file__).parent / "catalogue.md").read_text("utf-8"), flags=re.M)
    found = []
    for part in (part for page in pages for part in page.split("\n## ")[1:]):
        header, _, body = part.partition("\n")
        code, _, title = header.partition(": ")
        text, _, example = body.strip().removesuffix("\n```").partition(_FENCE)
        found.append(Entry(code, title, text, example))
    return tuple(found)


@cache
def entries() -> dict[str, Entry]:
    """All entries by code."""
    return {entry.code: entry for entry in written()}


def explain_code(code: str) -> str:
    """The long form of a code, as text.

    Raises: UsageError (PS0703) for a code that does not exist.
    """
    known = entries()
    entry = known.get(code.strip().upper())
    if entry is not None:
        return entry.text()
    close = nearest(code.strip().upper(), known)
    advice = f"did you mean {close}?" if close else "codes look like PS0103"
    raise UsageError.of("PS0703", f"there is no error {code}", help=advice)
