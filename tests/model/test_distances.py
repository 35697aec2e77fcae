"""Distances between values: by name, as |x - x'|, as a matrix; what a line compares and how far apart it is."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import isqrt
from pathlib import Path

import numpy as np
import pytest
from model_specs import errors, helps, load

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.model.build import load_model
from privspec.model.distances import Given, Lattice, distances, shortcut
from privspec.model.graph import Model
from privspec.model.measures import MeasureAt
from privspec.model.spaces import as_value
from privspec.model.worlds import worlds

SPEC = """parameters:
  toll = [[0, 1, 2], [1, 0, 1.5], [2, 1.5, 0]]
variables:
  input x in 1..3
  input y in grid(0, 1, 0.5)
  input place in {north, east, south}
  input point in (0..2)^2
  input order in ranking of {a, b, c}
  constant late in real^(3, 3)
  output z in 1..3
background: x ~ uniform
loss: E[ (z - x)^2 ]
privacy: z is 1-metric-DP wrt x, distance euclidean
"""
LINE = "z is 1-metric-DP wrt x, distance euclidean"


def spec(line: str, **changes: str) -> str:
    text = SPEC.replace(LINE, line)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


def measure(line: str) -> MeasureAt:
    found = load(spec(line)).requirements[0].measure
    assert isinstance(found, MeasureAt) and found.of.by_distance
    return found


@pytest.mark.parametrize(
    ("written", "wrt", "name"),
    [
        ("|x - x'|", "x", "manhattan"),
        ("|x' - x|", "x", "manhattan"),
        ("||x - x'||", "x", "euclidean"),
        ("‖point − point⊤‖", "point", "euclidean"),
        ("||point - point'||_1", "point", "manhattan"),
        ("||point' - point||_inf", "point", "chebyshev"),
        ("||(x, y) - (x, y)'||", "(x, y)", "euclidean"),
        ("||(x, y) - (x', y')||_1", "(x, y)", "manhattan"),
        ("|(y, x) - (y, x)'|", "(x, y)", "manhattan"),
        ("discrete", "place", "discrete"),
        ("kendall", "order", "kendall"),
    ],
)
def test_distances_by_name(written: str, wrt: str, name: str) -> None:
    found = measure(f"z is 1-metric-DP wrt {wrt}, distance {written}")
    assert (found.metric, found.matrix) == (name, None)


@pytest.mark.parametrize(
    ("line", "code", "hint"),
    [
        ("z is 1-metric-DP wrt x, distance |x - y'|", "PS0309", "write |x - x'|"),
        ("z is 1-metric-DP wrt x, distance ||y - y'||_1", "PS0309", "write ||x - x'||_1"),
        ("z is 1-metric-DP wrt (x, y), distance |x - x'|", "PS0309", "write |(x, y) - (x, y)'|"),
        ("z is 1-metric-DP wrt x, distance |x - x|", "PS0309", "write |x - x'|"),
        ("z is 1-metric-DP wrt x, distance |x' - x'|", "PS0309", "write |x - x'|"),
        ("z is 1-metric-DP wrt (x, y), distance |(x, y) - (y, x)'|", "PS0309", "write |(x, y) - (x, y)'|"),
        ("z is 1-metric-DP wrt x, distance |x + x'|", "PS0309", "a matrix of distances"),
        ("z is 1-metric-DP wrt x, distance |x''' - x|", "PS0309", "a matrix of distances"),
        ("z is 1-metric-DP wrt x, distance |x - x'|^2", "PS0309", "a matrix of distances"),
        ("z is 1-metric-DP wrt x, distance 2 * |x - x'|", "PS0309", "a matrix of distances"),
        ("z is 1-metric-DP wrt x, distance x", "PS0309", "a matrix of distances"),
        ("z is 1-metric-DP wrt x, distance euclidian", "PS0309", "did you mean euclidean?"),
        ("z is 1-metric-DP wrt x, distance tol", "PS0309", "did you mean toll?"),
        ("z is 1-metric-DP wrt place, distance |place - place'|", "PS0309", "distance discrete"),
        ("z is 1-metric-DP wrt x, distance kendall", "PS0309", "euclidean"),
        ("z is 1-metric-DP wrt x, distance 3", "PS0318", "a matrix of distances"),
        ("z is 1-metric-DP wrt x, distance [0, 1, 2]", "PS0318", "one row and one column for each value"),
        ("z is 1-metric-DP wrt (x, y), distance toll", "PS0318", "one row and one column for each value"),
        ("z is 1-metric-DP wrt x, distance toll - 1", "PS0318", ""),
        ("z is 1-metric-DP wrt x, distance [[0, 1, 2], [1, 0, 3], [2, 4, 0]]", "PS0318", "row 3, column 2 says 4"),
        ("z is 1-metric-DP wrt x, distance [[0, 1, 2], [1, 1, 3], [2, 3, 0]]", "PS0318", ""),
        ("z is 1-metric-DP wrt x, distance [[0, -1, 2], [-1, 0, 3], [2, 3, 0]]", "PS0318", ""),
        ('z is 1-metric-DP wrt x, distance csv("none.csv")', "PS0240", ""),
        ("z is 1-metric-DP wrt x, distance roads(3)", "PS0205", ""),
        ("z is 1-metric-DP wrt x", "PS0309", "distance euclidean"),
        ("z is 1-DP wrt x, distance toll", "PS0310", "metric-DP"),
    ],
)
def test_distances_that_do_not_fit(line: str, code: str, hint: str) -> None:
    found = errors(spec(line))
    assert set(found) == {code}, found
    assert hint in helps(spec(line))[code]


def test_the_wrong_name_is_where_the_error_points() -> None:
    with pytest.raises(SpecError) as caught:
        load(spec("z is 1-metric-DP wrt x, distance |x - y'|"))
    (found,) = caught.value.diagnostics
    assert found.source is not None
    assert found.source.slice(found.labels[0].span) == "y"


def test_words_have_no_difference_but_may_differ() -> None:
    warned = {w.code: w.message for w in load(spec("z is 1-metric-DP wrt place, distance euclidean")).warnings}
    assert "one apart" in warned["PS0309"]


def test_matrices() -> None:
    found = measure("z is 1-metric-DP wrt place, distance 2 * toll")
    assert found.metric == "2 * toll"
    assert found.matrix is not None
    assert (found.name, found.amounts) == ("epsilon-metric-DP", {"epsilon": 1})
    model = load(spec("z is 1-metric-DP wrt x, distance [[0, 1, 9], [1, 0, 1], [9, 1, 0]]"))
    warned = [w for w in model.warnings if w.code == "PS0319"]
    assert [w.message for w in warned] == [
        "a detour is shorter than the way: 1 and 3 are 9 apart, and 1 + 1 by way of 2"
    ]
    assert not any(w.code == "PS0319" for w in load(spec("z is 1-metric-DP wrt x, distance toll / 2")).warnings)
    far = "[[0, 1, 9, 1], [1, 0, 1, 1], [9, 1, 0, 1], [1, 1, 1, 0]]"
    model = load(spec(f"z is 1-metric-DP wrt point, distance {far}", **{"(0..2)^2": "(0..1)^2"}))
    assert any("(0, 0) and (1, 0) are 9 apart, and 1 + 1 by way of (0, 1)" in w.message for w in model.warnings)


def test_detours() -> None:
    ways = np.array([[0, 2, 2.5], [2, 0, 1], [2.5, 1, 0]])
    assert shortcut(ways) is None
    ways[0, 2] = ways[2, 0] = 3.5
    assert shortcut(ways) in ((0, 1, 2), (2, 1, 0))


def levels(model: Model, line: int = 0) -> dict[tuple[object, object], Fraction]:
    """The distances of all pairs of values of the one input that a line names."""
    requirement = model.requirements[line]
    values = list(model.nodes[requirement.wrt[0]].domain.elements())  # type: ignore[union-attr]
    found = distances(model, requirement, {requirement.wrt[0]: [as_value(v) for v in values]})
    pairs = list(product(range(len(values)), repeat=2))
    a, b = (np.array([pair[i] for pair in pairs], dtype=np.intp) for i in (0, 1))
    kinds, squares = found.levels(a, b)
    lengths = [down(square) for square in squares]
    assert list(lengths) == sorted(set(lengths))
    return {(values[i], values[j]): lengths[k] for (i, j), k in zip(pairs, kinds, strict=True)}


def down(square: Fraction) -> Fraction:
    """The root rounded down at 2^-64, by the definition of the integer square root."""
    top, bottom = isqrt(square.numerator), isqrt(square.denominator)
    if top * top == square.numerator and bottom * bottom == square.denominator:
        return Fraction(top, bottom)
    return Fraction(isqrt(square.numerator * 2**128 // square.denominator), 2**64)


POINTS = {
    "euclidean": lambda a, b: down(sum(((x - y) ** 2 for x, y in zip(a, b, strict=True)), Fraction(0))),
    "manhattan": lambda a, b: sum((abs(x - y) for x, y in zip(a, b, strict=True)), Fraction(0)),
    "chebyshev": lambda a, b: max(abs(x - y) for x, y in zip(a, b, strict=True)),
    "hamming": lambda a, b: Fraction(sum(x != y for x, y in zip(a, b, strict=True))),
    "discrete": lambda a, b: Fraction(a != b),
}


@pytest.mark.parametrize("metric", POINTS)
@pytest.mark.parametrize("domain", ["(0..2)^2", "grid(-1, 1, 0.25)^2", "{0, 1e20, 3}^2", "{0, 0.3, 1e-30}^2"])
def test_points(metric: str, domain: str) -> None:
    text = spec(f"z is 1-metric-DP wrt point, distance {metric}", **{"(0..2)^2": domain})
    for (a, b), found in levels(load(text)).items():
        assert found == POINTS[metric](a, b)


@pytest.mark.parametrize("metric", ["hamming", "discrete", "euclidean", "manhattan"])
def test_words(metric: str) -> None:
    for (a, b), found in levels(load(spec(f"z is 1-metric-DP wrt place, distance {metric}"))).items():
        assert found == (a != b)


def test_rankings() -> None:
    swaps = levels(load(spec("z is 1-metric-DP wrt order, distance kendall")))
    moves = levels(load(spec("z is 1-metric-DP wrt order, distance footrule")))
    assert swaps[tuple("abc"), tuple("abc")] == 0
    assert swaps[tuple("abc"), tuple("cba")] == 3
    assert swaps[tuple("abc"), tuple("acb")] == 1
    assert moves[tuple("abc"), tuple("cba")] == 4
    several = "(ranking of {a, b, c})^2"
    text = spec("z is 1-metric-DP wrt order, distance kendall", **{"in ranking of {a, b, c}": f"in {several}"})
    twice = levels(load(text))
    one, other = (tuple("abc"), tuple("cab")), (tuple("bac"), tuple("abc"))
    assert twice[one, other] == 1 + 2


def test_own_distances_are_what_the_file_says(tmp_path: Path) -> None:
    (tmp_path / "roads.csv").write_text("north,east,south\n0,0.1,12.25\n0.1,0,12.345\n12.25,12.345,0\n", "utf-8")
    text = spec('z is 1-metric-DP wrt place, distance csv("roads.csv")')
    model = load(text, tmp_path)
    found = levels(model)
    assert found["north", "east"] == Fraction("0.1")
    assert found["south", "east"] == Fraction("12.345")
    assert "csv:roads.csv" in model.files
    # a plan holds the numbers as doubles: they mean the same there
    again = load_model(Source("again", text), files=model.files)
    assert levels(again) == found


def test_constants_that_come_later() -> None:
    text = spec("z is 1-metric-DP wrt x, distance late")
    load(text)
    matrix = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0.0]])
    model = load_model(Source("given", text), constants={"late": matrix})
    assert levels(model)[Fraction(1), Fraction(3)] == 2
    with pytest.raises(SpecError) as caught:
        load_model(Source("given", text), constants={"late": matrix + np.triu(matrix)})
    assert {d.code for d in caught.value.diagnostics} == {"PS0318"}


def test_kinds_of_distances() -> None:
    model = load(spec("z is 1-metric-DP wrt (x, y), distance euclidean"))
    x, y = (list(model.nodes[name].domain.elements()) for name in ("x", "y"))  # type: ignore[union-attr]
    found = distances(model, model.requirements[0], {"x": x, "y": y})
    assert isinstance(found, Lattice)
    kinds, squares = found.levels(np.array([0]), np.array([8]))
    assert squares[kinds[0]] == 5
    fine = load(spec("z is 1-metric-DP wrt x, distance manhattan", **{"x in 1..3": "x in {0, 1e-20, 1}"}))
    numbers = list(fine.nodes["x"].domain.elements())  # type: ignore[union-attr]
    found = distances(fine, fine.requirements[0], {"x": numbers})
    assert isinstance(found, Lattice) and found.points.dtype == object
    own = load(spec("z is 1-metric-DP wrt x, distance toll"))
    assert isinstance(distances(own, own.requirements[0], {"x": numbers}), Given)


# --- what a line compares ---------------------------------------------------------------------------------


def compared(text: str, line: int = 0) -> dict[tuple[object, object], Fraction]:
    space = worlds(load(text))
    found = space.neighbours(space.model.requirements[line])
    assert found.distances is not None
    rows = space.labels
    return {(str(rows[a]), str(rows[b])): d for (a, b), d in zip(found.pairs.tolist(), found.distances, strict=True)}


def test_inputs_that_are_not_looked_at_may_change_as_well() -> None:
    text = """variables:
  input x in 1..2
  input y in 1..2
  output z in 1..2
loss: worst[ mismatch(z, x) ]
privacy: z is 1-metric-DP wrt (x, y), distance {}
"""
    assert compared(text.format("manhattan"))["1", "2"] == 1
    # (1, 1) (1, 2) (2, 1) (2, 2): from x = 1 to x = 2 it is least from (1, 2) to (2, 1)
    matrix = "[[0, 1, 5, 4], [1, 0, 3, 6], [5, 3, 0, 1], [4, 6, 1, 0]]"
    assert compared(text.format(matrix))["1", "2"] == 3


def test_computed_rows_are_as_far_apart_as_the_nearest_of_their_inputs() -> None:
    text = """variables:
  input x in {0, 1, 5, 9}
  intermediate s
  output z in 0..1
background:
  s = |x - 5|
  s ~ uniform
loss: E[ mismatch(z, s) ]
privacy: z is 1-metric-DP wrt x, distance |x - x'|
"""
    found = compared(text)  # s = 5, 4, 0, 4
    assert found == {
        ("0", "4"): 4, ("4", "0"): 4, ("0", "5"): 5, ("5", "0"): 5, ("4", "5"): 1, ("5", "4"): 1,
    }  # fmt: skip


def test_an_input_whose_distance_counts_is_not_held_as_counts() -> None:
    text = """variables:
  input x in (0..1)^3
  output z in 0..3
background: x ~ uniform
loss: E[ (z - sum(x))^2 ]
privacy: z is {} wrt x
"""
    assert worlds(load(text.format("1-DP"))).counted == ("x",)
    listed = worlds(load(text.format("1-metric-DP").replace("wrt x\n", "wrt x, distance hamming\n")))
    assert listed.counted == ()
    assert len(listed.rows) == 8


def test_one_voter_changes_all_that_it_holds() -> None:
    text = """parties: voter in 1..2
variables:
  input a[voter] in 0..1
  input b[voter] in 0..1
  output z in 0..2
loss: worst[ mismatch(z, a[1] + b[2]) ]
privacy: z is 1-DP wrt (a, b), replacing one voter
"""
    space = worlds(load(text))
    found = space.neighbours(space.model.requirements[0])
    rows = [tuple(tuple(int(i) for i in value) for value in row) for row in space.rows]
    wanted = {
        (i, j)
        for i, (a, b) in enumerate(rows)
        for j, (c, d) in enumerate(rows)
        if i != j and any(a[1 - v] == c[1 - v] and b[1 - v] == d[1 - v] for v in (0, 1))
    }
    assert {(int(i), int(j)) for i, j in found.pairs} == wanted
    assert space.counted == ()


def test_lipschitz_takes_the_same_distances() -> None:
    fairness = "\nfairness: z is 0.1-Lipschitz wrt x, distance |x - x'|\n"
    model = load(spec("z is 1-DP wrt x" + fairness))
    found = model.fairness[0].measure  # type: ignore[union-attr]
    assert isinstance(found, MeasureAt) and found.of.fairness
    assert found.metric == "manhattan"
