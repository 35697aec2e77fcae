"""Walks over syntax trees: children, names that are used, places where things are compared."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from fractions import Fraction
from typing import Any, TypeVar

from privspec.core.records import dataclass, fields, replace
from privspec.language import syntax
from privspec.language.spelling import spell
from privspec.language.syntax import Node

N = TypeVar("N", bound=Node)
_FIELDS: dict[type[Node], tuple[str, ...]] = {}


def _field_names(kind: type[Node]) -> tuple[str, ...]:
    found = _FIELDS.get(kind)
    if found is None:
        leaf = issubclass(kind, syntax.Numbers)
        found = () if leaf else tuple(f.name for f in fields(kind) if f.name not in {"span", "name_span"})
        _FIELDS[kind] = found
    return found


def children(node: Node) -> Iterator[Node]:
    """The nodes directly under a node, in the order of its fields, which is that of the text."""
    for name in _field_names(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            for item in value:
                if isinstance(item, Node):
                    yield item


def walk(node: Node, whole: Callable[[Node], bool] = lambda _: False) -> Iterator[Node]:
    """The node and all under it, but under those that are taken whole; parents first, left to right, no recursion."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        if not whole(current):
            stack.extend(reversed(tuple(children(current))))


def every(node: Node | None, *kinds: type[N]) -> Iterator[N]:
    """All nodes of some kinds below one and itself, in the order of `walk`; none where there is none."""
    return (one for one in walk(node) if isinstance(one, kinds)) if node is not None else iter(())


def depth(node: Node) -> int:
    """How many nodes the longest path down has."""
    deepest = 0
    stack = [(node, 1)]
    while stack:
        current, level = stack.pop()
        deepest = max(deepest, level)
        stack.extend((child, level + 1) for child in children(current))
    return deepest


def reached(starts: Iterable[str], following: Callable[[str], Iterable[str]]) -> dict[str, None]:
    """Some names, and all to which one comes from them, each once and the nearest first."""
    found = dict.fromkeys(starts)
    waiting = list(found)
    for name in waiting:  # which grows meanwhile
        new = dict.fromkeys(other for other in following(name) if other not in found)
        found |= new
        waiting += new
    return found


def with_children(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with each node directly below changed."""
    changes: dict[str, Any] = {}
    for item in fields(node):
        value = getattr(node, item.name)
        if isinstance(value, Node):
            changes[item.name] = change(value)
        elif isinstance(value, tuple) and any(isinstance(entry, Node) for entry in value):
            changes[item.name] = tuple(change(entry) if isinstance(entry, Node) else entry for entry in value)
    return replace(node, **changes)


def free_names(node: Node, bound: frozenset[str] = frozenset()) -> Iterator[tuple[syntax.Name, frozenset[str]]]:
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


def sliced(expr: syntax.Slice) -> syntax.Expr:
    """What a slice collects: `A[2..5, 1]` is `[A[k, 1] for k in 2..5]`, with the range in place of the letter."""
    indices, runs = list[syntax.Expr](), list[tuple[str, syntax.RangeOf]]()
    for axis, place in enumerate(expr.places):
        if isinstance(place, syntax.RangeOf):
            runs.append((spell(place) + " " * axis, place))  # no name of a spec, and another one on each axis
            indices.append(syntax.Name(runs[-1][0], span=place.span))
        else:
            indices.append(place)
    found: syntax.Expr = syntax.Index(expr.base, tuple(indices), span=expr.span)
    for variable, run in reversed(runs):
        found = syntax.Each(syntax.Comprehension(found, variable, run, span=expr.span), span=expr.span)
    return found


def regular(spec: syntax.Spec) -> syntax.Spec:
    """The same with `w[i] = e for i in 2..7` as `w = [e for i in 2..7]`; other lines about w count from 2 as well."""
    firsts: dict[str, tuple[syntax.Expr | None, ...]] = {}

    def whole(line: syntax.BackgroundStatement) -> syntax.BackgroundStatement:
        if not isinstance(line, syntax.Indexed):
            return line
        if line.op != "=":
            left, right = (_for_all(side, line.running) for side in (line.left, line.right))
            return syntax.Relation(line.op, left, right, span=line.span)
        if not isinstance(line.left, syntax.Index):
            return line
        runs = [replace(item, domain=ranged(item.domain)) for item in line.running]
        letters = [getattr(index, "id", "") for index in line.left.indices]
        base, value = line.left.base, line.right
        ranges = all(isinstance(item.domain, syntax.RangeOf | syntax.Name) for item in runs)
        if isinstance(base, syntax.Name) and ranges and letters == [item.name for item in runs]:
            for item in reversed(runs):
                terms = syntax.Comprehension(value, item.name, item.domain, span=line.right.span)
                value = syntax.Each(terms, span=line.right.span)
            firsts[base.id] = tuple(starts_after(item.domain) for item in runs)
            return syntax.Relation(line.op, base, value, span=line.span)
        return line

    def counted(node: Node) -> Node:
        node = with_children(node, counted)
        match node:
            case syntax.Index(base=syntax.Name(id=name)) if any(firsts.get(name, ())):
                places = tuple(map(_from_one, node.indices, (*firsts[name], *(None for _ in node.indices))))
                return syntax.Counted(node.base, places, spell(node), span=node.span)
            case syntax.Slice(base=syntax.Name(id=name)) if any(firsts.get(name, ())):
                starts = (*firsts[name], *(None for _ in node.places))
                return replace(node, places=tuple(map(_from_one, node.places, starts)))
        return node

    spec = replace(
        spec,
        background=tuple(whole(line) for line in spec.background),
        within=tuple(regular(inner) for inner in spec.within),
    )
    if not any(first is not None for some in firsts.values() for first in some):
        return spec
    changed = with_children(replace(spec, within=()), counted)
    assert isinstance(changed, syntax.Spec)
    return replace(changed, within=spec.within)


def ranged(domain: Any) -> Any:
    """`{0, 1, 2}` as the range 0..2; other domains as they are."""
    match domain:
        case syntax.Power():
            return replace(domain, base=ranged(domain.base))
        case syntax.SetOf(items=(syntax.Number(value=low) as first, *_, last)) if low.denominator == 1:
            if [getattr(one, "value", None) for one in domain.items] == [low + i for i in range(len(domain.items))]:
                return syntax.RangeOf(first, last, span=domain.span)
    return domain


def starts_after(domain: syntax.Domain | None) -> syntax.Expr | None:
    """Where a range starts; None for 1, and for what is no range."""
    low = domain.low if isinstance(domain, syntax.RangeOf) else None
    return None if isinstance(low, syntax.Number) and low.value == 1 else low


def _for_all(side: syntax.Expr, running: tuple[syntax.Member, ...]) -> syntax.Expr:
    """A side of a comparison at all that its letters run through."""
    for item in reversed(running):
        if uses(side, item.name):
            terms = syntax.Comprehension(side, item.name, ranged(item.domain), span=side.span)
            side = syntax.Each(terms, span=side.span)
    return side


def _from_one(place: Any, first: syntax.Expr | None) -> Any:
    """An index, or a range of them, that is counted from `first` (None: 1), counted from 1."""
    if first is None:
        return place
    if isinstance(place, syntax.RangeOf):
        return replace(place, low=_from_one(place.low, first), high=_from_one(place.high, first))
    one = syntax.Number(Fraction(1), span=place.span)
    return syntax.Binary("-", place, syntax.Binary("-", first, one, span=place.span), span=place.span)


def uses(node: Node, name: str) -> bool:
    """Whether a name is used freely below."""
    return any(found.id == name and name not in bound for found, bound in free_names(node))


def names_used(node: Node) -> tuple[str, ...]:
    """Free names below, each once, in order."""
    return tuple(dict.fromkeys(found.id for found, bound in free_names(node) if found.id not in bound))


def root(expr: Node) -> syntax.Name | None:
    """The name at the bottom of `name`, `name[i]`, `name.attribute`, `name'`."""
    match expr:
        case syntax.Name():
            return expr
        case syntax.Index() | syntax.Slice() | syntax.Attribute():
            return root(expr.base)
        case syntax.Transpose():
            return root(expr.operand)
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A place where one output stands against something: `whole` is there to be small when `mine` equals `other`."""

    whole: Node
    mine: syntax.Expr
    other: syntax.Expr
    loops: tuple[syntax.Comprehension, ...] = ()
    """The terms that it stands in, the innermost last."""


def comparisons(
    expr: Node, outputs: Collection[str], same_type: Callable[[Node], bool] = lambda _: False
) -> Iterator[Comparison]:
    """Sums and differences with outputs as terms, and `f(a, b)` where f compares values of one type.

    `O - y`, `y - O`, `O - A @ x - b` (against A @ x + b); entries likewise. With several outputs, as in
    `O - P - y`, each of them against the rest (P + y, O - y).
    """
    match expr:
        case syntax.Binary(op="+" | "-"):
            terms = list(summands(expr))
            yield from _each_output(expr, terms, outputs)
            for _, term in terms:
                yield from comparisons(term, outputs, same_type)
            return
        case syntax.Call(arguments=(first, second)) if same_type(expr):
            for mine, other in ((first, second), (second, first)):
                name = reference(mine)
                if name in outputs and not isinstance(other, syntax.NO_EXPRESSION) and reference(other) not in outputs:
                    yield Comparison(expr, mine, other)  # type: ignore[arg-type]
    loops = (expr,) if isinstance(expr, syntax.Comprehension) else ()
    for child in children(expr):
        for found in comparisons(child, outputs, same_type):
            yield replace(found, loops=(*loops, *found.loops)) if loops else found


def summands(expr: syntax.Expr, sign: int = 1) -> Iterator[tuple[int, syntax.Expr]]:
    """The terms of a sum with their signs, left to right."""
    match expr:
        case syntax.Binary(op="+" | "-", left=left, right=right):
            yield from summands(left, sign)
            yield from summands(right, sign if expr.op == "+" else -sign)
        case syntax.Negate(operand=operand):
            yield from summands(operand, -sign)
        case _:
            yield sign, expr


def _each_output(
    whole: syntax.Expr, terms: list[tuple[int, syntax.Expr]], outputs: Collection[str]
) -> Iterator[Comparison]:
    mine = [(sign, term) for sign, term in terms if reference(term) in outputs]
    # what a function makes of other outputs is what one stands beside, as in `rest - others(shown, ..)`
    plain = [term for _, term in terms if not isinstance(term, syntax.Call)]
    inside = [name for term in plain for name in names_used(term) if name in outputs]
    if len(set(inside)) == len(inside) == len(mine) and len(terms) > 1:
        for sign, output in mine:
            yield Comparison(whole, output, _other_side(sign, output, terms))


def _other_side(sign: int, output: syntax.Expr, terms: list[tuple[int, syntax.Expr]]) -> syntax.Expr:
    """What a term of a sum equals where the sum is zero."""
    rest = [(-sign * s, term) for s, term in terms if term is not output]
    rest.sort(key=lambda part: part[0] < 0)  # start with what is added, so that no leading minus is needed
    first_sign, total = rest[0]
    if first_sign < 0:
        total = syntax.Negate(total, span=total.span)
    for s, term in rest[1:]:
        total = syntax.Binary("+" if s > 0 else "-", total, term, span=total.span.to(term.span))
    return total


def reference(expr: Node) -> str | None:
    """The name in `name`, `name[i]` or `name[1..7]`, None for anything else."""
    match expr:
        case syntax.Name(id=name) | syntax.Index(base=syntax.Name(id=name)) | syntax.Slice(base=syntax.Name(id=name)):
            return name
        case _:
            return None


def items_of(value: syntax.Expr) -> tuple[syntax.Expr, ...]:
    """What stands in braces, or the one value without them."""
    return value.items if isinstance(value, syntax.SetOf) else (value,)


def word_of(item: syntax.Node) -> str | None:
    """The word that a name is, or a text in quotes; None for anything else."""
    return item.id if isinstance(item, syntax.Name) else item.value if isinstance(item, syntax.String) else None
