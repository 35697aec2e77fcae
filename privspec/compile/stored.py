"""The spec as it stands inside a plan: with its source, parameters and public arrays, so that the plan is complete."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import InternalError
from privspec.core.matrices import LIST_LIMIT, pack
from privspec.model.graph import Model
from privspec.model.values import Symbol, Value, show


def spec_json(model: Model) -> dict[str, Any]:
    """The spec with all that it was solved with, so that the plan can be checked by itself."""
    constants = {key: _array_json(array) for key, array in sorted(model.files.items())}
    for node in model.constants:
        if node.definition is None and node.name in model.values:
            constants[node.name] = _array_json(np.asarray(model.values[node.name], dtype=np.float64))
    return {
        "name": model.name,
        "path": str(model.source.name),
        "sha256": hashlib.sha256(model.source.text.encode("utf-8")).hexdigest(),
        "source": model.source.text,
        "parameters": {name: _value_json(value) for name, value in model.parameters.items()},
        "constants": constants,
    }


def _value_json(value: Value) -> Any:
    match value:
        case Fraction() | str():
            return _literal(value)
        case tuple():
            return "{" + ", ".join(map(_literal, value)) + "}"
        case np.ndarray():
            return _list_text(value)
        case _:
            raise InternalError("a table is no parameter")


def _literal(value: Symbol) -> str:
    """A number, or a text in quotes: without them it may be read as a number, a name or several words."""
    return f'"{value}"' if isinstance(value, str) else show(value)


def _list_text(value: NDArray[Any]) -> str:
    if value.ndim == 0:
        item = value.item()
        return _literal(item if isinstance(item, str) else Fraction(item))
    return "[" + ", ".join(_list_text(np.asarray(item)) for item in value) + "]"


def _array_json(array: NDArray[Any]) -> dict[str, Any]:
    values = np.ascontiguousarray(array, dtype="<f8")
    raw = values.tobytes()
    head: dict[str, Any] = {"shape": list(values.shape), "sha256": hashlib.sha256(raw).hexdigest()}
    if values.size <= LIST_LIMIT:
        return head | {"values": values.tolist()}
    return head | {"packed": pack(raw)}
