from fractions import Fraction
from typing import get_args

import numpy as np
import pytest

from privspec.core.spans import Source
from privspec.language import syntax
from privspec.language.parser import parse_expression
from privspec.language.walk import walk
from privspec.model.domains import Type
from privspec.model.evaluate import Algebra, Environment, evaluate
from privspec.model.library import Argument
from privspec.model.reports import Failure

VALUES = {
    "a": Fraction(1, 3),
    "v": np.array([1.0, 2.0, 3.0]),
    "A": np.arange(6.0).reshape(2, 3),
    "S": ("north", "east"),
}
ENVIRONMENT = Environment(VALUES, {"voter": 3})


def value(text):
    return evaluate(parse_expression(Source("e", text)), ENVIRONMENT)


EXACT = [
    ("1/3 + 1/6", Fraction(1, 2)),
    ("2^10", Fraction(1024)),
    ("2^-1", Fraction(1, 2)),
    ("-2^2", Fraction(-4)),
    ("0^0", Fraction(1)),
    ("(-1)^1000000001", Fraction(-1)),
    ("a * 3", Fraction(1)),
    ("1e-6", Fraction(1, 10**6)),
    ("sum(i^2 for i in 1..4)", Fraction(30)),
    ("sum(i for voter in 1..2)".replace("i for", "voter for"), Fraction(3)),
    ("mean(voter for voter)", Fraction(2)),
    ("v[2]", Fraction(2)),
    ("A[2, 3]", Fraction(5)),
    ("|0 - 2|", Fraction(2)),
    ("||[3, 4]||", Fraction(5)),
    ("||[3, -4]||_1", Fraction(7)),
    ("||[3, -4]||_inf", Fraction(4)),
    ("v @ v", Fraction(14)),
    ("max(1, 2, 3)", Fraction(3)),
    ("min(v)", Fraction(1)),
    ("floor(7/2) + ceil(7/2)", Fraction(7)),
    ("mismatch(1, 2)", Fraction(1)),
    ('cost("b", a = 1, b = 2)', Fraction(2)),
    ("2 * 3²", Fraction(18)),
]


@pytest.mark.parametrize(("text", "expected"), EXACT)
def test_scalars_are_exact(text, expected):
    found = value(text)
    assert isinstance(found, Fraction)
    assert found == expected


def test_arrays():
    np.testing.assert_array_equal(value("A @ v"), [8, 26])
    np.testing.assert_array_equal(value("A' @ [1, 1]"), [3, 5, 7])
    np.testing.assert_array_equal(value("A * 2"), VALUES["A"] * 2)
    np.testing.assert_array_equal(value("A[1]"), [0, 1, 2])
    np.testing.assert_array_equal(value("prefix_sums(v)"), [1, 3, 6])
    np.testing.assert_array_equal(value("[a, 2 * a]"), [Fraction(1, 3), Fraction(2, 3)])
    assert value("{north, a, x}") == ("north", "a", "x")  # words beside words
    assert value("{a, 2 * a}") == (Fraction(1, 3), Fraction(2, 3))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1/0", "PS0260"),
        ("0^-1", "PS0260"),
        ("(-1)^0.5", "PS0260"),
        ("10^10^10", "PS0260"),
        ("2^99999", "PS0260"),
        ("log(0)", "PS0260"),
        ("v / 0", "PS0260"),
        ("v + A", "PS0207"),
        ("A @ A", "PS0207"),
        ("v[4]", "PS0209"),
        ("v[0]", "PS0209"),
        ("a[1]", "PS0209"),
        ("x + 1", "PS0261"),
        ("E[ a ]", "PS0262"),
        ("S + 1", "PS0208"),
        ("noname(1)", "PS0205"),
        ("prefix_sums(a)", "PS0207"),
        ("sum(i for i in 1..1000000000000)", "PS0225"),
        ("random_dictator(v)", "PS0208"),
        ('cost("c", a = 1)', "PS0260"),
    ],
)
def test_what_has_no_value(text, code):
    with pytest.raises(Failure) as caught:
        value(text)
    assert caught.value.code == code


class Heights(Algebra[int]):
    """How many forms stand one within another: a meaning that has all of them."""

    known = ENVIRONMENT

    def bind(self, variable, place):
        return self

    def constant(self, value):
        return 1

    name = attribute = refused = over = listed = lambda self, expr: 1

    def unary(self, expr, value):
        return value + 1

    def binary(self, expr, left, right):
        return max(left, right) + 1

    def stacked(self, items, span):
        return max(items) + 1

    def entry(self, expr, base, places):
        return max(base, *places) + 1

    def described(self, item, value):
        return Argument(Type((2,)))

    def applied(self, expr, bound, data):
        return max(data) + 1


FORMS = {
    "1": 1,
    "a": 1,
    "{1, 2}": 1,
    "a.b": 1,
    "E[ a ]": 1,
    "E[ a | b, c = 1 ]": 1,
    "-a": 2,
    "v'": 2,
    "|a - 1|": 3,
    "||v||^2": 3,
    "[1, -a]": 3,
    "(1, 2)": 2,
    "A[1, 1 + 1]": 3,
    "(a > 1) * 2": 2,
    "[-i for i in 1..2]": 3,
    "v[1..2]": 3,
    "sum(v)": 2,
    "sum(-voter for voter)": 4,
    "sum(i * a for i in 1..3) + 1": 5,
}


def test_every_form_of_an_expression_is_walked_by_any_meaning():
    seen = set()
    for text, height in FORMS.items():
        expr = parse_expression(Source("e", text))
        assert Heights().of(expr) == height, text
        seen |= {type(node) for node in walk(expr)}
    assert set(get_args(syntax.Expr)) <= seen | {syntax.String}
