"""Bounds on losses of debiased estimates: plans as the compiler finds them verify, and no tampered proof says more.

The reference is not the checker: every proof, however it was changed, is held against tables that meet the spec (the
one of the plan, and k-randomised response), whose losses no true bound exceeds.
"""

from __future__ import annotations

import importlib.util
import json
import random
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path as File
from types import ModuleType
from typing import Any

import pytest

from privspec.api import Problem
from privspec.certify import verify
from privspec.certify.checker import DEFECTS, model_of
from privspec.certify.finite import read_finite
from privspec.certify.finite.search import Search, least_quotient
from privspec.certify.motion import NotUnderstood
from privspec.certify.reading import At
from privspec.templates import template_text

Plan = dict[str, Any]


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, File(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


finite_plans, plans = _load("finite_plans"), _load("plans")

SMALL = template_text("power_means").replace("1..10", "1..4")
INVERSE = r"  (E\[1 / z|inverse|intermediate inverse).*\n"
ONE_MEAN = re.sub(INVERSE, "", SMALL).replace(" + weight * E[ (inverse - 1 / x)^2 ]", "")
NO_LAW = re.sub(r"  choose B.*\n| [+-] \(1 - alpha\) \* E\[B\]", "", ONE_MEAN)
ESTIMATE = "(z - (1 - alpha) * E[B]) / alpha"

SPECS: dict[str, str] = {
    "two means": SMALL,
    "one mean": ONE_MEAN,
    "delta": SMALL.replace("delta = 0 ", "delta = 0.01 "),
    "constant": SMALL.replace("E[ (estimate - x)^2 ] +", "3 + 2 * E[ (estimate - x)^2 ] - 1/2 +"),
    "one average": SMALL.replace("x)^2 ] + weight * E[ (", "x)^2 + weight * ("),
    "alpha away from 0": SMALL.replace("(0, 1]", "[0.2, 0.9]"),
    "law of one value": ONE_MEAN.replace("law(1..4)", "law(2..2)"),
    "no law": NO_LAW.replace("output z in 1..4", "output z in -3..8"),
    "no uniform data": SMALL.replace("x ~ uniform", "x ~ categorical([0.1, 0.2, 0.3, 0.4])"),
    "further line": SMALL.replace("loss:", "accuracy:\n  E[ mismatch(z, x) ] <= 0.7\n\nloss:"),
    "estimate written apart": SMALL.replace(ESTIMATE, "z / alpha - (1 / alpha - 1) * E[B]"),
    "law inside shifted": SMALL.replace(ESTIMATE, "(z - 1 - (1 - alpha) * E[B - 1] + alpha) / alpha"),
}


@cache
def solved(name: str = "two means") -> Plan:
    return Problem(SPECS[name]).solve().document  # type: ignore[no-any-return]


@cache
def model(name: str = "two means") -> Any:
    return model_of(At(solved(name)))


def search(plan: Plan, name: str = "two means") -> Search:
    at = At(plan)
    return Search(read_finite(at, model(name)), at["claims"])


def changed(plan: Plan, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Plan:
    return finite_plans.signed(plans.changed(plan, path, change))  # type: ignore[no-any-return]


def status(plan: Plan, claim: str = "optimality") -> set[str]:
    return {found.status for found in verify(plan).claims if found.name == claim}


def claimed(plan: Plan, low: float) -> Plan:
    """With another lower bound, in all places."""
    value = plan["loss"]["value"]
    loss = {**plan["loss"], "lower_bound": low, "relative_gap": (value - low) / value}
    return finite_plans.signed(  # type: ignore[no-any-return]
        {**plan, "status": "feasible", "loss": loss, "claims": {**plan["claims"], "lower_bound": low}}
    )


# --- what the compiler finds --------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPECS)
def test_plans_of_the_compiler(name: str) -> None:
    plan = solved(name)
    assert name in ("two means", "one mean") or SPECS[name] != SMALL
    assert plan["claims"]["kind"] == "search"
    report = verify(plan)
    assert report.ok, str(report)
    assert status(plan) == {"ok"}
    low, value = (Fraction(plan["loss"][key]) for key in ("lower_bound", "value"))
    assert low <= search(plan, name).value() <= min(value, low * (1 + Fraction(1, 10**12)))


def test_every_step_above_what_is_proved_fails() -> None:
    plan = solved()
    low = plan["loss"]["lower_bound"]
    for more in (1e-6, 1e-7, 1e-9, 1e-12):
        assert status(claimed(plan, low * (1 + more))) == {"failed"}, more
    assert status(claimed(plan, low * (1 - 1e-6))) == {"ok"}
    lax = claimed(plan, low * (1 - 1e-5))
    assert "failed" in status(finite_plans.signed({**lax, "status": "optimal"}))


def test_what_is_chosen_is_checked_against_the_conditions() -> None:
    plan = solved()
    step = Fraction(1, 2**60)
    nudged = changed(plan, ("mechanism", "scalars", "alpha"), lambda v: str(Fraction(v) + step))
    assert status(nudged, "conditions") == {"failed"}
    law = plan["mechanism"]["laws"]["B"]
    values = {label: Fraction(mass) for label, mass in law.items()}
    values["1"], values["4"] = values["1"] + values["4"] / 2, values["4"] / 2
    assert values != {label: Fraction(mass) for label, mass in law.items()}
    moved = changed(plan, ("mechanism", "laws", "B"), lambda _: {label: str(v) for label, v in values.items()})
    assert not verify(moved).ok


@pytest.mark.parametrize("weight", ["1", "15.99"])
def test_the_bound_is_about_the_weights_of_the_spec(weight: str) -> None:
    other = changed(solved(), ("spec", "parameters", "weight"), lambda _: weight)
    assert status(other) == {"failed"}


# --- tampering ----------------------------------------------------------------------------------------


def subtree(tree: list[Any], start: int) -> int:
    """The place behind the subtree that begins at `start`."""
    open_boxes = 1
    while open_boxes:
        open_boxes += 1 if isinstance(tree[start], dict) else -1
        start += 1
    return start


def answered(plan: Plan) -> Fraction | None:
    """What the checker derives; None where it refuses."""
    try:
        return search(plan).value()
    except (NotUnderstood, *DEFECTS):
        return None


def holds(plan: Plan) -> bool:
    """Whether what is claimed is derived, which must be no false bound."""
    derived = answered(plan)
    assert derived is None or derived <= Fraction(plan["loss"]["value"])
    return derived is not None and derived >= Fraction(plan["loss"]["lower_bound"])


def test_no_cut_can_be_emptied() -> None:
    plan = solved()
    used = sorted({node for node in plan["claims"]["tree"] if isinstance(node, int) and node >= 0})
    assert used
    nothing = {"privacy": [], "rows": {}, "loss_weights": None}
    for cut in used:
        emptied = changed(plan, ("claims", "cuts", cut, "dual"), lambda _: nothing)
        assert not holds(emptied), cut
        assert not holds(changed(plan, ("claims", "cuts", cut, "empty"), lambda flag: not flag)), cut
    assert status(emptied) == {"failed"}


def test_multipliers_that_prove_less() -> None:
    plan, draws = solved(), random.Random(3)
    held = 0
    for cut, item in enumerate(plan["claims"]["cuts"]):
        name = draws.choice(list(item["dual"]["rows"]))
        other = changed(plan, ("claims", "cuts", cut, "dual", "rows", name), lambda v: v * 0.9 + 0.01)
        held += holds(other)
        assert status(other) == ({"ok"} if holds(other) else {"failed"})
    assert held < len(plan["claims"]["cuts"]) / 2


def test_boxes_that_are_split_elsewhere() -> None:
    plan = solved()
    splits = [i for i, node in enumerate(plan["claims"]["tree"]) if isinstance(node, dict)]
    held = [
        holds(changed(plan, ("claims", "tree", i, "at"), lambda at, by=by: at * by))
        for i in splits
        for by in (0.8, 1.2)
    ]
    assert sum(held) < len(held) / 2
    for i in splits[:2]:
        for at in (-1.0, 5.0, 1e300):
            assert not holds(changed(plan, ("claims", "tree", i, "at"), lambda _, at=at: at))
        for coordinate in (-1, 3, 99, True, None, "alpha", 0.0):
            broken = changed(plan, ("claims", "tree", i, "coordinate"), lambda _, c=coordinate: c)
            assert not holds(broken)
    assert status(broken) == {"failed"}


def test_a_box_without_any_alpha() -> None:
    """A split at 0 leaves nothing below it, whatever stands there."""
    plan = solved()
    for below in (-1, 0):
        tree = [{"coordinate": 0, "at": 0.0}, below, *plan["claims"]["tree"]]
        other = changed(plan, ("claims", "tree"), lambda _, t=tree: t)
        assert holds(other) is (below == -1)
        assert status(other) == ({"ok"} if below == -1 else {"failed"})


def test_subtrees_that_are_left_out() -> None:
    plan = solved()
    tree = plan["claims"]["tree"]
    held: list[bool] = []
    for start, node in enumerate(tree):
        if not isinstance(node, dict):
            continue
        middle = subtree(tree, start + 1)
        end = subtree(tree, middle)
        for left in (tree[: start + 1] + tree[middle:], tree[:middle] + tree[end:], tree[:start] + tree[end:]):
            assert not holds(changed(plan, ("claims", "tree"), lambda _, t=left: t)), start
        # where one part stands for both the boxes fit, and only the bound tells (a split may have been of no use)
        parts = (tree[:start] + tree[start + 1 : middle] + tree[end:], tree[:start] + tree[middle:])
        held += [holds(changed(plan, ("claims", "tree"), lambda _, t=left: t)) for left in parts]
    assert sum(held) < len(held) / 4
    for other in ([], [-1], [0], [*tree, 0], [*tree, tree[0]], tree[::-1]):
        short = changed(plan, ("claims", "tree"), lambda _, t=other: t)
        assert not holds(short)
        assert status(short) == {"failed"}


def junk() -> Iterator[tuple[tuple[Any, ...], Any]]:
    proof = ("claims",)
    for value in (None, 0, "x", [], {}, True, [[]], [None], ["0"], [1.5], [{}], [{"coordinate": 0}], [-2], [10**6]):
        yield (*proof, "tree"), value
        yield (*proof, "cuts"), value
        yield (*proof, "cuts", 0), value
        yield (*proof, "cuts", 0, "dual"), value
        yield (*proof, "cuts", 0, "dual", "privacy"), value if value != [] else [0]
    for name in ("mean:1", "mean:x", "mean:", "law:C", "law", "condition:1:0", "condition:19:99", "worst:0:0", ""):
        yield (*proof, "cuts", 0, "dual", "rows"), {name: 1.0}
    for value in (None, "1", True, [1.0], {}, 1e999):
        yield (*proof, "cuts", 0, "dual", "rows"), {"law:B": value}
    yield (*proof, "cuts", 0, "dual", "loss_weights"), [1.0] * 4
    for entry in ([0, 1, 0, -1.0], [0, 0, 0, 1.0], [0, 9, 0, 1.0], [0, 1, 0], [0, 1, 0, "1"], [0, 1, 9, 1.0]):
        yield (*proof, "cuts", 0, "dual", "privacy"), [{"requirement": 0, "form": "pairs", "entries": [entry]}]
    for block in ({"requirement": 1, "form": "pairs", "entries": []}, {"requirement": 0, "form": "other"}):
        yield (*proof, "cuts", 0, "dual", "privacy"), [block]


def test_what_is_no_proof_is_answered() -> None:
    plan = json.loads(json.dumps(solved()))
    plan["claims"]["tree"] = [0 if node == -1 else node for node in plan["claims"]["tree"]]
    for path, value in junk():
        broken = plans.changed(plan, path, lambda _, v=value: v)
        try:
            broken = finite_plans.signed(broken)
        except ValueError:
            continue  # no JSON
        assert not verify(broken).ok, (path, value)


# --- nothing false can be proved ----------------------------------------------------------------------


def randomised_response(size: int, ratio: Fraction) -> tuple[list[list[Fraction]], Fraction]:
    """A table that meets every condition, with its alpha (the background is uniform)."""
    lie = 1 / (ratio + size - 1)
    table = [[ratio * lie if x == z else lie for z in range(size)] for x in range(size)]
    return table, (ratio - 1) * lie


def points(plan: Plan) -> Iterator[tuple[Fraction, tuple[Fraction, ...], Fraction]]:
    """Tables of the spec: alpha, both means, and what a draw costs before means are taken off, worked out here."""
    values, law = [Fraction(i) for i in range(1, 5)], [Fraction(1, 4)] * 4
    own = [[Fraction(p) for p in row] for row in plan["mechanism"]["probabilities"]]
    tables = [(own, Fraction(plan["mechanism"]["scalars"]["alpha"]))]
    tables += [randomised_response(4, Fraction(r)) for r in ("1.5", "2.718281828")]
    for table, alpha in tables:
        draw = [sum(p * row[z] for p, row in zip(law, table, strict=True)) for z in range(4)]
        means = [sum(d * g for d, g in zip(draw, gs, strict=True)) for gs in (values, [1 / v for v in values])]
        cost = sum(d * (v**2 + 16 / v**2) for d, v in zip(draw, values, strict=True))
        yield alpha, tuple(Fraction(m) for m in means), Fraction(cost)


def test_any_multipliers_stay_below_every_table() -> None:
    """Weak duality is a theorem about all multipliers: random ones are tried."""
    draws = random.Random(7)
    plan = json.loads(json.dumps(solved()))
    every = list(points(plan))
    for item in plan["claims"]["cuts"]:
        scale = 10.0 ** draws.uniform(-2, 2)
        for block in item["dual"]["privacy"]:
            for key in ("entries", "below", "above"):
                for entry in block.get(key, ()):
                    entry[-1] *= draws.choice((0.0, 1.0, scale))
        rows = item["dual"]["rows"]
        for name in rows:
            rows[name] *= draws.choice((-1.0, 0.0, 1.0, scale))
        item["empty"] = draws.random() < 0.5
    for original in (plan, solved()):
        found = search(original)
        for place, item in enumerate(original["claims"]["cuts"]):
            cut = found._cut(At(item, f"cuts[{place}]"))
            for alpha, means, cost in every:
                proved = cut.constant + sum(s * v for s, v in zip(cut.slopes, (alpha, *means), strict=True))
                assert proved <= (0 if cut.empty else cost)


def test_the_bound_for_small_alphas_holds_for_every_table() -> None:
    plan = solved()
    found = search(plan)
    for alpha, means, cost in points(plan):
        variance = cost - means[0] ** 2 - 16 * means[1] ** 2
        assert found._least_variance * alpha <= variance


def test_the_least_quotient_in_a_range() -> None:
    draws = random.Random(1)
    for _ in range(300):
        constant, slope = (Fraction(draws.randint(-20, 20), 7) for _ in range(2))
        low, high = sorted(Fraction(draws.randint(1, 30), 30) for _ in range(2))
        least = least_quotient(constant, slope, low, high)
        grid = [low + (high - low) * i / 64 for i in range(65)]
        values = [(constant + slope * a) / a**2 for a in grid]
        assert least <= max(Fraction(0), min(values))
        assert least == 0 or float(min(values) - least) <= 0.02 * (1 + abs(float(min(values))))
        assert least_quotient(constant, slope, Fraction(0), high) <= least
