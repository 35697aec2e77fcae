"""Tables of persons in every family of mechanisms: what is solved is verified, runs on records, and explains itself."""

from pathlib import Path

import pytest

from privspec.api import Problem, load

VISITS = [
    {"person": i % 40, "code": "AB"[i % 3 == 0], "day": f"2025-01-{i % 28 + 1:02}", "paid": i % 7} for i in range(200)
]
PATIENTS = [{"person": i, "sex": "FM"[i % 2]} for i in range(0, 40, 3)]
FAMILIES = {
    "noise": ("1-zCDP", "E[ ||O - histogram(person, by = {sex, ill})||^2 ]", ""),
    "whole steps": ("1-DP", "E[ |O - count(person, often = yes)| ]", ""),
    "many tables": ("1-zCDP", "E[ ||O - marginals(person, {sex, ill}, {many})||^2 ]", ""),
    "the most frequent": ("1-DP", "worst[ rank_error(O, argmax(person.first)) ]", ""),
    "a median": ("1-DP", "worst[ rank_error(O, median(person.many)) ]", " in 0..9"),
    "a mean": ("1-zCDP", "E[ (O - mean(person.paid))^2 ]", ""),
}


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("relation", ["adding or removing", "replacing"])
def test_every_family_asks_about_persons(name: str, relation: str) -> None:
    measure, loss, domain = FAMILIES[name]
    found = Problem(
        "variables:\n"
        "  input visits in table(person in id, code in {A, B}, day in 2025-01-01..2025-01-31, paid in 0..9)\n"
        f"  input patients in table(person in id, sex in {{F, M}})\n  output O{domain}\nbackground:\n"
        "  person = persons(visits, patients)\n  person.many = min(count(visits), 9)\n  person.sex = patients.sex\n"
        "  person.paid = sum(visits.paid)\n  person.paid in [0, 50]\n  person.ill = any(visits, code = A)\n"
        "  person.first = min(visits.day)\n  person.often = count(visits) >= 3\n"
        f"loss: {loss}\nprivacy: O is {measure} wrt (visits, patients), {relation} one person\n"
    ).solve()
    tables = {"visits": VISITS, "patients": PATIENTS}
    data = {table: {name: [one[name] for one in rows] for name in rows[0]} for table, rows in tables.items()}
    assert found.verify().ok
    assert found.run(data, seed=4)
    assert f"{relation} one person" in found.explain("auditor")


PART = """
parameters: epsilon = 1
variables:
  input visits in table(person in id, code in {A, B}, paid in 0..9)
  output O
background:
  person = persons(visits)
  person.many = min(count(visits), 5)
loss: E[ (O - sum(person.many))^2 ]
privacy: O is epsilon-DP wrt visits, adding or removing one person
"""
WHOLE = """
components:
  first = spec("part.priv", visits = visits, epsilon = 0.25)
  second = spec("part.priv", visits = visits, epsilon = 0.75)
variables: input visits in table(person in id, code in {A, B}, paid in 0..9)
loss: first.loss + second.loss
privacy: (first.O, second.O) is 1-DP wrt visits, adding or removing one person
"""


def test_parts_of_a_system_are_about_one_table_of_persons(tmp_path: Path) -> None:
    (tmp_path / "part.priv").write_text(PART)
    (tmp_path / "whole.priv").write_text(WHOLE)
    plan = load(tmp_path / "whole.priv").solve()
    assert plan.verify().ok
    visits = {name: [one[name] for one in VISITS] for name in VISITS[0]}
    assert {*plan.run({"visits": visits}, seed=1).values} == {"first.O", "second.O"}
