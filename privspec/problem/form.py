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
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from privspec.core.records import dataclass
from privspec.kernel.core.problem import Data, Obligation, View
from privspec.kernel.trust import Trust


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
