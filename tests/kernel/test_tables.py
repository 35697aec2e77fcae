"""Tables before the kernel: plans of small specs hold; changed in any leaf they are refused, or say nothing untrue."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from privspec.core.spans import Source
from privspec.families.decision import Infeasible, sealed
from privspec.families.family import Settings, compiler_of
from privspec.kernel import Report, judge
from privspec.kernel.core.reading import JsonNode, Refused, read
from privspec.kernel.tables import common_law
from privspec.kernel.tables_forms import Amount
from privspec.model.build import load_model
from privspec.plan import verify

Plan = dict[str, Any]
Change = Callable[[Plan], None]

REPORT = """variables:
  input x in 1..4
  output z in 1..4
background:
  x ~ categorical([4, 3, 2, 1])
loss: {loss}
privacy:
  z is {measure} wrt x
"""
SPECS = {
    "pure": REPORT.format(loss="E[ mismatch(z, x) ]", measure="1-LDP"),
    "delta": REPORT.format(loss="E[ |z - x| ]", measure="(1, 0.125)-LDP"),
    "atoms": REPORT.format(loss="E[ |z - x| ]", measure="(1, 0.125)-per-atom-LDP"),
    "one value": REPORT.format(loss="E[ |z - x| ]", measure="(1, 0.125)-per-atom-LDP")
    .replace("x in 1..4", "x in 4..4")
    .replace("categorical([4, 3, 2, 1])", "uniform"),
    "worst": REPORT.format(loss="2 * worst[ |z - x| ] + E[ mismatch(z, x) ]", measure="1-LDP"),
    "metric": """variables:
  input x in (0..1)^2
  output z in (0..1)^2
background: x ~ uniform
loss: E[ ||z - x||^2 ]
privacy: z is 1-metric-DP wrt x, distance euclidean
""",
    "observers": """variables:
  input x in {0, 1}^2
  output u in 0..2
  output v in 0..2
background: x ~ uniform
loss: E[ |u - sum(x)| ] + E[ |v - sum(x)| ]
privacy:
  u is 2-DP wrt x, replacing one record, seen by A
  (u, v) is 3-DP wrt x, replacing one record, seen by B
""",
    "moments": """variables:
  input x in 1..3
  choose alpha in [0.1, 0.5]
  choose B in law(1..3)
  output z in 1..3
background:
  x ~ uniform
  E[z | x] = alpha * x + (1 - alpha) * E[B]
loss: E[ mismatch(z, x) ] + 0.01 * alpha
accuracy: E[ mismatch(z, x) ] <= 0.6
privacy: z is 1-LDP wrt x
""",
    "fair": """variables:
  input group in {F, M}
  input y in 0..1
  output z in 0..1
background:
  (group, y) ~ categorical([[0.3, 0.2], [0.1, 0.4]])
loss: E[ |z - y| ]
privacy: z is 2-LDP wrt (group, y)
fairness:
  z is independent of group, up to 0.1
  z is independent of group given y
""",
    "lies": """parties: voter in 1..3
variables:
  input vote[voter] in {a, b, c}
  output O in {a, b, c}
background: vote ~ uniform
loss: E[ total_variation(O, random_dictator(vote)) ] + E[ mean(mismatch(O, vote[v]) for v in voter) ]
accuracy: manipulation(O, vote) <= 0.02
privacy: O is 1-DP wrt vote, replacing one voter
""",
    "rounds": """parameters: rounds = 2
parties: voter in 1..3
variables:
  input vote[voter] in {a, b}
  output O in {a, b}
background: vote ~ uniform
loss: E[ mean(mismatch(O, vote[v]) for v in voter) ]
privacy: O is (2 / rounds)-DP wrt vote, replacing one voter
""",
    "debiased": """variables:
  input x in 0..1
  choose alpha in (0, 1]
  choose B in law(0..1)
  output z in 0..1
  intermediate estimate
background:
  x ~ uniform
  E[z | x] = alpha * x + (1 - alpha) * E[B]
  estimate = (z - (1 - alpha) * E[B]) / alpha
loss: E[ (estimate - x)^2 ]
privacy: z is 1-LDP wrt x
""",
}


@cache
def text_of(name: str) -> str:
    model = load_model(Source(name, SPECS[name]))
    from privspec.families.tables.family import Finite

    family = Finite()
    decision = family.decide(model, family.lower(model), Settings(alternatives=False))
    assert not isinstance(decision, Infeasible)
    return json.dumps(decision.document())


def plan_of(name: str) -> Plan:
    found: Plan = json.loads(text_of(name))
    return found


def judged(plan: Plan) -> Report:
    """The kernel's report of a plan that was signed again."""
    return judge(json.dumps(sealed({key: value for key, value in plan.items() if key != "digest"})))


def refused(name: str, change: Change) -> str:
    """Why a changed plan is refused."""
    plan = plan_of(name)
    change(plan)
    report = judged(plan)
    assert not report.ok
    assert report.mechanism is None
    return "; ".join(f"{claim.name}: {claim.text}" for claim in report.failed)


@pytest.mark.parametrize("name", SPECS)
def test_plans_hold(name: str) -> None:
    report = verify(text_of(name))
    assert report.ok, [str(claim) for claim in report.failed]
    assert plan_of(name)["status"] == "optimal"
    assert report.kernel is not None
    table = report.kernel.mechanism.table  # type: ignore[attr-defined]
    stated = plan_of(name)["mechanism"]["probabilities"]
    assert [[Fraction(n, table.whole) for n in row] for row in table.rows] == [
        [Fraction(p) for p in row] for row in stated
    ]


# --- every leaf -----------------------------------------------------------------------------------

JUDGED = ("status", "loss", "mechanism", "guarantees", "accuracy", "fairness", "claims")
"""The parts of a plan that the kernel judges: the problem is compared with the spec, the rest are remarks."""


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list) and value:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))
    else:
        yield path


def others(value: Any, dice: random.Random) -> Any:
    """Something else in the place of a leaf."""
    known = [None, True, "another", [], {}, -1, "1/3", 10**30, "1e999"]
    if isinstance(value, str) and value.replace("/", "").replace(".", "").isdigit():
        known += [str(Fraction(value) * Fraction(999, 1000)), str(Fraction(value) + Fraction(1, 2**60))] * 4
    if isinstance(value, int | float) and not isinstance(value, bool):
        known += [value * 1.001, value - 1, -value or 1, value + 1e-9] * 3
    return dice.choice([one for one in known if one != value or type(one) is not type(value)])


def put(plan: Plan, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> None:
    inner: Any = plan
    for key in path[:-1]:
        inner = inner[key]
    change(inner, path[-1])


def harmless(plan: Plan, changed: Plan, report: Report) -> bool:
    """Whether all that is claimed of a changed plan is what was true of the old one, or less.

    Another proof may prove the bound too; a guarantee may say that more is spent than is, within what the line asks.
    """
    same = all(changed[key] == plan[key] for key in ("status", "mechanism", "accuracy", "loss"))
    for old, new in zip(plan["guarantees"], changed["guarantees"], strict=True):
        spent = all(Fraction(new["achieved"].get(k, 0)) >= Fraction(v) for k, v in old["achieved"].items())
        same = same and spent and {**new, "achieved": 0, "because": 0} == {**old, "achieved": 0, "because": 0}
    for old, new in zip(plan["fairness"], changed.get("fairness", []), strict=True):
        same = same and Fraction(new["achieved"]) >= Fraction(old["achieved"])
        same = same and {**new, "achieved": 0} == {**old, "achieved": 0}
    return same and report.ok


@pytest.mark.parametrize("name", SPECS)
def test_any_leaf_changed(name: str) -> None:
    dice, plan = random.Random(name), plan_of(name)
    paths = [path for key in JUDGED for path in leaves(plan[key], (key,))]
    for path in dice.sample(paths, min(len(paths), 60)):
        changed = plan_of(name)

        def change(inner: Any, key: Any) -> None:
            what = dice.random()
            if what < 0.1 and isinstance(inner, dict):
                del inner[key]
            elif what < 0.2 and isinstance(inner, dict):
                inner["further"] = inner[key]
            elif what < 0.3 and isinstance(inner, list):
                inner.append(inner[key])
            else:
                inner[key] = others(inner[key], dice)

        put(changed, path, change)
        report = judged(changed)
        assert not report.ok or harmless(plan, changed, report), path


@pytest.mark.parametrize("name", ["pure", "metric", "fair"])
def test_any_leaf_of_the_problem_changed(name: str) -> None:
    """Another problem is not that of the spec."""
    dice, plan = random.Random(name), plan_of(name)
    paths = list(leaves(plan["problem"], ("problem",)))
    for path in dice.sample(paths, min(len(paths), 12)):
        changed = plan_of(name)
        put(changed, path, lambda inner, key: inner.__setitem__(key, others(inner[key], dice)))
        assert not verify(json.dumps(sealed({k: v for k, v in changed.items() if k != "digest"}))).ok, path


@pytest.mark.parametrize("name", ["pure", "moments", "fair", "debiased"])
def test_one_probability_moved_by_two_to_the_minus_sixty(name: str) -> None:
    step = Fraction(1, 2**60)
    for row in range(len(plan_of(name)["mechanism"]["inputs"])):
        changed = plan_of(name)
        law = changed["mechanism"]["probabilities"][row]
        law[0], law[-1] = str(Fraction(law[0]) + step), str(Fraction(law[-1]) - step)
        assert not judged(changed).ok


# --- forgeries by meaning -------------------------------------------------------------------------


def law(plan: Plan) -> list[list[str]]:
    return plan["mechanism"]["probabilities"]  # type: ignore[no-any-return]


def uniform(plan: Plan) -> None:
    plan["mechanism"]["probabilities"] = [["1/4"] * 4] * 4
    plan["guarantees"][0]["achieved"]["epsilon"] = "0"
    plan["loss"] |= {"value": 0.75, "lower_bound": 0.75, "relative_gap": 0.0}


def permuted(plan: Plan) -> None:
    plan["mechanism"]["outputs"].reverse()


def rows_permuted(plan: Plan) -> None:
    plan["mechanism"]["inputs"].reverse()


def split(plan: Plan) -> None:
    claims = plan["claims"]
    claims["pairs"] = [[*at, z / 2] for *at, z in claims["pairs"] for _ in range(2)]


def bounded(value: float) -> Change:
    def change(plan: Plan) -> None:
        loss = plan["loss"]
        loss["lower_bound"] = loss["value"] * value
        loss["relative_gap"] = (loss["value"] - loss["lower_bound"]) / abs(loss["value"])

    return change


def set_(value: Any, *path: Any) -> Change:
    return lambda plan: put(plan, path, lambda inner, key: inner.__setitem__(key, value))


def epsilon(value: str, number: int = 0) -> Change:
    return set_(value, "guarantees", number, "achieved", "epsilon")


def dropped(*path: Any) -> Change:
    return lambda plan: put(plan, path, lambda inner, key: inner.__delitem__(key))


FORGERIES: list[tuple[str, Change, str]] = [
    ("pure", uniform, "bound: no table"),
    ("pure", permuted, "other inputs or outputs"),
    ("pure", rows_permuted, "other inputs or outputs"),
    ("pure", set_(["1/4"] * 4, "mechanism", "prior"), "'prior' that is not known"),
    ("pure", set_("E[ 0 ]", "loss", "expression"), "expression is not what"),
    ("pure", set_("all tables", "loss", "among"), "among is not what"),
    ("pure", set_("worst", "loss", "kind"), "kind is not what"),
    ("pure", bounded(1 + 1e-12), "bound"),
    ("pure", bounded(1 - 2e-6), "bound: the loss is within"),
    ("pure", set_(0.0, "loss", "relative_gap"), "relative_gap is not what"),
    ("pure", epsilon("0.999999"), "privacy: not true"),
    ("pure", epsilon("1.000001"), "privacy: line 8: figures that are not within"),
    ("pure", set_({}, "guarantees", 0, "achieved"), "figures that are not within"),
    ("pure", set_({"epsilon": "1", "delta": "0.1"}, "guarantees", 0, "achieved"), "figures that are not within"),
    ("pure", set_("replacing one record", "guarantees", 0, "neighbours"), "neighbours is not what"),
    ("pure", set_("B", "guarantees", 0, "observer"), "observer is not what"),
    ("pure", set_("2", "guarantees", 0, "epsilon"), "is not what the line asks"),
    ("pure", set_(["0"] * 4, "mechanism", "probabilities", 0), "does not sum to one"),
    ("pure", set_(["2", "-1", "0", "0"], "mechanism", "probabilities", 0), "less than 0"),
    ("pure", set_([], "guarantees"), "entries in place of 1"),
    ("pure", dropped("claims", "pairs"), "does not have pairs"),
    ("pure", set_({}, "claims"), "lower_bound is not what"),
    ("pure", set_([[0, 0, 1, 0, -1.0]], "claims", "pairs"), "no number from 0 on"),
    ("pure", set_([[0, 0, -1, 0, 1.0]], "claims", "pairs"), "for what is not there"),
    ("pure", set_([[0, True, 0, 0, 1.0]], "claims", "pairs"), "for what is not there"),
    ("pure", set_([[1, 0, 1, 0, 1.0]], "claims", "pairs"), "for what is not there"),
    ("pure", set_([[0, 1, 1, 0, 1.0]], "claims", "pairs"), "rows that are not compared"),
    ("pure", set_([[0, 1.0]], "claims", "conditions"), "of another form"),
    ("delta", split, "two multipliers for one place"),
    ("delta", set_("0.1249", "guarantees", 0, "achieved", "delta"), "privacy: not true"),
    ("delta", set_("0.126", "guarantees", 0, "achieved", "delta"), "figures that are not within"),
    ("delta", epsilon("0.99"), "privacy: not true"),
    ("atoms", set_("0", "guarantees", 0, "achieved", "delta"), "privacy: not true"),
    ("metric", epsilon("0.99"), "privacy: not true"),
    ("metric", set_([[0, 0, 0, 0, 1.0]], "claims", "pairs"), "rows that are not compared"),
    ("worst", set_([[1.0, 1.0, 1.0, -1.0]], "claims", "loss", "worst"), "are no weights"),
    ("worst", set_([[0, 0, 0, 0]], "claims", "loss", "worst"), "are no weights"),
    ("observers", epsilon("1.9"), "privacy: not true"),
    ("observers", set_(["u", "v"], "guarantees", 0, "outputs"), "outputs is not what"),
    ("moments", set_("0.6", "mechanism", "scalars", "alpha"), "is in its range"),
    ("moments", set_("0.2", "mechanism", "scalars", "alpha"), "conditions: line 8 does not hold"),
    ("moments", set_({"1": "1", "2": "1", "3": "-1"}, "mechanism", "laws", "B"), "less than 0"),
    ("moments", set_({"1": "1", "2": "1", "3": "0"}, "mechanism", "laws", "B"), "B is a law"),
    ("moments", set_([{"line": 9, "text": "", "value": 0.1}], "accuracy"), "accuracy is not what"),
    ("moments", set_(-1.0, "claims", "accuracy"), "is not a list"),
    ("fair", set_("0.01", "fairness", 0, "achieved"), "fairness"),
    ("fair", set_("0.2", "fairness", 0, "tolerance"), "fairness"),
    ("fair", set_([], "fairness"), "entries in place of 2"),
    ("fair", set_("z is fair", "fairness", 0, "text"), "text is not what"),
    ("lies", set_([[1, 0, 0, 0, 1.0]], "claims", "pairs"), "a lie that nobody can tell"),
    ("lies", set_([[1, 1, 0, 1, 1.0]], "claims", "pairs"), "a set that is none of best alternatives"),
    ("lies", set_([[1, 1, 0, a, 1.0] for a in range(3)], "claims", "pairs"), "bound"),
    ("lies", set_([[0, 0, 0, 0, 1.5]], "claims", "loss", "shares"), "above one"),
    ("lies", dropped("mechanism", "scalars"), "does not have scalars"),
    ("rounds", set_(3, "mechanism", "rounds", "count"), "rounds"),
    ("rounds", set_("1/2", "mechanism", "rounds", "each"), "rounds"),
    ("rounds", dropped("mechanism", "rounds"), "rounds share a budget"),
    ("debiased", set_("1/2", "mechanism", "scalars", "alpha"), "conditions"),
    ("debiased", lambda plan: plan["claims"]["tree"].append(-1), "more than the boxes need"),
    ("debiased", lambda plan: plan["claims"]["tree"].pop(), "leaves boxes open"),
    ("debiased", set_([-1], "claims", "tree"), "bound: no table"),
    ("debiased", set_({"coordinate": 0, "at": 2.0}, "claims", "tree", 0), "splits outside its box"),
]


@pytest.mark.parametrize(("name", "change", "reason"), FORGERIES)
def test_forgeries_by_meaning(name: str, change: Change, reason: str) -> None:
    assert reason in refused(name, change)


def test_a_prior_and_costs_from_elsewhere_are_another_problem() -> None:
    """The kernel judges against the problem in the plan; that this is the spec's is seen outside of it."""
    for change in (
        lambda block: block["prior"]["rows"].reverse(),
        lambda block: block["loss"]["average"]["rows"].__setitem__(0, 1),
        lambda block: block["compared"][0]["cliques"][0].pop(),
        lambda block: block["compared"][0]["squares"].__setitem__(0, "4"),
    ):
        plan = plan_of("pure")
        change(plan["problem"]["blocks"][0])
        report = verify(json.dumps(sealed({k: v for k, v in plan.items() if k != "digest"})))
        assert "problem" in {claim.name for claim in report.failed}


def test_a_table_that_is_only_feasible_needs_no_witness() -> None:
    plan = plan_of("pure")
    plan |= {"status": "feasible", "claims": {}}
    plan["loss"] |= {"lower_bound": None, "relative_gap": None}
    assert judged(plan).ok
    plan["status"] = "optimal"
    assert not judged(plan).ok


def test_no_multipliers_prove_more_than_is_true() -> None:
    """Whatever the witness is, the bound is below the loss of a table that meets every line."""
    dice = random.Random(7)
    for name in SPECS:
        for _ in range(8):
            plan = plan_of(name)
            for path in leaves(plan["claims"], ("claims",)):
                put(plan, path, lambda inner, key: _shaken(inner, key, dice))
            plan["loss"]["lower_bound"] = plan["loss"]["value"] * (1 + 1e-9) + 1e-9
            plan["status"] = "feasible"
            assert not judged(plan).ok, name


def _shaken(inner: Any, key: Any, dice: random.Random) -> None:
    if isinstance(inner[key], float):
        inner[key] *= dice.choice([0.0, 0.5, 1.0, 2.0, 10.0])


PRIMES = [n for n in range(10**6, 10**6 + 3000) if all(n % d for d in range(2, 1001))]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda p: put(p, ("problem", "blocks", 0, "prior", "shape"), _set([10**9])),
            "not a whole number in its range",
        ),
        (lambda p: put(p, ("claims", "pairs"), _set(p["claims"]["pairs"] * 50)), "two multipliers"),
        (lambda p: put(p, ("mechanism", "probabilities"), _set([["1/" + "9" * 500] * 4] * 4)), "does not sum to one"),
        (lambda p: put(p, ("claims", "loss"), _set([[[[[[[]]]]]]])), "not an object"),
        (lambda p: put(p, ("claims", "pairs"), _set([[0, 0, 1, 0, 1e308]])), "no number from 0 on"),
    ],
)
def test_hostile_plans_end_at_once(change: Change, reason: str) -> None:
    assert reason in refused("pure", change)


def test_a_total_variation_is_not_rewarded() -> None:
    """No bound is known of such a loss: what is left out of a witness would count as nothing."""
    law = {"shape": [2], "unit": "1/2", "rows": [1, 1]}
    term = {"weight": "-1", "values": [0, 1], "laws": [law]}
    amount = {"average": None, "variations": [term], "worst": [], "prices": [], "constant": "0"}
    with pytest.raises(Refused, match="less than 0"):
        read(Amount, JsonNode(amount, "loss"))
    read(Amount, JsonNode(amount | {"variations": [term | {"weight": "1"}]}, "loss"))


def test_denominators_without_end_are_refused() -> None:
    shares = [Fraction(1, p**60) for p in PRIMES]
    law = tuple((share, 1 - share) for share in shares)
    with pytest.raises(Refused, match="common denominator"):
        common_law(law, (len(law), 2))


def _set(value: Any) -> Callable[[Any, Any], None]:
    return lambda inner, key: inner.__setitem__(key, value)


def test_a_large_table_is_judged_in_seconds() -> None:
    """All pairs of 60 inputs, 3,600 probabilities and as many multipliers."""
    count = 60
    spec = REPORT.replace("1..4", f"1..{count}").replace("categorical([4, 3, 2, 1])", "uniform")
    model = load_model(Source("large", spec.format(loss="E[ |z - x| ]", measure="2-LDP")))
    family = compiler_of(model)
    decision = family.decide(model, family.lower(model), Settings(alternatives=False))
    assert not isinstance(decision, Infeasible)
    assert judge(json.dumps(decision.document())).ok
