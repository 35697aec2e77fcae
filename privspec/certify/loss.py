"""A loss as sums of squares of error terms, read from the spec; how every error term moves with k things at once."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from privspec.certify.motion import Array, NotUnderstood, Scene, extents
from privspec.language import syntax


@dataclass(frozen=True, eq=False, slots=True)
class Squares:
    """An array of `shape`: entry i is the sum of the squares of the rows r (each a motion, (k,)) with entry[r] = i."""

    shape: tuple[int, ...]
    rows: Array
    entry: NDArray[np.int64]

    def total(self) -> Squares:
        """The sum of all entries."""
        return Squares((), self.rows, np.zeros(len(self.rows), dtype=np.int64))

    def scaled(self, factor: Array) -> Squares:
        """Entry by entry times a constant that is not negative."""
        if np.any(factor < 0):
            raise NotUnderstood("a negative weight")
        if factor.shape not in ((), self.shape):
            raise NotUnderstood("weights of another shape")
        weights = np.sqrt(np.broadcast_to(factor, self.shape).ravel())[self.entry]
        return Squares(self.shape, weights[:, None] * self.rows, self.entry)


@dataclass(frozen=True, eq=False, slots=True)
class Errors:
    """Loss = sum of squares (`worst` False), or the largest of the sums over the rows of each group."""

    rows: Array
    group: NDArray[np.int64]
    worst: bool

    def value(self) -> float:
        """The loss when every column is one independent unit of noise."""
        sums = np.bincount(self.group, weights=np.einsum("rk,rk->r", self.rows, self.rows))
        return float(sums.max() if self.worst else sums.sum())

    def weighted(self, weights: Array) -> Array:
        """Rows whose sum of squares is the weighted mean of the groups."""
        rows: Array = np.sqrt(weights)[self.group][:, None] * self.rows
        return rows


def read_loss(expr: syntax.Expr, scene: Scene) -> Errors:
    """The error terms of a loss.

    Noise is additive and unbiased, so an average or a worst case over the inputs is the same for every
    input; that the terms vanish without noise is another claim.
    Raises: NotUnderstood.
    """
    match expr:
        case syntax.Over(body=body, given=None):
            return read_loss(body, scene)
        case syntax.Call(function="max", arguments=(syntax.Comprehension() as over,)):
            return _worst([_squares(over.body, inner) for inner in scene.each(over)])
        case syntax.Call(function="max", arguments=(single,)) if not isinstance(single, _ARGUMENTS):
            found = _squares(single, scene)
            return Errors(found.rows, found.entry, True)
        case syntax.Call(function="max", arguments=items):
            return _worst([_squares(item, scene) for item in items if not isinstance(item, _ARGUMENTS)])
    found = _squares(expr, scene)
    if found.shape:
        raise NotUnderstood("a loss that is not one number")
    return Errors(found.rows, found.entry, False)


_ARGUMENTS = syntax.RangeOf | syntax.Keyword | syntax.Member | syntax.Comprehension


def _worst(members: list[Squares]) -> Errors:
    if not members or any(m.shape for m in members):
        raise NotUnderstood("the largest of values that are not single numbers")
    group = np.concatenate([np.full(len(m.rows), i) for i, m in enumerate(members)])
    return Errors(np.vstack([m.rows for m in members]), group, True)


def _squares(expr: syntax.Expr, scene: Scene) -> Squares:
    match expr:
        case syntax.Over(operator="E", body=body, given=None):
            return _squares(body, scene)
        case syntax.Binary(op="+"):
            return _plus(_squares(expr.left, scene), _squares(expr.right, scene))
        case syntax.Binary(op="*"):
            if scene.motion_is_public(expr.left):
                return _squares(expr.right, scene).scaled(scene.number(expr.left))
            return _squares(expr.left, scene).scaled(scene.number(expr.right))
        case syntax.Binary(op="/"):
            return _squares(expr.left, scene).scaled(1.0 / scene.number(expr.right))
        case syntax.Binary(op="^") if np.array_equal(scene.number(expr.right), 2.0):
            return _square(expr.left, scene)
        case syntax.Call(function="sum" | "mean", arguments=(over,)):
            inner = _collected(over, scene)
            size = max(prod(inner.shape), 1)
            total = inner.total()
            return total if expr.function == "sum" else total.scaled(np.array(1.0 / size))
    raise NotUnderstood("a loss that is not a sum of squared errors")


def _collected(over: syntax.Argument, scene: Scene) -> Squares:
    match over:
        case syntax.Comprehension():
            parts = [_squares(over.body, inner) for inner in scene.each(over)]
            if not parts or any(p.shape != parts[0].shape for p in parts):
                raise NotUnderstood("terms of different shapes")
            size = max(prod(parts[0].shape), 1)
            entry = np.concatenate([p.entry + i * size for i, p in enumerate(parts)])
            return Squares((len(parts), *parts[0].shape), np.vstack([p.rows for p in parts]), entry)
        case syntax.RangeOf() | syntax.Keyword() | syntax.Member():
            raise NotUnderstood("an argument of a sum")
        case _:
            return _squares(over, scene)


def _plus(left: Squares, right: Squares) -> Squares:
    if left.shape != right.shape:
        raise NotUnderstood("a sum of different shapes")
    return Squares(left.shape, np.vstack([left.rows, right.rows]), np.concatenate([left.entry, right.entry]))


def _square(base: syntax.Expr, scene: Scene) -> Squares:
    match base:
        case syntax.Norm(operand=operand, order="2"):
            return _entries(operand, scene).total()
        case syntax.Absolute(operand=operand):
            return _entries(operand, scene)
        case syntax.Norm():
            raise NotUnderstood(f"the {base.order}-norm")
        case _:
            return _entries(base, scene)


def _entries(expr: syntax.Expr, scene: Scene) -> Squares:
    motion = scene.motion(expr)
    shape, width = extents(motion.type), scene.width
    size = prod(shape)
    rows = np.zeros((size, width)) if motion.data is None else motion.data.reshape(size, width)
    return Squares(shape, rows, np.arange(size))
