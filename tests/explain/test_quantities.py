from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspec.explain.quantities import Rounding, count, exact, percent, rounded, ungrouped
from privspec.stated import parse_exact

NUMBERS = st.one_of(
    st.fractions(min_value=-(10**9), max_value=10**9),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12),
)


@given(NUMBERS, st.integers(1, 8))
def test_directions(value: Fraction | float, digits: int) -> None:
    assert Fraction(ungrouped(rounded(value, digits, Rounding.UP).text)) >= Fraction(value)
    assert Fraction(ungrouped(rounded(value, digits, Rounding.DOWN).text)) <= Fraction(value)


@given(st.integers(1, 10**6), st.integers(-9, 6))
def test_exact_numbers_stay_exact(mantissa: int, power: int) -> None:
    value = Fraction(mantissa) * Fraction(10) ** power
    shown = exact(value)
    if shown.rounding is Rounding.EXACT:
        assert Fraction(ungrouped(shown.text)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1e-6", "1e-6"),
        ("1/3", "1/3"),
        (1.0, "1"),
        ("0.50", "0.5"),
        (0.1, "0.1"),
        (12000000, "12,000,000"),
        (10**13, "1e13"),
        ("-1234.5", "-1,234.5"),
        ("2^-3", "0.125"),
    ],
)
def test_exact_texts(value: str | float, text: str) -> None:
    assert exact(parse_exact(value)).text == text


def test_words() -> None:
    assert percent(Fraction(8, 100)).text == "8 %"
    assert count(100_000).text == "100,000"
    assert rounded(120617882.94, 6).text == "120,618,000"
    assert rounded(float("inf")).text == "unlimited"


@pytest.mark.parametrize("bad", ["", "one", None, True, float("nan"), "1/0", [1]])
def test_what_is_no_number(bad: object) -> None:
    with pytest.raises(ValueError, match="not"):
        parse_exact(bad)
