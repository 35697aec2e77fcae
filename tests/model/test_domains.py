from fractions import Fraction

import numpy as np
import pytest

from privspec.model.domains import (
    FiniteSet,
    Grid,
    IntegerRange,
    Interval,
    L1Ball,
    L2Ball,
    Law,
    PartialRankingOf,
    Power,
    RankingOf,
    Real,
    Table,
)

AB = FiniteSet(("a", "b"))
T = Table((("age", IntegerRange(3, 5)), ("sex", AB), ("step", Grid(Fraction(0), Fraction(1), Fraction(1, 2)))))

DOMAINS = [
    (Real(), (), None, "real"),
    (Interval(Fraction(0), Fraction(1)), (), None, "[0, 1]"),
    (Interval(Fraction(0), None, True, True), (), None, "(0, inf)"),
    (Interval(Fraction(2), Fraction(2)), (), 1, "[2, 2]"),
    (IntegerRange(1, 10), (), 10, "1..10"),
    (AB, (), 2, "{a, b}"),
    (FiniteSet((Fraction(1), Fraction(1, 3))), (), 2, "{1, 1/3}"),
    (Grid(Fraction(0), Fraction(1), Fraction(1, 4)), (), 5, "grid(0, 1, 0.25)"),
    (L1Ball(Fraction(1), 3), (3,), None, "l1_ball(1, 3)"),
    (L2Ball(Fraction(1, 2), 3), (3,), None, "l2_ball(0.5, 3)"),
    (RankingOf(("a", "b", "c")), (), 6, "ranking of {a, b, c}"),
    (PartialRankingOf(("a", "b", "c"), 3), (), 15, "partial_ranking({a, b, c})"),
    (PartialRankingOf(("a", "b", "c"), 2), (), 9, "partial_ranking({a, b, c}, 2)"),
    (PartialRankingOf((Fraction(1), Fraction(2)), 1), (), 2, "partial_ranking({1, 2}, 1)"),
    (T, (), None, "table(age in 3..5, sex in {a, b}, step in grid(0, 1, 0.5))"),
    (Law(IntegerRange(1, 3)), (), None, "law(1..3)"),
    (Power(IntegerRange(1, 10), (3,)), (3,), 1000, "(1..10)^3"),
    (Power(Interval(Fraction(0), Fraction(1)), (3, 4)), (3, 4), None, "[0, 1]^(3, 4)"),
    (Power(L2Ball(Fraction(1), 2), (5,)), (5, 2), None, "l2_ball(1, 2)^5"),
]


@pytest.mark.parametrize(("domain", "shape", "size", "words"), DOMAINS)
def test_each(domain, shape, size, words):
    assert domain.shape == shape
    assert domain.size == size
    assert domain.describe() == words
    if size is not None:
        elements = list(domain.elements())
        assert len(elements) == size
        assert all(domain.contains(e) for e in elements)
    else:
        with pytest.raises(ValueError, match="infinitely"):
            domain.elements()


def test_membership_is_exact():
    assert L2Ball(Fraction(5), 2).contains(np.array([3.0, 4.0]))
    assert not L2Ball(Fraction(5), 2).contains([Fraction(3), Fraction(4) + Fraction(1, 10**30)])
    assert not Interval(Fraction(0), Fraction(1), low_open=True).contains(0.0)
    assert not Interval(Fraction(0), Fraction(1)).contains(float("nan"))
    assert not Real().contains(float("inf"))
    assert not Grid(Fraction(0), Fraction(1), Fraction(1, 10)).contains(0.1)  # the double is not a tenth
    assert Grid(Fraction(0), Fraction(1), Fraction(1, 10)).contains(Fraction(1, 10))
    assert Power(AB, (2,)).contains(["a", "b"])
    assert not Power(AB, (2,)).contains(["a"])
    assert RankingOf(("a", "b")).contains(("b", "a"))
    some = PartialRankingOf(("a", "b", "c"), 2)
    assert some.contains(("c",))
    assert some.contains(["c", "a"])
    for wrong in ((), ("c", "c"), ("a", "b", "c"), ("d",), "a"):
        assert not some.contains(wrong)
    assert not IntegerRange(1, 3).contains(True)


def test_large_domains_are_lazy():
    large = IntegerRange(1, 10**12)
    assert large.size == 10**12
    with pytest.raises(ValueError, match="1,000,000,000,000 elements"):
        large.elements()
    assert Power(large, (10**6,)).size is None
