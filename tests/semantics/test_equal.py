"""A spec in other words is the same problem: what moves, what is compared, and what errors cost, number by number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.kernel.core.linear import Matrix
from privspec.kernel.core.numbers import fraction
from privspec.kernel.core.reading import Grid
from privspec.model.build import load_model
from privspec.problem.elaborate import Problem, elaborate
from privspec.problem.linear import Linear
from privspec.problem.table_forms import Table

from . import reworded as wording
from . import specs
from .reworded import reworded

WORDING = {"expression", "outputs", "of", "counted", "name", "label", "line", "text", "labels", "span"}
"""Fields that say how something is called, or written."""


def problem_of(text: str) -> Problem:
    return elaborate(load_model(Source("spec.priv", text)))


def meant(value: Any, names: dict[str, str]) -> Any:
    """A value with its names mapped, numbers exact, and without what only says how it is written."""
    if isinstance(value, Grid):
        return list(value.values())
    if hasattr(value, "__dataclass_fields__"):
        parts = {one.name: meant(getattr(value, one.name), names) for one in fields(value) if one.name not in WORDING}
        # a sum of worst cases, or of distances of laws, has its terms in any order
        return {key: sorted(part, key=repr) if key in ("worst", "variations") else part for key, part in parts.items()}
    if isinstance(value, tuple | list):
        return [meant(part, names) for part in value]
    return names.get(value, value) if isinstance(value, str) else value


def linear(block: Linear, names: dict[str, str]) -> Any:
    """Errors as one quadratic form: its terms may stand in any order, and be parts of one another."""
    rows, weights = block.errors.rows, [fraction(one) for one in block.errors.weights]
    each = [[Fraction(i == j) for j in range(len(weights))] for i in range(len(weights))]
    if rows is not None:
        each = exactly(rows)
    width = len(each[0]) if each else 0
    costs = [
        [sum((w * row[i] * row[j] for w, row in zip(weights, each, strict=True)), Fraction(0)) for j in range(width)]
        for i in range(width)
    ]
    sites = [(names.get(name, name), exactly(reached)) for name, reached, _ in block.sites or ()]
    moved = [[meant(one, names) for one in line] for line in block.differences]
    return exactly(block.target), [fraction(one) for one in block.offset], costs, moved, sites


def exactly(matrix: Matrix) -> list[list[Fraction]]:
    return [[fraction(entry) for entry in row] for row in matrix.tolist()]


def same(text: str, dice: Random) -> None:
    try:
        first = problem_of(text)
    except SpecError:
        reject()
    if not all(isinstance(block, Linear | Table) for block in first.blocks):
        reject()  # parts that are drawn apart stand in documents of their own, with names and lines
    other, names = reworded(text, dice)
    second = problem_of(other)
    for one, two in zip(first.blocks, second.blocks, strict=True):
        assert type(one) is type(two), other
        look = linear if isinstance(one, Linear) else meant
        assert look(one, names) == look(two, {}), other  # type: ignore[operator]
    for line, again in zip(first.obligations, second.obligations, strict=True):
        assert meant(line.units, names) == meant(again.units, {}), other


@pytest.mark.parametrize("kind", [specs.finite, specs.linear])
@pytest.mark.parametrize("count", [50, pytest.param(500, marks=pytest.mark.slow)])
def test_a_spec_in_other_words_is_the_same_problem(kind: Callable[[Random], str], count: int) -> None:
    drawn = st.tuples(st.randoms(use_true_random=False).map(kind), st.randoms(use_true_random=False))
    settings(max_examples=count)(given(drawn)(lambda pair: same(*pair)))()


def test_words_that_say_something_else_are_another_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """variables:
  input x in [0, 1]^3
  intermediate y
  output O
background: y = sum(x)
loss: E[ (O - y)^2 ]
privacy: O is 1-DP wrt x, replacing one entry
"""
    for seed in range(20):
        same(text, Random(seed))
    monkeypatch.setattr(wording, "SUMS", ["sum({x}[1..{n} - 1])"])
    with pytest.raises(AssertionError):
        for seed in range(20):
            same(text, Random(seed))
