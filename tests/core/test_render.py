"""Diagnostics as text and as data."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspec.core.diagnostics import Diagnostic, Label
from privspec.core.render import MAX_COLUMNS, clean, diagnostic_to_json, render, render_all, width
from privspec.core.spans import Source, Span

TEXT = """spec queries
variables:
  input x in [0, 1]^64
  output O



  constant A = csv("queries.csv")



  y = A' @ x + b
\tz\t= 漢字 + q
  w = f(
     1,
     2)
"""


def span(text: str, word: str, start: int = 0) -> Span:
    at = text.index(word, start)
    return Span(at, at + len(word))


def error(text: str, *labels: Label, **more: object) -> Diagnostic:
    source = Source("queries.priv", text)
    return Diagnostic("PS0207", "y has 32 rows here and 64 there", labels, source=source, **more)  # type: ignore[arg-type]


def lines(*expected: str) -> str:
    return "\n".join(expected)


def test_two_lines() -> None:
    shown = render(
        error(
            TEXT,
            Label(span(TEXT, "A' @ x"), "a 64 x 32 matrix cannot multiply x, a vector of 64"),
            Label(span(TEXT, 'csv("queries.csv")'), "32 x 64", primary=False),
            help="did you mean A @ x? (A' is the transpose)",
        )
    )
    assert shown == lines(
        "error[PS0207]: y has 32 rows here and 64 there",
        "  --> queries.priv:12:7",
        "   |",
        ' 8 |   constant A = csv("queries.csv")',
        "   |                ------------------ 32 x 64",
        "12 |   y = A' @ x + b",
        "   |       ^^^^^^ a 64 x 32 matrix cannot multiply x, a vector of 64",
        "   |",
        "   = help: did you mean A @ x? (A' is the transpose)",
    )


def test_several_labels_on_one_line() -> None:
    shown = render(
        error(
            TEXT,
            Label(span(TEXT, "A'"), "a matrix"),
            Label(span(TEXT, "y ="), "a vector"),
            Label(span(TEXT, "x + b"), "a sum", primary=False),
        )
    )
    assert shown == lines(
        "error[PS0207]: y has 32 rows here and 64 there",
        "  --> queries.priv:12:7",
        "   |",
        "12 |   y = A' @ x + b",
        "   |   ^^^ ^^   ----- a sum",
        "   |   |   a matrix",
        "   |   a vector",
        "   |",
    )


def test_overlapping_labels_keep_their_words() -> None:
    outer, inner = span(TEXT, "A' @ x + b"), span(TEXT, "@")
    shown = render(error(TEXT, Label(inner, "the product"), Label(outer, "the whole", primary=False)))
    assert "   |       ---^------" in shown
    assert "the product" in shown and "the whole" in shown


def test_tabs_and_wide_characters() -> None:
    shown = render(error(TEXT, Label(span(TEXT, "q\n"), "here"), Label(span(TEXT, "字"), "there", primary=False)))
    code, under = shown.splitlines()[3:5]
    assert "\t" not in code
    assert width(code[: code.index("q")]) == under.index("^")
    assert width(code[: code.index("字")]) == under.index("-")
    assert under.count("-") == 2


def test_span_over_several_lines() -> None:
    start = span(TEXT, "f(\n").start
    shown = render(error(TEXT, Label(Span(start, span(TEXT, "2)").end), "the call")))
    assert shown == lines(
        "error[PS0207]: y has 32 rows here and 64 there",
        "  --> queries.priv:14:7",
        "   |",
        "14 |   w = f(",
        "   |       ^^",
        "16 |      2)",
        "   |      ^^ the call",
        "   |",
    )


def test_end_of_text_and_empty_spans_get_a_caret() -> None:
    assert " ^ here" in render(error("", Label(Span(0, 0), "here")))
    assert "   ^ here" in render(error("abc", Label(Span(3, 3), "here")))
    assert "^" in render(error("abc\n", Label(Span(4, 4), "here")))
    assert "^" in render(error("abc\n", Label(Span(100, 200), "beyond")))


def test_long_lines_are_cut_around_the_mark() -> None:
    text = "a" * 5000 + " ! " + "b" * 5000
    shown = render(error(text, Label(span(text, "!"), "here")))
    code, under = shown.splitlines()[3:5]
    assert len(code) < MAX_COLUMNS + 20
    assert code.count("…") == 2
    assert code[under.index("^")] == "!"


def test_without_source() -> None:
    plain = Diagnostic("PS0701", "there is no file x.priv", (), ("a note",), "look again")
    assert render(plain) == lines("error[PS0701]: there is no file x.priv", "  = note: a note", "  = help: look again")
    built = Diagnostic("PS0207", "shapes differ", (Label(Span(0, 0), "32 rows"),))
    assert "= note: 32 rows" in render(built)


def test_source_without_labels() -> None:
    assert render(error(TEXT)).splitlines() == [
        "error[PS0207]: y has 32 rows here and 64 there",
        " --> queries.priv",
    ]


def test_warnings_and_several() -> None:
    warning = error(TEXT, severity="warning")
    assert render(warning).startswith("warning[PS0207]: ")
    assert render_all([warning, warning]) == render(warning) + "\n\n" + render(warning) + "\n"


def test_help_of_several_lines_is_aligned() -> None:
    shown = render(error(TEXT, help="first\nsecond")).splitlines()
    assert shown[-2:] == ["  = help: first", "          second"]


def test_colour_only_when_asked() -> None:
    diagnostic = error(TEXT, Label(span(TEXT, "x"), "here"), Label(span(TEXT, "O"), "there", primary=False), help="h")
    plain, coloured = render(diagnostic), render(diagnostic, colour=True)
    assert "\x1b" not in plain
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_nothing_reaches_the_terminal_as_a_command() -> None:
    text = "x = \x1b[31mred\x07 \u202eabc\n"
    diagnostic = Diagnostic(
        "PS0101",
        "bad \x1b[2J",
        (Label(span(text, "red"), "see \x07"),),
        ("\x1b",),
        "\x1b",
        source=Source("a\x1b", text),
    )
    shown = render(diagnostic)
    assert not set(shown) & set("\x1b\x07\u202e")


@given(
    st.text(max_size=80),
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 20), st.booleans()), max_size=4),
)
def test_any_text_and_spans(text: str, places: list[tuple[int, int, bool]]) -> None:
    labels = tuple(Label(Span(a, a + n), "words", primary) for a, n, primary in places)
    diagnostic = Diagnostic("PS0101", "message", labels, source=Source("x", text))
    assert clean(shown := render(diagnostic)).replace("\ufffd", "\n") or shown
    json.dumps(diagnostic_to_json(diagnostic))


def test_json() -> None:
    diagnostic = error(TEXT, Label(span(TEXT, "A'"), "a"), Label(span(TEXT, "csv"), "b", primary=False), help="h")
    assert diagnostic_to_json(diagnostic) == {
        "code": "PS0207",
        "severity": "error",
        "message": "y has 32 rows here and 64 there",
        "file": "queries.priv",
        "line": 12,
        "column": 7,
        "labels": [
            {"text": "a", "primary": True, "line": 12, "column": 7, "end_line": 12, "end_column": 9},
            {"text": "b", "primary": False, "line": 8, "column": 16, "end_line": 8, "end_column": 19},
        ],
        "notes": [],
        "help": "h",
    }
    assert "line" not in diagnostic_to_json(Diagnostic("PS0701", "m"))


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("漢字", 4), ("e\u0301", 1), ("ε", 1)])
def test_width(text: str, columns: int) -> None:
    assert width(text) == columns
