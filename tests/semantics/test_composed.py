"""Specs whose parts are drawn freely are solved, proved to conflict, or refused by true lines; never more, never less.

`pytest -m slow tests/semantics/test_composed.py` draws two thousand.
"""

from __future__ import annotations

from random import Random

import pytest

from privspec.api import Problem
from privspec.core.catalogue import entries
from privspec.core.diagnostics import PrivspecError, SpecError
from privspec.core.machine import at_most

from .composed import composed

SECONDS, BLOCK = 20, 20
BOUND, WORSE = 1e-6, 1e-9
LONGEST = 220
LATE, BUG = "PS0610", "PS0620"
"""No answer in time, and a plan of ours that the kernel refuses."""


def answered(text: str) -> str:
    """What becomes of a spec: the status of its plan, or the code that refuses it."""
    try:
        with at_most(SECONDS):
            plan = Problem(text).solve()
    except PrivspecError as error:
        found = [one for one in error.diagnostics if one.severity == "error"]
        assert found[0].code != BUG, text
        for one in found:
            assert one.code in entries()
            assert one.labels or one.code == LATE, text
            assert "\n" not in one.message
            assert len(one.message) <= LONGEST, one.message
        return found[0].code
    if plan.feasible:
        bound = plan.loss.lower_bound
        assert bound is None or bound <= plan.loss.value * (1 + BOUND) + WORSE, text
        for reader in ("public", "auditor", "engineer"):
            try:
                assert plan.explain(reader), text
            except SpecError as error:
                assert error.diagnostics[0].code in entries(), text
    return plan.status


@pytest.mark.parametrize("first", [0, 20, *(pytest.param(n, marks=pytest.mark.slow) for n in range(40, 2000, BLOCK))])
def test_every_composed_spec_has_an_answer(first: int) -> None:
    for seed in range(first, first + BLOCK):
        answered(composed(Random(seed)))


def test_many_of_them_are_solved() -> None:
    """A generator of refusals would show nothing."""
    found = [answered(composed(Random(seed))) for seed in range(3000, 3040)]
    assert sum(one in ("optimal", "feasible") for one in found) >= 8


FOUND = {
    "a place of noise that is the answer": """variables:
  input x in [0, 1]^3
  output O
loss: E[ (O - sum(x))^2 ]
privacy: O is (1, 1e-2)-DP wrt x
options: noise at O
""",
    "an epsilon that a line just allows": """variables:
  input x in table(c in 1..2, d in {u, v})
  output O
loss: E[ ||O - histogram(x)||_1 ]
privacy:
  O is 1-DP wrt x
  O is 0.3-tv-DP wrt x
""",
    "the same of reports that are counted": """parties: owner in 1..2
variables:
  input x[owner] in {a, b, c}
  output O
background: x ~ uniform
loss: E[ (O - histogram(x)[1])^2 ]
privacy:
  O is 1-DP wrt x, replacing one owner
  O is 0.3-tv-DP wrt x
""",
    "a model under which a constant is the best estimate at other data": """parties: owner in 1..2
variables:
  input x[owner] in [0, 2]^2
  output O
background: x ~ uniform
loss: E[ ||O - mean(x[p] for p in owner)||^2 ]
privacy: O is (1, 1e-5)-DP wrt x, replacing one owner
""",
    "words that nothing shows": """variables:
  input x in [0, 1]
  input w in {a, b, c}
  output O
background:
  x ~ uniform
  w ~ uniform
loss: E[ (O - 2 * x)^2 ]
privacy: O is (1, 1e-5)-DP wrt all inputs
""",
}
"""Specs that were refused without need, ended in plans that the kernel refuses, or in an error of ours."""


@pytest.mark.parametrize("name", FOUND)
def test_what_was_refused_is_solved(name: str) -> None:
    assert answered(FOUND[name]) in ("optimal", "feasible")


def test_an_index_set_by_its_name_is_that_set() -> None:
    def solved(runs: str) -> float:
        text = (
            "parties: owner in 1..3\nvariables:\n  input w[owner] in [0, 2]^2\n  output O\n"
            f"loss: E[ ||O - mean({runs})||^2 ]\nprivacy: O is 1-DP wrt w\n"
        )
        return Problem(text).solve().loss.value

    assert solved("w[p] for p in owner") == solved("w[owner] for owner") == solved("w[p] for p in 1..3")


def test_an_input_that_no_output_shows_is_no_reason_of_its_own() -> None:
    text = (
        "variables:\n  input x in {a, b}\n  input w in [0, 1]\n  output O\n"
        "loss: E[ (O - w)^2 ]\nprivacy: O is 1-DP wrt "
    )
    assert answered(text + "x\n") == "PS0511"
    assert answered(text + "all inputs\n") == "optimal"
