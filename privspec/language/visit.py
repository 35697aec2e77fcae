"""Walks over syntax trees, whatever their classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from privspec.language import syntax as s
from privspec.language.syntax import Node

_FIELDS: dict[type[Node], tuple[str, ...]] = {}


def _field_names(kind: type[Node]) -> tuple[str, ...]:
    found = _FIELDS.get(kind)
    if found is None:
        found = tuple(f.name for f in fields(kind) if f.name not in {"span", "name_span"})
        _FIELDS[kind] = found
    return found


def iter_child_nodes(node: Node) -> Iterator[Node]:
    """The nodes directly under a node, in the order of its fields (which is that of the text)."""
    for name in _field_names(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            for item in value:
                if isinstance(item, Node):
                    yield item


def walk(node: Node) -> Iterator[Node]:
    """The node and all under it, a parent before its children, left to right; needs no recursion."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(tuple(iter_child_nodes(current))))


def depth(node: Node) -> int:
    """How many nodes the longest path down has."""
    deepest = 0
    stack = [(node, 1)]
    while stack:
        current, level = stack.pop()
        deepest = max(deepest, level)
        stack.extend((child, level + 1) for child in iter_child_nodes(current))
    return deepest


def free_names(node: Node) -> frozenset[str]:
    """The names an expression, domain or statement refers to.

    Functions of calls, attributes and keywords are not names; what `for v` binds is not free in its body,
    but is in its domain. Symbols of `{a, b}` count: only the model knows which of them are parameters.
    """
    found: set[str] = set()
    stack: list[tuple[Node, frozenset[str]]] = [(node, frozenset())]
    while stack:
        current, bound = stack.pop()
        match current:
            case s.Name(id=name) if name not in bound:
                found.add(name)
            case s.Ref(name=name) if name not in bound:
                found.add(name)
            case s.Target(variable=str() as variable):
                inner = bound | {variable}
                stack.extend((child, inner) for child in (current.left, current.right))
                if current.probability is not None:
                    stack.append((current.probability, inner))
                if current.domain is not None:
                    stack.append((current.domain, bound))
                continue
            case s.Comprehension(body=body, variable=variable, domain=domain):
                stack.append((body, bound | {variable}))
                if domain is not None:
                    stack.append((domain, bound))
                continue
        stack.extend((child, bound) for child in iter_child_nodes(current))
    return frozenset(found)


def dump(tree: s.Spec) -> str:
    """The tree as text for people who look for a fault: one statement a line, `(Kind field field ...)`."""
    lines = [f"spec {tree.name}" if tree.name else "spec"]
    if tree.doc is not None:
        lines.append(f"doc {tree.doc!r}")
    for section in _field_names(s.Spec)[2:-1]:
        value = getattr(tree, section)
        items = value if isinstance(value, tuple) else (value,) if value is not None else ()
        lines.extend(f"{section} {_shown(item)}" for item in items)
    return "\n".join(lines) + "\n"


def _shown(value: object) -> str:
    match value:
        case s.Name(id=name):
            return name
        case s.Number(value=number):
            return str(number)
        case s.String(value=text):
            return f'"{text}"'
        case Node():
            names = (n for n in _field_names(type(value)) if n != "text")
            parts = [type(value).__name__, *(_shown(getattr(value, n)) for n in names)]
            return f"({' '.join(parts)})"
        case tuple():
            return f"[{' '.join(_shown(item) for item in value)}]"
        case s.VariableKind():
            return str(value.value)
        case None:
            return "-"
        case _:
            return str(value)
