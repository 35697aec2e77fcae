"""A constraint that no spec can state, added in Python to the convex program behind a spec; and a verified plan of it.

    python examples/own_constraint.py

Running totals of 12 months. The best noise makes some totals less exact than others; here all of them, and then all
steps from quarter to quarter, are to be equally exact. What Clarabel finds is repaired and verified like any other;
its bound stays that of the spec, so that the gap says what the wish costs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np

import privspec
from privspec.api import Program

SPEC = """
spec running_totals
parameters:
  epsilon = 1
  delta = 1e-6
variables:
  input x in [0, 1]^12
  output O
loss:
  E[ ||O - prefix_sums(x)||^2 ]
privacy:
  O is (epsilon, delta)-DP wrt x, replacing one entry
options:
  noise family gaussian
"""
STEP = 3
"""Months in a quarter."""


def covariance_of(program: Program) -> Any:
    """The covariance of the published totals, as an expression of cvxpy."""
    return program.expressions["covariance of O"]


def planned(program: Program, more: Sequence[Any]) -> privspec.Plan:
    """The verified plan of the program with further constraints."""
    problem = cp.Problem(program.problem.objective, [*program.problem.constraints, *more])
    problem.solve(solver=cp.CLARABEL)
    return program.plan()


def alike(values: Any) -> list[Any]:
    """That all entries of an expression are the same."""
    return [values == values[0]]


def steps(covariance: Any) -> Any:
    """The variances of what each quarter adds to the total."""
    difference = np.eye(12)[STEP - 1 :: STEP] - np.eye(12, k=-STEP)[STEP - 1 :: STEP]
    return cp.diag(difference @ covariance @ difference.T)


def main() -> int:
    """Solve, change, solve again, and sweep."""
    program = privspec.Problem(SPEC).program()
    covariance = covariance_of(program)
    wishes = {
        "as the spec stands": [],
        "every total equally exact": alike(cp.diag(covariance)),
        "every quarter equally exact": alike(steps(covariance)),
    }
    print(f"{'':<34}{'loss':>9}  {'deviation of a total, from .. to':<33}{'of a quarter'}")
    for wish, more in wishes.items():
        plan = planned(program, more)
        assert plan.verify().ok
        noise = np.array(plan.document["mechanism"]["output_covariance"], dtype=float)
        totals, quarters = (np.sqrt(np.array(one)) for one in (np.diag(noise), steps(noise).value))
        figures = f"{totals.min():.2f}, {totals.max():.2f}".ljust(33) + f"{quarters.min():.2f}, {quarters.max():.2f}"
        print(f"{wish:<34}{plan.loss.value:>9.1f}  {figures}")
        print(f"{'':<34}{plan.status}: no noise for this spec loses less than {plan.loss.lower_bound:.1f}")
    print("\nthe same program at other amounts, without compiling the spec again:")
    for epsilon in ("0.5", "1", "2"):
        program.set(epsilon=epsilon)
        print(f"  epsilon = {epsilon}: {program.problem.solve(solver=cp.CLARABEL):.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
