"""Artefacts appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from privspec.core.diagnostics import Diagnostic, UsageError


def write_atomically(path: Path, data: bytes) -> None:
    """Write to a temporary name beside `path`, then rename.

    Raises: UsageError PS0713 if the folder cannot be written.
    """
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent or Path())
    except OSError as error:
        raise _unwritable(path, error) from error
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise _unwritable(path, error) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _unwritable(path: Path, error: OSError) -> UsageError:
    reason = error.strerror or "it cannot be written"
    return UsageError(Diagnostic("PS0713", f"{path} cannot be written: {reason}", help="choose another place with -o"))
