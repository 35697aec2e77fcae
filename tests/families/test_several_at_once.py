"""Several numbers that change at once: what the kernel bounds them by, noise that hides them, what none is below."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from flint import fmpq_mat

from privspec.kernel import judge
from privspec.kernel.changes import Piece, Units
from privspec.kernel.strategies.dense import at_once, several
from privspec.plan import Plan
from tests.plans import executed_of, mutate, solved_text

SPEC = """spec some
variables:
  input x in [0, 1]^{size}
  output O
loss: E[ ||O - {target}(x)||^2 ] / {size}
privacy: O is {measure} wrt x, replacing up to {count} entries
"""


def spec(size=24, count=6, measure="1-zCDP", target="prefix_sums"):
    return SPEC.format(size=size, count=count, measure=measure, target=target)


def largest(gram, count):
    """Of all choices and signs."""
    found = 0
    for places in combinations(range(len(gram)), count):
        part = gram[np.ix_(places, places)]
        found = max(found, *(np.array(s) @ part @ np.array(s) for s in product((1, -1), repeat=count)))
    return found


def test_no_choice_moves_farther_than_is_said():
    rng = np.random.default_rng(3)
    for size, count in product((2, 4, 6), (1, 2, 3)):
        if count <= size:
            answers = rng.integers(-4, 5, (3, size))
            gram = answers.T @ answers
            assert largest(gram, count) <= at_once(gram.tolist(), count)
    # where numbers do not meet, or all move answers alike, it is exact
    assert at_once([[3, 0, 0], [0, 2, 0], [0, 0, 1]], 2) == 5
    assert at_once([[1] * 4] * 4, 3) == 9


def test_amounts_count_and_vectors_are_no_farther():
    rows = fmpq_mat([[1, 2, 0], [0, 1, 1]])
    units = tuple(((Piece((i,), "l2", Fraction(a)),), 1) for i, a in enumerate((1, 2, 3)))
    found = several(rows, Units(units, 2), Fraction(1000))
    moved = np.array([[1, 4, 0], [0, 2, 3]])
    assert found >= largest(moved.T @ moved, 2)
    assert found == (20 + 6) + (9 + 6)  # the two rows of most, two of each


@pytest.mark.parametrize("measure", ["1-zCDP", "1-GDP"])
def test_noise_and_bound_of_running_totals(measure):
    """Less noise than hides one number as often; and a bound by sums of numbers, which single ones do not show."""
    plan = solved_text(spec(measure=measure))
    assert Plan(plan).verify().ok
    one = solved_text(spec(measure=measure).replace("up to 6 entries", "one entry"))["loss"]["value"]
    loss, low = plan["loss"]["value"], plan["loss"]["lower_bound"]
    assert one < low < loss < 0.9 * 36 * one
    assert low > 0.5 * loss


def test_the_bound_is_below_noise_for_few_of_them():
    """Noise that hides any choice of two, all of which are listed, is met by a bound that looks at sums."""
    listed = solved_text(spec(8, 2))
    assert Plan(listed).verify().ok
    assert listed["loss"]["lower_bound"] <= listed["loss"]["value"]


def test_answers_of_their_own():
    """Numbers as they are: so many of them move one answer each, and the bound of single numbers is far from that."""
    plan = solved_text(spec(target="").replace("(x)", "x"))
    one = solved_text(spec(target="").replace("(x)", "x").replace("up to 6 entries", "one entry"))["loss"]["value"]
    assert plan["loss"]["value"] == pytest.approx(6 * one, rel=1e-5)


def test_forgeries_are_refused():
    plan = solved_text(spec())
    (own,) = plan["claims"]["bound"]["differences"]
    columns = own["columns"]
    assert max(np.bincount(np.array(columns["places"]["rows"]) // columns["shape"][1])) == 6
    differences = ("problem", "blocks", 0, "differences", 0, 0, "count")
    for path, value in (
        (("loss", "lower_bound"), plan["loss"]["lower_bound"] * 1.001),
        ((*differences,), 5),
        ((*differences,), 7),
        (("guarantees", 0, "achieved", "mu"), "1.41"),
    ):
        assert not judge(json.dumps(mutate(plan, path, value))).ok, path
    strategy = executed_of(plan).strategy
    gram = np.array([[float(v) for v in row] for row in (strategy.transpose() * strategy).tolist()])
    deviation = float(executed_of(plan).noise.variances(1, executed_of(plan).grid)[0]) ** 0.5
    adjacent = max(gram[i : i + 6, i : i + 6].sum() for i in range(19)) ** 0.5 / deviation
    assert 0.99 * float(plan["guarantees"][0]["achieved"]["mu"]) < adjacent <= 2**0.5 * (1 + 1e-12)
