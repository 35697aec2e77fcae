"""Which rows of a table a requirement compares, by the model of the spec."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privspec.explain.finite.table import Indices, Table
from privspec.model.reports import Failure

if TYPE_CHECKING:
    from privspec.explain.claims import Claim
    from privspec.model.graph import Model


def neighbours(table: Table, claim: Claim, model: Model | None) -> Indices | None:
    """Unordered pairs of rows (K, 2); None without a model, or where its rows are not those of the table."""
    if model is None or not 0 <= claim.requirement < len(model.requirements):
        return None
    from privspec.model.worlds import worlds

    try:
        found = worlds(model)
        pairs = found.neighbours(model.requirements[claim.requirement]).pairs
    except Failure:
        return None
    if found.of != table.of or len(found.rows) != len(table.rows):
        return None
    return np.unique(np.sort(pairs, axis=1), axis=0)
