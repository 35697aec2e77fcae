"""The whole way: certified optima, stages, limits, and the plan as an object."""

from __future__ import annotations

import copy
import json
import math
import os
import re
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from privspec import pipeline
from privspec.api import Problem
from privspec.cli import run_command_line
from privspec.core.diagnostics import PrivspecError, SolveError, UsageError, VerificationError
from privspec.core.render import render_all
from privspec.core.spans import Source
from privspec.explain.summary import infeasible_text
from privspec.families.decision import WITHDRAWN, sealed
from privspec.families.family import Settings, compiler_of
from privspec.manual import template_text
from privspec.model.graph import Model
from privspec.pipeline import STAGES, Request, check, confirm, solve
from privspec.plan import Plan
from tests.plans import listed, matrix_of

GOLDEN = Path(__file__).parent / "golden"


def series(n: int, body: str = "prefix_sums(x)", options: str = "") -> str:
    return f"""\
variables:
  input x in [0, 1]^{n}
  intermediate y
  output O
background: y = {body}
loss: E[ ||O - y||^2 ]
privacy: O is 1-GDP wrt x, replacing one entry
{options}"""


AT_XY = "options: noise at x, y"


def certified(plan: Plan, loss: float, digits: float) -> None:
    """Optimal to a gap of 1e-6, verified by the independent checker, and of the loss that is known."""
    assert plan.status == "optimal"
    assert plan.loss.relative_gap is not None
    assert plan.loss.lower_bound is not None
    assert plan.loss.relative_gap <= 1e-6
    assert plan.loss.lower_bound <= loss + digits
    assert plan.loss.value == pytest.approx(loss, abs=digits + 1e-6 * loss)
    report = plan.verify()
    assert report.ok, str(report)


@pytest.mark.parametrize(
    ("text", "loss", "digits"),
    [
        pytest.param(series(64), 282.201421, 1e-6, id="prefix 64"),
        pytest.param(series(64, options=AT_XY), 371.42, 5e-3, id="prefix 64 at x, y"),
        pytest.param(series(64, "range_sums(x)"), 11024.38151, 1e-5, id="ranges 64"),
        pytest.param(series(256), 1631.403046, 1e-6, id="prefix 256"),
        pytest.param(series(256, options=AT_XY), 2854.76, 5e-3, id="prefix 256 at x, y", marks=pytest.mark.slow),
    ],
)
def test_certified_optima(text: str, loss: float, digits: float) -> None:
    certified(Problem(text).solve(), loss, digits)


def queries(m: int, n: int) -> str:
    return series(n, "A @ x").replace("  intermediate", f"  constant A in real^({m}, {n})\n  intermediate", 1)


@pytest.mark.parametrize(
    ("shape", "draw"),
    [
        pytest.param((20, 200), lambda dice, shape: dice.normal(size=shape), id="wide Gaussian"),
        pytest.param(
            (128, 128), lambda dice, shape: dice.integers(0, 2, size=shape).astype(float), id="zeros and ones"
        ),
        pytest.param((5, 40), lambda dice, shape: dice.integers(0, 2, size=shape).astype(float), id="few questions"),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_random_questions_are_solved_to_a_certified_gap(
    shape: tuple[int, int], draw: Callable[[np.random.Generator, tuple[int, int]], Any], seed: int
) -> None:
    matrix = draw(np.random.default_rng(seed), shape)
    plan = Problem(queries(*shape), constants={"A": matrix}).solve()
    certified(plan, plan.loss.value, 1.0)
    spectrum = np.linalg.svd(matrix, compute_uv=False).sum() ** 2 / shape[1]
    assert plan.loss.value >= spectrum * (1 - 1e-9)  # the dual bound at equal weights


def test_more_budget_never_costs_more() -> None:
    losses = [Problem(template_text("two_observers")).solve(press_mu=mu).loss.value for mu in (0.1, 0.25, 0.5, 1, 2)]
    assert all(after <= before * (1 + 1e-6) for before, after in pairwise(losses))


@pytest.mark.parametrize("domain", ["[1, 3]", "0..5", "{1, 3}", "[0, 1]^1"])
@pytest.mark.parametrize(
    "privacy", ["1-GDP wrt x", "1-DP wrt x", "(1, 1e-6)-LDP wrt x", "1-DP wrt x, replacing everything"]
)
def test_one_number(domain: str, privacy: str) -> None:
    loss = "||z - x||^2" if "^" in domain else "(z - x)^2"
    text = f"variables:\n  input x in {domain}\n  output z\nloss: E[ {loss} ]\nprivacy: z is {privacy}"
    assert Problem(text).solve().feasible


# --- several requirements ------------------------------------------------------------------------


def totals(*privacy: str, loss: str = "E[ (a - sum(x))^2 ] + E[ (b - x[1])^2 ]", rest: str = "") -> str:
    outputs = sorted({name for name in "abc" if f"({name} - " in loss})
    lines = "".join(f"  {line}\n" for line in privacy)
    declared = "".join(f"  output {name}\n" for name in outputs)
    return f"variables:\n  input x in [0, 1]^4\n{declared}loss: {loss}\nprivacy:\n{lines}{rest}"


def holds(plan: Plan, tmp_path: Path, **data: Any) -> None:
    """It verifies, is explained to everybody, and is run once."""
    report = plan.verify()
    assert report.ok, str(report)
    assert all(plan.explain(reader, "md") for reader in ("public", "auditor", "engineer"))
    release = plan.run(data, ledger=tmp_path / "ledger.db", new_ledger=True).outputs
    assert all(np.all(np.isfinite(np.asarray(value, float))) for value in release.values())


def log_ratio(plan: Plan, outputs: tuple[str, ...]) -> Fraction:
    """The largest log-ratio of what is seen, from the exact numbers that are executed: sum |B_i| / b over rows used.

    A row whose answers are no points of the lattice moves by a step of it more, when they are rounded.
    """
    executed, (block,) = plan.document["mechanism"]["executed"], plan.document["problem"]["blocks"]
    whole, unit = listed(executed["strategy"]), Fraction(listed(executed["strategy"])["unit"])
    strategy, rebuilt = np.reshape(whole["rows"], whole["shape"]).tolist(), matrix_of(executed["reconstruction"])
    scales, grid = [Fraction(b) for b in executed["noise"]["scales"]], Fraction(executed["grid"])
    seen = [r for o in block["released"] if o["name"] in outputs for r in range(o["start"], o["stop"])]
    used = [k for k in range(len(scales)) if rebuilt[seen, k].any()]
    (point,) = map(Fraction, {*executed["steps"]})
    steps = [0 if all((b * unit * point / grid).denominator == 1 for b in row) else grid for row in strategy]
    entries = range(len(strategy[0]))
    return max(sum((abs(strategy[k][i]) * unit + steps[k]) / scales[k] for k in used) for i in entries)


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        # scale 1/2 for alice, 2 for bob: 2 b^2 each
        pytest.param(
            totals(
                "a is 2-DP wrt x, replacing one entry, seen by alice",
                "b is 0.5-DP wrt x, replacing one entry, seen by bob",
            ),
            2 * 0.5**2 + 2 * 2.0**2,
            id="two observers",
        ),
        pytest.param(
            totals(
                "a is 2-DP wrt x, replacing one entry, seen by alice",
                "b is 0.5-DP wrt x, replacing one entry, seen by bob",
                "c is 0.001-DP wrt x, replacing one entry, seen by eve",
                loss="E[ (a - sum(x))^2 ] + E[ (b - x[1])^2 ] + E[ (c - x[2])^2 ]",
            ),
            2 * 0.5**2 + 2 * 2.0**2 + 2 * 1000.0**2,
            id="three observers",
        ),
        pytest.param(
            totals(
                "a is 200-DP wrt x, replacing one entry, seen by alice",
                "a is 1-DP wrt x, replacing one entry, seen by bob",
                loss="E[ (a - sum(x))^2 ]",
            )
            + "options: noise family laplace\n",
            2.0,
            id="one implies the other",
        ),
    ],
)
def test_pure_epsilon_for_several_observers(text: str, loss: float, tmp_path: Path) -> None:
    plan = Problem(text).solve()
    assert plan.loss.value == pytest.approx(loss, rel=1e-5)
    assert plan.loss.lower_bound is not None
    assert 0 < plan.loss.lower_bound <= plan.loss.value
    for guarantee in plan.guarantees:
        assert log_ratio(plan, guarantee.outputs) <= Fraction(guarantee.figures["epsilon"])
    holds(plan, tmp_path, x=np.array([0.0, 0.5, 1.0, 0.25]))


def test_the_press_and_the_auditors_under_pure_epsilon(tmp_path: Path) -> None:
    """No unbiased mechanism is below the Gaussian optimum at 2 sinh(epsilon / 2); noise loses twice it and more."""
    text = template_text("two_observers")
    pure = Problem(text.replace("-GDP", "-DP")).solve()
    gaussian = Problem(text).solve(press_mu=2 * float(np.sinh(0.125)), audit_mu=2 * float(np.sinh(0.5)))
    assert gaussian.loss.lower_bound is not None
    assert pure.loss.lower_bound is not None
    assert pure.loss.lower_bound >= 2 * gaussian.loss.lower_bound * (1 - 1e-5)
    assert pure.loss.value > gaussian.loss.value
    holds(pure, tmp_path, x=np.linspace(0, 1, 16))


@pytest.mark.parametrize("epsilon", ["0.001", "1000"])
def test_pure_epsilon_of_every_size(epsilon: str, tmp_path: Path) -> None:
    text = totals("a is EPS-DP wrt x, replacing one entry", loss="E[ (a - sum(x))^2 ]").replace("EPS", epsilon)
    if float(epsilon) > 250:
        with pytest.raises(PrivspecError) as caught:
            Problem(text).solve()
        assert [d.code for d in caught.value.diagnostics] == ["PS0501"]
        return
    plan = Problem(text).solve()
    assert plan.loss.value == pytest.approx(2 / float(epsilon) ** 2, rel=1e-6)
    holds(plan, tmp_path, x=np.zeros(4))


OWN = """\
variables:
  input x in [0, 1]^3
  input w in [0, 1]^3
  output O
  output P
loss: E[ ||O - x||^2 ] + E[ ||P - w||^2 ]
privacy:
"""


@pytest.mark.parametrize("measure", ["1-GDP", "1-DP", "(1, 1e-6)-DP"])
@pytest.mark.parametrize("beside", ["", "  O is 1-GDP wrt x, replacing one entry\n"])
def test_a_requirement_that_holds_by_itself(measure: str, beside: str, tmp_path: Path) -> None:
    """O does not depend on w, so nothing is asked of it, and nothing is claimed to be used."""
    lines = f"  O is {measure} wrt w, replacing one entry\n  P is {measure} wrt w, replacing one entry\n"
    plan = Problem(OWN + lines + beside.replace("1-GDP", measure)).solve()
    assert set(plan.guarantees[0].achieved.values()) == {"0"}
    assert set(plan.guarantees[1].achieved.values()) != {"0"}
    assert "wrt w, replacing one entry · holds without any noise" in " ".join(plan.summary().split())
    holds(plan, tmp_path, x=np.zeros(3), w=np.ones(3))


def test_a_requirement_that_holds_by_itself_for_one_of_two_inputs(tmp_path: Path) -> None:
    lines = (
        "  (O, P) is 2-DP wrt w, replacing one entry\n  O is 1-DP wrt all inputs, replacing one entry, seen by eve\n"
    )
    plan = Problem(OWN + lines).solve()
    assert plan.loss.value == pytest.approx(3 * 2 + 3 * 2 / 4, rel=1e-6)
    holds(plan, tmp_path, x=np.zeros(3), w=np.ones(3))


HISTOGRAM = """\
variables:
  input people in table(a in 0..4)
  intermediate c = histogram(people)
  intermediate t = sum(c)
  output O
  output T
loss: E[ ||O - c||^2 ] + E[ (T - t)^2 ]
privacy: all outputs are MEASURE wrt people, replacing one record
"""


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("measure", ["1-DP", "(1, 1e-6)-DP", "1-GDP", "200-DP"])
def test_answers_that_do_not_change(measure: str, tmp_path: Path) -> None:
    """The number of people is public when one of them is replaced: T is released without noise worth the name."""
    plan = Problem(HISTOGRAM.replace("MEASURE", measure)).solve()
    holds(plan, tmp_path, people={"a": [0, 1, 1, 4, 2, 2]})
    spread = np.sqrt(np.diag(plan.document["mechanism"]["output_covariance"]))
    assert spread[-1] <= 1e-3 * max(spread[0], 1.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("measure", ["1-DP", "(1, 1e-6)-DP", "1-GDP"])
@pytest.mark.parametrize("answers", ["range_sums", "prefix_sums"])
def test_ranges_of_a_histogram_without_a_warning(answers: str, measure: str) -> None:
    text = HISTOGRAM.replace("t = sum(c)", f"t = {answers}(c)").replace("(T - t)^2", "||T - t||^2")
    plan = Problem(text.replace("MEASURE", measure)).solve()
    assert plan.verify().ok


@pytest.mark.parametrize("epsilon", [1, 50, 200])
def test_the_grid_of_the_inputs_is_lost_in_the_noise(epsilon: int, tmp_path: Path) -> None:
    text = f"""\
variables:
  input salary in [0, 200000]^500
  output O
loss: E[ (O - mean(salary))^2 ]
privacy: O is {epsilon}-DP wrt salary, replacing one entry
"""
    plan = Problem(text).solve()
    staircase = 1.9181041 * 400**2 if epsilon == 1 else 2 * (400 / epsilon) ** 2
    assert plan.loss.value == pytest.approx(staircase, rel=1e-6)
    holds(plan, tmp_path, salary=np.linspace(0, 200_000, 500))


def last_total(bound: float, epsilon: float = 1) -> Problem:
    return Problem(f"""\
variables:
  input x in [0, 1]^8
  intermediate y = prefix_sums(x)
  output O
loss: E[ ||O - y||^2 ]
accuracy: E[ (O[8] - y[8])^2 ] <= {bound}
privacy: O is {epsilon}-DP wrt x, replacing one entry
""")


@pytest.mark.parametrize("bound", [60, 12, 6])
def test_pure_epsilon_with_an_accuracy_line(bound: float, tmp_path: Path) -> None:
    """Staircases on the entries (Geng & Viswanath) leave 8 of one to the last total; else 1/b_8 + 7/b = 1 on totals."""
    plan = last_total(bound).solve()
    last = (bound / 2) ** 0.5
    on_totals = 2 * (7 * (7 / (1 - 1 / last)) ** 2 + last**2)
    decay = math.exp(-1)
    stair = ((decay * (1 + decay) / 2) ** (2 / 3) + decay) / (1 - decay) ** 2
    assert plan.loss.value == pytest.approx(36 * stair if bound > 16 else on_totals, rel=1e-5)
    (line,) = plan.document["accuracy"]
    assert line["value"] <= bound
    holds(plan, tmp_path, x=np.linspace(0, 1, 8))


def test_pure_epsilon_too_strict_for_an_accuracy_line() -> None:
    """Unbiased mechanisms need 1 / (4 sinh(1/2)^2) = 0.92; the Laplace noise that is known needs 2."""
    plan = last_total(0.5).solve()
    assert plan.status == "infeasible"
    assert plan.document["reason"].startswith("the privacy asked for makes errors at least 1.841 times")
    target, measure = (way["change"] for way in plan.document["relaxations"])
    assert last_total(float(target.split()[1])).solve().feasible
    assert last_total(0.5, float(measure.removeprefix("accept ").removesuffix("-DP"))).solve().feasible


def test_an_accuracy_line_between_what_is_known_and_what_is_excluded() -> None:
    with pytest.raises(SolveError) as caught:
        last_total(1.5).solve()
    (found,) = caught.value.diagnostics
    assert (found.code, caught.value.exit_code) == ("PS0612", 5)
    assert "errors below 0.6138 times" in found.notes[1]
    assert last_total(float(found.help.split()[1])).solve().feasible  # type: ignore[union-attr]


@pytest.mark.parametrize("size", [2, 8])
def test_public_constants_are_added_once(size: int, tmp_path: Path) -> None:
    """Whether outputs are computed from the noisy answers or from noisy inputs (more outputs than inputs)."""
    text = f"""\
variables:
  input x in [0, 1]^3
  constant A in real^({size}, 3)
  constant b in real^{size}
  output O
loss: E[ ||O - (A @ x + b)||^2 ]
privacy: O is 1000-GDP wrt x, replacing one entry
"""
    A, b, x = np.arange(3.0 * size).reshape(size, 3) % 5, 10 * np.arange(1.0, size + 1), np.array([0.25, 0.5, 1.0])
    plan = Problem(text, constants={"A": A, "b": b}).solve()
    assert plan.document["mechanism"]["executed"].get("of_inputs", False) == (size > 3)
    released = plan.run({"x": x}, ledger=tmp_path / "ledger.db", new_ledger=True).outputs["O"]
    np.testing.assert_allclose(released, A @ x + b, atol=0.1)


@pytest.mark.parametrize("weights", [np.ones(1201), np.linspace(0.5, 1, 1201)], ids=["sums", "weighted sums"])
def test_four_figures_of_each_of_many_people(weights: Any) -> None:
    """1,201 records of four numbers: one of them moves the four sums by at most 1 each, so 2 in all."""
    text = """\
variables:
  input x in [0, 1]^(1201, 4)
  constant A in real^1201
  intermediate y = A @ x
  output O
loss: E[ ||O - y||^2 ]
privacy: O is 1-GDP wrt x, replacing one record
"""
    plan = Problem(text, constants={"A": weights}).solve()
    certified(plan, 4 * 4, 1e-5)


LATER = """\
variables:
  input x in [0, 1]^3
  constant A in real^(SIZE, 3)
  constant b in real^SIZE
  constant c in [0, 100]
  intermediate y
  output O
  output P
background: y = A @ x + 2 * b
loss: E[ ||O - y||^2 ] + E[ (P - (c + x[1]))^2 ]
privacy:
  all outputs are 1000-GDP wrt x, replacing one entry
"""


@pytest.mark.parametrize("lines", ["", "  P is 500-GDP wrt x, replacing one entry, seen by press\n"])
@pytest.mark.parametrize("size", [2, 8])
def test_constants_that_a_run_is_given(size: int, lines: str, tmp_path: Path) -> None:
    """They are added after the noise, once, and the checker knows how; what shapes the answer is for `solve`."""
    text = LATER.replace("SIZE", str(size)) + lines
    A, b, x = np.arange(3.0 * size).reshape(size, 3) % 5, 10 * np.arange(1.0, size + 1), np.array([0.25, 0.5, 1.0])
    plan = Problem(text, constants={"A": A}).solve()
    assert plan.verify().ok
    ledger = tmp_path / "ledger.db"
    with pytest.raises(UsageError) as caught:
        plan.run({"x": x}, ledger=ledger, new_ledger=True, constants={"b": b})
    assert [d.code for d in caught.value.diagnostics] == ["PS0824"]
    for wrong in ({"b": b[1:], "c": 7}, {"b": b, "c": np.nan}, {"b": b, "c": 7, "A": A}):
        with pytest.raises(UsageError):
            plan.run({"x": x}, ledger=ledger, new_ledger=True, constants=wrong)
    assert not ledger.exists()
    released = plan.run({"x": x}, ledger=ledger, new_ledger=True, constants={"b": b, "c": np.array(7.0)})
    np.testing.assert_allclose(released.outputs["O"], A @ x + 2 * b, atol=0.1)
    np.testing.assert_allclose(released.outputs["P"], 7.25, atol=0.1)
    assert any(rule.startswith("b: a public value given at this run") for rule in released.data_rules)
    assert all(plan.explain(reader, "md") for reader in ("public", "auditor", "engineer"))
    with pytest.raises(PrivspecError) as caught_too:
        Problem(text).solve()
    assert [d.code for d in caught_too.value.diagnostics] == ["PS0261"]


def test_a_constant_added_otherwise_than_the_spec_says_does_not_verify() -> None:
    plan = Problem(LATER.replace("SIZE", "2"), constants={"A": np.ones((2, 3)), "c": 1.0}).solve()
    for change in (
        lambda block: block["constants"][0]["map"]["rows"].__setitem__(0, 0),
        lambda block: block["constants"].clear(),
        lambda block: block["constants"][0].update(name="A"),
        lambda block: block["constants"].append(block["constants"][0]),
    ):
        document = copy.deepcopy(dict(plan.document))
        change(document["problem"]["blocks"][0])
        assert not Plan(sealed({k: v for k, v in document.items() if k != "digest"})).verify().ok


@pytest.mark.parametrize("measure", ["100-GDP", "100-DP"])
def test_entries_that_stand_for_different_things(measure: str, tmp_path: Path) -> None:
    """More answers than inputs, and no one expression for all of them."""
    text = f"""\
variables:
  input x in [0, 1]^2
  output O in real^3
loss: E[ (O[1] - x[1])^2 ] + E[ (O[2] - x[2])^2 ] + E[ (O[3] - x[1] - x[2])^2 ]
privacy: O is {measure} wrt x, replacing one entry
"""
    plan = Problem(text).solve()
    assert plan.verify().ok
    released = plan.run({"x": np.array([0.5, 0.25])}, ledger=tmp_path / "ledger.db", new_ledger=True).outputs["O"]
    np.testing.assert_allclose(released, [0.5, 0.25, 0.75], atol=0.5)


MIXED = """\
variables:
  input x in [0, 1]^4
  intermediate a = sum(x)
  intermediate b = x[1]
  output O1
  output O2
loss: LOSS + E[ (O1 - a)^2 ]
privacy: all outputs are 1-GDP wrt x, replacing one entry
"""


def mixed_loss(errors: list[list[float]]) -> float:
    """The least loss by the dual: nuclear norm of the weighted effects, largest over weights of the entries."""
    effects = np.array(errors) @ np.array([[1.0, 1, 1, 1], [1, 0, 0, 0]])
    shares = np.linspace(0, 1, 4001)[1:-1]
    roots = (np.sqrt([share, *[(1 - share) / 3] * 3]) for share in shares)
    return float(max(np.linalg.svd(effects * root, compute_uv=False).sum() ** 2 for root in roots))


@pytest.mark.parametrize(
    ("loss", "errors"),
    [
        ("E[ (O1 - O2 - a + b)^2 ]", [[1, -1], [1, 0]]),
        ("E[ (b - O2 + O1 - sum(x))^2 ]", [[1, -1], [1, 0]]),
        ("E[ (2 * O1 - O2 / 2 - 2 * a + b / 2)^2 ] + E[ (O2 - x[1])^2 ]", [[2, -0.5], [0, 1], [1, 0]]),
        ("E[ (O1 + O2 - (a + b))^2 ] + E[ (O2 - b)^2 ]", [[1, 1], [0, 1], [1, 0]]),
    ],
)
def test_errors_of_several_outputs_together(loss: str, errors: list[list[float]], tmp_path: Path) -> None:
    """The average does not depend on x: each output is what its own term, or the sum, says."""
    plan = Problem(MIXED.replace("LOSS", loss)).solve()
    certified(plan, mixed_loss(errors), 1e-5 * plan.loss.value)
    holds(plan, tmp_path, x=np.array([0, 1, 0.5, 0.25]))


@pytest.mark.parametrize(
    "loss", ["E[ (O1 - O2 - a)^2 ] + E[ (O2 - b)^2 ]", "E[ (O1 + O2 - a + b)^2 ] + E[ (O2 - b)^2 ]"]
)
def test_errors_of_several_outputs_that_do_depend_on_the_data(loss: str) -> None:
    with pytest.raises(PrivspecError) as caught:
        Problem(MIXED.replace("LOSS", loss)).check()
    assert [d.code for d in caught.value.diagnostics] == ["PS0401"]


def test_a_combination_that_nothing_prices() -> None:
    text = MIXED.replace("LOSS + E[ (O1 - a)^2 ]", "E[ (O1 - O2 - a + b)^2 ]")
    with pytest.raises(PrivspecError) as caught:
        Problem(text.replace("output O1", "output O1 in real").replace("output O2", "output O2 in real")).solve()
    assert [d.code for d in caught.value.diagnostics] == ["PS0506"]


# --- stages --------------------------------------------------------------------------------------


def request(text: str, **parameters: Any) -> Request:
    return Request(Source("test.priv", text), parameters)


def test_stages_are_told_in_order() -> None:
    told: list[str] = []
    solve(request(series(4)), watch=lambda stage, result: told.append(stage))
    assert tuple(told) == STAGES


def test_an_infeasible_spec_is_a_plan_without_a_mechanism() -> None:
    told: list[str] = []
    plan = solve(request(series(4).replace("[0, 1]", "real")), watch=lambda stage, result: told.append(stage))
    assert (plan.status, plan.feasible) == ("infeasible", False)
    assert told == ["tree", "graph", "system"]
    assert repr(plan) == "<Plan test: infeasible>"
    assert plan.guarantees == ()
    assert Plan.of(json.loads(plan.to_json())) == plan


@pytest.mark.parametrize("options", ["", AT_XY])
def test_too_little_time(options: str) -> None:
    with pytest.raises(SolveError) as caught:
        solve(request(series(48, options=options)), Settings(until=0.0))
    assert caught.value.exit_code == 5
    assert [d.code for d in caught.value.diagnostics] == ["PS0610"]


def test_solved_in_is_what_one_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the time for reading a spec, not that of one solver alone."""
    slept, usual = list[float](), pipeline.check

    def slow(asked: Request) -> Model:
        time.sleep(0.2)
        slept.append(0.2)
        return usual(asked)

    monkeypatch.setattr(pipeline, "check", slow)
    plan = solve(request(series(4)))
    assert plan.document["remarks"]["solver"]["seconds"] >= sum(slept) > 0
    assert "solved in 12 s" in plan.summary(200, waited=12.345)


def test_a_plan_that_is_not_confirmed_is_not_given_out() -> None:
    plan = solve(request(series(4)))
    document = copy.deepcopy(dict(plan.document))
    document["loss"]["value"] *= 0.9
    with pytest.raises(VerificationError) as caught:
        confirm(Plan(document))
    (found,) = caught.value.diagnostics
    assert found.code == "PS0620"
    assert found.notes


BIT = """\
variables:
  input x in {a, b, c}
  output z in {a, b, c}
background: x ~ uniform
loss: E[ mismatch(z, x) ]
privacy: z is 1-LDP wrt x
"""
VOTE = """\
parties: voter in 1..20
variables:
  input vote[voter] in {a, b, c}
  output O in {a, b, c}
loss: worst[ total_variation(O, random_dictator(vote)) ]
privacy: O is 1-DP wrt vote, replacing one voter
options: noise family dictator
"""


@pytest.mark.parametrize("text", [series(4), BIT, VOTE], ids=["noise", "table", "lottery"])
def test_a_plan_whose_bound_is_not_confirmed_is_given_without_it(text: str) -> None:
    document = copy.deepcopy(dict(solve(request(text)).document))
    document["loss"] |= {"lower_bound": document["loss"]["value"], "relative_gap": 0.0}
    if "lower_bound" in document["claims"]:
        document["claims"]["lower_bound"] = document["loss"]["value"]
    document["status"] = "optimal"
    document.pop("digest")
    forged = Plan(sealed(document))
    failed = {claim.name for claim in forged.verify().failed}
    assert failed <= {"bound", "optimality", "gap"} and failed
    given = confirm(forged)
    assert given.verify().ok
    assert (given.status, given.loss.lower_bound, given.loss.relative_gap) == ("feasible", None, None)
    assert given.loss.value == forged.loss.value and given.document["mechanism"] == forged.document["mechanism"]
    assert given.document["remarks"]["solver"]["notes"][-1] == WITHDRAWN
    assert "optimal" not in given.summary()
    assert "feasible: the best of" in given.summary() or "feasible: the only design" in given.summary()
    for reader in ("public", "auditor", "engineer"):
        assert given.explain(reader)
    with pytest.raises(VerificationError):  # never where the mechanism itself is in doubt
        confirm(Plan(sealed(document | {"guarantees": []})))


def test_progress_is_told() -> None:
    seen: list[tuple[int, float, float]] = []
    settings = Settings(progress=lambda step, value, bound: seen.append((step, value, bound)))
    solve(request(series(16)), settings)
    assert seen
    assert all(bound <= value * (1 + 1e-9) for _, value, bound in seen)


# --- the plan as an object -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solve(request("spec totals\n" + series(4)))


def test_a_plan_has_the_least_keys_of_the_interface(plan: Plan) -> None:
    document = plan.document
    assert document["format"] == "privspec-plan/3.0"
    assert set(document["spec"]) >= {"name", "sha256", "source", "parameters", "constants"}
    assert set(document["loss"]) >= {"value", "lower_bound", "relative_gap"}
    assert set(document["mechanism"]) >= {"family", "sites", "output_covariance", "executed"}
    for entry in document["alternatives"]:
        assert set(entry) == {"name", "loss", "admissible", "reason"}
        assert isinstance(entry["loss"], float)
    for entry in document["guarantees"]:
        assert set(entry) >= {"outputs", "wrt", "neighbours", "observer", "measure", "achieved", "because"}
        assert all(isinstance(value, str) for value in entry["achieved"].values())
    for entry in document["assumptions"]:
        assert entry["status"] in {"proved", "tested", "assumed", "asserted by the user"}
    assert {"problem", "claims", "remarks", "digest"} <= set(document)


def test_a_plan_is_equal_to_itself_read_back(plan: Plan, tmp_path: Path) -> None:
    written = plan.write(tmp_path / "a.plan.json")
    again = Plan.read(tmp_path / "a.plan.json")
    assert again == plan == written
    assert hash(again) == hash(plan)
    assert again.path == tmp_path / "a.plan.json"
    assert again.digest == plan.digest
    assert len({again, plan, written}) == 1
    assert plan != solve(request(series(5)))
    assert plan != "a plan"
    assert [p.name for p in tmp_path.iterdir()] == ["a.plan.json"]


def test_a_plan_says_what_it_promises(plan: Plan) -> None:
    (guarantee,) = plan.guarantees
    assert (guarantee.outputs, guarantee.wrt, guarantee.observer) == (("O",), ("x",), "anyone")
    assert (guarantee.measure, guarantee.figures) == ("mu-GDP", {"mu": "1"})
    assert Fraction(guarantee.achieved["mu"]) <= 1
    assert Fraction(guarantee.achieved["mu"]) > Fraction(999_999, 1_000_000)
    assert guarantee.line == 8
    assert plan.name == "totals"
    assert plan.loss.kind == "expected"
    assert repr(plan) == "<Plan totals: optimal, loss 6.87414>"


def test_the_spec_inside_a_plan_is_the_spec(plan: Plan) -> None:
    model = plan.model()
    assert model.source.text == plan.document["spec"]["source"]
    assert model.spec == check(request("spec totals\n" + series(4))).spec


@pytest.mark.parametrize("reader", ["public", "auditor", "engineer"])
@pytest.mark.parametrize("form", ["md", "html", "json"])
def test_a_plan_is_explained(plan: Plan, reader: str, form: str) -> None:
    text = plan.explain(reader, form)
    assert len(text) > 500
    if form == "json":
        json.loads(text)


def test_a_plan_is_shown(plan: Plan) -> None:
    assert "totals" in plan.summary()
    assert "<" in plan._repr_html_()


def test_a_plan_is_run(plan: Plan, tmp_path: Path) -> None:
    release = plan.run({"x": np.array([0.0, 0.5, 1.0, 0.25])}, ledger=tmp_path / "ledger.db", new_ledger=True)
    assert release.private
    assert np.shape(release.to_json()["outputs"]["O"]["values"]) == (4,)
    with pytest.raises(PrivspecError) as caught:
        plan.run({"x": np.zeros(4)}, ledger=tmp_path / "ledger.db")
    assert caught.value.exit_code == 6


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "PS0710"),
        (b"", "PS0711"),
        (b"{", "PS0711"),
        (b"[]", "PS0711"),
        (b"\xff\xfe", "PS0711"),
        (b'{"format": 3}', "PS0711"),
        (b'{"format": "privspec-release/1.0"}', "PS0711"),
        (b"[" * 100_000, "PS0711"),
        (b'{"format": "privspec-plan/2.0"}', "PS0712"),
        (b'{"format": "privspec-plan"}', "PS0712"),
    ],
)
def test_what_is_no_plan(content: bytes | None, code: str, tmp_path: Path) -> None:
    path = tmp_path / "x.plan.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        Plan.read(path)
    assert [d.code for d in caught.value.diagnostics] == [code]


def test_a_minor_version_is_read(plan: Plan) -> None:
    assert Plan.of({**plan.document, "format": "privspec-plan/3.7"}).name == "totals"


def test_a_folder_is_no_plan(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        Plan.read(tmp_path)
    assert caught.value.diagnostics[0].code == "PS0711"


# --- golden cases --------------------------------------------------------------------------------


@pytest.mark.parametrize("case", sorted(p.parent.name for p in GOLDEN.glob("solve_*/spec.priv")))
def test_golden(case: str, golden: Callable[..., None]) -> None:
    """What `solve` says about specs that it refuses or proves infeasible."""
    folder = GOLDEN / case
    source = Source("spec.priv", (folder / "spec.priv").read_text("utf-8"))
    try:
        shown = infeasible_text(solve(Request(source, base=folder)).document)
    except PrivspecError as error:
        shown = render_all(error.diagnostics, colour=False)
    golden(folder / "expected.txt", shown, solved=True)


@pytest.mark.parametrize("values", ["{1e-320, 1}", "{1e200, 1}", "{1e400, 1}", "grid(0, 1e200, 5e199)"])
def test_numbers_that_cannot_be_computed_with_are_told(values: str) -> None:
    text = f"""\
variables:
  input x in {values}
  output O in {values}
loss: worst[ |O - x|^2 ]
privacy: O is 1-DP wrt x, replacing everything
"""
    with pytest.raises(PrivspecError) as caught:
        solve(Request(Source("spec.priv", text)))
    assert {one.code for one in caught.value.diagnostics} == {"PS0224" if "400" in values else "PS0610"}


@pytest.mark.parametrize("weight", ["1e-400", "1e-300", "1e400"])
@pytest.mark.parametrize("measure", ["DP", "GDP"])
def test_weights_that_cannot_be_computed_with_are_told(weight: str, measure: str) -> None:
    text = series(3).replace("E[", f"{weight} * E[").replace("1-GDP", f"1-{measure}")
    with pytest.raises(PrivspecError) as caught:
        solve(Request(Source("spec.priv", text)))
    assert [one.code for one in caught.value.diagnostics] == ["PS0513"]


# --- check and solve -----------------------------------------------------------------------------


ABOUT_THE_SPEC = ("PS01", "PS02", "PS03")
"""Codes of how a spec is written, and of its names and their meaning: what has these is not well formed."""
PEOPLE = """variables:
  input people in table(age in 0..100, sex in {F, M})^1000
  output n
"""
PARTS = "privacy: O is {line} wrt x, replacing one entry\n"
LEAST = """variables:
  input x in [0, 1]^8
  choose amount in {range}
  output O
loss: amount
accuracy: E[ (O - sum(x))^2 ] <= 0.001
"""
VOTERS = "parties: voter in 1..6\nvariables:\n  input a[voter] in {0, 1}^4\n  output O\n"
RULE = "privacy: n is 1-DP wrt people, adding or removing one record\n"


def errors(ask: Callable[[], object]) -> dict[str, str]:
    """The errors that a question ends in, by their codes; none where it has an answer."""
    try:
        ask()
    except PrivspecError as error:
        return {found.code: found.message for found in error.diagnostics if found.is_error}
    return {}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (PEOPLE + "loss: worst[ (n - count(people))^2 / (count(people, sex = F) + 10)^2 ]\n" + RULE, ""),
        (PEOPLE + "loss: worst[ |n - quantile(people.age, 7)| ]\n" + RULE, "PS0206"),
        (PEOPLE + "background: people.age ~ geometric(-1)\nloss: E[ |n - median(people.age)| ]\n" + RULE, "PS0406"),
        (PEOPLE + "background: people.age ~ normal(40, 0)\nloss: E[ |n - median(people.age)| ]\n" + RULE, "PS0406"),
        (PEOPLE + "loss: E[ (n - count(people))^2 ]\n" + RULE.replace("people,", "people.age,"), "PS0302"),
        (VOTERS + "loss: E[ ||O - histogram(a)||^2 ]\nprivacy: O is 1-DP wrt a, replacing one voter\n", "PS0208"),
        (LEAST.format(range="[0, 0]") + PARTS.format(line="amount-DP"), "PS0304"),
        (LEAST.format(range="[1, 1]") + PARTS.format(line="(1, amount)-DP"), "PS0305"),
        (LEAST.format(range="[0, 1/2]") + PARTS.format(line="(0, amount)-DP"), "PS0304"),
        (LEAST.format(range="[0, 1]") + PARTS.format(line="(1, amount)-DP"), ""),
        (LEAST.format(range="[0, 3)") + PARTS.format(line="(1, 2 * amount)-DP"), ""),
        (
            "variables:\n  input x in {0, 1, 2}\n  output z in {1, 2}\nbackground:\n  x ~ uniform\n"
            "  E[1 / z | x] = 0.2 / x + 0.8\nloss: E[ (z - x)^2 ]\nprivacy: z is 1-LDP wrt x\n",
            "",
        ),
        (
            "variables:\n  input x in 0..3\n  output z in 0..3\nloss: worst[ mismatch(z, worst[ x ]) ]\n"
            "privacy: z is 1-LDP wrt x\n",
            "",
        ),
    ],
)
def test_check_finds_what_is_wrong_with_a_spec(text: str, code: str) -> None:
    problem = Problem(text)
    assert set(errors(problem.check)) == ({code} if code else set())
    found = set(errors(problem.solve))
    assert code in found if code else not any(one.startswith(ABOUT_THE_SPEC) for one in found)


def texts() -> list[Path]:
    """Templates, questions, and the specs of a folder that the environment names."""
    here = Path(__file__).parent
    folders = [here / "questions", here.parent / "specs", *map(Path, filter(None, [os.environ.get("PRIVSPEC_SPECS")]))]
    return sorted(path for folder in folders for path in folder.glob("*.priv"))


WORDS = re.compile(r"[A-Za-z_]\w*")
AROUND = (
    *("sum({})", "mean({})", "{}[1]", "{}[9]", "{}'", "-{}", "||{}||", "{}^2", "2 * {}", "count({})"),
    *("histogram({})", "median({})", "worst[ {} ]", "E[ {} ]"),
)


def changed(text: str, random: Random) -> str:
    """A spec as somebody mistypes it: another name or number in a place, a line left out, a word inside of a call."""
    numbers = list(re.finditer(r"\d+(?:\.\d+)?", text))
    words, lines = list(WORDS.finditer(text)), text.splitlines()
    kind = random.randrange(4)
    if kind == 0:
        del lines[random.randrange(len(lines))]
        return "\n".join(lines)
    place = random.choice(numbers if kind == 1 and numbers else words)
    others = {1: ["0", "1", "3", "100", "0.5", "-1"], 2: [one.group() for one in words], 3: AROUND}[kind]
    return text[: place.start()] + random.choice(others).format(place.group()) + text[place.end() :]


@pytest.mark.parametrize("count", [60, pytest.param(1500, marks=pytest.mark.slow)])
def test_what_check_accepts_is_read_by_solve(count: int) -> None:
    """Its reading may say that it cannot compute a spec, and not that a name or a number of it is wrong."""
    random, read = Random(count), 0
    for _ in range(count):
        path = random.choice(texts())
        text = changed(path.read_text("utf-8"), random)
        request = Request(Source(path.name, text), base=path.parent)
        try:
            model = check(request)
        except PrivspecError:
            continue
        read += 1
        found = errors(lambda: compiler_of(model).lower(model))  # noqa: B023 - asked here
        left_open = {node.name for node in model.constants if node.definition is None}
        found = {one: said for one, said in found.items() if said.split()[0] not in left_open}
        assert not any(one.startswith(ABOUT_THE_SPEC) for one in found), (path.name, text, found)
    assert read > count / 8


def told(text: str, free: float, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is said of long work before it begins, on a machine with so much memory free."""

    class BegunError(Exception):
        """The work would begin."""

    def begin(*_: object) -> None:
        raise BegunError

    monkeypatch.setattr("privspec.families.family.free_memory", lambda: free, raising=False)
    monkeypatch.setattr("privspec.families.gaussian.family.Linear.decide", begin)
    monkeypatch.setattr("privspec.families.tables.family.Finite.decide", begin)
    said: list[str] = []
    with pytest.raises(BegunError):
        solve(
            Request(Source("long.priv", text)),
            watch=lambda stage, is_: said.append(str(is_)) if stage == "work" else None,
        )
    return said


def counted(people: int) -> str:
    return re.sub(r"n = 10 .*", f"n = {people}", template_text("counting_query"))


def totals_of(numbers: int) -> str:
    text = (
        template_text("prefix_sums")
        .replace("  noise family gaussian", "  # ")
        .replace("(epsilon, delta)-DP", "epsilon-DP")
    )
    return re.sub(r"n = 64 .*", f"n = {numbers}", text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (totals_of(5000), "the matrices from 5,000 numbers to 5,000 take about 20 GB of memory and 10 minutes or more"),
        pytest.param(
            counted(1000),
            "the numbers of a table of 1,001 rows and 1,001 columns take about 2 GB of memory and a minute or more",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["totals", "table"],
)
def test_long_work_is_announced_before_it_begins(text: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (announced,) = told(text, 24e9, monkeypatch)
    assert announced.startswith(said + "; ")
    with pytest.raises(SolveError, match=r"PS0705: the .* take some .* GB, and 1\.6 GB are free"):
        told(text, 1.6e9, monkeypatch)


@pytest.mark.parametrize("text", [counted(100), totals_of(400), totals_of(5000).replace("prefix_sums(x)", "x")])
def test_nothing_is_announced_of_short_work(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(text, 24e9, monkeypatch) == []


def test_the_command_line_says_it_beside_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def begin(*_: object) -> None:
        raise SolveError.of("PS0610", "begun")

    monkeypatch.setattr("privspec.families.family.free_memory", lambda: 24e9, raising=False)
    monkeypatch.setattr("privspec.families.family.LONG", 1.0)
    monkeypatch.setattr("privspec.families.tables.family.Finite.decide", begin)
    (tmp_path / "long.priv").write_text(counted(300))
    for quiet in ([], ["--quiet"]):
        assert run_command_line(["solve", str(tmp_path / "long.priv"), "--json", *quiet]) == 5
        said = capsys.readouterr()
        assert not said.out
        assert ("note: the numbers of a table of 301 rows" in said.err) is (not quiet)
