"""Tables with columns in order before the kernel: figures against dense matrices, and forged plans."""

from __future__ import annotations

import numpy as np
import pytest
from privspec.solvers.marginals import strategies

from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.marginals import _gram, asked_of, kinds_of
from privspec.problem import marginals
from tests.plans import executed_of, mutate, solved_text

SPEC = """spec ordered
variables:
  input people in table(age in 0..3, b in {{x, y, z}}, c in 0..1)
  intermediate y
  output O
background:
  y = marginals(people, {asked})
loss: E[ ||O - y||^2 ]
privacy:
  {line}
"""
ADDING = "O is 1-GDP wrt people, adding or removing one record"


@pytest.fixture(autouse=True)
def every_table_is_large(monkeypatch):
    monkeypatch.setattr(marginals, "FROM", 1)


def plan(asked="up_to = 2, cumulative = {age}", line=ADDING):
    found = solved_text(SPEC.format(asked=asked, line=line))
    assert found["mechanism"]["family"] == "ordered"
    return found


def executed(found):
    return executed_of(found)


def floats(matrix):
    return np.array([[float(v.p) / float(v.q) for v in row] for row in matrix.tolist()])


@pytest.mark.parametrize("way", ["all", "each", "running", "ranges"])
def test_grams_are_those_of_the_sums(way):
    n = 5
    low, high = np.triu_indices(n)
    rows = {
        "all": np.ones((1, n)),
        "each": np.eye(n),
        "running": np.tril(np.ones((n, n))),
        "ranges": np.array([[a <= i <= b for i in range(n)] for a, b in zip(low, high, strict=True)], dtype=float),
    }[way]
    assert (rows.T @ rows == np.array(_gram(n, way))).all()


@pytest.mark.parametrize(
    "asked",
    [
        "up_to = 2, cumulative = {age}",
        "up_to = 3, cumulative = {age}",
        "ways = {0, 2}, ranges = {age}, cumulative = {c}",
    ],
)
def test_privacy_and_loss_are_those_of_dense_matrices(asked):
    done = executed(plan(asked))
    block, total, precision = done.block, 0.0, 0.0
    kinds = kinds_of(block)
    sizes = [block.sizes[i] for i in range(3) if i not in block.ordered]
    for own, part in done.each.items():
        matrices = [part.strategy, part.reconstruction]
        strategy, estimates = (
            np.array([[float(v.p) / float(v.q) for v in row] for row in m.tolist()]) for m in matrices
        )
        projection = np.eye(1)
        for i, n in zip([i for i in range(3) if i not in block.ordered], sizes, strict=True):
            flat = np.full((n, n), 1 / n)
            projection = np.kron(projection, np.eye(n) - flat if i in own else flat)
        scale = np.prod([n for i, n in enumerate(block.sizes) if i not in (*own, *block.ordered)])
        precision = precision + np.kron(projection * scale, strategy.T @ strategy)
        kind, factor = kinds.places[own]
        total += float(factor) * np.trace(estimates.T @ floats(asked_of(block, kinds.weights[kind])) @ estimates)
    assert float(done.of_one) == pytest.approx(np.diag(precision).max(), rel=1e-12)
    assert float(done.losses()[0]) == pytest.approx(total, rel=1e-12)


def test_sets_of_columns_that_ask_alike_share_a_part_of_the_bound():
    """Of four sets of columns three are in tables with and without running totals in the same proportion."""
    found = plan("up_to = 3, cumulative = {age}")
    kinds = kinds_of(executed(found).block)
    assert [kind for kind, _ in kinds.places.values()] == [0, 1, 1, 1]
    assert len(found["claims"]["bound"]["parts"]) == 2
    assert found["status"] == "optimal"
    factors = [factor for _, factor in kinds.places.values()]
    assert len(set(factors)) == 4


def test_strategies_of_one_gram_matrix_are_the_matrix_mechanism():
    prefix = np.array([[64 - max(i, j) for j in range(64)] for i in range(64)], dtype=float)
    found = strategies([prefix], [1.0])
    assert found.lower == pytest.approx(282.201421, rel=1e-8)
    assert found.upper == pytest.approx(found.lower, rel=1e-9)


FORGERIES = [
    (("mechanism", "parts", 1, "strategy", "unit"), "2^-40", "which does not give"),
    (("mechanism", "parts", 1, "reconstruction", "unit"), "2^-40", "averages are what the problem asks for"),
    (("mechanism", "parts", 1, "columns"), [2], "has a key 'columns' that is not known"),
    (("mechanism", "parts"), [], "is about 0 sets of columns in place of 4"),
    (("mechanism", "grid"), "1/4", "rounding to grids moves no output by more than"),
    (("mechanism", "output_grid"), "1/4", "rounding to grids moves no output by more than"),
    (("mechanism", "family"), "marginals", "a key 'parts' that is not known"),
    (("mechanism", "family"), "laplace", "a key 'parts' that is not known"),
    (("problem", "blocks", 0, "terms", 0, 0, "weight"), "2", "is not what the problem"),
    (("problem", "blocks", 0, "terms", 0, 0, "weight"), "0", "weights that are not positive"),
    (("problem", "blocks", 0, "terms", 0, 0, "table"), 1, "does not weigh each table"),
    (("problem", "blocks", 0, "worst"), True, "does not add up all errors"),
    (("problem", "blocks", 0, "released", 0, "along", 0, "running"), [], "by columns that it has not"),
    (("problem", "blocks", 0, "released", 0, "along", 0, "running"), [1], "by columns that it has not"),
    (("problem", "blocks", 0, "released", 0, "along", 0, "ranges"), [0], "by columns that it has not"),
    (("problem", "blocks", 0, "released", 0, "along", 0, "table"), 99, "by columns that it has not"),
    (("problem", "blocks", 0, "released", 0, "along", 0, "table"), 2, "by columns that it has not"),
    (("problem", "blocks", 0, "released", 0, "along"), [], "is not a family of noise that the problem allows"),
    (("problem", "blocks", 0, "columns", 0, "upper"), 4, "of a different length from its tables"),
    (("problem", "blocks", 0, "families"), ["laplace"], "is not a family of noise that the problem allows"),
    (("problem", "obligations", 0, "units", 0, "adding"), False, "replaces records of a table"),
    (("problem", "obligations", 0, "seen"), [], "hides, line"),
    (("guarantees", 0, "achieved", "mu"), "0.9", "with the 0.9 that is stated"),
    (("claims", "bound", "line"), 1, "not a whole number in its range"),
    (("claims", "bound", "mu"), "1/2", "is not what the problem and the mechanism say"),
    (("claims", "bound", "parts"), [], "0 entries in place of 4"),
    (("claims", "bound", "scales", "unit"), "0", "is too large, or has a unit that is not positive"),
    (("claims", "bound", "parts", 0, "unit"), "2^-40", "no such noise has a loss below"),
    (("loss", "value"), 3.0, "is not what"),
]


@pytest.mark.parametrize(("path", "value", "words"), FORGERIES, ids=lambda value: str(value)[:44])
def test_forged_plans_are_refused(path, value, words):
    report = judge(JsonNode(mutate(plan(), path, value), "plan"))
    assert not report.ok
    assert words in " ".join(claim.text for claim in report.claims if not claim.holds)


@pytest.mark.parametrize(
    "line",
    [
        ADDING,
        "O is (1, 1e-6)-DP wrt people, adding or removing up to 2 records",
        "O is 0.1-zCDP wrt people, adding or removing one record",
    ],
)
def test_a_sound_plan_is_judged_whole(line):
    found = plan(line=line)
    report = judge(JsonNode(found, "plan"))
    assert report.ok, [claim for claim in report.claims if not claim.holds]
    assert found["status"] == "optimal"
