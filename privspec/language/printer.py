"""Syntax trees to text: ASCII, with no bracket that the grammar does not need."""

from __future__ import annotations

from itertools import pairwise

from privspec.language import syntax as s
from privspec.language.layout import SECTIONS
from privspec.language.sentences import spell

WIDTH = 100
INDENT = "  "


def print_expr(expr: s.Expr) -> str:
    """The text of an expression; parsing it gives the same tree."""
    return spell(expr)


def print_domain(domain: s.Domain) -> str:
    """The text of a domain."""
    return spell(domain)


def print_statement(statement: s.Node) -> str:
    """The text of a statement on one line, without indentation."""
    return spell(statement)


def print_spec(tree: s.Spec) -> str:
    """The text of a spec; parsing it gives the same tree. Sections stand in the order of `tree.sections`."""
    blocks = []
    if tree.name is not None:
        blocks.append("\n".join(title_lines(tree)))
    for name in section_order(tree):
        lines = [f"{name}:"]
        for statement in statements_of(tree, name):
            lines.extend(wrap(print_statement(statement), INDENT))
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
    return [
        indent + text[: first + 1],
        *(indent + INDENT + item for item in items if item),
        indent + text[last:],
    ]


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
