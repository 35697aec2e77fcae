"""Fairness lines: what they may name, and values after `given`."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from model_specs import errors, helps, load

from privspec.model.requirements import IndependenceRequirement

SPEC = """variables:
  input y in 0..1
  input sex in {F, M}
  input place in (0..1)^2
  intermediate income
  output O in 0..1
background:
  income = 10 * y
loss: worst[ mismatch(O, y) ]
privacy: O is 1-DP wrt (y, sex, place), replacing everything
fairness: LINE
"""


def read(line: str) -> IndependenceRequirement:
    (found,) = load(SPEC.replace("LINE", line)).fairness
    assert isinstance(found, IndependenceRequirement)
    return found


@pytest.mark.parametrize(
    ("line", "given", "equals"),
    [
        ("O is independent of sex", None, None),
        ("O is independent of income given sex, up to 0.1", "sex", None),
        ("O is independent of sex given y = 1", "y", Fraction(1)),
        ("O is independent of sex given income = 2 * 5", "income", Fraction(10)),
        ("O is independent of y given sex = F", "sex", "F"),
        ("y is independent of sex given O = 0", "O", Fraction(0)),
        ("all outputs are independent of sex given y = 0", "y", Fraction(0)),
    ],
)
def test_lines(line: str, given: str | None, equals: object) -> None:
    found = read(line)
    assert (found.given, found.equals) == (given, equals)


def test_vectors_after_given() -> None:
    found = read("O is independent of sex given place = [0, 1]").equals
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("line", "code", "hint"),
    [
        ("O is independent of sx", "PS0320", "did you mean sex?"),
        ("O is independent of O", "PS0320", ""),
        ("O is independent of sex given sex", "PS0320", ""),
        ("O is independent of sex[1]", "PS0228", "write sex"),
        ("y is independent of sex", "PS0322", "categorical"),
        ("O is independent of y given sex = m", "PS0323", "did you mean M?"),
        ("O is independent of y given sex = 1", "PS0323", ""),
        ("O is independent of sex given y = 2", "PS0323", ""),
        ("O is independent of sex given y = F", "PS0323", ""),
        ("O is independent of sex given place = 1", "PS0323", ""),
        ("O is independent of sex given place = [0, 2]", "PS0323", ""),
        ("O is independent of sex, up to 1", "PS0321", ""),
        ("O is independent of sex, up to sex", "PS0261", ""),
    ],
)
def test_lines_that_do_not_fit(line: str, code: str, hint: str) -> None:
    text = SPEC.replace("LINE", line)
    assert code in errors(text)
    assert hint in helps(text)[code]
