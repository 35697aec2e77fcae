"""Spreads of the routes of `probit_mle`: no search exceeds them, and it comes close where they are said to be tight."""

from fractions import Fraction

import numpy as np
import pytest

from privspec.families.statistics.shapes import Site
from privspec.functions.probit import CURVE, PAIR, SLOPE, kept_inside, probit_routes
from privspec.model.domains import L1Ball, L2Ball
from privspec.model.library import GRID, GRID_BITS, NormName, Records, Unit
from tests.functions.estimates import each_estimate_once

NORMS = {NormName.L1: 1, NormName.L2: 2, NormName.LINF: np.inf}
EXACT = 2**GRID_BITS


@pytest.fixture(scope="module", autouse=True)
def estimates():
    with each_estimate_once():
        yield


def routes(count, dimension, radius=Fraction(1), ball=None):
    found = probit_routes(Records(count, dimension, radius), ball or L1Ball(Fraction(2), dimension))
    return {route.at: route for route in found}


def steps_inside(values, radius=Fraction(1)):
    """Records (..., d) in steps whose exact Euclidean norm is at most the radius."""
    lengths = np.linalg.norm(values, axis=-1, keepdims=True)
    inside = values * np.minimum(1.0, float(radius) * (1 - 1e-12) / np.maximum(lengths, 1e-300))
    steps = np.trunc(inside * EXACT).astype(np.int64)
    assert int((steps * steps).sum(axis=-1).max()) <= (radius * EXACT) ** 2
    return steps


def distance(route, one, other, norm):
    """The exact distances (M,) of the statistics of pairs of record sets, in data units (l2: squared)."""
    return size(np.abs(route.exact(one) - route.exact(other)).astype(object), norm)


def size(difference, norm):
    """The norms of rows of Python integers, in steps, that are not negative."""
    if norm is NormName.L1:
        return [Fraction(int(row.sum()), EXACT) for row in difference]
    if norm is NormName.LINF:
        return [Fraction(int(row.max()), EXACT) for row in difference]
    return [Fraction(int((row * row).sum()), EXACT**2) for row in difference]


def limit(route, unit, norm):
    """In the terms of `distance`."""
    spread = route.spread(unit)[norm]
    return spread**2 if norm is NormName.L2 else spread


def pairs(random, how_many, count, dimension, unit, radius=Fraction(1)):
    """Neighbouring record sets: random ones, long ones, opposite ones, sparse ones and sign vectors."""
    kinds = (
        lambda size: random.standard_normal(size),
        lambda size: random.choice([-1.0, 1.0], size),
        lambda size: np.eye(dimension)[random.integers(dimension, size=size[:-1])] * random.choice([-1, 1], size),
        lambda size: random.standard_normal(size) * random.choice([0.0, 0.1, 1.0], (*size[:-1], 1)),
    )
    shape = (how_many, count, dimension)
    one = np.concatenate([float(radius) * 2 * kind((how_many // 4, count, dimension)) for kind in kinds])
    new = np.concatenate([float(radius) * 2 * kind((how_many // 4, count, dimension)) for kind in kinds])
    new = np.where(random.random((how_many, 1, 1)) < 0.4, -one, random.permutation(new))
    if unit is Unit.RECORD:
        changed = np.arange(count) == random.integers(count, size=how_many)[:, None]
        new = np.where(changed[..., None], new, one)
    assert one.shape == shape
    return steps_inside(one, radius), steps_inside(new, radius)


@pytest.mark.parametrize("radius", [Fraction(1), Fraction(5, 2), Fraction(1, 3)])
@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize(("count", "dimension"), [(1, 1), (3, 2), (5, 7)])
def test_no_pair_of_neighbours_is_further_apart_than_the_spread(count, dimension, unit, radius):
    random = np.random.default_rng(3)
    for ball in (L1Ball(Fraction(2), dimension), L2Ball(Fraction(3, 2), dimension)):
        one, other = pairs(random, 80, count, dimension, unit, radius)
        for route in routes(count, dimension, radius, ball).values():
            difference = np.abs(route.exact(one) - route.exact(other)).astype(object)
            for norm in NormName:
                assert max(size(difference, norm)) <= limit(route, unit, norm), (route.name, norm)


def _climbed(value, starts, random, rounds=250):
    """Hill climbing on many starts at once: a point (M, ...) is kept where a random change made it better."""
    points, best = starts, value(starts)
    size = np.full(len(points), 0.5)
    for _ in range(rounds):
        change = random.standard_normal(points.shape) * size[:, None, None]
        sparse = random.random(points.shape) < random.choice([0.1, 0.4, 1.0])
        tried = points + change * sparse
        found = value(tried)
        better = found > best
        points, best = np.where(better[:, None, None], tried, points), np.where(better, found, best)
        size = np.where(better, np.minimum(size * 1.5, 1.0), size * 0.93 + 0.002)
    return points, best


def _of_pairs(route, norm):
    """The distance of the statistics of pairs (M, 2, d) of single records, drawn in to the unit ball, in doubles."""

    def value(points):
        lengths = np.linalg.norm(points, axis=-1, keepdims=True)
        inside = points / np.maximum(lengths, 1.0)
        apart = route.statistic(inside[:, :1]) - route.statistic(inside[:, 1:])
        return np.linalg.norm(apart, ord=NORMS[norm], axis=1)

    return value


@pytest.mark.parametrize("dimension", [2, 3, 10, 23])
@pytest.mark.parametrize("at", ["objective", "records", "direction_of_records"])
def test_climbing_stays_below_the_spread_and_comes_close_to_it(at, dimension):
    random = np.random.default_rng(dimension)
    route = routes(1, dimension)[at]
    signs = random.choice([-1.0, 1.0], (60, 2, dimension)) / np.sqrt(dimension)
    starts = np.concatenate([signs, random.standard_normal((20, 2, dimension))])
    for norm in NormName:
        spread = float(route.spread(Unit.RECORD)[norm])
        points, best = _climbed(_of_pairs(route, norm), starts, random)
        assert best.max() <= spread * (1 + 1e-12)
        assert best.max() >= 0.9 * spread, (norm, best.max(), spread)
        # the pair that was found, exactly
        exact = steps_inside(points[int(best.argmax())][None])
        assert distance(route, exact[:, :1], exact[:, 1:], norm)[0] <= limit(route, Unit.RECORD, norm)


@pytest.mark.parametrize(
    ("dimension", "ours", "full", "paper"), [(10, 7.2822, 8.365, 11.413), (23, 13.305, 16.08, 22.30)]
)
def test_the_objective_moves_less_than_the_paper_counts(dimension, ours, full, paper):
    route = routes(1, dimension)["objective"]
    spread = route.spread(Unit.RECORD)
    assert ours <= float(spread[NormName.L1]) <= ours * 1.001
    assert paper == pytest.approx(2 * np.sqrt(2 * dimension / np.pi) + 2 * dimension / np.pi, rel=1e-3)
    # With the whole matrix of products in place of its upper triangle the maximum over the angle is the figure `full`.
    angles = np.linspace(0, np.pi, 20001)
    c1, c2 = np.sqrt(2 / np.pi), 1 / np.pi
    whole = c1 * np.sqrt(dimension * (2 - 2 * np.cos(angles))) + c2 * dimension * np.sqrt(2) * np.sin(angles)
    assert whole.max() == pytest.approx(full, rel=1e-3)
    assert float(spread[NormName.L2]) == pytest.approx(2 * c1, rel=1e-4)
    assert ours < full < paper


def test_the_constants_are_those_of_the_expansion_rounded_down():
    for rounded, value in ((SLOPE, np.sqrt(2 / np.pi)), (CURVE, 1 / np.pi), (PAIR, np.sqrt(2))):
        assert 0 <= value - float(rounded) < 2.0**-GRID_BITS


@pytest.mark.parametrize("ball", [L1Ball(Fraction(1, 2), 2), L1Ball(Fraction(2), 3), L2Ball(Fraction(1), 3)])
def test_one_record_can_turn_the_weights_round(ball):
    """The worst case: all other records say nothing, so one of them decides, and 2 B is attained."""
    d = ball.dimension
    route = routes(4, d, None, ball)["result"]
    one, other = np.zeros((1, 4, d), dtype=np.int64), np.zeros((1, 4, d), dtype=np.int64)
    one[0, 0, 0], other[0, 0, 0] = EXACT, -EXACT
    for norm in (NormName.L1, NormName.L2, NormName.LINF):
        far = float(distance(route, one, other, norm)[0]) ** (0.5 if norm is NormName.L2 else 1)
        if norm is not NormName.L1 or isinstance(ball, L1Ball):
            assert far >= 0.9 * float(route.spread(Unit.RECORD)[norm])
        assert far <= float(route.spread(Unit.RECORD)[norm])


def test_a_climber_on_one_record_of_many_stays_in_twice_the_ball():
    """Also where the other records say something; a typical record moves the weights much less."""
    random = np.random.default_rng(9)
    n, d, route = 8, 3, routes(8, 3, None)["result"]
    base = random.standard_normal((1, n, d))

    def value(points):
        with_one = np.repeat(base, 2 * len(points), axis=0)
        with_one[:, 0] = points.reshape(-1, d)
        found = route.statistic(with_one).reshape(-1, 2, d)
        return np.abs(found[:, 0] - found[:, 1]).sum(axis=1)

    typical = value(random.standard_normal((50, 2, d)))
    _, best = _climbed(value, random.standard_normal((20, 2, d)), random, rounds=60)
    assert best.max() <= float(route.spread(Unit.RECORD)[NormName.L1]) * (1 + 1e-12)
    assert np.median(typical) < best.max() / 2


@pytest.mark.parametrize("at", ["result", "direction", "signs", "objective", "records", "direction_of_records"])
def test_exact_statistics_are_those_in_doubles_up_to_rounding_and_stay_in_their_balls(at):
    random = np.random.default_rng(4)
    records, _ = pairs(random, 80, 6, 4, Unit.PARTY)
    route = routes(6, 4)[at]
    exact = route.exact(records)
    assert exact.dtype == np.int64
    assert exact.shape == (80, route.size)
    near = route.statistic(records / EXACT)
    slack = 6 * 3 * float(GRID) if at == "objective" else 2 * float(GRID)
    if at == "direction":  # of weights that are rounded first
        lengths = np.linalg.norm(routes(6, 4)["result"].exact(records), axis=1) / EXACT
        near, exact = near[lengths > 0.01], exact[lengths > 0.01]
        slack = 1e-3
    assert np.abs(exact / EXACT - near).max() <= slack
    bound = route.bound()
    for row in exact:
        entries = [Fraction(int(value), EXACT) for value in row]
        assert sum(abs(e) for e in entries) <= bound[NormName.L1]
        assert sum(e * e for e in entries) <= bound[NormName.L2] ** 2
        assert max(abs(e) for e in entries) <= bound[NormName.LINF]


@pytest.mark.parametrize("at", ["result", "direction", "signs", "direction_of_records"])
def test_no_party_sees_another(at):
    """A sum over parties moves by one party's spread only if the others' statistics keep every bit."""
    random = np.random.default_rng(5)
    route = routes(7, 5)[at]
    records, _ = pairs(random, 40, 7, 5, Unit.PARTY)
    together = route.exact(records)
    alone = np.concatenate([route.exact(records[i : i + 1]) for i in range(len(records))])
    order = random.permutation(len(records))
    assert (together == alone).all()
    assert (route.exact(records[order])[np.argsort(order)] == together).all()


@pytest.mark.parametrize("ball", [L1Ball(Fraction(2, 3), 3), L2Ball(Fraction(2, 3), 3)])
def test_whatever_a_solver_returns_lies_in_the_ball(ball):
    third = 2 / 9 * (1 + 1e-15)
    odd = [[np.nan, 0, 0], [np.inf, 0, 0], [1e300, 0, 0], [0.7, 0, 0], [0.6, 0.6, 0.6], [third] * 3, [2 / 3, 0, 0]]
    kept = kept_inside(np.array(odd), ball)
    assert (kept[:5] == 0).all()
    assert kept[6, 0] == int(Fraction(2, 3) * EXACT)
    for row in kept:
        entries = [Fraction(int(value), EXACT) for value in row]
        size = sum(abs(e) for e in entries) if isinstance(ball, L1Ball) else None
        assert size is None or size <= ball.radius
        assert sum(e * e for e in entries) <= ball.radius**2


def test_ties_and_duplicates_stay_in_the_ball():
    """Whole-number features tie; a solver that lets its weights leave the ball there breaks 2 B / N."""
    random = np.random.default_rng(6)
    route = routes(9, 4, None)["result"]
    records = np.repeat(random.integers(-2, 3, (200, 3, 4)), 3, axis=1) * EXACT
    assert int(np.abs(route.exact(records)).sum(axis=1).max()) <= 2 * EXACT


def test_parties_with_several_records_move_as_often():
    for route in routes(6, 3).values():
        record, party = route.spread(Unit.RECORD), route.spread(Unit.PARTY)
        times = 6 if route.at in ("objective", "records") else 1
        assert all(party[norm] == times * record[norm] for norm in NormName)


def test_records_of_any_size_have_no_statistics_that_add_them_up():
    assert set(routes(4, 3, None)) == {"result", "direction", "signs"}
    assert all(
        isinstance(Site(r.size, r.spread(Unit.RECORD), r.bound(), GRID, True), Site) for r in routes(4, 3).values()
    )
