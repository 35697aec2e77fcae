"""Valid plans that draw from tables, made without compiler and solvers: closed forms, and duals of plain programs.

Tables are written down from formulas with a rational ratio just below e^epsilon. Multipliers are worked out by hand,
or are those of the whole linear program laid out here row by row and solved by scipy.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from math import comb, inf, nextafter
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

from tests.certify.plans import trust

Plan = dict[str, Any]
Table = list[list[Fraction]]
Entry = tuple[int, int, int, float]

HALF, ONE = Fraction(1, 2), Fraction(1)


def e_to(epsilon: Fraction) -> Fraction:
    """A rational within 1e-48 of e^epsilon, relatively: decimal arithmetic of 50 digits."""
    context = Context(prec=50)
    return Fraction(context.exp(context.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))))


def ratio(epsilon: Fraction | int) -> Fraction:
    """The largest multiple of 2^-64 that is below e^epsilon."""
    return Fraction(int(e_to(Fraction(epsilon)) * 2**64), 2**64)


def up(value: Fraction) -> float:
    near = float(value)
    return near if Fraction(near) >= value else nextafter(near, inf)


def digest(plan: Plan) -> str:
    body = {k: v for k, v in plan.items() if k != "digest"}
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def signed(plan: Plan) -> Plan:
    plan = json.loads(json.dumps(plan))
    plan["digest"] = digest(plan)
    return plan


def line_of(source: str, text: str) -> int:
    return next(i for i, line in enumerate(source.split("\n"), 1) if line.strip() == text)


# --- the document -------------------------------------------------------------------------------------


def guarantee(source: str, index: int, text: str, achieved: dict[str, str], **about: Any) -> Plan:
    return {
        "outputs": ["z"],
        "wrt": "x",
        "neighbours": "replacing everything",
        "observer": "anyone",
        "measure": "epsilon-LDP",
        **about,
        "achieved": achieved,
        "because": ["tables"],
        "requirement": index,
        "line": line_of(source, text),
        "text": text,
    }


def document(
    source: str,
    *,
    of: list[str],
    releases: list[str],
    inputs: list[Any],
    outputs: list[Any],
    prior: Sequence[Fraction] | None,
    table: Table,
    loss: Fraction,
    bound: float | None,
    expression: str,
    guarantees: list[Plan],
    dual: Plan,
    kind: str = "expected",
    counted: list[str] | None = None,
    scalars: dict[str, str] | None = None,
    laws: dict[str, dict[str, str]] | None = None,
) -> Plan:
    value = up(loss)
    gap = None if bound is None else (value - bound) / abs(value) if value else 0.0
    return signed(
        {
            "format": "privspec-plan/2.0",
            "spec": {
                "name": "by_hand",
                "path": "by_hand.priv",
                "sha256": hashlib.sha256(source.encode()).hexdigest(),
                "source": source,
                "parameters": {},
                "constants": {},
            },
            "status": "optimal" if gap is not None and gap <= 1e-6 else "feasible",
            "loss": {
                "value": value,
                "lower_bound": bound,
                "relative_gap": gap,
                "expression": expression,
                "units": "units of the loss expression",
                "among": f"all tables Pr({', '.join(releases)} | {', '.join(of)})",
                "kind": kind,
            },
            "alternatives": [{"name": "other", "loss": 2 * value, "admissible": True, "reason": "more loss"}],
            "mechanism": {
                "family": "table",
                "of": of,
                "counted": counted or [],
                "releases": releases,
                "inputs": inputs,
                "outputs": outputs,
                "prior": None if prior is None else [str(p) for p in prior],
                "probabilities": [[str(p) for p in row] for row in table],
                "scalars": scalars or {},
                "laws": laws or {},
            },
            "guarantees": guarantees,
            "accuracy": [],
            "assumptions": [{"text": trust(source), "status": "assumed", "because": {"line": 2}}],
            "claims": {"kind": "table", "scope": "tables", "lower_bound": bound, "dual": dual},
            "remarks": {
                "recognised": None,
                "binding": [],
                "solver": {"name": "by hand", "iterations": 1, "seconds": 0.1, "versions": {}},
            },
        }
    )


def blocks(*privacy: Plan, rows: dict[str, float] | None = None, weights: list[float] | None = None) -> Plan:
    return {"privacy": list(privacy), "rows": rows or {}, "loss_weights": weights}


def pairs(index: int, entries: Sequence[Entry]) -> Plan:
    return {"requirement": index, "form": "pairs", "entries": [list(entry) for entry in entries]}


# --- tables from formulas -----------------------------------------------------------------------------


def randomised_response(k: int, r: Fraction) -> Table:
    rest = 1 / (r + k - 1)
    return [[r * rest if x == y else rest for y in range(k)] for x in range(k)]


def geometric(n: int, r: Fraction) -> Table:
    """The truncated geometric mechanism on 0..n: every ratio of neighbours is r or 1 / r."""
    a = 1 / r

    def chance(x: int, y: int) -> Fraction:
        if y in (0, n):
            return a ** abs(x - y) / (1 + a)
        return (1 - a) / (1 + a) * a ** abs(x - y)

    return [[chance(x, y) for y in range(n + 1)] for x in range(n + 1)]


def remapped(table: Table, cost: np.ndarray) -> Table:
    """Each output replaced by the best guess under the costs (which hold the prior)."""
    size = len(table[0])
    best = []
    for y in range(size):
        posterior = [
            sum((Fraction(cost[x][o]) * row[y] for x, row in enumerate(table)), Fraction(0)) for o in range(size)
        ]
        best.append(posterior.index(min(posterior)))
    return [[sum((row[y] for y in range(size) if best[y] == o), Fraction(0)) for o in range(size)] for row in table]


def expected(prior: Sequence[Fraction], table: Table, cost: Callable[[int, int], Fraction]) -> Fraction:
    return sum(
        (p * f * cost(x, y) for x, (p, row) in enumerate(zip(prior, table, strict=True)) for y, f in enumerate(row)),
        Fraction(0),
    )


# --- the whole program, row by row --------------------------------------------------------------------


class Line(NamedTuple):
    """A linear row of the program, by the name under which certificates list its multiplier."""

    name: str
    table: np.ndarray
    scalars: dict[str, float]
    bound: float
    equality: bool


def multipliers(
    cost: np.ndarray,
    compared: Sequence[tuple[int, Sequence[tuple[int, int, float]], Sequence[int]]],
    lines: Sequence[Line] = (),
    scalars: dict[str, tuple[float, float]] | None = None,
) -> tuple[float, Plan]:
    """The optimum and its multipliers: for each requirement its pairs (a, b, epsilon), and what its observer sees.

    `scalars`: ranges of further unknowns.
    """
    ranges = scalars or {}
    inputs, outputs = cost.shape
    entries = inputs * outputs
    above: list[np.ndarray] = []
    names: list[tuple[int, int, int, int]] = []
    for index, ratios, view in compared:
        for a, b, epsilon in ratios:
            for shown in range(max(view) + 1):
                row = np.zeros((inputs, outputs))
                members = [y for y in range(outputs) if view[y] == shown]
                row[a, members] = 1
                row[b, members] -= np.exp(epsilon)
                above.append(np.concatenate([row.ravel(), np.zeros(len(ranges))]))
                names.append((index, a, b, shown))

    def laid_out(line: Line) -> np.ndarray:
        return np.concatenate([np.asarray(line.table, dtype=float).ravel(), [line.scalars.get(n, 0.0) for n in ranges]])

    sums = np.hstack([np.kron(np.eye(inputs), np.ones(outputs)), np.zeros((inputs, len(ranges)))])
    equal, other = ([line for line in lines if line.equality is wanted] for wanted in (True, False))
    found = linprog(
        np.concatenate([np.asarray(cost, dtype=float).ravel(), np.zeros(len(ranges))]),
        A_ub=np.array(above + [laid_out(line) for line in other]),
        b_ub=np.array([0.0] * len(above) + [line.bound for line in other]),
        A_eq=np.vstack([sums, *[laid_out(line)[None] for line in equal]]),
        b_eq=np.array([1.0] * inputs + [line.bound for line in equal]),
        bounds=[(0, None)] * entries + list(ranges.values()),
    )
    assert found.success
    z = -found.ineqlin.marginals
    listed = [
        pairs(index, [(a, b, s, float(v)) for (i, a, b, s), v in zip(names, z, strict=False) if i == index and v > 0])
        for index, _, _ in compared
    ]
    rows = {line.name: max(0.0, float(v)) for line, v in zip(other, z[len(above) :], strict=True)}
    rows |= {line.name: float(v) for line, v in zip(equal, found.eqlin.marginals[inputs:], strict=True)}
    return float(found.fun), blocks(*listed, rows=rows)


# --- plans --------------------------------------------------------------------------------------------


@cache
def k_rr(k: int = 4) -> Plan:
    """k-randomised response, optimal for the probability of a lie: multipliers by hand."""
    text = "z is 1-LDP wrt x"
    expression = "E[ mismatch(z, x) ]"
    values = [str(i) for i in range(1, k + 1)]
    source = f"""spec by_hand
variables:
  input x in 1..{k}
  output z in 1..{k}
background:
  x ~ uniform
loss:
  {expression}
privacy:
  {text}
"""
    r = ratio(1)
    above = (k - 1) / (k - 1 + float(r)) / k
    below = float(r) * above / (k - 1)
    complete = {
        "requirement": 0,
        "form": "complete",
        "below": [[a, s, below] for a in range(k) for s in range(k) if a != s],
        "above": [[s, s, above] for s in range(k)],
    }
    return document(
        source,
        of=["x"],
        releases=["z"],
        inputs=values,
        outputs=values,
        prior=[Fraction(1, k)] * k,
        table=randomised_response(k, r),
        loss=(k - 1) / (r + k - 1),
        bound=(k - 1) / (k - 1 + float(r)) * (1 - 1e-12),
        expression=expression,
        guarantees=[guarantee(source, 0, text, {"epsilon": "1"}, epsilon="1")],
        dual=blocks(complete),
    )


@cache
def worst_case(k: int = 3) -> Plan:
    """The same table for the worst input: its loss is the same at each, and so are the weights."""
    plan = json.loads(json.dumps(k_rr(k)))
    expression = "worst[ mismatch(z, x) ]"
    source = (
        plan["spec"]["source"].replace("E[ mismatch(z, x) ]", expression).replace("background:\n  x ~ uniform\n", "")
    )
    plan["spec"] |= {"source": source, "sha256": hashlib.sha256(source.encode()).hexdigest()}
    plan["loss"] |= {"expression": expression, "kind": "worst"}
    plan["mechanism"]["prior"] = None
    plan["guarantees"][0]["line"] = line_of(source, plan["guarantees"][0]["text"])
    plan["claims"]["dual"]["loss_weights"] = [1.0] * k
    return signed(plan)


@cache
def count(n: int = 4) -> Plan:
    """How many of n said yes: the truncated geometric mechanism and a best guess, on the chain of counts."""
    text = "z is 0.5-DP wrt x, replacing one record"
    expression = "E[ |z - total| ]"
    values = [str(i) for i in range(n + 1)]
    source = f"""spec by_hand
variables:
  input x in {{0, 1}}^{n}
  intermediate total
  output z in 0..{n}
background:
  total = sum(x)
  x ~ bernoulli(0.5)
loss:
  {expression}
privacy:
  {text}
"""
    prior = [Fraction(comb(n, i), 2**n) for i in range(n + 1)]
    cost = np.array([[prior[x] * abs(x - y) for y in range(n + 1)] for x in range(n + 1)], dtype=object)
    table = remapped(geometric(n, ratio(HALF)), cost)
    chain = [(a, b, 0.5) for a in range(n + 1) for b in (a - 1, a + 1) if 0 <= b <= n]
    optimum, dual = multipliers(cost, [(0, chain, list(range(n + 1)))])
    about = {"neighbours": "replacing one record", "measure": "epsilon-DP", "epsilon": "0.5"}
    return document(
        source,
        of=["total"],
        releases=["z"],
        inputs=values,
        outputs=values,
        prior=prior,
        table=table,
        loss=expected(prior, table, lambda x, y: Fraction(abs(x - y))),
        bound=optimum * (1 - 1e-9),
        expression=expression,
        guarantees=[guarantee(source, 0, text, {"epsilon": "0.5"}, **about)],
        dual=dual,
    )


@cache
def two_observers(n: int = 2) -> Plan:
    """A sees one geometric answer, B an independent second one too: B's epsilon is the sum."""
    first, both = (
        "u is 0.5-DP wrt x, replacing one record, seen by A",
        "(u, v) is 1-DP wrt x, replacing one record, seen by B",
    )
    expression = "E[ |u - total| ] + E[ |v - total| ]"
    source = f"""spec by_hand
variables:
  input x in {{0, 1}}^{n}
  intermediate total
  output u in 0..{n}
  output v in 0..{n}
background:
  total = sum(x)
  total ~ uniform
loss:
  {expression}
privacy:
  {first}
  {both}
"""
    size = n + 1
    single = geometric(n, ratio(HALF))
    table = [[row[u] * row[v] for u in range(size) for v in range(size)] for row in single]
    prior = [Fraction(1, size)] * size
    costs = [[abs(u - x) + abs(v - x) for u in range(size) for v in range(size)] for x in range(size)]
    chain = [(a, b) for a in range(size) for b in (a - 1, a + 1) if 0 <= b < size]
    seen = [u for u in range(size) for _ in range(size)]
    optimum, dual = multipliers(
        np.array(costs, dtype=float) / size,
        [(0, [(a, b, 0.5) for a, b in chain], seen), (1, [(a, b, 1.0) for a, b in chain], list(range(size**2)))],
    )
    about = {"neighbours": "replacing one record", "measure": "epsilon-DP"}
    return document(
        source,
        of=["total"],
        releases=["u", "v"],
        inputs=[str(i) for i in range(size)],
        outputs=[[str(u), str(v)] for u in range(size) for v in range(size)],
        prior=prior,
        table=table,
        loss=expected(prior, table, lambda x, y: Fraction(costs[x][y])),
        bound=optimum * (1 - 1e-9),
        expression=expression,
        guarantees=[
            guarantee(source, 0, first, {"epsilon": "0.5"}, **about, epsilon="0.5", outputs=["u"], observer="A"),
            guarantee(source, 1, both, {"epsilon": "1"}, **about, epsilon="1", outputs=["u", "v"], observer="B"),
        ],
        dual=dual,
    )


@cache
def metric_line(n: int = 4) -> Plan:
    """Numbers from -1 in steps of 1/4, told apart the better the farther they are apart."""
    text = "z is 2-metric-DP wrt x, distance euclidean"
    expression = "E[ |z - x| ]"
    points = [Fraction(i, 4) - 1 for i in range(n + 1)]
    source = f"""spec by_hand
variables:
  input x in grid(-1, {points[-1]}, 0.25)
  output z in grid(-1, {points[-1]}, 0.25)
background:
  x ~ uniform
loss:
  {expression}
privacy:
  {text}
"""
    prior = [Fraction(1, n + 1)] * (n + 1)
    cost = np.array([[abs(a - b) / (n + 1) for b in points] for a in points], dtype=object)
    table = remapped(geometric(n, ratio(HALF)), cost)
    compared = [(a, b, abs(a - b) / 2) for a in range(n + 1) for b in range(n + 1) if a != b]
    optimum, dual = multipliers(cost, [(0, compared, list(range(n + 1)))])
    labels = [repr(float(p)).removesuffix(".0") for p in points]
    return document(
        source,
        of=["x"],
        releases=["z"],
        inputs=labels,
        outputs=labels,
        prior=prior,
        table=table,
        loss=expected(prior, table, lambda x, y: abs(points[x] - points[y])),
        bound=optimum * (1 - 1e-9),
        expression=expression,
        guarantees=[guarantee(source, 0, text, {"epsilon": "2"}, measure="epsilon-metric-DP", epsilon="2")],
        dual=dual,
    )


@cache
def with_delta() -> Plan:
    """A bit with (1, 1/8)-LDP: tight, multipliers by hand."""
    text = "z is (1, 0.125)-LDP wrt x"
    expression = "E[ mismatch(z, x) ]"
    source = f"""spec by_hand
variables:
  input x in {{no, yes}}
  output z in {{no, yes}}
background:
  x ~ uniform
loss:
  {expression}
privacy:
  {text}
"""
    r, delta = ratio(1), Fraction(1, 8)
    truth = (r + delta) / (1 + r)
    z = 0.5 / (1 + float(r))
    about = {"measure": "(epsilon, delta)-LDP", "epsilon": "1", "delta": "0.125"}
    return document(
        source,
        of=["x"],
        releases=["z"],
        inputs=["no", "yes"],
        outputs=["no", "yes"],
        prior=[HALF, HALF],
        table=[[truth, 1 - truth], [1 - truth, truth]],
        loss=1 - truth,
        bound=float(1 - truth) * (1 - 1e-12),
        expression=expression,
        guarantees=[guarantee(source, 0, text, {"epsilon": "1", "delta": "0.125"}, **about)],
        dual=blocks(pairs(0, [(0, 1, 0, z), (1, 0, 1, z)])),
    )


@cache
def moments(k: int = 4) -> Plan:
    """k-randomised response keeps every power mean: with probability alpha the truth, else a uniform draw."""
    text = "z is 1-LDP wrt x"
    expression = "E[ (z - x)^2 ]"
    values = [str(i) for i in range(1, k + 1)]
    source = f"""spec by_hand
variables:
  input x in 1..{k}
  choose alpha in (0, 1]
  choose B in law(1..{k})
  output z in 1..{k}
background:
  x ~ uniform
  E[z | x] = alpha * x + (1 - alpha) * E[B]
  E[1/z | x] = alpha / x + (1 - alpha) * E[1/B]
  alpha >= 0.1
loss:
  {expression}
accuracy:
  E[ mismatch(z, x) ] <= 0.6
privacy:
  {text}
"""
    r = ratio(1)
    table = randomised_response(k, r)
    alpha = (r - 1) / (r + k - 1)
    prior = [Fraction(1, k)] * k
    first = line_of(source, "E[z | x] = alpha * x + (1 - alpha) * E[B]")
    lines = [
        Line("law:B", np.zeros((k, k)), {"alpha": 1.0} | {f"B:{v}": 1.0 for v in values}, 1.0, True),
        Line(f"accuracy:{first + 6}", (1 - np.eye(k)) / k, {}, 0.6, False),
    ]
    for x in range(k):
        for power, number in ((1, first), (-1, first + 1)):
            powers = np.arange(1.0, k + 1) ** power
            at = np.zeros((k, k))
            at[x] = powers
            masses = {f"B:{v}": -float(p) for v, p in zip(values, powers, strict=True)}
            lines.append(Line(f"condition:{number}:{x}", at, masses | {"alpha": -float(powers[x])}, 0.0, True))
        lines.append(Line(f"condition:{first + 2}:{x}", np.zeros((k, k)), {"alpha": -1.0}, -0.1, False))
    cost = np.array([[(x - y) ** 2 / k for y in range(k)] for x in range(k)])
    compared = [(a, b, 1.0) for a in range(k) for b in range(k) if a != b]
    ranges = {"alpha": (0.0, 1.0)} | {f"B:{v}": (0.0, 1.0) for v in values}
    optimum, dual = multipliers(cost, [(0, compared, list(range(k)))], lines, ranges)
    return document(
        source,
        of=["x"],
        releases=["z"],
        inputs=values,
        outputs=values,
        prior=prior,
        table=table,
        loss=expected(prior, table, lambda x, y: Fraction((x - y) ** 2)),
        bound=optimum * (1 - 1e-9),
        expression=expression,
        guarantees=[guarantee(source, 0, text, {"epsilon": "1"}, epsilon="1")],
        dual=dual,
        scalars={"alpha": str(alpha)},
        laws={"B": dict.fromkeys(values, str(Fraction(1, k)))},
    )


@cache
def fair() -> Plan:
    """Two groups, and a bit that is answered by randomised response whatever the group."""
    text = "z is 1-LDP wrt (group, y)"
    expression = "E[ |z - y| ]"
    source = f"""spec by_hand
variables:
  input group in {{F, M}}
  input y in 0..1
  output z in 0..1
background:
  group ~ categorical([0.25, 0.75])
  y ~ uniform
loss:
  {expression}
privacy:
  {text}
fairness:
  z is independent of group
  z is independent of group given y, up to 0.05
  z is independent of y, up to 0.5
"""
    r = ratio(1)
    two = randomised_response(2, r)
    pure = [(a, b, 1.0) for a in range(4) for b in range(4) if a != b]
    prior = [Fraction(1, 8), Fraction(1, 8), Fraction(3, 8), Fraction(3, 8)]
    table = [two[0], two[1], two[0], two[1]]
    cost = np.array([[p * abs(x % 2 - y) for y in range(2)] for x, p in enumerate(prior)], dtype=object)
    optimum, dual = multipliers(cost, [(0, pure, [0, 1])])
    return document(
        source,
        of=["group", "y"],
        releases=["z"],
        inputs=[["F", "0"], ["F", "1"], ["M", "0"], ["M", "1"]],
        outputs=["0", "1"],
        prior=prior,
        table=table,
        loss=expected(prior, table, lambda x, y: Fraction(abs(x % 2 - y))),
        bound=optimum * (1 - 1e-9),
        expression=expression,
        guarantees=[guarantee(source, 0, text, {"epsilon": "1"}, epsilon="1", wrt=["group", "y"])],
        dual=dual,
    )


@cache
def counted() -> Plan:
    """Three votes between two words, held as counts: a geometric answer on the number of the first, then the winner."""
    text = "z is 1-DP wrt x, replacing one record"
    expression = "E[ mismatch(z, winner) ]"
    source = f"""spec by_hand
variables:
  input x in {{a, b}}^3
  intermediate winner
  output z in {{a, b}}
background:
  winner = plurality(x)
  x ~ categorical([3, 1])
loss:
  {expression}
privacy:
  {text}
"""
    grid = geometric(3, ratio(1))
    # rows run from three votes for a to none
    table = [[sum(grid[x][:2], Fraction(0)), sum(grid[x][2:], Fraction(0))] for x in range(4)]
    prior = [Fraction(27, 64), Fraction(27, 64), Fraction(9, 64), Fraction(1, 64)]
    cost = np.array([[p * ((x > 1) != y) for y in range(2)] for x, p in enumerate(prior)], dtype=object)
    chain = [(a, b, 1.0) for a in range(4) for b in (a - 1, a + 1) if 0 <= b < 4]
    optimum, dual = multipliers(cost, [(0, chain, [0, 1])])
    return document(
        source,
        of=["x"],
        releases=["z"],
        inputs=[["3", "0"], ["2", "1"], ["1", "2"], ["0", "3"]],
        outputs=["a", "b"],
        prior=prior,
        table=table,
        loss=expected(prior, table, lambda x, y: Fraction(int((x > 1) != y))),
        bound=optimum * (1 - 1e-9),
        expression=expression,
        guarantees=[
            guarantee(
                source, 0, text, {"epsilon": "1"}, neighbours="replacing one record", measure="epsilon-DP", epsilon="1"
            )
        ],
        dual=dual,
        counted=["x"],
    )


@cache
def debiased(pieces: int = 32) -> Plan:
    """A bit whose debiased report has the least variance: randomised response, with a search over scale and mean.

    With m the mean of z and a the scale, the loss is m (1 - m) / a^2 - 1/4, and a (r + 1) / 2 <= (r - 1) min(m, 1 - m).
    The cuts prove these three things; boxes of m, each with a split of a above which there is no table, do the rest.
    """
    text = "z is 1-LDP wrt x"
    expression = "E[ (estimate - x)^2 ]"
    source = f"""spec by_hand
variables:
  input x in 0..1
  choose alpha in (0, 1]
  choose B in law(0..1)
  output z in 0..1
  intermediate estimate
background:
  x ~ uniform
  E[z | x] = alpha * x + (1 - alpha) * E[B]
  estimate = (z - (1 - alpha) * E[B]) / alpha
loss:
  {expression}
privacy:
  {text}
"""
    r, condition = ratio(1), line_of(source, "E[z | x] = alpha * x + (1 - alpha) * E[B]")
    q = float(r)

    def cut(entries: Sequence[Entry], at_zero: float, at_one: float, mean: float, *, empty: bool) -> Plan:
        rows = {f"condition:{condition}:0": at_zero, f"condition:{condition}:1": at_one, f"mean:{condition}": mean}
        return {"empty": empty, "dual": blocks(pairs(0, entries), rows=rows)}

    cuts = [
        cut([], 0.5, 0.5, 1.0, empty=False),
        cut([(1, 0, 1, 1.0)], -q, 1.0, 1.0 - q, empty=True),
        cut([(0, 1, 0, 1.0)], -1.0, q, q - 1.0, empty=True),
    ]
    most = 2 * (q - 1) / (q + 1)
    tree: list[Any] = []
    bounds = []
    ends = [i / pieces for i in range(pieces + 1)]

    def halve(low: int, high: int) -> None:
        if high - low > 1:
            middle = (low + high) // 2
            tree.append({"coordinate": 1, "at": ends[middle]})
            halve(low, middle)
            halve(middle, high)
            return
        a = most * min(ends[high], 1 - ends[low]) * (1 + 1e-9)
        tree.extend([{"coordinate": 0, "at": a}, 0, 1 if ends[high] <= 0.5 else 2])
        bounds.append(min(end * (1 - end) for end in (ends[low], ends[high])) / a**2)

    # the outer pieces have a quotient of zero at their end: there the variance of a law on few points is what tells
    tree.append({"coordinate": 1, "at": ends[1]})
    tree.extend([{"coordinate": 0, "at": most * ends[1] * (1 + 1e-9)}, -1, 1])
    tree.append({"coordinate": 1, "at": ends[-2]})
    halve(1, pieces - 1)
    tree.extend([{"coordinate": 0, "at": most * ends[1] * (1 + 1e-9)}, -1, 2])
    bounds.append(0.25 / (most * ends[1] * (1 + 1e-9)))
    bound = (min(bounds) - 0.25) * (1 - 1e-9)
    found = document(
        source,
        of=["x"],
        releases=["z"],
        inputs=["0", "1"],
        outputs=["0", "1"],
        prior=[HALF, HALF],
        table=randomised_response(2, r),
        loss=r / (r - 1) ** 2,
        bound=bound,
        expression=expression,
        guarantees=[guarantee(source, 0, text, {"epsilon": "1"}, epsilon="1")],
        dual={},
        scalars={"alpha": str((r - 1) / (r + 1))},
        laws={"B": {"0": "1/2", "1": "1/2"}},
    )
    proof = {"kind": "search", "scope": "tables", "lower_bound": bound, "cuts": cuts, "tree": tree}
    return signed({**found, "claims": proof})


MAKERS: dict[str, Callable[[], Plan]] = {
    "k-RR": k_rr,
    "worst case": worst_case,
    "count": count,
    "two observers": two_observers,
    "metric line": metric_line,
    "delta": with_delta,
    "moments": moments,
    "fair": fair,
    "counted": counted,
    "debiased": debiased,
}
"""Every plan by its name."""
