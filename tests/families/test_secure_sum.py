"""Secure sums: noise in shares of all parties, of which those of a coalition do not count."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from math import exp, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privspec.api import Problem
from privspec.core.diagnostics import SpecError
from privspec.families.gaussian.execution import read_executed
from privspec.kernel import judge
from privspec.noise.law import Shares
from privspec.noise.samplers import SimulationRandomness, discrete_gaussian, poisson, polya
from tests.plans import Document, executed_of, resign, solved_text

ALARM = 1e-6
"""Chance of a false alarm of a test."""
SUM = "E[ (O - sum(x[owner] for owner))^2 ]"
VECTOR = "E[ ||O - sum(x[owner] for owner)||^2 ]"


def spec(privacy: str, trust: str, *, domain: str = "[0, 1]", loss: str = SUM, people: int = 20) -> str:
    return f"""parties: owner in 1..{people}
variables:
  input x[owner] in {domain}
  output O
loss: {loss}
privacy: O is {privacy} wrt x, replacing one owner
options: trust {trust}
"""


def coalition(known: int, privacy: str = "1-GDP", **more: Any) -> str:
    return spec(privacy, f"secure_sum(colluding = {known})", **more)


@pytest.mark.parametrize(
    ("privacy", "domain", "loss"),
    [
        ("0.1-zCDP", "[0, 1]", SUM),
        ("(2, 0.5)-RDP", "[0, 1]", SUM),
        ("(1, 1e-6)-DP", "[0, 1]", SUM),
        ("1-DP", "[-3, 7]^2", VECTOR),
        ("1-GDP", "[-3, 7]^2", VECTOR),
        ("(1, 1e-6)-DP", "l2_ball(1, 3)", VECTOR),
    ],
)
def test_a_secure_sum_costs_what_a_curator_costs_and_a_coalition_its_part(privacy: str, domain: str, loss: str) -> None:
    """N / (N - k) times the loss and the bound; the K-norm vector, which has no shares, apart."""
    families = "\n  noise family gaussian, laplace"
    own = {trust: solved_text(spec(privacy, trust + families, domain=domain, loss=loss)) for trust in (
        "curator", "secure_sum", "secure_sum(colluding = 5)"
    )}  # fmt: skip
    curator, whole, part = (plan["loss"] for plan in own.values())
    assert whole["value"] == pytest.approx(curator["value"], rel=1e-8)
    assert part["value"] == pytest.approx(curator["value"] * 20 / 15, rel=1e-8)
    assert part["lower_bound"] == pytest.approx(curator["lower_bound"] * 20 / 15, rel=1e-6)
    assert {plan["status"] for plan in own.values()} == {own["curator"]["status"]}


def test_ten_colluding_of_a_hundred_leave_a_ninetieth_each() -> None:
    """With s^2 the variance that protects, each of the hundred shares has s^2 / 90, and the sum 100 / 90 of it."""
    curator = solved_text(spec("1-GDP", "curator", people=100))["loss"]["value"]
    plan = solved_text(coalition(10, people=100))
    noise, unit = plan["mechanism"]["executed"]["noise"], plan["mechanism"]["executed"]
    done = executed_of(plan)
    assert (done.parties, done.noise.honest) == (100, 90)
    scale = unit["reconstruction"]["rows"][0] * Fraction(unit["reconstruction"]["unit"])
    share = Fraction(noise["variance"]) * scale**2
    assert float(share) == pytest.approx(curator / 90, rel=1e-8)
    assert plan["loss"]["value"] == pytest.approx(curator * 100 / 90, rel=1e-8)


def law(plan: Document) -> tuple[Shares, Fraction, float]:
    """The law of the noise, its lattice, and what an answer is worth in the output."""
    executed = read_executed(plan)
    assert isinstance(executed.noise, Shares)
    return executed.noise, executed.release.grid, float(executed.reconstruction.to_float()[0, 0])


@pytest.mark.parametrize("privacy", ["1-GDP", "1-DP"])
def test_coalitions_simulated(privacy: str) -> None:
    """What is left of the sum once ten of a hundred subtract their shares has the variance that protects."""
    curator = solved_text(spec(privacy, "curator", people=100))["loss"]["value"]
    shares, grid, worth = law(solved_text(coalition(10, privacy, people=100)))
    source, runs = SimulationRandomness(5), 250
    draws = np.array([[shares.share(1, grid, source)[0] for _ in range(100)] for _ in range(runs)], dtype=float)
    draws *= float(grid) * worth
    left = draws[:, 10:].sum(axis=1)
    if privacy == "1-GDP":
        low, high = stats.chi2.ppf([ALARM / 2, 1 - ALARM / 2], runs)
        assert low <= (left**2).sum() / curator <= high
        low, high = stats.chi2.ppf([ALARM / 2, 1 - ALARM / 2], runs * 100)
        assert low <= (draws**2).sum() / (curator / 90) <= high
    else:
        assert stats.kstest(left, "laplace", args=(0, sqrt(curator / 2))).pvalue > ALARM


def test_the_laws_of_shares() -> None:
    """The sum of Laplace shares is discrete Laplace, point by point; one is a difference of negative binomials."""
    source, scale, runs = SimulationRandomness(6), Fraction(3, 2), 12_000
    ratio = exp(-1 / float(scale))
    one = np.array([polya(Fraction(1, 3), scale, source) for _ in range(runs)])
    points = np.arange(12)
    known = stats.nbinom.pmf(points, 1 / 3, 1 - ratio)
    assert fits(one, points, known)
    three = np.array([sum(polya(Fraction(1, 3), scale, source) for _ in range(3)) for _ in range(runs)])
    assert fits(three, points, (1 - ratio) * ratio**points)
    steep = np.array([polya(Fraction(1, 2), Fraction(1, 2), source) for _ in range(runs)])
    assert fits(steep, points, stats.nbinom.pmf(points, 1 / 2, 1 - exp(-2)))
    rare = np.array([poisson(Fraction(7, 5), source) for _ in range(runs)])
    assert fits(rare, points, stats.poisson.pmf(points, 1.4))
    points = np.arange(-9, 10)
    weights = np.exp(-(points**2) / (2 * 3.5))
    normal = np.array([discrete_gaussian(Fraction(7, 2), source) for _ in range(runs)])
    assert fits(normal, points, weights / np.exp(-(np.arange(-60, 61) ** 2) / 7).sum())


def fits(sample: np.ndarray, points: np.ndarray, law: np.ndarray) -> bool:
    expected = law * len(sample)
    keep = expected > 8
    observed = np.array([np.sum(sample == x) for x in points[keep]])
    observed = np.append(observed, len(sample) - observed.sum())
    expected = np.append(expected[keep], len(sample) - expected[keep].sum())
    return bool(stats.chisquare(observed, expected).pvalue > ALARM)


def test_it_runs_and_is_explained(tmp_path: Path) -> None:
    plan = Problem(coalition(3, "1-DP", domain="[0, 1]^2", loss=VECTOR)).solve()
    assert plan.verify().ok
    data = np.full((20, 2), 0.25)
    release = plan.run({"x": data}, tmp_path / "l.db", new_ledger=True)
    np.testing.assert_allclose(release.outputs["O"], [5.0, 5.0], atol=16 * 30)
    assert "any 3 of them" in plan.explain("auditor")
    assert plan.explain("engineer")
    assert "only sums become known" in plan.explain("public")


def test_many_observers_see_every_sum() -> None:
    """A line about one output is about all of them: everybody sees the sums."""
    text = """parties: owner in 1..8
variables:
  input x[owner] in [0, 1]
  output O
  output Q
loss: E[ (O - sum(x[owner] for owner))^2 ] + E[ (Q - sum(owner * x[owner] for owner))^2 ]
privacy:
  O is 1-GDP wrt x, replacing one owner, seen by press
  Q is 1-GDP wrt x, replacing one owner, seen by auditors
options: trust {trust}
"""
    both = text.replace("O is", "(O, Q) are").replace("Q is", "(O, Q) are")
    plan = solved_text(text.format(trust="secure_sum"))
    assert plan["problem"]["obligations"][0]["seen"] == ["O", "Q"]
    assert plan["loss"]["value"] == pytest.approx(solved_text(both.format(trust="curator"))["loss"]["value"], rel=1e-8)


REFUSED = {
    "an input of nobody's": (
        "  input x[owner] in [0, 1]\n",
        "  input x[owner] in [0, 1]\n  input y in [0, 1]\n",
        "y is not",
    ),
    "all collude": ("secure_sum", "secure_sum(colluding = 20)", "nobody is left"),
    "a place": ("secure_sum", "secure_sum\n  noise at x", "at the sum"),
    "a ball of pure epsilon": ("[0, 1]\n", "l2_ball(1, 2)\n", "no shares"),
    "people come and go": ("replacing", "adding or removing", "parties are public"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    old, new, words = REFUSED[name]
    with pytest.raises(SpecError) as caught:
        ball = "ball" in name
        text = spec("1-DP" if ball else "1-GDP", "secure_sum", loss=VECTOR if ball else SUM)
        Problem(text.replace(old, new)).solve()
    assert {one.code for one in caught.value.diagnostics} == {"PS0540"}
    assert words in caught.value.diagnostics[0].message


Change = Callable[[Document], None]


def at(*path: Any) -> Callable[[Any], Change]:
    def given(value: Any) -> Change:
        def change(plan: Document) -> None:
            inner: Any = plan
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value(inner[path[-1]]) if callable(value) else value

        return change

    return given


def noise(*path: Any) -> Callable[[Any], Change]:
    return at("mechanism", "executed", "noise", *path)


def scaled(factor: Fraction) -> Callable[[str], str]:
    return lambda text: str(Fraction(text) * factor)


FORGERIES = {
    "a share too small": ("1-GDP", noise("variance")(scaled(Fraction(9, 10))), "is stated"),
    "a scale too small": ("1-DP", noise("scales", 0)(scaled(Fraction(9, 10))), "is stated"),
    "more parties": ("1-GDP", at("mechanism", "executed", "parties")(200), "'parties' that is not known"),
    "more that are honest": ("1-GDP", noise("honest")(20), "'honest' that is not known"),
    "fewer that collude": ("1-GDP", at("problem", "trust", "colluding")(0), "has a loss below"),
    "a coalition of all": ("1-GDP", at("problem", "trust", "colluding")(20), "no party that adds"),
    "more parties in the problem": (
        "1-GDP",
        at("problem", "blocks", 0, "held", 0, "shape")([200]),
        "parties of a secure sum",
    ),
    "parties of no set": ("1-GDP", at("problem", "data", 0, "party")(None), "parties of a secure sum"),
    "a coarser lattice": ("1-GDP", at("mechanism", "executed", "grid")("2^-20"), "lattice"),
    "a lattice of noise": ("1-DP", at("mechanism", "executed", "grid")("2"), "lattice"),
    "the law of a curator": ("1-GDP", noise("shape")("gaussian"), "shape"),
    "a law of other shares": ("1-GDP", at("mechanism", "family")("laplace"), "noise"),
    "a vector without shares": ("1-DP", at("mechanism", "family")("mixed"), "not known"),
    "rounded outputs": ("1-GDP", at("mechanism", "executed", "round_outputs")(True), "at a curator"),
    "a loss without the coalition": ("1-GDP", at("loss", "value")(1.0), "loss"),
    "other notes": ("1-GDP", at("guarantees", 0, "because")(["gaussian-exact", "post-processing"]), "notes"),
    "a bound of a curator": ("1-GDP", at("loss", "among")("Gaussian noise of any covariance, unbiased"), "about"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_refused(name: str) -> None:
    privacy, change, reason = FORGERIES[name]
    plan = solved_text(coalition(5, privacy))
    assert judge(json.dumps(plan)).ok
    forged = copy.deepcopy(plan)
    change(forged)
    report = judge(json.dumps(resign(forged)))
    assert not report.ok
    assert reason in " ".join(claim.text for claim in report.claims if not claim.holds)


def test_noise_of_next_to_no_size_is_refused() -> None:
    """A lattice as coarse as the shares has no theorem."""
    from privspec.kernel.core.reading import Refused
    from privspec.kernel.laws.gaussian import GaussianShares as Law

    assert Law(Fraction(128), 1).mu_squared(Fraction(1), Fraction(1)) > Fraction(1, 64)
    with pytest.raises(Refused, match="too small"):
        Law(Fraction(127), 10).mu_squared(Fraction(1), Fraction(1))
    with pytest.raises(Refused, match="next to nothing"):
        Law(Fraction(128), 2).mu_squared(Fraction(10**6), Fraction(1))


@pytest.mark.parametrize(("known", "most", "loss"), [(0, 1.2, 7.2), (4, 2.2, 5.0947368)])
def test_accuracy_lines_are_about_the_noise_of_all(known: int, most: float, loss: float) -> None:
    """N / (N - k) of what a curator needs for lines that are narrower by as much."""
    text = """parties: owner in 1..20
variables:
  input x[owner] in [0, 1]^2
  output O
  output Q
loss: E[ (O - sum(x[owner][1] for owner))^2 ] + E[ (Q - sum(x[owner][2] for owner))^2 ]
accuracy: E[ (O - sum(x[owner][1] for owner))^2 ] <= MOST
privacy: (O, Q) are 1-GDP wrt x, replacing one owner
options: trust secure_sum(colluding = KNOWN)
"""
    found = solved_text(text.replace("KNOWN", str(known)).replace("MOST", str(most)))
    own = most * (20 - known) / 20
    assert found["loss"]["value"] == pytest.approx((own + own / (own - 1)) * 20 / (20 - known), rel=1e-5)
    assert found["loss"]["value"] == pytest.approx(loss, rel=1e-5)
    assert found["status"] == "optimal"
    near = solved_text(text.replace("KNOWN", str(known)).replace("MOST", "3"))
    assert near["accuracy"][0]["value"] == pytest.approx(2 * 20 / (20 - known), rel=1e-6)
