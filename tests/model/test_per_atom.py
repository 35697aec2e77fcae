"""The condition on single outputs (Ramon & Basu 2020, 3.3) by name, and that it is not (epsilon, delta)-LDP."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from model_specs import errors, helps, load
from privspec.solvers.table_programs import ExactTable, PairRatio, TableProgram, violations

from privspec.core.catalogue import entries
from privspec.kernel.losses import FiniteLaws
from privspec.kernel.measures import EACH_OUTPUT, LOCAL_PURE, delta_of_sets
from privspec.kernel.trust import NOBODY
from privspec.model.measures import MeasureAt
from privspec.model.requirements import TrustIn
from privspec.model.worlds import inputs_compared

SPEC = """variables:
  input x in 1..10
  input y in 1..2
  output z in grid(0.5, 15, 0.5)
loss: worst[ (z - x - y)^2 ]
privacy: z is (0.5, 0.01)-per-atom-LDP wrt x
"""


def test_reading() -> None:
    model = load(SPEC)
    (requirement,) = model.requirements
    assert requirement.measure == MeasureAt(EACH_OUTPUT, (Fraction(1, 2), Fraction(1, 100)))
    assert requirement.measure.local
    assert model.trust == TrustIn(NOBODY)
    assert requirement.measure.name == "(epsilon, delta)-per-atom-LDP"
    assert requirement.measure.amounts == {"epsilon": Fraction(1, 2), "delta": Fraction(1, 100)}
    assert inputs_compared(model, requirement) == 10
    assert inputs_compared(model, load(SPEC.replace("wrt x", "wrt (x, y)")).requirements[0]) == 20
    assert load(SPEC.replace("0.01", "0")).requirements[0].measure == MeasureAt(LOCAL_PURE, (Fraction(1, 2),))


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ("grid(0.5, 15, 0.5)", "the true delta may be up to 0.029, and 0.01 is asked for"),
        ("1..12", "the true delta may be up to 0.011, and 0.01 is asked for"),
        ("1..11", "with 11 outputs and 10 inputs it implies (0.5, 0.01)-LDP"),
    ],
)
def test_check_says_so(outputs: str, words: str) -> None:
    warned = [w for w in load(SPEC.replace("grid(0.5, 15, 0.5)", outputs)).warnings if w.code == "PS0316"]
    assert len(warned) == 1
    assert words in warned[0].message
    assert warned[0].help is not None
    assert "(0.5, 0.01)-LDP" in warned[0].help


@pytest.mark.parametrize(
    ("old", "new", "code", "hint"),
    [
        ("x in 1..10", "x in [1, 10]", "PS0316", "write (0.5, 0.01)-LDP"),
        ("(0.5, 0.01)", "0.5", "PS0303", "(epsilon, delta)-per-atom-LDP"),
        ("(0.5, 0.01)", "(0, 0.01)", "PS0304", ""),
        ("(0.5, 0.01)", "(1, 1)", "PS0305", ""),
        ("wrt x", "wrt x, replacing one record", "PS0310", "leave this clause out"),
        ("wrt x", "wrt x, distance discrete", "PS0310", ""),
        ("-per-atom-LDP wrt x", "-per-atom-LDP wrt x\noptions: trust curator", "PS0308", "trust nobody"),
    ],
)
def test_what_does_not_fit(old: str, new: str, code: str, hint: str) -> None:
    text = SPEC.replace(old, new)
    assert code in errors(text)
    assert hint in helps(text)[code]


def test_the_counterexample_of_the_catalogue() -> None:
    """Two inputs, 100 outputs: no single output breaks the condition, 99 of them together give the input away."""
    text = entries()["PS0316"].text()
    assert "0.005 each" in text
    assert "0.495" in text
    atoms, epsilon, asked = 99, Fraction(7, 10), Fraction(1, 100)  # e^0.7 > 2
    rows = ((5,) * atoms + (1000 - 5 * atoms,), (0,) * atoms + (1000,))
    table, pairs = ExactTable(rows, 1000), np.array([[0, 1], [1, 0]])
    block = PairRatio(pairs, (epsilon,), slack=asked / 2)
    assert violations(TableProgram(np.zeros((2, 100)), (block,)), table) == []
    delta = FiniteLaws(rows, 1000, ((0, 1),), ()).delta_up(epsilon)
    assert delta == Fraction(495, 1000)
    assert asked < delta <= delta_of_sets(asked, 2, 100) == Fraction(495, 1000)
