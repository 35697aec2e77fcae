"""An amount of privacy picked at least cost: known optima, other ways to the same figure, what is refused."""

from __future__ import annotations

import copy
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from privspec.api import Problem
from privspec.core.diagnostics import SolveError, SpecError
from privspec.families.gaussian import priced
from privspec.kernel.gaussian import mu_down
from privspec.plan import Plan
from tests.plans import Document, resign, solved_text

ANSWERS = """\
variables:
  input x in [0, 1]^6
  intermediate y
  output O
  choose NUMBER in RANGE
background:
  y = [x[1], x[1] + x[2], x[1] + x[2] + x[3], x[4] - x[5], sum(x), x[6]]
accuracy: LIMIT
loss: LOSS
privacy: O is ASKED wrt x, replacing one entry
options:
  OPTION
"""
EACH = "E[ (O[j] - y[j])^2 ] <= 4 for j in 1..6"


def answers(
    number: str, asked: str, loss: str = "", limit: str = EACH, range_: str = "[0, inf)", option: str = "trust curator"
) -> str:
    """The spec of six answers."""
    words = {"NUMBER": number, "ASKED": asked, "LOSS": loss or number, "LIMIT": limit, "RANGE": range_}
    text = ANSWERS.replace("OPTION", option)
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def picked(plan: Document) -> Fraction:
    """The number that was picked."""
    (value,) = plan["mechanism"]["scalars"].values()
    return Fraction(value)


@pytest.mark.parametrize(
    ("tables", "known"),
    [
        pytest.param("0, 1, 2, 3", 3.346405, marks=pytest.mark.slow),
        pytest.param("up_to = 3", 3.1310, marks=pytest.mark.slow),
        ("ways = {1, 2}", 3.0330),
    ],
)
def test_fitness_for_use(tables: str, known: float) -> None:
    """The least mu^2 at which every cell of marginals of a 2 x 2 x 16 table has a variance of at most 1."""
    count = {"0, 1, 2, 3": 153, "up_to = 3": 152}.get(tables, 88)
    text = f"""\
variables:
  input people in table(a in {{F, M}}, b in {{u, v}}, c in 1..16)
  output O
  choose mu in [0, 100]
accuracy: E[ (O[j] - marginals(people, {tables})[j])^2 ] <= 1 for j in 1..{count}
loss: mu^2
privacy: O is mu-GDP wrt people, adding or removing one record
"""
    plan = solved_text(text)
    assert plan["status"] == "optimal"
    assert plan["loss"]["value"] == pytest.approx(known, rel=2e-5)
    assert plan["loss"]["lower_bound"] == pytest.approx(known, rel=2e-5)
    assert max(line["value"] for line in plan["accuracy"]) <= 1 + 1e-9


def test_every_amount_of_a_gaussian_release_says_the_same() -> None:
    """mu, rho, epsilon at a delta, delta at an epsilon, and a Renyi order: one optimum in five measures."""
    mu = picked(solved_text(answers("mu", "mu-GDP")))
    assert 2 * picked(solved_text(answers("rho", "rho-zCDP", "2 * rho"))) == pytest.approx(mu**2, rel=1e-6)
    assert picked(solved_text(answers("r", "(8, r)-RDP"))) == pytest.approx(4 * mu**2, rel=1e-6)
    gaussian = "noise family gaussian"
    epsilon = picked(solved_text(answers("e", "(e, 1e-6)-DP", option=gaussian)))
    assert mu_down(epsilon, Fraction(1, 10**6)) == pytest.approx(mu, rel=1e-6)
    delta = picked(solved_text(answers("delta", "(1, delta)-DP", range_="[0, 0.1]")))
    assert mu_down(Fraction(1), delta) == pytest.approx(mu, rel=1e-6)
    half = picked(solved_text(answers("e", "(2 * e, 1e-6)-DP", option=gaussian)))
    assert 2 * half == pytest.approx(epsilon, rel=1e-6)


def test_the_worst_error_is_the_same_problem() -> None:
    """At mu 1 the least worst variance is 4 mu^2 of the least mu at which all are at most 4."""
    text = answers("mu", "1-GDP", "max(E[ (O[j] - y[j])^2 ] for j in 1..6)").replace("  choose mu in [0, inf)\n", "")
    plan = solved_text(text.replace(f"accuracy: {EACH}\n", ""))
    assert plan["loss"]["value"] == pytest.approx(4 * picked(solved_text(answers("mu", "mu-GDP"))) ** 2, rel=1e-6)


def test_a_limit_of_a_sum() -> None:
    """At mu 1 the least sum of variances is 24 mu^2 of the least mu at which it is at most 24."""
    text = answers("mu", "1-GDP", "E[ ||O - y||^2 ]").replace("  choose mu in [0, inf)\n", "")
    plan = solved_text(text.replace(f"accuracy: {EACH}\n", ""))
    found = solved_text(answers("mu", "mu-GDP", limit="E[ ||O - y||^2 ] <= 24"))
    assert plan["loss"]["value"] == pytest.approx(24 * picked(found) ** 2, rel=1e-6)
    assert found["status"] == "optimal"


@pytest.mark.parametrize("option", ["noise at x, y", "trust nobody", "noise at O"])
def test_noise_that_is_confined(option: str) -> None:
    plan = solved_text(answers("mu", "mu-GDP", option=option))
    assert plan["status"] == "optimal"
    assert picked(plan) >= picked(solved_text(answers("mu", "mu-GDP"))) * Fraction(999999, 1000000)


def test_pure_epsilon_is_given_with_its_bracket() -> None:
    """Laplace noise of scale 1 / epsilon on six numbers: a sum of six has variance 12 / epsilon^2."""
    plan = solved_text(answers("epsilon", "epsilon-DP"))
    assert plan["status"] == "feasible"
    assert picked(plan) <= Fraction(sqrt(3)) * (1 + Fraction(1, 10**6))
    assert 0 < plan["loss"]["lower_bound"] < plan["loss"]["value"]
    # no unbiased mechanism: the Gaussian optimum with mu^2 = 4 sinh(epsilon / 2)^2
    mu = float(picked(solved_text(answers("mu", "mu-GDP"))))
    assert plan["loss"]["lower_bound"] == pytest.approx(2 * np.arcsinh(mu / 2), rel=1e-5)


def test_two_lines_of_which_one_is_fixed() -> None:
    text = answers("e", "(e, 1e-6)-DP").replace(
        "privacy: O is", "privacy:\n  O is 5-GDP wrt x, replacing up to 3 entries\n  O is"
    )
    plan = solved_text(text)
    assert plan["status"] == "optimal"
    assert plan["guarantees"][0]["mu"] == "5"
    loose = float(picked(solved_text(answers("e", "(e, 1e-6)-DP", option="noise family gaussian"))))
    assert float(picked(plan)) == pytest.approx(loose, rel=1e-6)


def test_the_lower_end_of_the_range() -> None:
    plan = solved_text(answers("mu", "mu-GDP", range_="[5, 10]"))
    assert picked(plan) == 5
    assert plan["status"] == "optimal"
    assert plan["loss"]["lower_bound"] == 5


def test_a_range_that_ends_too_soon() -> None:
    plan = Problem(answers("mu", "mu-GDP", range_="[0, 0.5]"), {}).solve().document
    assert plan["status"] == "infeasible"
    assert [line["line"] for line in plan["conflicts"]] == [8, 10, 5]
    (looser, longer) = plan["relaxations"]
    assert looser["line"] == 8
    assert longer["line"] == 5
    needed = Fraction(longer["change"].rpartition(" ")[2])
    least = picked(solved_text(answers("mu", "mu-GDP")))
    assert least <= needed <= least * Fraction(1001, 1000)
    again = Problem(answers("mu", "mu-GDP", range_=f"[0, {float(needed)}]"), {}).solve().document
    assert again["status"] == "optimal"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (answers("mu", "mu-GDP", "E[ ||O - y||^2 ]"), "PS0504", "does not mention mu"),
        (answers("mu", "mu-GDP", "-mu"), "PS0524", "positive weights"),
        (answers("mu", "mu-GDP", "mu^5"), "PS0524", "powers"),
        (answers("mu", "(1 / mu)-GDP"), "PS0524", "or a multiple of it"),
        (answers("order", "(order, 1)-RDP", range_="[2, 64]"), "PS0524", "or a multiple of it"),
        (answers("e", "(e, d)-DP", range_="[0, 1]\n  choose d in [0, 0.1]", loss="e + d"), "PS0524", "one amount"),
        (answers("mu", "mu-GDP", range_="[-1, 1]"), "PS0304", "mu must be positive, not -1"),
    ],
)
def test_what_is_refused(text: str, code: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        Problem(text, {}).solve()
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert words in found.message
    assert found.labels


def test_nothing_known_and_nothing_proved() -> None:
    with pytest.raises(SolveError) as caught:
        Problem(answers("epsilon", "epsilon-DP", range_="[0, 1]"), {}).solve()
    assert caught.value.diagnostics[0].code == "PS0612"


def test_a_range_that_goes_far() -> None:
    """It changes nothing; and where no amount that protects anything is enough, nothing is called impossible."""
    near, far = (picked(solved_text(answers("mu", "mu-GDP", range_=ends))) for ends in ("[0, 10]", "[0, 100000]"))
    assert float(near) == pytest.approx(float(far), rel=1e-9)
    with pytest.raises(SolveError) as caught:
        Problem(answers("mu", "mu-GDP", limit=EACH.replace("<= 4", "<= 1e-9")), {}).solve()
    assert caught.value.diagnostics[0].code == "PS0612"


# --- errors that keep to a size with a probability ------------------------------------------------


TAIL = "|O[j] - y[j]| <= 4 for j in 1..6 with probability 0.95"


def test_a_probability_is_a_variance_of_normal_noise() -> None:
    """|error| <= 4 in 95 of 100 cases is a variance of (4 / z)^2, z the quantile at 0.975."""
    plan = solved_text(answers("mu", "mu-GDP", limit=TAIL))
    least = float(picked(solved_text(answers("mu", "mu-GDP"))))
    assert float(picked(plan)) == pytest.approx(least * norm.ppf(0.975) / 2, rel=1e-6)
    assert plan["status"] == "optimal"
    for line, row in zip(plan["accuracy"], np.diag(plan["mechanism"]["output_covariance"]), strict=True):
        assert line["value"] == pytest.approx(norm.ppf(0.975) * sqrt(row), rel=1e-12)
        assert line["bound"] == 4


def test_a_probability_in_an_ordinary_spec() -> None:
    """Beside a loss of squares, by noise whose tail is known: Laplace noise of less loss is taken."""
    text = answers("mu", "(5, 1e-6)-DP", "E[ ||O - y||^2 ]", limit=TAIL).replace("  choose mu in [0, inf)\n", "")
    plan = solved_text(text)
    assert plan["mechanism"]["family"] == "laplace"
    assert max(line["value"] for line in plan["accuracy"]) <= 4 * (1 + 1e-9)
    tight = Problem(text.replace("<= 4", "<= 0.1"), {}).solve().document
    assert tight["status"] == "infeasible"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (answers("mu", "mu-GDP", limit=TAIL.replace("|", "")), "PS0501", "the size of an error"),
        (answers("mu", "mu-GDP", limit=TAIL.replace("<= 4", "<= 0")), "PS0508", "positive"),
    ],
)
def test_a_probability_that_is_refused(text: str, code: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        Problem(text, {}).solve()
    assert caught.value.diagnostics[0].code == code
    assert words in caught.value.diagnostics[0].message


# --- errors beside the amount ---------------------------------------------------------------------


def without_lines(text: str) -> str:
    return text.replace(f"accuracy: {EACH}\n", "")


def test_a_price_beside_errors() -> None:
    """L / mu^2 + 3 mu^2 is least at mu^4 = L / 3, where it is 2 sqrt(3 L)."""
    at_one = solved_text(
        without_lines(answers("mu", "1-GDP", "E[ ||O - y||^2 ]")).replace("  choose mu in [0, inf)\n", "")
    )
    least = at_one["loss"]["value"]
    plan = solved_text(without_lines(answers("mu", "mu-GDP", "E[ ||O - y||^2 ] + 3 * mu^2")))
    assert plan["loss"]["value"] == pytest.approx(2 * sqrt(3 * least), rel=1e-6)
    assert float(picked(plan)) == pytest.approx((least / 3) ** 0.25, rel=1e-3)
    assert 0 <= plan["loss"]["relative_gap"] <= 1e-4
    twice = solved_text(without_lines(answers("mu", "mu-GDP", "2 * (E[ ||O - y||^2 ] + 3 * mu^2)")))
    assert twice["loss"]["value"] == pytest.approx(2 * plan["loss"]["value"], rel=1e-6)


def test_a_price_beside_errors_that_are_limited() -> None:
    """No worse than the best of many amounts, each solved by itself; never below what is proved."""
    limit, gaussian = "E[ (O[5] - y[5])^2 ] <= 1", "noise family gaussian"
    plan = solved_text(answers("e", "(e, 1e-6)-DP", "E[ ||O - y||^2 ] + 3 * e", limit, "[0, 10]", gaussian))
    assert plan["loss"]["relative_gap"] <= 1e-3
    for amount in ("6.5", "7", "8"):
        text = answers("e", f"({amount}, 1e-6)-DP", "E[ ||O - y||^2 ]", limit, option=gaussian)
        found = Problem(text.replace("  choose e in [0, inf)\n", ""), {}).solve().document
        if found["status"] != "infeasible":
            cost = found["loss"]["value"] + 3 * float(amount)
            assert plan["loss"]["lower_bound"] <= plan["loss"]["value"] <= cost


@pytest.mark.slow
def test_a_price_of_pure_epsilon() -> None:
    """No worse than at 2, and not proved to be the best."""
    plan = solved_text(without_lines(answers("e", "e-DP", "E[ ||O - y||^2 ] + 3 * e")))
    other = solved_text(without_lines(answers("e", "2-DP", "E[ ||O - y||^2 ]")).replace("  choose e in [0, inf)\n", ""))
    assert plan["loss"]["value"] <= other["loss"]["value"] + 6
    assert 0 < plan["loss"]["lower_bound"] < plan["loss"]["value"]


# --- several limits of sums -----------------------------------------------------------------------

SUMS = """\
variables:
  input x in [0, 1]^6
  output P
  output Q
  choose mu in [0, 50]
accuracy:
  E[ ||P - prefix_sums(x)||^2 ] <= 10
  E[ ||Q - x||^2 ] <= 9
  E[ (Q[1] - x[1])^2 ] <= 1
loss: mu
privacy: (P, Q) is mu-GDP wrt x, replacing one entry
"""


def test_several_limits_of_sums() -> None:
    """At the least mu the lines are met; a little below, the one line that binds cannot be, beside the others."""
    plan = solved_text(SUMS)
    assert plan["status"] == "optimal"
    assert all(line["value"] <= line["bound"] * (1 + 1e-9) for line in plan["accuracy"])
    value = picked(plan)
    below = SUMS.replace("  choose mu in [0, 50]\n", "").replace(
        "loss: mu", "loss: E[ ||P - prefix_sums(x)||^2 ] + E[ ||Q - x||^2 ]"
    )
    found = Problem(below.replace("is mu-GDP", f"is {float(value) * 0.999}-GDP"), {}).solve().document
    assert found["status"] == "infeasible"


def test_ways_out_hold_beside_the_other_lines() -> None:
    """Where several lines ask for too much by themselves, no looser target of one of them alone is offered."""
    found = Problem(SUMS.replace("50]", "0.1]"), {}).solve().document
    assert found["status"] == "infeasible"
    assert [way["line"] for way in found["relaxations"]] == [5]


@pytest.mark.parametrize(("old", "new"), [("<= 4 for", "<= 4 * mu for"), ("sum(x)", "mu * sum(x)")])
def test_an_amount_that_stands_elsewhere(old: str, new: str) -> None:
    """What an answer is, or what is asked of it, may not depend on the number that is picked."""
    with pytest.raises(SpecError) as caught:
        Problem(answers("mu", "mu-GDP").replace(old, new), {}).solve()
    assert [one.code for one in caught.value.diagnostics] == ["PS0524"]


ONE_COUNT = """\
variables:
  input people in table(sex in {F, M})
  choose epsilon in RANGE
  output n
loss: epsilon
accuracy: LIMIT
privacy: n is epsilon-DP wrt people, adding or removing one record
"""


def test_the_least_pure_epsilon_for_a_tail_is_that_of_geometric_noise() -> None:
    """Off by more than 10 with a chance of 2 a^11 / (1 + a), a = e^-epsilon; no mechanism does with less."""
    asked = "|n - count(people, sex = F)| <= 10 with probability 0.95"
    plan = Problem(ONE_COUNT.replace("RANGE", "[0, 10]").replace("LIMIT", asked)).solve()
    wanted = brentq(lambda e: 2 * np.exp(-11 * e) / (1 + np.exp(-e)) - 0.05, 0.01, 5)
    assert float(picked(plan.document)) == pytest.approx(wanted, rel=1e-5)
    assert float(picked(plan.document)) >= wanted * (1 - 1e-9)
    assert plan.status == "optimal"
    assert plan.verify().ok
    assert plan.document["alternatives"] == []
    further = copy.deepcopy(plan.document)
    cell, _ = further["claims"]["bound"]["cells"]
    cell["upto"] = str(Fraction(cell["upto"]) * (1 + Fraction(1, 10**6)))
    assert not Plan(resign(further)).verify().ok
    forged = copy.deepcopy(plan.document)
    forged["mechanism"]["scalars"]["epsilon"] = "0.2"
    assert not Plan(resign(forged)).verify().ok
    with pytest.raises(SolveError, match="PS0612"):
        Problem(ONE_COUNT.replace("RANGE", "[0, 0.1]").replace("LIMIT", asked)).solve()


def test_the_least_pure_epsilon_for_sizes_of_errors() -> None:
    """Geometric noise has a mean size of 2 a / (1 - a^2)."""
    asked = "E[ |n - count(people, sex = F)| ] <= 2"
    plan = Problem(ONE_COUNT.replace("RANGE", "[0, inf)").replace("LIMIT", asked)).solve()
    wanted = brentq(lambda e: 2 * np.exp(-e) / (1 - np.exp(-2 * e)) - 2, 0.01, 5)
    assert float(picked(plan.document)) == pytest.approx(wanted, rel=1e-5)
    assert plan.verify().ok


def test_the_least_pure_epsilon_of_one_number_is_that_of_its_best_law() -> None:
    """Noise in steps meets a variance of 1/2 at less than the epsilon of 2 that Laplace noise takes."""
    text = """\
variables:
  input x in [0, 1]^20
  choose epsilon in [0.01, 10]
  output m
loss: epsilon
accuracy: E[ (m - sum(x))^2 ] <= 0.5
privacy: m is epsilon-DP wrt x, replacing one entry
"""
    plan = Problem(text).solve()
    assert float(picked(plan.document)) == pytest.approx(1.85998, abs=1e-4)
    assert plan.loss.lower_bound == pytest.approx(plan.loss.value, rel=1e-4)
    assert plan.document["accuracy"][0]["value"] <= 0.5 * (1 + 1e-6)
    assert plan.verify().ok


ONE_SUM = """\
variables:
  input x in [0, 1]^5
  choose delta in RANGE
  output O
loss: delta
accuracy: E[ (O - sum(x))^2 ] <= LIMIT
privacy: O is (1, delta)-DP wrt x, replacing one entry
"""


def test_no_delta_is_spent_where_pure_epsilon_will_do() -> None:
    text = ONE_SUM.replace("RANGE", "[0, 1]").replace("LIMIT", "3")
    plan = solved_text(text)
    assert picked(plan) == 0
    assert plan["loss"]["lower_bound"] == 0
    assert plan["guarantees"][0]["measure"] == "epsilon-DP"
    gaussian = solved_text(text + "options: noise family gaussian\n")
    forged = copy.deepcopy(gaussian)
    forged["mechanism"]["scalars"]["delta"] = "0"
    del forged["guarantees"][0]["delta"]
    forged["guarantees"][0]["measure"] = "epsilon-DP"
    assert not Plan(resign(forged)).verify().ok


def test_laws_in_steps_need_less_delta_than_gaussian_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laplace noise has a variance of 2, steps of 1.918 at a delta of 0; a Gaussian of 1.85 needs a delta of .045."""
    monkeypatch.setattr(priced, "NEAR_DELTA", Fraction(1, 2))
    plan = Problem(ONE_SUM.replace("RANGE", "[0, 1]").replace("LIMIT", "1.85")).solve()
    assert 1e-6 < Fraction(plan.document["mechanism"]["scalars"]["delta"]) < 5e-3
