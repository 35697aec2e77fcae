"""What cannot be computed yet is said under its own line, all of it at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.model.build import load_model

from .specs import lowered, model_of, spec

EVERYTHING = """\
parties: voter in 1..10
variables:
  input x in [0, 1]^3
  input V[voter] in [0, 1]^2
  input r in ranking of {a, b, c}
  choose c in (0, 1]
  intermediate h
  intermediate y
  output O
  output z in 1..3
background:
  y = 2 * x
  h = x[1] ^ 3
  h has l1 sensitivity at most 2 wrt x, replacing one record
  E[z | x] = 2
loss: E[ ||O - y||^2 ]
accuracy: E[ (O[1] - y[1])^2 ] <= 4 with probability 0.95
privacy:
  O is 1-GDP wrt x, replacing one entry
  z is 1-metric-DP wrt x, distance euclidean
fairness: O is independent of r, up to 0.05
options:
  noise family table, gaussian
"""
EXPECTED = {  # r is in no answer: the line of fairness says what cannot be
    6: "a value for c",
    10: "outputs that stay within a domain (z in 1..3)",
    14: "with a function that it cannot see into",
    15: "conditions on the mechanism",
    17: "a probability of anything but the size of an error",
    20: "epsilon-metric-DP where noise is added",
    21: "fairness requirements",
    23: "the noise family table",
}


def refused(text: str) -> dict[int, str]:
    """Line and message of every PS0501."""
    model = model_of(text)
    with pytest.raises(SpecError) as caught:
        lowered(model)
    assert {d.code for d in caught.value.diagnostics} == {"PS0501"}
    assert all(d.source is model.source for d in caught.value.diagnostics)
    return {model.source.position(d.labels[0].span.start)[0]: d.message for d in caught.value.diagnostics}


def test_every_construct_at_once_in_the_order_of_lines() -> None:
    found = refused(EVERYTHING)
    assert list(found) == list(EXPECTED)
    for line, words in EXPECTED.items():
        assert f"solve cannot compute {words}" in found[line]


@pytest.mark.parametrize(
    ("background", "words"),
    [
        ("y = x * x", "product of two secret values"),
        ("y = x ^ 2", "`^` of a secret value"),
        ("y = 1 / (x + 1)", "`/` of a secret value"),
        ("y = |x|", "not linear in the inputs"),
        ("y = exp(x)", "exp is not linear"),
        ("y = ||x|| * [1, 2, 3]", "not linear in the inputs"),
        ("y = max(x)", "max is not linear"),
        ("y = x @ x", "product of two secret values"),
    ],
)
def test_what_is_not_linear(background: str, words: str) -> None:
    variables = "input x in [0, 1]^3; intermediate y; output O"
    found = refused(spec(variables, background, "worst[ E[ ||O - y||^2 ] ]"))
    assert list(found) == [6]
    assert words in found[6]


def test_an_output_may_be_any_number() -> None:
    assert lowered(model_of(spec("input x in [0, 1]^2; output O in real^2", "", "E[ ||O - x||^2 ]"))).outputs_count == 2


@pytest.mark.parametrize("domain", ["[0, inf)^2", "l2_ball(1, 2)"])
def test_an_output_within_a_domain_is_refused(domain: str) -> None:
    found = refused(spec(f"input x in [0, 1]^2; output O in {domain}", "", "E[ ||O - x||^2 ]"))
    assert "stay within a domain" in found[3]


COMPONENT = """\
components:
  part = spec("part.priv", x = x)
variables:
  input x in [0, 1]^4
loss: part.loss
privacy: part.O is (1, 1e-6)-DP wrt x, replacing one record
"""


def test_components(tmp_path: Path) -> None:
    (tmp_path / "part.priv").write_text(
        spec("input x in [0, 1]^4; output O", "", "E[ ||O - x||^2 ]", "O is (1, 1e-6)-DP wrt x"), "utf-8"
    )
    model = load_model(Source("whole.priv", COMPONENT), base=tmp_path)
    assert lowered(model).outputs[0].name == "part.O"


@pytest.mark.parametrize("privacy", ["O is e-DP wrt x, replacing one entry", "O is (1, e)-DP wrt x"])
def test_no_requirement_is_ever_left_out(privacy: str) -> None:
    """An amount without a value must not make its line vanish, whoever fails to notice it."""
    try:
        model = model_of(
            "parameters:\n  e = 1 / inf\n"
            + spec("input x in [0, 1]^2; output O", "", "E[ ||O - x||^2 ]", f"{privacy}; O is 9-GDP wrt x")
        )
    except SpecError as error:
        assert any(model_line in (2, 9) for model_line in lines_of(error))
        return
    with pytest.raises(SpecError) as caught:
        lowered(model)
    assert 9 in lines_of(caught.value)


def lines_of(error: SpecError) -> set[int]:
    return {d.source.position(d.labels[0].span.start)[0] for d in error.diagnostics if d.source and d.labels}


@pytest.mark.parametrize("measure", ["251-DP", "1001-GDP", "(1e8, 1e-6)-DP", "1000000-zCDP"])
def test_requirements_too_weak_to_mean_anything(measure: str) -> None:
    text = spec("input x in [0, 1]^2; output O", "", "E[ ||O - x||^2 ]", f"O is {measure} wrt x")
    assert "protects nothing" in refused(text)[7]


@pytest.mark.parametrize(
    ("variables", "background", "named"),
    [
        ("input x in [0, 1]^100000000; output O", "", "O"),
        ("input x in real^100000000; output O", "", "O"),
        ("input x in [0, 1]^(10000, 10000); output O", "", "O"),
        ("input x in table(a in 1..100000000); intermediate y; output O", "y = histogram(x)", "y"),
        ("input x in table(a in 1..10000, b in 1..10000); intermediate y; output O", "y = histogram(x)", "y"),
        ("input x in [0, 1]^4000; intermediate y; intermediate z; output O", "z = range_sums(x); y = z[1]", "z"),
    ],
)
def test_what_is_too_large_is_told_before_it_is_laid_out(variables: str, background: str, named: str) -> None:
    loss = "E[ (O - y)^2 ]" if "z[1]" in background else "E[ ||O - y||^2 ]" if background else "E[ ||O - x||^2 ]"
    with pytest.raises(SpecError) as caught:
        lowered(model_of(spec(variables, background, loss, "O is (1, 1e-6)-DP wrt x")))
    found = caught.value.diagnostics
    assert {d.code for d in found} == {"PS0512"}
    assert found[0].message.startswith(f"{named} has ")
    assert found[0].labels


def test_a_value_without_a_value_is_placed() -> None:
    with pytest.raises(SpecError) as caught:
        lowered(model_of(spec("input x in [0, 1]^3; intermediate y; output O", "y = x[inf]", "E[ (O - y)^2 ]")))
    (found,) = caught.value.diagnostics
    assert found.source is not None
    assert found.source.text[found.labels[0].span.start :].startswith("inf")


@pytest.mark.parametrize(
    ("variables", "background", "loss", "line"),
    [
        ("input x in [0, 1e-320]^2; output O", "", "E[ ||O - x||^2 ]", 7),
        ("input x in [0, 1e200]^2; output O", "", "E[ ||O - x||^2 ]", 7),
        ("input x in [0, 1]^2; intermediate y; output O", "y = 1e-200 * x", "E[ ||O - y||^2 ]", 8),
        ("input x in [0, 1]^2; output O", "", "1e300 * E[ ||O - x||^2 ]", 5),
        ("input x in [0, 1]^2; output O", "", "1e-300 * E[ ||O - x||^2 ]", 5),
    ],
)
def test_numbers_beyond_doubles(variables: str, background: str, loss: str, line: int) -> None:
    with pytest.raises(SpecError) as caught:
        lowered(model_of(spec(variables, background, loss)))
    assert [d.code for d in caught.value.diagnostics] == ["PS0513"]
    assert lines_of(caught.value) == {line}


def test_an_amount_left_to_choose_is_told_once() -> None:
    text = spec("input x in [0, 1]^3; choose e in [0.1, 5]; output O", "", "E[ ||O - x||^2 ] + e", "O is e-DP wrt x")
    with pytest.raises(SpecError) as caught:
        lowered(model_of(text))
    (found,) = caught.value.diagnostics
    assert "nothing can be left to `choose`" in found.message
    assert "under `parameters:`" in (found.help or "")
