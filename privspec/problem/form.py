"""What every problem has: held data, who sees what, and what is promised of it; and its one JSON form.

Nothing of the language is left in it: no names to resolve, no expression to evaluate. `line` and `text` say where an
item comes from; they serve pages, and no check looks at them. The frame is in the kernel's own forms, which say what
may be written; the kernel derives nothing from what is built here: it reads the plan.

A `Unit` is an "entry", "record", "party" (`party` names the index set), "person" (all records that are kept of one, up
to `count` of a table) or "everything"; with `adding` units come and go, else they change in place; `apart` is the least
distance of changed entries of a stream, `exactly` where it is fixed. The rule of `Data` maps cells that do not fit. In
a `View`, `unnamed` are the outputs seen that depend on the input and that no line names for it, `lines` the obligations
that name all of those that depend on it (noise may tell more than they say); its `difference` is what one unit of `wrt`
changes in the numbers of the block, None where it has no limit; with `together` there is one for each of its units, all
of which move at once: of one person who may be in several inputs.

Dataclasses become plain JSON exactly and in one way: fractions are texts "p/q" or "p"; a class with a `FORM` is tagged
with it under "form"; a field that has a default is left out at it, as the kernel reads it; integer arrays are lists
when small, base64 of little-endian integers with their SHA-256 when large.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import lcm, prod
from typing import Any, ClassVar, Protocol

from privspec.core.diagnostics import InternalError
from privspec.core.records import dataclass, fields, is_dataclass
from privspec.kernel.core.problem import Data, Obligation, View
from privspec.kernel.core.reading import Grid
from privspec.kernel.trust import Trust

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
        case tuple() if hasattr(value, "_fields"):  # what the kernel reads as a tuple has a name for each entry
            return {name: document(entry) for name, entry in zip(value._fields, value, strict=True)}
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


ELABORATOR = "1"
"""Version of the rules by which a spec becomes a problem: raised whenever one spec may give another problem."""


@dataclass(frozen=True, slots=True)
class PublicValue:
    """A public value that the numbers of the problem rest on.

    `provenance`: "the spec", "the file NAME", "asserted: not computed from the data" (given from outside).
    """

    name: str
    shape: tuple[int, ...]
    sha256: str
    provenance: str


@dataclass(frozen=True, slots=True)
class ComputedOutput:
    """An output that is computed from released outputs and public values alone; `text` in the words of the spec."""

    name: str
    sources: tuple[str, ...]
    text: str
    line: int


class Block(Protocol):
    """Outputs that share noise, loss or lines, in numbers: the forms of one file of this folder."""

    FORM: ClassVar[str]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs that it gives, in order."""

    def words(self) -> tuple[str, ...]:
        """What it says, in full sentences."""


class OfOneOutput:
    """A block whose one output is its `output`."""

    __slots__ = ()

    @property
    def outputs(self: Any) -> tuple[str, ...]:
        return (self.output,)


@dataclass(frozen=True, slots=True)
class Problem:
    """Everything that a spec promises and wants."""

    format: str
    elaborator: str
    name: str
    trust: Trust
    data: tuple[Data, ...]
    public: tuple[PublicValue, ...]
    obligations: tuple[Obligation, ...]
    views: tuple[View, ...]
    blocks: tuple[Block, ...]
    computed: tuple[ComputedOutput, ...] = ()
