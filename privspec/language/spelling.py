"""Syntax trees to text: one spelling for every tree, ASCII, with no bracket that the grammar does not need."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import singledispatch
from itertools import pairwise

from privspec.language import syntax as s
from privspec.language.layout import SECTIONS

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


# --- statements --------------------------------------------------------------------------------


@spell.register
def _(node: s.Ref) -> str:
    attribute = "" if node.attribute is None else f".{node.attribute}"
    indices = f"[{listed(node.indices)}]" if node.indices else ""
    return f"{node.name}{attribute}{indices}"


@spell.register
def _(node: s.Parameter) -> str:
    return f"{spell(node.target)} = {spell(node.value)}"


@spell.register
def _(node: s.Party) -> str:
    return f"{node.name}{within(node.domain)}"


@spell.register
def _(node: s.Component) -> str:
    return f"{node.name} = {spell(node.call)}"


@spell.register
def _(node: s.Variable) -> str:
    value = "" if node.value is None else f" = {spell(node.value)}"
    return f"{node.kind.value} {spell(node.target)}{within(node.domain)}{value}"


@spell.register
def _(node: s.Relation) -> str:
    return f"{spell(node.left)} {node.op} {spell(node.right)}"


@spell.register
def _(node: s.Membership) -> str:
    return f"{spell(node.left)}{within(node.domain)}"


@spell.register
def _(node: s.SensitivityClaim) -> str:
    claim = f"has {node.norm} sensitivity at most {spell(node.amount)} wrt {spell(node.wrt)}"
    return f"{spell(node.subject)} {claim}{_clauses(node.clauses)}"


def _clauses(clauses: Sequence[s.Clause]) -> str:
    return "".join(f", {spell(clause)}" for clause in clauses)


@spell.register
def _(_node: s.Everything) -> str:
    return "everything"


@spell.register
def _(node: s.OneUnit) -> str:
    return f"one {node.name}"


@spell.register
def _(node: s.UpToUnits) -> str:
    return f"up to {spell(node.amount)} {node.name}"


@spell.register
def _(node: s.Replacing) -> str:
    return f"replacing {spell(node.unit)}"


@spell.register
def _(node: s.AddingOrRemoving) -> str:
    return f"adding or removing {spell(node.unit)}"


@spell.register
def _(node: s.Distance) -> str:
    return f"distance {spell(node.metric)}"


@spell.register
def _(node: s.SeenBy) -> str:
    return "seen by " + " and ".join(spell(name) for name in node.observers)


@spell.register
def _(node: s.Refs) -> str:
    return listed(node.items) if len(node.items) == 1 else f"({listed(node.items)})"


@spell.register
def _(node: s.AllOf) -> str:
    return f"all {node.what}"


@spell.register
def _(node: s.Amount) -> str:
    if len(node.items) == 1 and _is_bare(node.items[0]):
        item = node.items[0]
        if isinstance(item, s.Index):  # no operator can begin here, so E[voter] is a name
            return f"{spell(item.base)}[{listed(item.indices)}]"
        return spell(item)
    return f"({listed(node.items)})"


def _is_bare(node: s.Expr) -> bool:
    match node:
        case s.Number() | s.Name() | s.Attribute(base=s.Name()):
            return True
        case s.Index(base=s.Name() | s.Attribute(base=s.Name())):
            return True
        case _:
            return False


@spell.register
def _(node: s.Target) -> str:
    over = "" if node.variable is None else f" for {node.variable}{within(node.domain)}"
    chance = "" if node.probability is None else f" with probability {spell(node.probability)}"
    return f"{spell(node.left)} <= {spell(node.right)}{over}{chance}"


@spell.register
def _(node: s.Requirement) -> str:
    measure = f"{spell(node.amount)}-{node.measure} wrt {spell(node.wrt)}"
    return f"{spell(node.subjects)} {_verb(node.subjects)} {measure}{_clauses(node.clauses)}"


def _verb(subjects: s.Names) -> str:
    return "are" if isinstance(subjects, s.AllOf) else "is"


@spell.register
def _(node: s.Independence) -> str:
    given = "" if node.given is None else f" given {spell(node.given)}"
    value = "" if node.value is None else f" = {spell(node.value)}"
    tolerance = "" if node.tolerance is None else f", up to {spell(node.tolerance)}"
    subjects = f"{spell(node.subjects)} {_verb(node.subjects)}"
    return f"{subjects} independent of {spell(node.of)}{given}{value}{tolerance}"


@spell.register
def _(node: s.Trust) -> str:
    return f"trust {spell(node.model)}"


@spell.register
def _(node: s.NoiseAt) -> str:
    return f"noise at {listed(node.sites)}"


@spell.register
def _(node: s.NoiseFamily) -> str:
    return f"noise family {listed(node.names)}"


WIDTH = 100
INDENT = "  "


def print_spec(tree: s.Spec) -> str:
    """The text of a spec; parsing it gives the same tree. Sections stand in the order of `tree.sections`."""
    blocks = []
    if tree.name is not None:
        blocks.append("\n".join(title_lines(tree)))
    for name in section_order(tree):
        lines = [f"{name}:"]
        for statement in statements_of(tree, name):
            lines.extend(wrap(spell(statement), INDENT))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def title_lines(tree: s.Spec) -> list[str]:
    """The line with the name, and the description."""
    lines = [f"spec {tree.name}"]
    if tree.doc is not None:
        end = "\n" if tree.doc.endswith('"') else ""
        lines.append(f'"""{tree.doc}{end}"""')
    return lines


def statements_of(tree: s.Spec, section: str) -> tuple[s.Node, ...]:
    """The statements of a section, in order."""
    value = getattr(tree, section)
    if section == "loss":
        return () if value is None else (value,)
    return tuple(value)


def section_order(tree: s.Spec) -> list[str]:
    """The sections to print: the author's, then those that have statements all the same."""
    order = [name for name in tree.sections if name != "loss" or tree.loss is not None]
    order += [name for name in SECTIONS if name not in order and statements_of(tree, name)]
    return order or ["variables"]


def wrap(text: str, indent: str) -> list[str]:
    """A statement as lines; if it is too long and ends with a list in brackets, one item of that a line."""
    if len(indent) + len(text) <= WIDTH:
        return [indent + text]
    breakable = [g for g in _groups(text) if g[2] and len(text) - g[1] <= 20]
    group = max(breakable, key=lambda g: g[1] - g[0], default=None)
    if group is None:
        return [indent + text]
    first, last, commas = group
    cuts = [first, *commas, last - 1]
    items = [text[a + 1 : b + 1].strip() for a, b in pairwise(cuts)]
    return [indent + text[: first + 1], *(indent + INDENT + item for item in items if item), indent + text[last:]]


def _groups(text: str) -> list[tuple[int, int, list[int]]]:
    """Outermost brackets: where they open, where they close, and the commas directly inside."""
    found: list[tuple[int, int, list[int]]] = []
    commas: list[int] = []
    depth, start, quoted = 0, 0, False
    for i, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif char in "([{":
            depth += 1
            if depth == 1:
                start, commas = i, []
        elif char in ")]}":
            depth -= 1
            if depth == 0:
                found.append((start, i, commas))
        elif char == "," and depth == 1:
            commas.append(i)
    return found
