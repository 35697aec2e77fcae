"""A plan whose frame was read, and what judges it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from privspec.kernel.core.problem import Frame, View, read_frame
from privspec.kernel.core.reading import WORDS, Item
from privspec.kernel.report import Claim

PLAN = "privspec-plan/2.0"
WORDS |= {"Case.format": (PLAN,), "Case.status": ("optimal", "feasible")}
NOTHING = Item(None, "nothing")


@dataclass(slots=True)
class Case:
    """A plan with its frame read; other parts are read by the rules of its block. `found` grows claim by claim."""

    format: str
    spec: Item
    problem: Item
    status: str
    loss: Item
    alternatives: Item
    mechanism: Item
    guarantees: Item
    accuracy: Item
    assumptions: Item
    claims: Item
    remarks: Item
    digest: str
    fairness: Item = NOTHING
    exposures: Item = NOTHING
    frame: Frame = field(init=False)
    found: list[Claim] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.frame = read_frame(self.problem)

    @property
    def block(self) -> Item:
        return self.frame.blocks[0]

    def says(self, name: str, holds: bool, text: str, item: int | None = None, *, derived: bool = True) -> None:
        """A claim was judged; `derived`: its figures were derived again, and not only read."""
        self.found.append(Claim(name, holds, text, item, derived))


class Rules:
    """How plans of one form of block are judged."""

    def judge(self, case: Case) -> object:
        """Judge every statement of a plan, into `case.found`.

        Returns: what is executed, as it was read.
        Raises: Refused for what cannot be read, or is not known.
        """
        raise NotImplementedError

    def reach(
        self, case: Case, executed: object, view: View, outputs: tuple[str, ...], witness: Item
    ) -> dict[str, Fraction] | None:
        """What some outputs together let through of one unit of a view, rounded up: {"mu"} or {"epsilon", "delta"}.

        Where nobody is trusted, all messages do. None where no bound is known. `witness`: what helps to bound it, null
        where nothing does.
        """
        witness.same(None)
        return None
