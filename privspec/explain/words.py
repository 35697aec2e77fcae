"""Small pieces of wording that several pages share."""

from __future__ import annotations

import re
from collections.abc import Sequence

from privspec.explain.facts import AlternativeFact, BindingFact, ClaimFact, Facts, SiteFact
from privspec.explain.quantities import count

MOST_COMPARED = 4
"""Alternatives that the summary names; the engineer's page has all."""

NEXT_TO_NONE = 0.01
"""The share of the largest deviation below which a deviation is called next to none."""

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
    joint = [site for site in facts.sites if site.correlated]
    alone = [site for site in facts.sites if not site.correlated]
    return f"{' · '.join([*_joint(joint), *map(_site, alone)])}{place}"


def _joint(sites: Sequence[SiteFact]) -> list[str]:
    """The sites whose noise is drawn together."""
    if not sites:
        return []
    answers = sum(int(site.coordinates.value) for site in sites)
    names = joined([site.at for site in sites])
    if len(sites) == 1:
        return [f"correlated across the {count(answers)} answers of {names}"]
    return [f"drawn together, correlated across all {count(answers)} answers of {names}"]


def _site(site: SiteFact) -> str:
    if not site.deviations:
        return f"{site.law} at {site.at}"
    if site.largest.value == 0:
        return f"none at {site.at}"
    same = site.least.text == site.largest.text
    least = "next to none" if site.least.value < NEXT_TO_NONE * site.largest.value else f"± {site.least}"
    size = (
        f"± {site.typical}" if same else f"{least} to {site.largest if least.startswith('±') else f'± {site.largest}'}"
    )
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
    words = " · ".join(f"{a.name}{_compared(a, facts)}{'' if a.admissible else ' (not admissible)'}" for a in shown)
    return words + tail


def same_loss(item: AlternativeFact, facts: Facts) -> bool:
    """Whether a design has the loss of the plan, to all digits that are printed."""
    return facts.loss is not None and item.loss.text == facts.loss.value.text


def _compared(item: AlternativeFact, facts: Facts) -> str:
    """The error of a design; how many times the loss where errors are not known or read the same."""
    if same_loss(item, facts):
        return ": the same loss"
    plan = facts.loss.error if facts.loss else None
    if item.error is None or (plan is not None and plan.text == item.error.text):
        return f" {item.times} × the loss"
    return f" ± {item.error}"


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
