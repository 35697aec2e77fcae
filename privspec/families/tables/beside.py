"""The optimum beside the mechanisms people use, and by its own name where it has one.

Only where one requirement and one kind of loss say all there is: further lines, or a second observer, are nothing that
these mechanisms know of.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from privspec.families.tables.comparisons import comparisons
from privspec.families.tables.context import Label, Neighbours, TableContext
from privspec.families.tables.recognition import recognise
from privspec.families.tables.system import Requested, TableSystem, per_atom
from privspec.model.values import Value, as_float
from privspec.solvers.programs import Array
from privspec.solvers.table_divergences import CurveRatio

if TYPE_CHECKING:
    from privspec.families.tables.decision import TableDecision

SAME = 1e-6
"""Probabilities closer than this everywhere make the same mechanism."""


def context_of(decision: TableDecision) -> TableContext | None:
    """The system as the mechanisms see it; None where there is more to it."""
    system, worlds = decision.system, decision.worlds
    if (
        not system.plain
        or system.loss.variations
        or any(worst.variations for worst in system.loss.worst)
        or len(system.requested) != 1
        or (system.expected is not None) == bool(system.worst)
    ):
        return None
    (requested,) = system.requested
    if requested.view is not None or len(system.worst) > 1 or per_atom(requested.obligation.measure):
        return None
    if isinstance(requested.block, CurveRatio):
        return None
    if worlds.counted or not len(requested.neighbours.pairs):
        return None
    prior = None if system.prior is None else as_float(system.prior)
    return TableContext(
        tuple(_label(row) for row in worlds.rows),
        tuple(_label(column) for column in worlds.columns),
        requested.amounts["epsilon"],
        _neighbours(requested, len(worlds.rows)),
        _cost(system, prior),
        prior if not system.worst else None,
        bool(system.worst),
        requested.amounts.get("delta", Fraction(0)),
    )


def _label(values: tuple[Value, ...]) -> Label:
    parts: list[Any] = []
    for value in values:
        parts += list(value.ravel()) if isinstance(value, np.ndarray) else [value]
    return tuple(parts)


def _neighbours(requested: Requested, rows: int) -> Neighbours:
    found = requested.neighbours
    if found.complete and found.distances is None:
        return Neighbours.complete(rows)
    if found.distances is None:
        return Neighbours.adjacent(rows, found.pairs)
    distances = np.full((rows, rows), np.inf)
    np.fill_diagonal(distances, 0.0)
    distances[found.pairs[:, 0], found.pairs[:, 1]] = [float(d) for d in found.distances]
    return Neighbours.metric(distances)


def _cost(system: TableSystem, prior: Array | None) -> Array:
    """The loss of each pair without the prior."""
    if system.worst:
        weight, worst = system.worst[0]
        return as_float(worst * weight)
    assert prior is not None and system.expected is not None
    weighted = as_float(system.expected)
    return np.divide(weighted, prior[:, None], out=np.zeros_like(weighted), where=prior[:, None] > 0)


def beside(decision: TableDecision) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """The `alternatives` of the plan and what its mechanism is recognised as (None if nothing)."""
    context = context_of(decision)
    if context is None:
        if not decision.settings.alternatives or not decision.model.parties:
            return [], None
        from privspec.families.tables.votes import rules_beside  # a vote may be many modules away

        return rules_beside(decision), None
    table = decision.exact.to_array()
    found = recognise(context, table, SAME)
    named = None if found is None else {"name": found.name, "text": found.text, "note": found.note}
    if not decision.settings.alternatives:
        return [], named
    offset = float(decision.system.loss.constant)
    least = -inf if decision.lower_bound is None else decision.lower_bound
    others = [
        # their tables are doubles: a rounding must not make them better than anything can be
        {"name": c.name, "loss": max(c.loss + offset, least if c.admissible else -inf)}
        | {"admissible": c.admissible, "reason": c.reason}
        for c in comparisons(context)
        if float(np.max(np.abs(c.table - table))) > SAME
    ]
    return others, named
