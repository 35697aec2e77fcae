"""Errors of outputs that are computed from noisy ones: predicted as they turn out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privspec.api import Problem
from privspec.core.diagnostics import SpecError
from privspec.execute.family import mechanism_of
from privspec.execute.predicted import made_up, predicted, predicted_of_model
from privspec.noise.samplers import SimulationRandomness

LINEAR = """
variables:
  input people in table(sex in {F, M}, age in 0..3)^400
  output A
  output B
  output difference = A - B
  output later = 2 * difference
loss: E[ (A - count(people, sex = F))^2 ] + E[ (B - count(people, age >= 2))^2 ]
privacy: all outputs are 0.5-GDP wrt people, adding or removing one record
"""
MEAN = """
variables:
  input people in table(sex in {{F, M}}, pay in [0, 10])^{n}
  output m
loss: E[ ||m - mean(people.pay, by = {{sex}})||^2 ]
{law}privacy: m is 1-GDP wrt people, adding or removing one record
"""


def test_linear_outputs_have_the_variance_of_their_formula() -> None:
    plan = Problem(LINEAR).solve()
    mechanism = mechanism_of(plan.document)
    difference, later = predicted_of_model(mechanism, plan.model())
    noise = mechanism.errors(200_000, 3)
    wanted = float(np.std(noise["A"] - noise["B"]))
    assert difference.whole == pytest.approx(wanted, rel=5 / np.sqrt(2 * difference.draws))
    assert later.whole == pytest.approx(2 * difference.whole, rel=1e-12)
    assert [one["name"] for one in plan.document["remarks"]["computed"]] == ["difference", "later"]


@pytest.mark.parametrize(
    ("law", "shares"), [("", (0.5, 0.5)), ("background: people ~ categorical([1, 3])\n", (0.25, 0.75))]
)
def test_a_mean_is_off_by_first_order_where_there_are_many(law: str, shares: tuple[float, float]) -> None:
    """At d = 0 from the middle the error is e_S / n."""
    plan = Problem(MEAN.format(n=100_000, law=law)).solve()
    (found,) = predicted_of_model(mechanism_of(plan.document), plan.model())
    for error, share in zip(found.errors, shares, strict=True):
        deviation = np.sqrt(2 * 5**2)  # noise of variance 1 on the shares of both ends, half the width each
        assert error == pytest.approx(deviation / (share * 100_000), rel=0.15)


def test_a_law_of_another_size_is_told() -> None:
    plan = Problem(MEAN.format(n=10, law="background: people ~ categorical([1, 3])\n")).solve()
    model = plan.model()
    assert made_up(model).tolist() == [1.25, 1.25, 3.75, 3.75]
    wrong = Problem(MEAN.format(n=10, law="background: people ~ categorical([1, 3, 5])\n"))
    with pytest.raises(SpecError) as caught:
        wrong.solve()
    assert caught.value.diagnostics[0].code == "PS0406"


def test_a_release_tells_how_far_off_computed_outputs_are(tmp_path: Path) -> None:
    plan = Problem(MEAN.format(n=1000, law="")).solve()
    rows = "sex,pay\n" + "F,3\nM,7\n" * 500
    (tmp_path / "people.csv").write_text(rows, encoding="utf-8")
    release = plan.run({"people": tmp_path / "people.csv"}, randomness=SimulationRandomness(1))
    assert release.values["m"] == pytest.approx([3, 7], abs=0.2)
    assert release.deviations["m"].shape == (2,)
    # of first order: both ends count by their shares of the mean
    assert release.deviations["m"] == pytest.approx(10 * np.sqrt(0.3**2 + 0.7**2) / 500, rel=0.4)
    table = release.table()
    assert "m" in set(np.asarray(table["output"]).tolist())


def test_the_prediction_at_real_data_is_what_releases_show(tmp_path: Path) -> None:
    plan = Problem(MEAN.format(n=1000, law="")).solve()
    model, mechanism = plan.model(), mechanism_of(plan.document)
    counts = np.array([3.0, 17.0, 40.0, 40.0])  # few women: their mean is moved into its range now and then
    truth = {"m.sum": np.array([70.0, 0.0]), "m.count": np.array([20.0, 80.0])}
    assert counts.sum() == truth["m.count"].sum()
    (said,) = predicted(mechanism, model, truth, 20_000, 7)
    (one,) = model.computed
    from privspec.model.targets import environment

    noise = mechanism.errors(1000, 11)
    apart = []
    for i in range(1000):
        values = {name: truth[name] + noise[name][i] for name in truth}
        apart.append(one.value(values, environment(model)) - one.value(truth, environment(model)))
    squares = np.array(apart) ** 2
    error = squares.std(axis=0) / np.sqrt(len(squares))
    assert np.all(np.abs(squares.mean(axis=0) - said.errors**2) <= 5 * error)


def test_what_rounding_loses_is_no_accident_of_made_up_data() -> None:
    """Half of 1,000 records lie on a multiple of ten; counts are mostly beside one."""
    text = """
variables:
  input people in table(sex in {F, M})
  output women
  output shown in grid(0, 10000, 10) = women
loss: E[ (women - count(people, sex = F))^2 ]
privacy: women is (1, 1e-9)-DP wrt people, adding or removing one record
"""
    plan = Problem(text).solve()
    (found,) = predicted_of_model(mechanism_of(plan.document), plan.model())
    true, noise = np.random.default_rng(1).integers(4000, 5000, 20_000), mechanism_of(plan.document).errors(20_000, 4)
    off = np.rint((true + noise["women"]) / 10) * 10 - true
    assert found.whole == pytest.approx(np.sqrt(np.mean(off**2)), rel=0.1)
    assert found.whole > 3
