"""Valid plans made without compiler or solvers: optimal prefix sums and others small enough to write down."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from privspec.core.gaussian import mu_down
from privspec.core.matrices import DyadicMatrix

Plan = dict[str, Any]

SPEC = """spec totals
parameters:
  epsilon = 1
  delta = 1e-6
variables:
  input x in {domain}
  intermediate y
  output O
background:
  y = {body}
loss:
  {loss}
privacy:
  {privacy}
options:
  trust curator
{options}"""


def digest(plan: Plan) -> str:
    body = {k: v for k, v in plan.items() if k != "digest"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def signed(plan: Plan) -> Plan:
    plan = json.loads(json.dumps(plan))
    plan["digest"] = digest(plan)
    return plan


def spec_json(source: str, name: str = "totals") -> Plan:
    return {
        "name": name,
        "path": f"{name}.priv",
        "sha256": hashlib.sha256(source.encode()).hexdigest(),
        "source": source,
        "parameters": {"epsilon": "1", "delta": "1e-6"},
        "constants": {},
    }


def trust(source: str) -> str:
    """What a plan says of who sees the raw data."""
    nobody = "-LDP" in source or "trust nobody" in source
    alone = "nobody sees another's raw data; each party adds its own noise before it sends anything"
    return f"Trust: {alone if nobody else 'one keeper sees all raw data; everybody else sees only the outputs'}."


def line_of(source: str, text: str) -> int:
    return next(i for i, line in enumerate(source.split("\n"), 1) if text in line)


def decimal_up(value: float) -> str:
    return repr(float(value) * (1 + 1e-14))


def document(
    source: str,
    *,
    loss: float,
    bound: float,
    expression: str,
    among: str,
    family: str,
    sites: list[Any],
    covariance: np.ndarray,
    executed: Plan,
    guarantees: list[Plan],
    binding: list[Plan],
    claims: Plan,
    status: str = "optimal",
) -> Plan:
    return signed(
        {
            "format": "privspec-plan/2.0",
            "spec": spec_json(source),
            "status": status,
            "loss": {
                "value": loss,
                "lower_bound": bound,
                "relative_gap": (loss - bound) / loss,
                "expression": expression,
                "units": "squared units of O",
                "among": among,
                "kind": "expected",
            },
            "alternatives": [{"name": "other", "loss": 2 * loss, "admissible": True, "reason": "more loss"}],
            "mechanism": {
                "family": family,
                "sites": sites,
                "output_covariance": covariance.tolist(),
                "executed": executed,
            },
            "guarantees": guarantees,
            "assumptions": [{"text": trust(source), "status": "assumed", "because": {"line": 3}}],
            "claims": claims,
            "remarks": {
                "binding": binding,
                "solver": {"name": "test", "iterations": 1, "seconds": 0.1, "versions": {}},
            },
        }
    )


def entry_input(n: int) -> Plan:
    return {
        "name": "x",
        "start": 0,
        "stop": n,
        "layout": "entries",
        "lower": "0",
        "upper": "1",
        "grid": "2^-24",
    }


def output(m: int, name: str = "O", start: int = 0) -> Plan:
    return {"name": name, "start": start, "stop": start + m, "shape": [m], "offset": 0}


def guarantee(source: str, text: str, achieved: Plan, **figures: str) -> Plan:
    base = {"outputs": ["O"], "wrt": "x", "neighbours": "replacing one entry", "observer": "anyone"}
    return {
        **base,
        **figures,
        "achieved": achieved,
        "because": ["gaussian-exact"],
        "requirement": 0,
        "line": line_of(source, text),
        "text": text,
    }


def optimal_weights(V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The fixed point of MATH.md, section 2: dual weights, and the Gram matrix of the optimal strategy at mu = 1."""
    weights = np.ones(len(V))
    for _ in range(3000 if len(V) < 32 else 150):
        root = np.sqrt(weights)
        values, vectors = np.linalg.eigh(root[:, None] * V * root[None, :])
        R = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
        weights = np.diag(R).copy()
    X = R / root[:, None] / root[None, :]
    return weights, X / np.max(np.diag(X))


def correlated(n: int = 8) -> Plan:
    """Prefix sums at the optimum over all covariances, (1, 1e-6)-DP."""
    text = "O is (epsilon, delta)-DP wrt x, replacing one entry"
    expression = "E[ ||O - y||^2 ]"
    source = SPEC.format(domain=f"[0, 1]^{n}", body="prefix_sums(x)", loss=expression, privacy=text, options="")
    mu, wider = (float(mu_down(Fraction(e), Fraction(1, 10**6))) for e in ("1", "11/10"))
    A = np.tril(np.ones((n, n)))
    weights, X = optimal_weights(A.T @ A)
    strategy = DyadicMatrix.rounded(np.linalg.cholesky(X).T * mu * (1 - 1e-11), 42)
    B = strategy.to_float()
    L = DyadicMatrix.rounded(A @ np.linalg.inv(B), 48)
    factor = L.to_float()
    covariance = factor @ factor.T
    loss = float(np.sum(factor**2))
    bound = float(np.linalg.norm(A * np.sqrt(weights), "nuc") ** 2 / weights.sum()) / mu**2 * (1 - 1e-8)
    return document(
        source,
        loss=loss,
        bound=bound,
        expression=expression,
        among="Gaussian noise of any covariance, unbiased",
        family="gaussian",
        sites=[{"at": "O", "covariance": "full", "variance": np.diag(covariance).tolist()}],
        covariance=covariance,
        executed={
            "inputs": [entry_input(n)],
            "strategy": strategy.to_json(),
            "noise": {"shape": "gaussian", "standard_deviation": "1"},
            "grid": "2^-30",
            "reconstruction": {"of": "outputs", "matrix": L.to_json()},
            "outputs": [output(n)],
            "output_grid": "2^-20",
            "rounding": "strategy",
            "views": [{"outputs": ["O"], "rows": n}],
        },
        guarantees=[
            guarantee(
                source,
                text,
                {"mu": decimal_up(np.sqrt(np.max(np.sum(B**2, axis=0))))},
                measure="(epsilon, delta)-DP",
                epsilon="1",
                delta="1e-6",
            )
        ],
        binding=[
            {
                "line": line_of(source, text),
                "text": text,
                "change": "epsilon 1 -> 1.1",
                "loss_change": mu**2 / wider**2 - 1,
            }
        ],
        claims={
            "dual": [{"requirement": 0, "differences": [[[i, "1"]] for i in range(n)], "weights": weights.tolist()}],
            "loss_weights": None,
            "scope": "full",
            "lower_bound": bound,
        },
    )


def at_inputs(n: int = 4) -> Plan:
    """Prefix sums with noise at x only, 1-GDP: all that the spec allows."""
    text = "O is 1-GDP wrt x, replacing one entry"
    expression = "E[ ||O - y||^2 ]"
    source = SPEC.format(
        domain=f"[0, 1]^{n}", body="prefix_sums(x)", loss=expression, privacy=text, options="  noise at x\n"
    )
    A = np.tril(np.ones((n, n)))
    strategy = DyadicMatrix(np.eye(n, dtype=np.int64), 0)
    loss, weights = float(np.sum(A**2)), np.sum(A**2, axis=0)
    return document(
        source,
        loss=loss,
        bound=loss * (1 - 1e-9),
        expression=expression,
        among="independent Gaussian noise at x, unbiased",
        family="gaussian",
        sites=[{"at": "x", "variance": [1.0] * n}],
        covariance=A @ A.T,
        executed={
            "inputs": [entry_input(n)],
            "strategy": strategy.to_json(),
            "noise": {"shape": "gaussian", "standard_deviation": "1"},
            "grid": "2^-30",
            "reconstruction": {"of": "inputs", "matrix": strategy.to_json()},
            "outputs": [output(n)],
            "output_grid": "2^-20",
            "views": [{"outputs": ["O"], "rows": n}],
        },
        guarantees=[guarantee(source, text, {"mu": "1"}, measure="mu-GDP", mu="1")],
        binding=[
            {
                "line": line_of(source, text),
                "text": text,
                "change": "mu 1 -> 1.1",
                "loss_change": 1 / 1.21 - 1,
            }
        ],
        claims={
            "dual": [{"requirement": 0, "differences": [[[i, "1"]] for i in range(n)], "weights": weights.tolist()}],
            "loss_weights": None,
            "scope": "sites",
            "lower_bound": loss * (1 - 1e-9),
        },
    )


def laplace(n: int = 4) -> Plan:
    """Counts of a table with discrete Laplace noise, 1-DP; bounded by Hammersley, Chapman and Robbins."""
    text = "O is epsilon-DP wrt x, adding or removing one record"
    expression = "E[ ||O - y||^2 ]"
    source = SPEC.format(domain=f"table(a in 1..{n})", body="histogram(x)", loss=expression, privacy=text, options="")
    eye = DyadicMatrix(np.eye(n, dtype=np.int64), 0)
    variance = 1 / (2 * np.sinh(0.5) ** 2)
    loss, bound = n * variance, n / (4 * np.sinh(0.5) ** 2) * n * (1 - 1e-9) / n
    found = guarantee(source, text, {"epsilon": "1"}, measure="epsilon-DP", epsilon="1")
    found["neighbours"] = "adding or removing one record"
    return document(
        source,
        loss=loss,
        bound=bound,
        expression=expression,
        among="all unbiased mechanisms of the same pure epsilon",
        family="laplace",
        sites=[{"at": "y", "scale": [1.0] * n}],
        covariance=variance * np.eye(n),
        executed={
            "inputs": [
                {
                    "name": "x",
                    "start": 0,
                    "stop": n,
                    "layout": "cells",
                    "attributes": [{"name": "a", "lower": 1, "upper": n}],
                }
            ],
            "strategy": eye.to_json(),
            "noise": {"shape": "laplace", "scale": ["1"] * n},
            "grid": "2^0",
            "reconstruction": {"of": "outputs", "matrix": eye.to_json()},
            "outputs": [output(n)],
            "output_grid": "2^0",
            "views": [{"outputs": ["O"], "rows": n}],
        },
        guarantees=[found],
        binding=[
            {
                "line": line_of(source, text),
                "text": text,
                "change": "epsilon 1 -> 1.1",
                "loss_change": 1 / 1.21 - 1,
            }
        ],
        claims={
            "dual": [{"requirement": 0, "differences": [[[i, "1"]] for i in range(n)], "weights": [1.0] * n}],
            "loss_weights": None,
            "scope": "full",
            "lower_bound": bound,
            "hcr": {"statement": "mu^2 = 4 sinh(epsilon / 2)^2"},
        },
        status="feasible",
    )


def two_views(n: int = 4) -> Plan:
    """Two outputs of one input: the press sees b only, auditors see both; b is a part of what a is made of."""
    source = f"""spec totals
parameters:
  epsilon = 1
  delta = 1e-6
variables:
  input x in [0, 1]^{n}
  output a
  output b
loss:
  E[ ||a - x||^2 ] + E[ ||b - x||^2 ]
privacy:
  b is 0.5-GDP wrt x, replacing one entry, seen by press
  (a, b) is 1-GDP wrt x, replacing one entry
"""
    # z = (x / 2, sqrt(3)/2 x) + N(0, I): b from the first half, a from both
    half = np.eye(n) / 2
    other = np.eye(n) * np.sqrt(0.75) * (1 - 1e-9)
    strategy = DyadicMatrix.rounded(np.vstack([half, other]), 42)
    B = strategy.to_float()
    top, bottom = np.diag(B[:n]), np.diag(B[n:])
    total = top**2 + bottom**2
    L = np.vstack(
        [
            np.hstack([np.diag(top / total), np.diag(bottom / total)]),
            np.hstack([np.diag(1 / top), np.zeros((n, n))]),
        ]
    )
    reconstruction = DyadicMatrix.rounded(L, 48)
    factor = reconstruction.to_float()
    covariance = factor @ factor.T
    loss = float(np.sum(factor**2))
    press, both = (
        "b is 0.5-GDP wrt x, replacing one entry, seen by press",
        ("(a, b) is 1-GDP wrt x, replacing one entry"),
    )
    first = guarantee(source, press, {"mu": "0.5"}, measure="mu-GDP", mu="0.5")
    second = guarantee(source, both, {"mu": "1"}, measure="mu-GDP", mu="1")
    first |= {"outputs": ["b"], "observer": "press"}
    second |= {"outputs": ["a", "b"], "requirement": 1}
    plan = document(
        source,
        loss=loss,
        bound=0.0,
        expression="E[ ||a - x||^2 ] + E[ ||b - x||^2 ]",
        among="Gaussian noise of any covariance, unbiased",
        family="gaussian",
        sites=[{"at": "a", "covariance": "full"}, {"at": "b", "covariance": "full"}],
        covariance=covariance,
        executed={
            "inputs": [entry_input(n)],
            "strategy": strategy.to_json(),
            "noise": {"shape": "gaussian", "standard_deviation": "1"},
            "grid": "2^-30",
            "reconstruction": {"of": "outputs", "matrix": reconstruction.to_json()},
            "outputs": [output(n, "a"), output(n, "b", n)],
            "output_grid": "2^-20",
            "rounding": "strategy",
            "views": [{"outputs": ["b"], "rows": n}, {"outputs": ["a", "b"], "rows": 2 * n}],
        },
        guarantees=[first, second],
        binding=[],
        claims={"dual": [], "loss_weights": None, "scope": "none", "lower_bound": 0.0},
        status="feasible",
    )
    plan["loss"] |= {"lower_bound": None, "relative_gap": None}
    return signed(plan)


# --- tampering ---------------------------------------------------------------------------------------

Path = tuple[str | int, ...]


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value with its path, containers included, the plan itself not."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key), inner
        yield from leaves(inner, (*path, key))


def changed(plan: Plan, path: Path, change: Callable[[Any], Any]) -> Plan:
    """A copy with one value changed; the digest is left as it is."""
    copied = copy.deepcopy(plan)
    place = copied
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = change(place[path[-1]])
    return copied


def removed(plan: Plan, path: Path) -> Plan:
    """A copy without one entry."""
    copied = copy.deepcopy(plan)
    place = copied
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    return copied
