"""K-norm noise of the shape that moves: losses by formulas, what the kernel makes of forged plans, what pages say."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from math import comb, exp, sqrt
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
SWAPPED = """variables:
  input people in table(district in 1..{cells})^300
  output H
loss: E[ ||H - histogram(people)||^2 ]
privacy: H is {epsilon}-DP wrt people, replacing one record
"""
RANKED = """parties: voter in 1..200
variables:
  input ballot[voter] in ranking of {a, b, c}
  output S
loss: E[ ||S - pairwise(ballot)||^2 ]
privacy: S is 1-DP wrt ballot, replacing one voter
"""
VISITED = """variables:
  input visits in table(person in id, district in {n, s, e})
  output n
loss: E[ ||n - histogram(visits, by = {district})||^2 ]
privacy: n is 1-DP wrt visits, adding or removing one person with at most 3 records, at most 1 in one cell
"""
BLOCKS = ("mechanism", "executed", "noise", "blocks")
BODIES = ("mechanism", "executed", "noise", "bodies")


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


# --- the hull of what moves ------------------------------------------------------------------------------------------


def swapped(cells: int, epsilon: float, most: int, power: int = 2) -> float:
    """What noise on counts that add up to 0 loses, of chances ~ e^-(epsilon times how many records move)."""
    loss = whole = 0.0
    for point in product(range(-most, most + 1), repeat=cells - 1):
        last = -sum(point)
        moved = (sum(map(abs, point)) + abs(last)) / 2
        chance = exp(-epsilon * moved)
        whole += chance
        loss += chance * (sum(abs(v) ** power for v in point) + abs(last) ** power)
    return loss / whole


@pytest.mark.parametrize(("cells", "epsilon", "most"), [(3, 1, 25), (3, 3, 12), (4, 2, 10)])
def test_counts_that_swap_records_get_whole_noise_of_all_swaps(cells: int, epsilon: int, most: int) -> None:
    """All points are listed; independent noise, and that of the ball around all swaps, lose more."""
    plan = solved_text(SWAPPED.format(cells=cells, epsilon=epsilon))
    report = judge(json.dumps(plan))
    assert report.ok, report.failed
    assert plan["loss"]["value"] == pytest.approx(swapped(cells, epsilon, most), rel=1e-5)
    assert plan["loss"]["lower_bound"] < plan["loss"]["value"]
    assert plan["mechanism"]["executed"]["noise"]["bodies"][0]["whole"] is True
    assert not judge(json.dumps(mutate(plan, (*BODIES, 0, "scale"), str(Fraction(9, 10 * epsilon))))).ok
    assert all(one["loss"] > plan["loss"]["value"] for one in plan["alternatives"])


@pytest.mark.parametrize(("epsilon", "most"), [(1, 25), (Fraction(5, 2), 12)])
def test_sizes_of_counts_that_swap_records(epsilon: Fraction, most: int) -> None:
    """A cone moves a cell to one side: its size is that of the average."""
    text = SWAPPED.format(cells=3, epsilon=float(epsilon)).replace("||^2", "||_1")
    plan = solved_text(text)
    report = judge(json.dumps(plan))
    assert report.ok, report.failed
    assert plan["mechanism"]["family"] == "knorm-hulls"
    # next to no noise on what is public has a size of its own
    assert plan["loss"]["value"] == pytest.approx(swapped(3, float(epsilon), most, 1), rel=2e-4)


def test_a_line_of_accuracy_that_noise_of_the_hull_meets() -> None:
    """Of one of three cells the variance is a third of the loss."""
    each = swapped(3, 1, 25) / 3
    text = SWAPPED.format(cells=3, epsilon=1)
    line = "accuracy: E[ (H[1] - count(people, district = 1))^2 ] <= {most}\nprivacy:"
    plan = solved_text(text.replace("privacy:", line.format(most=each * 1.001)))
    assert judge(json.dumps(plan)).ok
    assert plan["loss"]["value"] == pytest.approx(3 * each, rel=1e-5)
    other = solved_text(text.replace("privacy:", line.format(most=each * 0.98)))
    assert "loss" not in other or other["mechanism"]["family"] != "knorm-hulls"


def of_swaps(cells: int) -> float:
    """The same of real numbers at epsilon 1: a radius of law Gamma(k - 1); of p cells above 0 that share it evenly."""
    ways = [comb(cells, p) * comb(cells - 2, p - 1) for p in range(1, cells)]
    each = [2 / (p + 1) + 2 / (cells - p + 1) for p in range(1, cells)]
    return cells * (cells - 1) * sum(w * v for w, v in zip(ways, each, strict=True)) / sum(ways)


@pytest.mark.parametrize("cells", [3, 4, 7])
def test_noise_of_all_swaps_on_real_numbers(cells: int) -> None:
    """At a small epsilon a lattice is fine, and the noise that of the continuous law: 10 / epsilon^2 for 3 cells."""
    plan = solved_text(SWAPPED.format(cells=cells, epsilon=0.01))
    assert judge(json.dumps(plan)).ok
    assert plan["loss"]["value"] == pytest.approx(of_swaps(cells) * 1e4, rel=1e-6)


def test_a_majority_matrix_moves_in_an_octahedron() -> None:
    """Of two rankings each is one of three pairs of opposites: noise along these three, on the points it can reach."""
    plan = solved_text(RANKED)
    report = judge(json.dumps(plan))
    assert report.ok, report.failed
    loss = whole = 0.0
    for point in product(range(-40, 41), repeat=3):
        if sum(point) % 2 == 0:
            chance = exp(-sum(map(abs, point)) / 2)
            # a pair of opposites orders all three pairs of alternatives, each both ways
            pairs = (point[0] + point[1] + point[2], point[0] + point[1] - point[2], point[0] - point[1] - point[2])
            whole += chance
            loss += chance * 2 * sum(v * v for v in pairs) / 4
    assert plan["loss"]["value"] == pytest.approx(loss / whole, rel=1e-5)


def test_records_of_a_person_that_come_together_move_no_further_than_one() -> None:
    """By 0 or 1 in three cells, all up or all down: the most above 0 and the most below it."""
    plan = solved_text(VISITED)
    assert judge(json.dumps(plan)).ok
    loss = whole = 0.0
    for point in product(range(-20, 21), repeat=3):
        chance = exp(-(max(*point, 0) - min(*point, 0)))
        whole += chance
        loss += chance * sum(v * v for v in point)
    assert plan["loss"]["value"] == pytest.approx(loss / whole, rel=1e-4)


def test_columns_that_are_added_up_with_counts() -> None:
    """A record moves a sum and a count of its group, by shares of two cells: the hull of all swaps of four of these."""
    plan = solved_text("""variables:
  input people in table(sex in {F, M}, pay in [0, 100])^1000
  output w
  output m
loss: E[ (w - mean(people.pay, sex = F))^2 ] + E[ (m - mean(people.pay, sex = M))^2 ]
privacy: all outputs are 1-DP wrt people, replacing one record
""")
    assert judge(json.dumps(plan)).ok
    assert plan["loss"]["value"] == pytest.approx(of_swaps(4) / 200, rel=1e-6)
    assert "whole" not in plan["mechanism"]["executed"]["noise"]["bodies"][0]


@pytest.mark.parametrize(("cells", "epsilon", "most"), [(5, 3, 5), (6, 6, 3)])
def test_many_counts_that_swap_records(cells: int, epsilon: int, most: int) -> None:
    """All cells by themselves: the same noise as that of cones, of which there are too many; squares and sizes."""
    for power, norm in ((2, "||^2"), (1, "||_1")):
        plan = solved_text(SWAPPED.format(cells=cells, epsilon=epsilon).replace("||^2", norm))
        report = judge(json.dumps(plan))
        assert report.ok, report.failed
        assert plan["mechanism"]["executed"]["noise"]["shape"] == "knorm-swaps"
        assert plan["loss"]["value"] == pytest.approx(swapped(cells, epsilon, most, power), rel=1e-3)
        assert all(one["loss"] > plan["loss"]["value"] for one in plan["alternatives"])


FORGED_SWAPS: dict[str, tuple[str, Any]] = {
    "less noise": ("scale", "9/10"),
    "on real numbers": ("whole", False),
    "fewer cells": ("cells", 19),
    "more cells than answers": ("cells", 10**9),
    "no cells": ("cells", 0),
    "no noise": ("scale", "0"),
    "noise on the total alone": ("quiet", "0"),
}


def test_forged_noise_of_swaps_is_refused() -> None:
    """Of twenty cells, of which a sixth of a record each is no record."""
    plan = solved_text(SWAPPED.format(cells=20, epsilon=1))
    report = judge(json.dumps(plan))
    assert report.ok, report.failed
    assert of_swaps(20) * 0.97 < plan["loss"]["value"] < of_swaps(20) < min(one["loss"] for one in plan["alternatives"])
    for name, value in FORGED_SWAPS.values():
        assert not judge(json.dumps(mutate(plan, ("mechanism", "executed", "noise", name), value))).ok


def test_means_of_many_groups() -> None:
    """Sums and counts of three groups are six cells of shares: noise of all swaps on real numbers."""
    terms = (f"E[ ({name} - mean(people.pay, group = {i}))^2 ]" for i, name in enumerate("abc", 1))
    plan = solved_text(
        """variables:
  input people in table(group in 1..3, pay in [0, 100])^1000
  output a
  output b
  output c
loss: {loss}
privacy: all outputs are 1-DP wrt people, replacing one record
""".replace("{loss}", " + ".join(terms))
    )
    assert judge(json.dumps(plan)).ok
    assert plan["mechanism"]["executed"]["noise"]["shape"] == "knorm-swaps"
    assert "whole" not in plan["mechanism"]["executed"]["noise"]


FORGED_HULLS: dict[str, tuple[tuple[Any, ...], Any]] = {
    "less noise": ((0, "scale"), "9/10"),
    "smaller corners": ((0, "corners", "unit"), "1/2"),
    "no cones": ((0, "cones"), {"shape": [0, 2], "unit": "1", "rows": []}),
    "on real numbers": ((0, "whole"), False),
    "none": ((), []),
    "a scale that is no number": ((0, "scale"), "x"),
    "a key more": ((0, "more"), 1),
}


@pytest.mark.parametrize("name", FORGED_HULLS)
def test_forged_hulls_are_refused(name: str) -> None:
    plan = solved_text(SWAPPED.format(cells=3, epsilon=1))
    path, value = FORGED_HULLS[name]
    assert not judge(json.dumps(mutate(plan, (*BODIES, *path), value))).ok


def test_half_of_the_noise_lets_through_twice_as_much() -> None:
    plan = solved_text(SWAPPED.format(cells=3, epsilon=1))
    failed = judge(json.dumps(mutate(plan, (*BODIES, 0, "scale"), "1/2"))).failed
    assert any("epsilon is 2 at most" in str(claim) for claim in failed)


def test_pages_say_that_noise_is_of_the_hull(tmp_path: Any) -> None:
    (tmp_path / "s.priv").write_text(SWAPPED.format(cells=3, epsilon=1), "utf-8")
    plan = load(str(tmp_path / "s.priv")).solve()
    pages = {reader: plan.explain(reader) for reader in ("public", "auditor", "engineer", "register")}
    assert all("cannot describe" not in page for page in pages.values())
    assert "K-norm noise of the hull of what moves" in pages["engineer"] and "note knorm-hulls" in pages["auditor"]
    assert f"{sqrt(swapped(3, 1, 25) / 3):.3g}" in pages["public"]
