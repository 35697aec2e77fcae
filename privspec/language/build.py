"""Reductions: how the children of a grammar rule become a node of the syntax tree.

Children are tokens (all of them, punctuation too, so that spans are exact) and nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

from privspec.core.spans import Span
from privspec.language import syntax as s
from privspec.language.automaton import Action, Inline, Token

Children: TypeAlias = list[Any]


def _span(children: Sequence[Any]) -> Span:
    return Span(children[0].span.start, children[-1].span.end)


def _nodes(children: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(c for c in children if isinstance(c, s.Node))


def _is(child: object, *types: str) -> bool:
    return isinstance(child, Token) and child.type in types


def _after(children: Sequence[Any], *types: str) -> Any | None:
    """The child that follows the first token of one of these types."""
    for before, child in pairwise(children):
        if _is(before, *types):
            return child
    return None


def _leaf(token: Token) -> s.Number | s.Name:
    if token.type == "NUMBER":
        return s.Number(Fraction(token.value), token.value, span=token.span)
    return s.Name(token.value, span=token.span)


def _leaves(children: Sequence[Any]) -> list[Any]:
    """Children with bare NUMBER and NAME tokens made nodes."""
    return [_leaf(c) if _is(c, "NUMBER", "NAME") else c for c in children]


# --- expressions -------------------------------------------------------------------------------


def _number(children: Children) -> s.Expr:
    return _leaf(children[0])


def _name(children: Children) -> s.Name:
    return s.Name(children[0].value, span=children[0].span)


def _string(children: Children) -> s.String:
    return s.String(children[0].value, span=children[0].span)


def _call(children: Children) -> s.Call:
    return s.Call(children[0].value, _nodes(children), span=_span(children))


def _set(children: Children) -> s.SetOf:
    return s.SetOf(_nodes(children), span=_span(children))


def _vector(children: Children) -> s.Vector:
    return s.Vector(_nodes(children), span=_span(children))


def _parentheses(children: Children) -> s.Expr:
    items = _nodes(children)
    if len(items) == 1:
        return _group(children)  # type: ignore[no-any-return]
    return s.TupleOf(items, span=_span(children))


def _group(children: Children) -> Any:
    return replace(children[1], span=_span(children))


def _binary(children: Children) -> s.Binary:
    left, op, right = children
    return s.Binary(op.type, left, right, span=_span(children))


def _square(children: Children) -> s.Binary:
    two = s.Number(Fraction(2), "2", span=children[1].span)
    return s.Binary("^", children[0], two, span=_span(children))


def _negate(children: Children) -> s.Negate:
    return s.Negate(children[1], span=_span(children))


def _transpose(children: Children) -> s.Transpose:
    return s.Transpose(children[0], span=_span(children))


def _index(children: Children) -> s.Index:
    base, *indices = _nodes(children)
    return s.Index(base, tuple(indices), span=_span(children))


def _attribute(children: Children) -> s.Attribute:
    return s.Attribute(children[0], children[2].value, span=_span(children))


def _norm(children: Children) -> s.Norm:
    close = children[2]
    return s.Norm(children[1], close.value if close.type == "NORM_P" else "2", span=_span(children))


def _absolute(children: Children) -> s.Absolute:
    return s.Absolute(children[1], span=_span(children))


def _over(children: Children) -> s.Over:
    body, *given = _nodes(children)
    return s.Over(children[0].value, body, given[0] if given else None, span=_span(children))


def _keyword(children: Children) -> s.Keyword:
    return s.Keyword(children[0].value, children[2], span=_span(children))


def _member(children: Children) -> s.Member:
    return s.Member(children[0].value, children[2], span=_span(children))


def _comprehension(children: Children) -> s.Comprehension:
    return s.Comprehension(children[0], children[2].value, _after(children, "IN"), span=_span(children))


# --- domains -----------------------------------------------------------------------------------


def _power_domain(children: Children) -> s.Power:
    base = _leaves(children)[0]
    if _is(children[1], "²"):
        exponents: tuple[Any, ...] = (s.Number(Fraction(2), "2", span=children[1].span),)
    else:
        exponents = _nodes(_leaves(children[2:]))
    return s.Power(base, exponents, span=_span(children))


def _interval(children: Children) -> s.Interval:
    comma = next(i for i, c in enumerate(children) if _is(c, ","))
    low = _signed(children[1:comma])
    return s.Interval(low, children[comma + 1], _is(children[0], "("), _is(children[-1], ")"), span=_span(children))


def _signed(children: Children) -> Any:
    items = _leaves(children)
    if len(items) == 2:
        return s.Negate(items[1], span=_span(children))
    return items[0]


def _ranking(children: Children) -> s.RankingOf:
    return s.RankingOf(_leaves(children)[2], span=_span(children))


def _range(children: Children) -> s.RangeOf:
    dots = next(i for i, c in enumerate(children) if _is(c, ".."))
    return s.RangeOf(_signed(children[:dots]), _upper(children[dots + 1 :]), span=_span(children))


def _upper(children: Children) -> Any:
    """The upper end of a range: the rule is flat, the tree has the usual precedence."""
    operands: list[s.Expr] = []
    operators: list[Token] = []
    parts = _ungroup(children)
    if _is(parts[0], "-"):
        operands.append(s.Negate(parts[1], span=_span(parts[:2])))
        rest = parts[2:]
    else:
        operands.append(parts[0])
        rest = parts[1:]
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
        if _is(children[i], "("):
            parts.append(_group(children[i : i + 3]))
            i += 3
        else:
            parts.extend(_leaves(children[i : i + 1]))
            i += 1
    return parts


# --- parts of statements -----------------------------------------------------------------------


def _ref(children: Children) -> s.Ref:
    attribute = _after(children, ".")
    return s.Ref(
        children[0].value,
        attribute.value if attribute is not None else None,
        _nodes(children),
        name_span=children[0].span,
        span=_span(children),
    )


def _names(children: Children) -> s.Refs:
    return s.Refs(_nodes(children), span=_span(children))


def _all_of(children: Children) -> s.AllOf:
    return s.AllOf(children[1].value, span=_span(children))


def _amount(children: Children) -> s.Amount:
    items = tuple(_as_expr(c) if isinstance(c, s.Ref) else c for c in _nodes(_leaves(children)))
    return s.Amount(items, span=_span(children))


def _as_expr(ref: s.Ref) -> s.Expr:
    result: s.Expr = s.Name(ref.name, span=ref.name_span)
    if ref.attribute is not None:
        result = s.Attribute(result, ref.attribute, span=ref.span)
    if ref.indices:
        result = s.Index(result, ref.indices, span=ref.span)
    return result


def _replacing(children: Children) -> s.Replacing:
    return s.Replacing(children[1], span=_span(children))


def _adding(children: Children) -> s.AddingOrRemoving:
    return s.AddingOrRemoving(children[3], span=_span(children))


def _distance(children: Children) -> s.Distance:
    return s.Distance(children[1], span=_span(children))


def _seen_by(children: Children) -> s.SeenBy:
    return s.SeenBy(_nodes(_leaves(children)), span=_span(children))


def _everything(children: Children) -> s.Everything:
    return s.Everything(span=_span(children))


def _one_unit(children: Children) -> s.OneUnit:
    return s.OneUnit(children[1].value, span=_span(children))


def _up_to_units(children: Children) -> s.UpToUnits:
    return s.UpToUnits(children[2], children[3].value, span=_span(children))


def _clauses(children: Children) -> tuple[Any, ...]:
    return tuple(c for c in children if isinstance(c, (s.Replacing, s.AddingOrRemoving, s.Distance, s.SeenBy)))


# --- statements --------------------------------------------------------------------------------


def _parameter(children: Children) -> s.Parameter:
    return s.Parameter(children[0], children[2], span=_span(children))


def _party(children: Children) -> s.Party:
    return s.Party(children[0].value, children[2], span=_span(children))


def _component(children: Children) -> s.Component:
    return s.Component(children[0].value, children[2], span=_span(children))


def _variable(children: Children) -> s.Variable:
    return s.Variable(
        s.VariableKind(children[0].value),
        children[1],
        _after(children, "IN"),
        _after(children, "="),
        span=_span(children),
    )


def _relation(children: Children) -> s.Relation:
    return s.Relation(children[1].type, children[0], children[2], span=_span(children))


def _membership(children: Children) -> s.Membership:
    return s.Membership(children[0], children[2], span=_span(children))


def _claim(children: Children) -> s.SensitivityClaim:
    wrt = _after(children, "WRT")
    assert isinstance(wrt, s.Ref)
    return s.SensitivityClaim(
        children[0], children[2].value, children[6], wrt, _clauses(children), span=_span(children)
    )


def _loss(children: Children) -> s.Expr:
    expression: s.Expr = children[0]
    return expression


def _target(children: Children) -> s.Target:
    variable = _after(children, "for")
    return s.Target(
        children[0],
        children[2],
        variable.value if variable is not None else None,
        _after(children, "IN"),
        _after(children, "probability"),
        span=_span(children),
    )


def _requirement(children: Children) -> s.Requirement:
    wrt = _after(children, "WRT")
    assert isinstance(wrt, (s.Refs, s.AllOf))
    return s.Requirement(children[0], children[2], children[3].value, wrt, _clauses(children), span=_span(children))


def _independence(children: Children) -> s.Independence:
    of = _after(children, "of")
    assert isinstance(of, s.Ref)
    return s.Independence(
        children[0], of, _after(children, "given"), _after(children, "="), _after(children, "to"), span=_span(children)
    )


def _trust(children: Children) -> s.Trust:
    return s.Trust(_leaves(children)[1], span=_span(children))


def _noise_at(children: Children) -> s.NoiseAt:
    return s.NoiseAt(_nodes(children), span=_span(children))


def _noise_family(children: Children) -> s.NoiseFamily:
    return s.NoiseFamily(_nodes(_leaves(children)), span=_span(children))


ACTIONS: dict[str, Action] = {
    "number": _number, "name": _name, "string": _string, "call": _call, "set": _set, "vector": _vector,
    "parentheses": _parentheses, "group": _group, "binary": _binary, "square": _square, "negate": _negate,
    "transpose": _transpose, "index": _index, "attribute": _attribute, "norm": _norm, "absolute": _absolute,
    "over": _over, "keyword": _keyword, "member": _member, "comprehension": _comprehension,
    "power_domain": _power_domain, "interval": _interval, "ranking": _ranking, "range": _range,
    "upper": Inline,
    "ref": _ref, "names": _names, "all_of": _all_of, "amount": _amount, "replacing": _replacing,
    "adding_or_removing": _adding, "distance": _distance, "seen_by": _seen_by, "everything": _everything,
    "one_unit": _one_unit, "up_to_units": _up_to_units,
    "parameter": _parameter, "party": _party, "component": _component, "variable": _variable,
    "relation": _relation, "membership": _membership, "claim": _claim, "loss": _loss, "target": _target,
    "requirement": _requirement, "independence": _independence, "trust": _trust, "noise_at": _noise_at,
    "noise_family": _noise_family,
}  # fmt: skip
"""The action of every rule of the grammar by its name; a test compares the two."""
