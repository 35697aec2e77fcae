"""Small pieces of wording that several pages share."""

from __future__ import annotations

import re
from collections.abc import Sequence

from privspec.explain.facts import BindingFact, ClaimFact, Facts, SiteFact

MOST_COMPARED = 4
"""Alternatives that the summary names; the engineer's page has all."""

_GREEK = {"epsilon": "ε", "delta": "δ", "mu": "μ", "rho": "ρ", "alpha": "α"}


def joined(items: Sequence[str], last: str = "and") -> str:
    """A list in words: "a, b and c"."""
    if len(items) <= 1:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def noise_words(facts: Facts) -> str:
    """Where the noise goes, in one line."""
    if not facts.sites:
        return "not stated in the plan"
    words = facts.context.trust_words
    place = f", {words.place}" if words else ""
    return f"{' · '.join(_site(site) for site in facts.sites)}{place}"


def _site(site: SiteFact) -> str:
    if site.correlated:
        return f"correlated across the {site.coordinates} answers of {site.at}"
    if not site.deviations:
        return f"{site.law} at {site.at}"
    if site.largest.value == 0:
        return f"none at {site.at}"
    same = site.least.text == site.largest.text
    size = f"± {site.typical}" if same else f"± {site.least} to {site.largest}"
    return f"{site.law} at {site.at} ({size})"


def status_words(facts: Facts) -> str:
    """How the plan was found and how good it is: "solved in 0.3 s · optimal, gap 4e-10 (certified)"."""
    seconds = facts.solver.seconds
    head = f"solved in {seconds} s · " if seconds is not None else ""
    gap = facts.loss.gap if facts.loss else None
    certified = " (certified)" if "lower_bound" in facts.certificate_entries else ""
    tail = f", gap {gap}{certified}" if gap is not None else ""
    return f"{head}{_STATUS.get(facts.status, facts.status)}{tail}"


_STATUS = {"feasible": "feasible, not proved optimal"}


def error_words(facts: Facts) -> tuple[str, str]:
    """A label and the expected error: a root mean square where the loss is a squared error, else the loss."""
    loss = facts.loss
    if loss is None:
        return "Expected loss", ""
    each = " · ".join(f"{o.name} ± {o.typical}" for o in facts.outputs)
    if loss.error is None or loss.variance is None:
        if each:
            return "Expected error an answer", f"{each}  (root mean square; loss {loss.value})"
        return "Expected loss", f"{loss.value} {loss.units}".strip()
    if len(facts.outputs) > 1:
        return f"Expected error {loss.error_of}", f"{each}  (root mean square)"
    return (
        f"Expected error {loss.error_of}",
        f"± {loss.error}  (root mean square; variance {loss.variance})",
    )


def alternatives_words(facts: Facts) -> str:
    """The designs that were not chosen, each with its error (or how many times the loss)."""
    items = sorted(facts.alternatives, key=lambda a: (not a.admissible, a.loss.value))
    more = len(items) - MOST_COMPARED
    shown = items[:MOST_COMPARED] if more > 1 else items
    tail = f" · {more} more" if more > 1 else ""
    words = " · ".join(
        f"{a.name} {f'± {a.error}' if a.error else f'{a.times} × the loss'}"
        f"{'' if a.admissible else ' (not admissible)'}"
        for a in shown
    )
    return words + tail


def reached_words(fact: ClaimFact) -> str:
    """What the executed noise reaches, "μ ≤ 0.2368"; empty where it says no more than the statement."""
    achieved = fact.claim.achieved_parameter
    stated = {_GREEK.get(name, name): quantity.text for name, quantity in fact.claim.parameters}
    if achieved is None or stated == {achieved[0]: achieved[1].text}:
        return ""
    return f"{achieved[0]} ≤ {achieved[1]}"


def binding_words(item: BindingFact) -> str:
    """What relaxing a line would give: "the requirement on line 14: ε 1 → 1.1 lowers the error by 8 %"."""
    verb = "lowers" if item.lowers else "raises"
    gain = f"the error by {item.error_change}" if item.error_change else f"the loss by {item.loss_change}"
    return f"the requirement on line {item.line.number}: {change_words(item.change)} {verb} {gain}"


def change_words(change: str) -> str:
    """A change of a parameter with its letter and an arrow: "ε 1 → 1.1"."""
    named = re.sub(r"\b(epsilon|delta|mu|rho|alpha)\b", lambda m: _GREEK[m[1]], change)
    return named.replace("->", "→")
