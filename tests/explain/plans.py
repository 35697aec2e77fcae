"""Plans made by hand, small and realistic, in the form of the plan file; no compiler, no solver."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspec.core.matrices import DyadicMatrix

from .judged import explain

Plan = dict[str, Any]

PREFIX_SOURCE = '''spec prefix_sums
"""64 running totals of a secret series in [0, 1]^64"""
parameters:
  epsilon = 1.0
  delta = 1e-6
variables:
  input x in [0, 1]^64
  intermediate y
  output O
background:
  y = prefix_sums(x)
loss:
  E[ ||O - y||^2 ]
privacy:
  O is (epsilon, delta)-DP wrt x, replacing one entry
options:
  trust curator
'''

HISTOGRAM_SOURCE = '''spec histogram
"""How many people fall into each of ten age groups"""
parameters:
  epsilon = 1
variables:
  input people in table(age in 0..9)
  intermediate counts = histogram(people)
  output O
loss: E[ ||O - counts||^2 ]
privacy: O is epsilon-DP wrt people, adding or removing one record
'''

OBSERVERS_SOURCE = '''spec two_observers
"""Quarterly totals for the press, monthly totals for the auditors"""
variables:
  input x in [0, 10]^12
  intermediate quarters = Q @ x
  intermediate months = x
  constant Q in real^(4, 12)
  output press_release
  output audit_file
loss:
  E[ ||press_release - quarters||^2 ] + E[ ||audit_file - months||^2 ]
privacy:
  press_release is (0.5, 1e-7)-DP wrt x, replacing one entry, seen by press
  (press_release, audit_file) is (2, 1e-6)-DP wrt x, replacing one entry, seen by auditors
options:
  trust curator
  noise at press_release, audit_file
'''


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The exact delta(epsilon) of a Gaussian release (Balle & Wang 2018), for moderate epsilon."""

    def phi(t: float) -> float:
        return 0.5 * math.erfc(-t / math.sqrt(2))

    return phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu that is (epsilon, delta)-DP, by bisection."""
    low, high = 1e-9, 50.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(epsilon, middle) <= delta else (low, middle)
    return low


def made_once(make: Callable[..., Plan]) -> Callable[..., Plan]:
    """The same plan made once; each caller gets a copy of its own to change."""
    known = lru_cache(lambda *given: json.dumps(make(*given)))

    @wraps(make)
    def copied(*given: Any) -> Plan:
        found: Plan = json.loads(known(*given))
        return found

    return copied


@lru_cache
def explained(name: str, reader: str, form: str) -> str:
    """A page of one of the plans below as it is, made once for all tests."""
    return explain(globals()[name](), reader, form)


def finished(plan: Plan) -> Plan:
    """The plan with its digest, after a round trip through JSON."""
    text = json.dumps(plan, sort_keys=True, separators=(",", ":"))
    return {**json.loads(text), "digest": hashlib.sha256(text.encode()).hexdigest()}


def _spec(name: str, source: str, parameters: dict[str, str]) -> Plan:
    digest = hashlib.sha256(source.encode()).hexdigest()
    return {
        "name": name,
        "sha256": digest,
        "source": source,
        "path": f"{name}.priv",
        "parameters": parameters,
        "constants": {},
    }


def _best_covariance(target: NDArray[np.float64]) -> NDArray[np.float64]:
    """The Gaussian covariance of least trace at mu = 1, replacing one unit entry (a fixed point)."""
    n = target.shape[1]
    weights = np.ones(n)
    gram = target.T @ target
    for _ in range(400):
        root = np.sqrt(weights)
        values, vectors = np.linalg.eigh(root[:, None] * gram * root)
        middle = (vectors * np.sqrt(np.clip(values, 0, None))) @ vectors.T
        weights = np.diag(middle).copy()
    root = np.sqrt(weights)
    inner = middle / root[:, None] / root  # the optimal B'B
    return np.asarray(target @ np.linalg.inv(inner) @ target.T)


@made_once
def prefix_sums(n: int = 64) -> Plan:
    """Running totals under (1, 1e-6)-DP with any covariance at a curator."""
    mu = gaussian_mu(1.0, 1e-6)
    target = np.tril(np.ones((n, n)))
    covariance = _best_covariance(target) / mu**2
    factor = np.linalg.cholesky(covariance)
    strategy = DyadicMatrix.rounded(np.linalg.solve(factor, target))
    loss = float(np.trace(covariance))
    paper = (2 * math.log(1.25 / 1e-6)) * mu**2  # variance ratio of the paper's calibration
    return finished(
        {
            "format": "privspec-plan/2.0",
            "spec": _spec("prefix_sums", PREFIX_SOURCE, {"epsilon": "1", "delta": "1e-6"}),
            "status": "optimal",
            "loss": {
                "value": loss,
                "lower_bound": loss * (1 - 4e-10),
                "relative_gap": 4e-10,
                "expression": "E[ ||O - y||^2 ]",
                "units": "squared units of y",
                "among": "Gaussian noise of any covariance, unbiased",
                "kind": "expected",
            },
            "alternatives": [
                {
                    "name": "noise on each input",
                    "loss": n * (n + 1) / 2 / mu**2,
                    "admissible": True,
                    "reason": "more noise for the same guarantee",
                },
                {
                    "name": "noise on each answer",
                    "loss": n * n / mu**2,
                    "admissible": True,
                    "reason": "more noise for the same guarantee",
                },
                {
                    "name": "the paper's calibration, on each input",
                    "loss": n * (n + 1) / 2 / mu**2 * paper,
                    "admissible": True,
                    "reason": "sigma = sqrt(2 ln(1.25/delta))/epsilon, which is larger than needed here",
                },
            ],
            "mechanism": {
                "family": "gaussian",
                "sites": [{"at": "O", "covariance": "full"}],
                "output_covariance": covariance.tolist(),
                "executed": {
                    "inputs": [
                        {
                            "name": "x",
                            "start": 0,
                            "stop": n,
                            "layout": "entries",
                            "lower": "0",
                            "upper": "1",
                            "grid": "2^-24",
                        }
                    ],
                    "strategy": strategy.to_json(),
                    "noise": {"shape": "gaussian", "standard_deviation": "1"},
                    "grid": "2^-30",
                    "reconstruction": {"of": "outputs", "matrix": DyadicMatrix.rounded(factor).to_json()},
                    "outputs": [{"name": "O", "start": 0, "stop": n, "shape": [n], "offset": [0.0] * n}],
                    "output_grid": "2^-20",
                    "views": [{"outputs": ["O"], "rows": n}],
                },
            },
            "guarantees": [
                {
                    "outputs": ["O"],
                    "wrt": "x",
                    "neighbours": "replacing one entry",
                    "observer": "anyone",
                    "measure": "(epsilon, delta)-DP",
                    "epsilon": "1",
                    "delta": "1e-6",
                    "achieved": {"mu": f"{mu + 1e-12:.15f}"},
                    "because": ["gaussian-exact", "post-processing"],
                    "line": 15,
                    "text": "O is (epsilon, delta)-DP wrt x, replacing one entry",
                    "requirement": 0,
                }
            ],
            "assumptions": [
                {"text": "the curator sees the raw data", "status": "assumed", "because": {"line": 17}},
                {
                    "text": "values of x outside [0, 1] are clipped to it before anything else",
                    "status": "tested",
                    "because": {"line": 7},
                },
                {
                    "text": "no other Gaussian covariance that is unbiased has a smaller loss",
                    "status": "proved",
                    "because": {"note": "placement"},
                },
            ],
            "claims": {
                "dual": [],
                "loss_weights": None,
                "scope": "full",
                "lower_bound": loss * (1 - 4e-10),
            },
            "remarks": {
                "binding": [
                    {
                        "line": 15,
                        "text": "O is (epsilon, delta)-DP wrt x, replacing one entry",
                        "change": "epsilon 1 -> 1.1",
                        "loss_change": (gaussian_mu(1.0, 1e-6) / gaussian_mu(1.1, 1e-6)) ** 2 - 1,
                    }
                ],
                "solver": {
                    "name": "fixed-point",
                    "iterations": 37,
                    "seconds": 0.3,
                    "versions": {"privspec": "0.1.0"},
                },
            },
        }
    )


@made_once
def histogram() -> Plan:
    """Ten counts under 1-DP with discrete Laplace noise, adding or removing one record."""
    n = 10
    ratio = math.exp(-1)
    variance = 2 * ratio / (1 - ratio) ** 2
    identity = DyadicMatrix.rounded(np.eye(n)).to_json()
    return finished(
        {
            "format": "privspec-plan/2.0",
            "spec": _spec("histogram", HISTOGRAM_SOURCE, {"epsilon": "1"}),
            "status": "feasible",
            "loss": {
                "value": n * variance,
                "lower_bound": 9.2067,
                "relative_gap": 0.5,
                "expression": "E[ ||O - counts||^2 ]",
                "units": "squared units of counts",
                "among": "all unbiased mechanisms of the same pure epsilon",
                "kind": "expected",
            },
            "alternatives": [
                {
                    "name": "k-norm noise",
                    "loss": 90.0,
                    "admissible": True,
                    "reason": "more noise for the same guarantee",
                }
            ],
            "mechanism": {
                "family": "laplace",
                "sites": [{"at": "counts", "scale": [1.0] * n}],
                "output_covariance": (variance * np.eye(n)).tolist(),
                "executed": {
                    "inputs": [
                        {
                            "name": "people",
                            "start": 0,
                            "stop": n,
                            "layout": "cells",
                            "lower": "0",
                            "upper": "inf",
                            "grid": "1",
                        }
                    ],
                    "strategy": identity,
                    "noise": {"shape": "laplace", "scale": ["1"] * n},
                    "grid": "1",
                    "reconstruction": {"of": "outputs", "matrix": identity},
                    "outputs": [{"name": "O", "start": 0, "stop": n, "shape": [n], "offset": [0.0] * n}],
                    "output_grid": "1",
                    "views": [{"outputs": ["O"], "rows": n}],
                },
            },
            "guarantees": [
                {
                    "outputs": ["O"],
                    "wrt": "people",
                    "neighbours": "adding or removing one record",
                    "observer": "anyone",
                    "measure": "epsilon-DP",
                    "epsilon": "1",
                    "achieved": {"epsilon": "1"},
                    "because": ["laplace", "post-processing"],
                    "line": 10,
                    "text": "O is epsilon-DP wrt people, adding or removing one record",
                    "requirement": 0,
                }
            ],
            "assumptions": [
                {
                    "text": "the curator sees the raw data",
                    "status": "assumed",
                    "because": {"note": "trust-by-default"},
                },
            ],
            "claims": {
                "dual": [],
                "scope": "sites",
                "lower_bound": 9.2067,
                "hcr": {"mu_squared": "1.0861613"},
            },
            "remarks": {
                "binding": [
                    {
                        "line": 10,
                        "text": "O is epsilon-DP wrt people, adding or removing one record",
                        "change": "epsilon 1 -> 1.1",
                        "loss_change": 1 / 1.21 - 1,
                    }
                ],
                "solver": {
                    "name": "laplace",
                    "iterations": 12,
                    "seconds": 0.02,
                    "versions": {"privspec": "0.1.0"},
                },
            },
        }
    )


@made_once
def two_observers() -> Plan:
    """Two outputs; what the press sees is the first block of strategy rows, the auditors see all of them."""
    press, both = gaussian_mu(0.5, 1e-7), gaussian_mu(2.0, 1e-6)
    quarters = np.kron(np.eye(4), np.ones((1, 3)))
    months = np.eye(12)
    first = quarters * (press / 10)
    rest = months * (math.sqrt(both**2 - press**2) / 10)
    strategy = np.vstack([first, rest])
    precision = first.T @ first + rest.T @ rest
    back = np.linalg.solve(precision, strategy.T)  # months from everything
    matrix = np.vstack([np.hstack([np.eye(4) * (10 / press), np.zeros((4, 12))]), back])
    covariance = matrix @ matrix.T
    loss = float(np.trace(covariance))
    line = "  {} is {}-DP wrt x, replacing one entry, seen by {}"
    return finished(
        {
            "format": "privspec-plan/2.0",
            "spec": _spec("two_observers", OBSERVERS_SOURCE, {}),
            "status": "feasible",
            "loss": {
                "value": loss,
                "lower_bound": loss * 0.97,
                "relative_gap": 0.03,
                "expression": "E[ ||press_release - quarters||^2 ] + E[ ||audit_file - months||^2 ]",
                "units": "squared units of x",
                "among": "Gaussian noise at the given sites, unbiased",
                "kind": "expected",
            },
            "alternatives": [],
            "mechanism": {
                "family": "gaussian",
                "sites": [
                    {"at": "press_release", "variance": [100 / press**2] * 4},
                    {"at": "audit_file", "variance": [float(v) for v in np.diag(covariance)[4:]]},
                ],
                "output_covariance": covariance.tolist(),
                "executed": {
                    "inputs": [
                        {
                            "name": "x",
                            "start": 0,
                            "stop": 12,
                            "layout": "entries",
                            "lower": "0",
                            "upper": "10",
                            "grid": "2^-24",
                        }
                    ],
                    "strategy": DyadicMatrix.rounded(strategy).to_json(),
                    "noise": {"shape": "gaussian", "standard_deviation": "1"},
                    "grid": "2^-30",
                    "reconstruction": {"of": "outputs", "matrix": DyadicMatrix.rounded(matrix).to_json()},
                    "outputs": [
                        {"name": "press_release", "start": 0, "stop": 4, "shape": [4], "offset": [0.0] * 4},
                        {"name": "audit_file", "start": 4, "stop": 16, "shape": [12], "offset": [0.0] * 12},
                    ],
                    "output_grid": "2^-20",
                    "views": [
                        {"outputs": ["press_release"], "rows": 4},
                        {"outputs": ["press_release", "audit_file"], "rows": 16},
                    ],
                },
            },
            "guarantees": [
                {
                    "outputs": ["press_release"],
                    "wrt": "x",
                    "neighbours": "replacing one entry",
                    "observer": "press",
                    "measure": "(epsilon, delta)-DP",
                    "epsilon": "1/2",
                    "delta": "1e-7",
                    "achieved": {"mu": f"{press + 1e-12:.15f}"},
                    "because": ["gaussian-exact", "post-processing"],
                    "line": 13,
                    "text": line.format("press_release", "(0.5, 1e-7)", "press").strip(),
                    "requirement": 0,
                },
                {
                    "outputs": ["press_release", "audit_file"],
                    "wrt": "x",
                    "neighbours": "replacing one entry",
                    "observer": "auditors",
                    "measure": "(epsilon, delta)-DP",
                    "epsilon": "2",
                    "delta": "1e-6",
                    "achieved": {"mu": f"{both + 1e-9:.15f}"},
                    "because": ["gaussian-exact", "post-processing"],
                    "line": 14,
                    "text": line.format("(press_release, audit_file)", "(2, 1e-6)", "auditors").strip(),
                    "requirement": 1,
                },
            ],
            "assumptions": [{"text": "the curator sees the raw data", "status": "assumed", "because": {"line": 16}}],
            "claims": {"dual": [], "loss_weights": None, "scope": "sites", "lower_bound": loss * 0.97},
            "remarks": {
                "binding": [
                    {
                        "line": 14,
                        "text": line.format("(press_release, audit_file)", "(2, 1e-6)", "auditors").strip(),
                        "change": "epsilon 2 -> 2.2",
                        "loss_change": -0.11,
                    }
                ],
                "solver": {
                    "name": "barrier",
                    "iterations": 41,
                    "seconds": 0.06,
                    "versions": {"privspec": "0.1.0"},
                },
            },
        }
    )
