"""K-norm noise of the shape that moves: losses by formulas, what the kernel makes of forged plans, what pages say."""

from __future__ import annotations

import json
from fractions import Fraction
from math import sqrt
from typing import Any

import pytest

from privspec import load
from privspec.kernel import judge
from tests.plans import mutate, solved_text

WHOLE = """variables:
  input x in [0, 1]^6
  output O
loss: E[ ||O - x||^2 ]
privacy: O is 1-DP wrt x, replacing everything
"""
VOTES = """parties: voter in 1..50
variables:
  input a[voter] in {domain}^4
  output O
loss: E[ ||O - sum(a)||^2 ]
privacy: O is 1-DP wrt a, replacing one voter
"""
LOPSIDED = """variables:
  input x in [0, 1]^3
  input y in [0, 10]^2
  output O
  output P
loss: E[ ||O - x||^2 ] + E[ ||P - y||^2 ]
privacy: all outputs are 1-DP wrt (x, y), replacing everything
"""
BLOCKS = ("mechanism", "executed", "noise", "blocks")


def blocks_of(plan: dict[str, Any]) -> list[list[list[Fraction]]]:
    """The scales, by block and part."""
    blocks = plan["mechanism"]["executed"]["noise"]["blocks"]
    return [[list(map(Fraction, part)) for part in parts] for parts in blocks]


def box(size: int) -> float:
    """The variance of each of so many numbers, of half side 1 at epsilon 1: Gamma(k + 1) times a uniform number."""
    return (size + 1) * (size + 2) / 3


@pytest.mark.parametrize(
    ("text", "size"), [(WHOLE, 6), (VOTES.format(domain="[0, 1]"), 4), (VOTES.format(domain="{0, 1}"), 4)]
)
def test_numbers_that_are_all_replaced_get_the_noise_of_a_cube(text: str, size: int) -> None:
    """The cube has the norm 1 at its corners, where independent noise costs k and the ball around it sqrt(k)."""
    plan = solved_text(text)
    report = judge(json.dumps(plan))
    assert report.ok, report.failed
    assert plan["loss"]["value"] == pytest.approx(size * box(size), rel=1e-9)
    assert plan["loss"]["lower_bound"] < plan["loss"]["value"]
    assert blocks_of(plan) == [[[1]] * size]
    # the ball around the cube: a radius of sqrt(k) Gamma(k)
    (ball,) = (one["loss"] for one in plan["alternatives"] if "l2" in one["name"])
    assert ball == pytest.approx(size * size * (size + 1), rel=1e-6)


def test_a_lopsided_box_is_divided_into_blocks_of_like_widths() -> None:
    """Shares of epsilon as the cube roots of what blocks cost: the loss is the cube of the sum of these."""
    plan = solved_text(LOPSIDED)
    report = judge(json.dumps(plan))
    assert report.ok, report.failed
    costs = [2 * box(2) * 100, 3 * box(3)]
    assert plan["loss"]["value"] == pytest.approx(sum(c ** (1 / 3) for c in costs) ** 3, rel=1e-6)
    assert plan["loss"]["value"] < box(5) * 203
    assert [list(map(len, parts)) for parts in blocks_of(plan)] == [[1, 1], [1, 1, 1]]


def test_groups_that_no_unit_moves_together_share_no_epsilon() -> None:
    """Each of two sums of pairs is a block that has all of epsilon."""
    plan = solved_text("""parties: v in 1..12
variables:
  input a[v] in [0, 1]^2
  output O
  output P
loss: E[ ||O - sum(a[v] for v in 1..6)||^2 ] + E[ ||P - sum(a[v] for v in 7..12)||^2 ]
privacy: all outputs are 1-DP wrt a, replacing one v
""")
    assert judge(json.dumps(plan)).ok
    assert plan["loss"]["value"] == pytest.approx(4 * box(2), rel=1e-9)


def test_sizes_of_errors() -> None:
    """A number is of size (k + 1) / 2 on average."""
    plan = solved_text(WHOLE.replace("E[ ||O - x||^2 ]", "E[ sum(|O[i] - x[i]| for i in 1..6) ]"))
    assert judge(json.dumps(plan)).ok
    assert plan["loss"]["value"] == pytest.approx(6 * 7 / 2, rel=1e-9)


def test_one_party_reports_its_vector_with_the_noise_of_the_cube() -> None:
    plan = solved_text(WHOLE.replace("1-DP wrt x, replacing everything", "1-LDP wrt x"))
    assert judge(json.dumps(plan)).ok
    assert plan["loss"]["value"] == pytest.approx(6 * box(6), rel=1e-9)


FORGED: dict[str, tuple[tuple[Any, ...], Any]] = {
    "less noise": ((0, 0, 0), "9/10"),
    "one part, which is independent noise": ((0,), [["1"] * 6]),
    "a number without noise of its own": ((0,), [["1"]] * 5),
    "noise for seven": ((0,), [["1"]] * 7),
    "no noise": ((0, 0, 0), "0"),
    "a part of none": ((0,), [[], *[["1"]] * 6]),
    "a block of none": ((), [[["1"]] * 6, []]),
    "more than is stated": ((0, 0, 0), "2"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_noise_is_refused(name: str) -> None:
    plan = solved_text(WHOLE)
    path, value = FORGED[name]
    assert not judge(json.dumps(mutate(plan, (*BLOCKS, *path), value))).ok


def test_blocks_of_what_one_unit_moves_add_up() -> None:
    """Two independent blocks of three numbers have half of epsilon each: as one block's scales they let through 2."""
    plan = solved_text(WHOLE)
    forged = mutate(plan, BLOCKS, [[["1"]] * 3] * 2)
    failed = judge(json.dumps(forged)).failed
    assert any("epsilon is 2 at most" in str(claim) for claim in failed)
    assert not judge(json.dumps(mutate(plan, BLOCKS, []))).ok


def test_pages_say_what_is_drawn(tmp_path: Any) -> None:
    (tmp_path / "s.priv").write_text(WHOLE, "utf-8")
    plan = load(str(tmp_path / "s.priv")).solve()
    pages = {reader: plan.explain(reader) for reader in ("public", "auditor", "engineer", "register")}
    assert all("cannot describe" not in page and "noise of the shape “" not in page for page in pages.values())
    assert "K-norm noise of the shape that moves" in pages["auditor"] and "knorm-blocks" in pages["auditor"]
    assert f"{sqrt(box(6)):.3g}" in pages["public"]
