"""Text, or a spec file, to syntax tree; every syntax error of a file at once.

What words the errors (`flaws`, `mistakes`) is imported when there is one: a right spec should be read quickly.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from privspec.core.diagnostics import Diagnostic, Label, SpecError, UsageError
from privspec.core.spans import Source, Span
from privspec.language import syntax
from privspec.language.automaton import NAMES, REFUSED, ParseFailure, is_name, parse_table, run
from privspec.language.build import ACTIONS
from privspec.language.layout import SECTIONS, Layout, lay_out
from privspec.language.walk import depth


def read_source(path: Path) -> Source:
    """The text of a spec file.

    Raises: UsageError if the file cannot be read, SpecError if it is not UTF-8.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError.of("PS0701", f"there is no file {path}") from None
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise UsageError.of("PS0702", f"the file {path} cannot be read: {reason}") from None
    except ValueError:
        raise UsageError.of("PS0702", "the name of the file cannot be used: it holds a null character") from None
    return decode_source(str(path), data)


def decode_source(name: str, data: bytes) -> Source:
    """The source with these bytes; a byte order mark is dropped.

    Raises: SpecError if they are not UTF-8, pointing at the first byte that is wrong.
    """
    try:
        return Source(name, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", "replace")
        after = data[error.start : error.start + 200].decode("utf-8", "replace").split("\n")[0]
        shown = Source(name, before + after)
        span = Span(len(before), len(before) + 1)
        guess = "UTF-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else None
        raise SpecError(
            Diagnostic(
                "PS0133",
                "the file is not UTF-8 text",
                (Label(span, f"byte {data[error.start]:#04x} at offset {error.start}"),),
                (f"it looks like {guess}",) if guess else (),
                "save it as UTF-8 in your editor",
                source=shown,
            )
        ) from None


MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 100
"""How deep a tree may be: later passes may then recurse without a second thought."""

MAX_DIAGNOSTICS = 100


@lru_cache(maxsize=8)
def parse(source: Source) -> syntax.Spec:
    """The tree of a spec; the last few are kept, for who solves, verifies and explains reads the same text each time.

    Raises: SpecError with every syntax error of the file, in the order of the text.
    """
    tree, found = read(source)
    if found:
        raise SpecError(found)
    return tree


def read(source: Source) -> tuple[syntax.Spec, list[Diagnostic]]:
    """The tree of what can be read of a text, and every syntax error of it, in its order; never fails."""
    found = list(_unreadable(source))
    if len(source.text) > MAX_CHARACTERS:
        return _assemble(source, Layout(), []), found
    layout = lay_out(source.text)
    if layout.flaws:
        from privspec.language import flaws

        found.extend(flaws.flaw(source, flaw) for flaw in layout.flaws)
    tree = _assemble(source, layout, found)
    if tree.within:
        _check_within(source, tree, found)
    return tree, _in_order(source, found)


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
    if len(source.text) <= MAX_CHARACTERS and not REFUSED.search(source.text):
        return
    from privspec.language import flaws

    if len(source.text) > MAX_CHARACTERS:
        yield flaws.too_long(source, MAX_CHARACTERS)
    else:
        yield from flaws.refused_characters(source)


def _in_order(source: Source, found: list[Diagnostic]) -> list[Diagnostic]:
    found = sorted(found, key=lambda d: d.labels[0].span if d.labels else Span(0, 0))
    if len(found) <= MAX_DIAGNOSTICS + 1:
        return found
    from privspec.language import flaws

    return [*found[:MAX_DIAGNOSTICS], flaws.many_more(source, found[MAX_DIAGNOSTICS:])]


def _statement(source: Source, rule: str, span: Span, found: list[Diagnostic]) -> Any:
    """The tree of a statement, or None after adding a diagnostic."""
    try:
        tree, tokens = run(parse_table(), rule, source.text, span.start, span.end, ACTIONS)
    except ParseFailure as failure:
        from privspec.language import mistakes

        found.append(mistakes.explain(source, rule, span, failure))
        return None
    if tokens > MAX_DEPTH and depth(tree) > MAX_DEPTH:
        from privspec.language import flaws

        found.append(flaws.too_deep(source, span, MAX_DEPTH))
        return None
    return tree


def _assemble(source: Source, layout: Layout, found: list[Diagnostic], whole: Span | None = None) -> syntax.Spec:
    bad = [label.span.start for d in found for label in d.labels if d.code == "PS0118"]
    statements: dict[str, list[Any]] = {name: [] for name in SECTIONS}
    for section in layout.sections:
        for span in section.statements if section.name is not None else ():
            if span.start == span.end or any(span.start <= at < span.end for at in bad):
                continue  # what is wrong with it is told already
            tree = _statement(source, SECTIONS[section.name or ""], span, found)
            if tree is not None:
                statements[section.name or ""].append(tree)
    _check_layout(source, layout, found)
    starts = [inner.spec.start for inner in layout.within if inner.spec is not None]
    below = zip(layout.within, pairwise([*starts, len(source.text)]), strict=True)
    within = tuple(_assemble(source, inner, found, Span(*ends)) for inner, ends in below)
    loss = statements.pop("loss")
    parts: dict[str, Any] = {name: tuple(trees) for name, trees in statements.items()}
    title = source.slice(layout.title) if layout.title is not None else None
    return syntax.Spec(
        name=NAMES.get(title, title) if title is not None else None,
        doc=source.slice(layout.doc)[3:-3].strip() if layout.doc else None,
        loss=loss[0] if loss else None,
        sections=tuple(section.name for section in layout.sections if section.name is not None),
        within=within,
        span=whole or Span(0, len(source.text)),
        **parts,
    )


def _check_within(source: Source, tree: syntax.Spec, found: list[Diagnostic]) -> None:
    """Each further spec of a file has a name of its own, which a component of the file uses."""
    names, parts = {tree.name}, [part.call.arguments for one in (tree, *tree.within) for part in one.components]
    used = {given[0].id for given in parts if given and isinstance(given[0], syntax.Name)}
    for one in tree.within:
        if one.name in names or one.name not in used:
            from privspec.language import flaws

            found.append(flaws.within(source, one, again=one.name in names))
        names.add(one.name)


def _check_layout(source: Source, layout: Layout, found: list[Diagnostic]) -> None:
    """What can be wrong with a file whose pieces are right."""
    losses = [s for s in layout.sections if s.name == "loss" and len(s.statements) != 1]
    title = source.slice(layout.title) if layout.title is not None else "untitled"
    if not losses and not layout.stray and layout.sections and is_name(title):
        return
    from privspec.language import flaws

    found.extend(flaws.loss_count(source, section.header, section.statements) for section in losses)
    if layout.stray:
        found.append(flaws.stray(source, layout.stray))
    if layout.spec is not None and layout.title is not None and not is_name(title):
        found.append(flaws.bad_title(source, layout.spec, layout.title))
    if not layout.sections and not found:
        found.append(flaws.empty(source))
