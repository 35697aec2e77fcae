"""Whose word is taken: who is trusted, what all see beside outputs, who draws noise, and what an author asserts."""

from __future__ import annotations

from dataclasses import dataclass

from privspec.kernel.core.reading import Refused, Size


@dataclass(frozen=True, slots=True)
class Meaning:
    """What follows from a trust.

    `public`: every message, or every sum of them, is seen by all; `alone`: each party draws noise for what it holds
    itself; `shared`: all parties add shares of one noise; `shown` is what is seen of so many answers.
    """

    public: bool = False
    alone: bool = False
    shared: bool = False
    shown: str = "{seen} of {answers} noisy answers{mixed}"


KINDS = {
    "curator": Meaning(),
    "nobody": Meaning(public=True, alone=True, shown="all {answers} messages"),
    "secure_sum": Meaning(
        public=True,
        shared=True,
        shown="the sums of what all parties add ({answers} in number), and {colluding} shares of each",
    ),
}
PARTS = "parts"
"""Of a system: each part says whom it trusts."""
WORDS = {"Trust.kind": (*KINDS, PARTS), "Asserted.norm": ("l1", "l2", "linf")}
NORMS = {"l1": "sum of absolute values", "l2": "Euclidean length", "linf": "largest entry"}


@dataclass(frozen=True, slots=True)
class Trust:
    """Who is trusted; `colluding` parties of a secure sum pool what they know."""

    kind: str
    colluding: int

    def __post_init__(self) -> None:
        if self.colluding and not self.means.shared:
            raise Refused("has parties who collude about no shares")

    @property
    def means(self) -> Meaning:
        """What follows from it; refused where only parts say so."""
        if self.kind not in KINDS:
            raise Refused("trusts nobody in particular: only parts of a system do")
        return KINDS[self.kind]

    def holds_part(self, part: Trust) -> bool:
        """Whether a system under it may have a part under another one."""
        return self.kind == PARTS or part == self

    def shown(self, **figures: object) -> str:
        """What is seen of noisy answers, in words."""
        return self.means.shown.format(colluding=self.colluding, **figures)


@dataclass(frozen=True, slots=True)
class Asserted:
    """Of a function that nobody here sees into: a unit, `neighbours` in words, moves its values by at most `amount`."""

    function: str
    norm: str
    amount: Size
    neighbours: str
    line: int
