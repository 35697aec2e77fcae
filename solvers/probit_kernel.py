"""Where the compiled engine of probit estimates is installed (numba), and its loading on first use."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import numpy as np
from privspec.solvers.programs import Array

AVAILABLE = find_spec("numba") is not None


def solve(unit: Array, tolerance: float, norm: str, limit: int) -> tuple[Array, int]:
    """Points (N, d) of the unit ball, and the largest number of steps of a voter; `unit` (N, n, d)."""
    points = np.zeros((unit.shape[0], unit.shape[2]))
    steps = import_module("privspec.solvers.probit_compiled").every_voter(unit, tolerance, norm == "l1", limit, points)
    return points, int(steps)
