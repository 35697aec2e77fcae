"""How expressions and domains are spelt: one text for every tree, with no bracket the grammar does not need."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import singledispatch

from privspec.language import syntax as s

_WORD = re.compile(r"[^\W\d_²³¹][^\W²³¹]*")
"""A name of a column that needs no quotes."""
_SUM, _PRODUCT, _UNARY, _POSTFIX, _ATOM = 1, 2, 3, 4, 5
_LEVELS = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "@": _PRODUCT, "^": _UNARY}


def _level(node: s.Node) -> int:
    match node:
        case s.Binary(op=op):
            return _LEVELS[op]
        case s.Negate():
            return _UNARY
        case s.Transpose() | s.Index() | s.Attribute():
            return _POSTFIX
        case _:
            return _ATOM


def _at(node: s.Node, level: int) -> str:
    text = spell(node)
    return f"({text})" if _level(node) < level else text


def listed(items: Sequence[s.Node]) -> str:
    """Texts with commas between."""
    return ", ".join(spell(item) for item in items)


def _bars(bar: str, inner: str) -> str:
    pad = " " if inner[0] == "|" or inner[-1] == "|" else ""
    return f"{bar}{pad}{inner}{pad}{bar}"


@singledispatch
def spell(node: s.Node) -> str:
    """The text of a node."""
    raise TypeError(f"no text for {type(node).__name__}")


# --- expressions -------------------------------------------------------------------------------


@spell.register
def _(node: s.Number) -> str:
    return number_text(node)


def number_text(node: s.Number) -> str:
    """The author's spelling, or an exact decimal; a value that has none is written as a quotient."""
    if node.text and Fraction(node.text) == node.value:
        return node.text
    value = node.value
    if value < 0:
        return f"(-{number_text(s.Number(-value))})"
    if value.denominator == 1:
        digits = str(value.numerator)
        zeros = len(digits) - len(digits.rstrip("0"))
        return digits if zeros < 16 else f"{digits[:-zeros]}e{zeros}"
    for base in (2, 5):
        value = Fraction(value.numerator, value.denominator)
        while value.denominator % base == 0:
            value *= base
    if value.denominator != 1:
        return f"({node.value.numerator} / {node.value.denominator})"
    places = 0
    while (node.value * 10**places).denominator != 1:
        places += 1
    digits = str((node.value * 10**places).numerator)
    if places > 15 + len(digits):
        return f"{digits}e-{places}"
    digits = digits.rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}"


@spell.register
def _(node: s.String) -> str:
    return f'"{node.value}"'


@spell.register
def _(node: s.Name) -> str:
    return node.id


@spell.register
def _(node: s.Call) -> str:
    return f"{node.function}({listed(node.arguments)})"


@spell.register
def _(node: s.SetOf) -> str:
    return f"{{{listed(node.items)}}}"


@spell.register
def _(node: s.TupleOf) -> str:
    return f"({listed(node.items)})"


@spell.register
def _(node: s.Vector) -> str:
    return f"[{listed(node.items)}]"


@spell.register
def _(node: s.Negate) -> str:
    return f"-{_at(node.operand, _UNARY)}"


@spell.register
def _(node: s.Binary) -> str:
    level = _LEVELS[node.op]
    if node.op == "^":
        return f"{_at(node.left, _POSTFIX)}^{_at(node.right, _UNARY)}"
    return f"{_at(node.left, level)} {node.op} {_at(node.right, level + 1)}"


@spell.register
def _(node: s.Transpose) -> str:
    return f"{_at(node.operand, _POSTFIX)}'"


@spell.register
def _(node: s.Index) -> str:
    base = _at(node.base, _POSTFIX)
    # E[ and worst[ begin the operator, so a variable of that name needs brackets
    if isinstance(node.base, s.Name) and base in {"E", "worst"}:
        base = f"({base})"
    return f"{base}[{listed(node.indices)}]"


@spell.register
def _(node: s.Attribute) -> str:
    return f"{_at(node.base, _POSTFIX)}.{node.name}"


@spell.register
def _(node: s.Norm) -> str:
    order = "" if node.order == "2" else f"_{node.order}"
    return _bars("||", spell(node.operand)) + order


@spell.register
def _(node: s.Absolute) -> str:
    return _bars("|", spell(node.operand))


@spell.register
def _(node: s.Over) -> str:
    body = spell(node.body)
    pad = " " if set(body) & set("([{|") else ""
    given = "" if node.given is None else f" | {spell(node.given)}"
    return f"{node.operator}[{pad}{body}{given}{pad}]"


@spell.register
def _(node: s.Keyword) -> str:
    return f"{node.name} = {spell(node.value)}"


@spell.register
def _(node: s.Member) -> str:
    # a column with a name that is no word of the language stands in quotes
    name = node.name if _WORD.fullmatch(node.name) else f'"{node.name}"'
    return f"{name} in {spell(node.domain)}"


@spell.register
def _(node: s.Comprehension) -> str:
    return f"{spell(node.body)} for {node.variable}{within(node.domain)}"


# --- domains -----------------------------------------------------------------------------------


@spell.register
def _(node: s.RangeOf) -> str:
    return f"{spell(node.low)}..{_upper(node.high)}"


def _upper(node: s.Expr) -> str:
    """The upper end of a range: signs + - * without brackets, all else in brackets."""
    match node:
        case s.Binary(op="+" | "-" as op, left=left, right=right):
            return f"{_upper(left)} {op} {_upper_product(right, first=False)}"
        case _:
            return _upper_product(node, first=True)


def _upper_product(node: s.Expr, *, first: bool) -> str:
    match node:
        case s.Binary(op="*", left=left, right=right):
            return f"{_upper_product(left, first=first)} * {_upper_item(right)}"
        case s.Negate(operand=s.Number() | s.Name() as operand) if first:
            return f"-{spell(operand)}"
        case _:
            return _upper_item(node)


def _upper_item(node: s.Expr) -> str:
    text = spell(node)
    return text if isinstance(node, s.Number | s.Name) else f"({text})"


@spell.register
def _(node: s.Interval) -> str:
    left, right = "(" if node.low_open else "[", ")" if node.high_open else "]"
    return f"{left}{spell(node.low)}, {spell(node.high)}{right}"


@spell.register
def _(node: s.RankingOf) -> str:
    return f"ranking of {spell(node.alternatives)}"


@spell.register
def _(node: s.Power) -> str:
    base = spell(node.base)
    if isinstance(node.base, s.RangeOf | s.Power):
        base = f"({base})"
    if len(node.exponents) == 1 and isinstance(node.exponents[0], s.Number | s.Name):
        return f"{base}^{spell(node.exponents[0])}"
    return f"{base}^({listed(node.exponents)})"


def within(domain: s.Domain | None) -> str:
    """` in domain`, or nothing."""
    return "" if domain is None else f" in {spell(domain)}"
