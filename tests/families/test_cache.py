"""One solve serves all budgets that differ by a common factor, and nothing else."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privspec.families.family import Settings

from .cases import GAUSSIAN, OBSERVERS
from .specs import chosen, spec

CASES = {name: text for name, text in GAUSSIAN.items() if "-GDP" in text}


def with_amounts(text: str, factor: Fraction) -> str:
    """The spec with every mu times a factor."""
    out, rest = "", text
    while "-GDP" in rest:
        head, rest = rest.split("-GDP", 1)
        before, mu = head.rsplit(" ", 1)
        out += f"{before} ({Fraction(mu) * factor})-GDP"
    return out + rest


@pytest.mark.parametrize("name", CASES)
def test_a_remembered_solution_scales(name: str) -> None:
    settings = Settings(alternatives=False)
    first = chosen(CASES[name], settings).chosen
    assert settings.cache.hits == 0
    factor = Fraction(5, 2)
    second = chosen(with_amounts(CASES[name], factor), settings).chosen
    # noise on the numbers of parties alone has a closed form, of which nothing is remembered
    assert settings.cache.hits == (name != "nobody")
    fresh = chosen(with_amounts(CASES[name], factor), Settings(alternatives=False)).chosen
    assert second.loss == pytest.approx(first.loss / float(factor) ** 2, rel=1e-9)
    assert second.loss == pytest.approx(fresh.loss, rel=1e-6)
    assert second.lower_bound == pytest.approx(first.lower_bound / float(factor) ** 2, rel=1e-9)  # type: ignore[operator]
    assert second.lower_bound <= second.loss  # type: ignore[operator]
    sites, scaled_sites = first.mechanism.sites, second.mechanism.sites  # type: ignore[union-attr]
    for one, other in zip(sites, scaled_sites, strict=True):
        np.testing.assert_allclose(other["variance"], np.array(one["variance"]) / float(factor) ** 2, rtol=1e-6)


def changed(old: str, new: str, text: str = GAUSSIAN["full"]) -> str:
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (GAUSSIAN["full"], changed("[0, 1]^4", "[0, 1]^5")),
        (GAUSSIAN["full"], changed("prefix_sums", "suffix_sums")),
        (GAUSSIAN["full"], changed("E[ ||", "sum(j * E[ (O[j] - y[j])^2 ] for j in 1..4) + E[ ||")),
        (GAUSSIAN["full"], GAUSSIAN["full, worst"]),
        (GAUSSIAN["full"], GAUSSIAN["at x and y"]),
        (GAUSSIAN["at x and y"], GAUSSIAN["at x"]),
        (GAUSSIAN["full"], GAUSSIAN["group"]),
        (GAUSSIAN["full"], GAUSSIAN["box, everything"]),
        (GAUSSIAN["histogram, adding"], GAUSSIAN["histogram, replacing"]),
        (spec(*OBSERVERS), changed("P is 0.5-GDP", "P is 0.6-GDP", spec(*OBSERVERS))),
        (GAUSSIAN["two inputs"], changed("O is 0.5-GDP", "O is 0.4-GDP", GAUSSIAN["two inputs"])),
    ],
)
def test_another_program_is_solved_anew(first: str, second: str) -> None:
    settings = Settings(alternatives=False)
    chosen(first, settings)
    again = chosen(second, settings)
    assert settings.cache.hits == 0
    assert again.chosen.loss == pytest.approx(chosen(second).chosen.loss, rel=1e-6)


def test_a_wider_domain_is_only_a_factor() -> None:
    settings = Settings(alternatives=False)
    first = chosen(GAUSSIAN["full"], settings).chosen
    second = chosen(changed("[0, 1]^4", "[0, 3]^4"), settings).chosen
    assert settings.cache.hits == 1
    assert second.loss == pytest.approx(9 * first.loss, rel=1e-9)


def test_solvers_do_not_share_what_they_remember() -> None:
    cache = Settings(alternatives=False).cache
    chosen(GAUSSIAN["full"], Settings(alternatives=False, cache=cache))
    chosen(GAUSSIAN["full"], Settings(solver="cvxpy", alternatives=False, cache=cache))
    assert cache.hits == 0
