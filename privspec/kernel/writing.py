"""The other direction of the codec: an object of the kernel's types as the JSON that `read` reads as an equal one.

It is written in one way: fractions as texts "p/q" or "p"; a class with a `FORM` is tagged with it under "form"; a field
that has a default is left out at it; arrays are lists where they are short, and base64 of little-endian integers with
their SHA-256 where they are long. No verdict rests on what is here: whatever is written is read again to be judged.
"""

from __future__ import annotations

import base64
import hashlib
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from math import lcm
from typing import Any

from flint import fmpq_mat

from privspec.kernel.core.reading import Grid, JsonNode
from privspec.kernel.judging import digest

LISTED = 4096
"""Arrays of at most this many entries are written as lists."""
SPARSE = 3
"""A matrix is written with the places of its entries if it has so many times more of them that are 0."""


def array(value: Grid, listed: int = LISTED) -> dict[str, Any]:
    """An array as `JsonNode.array` reads it: a list of up to so many entries, or packed."""
    head = {"shape": list(value.shape), "unit": str(value.unit)}
    if len(value.entries) <= listed or max(map(abs, value.entries)) >= 2**63:
        return {**head, "rows": list(value.entries)}
    raw = struct.pack(f"<{len(value.entries)}q", *value.entries)
    return {**head, "data": base64.b64encode(raw).decode(), "sha256": hashlib.sha256(raw).hexdigest()}


def exact_grid(values: Iterable[Fraction | int], shape: tuple[int, ...] | None = None) -> Grid:
    """An array of exact values over their common denominator; a single row unless a shape is given."""
    listed = list(values)
    below = lcm(*(value.denominator for value in listed))
    entries = tuple(value.numerator * (below // value.denominator) for value in listed)
    return Grid((len(listed),) if shape is None else shape, Fraction(1, below), entries)


def sparse(shape: tuple[int, ...], places: Sequence[int], values: Grid, listed: int = LISTED) -> dict[str, Any]:
    """A matrix that is 0 but for values at row-major places, which ascend."""
    at = Grid((len(places),), Fraction(1), tuple(places))
    return {"form": "sparse", "shape": list(shape), "places": array(at, listed), "values": array(values, listed)}


def matrix(value: fmpq_mat) -> dict[str, Any]:
    """A matrix as `read_matrix` reads it: all entries, or where most are 0 the places of the others and these."""
    whole, below = value.numer_denom()
    shape, unit = (value.nrows(), value.ncols()), Fraction(1, int(below))
    entries = tuple(map(int, whole.entries()))
    places = [place for place, entry in enumerate(entries) if entry]
    if SPARSE * len(places) >= len(entries):
        return array(Grid(shape, unit, entries))
    return sparse(shape, places, Grid((len(places),), unit, tuple(entries[place] for place in places)))


def plan_digest(plan: Mapping[str, object]) -> str:
    """The digest that a plan has to state: of all that it says besides."""
    return digest({key: value for key, value in plan.items() if key != "digest"})


def write(value: object) -> dict[str, Any]:
    """An array, a matrix, or an object of a dataclass, as `read` reads it.

    Raises: TypeError for what has no exact form: a double, say.
    """
    if isinstance(value, Grid):
        return array(value)
    if isinstance(value, fmpq_mat):
        return matrix(value)
    if hasattr(value, "written"):
        return {key: written("object", part) for key, part in value.written().items()}
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"{type(value).__name__} has no exact form")
    # what the compiler adds to a class of the kernel is not written: its fields are read in the kernel's words
    kernel = next(kind for kind in type(value).__mro__ if "__dataclass_fields__" in vars(kind))
    form, given = getattr(value, "FORM", ""), getattr(value, "GIVEN", ())
    found: dict[str, Any] = {getattr(value, "TAG", "form"): form} if form else {}
    for one in fields(value):
        if one.init and one.name not in given and (stated := getattr(value, one.name)) != one.default:
            found[one.name] = written(str(one.type), stated, kernel.__module__)
    return found


def written(kind: str, value: object, home: str = __name__) -> object:
    """A value of the type that an annotation of the module `home` names, as `typed` reads it."""
    match value:
        case None | bool() | int() | str():
            return value
        case Fraction():
            return str(value)
        case JsonNode():
            return value.value
        case Mapping():
            return {str(key): written("object", part, home) for key, part in value.items()}
        case tuple() | list():
            return _listed(kind.removesuffix(" | None"), value, home)
    return write(value)


def _listed(kind: str, value: tuple[object, ...] | list[object], home: str) -> object:
    """What is read as a tuple or a list: an object by its keys, an array, or a list."""
    if kind in ("Wholes", "Numbers"):
        return array(exact_grid(value))  # type: ignore[arg-type]
    reader = vars(sys.modules[home]).get("READERS", {}).get(kind)
    if isinstance(reader, dict):
        return {key: written(word, part, home) for (key, word), part in zip(reader.items(), value, strict=True)}
    if isinstance(reader, list):
        return [written(word, part, home) for word, part in zip(reader, value, strict=True)]
    if hasattr(value, "_fields"):
        return {key: written("object", part, home) for key, part in zip(value._fields, value, strict=True)}
    inner = kind[6:-6] if kind.startswith("tuple[") else kind[5:-1] if kind.startswith("list[") else ""
    return [written(inner, part, home) for part in value]
