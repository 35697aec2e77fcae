"""Vectors in a row that change at once, at distances: bounds by every choice of units, the best noise, forgeries."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from privspec.solvers.programs import Streams, largest_norm
from privspec.solvers.programs import farthest as farthest_of_doubles

from privspec.api import Problem
from privspec.core.diagnostics import PrivspecError, SpecError
from privspec.execute.family import simulate
from privspec.kernel import judge
from privspec.kernel.core.linear import Difference, Part
from privspec.kernel.strategies.dense import farthest, of_vectors
from privspec.kernel.worth.traces import charged, together
from tests.kernel.test_participation import patterns
from tests.plans import Document, matrix_of, resign, solved_text

SPEC = """\
variables:
  input g in l2_ball(1/2, {d})^{n}
  output O
loss: E[ ||O - prefix_sums(g)||^2 ] / ({n} * {d})
privacy: O is 1-GDP wrt g, replacing {unit}
"""
EXACTLY, FARTHER = "up to 3 records, exactly 3 apart", "up to 3 records, at least 3 apart"


def spec(unit: str = EXACTLY, n: int = 9, d: int = 3) -> str:
    return SPEC.format(unit=unit, n=n, d=d)


def failures(plan: Document) -> str:
    return "; ".join(f"{claim.name}: {claim.text}" for claim in judge(json.dumps(resign(plan))).failed)


def largest(gram: np.ndarray, chosen: list[int], dimension: int, dice: np.random.Generator) -> float:
    """The largest sum of G_ij v_i'v_j over unit vectors that ascent from many starts finds."""
    part, most = gram[np.ix_(chosen, chosen)], 0.0
    for _ in range(4):
        vectors = dice.normal(size=(len(chosen), dimension))
        for _ in range(30):
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors = part @ vectors + 1e-9
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        most = max(most, float(np.sum(part * (vectors @ vectors.T))))
    return most


# --- bounds of what changes ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_no_choice_and_no_directions_move_more(seed: int) -> None:
    dice = np.random.default_rng(seed)
    root = dice.integers(-4, 5, size=(5, 7))
    gram, count, apart = root.T @ root, 3, 2
    bound = farthest(gram.tolist(), count, apart)
    assert bound == pytest.approx(farthest_of_doubles(np.abs(gram).astype(float), count, apart))
    every = patterns(7, count, apart, False)
    assert bound >= max(largest(gram, sorted(own), 3, dice) for own in every) * (1 - 1e-9)
    assert bound >= max(np.abs(gram[np.ix_(sorted(own), sorted(own))]).sum() for own in every)
    for own in map(sorted, every):
        part = tuple(tuple(map(int, row)) for row in gram[np.ix_(own, own)])
        sizes = [Fraction(int(v)) for v in dice.integers(1, 4, size=len(own))]
        scaled = np.array(part) * np.outer([float(v) for v in sizes], [float(v) for v in sizes])
        assert of_vectors(part, sizes) >= largest(scaled, list(range(len(own))), 3, dice) * (1 - 1e-9)


@pytest.mark.parametrize("apart", [1, 2, 4])
def test_two_units_are_bounded_exactly(apart: int) -> None:
    """And of three only what the first and the last have in common is counted at its largest."""
    root = np.random.default_rng(apart).integers(-9, 10, size=(6, 9))
    sizes = np.abs(root.T @ root)
    pairs = [(i, j) for i in range(9) for j in range(i + apart, 9)]
    assert farthest(sizes.tolist(), 1, apart) == sizes.diagonal().max()
    assert farthest(sizes.tolist(), 2, apart) == max(sizes[np.ix_(one, one)].sum() for one in pairs)
    three = [(i, j, k) for i, j in pairs for k in range(j + apart, 9)]
    most = max(sizes[np.ix_(one, one)].sum() for one in three)
    assert most <= farthest(sizes.tolist(), 3, apart) <= most + 2 * sizes.max()


def test_units_that_do_not_meet_add_up_exactly() -> None:
    assert farthest(np.diag([5, 1, 4, 9, 2]).tolist(), 2, 3) == 5 + 9
    assert of_vectors(((5, 0), (0, 7)), [Fraction(1), Fraction(2)]) == 5 + 28


@pytest.mark.parametrize("exactly", [True, False])
def test_which_units_change_together(exactly: bool) -> None:
    moved = Difference((Part(0, 8, 1, "l2", 1, Fraction(1)),), 3, 3, exactly)
    every = patterns(8, 3, 3, exactly)
    for bits in product([0, 1], repeat=8):
        own = {i for i, bit in enumerate(bits) if bit}
        assert together(own, moved) == any(own <= other for other in every)


def test_columns_make_up_differences() -> None:
    """Columns of one choice, as many as vectors have numbers, count by their longest row; the rest by themselves."""
    moved = Difference((Part(0, 6, 1, "l2", 1, Fraction(2)),), 2, 3, exactly=True)
    one, two = {0: Fraction(3), 3: Fraction(1)}, {0: Fraction(4)}
    assert charged([one, two], moved, Fraction(2), 2) == Fraction(25, 4)
    assert charged([one, two], moved, Fraction(2), 1) == Fraction(9 + 16, 4)
    assert charged([one, {1: Fraction(4)}], moved, Fraction(2), 2) == Fraction(9 + 16, 4)
    assert charged([{0: Fraction(1), 1: Fraction(1)}], moved, Fraction(2), 2) is None
    assert charged([], moved, Fraction(2), 2) == 0


# --- plans ----------------------------------------------------------------------------------------------


def strategy_of(plan: Document) -> np.ndarray:
    return matrix_of(plan["mechanism"]["executed"]["strategy"])


@pytest.mark.parametrize("unit", [EXACTLY, FARTHER])
@pytest.mark.parametrize("d", [2, 3, 5])
def test_no_change_moves_more_than_is_stated(unit: str, d: int) -> None:
    plan = solved_text(spec(unit, d=d))
    assert not failures(plan)
    gram = strategy_of(plan).T @ strategy_of(plan)
    dice = np.random.default_rng(3)
    most = max(largest(gram, sorted(own), d, dice) for own in patterns(9, 3, 3, "exactly" in unit))
    assert 1 - 1e-2 <= most <= 1 + 1e-9


def test_the_optimum_of_fixed_epochs() -> None:
    """No noise of random search is better, and numbers in place of vectors need no more."""
    plan = solved_text(spec())
    assert plan["status"] == "optimal"
    scalar = spec().replace("l2_ball(1/2, 3)", "[0, 1]").replace("* 3", "* 1").replace("records", "entries")
    assert solved_text(scalar)["loss"]["value"] <= plan["loss"]["value"] * (1 + 1e-6)
    target, dice = np.tril(np.ones((9, 9))), np.random.default_rng(5)
    gram = strategy_of(plan).T @ strategy_of(plan)
    stream = Streams(9, 1.0, 3, 3, True, 3)
    for _ in range(100):
        moved = dice.normal(size=(9, 9)) * 10.0 ** dice.uniform(-4, 0)
        other = gram + moved @ moved.T * 0.1
        root = np.linalg.cholesky(other).T
        reach = largest_norm(root, stream)
        assert np.trace(target @ np.linalg.inv(other) @ target.T) * reach / 9 >= plan["loss"]["value"] * (1 - 1e-7)


def test_few_choices_of_units_that_lie_farther_apart_are_met_as_they_are() -> None:
    exact, plan = solved_text(spec()), solved_text(spec(FARTHER))
    assert plan["status"] == "optimal"
    assert exact["loss"]["value"] * (1 - 1e-6) <= plan["loss"]["lower_bound"]


def test_a_bracket_where_units_lie_farther_apart_in_many_ways() -> None:
    exact, plan = (solved_text(spec(f"up to 3 records, {how} 3 apart", 14)) for how in ("exactly", "at least"))
    assert plan["status"] == "feasible"
    assert exact["loss"]["value"] * (1 - 1e-6) <= plan["loss"]["lower_bound"] < plan["loss"]["value"]
    assert plan["loss"]["value"] < 1.2 * plan["loss"]["lower_bound"]


@pytest.mark.parametrize("unit", ["up to 3 records, exactly 2 apart", "up to 4 records, exactly 1 apart"])
def test_vectors_of_fewer_numbers_than_units_that_change(unit: str) -> None:
    """Some directions were left with next to no noise: a loss of 36 million, beside a band at 3e-6 of it."""
    plan = solved_text(spec(unit, 7, 2))
    assert plan["status"] == "optimal"
    assert not failures(plan)


def test_too_many_choices_to_list() -> None:
    """Choices of 24 units, 6 at once and 2 apart, are bounded by their rows."""
    plan = solved_text(spec("up to 6 records, at least 2 apart", 24, 2))
    assert not failures(plan)
    assert plan["loss"]["value"] < 3 * plan["loss"]["lower_bound"]


NUMBERS = """\
variables:
  input x in [0, 1]^40
  output O
loss: E[ ||O - prefix_sums(x)||^2 ] / 40
privacy: O is 1-GDP wrt x, replacing up to 4 entries, at least 3 apart
"""


@pytest.mark.slow
def test_numbers_in_too_many_choices_to_list() -> None:
    """A bracket, whose lower end uses no directions that numbers do not have."""
    plan = solved_text(NUMBERS)
    assert not failures(plan)
    assert 0.7 * plan["loss"]["value"] < plan["loss"]["lower_bound"] < plan["loss"]["value"]
    gram = strategy_of(plan).T @ strategy_of(plan)
    dice = np.random.default_rng(2)
    for _ in range(300):
        places = np.cumsum(dice.integers(3, 12, size=4)) - 3
        signs = dice.choice([-1, 1], size=4)
        assert signs @ gram[np.ix_(places, places)] @ signs <= 1 + 1e-9


@pytest.mark.parametrize(
    "change",
    [
        ("1-GDP", "1-DP"),
        ("E[ ||O - prefix_sums(x)||^2 ] / 40", "max(E[ (O[j] - x[j])^2 ] for j in 1..40)"),
        ("entries, at least 3 apart", "entries, at least 3 apart\noptions: noise at x"),
    ],
)
def test_too_many_choices_are_refused_in_one_line(change: tuple[str, str]) -> None:
    with pytest.raises(SpecError) as caught:
        solved_text(NUMBERS.replace(*change))
    (said,) = caught.value.diagnostics
    assert said.code == "PS0501"
    assert "in so many ways" in said.message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "k", "least", "most"), [(256, 4, 27.164366, 27.1644), (1024, 8, 83.3999, 83.4403)], ids=["256", "1024"]
)
def test_long_streams(n: int, k: int, least: float, most: float) -> None:
    plan = solved_text(spec(f"up to {k} records, exactly {n // k} apart", n, k))
    assert plan["status"] == "optimal"
    assert least <= plan["loss"]["value"] <= most
    assert not failures(plan)


def test_what_is_released_has_the_noise_that_is_stated() -> None:
    """Errors of each number of a vector: independent of each other, all of the stated variance."""
    plan = solved_text(spec(d=2))
    released = simulate(plan, 2000, seed=5, approximate=True).reshape(2000, 9, 2)
    stated = np.diag(np.array(plan["mechanism"]["output_covariance"]))
    assert np.allclose(released.var(axis=0), stated[:, None], rtol=0.2)
    assert np.abs(np.corrcoef(released[:, 4, 0], released[:, 4, 1])[0, 1]) < 0.1
    assert released.var(axis=0).sum() / 18 == pytest.approx(plan["loss"]["value"], rel=0.05)
    data = np.arange(18.0).reshape(9, 2) / 100
    exact = simulate(plan, 40, seed=1, base={"g": data}).reshape(40, 9, 2)
    wanted = np.cumsum(data, axis=0)
    assert np.all(np.abs(exact.mean(axis=0) - wanted) < 5 * np.sqrt(stated[:, None] / 40))


def _block(plan: Document) -> Document:
    found: Document = plan["problem"]["blocks"][0]
    return found


def _difference(plan: Document) -> Document:
    found: Document = _block(plan)["differences"][0][0]
    return found


FORGERIES: dict[str, tuple[Callable[[Document], object], str]] = {
    "farther apart": (lambda p: _difference(p).update(apart=4), "bound"),
    "more often": (lambda p: _difference(p).update(count=9, apart=1), "privacy"),
    "at least": (lambda p: _difference(p).update(exactly=False), "privacy"),
    "numbers, of which signs change": (lambda p: _difference(p)["parts"][0].update(shape="box"), "single numbers"),
    "vectors of three units": (lambda p: _difference(p)["parts"][0].update(dimension=3, length=3), "single numbers"),
    "longer vectors": (lambda p: _difference(p)["parts"][0].update(amount="2"), "privacy"),
    "a larger ball": (lambda p: _block(p)["held"][0]["ball"].update(dimension=9), "apart"),
    "vectors of more numbers": (lambda p: _block(p).update(vectors=9), "shape"),
    "vectors of one number": (lambda p: _block(p).update(vectors=1), "shape"),
    "no vectors": (lambda p: _block(p).pop("vectors"), "shape"),
    "inputs of another shape": (lambda p: _block(p)["held"][0].update(shape=[27]), "apart"),
    "Laplace noise": (lambda p: p["mechanism"].update(family="laplace"), ""),
    "less noise": (lambda p: p["mechanism"]["executed"]["noise"].update(scale="0.9"), "privacy"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged(name: str) -> None:
    plan = copy.deepcopy(solved_text(spec()))
    change, words = FORGERIES[name]
    plan["claims"]["views"][0]["scaling"] = None
    change(plan)
    found = failures(plan)
    assert found
    assert words in found


def test_a_bound_that_groups_more_columns_than_numbers() -> None:
    """Of vectors of two numbers no three columns are one difference: the bound of three is not about them."""
    two, three = (copy.deepcopy(solved_text(spec(d=d))) for d in (2, 3))
    two["claims"]["bound"], two["loss"]["lower_bound"] = three["claims"]["bound"], three["loss"]["lower_bound"]
    two["loss"]["lower_bound"] = two["loss"]["value"]
    assert failures(two)


# --- specs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        ("prefix_sums(g)", "prefix_matrix(9) @ g"),
        ("prefix_sums(g)", "2 * prefix_sums(g) / 2"),
        ("prefix_sums(g)", "-suffix_sums(-g)"),
        ("prefix_sums(g)", "(decayed_sums(g, 0.5) + g)"),
    ],
)
def test_maps_that_treat_numbers_alike(change: tuple[str, str]) -> None:
    assert solved_text(spec().replace(*change))["problem"]["blocks"][0]["vectors"] == 3


@pytest.mark.parametrize(
    "change",
    [
        ("prefix_sums(g)", "g @ [[1, 0, 0], [0, 2, 0], [0, 0, 3]]"),
        ("||O - prefix_sums(g)||^2", "||O[1] - g[1]||^2 + ||O - g||^2"),
        ("prefix_sums(g)", "(prefix_sums(g) + 1)"),
        ("replacing up to 3 records", "replacing up to 3 entries"),
    ],
)
def test_numbers_that_are_told_apart_are_laid_out(change: tuple[str, str]) -> None:
    try:
        plan = solved_text(spec().replace(*change))
    except PrivspecError as error:
        assert isinstance(error, SpecError)
        return
    assert "vectors" not in plan["problem"]["blocks"][0]
    assert not failures(plan)


def test_the_map_is_that_of_the_numbers_laid_out() -> None:
    """One number of each vector stands for all: the same target, and a loss of as many errors."""
    one = _block(solved_text(spec(d=2)))
    from privspec.problem.linear_affine import Layout
    from privspec.problem.linear_interpreter import Interpreter
    from privspec.problem.linear_lowering import lowered_by

    model = Problem(spec(d=2), {}).check()
    whole = lowered_by(model, Layout.laid(model.blocks), Interpreter, 18)
    assert np.array_equal(whole.target, np.kron(np.tril(np.ones((9, 9))), np.eye(2)))
    weights = one["errors"]["weights"]
    assert Fraction(weights["unit"]) * weights["rows"][0] * 9 == 1
    assert whole.errors.weights.sum() == pytest.approx(1.0)


def test_pages_count_numbers_and_not_vectors() -> None:
    page = Problem(spec(d=2), {}).solve().explain("engineer")
    assert "18 values, in runs of 2" in page
