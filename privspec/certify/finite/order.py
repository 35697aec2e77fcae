"""Whether expressions can tell the order of the records of an input: read from the text alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

from privspec.language import syntax
from privspec.language.walk import children, names_used
from privspec.model.library import library


def order_matters(name: str, party: str | None, trees: Sequence[syntax.Node]) -> bool:
    """Whether an expression uses an input otherwise than in a function that ignores the order of its argument.

    The argument may be the input itself, or `e for party` over its whole index set where e uses the member for nothing
    but to pick the record `name[member]`: putting the records in another order then puts the terms in that order.
    """
    waiting: list[syntax.Node] = list(trees)
    while waiting:
        node = waiting.pop()
        match node:
            case syntax.Name(id=used) if used == name:
                return True
            case syntax.Call(function=function, arguments=arguments) if syntax.Name(name) in arguments:
                if not _ignores_order(function):
                    return True
                waiting.extend(argument for argument in arguments if argument != syntax.Name(name))
            case syntax.Call(function=function, arguments=(syntax.Comprehension() as each,)) if (
                _ignores_order(function) and each.variable != name and _everybody(each, party)
            ):
                rest = without_records(each.body, name, each.variable)
                if each.variable in names_used(rest):
                    return True
                waiting.append(rest)
            case _:
                waiting.extend(children(node))
    return False


def _ignores_order(function: str) -> bool:
    known = library().get(function)
    return known is not None and known.symmetric


def _everybody(each: syntax.Comprehension, party: str | None) -> bool:
    """Whether a variable runs through a whole index set."""
    if party is None:
        return False
    if each.domain is None:
        return each.variable == party
    return isinstance(each.domain, syntax.Name) and each.domain.id == party


def without_records(node: syntax.Node, name: str, member: str) -> syntax.Node:
    """The expression with a number in place of every `name[member]`, which is one thing for each record."""
    match node:
        case syntax.Index(base=syntax.Name(id=base), indices=(syntax.Name(id=at),)) if base == name and at == member:
            return syntax.Number(Fraction(0), span=node.span)
        case syntax.Comprehension(variable=variable) if variable == member:
            return node  # another one of that name
    changed: dict[str, Any] = {}
    for item in fields(node):
        value = getattr(node, item.name)
        if isinstance(value, syntax.Node):
            changed[item.name] = without_records(value, name, member)
        elif isinstance(value, tuple):
            changed[item.name] = tuple(
                without_records(part, name, member) if isinstance(part, syntax.Node) else part for part in value
            )
    return replace(node, **changed)
