"""Tables of persons and columns that are looked up: what domains they have, and what is told of what is neither."""

from fractions import Fraction
from typing import Any

import pytest

from privspec.api import Problem
from privspec.core.diagnostics import SpecError
from privspec.model.domains import Between, FiniteSet, IntegerRange, Table
from privspec.problem.elaborate import elaborate

VISITS = "input visits in table(person in id, code in {A, B}, day in 2025-01-01..2025-03-02, "
VISITS += "age in 0..90, paid in [-5, 9], page in unknown)"
PATIENTS = "input patients in table(person in id, sex in {F, M})"


def spec(*lines: str, question: str = "count(person)", wrt: str = "visits, adding or removing one person") -> str:
    background = "".join(f"  {line}\n" for line in ("person = persons(visits)", *lines))
    return (
        f"variables:\n  {VISITS}\n  output O\nbackground:\n{background}loss: E[ ||O - {question}||^2 ]\n"
        f"privacy: O is 1-DP wrt {wrt}\n"
    )


DOMAINS = {
    "person.n = min(count(visits), 30)": IntegerRange(0, 30),
    "person.n = min(count(visits, code = A, age >= 18), 3)": IntegerRange(0, 3),
    "person.n = min(sum(visits.age), 200)": IntegerRange(0, 200),
    "person.n = any(visits, code in {A})": FiniteSet(("no", "yes")),
    'person.n = any(visits.code = "B", visits.age = 3)': FiniteSet(("no", "yes")),
    "person.n = any(visits.paid > 3, day >= 2025-02-01)": FiniteSet(("no", "yes")),
    "person.n = max(visits.age, code = B)": IntegerRange(0, 90),
    "person.n = min(visits.paid)": Between(Fraction(-5), Fraction(9)),
    "person.n = min(visits.paid * visits.age)": Between(Fraction(-450), Fraction(810)),
}


@pytest.mark.parametrize("definition", DOMAINS)
def test_columns_have_the_domains_that_follow(definition: str) -> None:
    measured = isinstance(DOMAINS[definition], Between)
    question = "sum(person.n)" if measured else "histogram(person, by = {n})"
    found = Problem(spec(definition, question=question)).check().nodes["visits"].domain
    assert isinstance(found, Table)
    assert dict(found.attributes) == {"n": DOMAINS[definition]}
    assert found.ids == ("person",)


def test_bounds_are_declared_beside_a_definition() -> None:
    text = spec("person.n = sum(visits.paid)", "person.n in [-20, 40]", question="sum(person.n)")
    found = Problem(text).check().nodes["visits"].domain
    assert dict(found.attributes) == {"n": Between(Fraction(-20), Fraction(40))}  # type: ignore[union-attr]


def test_days_have_a_first() -> None:
    text = spec(
        "person.first = min(visits.day)",
        "person.month = month(person.first)",
        question="histogram(person, by = {month})",
    )
    found = Problem(text).check().nodes["visits"].domain
    assert dict(found.attributes) == {"month": FiniteSet(("2025-01", "2025-02", "2025-03"))}  # type: ignore[union-attr]


def test_a_column_may_follow_from_others_of_a_record_first() -> None:
    lines = "visits.old = visits.age >= 65", "person.old = any(visits, old = yes)"
    assert Problem(spec(*lines, question="count(person, old = yes)")).check()


def test_columns_follow_from_what_is_gathered_on_the_spot() -> None:
    lines = (
        "person.often = count(visits) >= 3",
        "person.late = min(visits.day) > 2025-02-01",
        "person.all = any(visits, code = A) != no",
    )
    text = spec(
        *lines, "person.paid = 2 * max(visits.paid)", question="sum(person.paid, often = yes, late = no, all = yes)"
    )
    found = Problem(text).check().nodes["visits"].domain
    assert isinstance(found, Table)
    assert dict(found.columns)["min(count(visits), 4)"] == IntegerRange(0, 4)
    assert dict(found.attributes)["paid"] == Between(Fraction(-10), Fraction(18))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["person.n = count(visits)"], "no bounds"),
        (["person.n = sum(visits.paid)"], "no bounds"),
        (["person.n = sum(visits.code)", "person.n in 0..3"], "adds up words"),
        (["person.n = min(visits.code)"], "words have no least"),
        (["person.n = any(visits)"], "any has a condition"),
        (["person.n = any(visits, code = C)"], "has no value C"),
        (["person.n = any(visits, cod = A)"], "no column cod"),
        (["person.n = any(visits, paid in {1, 2})"], "measured"),
        (["person.n = any(visits, page = A)"], "unknown values"),
        (["person.n in 0..3"], "nothing says what person.n is"),
        (["person.n = count(visits)", "person.n in {a, b}"], "lies between two numbers"),
        (["person.n = any(visits, code = A)", "person.n in 0..1"], "is no or yes"),
        (["person.n = min(sum(visits.paid), 10)"], "leaves an end open"),
        (["other = persons(visits, calls)"], "those of tables of records"),
        (["person.n = visits.age >= 3"], "no question is about its records"),
    ],
)
def test_what_is_no_column_of_a_person_is_told(lines: list[str], words: str) -> None:
    with pytest.raises(SpecError) as caught:
        Problem(spec(*lines)).check()
    assert words in caught.value.diagnostics[0].message


@pytest.mark.parametrize(
    ("wrt", "words"),
    [
        ("visits, adding or removing one record", "read person by person"),
        ("visits, adding or removing one person with at most 3 records", "read person by person"),
        ("visits, replacing up to 2 records", "read person by person"),
    ],
)
def test_lines_are_about_whole_persons(wrt: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        Problem(spec(wrt=wrt)).check()
    assert words in caught.value.diagnostics[0].message


def test_questions_are_about_persons() -> None:
    with pytest.raises(SpecError, match="no question is about its records"):
        Problem(spec(question="count(visits)")).check()


def test_a_line_without_a_unit_is_about_one_person() -> None:
    found = Problem(spec(wrt="visits")).check()
    assert found.requirements[0].neighbours.describe() == "replacing one person"
    assert Problem(spec(wrt="person")).check().requirements[0].wrt == found.requirements[0].wrt == ("visits",)
    several = Problem(spec(wrt="visits, replacing up to 2 persons")).check()
    assert several.requirements[0].neighbours.describe() == "replacing up to 2 persons"


def joined(line: str, wrt: str = "(visits, patients), adding or removing one person with at most 2 records") -> str:
    return (
        f"variables:\n  {VISITS}\n  {PATIENTS}\n  output O\nbackground:\n  {line}\n"
        f"loss: E[ ||O - histogram(visits, by = {{code, sex}})||^2 ]\nprivacy: O is 1-DP wrt {wrt}\n"
    )


def test_a_column_is_looked_up() -> None:
    found = Problem(joined("visits.sex = patients.sex")).check()
    assert [block.name for block in found.blocks] == ["visits"]
    assert dict(found.nodes["visits"].domain.attributes)["sex"] == FiniteSet(("F", "M"))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("line", "wrt", "words"),
    [
        (
            "visits.sex = patients.sex",
            "visits, adding or removing one record",
            "one record of another table moves several",
        ),
        ("visits.sex = patients.age", "visits", "no column age"),
        ("visits.sex = patients.sex != F", "visits", "columns of visits alone"),
    ],
)
def test_what_is_not_looked_up_is_told(line: str, wrt: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        Problem(joined(line, wrt)).check()
    assert words in caught.value.diagnostics[0].message


def test_persons_of_several_tables() -> None:
    text = (
        f"variables:\n  {VISITS}\n  {PATIENTS}\n  output O\nbackground:\n  person = persons(patients, visits)\n"
        "  person.sex = patients.sex\n  person.ill = any(visits, code = A)\n"
        "loss: E[ ||O - histogram(person, by = {sex, ill})||^2 ]\n"
        "privacy: O is 1-DP wrt (patients, visits), adding or removing one person\n"
    )
    found = Problem(text).check()
    assert [block.name for block in found.blocks] == ["patients"]
    assert found.requirements[0].wrt == ("patients",)
    twice = text.replace("person.ill", "patients.code = visits.code\n  person.ill")
    with pytest.raises(SpecError, match="gathered from in two ways"):
        Problem(twice).check()


LOOKED_UP = """variables:
  input people in table(person in id, age in {young, old})
  input visits in table(person in id, shop in {a, b}COLUMN)
  output O
BACKGROUND
loss: E[ ||O - QUESTION||^2 ]
privacy: O is 1-DP wrt (people, visits), adding or removing one person with at most 2 records
"""


@pytest.mark.parametrize(
    ("question", "column", "line", "plain"),
    [
        ("count(visits, people.age = old)", "", "visits.age = people.age", "count(visits, age = old)"),
        ("count(visits, people.age != old)", "", "visits.age = people.age", "count(visits, age != old)"),
        (
            "histogram(visits, by = {people.age, shop})",
            ", age in 0..3",
            "visits.years = people.age",
            "histogram(visits, by = {years, shop})",
        ),
    ],
)
def test_a_condition_on_a_column_of_another_table_looks_it_up(
    question: str, column: str, line: str, plain: str
) -> None:
    def problem(asked: str, background: str) -> Any:
        text = LOOKED_UP.replace("QUESTION", asked).replace("COLUMN", column).replace("BACKGROUND", background)
        return elaborate(Problem(text).check()).blocks[0]

    one, other = problem(question, ""), problem(plain, f"background: {line}")
    assert one.target == other.target
    assert one.differences == other.differences
