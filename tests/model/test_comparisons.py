"""Comparisons as numbers: `(x >= 3)` in expressions, and `x >= 3` as an argument, are 1 where they hold, else 0."""

from __future__ import annotations

import operator

import pytest

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.language.formatter import format_source
from privspec.language.parser import parse
from privspec.language.spelling import spell
from tests.plans import solved_text

SPEC = """variables:
  input x in 0..4
  output O in {{0, 1}}
background: x ~ uniform
loss: {loss}
privacy: O is 1-DP wrt x
"""
SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "!=": operator.ne, "≥": operator.ge}


@pytest.mark.parametrize("sign", SIGNS)
def test_a_comparison_is_worth_what_a_list_of_its_values_is(sign: str) -> None:
    """The costs of the problem are those of a polynomial that is 1 just where the comparison holds."""
    plan = solved_text(SPEC.format(loss=f"E[ mismatch(O, x {sign} 2) ]"))
    (block,) = plan["problem"]["blocks"]
    costs = block["loss"]["average"]
    for row, value in enumerate(costs["rows"][i : i + 2] for i in range(0, 10, 2)):
        holds = SIGNS[sign](row, 2)
        assert value == [int(holds), int(not holds)]
    inside = solved_text(SPEC.format(loss=f"E[ |O - (x {sign} 2)| ]"))
    assert inside["loss"]["value"] == plan["loss"]["value"]


def test_it_is_written_as_it_was() -> None:
    text = SPEC.format(loss="E[ (x >= 2) * |O - 1| + (x != 3) ]")
    tree = parse(Source("t.priv", text))
    assert spell(tree.loss) == "E[ (x >= 2) * |O - 1| + (x != 3) ]"
    assert "(x >= 2) * |O - 1| + (x != 3)" in format_source(Source("t.priv", text))


@pytest.mark.parametrize(
    ("loss", "code"),
    [
        ("E[ mismatch(O, O >= [1, 2]) ]", "PS0207"),
        ("E[ (1 <= x <= 3) * O ]", "PS01"),
        ("E[ x >= 3 ]", "PS01"),
    ],
)
def test_what_is_no_comparison_of_two_numbers_is_refused(loss: str, code: str) -> None:
    with pytest.raises(SpecError) as caught:
        solved_text(SPEC.format(loss=loss))
    assert caught.value.diagnostics[0].code.startswith(code)
