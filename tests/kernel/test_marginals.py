"""Tables of counts before the kernel: figures against dense matrices on small tables, and forged plans."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import prod, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privspec.kernel import judge
from privspec.kernel.changes import Records
from privspec.kernel.core.reading import JsonNode, Refused, read
from privspec.kernel.marginals import Marginals, Residuals
from privspec.kernel.strategies.residuals import _by_classes, _classes, _transformed, worst_move
from privspec.problem import marginals
from tests.plans import executed_of, mutate, solved_text, without

EVERY = frozenset({"O"})
SPEC = """spec counts
variables:
  input people in table(a in 0..3, b in {{x, y}}, c in 0..2)
  intermediate y
  output O
background:
  y = marginals(people, {asked})
loss: {loss}
privacy:
  {line}
"""


@pytest.fixture(autouse=True)
def every_table_is_large(monkeypatch):
    monkeypatch.setattr(marginals, "FROM", 1)


def plan(asked="up_to = 2", loss="E[ ||O - y||^2 ]", line="O is 1-GDP wrt people, adding or removing one record"):
    return solved_text(SPEC.format(asked=asked, loss=loss, line=line))


def block(sizes, tables, weights=None):
    """A block about columns of so many values."""
    columns = [
        {"name": f"c{i}", "values": [], "lower": 0, "upper": n - 1, "shared": False, "cuts": []}
        for i, n in enumerate(sizes)
    ]
    size = sum(prod(sizes[i] for i in own) for own in tables)
    term = [{"table": i, "weight": str(w)} for i, w in enumerate(weights or [1] * len(tables))]
    said = {"source": "x", "columns": columns, "records": None, "worst": False, "loss": "", "families": []}
    said |= {"released": [{"name": "O", "shape": [size], "tables": [list(own) for own in tables]}], "terms": [term]}
    found = read(Marginals, JsonNode(said | {"form": "marginals"}, "block"))
    assert isinstance(found, Marginals)
    return found


def projection(sizes, own):
    """P_S on the counts of all cells."""
    found = np.eye(1)
    for i, n in enumerate(sizes):
        flat = np.full((n, n), 1 / n)
        found = np.kron(found, np.eye(n) - flat if i in own else flat)
    return found


def counting(sizes, own):
    """From the counts of all cells to those of a table."""
    found = np.eye(1)
    for i, n in enumerate(sizes):
        found = np.kron(found, np.eye(n) if i in own else np.ones((1, n)))
    return found


SIZES = [((3,), 1), ((2, 2), 2), ((3, 2, 4), 2), ((2, 1, 3), 3), ((2, 2, 3, 2), 2)]


def example(sizes, ways, seed=0):
    own = block(sizes, [t for k in range(ways + 1) for t in combinations(range(len(sizes)), k)])
    rng = np.random.default_rng(seed)
    deviations = tuple(Fraction(int(rng.integers(1, 40)), 8) for _ in own.subsets)
    return Residuals(own, deviations, Fraction(1, 2**30), Fraction(1, 2**20))


@pytest.mark.parametrize(("sizes", "ways"), SIZES)
def test_privacy_and_variances_are_those_of_dense_matrices(sizes, ways):
    executed = example(sizes, ways)
    # the release is sum over S of P_S (x + scaled noise): its precision on the cells, and its covariance
    scaled = {own: prod(n for i, n in enumerate(sizes) if i not in own) for own in executed.block.subsets}
    precision = sum(projection(sizes, own) * scaled[own] / float(d) ** 2 for own, d in executed.each.items())
    covariance = sum(projection(sizes, own) * float(d) ** 2 / scaled[own] for own, d in executed.each.items())
    square = executed.strategy.quadratic_sensitivity(Records(1, True, 1), EVERY)
    assert float(square) == pytest.approx(np.diag(precision).max(), rel=1e-12)
    pairs = product(range(len(precision)), repeat=2)
    most = max(precision[i, i] + precision[j, j] - 2 * precision[i, j] for i, j in pairs)
    moved = executed.strategy.quadratic_sensitivity(Records(2, False, 2), EVERY)
    assert float(moved) == pytest.approx(4 * most, rel=1e-12)
    total = 0.0
    for table in executed.block.tables:
        own = counting(sizes, table) @ covariance @ counting(sizes, table).T
        assert np.diag(own) == pytest.approx(float(executed.variance(table)), rel=1e-12)
        total += np.trace(own)
    assert float(executed.losses()[0]) == pytest.approx(total, rel=1e-12)


@given(st.lists(st.integers(2, 4), min_size=2, max_size=5), st.integers(1, 3), st.integers(0, 9))
@settings(max_examples=30, deadline=None)
def test_the_worst_move_is_the_worst_of_all(sizes, ways, seed):
    executed = example(tuple(sizes), min(ways, len(sizes)), seed)
    own = executed.block
    inverse = {s: 1 / d**2 for s, d in executed.each.items() if s}
    every = [frozenset(d) for k in range(1, len(sizes) + 1) for d in combinations(range(len(sizes)), k)]
    most = max(sum((own.moved(s, d) * u for s, u in inverse.items()), Fraction(0)) for d in every)
    assert worst_move(own.sizes, inverse) == most


def test_columns_that_are_alike_are_looked_at_by_their_number():
    own = block((2, 3, 2, 3, 3), [t for k in range(4) for t in combinations(range(5), k)])
    whole = {s: 7 ** sum(own.sizes[i] == 3 for i in s) + len(s) for s in own.subsets}
    classes = _classes(own.sizes, list(range(5)), whole)
    assert classes == [[0, 2], [1, 3, 4]]
    assert set(_by_classes(own.sizes, classes, whole)) == set(_transformed(own.sizes, list(range(5)), whole))
    assert _by_classes(own.sizes, classes, whole)[0] == _transformed(own.sizes, list(range(5)), whole)[0]
    with pytest.raises(Refused, match="whose parts differ"):
        _classes(own.sizes, list(range(5)), whole | {(0,): 1})
    with pytest.raises(Refused, match="asked for in different ways"):
        _classes(own.sizes, list(range(5)), {s: v for s, v in whole.items() if s != (0,)})


@pytest.mark.parametrize(
    "line",
    [
        "O is 1-GDP wrt people, adding or removing one record",
        "O is (1, 1e-6)-DP wrt people, adding or removing up to 2 records",
        "O is 0.5-zCDP wrt people, replacing one record",
    ],
)
def test_a_sound_plan_is_judged_whole(line):
    found = plan(line=line)
    report = judge(JsonNode(found, "plan"))
    assert report.ok, [claim for claim in report.claims if not claim.holds]
    assert {claim.name for claim in report.claims} >= {"privacy", "rounding", "view", "loss", "bound", "unbiased"}
    assert found["status"] == "optimal" or found["mechanism"]["family"] == "laplace"


def test_the_number_of_records_is_known_where_they_are_replaced():
    found = plan(asked="ways = {0, 1}", line="O is 1-GDP wrt people, replacing one record")
    assert executed_of(found).block.subsets[0] == ()
    assert found["mechanism"]["deviations"][0] == "0"
    # but not where they come and go: the same plan with that line
    units = {"adding": True, "kind": "record", "inputs": ["people"], "count": 1, "party": None, "apart": None}
    forged = mutate(found, ("problem", "obligations", 0, "units"), [units | {"exactly": False}])
    assert "a part without noise that moves" in refusals(forged)


FORGERIES = [
    # less noise on one set of columns, with the rest as it is
    (("mechanism", "deviations", 3), "1/2", "mu is 1.8713092 at most, which does not give"),
    (("mechanism", "deviations", 3), "0", "a part without noise that moves"),
    (("mechanism", "deviations", 3), "-1", "is less than 0"),
    # a set of columns that a table needs is not drawn, or one that none needs
    (("mechanism", "deviations"), ["1"] * 8, "is about 8 sets of columns in place of 7"),
    (("mechanism", "subsets"), [[0, 1, 2]], "has a key 'subsets' that is not known"),
    (("mechanism", "family"), "gaussian", "is of a family that is not known"),
    (("mechanism", "family"), "ordered", "has a key 'deviations' that is not known"),
    (("mechanism", "grid"), "0", "a grid that is not positive"),
    (("mechanism", "grid"), "1", "rounding to grids moves no output by more than"),
    (("mechanism", "output_grid"), "1", "rounding to grids moves no output by more than"),
    (("mechanism", "sites"), [], "not known"),
    # other weights, sizes or tables than those that were solved
    (("problem", "blocks", 0, "terms", 0, 1, "weight"), "2", "is not what the problem and the mechanism say"),
    (("problem", "blocks", 0, "terms", 0, 1, "weight"), "0", "weights that are not positive"),
    (("problem", "blocks", 0, "terms", 0, 1, "table"), 0, "does not weigh each table"),
    (("problem", "blocks", 0, "columns", 0, "upper"), 2, "of a different length from its tables"),
    (("problem", "blocks", 0, "columns", 1, "values"), ["x", "y", "z"], "of a different length from its tables"),
    (("problem", "blocks", 0, "columns", 0, "shared"), True, "numbers between two values"),
    (("problem", "blocks", 0, "released", 0, "tables", 0), [3], "by columns that it has not"),
    (("problem", "blocks", 0, "released", 0, "tables", 3), [1, 0], "not in their order"),
    (("problem", "blocks", 0, "released", 0, "shape"), [1], "of a different length"),
    (("problem", "blocks", 0, "families"), ["laplace"], "is not a family of noise that the problem allows"),
    (("problem", "trust", "kind"), "nobody", "other trust"),
    (("problem", "obligations", 0, "seen"), [], "hides, line"),
    (("problem", "obligations", 0, "units", 0, "count"), 2, "rests on notes"),
    (("problem", "obligations", 0, "units", 0, "kind"), "everything", "other units than records"),
    (("problem", "obligations", 0, "units", 0, "adding"), False, "replaces records of a table"),
    (("guarantees", 0, "achieved", "mu"), "0.9", "with the 0.9 that is stated"),
    (("guarantees", 0, "achieved", "mu"), "1.1", "with the 1.1 that is stated"),
    (("guarantees", 0, "because"), ["gaussian-exact"], "rests on notes"),
    (("loss", "value"), 1.0, "is not what"),
    (("loss", "among"), "all mechanisms", "is not what the bound is about"),
    (("claims", "bound", "terms"), ["2"], "shares that add up to one"),
    (("claims", "bound", "lines", 0, "masses", 0, "mass"), "-1", "is less than 0"),
    (("claims", "bound", "lines", 0, "masses", 0, "differing"), [0], "is not what the problem and the mechanism say"),
    (("claims", "bound", "lines", 0, "masses"), [], "have no mass"),
    (("claims", "bound", "lines", 0, "mu"), "2", "is not what the problem and the mechanism say"),
    (("claims", "bound", "lines"), [], "0 entries in place of 1"),
]


def refusals(forged):
    report = judge(JsonNode(forged, "plan"))
    assert not report.ok
    return " ".join(claim.text for claim in report.claims if not claim.holds)


@pytest.mark.parametrize(("path", "value", "words"), FORGERIES, ids=lambda value: str(value)[:44])
def test_forged_plans_are_refused(path, value, words):
    assert words in refusals(mutate(plan(), path, value))


def test_a_set_of_columns_that_is_left_out_is_missed():
    found = plan()
    shorter = without(found, ("mechanism", "deviations", 2))
    assert "is about 6 sets of columns in place of 7" in refusals(shorter)
    fewer = mutate(found, ("mechanism", "deviations"), found["mechanism"]["deviations"][:-1])
    assert "is about 6 sets of columns in place of 7" in refusals(fewer)


def test_a_bound_beyond_the_one_derived_is_refused():
    found = plan()
    value = found["loss"]["value"]
    higher = mutate(mutate(found, ("loss", "lower_bound"), value), ("loss", "relative_gap"), 0.0)
    assert "no such noise has a loss below" in refusals(higher)


def test_more_noise_than_need_be_is_private_and_not_optimal():
    found = plan()
    more = [str(Fraction(one) * 2) for one in found["mechanism"]["deviations"]]
    told = mutate(found, ("mechanism", "deviations"), more)
    case = judge(JsonNode(told, "plan"))
    assert [claim.holds for claim in case.claims if claim.name == "privacy"] == [True]
    assert not case.ok


def test_the_pairs_of_a_move_are_a_set_of_columns():
    found = plan(line="O is 1-GDP wrt people, replacing one record")
    place = ("claims", "bound", "lines", 0, "masses", 0, "differing")
    for wrong in ([], [0, 0], [2, 1], None):
        assert "is no" in refusals(mutate(found, place, wrong))
    assert "whole number in its range" in refusals(mutate(found, place, [7]))


def test_losses_are_the_largest_of_their_terms():
    found = plan(loss="max(E[ (O[j] - y[j])^2 ] for j in 1..35)")
    done = executed_of(found)
    largest = max(float(done.variance(table)) for table in done.block.tables)
    assert found["loss"]["value"] == pytest.approx(largest, rel=1e-12)
    assert found["status"] == "optimal"
    assert sqrt(largest) > 1
