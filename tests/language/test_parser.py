"""Facts about the parser that no golden file shows."""

import subprocess
import sys
from fractions import Fraction

import pytest

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.language import syntax as s
from privspec.language.parser import parse, parse_expression, parse_statement
from privspec.language.spelling import spell


def codes(text: str) -> list[tuple[str, int]]:
    """The codes of a text with their lines."""
    source = Source("x", text)
    with pytest.raises(SpecError) as caught:
        parse(source)
    return [(d.code, source.position(d.labels[0].span.start)[0]) for d in caught.value.diagnostics]


def test_numbers_are_exact() -> None:
    assert parse_expression(Source("x", "0.1")) == s.Number(Fraction(1, 10))
    assert parse_expression(Source("x", "1e-6")) == s.Number(Fraction(1, 10**6))
    number = parse_expression(Source("x", "2.50E+3"))
    assert isinstance(number, s.Number)
    assert (number.value, number.text) == (2500, "2.50E+3")


def test_all_errors_at_once_in_order() -> None:
    text = (
        "variables:\n  input x in 1..10^3\n  inptu y\nbackground:\n  y == x\nprivacy:\n  O is e DP wrt x\nlos:\n  (x\n"
    )
    assert codes(text) == [
        ("PS0110", 2),
        ("PS0126", 3),
        ("PS0105", 5),
        ("PS0111", 7),
        ("PS0108", 8),
        ("PS0103", 9),
    ]


@pytest.mark.parametrize("bracket", "([{")
def test_one_lost_bracket_costs_one_error(bracket: str) -> None:
    text = f"variables:\n  input x\nbackground:\n  y = {bracket}x\nloss: E[x]\nprivacy: O is 1-DP wrt x\n"
    assert codes(text) == [("PS0103", 4)]


def test_header_inside_a_bracket_needs_its_colon() -> None:
    tree = parse(Source("x", "background: y = f(\n  loss\n, loss = 2)\nloss: x"))
    assert len(tree.background) == 1


def test_range_has_the_usual_precedence() -> None:
    (variable,) = parse(Source("x", "variables: input x in 1..a + 2 * b - c")).variables
    assert isinstance(variable.domain, s.RangeOf)
    assert variable.domain.high == parse_expression(Source("x", "a + 2 * b - c"))


def test_sections_keep_their_order() -> None:
    assert parse(Source("x", "privacy:\nloss: x\nvariables:")).sections == ("privacy", "loss", "variables")


def test_statements_alone() -> None:
    assert isinstance(parse_statement("privacy", Source("x", "O is 1-DP wrt x")), s.Requirement)
    assert isinstance(parse_statement("options", Source("x", "trust nobody")), s.Trust)
    with pytest.raises(SpecError):
        parse_statement("privacy", Source("x", "O is 1-DP wrt x\nO is 2-DP wrt x"))
    with pytest.raises(SpecError):
        parse_statement("privacy", Source("x", ""))
    with pytest.raises(SpecError):
        parse_expression(Source("x", "\x00"))
    with pytest.raises(KeyError):
        parse_statement("nothing", Source("x", "a"))


def test_many_errors_are_cut() -> None:
    found = codes("variables:\n" + "€\n" * 300 + "loss: x")
    assert found == [*(("PS0115", i + 2) for i in range(100)), ("PS0134", 102)]


def test_start_up_needs_no_lark() -> None:
    """The parser reads a spec without importing Lark, or anything of numbers."""
    program = (
        "import sys, importlib.util as u\n"
        "from privspec.language.parser import parse\n"
        "from privspec.core.spans import Source\n"
        "parse(Source('x', 'loss: E[ ||x||^2 ]'))\n"
        "print([m for m in ('lark', 'scipy', 'cvxpy', 'matplotlib', 'privspec.language.mistakes') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ("variables", "input v in table(day in 2025-01-01..2025-12-31, kind in {2025-02-01, b})"),
        ("background", "v.late = v.day >= 2025-07-01"),
        ("background", "v.grown = v.age - 1 >= 18 * 2"),
        ("background", "v.group = cut(v.age, [0, 15])"),
        ("loss", "count(v, day in 2025-01-01..2025-01-31)"),
    ],
)
def test_days_and_comparisons(section, text):
    assert spell(parse_statement(section, Source("x", text))) == text


def test_an_advantage_is_a_requirement_and_a_name() -> None:
    """`advantage(O, x) <= a` is the line `O is a-tv-DP wrt x`; an output may be called that."""
    lines = "advantage(O, x) <= 0.1, seen by press", "O is 0.1-tv-DP wrt x, seen by press"
    first, second = (spell(parse_statement("privacy", Source("x", line))) for line in lines)
    assert first == second == lines[1]
    called = parse_statement("privacy", Source("x", "advantage is 1-DP wrt x"))
    assert called.subjects.items[0].name == "advantage"
