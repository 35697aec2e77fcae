"""A lower bound over all splits of a system: witnesses at other shares than those spent, and the most they prove.

The kernel builds the curves and goes through the boxes (`kernel.splits`); here is only searched what to ask of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import inf, log
from typing import Any

import numpy as np

from privspec.families.decision import float_down
from privspec.families.systems.splits import Curve, Lines, Split, corners, directed, minimised, rounded_down
from privspec.kernel.core.problem import PlanUnderCheck
from privspec.kernel.core.reading import JsonNode, Refused, read
from privspec.kernel.splits import Known
from privspec.kernel.systems import Judged, Shares, SystemRules, shares_of

BESIDE = (1.0, 1.02, 1.06, 1.15, 1.4, 2.0, 4.0)
"""How many times the share at which losses are lowest together, or by how much less, a witness is looked for."""
NEAR = 0.15
"""The part of the way from one of them to the next up to which a share that is solved already stands for it."""
ROUNDS = 8
"""How often witnesses are added where the curves that they prove are lowest together."""
LOWER = 1e-3
"""Witnesses are added while that raises the bound by this share of what it leaves open."""
ASIDE = (-0.6, -0.3, -0.15, -0.07, 0.07, 0.15, 0.3, 0.6)
"""By how much, in logarithms of shares, directions are looked at beside the lowest one."""
DIRECTION = 1e-4
"""Relative accuracy of the shares at which curves are lowest together."""
CLOSE = 1e-3
"""Shares that differ by less, relatively, are one for witnesses."""
BOXES = 2**12
"""Boxes that a bound may take."""
AIM, FILL = 0.8, 0.6
"""The share of them that a bound is looked for which takes, and that with which it is enough."""
REFUSED = 2
"""How often a gap that boxes do not show is tried again, larger."""
GAP = 0.04
"""The share by which a bound for all splits is tried below the least sum of the curves at first."""
DIGITS = 8
"""Significant digits of the multipliers at other shares."""
ENOUGH = 0.01
"""A bound that is lower than the curves by this share of what these leave open anyway is not improved."""
Witnesses = list[dict[str, Any]]
Claims = Callable[[int, Fraction], Mapping[str, Any] | None]
"""What proves a bound of a part, by its place among those that share lines, at a share; None where nothing does."""


def proved(
    document: Mapping[str, Any],
    parts: list[Judged],
    lines: Lines,
    split: Split,
    curves: Sequence[Curve],
    claims_at: Claims,
) -> dict[str, Any]:
    """The bound of a plan of a system, what it is among and its claims; nothing where none can be proved.

    Args: curves, what parts cost by the search; claims_at, what proves a bound of them.
    """
    found: list[Witnesses] = [[] for _ in curves]
    starts = [np.log([float(a) for a in split.amounts[1:]]) - np.log(float(split.amounts[0]))] if found else []
    known = dict[int, Known]()
    try:
        shares = _shares(document, parts, found, known)
        if found:
            # tables cost what the search says, and their bounds are next to that where there are witnesses
            pairs = zip(shares.curves, curves, strict=True)
            fitted = [curve.fitted() if own.each_share else own.near for own, curve in pairs]
            logs = minimised(lines, split.kinds, fitted, [*starts, *corners(len(fitted))], DIRECTION)[1]
            for k, amount in enumerate(directed(lines, split.kinds, logs)):
                found[k] += _around(k, amount, lines, split, curves[k], claims_at)
            shares, starts = _shares(document, parts, found, known), [logs, *starts]
        least = -inf
        for _ in range(ROUNDS if found else 0):
            before = least
            near = [curve.near for curve in shares.curves]
            least, logs = minimised(lines, split.kinds, near, [*starts, *_aside(starts[0])], DIRECTION)
            starts, least = [logs, *starts], least + float(shares.constant)
            enough = 0 <= least - before <= LOWER * (document["loss"]["value"] - least)
            if enough or not _add(found, directed(lines, split.kinds, logs), split, claims_at):
                break
            shares = _shares(document, parts, found, known)
    except Refused:
        return {}
    loss = document["loss"]
    if shares.alone:
        best: float | None = float_down(shares.sum_of_parts)
    else:
        best = _largest(shares, least, ENOUGH * (loss["value"] - least)) if found else float_down(shares.constant)
    if best is None or best > loss["value"]:
        return {}
    return {"bound": best, "among": shares.among, "claims": {"split": found}}


def _aside(logs: np.ndarray) -> list[np.ndarray]:
    """Directions beside one: curves are lower between witnesses, so that there are many low ones."""
    moved = [np.zeros_like(logs) + step for step in ASIDE]
    for k in range(len(logs)):
        for step in ASIDE:
            moved.append(np.zeros_like(logs))
            moved[-1][k] = step
    return [logs + one for one in moved]


def _largest(shares: Shares, least: float, enough: float) -> float | None:
    """A bound below the least sum of the curves, by `enough` or by as little as boxes of the largest number show."""
    whole, gap, power, refused = abs(least) or 1.0, GAP, 2.0, 0
    shown: list[tuple[float, int, float]] = []  # gaps, boxes and bounds
    while True:
        tried = float_down(Fraction(least - gap * whole))
        try:
            boxes = shares.cost(Fraction(tried), BOXES)
        except Refused:
            refused += 1
            if gap > 1 or (shown and refused > REFUSED):
                return shown[-1][2] if shown else None
            gap = (gap * shown[-1][0]) ** 0.5 if shown else 3 * gap
            continue
        if shown:  # boxes grow as some power of the gap
            power = min(4.0, max(1.0, log(boxes / shown[-1][1]) / log(shown[-1][0] / gap)))
        shown.append((gap, boxes, tried))
        if gap * whole <= enough or boxes >= FILL * BOXES:
            return tried
        gap = max(enough / whole, gap * max(boxes / (AIM * BOXES), 1e-2) ** (1 / power))
        if gap >= shown[-1][0]:
            return tried


def judged(document: Mapping[str, Any]) -> tuple[PlanUnderCheck, list[Judged]]:
    """A plan as the kernel reads it, and its parts as the kernel judges them.

    Raises: Refused where one cannot be read.
    """
    case, rules = read(PlanUnderCheck, JsonNode(document, "plan")), SystemRules()
    return case, rules.parts(case, rules.read(case.frame, case.mechanism))


def _shares(
    document: Mapping[str, Any], parts: list[Judged], found: Sequence[Witnesses], known: dict[int, Known]
) -> Shares:
    """The curves as the kernel builds them.

    Raises: Refused where there are none.
    """
    case = read(PlanUnderCheck, JsonNode({**document, "claims": {"split": list(found)}}, "plan"))
    return shares_of(case, parts, known)


def _around(k: int, share: float, lines: Lines, split: Split, curve: Curve, claims_at: Claims) -> Witnesses:
    """Witnesses of a part around a share, and up to the largest that it may have; of shares near by that are solved."""
    most = lines.largest(k, len(split.kinds), split.kinds[k]) or split.amounts[k]
    wanted, known = {most}, [] if curve.law else sorted(curve.points)
    for factor, more in zip(BESIDE, (*BESIDE[1:], 2 * BESIDE[-1]), strict=True):
        for at in (share * factor, share / factor):
            near = min(known, key=lambda one: abs(log(float(one) / at)), default=split.amounts[k])
            wanted.add(near if abs(log(float(near) / at)) < log(more / factor) * NEAR else rounded_down(at))
    return _solved(k, sorted(one for one in wanted if 0 < one <= most and one != split.amounts[k]), claims_at)


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
        if found[k] and all(abs(float(share) / amount - 1) > CLOSE for share in known):
            more = _solved(k, [rounded_down(amount)], claims_at)
            found[k] += more
            added = added or bool(more)
    return added
