"""Reductions: how the children of a grammar rule become a node of the syntax tree.

Children are tokens (all of them, punctuation too, so that spans are exact) and nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

from privspec.core.spans import Span
from privspec.kernel.measures import TOTAL_VARIATION
from privspec.language import syntax as s
from privspec.language.automaton import Action, Inline, Token

Children: TypeAlias = list[Any]


def _span(children: Sequence[Any]) -> Span:
    return Span(children[0].span.start, children[-1].span.end)


def _nodes(children: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(c for c in children if isinstance(c, s.Node))


def _is(child: object, *types: str) -> bool:
    return isinstance(child, Token) and child.type in types


def _after(children: Sequence[Any], mark: str) -> Any | None:
    """The child that follows the first token of a type; the text of one that is a token."""
    for before, child in pairwise(children):
        if _is(before, mark):
            return child.value if isinstance(child, Token) else child
    return None


class _ColumnIs(s.Node):
    """`base.name = value` in a call, which is about the table that the call is about."""

    base: s.Expr
    name: str
    value: s.Expr


def _arguments(items: Sequence[Any]) -> tuple[Any, ...]:
    """`any(visits.code = A)` as `any(visits, code = A)`; of another table than the first, a column that none has."""
    found: list[Any] = []
    for item in items:
        if not isinstance(item, _ColumnIs):
            found.append(item)
            continue
        if not found:
            found.append(item.base)
        first = found[0].base if isinstance(found[0], s.Attribute) else found[0]
        name = item.name if first == item.base else f"{getattr(item.base, 'id', '')}.{item.name}"
        found.append(s.Keyword(name, item.value, span=item.span))
    return tuple(found)


def _leaf(token: Token) -> s.Number | s.Name:
    if token.type == "NUMBER":
        return s.Number(Fraction(token.value), token.value, span=token.span)
    return s.Name(token.value, span=token.span)


def _leaves(children: Sequence[Any]) -> list[Any]:
    """Children with bare NUMBER and NAME tokens made nodes."""
    return [_leaf(c) if _is(c, "NUMBER", "NAME") else c for c in children]


def _two(token: Token) -> s.Number:
    return s.Number(Fraction(2), "2", span=token.span)


def _group(children: Children) -> Any:
    return replace(children[1], span=_span(children))


def _parentheses(children: Children) -> s.Expr:
    items = _nodes(children)
    if len(items) == 1:
        return _group(children)  # type: ignore[no-any-return]
    return s.TupleOf(items, span=_span(children))


def _signed(children: Children) -> Any:
    items = _leaves(children)
    return s.Negate(items[1], span=_span(children)) if len(items) == 2 else items[0]


def _interval(children: Children) -> tuple[Any, ...]:
    comma = next(i for i, c in enumerate(children) if _is(c, ","))
    return _signed(children[1:comma]), children[comma + 1], _is(children[0], "("), _is(children[-1], ")")


def _range(children: Children) -> tuple[Any, ...]:
    dots = next(i for i, c in enumerate(children) if _is(c, ".."))
    return _signed(children[:dots]), _upper(children[dots + 1 :])


def _upper(children: Children) -> Any:
    """The upper end of a range: the rule is flat, the tree has the usual precedence."""
    parts = _ungroup(children)
    negative = _is(parts[0], "-")
    rest = parts[2:] if negative else parts[1:]
    operands: list[s.Expr] = [s.Negate(parts[1], span=_span(parts[:2])) if negative else parts[0]]
    operators: list[Token] = []
    for operator, operand in zip(rest[::2], rest[1::2], strict=True):
        if operator.type == "*":
            left = operands.pop()
            operands.append(s.Binary("*", left, operand, span=left.span.to(operand.span)))
        else:
            operators.append(operator)
            operands.append(operand)
    total = operands[0]
    for operator, operand in zip(operators, operands[1:], strict=True):
        total = s.Binary(operator.type, total, operand, span=total.span.to(operand.span))
    return total


def _ungroup(children: Children) -> Children:
    """Operands and operators, with `( expr )` replaced by its expression."""
    parts: Children = []
    i = 0
    while i < len(children):
        size = 3 if _is(children[i], "(") else 1
        parts += [_group(children[i : i + 3])] if size == 3 else _leaves(children[i : i + 1])
        i += size
    return parts


def _decided(children: Children) -> tuple[str, s.Expr, s.Condition]:
    """`t.column = a >= b`."""
    left, _, *compared = children
    return "=", left, s.Condition(compared[1].type, compared[0], compared[2], span=_span(compared))


def _ref(children: Children) -> s.Ref:
    name, attribute = children[0], _after(children, ".")
    return s.Ref(name.value, attribute, _nodes(children), name_span=name.span, span=_span(children))


def _amount_item(item: Any) -> s.Expr:
    """A reference among the amounts, as an expression."""
    if not isinstance(item, s.Ref):
        return item  # type: ignore[no-any-return]
    result: s.Expr = s.Name(item.name, span=item.name_span)
    if item.attribute is not None:
        result = s.Attribute(result, item.attribute, span=item.span)
    return s.Index(result, item.indices, span=item.span) if item.indices else result


def _clauses(children: Children) -> tuple[Any, ...]:
    return tuple(c for c in children if isinstance(c, s.Clause))


def _make(kind: Callable[..., Any], fields: Callable[[Children], tuple[Any, ...]]) -> Action:
    """The action that makes a node of some fields, at the place of all its children."""
    return lambda children: kind(*fields(children), span=_span(children))


def _given(nodes: tuple[Any, ...]) -> tuple[Any, ...]:
    """What an average is of, and what it is given: one expression, or several and values as a tuple."""
    body, *given = nodes
    if not given or (len(given) == 1 and not isinstance(given[0], s.Known)):
        return nodes
    return body, s.TupleOf(tuple(given), span=given[0].span)


_TERMS = _make(s.Comprehension, lambda c: (c[0], c[2].value, _after(c, "IN")))
ACTIONS: dict[str, Action] = {
    "number": lambda c: _leaf(c[0]),
    "name": lambda c: s.Name(c[0].value, span=c[0].span),
    "string": _make(s.String, lambda c: (c[0].value,)),
    "day": _make(s.String, lambda c: (c[0].value,)),
    "call": _make(s.Call, lambda c: (c[0].value, _arguments(_nodes(c)))),
    "set": _make(s.SetOf, lambda c: (_nodes(c),)),
    "vector": _make(s.Vector, lambda c: (_nodes(c),)),
    "parentheses": _parentheses,
    "group": _group,
    "binary": _make(s.Binary, lambda c: (c[1].type, c[0], c[2])),
    "square": _make(s.Binary, lambda c: ("^", c[0], _two(c[1]))),
    "negate": _make(s.Negate, lambda c: (c[1],)),
    "transpose": _make(s.Transpose, lambda c: (c[0],)),
    "index": lambda c: (s.Slice if any(isinstance(one, s.RangeOf) for one in c) else s.Index)(
        c[0], _nodes(c)[1:], span=_span(c)
    ),
    "attribute": _make(s.Attribute, lambda c: (c[0], c[2].value)),
    "norm": _make(s.Norm, lambda c: (c[1], c[2].value if c[2].type == "NORM_P" else "2")),
    "absolute": _make(s.Absolute, lambda c: (c[1],)),
    "over": _make(s.Over, lambda c: (c[0].value, *_given(_nodes(c)))),
    "known": _make(s.Known, lambda c: (s.Name(c[0].value, span=c[0].span), s.SetOf((c[2],), span=c[2].span))),
    "column_is": _make(_ColumnIs, lambda c: (c[0], c[2].value, c[4])),
    "keyword": _make(s.Keyword, lambda c: (c[0].value, c[2])),
    "condition": _make(s.Condition, lambda c: (c[1].type, c[0], c[2])),
    "holds": _make(s.Holds, lambda c: (c[2].type, c[1], c[3])),
    "member": _make(s.Member, lambda c: (c[0].value, c[2])),
    "each": lambda c: s.Each(_TERMS(c[1:-1]), span=_span(c)),
    "comprehension": _TERMS,
    "power_domain": _make(
        s.Power, lambda c: (_leaves(c)[0], (_two(c[1]),) if _is(c[1], "²") else _nodes(_leaves(c[2:])))
    ),
    "interval": _make(s.Interval, _interval),
    "ranking": _make(s.RankingOf, lambda c: (_leaves(c)[2],)),
    "range": _make(s.RangeOf, _range),
    "days": _make(s.RangeOf, lambda c: tuple(s.String(one.value, span=one.span) for one in (c[0], c[2]))),
    "upper": Inline,
    "ref": _ref,
    "names": _make(s.Refs, lambda c: (_nodes(c),)),
    "all_of": _make(s.AllOf, lambda c: (c[1].value,)),
    "amount": _make(s.Amount, lambda c: (tuple(map(_amount_item, _nodes(_leaves(c)))),)),
    "replacing": _make(s.Replacing, lambda c: (c[1],)),
    "adding_or_removing": _make(s.AddingOrRemoving, lambda c: (c[3],)),
    "distance": _make(s.Distance, lambda c: (c[1],)),
    "seen_by": _make(s.SeenBy, lambda c: (_nodes(_leaves(c)),)),
    "given_the_model": _make(s.GivenTheModel, lambda _: ()),
    "apart": _make(s.Apart, lambda c: (c[-2], _is(c[0], "exactly"))),
    "in_one_cell": _make(s.InOneCell, lambda c: (c[2],)),
    "everything": _make(s.Everything, lambda _: ()),
    "one_unit": _make(s.OneUnit, lambda c: (c[1].value, *((c[5], c[6].value) if len(c) > 2 else ()))),
    "up_to_units": _make(s.UpToUnits, lambda c: (c[2], c[3].value)),
    "by_neighbour": _make(s.ByNeighbour, lambda c: (c[-6].value, _is(c[0], "one"), c[-1])),
    "parameter": _make(s.Parameter, lambda c: (c[0], c[2])),
    "party": _make(s.Party, lambda c: (c[0].value, c[2])),
    "component": _make(s.Component, lambda c: (c[0].value, c[2])),
    "variable": _make(
        s.Variable,
        lambda c: (
            s.VariableKind(c[0].value),
            c[1],
            _after(c, "IN"),
            _after(c, "="),
            c[2].value if len(c) > 2 and c[2].__class__ is Token and c[2].type == "STRING" else None,
            c[-1] if isinstance(c[-1], s.Drawn) else None,
        ),
    ),
    "drawn": _make(s.Drawn, lambda c: (c[1], c[4])),
    "decided": _make(s.Relation, _decided),
    "relation": _make(s.Relation, lambda c: (c[1].type, c[0], c[2])),
    "indexed": _make(s.Indexed, lambda c: (c[1].type, c[0], c[2], _nodes(c[3:]))),
    "membership": _make(s.Membership, lambda c: (c[0], c[2])),
    "claim": _make(s.SensitivityClaim, lambda c: (c[0], c[2].value, c[6], _after(c, "WRT"), _clauses(c))),
    "loss": lambda c: c[0],
    "target": _make(s.Target, lambda c: (c[0], c[2], _after(c, "for"), _after(c, "IN"), _after(c, "probability"))),
    "requirement": _make(s.Requirement, lambda c: (c[0], c[2], c[3].value, _after(c, "WRT"), _clauses(c))),
    "advantage": _make(s.Requirement, lambda c: (c[2], c[7], TOTAL_VARIATION.word, c[4], _clauses(c))),
    "independence": _make(
        s.Independence, lambda c: (c[0], _after(c, "of"), _after(c, "given"), _after(c, "="), _after(c, "to"))
    ),
    "trust": _make(s.Trust, lambda c: (_leaves(c)[1],)),
    "noise_at": _make(s.NoiseAt, lambda c: (_nodes(c),)),
    "noise_family": _make(s.NoiseFamily, lambda c: (_nodes(_leaves(c)),)),
    "unbiased": _make(s.Unbiased, lambda _: ()),
    "different_people": _make(s.DifferentPeople, lambda c: (_nodes(_leaves(c)),)),
    "same_people": _make(s.SamePeople, lambda c: (_nodes(_leaves(c)),)),
}
"""The action of every rule of the grammar by its name; a test compares the two."""
