"""Inputs whose units count alike: in classes and laid out, a spec has the same answers, losses and guarantees."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privspec.api import Problem
from privspec.core.diagnostics import SpecError
from privspec.core.matrices import multiply
from privspec.execute.data import read_inputs
from privspec.execute.family import RunContext, Simulation
from privspec.families.gaussian.execution import output_deviations, read_executed
from privspec.families.gaussian.runs import LinearMechanism, Parts
from privspec.kernel import judge
from privspec.noise.samplers import SimulationRandomness
from privspec.problem import linear_affine
from privspec.problem.linear_lowering import Lowered, lowered
from tests.families.specs import Array, model_of, spec
from tests.plans import resign

MU = "O is 1-GDP wrt x, replacing one entry"


@contextmanager
def alike_from(units: int) -> Iterator[None]:
    """Inputs of at least so many units are put into classes."""
    before = linear_affine.FROM
    linear_affine.FROM = units
    try:
        yield
    finally:
        linear_affine.FROM = before


def both(text: str) -> tuple[Lowered, Lowered]:
    """A spec in classes and laid out."""
    with alike_from(2):
        found = lowered(model_of(text))
    with alike_from(10**9):
        return found, lowered(model_of(text))


def spread(found: Lowered) -> Array:
    """The target with a column for every number of the inputs."""
    parts = []
    for at, one in found.layout.kernel_places.values():
        own = found.target[:, at : at + len(one.numbers)].reshape(len(found.target), -1, one.length)
        parts.append(own[:, np.repeat(one.classes, one.counts)].reshape(len(found.target), -1))
    return np.hstack(parts)


def classes(found: Lowered) -> list[int | None]:
    """The number of classes of each input, None where it is laid out."""
    return [None if share.partition is None else share.partition.number for share in found.layout.shares]


X = "input x in [0, 1]^12; intermediate y; output O"
READ = {
    "a sum": (spec(X, "y = sum(x)"), [1]),
    "a mean": (spec(X, "y = mean(x)"), [1]),
    "all of an array": (spec("input x in [0, 1]^(12, 2); intermediate y; output O", "y = total(x)"), [1]),
    "rows": (spec("input x in [0, 1]^(12, 2); intermediate y; output O", "y = sum(x)"), [1]),
    "a map of rows": (spec("input x in [0, 1]^(12, 2); intermediate y; output O", "y = [1, 2] @ sum(x)"), [1]),
    "shifted and scaled": (spec(X, "y = sum(3 * x - 1) / 12"), [1]),
    "less the mean": (spec(X, "y = [sum(x - mean(x)), sum(x)]"), [1]),
    "weights": (spec(X, "y = sum([1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 1, 1] * x)"), [2]),
    "a product": (spec(X, "y = [1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 1, 1] @ x"), [2]),
    "a product from behind": (spec(X, "y = x @ [1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 1, 1]"), [2]),
    "constants": (spec(X, "y = sum(x + [1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 1, 1])"), [2]),
    "ones": (spec(X, "y = ones(3, 12) @ x"), [1]),
    "a part": (spec(X, "y = sum(x[i] for i in 3..7)"), [2]),
    "parts": (spec(X, "y = [sum(x[i] for i in 1..6), sum(x[i] for i in 4..12)]"), [3]),
    "one of them": (spec(X, "y = [sum(x), x[5]]"), [2]),
    "looked up": (
        spec("input x in [0, 1]^12; constant w = [1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 1, 1]; intermediate y; output O",
             "y = sum(w[i] * x[i] for i in 1..12)"), [2],
    ),
    "several": (
        spec("input x in [0, 1]^12; intermediate a; intermediate b; output A; output B", "a = sum(x); b = 2 * mean(x)",
             "E[ (A - a)^2 ] + E[ (B - b)^2 ]", "all outputs are 1-GDP wrt x, replacing one entry"), [1],
    ),
    "two inputs": (
        spec("input x in [0, 1]^12; input z in [0, 3]^12; intermediate y; output O",
             "y = [sum(x + 2 * z), sum(x[i] - z[i] for i in 1..4)]", privacy="O is 1-GDP wrt x, replacing one entry"),
        [2, 2],
    ),
    "one laid out": (
        spec("input x in [0, 1]^12; input z in [0, 3]; intermediate y; output O", "y = sum(x) + z"), [1, None],
    ),
    "running totals": (spec(X, "y = prefix_sums(x)"), [None]),
    "neighbours": (spec(X, "y = sum(x[i] - x[i + 1] for i in 1..11)"), [None]),
    "all of them": (spec("input x in [0, 1]^12; output O", "", "E[ ||O - x||^2 ]"), [None]),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_expressions_mean_the_same(name: str) -> None:
    text, expected = READ[name]
    found, plain = both(text)
    assert classes(found) == expected
    assert spread(found) == pytest.approx(plain.target, rel=0, abs=1e-15)
    assert found.offset == pytest.approx(plain.offset, rel=1e-12)


PARTY = """parties:
  p in 1..12
variables:
  input x[p] in {domain}
  input z[p] in [0, 2]
  intermediate v[p] = 2 * x[p]{first} + z[p]
  intermediate y
  output O
background:
  y = {y}
loss: E[ ||O - y||^2 ]
privacy: O is 1-GDP wrt (x, z), replacing one p
"""


@pytest.mark.parametrize(
    ("domain", "first", "y", "expected"),
    [
        ("[0, 1]", "", "sum(v[p] for p)", [1, 1]),
        ("[0, 1]", "", "mean(x[p] - z[p] for p)", [1, 1]),
        ("[0, 1]", "", "[sum(v), sum(z[p] for p in 1..4)]", [2, 2]),
        ("[0, 1]^3", "[2]", "sum(v[p] for p)", [1, 1]),
        ("[0, 1]^3", "[2]", "sum([1, 2, 3] @ x[p] + v[p] for p)", [1, 1]),
        ("[0, 1]^3", "[2]", "sum(x[p] for p)", [1, 1]),
        ("[0, 1]^3", "[2]", "sum(x[p, 2] for p) + sum(sum(x[p, j] for j in 1..2) for p)", [1, 1]),
        ("[0, 1]", "", "sum(x[p] + sum(z) for p)", [1, 1]),
        ("[0, 1]", "", "sum(x[p] * p for p)", [None, None]),
    ],
)
def test_parties_mean_the_same(domain: str, first: str, y: str, expected: list[int | None]) -> None:
    found, plain = both(PARTY.format(domain=domain, first=first, y=y))
    assert classes(found) == expected
    assert np.array_equal(spread(found), plain.target)


# --- plans ----------------------------------------------------------------------------------------------


def solved(text: str, units: int) -> dict[str, Any]:
    """A plan that its own kernel confirms."""
    with alike_from(units):
        plan = Problem(text, {}).solve()
        assert plan.verify().ok, str(plan.verify())
        document: dict[str, Any] = json.loads(plan.to_json())
        return document


def same_plan(text: str) -> None:
    """In classes and laid out: the same loss and guarantees, or better ones where less of it is a bound."""
    found, plain = solved(text, 2), solved(text, 10**9)
    assert found["problem"]["blocks"][0]["held"][0]["units"]
    tight = plain["status"] == "optimal" or plain["mechanism"]["family"] != "gaussian"
    assert found["status"] == plain["status"] or not tight
    loss, known = found["loss"], plain["loss"]
    assert loss["value"] <= known["value"] * (1 + 1e-6)
    assert loss["lower_bound"] >= known["lower_bound"] * (1 - 2e-6)
    assert loss["value"] >= known["lower_bound"] and (not tight or loss["value"] >= known["value"] * (1 - 1e-6))
    for own, other in zip(found["guarantees"], plain["guarantees"], strict=True):
        for key, figure in own["achieved"].items():
            assert float(figure) == pytest.approx(float(other["achieved"][key]), rel=1e-4)


SUMS = "y = [sum(x), sum(x[i] for i in 1..4)]"
SOLVED = {
    "entries": spec(X, SUMS),
    "a mean": spec(X, "y = mean(x)", privacy="O is (1, 1e-6)-DP wrt x, replacing one entry"),
    "adding": spec("input x in [-1, 3]^12; intermediate y; output O", SUMS,
                   privacy="O is 1-GDP wrt x, adding or removing one entry"),
    "pure": spec(X, SUMS, privacy="O is 1-DP wrt x, replacing one entry"),
    "zCDP": spec(X, SUMS, privacy="O is 1-zCDP wrt x, replacing one entry"),
    "two at once": spec(X, SUMS, privacy="O is 1-GDP wrt x, replacing up to 2 entries"),
    "two at once, pure": spec(X, SUMS, privacy="O is 1-DP wrt x, replacing up to 2 entries"),
    "everything": spec(X, SUMS, privacy="O is 1-GDP wrt x, replacing everything"),
    "records": spec("input x in [0, 1]^(12, 2); intermediate y; output O", "y = sum(x)",
                    privacy="O is 1-GDP wrt x, replacing one record"),
    "entries of records": spec("input x in [0, 1]^(12, 2); intermediate y; output O", "y = sum(x)"),
    "balls": spec("input x in l2_ball(2, 3)^12; intermediate y; output O", "y = sum(x)",
                  privacy="O is 1-GDP wrt x, replacing one record"),
    "two balls": spec("input x in l2_ball(2, 3)^12; intermediate y; output O", "y = sum(x)",
                      privacy="O is 1-GDP wrt x, replacing up to 2 records"),
    "diamonds": spec("input x in l1_ball(2, 3)^12; intermediate y; output O", "y = sum(x)",
                     privacy="O is 1-DP wrt x, replacing one record"),
    "parties": PARTY.format(domain="[0, 1]", first="", y="[sum(v), sum(z[p] for p in 1..4)]"),
    "vectors of parties": PARTY.format(domain="[0, 1]^2", first="[2]", y="sum(v)"),
    "two lines": spec(X.replace("output O", "intermediate b; output O; output B"), "y = sum(x); b = mean(x)",
                      "E[ (O - y)^2 ] + E[ (B - b)^2 ]",
                      "O is 0.5-GDP wrt x, replacing one entry; (O, B) is 1-GDP wrt x, replacing one entry"),
    "noise at inputs": spec(X, SUMS, options="noise at x"),
    "noise at each of many": spec(
        "input x in [0, 1]^12; intermediate v; intermediate y; output O",
        "v = 3 * x; y = [sum(v), sum(v[i] for i in 1..4)]", options="noise at v, y",
    ),
    "worst": spec(X, SUMS, "max(E[ (O[j] - y[j])^2 ] for j in 1..2)"),
}  # fmt: skip


@pytest.mark.parametrize("name", SOLVED)
def test_plans_are_the_same(name: str) -> None:
    same_plan(SOLVED[name])


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_random_maps_with_repeated_columns(data: st.DataObject) -> None:
    """Against what is laid out: the same loss, bound and guarantee."""
    kinds, rows = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    columns = data.draw(
        st.lists(st.lists(st.integers(-3, 3), min_size=rows, max_size=rows), min_size=kinds, max_size=kinds)
    )
    chosen = data.draw(st.lists(st.integers(0, kinds - 1), min_size=8, max_size=10))
    matrix = np.array([columns[k] for k in chosen]).T
    if not matrix.any(axis=1).all() or 2 * len(np.unique(matrix, axis=1).T) > len(chosen):
        return
    unit = data.draw(st.sampled_from(["one entry", "up to 2 entries", "everything"]))
    measure = data.draw(st.sampled_from(["1-GDP", "1-DP"] if unit != "everything" else ["1-GDP"]))
    written = ", ".join(f"[{', '.join(map(str, row))}]" for row in matrix.tolist())
    text = spec(
        f"input x in [0, 2]^{len(chosen)}; intermediate y; output O", f"y = [{written}] @ x",
        privacy=f"O is {measure} wrt x, replacing {unit}",
        options="noise family gaussian" if measure == "1-GDP" else "",
    )  # fmt: skip
    same_plan(text)


def test_a_run_adds_up_what_a_plan_does_not_tell_apart() -> None:
    text = SOLVED["vectors of parties"]
    dice = np.random.default_rng(0)
    data = {"x": dice.uniform(-0.5, 1.5, (12, 2)), "z": dice.uniform(0, 2, 12)}
    data["x"][3, 1] = np.nan
    answers = []
    for units in (2, 10**9):
        with alike_from(units):
            executed = read_executed(solved(text, units))
            exact = multiply(executed.strategy, read_inputs(executed.inputs, data)).fractions()
            answers.append(executed.reconstruction.to_float() @ np.array([float(v) for v in exact]))
            assert executed.strategy.shape[1] == (3 if units == 2 else 36)
    assert answers[0] == pytest.approx(answers[1], rel=1e-9)


def test_sums_are_exact_where_doubles_are_not() -> None:
    """A thousand numbers on a grid of 2^-52."""
    text = spec(X.replace("^12", "^1000"), "y = sum(x)")
    executed = read_executed(solved(text, 2))
    values = np.random.default_rng(1).uniform(0, 1, 1000)
    (sum_,) = read_inputs(executed.inputs, {"x": values}).fractions()
    grid = executed.inputs[0].step
    assert sum_ == sum((round(Fraction(v) / grid) * grid for v in values.tolist()), Fraction(0))


# --- parties who trust nobody -----------------------------------------------------------------------------

LOCAL = """parties:
  p in 1..{count}
{parties}variables:
  input x[p] in {domain}
{inputs}  intermediate y
  output O
background:
  y = {y}
loss: {loss}
privacy:
  {privacy}
options:
  trust nobody
{options}"""


def alone(
    domain: str = "[0, 1]^3", y: str = "mean(x)", privacy: str = "O is 1-GDP wrt x, replacing one p", **more: str
) -> str:
    """A spec of parties each of whom sends noisy answers of its own."""
    known = {"count": "12", "parties": "", "inputs": "", "loss": "E[ ||O - y||^2 ]", "options": ""}
    return LOCAL.format(domain=domain, y=y, privacy=privacy, **(known | more))


TWO_SETS = "O is 1-{0} wrt x, replacing one p\n  O is 0.5-{0} wrt z, replacing one q"
OTHERS = {"parties": "  q in 1..16\n", "inputs": "  input z[q] in [0, 2]^3\n", "y": "sum(x) + 3 * sum(z)"}
OWN = {"inputs": "  input z[p] in [0, 2]\n", "y": "[sum(x[p, 1] for p), sum(z)]"}
WEIGHTS = "sum(x[p] for p in 1..4) + 2 * sum(x[p] for p in 5..12)"
PURE = "O is 1-DP wrt x, replacing one p"
SENT = {
    "numbers": alone("[0, 1]", "sum(x)"),
    "numbers, pure": alone("[0, 1]", "sum(x)", PURE),
    "whole numbers, pure": alone("0..3", "sum(x)", PURE),
    "fifty pairs": alone("[0, 1]^2", count="50"),
    "five hundred pairs": alone("[0, 1]^2", count="500"),
    "vectors": alone(),
    "vectors, pure": alone(privacy=PURE),
    "vectors, zCDP": alone(privacy="O is 1-zCDP wrt x, replacing one p"),
    "vectors, delta": alone(privacy="O is (0.5, 1e-6)-DP wrt x, replacing one p"),
    "adding": alone(privacy="O is 1-GDP wrt x, adding or removing one p"),
    "one entry": alone(privacy="O is 1-GDP wrt x, replacing one entry"),
    "running totals": alone(y="prefix_sums(sum(x))"),
    "weights": alone(y=WEIGHTS),
    "weights, pure": alone(y=WEIGHTS, privacy=PURE),
    "balls": alone("l2_ball(2, 3)"),
    "two inputs": alone(privacy="O is 1-GDP wrt (x, z), replacing one p", **OWN),
    "two inputs, pure": alone(privacy="O is 1-DP wrt (x, z), replacing one p", **OWN),
    "two sets": alone(privacy=TWO_SETS.format("GDP"), **OTHERS),
    "two sets, pure": alone(privacy=TWO_SETS.format("DP"), **OTHERS),
    "noise at inputs": alone(options="  noise at x\n"),
    "worst": alone(loss="max(E[ (O[j] - y[j])^2 ] for j in 1..3)"),
    "sizes": alone("[0, 1]", "sum(x)", loss="E[ |O - y| ]"),
    "sizes, pure": alone("[0, 1]", "sum(x)", PURE, loss="E[ |O - y| ]"),
    "an accuracy line": alone("[0, 1]", "sum(x)", options="accuracy: E[ (O - y)^2 ] <= 13\n"),
    "no parties": spec(X, "y = sum(x)", options="trust nobody"),
}


LONG = "five hundred pairs"
"""A thousand numbers, one by one."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name == LONG)) for name in SENT])
def test_alike_parties_are_solved_once(name: str) -> None:
    """In classes and laid out: the loss, bound and guarantees, but for what a solver leaves."""
    found, plain = solved(SENT[name], 2), solved(SENT[name], 10**9)
    assert found["problem"]["blocks"][0]["held"][0]["units"]
    assert not plain["problem"]["blocks"][0]["held"][0]["units"]
    assert found["status"] == plain["status"]
    tolerance = 1e-7 if name.startswith(("weights", "two sets")) else 1e-9
    for key in ("value", "lower_bound"):
        assert found["loss"][key] == pytest.approx(plain["loss"][key], rel=tolerance)
    for own, other in zip(found["guarantees"], plain["guarantees"], strict=True):
        for key, figure in own["achieved"].items():
            assert float(figure) == pytest.approx(float(other["achieved"][key]), rel=1e-4)


def test_one_line_may_ask_for_more_than_all_others() -> None:
    """Households and shops at a curator: noise for shops hides households, and is shown to be the best."""
    text = alone("[0, 5]^8", privacy=TWO_SETS.format("GDP"), **OTHERS).replace("trust nobody", "trust curator")
    plan = solved(text.replace("[0, 2]^3", "[0, 50]^8"), 2)
    assert plan["status"] == "optimal"
    assert plan["loss"]["value"] == pytest.approx(8 * 8 * (3 * 50 / 0.5) ** 2, rel=1e-6)


@pytest.mark.parametrize("trust", ["nobody", "curator"])
@pytest.mark.parametrize(("domain", "measure"), [("[0, 1]", "DP"), ("[0, 1]^3", "GDP"), ("[0, 1]^3", "DP")])
def test_parties_of_one_figure_are_a_class(domain: str, measure: str, trust: str) -> None:
    text = "parameters:\n  e[p] = [1, 2, 1, 1, 2, 2, 1, 1, 1, 2, 2, 2]\n" + alone(
        domain, "sum(x)", f"O is e[p]-{measure} wrt x[p], replacing one p"
    ).replace("trust nobody", f"trust {trust}")
    found, plain = solved(text, 2), solved(text, 10**9)
    assert classes(both(text)[0]) == [2]
    assert found["loss"]["value"] == pytest.approx(plain["loss"]["value"], rel=1e-7)
    forged = copy.deepcopy(found)
    each = forged["problem"]["obligations"][0]["measure"]["each"]
    each[1] = each[0]
    assert not judge(json.dumps(resign(forged))).ok


@pytest.mark.parametrize(
    "privacy",
    [
        "O is 1-GDP wrt x, replacing up to 2 p",
        "O is 1-GDP wrt x, replacing everything",
        "O is 1-GDP wrt x, replacing up to 2 entries",
    ],
)
def test_what_several_parties_hold_is_not_one_partys(privacy: str) -> None:
    assert classes(both(alone(privacy=privacy))[0]) == [None]


def test_inputs_of_one_set_are_of_the_same_classes() -> None:
    """However few numbers one of them has; of others it is told apart."""
    text = alone(privacy=TWO_SETS.format("GDP"), **OTHERS).replace("sum(x) +", "sum(x[p] * p for p) +")
    assert classes(both(text)[0]) == [None, 1]
    with alike_from(36):
        assert classes(lowered(model_of(alone(privacy="O is 1-GDP wrt (x, z), replacing one p", **OWN)))) == [1, 1]


@pytest.mark.parametrize("name", ["vectors", "weights, pure", "two inputs", "two sets", "whole numbers, pure"])
def test_a_run_adds_up_messages_each_with_noise(name: str) -> None:
    """Averages and deviations over runs, of exact and of floating-point noise; the messages of parties add up alike."""
    plan = solved(SENT[name], 2)
    dice = np.random.default_rng(5)
    mechanism = LinearMechanism.of_plan(plan)
    data = {one.held.name: dice.integers(0, 2, one.held.shape) for one in mechanism.executed.inputs}
    with alike_from(2):
        model = model_of(SENT[name])
        target = spread(lowered(model))
    aim = target @ np.concatenate([own.ravel() for own in data.values()])
    scale = output_deviations(mechanism.executed)
    assert scale is not None
    for draws, approximate in ((300, False), (4000, True)):
        found = (mechanism.simulate(Simulation(draws, 3, data, approximate)) - aim) / scale
        assert np.abs(found.mean(axis=0)).max() < 5 / draws**0.5
        assert found.var(axis=0) == pytest.approx(1, abs=8 / draws**0.5)
    randomness, sums, parts = SimulationRandomness(7), [], Parts(mechanism.executed, mechanism.trust)
    for _ in range(60):
        messages = []
        for number, party in enumerate(parts.names):
            place, inputs = parts.held(number)
            own = {one.held.name: data[one.held.name][place : place + 1] for one in inputs}
            sent = mechanism.of_party(party).read(own, RunContext()).draw(randomness)
            messages.append({"plan_sha256": plan["digest"], "outputs": sent.outputs})
        sums.append((mechanism.combine(plan["digest"], messages).outputs["O"].ravel() - aim) / scale)
    assert np.abs(np.mean(sums, axis=0)).max() < 5 / 60**0.5
    assert np.var(sums, axis=0) == pytest.approx(1, abs=8 / 60**0.5)


@pytest.mark.slow
def test_a_hundred_thousand_households() -> None:
    for measure in ("1-GDP", "1-DP"):
        text = alone("[0, 5]^24", privacy=f"O is {measure} wrt x, replacing one p", count="100000")
        plan = solved(text, 512)
        assert plan["mechanism"]["executed"]["strategy"]["shape"] == [24, 24]
        said = [claim.text for claim in judge(json.dumps(plan)).claims if claim.name == "view"]
        assert said == ["whoever sees O sees all 2400000 messages"]


# --- a million ------------------------------------------------------------------------------------------


def test_a_million_numbers_are_one_class() -> None:
    plan = solved(spec(X.replace("^12", "^1000000"), "y = sum(x)", privacy="O is (1, 1e-6)-DP wrt x"), 512)
    assert plan["mechanism"]["executed"]["strategy"]["shape"] == [1, 1]
    assert len(json.dumps(plan)) < 40_000  # with a law in steps and what bounds it


def test_numbers_that_count_one_by_one_are_refused_where_they_are_many() -> None:
    with pytest.raises(SpecError, match="count one by one") as refused:
        lowered(model_of(spec(X.replace("^12", "^100000"), "y = prefix_sums(x)[5]")))
    assert refused.value.diagnostics[0].code == "PS0512"


def test_a_bound_counts_what_moves_alike_once() -> None:
    """People of a table with a record each change the same answers: one stands for all, and no less is shown."""
    text = """variables:
  input x[p] in table(age in {a, b, c}, pay in [0, 2])^1
  output O
  output Q
parties: p in 1..%d
loss: E[ ||O - histogram(x, by = {age})||^2 ] + E[ (Q - sum(x.pay))^2 ]
privacy: (O, Q) is 1-GDP wrt x, replacing one p
"""
    few, many = (Problem(text % people).solve() for people in (2, 12))
    rows = [plan.document["claims"]["bound"]["differences"][0]["columns"] for plan in (few, many)]
    assert rows[1]["shape"][0] <= 2 * rows[0]["shape"][0] < 36
    assert many.verify().ok
    assert many.loss.lower_bound == pytest.approx(few.loss.lower_bound, rel=1e-6)
    assert many.loss.lower_bound == pytest.approx(many.loss.value, rel=1e-6)
