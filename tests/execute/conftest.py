"""Hand-made plans, so that execution is tested without compiler and solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from privspec.core.matrices import DyadicMatrix
from privspec.families.gaussian.release import exact
from privspec.kernel.writing import plan_digest, write
from privspec.problem.linear import exact_matrix, numbers_of

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
    said = guarantees or [
        {
            "outputs": [name for name, _ in sizes],
            "wrt": ["x"],
            "neighbours": neighbours,
            "observer": "anyone",
            "measure": "mu-GDP",
            "achieved": achieved or {"mu": "0.5"},
            "requirement": 0,
        }
    ]
    given = inputs or [{"name": "x", "start": 0, "stop": columns, "layout": "entries", "lower": "0", "upper": "1"}]
    law = noise or {"shape": "gaussian", "scale": "1"}
    if law["shape"] == "laplace" and "scale" in law:
        law = {"shape": "laplace", "scales": [law["scale"]] * B.shape[0]}
    families = {"gaussian": "gaussian", "laplace": "laplace", "knorm-l2": "mixed"}
    m, unit = int(stops[-1]), {"unit": "1"}
    offset = executed.pop("offset", [0] * m)
    target = executed.pop("target", L.tolist() if of == "outputs" else np.eye(m, L.shape[0]).tolist())
    plan: dict[str, Any] = {
        "format": "privspec-plan/3.0",
        "spec": {"name": "demo"},
        "problem": {
            "format": "privspec-problem/1.0",
            "elaborator": "1",
            "name": "demo",
            "trust": {"kind": "curator", "colluding": 0},
            "data": [_data(one, said) for one in given],
            "public": [],
            "obligations": [],
            "views": [],
            "blocks": [
                {
                    "form": "linear",
                    "held": [_held(one) for one in given],
                    "released": [
                        {
                            "name": name,
                            "start": int(stop) - int(np.prod(shape)),
                            "stop": int(stop),
                            "shape": list(shape),
                            "defined": True,
                        }
                        for (name, shape), stop in zip(sizes, stops, strict=True)
                    ],
                    "target": write(exact_matrix(np.zeros((m, columns)) if of == "outputs" else np.array(target))),
                    "offset": write(numbers_of(offset, (m,))),
                    "constants": [],
                    "errors": {
                        "rows": {"shape": [1, m], **unit, "rows": [1] * m},
                        "weights": {"shape": [1], **unit, "rows": [1]},
                    },
                    "worst": False,
                    "loss": "",
                    "accuracy": [],
                    "differences": [],
                    "sites": None,
                    "families": [],
                }
            ],
        },
        "mechanism": {
            "family": families.get(law["shape"], "gaussian"),
            "sites": [],
            "executed": {
                "steps": [_grid(one) for one in given],
                "strategy": write(exact(DyadicMatrix.rounded(B))),
                "noise": law,
                "grid": "2^-30",
                "reconstruction": write(exact(DyadicMatrix.rounded(L))),
                "output_grid": "2^-20",
                "of_inputs": of == "inputs",
                **executed,
            },
        },
        "guarantees": said,
    }
    plan["digest"] = plan_digest(plan)
    return plan


def _grid(one: dict[str, Any]) -> str:
    return "1" if one["layout"] == "cells" else one.get("grid", "2^-24")


def _data(one: dict[str, Any], guarantees: list[dict[str, Any]]) -> dict[str, Any]:
    about = [g["neighbours"] for g in guarantees if one["name"] in g["wrt"]]
    adding = one["layout"] == "cells" and bool(about) and all(words.startswith("adding") for words in about)
    rule = "drop" if adding else "map" if one["layout"] == "cells" else "clip"
    return {"name": one["name"], "domain": "", "rule": rule, "party": one.get("index"), "line": 1}


def _held(one: dict[str, Any]) -> dict[str, Any]:
    cells = one["layout"] == "cells"
    ball = one.get("ball")
    columns = [
        {"name": a["name"], "values": a.get("values", []), "lower": a.get("lower"), "upper": a.get("upper")}
        for a in one.get("attributes", ())
    ]
    return {
        **{key: one[key] for key in ("name", "start", "stop", "layout")},
        "shape": [] if cells else one.get("shape", [one["stop"] - one["start"]]),
        "lower": "0" if cells else one.get("lower"),
        "upper": None if cells else one.get("upper"),
        "ball": ball and {"radius": ball["radius"], "dimension": ball["size"], "norm": ball.get("norm", 2)},
        "columns": columns,
        "records": one.get("records"),
        "units": None,
    }


@pytest.fixture
def make_plan() -> MakePlan:
    return make_plan_dict


@pytest.fixture
def identity_plan() -> dict[str, Any]:
    return make_plan_dict(np.eye(4), np.eye(4))
