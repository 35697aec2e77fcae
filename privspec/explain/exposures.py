"""What an observer learns of an input that no line bounds for all that they see: the composed bound, or none.

A guarantee speaks of the outputs that its line names. For each input and observer of whom no line names all that they
see of it, the bound is computed from the mechanism as executed; an output that no line names for the input, and that
hides next to nothing of it, is called not protected.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from privspec.explain.claims import Claim, claim, relation
from privspec.explain.consequences import odds_fact
from privspec.explain.context import context
from privspec.explain.curves import EpsilonDeltaCurve, GaussianCurve
from privspec.explain.families import mechanism_fact
from privspec.explain.finite.tradeoff import PairsCurve
from privspec.explain.quantities import Rounding, parse_exact, rounded, share_up, ungrouped
from privspec.explain.sentences import SpecLine
from privspec.model.observers import ANYONE, Unit, looks, units

if TYPE_CHECKING:
    from privspec.explain.context import Context
    from privspec.explain.curves import Curve
    from privspec.explain.mechanism import MechanismFact
    from privspec.model.graph import Model

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


@dataclass(frozen=True, slots=True)
class _Look:
    """An input, an observer and what they see; the claims that name all of it that depends on the input, if any."""

    input: str
    observer: str
    seen: tuple[str, ...]
    unnamed: tuple[str, ...]
    joined: tuple[Claim, ...]
    moves: tuple[tuple[Claim, Unit | None], ...]


def exposed(
    plan: Mapping[str, Any], stated: Sequence[Claim], mechanism: MechanismFact, model: Model | None, where: Context
) -> tuple[Exposed, ...]:
    """All that an observer may learn beyond what a single line says, in the order of inputs and observers."""
    found = []
    for look in _looks(stated, mechanism, model, where):
        for template, unit in look.moves:
            seen_claim = replace(template, outputs=look.seen, observer=look.observer)
            curve = mechanism.seen(plan, frozenset(look.seen), seen_claim, unit, model)
            if _said(curve, look):
                continue
            bare = tuple(
                name
                for name in look.unnamed
                if _hides_nothing(mechanism.seen(plan, frozenset({name}), seen_claim, unit, model))
            )
            found.append(Exposed(look.input, replace(seen_claim, achieved=curve), curve, bare))
    return tuple(found)


def exposures_json(plan: Mapping[str, Any], model: Model) -> list[dict[str, Any]]:
    """What the plan has to state: each input and observer of whom no line names all that they see, with the bound.

    Amounts are rounded up; `bound` is null where none is known.
    Raises: KeyError, ValueError if the plan is not of the form of its family.
    """
    lines = model.requirements
    if all(any(k.input in r.wrt and set(k.observer.outputs) <= set(r.outputs) for r in lines) for k in looks(model)):
        return []
    where = context(plan)
    mechanism = mechanism_fact(plan, where)
    stated = tuple(mechanism.judged(claim(g))[0] for g in plan.get("guarantees") or ())
    return [
        {
            "input": item.input,
            "wrt": list(item.claim.wrt),
            "neighbours": item.claim.neighbours,
            "observer": item.claim.observer,
            "outputs": list(item.claim.outputs),
            "not_protected": list(item.unprotected),
            "bound": None if item.curve is None else _amounts(item.curve),
        }
        for item in exposed(plan, stated, mechanism, model, where)
    ]


def agrees(stated: Any, found: list[dict[str, Any]]) -> bool:
    """Whether a plan states just what was found: amounts may be below by a rounding of doubles, not more."""
    if not isinstance(stated, list) or len(stated) != len(found):
        return False
    return all(_same(one, other) for one, other in zip(stated, found, strict=True))


def _same(stated: Any, found: Mapping[str, Any]) -> bool:
    if not isinstance(stated, dict) or stated | {"bound": None} != {**found, "bound": None}:
        return False
    said, known = stated["bound"], found["bound"]
    if said is None or known is None or not isinstance(said, dict) or set(said) != set(known):
        return bool(said == known)
    try:
        return all(abs(parse_exact(said[k]) - parse_exact(known[k])) <= parse_exact(known[k]) / 10**6 for k in known)
    except ValueError:
        return False


def _amounts(curve: Curve) -> dict[str, str]:
    """A curve as amounts that it stays within, rounded up to nine digits."""

    def up(value: float) -> str:
        return ungrouped(rounded(value, 9, Rounding.UP).text)

    match curve:
        case GaussianCurve(mu=mu):
            return {"mu": up(mu)}
        case EpsilonDeltaCurve(epsilon=epsilon, delta=delta):
            return {"epsilon": up(epsilon), "delta": up(min(1.0, delta))}
        case PairsCurve(bound_pair=(epsilon, delta)) if math.isfinite(epsilon):
            return {"epsilon": up(epsilon), "delta": up(delta)}
    return {"epsilon": "0", "delta": ungrouped(share_up(curve.advantage(), 9).text)}


def _said(curve: Curve | None, look: _Look) -> bool:
    """Whether lines that name all that depends on an input say no less than is true of all that is seen."""
    if look.joined:
        best = max((c.curve.equal_error() for c in look.joined if c.curve is not None), default=None)
        return best is None or curve is None or curve.equal_error() >= best * (1 - _NOT_WORSE)
    return not look.unnamed and curve is not None and curve.equal_error() >= (1 - _NOT_WORSE) / 2


def _hides_nothing(curve: Curve | None) -> bool:
    return curve is None or odds_fact(curve).plain.tells_little


def _looks(stated: Sequence[Claim], mechanism: MechanismFact, model: Model | None, where: Context) -> Iterator[_Look]:
    if model is None:
        yield from _without_model(stated, mechanism)
        return
    released = mechanism.released()
    for look in looks(model):
        seen = tuple(name for name in look.observer.outputs if name in released)
        if not seen or any(look.input in c.wrt and set(seen) <= set(c.outputs) for c in stated):
            continue
        joined = tuple(c for c in stated if look.outputs and c.requirement in look.joined)
        moves = tuple((_template(unit, look.input, stated, where), unit) for unit in units(model, look.input))
        yield _Look(look.input, look.observer.name, seen, look.unnamed, joined, moves)


def _template(unit: Unit, name: str, stated: Sequence[Claim], where: Context) -> Claim:
    """A claim about a unit that says nothing yet."""
    line = next((c for c in stated if c.requirement == unit.requirement >= 0), None)
    if line is not None:
        return replace(_empty(line), wrt=unit.wrt, relation=relation(unit.relation.describe()))
    words = unit.relation.describe()
    return Claim(
        outputs=(),
        wrt=unit.wrt,
        relation=relation(words),
        observer=ANYONE,
        measure="",
        variant="",
        statement="",
        parameters=(),
        promised=None,
        achieved=None,
        achieved_parameter=None,
        notes=(),
        line=where.input_lines.get(name) or SpecLine(0),
        epsilon=None,
        delta=None,
        local=where.trust == "nobody",
    )


def _empty(line: Claim) -> Claim:
    """The unit of a line without its figures; of two values nearby any two remain."""
    return replace(
        line,
        measure="",
        variant="",
        statement="",
        parameters=(),
        promised=None,
        achieved=None,
        achieved_parameter=None,
        epsilon=None,
        local=line.local or line.by_distance,
        by_distance=False,
        per_distance=None,
        remark=None,
    )


def _without_model(stated: Sequence[Claim], mechanism: MechanismFact) -> Iterator[_Look]:
    """From the claims alone: every output may depend on every input, and who sees what is what the claims say."""
    released = mechanism.released()
    named = {name for c in stated for name in c.outputs}
    everywhere = released - named | {n for c in stated if c.observer == ANYONE for n in c.outputs}
    observers = list(dict.fromkeys([*([ANYONE] if everywhere else []), *(c.observer for c in stated)]))
    for name in dict.fromkeys(n for c in stated for n in c.wrt):
        lines = [c for c in stated if name in c.wrt]
        for who in observers:
            held = everywhere.union(*(c.outputs for c in stated if c.observer == who))
            seen = tuple(sorted(held & released))
            if not seen or any(held <= set(c.outputs) for c in lines):
                continue
            unnamed = tuple(n for n in seen if not any(n in c.outputs for c in lines))
            units_of = {c.relation: replace(_empty(c), wrt=(name,)) for c in reversed(lines)}
            yield _Look(name, who, seen, unnamed, (), tuple((c, None) for c in units_of.values()))
