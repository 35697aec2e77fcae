"""Forms of losses: each against its own value at random errors, and those that cannot be computed."""

from __future__ import annotations

import numpy as np
import pytest

from privspec.core.diagnostics import SpecError

from .specs import loss_at, lowered, model_of, spec, targets

THREE = "input x in [0, 1]^2; intermediate y; output O"
BODY = "y = [[1, 2], [3, 4], [5, 6]] @ x + [1, 0, -1]"

FORMS = {
    "norm": "E[ ||O - y||^2 ]",
    "other way round": "E[ ||y - O||^2 ]",
    "weight": "2.5 * E[ ||O - y||^2 ]",
    "weight behind": "E[ ||O - y||^2 ] * 3",
    "weight inside": "E[ 2^2 * ||O - y||^2 ]",
    "division": "E[ ||O - y||^2 ] / 4",
    "entries": "sum(E[ (O[j] - y[j])^2 ] for j in 1..3)",
    "weighted entries": "sum(j * E[ (O[j] - y[j])^2 ] for j in 1..3)",
    "mean of entries": "3 * mean(E[ (O[j] - y[j])^2 ] for j in 1..3) / 2",
    "squares added up": "E[ sum((O - y)^2) ]",
    "mean of squares": "mean(E[ (O - y)^2 ])",
    "absolute value": "E[ ||O - y||^2 ] + 2 * E[ |O[1] - y[1]|^2 ]",
    "weighted by a vector": "E[ ||[1, 2, 3] * (O - y)||^2 ]",
    "weighted by a matrix": "E[ ||[[1, 2, 3], [0, 1, 0], [0, 1, 1]] @ (O - y)||^2 ]",
    "worst over inputs": "worst[ E[ ||O - y||^2 ] ]",
    "largest entry": "max(E[ (O[j] - y[j])^2 ] for j in 1..3)",
    "largest weighted entry": "max(j^2 * E[ (O[j] - y[j])^2 ] for j in 1..3)",
    "largest of a list": "max(E[ (O[1] - y[1])^2 ], 2 * E[ (O[2] - y[2])^2 ], E[ (O[3] - y[3])^2 ])",
    "superscript": "𝔼[ ‖O - y‖² ]",
}


@pytest.mark.parametrize("loss", FORMS.values(), ids=FORMS)
def test_a_form_is_worth_what_it_says(loss: str) -> None:
    model = model_of(spec(THREE, BODY, loss))
    system = lowered(model)
    dice = np.random.default_rng(5)
    assert system.worst == loss.startswith("max")
    for _ in range(3):
        u, noise = dice.normal(size=2), dice.normal(size=3)
        rows = (system.error_map @ noise) ** 2
        expected = loss_at(model, u, targets(model, u) + noise)
        assert (rows.max() if system.worst else rows.sum()) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("loss", "code", "marked"),
    [
        ("E[ ||O - y||_inf^2 ]", "PS0502", "||O - y||_inf"),
        ("E[ |O[1] - y[1]| ] + E[ ||O - y||^2 ]", "PS0502", "|O[1] - y[1]|"),
        ("E[ ||O - y||^4 ]", "PS0502", "||O - y||^4"),
        ("E[ ||O - y||^2 ] - E[ (O[1] - y[1])^2 ]", "PS0502", "E[ ||O - y||^2 ] - E[ (O[1] - y[1])^2 ]"),
        ("max(E[ ||O - y||^2 ], E[ (O[1] - y[1])^2 ])", "PS0502", "max(E[ ||O - y||^2 ], E[ (O[1] - y[1])^2 ])"),
        ("-1 * E[ ||O - y||^2 ]", "PS0503", "-1"),
        ("0 * E[ ||O - y||^2 ]", "PS0503", "0"),
        (
            "worst[ ||O - y||^2 ] + worst[ ||O - 2 * y||^2 ]",
            "PS0507",
            "worst[ ||O - y||^2 ] + worst[ ||O - 2 * y||^2 ]",
        ),
        (
            "worst[ ||O - y||^2 ] + worst[ ||O - y - 1||^2 ]",
            "PS0507",
            "worst[ ||O - y||^2 ] + worst[ ||O - y - 1||^2 ]",
        ),
        ("E[ (O[1] - y[1])^2 ]", "PS0506", "O"),
        ("E[ ||[[1, 1, 1]] @ (O - y)||^2 ]", "PS0506", "E[ ||[[1, 1, 1]] @ (O - y)||^2 ]"),
        ("max(E[ (O[j] - y[j])^2 ] for j in 1..2)", "PS0506", "O"),
    ],
)
def test_losses_that_cannot_be_computed_are_placed(loss: str, code: str, marked: str) -> None:
    variables = THREE.replace("output O", "output O in real^3")
    model = model_of(spec(variables, BODY, loss))
    with pytest.raises(SpecError) as caught:
        lowered(model)
    (found,) = caught.value.diagnostics
    assert found.code == code
    span = found.labels[0].span
    shown = model.source.text[span.start : span.end]
    assert marked in shown
    assert model.source.position(span.start)[0] in ({4, 8} if code == "PS0506" else {8})


def test_terms_that_agree_need_not_be_written_alike() -> None:
    loss = "E[ ||O - x||^2 ] + 4 * worst[ (total(O) - total(x))^2 ] + worst[ ||t - 3 * x||^2 ]"
    model = model_of(spec("input x in [0, 1]^2; intermediate t; output O", "t = 3 * O", loss))
    system = lowered(model)
    np.testing.assert_allclose(system.target, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(system.error_map.toarray(), [[1, 0], [0, 1], [2, 2], [3, 0], [0, 3]])


@pytest.mark.parametrize(
    "variables", ["output O = 2 * y", "output O = y + 1", "output O = suffix_sums(y)"], ids=["scaled", "moved", "other"]
)
def test_a_computed_output_must_be_what_it_is_compared_with(variables: str) -> None:
    with pytest.raises(SpecError) as caught:
        lowered(model_of(spec(f"input x in [0, 1]^2; intermediate y; {variables}", "y = 2 * x")))
    (found,) = caught.value.diagnostics
    assert found.code == "PS0507"
    assert found.labels


def test_a_spec_without_a_loss_is_checked_and_not_solved() -> None:
    model = model_of(spec("input x in [0, 1]^2; output O in real^2 = 2 * x", loss=""))
    with pytest.raises(SpecError) as caught:
        lowered(model)
    assert [d.code for d in caught.value.diagnostics] == ["PS0504"]


@pytest.mark.parametrize("output", ["output P", "output P in real^2"])
def test_an_output_that_the_loss_leaves_out(output: str) -> None:
    """An output that nothing says anything about never gets as far as a program."""
    with pytest.raises(SpecError) as caught:
        lowered(
            model_of(spec(f"input x in [0, 1]^2; output O; {output}", "", "E[ ||O - x||^2 ]", "(O, P) is 1-GDP wrt x"))
        )
    assert {d.code for d in caught.value.diagnostics} <= {"PS0213", "PS0506"}


@pytest.mark.parametrize("options", ["", "noise at x"])
@pytest.mark.parametrize(
    "privacy",
    [
        "(O, T) is 1-GDP wrt x, replacing one entry",
        "(O, T) is 1-GDP wrt x, replacing one entry; O is 0.5-GDP wrt x, replacing one entry",
    ],
)
def test_a_computed_output_beyond_what_the_loss_measures(privacy: str, options: str) -> None:
    """T moves with x[3], which no error term sees, so any noise would do for it."""
    text = spec(
        "input x in [0, 1]^3; intermediate y; output O; output T = total(x)",
        "y = [x[1], x[2]]",
        "E[ ||O - y||^2 ]",
        privacy,
        options,
    )
    with pytest.raises(SpecError) as caught:
        lowered(model_of(text))
    (found,) = caught.value.diagnostics
    assert (found.code, "T" in found.message) == ("PS0506", True)


def test_an_output_computed_from_another_is_left_to_the_reader() -> None:
    text = spec(
        "input x in [0, 1]^3; output O; intermediate t; output T = t",
        "t = 2 * total(O)",
        "E[ ||O - x||^2 ]",
        "(O, T) is 1-GDP wrt x, replacing one entry",
    )
    with pytest.raises(SpecError) as caught:
        lowered(model_of(text))
    (found,) = caught.value.diagnostics
    assert found.code == "PS0501"
    assert "T from O" in found.message
    assert found.help is not None
