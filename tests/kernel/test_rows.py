"""Rows of ones in a row before the kernel: figures against the same rows laid out, and forged plans."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_mat

from privspec.api import Problem
from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode, Refused
from privspec.kernel.rows import Intervals, denominator, gram, intervals, laid_out, less, moved_by, row_squares, weighed
from privspec.kernel.writing import write
from privspec.problem import linear
from tests.plans import mutate, solved_text

SPEC = """spec ranges
variables:
  input {data}
  intermediate y
  output O
background:
  y = range_sums({of})
loss: {loss}
privacy:
  O is {line}
"""
TABLE = {"data": "x in table(a in 1..9)", "of": "histogram(x)", "line": "1-GDP wrt x, adding or removing one record"}
NUMBERS = {"data": "x in [0, 1]^10", "of": "x", "line": "(1, 1e-6)-DP wrt x, replacing one entry"}
SQUARES = {"loss": "E[ ||O - y||^2 ]"}


def some(seed=0, rows=40, columns=7):
    random = np.random.default_rng(seed)
    starts, ends = np.sort(random.integers(0, columns + 1, size=(2, rows)), axis=0).tolist()
    return Intervals(tuple(starts), tuple(ends), columns), random


def matrix(random, rows, columns):
    return fmpq_mat([[fmpq(int(v), 7) for v in row] for row in random.integers(-9, 10, size=(rows, columns)).tolist()])


@pytest.mark.parametrize("seed", range(5))
def test_figures_are_those_of_the_rows_laid_out(seed):
    rows, random = some(seed)
    plain = laid_out(rows)
    assert plain.tolist() == [
        [int(a <= i < b) for i in range(7)] for a, b in zip(rows.starts, rows.ends, strict=True)
    ]  # fmt: skip
    inner, back = matrix(random, 7, 5), matrix(random, 5, 7)
    sizes, weights = ([Fraction(int(v), 3) for v in random.integers(1, 9, size=n)] for n in (7, 40))
    variances = [Fraction(int(v), 5) for v in random.integers(1, 9, size=5)]
    made = rows * inner
    assert laid_out(made) == plain * inner
    assert made.tolist() == (plain * inner).tolist()
    assert made.transpose() == (plain * inner).transpose()
    assert laid_out(less(made * back, rows)) == plain * inner * back - plain == less(plain * inner * back, rows)
    assert gram(rows, weights) == gram(plain, weights) == plain.transpose() * weighed(weights, rows)
    assert gram(rows, [Fraction(1)] * 40) == plain.transpose() * plain
    assert moved_by(rows, sizes) == moved_by(plain, sizes)
    assert row_squares(made, variances) == row_squares(plain * inner, variances)
    assert row_squares(rows, sizes) == row_squares(plain, sizes)
    moved = zip(moved_by(made, variances), moved_by(plain * inner, variances), strict=True)
    assert all(bound >= exact for bound, exact in moved)
    assert denominator(rows) == 1
    assert denominator(made) % denominator(plain * inner) == 0


@pytest.mark.parametrize("given", [TABLE, NUMBERS])
@pytest.mark.parametrize("loss", ["E[ ||O - y||^2 ]", "E[ ||O - y||_1 ]", "max(E[ (O[j] - y[j])^2 ] for j in 1..45)"])
def test_plans_are_as_good_as_those_of_rows_laid_out(given, loss, monkeypatch):
    monkeypatch.setattr(linear, "TALL", 1)
    loss = loss if given is TABLE else loss.replace("45", "55")
    text = SPEC.format(**given, loss=loss)
    found = json.loads(Problem(text, {}).solve().to_json())
    assert found["problem"]["blocks"][0]["target"]["form"] == "intervals"
    assert judge(JsonNode(found, "plan")).ok
    monkeypatch.setattr(linear, "TALL", 10**6)
    plain = json.loads(Problem(text, {}).solve().to_json())
    assert "form" not in plain["problem"]["blocks"][0]["target"]
    for key in ("value", "lower_bound"):
        assert found["loss"][key] == plain["loss"][key] or found["loss"][key] == pytest.approx(
            plain["loss"][key], rel=1e-9
        )
    assert found["mechanism"] == plain["mechanism"]


def test_rows_that_are_not_in_a_row_are_laid_out():
    dense = np.zeros((40, 4))
    dense[:, :2] = 1.0
    assert isinstance(linear.rows_of(dense), linear.Intervals)
    dense[0] = [1, 0, 1, 0]
    assert not isinstance(linear.rows_of(dense), linear.Intervals)
    dense[0] = [2, 2, 0, 0]
    assert not isinstance(linear.rows_of(dense), linear.Intervals)
    dense[0] = 0.0
    assert not isinstance(linear.rows_of(dense), linear.Intervals)


def test_ends_beyond_the_columns_are_refused():
    stated = write(linear.rows_of(np.tril(np.ones((4, 4)))[np.arange(20) % 4]))
    read = intervals(JsonNode(stated, "target"))
    assert read is not None
    assert read.ends[:4] == (1, 2, 3, 4)
    for key, values in (("ends", [5] * 20), ("starts", [2] * 20), ("starts", [-1] * 20), ("ends", [1] * 19)):
        forged = {**stated, key: {**stated[key], "rows": values, "shape": [len(values)]}}
        with pytest.raises(Refused, match="begin and end"):
            intervals(JsonNode(forged, "target"))
    with pytest.raises(Refused):
        intervals(JsonNode({**stated, "more": 1}, "target"))


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("starts", "rows", 3), 1, "output_covariance is not what the problem"),
        (("ends", "rows", 3), 9, "output_covariance is not what the problem"),
        (("ends", "rows", 44), 10, "begin and end at its columns"),
        (("shape", 1), 10, "arrays that are not of the size"),
        (("form",), "sparse", "is not known"),
    ],
)
def test_forged_rows_are_refused(place, value, words):
    """Other ranges have other figures."""
    forged = mutate(solved_text(SPEC.format(**TABLE, **SQUARES)), ("problem", "blocks", 0, "target", *place), value)
    report = judge(JsonNode(forged, "plan"))
    assert not report.ok
    assert words in " ".join(claim.text for claim in report.claims if not claim.holds)
