"""Affine values, how an expression depends on the inputs, on free outputs and on noise; and losses as their squares.

An `Affine` is `offset + sum over symbols of coefficients @ symbol`, flattened row-major. Symbols are named
blocks: the base vector of the inputs, each free output, each noise site.

Units (entries, records or what one party holds, `length` numbers each) that count alike are in one class: a `Layout`
puts every unit of an input into one; the coordinates of all matrices are the sums over a class, number by number, so
that a sum of ten million numbers has one. Reading starts from one class for each large input, and splits where it must.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privspec.core.records import dataclass, replace
from privspec.core.sparse import Array, Matrix, SparseMatrix, kron, sparse_of, stacked
from privspec.kernel.core.linear import ExchangeableUnits, Places
from privspec.model.graph import Model
from privspec.model.measures import Personalised
from privspec.model.neighbours import InputBlock, ReplacingOneOf, Spaced
from privspec.model.requirements import Requirement

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

    @classmethod
    def of_labels(cls, labels: Sequence[object]) -> Partition:
        """Units by what is said of each: equal ones are one class."""
        known = {label: number for number, label in enumerate(dict.fromkeys(labels))}
        numbers = np.array([known[label] for label in labels], dtype=np.int64)
        return cls.of_runs(np.ones(len(numbers), dtype=np.int64), numbers)

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

    def alike(self, length: int) -> ExchangeableUnits:
        """The same as the kernel reads it, of units of so many numbers."""
        return ExchangeableUnits(length, tuple(self.counts.tolist()), tuple(self.classes.tolist()))

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
        """Every large input of numbers in one class, or one for each figure; laid out where units are told apart."""
        told_apart = any(
            isinstance(r.neighbours, Spaced) or (model.trust.alone and _of_several(r, model.blocks))
            for r in model.requirements
        )
        found, together = [], dict[str | None, list[InputBlock]]()
        for block in model.blocks:
            together.setdefault(block.index, []).append(block)
        for block in model.blocks:
            shape, size, whole = block.type.shape, block.size, told_apart or block.layout == "cells"
            if model.trust.alone:
                # a party sends what depends on all that it holds, and is of one class there
                joined = together[block.index] if block.index else [block]
                whole = whole or any(one.layout == "cells" for one in joined) or (not block.index and shape != (size,))
                size = max(one.size for one in joined)
            laid_out = whole or not shape or min(shape[0] * FROM, size) < FROM
            length = block.size if laid_out else block.size // shape[0]
            partition = None if laid_out else Partition.single(shape[0])
            found.append(Share(block.name, block.index, block.start, block.stop, length, partition))
        figures = [(r.wrt, r.measure.each) for r in model.requirements if isinstance(r.measure, Personalised)]
        wanted = [(name, Partition.of_labels(each)) for names, each in figures for name in names]
        return cls(tuple(found)).finer(wanted)

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


def _of_several(line: Requirement, blocks: Sequence[InputBlock]) -> bool:
    """Whether what changes in numbers at once may be held by several parties."""
    relation = line.neighbours
    each = [own for own, _ in relation.joined] if isinstance(relation, ReplacingOneOf) else [relation]
    held = [block for block in blocks if block.name in line.wrt and block.layout != "cells"]
    return any(one.group > 1 for one in each) or any(
        relation.length(block) > (block.party_length if block.index else 1) for block in held
    )


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


INPUTS = "inputs"
"""The symbol of the base vector (all inputs, one after another)."""


def output_symbol(name: str) -> str:
    """The symbol of a free output."""
    return f"output {name}"


def noise_symbol(name: str) -> str:
    """The symbol of the noise that enters at a node."""
    return f"noise {name}"


def constant_symbol(name: str) -> str:
    """The symbol of a public constant whose value is given when the plan is run."""
    return f"constant {name}"


@dataclass(frozen=True, eq=False, slots=True)
class Affine:
    """A value of `shape`, with `offset` (size,) and one coefficient matrix (size, width) for each symbol."""

    shape: tuple[int, ...]
    offset: Array
    coefficients: Mapping[str, Matrix]

    @classmethod
    def symbol(cls, name: str, shape: tuple[int, ...]) -> Affine:
        """The symbol itself."""
        size = int(np.prod(shape, dtype=int))
        return cls(shape, np.zeros(size), {name: SparseMatrix.diagonal(np.ones(size))})

    @property
    def size(self) -> int:
        """Number of entries."""
        return len(self.offset)

    def mapped(self, shape: tuple[int, ...], rows: Callable[[Array], Array], matrix: Matrix | None = None) -> Affine:
        """The image under a linear map, given as a function on axis 0 and, where there is one, as a matrix."""
        parts: dict[str, Matrix] = {}
        for symbol, part in self.coefficients.items():
            if matrix is not None:
                parts[symbol] = matrix @ part
            else:
                parts[symbol] = np.asarray(rows(part.toarray() if isinstance(part, SparseMatrix) else part))
        offset = np.asarray(matrix @ self.offset if matrix is not None else rows(self.offset)).reshape(-1)
        return Affine(shape, offset, parts)

    def scaled(self, factor: Array | float) -> Affine:
        """Entry by entry times a constant that broadcasts to or from this shape."""
        factors = np.asarray(factor, dtype=float)
        shape = np.broadcast_shapes(self.shape, factors.shape)
        spread = self.broadcast(shape)
        diagonal = SparseMatrix.diagonal(np.broadcast_to(factors, shape).reshape(-1).astype(np.float64))
        return spread.mapped(shape, lambda rows: np.asarray(diagonal @ rows), diagonal)

    def broadcast(self, shape: tuple[int, ...]) -> Affine:
        """This value repeated to `shape` by numpy's rule."""
        if shape == self.shape:
            return self
        index = np.broadcast_to(np.arange(self.size).reshape(self.shape), shape).reshape(-1)
        return self.taken(index, shape)

    def taken(self, index: NDArray[np.intp], shape: tuple[int, ...]) -> Affine:
        """The entries at flat positions `index`, arranged as `shape`."""
        parts: dict[str, Matrix] = {s: p[index] for s, p in self.coefficients.items()}
        return Affine(shape, self.offset[index], parts)

    def transposed(self) -> Affine:
        """With the first two axes, of two or more, exchanged."""
        order = np.arange(self.size).reshape(self.shape).swapaxes(0, 1)
        return self.taken(order.reshape(-1), order.shape)

    def plus(self, other: Affine, sign: float = 1.0) -> Affine:
        """The sum (or, with sign -1, the difference), with broadcasting."""
        shape = np.broadcast_shapes(self.shape, other.shape)
        left, right = self.broadcast(shape), other.broadcast(shape)
        parts: dict[str, Matrix] = dict(left.coefficients)
        for symbol, part in right.coefficients.items():
            scaled = part * sign
            parts[symbol] = parts[symbol] + scaled if symbol in parts else scaled
        return Affine(shape, left.offset + sign * right.offset, parts)

    def of_classes(self) -> Affine:
        """The same where what belongs to one unit is all there is in its class."""
        parts: dict[str, Matrix] = {}
        for symbol, part in self.coefficients.items():
            name = symbol.removeprefix(own_symbol(""))
            parts[name] = parts[name] + part if name in parts else part
        return Affine(self.shape, self.offset, parts)

    def dense(self, symbol: str, width: int) -> Array:
        """The coefficient matrix of a symbol as a dense array; zeros if it does not occur."""
        part = self.coefficients.get(symbol)
        if part is None:
            return np.zeros((self.size, width))
        return part.toarray() if isinstance(part, SparseMatrix) else np.asarray(part, dtype=float)


def constant(value: object) -> Affine:
    """A public value without symbols."""
    array = np.asarray(value, dtype=float)
    return Affine(array.shape, array.reshape(-1).copy(), {})


# --- values for each unit ---------------------------------------------------------------------------


def own_symbol(name: str) -> str:
    """The symbol of what belongs to one unit alone: its coordinates are those of the unit's class."""
    return f"one unit's {name}"


@dataclass(frozen=True, eq=False, slots=True)
class PerUnit:
    """A value for each of many units in a row, the same function of the unit within a class: row c of `each`.

    `each` has the shape (classes, *shape). `sources`: the inputs that the units are of, with the place of the first.
    """

    partition: Partition
    each: Affine
    sources: frozenset[tuple[str, int, int]]

    @property
    def shape(self) -> tuple[int, ...]:
        """As of all values together."""
        return (self.partition.size, *self.each.shape[1:])

    def split(self, wanted: Partition) -> SplitError:
        """That classes of the sources are to be split so that these are not told apart."""
        return SplitError(*((name, wanted.embedded(first, size)) for name, first, size in sorted(self.sources)))

    def refuse(self) -> UnlikeError:
        """That the units are needed one by one."""
        return UnlikeError(sorted({name for name, _, _ in self.sources}))

    def of_constants(self, rows: Array) -> Array:
        """One row for each class of constants (N, ...) that are the same within classes.

        Raises: SplitError where they are not.
        """
        wanted = Partition.of_rows(rows)
        if self.partition.with_(wanted).number > self.partition.number:
            raise self.split(wanted)
        return rows[self.partition.first]

    def scaled(self, factor: Array) -> PerUnit:
        """Times one number, or one for each value."""
        if factor.ndim and factor.shape == self.shape:
            factor = self.of_constants(factor)
        elif factor.ndim:
            raise self.refuse()
        return PerUnit(self.partition, self.each.scaled(factor), self.sources)

    def plus(self, other: PerUnit | Affine, sign: float = 1.0) -> PerUnit:
        """Plus or minus values of the same units, one value for all of them, or constants."""
        if isinstance(other, PerUnit):
            if other.shape != self.shape:
                raise self.refuse()
            both = self.partition.with_(other.partition)
            if both.number > self.partition.number:
                raise self.split(both)
            if both.number > other.partition.number:
                raise other.split(both)
            return PerUnit(both, self.each.plus(other.each, sign), self.sources | other.sources)
        if any(symbol.startswith(own_symbol("")) for symbol in other.coefficients):
            raise self.refuse()
        if not other.shape:
            return PerUnit(self.partition, self.each.plus(other, sign), self.sources)
        if other.coefficients or other.shape != self.shape:
            raise self.refuse()
        rows = constant(self.of_constants(other.offset.reshape(other.shape)))
        return PerUnit(self.partition, self.each.plus(rows, sign), self.sources)

    def unit(self, kind: int) -> Affine:
        """The value of a unit of some class."""
        inner = self.each.shape[1:]
        size = int(np.prod(inner, dtype=int))
        return self.each.taken(np.arange(kind * size, (kind + 1) * size), inner)

    def total(self, weights: Array) -> Affine:
        """The sum of all values, those of a class times its row of weights (classes, ...): (..., *shape)."""
        inner = self.each.shape[1:]
        flat, eye = weights.reshape(len(weights), -1).T, SparseMatrix.diagonal(np.ones(int(np.prod(inner, dtype=int))))
        once, every = (kron(w, eye) for w in (flat, flat * self.partition.copies))
        parts: dict[str, Matrix] = {}
        for symbol, part in self.each.coefficients.items():
            parts[symbol] = sparse_of((once if symbol.startswith(own_symbol("")) else every) @ part)
        return Affine((*weights.shape[1:], *inner), np.asarray(every @ self.each.offset), parts).of_classes()


# --- squares ----------------------------------------------------------------------------------------


class MixedError(Exception):
    """Squares of errors do not add up with sizes of errors."""


@dataclass(frozen=True, eq=False, slots=True)
class Squares:
    """An array of `shape` whose entry i is the sum of weights[r] * rows[r]^2 over the rows r with element[r] = i.

    `sizes`: of weights[r] * |rows[r]| instead.
    """

    shape: tuple[int, ...]
    rows: Affine
    weights: Array
    element: NDArray[np.intp]
    sizes: bool = False

    @classmethod
    def of(cls, value: Affine, *, sizes: bool = False) -> Squares:
        """Entry-by-entry squares, or sizes."""
        return cls(value.shape, value, np.ones(value.size), np.arange(value.size), sizes)

    def total(self) -> Squares:
        """The sum of all entries."""
        return Squares((), self.rows, self.weights, np.zeros(len(self.weights), dtype=np.intp), self.sizes)

    def scaled(self, factor: float) -> Squares:
        """Times a non-negative constant."""
        return Squares(self.shape, self.rows, self.weights * factor, self.element, self.sizes)

    def plus(self, other: Squares) -> Squares:
        """The sum of two of the same shape."""
        return Squares.added([self, other])

    @classmethod
    def added(cls, parts: list[Squares]) -> Squares:
        """The sum of all of one shape.

        Raises: MixedError where squares are added to sizes.
        """
        if len({part.shape for part in parts}) != 1:
            raise ValueError("shapes differ")
        if len({part.sizes for part in parts}) != 1:
            raise MixedError
        return cls(
            parts[0].shape,
            stack([part.rows for part in parts]),
            np.concatenate([part.weights for part in parts]),
            np.concatenate([part.element for part in parts]),
            parts[0].sizes,
        )


@dataclass(frozen=True, eq=False, slots=True)
class Worst:
    """The largest of several scalar sums of squares."""

    members: tuple[Squares, ...]


def stack(values: list[Affine]) -> Affine:
    """All entries of all values, one under another, as one vector."""
    symbols = sorted({s for v in values for s in v.coefficients})
    parts: dict[str, Matrix] = {}
    for symbol in symbols:
        width = next(v.coefficients[symbol].shape[1] for v in values if symbol in v.coefficients)
        nothing = np.empty(0)
        blocks = [
            v.coefficients[symbol] if symbol in v.coefficients else SparseMatrix.of((v.size, width), *[nothing] * 3)
            for v in values
        ]
        dense = [b for b in blocks if isinstance(b, np.ndarray)]
        if dense:
            parts[symbol] = np.vstack([b if isinstance(b, np.ndarray) else b.toarray() for b in blocks])
        else:
            parts[symbol] = stacked([sparse_of(b) for b in blocks])
    offset = np.concatenate([v.offset for v in values])
    return Affine((len(offset),), offset, parts)
