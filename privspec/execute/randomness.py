"""Where random bits come from: the operating system for releases, a seed for simulations."""

from __future__ import annotations

import hashlib
import os
import weakref
from abc import ABC, abstractmethod

import numpy as np

WORD = 64
"""Bits in one word of randomness."""
_BATCH = 512


class Randomness(ABC):
    """A source of independent uniform 64-bit words.

    `private` says whether a release drawn from it may claim its guarantee. A buffer of unused words is
    dropped in a child process, so that two processes never share noise.
    """

    private: bool

    def __init__(self) -> None:
        self._buffer: list[int] = []
        _LIVE.add(self)

    @abstractmethod
    def _fresh(self, count: int) -> bytes:
        """`8 * count` uniform bytes."""

    def word(self) -> int:
        """A uniform integer in [0, 2^64)."""
        if not self._buffer:
            self._buffer = np.frombuffer(self._fresh(_BATCH), dtype="<u8").tolist()
        return self._buffer.pop()

    def bits(self, count: int) -> int:
        """A uniform integer in [0, 2^count)."""
        value = 0
        for _ in range(-(-count // WORD)):
            value = value << WORD | self.word()
        return value >> (-count % WORD)

    def below(self, bound: int) -> int:
        """A uniform integer in [0, bound), exactly (by rejection); bound >= 1."""
        if bound < 1:
            raise ValueError("an empty range")
        count = (bound - 1).bit_length()
        while (value := self.bits(count)) >= bound:
            pass
        return value

    def sign(self) -> int:
        """1 or -1, each with probability one half."""
        return 1 if self.word() & 1 else -1

    def forget(self) -> None:
        """Drop the words that were fetched and not used."""
        self._buffer = []


_LIVE: weakref.WeakSet[Randomness] = weakref.WeakSet()


def _forget_in_child() -> None:
    for source in list(_LIVE):
        source.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)


class SystemRandomness(Randomness):
    """The operating system's generator: the only source whose releases are private."""

    private = True

    def _fresh(self, count: int) -> bytes:
        return os.urandom(8 * count)


class SimulationRandomness(Randomness):
    """A reproducible stream (SHAKE-256). Simulation only: the seed gives the noise away."""

    private = False

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed
        self._counter = 0

    def _fresh(self, count: int) -> bytes:
        self._counter += 1
        return hashlib.shake_256(f"privspec simulation {self.seed} {self._counter}".encode()).digest(8 * count)
