"""What an editor shows: fixes that help, words that fit, and nothing that fails on what is half typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspec.core.spans import Source
from privspec.editor.features import Looked, complete, definition, fixes, hover, look, names, symbols
from privspec.language.automaton import parse_table, reach
from privspec.language.layout import SECTIONS
from privspec.manual import page

TOP = Path(__file__).parents[2]
TABLE = """\
spec shop
parameters:
  epsilon = 1
variables:
  input people in table(age in 0..120, sex in {F, M}, "hours-per-week" in [0, 99])
  intermediate ages
  output O "people by age"
background:
  ages = prefix_sums(histogram(people, by = {age}))
loss:
  E[ ||O - ages||^2 ]
privacy:
  O is epsilon-DP wrt people, adding or removing one record
"""


def seen(text: str, base: Path | None = None) -> Looked:
    return look(Source("shop.priv", text), base)


def offered(text: str) -> dict[str, str]:
    """What is offered at ¦ in the table's spec with a line of it changed, and its kind."""
    at = text.index("¦")
    return {one.text: one.kind for one in complete(seen(text.replace("¦", "")), at)}


def test_diagnostics_are_those_of_check() -> None:
    assert seen(TABLE).diagnostics == ()
    wrong = seen(TABLE.replace("ages)", "agse)").replace("||O - ages", "||O - agse"))
    assert [one.code for one in wrong.diagnostics] == ["PS0201"]
    assert wrong.model is None
    unread = seen(TABLE.replace("= 1\n", "=\n").replace("epsilon-DP", "epsilon-PD"))
    assert len(unread.diagnostics) == 2
    assert {one.name for one in symbols(unread)} == {"people", "ages", "O"}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("||O - ages||", "||O - agse||"),
        ("prefix_sums(", "prefix_sum("),
        ("by = {age}", "by = {aeg}"),
        ("one record", "one recrod"),
        ("background:", "backgroud:"),
    ],
)
def test_a_slip_is_fixed_as_it_was_meant(right: str, wrong: str) -> None:
    text = TABLE.replace(right, wrong)
    looked = seen(text)
    assert any(one.is_error for one in looked.diagnostics)
    assert TABLE in [fix.applied(text) for one in looked.diagnostics for fix in fixes(looked, one)]


def test_a_fix_that_would_not_help_is_not_offered() -> None:
    looked = seen(TABLE.replace("epsilon-DP", "epsilon-metric-DP"))
    assert looked.diagnostics
    for one in looked.diagnostics:
        for fix in fixes(looked, one):
            assert not [d for d in seen(fix.applied(looked.source.text)).diagnostics if d.is_error]


@pytest.mark.parametrize(
    ("before", "after", "there", "absent"),
    [
        ("wrt people, adding", "wrt people, ¦", {"adding", "replacing", "seen", "given"}, {"one", "people"}),
        ("one record", "one ¦", {"record", "entry"}, {"people"}),
        ("wrt people", "wrt ¦", {"people", "all"}, {"O", "ages", "epsilon"}),
        ("O is epsilon", "¦ is epsilon", {"O", "all"}, {"people", "epsilon"}),
        ("is epsilon-DP", "is epsilon-D¦", {"-DP"}, {"-GDP", "epsilon"}),
        ("is epsilon-DP", "is epsilon¦", {"epsilon"}, {"O"}),
        ("is epsilon-DP", "is (¦", {"epsilon"}, {"O", "people"}),
        ("by = {age}", "by = {¦", {"age", "sex", '"hours-per-week"'}, set()),
        ("{age}))", "{age}, ¦))", {"age", "sex", "people"}, set()),
        ("histogram(people", "histogram(¦", {"people", "histogram"}, {"record"}),
        ("E[ ||O - ages||^2 ]", "¦", {"E", "worst", "O"}, {"input"}),
        ("  intermediate ages", "  inter¦", {"intermediate"}, {"input", "loss:"}),
        ("output O", "output ¦", set(), {"O", "people", "histogram"}),
        ("in table(", "in ¦", {"table", "real", "l2_ball"}, {"O", "histogram"}),
        ("privacy:\n", "options:\n  trust ¦\nprivacy:\n", {"curator", "nobody", "secure_sum"}, {"people"}),
        ("privacy:\n", "options:\n  noise family ¦\nprivacy:\n", {"laplace", "knorm"}, {"people"}),
        ("privacy:\n", "options:\n  noise at ¦\nprivacy:\n", {"people", "ages"}, {"epsilon"}),
        ("loss:", "lo¦", {"loss:"}, {"privacy:"}),
        ("  epsilon = 1", "  epsilon = ¦", {"sqrt"}, {"people"}),
        ("loss:\n", "  people ~ ¦\nloss:\n", {"uniform", "categorical"}, {"people"}),
    ],
)
def test_what_fits_is_offered(before: str, after: str, there: set[str], absent: set[str]) -> None:
    assert TABLE.count(before) == 1
    found = offered(TABLE.replace(before, after))
    assert there <= set(found), found
    assert not absent & set(found), found


def test_nothing_is_offered_in_comments_and_texts() -> None:
    assert offered(TABLE.replace("spec shop", "spec shop  # in¦")) == {}
    assert offered(TABLE.replace('"people by age"', '"in¦"')) == {}
    assert offered(TABLE.replace("spec shop\n", 'spec shop\n"""in¦')) == {}


def test_keywords_are_those_that_the_grammar_takes() -> None:
    """Each word that is offered inside a statement can be read there."""
    for at in range(TABLE.index("privacy:") + len("privacy:\n  "), len(TABLE) - 1):
        start = TABLE.index("O is")
        for one in complete(seen(TABLE[:at]), at):
            if one.kind == "keyword" and at > start:
                text = f"{TABLE[start : one.span.start]}{one.text}"
                assert reach(parse_table(), SECTIONS["privacy"], text, 0, len(text)) is not None, text


def test_hover_says_what_a_name_is() -> None:
    looked = seen(TABLE)

    def at(words: str) -> str:
        return hover(looked, TABLE.index(words)) or ""

    assert "secret input" in at("people in")
    assert "242" not in at("people in") or "cells" in at("people in")
    ages = at("ages\n")
    assert "a vector of 121" in ages and "sensitivity: 11 (Euclidean length), adding or removing one record" in ages
    assert "stands for `ages`, with noise" in at("O is")
    assert "called “people by age”" in at("O is")
    assert "Sensitivity: when one of 8 entries moves by 1" in at("prefix_sums")
    assert at("epsilon = 1").startswith("**epsilon**: public parameter\n\n- 1\n")
    assert "(epsilon, delta)-DP" in hover(looked, TABLE.index("-DP") + 2) or ""
    assert "smaller is better" in at("loss:")
    assert "adding or removing one record" in at("adding")
    assert "at distance d" in (hover(seen(TABLE.replace("-DP", "-metric-DP")), TABLE.index("-DP") + 3) or "")
    assert hover(looked, TABLE.index("= 1")) is None


def test_hover_remembers_what_the_last_right_text_said() -> None:
    broken = seen(TABLE.replace("- ages||^2 ]", "- ages||^2"))
    assert broken.model is None
    place = broken.source.text.index("people in")
    assert "cells" not in (hover(broken, place) or "")
    assert "cells" in (hover(broken, place, seen(TABLE).model) or "")


def test_names_have_places() -> None:
    looked = seen(TABLE)
    assert [one.name for one in symbols(looked)] == ["epsilon", "people", "ages", "O"]
    span = definition(looked, TABLE.index("ages||"))
    assert span is not None and TABLE[: span.start].endswith("intermediate ")
    assert definition(looked, TABLE.index("prefix_sums")) is None


def test_each_part_of_a_file_has_names_of_its_own() -> None:
    text = (TOP / "tests/questions/two_surveys_on_one_budget.priv").read_text("utf-8")
    looked = seen(text)
    assert "wage" in names(looked, 0).names and "wage" not in names(looked, len(text)).names
    assert hover(looked, text.rindex("output O") + 7) == "**O**: released\n"


def test_files_are_looked_for_beside_the_document(tmp_path: Path) -> None:
    text = 'variables:\n  input x in [0, 1]^2\n  constant A = csv("a.csv")\n  output O\n'
    text += "loss: E[ ||O - A @ x||^2 ]\nprivacy: O is 1-DP wrt x, replacing one entry\n"
    assert seen(text, tmp_path).diagnostics
    tmp_path.joinpath("a.csv").write_text("1,1\n0,1\n", "utf-8")
    assert seen(text, tmp_path).diagnostics == ()


def test_sections_have_their_words_from_the_reference() -> None:
    for name in SECTIONS:
        assert f"\n## {name}\n" in page("language")
        said = hover(seen(f"{name}:\n"), 1)
        assert said is not None and len(said) > 80, name


PIECES = st.sampled_from(
    [*TABLE.split(" "), "\n", '"', '"""', "#", "(", "]", "||", "é", "😀", "-", "..", "\r\n", "\ufeff", "\x00"]
)


@given(st.lists(PIECES, max_size=12), st.integers(0, 200))
def test_no_text_makes_it_fail(pieces: list[str], at: int) -> None:
    text = "variables:\n  input x in [0, 1]\n" + " ".join(pieces)
    looked = seen(text)
    at = min(at, len(text))
    for one in complete(looked, at):
        assert one.span.end == at
    hover(looked, at)
    definition(looked, at)
    symbols(looked)


@pytest.mark.parametrize("name", ["city_report", "crowd_vldp", "correlated_readings", "two_observers"])
def test_no_beginning_of_a_spec_makes_it_fail(name: str) -> None:
    text = (TOP / "specs" / f"{name}.priv").read_text("utf-8")
    for end in range(0, len(text), 29):
        looked = seen(text[:end], TOP / "specs")
        complete(looked, end)
        hover(looked, max(0, end - 3))
        symbols(looked)
