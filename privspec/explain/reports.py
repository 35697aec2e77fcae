"""`explain`: a plan in words, for the reader and in the form asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from privspec.core.diagnostics import Diagnostic, UsageError
from privspec.explain.auditor import auditor_page
from privspec.explain.conflicts import infeasible_page
from privspec.explain.document import Document
from privspec.explain.engineer import engineer_page
from privspec.explain.facts import Facts, facts
from privspec.explain.markdown import to_markdown
from privspec.explain.public import public_page

if TYPE_CHECKING:
    from privspec.model.graph import Model

FORMAT = "privspec-explanation/1.0"

READERS: Mapping[str, Callable[[Facts], Document]] = {
    "public": public_page,
    "auditor": auditor_page,
    "engineer": engineer_page,
}


def explain(
    plan: Mapping[str, Any],
    reader: str = "public",
    format: str = "md",  # noqa: A002 - the word of the interface
    model: Model | None = None,
) -> str:
    """The explanation of a plan.

    Args: reader "public", "auditor" or "engineer"; format "md", "html" or "json"; the plan's model if any.
    Raises: UsageError for another reader or format, or a plan that is not of the form `privspec-plan/1.0`.
    """
    page = READERS.get(reader)
    writer = _WRITERS.get(format)
    if page is None:
        raise UsageError(Diagnostic("PS0721", f"there is no reader {reader!r}", help=f"choose {', '.join(READERS)}"))
    if writer is None:
        raise UsageError(Diagnostic("PS0721", f"there is no format {format!r}", help=f"choose {', '.join(_WRITERS)}"))
    try:
        found = facts(plan, model)
        document = page(found) if found.status != "infeasible" else infeasible_page(plan, found, reader)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(Diagnostic("PS0711", f"this plan cannot be read: {error}")) from error
    return writer(document, found)


def _markdown(document: Document, _: Facts) -> str:
    return to_markdown(document)


def _html(document: Document, _: Facts) -> str:
    from privspec.explain.html import to_html

    return to_html(document)


def _json(document: Document, found: Facts) -> str:
    from privspec.explain.jsonform import to_json

    return json.dumps({"format": FORMAT, **to_json(document, found)}, ensure_ascii=False, indent=2) + "\n"


_WRITERS: Mapping[str, Callable[[Document, Facts], str]] = {"md": _markdown, "html": _html, "json": _json}
