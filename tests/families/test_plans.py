"""From choices to plans: every case is confirmed by the independent checker, random graphs included."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from privspec.api import Problem
from privspec.core.diagnostics import SpecError
from privspec.families.decision import decimal_up
from privspec.kernel.writing import plan_digest
from privspec.plan import Plan
from tests.plans import matrix_of

from .cases import GAUSSIAN, PURE
from .graphs import specs
from .specs import lowered, model_of, spec, targets


@pytest.mark.parametrize("name", GAUSSIAN)
def test_gaussian_cases_are_optimal_and_verified(name: str) -> None:
    plan = Problem(GAUSSIAN[name]).solve()
    assert plan.status == "optimal"
    assert plan.document["mechanism"]["family"] == "gaussian"
    assert_consistent(plan)


@pytest.mark.parametrize("name", PURE)
def test_pure_cases_are_verified(name: str) -> None:
    plan = Problem(PURE[name]).solve()
    assert plan.status == ("optimal" if name == "geometric" else "feasible")
    assert_consistent(plan)


def assert_consistent(plan: Plan) -> None:
    """Losses, sites and covariance say the same; the loss lies above its bound and below the alternatives."""
    assert plan.verify().ok
    assert plan.loss.lower_bound is not None
    assert plan.loss.lower_bound <= plan.loss.value
    covariance = np.array(plan.document["mechanism"]["output_covariance"])
    np.testing.assert_allclose(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance)[0] >= -1e-9 * np.abs(covariance).max()
    assert plan.document["digest"] == plan_digest(dict(plan.document))
    for guarantee in plan.guarantees:
        for name, amount in guarantee.achieved.items():
            if name in guarantee.figures:
                assert Fraction(amount) <= Fraction(guarantee.figures[name])


def test_an_answer_that_is_always_the_same() -> None:
    """A question that asks for nothing needs no noise."""
    text = spec("input x in [0, 1]^3; intermediate y; output O", "y = [[1, 1, 1], [0, 0, 0]] @ x")
    assert_consistent(Problem(text).solve())


@settings(max_examples=settings().max_examples // 4)
@given(specs(), st.sampled_from(["1-GDP", "1-DP", "(1, 1e-6)-DP", "0.5-zCDP"]))
def test_random_graphs_give_verified_plans(text: str, measure: str) -> None:
    text = text.replace("1-GDP", measure)
    try:
        plan = Problem(text).solve()
    except SpecError as error:
        assert {d.code for d in error.diagnostics} == {"PS0511"}
        reject()
    assert_consistent(plan)


@settings(max_examples=settings().max_examples // 4)
@given(specs(), st.data())
def test_noise_at_random_places_is_verified_or_refused(text: str, data: st.DataObject) -> None:
    try:
        places = lowered(model_of(text)).candidates
    except SpecError:
        reject()
    names = data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=3, unique=True))
    try:
        plan = Problem(f"{text}\noptions: noise at {', '.join(names)}").solve()
    except SpecError as error:
        assert {d.code for d in error.diagnostics} <= {"PS0505", "PS0506"}
        return
    if not plan.feasible:
        assert plan.document["conflicts"][0]["text"].endswith(f"noise at {', '.join(names)}")
        return
    assert {site["at"] for site in plan.document["mechanism"]["sites"]} == set(names)
    free = Problem(text).solve()
    assert plan.loss.value >= free.loss.value * (1 - 1e-6)
    assert_consistent(plan)


@settings(max_examples=settings().max_examples // 6)
@given(specs(outputs=1), st.integers(0, 2**32 - 1))
def test_executed_matrices_compute_the_targets(text: str, seed: int) -> None:
    """Without noise, reconstruction times strategy gives what the outputs stand for."""
    try:
        plan = Problem(text).solve()
    except SpecError:
        reject()
    model = model_of(text)
    u = np.random.default_rng(seed).normal(size=model.size)
    executed, (block,) = plan.document["mechanism"]["executed"], plan.document["problem"]["blocks"]
    strategy, reconstruction = matrix_of(executed["strategy"]), matrix_of(executed["reconstruction"])
    answers = reconstruction @ strategy @ u
    if executed.get("of_inputs"):
        found = targets(model, answers)
    else:
        found = answers + np.array(block["offset"]["rows"]) * float(Fraction(block["offset"]["unit"]))
    expected = targets(model, u)
    np.testing.assert_allclose(found, expected, atol=1e-6 * (1 + np.abs(expected).max()))


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9), st.integers(1, 20))
def test_decimals_are_rounded_up_and_only_just(value: Fraction, digits: int) -> None:
    found = Fraction(decimal_up(value, digits))
    assert value <= found <= value * (1 + Fraction(1, 10 ** (digits - 1)))


TABLE = "input people in table(sex in {{F, M}}, age in 0..2, owner in {{no, yes}}){power}; intermediate y; output O"


@pytest.mark.parametrize("relation", ["replacing one record", "adding or removing one record"])
@pytest.mark.parametrize(
    "body", ["histogram(people)", "marginals(people, 1, 2)", "marginals(people, {sex}, {age}, {sex, owner})"]
)
@pytest.mark.parametrize("measure", ["1-DP", "(1, 1e-6)-DP", "1-GDP"])
def test_a_table_of_so_many_records_is_a_table(relation: str, body: str, measure: str) -> None:
    """One record hides behind the same noise, whether or not the spec says how many there are."""
    privacy = f"O is {measure} wrt people, {relation}"
    plans = [Problem(spec(TABLE.format(power=power), f"y = {body}", privacy=privacy)).solve() for power in ("^6", "")]
    assert plans[0].loss.value == plans[1].loss.value
    assert_consistent(plans[0])
    assert [plan.document["problem"]["blocks"][0]["held"][0]["records"] for plan in plans] == [6, None]


@pytest.mark.parametrize("body", ["histogram(people)", "marginals(people, {sex}, {owner, age})"])
def test_columns_are_named_where_they_are_used(body: str) -> None:
    """The names of columns in a set are no variables that differ from place to place."""
    text = "variables: {}\n{}loss: E[ ||O - {}||^2 ]\nprivacy: O is 1-GDP wrt people, replacing one record"
    inside = Problem(text.format(TABLE.format(power="").replace("; intermediate y", "").replace("; ", "\n"), "", body))
    named = text.format(TABLE.format(power="").replace("; ", "\n"), f"background: y = {body}\n", "y")
    assert inside.solve().loss.value == Problem(named).solve().loss.value


@pytest.mark.parametrize("measure", ["1-DP", "1-GDP"])
@pytest.mark.parametrize(
    ("relation", "moved"),
    [("replacing everything", 3), ("replacing up to 2 records", 2), ("replacing up to 5 records", 3)],
)
def test_no_more_records_of_a_table_change_than_there_are(measure: str, relation: str, moved: int) -> None:
    """The noise is that of one record as many times, also where K-norm or Laplace answers are rounded."""
    losses = []
    for unit in ("replacing one record", relation):
        plan = Problem(
            spec(TABLE.format(power="^3"), "y = histogram(people)", privacy=f"O is {measure} wrt people, {unit}")
        ).solve()
        assert_consistent(plan)
        losses.append(plan.loss.value)
    # pure noise is the best of several designs, each found in doubles; Gaussian noise is the optimum
    assert losses[1] == pytest.approx(moved**2 * losses[0], rel=1e-6 if measure == "1-GDP" else 0.05)


def test_a_table_takes_one_exponent() -> None:
    with pytest.raises(SpecError) as caught:
        Problem(spec(TABLE.format(power="^(3, 2)"), "y = histogram(people)", privacy="O is 1-DP wrt people")).solve()
    assert [d.code for d in caught.value.diagnostics] == ["PS0226"]


@pytest.mark.parametrize("key", ["another", "none"])
def test_the_number_of_records_in_a_plan_is_that_of_the_spec(key: str) -> None:
    text = spec(TABLE.format(power="^6"), "y = histogram(people)", privacy="O is 1-GDP wrt people")
    document = json.loads(Problem(text).solve().to_json())
    document["problem"]["blocks"][0]["held"][0]["records"] = 7 if key == "another" else None
    assert not Plan(document | {"digest": plan_digest(document)}).verify().ok
