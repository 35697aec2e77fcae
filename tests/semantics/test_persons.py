"""Tables of persons mean what the manual says, on all tiny tables, beside a plain reading; and neighbours of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from typing import Any

import polars as pl
import pytest

from privspec.api import Problem
from privspec.execute.data import count_cells
from privspec.execute.family import RunContext
from privspec.execute.persons import of_plan
from privspec.kernel.writing import write
from privspec.problem.elaborate import elaborate
from tests.execute.holding import grid

Record = tuple[str | None, str | None, int | None]
VALUES: list[Record] = [(who, code, spent) for who in ("a", "b") for code, spent in (("X", 0), ("Y", 3), (None, 2))]
VALUES += [(None, "X", 1), ("a", "Y", None)]
"""Whose a record is, its code, what was spent."""
SPEC = """
variables:
  input visits in table(person in id, code in {X, Y}, spent in 0..3)
  output O
background:
  person = persons(visits)
  person.visits = min(count(visits), 2)
  person.spent = sum(visits.spent, code = Y)
  person.spent in 0..4
  person.ill = any(visits, code != Y, spent < 1)
  person.most = max(visits.spent)
  person.heavy = person.spent >= 3
loss: E[ ||O - histogram(person, by = {visits, heavy, ill, most})||^2 ]
privacy: O is 1-DP wrt visits, adding or removing one person
"""


def people(visits: tuple[Record, ...]) -> Counter[tuple[Any, ...]]:
    """What each person's records come to, one by one, as the manual has it."""
    found = Counter[tuple[Any, ...]]()
    for who in {who for who, *_ in visits if who is not None}:
        own = [(code, spent) for other, code, spent in visits if other == who]
        spent = min(sum(s for code, s in own if code == "Y" and s is not None), 4)
        ill = any(code == "X" and s is not None and s < 1 for code, s in own)
        known = [s for _, s in own if s is not None]
        if known:  # else there is no most, and the person has no cell
            found[min(len(own), 2), spent >= 3, ill, max(known)] += 1
    return found


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return {"problem": write(elaborate(Problem(SPEC).check()))}


def read(document: dict[str, Any], visits: tuple[Record, ...]) -> Counter[tuple[Any, ...]]:
    """What a run counts."""
    frame = pl.DataFrame(visits, {"person": pl.String, "code": pl.String, "spent": pl.Int64}, orient="row")
    data = of_plan(document, {"visits": frame}, RunContext())["visits"]
    columns = (("visits", (), 0, 2), ("spent", (), 0, 4), ("ill", ("no", "yes"), None, None), ("most", (), 0, 3))
    counts = count_cells(grid(tuple((*one, (), False) for one in columns), drops=True), data).reshape(3, 5, 2, 4)
    return Counter(
        {
            (many, spent >= 3, bool(ill), most): counts[many, spent, ill, most]
            for many, spent, ill, most in product(*map(range, counts.shape))
            if counts[many, spent, ill, most]
        }
    )


def tables() -> Iterator[tuple[Record, ...]]:
    for size in range(3):
        yield from combinations_with_replacement(VALUES, size)
    yield from (tuple(VALUES[i] for i in (k, k + 1, k)) for k in range(len(VALUES) - 1))


def test_every_tiny_table_is_read_as_it_is_meant(document: dict[str, Any]) -> None:
    for visits in tables():
        merged = Counter[tuple[Any, ...]]()
        for (many, heavy, ill, most), n in read(document, visits).items():
            merged[many, heavy, ill, most] += n
        assert merged == people(visits), visits


def test_whatever_one_person_has_moves_one_row(document: dict[str, Any]) -> None:
    """Adding, removing or replacing all records of one person, whatever others have."""
    others = [(), (("b", "X", 0),), (("b", "Y", 3), ("b", None, 2), (None, "X", 1))]
    own = [
        some for size in range(3) for some in combinations_with_replacement([v for v in VALUES if v[0] == "a"], size)
    ]
    for rest in others:
        seen = {some: read(document, (*some, *rest)) for some in own}
        for one, other in product(own, repeat=2):
            gone, come = (seen[one] - seen[other]).total(), (seen[other] - seen[one]).total()
            assert max(gone, come) <= 1
            if not one or not other:
                assert gone + come <= 1


PLAIN = """
variables:
  input visits in table(visits in 0..2, spent in 0..4, ill in {no, yes}, most in 0..3)
  output O
background:
  visits.heavy = visits.spent >= 3
loss: E[ ||O - histogram(visits, by = {visits, heavy, ill, most})||^2 ]
privacy: O is 1-DP wrt visits, adding or removing one record
"""


def test_a_person_is_one_record() -> None:
    """The plan is that of the same question about records that have these columns."""
    found, plain = (Problem(text).solve() for text in (SPEC, PLAIN))
    assert found.loss.value == pytest.approx(plain.loss.value, rel=1e-6)
    assert found.guarantees[0].neighbours == "adding or removing one person"
    assert found.verify().ok


JOINED = """
variables:
  input visits in table(person in id, code in {X, Y})
  input patients in table(person in id, sex in {F, M})
  output O
background: visits.sex = patients.sex
loss: E[ ||O - histogram(visits, by = {code, sex})||^2 ]
privacy: O is 1-DP wrt (visits, patients), adding or removing one person with at most 2 records
"""
Rows = tuple[tuple[str | None, str | None], ...]


def joined(document: dict[str, Any], visits: Rows, patients: Rows) -> Counter[tuple[Any, ...]]:
    """What a run counts before it keeps so many of each person: whose each record is, its code, what is looked up."""
    frames = {"visits": ("code", visits), "patients": ("sex", patients)}
    data = {
        name: pl.DataFrame(rows, {"person": pl.String, column: pl.String}, orient="row")
        for name, (column, rows) in frames.items()
    }
    return Counter(of_plan(document, data, RunContext())["visits"].select("person", "code", "sex").rows())


def test_what_one_person_has_in_two_tables_moves_records_of_that_person() -> None:
    document = {"problem": write(elaborate(Problem(JOINED).check()))}
    seen: list[Rows] = [(), (("a", "X"),), (("a", "X"), ("a", "Y"))]
    told: list[Rows] = [(), (("a", "F"),), (("a", "F"), ("a", "M")), (("a", "M"), ("a", None))]
    others = (("b", "X"), (None, "Y"), ("c", "Y")), (("b", "F"), ("b", "F"), (None, "M"))
    whole = {
        (visits, patients): joined(document, (*visits, *others[0]), (*patients, *others[1]))
        for visits, patients in product(seen, told)
    }
    for (visits, patients), found in whole.items():
        sexes = {sex for _, sex in patients if sex is not None}
        own = Counter(("a", code, next(iter(sexes)) if len(sexes) == 1 else None) for _, code in visits)
        assert found - own == Counter({("b", "X", "F"): 1, (None, "Y", None): 1, ("c", "Y", None): 1})
        assert own <= found
    # a record of one table by itself moves two of the other: a line about records would not hold
    one, other = whole[seen[2], told[0]], whole[seen[2], told[1]]
    assert (one - other).total() == 2
