"""Small pieces of wording that several pages share."""

from __future__ import annotations

from collections.abc import Sequence

from privspec.explain.facts import Facts, SiteFact


def joined(items: Sequence[str], last: str = "and") -> str:
    """A list in words: "a, b and c"."""
    if len(items) <= 1:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def noise_words(facts: Facts) -> str:
    """Where the noise goes, in one line."""
    if not facts.sites:
        return "not stated in the plan"
    return " · ".join(_site(facts, site) for site in facts.sites)


def _site(facts: Facts, site: SiteFact) -> str:
    words = facts.context.trust_words
    place = f", {words.place}" if words and len(facts.sites) == 1 else ""
    if site.correlated:
        return f"correlated across the {site.coordinates} answers of {site.at}{place}"
    if site.coordinates.value == 0:
        return f"{site.law} at {site.at}{place}"
    if site.largest.value == 0:
        return f"none at {site.at}"
    size = (
        f"± {site.typical}" if site.least.text == site.largest.text else f"± {site.least} to {site.largest}"
    )
    return f"{site.law} at {site.at} ({size}){place}"
