"""Plans of which an amount of privacy is picked, at least cost: the number in its range, and what no smaller one meets.

At each number the problem is an ordinary one, judged by the rules of its block. Larger amounts allow more, so what is
proved at the upper end of an interval holds in all of it, and the number costs at least what its lower end costs.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from privspec.kernel.core.numbers import ZERO
from privspec.kernel.core.problem import Bound, Frame, PlanUnderCheck, Rules, Share, View
from privspec.kernel.core.reading import JsonNode, Positive, Refused, Size, frozen, read
from privspec.kernel.linear import LinearRules
from privspec.kernel.reports import FrequencyRules
from privspec.kernel.selection import SelectionRules
from privspec.kernel.tables import Tables
from privspec.kernel.worth import PriceableRules, judge_loss

RISING = {"epsilon", "delta", "rho", "mu"}
"""Amounts that allow more the larger they are."""


@frozen
class Price:
    """What the loss adds: weight times a power of the number."""

    power: Positive
    weight: Size


@frozen
class Priced:
    """The number `name`, picked between `low` and `high`, and the block whose loss its prices join."""

    FORM = "priced"

    name: str
    low: Size
    high: Size | None
    prices: tuple[Price, ...]
    loss: str
    block: Any

    def cost(self, value: Fraction) -> Fraction:
        return sum((price.weight * value**price.power for price in self.prices), ZERO)


def at(frame: Frame, name: str, value: Fraction) -> Frame:
    """A problem at a value of its number: every amount is known."""
    chosen, lines = {name: value}, []
    for one in frame.obligations:
        shares = [(word, own) for word, own in one.measure.amounts if isinstance(own, Share)]
        if any(word not in RISING or own.inverse or not own.scale for word, own in shares):
            raise Refused(f"line {one.line} has an amount that does not grow with {name}")
        amounts, measure = one.measure.figures(chosen), one.measure
        plain = measure.of.without_delta
        if shares and plain is not None and not amounts["delta"]:
            del amounts["delta"]
            measure = replace(measure, name=plain.name, amounts=tuple(amounts.items()))
        lines.append(replace(one, measure=replace(measure, amounts=tuple(amounts.items()))))
    return replace(frame, obligations=tuple(lines))


FORMS: dict[str, PriceableRules] = {
    "linear": LinearRules(),
    "table": Tables(),
    "frequencies": FrequencyRules(),
    "selection": SelectionRules(),
}
"""The forms of block that can be priced."""


class PricedRules(Rules):
    """How such plans are judged."""

    def privacy(self, case: PlanUnderCheck) -> object:
        """The number, then the plan at it."""
        _, form, _, own = self._at_its_number(case)
        executed = form.privacy(own)
        case.promised = own.promised
        return executed

    def _at_its_number(self, case: PlanUnderCheck) -> tuple[Priced, PriceableRules, Fraction, PlanUnderCheck]:
        asked, form, scalars, own = self.inner(case)
        picked = scalars.exact(0)
        inside = picked >= asked.low and (asked.high is None or picked <= asked.high)
        where = "in the range that the problem leaves open"
        case.says("choices", inside, f"{asked.name} = {float(picked):.10g} is {where}")
        own.frame = at(replace(case.frame, blocks=(asked.block,)), asked.name, picked)
        own.found = case.found
        return asked, form, picked, own

    def judge(self, case: PlanUnderCheck) -> object:
        """The number, then the plan at it, then that no other number costs less."""
        asked, form, picked, own = self._at_its_number(case)
        executed, rest, (*_, kind) = form.measured(own)
        case.promised = own.promised
        bound, classes = case.claims.fields(*form.claims)[-1], tuple[str, ...]()
        derived = None
        if not bound.absent:
            derived, classes = least(case.frame, asked, form, executed, bound)
        words = [asked.loss, "units of the loss expression", kind]
        judge_loss(case, asked.cost(picked) + rest, derived, classes or ("",), "such mechanism", words)
        return executed

    def reach(
        self, case: PlanUnderCheck, executed: object, view: View, outputs: tuple[str, ...], witness: JsonNode
    ) -> Bound:
        _, form, _, own = self.inner(case)
        return form.reach(own, executed, view, outputs, witness)

    def read(self, frame: Frame, mechanism: JsonNode) -> Any:
        asked = read(Priced, frame.blocks[0])
        form, _, plain = _at_some_number(asked, mechanism)
        return form.read(replace(frame, blocks=(asked.block,)), plain)

    def inner(self, case: PlanUnderCheck) -> tuple[Priced, PriceableRules, JsonNode, PlanUnderCheck]:
        """What is asked, the form of its block, the number that is stated, and the plan without it."""
        asked = read(Priced, case.block)
        form, picked, plain = _at_some_number(asked, case.mechanism)
        return asked, form, picked, replace(case, mechanism=plain)


def _at_some_number(asked: Priced, mechanism: JsonNode) -> tuple[PriceableRules, JsonNode, JsonNode]:
    """The form of the block, the number that is stated, and the mechanism without it."""
    plain, kind = mechanism.without("scalars"), asked.block.form(*FORMS)
    scalars = dict(mechanism.entries()).get("scalars", JsonNode({}, "mechanism.scalars"))
    picked, rest = dict(scalars.entries()).get(asked.name), scalars.without(asked.name)
    if picked is None:
        raise mechanism.wrong(f"does not have {asked.name} among its scalars")
    if kind == "table":
        plain["scalars"] = rest
    elif rest:
        raise mechanism.wrong(f"picks more than {asked.name}")
    return FORMS[kind], picked, JsonNode(plain, mechanism.place)


def least(
    frame: Frame, asked: Priced, form: PriceableRules, executed: object, item: JsonNode
) -> tuple[Fraction, tuple[str, ...]]:
    """What no mechanism costs less than, at any number of the range, and the words for these mechanisms.

    `cells` cut the range: up to the end of each but the last, whose end is that of the range, a proof is taken at the
    largest amounts; where the loss has no other terms, errors that cannot be paid for rule the cell out.
    """
    proofs, cells = item.fields("proofs", "cells")
    made, words = form.proofs(frame, executed, proofs)
    floor = form.floor(executed)
    low, free, found, listed = asked.low, form.free(executed), list[Fraction](), cells.items()
    for place, cell in enumerate(listed, 1):
        upto, which, stated = cell.fields("upto", "proof", "mu")
        high = asked.high if upto.absent else upto.exact()
        if upto.absent != (place == len(listed)) or (high is not None and not low <= high <= (asked.high or high)):
            raise upto.wrong("does not cut the range into cells, one after the other, up to its end")
        value = floor
        if which.absent or high is None:
            stated.same([])
            which.same(None)
        else:
            proof = made[which.integer(0, len(made) - 1)].restated(stated)
            value = max(floor, proof.at(at(frame, asked.name, high).obligations))
        if value <= 0 or not free:
            found.append(asked.cost(low) + value)
        low = high if high is not None else low
    if not found:
        raise cells.wrong("leave nothing of the range")
    return min(found), words
