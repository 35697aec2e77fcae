"""One person takes part several times, at distances: which patterns there are, the best noise for them, forgeries."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pytest

from privspec.api import Problem
from privspec.core.diagnostics import SpecError
from privspec.kernel import judge
from privspec.kernel.changes import groups, spaced
from tests.plans import Document, matrix_of, resign, solved_text

SPEC = """\
variables:
  input x in [0, 1]^N
  output O
loss: E[ ||O - prefix_sums(x)||^2 ] / N
privacy: O is MEASURE wrt x, UNIT
"""


def spec(unit: str, n: int = 8, measure: str = "1-GDP") -> str:
    return SPEC.replace("N\n", f"{n}\n").replace("/ N", f"/ {n}").replace("MEASURE", measure).replace("UNIT", unit)


def failures(plan: Document) -> str:
    return "; ".join(f"{claim.name}: {claim.text}" for claim in judge(json.dumps(resign(plan))).failed)


def patterns(size: int, count: int, apart: int, exactly: bool) -> list[set[int]]:
    """Every choice that the words allow."""
    found = []
    for k in range(1, count + 1):
        for chosen in combinations(range(size), k):
            steps = [b - a for a, b in pairwise(chosen)]
            if all(step == apart if exactly else step >= apart for step in steps):
                found.append(set(chosen))
    return found


@pytest.mark.parametrize("exactly", [True, False])
@pytest.mark.parametrize("size", range(1, 9))
def test_patterns_are_all_that_the_words_allow(size: int, exactly: bool) -> None:
    for count, apart in product(range(1, 5), range(1, 5)):
        listed = spaced(size, count, apart, exactly=exactly, most=10**6)
        assert listed is not None
        found, every = [set(one) for one in listed], patterns(size, count, apart, exactly)
        assert all(one in every for one in found)
        assert all(any(one <= other for other in found) for one in every)
        assert len(found) == len(set(map(frozenset, found)))


def test_too_many_are_none() -> None:
    assert spaced(60, 4, 2, exactly=False, most=4096) is None
    assert len(groups([2, 1], 2)) == 2


def test_the_optimum_of_fixed_epochs() -> None:
    """More than for one of them, less than for all of it k times over."""
    plan = solved_text(spec("replacing up to 4 entries, exactly 8 apart", 32))
    assert plan["status"] == "optimal"
    one = solved_text(spec("replacing one entry", 32))
    assert one["loss"]["value"] < plan["loss"]["value"] < 16 * one["loss"]["value"]


@pytest.mark.slow
def test_a_long_stream() -> None:
    """The mean squared error of 256 steps in 4 epochs at sensitivity 1, certified."""
    plan = solved_text(spec("replacing up to 4 entries, exactly 64 apart", 256))
    assert plan["status"] == "optimal"
    assert plan["loss"]["value"] == pytest.approx(27.164366, rel=1e-6)


UNITS = ["replacing up to 3 entries, exactly 3 apart", "replacing up to 3 entries, at least 3 apart"]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("measure", ["1-GDP", "1-DP"])
def test_no_pattern_moves_more_than_is_stated(unit: str, measure: str) -> None:
    """Brute force over every pattern and all signs, of the strategy that is executed."""
    plan = solved_text(spec(unit, 8, measure))
    assert not failures(plan)
    executed = plan["mechanism"]["executed"]
    strategy = matrix_of(executed["strategy"])
    order, scales = 2, np.ones(len(strategy))
    if plan["mechanism"]["family"] == "laplace":
        order, scales = 1, np.array([float(eval(b)) for b in executed["noise"]["scales"]])
    elif plan["mechanism"]["family"] == "mixed":
        scales *= float(eval(executed["noise"]["scale"]))
    most = 0.0
    for pattern in patterns(8, 3, 3, "exactly" in unit):
        for signs in product([-1, 1], repeat=len(pattern)):
            move = np.zeros(8)
            move[sorted(pattern)] = signs
            most = max(most, float(np.linalg.norm(strategy @ move / scales, order)))
    assert most <= 1 + 1e-9
    assert most >= 1 - 1e-6


@pytest.mark.parametrize("unit", UNITS)
def test_no_noise_of_random_search_is_better(unit: str) -> None:
    plan = solved_text(spec(unit))
    assert plan["status"] == "optimal"
    target = np.tril(np.ones((8, 8)))
    moves = []
    for pattern in patterns(8, 3, 3, "exactly" in unit):
        for signs in product([-1, 1], repeat=len(pattern)):
            move = np.zeros(8)
            move[sorted(pattern)] = signs
            moves.append(target @ move)
    columns, dice = np.array(moves).T, np.random.default_rng(5)
    start = np.linalg.cholesky(np.array(plan["mechanism"]["output_covariance"]))
    for _ in range(200):
        root = start + dice.normal(size=(8, 8)) * 10.0 ** dice.uniform(-4, 0)
        noise = root @ root.T + 1e-9 * np.eye(8)
        reach = np.max(np.einsum("ij,ij->j", columns, np.linalg.solve(noise, columns)))
        assert np.trace(noise) * reach / 8 >= plan["loss"]["value"] * (1 - 1e-7)


def _difference(plan: Document) -> Any:
    return plan["problem"]["blocks"][0]["differences"][0][0]


FORGERIES: dict[str, tuple[Callable[[Document], None], str]] = {
    "farther apart": (lambda p: _difference(p).update(apart=4), "bound"),
    "anywhere": (lambda p: (_difference(p).pop("apart"), _difference(p).pop("exactly")), "privacy"),
    "at least": (lambda p: _difference(p).update(exactly=False), "privacy"),
    "more often": (lambda p: _difference(p).update(count=4, apart=2), "privacy"),
    "a distance of nothing": (lambda p: _difference(p).update(apart=0), "not a whole number"),
    "a word": (lambda p: _difference(p).update(exactly="yes"), "neither true nor false"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged(name: str) -> None:
    plan = copy.deepcopy(solved_text(spec(UNITS[0])))
    assert not failures(plan)
    change, words = FORGERIES[name]
    change(plan)
    assert words in failures(plan)


def test_a_bound_of_all_patterns_together_is_refused() -> None:
    """Noise against fewer patterns has less loss; the bound of more of them is not about it."""
    few, many = (copy.deepcopy(solved_text(spec(unit))) for unit in UNITS)
    few["claims"]["bound"], few["loss"]["lower_bound"] = many["claims"]["bound"], many["loss"]["lower_bound"]
    assert failures(few)


def test_words_and_pages() -> None:
    plan = Problem(spec(UNITS[1]), {}).solve()
    assert plan.document["guarantees"][0]["neighbours"] == UNITS[1]
    (unit,) = plan.document["problem"]["obligations"][0]["units"]
    assert (unit["count"], unit["apart"], unit["exactly"]) == (3, 3, False)
    assert "at least 3 apart" in plan.explain("auditor")


@pytest.mark.parametrize(
    ("unit", "code"),
    [
        ("replacing everything, exactly 3 apart", "PS0230"),
        ("adding or removing up to 2 entries, exactly 3 apart", "PS0230"),
        ("replacing up to 2 entries, exactly 0.5 apart", "PS0223"),
    ],
)
def test_what_has_no_distance(unit: str, code: str) -> None:
    with pytest.raises(SpecError) as caught:
        Problem(spec(unit), {}).solve()
    assert caught.value.diagnostics[0].code == code


PERSON = """\
variables:
  input people in table(age in 0..3, sex in {F, M})
  output O
loss: E[ ||O - histogram(people)||^2 ]
privacy: O is 1-GDP wrt people, adding or removing UNIT
"""


def test_one_person_with_several_records() -> None:
    """As many records as that come or go; the plan says that nothing counts them."""
    one = solved_text(PERSON.replace("UNIT", "one person with at most 5 records"))
    group = solved_text(PERSON.replace("UNIT", "up to 5 records"))
    assert one["loss"]["value"] == pytest.approx(group["loss"]["value"])
    assert not failures(one)
    assert one["guarantees"][0]["neighbours"] == "adding or removing one person with at most 5 records"
    (said,) = [own for own in one["assumptions"] if "nothing says whose a record is" in own["text"]]
    assert said["status"] == "assumed"
    page = Problem(PERSON.replace("UNIT", "one person with at most 5 records"), {}).solve().explain("public")
    assert "holds for up to 5 records at once." in page


@pytest.mark.parametrize(
    ("unit", "code"),
    [
        ("one person with at most 5 entries", "PS0230"),
        ("one person with at most (1 / 2) records", "PS0223"),
        ("one record, at most 2 in one cell", "PS0230"),
    ],
)
def test_what_is_no_person(unit: str, code: str) -> None:
    with pytest.raises(SpecError) as caught:
        Problem(PERSON.replace("UNIT", unit), {}).solve()
    assert caught.value.diagnostics[0].code == code
