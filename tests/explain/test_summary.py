import re
from collections.abc import Callable
from pathlib import Path

import pytest

from privspec.api import Problem

from .judged import summary
from .plans import Plan, histogram, prefix_sums, two_observers

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("width", [100, 60])
@pytest.mark.parametrize("make", [prefix_sums, histogram, two_observers])
def test_golden(golden: Callable[[Path, str], None], make: Callable[[], Plan], width: int) -> None:
    name = make.__name__
    golden(GOLDEN / f"{name}.summary.{width}.txt", summary(make(), width=width, path=f"{name}.plan.json"))


@pytest.mark.parametrize("width", [20, 40, 63, 64, 80, 100, 400])
def test_fits_the_terminal(width: int) -> None:
    for make in (prefix_sums, histogram, two_observers):
        for line in summary(make(), width=width).splitlines():
            longest = max((len(word) for word in line.split()), default=0)
            assert len(line) <= max(width, 30, longest + 30)


def test_long_lists_are_cut() -> None:
    plan = histogram()
    plan["alternatives"] = [
        {"name": f"design {i}", "loss": 30.0 + i, "admissible": i % 2 == 0, "reason": ""} for i in range(9)
    ]
    text = " ".join(summary(plan, width=100).split())
    assert "design 0" in text
    assert "design 6" in text
    assert "design 1" not in text
    assert "5 more" in text


def test_designs_that_were_ruled_out_say_so() -> None:
    plan = prefix_sums()
    plan["alternatives"][0]["admissible"] = False
    assert "noise on each input ± 24.1 (not admissible)" in " ".join(summary(plan, width=100).split())


def test_outputs_that_no_line_names_together_get_a_bound() -> None:
    plan = two_observers()
    del plan["guarantees"][1]
    view = {"input": "x", "wrt": ["x"], "neighbours": "replacing one entry", "observer": "press"}
    seen = ["audit_file", "press_release"]
    plan["problem"] = {"views": [view | {"outputs": seen, "unnamed": ["audit_file"], "lines": []}]}
    plan["exposures"] = [view | {"outputs": seen, "not_protected": [], "bound": {"mu": "0.448352"}, "witness": None}]
    text = " ".join(summary(plan, width=100).split())
    bound = "μ ≤ 0.4484, that is (2.213, 1e-7)-DP"
    assert f"No line covers x, replacing one entry: press see audit_file and press_release; {bound}" in text


def test_without_a_place_it_offers_the_next_commands() -> None:
    assert summary(histogram(), width=100).splitlines()[-1].startswith("next: privspec run")


def test_feasible_says_of_how_many_it_is_the_best_and_what_no_other_can_have() -> None:
    plan = prefix_sums()
    plan["status"] = "feasible"
    plan["loss"] |= {"lower_bound": plan["loss"]["value"] * 0.2401, "among": "all unbiased mechanisms of the same mu"}
    designs = 1 + sum(1 for item in plan["alternatives"] if item["admissible"])
    text = " ".join(summary(plan, width=100).split())
    assert f"feasible: the best of {designs} designs compared" in text
    # errors are roots of squared losses: 0.49, and rounded down where that is not exact
    assert "no unbiased mechanism of the same mu can have less than 0.4" in text
    plan["loss"] |= {"lower_bound": None, "relative_gap": None}
    plan["alternatives"] = []
    text = " ".join(summary(plan, width=100).split())
    assert "feasible: the only design that could be computed; it is not proved that no other has less loss" in text


def test_noise_of_a_shape_is_named_in_words() -> None:
    plan = Problem(
        "variables:\n  input people in table(sex in {F, M}, age in 0..3)\n  output O\n"
        "loss: E[ ||O - marginals(people, {sex}, {age})||^2 ]\n"
        "privacy: O is 1-DP wrt people, replacing one record\noptions: noise family knorm"
    ).solve()
    assert re.search(r"K-norm noise \(l2\) at O \(± [\d.]+ to [\d.]+\)", " ".join(plan.summary().split()))
