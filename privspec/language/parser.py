"""Text to syntax tree; every syntax error of a file at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from privspec.core.diagnostics import Diagnostic, SpecError
from privspec.core.spans import Source, Span
from privspec.language import flaws, mistakes, syntax, tables
from privspec.language.automaton import ParseFailure, run
from privspec.language.build import ACTIONS
from privspec.language.layout import SECTIONS, Layout, lay_out
from privspec.language.tokens import NAMES, is_name
from privspec.language.visit import depth

MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 100
"""How deep a tree may be: later passes may then recurse without a second thought."""

MAX_DIAGNOSTICS = 100


def parse(source: Source) -> syntax.Spec:
    """The tree of a spec.

    Raises: SpecError with every syntax error of the file, in the order of the text.
    """
    found = list(_unreadable(source))
    if len(source.text) > MAX_CHARACTERS:
        raise SpecError(found)
    layout = lay_out(source.text)
    found.extend(flaws.flaw(source, flaw) for flaw in layout.flaws)
    tree = _assemble(source, layout, found)
    if found:
        raise SpecError(_in_order(found))
    return tree


def parse_statement(section: str, source: Source) -> Any:
    """The tree of one statement (an expression for `loss`) as it may stand in a section.

    Raises: SpecError; KeyError if there is no such section.
    """
    rule = SECTIONS[section]
    found = list(_unreadable(source))
    if not found:
        tree = _statement(source, rule, Span(0, len(source.text)), found)
    if found:
        raise SpecError(found)
    return tree


def parse_expression(source: Source) -> syntax.Expr:
    """The tree of an expression, as in `--set name=expression`.

    Raises: SpecError.
    """
    tree: syntax.Expr = parse_statement("loss", source)
    return tree


def _unreadable(source: Source) -> Iterator[Diagnostic]:
    if len(source.text) > MAX_CHARACTERS:
        yield flaws.too_long(source, MAX_CHARACTERS)
    else:
        yield from flaws.refused_characters(source)


def _in_order(found: list[Diagnostic]) -> list[Diagnostic]:
    found = sorted(found, key=lambda d: d.labels[0].span if d.labels else Span(0, 0))
    if len(found) > MAX_DIAGNOSTICS:
        hidden = len(found) - MAX_DIAGNOSTICS
        found = found[:MAX_DIAGNOSTICS]
        found.append(flaws.many_more(hidden))
    return found


def _statement(source: Source, rule: str, span: Span, found: list[Diagnostic]) -> Any:
    """The tree of a statement, or None after adding a diagnostic."""
    try:
        tree, tokens = run(tables.load(), rule, source.text, span.start, span.end, ACTIONS)
    except ParseFailure as failure:
        found.append(mistakes.explain(source, rule, span, failure))
        return None
    if tokens > MAX_DEPTH and depth(tree) > MAX_DEPTH:
        found.append(flaws.too_deep(source, span, MAX_DEPTH))
        return None
    return tree


def _assemble(source: Source, layout: Layout, found: list[Diagnostic]) -> syntax.Spec:
    bad = [label.span.start for d in found for label in d.labels if d.code == "PS0118"]
    statements: dict[str, list[Any]] = {name: [] for name in SECTIONS}
    for section in layout.sections:
        if section.name is None:
            continue
        if section.name == "loss" and len(section.statements) != 1:
            found.append(flaws.loss_count(source, section.header, section.statements))
        for span in section.statements:
            if span.start == span.end or any(span.start <= at < span.end for at in bad):
                continue
            tree = _statement(source, SECTIONS[section.name], span, found)
            if tree is not None:
                statements[section.name].append(tree)
    if layout.stray:
        found.append(flaws.stray(source, layout.stray))
    name = _title(source, layout, found)
    doc = source.slice(layout.doc)[3:-3].strip() if layout.doc else None
    if not layout.sections and not found:
        found.append(flaws.empty(source))
    loss = statements["loss"]
    return syntax.Spec(
        name=name,
        doc=doc,
        parameters=tuple(statements["parameters"]),
        parties=tuple(statements["parties"]),
        components=tuple(statements["components"]),
        variables=tuple(statements["variables"]),
        background=tuple(statements["background"]),
        loss=loss[0] if loss else None,
        accuracy=tuple(statements["accuracy"]),
        privacy=tuple(statements["privacy"]),
        fairness=tuple(statements["fairness"]),
        options=tuple(statements["options"]),
        sections=tuple(section.name for section in layout.sections if section.name is not None),
        span=Span(0, len(source.text)),
    )


def _title(source: Source, layout: Layout, found: list[Diagnostic]) -> str | None:
    if layout.spec is None or layout.title is None:
        return None
    title = source.slice(layout.title)
    if not is_name(title):
        found.append(flaws.bad_title(source, layout.spec, layout.title))
        return None
    return NAMES.get(title, title)
