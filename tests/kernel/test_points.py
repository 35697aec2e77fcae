"""Noise at real points, before the kernel: figures against sampling and quadrature, and forged plans."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from scipy import integrate

from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.laws.knorm import NORMS
from privspec.kernel.points import Error, PointBlock, Points, least_loss, loss_of, moment
from privspec.noise.vectors import approximate
from tests.plans import mutate, solved, solved_text

SPEC = """spec point
variables:
  input x in {domain}
  output z
loss: {loss}
privacy:
  z is {epsilon}-metric-DP wrt x, distance {distance}
"""
ERRORS = [Error("l2", 2, Fraction(1)), *(Error(norm, 1, Fraction(1)) for norm in NORMS)]
KEYS = {"l1": 1, "l2": 2, "linf": np.inf}


def plan(domain="[0, 10]^2", loss="E[ ||z - x|| ]", epsilon="1", distance="euclidean"):
    return solved_text(SPEC.format(domain=domain, loss=loss, epsilon=epsilon, distance=distance))


def block(size, error, **more):
    given = {
        "lower": Fraction(0),
        "upper": Fraction(1),
        "radius": None,
        "ball": None,
        "least": None,
        "most": None,
    } | more
    return PointBlock(
        "x", "z", None, 1, size, (size,), error=error, expression="", kind="expected", accuracy=(), **given
    )


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_moments_are_those_of_the_law(norm, size):
    rng = np.random.default_rng(7)
    vectors = approximate(norm, size, 200_000, rng)
    for error in ERRORS:
        found = moment(norm, size, error)
        if found is None:
            continue
        lengths = np.linalg.norm(vectors, ord=KEYS[error.norm], axis=1) ** error.power
        # six standard errors
        assert abs(lengths.mean() - float(found)) < 6 * lengths.std() / sqrt(len(lengths)), (norm, error)


def test_the_cube_is_drawn_from_its_density():
    # E ||v||_2^2 and E ||v||_1 under e^-max(|a|, |b|) in the plane, by quadrature
    def mean(of):
        inside = integrate.dblquad(lambda b, a: of(a, b) * np.exp(-max(a, b)), 0, 40, 0, 40)[0]
        return inside / integrate.dblquad(lambda b, a: np.exp(-max(a, b)), 0, 40, 0, 40)[0]

    assert mean(lambda a, b: a * a + b * b) == pytest.approx(float(moment("linf", 2, ERRORS[0])), rel=1e-4)
    assert mean(lambda a, b: a + b) == pytest.approx(float(moment("linf", 2, ERRORS[1])), rel=1e-4)


@pytest.mark.parametrize("distance", ["euclidean", "manhattan", "chebyshev"])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_no_noise_beats_the_bound(distance, size):
    """Mixtures of K-norm laws of larger scales, and of other norms, satisfy the line: none is below the bound."""
    for error in ERRORS:
        bound = least_loss(block(size, error), distance, Fraction(1, 2))
        for norm in NORMS:
            unit = Points(block(size, error), norm, Fraction(1), Fraction(1, 2**40))
            points = Points(unit.block, norm, unit.epsilon(distance) * 2, unit.step)
            found = loss_of(points, error)
            assert found is None or bound <= found


def test_bounds_are_reached_where_the_note_says():
    for norm, distance in (("l2", "euclidean"), ("l1", "manhattan"), ("linf", "chebyshev")):
        for size in (1, 2, 5):
            for error in (Error(norm, 1, Fraction(3)), *([ERRORS[0]] if norm != "linf" or size == 1 else [])):
                points = Points(block(size, error), norm, Fraction(2), Fraction(1, 2**50))
                bound = least_loss(points.block, distance, Fraction(1, 2))
                assert float(loss_of(points, error)) == pytest.approx(float(bound), rel=1e-12)


def test_diameters():
    unit = {"norm": "l2", "scale": Fraction(1), "step": Fraction(1)}
    assert Points(block(4, ERRORS[0]), **unit).epsilon() == 2
    ball = block(4, ERRORS[0], lower=None, upper=None, radius=Fraction(3), ball="l2")
    assert Points(ball, **unit).epsilon() == 6
    assert Points(ball, **unit | {"norm": "l1"}).epsilon() == 12
    assert Points(block(4, ERRORS[0], lower=None), **unit).epsilon() is None


def test_ratios_of_rounded_noise_keep_the_line():
    """One number, by its cells: the rounded law at any two points is within e^(epsilon d), near ones too."""
    step, scale = 0.5, 2.0
    cells = np.arange(-40, 41) * step

    def law(x):
        ends = np.concatenate([[-np.inf], cells[:-1] + step / 2, [np.inf]])
        below = np.where(
            ends < x, np.exp((np.minimum(ends, x) - x) / scale) / 2, 1 - np.exp(-(np.maximum(ends, x) - x) / scale) / 2
        )
        return np.diff(below)

    for x, other in ((0.2499, 0.2501), (0.0, 0.25), (1.0, 3.3)):
        ratio = np.max(np.abs(np.log(law(x) / law(other))))
        assert ratio <= abs(x - other) / scale + 1e-9
        # a lattice law about the nearest lattice point does not: its centres jump
        centres = np.rint(np.array([x, other]) / step) * step
        if abs(x - other) < 0.001:
            assert abs(centres[0] - centres[1]) / scale > 100 * abs(x - other) / scale


FORGERIES = [
    (("mechanism", "scale"), "1/2", "epsilon 2 per unit"),
    (("mechanism", "norm"), "l1", "epsilon 1.4142136 per unit"),
    (("mechanism", "norm"), "l7", "is not known"),
    (("mechanism", "scale"), "0", "no size"),
    (("mechanism", "scale"), "-1", "is less than 0"),
    (("mechanism", "step"), "0", "no step"),
    (("mechanism", "step"), "1/16", "is not what the problem and the mechanism say"),
    (("mechanism", "lattice"), "1/16", "not known"),
    (("guarantees", 0, "achieved", "epsilon"), "0.99", "the plan states 0.99"),
    (("guarantees", 0, "because"), ["discrete-laplace"], "the plan states 1"),
    (("loss", "lower_bound"), 6.5, "plan.loss.relative_gap is not"),
    (("loss", "value"), 5.9, "is not what"),
    (("loss", "among"), "all mechanisms", "is not what the bound is about"),
    (("problem", "blocks", 0, "upper"), "0", "lie in no box"),
    (("problem", "blocks", 0, "size"), 1, "a report of another size"),
    (("problem", "trust", "kind"), "secure_sum", "other trust"),
]


@pytest.mark.parametrize(("path", "value", "words"), FORGERIES, ids=lambda value: str(value)[:40])
def test_forged_plans_are_refused(path, value, words):
    forged = mutate(plan(loss="E[ ||z - x||^2 ]"), path, value)
    report = judge(JsonNode(forged, "plan"))
    assert not report.ok
    assert words in " ".join(claim.text for claim in report.claims if not claim.holds)


def test_a_bound_beyond_the_one_derived_is_refused():
    found = plan(distance="chebyshev", loss="E[ ||z - x||^2 ]")
    assert (found["status"], found["loss"]["lower_bound"]) == ("feasible", 6)
    higher = mutate(
        mutate(found, ("loss", "lower_bound"), 7.0),
        ("loss", "relative_gap"),
        (found["loss"]["value"] - 7) / found["loss"]["value"],
    )
    report = judge(JsonNode(higher, "plan"))
    assert not report.ok
    assert "no such noise has a loss below 6" in " ".join(claim.text for claim in report.claims if not claim.holds)


def test_another_metric_is_another_line():
    """A plan for the largest difference, whose spec is said to be about the length: the noise is too small for it."""
    other = plan(distance="chebyshev", loss="E[ ||z - x||_inf ]")
    told = mutate(other, ("problem", "obligations", 0, "measure", "distance"), "manhattan")
    privacy = [claim for claim in judge(JsonNode(told, "plan")).claims if claim.name == "privacy"]
    assert [claim.holds for claim in privacy] == [True]  # of a larger distance the same noise keeps more
    base = plan(distance="manhattan", loss="E[ ||z - x||_1 ]")
    told = mutate(base, ("problem", "obligations", 0, "measure", "distance"), "euclidean")
    report = judge(JsonNode(told, "plan"))
    assert not report.ok
    assert "1.4142136 per unit of euclidean" in " ".join(claim.text for claim in report.claims)
    told = mutate(base, ("problem", "obligations", 0, "measure", "distance"), "hamming")
    assert not judge(JsonNode(told, "plan")).ok


def test_a_sound_plan_is_judged_whole():
    report = judge(JsonNode(solved("location_reports"), "plan"))
    assert report.ok
    assert {claim.name for claim in report.claims} >= {"privacy", "rounding", "view", "loss", "bound"}
