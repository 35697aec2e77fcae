"""Noisy statistics: which ways the spec allows, how they are ranked, and what plans say of them."""

from __future__ import annotations

import re
import time
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from privspec.solvers.programs import OutOfTimeError

from privspec.api import Problem
from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.families.decision import Decided, Decision, Infeasible
from privspec.families.family import Settings
from privspec.families.statistics import predict as predict_module
from privspec.families.statistics.family import Statistics
from privspec.families.statistics.predict import (
    SAMPLE,
    Judge,
    _Seen,
    _View,
    forbidden,
    lower,
    predict,
    released,
    ways,
    weights_of,
)
from privspec.model.build import load_model
from privspec.model.graph import Model
from privspec.model.priors import ThurstoneMosteller
from privspec.problem.statistics import reads

SPEC = """spec crowd
parameters:
  N = 6
  n = 8
  d = 3
  {epsilon}
parties: voter in 1..N
variables:
  input V[voter] in {domain}
  intermediate beta[voter]
  intermediate society
  output O
background:
  beta[voter] = probit_mle(V[voter], within = l1_ball(2, d))
  society = mean(beta[voter] for voter)
  {model}
loss: E[ disagreement(O, mean(V[voter].weights for voter)) ]
{privacy}
options:
  trust {trust}
  {options}
"""


def model_of(
    *,
    epsilon: str = "epsilon = 1",
    domain: str = "l2_ball(1, d)^n",
    model: str = "V ~ thurstone_mosteller(d, n)",
    privacy: str = "privacy: O is epsilon-DP wrt V, replacing one record",
    trust: str = "curator",
    options: str = "",
) -> Model:
    text = SPEC.format(epsilon=epsilon, domain=domain, model=model, privacy=privacy, trust=trust, options=options)
    return load_model(Source("crowd.priv", text))


@cache
def decided(**changes: str) -> Decision | Infeasible:
    model = model_of(**changes)
    family = Statistics()
    return family.decide(model, family.lower(model), Settings(alternatives=False))


def test_only_specs_with_routes_are_accepted() -> None:
    assert reads(model_of())
    linear = "variables:\n  input x in [0, 1]^3\n  output O\nloss: E[ ||O - x||^2 ]\nprivacy: O is 1-GDP wrt x"
    assert not reads(load_model(Source("linear.priv", linear + "\n")))


def test_nobody_trusted_means_noise_at_each_party() -> None:
    system = lower(model_of(trust="nobody"))
    allowed = [way for way in ways(system) if not forbidden(system, way)]
    assert allowed
    assert all(way.each_party for way in allowed)
    assert any(not way.each_party for way in ways(system))


@pytest.mark.parametrize("site", ["society", "beta", "objective(beta)", "records(society)"])
def test_noise_at_forces_a_site(site: str) -> None:
    system = lower(model_of(options=f"noise at {site}"))
    assert {way.at for way in ways(system) if not forbidden(system, way)} == {site}


def test_a_family_can_be_forced() -> None:
    found = decided(options="noise family laplace")
    assert isinstance(found, Decided)
    sites = found.document()["mechanism"]["sites"]
    assert {site["shape"] for site in sites} == {"laplace"}


def test_gaussian_noise_never_meets_a_pure_epsilon() -> None:
    found = decided(options="noise family gaussian")
    assert isinstance(found, Infeasible)
    assert any("noise family gaussian" in line.text for line in found.conflicts)


def test_gaussian_noise_competes_where_there_is_a_delta() -> None:
    privacy = "privacy: O is (epsilon, 1e-6)-DP wrt V, replacing one record"
    system = lower(model_of(privacy=privacy))
    gaussian = [way for way in ways(system) if way.family == "gaussian"]
    assert gaussian
    (promise,) = system.promises
    achieved = gaussian[0].noise[0].achieved(gaussian[0].route.spread(promise.unit))
    assert set(achieved) == {"mu"}
    assert achieved["mu"] <= 1


def test_without_a_ball_records_have_no_first_order_route() -> None:
    system = lower(model_of(domain="real^(n, d)"))
    assert {route.at for route in system.routes} == {"result", "direction", "signs"}


def test_no_privacy_is_no_plan() -> None:
    with pytest.raises(SpecError) as caught:
        Statistics().lower(model_of(privacy=""))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "PS0518"
    assert "without any noise" in diagnostic.notes[0]


def test_a_data_model_is_needed() -> None:
    with pytest.raises(SpecError) as caught:
        lower(model_of(model="", privacy="privacy: O is epsilon-DP wrt V, replacing one voter"))
    assert caught.value.diagnostics[0].code == "PS0229"
    assert "V ~ thurstone_mosteller(d, n)" in str(caught.value.diagnostics[0].help)


def test_each_person_has_noise_of_their_own_and_weights_by_inverse_variance() -> None:
    model = model_of(
        epsilon="epsilon[voter] = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2]",
        privacy="privacy: O is epsilon[voter]-DP wrt V[voter], replacing one voter",
        trust="nobody",
    )
    system = lower(model)
    laplace = next(w for w in ways(system) if w.family == "laplace" and w.each_party and w.route.at == "result")
    (promise,) = system.promises
    spread = laplace.route.spread(promise.unit)
    reached = [n.achieved(spread)["epsilon"] for n in laplace.noise]
    assert reached == [Fraction(2**i, 10) for i in range(6)]
    weights = weights_of(laplace, 6)
    assert weights is not None
    assert weights.sum() == pytest.approx(6)
    variances = np.array([noise.variance for noise in laplace.noise])
    assert weights * variances == pytest.approx(np.full(6, weights[0] * variances[0]))


def test_the_strictest_person_decides_at_the_pool() -> None:
    model = model_of(
        epsilon="epsilon[voter] = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2]",
        privacy="privacy: O is epsilon[voter]-DP wrt V[voter], replacing one voter",
    )
    system = lower(model)
    pooled = next(w for w in ways(system) if w.family == "laplace" and not w.each_party and w.route.at == "result")
    assert len(pooled.noise) == 1
    (promise,) = system.promises
    reached = pooled.noise[0].achieved(pooled.route.spread(promise.unit))
    assert reached["epsilon"] == Fraction(1, 10)


def test_the_loss_is_judged_as_written() -> None:
    system = lower(model_of())
    crowd = system.generator.draw(system.block.parties, np.random.default_rng(1))
    truth = crowd.attributes["weights"].mean(axis=0)
    judge = Judge(system, crowd)
    assert judge.loss(truth) == pytest.approx(0, abs=1e-7)
    assert judge.loss(-truth) == pytest.approx(1, abs=1e-7)


def test_noise_at_the_pool_is_that_of_the_sum_over_the_parties() -> None:
    system = lower(model_of())
    way = next(w for w in ways(system) if w.family == "laplace" and not w.each_party and w.route.at == "records")
    statistics = np.zeros((system.block.parties, way.route.size))
    random = np.random.default_rng(5)
    drawn = np.array([released(system, way, statistics, random) for _ in range(4000)])
    expected = way.noise[0].variance / system.block.parties**2
    # The variance of a mean of 4000 squares of Laplace noise: kurtosis 6, so a relative deviation of sqrt(5 / 12000).
    assert drawn.var() == pytest.approx(expected, rel=6 * np.sqrt(5 / 12000))


def test_plans_tell_the_ranking_and_are_marked_as_predictions() -> None:
    found = decided(options="noise family laplace")
    assert isinstance(found, Decided)
    document = found.document()
    assert document["status"] == "feasible"
    assert document["loss"]["lower_bound"] is None
    assert document["loss"]["standard_error"] > 0
    losses = [a["loss"] for a in document["alternatives"]]
    assert len(losses) > 2
    assert losses == sorted(losses)
    assert all(document["loss"]["value"] <= a["loss"] for a in document["alternatives"] if a["admissible"])
    assert document["mechanism"]["family"] == "statistic"
    assert document["guarantees"][0]["achieved"] == {"epsilon": "1"}


def test_crowds_that_no_memory_holds_are_refused() -> None:
    text = (Path(__file__).parents[2] / "specs" / "noothigattu_baseline.priv").read_text("utf-8")
    text = re.sub(r"  N = \d+", "  N = 10^8", text)
    with pytest.raises(SpecError, match="a crowd to simulate would have"):
        Statistics().lower(load_model(Source("t.priv", text.replace("society = mean(", "society = sum("))))


# --- losses that compare with what is computed ---------------------------------------------------------------

OWN = "E[ disagreement(O, mean(V[voter].weights for voter)) ]"


def priced(loss: str, *, variables: str = "", background: str = "") -> Model:
    """The spec with another loss, and values that it uses."""
    text = SPEC.format(
        epsilon="epsilon = 1",
        domain="l2_ball(1, d)^n",
        model="V ~ thurstone_mosteller(d, n)",
        privacy="privacy: O is epsilon-DP wrt V, replacing one voter",
        trust="curator",
        options="noise at society",
    )
    text = text.replace(OWN, loss).replace("  output O\n", f"{variables}  output O in real^3\n")
    return load_model(Source("crowd.priv", text.replace("background:\n", f"background:\n{background}")))


@pytest.mark.parametrize(
    ("loss", "variables", "background"),
    [
        ("E[ ||O - society||^2 ]", "", ""),
        ("E[ ||O - mean(beta[voter] for voter)||^2 ]", "", ""),
        ("E[ ||err||^2 ]", "  intermediate err\n", "  err = O - society\n"),
        (
            "E[ ||O - half||^2 ]",
            "  intermediate twice\n  intermediate half\n",
            "  twice = 2 * society\n  half = twice / 2\n",
        ),
        (
            "E[ ||O - mean(two[voter] / 2 for voter)||^2 ]",
            "  intermediate two[voter]\n",
            "  two[voter] = 2 * beta[voter]\n",
        ),
    ],
)
def test_a_loss_may_compare_with_what_is_computed(loss: str, variables: str, background: str) -> None:
    """Five ways to write one loss: without noise nothing is lost, and Laplace noise alone loses its own variance."""
    model = priced(loss, variables=variables, background=background)
    system = lower(model)
    laplace = next(way for way in ways(system) if not forbidden(system, way) and way.family == "laplace")
    found = predict(system, [laplace])
    assert found.exact == pytest.approx(0, abs=1e-20)
    (one,) = found.ranking
    assert abs(one.loss - 3 * laplace.noise[0].variance / 36) < 6 * one.standard_error


MILLION = 10**6
CLOSELY = "E[ disagreement(O, mean(V[voter].weights for voter)) ]"


def crowd_of(parties: int, loss: str = OWN) -> Model:
    """Voters who each add noise, three decisions each."""
    text = priced(loss).source.text
    return load_model(Source("crowd.priv", re.sub(r"  N = \d+", f"  N = {parties}", text)))


@pytest.mark.parametrize(
    ("loss", "means"),
    [
        (OWN, True),
        ("E[ ||O - society||^2 ]", True),
        ("E[ ||O - sum(beta[voter] for voter)||^2 ]", False),
        ("E[ ||O||^2 + sum(||V[voter].weights||^2 for voter) ]", False),
    ],
)
def test_some_stand_for_all_where_only_means_count(loss: str, means: bool) -> None:
    system = lower(crowd_of(MILLION, loss))
    assert system.drawn == (SAMPLE if means else MILLION)
    assert lower(crowd_of(SAMPLE)).drawn == SAMPLE


@pytest.mark.parametrize("shape", ["laplace", "knorm-l2", "gaussian"])
@pytest.mark.parametrize("each_party", [False, True])
def test_noise_of_all_is_as_large_where_some_stand_for_them(shape: str, each_party: bool) -> None:
    system = lower(crowd_of(64))
    found = [w for w in ways(system) if (w.each_party, w.noise[0].shape, w.route.at) == (each_party, shape, "records")]
    if not found:
        assert shape == "gaussian"
        return
    random, some = np.random.default_rng(2), np.zeros((16, found[0].route.size))
    drawn = np.array([released(system, found[0], some, random) for _ in range(4000)])
    whole = np.array([released(system, found[0], np.repeat(some, 4, axis=0), random) for _ in range(4000)])
    assert drawn.var() == pytest.approx(whole.var(), rel=0.2)


def test_what_is_missing_of_a_crowd_is_within_the_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    system = lower(crowd_of(256))
    every = [way for way in ways(system) if not forbidden(system, way)]
    whole = predict(system, every, most=100)
    monkeypatch.setattr(predict_module, "SAMPLE", 32)
    some = predict(system, every, most=100)
    assert (whole.parties, some.parties) == (256, 32)
    for one in some.ranking:
        (same,) = (other for other in whole.ranking if other.way.name == one.way.name)
        assert abs(one.loss - same.loss) < 4 * (one.standard_error + same.standard_error)


def test_a_mirrored_voter_makes_the_mirrored_choices() -> None:
    """Lengths, utilities and so choices are those of the voter; what is common to all stays where it is."""
    crowd = ThurstoneMosteller(5, 4, 1.0).draw(200, np.random.default_rng(3))
    image, axis = crowd.mirrored(), crowd.axis
    assert axis is not None
    for one, other in ((crowd.records, image.records), (crowd.attributes["weights"], image.attributes["weights"])):
        assert np.allclose(np.linalg.norm(one, axis=-1), np.linalg.norm(other, axis=-1))
        assert np.allclose(one @ axis, other @ axis)
        assert np.allclose((one + other) / 2, (one @ axis)[..., None] * axis)
    utilities = [np.einsum("vnd,vd->vn", c.records, c.attributes["weights"]) for c in (crowd, image)]
    assert np.allclose(*utilities)
    weights = ThurstoneMosteller(1, 4, None).draw(200_000, np.random.default_rng(4))
    mean = weights.attributes["weights"].mean(axis=0)
    assert np.allclose(mean / np.linalg.norm(mean), weights.axis, atol=0.02)


def test_the_mean_of_all_voters_varies_as_much_as_it_should() -> None:
    """32 voters who stand for 8,192: across the axis their moved mean has the law of that of all."""
    few, all_, size = 32, 8192, 3
    crowds = [ThurstoneMosteller(2, size, 1.0).draw(few, np.random.default_rng(i)) for i in range(2000)]
    moved = (
        _View(_Seen(crowds), _Seen([one.mirrored() for one in crowds]), few, few, all_ / few).of("weights").mean(axis=1)
    )
    across = np.array([m - (m @ one.axis) * one.axis for m, one in zip(moved, crowds, strict=True)])
    assert (across**2).sum(axis=1).mean() == pytest.approx((size - 1) / all_, rel=0.1)


@pytest.mark.slow
def test_the_loss_of_a_million_is_known_closely() -> None:
    """Noise once, at the pool: the direction of all is off by the noise and by what a million voters vary."""
    text = priced(CLOSELY).source.text
    system = lower(load_model(Source("crowd.priv", re.sub(r"  N = \d+", f"  N = {MILLION}", text))))
    sums = [way for way in ways(system) if way.route.at == "records" and not way.each_party]
    found = predict(system, sums, most=40)
    assert found.parties == SAMPLE
    assert found.ranking[0].standard_error <= found.ranking[0].loss / 5 < 2e-4


def test_a_plan_for_the_distance_from_the_society_is_verified() -> None:
    plan = Problem(priced("E[ ||O - society||^2 ]").source.text).solve()
    assert plan.verify().ok
    assert plan.document["loss"]["without_noise"] == 0


def test_a_value_of_each_voter_that_depends_on_the_release_is_refused() -> None:
    model = priced(
        "E[ mean(gap[voter] for voter) ]",
        variables="  intermediate gap[voter]\n",
        background="  gap[voter] = ||O - beta[voter]||\n",
    )
    with pytest.raises(SpecError) as caught:
        lower(model)
    assert [d.code for d in caught.value.diagnostics] == ["PS0502"]


# --- the clock ------------------------------------------------------------------------------------------------


def test_no_clock_decides_a_ranking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ranking can be made again; with an hour for each look at the clock it is the same one, or none."""
    system = lower(model_of())
    every = list(ways(system))
    fast = predict(system, every, most=50)
    ticks = iter(range(10**9, 2 * 10**9, 3600))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))
    slow = predict(system, every, most=50)
    assert [(p.way.name, p.loss) for p in slow.ranking] == [(p.way.name, p.loss) for p in fast.ranking]
    with pytest.raises(OutOfTimeError):
        predict(system, every, most=50, deadline=10.0)


def test_the_loss_without_noise_follows_from_the_spec_or_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def message() -> str:
        with pytest.raises(SpecError) as caught:
            Statistics().lower(model_of(privacy=""))
        return str(caught.value.diagnostics[0].notes)

    fast = message()
    ticks = iter(range(10**9, 2 * 10**9, 3600))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))
    # where it takes too long nothing is told, and never another figure
    assert message() == "()" != fast
