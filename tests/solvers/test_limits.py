"""Limits on errors by their prices, against the program as it is written, solved by the general solver."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from privspec.solvers.gaussian import solve_gaussian
from privspec.solvers.limits import solve_at_prices
from privspec.solvers.programs import (
    ExpectedLoss,
    GaussianProgram,
    Limit,
    NotSpecialError,
    Vectors,
    View,
    WorstLoss,
)

from privspec.api import Problem
from privspec.families.gaussian import reference

SIZE = 6


def program(*limits: tuple[np.ndarray, float], worst: bool = False) -> GaussianProgram:
    """Prefix sums of a row, one number of which changes by one."""
    differences = Vectors(scipy.sparse.csc_array(np.eye(SIZE)))
    loss = WorstLoss(np.eye(SIZE)) if worst else ExpectedLoss(np.eye(SIZE))
    lines = tuple(Limit(np.atleast_2d(rows), bound) for rows, bound in limits)
    return GaussianProgram(np.tri(SIZE), loss, (View(None, differences),), limits=lines)


EACH = tuple((row, 2.15) for row in np.eye(SIZE))


@pytest.mark.parametrize(
    "limits",
    [
        [(np.eye(SIZE)[5], 1.3)],
        [(np.eye(SIZE)[5], 1.5), (np.eye(SIZE)[1], 1.6)],
        [(np.eye(SIZE)[5], 1.3), (np.eye(SIZE)[1], 100.0)],
        [(np.diff(np.eye(SIZE), axis=0), 8.5)],
        EACH,
    ],
)
def test_the_least_loss_within_limits_is_that_of_the_general_solver(limits: list[tuple[np.ndarray, float]]) -> None:
    whole = program(*limits)
    found = solve_at_prices(whole, lambda own: solve_gaussian(own, 1e-9))
    wanted = reference.solve_with_cvxpy(whole)
    assert found.value == pytest.approx(wanted.value, rel=2e-6)
    assert found.lower_bound <= wanted.value * (1 + 1e-6)
    assert found.relative_gap <= 1e-6
    root = found.reconstruction
    assert root is not None
    assert all(np.sum((limit.error_map @ root) ** 2) <= limit.bound for limit in whole.limits)
    assert found.dual.limit_weights is not None
    assert np.all(found.dual.limit_weights >= 0)


def test_limits_that_hold_anyway_have_no_price() -> None:
    found = solve_at_prices(program((np.eye(SIZE), 1000.0)), lambda own: solve_gaussian(own, 1e-9))
    assert found.dual.limit_weights is not None
    assert not found.dual.limit_weights.any()


def test_what_prices_cannot_do_is_said() -> None:
    """A worst-case loss, and limits that no noise meets: their prices grow without end."""
    for asked in (program((np.eye(SIZE)[5], 1.3), worst=True), program((np.eye(SIZE)[5], 0.9))):
        with pytest.raises(NotSpecialError):
            solve_at_prices(asked, lambda own: solve_gaussian(own, 1e-4))


LINES = """\
variables:
  input x in [0, 1]^12
  output O
loss: E[ ||O - prefix_sums(x)||^2 ]
accuracy: E[ (O[12] - sum(x))^2 ] <= 5
privacy: O is 1-GDP wrt x, replacing UNIT
"""


@pytest.mark.parametrize("unit", ["one entry", "up to 2 entries, at least 4 apart"])
def test_lines_hold_where_the_general_solver_declines(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one entry, and of entries that lie apart, whose program is the larger the more ways there are."""
    monkeypatch.setattr(reference, "LARGEST_CONES", 1.0)
    text = LINES.replace("UNIT", unit).replace("<= 5", "<= 1.2" if unit == "one entry" else "<= 5")
    plan = Problem(text).solve()
    assert plan.status == "optimal"
    assert plan.verify().ok
    (line,) = plan.document["accuracy"]
    assert line["bound"] * (1 - 1e-6) <= line["value"] <= line["bound"]
    free = Problem(text.replace("accuracy:", "# ")).solve()
    assert plan.loss.value > free.loss.value * 1.001
