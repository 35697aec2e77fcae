"""Syntax trees to text: one spelling for every tree, ASCII, with no bracket that the grammar does not need."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from privspec.language import syntax as s
from privspec.language.automaton import DAY, NAMES
from privspec.language.layout import SECTIONS

_WORD = re.compile(r"[^\W\d_²³¹][^\W²³¹]*")
"""A name of a column that needs no quotes."""
_SUM, _PRODUCT, _UNARY, _POSTFIX, _ATOM = 1, 2, 3, 4, 5
_OPERATORS = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "@": _PRODUCT, "^": _UNARY}
_LEVELS = {
    s.Negate: _UNARY,
    s.Transpose: _POSTFIX,
    s.Index: _POSTFIX,
    s.Counted: _POSTFIX,
    s.Slice: _POSTFIX,
    s.Attribute: _POSTFIX,
}


def spell(node: s.Node) -> str:
    """The text of a node."""
    return _TEXTS[type(node)](node)


def listed(items: Sequence[s.Node]) -> str:
    """Texts with commas between."""
    return ", ".join(map(spell, items))


def within(domain: s.Domain | None) -> str:
    """` in domain`, or nothing."""
    return "" if domain is None else f" in {spell(domain)}"


def _optional(before: str, node: s.Node | None) -> str:
    return "" if node is None else before + spell(node)


def _at(node: s.Node, level: int) -> str:
    own = _OPERATORS[node.op] if isinstance(node, s.Binary) else _LEVELS.get(type(node), _ATOM)
    return f"({spell(node)})" if own < level else spell(node)


# --- expressions -------------------------------------------------------------------------------


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
    rest, places = value.denominator, [0, 0]
    for i, base in enumerate((2, 5)):
        while rest % base == 0:
            rest, places[i] = rest // base, places[i] + 1
    if rest != 1:
        return f"({value.numerator} / {value.denominator})"
    after = max(places)
    digits = str((value * 10**after).numerator)
    if after > 15 + len(digits):
        return f"{digits}e-{after}"
    digits = digits.rjust(after + 1, "0")
    return f"{digits[:-after]}.{digits[-after:]}"


def _binary(node: s.Binary) -> str:
    if node.op == "^":
        return f"{_at(node.left, _POSTFIX)}^{_at(node.right, _UNARY)}"
    level = _OPERATORS[node.op]
    return f"{_at(node.left, level)} {node.op} {_at(node.right, level + 1)}"


def _index(base: s.Expr, places: Sequence[s.Node]) -> str:
    text = _at(base, _POSTFIX)
    # E[ and worst[ begin the operator, so a variable of that name needs brackets
    if isinstance(base, s.Name) and text in {"E", "worst"}:
        text = f"({text})"
    return f"{text}[{listed(places)}]"


def _bars(bar: str, operand: s.Expr) -> str:
    inner = spell(operand)
    pad = " " if inner[0] == "|" or inner[-1] == "|" else ""
    return f"{bar}{pad}{inner}{pad}{bar}"


def _over(node: s.Over) -> str:
    body = spell(node.body)
    pad = " " if set(body) & set("([{|") else ""
    known = node.given.items if isinstance(node.given, s.TupleOf) else () if node.given is None else (node.given,)
    given = f" | {listed(known)}" if known else ""
    return f"{node.operator}[{pad}{body}{given}{pad}]"


def _column(name: str) -> str:
    """A column with a name that is no word of the language, or a letter that stands for one, stands in quotes."""
    return name if _WORD.fullmatch(name) and name not in NAMES else f'"{name}"'


# --- domains -----------------------------------------------------------------------------------


def _range(node: s.RangeOf) -> str:
    days = isinstance(node.low, s.String) and isinstance(node.high, s.String)
    return f"{spell(node.low)}..{spell(node.high) if days else _upper(node.high)}"


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
    return spell(node) if isinstance(node, s.Number | s.Name) else f"({spell(node)})"


def _interval(node: s.Interval) -> str:
    left, right = "(" if node.low_open else "[", ")" if node.high_open else "]"
    return f"{left}{spell(node.low)}, {spell(node.high)}{right}"


def _power(node: s.Power) -> str:
    base = f"({spell(node.base)})" if isinstance(node.base, s.RangeOf | s.Power) else spell(node.base)
    bare = len(node.exponents) == 1 and isinstance(node.exponents[0], s.Number | s.Name)
    return f"{base}^{listed(node.exponents)}" if bare else f"{base}^({listed(node.exponents)})"


# --- statements --------------------------------------------------------------------------------


def _ref(node: s.Ref) -> str:
    attribute = "" if node.attribute is None else f".{node.attribute}"
    return f"{node.name}{attribute}" + (f"[{listed(node.indices)}]" if node.indices else "")


def _declared(node: s.Variable) -> str:
    label = "" if node.label is None else f' "{node.label}"'
    return f"{node.kind.value} {spell(node.target)}{label}"


def _clauses(clauses: Sequence[s.Clause]) -> str:
    return "".join(f", {spell(clause)}" for clause in clauses)


def _amount(node: s.Amount) -> str:
    match node.items:
        case (s.Index(base=s.Name() | s.Attribute(base=s.Name()) as base, indices=indices),):
            return f"{spell(base)}[{listed(indices)}]"  # no operator can begin here, so E[voter] is a name
        case (s.Number() | s.Name() | s.Attribute(base=s.Name()) as item,):
            return spell(item)
        case _:
            return f"({listed(node.items)})"


def _target(node: s.Target) -> str:
    over = "" if node.variable is None else f" for {node.variable}{within(node.domain)}"
    return f"{spell(node.left)} <= {spell(node.right)}{over}{_optional(' with probability ', node.probability)}"


def _said(subjects: s.Names) -> str:
    return f"{spell(subjects)} {'are' if isinstance(subjects, s.AllOf) else 'is'}"


def _relation(node: s.Relation) -> str:
    return f"{spell(node.left)} {node.op} {spell(node.right)}"


def _claim(node: s.SensitivityClaim) -> str:
    claim = f"has {node.norm} sensitivity at most {spell(node.amount)} wrt {spell(node.wrt)}"
    return f"{spell(node.subject)} {claim}{_clauses(node.clauses)}"


def _requirement(node: s.Requirement) -> str:
    measure = f"{spell(node.amount)}-{node.measure} wrt {spell(node.wrt)}"
    return f"{_said(node.subjects)} {measure}{_clauses(node.clauses)}"


def _independence(node: s.Independence) -> str:
    given = _optional(" given ", node.given) + _optional(" = ", node.value)
    return f"{_said(node.subjects)} independent of {spell(node.of)}{given}{_optional(', up to ', node.tolerance)}"


_TEXTS: Mapping[type[s.Node], Callable[[Any], str]] = {
    s.Number: number_text,
    s.String: lambda n: n.value if DAY.fullmatch(n.value) else f'"{n.value}"',
    s.Name: lambda n: n.id,
    s.Call: lambda n: f"{n.function}({listed(n.arguments)})",
    s.Counting: lambda n: n.text,
    s.SetOf: lambda n: f"{{{listed(n.items)}}}",
    s.Numbers: lambda n: f"{{{listed(n.items)}}}",
    s.TupleOf: lambda n: f"({listed(n.items)})",
    s.Vector: lambda n: f"[{listed(n.items)}]",
    s.Each: lambda n: f"[{spell(n.terms)}]",
    s.Negate: lambda n: f"-{_at(n.operand, _UNARY)}",
    s.Binary: _binary,
    s.Transpose: lambda n: f"{_at(n.operand, _POSTFIX)}'",
    s.Index: lambda n: _index(n.base, n.indices),
    s.Counted: lambda n: n.text,
    s.Slice: lambda n: _index(n.base, n.places),
    s.Attribute: lambda n: f"{_at(n.base, _POSTFIX)}.{_column(n.name)}",
    s.Norm: lambda n: _bars("||", n.operand) + ("" if n.order == "2" else f"_{n.order}"),
    s.Absolute: lambda n: _bars("|", n.operand),
    s.Over: _over,
    s.Known: lambda n: f"{spell(n.name)} = {spell(n.value.items[0])}",
    s.Keyword: lambda n: f"{_column(n.name)} = {spell(n.value)}",
    s.Condition: lambda n: f"{spell(n.left)} {n.op} {spell(n.right)}",
    s.Holds: lambda n: f"({spell(n.left)} {n.op} {spell(n.right)})",
    s.Member: lambda n: _column(n.name) + within(n.domain),
    s.Comprehension: lambda n: f"{spell(n.body)} for {n.variable}{within(n.domain)}",
    s.RangeOf: _range,
    s.Interval: _interval,
    s.RankingOf: lambda n: f"ranking of {spell(n.alternatives)}",
    s.Power: _power,
    s.Ref: _ref,
    s.Parameter: lambda n: f"{spell(n.target)} = {spell(n.value)}",
    s.Party: lambda n: n.name + within(n.domain),
    s.Component: lambda n: f"{n.name} = {spell(n.call)}",
    s.Variable: lambda n: f"{_declared(n)}{within(n.domain)}{_optional(' = ', n.value)}{_optional(' ', n.drawn)}",
    s.Drawn: lambda n: f"from {spell(n.sought)}, spends {spell(n.epsilon)}",
    s.Relation: _relation,
    s.Indexed: lambda n: f"{_relation(n)} for {listed(n.running)}",
    s.Membership: lambda n: spell(n.left) + within(n.domain),
    s.SensitivityClaim: _claim,
    s.Everything: lambda _: "everything",
    s.OneUnit: lambda n: f"one {n.name}" + (f" with at most {spell(n.most)} {n.held}" if n.most else ""),
    s.UpToUnits: lambda n: f"up to {spell(n.amount)} {n.name}",
    s.ByNeighbour: lambda n: f"{'one ' * n.one}{n.name} by a neighbour in {spell(n.graph)}",
    s.Replacing: lambda n: f"replacing {spell(n.unit)}",
    s.AddingOrRemoving: lambda n: f"adding or removing {spell(n.unit)}",
    s.Distance: lambda n: f"distance {spell(n.metric)}",
    s.SeenBy: lambda n: f"seen by {' and '.join(map(spell, n.observers))}",
    s.GivenTheModel: lambda _: "given the model",
    s.Apart: lambda n: f"{'exactly' if n.exactly else 'at least'} {spell(n.amount)} apart",
    s.InOneCell: lambda n: f"at most {spell(n.amount)} in one cell",
    s.Refs: lambda n: listed(n.items) if len(n.items) == 1 else f"({listed(n.items)})",
    s.AllOf: lambda n: f"all {n.what}",
    s.Amount: _amount,
    s.Target: _target,
    s.Requirement: _requirement,
    s.Independence: _independence,
    s.Trust: lambda n: f"trust {spell(n.model)}",
    s.NoiseAt: lambda n: f"noise at {listed(n.sites)}",
    s.NoiseFamily: lambda n: f"noise family {listed(n.names)}",
    s.Unbiased: lambda _: "unbiased",
    s.DifferentPeople: lambda n: f"different people: {listed(n.names)}",
    s.SamePeople: lambda n: f"same people: {listed(n.names)}",
}


WIDTH = 100
INDENT = "  "


def print_spec(tree: s.Spec) -> str:
    """The text of a spec; parsing it gives the same tree. Sections stand in the order of `tree.sections`."""
    blocks = list[str]()
    for one in (tree, *tree.within):
        blocks += _blocks(one)
    return "\n\n".join(blocks) + "\n"


def _blocks(tree: s.Spec) -> Iterator[str]:
    """The head of one spec and its sections."""
    if tree.name is not None:
        yield "\n".join(title_lines(tree))
    for name in section_order(tree):
        lines = [f"{name}:"]
        for statement in statements_of(tree, name):
            lines.extend(wrap(spell(statement), INDENT))
        yield "\n".join(lines)


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
