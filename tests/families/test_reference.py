"""The special solvers and the plain convex program give the same answer."""

from __future__ import annotations

import numpy as np
import pytest
from privspec.solvers.programs import OutOfTimeError

from privspec.families.family import Settings
from privspec.families.gaussian.reference import TooLargeError
from privspec.families.gaussian.release import Candidate
from privspec.manual import template_text

from .cases import GAUSSIAN, OBSERVERS
from .specs import chosen, spec


def solved(text: str, solver: str) -> Candidate:
    return chosen(text, Settings(solver=solver, alternatives=False)).chosen


@pytest.mark.parametrize("name", GAUSSIAN)
def test_both_ways_to_solve_agree(name: str) -> None:
    special, plain = solved(GAUSSIAN[name], "default"), solved(GAUSSIAN[name], "cvxpy")
    assert special.loss == pytest.approx(plain.loss, rel=1e-5)
    assert special.mechanism is not None
    assert plain.mechanism is not None
    assert plain.mechanism.solver.startswith("cvxpy")
    assert not special.mechanism.solver.startswith("cvxpy")
    for found in (special, plain):
        assert found.lower_bound is not None
        assert found.lower_bound <= special.loss * (1 + 1e-12)
        assert found.lower_bound <= plain.loss * (1 + 1e-12)
    assert (special.loss - special.lower_bound) / special.loss <= 1e-6  # type: ignore[operator]


@pytest.mark.parametrize("solver", ["default", "cvxpy"])
def test_a_ball_is_hidden_at_the_cost_of_the_whole_map(solver: str) -> None:
    """With V = 2 A times the unit ball, Sigma = 4 A A' is least, and its trace 4 ||A||_F^2."""
    matrix = np.tril(np.ones((4, 4)))
    assert solved(GAUSSIAN["ball"], solver).loss == pytest.approx(4 * (matrix**2).sum(), rel=1e-6)


@pytest.mark.parametrize("solver", ["default", "cvxpy"])
def test_independent_noise_on_inputs_alone(solver: str) -> None:
    """One entry in [0, 1] at mu = 1 takes variance one on every input."""
    assert solved(GAUSSIAN["at x"], solver).loss == pytest.approx(4 + 3 + 2 + 1, rel=1e-6)
    assert solved(GAUSSIAN["nobody"], solver).loss == pytest.approx(4 + 3 + 2 + 1, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "solver"),
    [
        (GAUSSIAN["full"].replace("^4", "^64"), "cvxpy"),
        (GAUSSIAN["histogram, replacing"].replace("0..4", "0..40"), "cvxpy"),
    ],
)
def test_what_would_fill_the_memory_is_declined(text: str, solver: str) -> None:
    with pytest.raises(TooLargeError, match="too many for the general convex solver"):
        solved(text, solver)


def test_noise_at_places_stands_in_for_any_covariance() -> None:
    found = solved(template_text("two_observers").replace("^16", "^80"), "default")
    assert found.lower_bound is None and found.name.startswith("separate noise")


def test_separate_noise_has_no_such_limit() -> None:
    text = spec(*OBSERVERS, "noise at x, y, P").replace("^4", "^80")
    found = solved(text, "default")
    assert found.lower_bound is not None
    assert (found.loss - found.lower_bound) / found.loss <= 1e-6


def test_a_comparison_that_takes_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: object) -> None:
        raise OutOfTimeError(None)

    text = GAUSSIAN["at x and y"]
    both = chosen(text)
    monkeypatch.setattr("privspec.families.gaussian.dense._correlated", late)
    alone = chosen(text)
    assert alone.chosen.loss == both.chosen.loss
    assert len(alone.others) == len(both.others) - 1
