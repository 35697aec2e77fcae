"""Regular forms: what may be written in several ways means the same; what cannot be meant is told at its place."""

from __future__ import annotations

import pytest

from privspec.api import Problem
from privspec.core.diagnostics import SpecError
from privspec.core.spans import Source
from privspec.language.formatter import format_source
from privspec.model.build import load_model

SPEC = """parameters:
  n = 3
  A = [[1, 2, 0, 1], [0, 1, 1, 0], [1, 1, 1, 1]]
variables:
  input x in [0, 1]^8
  intermediate w
  output O
background: {}
loss: {}
privacy: O is 0.5-zCDP wrt x, replacing one entry
"""
PLAIN = "E[ ||O - w||^2 ]"
"""A definition with a loss, and one that says the same without the form."""
SAME = {
    "an indexed definition": (("w[i] = x[i] - x[i+1] for i in 1..7", PLAIN), ("w = x[1..7] - x[2..8]", PLAIN)),
    "one that starts at two": (("w[i] = x[i] - x[i-1] for i in 2..8", PLAIN), ("w = x[2..8] - x[1..7]", PLAIN)),
    "its entries are numbered as it numbers them": (
        ("w[i] = i * x[i] for i in n..8", "E[ ||O - [w[8], w[3], sum(w[4..6])]||^2 ]"),
        ("w = x", "E[ ||O - [8 * w[8], 3 * w[3], 4 * w[4] + 5 * w[5] + 6 * w[6]]||^2 ]"),
    ),
    "two indices": (
        ("w[i, j] = A[i, j] * x[j] for i in 1..3, j in 1..4", "E[ ||O - [sum(w[2, 1..4]), w[3, 3]]||^2 ]"),
        ("w = x", "E[ ||O - [A[2, 1..4] @ x[1..4], x[3]]||^2 ]"),
    ),
    "windows": (
        ("w[i] = sum(x[j] for j in i..i+2) for i in 1..6", PLAIN),
        ("w = [sum(x[1..3]), sum(x[2..4]), sum(x[3..5]), sum(x[4..6]), sum(x[5..7]), sum(x[6..8])]", PLAIN),
    ),
    "slices of matrices": (("w = A[2..3, 1..4] @ x[5..8]", PLAIN), ("w = [x[6] + x[7], sum(x[5..8])]", PLAIN)),
    "what terms are, collected": (("w = [x[i] for i in 1..2]", PLAIN), ("w = [x[1], x[2]]", PLAIN)),
    "an output is what its entries are compared with": (
        ("w = prefix_sums(x)", "E[ sum((O[i] - (w[i + 5] - w[i]))^2 for i in 1..3) ]"),
        ("w = prefix_sums(x)", "E[ ||O - (w[6..8] - w[1..3])||^2 ]"),
    ),
    "an output is one linear map, however it is written": (
        ("w = sum(x)", "E[ (O - w)^2 ] + E[ (O - prefix_sums(x)[8])^2 ] + 2 * E[ (O - ones(8) @ x)^2 ]"),
        ("w = sum(x)", "4 * E[ (O - w)^2 ]"),
    ),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_forms_that_say_the_same_have_one_loss(one: tuple[str, str], other: tuple[str, str]) -> None:
    losses = [Problem(SPEC.format(*each)).solve().loss.value for each in (one, other)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


WRONG = {
    "w[i] = x[i]": ("PS0215", "say what i runs through", "w[i]"),
    "w[i] = x[i] for j in 1..2": ("PS0215", "say what i runs through", "w[i]"),
    "w[i] = x[i] for i in {1, 3}": ("PS0215", "say what i runs through", "w[i]"),
    "w = x[1..9]": ("PS0209", "1..9 runs to 9, but there are 8 entries", "1..9"),
    "w = x[1..2, 1]": ("PS0209", "2 indices here", "x[1..2, 1]"),
    "w[i] = x[i] for i in 1..9": ("PS0209", "i runs to 9", "1..9"),
}


@pytest.mark.parametrize(("definition", "wrong"), WRONG.items(), ids=WRONG)
def test_what_a_form_cannot_mean_is_told_at_its_place(definition: str, wrong: tuple[str, str, str]) -> None:
    code, message, place = wrong
    with pytest.raises(SpecError) as caught:
        load_model(Source("s.priv", SPEC.format(definition, PLAIN)))
    first = caught.value.diagnostics[0]
    assert first.code == code
    assert message in first.message
    assert first.source is not None and first.source.slice(first.labels[0].span) == place


def test_an_entry_outside_an_indexed_definition_is_told_as_it_is_written() -> None:
    text = SPEC.format("w[i] = x[i] for i in 2..8", "E[ (O - w[1])^2 ]")
    with pytest.raises(SpecError, match=r"w\[1\] is none of the entries that w was defined for"):
        load_model(Source("s.priv", text))


def test_another_value_in_an_average_is_no_noise() -> None:
    text = SPEC.format("w = sum(x)", "E[ (O - w)^2 ] + E[ (O - prefix_sums(x)[7])^2 ]")
    with pytest.raises(SpecError, match="this average depends on x"):
        load_model(Source("s.priv", text))


def test_forms_are_kept_by_the_formatter() -> None:
    text = SPEC.format("w[i, j] = x[i] for i in 2..3, j in 1..2", "E[ ||O - [w[2, 1..2], [x[j] for j in 1..2]]||^2 ]")
    written = format_source(Source("s.priv", text))
    assert "w[i, j] = x[i] for i in 2..3, j in 1..2" in written
    assert "w[2, 1..2], [x[j] for j in 1..2]" in written


TABLE = """parameters:
  D = [[0, 1, 3], [1, 0, 2], [3, 2, 0]]
  u = [2, 1, 5]
  c = {0.5}
variables:
  input x in {1}
  output z in {1}
background: x ~ uniform
loss: E[ {2} ]
privacy: {3}
"""
WORDS, NUMBERS, LINE = "{a, b, c}", "1..3", "z is 1-DP wrt x"
ALIKE = {
    "words index matrices": ((2, WORDS, "D[x, z]", LINE), (2, NUMBERS, "D[x, z]", LINE)),
    "words index vectors": ((2, WORDS, "u[x] * mismatch(x, z)", LINE), (2, NUMBERS, "u[x] * mismatch(x, z)", LINE)),
    "a parameter of the name of a word": ((0.5, WORDS, "D[x, z]", LINE), (2, NUMBERS, "D[x, z]", LINE)),
    "whole numbers in braces": ((2, "{1, 2, 3}", "(x - z)^2", LINE), (2, NUMBERS, "(x - z)^2", LINE)),
    "entry by entry": (
        (2, NUMBERS, "sum(max(u, x) - min(u, [z, 9, 9]) + at_least(u, [x, z, 2]))", LINE),
        (2, NUMBERS, "max(2, x) - min(2, z) + max(1, x) + 5 - 1 - 5 + at_least(2, x) + at_least(1, z) + 1", LINE),
    ),
    "a distance of any letter": tuple(
        (2, NUMBERS, "|x - z|", f"z is 1-metric-DP wrt x, distance {metric}")
        for metric in ("|t - t'|", "||v' - v||_1", "|x - x'|", "manhattan")
    ),
}


def table(c: float, domain: str, loss: str, line: str) -> str:
    text = TABLE.replace("{0.5}", str(c)).replace("{1}", domain)
    return text.replace("{2}", loss).replace("{3}", line)


@pytest.mark.parametrize("specs", ALIKE.values(), ids=ALIKE)
def test_tables_that_say_the_same_have_one_loss(specs: tuple[tuple[float, str, str, str], ...]) -> None:
    losses = [Problem(table(*each)).solve().loss.value for each in specs]
    assert losses == pytest.approx(losses[:1] * len(losses), rel=1e-9)


def test_a_word_that_is_also_a_parameter_is_told() -> None:
    model = load_model(Source("s.priv", table(2, "{a, b, c}", "D[x, z]", LINE)))
    assert [one.message for one in model.warnings if one.code == "PS0204"] == [
        "c is a word here, as what stands beside it, and not the parameter"
    ] * 2
    numbers = load_model(Source("s.priv", table(2, "{c, 1, 5}", "(x - z)^2", LINE)))
    assert numbers.nodes["x"].domain is not None and numbers.nodes["x"].domain.describe() == "{2, 1, 5}"
    assert not [one for one in numbers.warnings if one.code == "PS0204"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ((2, "{a, b}", "D[x, z]", LINE), "x is one of 2 words, and there are 3 entries"),
        ((2, NUMBERS, "|x - z|", "z is 1-metric-DP wrt x, distance |z - z'|"), "the distance speaks of z"),
        ((2, NUMBERS, "|x - z|", "z is 1-metric-DP wrt x, distance |t - s'|"), "compares one value of x"),
        ((2, NUMBERS, "sum(max(u, [x, 1]))", LINE), "max compares values of one shape"),
    ],
)
def test_what_tables_cannot_mean_is_told(spec: tuple[float, str, str, str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load_model(Source("s.priv", table(*spec)))


MEASURED = """variables:
  input p in table(a in {D}, b in {u, v})
  output O in {D}
  output P in {D} = O
loss: E[ (O - sum(p.a, a in {0, 1}))^2 ]
privacy: O is 1-DP wrt p, adding or removing one record
"""


def test_whole_numbers_in_braces_are_a_range_for_every_purpose() -> None:
    plans = [Problem(MEASURED.replace("{D}", domain)).solve() for domain in ("0..2", "{0, 1, 2}")]
    assert plans[0].loss.value == plans[1].loss.value


LOCAL = """parties: voter in 1..20
variables:
  input x[voter] in {a, b}
  input y[voter] in [0, 1]
  output H
  output S
loss: E[ ||H - histogram(x)||^2 ] + E[ (S - sum(y))^2 ]
privacy:
  H is 1-LDP wrt x
  S is 1-DP wrt y, replacing one voter
"""


def test_a_local_line_that_takes_trust_from_another_is_told_with_both() -> None:
    (told,) = (one for one in load_model(Source("s.priv", LOCAL)).warnings if one.code == "PS0308")
    assert told.source is not None
    assert [told.source.position(label.span.start)[0] for label in told.labels] == [10, 9]
    for said in (LOCAL + "options: trust nobody\n", LOCAL.replace("1-DP wrt y, replacing one voter", "1-LDP wrt y")):
        assert "PS0308" not in {one.code for one in load_model(Source("s.priv", said)).warnings}
