"""Tables that are a known mechanism followed by a remap of its answers, found with the inverse of its table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privspec.mechanisms.finite.context import Array, Label, TableContext
from privspec.mechanisms.finite.geometric import GeometricNoise
from privspec.mechanisms.finite.mechanism import shown
from privspec.mechanisms.finite.response import RandomisedResponse, response_name
from privspec.mechanisms.finite.sayings import Recognition, joined, listed, named, spoken

_LARGEST = 600
"""Rows up to which a system is solved."""


def remap_of(base: Array, table: Array, tolerance: float) -> Array | None:
    """The row-stochastic M with base @ M = table up to the tolerance, 0/1 where one fits; None if there is none."""
    try:
        solved = np.linalg.solve(base, table)
    except np.linalg.LinAlgError:
        return None
    outputs = table.shape[1]
    sure: Array = np.eye(outputs)[np.argmax(solved, axis=1)]
    clipped = np.where(solved > 1e-9, solved, 0.0)
    sums = clipped.sum(axis=1, keepdims=True)
    if np.any(sums <= 0):
        return None
    mixed: Array = clipped / sums
    for remap in (sure, mixed):
        if np.max(np.abs(base @ remap - table)) <= tolerance:
            return remap
    return None


def geometric_remapped(context: TableContext, table: Array, tolerance: float) -> Recognition | None:
    """Truncated geometric noise on the grid of the rows, then a remap."""
    noise = GeometricNoise.of(context)
    if noise is None or context.neighbours.uniform or len(table) > _LARGEST:
        return None
    base = noise.hull()
    if base is None or base.shape[0] != base.shape[1]:
        return None
    remap = remap_of(base, table, tolerance)
    if remap is None:
        return None
    # columns of the hull are the rows in ascending order, last coordinate fastest
    order = sorted(range(len(noise.points)), key=lambda x: noise.points[x])
    values = [context.rows[x] for x in order]
    text = f"{noise.describe()}, truncated at both ends; then {_reported(values, context.columns, remap)}"
    deviation = float(np.max(np.abs(base @ remap - table)))
    return Recognition("truncated geometric, remapped", text, "truncated-geometric", deviation)


def response_remapped(context: TableContext, table: Array, tolerance: float) -> Recognition | None:
    """(k-)randomised response on the rows, then a remap."""
    if not context.neighbours.uniform or len(table) > _LARGEST:
        return None
    k = len(table)
    own = TableContext(
        context.rows, context.rows, context.epsilon, context.neighbours, np.zeros((k, k)), worst=True,
        delta=context.delta,
    )  # fmt: skip
    for base in RandomisedResponse().candidates(own):
        remap = remap_of(base.table, table, tolerance)
        if remap is not None:
            text = f"{base.text}; then {_reported(context.rows, context.columns, remap)}"
            deviation = float(np.max(np.abs(base.table @ remap - table)))
            return Recognition(f"{response_name(k)}, remapped", text, base.note, deviation)
    return None


def _reported(values: Sequence[Label], columns: Sequence[Label], remap: Array) -> str:
    """Which noisy values, in the order of the domain, are reported as what."""
    merged: dict[int, list[Label]] = {}
    drawn = []
    for value, row in zip(values, remap, strict=True):
        targets = np.flatnonzero(row).tolist()
        if len(targets) > 1:
            chances = joined([shown(row[y]) for y in targets])
            names = " or ".join(spoken(columns[y]) for y in targets)
            drawn.append(f"{spoken(value)} → {names} with probabilities {chances}")
        else:
            merged.setdefault(targets[0], []).append(value)
    changed = {y: group for y, group in merged.items() if group != [columns[y]]}
    parts = [f"{named(group, values)} → {spoken(columns[y])}" for y, group in changed.items()]
    return listed(parts + drawn, between="; ")
