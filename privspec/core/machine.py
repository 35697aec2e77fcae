"""What a machine has for a process: memory, and a refusal of what needs more before work begins; and threads.

On small matrices a second thread of the numerical libraries costs more than it brings, and on a busy machine up to a
hundred times more: its threads wait for each other in busy loops. To start them alone costs some 30 ms a library.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from privspec.core.diagnostics import SolveError

try:
    import resource
except ImportError:  # no POSIX: nothing is known of limits
    resource = None  # type: ignore[assignment]

_PROCESS, _MACHINE, _GROUPS = Path("/proc/self"), Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def free_memory() -> float:
    """Bytes that this process can still have: of the machine, its own limits, its control group; infinite if unknown.

    Memory that the machine would free first, such as copies of files, counts as free.
    """
    return min(_left(), default=float("inf"))


def refuse_without_memory(needed: float, free: float, what: str, *notes: str) -> None:
    """Raises: SolveError PS0705 if more is needed than is free."""
    if needed > free:
        raise SolveError.of("PS0705", f"{what} take some {size_words(needed)}, and {size_words(free)} are free", *notes)


def size_words(size: float) -> str:
    """As in "1.5 GB"."""
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{max(size, 0) / 1e3:.3g} kB"


def _left() -> Iterator[float]:
    said = _figures(_MACHINE)
    if "MemAvailable:" in said:
        yield 1024.0 * (said["MemAvailable:"] + said.get("SwapFree:", 0))
    if resource is not None:
        limit, used = resource.getrlimit(resource.RLIMIT_AS)[0], _figures(_PROCESS / "status")
        if limit != resource.RLIM_INFINITY and "VmSize:" in used:
            yield limit - 1024.0 * used["VmSize:"]
    for group, most, now in _groups():
        allowed, taken = (_figures(group / name).get("") for name in (most, now))
        if allowed is not None and taken is not None:
            yield allowed - taken + _figures(group / "memory.stat").get("inactive_file", 0.0)


def _groups() -> Iterator[tuple[Path, str, str]]:
    """The control groups that a process is in, with all above them: their files of what is allowed, and is used."""
    for line in _text(_PROCESS / "cgroup").splitlines():
        _, kinds, own = line.split(":", 2)
        places = [Path(own.strip("/")), *Path(own.strip("/")).parents]
        if not kinds:
            yield from ((_GROUPS / place, "memory.max", "memory.current") for place in places)
        elif "memory" in kinds.split(","):
            yield from (
                (_GROUPS / "memory" / place, "memory.limit_in_bytes", "memory.usage_in_bytes") for place in places
            )


def _figures(path: Path) -> dict[str, float]:
    """What a file of the kernel says: figures by the word before them, one that stands alone by none."""
    lines = (line.split() for line in _text(path).splitlines())
    pairs = (["", *words] if len(words) == 1 else words for words in lines if words)
    return {word: float(figure) for word, figure, *_ in pairs if figure.isdigit()}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


# --- threads of the numerical libraries -----------------------------------------------------------

LARGE = 512
"""Rows from which several threads pay."""
_SAID = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
_held_back = False


def start_with_one() -> None:
    """Let the numerical libraries start with one thread, unless the user says how many; called before they load."""
    global _held_back
    if not any(name in os.environ for name in _SAID):
        os.environ[_SAID[0]], _held_back = "1", True


@contextmanager
def fitting_threads(size: int) -> Iterator[None]:
    """One thread for matrices of fewer than `LARGE` rows; the user's or the libraries' own choice above."""
    said = next((os.environ[name] for name in _SAID if name in os.environ), "")
    if (size < LARGE) is _held_back or (size < LARGE and said == "1"):  # they have as many as they should
        yield
        return
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1 if size < LARGE else os.cpu_count(), user_api="blas"):
        yield


class TimeOverError(BaseException):
    """A time limit is over: no `except Exception` on the way goes on with something else."""


AGAIN = 0.25
"""Seconds until a process is told again that its time is over, should it have missed it."""


@contextmanager
def at_most(seconds: float | None) -> Iterator[None]:
    """A time limit on whatever is done inside, also where nothing looks at a clock.

    It waits for a library that is at work to return. Without POSIX timers there is no such limit.
    Raises: SolveError PS0610.
    """
    if seconds is None or not hasattr(signal, "setitimer"):
        yield
        return

    def over(_signal: int, _frame: object) -> None:
        raise TimeOverError

    before = signal.signal(signal.SIGALRM, over)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
        yield
    except TimeOverError:
        signal.setitimer(signal.ITIMER_REAL, 0)
        why = f"no answer within the limits: {seconds:g} seconds are over"
        raise SolveError.of("PS0610", why, help="allow more time with --time-limit") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
