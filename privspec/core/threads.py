"""How many threads linear algebra may use.

On small matrices a second thread of the numerical libraries costs more than it brings, and on a busy machine up to a
hundred times more: its threads wait for each other in busy loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

LARGE = 512
"""Rows from which several threads pay."""


@contextmanager
def fitting_threads(size: int) -> Iterator[None]:
    """One thread for matrices of fewer than `LARGE` rows; the libraries' own choice above."""
    if size >= LARGE:
        yield
        return
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
