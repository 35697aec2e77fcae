"""Canonical text of a spec: one spelling for what means the same; comments stay where they were."""

from __future__ import annotations

from collections.abc import Iterator

from privspec.core.records import dataclass, field
from privspec.core.spans import Source
from privspec.language.layout import Comment, Layout, lay_out
from privspec.language.parser import parse
from privspec.language.spelling import INDENT, spell, statements_of, title_lines, wrap
from privspec.language.syntax import Spec

LONG = 60


@dataclass(slots=True)
class _Item:
    """Some output lines with the place they come from; `level` 0 for headers, 1 for statements."""

    lines: list[str]
    start: int
    first_line: int
    last_line: int
    level: int
    header: bool = False
    before: list[Comment] = field(default_factory=list)
    trailing: list[str] = field(default_factory=list)


def format_source(source: Source) -> str:
    """The canonical text of a spec; it means the same, and formatting it again changes nothing.

    Raises: SpecError if the spec does not parse.
    """
    tree = parse(source)
    layout = lay_out(source.text)
    items = list(_items(source, tree, layout))
    return _align(_emit(source, items, _place_comments(source, items, layout.comments)))


def _items(source: Source, tree: Spec, layout: Layout) -> Iterator[_Item]:
    def item(lines: list[str], start: int, end: int, level: int, *, header: bool = False) -> _Item:
        return _Item(lines, start, source.position(start)[0], source.position(max(start, end - 1))[0], level, header)

    if layout.spec is not None and layout.title is not None:
        lines = title_lines(tree)
        yield item(lines[:1], layout.spec.start, layout.title.end, 0, header=True)
        if layout.doc is not None:
            yield item(lines[1:], layout.doc.start, layout.doc.end, 0)
    for section in layout.sections:
        name = section.name
        assert name is not None
        yield item([f"{name}:"], section.header.start, section.header.end, 0, header=True)
        for span, statement in zip(section.statements, statements_of(tree, name), strict=True):
            yield item(wrap(spell(statement), INDENT), span.start, span.end, 1)
    for inner, below in zip(tree.within, layout.within, strict=True):
        yield from _items(source, inner, below)


def _place_comments(source: Source, items: list[_Item], comments: list[Comment]) -> list[Comment]:
    """Give every comment to an item; those after the last one are returned."""
    rest: list[Comment] = []
    position = 0
    for comment in comments:
        line = source.position(comment.span.start)[0]
        while position < len(items) and items[position].start < comment.span.start:
            position += 1
        before = items[position - 1] if position else None
        if before is not None and not comment.own_line and before.last_line == line:
            before.trailing.append(source.slice(comment.span).rstrip())
        elif before is not None and before.last_line >= line:
            before.before.append(comment)  # inside a statement that spans lines
        elif position < len(items):
            items[position].before.append(comment)
        else:
            rest.append(comment)
    return rest


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    comment: str = ""


def _emit(source: Source, items: list[_Item], rest: list[Comment]) -> list[_Line]:
    out: list[_Line] = []
    last = 0  # the source line that was written last
    in_section = False
    after_header = False

    def blank() -> None:
        if out and out[-1].text:
            out.append(_Line(""))

    def comments(group: list[Comment], level: int, before: int | None, *, header: bool) -> None:
        nonlocal last, after_header
        for comment in group:
            line, column = source.position(comment.span.start)
            line = line if before is None else min(line, before)  # it may come from inside the statement
            inside = level > 0 or (in_section and column > 1)
            if header and not inside:
                header = False
                blank()
            elif line > last + 1 and not after_header:
                blank()
            out.append(_Line((INDENT if inside else "") + source.slice(comment.span).rstrip()))
            last = max(last, line)
            after_header = False

    for item in items:
        comments(item.before, item.level, item.first_line, header=item.header)
        outside = bool(item.before) and source.position(item.before[-1].span.start)[1] == 1
        apart = item.first_line > last + 1 and not after_header and (item.level > 0 or outside)
        if apart or (item.header and not (outside and out)):
            blank()
        trailing = "  ".join(item.trailing)
        out.extend(_Line(text) for text in item.lines[:-1])
        out.append(_Line(item.lines[-1], trailing))
        last = item.last_line
        after_header = item.header
        in_section = in_section or item.level > 0 or item.lines[0].endswith(":")
    comments(rest, 0, None, header=True)
    return out


def _align(lines: list[_Line]) -> str:
    """The text, with the comments behind the lines of a block in one column; long lines do not move it."""
    out: list[str] = []
    block: list[_Line] = []
    for line in [*lines, _Line("")]:
        block.append(line)
        if line.text:
            continue
        commented = [len(other.text) for other in block if other.comment and len(other.text) <= LONG]
        column = max(commented, default=0)
        out.extend(f"{other.text:<{column}}  {other.comment}" if other.comment else other.text for other in block)
        block.clear()
    return "\n".join(out).rstrip("\n") + "\n"
