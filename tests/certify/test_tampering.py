"""A plan changed in any number does not verify; nothing that can be put into a plan makes the checker stumble."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path as File
from types import ModuleType
from typing import Any

import pytest

from privspec.certify import verify


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("certify_plans", File(__file__).with_name("plans.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


plans = _load()
MAKERS: dict[str, Callable[[], dict[str, Any]]] = {
    "correlated": lambda: plans.correlated(3),
    "at inputs": lambda: plans.at_inputs(3),
    "laplace": lambda: plans.laplace(3),
    "two views": lambda: plans.two_views(2),
}


@cache
def made(name: str) -> dict[str, Any]:
    return MAKERS[name]()


INERT = (
    "digest",
    "remarks",  # how it was found: nothing rests on it
    "alternatives/#/loss",  # said to be unchecked, as long as it does not contradict the bound
    "alternatives/#/name",
    "alternatives/#/reason",
    "alternatives/#/admissible",
    "assumptions",  # words; what they point to is checked to exist
    "guarantees/#/because",
    "loss/units",
    "spec/path",
    "claims/hcr/statement",
    "mechanism/executed/rounding",
)
"""Places that carry no claim, or none for some of the plans."""
WITHOUT_BOUND = ("claims", "loss/among", "loss/lower_bound", "loss/relative_gap")
"""Inert where a plan claims no lower bound."""
CLAIMS_NO_BOUND = ("two views",)
UNUSED = {
    "at inputs": ("spec/parameters",),
    "two views": ("spec/parameters",),
    "laplace": ("spec/parameters/delta",),
}
"""Parameters that the spec declares and nothing depends on."""


def place(path: tuple[Any, ...]) -> str:
    return "/".join("#" if isinstance(key, int) else str(key) for key in path)


def inert(name: str, path: tuple[Any, ...]) -> bool:
    where = place(path)
    items = (*INERT, *UNUSED.get(name, ()), *(WITHOUT_BOUND if name in CLAIMS_NO_BOUND else ()))
    return any(where == item or where.startswith(f"{item}/") for item in items)


NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?(/\d+)?")


def other_number(value: Any, path: tuple[Any, ...]) -> Any | None:
    """The number a little larger, as it would be written; None if it is no number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        # an entry of an exact matrix is a multiple of a tiny unit: move it by something that can be felt
        return value + (2**38 if "rows" in path and abs(value) > 2**30 else 1)
    if isinstance(value, float):
        return value * 1.01 if value else 0.01
    if isinstance(value, str) and value.startswith("2^"):
        return f"2^{int(value[2:]) + 22}"
    if isinstance(value, str) and NUMBER.fullmatch(value):
        return str(Fraction(value) * Fraction(101, 100) or Fraction(1, 100))
    return None


@pytest.mark.parametrize("name", MAKERS)
def test_the_plans_verify(name: str) -> None:
    report = verify(made(name))
    assert report.ok, str(report)
    assert not report.failed
    text = str(report)
    assert "compiler and solver not used" in text
    assert "not checked: that the data are what the owner says" in text


def test_a_larger_plan_verifies() -> None:
    assert verify(plans.correlated(24)).ok


@pytest.mark.parametrize("name", MAKERS)
def test_every_number_counts(name: str) -> None:
    plan = made(name)
    tried = 0
    for path, value in plans.leaves(plan):
        other = other_number(value, path)
        if other is None:
            continue
        zero_entry = "rows" in path and value == 0 and name != "laplace" and name != "at inputs"
        tampered = plans.changed(plan, path, lambda _, new=2**38 if zero_entry else other: new)
        assert not verify(tampered).ok, f"{place(path)}: {value} -> {other} with the old digest"
        if not inert(name, path):
            report = verify(plans.signed(tampered))
            assert not report.ok, f"{place(path)}: {value} -> {other}\n{report}"
            tried += 1
    assert tried > 40


def smaller(value: Any) -> Any:
    if isinstance(value, str):
        return str(Fraction(value) * Fraction(99, 100))
    return value * 0.99


@pytest.mark.parametrize("name", MAKERS)
def test_privacy_figures_cannot_be_made_stronger(name: str) -> None:
    plan = made(name)
    for path, value in plans.leaves(plan):
        if path[0] == "guarantees" and path[-1] in ("epsilon", "delta", "mu", "rho") and isinstance(value, str):
            assert not verify(plans.signed(plans.changed(plan, path, smaller))).ok, place(path)


JUNK: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**400,
    1e308,
    -0.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    "1e999999999",
    "1/0",
    "2^99999999999",
    "nan",
    [],
    [[]],
    [None],
    {},
    {"rows": [1.5], "shape": [1, 1], "unit": "2^0"},
)


OPTIONAL = (
    "mechanism/sites/#/variance",
    "claims/loss_weights",
    "spec/parameters",
    "spec/parameters/epsilon",
    "spec/parameters/delta",
    "spec/constants",
    "binding/#",
    "alternatives/#",
)
"""What a plan may leave out, or set to null, without saying anything untrue."""


def same(value: Any, junk: Any) -> bool:
    """Whether two entries say the same: null for nothing, 0 for the text 0; differences have no sign."""
    if value == junk or (not value and not junk):
        return True
    return value in ("0", "1") and not isinstance(junk, list | dict) and junk in (0, -1)


@pytest.mark.parametrize("name", MAKERS)
def test_junk_anywhere_fails_cleanly(name: str) -> None:
    plan = made(name)
    for i, (path, value) in enumerate(plans.leaves(plan)):
        for j in range(2):
            junk = JUNK[(7 * j + i) % len(JUNK)]
            tampered = plans.signed(plans.changed(plan, path, lambda _, new=junk: new))
            report = verify(tampered)
            tiny = "rows" in path and value == 0  # one step of a matrix of 2^48 of them
            if not inert(name, path) and not tiny and place(path) not in OPTIONAL and not same(value, junk):
                assert not report.ok, f"{place(path)} := {junk!r}"


@pytest.mark.parametrize("name", MAKERS)
def test_missing_entries_fail_cleanly(name: str) -> None:
    plan = made(name)
    for path, _ in plans.leaves(plan):
        report = verify(plans.signed(plans.removed(plan, path)))
        if not inert(name, path) and place(path) not in OPTIONAL:
            assert not report.ok, place(path)


def test_the_plan_itself_may_be_anything() -> None:
    for junk in (*JUNK, {"format": "privspec-plan/2.0"}, {"format": 3}, {1: 2}):
        assert not verify(junk).ok


def test_formats() -> None:
    plan = made("laplace")
    assert verify(plans.signed({**plan, "format": "privspec-plan/2.7"})).ok
    for other in ("privspec-plan/1.0", "privspec-plan/", "other/1.0", "privspec-plan"):
        assert not verify(plans.signed({**plan, "format": other})).ok


def swapped_source(plan: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """The plan with another spec inside, its sha256 and digest recomputed."""
    source = plan["spec"]["source"].replace(old, new)
    assert source != plan["spec"]["source"]
    spec = plans.spec_json(source) | {"parameters": plan["spec"]["parameters"]}
    return plans.signed({**plan, "spec": spec})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("prefix_sums(x)", "2 * x"),
        ("[0, 1]^3", "[0, 2]^3"),
        ("||O - y||^2", "||O - x||^2"),
        ("||O - y||^2", "2 * ||O - y||^2"),
        ("one entry", "everything"),
        ("(epsilon, delta)-DP", "(0.9 * epsilon, delta)-DP"),
        ("privacy:\n", "privacy:\n  O is 2-GDP wrt x, replacing one entry\n"),
        ("  trust curator\n", "  trust curator\n  noise at x\n"),
        ("spec totals", "spec other"),
        ("output O", "output O\n  output P = y"),
    ],
)
def test_another_spec_inside(old: str, new: str) -> None:
    assert not verify(swapped_source(made("correlated"), old, new)).ok


def test_source_without_its_hash() -> None:
    plan = made("correlated")
    spec = {**plan["spec"], "source": plan["spec"]["source"] + "\n"}
    assert not verify(plans.signed({**plan, "spec": spec})).ok


def test_dropped_guarantees_and_views() -> None:
    plan = made("two views")
    for keep in (0, 1):
        assert not verify(plans.signed({**plan, "guarantees": [plan["guarantees"][keep]]})).ok
        mechanism = {**plan["mechanism"]}
        mechanism["executed"] = {**mechanism["executed"], "views": [mechanism["executed"]["views"][keep]]}
        assert not verify(plans.signed({**plan, "mechanism": mechanism})).ok
    assert not verify(plans.signed({**plan, "guarantees": []})).ok
    assert not verify(plans.signed({**plan, "guarantees": [plan["guarantees"][0]] * 2})).ok


def test_a_view_that_hides_rows() -> None:
    plan = made("two views")
    executed = plan["mechanism"]["executed"]
    matrix = executed["reconstruction"]["matrix"]
    rows = list(matrix["rows"])
    rows[2 * matrix["shape"][1] + 3] = 2**20
    leaking = {**executed, "reconstruction": {"of": "outputs", "matrix": {**matrix, "rows": rows}}}
    report = verify(plans.signed({**plan, "mechanism": {**plan["mechanism"], "executed": leaking}}))
    assert any(claim.name == "privacy" for claim in report.failed)


def test_truncated_packed_matrix() -> None:
    plan = plans.correlated(72)
    matrix = plan["mechanism"]["executed"]["strategy"]
    assert "data" in matrix
    assert verify(plan).ok
    for cut in (10, len(matrix["data"]) - 8):
        path = ("mechanism", "executed", "strategy", "data")
        assert not verify(plans.signed(plans.changed(plan, path, lambda text, at=cut: text[:at]))).ok


def test_progress_names_the_claims() -> None:
    seen: list[str] = []
    verify(made("at inputs"), progress=seen.append)
    assert seen[0] == "integrity"
    assert "privacy" in seen
