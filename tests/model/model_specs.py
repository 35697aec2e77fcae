"""Specs that tests share: the examples of the language reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.model.build import load_model
from privspec.model.graph import Model

SHOPS = """spec shop_queries
\"\"\"Answer linear questions about 64 shops; each shop's figure is secret.\"\"\"
parameters:
  epsilon = 1.0
  delta = 1e-6
variables:
  input x in [0, 1]^64
  constant A = csv("queries.csv")        # relative to this file; 32 x 64
  constant b in real^32                  # no value here
  intermediate y
  output O
background:
  y = A @ x + b
loss:
  E[ ||O - y||^2 ]
privacy:
  O is (epsilon, delta)-DP wrt x, replacing one entry
options:
  trust curator
  noise at x, y
"""

SHAPING = """variables:
  input x in 1..10
  alpha_is_declared_below
  choose B in law(1..10)
  output z in 1..10
  intermediate estimate
background:
  x ~ uniform
  alpha in (0, 1]
  E[z | x] = alpha * x + (1 - alpha) * E[B]
  E[1/z | x] = alpha / x + (1 - alpha) * E[1/B]
  estimate = (z - (1 - alpha) * E[B]) / alpha
loss: E[ (estimate - x)^2 ]
privacy: z is (1.0, 1e-3)-LDP wrt x
""".replace("  alpha_is_declared_below\n", "")

CROWD = """parameters:
  N = 20
  d = 3
  n = 5
  B = 2
  epsilon = 1
parties: voter in 1..N
variables:
  input V[voter] in l2_ball(1, d)^n
  intermediate beta[voter]
  intermediate society
  output O
background:
  beta[voter] = probit_mle(V[voter], within = l1_ball(B, d))
  society = mean(beta[voter] for voter)
  V ~ thurstone_mosteller(d, n)
loss: E[ disagreement(O, mean(V[voter].weights for voter)) ]
privacy: O is epsilon-DP wrt V, replacing one voter
options: trust curator
"""

DICTATOR = """parameters:
  T = 100
  epsilon = 1
parties: voter in 1..T
variables:
  input vote[voter] in {north, east, south}
  intermediate winner
  output O
background: winner = random_dictator(vote)
loss: worst[ total_variation(O, winner) ]
privacy: O is epsilon-DP wrt vote, replacing one voter
"""

ACCURACY = """variables:
  input x in [0, 1]^64
  choose epsilon in [0, 10]
  constant A = csv("queries.csv")
  intermediate y = A @ x
  output O
accuracy: E[ (O[j] - y[j])^2 ] <= 4 for j in 1..32
loss: epsilon
privacy: O is epsilon-DP wrt x
"""

WHOLE = """components:
  average = spec("average.priv", x = x, epsilon = e1, trust = protocol)
  counts  = spec("counts.priv", x = x, epsilon = e2, trust = protocol)
variables:
  input x in [0, 1]^1000
  choose e1 in [0, inf)
  choose e2 in [0, inf)
  choose protocol in {nobody, secure_sum}
loss: average.loss + 4 * counts.loss + 0.001 * cost(protocol, nobody = 0, secure_sum = 25)
privacy: (average.O, counts.O) is (1, 1e-6)-DP wrt x, replacing one record
"""

PART = """parameters:
  epsilon = 1
variables:
  input x in [0, 1]^1000
  intermediate m = mean(x)
  output O
loss: E[ (O - m)^2 ]
privacy: O is epsilon-DP wrt x, replacing one record
"""

FAIR = """variables:
  input sex in {F, M}
  input income in 1..5
  input x in grid(0, 1, 0.25)
  intermediate y = x
  output O in {yes, no}
fairness:
  O is independent of sex, up to 0.05
  O is independent of sex given income
  O is independent of sex given y = 1
  y is independent of sex given O
  O is 1-Lipschitz wrt x, distance euclidean
privacy: O is 1-DP wrt all inputs
"""

MEASURES = """parameters:
  epsilon = 1
  rho = 0.5
  mu = 1
  order = 2
  eps[voter] = [1, 2, 3]
parties: voter in 1..3
variables:
  input x in [0, 1]^8
  input V[voter] in [-1, 1]^4
  intermediate y = prefix_sums(x)
  intermediate w = mean(V[voter] for voter)
  output O
  output O1
  output O2
  output R
loss: E[ ||O - y||^2 + (O1 - total(x))^2 + sum((O2[j] - y[j])^2 for j in 1..8) + ||R - w||^2 ]
privacy:
  O is epsilon-DP wrt x
  O is (epsilon, 1e-6)-DP wrt x, replacing one entry
  O is rho-zCDP wrt x, adding or removing one record
  O is (order, epsilon)-RDP wrt x
  O is mu-GDP with respect to x, replacing everything
  R is (2 * epsilon)-DP wrt V, replacing one voter
  R is epsilon-DP wrt V, replacing one record
  R is eps[voter]-DP wrt V[voter], replacing one voter
  O is epsilon-metric-DP wrt x, distance euclidean
  O is epsilon-DP wrt x, replacing up to 3 records
  all outputs are (2, 1e-6)-DP wrt all inputs
  (O1, O2) is (2, 1e-6)-DP wrt x, seen by auditors
  O1 is (0.5, 1e-7)-DP wrt x, seen by press
"""

TABLE = """variables:
  input people in table(age in 0..9, sex in {F, M}, ok in {yes, no})
  intermediate counts = marginals(people, 1, {age, sex})
  output O
loss: E[ ||O - counts||^2 ]
privacy: O is 1-GDP wrt people
"""


def queries() -> np.ndarray:
    """The 32 x 64 matrix of the first example."""
    return np.random.default_rng(0).integers(0, 2, (32, 64)).astype(float)


def folder(path: Path) -> Path:
    """Write the files that the examples name."""
    np.savetxt(path / "queries.csv", queries(), delimiter=",", fmt="%d")
    for name in ("average", "counts"):
        (path / f"{name}.priv").write_text(PART)
    return path


def load(text: str, base: Path | None = None, **options: object) -> Model:
    """A model from text."""
    return load_model(Source("t.priv", text), base=base, **options)


def errors(text: str, base: Path | None = None, **options: object) -> dict[str, str]:
    """Messages by code; empty if there is no error. Warnings are left out."""
    try:
        load(text, base, **options)
    except SpecError as error:
        return {d.code: d.message for d in error.diagnostics if d.is_error}
    return {}


def helps(text: str, base: Path | None = None, **options: object) -> dict[str, str]:
    """Help lines by code."""
    try:
        load(text, base, **options)
    except SpecError as error:
        return {d.code: d.help or "" for d in error.diagnostics}
    return {}
