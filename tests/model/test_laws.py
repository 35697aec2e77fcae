"""Exact laws of finite domains: of single inputs, of several together, of the rows of a table."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import exp, factorial, log
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_specs import errors, helps, load

from privspec.model.priors import BITS, falling, poisson
from privspec.model.reports import Failure
from privspec.model.worlds import Worlds, worlds

SPEC = """variables:
  input x in {domain}
  output z in 0..1
background: x ~ {law}
loss: E[ mismatch(z, x) ]
privacy: z is 1-DP wrt x, replacing everything
"""


def prior(domain: str, law: str) -> tuple[Fraction, ...]:
    text = SPEC.format(domain=domain, law=law)
    if "^" in domain:
        text = text.replace("mismatch(z, x)", "||x||^2 + z")
    found = worlds(load(text)).prior
    assert found is not None
    assert sum(found) == 1
    return found


def correctly_rounded(weights: list[Decimal]) -> list[Fraction]:
    """Weights over the largest, to the nearest multiple of 2^-60."""
    whole = [int((w / max(weights) * 2**BITS + Decimal("0.5")).to_integral_value("ROUND_FLOOR")) for w in weights]
    return [Fraction(w, sum(whole)) for w in whole]


DENSITIES: dict[str, Callable[[Decimal], Decimal]] = {
    "normal(5, 2)": lambda v: (-((v - 5) ** 2) / 8).exp(),
    "normal(0.3, 0.7)": lambda v: (-((v - Decimal("0.3")) ** 2) / (2 * Decimal("0.7") ** 2)).exp(),
    "laplace(2, 1.5)": lambda v: (-abs(v - 2) / Decimal("1.5")).exp(),
    "exponential(0.4)": lambda v: (-Decimal("0.4") * v).exp() if v >= 0 else Decimal(0),
    "poisson(3.5)": lambda v: Decimal("3.5") ** int(v) / factorial(int(v)) if v >= 0 and v == int(v) else Decimal(0),
}


@pytest.mark.parametrize("law", DENSITIES)
@pytest.mark.parametrize("domain", ["1..10", "-3..40", "grid(0, 5, 0.25)"])
def test_weights_are_correctly_rounded(law: str, domain: str) -> None:
    values = load(SPEC.format(domain=domain, law=law)).nodes["x"].domain.elements()  # type: ignore[union-attr]
    with localcontext() as context:
        context.prec = 80
        weights = [DENSITIES[law](Decimal(v.numerator) / Decimal(v.denominator)) for v in values]
        assert list(prior(domain, law)) == correctly_rounded(weights)


def test_points_in_the_plane() -> None:
    found = prior("(0..3)^2", "normal([1, 2], 0.8)")
    points = list(product(range(4), repeat=2))
    rough = [exp(-((a - 1) ** 2 + (b - 2) ** 2) / (2 * 0.8**2)) for a, b in points]
    assert [float(p) for p in found] == pytest.approx([w / sum(rough) for w in rough], rel=1e-12)
    # one number as the mean: independent coordinates, each with that law
    single = prior("0..3", "normal(1, 0.8)")
    assert prior("(0..3)^2", "normal(1, 0.8)") == tuple(a * b for a, b in product(single, repeat=2))


@pytest.mark.parametrize(
    ("domain", "law", "weights"),
    [
        ("1..3", "uniform", [1, 1, 1]),
        ("1..4", "uniform(2, 3)", [0, 1, 1, 0]),
        ("1..3", "categorical([1, 2, 1])", [1, 2, 1]),
        ("0..2", "binomial(2, 0.25)", [9, 6, 1]),
        ("0..1", "bernoulli(0.3)", [7, 3]),
        ("0..2", "geometric(0.5)", [4, 2, 1]),
        ("1..3", "empirical([3, 1, 3])", [1, 0, 2]),
        ("(0..1)^2", "empirical([[0, 1], [0, 1], [1, 1]])", [0, 2, 0, 1]),
        ("(0..1)^2", "bernoulli(0.25)", [9, 3, 3, 1]),
    ],
)
def test_rational_laws(domain: str, law: str, weights: list[int]) -> None:
    assert prior(domain, law) == tuple(Fraction(w, sum(weights)) for w in weights)


@pytest.mark.parametrize(
    ("domain", "law", "code"),
    [
        ("1..3", "categorical([1, 2])", "PS0406"),
        ("1..3", "categorical([1, -2, 1])", "PS0406"),
        ("1..3", "categorical([0, 0, 0])", "PS0406"),
        ("1..3", "normal(1, 0)", "PS0406"),
        ("1..3", "exponential(-1)", "PS0406"),
        ("-3..-1", "poisson(2)", "PS0406"),
        ("grid(0, 1, 0.5)", "geometric(0.5)", "PS0406"),
        ("1..3", "geometric(1)", "PS0406"),
        ("1..3", "binomial(0.5, 0.5)", "PS0406"),
        ("1..3", "empirical([4])", "PS0406"),
        ("{a, b}", "normal(0, 1)", "PS0406"),
        ("(0..1)^2", "normal([1, 2, 3], 1)", "PS0406"),
    ],
)
def test_wrong_laws_are_told_by_check(domain: str, law: str, code: str) -> None:
    text = SPEC.format(domain=domain, law=law)
    if domain == "{a, b}":
        text = text.replace("mismatch(z, x)", "z")
    if "^" in domain:
        text = text.replace("mismatch(z, x)", "||x||^2 + z")
    assert code in errors(text)


@pytest.mark.parametrize(
    ("domain", "law"), [("1..3", "dirichlet(1)"), ("{0, 100000}", "poisson(2)"), ("{0, 9000}", "geometric(0.7)")]
)
def test_laws_that_are_not_exact_are_left_to_solve(domain: str, law: str) -> None:
    with pytest.raises(Failure) as caught:
        prior(domain, law)
    assert caught.value.code == "PS0514"


@pytest.mark.parametrize(
    ("domain", "law", "density"),
    [
        ("0..6", "gamma(2, 0.5)", lambda x: x * exp(-x / 2)),
        ("0..6", "gamma(1, 0.5)", lambda x: exp(-x / 2)),
        ("grid(0, 1, 0.25)", "beta(2, 5)", lambda x: x * (1 - x) ** 4),
        ("grid(0, 1, 0.25)", "beta(1, 1)", lambda x: 1.0),
        ("-1..4", "lognormal(0, 1)", lambda x: exp(-(log(x) ** 2) / 2) / x if x > 0 else 0.0),
    ],
)
def test_laws_by_their_density(domain: str, law: str, density: Callable[[float], float]) -> None:
    found = prior(domain, law)
    numbers = [float(k) / 4 for k in range(5)] if "grid" in domain else [float(k) for k in range(len(found))]
    numbers = [k - 1 for k in numbers] if "lognormal" in law else numbers
    weights = [density(number) for number in numbers]
    assert [float(p) for p in found] == pytest.approx([w / sum(weights) for w in weights], abs=1e-15)


def test_an_infinite_density_is_told() -> None:
    assert "PS0406" in errors(SPEC.format(domain="grid(0, 1, 0.5)", law="beta(0.5, 1)"))


@given(st.lists(st.fractions(0, 200, max_denominator=50), min_size=1, max_size=6))
def test_falling(exponents: list[Fraction]) -> None:
    found = falling([*exponents, None])
    assert found[-1] == 0
    assert max(found) == 1
    least = min(exponents)
    with localcontext() as context:
        context.prec = 90
        for weight, q in zip(found[:-1], exponents, strict=True):
            exact = (Decimal((least - q).numerator) / Decimal((least - q).denominator)).exp() * 2**BITS
            assert abs(Decimal(int(weight * 2**BITS)) - exact) <= Decimal("0.5")


@given(st.fractions(Fraction(1, 20), 300, max_denominator=20), st.lists(st.integers(0, 400), min_size=1, max_size=6))
def test_poisson(mean: Fraction, counts: list[int]) -> None:
    found = poisson(mean, [*counts, None])
    exact = [mean**k / factorial(k) for k in counts]
    assert found[-1] == 0
    for weight, w in zip(found[:-1], exact, strict=True):
        assert abs(weight - w / max(exact)) <= Fraction(1, 2 ** (BITS + 1))


# --- several inputs ---------------------------------------------------------------------------------------

JOINT = """variables:
  input y in 0..1
  input sex in {F, M}
  input age in 1..3
  output O in 0..1
background:
  (sex, y) ~ categorical([[0.3, 0.2], [0.1, 0.4]])
  age ~ categorical([1, 1, 2])
loss: E[ mismatch(O, y) ]
privacy: O is 1-DP wrt (y, sex, age), replacing everything
"""


def law(text: str, base: Path | None = None) -> dict[str, Fraction]:
    space: Worlds = worlds(load(text, base))
    assert space.prior is not None
    names = [",".join(row) if isinstance(row, list) else row for row in space.labels]
    return dict(zip(names, space.prior, strict=True))


def test_a_joint_law() -> None:
    both = {"0,F": Fraction("0.3"), "0,M": Fraction("0.1"), "1,F": Fraction("0.2"), "1,M": Fraction("0.4")}
    assert law(JOINT) == both
    found = law(JOINT.replace("mismatch(O, y)", "mismatch(O, y) * age"))
    ages = {"1": Fraction(1, 4), "2": Fraction(1, 4), "3": Fraction(1, 2)}
    assert found == {f"{who},{age}": both[who] * ages[age] for who in both for age in ages}


def test_a_joint_law_from_files(tmp_path: Path) -> None:
    (tmp_path / "joint.csv").write_text("3,2\n1,4\n", "utf-8")
    text = (
        JOINT.replace("[[0.3, 0.2], [0.1, 0.4]]", 'csv("joint.csv")') + "fairness: O is independent of sex, up to 0.1\n"
    )
    assert law(text, tmp_path)["1,M"] == Fraction("0.4")
    (tmp_path / "seen.csv").write_text("0,1\n0,2\n1,3\n1,3\n", "utf-8")
    text = JOINT.replace("  age ~ categorical([1, 1, 2])\n", "").replace(
        "(sex, y) ~ categorical([[0.3, 0.2], [0.1, 0.4]])", '(y, age) ~ empirical(csv("seen.csv"))\n  sex ~ uniform'
    )
    assert law(text.replace("mismatch(O, y)", "mismatch(O, y) * age"), tmp_path) == {
        "0,1": Fraction(1, 4), "0,2": Fraction(1, 4), "0,3": 0, "1,1": 0, "1,2": 0, "1,3": Fraction(1, 2),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "code", "hint"),
    [
        ("[[0.3, 0.2], [0.1, 0.4]]", "[[0.3, 0.2, 0.1], [0.1, 0.2, 0.1]]", "PS0406", "the last name changes fastest"),
        ("[[0.3, 0.2], [0.1, 0.4]]", "[0.5, 0.5]", "PS0406", ""),
        ("(sex, y) ~ categorical([[0.3, 0.2], [0.1, 0.4]])", "(sex, y) ~ normal(0, 1)", "PS0406", "categorical"),
        ("(sex, y)", "(sex, sex)", "PS0407", ""),
        ("(sex, y)", "(sex, O)", "PS0407", ""),
        ("(sex, y)", "(sex, y + 1)", "PS0407", "") ,
        ("(sex, y)", "(sex, yy)", "PS0201", "did you mean y?"),
        ("age ~", "y ~", "PS0405", ""),
        ("input y in", "input y[voter] in", "PS0407", ""),
    ],
)  # fmt: skip
def test_joint_laws_that_do_not_fit(old: str, new: str, code: str, hint: str) -> None:
    assert old in JOINT
    text = "parties: voter in 1..2\n" + JOINT.replace(old, new, 1)
    assert code in errors(text)
    assert hint in helps(text)[code]


def test_the_model_knows_its_subjects() -> None:
    joint, single = load(JOINT).models
    assert (joint.subject, joint.subjects) == ("(sex, y)", ("sex", "y"))
    assert (single.subject, single.subjects) == ("age", ("age",))
