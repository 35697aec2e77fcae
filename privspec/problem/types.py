"""What every problem has: held data, who sees what, and what is promised of it; its blocks hold the numbers.

Nothing of the language is left in it: no names to resolve, no expression to evaluate. `line` and `text` say where an
item comes from; they serve pages, and no check looks at them. The frame is in the kernel's own forms, which say what
may be written; what is written here the kernel derives nothing from: it reads the plan.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from privspec.core.records import dataclass
from privspec.kernel.core.problem import Data, Obligation, Unit
from privspec.kernel.trust import Trust

ELABORATOR = "1"
"""Version of the rules by which a spec becomes a problem: raised whenever one spec may give another problem."""


@dataclass(frozen=True, slots=True)
class View:
    """All that one observer sees together, where no line that names an input names all of it.

    `unnamed`: the outputs seen that depend on the input and that no line names for it; `lines`: the obligations that
    name all of those that depend on it (noise may tell more than they say). What may move is one unit of `wrt`, as in
    an obligation; `difference` is that in the numbers of the block, None where it has no limit.
    """

    input: str
    observer: str
    outputs: tuple[str, ...]
    unnamed: tuple[str, ...]
    lines: tuple[int, ...]
    wrt: tuple[str, ...]
    neighbours: str
    units: tuple[Unit, ...]
    difference: Any


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
