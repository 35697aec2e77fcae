"""The parts of the checker of tables, each against the plainest way to compute the same thing."""

from __future__ import annotations

import importlib.util
import time
from decimal import Context, Decimal
from fractions import Fraction
from itertools import product
from math import comb, lcm, sqrt
from pathlib import Path as File
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privspec.certify.finite.bound import lower_bound
from privspec.certify.finite.distances import Apart, apart
from privspec.certify.finite.laws import row_law
from privspec.certify.finite.privacy import Distances, Excess
from privspec.certify.finite.ratios import BITS, Comparison, LogRatio
from privspec.certify.finite.relations import neighbours
from privspec.certify.finite.search import least_quotient
from privspec.certify.finite.subject import read_finite
from privspec.certify.finite.worlds import Histograms, Rows, derive_rows, written
from privspec.certify.reading import At, Malformed
from privspec.core.spans import Source
from privspec.model.build import load_model
from privspec.model.graph import Model


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, File(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


finite_plans = _load("finite_plans")

# --- ratios -------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.fractions(min_value=0, max_value=60, max_denominator=1000))
def test_ratios_lie_on_their_sides_and_close(q: Fraction) -> None:
    context = Context(prec=120)
    exact = Fraction(context.exp(context.divide(Decimal(q.numerator), Decimal(q.denominator))))
    ratio = LogRatio.of(q)
    low, high = Fraction(ratio.down, 1 << BITS), Fraction(ratio.up, 1 << BITS)
    slack = exact / 10**100
    assert low - slack <= exact <= high + slack
    assert high - low <= Fraction(2, 1 << BITS)
    assert ratio.rational == q


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 400), st.integers(1, 50))
def test_ratios_of_roots(square: int, scale: int) -> None:
    context = Context(prec=120)
    root = context.divide(context.sqrt(Decimal(square)), Decimal(scale))
    exact = Fraction(context.exp(root))
    ratio = LogRatio(Fraction(square, scale * scale))
    assert Fraction(ratio.down, 1 << BITS) <= exact * (1 + Fraction(1, 10**90))
    assert Fraction(ratio.up, 1 << BITS) >= exact * (1 - Fraction(1, 10**90))


def test_no_ratio_is_too_large_to_be_rounded_down() -> None:
    huge = LogRatio.of(Fraction(10**9))
    assert huge.down == LogRatio.of(Fraction(2**13)).down
    assert huge.low < 1e300


# --- rows and neighbours, against plain enumeration ---------------------------------------------------


def model_of(variables: str, background: str, privacy: str, outputs: str = "output z in 0..1") -> Model:
    source = f"""spec parts
{variables}  {outputs}
background:
{background}privacy:
{privacy}"""
    return load_model(Source("parts.priv", source))


def rows_of(model: Model, *of: str) -> Rows:
    """As `derive_rows`, where all values are listed."""
    try:
        return derive_rows(model, of, ())
    except Malformed:
        values = [labels(model, name) for name in of]
        stated = [v[0] if len(v) == 1 else v for v in product(*values)]
        return derive_rows(model, of, stated)


def labels(model: Model, name: str) -> list[Any]:
    node = model.nodes[name]
    assert node.domain is not None
    each = [written(element) for element in node.domain.elements()]
    if node.index is None:
        return each
    return list(product(each, repeat=model.parties[node.index].size))


def pairs(model: Model, rows: Rows, index: int = 0) -> set[tuple[Any, Any]]:
    found = neighbours(model, rows, model.requirements[index])
    return {(rows.labels[code // rows.size], rows.labels[code % rows.size]) for code in found.codes.tolist()}


def test_one_of_several_inputs() -> None:
    variables = "variables:\n  input a in {x, y, w}\n  input b in 0..1\n"
    privacy = "  z is 1-DP wrt a\n  z is 1-DP wrt (a, b), replacing everything\n  z is 1-DP wrt b\n"
    model = model_of(variables, "  a ~ uniform\n", privacy)
    rows = rows_of(model, "a", "b")
    every = list(product("xyw", "01"))
    assert list(rows.labels) == every
    assert pairs(model, rows, 0) == {(p, q) for p, q in product(every, every) if p != q and p[1] == q[1]}
    assert pairs(model, rows, 1) == {(p, q) for p, q in product(every, every) if p != q}
    assert pairs(model, rows, 2) == {(p, q) for p, q in product(every, every) if p != q and p[0] == q[0]}


@pytest.mark.parametrize("group", [1, 2, 3])
def test_groups_of_records(group: int) -> None:
    unit = "one record" if group == 1 else f"up to {group} records"
    model = model_of("variables:\n  input x in (0..2)^3\n", "  x ~ uniform\n", f"  z is 1-DP wrt x, replacing {unit}\n")
    rows = rows_of(model, "x")
    every = list(product("012", repeat=3))

    def apart_in(p: Any, q: Any) -> int:
        return sum(a != b for a, b in zip(p, q, strict=True))

    assert pairs(model, rows) == {(p, q) for p, q in product(every, every) if 0 < apart_in(p, q) <= group}


def test_records_of_several_numbers() -> None:
    variables = "variables:\n  input x in {0, 1}^(2, 2)\n"
    privacy = "  z is 1-DP wrt x, replacing one record\n  z is 1-DP wrt x, replacing one entry\n"
    model = model_of(variables, "  x ~ uniform\n", privacy)
    rows = rows_of(model, "x")
    every = list(product(product("01", repeat=2), repeat=2))
    assert pairs(model, rows, 0) == {
        (p, q) for p, q in product(every, every) if p != q and (p[0] == q[0] or p[1] == q[1])
    }
    flat = {v: [a for record in v for a in record] for v in every}
    one = {(p, q) for p, q in product(every, every) if sum(a != b for a, b in zip(flat[p], flat[q], strict=True)) == 1}
    assert pairs(model, rows, 1) == one


def test_one_voter_holds_a_part_of_every_input() -> None:
    parties = "parties:\n  voter in 1..2\nvariables:\n  input u[voter] in 0..1\n  input v[voter] in {p, q}\n"
    model = model_of(parties, "  u ~ uniform\n", "  z is 1-DP wrt (u, v), replacing one voter\n")
    rows = rows_of(model, "u", "v")
    every = list(product(product("01", repeat=2), product("pq", repeat=2)))

    def same(p: Any, q: Any, voter: int) -> bool:
        return all(a[voter] == b[voter] for a, b in zip(p, q, strict=True))

    assert pairs(model, rows) == {
        (p, q) for p, q in product(every, every) if p != q and (same(p, q, 0) or same(p, q, 1))
    }


def test_adding_or_removing_counts_as_nothing() -> None:
    model = model_of(
        "variables:\n  input x in (0..2)^2\n", "  x ~ uniform\n", "  z is 1-DP wrt x, adding or removing one record\n"
    )
    rows = rows_of(model, "x")
    every = list(product("012", repeat=2))

    def one_absent(p: Any, q: Any) -> bool:
        moved = [(a, b) for a, b in zip(p, q, strict=True) if a != b]
        return len(moved) == 1 and "0" in moved[0]

    assert pairs(model, rows) == {(p, q) for p, q in product(every, every) if one_absent(p, q)}


@pytest.mark.parametrize(("n", "group"), [(3, 1), (4, 2), (20, 1), (20, 3)])
def test_counts_of_few_and_of_many_records(n: int, group: int) -> None:
    """Beyond a limit worlds are not listed: histograms give the same rows, neighbours and law."""
    unit = "one record" if group == 1 else f"up to {group} records"
    variables = f"variables:\n  input x in {{0, 1}}^{n}\n  intermediate total\n"
    model = model_of(variables, "  total = sum(x)\n  x ~ bernoulli(0.25)\n", f"  z is 1-DP wrt x, replacing {unit}\n")
    rows = rows_of(model, "total")
    assert rows.labels == tuple(str(i) for i in range(n + 1))
    assert (rows.worlds.facets[0].counted is None) is (n < 12)
    close = {(str(a), str(b)) for a in range(n + 1) for b in range(n + 1) if 0 < abs(a - b) <= group}
    assert pairs(model, rows) == close
    quarter = Fraction(1, 4)
    assert row_law(model, rows) == tuple(comb(n, i) * quarter**i * (1 - quarter) ** (n - i) for i in range(n + 1))


def test_histograms() -> None:
    found = Histograms(4, 3)
    listed = list(product(range(3), repeat=4))
    counts = [tuple(v.count(i) for i in range(3)) for v in listed]
    assert found.size == len(found.counts) == len(set(counts))
    assert [counts.count(c) for c in found.counts] == list(found.ways())
    for group in (1, 2, 4):
        sets = found.replaced(group)
        near = {(int(a), int(b)) for one in sets for a in one for b in one}
        close = {
            (found.counts.index(counts[i]), found.counts.index(counts[j]))
            for i, p in enumerate(listed)
            for j, q in enumerate(listed)
            if sum(a != b for a, b in zip(p, q, strict=True)) <= group
        }
        assert near == close


def test_rows_that_are_no_secret_are_refused() -> None:
    model = model_of("variables:\n  input x in 0..1\n  constant c = 3\n", "  x ~ uniform\n", "  z is 1-DP wrt x\n")
    for of in (("c",), ("z",), ("nothing",), (), ("x", "x")):
        with pytest.raises(Malformed):
            derive_rows(model, of, ("0", "1"))


# --- laws ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("law", "wanted"),
    [
        ("uniform", [1, 1, 1, 1]),
        ("uniform(1, 2)", [0, 1, 1, 0]),
        ("binomial(3, 0.5)", [1, 3, 3, 1]),
        ("categorical([0.1, 0.2, 0.3, 0.4])", [1, 2, 3, 4]),
        ("empirical([0, 0, 3, 1, 0])", [3, 1, 0, 1]),
        ("geometric(0.5)", [8, 4, 2, 1]),
    ],
)
def test_laws(law: str, wanted: list[int]) -> None:
    model = model_of("variables:\n  input x in 0..3\n", f"  x ~ {law}\n", "  z is 1-DP wrt x\n")
    assert row_law(model, rows_of(model, "x")) == tuple(Fraction(w, sum(wanted)) for w in wanted)


def test_joint_laws_and_laws_of_their_own() -> None:
    variables = "variables:\n  input a in 0..1\n  input b in {p, q}\n  input c in 0..1\n"
    background = "  (a, b) ~ categorical([[0.1, 0.2], [0.3, 0.4]])\n  c ~ bernoulli(0.25)\n"
    model = model_of(variables, background, "  z is 1-DP wrt (a, b, c)\n")
    tenths = [Fraction(i, 10) for i in (1, 2, 3, 4)]
    assert row_law(model, rows_of(model, "a", "b", "c")) == tuple(
        p * q for p in tenths for q in (Fraction(3, 4), Fraction(1, 4))
    )
    assert row_law(model, rows_of(model, "b")) == (Fraction(2, 5), Fraction(3, 5))
    assert row_law(model, rows_of(model, "c", "a")) == tuple(
        q * p for q in (Fraction(3, 4), Fraction(1, 4)) for p in (Fraction(3, 10), Fraction(7, 10))
    )
    half = model_of(variables, "  a ~ uniform\n", "  z is 1-DP wrt (a, b, c)\n")
    assert row_law(half, rows_of(half, "a", "b")) is None


def test_weights_of_laws_that_are_not_rational() -> None:
    model = model_of(
        "variables:\n  input x in (0..2)^2\n", "  x ~ normal(1, 0.7)\n", "  z is 1-DP wrt x, replacing one record\n"
    )
    found = row_law(model, rows_of(model, "x"))
    assert found is not None
    assert sum(found) == 1
    density = [np.exp(-((a - 1) ** 2 + (b - 1) ** 2) / (2 * 0.49)) for a, b in product(range(3), repeat=2)]
    assert np.allclose([float(p) for p in found], np.array(density) / sum(density), rtol=1e-12)


# --- distances ----------------------------------------------------------------------------------------

POINTS = [(Fraction(a, 2), Fraction(b, 2)) for a in range(3) for b in range(3)]


@pytest.mark.parametrize(
    ("metric", "plain"),
    [
        ("euclidean", lambda p, q: sqrt(sum((a - b) ** 2 for a, b in zip(p, q, strict=True)))),
        ("manhattan", lambda p, q: sum(abs(a - b) for a, b in zip(p, q, strict=True))),
        ("chebyshev", lambda p, q: max(abs(a - b) for a, b in zip(p, q, strict=True))),
        ("hamming", lambda p, q: sum(a != b for a, b in zip(p, q, strict=True))),
        ("discrete", lambda p, q: int(p != q)),
        ("||x - x'||", lambda p, q: sqrt(sum((a - b) ** 2 for a, b in zip(p, q, strict=True)))),
    ],
)
def test_distances(metric: str, plain: Any) -> None:
    variables = "variables:\n  input x in grid(0, 1, 0.5)^2\n"
    model = model_of(variables, "  x ~ uniform\n", f"  z is 1-metric-DP wrt x, distance {metric}\n")
    rows = rows_of(model, "x")
    found = apart(model, rows, model.requirements[0])
    assert len(found.codes) == 72
    for code, kind in zip(found.codes.tolist(), found.kind.tolist(), strict=True):
        distance = plain(POINTS[code // 9], POINTS[code % 9])
        assert sqrt(Fraction(int(found.squares[kind]), found.scale**2)) == pytest.approx(float(distance), rel=1e-15)


def test_a_matrix_of_distances_and_inputs_nothing_looks_at() -> None:
    variables = "parameters:\n  D = [[0, 1, 2.5], [1, 0, 1.5], [2.5, 1.5, 0]]\nvariables:\n  input x in {a, b, c}\n"
    model = model_of(variables, "  x ~ uniform\n", "  z is 1-metric-DP wrt x, distance D\n")
    found = apart(model, rows_of(model, "x"), model.requirements[0])
    lengths = [sqrt(found.squares[k]) / found.scale for k in found.kind]
    assert lengths == [1, 2.5, 1, 1.5, 2.5, 1.5]


def test_the_least_distance_of_two_worlds_counts() -> None:
    variables = "variables:\n  input x in 0..3\n  intermediate half\n"
    model = model_of(
        variables, "  half = floor(x / 2)\n  x ~ uniform\n", "  z is 1-metric-DP wrt x, distance |x - x'|\n"
    )
    found = apart(model, rows_of(model, "half"), model.requirements[0])
    assert [sqrt(s) / found.scale for s in found.squares] == [1.0]


# --- comparing whole tables ---------------------------------------------------------------------------


def exact(rows: list[list[int]], denominator: int) -> Comparison:
    return Comparison.of(np.array(rows, dtype=object), denominator)


def test_metric_comparison_finds_the_one_entry_among_a_million() -> None:
    """100 x 100 with all pairs: a step of 2^-60 at any tight place is found, in little time."""
    table = finite_plans.geometric(99, finite_plans.ratio(Fraction(1, 4)))
    denominator = lcm(*(p.denominator for row in table for p in row))
    numerators = np.array([[p.numerator * (denominator // p.denominator) for p in row] for row in table], dtype=object)
    codes = np.array([a * 100 + b for a in range(100) for b in range(100) if a != b], dtype=np.int64)
    squares, kind = np.unique((codes // 100 - codes % 100) ** 2, return_inverse=True)
    limit = Distances(Apart(100, codes, kind.astype(np.int64), squares, 1), Fraction(1, 4))
    begin = time.process_time()
    assert limit.broken(Comparison.of(numerators, denominator)) is None
    assert time.process_time() - begin < 20
    for a, y, sign in ((50, 50, 1), (50, 0, -1)):
        nudged = numerators.copy()
        nudged[a, y] += sign * (denominator >> 60)
        assert limit.broken(Comparison.of(nudged, denominator)) is not None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(1, 10**6), min_size=4, max_size=4), min_size=3, max_size=3), st.integers(0, 3))
def test_the_sum_of_positive_parts(weights: list[list[int]], quarters: int) -> None:
    denominator = 1
    for row in weights:
        denominator *= sum(row)
    numerators = [[w * (denominator // sum(row)) for w in row] for row in weights]
    seen, epsilon = exact(numerators, denominator), Fraction(quarters, 4)
    model = model_of("variables:\n  input x in 0..2\n", "  x ~ uniform\n", "  z is 1-DP wrt x\n")
    near = neighbours(model, rows_of(model, "x"), model.requirements[0])
    r = finite_plans.e_to(epsilon)
    deltas = [
        sum(
            (
                max(Fraction(a, denominator) - r * Fraction(b, denominator), Fraction(0))
                for a, b in zip(p, q, strict=True)
            ),
            Fraction(0),
        )
        for p, q in product(numerators, numerators)
        if p is not q
    ]
    true = max(deltas)
    assert Excess(near, epsilon, true * (1 + Fraction(1, 10**12)) + Fraction(1, 10**30)).broken(seen) is None
    if true > 0:
        assert Excess(near, epsilon, true * (1 - Fraction(1, 10**12))).broken(seen) is not None


# --- bounds -------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["count", "metric line", "fair", "two observers", "delta"]))
def test_no_multipliers_prove_more_than_is_true(seed: int, name: str) -> None:
    """Random ones, and the right ones disturbed, stay below the loss of a table that is there."""
    plan = finite_plans.MAKERS[name]()
    generator = np.random.default_rng(seed)
    model = load_model(Source("by_hand.priv", plan["spec"]["source"]))
    blocks = []
    for block in plan["claims"]["dual"]["privacy"]:
        entries = [[*e[:-1], float(e[-1] * generator.choice([0.0, 0.5, 1.0, 1.5]))] for e in block["entries"]]
        extra = [[b, a, s, float(generator.exponential(0.01))] for a, b, s, _ in entries if generator.random() < 0.3]
        blocks.append({**block, "entries": entries + extra})
    proof = {"dual": {"privacy": blocks, "rows": {}, "loss_weights": None}}
    assert lower_bound(read_finite(At(plan), model), At(proof)) <= Fraction(plan["loss"]["value"])


def test_the_bound_is_that_of_the_whole_program() -> None:
    """k-RR with other costs: multipliers of scipy, and its optimum."""
    k = 5
    cost = np.array([[abs(x - y) / k for y in range(k)] for x in range(k)])
    every = [(a, b, 1.0) for a in range(k) for b in range(k) if a != b]
    optimum, dual = finite_plans.multipliers(cost, [(0, every, list(range(k)))])
    plan = finite_plans.k_rr(k)
    source = plan["spec"]["source"].replace("mismatch(z, x)", "|z - x|")
    subject = read_finite(At(plan), load_model(Source("by_hand.priv", source)))
    found = lower_bound(subject, At({"dual": dual}))
    assert float(found) == pytest.approx(optimum, rel=1e-9)


@settings(max_examples=200, deadline=None)
@given(
    st.fractions(-5, 5, max_denominator=40),
    st.fractions(-5, 5, max_denominator=40),
    st.integers(0, 9),
    st.integers(1, 10),
)
def test_least_quotients(constant: Fraction, slope: Fraction, low: int, more: int) -> None:
    ends = Fraction(low, 20), Fraction(low + more, 20)
    found = least_quotient(constant, slope, *ends)
    for i in range(1, 41):
        a = ends[0] + (ends[1] - ends[0]) * Fraction(i, 40)
        assert found <= max(Fraction(0), (constant + slope * a) / a**2)


def test_least_quotients_are_reached() -> None:
    # (1 - a) / a^2 falls until a = 2; (a - 1) / a^2 is below zero before a = 1
    assert least_quotient(Fraction(1), Fraction(-1), Fraction(1, 4), Fraction(1, 2)) == 2
    assert least_quotient(Fraction(-1), Fraction(1), Fraction(1, 4), Fraction(1, 2)) == 0
    # (3 - 8 a) / a^2 turns at a = 3/4, where it is below zero; (3 + a) / a^2 falls all the way
    assert least_quotient(Fraction(3), Fraction(-8), Fraction(1, 2), Fraction(1)) == 0
    assert least_quotient(Fraction(3), Fraction(1), Fraction(0), Fraction(1)) == 4
