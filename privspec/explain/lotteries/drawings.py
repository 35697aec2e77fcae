"""Drawings of lotteries: chances at invented elections with and without noise, and epsilon against dummy votes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from privspec.explain import drawing
from privspec.explain.document import Plot, Table
from privspec.explain.finite import cells
from privspec.explain.lotteries.examples import MOST, Chance, Example
from privspec.explain.lotteries.rules import Dictator
from privspec.explain.quantities import Rounding, rounded

if TYPE_CHECKING:
    from privspec.explain.lotteries.facts import LotteryFact

FACTORS = tuple(Fraction(n, d) for n, d in ((1, 8), (1, 4), (1, 2), (1, 1), (2, 1), (4, 1), (8, 1)))
"""Multiples of this plan's dummy votes that are drawn."""
_ROW, _BAR, _HEAD = 24.0, 8.0, 26.0


def laws_plot(fact: LotteryFact) -> Plot | None:
    """Bars of the chances at two invented elections, beside those without noise."""
    if not fact.examples:
        return None
    found = fact.examples
    rows = tuple(
        (example.title, c.name, c.votes.text, c.chance.text, c.without.text)
        for example in found
        for c in example.chances[:MOST]
    )
    said = "; ".join(
        f"where {e.title}, {e.chances[0].name} wins with probability {e.chances[0].chance} ({e.chances[0].without} in "
        f"{fact.rule.without})"
        for e in found
    )
    left = len(fact.vote.names) - MOST
    cut = f" The first {MOST} of {len(fact.vote.names)} candidates." if left > 0 else ""
    return Plot(
        name="laws",
        draw=lambda: _laws(found, fact.rule.without),
        alt=f"Bars of the chances of the candidates at invented elections: {said}.",
        caption=f"Invented elections, nobody's votes. Full bars: this plan. Thin bars: {fact.rule.without}.{cut}",
        twin=Table(
            f"Chances at invented elections, this plan and {fact.rule.without}",
            ("Invented election", "Candidate", "Votes", "This plan", "Without noise"),
            rows,
            numeric=frozenset({2, 3, 4}),
        ),
    )


def _laws(found: Sequence[Example], without: str) -> str:
    names = [c.name for e in found for c in e.chances[:MOST]]
    left = 14.0 + 5.4 * min(14, max(len(name) for name in names))
    wide = cells.WIDTH - left - 44
    parts: list[str] = []
    top = 0.0
    for example in found:
        parts.append(cells._text(2, top + 12, f"{example.voters} voters: {example.title}", anchor="start"))
        top += _HEAD - 6
        for chance in example.chances[:MOST]:
            parts += _pair(chance, left, top, wide)
            top += _ROW
        top += 8
    legend = [
        _bar(2, top + 2, 14, _BAR, cells._FILL),
        cells._text(20, top + 9, "this plan", anchor="start", colour=cells._MUTED),
        _bar(80, top + 4, 14, 4, cells._MARK),
        cells._text(98, top + 9, without, anchor="start", colour=cells._MUTED),
    ]
    return cells._svg([*parts, *legend], cells.WIDTH, top + 16)


def _pair(chance: Chance, left: float, top: float, wide: float) -> list[str]:
    high, bare = wide * chance.chance.value, wide * chance.without.value
    return [
        cells._text(left - 6, top + 11, cells._short(chance.name), anchor="end"),
        _bar(left, top + 2, high, _BAR, cells._FILL),
        _bar(left, top + 2 + _BAR, bare, 4, cells._MARK),
        cells._text(left + max(high, bare) + 4, top + 12, chance.chance.text, anchor="start"),
    ]


def _bar(x: float, y: float, wide: float, high: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(wide, 0.0):.2f}" height="{high:.1f}" fill="{colour}"/>'


def dummies_plot(fact: LotteryFact) -> Plot | None:
    """Epsilon against the number of dummy votes, with this plan's."""
    rule = fact.rule
    if not isinstance(rule, Dictator) or not rule.dummies:
        return None
    highest = fact.vote.points.highest
    kappas = [rule.dummies * f for f in FACTORS]
    spent = [math.log1p(float(highest / k)) for k in kappas]
    line = drawing.Line("ε", [float(k) for k in kappas], spent)
    own = spent[FACTORS.index(Fraction(1))]
    rows = tuple(
        (
            rounded(k, 4).text,
            rounded(e * (1 + 1e-12), 4, Rounding.UP).text,
            rounded(k * fact.vote.size, 4).text,
            "this plan" if k == rule.dummies else "",
        )
        for k, e in zip(kappas, spent, strict=True)
    )
    return Plot(
        name="dummies",
        draw=lambda: drawing.frontier(
            line,
            (float(rule.dummies), own, "this plan"),
            "dummy votes for each candidate",
            "ε of one vote",
            "dummies",
        ),
        alt=f"ε against dummy votes: from {rounded(spent[0])} at {rounded(kappas[0])} down to {rounded(spent[-1])} at "
        f"{rounded(kappas[-1])} for each candidate; this plan has {rounded(rule.dummies)}.",
        caption="The diamond marks this plan. Every further dummy vote protects more and follows the votes less.",
        twin=Table(
            "ε by the number of dummy votes, log(1 + most points of a ballot / dummy votes)",
            ("Dummy votes for each candidate", "ε", "Dummy votes in all", "Remark"),
            rows,
            numeric=frozenset({0, 1, 2}),
        ),
    )
