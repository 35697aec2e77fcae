"""The entry `executed` of a plan of the family "statistic", read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.execute.family import Plan
from privspec.execute.statistics.bounded import LARGEST_RADIUS
from privspec.execute.statistics.noise import AddedLaw, Law, law_of
from privspec.model.domains import Ball, L1Ball, L2Ball
from privspec.model.library import GRID, Records, Route, library

BALLS: Mapping[str, type[Ball]] = {"l1": L1Ball, "l2": L2Ball}


@dataclass(frozen=True, eq=False, slots=True)
class Executed:
    """Records to statistic to noise to output: all of it public.

    `laws`: one for all, or one for each party in the order of their keys; `weights` (N,) of the parties, None: alike.
    """

    source: str
    party: str | None
    parties: int
    records: Records
    route: Route
    each_party: bool
    finish_first: bool
    mean: bool
    weights: NDArray[np.float64] | None
    laws: tuple[Law, ...]
    output: str

    @property
    def personal(self) -> bool:
        """Whether parties have noise of their own size."""
        return len(self.laws) > 1

    @property
    def share(self) -> float:
        """What one party counts in the pool."""
        return 1.0 / self.parties if self.mean else 1.0


def executed_of(plan: Plan) -> Executed:
    """Raises: KeyError, TypeError, ValueError if the plan is not one that this version can execute."""
    mechanism = plan["mechanism"]
    data = mechanism["executed"]
    if Fraction(str(data["grid"])) != GRID:
        raise ValueError("statistics on another grid than this version's")
    radius = data["records"]["radius"]
    records = Records(
        int(data["records"]["count"]),
        int(data["records"]["dimension"]),
        None if radius is None else Fraction(str(radius)),
    )
    if min(records.count, records.dimension) < 1 or not 0 < (records.radius or 1) <= LARGEST_RADIUS:
        raise ValueError(f"records are of one number or more, in a ball of radius {LARGEST_RADIUS} at most")
    route = _route(str(mechanism["function"]), data["route"], records)
    parties, each_party = int(data["parties"]), bool(data["each_party"])
    laws = tuple(law_of(noise, route.size) for noise in data["noise"])
    if parties < 1 or len(laws) not in (1, parties if each_party else 1):
        raise ValueError(f"{len(laws)} kinds of noise for {parties} parties")
    if not each_party and not isinstance(laws[0], AddedLaw):
        raise ValueError("reports are made by each party, not at the pool")
    weights = data.get("weights")
    if weights is not None and (len(weights) != parties or not each_party):
        raise ValueError("weights are for parties that add noise of their own, one each")
    return Executed(
        str(data["input"]),
        None if data["party"] is None else str(data["party"]),
        parties,
        records,
        route,
        each_party,
        bool(data["finish_first"]),
        bool(data["mean"]),
        None if weights is None else np.array([float(Fraction(str(w))) for w in weights]),
        laws,
        str(data["output"]),
    )


def _route(function: str, data: Mapping[str, Any], records: Records) -> Route:
    """The route of that name which the function offers for such records."""
    within = data["within"]
    ball = BALLS[str(within["norm"])](Fraction(str(within["radius"])), records.dimension)
    known = library().get(function)
    if known is None or known.routes is None:
        raise ValueError(f"no function {function} with statistics to make noisy")
    for route in known.routes(records, ball):
        if (route.name, route.at, route.size) == (data["name"], data["at"], data["size"]):
            if {**route.to_json(), "name": route.name, "at": route.at, "size": route.size} != dict(data):
                break
            return route
    raise ValueError(f"{function} has no statistic like that of the plan")
