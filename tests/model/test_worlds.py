"""Rows, columns, the law of the rows and who is whose neighbour: against lists of all worlds, written by hand."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privspec.core.spans import Source
from privspec.model.build import load_model
from privspec.model.graph import Model
from privspec.model.reports import Failure
from privspec.model.worlds import Worlds, finite, worlds

Label = Any
World = dict[str, Any]
"""A value of every input as text: "1", or tuples of such."""


def model_of(
    inputs: str, loss: str, privacy: str, background: str = "", output: str = "output z in 0..9", parties: str = ""
) -> Model:
    """A spec in which `;` separates lines."""
    sections = {"parties": parties, "variables": f"{inputs}; {output}", "background": background, "loss": loss}
    text = "\n".join(
        f"{name}:\n" + "\n".join(f"  {line.strip()}" for line in lines.split(";"))
        for name, lines in (sections | {"privacy": privacy}).items()
        if lines
    )
    return load_model(Source("test.priv", text))


def plain(label: Label) -> Label:
    return tuple(plain(part) for part in label) if isinstance(label, list) else label


def rows_of(space: Worlds) -> list[Label]:
    return [plain(label) for label in space.labels]


# --- what picks a row -----------------------------------------------------------------------------

BITS = "input x in {0, 1}^3"
WHOLE = "z is 1-DP wrt x"


@pytest.mark.parametrize(
    ("inputs", "loss", "background", "of", "counted", "rows"),
    [
        (BITS, "worst[ |z - sum(x)| ]", "", ("x",), ("x",), 4),
        (BITS, "worst[ |z - mean(x)| + max(x) - min(x) + variance(x) ]", "", ("x",), ("x",), 4),
        (BITS, "worst[ |z - x[1]| ]", "", ("x",), (), 8),
        (BITS, "worst[ |z - sum(i * x[i] for i in 1..3)| ]", "", ("x",), (), 8),
        (BITS, "worst[ |z - prefix_sums(x)[2]| ]", "", ("x",), (), 8),
        (BITS, "worst[ |z - sum(x)| + x[1] ]", "", ("x",), (), 8),
        (f"{BITS}; intermediate y", "worst[ |z - y| ]", "y = sum(x)", ("x",), ("x",), 4),
        (f"{BITS}; intermediate y", "worst[ |z - y| ]", "y = sum(x) + x[2]", ("x",), (), 8),
        (f"{BITS}; intermediate y", "E[ |z - y| ]", "y = sum(x); y ~ uniform", ("y",), (), 4),
        (f"{BITS}; intermediate y", "E[ |z - y| ]", "y = x[1] + 3 * x[2]; y ~ uniform", ("y",), (), 4),
        (f"{BITS}; input y in 1..5", "worst[ |z - y| ]", "", ("y",), (), 5),
        (f"{BITS}; input y in 1..5", "worst[ |z - y - sum(x)| ]", "", ("x", "y"), ("x",), 20),
        (f"{BITS}; input y in 1..5", "E[ |z - sum(x)| ]", "x ~ uniform", ("x",), ("x",), 4),
        ("input x in (0..2)^(2, 2)", "worst[ |z - sum(sum(x))| ]", "", ("x",), ("x",), 45),
        ("input x in (0..9)^9; intermediate y", "worst[ |z - y| ]", "y = sum(x)", ("y",), (), 82),
        ("input x in {1, 2}^12", "worst[ |z - x[3]| ]", "", ("x",), (), 4096),
    ],
)
def test_what_picks_a_row(
    inputs: str, loss: str, background: str, of: tuple[str, ...], counted: tuple[str, ...], rows: int
) -> None:
    model = model_of(inputs, loss, "z is 1-DP wrt x", background)
    assert finite(model)
    if rows > 1024 and of == ("x",):
        # too many inputs to list: what is computed from them picks the row, here all of them
        assert len(worlds(model).rows) == rows
        return
    space = worlds(model)
    assert (space.of, space.counted) == (of, counted)
    assert len(space.rows) == len(space.labels) == rows
    assert len(set(rows_of(space))) == rows


def test_inputs_that_tell_something_are_looked_at() -> None:
    """A joint law makes one input worth looking at for the sake of another; independent ones are not."""
    inputs, loss, privacy = "input s in {a, b}; input x in 0..1", "E[ mismatch(z, x) ]", "z is 1-DP wrt x"
    together = worlds(model_of(inputs, loss, privacy, "(s, x) ~ categorical([[4, 1], [1, 4]])"))
    assert together.of == ("s", "x")
    assert together.prior == tuple(Fraction(w, 10) for w in (4, 1, 1, 4))
    apart = worlds(model_of(inputs, loss, privacy, "s ~ uniform; x ~ bernoulli(0.3)"))
    assert apart.of == ("x",)
    assert apart.prior == (Fraction(7, 10), Fraction(3, 10))


def test_labels_are_what_plans_write() -> None:
    space = worlds(
        model_of(
            "input x in grid(0, 1, 0.5); input w in {yes, no}; input v in (1..2)^2",
            "worst[ |z - x - v[1]| + mismatch(w, s) ]",
            "all outputs are 1-DP wrt all inputs, replacing everything",
            output="output z in {0.25, 1/3}; output s in {yes, no}",
        )
    )
    assert space.labels[0] == ["0", "yes", ["1", "1"]]
    assert space.labels[-1] == ["1", "no", ["2", "2"]]
    assert space.labels[4] == ["0", "no", ["1", "1"]]
    assert list(space.column_labels) == [["0.25", "yes"], ["0.25", "no"], ["1/3", "yes"], ["1/3", "no"]]
    counts = worlds(model_of(BITS, "worst[ |z - sum(x)| ]", WHOLE))
    assert list(counts.labels) == [["3", "0"], ["2", "1"], ["1", "2"], ["0", "3"]]
    computed = worlds(model_of(f"{BITS}; intermediate y", "E[ |z - y| ]", WHOLE, "y = 2 * sum(x) - 1; y ~ uniform"))
    assert list(computed.labels) == ["-1", "1", "3", "5"]


# --- the law of the rows --------------------------------------------------------------------------


def test_the_law_of_counts_is_that_of_all_worlds() -> None:
    space = worlds(model_of("input x in (0..2)^3", "E[ |z - sum(x)| ]", WHOLE, "x ~ categorical([1, 2, 3])"))
    mass = [Fraction(w, 6) for w in (1, 2, 3)]
    found: dict[Label, Fraction] = {}
    for world in product(range(3), repeat=3):
        label = tuple(str(world.count(k)) for k in range(3))
        found[label] = found.get(label, Fraction(0)) + mass[world[0]] * mass[world[1]] * mass[world[2]]
    assert dict(zip(rows_of(space), space.prior or (), strict=True)) == found


def test_the_law_of_computed_values_is_pushed_forward() -> None:
    space = worlds(model_of("input x in (0..9)^4; intermediate y", "E[ |z - y| ]", WHOLE, "y = max(x); x ~ uniform"))
    expected = {str(k): Fraction((k + 1) ** 4 - k**4, 10**4) for k in range(10)}
    if space.of == ("y",):
        assert dict(zip(space.labels, space.prior or (), strict=True)) == expected
    else:
        sums: dict[str, Fraction] = {}
        for counts, p in zip(rows_of(space), space.prior or (), strict=True):
            top = str(max(k for k, c in enumerate(counts) if c != "0"))
            sums[top] = sums.get(top, Fraction(0)) + p
        assert sums == expected


def test_a_law_of_vectors_or_of_their_entries() -> None:
    for law, expected in (
        ("categorical([1, 2, 3, 4])", [Fraction(w, 10) for w in (1, 2, 3, 4)]),
        ("bernoulli(0.25)", [Fraction(w, 16) for w in (9, 3, 3, 1)]),
        ("uniform", [Fraction(1, 4)] * 4),
        ("empirical([[0, 1], [0, 1], [1, 1], [0, 0]])", [Fraction(w, 4) for w in (1, 2, 0, 1)]),
    ):
        space = worlds(model_of("input x in {0, 1}^2", "E[ |z - x[1]| ]", WHOLE, f"x ~ {law}"))
        assert space.prior == tuple(expected), law


def test_without_a_model_there_is_no_law() -> None:
    space = worlds(model_of("input x in 0..3; input y in 0..3", "worst[ |z - x - y| ]", WHOLE, "x ~ uniform"))
    assert space.prior is None


# --- neighbours -----------------------------------------------------------------------------------


def brute(space: Worlds, number: int, all_worlds: list[World], row: Callable[[World], Label], near: Any) -> None:
    """The pairs of rows of one requirement are those that some two neighbouring worlds lead to."""
    found = space.neighbours(space.model.requirements[number])
    labels = rows_of(space)
    pairs = {(labels[a], labels[b]) for a, b in found.pairs}
    assert len(pairs) == len(found.pairs)
    expected = {(row(a), row(b)) for a in all_worlds for b in all_worlds if row(a) != row(b) and near(a, b)}
    assert pairs == expected
    assert found.complete == (len(expected) == len(labels) * (len(labels) - 1) and len(labels) > 1)


def hamming(a: Any, b: Any) -> int:
    return sum(x != y for x, y in zip(a, b, strict=True))


def vectors(low: int, high: int, n: int) -> list[Any]:
    return list(product([str(k) for k in range(low, high + 1)], repeat=n))


@settings(max_examples=settings().max_examples * 2 // 5)
@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 5), st.booleans())
def test_records_of_one_input(top: int, n: int, group: int, ordered: bool) -> None:
    loss = "worst[ |z - x[1]| ]" if ordered else "worst[ |z - sum(x)| ]"
    model = model_of(f"input x in (0..{top})^{n}", loss, f"z is 1-DP wrt x, replacing up to {group} records")
    space = worlds(model)
    listed = [{"x": v} for v in vectors(0, top, n)]

    def row(world: World) -> Label:
        return world["x"] if ordered else tuple(str(world["x"].count(str(k))) for k in range(top + 1))

    brute(space, 0, listed, row, lambda a, b: hamming(a["x"], b["x"]) <= group)


@pytest.mark.parametrize("unit", ["one entry", "one record", "everything"])
def test_entries_and_rows_of_a_matrix(unit: str) -> None:
    model = model_of("input x in {0, 1}^(2, 2)", "worst[ |z - x[1, 1]| ]", f"z is 1-DP wrt x, replacing {unit}")
    listed = [{"x": (v[:2], v[2:])} for v in vectors(0, 1, 4)]
    near = {
        "one entry": lambda a, b: hamming(sum(a["x"], ()), sum(b["x"], ())) == 1,
        "one record": lambda a, b: hamming(a["x"], b["x"]) == 1,
        "everything": lambda a, b: True,
    }[unit]
    brute(worlds(model), 0, listed, lambda w: w["x"], near)


def test_several_inputs() -> None:
    model = model_of(
        "input x in {0, 1}^2; input y in 0..2; input w in 0..1",
        "worst[ |z - x[1] - y - w| ]",
        "z is 1-DP wrt x; z is 1-DP wrt (x, y); z is 1-DP wrt y; z is 1-DP wrt (w, y), replacing everything; "
        "z is 1-DP wrt all inputs, replacing everything",
    )
    space = worlds(model)
    listed = [{"x": v, "y": str(y), "w": str(w)} for v in vectors(0, 1, 2) for y in range(3) for w in range(2)]
    row = lambda world: (world["x"], world["y"], world["w"])  # noqa: E731

    def changed(a: World, b: World) -> set[str]:
        return {name for name in a if a[name] != b[name]}

    def one_record(a: World, b: World) -> bool:
        return changed(a, b) == {"x"} and hamming(a["x"], b["x"]) == 1

    brute(space, 0, listed, row, one_record)
    brute(space, 1, listed, row, lambda a, b: one_record(a, b) or changed(a, b) == {"y"})
    brute(space, 2, listed, row, lambda a, b: changed(a, b) == {"y"})
    brute(space, 3, listed, row, lambda a, b: changed(a, b) <= {"w", "y"})
    brute(space, 4, listed, row, lambda a, b: True)


def test_computed_rows_are_neighbours_where_some_worlds_are() -> None:
    model = model_of(
        "input x in (0..3)^2; input w in 0..1; intermediate y",
        "E[ |z - y| ]",
        "z is 1-DP wrt x; z is 1-DP wrt w; z is 1-DP wrt x, replacing up to 2 records",
        "y = max(x) + 4 * w; y ~ uniform",
    )
    space = worlds(model)
    listed = [{"x": v, "w": str(w)} for v in vectors(0, 3, 2) for w in range(2)]
    row = lambda world: str(max(map(int, world["x"])) + 4 * int(world["w"]))  # noqa: E731
    same = lambda a, b: a["w"] == b["w"]  # noqa: E731
    brute(space, 0, listed, row, lambda a, b: same(a, b) and hamming(a["x"], b["x"]) == 1)
    brute(space, 1, listed, row, lambda a, b: a["x"] == b["x"])
    brute(space, 2, listed, row, same)


def test_voters() -> None:
    model = model_of(
        "input vote[voter] in {a, b}; input age[voter] in 0..1",
        "worst[ |z - age[1]| + mismatch(vote[1], vote[2]) ]",
        "z is 1-DP wrt vote, replacing one voter; z is 1-DP wrt (vote, age), replacing one voter",
        parties="voter in 1..2",
    )
    space = worlds(model)
    listed = [{"vote": v, "age": w} for v in product("ab", repeat=2) for w in vectors(0, 1, 2)]
    row = lambda world: (world["vote"], world["age"])  # noqa: E731
    brute(space, 0, listed, row, lambda a, b: a["age"] == b["age"] and hamming(a["vote"], b["vote"]) == 1)
    people = lambda world: tuple(zip(world["vote"], world["age"], strict=True))  # noqa: E731
    brute(space, 1, listed, row, lambda a, b: hamming(people(a), people(b)) == 1)


def test_what_nothing_looks_at_has_no_neighbours() -> None:
    model = model_of("input x in 0..3; input y in 0..3", "worst[ |z - x| ]", "z is 1-DP wrt y; z is 1-DP wrt x")
    space = worlds(model)
    assert len(space.neighbours(model.requirements[0]).pairs) == 0
    assert len(space.neighbours(model.requirements[1]).pairs) == 12


# --- what is seen ---------------------------------------------------------------------------------


def test_what_observers_tell_apart() -> None:
    model = model_of(
        "input x in 0..1",
        "worst[ |a - x| + |b - x| + |c - x| ]",
        "(c, a) is 1-DP wrt x, seen by A; b is 1-DP wrt x, seen by B; all outputs are 1-DP wrt x, seen by C",
        output="output a in 0..1; output b in 0..2; output c in 0..3",
    )
    space = worlds(model)
    columns = list(product(range(2), range(3), range(4)))
    assert [tuple(map(int, column)) for column in space.columns] == columns


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "code"),
    [
        (("input x in (0..9)^6", "worst[ |z - x[1]| ]", WHOLE), "PS0515"),
        (("input x in 0..999", "worst[ |z - x| ]", "z is 1-DP wrt x", "", "output z in 0..9999"), "PS0515"),
        ((BITS, "E[ |z - sum(x)| ]", "z is 1-DP wrt x", "x ~ binomial(70000, 0.5)"), "PS0514"),
    ],
)
def test_limits(model: tuple[str, ...], code: str) -> None:
    with pytest.raises(Failure) as caught:
        worlds(model_of(*model))
    assert caught.value.code == code
    assert caught.value.help or caught.value.label or caught.value.message


@pytest.mark.parametrize(
    ("inputs", "output", "expected"),
    [
        ("input x in 0..3", "output z in 0..9", True),
        ("input x in [0, 1]", "output z in 0..9", False),
        ("input x in {a, b}^7", "output z in ranking of {a, b, c}", True),
        ("input x in 0..3", "output z", False),
        ("input x in table(age in 0..9)", "output z in 0..9", False),
    ],
)
def test_what_is_finite(inputs: str, output: str, expected: bool) -> None:
    loss = "worst[ mismatch(z, z) ]" if "ranking" in output else "worst[ |z - 1| ]"
    assert finite(model_of(inputs, loss, "z is 1-DP wrt x, replacing everything", "", output)) == expected


@pytest.mark.parametrize("unit", ["one entry", "one record", "everything"])
def test_too_many_pairs_are_refused_before_they_are_listed(unit: str) -> None:
    """Of one number the three units are one, and so is what is said of 3,000 values, each against any other."""
    model = model_of(
        "input x in 1..3000", "worst[ |z - x| ]", f"z is 1-DP wrt x, replacing {unit}", output="output z in 0..1"
    )
    with pytest.raises(Failure) as caught:
        worlds(model).neighbours(model.requirements[0])
    assert caught.value.code == "PS0515"
