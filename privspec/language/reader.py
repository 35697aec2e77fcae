"""Spec files to sources."""

from __future__ import annotations

from pathlib import Path

from privspec.core.diagnostics import Diagnostic, Label, SpecError, UsageError
from privspec.core.spans import Source, Span


def read_source(path: Path) -> Source:
    """The text of a spec file.

    Raises: UsageError if the file cannot be read, SpecError if it is not UTF-8.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(Diagnostic("PS0701", f"there is no file {path}")) from None
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise UsageError(Diagnostic("PS0702", f"the file {path} cannot be read: {reason}")) from None
    except ValueError:
        raise UsageError(
            Diagnostic("PS0702", "the name of the file cannot be used: it holds a null character")
        ) from None
    return decode_source(str(path), data)


def decode_source(name: str, data: bytes) -> Source:
    """The source with these bytes; a byte order mark is dropped.

    Raises: SpecError if they are not UTF-8, pointing at the first byte that is wrong.
    """
    try:
        return Source(name, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", "replace")
        after = data[error.start : error.start + 200].decode("utf-8", "replace").split("\n")[0]
        shown = Source(name, before + after)
        span = Span(len(before), len(before) + 1)
        guess = "UTF-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else None
        raise SpecError(
            Diagnostic(
                "PS0133",
                "the file is not UTF-8 text",
                (Label(span, f"byte {data[error.start]:#04x} at offset {error.start}"),),
                (f"it looks like {guess}",) if guess else (),
                "save it as UTF-8 in your editor",
                source=shown,
            )
        ) from None
