"""A spec in other words: variables renamed, lines in another order, definitions split, maps written otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

from privspec.core.spans import Source
from privspec.language import syntax as s
from privspec.language.layout import SECTIONS
from privspec.language.parser import parse, parse_expression
from privspec.language.spelling import print_spec
from privspec.language.walk import with_children

SUMS = [
    "ones({n}) @ {x}",
    "prefix_sums({x})[{n}]",
    "sum({x}[i] for i in 1..{n})",
    "{x}[1] + sum({x}[2..{n}])",
    "total([{x}[{n}], {x}[1..{n} - 1]])",
]
"""What sum(x) is as well, for a vector of n numbers."""
PREFIXES = [
    "prefix_matrix({n}) @ {x}",
    "[sum({x}[1..i]) for i in 1..{n}]",
    "[sum({x}[j] for j in 1..i) for i in 1..{n}]",
]
WHOLE = ["[{x}[i] for i in 1..{n}]", "{x}[1..{n}]", "identity({n}) @ {x}", "2 * {x} - {x}"]


class Reworded:
    """One way to say a spec."""

    def __init__(self, dice: Random, tree: s.Spec) -> None:
        self.dice = dice
        self.lengths: dict[str, int] = {}
        for one in tree.variables:
            match one:
                case s.Variable(kind=s.VariableKind.INPUT, domain=s.Power(exponents=(s.Number(value=n),))):
                    if not isinstance(one.domain.base, s.Call | s.SetOf) and not one.target.indices:
                        self.lengths[one.target.name] = int(n)
        declared = [one.target.name for one in (*tree.variables, *tree.parameters)] + [one.name for one in tree.parties]
        self.names = {name: f"{name}_{dice.randrange(100)}q" for name in declared}
        self.names |= {f"{one.name}s": f"{self.names[one.name]}s" for one in tree.parties}

    def spec(self, tree: s.Spec) -> s.Spec:
        lines, new = list[Any](), list[s.Variable]()
        for line in tree.background:
            if isinstance(line, s.Relation) and line.op == "=" and isinstance(line.left, s.Name | s.Index):
                line = replace(line, right=self.said(line.right))
                if type(line) is s.Relation and self.dice.random() < 0.5:
                    name, indices = f"part{len(new)}", getattr(line.left, "indices", ())
                    new.append(s.Variable(s.VariableKind.INTERMEDIATE, s.Ref(name, None, indices)))
                    part = s.Index(s.Name(name), indices) if indices else s.Name(name)
                    lines.append(s.Relation("=", part, line.right))
                    line = replace(line, right=part)
            lines.append(line)
        self.dice.shuffle(lines)
        sections = [name for name in SECTIONS if name in tree.sections or (name == "background" and lines)]
        self.dice.shuffle(sections)
        loss = None if tree.loss is None else self.turned(tree.loss)
        variables = tuple(sorted((*new, *tree.variables), key=lambda one: one.kind is not s.VariableKind.INTERMEDIATE))
        tree = replace(tree, background=tuple(lines), variables=variables, loss=loss, sections=tuple(sections))
        return self.renamed(tree)

    def said(self, node: Any) -> Any:
        """A value in other words."""
        match node:
            case s.Call(function="sum" | "prefix_sums" as function, arguments=(s.Name(id=x),)) if x in self.lengths:
                forms = SUMS if function == "sum" else PREFIXES
                return self.form(forms, x) if self.dice.random() < 0.7 else node
            case s.Call(function="mean", arguments=(s.Name(id=x) as name,)) if x in self.lengths:
                total = self.said(s.Call("sum", (name,)))
                return s.Binary("/", total, s.Number(Fraction(self.lengths[x])))
            case s.Name(id=x) if x in self.lengths and self.dice.random() < 0.5:
                return self.form(WHOLE, x)
            case s.Index() | s.Slice() | s.SetOf() | s.Comprehension() | s.Call() | s.Each():
                return node
            case s.Binary(op="*", left=s.Number(value=Fraction(numerator=2, denominator=1)), right=inner):
                inner = self.said(inner)
                return s.Binary("+", inner, inner)
        return self.turned(with_children(node, self.said), deep=False)

    def form(self, forms: list[str], x: str) -> s.Expr:
        text = self.dice.choice(forms).format(x=x, n=self.lengths[x])
        return parse_expression(Source("form", f"({text})"))

    def turned(self, node: Any, *, deep: bool = True) -> Any:
        """Sums and differences the other way round."""
        node = with_children(node, self.turned) if deep else node
        match node:
            case s.Binary(op="+", left=left, right=right) if self.dice.random() < 0.5:
                return s.Binary("+", right, left)
            case s.Binary(op="-", left=left, right=right) if self.dice.random() < 0.5:
                return s.Negate(s.Binary("-", right, left))
        return node

    def renamed(self, node: Any) -> Any:
        names: Mapping[str, str] = self.names
        node = with_children(node, self.renamed)
        match node:
            case s.Name(id=name):
                return replace(node, id=names.get(name, name))
            case s.Ref() | s.Party() | s.OneUnit() | s.UpToUnits() | s.ByNeighbour():
                return replace(node, name=names.get(node.name, node.name))
            case s.Comprehension():
                return replace(node, variable=names.get(node.variable, node.variable))
        return node


def reworded(text: str, dice: Random) -> tuple[str, dict[str, str]]:
    """A spec that means the same, and what its names are called there."""
    tree = parse(Source("spec.priv", text))
    how = Reworded(dice, tree)
    return print_spec(how.spec(tree)), how.names
