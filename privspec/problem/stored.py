"""The spec as it stands inside a plan: with its source, parameters and public arrays, so that the plan is complete."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from privspec.core.diagnostics import InternalError
from privspec.core.spans import Source
from privspec.kernel.core.reading import JsonNode
from privspec.language import syntax
from privspec.model.evaluate import WORDS, written
from privspec.model.graph import Model, value_text
from privspec.model.values import Symbol, Value, show


def spec_json(model: Model) -> dict[str, Any]:
    """The spec with all that it was solved with, so that the plan can be checked by itself."""
    text = model.source.main.text
    return {
        "name": model.name,
        "path": str(model.source.name),
        "sha256": hashlib.sha256(text.encode("utf-8")).hexdigest(),
        "source": text,
        **({"components": dict(model.texts)} if model.texts else {}),
        "parameters": _parameters(model),
        "constants": _constants(model),
        **({"choices": {name: value_text(value) for name, value in model.chosen.items()}} if model.chosen else {}),
    }


def _parameters(model: Model) -> dict[str, Any]:
    fixed = {} if model.design is None else dict(model.design.fixed)
    return {name: _value_json(value) for name, value in model.parameters.items()} | fixed


def _constants(model: Model) -> dict[str, Any]:
    constants = {key: _array_json(array) for key, array in sorted(model.files.items())}
    for node in model.constants:
        if node.definition is None and node.name in model.values:
            constants[node.name] = _array_json(np.asarray(model.values[node.name], dtype=np.float64))
    return constants


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
    from privspec.core.matrices import LIST_LIMIT, pack

    if array.dtype.kind == "U":
        return {"sha256": hashlib.sha256(written(array)).hexdigest(), "words": array.tolist()}
    values = np.ascontiguousarray(array, dtype="<f8")
    raw = values.tobytes()
    head: dict[str, Any] = {"shape": list(values.shape), "sha256": hashlib.sha256(raw).hexdigest()}
    if values.size <= LIST_LIMIT:
        return head | {"values": values.tolist()}
    return head | {"packed": pack(raw)}


# --- and back ------------------------------------------------------------------------------------------


def model_inside(spec: JsonNode, base: Path | None = None) -> Model:
    """The model of the `spec` entry of a plan.

    Args: base, the folder of the spec, for plans that hold its path and not its text.
    Raises: Refused if it is not the one that was solved, SpecError if it does not build.
    """
    from privspec.model.build import build_model

    keys = ("name", "path", "sha256", "source", "parameters", "constants")
    more = ("components", "choices")
    name, path, sha256, source, parameters, constants, components, choices = spec.fields(*keys, optional=more)
    text = source.text() if base is None or not source.absent else _text_at(base / path.text(), path)
    if hashlib.sha256(text.encode("utf-8")).hexdigest() != sha256.text():
        raise spec.wrong("does not hold the source that was solved (sha256 differs)")
    whole = Source(path.text(), text)
    values = {k: (_words if k.startswith(f"{WORDS}:") else _constant)(item) for k, item in constants.entries()}
    texts = None if base is not None else _texts(components)
    if texts is not None:
        _refuse_other_files(whole, texts, set(values), spec)
    model = build_model(
        whole,
        parameters={key: _parameter(item) for key, item in parameters.entries()},
        constants={key: value for key, value in values.items() if ":" not in key},
        files={key: value for key, value in values.items() if ":" in key},
        base=base,
        texts=texts,
    )
    if texts is not None and texts != model.texts:
        raise components.wrong("are not the specs that the parts are")
    if not choices.absent and model.design is None:
        raise choices.wrong("chooses where the spec leaves nothing open")
    if not choices.absent and model.design is not None:
        try:
            model = model.design.at(model.design.of_words({key: item.text() for key, item in choices.entries()}))
        except ValueError as error:
            raise choices.wrong(str(error)) from error
    name.same(model.name)
    parameters.same(_parameters(model))
    constants.same(_constants(model))
    return model


def _texts(components: JsonNode) -> dict[str, str]:
    """The specs of the parts by the names of their files."""
    return {} if components.absent else {key: item.text() for key, item in components.entries()}


def _text_at(path: Path, item: JsonNode) -> str:
    if not path.is_file():
        raise item.wrong("is not there")
    return path.read_text(encoding="utf-8")


QUOTED = re.compile(r'"[^"\n]*"')
"""A text of the language."""


def _refuse_other_files(source: Source, texts: Mapping[str, str], known: set[str], spec: JsonNode) -> None:
    """Every file that the spec names is inside the plan: nothing is read from this machine's disk."""
    from privspec.language.parser import parse
    from privspec.language.walk import walk
    from privspec.model.components import assembled

    nodes = list(walk(assembled(parse(source), source, None, texts).spec))
    # what is looked up in a file are words, and not numbers
    looked_up = [node.arguments[1] for node in nodes if _of_words(node)]
    for node in nodes:
        match node:
            case syntax.Call(function="csv" | "npy" as kind, arguments=(syntax.String(value=name), *_)):
                if f"{WORDS if any(node is one for one in looked_up) else kind}:{name}" not in known:
                    raise spec.wrong(f"does not hold the numbers of {name}")
            case syntax.Call(function="csv" | "npy" | "spec"):
                raise spec.wrong("reads a file whose numbers the plan does not hold")


def _of_words(node: object) -> TypeGuard[syntax.Call]:
    """Whether it looks words up in a file."""
    match node:
        case syntax.Call(function="lookup", arguments=(_, syntax.Call(function="csv"))):
            return True
    return False


def _words(item: JsonNode) -> NDArray[Any]:
    rows = [[cell.text() for cell in row.items()] for row in item.fields("sha256", "words")[1].items()]
    if not rows or any(len(row) != 2 for row in rows):
        raise item.wrong("is no list of two words each")
    array = np.array(rows, dtype=str)
    if item.value != _array_json(array):
        raise item.wrong("is not the file that was used (sha256 differs)")
    return array


def _parameter(item: JsonNode) -> Any:
    """A text is read as an expression of the language that calls nothing, and so reads no file."""
    text = item.text()
    if "(" in QUOTED.sub("", text):
        raise item.wrong("is not a value")
    return text


def _constant(item: JsonNode) -> NDArray[np.float64]:
    from privspec.core.matrices import read_array

    try:
        array = read_array(item.value)
    except ValueError as error:
        raise item.wrong(f"cannot be read: {error}") from error
    if not np.all(np.isfinite(array)):
        raise item.wrong("is not finite")
    if item.value != _array_json(array):
        raise item.wrong("is not the constant that was used (sha256 differs)")
    return array
