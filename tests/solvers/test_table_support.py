"""Whether any table, and whether any ratio, meets linear rows: against programs solved with ever larger ratios."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from privspec.solvers.programs import OutOfTimeError, Watch
from privspec.solvers.table_programs import CompleteRatio, LinearRows, PairRatio, Privacy, TableProgram
from privspec.solvers.tables import has_table, no_common_support


def chain(n: int) -> np.ndarray:
    return np.array([(a, b) for a in range(n) for b in (a - 1, a + 1) if 0 <= b < n])


def with_means(means: list[Fraction], outputs: int, privacy: Privacy) -> TableProgram:
    """E[y | x] = means[x] for values 1..outputs."""
    inputs = len(means)
    at = np.repeat(np.arange(inputs), outputs)
    values = tuple(Fraction(y + 1) for _ in means for y in range(outputs))
    rows = LinearRows(at, np.arange(inputs * outputs), values, tuple(means))
    return TableProgram(np.zeros((inputs, outputs)), (privacy,), equalities=rows)


def identity(n: int) -> list[Fraction]:
    return [Fraction(x + 1) for x in range(n)]


@pytest.mark.parametrize("privacy", [CompleteRatio(Fraction(1)), PairRatio(chain(4), (Fraction(1),))])
def test_extreme_means_leave_one_output(privacy: Privacy) -> None:
    found = no_common_support(with_means(identity(4), 4, privacy), privacy)
    assert found is not None
    assert found.possible.sum(axis=1).tolist() == [1, 4, 4, 1]
    assert found.possible[0, 0]
    assert found.possible[3, 3]


def test_inner_means_fit_some_ratio() -> None:
    means = [Fraction(3, 2), Fraction(2), Fraction(5, 2)]
    block = CompleteRatio(Fraction(1, 10))
    program = with_means(means, 3, block)
    assert not has_table(program, Watch())
    assert no_common_support(program, block) is None
    assert has_table(with_means(means, 3, CompleteRatio(Fraction(3))), Watch())


def test_inputs_that_are_no_neighbours_need_not_share_outputs() -> None:
    # x = 1, 2 are neighbours, and 3, 4; no pair joins the two groups
    block = PairRatio(np.array([(0, 1), (1, 0), (2, 3), (3, 2)]), (Fraction(1),))
    means = [Fraction(1), Fraction(1), Fraction(4), Fraction(4)]
    assert no_common_support(with_means(means, 4, block), block) is None
    joined = PairRatio(np.array([(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]), (Fraction(1),))
    assert no_common_support(with_means(means, 4, joined), joined) is not None


def test_what_one_input_must_avoid_spreads_to_the_next() -> None:
    # the first input must answer 1; its neighbour then too, and so on: the last cannot have a mean of 2
    means = [Fraction(1), Fraction(2), Fraction(2)]
    block = PairRatio(chain(3), (Fraction(1),))
    found = no_common_support(with_means(means, 3, block), block)
    assert found is not None
    assert found.possible[0].tolist() == [True, False, False]
    assert found.possible[2].all()


def test_a_deadline_ends_the_question() -> None:
    program = with_means([Fraction(x + 1) / 2 + 4 for x in range(12)], 12, CompleteRatio(Fraction(2)))
    with pytest.raises(OutOfTimeError):
        has_table(program, Watch(0.0))
