"""Noisy statistics before the kernel: every sensitivity is derived again, and no plan that was tampered with passes."""

import copy
import json
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import erf, exp, log
from unittest.mock import patch

import numpy as np
import pytest

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.families.decision import Infeasible
from privspec.families.family import Settings
from privspec.families.statistics import family
from privspec.families.statistics.family import Statistics, decided
from privspec.families.statistics.predict import Predicted, Prediction, forbidden, ways
from privspec.functions import probit
from privspec.kernel import judge
from privspec.kernel.changes import Anything, OfParty, Rows
from privspec.kernel.changes import Records as TableRecords
from privspec.kernel.core.reading import Refused
from privspec.kernel.laws import statistics as lemmas
from privspec.kernel.laws.statistics import STEP, Noise, statistics_of
from privspec.kernel.laws.statistics import HeldRecords as Records
from privspec.kernel.rules import derive
from privspec.kernel.statistics import largest_noise
from privspec.kernel.terms import Pick
from privspec.kernel.writing import plan_digest
from privspec.model.build import load_model
from privspec.plan import Plan

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
    return {tuple(key): document for key, document in json.loads(_plans(text, also_forbidden))}


def _anywhere(system, way, made=family.executed_of):
    """What is executed, as if the spec allowed noise of all families at all places."""
    return made(replace(system, block=replace(system.block, sites=None, families=None)), way)


@cache
def _plans(text, also_forbidden):
    model = load_model(Source("crowd.priv", text))
    system = Statistics().lower(model)
    found = {}
    for way in ways(system):
        if way.executable and (also_forbidden or not forbidden(system, way)):
            ranking = (Predicted(way, 0.5, 0.01),)
            prediction = Prediction(ranking, 25, system.block.parties, 0.1)
            key = (way.route.at, "each" if way.each_party else "pool", way.noise[0].shape, way.finish_first)
            with patch.object(family, "forbidden", lambda *_: ""), patch.object(family, "executed_of", _anywhere):
                found[key] = decided(model, system, prediction, Settings(), 0.0).document()
    return json.dumps(list(found.items()))


def plan(at, where, shape, text=None, finish_first=False, **keywords):
    return plans(text or spec(), **keywords)[at, where, shape, finish_first]


def signed(document):
    body = {key: value for key, value in document.items() if key != "digest"}
    return body | {"digest": plan_digest(body)}


def changed(document, path, change):
    """A signed copy with the value at a path replaced; `change` is a value, or a function of what stands there."""
    out = copy.deepcopy(document)
    inner = out
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = change(inner[path[-1]]) if callable(change) else change
    return signed(out)


def leaves(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None or not value:
        yield path, value
    else:
        for key, inner in items:
            yield from leaves(inner, (*path, key))


def scaled(factor):
    """A number of a plan times a factor, exactly."""
    return lambda text: str(Fraction(text) * factor)


def louder(document, factor, key="scale"):
    """Every site with noise of another size."""
    for i in range(len(document["mechanism"]["sites"])):
        document = changed(document, ("mechanism", "sites", i, "parameters", key), scaled(factor))
    return document


def refused(document):
    report = judge(json.dumps(document))
    assert not report.ok
    assert report.mechanism is None
    return "\n".join(str(claim) for claim in report.failed)


BLOCK = ("problem", "blocks", 0)
HONEST = {
    "record": spec(),
    "voter": spec("O is 1-DP wrt V, replacing one voter"),
    "delta": spec("O is (1, 1e-6)-DP wrt V, replacing one record"),
    "rho": spec("O is 0.1-zCDP wrt V, replacing one voter"),
    "mu": spec("O is 0.5-GDP wrt V, replacing one record"),
    "renyi": spec("O is (8, 0.5)-RDP wrt V, replacing one voter"),
    "nobody": spec(options="    trust nobody"),
    "two units": spec("O is 1-DP wrt V, replacing one record", "O is 10-DP wrt V, replacing one voter"),
    "personal": spec("O is eps[voter]-DP wrt V[voter], replacing one voter"),
    "local": spec("O is 1-LDP wrt V"),
    "local, personal": spec("O is eps[voter]-LDP wrt V[voter]"),
    "one party": SPEC.replace("parties: voter in 1..N", "").replace("[voter]", "").format(
        records="l2_ball(1, d)^n",
        ball="l1_ball(B, d)",
        pool="1 * beta",
        privacy="    O is 1-DP wrt V, replacing everything",
        options="",
    ).replace("    eps = [0.5, 1, 2, 2]\n", "").replace("    society = 1 * beta\n", "").replace(
        "    intermediate society\n", ""
    ).replace("mean(V.weights for voter)", "V.weights"),
    "any size": spec(records="real^(n, d)"),
    "wide": spec(records="l2_ball(5/2, d)^n", ball="l2_ball(B, d)", pool="sum(beta[voter] for voter)"),
    "allowed": spec(options="    noise at objective(beta)\n    noise family laplace"),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_honest_plans_hold(name):
    found = plans(HONEST[name])
    assert found
    for key, document in found.items():
        report = judge(json.dumps(document))
        assert report.ok, (key, *map(str, report.failed))
        assert {"view", "rounding", "privacy", "loss"} <= {claim.name for claim in report.claims}
    assert Plan(document).verify().ok


def test_what_noise_reaches_is_told_for_each_requirement():
    found = plan("records", "pool", "laplace", HONEST["two units"])
    record, voter = (Fraction(g["achieved"]["epsilon"]) for g in found["guarantees"])
    assert voter == 6 * record
    assert record <= 1
    assert voter <= 10


# --- sensitivities -------------------------------------------------------------------------------------


def test_sensitivities_are_those_of_the_formulas():
    found = statistics_of(Records(7, 9, Fraction(2), "l1", Fraction(3)))
    assert found["result"].record == found["result"].party
    assert found["result"].record[:2] == (6, 6)
    assert found["signs"].record == (18, 6, 2)
    assert found["direction"].record[:2] == (6, 2)
    assert found["records"].record[:2] == (12, 4)
    assert found["records"].party[1] == 28
    assert found["objective"].party[0] == 7 * found["objective"].record[0]
    assert found["records"].length == 14
    assert statistics_of(Records(7, 9, None, "l2", Fraction(3)))["result"].record[:2] == (18, 6)
    assert "objective" not in statistics_of(Records(7, 9, None, "l1", Fraction(3)))


def test_constants_are_those_that_are_computed_with():
    assert (lemmas.SLOPE, lemmas.CURVE) == (probit.SLOPE, probit.CURVE)
    assert int(probit.CURVE * probit.PAIR * 2**20) * lemmas.STEP == lemmas.PAIR


@pytest.mark.parametrize("dimension", [1, 2, 10, 23])
@pytest.mark.parametrize("radius", [Fraction(1, 3), Fraction(1), Fraction(3)])
def test_the_objective_by_brute_force(dimension, radius):
    """Lengths and angle of two records on a mesh, Cauchy-Schwarz as in the note: the closed form is never exceeded."""
    found = statistics_of(Records(1, dimension, radius, "l1", Fraction(1)))["objective"].record
    c1, c2, r = np.sqrt(2 / np.pi), 1 / np.pi, float(radius)
    a, b, cosine = np.meshgrid(np.linspace(0, r, 61), np.linspace(0, r, 61), np.cos(np.linspace(0, np.pi, 241)))
    apart = np.sqrt(np.maximum(a * a + b * b - 2 * a * b * cosine, 0))
    products = np.sqrt(np.maximum(a**4 + b**4 - 2 * (a * b * cosine) ** 2, 0))
    l1 = c1 * np.sqrt(dimension) * apart + c2 * np.sqrt(dimension * (dimension + 1) / 2) * products
    l2 = np.sqrt((c1 * apart) ** 2 + (c2 * products) ** 2)
    assert l1.max() * (1 - 2e-6) <= float(found[0]) <= l1.max() * 1.01
    assert l2.max() * (1 - 2e-6) <= float(found[1]) <= l2.max() * 1.01


@pytest.mark.parametrize("at", ["result", "direction", "signs", "records", "objective", "direction_of_records"])
def test_data_come_close_to_the_sensitivities_and_never_exceed_them(at):
    """A counter-test of the lemma: a tenth less would be false of these data."""
    found = statistics_of(Records(1, 2, Fraction(1), "l1", Fraction(2)))[at]
    ball = probit.L1Ball(Fraction(2), 2)
    (route,) = (r for r in probit.probit_routes(probit.Records(1, 2, Fraction(1)), ball) if r.at == at)
    angles = np.arange(64) * 2 * np.pi / 64
    one = np.trunc(np.stack([np.cos(angles), np.sin(angles)], axis=1) * (1 - 1e-6) * 2**20).astype(np.int64)
    statistics = route.exact(one[:, None, :]) / 2**20
    apart = statistics[:, None, :] - statistics[None, :, :]
    reached = (np.abs(apart).sum(axis=2).max(), np.sqrt((apart**2).sum(axis=2)).max(), np.abs(apart).max())
    assert all(value <= float(bound) for value, bound in zip(reached, found.record, strict=True))
    assert max(value / float(bound) for value, bound in zip(reached, found.record, strict=True)) > 0.9


# --- too little noise ----------------------------------------------------------------------------------

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
    less = louder(honest, LITTLE)
    assert "the plan states epsilon" in refused(less)
    less = changed(less, ("guarantees", 0, "achieved", "epsilon"), str(1 / LITTLE))
    assert "privacy" in refused(less)
    assert judge(json.dumps(louder(honest, 1 / LITTLE))).ok


@pytest.mark.parametrize("shape", ["laplace", "knorm-l2", "knorm-linf"])
def test_less_noise_on_the_objective_fails(shape):
    less = louder(plan("objective", "pool", shape), 1 - Fraction(1, 5000))
    assert "privacy" in refused(changed(less, ("guarantees", 0, "achieved", "epsilon"), "1001/1000"))


@pytest.mark.parametrize("where", ["pool", "each"])
@pytest.mark.parametrize("name", ["delta", "rho", "mu", "renyi"])
def test_a_billionth_less_gaussian_noise_fails(where, name):
    honest = plan("records", where, "gaussian", HONEST[name])
    less = louder(honest, LITTLE, "standard_deviation")
    assert "the plan states mu" in refused(less)
    less = changed(less, ("guarantees", 0, "achieved", "mu"), lambda mu: str(Fraction(mu) / LITTLE))
    assert "privacy" in refused(less)


def test_gaussian_noise_proves_no_pure_epsilon():
    honest, pure = plan("records", "pool", "gaussian", HONEST["delta"]), plan("records", "pool", "laplace")
    pure["mechanism"] = honest["mechanism"]
    pure["guarantees"][0] |= {key: honest["guarantees"][0][key] for key in ("achieved", "because")}
    assert "privacy" in refused(signed(pure))
    sites = honest["mechanism"]["sites"]
    personal = plan("records", "each", "laplace", HONEST["personal"])
    personal["mechanism"]["sites"][0] = sites[0] | {"at": "records(beta)"}
    refused(signed(personal))


@pytest.mark.parametrize("shape", ["laplace", "knorm-l2", "knorm-linf"])
@pytest.mark.parametrize("at", ["records", "objective"])
def test_one_record_s_noise_does_not_hide_a_voter(at, shape):
    record, voter = plan(at, "pool", shape), plan(at, "pool", shape, HONEST["voter"])
    voter["mechanism"] = record["mechanism"]
    assert "replacing one voter" in refused(signed(voter))


def test_a_strict_party_is_not_hidden_by_another_s_noise():
    honest = plan("direction", "each", "laplace", HONEST["personal"])
    sites = honest["mechanism"]["sites"]
    assert len(sites) == 4
    assert "privacy" in refused(changed(honest, ("mechanism", "sites"), [sites[3], *sites[1:3], sites[0]]))
    alike = changed(honest, ("mechanism",), lambda stated: {key: stated[key] for key in stated if key != "weights"})
    assert "privacy" in refused(changed(alike, ("mechanism", "sites"), sites[3:]))
    assert "does not list" in refused(changed(honest, ("mechanism", "sites"), sites[:3]))
    # one amount for all that is the mean of theirs
    each = (("problem", "obligations", 0, "measure", "each"), lambda each: each[1:])
    assert "another number of parties" in refused(changed(honest, *each))


def test_sphere_reports_need_their_epsilon_and_bound():
    honest = plan("direction_of_records", "each", "duchi-l2")
    assert "privacy" in refused(louder(honest, 1 / LITTLE, "epsilon"))
    assert "would be biased" in refused(louder(honest, LITTLE, "bound"))
    pooled = changed(honest, ("mechanism", "where"), "pool")
    for i in range(len(pooled["mechanism"]["sites"])):
        pooled = changed(pooled, ("mechanism", "sites", i, "at"), "direction_of_records(society)")
    assert "are for noise at each party" in refused(pooled)


# --- who sees what -------------------------------------------------------------------------------------


def test_noise_at_the_pool_needs_somebody_who_is_trusted():
    for (_, where, *_), document in plans(HONEST["nobody"], also_forbidden=True).items():
        assert judge(json.dumps(document)).ok == (where == "each")
        if where == "pool":
            assert "trust nobody" in refused(document)


def test_messages_are_not_hidden_from_an_observer():
    honest = plan("records", "each", "laplace", HONEST["nobody"])
    assert "no lemma covers" in refused(changed(honest, ("problem", "obligations", 0, "seen"), []))
    assert "does not list" in refused(changed(honest, ("mechanism", "sites"), []))


def test_what_protects_each_report_needs_noise_in_each():
    for name in ("local", "local, personal"):
        found = plans(HONEST[name], also_forbidden=True)
        assert {where for _, where, *_ in found} == {"each", "pool"}
        for (_, where, *_), document in found.items():
            assert judge(json.dumps(document)).ok == (where == "each")


def test_places_and_families_that_the_spec_rules_out_fail():
    for (at, where, shape, _), document in plans(HONEST["allowed"], also_forbidden=True).items():
        assert judge(json.dumps(document)).ok == ((at, where, shape) == ("objective", "each", "laplace"))


def test_a_voter_with_two_inputs_is_not_half_protected():
    """Where a voter holds two inputs, a unit moves both: no lemma is about one of them alone."""
    honest = plan("records", "pool", "laplace", HONEST["voter"])
    data = {"name": "W", "domain": "real^3", "rule": "map", "party": "voter", "line": 8}
    two = changed(honest, ("problem", "data"), lambda held: [*held, data])
    two = changed(two, ("problem", "obligations", 0, "wrt"), ["V", "W"])
    two = changed(two, ("problem", "obligations", 0, "units", 0, "inputs"), ["V", "W"])
    two = changed(two, ("guarantees", 0, "wrt"), ["V", "W"])
    assert "no lemma covers" in refused(two)
    unit = ("problem", "obligations", 0, "units", 0)
    for key, value in (("count", 2), ("adding", True), ("kind", "entry"), ("party", "person")):
        assert "no lemma covers" in refused(changed(honest, (*unit, key), value))
    assert refused(changed(honest, unit[:-1], lambda units: [*units, *units]))


# --- another statistic, other data ---------------------------------------------------------------------


@pytest.mark.parametrize("other", ["objective", "records", "signs"])
def test_another_statistic_under_the_same_noise_fails(other):
    honest = plan("direction", "pool", "knorm-l2")
    found = changed(honest, ("mechanism", "route"), other)
    found = changed(found, ("mechanism", "sites", 0, "at"), f"{other}(society)")
    # in a unit ball these two move by no more than a direction does: no less private, nothing to refuse
    assert judge(json.dumps(found)).ok == (other in ("records", "objective"))


PROBLEM = {
    "version": 2,
    "function": "median",
    "grid": "1/1024",
    "source": "W",
    "party": "person",
    "parties": 0,
    "count": 0,
    "dimension": 4,
    "radius": "2",
    "within": {"norm": "l1", "radius": "4"},
    "each": "gamma",
    "mean": 1,
    "output": "P",
    "routes": [],
    "sites": ["society"],
    "families": ["gaussian"],
}


@pytest.mark.parametrize("key", PROBLEM)
def test_another_block_needs_another_mechanism(key):
    """A problem that was forged with its plan: the kernel refuses what it can, and elaborating again the rest."""
    honest = plan("result" if key == "within" else "objective", "each", "laplace")
    document = changed(honest, (*BLOCK, key), PROBLEM[key])
    refused(document)
    assert not Plan(document).verify().ok


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("radius",), "1/2"),
        (("count",), 5),
        (("parties",), 5),
        (("mean",), False),
        (("loss", "seed"), 1),
        (("loss", "crowds"), 10**6),
        (("loss", "model"), "normal"),
        (("loss", "expression"), "E[ ||O||^2 ]"),
        (("loss", "definitions"), ["O = 0"]),
    ],
)
def test_a_forged_problem_is_not_that_of_the_spec(path, value):
    """What a smaller clip bound, another seed or another count would make easier to promise."""
    honest = plan("result", "each", "laplace")
    document = changed(honest, (*BLOCK, *path), value)
    if path == ("loss", "expression"):
        document = changed(document, ("loss", "expression"), value)
    report = Plan(document).verify()
    assert not report.ok


def test_directions_and_signs_are_of_estimates_in_a_ball_of_their_own():
    honest = plan("direction", "each", "duchi-l2")
    routes = honest["problem"]["blocks"][0]["routes"]
    assert [r["at"] for r in routes if r["estimated_within"]] == ["direction", "signs"]
    for forged in (None, {"norm": "l1", "radius": "2"}, {"norm": "l2", "radius": "20"}):
        refused(changed(honest, (*BLOCK, "routes", 1, "estimated_within"), forged))


def test_weights_are_public_numbers_one_a_party():
    honest = plan("direction", "each", "laplace", HONEST["personal"])
    for weights in (["1"], ["-1", "1", "1", "1"], [1.5, 1, 1, 1]):
        refused(changed(honest, ("mechanism", "weights"), weights))
    pooled = plan("direction", "pool", "laplace", HONEST["personal"])
    for key, value in (("weights", ["1", "1", "1", "1"]), ("finish_first", True)):
        assert "are for noise at each party" in refused(changed(pooled, ("mechanism", key), value))


# --- what is said of the loss, and the rest ------------------------------------------------------------


def test_claims_of_the_loss():
    honest = plan("result", "pool", "laplace")
    for path, value in (
        (("loss", "lower_bound"), 0.1),
        (("loss", "relative_gap"), 0.0),
        (("loss", "expression"), "E[ ||O||^2 ]"),
        (("loss", "kind"), "worst"),
        (("loss", "among"), "all mechanisms"),
        (("loss", "standard_error"), -1.0),
        (("loss", "crowds"), 401),
        (("loss", "crowds"), 0),
        (("loss", "parties"), 0),
        (("loss", "parties"), 10**6),
        (("status",), "optimal"),
        (("accuracy",), [{}]),
        (("fairness",), []),
        (("claims",), {"kind": "simulated"}),
    ):
        refused(changed(honest | {"fairness": None}, path, value))


def test_a_simulated_loss_is_never_said_to_be_proved():
    report = judge(json.dumps(plan("result", "pool", "laplace")))
    (loss,) = (claim for claim in report.claims if claim.name == "loss")
    assert loss.status == "tested"


def test_lines_that_such_a_plan_does_not_answer_are_not_passed_over():
    text = spec().replace("privacy:", "accuracy: E[ ||O - society||^2 ] <= 1\nprivacy:")
    with pytest.raises(SpecError, match="bounds the largest error"):
        plan("result", "pool", "laplace", text)


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        ("adding or removing one voter", "a crowd of one may become one of two"),
        ("replacing up to 2 voters", "is known where one unit changes"),
    ],
)
def test_how_many_there_are_is_no_secret(unit, said):
    with pytest.raises(SpecError, match=said):
        plans(spec(f"O is 1-DP wrt V, {unit}"))


# --- lines on the error --------------------------------------------------------------------------------

OFTEN = "||O - society||_inf <= {most} with probability {often}"


def within(most, often="0.95"):
    return spec("O is 1-DP wrt V, replacing one voter").replace(
        "privacy:", f"accuracy: {OFTEN.format(most=most, often=often)}\nprivacy:"
    )


@pytest.mark.parametrize("size", [1, 3, 10])
@pytest.mark.parametrize("often", [Fraction(1, 2), Fraction(19, 20), Fraction(999, 1000)])
@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
def test_the_largest_of_several_draws_is_as_far_off_as_is_said(size, often, shape):
    """Against the sums over the grid of the discrete law, and the Gaussian law; and it is no more than a step loose."""
    scale, step = Fraction(3, 7), float(STEP)
    most = largest_noise(Noise(shape, scale, None), size, often)
    reached = []
    for far in (float(most), float(most) - 4 * step):
        k = int(far / step + 1e-6)
        one = erf((k + 0.5) * step / float(scale) / 2**0.5)
        if shape == "laplace":
            q = exp(-step / float(scale))
            one = 1 - 2 * q ** (k + 1) / (1 + q)
        reached.append(one**size)
    assert reached[1] < float(often) <= reached[0]


def test_lines_on_the_largest_error_are_met_or_refused():
    honest = plan("result", "pool", "laplace", within(5))
    report = judge(json.dumps(honest))
    (line,) = (claim for claim in report.claims if claim.name == "accuracy")
    (stated,) = honest["accuracy"]
    assert report.ok and line.holds and stated["value"] == pytest.approx(log(1 / (1 - 0.95 ** (1 / 3))), rel=1e-5)
    for path, value in (
        (("accuracy", 0, "value"), stated["value"] * 0.999),
        (("accuracy",), []),
        ((*BLOCK, "limits", 0, "probability"), "96/100"),
        ((*BLOCK, "limits", 0, "probability"), "1"),
        ((*BLOCK, "limits", 0, "most"), "3"),
        ((*BLOCK, "limits"), []),
    ):
        refused(changed(honest, path, value))
    other = plan("signs", "pool", "laplace", spec("O is 1-DP wrt V, replacing one voter"))
    asked = changed(other, (*BLOCK, "limits"), honest["problem"]["blocks"][0]["limits"])
    assert "how far it leads is not known" in str(judge(json.dumps(asked)).failed)


def test_ways_that_miss_a_line_or_are_not_known_to_meet_it_are_not_taken():
    assert {key[:3] for key in plans(within(6))} == {("result", "pool", "laplace")}
    system = Statistics().lower(load_model(Source("crowd.priv", within("0.1"))))
    reasons = {forbidden(system, way) for way in ways(system) if way.route.at == "result" and not way.each_party}
    assert any("misses line" in reason for reason in reasons) and any("is not known" in reason for reason in reasons)
    assert isinstance(Statistics().decide(system.model, system, Settings()), Infeasible)


@pytest.mark.parametrize(
    "line",
    [
        "||O - society||_2 <= 1 with probability 0.9",
        "||O - society||_inf <= 1",
        "||O||_inf <= 1 with probability 0.9",
        "|O[j] - society[j]| <= 1 for j in 1..3 with probability 0.9",
    ],
)
def test_other_errors_of_a_statistic_are_refused(line):
    with pytest.raises(SpecError):
        plans(spec().replace("privacy:", f"accuracy: {line}\nprivacy:"))


@pytest.mark.parametrize("pool", ["mean(beta[voter] for voter in 1..2)", "sum(beta[voter] for voter in 1..2)"])
def test_a_pool_of_some_parties_is_not_taken_for_one_of_all(pool):
    with pytest.raises(SpecError, match="over all parties"):
        plans(spec(pool=pool))


def test_guarantees_of_another_spec_fail():
    honest = plan("result", "pool", "laplace")
    for path, value in (
        (("guarantees", 0, "epsilon"), "1/2"),
        (("guarantees", 0, "neighbours"), "replacing one voter"),
        (("guarantees", 0, "requirement"), 1),
        (("guarantees", 0, "achieved", "epsilon"), "1/2"),
        (("guarantees", 0, "achieved"), {"mu": "1"}),
        (("guarantees", 0, "achieved"), {"epsilon": "1", "delta": "0"}),
        (("guarantees", 0, "because"), ["post-processing"]),
        (("guarantees",), []),
    ):
        refused(changed(honest, path, value))


ODD = (None, True, -1, 10**30, "1/0", [[]], "1" * 5000)
"""Values that stand where none of them belongs."""
WORDS = {"spec", "alternatives", "remarks", "assumptions", "text", "line", "name", "domain", "definitions", "public"}
"""Parts that other tests look after, or words that no figure rests on."""
STATED = {("loss", key) for key in ("value", "standard_error", "crowds", "parties", "without_noise")}
"""Figures of a simulation."""


@pytest.mark.parametrize("key", [("objective", "each", "laplace", True), ("result", "pool", "gaussian", False)])
def test_broken_plans_are_refused_with_a_reason(key):
    honest = plans(HONEST["delta"])[key]
    for path, value in leaves({k: v for k, v in honest.items() if k != "digest"}):
        if WORDS & set(map(str, path)):
            continue
        for odd in ODD:
            if type(odd) is type(value) and odd == value:
                continue
            report = judge(json.dumps(changed(honest, path, odd)))
            louder = path[-1] in ("scale", "standard_deviation") and odd == 10**30
            harmless = path in STATED or louder or (path[0] == "problem" and report.ok)
            assert not report.ok or harmless, (path, odd)
            assert all(len(claim.text) < 400 for claim in report.failed)


def test_an_edit_without_a_new_digest_fails():
    honest = plan("result", "pool", "laplace")
    assert "digest" in refused(louder(honest, 2) | {"digest": honest["digest"]})


# --- what the rule lets through ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", lemmas.SHAPES)
def test_records_of_one_party_move_its_own_message_alone(shape: str) -> None:
    """Each record moves the statistic by itself; the least noise counts where any party may change."""
    statistic = statistics_of(Records(3, 2, Fraction(1), "l2", Fraction(2)))["records"]
    bound = statistic.length if shape == "duchi-l2" else None
    noises = tuple(lemmas.Noise(shape, Fraction(size), bound) for size in (4, 1, 2))
    term = Pick("beta", lemmas.NoisyStatistic(statistic, noises))
    seen = frozenset({"beta"})
    norm = lemmas.SHAPES[shape].norm
    amounts = []
    for party, noise in enumerate(noises):
        losses = [derive(term, seen, OfParty(many, party)).loss for many in (0, 1, 2, 3, 4)]
        found = [loss.mu_squared or sum(loss.epsilons() or [Fraction(0)]) for loss in losses]
        if norm is None:
            assert set(found) == {noise.size}
        else:
            one = statistic.record[norm] / noise.size
            each = [min(many * one, statistic.party[norm] / noise.size) for many in (0, 1, 2, 3, 4)]
            assert found == [amount**2 if lemmas.SHAPES[shape].normal else amount for amount in each]
        amounts.append(found[1])
    whole = derive(term, seen, OfParty(1)).loss
    assert max(amounts) == (whole.mu_squared or sum(whole.epsilons() or []))
    for change in (Rows(((0, 1),)), TableRecords(1, False, 1), Anything(), OfParty(1, 3), OfParty(1, -1), OfParty(-1)):
        with pytest.raises(Refused):
            derive(term, seen, change)


def test_noise_that_is_not_known_is_refused() -> None:
    statistic = statistics_of(Records(3, 2, Fraction(1), "l2", Fraction(2)))["records"]
    for shape, size, bound in (
        ("laplace", 0, None),
        ("laplace", -1, None),
        ("uniform", 1, None),
        ("duchi-l2", 1, None),
    ):
        with pytest.raises(Refused):
            lemmas.Noise(shape, Fraction(size), bound)
    laplace, normal = (lemmas.Noise(shape, Fraction(1), None) for shape in ("laplace", "gaussian"))
    short = lemmas.Noise("duchi-l2", Fraction(1), statistic.length / 2)
    for noises in ((), (laplace, normal), (short,)):
        with pytest.raises(Refused):
            lemmas.NoisyStatistic(statistic, noises)
