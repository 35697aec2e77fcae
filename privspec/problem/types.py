"""What every problem has: held data, who sees what, and what is promised of it; its blocks hold the numbers.

Nothing of the language is left in it: no names to resolve, no expression to evaluate. `line` and `text` say where an
item comes from; they serve pages, and no check looks at them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, Protocol

from privspec.core.records import dataclass, field
from privspec.kernel.participation import Kept

FORMAT = "privspec-problem/1.0"
ELABORATOR = "1"
"""Version of the rules by which a spec becomes a problem: raised whenever one spec may give another problem."""


@dataclass(frozen=True, slots=True)
class Trust:
    """Who is trusted: "curator", "nobody" or "secure_sum"; `colluding` parties pool their shares of the noise.

    "parts" where each part of a system says so of its own data.
    """

    kind: str
    colluding: int = 0


@dataclass(frozen=True, slots=True)
class AssertedMove:
    """That a unit, `neighbours` in words, moves the values of a function of an input by at most `amount` in a norm.

    Nothing but the author's word says so.
    """

    function: str
    norm: str
    amount: Fraction
    neighbours: str
    line: int


@dataclass(frozen=True, slots=True)
class Data:
    """An input: its domain in words, who holds it, and the public rule by which a cell that does not fit is mapped.

    `party`: the index set whose members each hold a part of it, None where it is held whole.
    `rule`: "clip", "drop", "map" (to a value of the domain). `asserted`: where a function of it alone is read, how far
    units move that. `kept`: what is kept of each person's records, drawn uniformly, before anything is counted.
    """

    name: str
    domain: str
    rule: str
    party: str | None
    line: int
    asserted: tuple[AssertedMove, ...] = field(default=(), metadata={"left out": True})
    kept: Kept | None = field(default=None, metadata={"left out": True})


@dataclass(frozen=True, slots=True)
class Unit:
    """What one difference changes, jointly in all inputs named: `count` units of a kind at once.

    `kind`: "entry", "record", "party" (`party` names the index set), "person" (all records that are kept of one, up to
    `count` of a table) or "everything"; `adding`: units come and go, else they change in place; `apart`: least distance
    of changed entries of a stream, `exactly` where it is fixed.
    """

    kind: str
    inputs: tuple[str, ...]
    adding: bool
    count: int = 1
    party: str | None = None
    apart: int | None = None
    exactly: bool = False


@dataclass(frozen=True, slots=True)
class ChosenAmount:
    """An amount that solving picks: `scale` times a chosen number, or `scale` divided by it where `inverse`."""

    FORM: ClassVar[str] = "chosen"

    number: str
    scale: Fraction
    inverse: bool

    def __str__(self) -> str:
        """As in "2 / rounds, where the solver chooses rounds"."""
        if self.inverse:
            text = f"{self.scale} / {self.number}"
        else:
            text = self.number if self.scale == 1 else f"{self.scale} * {self.number}"
        return f"{text}, where the solver chooses {self.number}" if text != self.number else "what the solver chooses"


@dataclass(frozen=True, slots=True)
class Measure:
    """What the laws of what is seen have to satisfy: a name and its exact amounts, those of each party where `each`.

    `name`: as in a guarantee, such as "(epsilon, delta)-DP"; `amounts` in the order of the name; `distance` for
    metric privacy, in words.
    """

    name: str
    amounts: tuple[tuple[str, Fraction | ChosenAmount], ...]
    distance: str | None = None
    each: tuple[Measure, ...] = ()


@dataclass(frozen=True, slots=True)
class Obligation:
    """For every two worlds that differ in one of `units`, the joint law of what is seen satisfies the measure.

    `outputs` are those that the line names, `seen` what its observer sees of the mechanism (all of them where every
    message is public); `neighbours` the units in words.
    """

    outputs: tuple[str, ...]
    seen: tuple[str, ...]
    wrt: tuple[str, ...]
    neighbours: str
    units: tuple[Unit, ...]
    observers: tuple[str, ...]
    measure: Measure
    line: int
    text: str


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
    computed: tuple[ComputedOutput, ...] = field(default=(), metadata={"left out": True})
