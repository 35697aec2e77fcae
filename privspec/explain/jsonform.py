"""Pages and facts as JSON values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from fractions import Fraction
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from privspec.explain.document import (
    Block,
    Document,
    IconArray,
    Listing,
    Paragraph,
    Picture,
    Plot,
    Points,
    Table,
)

if TYPE_CHECKING:
    from privspec.explain.facts import Facts

_DRAWINGS = frozenset({"graph_svg"})


def to_json(document: Document, found: Facts) -> dict[str, Any]:
    """The page (sentences with status and sources, tables, plots as numbers) and all facts behind it."""
    return {
        "reader": document.reader,
        "title": document.title,
        "subtitle": document.subtitle,
        "plan_digest": found.digest,
        "spec_sha256": found.spec_sha256,
        "sections": [
            {"heading": section.heading, "blocks": [_block(block) for block in section.blocks]}
            for section in document.sections
        ],
        "facts": plain(found),
    }


def plain(value: Any) -> Any:
    """Frozen data as dicts, lists, strings and numbers; objects that know their JSON form use it."""
    known = getattr(value, "to_json", None)
    if callable(known):
        return known()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f.name for f in dataclasses.fields(value) if f.name not in _DRAWINGS]
        return {name: plain(getattr(value, name)) for name in fields}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return [plain(v) for v in value]
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Fraction) else value


@singledispatch
def _block(block: Block) -> dict[str, Any]:
    raise TypeError(f"no JSON for {type(block).__name__}")


@_block.register
def _(block: Paragraph) -> dict[str, Any]:
    return {"kind": "paragraph", "sentences": [s.to_json() for s in block.sentences]}


@_block.register
def _(block: Points) -> dict[str, Any]:
    return {"kind": "points", "sentences": [s.to_json() for s in block.sentences]}


@_block.register
def _(block: Table) -> dict[str, Any]:
    return {
        "kind": "table",
        "caption": block.caption,
        "header": list(block.header),
        "rows": [list(r) for r in block.rows],
    }


@_block.register
def _(block: Plot) -> dict[str, Any]:
    return {
        "kind": "plot",
        "name": block.name,
        "alt": block.alt,
        "caption": block.caption,
        "table": _block(block.twin),
    }


@_block.register
def _(block: Picture) -> dict[str, Any]:
    return {"kind": "picture", "alt": block.alt}


@_block.register
def _(block: IconArray) -> dict[str, Any]:
    rows = [{"label": r.label, "filled": r.filled, "of": r.of} for r in block.rows]
    return {"kind": "icons", "caption": block.caption, "rows": rows}


@_block.register
def _(block: Listing) -> dict[str, Any]:
    return {"kind": "listing", "caption": block.caption, "text": block.text}
