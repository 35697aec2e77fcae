"""Every certificate of a lower bound beside brute force: tiny programs are solved whole, mechanisms are searched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations
from math import exp, factorial, prod
from typing import Any

import numpy as np
import pytest
from flint import fmpq
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from privspec.kernel.core.problem import AskedMeasure, Obligation, Unit
from privspec.kernel.core.reading import Grid, JsonNode, Refused
from privspec.kernel.core.tables import Compared
from privspec.kernel.reports import CellBlock
from privspec.kernel.reports import lower_bound as cells_bound
from privspec.kernel.selection import Cost, Counts, Law, Ranks, Selected, Where, least, read_witness, tables_of
from privspec.kernel.tables import TableBound
from privspec.kernel.tables_forms import Amount, Limit, Task, Worst
from privspec.kernel.worth.shifts import Multipliers, ShiftBound

F = Fraction
FEW, MANY = 15, 2000
EXAMPLES = pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
NEAR = 1e-6
"""How far, relatively, bounds and optima that are found in doubles may be from each other."""
Matrix = np.ndarray
Witness = dict[str, Any]


def tried(examples: int, holds: Callable[[Any], None], drawn: st.SearchStrategy[Any]) -> None:
    """A property, on so many instances; always the same ones."""
    wanted = settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    wanted(given(drawn)(holds))()


def numbers(low: int, high: int, below: int = 4) -> st.SearchStrategy[Fraction]:
    return st.integers(low * below, high * below).map(lambda n: F(n, below))


def grid(rows: list[list[Fraction]]) -> Grid:
    """Numbers over 16 as the kernel holds them."""
    entries = tuple(int(16 * v) for row in rows for v in row)
    assert all(16 * v == int(16 * v) for row in rows for v in row)
    return Grid((len(rows), len(rows[0])), F(1, 16), entries)


def line(epsilon: Fraction, delta: Fraction | None, unit: Unit | None = None) -> Obligation:
    """A line of pure epsilon, or with a delta, of one output."""
    unit = unit or Unit("record", ("x",), False, 1, None, None, False)
    name = "epsilon-DP" if delta is None else "(epsilon, delta)-DP"
    amounts = (("epsilon", epsilon), *([] if delta is None else [("delta", delta)]))
    measure = AskedMeasure(name, amounts, None, ())
    return Obligation(("o",), ("o",), ("x",), "", (unit,), ("anyone",), measure, 1, "")


# --- the dual of a linear program: tables -------------------------------------------------------------------------


class Program:
    """min c v over v >= 0 with rows at most, or exactly, as much; names of variables are made as they are used."""

    def __init__(self) -> None:
        self.names, self.goal = dict[Any, int](), dict[Any, float]()
        self.above, self.limits = list[dict[Any, float]](), list[float]()
        self.sums, self.wholes = list[dict[Any, float]](), list[float]()

    def at_most(self, row: dict[Any, float], limit: float) -> int:
        self.above.append(row)
        self.limits.append(limit)
        return len(self.limits) - 1

    def exactly(self, row: dict[Any, float], whole: float) -> None:
        self.sums.append(row)
        self.wholes.append(whole)

    def solve(self) -> tuple[float, list[float]]:
        """The least value, and multipliers >= 0 of the rows that are limits."""
        for row in (*self.above, *self.sums, self.goal):
            for name in row:
                self.names.setdefault(name, len(self.names))
        above, sums = self._dense(self.above), self._dense(self.sums)
        goal = self._dense([self.goal])[0]
        found = linprog(goal, above, self.limits, sums, self.wholes, bounds=(0, None), method="highs")
        assert found.status == 0, found.message
        return float(found.fun), [max(0.0, -float(z)) for z in found.ineqlin.marginals]

    def _dense(self, rows: list[dict[Any, float]]) -> Matrix:
        found = np.zeros((len(rows), len(self.names)))
        for i, row in enumerate(rows):
            for name, value in row.items():
                found[i, self.names[name]] += value
        return found


@st.composite
def tables(draw: st.DrawFn) -> tuple[Task, Obligation, Witness]:
    """A table of two or three rows and columns, of which an observer may see only some of two outputs."""
    rows, columns = draw(st.integers(2, 3)), draw(st.integers(2, 4))
    costs = st.lists(st.lists(numbers(-1, 3), min_size=columns, max_size=columns), min_size=rows, max_size=rows)
    shares = draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows))
    assume(sum(shares) == 4)
    pairs = list(combinations(range(rows), 2))
    kept = draw(st.lists(st.sampled_from(pairs), unique=True)) if draw(st.booleans()) else pairs
    levels = [(a, b, draw(st.integers(0, 1))) for a, b in kept]
    compared = Compared((), Grid((len(levels), 3), F(1), tuple(v for pair in levels for v in pair)), (F(1), F(4)), rows)
    hidden = [draw(st.integers(0, 1)) for _ in range(columns)] if draw(st.booleans()) else list(range(columns))
    hidden = [sorted(set(hidden)).index(value) for value in hidden]  # what nobody is shown has no number
    places = tuple(hidden), tuple(range(columns))
    average = grid(draw(costs)) if draw(st.booleans()) else None
    worst = tuple(
        Worst(draw(numbers(0, 2)), grid(draw(costs)), ()) for _ in range(draw(st.integers(average is None, 1)))
    )
    loss = Amount(average, (), worst, (), draw(numbers(-1, 1)))
    limited = grid(draw(costs))
    prior = Grid((1, rows), F(1, 4), tuple(shares))
    spare = Amount(limited, (), (), (), F(0))
    even = sum(share * sum(own) for share, own in zip(shares, limited.rows, strict=True)) * F(1, 4 * 16 * columns)
    accuracy = (Limit(3, "", spare, even),) if draw(st.booleans()) else ()
    task = Task(
        ("o", "all"), ("x",), (), tuple(range(rows)), tuple(range(columns)), places, prior, (compared,), "", loss,
        None, (), accuracy, (), (), (), (), None,
    )  # fmt: skip
    asked = line(draw(numbers(0, 3)), draw(st.sampled_from([None, F(0), F(1, 16), F(1, 2)])))
    weights = st.floats(0, 3, allow_subnormal=False)
    given_pairs = [[0, a, b, v, draw(weights)] for a, b in permutations(range(rows), 2) for v in set(hidden)]
    known = {(a, b) for a, b, _ in levels} | {(b, a) for a, b, _ in levels}
    witness = {
        "loss": {"worst": [[draw(weights) + 0.01 for _ in range(rows)] for _ in worst], "shares": []},
        "pairs": [one for one in given_pairs if (one[1], one[2]) in known],
        "conditions": [],
        "accuracy": [
            {"line": 0, "multiplier": draw(weights), "tangent": {"worst": [], "shares": []}} for _ in accuracy
        ],
    }
    return task, asked, witness


def best_table(task: Task, asked: Obligation) -> tuple[float, Witness]:
    """The least loss of a table that meets its lines, by a plain program, and its dual as a witness."""
    program, rows, columns = Program(), range(len(task.rows)), range(len(task.columns))
    amounts, prior, hidden = asked.measure.figures({}), list(map(float, task.weights())), task.places[0]
    places = dict[tuple[int, int, int], int]()
    for r in rows:
        program.exactly({(r, c): 1.0 for c in columns}, 1.0)
    for a, b, level in task.compared[0].every():
        ratio = exp(float(amounts["epsilon"]) * float(task.compared[0].squares[level]) ** 0.5)
        for one, other in ((a, b), (b, a)):
            for v in set(hidden):
                own = {(one, c): 1.0 for c in columns if hidden[c] == v}
                own |= {(other, c): -ratio for c in columns if hidden[c] == v}
                slack = {("slack", one, other, v): -1.0} if "delta" in amounts else {}
                places[one, other, v] = program.at_most(own | slack, 0.0)
            if "delta" in amounts:
                program.at_most({("slack", one, other, v): 1.0 for v in set(hidden)}, float(amounts["delta"]))
    limits = []
    for one in task.accuracy:
        assert one.amount.average is not None
        costs = one.amount.average.rows
        row = {(r, c): prior[r] * costs[r][c] / 16 for r in rows for c in columns}
        limits.append(program.at_most(row, float(one.limit)))
    if task.loss.average is not None:
        costs = task.loss.average.rows
        program.goal |= {(r, c): prior[r] * costs[r][c] / 16 for r in rows for c in columns}
    tops = []
    for worst in task.loss.worst:
        program.goal |= {"up": float(worst.weight), "down": -float(worst.weight)}
        own = worst.costs.rows
        tops = [
            program.at_most({(r, c): own[r][c] / 16 for c in columns} | {"up": -1.0, "down": 1.0}, 0.0) for r in rows
        ]
    value, z = program.solve()
    weights = [[z[i] for i in tops]] if tops and any(z[i] for i in tops) else [[1.0] * len(rows)] * bool(tops)
    witness = {
        "loss": {"worst": weights, "shares": []},
        "pairs": [[0, a, b, v, z[i]] for (a, b, v), i in places.items()],
        "conditions": [],
        "accuracy": [
            {"line": k, "multiplier": z[i], "tangent": {"worst": [], "shares": []}} for k, i in enumerate(limits)
        ],
    }
    return value + float(task.loss.constant), witness


def shows(task: Task, asked: Obligation, witness: Witness) -> float:
    return float(TableBound((), task, JsonNode(witness, "claims")).at((asked,)))


@EXAMPLES
def test_no_table_is_below_what_multipliers_show(examples: int) -> None:
    def holds(drawn: tuple[Task, Obligation, Witness]) -> None:
        task, asked, witness = drawn
        best, dual = best_table(task, asked)
        assert shows(task, asked, witness) <= best + NEAR
        assert shows(task, asked, dual) == pytest.approx(best, abs=NEAR)

    tried(examples, holds, tables())


@EXAMPLES
def test_forged_multipliers_of_a_table_are_refused_or_show_less(examples: int) -> None:
    """One that is negative, given twice, or about what nobody compares; larger ones only spoil the bound."""

    def holds(drawn: tuple[Task, Obligation, Witness]) -> None:
        task, asked, _ = drawn
        best, dual = best_table(task, asked)
        rows, some = len(task.rows), dual["pairs"]
        forged = [
            [*some, [0, rows, 0, 0, 1.0]],
            [*some, [0, 0, 0, 0, 1.0]],
            [*some, [1, 0, 1, 0, 1.0]],
            [*some, [0, 0, 1, 99, 1.0]],
            *(
                [[*some, some[0]], [[*some[0][:-1], -1e-9], *some[1:]], [[*some[0][:-1], float("nan")], *some[1:]]]
                if some
                else []
            ),
        ]
        for pairs in forged:
            with pytest.raises(Refused):
                shows(task, asked, dual | {"pairs": pairs})
        for factor in (0.0, 0.5, 2.0, 1e6):
            moved = [[*one[:-1], one[-1] * factor] for one in some]
            assert shows(task, asked, dual | {"pairs": moved}) <= best + NEAR * max(factor, 1)

    tried(examples, holds, tables())


# --- the dual of a linear program: reports of cells, by least chances -----------------------------------------------


@st.composite
def cells(draw: st.DrawFn) -> tuple[CellBlock, Fraction, list[float], list[list[float]] | None]:
    values = tuple(sorted(draw(st.sets(numbers(0, 3, 1), min_size=2, max_size=3))))
    ends = {F(0), F(3), *((a + b) / 2 for a, b in combinations(values, 2)), *draw(st.sets(numbers(0, 3), max_size=1))}
    ordered = tuple(sorted(end for end in ends if 0 <= end <= 3))
    many = len(ordered) - 1
    law = draw(
        st.lists(st.lists(numbers(0, 2), min_size=len(values), max_size=len(values)), min_size=many, max_size=many)
    )
    worst, power = draw(st.booleans()), draw(st.integers(1, 2))
    block = CellBlock(
        "x", "o", None, 1, (), values, ordered, power, draw(numbers(1, 2)), "", None if worst else grid(law)
    )
    rows = draw(st.lists(st.floats(-2, 4, allow_subnormal=False), min_size=many, max_size=many))
    pair = st.lists(st.floats(0.01, 1), min_size=2, max_size=2)
    ends_drawn = draw(st.lists(pair, min_size=many, max_size=many)) if worst else None
    return block, draw(numbers(0, 3)), rows, ends_drawn


@EXAMPLES
def test_no_report_of_cells_is_below_what_multipliers_show(examples: int) -> None:
    def holds(drawn: tuple[CellBlock, Fraction, list[float], list[list[float]] | None]) -> None:
        block, epsilon, rows, ends = drawn
        program, places, many = Program(), range(len(block.values)), range(block.cells)
        for cell in many:
            program.exactly({(cell, y): 1.0 for y in places}, 1.0)
        for one, other in permutations(many, 2):
            for y in places:
                program.at_most({(one, y): 1.0, (other, y): -exp(float(epsilon))}, 0.0)
        if block.costs is None:
            program.goal = {"worst": float(block.weight)}
            for cell in many:
                for number in block.ends[cell : cell + 2]:
                    errors = block.errors(number)
                    program.at_most({(cell, y): float(errors[y]) for y in places} | {"worst": -1.0}, 0.0)
        else:
            weight, costs = float(block.weight * block.costs.unit), block.costs.rows
            program.goal = {(cell, y): weight * costs[cell][y] for cell in many for y in places}
        best, _ = program.solve()
        assert float(cells_bound(block, epsilon, JsonNode({"rows": rows, "ends": ends}, "bound"))) <= best + NEAR
        if ends is not None:
            ends[0][0] = -ends[0][0]
            with pytest.raises(Refused):
                cells_bound(block, epsilon, JsonNode({"rows": rows, "ends": ends}, "bound"))

    tried(examples, holds, cells())


# --- the dual of a linear program: noise in one number, by shifts ---------------------------------------------------


@st.composite
def shifts(draw: st.DrawFn) -> tuple[int, list[int], dict[int, list[Fraction]], Obligation, int]:
    """Cells of what neighbours move, shifts, multipliers of each from a first point on, a line and a power."""
    many = draw(st.integers(1, 3))
    some = sorted(draw(st.sets(st.integers(1, many), min_size=1)))
    first = draw(st.integers(-3, 0))
    found = {s: draw(st.lists(numbers(0, 3), min_size=4, max_size=4)) for s in some}
    asked = line(draw(numbers(1, 2)), draw(st.sampled_from([None, F(1, 16), F(1, 4)])))
    return many, [first], found, asked, draw(st.integers(1, 2))


@EXAMPLES
def test_no_law_of_noise_is_below_what_multipliers_of_shifts_show(examples: int) -> None:
    """Laws on the points of the grid of errors satisfy what is asked at the shifts that have multipliers."""

    def holds(drawn: tuple[int, list[int], dict[int, list[Fraction]], Obligation, int]) -> None:
        cells_, (first,), found, asked, power = drawn
        amounts, plus, minus = asked.measure.figures({}), dict[int, fmpq](), dict[int, fmpq]()
        for shift, row in found.items():
            for k, entry in enumerate(row, first):
                own = fmpq(entry.numerator, entry.denominator)
                plus[abs(k)] = plus.get(abs(k), 0) + own
                minus[abs(k + shift)] = minus.get(abs(k + shift), 0) + own
        bound = ShiftBound(("",), 0, Multipliers(plus, minus, sum(map(max, found.values()), F(0))), ((1, F(1), power),))
        points, program, ratio = range(-14, 15), Program(), exp(float(amounts["epsilon"]))
        program.exactly({("f", d): 1.0 for d in points}, 1.0)
        program.goal = {("f", d): float(abs(d) ** power) for d in points}
        for s in (sign * shift for shift in found for sign in (1, -1)):
            for d in points:
                moved = {("f", d + s): -ratio} if d + s in points else {}
                slack = {("slack", s, d): -1.0} if "delta" in amounts else {}
                program.at_most({("f", d): 1.0} | moved | slack, 0.0)
            program.at_most({("slack", s, d): 1.0 for d in points}, float(amounts.get("delta", 0)))
        if "delta" in amounts:  # no law of few points is of pure epsilon
            best, _ = program.solve()
            assert float(bound.at((asked,))) <= best + NEAR
        # a two-sided geometric law in steps of the grid satisfies any of them
        rate = float(amounts["epsilon"]) / cells_
        plain = np.exp(-rate * np.abs(np.arange(-4000, 4001)))
        loss = float((plain * np.abs(np.arange(-4000.0, 4001.0)) ** power).sum() / plain.sum())
        assert float(bound.at((asked,))) <= loss + NEAR

    tried(examples, holds, shifts())


# --- averages over a law of data ------------------------------------------------------------------------------------


@st.composite
def selections(draw: st.DrawFn) -> tuple[Selected, Obligation]:
    """One of two or three answers, of few records: by ranks or by counts, at the worst or by a law."""
    size, many = draw(st.integers(2, 3)), draw(st.integers(1, 4))
    score = Ranks(draw(st.sampled_from([F(0), F(1, 3), F(1, 2), F(1)]))) if draw(st.booleans()) else Counts()
    chances = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
    assume(sum(chances) == 4)
    form = draw(
        st.sampled_from(["ranks", "mismatch", "distance"] if isinstance(score, Ranks) else ["ranks", "mismatch"])
    )
    worst = form == "ranks" and draw(st.booleans())
    cost = Cost(form, draw(st.integers(1, 2)) if form == "distance" else 1, draw(numbers(1, 2)), worst)
    law = None if worst else Law(many, F(1), Grid((size,), F(1, 4), tuple(chances)), (F(1),))
    answers, places = tuple("abc"[:size]), tuple(sorted(draw(st.sets(numbers(0, 4, 1), min_size=size, max_size=size))))
    block = Selected(
        "x", "o", "c", answers, places if isinstance(score, Ranks) else None, (), (), score, many, law, cost, "", ()
    )
    unit = Unit("record", ("x",), False, draw(st.integers(1, 2)), None, None, False)
    return block, line(draw(numbers(0, 2)), None, unit)


def apart(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return sum(max(a - b, 0) for a, b in zip(one, other, strict=True))


def best_selection(block: Selected, asked: Obligation) -> tuple[float, Witness]:
    """The least loss of any mechanism, by a plain program over its laws at every table of counts, and its dual."""
    listed, program, epsilon = tables_of(block), Program(), float(asked.measure.figures({})["epsilon"])
    places = dict[tuple[int, int, int], int]()
    for i, _ in enumerate(listed):
        program.exactly({(i, r): 1.0 for r in range(block.size)}, 1.0)
    for i, j in permutations(range(len(listed)), 2):
        if apart(listed[i], listed[j]) <= asked.units[0].count:
            for r in range(block.size):
                places[i, j, r] = program.at_most({(i, r): 1.0, (j, r): -exp(epsilon)}, 0.0)
    costs = [[float(cost * block.cost.weight) for cost in block.costs(table)] for table in listed]
    tops = []
    if block.cost.worst:
        program.goal = {"worst": 1.0}
        for i, own in enumerate(costs):
            tops.append(program.at_most({(i, r): cost for r, cost in enumerate(own)} | {"worst": -1.0}, 0.0))
    else:
        for i, (own, weight) in enumerate(zip(costs, block.weights(), strict=True)):
            program.goal |= {(i, r): float(weight) * cost for r, cost in enumerate(own)}
    value, z = program.solve()
    weight = float(block.cost.weight)
    pairs = [[i, j, r, z[k] / weight] for (i, j, r), k in places.items() if z[k]]
    weights = [z[k] for k in tops] if tops else None
    return value, {"pairs": pairs, "weights": weights if weights is None or any(weights) else [1.0] * len(tops)}


@EXAMPLES
def test_no_selection_is_below_what_multipliers_of_tables_show(examples: int) -> None:
    def holds(drawn: tuple[Selected, Obligation]) -> None:
        block, asked = drawn
        assume(asked.units[0].count == 1)
        best, dual = best_selection(block, asked)

        def shown(witness: Witness) -> float:
            return float(least(block, (asked,), None, read_witness(block, JsonNode(witness, "bound"))))

        assert shown(dual) == pytest.approx(best, abs=NEAR)
        for factor in (0.0, 0.7, 3.0):
            moved = [[*pair[:-1], pair[-1] * factor] for pair in dual["pairs"]]
            assert shown(dual | {"pairs": moved}) <= best + NEAR
        far = [(0, i, 0, 1.0) for i, table in enumerate(tables_of(block)) if apart(table, tables_of(block)[0]) != 1]
        for pair in (*far, (0, 1, 0, -1.0)):
            with pytest.raises(Refused):
                shown(dual | {"pairs": [list(pair)]})

    tried(examples, holds, selections())


@EXAMPLES
def test_no_selection_is_below_what_an_average_over_thresholds_shows(examples: int) -> None:
    def holds(drawn: tuple[Selected, Obligation]) -> None:
        block, asked = drawn
        assume(block.law is not None and isinstance(block.score, Ranks))
        best, _ = best_selection(block, asked)
        for places in [[p] for p in range(block.size - 1)] + [list(range(block.size - 1))] * (
            block.cost.form == "distance"
        ):
            records = [block.records]
            witness = {"cells": 4, "groups": [{"group": 0, "thresholds": places, "records": records}]}
            shown = least(block, (asked,), None, read_witness(block, JsonNode(witness, "bound")))
            assert 0 <= float(shown) <= best + NEAR
        twice = {"cells": 4, "groups": [{"group": 0, "thresholds": [0, 0], "records": [block.records]}]}
        with pytest.raises(Refused):
            read_witness(block, JsonNode(twice, "bound"))

    tried(examples, holds, selections())


def multisets(size: int, kinds: int) -> list[tuple[int, ...]]:
    """Every way in which so many records are of so many kinds."""
    if kinds == 1:
        return [(size,)]
    return [(first, *rest) for first in range(size + 1) for rest in multisets(size - first, kinds - 1)]


@st.composite
def partly_counted(draw: st.DrawFn) -> tuple[Selected, Obligation, list[int]]:
    """Records by a law, some of which do not count, that are replaced or come and go; numbers of records to look at."""
    block, asked = draw(selections().filter(lambda one: one[0].law is not None and isinstance(one[0].score, Ranks)))
    assert block.law is not None
    law = replace(block.law, size=draw(st.integers(1, 3)), counted=draw(st.sampled_from([F(1, 4), F(1, 2), F(1)])))
    open_ = replace(block, records=None, law=law, where=(Where("d", ("yes", "no"), (0,)),))
    assert isinstance(block.score, Ranks)
    apart_ = block.score.share.denominator
    first = draw(st.integers(1, law.size))
    points = list(range(first, law.size + 1, apart_))
    unit = Unit("record", ("x",), draw(st.booleans()), 1, None, None, False)
    return open_, line(asked.measure.figures({})["epsilon"], None, unit), points


def best_by_law(block: Selected, asked: Obligation) -> float:
    """The least mean loss of mechanisms that see how many records are of each kind, also of those that do not count."""
    assert block.law is not None
    kinds, many = block.size + 1, block.law.size
    sizes = range(max(many - 1, 0), many + 2) if asked.units[0].adding else (many,)
    listed = [one for size in sizes for one in multisets(size, kinds)]
    counted, program = float(block.law.counted), Program()
    chances = [counted * float(p) for p in block.law.chances.values()] + [1 - counted]
    for i, table in enumerate(listed):
        program.exactly({(i, r): 1.0 for r in range(block.size)}, 1.0)
        if sum(table) == many:
            weight = float(factorial(many)) * prod(p**n / factorial(n) for p, n in zip(chances, table, strict=True))
            costs = block.costs(table[:-1])
            program.goal |= {(i, r): weight * float(block.cost.weight * cost) for r, cost in enumerate(costs)}
    for i, j in permutations(range(len(listed)), 2):
        moved = sum(abs(a - b) for a, b in zip(listed[i], listed[j], strict=True))
        if moved == (1 if asked.units[0].adding else 2):
            for r in range(block.size):
                program.at_most({(i, r): 1.0, (j, r): -exp(float(asked.measure.figures({})["epsilon"]))}, 0.0)
    return program.solve()[0]


@EXAMPLES
def test_records_that_do_not_count_are_averaged_over(examples: int) -> None:
    def holds(drawn: tuple[Selected, Obligation, list[int]]) -> None:
        block, asked, points = drawn
        best = best_by_law(block, asked)
        for place in range(block.size - 1):
            witness = {"cells": 4, "groups": [{"group": 0, "thresholds": [place], "records": points}]}
            shown = least(block, (asked,), None, read_witness(block, JsonNode(witness, "bound")))
            assert 0 <= float(shown) <= best + NEAR

    tried(examples, holds, partly_counted())


@EXAMPLES
def test_no_selection_is_below_what_its_worst_data_show(examples: int) -> None:
    def holds(drawn: tuple[tuple[Selected, Obligation], int]) -> None:
        (block, asked), halves = drawn
        assume(block.cost.worst)
        best, _ = best_selection(block, asked)
        witness = JsonNode({"records": str(F(halves, 2))}, "bound")
        assert float(least(block, (asked,), None, read_witness(block, witness))) <= best + NEAR

    tried(examples, holds, st.tuples(selections(), st.integers(0, 8)))
