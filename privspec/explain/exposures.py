"""What an observer learns of an input from all that they see together, also where no line bounds that.

A guarantee speaks of the outputs that its line names. Guarantees of outputs that share noise do not add up (two outputs
with opposite noise reveal everything when averaged), so the kernel bounds what whoever sees some of the outputs sees of
the noise as executed. For each input and observer of whom no line names all that they see of it, the plan states that
bound, and the outputs that hide next to nothing of the input and that no line names for it: they are not protected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from privspec.explain.claims import Claim, relation
from privspec.explain.curves import Curve, EpsilonDeltaCurve, GaussianCurve
from privspec.explain.document import SpecLine
from privspec.explain.quantities import parse_exact
from privspec.model.observers import units

if TYPE_CHECKING:
    from privspec.explain.context import Context
    from privspec.explain.facts import MechanismFact
    from privspec.model.graph import Model


def covering(released: frozenset[str], claim: Claim, stated: Sequence[Claim]) -> Curve | None:
    """The curve of a claim for the same unit that names every output; None where there is none."""
    for other in (claim, *stated):
        same = other.wrt == claim.wrt and other.relation == claim.relation
        if same and released <= set(other.outputs) and other.curve is not None:
            return other.curve
    return None


def stated_together(plan: Mapping[str, Any], released: frozenset[str], claim: Claim) -> Curve | None:
    """The weakest of the bounds that the plan states, for the units of a claim, of somebody who sees every output.

    None where an input of the claim has none.
    """
    found = {
        entry["input"]: _curve(entry["bound"])
        for entry in plan.get("exposures") or ()
        if relation(entry["neighbours"]) == claim.relation and released <= set(entry["outputs"])
    }
    curves = [found.get(name) for name in claim.wrt]
    known = [curve for curve in curves if curve is not None]
    return min(known, key=lambda curve: curve.equal_error()) if len(known) == len(curves) else None


_NOT_WORSE = 1e-6
"""By so much of itself a share of mistakes may be below that of a line that names all there is, by rounding."""


@dataclass(frozen=True, slots=True)
class Exposed:
    """One input, moved in one unit, as one observer sees it: a claim that no line makes.

    `claim` names all outputs that the observer sees; `curve` is what they allow together, None where no bound is
    known. `unprotected` are the outputs that hide next to nothing of the input and that no line names for it.
    """

    input: str
    claim: Claim
    curve: Curve | None
    unprotected: tuple[str, ...]


def exposed(
    plan: Mapping[str, Any], stated: Sequence[Claim], mechanism: MechanismFact, model: Model | None, where: Context
) -> tuple[Exposed, ...]:
    """What the plan states of views that no line covers, and the kernel derived, in order.

    Those are left out where lines that name all that depends on the input say no less. Of a table the exact curve is
    shown, which is within the bound.
    """
    found = []
    views = {_key(view): view for view in plan["problem"]["views"]} if plan.get("exposures") else {}
    for entry in plan.get("exposures") or ():
        view = views[_key(entry)]
        claim = _template(entry, stated, where)
        curve = _exact(plan, claim, entry, mechanism, model) or _curve(entry["bound"])
        joined = [c.curve for c in stated if c.requirement in view["lines"]]
        if not _said(curve, joined, view):
            item = Exposed(entry["input"], replace(claim, achieved=curve), curve, tuple(entry["not_protected"]))
            found.append(item)
    return tuple(found)


def _key(item: Mapping[str, Any]) -> tuple[Any, ...]:
    return item["input"], item["observer"], tuple(item["wrt"]), item["neighbours"]


def _curve(bound: Mapping[str, str] | None) -> Curve | None:
    if bound is None:
        return None
    amounts = {key: float(parse_exact(value)) for key, value in bound.items()}
    if "mu" in amounts:
        return GaussianCurve(amounts["mu"])
    return EpsilonDeltaCurve(amounts["epsilon"], amounts["delta"])


def _exact(
    plan: Mapping[str, Any], claim: Claim, entry: Mapping[str, Any], mechanism: MechanismFact, model: Model | None
) -> Curve | None:
    """The exact curve of the laws of a table."""
    if mechanism.family != "table" or model is None:
        return None
    known = (unit for unit in units(model, entry["input"]) if unit.relation.describe() == entry["neighbours"])
    unit = next((unit for unit in known if unit.wrt == tuple(entry["wrt"])), None)
    return mechanism.seen(plan, frozenset(claim.outputs), claim, unit, model)


def _said(curve: Curve | None, joined: Sequence[Curve | None], view: Mapping[str, Any]) -> bool:
    """Whether lines that name all that depends on an input say no less than is true of all that is seen."""
    if view["lines"]:
        best = max((known.equal_error() for known in joined if known is not None), default=None)
        return best is None or curve is None or curve.equal_error() >= best * (1 - _NOT_WORSE)
    return not view["unnamed"] and curve is not None and curve.equal_error() >= (1 - _NOT_WORSE) / 2


def _template(entry: Mapping[str, Any], stated: Sequence[Claim], where: Context) -> Claim:
    """A claim about what an observer sees that says nothing yet; of two values nearby any two remain."""
    outputs, wrt, moved = tuple(entry["outputs"]), tuple(entry["wrt"]), relation(entry["neighbours"])
    like = next((line for line in stated if entry["input"] in line.wrt and line.relation == moved), None)
    if like is None:
        line = where.input_lines.get(entry["input"]) or SpecLine(0)
        return Claim(outputs, wrt, moved, entry["observer"], line, local=where.trust == "nobody")
    return Claim(
        outputs,
        wrt,
        moved,
        entry["observer"],
        like.line,
        notes=like.notes,
        delta=like.delta,
        requirement=like.requirement,
        local=like.local or like.by_distance,
    )
