"""How the values of a spec move: a second, independent reading of its definitions and of its loss.

A `Motion` is what happens to a value when k things are moved, one column each: the inputs (which gives the
target map), the outputs (which gives the error terms) or the noise at a site. Only linear dependence is
read; anything else raises `NotUnderstood`, and the claim that needed it stays unchecked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

from privspec.core.spans import Span
from privspec.language import syntax
from privspec.language.walk import names_used
from privspec.model.domains import Table, Tables, Type
from privspec.model.evaluate import Environment, bind_call, evaluate, places, stack, value_type
from privspec.model.graph import Model
from privspec.model.library import Argument, Arguments
from privspec.model.targets import environment, meaning
from privspec.model.values import Value, as_float

Array = NDArray[np.float64]
ENTRY_LIMIT = 2**28
"""Largest number of doubles in one motion."""


class NotUnderstood(Exception):  # noqa: N818 - not an error: the claim stays unchecked
    """A part of a spec that this reader cannot follow."""


@dataclass(frozen=True, eq=False, slots=True)
class Motion:
    """The derivative (*shape, k) of a value of some type; None where it does not move (tables: (cells, k))."""

    type: Type
    data: Array | None
    value: Value | None = None

    @property
    def still(self) -> bool:
        """Whether nothing moves it."""
        return self.data is None


@dataclass(frozen=True, eq=False)
class Scene:
    """Motions of some variables; all others stand still, public ones at their values."""

    model: Model
    motions: Mapping[str, Array]
    local: Mapping[str, Value] = field(default_factory=dict)

    def with_local(self, name: str, value: Value) -> Scene:
        """One more bound variable."""
        return Scene(self.model, self.motions, {**self.local, name: value})

    @property
    def environment(self) -> Environment:
        """Public values only."""
        return environment(self.model, self.local)

    def motion(self, expr: syntax.Expr) -> Motion:
        """How an expression moves.

        Raises: NotUnderstood.
        """
        match expr:
            case syntax.Name():
                return self._name(expr.id)
            case syntax.Number() | syntax.String() | syntax.SetOf():
                value = evaluate(expr, self.environment)
                return Motion(value_type(value), None, value)
            case syntax.Negate():
                inner = self.motion(expr.operand)
                return _public(expr, self) if inner.value is not None else _times(inner, np.array(-1.0))
            case syntax.Binary():
                return self._binary(expr)
            case syntax.Transpose():
                inner = self.motion(expr.operand)
                if inner.value is not None:
                    return _public(expr, self)
                if len(inner.type.shape) < 2:
                    return inner
                shape = (inner.type.shape[1], inner.type.shape[0], *inner.type.shape[2:])
                return Motion(Type(shape), None if inner.data is None else inner.data.swapaxes(0, 1))
            case syntax.Index():
                return self._index(expr)
            case syntax.Vector() | syntax.TupleOf():
                items = [self.motion(item) for item in expr.items]
                return _stack(items, expr.span)
            case syntax.Call():
                return self._call(expr)
        raise NotUnderstood(f"{type(expr).__name__.lower()} of values that move")

    @property
    def width(self) -> int:
        """How many things are moved at once."""
        return int(next(iter(self.motions.values())).shape[-1])

    def motion_is_public(self, expr: syntax.Expr) -> bool:
        """Whether an expression is a public value."""
        return not any(name in self.model.nodes and name not in self.model.values for name in names_used(expr))

    def number(self, expr: syntax.Expr) -> Array:
        """A public value.

        Raises: NotUnderstood if it is not public.
        """
        value = self.motion(expr).value
        if value is None:
            raise NotUnderstood("a public number is wanted")
        return as_float(value)

    def _name(self, name: str) -> Motion:
        if name in self.local or (name in self.model.values and name not in self.motions):
            value = self.local[name] if name in self.local else self.model.values[name]
            return Motion(value_type(value), None, value)
        node = self.model.nodes.get(name)
        if node is None:
            raise NotUnderstood(f"{name} has no value")
        return Motion(node.type, self.motions.get(name))

    def _binary(self, expr: syntax.Binary) -> Motion:
        left, right = self.motion(expr.left), self.motion(expr.right)
        if left.value is not None and right.value is not None:
            return _public(expr, self)
        match expr.op:
            case "+":
                return _plus(left, right, 1.0)
            case "-":
                return _plus(left, right, -1.0)
            case "*" if left.value is not None:
                return _times(right, as_float(left.value))
            case "*" if right.value is not None:
                return _times(left, as_float(right.value))
            case "/" if right.value is not None:
                return _times(left, 1.0 / as_float(right.value))
            case "@" if left.value is not None:
                return _matrix_times(as_float(left.value), right)
            case "@" if right.value is not None:
                return _times_matrix(left, as_float(right.value))
        raise NotUnderstood(f"`{expr.op}` of two values that move")

    def _index(self, expr: syntax.Index) -> Motion:
        base = self.motion(expr.base)
        if base.value is not None:
            return _public(expr, self)
        at = tuple(int(self.number(item)) - 1 for item in expr.indices)
        shape = base.type.shape
        if len(at) > len(shape) or any(not 0 <= i < extent for i, extent in zip(at, shape, strict=False)):
            raise NotUnderstood("an entry that is not there")
        return Motion(Type(shape[len(at) :], base.type.element), None if base.data is None else base.data[at])

    def _call(self, expr: syntax.Call) -> Motion:
        positional: list[Argument] = []
        motions: list[Motion] = []
        keywords: dict[str, Argument] = {}
        for item in expr.arguments:
            match item:
                case syntax.Keyword():
                    inner = self.motion(item.value)
                    keywords[item.name] = Argument(inner.type, inner.value, None, item.span)
                case syntax.Comprehension():
                    found = _stack([scene.motion(item.body) for scene in self.each(item)], item.span)
                    motions.append(found)
                    positional.append(Argument(found.type, found.value, None, item.span, iterated=True))
                case syntax.RangeOf() | syntax.Member():
                    raise NotUnderstood(f"an argument of {expr.function}")
                case _:
                    found = self.motion(item)
                    motions.append(found)
                    positional.append(Argument(found.type, found.value, _domain(found.type), item.span))
        if all(m.value is not None for m in motions):
            return _public(expr, self)
        bound = bind_call(expr, Arguments(tuple(positional), keywords))
        if not bound.linear or len(bound.data) != 1:
            raise NotUnderstood(f"{expr.function} is not linear")
        data = motions[bound.data[0]].data
        if data is None:
            return Motion(bound.type, None)
        return Motion(bound.type, np.asarray(bound.apply(data)).reshape(*extents(bound.type), data.shape[-1]))

    def each(self, over: syntax.Comprehension) -> Iterable[Scene]:
        """A scene for every place that a comprehension runs through."""
        return [self.with_local(over.variable, place) for place in places(over, self.environment)]


def extents(kind: Type) -> tuple[int, ...]:
    """Shape of the numbers of a value: a table is the vector of its cells."""
    return (kind.element.table.cell_count,) if isinstance(kind.element, Tables) else kind.shape


def _domain(kind: Type) -> Table | None:
    return kind.element.table if isinstance(kind.element, Tables) else None


def _public(expr: syntax.Expr, scene: Scene) -> Motion:
    value = evaluate(expr, scene.environment)
    return Motion(value_type(value), None, value)


def _broadcast(motion: Motion, shape: tuple[int, ...]) -> Array | None:
    if motion.data is None or motion.data.shape[:-1] == shape:
        return motion.data
    return np.broadcast_to(motion.data, (*shape, motion.data.shape[-1]))


def _plus(left: Motion, right: Motion, sign: float) -> Motion:
    shape = np.broadcast_shapes(extents(left.type), extents(right.type))
    kind = left.type if extents(left.type) == shape else right.type
    a, b = _broadcast(left, shape), _broadcast(right, shape)
    if a is None or b is None:
        return Motion(kind, a if b is None else sign * b)
    return Motion(kind, a + sign * b)


def _times(motion: Motion, factor: Array) -> Motion:
    shape = np.broadcast_shapes(extents(motion.type), factor.shape)
    data = _broadcast(motion, shape)
    return Motion(Type(shape), None if data is None else factor[..., None] * data)


def _matrix_times(matrix: Array, motion: Motion) -> Motion:
    shape = extents(motion.type)
    if not matrix.ndim or not shape:
        return _times(motion, matrix)
    kind = Type(matrix.shape[:-1] + shape[1:])
    return Motion(kind, None if motion.data is None else np.tensordot(matrix, motion.data, axes=(-1, 0)))


def _times_matrix(motion: Motion, matrix: Array) -> Motion:
    shape = extents(motion.type)
    if not matrix.ndim or not shape:
        return _times(motion, matrix)
    kind = Type(shape[:-1] + matrix.shape[1:])
    if motion.data is None:
        return Motion(kind, None)
    moved = np.moveaxis(motion.data, -1, 0)
    return Motion(kind, np.moveaxis(np.tensordot(moved, matrix, axes=(-1, 0)), 0, -1))


def _stack(items: list[Motion], span: Span) -> Motion:
    if not items:
        raise NotUnderstood("an empty list")
    known = [item.value for item in items if item.value is not None]
    if len(known) == len(items):
        value = stack(known, span)
        return Motion(value_type(value), None, value)
    shape = extents(items[0].type)
    if any(extents(item.type) != shape for item in items):
        raise NotUnderstood("items of different shapes")
    kind = Type((len(items), *shape))
    width = {item.data.shape[-1] for item in items if item.data is not None}
    if not width:
        return Motion(kind, None, None)
    zero = np.zeros((*shape, width.pop()))
    return Motion(kind, np.stack([zero if item.data is None else item.data for item in items]))


# --- the system --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class System:
    """A spec as a linear system from its base vector u (n,) to its outputs (m,), read from its definitions."""

    model: Model

    def response(self, seeds: Mapping[str, Array], outputs: Mapping[str, Array] | None = None) -> Scene:
        """Move the nodes named (each (*shape, k)) and follow the definitions; `outputs` given move as told."""
        motions: dict[str, Array] = dict(seeds)
        scene = Scene(self.model, motions)
        for name in self.model.order:
            node = self.model.nodes[name]
            if outputs is not None and name in outputs:
                motions[name] = outputs[name]
            elif name not in seeds and node.definition is not None and name not in self.model.values:
                found = scene.motion(node.definition) if node.index is None else self._collection(scene, name)
                if found.data is not None:
                    motions[name] = found.data
        return scene

    def _collection(self, scene: Scene, name: str) -> Motion:
        node = self.model.nodes[name]
        if node.index is None or node.definition is None:
            raise NotUnderstood(f"{name} has no definition")
        size = self.model.parties[node.index].size
        people = (scene.with_local(node.index, Fraction(i + 1)) for i in range(size))
        return _stack([person.motion(node.definition) for person in people], node.span)

    def input_seeds(self) -> dict[str, Array]:
        """Each coordinate of the base vector moves by one."""
        n = self.model.size
        seeds: dict[str, Array] = {}
        for block in self.model.blocks:
            columns = np.zeros((block.size, n))
            columns[:, block.start : block.stop] = np.eye(block.size)
            seeds[block.name] = columns.reshape(*self.node_shape(block.name), n)
        return seeds

    def node_shape(self, name: str) -> tuple[int, ...]:
        """Shape of the numbers of a variable (tables: number of cells)."""
        return extents(self.model.nodes[name].type)

    def has_aim(self, output: str) -> bool:
        """Whether one expression of the data says what an output estimates, without other outputs."""
        found = meaning(self.model, output)
        if found is None:
            return False
        drawn = {node.name for node in self.model.outputs}
        known = {*self.model.nodes, *self.model.values} - drawn
        return all(name in known for name in names_used(found))

    def target(self, names: Iterable[str], scene: Scene) -> Array:
        """How the aims of the outputs move, one under another (m, k)."""
        parts: list[Array] = []
        for name in names:
            aim = meaning(self.model, name)
            if aim is None:
                raise NotUnderstood(f"nothing says what {name} estimates")
            found = scene.motion(aim)
            size = prod(extents(found.type))
            if size != prod(self.node_shape(name)):
                raise NotUnderstood(f"{name} and what it estimates differ in shape")
            parts.append(np.zeros((size, scene.width)) if found.data is None else found.data.reshape(size, -1))
        return np.vstack(parts)
