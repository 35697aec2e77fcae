"""The page of a spec whose requirements cannot hold together, in plain text (UX.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privspec.explain.quantities import LOSS_DIGITS, rounded


def infeasible_text(document: Mapping[str, Any]) -> str:
    """Which lines conflict, why, and which single changes work, each with its price where it is known."""
    lines = ["infeasible[PS0601]: these lines cannot all hold"]
    lines += [f"  {c['line']:>4} | {c['text']}" for c in document["conflicts"]]
    lines.append(f"Why: {document['reason']}.")
    works = [r for r in document["relaxations"] if r.get("works", True)]
    if works:
        lines.append("Smallest single changes that work:")
    else:
        lines.append("No single change that is known would make it feasible.")
    in_vain = [r for r in document["relaxations"] if r not in works]
    lines += [f"  {_relaxation(r)}" for r in (*works, *(r for r in in_vain if r["line"]))]
    known = [r for r in in_vain if not r["line"]]
    if known:
        lines.append("What is true nevertheless:")
        lines += [f"  {_relaxation(r)}" for r in known]
    return "\n".join(lines) + "\n"


def _relaxation(relaxation: Mapping[str, Any]) -> str:
    where = f"  (line {relaxation['line']})" if relaxation["line"] else ""
    price = f": loss {rounded(float(relaxation['loss']), LOSS_DIGITS)}" if relaxation["loss"] is not None else ""
    return f"{relaxation['change']}{price}{where}"
