"""A plan of the family "statistic" as the kernel reads it, with the statistic and the laws that are drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privspec.execute.family import Plan
from privspec.execute.statistics.noise import Law, law_of
from privspec.kernel.core.reading import Item, Refused
from privspec.kernel.lemmas.statistics import read_executed
from privspec.model.domains import Ball, L1Ball, L2Ball
from privspec.model.library import Records, Route, library

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
    (block,) = plan["problem"]["blocks"]
    try:
        found = read_executed(Item(block, "block"), Item(plan["mechanism"], "mechanism"))
    except Refused as reason:
        raise ValueError(str(reason)) from reason
    records = Records(found.records.count, found.records.dimension, found.records.radius)
    routes = library()[found.function].routes
    assert routes is not None
    ball = BALLS[found.records.norm](found.records.within, records.dimension)
    return Executed(
        found.source,
        found.party,
        found.parties,
        records,
        next(route for route in routes(records, ball) if route.at == found.route),
        found.each_party,
        found.finish_first,
        found.mean,
        None if found.weights is None else np.array([float(weight) for weight in found.weights]),
        tuple(law_of(noise, found.statistic.size) for noise in found.noises),
        found.output,
    )
