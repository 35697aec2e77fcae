"""Amounts that are allowed and promise little: a large epsilon, a delta that leaves room for publishing a person."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from privspec.core.spans import Span
from privspec.language import syntax
from privspec.model import neighbours as nb
from privspec.model.domains import Power
from privspec.model.graph import InputBlock
from privspec.model.measures import LDP, EpsilonDelta, PerAtomLDP, Personalised, PureDP
from privspec.model.reports import Report
from privspec.model.requirements import Requirement
from privspec.model.values import show

LARGE_EPSILON = 10
"""A guesser may be right 22,026 times for each time that they are wrong."""

LARGE_DELTA = Fraction(1, 1000)


def warn_about_amounts(
    line: syntax.Requirement, found: Requirement, blocks: Mapping[str, InputBlock], report: Report
) -> None:
    """A requirement that holds and protects hardly anybody is warned about; nothing is refused."""
    measures = found.measure.each if isinstance(found.measure, Personalised) else (found.measure,)
    amounts = [one.amounts for one in measures if isinstance(one, PureDP | EpsilonDelta | LDP | PerAtomLDP)]
    epsilon = max((figures["epsilon"] for figures in amounts), default=Fraction(0))
    delta = max((figures.get("delta", Fraction(0)) for figures in amounts), default=Fraction(0))
    items = line.amount.items
    if epsilon > LARGE_EPSILON:
        report.warn(
            "PS0324",
            items[0].span,
            f"an epsilon of {show(epsilon)} promises very little",
            label="above 10",
            help="below 1 is strong, 1 to 3 usual, 10 the most that is ever defended; see what it means: "
            "privspec explain PLAN --for public",
        )
    people = [n for name in found.wrt if (n := _units(found.neighbours, blocks.get(name))) is not None]
    limit = min((Fraction(1, n) for n in people if n > 0), default=Fraction(1))
    if not any(isinstance(one, PureDP) for one in measures) and delta > min(limit, LARGE_DELTA):
        units = nb.plural(found.neighbours.unit_name) if people else "people"
        _warn_of_delta(delta, limit, f"{max(people, default=0):,} {units}", items[-1].span, report)


def _warn_of_delta(delta: Fraction, limit: Fraction, units: str, span: Span, report: Report) -> None:
    if delta > limit:
        message = f"a delta of {show(delta)} allows publishing all about one of {units}"
        label = f"above one over {units.split()[0]}"
    else:
        message = f"a delta of {show(delta)} allows publishing all about one person in {int(1 / delta):,}"
        label = "above 1/1000"
    report.warn(
        "PS0325",
        span,
        message,
        label=label,
        help="delta is the probability with which the promise may fail altogether: 1e-6, or far below one over "
        "the number of people",
    )


def _units(neighbours: nb.NeighbourRelation, block: InputBlock | None) -> int | None:
    """How many units an input holds, where that is public."""
    if block is None or neighbours.adding or isinstance(neighbours, nb.ReplacingEverything):
        return None
    if isinstance(neighbours, nb.ReplacingOneOf):
        return _units(neighbours.of(block), block)
    whole = block.type.shape
    if isinstance(neighbours, nb.ReplacingVoter):
        return whole[0] if block.index and whole else None
    if isinstance(neighbours, nb.ReplacingEntry):
        return block.size if block.layout == "entries" else None
    if isinstance(neighbours, nb.ReplacingRecord) and isinstance(block.domain, Power):
        return (whole[0] if block.index and whole else 1) * block.domain.exponents[0]
    return None
