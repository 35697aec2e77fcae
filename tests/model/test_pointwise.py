"""Expressions at all pairs of a row and a column: the same as the evaluator of single values says, pair by pair."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import isqrt, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspec.core.rounding import root
from privspec.core.spans import Source
from privspec.language import syntax
from privspec.model.build import load_model
from privspec.model.evaluate import evaluate
from privspec.model.graph import Model
from privspec.model.pointwise import Pointwise
from privspec.model.reports import Failure
from privspec.model.targets import environment
from privspec.model.worlds import worlds

TEXT = """
parameters:
  half = 0.5
  tenth = 0.1
  weights = [0.1, 1, 2.5]
  C = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
parties: voter in 1..2
variables:
  input x in {{0, 1, 3}}
  input v in {{-1, 2}}^2
  input word in {{a, b}}
  input vote[voter] in {{a, b}}
  input order in ranking of {{a, b, c}}
  intermediate y
  intermediate w
  output z in 1..3
  output s in {{a, b}}
  output place in (0..1)^2
background:
  y = 2 * x + v[1]
  w = [y, z, 1]
loss:
  worst[ {expression} + 0 * (x * z + v[1] * place[1] + mismatch(word, s) + mismatch(order, order) + sum(w)
    + mismatch(vote[1], s)) ]
privacy:
  all outputs are 1-DP wrt all inputs, replacing everything
"""
"""The loss looks at everything, so that every input picks rows."""

NUMBERS = (
    "x + half * z - 3 / z",
    "-x * (z - 1)",
    "|x - z|",
    "(x - z)^2 + 2^z + z^(-2)",
    "1 / (x - 1/2)",
    "C[x - (x - z), 2] + C[z, z]",
    "weights[z] * tenth",
    "v[1] * place[2] - v[2]",
    "||v - place||^2",
    "||v - place||_1 + ||v - place||_inf",
    "sum(v) + max(v) - min(v) + mean(v)",
    "sum(i * v[i] for i in 1..2)",
    "max(x, z) - min(x, 2 * z) + max(v[1], x, z)",
    "mismatch(word, s) + 2 * mismatch(v, place)",
    "sum(mismatch(vote[voter], s) for voter)",
    "mismatch(vote[1], vote[2])",
    "mismatch(plurality(vote), s)",
    "y^2 - w[1] * z",
    "sum(w)",
    "weights @ w",
    "weights' @ w",
    "sum(C @ w)",
    "(C @ w)[2]",
    "C[2, z] - (C')[z, 2]",
    "sum(prefix_sums(w))",
    "abs(x - z) + floor(x / z) + ceil(x / z) + sign(x - z)",
    "mismatch(order, order)",
    "-(-x)",
    "||[x, z]||",
    "sqrt(x + z)",
)


def built(expression: str) -> tuple[Model, Any]:
    """The model and the part of its loss that stands for the expression."""
    model = load_model(Source("test.priv", TEXT.format(expression=expression)))
    loss = model.loss
    assert isinstance(loss, syntax.Over)
    assert isinstance(loss.body, syntax.Binary)
    return model, loss.body.left


def single(model: Model, expression: Any, values: dict[str, Any]) -> Any:
    """The value at one pair, computed values first."""
    known = environment(model)
    for name, value in values.items():
        known = known.bind(name, value)
    for name in ("y", "w"):
        definition = model.nodes[name].definition
        assert definition is not None
        known = known.bind(name, evaluate(definition, known))
    return evaluate(expression, known)


@pytest.mark.parametrize("expression", NUMBERS)
def test_as_pair_by_pair(expression: str) -> None:
    model, expr = built(expression)
    space = worlds(model)
    assert set(space.of) == {"x", "v", "word", "vote", "order"}
    found = space.pointwise().of(expr).spread(len(space.rows), len(space.columns))
    assert found.shape == (len(space.rows), len(space.columns))
    rng = np.random.default_rng(0)
    for r, c in [
        (0, 0),
        *zip(rng.integers(0, len(space.rows), 60), rng.integers(0, len(space.columns), 60), strict=True),
    ]:
        values = dict(zip((*space.of, *space.releases), (*space.rows[r], *space.columns[c]), strict=True))
        expected = single(model, expr, values)
        entry = found[r, c]
        assert isinstance(entry, Fraction)
        if isinstance(expected, Fraction) and not any(word in expression for word in ("sqrt", "||[", "||^2")):
            assert entry == expected
        else:
            assert float(entry) == pytest.approx(float(expected), rel=1e-15)


def test_squares_of_norms_are_exact() -> None:
    model, expr = built("||v - place||^2")
    found = worlds(model).pointwise().of(expr)
    assert {v.denominator for v in found.data.ravel()} == {1}
    model, expr = built("||v - place||^4")
    assert any(v.denominator != 1 for v in worlds(model).pointwise().of(expr).data.ravel())


def test_decimals_are_exact() -> None:
    model, expr = built("weights[z] * tenth")
    found = worlds(model).pointwise().of(expr).spread(1, len(worlds(model).columns))
    assert found[0, 0] == Fraction(1, 100)


def test_what_does_not_depend_on_the_pair_is_held_once() -> None:
    model, expr = built("half * 3")
    scene = worlds(model).pointwise()
    assert scene.of(expr).constant
    assert scene.node("x", expr.span).data.shape[1] == 1
    assert scene.node("z", expr.span).data.shape[0] == 1
    assert scene.node("w", expr.span).shape == (3,)


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("1 / x", "PS0260"),
        ("C[x, 1]", "PS0209"),
        ("C[z / 2, 1]", "PS0209"),
        ("x^half", None),
        ("(x - 2)^half", "PS0260"),
    ],
)
def test_what_has_no_value_somewhere(expression: str, code: str | None) -> None:
    model, expr = built(expression)
    if code is None:
        found = worlds(model).pointwise().of(expr).data.ravel()
        assert [float(v) for v in dict.fromkeys(found)] == pytest.approx([0, 1, sqrt(3)])
        return
    with pytest.raises(Failure) as caught:
        worlds(model).pointwise().of(expr)
    assert caught.value.code == code


def test_chosen_numbers_and_laws() -> None:
    model = load_model(
        Source(
            "test.priv",
            """
variables:
  input x in 1..3
  choose alpha in [0, 1]
  choose B in law(1..3)
  output z in 1..3
background:
  x ~ uniform
  E[z | x] = alpha * x + (1 - alpha) * E[B]
loss: E[ (z - (1 - alpha) * E[B^2])^2 ]
privacy: z is 1-LDP wrt x
""",
        )
    )
    assert isinstance(model.loss, syntax.Over)
    law = {Fraction(1): Fraction(1, 2), Fraction(2): Fraction(0), Fraction(3): Fraction(1, 2)}
    space = worlds(model)
    found = space.pointwise({"alpha": Fraction(1, 5)}, {"B": law}).of(model.loss.body).spread(3, 3)
    assert found.tolist() == [[(z - 4) ** 2 for z in (1, 2, 3)]] * 3
    with pytest.raises(Failure) as caught:
        space.pointwise().of(model.loss.body)
    assert caught.value.code in ("PS0261", "PS0262")


@given(st.fractions(min_value=0, max_value=10**6))
def test_roots_are_rounded_down_and_exact_where_they_can_be(value: Fraction) -> None:
    found = root(value)
    assert found**2 <= value < (found + Fraction(1, 2**63)) ** 2
    assert root(value * value) == value or value.denominator != isqrt(value.denominator**2)
    assert root(value * value) == value


def test_vectors_of_vectors() -> None:
    """Columns of a matrix of bits, row by row."""
    model = load_model(
        Source(
            "test.priv",
            """
variables:
  input m in {0, 1}^(2, 2)
  output z in {0, 1}^2
loss: worst[ ||m @ z - m[1]||_1 + sum(m[i, 1] for i in 1..2) ]
privacy: z is 1-DP wrt m, replacing everything
""",
        )
    )
    assert isinstance(model.loss, syntax.Over)
    space = worlds(model)
    found = space.pointwise().of(model.loss.body).spread(16, 4)
    for (r, m), (c, z) in product(enumerate(product((0, 1), repeat=4)), enumerate(product((0, 1), repeat=2))):
        matrix, vector = np.array(m).reshape(2, 2), np.array(z)
        assert found[r, c] == np.abs(matrix @ vector - matrix[0]).sum() + matrix[:, 0].sum()


def test_a_memory_of_its_own() -> None:
    """A definition does not see the variables bound around its use."""
    model = load_model(
        Source(
            "test.priv",
            """
variables:
  input v in {1, 2}^2
  intermediate total_
  output z in 1..4
background: total_ = sum(v[i] for i in 1..2)
loss: worst[ |z - sum(total_ * i for i in 1..3)| ]
privacy: z is 1-DP wrt v
""",
        )
    )
    assert isinstance(model.loss, syntax.Over)
    space = worlds(model)
    assert isinstance(space.pointwise(), Pointwise)
    found = space.pointwise().of(model.loss.body).spread(len(space.rows), 4)
    for r, row in enumerate(space.rows):
        assert [int(e) for e in found[r]] == [abs(z - 6 * sum(int(a) for a in row[0])) for z in (1, 2, 3, 4)]
