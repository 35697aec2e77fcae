"""Artefacts appear whole or not at all, and what a killed run left behind goes with the next one."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import secrets
import select
import stat
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from privspec.core.diagnostics import UsageError
from privspec.core.machine import size_words

try:
    import fcntl
except ImportError:  # no POSIX: files are written the same way, leftovers stay
    fcntl = None  # type: ignore[assignment]

PRIVATE = 0o600
"""The mode of a file that only its owner reads."""
STANDARD = "-"
"""What names the standard input, or output, in place of a file."""
ENDING = ".privspec-tmp"
ZEROS = 2**20
"""Bytes that are written at once where a disk cannot reserve them otherwise."""
_LEFTOVER = re.compile(r"\.[0-9a-f]{16}" + re.escape(ENDING))


class AtomicFile:
    """A file that appears under its name all at once, or not at all.

    Entering makes sure that it can be written (so that a budget is not spent in vain) and takes away what killed
    processes left beside it; leaving without `place` or `commit` takes the temporary file away. The process holds a
    lock on its temporary file as long as it lives, so that nobody takes away a file in use.
    Args: mode, the permissions of the file; by default those that the user gives to new files.
    Raises: UsageError PS0713 if the folder cannot be written to.
    """

    def __init__(self, path: Path, mode: int | None = None) -> None:
        self.path = path
        self._mode = mode
        self._temporary: Path | None = None
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            if self.path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            _remove_leftovers(self.path)
            self._temporary, self._file = _locked_temporary(self.path)
        except OSError as error:
            raise _unwritable(self.path, error) from None
        return self

    def reserve(self, size: int) -> None:
        """Take so much of the disk for what will be written; what is not needed is given back by `write`.

        On disks that write nothing in its place (of copies, or compressed) this is what they have now, and no more.
        Raises: UsageError PS0713 if there is not so much.
        """
        assert self._file is not None
        try:
            allocate(self._file.fileno(), 0, size)
        except OSError as error:
            raise _too_small(str(self.path), size, error) from None

    def write(self, content: bytes | Iterable[bytes]) -> None:
        """Write (what comes in pieces, piece by piece) and force to disk, still under the temporary name.

        Raises: UsageError PS0713.
        """
        assert self._file is not None
        try:
            self._file.writelines((content,) if isinstance(content, bytes) else content)
            self._file.truncate()
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def place(self) -> None:
        """Give the file its name.

        Raises: UsageError PS0713.
        """
        assert self._temporary is not None
        try:
            self._temporary.chmod(0o666 & ~_mask() if self._mode is None else self._mode)
            self._temporary.replace(self.path)
        except OSError as error:
            raise _unwritable(self.path, error) from None
        self._temporary = None
        _sync_folder(self.path.parent)

    def commit(self, content: bytes | Iterable[bytes]) -> None:
        """Write, and give the file its name.

        Raises: UsageError PS0713.
        """
        self.write(content)
        self.place()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)
        if self._file is not None:
            self._file.close()


class StandardOutput(AtomicFile):
    """The standard output, as much of a file as it can be: what was written to it cannot be taken back.

    Room is reserved in a file behind it (only looked for, where lines are appended to it); a pipe that nobody reads and
    a device that takes nothing are refused.
    """

    def __init__(self) -> None:
        super().__init__(Path(STANDARD))
        self._whole: int | None = None

    def __enter__(self) -> Self:
        return self

    def reserve(self, size: int) -> None:
        try:
            if sys.stdout is None:
                raise OSError(errno.EBADF, "it is closed")
            sys.stdout.flush()
            with contextlib.suppress(io.UnsupportedOperation):  # something in memory stands in its place
                self._reserve(sys.stdout.fileno(), size)
        except OSError as error:
            raise _too_small("the standard output", size, error) from None

    def _reserve(self, place: int, size: int) -> None:
        state = os.fstat(place)
        if stat.S_ISREG(state.st_mode):
            at, self._whole = os.lseek(place, 0, os.SEEK_CUR), state.st_size
            appends = fcntl is not None and fcntl.fcntl(place, fcntl.F_GETFL) & os.O_APPEND
            try:
                allocate(place, state.st_size if appends else at, size)
            except OSError:
                os.ftruncate(place, self._whole)
                raise
            if appends:
                os.ftruncate(place, self._whole)
        elif stat.S_ISCHR(state.st_mode):
            if not os.isatty(place):
                os.write(place, b"\n")
        elif hasattr(select, "poll"):
            pipe = select.poll()
            pipe.register(place, 0)
            if pipe.poll(0):
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    def write(self, content: bytes | Iterable[bytes]) -> None:
        for piece in (content,) if isinstance(content, bytes) else content:
            sys.stdout.write(piece.decode())
        sys.stdout.flush()

    def place(self) -> None:
        """It has its name."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._whole is not None:
            place = sys.stdout.fileno()
            os.ftruncate(place, max(self._whole, os.lseek(place, 0, os.SEEK_CUR)))


def allocate(file: int, start: int, size: int) -> None:
    """Take so much of the disk for an open file from a place on, and force that to disk; the file stays where it is.

    Raises: OSError if there is not so much.
    """
    try:
        os.posix_fallocate(file, start, size)
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        now, left = os.lseek(file, 0, os.SEEK_CUR), size
        os.lseek(file, start, os.SEEK_SET)
        while left:
            left -= os.write(file, bytes(min(left, ZEROS)))
        os.lseek(file, now, os.SEEK_SET)
    os.fsync(file)


def write_atomically(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write a file whole or not at all.

    Raises: UsageError PS0713 if it cannot be written.
    """
    with AtomicFile(path, mode) as file:
        file.commit(data)


def _locked_temporary(path: Path) -> tuple[Path, IO[bytes]]:
    """A new file beside `path` that this process alone holds; nobody but its owner can read it.

    Raises: OSError.
    """
    while True:
        place = path.with_name(f".{path.name}.{secrets.token_hex(8)}{ENDING}")
        file = os.fdopen(os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE), "wb")
        # between its creation and its lock another run may have taken it for a leftover
        if _locked(file) is not False and place.exists():
            return place, file
        file.close()


def _remove_leftovers(path: Path) -> None:
    """Take away temporary files for the same place whose processes are gone."""
    try:
        found = [place for place in path.parent.iterdir() if place.name.startswith(f".{path.name}.")]
    except OSError:  # a folder to write to, not to look into
        return
    for place in found:
        if _LEFTOVER.fullmatch(place.name.removeprefix(f".{path.name}")) is None:
            continue  # of a file with a longer name
        with contextlib.suppress(OSError), place.open("rb") as file:
            if _locked(file):
                place.unlink()


def _locked(file: IO[bytes]) -> bool | None:
    """Whether this process got the lock of a file; None where the system has no such locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _sync_folder(folder: Path) -> None:
    """Force a new name to disk, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def same_file(one: Path, other: Path) -> bool:
    """Whether two names are of one file.

    By links of any kind, or but for the case of letters, which some disks ignore.
    """
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return os.path.realpath(one).casefold() == os.path.realpath(other).casefold()


def refuse_overwriting(outputs: Iterable[Path], kept: Mapping[str, object]) -> None:
    """Nothing is written over a file that is needed as it is; `kept` has those by what they are.

    Raises: UsageError PS0832.
    """
    for output in (one for one in outputs if str(one) != STANDARD):
        for what, other in kept.items():
            if not isinstance(other, str | Path):
                continue
            among = Path(other).is_dir() and Path(other).resolve() in output.resolve().parents
            if among or same_file(output, Path(other)):
                message = f"{output} would {'stand among' if among else 'take the place of'} {what}"
                hint = "choose another place with -o"
                raise UsageError.of("PS0832", message, "nothing was drawn and nothing was spent", help=hint)


def _too_small(what: str, size: int, error: OSError) -> UsageError:
    return UsageError.of(
        "PS0713",
        f"{what} cannot be written: {error.strerror or 'it takes nothing'}",
        f"up to {size_words(size)} are needed for it; nothing was drawn and nothing was spent",
        help="choose another place with -o",
    )


def _unwritable(path: Path, error: OSError) -> UsageError:
    reason = error.strerror or "it cannot be written"
    return UsageError.of("PS0713", f"{path} cannot be written: {reason}", help="choose another place with -o")
