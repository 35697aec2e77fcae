"""An amount such as log(3) is shown as it is written, beside a short decimal, and never as a long fraction."""

import re
from fractions import Fraction
from pathlib import Path

import pytest

import privspec
from privspec.explain.graphs import describe_graph
from privspec.model.values import readable

SPEC = (Path(__file__).parents[2] / "specs" / "k_randomised_response.priv").read_text("utf-8")
LONG = re.compile(r"[0-9]{8,}/[0-9]+")


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written") / "report.priv"
    path.write_text(re.sub(r"epsilon = 1\.0", "epsilon = log(3)", SPEC), "utf-8")
    return path


def test_pages_and_prices(spec: Path) -> None:
    plan = privspec.load(spec).solve()
    assert not LONG.search(str(plan))
    pages = [plan.explain(reader) for reader in ("public", "auditor", "engineer")]
    assert not any(LONG.search(str(page)) for page in pages)
    assert "log(3) = 1.09862" in str(pages[2])
    # the plan itself is exact
    assert LONG.search(plan.to_json())


def test_the_model_in_words(spec: Path) -> None:
    from privspec.core.spans import Source
    from privspec.model.build import load_model

    model = load_model(Source("report.priv", spec.read_text("utf-8")))
    assert "1.09862-LDP (epsilon = log(3))" in model.requirements[0].describe()
    assert "log(3) = 1.09862" in describe_graph(model)
    # a value from outside is not what the spec writes
    other = load_model(Source("report.priv", spec.read_text("utf-8")), parameters={"epsilon": "log(5)"})
    assert "1.60944-LDP with" in other.requirements[0].describe()
    assert "log(3)" not in describe_graph(other)
    direct = model.source.text.replace("epsilon-LDP", "(log(2))-LDP")
    assert "0.693148-LDP (epsilon = log(2))" in load_model(Source("t.priv", direct)).requirements[0].describe()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Fraction("0.1"), "0.1"),
        (Fraction("1e-6"), "1e-6"),
        (Fraction(1, 3), "1/3"),
        (Fraction(1, 64), "0.015625"),
        (Fraction("0.123456789012"), "0.123456789012"),
        (Fraction(1.0986122886681098), "1.09862"),
        (Fraction(1, 3**40), "8.22527e-20"),
        (Fraction(10**30, 7), "1.42858e+29"),
    ],
)
def test_six_digits_rounded_up_where_a_fraction_would_be_long(value: Fraction, words: str) -> None:
    assert readable(value) == words
    assert Fraction(words) >= value
