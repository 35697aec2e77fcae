"""How many records of each person to keep: what is cut by a law, against enumeration; choices, and forged ones."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from privspec.api import Problem
from privspec.core.diagnostics import PrivspecError
from privspec.kernel import judge
from tests.plans import Document, resign, solved_text

F = Fraction
SPEC = """\
parties: person in 1..N
variables:
  input visits in table(person in id, district in {north, south})
  choose k in 1..4
  output O
background:
  count(visits, by = {person}) ~ categorical([2, 1, 0, 1])
  LAW
loss: E[ ||O - ANSWER||^2 ]
privacy: O is MU-GDP wrt visits, adding or removing one person with at most k records
"""


def spec(answer: str = "count(visits)", people: int = 3, mu: str = "1", law: str = "") -> str:
    text = SPEC.replace("ANSWER", answer).replace("1..N", f"1..{people}").replace("MU", mu)
    return text.replace("  LAW\n", f"  {law}\n" if law else "")


def failures(plan: Document) -> str:
    return "; ".join(f"{claim.name}: {claim.text}" for claim in judge(json.dumps(resign(plan))).failed)


def alternatives(plan: Document) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = plan["design"]["problem"]["alternatives"]
    return found


LAW = {1: F(1, 2), 2: F(1, 4), 4: F(1, 4)}


def cut_of_count(people: int, most: int) -> Fraction:
    """E[C^2] of all that three people may have, one by one."""
    total = F(0)
    for held in product(LAW, repeat=people):
        chance = F(1)
        for one in held:
            chance *= LAW[one]
        total += chance * sum(max(one - most, 0) for one in held) ** 2
    return total


def test_what_is_cut_of_a_count_is_what_enumeration_gives() -> None:
    plan = solved_text(spec())
    assert not failures(plan)
    assert [F(one["cut"]["lost"]) for one in alternatives(plan)] == [cut_of_count(3, k) for k in (1, 2, 3, 4)]


def cut_of_cells(people: int, most: int, chances: list[Fraction]) -> Fraction:
    """E of the summed squares of the cut by cell: where each cut record lies, one by one."""
    total = F(0)
    for held in product(LAW, repeat=people):
        chance = F(1)
        for one in held:
            chance *= LAW[one]
        cut = sum(max(one - most, 0) for one in held)
        for places in product(range(len(chances)), repeat=cut):
            own = chance
            for place in places:
                own *= chances[place]
            total += own * sum(places.count(cell) ** 2 for cell in range(len(chances)))
    return total


def test_what_is_cut_of_cells_is_what_enumeration_gives() -> None:
    law = "visits.district ~ categorical([1, 3])"
    plan = solved_text(spec("histogram(visits)", 2, law=law))
    wanted = [cut_of_cells(2, k, [F(1, 4), F(3, 4)]) for k in (1, 2, 3, 4)]
    assert [F(one["cut"]["lost"]) for one in alternatives(plan)] == wanted


@pytest.mark.parametrize(("mu", "people"), [("1", 3), ("1", 30), ("1 / 4", 30), ("4", 3)])
def test_the_least_of_noise_and_cut_is_chosen(mu: str, people: int) -> None:
    plan = solved_text(spec(mu=f"({mu})", people=people))
    noise = 1 / F(mu.replace(" ", "")) ** 2
    sums = [float(noise * k**2 + F(one["cut"]["lost"])) for k, one in enumerate(alternatives(plan), 1)]
    assert plan["design"]["chosen"] == int(np.argmin(sums))
    assert plan["loss"]["value"] == pytest.approx(min(sums), rel=1e-6)
    assert plan["status"] == "optimal"


def test_a_list_of_records_says_how_many_people_there_are() -> None:
    text = (
        spec().replace("categorical([2, 1, 0, 1])", "empirical([1, 1, 2, 4])").replace("parties: person in 1..3\n", "")
    )
    plan = solved_text(text)
    assert [F(one["cut"]["lost"]) for one in alternatives(plan)] == [cut_of_count(4, k) for k in (1, 2, 3, 4)]


def test_a_given_number_of_records_is_told_what_it_cuts() -> None:
    plan = solved_text(spec().replace("  choose k in 1..4\n", "").replace("at most k", "at most 2"))
    assert plan["loss"]["value"] == pytest.approx(4, rel=1e-6)
    said = " ".join(one["text"] for one in plan["assumptions"])
    assert f"what is cut of 3 people adds {float(cut_of_count(3, 2)):.6g}" in said


def test_pages_tell_what_is_cut() -> None:
    plan = Problem(spec(people=30), {}).solve()
    assert plan.verify().ok
    for reader in ("engineer", "auditor"):
        assert "What is cut from people's records is expected to add" in plan.explain(reader)


def cut(plan: Document) -> dict[str, Any]:
    found: dict[str, Any] = alternatives(plan)[0]["cut"]
    return found


FORGERIES: dict[str, tuple[Callable[[Document], Any], str]] = {
    "less is lost": (lambda p: cut(p).update(lost="0"), "another loss by what is cut"),
    "fewer people": (lambda p: cut(p).update(people=2), "another loss by what is cut"),
    "chances beyond one": (lambda p: cut(p)["chances"].update(rows=[0, 2, 1, 0, 2]), "do not add up to one"),
    "another input": (lambda p: cut(p).update(input="people"), "is not that of squared sums"),
    "nothing is cut": (lambda p: alternatives(p)[0].pop("cut"), ""),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_cut_that_is_said_to_cost_less_is_refused(name: str) -> None:
    change, why = FORGERIES[name]
    plan = copy.deepcopy(solved_text(spec(people=30)))
    change(plan)
    found = failures(plan)
    assert found and why in found


REFUSED = {
    "no law": ("  count(visits, by = {person}) ~ categorical([2, 1, 0, 1])\n", "", "PS0531"),
    "no number of people": ("parties: person in 1..3\n", "", "PS0531"),
    "a law of nobody": ("by = {person}", "by = {district}", "PS0531"),
    "no numbers of records": ("categorical([2, 1, 0, 1])", "empirical([1, 2.5])", "PS0531"),
    "no law at all": ("categorical([2, 1, 0, 1])", "2 + 2", "PS0531"),
    "cells unknown": ("count(visits)", "histogram(visits)", "PS0531"),
    "the largest error": ("E[ ||O - count(visits)||^2 ]", "E[ |O - count(visits)| ]", "PS0531"),
    "cells that hold so many": ("at most k records", "at most k records, at most 1 in one cell", "PS0531"),
    "nothing is kept": ("one person with at most k records", "one record", "PS0531"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_predicted_is_refused_by_a_line(name: str) -> None:
    old, new, code = REFUSED[name]
    text = spec()
    if name == "no law":
        text = text.replace("background:\n", "")
    assert old in text
    with pytest.raises(PrivspecError) as caught:
        Problem(text.replace(old, new), {}).solve()
    assert caught.value.diagnostics[0].code == code


def test_what_is_cut_of_a_sum_is_bounded_by_its_ends() -> None:
    """Half of 3 people have two records too many, each a uniform number from 0 to 6: E[(sum of what is cut)^2]."""
    text = """parties: person in 1..3
variables:
  input visits in table(person in id, spent in [0, 6])
  choose k in 1..3
  output O
background:
  count(visits, by = {person}) ~ categorical([1, 0, 1])
  visits.spent ~ uniform
loss: E[ (O - sum(visits.spent))^2 ]
privacy: O is 1-zCDP wrt visits, adding or removing one person with at most k records
"""
    plan = solved_text(text)
    first, *_, last = [F(one["cut"]["lost"]) for one in alternatives(plan)]
    mean, square = 3, 12  # of one number; at its ends the square is 18
    each = {cut: F(1, 2) * (2 * one + 2 * mean**2) - mean**2 for cut, one in (("exact", square), ("ends", 18))}
    exact, ends = (3 * variance + (3 * mean) ** 2 for variance in each.values())
    assert exact <= first == ends
    assert last == 0
    with pytest.raises(PrivspecError, match="PS0531") as caught:
        Problem(text.replace("  visits.spent ~ uniform\n", ""), {}).solve()
    assert "visits.spent ~ uniform" in str(caught.value.diagnostics[0].help)
