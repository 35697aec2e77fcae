"""A lower bound over all splits of a system: witnesses at other shares than those spent, and the most they prove.

The kernel builds the curves and goes through the boxes (`kernel.splits`); here is only searched what to ask of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from privspec.families.document import float_down
from privspec.families.systems.splits import GRID, Lines, Split, corners, directed, minimised, rounded_down
from privspec.kernel.core.case import Case
from privspec.kernel.core.reading import Item, Refused, read
from privspec.kernel.forms import FORMS
from privspec.kernel.quality.stated import OPTIMAL_GAP
from privspec.kernel.systems import Judged, Shares, SystemRules, read_system, shares_of

BESIDE = (1.02, 1.06, 1.15, 1.4, 2.0, 4.0)
"""How many times the share that a part spends, or by how much less, a witness of it is looked for."""
ROUNDS = 3
"""How often witnesses are added where the curves that they prove are lowest together."""
LOWER = 1e-3
"""Curves that are lower by this share than at the split that was found get another witness."""
BOXES = 2**12
"""Boxes that a bound may take."""
GAPS = tuple(10.0 ** (-k / 4) for k in range(1, 32))
"""Shares by which a bound for all splits is tried below the least sum of the curves, in order."""
DIGITS = 8
"""Significant digits of the multipliers at other shares."""
ENOUGH = 0.02
"""A bound that is lower than the curves by this share of what these leave open anyway is not improved."""
Witnesses = list[dict[str, Any]]
Claims = Callable[[int, Fraction], Mapping[str, Any] | None]
"""What proves a bound of a part, by its place among those that share lines, at a share; None where nothing does."""


def proved(
    document: Mapping[str, Any], parts: list[Judged], lines: Lines, split: Split, claims_at: Claims
) -> dict[str, Any]:
    """What changes in a plan of a system once a bound is stated: nothing where none can be proved."""
    found = [_around(k, share, lines, split, claims_at) for k, share in enumerate(split.amounts)]
    base = sum(part["loss"]["lower_bound"] or 0.0 for part in document["mechanism"]["parts"])
    starts = [np.log([float(a) for a in split.amounts[1:]]) - np.log(float(split.amounts[0]))] if found else []
    try:
        shares = _shares(document, parts, found)
        least = base
        for _ in range(ROUNDS if found else 0):
            fitted = [curve.near for curve in shares.curves]
            least, logs = minimised(lines, split.kinds, fitted, [*starts, *corners(len(fitted))])
            least += float(shares.constant)
            added = least < base * (1 - LOWER) and _add(found, directed(lines, split.kinds, logs), split, claims_at)
            if not added:
                break
            shares = _shares(document, parts, found)
    except Refused:
        return {}
    loss, best = document["loss"], None
    for gap in GAPS:
        tried = float_down(Fraction(least * (1 - gap)))
        try:
            shares.cost(Fraction(tried), BOXES)
        except Refused:
            break
        best = tried
        if least * gap < ENOUGH * (loss["value"] - least):
            break
    if best is None or best > loss["value"]:
        return {}
    apart = (Fraction(loss["value"]) - Fraction(best)) / (Fraction(abs(loss["value"])) or 1)
    stated = {"lower_bound": best, "relative_gap": apart.numerator / apart.denominator, "among": shares.among}
    status = "optimal" if apart <= OPTIMAL_GAP else "feasible"
    return {"status": status, "claims": {"split": found}, "loss": {**loss, **stated}}


def judged(document: Mapping[str, Any]) -> tuple[Case, list[Judged]]:
    """A plan as the kernel reads it, and its parts as the kernel judges them.

    Raises: Refused where one cannot be read.
    """
    case, rules = read(Case, Item(document, "plan")), FORMS["system"]
    assert isinstance(case, Case)
    assert isinstance(rules, SystemRules)
    return case, rules.parts(case, read_system(case))


def _shares(document: Mapping[str, Any], parts: list[Judged], found: Sequence[Witnesses]) -> Shares:
    """The curves as the kernel builds them.

    Raises: Refused where there are none.
    """
    case = read(Case, Item({**document, "claims": {"split": list(found)}}, "plan"))
    assert isinstance(case, Case)
    return shares_of(case, parts)


def _around(k: int, share: Fraction, lines: Lines, split: Split, claims_at: Claims) -> Witnesses:
    """Witnesses of a part around its own share, up to the largest that it may have."""
    most = lines.largest(k, len(split.kinds), split.kinds[k]) or share
    wanted = {rounded_down(float(share) * factor) for beside in BESIDE for factor in (beside, 1 / beside)}
    wanted |= {rounded_down(float(most) / 3**i) for i in range(GRID)}  # which the search has solved
    return _solved(k, sorted(one for one in {*wanted, most} if 0 < one <= most and one != share), claims_at)


def _solved(k: int, amounts: Sequence[Fraction], claims_at: Claims) -> Witnesses:
    found = []
    for amount in amounts:
        claims = claims_at(k, amount)
        if claims is None:
            break
        found.append({"share": str(amount), "claims": _rounded(claims)})
    return found


def _rounded(claims: Any) -> Any:
    """Claims whose multipliers have few digits: any others prove something as well, next to as much."""
    if isinstance(claims, Mapping):
        return {key: _rounded(value) for key, value in claims.items()}
    if isinstance(claims, list | tuple):
        return [_rounded(value) for value in claims]
    return float(f"{claims:.{DIGITS}g}") if isinstance(claims, float) else claims


def _add(found: list[Witnesses], amounts: Sequence[float], split: Split, claims_at: Claims) -> bool:
    """Add witnesses at shares that are no others' neighbours; whether there were any."""
    added = False
    for k, amount in enumerate(amounts):
        known = [split.amounts[k], *(Fraction(one["share"]) for one in found[k])]
        if found[k] and all(abs(float(share) / amount - 1) > LOWER for share in known):
            more = _solved(k, [rounded_down(amount)], claims_at)
            found[k] += more
            added = added or bool(more)
    return added
