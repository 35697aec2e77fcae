"""What a message proposes to write has been tried: it is shown only where the spec, so edited, parses and checks."""

from __future__ import annotations

import pytest

from privspec.core.diagnostics import Diagnostic, SpecError
from privspec.core.spans import Source, Span
from privspec.model.build import build_model, load_model
from privspec.model.suggestions import proposed, proposes, vetted

SPEC = """variables:
  input x in [0, 1]^4
  output O
loss: E[ ||O - x||^2 ]
privacy: O is 1-DP wrt x, replacing one entry
"""


def said(text: str) -> Diagnostic:
    with pytest.raises(SpecError) as caught:
        load_model(Source("a.priv", text))
    return next(one for one in caught.value.diagnostics if one.is_error)


def again(text: Source) -> tuple[Diagnostic, ...]:
    try:
        return tuple(build_model(text).warnings)
    except SpecError as error:
        return error.diagnostics


@pytest.mark.parametrize(
    "advice", ["write [1, 0]^4", "did you mean [1, 0]?", "write x in [0, 1] in", "leave input out"]
)
def test_what_does_not_work_is_not_shown(advice: str) -> None:
    text = Source("a.priv", SPEC.replace("[0, 1]^4", "[0, 1]]^4"))
    at = text.text.index("[0, 1]]^4")
    wrong = Diagnostic.at(text, Span(at, at + 9), "PS0104", "a bracket too many", help=advice)
    (shown,) = vetted(text, (wrong,), again)
    assert shown.help == "`privspec help variables` shows how such a line is written"


def test_what_works_is_shown() -> None:
    text = Source("a.priv", SPEC.replace("[0, 1]^4", "[0, 1]]^4"))
    at = text.text.index("[0, 1]]^4")
    wrong = Diagnostic.at(text, Span(at, at + 9), "PS0104", "a bracket too many", help="write [0, 1]^4")
    assert vetted(text, (wrong,), again) == (wrong,)


def test_a_form_is_no_proposal() -> None:
    for advice in (
        "write E[ ... ] around it",
        "write [lo, hi] for numbers",
        "write for instance input x in real",
        "see",
    ):
        assert not proposes(Diagnostic("PS0101", "wrong", help=advice))


def test_an_error_that_others_hid_does_not_count_against_a_proposal() -> None:
    """`(O, P)` is what to write, although P is not declared: that is said once the line can be read."""
    wrong = said(SPEC.replace("O is 1-DP", "O and P are 1-DP"))
    assert wrong.help == "write (O, P)"


def test_a_long_text_is_not_tried() -> None:
    text = Source("a.priv", SPEC + "# " + "x" * 60_000)
    wrong = Diagnostic.at(text, Span(0, 9), "PS0101", "wrong", help="write nonsense")
    assert vetted(text, (wrong,), again) == (wrong,)


def test_edits_stay_in_the_line_that_is_marked() -> None:
    text = Source("a.priv", SPEC)
    at = SPEC.index("[0, 1]^4")
    line = Span(SPEC.index("  input"), SPEC.index("\n  output"))
    wrong = Diagnostic.at(text, Span(at, at + 8), "PS0101", "wrong", help="write input x in [0, 2]^4, with care")
    for fix in proposed(text, wrong):
        assert line.start <= fix.span.start <= fix.span.end <= line.end
