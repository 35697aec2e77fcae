"""Whole choices on one budget beside enumeration, and their relaxation, which no plan reaches."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from privspec.solvers.selection import select


def enumerated(costs: np.ndarray, prices: np.ndarray) -> float:
    """The least over all choices, each with the best shares in closed form."""
    kept = np.array(list(product((0, 1), repeat=len(costs))))
    return float((((kept * np.cbrt(costs)).sum(axis=1)) ** 3 + (1 - kept) @ prices).min())


def test_the_known_instance() -> None:
    costs, prices = np.arange(1.0, 6.0), np.array([40.0, 40, 60, 60, 100])
    whole, relaxed = select(costs, prices)
    assert whole.chosen.tolist() == [0, 0, 1, 0, 1]
    assert (round(whole.value, 3), round(relaxed.value, 3)) == (171.322, 168.716)
    assert whole.value == pytest.approx(enumerated(costs, prices), rel=1e-8)
    assert 0.01 < relaxed.chosen[0] < 0.99, "half a sum is no sum"


@pytest.mark.parametrize("size", [1, 4, 14])
def test_whole_choices_are_those_of_enumeration(size: int) -> None:
    dice = np.random.default_rng(size)
    costs, prices = dice.uniform(0.5, 5, size), dice.uniform(5, 60, size) * size
    whole, relaxed = select(costs, prices)
    assert whole.value == pytest.approx(enumerated(costs, prices), rel=1e-7)
    assert relaxed.value <= whole.value * (1 + 1e-7)
    assert whole.nodes < 2000
