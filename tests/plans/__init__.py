"""Plans for tests: small ones of every family, solved once in a run, and ways to change what they say."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path as Folder
from typing import Any

import numpy as np
import privspec.specs
from numpy.typing import NDArray

from privspec.api import Problem
from privspec.kernel.core.linear import read_matrix
from privspec.kernel.core.numbers import fraction
from privspec.kernel.core.problem import executed, read_frame
from privspec.kernel.core.reading import JsonNode
from privspec.kernel.writing import array, exact_grid
from privspec.manual import template_text
from privspec.problem.linear import as_floats
from privspec.problem.systems import part_names

Document = dict[str, Any]
Path = tuple[str | int, ...]

SHARED = "PRIVSPEC_TEST_PLANS"
"""The environment variable with the folder of plans that the workers of one run share, see tests/conftest.py."""
SPECS = Folder(privspec.specs.__file__).parent
SMALL: Mapping[str, Mapping[str, Any]] = {
    "prefix_sums": {"n": 6},
    "linear_queries": {},
    "histogram": {},
    "hospital_network": {},
    "counting_query": {"n": 4},
    "frequency_survey": {},
    "k_randomised_response": {},
    "fair_response": {},
    "geo_indistinguishability": {"side": 2},
    "power_means": {},
    "private_plurality": {"T": 6},
    "borda_lottery": {"T": 20},
    "random_dictatorship": {},
    "dp_random_dictatorship": {},
    "dp_random_dictatorship_compulsory": {},
    "city_report": {"N": 3},
    "press_and_auditors": {"N": 3},
    "street_report": {"N": 4},
    "correlated_readings": {"T": 5},
    "location_reports": {},
    "rounded_answers": {},
    "local_words": {"people": 40},
    "pages_read": {},
    "secure_sum_or_noise": {"N": 4},
    "daily_counts": {"days": 8, "gap": 3, "visits": 2},
    "momentum_training": {"steps": 4, "epochs": 2, "size": 2},
    "wang_algorithm_2": {"N": 4, "n": 4, "d": 2},
}
"""Templates, with parameters that make them small."""
SAME = 1e-6
"""Share of a loss by which what a plan takes may be above what it is compared with: that of what is optimal."""


def executed_of(document: Document) -> Any:
    """What a plan executes, as the kernel reads it."""
    frame = read_frame(JsonNode(document["problem"], "problem"))
    return executed(frame, JsonNode(document["mechanism"], "mechanism"))


def matrix_of(item: Any) -> NDArray[np.float64]:
    """A matrix of a plan, in doubles."""
    return as_floats(read_matrix(JsonNode(item, "matrix")))


def listed(item: Any) -> dict[str, Any]:
    """A matrix of a plan with all of its entries, one by one."""
    found = read_matrix(JsonNode(item, "matrix"))
    grid = exact_grid([fraction(entry) for entry in found.entries()], (found.nrows(), found.ncols()))
    return array(grid, len(grid.entries))


def dense(plan: Document, key: str = "strategy") -> dict[str, Any]:
    """A matrix of what a plan executes, whose entries may be changed in it."""
    executed = plan["mechanism"]["executed"]
    executed[key] = listed(executed[key])
    found: dict[str, Any] = executed[key]
    return found


def small_text(template: str) -> str:
    """A template that says itself what makes it small."""
    text = template_text(template)
    for name, value in SMALL.get(template, {}).items():
        text, found = re.subn(rf"^(  {name} = )\S+", rf"\g<1>{value}", text, count=1, flags=re.MULTILINE)
        assert found, f"{template}: {name}"
    return text


def solved(template: str, **parameters: Any) -> Document:
    """The plan of a template, small where nothing else is said; a document of its own, free to be changed."""
    return solved_text(template_text(template), **{**SMALL.get(template, {}), **parameters})


def solved_text(text: str, **parameters: Any) -> Document:
    """The plan of a spec."""
    found: Document = json.loads(_solved(text, tuple(sorted(parameters.items()))))
    return found


def components(plan: Mapping[str, Any]) -> list[Document]:
    """The plans of the parts of a system, in order."""
    return [plan["mechanism"]["components"][name] for name in part_names(plan)]


def keep(text: str, found: Document) -> None:
    """What a command made of a spec is its plan wherever else it is asked for: the same, but for the file's name."""
    if (kept := _place(text, ())) and not kept.exists():
        _write(kept, json.dumps(resign(found | {"spec": found["spec"] | {"path": Problem(text).name}})))


@cache
def _solved(text: str, parameters: tuple[tuple[str, Any], ...]) -> str:
    """The plan as text; workers side by side share what the first of them solves, for as long as they run."""
    kept = _place(text, parameters)
    if kept and kept.exists():
        return kept.read_text("utf-8")
    found = Problem(text, {}, base=SPECS).solve(**dict(parameters)).to_json()
    assert not (better := better_ones(json.loads(found))), better
    if kept:
        _write(kept, found)
    return found


def better_ones(plan: Document) -> list[str]:
    """Designs that a plan was compared with, could have been taken, and have less loss: never any."""
    value = (plan.get("loss") or {}).get("value")
    known = [one for one in plan.get("alternatives", ()) if one["admissible"] and one["loss"] is not None]
    return [one["name"] for one in known if value is not None and one["loss"] < value - SAME * abs(value)]


def _place(text: str, parameters: tuple[tuple[str, Any], ...]) -> Folder | None:
    """Where the plan of a spec is shared, if it is."""
    shared = os.environ.get(SHARED)
    return Folder(shared) / hashlib.sha256(repr((text, parameters)).encode()).hexdigest() if shared else None


def _write(kept: Folder, found: str) -> None:
    """All of it or nothing: others may look at the same time."""
    own = kept.with_suffix(f".{os.getpid()}")
    own.write_text(found, "utf-8")
    own.replace(kept)


def resign(document: Document) -> Document:
    """The document with the digest that fits what it says now."""
    body = {key: value for key, value in document.items() if key != "digest"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return body | {"digest": hashlib.sha256(text.encode()).hexdigest()}


def get(document: Any, path: Path) -> Any:
    """What stands at a place."""
    for step in path:
        document = document[step]
    return document


def mutate(document: Document, path: Path, value: Any) -> Document:
    """A signed copy that says something else at one place; a key that is not there is added."""
    changed = _copy(document)
    get(changed, path[:-1])[path[-1]] = value
    return resign(changed)


def without(document: Document, path: Path) -> Document:
    """A signed copy without a key or an entry."""
    changed = _copy(document)
    del get(changed, path[:-1])[path[-1]]
    return resign(changed)


def _copy(document: Document) -> Document:
    """All of it anew, several times as fast as part by part."""
    found: Document = pickle.loads(pickle.dumps(document))
    return found


def places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every place of a document with what stands there, objects and lists before their parts."""
    yield path, value
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield from places(part, (*path, key))
