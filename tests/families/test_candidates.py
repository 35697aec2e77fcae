"""Mechanisms that are compared: their losses by hand, and which may be chosen."""

from __future__ import annotations

from fractions import Fraction
from math import log, sqrt

import numpy as np
import pytest

from privspec.core.rounding import LISTED, graded
from privspec.families.family import compiler_of
from privspec.families.gaussian.family import Choice, Linear
from privspec.families.gaussian.release import Candidate
from privspec.kernel.gaussian import mu_down
from privspec.manual import list_templates, template_text
from tests.plans import solved_text

from .cases import ENTRY, GAUSSIAN, LARGEST, PREFIX, PURE, SERIES, SQUARES
from .specs import chosen, model_of, spec

MATRIX = np.tril(np.ones((4, 4)))
PAPER = "the paper's calibration"


def by_name(choice: Choice) -> dict[str, Candidate]:
    return {c.name: c for c in (choice.chosen, *choice.others)}


@pytest.mark.parametrize("name", [*GAUSSIAN, *PURE])
def test_nothing_admissible_is_better_than_what_is_chosen(name: str) -> None:
    choice = chosen({**GAUSSIAN, **PURE}[name])
    assert choice.chosen.admissible
    assert choice.chosen.mechanism is not None
    for other in choice.others:
        assert other.reason
        assert np.isfinite(other.loss)
        assert other.loss > 0
        if other.admissible:
            assert other.loss >= choice.chosen.loss * (1 - 1e-6)
    losses = [graded(c.loss, LISTED) for c in choice.others]
    assert losses == sorted(losses)


@pytest.mark.parametrize("budget", [1, 0.5, 3])
def test_classics_cost_what_they_cost(budget: float) -> None:
    privacy = f"O is {budget}-GDP wrt x, replacing one entry"
    found = by_name(chosen(spec("input x in [0, 2]^4; intermediate y; output O", PREFIX, privacy=privacy)))
    variance = (2 / budget) ** 2
    assert found["noise on each input"].loss == pytest.approx(variance * (MATRIX**2).sum())
    assert found["equal noise on each answer"].loss == pytest.approx(4 * variance * (MATRIX**2).sum(axis=0).max())


def test_classics_under_the_largest_error() -> None:
    found = by_name(chosen(spec(SERIES, PREFIX, LARGEST)))
    assert found["noise on each input"].loss == pytest.approx((MATRIX**2).sum(axis=1).max())
    assert found["equal noise on each answer"].loss == pytest.approx((MATRIX**2).sum(axis=0).max())


def test_classics_with_weights_and_records() -> None:
    table = "input p in table(a in 0..3); intermediate y; output O"
    loss = "sum(j * E[ (O[j] - y[j])^2 ] for j in 1..4)"
    privacy = "O is 1-GDP wrt p, replacing one record"
    found = by_name(chosen(spec(table, "y = prefix_sums(histogram(p))", loss, privacy)))
    weights = np.arange(1, 5)
    # a record leaves one cell and enters another: sqrt(2) in the cells, up to three answers change by one
    assert found["noise on each input"].loss == pytest.approx(2 * (weights @ (MATRIX**2)).sum())
    assert found["equal noise on each answer"].loss == pytest.approx(3 * weights.sum())


@pytest.mark.parametrize(("epsilon", "delta", "safe"), [(1, 1e-6, True), (0.1, 1e-9, True), (8, 1e-2, False)])
def test_the_calibration_of_the_paper_is_compared_and_flagged(epsilon: float, delta: float, safe: bool) -> None:
    privacy = f"O is ({epsilon}, {delta})-DP wrt x, replacing one entry"
    choice = chosen(spec(SERIES, PREFIX, SQUARES, f"{privacy}", "noise family gaussian"))
    found = by_name(choice)
    sigma = sqrt(2 * log(1.25 / delta)) / epsilon
    for name, loss in (("noise on each input", (MATRIX**2).sum()), ("equal noise on each answer", 16.0)):
        classic = found[f"{name}, {PAPER}"]
        assert classic.loss == pytest.approx(sigma**2 * loss)
        assert classic.admissible is safe
        assert (classic.loss > found[name].loss) is safe
        assert ("less noise there than this guarantee needs" in classic.reason) is not safe
    if not safe:
        ratio = sigma * float(mu_down(Fraction(8), Fraction(1, 100)))
        assert ratio == pytest.approx(0.951, abs=5e-4)


def test_the_paper_is_not_quoted_where_it_says_nothing() -> None:
    assert not any(PAPER in name for name in by_name(chosen(spec(SERIES, PREFIX))))


def test_noise_at_keeps_what_it_rules_out_for_comparison() -> None:
    found = by_name(chosen(spec(SERIES, PREFIX, privacy=ENTRY, options="noise at x")))
    assert found["separate noise at x"].admissible
    assert found["noise on each input"].admissible
    for name in ("correlated noise on the answers, at the curator", "equal noise on each answer"):
        assert not found[name].admissible
        assert "`noise at` rules it out" in found[name].reason
        assert name.startswith("equal") or found[name].loss < found["separate noise at x"].loss


@pytest.mark.parametrize("family", ["gaussian", "laplace", "knorm"])
def test_noise_family_rules_out_the_others(family: str) -> None:
    privacy = "O is (1, 1e-6)-DP wrt x, replacing one entry"
    choice = chosen(spec(SERIES, PREFIX, SQUARES, privacy, f"noise family {family}"))
    kinds = {"gaussian": "gaussian", "laplace": "laplace", "knorm": "mixed"}
    assert choice.chosen.family == kinds[family]
    for other in choice.others:
        assert other.admissible == (other.family == kinds[family] and "rules it out" not in other.reason)


def test_pure_noise_may_win_where_a_delta_is_allowed() -> None:
    """Pure epsilon implies (epsilon, delta): for few answers and a small delta laws in steps and Laplace are less."""
    choice = chosen(spec("input x in [0, 1]^2; output O", "", "E[ ||O - x||^2 ]", "O is (1, 1e-9)-DP wrt x"))
    assert choice.chosen.family == "staircase"
    laplace, normal = (min(c.loss for c in choice.others if c.family == own) for own in ("laplace", "gaussian"))
    assert choice.chosen.loss < laplace < normal


def test_nobody_trusted_leaves_only_noise_on_inputs() -> None:
    choice = chosen(GAUSSIAN["nobody"])
    assert choice.chosen.mechanism is not None
    assert [site["at"] for site in choice.chosen.mechanism.sites] == ["x"]
    assert not by_name(choice)["equal noise on each answer"].admissible


ADDITIVE = [
    t.name
    for t in list_templates()
    if t.name != "linear_queries" and isinstance(compiler_of(model_of(template_text(t.name))), Linear)
]


@pytest.mark.parametrize("template", ADDITIVE)
def test_templates_choose_the_best_admissible(template: str) -> None:
    plan = solved_text(template_text(template))
    value, bound = plan["loss"]["value"], plan["loss"]["lower_bound"]
    others = [other["loss"] for other in plan["alternatives"] if other["admissible"]]
    assert value <= min(others, default=np.inf) * (1 + 1e-6)
    assert bound is not None and bound <= value
    assert {site["at"] for site in plan["mechanism"]["sites"]} <= set(model_of(template_text(template)).nodes)
