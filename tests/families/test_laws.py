"""What each law of noise says of itself: its variance, its privacy, and the notes that prove it."""

from __future__ import annotations

from fractions import Fraction
from importlib.resources import files
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspec.kernel.core.reading import JsonNode, read
from privspec.kernel.laws.gaussian import Gaussian
from privspec.kernel.laws.knorm import KNorm
from privspec.kernel.laws.laplace import Laplace
from privspec.kernel.laws.law import Law
from privspec.kernel.writing import write
from privspec.noise.laplace import LaplaceNoise

LAWS: list[Law] = [Gaussian(Fraction(1)), Laplace((Fraction(2), Fraction(1, 3))), KNorm(Fraction(5, 4))]
STEP = Fraction(1, 2**30)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.family)
def test_every_law_names_notes_that_are_there(law: Law) -> None:
    assert law.notes
    for note in law.notes:
        text = files("privspec.noise").joinpath(f"notes/{note}.md").read_text("utf-8")
        assert text.startswith("# ")
        assert len(text) > 400


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.family)
def test_what_stands_in_a_plan_is_text_and_exact(law: Law) -> None:
    said = write(law)
    assert said["shape"] == law.FORM
    given = {name: getattr(law, name) for name in law.GIVEN}
    assert read(type(law), JsonNode(said, "noise"), **given) == law


def test_gaussian_noise() -> None:
    assert Gaussian(Fraction(1)).variances(3, STEP) == [1, 1, 1]


@given(
    st.fractions(min_value=Fraction(1, 50), max_value=50),
    st.sampled_from([Fraction(1), Fraction(1, 4), Fraction(1, 2**10)]),
)
def test_laplace_variance_is_that_of_the_lattice(scale: Fraction, step: Fraction) -> None:
    (found,) = map(float, Laplace((scale,)).variances(1, step))
    decay = float(step / scale)
    if decay > 1e-4:
        places = np.arange(1, int(60 / decay) + 2)
        weights = np.exp(-decay * places)
        total = 1 + 2 * weights.sum()
        expected = 2 * float(step) ** 2 * (places**2 * weights).sum() / total
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-300)
    if step < scale / 1000:
        assert found == pytest.approx(2 * float(scale) ** 2, rel=1e-5)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "3"])
def test_the_geometric_mechanism(epsilon: str) -> None:
    law = Laplace((1 / Fraction(epsilon),) * 2)
    p = exp(-float(epsilon))
    found = list(map(float, law.variances(2, Fraction(1))))
    np.testing.assert_allclose(found, 2 * p / (1 - p) ** 2, rtol=1e-12)


def test_laplace_prefix_keeps_the_first_scales() -> None:
    assert LaplaceNoise((Fraction(2), Fraction(3))).part(np.arange(1)) == LaplaceNoise((Fraction(2),))


def test_knorm_noise() -> None:
    assert KNorm(Fraction(5, 4)).variances(3, STEP) == [4 * Fraction(25, 16)] * 3


def test_knorm_variance_by_its_radius() -> None:
    """E r^2 / d with a radius of law Gamma(d, b), by numerical integration."""
    for d in (1, 2, 5):
        r = np.linspace(0, 200, 2_000_001)
        weights = r ** (d - 1) * np.exp(-r / 1.5)
        expected = (r**2 * weights).sum() / weights.sum() / d
        assert float(KNorm(Fraction(3, 2)).variances(d, STEP)[0]) == pytest.approx(expected, rel=1e-4)
