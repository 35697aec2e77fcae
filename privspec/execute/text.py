"""Text files of separated values, cut into rows and cells by one fixed rule.

A line feed ends a line, with the carriage return before it if there is one; what follows the last line feed is a line
unless it is empty. Every line is a row, a blank one too. A cell that begins with a quote ends at the first single quote
that a separator or the end of a line follows, on a later line if need be; two quotes in it stand for one. Where that
gives a row over several lines another number of cells than the first line has, or where a quote is never closed, the
quote is a sign like any other and the cell ends with its line. So no cell, whatever it holds, takes other rows with it.
Bytes that are no text become the sign for that, U+FFFD.
"""

from __future__ import annotations

import gzip
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from privspec.execute.problems import refuse_unreadable

SUFFIXES = (".csv", ".csv.gz", ".tsv")
QUOTE = '"'
CHUNK = 2**20


def is_text(path: Path) -> bool:
    """Whether the suffix of a file says that it holds separated values."""
    return path.name.lower().endswith(SUFFIXES)


def separator_of(path: Path) -> str:
    """What stands between the cells of a line, by the suffix of the file."""
    return "\t" if path.suffix.lower() == ".tsv" else ","


@contextmanager
def opened(name: str, path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a text file, unpacked.

    Raises: DataError PS0803 if it cannot be read.
    """
    how = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with how(path, "rb") as file:
            yield file  # type: ignore[misc]
    except (OSError, EOFError, zlib.error):
        refuse_unreadable(name, "comma-separated values")


def rows_of_text(name: str, path: Path, *, width: int | None = None, joined: bool = True) -> Iterator[list[str]]:
    """The cells of row after row, the first line among them.

    Args: width, cells of a row, by default those of the first; joined, whether a quoted cell may hold line feeds.
    Raises: DataError PS0803.
    """
    with opened(name, path) as file:
        lines = _Lines(file, separator_of(path))
        while (cells := lines.next(width, joined=joined)) is not None:
            width = len(cells) if width is None else width
            yield cells


def has_quotes(name: str, path: Path) -> bool:
    """Whether there is a quote anywhere in the file."""
    with opened(name, path) as file:
        while chunk := file.read(CHUNK):
            if b'"' in chunk:
                return True
    return False


def _unquoted(part: str) -> str | None:
    """What lies between two separators, if it has no quotes but one at either end; None if it is not that simple."""
    if QUOTE not in part:
        return part
    inner = part[1:-1]
    return inner if len(part) > 1 and part[0] == QUOTE == part[-1] and QUOTE not in inner else None


class _Lines:
    """The lines of a file, and those of them that were looked at ahead of their turn."""

    def __init__(self, file: IO[bytes], separator: str) -> None:
        # binary files are cut at line feeds alone
        self._file, self._separator, self._ahead = iter(file), separator, deque[str]()
        self._first = True

    def next(self, width: int | None, *, joined: bool) -> list[str] | None:
        """The cells of the next row, None after the last."""
        line = self._ahead.popleft() if self._ahead else self._read()
        if line is None:
            return None
        if QUOTE not in line:
            return line.split(self._separator)
        plain = [_unquoted(part) for part in line.split(self._separator)]
        if None not in plain:
            return plain  # type: ignore[return-value]
        if joined:
            cells, used = self._cells(line, far=True)
            if not used or width is None or len(cells) == width:
                for _ in range(used):
                    self._ahead.popleft()
                return cells
        return self._cells(line, far=False)[0]

    def _read(self) -> str | None:
        raw = next(self._file, None)
        if raw is None:
            return None
        if self._first:
            raw, self._first = raw.removeprefix(b"\xef\xbb\xbf"), False
        return raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", errors="replace")

    def _later(self, place: int) -> str | None:
        """The line so many places after the current one; None after the last."""
        while len(self._ahead) <= place:
            line = self._read()
            if line is None:
                return None
            self._ahead.append(line)
        return self._ahead[place]

    def _cells(self, line: str, *, far: bool) -> tuple[list[str], int]:
        """The cells of a row that begins with this line, and how many later lines belong to it."""
        cells, at, used = [], 0, 0
        while True:
            found = self._quoted(line, at + 1, used, far=far) if line.startswith(QUOTE, at) else None
            if found is not None:
                cell, line, at, used = found
                cells.append(cell)
                if at == len(line):
                    return cells, used
            else:
                end = line.find(self._separator, at)
                if end < 0:
                    cells.append(line[at:])
                    return cells, used
                cells.append(line[at:end])
                at = end
            at += len(self._separator)

    def _quoted(self, line: str, at: int, used: int, *, far: bool) -> tuple[str, str, int, int] | None:
        """A quoted cell from behind its quote on, the line that it ends on, and where; None if it does not end."""
        parts: list[str] = []
        while True:
            quote = line.find(QUOTE, at)
            if quote < 0:
                later = self._later(used) if far else None
                if later is None:
                    return None
                parts += [line[at:], "\n"]
                line, at, used = later, 0, used + 1
                continue
            after = line[quote + 1 : quote + 2]
            parts.append(line[at:quote])
            if after in ("", self._separator):
                return "".join(parts), line, quote + 1, used
            if after != QUOTE:
                return None
            parts.append(QUOTE)
            at = quote + 2
