"""Functions whose sensitivity the author asserts: from the spec to a release, and plans that say less than asserted."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privspec.api import Problem
from privspec.core.diagnostics import DataError, SpecError
from privspec.kernel import judge
from tests.plans import Document, matrix_of, resign, solved_text

SPEC = """\
variables:
  input x in DOMAIN
  intermediate f in real^3
  output O
background: f has NORM sensitivity at most 3 wrt x, UNIT
loss: E[ ||O - f||^2 ]
privacy: O is MEASURE wrt x, UNIT
"""
UNIT = "replacing one entry"


def spec(norm: str = "l2", measure: str = "1-GDP", unit: str = UNIT, domain: str = "[0, 1]^5") -> str:
    found = SPEC.replace("NORM", norm).replace("MEASURE", measure)
    return found.replace("UNIT", unit).replace("DOMAIN", domain)


def failures(plan: Document) -> str:
    return "; ".join(f"{claim.name}: {claim.text}" for claim in judge(json.dumps(resign(plan))).failed)


@pytest.mark.parametrize(
    ("norm", "measure", "loss"),
    [
        ("l2", "1-GDP", 3 * 9),
        ("l1", "1-GDP", 3 * 9),
        ("linf", "1-GDP", 3 * 27),
        ("l1", "1-DP", 3 * 2 * 9),
        ("linf", "1-DP", 3 * 2 * 81),
    ],
)
def test_noise_is_that_of_the_asserted_set(norm: str, measure: str, loss: float) -> None:
    """Gaussian noise of the largest length; Laplace noise of the largest sum of sizes."""
    text = spec(norm, measure) + "options: noise family laplace, gaussian\n"
    plan = solved_text(text)
    assert plan["loss"]["value"] == pytest.approx(loss, rel=2e-6)
    assert not failures(plan)
    (said,) = [c.text for c in judge(json.dumps(plan)).claims if c.name == "asserted"]
    assert said.startswith("that replacing one entry of x moves f by at most 3 (")
    assert said.endswith("is what the author says, line 5, and nothing here proves it")


@pytest.mark.parametrize(
    ("domain", "unit"),
    [
        ("table(age in 0..9, sex in {F, M})", "adding or removing one record"),
        ("({a, b, c})^7", "replacing one record"),
        ("[0, 1]^5", "replacing up to 2 entries"),
    ],
)
def test_any_input_and_any_unit(domain: str, unit: str) -> None:
    plan = solved_text(spec(unit=unit, domain=domain))
    assert plan["guarantees"][0]["neighbours"] == unit
    assert plan["loss"]["value"] == pytest.approx(27, rel=2e-6)
    assert not failures(plan)


def test_a_run_reads_the_function_and_nothing_else(tmp_path: Path) -> None:
    plan = Problem(spec(), {}).solve()
    release = plan.run({"f": [10.0, -2.5, 1e6]}, tmp_path / "l.db", new_ledger=True)
    assert np.allclose(release.outputs["O"], [10.0, -2.5, 1e6], atol=30)
    with pytest.raises(DataError, match="no input x"):
        plan.run({"x": [10.0, -2.5, 1e6]}, tmp_path / "l.db")
    spent = (tmp_path / "l.db").read_bytes()
    assert b"replacing one entry" in spent


def test_neighbouring_values_on_the_grid_stay_within_what_is_hidden() -> None:
    """However two values at the asserted distance are rounded, the executed strategy moves by at most mu."""
    plan = solved_text(spec())
    executed = plan["mechanism"]["executed"]
    strategy = matrix_of(executed["strategy"])
    step = float(Fraction(executed["steps"][0]))
    dice = np.random.default_rng(3)
    for _ in range(300):
        value, way = dice.normal(size=3) * 100, dice.normal(size=3)
        other = value + 3 * way / np.linalg.norm(way)
        moved = np.rint(other / step) * step - np.rint(value / step) * step
        assert np.linalg.norm(strategy @ moved) <= float(Fraction(plan["guarantees"][0]["achieved"]["mu"]))


def test_pages_say_whose_word_it_is() -> None:
    plan = Problem(spec(), {}).solve()
    assert "Nobody has checked that." in plan.explain("public")
    assert "nothing here proves it" in plan.explain("auditor")
    assert "--input f=f.csv" in plan.explain("engineer")
    said = [one for one in plan.document["assumptions"] if "Nothing checks it" in one["text"]]
    assert [one["status"] for one in said] == ["asserted by the user"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (spec().replace("wrt x, replacing one entry\nloss", "wrt x, replacing everything\nloss"), "of nothing else"),
        (spec().replace("  output O\n", "  output O\n  output P\n").replace("loss: ", "loss: E[(P - sum(x))^2] + "),
         "as well"),
        (spec().replace("background: ", "background:\n  f = [x[1], x[2], x[3]]\n  "), "is linear in x"),
        (spec() + "options: trust nobody\n", "one keeper"),
    ],
)  # fmt: skip
def test_what_is_asserted_of_nothing_is_refused(text: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        Problem(text, {}).solve()
    found = caught.value.diagnostics[0]
    assert found.code == "PS0501"
    assert words in found.message


# --- forged plans ---------------------------------------------------------------------------------


def _data(plan: Document) -> Any:
    return plan["problem"]["data"][0]


def _part(plan: Document) -> Any:
    return plan["problem"]["blocks"][0]["differences"][0][0]["parts"][0]


def _quieter(plan: Document) -> None:
    noise = plan["mechanism"]["executed"]["noise"]
    noise["scale"] = str(Fraction(noise["scale"]) / 2)


FORGERIES: dict[str, tuple[Callable[[Document], None], str]] = {
    "less noise": (_quieter, "privacy"),
    "a smaller move": (lambda p: _part(p).update(amount="1"), "by less than what is asserted"),
    "no room for rounding": (lambda p: _part(p).update(amount="3"), "by less than what is asserted"),
    "another norm in the numbers": (lambda p: _part(p).update(shape="l1"), "in another norm"),
    "another norm in the words": (lambda p: _data(p)["asserted"][0].update(norm="l1"), "in another norm"),
    "an unknown norm": (lambda p: _data(p)["asserted"][0].update(norm="l3"), "not known"),
    "a larger word": (lambda p: _data(p)["asserted"][0].update(amount="4"), "by less than what is asserted"),
    "another unit": (lambda p: _data(p)["asserted"][0].update(neighbours="replacing all"), "nothing is asserted"),
    "a key": (lambda p: _data(p)["asserted"][0].update(proved=True), "not known"),
    "each alone": (lambda p: _part(p).update(shape="box", dimension=1, length=1), "by less than what is asserted"),
    "held by parties": (lambda p: _data(p).update(party="owner"), "in a way that nobody asserts"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_forged(name: str) -> None:
    plan = copy.deepcopy(solved_text(spec()))
    change, words = FORGERIES[name]
    change(plan)
    assert words in failures(plan)


def test_a_table_says_nothing_of_functions() -> None:
    plan = solved_text(
        "variables:\n  input x in 1..3\n  output z in 1..3\nloss: worst[ |z - x| ]\nprivacy: z is 1-DP wrt x\n"
    )
    plan["problem"]["data"][0]["asserted"] = _data(solved_text(spec()))["asserted"]
    assert "does not look at" in failures(plan)


def test_a_word_that_is_lowered_everywhere_is_another_problem() -> None:
    """Of a plan by itself it is consistent; the spec, elaborated again, is not about it."""
    plan = copy.deepcopy(solved_text(spec()))
    lower = solved_text(spec().replace("at most 3", "at most 1"))
    forged = {**lower, "spec": plan["spec"]}
    assert not failures(forged)
    report = Problem(spec(), {}).solve()
    assert report.document["problem"] != lower["problem"]
