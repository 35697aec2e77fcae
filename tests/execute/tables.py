"""Hand-made plans of the family "table", and the chi-square test of their draws."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from privspec.kernel.core.problem import FORMAT, Data, Frame
from privspec.kernel.tables import Executed
from privspec.kernel.tables_forms import Amount, Task
from privspec.kernel.trust import Trust
from privspec.kernel.writing import exact_grid, plan_digest, write

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
    data: Sequence[str] | None = None,
    measure: str = "epsilon-LDP",
    guarantees: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """A plan of a table with the keys that execution, ledger and estimation read."""
    rows = list(inputs or [str(i + 1) for i in range(len(probabilities))])
    columns = list(outputs or [str(i + 1) for i in range(len(probabilities[0]))])
    task = Task(
        outputs=tuple(releases),
        of=tuple(of),
        counted=(),
        rows=tuple(rows),
        columns=tuple(columns),
        places=tuple(_places([one if len(releases) == 1 else one[k] for one in columns]) for k in range(len(releases))),
        prior=None if prior is None else exact_grid(prior),
        compared=(),
        expression="",
        loss=Amount(None, (), (), (), Fraction(0)),
        estimates=None,
        conditions=(),
        accuracy=(),
        manipulation=(),
        fairness=(),
        choices=(),
        laws=(),
        rounds=None,
    )
    held = tuple(Data(name, "", "clip", None, 1) for name in (of if data is None else data))
    frame = Frame(FORMAT, "", "demo", Trust("curator", 0), held, (), (), (), (task,))
    executed = Executed(task, rows, columns, tuple(map(tuple, probabilities)), {}, {})
    plan: dict[str, Any] = {
        "format": "privspec-plan/3.0",
        "spec": {"name": "demo"},
        "problem": write(frame),
        "status": "optimal",
        "mechanism": write(executed),
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


def _places(labels: Sequence[Any]) -> tuple[int, ...]:
    """Which value each label is, in the order in which they occur."""
    known = list(map(str, labels))
    order = list(dict.fromkeys(known))
    return tuple(order.index(label) for label in known)


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
