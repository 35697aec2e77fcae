"""Tables of counts at any size: which specs, their optimum beside the dense one, and releases from rows."""

from __future__ import annotations

import copy
import json
import tracemalloc
from contextlib import nullcontext
from fractions import Fraction
from itertools import combinations
from math import prod, sqrt
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from privspec.solvers.marginals import least_worst

from privspec.api import Problem
from privspec.execute import release as releases
from privspec.execute.family import RunContext, Simulation, mechanism_of
from privspec.families.gaussian import drawing as execution
from privspec.families.gaussian.drawing import centred, whole_part
from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode
from privspec.model.targets import labels_of
from privspec.noise.samplers import SimulationRandomness
from privspec.problem import marginals
from privspec.problem.marginals import reads
from privspec.registry import family_of
from tests.execute.begun import run
from tests.families.specs import model_of, spec
from tests.plans import mutate, resign

ADDING = "O is 1-GDP wrt t, adding or removing one record"
DATA = Path("/work/shared/data")
ADULT = [85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2]


def table(sizes):
    return ", ".join(f"c{i} in 0..{n - 1}" for i, n in enumerate(sizes))


def text(sizes, asked="marginals(t, up_to = 2)", loss="E[ ||O - y||^2 ]", privacy=ADDING, options="", outputs="O"):
    names = "; ".join(f"output {name}" for name in outputs.split())
    return spec(f"input t in table({table(sizes)}); intermediate y; {names}", f"y = {asked}", loss, privacy, options)


def solve(source, **settings):
    return json.loads(Problem(source).solve(**settings).to_json())


@pytest.fixture
def every_size(monkeypatch):
    monkeypatch.setattr(marginals, "FROM", 1)


# --- which specs ----------------------------------------------------------------------------------


LARGE = [30, 5, 8]
BOTH = "all outputs are 1-GDP wrt t, replacing up to 2 records"
TAKEN = [
    text(LARGE, "marginals(t, up_to = 2, cumulative = {c0})"),
    text(ADULT, "marginals(t, up_to = 3, cumulative = {c0})"),
    text(LARGE),
    text(LARGE, "marginals(t, {c0}, {c1, c2})"),
    text(LARGE, "histogram(t)"),
    text(LARGE, loss="2 * E[ sum((y - O)^2) ] / 3 + E[ mean((O - y)^2) ]"),
    text(LARGE, loss="max(E[ (O[j] - y[j])^2 ] for j in 1..473)"),
    text(LARGE, loss="max(E[ ||O - y||^2 ], E[ ||N - marginals(t, 3)||^2 ] / 2)", outputs="O N", privacy=BOTH),
    text(LARGE, loss="E[ ||O - y||^2 ] + E[ (N - count(t))^2 ]", outputs="O N", privacy=BOTH),
    text(LARGE, options="noise family gaussian"),
    text(LARGE).replace("output O", "output O = marginals(t, up_to = 2)"),
]
LEFT = [
    text([5, 4]),
    text(LARGE, privacy="O is 0-DP wrt t, adding or removing one record").replace("0-DP", "101-DP"),
    text(LARGE, "histogram(t, c1 in 0..2)"),
    text([600, 2], "marginals(t, up_to = 2, cumulative = {c0})"),
    text(ADULT, "marginals(t, up_to = 4, cumulative = {c0})"),
    text(LARGE, "marginals(t, up_to = 2, cumulative = {c0})", privacy="O is 1-GDP wrt t, replacing one record"),
    text(LARGE, "2 * marginals(t, up_to = 2)"),
    text(LARGE, "marginals(t, up_to = 2) + marginals(t, up_to = 2)"),
    text(LARGE, options="noise family knorm"),
    text(LARGE, options="noise family laplace", privacy="O is 1-zCDP wrt t, adding or removing one record"),
    text(LARGE, options="noise at t"),
    text(LARGE, options="trust nobody"),
    text(LARGE, loss="E[ ||O - y||_1 ]"),
    text(LARGE, loss="E[ ||O - 2 * y||^2 ]"),
    text(LARGE, loss="max(E[ (O[j] - y[j])^2 ] for j in 1..472)"),
    text(LARGE, loss="E[ ||O - y||^2 ] + E[ (N - count(t))^2 ]", outputs="O N"),
]  # fmt: skip


@pytest.mark.parametrize("source", TAKEN)
def test_counts_of_a_large_table_are_found_by_their_form(source):
    assert family_of(model_of(source)).form == "marginals"


@pytest.mark.parametrize("source", LEFT)
def test_other_specs_are_left_to_others(source):
    assert not reads(model_of(source))


def test_what_is_out_of_proportion_is_refused_by_a_line():
    many = [2] * 40
    for source, words in (
        (text(many, "marginals(t, 20)"), "more than 100,000 tables"),
        (text(many, "marginals(t, {" + ", ".join(f"c{i}" for i in range(40)) + "})"), "too much to compute with"),
        (text([2**9] * 50, "marginals(t, 1)"), "more than 2\\^400 cells"),
        (text(LARGE, privacy="O is 1e-60-GDP wrt t, adding or removing one record"), ""),
        (text(LARGE, loss="1e150 * E[ ||O - y||^2 ]"), ""),
    ):
        model = None
        with pytest.raises(Exception, match=words) if words else nullcontext():
            model = model_of(source)
            if words:
                solve(source)
        assert words or not reads(model)


def test_one_table_of_large_noise_gets_laplace_noise():
    """Gaussian noise hides a record in many tables; in few of them Laplace noise is less."""
    line = "O is (1, 1e-6)-DP wrt t, adding or removing one record"
    few, many = (solve(text(ADULT, asked, privacy=line)) for asked in ("marginals(t, {c0, c2})", "marginals(t, 2)"))
    assert (few["mechanism"]["family"], many["mechanism"]["family"]) == ("laplace", "marginals")
    assert few["status"] == "feasible"
    assert few["loss"]["lower_bound"] < few["loss"]["value"] < few["alternatives"][0]["loss"]
    gaussian = solve(text(ADULT, "marginals(t, {c0, c2})", privacy=line, options="noise family gaussian"))
    assert gaussian["loss"]["value"] in [one["loss"] for one in few["alternatives"]]


@pytest.mark.parametrize("unit", ["adding or removing one record", "replacing up to 2 records"])
def test_pure_epsilon_is_shared_by_the_tables(every_size, unit):
    sizes = [3, 2, 4]
    plan = solve(text(sizes, "marginals(t, up_to = 2)", privacy=f"O is 0.7-DP wrt t, {unit}"))
    mechanism, rows = mechanism_of(plan), rows_of(sizes, 40)
    each = 1 if unit.startswith("adding") else 4
    scales = [b for b in mechanism.executed.scales if b is not None]
    assert sum(each / b for b in scales) <= Fraction(7, 10)
    assert float(sum(each / b for b in scales)) == pytest.approx(0.7, rel=1e-9)
    exact = truth(sizes, rows, mechanism.executed.block.tables)
    secret = mechanism.read({"t": pl.DataFrame(rows)}, RunContext())
    spread = np.asarray(secret.deviations()["O"])
    assert (spread**2).sum() == pytest.approx(plan["loss"]["value"], rel=1e-4)
    for approximate, size in ((False, 200), (True, 600)):
        found = mechanism.simulate(Simulation(size, 5, {"t": pl.DataFrame(rows)}, approximate)) - exact
        assert (found == np.rint(found)).all()
        # squares of Laplace numbers have a variance of five times the square of their mean
        assert np.abs((found**2).mean(axis=0) / spread**2 - 1).max() < 6 * sqrt(5 / size)
        assert np.abs(found.mean(axis=0) / spread).max() < 5.5 / sqrt(size)


LAPLACE = [
    (("mechanism", "scales", 0), "1", "which does not give"),
    (("mechanism", "scales", 5), "1/2", "which does not give"),
    (("mechanism", "scales"), [None] * 6, "adds up a table from none that is noisy"),
    (("mechanism", "scales", 0), "0", "has scales that are not those of noise"),
    (("mechanism", "scales"), [], "has 0 scales in place of 6"),
    (("mechanism", "grid"), "1", "not known"),
    (("guarantees", 0, "achieved", "epsilon"), "1/2", "with the 0.5 that is stated"),
    (("guarantees", 0, "because"), ["laplace"], "rests on notes"),
    (("problem", "blocks", 0, "families"), ["gaussian"], "is not a family of noise that the problem allows"),
    (("problem", "obligations", 0, "units", 0, "count"), 2, "rests on notes"),
    (("loss", "among"), "Gaussian noise of any covariance, unbiased", "is not what the bound is about"),
    (("loss", "value"), 1.0, "is not what"),
]


@pytest.mark.parametrize(("path", "value", "words"), LAPLACE, ids=lambda value: str(value)[:44])
def test_forged_scales_are_refused(every_size, path, value, words):
    plan = solve(text([3, 2, 4], "marginals(t, up_to = 2)", privacy="O is 1-DP wrt t, adding or removing one record"))
    assert judge(JsonNode(plan, "plan")).ok
    report = judge(JsonNode(mutate(plan, path, value), "plan"))
    assert not report.ok
    assert words in " ".join(claim.text for claim in report.claims if not claim.holds)


# --- the optimum ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "more"),
    [
        ([3, 2, 4], {}),
        ([2, 2, 3], {"asked": "marginals(t, ways = {0, 2})"}),
        ([4, 3], {"privacy": "O is 0.5-zCDP wrt t, adding or removing up to 2 records"}),
        ([3, 2, 2], {"privacy": "O is 1-GDP wrt t, replacing one record"}),
        ([4, 1, 3], {"privacy": "O is (1, 1e-6)-DP wrt t, adding or removing one record", "asked": "marginals(t, 1)"}),
        ([2, 3], {"loss": "max(E[ (O[j] - y[j])^2 ] for j in 1..11)"}),
        ([3, 2], {"loss": "E[ ||O - y||^2 ] + 5 * E[ (N - count(t))^2 ]", "outputs": "O N", "privacy": BOTH}),
        ([2, 4], {"privacy": f"{ADDING}; O is 1.2-GDP wrt t, replacing one record"}),
    ],
)  # fmt: skip
def test_the_optimum_is_that_of_the_dense_program(sizes, more, monkeypatch):
    source = text(sizes, options="noise family gaussian", **more)
    dense = solve(source)["loss"]
    monkeypatch.setattr(marginals, "FROM", 1)
    found = solve(source)
    assert found["mechanism"]["family"] == "marginals"
    assert found["status"] == "optimal"
    assert found["loss"]["value"] == pytest.approx(dense["value"], rel=1e-6)
    assert found["loss"]["lower_bound"] <= dense["value"] * (1 + 1e-12)
    assert dense["lower_bound"] <= found["loss"]["value"] * (1 + 1e-12)
    assert found["loss"]["kind"] == dense["kind"]


def closed_form(sizes, ways):
    """The optimum of all tables by so many columns together (MATH.md 2)."""
    subsets = [s for k in range(max(ways) + 1) for s in combinations(range(len(sizes)), k)]
    total = 0.0
    for own in subsets:
        tables = [t for t in subsets if len(t) in ways and set(own) <= set(t)]
        weight = sum(prod(float(n) for i, n in enumerate(sizes) if i not in t) for t in tables)
        total += prod(sizes[i] - 1 for i in own) * sqrt(weight)
    return total**2 / prod(map(float, sizes))


@pytest.mark.parametrize(
    ("sizes", "ways", "root"),
    [(ADULT, (1,), 3.0468), (ADULT, (2,), 6.3587), (ADULT, (3,), 10.5153)],
)
def test_the_whole_of_adult(sizes, ways, root):
    found = solve(text(sizes, f"marginals(t, ways = {{{', '.join(map(str, ways))}}})"))
    numbers = sum(prod(sizes[i] for i in t) for k in ways for t in combinations(range(len(sizes)), k))
    assert found["status"] == "optimal"
    assert sqrt(found["loss"]["value"] / numbers) == pytest.approx(root, abs=5e-5)
    assert found["loss"]["value"] == pytest.approx(closed_form(sizes, ways), rel=1e-10)


@pytest.mark.parametrize(("columns", "value"), [(6, 394071.6131086), (10, 10888529.5519)])
def test_a_million_and_ten_thousand_million_cells(columns, value):
    found = solve(text([10] * columns, "marginals(t, ways = {0, 1, 2, 3})"))
    assert found["status"] == "optimal"
    assert found["loss"]["value"] == pytest.approx(value, rel=1e-10)


def test_shares_of_terms_and_of_limits_close_the_gap():
    rng = np.random.default_rng(3)
    for terms, limits, parts in ((1, 1, 5), (6, 1, 9), (1, 7, 9), (5, 6, 8), (12, 9, 4)):
        costs, used = (rng.exponential(size=(count, parts)) ** 2 + 1e-3 for count in (terms, limits))
        found = least_worst(costs, used)
        assert found.gap <= 1e-8, (terms, limits)
        assert (used @ (1 / found.variances)).max() <= 1 + 1e-12
        assert (costs @ found.variances).max() == pytest.approx(found.upper)


# --- releases -------------------------------------------------------------------------------------


def rows_of(sizes, count, seed=1):
    rng = np.random.default_rng(seed)
    return {f"c{i}": rng.integers(0, n, count) for i, n in enumerate(sizes)}


def truth(sizes, rows, tables):
    found = []
    for own in tables:
        counted = np.zeros([sizes[i] for i in own])
        np.add.at(counted, tuple(rows[f"c{i}"] for i in own), 1)
        found.append(counted.reshape(-1))
    return np.concatenate(found)


def test_whole_parts_are_the_centred_counts():
    counts = np.random.default_rng(0).integers(0, 9, (3, 4, 2))
    assert whole_part(counts) / 24 == pytest.approx(centred(counts.astype(float)))
    assert (whole_part(counts * 2**58).astype(object) == whole_part(counts).astype(object) * 2**58).all()


@pytest.mark.parametrize("privacy", [ADDING, "O is 1-GDP wrt t, replacing one record"])
def test_releases_have_the_errors_that_are_predicted(every_size, privacy):
    sizes, count = [3, 2, 4], 600
    plan = solve(text(sizes, privacy=privacy))
    mechanism, rows = mechanism_of(plan), rows_of(sizes, 50)
    exact = truth(sizes, rows, mechanism.executed.block.tables)
    secret = mechanism.read({"t": pl.DataFrame(rows)}, RunContext())
    spread = np.asarray(secret.deviations()["O"])
    for approximate, size in ((False, 150), (True, count)):
        found = mechanism.simulate(Simulation(size, 5, {"t": pl.DataFrame(rows)}, approximate))
        shares = ((found - exact) / spread) ** 2
        # averages of `size` squared normal numbers, each of variance 2
        assert np.abs(shares.mean(axis=0) - 1).max() < 5.5 * sqrt(2 / size)
        assert np.abs((found - exact).mean(axis=0) / spread).max() < 5.5 / sqrt(size)
    steps = secret.draw(SimulationRandomness(1)).outputs["O"] / float(mechanism.executed.output_grid)
    assert (steps == np.rint(steps)).all()


def test_tables_of_one_release_agree_with_each_other(every_size):
    """What two tables share is drawn once: they add up to the same."""
    plan = solve(text([3, 2, 4]))
    drawn = mechanism_of(plan).simulate(Simulation(1, 3, None))[0]
    by_c0, pair = drawn[:3], drawn[9:15].reshape(3, 2)
    assert pair.sum(axis=1) == pytest.approx(by_c0, abs=1e-4)


def test_rows_that_do_not_fit_are_left_out_or_moved(every_size):
    rows = {"c0": ["0", "7", "x"], "c1": ["1", "1", "0"], "c2": ["0", "0", "3"]}
    for privacy, left in ((ADDING, 2), ("O is 1-GDP wrt t, replacing one record", 3)):
        secret = mechanism_of(solve(text([3, 2, 4], privacy=privacy))).read({"t": rows}, RunContext())
        assert int(secret.content[()]) == left


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the Adult extract is not here")
def test_the_rows_of_adult_are_released_as_predicted():
    domain = json.loads((DATA / "adult_discretised_domain.json").read_text())
    columns = ", ".join(f'"{name}" in 0..{size - 1}' for name, size in domain.items())
    asked = spec(
        f"input t in table({columns}); intermediate y; output O", "y = marginals(t, up_to = 2)", privacy=ADDING
    )
    mechanism = mechanism_of(solve(asked))
    data = {"t": DATA / "adult_discretised_privatepgm.csv.gz"}
    frame = pl.read_csv(data["t"])
    rows = {f"c{i}": frame[name].to_numpy() for i, name in enumerate(domain)}
    sizes, tables = list(domain.values()), mechanism.executed.block.tables
    exact = truth(sizes, rows, tables)
    spread = np.asarray(mechanism.read(data, RunContext()).deviations()["O"])
    found = mechanism.simulate(Simulation(200, 11, data, approximate=True)) - exact
    assert sqrt(float((found**2).mean())) == pytest.approx(6.41, abs=0.05)
    at = 0
    for own in tables:
        size = prod(sizes[i] for i in own)
        squares = (found[:, at : at + size] ** 2).sum(axis=1)
        predicted = float((spread[at : at + size] ** 2).sum())
        assert abs(squares.mean() - predicted) <= 5 * squares.std(ddof=1) / sqrt(200), own
        at += size
    # one release with exact noise
    secret = mechanism.read(data, RunContext())
    error = (secret.draw(SimulationRandomness(2)).outputs["O"] - exact) / spread
    assert float((error**2).mean()) == pytest.approx(1, abs=0.02)


# --- columns in order -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "asked", "value"),
    [
        ([16, 5, 3], "marginals(t, up_to = 3, cumulative = {c0})", 2153.65),
        ([16, 16], "marginals(t, up_to = 2, ranges = {c0})", 9527.6),
    ],
)
def test_columns_in_order_reach_the_certified_optimum(every_size, sizes, asked, value):
    found = solve(text(sizes, asked))
    assert (found["status"], found["mechanism"]["family"]) == ("optimal", "ordered")
    assert found["loss"]["value"] == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("asked", ["marginals(t, up_to = 2, cumulative = {c1})", "marginals(t, 2, ranges = {c0, c2})"])
def test_with_columns_in_order_the_optimum_is_that_of_the_dense_program(asked, monkeypatch):
    source = text([3, 2, 3], asked, options="noise family gaussian")
    dense = solve(source)["loss"]
    monkeypatch.setattr(marginals, "FROM", 1)
    found = solve(source)
    assert found["mechanism"]["family"] == "ordered"
    assert found["loss"]["value"] == pytest.approx(dense["value"], rel=1e-6)
    assert dense["lower_bound"] <= found["loss"]["value"] * (1 + 1e-12)
    assert found["loss"]["lower_bound"] <= dense["value"] * (1 + 1e-12)


def test_releases_along_columns_in_order_have_the_errors_that_are_predicted(every_size):
    sizes = [3, 4, 2]
    plan = solve(text(sizes, "marginals(t, ways = {0, 1, 2, 3}, cumulative = {c1}, ranges = {c0})"))
    mechanism, rows = mechanism_of(plan), rows_of(sizes, 60)
    counts, exact = truth(sizes, rows, [(0, 1, 2)]).reshape(sizes), []
    for table in mechanism.executed.block.tables:
        values = counts.sum(axis=tuple(i for i in range(3) if i not in table), keepdims=True)
        if 1 in table:
            values = values.cumsum(axis=1)
        if 0 in table:
            values = np.stack([values[a : b + 1].sum(axis=0) for a in range(3) for b in range(a, 3)])
        exact.append(values.reshape(-1))
    truly, secret = np.concatenate(exact), mechanism.read({"t": pl.DataFrame(rows)}, RunContext())
    spread = np.asarray(secret.deviations()["O"])
    assert (spread**2).sum() == pytest.approx(plan["loss"]["value"], rel=1e-4)
    for approximate, size in ((False, 100), (True, 600)):
        found = mechanism.simulate(Simulation(size, 7, {"t": pl.DataFrame(rows)}, approximate))
        shares = ((found - truly) / spread) ** 2
        assert np.abs(shares.mean(axis=0) - 1).max() < 5.5 * sqrt(2 / size)
        assert np.abs((found - truly).mean(axis=0) / spread).max() < 5.5 / sqrt(size)


def test_labels_say_totals_and_ranges():
    model = model_of(text([3, 2], "marginals(t, {c0, c1}, ranges = {c0}, cumulative = {c1})"))
    found = labels_of(model, "O", (12,))
    assert list(dict.fromkeys(found["c0"])) == ["0..0", "0..1", "0..2", "1..1", "1..2", "2..2"]
    assert found["c1"].tolist() == ["<= 0", "<= 1"] * 6


# --- people of several records ---------------------------------------------------------------------


def test_people_of_several_records_are_hidden_as_wholes(every_size):
    source = text(
        [3, 2],
        "marginals(t, up_to = 2)",
        privacy="O is 1-GDP wrt t, adding or removing one user with at most 3 records",
    )
    one, plan = solve(text([3, 2])), solve(source.replace("table(", "table(user in id, "))
    assert plan["mechanism"]["family"] == "marginals"
    assert plan["status"] == "optimal"
    assert plan["loss"]["value"] == pytest.approx(9 * one["loss"]["value"], rel=1e-9)
    assert plan["guarantees"][0]["because"][-1] == "people"
    rows = {"user": ["a"] * 9 + ["b", "c"], "c0": [0, 1, 2] * 3 + [0, 0], "c1": [0] * 11}
    secret = mechanism_of(plan).read({"t": pl.DataFrame(rows)}, RunContext())
    assert int(secret.content[()]) == 5
    forged = copy.deepcopy(plan)
    forged["problem"]["data"][0]["kept"] = None
    assert not judge(JsonNode(resign(forged), "plan")).ok
    forged["problem"]["data"][0]["kept"] = plan["problem"]["data"][0]["kept"] | {"most": 9}
    assert not judge(JsonNode(resign(forged), "plan")).ok


@pytest.mark.slow
def test_counts_of_a_large_table_share_a_line_with_a_median() -> None:
    """Their noise is Gaussian: no share of pure epsilon is asked of them."""
    plan = Problem(
        "variables:\n  input people in table(a in 0..99, b in 0..99, c in 0..9)^1000\n  output n\n  output q in 0..9\n"
        "background: people.c ~ binomial(9, 0.4)\n"
        "loss: E[ ||n - marginals(people, {a}, {b})||^2 ] + E[ |q - median(people.c)| ]\n"
        "privacy: all outputs are (1, 1e-6)-DP wrt people, adding or removing one record\n"
    ).solve()
    assert plan.verify().ok
    assert plan.document["mechanism"]["family"] == "composite"


@pytest.mark.slow
def test_tables_that_could_be_laid_out_are_found_by_their_form_as_well() -> None:
    """720 cells, where separate noise for each table beats any covariance; what is computed from them is predicted."""
    plan = Problem(
        "variables:\n  input people in table(age in 0..9, sex in {F, M}, region in 1..12, job in {no, part, full})\n"
        "  output tables\n  output fixed = consistent(tables)\n"
        "loss: E[ mean((tables - marginals(people, ways = {2}))^2) ]\n"
        "privacy: tables is (2, 1e-9)-DP wrt people, replacing one record\n"
    ).solve()
    # any covariance: 58.2
    assert plan.loss.value == pytest.approx(55.765, abs=0.001)
    assert "fixed ±" in plan.summary()


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet", "npy"])
def test_a_number_takes_few_bytes(suffix, tmp_path, monkeypatch):
    """What is drawn and written at once is small here; all else is three arrays of doubles, whatever the labels."""
    monkeypatch.setattr(releases, "LINES", 128)
    monkeypatch.setattr(execution, "PART", 128, raising=False)
    source = text([20, 15, 10, 4], "marginals(t, {c0, c1, c2}, {c1, c2, c3}, {c0, c3}, {c3})")
    plan, model = solve(source), model_of(source)
    data, size = {"t": pl.DataFrame({f"c{i}": [1] for i in range(4)})}, model.nodes["O"].type.shape[0]
    assert size > 3000
    run(plan, data, output=tmp_path / f"first.{suffix}", model=model, randomness=SimulationRandomness(1))
    tracemalloc.start()
    try:
        run(plan, data, output=tmp_path / f"o.{suffix}", model=model, randomness=SimulationRandomness(1))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    print(most, size)
    assert most < 100 * size + 2**17, most / size
