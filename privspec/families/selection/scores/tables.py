"""The best laws of all tables of counts, where these are few: a linear program, then exact chances."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.rounding import exp_down
from privspec.kernel.core.problem import Obligation
from privspec.kernel.core.reading import Refused
from privspec.kernel.selection import Listed, Selected, beside, epsilon_up, proved_by, tables_of

BITS = 60
"""Binary places of the chances."""
MIXED = (0.0, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8)
"""Shares of the uniform law that are mixed in until every ratio holds exactly."""
LARGEST = 4000
"""Ratios that one program compares, times 10: answers times pairs of tables."""


def listed(block: Selected, lines: tuple[Obligation, ...], *, drops: bool) -> tuple[Listed, dict[str, Any]] | None:
    """The best laws under lines of pure epsilon about one record replaced, and multipliers that bound all others.

    None where tables are too many, or lines are others.
    """
    units = [line.units[0] for line in lines]
    pure = all(line.measure.name == "epsilon-DP" for line in lines)
    if not pure or any(unit.adding or unit.kind != "record" or unit.count > 1 for unit in units):
        return None
    if block.families and "table" not in block.families:
        return None
    try:
        tables = tables_of(block)
        weights = None if block.cost.worst else [float(one) for one in block.weights()]
    except Refused:
        return None
    at = {table: i for i, table in enumerate(tables)}
    pairs = np.array([(i, at[other]) for i, table in enumerate(tables) for other in beside(table)])
    if len(pairs) * block.size > 10 * LARGEST:
        return None
    from privspec.solvers import listed as solver

    epsilon = min(line.measure.figures({})["epsilon"] for line in lines)
    costs = np.array([[float(cost) for cost in block.costs(table)] for table in tables])
    given = None if weights is None else np.array(weights)
    found = solver.solve(costs, given, pairs, float(exp_down(epsilon)) * (1 - 1e-13))
    for share in MIXED:
        laws = exact(found.laws * (1 - share) + share / block.size)
        made = Listed(block, laws, 1 << BITS, drops)
        try:
            ratio = epsilon_up(made.ratio(units[0]))
        except Refused:
            continue
        if all(proved_by(one.measure.name, one.measure.figures({}), ratio, None) for one in lines):
            places = np.argwhere(found.multipliers > 0)
            rows = [[*map(int, pairs[m]), int(r), float(found.multipliers[m, r])] for m, r in places]
            own = None if weights is not None else [float(one) for one in found.weights]
            return made, {"pairs": rows, "weights": own}
    return None


def exact(laws: NDArray[np.float64]) -> tuple[tuple[int, ...], ...]:
    """The laws in whole numbers of the sum 2^BITS: what rounding leaves goes to the likeliest answer."""
    found = []
    for law in laws.tolist():
        whole = [int(Fraction(chance) * (1 << BITS)) for chance in law]
        whole[whole.index(max(whole))] += (1 << BITS) - sum(whole)
        found.append(tuple(whole))
    return tuple(found)
