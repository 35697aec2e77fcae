"""Columns made of all records of a person: plans that say that less than a person moves are refused."""

import json

import pytest

from privspec.api import Problem
from privspec.core.diagnostics import SpecError
from privspec.kernel import judge
from privspec.plan import Plan
from tests.plans import Document, Path, mutate, solved_text, without

LINE = "adding or removing one person"
PERSONS = f"""
variables:
  input visits in table(person in id, code in {{A, B}}, paid in 0..9)
  output O
background:
  person = persons(visits)
  person.paid = min(sum(visits.paid, code = A), 20)
loss: E[ (O - sum(person.paid))^2 ]
privacy: O is 1-zCDP wrt visits, {LINE}
"""
JOINED = f"""
variables:
  input visits in table(person in id, code in {{A, B}})
  input patients in table(person in id, sex in {{F, M}})
  output O
background: visits.sex = patients.sex
loss: E[ ||O - histogram(visits, by = {{code, sex}})||^2 ]
privacy: O is 1-zCDP wrt (visits, patients), {LINE} with at most 2 records
"""
UNIT: Path = ("problem", "obligations", 0, "units", 0)
DATA: Path = ("problem", "data", 0)
COLUMN: Path = (*DATA, "people", "gathered", 0)


def refused(document: Document) -> bool:
    return not judge(json.dumps(document)).ok


@pytest.mark.parametrize("text", [PERSONS, JOINED])
def test_plans_hold(text: str) -> None:
    assert not refused(solved_text(text))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*UNIT, "kind"), "entry"),
        ((*UNIT, "apart"), 2),
        ((*DATA, "party"), "person"),
        ((*DATA, "kept"), {"person": "person", "most": 1, "per_cell": None}),
        ((*COLUMN, "way"), "mean"),
        ((*COLUMN, "way"), "count"),
        ((*COLUMN, "holds"), []),
        ((*COLUMN, "holds"), [["maybe"]]),
        ((*COLUMN, "source"), {"table": "visits"}),
        ((*COLUMN, "mean"), 1),
    ],
)
def test_what_is_less_than_a_person_is_refused(path: Path, value: object) -> None:
    assert refused(mutate(solved_text(PERSONS), path, value))


def test_a_column_that_is_looked_up_needs_lines_about_persons() -> None:
    """Under a line about records, one record of another table would move several."""
    found = solved_text(JOINED)
    assert refused(mutate(found, (*UNIT, "kind"), "record"))
    assert refused(without(found, (*DATA, "kept")))
    text = JOINED.replace("visits.sex = patients.sex", "visits.sex = visits.code != A").replace(
        "wrt (visits, patients), adding or removing one person with at most 2 records",
        "wrt visits, adding or removing one record",
    )
    records = solved_text(text)
    assert not refused(records)
    forged = mutate(records, (*DATA, "people"), found["problem"]["data"][0]["people"])
    assert refused(forged)


def test_a_table_is_held_in_one_way() -> None:
    """Who is asked of twice by two inputs moves in both, and no line about one of them says so."""
    found = solved_text(JOINED)
    other = {key: value for key, value in found["problem"]["data"][0].items() if key not in ("people", "derived")}
    assert refused(mutate(found, ("problem", "data"), [*found["problem"]["data"], {**other, "name": "patients"}]))


BOTH = JOINED.replace("  output O\n", "  output O\n  output N\n").replace(
    "^2 ]\n", "^2 ] + E[ (N - count(patients, sex = F))^2 ]\n"
)
BOTH = BOTH.replace("O is", "(O, N) is")


def test_a_table_that_is_looked_up_may_be_asked_about_if_it_moves_as_well() -> None:
    found = solved_text(BOTH)
    assert not refused(found)
    assert refused(mutate(found, (*UNIT, "inputs"), ["visits"]))
    for inputs in (["visits"], ["patients"]):
        (own,) = (one for one in found["problem"]["data"] if one["name"] == inputs[0])
        assert "people" in own or inputs == ["patients"]
        with pytest.raises(SpecError, match="move together"):
            Problem(BOTH.replace("(visits, patients)", inputs[0])).check()


def test_another_reading_is_another_plan() -> None:
    """What is executed is what the spec says: a plan that gathers otherwise is not that of its spec."""
    changed = mutate(solved_text(PERSONS), (*COLUMN, "way"), "greatest")
    assert not Plan(changed).verify().ok


def test_several_inputs_of_one_person_are_bounded_together() -> None:
    text = PERSONS.replace(
        "  output O\n", "  output O\n  output N\n  input calls in table(person in id, code in {A, B})\n"
    )
    text = text.replace("^2 ]\n", "^2 ] + E[ (N - count(calls))^2 ]\n")
    found = Problem(text + f"  N is 1-zCDP wrt calls, {LINE} with at most 1 records\n".replace("  N", "\n  N")).check()
    assert any(one.code == "PS0344" for one in found.warnings)


def test_lines_about_persons_name_their_table_alone() -> None:
    text = PERSONS.replace("  output O\n", "  output O\n  input calls in table(person in id, code in {A, B})\n")
    with pytest.raises(SpecError, match="names that table alone"):
        Problem(text.replace("wrt visits", "wrt (visits, calls)")).check()
