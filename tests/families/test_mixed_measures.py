"""Lines of pure epsilon beside lines that have none: which noise hides each output, and what all let through."""

from __future__ import annotations

import json
from fractions import Fraction
from math import cosh, exp, log, sinh, sqrt
from statistics import NormalDist

import numpy as np
import pytest

from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.divergences import Composed, Curved
from privspec.kernel.measures import GAUSSIAN, RENYI, ZERO_CONCENTRATED, Measure
from privspec.model.measures import measure_at
from tests.plans import components, resign, solved_text

ONE = """\
variables:
  input x in [0, 1]^3
  output O
loss: E[ (O - sum(x))^2 ]
privacy:
  O is {pure}-DP wrt x, replacing one entry
  O is {other} wrt x, replacing one entry
"""
TWO = """\
variables:
  input people in table(age in 0..3, sex in {F, M})
  output fine
  output coarse
loss: E[ ||fine - histogram(people)||^2 ] + 5 * E[ ||coarse - histogram(people, by = {sex})||^2 ]
privacy:
  coarse is 0.5-DP wrt people, adding or removing one record, seen by public
  (fine, coarse) is 0.5-zCDP wrt people, adding or removing one record, seen by office
"""


def implied(other: str) -> float:
    """The largest epsilon of randomised response that satisfies a line, where that is known in closed form."""
    return {
        "0.1-zCDP": sqrt(0.2),
        "0.5-GDP": log(1 / NormalDist().cdf(-0.25) - 1),
        "(2, 0.1)-RDP": sqrt(0.1),
        "(8, 0.3)-RDP": 0.3,
    }[other]


@pytest.mark.parametrize("other", ["0.1-zCDP", "0.5-GDP", "(2, 0.1)-RDP", "(8, 0.3)-RDP"])
def test_one_output_has_noise_that_keeps_both_lines(other: str) -> None:
    plan = solved_text(ONE.format(pure=4, other=other))
    reached = [Fraction(one["achieved"]["epsilon"]) for one in plan["guarantees"]]
    assert reached[0] == reached[1]
    assert float(reached[0]) == pytest.approx(implied(other), rel=1e-6)
    # Laplace noise in steps of the lattice, next to 2 / epsilon^2
    assert plan["loss"]["value"] == pytest.approx(2 / implied(other) ** 2, rel=1e-5)
    assert judge(JsonNode(plan, "plan")).ok


def test_where_the_pure_line_is_the_stricter_one_it_decides() -> None:
    plan = solved_text(ONE.format(pure="0.25", other="0.1-zCDP"))
    assert plan["loss"]["value"] == pytest.approx(2 / 0.25**2, rel=1e-5)


def test_what_keeps_one_line_alone_is_refused() -> None:
    """Noise of a weaker second line keeps the first; in a problem that asks for more it does not."""
    weak, strict = (solved_text(ONE.format(pure=4, other=other)) for other in ("8-zCDP", "0.1-zCDP"))
    forged = json.loads(json.dumps(strict))
    forged["mechanism"], forged["loss"], forged["claims"] = weak["mechanism"], weak["loss"], weak["claims"]
    for one, other in zip(forged["guarantees"], weak["guarantees"], strict=True):
        one["achieved"] = other["achieved"]
    report = judge(JsonNode(resign(forged), "plan"))
    assert [one.item for one in report.failed if one.name == "privacy"] == [1]


def test_each_output_has_the_noise_that_its_own_lines_allow() -> None:
    """Counts by sex have Laplace noise of epsilon .5, which costs rho = 1/8; Gaussian noise has the rest."""
    plan = solved_text(TWO)
    assert [one["mechanism"]["family"] for one in components(plan)] == ["gaussian", "laplace"]
    least = 5 * 2 * 2 / (4 * sinh(0.25) ** 2) + 8 / (2 * (0.5 - 0.125))
    assert plan["loss"]["value"] == pytest.approx(least, rel=1e-5)
    assert plan["status"] == "optimal"
    assert judge(JsonNode(plan, "plan")).ok


def implied_by_pure(measure: Measure, amounts: dict[str, Fraction]) -> Fraction:
    found = measure_at(measure, amounts).implied_by_pure()
    assert found is not None
    return found


def test_laws_of_the_epsilon_that_a_condition_allows_satisfy_it_and_more_would_not() -> None:
    asked: list[tuple[Measure, dict[str, Fraction]]] = [
        (ZERO_CONCENTRATED, {"rho": Fraction(1, 5)}),
        (GAUSSIAN, {"mu": Fraction(7, 10)}),
        (RENYI, {"order": Fraction(3), "epsilon": Fraction(1, 2)}),
        (RENYI, {"order": Fraction(20), "epsilon": Fraction(1, 2)}),
    ]
    whole = 10**15
    for measure, amounts in asked:
        condition = measure.condition(amounts)
        epsilon = implied_by_pure(measure, amounts)
        assert isinstance(condition, Curved)
        assert condition.satisfied_by(Composed.of({"epsilon": epsilon * (1 - Fraction(1, 10**12))}))
        likely = round(whole / (1 + exp(-float(epsilon) * (1 - 1e-9))))
        assert condition.holds([likely, whole - likely], [whole - likely, likely], whole)
        if measure is GAUSSIAN:
            more = round(whole / (1 + exp(-float(epsilon) * (1 + 1e-9))))
            assert not condition.holds([more, whole - more], [whole - more, more], whole)


def test_no_law_that_satisfies_a_condition_tells_more_than_unbiased_mechanisms_may_use() -> None:
    """Chi^2 between laws that keep a line is at most what its bound counts with."""
    random, whole, kept = np.random.default_rng(3), 10**9, 0
    asked: list[tuple[Measure, dict[str, Fraction]]] = [
        (ZERO_CONCENTRATED, {"rho": Fraction(1, 5)}),
        (GAUSSIAN, {"mu": Fraction(7, 10)}),
        (RENYI, {"order": Fraction(3), "epsilon": Fraction(1, 2)}),
    ]
    assert RENYI.condition({"order": Fraction(3, 2), "epsilon": Fraction(1, 2)}).largest_unbiased() is None
    for measure, amounts in asked:
        condition = measure.condition(amounts)
        most = condition.largest_unbiased()
        assert isinstance(condition, Curved)
        assert most is not None
        for _ in range(200):
            logs = random.normal(size=(2, 4)) * 0.3
            p, q = (np.exp(one) / np.exp(one).sum() for one in (logs[0], logs[0] + logs[1]))
            whole_p, whole_q = ([int(whole * v) + 1 for v in law] for law in (p, q))
            if condition.holds(whole_p, whole_q, whole + 4):
                kept += 1
                assert np.sum(q**2 / p) - 1 <= float(most) * (1 + 1e-6)
    assert kept > 100


def test_two_normal_laws_reach_what_unbiased_mechanisms_may_use() -> None:
    """Their chi^2 is e^(mu^2) - 1: of pure epsilon 2 cosh(epsilon) - 2 is more than both."""
    mu = Fraction(1, 2)
    of_gaussian = GAUSSIAN.condition({"mu": mu}).largest_unbiased()
    of_rho = ZERO_CONCENTRATED.condition({"rho": mu**2 / 2}).largest_unbiased()
    assert of_gaussian is not None
    assert of_rho is not None
    assert float(of_gaussian) == pytest.approx(exp(0.25) - 1)
    assert float(of_rho) == pytest.approx(exp(0.25) - 1)
    epsilon = implied_by_pure(ZERO_CONCENTRATED, {"rho": mu**2 / 2})
    assert 2 * cosh(float(epsilon)) - 2 < float(of_rho)
