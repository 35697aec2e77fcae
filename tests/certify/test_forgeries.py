"""Plans forged by meaning: each says something untrue of its spec, is signed again, and must not verify."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privspec.certify import verify
from privspec.certify.checker import model_of
from privspec.certify.reading import At
from privspec.certify.relations import neighbourhoods
from privspec.core.matrices import DyadicMatrix
from tests.certify import plans

Plan = dict[str, Any]


def failed(plan: Plan, name: str | None = None) -> str:
    """The claims that fail, of one name or all, as text; empty if there are none."""
    report = verify(plans.signed(plan))
    assert report.claims[0].status == "ok" or name == "integrity", report.claims[0]
    return "; ".join(c.text for c in report.failed if name is None or c.name == name)


# --- additive noise: who moves together, who sees what, where values stand ------------------------------


def additive(
    source: str,
    inputs: list[Plan],
    strategy: list[list[int]],
    noise: Plan,
    guarantees: list[Plan],
    *,
    of: list[list[int]] | None = None,
    grid: str = "2^0",
    shapes: tuple[tuple[str, int], ...] = (("O", 1),),
    views: list[int] | None = None,
) -> Plan:
    """A plan of additive noise on a few answers; what it says of its loss is left at zero."""
    matrix = DyadicMatrix(np.array(strategy, dtype=np.int64), 0)
    rebuilt = DyadicMatrix(np.array(of if of is not None else np.eye(len(strategy)), dtype=np.int64), 0)
    at = np.cumsum([0, *(size for _, size in shapes)]).tolist()
    rows = views or [len(strategy)] * len(guarantees)
    document: Plan = plans.document(
        source,
        loss=1.0,
        bound=0.0,
        expression="E[ 0 ]",
        among="any",
        family=noise["shape"],
        sites=[{"at": name} for name, _ in shapes],
        covariance=np.zeros((at[-1], at[-1])),
        executed={
            "inputs": inputs,
            "strategy": matrix.to_json(),
            "noise": noise,
            "grid": grid,
            "reconstruction": {"of": "outputs", "matrix": rebuilt.to_json()},
            "outputs": [plans.output(size, name, start) for (name, size), start in zip(shapes, at, strict=False)],
            "output_grid": "2^-20",
            "views": [{"outputs": g["outputs"], "rows": k} for g, k in zip(guarantees, rows, strict=True)],
        },
        guarantees=[g | {"requirement": i} for i, g in enumerate(guarantees)],
        binding=[],
        claims={"dual": []},
    )
    document["spec"] |= {"parameters": {}, "name": source.split()[1]}
    return document


def interval(name: str, start: int, stop: int, grid: str = "2^-20") -> Plan:
    place = {"name": name, "start": start, "stop": stop, "layout": "entries"}
    return place | {"lower": "0", "upper": "1", "grid": grid}


CROWD = """spec crowd
parties: voter in 1..3
variables:
  input x[voter] in [0, 1]
  input y[voter] in [0, 1]
{more}  output O
loss: E[ (O - sum(x) - sum(y){loss})^2 ]
privacy: {line}
"""


def crowd(
    mu: str, line: str, neighbours: str, more: str = "", loss: str = "", wrt: tuple[str, ...] = ("x", "y")
) -> Plan:
    source = CROWD.format(line=line, more=more, loss=loss)
    said = plans.guarantee(source, line, {"mu": mu}, measure="mu-GDP", mu="1")
    said |= {"wrt": list(wrt), "neighbours": neighbours, "text": f"privacy: {line}"}
    inputs = [interval(name, 3 * i, 3 * i + 3) for i, name in enumerate(wrt)]
    return additive(source, inputs, [[1] * 3 * len(wrt)], {"shape": "gaussian", "standard_deviation": "1"}, [said])


def test_all_that_a_voter_holds_moves_together() -> None:
    """A sum over two inputs of a voter moves by 2, where each input by itself moves it by 1."""
    text = failed(crowd("1", "O is 1-GDP wrt (x, y), replacing one voter", "replacing one voter"), "privacy")
    assert "max ‖B d‖² = 4 > μ² = 1" in text
    honest = crowd("2.0000001", "O is 1-GDP wrt (x, y), replacing one voter", "replacing one voter")
    assert "‖B d‖²" not in failed(honest, "privacy")
    assert failed(crowd("1", "O is 1-GDP wrt (x, y), replacing one voter", "replacing one record"), "coverage")


def test_all_that_a_voter_holds_moves_together_beside_other_inputs() -> None:
    relation = "replacing one voter of x and y or one record of w"
    one = crowd("1", "O is 1-GDP wrt (x, y, w)", relation, "  input w in [0, 1]^3\n", " - sum(w)", ("x", "y", "w"))
    assert "max ‖B d‖² = 4 > μ² = 1" in failed(one, "privacy")


@pytest.mark.parametrize(
    ("domains", "reach"),
    [
        (("[0, 1]", "[0, 3]"), 16),
        (("[0, 1]^2", "[-1, 1]^2"), 36),
        (("l2_ball(1, 2)", "l2_ball(1, 2)"), 32),
        (("l2_ball(1, 2)", "[0, 1]^2"), 36),
        (("l1_ball(1, 2)", "l1_ball(1, 2)"), 16),
    ],
)
def test_reach_of_one_voter_in_several_inputs(domains: tuple[str, str], reach: int) -> None:
    """Against the largest move of the sum of all coordinates; balls are covered by one ball, mixtures by a box."""
    from privspec.certify.neighbourhoods import StrategyForm
    from privspec.core.spans import Source
    from privspec.mechanisms.sensitivity import l2_sensitivity_up
    from privspec.model.build import load_model

    text = f"""parties: voter in 1..3
variables:
  input x[voter] in {domains[0]}
  input y[voter] in {domains[1]}
  output O in real
privacy: O is 1-GDP wrt (x, y), replacing one voter
"""
    model = load_model(Source("s", text))
    ones = DyadicMatrix(np.ones((1, model.size), dtype=np.int64), 0)
    (found,) = neighbourhoods(model, model.requirements[0])
    assert float(found.reach(StrategyForm(ones.integers, Fraction(1)))) == pytest.approx(reach)
    blocks = [model.block(name) for name in ("x", "y")]
    (same,) = model.requirements[0].neighbours.differences(blocks, model.size)
    assert float(l2_sensitivity_up(ones, same)) ** 2 == pytest.approx(reach)


BALL = """spec ball
variables:
  input x in l1_ball(1, 2)^3
  output O
loss: E[ ||O - x[1]||^2 ]
privacy: {line}
"""


def ball(strategy: list[list[int]], grid: str, relation: str = "adding or removing one record") -> Plan:
    """Values on shares of a half of the radius, noise of scale 1, and an epsilon of 1 claimed."""
    line = f"O is 1-DP wrt x, {relation}"
    source = BALL.format(line=line)
    said = plans.guarantee(source, line, {"epsilon": "1"}, measure="epsilon-DP", epsilon="1")
    said |= {"neighbours": relation, "text": f"privacy: {line}"}
    data = interval("x", 0, 6, "2^-1") | {"lower": "-1", "upper": "1"}
    data |= {"ball": {"radius": "1", "size": 2, "norm": 1}}
    noise = {"shape": "laplace", "scale": ["1"] * len(strategy)}
    return additive(source, [data], strategy, noise, [said], grid=grid, shapes=(("O", 2),))


def test_balls_stand_on_shares_of_their_radius() -> None:
    """(1/2, 1/2) of a ball of radius 1 is rounded to (1, 1), which is 2 away from nothing, and not 1."""
    assert "largest log-ratio 3 > 1" in failed(ball([[1, 0] * 3, [0, 1] * 3], "2^0"), "privacy")
    assert not failed(ball([[1, 0] * 3, [0, 1] * 3], "2^-1"), "privacy")


@pytest.mark.parametrize("seed", range(6))
def test_rounded_answers_of_mixtures(seed: int) -> None:
    """Against all values of a ball on its grid beside others of their neighbours: compiler and checker cover them."""
    from itertools import product

    from privspec.certify.neighbourhoods import Entries, LaplaceCost
    from privspec.mechanisms.sensitivity import scaled_l1_sensitivity
    from privspec.model.neighbours import VectorDifferences

    steps, rows = 4, 3
    strategy = np.random.default_rng(seed).integers(-3, 4, (rows, 3))
    members = [np.array(p) for p in product(range(-steps, steps + 1), repeat=3) if sum(map(abs, p)) <= steps]
    answers = np.array([strategy @ member for member in members])  # in shares of a quarter
    shifts = [np.array(shift) for shift in product(range(4), repeat=rows)]  # what other records add
    rounded = [np.floor((answers + shift) / 4 + 0.5) for shift in shifts]
    worst = max(int(np.abs(r[:, None, :] - r[None, :, :]).sum(axis=2).max()) for r in rounded)
    units, scales = (np.arange(3),), (Fraction(1),) * rows
    two = np.array([Fraction(2)] * 3, dtype=object)
    found = VectorDifferences(np.arange(3), two, mixed=units)
    matrix = DyadicMatrix(strategy.astype(np.int64), 0)
    compiled = scaled_l1_sensitivity(matrix, scales, found, Fraction(1))
    cost = LaplaceCost(matrix.integers, Fraction(1), scales, Fraction(1), np.ones(rows, dtype=np.int64))
    checked = Entries(dict.fromkeys(range(3), Fraction(2)), mixed=units).cost(cost)
    assert worst <= checked == compiled


PAIR = """spec pair
variables:
  input x in [0, 1]
  output a
  output b
loss: E[ (a - x)^2 ] + E[ (b - x)^2 ]
privacy:
  a is 1-DP wrt x, replacing one entry, seen by alice
  b is {epsilon}-DP wrt x, replacing one entry, seen by bob
{options}"""


def pair(options: str = "", epsilon: str = "1", scale: str = "1") -> Plan:
    source = PAIR.format(options=options, epsilon=epsilon)
    said = []
    for name, who, figure in (("a", "alice", "1"), ("b", "bob", epsilon)):
        text = f"{name} is {figure}-DP wrt x, replacing one entry, seen by {who}"
        one = plans.guarantee(source, text, {"epsilon": figure}, measure="epsilon-DP", epsilon=figure)
        said.append(one | {"outputs": [name], "observer": who})
    return additive(
        source,
        [interval("x", 0, 1, "2^-4")],
        [[1], [1]],
        {"shape": "laplace", "scale": ["1", scale]},
        said,
        grid="2^-4",
        shapes=(("a", 1), ("b", 1)),
        views=[1, 2],
    )


def test_an_observer_sees_only_the_noise_of_its_own_outputs() -> None:
    assert not failed(pair(), "privacy")
    assert not failed(pair(epsilon="2", scale="0.5"), "privacy")
    assert "largest log-ratio 2 > 1" in failed(pair(scale="0.5"), "privacy")


def test_messages_that_nobody_is_trusted_with_are_seen_by_all() -> None:
    """Both messages together spend 2, whatever the list of an observer says."""
    plan = pair("options: trust nobody\n")
    assert "more strategy rows are used" in failed(plan, "privacy")
    for view in plan["mechanism"]["executed"]["views"]:
        view["rows"] = 2
    assert "largest log-ratio 2 > 1" in failed(plan, "privacy")


def test_the_models_of_these_specs_build() -> None:
    for plan in (pair(), pair("options: trust nobody\n")):
        assert model_of(At(plans.signed(plan))).requirements


# --- optimality, losses and figures ----------------------------------------------------------------------


def put(plan: Plan, *path: str | int, value: Any) -> Plan:
    """A copy with one value changed."""
    return dict(plans.changed(plan, path, lambda _: value))


def test_a_bound_that_cannot_be_derived_again_fails() -> None:
    """A loss of another kind than the checker reads: nothing of what a plan says of it is taken on trust."""
    source = plans.correlated(3)["spec"]["source"].replace("||O - y||^2", "||O - y||_1")
    plan = plans.correlated(3)
    plan["spec"] |= {"source": source, "sha256": plans.spec_json(source)["sha256"]}
    plan["loss"]["expression"] = "E[ ||O - y||_1 ]"
    assert "loss could not be derived again" in failed(plan, "loss")
    assert "optimality could not be derived again" in failed(plan, "optimality")


def test_one_gap_for_all_plans_that_are_called_optimal() -> None:
    for plan in (plans.correlated(3),):
        value = plan["loss"]["value"]
        for gap, status, fine in ((5e-6, "optimal", False), (5e-6, "feasible", True), (5e-7, "optimal", True)):
            low = value * (1 - gap)
            loosened = put(plan, "status", value=status)
            loosened["loss"] |= {"lower_bound": low, "relative_gap": (value - low) / value}
            loosened["claims"]["lower_bound"] = low
            assert bool(failed(loosened)) is not fine, (gap, status)


@pytest.mark.parametrize("plan", [plans.correlated(3)])
def test_no_standard_error_where_the_loss_can_be_derived(plan: Plan) -> None:
    forged = dict(plan)
    forged["loss"] = {**plan["loss"], "standard_error": 0.1, "profiles": 1000}
    assert "exact one is known" in failed(forged, "loss")


def test_offsets_are_numbers() -> None:
    """Null stands for no number where the plan is run: every figure would be lost after the debit."""
    from privspec.execute.executed import read_executed

    plan = plans.correlated(3)
    for forged in (
        put(plan, "mechanism", "executed", "outputs", 0, "offset", value=None),
        plans.removed(plan, ("mechanism", "executed", "outputs", 0, "offset")),
    ):
        assert "has no offset" in failed(forged, "integrity")
        with pytest.raises(Exception, match=r".+"):
            read_executed(forged)


# --- what a plan does not say, or says of something else --------------------------------------------------


def respelt(plan: Plan, old: str, new: str) -> Plan:
    """The plan with another spec inside, as if it had been solved."""
    source = plan["spec"]["source"]
    assert old in source
    found = source.replace(old, new)
    return {**plan, "spec": plan["spec"] | {"source": found, "sha256": plans.spec_json(found)["sha256"]}}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("trust curator\n", "trust curator\n  noise family laplace\n", "noise of the family gaussian"),
        ("trust curator\n", "trust curator\n  noise family table, knorm\n", "noise of the family gaussian"),
        ("privacy:\n", "fairness:\n  O is independent of x\nprivacy:\n", "does not answer"),
    ],
)
def test_lines_that_a_plan_of_noise_does_not_answer(old: str, new: str, said: str) -> None:
    plan = respelt(plans.correlated(3), old, new)
    line = plans.line_of(plan["spec"]["source"], "O is (epsilon, delta)-DP")
    for item in (plan["guarantees"][0], plan["remarks"]["binding"][0]):
        item["line"] = line
    assert said in failed(plan)


def test_no_line_of_the_spec_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model without one of the lines that the spec writes, as where an amount has no value."""
    from privspec.certify import checker

    plan = plans.signed(plans.two_views(2))
    whole = model_of(At(plan))
    monkeypatch.setattr(checker, "model_inside", lambda *_: replace(whole, requirements=whole.requirements[:1]))
    (left,) = verify(plan).failed
    assert f"line {whole.requirements[1].line} of the spec asks for something that cannot be read" in left.text


def test_numbers_stand_under_their_own_labels() -> None:
    source = plans.correlated(4)["spec"]["source"]
    plan = plans.correlated(4)
    assert "[0, 1]^4" in source
    assert "O has another shape in the spec" in failed(
        put(plan, "mechanism", "executed", "outputs", 0, "shape", value=[2, 2]), "coverage"
    )


@pytest.mark.parametrize(
    ("path", "entry"),
    [
        (("mechanism", "executed", "inputs", 0), ("shape", [2, 2])),
        (("mechanism", "executed", "inputs", 0), ("index", "voter")),
        (("mechanism", "executed", "outputs", 0), ("scale", 2)),
        (("mechanism", "executed"), ("seed", 1)),
    ],
)
def test_nothing_is_executed_that_is_not_read(path: tuple[str | int, ...], entry: tuple[str, Any]) -> None:
    plan = plans.changed(plans.correlated(4), path, lambda value: value | dict([entry]))
    assert f"has an entry {entry[0]!r} that is not known" in failed(plan, "integrity")


@pytest.mark.parametrize(
    ("plan", "among"),
    [
        (plans.correlated(3), "Gaussian noise of any covariance, and every other mechanism"),
        (plans.correlated(3), "all unbiased mechanisms of the same pure epsilon"),
        (plans.at_inputs(3), "Gaussian noise of any covariance, unbiased"),
        (plans.at_inputs(3), "independent Gaussian noise at x and O, unbiased"),
    ],
)
def test_the_class_of_a_bound_is_the_one_it_is_proved_for(plan: Plan, among: str) -> None:
    assert failed(put(plan, "loss", "among", value=among), "optimality")


@pytest.mark.parametrize("plan", [plans.correlated(3)])
def test_who_is_trusted_is_said_and_only_assumed(plan: Plan) -> None:
    (trust,) = plan["assumptions"]
    for others in (
        [],
        [trust | {"status": "proved"}],
        [trust | {"text": "Trust: nobody has to be trusted."}],
        [trust, trust | {"text": "Trust: in fact nobody sees anything."}],
    ):
        assert "who sees the raw data" in failed(plan | {"assumptions": others}, "assumptions")


def test_parameters_given_from_outside_are_told() -> None:
    plan = respelt(plans.correlated(3), "epsilon = 1", "epsilon = 0.5")
    report = verify(plans.signed(plan))
    assert report.ok
    (said,) = (claim.text for claim in report.claims if claim.name == "parameters")
    assert said == "parameters as solved: epsilon = 1 (the spec's text says epsilon = 0.5)"
    assert "parameters" not in {claim.name for claim in verify(plans.correlated(3)).claims}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, ()),
        ({"epsilon": "1"}, ("epsilon = 1 (the spec's text says epsilon = 0.5)",)),
        ({"half": "1"}, ("half = 1 (the spec's text says half = epsilon / 2)",)),
        ({"v": "[1, 3]"}, ("v = [1, 3] (the spec's text says v = [1, 2])",)),
        ({"s": "{a, c}"}, ("s = {a, c} (the spec's text says s = {a, b})",)),
        ({"e": "[1, 2, 3]"}, ("e = [1, 2, 3] (the spec's text says e = 1)",)),
    ],
)
def test_which_parameters_were_given(given: dict[str, str], said: tuple[str, ...]) -> None:
    """One that follows from another is none; an indexed one is compared for all its people."""
    from privspec.core.spans import Source
    from privspec.model.build import load_model
    from privspec.model.parameters import overrides

    text = """parameters:
  epsilon = 0.5
  half = epsilon / 2
  v = [1, 2]
  s = {a, b}
  e[voter] = 1
parties: voter in 1..3
variables:
  input x[voter] in [0, 1]
  output O in real
privacy: O is epsilon-DP wrt x, replacing one voter
"""
    assert overrides(load_model(Source("s", text), parameters=given)) == said
