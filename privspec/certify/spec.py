"""The spec inside a plan: its text, parameters and public constants, and the model built from them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from privspec.certify.reading import Array, At, Malformed
from privspec.core.diagnostics import Diagnostic, VerificationError
from privspec.core.matrices import read_array
from privspec.core.spans import Source
from privspec.language import syntax
from privspec.language.walk import walk
from privspec.model.graph import Model

QUOTED = re.compile(r'"[^"\n]*"')
"""A text of the language."""


def rebuild_model(document: Mapping[str, Any], base: Path | None = None) -> Model:
    """The typed graph behind a plan, from what the plan carries alone.

    Args: base, the folder of the spec, for plans that hold its path and not its text.
    Raises: VerificationError PS0911 if source or constants are not those of the plan; SpecError if they do
    not build.
    """
    try:
        return model_inside(At(document)["spec"], base)
    except Malformed as error:
        raise VerificationError(Diagnostic("PS0911", f"the spec inside this plan cannot be used: {error}")) from error


def model_inside(spec: At, base: Path | None) -> Model:
    """The model of the `spec` entry of a plan.

    Raises: Malformed if it is not the one that was solved, SpecError if it does not build.
    """
    from privspec.model.build import load_model

    text = _source_text(spec, base)
    if hashlib.sha256(text.encode("utf-8")).hexdigest() != spec["sha256"].text():
        raise Malformed("the source of the spec is not the one that was solved (sha256 differs)")
    parameters, constants = spec.get("parameters"), spec.get("constants")
    values = {} if constants is None else _all(constants, _constant)
    path = spec.get("path")
    if base is None:
        _carried(text, values)
    model = load_model(
        Source(spec["name"].text() if path is None else path.text(), text),
        parameters={} if parameters is None else _all(parameters, _parameter),
        constants={key: value for key, value in values.items() if ":" not in key},
        files={key: value for key, value in values.items() if ":" in key},
        base=base,
    )
    if model.name != spec["name"].text():
        raise Malformed(f"the spec is called {model.name}, not {spec['name'].text()}")
    return model


def _carried(text: str, values: Mapping[str, Any]) -> None:
    """Every file that the spec names is inside the plan: nothing is read from this machine's disk."""
    from privspec.language.parser import parse

    for node in walk(parse(Source("spec", text))):
        match node:
            case syntax.Call(function="csv" | "npy" as kind, arguments=(syntax.String(value=name), *_)):
                if f"{kind}:{name}" not in values:
                    raise Malformed(f"the plan does not hold the numbers of {name}")
            case syntax.Call(function="csv" | "npy" | "spec"):
                raise Malformed("the spec reads a file whose numbers the plan does not hold")


def _source_text(spec: At, base: Path | None) -> str:
    inside = spec.get("source")
    if inside is not None:
        return inside.text()
    path = (base or Path()) / spec["path"].text()
    if not path.is_file():
        raise Malformed(f"the spec {spec['path'].text()} is not there")
    return path.read_text(encoding="utf-8")


def _all(data: At, read: Any) -> dict[str, Any]:
    if not isinstance(data.value, Mapping):
        raise Malformed(f"{data.place} is not an object")
    return {str(key): read(data[str(key)]) for key in data.value}


def _parameter(data: At) -> Any:
    """A text is read as an expression, a number exactly, a list entry by entry."""
    if isinstance(data.value, str):
        # nothing is called, and so no file is read; a bracket within quotes is only a sign
        if "(" in QUOTED.sub("", data.value):
            raise Malformed(f"{data.place} is not a value")
        return data.value
    if isinstance(data.value, list):
        return np.array([_entry(item) for item in data.items()], dtype=object)
    return data.exact()


def _entry(data: At) -> Fraction | list[Any]:
    return [_entry(item) for item in data.items()] if isinstance(data.value, list) else data.exact()


def _constant(data: At) -> Array:
    try:
        array = read_array(data.value)
    except ValueError as error:
        raise Malformed(f"{data.place} cannot be read: {error}") from error
    if not np.all(np.isfinite(array)):
        raise Malformed(f"{data.place} is not finite")
    if hashlib.sha256(array.astype("<f8").tobytes()).hexdigest() != data["sha256"].text():
        raise Malformed(f"{data.place} is not the constant that was used (sha256 differs)")
    return array
