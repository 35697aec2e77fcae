"""A plan whose frame was read, and what judges it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from privspec.kernel.core.problem import Frame, View
from privspec.kernel.core.reading import Item
from privspec.kernel.report import Claim


@dataclass(slots=True)
class Case:
    """A plan with its frame read; every other part is an item of the document, read by the rules of the block.

    `found` grows claim by claim.
    """

    frame: Frame
    block: Item
    mechanism: Item
    guarantees: Item
    loss: Item
    accuracy: Item
    fairness: Item
    witnesses: Item
    status: str
    found: list[Claim] = field(default_factory=list)

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
