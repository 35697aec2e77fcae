"""Post-processing for a prior and a loss: each noisy value is replaced by the best guess (notes/bayes-remap.md)."""

from __future__ import annotations

import numpy as np

from privspec.mechanisms.finite.context import Array, TableContext

_LARGEST = 1_000_000
"""Entries of the program over random remaps up to which it is worth its time for a comparison."""


def best_remap(context: TableContext, noise: Array) -> Array | None:
    """The table (X, Y) after the best remap of noisy values, from their law `noise` (X, Z).

    For an expected loss each noisy value becomes the column of least posterior loss; for the worst case the remap may
    be random, from a linear program. None if that is too large.
    """
    remap = worst_case_remap(context, noise) if context.worst else bayes_remap(context, noise)
    return None if remap is None else np.asarray(noise @ remap)


def bayes_remap(context: TableContext, noise: Array) -> Array:
    """For each noisy value (Z, Y) the column of least expected loss given it, as a 0/1 matrix; the first of several."""
    assert context.prior is not None
    losses = noise.T @ (context.prior[:, None] * context.cost)
    # ties are decided by position, not by the last bit of a sum
    ties = losses <= losses.min(axis=1, keepdims=True) + 1e-13 * np.max(np.abs(losses), axis=1, keepdims=True)
    chosen: Array = np.eye(context.cost.shape[1])[np.argmax(ties, axis=1)]
    return chosen


def worst_case_remap(context: TableContext, noise: Array) -> Array | None:
    """The random remap (Z, Y) with the least largest loss over the rows; None if the program is too large."""
    values, (inputs, outputs) = noise.shape[1], context.cost.shape
    if inputs * values * outputs > _LARGEST:
        return None
    losses = (noise[:, :, None] * context.cost[:, None, :]).reshape(inputs, -1)
    from scipy.optimize import linprog  # slow to load

    found = linprog(
        np.append(np.zeros(values * outputs), 1.0),
        A_ub=np.hstack((losses, -np.ones((inputs, 1)))),
        b_ub=np.zeros(inputs),
        A_eq=np.hstack((np.kron(np.eye(values), np.ones((1, outputs))), np.zeros((values, 1)))),
        b_eq=np.ones(values),
        bounds=[(0, None)] * (values * outputs) + [(None, None)],
    )
    if found.x is None or found.status != 0:
        return None
    remap: Array = np.maximum(found.x[:-1], 0.0).reshape(values, outputs)
    remap /= remap.sum(axis=1, keepdims=True)
    return remap
