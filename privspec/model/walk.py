"""Walking expressions: children, names that are used, places where things are compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TypeAlias

from privspec.language import syntax

Tree: TypeAlias = syntax.Node


def children(node: Tree) -> Iterator[Tree]:
    """The nodes directly below."""
    for item in fields(node):
        value = getattr(node, item.name)
        if isinstance(value, syntax.Node):
            yield value
        elif isinstance(value, tuple):
            yield from (entry for entry in value if isinstance(entry, syntax.Node))


def walk(node: Tree) -> Iterator[Tree]:
    """The node and all below, parents first."""
    yield node
    for child in children(node):
        yield from walk(child)


def free_names(
    node: Tree, bound: frozenset[str] = frozenset()
) -> Iterator[tuple[syntax.Name, frozenset[str]]]:
    """Every name used as a value, with the comprehension variables in force; symbols in sets are marked by caller."""
    match node:
        case syntax.Name():
            yield node, bound
        case syntax.Comprehension():
            if node.domain is not None:
                yield from free_names(node.domain, bound)
            yield from free_names(node.body, bound | {node.variable})
        case _:
            for child in children(node):
                yield from free_names(child, bound)


def uses(node: Tree, name: str) -> bool:
    """Whether a name is used freely below."""
    return any(found.id == name and name not in bound for found, bound in free_names(node))


def names_used(node: Tree) -> tuple[str, ...]:
    """Free names below, each once, in order."""
    return tuple(dict.fromkeys(found.id for found, bound in free_names(node) if found.id not in bound))


def root(expr: Tree) -> syntax.Name | None:
    """The name at the bottom of `name`, `name[i]`, `name.attribute`, `name'`."""
    match expr:
        case syntax.Name():
            return expr
        case syntax.Index() | syntax.Attribute():
            return root(expr.base)
        case syntax.Transpose():
            return root(expr.operand)
        case _:
            return None


def comparisons(expr: Tree, name: str, same_type: frozenset[str]) -> Iterator[tuple[Tree, Tree, bool]]:
    """Where `name` stands against something: in `name - e`, `e - name` or `f(name, e)` for f in `same_type`.

    Yields: (the side that holds the name, the other side, whether it is a difference).
    """
    for node in walk(expr):
        match node:
            case syntax.Binary(op="-", left=left, right=right):
                if is_reference(left, name):
                    yield left, right, True
                elif is_reference(right, name):
                    yield right, left, True
            case syntax.Call(function=function, arguments=(first, second)) if function in same_type:
                if is_reference(first, name):
                    yield first, second, False
                elif is_reference(second, name):
                    yield second, first, False


def is_reference(expr: Tree, name: str) -> bool:
    """Whether an expression is `name` or an entry of it."""
    match expr:
        case syntax.Name(id=found):
            return found == name
        case syntax.Index(base=syntax.Name(id=found)):
            return found == name
        case _:
            return False
