import re

import pytest

from privspec.api import Problem

from .plans import LINEAR, plan, summary, words


@pytest.mark.parametrize("width", [20, 40, 63, 64, 80, 100, 400])
def test_fits_the_terminal(width: int) -> None:
    for name in LINEAR:
        for line in summary(plan(name), width=width).splitlines():
            longest = max((len(word) for word in line.split()), default=0)
            assert len(line) <= max(width, 30, longest + 30)


def test_long_lists_are_cut() -> None:
    found = plan("histogram")
    found["alternatives"] = [
        {"name": f"design {i}", "loss": 30.0 + i, "admissible": i % 2 == 0, "reason": ""} for i in range(9)
    ]
    text = words(found)
    assert "design 0" in text
    assert "design 6" in text
    assert "design 1" not in text
    assert "5 more" in text


def test_designs_that_were_ruled_out_say_so() -> None:
    found = plan("prefix_sums")
    found["alternatives"] = [found["alternatives"][0] | {"admissible": False}]
    assert f"{found['alternatives'][0]['name']} ±" in words(found) and "(not admissible)" in words(found)


def test_without_a_place_it_offers_the_next_commands() -> None:
    assert summary(plan("histogram"), width=100).splitlines()[-1].startswith("next: privspec run")


def test_feasible_says_of_how_many_it_is_the_best_and_what_no_other_can_have() -> None:
    found = plan("prefix_sums")
    found["status"] = "feasible"
    found["loss"] |= {"lower_bound": found["loss"]["value"] * 0.2401, "among": "all unbiased mechanisms of the same mu"}
    designs = 1 + sum(1 for item in found["alternatives"] if item["admissible"])
    text = words(found)
    assert f"feasible: the best of {designs} designs compared" in text
    # errors are roots of squared losses: 0.49, and rounded down where that is not exact
    assert "no unbiased mechanism of the same mu can have less than 0.4" in text
    found["loss"] |= {"lower_bound": None, "relative_gap": None}
    found["alternatives"] = []
    text = words(found)
    assert "feasible: the only design that could be computed; it is not proved that no other has less loss" in text


def test_noise_of_a_shape_is_named_in_words() -> None:
    plan = Problem(
        "variables:\n  input people in table(sex in {F, M}, age in 0..3)\n  output O\n"
        "loss: E[ ||O - marginals(people, {sex}, {age})||^2 ]\n"
        "privacy: O is 1-DP wrt people, replacing one record\noptions: noise family knorm"
    ).solve()
    assert re.search(
        r"K-norm noise of the hull of what moves at O \(± [\d.]+ to [\d.]+\)", " ".join(plan.summary().split())
    )
