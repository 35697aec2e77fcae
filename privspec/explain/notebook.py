"""A plan as it shows itself in a notebook: one short fragment of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from privspec.explain.accuracy import accuracy_words
from privspec.explain.facts import Facts, facts
from privspec.explain.html import environment, icon_svg
from privspec.explain.words import (
    alternatives_words,
    binding_words,
    claim_words,
    exposure_rows,
    fairness_words,
    overridden_words,
    status_words,
)

if TYPE_CHECKING:
    from privspec.model.graph import Model


def plan_html(plan: Mapping[str, Any], model: Model | None = None) -> str:
    """The plan in brief as HTML: status, error, noise, guarantees, and the odds as two rows of figures.

    Raises: ValueError, KeyError if the plan is not of the form `privspec-plan/1.0`.
    """
    found = facts(plan, model)
    weakest = found.weakest
    rows = weakest.question.icons(weakest.shown.odds).rows if weakest is not None and weakest.shown is not None else ()
    figures = [(row.label, icon_svg(row)) for row in rows]
    return (
        environment()
        .get_template("fragment.html")
        .render(facts=found, status=status_words(found), rows=_rows(found), figures=figures)
    )


def _rows(found: Facts) -> list[tuple[str, str]]:
    rows = [(found.mechanism.brief_label, found.mechanism.drawn(found)), *found.mechanism.summary_rows(found)]
    label, error = found.mechanism.error(found)
    rows += [(label, error)] if error else []
    rows += [("Accuracy met", words)] if (words := accuracy_words(found)) else []
    rows += [("Compared", words)] if (words := alternatives_words(found)) else []
    rows += [("As solved", words)] if (words := overridden_words(found)) else []
    rows += exposure_rows(found)
    rows += [("Guarantee", claim_words(fact)) for fact in found.claims]
    rows += [("Fairness", fairness_words(item)) for item in found.fairness]
    rows += [("What binds", binding_words(item)) for item in found.binding]
    return rows
