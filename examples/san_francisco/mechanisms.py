"""The optimum of the plan and what people use at the same requirement: tables, simulated reports, recovered shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from check_ins import CheckIns
from numpy.typing import NDArray

import privspec
from privspec.execute.drawing import RowLaw, TableLaw
from privspec.families.tables.aggregate import COARSE, ESTIMATORS, Channel, choose_estimator
from privspec.families.tables.noise import Neighbours, TableContext, planar_candidates
from privspec.families.tables.recognition import response_candidates
from privspec.noise.samplers import SimulationRandomness

Array = NDArray[np.float64]
BITS = 53


@dataclass(frozen=True, eq=False, slots=True)
class Mechanism:
    """A table Pr(report | place) (cells, cells) with its expected distance in steps, and the exact laws of its rows."""

    name: str
    table: Array
    loss: float
    laws: tuple[RowLaw, ...]

    @property
    def answers(self) -> int:
        """How many different reports it makes."""
        return int(np.count_nonzero(self.table.max(axis=0) > 1e-6))

    def reports(self, cells: NDArray[np.intp], seed: int) -> NDArray[np.intp]:
        """One simulated report for each cell number (n,)."""
        randomness = SimulationRandomness(seed)
        return np.array([self.laws[cell].draw(randomness) for cell in cells.tolist()], dtype=np.intp)


@dataclass(frozen=True, eq=False, slots=True)
class Outcome:
    """What simulated reports of the check-ins give: means over repetitions, with standard errors.

    distance: between report and place, in steps; variation: total variation of the recovered shares from the true
    ones, by estimator; chosen: the estimator that simulation under the prior picks; `reports` and `recovered` (cells,)
    are shares in the first repetition, by the chosen estimator.
    """

    mechanism: Mechanism
    distance: tuple[float, float]
    variation: dict[str, tuple[float, float]]
    chosen: str
    reports: Array
    recovered: Array


def distances(side: int) -> Array:
    """Euclidean distances of the cells in steps (cells, cells)."""
    places = np.stack(np.divmod(np.arange(side * side), side), axis=1).astype(float)
    return np.asarray(np.linalg.norm(places[:, None] - places[None], axis=2))


def optimum(plan: privspec.Plan) -> Mechanism:
    """The mechanism of the plan."""
    law = TableLaw.of_plan(plan.document)
    return Mechanism("optimum", law.matrix(), plan.loss.value, law.laws)


def others(side: int, epsilon: Fraction, prior: Array) -> list[Mechanism]:
    """What people use, calibrated to the same requirement; their tables are rounded to multiples of 2^-53."""
    cells = tuple((Fraction(a + 1), Fraction(b + 1)) for a in range(side) for b in range(side))
    apart = distances(side)
    context = TableContext(cells, cells, epsilon, Neighbours.metric(apart), apart, prior)
    found = [*planar_candidates(context), *response_candidates(context)]
    return [Mechanism(c.name, c.table, context.loss(c.table), rounded(c.table)) for c in found]


def rounded(table: Array) -> tuple[RowLaw, ...]:
    """Laws that can be drawn from exactly, each entry within 2^-53 of the table's."""
    sums = np.cumsum(table, axis=1)
    sums /= sums[:, -1:]
    whole = [[round(v * 2**BITS) for v in row] for row in sums.tolist()]
    return tuple(RowLaw(tuple(row), row[-1]) for row in whole)


def outcome(mechanism: Mechanism, people: CheckIns, repetitions: int, seed: int) -> Outcome:
    """Reports of the check-ins, again and again, and the shares recovered from them."""
    cells, apart = people.number(people.reporting), distances(people.side)
    seen, far = [], []
    for repetition in range(repetitions):
        drawn = mechanism.reports(cells, seed + repetition)
        far.append(float(apart[cells, drawn].mean()))
        seen.append(np.bincount(drawn, minlength=people.side**2).astype(float))
    channel, counts = Channel.of(mechanism.table), np.array(seen)
    shares = {name: estimator.shares(channel, counts, COARSE) for name, estimator in ESTIMATORS.items()}
    variation = {name: mean(np.abs(found - people.truth).sum(axis=1) / 2) for name, found in shares.items()}
    chosen = choose_estimator(channel, people.prior, len(cells), seed, runs=25).estimator
    return Outcome(mechanism, mean(far), variation, chosen, counts[0] / len(cells), shares[chosen][0])


def mean(values: Sequence[float] | Array) -> tuple[float, float]:
    """Mean and its standard error."""
    array = np.asarray(values)
    return float(array.mean()), float(array.std(ddof=1) / len(array) ** 0.5) if len(array) > 1 else 0.0
