"""For each input and observer: what no line bounds, and what `check` says of it."""

from __future__ import annotations

import pytest
from model_specs import load

from privspec import Problem
from privspec.model.observers import Observer, exposures, observers, units

TWO = """variables:
  input x in [0, 1]^4
  input w in [0, 1]^4
  output A
  output B
  output C
loss: E[ (A - sum(x))^2 ] + E[ (B - sum(x) - sum(w))^2 ] + E[ (C - sum(w))^2 ]
privacy:
{lines}
"""


def found(*lines: str) -> dict[tuple[str, str], tuple[str, str]]:
    """Exposures as words: (input, observer) to (outputs, unnamed)."""
    model = load(TWO.format(lines="\n".join(f"  {line}" for line in lines)))
    return {(e.input, e.observer.name): (" ".join(e.outputs), " ".join(e.unnamed)) for e in exposures(model)}


ALL = "all outputs are 1-GDP wrt all inputs, replacing one entry"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((ALL,), {}),
        # C does not depend on x, nor A on w: lines for the rest are enough
        (("(A, B) is 1-GDP wrt x, replacing one entry", "(B, C) is 1-GDP wrt w, replacing one entry"), {}),
        (("A is 1-GDP wrt x, replacing one entry",), {("x", "anyone"): ("A B", "B"), ("w", "anyone"): ("B C", "B C")}),
        (
            ("all outputs are 1-GDP wrt x, replacing one entry", "C is 1-GDP wrt w, replacing one entry"),
            {("w", "anyone"): ("B C", "B")},
        ),
        (
            ("A is 1-GDP wrt x, replacing one entry", "B is 1-GDP wrt (x, w), replacing one entry"),
            {("x", "anyone"): ("A B", ""), ("w", "anyone"): ("B C", "C")},
        ),
        # what anyone sees, the press sees; what nobody is named for, anyone sees
        (
            (
                "(A, C) is 1-GDP wrt all inputs, replacing one entry",
                "B is 1-GDP wrt all inputs, replacing one entry, seen by press",
            ),
            {("x", "press"): ("A B", ""), ("w", "press"): ("B C", "")},
        ),
        # a coalition sees what its members see
        (
            (
                "A is 1-GDP wrt all inputs, replacing one entry, seen by press",
                "(B, C) is 1-GDP wrt all inputs, replacing one entry, seen by auditors",
                "(A, C) is 1-GDP wrt all inputs, replacing one entry, seen by press and auditors",
            ),
            {("x", "press and auditors"): ("A B", "")} | {("w", "press and auditors"): ("B C", "")},
        ),
    ],
)
def test_for_each_input_and_observer(lines: tuple[str, ...], expected: dict[tuple[str, str], tuple[str, str]]) -> None:
    if any("press and auditors" in line for line in lines):
        expected = {key: value for key, value in expected.items() if key[0] == "x"}  # (B, C) is all there is of w
    assert found(*lines) == expected


def test_a_line_for_all_that_an_output_is_computed_from_bounds_it() -> None:
    text = TWO.replace("  output C\n", "  output C\n  output D = A / B\n").format(lines=f"  {ALL}")
    assert not exposures(load(text.replace("all outputs are", "(A, B, C) is")))
    assert exposures(load(text.replace("all outputs are", "(A, C) is")))[0].unnamed == (
        "B",
    )  # whoever has A and B knows D


def test_where_nobody_is_trusted_all_see_all_messages() -> None:
    text = TWO.format(lines="  A is 1-GDP wrt x, replacing one entry, seen by press") + "options: trust nobody\n"
    assert observers(load(text)) == (Observer("anyone", ("A", "B", "C")),)


OF_ALL = "  (A, B, C) is 2-GDP wrt w, replacing one record\n  A is 1-GDP wrt x, replacing one record"


@pytest.mark.parametrize("trust", ["nobody", "secure_sum"])
def test_a_line_is_about_all_messages_where_all_see_them(trust: str) -> None:
    model = load(TWO.format(lines=OF_ALL) + f"options: trust {trust}\n")
    assert not exposures(model) and not model.warnings
    assert [look.unnamed for look in exposures(load(TWO.format(lines=OF_ALL)))] == [("B",)]


def test_a_plan_and_its_pages_say_of_what_a_line_is_about() -> None:
    text = TWO.format(lines=OF_ALL).replace("sum(x)", "x[1]").replace("sum(w)", "w[1]")
    plan = Problem(text + "options: trust nobody\n").solve()
    assert plan.verify().ok and not plan.document["problem"]["views"] and "exposures" not in plan.document
    assert "| Anyone: result A |" not in plan.explain("public")
    assert "(A, B, C) is 1-GDP wrt x" in plan.explain("auditor")


def test_units_are_those_of_the_lines_or_the_default() -> None:
    text = TWO.format(lines="  A is 1-GDP wrt x, replacing up to 2 entries\n  A is 1-GDP wrt x, replacing one record")
    model = load(text)
    assert [(u.wrt, u.relation.describe(), u.requirement) for u in units(model, "x")] == [
        (("x",), "replacing up to 2 entries", 0),
        (("x",), "replacing one record", 1),
    ]
    assert [(u.relation.describe(), u.requirement) for u in units(model, "w")] == [("replacing one record", -1)]


def test_check_warns_of_each() -> None:
    model = load(TWO.format(lines="  A is 1-GDP wrt x, replacing one entry"))
    assert [d.code for d in model.warnings] == ["PS0314", "PS0315"]
    said = " ".join(d.message for d in model.warnings)
    assert "x in B, which anyone sees" in said
    assert "the input w, and anyone sees B and C" in said
