"""Real decisions as a stand-in for the Moral Machine: who of two patients should get a kidney (McElfresh et al. 2021).

132 people decided 40 or 41 times between two patients, described by age, drinks a day and dependents. The data stay
where they are; nothing of them is copied or written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from crowds import Array, Source
from privspec.solvers.probit import probit_mle

from privspec.model.priors import Drawn

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "kidney_indecision_study2_strict_d3.csv.gz"
FEATURES = ("age", "drinks_per_day", "dependents")
WIDTHS = np.array([45.0, 4.0, 2.0])
"""Ages are 25 to 70, drinks 1 to 5 a day, dependents 0 to 2 by design of the study: scaling by them reveals nothing."""
HALF = 20


def read_decisions(path: Path = DATA) -> Array:
    """Chosen minus rejected patient, in widths: (132, 40, 3), the first 40 decisions of everybody."""
    table = pl.read_csv(path).sort("voter", "scenario")
    chosen, rejected = (table.select([f"{side}_{name}" for name in FEATURES]).to_numpy() for side in "xz")
    records = (chosen - rejected) / WIDTHS
    voters = table["voter"].to_numpy()
    return np.stack([records[voters == voter][: 2 * HALF] for voter in np.unique(voters)])


def halves(decisions: Array, voters: int, bound: float) -> Source:
    """Some voters, at random; a random half of everybody's decisions is estimated from, the other half is kept back.

    Good is the share of decisions kept back on which released weights agree with the weights of the kept half.
    """

    def draw(random: np.random.Generator) -> tuple[Drawn, Callable[[Array], float]]:
        some = decisions[random.permutation(len(decisions))[:voters]]
        order = random.permuted(np.tile(np.arange(2 * HALF), (voters, 1)), axis=1)[..., None]
        mixed = np.take_along_axis(some, order, axis=1)
        kept = mixed[:, HALF:]
        society = probit_mle(kept, bound).weights.mean(axis=0)
        pairs = kept.reshape(-1, kept.shape[2])
        pairs = pairs[np.abs(pairs).sum(axis=1) > 0]
        choices = pairs @ society > 0

        def good(weights: Array) -> float:
            return float(np.mean((pairs @ weights > 0) == choices))

        return Drawn(mixed[:, :HALF], {}), good

    return draw
