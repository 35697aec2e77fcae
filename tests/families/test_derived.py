"""Columns that follow from others: specs mean what the same specs of plain columns mean, and no bound is too high."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from privspec.api import Problem, load
from privspec.kernel.core.reading import Refused
from privspec.kernel.derived import Combined, Derived, Fixed, Named, Power, SourceColumn
from privspec.kernel.writing import plan_digest
from privspec.plan import Plan, verify

ONE = "adding or removing one record"


def plan(table: str, question: str, *, follows: str = "", measure: str = "1-DP", relation: str = ONE) -> Plan:
    background = f"background:\n  {follows}\n" if follows else ""
    return Problem(
        f"variables:\n  input t in table({table})\n  output O\n{background}loss: E[ ||O - {question}||^2 ]\n"
        f"privacy: O is {measure} wrt t, {relation}\n"
    ).solve()


SAME = {
    "classes": (
        ("age in 0..100", "histogram(t, by = {g})", "t.g = cut(t.age, [0, 15, 30, 65, 100])"),
        ("g in {a, b, c, d}", "histogram(t, by = {g})"),
    ),
    "a difference": (("a in [0, 9], b in [1, 4]", "sum(t.d)", "t.d = t.a - t.b"), ("d in [-4, 8]", "sum(t.d)")),
    "a square": (("a in [0, 10]", "sum((t.a - 5)^2)", ""), ("d in [0, 25]", "sum(t.d)")),
    "months": (
        ("day in 2025-01-01..2025-12-31", "histogram(t, by = {m})", "t.m = month(t.day)"),
        ("m in 1..12", "histogram(t, by = {m})"),
    ),
    "sums by classes": (
        ("a in [0, 10], b in 0..5", "sum(t.a, by = {g})", "t.g = t.b > 2"),
        ("a in [0, 10], g in {no, yes}", "sum(t.a, by = {g})"),
    ),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("measure", ["1-DP", "1-GDP"])
def test_what_follows_is_as_good_as_what_stands_there(name: str, measure: str) -> None:
    (table, question, follows), plain = SAME[name]
    found, wanted = plan(table, question, follows=follows, measure=measure), plan(*plain, measure=measure)
    assert found.loss.value == pytest.approx(wanted.loss.value, rel=1e-6)
    assert found.loss.lower_bound == pytest.approx(wanted.loss.lower_bound, rel=1e-6)
    assert found.status == wanted.status


@pytest.mark.parametrize(
    ("table", "question", "follows"),
    [
        ("age in 0..5", "histogram(t, by = {age, g})", "t.g = t.age > 2"),
        ("a in [0, 10]", "sum(t.d) - 2 * sum(t.a)", "t.d = t.a^2"),
        ("a in 0..3, b in 0..3", "histogram(t, by = {p})", "t.p = t.a * t.b"),
        ("a in [0, 1], b in [0, 1]", "[sum(t.p), sum(t.q)]", "t.p = t.a - t.b\n  t.q = t.a + t.b"),
    ],
)
@pytest.mark.parametrize("relation", [ONE, "replacing one record"])
def test_nothing_is_proved_of_records_that_there_are_not(
    table: str, question: str, follows: str, relation: str
) -> None:
    """Where some combinations of columns have no record, the noise is enough, and no bound is stated."""
    found = plan(table, question, follows=follows, measure="1-GDP", relation=relation)
    assert found.status == "feasible"
    assert found.loss.lower_bound is None


def test_a_bound_for_independent_columns_is_that_of_all_neighbours() -> None:
    """Sensitivities by hand: a + b in [0, 2] adds one record of any value; a mean of both is another matter."""
    found = plan("a in [0, 1], b in [0, 1]", "sum(t.a + t.b)", measure="1-GDP")
    assert found.loss.value == pytest.approx(4, rel=1e-6)
    assert found.loss.lower_bound == pytest.approx(4, rel=1e-5)


AGE, PAY = SourceColumn("age", (), 0, 9), SourceColumn("pay", ("0", "9"), between=True)


@pytest.mark.parametrize(
    "made",
    [
        lambda: Derived("g", (AGE,), Named("pay")),
        lambda: Derived("g", (AGE, PAY), Named("pay")),
        lambda: Derived("g", (AGE, AGE), Named("age")),
        lambda: Derived("g", (AGE,), None, (), ("a", "b"), (0, 1)),
        lambda: Derived("g", (AGE,), None, (), ("a", "b"), (0, 1, 2, 0, 0, 0, 0, 0, 0, 0)),
        lambda: Derived("g", (PAY,), None, (), ("a", "b"), (0, 1)),
        lambda: Derived("g", (AGE,), Named("age"), ("< 5",), ("a",)),
        lambda: Derived("g", (AGE,), Named("age"), ("< 5",), ("a", "a")),
        lambda: Derived("g", (AGE,), Combined("/", Fixed(Fraction(1)), Named("age"))),
        lambda: Derived("g", (SourceColumn("sex", ("F", "M")),), Named("sex")),
        lambda: Derived("g", (AGE,), None),
        lambda: Derived("g", (SourceColumn("age", ()),), None),
        lambda: Derived("g", (SourceColumn("age", ("low", "high"), between=True),), Named("age")),
        lambda: Derived("g", (SourceColumn("age", ("1", "1/0"), between=True),), Named("age")),
        lambda: Derived("g", (AGE,), Named("age"), ("below 5",), ("a", "b")),
        lambda: Derived("g", (AGE,), Named("age"), ("< 5", "< 3"), ("a", "b", "c")),
        lambda: Power(Power(Power(Named("age"), 8), 8), 8),
    ],
)
def test_the_kernel_takes_nothing_that_does_not_follow(made: object) -> None:
    with pytest.raises(Refused):
        made()  # type: ignore[operator]


@pytest.mark.parametrize("change", [{"cuts": ["<= 3"]}, {"labels": ["yes", "no"]}, {"formula": {"form": "sine"}}, {}])
def test_a_plan_says_how_columns_follow_and_is_refused_otherwise(change: dict[str, object]) -> None:
    document = json.loads(plan("age in 0..9", "histogram(t, by = {g})", follows="t.g = t.age > 4").to_json())
    (own,) = document["problem"]["data"]
    assert own["derived"][0]["cuts"] == ["<= 4"]
    own["derived"] = [{**own["derived"][0], **change}] if change else []
    document["digest"] = plan_digest(document)
    assert not verify(json.dumps(document)).ok


PEOPLE = [{"person": k, "age": 2 * k - 1, "sex": "F", "day": f"2025-0{k % 9 + 1}-01"} for k in range(1, 31)]
FAMILIES = {
    "sums": ("adding or removing one record", "1-DP", "E[ ||O - histogram(t, by = {old})||^2 ]", ""),
    "many tables": ("adding or removing one record", "1-zCDP", "E[ ||O - marginals(t, {old, month})||^2 ]", ""),
    "the most frequent": ("adding or removing one record", "1-DP", "worst[ rank_error(O, argmax(t.month)) ]", ""),
    "a median": ("adding or removing one record", "1-DP", "worst[ rank_error(O, median(t.years)) ]", " in 0..200"),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_reads_what_follows(name: str) -> None:
    relation, measure, loss, domain = FAMILIES[name]
    found = Problem(
        "variables:\n  input t in table(age in 0..99, sex in {F, M}, day in 2025-01-01..2025-12-31)\n"
        f"  output O{domain}\nbackground:\n  t.old = t.age >= 30\n  t.month = month(t.day)\n  t.years = 2 * t.age\n"
        f"loss: {loss}\nprivacy: O is {measure} wrt t, {relation}\n"
    ).solve()
    columns = {name: [one[name] for one in PEOPLE] for name in ("age", "sex", "day")}
    assert found.run({"t": columns}, seed=4)


def test_columns_that_follow_from_one_another_are_of_people_as_well() -> None:
    """No record has A and yes at once: the noise is made as if some had, and nothing is said to be optimal."""
    found = plan("person in id, code in {A, B}", "histogram(t, by = {code, b})", follows="t.b = t.code != A",
                 relation="adding or removing one person with at most 2 records", measure="1-zCDP")  # fmt: skip
    assert found.status == "feasible"
    assert found.loss.lower_bound is None
    assert found.verify().ok


def test_parts_of_a_system_may_each_define_a_column(tmp_path: Path) -> None:
    (tmp_path / "part.priv").write_text(
        "parameters: epsilon = 1\nvariables:\n  input t in table(age in 0..99)\n  output O\n"
        "background: t.old = t.age >= 65\nloss: E[ (O - count(t, old = yes))^2 ]\n"
        "privacy: O is epsilon-DP wrt t, adding or removing one record\n"
    )
    (tmp_path / "whole.priv").write_text(
        'components:\n  a = spec("part.priv", t = t, epsilon = 0.25)\n  b = spec("part.priv", t = t, epsilon = 0.75)\n'
        "variables: input t in table(age in 0..99)\nloss: a.loss + b.loss\n"
        "privacy: (a.O, b.O) is 1-DP wrt t, adding or removing one record\n"
    )
    assert load(tmp_path / "whole.priv").solve().run({"t": {"age": [70, 3]}}, seed=1)


def test_each_of_many_parties_reads_what_follows_from_its_record() -> None:
    found = Problem(
        "parties: person in 1..30\nvariables:\n  input t[person] in table(age in 0..99, sex in {F, M})^1\n  output O\n"
        "background: t.old = t.age >= 30\nloss: E[ ||O - histogram(t, by = {old})||^2 ]\nprivacy: O is 1-LDP wrt t\n"
    ).solve()
    columns = {name: [one[name] for one in PEOPLE] for name in ("person", "age", "sex")}
    assert found.run({"t": columns}, seed=4).to_json() == found.run({"t": PEOPLE}, seed=4).to_json()
