"""Limits on errors by their prices: the loss plus nu times what each limit bounds, with nu where the limits just hold.

At given prices nu >= 0 the program has no limits, and whatever solves that kind bounds it: the least loss within the
limits is at least the bound of the sum less nu times what they allow (weak duality). The logarithms of errors are about
linear in those of prices, so that these are found by steps of Newton's method whose slopes are learnt on the way
(Broyden 1965).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import log

import numpy as np
import scipy
from privspec.solvers.programs import (
    Array,
    ExpectedLoss,
    GaussianProgram,
    GaussianSolution,
    NotSpecialError,
    Unprotectable,
)

CLOSE = 4e-8
"""Relative width below a limit in which an error has to lie that is paid for."""
SLOPE = -0.5
"""Of the logarithm of an error by that of its own price, before it is known."""
LONGEST = log(16)
"""The longest step of a logarithm."""
NOTHING = 1e-9
"""A limit whose price falls below this share of what makes it count like the loss has none."""
ROUGH = 1e-4
"""Relative misfit of errors up to which the first prices of several limits are sought."""
MOST = 80
"""Programs without limits that are solved at most."""

Solve = Callable[[GaussianProgram], GaussianSolution | Unprotectable]


def solve_at_prices(program: GaussianProgram, solve: Solve) -> GaussianSolution:
    """The least expected loss within the limits, with a bound that holds whatever the prices are.

    Args: solve, for the same program under another loss and without limits.
    Raises: NotSpecialError for a worst-case loss, or where no prices are found; and what `solve` raises.
    """
    if not isinstance(program.loss, ExpectedLoss):
        raise NotSpecialError("limits beside a worst-case loss")
    whole = float(np.sum(program.loss.error_map**2))
    scales = np.array([whole / float(np.sum(limit.error_map**2)) for limit in program.limits])
    prices, slopes = _first(program, scales, solve), np.diag(np.full(len(scales), SLOPE))
    solution = _solved(program, prices, solve)
    errors = _errors(program, solution)
    for _ in range(MOST):
        paid = prices > 0
        if np.all(errors <= 0) and np.all(errors[paid] >= -CLOSE):
            return _within(program, prices, solution)
        paid |= errors > 0
        before = np.log(np.where(prices > 0, prices, scales))
        wanted = np.where(paid, errors + CLOSE / 2, 0.0)
        step = np.zeros(len(scales))
        step[paid] = np.linalg.lstsq(slopes[np.ix_(paid, paid)], -wanted[paid], rcond=None)[0]
        step *= min(1.0, LONGEST / np.abs(step).max(initial=LONGEST))
        moved = np.where(paid, np.exp(before + step), 0.0)
        moved[moved < NOTHING * scales] = 0.0
        known = paid & (prices > 0) & (moved > 0)
        solution = _solved(program, moved, solve)
        found = _errors(program, solution)
        if np.any(known) and np.any(step[known]):
            own = np.ix_(known, known)
            short = found[known] - errors[known] - slopes[own] @ step[known]
            slopes[own] += np.outer(short, step[known]) / float(step[known] @ step[known])
        prices, errors = moved, found
    raise NotSpecialError("limits whose prices were not found")


def _first(program: GaussianProgram, scales: Array, solve: Solve) -> Array:
    """Prices of several limits near those that prove most: which of them are paid at all."""
    if len(scales) == 1:
        return np.zeros(1)
    bounds = np.array([limit.bound for limit in program.limits])
    least = float(scales @ bounds)

    def unproved(shares: Array) -> tuple[float, Array]:
        """The bound at prices in shares of `scales`, turned, with its slopes."""
        found = _solved(program, shares * scales, solve)
        errors = np.exp(_errors(program, found)) * bounds
        proved = found.value - float(shares * scales @ bounds)
        return -proved / least, scales * (bounds - errors) / least

    found = scipy.optimize.minimize(
        unproved,
        np.zeros(len(scales)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * len(scales),
        options={"maxfun": MOST, "gtol": ROUGH},
    )
    return np.where(found.x > NOTHING, found.x, 0.0) * scales


def _solved(program: GaussianProgram, prices: Array, solve: Solve) -> GaussianSolution:
    """The best noise at some prices."""
    priced = zip(prices, program.limits, strict=True)
    rows = [program.loss.error_map, *(np.sqrt(nu) * limit.error_map for nu, limit in priced if nu)]
    found = solve(replace(program, loss=ExpectedLoss(np.vstack(rows)), limits=()))
    if isinstance(found, Unprotectable):
        raise NotSpecialError("differences that no noise hides")
    return found


def _root(program: GaussianProgram, found: GaussianSolution) -> Array:
    """A root of the covariance of the outputs."""
    if found.reconstruction is not None or found.input_estimate is None:
        return np.asarray(found.reconstruction)
    return np.asarray(program.target @ found.input_estimate)


def _errors(program: GaussianProgram, found: GaussianSolution) -> Array:
    """The logarithm of each error as a multiple of its limit."""
    root = _root(program, found)
    return np.array([log(float(np.sum((one.error_map @ root) ** 2)) / one.bound) for one in program.limits])


def _within(program: GaussianProgram, prices: Array, found: GaussianSolution) -> GaussianSolution:
    """A solution at prices as one of the program with its limits."""
    allowed = sum(float(nu) * limit.bound for nu, limit in zip(prices, program.limits, strict=True))
    return replace(
        found,
        value=float(np.sum((program.loss.error_map @ _root(program, found)) ** 2)),
        lower_bound=max(found.lower_bound - allowed * (1 + 1e-15), 0.0),
        dual=replace(found.dual, limit_weights=prices.copy()),
        method=f"{found.method}, at prices of the limits",
    )
