"""A plan whose frame was read, what judges it, and what observers learn where no line names all that they see.

For each view of the problem (an input, an observer, a unit) the plan states a bound on all that is seen together, or
null where none is known, and the outputs that hide next to nothing of the input and that no line names for it. The
rules of a block say what its law of some outputs lets through, for each difference by itself, the worst of them last.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from flint import arb, ctx

from privspec.kernel.core.numbers import ball
from privspec.kernel.core.problem import Frame, View, read_frame
from privspec.kernel.core.reading import Item
from privspec.kernel.report import Claim

PLAN = "privspec-plan/2.0"
WORDS = {"Case.format": (PLAN,), "Case.status": ("optimal", "feasible")}
NOTHING = Item(None, "nothing")
SPARED = Fraction(1, 10**7)
"""An output is not protected if the best test that errs equally often either way may err less than this."""
Bound = dict[str, Fraction] | None
"""What is let through, rounded up: {"mu"} or {"epsilon", "delta"}; None where no bound is known."""


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


def hides_nothing(bound: Bound) -> bool:
    """Whether a bound spares next to nobody a true verdict: equal errors Phi(-mu / 2) or (1 - delta) / (1 + e^eps)."""
    if bound is None:
        return True
    with ctx.workprec(256):
        if "mu" in bound:
            error = (ball(bound["mu"]) / arb(8).sqrt()).erfc() / 2
        else:
            error = (1 - ball(min(bound["delta"], Fraction(1)))) / (1 + ball(bound["epsilon"]).exp())
        return not error >= ball(SPARED)


class Rules:
    """How plans of one form of block are judged."""

    def judge(self, case: Case) -> object:
        """What is executed, as it was read, once every statement of a plan was judged, into `case.found`."""
        raise NotImplementedError

    def reach(self, case: Case, executed: object, view: View, outputs: tuple[str, ...], witness: Item) -> Bound:
        """What outputs, or all messages where nobody is trusted, let through of a unit; `witness` helps to bound it."""
        witness.same(None)
        return None

    def exposed(self, case: Case, executed: object, view: View, witness: Item) -> tuple[Bound, list[str]]:
        """The bound on all that is seen, and the outputs that no line names and that are not protected."""
        whole, *single = witness.items(1 + len(view.unnamed))
        each = zip(view.unnamed, single, strict=True)
        bare = [name for name, own in each if hides_nothing(self.reach(case, executed, view, (name,), own))]
        return self.reach(case, executed, view, view.outputs, whole), bare

    def judge_exposures(self, case: Case, executed: object) -> None:
        """One entry for each view, in order, with a bound at or above the one derived."""
        views = case.frame.views
        entries = case.exposures.items(len(views)) if views or not case.exposures.absent else []
        for entry, view in zip(entries, views, strict=True):
            exposed, said, witness = entry.stating(view.head(), "not_protected", "bound", "witness")
            bound, bare = self.exposed(case, executed, view, witness)
            exposed.same(bare)
            holds, text = said.absent == (bound is None), "no bound is known"
            if bound is not None and holds:
                amounts = [item.exact(0) for item in said.fields(*bound)]
                holds = all(amount >= least for amount, least in zip(amounts, bound.values(), strict=True))
                text = ", ".join(f"{key} {float(value):.8g}" for key, value in bound.items())
                stated = ", ".join(f"{float(amount):.8g}" for amount in amounts)
                text += "" if holds else f", more than the plan states ({stated})"
            tail = f"; not protected: {', '.join(bare)}" if bare else ""
            who = f"{view.observer} sees {', '.join(view.outputs)} of {view.input}, {view.neighbours}"
            case.says("exposure", holds, f"{who}: {text}{tail}")
