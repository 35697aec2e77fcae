"""What observers learn where no line names all that they see: bounds composed of the noise that is executed.

For each view of the problem (an input, an observer, a unit) the plan states a bound on all that is seen together, or
null where none is known, and the outputs that hide next to nothing of the input and that no line names for it. The
rules of a block say what its law of some outputs lets through, for each difference by itself, the worst of them last.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb, ctx

from privspec.kernel.core.case import Case, Rules
from privspec.kernel.core.numbers import ball
from privspec.kernel.core.problem import View
from privspec.kernel.core.reading import Item, Refused

KINDS = (("mu",), ("epsilon", "delta"))
"""What a bound gives."""
SPARED = Fraction(1, 10**7)
"""An output is not protected if the best test that errs equally often either way may err less than this."""


def hides_nothing(bound: dict[str, Fraction] | None) -> bool:
    """Whether a bound spares next to nobody a true verdict: equal errors Phi(-mu / 2) or (1 - delta) / (1 + e^eps)."""
    if bound is None:
        return True
    with ctx.workprec(256):
        if "mu" in bound:
            error = (ball(bound["mu"]) / arb(8).sqrt()).erfc() / 2
        else:
            error = (1 - ball(min(bound["delta"], Fraction(1)))) / (1 + ball(bound["epsilon"]).exp())
        return not error >= ball(SPARED)


def derived(
    case: Case, rules: Rules, executed: object, view: View, witness: Item
) -> tuple[dict[str, Fraction] | None, list[str]]:
    """The bound on all that is seen, and the outputs that are not protected.

    `witness`: what helps to bound all that is seen, and then each output that no line names.
    """
    whole, *single = witness.items(1 + len(view.unnamed))
    bound = rules.reach(case, executed, view, view.outputs, whole)
    each = zip(view.unnamed, single, strict=True)
    return bound, [name for name, own in each if hides_nothing(rules.reach(case, executed, view, (name,), own))]


def judge_exposures(case: Case, rules: Rules, executed: object, stated: Item) -> None:
    """One entry for each view, in order, with a bound at or above the one derived.

    Raises: Refused for an entry that is missing, that no view asks for, or that is about something else.
    """
    views = case.frame.views
    if stated.absent and not views:
        return
    for entry, view in zip(stated.items(len(views)), views, strict=True):
        head = view.head()
        *heads, exposed, said, witness = entry.fields(*head, "not_protected", "bound", "witness")
        bound, bare = derived(case, rules, executed, view, witness)
        for item, expected in zip(heads, head.values(), strict=True):
            item.same(expected)
        exposed.same(bare)
        holds, text = said.absent == (bound is None), "no bound is known"
        if bound is not None and holds:
            if tuple(bound) not in KINDS:
                raise Refused("a bound is of a kind that is not known")
            amounts = [item.exact(0) for item in said.fields(*bound)]
            holds = all(amount >= least for amount, least in zip(amounts, bound.values(), strict=True))
            text = ", ".join(f"{key} {float(value):.8g}" for key, value in bound.items())
            text += "" if holds else f", more than the plan states ({', '.join(f'{float(a):.8g}' for a in amounts)})"
        tail = f"; not protected: {', '.join(bare)}" if bare else ""
        who = f"{view.observer} sees {', '.join(view.outputs)} of {view.input}, {view.neighbours}"
        case.says("exposure", holds, f"{who}: {text}{tail}")
