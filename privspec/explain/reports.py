"""A plan explained to a reader: its page in the form asked for, or the page of lines that cannot all hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from privspec.core.diagnostics import Diagnostic, UsageError
from privspec.explain.auditor import auditor_page
from privspec.explain.document import Block, Document, Paragraph, Points, Section, Table, proved
from privspec.explain.engineer import engineer_page
from privspec.explain.facts import Facts
from privspec.explain.paper import NO_DUMMIES, drawn_by_lot, theorems
from privspec.explain.public import public_page
from privspec.explain.quantities import LOSS_DIGITS, rounded
from privspec.explain.reading import facts
from privspec.explain.writers import to_markdown

if TYPE_CHECKING:
    from privspec.model.graph import Model


def infeasible_page(plan: Mapping[str, Any], facts: Facts, reader: str) -> Document:
    """Which lines conflict, why, and which single changes would work, each with its loss where it is known.

    Raises: KeyError if the plan is no infeasible plan.
    """
    lines = [facts.context.line(int(c["line"])) for c in plan["conflicts"]]
    because = tuple(lines) or (facts.context.trust_because,)
    reason = f"No mechanism can satisfy all of these lines: {str(plan['reason']).removesuffix('.')}."
    conflicts = Table(
        "Lines that cannot all hold",
        ("Line", "Text"),
        tuple((str(c["line"]), str(c["text"])) for c in plan["conflicts"]),
        numeric=frozenset({0}),
    )
    blocks: tuple[Block, ...] = (Paragraph((proved(reason, *because),)), conflicts)
    out: tuple[Block, ...] = (_changes(plan), *_in_vain(plan, facts))
    return Document(
        title=f"No plan for {facts.name}",
        subtitle=facts.title,
        reader=reader,
        shows_basis=reader != "public",
        sections=(
            Section("What conflicts", blocks),
            Section("What would work", out),
            *_without_noise(plan, facts),
        ),
        footer=f"Plan fingerprint (SHA-256) {facts.digest}; spec fingerprint {facts.spec_sha256}.",
    )


def _without_noise(plan: Mapping[str, Any], facts: Facts) -> tuple[Section, ...]:
    """What is true although no change makes it a guarantee: of random dictatorship, the theorems of Torra 2019."""
    if drawn_by_lot(facts.context.formulas):
        return (Section("What is true without noise", (Points(theorems(NO_DUMMIES)),)),)
    known = [r for r in plan["relaxations"] if not r.get("works", True) and not r.get("line")]
    found = tuple(
        proved(f"{str(r['change'])[0].upper()}{str(r['change'])[1:]}.", facts.context.trust_because) for r in known
    )
    return (Section("What is true nevertheless", (Points(found),)),) if found else ()


def _changes(plan: Mapping[str, Any]) -> Table:
    rows = tuple(
        (
            str(r["change"]),
            str(r["line"]) if r.get("line") else "",
            rounded(float(r["loss"]), LOSS_DIGITS).text if r.get("loss") is not None else "unknown",
        )
        for r in plan["relaxations"]
        if r.get("works", True)
    )
    return Table(
        "Smallest single changes that work",
        ("Change", "Line", "Loss then"),
        rows or (("no single change is known to work", "", ""),),
        numeric=frozenset({1, 2}),
    )


def _in_vain(plan: Mapping[str, Any], facts: Facts) -> tuple[Block, ...]:
    """What one might try first, and why no amount of it is enough."""
    found = tuple(
        proved(f"{str(r['change'])[0].upper()}{str(r['change'])[1:]}.", facts.context.line(int(r["line"])))
        for r in plan["relaxations"]
        if not r.get("works", True) and r.get("line")
    )
    return (Points(found),) if found else ()


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
    Raises: UsageError for another reader or format, or a plan that is not of the form `privspec-plan/2.0`.
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
    from privspec.explain.writers import to_html

    return to_html(document)


def _json(document: Document, found: Facts) -> str:
    from privspec.explain.writers import to_json

    return json.dumps({"format": FORMAT, **to_json(document, found)}, ensure_ascii=False, indent=2) + "\n"


_WRITERS: Mapping[str, Callable[[Document, Facts], str]] = {"md": _markdown, "html": _html, "json": _json}
