"""Units of an input that count alike: everything released depends on them through their sums.

Units are entries, records or what one party holds, `length` numbers each. A layout puts every unit of an input into a
class; the coordinates of all matrices are the sums over a class, number by number, so that a sum of ten million numbers
has one. Reading an expression starts from one class for each large input, and splits classes where it must.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass, replace
from privspec.kernel.core.linear import Places
from privspec.kernel.participation import Alike
from privspec.model.graph import Model
from privspec.model.measures import Personalised
from privspec.model.neighbours import InputBlock, Spaced

Whole = NDArray[np.int64]

FROM = 512
"""Inputs of fewer numbers are laid out: what is small needs no classes."""
MOST = 2048
"""Classes of an input up to which its units are sorted into them."""


@dataclass(frozen=True, eq=False)
class Partition:
    """Units in a row: `counts[i]` of them in turn are of class `classes[i]`; classes are numbered as they appear."""

    counts: Whole
    classes: Whole

    @classmethod
    def of_runs(cls, counts: Whole, labels: Whole) -> Partition:
        """Runs with any labels, those of one label in turn joined."""
        begins = np.flatnonzero(np.append(True, labels[1:] != labels[:-1]))
        kept = labels[begins]
        _, first, inverse = np.unique(kept, return_index=True, return_inverse=True)
        order = np.argsort(np.argsort(first))
        return cls(np.add.reduceat(counts, begins), order[inverse].astype(np.int64))

    @classmethod
    def single(cls, size: int) -> Partition:
        """All units of one class."""
        return cls(np.array([size], dtype=np.int64), np.zeros(1, dtype=np.int64))

    @classmethod
    def of_rows(cls, rows: NDArray[np.float64]) -> Partition:
        """Units by their rows (N, ...): equal rows are one class."""
        flat = rows.reshape(len(rows), -1)
        labels = np.zeros(len(rows), dtype=np.int64)
        for column in flat.T:
            values, own = np.unique(column, return_inverse=True)
            _, labels = np.unique(labels * len(values) + own, return_inverse=True)
        return cls.of_runs(np.ones(len(rows), dtype=np.int64), labels.astype(np.int64))

    @property
    def size(self) -> int:
        """The number of units."""
        return int(self.counts.sum())

    @cached_property
    def number(self) -> int:
        """The number of classes."""
        return int(self.classes.max()) + 1

    @cached_property
    def copies(self) -> Whole:
        """The number of units of each class."""
        found = np.zeros(self.number, dtype=np.int64)
        np.add.at(found, self.classes, self.counts)
        return found

    @cached_property
    def first(self) -> Whole:
        """The first unit of each class."""
        begins = np.cumsum(self.counts) - self.counts
        return np.asarray(begins[np.unique(self.classes, return_index=True)[1]])

    def alike(self, length: int) -> Alike:
        """The same as the kernel reads it, of units of so many numbers."""
        return Alike(length, tuple(self.counts.tolist()), tuple(self.classes.tolist()))

    def with_(self, other: Partition) -> Partition:
        """The coarsest partition that is finer than both."""
        every = np.sort(np.concatenate([np.cumsum(self.counts), np.cumsum(other.counts)]), kind="stable")
        ends = every[np.append(every[1:] > every[:-1], True)]
        labels = [p.classes[np.searchsorted(np.cumsum(p.counts), ends)] for p in (self, other)]
        return Partition.of_runs(np.diff(ends, prepend=0), labels[0] * other.number + labels[1])

    def within(self, first: int, size: int) -> tuple[Partition, Whole]:
        """The units from one on, so many, and the classes that they have here."""
        ends = np.cumsum(self.counts)
        lows, highs = np.maximum(ends - self.counts, first), np.minimum(ends, first + size)
        kept = highs > lows
        labels = self.classes[kept]
        return Partition.of_runs((highs - lows)[kept], labels), labels[np.sort(np.unique(labels, return_index=True)[1])]

    def embedded(self, first: int, size: int) -> Partition:
        """The same among so many units, those before and behind in a class of their own."""
        behind = size - first - self.size
        counts = np.concatenate([[first], self.counts, [behind]])
        labels = np.concatenate([[0], self.classes + 1, [0]])
        return Partition.of_runs(counts[counts > 0], labels[counts > 0])


@dataclass(frozen=True, eq=False, slots=True)
class Share:
    """The units of an input, `length` numbers each, and where it stands in the base vector; None: it is laid out.

    `index`: the index set whose members are the units; all they hold is put into classes in one way.
    """

    name: str
    index: str | None
    start: int
    stop: int
    length: int
    partition: Partition | None

    @property
    def width(self) -> int:
        """How many coordinates it has."""
        return self.stop - self.start if self.partition is None else self.partition.number * self.length


@dataclass(frozen=True, eq=False)
class Layout:
    """What the coordinates of the matrices of a problem are: those of one input after another."""

    shares: tuple[Share, ...]
    dimension: int = 1
    """How many numbers a coordinate stands for."""

    @classmethod
    def of(cls, model: Model) -> Layout:
        """Every large input of numbers in one class; laid out where each party's message is seen or has its figure."""
        told_apart = model.trust.alone or any(
            isinstance(r.measure, Personalised) or isinstance(r.neighbours, Spaced) for r in model.requirements
        )
        found = []
        for block in model.blocks:
            shape, whole = block.type.shape, told_apart or block.layout == "cells"
            laid_out = whole or not shape or min(shape[0] * FROM, block.size) < FROM
            length = block.size if laid_out else block.size // shape[0]
            partition = None if laid_out else Partition.single(shape[0])
            found.append(Share(block.name, block.index, block.start, block.stop, length, partition))
        return cls(tuple(found))

    @classmethod
    def laid(cls, blocks: Sequence[InputBlock]) -> Layout:
        """Every input laid out."""
        return cls(tuple(Share(b.name, b.index, b.start, b.stop, b.size, None) for b in blocks))

    @cached_property
    def places(self) -> dict[str, tuple[int, Share]]:
        """The first coordinate of each input."""
        found, at = {}, 0
        for share in self.shares:
            found[share.name] = at, share
            at += share.width
        return found

    @property
    def width(self) -> int:
        """How many coordinates there are."""
        return sum(share.width for share in self.shares)

    @property
    def plain(self) -> bool:
        """Whether the coordinates are those of the base vector."""
        return all(share.partition is None for share in self.shares)

    @cached_property
    def copies(self) -> NDArray[np.float64]:
        """How many numbers of the base vector each coordinate adds up."""
        parts = [
            np.ones(share.width) if share.partition is None else np.repeat(share.partition.copies, share.length)
            for share in self.shares
        ]
        return np.concatenate(parts).astype(np.float64)

    @cached_property
    def kernel_places(self) -> Places:
        """The same as the kernel reads it."""
        found: Places = {}
        for at, share in self.places.values():
            partition = Partition.single(1) if share.partition is None else share.partition
            found[share.start] = at, partition.alike(share.length)
        return found

    def finer(self, wanted: Sequence[tuple[str, Partition]]) -> Layout:
        """With classes split; an input that has too many of them is laid out."""
        found = self
        for name, partition in wanted:
            names, many, shares = found._together([name]), list[str](), list[Share]()
            for share in found.shares:
                if share.name in names and share.partition is not None:
                    split = share.partition.with_(partition)
                    many += [share.name] * (split.number > min(MOST, split.size // 2))
                    share = replace(share, partition=split)
                shares.append(share)
            found = Layout(tuple(shares)).laid_out(many)
        return found

    def laid_out(self, names: Sequence[str]) -> Layout:
        """With these inputs laid out."""
        chosen = self._together(names)
        return Layout(
            tuple(
                replace(share, length=share.stop - share.start, partition=None) if share.name in chosen else share
                for share in self.shares
            )
        )

    def _together(self, names: Sequence[str]) -> set[str]:
        indices = {share.index for share in self.shares if share.name in names} - {None}
        return {*names, *(share.name for share in self.shares if share.index in indices)}


class SplitError(Exception):
    """An expression tells units of one class apart: by name of the input, a partition of its units that does not."""

    def __init__(self, *wanted: tuple[str, Partition]) -> None:
        self.wanted = wanted
        super().__init__("classes are to be split")


class UnlikeError(Exception):
    """An expression that takes the units of some inputs one by one."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        super().__init__("units are to be laid out")
