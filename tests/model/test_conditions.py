"""Counts, sums and histograms of some records: against the records themselves, one by one."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import prod
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.kernel.core.numbers import fraction
from privspec.language.formatter import format_source
from privspec.model.build import load_model
from privspec.model.graph import Model
from privspec.model.targets import labels_of
from privspec.pipeline import Request, solve
from privspec.problem.elaborate import elaborate

AGES, SEXES, HOURS = tuple(range(5)), ("F", "M"), (Fraction(-1), Fraction(1, 2), Fraction(2))
CELLS = list(product(AGES, SEXES, HOURS))
COLUMNS = {"age": AGES, "sex": SEXES, '"hours-per-week"': HOURS}
OPERATORS = {"<": lt, "<=": le, ">": gt, ">=": ge, "!=": ne, "=": eq}
TABLE = 'table(age in 0..4, sex in {F, M}, "hours-per-week" in {-1, 1 / 2, 2})'


def spec(question: str, parameters: str = "") -> str:
    head = f"parameters: {parameters}\n" if parameters else ""
    return (
        f"{head}variables:\n  input people in {TABLE}\n  output O\n  output every\n"
        f"loss: E[ ||O - {question}||^2 ] + E[ ||every - histogram(people)||^2 ]\n"
        "privacy: all outputs are 1-DP wrt people, adding or removing one record\n"
    )


def load(question: str, parameters: str = "") -> Model:
    return load_model(Source("question.priv", spec(question, parameters)))


def matrix(question: str, parameters: str = "") -> list[list[Fraction]]:
    """What one record of each cell adds to the answers, (answers, cells)."""
    (block,) = elaborate(load(question, parameters)).blocks
    numbers: Any = block.target
    return [list(map(fraction, row)) for row in numbers.tolist()[: numbers.nrows() - len(CELLS)]]


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, Any, tuple[int, ...]]:
    """A question, what a record counts for in it, and the columns of its groups."""
    texts, meanings = [], []
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, 2))
        name, values = list(COLUMNS.items())[place]
        value: Any = draw(st.sampled_from(values))
        op = draw(st.sampled_from(["=", "!="] if place == 1 else list(OPERATORS)))
        shown = value if place == 1 else f"({value})" if "/" in str(value) else str(value)
        flipped = op not in ("=", "!=") and draw(st.booleans())
        sides = (shown, {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op], name) if flipped else (name, op, shown)
        texts.append(" ".join(map(str, sides)))
        meanings.append(lambda record, p=place, o=OPERATORS[op], v=value: o(record[p], v))
    by = tuple(sorted(draw(st.sets(st.integers(0, 2), max_size=2))))
    if by:
        texts.append("by = {" + ", ".join(list(COLUMNS)[i] for i in by) + "}")
    adds = draw(st.sampled_from([None, (0,), (2,), (0, 2), (0, 0), (2, 0, 2)]))
    names = list(COLUMNS)
    head = f"count({', '.join(['people', *texts])})"
    if adds is not None:
        product_of = " * ".join(f"people.{names[i]}" for i in adds).replace("people.age * people.age", "people.age^2")
        head = f"sum({', '.join([product_of, *texts])})"
    weight = lambda record: prod((Fraction(record[i]) for i in adds or ()), start=Fraction(1))  # noqa: E731
    return head, lambda record: weight(record) if all(one(record) for one in meanings) else Fraction(0), by


@settings(max_examples=settings().max_examples * 3 // 5, deadline=None)
@given(questions())
def test_every_record_counts_as_it_should(asked: tuple[str, Any, tuple[int, ...]]) -> None:
    question, weight, by = asked
    try:
        found = matrix(question)
    except SpecError as error:
        # no value of a column meets all of its conditions, or nothing of the data is left in the answer
        assert {d.code for d in error.diagnostics} <= {"PS0206", "PS0511", "PS0520", "PS0530"}, question
        return
    order = list(product(*(list(COLUMNS.values())[i] for i in by)))
    every = [
        [weight(cell) if tuple(cell[i] for i in by) == group else Fraction(0) for cell in CELLS] for group in order
    ]
    # groups that the conditions leave out have no answer
    left = [row for row in every if any(row)]
    assert [row for row in found if any(row)] == left


def test_a_histogram_has_the_cells_that_are_left() -> None:
    assert len(matrix("histogram(people, age >= 3, sex = M)")) == 2 * 1 * 3
    assert len(matrix("histogram(people, by = {age}, age in {0, 4})")) == 2
    assert matrix("histogram(people, by = {sex})") == matrix("marginals(people, {sex})")
    assert matrix("count(people)") == [[Fraction(1)] * len(CELLS)]


def test_parameters_are_values_and_bare_words_are_not() -> None:
    assert matrix("count(people, age >= limit)", "limit = 3") == matrix("count(people, age >= 3)")
    assert matrix("count(people, age in 1..limit)", "limit = 3") == matrix("count(people, age in {1, 2, 3})")
    assert matrix("count(people, age in [1, 3))") == matrix("count(people, age in 1..2)")


@pytest.mark.parametrize(
    ("question", "code", "words"),
    [
        ("count(people, aeg > 2)", "PS0206", "column"),
        ("count(people, sex = G)", "PS0206", "sex has no value G"),
        ("count(people, sex < M)", "PS0206", "no order"),
        ("count(people, age > 9)", "PS0206", "no value of age"),
        ("count(people, age > 2, age < 2)", "PS0206", "no value of age"),
        ("count(people.age)", "PS0206", "whole table"),
        ("sum(people)", "PS0208", ""),
        ("sum(people.sex)", "PS0206", "words"),
        ("sum(people.pay)", "PS0206", "no column pay"),
        ("count(people, 3)", "PS0206", "condition"),
        ("count(people, by = {sex, sex})", "PS0206", "twice"),
        ("count(people, by = {pay})", "PS0206", "no column pay"),
        ("count(people, age >= size)", "PS0261", "size"),
        ("marginals(people, age > 2)", "PS0106", "no conditions"),
        ("count(people, age > sex)", "PS0261", "sex"),
        ("count(people, pay > 2)", "PS0206", "neither side"),
        ("count(people, age in {a})", "PS0261", "a has no value"),
        ("count(people, sex in 1..2)", "PS0206", "words"),
        ("count(people, sex = 3)", "PS0206", "words"),
        ("mean(people.age)", "PS0530", "beside others"),
        ("2 * mean(people.age)", "PS0501", "an output of its own"),
        ("mean(people.sex)", "PS0206", "words"),
        ("mean(people.age, sex = G)", "PS0530", "beside others"),
        ("sum(people.age + people.sex)", "PS0206", "no numbers"),
        ("sum(2 / people.age, sex = F)", "PS0206", "divides by what may be 0"),
        ("sum(people.age^9)", "PS0206", "powers are whole numbers from 1 to 8"),
        ("sum(people.age * people.pay)", "PS0206", "no column pay"),
        ("sum(people.age * people.sex)", "PS0206", "words"),
        ("marginals(people, 1, cumulative = {sex})", "PS0206", "no order"),
        ("marginals(people, 1, cumulative = {pay})", "PS0206", "no attribute pay"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(question: str, code: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(question)
    first = caught.value.diagnostics[0]
    assert first.code == code
    assert words in first.message
    assert all(label.span.end > label.span.start for label in first.labels)


def test_running_totals() -> None:
    """`cumulative`: how many records have at most each value, apart for the values of the other columns."""
    question = "marginals(people, {age, sex}, {sex}, cumulative = {age})"
    found = matrix(question)
    want = [[Fraction(cell[0] <= age and cell[1] == sex) for cell in CELLS] for age in AGES for sex in SEXES]
    assert found == [*want, *([Fraction(cell[1] == sex) for cell in CELLS] for sex in SEXES)]
    labels = labels_of(load(question), "O", (12,))
    assert list(labels["age"]) == [*(f"<= {age}" for age in AGES for _ in SEXES), None, None]
    assert matrix("marginals(people, {age}, cumulative = {age})") == matrix("prefix_sums(marginals(people, {age}))")


def test_the_text_stays_the_authors(tmp_path: Path) -> None:
    text = spec('count(people, age >= 2, "hours-per-week" in {2}, by = {sex})')
    assert format_source(Source("a.priv", format_source(Source("a.priv", text)))) == format_source(
        Source("a.priv", text)
    )
    plan = solve(Request(Source("a.priv", text)))
    assert plan.verify().ok
    said = plan.document["loss"]["expression"]
    assert 'count(people, age >= 2, "hours-per-week" in {2}, by = {sex})' in said


def test_groups_are_labelled() -> None:
    plan = solve(Request(Source("a.priv", spec("count(people, age >= 2, by = {sex, age})"))))
    assert plan.verify().ok
    labels = labels_of(load("count(people, age >= 2, by = {sex, age})"), "O", (6,))
    assert {name: list(values) for name, values in labels.items()} == {
        "age": [2, 2, 3, 3, 4, 4],
        "sex": ["F", "M"] * 3,
    }
