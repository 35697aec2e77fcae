"""Why specs of `conform.txt` have no plan, and the other form that solves, against `conform_refusals.txt`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from privspec.api import Problem
from tests.test_conform import stored

REASONS = Path(__file__).with_name("conform_refusals.txt")
CLASSES = {"file", "rightly", "another form solves", "expected"}
EXPECTED = 9
"""How many answers a user would expect and does not get: to be lowered only."""
FORMS = {
    "a hidden total": """\
variables:
  input x in {0, 1}^5
  intermediate s
  output O in {0, 1}
background:
  s = sum(x)
  x ~ uniform
loss: E[ (O - x[1])^2 ]
privacy: O is 1-DP wrt s, given the model
""",
    "a Borda winner": """\
parties: voter in 1..3
variables:
  input vote[voter] in ranking of {a, b, c}
  output O in {a, b, c}
loss: worst[ max(borda_scores(vote)) - borda_scores(vote)[O] ]
privacy: O is 1-DP wrt vote, replacing one voter
""",
    "quantiles by group": """\
variables:
  input pupils in table(mark in 1..6, school in {a, b})^40
  output q in (1..6)^2
background:
  pupils.mark ~ uniform
  pupils.school ~ uniform
loss: E[ ||q - quantile(pupils.mark, 0.75, by = {school})||_1 ]
privacy: q is 2-DP wrt pupils, adding or removing one record
""",
    "levels of a hierarchy": """\
variables:
  input shops in table(land in {l1, l2}, town in {t1, t2})
  output O
loss: E[ ||O - [count(shops), marginals(shops, {land}, {land, town})]||^2 ]
privacy: O is 1-zCDP wrt shops, adding or removing one record
""",
    "sliding windows": """\
variables:
  input hours in [0, 1]^5
  intermediate days
  output O
background: days[i] = sum(hours[j] for j in i..i+2) for i in 1..3
loss: E[ ||O - days||^2 ]
privacy: O is 1-zCDP wrt hours, replacing one entry
""",
    "a sum of bits in shares": """\
parties: person in 1..20
variables:
  input bit[person] in {0, 1}
  output O
loss: E[ (O - sum(bit))^2 ]
privacy: O is (2, 1e-6)-DP wrt bit, replacing one person
options: trust secure_sum
""",
    "what is said of one record": """\
variables:
  input staff in table(team in {a, b}, hours in [0, 40])
  output s
loss: E[ (s - sum(staff.hours))^2 ]
privacy:
  s is 2-DP wrt staff, replacing one record
  s is 0.2-tv-DP wrt staff, replacing one record
""",
}


def reasons() -> dict[str, list[str]]:
    """Class, reason and place of a test by name of the spec."""
    lines = REASONS.read_text("utf-8").splitlines()
    return {name: rest for name, *rest in (line.split("\t") for line in lines if not line.startswith("#"))}


def test_every_spec_without_a_plan_has_one_reason() -> None:
    without = {name for name, (outcome, *_) in stored().items() if outcome.startswith(("refused", "no answer"))}
    assert set(reasons()) == without
    for name, (kind, reason, *places) in reasons().items():
        assert kind in CLASSES, name
        assert reason, name
        assert len(places) == (kind == "another form solves"), name


def test_no_more_answers_are_missing_than_before() -> None:
    assert Counter(kind for kind, *_ in reasons().values())["expected"] <= EXPECTED


def test_every_other_form_is_solved_in_a_test() -> None:
    for name, (_, _, *places) in reasons().items():
        for place in places:
            file, _, case = place.partition("::")
            assert case in (REASONS.parents[1] / file).read_text("utf-8"), name


@pytest.mark.parametrize("form", FORMS)
def test_the_other_form_solves(form: str) -> None:
    plan = Problem(FORMS[form]).solve()
    assert plan.feasible
    assert plan.verify().ok
