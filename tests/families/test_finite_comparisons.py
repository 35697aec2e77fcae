"""Mechanisms that people use, as tables: their laws, what they cost, and that they meet the requirement."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from fractions import Fraction
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from privspec.families.tables.noise import Comparison, Neighbours, StaircaseNoise, TableContext, planar_cells
from privspec.families.tables.recognition import comparisons

from .finite_contexts import apart, count, local, numbers, optimum, plane, words


def absolute(noise: StaircaseNoise) -> float:
    """The mean of |k|, in steps."""
    reach = np.arange(int(noise.period * (2 + 45 / noise.epsilon)))
    return float(2 * np.sum(reach * noise.law(reach)))


CONTEXTS = {
    "count": count(10, "1/2"),
    "count, worst case": count(6, "1", worst=True),
    "squared": count(8, "1", cost=apart(9) ** 2),
    "skewed": count(10, "1/2", prior=np.arange(1, 12) / 66),
    "words": local(6, "1"),
    "words, delta": local(5, "1/2", delta="1/20"),
    "two words": local(2, "3"),
    "numbers, all pairs": replace(count(8, "2"), neighbours=Neighbours.complete(9)),
    "line": replace(count(8, "1/3"), neighbours=Neighbours.metric(apart(9))),
    "plane": plane(5, "1"),
    "tight plane": plane(4, "6"),
    "manhattan": replace(
        plane(3, "1"),
        neighbours=Neighbours.metric((apart(3)[:, None, :, None] + apart(3)[None, :, None, :]).reshape(9, 9)),
    ),
}


def named(context: TableContext) -> dict[str, Comparison]:
    return {found.name: found for found in comparisons(context)}


@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS.keys())
def test_every_table_is_a_mechanism_that_meets_the_requirement(context: TableContext) -> None:
    found = comparisons(context)
    assert [c.loss for c in found] == sorted(c.loss for c in found)
    assert len({c.name for c in found}) == len(found) >= 3
    distances = context.neighbours.distances
    for mechanism in found:
        table = mechanism.table
        assert table.shape == context.cost.shape
        assert table.min() >= 0
        np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-12)
        assert mechanism.admissible, mechanism.name
        assert mechanism.loss == pytest.approx(context.loss(table))
        for a, b in np.argwhere(context.neighbours.pairs):
            over = table[a] - math.exp(float(context.epsilon) * distances[a, b]) * table[b]
            assert np.maximum(over, 0).sum() <= float(context.delta) + 1e-9


@pytest.mark.parametrize("context", [c for c in CONTEXTS.values() if not c.delta][:-3])
def test_none_beats_the_optimum(context: TableContext) -> None:
    least = optimum(context).optimum
    for mechanism in comparisons(context):
        assert mechanism.loss >= least * (1 - 1e-9) - 1e-12, mechanism.name


def test_notes_are_there() -> None:
    for note in {c.note for k in CONTEXTS.values() for c in comparisons(k)}:
        text = files("privspec.noise").joinpath(f"notes/{note}.md").read_text("utf-8")
        assert text.startswith("# ")
        assert "**Statement.**" in text and "**Proof.**" in text


def test_a_table_that_breaks_the_requirement_is_told() -> None:
    context = count(10, "1/2")
    far = comparisons(replace(context, epsilon=Fraction(1)))[0]
    assert context.excess(far.table) > 1e-3
    assert replace(context, delta=Fraction(1, 2)).excess(far.table) == 0


# --- counts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "loss"), [("1/2", 1.41735574), ("1", 0.72854448), ("2", 0.24673186)])
def test_remapped_geometric_is_the_optimum_of_a_counting_query(epsilon: str, loss: float) -> None:
    context = count(10, epsilon)
    best = comparisons(context)[0]
    assert best.loss == pytest.approx(loss, abs=5e-9)
    assert best.loss == pytest.approx(optimum(context).optimum, rel=1e-9)
    assert best.name.startswith("truncated geometric")


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["1/4", "1", "5/2"]), st.sampled_from([1, 2]), st.booleans())
def test_remapped_geometric_is_the_optimum_for_any_prior(seed: int, epsilon: str, power: int, worst: bool) -> None:
    """Ghosh, Roughgarden & Sundararajan 2009; Gupte & Sundararajan 2010 for the worst case."""
    prior = np.random.default_rng(seed).dirichlet(np.ones(8))
    context = count(7, epsilon, prior, apart(8) ** power, worst)
    assert comparisons(context)[0].loss == pytest.approx(optimum(context).optimum, rel=1e-8)


def test_truncated_geometric_by_hand() -> None:
    table = named(count(3, "1"))["truncated geometric"].table
    a = math.exp(-1)
    middle = (1 - a) / (1 + a)
    np.testing.assert_allclose(table[0], [1 / (1 + a), a * middle, a**2 * middle, a**3 / (1 + a)], rtol=1e-12)
    np.testing.assert_allclose(table[1], [a / (1 + a), middle, a * middle, a**2 / (1 + a)], rtol=1e-12)


def test_grids_that_are_no_integers_and_answers_beyond_the_inputs() -> None:
    rows, columns = numbers(0, Fraction(1, 2), 1), numbers(*[Fraction(k, 4) for k in range(-4, 9)])
    cost = np.abs(np.subtract.outer([0, 0.5, 1], [k / 4 for k in range(-4, 9)]))
    context = TableContext(rows, columns, Fraction(2), Neighbours.adjacent(3, chain3()), cost, np.ones(3) / 3)
    table = named(context)["truncated geometric"].table
    assert np.count_nonzero(table[0]) == 7  # -1, -1/2, .., 2
    assert table[0, 4] == pytest.approx(math.tanh(1))
    rounded = named(context)["Laplace noise, rounded"].table
    assert rounded[0, 4] == pytest.approx(1 - math.exp(-4 / 8))  # scale 1/4, a cell of 1/8 on both sides
    off = replace(context, columns=numbers(*[Fraction(k, 4) + Fraction(1, 8) for k in range(-4, 9)]))
    assert "truncated geometric" not in named(off)
    assert "truncated geometric, remapped" in named(off)


def chain3() -> np.ndarray:
    return np.array([(0, 1), (1, 0), (1, 2), (2, 1)])


@pytest.mark.parametrize("rows", [(0, Fraction(1, 10**6)), (0, Fraction(1, 10**6), 5)])
def test_grids_too_fine_to_list(rows: tuple[Fraction, ...]) -> None:
    """A step of a millionth between answers a whole apart: ten million points of a grid that no answer lies on."""
    cost = np.abs(np.subtract.outer([float(r) for r in rows], np.arange(11.0)))
    neighbours = Neighbours.complete(len(rows))
    context = TableContext(
        numbers(*rows), numbers(*range(11)), Fraction(1), neighbours, cost, np.full(len(rows), 1 / len(rows))
    )
    found = {c.name for c in comparisons(context)}
    assert "truncated geometric" not in found
    assert ("truncated geometric, remapped" in found) == (len(rows) == 2)


def test_laplace_cells_by_integration() -> None:
    context = count(6, "3/2")
    table = named(context)["Laplace noise, rounded"].table
    for x, y, low, high in ((2, 4, 3.5, 4.5), (2, 2, 1.5, 2.5), (5, 0, -40, 0.5)):
        mass, _ = integrate.quad(lambda t, x=x: 0.75 * math.exp(-1.5 * abs(t - x)), low, high, points=[x])
        assert table[x, y] == pytest.approx(mass, rel=1e-9)


# --- words ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "epsilon", "delta"), [(2, "1", "0"), (6, "1/2", "0"), (5, "1", "1/10")])
def test_k_randomised_response(k: int, epsilon: str, delta: str) -> None:
    context = local(k, epsilon, delta=delta)
    best = comparisons(context)[0]
    ratio = math.exp(Fraction(epsilon))
    truth = (ratio + (k - 1) * float(Fraction(delta))) / (ratio + k - 1)
    np.testing.assert_allclose(np.diag(best.table), truth)
    assert best.name == ("randomised response" if k == 2 else "k-randomised response")
    assert best.loss == pytest.approx(1 - truth)
    tighter = replace(context, delta=context.delta * Fraction(99, 100))
    assert (tighter.excess(best.table) > 1e-6) == bool(context.delta)


def test_k_randomised_response_under_a_distance() -> None:
    table = named(plane(3, "2"))["k-randomised response"].table
    assert table[0, 0] / table[0, 1] == pytest.approx(math.exp(2))


def test_subset_selection_on_sets() -> None:
    """Answers are indicators of subsets: the loss is one where the set does not hold the truth."""
    k, epsilon = 4, 1.0
    sets = [tuple(Fraction(n >> i & 1) for i in range(k)) for n in range(2**k)]
    cost = np.array([[1 - float(s[x]) + 0.2 * float(sum(s)) for s in sets] for x in range(k)])
    context = TableContext(words("abcd"), tuple(sets), Fraction(1), Neighbours.complete(k), cost, np.full(k, 0.25))
    found = next(c for c in comparisons(context) if c.name.startswith("subset selection"))
    losses = {}
    for size in range(1, k):
        hit = math.comb(k - 1, size - 1) * math.exp(epsilon)
        losses[size] = 1 - hit / (hit + math.comb(k - 1, size)) + 0.2 * size
    best = min(losses, key=losses.__getitem__)
    assert found.name == f"subset selection of size {best}" == "subset selection of size 2"
    assert found.loss == pytest.approx(losses[best])


def test_exponential_mechanism() -> None:
    context = count(4, "1", cost=apart(5) ** 2)
    table = named(context)["exponential mechanism"].table
    weights = np.exp(-(1 / 14) * apart(5) ** 2)  # neighbours differ by up to 16 - 9 = 7 in the loss
    np.testing.assert_allclose(table, weights / weights.sum(axis=1, keepdims=True))
    by_distance = named(replace(context, neighbours=Neighbours.metric(apart(5))))["exponential mechanism by distance"]
    weights = np.exp(-apart(5) / 2)
    np.testing.assert_allclose(by_distance.table, weights / weights.sum(axis=1, keepdims=True))


# --- the staircase --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "loss"), [("1/2", 1.979318), ("1", 0.959517), ("2", 0.425459)])
def test_staircase_reaches_its_closed_form(epsilon: str, loss: float) -> None:
    """Sensitivity 1: least mean absolute noise e^(eps/2) / (e^eps - 1), on a grid of 1/400."""
    exact = math.exp(Fraction(epsilon) / 2) / math.expm1(Fraction(epsilon))
    assert exact == pytest.approx(loss, abs=5e-7)
    least = min(absolute(StaircaseNoise(400, upper, float(Fraction(epsilon)))) / 400 for upper in range(1, 401))
    assert least == pytest.approx(exact, rel=1e-5)
    best = round(400 / (1 + math.exp(Fraction(epsilon) / 2)))
    assert absolute(StaircaseNoise(400, best, float(Fraction(epsilon)))) / 400 == pytest.approx(least, rel=1e-6)


def test_staircase_is_a_law() -> None:
    noise = StaircaseNoise(5, 2, 0.7)
    steps = np.arange(-600, 601)
    assert noise.law(steps).sum() == pytest.approx(1)
    for k in (-7, -1, 0, 1, 3, 5, 9):
        assert noise.beyond(np.array([k]))[0] == pytest.approx(noise.law(np.arange(k, 700)).sum())


def fine(per_unit: int, reach: int, epsilon: str) -> TableContext:
    """Values of a fine grid, neighbours up to 1 apart, absolute loss; the truth is near the middle."""
    size = 2 * reach * per_unit + 1
    rows = numbers(*[Fraction(k, per_unit) for k in range(size)])
    steps = apart(size)
    pairs = np.argwhere((steps > 0) & (steps <= per_unit))
    prior = np.zeros(size)
    middle = size // 2
    prior[middle - per_unit // 2 : middle + per_unit - per_unit // 2] = 1 / per_unit
    return TableContext(rows, rows, Fraction(epsilon), Neighbours.adjacent(size, pairs), steps / per_unit, prior)


def test_staircase_on_a_fine_grid() -> None:
    context = fine(8, 6, "1")
    found = named(context)
    assert found["staircase mechanism"].loss == pytest.approx(0.959517, abs=0.02)
    assert found["staircase mechanism"].loss < found["Laplace noise, rounded"].loss


@pytest.mark.slow
def test_the_optimum_of_a_fine_grid_approaches_the_staircase() -> None:
    """Noise that does not depend on the truth: a linear program over even laws on a grid of 1/20."""
    from scipy.optimize import linprog

    per_unit, reach = 20, 12
    for epsilon in (0.5, 1.0, 2.0):
        n = per_unit * reach
        ratio = math.exp(epsilon)
        rows = []
        for k in range(n + 1):
            for other in range(max(k - per_unit, -n), min(k + per_unit, n) + 1):
                for a, b in ((k, other), (other, k)):
                    row = np.zeros(n + 2)
                    row[abs(a)] += 1
                    row[abs(b)] -= ratio
                    rows.append(row)
        # beyond the reach the law goes on with the same ratio each period
        tail = np.arange(n - per_unit + 1, n + 1)
        weight = np.where(np.arange(n + 2) > 0, 2.0, 1.0)
        cost = weight * np.arange(n + 2)
        weight[-1] = cost[-1] = 0.0
        left = 1 / (ratio - 1)
        weight[tail] += 2 * left
        cost[tail] += 2 * (tail * left + per_unit * ratio * left**2)
        found = linprog(cost / per_unit, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=weight[None], b_eq=[1.0])
        best = min(absolute(StaircaseNoise(per_unit, upper, epsilon)) for upper in range(1, per_unit + 1)) / per_unit
        assert found.fun == pytest.approx(best, rel=2e-5)  # the tolerance of the solver in the tails
        assert best == pytest.approx(math.exp(epsilon / 2) / math.expm1(epsilon), rel=2e-3)


# --- the plane ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.05, 1.0, 20.0])
def test_planar_cells_by_integration(rate: float) -> None:
    points = np.array([[0.0, 0.0], [0.5, 1.0], [0.3, 2.2], [1.5, 0.5001], [5.0, -3.0]])
    bounds = np.array([-0.5, 0.5, 1.5]), np.array([-0.5, 0.5, 1.5, 2.5])
    cells = planar_cells(points, bounds, rate)
    np.testing.assert_allclose(cells.sum(axis=(1, 2)), 1, atol=1e-14)

    def density(y: float, x: float, a: float, b: float) -> float:
        return rate**2 / (2 * math.pi) * math.exp(-rate * math.hypot(x - a, y - b))

    for k, (a, b) in enumerate(points):
        for i, j in ((1, 1), (2, 3), (1, 2)):
            across = sorted({bounds[0][i - 1], bounds[0][i], min(max(a, bounds[0][i - 1]), bounds[0][i])})
            along = sorted({bounds[1][j - 1], bounds[1][j], min(max(b, bounds[1][j - 1]), bounds[1][j])})
            mass = sum(
                integrate.dblquad(density, *across[u : u + 2], *along[v : v + 2], args=(a, b), epsabs=0, epsrel=1e-9)[0]
                for u in range(len(across) - 1)
                for v in range(len(along) - 1)
            )
            assert cells[k, i, j] == pytest.approx(mass, rel=1e-8)


def test_planar_laplace_beyond_the_grid_goes_to_its_border() -> None:
    """Half of the plane is nearest to the upper of two rows, for a point on the line between them."""
    cells = planar_cells(np.array([[0.0, 0.0]]), (np.zeros(1), np.zeros(1)), 3.0)
    np.testing.assert_allclose(cells[0], np.full((2, 2), 0.25), atol=1e-15)


def test_remap_never_loses() -> None:
    prior = np.random.default_rng(3).dirichlet(np.full(25, 0.5))
    found = named(plane(5, "1/2", prior))
    assert found["planar Laplace, remapped"].loss < 0.95 * found["planar Laplace"].loss
    assert optimum(plane(5, "1/2", prior)).optimum < found["planar Laplace, remapped"].loss


def test_losses_may_be_negative() -> None:
    context = count(5, "1")
    moved = {c.name: c.loss for c in comparisons(replace(context, cost=context.cost - 7))}
    assert moved == pytest.approx({c.name: c.loss - 7 for c in comparisons(context)})


def test_a_large_grid_is_compared_in_seconds() -> None:
    context = plane(10, "1", np.random.default_rng(1).dirichlet(np.full(100, 2.0)))
    started = time.process_time()
    found = comparisons(context)
    assert time.process_time() - started < 3
    assert {"planar Laplace", "planar Laplace, remapped", "k-randomised response"} <= {c.name for c in found}


def test_contexts_refuse_parts_that_do_not_fit() -> None:
    context = count(3, "1")
    with pytest.raises(ValueError, match="prior"):
        replace(context, prior=None)
    with pytest.raises(ValueError, match="one weight"):
        replace(context, prior=np.ones(3))
    with pytest.raises(ValueError, match="a row for each row"):
        replace(context, cost=np.zeros((3, 4)))
