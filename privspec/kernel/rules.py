"""The only place that makes theorems: what is let through of a term, for all neighbours under a change.

A `Theorem` says: for every two worlds that differ by `change`, the joint law of what is `seen` of `term` lets
through at most `loss`. Each rule below checks its premises and makes one; nothing else does. `derive` is the one
tactic: it looks up the rule of a term and a change; a rule about several parts derives a theorem of each. What needs a
search (scalings, inverses, at which epsilon a part is counted) is a hint: a wrong one makes the loss larger or is
refused, and never smaller than true.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from privspec.kernel.changes import Change, GivenModel, Records, Rows, Units
from privspec.kernel.core.numbers import ZERO
from privspec.kernel.core.reading import Refused, frozen
from privspec.kernel.losses import FiniteLaws, Loss, Response
from privspec.kernel.terms import (
    Chosen,
    Independent,
    Noise,
    Pick,
    Reports,
    Shares,
    Shown,
    Structured,
    Table,
    Term,
    Times,
)

if TYPE_CHECKING:
    from flint import fmpq_mat

    from privspec.kernel.laws.law import NoisyView
    from privspec.kernel.laws.threshold import Normal
    from privspec.kernel.strategies.dense import Scaling
    from privspec.kernel.strategies.sequences import Proof

PAIRS = 2**22
"""Most pairs of rows of one change, both ways."""


@frozen
class Hint:
    """What only helps to bound a loss: for noise an inverse of a mixture, and a scaling of pieces by unit.

    `epsilon`: at which a law counts as a response with a lump of delta; `threshold`: by which epsilon of one record, or
    by which normal law, thresholds are counted; `sequence`: how it is shown what is
    let through given a model; `parts`: hints for each part.
    """

    inverse: fmpq_mat | None = None
    scaling: list[Scaling] | None = None
    epsilon: Fraction | None = None
    threshold: Fraction | Normal | None = None
    sequence: Proof | None = None
    parts: tuple[Hint, ...] = ()


NOTHING = Hint()
_RULE = object()
Seen = frozenset[str]


class Theorem:
    """For all neighbours under `change`, what is `seen` of `term` lets through at most `loss`. Made by rules alone."""

    __slots__ = ("change", "loss", "seen", "term")
    term: Term
    seen: Seen
    change: Change
    loss: Loss

    def __init__(self, maker: object, term: Term, seen: Seen, change: Change, loss: Loss) -> None:
        if maker is not _RULE:
            raise Refused("a theorem that no rule made")
        for name, value in (("term", term), ("seen", seen), ("change", change), ("loss", loss)):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise Refused("a theorem does not change")


# --- rules -------------------------------------------------------------------------------------------------------


def still(term: Term, seen: Seen, change: Change) -> Theorem:
    """What does not depend on the data that change lets nothing through, and nor does what nobody sees."""
    if change is not None and (seen or term.public):
        raise Refused("lets something through of what changes")
    return Theorem(_RULE, term, seen, change, Loss())


def noise(term: Noise, seen: Seen, change: Units, hint: Hint = NOTHING) -> Theorem:
    """Noise of a curator: by its law, of the answers that whoever sees some outputs can learn of (post-processing)."""
    if term.law.honest is not None:
        raise Refused("has shares of a noise that nobody adds")
    view = view_of(term, seen, hint.inverse)
    return Theorem(_RULE, term, seen, change, term.law.let_through(view, change, hint.scaling))


def reports(term: Reports, seen: Seen, change: Units, hint: Hint = NOTHING) -> Theorem:
    """Messages that all see, each with noise of its own: no message may depend on what two parties hold."""
    inner = term.term
    if len(term.owners) != inner.strategy.matrix.ncols():
        raise Refused("has coordinates that nobody holds")
    if inner.law.joint and len(set(term.owners)) > 1:
        raise Refused("has noise that parties would have to draw together")
    for row in inner.strategy.matrix.tolist():
        if len({owner for owner, coefficient in zip(term.owners, row, strict=True) if coefficient}) > 1:
            raise Refused("sends a message that depends on the numbers of more than one party")
    return Theorem(_RULE, term, seen, change, _all_of(inner, change, hint))


def shares(term: Shares, seen: Seen, change: Units, hint: Hint = NOTHING) -> Theorem:
    """A secure sum: all see the sum, and a coalition knows its own shares; those of the others are what hides.

    How many these are follows from who is said to collude, and not from what the mechanism says.
    """
    inner, honest = term.term, term.parties - term.colluding
    if inner.law.honest != honest or honest < 1 or term.colluding < 0:
        raise Refused("does not have so many parties whose shares no coalition knows")
    return Theorem(_RULE, term, seen, change, _all_of(inner, change, hint))


def table(term: Table, seen: Seen, change: Rows, hint: Hint = NOTHING) -> Theorem:
    """The laws of the rows that are compared, columns that look alike to an observer as one.

    Where laws of rows are compared, a row is drawn first, which is a table of as many rows as there are laws. With a
    hint of an epsilon, as randomised response of it that fails with the delta at it.
    """
    if sum(len(rows) ** 2 for rows in change.cliques) + 2 * len(change.pairs) > PAIRS:
        raise Refused("the problem compares too many rows")
    compared = [row for rows in (*change.pairs, *change.cliques) for row in rows]
    if min(compared, default=0) < 0 or max(compared, default=0) >= len(change.laws or term.rows):
        raise Refused("compares rows that the table does not have")
    drawn = _drawn(term, change) if change.laws else term
    laws = tuple(map(tuple, drawn.seen(term.view(seen))))
    finite = FiniteLaws(laws, drawn.whole, change.pairs, change.cliques)
    loss = Loss(factors=(finite,))
    if hint.epsilon is not None:
        loss = Loss(factors=(Response(hint.epsilon),), delta=finite.delta_up(hint.epsilon))
    return Theorem(_RULE, term, seen, change, loss)


def _drawn(term: Table, change: Rows) -> Table:
    """The table of which a row is drawn first, by each of some laws.

    Raises: Refused where these are no laws of the rows, of one whole.
    """
    whole = sum(change.laws[0])
    if any(len(law) != len(term.rows) or sum(law) != whole or min(law) < 0 for law in change.laws) or not whole:
        raise Refused("compares what are no laws of rows")
    rows = (
        zip(*([n * share for n in row] for row, share in zip(term.rows, law, strict=True) if share), strict=True)
        for law in change.laws
    )
    return replace(term, rows=tuple(tuple(map(sum, columns)) for columns in rows), whole=term.whole * whole)


def pick(term: Pick, seen: Seen, change: Change, _: Hint = NOTHING) -> Theorem:
    """A choice, by its law."""
    return Theorem(_RULE, term, seen, change, term.law.let_through(change))


def shown(term: Shown, seen: Seen, change: Records, hint: Hint = NOTHING) -> Theorem:
    """Keys above thresholds, as randomised response of an epsilon that fails with the delta of a change at it.

    Sums beside them are drawn given what is shown: what every record spends there is taken off the epsilon first.
    """
    if hint.epsilon is None or hint.threshold is None:
        raise Refused("shows keys, and does not say at which epsilon")
    beside = change.moves * sum((one.each for one in term.beside), ZERO)
    if beside > hint.epsilon:
        raise Refused("spends more on sums beside keys than on all that is shown")
    delta = term.law.delta_up(change, hint.epsilon - beside, hint.threshold)
    return Theorem(_RULE, term, seen, change, Loss(factors=(Response(hint.epsilon),), delta=delta))


def structured(term: Structured, seen: Seen, change: Change, _: Hint = NOTHING) -> Theorem:
    """Noise on answers with structure: by its law, of how far these move."""
    return Theorem(_RULE, term, seen, change, term.law.of_structure(term.strategy, change, seen))


def given_model(term: Structured, seen: Seen, change: GivenModel, hint: Hint = NOTHING) -> Theorem:
    """Noisy sums of a sequence: by the laws of entries that are drawn by a model, whoever sees which of the numbers."""
    if hint.sequence is None:
        raise Refused("does not say how a model shows what it hides")
    return Theorem(_RULE, term, seen, change, hint.sequence.let_through(term.strategy, term.law, change))


def times(term: Times, seen: Seen, change: Change, hint: Hint = NOTHING) -> Theorem:
    """Drawn several times, independently: as many factors.

    What is drawn on a condition is computed from the condition and from what is always drawn: no more is let through.
    """
    loss = derive(term.term, seen, change, hint).loss
    many = Loss(loss.mu_squared * term.count, loss.factors * term.count, loss.delta * term.count)
    return Theorem(_RULE, term, seen, change, many)


def chosen(term: Chosen, seen: Seen, change: tuple[tuple[Change, ...], ...], hint: Hint = NOTHING) -> Theorem:
    """Whichever case is drawn, a loss that dominates those of all of them, on every change that each may undergo.

    What chose the case composes with it as any part that is drawn first does: where one pair of laws dominates what
    follows whatever came before, the product dominates both together (Zhu, Dong & Wang 2022, theorem 10). The largest
    of the curves of several pairs is not that of one pair; of Gaussian noise and of randomised response it is.
    """
    losses = [
        derive(case, seen, one, help_).loss
        for case, changes, hints in zip(term.cases, change, hint.parts, strict=True)
        for one, help_ in zip(changes, hints.parts, strict=True)
    ]
    pure = [one.epsilons() for one in losses]
    if not losses or None in pure:
        raise Refused("has a case that lets through ratios without limit")
    epsilon = max(sum(one, ZERO) for one in pure if one is not None)
    factors = (Response(epsilon),) if epsilon else ()
    worst = Loss(max(one.mu_squared for one in losses), factors, max(one.delta for one in losses))
    return Theorem(_RULE, term, seen, change, worst)


def independent(term: Independent, seen: Seen, change: tuple[Change, ...], hint: Hint = NOTHING) -> Theorem:
    """Independent parts, each on its own change: squares of Gaussian noise add up, and so do lumps of delta.

    A part that is drawn on a condition shows the condition: it has to be seen, and be one that is always drawn.
    """
    hints = hint.parts or (NOTHING,) * len(term.parts)
    each = zip(term.parts, change, hints, strict=True)
    parts = tuple(derive(part, seen & part.outputs, own, help_) for part, own, help_ in each)
    for part, one in zip(term.parts, parts, strict=True):
        if isinstance(part, Times) and part.only_if is not None:
            _check_condition(part.only_if, one, seen, parts)
    factors = tuple(factor for one in parts for factor in one.loss.factors)
    mu_squared = sum((one.loss.mu_squared for one in parts), ZERO)
    delta = sum((one.loss.delta for one in parts), ZERO)
    return Theorem(_RULE, term, seen, change, Loss(mu_squared, factors, delta))


def _check_condition(condition: str, own: Theorem, seen: Seen, parts: tuple[Theorem, ...]) -> None:
    """Whoever sees something of a part that is drawn on a condition sees the condition, which is always drawn."""
    first = [one for one in parts if condition in one.term.outputs]
    drawn = [one.term for one in first if isinstance(one.term, Times)]
    plain = len(first) == 1 and not any(one.only_if or one.count > 1 for one in drawn)
    if not plain or (own.seen and first[0].change is not None and condition not in seen):
        raise Refused("shows by running at all what is not said to be seen")


# --- views of noise ----------------------------------------------------------------------------------------------


def view_of(term: Noise, seen: Seen, inverse: fmpq_mat | None) -> NoisyView:
    """What whoever sees some outputs sees of a curator's noisy answers; a mixture of them if an inverse is given."""
    from privspec.kernel.laws.law import NoisyView  # tables need no law of noise

    rows = term.used(seen)
    view = NoisyView(term.strategy, tuple(rows), term.strategy.chosen(rows), term.lattice)
    return view if inverse is None else _mixed(term, seen, view, inverse)


def _mixed(term: Noise, seen: Seen, view: NoisyView, inverse: fmpq_mat) -> NoisyView:
    """The same of whoever sees rounded mixtures of the answers and nothing else of them."""
    shown = term.shown(seen)
    if not term.mixed or not term.law.spherical or shown is None or seen >= term.outputs:
        raise Refused("is given for a view that is no mixture")
    mixture, slack = term.strategy.mixture(shown, inverse)
    return replace(view, seen=mixture, slack=slack)


def _all_of(term: Noise, change: Units, hint: Hint) -> Loss:
    """What all answers let through, whoever sees them."""
    if hint.inverse is not None:
        raise Refused("a mixture of what everybody sees")
    from privspec.kernel.laws.law import NoisyView

    rows = tuple(range(term.strategy.answers))
    return term.law.let_through(NoisyView(term.strategy, rows, term.strategy, term.lattice), change, hint.scaling)


# --- the tactic --------------------------------------------------------------------------------------------------


def derive(term: Term, seen: Seen, change: Change, hint: Hint = NOTHING) -> Theorem:
    """The rule of every part, then of all together.

    Raises: Refused where no rule is about such a change of such a term.
    """
    if change is None or (not seen and not term.public):
        return still(term, seen, change)
    rule = RULES.get((type(term), type(change))) or RULES.get(type(term))
    if rule is None:
        raise Refused("no rule is about such a change of what is executed")
    return rule(term, seen, change, hint)


RULES: dict[object, Callable[..., Theorem]] = {
    (Noise, Units): noise,
    (Reports, Units): reports,
    (Shares, Units): shares,
    (Table, Rows): table,
    (Shown, Records): shown,
    (Structured, GivenModel): given_model,
    (Independent, tuple): independent,
    (Chosen, tuple): chosen,
    Pick: pick,
    Structured: structured,
    Times: times,
}
"""The rule about a term of some type and a change of some type, or about a term whatever changes."""
