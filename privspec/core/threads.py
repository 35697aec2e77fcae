"""How many threads linear algebra may use.

On small matrices a second thread of the numerical libraries costs more than it brings, and on a busy machine up to a
hundred times more: its threads wait for each other in busy loops. To start them alone costs some 30 ms a library.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

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
