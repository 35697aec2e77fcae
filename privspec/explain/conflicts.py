"""The page of a spec whose requirements cannot hold together; the same for every reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privspec.explain.document import Block, Document, Paragraph, Points, Section, Table
from privspec.explain.facts import Facts
from privspec.explain.lotteries.paper import NO_DUMMIES, drawn_by_lot, theorems
from privspec.explain.quantities import LOSS_DIGITS, rounded
from privspec.explain.sentences import proved


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
