"""Plans of which an amount of privacy is picked, at least cost: the number in its range, and what no smaller one meets.

At each number the problem is an ordinary one, judged by the rules of its block. Larger amounts allow more, so what is
proved at the upper end of an interval holds in all of it, and the number costs at least what its lower end costs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from privspec.kernel.core.case import Bound, Case, Rules
from privspec.kernel.core.linear import Release
from privspec.kernel.core.problem import Amounts, Frame, Share, View
from privspec.kernel.core.reading import Item, Positive, Refused, Size, read
from privspec.kernel.quality.linear import LinearRules, prove, shown
from privspec.kernel.quality.stated import judge_loss

RISING = {"epsilon", "delta", "rho", "mu"}
"""Amounts that allow more the larger they are."""
NONE = Fraction(0)


@dataclass(frozen=True, slots=True)
class Price:
    """What the loss adds: weight times a power of the number."""

    power: Positive
    weight: Size


@dataclass(frozen=True, slots=True)
class Priced:
    """The number `name`, picked between `low` and `high`, and the block whose loss its prices join."""

    FORM = "priced"

    name: str
    low: Size
    high: Size | None
    prices: tuple[Price, ...]
    loss: str
    block: Item

    def cost(self, value: Fraction) -> Fraction:
        return sum((price.weight * value**price.power for price in self.prices), NONE)


def at(frame: Frame, name: str, value: Fraction) -> Frame:
    """A problem at a value of its number: every amount is known."""
    chosen, lines = {name: value}, []
    for one in frame.obligations:
        shares = [(word, own) for word, own in one.measure.amounts.items() if isinstance(own, Share)]
        if any(word not in RISING or own.inverse or not own.scale for word, own in shares):
            raise Refused(f"line {one.line} has an amount that does not grow with {name}")
        amounts: Amounts = {**one.measure.figures(chosen)}
        lines.append(replace(one, measure=replace(one.measure, amounts=amounts)))
    return replace(frame, obligations=tuple(lines))


class PricedRules(Rules):
    """How such plans are judged; `forms`: the rules of blocks that can be priced."""

    def __init__(self, forms: dict[str, LinearRules]) -> None:
        self.forms = dict(forms)

    def judge(self, case: Case) -> object:
        """The number, then the plan at it, then that no other number costs less."""
        asked, own = self._inner(case)
        scalars = dict(case.mechanism.entries()).get("scalars", Item(None, "mechanism.scalars"))
        (picked,) = (item.exact(0) for item in scalars.fields(asked.name))
        inside = picked >= asked.low and (asked.high is None or picked <= asked.high)
        case.says(
            "choices", inside, f"{asked.name} = {float(picked):.10g} is in the range that the problem leaves open"
        )
        own.frame = at(replace(case.frame, blocks=(asked.block,)), asked.name, picked)
        own.found = case.found
        executed, rest, (_, _, kind) = self._rules(asked).measured(own)
        bound = case.claims.fields("views", "bound")[1]
        derived, classes = (None, ("",)) if bound.absent else least(case.frame, asked, executed, bound)
        words = [asked.loss, "units of the loss expression", kind]
        judge_loss(case, asked.cost(picked) + rest, derived, classes, "such mechanism", words)
        return executed

    def reach(self, case: Case, executed: object, view: View, outputs: tuple[str, ...], witness: Item) -> Bound:
        asked, _ = self._inner(case)
        return self._rules(asked).reach(case, executed, view, outputs, witness)

    def _rules(self, asked: Priced) -> LinearRules:
        return self.forms[asked.block.form(*self.forms)]

    def _inner(self, case: Case) -> tuple[Priced, Case]:
        asked = read(Priced, case.block)
        assert isinstance(asked, Priced)
        mechanism = {key: item.value for key, item in case.mechanism.entries() if key != "scalars"}
        return asked, replace(case, mechanism=Item(mechanism, case.mechanism.place))


def least(frame: Frame, asked: Priced, executed: Release, item: Item) -> tuple[Fraction, tuple[str, ...]]:
    """What no mechanism costs less than, at any number of the range, and the words for these mechanisms.

    `cells` cut the range: up to the end of each but the last, whose end is that of the range, a proof is taken at the
    largest amounts; where the loss has no other terms, errors that cannot be paid for rule the cell out.
    """
    proofs, cells = item.fields("proofs", "cells")
    low, made = asked.low, [prove(frame, executed, one) for one in proofs.items()]
    words, found, listed = {said for *_, said in made}, list[Fraction](), cells.items()
    if len(words) != 1 or any(not mu.absent for *_, masses, _ in made for *_, mu in masses):
        raise proofs.wrong("are not about the same mechanisms, or state a mu outside of a cell")
    for place, cell in enumerate(listed, 1):
        upto, which, stated = cell.fields("upto", "proof", "mu")
        high = asked.high if upto.absent else upto.exact()
        if upto.absent != (place == len(listed)) or (high is not None and not low <= high <= (asked.high or high)):
            raise upto.wrong("does not cut the range into cells, one after the other, up to its end")
        value = NONE
        if which.absent or high is None:
            stated.same([])
            which.same(None)
        else:
            proof = made[which.integer(0, len(made) - 1)]
            value = shown(at(frame, asked.name, high), executed, proof, stated.items(len(proof[2])))
        if value <= 0 or executed.problem.errors.terms:
            found.append(asked.cost(low) + max(value, NONE))
        low = high if high is not None else low
    if not found:
        raise cells.wrong("leave nothing of the range")
    return min(found), words.pop()
