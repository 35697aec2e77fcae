"""What a plan of additive noise executes, spelt out with what its problem says of inputs, outputs and constants."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.matrices import DyadicMatrix
from privspec.registry import block_of

CONSTANT_BITS = 60
"""Bits of the largest entry of the map of a public value that a run is given."""


def executed_part(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The executed part of the mechanism of a plan, with inputs, outputs and constants as they are laid out.

    Raises: KeyError, TypeError, ValueError if the plan has no such part.
    """
    found = dict(plan["mechanism"]["executed"])
    if "outputs" in found:
        return found
    block = block_of(plan)
    given = found["inputs"]
    offset = floats_of(block["offset"]).tolist()
    return found | {
        "inputs": [input_json(held, one["grid"]) for held, one in zip(block["held"], given, strict=True)],
        "outputs": [
            {
                "name": one["name"],
                "start": one["start"],
                "stop": one["stop"],
                "shape": one["shape"],
                "offset": offset[one["start"] : one["stop"]],
            }
            for one in block["released"]
        ],
        "constants": [
            {
                "name": one["name"],
                "shape": one["shape"],
                "map": DyadicMatrix.rounded(floats_of(one["map"]), CONSTANT_BITS).to_json(),
            }
            for one in block["constants"]
        ],
        "views": [
            {"outputs": one["outputs"], "rows": _rows(found, block, one["seen"])}
            for one in plan["problem"]["obligations"]
        ],
    }


def _rows(executed: Mapping[str, Any], block: Mapping[str, Any], seen: list[str]) -> int:
    """How many noisy answers, from the first on, are in what an observer sees."""
    count = int(executed["strategy"]["shape"][0])
    rows = [i for one in block["released"] if one["name"] in seen for i in range(one["start"], one["stop"])]
    if executed["reconstruction"]["of"] == "inputs" or len(rows) == block["released"][-1]["stop"]:
        return count
    used = DyadicMatrix.from_json(executed["reconstruction"]["matrix"]).integers[rows].any(axis=0)
    return int(np.flatnonzero(used)[-1]) + 1 if used.any() else 0


def input_json(held: Mapping[str, Any], grid: str) -> dict[str, Any]:
    """Where an input stands in the base vector, and how its values are put there."""
    head = {key: held[key] for key in ("name", "start", "stop", "layout")}
    if held["layout"] == "cells":
        known = {} if held["records"] is None else {"records": held["records"]}
        return head | known | {"attributes": [_column(one) for one in held["columns"]]}
    head |= {"lower": held["lower"], "upper": held["upper"], "grid": grid}
    ball = held["ball"]
    return head if ball is None else head | {"ball": _ball(ball)}


def _ball(ball: Mapping[str, Any]) -> dict[str, Any]:
    return {"radius": ball["radius"], "size": ball["dimension"], "norm": ball["norm"]}


def _column(one: Mapping[str, Any]) -> dict[str, Any]:
    whole = one["lower"] is not None
    return {"name": one["name"], **({k: one[k] for k in ("lower", "upper")} if whole else {"values": one["values"]})}


def floats_of(data: Mapping[str, Any]) -> NDArray[np.float64]:
    """The nearest doubles of an array of a problem."""
    if data.get("form") == "sparse":
        found = np.zeros(prod(data["shape"]))
        found[floats_of(data["places"]).astype(np.int64)] = floats_of(data["values"])
        return found.reshape(data["shape"])
    unit = Fraction(data["unit"])
    if "data" in data:
        whole: list[int] = np.frombuffer(base64.b64decode(data["data"]), dtype="<i8").tolist()
    else:
        whole = data["rows"]
    if unit.denominator < 2**53 and max(map(abs, whole), default=0) * unit.numerator < 2**53:
        exact = np.array(whole, dtype=np.float64) * unit.numerator / unit.denominator
    else:
        exact = np.array([v * unit.numerator / unit.denominator for v in whole])
    return np.asarray(exact, dtype=np.float64).reshape(data["shape"])
