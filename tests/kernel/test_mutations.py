"""Whatever a plan says, changed one thing at a time and signed again: it is refused, or it is still true."""

from __future__ import annotations

import json
import random

import pytest

from privspec.kernel import judge
from privspec.kernel.core.problem import HOMES
from privspec.plan import Plan
from tests.corpus.mutants import others, sampled, still_true, trimmed
from tests.plans import SMALL, Document, get, mutate, places, solved, solved_text
from tests.test_language_forms import FORMS as SPECS

SAMPLE = ("prefix_sums", "histogram", "counting_query", "dp_random_dictatorship")


def surprises(document: Document, most: int, seed: int = 0) -> list[str]:
    """Mutations of a plan that are accepted although they may not be."""
    if document["problem"]["blocks"][0]["form"] not in HOMES:
        pytest.skip("its form has no rules yet")
    assert not judge(json.dumps(document)).failed
    return [
        f"{'.'.join(map(str, path))}: {done}"
        for done, path, text in sampled(document, most, seed)
        if judge(text).ok and not still_true(document, done, path, text)
    ]


@pytest.mark.parametrize("name", SAMPLE)
def test_a_changed_plan_is_refused(name: str) -> None:
    assert not surprises(solved(name), 60)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_thousands_of_changed_plans_are_refused(name: str) -> None:
    assert not surprises(solved(name), 300, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("spec", [pytest.param(spec, id=name) for name, becomes, spec in SPECS if becomes == "solves"])
def test_changed_plans_of_every_form_of_the_language_are_refused(spec: str) -> None:
    assert not surprises(solved_text(spec), 60, seed=2)


@pytest.mark.parametrize("name", ["prefix_sums", "counting_query", "borda_lottery"])
def test_a_problem_of_another_spec_is_refused(name: str) -> None:
    document = solved(name)
    if document["problem"]["blocks"][0]["form"] not in HOMES:
        pytest.skip("its form has no rules yet")
    dice = random.Random(1)
    paths = [path for path, value in places(trimmed(document["problem"])) if others(value)]
    for path in dice.sample(paths, 12):
        for other in others(get(document["problem"], path))[:1]:
            assert not Plan.of(mutate(document, ("problem", *path), other)).verify().ok, path
    assert Plan.of(document).verify().ok
