"""Mechanisms that maximise a utility of their columns: known optima, exactness, and bounds that hold."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privspec.solvers.table_programs import CompleteRatio, TableProgram, TableSolution, violations
from privspec.solvers.table_rays import MOST_ROWS, BestGuess, MutualInformation, best_patterns
from privspec.solvers.tables import solve_table


def uniform(k: int) -> MutualInformation:
    return MutualInformation((Fraction(1, k),) * k)


def information(k: int, size: int, epsilon: float) -> float:
    """Of subset selection under a uniform prior."""
    ratio = math.exp(epsilon)
    mean = (size * ratio + k - size) / k
    return size * ratio * epsilon / (k * mean) - math.log(mean)


def priors(k: int) -> st.SearchStrategy[tuple[Fraction, ...]]:
    weights = st.lists(st.integers(0, 9), min_size=k, max_size=k).filter(any)
    return weights.map(lambda w: tuple(Fraction(v, sum(w)) for v in w))


@pytest.mark.parametrize(
    ("epsilon", "size"), [("1/10", 3), ("1/4", 3), ("1/2", 3), ("1", 2), ("2", 1), ("3", 1), ("6", 1)]
)
def test_subset_selection_maximises_mutual_information(epsilon: str, size: int) -> None:
    """Six values: three of them up to epsilon 1/2, two at 1, one (k-randomised response) from 2."""
    found = best_patterns(Fraction(epsilon), uniform(6))
    assert set(found.sizes) == {size}
    assert len(found.sizes) <= 6
    assert float(found.value) == pytest.approx(information(6, size, float(Fraction(epsilon))), rel=1e-12)
    assert 0 <= found.gap < 1e-9 * float(found.value)
    assert max(information(6, s, float(Fraction(epsilon))) for s in range(1, 6)) <= float(found.upper_bound) + 1e-14


@pytest.mark.parametrize("k", [2, 3, 5, 9])
def test_the_table_is_exact(k: int) -> None:
    epsilon = Fraction(3, 2)
    found = best_patterns(epsilon, uniform(k))
    program = TableProgram(np.zeros((k, len(found.sizes))), (CompleteRatio(epsilon),))
    assert violations(program, found.exact) == []
    table = found.exact.to_array()
    ratio = table.max(axis=0) / table.min(axis=0)
    np.testing.assert_allclose(ratio, math.exp(1.5), rtol=1e-12)
    np.testing.assert_array_equal(table > table.mean(axis=0), found.high)
    joint = table / k
    mean = joint.sum(axis=0)
    assert float(found.value) == pytest.approx(float(np.sum(joint * np.log(joint / (mean / k)))), rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(priors(4), st.sampled_from(["1/10", "1", "4"]), st.integers(0, 10**6))
def test_no_table_beats_the_bound(prior: tuple[Fraction, ...], epsilon: str, seed: int) -> None:
    utility = MutualInformation(prior)
    found = best_patterns(Fraction(epsilon), utility)
    assert found.value <= found.upper_bound
    assert found.gap < 1e-9
    table = np.random.default_rng(seed).dirichlet(np.ones(6), 4)
    # a mixture with a law that ignores the input, just private enough
    law = table.mean(axis=0)
    ratio = math.exp(Fraction(epsilon))
    excess = np.max((table.max(axis=0) - ratio * table.min(axis=0)) / law)
    share = min(1.0, (ratio - 1) / (ratio - 1 + max(excess, 0.0)))
    private = share * table + (1 - share) * law
    assert (private.max(axis=0) <= ratio * private.min(axis=0) * (1 + 1e-9)).all()
    assert float(utility.values(private).sum()) <= float(found.upper_bound) + 1e-9


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 5), st.integers(1, 4), st.sampled_from(["1/2", "1", "3"]), st.integers(0, 10**6))
def test_best_guesses_agree_with_the_program_over_tables(k: int, answers: int, epsilon: str, seed: int) -> None:
    """The expected loss of the best answer: the same optimum as with the answers as outputs."""
    entries = np.random.default_rng(seed).integers(0, 30, (k, answers))
    utility = BestGuess(tuple(tuple(Fraction(int(c), 30 * k) for c in row) for row in entries))
    found = best_patterns(Fraction(epsilon), utility)
    assert found.value <= found.upper_bound
    table = solve_table(TableProgram(entries / (30.0 * k), (CompleteRatio(Fraction(epsilon)),)))
    assert isinstance(table, TableSolution)
    assert -float(found.value) == pytest.approx(float(table.value), rel=1e-6, abs=1e-9)
    assert -found.upper_bound <= table.value + Fraction(1, 10**14)  # its costs are doubles


def test_values_lie_in_their_enclosures() -> None:
    rng = np.random.default_rng(5)
    utility = MutualInformation((Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)))
    for column in rng.random((20, 3)):
        low, high = utility.enclose([Fraction(c) for c in column])
        assert low <= high <= low + Fraction(1, 2**100)
        assert float(low) == pytest.approx(float(utility.values(column[:, None])[0]), abs=1e-15)
    assert utility.enclose([Fraction(0), Fraction(1), Fraction(1)])[0] > 0


def test_a_prior_on_one_value_tells_nothing() -> None:
    found = best_patterns(Fraction(1), MutualInformation((Fraction(1), Fraction(0), Fraction(0))))
    assert abs(float(found.value)) < 1e-12 and found.gap < 1e-12


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="at most"):
        best_patterns(Fraction(1), uniform(MOST_ROWS + 1))
    with pytest.raises(ValueError, match="positive epsilon"):
        best_patterns(Fraction(0), uniform(3))
    with pytest.raises(ValueError, match="sum to one"):
        MutualInformation((Fraction(1, 2),))


@pytest.mark.slow
def test_twelve_inputs_with_a_prior() -> None:
    found = best_patterns(Fraction(1), MutualInformation(tuple(Fraction(k, 78) for k in range(1, 13))))
    assert 0 <= found.gap < 1e-9
