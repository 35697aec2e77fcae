"""Plans that draw from tables: valid ones verify; whatever is changed in them that matters, they do not."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path as File
from types import ModuleType
from typing import Any

import pytest

from privspec.certify import verify
from privspec.certify.checker import DEFECTS
from privspec.certify.finite import CHECKS, read_finite
from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import At
from privspec.certify.report import Claim, Report
from privspec.core.spans import Source
from privspec.model.build import load_model


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, File(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


finite_plans, plans = _load("finite_plans"), _load("plans")
Plan = dict[str, Any]
NAMES = tuple(finite_plans.MAKERS)


def made(name: str) -> Plan:
    return finite_plans.MAKERS[name]()  # type: ignore[no-any-return]


def changed(plan: Plan, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Plan:
    """Changed, and signed again."""
    return finite_plans.signed(plans.changed(plan, path, change))  # type: ignore[no-any-return]


def spoken_again(plan: Plan, old: str, new: str) -> Plan:
    """The same plan about another spec, whose hash it carries."""
    source = plan["spec"]["source"].replace(old, new)
    assert source != plan["spec"]["source"]
    digest = hashlib.sha256(source.encode()).hexdigest()
    return finite_plans.signed({**plan, "spec": {**plan["spec"], "source": source, "sha256": digest}})  # type: ignore[no-any-return]


@cache
def model_of(source: str) -> Any:
    return load_model(Source("by_hand.priv", source))


def rechecked(plan: Plan) -> Report:
    """`verify` without reading the spec and its digest again, for many small changes."""
    claims = [Claim("integrity", "ok", "")]
    try:
        subject = read_finite(At(plan), model_of(plan["spec"]["source"]))
    except DEFECTS as error:
        return Report((Claim("integrity", "failed", str(error)),))
    for name, check in CHECKS:
        try:
            claims.extend(check(subject))
        except NotUnderstood as reason:
            claims.append(Claim(name, "not checked", str(reason)))
        except DEFECTS as error:
            claims.append(Claim(name, "failed", str(error)))
    return Report(tuple(claims))


# --- valid plans --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_plans_verify(name: str) -> None:
    plan = made(name)
    report = verify(plan)
    assert report.ok, str(report)
    proved = {claim.name for claim in report.claims if claim.status == "ok"}
    assert {"coverage", "table", "privacy", "figure", "loss", "optimality", "assumptions"} <= proved
    assert rechecked(plan).ok


@pytest.mark.parametrize("name", ["k-RR", "worst case", "count", "metric line", "delta", "fair"])
def test_these_are_optimal(name: str) -> None:
    assert made(name)["status"] == "optimal"


def test_lines_are_claims() -> None:
    claims = [claim.name for claim in verify(made("moments")).claims if claim.status == "ok"]
    assert claims.count("conditions") == 3
    assert claims.count("accuracy") == 1
    assert [claim.status for claim in verify(made("fair")).claims if claim.name == "fairness"] == ["ok"] * 3


def test_nothing_known_of_a_loss_that_needs_a_law() -> None:
    """Without its data model a plan of expected loss is refused by the language; its prior is checked against it."""
    plan = made("k-RR")
    other = spoken_again(plan, "x ~ uniform", "x ~ categorical([1, 1, 1, 2])")
    assert fails(other, "loss")


# --- single probabilities -----------------------------------------------------------------------------

STEP = Fraction(1, 2**60)


def exactly_private(plan: Plan) -> bool:
    """Whether every requirement holds and is not overstated, by comparing every pair: an oracle of its own."""
    table = [[Fraction(p) for p in row] for row in plan["mechanism"]["probabilities"]]
    if any(sum(row) != 1 or min(row) < 0 for row in table):
        return False
    columns = plan["mechanism"]["outputs"]
    for guarantee in plan["guarantees"]:
        seen = [plan["mechanism"]["releases"].index(name) for name in guarantee["outputs"]]
        shown = [tuple(c) if isinstance(c, list) else (c,) for c in columns]
        views = sorted({tuple(c[i] for i in seen) for c in shown})
        at = [views.index(tuple(c[i] for i in seen)) for c in shown]
        laws = [
            [sum((p for p, v in zip(row, at, strict=True) if v == w), Fraction(0)) for w in set(at)] for row in table
        ]
        epsilon, delta = Fraction(guarantee["epsilon"]), Fraction(guarantee.get("delta", "0"))
        for a, b in product(range(len(table)), repeat=2):
            distance = apart(plan, a, b)
            if distance is None:
                continue
            r = finite_plans.e_to(epsilon * distance)
            if sum((max(p - r * q, Fraction(0)) for p, q in zip(laws[a], laws[b], strict=True)), Fraction(0)) > delta:
                return False
    return True


def apart(plan: Plan, a: int, b: int) -> Fraction | None:
    """The distance of two rows; None where they are not compared."""
    measure = plan["guarantees"][0]["measure"]
    if measure == "epsilon-metric-DP":
        return abs(Fraction(a - b, 4))
    if measure == "epsilon-DP":
        return Fraction(1) if abs(a - b) == 1 else None
    return Fraction(1)


def moved(plan: Plan, changes: dict[tuple[int, int], Fraction]) -> Plan:
    def change(rows: list[list[str]]) -> list[list[str]]:
        new = [list(row) for row in rows]
        for (x, y), step in changes.items():
            new[x][y] = str(Fraction(new[x][y]) + step)
        return new

    return plans.changed(plan, ("mechanism", "probabilities"), change)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", NAMES)
def test_one_probability_moved_by_two_to_the_minus_sixty(name: str) -> None:
    """The row no longer sums to one."""
    plan = made(name)
    rows, columns = (range(len(plan["mechanism"][key])) for key in ("inputs", "outputs"))
    for x, y in product(rows, columns):
        for step in (STEP, -STEP):
            report = rechecked(moved(plan, {(x, y): step}))
            assert not report.ok, (x, y, step)
            failed = {claim.name for claim in report.failed}
            assert {"table", "privacy"} <= failed or failed == {"integrity"}


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("moments", "fair", "debiased")])
def test_two_probabilities_of_a_row_moved_against_each_other(name: str) -> None:
    """It fails where a ratio is tight, and only there: all compared pairs are looked at one by one beside it."""
    plan = made(name)
    rows, columns = (range(len(plan["mechanism"][key])) for key in ("inputs", "outputs"))
    broken = 0
    for x in rows:
        for y, other in product(columns, repeat=2):
            if y == other or (name == "two observers" and (y + 2 * other + x) % 5):
                continue
            tampered = moved(plan, {(x, y): STEP, (x, other): -STEP})
            good = exactly_private(tampered)
            report = rechecked(tampered)
            assert report.ok is good, f"{x}: {y} up, {other} down: {report}"
            broken += not good
    assert broken > 0


@pytest.mark.parametrize("name", ["moments", "debiased", "fair"])
def test_lines_hold_exactly_or_not(name: str) -> None:
    """Conditions and independence without tolerance leave no room at all."""
    plan = made(name)
    claims = {"fairness"} if name == "fair" else {"conditions"}
    for y, other in product(range(len(plan["mechanism"]["outputs"])), repeat=2):
        if y != other:
            report = rechecked(moved(plan, {(0, y): STEP, (0, other): -STEP}))
            assert claims <= {claim.name for claim in report.failed}


@pytest.mark.parametrize("name", ["k-RR", "count", "metric line", "delta"])
def test_the_whole_way_for_some(name: str) -> None:
    plan = made(name)
    for x, y in ((0, 0), (1, 0), (0, 1)):
        assert not verify(finite_plans.signed(moved(plan, {(x, y): STEP}))).ok
        assert not verify(moved(plan, {(x, y): -STEP})).ok


# --- everything else ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_rows_and_columns_in_another_order(name: str) -> None:
    plan = made(name)
    for key in ("inputs", "outputs", "probabilities"):
        swapped = changed(plan, ("mechanism", key), lambda items: [items[1], items[0], *items[2:]])
        assert not verify(swapped).ok, key
    columns = changed(plan, ("mechanism", "probabilities"), lambda rows: [[row[1], row[0], *row[2:]] for row in rows])
    assert not verify(columns).ok


def fails(plan: Plan, claim: str) -> bool:
    report = verify(plan)
    return not report.ok and claim in {c.name for c in report.failed}


@pytest.mark.parametrize("name", [n for n in NAMES if n != "worst case"])
def test_another_law_of_the_rows(name: str) -> None:
    plan = made(name)

    def tilted(prior: list[str]) -> list[str]:
        step = Fraction(1, 10**6)
        return [str(Fraction(prior[0]) + step), str(Fraction(prior[1]) - step), *prior[2:]]

    assert fails(changed(plan, ("mechanism", "prior"), tilted), "loss")
    assert fails(changed(plan, ("mechanism", "prior"), lambda _: None), "loss")


def test_a_law_where_there_is_none() -> None:
    assert fails(changed(made("worst case"), ("mechanism", "prior"), lambda _: ["1/3"] * 3), "loss")


@pytest.mark.parametrize("name", NAMES)
def test_figures_that_are_better_than_the_truth(name: str) -> None:
    plan = made(name)
    for index, guarantee in enumerate(plan["guarantees"]):
        for key in guarantee["achieved"]:
            path = ("guarantees", index, "achieved", key)
            slack = name == "two observers" and index == 1
            if not slack and name != "counted":
                assert fails(changed(plan, path, lambda v: str(Fraction(v) * (1 - Fraction(1, 10**15)))), "figure")
            assert not verify(changed(plan, path, lambda v: str(Fraction(v) * Fraction(11, 10)))).ok, key
            assert not verify(changed(plan, path, lambda v: str(-Fraction(v)))).ok
        for key in ("epsilon", "delta"):
            if key in guarantee:
                assert fails(changed(plan, ("guarantees", index, key), lambda v: str(Fraction(v) / 2)), "coverage")
    bound = plan["loss"]["lower_bound"]
    higher = plans.changed(plan, ("claims", "lower_bound"), lambda _: bound * (1 + 1e-8))
    assert fails(changed(higher, ("loss", "lower_bound"), lambda _: bound * (1 + 1e-8)), "optimality")
    assert fails(changed(plan, ("loss", "lower_bound"), lambda v: v * (1 + 1e-8)), "optimality")
    assert fails(changed(plan, ("loss", "value"), lambda v: v * (1 + 1e-10)), "loss")
    assert fails(changed(plan, ("loss", "value"), lambda v: v * (1 - 1e-10)), "loss")


def test_an_epsilon_with_room() -> None:
    """Where ratios are at most 2, an epsilon of log 2 is achieved, and no less."""
    table = [[str(p) for p in row] for row in finite_plans.randomised_response(4, Fraction(2))]
    plan = plans.changed(made("k-RR"), ("mechanism", "probabilities"), lambda _: table)
    for said, status in (("1", "ok"), ("0.6931471805599454", "ok"), ("0.6931471805599453", "failed")):
        stated = plans.changed(plan, ("guarantees", 0, "achieved", "epsilon"), lambda _, v=said: v)
        claims = {claim.name: claim.status for claim in rechecked(stated).claims}
        assert (claims["privacy"], claims["figure"]) == ("ok", status)


@pytest.mark.parametrize("name", NAMES)
def test_dropped_and_repeated_requirements(name: str) -> None:
    plan = made(name)
    assert fails(changed(plan, ("guarantees",), lambda _: []), "coverage")
    assert fails(changed(plan, ("guarantees",), lambda items: [*items, items[0]]), "coverage")
    weaker = (
        plan["guarantees"][0]["text"].replace("0.5-", "0.4-").replace("is 1-", "is 0.9-").replace("is 2-", "is 1.9-")
    )
    assert not verify(spoken_again(plan, plan["guarantees"][0]["text"], weaker.replace("(1, ", "(0.9, "))).ok
    twice = f"{plan['guarantees'][0]['text']}\n  {plan['guarantees'][0]['text']}"
    assert fails(spoken_again(plan, plan["guarantees"][0]["text"], twice), "coverage")


@pytest.mark.parametrize("name", NAMES)
def test_the_digest(name: str) -> None:
    plan = made(name)
    assert not verify({**plan, "digest": "0" * 64}).ok
    assert not verify({**plan, "status": "feasible" if plan["status"] == "optimal" else "optimal"}).ok
    assert not verify({key: value for key, value in plan.items() if key != "digest"}).ok


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("k-RR", "input x in 1..4", "input x in 0..3"),
        ("k-RR", "output z in 1..4", "output z in 1..5"),
        ("k-RR", "mismatch(z, x)", "|z - x|"),
        ("k-RR", "z is 1-LDP wrt x", "z is 1-metric-DP wrt x, distance |x - x'|"),
        ("k-RR", "  z is 1-LDP wrt x", "  z is 1-LDP wrt x\noptions:\n  noise family laplace"),
        ("k-RR", "output z in 1..4", "output z in 1..4\n  output y in 1..2"),
        ("count", "bernoulli(0.5)", "bernoulli(0.4)"),
        ("count", "one record", "up to 2 records"),
        ("count", "one record", "everything"),
        ("count", "sum(x)", "2 * sum(x)"),
        ("count", "sum(x)", "x[1] + 2 * x[2] + x[3]"),
        ("two observers", "seen by A", "seen by C"),
        ("two observers", "u is 0.5-DP", "v is 0.5-DP"),
        ("two observers", "total ~ uniform", "x ~ uniform"),
        ("metric line", "2-metric-DP", "1.9-metric-DP"),
        ("metric line", "euclidean", "discrete"),
        ("metric line", "0.25", "0.125"),
        ("delta", "0.125", "0.1"),
        ("moments", "E[z | x] = alpha", "E[z^2 | x] = alpha"),
        ("moments", "(0, 1]", "(0, 0.2]"),
        ("moments", "alpha >= 0.1", "alpha >= 0.9"),
        ("moments", "<= 0.6", "<= 0.5"),
        ("fair", "independent of group\n", "independent of y\n"),
        ("fair", "independent of y, up to 0.5", "independent of y, up to 0.4"),
        ("fair", "fairness:", "fairness:\n  z is 0.1-Lipschitz wrt y, distance |y - y'|"),
        ("counted", "plurality(x)", "x[1]"),
        ("counted", "[3, 1]", "[1, 3]"),
        ("worst case", "worst[ mismatch(z, x) ]", "worst[ |z - x| ]"),
    ],
)
def test_another_spec_inside(name: str, old: str, new: str) -> None:
    assert not verify(spoken_again(made(name), old, new)).ok


def test_a_weaker_spec_is_another_spec() -> None:
    """Even where all would hold, the guarantee is not the line."""
    for name, old, new in (("k-RR", "1-LDP", "1.5-LDP"), ("metric line", "2-metric", "3-metric")):
        assert fails(spoken_again(made(name), old, new), "coverage")


def test_scalars_and_laws() -> None:
    plan = made("moments")
    nudged = changed(plan, ("mechanism", "scalars", "alpha"), lambda v: str(Fraction(v) + STEP))
    assert fails(nudged, "conditions")
    assert fails(changed(plan, ("mechanism", "scalars"), lambda _: {}), "table")
    assert fails(changed(plan, ("mechanism", "scalars"), lambda s: {**s, "beta": "1"}), "table")
    assert not verify(changed(plan, ("mechanism", "laws", "B", "1"), lambda v: str(Fraction(v) + STEP))).ok
    shifted = {"1": "1/4", "2": "1/4", "3": "1/8", "4": "3/8"}
    assert fails(changed(plan, ("mechanism", "laws", "B"), lambda _: shifted), "conditions")
    assert not verify(changed(plan, ("mechanism", "laws"), lambda _: {})).ok


def test_a_bound_needs_the_pairs_of_the_requirement() -> None:
    plan = made("count")
    entries = ("claims", "dual", "privacy", 0, "entries")
    far = changed(plan, entries, lambda listed: [*listed, [0, 3, 0, 1e-9]])
    assert fails(far, "optimality")
    for z in (-1.0, None, "1", True, 1e308):
        assert fails(changed(plan, entries, lambda listed, z=z: [*listed, [0, 1, 0, z]]), "optimality")
    complete = {"requirement": 0, "form": "complete", "below": [[0, 0, 1.0], [4, 0, 1.0]], "above": []}
    assert fails(changed(plan, ("claims", "dual", "privacy"), lambda _: [complete]), "optimality")


def test_a_bound_of_a_kind_that_is_not_known_fails() -> None:
    plan = changed(made("k-RR"), ("claims", "kind"), lambda _: "oracle")
    report = verify(plan)
    assert [claim.status for claim in report.claims if claim.name == "optimality"] == ["failed"]


@pytest.mark.parametrize("name", [n for n in NAMES if n != "debiased"])
def test_multipliers_can_only_weaken_the_bound(name: str) -> None:
    """Whatever they are: halved, they prove less than is claimed."""
    plan = json.loads(json.dumps(made(name)))
    dual = plan["claims"]["dual"]
    for block in dual["privacy"]:
        for key in ("entries", "below", "above"):
            for entry in block.get(key, ()):
                entry[-1] *= 0.5
    if any(block.get(key) for block in dual["privacy"] for key in ("entries", "below", "above")):
        assert fails(finite_plans.signed(plan), "optimality")


def test_a_search_is_followed_box_by_box() -> None:
    plan = made("debiased")
    tree = ("claims", "tree")
    split = next(i for i, node in enumerate(plan["claims"]["tree"]) if isinstance(node, dict) and i > 4)
    for change in (
        lambda nodes: nodes[:-1],
        lambda nodes: [*nodes, 0],
        lambda nodes: [len(plan["claims"]["cuts"]) if node == 1 else node for node in nodes],
        lambda nodes: [-2 if node == -1 else node for node in nodes],
        lambda nodes: [0 if node in (1, 2) else node for node in nodes],
        lambda nodes: [{"coordinate": 2, "at": 0.5} if i == split else node for i, node in enumerate(nodes)],
        lambda nodes: [{"coordinate": 1, "at": 2.0} if i == split else node for i, node in enumerate(nodes)],
        lambda nodes: [{**n, "at": n["at"] * 0.9} if isinstance(n, dict) and not n["coordinate"] else n for n in nodes],
        lambda _: [],
    ):
        assert fails(changed(plan, tree, change), "optimality")
    for cut in range(3):
        row = next(iter(plan["claims"]["cuts"][cut]["dual"]["rows"]))
        path = ("claims", "cuts", cut, "dual", "rows", row)
        assert fails(changed(plan, path, lambda v: v * 1.01), "optimality")
        assert fails(changed(plan, ("claims", "cuts", cut, "empty"), lambda flag: not flag), "optimality")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("estimate = (z - (1 - alpha) * E[B]) / alpha", "estimate = (z - (1 - alpha) * E[B]) / alpha^2"),
        ("estimate = (z - (1 - alpha) * E[B]) / alpha", "estimate = (z - E[B]) / alpha"),
        ("(estimate - x)^2", "(estimate - 2 * x)^2"),
        ("(estimate - x)^2", "|estimate - x|"),
        ("(estimate - x)^2 ]", "(estimate - x)^2 ] + alpha"),
    ],
)
def test_a_search_is_about_its_own_loss(old: str, new: str) -> None:
    plan = made("debiased")
    expression = plan["loss"]["expression"].replace(old, new)
    other = spoken_again(plans.changed(plan, ("loss", "expression"), lambda _: expression), old, new)
    report = verify(other)
    assert "ok" not in {claim.status for claim in report.claims if claim.name == "optimality"}


@pytest.mark.parametrize("name", NAMES)
def test_not_optimal_with_a_gap(name: str) -> None:
    plan = json.loads(json.dumps(made(name)))
    value = plan["loss"]["value"]
    low = value * (1 - 1e-5)
    if low > plan["loss"]["lower_bound"]:
        return
    plan["loss"] |= {"lower_bound": low, "relative_gap": (value - low) / value}
    plan["claims"]["lower_bound"] = low
    assert fails(finite_plans.signed({**plan, "status": "optimal"}), "optimality")
    assert verify(finite_plans.signed({**plan, "status": "feasible"})).ok
    lying = {**plan, "loss": {**plan["loss"], "relative_gap": 1e-9}}
    assert fails(finite_plans.signed({**lying, "status": "optimal"}), "optimality")


def test_without_a_bound() -> None:
    plan = json.loads(json.dumps(made("k-RR")))
    plan["loss"] |= {"lower_bound": None, "relative_gap": None}
    plan["claims"] = None
    assert fails(finite_plans.signed(plan), "optimality")
    assert verify(finite_plans.signed({**plan, "status": "feasible"})).ok


# --- nothing makes it stumble -------------------------------------------------------------------------

JUNK: tuple[Any, ...] = (None, True, -1, 0, 1e308, -0.5, "", "1/0", "x", "2^9999", [], {}, [[]], {"a": 1}, "9" * 5000)

INERT = (
    "digest",
    "format",
    "remarks",
    "alternatives",
    "assumptions",
    "accuracy",
    "loss/units",
    "loss/among",
    "spec/path",
    "spec/parameters",
    "spec/constants",
    "guarantees/#/because",
    "mechanism/counted",
    "mechanism/scalars",
    "mechanism/laws",
    "claims",
)
"""Places where a change may leave a plan valid."""


def junk(plan: Plan) -> Iterator[tuple[str, Plan]]:
    for path, _ in plans.leaves(plan):
        where = "/".join("#" if isinstance(key, int) else str(key) for key in path)
        if any(isinstance(key, int) and key > 1 for key in path):
            continue
        for other in JUNK:
            yield where, plans.changed(plan, path, lambda _, new=other: new)
        yield where, plans.removed(plan, path)


@pytest.mark.parametrize("name", ["two observers", "moments", "fair", "delta", "counted", "debiased"])
def test_anything_anywhere_is_answered(name: str) -> None:
    plan = made(name)
    tried = 0
    for index, (where, broken) in enumerate(junk(plan)):
        if index % 7:
            continue  # places have 16 values each: every place is tried with a few of them
        if where.startswith(("spec", "status", "mechanism/family")):
            continue  # read before the table, and not again here
        report = rechecked(broken)
        if not any(where == item or where.startswith(f"{item}/") for item in INERT) and broken != plan:
            assert not report.ok, (where, broken)
        tried += 1
    assert tried > 100


@pytest.mark.parametrize("name", ["k-RR", "worst case"])
def test_anything_anywhere_the_whole_way(name: str) -> None:
    plan = made(name)
    for index, (_, broken) in enumerate(junk(plan)):
        if index % 23 == 0:
            verify(finite_plans.signed(broken))
            assert not verify(broken).ok or broken == plan


def test_a_plan_that_is_nothing() -> None:
    for nothing in ({}, {"format": "privspec-plan/2.0"}, {"mechanism": {"family": "table"}}):
        assert not verify(nothing).ok
