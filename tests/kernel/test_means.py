"""Sums of reports, before the kernel: against programs over all channels, random ones, random proofs, forged plans."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp

import cvxpy
import numpy as np
import pytest

from privspec.kernel import judge
from privspec.kernel.core.reading import JsonNode, Refused
from privspec.kernel.means import Curve, Listed, MeanBlock, Number, Output, lower_bound
from privspec.kernel.writing import array, exact_grid
from tests.plans import executed_of, mutate, solved_text

ONE = Fraction(1)
SPEC = """spec sums
parties: p in 1..{count}
variables:
  input x[p] in {values}
  output A
  output B
{background}loss: E[ (A - mean(x[p] for p))^2 ] + {weight} * E[ (B - mean({body} for p))^2 ]
privacy: (A, B) is {epsilon}-LDP wrt x
"""


def text(count=5, values="1..4", body="1 / x[p]", weight=4, epsilon=1, background=""):
    return SPEC.format(count=count, values=values, body=body, weight=weight, epsilon=epsilon, background=background)


def block(points, costs, law=None):
    """Of one party, and of numbers in an output of one axis."""
    values = tuple(Fraction(k) for k in range(len(points)))
    functions = exact_grid([Fraction(one) for point in points for one in point], (len(points), len(points[0])))
    numbers = tuple(Number(ONE, Fraction(0), Fraction(cost)) for cost in costs)
    return MeanBlock("x", "p", 1, Listed(values, functions), (Output("O", (len(costs),)),), numbers, law, "O", "worst")


def least(points, costs, epsilon, law=None, more=()):
    """The least loss of one party over all columns that are offered, by a general solver: weights c, and e = c v."""
    target, high = np.array(points, dtype=float), exp(epsilon)
    columns = np.array([*product((1.0, high), repeat=len(target)), *more]).T
    weights, sums = cvxpy.Variable(columns.shape[1], nonneg=True), cvxpy.Variable((columns.shape[1], len(costs)))
    squares = cvxpy.Variable(columns.shape[1], nonneg=True)
    scaled = sums @ np.diag(2 * np.sqrt(costs))
    cone = cvxpy.SOC(weights + squares, cvxpy.hstack([scaled, cvxpy.reshape(weights - squares, (-1, 1), "C")]), axis=1)
    errors = columns @ squares - target**2 @ np.array(costs, dtype=float)
    aim = cvxpy.max(errors) if law is None else np.array(law, dtype=float) @ errors
    program = cvxpy.Problem(cvxpy.Minimize(aim), [columns @ weights == 1, columns @ sums == target, cone])
    program.solve(solver="CLARABEL")
    return float(program.value)


CASES = [
    ([[0], [1]], [1], 1.0, None),
    ([[0], [1], [5]], [2], 0.4, None),
    ([[1], [4], [9]], [1], 2.0, [0.2, 0.5, 0.3]),
    ([[1, 4], [2, 2], [4, 1]], [1, 3], 1.0, None),
    ([[1, 4], [2, 2], [4, 1]], [1, 3], 3.0, [0.6, 0.4, 0.0]),
    ([[0, 0, 1], [1, 1, 0], [2, 4, 3], [3, 9, 1]], [9, 1, 2], 1.5, None),
]


def solved_block(own, epsilon):
    from privspec.families.number.means import Best

    return Best(own, Fraction(str(epsilon)))


@pytest.mark.parametrize(("points", "costs", "epsilon", "law"), CASES)
def test_reports_are_the_best_of_all_channels(points, costs, epsilon, law):
    """Extreme columns, and random ones between them, in a general solver; the kernel's loss and bound beside it."""
    rng = np.random.default_rng(len(points))
    more = rng.uniform(1, exp(epsilon), (20, len(points)))
    known = None if law is None else tuple(Fraction(str(one)) for one in law)
    own = block(points, costs, known)
    best = solved_block(own, epsilon)
    expected = least(points, costs, epsilon, law, more)
    assert float(best.executed.loss()) == pytest.approx(expected, rel=2e-6, abs=1e-9)
    bound = lower_bound(own, Fraction(str(epsilon)), JsonNode(best.witness, "bound"))
    assert float(bound) == pytest.approx(expected, rel=2e-6, abs=1e-9)
    assert bound <= best.executed.loss()
    assert not best.executed.biased()
    assert best.executed.epsilon() <= Fraction(str(epsilon))


@pytest.mark.parametrize(("points", "costs", "epsilon", "law"), CASES[:5])
def test_no_proof_shows_more_than_is_true(points, costs, epsilon, law):
    """Whatever a witness says: perturbed, or drawn at random, it shows no more than the least loss."""
    known = None if law is None else tuple(Fraction(str(one)) for one in law)
    own = block(points, costs, known)
    best = solved_block(own, epsilon)
    most = float(best.executed.loss()) * (1 + 1e-9)
    rng, many = np.random.default_rng(7), len(points)
    for step in (1e-9, 1e-3, 0.1, 1.0, 10.0):
        for _ in range(20):
            witness = dict(best.witness)
            for name, shape in (("prior", (many,)), ("directions", (many, len(costs))), ("multipliers", (many,))):
                if witness[name] is not None:
                    grid = np.array(witness[name]["rows"], dtype=float)
                    moved = grid + step * np.abs(grid).max() * rng.standard_normal(grid.shape)
                    moved = np.abs(moved) if name == "prior" else moved
                    whole = [Fraction(round(one)) for one in (moved * 2**20 / np.abs(grid).max()).tolist()]
                    witness[name] = array(exact_grid(whole, shape))
            try:
                shown = lower_bound(own, Fraction(str(epsilon)), JsonNode(witness, "bound"))
            except (Refused, ZeroDivisionError) as reason:
                assert isinstance(reason, Refused)
                continue
            assert float(shown) <= most


def test_random_channels_are_no_better():
    """The best estimate from any channel of the epsilon errs no less than the bound, on average over the values."""
    rng = np.random.default_rng(2)
    for _ in range(40):
        many, outcomes, epsilon = int(rng.integers(2, 5)), int(rng.integers(5, 12)), float(rng.uniform(0.3, 3))
        chances = rng.dirichlet(np.full(outcomes, rng.uniform(0.3, 3))) * np.exp(
            rng.uniform(0, epsilon / 2, (many, outcomes))
        )
        chances /= chances.sum(axis=1, keepdims=True)
        spread = float(np.log(chances.max(axis=0) / chances.min(axis=0)).max())
        points = rng.integers(0, 9, (many, 1))
        if spread < 0.05 or len(set(points[:, 0].tolist())) < 2:
            continue
        moment = (chances / chances.mean(axis=0)) @ chances.T
        centred = points[:, 0] - points.mean()
        error = centred @ np.linalg.solve(moment, centred) - (centred**2).mean()
        law = (Fraction(1, many),) * many
        own = block(points.tolist(), [1], law)
        known = Fraction(spread) + Fraction(1, 10**9)
        bound = lower_bound(own, known, JsonNode(solved_block(own, known).witness, "bound"))
        assert error >= float(bound) * (1 - 1e-9)


def test_estimates_from_two_reports_at_once_are_no_better():
    """Any function of two reports by randomised response, unbiased for the sum: a quadratic program."""
    high = exp(1.0)
    channel = np.array([[high, 1], [1, high]]) / (1 + high)
    estimate = cvxpy.Variable(4)
    errors, right = [], []
    for values in product(range(2), repeat=2):
        law = np.kron(channel[values[0]], channel[values[1]])
        right.append(law @ estimate == sum(values))
        errors.append(law @ cvxpy.square(estimate - sum(values)))
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.max(cvxpy.hstack(errors))), right)
    program.solve(solver="CLARABEL")
    own = block([[0], [1]], [1])
    assert program.value == pytest.approx(2 * float(solved_block(own, 1).executed.loss()), rel=1e-6)
    assert program.value == pytest.approx(2 * high / (high - 1) ** 2, rel=1e-6)


@pytest.mark.parametrize(
    ("ends", "powers"),
    [(("0", "1/3", "1"), (1,)), (("1/10", "1/2", "1"), (1, -1)), (("-1", "0", "2"), (2, 1, 3)), (("1", "3"), (-2, 1))],
)
def test_a_number_is_a_mean_of_control_points(ends, powers):
    """The law of the rows of a number is a law, with the powers of the number as its mean, at exact fractions."""
    held = Curve(tuple(map(Fraction, ends)), powers)
    rows, rng = held.points(), np.random.default_rng(3)
    low, high = held.ends[0], held.ends[-1]
    for value in (*held.ends, *(low + (high - low) * Fraction(int(k), 997) for k in rng.integers(0, 998, 30))):
        law = held.drawn(value)
        assert sum(chance for _, chance in law) == 1
        assert min(chance for _, chance in law) > 0
        mean = [sum(chance * rows[row][j] for row, chance in law) for j in range(len(powers))]
        assert mean == [value**power for power in powers]


def test_the_loss_of_a_curve_is_no_less_than_at_any_number():
    """Exact errors at many numbers, from the law of the rows and the estimates."""
    plan = solved_text(text(values="[0.2, 1]"))
    found = executed_of(plan)
    own, squares = found.block, found.squares()
    largest = Fraction(0)
    for k in range(401):
        value = Fraction(1, 5) + Fraction(4 * k, 5 * 400)
        truth = own.held.at(value)
        error = sum(chance * squares[row] for row, chance in own.held.drawn(value)) - own.square(truth, truth)
        largest = max(largest, own.count * error)
    assert largest <= found.loss()
    assert float(largest) == pytest.approx(float(found.loss()), rel=0.02)
    assert plan["loss"]["lower_bound"] <= float(largest)


def said(report):
    return " ".join(claim.text for claim in report.claims if not claim.holds)


def test_forged_plans_are_refused():
    found = solved_text(text())
    assert found["status"] == "optimal"
    assert judge(JsonNode(found, "plan")).ok
    at, table = ("problem", "blocks", 0), ("mechanism", "table", "rows")
    entries, width = found["mechanism"]["table"]["rows"], found["mechanism"]["table"]["shape"][1]
    estimates = ("mechanism", "estimates", "rows")
    known = found["mechanism"]["estimates"]["rows"]
    multipliers = found["claims"]["bound"]["multipliers"]["rows"]

    def moved(by):
        """A little of the largest chance of the first row given to the next column."""
        place = max(range(width), key=lambda z: entries[z])
        other = (place + 1) % width
        new = list(entries)
        new[place], new[other] = new[place] - by, new[other] + by
        return new

    for path, value, words in (
        (table, moved(1), "not of row 0"),
        (table, moved(entries[0] // 2), ""),
        (table, [entries[0] + 1, *entries[1:]], ""),
        (estimates, [known[0] + 1, *known[1:]], "not of row 0"),
        (estimates, [2 * one for one in known], "not of row 0"),
        (("mechanism", "estimates", "shape"), [width, 3], ""),
        (("mechanism", "seed"), 1, ""),
        (("guarantees", 0, "achieved", "epsilon"), "0.9", "the plan states 0.9"),
        (("guarantees", 0, "because"), ["tables"], ""),
        (("loss", "value"), found["loss"]["value"] * 0.9, "is not what"),
        (("loss", "lower_bound"), found["loss"]["value"] * 1.5, ""),
        (("loss", "among"), "all mechanisms", "is not what the bound is about"),
        (("claims", "bound", "multipliers", "rows"), [2 * multipliers[0], *multipliers[1:]], ""),
        (("claims", "bound", "multipliers", "rows"), [-one for one in multipliers], "not above 0"),
        (("claims", "bound", "prior"), None, ""),
        (("claims", "bound", "values"), ["1", "2"], ""),
        ((*at, "count"), 6, "is not what"),
        ((*at, "numbers", 0, "scale"), "1/6", "is not what"),
        ((*at, "numbers", 0, "weight"), "0", "is not what"),
        ((*at, "numbers", 0, "scale"), "0", "does not depend on anybody"),
        ((*at, "numbers", 0, "root"), 0, "takes a root of what is no mean"),
        ((*at, "numbers", 0, "root"), 2, "under pure epsilon"),
        ((*at, "held", "functions", "rows"), [1] * 8, ""),
        ((*at, "held", "values"), ["1", "2", "4", "3"], "not in order"),
        ((*at, "law"), ["1/4"] * 4, ""),
        ((*at, "law"), ["1/2"] * 4, "a law of other values"),
        ((*at, "law"), ["3/2", "-1/2", "0", "0"], "less than 0"),
        (("claims", "bound", "prior", "rows"), [-1, 2, 0, 0], "no law of values"),
        (("problem", "obligations", 0, "outputs"), [], "is not what the problem"),
        (("problem", "obligations", 0, "seen"), ["other"], ""),
        ((*at, "source"), "other", "about other data"),
        (("problem", "trust", "kind"), "curator", "other trust"),
        (("problem", "obligations", 0, "units", 0, "kind"), "entry", ""),
    ):
        report = judge(JsonNode(mutate(found, path, value), "plan"))
        assert not report.ok, path
        assert words in said(report), (path, said(report))


def test_a_forged_law_of_an_interval_is_refused():
    found = solved_text(text(values="[0.2, 1]"))
    assert judge(JsonNode(found, "plan")).ok
    held = ("problem", "blocks", 0, "held")
    for path, value, words in (
        ((*held, "powers"), [1, 1], ""),
        ((*held, "powers"), [1, -9], "powers, or pieces"),
        ((*held, "powers"), [1, 0], "powers, or pieces"),
        ((*held, "ends"), ["0", "1"], "not all above 0"),
        ((*held, "ends"), ["1/5", "1/5"], "not in order"),
        ((*held, "ends"), ["1/5", "1"], ""),
        (("problem", "blocks", 0, "law"), ["1"], "a law of"),
        (("claims", "bound", "values"), ["0", "1"], "nobody holds"),
        (("claims", "bound", "values"), None, ""),
        (("claims", "bound"), None, ""),
    ):
        report = judge(JsonNode(mutate(found, path, value), "plan"))
        if path == ("claims", "bound"):
            assert not report.ok or found["status"] == "feasible"
            continue
        assert not report.ok, path
        assert words in said(report), (path, said(report))
