"""Pages of plans made by hand as if the kernel had derived all of their claims: statuses are its report's."""

from __future__ import annotations

from typing import Any

from privspec.explain import reading, reports
from privspec.explain import summary as short
from privspec.explain.facts import Facts, Judgement
from privspec.model.graph import Model

CLAIMS = ("bound", "choices", "exposure", "fairness", "law", "loss", "privacy", "sites", "unbiased")
JUDGED = Judgement(tuple((name, "as derived") for name in CLAIMS))


def facts(plan: Any, model: Model | None = None) -> Facts:
    return reading.facts(plan, model, JUDGED)


def explain(plan: Any, reader: str = "public", form: str = "md", model: Model | None = None) -> str:
    return reports.explain(plan, reader, form, model, JUDGED)


def plan_html(plan: Any, model: Model | None = None) -> str:
    return reports.plan_html(plan, model, JUDGED)


def summary(plan: Any, **how: Any) -> str:
    return short.summary(plan, judgement=JUDGED, **how)
