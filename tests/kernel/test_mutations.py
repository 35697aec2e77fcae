"""Whatever a plan says, changed one thing at a time and signed again: it is refused, or it is still true."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from privspec.kernel.forms import HOMES
from privspec.kernel.judge import judge
from privspec.plan import Plan
from tests.plans import SMALL, Document, Path, get, mutate, places, solved, solved_text, without
from tests.test_language_forms import FORMS as SPECS

UNPROVED = ("spec", "assumptions", "alternatives", "remarks")
"""Parts that no claim of the kernel is about; `Plan.verify` derives the first two from the spec again."""
WITNESSES = ("claims",)
"""What proves the claims: another proof of the same claims is as good."""
SAMPLE = ("prefix_sums", "histogram", "counting_query", "dp_random_dictatorship")
MARK = "the key that stands twice"

Mutation = tuple[str, Path, str]
"""What was done, where, and the text of the changed plan."""


def others(value: Any) -> list[Any]:
    """Other leaves in place of one."""
    if isinstance(value, bool):
        return [not value, None, 0]
    if value is None:
        return [0, False, "", []]
    if isinstance(value, int):
        return [value + 1 + abs(value) // 1000, -value if value else -1, 0 if value else 1.0]
    if isinstance(value, float):
        return [value * 1.01 + 0.001, -value if value else -1.0, None]
    if not isinstance(value, str):
        return []
    found: list[Any] = [value + "x", *([""] if value else []), None]
    try:
        number = Fraction(value)
    except (ValueError, ZeroDivisionError):
        return found
    return [str(number + 1), str(number * Fraction(99, 101) - 1), str(-number - 3), *found]


def twice(document: Document, path: Path) -> str:
    """The text of a plan in which one key stands twice; its digest is that of the plan."""
    whole, key = json.dumps(get(document, path)), json.dumps(path[-1])
    marked = json.dumps(mutate(document, path, MARK) | {"digest": document["digest"]})
    return marked.replace(f'{key}: "{MARK}"', f"{key}: {whole}, {key}: {whole}", 1)


def still_true(document: Document, done: str, path: Path, text: str) -> bool:
    """Whether a mutation may be accepted: where nothing is claimed, or where a bound is stated on the safe side."""
    inside = path[:2] in (("mechanism", "components"), ("design", "outcomes")) and len(path) > 3
    whole, path = path, path[3:] if inside else path[1:] if path[:2] == ("design", "problem") else path
    if path[0] in (*UNPROVED, *WITNESSES) and done != "stands twice":
        return True
    if path[0] == "problem":
        return done != "stands twice" and not done.startswith("a key")  # another problem: judged as that, not as this
    if document["problem"]["blocks"][0]["form"] == "statistics" and done != "stands twice":
        if path[0] == "loss" or path == ("mechanism", "finish_first"):
            return True  # simulated, what comes after the noise included: pages say that it was tested, not proved
        if "parameters" in path and "becomes" in done:  # more noise than is claimed; a report's epsilon is exact
            return Fraction(get(json.loads(text), whole)) > Fraction(get(document, whole)) and path[-1] != "epsilon"
    tested = "standard_error" in document["loss"] and document["problem"]["blocks"][0]["form"] == "selection"
    if tested and path[0] in ("loss", "mechanism") and done != "stands twice" and not done.startswith("a key"):
        return True  # a mean over simulated tables is tested, not proved; what is drawn is as private as is stated
    if path == ("fairness",) and not get(document, whole):
        return done != "stands twice"  # a list of nothing
    before, after = get(document, whole), get(json.loads(text), whole) if "becomes" in done else None
    if path[-3:] == ("weights", "rows", 0) and after and len(get(document, whole[:-1])) == 1:
        return True  # a law's weights say how much more than one another: one alone says nothing
    if "mechanism" in path and path[-2:-1] == ("rows",) and isinstance(after, int):
        return abs(after - before) <= 1  # one step of a matrix: bias and loss are derived of what is executed
    if after is not None and ("achieved" in path or (path[0] == "exposures" and "bound" in path)):
        return Fraction(after) > Fraction(before)
    return path[-1] == "lower_bound" and after is not None and after < before


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


def sampled(document: Document, most: int, seed: int) -> Iterator[Mutation]:
    """Two mutations of each of some places."""
    dice = random.Random(seed)
    paths = [path for path, _ in places(trimmed(document)) if path and path[0] != "digest"]
    for path in dice.sample(paths, min(most, len(paths))):
        some = mutations(document, path)
        yield from ((done, place, text()) for done, place, text in dice.sample(some, min(2, len(some))))


def mutations(document: Document, path: Path) -> list[tuple[str, Path, Callable[[], str]]]:
    """A leaf changed in several ways; a key or an entry removed, doubled, added: the texts are written when wanted."""
    value = get(document, path)
    found: list[tuple[str, Path, Callable[[], str]]] = [
        (f"{value!r:.40} becomes {other!r:.40}", path, _said(mutate, document, path, other)) for other in others(value)
    ]
    found.append(("removed", path, _said(without, document, path)))
    if isinstance(value, dict):
        found.append(("a key more", (*path, "more"), _said(mutate, document, (*path, "more"), 0)))
    if isinstance(value, list) and value:
        found.append(("the last entry twice", path, _said(mutate, document, path, [*value, value[-1]])))
    if isinstance(path[-1], str):
        found.append(("stands twice", path, partial(twice, document, path)))
    return found


def _said(change: Callable[..., Document], *how: Any) -> Callable[[], str]:
    return lambda: json.dumps(change(*how))


def trimmed(value: Any) -> Any:
    """A document with at most four entries of every list: the places that are sampled."""
    if isinstance(value, dict):
        return {key: trimmed(part) for key, part in value.items()}
    return [trimmed(part) for part in value[:4]] if isinstance(value, list) else value


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
