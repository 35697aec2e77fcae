"""Histograms of reports, before the kernel: against programs over all channels, random ones, and forged plans."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import comb, exp

import cvxpy
import numpy as np
import pytest

from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode, Refused, read
from privspec.kernel.reports import (
    FrequencyBlock,
    Sets,
    best_subset,
    information,
    least_loss,
)
from tests.plans import executed_of, mutate, solved_text

SPEC = """spec words
parties: p in 1..{count}
variables:
  input word[p] in {values}
  output O
loss: {loss}
{more}privacy:
  {line}
options: trust nobody
"""


def text(count=7, values="1..5", loss="E[ ||O - histogram(word)||^2 ]", more="", line="O is 1-LDP wrt word"):
    return SPEC.format(count=count, values=values, loss=loss, more=more, line=line)


def block(values, count=1):
    one = Fraction(1)
    return FrequencyBlock("x", "O", "p", count, values, (), one, one, None, one, one, "O", "worst", ())


def with_ratio(values, subset, ratio):
    return Sets(block(values), subset, subset * ratio / (subset * ratio + values - subset))


@pytest.mark.parametrize(("k", "epsilon"), [(2, 0.3), (2, 2.0), (3, 0.5), (3, 1.5), (4, 1.0), (5, 0.7), (5, 3), (6, 1)])
def test_no_channel_over_extreme_columns_is_better(k, epsilon):
    """The best unbiased estimate errs by tr(M^-1) - 1, M the sum of c c' / mean(c): convex in the weights of columns.

    Columns between the corners are among those that are offered, and are not used.
    """
    rng, high = np.random.default_rng(k), exp(epsilon)
    corners = [np.array(one) for one in product((1.0, high), repeat=k) if len(set(one)) > 1]
    columns = np.array([*corners, *rng.uniform(1, high, (20, k))]).T
    weights = cvxpy.Variable(columns.shape[1], nonneg=True)
    moment = sum(weights[z] * np.outer(c, c) / c.mean() for z, c in enumerate(columns.T))
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.matrix_frac(np.eye(k), moment)), [columns @ weights == 1])
    program.solve(solver="CLARABEL")
    bound = float(least_loss(block(k), Fraction(str(epsilon))))
    assert program.value - 1 == pytest.approx(bound, rel=1e-5)


def test_random_channels_are_no_better():
    """The best estimate from any channel of the epsilon errs no less than the bound."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        k, outcomes, epsilon = int(rng.integers(2, 7)), int(rng.integers(7, 15)), float(rng.uniform(0.2, 3))
        least = rng.dirichlet(np.full(outcomes, rng.uniform(0.3, 3)))
        channel = least * np.exp(rng.uniform(0, epsilon / 2, (k, outcomes)))
        channel /= channel.sum(axis=1, keepdims=True)
        spread = np.log(channel.max(axis=0) / channel.min(axis=0)).max()
        moment = (channel / channel.mean(axis=0)) @ channel.T
        if spread > 0.05:
            error = np.trace(np.linalg.inv(moment)) - 1
            assert error >= float(least_loss(block(k), Fraction(spread))) * (1 - 1e-9)


def test_estimates_from_several_reports_at_once_are_no_better():
    """Any function of two reports by randomised response, unbiased for the counts: a quadratic program."""
    high = exp(1.0)
    channel = np.array([[high, 1], [1, high]]) / (1 + high)
    estimate = cvxpy.Variable((4, 2))
    errors, right = [], []
    for values in product(range(2), repeat=2):
        law = np.kron(channel[values[0]], channel[values[1]])
        counts = np.bincount(values, minlength=2).astype(float)
        right.append(law @ estimate == counts)
        errors.append(law @ cvxpy.sum(cvxpy.square(estimate - counts), axis=1))
    program = cvxpy.Problem(cvxpy.Minimize(sum(errors) / 4), right)
    program.solve(solver="CLARABEL", canon_backend="SCIPY")
    assert program.value == pytest.approx(float(least_loss(block(2, 2), Fraction(1))), rel=1e-6)


@pytest.mark.parametrize(("k", "d"), [(2, 1), (3, 1), (4, 2), (5, 3), (6, 5)])
def test_error_and_privacy_of_every_set(k, d):
    """Chances, means and errors by going through all sets of d values."""
    ratio = Fraction(5, 2)
    found = with_ratio(k, d, ratio)
    assert found.ratio == ratio
    sets = list(combinations(range(k), d))
    chances = {
        (x, s): found.chance / comb(k - 1, d - 1) if x in s else (1 - found.chance) / comb(k - 1, d)
        for x in range(k)
        for s in sets
    }
    for s in sets:
        column = [chances[x, s] for x in range(k)]
        assert max(column) <= ratio * min(column)
    for x in range(k):
        assert sum(chances[x, s] for s in sets) == 1
        error = Fraction(0)
        for v in range(k):
            guesses = {s: ((v in s) - found.others) / (found.chance - found.others) for s in sets}
            assert sum(chances[x, s] * guesses[s] for s in sets) == (x == v)
            error += sum(chances[x, s] * (guesses[s] - (x == v)) ** 2 for s in sets)
        assert error == found.error(Fraction(1))
        assert error == Fraction((k - 1) ** 2) / information(k, d, ratio) - Fraction(k - 1, k)


def test_the_best_size_of_all():
    for k in (2, 3, 4, 7, 50, 333):
        for ratio in (Fraction(10001, 10000), Fraction(3, 2), Fraction(19, 7), Fraction(30), Fraction(10**6)):
            best = max(information(k, d, ratio) for d in range(1, k))
            assert information(k, best_subset(k, ratio), ratio) == best


@pytest.mark.slow
def test_a_million_values_are_quick():
    found = solved_text(text(count=1000, values="1..1000000"))
    assert found["status"] == "optimal"
    assert found["mechanism"]["sets"][0]["subset"] == pytest.approx(1_000_000 / (1 + exp(1)), rel=1e-5)


def said(report):
    return " ".join(claim.text for claim in report.claims if not claim.holds)


def test_forged_plans_are_refused():
    found = solved_text(text(more="accuracy:\n  E[ ||O - histogram(word)||^2 ] <= 1000\n"))
    assert judge(JsonNode(found, "plan")).ok
    at, chance = ("problem", "blocks", 0), Fraction(found["mechanism"]["sets"][0]["chance"])
    kind = ("mechanism", "sets", 0)
    asked = (*at, "accuracy", 0, "bound")
    for path, value, words in (
        ((*kind, "chance"), str(chance + Fraction(1, 2**60)), "where 1 is asked for"),
        ((*kind, "chance"), str(chance - Fraction(1, 1000)), "is not what the problem"),
        ((*kind, "chance"), "1", "is no chance, or none"),
        ((*kind, "chance"), "1/5", "tells the own value"),
        ((*kind, "subset"), 2, "is not what the problem"),
        ((*kind, "subset"), 5, "is no chance, or none"),
        ((*kind, "subset"), 0, "is not a whole number in its range"),
        (("mechanism", "seed"), 0, ""),
        (("mechanism", "sets"), [], ""),
        (("mechanism", "sets"), found["mechanism"]["sets"] * 2, ""),
        (("mechanism", "of"), {"shape": [7], "unit": "1", "rows": [0, 0, 0, 0, 0, 0, 1]}, "say of each party"),
        (("guarantees", 0, "achieved", "epsilon"), "0.9", "the plan states 0.9"),
        (("guarantees", 0, "because"), ["tables"], "where 1 is asked for"),
        (("loss", "value"), 1.0, "is not what"),
        (("loss", "lower_bound"), found["loss"]["value"] * 1.5, ""),
        (("loss", "among"), "all mechanisms", "is not what the bound is about"),
        (("claims", "bound"), 1, ""),
        ((*at, "values"), 6, "is not what"),
        ((*at, "values"), 1, "one value only"),
        ((*at, "count"), 8, "is not what"),
        ((*at, "scale"), "1/2", "is not what"),
        ((*at, "scale"), "0", "weighs errors by nothing"),
        ((*at, "listed"), ["a", "b", "c", "d", "e"], "neither words nor numbers"),
        ((*at, "step"), "-1", "neither words nor numbers"),
        ((*at, "group"), [0], ""),
        ((*at, "group"), [], "counts no values together"),
        ((*at, "group"), [1, 1], "counts no values together"),
        ((*at, "group"), [0, 1, 2, 3, 4], "counts no values together"),
        ((*at, "group"), [0, 7], "counts no values together"),
        ((*at, "source"), "other", "about other data"),
        (asked, "1", "is not what the problem"),
        (("problem", "trust", "kind"), "curator", "other trust"),
        (("problem", "obligations", 0, "units", 0, "kind"), "entry", ""),
        (("accuracy",), [], "is not what"),
    ):
        report = judge(JsonNode(mutate(found, path, value), "plan"))
        assert not report.ok, path
        assert words in said(report), (path, said(report))
    for bound in (5000.0, 1.0):
        told = mutate(mutate(found, asked, str(bound)), ("accuracy", 0, "bound"), bound)
        assert judge(JsonNode(told, "plan")).ok == (bound == 5000)


def test_what_is_worse_is_not_called_optimal():
    """k-randomised response where sets are better: feasible by its own loss, and optimal by no words."""
    found = solved_text(text(values="1..50", line="O is 0.5-LDP wrt word"))
    k, ratio = 50, Fraction(exp(0.5)) - Fraction(1, 10**12)
    chance = Fraction(int(ratio / (ratio + k - 1) * 2**128), 2**128)
    forged = mutate(found, ("mechanism", "sets"), [{"subset": 1, "chance": str(chance)}])
    one = executed_of(forged)
    value = float(one.error(Fraction(1)))
    forged = mutate(forged, ("loss", "value"), value)
    gap = float((Fraction(value) - Fraction(found["loss"]["lower_bound"])) / Fraction(value))
    forged = mutate(forged, ("loss", "relative_gap"), gap)
    assert not judge(JsonNode(forged, "plan")).ok
    assert judge(JsonNode(mutate(forged, ("status",), "feasible"), "plan")).ok


OWN = text(line="O is epsilon[p]-DP wrt word[p], replacing one p").replace(
    "parties:", "parameters:\n  epsilon[p] = [0.5, 1, 2, 1, 0.5, 3, 1]\nparties:", 1
)


def test_forged_figures_of_each_are_refused():
    found = solved_text(OWN)
    assert found["status"] == "optimal"
    least = sum(least_loss(block(5), Fraction(str(one))) for one in (0.5, 1, 2, 1, 0.5, 3, 1))
    assert found["loss"]["value"] == pytest.approx(float(least))
    assert judge(JsonNode(found, "plan")).ok
    of = found["mechanism"]["of"]["rows"]
    for path, value, words in (
        (("mechanism", "of", "rows"), of[::-1], "more than some own figure allows"),
        (("mechanism", "of", "rows"), [0] * 7, "does not say of each party"),
        (("mechanism", "of", "rows"), [*of[:-1], 9], "does not say of each party"),
        (("mechanism", "of"), None, ""),
        (("guarantees", 0, "achieved", "epsilon"), "2.9", "another is stated"),
        (("guarantees", 0, "achieved", "epsilon"), "3.1", "another is stated"),
        (("guarantees", 0, "because"), [], "another is stated"),
        (("problem", "obligations", 0, "measure", "each", 0, "amounts", 0, 1), "1/4", "some own figure"),
    ):
        report = judge(JsonNode(mutate(found, path, value), "plan"))
        assert not report.ok, path
        assert words in said(report), (path, said(report))


def test_blocks_that_are_none_are_refused():
    own = solved_text(text(values="{a, b, c}"))["problem"]["blocks"][0]
    for key, value in (
        ("listed", ["a", "b"]),
        ("listed", ["a", "b", "b"]),
        ("lower", "1"),
        ("values", 4),
        ("count", 0),
        ("weight", "0"),
        ("weight", "-1"),
        ("kind", "mean"),
        ("party", None),
    ):
        with pytest.raises(Refused):
            read(FrequencyBlock, JsonNode(own | {key: value}, "block"))
