"""Sizes of errors: figures beside sums and simulation, bounds beside other noise, and forged plans."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from math import pi, sqrt
from typing import Any

import numpy as np
import pytest

from privspec.execute.family import simulate
from privspec.kernel import judge
from privspec.kernel.core.reading import Refused
from privspec.kernel.worth.sizes import laplace_size, laplace_tail
from privspec.kernel.worth.traces import Worth
from tests.plans import Document, resign, solved_text

SPEC = """\
variables:
  input x in [0, 1]^3
  intermediate y
  output O
background: y = [[1, 0, 0], [1, 1, 0], [2, 1, 3]] @ x
loss: LOSS
privacy: O is 1-GDP wrt x, UNIT
"""
SUM = "E[ |O[1] - y[1]| ] + 2 * E[ |O[2] - y[2]| ] + 0.5 * E[ |O[3] - y[3]| ]"
WEIGHTS = np.array([1, 2, 0.5])
TARGET = np.array([[1, 0, 0], [1, 1, 0], [2, 1, 3.0]])


def spec(loss: str = SUM, unit: str = "replacing one entry", more: str = "") -> str:
    return SPEC.replace("LOSS", loss + more).replace("UNIT", unit)


def failures(plan: Document) -> str:
    return "; ".join(f"{claim.name}: {claim.text}" for claim in judge(json.dumps(resign(plan))).failed)


# --- what laws make of sizes ----------------------------------------------------------------------


def by_sums(own: list[tuple[int, float]], most: int = 400) -> np.ndarray:
    """Probabilities of -most .. most for sums of whole multiples of discrete Laplace noise."""
    law = np.array([1.0])
    for c, b in own:
        k = np.arange(-most, most + 1)
        one = np.zeros(2 * most * c + 1)
        one[k * c + most * c] = np.exp(-np.abs(k) / b) * np.tanh(1 / (2 * b))
        law = np.convolve(law, one)
    return law


@pytest.mark.parametrize("own", [[(1, 0.5)], [(3, 2.0)], [(1, 2.0), (1, 2.0)], [(2, 0.5), (1, 3.0), (1, 3.0)]])
def test_sizes_on_a_lattice_are_sums(own: list[tuple[int, float]]) -> None:
    law = by_sums(own)
    at = np.abs(np.arange(len(law)) - len(law) // 2)
    found = laplace_size([(Fraction(c), Fraction(b)) for c, b in own], Fraction(1), Fraction(1))
    assert float(found) == pytest.approx(float(at @ law), rel=1e-12)
    if len(own) == 1:
        for tail in (Fraction(1, 2), Fraction(1, 20), Fraction(1, 10**6)):
            size = laplace_tail([(Fraction(c), Fraction(b)) for c, b in own], Fraction(1), tail)
            assert law[at > size].sum() <= tail < law[at >= size].sum()


@pytest.mark.parametrize(
    "scales", [[2, 2], [1, 1, 1, 1, 1], [1, 2, 3], [Fraction(1), Fraction(1) + Fraction(1, 10**12)]]
)
def test_sizes_of_sums_are_integrals(scales: list[Fraction]) -> None:
    """(2/pi) int (1 - phi(t)) / t^2, and the tail by simulation."""
    grid, t = Fraction(1, 2**40), np.linspace(1e-6, 400, 4_000_001)
    phi = np.prod([1 / (1 + (float(b) * t) ** 2) for b in scales], axis=0)
    value = 2 / pi * (np.trapezoid((1 - phi) / t**2, t) + 1 / t[-1])
    assert float(laplace_size([(Fraction(1), Fraction(b)) for b in scales], grid, Fraction(1))) == pytest.approx(
        value, rel=1e-5
    )
    dice = np.random.default_rng(1)
    noise = np.abs(sum(dice.laplace(0, float(b), 400_000) for b in scales))
    size = float(laplace_tail([(Fraction(1), Fraction(b)) for b in scales], grid, Fraction(1, 20)))
    assert np.mean(noise > size) == pytest.approx(0.05, abs=0.0015)


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(Refused, match="coarse lattice"):
        laplace_size([(Fraction(1), Fraction(2)), (Fraction(1, 100), Fraction(2))], Fraction(1), Fraction(1))
    with pytest.raises(Refused, match="shares"):
        laplace_size([(Fraction(1), Fraction(2))], Fraction(1), Fraction(3, 2))


@pytest.mark.parametrize("trace", [Fraction(1, 3), Fraction(5), Fraction(100)])
def test_a_bound_with_lines_is_a_lagrangian(trace: Fraction) -> None:
    """The least of sizes and squares together, over a grid of multipliers, is not above what is shown."""
    found, t = Worth(trace, Fraction(2), Fraction(1), root=False), np.logspace(-4, 8, 100_001)
    best = np.max(1.5 * np.cbrt(2 * t) * 2 + 2 * np.sqrt(t) * float(trace) - t * 3)
    assert float(found.at(Fraction(3))) == pytest.approx(best, rel=1e-8)
    assert float(Worth(Fraction(0), Fraction(2), Fraction(1), root=False).at(Fraction(3))) == pytest.approx(sqrt(8 / 3))


# --- the best noise -------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["replacing one entry", "replacing everything"])
def test_no_noise_of_random_search_is_better(unit: str) -> None:
    plan = solved_text(spec(unit=unit))
    assert plan["status"] == "optimal"
    value = plan["loss"]["value"]
    dice = np.random.default_rng(7)
    signs = np.array(np.meshgrid([1, -1], [1, -1], [1, -1])).reshape(3, -1)
    moves = TARGET @ (np.eye(3) if unit == "replacing one entry" else signs)
    start = np.array(plan["mechanism"]["output_covariance"])
    for trial in range(300):
        root = np.linalg.cholesky(start) + dice.normal(size=(3, 3)) * 10.0 ** dice.uniform(-4, 1)
        noise = root @ root.T + 1e-9 * np.eye(3)
        noise = noise * np.max(np.einsum("ij,ij->j", moves, np.linalg.solve(noise, moves)))
        assert sqrt(2 / pi) * WEIGHTS @ np.sqrt(np.diag(noise)) >= value * (1 - 1e-7), trial


def test_what_is_predicted_is_what_is_executed() -> None:
    plan = solved_text(spec())
    errors = simulate(plan, 4000, seed=1)
    assert WEIGHTS @ np.abs(errors - errors.mean(axis=0)).mean(axis=0) == pytest.approx(plan["loss"]["value"], rel=0.04)


def test_lines_of_sizes_and_of_probability_are_kept() -> None:
    lines = "\naccuracy:\n  E[ |O[3] - y[3]| ] <= 2.5\n  |O[2] - y[2]| <= 2.2 with probability 0.95"
    plan, free = solved_text(spec(more=lines)), solved_text(spec())
    assert plan["status"] == "optimal"
    assert free["loss"]["value"] < plan["loss"]["value"]
    assert plan["accuracy"][0]["value"] == pytest.approx(2.5, rel=1e-6)
    noise = np.array(plan["mechanism"]["output_covariance"])
    assert sqrt(2 / pi * noise[2, 2]) <= 2.5 * (1 + 1e-9)
    assert sqrt(noise[1, 1]) * 1.959964 <= 2.2 * (1 + 1e-7)


def test_the_split_of_a_budget_for_sizes() -> None:
    """Laplace noise of costs 1, 2, 3 at pure epsilon 1 together: (1 + sqrt 2 + sqrt 3)^2."""
    loss = "E[ |O[1] - x[1]| ] + 2 * E[ |O[2] - x[2]| ] + 3 * E[ |O[3] - x[3]| ]"
    text = f"variables:\n  input x in [0, 1]^3\n  output O\nloss: {loss}\n"
    text += "privacy: O is 1-DP wrt x, replacing everything\noptions:\n  noise at x\n"
    plan = solved_text(text)
    assert plan["loss"]["value"] == pytest.approx((1 + sqrt(2) + sqrt(3)) ** 2, rel=1e-6)
    assert plan["status"] == "optimal"


def test_a_line_of_pure_noise_is_met_by_its_own_tail() -> None:
    text = spec("E[ ||O - y||^2 ]", more="\naccuracy: |O[1] - y[1]| <= 3 with probability 0.9")
    plan = solved_text(text.replace("1-GDP", "1-DP"))
    assert plan["mechanism"]["family"] == "laplace"
    assert plan["accuracy"][0]["value"] <= 3 * (1 + 1e-9)


# --- forged plans ---------------------------------------------------------------------------------


def _problem(plan: Document) -> Any:
    return plan["problem"]["blocks"][0]


@pytest.mark.parametrize("grid", [Fraction(1), Fraction(1, 2**30)])
@pytest.mark.parametrize("count", [65, 1000, 20_000])
def test_tails_of_many_laplace_noises_are_upper_bounds(count: int, grid: Fraction) -> None:
    """Near those of normal errors where they are many; never below what is drawn."""
    dice = np.random.default_rng(count)
    drawn = np.abs(10 * (dice.gamma(count, size=200_000) - dice.gamma(count, size=200_000)))
    for tail in (Fraction(1, 20), Fraction(1, 1000)):
        size = float(laplace_tail([(Fraction(1), Fraction(10))] * count, grid, tail))
        assert np.mean(drawn > size) < tail
        assert size < 1.45 * np.quantile(drawn, 1 - float(tail))
    assert count < 20_000 or float(laplace_tail([(Fraction(1), Fraction(10))] * count, grid, Fraction(1, 20))) < (
        1.1 * np.quantile(drawn, 0.95)
    )


FORGERIES: dict[str, tuple[Callable[[Document], None], str]] = {
    "less loss": (lambda p: p["loss"].update(value=p["loss"]["value"] * 0.99), "loss"),
    "a larger bound": (lambda p: p["loss"].update(lower_bound=p["loss"]["value"]), "loss"),
    "squares": (lambda p: _problem(p)["errors"].pop("sizes"), "loss"),
    "squares said": (lambda p: _problem(p)["errors"].update(sizes=False), "loss"),
    "a size with a probability": (
        lambda p: _problem(p)["accuracy"][0]["errors"].update(sizes=True),
        "no tail is known",
    ),
    "a weight with a probability": (
        lambda p: _problem(p)["accuracy"][0]["errors"]["weights"].update(rows=[2]),
        "no tail",
    ),
    "no flag": (lambda p: _problem(p)["errors"].update(sizes=1), "neither true nor false"),
    "units": (lambda p: p["loss"].update(units="squared units of O"), "loss"),
    "negative": (lambda p: p["claims"]["bound"].update(loss_weights=["-1", "1", "1"]), "less than 0"),
    "nothing": (lambda p: p["claims"]["bound"].update(loss_weights=["0", "1", "1"]), "not positive"),
    "none": (lambda p: p["claims"]["bound"].update(loss_weights=None), "not a list"),
    "confined": (lambda p: p["claims"]["bound"].update(scope="messages"), "bounded in"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged(name: str) -> None:
    line = "\naccuracy: |O[1] - y[1]| <= 90 with probability 0.9"
    plan = copy.deepcopy(solved_text(spec(more=line if "probability" in name else "")))
    assert not failures(plan)
    change, words = FORGERIES[name]
    change(plan)
    assert words in failures(plan)


def test_a_bound_on_squares_says_nothing_of_pure_noise() -> None:
    """Of pure noise variances are bounded, and sizes may be far smaller: shifts bound those, and no trace does."""
    plan = solved_text(spec().replace("1-GDP", "1-DP"))
    assert plan["claims"]["bound"] == {"scope": "shifts", "requirement": None}
    assert plan["status"] == "feasible"
    assert judge(json.dumps(plan)).ok
    gaussian = solved_text(spec())
    plan["claims"]["bound"] = gaussian["claims"]["bound"]
    assert "no bound is known" in failures(plan)


@pytest.mark.parametrize("scale", [Fraction(3, 2), Fraction(40)])
def test_sums_of_noises_alike_of_any_number(scale: Fraction) -> None:
    """Of equal noises there may be thousands: on a lattice, and next to it, as many as there are close to a limit."""
    own = [(Fraction(1), scale)] * 7
    listed = [(Fraction(1), scale * (1 + Fraction(i, 2**60))) for i in range(7)]
    for grid in (Fraction(1), Fraction(1, 2**30)):
        one = float(laplace_size(listed, grid, Fraction(1)))
        assert float(laplace_size(own, grid, Fraction(1))) == pytest.approx(one, rel=1e-9)
    many = float(laplace_size([(Fraction(1), scale)] * 2000, Fraction(1), Fraction(1)))
    square = 2000 * 2 * np.exp(-1 / float(scale)) / (1 - np.exp(-1 / float(scale))) ** 2
    assert many == pytest.approx(sqrt(2 * square / pi), rel=1e-3)
