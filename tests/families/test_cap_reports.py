"""Reports from a cap of a sphere, as simulations draw them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privspec.families.statistics.shapes import CapReport


@pytest.mark.parametrize(("size", "epsilon"), [(2, 1), (3, 4), (10, 4), (10, 30), (10, 200), (65, 12)])
def test_reports_are_unbiased_points_of_a_sphere(size: int, epsilon: int) -> None:
    """Also where the cap is far too small to be met by chance; the mean of 40,000 within six standard errors."""
    report = CapReport(Fraction(epsilon), Fraction(1), size)
    statistic = np.full(size, 0.7 / size**0.5)
    drawn = report.noisy(np.tile(statistic, (40_000, 1)), np.random.default_rng(7))
    assert np.linalg.norm(drawn, axis=1) == pytest.approx(np.full(40_000, report.radius))
    assert np.abs(drawn.mean(axis=0) - statistic).max() < 6 * report.radius / 200
