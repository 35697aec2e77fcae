"""One entry of the catalogue of diagnostics."""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import dedent, fill, indent

_CODE = re.compile(r"PS\d{4}")


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
        parts = [f"{self.code}: {self.title}", *(fill(p, 88, break_on_hyphens=False) for p in paragraphs)]
        if self.example:
            parts.append(indent(dedent(self.example).strip("\n").rstrip(), "    "))
        return "\n\n".join(parts) + "\n"
