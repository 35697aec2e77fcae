"""Made-up tables near the thresholds: means by them are those by the law, and rare errors are seen often."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from privspec.api import Problem
from privspec.families.selection.made_up import PLAIN, _last_below, _tables

CHANCES = tuple(np.random.default_rng(1).dirichlet(np.full(9, 3.0)))


@pytest.mark.parametrize(("size", "counted"), [(12, 1.0), (300, 1.0), (300, 0.4)])
@pytest.mark.parametrize("shares", [("1/2",), ("1/10", "1/2", "9/10"), ("0",), ("1/3", "1")])
def test_means_over_made_up_tables_are_those_by_the_law(size, counted, shares):
    """All counts, their squares, and the chances of what is rare, within 4.5 standard errors."""
    each = tuple(map(Fraction, shares))
    made = _tables(size, counted, CHANCES, (1.0,), each, 20000)
    tables, law = np.array(made.tables), np.array(CHANCES) / sum(CHANCES) * counted
    assert made.often.max() <= PLAIN * (1 + 1e-3)

    def near(values, expected):
        weighed = values.T * made.often
        off = weighed.mean(axis=-1) - expected
        assert np.all(np.abs(off) <= 4.5 * weighed.std(axis=-1) / np.sqrt(len(tables)) + 1e-9)

    near(np.ones(len(tables)), 1.0)
    near(tables, size * law)
    near((tables - size * law) ** 2, size * law * (1 - law))
    if counted == 1:
        at_most = np.cumsum(tables, axis=1)[:, :-1]
        for share in each:
            for off in (-3, 0, 1, 2):
                wanted = _last_below(share, size) + off
                chances = binom.pmf(wanted, size, np.cumsum(law)[:-1])
                near((at_most == wanted)[:, chances > 1e-4] * 1.0, chances[chances > 1e-4])


@pytest.mark.parametrize("step", ["2", "1"])
def test_a_median_that_is_hardly_ever_wrong_has_a_loss_with_its_bound(step):
    """A plain mean was off by all of itself, and below what is proved of every mechanism."""
    plan = Problem(
        f"variables:\n  input people in table(pay in grid(0, 200, {step}))^20000\n  output q\n"
        "background: people.pay ~ normal(60, 25)\nloss: E[ |q - quantile(people.pay, 1/2)| ]\n"
        "privacy: q is 1-DP wrt people, replacing one record\n"
    ).solve()
    assert plan.verify().ok
    assert plan.document["loss"]["standard_error"] < 0.1 * plan.loss.value
    assert 0.35 * plan.loss.value < plan.loss.lower_bound <= plan.loss.value
