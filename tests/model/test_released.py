"""Statistics of columns, and outputs within a domain: what is released for them, and that it gives them."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspec.api import Problem
from privspec.core.diagnostics import SpecError
from privspec.execute.family import mechanism_of
from privspec.functions.moments import solved
from privspec.language.walk import names_used
from privspec.model.graph import Model
from privspec.model.targets import environment, environment_of_computed, target
from privspec.plan import Plan

AGES, PAY, SEXES = tuple(range(18, 24)), (0, 100), ("F", "M")
TABLE = "table(age in 18..23, sex in {F, M}, pay in [0, 100])"


@cache
def model(question: str, *, table: str = TABLE, more: str = "", domain: str = "") -> Model:
    text = (
        f"variables:\n  input people in {table}\n  output O{domain}\n{more}"
        f"loss: E[ ||O - {question}||^2 ]\nprivacy: O is 1-DP wrt people, adding or removing one record\n"
    )
    return Problem(text).check()


def exact(found: Model, u: Any) -> Any:
    """The computed output without noise."""
    values: dict[str, Any] = {name: target(found, name, u) for one in found.computed for name in one.sources}
    for one in found.computed:
        values[one.name] = one.value(values, environment(found))
    return values["O"]


CELLS = st.lists(st.integers(0, 5), min_size=24, max_size=24)


@given(CELLS)
def test_without_noise_sums_give_the_statistics(cells: list[int]) -> None:
    """Against the definitions, over records laid out: a number between two ends is held as shares of both."""
    u = np.array(cells, dtype=np.float64)
    records = [(a, s, p, n) for (a, s, p), n in zip(_cells(), cells, strict=True) for _ in range(n)]
    ages = np.array([a for a, s, _, _ in records if s == "F"], dtype=np.float64)
    mean = float(np.mean(ages)) if ages.size else 20.5
    assert exact(model("mean(people.age, sex = F)"), _without_pay(u)) == pytest.approx(mean)
    if records:
        every = np.array([a for a, *_ in records], dtype=np.float64)
        assert exact(model("variance(people.age)"), _ages(u)) == pytest.approx(float(np.var(every)), abs=1e-9)
    pay = np.array([p for *_, p, _ in records], dtype=np.float64)
    design = np.array([[1.0, a] for a, *_ in records]).reshape(-1, 2)
    scaled = np.array([[1.0, (a - 20.5) / 2.5] for a, *_ in records]).reshape(-1, 2)
    if len(records) and np.linalg.eigvalsh(scaled.T @ scaled).min() >= 1:
        wanted = np.linalg.lstsq(design, pay, rcond=None)[0]
        found = exact(model("regression(people.pay, on = {age})"), _without_sex(u))
        assert found == pytest.approx(wanted, abs=1e-6)
    # squares of a measured column are a column of their own: here pay is at its ends, which add up to what it is
    if records:
        ages = np.array([a for a, *_ in records], dtype=np.float64)
        found = exact(model("covariance(people.age, people.pay)"), _without_sex(u))
        assert found == pytest.approx(float(np.mean(ages * pay) - ages.mean() * pay.mean()), abs=1e-6)


WEIGHTS = st.lists(st.integers(0, 5), min_size=18, max_size=18)


@given(WEIGHTS)
def test_a_correlation_is_that_of_the_records(cells: list[int]) -> None:
    table = "table(age in 18..23, years in 0..2)"
    found = model("correlation(people.age, people.years)", table=table)
    records = np.array([(a, y) for (a, y), n in zip(product(AGES, range(3)), cells, strict=True) for _ in range(n)])
    if not len(records):
        return
    # spreads below that of one record count as it, of columns from -1 to 1
    spreads = np.maximum(records.var(axis=0) / (2.5**2, 1), 1 / len(records))
    both = np.cov(records.T, bias=True)[0, 1] / 2.5
    wanted = np.clip(both / np.sqrt(spreads.prod()), -1, 1)
    assert exact(found, np.array(cells, dtype=np.float64)) == pytest.approx(wanted, abs=1e-9)


def _cells() -> list[tuple[int, str, int]]:
    return [(a, s, p) for a in AGES for s in SEXES for p in PAY]


def _without_pay(u: Any) -> Any:
    return u.reshape(6, 2, 2).sum(axis=2).ravel()


def _without_sex(u: Any) -> Any:
    return u.reshape(6, 2, 2).sum(axis=1).ravel()


def _ages(u: Any) -> Any:
    return u.reshape(6, 4).sum(axis=1)


def test_eigenvalues_below_one_count_as_one() -> None:
    """No noisy matrix is without a solution, and one that needs no help is solved as it is."""
    assert solved(np.array([[4.0, 0], [0, -3]]), np.array([8.0, 5])).tolist() == [2, 5]
    assert solved(np.zeros((2, 2)), np.array([1.0, 2])).tolist() == [1, 2]
    matrix, right = np.array([[5.0, 1], [1, 3]]), np.array([1.0, 2])
    assert matrix @ solved(matrix, right) == pytest.approx(right)
    skewed = np.array([[5.0, 2], [0, 3]])
    assert solved(skewed, right).tolist() == solved(matrix, right).tolist()


@pytest.mark.parametrize(
    ("domain", "noisy", "moved"),
    [
        (" in 0..10", [-3.2, 4.5, 4.51, 12.0], [0, 4, 5, 10]),
        (" in [0, 10]", [-3.2, 4.51, 12.0], [0, 4.51, 10]),
        (" in grid(0, 10, 5)", [2.4, 2.6, 99.0], [0, 5, 10]),
    ],
)
def test_an_output_is_moved_into_its_domain_once_it_is_released(domain: str, noisy: list[float], moved: Any) -> None:
    found = model("count(people)", domain=domain)
    (one,) = found.computed
    assert one.sources == ("O.noisy",)
    public = environment(found)
    assert [float(one.value({"O.noisy": np.array(v)}, public)) for v in noisy] == moved


def test_lines_on_accuracy_and_places_of_noise_are_about_the_noisy_number() -> None:
    text = (
        "variables:\n  input x in [0, 1]\n  output O in 0..3\nloss: E[ (O - 3 * x)^2 ]\n"
        "accuracy: |O - 3 * x| <= 9 with probability 0.9\nprivacy: O is 1-DP wrt x\noptions: noise at O\n"
    )
    found = Problem(text).check()
    assert set(names_used(found.accuracy[0].target.left)) == {"O.noisy", "x"}
    assert found.noise_at == ("O.noisy",)


def test_a_finite_output_of_a_finite_input_is_still_a_table() -> None:
    text = (
        "variables:\n  input x in 0..3\n  output z in 0..3\nloss: worst[ |z - x| ]\n"
        "privacy: z is 1-DP wrt x, replacing everything\n"
    )
    assert not Problem(text).check().computed


def test_a_declared_number_of_records_weighs_errors() -> None:
    def loss(records: str) -> Plan:
        return Problem(
            f"variables:\n  input people in {TABLE}{records}\n  output O\n"
            "loss: E[ (O - mean(people.pay))^2 ]\nprivacy: O is 1-GDP wrt people, adding or removing one record\n"
        ).solve()

    whole, shared = loss(""), loss("^100")
    assert shared.loss.value == pytest.approx(whole.loss.value / 100**2)
    # the best for one end and the other at once: noise of one size on the shares of both ends
    assert whole.loss.value == pytest.approx(2 * 100**2 / 2 * 1.0, rel=1e-6)


def test_the_mean_of_a_known_number_of_records_is_linear() -> None:
    text = (
        f"variables:\n  input people in {TABLE}^50\n  output O\n"
        "loss: E[ (O - mean(people.pay))^2 ]\nprivacy: O is 1-GDP wrt people, replacing one record\n"
    )
    plan = Problem(text).solve()
    assert not plan.model().computed
    assert plan.loss.value == pytest.approx((100 / 50) ** 2, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("E[ |O - mean(people.pay)| ]", "PS0501", "squared errors only"),
        ("E[ (O - mean(people.sex))^2 ]", "PS0206", "words"),
        ("E[ (O - mean(people.height))^2 ]", "PS0206", "no column height"),
        ("E[ (O - mean(people.pay, 3))^2 ]", "PS0206", "conditions"),
        ("E[ ||O - regression(people.pay)||^2 ]", "PS0206", "on 1 to"),
        ("E[ ||O - regression(people.pay, on = {age, age})||^2 ]", "PS0206", "on 1 to"),
        ("E[ ||O - regression(people.pay, on = {sex})||^2 ]", "PS0206", "words"),
        ("E[ (O - correlation(people.pay))^2 ]", "PS0206", "two columns"),
        ("E[ (O - correlation(people.pay, people.pay))^2 ]", "PS0206", "two columns"),
        ("E[ (O - correlation(people.pay, people.sex))^2 ]", "PS0206", "words"),
        ("E[ (O - mean(people.pay))^2 ] + E[ (O - mean(people.age))^2 ]", "PS0501", "two things"),
        ("worst[ (O - mean(people.pay))^2 ]", "PS0501", "squared errors only"),
    ],
)
def test_what_cannot_be_is_told(text: str, code: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        Problem(
            f"variables:\n  input people in {TABLE}\n  output O\n"
            f"loss: {text}\nprivacy: O is 1-DP wrt people, adding or removing one record\n"
        ).check()
    first = caught.value.diagnostics[0]
    assert (first.code, words in first.message) == (code, True), first.message


def test_sums_are_released_and_lines_are_about_them() -> None:
    found = model("mean(people.pay, by = {sex})")
    (line,) = found.requirements
    assert line.outputs == ("O.sum", "O.count")
    (one,) = found.computed
    assert one.domain is not None
    assert one.domain.bounds == (Fraction(0), Fraction(100))
    assert one.text == "50 + O.sum / max(O.count, 1), moved into [0, 100]"


CONSISTENT = """
variables:
  input people in table(district in 1..3, sex in {F, M})^20
  output country
  output districts
  output cells
  output c = consistent(country, districts, cells)
  output d = consistent(districts, country, cells)
  output x = consistent(cells, country, districts)
loss: E[ (country - count(people))^2 ] + E[ ||districts - histogram(people, by = {district})||^2 ]
  + E[ ||cells - histogram(people)||^2 ]
privacy: all outputs are 0.5-DP wrt people, adding or removing one record
""".replace("\n  + E", " + E")


@given(st.lists(st.floats(-30, 60), min_size=10, max_size=10))
def test_consistent_tables_add_up_to_the_last_digit(noisy: list[float]) -> None:
    """And none is nearer: the conditions of Karush, Kuhn and Tucker, to the rounding of the cells."""
    found = _consistent_model()
    public, values = environment_of_computed(found), {}
    values["country"], values["districts"], values["cells"] = (
        np.array(noisy[0]),
        np.array(noisy[1:4]),
        np.array(noisy[4:]),
    )
    one = {item.name: item.value(values, public) for item in found.computed}
    assert np.all(one["x"] >= 0)
    assert one["x"].reshape(3, 2).sum(axis=1).tolist() == one["d"].tolist()
    assert one["d"].sum() == one["c"]
    every = np.vstack([np.ones((1, 6)), np.kron(np.eye(3), np.ones((1, 2))), np.eye(6)])
    slope = every.T @ (every @ one["x"] - np.array(noisy))
    assert np.all(slope >= -1e-4)
    assert np.all(np.abs(slope * one["x"]) <= 1e-2)


@cache
def _consistent_model() -> Model:
    return Problem(CONSISTENT).check()


def test_consistent_answers_are_nearer_where_cells_are_empty() -> None:
    plan = Problem(CONSISTENT).solve()
    said = {one["name"]: one for one in plan.document["remarks"]["computed"]}
    errors = {node.name: float(np.sqrt(np.mean(v**2))) for node, v in _deviations(plan)}
    assert said["x"]["error"] < errors["cells"]


def _deviations(plan: Plan) -> Any:
    noise = mechanism_of(plan.document).errors(2000, 5)
    return [(node, noise[node.name]) for node in plan.model().outputs]


@pytest.mark.parametrize(
    ("above", "below", "moved"),
    [
        ("sum(people.pay)", "count(people)", True),
        ("sum(people.pay, sex = F, by = {age})", "count(people, by = {age}, sex = F)", True),
        ("sum(people.pay, by = {age})", "histogram(people, by = {age})", True),
        ("sum(people.pay, sex = F)", "count(people)", False),
        ("sum(people.age * people.pay)", "count(people)", False),
    ],
)
def test_a_sum_over_the_count_of_the_same_records_lies_in_the_range_of_the_column(
    above: str, below: str, moved: bool
) -> None:
    text = (
        f"variables:\n  input people in {TABLE}\n  output S\n  output N\n  output m = S / N\n"
        f"loss: E[ ||S - {above}||^2 ] + E[ ||N - {below}||^2 ]\n"
        "privacy: all outputs are 1-DP wrt people, adding or removing one record\n"
    )
    (one,) = Problem(text).check().computed
    assert one.text == "S / max(N, 1)" + ", moved into [0, 100]" * moved


@given(CELLS)
def test_differences_of_means_and_shares_follow_from_sums_too(cells: list[int]) -> None:
    """Against the definitions: the last axis has the shares of a number at both of its ends."""
    counts = np.array(cells, dtype=np.float64).reshape(6, 2, 2)
    women, all_women = counts[:2, 0].sum(), counts[:, 0].sum()
    young_or_not = np.array([counts[:2].sum(axis=(0, 2)), counts[2:].sum(axis=(0, 2))])
    share = exact(model("count(people, sex = F, age < 20) / count(people, sex = F)"), young_or_not.ravel())
    assert share == pytest.approx(women / all_women if all_women else 0.5)
    gap = exact(model("(mean(people.pay, sex = F) - mean(people.pay, sex = M))"), counts.sum(axis=0).ravel())
    means = [100 * one[:, 1].sum() / one.sum() if one.sum() else 50 for one in (counts[:, 0], counts[:, 1])]
    assert gap == pytest.approx(means[0] - means[1])


def test_a_share_of_all_records_is_linear_where_their_number_is_public() -> None:
    text = (
        f"variables:\n  input people in {TABLE}^50\n  output O\n"
        "loss: E[ (O - count(people, sex = F) / count(people))^2 ]\n"
        "privacy: O is 1-DP wrt people, replacing one record\n"
    )
    found = Problem(text).check()
    assert not found.computed
    assert target(found, "O", np.array([12.0, 38.0])) == pytest.approx(12 / 50)


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        ("(O - 2 * mean(people.pay, sex = F) + people.age)^2", "this is about more"),
        ("|O - count(people, age < 20, sex = F) / count(people, sex = F)|", "squared errors only"),
    ],
)
def test_other_forms_of_statistics_are_refused(loss: str, said: str) -> None:
    text = (
        f"variables:\n  input people in {TABLE}\n  output O\nloss: E[ {loss} ]\n"
        "privacy: O is 1-DP wrt people, adding or removing one record\n"
    )
    with pytest.raises(SpecError) as refused:
        Problem(text).check()
    assert said in str(refused.value)
