"""The one JSON form of a problem: frozen dataclasses to plain JSON, exactly and in one way.

Fractions are texts "p/q" or "p"; a class with a `FORM` is tagged with it under "form"; a field that has a default is
left out at it, as the kernel reads it; integer arrays are lists when
small, base64 of little-endian integers with their SHA-256 when large.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Mapping
from fractions import Fraction
from math import lcm, prod
from typing import TYPE_CHECKING, Any

from privspec.core.diagnostics import InternalError
from privspec.core.records import fields, is_dataclass
from privspec.kernel.core.reading import Grid

if TYPE_CHECKING:
    from collections.abc import Iterable

LISTED = 4096
"""Arrays of at most this many entries are written as lists."""


class Numbers(Grid):
    """Exact numbers in row-major order: `entries` whole multiples of `unit`."""

    __slots__ = ()

    def __post_init__(self) -> None:
        if prod(self.shape) != len(self.entries) or self.unit <= 0:
            raise InternalError("an array that does not fit its shape")

    @classmethod
    def of(cls, values: Iterable[Fraction | int], shape: tuple[int, ...]) -> Numbers:
        """Exact values in row-major order over their common denominator."""
        listed = list(values)
        below = lcm(*(value.denominator for value in listed))
        return cls(shape, Fraction(1, below), tuple(value.numerator * (below // value.denominator) for value in listed))

    def to_json(self, listed: int = LISTED) -> dict[str, Any]:
        """As it stands in a plan: a list of up to so many entries, or packed."""
        head = {"shape": list(self.shape), "unit": str(self.unit)}
        small = len(self.entries) <= listed
        if small or max(map(abs, self.entries)) >= 2**63:
            return head | {"rows": list(self.entries)}
        raw = struct.pack(f"<{len(self.entries)}q", *self.entries)
        return head | {"data": base64.b64encode(raw).decode(), "sha256": hashlib.sha256(raw).hexdigest()}


def document(value: Any) -> Any:
    """A problem, or a part of one, as plain JSON.

    Raises: InternalError for what has no exact form (a double, say).
    """
    match value:
        case None | bool() | int() | str():
            return value
        case Fraction():
            return str(value)
        case Numbers():
            return value.to_json()
        case tuple() | list():
            return [document(entry) for entry in value]
        case Mapping():
            return {str(key): document(entry) for key, entry in value.items()}
    if not is_dataclass(value) or isinstance(value, type):
        raise InternalError(f"{type(value).__name__} has no exact form")
    head = {"form": value.FORM} if hasattr(value, "FORM") else {}
    stated = ((item, getattr(value, item.name)) for item in fields(value) if item.init)
    return head | {item.name: document(one) for item, one in stated if one != item.default}


def canonical(value: Any) -> str:
    """The one text of JSON data."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def plan_digest(plan: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of a plan without its `digest`."""
    body = {key: value for key, value in plan.items() if key != "digest"}
    return hashlib.sha256(canonical(body).encode()).hexdigest()
