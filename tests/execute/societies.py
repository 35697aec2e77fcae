"""Plans with noise at statistics, without the simulation that chooses among them."""

from __future__ import annotations

from functools import cache
from typing import Any

from privspec.core.spans import Source
from privspec.families.family import Settings
from privspec.families.statistics.family import decided
from privspec.families.statistics.predict import Predicted, Prediction, Way, forbidden, lower, ways
from privspec.kernel.writing import plan_digest
from privspec.model.build import load_model

SPEC = """parameters:
    N = 6
    n = 4
    d = 3
    epsilon = 1
parties: voter in 1..N
variables:
    input V[voter] in l2_ball(1, d)^n
    intermediate beta[voter]
    intermediate society
    output O
background:
    beta[voter] = probit_mle(V[voter], within = l1_ball(2, d))
    society = mean(beta[voter] for voter)
    V ~ thurstone_mosteller(d, n)
loss: E[ disagreement(O, mean(V[voter].weights for voter)) ]
privacy: O is epsilon-DP wrt V, replacing one voter
"""
RECORDS = SPEC.replace("one voter", "one record")
UNBOUNDED = SPEC.replace("l2_ball(1, d)^n", "real^(n, d)")
SUM_POOL = "K-norm l2 noise on the sum of the records at the pool"


@cache
def _documents(spec: str, parameters: tuple[tuple[str, str], ...]) -> dict[str, dict[str, Any]]:
    model = load_model(Source("society.priv", spec), parameters=dict(parameters))
    system = lower(model)

    def document(way: Way) -> dict[str, Any]:
        found = Prediction((Predicted(way, 0.5, 0.01),), 1, system.block.parties, 0.5)
        return decided(model, system, found, Settings(alternatives=False), seconds=0.0).document()

    return {way.name: document(way) for way in ways(system) if not forbidden(system, way)}


def documents(spec: str = SPEC, **parameters: object) -> dict[str, dict[str, Any]]:
    """The plan of every way to make a society's release private, by its name."""
    return _documents(spec, tuple((name, str(value)) for name, value in parameters.items()))


def without_noise(plan: dict[str, Any]) -> dict[str, Any]:
    """The same plan with noise far below a step of the grid: for tests of everything else."""
    tiny = {"shape": "laplace", "parameters": {"scale": "1/1000000000000"}}
    sites = [site | tiny for site in plan["mechanism"]["sites"]]
    changed = {**plan, "mechanism": {**plan["mechanism"], "sites": sites}}
    return {**changed, "digest": plan_digest(changed)}
