"""Which rows of a table one unit moves between, by the model of the spec."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from privspec.explain.finite.table import Indices, Table
from privspec.model.measures import PureDP
from privspec.model.reports import Failure
from privspec.model.requirements import Requirement

if TYPE_CHECKING:
    from privspec.explain.claims import Claim
    from privspec.model.graph import Model
    from privspec.model.observers import Unit


def neighbours(table: Table, claim: Claim, unit: Unit | None, model: Model | None) -> Indices | None:
    """Unordered pairs of rows (K, 2); None without a model, or where its rows are not those of the table."""
    if model is None or unit is None:
        return None
    from privspec.model.worlds import worlds

    line = model.requirements[unit.requirement] if unit.requirement >= 0 else _default(claim, unit, model)
    try:
        found = worlds(model)
        pairs = found.neighbours(line).pairs
    except Failure:
        return None
    if found.of != table.of or len(found.rows) != len(table.rows):
        return None
    return np.unique(np.sort(pairs, axis=1), axis=0)


def _default(claim: Claim, unit: Unit, model: Model) -> Requirement:
    """A line that compares what a unit compares; its measure is not looked at."""
    span = model.block(unit.wrt[0]).span
    return Requirement(claim.outputs, unit.wrt, unit.relation, PureDP(Fraction(1)), ("anyone",), span, 0, "")
