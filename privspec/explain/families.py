"""Which fact object describes the mechanism of a plan: one entry for each family that is not additive noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from privspec.explain.additive import additive_noise
from privspec.explain.context import Context
from privspec.explain.finite.reading import table_fact
from privspec.explain.lotteries.facts import lottery_fact
from privspec.explain.lotteries.rules import RULES
from privspec.explain.mechanism import MechanismFact
from privspec.explain.statistics.facts import statistic_fact

_READERS: Mapping[str, Callable[[Mapping[str, Any], Context], MechanismFact]] = {
    "table": table_fact,
    "statistic": statistic_fact,
    **dict.fromkeys(RULES, lottery_fact),
}


def mechanism_fact(plan: Mapping[str, Any], context: Context) -> MechanismFact:
    """The mechanism of a plan; of a family that is not known, an object that says so.

    Raises: ValueError, KeyError if the mechanism is not of the form of its family.
    """
    reader = _READERS.get(str((plan.get("mechanism") or {}).get("family", "")))
    return additive_noise(plan) if reader is None else reader(plan, context)
