"""What each law of noise says of itself: its variance, its privacy, and the notes that prove it."""

from __future__ import annotations

from fractions import Fraction
from importlib.resources import files
from math import exp
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspec.core.matrices import DyadicMatrix
from privspec.families.gaussian.problem import plain_differences
from privspec.noise.gaussian import GaussianNoise
from privspec.noise.knorm import KNormL2Noise
from privspec.noise.laplace import LaplaceNoise
from privspec.noise.law import NoiseLaw
from privspec.problem.linear_differences import VectorDifferences

ONE = VectorDifferences(np.arange(2), np.array([Fraction(1), Fraction(3, 2)], dtype=object))
ENTRIES, COUNTS = (
    SimpleNamespace(exact=ONE, differences=plain_differences(ONE, 2), points=points)
    for points in (None, ((slice(0, 2), Fraction(1), Fraction(0)),))
)
IDENTITY = DyadicMatrix(np.array([[1, 0], [0, 1]], dtype=np.int64), 0)
LAWS: list[NoiseLaw] = [GaussianNoise(), LaplaceNoise((Fraction(2), Fraction(1, 3))), KNormL2Noise(Fraction(5, 4))]
STEP = Fraction(1, 2**30)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.family)
def test_every_law_names_notes_that_are_there(law: NoiseLaw) -> None:
    assert len(law.notes) >= 2
    for note in law.notes:
        text = files("privspec.noise").joinpath(f"notes/{note}.md").read_text("utf-8")
        assert text.startswith("# ")
        assert len(text) > 400


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.family)
def test_what_stands_in_a_plan_is_text_and_exact(law: NoiseLaw) -> None:
    data = law.to_json()
    assert isinstance(data.pop("shape"), str)
    for value in data.values():
        for item in value if isinstance(value, list) else [value]:
            assert Fraction(item) > 0


def test_gaussian_noise() -> None:
    law = GaussianNoise()
    assert law.row_variances(3, STEP).tolist() == [1, 1, 1]
    reached = law.achieved(IDENTITY, ENTRIES, STEP)
    assert Fraction(3, 2) <= reached < Fraction(3, 2) * (1 + Fraction(1, 10**9))
    assert law.part(np.arange(1)) == law


@given(
    st.fractions(min_value=Fraction(1, 50), max_value=50),
    st.sampled_from([Fraction(1), Fraction(1, 4), Fraction(1, 2**10)]),
)
def test_laplace_variance_is_that_of_the_lattice(scale: Fraction, step: Fraction) -> None:
    (found,) = LaplaceNoise((scale,)).row_variances(1, step)
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
    law = LaplaceNoise((1 / Fraction(epsilon),) * 2)
    p = exp(-float(epsilon))
    np.testing.assert_allclose(law.row_variances(2, Fraction(1)), 2 * p / (1 - p) ** 2, rtol=1e-12)


def test_laplace_epsilon_counts_the_rounding() -> None:
    law = LaplaceNoise((Fraction(2), Fraction(1, 3)))
    plain = max(Fraction(1, 2), Fraction(9, 2))
    assert law.achieved(IDENTITY, COUNTS, Fraction(1, 2)) == plain
    assert law.achieved(IDENTITY, ENTRIES, Fraction(1, 2)) == (Fraction(3, 2) + Fraction(1, 2)) * 3
    off = DyadicMatrix(IDENTITY.integers, 3)
    # eighths are no multiples of one half: the rounding of counts is counted too
    assert law.achieved(off, COUNTS, Fraction(1, 2)) == (Fraction(3, 16) + Fraction(1, 2)) * 3


def test_laplace_prefix_keeps_the_first_scales() -> None:
    assert LaplaceNoise((Fraction(2), Fraction(3))).part(np.arange(1)) == LaplaceNoise((Fraction(2),))


def test_knorm_noise() -> None:
    law = KNormL2Noise(Fraction(5, 4))
    np.testing.assert_allclose(law.row_variances(3, STEP), 4 * 1.25**2)
    reached = law.achieved(IDENTITY, ENTRIES, STEP)
    bare = Fraction(3, 2) / Fraction(5, 4)
    assert bare < reached < bare * (1 + Fraction(1, 10**6))
    assert law.part(np.arange(1)) == law


def test_knorm_variance_by_its_radius() -> None:
    """E r^2 / d with a radius of law Gamma(d, b), by numerical integration."""
    for d in (1, 2, 5):
        r = np.linspace(0, 200, 2_000_001)
        weights = r ** (d - 1) * np.exp(-r / 1.5)
        expected = (r**2 * weights).sum() / weights.sum() / d
        assert KNormL2Noise(Fraction(3, 2)).row_variances(d, STEP)[0] == pytest.approx(expected, rel=1e-4)
