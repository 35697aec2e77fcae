"""No text makes the front end fail in any other way than by diagnostics with positions."""

import random
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspec.core.catalogue import entries
from privspec.core.diagnostics import SpecError
from privspec.core.render import diagnostic_to_json, render
from privspec.core.spans import Source
from privspec.language.formatter import format_source
from privspec.language.parser import decode_source, parse
from privspec.language.spelling import print_spec

GOLDEN = Path(__file__).parents[1] / "golden"
SPECS = [p.read_text("utf-8") for p in sorted(GOLDEN.glob("language_*/spec.priv"))]
PIECES = [
    *"()[]{}|'\"#\n:,.=<>~^@*/+-_;%$\\²‖∈εμ\t\r\x00\u202e“é日𝔼\ud800",
    '"""', "||", "..", "-DP", " in ", "E[", "worst[", "wrt ", "is ", "for ", " 1e9999 ", "loss:", "privacy:", "spec ",
]  # fmt: skip


def check(text: str) -> bool:
    """Parse; every way out is orderly. Returns whether the text is a spec."""
    source = Source("fuzz.priv", text)
    try:
        tree = parse(source)
    except SpecError as error:
        assert error.diagnostics
        for diagnostic in error.diagnostics:
            assert diagnostic.code in entries()
            assert diagnostic.message and diagnostic.source is source
            assert diagnostic.labels
            for label in diagnostic.labels:
                assert label.span.end <= len(text)
            shown = render(diagnostic)
            assert "fuzz.priv:" in shown
            assert "\x00" not in shown and "\u202e" not in shown
            diagnostic_to_json(diagnostic)
        return False
    formatted = format_source(source)
    assert parse(Source("formatted", formatted)) == tree
    assert format_source(Source("formatted", formatted)) == formatted
    assert parse(Source("printed", print_spec(tree))) == tree
    return True


def mutate(dice: random.Random, text: str) -> str:
    for _ in range(dice.choice([1, 1, 1, 2, 4, 8])):
        at = dice.randrange(len(text) + 1)
        to = min(len(text), at + dice.choice([1, 1, 2, 5, 30]))
        match dice.randrange(6):
            case 0:
                text = text[:at] + text[to:]
            case 1:
                text = text[:at] + dice.choice(PIECES) + text[at:]
            case 2:
                text = text[:at] + dice.choice(PIECES) + text[to:]
            case 3:
                text = text[:at] + dice.choice(string.printable) + text[at:]
            case 4:
                other = dice.choice(SPECS)
                start = dice.randrange(len(other))
                text = text[:at] + other[start : start + dice.choice([5, 20, 80])] + text[at:]
            case 5:
                text = text[:at] + text[at:to] * 2 + text[to:]
    return text if dice.random() < 0.95 else text[: dice.randrange(len(text) + 1)]


@pytest.mark.parametrize("seed", range(8))
def test_mutated_specs(seed: int) -> None:
    dice = random.Random(seed)
    outcomes = [check(mutate(dice, dice.choice(SPECS))) for _ in range(150)]
    assert 0 < sum(outcomes) < len(outcomes)


@pytest.mark.parametrize("seed", range(2))
def test_lines_shuffled(seed: int) -> None:
    dice = random.Random(seed)
    lines = [line for text in SPECS for line in text.split("\n")]
    for _ in range(100):
        check("\n".join(dice.choices(lines, k=dice.randint(1, 12))))


@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    check(text)
    check("variables:\n" + text)
    check("privacy: O is " + text)


@given(st.lists(st.sampled_from([*PIECES, "x", "1", "a b"]), max_size=25).map("".join))
def test_any_tokens(text: str) -> None:
    check(text)
    check("background:\n" + text)
    check("loss: (" + text + ")")


@given(st.binary(max_size=40))
def test_any_bytes(data: bytes) -> None:
    try:
        source = decode_source("fuzz.priv", data)
    except SpecError as error:
        assert error.diagnostics[0].code == "PS0133"
        assert "fuzz.priv:" in render(error.diagnostics[0])
        return
    check(source.text)


@pytest.mark.parametrize(
    "text",
    [
        "loss: " + "(" * 8_000,
        "loss: " + "(" * 8_000 + "x" + ")" * 8_000,
        "loss: " + "-" * 8_000 + "x",
        "loss: x" + "'" * 8_000,
        "loss: x" + " + x" * 8_000,
        "loss: x" + "^x" * 8_000,
        "loss: " + "f(" * 4_000 + ")" * 4_000,
        "loss: " + "|" * 8_000,
        "loss: " + "[" * 8_000 + "]" * 8_000,
        "variables: input x in " + "(" * 8_000 + "real" + ")" * 8_000,
        "variables: input x in 1.." + "1 + " * 8_000 + "1",
        "x" * 999_000,
        "loss: " + "x" * 999_000,
        "loss: " + "1" * 999_000,
        '"' * 500_000,
        "#" * 500_000,
        "\n" * 500_000,
        "loss:\n" * 8_000,
        "a\n" * 20_000,
        "variables:\n" + "€\n" * 8_000,
        "x" * 1_000_001,
    ],
    ids=lambda text: repr(text[:24]),
)
def test_large(text: str) -> None:
    check(text)


def test_deep_but_not_too_deep() -> None:
    assert check("loss: " + "(" * 2000 + "x" + ")" * 2000)
    assert check("loss: " + "-" * 90 + "x")
    assert check("loss: x" + " + x" * 90)
    assert not check("loss: x" + " + x" * 110)
