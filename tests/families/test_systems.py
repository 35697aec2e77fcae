"""Systems: parts of several families under one line; the split that is found, what is executed, what is refused."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privspec.api import Problem
from privspec.core.diagnostics import DataError, SpecError
from privspec.core.spans import Source
from privspec.families.decision import sealed
from privspec.families.family import Settings, compiler_of
from privspec.families.gaussian.family import Linear
from privspec.families.systems.family import _Solver
from privspec.families.systems.splits import Line, Lines, Split, rounded_down
from privspec.kernel.core.problem import PlanUnderCheck
from privspec.kernel.core.reading import JsonNode, read
from privspec.kernel.measures import APPROXIMATE, GAUSSIAN, PURE, ZERO_CONCENTRATED, Measure
from privspec.kernel.systems import SystemRules, shares_of
from privspec.manual import template_text
from privspec.model.build import load_model
from privspec.model.graph import Model
from privspec.noise.samplers import SimulationRandomness
from privspec.pipeline import Request, check, solve
from privspec.plan import Plan
from privspec.problem.systems import parts_of, reads
from tests.plans import components, resign, solved

PRIVACY = "all outputs are (1, 1e-6)-DP wrt all inputs, replacing one person"


def city(privacy: str = PRIVACY, loss: str = "", options: str = "", more: str = "") -> str:
    """A mean, a count and a vote of five people."""
    return f"""\
spec city
parties: person in 1..5
variables:
  input pay[person] in [0, 2]
  input works[person] in {{0, 1}}
  input vote[person] in {{north, south}}
  intermediate winner
  intermediate said
  output mean_pay
  output working in 0..5
  output seat in {{north, south}}
background:
  said = sum(works)
  said ~ uniform
  winner = random_dictator(vote)
{more}
loss: {loss or "E[ (mean_pay - mean(pay))^2 ] + E[ |working - said| ] + worst[ total_variation(seat, winner) ]"}
privacy:
  {privacy}
{options}
"""


def model_of(text: str) -> Model:
    return load_model(Source("city.priv", text))


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solve(Request(Source("city.priv", city())))


DATA: dict[str, Any] = {
    "pay": [0.5, 1.0, 2.0, 0.0, 1.5],
    "works": [1, 0, 1, 1, 0],
    "vote": ["north", "south", "north", "north", "south"],
}


def request_of(template: str) -> Request:
    """A template with its files."""
    return Request(Source(f"{template}.priv", template_text(template)), base=Path(__file__).parents[2] / "specs")


def shares_of_plan(plan: Plan) -> list[tuple[str, Fraction]]:
    """The measure and amount that each part spends of the one line."""
    found = [part["shares"] for part in components(plan.document)]
    return [(share["name"], Fraction(share["amounts"][0][1])) for (share,) in found]


def test_outputs_are_parts_of_their_families() -> None:
    parts = parts_of(model_of(city()))
    assert [(part.outputs, part.family.form, part.lines) for part in parts] == [
        (("mean_pay",), "linear", (0,)),
        (("working",), "table", (0,)),
        (("seat",), "table", (0,)),
    ]
    assert [[node.name for node in part.model.inputs] for part in parts] == [["pay"], ["works"], ["vote"]]


@pytest.mark.parametrize("template", ["two_observers", "linear_queries", "marginals", "crowd_vldp"])
def test_what_one_family_takes_is_no_system(template: str) -> None:
    assert not reads(check(request_of(template)))


def test_outputs_of_one_line_of_the_loss_stay_together() -> None:
    loss = "E[ (mean_pay - mean(pay))^2 ] + E[ |working - said| + mismatch(seat, winner) ]"
    text = city(loss=loss, more="vote ~ uniform")
    assert [part.outputs for part in parts_of(model_of(text))] == [("mean_pay",), ("working", "seat")]


def test_a_system_is_solved_verified_and_told(plan: Plan) -> None:
    found = plan.verify()
    assert found.ok, found
    assert plan.status == "feasible"
    assert 0.5 * plan.loss.value < plan.loss.lower_bound < plan.loss.value
    assert [measure for measure, _ in shares_of_plan(plan)] == ["epsilon-DP"] * 3
    spent = sum(amount for _, amount in shares_of_plan(plan))
    assert 1 - Fraction(1, 10**5) <= spent <= 1 + Fraction(1, 10**4)  # delta pays for a little more than 1
    parts = components(plan.document)
    assert plan.loss.value == pytest.approx(sum(part["loss"]["value"] for part in parts), rel=1e-12)
    for reader in ("public", "auditor", "engineer"):
        page = plan.explain(reader)
        assert "cannot describe" not in page
    assert "0." in plan.explain("auditor")
    assert "seat spends" in plan.explain("auditor")


def test_the_split_is_better_than_others(plan: Plan) -> None:
    """A thousand splits read off losses that were solved on a grid: none is better by more than what the grid hides."""
    model = model_of(city())
    line = Lines((Line(APPROXIMATE, {"epsilon": Fraction(1), "delta": Fraction(1, 10**6)}),))
    system = compiler_of(model).lower(model)
    solver = _Solver(model, system, Settings(alternatives=False))
    curves = [solver.curves(i)[PURE] for i in range(3)]
    for curve in curves:
        for k in range(1, 25):
            curve.add(Fraction(k, 24))
    random, fitted = np.random.default_rng(3), [curve.fitted() for curve in curves]
    best = plan.loss.value
    for weights in random.dirichlet([1, 1, 1], 1000):
        amounts = line.scaled((PURE,) * 3, [float(w) for w in weights])
        assert line.allow((PURE,) * 3, amounts)
        if min(amounts) >= Fraction(1, 24):
            loss = sum(at(float(a)) for at, a in zip(fitted, amounts, strict=True))
            assert loss >= best * (1 - 1e-4)


@pytest.mark.parametrize(
    ("measure", "asked"),
    [
        (PURE, {"epsilon": Fraction(1)}),
        (APPROXIMATE, {"epsilon": Fraction(1), "delta": Fraction(1, 10**6)}),
        (ZERO_CONCENTRATED, {"rho": Fraction(1, 2)}),
        (GAUSSIAN, {"mu": Fraction(1)}),
    ],
)
def test_the_largest_split_of_a_direction_is_allowed_and_no_larger_one(
    measure: Measure, asked: dict[str, Fraction]
) -> None:
    line = Lines((Line(measure, asked),))
    kinds = (PURE, PURE) if measure is PURE else (PURE, GAUSSIAN)
    amounts = line.scaled(kinds, (1.0, 0.5))
    assert line.allow(kinds, amounts)
    assert not line.allow(kinds, [a * (1 + Fraction(1, 10**5)) for a in amounts])
    assert line.about(kinds, (1.0, 0.5)) == pytest.approx(float(amounts[0]), rel=1e-5)


@pytest.mark.parametrize("value", [1.0, 0.123456789, 3e-9, 12345678.9])
def test_shares_are_rounded_down(value: float) -> None:
    found = rounded_down(value)
    assert value * (1 - 1e-6) <= found <= Fraction(value)


@pytest.mark.parametrize("amount", ["1-DP", "0.5-zCDP", "1-GDP"])
def test_other_measures_are_shared(amount: str) -> None:
    plan = solve(Request(Source("city.priv", city(PRIVACY.replace("(1, 1e-6)-DP", amount)))))
    assert plan.verify().ok
    assert len(shares_of_plan(plan)) == 3


def test_a_line_of_one_part_is_that_parts_own() -> None:
    own, shared = "mean_pay is 1-GDP wrt pay, replacing one person", "(working, seat) is 1-DP wrt (works, vote), "
    lines = f"{own}\n  {shared}replacing one person"
    plan = solve(Request(Source("city.priv", city(lines))))
    assert plan.verify().ok
    assert [name for name, _ in shares_of_plan(plan)] == [GAUSSIAN.name, PURE.name, PURE.name]
    assert shares_of_plan(plan)[0] == (GAUSSIAN.name, Fraction(1))
    assert sum(amount for _, amount in shares_of_plan(plan)[1:]) <= 1


def test_a_run_releases_all_parts_and_debits_once(plan: Plan, tmp_path: Path) -> None:
    release = plan.run(DATA, ledger=tmp_path / "ledger.db", new_ledger=True)
    assert set(release.values) == {"mean_pay", "working", "seat"}
    assert release.private
    events = json.loads(json.dumps(release.to_json()))["ledger"]["event"]
    assert events == 3  # created, limited, debited
    assert set(release.labels) == {"mean_pay", "working", "seat"}


def test_draws_follow_the_parts(plan: Plan) -> None:
    """Over 100 seeded releases: the mean is unbiased, and words are those of the spec."""
    means = []
    for seed in range(100):
        release = plan.run(DATA, randomness=SimulationRandomness(seed))
        means.append(float(np.ravel(release.values["mean_pay"])[0]))
        assert str(np.ravel(release.values["seat"])[0]) in ("north", "south")
    parts = components(plan.document)
    deviation = parts[0]["loss"]["value"] ** 0.5
    assert abs(np.mean(means) - 1.0) < 6 * deviation / 100**0.5


def test_data_of_no_part_are_refused(plan: Plan) -> None:
    with pytest.raises(DataError, match="PS0801"):
        plan.run({**DATA, "age": [1]}, randomness=SimulationRandomness(1))
    with pytest.raises(DataError, match="PS0801"):
        plan.run({"pay": DATA["pay"]}, randomness=SimulationRandomness(1))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (city(options="options: noise family laplace"), "noise families"),
        (city(options="options: trust nobody"), "tables at each party"),
        (city(PRIVACY.replace("(1, 1e-6)-DP", "(2, 1)-RDP")), "RDP shared"),
    ],
)
def test_what_systems_cannot_say_is_refused(text: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        solve(Request(Source("city.priv", text)))
    assert any(words in d.message or words in (d.help or "") for d in caught.value.diagnostics), (
        caught.value.diagnostics
    )


SHARED = """\
spec shared
parties: p in 1..40
variables:
  input x[p] in [0, 1]
  input y[p] in {0, 1}
  choose e1 in [0, inf)
  choose e2 in [0, inf)
  output S
  output C
loss: E[ (S - mean(x[p] for p))^2 ] + E[ (C - mean(y[p] for p))^2 ]
privacy:
  S is e1-DP wrt x, replacing one p
  C is e2-DP wrt y, replacing one p
  (S, C) is (1, 1e-6)-DP wrt (x, y), replacing one p
options: trust secure_sum(colluding = 5)
"""


def test_parts_may_be_secure_sums_of_the_same_parties(tmp_path: Path) -> None:
    """Each part bears its share against the same coalition, which sees what it holds of the noise of both."""
    plan = solve(Request(Source("shared.priv", SHARED)))
    report = plan.verify()
    assert report.ok
    assert sum(", and 5 shares of each" in claim.text for claim in report.claims) == 4
    data = {"x": np.linspace(0, 1, 40), "y": np.arange(40) % 2}
    release = plan.run(data, randomness=SimulationRandomness(1), ledger=tmp_path / "p.db", new_ledger=True)
    assert {name: float(release[name]) for name in ("S", "C")} == pytest.approx({"S": 0.5, "C": 0.5}, abs=1.5)
    forged = json.loads(plan.to_json())
    for part in components(forged):
        part["shares"][0]["amounts"] = part["shares"][1]["amounts"] = [["epsilon", "1/4"]]
    assert not Plan(sealed({k: v for k, v in forged.items() if k != "digest"})).verify().ok


def test_check_says_what_a_system_means() -> None:
    from privspec.problem.elaborate import elaborate
    from privspec.problem.words import words

    said = words(elaborate(check(Request(Source("city.priv", city())))))
    assert any("in 3 parts with independent noise: mean_pay | working | seat" in line for line in said)


GROUPS = """\
spec groups
variables:
  input people in table(sex in {F, M}, study in 0..1, hours in 0..5)^100
  output totals
  output middle
background:
  people.sex ~ categorical([1, 2])
  people.study ~ uniform
  people.hours ~ binomial(5, 0.4)
loss:
  (
    0.01 * E[ ||totals - sum(people.hours, by = {sex, study})||^2 ]
    + E[ ||middle - median(people.hours, by = {sex, study})||_1 ]
  )
privacy:
  all outputs are (1, 1e-6)-DP wrt people, adding or removing one record
"""


@pytest.mark.slow
def test_a_part_whose_noise_only_scales_is_solved_at_two_shares_of_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    solved_at: list[Any] = []
    decide = Linear.decide

    def counted(self: Linear, model: Model, system: Any, settings: Settings) -> Any:
        solved_at.append([line.measure.describe() for line in model.requirements])
        return decide(self, model, system, settings)

    monkeypatch.setattr(Linear, "decide", counted)
    plan = solve(Request(Source("groups.priv", GROUPS)), settings=Settings(alternatives=False))
    assert len(solved_at) <= 5, "two shares of epsilon, two of mu, and the split that is taken"
    assert plan.verify().ok
    linear = components(plan.document)[0]
    ((_, epsilon),) = linear["shares"][0]["amounts"]
    # by itself, and of whole numbers, it costs the same at that share
    lines = [line for line in GROUPS.splitlines() if "middle" not in line]
    alone = "\n".join(lines).replace("(1, 1e-6)-DP", f"{float(Fraction(epsilon))}-DP")
    assert linear["loss"]["value"] == pytest.approx(solve(Request(Source("groups.priv", alone))).loss.value, rel=1e-9)


def test_a_part_that_cannot_be_said_is_refused_before_any_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request(Source("groups.priv", GROUPS.replace("  people.study ~ uniform\n", "")))
    check(request)

    def solved_anyway(*_: object) -> None:
        raise AssertionError("a part was solved")

    monkeypatch.setattr(Linear, "decide", solved_anyway)
    with pytest.raises(SpecError, match="without a law"):
        solve(request)


def test_split_knows_what_it_spends() -> None:
    split = Split((PURE, GAUSSIAN), (Fraction(1, 2), Fraction(1, 3)), 1.0)
    assert split.spent == [(PURE, {"epsilon": Fraction(1, 2)}), (GAUSSIAN, {"mu": Fraction(1, 3)})]


@pytest.mark.parametrize("people", [3, pytest.param(40, marks=pytest.mark.slow)])
def test_a_part_spends_one_share_of_all_lines_that_it_is_under(people: int) -> None:
    """The press sees two parts under a stricter line, auditors all three: both lines hold, and of forty people bind."""
    plan = Plan(solved("press_and_auditors", N=people))
    assert plan.verify().ok
    spent = [part["shares"] for part in components(plan.document)]
    assert [len(shares) for shares in spent] == [1, 2, 2]
    assert all(share == shares[0] for shares in spent for share in shares)
    amounts = [Fraction(shares[0]["amounts"][0][1]) for shares in spent]
    assert sum(amounts[1:]) < 0.3001
    assert 1.49 < sum(amounts) < 1.5001 or people == 3
    assert sum(amounts[1:]) > 0.2999 or people == 3
    assert plan.loss.lower_bound is not None
    assert plan.loss.lower_bound < plan.loss.value


def test_curves_of_the_kernel_are_below_what_parts_cost(plan: Plan) -> None:
    """Solved again at shares between and beyond those of the witnesses, no part costs less than its curve says."""
    model = model_of(city())
    solver = _Solver(model, compiler_of(model).lower(model), Settings(alternatives=False))
    rules, case = SystemRules(), read(PlanUnderCheck, JsonNode(plan.document, "plan"))
    assert isinstance(case, PlanUnderCheck)
    shares = shares_of(case, rules.parts(case, rules.read(case.frame, case.mechanism)))
    for k, curve in enumerate(shares.curves):
        for factor in (0.3, 0.83, 0.97, 1.01, 1.3, 3):
            amount = rounded_down(min(float(curve.own) * factor, 1.0))
            found = solver.at(k, PURE, amount)
            assert found is not None
            assert float(curve.at(amount)) <= found.loss * (1 + 1e-9)
            assert curve.near(float(amount)) == pytest.approx(float(curve.at(amount)), rel=1e-9)


GAUSSIAN_SUMS = """\
spec sums
parties: person in 1..30
variables:
  input hours[person] in [0, 1]^32
  input works[person] in {0, 1}
  input vote[person] in {north, south}
  intermediate winner
  intermediate said
  output total
  output working in 0..30
  output seat in {north, south}
background:
  said = sum(works)
  said ~ uniform
  winner = random_dictator(vote)
loss: 0.003 * E[ ||total - sum(hours)||^2 ] + 4 * E[ |working - said| ] + 20 * worst[ total_variation(seat, winner) ]
privacy:
  all outputs are (1, 1e-6)-DP wrt all inputs, replacing one person
"""


ANSWERS = """\
spec answers
variables:
  input hours in [0, 1]^40
  input first in {1, 2, 3, 4, 5, 6, 7, 8}
  input second in {1, 2, 3, 4, 5, 6, 7, 8}
  output spent
  output one in {1, 2, 3, 4, 5, 6, 7, 8}
  output two in {1, 2, 3, 4, 5, 6, 7, 8}
loss: 0.002 * E[ ||spent - hours||^2 ] + 40 * worst[ mismatch(one, first) ] + 40 * worst[ mismatch(two, second) ]
privacy: all outputs are (3, 1e-6)-DP wrt all inputs, replacing everything
"""


@pytest.mark.slow
def test_what_laws_do_not_let_through_is_spent_where_it_is_worth_it() -> None:
    """One answer of eight tells much less than randomised response of its epsilon: both get more than twice as much."""
    plan = solve(Request(Source("answers.priv", ANSWERS)))
    assert plan.verify().ok
    (guarantee,) = plan.document["guarantees"]
    assert guarantee["because"] == ["composition-exact"]
    assert 0.97e-6 < float(guarantee["achieved"]["delta"]) <= 1e-6
    (kind, mu), *others = shares_of_plan(plan)
    assert kind == "mu-GDP"
    line = Line(APPROXIMATE, {"epsilon": Fraction(3), "delta": Fraction(1, 10**6)})
    assert not line.allows((GAUSSIAN, PURE, PURE), [mu, *(amount for _, amount in others)])
    counted = {one["name"]: one["loss"] for one in plan.document["alternatives"]}
    assert plan.loss.value < 0.99 * counted["the best shares with pure parts counted as randomised response"]
    assert 0 < plan.loss.lower_bound < plan.loss.value
    assert "every part by itself keeps to the lines" in plan.document["loss"]["among"]
    for change in (
        {"lower_bound": plan.loss.lower_bound * 1.01},  # more than the parts cost by themselves
        {"among": plan.document["loss"]["among"].replace("every part by itself keeps", "all keep")},
    ):
        forged = json.loads(plan.to_json())
        forged["loss"] |= change
        value, bound = forged["loss"]["value"], forged["loss"]["lower_bound"]
        forged["loss"]["relative_gap"] = (value - bound) / value
        assert not Plan(sealed({k: v for k, v in forged.items() if k != "digest"})).verify().ok


@pytest.mark.slow
def test_gaussian_sums_a_table_and_a_vote_beside_a_thousand_splits() -> None:
    """No split of a thousand, and none of those that the plan lists, is better by more than 1e-4."""
    model = model_of(GAUSSIAN_SUMS)
    system = compiler_of(model).lower(model)
    plan = solve(Request(Source("sums.priv", GAUSSIAN_SUMS)))
    assert plan.verify().ok
    assert [measure for measure, _ in shares_of_plan(plan)] == ["mu-GDP", "epsilon-DP", "epsilon-DP"]
    assert plan.loss.lower_bound is not None
    assert plan.loss.value * 0.99 < plan.loss.lower_bound <= plan.loss.value
    assert len(plan.document["alternatives"]) == 4
    assert all(one["loss"] >= plan.loss.value * (1 - 1e-4) for one in plan.document["alternatives"])
    lines, kinds = (
        Lines((Line(APPROXIMATE, {"epsilon": Fraction(1), "delta": Fraction(1, 10**6)}),)),
        (
            GAUSSIAN,
            PURE,
            PURE,
        ),
    )
    solver, random = _Solver(model, system, Settings(alternatives=False)), np.random.default_rng(1)
    own = np.array([float(amount) for _, amount in shares_of_plan(plan)])
    curves = [solver.curves(k)[kind] for k, kind in enumerate(kinds)]
    for curve, share in zip(curves, own, strict=True):
        for factor in np.geomspace(0.2, 5, 40):
            curve.add(rounded_down(min(share * float(factor), 1.0)))
    fitted = [curve.fitted() for curve in curves]
    for _ in range(1000):
        amounts = lines.scaled(kinds, [float(one) for one in own * np.exp(random.normal(0, 0.5, 3))])
        loss = sum(at(float(amount)) for at, amount in zip(fitted, amounts, strict=True))
        assert loss >= plan.loss.value * (1 - 1e-4)


WINNERS = """spec winners
parties: voter in 1..{voters}
variables:
  input vote[voter] in {{a, b, c}}
  output O
  output P
loss: worst[ mismatch(O, plurality(vote)) ] + worst[ mismatch(P, plurality(vote)) ]
privacy:
  O is 1-DP wrt vote, replacing one voter{press}
  P is 2-DP wrt vote, replacing one voter{office}
"""


def test_finite_outputs_that_no_line_joins_are_drawn_apart() -> None:
    """Each has the least loss that it has alone, at any number of voters; who sees both learns what lines add up to."""
    said = {"press": ", seen by press", "office": ", seen by office"}
    large = Problem(WINNERS.format(voters=100, **said)).solve()
    e = np.e
    assert large.status == "optimal"
    assert large.loss.value == pytest.approx(2 / (e + 2) + 2 / (e**2 + 2), rel=1e-6)
    small = Problem(WINNERS.format(voters=5, press="", office="")).solve()
    assert small.loss.value == pytest.approx(large.loss.value, rel=1e-6)
    assert [one["bound"]["epsilon"] for one in small.document["exposures"]] == ["3"]
    assert "2 parts" in small.summary(200)
    both = "\n  (O, P) is 2.5-DP wrt vote, replacing one voter"
    joined = Problem(WINNERS.format(voters=5, press="", office=both)).solve()
    assert "drawn jointly" in joined.summary(200)
    # a table of both has 5,151 rows and 9 columns: each takes its share of the line
    apart = Problem(WINNERS.format(voters=100, press="", office=both)).solve()
    assert "2 parts" in apart.summary(200)
    assert small.loss.value < apart.loss.value < 2 * 2 / (e + 2)
    assert joined.loss.value >= small.loss.value - 1e-9


ASKED_TWICE = """\
spec asked_twice
parties: guest in 1..40
variables:
  input meal[guest] in {fish, meat, none}
  input drink[guest] in {tea, wine}
  output meals
  output drinks
loss: E[ ||meals - histogram(meal)||^2 ] + E[ ||drinks - histogram(drink)||^2 ]
privacy: (meals, drinks) is 2-LDP wrt (meal, drink)
"""


def test_what_one_guest_reports_twice_adds_up_to_the_line() -> None:
    """As the same line in pure epsilon says it of whoever sees all messages: two reports, each of a share of it."""
    plan = Problem(ASKED_TWICE).solve()
    line = ASKED_TWICE.replace("2-LDP wrt (meal, drink)", "2-DP wrt (meal, drink), replacing one guest")
    known = Problem(f"{line}options: trust nobody\n").solve()
    assert plan.loss.value == pytest.approx(known.loss.value, rel=1e-9)
    assert plan.verify().ok
    parts = plan.document["mechanism"]["components"]
    shares = [Fraction(dict(one["shares"][0]["amounts"])["epsilon"]) for one in parts.values()]
    assert len(shares) == 2
    assert sum(shares) <= 2
    forged = copy.deepcopy(plan.document)
    for one in forged["mechanism"]["components"].values():
        one["shares"][0]["amounts"] = [["epsilon", "3/2"]]
    assert not Plan(resign(forged)).verify().ok
    forged = copy.deepcopy(plan.document)
    forged["problem"]["obligations"][0]["measure"]["amounts"] = [["epsilon", "1"]]
    assert not Plan(resign(forged)).verify().ok
