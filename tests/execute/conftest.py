"""Hand-made plans, so that execution is tested without compiler and solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from privspec.core.matrices import DyadicMatrix
from privspec.execute.run import plan_digest

MakePlan = Callable[..., dict[str, Any]]


def make_plan_dict(
    strategy: Any,
    reconstruction: Any,
    *,
    noise: dict[str, Any] | None = None,
    of: str = "outputs",
    outputs: list[tuple[str, tuple[int, ...]]] | None = None,
    inputs: list[dict[str, Any]] | None = None,
    neighbours: str = "replacing one entry",
    achieved: dict[str, str] | None = None,
    guarantees: list[dict[str, Any]] | None = None,
    **executed: Any,
) -> dict[str, Any]:
    """A plan with the keys that execution and ledger read."""
    B = np.asarray(strategy, dtype=float)
    L = np.asarray(reconstruction, dtype=float)
    columns = B.shape[1]
    sizes = outputs or [("O", (L.shape[0],))]
    stops = np.cumsum([int(np.prod(shape)) for _, shape in sizes])
    plan: dict[str, Any] = {
        "format": "privspec-plan/2.0",
        "spec": {"name": "demo"},
        "mechanism": {
            "family": "gaussian",
            "executed": {
                "inputs": inputs
                or [
                    {
                        "name": "x",
                        "start": 0,
                        "stop": columns,
                        "layout": "entries",
                        "lower": "0",
                        "upper": "1",
                        "grid": "2^-24",
                    }
                ],
                "strategy": DyadicMatrix.rounded(B).to_json(),
                "noise": noise or {"shape": "gaussian", "standard_deviation": "1"},
                "grid": "2^-30",
                "reconstruction": {"of": of, "matrix": DyadicMatrix.rounded(L).to_json()},
                "outputs": [
                    {
                        "name": name,
                        "start": int(stop) - int(np.prod(shape)),
                        "stop": int(stop),
                        "shape": list(shape),
                        "offset": 0,
                    }
                    for (name, shape), stop in zip(sizes, stops, strict=True)
                ],
                "output_grid": "2^-20",
                **executed,
            },
        },
        "guarantees": guarantees
        or [
            {
                "outputs": [name for name, _ in sizes],
                "wrt": ["x"],
                "neighbours": neighbours,
                "observer": "anyone",
                "measure": "mu-GDP",
                "achieved": achieved or {"mu": "0.5"},
                "requirement": 0,
            }
        ],
    }
    plan["digest"] = plan_digest(plan)
    return plan


@pytest.fixture
def make_plan() -> MakePlan:
    return make_plan_dict


@pytest.fixture
def identity_plan() -> dict[str, Any]:
    return make_plan_dict(np.eye(4), np.eye(4))
