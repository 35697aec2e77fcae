"""Hand-made plans of the family "table", and the chi-square test of their draws."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from privspec.kernel.writing import plan_digest

ALARM = 1e-6
"""Probability of a false alarm of one test."""


def make_table_plan(
    probabilities: Sequence[Sequence[Fraction]],
    *,
    of: Sequence[str] = ("x",),
    releases: Sequence[str] = ("z",),
    inputs: Sequence[Any] | None = None,
    outputs: Sequence[Any] | None = None,
    prior: Sequence[Fraction] | None = None,
    measure: str = "epsilon-LDP",
    guarantees: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """A plan with the keys that execution, ledger and estimation read."""
    plan: dict[str, Any] = {
        "format": "privspec-plan/2.0",
        "spec": {"name": "demo"},
        "problem": {"trust": {"kind": "curator"}, "blocks": [{"form": "table"}], "data": []},
        "status": "optimal",
        "mechanism": {
            "family": "table",
            "of": list(of),
            "releases": list(releases),
            "inputs": list(inputs or [str(i + 1) for i in range(len(probabilities))]),
            "outputs": list(outputs or [str(i + 1) for i in range(len(probabilities[0]))]),
            "prior": None if prior is None else [str(p) for p in prior],
            "probabilities": [[str(p) for p in row] for row in probabilities],
            "scalars": {},
            "laws": {},
            "recognised": None,
        },
        "guarantees": guarantees
        or [
            {
                "outputs": list(releases),
                "wrt": list(of),
                "neighbours": "replacing everything",
                "observer": "anyone",
                "measure": measure,
                "epsilon": "1",
                "achieved": {"epsilon": "1", "delta": "0"},
                "requirement": 0,
            }
        ],
    }
    plan["digest"] = plan_digest(plan)
    return plan


def k_rr(size: int, ratio: Fraction = Fraction(27182818, 10**7)) -> list[list[Fraction]]:
    """k-randomised response: the truth is `ratio` times as likely as any other answer."""
    total = ratio + size - 1
    return [[(ratio if x == y else Fraction(1)) / total for y in range(size)] for x in range(size)]


def chi_square(counts: NDArray[np.int64], law: Sequence[float]) -> float:
    """P-value of counts (k,) under a law; impossible entries must not occur, rare ones are one cell."""
    expected = np.asarray(law) * counts.sum()
    if counts[expected == 0].any():
        return 0.0
    keep = expected > 10
    if keep.all():
        return float(stats.chisquare(counts, expected).pvalue)
    observed = np.append(counts[keep], counts[~keep].sum())
    cells = np.append(expected[keep], expected[~keep].sum())
    used = cells > 0
    return float(stats.chisquare(observed[used], cells[used]).pvalue) if used.sum() > 1 else 1.0
