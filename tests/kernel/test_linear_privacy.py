"""How far a unit moves noisy answers, against all its moves; and plans of noise that say less than is true."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from flint import fmpq_mat

from privspec.families.decision import inverse_root
from privspec.kernel import judge
from privspec.kernel.core.linear import (
    COUNTED,
    Ball,
    Column,
    Difference,
    InputLayout,
    Linear,
    Matrix,
    Measured,
    Part,
    Release,
    Released,
    read_matrix,
)
from privspec.kernel.core.linear_privacy import losses, term_of
from privspec.kernel.core.problem import Data, Frame
from privspec.kernel.core.reading import JsonNode, Refused
from privspec.kernel.laws.gaussian import Gaussian
from privspec.kernel.laws.knorm import KNorm
from privspec.kernel.laws.laplace import Laplace
from privspec.kernel.laws.law import Law
from privspec.kernel.moves import units_of
from privspec.kernel.rows import doubles
from privspec.kernel.strategies.dense import Dense
from privspec.kernel.terms import Noise as NoisyAnswers
from privspec.kernel.trust import Trust
from tests import plans
from tests.families.specs import spec
from tests.plans import dense

F = Fraction
Plan = dict[str, Any]


# --- against all moves of small units -------------------------------------------------------------------


def box(start: int, stop: int, length: int = 1, amount: int = 1) -> Part:
    return Part(start, stop, length, "box", 1, F(amount))


def ball(start: int, stop: int, dimension: int, norm: int, amount: int = 1, length: int | None = None) -> Part:
    return Part(start, stop, length or dimension, f"l{norm}", dimension, F(amount))


def cells(start: int, stop: int, shape: str, amount: int = 1) -> Difference:
    return Difference((Part(start, stop, stop - start, shape, stop - start, F(amount)),), 1)


def corners(part: Part, unit: int) -> list[dict[int, int]]:
    """The extreme moves of one unit in a part: signs of a box, vertices of every l1 ball."""
    at = range(part.start + unit * part.length, part.start + (unit + 1) * part.length)
    size = int(part.amount)
    if part.shape == "box":
        return [dict(zip(at, signs, strict=True)) for signs in product((size, -size), repeat=len(at))]
    balls = [at[i : i + part.dimension] for i in range(0, len(at), part.dimension)]
    each = [[{i: s * size} for i in own for s in (1, -1)] for own in balls]
    return [{k: v for one in some for k, v in one.items()} for some in product(*each)]


def moves(difference: Difference) -> Iterator[dict[int, int]]:
    """Every extreme move of up to `count` units."""
    first = difference.parts[0]
    if first.shape in COUNTED:
        at = range(first.start, first.stop)
        single = [{i: 1, j: -1} for i in at for j in at if i != j] if first.shape == "swap" else [{i: 1} for i in at]
        for some in product(single, repeat=int(first.amount)):
            yield {i: sum(one.get(i, 0) for one in some) for i in at}
        return
    runs = (difference.parts[0].stop - difference.parts[0].start) // difference.parts[0].length
    for chosen in combinations(range(runs), min(difference.count, runs)):
        parts = [corners(part, unit) for unit in chosen for part in difference.parts]
        for some in product(*parts):
            yield {k: v for one in some for k, v in one.items()}


EXACT: dict[str, Difference] = {
    "entries": Difference((box(0, 6, amount=2),), 1),
    "two entries at once": Difference((box(0, 6),), 2),
    "boxes": Difference((box(0, 6, 3, 2),), 1),
    "one voter in two inputs": Difference((box(0, 3), box(3, 6, amount=3)), 1),
    "two voters in two inputs": Difference((box(0, 3), box(3, 6, amount=3)), 2),
    "l1 balls": Difference((ball(0, 6, 3, 1),), 1),
    "records come and go": cells(0, 6, "cell"),
    "records move": cells(1, 6, "swap"),
}
BOUNDED = {
    "everything in l1 balls": Difference((ball(0, 6, 2, 1, length=6),), 1),
    "two l1 balls": Difference((ball(0, 6, 2, 1),), 2),
    "an l1 ball and a number": Difference((ball(0, 4, 2, 1), box(4, 6)), 1),
    "two records move": cells(0, 6, "swap", 2),
}


def strategy(seed: int, rows: int = 4) -> Matrix:
    whole = np.random.default_rng(seed).integers(-9, 10, (rows, 6)).tolist()
    return fmpq_mat(whole) / 3


@pytest.mark.parametrize("name", [*EXACT, *BOUNDED])
@pytest.mark.parametrize("seed", range(4))
def test_squares_and_costs_cover_all_moves(name: str, seed: int) -> None:
    difference = (EXACT | BOUNDED)[name]
    answers = strategy(seed)
    rows, scales = [[int(3 * v) for v in row] for row in answers.tolist()], [F(1), F(2), F(1, 2), F(3, 7)]
    shifts = [[sum(row[i] * v for i, v in move.items()) for row in rows] for move in moves(difference)]
    square = max(sum(v * v for v in shift) for shift in shifts) / F(9)
    found = Dense(answers).quadratic_sensitivity(units_of(difference))
    assert found >= square
    cost = max(sum((abs(v) / F(3) / b for v, b in zip(s, scales, strict=True)), F(0)) for s in shifts)
    stated = Dense(answers).absolute_sensitivity(scales, [F(0)] * 4, units_of(difference), {})
    assert stated >= cost
    if name in EXACT:
        assert found == square
        if name not in ("two entries at once", "boxes", "one voter in two inputs", "two voters in two inputs"):
            assert stated == cost


@pytest.mark.parametrize("seed", range(4))
def test_euclidean_balls(seed: int) -> None:
    answers = strategy(seed)
    values = np.array(doubles(answers))
    found = Dense(answers).quadratic_sensitivity(units_of(Difference((ball(0, 6, 3, 2, 2),), 1)))
    true = max(np.linalg.norm(values[:, :3], 2), np.linalg.norm(values[:, 3:], 2)) ** 2 * 4
    assert true * (1 - 1e-12) <= float(found) <= true * (1 + 1e-9)
    # two at once, and two in one unit, are covered
    both = float(Dense(answers).quadratic_sensitivity(units_of(Difference((ball(0, 6, 3, 2, 2),), 2))))
    assert both >= np.linalg.norm(values, 2) ** 2 * 4
    assert (
        float(Dense(answers).quadratic_sensitivity(units_of(Difference((ball(0, 6, 3, 2, 2, length=6),), 1))))
        >= both / 2
    )


def test_balls_of_two_norms_in_one_unit() -> None:
    """(1, 1) of length sqrt(2) moves by sqrt(2) in a Euclidean ball, whatever moves beside it."""
    ones, unit = fmpq_mat([[1, 1, 1, 1]]), Difference((ball(0, 2, 2, 1), ball(2, 4, 2, 2)), 1)
    assert float(Dense(ones).quadratic_sensitivity(units_of(unit))) >= (1 + 2**0.5) ** 2


@pytest.mark.parametrize("seed", range(3))
def test_large_boxes_are_bounded_whatever_scaling_helps(seed: int) -> None:
    dice = np.random.default_rng(seed)
    whole = dice.integers(-9, 10, (5, 18))
    answers, difference = fmpq_mat(whole.tolist()), Difference((box(0, 18, 18),), 1)
    signs = np.array([[1, -1][int(b)] for b in dice.integers(0, 2, 18 * 4000)]).reshape(18, -1)
    reached_ = float(((whole @ signs) ** 2).sum(axis=0).max())
    for scaling in (None, [[F(int(v)) for v in dice.integers(1, 9, 18)]]):
        assert float(Dense(answers).quadratic_sensitivity(units_of(difference), scaling)) >= reached_
    for other, why in ((F(-1), "not positive"), (F(0), "not positive")):
        with pytest.raises(ValueError, match=why):
            Dense(answers).quadratic_sensitivity(units_of(difference), [[other] * 18])
    with pytest.raises(Refused, match="17 numbers in place of 18"):
        Dense(answers).quadratic_sensitivity(units_of(difference), [[F(1)] * 17])


@pytest.mark.parametrize("seed", range(6))
def test_rounded_answers_of_mixtures(seed: int) -> None:
    """Against all values of a ball on its grid beside others of their neighbours."""
    steps, rows = 4, 3
    whole = np.random.default_rng(seed).integers(-3, 4, (rows, 3))
    members = [np.array(p) for p in product(range(-steps, steps + 1), repeat=3) if sum(map(abs, p)) <= steps]
    answers = np.array([whole @ member for member in members])  # in shares of a quarter
    rounded = [np.floor((answers + np.array(s)) / 4 + 0.5) for s in product(range(4), repeat=rows)]
    worst = max(int(np.abs(r[:, None, :] - r[None, :, :]).sum(axis=2).max()) for r in rounded)
    ones, difference = [F(1)] * rows, Difference((ball(0, 3, 3, 1, 2),), 1)
    assert worst <= Dense(fmpq_mat(whole.tolist())).absolute_sensitivity(ones, ones, units_of(difference), {})


@pytest.mark.parametrize(
    ("domains", "reach"),
    [
        (("[0, 1]", "[0, 3]"), 16),
        (("[0, 1]^2", "[-1, 1]^2"), 36),
        (("l2_ball(1, 2)", "l2_ball(1, 2)"), 32),
        (("l2_ball(1, 2)", "[0, 1]^2"), (8**0.5 + 2) ** 2),
        (("l1_ball(1, 2)", "l1_ball(1, 2)"), 16),
    ],
)
def test_reach_of_one_voter_in_several_inputs(domains: tuple[str, str], reach: float) -> None:
    """Of the sum of all coordinates, from the words of a line; mixtures of balls and boxes are covered."""
    from privspec.core.spans import Source
    from privspec.model.build import load_model
    from privspec.problem.linear import differences_of

    text = f"""parties: voter in 1..3
variables:
  input x[voter] in {domains[0]}
  input y[voter] in {domains[1]}
  output O in real
privacy: O is 1-GDP wrt (x, y), replacing one voter
"""
    model = load_model(Source("s", text))
    (difference,) = differences_of(model, model.requirements[0])
    ones = fmpq_mat(1, model.size, [1] * model.size)
    found = float(Dense(ones).quadratic_sensitivity(units_of(difference)))
    assert reach * (1 - 1e-12) <= found <= 36 * (1 + 1e-9)
    if domains[1] != "[0, 1]^2":
        assert found == pytest.approx(reach)


# --- what an observer sees ------------------------------------------------------------------------------


def release(rows: list[list[int]], noise: Law, of: list[list[int]] | None = None, **changed: Any) -> Release:
    """Noise on answers about one input of numbers in [0, 1], each answer an output by itself."""
    n, k = len(rows[0]), len(rows)
    rebuilt = of or np.eye(k, dtype=int).tolist()
    held = InputLayout("x", 0, n, "entries", (n,), F(0), F(1), None, (), None, None)
    outputs = tuple(Released(f"O{i}", i, i + 1, (1,), False) for i in range(len(rebuilt)))
    problem = Linear(
        held=changed.pop("held", (held,)), released=outputs, differences=(), families=(), target=fmpq_mat(rows),
        offset=(F(0),) * len(rebuilt), constants=(), errors=Measured(fmpq_mat(0, len(rebuilt), []), ()),
        worst=False, loss="", accuracy=(), sites=None,
    )  # fmt: skip
    plain: dict[str, Any] = {
        "steps": (F(1, 4),), "strategy": fmpq_mat(rows), "noise": noise, "grid": F(1, 4),
        "reconstruction": fmpq_mat(rebuilt), "output_grid": F(1, 4), "of_inputs": False,
        "round_outputs": False, "senders": (1,) * k, "parties": 1,
    }  # fmt: skip
    return Release(problem, **(plain | changed))


ENTRY = Difference((box(0, 2),), 1)


def frame(trust: str) -> Frame:
    """What the rules have to know of a problem: whose word is taken, and who holds what."""
    data = (Data("x", "", "clip", None, 1),)
    return Frame("", "", "", Trust(trust, 0), data, (), (), (), (JsonNode({}, "block"),))


def reached(
    one: Release, difference: Difference, *seen: str, trust: str = "curator", inverse: object = None
) -> Fraction:
    """At least mu^2 of Gaussian noise, epsilon of others, for whoever sees some outputs, or all of them."""
    names = seen or tuple(output.name for output in one.problem.released)
    witness = JsonNode({"inverse": inverse, "scaling": None}, "witness")
    (loss,) = losses(one, frame(trust), names, (difference,), witness)
    return loss.mu_squared if one.noise.normal else loss.figure("epsilon")


def noise_of(one: Release) -> NoisyAnswers:
    term = term_of(one, frame("curator"))
    assert isinstance(term, NoisyAnswers)
    return term


def test_an_observer_is_charged_for_the_answers_of_its_outputs() -> None:
    pair = release([[1, 0], [1, 0]], Laplace((F(1), F(1, 2))))
    for names, answers, figure in ((("O0",), [0], 1), (("O1",), [1], 2), (("O0", "O1"), [0, 1], 3)):
        assert noise_of(pair).used(frozenset(names)) == answers
        assert reached(pair, ENTRY, *names) == figure
    # where nobody is trusted, each sees every message
    assert reached(pair, ENTRY, "O0", trust="nobody") == 3


def test_estimates_of_the_inputs_are_all_answers() -> None:
    whole = release([[1, 0], [0, 1]], Gaussian(F(1)), of_inputs=True)
    assert noise_of(whole).used(frozenset({"O0"})) == [0, 1]


def test_numbers_stand_between_the_points_of_a_lattice() -> None:
    """Values on quarters times whole numbers are points of it; on thirds they are rounded, a step each."""
    noise = Laplace((F(1), F(1)))
    assert reached(release([[1, 0], [2, 0]], noise), ENTRY) == 3
    off = release([[1, 0], [2, 0]], noise, steps=(F(1, 3),))
    assert reached(off, ENTRY) == F(7, 2)
    vector = release([[1, 0], [2, 0]], KNorm(F(1)), steps=(F(1, 3),))
    assert float(reached(vector, ENTRY)) == pytest.approx(5**0.5)  # rounded after the noise


def test_balls_stand_on_shares_of_their_radius() -> None:
    """(1/2, 1/2) of a ball of radius 1 is rounded to (1, 1), which is 2 away from nothing, and not 1."""
    held = (InputLayout("x", 0, 6, "entries", (3, 2), F(-1), F(1), Ball(F(1), 2, 1), (), None, None),)
    record = Difference((ball(0, 6, 2, 1),), 1)
    rows = [[1, 0] * 3, [0, 1] * 3]
    noise = Laplace((F(1), F(1)))
    for grid, figure in ((F(1), 3), (F(1, 2), 1)):
        one = release(rows, noise, held=held, steps=(F(1, 2),), grid=grid)
        assert reached(one, record) == figure


def test_a_record_that_lies_in_several_cells_moves_all_that_these_are_in() -> None:
    """A quarter in each of four cells rounds each of four counts to a half; one cell by itself moves one of them."""
    columns = tuple(Column(name, ("0", "1"), None, None, (), True) for name in ("a", "b"))
    held = (InputLayout("x", 0, 4, "cells", (4,), F(0), None, None, columns, None, None),)
    for shape, figure in (("cell", 3), ("swap", 4), ("kept", 3), ("replaced", 6)):
        record = Difference((Part(0, 4, 4, shape, 4, F(1)),), 1)
        counts = release(np.eye(4, dtype=int).tolist(), Laplace((F(1),) * 4), held=held, grid=F(1, 2))
        assert reached(counts, record) == figure
        whole = replace(counts, steps=(F(1),))
        assert reached(whole, record) == (1 if shape in ("cell", "kept") else 2)


@pytest.mark.parametrize("unit", ["adding or removing one record", "replacing one record"])
@pytest.mark.parametrize("pay", ["[0, 0.1]", "[0.3, 0.7]"])
def test_sums_of_a_column_off_the_lattice_are_as_private_as_they_are_solved_to_be(pay: str, unit: str) -> None:
    """A record lies in the cells of both ends: what rounding may move of either counts."""
    text = f"""variables:
  input people in table(pay in {pay}, age in [0, 0.7], d in 1..4)
  output O
  output P
loss: E[||O - sum(people.pay, by = {{d}})||^2] + 2 * E[||P - count(people, by = {{d}})||^2]
privacy: (O, P) are 1-DP wrt people, {unit}
options:
  noise family laplace
"""
    for other in (text, text.replace("count(people, by = {d})", "sum(people.age, by = {d})")):
        report = judge(JsonNode(plans.solved_text(other), "plan"))
        assert report.ok, report.failed


def test_all_that_a_voter_holds_moves_together() -> None:
    """A sum over two inputs of a voter moves by 2, where each input by itself moves it by 1."""
    total = release([[1] * 6], Gaussian(F(1)))
    assert reached(total, Difference((box(0, 3), box(3, 6)), 1)) == 4
    assert reached(total, Difference((box(0, 3),), 1)) == 1


@pytest.mark.parametrize("seed", range(4))
def test_mixed_answers(seed: int) -> None:
    """Outputs that are rounded one by one: what they see is Gaussian noise of L (B d), of covariance L L'."""
    dice = np.random.default_rng(seed)
    rows, of = dice.integers(-9, 10, (5, 4)), dice.integers(-9, 10, (5, 5))
    one = release(rows.tolist(), Gaussian(F(2)), of.tolist(), round_outputs=True)
    inverse, _ = inverse_root(of[:2] * 1.0)
    assert inverse is not None
    seen = of[:2] @ rows
    true = max(float(d @ np.linalg.solve(of[:2] @ of[:2].T, d)) for d in seen.T.astype(float)) / 4
    entry = Difference((box(0, 4),), 1)
    assert true * (1 - 1e-9) <= float(reached(one, entry, "O0", "O1", inverse=inverse)) <= true * (1 + 1e-9)
    # without the inverse it is charged for all that it may see; a wrong one is refused
    assert reached(one, entry, "O0", "O1") >= true
    with pytest.raises(Exception, match="not near an inverse"):
        reached(one, entry, "O0", "O1", inverse={**inverse, "unit": str(2 * F(inverse["unit"]))})


def test_matrices_are_of_their_shape_and_no_finer_than_fits() -> None:
    """Entries are exact: each has its own denominator, which many of them cannot all have at any length."""

    def sparse(places: list[int], unit: str, size: int = 2) -> JsonNode:
        values = {"shape": [len(places)], "unit": unit, "rows": [1] * len(places)}
        listed = {"shape": [len(places)], "unit": "1", "rows": places}
        return JsonNode({"form": "sparse", "shape": [size, size], "places": listed, "values": values}, "matrix")

    assert read_matrix(sparse([0, 3], "1/3"), 2, 2) == fmpq_mat([[1, 0], [0, 1]]) / 3
    assert read_matrix(sparse([], "2^-300", 1024), 1024, 1024) == fmpq_mat(1024, 1024)
    for wrong, why in (
        (sparse([3, 0], "1"), "in order"),
        (sparse([0, 0], "1"), "in order"),
        (sparse([0, 4], "1"), "in order"),
        (sparse([-1], "1"), "in order"),
        (sparse([0], "0"), "not positive"),
        (sparse([0], "1", 3), "shape"),
    ):
        with pytest.raises(Refused, match=why):
            read_matrix(wrong, 2, 2)
    with pytest.raises(Refused, match="too fine"):
        read_matrix(sparse([], "2^-4096", 1024), 1024, 1024)


# --- forgeries ------------------------------------------------------------------------------------------

PREFIX = ("input x in [0, 1]^4; intermediate y; output O", "y = prefix_sums(x)")
SPECS = {
    "gaussian": spec(*PREFIX, privacy="O is 1-GDP wrt x, replacing one entry"),
    "laplace": spec(*PREFIX, privacy="O is 1-DP wrt x, replacing one entry", options="noise family laplace"),
    "counts": spec(
        "input p in table(a in 0..4); intermediate y; output O", "y = histogram(p)",
        privacy="O is 1-DP wrt p, adding or removing one record",
    ),
    "moving": spec(
        "input p in table(a in 0..4); intermediate y; output O", "y = histogram(p)",
        privacy="O is 1-GDP wrt p, replacing one record",
    ),
    "nobody": spec(*PREFIX, privacy="O is 1-GDP wrt x, replacing one entry", options="trust nobody"),
    "group": spec(*PREFIX, privacy="O is 1-GDP wrt x, replacing up to 2 entries"),
    "knorm": spec(
        "input x in l2_ball(1, 3); output O", "", "E[ ||O - x||^2 ]", "O is 1-DP wrt x, replacing everything"
    ),
    "box": spec(
        "input x in [0, 1]^20; intermediate y; output O", "y = prefix_sums(x)",
        privacy="O is 1-GDP wrt x, replacing everything",
    ),
    "mixed": spec(
        "input p in table(a in 0..4); intermediate y; intermediate t; output O; output P",
        "y = histogram(p); t = prefix_sums(histogram(p))", "E[ ||O - y||^2 ] + 4 * E[ ||P - t||^2 ]",
        "P is 0.5-GDP wrt p, replacing one record, seen by press; "
        "O is 1-GDP wrt p, replacing one record, seen by auditors",
    ),
}  # fmt: skip


@cache
def solved(name: str) -> str:
    return json.dumps(plans.solved_text(SPECS[name]))


def refused(plan: Plan) -> str:
    """Why the kernel does not confirm a plan; empty where it does."""
    return "; ".join(f"{claim.name}: {claim.text}" for claim in judge(json.dumps(plans.resign(plan))).failed)


@pytest.mark.parametrize("name", SPECS)
def test_plans_hold(name: str) -> None:
    assert not refused(json.loads(solved(name)))


def at(*path: str | int) -> Callable[[Any], Callable[[Plan], None]]:
    """Sets the value at a place."""

    def setting(value: Any) -> Callable[[Plan], None]:
        def change(plan: Plan) -> None:
            found: Any = plan
            for key in path[:-1]:
                found = found[key]
            found[path[-1]] = value(found[path[-1]]) if callable(value) else value

        return change

    return setting


def executed(*path: str | int) -> Callable[[Any], Callable[[Plan], None]]:
    return at("mechanism", "executed", *path)


def of_strategy(*path: str | int) -> Callable[[Any], Callable[[Plan], None]]:
    """The same of the strategy, entry by entry."""

    def setting(value: Any) -> Callable[[Plan], None]:
        def change(plan: Plan) -> None:
            dense(plan)
            executed("strategy", *path)(value)(plan)

        return change

    return setting


def block(*path: str | int) -> Callable[[Any], Callable[[Plan], None]]:
    return at("problem", "blocks", 0, *path)


def twice(plan: Plan) -> None:
    """Every answer is twice as far from its neighbours."""
    found = dense(plan)
    found["rows"] = [2 * v for v in found["rows"]]


def swapped_rows(plan: Plan) -> None:
    """The reconstruction uses one more answer for the output of the stricter observer."""
    found = dense(plan, "reconstruction")
    k = found["shape"][1]
    found["rows"][5 * k : 6 * k] = found["rows"][:k]


ATTACKS: dict[str, tuple[str, Callable[[Plan], None], str]] = {
    "answers twice as far apart": ("gaussian", twice, "and 1 is stated"),
    "answers of counts": ("counts", twice, "epsilon is 2 at most"),
    "answers of records that move": ("moving", twice, "is stated"),
    "a vector of answers": ("knorm", twice, "is stated"),
    "a large box": ("box", twice, "is stated"),
    "less Gaussian noise": ("gaussian", executed("noise", "scale")("1/2"), "mu is 2"),
    "no noise": ("gaussian", executed("noise", "scale")("0"), "noise of no size"),
    "negative noise": ("gaussian", executed("noise", "scale")("-1"), "noise of no size"),
    "less Laplace noise": ("laplace", executed("noise", "scales", 0)("1/100"), "is stated"),
    "one scale for all": ("laplace", executed("noise", "scales")("1"), "not a list"),
    "noise of another shape": ("gaussian", executed("noise", "shape")("none"), "not known"),
    "a discrete law that nobody knows": ("gaussian", executed("noise", "law")("x"), "not known"),
    "a coarse lattice": ("laplace", executed("grid")("2^0"), "is stated"),
    "no lattice": ("laplace", executed("grid")("0"), "not positive"),
    "a grid without the ends of the interval": ("gaussian", executed("steps", 0)("2/3"), "whole number"),
    "counts in halves": ("counts", executed("steps", 0)("1/2"), "whole number"),
    "a grid of an input more": ("gaussian", executed("steps")(lambda steps: steps * 2), "not one for each input"),
    "outputs rounded, answers not": ("laplace", executed("round_outputs")(True), "for Gaussian noise"),
    "answers rounded, not outputs": ("mixed", executed("round_outputs")(False), "is no mixture"),
    "a rounding that nobody knows": ("gaussian", executed("round_outputs")("none"), "neither true nor false"),
    "fewer who send": ("nobody", executed("senders")([1]), "'senders' that is not known"),
    "geometric noise or not": ("laplace", executed("noise", "whole")(True), "'whole' that is not known"),
    "a listed view": ("gaussian", executed("views")([{"outputs": ["O"], "rows": 1}]), "'views' that is not known"),
    "a seed": ("gaussian", executed("seed")(1), "not known"),
    "an output of one more answer": ("mixed", swapped_rows, "privacy|inverse"),
    "a view without help": ("mixed", at("claims", "views", 1, "inverse")(None), "is stated"),
    "a wrong inverse": ("mixed", at("claims", "views", 0, "inverse", "unit")("2^-3"), "inverse"),
    "a scaling below zero": ("box", at("claims", "views", 0, "scaling", 0, 0, 0)("-1"), "less than 0"),
    "a scaling of nothing": ("box", at("claims", "views", 0, "scaling", 0, 0, 0)("0"), "not positive"),
    "a scaling too few": ("box", at("claims", "views", 0, "scaling", 0, 0)(["1"]), "in place of"),
    "less than is reached": ("gaussian", at("guarantees", 0, "achieved", "mu")("0.99"), "0.99 is stated"),
    "more than is asked": ("gaussian", at("guarantees", 0, "achieved", "mu")("1.01"), "does not give mu-GDP"),
    "another figure": ("gaussian", at("guarantees", 0, "achieved")({"epsilon": "1"}), "does not give mu alone"),
    "two figures": ("gaussian", at("guarantees", 0, "achieved", "rho")("1"), "does not give mu alone"),
    "another amount": ("gaussian", at("guarantees", 0, "mu")("0.5"), "not what the line asks"),
    "another unit": ("group", at("guarantees", 0, "neighbours")("replacing up to 3 entries"), "not what the problem"),
    "other notes": ("gaussian", at("guarantees", 0, "because")(["none"]), "notes that do not fit"),
    "no note of groups": ("group", at("guarantees", 0, "because")(lambda notes: notes[:-1]), "notes that do not"),
    "no guarantee": ("gaussian", at("guarantees")([]), "entries in place of"),
    "a family that is not allowed": ("gaussian", block("families")(["laplace"]), "not a family of noise"),
    "tables only": ("gaussian", block("families")(["table", "knorm"]), "not a family of noise"),
    "another family": ("gaussian", at("mechanism", "family")("laplace"), "not known|scale"),
    "a family that nobody knows": ("gaussian", at("mechanism", "family")("table"), "not known"),
    "records dropped under replacing": ("moving", at("problem", "data", 0, "rule")("drop"), "leaves records out"),
    "messages hidden from an observer": ("mixed", at("problem", "trust", "kind")("nobody"), "at a curator|hides"),
    "an obligation that hides its outputs": ("mixed", at("problem", "obligations", 0, "seen")(["O"]), "hides"),
    "a message of two parties": ("nobody", of_strategy("rows", 1)(1), "more than one party"),
    "a vector under trust nobody": ("knorm", at("problem", "trust", "kind")("nobody"), "for this trust"),
    "noise under a secure sum": ("gaussian", at("problem", "trust", "kind")("secure_sum"), "not known"),
    "a difference of no input": ("gaussian", block("differences", 0, 0, "parts", 0, "stop")(3), "as a whole|runs"),
    "records of numbers": ("gaussian", block("differences", 0, 0, "parts", 0, "shape")("cell"), "as a whole"),
    "numbers that move to others": ("box", block("differences", 0, 0, "parts", 0, "shape")("swap"), "as a whole"),
    "a unit twice": ("gaussian", block("differences", 0, 0, "parts")(lambda parts: parts * 2), "as a whole"),
    "records that move and drop": ("counts", block("differences", 0, 0, "parts", 0, "shape")("swap"), "leaves records"),
    "no difference of an obligation": ("gaussian", block("differences")([]), "entries in place of"),
    "an obligation without differences": ("gaussian", block("differences", 0)([]), "differences"),
    "a matrix that is cut off": ("gaussian", of_strategy("rows")(lambda rows: rows[:-1]), "in place of"),
    "a matrix of other shape": ("gaussian", of_strategy("shape")([2, 8]), "in place of|matrices of other inputs"),
    "entries that are no integers": ("gaussian", of_strategy("rows", 0)(1.5), "whole number"),
    "a reconstruction of nothing": ("gaussian", executed("of_inputs")(True), "unbiased"),
    "an output that stands elsewhere": ("gaussian", block("released", 0, "start")(1), "does not fit|ends"),
    "an input that ends before it starts": ("gaussian", block("held", 0, "start")(9), "ends"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_forgeries_are_refused(name: str) -> None:
    key, change, reason = ATTACKS[name]
    plan = copy.deepcopy(json.loads(solved(key)))
    change(plan)
    said = refused(plan)
    assert said, "the forged plan is confirmed"
    assert any(part in said for part in reason.split("|")), said


@pytest.mark.parametrize(
    ("old", "new"),
    [("{'amount': '1'}", {"amount": "1/2"}), ("one unit", {"count": 1}), ("apart", {"length": 2})],
)
def test_a_problem_that_is_not_that_of_its_spec(old: str, new: dict[str, Any]) -> None:
    """Half a width, one entry in place of two: the spec is read again, and its problem is another."""
    from privspec.plan import Plan as Read

    plan = json.loads(solved("group"))
    difference = plan["problem"]["blocks"][0]["differences"][0][0]
    for key, value in new.items():
        (difference if key in difference else difference["parts"][0])[key] = value
    assert not Read(plans.resign(plan)).verify().ok
