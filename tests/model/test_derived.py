"""Columns that follow from others: what domains they have, and what is told of what follows from nothing."""

import json
from collections.abc import Callable
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privspec
from privspec.api import Problem
from privspec.core.diagnostics import SpecError
from privspec.kernel.writing import plan_digest
from privspec.model.domains import Between, FiniteSet, IntegerRange, Table
from privspec.plan import Plan

TABLE = (
    "table(age in 0..100, kids in 0..9, sex in {F, M}, pay in [0, 100], tax in [-10, 40], "
    "day in 2025-01-01..2025-03-02)"
)


def of(definition: str) -> tuple[object, bool]:
    """The domain of a column, and whether each of its values follows from some record."""
    name = definition.partition(" = ")[0].partition(".")[2]
    text = (
        f"variables:\n  input t in {TABLE}\n  output O\nbackground:\n  {definition}\n"
        f"loss: E[ ||O - count(t, by_it)||^2 ]\nprivacy: O is 1-DP wrt t, adding or removing one record\n"
    )
    asked = {True: f"sum(t.{name})", False: f"histogram(t, by = {{{name}}})"}
    for question in asked.values():
        try:
            found = Problem(text.replace("count(t, by_it)", question)).check().nodes["t"].domain
        except SpecError as error:
            if "words" in error.diagnostics[0].message or "measured" in error.diagnostics[0].message:
                continue
            raise
        assert isinstance(found, Table)
        assert found.names == (name,)
        return dict(found.attributes)[name], found.free
    raise AssertionError(definition)


NUMBERS = {
    "t.net = t.pay - t.tax": (Between(Fraction(-40), Fraction(110)), True),
    "t.square = (t.pay - 50)^2": (Between(Fraction(0), Fraction(2500)), True),
    "t.product = t.pay * t.tax": (Between(Fraction(-1000), Fraction(4000)), True),
    "t.share = t.tax / (t.pay + 1)": (Between(Fraction(-10), Fraction(40)), True),
    "t.twice = t.pay + t.pay": (Between(Fraction(0), Fraction(200)), False),
    "t.all = t.age + t.kids - 5": (IntegerRange(-5, 104), True),
    "t.rows = t.kids * t.kids": (IntegerRange(0, 81), False),
    "t.most = max(t.age, t.kids, 3)": (IntegerRange(3, 100), True),
    "t.off = |t.age - 40|": (IntegerRange(0, 60), False),
}
WORDS = {
    "t.group = cut(t.age, [0, 15, 30, 65, 100])": (("0 to 14", "15 to 29", "30 to 64", "65 to 100"), True),
    "t.group = cut(t.age, [10 * i for i in 3..4])": (("0 to 29", "30 to 39", "40 to 100"), True),
    "t.group = cut(t.age, [15, 16, 99])": (("0 to 14", "15", "16 to 98", "99 to 100"), True),
    "t.class = cut(t.pay, [0, 20, 40.5])": (("0 to under 20", "20 to under 40.5", "40.5 to 100"), True),
    "t.grown = t.age >= 18": (("no", "yes"), True),
    "t.young = 18 > t.age": (("no", "yes"), True),
    "t.poor = t.pay < t.tax": (("no", "yes"), True),
    "t.man = t.sex != F": (("no", "yes"), True),
    "t.odd = t.age * t.kids > 800": (("no", "yes"), False),
    "t.who = lookup(t.sex, women = {F}, men = {M})": (("women", "men"), True),
    "t.size = lookup(t.kids, none = {0}, some = {1, 2, 3}, many = {4, 5, 6, 7, 8, 9})": (
        ("none", "some", "many"),
        True,
    ),
    "t.month = month(t.day)": (("2025-01", "2025-02", "2025-03"), True),
    "t.quarter = t.day >= 2025-02-01": (("no", "yes"), True),
    "t.weekday = weekday(t.day)": (
        ("Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday"),
        True,
    ),
}


@pytest.mark.parametrize("definition", NUMBERS)
def test_numbers_lie_between_the_ends_that_follow(definition: str) -> None:
    assert of(definition) == NUMBERS[definition]


@pytest.mark.parametrize("definition", WORDS)
def test_classes_have_labels(definition: str) -> None:
    labels, free = WORDS[definition]
    assert of(definition) == (FiniteSet(labels), free)


def test_weeks_are_those_of_iso_8601() -> None:
    domain, _ = of("t.week = week(t.day)")
    assert isinstance(domain, FiniteSet)
    assert domain.items[0] == "2025-W01"
    assert domain.items[-1] == "2025-W09"


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        ("t.net = t.pay - t.costs", "no column costs"),
        ("t.ratio = t.pay / t.tax", "divides by what may be 0"),
        ("t.net = t.pay + t.sex", "no numbers"),
        ("t.group = cut(t.age, [30, 15])", "ascend"),
        ("t.group = cut(t.age, [200])", "tells values from 0 to 100 apart"),
        ("t.group = cut(t.age)", "takes a column and the numbers"),
        ("t.group = cut(t.age, 30)", "a public vector"),
        ("t.old = t.age > 100", "the same for all values"),
        ("t.root = t.pay^0.5", "powers are whole numbers"),
        ("t.month = month(t.age)", "no days"),
        ("t.age = t.pay + 1", "a column age already"),
        ("t.none = 3 + 4", "no column of the table stands here"),
        ("t.log = exp(t.pay)", "no column follows from this"),
        ("t.f = t.sex < M", "no numbers"),
        ("t.f = ((t.pay^8)^8)^8", "grow out of proportion"),
        ("t.f = t.sex != X", "no value X"),
        ("t.f = lookup(t.sex, a = {F}, b = {X})", "X is no value of sex"),
        ("t.f = lookup(t.sex, a = {F, M}, b = {M})", "M stands twice"),
        ("t.f = lookup(t.sex, a = {F})", "no set has M"),
        ("t.f = lookup(t.kids, a = {0, 1})", "no set has 2, 3, 4, 5, 6 and more"),
        ("t.f = lookup(t.pay, a = {0, 1})", "a column of single values"),
        ("t.f = lookup(t.sex)", "each with the word that it is called"),
    ],
)
def test_what_follows_from_nothing_is_told(definition: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        of(definition)
    assert words in caught.value.diagnostics[0].message


def test_columns_of_other_tables_are_in_other_records() -> None:
    text = (
        "variables:\n  input t in table(age in 0..9)\n  input s in table(age in 0..9)\n  output O\n"
        "background:\n  t.sum = t.age + s.age\n"
        "loss: E[ (O - sum(t.sum))^2 ]\nprivacy: O is 1-DP wrt (t, s), adding or removing one record\n"
    )
    with pytest.raises(SpecError, match="columns of t alone"):
        Problem(text).check()


def test_a_column_may_follow_from_one_that_follows() -> None:
    text = (
        f"variables:\n  input t in {TABLE}\n  output O\nbackground:\n"
        "  t.net = t.pay - t.tax\n  t.rich = t.net >= 50\n  t.month = month(t.day)\n  t.spring = t.month != 2025-01\n"
        "loss: E[ ||O - histogram(t, by = {rich})||^2 ]\nprivacy: O is 1-DP wrt t, adding or removing one record\n"
    )
    found = Problem(text.replace(" != 2025-01", ' != "2025-01"')).check().nodes["t"].domain
    assert isinstance(found, Table)
    assert list(found.columns) == ["pay", "tax"]
    assert found.free


LAWS = {
    "t.grown = t.age >= 80": (0.8, 0.2),
    "t.group = cut(t.age, [0, 25, 50])": (0.25, 0.25, 0.5),
    "t.other = t.age + 1": (0.01,) * 100,
}


@pytest.mark.parametrize("definition", LAWS)
def test_a_column_has_the_law_that_follows(definition: str) -> None:
    """What is predicted at records of a law is predicted at what follows from them."""
    name = definition.partition(" = ")[0]
    model = Problem(
        "variables:\n  input t in table(age in 0..99)^200\n  output q\nbackground:\n"
        f"  {definition}\n  t.age ~ uniform\n"
        f"loss: E[ rank_error(q, argmax({name})) ]\nprivacy: q is 1-DP wrt t, replacing one record\n"
    ).check()
    (law,) = (one for one in model.models if one.subject == name)
    (weights,) = law.arguments
    assert [float(one.value) for one in weights.items] == pytest.approx(LAWS[definition])  # type: ignore[union-attr]


def test_a_law_of_its_own_comes_first() -> None:
    text = (
        "variables:\n  input t in table(age in 0..99)^200\n  output q\nbackground:\n  t.grown = t.age >= 80\n"
        "  t.age ~ uniform\n  t.grown ~ categorical([0.5, 0.5])\n"
        "loss: E[ rank_error(q, argmax(t.grown)) ]\nprivacy: q is 1-DP wrt t, replacing one record\n"
    )
    assert [one.subject for one in Problem(text).check().models] == ["t.age", "t.grown"]


HOURS = """spec hours
variables:
  input t in table(at in {domain})
  output O
background: t.part = {part}
loss: E[ ||O - histogram(t, by = {{part}})||^2 ]
privacy: O is 1-zCDP wrt t, adding or removing one record
"""


def test_hours_of_a_range_have_hours_days_and_all_that_days_have() -> None:
    whole = "2024-02-28T22:00..2024-03-01T01:00"
    for part, labels in (
        ("hour(t.at)", tuple(f"{(22 + n) % 24:02}:00" for n in range(24))),
        ("day(t.at)", ("2024-02-28", "2024-02-29", "2024-03-01")),
        ("weekday(t.at)", ("Wednesday", "Thursday", "Friday")),
        ("t.at >= 2024-02-29T12:00", ("no", "yes")),
    ):
        model = Problem(HOURS.format(domain=whole, part=part)).check()
        table = model.nodes["t"].domain
        assert isinstance(table, Table)
        column = dict(table.attributes)["part"]
        assert set(column.elements()) == set(labels)
        # and a range of hours is written as it was read
        assert f"at in {whole}" in table.describe()


@pytest.mark.parametrize(
    ("domain", "part", "words"),
    [
        ("2025-01-01..2025-01-02T07:00", "day(t.at)", "from a day to a day"),
        ("2025-01-01T09:00..2025-01-01T08:00", "day(t.at)", "this range is empty"),
        ("2025-01-01T24:00..2025-01-02T07:00", "day(t.at)", "there is no day"),
        ("2025-01-01T00:00..2035-01-01T07:00", "day(t.at)", "more than four years"),
        ("2025-01-01..2025-01-31", "hour(t.at)", "are days, and no hours"),
    ],
)
def test_hours_that_are_none_are_refused(domain: str, part: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        Problem(HOURS.format(domain=domain, part=part)).check()
    assert words in caught.value.diagnostics[0].message


# --- words of a public file -----------------------------------------------------------------------

COUNTIES = """variables:
  input people in table(county in {essex, kent, york}, kids in 0..2)
  output O
background: people.region = lookup(people.COLUMN, csv("regions.csv"))
loss: E[ ||O - histogram(people, by = {region})||^2 ]
privacy: O is 1-DP wrt people, adding or removing one record
"""
REGIONS = 'county,region\nessex,south\n\nkent, south \nyork,"the, north"\n'


def counties(folder: Path, regions: str | None = REGIONS, column: str = "county") -> Any:
    if regions is not None:
        (folder / "regions.csv").write_text(regions, "utf-8")
    (folder / "s.priv").write_text(COUNTIES.replace("COLUMN", column), "utf-8")
    return privspec.load(str(folder / "s.priv")).solve()


def test_a_public_file_says_the_words_and_the_plan_holds_them(tmp_path: Path) -> None:
    plan = counties(tmp_path)
    document = json.loads(plan.to_json())
    (tmp_path / "regions.csv").unlink()
    assert Plan(document).verify().ok, "nothing is read from the disk"
    (column,) = document["problem"]["data"][0]["derived"]
    assert (column["labels"], column["places"]) == (["south", "the, north"], [0, 0, 1])
    held = document["spec"]["constants"]["words:regions.csv"]
    assert document["problem"]["public"][0]["sha256"] == held["sha256"]
    released = plan.run({"people": {"county": ["kent", "york", "essex"] * 900, "kids": [0] * 2700}}, seed=1).values["O"]
    assert abs(released[0] - 1800) < 60 and abs(released[1] - 900) < 60
    numbered = counties(tmp_path, "0,none\n1,some\n2,some\n", "kids")
    assert json.loads(numbered.to_json())["problem"]["data"][0]["derived"][0]["places"] == [0, 1, 1]


def moved(held: dict[str, Any]) -> None:
    held["words:regions.csv"]["words"][2][1] = "the, north"


def moved_and_signed(held: dict[str, Any]) -> None:
    moved(held)
    text = json.dumps(held["words:regions.csv"]["words"])
    held["words:regions.csv"]["sha256"] = sha256(text.encode()).hexdigest()


def gone(held: dict[str, Any]) -> None:
    del held["words:regions.csv"]


def as_numbers(held: dict[str, Any]) -> None:
    gone(held)
    held["csv:regions.csv"] = {"shape": [1], "sha256": sha256(np.zeros(1).tobytes()).hexdigest(), "values": [0.0]}


def ragged(held: dict[str, Any]) -> None:
    held["words:regions.csv"]["words"][1] = ["essex"]


@pytest.mark.parametrize("change", [moved, moved_and_signed, gone, as_numbers, ragged])
def test_a_plan_with_other_words_is_refused(tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Also where the file still lies on the disk of whoever verifies."""
    document = json.loads(counties(tmp_path).to_json())
    change(document["spec"]["constants"])
    document["digest"] = plan_digest(document)
    assert not Plan(document).verify().ok


FILES = {
    "essex,south\nkent,south\n": "regions.csv has no line for york",
    "essex,south\nkent,south\nyork,north\nyork,south\n": "line 4 with words: york stands twice",
    "essex,south\nkent,south\nyorc,north\n": "line 3 with words: no value of county",
    "essex,south\nkent\n": "row 2: two words are expected",
    "essex,south\nkent,\n": "row 2: two words are expected",
    "\n": "holds no words",
}


@pytest.mark.parametrize("text", FILES)
def test_files_of_words_that_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SpecError) as caught:
        counties(tmp_path, text)
    assert FILES[text] in caught.value.diagnostics[0].message
