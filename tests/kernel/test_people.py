"""What one person's records change in tables, against all that they may; and plans that say less than is true."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import fmpq, fmpq_mat

from privspec.api import Problem
from privspec.core.diagnostics import VerificationError
from privspec.kernel import judge
from privspec.kernel.changes import PERSON
from privspec.kernel.core.linear import Difference, Part
from privspec.kernel.core.problem import ContributionBound, of_person
from privspec.kernel.moves import units_of
from privspec.kernel.strategies import dense
from privspec.kernel.strategies.dense import Dense
from privspec.kernel.worth.traces import gauge, owners_of
from privspec.plan import Plan
from tests.plans import Document, matrix_of, resign, solved_text

F = Fraction
Ends = tuple[int, ...]
TABLES: dict[str, list[tuple[Ends, ContributionBound]]] = {
    "one table": [((0, 1, 2, 3), ContributionBound("person", 3, None))],
    "at most one in a cell": [((0, 1, 2, 3), ContributionBound("person", 3, 1))],
    "at most two in a cell": [((0, 1, 2, 3), ContributionBound("person", 3, 2))],
    "more than all cells hold": [((0, 1), ContributionBound("person", 5, 2))],
    "two tables": [((0, 1), ContributionBound("person", 2, None)), ((0, 1, 2), ContributionBound("person", 2, None))],
    "two tables, one in a cell": [
        ((0, 1, 2), ContributionBound("person", 2, 1)),
        ((0, 1), ContributionBound("person", 2, 1)),
    ],
    "both ends of a number": [((0, 0, 2, 2), ContributionBound("person", 2, 1))],
    "one cell with two ends": [((0, 0), ContributionBound("person", 3, 2))],
    "two numbers": [((0, 0, 0, 0), ContributionBound("person", 3, 1))],
    "a number, and another table": [
        ((0, 0, 2, 2), ContributionBound("person", 3, 2)),
        ((0, 1), ContributionBound("person", 3, 1)),
    ],
}
"""Of each table the cell of which its coordinates are ends, and what is kept."""


def held(name: str) -> list[tuple[int, int, ContributionBound, Ends]]:
    found, start = [], 0
    for ends, kept in TABLES[name]:
        found.append((start, start + len(ends), kept, ends))
        start += len(ends)
    return found


def differences(name: str, *, adding: bool) -> list[Difference]:
    return [Difference(tuple(Part(*one) for one in some), 1) for some in of_person(held(name), adding=adding)]


def holdings(name: str) -> list[tuple[int, ...]]:
    """All that a person may have, table by table."""
    each = []
    for ends, kept in TABLES[name]:
        most = kept.per_cell or kept.most
        every = (one for one in product(range(most + 1), repeat=len(ends)) if sum(one) <= kept.most)
        each.append([one for one in every if max(map(partial(in_cell, one, ends), ends)) <= most])
    return [sum(some, ()) for some in product(*each)]


def in_cell(records: tuple[int, ...], ends: Ends, cell: int) -> int:
    """A record lies at one end of its cell, or by shares at several: then between what it does at each."""
    return sum(count for count, end in zip(records, ends, strict=True) if end == cell)


def changes(name: str, *, adding: bool) -> Iterator[tuple[int, ...]]:
    every = holdings(name)
    if adding:
        yield from every
        return
    yield from {tuple(a - b for a, b in zip(one, other, strict=True)) for one in every for other in every}


@pytest.mark.parametrize("limit", [4096, 1], ids=["listed", "bounded"])
@pytest.mark.parametrize("adding", [True, False])
@pytest.mark.parametrize("name", TABLES)
def test_lengths_cover_all_that_a_person_changes(
    name: str, adding: bool, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dense, "LISTED", limit)
    width = held(name)[-1][1]
    moved = list(changes(name, adding=adding))
    for seed in range(3):
        whole = np.random.default_rng(seed).integers(-4, 5 if seed else 1, (3, width)).tolist()
        scales = [F(1), F(2), F(3, 7)]
        rows = [[sum(a * b for a, b in zip(row, move, strict=True)) for row in whole] for move in moved]
        square = max(sum(v * v for v in row) for row in rows)
        cost = max(sum((abs(v) / b for v, b in zip(row, scales, strict=True)), F(0)) for row in rows)
        found = [units_of(one) for one in differences(name, adding=adding)]
        answers = fmpq_mat(whole)
        stated = max(Dense(answers).quadratic_sensitivity(one) for one in found)
        assert stated >= square
        assert max(Dense(answers).absolute_sensitivity(scales, [F(0)] * 3, one, {}) for one in found) >= cost
        if limit > 1:
            assert stated == square


def test_a_histogram_with_equal_noise_is_exact_however_large() -> None:
    """Twenty records, one in a cell: a length of the root of twenty, not of twenty."""
    (one,) = of_person([(0, 300, ContributionBound("person", 20, 1), tuple(range(300)))], adding=True)
    answers = fmpq_mat(np.eye(300, dtype=int).tolist())
    found = Dense(answers).quadratic_sensitivity(units_of(Difference((Part(*one[0]),), 1)))
    assert 20 <= found < 20 * (1 + 1e-9)


@pytest.mark.parametrize("adding", [True, False])
@pytest.mark.parametrize("name", [name for name in TABLES if of_person(held(name), adding=True)[0][0][3] in PERSON])
def test_the_hull_holds_a_column_so_many_times(name: str, adding: bool) -> None:
    """The factor by which the hull of changes and their opposites holds a vector, by a linear program over all."""
    from scipy.optimize import linprog

    (one,) = differences(name, adding=adding)
    moves = units_of(one)
    owners = owners_of(moves)
    corners = np.array(list(changes(name, adding=adding)), dtype=float).T
    corners = np.hstack([corners, -corners])
    for seed in range(6):
        column = np.random.default_rng(seed).integers(-3, 4, corners.shape[0])
        least = linprog(np.ones(corners.shape[1]), A_eq=corners, b_eq=column).fun
        found = gauge(moves, owners, {i: fmpq(int(v)) for i, v in enumerate(column) if v})
        assert found is not None and float(found) == pytest.approx(least, abs=1e-9)


# --- plans --------------------------------------------------------------------------------------------

SPEC = """\
variables:
  input visits in table(person in id, district in {north, middle, south}, kind in {long, short})
  output O
loss: E[ ||O - ANSWER||^2 ]
privacy: O is MEASURE wrt visits, UNIT
"""
UNIT = "adding or removing one person with at most 3 records"


def spec(unit: str = UNIT, measure: str = "1-GDP", answer: str = "histogram(visits)") -> str:
    return SPEC.replace("ANSWER", answer).replace("MEASURE", measure).replace("UNIT", unit)


def failures(plan: Document) -> str:
    return "; ".join(f"{claim.name}: {claim.text}" for claim in judge(json.dumps(resign(plan))).failed)


UNITS = [UNIT, f"{UNIT}, at most 2 in one cell", UNIT.replace("adding or removing", "replacing")]
UNITS.append(f"{UNITS[2]}, at most 1 in one cell")


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("measure", ["1-GDP", "1-DP"])
def test_nobody_moves_more_than_is_stated(unit: str, measure: str) -> None:
    """Brute force over all that a person may have, of the strategy that is executed."""
    plan = solved_text(spec(unit, measure, "marginals(visits, up_to = 2)"))
    assert not failures(plan)
    executed = plan["mechanism"]["executed"]
    strategy = matrix_of(executed["strategy"])
    order, scales = 2, np.ones(len(strategy))
    if plan["mechanism"]["family"] == "laplace":
        order, scales = 1, np.array([float(F(b)) for b in executed["noise"]["scales"]])
    elif plan["mechanism"]["family"] == "mixed":
        scales *= float(F(executed["noise"]["scale"]))
    most = 2 if "2 in" in unit else 1 if "1 in" in unit else 3
    every = [np.array(one) for one in product(range(most + 1), repeat=6) if sum(one) <= 3]
    moved = every if "adding" in unit else [a - b for a in every for b in every]
    found = np.linalg.norm(strategy @ np.array(moved).T / scales[:, None], order, axis=0).max()
    assert found <= 1 + 1e-9
    if measure == "1-GDP":
        assert found >= 1 - 1e-6


def test_a_limit_for_a_cell_asks_for_less_noise() -> None:
    """All marginals of three records in different cells are known better than of three in one."""
    free, limited = (solved_text(spec(unit))["loss"]["value"] for unit in (UNIT, f"{UNIT}, at most 1 in one cell"))
    assert free == pytest.approx(6 * 9, rel=1e-6)
    assert limited <= 6 * 3 * (1 + 1e-6)


def test_the_best_noise_for_a_few_cells_is_certified() -> None:
    plan = solved_text(spec(f"{UNIT}, at most 1 in one cell"))
    assert plan["status"] == "optimal" and not failures(plan)


def kept(plan: Document) -> dict[str, Any]:
    found: dict[str, Any] = plan["problem"]["data"][0]["kept"]
    return found


def part(plan: Document) -> dict[str, Any]:
    found: dict[str, Any] = plan["problem"]["blocks"][0]["differences"][0][0]["parts"][0]
    return found


def unit_of(plan: Document) -> dict[str, Any]:
    found: dict[str, Any] = plan["problem"]["obligations"][0]["units"][0]
    return found


FORGERIES: dict[str, tuple[str, Callable[[Document], Any], str]] = {
    "fewer records move": (UNIT, lambda p: part(p).update(amount="2"), "so many records are kept can change"),
    "more are kept than move": (UNIT, lambda p: kept(p).update(most=4), "another number of them"),
    "nothing is kept back": (UNIT, lambda p: p["problem"]["data"][0].pop("kept"), "of whom no records are kept"),
    "single records": (UNIT, lambda p: unit_of(p).update(kind="record"), "single records"),
    "a cell is said to hold fewer": (UNITS[1], lambda p: part(p).update(most=1), "can change"),
    "a limit of cells that is not kept": (
        UNITS[1],
        lambda p: kept(p).update(per_cell=None),
        "so many records are kept can change",
    ),
    "a limit of cells out of nothing": (UNIT, lambda p: part(p).update(shape="kept", most=1), "can change"),
    "they only come": (
        UNITS[2],
        lambda p: p["problem"]["blocks"][0]["differences"][0].pop(),
        "so many records are kept can change",
    ),
    "another note": (UNIT, lambda p: p["guarantees"][0].update(because=p["guarantees"][0]["because"][:-1]), "notes"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_plan_that_says_less_is_refused(name: str) -> None:
    unit, change, why = FORGERIES[name]
    plan = copy.deepcopy(solved_text(spec(unit)))
    change(plan)
    assert why in failures(plan)


def test_a_plan_for_another_number_of_records_is_not_that_of_its_spec(tmp_path: Path) -> None:
    """A plan whose problem, noise and proof fit each other, and not the spec inside: neither verified nor run."""
    plan, other = (copy.deepcopy(solved_text(spec(UNIT.replace("3", n)))) for n in ("3", "2"))
    other["spec"] = plan["spec"]
    assert not failures(other)
    forged = Plan.of(resign(other))
    assert "problem" in {claim.name for claim in forged.verify().failed}
    data = tmp_path / "visits.csv"
    data.write_text("person,district,kind\nann,north,long\n")
    with pytest.raises(VerificationError):
        forged.run({"visits": data})


def test_noise_that_is_too_small() -> None:
    plan = copy.deepcopy(solved_text(spec()))
    executed = plan["mechanism"]["executed"]
    executed["noise"]["scale"] = str(F(executed["noise"]["scale"]) * F(9, 10))
    assert "privacy" in failures(plan)


def test_larger_tables_are_bounded() -> None:
    """Where corners are too many to list, the better of a ball and a sum of sizes is taken, and verified."""
    head = "variables:\n  input visits in table(person in id, place in 1..40)\n  output O\n"
    unit = "adding or removing one person with at most 8 records, at most 1 in one cell"
    tail = f"privacy: O is 1-GDP wrt visits, {unit}"
    for answer, most in (("histogram(visits)", 40 * 8), ("count(visits)", 64)):
        plan = Problem(f"{head}loss: E[ ||O - {answer}||^2 ]\n{tail}", {}).solve()
        assert plan.verify().ok
        assert plan.loss is not None and plan.loss.value <= most * (1 + 1e-6)


@pytest.mark.parametrize(("count", "size", "reach"), [(1, 3, 9), (2, 1, 5), (150, 2, 40), (260, 3, 10**12), (90, 4, 1)])
def test_farthest_points_are_those_of_all_pairs(count: int, size: int, reach: int) -> None:
    """Groups of near points that are left out have no pair farther apart, in squares and in sums of sizes."""
    drawn = np.random.default_rng(count).integers(-reach, reach + 1, (count, size)).tolist()
    points = [tuple(map(int, point)) for point in drawn]
    moves = [[abs(a - b) for a, b in zip(p, q, strict=True)] for p in points for q in points]
    assert dense.diameter(fmpq_mat(drawn)) == max(sum(v * v for v in move) for move in moves)
    assert dense.widest(points, size) == max(map(sum, moves))


# --- numbers that are added up ------------------------------------------------------------------------

SPENT = """\
variables:
  input v in table(person in id, x in [1, 2])
  output S
loss: E[ (S - sum(v.x))^2 ]
privacy: S is MU-GDP wrt v, adding or removing one person with at most 2 records, at most 1 in one cell
"""
"""All records lie in one cell, of which a number has both ends: a run keeps one of them."""
VISITS = """\
variables:
  input visits in table(person in id, district in {north, south}, spent in [0, 100])
  output number
  output spent
loss: E[ ||number - histogram(visits, by = {district})||^2 ] + 1e-3 * E[ (spent - sum(visits.spent))^2 ]
privacy:
  all outputs are (1, 1e-6)-DP wrt visits, adding or removing one person with at most 5 records, at most 2 in one cell
options: noise family gaussian
"""
BOTH = """\
variables:
  input v in table(person in id, d in {a, b, c}, x in [0, 1])
  output C
  output S
loss: E[ (C - count(v, d = a))^2 ] + 0.5 * E[ (S - sum(v.x))^2 ]
privacy: all outputs are 3-GDP wrt v, replacing one person with at most 3 records, at most 1 in one cell
"""


@pytest.mark.parametrize(
    ("text", "loss"), [(SPENT.replace("MU", "1"), 4), (VISITS, 3182.32), (BOTH, 8 / 9)], ids=["one", "manual", "both"]
)
def test_both_ends_of_a_number_are_of_one_cell(text: str, loss: float) -> None:
    """What a person moves is what a run keeps: less noise is enough, and no bound says otherwise."""
    plan = solved_text(text)
    assert not failures(plan)
    assert plan["status"] == "optimal"
    assert plan["loss"]["value"] == pytest.approx(loss, rel=2e-6)


def test_a_bound_for_more_than_a_run_keeps_is_refused() -> None:
    """9 was proved where 4 is true: by the ends of a number as cells of their own, each of which holds a record."""
    plan = copy.deepcopy(solved_text(SPENT.replace("MU", "(2 / 3)")))
    assert plan["loss"]["value"] == pytest.approx(9, rel=1e-6)
    plan["problem"]["obligations"][0]["measure"]["amounts"] = [["mu", "1"]]
    plan["guarantees"][0]["mu"] = "1"
    assert "no such mechanism has a loss below 4 " in failures(plan)
    apart = copy.deepcopy(plan)
    part(apart).pop("cells")
    assert "is not what a person of whom so many records are kept can change" in failures(apart)
    part(apart)["cells"] = [0, 1]
    assert "is not what a person of whom so many records are kept can change" in failures(apart)


def test_a_bound_for_what_nobody_moves_is_not_that_of_its_spec() -> None:
    """Who comes moves all numbers up, who goes all down: a plan about numbers that move as they like is refused."""
    text = "variables:\n  input x in [1, 3]^(9, 2)\n  output O\nloss: E[ ||O - sum(x[i] for i in 1..9)||^2 ]\n"
    text += "privacy: O is 1-GDP wrt x, adding or removing one record\n"
    plan = copy.deepcopy(solved_text(text))
    assert plan["status"] == "optimal" and not failures(plan)
    assert plan["loss"]["value"] < 22  # 36 for two numbers that are up to 3 each, up or down
    part(plan).update(amount="3")
    part(plan).pop("middle")
    assert "privacy" in failures(plan)
    assert "problem" in {claim.name for claim in Plan.of(resign(plan)).verify().failed}
