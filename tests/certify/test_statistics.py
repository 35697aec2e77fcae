"""Plans that make statistics noisy: every sensitivity is derived again, and no plan that was tampered with passes."""

import copy
import hashlib
import json
import time
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest

from privspec.certify.checker import verify
from privspec.certify.statistics.spreads import STATISTICS, Records, statistic_of
from privspec.compile.problem import Settings
from privspec.compile.statistics import family
from privspec.compile.statistics.family import StatisticDecision, Statistics
from privspec.compile.statistics.predict import Predicted, Prediction
from privspec.compile.statistics.ways import forbidden, ways
from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.model.build import load_model
from tests.certify.plans import changed, leaves, removed, signed

SPEC = """spec crowd
parameters:
    N = 4
    n = 6
    d = 3
    B = 2
    eps[voter] = [0.5, 1, 2, 2]
parties: voter in 1..N
variables:
    input V[voter] in {records}
    intermediate beta[voter]
    intermediate society
    output O
background:
    beta[voter] = probit_mle(V[voter], within = {ball})
    society = {pool}
    V ~ thurstone_mosteller(d, n)
loss: E[ disagreement(O, mean(V[voter].weights for voter)) ]
privacy:
{privacy}
{options}"""
LINES = ("O is 1-DP wrt V, replacing one record",)


def spec(*privacy, options="", records="l2_ball(1, d)^n", ball="l1_ball(B, d)", pool="mean(beta[voter] for voter)"):
    lines = "\n".join(f"    {line}" for line in privacy or LINES)
    head = f"options:\n{options}\n" if options else ""
    return SPEC.format(records=records, ball=ball, pool=pool, privacy=lines, options=head)


def plans(text, *, also_forbidden=False):
    """A plan for every way that the compiler knows, by route, place and shape; losses are made up."""
    model = load_model(Source("crowd.priv", text))
    system = Statistics().lower(model)
    found = {}
    for way in ways(system):
        if also_forbidden or not forbidden(system, way):
            ranking = (Predicted(way, 0.5, 0.01),)
            decision = StatisticDecision(model, system, Prediction(ranking, 25, 0.1), Settings(), 0.0)
            key = (way.route.at, "each" if way.each_party else "pool", way.noise[0].shape, way.finish_first)
            with patch.object(family, "forbidden", lambda *_: ""):
                found[key] = json.loads(json.dumps(decision.document()))
    return found


def plan(at, where, shape, text=None, finish_first=False, **keywords):
    return plans(text or spec(), **keywords)[at, where, shape, finish_first]


def scaled(factor):
    """A number of a plan times a factor, exactly."""
    return lambda text: str(Fraction(text) * factor)


def everywhere(document, key, change):
    """The same change of a figure of the noise that is executed and of the sites that list it."""
    out = copy.deepcopy(document)
    for noise in out["mechanism"]["executed"]["noise"]:
        noise[key] = change(noise[key])
    for site in out["mechanism"]["sites"]:
        site["parameters"][key] = change(site["parameters"][key])
    return signed(out)


def failed(document):
    report = verify(document)
    assert not report.ok
    return " | ".join(f"{claim.name}: {claim.text}" for claim in report.failed)


# --- honest plans ------------------------------------------------------------------------------------

ONE = """spec single
parameters:
    n = 6
    d = 3
variables:
    input V in l2_ball(1, d)^n
    intermediate beta
    output O
background:
    beta = probit_mle(V, within = l1_ball(2, d))
    V ~ thurstone_mosteller(d, n)
loss: E[ disagreement(O, V.weights) ]
privacy:
    O is 1-DP wrt V, replacing one record
    O is 20-DP wrt V, replacing everything
"""
HONEST = {
    "record": spec(),
    "voter": spec("O is 1-DP wrt V, replacing one voter"),
    "delta": spec("O is (1, 1e-6)-DP wrt V, replacing one record"),
    "concentrated": spec("O is 0.5-zCDP wrt V, replacing one record"),
    "nobody": spec(options="    trust nobody"),
    "two units": spec("O is 1-DP wrt V, replacing one record", "O is 10-DP wrt V, replacing one voter"),
    "two units, delta": spec(
        "O is (1, 1e-6)-DP wrt V, replacing one record", "O is (10, 1e-6)-DP wrt V, replacing one voter"
    ),
    "personal": spec("O is eps[voter]-DP wrt V[voter], replacing one voter"),
    "local": spec("O is 1-LDP wrt V"),
    "local, personal": spec("O is eps[voter]-LDP wrt V[voter]"),
    "one party": ONE,
    "any size": spec(records="real^(n, d)"),
    "wide": spec(records="l2_ball(5/2, d)^n", ball="l2_ball(B, d)", pool="sum(beta[voter] for voter)"),
    "allowed": spec(options="    noise at objective(beta)\n    noise family laplace"),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_plans_are_verified(name):
    found = plans(HONEST[name])
    assert found
    for key, document in found.items():
        report = verify(document)
        assert report.ok, (key, str(report))
        assert {"coverage", "statistic", "privacy", "achieved"} <= {c.name for c in report.claims if c.status == "ok"}
        assert any(c.name == "loss" and c.status == "not checked" for c in report.claims)


def test_what_noise_reaches_is_told_for_each_requirement():
    found = plan("records", "pool", "laplace", HONEST["two units"])
    record, voter = (Fraction(g["achieved"]["epsilon"]) for g in found["guarantees"])
    assert voter == 6 * record
    assert record <= 1
    assert voter <= 10


# --- spreads -------------------------------------------------------------------------------------------


def test_spreads_are_those_of_the_formulas():
    records = Records(7, 9, Fraction(2), True, Fraction(3))
    moves = {at: statistic_of(at, records) for at in STATISTICS}
    assert moves["result"].record == moves["result"].party
    assert (moves["result"].record.l1, moves["result"].record.l2) == (6, 6)
    assert (moves["signs"].record.l1, moves["signs"].record.l2, moves["signs"].record.linf) == (18, 6, 2)
    assert (moves["direction"].record.l1, moves["direction"].record.l2) == (6, 2)
    assert (moves["records"].record.l1, moves["records"].record.l2) == (12, 4)
    assert moves["records"].party.l2 == 28
    assert moves["objective"].party.l1 == 7 * moves["objective"].record.l1
    assert moves["records"].length == 14
    round_ball = statistic_of("result", Records(7, 9, None, False, Fraction(3)))
    assert (round_ball.record.l1, round_ball.record.l2) == (18, 6)
    assert statistic_of("objective", Records(7, 9, None, True, Fraction(3))) is None
    assert statistic_of("something", records) is None


@pytest.mark.parametrize("dimension", [1, 2, 10, 23])
@pytest.mark.parametrize("radius", [Fraction(1, 3), Fraction(1), Fraction(3)])
def test_the_objective_by_brute_force(dimension, radius):
    """Lengths and angle of two records on a mesh, Cauchy-Schwarz as in the note: the closed form is never exceeded."""
    found = statistic_of("objective", Records(1, dimension, radius, True, Fraction(1))).record
    c1, c2, r = np.sqrt(2 / np.pi), 1 / np.pi, float(radius)
    a, b, cosine = np.meshgrid(np.linspace(0, r, 61), np.linspace(0, r, 61), np.cos(np.linspace(0, np.pi, 241)))
    apart = np.sqrt(np.maximum(a * a + b * b - 2 * a * b * cosine, 0))
    products = np.sqrt(np.maximum(a**4 + b**4 - 2 * (a * b * cosine) ** 2, 0))
    l1 = c1 * np.sqrt(dimension) * apart + c2 * np.sqrt(dimension * (dimension + 1) / 2) * products
    l2 = np.sqrt((c1 * apart) ** 2 + (c2 * products) ** 2)
    assert l1.max() * (1 - 2e-6) <= float(found.l1) <= l1.max() * 1.01
    assert l2.max() * (1 - 2e-6) <= float(found.l2) <= l2.max() * 1.01


# --- tampering -----------------------------------------------------------------------------------------

LITTLE = 1 - Fraction(1, 10**9)
TIGHT = [
    (at, where, shape)
    for at in ("result", "direction", "signs", "records", "direction_of_records")
    for where in ("pool", "each")
    for shape in ("laplace", "knorm-l2", "knorm-linf")
]


@pytest.mark.parametrize(("at", "where", "shape"), TIGHT)
def test_a_billionth_less_noise_fails(at, where, shape):
    honest = plan(at, where, shape)
    assert "do not fit together" in failed(everywhere(honest, "scale", scaled(LITTLE)))
    both = everywhere(everywhere(honest, "scale", scaled(LITTLE)), "spread", scaled(LITTLE))
    assert "further than the plan says" in failed(both)
    larger = everywhere(everywhere(honest, "scale", scaled(LITTLE)), "epsilon", scaled(1 / LITTLE))
    assert "achieved: epsilon re-derived" in failed(larger)
    larger["guarantees"][0]["achieved"]["epsilon"] = str(1 / LITTLE)
    assert "privacy: O, replacing one record" in failed(signed(larger))


@pytest.mark.parametrize("shape", ["laplace", "knorm-l2", "knorm-linf"])
def test_a_smaller_spread_of_the_objective_fails(shape):
    honest, factor = plan("objective", "pool", shape), 1 - Fraction(1, 5000)
    both = everywhere(everywhere(honest, "scale", scaled(factor)), "spread", scaled(factor))
    assert "further than the plan says" in failed(both)


@pytest.mark.parametrize("where", ["pool", "each"])
def test_a_billionth_less_gaussian_noise_fails(where):
    honest = plan("records", where, "gaussian", HONEST["delta"])
    less = everywhere(honest, "standard_deviation", scaled(LITTLE))
    assert "do not fit together" in failed(less)
    assert "further than the plan says" in failed(everywhere(less, "spread", scaled(LITTLE)))
    louder = everywhere(less, "mu", scaled(1 / LITTLE))
    assert "achieved: mu" in failed(louder)
    louder["guarantees"][0]["achieved"]["mu"] = louder["mechanism"]["executed"]["noise"][0]["mu"]
    assert "privacy" in failed(signed(louder))


def test_gaussian_noise_proves_no_pure_epsilon():
    honest = plan("records", "pool", "gaussian", HONEST["delta"])
    pure = plan("records", "pool", "laplace")
    for key in ("sites",):
        pure["mechanism"][key] = honest["mechanism"][key]
    pure["mechanism"]["executed"]["noise"] = honest["mechanism"]["executed"]["noise"]
    pure["guarantees"][0]["achieved"] = {"mu": honest["guarantees"][0]["achieved"]["mu"]}
    assert "is not shown by Gaussian noise" in failed(signed(pure))


def test_another_grid_fails():
    honest = plan("result", "pool", "laplace")
    coarse = changed(honest, ("mechanism", "executed", "grid"), lambda _: "1/1024")
    assert "another grid" in failed(signed(coarse))
    site = changed(honest, ("mechanism", "sites", 0, "grid"), lambda _: "1/1024")
    assert "statistic" in failed(signed(site))


@pytest.mark.parametrize("other", ["objective", "records", "signs"])
def test_another_statistic_under_the_same_noise_fails(other):
    honest, theirs = plan("direction", "pool", "knorm-l2"), plan(other, "pool", "knorm-l2")
    honest["mechanism"]["executed"]["route"] = theirs["mechanism"]["executed"]["route"]
    honest["mechanism"]["route"] = theirs["mechanism"]["route"]
    honest["mechanism"]["sites"][0]["at"] = theirs["mechanism"]["sites"][0]["at"]
    if other == "records":
        # of the same spread and size: that is no less private, and nothing to refuse
        assert verify(signed(honest)).ok
    else:
        failed(signed(honest))


@pytest.mark.parametrize("at", ["direction", "signs"])
def test_the_ball_of_the_estimate_is_the_one_that_is_executed(at):
    """Directions and signs are not of the spec's estimate: the plan names theirs, and runs no other."""
    from privspec.execute.statistics.executed import executed_of
    from privspec.explain.reports import explain

    honest = plan(at, "each", "duchi-l2" if at == "direction" else "laplace")
    route = honest["mechanism"]["executed"]["route"]
    wide, own = Fraction(route["estimated_within"]["radius"]), Fraction(route["within"]["radius"])
    assert wide == 10 * own
    assert f"estimated in the l1 ball of radius {wide}" in honest["mechanism"]["route"]
    assert route["name"] == honest["mechanism"]["route"]
    for reader in ("public", "auditor", "engineer"):
        assert f"estimated in the l1 ball of radius {wide}" in explain(honest, reader)
    place = ("mechanism", "executed", "route", "estimated_within", "radius")
    for forged in (str(own), str(wide + 1)):
        other = signed(changed(honest, place, lambda _, forged=forged: forged))
        assert "estimated in the ball that its name says" in failed(other)
        with pytest.raises(ValueError, match="no statistic like that"):
            executed_of(other)
    gone = changed(honest, place[:-1], lambda _: None)
    del gone["mechanism"]["executed"]["route"]["estimated_within"]
    failed(signed(gone))


def test_noise_at_the_pool_needs_somebody_who_is_trusted():
    text = HONEST["nobody"]
    for (_, where, *_), document in plans(text, also_forbidden=True).items():
        if where == "pool":
            assert "trust nobody" in failed(document)
    # a place that is only said to be each party's
    honest = plan("result", "each", "laplace", text)
    honest["mechanism"]["executed"]["each_party"] = False
    assert "trust nobody" in failed(signed(honest))


def test_what_protects_each_report_needs_noise_in_each():
    for name in ("local", "local, personal"):
        found = plans(HONEST[name])
        assert found
        assert {where for _, where, *_ in found} == {"each"}


def test_places_and_families_that_the_spec_rules_out_fail():
    text = HONEST["allowed"]
    model = load_model(Source("crowd.priv", text))
    system = Statistics().lower(model)
    allowed = {w.name for w in ways(system) if not forbidden(system, w)}
    for (at, where, shape, _), document in plans(text, also_forbidden=True).items():
        assert verify(document).ok == ((at, where, shape) == ("objective", "each", "laplace"))
    assert len(allowed) == 2


@pytest.mark.parametrize("shape", ["laplace", "knorm-l2", "knorm-linf"])
@pytest.mark.parametrize("at", ["records", "objective"])
def test_one_record_s_noise_does_not_hide_a_voter(at, shape):
    record, voter = plan(at, "pool", shape), plan(at, "pool", shape, HONEST["voter"])
    voter["mechanism"] = record["mechanism"]
    assert "further than the plan says" in failed(signed(voter))


def test_a_strict_party_is_not_hidden_by_another_s_noise():
    honest = plan("direction", "each", "laplace", HONEST["personal"])
    assert len(honest["mechanism"]["executed"]["noise"]) == 4
    for place in (honest["mechanism"]["executed"]["noise"], honest["mechanism"]["sites"]):
        place[0], place[3] = place[3], place[0]
    assert "privacy" in failed(signed(honest))
    alike = plan("direction", "each", "laplace", HONEST["personal"])
    alike["mechanism"]["executed"]["noise"] = alike["mechanism"]["executed"]["noise"][3:]
    alike["mechanism"]["sites"] = alike["mechanism"]["sites"][3:]
    assert "privacy" in failed(signed(alike))


def test_sphere_reports_need_their_epsilon_and_bound():
    honest = plan("direction_of_records", "each", "duchi-l2")
    assert "achieved" in failed(everywhere(honest, "epsilon", scaled(1 / LITTLE)))
    assert "further than the plan says" in failed(everywhere(honest, "bound", scaled(LITTLE)))
    honest["mechanism"]["executed"]["each_party"] = False
    assert "by each party, not at the pool" in failed(signed(honest))


EXECUTED = {
    "input": "beta",
    "party": "person",
    "parties": 5,
    "records": {"count": 7, "dimension": 3, "radius": "1"},
    "mean": False,
    "output": "society",
    "finish_first": True,
    "weights": ["1", "1"],
}


@pytest.mark.parametrize("key", EXECUTED)
def test_what_is_executed_is_what_the_spec_says(key):
    honest = plan("records", "pool", "laplace")
    failed(signed(changed(honest, ("mechanism", "executed", key), lambda _: EXECUTED[key])))


@pytest.mark.parametrize(
    ("key", "value"), [("count", 5), ("dimension", 2), ("radius", "2"), ("radius", None), ("radius", "99999/100000")]
)
def test_records_are_kept_to_what_the_spec_declares(key, value):
    honest = plan("records", "pool", "laplace")
    failed(signed(changed(honest, ("mechanism", "executed", "records", key), lambda _: value)))


def test_a_wider_ball_of_weights_fails():
    honest = plan("result", "pool", "laplace")
    for key, value in (("radius", "3"), ("norm", "l2")):
        wider = changed(honest, ("mechanism", "executed", "route", "within", key), lambda _, v=value: v)
        assert "another ball" in failed(signed(wider))


def test_claims_of_the_loss():
    honest = plan("result", "pool", "laplace")
    for path, value in (
        (("loss", "lower_bound"), 0.1),
        (("loss", "expression"), "E[ ||O||^2 ]"),
        (("loss", "kind"), "worst"),
        (("loss", "standard_error"), -1.0),
        (("status",), "optimal"),
    ):
        failed(signed(changed(honest, path, lambda _, v=value: v)))


def test_lines_that_such_a_plan_does_not_answer_are_not_passed_over():
    text = spec().replace("privacy:", "accuracy: E[ ||O - society||^2 ] <= 1\nprivacy:")
    with pytest.raises(SpecError, match="does not answer this line"):
        plan("result", "pool", "laplace", text)


def test_guarantees_of_another_spec_fail():
    honest = plan("result", "pool", "laplace")
    for path, value in (
        (("guarantees", 0, "epsilon"), "1/2"),
        (("guarantees", 0, "neighbours"), "replacing one voter"),
        (("guarantees", 0, "requirement"), 1),
        (("guarantees", 0, "achieved", "epsilon"), "1/2"),
        (("guarantees",), []),
    ):
        failed(signed(changed(honest, path, lambda _, v=value: v)))


ODD = (None, True, -1, 10**30, "", "1/0", "nan", "2^9999", [[]], {"a": 1})
"""Values that stand where none of them belongs."""
FREE = {"remarks", "spec", "alternatives", "because", "text", "line"}
"""Parts that other tests look after, or that say nothing that could be wrong."""


@pytest.mark.parametrize("key", [("objective", "each", "laplace", True), ("result", "pool", "gaussian", False)])
def test_broken_plans_never_end_in_a_traceback(key):
    honest = plans(HONEST["delta"])[key]
    began = time.monotonic()
    for path, value in list(leaves(honest)):
        if FREE & set(map(str, path)):
            continue
        verify(signed(removed(honest, path)))
        for odd in ODD:
            broken = signed(changed(honest, path, lambda _, v=odd: v))
            report = verify(broken)
            if path[:3] == ("mechanism", "executed", "noise") and odd != value:
                assert not report.ok, (path, odd)
        if time.monotonic() - began > 20:
            break


def test_an_edit_without_a_new_digest_fails():
    honest = plan("result", "pool", "laplace")
    assert "digest" in failed(everywhere(honest, "scale", scaled(2)) | {"digest": honest["digest"]})


@pytest.mark.parametrize("pool", ["mean(beta[voter] for voter in 1..2)", "sum(beta[voter] for voter in 1..2)"])
def test_a_pool_of_some_parties_is_not_taken_for_one_of_all(pool):
    with pytest.raises(SpecError, match="over all parties"):
        plans(spec(pool=pool))
    honest, part = plan("result", "pool", "laplace"), spec(pool=pool)
    digest = hashlib.sha256(part.encode()).hexdigest()
    honest["spec"] |= {"source": part, "sha256": digest}
    assert "nothing is the mean or the sum of beta" in failed(signed(honest))
