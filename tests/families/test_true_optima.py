"""Bounds against the program over all differences of neighbours: no stated bound is above the true optimum.

Neighbours are listed here from the meaning of a line alone, record by record, with numbers at the ends of their ranges:
the optimum over a polytope of differences is that over its corners.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import pytest
from numpy.typing import NDArray

from privspec import Problem
from privspec.core.diagnostics import PrivspecError
from privspec.kernel import judge
from tests.plans import Document, matrix_of, resign, solved_text
from tests.semantics import specs
from tests.semantics.meaning import Meaning, World, flat

F = Fraction
Record = tuple[Any, ...]
Vector = tuple[Fraction, ...]
Moves = NDArray[np.float64]
"""Differences of neighbours, a row each."""
CLOSE, RIDGE = 2e-6, 1e-9
"""How near the least loss is looked for, relatively, and noise everywhere that costs next to nothing."""
WORLDS = 100
"""Worlds of a spec up to which every two of them are compared."""
ROUND_OFF, ROUNDS, MORE = 1e-9, 12, 4
"""Relative error of doubles; programs for a case, and differences that each adds."""


class Column(NamedTuple):
    """A column of a table: its name, its domain as written, and its values, or the ends of its range."""

    name: str
    domain: str
    values: tuple[Any, ...]
    measured: bool = False


class Tabled(NamedTuple):
    """A table with its columns; how many records of a person are kept in all, and in one cell."""

    name: str
    columns: tuple[Column, ...]
    most: int
    each: int | None

    def records(self) -> list[Record]:
        return list(product(*(column.values for column in self.columns)))

    def cell(self, record: Record) -> Record:
        """Numbers that are added up tell no cells apart."""
        return tuple(v for v, column in zip(record, self.columns, strict=True) if not column.measured)

    def holdings(self) -> list[tuple[Record, ...]]:
        """All that one person may have, as a run keeps it."""
        found = []
        for count in range(self.most + 1):
            for some in combinations_with_replacement(self.records(), count):
                cells = [self.cell(record) for record in some]
                if all(cells.count(cell) <= (self.each or self.most) for cell in cells):
                    found.append(some)
        return found


class Asked(NamedTuple):
    """An output: what it is compared with, as written, and what a record adds to it."""

    text: str
    table: int
    counts: list[dict[int, Any]]
    sums: int | None

    def added(self, record: Record) -> list[Fraction]:
        value = F(1) if self.sums is None else F(record[self.sums])
        return [value if all(record[i] == v for i, v in where.items()) else F(0) for where in self.counts]


LETTERS = Column("d", "{a, b, c}", ("a", "b", "c")), Column("d", "{a, b}", ("a", "b")), Column("e", "0..1", (0, 1))
NUMBERS = (
    Column("x", "[0, 1]", (0, 1), measured=True),
    Column("x", "[1, 2]", (1, 2), measured=True),
    Column("y", "[-1, 3]", (-1, 3), measured=True),
)


def table(dice: random.Random, name: str, most: int, each: int | None) -> Tabled:
    columns = {one.name: one for one in dice.sample([*LETTERS, *NUMBERS, *NUMBERS], dice.choice([1, 2, 2, 3]))}
    return Tabled(name, tuple(columns.values()), most, each)


def asked(dice: random.Random, tables: list[Tabled]) -> list[Asked]:
    """Sums and counts, some of records with one value, that read every column of every table."""
    found = []
    for number, one in enumerate(tables):
        letters = [i for i, column in enumerate(one.columns) if not column.measured]
        for i, column in enumerate(one.columns):
            others = [j for j in letters if j != i]
            where = {j: dice.choice(one.columns[j].values) for j in dice.sample(others, min(len(others), 1))}
            where = where if dice.random() < 0.4 else {}
            said = "".join(f", {one.columns[j].name} = {v}" for j, v in where.items())
            if column.measured:
                found.append(Asked(f"sum({one.name}.{column.name}{said})", number, [where], i))
            elif dice.random() < 0.5:
                every = [{i: v} for v in column.values]
                found.append(Asked(f"histogram({one.name}, by = {{{column.name}}})", number, every, None))
            else:
                where = {**where, i: column.values[0]}
                said = "".join(f", {one.columns[j].name} = {v}" for j, v in where.items())
                found.append(Asked(f"count({one.name}{said})", number, [where], None))
        if dice.random() < 0.3:
            found.append(Asked(f"count({one.name})", number, [{}], None))
    return found


class Case(NamedTuple):
    """A spec, what it means, and what its lines ask: outputs by number, mu, whether records come or go."""

    text: str
    tables: list[Tabled]
    outputs: list[Asked]
    weights: list[Fraction]
    lines: list[tuple[list[int], Fraction]]
    adding: bool

    @property
    def size(self) -> int:
        return sum(len(one.counts) for one in self.outputs)

    def rows(self, some: list[int]) -> list[int]:
        """The numbers of some outputs."""
        ends = np.cumsum([0, *(len(one.counts) for one in self.outputs)]).tolist()
        return [i for o in some for i in range(ends[o], ends[o + 1])]

    def people(self) -> list[tuple[tuple[Record, ...], ...]]:
        """What a person may have in all tables."""
        return list(product(*(one.holdings() for one in self.tables)))

    def answers(self, person: tuple[tuple[Record, ...], ...]) -> Vector:
        found: list[Fraction] = []
        for one in self.outputs:
            each = [one.added(record) for record in person[one.table]]
            found += [sum(column, F(0)) for column in zip(*each, strict=True)] if each else [F(0)] * len(one.counts)
        return tuple(found)

    def counts(self, person: tuple[tuple[Record, ...], ...]) -> Vector:
        """How many records lie in each cell, a number at one of its ends, the last column running fastest."""
        found: list[Fraction] = []
        for one, records in zip(self.tables, person, strict=True):
            found += [F(records.count(cell)) for cell in one.records()]
        return tuple(found)

    def neighbours(self, vectors: list[Vector]) -> Moves:
        """By what two worlds differ, up to its sign."""
        assert all(value.denominator == 1 for vector in set(vectors) for value in vector)
        moved = np.unique(np.array(sorted(set(vectors)), dtype=np.int64), axis=0)
        if not self.adding:
            # those that stand later, less one before: each pair once
            moved = np.unique(
                np.concatenate([np.unique(moved[i:] - one, axis=0) for i, one in enumerate(moved)]), axis=0
            )
        return moved[moved.any(axis=1)].astype(float)

    def farthest(self, strategy: NDArray[np.float64], people: list[Vector]) -> float:
        """The largest distance of the answers of a strategy in two worlds, by how many records lie in each cell."""
        answers = np.array(sorted(set(people)), dtype=float) @ strategy.T
        if self.adding:
            return float(np.linalg.norm(answers, axis=1).max())
        return max(float(np.linalg.norm(answers - one, axis=1).max()) for one in answers)


def person(seed: int) -> Case:
    """A spec about one person who has several records, in one table or in two."""
    dice = random.Random(seed)
    most = dice.choice([1, 2, 2, 3])
    each = dice.choice([None, 1, 1, 2])
    each = each if each is not None and each < most else None
    tables = [table(dice, name, most, each) for name in ["v", "w"][: dice.choice([1, 1, 1, 2])]]
    outputs, adding = asked(dice, tables), dice.random() < 0.6
    weights = [F(dice.choice(["1", "1", "0.5", "3"])) for _ in outputs]
    wrt = "v" if len(tables) == 1 else "(v, w)"
    words = f"one person with at most {most} records"
    words = (
        f"{'adding or removing' if adding else 'replacing'} {words}{f', at most {each} in one cell' if each else ''}"
    )
    every = list(range(len(outputs)))
    lines = [(every, F(dice.choice([1, 3])))]
    if len(outputs) > 1 and dice.random() < 0.3:
        lines.append((sorted(dice.sample(every, 1)), F(1, 2)))
    said = []
    for some, mu in lines:
        names = "all outputs" if len(some) == len(outputs) else f"O{some[0]}"
        said.append(f"  {names} {'are' if len(some) > 1 else 'is'} ({mu})-GDP wrt {wrt}, {words}")
    terms = (
        f"{float(w)} * E[ ||O{i} - {one.text}||^2 ]" for i, (w, one) in enumerate(zip(weights, outputs, strict=True))
    )
    inputs = [
        f"  input {one.name} in table(person in id, {', '.join(f'{c.name} in {c.domain}' for c in one.columns)})"
        for one in tables
    ]
    text = "\n".join(
        ["variables:", *inputs, *(f"  output O{i}" for i in every), f"loss: {' + '.join(terms)}", "privacy:", *said, ""]
    )
    return Case(text, tables, outputs, weights, lines, adding)


Line = tuple[list[int], float, Moves]
"""The numbers that a line is about, the mu that it allows, and by what they differ between neighbours."""


def reached(costs: list[float], lines: list[Line]) -> float:
    """The loss of Gaussian noise that protects all neighbours: no bound may be above it, and it is next to the least.

    By a program over the differences that were broken so far; what it gives is made larger until it breaks none.
    """
    size, best = len(costs), np.inf
    every = [np.unique(moved[:, rows], axis=0) for rows, _, moved in lines]
    chosen = [{int(np.argmax(np.abs(some @ way))) for way in np.eye(len(some[0]))} for some in every]
    for _ in range(ROUNDS):
        sigma, limits = cp.Variable((size, size), PSD=True), []
        for (rows, mu, _), some, known in zip(lines, every, chosen, strict=True):
            for k in sorted(known):
                column = some[k][:, None]
                limits.append(cp.bmat([[sigma[rows, :][:, rows], column], [column.T, np.array([[mu**2]])]]) >> 0)
        cp.Problem(cp.Minimize(np.array(costs) @ cp.diag(sigma)), limits).solve(solver=cp.CLARABEL)
        # the covariance that is found is one up to the accuracy of the solver
        values, turned = np.linalg.eigh((sigma.value + sigma.value.T) / 2)
        noise, worst = (turned * np.maximum(values, 0)) @ turned.T, 0.0
        noise += np.eye(size) * RIDGE * float(np.trace(noise))
        for (rows, mu, _), some, known in zip(lines, every, chosen, strict=True):
            ratios = np.einsum("ij,ij->i", some, np.linalg.solve(noise[np.ix_(rows, rows)], some.T).T) / mu**2
            known |= set(np.argsort(ratios)[-MORE:].tolist())
            worst = max(worst, float(ratios.max()))
        best = min(best, float(np.array(costs) @ np.diag(noise)) * worst)
        if worst <= 1 + CLOSE / 2:
            break
    return best


def protects(case: Case, plan: Document) -> Iterator[float]:
    """How far the executed answers move neighbours apart, in what each line allows."""
    executed = plan["mechanism"]["executed"]
    strategy = matrix_of(executed["strategy"]) / float(F(executed["noise"]["scale"]))
    whole = case.farthest(strategy, [case.counts(one) for one in case.people()])
    yield from (whole / float(mu) for some, mu in case.lines if len(some) == len(case.outputs))


def check(seed: int) -> bool:
    """Whether a case is solved: then its plan protects all neighbours, and its bound is none above the optimum."""
    case = person(seed)
    plan = solved_text(case.text)
    assert judge(json.dumps(plan)).ok
    assert max(protects(case, plan)) <= 1 + 1e-9, case.text
    moved = case.neighbours([case.answers(one) for one in case.people()])
    costs = [float(w) for w, one in zip(case.weights, case.outputs, strict=True) for _ in one.counts]
    best = reached(costs, [(case.rows(some), float(mu), moved) for some, mu in case.lines])
    low = plan["loss"]["lower_bound"]
    assert low is None or low <= best * (1 + ROUND_OFF), (case.text, low, best)
    return bool(plan["status"] == "optimal")


@pytest.mark.parametrize(
    ("first", "last"), [(0, 6), *(pytest.param(k, k + 50, marks=pytest.mark.slow) for k in range(6, 506, 50))]
)
def test_no_bound_is_above_the_optimum_of_all_neighbours(first: int, last: int) -> None:
    optimal = [check(seed) for seed in range(first, last)]
    assert sum(optimal) >= 0.9 * len(optimal)


# --- other units: entries, records and parties, of any input --------------------------------------------


def linear(seed: int) -> bool | None:
    """Whether a spec of any kind of unit is solved at its optimum, by its naive meaning; None for one that is none.

    Of Euclidean balls that meaning knows a few points only.
    """
    text = specs.linear(random.Random(seed)).replace("1-DP", "1-GDP").partition("options:")[0]
    meaning = Meaning(text)
    if "l2_ball" in text or len(meaning.worlds("adding" in text)) > WORLDS:
        return None
    try:
        plan = solved_text(text)
    except PrivspecError:
        return None
    terms = re.findall(r"([0-9.]+) \* E\[ \|\|(O[0-9]) - (y[0-9])", text)

    def aims(world: World) -> Vector:
        return tuple(entry for _, _, value in terms for entry in flat(meaning.named(value, world)))

    first = meaning.worlds()[0]
    names = [name for _, name, value in terms for _ in flat(meaning.named(value, first))]
    costs, lines = [float(w) for w, name, _ in terms for _ in range(names.count(name))], list[Line]()
    for line in meaning.spec.privacy:
        rows = [i for i, name in enumerate(names) if name in meaning.seen(line)]
        pairs = ((aims(a), aims(b)) for a, b, _ in meaning.compared(line))
        moved = {tuple(float(x - y) for x, y in zip(*pair, strict=True)) for pair in pairs}
        lines.append((rows, 1.0, np.array(sorted(moved))))
    if plan["status"] == "infeasible":
        return None  # a table of which any number of records may change
    low = plan["loss"]["lower_bound"]
    assert low is None or low <= reached(costs, lines) * (1 + ROUND_OFF), text
    return bool(plan["status"] == "optimal")


@pytest.mark.parametrize(
    ("first", "last"), [(0, 12), *(pytest.param(k, k + 50, marks=pytest.mark.slow) for k in range(12, 312, 50))]
)
def test_no_bound_of_other_units_is_above_their_optimum(first: int, last: int) -> None:
    found = [one for one in map(linear, range(first, last)) if one is not None]
    assert sum(found) >= 0.9 * len(found) > 0


@pytest.mark.parametrize("size", [2, 20])
def test_numbers_and_vectors_that_change_at_once_are_taken_as_a_box(size: int) -> None:
    """A vector limited in sum, beside numbers each within a range: the bound of the kernel is the compiler's."""
    text = (
        f"parties: voter in 1..2\nvariables:\n  input x in l1_ball(1, {size})\n  input w[voter] in [1, 3]^{size}\n"
        "  output O\nloss: E[ ||O - (x + sum(w[voter] for voter))||^2 ]\n"
        "privacy: O is 1-GDP wrt (x, w), replacing everything\n"
    )
    plan = solved_text(text)
    assert judge(json.dumps(plan)).ok
    # the sum of a voter's range of 2, twice, and of 2 from one end of the ball to the other, in each of the numbers
    assert plan["loss"]["value"] == pytest.approx(size * size * (2 * 2 + 2) ** 2, rel=1e-6)
    assert plan["loss"]["lower_bound"] <= plan["loss"]["value"]


def test_an_output_that_no_line_names_lies_outside_of_the_places_for_noise() -> None:
    """Noise has a place that does not reach it: it is executed with noise in name only, and the plan verifies."""
    text = (
        "variables:\n  input x in [0, 1]^2\n  input w in [-1, 2]^2\n  intermediate y\n  output A\n  output B\n"
        "background: y = sum(w)\nloss: E[ ||A - x||^2 ] + E[ ||B - y||^2 ]\n"
        "privacy: B is 1-GDP wrt w\noptions: noise at y\n"
    )
    plan = solved_text(text)
    assert judge(json.dumps(plan)).ok
    assert plan["loss"]["value"] == pytest.approx(9, rel=1e-6)
    (site,) = plan["mechanism"]["sites"]
    assert site["at"] == "y"
    forged = copy.deepcopy(plan)
    forged["mechanism"]["sites"] = [{"at": "y", "variance": [8.9]}]
    assert not judge(json.dumps(resign(forged))).ok


@pytest.mark.parametrize("measure", ["1-GDP", "1-DP"])
def test_balls_of_several_sizes_that_change_at_once_lie_in_one(measure: str) -> None:
    """The kernel's ball for two vectors of the Euclidean norm is the one that noise was fitted to."""
    text = (
        "variables:\n  input x in l2_ball(1, 2)\n  input w in l2_ball(2, 2)\n  output A\n  output B\n"
        "loss: 0.5 * E[ ||A - x||^2 ] + E[ ||B - mean(w)||^2 ]\n"
        f"privacy: (A, B) is {measure} wrt (x, w), replacing everything\n"
    )
    assert judge(json.dumps(solved_text(text))).ok


@pytest.mark.parametrize(
    ("domain", "many", "variance", "bound"),
    [
        ("l1_ball(1, 2)", 2, 8, 8),
        ("l1_ball(1, 3)", 2, 12, 12),
        ("l2_ball(1, 2)", 2, 8, 8),
        ("l2_ball(1, 3)", 3, 12, 12),
        ("l2_ball(1, 3)", 2, 12, 6),
        ("l2_ball(1, 2)^3", 2, 48, None),
    ],
)
def test_numbers_of_a_ball_that_change_at_once_stay_in_it(
    domain: str, many: int, variance: float, bound: float | None
) -> None:
    """No difference has a length above 2; a box around it, in which each number moves by 2, is reached by no worlds."""
    privacy = f"privacy: O is 1-GDP wrt x, replacing up to {many} entries"
    plan = Problem(f"variables:\n  input x in {domain}\n  output O\nloss: E[ ||O - x||^2 ]\n{privacy}\n").solve()
    assert plan.loss.value == pytest.approx(variance, rel=1e-5)
    assert plan.loss.lower_bound == (None if bound is None else pytest.approx(bound, rel=1e-5))
