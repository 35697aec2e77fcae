"""Artefacts appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from privspec.core.diagnostics import Diagnostic, UsageError


class AtomicFile:
    """A file that appears under its name all at once, or not at all.

    Entering makes sure that it can be written (so that a budget is not spent in vain); leaving without
    `commit` takes the temporary file away.
    Raises: UsageError PS0713 if the folder cannot be written to.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._temporary: Path | None = None

    def __enter__(self) -> Self:
        try:
            handle, name = tempfile.mkstemp(prefix=f".{self.path.name}.", suffix=".tmp", dir=self.path.parent)
        except OSError as error:
            raise _unwritable(self.path, error) from None
        os.close(handle)
        self._temporary = Path(name)
        return self

    def commit(self, content: bytes | Iterable[bytes]) -> None:
        """Write (what comes in pieces, piece by piece), force to disk, and give the file its name.

        Raises: UsageError PS0713.
        """
        assert self._temporary is not None
        try:
            with self._temporary.open("wb") as file:
                file.writelines((content,) if isinstance(content, bytes) else content)
                file.flush()
                os.fsync(file.fileno())
            mask = os.umask(0)
            os.umask(mask)
            self._temporary.chmod(0o666 & ~mask)
            self._temporary.replace(self.path)
        except OSError as error:
            raise _unwritable(self.path, error) from None
        self._temporary = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file whole or not at all.

    Raises: UsageError PS0713 if it cannot be written.
    """
    with AtomicFile(path) as file:
        file.commit(data)


def _unwritable(path: Path, error: OSError) -> UsageError:
    reason = error.strerror or "it cannot be written"
    return UsageError(Diagnostic("PS0713", f"{path} cannot be written: {reason}", help="choose another place with -o"))
